"""Estimators of the label frequency that need the rows, not only their counts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from fairpul.label_frequency._base import LabelFrequencyEstimator
from fairpul.label_frequency._joint import joint_label_frequency
from fairpul.label_frequency._numeric import NotNumericError, numeric_table
from fairpul.label_frequency._readings import Reading, conclude
from fairpul.label_frequency._result import LabelFrequency
from fairpul.label_frequency._sharpening import standardized
from fairpul.label_frequency._top_sets import all_top_sets, group_top_sets


@dataclass(frozen=True, kw_only=True)
class Joint(LabelFrequencyEstimator):
    r"""Maximum likelihood of :math:`c_s \cdot \mathrm{sigmoid}(b^T x)`.

    The one estimator that needs no anchor; it leans on the logistic form instead, and
    is wrong where that form is. Slopes are shared by the groups, intercepts are not.
    Needs numeric features.

    Parameters
    ----------
    pooled : bool, default=False
        One label frequency for all groups: only if they are known to be equal.
    """

    pooled: bool = False

    def from_scores(
        self, scores: Any, *, X: Any = None, folds: ArrayLike | None = None
    ) -> dict[Hashable, LabelFrequency]:
        """Label frequency of each group of a ``GroupScores``."""
        _require_rows(scores, "joint")
        features = _joint_features(scores, X)
        own = joint_label_frequency(
            features, scores.labeled, scores.codes, scores.sample_weight
        )

        def together() -> float:
            one = np.zeros_like(scores.codes)
            return float(
                joint_label_frequency(
                    features, scores.labeled, one, scores.sample_weight
                )[0]
            )

        readings = [
            Reading.of(group_top_sets(scores, number), float(c))
            for number, c in enumerate(own)
        ]
        return conclude(
            scores,
            readings,
            lambda: Reading.of(all_top_sets(scores), together()),
            "joint",
            self.pooled,
        )


@dataclass(frozen=True, kw_only=True)
class ElkanNoto(LabelFrequencyEstimator):
    r"""Mean score of the labeled rows (e1 of Elkan and Noto 2008), to reproduce.

    It tends to :math:`c \, E[\eta^2] / E[\eta] < c`, :math:`\eta` = P(positive | x),
    unless every positive is positive beyond doubt. Not raised to the lower bound that
    the data set; the warning says where the data contradict it.

    Parameters
    ----------
    pooled : bool, default=False
        One label frequency for all groups, as in the paper.
    """

    pooled: bool = False

    def from_scores(
        self, scores: Any, *, X: Any = None, folds: ArrayLike | None = None
    ) -> dict[Hashable, LabelFrequency]:
        """Label frequency of each group of a ``GroupScores``."""
        _require_rows(scores, "elkan_noto")

        def mean_score(codes: Any) -> Any:
            weight = scores.labeled * (
                1.0 if scores.sample_weight is None else scores.sample_weight
            )
            return np.bincount(codes, weight * scores.score) / np.bincount(
                codes, weight
            )

        readings = [
            Reading.of(group_top_sets(scores, number), float(c))
            for number, c in enumerate(mean_score(scores.codes))
        ]
        return conclude(
            scores,
            readings,
            lambda: Reading.of(
                all_top_sets(scores), float(mean_score(np.zeros_like(scores.codes))[0])
            ),
            "elkan_noto",
            self.pooled,
            raised=False,
        )


def _joint_features(scores: Any, X: Any) -> NDArray[np.float64]:
    """Standardized features with an indicator of every group but the first."""
    if X is None:
        raise ValueError(
            'label_frequency="joint" fits the features, but X was not given. '
            "Pass X or choose another estimator."
        )
    check_consistent_length(X, scores.score)
    try:
        table = numeric_table(X)
    except NotNumericError as error:
        raise ValueError(
            f'label_frequency="joint" needs numeric features, but {error}. '
            "Encode X or choose another estimator."
        ) from None
    others = np.arange(1, len(scores.groups))
    return np.column_stack([standardized(table), scores.codes[:, None] == others])


def _require_rows(scores: Any, method: str) -> None:
    if not hasattr(scores, "score"):
        raise ValueError(
            f'label_frequency="{method}" needs the rows, got a {type(scores).__name__} '
            "that holds counts only. Use peak_rate, top_rate or bbe, or give the label "
            "frequency or class prior by group."
        )
