"""What to bear in mind before acting on an audit, in sentences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fairpul.checks import Checks
from fairpul.diagnostics import recognizes_positives
from fairpul.estimate import Estimate
from fairpul.findings import extremes, group_name
from fairpul.group_counts import GroupCounts
from fairpul.knowledge import Knowledge
from fairpul.measures import FEWEST_LABELED, is_prior
from fairpul.rates import Rates
from fairpul.tally import Tally

_FEW_LABELED = 50
# Groups named in a sentence.
_LISTED = 10
# A finding that a smaller labeling bias would explain is called fragile.
_FRAGILE = 1.5
#: P-value under which a check is called failed.
SURPRISE = 0.01
_UNCALIBRATED = 0.2
# A bin, split by a threshold, that holds more of its group than this is told of.
_HEAVY_BIN = 1e-3


def cautions(
    rates: Rates,
    tallies: Sequence[Tally],
    sensitivity: Mapping[str, Any],
    checks: Checks,
    known: Knowledge,
    *,
    tuned: bool,
) -> Iterator[str]:
    """Sentences in the order of their weight: data, rule, gaps, label frequency."""
    of = dict(zip(rates, tallies, strict=True))
    yield from _few_labels(of)
    yield from _trivial(of)
    if tuned:
        yield (
            "The rule was tuned on these rows. Its rates are a little better here than "
            "they will be on new rows, and its gap is small by construction: read the "
            "interval of the gap, or audit new rows."
        )
    yield from _tpr_gap(rates, sensitivity)
    yield from _fpr_gap(rates, known)
    yield from _label_frequency(known, checks)
    yield from _calibration(checks)
    yield from _sources(checks)


def cautions_of_counts(counts: GroupCounts, threshold: float | None) -> Iterator[str]:
    """Sentences on what a table of counts does not tell, and no interval covers."""
    cost = counts.cost_of_suppression
    if cost:
        each = ", ".join(
            f"{_quoted(key)} by {rates['selection_rate']:.2%} and {rates['tpr']:.2%}"
            for key, rates in cost.items()
        )
        yield (
            "Small cells of the table were suppressed, so selection rate and TPR may "
            f"be off, beyond their intervals: in group {each}."
        )
    if not threshold:  # none, or one that accepts everybody
        return
    beneath = float(np.nextafter(threshold, 0))
    split = {}
    for s, key in enumerate(counts.groups):
        number, below = (counts.bin_at(s, f) for f in (threshold, beneath))
        share = counts.share_in_bin(s, number)
        if number == below and share > _HEAVY_BIN:
            split[key] = share
    if split:
        each = ", ".join(
            f"{share:.2%} of {_quoted(key)}" for key, share in split.items()
        )
        yield (
            f"The threshold lies inside a bin of the table, which holds {each}: all "
            "rows of the bin count as accepted. Count with more bins, or audit the "
            "rows."
        )


def _few_labels(of: Mapping[Hashable, Tally]) -> Iterator[str]:
    few = {
        key: f"{group.m_effective:.0f}"
        for key, group in of.items()
        if group.m_effective < _FEW_LABELED
    }
    if not few:
        return
    if len(few) == 1:
        ((key, m),) = few.items()
        start = f"Group {_quoted(key)} has only {m} labeled rows, so its rates are"
    else:
        each = _some([f"{_quoted(key)} ({m})" for key, m in few.items()])
        start = f"Groups {each} have few labeled rows, so their rates are"
    hidden = [key for key in few if of[key].m_effective < FEWEST_LABELED]
    more = (
        f" False positive rate, PPV and prevalence of {_listed(hidden)} are not shown."
        if hidden
        else ""
    )
    yield f"{start} very uncertain: read the intervals.{more}"


def _trivial(of: Mapping[Hashable, Tally]) -> Iterator[str]:
    for whom, rate in (("everybody", 1), ("nobody", 0)):
        keys = [key for key, group in of.items() if group.selection_rate == rate]
        if keys:
            yield (
                f"The decision accepts {whom} in {_listed(keys)}. Rates there, and "
                "gaps with them, say nothing about how well positives are recognized."
            )
    if not recognizes_positives(tuple(of.values())):
        yield (
            "Labeled rows are not shown to be accepted more often than the others, so "
            "nothing here says that the decision recognizes positives. A small gap is "
            "no merit then."
        )


def _tpr_gap(rates: Rates, sensitivity: Mapping[str, Any]) -> Iterator[str]:
    pair, gap = extremes(rates, "tpr"), rates.gaps["tpr"]
    if pair is None or len(rates) < 2:
        return
    if gap.low == 0:
        yield (
            "Which group's positives are missed more often is not determined: the gap "
            f"in TPR may be 0 and may be {gap.high:.2g}. More labeled rows would tell."
        )
        return
    bias: Estimate = sensitivity["labeling_bias"]
    if bias.low < _FRAGILE:
        high, low = map(_quoted, pair)
        yield (
            "The gap in TPR is fragile: if accepted positives are labeled "
            f"{bias.low:.3g} times as easily as rejected ones in group {high} but not "
            f"in {low}, labeling alone explains it. Ask how labels come about in both."
        )


def _fpr_gap(rates: Rates, known: Knowledge) -> Iterator[str]:
    gap = rates.gaps["fpr"]
    if known.pooled == "label frequency":
        value = next(iter(known.label_frequency.values())).estimate
        yield (
            f"One label frequency ({value:.3g}) was given for all groups. If positives "
            "of some groups are labeled less often, false positive rates at that value "
            "are wrong by a lot and can name the wrong group. They are therefore shown "
            "over all values that the data leave possible. Give one value for each "
            "group, or class priors, if you know them."
        )
    if known.pooled == "class prior":
        yield (
            "One class prior was given for all groups. If positives are more common in "
            "some of them, the false positive rates are wrong. Give one for each "
            "group, with an interval: (point, low, high)."
        )
    if len(rates) > 1 and gap.low == 0 and not math.isnan(gap.estimate):
        yield (
            "Which group has more false alarms (FPR) is not determined: the gap may be "
            f"0 and may be {gap.high:.2g}. A class prior of each group from outside, "
            "such as a prevalence survey, would narrow this."
        )


def _label_frequency(known: Knowledge, checks: Checks) -> Iterator[str]:
    for text in known.contradicted.values():
        yield text[0].upper() + text[1:] + "."
    if not checks.has_score and not _all_given(known):
        yield (
            "No score was given, so label frequencies were read from the accepted rows "
            "alone, which bounds them from below at best. Give score= for a better "
            "reading."
        )
    # Sentences that differ in the numbers of a group end alike: one stands for all.
    told: dict[str, dict[Hashable, str]] = {}
    for key, value in known.label_frequency.items():
        if value.warning and key not in known.contradicted:
            ending = value.warning.partition(". ")[2] or value.warning
            told.setdefault(ending, {})[key] = value.warning
    for texts in told.values():
        first, *others = texts
        same = [key for key in others if texts[key] != texts[first]]
        more = f" The same goes for {_listed(same)}." if same else ""
        yield texts[first] + more


def _all_given(known: Knowledge) -> bool:
    return known.pooled != "label frequency" and all(
        value.method == "known" or is_prior(value)
        for value in known.label_frequency.values()
    )


def _calibration(checks: Checks) -> Iterator[str]:
    keys = [
        key
        for key, (slope, _) in checks.calibration.items()
        if abs(slope.estimate - 1) > _UNCALIBRATED and not slope.low <= 1 <= slope.high
    ]
    if keys:
        slopes = _some(
            [f"{checks.calibration[key].slope.estimate:.2f}" for key in keys]
        )
        yield (
            f"In {_listed(keys)} the score is no calibrated probability of being "
            f"labeled (slope {slopes}; 1 if it were). TPR and selection rate do not "
            "depend on that; do not read the score as a probability."
        )


def _sources(checks: Checks) -> Iterator[str]:
    for key, found in checks.source.items():
        if found.estimate < SURPRISE:
            yield (
                f"In group {_quoted(key)} labeled rows differ between sources (p = "
                f"{found.estimate:.2g}): some sources label other positives than "
                "others, so the labeled rows may not stand for all positives. Audit "
                "the sources one by one."
            )


def _listed(keys: Sequence[Hashable]) -> str:
    """Write groups as part of a sentence.

    Examples
    --------
    >>> _listed(["f"]), _listed(["f", ("m", 1)])
    ("group 'f'", "groups 'f', 'm/1'")
    """
    names = _some([_quoted(key) for key in keys])
    return f"group {names}" if len(keys) == 1 else f"groups {names}"


def _some(parts: Sequence[str]) -> str:
    """Write the first few of a list, and how many there are besides."""
    more = len(parts) - _LISTED
    return ", ".join(parts[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _quoted(key: Hashable) -> str:
    return repr(group_name(key))
