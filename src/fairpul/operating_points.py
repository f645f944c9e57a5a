"""Operating points of one group: every cut with the rates it gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

# Products of two counts below this fit into int64, so collinearity is exact.
_EXACT_COUNT = 3_000_000_000


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    r"""Cuts of one group's score from strict to lenient, and the masses they accept.

    Parameters
    ----------
    cut : ndarray of shape (n_points,)
        Descending; rows with ``score >= cut`` are accepted, ties together. The first
        is infinite and accepts nobody; the last is 0 and accepts everybody.
    accepted : ndarray of shape (n_points,)
        Weight of the accepted rows; counts stay integer.
    labeled : ndarray of shape (n_points,)
        Weight of the accepted rows that are labeled.

    Notes
    -----
    With only labeled and unlabeled rows, under labeling completely at random within
    the group, :math:`T = \sum_{accepted} L / \sum L` and :math:`Q = n_{accepted}/n`
    are the true positive rate and the selection rate.
    """

    cut: NDArray[np.float64]
    accepted: NDArray[Any]
    labeled: NDArray[Any]

    @cached_property
    def tpr(self) -> NDArray[np.float64]:
        """Share of the labeled rows accepted at each cut."""
        return np.asarray(self.labeled / self.labeled[-1])

    @cached_property
    def selection_rate(self) -> NDArray[np.float64]:
        """Share of all rows accepted at each cut."""
        return np.asarray(self.accepted / self.accepted[-1])

    @property
    def labeled_share(self) -> float:
        """Share of the group's rows that are labeled."""
        return float(self.labeled[-1] / self.accepted[-1])

    def __len__(self) -> int:
        """Count the cuts."""
        return len(self.cut)

    def __getitem__(self, which: Any) -> OperatingPoints:
        """Select some of the points."""
        return OperatingPoints(
            self.cut[which], self.accepted[which], self.labeled[which]
        )

    def joined(self, other: OperatingPoints) -> OperatingPoints:
        """Return the points and, after them, those of another."""
        return OperatingPoints(
            np.append(self.cut, other.cut),
            np.append(self.accepted, other.accepted),
            np.append(self.labeled, other.labeled),
        )

    @cached_property
    def hull_positions(self) -> NDArray[np.intp]:
        """Positions of the points on the upper concave hull, collinear ones kept."""
        return concave_hull(self.accepted, self.labeled)

    def hull(self) -> OperatingPoints:
        """Return the points on the upper concave hull of (selection rate, TPR)."""
        return self[self.hull_positions]


def sorted_points(
    score: NDArray[Any],
    labeled: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
) -> OperatingPoints:
    """Operating points of one group's rows.

    Examples
    --------
    >>> import numpy as np
    >>> points = sorted_points(
    ...     np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False])
    ... )
    >>> points.cut.tolist(), points.tpr.tolist()
    ([inf, 0.9, 0.5, 0.0], [0.0, 0.5, 1.0, 1.0])
    >>> points.selection_rate.tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    order = np.argsort(score)[::-1]
    ranked = score[order]
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    accepted: NDArray[Any]
    if weight is None:
        accepted = ends + 1
        hits = np.cumsum(labeled[order], dtype=np.int64)[ends]
    else:
        accepted = np.cumsum(weight[order])[ends]
        hits = np.cumsum(np.where(labeled[order], weight[order], 0.0))[ends]
    kept = np.flatnonzero(np.diff(accepted, prepend=0) > 0)
    return with_nobody(ranked[ends[kept]], accepted[kept], hits[kept])


def with_nobody(
    score: NDArray[Any], accepted: NDArray[Any], labeled: NDArray[Any]
) -> OperatingPoints:
    """Operating points at falling scores, after one that accepts nobody."""
    cut = np.empty(len(score) + 1)
    cut[0], cut[1:], cut[-1] = np.inf, score, 0.0
    masses = np.zeros((2, len(score) + 1), dtype=accepted.dtype)
    masses[0, 1:], masses[1, 1:] = accepted, labeled
    return OperatingPoints(cut, masses[0], masses[1])


def concave_hull(accepted: NDArray[Any], labeled: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the points on the upper concave hull of a group's points.

    Notes
    -----
    Pooling adjacent violators of the labeled share is the hull of the operating
    points: both join neighboring cuts until the share falls from left to right.
    Points on a hull edge are kept, for each is a cut that needs no lottery.
    """
    starts = np.zeros(1, dtype=np.intp)
    on_hull = on_concave_hulls(accepted[1:], labeled[1:], starts)
    return np.append(0, np.flatnonzero(on_hull) + 1)


