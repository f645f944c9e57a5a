"""Out-of-fold scores P(labeled | x) of any scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from fairpul._folds import (
    Rows,
    Split,
    affordable_folds,
    check_splits,
    count_labeled,
    row_order,
    stratified_splits,
)
from fairpul._validation import check_cluster, check_weight

_LARGEST_SEED = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Fold models and the scores they give to rows they have not seen.

    Parameters
    ----------
    estimators : tuple
        The fitted model of each fold, in the order of the fold numbers.
    score : ndarray of shape (n_rows,)
        P(labeled) of each row, from the model that was not trained on it.
    folds : ndarray of shape (n_rows,) or None
        Number of the fold that tested each row; None where the estimator came fitted.
    """

    estimators: tuple[Any, ...]
    score: NDArray[np.float64]
    folds: Rows | None


@dataclass(frozen=True, eq=False)
class _Data:
    """What a fold model is fitted on: full-length columns, indexed per fold."""

    X: Any
    labeled: NDArray[np.bool_]
    cluster: Rows | None
    keywords: Mapping[str, Any]

    def keywords_of(self, rows: Rows) -> dict[str, Any]:
        """Fit keywords for some rows: row-aligned values indexed, others as given."""
        n_rows = len(self.labeled)
        return {
            name: _safe_indexing(value, rows) if _n_rows(value) == n_rows else value
            for name, value in self.keywords.items()
        }


def crossfit(
    estimator: Any,
    X: Any,
    labeled: NDArray[np.bool_],
    codes: Rows,
    *,
    cv: Any = 5,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    fit_params: Mapping[str, Any] | None = None,
    row_id: ArrayLike | None = None,
    keys: Sequence[Hashable] | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> CrossFit:
    """Score every row by a model that was not trained on it.

    Parameters
    ----------
    estimator : classifier
        Anything with ``get_params``, ``fit`` and ``predict_proba`` or
        ``decision_function``. It is cloned, never fitted in place, and learns 1 for
        labeled and 0 for unlabeled rows. Where only ``decision_function`` is there,
        it is calibrated (sigmoid) within the training part of each fold.
    X : array-like, sparse matrix, DataFrame or list of length n_rows
        Handed to the estimator as it is, some rows at a time.
    labeled : ndarray of bool, shape (n_rows,)
        The labeled rows.
    codes : ndarray of int, shape (n_rows,)
        Number of each row's sensitive group; folds are stratified by group and label.
    cv : int, splitter, iterable of (train, test), or None
        At least 3 folds, each row tested once. A splitter is called as
        ``split(X, stratum, groups)``. None, or a ``FrozenEstimator``: the estimator
        is fitted already, the rows are held out, and it is used as it is.
    groups : array-like of shape (n_rows,), optional
        Rows that belong together (the patient of each row) stay in one fold.
    sample_weight : array-like of shape (n_rows,), optional
        Weights for the estimator's ``fit``; an estimator that cannot use them is
        refused. Of a ``Pipeline`` the last step gets them. With metadata routing
        enabled, they go to whatever requests them.
    fit_params : mapping, optional
        More keywords for ``fit``. Values with one entry per row are indexed per fold.
    row_id : array-like of shape (n_rows,), optional
        A unique id per row. Folds, and the order in which a model sees its rows, then
        depend on the ids and ``random_state`` only: permuting the rows changes no
        model. Indices in an iterable ``cv`` keep referring to the rows as given.
    keys : sequence, optional
        Names of the groups for messages; the codes by default.
    n_jobs : int, optional
        Folds fitted at the same time.
    random_state : int, RandomState or None
        Seed of the folds. The estimator keeps its own.

    Returns
    -------
    CrossFit

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.arange(12.0)
    >>> fit = crossfit(LogisticRegression(), x[:, None], x > 5, x % 2 > 0, cv=3)
    >>> len(fit.estimators), fit.score.shape
    (3, (12,))
    """
    X, labeled = indexable(X, np.asarray(labeled, dtype=bool))
    if is_prefit(estimator, cv):
        if fit_params:
            raise ValueError(
                f"The estimator is fitted already, so {sorted(fit_params)!r} cannot "
                "reach its fit. Drop them, or let cv be a number of folds."
            )
        return CrossFit((estimator,), positive_score(estimator, X), None)
    rng = check_random_state(random_state)
    data = _training_data(estimator, X, labeled, groups, sample_weight, fit_params)
    stratum = 2 * np.asarray(codes, dtype=np.intp) + labeled
    cv = affordable_folds(cv, stratum, data.cluster, keys)
    splits = list(_splits(cv, data, stratum, row_order(row_id, len(labeled), rng), rng))
    check_splits(splits, labeled, data.cluster)
    seeds = rng.randint(_LARGEST_SEED, size=len(splits))
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(estimator, data, split, seed)
        for split, seed in zip(splits, seeds, strict=True)
    )
    score = np.empty(len(labeled))
    folds = np.empty(len(labeled), dtype=np.intp)
    for number, ((_, test), (_, fold_score)) in enumerate(
        zip(splits, fitted, strict=True)
    ):
        score[test], folds[test] = fold_score, number
    return CrossFit(tuple(model for model, _ in fitted), score, folds)


