"""Scores, labels and groups of rows: all that the method needs of the data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpul._groups import encode_groups
from fairpul._validation import check_cluster, check_labels, check_score, check_weight
from fairpul.binned_rows import BinnedRows
from fairpul.operating_points import OperatingPoints, sorted_points
from fairpul.ranked_rows import (
    RankedRows,
    joined_points,
    rank_rows,
    ranked_hulls,
    ranked_points,
    ranked_totals,
)

# From so many rows on, counting in bins costs less than sorting.
_MANY_ROWS = 300_000


class GroupScores:
    """Score, PU label and group of each row: a validated view of the caller's arrays.

    Parameters
    ----------
    score : array-like of shape (n_rows,)
        P(labeled) as any classifier estimates it, in [0, 1]. Must be out-of-fold or
        held out: rates read from scores of the classifier's own training rows are
        far too good.
    labeled : array-like of shape (n_rows,)
        1 or True for labeled positives; 0, -1 or False for unlabeled rows.
    group : array-like of shape (n_rows,) or (n_rows, n_columns), or None
        Any hashables; several columns form intersectional groups keyed by tuples.
        None puts every row into one group.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights: a row of weight 2 counts as two rows.
    cluster : array-like of shape (n_rows,), optional
        Rows that belong together (the patient of each row); widens the intervals.

    Attributes
    ----------
    groups : tuple
        Keys of the groups.
    codes : ndarray of shape (n_rows,)
        Position of each row's group in ``groups``.

    Examples
    --------
    >>> scores = GroupScores([0.9, 0.2, 0.8, 0.4], [1, 0, 1, 0], ["f", "f", "m", "m"])
    >>> scores
    GroupScores(4 rows, 2 labeled, groups 'f', 'm')
    >>> scores.points(0).tpr.tolist()
    [0.0, 1.0, 1.0]
    """

    def __init__(
        self,
        score: ArrayLike,
        labeled: ArrayLike,
        group: Any,
        *,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> None:
        self.score = check_score(score)
        self.labeled, _ = check_labels(labeled)
        if len(self.labeled) != len(self.score):
            raise ValueError(
                f"score has {len(self.score)} rows, labeled has {len(self.labeled)}."
            )
        self.codes, self.groups = encode_groups(group, len(self.score))
        self.sample_weight = check_weight(sample_weight, len(self.score))
        self.cluster = check_cluster(cluster, len(self.score))
        self._points: dict[int, OperatingPoints] = {}
        self._check_every_group_has_a_labeled_row()

    def __repr__(self) -> str:
        groups = ", ".join(map(repr, self.groups))
        n_labeled = np.count_nonzero(self.labeled)
        return f"GroupScores({len(self)} rows, {n_labeled} labeled, groups {groups})"

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.score)

    def rows(self, number: int) -> NDArray[np.intp]:
        """Return the positions of the rows of group ``groups[number]``."""
        return np.flatnonzero(self.codes == number)

    def points(self, number: int) -> OperatingPoints:
        """Return the operating points of group ``groups[number]``."""
        if number not in self._points:
            self._points[number] = self._all_points(number)
        return self._points[number]

    def hull(self, number: int) -> OperatingPoints:
        """Return the upper concave hull of a group's operating points.

        Of its flat top, where all labeled rows are accepted already, it has the two
        ends; :meth:`between` gives the cuts in the middle.
        """
        return self._hulls[number]

    def between(
        self, hulls: Sequence[OperatingPoints], ends: Sequence[tuple[int, int]]
    ) -> list[OperatingPoints]:
        """Return all cuts of each group between two positions on its hull.

        The last point of each group accepts everybody, wherever the second end is.
        """
        if isinstance(self._order, BinnedRows):
            return self._order.between(hulls, ends)
        pairs = list(enumerate(zip(hulls, ends, strict=True)))
        if isinstance(self._order, RankedRows):
            starts, rows = self._order.bounds, self._order
            return [
                joined_points(
                    hull,
                    first,
                    rows,
                    starts[number] + hull.accepted[first],
                    starts[number] + hull.accepted[last],
                )
                for number, (hull, (first, last)) in pairs
            ]
        found = []
        for number, (hull, (first, last)) in pairs:
            points = self.points(number)
            start, stop = np.searchsorted(-points.cut, -hull.cut[[first, last]])
            chosen = points[start : stop + 1]
            if stop < len(points) - 1:
                chosen = chosen.joined(points[-1:])
            found.append(chosen)
        return found

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of each group among all rows, by weight."""
        mass = self._masses[0]
        return np.asarray(mass / mass.sum())

    def n_effective(self, number: int) -> float:
        """Return the effective number of rows of a group, (sum w)^2 / sum w^2."""
        return float(self._effective[0][number])

    def m_effective(self, number: int) -> float:
        """Return the effective number of labeled rows of a group."""
        return float(self._effective[1][number])

    @cached_property
    def _order(self) -> RankedRows | BinnedRows | None:
        """Rows in order, or counted in bins; None for weighted rows."""
        if self.sample_weight is not None:
            return None
        rows = self.score, self.labeled, self.codes, len(self.groups)
        return rank_rows(*rows) if len(self) < _MANY_ROWS else BinnedRows(*rows)

    @cached_property
    def _hulls(self) -> list[OperatingPoints]:
        if isinstance(self._order, BinnedRows):
            return self._order.hulls
        if isinstance(self._order, RankedRows):
            return ranked_hulls(self._order)
        return [self.points(number).hull() for number in range(len(self.groups))]

    def _all_points(self, number: int) -> OperatingPoints:
        if isinstance(self._order, RankedRows):
            return ranked_points(self._order, *self._order.bounds[number : number + 2])
        rows = self.rows(number)
        score, labeled = self.score[rows], self.labeled[rows]
        if self.sample_weight is None:
            alone = np.zeros(len(rows), dtype=np.intp)
            return ranked_points(rank_rows(score, labeled, alone, 1), 0, len(rows))
        return sorted_points(score, labeled, self.sample_weight[rows])

    @cached_property
    def _masses(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weight of all rows and of the labeled rows of each group."""
        if isinstance(self._order, BinnedRows):
            return self._order.totals
        if isinstance(self._order, RankedRows):
            return ranked_totals(self._order)
        return self._by_group(self.sample_weight)

    @cached_property
    def _effective(self) -> tuple[NDArray[Any], NDArray[Any]]:
        if self.sample_weight is None:
            return self._masses
        squares = self._by_group(self.sample_weight**2)
        n, m = (a**2 / b for a, b in zip(self._masses, squares, strict=True))
        return n, m

    def _by_group(self, weight: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        n = np.bincount(self.codes, weight, len(self.groups))
        m = np.bincount(self.codes, weight * self.labeled, len(self.groups))
        return n, m

    def _check_every_group_has_a_labeled_row(self) -> None:
        empty = [
            key for key, m in zip(self.groups, self._masses[1], strict=True) if m == 0
        ]
        if empty:
            raise ValueError(
                f"Groups {empty!r} have no labeled row, so their TPR is unknown. "
                "Merge them with another group or drop them."
            )
