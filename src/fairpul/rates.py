"""Rates of each group and their gaps, each with an interval and what it assumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul._groups import key_from_json, key_to_json
from fairpul.estimate import TIERS, Estimate
from fairpul.intervals import gap_interval, gap_interval_of_ranges, tukey_kramer
from fairpul.label_frequency import LabelFrequency
from fairpul.measures import RATES, Measured, bounded
from fairpul.notebook import text_table
from fairpul.ranges import measure, measure_ranges
from fairpul.tally import Tally

#: The rates that have a gap.
GAPS = ("tpr", "fpr", "selection_rate")
# Below this many labeled rows the interval of a tuned rule covers about .90, not .95.
_APPROXIMATE_LABELED = 150
# A snapped rule leaves a gap of its own, which the range of the errors lacks.
_SNAPPED_INFLATION = 1.1


@dataclass(frozen=True, eq=False, repr=False)
class Rates(Mapping[Hashable, Mapping[str, Estimate]]):
    """Rates of each group by group key, and the gaps between groups.

    Attributes
    ----------
    by_group : dict
        Group key -> ``{"tpr", "fpr", "selection_rate", "ppv", "prevalence"}`` ->
        :class:`Estimate`; ``rates[key]`` reads it.
    gaps : dict
        ``{"tpr", "fpr", "selection_rate"}`` -> :class:`Estimate`: the largest rate of
        a group minus the smallest.
    """

    by_group: Mapping[Hashable, Mapping[str, Estimate]]
    gaps: Mapping[str, Estimate]

    def __getitem__(self, key: Hashable) -> Mapping[str, Estimate]:
        return self.by_group[key]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.by_group)

    def __len__(self) -> int:
        return len(self.by_group)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rates):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # a mapping, as dict is

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; group keys keep their types (see ``key_to_json``)."""
        return {
            "groups": [
                [key_to_json(key), {name: rates[name].to_dict() for name in rates}]
                for key, rates in self.by_group.items()
            ],
            "gaps": {name: gap.to_dict() for name, gap in self.gaps.items()},
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Rates:
        """Rates back from :meth:`to_dict`."""
        by_group = {
            key_from_json(key): {
                name: Estimate.from_dict(value) for name, value in rates.items()
            }
            for key, rates in fields["groups"]
        }
        gaps = {
            name: Estimate.from_dict(value) for name, value in fields["gaps"].items()
        }
        return cls(by_group, gaps)

    def __repr__(self) -> str:
        rows: list[list[str]] = [["group", *RATES]]
        for key, rates in self.by_group.items():
            rows.append([str(key), *(str(rates[name]) for name in RATES)])
        gaps = [str(self.gaps[name]) if name in self.gaps else "" for name in RATES]
        rows.append(["gap", *gaps])
        return text_table(rows)


class DeferredRates(Rates):
    """Rates computed when first asked for: their intervals cost more than a rule.

    Parameters
    ----------
    compute : callable
        Returns the rates; picklable where the rates are to be.
    """

    def __init__(self, compute: Callable[[], Rates]) -> None:
        # Around the frozen fields, which are read through properties here.
        self.__dict__["_compute"] = compute

    @cached_property
    def _rates(self) -> Rates:
        return self.__dict__["_compute"]()  # type: ignore[no-any-return]

    @property
    def by_group(self) -> Mapping[Hashable, Mapping[str, Estimate]]:
        """Rates of each group."""
        return self._rates.by_group

    @property
    def gaps(self) -> Mapping[str, Estimate]:
        """Gaps between groups."""
        return self._rates.gaps


def group_rates(
    tallies: Sequence[Tally],
    groups: Sequence[Hashable],
    label_frequency: Mapping[Hashable, LabelFrequency] | None,
    *,
    tuned: bool,
    snapped: bool = False,
    ranges: bool = False,
    population: str = "all",
    level: float = 0.95,
) -> Rates:
    r"""Rates of each group and their gaps, with intervals.

    Parameters
    ----------
    tallies : sequence of Tally
        One per group.
    groups : sequence of hashables
        Keys of the groups.
    label_frequency : mapping, or None
        :class:`LabelFrequency` of each group; method ``"class_prior"`` marks a prior
        of the user. Without it, FPR, PPV and prevalence are nan.
    tuned : bool
        Whether the decision rule was tuned on the same rows. Rates of such a rule are
        optimistic, and its observed gap is small by construction.
    snapped : bool
        Whether a tuned rule was moved to the nearest cuts.
    ranges : bool
        Widen FPR, PPV and prevalence to all label frequencies from ``low`` to ``high``
        instead of taking the estimate as given.
    population : {"all", "unlabeled"}
        Whom selection rate, PPV and prevalence are about.
    level : float
        Confidence level.

    Returns
    -------
    Rates
        nan with a reason where undefined: any rate of a group without rows, the TPR
        without a labeled row, FPR, PPV and prevalence with fewer than 20 effective
        labeled rows (unless the label frequency is known to be 1), and a gap if it is
        undefined in some group.

    Notes
    -----
    TPR and selection rate: Wilson intervals on effective numbers. They treat an
    acceptance probability between 0 and 1 as a share and are then too wide. FPR:
    normal, with influence :math:`(1 - L/c)(g - F)/(1 - \pi)` at a given c and
    :math:`[(g - Q) - (L/c)(g - T)]/(1 - \pi)` at a given :math:`\pi`. All intervals of
    FPR, PPV and prevalence are conditional on the c or prior given, unless ``ranges``.

    Examples
    --------
    >>> both = np.array([0.0, 1.0])
    >>> tallies = [
    ...     Tally(both, np.array([700, 300]), np.array([40, 120]), 1000, 160),
    ...     Tally(both, np.array([750, 250]), np.array([60, 90]), 1000, 150),
    ... ]
    >>> c = LabelFrequency(0.5, 0.5, 0.5, "known")
    >>> rates = group_rates(tallies, ["f", "m"], {"f": c, "m": c}, tuned=False)
    >>> print(rates["f"]["tpr"], rates["f"]["fpr"], rates.gaps["tpr"], sep=" | ")
    0.750 [0.678, 0.811] | 0.088 [0.042, 0.134] | 0.150 [0.030, 0.249]
    """
    if ranges and label_frequency is not None:
        columns = measure_ranges(tallies, groups, label_frequency, level, population)
    else:
        columns = measure(tallies, groups, label_frequency, level, population)
    by_group = {
        key: {name: columns[name][number].estimate for name in RATES}
        for number, key in enumerate(groups)
    }
    inflation = _SNAPPED_INFLATION if snapped else 1.0
    gaps = {
        name: _gap(
            columns[name],
            tallies,
            groups,
            tuned=tuned,
            level=level,
            inflation=inflation,
        )
        for name in GAPS
    }
    return Rates(by_group, gaps)


def pairwise_gaps(
    tallies: Sequence[Tally],
    groups: Sequence[Hashable],
    label_frequency: Mapping[Hashable, LabelFrequency] | None,
    *,
    level: float = 0.95,
) -> dict[tuple[Hashable, Hashable], dict[str, Estimate]]:
    """Rate of one group minus that of another, for all pairs of groups.

    Parameters are those of :func:`group_rates`. The Tukey-Kramer intervals hold for all
    pairs of groups at once, for each rate by itself, of a rule fixed beforehand.

    Returns
    -------
    dict
        Pair of group keys -> rate name -> :class:`Estimate` in [-1, 1].
    """
    columns = measure(tallies, groups, label_frequency, level)
    pairs: dict[tuple[Hashable, Hashable], dict[str, Estimate]] = {
        pair: {} for pair in combinations(groups, 2)
    }
    for name in GAPS:
        column = columns[name]
        half = tukey_kramer(
            [rate.se for rate in column],
            level,
            min(rate.df for rate in column),
            _correlation(column, tallies),
        )
        for i, j in combinations(range(len(groups)), 2):
            pairs[groups[i], groups[j]][name] = _difference(
                column[i], column[j], float(half[i, j])
            )
    return pairs


def fpr_range(
    tpr: float,
    selection_rate: float,
    labeled_share: float,
    label_frequency_low: float,
    label_frequency_high: float,
) -> tuple[float, float]:
    r"""Smallest and largest FPR as the label frequency runs over an interval.

    Sampling error is not part of it.

    Notes
    -----
    :math:`F = (Q - \pi T)/(1 - \pi)` is monotone in :math:`\pi = \rho / c`, falling
    where T > Q, so the ends of the interval give the ends of the range, cut to [0, 1].
    A label frequency at or below the labeled share leaves no negative: its F is the
    limit as :math:`\pi \to 1`.

    Examples
    --------
    >>> low, high = fpr_range(0.8, 0.3, 0.1, 0.4, 1.0)
    >>> round(low, 3), round(high, 3)
    (0.133, 0.244)
    """
    ends = []
    for label_frequency in (label_frequency_low, label_frequency_high):
        prior = labeled_share / label_frequency
        if prior < 1:
            fpr = (selection_rate - prior * tpr) / (1 - prior)
        elif selection_rate == tpr:
            fpr = tpr
        else:
            fpr = 0.0 if tpr > selection_rate else 1.0
        ends.append(min(1.0, max(0.0, fpr)))
    return min(ends), max(ends)


def _gap(
    column: Sequence[Measured],
    tallies: Sequence[Tally],
    groups: Sequence[Hashable],
    *,
    tuned: bool,
    level: float,
    inflation: float,
) -> Estimate:
    """Largest minus smallest rate of a group."""
    rates = [rate.estimate for rate in column]
    values = [rate.estimate for rate in rates]
    tier = max((rate.tier for rate in rates), key=TIERS.index)
    # A prior may be known of some groups only.
    given = " or ".join(t for t in TIERS if t in {rate.tier for rate in rates})
    missing = [
        f"{key!r}: {rate.reason}"
        for key, rate in zip(groups, rates, strict=True)
        if math.isnan(rate.estimate)
    ]
    if missing:
        return Estimate.undefined(tier, "undefined in group " + ", ".join(missing))
    reasons = [] if tier == "c-free" else [f"conditional on the {given} of each group"]
    if any(rate.span is not None for rate in column):
        low, high = _interval_over_ranges(column, tuned=tuned, level=level)
        return _estimate_of_ranges(values, low, high, tier, given)
    low, high = gap_interval(
        [rate.center for rate in column],
        [rate.se for rate in column],
        tuned=tuned,
        level=level,
        df=min(rate.df for rate in column),
        correlation=_correlation(column, tallies),
        inflation=inflation,
    )
    if tuned and min(group.m_effective for group in tallies) < _APPROXIMATE_LABELED:
        reasons.append(
            f"approximate: a group has fewer than {_APPROXIMATE_LABELED} labeled rows"
        )
    reason = "; ".join(reasons) or None
    return bounded(max(values) - min(values), low, high, tier, reason)


def _interval_over_ranges(
    column: Sequence[Measured], *, tuned: bool, level: float
) -> tuple[float, float]:
    """Interval of a gap between rates some of which have a range, not a point."""
    points = [rate.estimate.estimate for rate in column]
    spans = [
        (point, point) if rate.span is None else rate.span
        for rate, point in zip(column, points, strict=True)
    ]
    return gap_interval_of_ranges(
        [low for low, _ in spans],
        [high for _, high in spans],
        [rate.estimate.low for rate in column],
        [rate.estimate.high for rate in column],
        tuned=tuned,
        level=level,
    )


def _estimate_of_ranges(
    values: Sequence[float], low: float, high: float, tier: str, given: str
) -> Estimate:
    reason = f"over all {given} values that are possible in each group"
    if low == 0 and len(values) > 1:
        reason += "; which group has the higher rate is not determined"
    return bounded(max(values) - min(values), low, high, tier, reason)


def _correlation(
    column: Sequence[Measured], tallies: Sequence[Tally]
) -> NDArray[np.float64] | None:
    """Correlation of a rate between groups that share clusters; None if none does."""
    codes = [group.clusters.cluster for group in tallies if group.clusters is not None]
    influences = [rate.influence for rate in column if rate.influence is not None]
    if len(codes) < len(tallies) or len(influences) < len(column):
        return None
    present, position = np.unique(np.concatenate(codes), return_inverse=True)
    if len(present) == len(position):
        return None
    number = np.repeat(np.arange(len(codes)), [len(code) for code in codes])
    aligned = np.zeros((len(codes), len(present)))
    aligned[number, position] = np.concatenate(influences)
    length = np.linalg.norm(aligned, axis=1)
    aligned[length > 0] /= length[length > 0, None]
    correlation: NDArray[np.float64] = aligned @ aligned.T
    return correlation


def _difference(first: Measured, second: Measured, half: float) -> Estimate:
    """Rate of one group minus that of another, give or take a half-width."""
    one, other = first.estimate, second.estimate
    tier = max(one.tier, other.tier, key=TIERS.index)
    value = one.estimate - other.estimate
    if math.isnan(value):
        return Estimate.undefined(tier, one.reason or other.reason or "")
    center = first.center - second.center
    low, high = max(-1.0, center - half), min(1.0, center + half)
    return Estimate(value, min(value, low), max(value, high), tier)
