"""The one method that all estimators of the label frequency share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

from numpy.typing import ArrayLike

from fairpul.group_scores import GroupScores
from fairpul.label_frequency._result import LabelFrequency


class LabelFrequencyEstimator(ABC):
    """What the estimators of the label frequency have in common: ``estimate``.

    They keep no state. Each group gets its own label frequency, except that a group
    with fewer than 60 labeled rows takes the one of all groups together (its warning
    says so), and that ``pooled=True`` gives all groups the same.
    """

    def estimate(
        self,
        score: ArrayLike,
        labeled: ArrayLike,
        *,
        X: Any = None,
        group: Any = None,
        folds: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> dict[Hashable, LabelFrequency]:
        """Label frequency of each group.

        Parameters
        ----------
        score : array-like of shape (n_rows,)
            Out-of-fold or held-out estimate of P(labeled), in [0, 1].
        labeled : array-like of shape (n_rows,)
            1 or True for labeled positives; 0, -1 or False for unlabeled rows.
        X : array-like or data frame of shape (n_rows, n_columns), optional
            Features of the rows, where the estimator uses them.
        group : array-like, optional
            Group of each row; None makes one group.
        folds : array-like of shape (n_rows,), optional
            Number of the fold in which the row was held out when the score was made.
        sample_weight : array-like of shape (n_rows,), optional
            Sampling weights.
        cluster : array-like of shape (n_rows,), optional
            Rows that belong together, such as the patient of each visit.

        Returns
        -------
        dict
            :class:`LabelFrequency` by group.
        """
        scores = GroupScores(
            score, labeled, group, sample_weight=sample_weight, cluster=cluster
        )
        return self.from_scores(scores, X=X, folds=folds)

    @abstractmethod
    def from_scores(
        self, scores: Any, *, X: Any = None, folds: ArrayLike | None = None
    ) -> dict[Hashable, LabelFrequency]:
        """Label frequency of each group of a ``GroupScores`` or a table of counts."""
