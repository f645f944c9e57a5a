"""Change between two audits of the same rows, paired by row."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairpul.estimate import Estimate
from fairpul.evidence import Evidence
from fairpul.findings import extremes, group_names, readable_names
from fairpul.group_counts import GroupCounts
from fairpul.intervals import critical_value
from fairpul.label_frequency import LabelFrequency
from fairpul.measures import fpr_influence, is_prior, size_of_mean
from fairpul.notebook import html_notes, html_table, text_notes, text_table
from fairpul.ranges import possible_range
from fairpul.rates import GAPS, Rates
from fairpul.tally import Tally

if TYPE_CHECKING:
    from fairpul.audit import Audit

# How much each row, and each labeled row besides, counts in a mean.
Whom = tuple[int, int]
_LABELED, _EVERYBODY, _UNLABELED = (0, 1), (1, 0), (1, -1)
_OTHER_FREQUENCIES = (
    "the two audits lean on different label frequencies; give both the same "
    "label_frequency or class_prior"
)


@dataclass(frozen=True, repr=False)
class Comparison:
    """How rates and gaps change from one decision to another on the same rows.

    Prints as a table; shows as one in notebooks.

    Attributes
    ----------
    rates : dict
        Group key -> ``{"tpr", "fpr", "selection_rate"}`` -> Estimate of the change.
    gaps : dict
        ``{"tpr", "fpr", "selection_rate"}`` -> Estimate of the change in the gap;
        negative where it became smaller.
    """

    rates: Mapping[Hashable, Mapping[str, Estimate]]
    gaps: Mapping[str, Estimate]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; groups are strings, every number an Estimate as a dict."""
        names = group_names(tuple(self.rates))
        return {
            "rates": {
                names[key]: {name: value.to_dict() for name, value in of.items()}
                for key, of in self.rates.items()
            },
            "gaps": {name: value.to_dict() for name, value in self.gaps.items()},
        }

    def __repr__(self) -> str:
        return "\n".join([text_table(self._table()), *text_notes(self._notes())])

    def _repr_html_(self) -> str:
        caption = "Change, the later minus the earlier decision"
        return html_table(caption, self._table()) + html_notes(self._notes())

    def _table(self) -> list[list[str]]:
        names = readable_names(tuple(self.rates))
        return [
            ["change in", *GAPS],
            *([names[key], *_texts(of)] for key, of in self.rates.items()),
            ["gap", *_texts(self.gaps)],
        ]

    def _notes(self) -> list[str]:
        """Why a change is undefined, each reason once."""
        undefined = {
            (name, of[name].reason)
            for of in (*self.rates.values(), self.gaps)
            for name in GAPS
            if math.isnan(of[name].estimate)
        }
        return [
            f"The change in {name} is not determined: {reason}."
            for name, reason in sorted(undefined)
        ]


def _texts(values: Mapping[str, Estimate]) -> list[str]:
    return [
        "not determined" if math.isnan(values[name].estimate) else str(values[name])
        for name in GAPS
    ]


def compare_evidence(before: Audit, after: Audit) -> Comparison:
    """Change of every rate and gap from one audit to another of the same rows."""
    one, known_before = _basis_of(before)
    other, known = _basis_of(after)
    _check_alike(before, after)
    keys = tuple(before.rates)
    of_before, of_after, changed = (
        dict(zip(keys, evidence.tallies(), strict=True))
        for evidence in (
            one,
            other,
            Evidence(one.scores, other.acceptance - one.acceptance),
        )
    )
    rates = {key: _changes(changed[key], known[key], before) for key in keys}
    gaps = {}
    for name in GAPS:
        variances = [
            {key: _variance(name, of[key], known[key], before.population) for key in of}
            for of in (of_before, of_after, changed)
        ]
        signs = [_contrast(audit.rates, name) for audit in (before, after)]
        together = _correlation(signs, variances)
        if name == "fpr" and any(_has_range(of_after[k], known[k]) for k in keys):
            # What is not known of c moves both gaps, but is no sampling error.
            together = min(0.0, together)
        gaps[name] = gap_change(before.gaps[name], after.gaps[name], together)
    reason = None if _same(known_before, known) else _OTHER_FREQUENCIES
    for key in keys:
        for audit in (before, after):
            fpr = audit.rates[key]["fpr"]
            why = reason or (fpr.reason if math.isnan(fpr.estimate) else None)
            if why is not None:
                rates[key]["fpr"] = Estimate.undefined(fpr.tier, why)
    if reason is not None:
        gaps["fpr"] = Estimate.undefined(gaps["fpr"].tier, reason)
    return Comparison(rates, gaps)


