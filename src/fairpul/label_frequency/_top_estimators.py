"""Estimators that read the label frequency from the top sets of the scores."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length, check_random_state

from fairpul.group_scores import GroupScores
from fairpul.label_frequency import _counts
from fairpul.label_frequency._base import LabelFrequencyEstimator
from fairpul.label_frequency._numeric import NotNumericError
from fairpul.label_frequency._readings import Reading, conclude
from fairpul.label_frequency._result import LabelFrequency
from fairpul.label_frequency._sharpening import TooFewLabelsError, sharpen
from fairpul.label_frequency._top_sets import TopSets, all_top_sets, group_top_sets


@dataclass(frozen=True, kw_only=True)
class PeakRate(LabelFrequencyEstimator):
    """Largest labeled share of any top set of the scores; the default.

    Needs an anchor: some rows that are positive beyond doubt. Without one it
    estimates the largest P(labeled | x), a lower bound of the label frequency.

    Parameters
    ----------
    sharpen : bool, default=True
        Where features are given, read the top sets from a blend of the score with a
        random forest and a logistic regression of the label. Costs about a second and
        lowers the error where the score orders the rows badly. Switch it off to read
        exactly the score's own top sets.
    pooled : bool, default=False
        One label frequency for all groups: only if they are known to be equal.
    random_state : int, RandomState or None, default=None
        Fixes the blend.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> posterior = np.repeat([1.0, 0.5, 0.0], 2000)
    >>> labeled = rng.random(6000) < 0.4 * posterior
    >>> found = PeakRate().estimate(0.4 * posterior, labeled)["all"]
    >>> bool(abs(found.estimate - 0.4) < 0.03), found.method
    (True, 'peak_rate, bare')
    """

    sharpen: bool = True
    pooled: bool = False
    random_state: Any = None

    def from_scores(
        self, scores: Any, *, X: Any = None, folds: ArrayLike | None = None
    ) -> dict[Hashable, LabelFrequency]:
        """Label frequency of each group of a ``GroupScores`` or a table of counts."""
        read, whole, note = scores, scores, None
        sharpened = False
        if self.sharpen and X is not None and hasattr(scores, "score"):
            check_consistent_length(X, scores.score)
            rng = check_random_state(self.random_state)
            try:
                read, whole = sharpen(scores, X, _checked_folds(folds, scores), rng)
                sharpened = True
            except (NotNumericError, TooFewLabelsError) as error:
                note = (
                    f"The features could not be used to sharpen the score ({error}), "
                    "so the label frequencies were read from the score alone and may "
                    "come out too low. Pass numeric features, or a class_prior or "
                    "label_frequency that you know."
                )
        fraction = (
            _counts.SHARPENED_PEAK_FRACTION if sharpened else _counts.PEAK_FRACTION
        )

        def peak(top: TopSets) -> float:
            return _counts.peak_rate(
                top.accepted,
                top.labeled,
                fraction=fraction,
                n_effective=top.n_effective,
            )

        method = "peak_rate" if sharpened else "peak_rate, bare"
        return _read_top_sets(scores, read, whole, peak, method, self.pooled, note)


@dataclass(frozen=True, kw_only=True)
class TopRate(LabelFrequencyEstimator):
    """Labeled share of the highest scores, as many as a quarter of the labeled rows.

    Too low where the score orders the rows badly (gradient boosting: by .03 to .10).

    Parameters
    ----------
    pooled : bool, default=False
        One label frequency for all groups: only if they are known to be equal.
    """

    pooled: bool = False

    def from_scores(
        self, scores: Any, *, X: Any = None, folds: ArrayLike | None = None
    ) -> dict[Hashable, LabelFrequency]:
        """Label frequency of each group of a ``GroupScores`` or a table of counts."""

        def rate(top: TopSets) -> float:
            return _counts.top_rate(
                top.accepted, top.labeled, n_effective=top.n_effective
            )

        return _read_top_sets(scores, scores, scores, rate, "top_rate", self.pooled)


@dataclass(frozen=True, kw_only=True)
class BestBin(LabelFrequencyEstimator):
    """Best-bin estimation (Garg et al. 2021), per group.

    Needs an anchor and is too low where positives and negatives overlap.

    Parameters
    ----------
    pooled : bool, default=False
        One label frequency for all groups: only if they are known to be equal.
    """

    pooled: bool = False

    def from_scores(
        self, scores: Any, *, X: Any = None, folds: ArrayLike | None = None
    ) -> dict[Hashable, LabelFrequency]:
        """Label frequency of each group of a ``GroupScores`` or a table of counts."""

        def share(top: TopSets) -> float:
            return _counts.best_bin(
                top.accepted, top.labeled, n_effective=top.n_effective
            )

        return _read_top_sets(scores, scores, scores, share, "bbe", self.pooled)


def _read_top_sets(
    scores: Any,
    read: Any,
    whole: Any,
    estimate: Callable[[TopSets], float],
    method: str,
    pooled: bool,
    note: str | None = None,
) -> dict[Hashable, LabelFrequency]:
    """Read each group's top sets in ``read``, those of all groups in ``whole``."""
    tops = [group_top_sets(read, number) for number in range(len(scores.groups))]
    readings = [Reading.of(top, estimate(top), trend=True) for top in tops]

    def together() -> Reading:
        top = all_top_sets(whole)
        return Reading.of(top, estimate(top))

    return conclude(scores, readings, together, method, pooled, note=note)


def _checked_folds(folds: ArrayLike | None, scores: GroupScores) -> Any:
    if folds is None:
        return None
    array = np.asarray(folds)
    if array.shape != (len(scores),) or len(np.unique(array)) < 2:
        raise ValueError(
            f"folds must hold the fold number of each of the {len(scores)} rows, at "
            f"least two different ones; got shape {array.shape}."
        )
    return array