def on_concave_hulls(
    accepted: NDArray[Any], labeled: NDArray[Any], starts: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Which points of several groups, side by side, are on their group's hull.

    Parameters
    ----------
    accepted, labeled : ndarray of shape (n_points,)
        Masses accepted at each point, rising within a group; (0, 0) is left out.
    starts : ndarray of shape (n_groups,)
        Position of each group's first point.

    Notes
    -----
    One pass pools all groups: shares lie in [0, 1], so an offset of 2 between groups
    keeps them apart. Pooling works with rounded shares; products of counts then tell
    exactly which points are on an edge, and whether rounding has missed a vertex.
    """
    x, y = accepted, labeled
    if x.dtype.kind == "i" and int(x.max()) > _EXACT_COUNT:
        x, y = x.astype(np.float64), y.astype(np.float64)
    before = np.zeros((2, len(x)), dtype=x.dtype)
    before[0, 1:], before[1, 1:] = x[:-1], y[:-1]
    before[:, starts] = 0
    mass = (x - before[0]).astype(np.float64)
    share = (y - before[1]) / mass
    if len(starts) > 1:
        bounds = np.append(starts, len(x))
        share += np.repeat(2.0 * np.arange(len(starts))[::-1], bounds[1:] - bounds[:-1])
    edges = isotonic_regression(share, weights=mass, increasing=False).blocks
    first, last = edges[:-1], edges[1:] - 1
    left = before[:, first]
    run, rise = x[last] - left[0], y[last] - left[1]
    edge = np.repeat(np.arange(len(run)), edges[1:] - first)
    height = run[edge] * (y - left[1][edge]) - rise[edge] * (x - left[0][edge])
    if x.dtype.kind == "i":
        reflex = run[:-1] * rise[1:] > run[1:] * rise[:-1]
        reflex &= left[0, 1:] > 0
        if reflex.any() or height.max() > 0:
            return _on_hulls_one_by_one(x, y, starts)
    return np.asarray(height == 0)


def _on_hulls_one_by_one(
    x: NDArray[Any], y: NDArray[Any], starts: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Walk along the points in exact integers."""
    on_hull = np.zeros(len(x), dtype=bool)
    for start, stop in zip(starts, [*starts[1:], len(x)], strict=True):
        chain = [(0, 0, -1)]
        for j, (a, b) in enumerate(
            zip(x[start:stop].tolist(), y[start:stop].tolist(), strict=True)
        ):
            while len(chain) > 1 and _below(chain[-2], chain[-1], (a, b)):
                chain.pop()
            chain.append((a, b, j))
        on_hull[start + np.array([j for _, _, j in chain[1:]])] = True
    return on_hull


def _below(left: Any, middle: Any, right: Any) -> bool:
    """Whether the middle point lies below the chord from left to right."""
    return bool(
        (middle[1] - left[1]) * (right[0] - left[0])
        < (right[1] - left[1]) * (middle[0] - left[0])
    )


def segment_posterior(
    hull: OperatingPoints, label_frequency: float
) -> NDArray[np.float64]:
    """P(positive) of the rows between neighboring hull cuts, not clipped.

    Element ``j`` belongs to scores from ``hull.cut[j + 1]`` up to, and without,
    ``hull.cut[j]``. It is the isotonic regression of the label on the score within
    the group, divided by the label frequency.
    """
    return np.asarray(np.diff(hull.labeled) / np.diff(hull.accepted) / label_frequency)
