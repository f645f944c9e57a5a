"""What to bear in mind before acting on an audit, in sentences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from fairpul.checks import Checks
from fairpul.diagnostics import recognizes_positives
from fairpul.estimate import Estimate
from fairpul.findings import extremes, group_name
from fairpul.knowledge import Knowledge
from fairpul.measures import FEWEST_LABELED, is_prior
from fairpul.rates import Rates
from fairpul.tally import Tally

_FEW_LABELED = 50
# A finding that a smaller labeling bias would explain is called fragile.
_FRAGILE = 1.5
_SURPRISE = 0.01
_UNCALIBRATED = 0.2


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


def is_trivial(group: Tally) -> str | None:
    """Whether a decision treats all rows of a group alike, and how."""
    if group.selection_rate == 1:
        return "accepts everybody"
    return "accepts nobody" if group.selection_rate == 0 else None


def _few_labels(of: Mapping[Hashable, Tally]) -> Iterator[str]:
    for key, group in of.items():
        m = group.m_effective
        if m < _FEW_LABELED:
            more = (
                " Its false positive rate, PPV and prevalence are not shown."
                if m < FEWEST_LABELED
                else ""
            )
            yield (
                f"Group {_quoted(key)} has only {m:.0f} labeled rows, so its rates are "
                f"very uncertain: read the intervals.{more}"
            )


def _trivial(of: Mapping[Hashable, Tally]) -> Iterator[str]:
    for key, group in of.items():
        found = is_trivial(group)
        if found:
            yield (
                f"The decision {found} in group {_quoted(key)}. Its rates there, and "
                "gaps with it, say nothing about how well positives are recognized."
            )
    if not recognizes_positives(tuple(of.values())):
        yield (
            "Labeled rows are hardly accepted more often than all others: the decision "
            "does not recognize positives. A small gap is no merit here."
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
    if known.pooled:
        value = next(iter(known.label_frequency.values())).estimate
        yield (
            f"One label frequency ({value:.3g}) was given for all groups. If positives of some groups are labeled less often, false "
            "positive rates at that value are wrong by a lot and can name the wrong "
            "group. They are therefore shown over all values that the data leave "
            "possible. Give one value for each group, or class priors, if you know "
            "them."
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
    told = {
        value.warning
        for key, value in known.label_frequency.items()
        if value.warning and key not in known.contradicted
    }
    yield from sorted(told)


def _all_given(known: Knowledge) -> bool:
    return not known.pooled and all(
        value.method == "known" or is_prior(value)
        for value in known.label_frequency.values()
    )


def _calibration(checks: Checks) -> Iterator[str]:
    for key, found in checks.calibration.items():
        slope = found.slope
        if math.isnan(slope.estimate) or slope.low <= 1 <= slope.high:
            continue
        if abs(slope.estimate - 1) > _UNCALIBRATED:
            yield (
                f"In group {_quoted(key)} the score is no calibrated probability of "
                f"being labeled (slope {slope}, 1 if it were). TPR and selection rate "
                "do not depend on that; do not read the score as a probability."
            )


def _sources(checks: Checks) -> Iterator[str]:
    for key, found in checks.source.items():
        if found.estimate < _SURPRISE:
            yield (
                f"In group {_quoted(key)} labeled rows differ between sources (p = "
                f"{found.estimate:.2g}): some sources label other positives than "
                "others, so the labeled rows may not stand for all positives. Audit "
                "the sources one by one."
            )


def _quoted(key: Hashable) -> str:
    return repr(group_name(key))
