"""The finding of an audit in plain words: what the labels show, what they leave open.

Sentences are made of numbers of the audit alone. They speak of gaps and intervals, and
promise nothing beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairpul.binning import least_score
from fairpul.estimate import Estimate
from fairpul.findings import extremes, group_name

if TYPE_CHECKING:
    from fairpul.audit import Audit

RATE_NAMES = {
    "tpr": "True positive rate (recall)",
    "fpr": "False positive rate",
    "selection_rate": "Selection rate",
    "ppv": "Positive predictive value",
    "prevalence": "Prevalence",
}
RATE_MEANINGS = {
    "tpr": "share of the positives who are selected",
    "fpr": "share of the negatives who are selected",
    "selection_rate": "share of everybody who is selected",
    "ppv": "share of the selected who are positive",
    "prevalence": "share of everybody who is positive",
}
#: In place of a number that is undefined.
MISSING = "\N{EN DASH}"

TIER_WORDS = {
    "c-free": "from the labels alone",
    "label frequency": "needs the share of positives that is labeled",
    "prior": "needs the prevalence that was given",
}
#: Where a prevalence was given for some groups only.
MIXED_TIERS = "needs the prevalence, or the share of positives that is labeled"


def percent(value: float, digits: int = 1) -> str:
    """Write a share in percent; a dash where it is undefined.

    Examples
    --------
    >>> percent(0.1234), percent(0.5, 0)
    ('12.3%', '50%')
    """
    return MISSING if math.isnan(value) else f"{100 * value:.{digits}f}%"


def hundredths(value: Estimate) -> int:
    """How many of 100 a share is."""
    return round(100 * value.estimate)


def points(value: float) -> str:
    """Write a difference of shares in percentage points, without the unit."""
    return MISSING if math.isnan(value) else f"{100 * value:.1f}"


def interval(value: Estimate) -> str:
    """Write the interval of a share in percent."""
    if math.isnan(value.low) or math.isnan(value.high):
        return MISSING
    return f"{100 * value.low:.1f} to {100 * value.high:.1f}%"


def cuts_text(cuts: Sequence[tuple[float, float]], bins: int | None = None) -> str:
    """Write who is accepted, and where lots are drawn with what chance.

    Parameters
    ----------
    cuts : sequence of (cut, weight)
        As a rule has them for a group: each cut applies with the chance of its weight.
    bins : int, optional
        Number of bins of the score, if cuts are bins.

    Examples
    --------
    >>> cuts_text([(0.25, 1.0)]), cuts_text([(float("inf"), 1.0)])
    ('score at least 0.250', 'nobody')
    >>> cuts_text([(0.4, 0.3), (0.25, 0.7)])
    'score at least 0.400; by lot 70.0% from 0.250'
    >>> cuts_text([(0.4, 0.2), (0.25, 0.5), (float("inf"), 0.3)])
    'by lot 70.0% from 0.400, 50.0% from 0.250'
    """
    certain, drawn, chance = "", [], 0.0
    # A score is accepted with the weights of all cuts that it reaches.
    for cut, weight in sorted(cuts):
        chance += weight
        if math.isinf(cut):
            continue
        level = least_score(cut, bins)
        if chance > 1 - 1e-9:
            certain = f"score at least {level:#.3g}" if level > 0 else "everybody"
        else:
            whom = f"from {level:#.3g}" if level > 0 else "of everybody else"
            drawn.append(f"{chance:.1%} {whom}")
    lots = [f"by lot {', '.join(reversed(drawn))}"] if drawn else []
    return "; ".join([certain, *lots] if certain else lots) or "nobody"


def points_interval(value: Estimate) -> str:
    """Write the interval of a gap in percentage points."""
    return f"{points(max(0.0, value.low))} to {points(value.high)} points"


def headline(audit: Audit) -> str:
    """One sentence: the finding on the gap in recall."""
    pair = extremes(audit.rates, "tpr")
    if len(audit.rates) < 2:
        (key,) = audit.rates
        tpr = audit.rates[key]["tpr"]
        return f"{percent(tpr.estimate, 0)} of the positives are selected."
    if pair is None:
        return "The labels do not show how recall differs between the groups."
    high, low = pair
    gap = audit.gaps["tpr"]
    if gap.low <= 0:
        return (
            "The labels do not settle whether recall differs between the groups: the "
            f"gap may be nil, or as large as {points(gap.high)} percentage points."
        )
    found = [hundredths(audit.rates[key]["tpr"]) for key in (low, high)]
    return (
        f"Of 100 positives in group {group_name(low)}, {found[0]} are found; of 100 in "
        f"group {group_name(high)}, {found[1]}."
    )


def sentences(audit: Audit) -> list[str]:
    """Write the sentences below the headline: interval, robustness, false positives."""
    if len(audit.rates) < 2:
        (rates,) = audit.rates.values()
        return [
            f"With a {audit.level:.0%} interval of {interval(rates['tpr'])}. With one "
            "group there is no gap."
        ]
    if extremes(audit.rates, "tpr") is None:
        return [_false_positives(audit)]
    return [_interval_of_gap(audit), *_robustness(audit), _false_positives(audit)]


def _interval_of_gap(audit: Audit) -> str:
    gap = audit.gaps["tpr"]
    among = "" if len(audit.rates) == 2 else ", largest minus smallest group,"
    text = (
        f"The gap in true positive rates{among} is {points(gap.estimate)} percentage "
        f"points, with a {audit.level:.0%} interval from {points(gap.low)} to "
        f"{points(gap.high)}."
    )
    if audit.tuned:
        text += (
            " The rule was tuned on these very rows, so the gap here is small by "
            "construction; the interval allows for that."
        )
    return text


def _robustness(audit: Audit) -> list[str]:
    bias = audit.sensitivity.get("labeling_bias")
    if bias is None or audit.gaps["tpr"].low <= 0 or math.isnan(bias.low):
        return []
    if bias.low <= 1.02:
        return [
            "A slight tendency to label selected positives more often than others, in "
            "one group only, could explain the gap away."
        ]
    return [
        "This rests on labels that stand for all positives of their group. It would "
        "take a labeling bias of at least "
        f"{bias.low:.1f} to 1 (best guess {bias.estimate:.1f}) in one group to explain "
        "the gap away: labeled positives would have to be selected that many times "
        "more readily, in odds, than unlabeled ones."
    ]


def fpr_tiers(audit: Audit) -> tuple[str, ...]:
    """Tiers of the false positive rates of the groups, each once."""
    return tuple(sorted({rates["fpr"].tier for rates in audit.rates.values()}))


def _false_positives(audit: Audit) -> str:
    gap = audit.gaps["fpr"]
    if math.isnan(gap.estimate):
        return f"The gap in false positive rates is unknown: {gap.reason}."
    assumed = "over every share of labeled positives that the data allow"
    if "prior" in (tiers := fpr_tiers(audit)):
        others = f", and in the other groups {assumed}" if len(tiers) > 1 else ""
        assumed = f"given the prevalence entered{others}"
    if gap.low <= 0:
        return (
            f"Whether false positive rates differ is not determined: {assumed}, their "
            f"gap lies between {points(max(0.0, gap.low))} and {points(gap.high)} "
            "percentage points."
        )
    return (
        f"False positive rates differ by {points(gap.low)} to {points(gap.high)} "
        f"percentage points, {assumed}."
    )
