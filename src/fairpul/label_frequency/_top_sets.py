"""Counts of the top sets of one group, or of all groups together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.fixed_point import WEIGHT_UNIT
from fairpul.operating_points import OperatingPoints

_DESIGN_TOP = 0.1


@dataclass(frozen=True, eq=False)
class TopSets:
    """Rows and labeled rows at or above each distinct score, and how much they tell.

    ``n_effective`` is the number of independent rows of equal weight that the counts
    are worth: Kish's number for sampling weights, of all rows or, where those of the
    top tenth weigh more unevenly or more, at the rate of these; divided by the design
    effect where rows belong together.
    """

    accepted: NDArray[Any]
    labeled: NDArray[Any]
    n_effective: float


def group_top_sets(scores: Any, number: int) -> TopSets:
    """Top sets of group ``scores.groups[number]``, from rows or from counts."""
    points = scores.points(number)
    n_effective = scores.n_effective(number)
    weight, squares = _weights_of_top(scores, number)
    if squares > 0:  # as if all rows weighed as the top tenth does
        n_effective = min(n_effective, weight * points.accepted[-1] / squares)
    if getattr(scores, "cluster", None) is not None:
        n_effective /= _design_effect(scores, scores.rows(number))
    return TopSets(points.accepted, points.labeled, n_effective)


def all_top_sets(scores: Any) -> TopSets:
    """Top sets of all groups together, ordered by the score whatever the group."""
    numbers = range(len(scores.groups))
    points = merge_points([scores.points(number) for number in numbers])
    mass = np.array([scores.points(number).accepted[-1] for number in numbers])
    n = np.array([scores.n_effective(number) for number in numbers])
    n_effective = float(mass.sum() ** 2 / (mass**2 / n).sum())
    if getattr(scores, "cluster", None) is not None:
        n_effective /= _design_effect(scores, np.arange(len(scores)))
    return TopSets(points.accepted, points.labeled, n_effective)


def merge_points(groups: Sequence[OperatingPoints]) -> OperatingPoints:
    """Operating points of several groups as if they were one.

    Examples
    --------
    >>> import numpy as np
    >>> f = OperatingPoints(
    ...     np.array([np.inf, 0.8, 0.0]), np.array([0, 1, 3]), np.array([0, 1, 1])
    ... )
    >>> m = OperatingPoints(
    ...     np.array([np.inf, 0.6, 0.0]), np.array([0, 2, 4]), np.array([0, 2, 3])
    ... )
    >>> merge_points([f, m]).accepted.tolist()
    [0, 1, 3, 7]
    """
    cut = np.unique(np.concatenate([points.cut for points in groups]))[::-1]
    accepted: Any = 0
    labeled: Any = 0
    for points in groups:
        last = np.searchsorted(-points.cut, -cut, side="right") - 1
        accepted = accepted + points.accepted[last]
        labeled = labeled + points.labeled[last]
    return OperatingPoints(cut, accepted, labeled)


def _top_rows(scores: Any, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    floor = np.quantile(scores.score[rows], 1 - _DESIGN_TOP)
    return np.asarray(rows[scores.score[rows] >= floor])


def _weights_of_top(scores: Any, number: int) -> tuple[float, float]:
    """Add up the weights and their squares in the top tenth; 0 without weights."""
    if getattr(scores, "weighted", False):  # counts
        sums = scores.sums[scores.cells_of(number)] / WEIGHT_UNIT
        last = int(np.searchsorted(sums[:, 0].cumsum(), _DESIGN_TOP * sums[:, 0].sum()))
        return float(sums[: last + 1, 2].sum()), float(sums[: last + 1, 4].sum())
    if getattr(scores, "sample_weight", None) is None:
        return 0.0, 0.0
    weight = scores.sample_weight[_top_rows(scores, scores.rows(number))]
    return float(weight.sum()), float(weight @ weight)


def _design_effect(scores: Any, rows: NDArray[np.intp]) -> float:
    """Variance of the labeled share of the top tenth, clustered over independent."""
    top = _top_rows(scores, rows)
    _, cluster = np.unique(scores.cluster[top], return_inverse=True)
    n_clusters = int(cluster.max()) + 1
    weight = np.ones(len(top)) if scores.sample_weight is None else None
    weight = scores.sample_weight[top] if weight is None else weight
    share = np.average(scores.labeled[top], weights=weight)
    error = weight * (scores.labeled[top] - share)
    independent = float(error @ error)
    if n_clusters == 1 or independent == 0:
        # Nothing shows how alike the rows are: count clusters instead of rows.
        return float(len(top) / n_clusters)
    summed = np.bincount(cluster, weights=error)
    clustered = n_clusters / (n_clusters - 1) * float(summed @ summed)
    return max(1.0, clustered / independent)
