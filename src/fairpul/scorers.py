"""Scorers for model selection that know the group, and a choice among candidates.

scikit-learn's own scorers never pass metadata to ``predict`` (issue 27977); these do.
They serve ``cross_validate`` and ``GridSearchCV``, alone or in a ``scoring`` dict.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from fairpul._columns import group_columns
from fairpul._groups import EVERYBODY, encode_groups
from fairpul._validation import check_labels, check_weight
from fairpul.diagnostics import recognizes_positives
from fairpul.tally import Tally, tally


class _PUScorer(BaseEstimator):  # type: ignore[misc]
    """Scorer that takes the group by metadata routing or from columns of X.

    With metadata routing enabled, pass ``params={"sensitive_features": ...}`` to
    ``cross_validate`` or ``sensitive_features=`` to the search's ``fit``. Without it,
    an estimator with ``sensitive_columns`` tells the group itself.
    """

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask for the group and for sampling weights, where they are passed."""
        request = MetadataRequest(owner=type(self).__name__)
        for name in ("sensitive_features", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score an estimator on held-out rows; greater is better."""
        labeled, _ = check_labels(y)
        inner, data = _unwrapped(estimator, X)
        group = _group(inner, data, sensitive_features)
        codes, keys = encode_groups(group, len(labeled))
        weight = check_weight(sample_weight, len(labeled))
        accepted = self._accepted(inner, data, group, weight)
        tallies = tally(accepted, labeled, codes, len(keys), weight)
        return self._score(dict(zip(keys, tallies, strict=True)))

    def _accepted(
        self,
        estimator: Any,
        X: Any,
        group: Any,
        weight: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        return decisions(estimator, X, group)

    def _score(self, of: Mapping[Hashable, Tally]) -> float:
        raise NotImplementedError


class PUTPRGapScorer(_PUScorer):
    """Negative TPR gap; -1 for a decision that does not recognize positives.

    Accepting everybody, nobody, or rows by chance leaves no gap; such a decision gets
    the worst score instead of the best. nan where a group has no labeled row.
    """

    def _score(self, of: Mapping[Hashable, Tally]) -> float:
        tpr = np.array([group.tpr for group in of.values()])
        if np.isnan(tpr).any():
            return math.nan
        if not recognizes_positives(tuple(of.values())):
            return -1.0
        return -float(tpr.max() - tpr.min())


#: Negative TPR gap from PU labels, for ``scoring=``.
pu_tpr_gap_scorer = PUTPRGapScorer()


class WorstGroupRecallScorer(_PUScorer):
    r"""Smallest TPR of a group when at most a share of all rows can be accepted.

    Parameters
    ----------
    capacity : float
        Largest share of rows to accept, in (0, 1].

    Notes
    -----
    A decision that accepts more than the capacity is thinned by chance:
    :math:`\min_s T_s \cdot \min(1, capacity / Q)`. One that does not recognize
    positives, such as accepting everybody, nobody, or rows by chance, scores 0. An
    estimator without a rule is cut at the capacity, the highest scores first. nan where
    a group has no labeled row.
    """

    def __init__(self, capacity: float) -> None:
        self.capacity = capacity

    def _accepted(
        self,
        estimator: Any,
        X: Any,
        group: Any,
        weight: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        if not 0 < self.capacity <= 1:
            raise ValueError(f"capacity must lie in (0, 1], got {self.capacity!r}.")
        if hasattr(estimator, "acceptance_probability"):
            return decisions(estimator, X, group)
        if hasattr(estimator, "predict_proba"):
            score = np.asarray(estimator.predict_proba(X))[:, 1]
        else:
            score = np.asarray(estimator.decision_function(X))
        return top_share(score, self.capacity, weight)

    def _score(self, of: Mapping[Hashable, Tally]) -> float:
        mass = sum(group.n for group in of.values())
        accepted = sum(float(group.weight @ group.acceptance) for group in of.values())
        # Unlike the built-in, this minimum is nan where some group has no labels.
        tpr = float(np.min([group.tpr for group in of.values()]))
        if not (math.isnan(tpr) or recognizes_positives(tuple(of.values()))):
            return 0.0
        return tpr * min(1.0, self.capacity * mass / accepted)


def worst_group_recall_scorer(capacity: float) -> WorstGroupRecallScorer:
    """Scorer of the smallest TPR of a group within a capacity.

    Parameters
    ----------
    capacity : float
        Largest share of all rows to accept, in (0, 1].

    Examples
    --------
    >>> worst_group_recall_scorer(0.1)
    WorstGroupRecallScorer(capacity=0.1)
    """
    return WorstGroupRecallScorer(capacity)


class PUCostScorer(_PUScorer):
    r"""Share of the cost of the best trivial decision that is saved.

    Parameters
    ----------
    false_negative, false_positive : float, default=1
        Costs.
    class_prior, label_frequency : float or dict by group
        P(positive), or P(labeled given positive): one of them is required.

    Notes
    -----
    :math:`1 - R / \min(R_{all}, R_{nobody})` with
    :math:`R = \sum_s p_s [\pi_s c_{FN} (1 - T_s) + c_{FP} (Q_s - \pi_s T_s)]`. 0 for
    the better of accepting everybody and nobody, negative for the other, 1 at best
    (in expectation: an estimate may lie above).
    """

    def __init__(
        self,
        *,
        false_negative: float = 1.0,
        false_positive: float = 1.0,
        class_prior: Any = None,
        label_frequency: Any = None,
    ) -> None:
        self.false_negative = false_negative
        self.false_positive = false_positive
        self.class_prior = class_prior
        self.label_frequency = label_frequency

    def _score(self, of: Mapping[Hashable, Tally]) -> float:
        cost, nobody, everybody = 0.0, 0.0, 0.0
        for key, group in of.items():
            if group.m == 0:
                return math.nan
            prior = self._prior(key, group)
            positive, selected = prior * group.n, group.selection_rate * group.n
            hit = positive * group.tpr
            cost += self.false_negative * (positive - hit)
            cost += self.false_positive * (selected - hit)
            nobody += self.false_negative * positive
            everybody += self.false_positive * (group.n - positive)
        return 1 - cost / min(nobody, everybody)

    def _prior(self, key: Hashable, group: Tally) -> float:
        if (self.class_prior is None) == (self.label_frequency is None):
            raise ValueError(
                "A cost needs exactly one of class_prior and label_frequency, got "
                f"{self.class_prior!r} and {self.label_frequency!r}."
            )
        given = self.label_frequency if self.class_prior is None else self.class_prior
        value = given[key] if isinstance(given, Mapping) else given
        prior = group.labeled_share / value if self.class_prior is None else value
        if not 0 < prior < 1:
            raise ValueError(
                f"The class prior of group {key!r} must lie between 0 and 1, got "
                f"{prior:.4g}."
            )
        return float(prior)


def pu_cost_scorer(
    *,
    false_negative: float = 1.0,
    false_positive: float = 1.0,
    class_prior: Any = None,
    label_frequency: Any = None,
) -> PUCostScorer:
    """Scorer of the cost saved against the best trivial decision.

    Parameters
    ----------
    false_negative, false_positive : float, default=1
        Costs.
    class_prior, label_frequency : float or dict by group
        P(positive), or P(labeled given positive): one of them is required.

    Examples
    --------
    >>> pu_cost_scorer(class_prior=0.1)
    PUCostScorer(class_prior=0.1)
    """
    return PUCostScorer(
        false_negative=false_negative,
        false_positive=false_positive,
        class_prior=class_prior,
        label_frequency=label_frequency,
    )


def best_within(
    gap: str, limit: float, *, score: str | None = None
) -> Callable[[Mapping[str, Any]], int]:
    """Choose the best-scoring candidate whose gap is not shown to exceed a limit.

    For ``refit`` of a search with several scorers, one of which is
    ``pu_tpr_gap_scorer`` or another that gives negative gaps.

    Parameters
    ----------
    gap : str
        Name of the gap in the ``scoring`` dict.
    limit : float
        Largest gap allowed: compared with the lower 95% confidence bound of the mean
        gap over the folds. Under 1, a candidate with a gap of 1 in some fold, as
        ``pu_tpr_gap_scorer`` gives to decisions that recognize no positives, is none.
    score : str, optional
        Name of the score to maximize; needed only if there are several others.

    Returns
    -------
    callable
        From ``cv_results_`` to the position of the choice. Where no candidate meets
        the limit, the smallest gap is chosen, with a warning.

    Examples
    --------
    >>> results = {"mean_test_gap": [-0.3, -0.01], "mean_test_cost": [0.9, 0.7]}
    >>> results |= {"split0_test_gap": [-0.3, 0.0], "split1_test_gap": [-0.3, -0.02]}
    >>> best_within("gap", 0.05)(results)
    1
    """

    def choose(results: Mapping[str, Any]) -> int:
        gaps = _gaps_by_fold(results, gap)
        name = _only_other(results, gap) if score is None else score
        low = _lower_bounds(gaps)
        value = np.asarray(results[f"mean_test_{name}"], dtype=np.float64)
        allowed = (low <= limit) & ~np.isnan(value)
        if limit < 1:  # one such fold would otherwise widen the bound to let it pass
            allowed &= (gaps < 1).all(axis=0)
        if allowed.any():
            return int(np.argmax(np.where(allowed, value, -np.inf)))
        mean = gaps.mean(axis=0)
        if np.isnan(mean).all():
            raise ValueError(f"No candidate has a {gap!r}: all are nan.")
        warnings.warn(
            f"No candidate has a {gap} within {limit:g}; the smallest, "
            f"{np.nanmin(mean):.3g}, is chosen.",
            stacklevel=2,
        )
        return int(np.nanargmin(mean))

    return choose


def top_share(
    score: NDArray[Any], share: float, weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Accept the highest scores, exactly a share of the rows; ties by chance.

    Examples
    --------
    >>> top_share(np.array([0.9, 0.5, 0.5, 0.1]), 0.5).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    mass = np.ones(len(score)) if weight is None else weight
    level, number = np.unique(-score, return_inverse=True)
    at = np.bincount(number, weights=mass, minlength=len(level))
    before = np.cumsum(at) - at
    room = np.clip(share * mass.sum() - before, 0, at)
    return np.asarray(np.divide(room, at, out=np.zeros_like(at), where=at > 0)[number])


def decisions(estimator: Any, X: Any, group: Any) -> NDArray[np.float64]:
    """Read who is accepted off an estimator's rule, or off its prediction."""
    if not hasattr(estimator, "acceptance_probability"):
        predicted = np.asarray(estimator.predict(X))
        return np.asarray((predicted == estimator.classes_[1]).astype(np.float64))
    told = estimator.sensitive_columns is None and estimator.groups_ != (EVERYBODY,)
    accepted: NDArray[np.float64] = estimator.acceptance_probability(
        X, sensitive_features=group if told else None
    )
    return accepted


def _unwrapped(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Find the final estimator of searches and pipelines, and the rows it sees."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            if len(estimator) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator.steps[-1][1]
        else:
            return estimator, X


def _group(estimator: Any, X: Any, sensitive_features: Any) -> Any:
    if sensitive_features is not None:
        return sensitive_features
    columns = getattr(estimator, "sensitive_columns", None)
    if columns is None:
        raise ValueError(
            "The scorer does not know the group of the rows. Enable metadata routing "
            "and pass sensitive_features (in params= of cross_validate, in fit of a "
            "search), or set sensitive_columns of the estimator."
        )
    return group_columns(X, columns)


def _only_other(results: Mapping[str, Any], gap: str) -> str:
    names = [name for name in _scorers_of(results) if name != gap]
    if len(names) != 1:
        raise ValueError(
            f"Say by score= which of {names!r} to maximize within the limit on {gap!r}."
        )
    return names[0]


def _scorers_of(results: Mapping[str, Any]) -> list[str]:
    head = "mean_test_"
    return [name.removeprefix(head) for name in results if name.startswith(head)]


def _gaps_by_fold(results: Mapping[str, Any], gap: str) -> NDArray[np.float64]:
    """Gap of each candidate in each fold, of shape (n_folds, n_candidates)."""
    names = _scorers_of(results)
    if gap not in names:
        raise ValueError(f"No scorer is named {gap!r}; the search has {names!r}.")
    folds = [
        results[name]
        for name in results
        if name.startswith("split") and name.endswith(f"_test_{gap}")
    ]
    return -np.array(folds or [results[f"mean_test_{gap}"]], dtype=np.float64)


def _lower_bounds(gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lower 95% confidence bound of the mean gap of each candidate over the folds."""
    mean: NDArray[np.float64] = gaps.mean(axis=0)
    if len(gaps) < 2:
        return mean
    error = gaps.std(axis=0, ddof=1) / math.sqrt(len(gaps))
    critical = stdtrit(len(gaps) - 1, 0.95)
    return np.asarray(mean - critical * error)
