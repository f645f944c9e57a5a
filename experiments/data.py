"""The paper's data sets, cut into training and test rows with PU labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from fairpul.datasets import (
    fetch_compas,
    fetch_drug_consumption,
    fetch_german_credit,
    make_two_groups,
    pu_labels,
)

_FETCH = {
    "compas": fetch_compas,
    "german": fetch_german_credit,
    "drug": fetch_drug_consumption,
}
_TEST_SHARE = 0.3
# Donini et al. (2018) as the paper has it: 3,200 rows to train on and as many to test.
_SYNTHETIC_ROWS = 3200


@dataclass(frozen=True, eq=False)
class Rows:
    """Scaled features, true classes and group codes of some rows."""

    X: NDArray[np.float64]
    y_true: NDArray[np.int64]
    group: NDArray[np.intp]

    def take(self, rows: NDArray[np.intp]) -> Rows:
        """Pick rows, in the order given."""
        return Rows(self.X[rows], self.y_true[rows], self.group[rows])

    @property
    def X_and_group(self) -> NDArray[np.float64]:
        """Features with the group as the last column."""
        return np.column_stack([self.X, self.group])


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows with their PU labels, and test rows."""

    train: Rows
    test: Rows
    labeled: NDArray[np.int64]
    label_frequency: float | NDArray[np.float64]
    seed: int


@cache
def load(dataset: str) -> Rows:
    """Read a real data set in the paper's preprocessing."""
    data = _FETCH[dataset](preprocessing="paper")
    return Rows(data.X, data.y_true, np.unique(data.group, return_inverse=True)[1])


def real_split(
    dataset: str, labeling_rate: float, seed: int, *, bounded: bool = False
) -> Split:
    """70% of the rows to train on, 30% to test, positives labeled at random.

    ``bounded`` maps features to [-1, 1], as is customary for LIBSVM, instead of
    standardizing them: of these, [0, 1] and robust scaling it comes nearest the Oracle
    and Naive rows of the polynomial machine, with the group among the features.
    """
    train, test = _train_and_test(load(dataset), seed)
    if bounded:
        scaler = MinMaxScaler((-1, 1))
        return with_group(scaled_and_labeled(train, test, labeling_rate, seed, scaler))
    return scaled_and_labeled(train, test, labeling_rate, seed, StandardScaler())


def synthetic_split(labeling_rate: float, seed: int) -> Split:
    """Two Gaussian groups, drawn anew for every seed, with the group in X.

    The paper's score is f(X, S), and here P(positive) given X differs by group.
    """
    train, test = (
        make_two_groups(_SYNTHETIC_ROWS, random_state=2 * seed + part)
        for part in (0, 1)
    )
    rows = [
        Rows(data.X, data.y_true, np.unique(data.group, return_inverse=True)[1])
        for data in (train, test)
    ]
    return with_group(scaled_and_labeled(*rows, labeling_rate, seed, StandardScaler()))


def four_races_split(labeling_rate: float, seed: int) -> Split:
    """COMPAS as published, with every race of which it has some hundred rows."""
    data = fetch_compas()
    races = ("African-American", "Caucasian", "Hispanic", "Other")
    kept = np.isin(data.group, races)
    codes = np.unique(data.group[kept], return_inverse=True)[1]
    train, test = _train_and_test(Rows(data.X[kept], data.y_true[kept], codes), seed)
    return scaled_and_labeled(train, test, labeling_rate, seed, StandardScaler())


def unlabeled_split(extra_share: float, labeling_rate: float, seed: int) -> Split:
    """COMPAS: half of the training rows, and some of the others as unlabeled rows.

    As many positives are labeled as the labeling rate gives on the half alone; they are
    drawn from all positives present, so that labeling stays completely at random.
    """
    train, test = _train_and_test(load("compas"), seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(train.y_true))
    half = len(order) // 2
    extra = round(extra_share * (len(order) - half))
    n_labeled = round(labeling_rate * train.y_true[order[:half]].sum())
    present = train.take(order[: half + extra])
    positives = np.flatnonzero(present.y_true)
    labeled = np.zeros(len(present.y_true), dtype=np.int64)
    labeled[rng.choice(positives, n_labeled, replace=False)] = 1
    split = scaled_and_labeled(present, test, labeling_rate, seed, StandardScaler())
    return replace(split, labeled=labeled, label_frequency=n_labeled / len(positives))


def upsampled(split: Split) -> Split:
    """Rows of the rarer *true* class drawn again until the classes are even.

    No PU learner can do this, for it needs the true classes; the published Drug rows
    come out only this way.
    """
    y_true = split.train.y_true
    rare = int(y_true.mean() < 0.5)
    few, many = np.flatnonzero(y_true == rare), np.flatnonzero(y_true != rare)
    drawn = np.random.default_rng(split.seed).choice(few, len(many))
    rows = np.concatenate([many, drawn])
    return replace(split, train=split.train.take(rows), labeled=split.labeled[rows])


def with_group(split: Split) -> Split:
    """Put the group among the features."""
    train, test = (
        replace(rows, X=rows.X_and_group) for rows in (split.train, split.test)
    )
    return replace(split, train=train, test=test)


def parts(n_rows: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """70% of the rows to train on, 30% to test, by their places."""
    return tuple(
        train_test_split(np.arange(n_rows), test_size=_TEST_SHARE, random_state=seed)
    )


def _train_and_test(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    train, test = parts(len(rows.y_true), seed)
    return rows.take(train), rows.take(test)


def scaled_and_labeled(
    train: Rows,
    test: Rows,
    labeling_rate: float | NDArray[np.float64],
    seed: int,
    scaler: Any,
) -> Split:
    """Scale rows by those of the training, and label its positives.

    The labeling rate is one for all positives, or that of each training row.
    """
    scaler.fit(train.X)
    return Split(
        replace(train, X=scaler.transform(train.X)),
        replace(test, X=scaler.transform(test.X)),
        pu_labels(train.y_true, labeling_rate, random_state=seed),
        labeling_rate,
        seed,
    )
