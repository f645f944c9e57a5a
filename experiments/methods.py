"""Every method of the tables: from a split and a base model to decisions on test rows.

Models are fitted once per split and shared by the methods that use the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.preprocessing import CorrelationRemover
from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
from numpy.typing import NDArray
from pulearn import BaggingPuClassifier
from sklearn.model_selection import train_test_split

from experiments import variants
from experiments.data import Split, upsampled, with_group
from experiments.learners import (
    HIDDEN_LAYERS,
    base_model,
    fast_linear_svm,
    nnpu_scores,
    plain_model,
)
from experiments.rows import measure, sampling_noise
from fairpul import RecallFloor, fit_rule
from fairpul.crossfit import crossfit, median_score
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import resolve_label_frequency
from fairpul.paper import HOLD_OUT_SHARE, PlugIn, cuts, objective, plug_in, search

Decisions = NDArray[Any]

_BAGS = 10
_REGULARIZATION = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Task:
    """One split and one base model, with the models that several methods share."""

    split: Split
    dataset: str
    base: str

    def model(self) -> Any:
        """Base model, not fitted."""
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
            key=lambda C: fitted[C]
            .predict_log_proba(X[held])[np.arange(len(held)), labeled[held]]
            .sum(),
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


def oracle(task: Task) -> Decisions:
    """Learn from the true classes."""
    return task.oracle.predict(task.split.test.X)


def naive(task: Task) -> Decisions:
    """Take unlabeled rows for negatives."""
    return task.naive.predict(task.split.test.X)


def everyone_positive(task: Task) -> Decisions:
    """Accept everybody."""
    return np.ones(len(task.split.test.y_true), dtype=np.int64)


def agarwal(task: Task) -> Decisions:
    """Reduce fair classification to weighted problems (Fairlearn), with the group in X.

    The linear machine is the primal one of LIBLINEAR: each of up to 50 fits of LIBSVM
    takes seconds.
    """
    base = plain_model(task.base, task.dataset, task.split.seed)
    fast = task.base == "Lin.SVM"
    reduction = ExponentiatedGradient(
        fast_linear_svm() if fast else base,
        EqualizedOdds(),
        max_iter=10 if task.base == "SVM" else 50,
    )
    train, test = task.split.train, task.split.test
    reduction.fit(train.X_and_group, task.split.labeled, sensitive_features=train.group)
    return reduction.predict(test.X_and_group, random_state=task.split.seed)


def hardt(task: Task) -> Decisions:
    """Equalize odds by randomized thresholds on the naive scores (Fairlearn)."""
    train, test = task.split.train, task.split.test
    optimizer = ThresholdOptimizer(
        estimator=task.naive,
        constraints="equalized_odds",
        prefit=True,
        predict_method="predict_proba",
    )
    optimizer.fit(train.X, task.split.labeled, sensitive_features=train.group)
    return optimizer.predict(
        test.X, sensitive_features=test.group, random_state=task.split.seed
    )


def chzhen(task: Task) -> Decisions:
    """Recalibrate the naive scores by one threshold per group (Chzhen et al., 2019).

    That is the paper's rule for equal opportunity at label frequency 1.
    """
    split = task.split
    score = task.naive.predict_proba(split.train.X)[:, 1]
    # At labeling rates where nobody is scored near 1, the prior stays below 1.
    estimates = plug_in(score, split.train.group, 1.0)
    low, high = -estimates.positives[0], estimates.positives[1]
    value = objective(estimates, "equal_opportunity")
    best = min(np.linspace(low, high, 2001), key=lambda theta: value([theta]))
    found = np.array(cuts(estimates, [best]))
    test_score = task.naive.predict_proba(split.test.X)[:, 1]
    return (test_score >= found[split.test.group]).astype(np.int64)


def correlation_remover(task: Task) -> Decisions:
    """Remove the features' correlation with the group, then learn naively."""
    train, test = task.split.train, task.split.test
    remover = CorrelationRemover(sensitive_feature_ids=[train.X.shape[1]])
    X_train = remover.fit_transform(train.X_and_group)
    X_test = remover.transform(test.X_and_group)
    return task.model().fit(X_train, task.split.labeled).predict(X_test)


def upu(task: Task) -> Decisions:
    """Divide the score by e1 and cut the posterior at 1/2 (Elkan and Noto, 2008)."""
    return (task.test_score >= task.e1 / 2).astype(np.int64)


def wpu(task: Task) -> Decisions:
    r"""Refit with each unlabeled row as a weighted positive and negative at once.

    Weight of the positive copy: :math:`\frac{1 - c}{c} \frac{f}{1 - f}`, at most 1.
    """
    used, _ = task.parts
    X, labeled = task.split.train.X[used], task.split.labeled[used] == 1
    score, c = task.train_score[used], task.e1
    weight = np.minimum((1 - c) / c * score / (1 - score), 1.0)[~labeled]
    copies = np.concatenate([X[labeled], X[~labeled], X[~labeled]])
    target = np.repeat([1, 1, 0], [labeled.sum(), *[len(weight)] * 2])
    weights = np.concatenate([np.ones(labeled.sum()), weight, 1 - weight])
    kept = weights > 0
    model = task.model().fit(copies[kept], target[kept], sample_weight=weights[kept])
    return model.predict(task.split.test.X)


