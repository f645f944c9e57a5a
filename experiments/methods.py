"""Every method of the tables: from a split and a base model to decisions on test rows.

Models are fitted once per split and shared by the methods that use the same one. The
libraries of rivals are imported where they are used: the harness works without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import variants
from experiments.learners import (
    HIDDEN_LAYERS,
    fast_linear_svm,
    nnpu_scores,
    plain_model,
)
from experiments.rows import measure, sampling_noise
from experiments.task import Task
from fairpul import RecallFloor, fit_rule
from fairpul.paper import cuts, objective, plug_in, search

Decisions = NDArray[Any]

_BAGS = 10


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
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

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
    from fairlearn.postprocessing import ThresholdOptimizer

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
    from fairlearn.preprocessing import CorrelationRemover

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
    from pulearn import BaggingPuClassifier

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


def direct(
    constraint: str | None,
    frequency: Callable[[Task], Any] | None = None,
    **options: Any,
) -> Callable[[Task], Decisions]:
    """Make our method: out-of-fold scores, direct rates, exact optimum.

    ``frequency`` gives label frequencies that are known; ``options`` are further ones
    of ``fit_rule``.
    """

    def decide(task: Task) -> Decisions:
        test_score, estimated, scores = task.direct
        rule = fit_rule(
            scores,
            constraint=constraint,
            label_frequency=estimated if frequency is None else frequency(task),
            random_state=task.split.seed,
            **options,
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
    "Sampling noise, oracle": Method(oracle, "nothing", sampling_noise),
}


#: Methods that also run on upsampled rows, and with the group among the features.
UPSAMPLED = ("Oracle", "Naive", "FairPUL-EO", "FairPUL-EOP", "Sampling noise")


def _on(attribute: str, name: str) -> Callable[[Task], Decisions]:
    return lambda task: METHODS[name].decide(getattr(task, attribute))


for _name in UPSAMPLED:
    _method = METHODS[_name]
    METHODS[f"{_name} (upsampled)"] = replace(
        _method,
        decide=_on("upsampled", _name),
        fitted_on=f"{_method.fitted_on}; upsampled by true class",
    )
    METHODS[f"{_name} (group in X)"] = replace(_method, decide=_on("with_group", _name))
for _short, _constraint in (("EO", "equalized_odds"), ("EOP", "equal_opportunity")):
    for _name, _variant, _rows in variants.VARIANTS:
        METHODS[f"FairPUL-{_short} ({_name})"] = Method(_variant(_constraint), _rows)