def _check_alike(before: Audit, after: Audit) -> None:
    if not _same_rows(_basis_of(before)[0], _basis_of(after)[0]):
        raise ValueError(
            "compare needs two audits of the same rows, in the same order. To compare "
            "audits of different rows, read their intervals side by side."
        )
    for name in ("population", "level"):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            raise ValueError(
                f"compare needs two audits of one {name}, got {one!r} and {other!r}."
            )


def _same(
    known: Mapping[Hashable, LabelFrequency], other: Mapping[Hashable, LabelFrequency]
) -> bool:
    return all(
        (known[key].estimate, known[key].low, known[key].high)
        == (other[key].estimate, other[key].low, other[key].high)
        for key in known
    )


def gap_change(before: Estimate, after: Estimate, correlation: float) -> Estimate:
    r"""Change of a gap, from the interval of either and how they move together.

    Notes
    -----
    With gaps g, lower ends l and upper ends u (Zou 2008, MOVER):
    :math:`g_2 - g_1 - \sqrt{(g_2 - l_2)^2 + (u_1 - g_1)^2
    - 2 \rho (g_2 - l_2)(u_1 - g_1)}`, and likewise above.

    Examples
    --------
    >>> wide = Estimate(0.3, 0.2, 0.4, "c-free"), Estimate(0.1, 0.0, 0.2, "c-free")
    >>> print(gap_change(*wide, 0.0), gap_change(*wide, 0.5), sep=" | ")
    -0.200 [-0.341, -0.059] | -0.200 [-0.300, -0.100]
    """
    tier = after.tier if before.tier == "c-free" else before.tier
    change = after.estimate - before.estimate
    if math.isnan(change):
        undefined = before if math.isnan(before.estimate) else after
        return Estimate.undefined(tier, undefined.reason or "")

    def reach(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))

    below = reach(after.estimate - after.low, before.high - before.estimate)
    above = reach(after.high - after.estimate, before.estimate - before.low)
    return Estimate(change, max(-1.0, change - below), min(1.0, change + above), tier)


def _changes(group: Tally, known: LabelFrequency, audit: Audit) -> dict[str, Estimate]:
    """Read the changes of a group off its tally of differences of acceptance."""
    unlabeled = audit.population == "unlabeled"
    size = group.u_effective if unlabeled else group.n_effective
    of_all = _whom("selection_rate", audit.population)
    return {
        "tpr": _mean_change(group, _LABELED, group.m_effective, audit.level),
        "fpr": _fpr_change(group, known, audit.level),
        "selection_rate": _mean_change(group, of_all, size, audit.level),
    }


def _whom(name: str, population: str) -> Whom:
    """Whose acceptance a TPR or selection rate is."""
    if name == "tpr":
        return _LABELED
    return _UNLABELED if population == "unlabeled" else _EVERYBODY


def _mean_change(group: Tally, whom: Whom, size: float, level: float) -> Estimate:
    """Change of a mean; one row more changes each way (Bonett and Price).

    The two rows keep the interval from vanishing where no decision changed.
    """
    mass = _mass(group, whom)
    spread = group.spread(_mean_influence(group, whom), size)
    share = mass / mass.sum()
    mean, square = float(share @ group.acceptance), float(share @ group.acceptance**2)
    n = size_of_mean(group, square - mean**2, size, spread)
    center = n * mean / (n + 2)
    variance = (n * square + 2) / (n + 2) - center**2
    half = critical_value(level, spread.df) * math.sqrt(variance / (n + 2))
    low, high = max(-1.0, center - half), min(1.0, center + half)
    return Estimate(mean, min(low, mean), max(high, mean), "c-free")