def nnpu(task: Task) -> Decisions:
    """Fit the non-negative PU risk with the base model's network (torch)."""
    split = task.split
    score = nnpu_scores(
        split.train.X,
        split.labeled,
        split.test.X,
        class_prior=float(split.train.y_true.mean()),
        hidden=HIDDEN_LAYERS[task.dataset],
        seed=split.seed,
    )
    return (score >= 0).astype(np.int64)


def bagging(task: Task) -> Decisions:
    """Average models of all labeled rows against as many unlabeled ones (pulearn)."""
    labeled = task.split.labeled
    ensemble = BaggingPuClassifier(
        plain_model(task.base, task.dataset, task.split.seed),
        n_estimators=_BAGS,
        max_samples=int(min(labeled.sum(), (labeled == 0).sum())),
        oob_score=False,
        random_state=task.split.seed,
    )
    return ensemble.fit(task.split.train.X, labeled).predict(task.split.test.X)


def paper(constraint: str) -> Callable[[Task], Decisions]:
    """Make the paper's method, as in ``FairPULClassifier(method="paper")``."""

    def decide(task: Task) -> Decisions:
        rng = np.random.RandomState(task.split.seed)
        found = np.array(cuts(task.plug_in, search(task.plug_in, constraint, rng)))
        return (task.test_score >= found[task.split.test.group]).astype(np.int64)

    return decide


def direct(constraint: str | None) -> Callable[[Task], Decisions]:
    """Make our method: out-of-fold scores, direct rates, exact optimum."""

    def decide(task: Task) -> Decisions:
        test_score, frequency, scores = task.direct
        rule = fit_rule(
            scores,
            constraint=constraint,
            label_frequency=frequency,
            random_state=task.split.seed,
        )
        return rule.decide(test_score, task.split.test.group)

    return decide


def recall_floor(task: Task) -> Decisions:
    """Accept the fewest rows that give every group the oracle's recall in training."""
    train, test = task.split.train, task.split.test
    recall = task.oracle.predict(train.X)[train.y_true == 1].mean()
    test_score, frequency, scores = task.direct
    rule = fit_rule(
        scores,
        constraint=None,
        objective=RecallFloor(float(recall)),
        label_frequency=frequency,
    )
    return rule.decide(test_score, test.group)


@dataclass(frozen=True)
class Method:
    """A method, the rows its rule was fitted on, and what is read off its decisions."""

    decide: Callable[[Task], Decisions]
    fitted_on: str
    measure: Callable[..., dict[str, float]] = measure


_TRAINING = "training rows"
METHODS = {
    "Oracle": Method(oracle, "training rows, true classes"),
    "Naive": Method(naive, _TRAINING),
    "Agarwal": Method(agarwal, _TRAINING),
    "Hardt": Method(hardt, _TRAINING),
    "Chzhen": Method(chzhen, _TRAINING),
    "Pre": Method(correlation_remover, _TRAINING),
    "uPU": Method(upu, "training rows, c held out"),
    "wPU": Method(wpu, "training rows, c held out"),
    "nnPU": Method(nnpu, "training rows, true prior"),
    "Bagging": Method(bagging, _TRAINING),
    "FairPUL-EO": Method(paper("equalized_odds"), "training rows, c held out"),
    "FairPUL-EOP": Method(paper("equal_opportunity"), "training rows, c held out"),
    "Everyone positive": Method(everyone_positive, "nothing"),
    "Unconstrained PU": Method(direct(None), "out-of-fold rows"),
    "Direct EO": Method(direct("equalized_odds"), "out-of-fold rows"),
    "Direct EOP": Method(direct("equal_opportunity"), "out-of-fold rows"),
    "Recall floor": Method(recall_floor, "out-of-fold rows, recall of the oracle"),
    "Sampling noise": Method(paper("equal_opportunity"), "nothing", sampling_noise),
}


UPSAMPLED = ("Oracle", "Naive", "FairPUL-EO", "FairPUL-EOP")


def _on(attribute: str, name: str) -> Callable[[Task], Decisions]:
    return lambda task: METHODS[name].decide(getattr(task, attribute))


for _name in UPSAMPLED:
    _rows = METHODS[_name].fitted_on
    METHODS[f"{_name} (upsampled)"] = Method(
        _on("upsampled", _name), f"{_rows}; upsampled by true class"
    )
    METHODS[f"{_name} (group in X)"] = Method(_on("with_group", _name), _rows)
for _short, _constraint in (("EO", "equalized_odds"), ("EOP", "equal_opportunity")):
    for _name, _variant, _rows in variants.VARIANTS:
        METHODS[f"FairPUL-{_short} ({_name})"] = Method(_variant(_constraint), _rows)
