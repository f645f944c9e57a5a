"""Scores, labels and groups of rows: all that the method needs of the data."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpul._groups import encode_groups
from fairpul._validation import check_cluster, check_labels, check_score, check_weight
from fairpul.operating_points import OperatingPoints, sorted_points


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
            rows = self.rows(number)
            weight = None if self.sample_weight is None else self.sample_weight[rows]
            self._points[number] = sorted_points(
                self.score[rows], self.labeled[rows], weight
            )
        return self._points[number]

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of each group among all rows, by weight."""
        mass = self._by_group(self.sample_weight)
        return np.asarray(mass / mass.sum())

    def n_effective(self, number: int) -> float:
        """Return the effective number of rows of a group, (sum w)^2 / sum w^2."""
        return float(self._effective_rows[number])

    def m_effective(self, number: int) -> float:
        """Return the effective number of labeled rows of a group."""
        return float(self._effective_labeled[number])

    @cached_property
    def _effective_rows(self) -> NDArray[np.float64]:
        return self._kish(np.ones(len(self)))

    @cached_property
    def _effective_labeled(self) -> NDArray[np.float64]:
        return self._kish(self.labeled.astype(np.float64))

    def _kish(self, mask: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.sample_weight is None:
            return self._by_group(mask)
        weight = self.sample_weight * mask
        return np.asarray(self._by_group(weight) ** 2 / self._by_group(weight**2))

    def _by_group(self, value: NDArray[Any] | None) -> NDArray[np.float64]:
        sums = np.bincount(self.codes, weights=value, minlength=len(self.groups))
        return sums.astype(np.float64)

    def _check_every_group_has_a_labeled_row(self) -> None:
        weight = 1.0 if self.sample_weight is None else self.sample_weight
        mass = self._by_group(self.labeled * weight)
        empty = [key for key, m in zip(self.groups, mass, strict=True) if m == 0]
        if empty:
            raise ValueError(
                f"Groups {empty!r} have no labeled row, so their TPR is unknown. "
                "Merge them with another group or drop them."
            )
