"""One split and one base model, with the fitted models that several methods share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from experiments.data import Split, upsampled, with_group
from experiments.learners import base_model
from fairpul.crossfit import crossfit, median_score
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import resolve_label_frequency
from fairpul.paper import HOLD_OUT_SHARE, PlugIn, plug_in

_REGULARIZATION = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Task:
    """One split and one base model, with the models that several methods share."""

    split: Split
    dataset: str
    base: str

    def model(self) -> Any:
        """Make a base model, not fitted."""
        return base_model(self.base, self.dataset, self.split.seed, self.regularization)

    @cached_property
    def regularization(self) -> float:
        """C of the synthetic study, by the held-out likelihood of the labels."""
        if self.dataset != "synthetic":
            return 1.0
        used, held = self.parts
        X, labeled = self.split.train.X, self.split.labeled
        fitted = {
            C: base_model(self.base, self.dataset, 0, C).fit(X[used], labeled[used])
            for C in _REGULARIZATION
        }
        return max(
            fitted,
            key=lambda C: (
                fitted[C]
                .predict_log_proba(X[held])[np.arange(len(held)), labeled[held]]
                .sum()
            ),
        )

    @cached_property
    def parts(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows that the PU methods train on, and the 20% they hold out."""
        train = self.split.train
        stratum = 2 * train.group + self.split.labeled
        return tuple(
            train_test_split(
                np.arange(len(stratum)),
                test_size=HOLD_OUT_SHARE,
                stratify=stratum,
                random_state=self.split.seed,
            )
        )

    @cached_property
    def oracle(self) -> Any:
        """Base model fitted on the true classes."""
        return self.model().fit(self.split.train.X, self.split.train.y_true)

    @cached_property
    def naive(self) -> Any:
        """Base model fitted on the PU labels as if they were classes."""
        return self.model().fit(self.split.train.X, self.split.labeled)

    @cached_property
    def partial(self) -> Any:
        """Base model fitted on the PU labels of the rows that are not held out."""
        used, _ = self.parts
        return self.model().fit(self.split.train.X[used], self.split.labeled[used])

    @cached_property
    def train_score(self) -> NDArray[np.float64]:
        """P(labeled) of all training rows by the partial model."""
        return self.partial.predict_proba(self.split.train.X)[:, 1]

    @cached_property
    def test_score(self) -> NDArray[np.float64]:
        """P(labeled) of the test rows by the partial model."""
        return self.partial.predict_proba(self.split.test.X)[:, 1]

    @cached_property
    def e1(self) -> float:
        """Label frequency by Elkan and Noto: mean score of held-out labeled rows."""
        held = self.parts[1]
        return float(self.train_score[held][self.split.labeled[held] == 1].mean())

    @cached_property
    def plug_in(self) -> PlugIn:
        """The paper's estimates on all training rows."""
        return plug_in(self.train_score, self.split.train.group, self.e1)

    @cached_property
    def upsampled(self) -> Task:
        """The same task with the rarer true class drawn again until it is as large."""
        return replace(self, split=upsampled(self.split))

    @cached_property
    def with_group(self) -> Task:
        """The same task with the group among the features."""
        return replace(self, split=with_group(self.split))

    @cached_property
    def direct(self) -> tuple[Any, Any, GroupScores]:
        """Test scores, label frequencies and out-of-fold scores of our method."""
        train, seed = self.split.train, self.split.seed
        labeled = self.split.labeled == 1
        fitted = crossfit(
            self.model(), train.X, labeled, train.group, random_state=seed
        )
        scores = GroupScores(fitted.score, labeled, train.group)
        frequency = resolve_label_frequency(
            "peak_rate",
            None,
            scores,
            X=train.X,
            folds=fitted.folds,
            random_state=seed,
        )
        return median_score(fitted.estimators, self.split.test.X), frequency, scores