def _mass(group: Tally, whom: Whom) -> NDArray[Any]:
    each, labeled = whom
    mass: NDArray[Any] = each * group.weight + labeled * group.labeled
    return mass


def _mean_influence(group: Tally, whom: Whom) -> NDArray[np.float64]:
    """Influence of a row on the mean acceptance, by its w, wL, wg and wLg."""
    each, labeled = whom
    mass = _mass(group, whom)
    mean = float(mass @ group.acceptance) / mass.sum()
    return np.array([-each * mean, -labeled * mean, each, labeled]) / float(mass.sum())


def _fpr_change(group: Tally, known: LabelFrequency, level: float) -> Estimate:
    """Change of the FPR at the estimate, and over all possible label frequencies."""
    tier = "prior" if is_prior(known) else "label frequency"
    low, high = possible_range(group, known)
    ends = [
        _fpr_interval(group, replace(known, estimate=c), level)
        for c in {known.estimate, low, high}
    ]
    value = group.fpr(known.estimate)
    return Estimate(
        value,
        max(-1.0, min(end[0] for end in ends)),
        min(1.0, max(end[1] for end in ends)),
        tier,
        f"over label frequencies from {low:.3g} to {high:.3g}" if low < high else None,
    )


def _fpr_interval(
    group: Tally, known: LabelFrequency, level: float
) -> tuple[float, float]:
    value = group.fpr(known.estimate)
    if math.isnan(value):
        return -1.0, 1.0
    spread = group.spread(fpr_influence(group, known), group.n_effective)
    half = critical_value(level, spread.df) * spread.se
    return value - half, value + half


def _contrast(rates: Rates, name: str) -> dict[Hashable, int]:
    """Sign of each group in the gap: 1 the highest, -1 the lowest."""
    pair = extremes(rates, name)
    return {} if pair is None else {pair[0]: 1, pair[1]: -1}


def _correlation(
    signs: Sequence[Mapping[Hashable, int]],
    variances: Sequence[Mapping[Hashable, float]],
) -> float:
    """Correlation of the errors of two gaps.

    Parameters
    ----------
    signs : sequence of mappings
        Sign of each group in the gap before and in the gap after.
    variances : sequence of mappings
        Variance of the rate of each group before, after, and of its change.
    """
    total = np.zeros(3)
    for key, first in variances[0].items():
        second, change = variances[1][key], variances[2][key]
        a, b = (sign.get(key, 0) for sign in signs)
        covariance = (first + second - change) / 2
        total += [a * a * first, b * b * second, a * b * covariance]
    scale = math.sqrt(total[0] * total[1])
    return float(np.clip(total[2] / scale, -1, 1)) if scale > 0 else 0.0


def _variance(name: str, group: Tally, known: LabelFrequency, population: str) -> float:
    if name != "fpr":
        influence = _mean_influence(group, _whom(name, population))
    elif math.isnan(group.fpr(known.estimate)):
        return 0.0
    else:
        influence = fpr_influence(group, known)
    return float(group.spread(influence, group.n_effective).se ** 2)


def _has_range(group: Tally, known: LabelFrequency) -> bool:
    low, high = possible_range(group, known)
    return low < high


def _basis_of(audit: Audit) -> tuple[Evidence, Mapping[Hashable, LabelFrequency]]:
    if audit.evidence is None or audit.knowledge is None:
        raise ValueError("The audit holds no rows to compare by. Run audit() again.")
    return audit.evidence, audit.knowledge.label_frequency


def _same_rows(before: Evidence, after: Evidence) -> bool:
    one, other = before.scores, after.scores
    if one is other:
        return True
    if isinstance(one, GroupCounts) or isinstance(other, GroupCounts):
        return isinstance(one, GroupCounts) and bool(one == other)
    return one.groups == other.groups and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("labeled", "codes", "sample_weight", "cluster")
    )
