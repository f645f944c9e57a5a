"""Sufficient statistics of a group under one decision rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
class Spread:
    """Standard error of a rate, its design effect, and what clusters add to it."""

    se: float
    effect: float = 1.0
    df: float = math.inf
    influence: NDArray[np.float64] | None = None


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
    squares : ndarray of shape (n_levels, 2) or None
        Sums of w^2 over the unlabeled and over the labeled rows accepted with each of
        the probabilities; None where all rows weigh the same.
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
    squares: NDArray[Any] | None = None
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
        squares = float(self._squares[:, 0].sum())
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
        at_unlabeled = rows + accepted * self.acceptance
        at_labeled = rows + labeled + (accepted + both) * self.acceptance
        influence = np.column_stack([at_unlabeled, at_labeled])
        return float((self._squares * influence**2).sum())

    @property
    def _squares(self) -> NDArray[Any]:
        """Sums of squared weights by level, of the unlabeled and the labeled rows."""
        if self.squares is not None:
            return self.squares
        # Rows of one weight, which is 1 unless all have another.
        mass = np.column_stack([self.weight - self.labeled, self.labeled])
        return mass * (self.n / self.n_effective) if self.n_effective else mass


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
    squares = None if sample_weight is None else sums(sample_weight**2)
    tallies = []
    for number in range(n_groups):
        unlabeled, positive = mass[number, :, 0], mass[number, :, 1]
        own = None if squares is None else squares[number]
        sizes = mass[number] if own is None else own
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
                _effective(mass[number], sizes),
                _effective(positive, sizes[:, 1]),
                own,
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
    drawn = np.flatnonzero((acceptance != 0) & (acceptance != 1))
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


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.nan
