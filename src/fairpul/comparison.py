"""Change between two audits of the same rows, paired by row."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairpul.estimate import Estimate
from fairpul.evidence import Evidence
from fairpul.findings import extremes, group_names
from fairpul.group_counts import GroupCounts
from fairpul.intervals import critical_value
from fairpul.label_frequency import LabelFrequency
from fairpul.measures import is_prior
from fairpul.ranges import possible_range
from fairpul.rates import GAPS, Rates
from fairpul.tally import Tally

if TYPE_CHECKING:
    from fairpul.audit import Audit


@dataclass(frozen=True)
class Comparison:
    """How rates and gaps change from one decision to another on the same rows.

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

    def __str__(self) -> str:
        rows = [["change in", *GAPS]]
        rows += [
            [name, *(str(self.rates[key][rate]) for rate in GAPS)]
            for key, name in group_names(tuple(self.rates)).items()
        ]
        rows.append(["gap", *(str(self.gaps[rate]) for rate in GAPS)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(w) for cell, w in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        )


def compare_evidence(before: Audit, after: Audit) -> Comparison:
    """Change of every rate and gap from one audit to another of the same rows."""
    one, _ = _basis_of(before)
    other, known = _basis_of(after)
    if not _same_rows(one, other):
        raise ValueError(
            "compare needs two audits of the same rows, in the same order. To compare "
            "audits of different rows, read their intervals side by side."
        )
    keys = tuple(before.rates)
    of_before, of_after, changed = (
        dict(zip(keys, evidence.tallies(), strict=True))
        for evidence in (
            one,
            other,
            Evidence(one.scores, other.acceptance - one.acceptance),
        )
    )
    rates = {key: _changes(changed[key], known[key], before.level) for key in keys}
    for key in keys:
        for audit in (before, after):
            fpr = audit.rates[key]["fpr"]
            if math.isnan(fpr.estimate):
                rates[key]["fpr"] = Estimate.undefined(fpr.tier, fpr.reason or "")
    gaps = {}
    for name in GAPS:
        # The range of an FPR is no sampling error, so it has no correlation.
        together = 0.0
        if name != "fpr":
            contrasts = [_contrast(audit.rates, name) for audit in (before, after)]
            together = _correlation(name, contrasts, of_before, of_after, changed)
        gaps[name] = gap_change(before.gaps[name], after.gaps[name], together)
    return Comparison(rates, gaps)


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


def _changes(group: Tally, known: LabelFrequency, level: float) -> dict[str, Estimate]:
    """Read the changes of a group off its tally of differences of acceptance."""
    tpr = _mean_change(
        group, np.array([0.0, -group.tpr, 0.0, 1.0]) / group.m, group.m_effective, level
    )
    selected = np.array([-group.selection_rate, 0.0, 1.0, 0.0]) / group.n
    return {
        "tpr": Estimate(group.tpr, *tpr, "c-free"),
        "fpr": _fpr_change(group, known, level),
        "selection_rate": Estimate(
            group.selection_rate,
            *_mean_change(group, selected, group.n_effective, level),
            "c-free",
        ),
    }


def _mean_change(
    group: Tally, influence: NDArray[np.float64], size: float, level: float
) -> tuple[float, float]:
    """Interval of a mean difference; one row more changes each way (Bonett and Price).

    The two rows keep the interval from vanishing where no decision changed.
    """
    labeled_only = influence[0] == influence[2] == 0
    weight = group.labeled if labeled_only else group.weight
    spread = group.spread(influence, size)
    n = size / spread.effect
    share = weight / weight.sum()
    mean, square = float(share @ group.acceptance), float(share @ group.acceptance**2)
    center = n * mean / (n + 2)
    variance = (n * square + 2) / (n + 2) - center**2
    half = critical_value(level, spread.df) * math.sqrt(variance / (n + 2))
    return max(-1.0, min(center - half, mean)), min(1.0, max(center + half, mean))


def _fpr_change(group: Tally, known: LabelFrequency, level: float) -> Estimate:
    """Change of the FPR at the estimate, and over all possible label frequencies."""
    tier = "prior" if is_prior(known) else "label frequency"
    low, high = possible_range(group, known)
    ends = [_fpr_interval(group, c, level) for c in {known.estimate, low, high}]
    value = group.fpr(known.estimate)
    return Estimate(
        value,
        max(-1.0, min(end[0] for end in ends)),
        min(1.0, max(end[1] for end in ends)),
        tier,
        f"over label frequencies from {low:.3g} to {high:.3g}",
    )


def _fpr_interval(group: Tally, c: float, level: float) -> tuple[float, float]:
    value, prior = group.fpr(c), group.labeled_share / c
    if math.isnan(value):
        return -1.0, 1.0
    influence = np.array([-value, value / c, 1.0, -1 / c]) / ((1 - prior) * group.n)
    spread = group.spread(influence, group.n_effective)
    half = critical_value(level, spread.df) * spread.se
    return value - half, value + half


def _contrast(rates: Rates, name: str) -> dict[Hashable, int]:
    """Sign of each group in the gap: 1 the highest, -1 the lowest."""
    pair = extremes(rates, name)
    return {} if pair is None else {pair[0]: 1, pair[1]: -1}


def _correlation(
    name: str,
    contrasts: Sequence[Mapping[Hashable, int]],
    before: Mapping[Hashable, Tally],
    after: Mapping[Hashable, Tally],
    changed: Mapping[Hashable, Tally],
) -> float:
    """Correlation of the errors of two gaps in TPR or selection rate."""
    total = np.zeros(3)
    for key in changed:
        first, second, change = (
            _variance(name, tallies[key]) for tallies in (before, after, changed)
        )
        a, b = (contrast.get(key, 0) for contrast in contrasts)
        covariance = (first + second - change) / 2
        total += [a * a * first, b * b * second, a * b * covariance]
    scale = math.sqrt(total[0] * total[1])
    return float(np.clip(total[2] / scale, -1, 1)) if scale > 0 else 0.0


def _variance(name: str, group: Tally) -> float:
    if name == "tpr":
        influence = np.array([0.0, -group.tpr, 0.0, 1.0]) / group.m
    else:
        influence = np.array([-group.selection_rate, 0.0, 1.0, 0.0]) / group.n
    return float(group.spread(influence, group.n_effective).se ** 2)


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
