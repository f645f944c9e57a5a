"""Rates of each group and their gaps, each with an interval and what it assumes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul._groups import key_from_json, key_to_json
from fairpul.intervals import (
    agresti,
    critical_value,
    gap_interval,
    tukey_kramer,
    wilson,
)
from fairpul.label_frequency import LabelFrequency

#: What a number leans on besides the rows, from least to most.
TIERS = ("c-free", "label frequency", "prior")
#: The rates of a group, and those of them that have a gap.
RATES = ("tpr", "fpr", "selection_rate", "ppv", "prevalence")
GAPS = ("tpr", "fpr", "selection_rate")

#: Fewer labeled rows than this in a group support no claim beyond its TPR.
FEWEST_LABELED = 20
# Below this many labeled rows the interval of a tuned rule covers about .90, not .95.
_APPROXIMATE_LABELED = 150
_FEWEST_CLUSTERS = 15
# Methods of a LabelFrequency that stand for a class prior of the user.
_PRIOR_METHODS = ("class_prior", "prior")
# A snapped rule leaves a gap of its own, which the range of the errors lacks.
_SNAPPED_INFLATION = 1.1


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, its interval, and the tier of what it assumes.

    Attributes
    ----------
    estimate, low, high : float
        nan where undefined.
    tier : {"c-free", "label frequency", "prior"}
        What the number leans on besides the rows.
    reason : str or None
        Why the number is undefined, or what its interval is conditional on.

    Examples
    --------
    >>> print(Estimate(0.5, 0.25, 0.75, "c-free"))
    0.500 [0.250, 0.750]
    """

    estimate: float
    low: float
    high: float
    tier: str
    reason: str | None = None

    @classmethod
    def undefined(cls, tier: str, reason: str) -> Estimate:
        """Estimate without a value, and why."""
        return cls(math.nan, math.nan, math.nan, tier, reason)

    def to_dict(self) -> dict[str, Any]:
        """Fields by name, None in place of nan."""
        return {
            "estimate": None if math.isnan(self.estimate) else self.estimate,
            "low": None if math.isnan(self.low) else self.low,
            "high": None if math.isnan(self.high) else self.high,
            "tier": self.tier,
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Estimate:
        """Estimate back from :meth:`to_dict`."""
        estimate, low, high = (
            math.nan if fields[name] is None else float(fields[name])
            for name in ("estimate", "low", "high")
        )
        return cls(estimate, low, high, fields["tier"], fields["reason"])

    def __str__(self) -> str:
        if math.isnan(self.estimate):
            return "nan"
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Estimate):
            return NotImplemented
        return self.to_dict() == other.to_dict()  # None equals None, nan is not nan

    def __hash__(self) -> int:
        return hash(tuple(self.to_dict().values()))


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
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        )


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over the rows of each cluster of one group.

    Attributes
    ----------
    cluster : ndarray of shape (n_clusters,)
        Distinct codes of the clusters, comparable between groups.
    sums : ndarray of shape (n_clusters, 4)
        Of w, w L, w g and w L g: weight w, labeled L, acceptance probability g.
    """

    cluster: NDArray[np.intp]
    sums: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tally:
    """Sufficient statistics of one group under one decision rule.

    Attributes
    ----------
    acceptance : ndarray of shape (n_levels,)
        Distinct acceptance probabilities, such as 0, 0.37 and 1.
    weight, labeled : ndarray of shape (n_levels,)
        Weight of the rows, and of the labeled rows, accepted with each of them.
    n_effective, m_effective : float
        Effective numbers of rows and labeled rows, (sum w)^2 / sum w^2.
    clusters : ClusterSums or None
        None where all rows are independent.

    Examples
    --------
    >>> both = np.array([0.0, 1.0])
    >>> group = Tally(both, np.array([70, 30]), np.array([4, 12]), 100, 16)
    >>> group.tpr, group.selection_rate, group.labeled_share
    (0.75, 0.3, 0.16)
    """

    acceptance: NDArray[np.float64]
    weight: NDArray[Any]
    labeled: NDArray[Any]
    n_effective: float
    m_effective: float
    clusters: ClusterSums | None = None

    @property
    def n(self) -> float:
        """Weight of all rows."""
        return float(self.weight.sum())

    @property
    def m(self) -> float:
        """Weight of the labeled rows."""
        return float(self.labeled.sum())

    @property
    def tpr(self) -> float:
        """Acceptance of the labeled rows; nan where there is none."""
        return _ratio(float(self.labeled @ self.acceptance), self.m)

    @property
    def selection_rate(self) -> float:
        """Acceptance of all rows; nan where there is none."""
        return _ratio(float(self.weight @ self.acceptance), self.n)

    @property
    def labeled_share(self) -> float:
        """Share of the rows that is labeled; nan where there is no row."""
        return _ratio(self.m, self.n)

    @property
    def u_effective(self) -> float:
        """Effective number of unlabeled rows."""
        squares = self._squares[1]
        return (self.n - self.m) ** 2 / squares if squares else 0.0

    def fpr(self, label_frequency: float) -> float:
        r"""FPR at a label frequency; nan where that leaves no negative.

        :math:`(Q - \pi T)/(1 - \pi)` with :math:`\pi = \rho / c`. On a sample it may
        fall a little below 0; cutting it off would bias every sum it enters.
        """
        negative = self.n - self.m / label_frequency
        # From the sums, so that c = 1 gives the ordinary rate to the last digit.
        kept = self.weight - self.labeled / label_frequency
        return (
            _ratio(float(kept @ self.acceptance), negative)
            if negative > 0
            else math.nan
        )

    def spread(self, coefficients: NDArray[np.float64], size: float) -> Spread:
        r"""How far a rate of this group may be off.

        Parameters
        ----------
        coefficients : ndarray of shape (4,)
            Of w, w L, w g and w L g in the influence of one row on the rate.
        size : float
            Effective number of rows the rate is a mean of.

        Notes
        -----
        Independent rows: :math:`V = \sum w^2 \psi^2`. Clusters:
        :math:`V = \frac{G}{G-1} \sum_c (\sum_{i \in c} w \psi)^2`, no smaller than the
        former; the ratio is the design effect.
        """
        variance = self._independent_variance(coefficients)
        if self.clusters is None:
            return Spread(math.sqrt(variance))
        influence = self.clusters.sums @ coefficients
        labeled_only = coefficients[0] == coefficients[2] == 0
        sums = self.clusters.sums[:, 1 if labeled_only else 0]
        count = int(np.count_nonzero(sums))
        clustered = count / (count - 1) * float(influence @ influence)
        # Where no row differs from the others, a cluster counts as one row.
        ratio = clustered / variance if variance > 0 else size / count
        effect = max(1.0, ratio)
        return Spread(math.sqrt(variance * effect), effect, count - 1, influence)

    def _independent_variance(self, coefficients: NDArray[np.float64]) -> float:
        rows, labeled, accepted, both = coefficients
        at_labeled = rows + labeled + (accepted + both) * self.acceptance
        at_unlabeled = rows + accepted * self.acceptance
        unlabeled = self.weight - self.labeled
        of_labeled, of_unlabeled = self._squares
        return of_labeled * _mean(at_labeled**2, self.labeled) + of_unlabeled * _mean(
            at_unlabeled**2, unlabeled
        )

    @property
    def _squares(self) -> tuple[float, float]:
        """Sums of squared weights of the labeled and of the unlabeled rows."""
        labeled = self.m**2 / self.m_effective if self.m else 0.0
        return labeled, max(0.0, self.n**2 / self.n_effective - labeled)


@dataclass(frozen=True, eq=False)
class Spread:
    """Standard error of a rate, its design effect, and what clusters add to it."""

    se: float
    effect: float = 1.0
    df: float = math.inf
    influence: NDArray[np.float64] | None = None


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.nan


def _mean(value: NDArray[np.float64], weight: NDArray[Any]) -> float:
    total = weight.sum()
    return float(value @ weight / total) if total else 0.0


def tally(
    acceptance_probability: NDArray[Any],
    labeled: NDArray[np.bool_],
    codes: NDArray[np.intp],
    n_groups: int,
    sample_weight: NDArray[np.float64] | None = None,
    cluster: NDArray[np.intp] | None = None,
) -> tuple[Tally, ...]:
    """Sufficient statistics of each group, from rows.

    Parameters
    ----------
    acceptance_probability : ndarray of shape (n_rows,)
        Decisions (bool, 0 or 1) or acceptance probabilities in [0, 1].
    labeled, codes : ndarray of shape (n_rows,)
        Whether each row is labeled, and the number of its group.
    n_groups : int
        Number of groups; some may have no row.
    sample_weight, cluster : ndarray of shape (n_rows,), optional
        Sampling weights, and codes of rows that belong together.

    Examples
    --------
    >>> accepted, labeled = np.array([1, 0, 1, 0]), np.array([True, True, False, False])
    >>> both, = tally(accepted, labeled, np.zeros(4, dtype=np.intp), 1)
    >>> both.weight.tolist(), both.labeled.tolist()
    ([2, 2], [1, 1])
    """
    levels, level = _levels(acceptance_probability)
    cell = (codes * len(levels) + level) * 2 + labeled
    shape = (n_groups, len(levels), 2)

    def sums(weight: NDArray[np.float64] | None) -> NDArray[Any]:
        counts = np.bincount(cell, weights=weight, minlength=math.prod(shape))
        return counts.reshape(shape)

    mass = sums(sample_weight)
    squares = mass if sample_weight is None else sums(sample_weight**2)
    tallies = []
    for number in range(n_groups):
        unlabeled, positive = mass[number, :, 0], mass[number, :, 1]
        clusters = None
        if cluster is not None:
            rows = np.flatnonzero(codes == number)
            weight = None if sample_weight is None else sample_weight[rows]
            accepted = levels[level[rows]]
            clusters = _sum_clusters(cluster[rows], labeled[rows], accepted, weight)
        tallies.append(
            Tally(
                levels,
                unlabeled + positive,
                positive,
                _effective(mass[number], squares[number]),
                _effective(positive, squares[number, :, 1]),
                clusters,
            )
        )
    return tuple(tallies)


def _levels(
    acceptance: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Distinct acceptance probabilities and the number of each row's own."""
    if acceptance.dtype == bool:
        return np.array([0.0, 1.0]), acceptance.astype(np.intp)
    # Only the rows of a lottery need sorting: most are accepted or not.
    drawn = np.flatnonzero((acceptance > 0) & (acceptance < 1))
    between, number = np.unique(acceptance[drawn], return_inverse=True)
    level = (acceptance == 1).astype(np.intp) * (len(between) + 1)
    level[drawn] = number + 1
    return np.concatenate([[0.0], between, [1.0]]), level


