"""Folds of cross-fitting: by group and label, with clusters kept whole."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from fairpul._callers import depth_in_package
from fairpul._validation import check_row_id

#: The median of fewer models is no majority.
FEWEST_FOLDS = 3

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]


def stratified_splits(
    n_splits: int, stratum: NDArray[Any], cluster: Rows | None, seed: int
) -> Iterator[Split]:
    """Deal rows, or whole clusters, to folds with like shares of each stratum."""
    kind = StratifiedKFold if cluster is None else StratifiedGroupKFold
    splitter = kind(n_splits, shuffle=True, random_state=seed)
    yield from splitter.split(stratum, stratum, cluster)


def row_order(
    row_id: ArrayLike | None, n_rows: int, rng: np.random.RandomState
) -> Rows:
    """Order in which rows are dealt to folds: as given, or shuffled by their ids."""
    if row_id is None:
        return np.arange(n_rows)
    _, by_id = np.unique(check_row_id(row_id, n_rows), return_index=True)
    if len(by_id) < n_rows:
        raise ValueError(
            f"row_id must be unique in fit, got {len(by_id)} ids for {n_rows} rows. "
            "Name rows that belong together by groups= instead."
        )
    shuffled: Rows = rng.permutation(by_id)
    return shuffled


def affordable_folds(
    cv: Any, stratum: Rows, cluster: Rows | None, keys: Sequence[Hashable] | None
) -> Any:
    """Return cv, as fewer folds where a group has fewer labels; refuse under three."""
    if isinstance(cv, int | np.integer) and cv < FEWEST_FOLDS:
        raise ValueError(
            f"cv must be at least {FEWEST_FOLDS} folds, got {cv!r}: with two, "
            "each model sees half of the labels, and their median is no majority."
        )
    if isinstance(cv, str) or not (
        isinstance(cv, int | np.integer | Iterable) or hasattr(cv, "split")
    ):
        raise TypeError(
            "cv must be a number of folds, a splitter, an iterable of (train, test) or "
            f"None, got {cv!r}."
        )
    unit = "labeled rows" if cluster is None else "groups= with a labeled row"
    names = range(int(stratum.max()) // 2 + 1) if keys is None else keys
    n_labeled = {
        name: count_labeled(stratum == 2 * code + 1, cluster)
        for code, name in enumerate(names)
    }
    few = {name: n for name, n in n_labeled.items() if n < FEWEST_FOLDS}
    if few:
        raise ValueError(
            f"Cross-fitting needs at least {FEWEST_FOLDS} {unit} in each group, got "
            f"{few!r}. Merge these groups with others or drop them."
        )
    fewest = min(n_labeled, key=n_labeled.__getitem__)
    if isinstance(cv, int | np.integer) and n_labeled[fewest] < cv:
        warnings.warn(
            f"Group {fewest!r} has {n_labeled[fewest]} {unit}, fewer than the {cv} "
            f"folds asked for: using {n_labeled[fewest]} folds.",
            UserWarning,
            stacklevel=depth_in_package(),
        )
        return n_labeled[fewest]
    return cv


def count_labeled(labeled: NDArray[Any], cluster: Rows | None) -> int:
    """Count the labeled rows, or the clusters that hold one."""
    if cluster is None:
        return int(np.count_nonzero(labeled))
    return len(np.unique(cluster[np.asarray(labeled, dtype=bool)]))


def check_splits(
    splits: Sequence[Split], labeled: NDArray[np.bool_], cluster: Rows | None
) -> None:
    """Refuse folds that test a row twice or never, or train on what they test."""
    if len(splits) < FEWEST_FOLDS:
        raise ValueError(
            f"cv must give at least {FEWEST_FOLDS} folds, got {len(splits)}: the "
            "median score of fewer models is no majority."
        )
    tested = np.bincount(
        np.concatenate([test for _, test in splits]), minlength=len(labeled)
    )
    if (tested != 1).any():
        raise ValueError(
            f"cv must test every row exactly once; {np.count_nonzero(tested == 0)} "
            f"rows are never tested, {np.count_nonzero(tested > 1)} more than once."
        )
    rows = np.arange(len(labeled)) if cluster is None else cluster
    for number, (train, test) in enumerate(splits):
        if not len(test):
            raise ValueError(
                f"Fold {number} tests no row: there are too few groups= to fill "
                f"{len(splits)} folds. Ask for fewer."
            )
        if np.isin(rows[test], rows[train]).any():
            raise ValueError(
                f"Fold {number} trains on rows, or on members of groups=, that it "
                "tests, so their scores would be far too good. Use a splitter that "
                "keeps them apart, such as StratifiedGroupKFold."
            )
        if len(np.unique(labeled[train])) < 2:
            raise ValueError(
                f"Fold {number} trains on one class only; every training part needs "
                "labeled and unlabeled rows."
            )
