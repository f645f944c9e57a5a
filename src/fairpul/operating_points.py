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
    cut = ranked[ends[kept]].astype(np.float64)
    cut[-1] = 0.0
    return OperatingPoints(
        np.concatenate([[np.inf], cut]),
        np.concatenate([accepted[:1] * 0, accepted[kept]]),
        np.concatenate([hits[:1] * 0, hits[kept]]),
    )


def concave_hull(accepted: NDArray[Any], labeled: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the points on the upper concave hull of a group's points.

    Notes
    -----
    Pooling adjacent violators of the labeled share is the hull of the operating
    points: both join neighboring cuts until the share falls from left to right.
    Points on a hull edge are kept, for each is a cut that needs no lottery.
    """
    mass = np.diff(accepted).astype(np.float64)
    pooled = isotonic_regression(
        np.diff(labeled) / mass, weights=mass, increasing=False
    )
    vertices = pooled.blocks
    if accepted.dtype.kind == "f" or accepted[-1] > _EXACT_COUNT:
        x, y = accepted.astype(np.float64), labeled.astype(np.float64)
    else:
        x, y = accepted, labeled
    edge = np.repeat(np.arange(len(vertices) - 1), np.diff(vertices))
    left, right = vertices[edge], vertices[edge + 1]
    below = (x[right] - x[left]) * (y[:-1] - y[left]) - (x[:-1] - x[left]) * (
        y[right] - y[left]
    )
    on_edge = np.append(below == 0, True)
    return np.flatnonzero(on_edge)


def segment_posterior(
    hull: OperatingPoints, label_frequency: float
) -> NDArray[np.float64]:
    """P(positive) of the rows between neighboring hull cuts, not clipped.

    Element ``j`` belongs to scores from ``hull.cut[j + 1]`` up to, and without,
    ``hull.cut[j]``. It is the isotonic regression of the label on the score within
    the group, divided by the label frequency.
    """
    return np.asarray(np.diff(hull.labeled) / np.diff(hull.accepted) / label_frequency)