def _effective(mass: NDArray[Any], squares: NDArray[Any]) -> float:
    total = float(squares.sum())
    return float(mass.sum()) ** 2 / total if total else 0.0


def _sum_clusters(
    cluster: NDArray[np.intp],
    labeled: NDArray[np.bool_],
    accepted: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
) -> ClusterSums:
    present, number = np.unique(cluster, return_inverse=True)
    mass = np.ones(len(cluster)) if weight is None else weight
    columns = (mass, mass * labeled, mass * accepted, mass * labeled * accepted)
    sums = [np.bincount(number, column, len(present)) for column in columns]
    return ClusterSums(present, np.column_stack(sums))


@dataclass(frozen=True, eq=False)
class _Measured:
    """A rate of one group with what a gap needs of it."""

    estimate: Estimate
    center: float = math.nan
    se: float = math.nan
    df: float = math.inf
    influence: NDArray[np.float64] | None = None


def group_rates(
    tallies: Sequence[Tally],
    groups: Sequence[Hashable],
    label_frequency: Mapping[Hashable, LabelFrequency] | None,
    *,
    tuned: bool,
    snapped: bool = False,
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
    FPR, PPV and prevalence are conditional on the c or prior given: :func:`fpr_range`
    shows what its uncertainty adds.

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
    columns = _measure(tallies, groups, label_frequency, level)
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
    columns = _measure(tallies, groups, label_frequency, level)
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


def _measure(
    tallies: Sequence[Tally],
    groups: Sequence[Hashable],
    label_frequency: Mapping[Hashable, LabelFrequency] | None,
    level: float,
) -> dict[str, list[_Measured]]:
    """Measure every rate of every group: name -> one per group."""
    _check_clusters(tallies, groups)
    columns: dict[str, list[_Measured]] = {name: [] for name in RATES}
    for key, group in zip(groups, tallies, strict=True):
        known = None if label_frequency is None else label_frequency[key]
        columns["tpr"].append(_tpr(group, level))
        columns["selection_rate"].append(_selection_rate(group, level))
        tier = "prior" if _is_prior(known) else "label frequency"
        reason = _why_undefined(group, key, known)
        for name, formula in (
            ("fpr", _fpr),
            ("ppv", _ppv),
            ("prevalence", _prevalence),
        ):
            if known is None or reason is not None:
                missing = Estimate.undefined(tier, reason or "")
                columns[name].append(_Measured(missing))
            else:
                columns[name].append(formula(group, known, level))
    return columns


def _check_clusters(tallies: Sequence[Tally], groups: Sequence[Hashable]) -> None:
    few = [
        key
        for key, group in zip(groups, tallies, strict=True)
        if group.clusters is not None
        and np.count_nonzero(group.clusters.sums[:, 1]) < _FEWEST_CLUSTERS
    ]
    if few:
        raise ValueError(
            f"At least {_FEWEST_CLUSTERS} clusters with a labeled row are required in "
            f"each group for an interval; groups {few!r} have fewer. Merge groups, or "
            "leave the clusters out if the rows are independent."
        )


def _is_prior(known: LabelFrequency | None) -> bool:
    return known is not None and known.method in _PRIOR_METHODS


def _why_undefined(
    group: Tally, key: Hashable, known: LabelFrequency | None
) -> str | None:
    """Reason why FPR, PPV and prevalence of a group have no value, if there is one."""
    if group.n == 0:
        return "no row"
    if known is None:
        return "needs a label frequency or a class prior"
    fully_labeled = known.estimate == 1 and known.method == "known"
    if group.m_effective < FEWEST_LABELED and not fully_labeled:
        return f"fewer than {FEWEST_LABELED} labeled rows"
    if known.estimate < group.labeled_share or (
        known.estimate == group.labeled_share < 1
    ):
        raise ValueError(
            f"The label frequency of group {key!r} must exceed its labeled share "
            f"{group.labeled_share:.4g}, got {known.estimate:.4g}: the class prior, "
            "their ratio, would not be below 1."
        )
    return None


def _tpr(group: Tally, level: float) -> _Measured:
    if group.m == 0:
        return _Measured(Estimate.undefined("c-free", "no labeled row"))
    influence = np.array([0.0, -group.tpr, 0.0, 1.0]) / group.m
    return _share(group, group.tpr, group.m_effective, influence, level)


def _selection_rate(group: Tally, level: float) -> _Measured:
    if group.n == 0:
        return _Measured(Estimate.undefined("c-free", "no row"))
    influence = np.array([-group.selection_rate, 0.0, 1.0, 0.0]) / group.n
    return _share(group, group.selection_rate, group.n_effective, influence, level)


def _fpr(group: Tally, known: LabelFrequency, level: float) -> _Measured:
    c, tpr, selected = known.estimate, group.tpr, group.selection_rate
    prior = group.labeled_share / c
    fpr = group.fpr(c)
    tier, reason = _condition(group, known)
    if math.isnan(fpr):
        return _Measured(Estimate.undefined(tier, "no negative row"))
    rows, labeled = (-selected, tpr / c) if tier == "prior" else (-fpr, fpr / c)
    influence = np.array([rows, labeled, 1.0, -1 / c]) / ((1 - prior) * group.n)
    if c == 1 and tier != "prior":  # every unlabeled row is a negative
        return _share(group, fpr, group.u_effective, influence, level, c, tier, reason)
    spread = group.spread(influence, group.n_effective)
    half = critical_value(level, spread.df) * spread.se
    low, high, se = fpr - half, fpr + half, spread.se
    if selected in (0.0, 1.0):
        # All rows are treated alike, which leaves no error to see. F is at most
        # Q / (1 - pi), and at least that of accepting every positive.
        overall = _selection_rate(group, level)
        low = (overall.estimate.low - prior) / (1 - prior)
        high = overall.estimate.high / (1 - prior)
        se = overall.se / (1 - prior)
    estimate = _estimate(fpr, low, high, tier, reason)
    return _Measured(estimate, fpr, se, spread.df, spread.influence)


def _ppv(group: Tally, known: LabelFrequency, level: float) -> _Measured:
    r"""PPV :math:`\pi T / Q`: the labeled share of the accepted rows, over c."""
    tier, reason = _condition(group, known)
    accepted = group.selection_rate * group.n
    if accepted == 0:
        return _Measured(Estimate.undefined(tier, "nobody is accepted"))
    if tier == "prior":
        return _Measured(_ppv_at_prior(group, known.estimate, level, reason))
    share = float(group.labeled @ group.acceptance) / accepted
    influence = np.array([0.0, 0.0, -share, 1.0]) / accepted
    size = accepted**2 / float(group.weight @ group.acceptance**2)
    size *= group.n_effective / group.n
    return _share(group, share, size, influence, level, known.estimate, tier, reason)


def _ppv_at_prior(group: Tally, c: float, level: float, reason: str) -> Estimate:
    r"""PPV at a given prior, by the delta method on its logarithm.

    The influence on log PPV is :math:`L(g - T)/(\rho T) - (g - Q)/Q`.
    """
    tpr, accepted = _tpr(group, level), group.selection_rate * group.n
    scale = group.labeled_share / c / group.selection_rate
    ppv = scale * group.tpr
    if ppv == 0:
        return _estimate(0.0, 0.0, scale * tpr.estimate.high, "prior", reason)
    influence = np.array([0.0, -group.tpr, 0.0, 1.0]) / (group.m * group.tpr)
    spread = group.spread(influence, group.m_effective)
    # A sample TPR of 1 shows no error; that of Agresti's share stands in.
    unseen = max(0.0, (tpr.se / group.tpr) ** 2 - spread.se**2)
    influence += np.array([0.0, 0.0, -1.0, 0.0]) / accepted
    influence += np.array([1.0, 0.0, 0.0, 0.0]) / group.n
    spread = group.spread(influence, group.n_effective)
    ratio = math.exp(
        critical_value(level, spread.df) * math.sqrt(spread.se**2 + unseen)
    )
    return _estimate(ppv, ppv / ratio, ppv * ratio, "prior", reason)


def _prevalence(group: Tally, known: LabelFrequency, level: float) -> _Measured:
    tier, reason = _condition(group, known)
    share = group.labeled_share
    if tier == "prior":
        low, high = share / known.high, share / known.low
        return _Measured(_estimate(share / known.estimate, low, high, tier, reason))
    influence = np.array([-share, 1.0, 0.0, 0.0]) / group.n
    return _share(
        group, share, group.n_effective, influence, level, known.estimate, tier, reason
    )


def _share(
    group: Tally,
    share: float,
    size: float,
    influence: NDArray[np.float64],
    level: float,
    divisor: float = 1.0,
    tier: str = "c-free",
    reason: str | None = None,
) -> _Measured:
    """Measure a share of rows, over a constant, by Wilson and Agresti."""
    spread = group.spread(influence, size)
    n = size / spread.effect
    low, high = wilson(share * n, n, level, spread.df)
    center, se = agresti(share * n, n, level, spread.df)
    estimate = _estimate(share / divisor, low / divisor, high / divisor, tier, reason)
    return _Measured(
        estimate, center / divisor, se / divisor, spread.df, spread.influence
    )


def _condition(group: Tally, known: LabelFrequency) -> tuple[str, str]:
    """Tier of what depends on the label frequency, and the condition it holds under."""
    if _is_prior(known):
        prior = group.labeled_share / known.estimate
        return "prior", f"conditional on a class prior of {prior:.3g}"
    return "label frequency", (
        f"conditional on a label frequency of {known.estimate:.3g} ({known.method})"
    )


def _estimate(
    value: float, low: float, high: float, tier: str, reason: str | None
) -> Estimate:
    """Estimate whose interval is cut to [0, 1] as far as the value allows."""
    return Estimate(
        value, min(value, max(0.0, low)), max(value, min(1.0, high)), tier, reason
    )


def _gap(
    column: Sequence[_Measured],
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
    missing = [
        f"{key!r}: {rate.reason}"
        for key, rate in zip(groups, rates, strict=True)
        if math.isnan(rate.estimate)
    ]
    if missing:
        return Estimate.undefined(tier, "undefined in group " + ", ".join(missing))
    low, high = gap_interval(
        [rate.center for rate in column],
        [rate.se for rate in column],
        tuned=tuned,
        level=level,
        df=min(rate.df for rate in column),
        correlation=_correlation(column, tallies),
        inflation=inflation,
    )
    reasons = [] if tier == "c-free" else [f"conditional on the {tier} of each group"]
    if tuned and min(group.m_effective for group in tallies) < _APPROXIMATE_LABELED:
        reasons.append(
            f"approximate: a group has fewer than {_APPROXIMATE_LABELED} labeled rows"
        )
    reason = "; ".join(reasons) or None
    return _estimate(max(values) - min(values), low, high, tier, reason)


def _correlation(
    column: Sequence[_Measured], tallies: Sequence[Tally]
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


def _difference(first: _Measured, second: _Measured, half: float) -> Estimate:
    """Rate of one group minus that of another, give or take a half-width."""
    one, other = first.estimate, second.estimate
    tier = max(one.tier, other.tier, key=TIERS.index)
    value = one.estimate - other.estimate
    if math.isnan(value):
        return Estimate.undefined(tier, one.reason or other.reason or "")
    center = first.center - second.center
    low, high = max(-1.0, center - half), min(1.0, center + half)
    return Estimate(value, min(value, low), max(value, high), tier)