def refit(
    estimator: Any,
    X: Any,
    labeled: NDArray[np.bool_],
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    fit_params: Mapping[str, Any] | None = None,
    row_id: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Any:
    """Fit one model on all rows, in the way `crossfit` fits a fold's.

    The parameters are those of `crossfit`.
    """
    X, labeled = indexable(X, np.asarray(labeled, dtype=bool))
    rng = check_random_state(random_state)
    data = _training_data(estimator, X, labeled, groups, sample_weight, fit_params)
    order = row_order(row_id, len(labeled), rng)
    return _fit(estimator, data, order, rng.randint(_LARGEST_SEED))


def median_score(estimators: Sequence[Any], X: Any) -> NDArray[np.float64]:
    """P(labeled) of each row: the median over the models.

    Notes
    -----
    For an odd number of models, cutting the median is the majority vote of the models
    cut at the same place, so one table of cuts describes what is deployed. An even
    number takes the midpoint of the middle two.
    """
    return np.median([positive_score(model, X) for model in estimators], axis=0)


def positive_score(estimator: Any, X: Any) -> NDArray[np.float64]:
    """P(labeled) of each row by one fitted model."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba, and a fitted estimator "
            "cannot be calibrated on the rows that tune the rule. Wrap it in a "
            "CalibratedClassifierCV fitted on other rows."
        )
    probability = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    # Classifiers from outside scikit-learn may lack classes_; they learned 0 and 1.
    classes = np.asarray(getattr(estimator, "classes_", [0, 1]))
    column = np.flatnonzero(classes == 1)
    if len(classes) != 2 or len(column) != 1:
        raise ValueError(
            f"{type(estimator).__name__} must be fitted on two classes with 1 for "
            f"labeled rows; its classes are {classes.tolist()!r}."
        )
    return probability[:, column[0]]


def is_prefit(estimator: Any, cv: Any) -> bool:
    """Whether the estimator is to be used as it is."""
    return cv is None or isinstance(estimator, FrozenEstimator)


def _fit_and_score(
    estimator: Any, data: _Data, split: Split, seed: int
) -> tuple[Any, NDArray[np.float64]]:
    train, test = split
    model = _fit(estimator, data, train, seed)
    return model, positive_score(model, _safe_indexing(data.X, test))


def _fit(estimator: Any, data: _Data, rows: Rows, seed: int) -> Any:
    """Fit a clone on some rows, calibrated where it gives no probabilities."""
    X, target = _safe_indexing(data.X, rows), data.labeled[rows].astype(int)
    if hasattr(estimator, "predict_proba"):
        return clone(estimator).fit(X, target, **data.keywords_of(rows))
    if not hasattr(estimator, "decision_function"):
        raise ValueError(
            f"{type(estimator).__name__} has neither predict_proba nor "
            "decision_function, so its rows cannot be ranked. Use a classifier that "
            "gives probabilities or decision values."
        )
    model = CalibratedClassifierCV(
        clone(estimator), cv=_calibration_folds(data, rows, seed), ensemble=False
    )
    model.fit(X, target, **data.keywords_of(rows))
    # Positions of training rows are no part of the model, and pickles carry them.
    return model.set_params(cv=None)


def _calibration_folds(data: _Data, rows: Rows, seed: int) -> list[Split]:
    """Inner folds of a training part; they keep groups= together as the outer do."""
    labeled = data.labeled[rows]
    cluster = None if data.cluster is None else data.cluster[rows]
    n_splits = max(2, min(5, count_labeled(labeled, cluster)))
    return list(stratified_splits(n_splits, labeled, cluster, seed))


def _splits(
    cv: Any, data: _Data, stratum: Rows, order: Rows, rng: np.random.RandomState
) -> Iterator[Split]:
    """Train and test positions of each fold, dealt in the given order of the rows."""
    if isinstance(cv, int | np.integer):
        cluster = None if data.cluster is None else data.cluster[order]
        dealt = stratified_splits(
            int(cv), stratum[order], cluster, rng.randint(_LARGEST_SEED)
        )
    elif hasattr(cv, "split"):
        cluster = None if data.cluster is None else data.cluster[order]
        dealt = cv.split(_safe_indexing(data.X, order), stratum[order], cluster)
    else:
        dealt, order = cv, np.arange(len(stratum))
    for train, test in dealt:
        yield order[train], order[test]


def _training_data(
    estimator: Any,
    X: Any,
    labeled: NDArray[np.bool_],
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    fit_params: Mapping[str, Any] | None,
) -> _Data:
    """Columns with the fit keywords under the names that the estimator expects."""
    cluster = check_cluster(groups, len(labeled))
    weight = check_weight(sample_weight, len(labeled))
    if weight is not None and len(np.unique(labeled[weight > 0])) < 2:
        raise ValueError(
            "Rows of positive sample_weight are of one class only; labeled and "
            "unlabeled ones are required."
        )
    keywords = {} if fit_params is None else dict(fit_params)
    routing = get_config()["enable_metadata_routing"]
    if routing and hasattr(estimator, "get_metadata_routing"):
        keywords = _routed_keywords(estimator, weight, groups, keywords)
    elif weight is not None:
        keywords[_weight_keyword(estimator)] = weight
    return _Data(X, labeled, cluster, keywords)


def _weight_keyword(estimator: Any) -> str:
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        if has_fit_parameter(last, "sample_weight"):
            return f"{name}__sample_weight"
    raise ValueError(
        f"sample_weight was given, but {type(estimator).__name__}.fit does not take "
        "it. Use an estimator that does, or drop the weights: they are honored "
        "everywhere or refused."
    )


def _routed_keywords(
    estimator: Any,
    weight: NDArray[np.float64] | None,
    groups: ArrayLike | None,
    keywords: Mapping[str, Any],
) -> dict[str, Any]:
    """Fit keywords by scikit-learn's metadata routing, as the estimator requests."""
    router = MetadataRouter(owner="crossfit").add(
        estimator=estimator,
        method_mapping=MethodMapping().add(caller="fit", callee="fit"),
    )
    offered = {"sample_weight": weight, "groups": groups}
    consumed = router.consumes("fit", offered)
    if weight is not None and "sample_weight" not in consumed:
        raise ValueError(
            f"sample_weight was given, but {type(estimator).__name__} does not request "
            "it. Call set_fit_request(sample_weight=True) on the steps that take it, "
            "or drop the weights: they are honored everywhere or refused."
        )
    given = {name: offered[name] for name in consumed if offered[name] is not None}
    routed = process_routing(router, "fit", **given, **keywords)
    return dict(routed.estimator.fit)


def _n_rows(value: Any) -> int | None:
    """Length of a value that has rows; None for scalars, strings and mappings."""
    if isinstance(value, str | bytes | Mapping):
        return None
    if hasattr(value, "shape"):
        return int(value.shape[0]) if value.shape else None
    return len(value) if hasattr(value, "__len__") else None
