"""A sharper order of the rows, from which label frequencies are read.

The user's score may order the rows badly, and a noisy order dilutes its own top sets.
Blended with a random forest and a logistic regression of the label on the same
features, the top sets come closer to the largest P(labeled | x). The blend serves the
label frequency only; decisions and rates keep the user's score.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairpul.group_scores import GroupScores
from fairpul.label_frequency._numeric import numeric_table

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Labels = NDArray[np.bool_]

# Above this many rows a stratified subsample is sharpened and read.
_MOST_ROWS = 20_000
_N_FOLDS = 5
_FOREST_ROWS = 10_000
# With fewer labeled rows in the subsample all rows, bare, tell more.
_LEAST_SAMPLED = 60


class TooFewLabelsError(ValueError):
    """Too few labeled rows to train on, or to read a label frequency from."""


def sharpen(
    scores: GroupScores, X: Any, folds: Integers | None, rng: np.random.RandomState
) -> tuple[GroupScores, GroupScores]:
    """Replace the score by the blended order, scaled to (0, 1].

    Parameters
    ----------
    scores : GroupScores
        Out-of-fold or held-out scores.
    X : array-like or data frame of shape (n_rows, n_columns)
        Features of the same rows.
    folds : ndarray of shape (n_rows,) or None
        The folds that gave the scores; five are dealt if None.
    rng : RandomState
        Draws the subsample, the folds and the forest.

    Returns
    -------
    by_group : GroupScores
        Rows (a subsample of about 20,000 if there are more) with an order per group;
        its groups are the codes of ``scores``.
    together : GroupScores
        The same rows in one group, in an order across groups.
    """
    rows = subsample(scores.labeled, scores.codes, _MOST_ROWS, rng)
    table = numeric_table(X, rows)
    labeled, codes = scores.labeled[rows], scores.codes[rows]
    weight = None if scores.sample_weight is None else scores.sample_weight[rows]
    cluster = None if scores.cluster is None else scores.cluster[rows]
    fold = deal_folds(labeled, codes, cluster, rng) if folds is None else folds[rows]
    _check_labels_left(scores, labeled, codes)
    check_folds(labeled, fold)
    seed = int(rng.randint(2**31 - 1))
    parts = [
        scores.score[rows],
        forest_score(
            np.column_stack([table, codes]),
            labeled,
            weight,
            fold=None if cluster is None else fold,
            seed=seed,
        ),
        logistic_score(
            np.column_stack([standardized(table), _dummies(codes)]),
            labeled,
            fold,
            weight,
        ),
    ]
    by_group = blend(parts, labeled, codes, np.asarray(codes), weight)
    together = blend(parts, labeled, codes, np.zeros_like(codes), weight)
    kept: dict[str, Any] = {"sample_weight": weight, "cluster": cluster}
    return (
        GroupScores(by_group, labeled, codes, **kept),
        GroupScores(together, labeled, None, **kept),
    )


def blend(
    parts: list[NDArray[Any]],
    labeled: Labels,
    codes: Integers,
    ranked_within: Integers,
    sample_weight: Floats | None = None,
) -> Floats:
    """Weigh normal scores of several orders by logistic slopes, as ranks in (0, 1].

    Parameters
    ----------
    parts : list of ndarray of shape (n_rows,)
        Orders of the rows, none of them fitted to the row's own label.
    labeled, codes : ndarray of shape (n_rows,)
        Label and group code; the regression has an intercept per group.
    ranked_within : ndarray of shape (n_rows,)
        Codes of the sets of rows within which each part is ranked.
    sample_weight : ndarray of shape (n_rows,), optional
        Sampling weights.

    Returns
    -------
    ndarray of shape (n_rows,)
        Negative slopes count as 0; if all are negative the parts weigh the same.
    """
    normal = np.column_stack([normal_scores(part, ranked_within) for part in parts])
    model = LogisticRegression(max_iter=1000)
    model.fit(np.column_stack([normal, _dummies(codes)]), labeled, sample_weight)
    slopes = np.maximum(model.coef_[0, : len(parts)], 0)
    if not slopes.any():
        slopes = np.ones(len(parts))
    # Summed column by column: a matrix product may round equal rows differently.
    height = sum(slope * column for slope, column in zip(slopes, normal.T, strict=True))
    ranks = rankdata(height, method="dense")
    return np.asarray(ranks / ranks.max())


def normal_scores(value: NDArray[Any], codes: Integers) -> Floats:
    """Return normal quantiles of the ranks within each code, ties at the mean."""
    normal = np.empty(len(value))
    for number in np.unique(codes):
        rows = codes == number
        normal[rows] = ndtri((rankdata(value[rows]) - 0.5) / rows.sum())
    return normal


def forest_score(
    features: Floats,
    labeled: Labels,
    sample_weight: Floats | None = None,
    *,
    fold: Integers | None = None,
    seed: int = 0,
) -> Floats:
    """P(labeled) by a random forest that did not see the row.

    Out-of-bag by default. With ``fold`` cross-fitted: for rows that belong together,
    out-of-bag rows would have relatives in the bag.
    """
    forest = RandomForestClassifier(
        100,
        min_samples_leaf=10,
        max_samples=min(0.5, _FOREST_ROWS / len(labeled)),
        oob_score=fold is None,
        random_state=seed,
    )
    if fold is None:
        forest.fit(features, labeled, sample_weight)
        return np.asarray(forest.oob_decision_function_[:, 1])
    return _crossfitted(forest, features, labeled, fold, sample_weight)


def logistic_score(
    features: Floats,
    labeled: Labels,
    fold: Integers,
    sample_weight: Floats | None = None,
) -> Floats:
    """P(labeled) by logistic regression, cross-fitted."""
    model = LogisticRegression(max_iter=1000)
    return _crossfitted(model, features, labeled, fold, sample_weight)


def standardized(table: Floats) -> Floats:
    """Columns of mean 0 and variance 1; missing values and constant columns at 0."""
    seen = np.isfinite(table).any(axis=0)
    scaled = np.zeros_like(table)
    if seen.any():
        scaled[:, seen] = StandardScaler().fit_transform(table[:, seen])
    return np.nan_to_num(scaled)


def subsample(
    labeled: Labels, codes: Integers, most_rows: int, rng: np.random.RandomState
) -> Integers:
    """Sorted positions of about ``most_rows`` rows, stratified by group and label.

    Every group gives the same number of rows, or all it has: label frequencies are
    read group by group, so a proportional draw would starve the small ones.
    """
    if len(labeled) <= most_rows:
        return np.arange(len(labeled))
    size = np.bincount(codes)
    # Groups smaller than an equal share give all; the others share what is left.
    quota, left = size.copy(), most_rows
    for place, number in enumerate(np.argsort(size)):
        quota[number] = min(size[number], left // (len(size) - place))
        left -= quota[number]
    taken = []
    for number, rows in enumerate(quota):
        for label in (True, False):
            stratum = np.flatnonzero((codes == number) & (labeled == label))
            wanted = max(1, round(rows * len(stratum) / size[number]))
            taken.append(rng.choice(stratum, min(wanted, len(stratum)), replace=False))
    return np.sort(np.concatenate(taken))


def deal_folds(
    labeled: Labels,
    codes: Integers,
    cluster: Integers | None,
    rng: np.random.RandomState,
) -> Integers:
    """Fold number of each row, stratified by group and label; clusters stay whole."""
    unit = np.arange(len(labeled)) if cluster is None else cluster
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    hits = np.bincount(unit, weights=labeled)
    order = np.lexsort((rng.permutation(len(first)), hits, codes[first]))
    fold = np.empty(len(first), dtype=np.intp)
    fold[order] = np.arange(len(first)) % _N_FOLDS
    return np.asarray(fold[unit])


def check_folds(labeled: Labels, fold: Integers) -> None:
    """Refuse folds that leave a training part with one class only."""
    for number in np.unique(fold):
        training = labeled[fold != number]
        if training.all() or not training.any():
            raise TooFewLabelsError(
                "some fold leaves no labeled or no unlabeled row to train on"
            )


def _check_labels_left(scores: GroupScores, labeled: Labels, codes: Integers) -> None:
    left = np.bincount(codes[labeled], minlength=len(scores.groups))
    had = np.bincount(scores.codes[scores.labeled], minlength=len(scores.groups))
    for key, n_left, n_had in zip(scores.groups, left, had, strict=True):
        if n_left < min(_LEAST_SAMPLED, n_had):
            raise TooFewLabelsError(
                f"a subsample of {_MOST_ROWS} rows keeps only {n_left} labeled rows of "
                f"group {key!r}"
            )


def _dummies(codes: Integers) -> Floats:
    return np.equal(codes[:, None], np.unique(codes)[1:]).astype(np.float64)


def _crossfitted(
    model: Any,
    features: Floats,
    labeled: Labels,
    fold: Integers,
    sample_weight: Floats | None,
) -> Floats:
    score = np.empty(len(labeled))
    for number in np.unique(fold):
        held_out = fold == number
        weight = None if sample_weight is None else sample_weight[~held_out]
        model.fit(features[~held_out], labeled[~held_out], weight)
        score[held_out] = model.predict_proba(features[held_out])[:, 1]
    return score
