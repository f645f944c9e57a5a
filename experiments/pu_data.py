"""Splits of the PU-fairness benchmark: data sets, and how their positives get labels.

A labeling mechanism is a function of what the learner never sees: how severe a positive
is among those of its group (its rank by the posterior, from 0 to 1), and the group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from experiments.data import Rows, load, parts, scaled_and_labeled, with_group
from experiments.task import Task
from fairpul.crossfit import crossfit, median_score
from fairpul.datasets import make_two_groups, make_underdiagnosed, pu_labels
from fairpul.group_scores import GroupScores

Probabilities = NDArray[np.float64]
Codes = NDArray[np.intp]
#: Training and test rows, and P(positive) of both, one after the other.
Drawn = tuple[Rows, Rows, Probabilities]

_TRAINING_ROWS, _FRESH_ROWS = 6000, 20_000
# Steps between seeds, so that no two draws of a split come from the same one.
_STEP = 1_000_000


def scar(severity: Probabilities, group: Codes) -> Probabilities:
    """Label half of the positives, completely at random."""
    return np.full(len(group), 0.5)


def group_scar(severity: Probabilities, group: Codes) -> Probabilities:
    """Label 30% of the first group's positives and 70% of the second's."""
    return np.array([0.3, 0.7])[group]


def sar(severity: Probabilities, group: Codes) -> Probabilities:
    """Label half of each group's positives, and the severe ones first.

    The propensity rises with the severity, from .1 to .9 in the first group and from .4
    to .6 in the second: who has less access to care must be sicker to be seen.
    """
    return 0.5 + np.array([0.8, 0.2])[group] * (severity - 0.5)


MECHANISMS: dict[str, Callable[[Probabilities, Codes], Probabilities]] = {
    "SCAR": scar,
    "group-SCAR": group_scar,
    "SAR": sar,
}


def simulated(make: Callable[..., Any], seed: int) -> Drawn:
    """Draw rows whose posterior is known, many fresh ones to test on."""
    train = make(_TRAINING_ROWS, random_state=_STEP + seed)
    test = make(_FRESH_ROWS, random_state=2 * _STEP + seed)
    rows = [
        Rows(data.X, data.y_true, np.unique(data.group, return_inverse=True)[1])
        for data in (train, test)
    ]
    return rows[0], rows[1], np.concatenate([train.posterior, test.posterior])


def real(dataset: str, seed: int) -> Drawn:
    """Split a real data set; P(positive) is that of a logistic model of all classes."""
    rows = load(dataset)
    X = StandardScaler().fit_transform(rows.X_and_group)
    fitted = LogisticRegression(max_iter=1000).fit(X, rows.y_true)
    train, test = parts(len(X), seed)
    posterior = fitted.predict_proba(X)[:, 1]
    return (
        rows.take(train),
        rows.take(test),
        posterior[np.concatenate([train, test])],
    )


DATASETS: dict[str, Callable[[int], Drawn]] = {
    "underdiagnosed": partial(simulated, make_underdiagnosed),
    "two_groups": partial(simulated, make_two_groups),
    "compas": partial(real, "compas"),
    "german": partial(real, "german"),
    "drug": partial(real, "drug"),
}


@dataclass(frozen=True, eq=False)
class PUTask(Task):
    """A split, a base model, and what is known of the labels of its test rows.

    Attributes
    ----------
    propensity : ndarray
        P(labeled given positive) of every test row.
    test_labeled : ndarray
        PU labels of the test rows, for audits.
    known : dict
        P(labeled given positive) of each group of the training rows.
    """

    propensity: Probabilities
    test_labeled: NDArray[np.int64]
    known: dict[int, float]

    @cached_property
    def of_classes(self) -> tuple[Probabilities, GroupScores]:
        """Test scores and out-of-fold scores as ours, with all classes known."""
        train = self.split.train
        positive = train.y_true == 1
        fitted = crossfit(
            self.model(), train.X, positive, train.group, random_state=self.split.seed
        )
        test_score = median_score(fitted.estimators, self.split.test.X)
        return test_score, GroupScores(fitted.score, positive, train.group)


def pu_task(dataset: str, mechanism: str, base: str, seed: int) -> PUTask:
    """Draw a split and label it; every method finds the group among the features."""
    train, test, posterior = DATASETS[dataset](seed)
    y_true = np.concatenate([train.y_true, test.y_true])
    group = np.concatenate([train.group, test.group])
    propensity = MECHANISMS[mechanism](severity(posterior, y_true, group), group)
    of_train, of_test = np.split(propensity, [len(train.y_true)])
    split = scaled_and_labeled(train, test, of_train, seed, StandardScaler())
    return PUTask(
        with_group(split),
        dataset,
        base,
        of_test,
        pu_labels(test.y_true, of_test, random_state=3 * _STEP + seed),
        {
            s: float(of_train[(train.group == s) & (train.y_true == 1)].mean())
            for s in (0, 1)
        },
    )


def severity(posterior: Probabilities, y_true: Any, group: Codes) -> Probabilities:
    """Rank of each positive among those of its group, from 0 to 1; negatives have 0."""
    found = np.zeros(len(posterior))
    for s in np.unique(group):
        rows = (group == s) & (y_true == 1)
        found[rows] = (rankdata(posterior[rows]) - 0.5) / rows.sum()
    return found
