"""Methods of the PU-fairness benchmark: from a task to decisions on its test rows.

All post-processors get the same cross-fitted scores, and decide by the median score of
the fold models. The libraries of rivals are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from experiments.methods import (
    Decisions,
    direct,
    everyone_positive,
    naive,
    oracle,
    paper,
)
from experiments.pu_data import PUTask
from fairpul import Capacity, RecallFloor, fit_rule

Labels = NDArray[np.int64]
CAPACITY = 0.2
RECALL = 0.8
#: Largest gaps of the frontiers, beside 0.
TOLERANCES = (0.05, 0.1, 0.2)
_SHORT = {"EO": "equalized_odds", "EOP": "equal_opportunity"}
# What Fairlearn and error-parity call the same constraints.
_THEIRS = {"EO": "equalized_odds", "EOP": "true_positive_rate_parity"}


@dataclass(frozen=True)
class PUMethod:
    """A method, what it has to be told, and how it fills a capacity.

    Attributes
    ----------
    decide : callable
        From a task to a decision, 1 or 0, for each of its test rows.
    told : str
        "labels", or what it knows beyond the PU labels.
    fill : callable, optional
        The same, for a method that can be asked to accept a given share of rows.
    """

    decide: Callable[[PUTask], Decisions]
    told: str = "labels"
    fill: Callable[[PUTask], Decisions] | None = None


def nobody_positive(task: PUTask) -> Decisions:
    """Reject everybody."""
    return np.zeros(len(task.split.test.y_true), dtype=np.int64)


def of_classes(constraint: str, **options: Any) -> Callable[[PUTask], Decisions]:
    """Make our method on true classes: what post-processing reaches at best."""

    def decide(task: PUTask) -> Decisions:
        test_score, scores = task.of_classes
        rule = fit_rule(
            scores,
            constraint=constraint,
            label_frequency=1.0,
            random_state=task.split.seed,
            **options,
        )
        return rule.decide(test_score, task.split.test.group)

    return decide


def top_share(model: str) -> Callable[[PUTask], Decisions]:
    """Accept the highest scores of a model of the task, all groups together."""

    def decide(task: PUTask) -> Decisions:
        score = getattr(task, model).predict_proba(task.split.test.X)[:, 1]
        accepted = np.zeros(len(score), dtype=np.int64)
        best = np.argsort(-score, kind="stable")
        accepted[best[: round(CAPACITY * len(score))]] = 1
        return accepted

    return decide


def as_classes(task: PUTask) -> Labels:
    """PU labels as if they were classes."""
    return task.split.labeled


def elkan_noto(task: PUTask) -> Labels:
    r"""Classes drawn from the posteriors of Elkan and Noto (2008).

    Both rivals take 0 or 1 for a class, and no weights. Thresholded posteriors would be
    a function of the score, whose ROC curve is perfect in every group; drawn ones give
    the same rates as weighted rows do, in expectation. An unlabeled row is positive
    with :math:`\frac{1 - c}{c} \frac{f}{1 - f}`, at most 1; c is the mean score of the
    labeled rows, one for all groups.
    """
    _, _, scores = task.direct
    c = float(scores.score[scores.labeled == 1].mean())
    return _drawn(task, np.full(len(scores.score), c))


def by_group(task: PUTask) -> Labels:
    """Draw as :func:`elkan_noto`, at our label frequency of each group."""
    _, frequency, scores = task.direct
    c = np.array([frequency[key].estimate for key in scores.groups])
    return _drawn(task, c[scores.codes])


def _drawn(task: PUTask, c: NDArray[np.float64]) -> Labels:
    _, _, scores = task.direct
    f = np.minimum(scores.score, 1 - 1e-9)
    posterior = np.where(task.split.labeled == 1, 1.0, (1 - c) / c * f / (1 - f))
    draw = np.random.default_rng(task.split.seed).uniform(size=len(posterior))
    return (draw < posterior).astype(np.int64)


class Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose score is the only feature."""

    def fit(self, X: Any, y: Any) -> Given:
        """Do nothing; Fairlearn takes what has this method for a classifier."""
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the score."""
        return X[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return True


def fairlearn(
    constraint: str, classes: Callable[[PUTask], Labels]
) -> Callable[[PUTask], Decisions]:
    """Make Fairlearn's ThresholdOptimizer."""

    def decide(task: PUTask) -> Decisions:
        from fairlearn.postprocessing import ThresholdOptimizer

        test_score, _, scores = task.direct
        optimizer = ThresholdOptimizer(
            estimator=Given(),
            constraints=_THEIRS[constraint],
            prefit=True,
            predict_method="predict",
        )
        given = scores.score[:, None], classes(task)
        optimizer.fit(*given, sensitive_features=task.split.train.group)
        return optimizer.predict(
            test_score[:, None],
            sensitive_features=task.split.test.group,
            random_state=task.split.seed,
        )

    return decide


def error_parity(
    constraint: str, classes: Callable[[PUTask], Labels]
) -> Callable[[PUTask], Decisions]:
    """Make error-parity's RelaxedThresholdOptimizer at tolerance 0."""

    def decide(task: PUTask) -> Decisions:
        from error_parity import RelaxedThresholdOptimizer

        test_score, _, scores = task.direct
        optimizer = RelaxedThresholdOptimizer(
            predictor=lambda X: X[:, 0],
            constraint=_THEIRS[constraint],
            tolerance=0.0,
            seed=task.split.seed,
        )
        given = {"X": scores.score[:, None], "y": classes(task)}
        optimizer.fit(**given, group=task.split.train.group)
        # Points inside its ROC curves draw from the global state, not from its seed.
        np.random.seed(task.split.seed)  # noqa: NPY002
        return optimizer(test_score[:, None], group=task.split.test.group)

    return decide


def _known(task: PUTask) -> dict[int, float]:
    return task.known


_FULL = Capacity(CAPACITY)
_CLASSES = "true classes"
METHODS = {
    "Oracle": PUMethod(oracle, _CLASSES, top_share("oracle")),
    "Everyone positive": PUMethod(everyone_positive, "nothing"),
    "Nobody positive": PUMethod(nobody_positive, "nothing"),
    "Naive": PUMethod(naive, fill=top_share("naive")),
    "Unconstrained PU": PUMethod(direct(None), fill=direct(None, objective=_FULL)),
    "Recall floor": PUMethod(direct(None, objective=RecallFloor(RECALL))),
}
for _name, _constraint in _SHORT.items():
    METHODS |= {
        f"Oracle {_name}": PUMethod(
            of_classes(_constraint),
            _CLASSES,
            of_classes(_constraint, objective=_FULL),
        ),
        f"FairPUL-{_name}": PUMethod(paper(_constraint)),
        f"Direct {_name}": PUMethod(
            direct(_constraint), fill=direct(_constraint, objective=_FULL)
        ),
    }
    for _kind, _classes in {"labels": as_classes, "posteriors": elkan_noto}.items():
        METHODS |= {
            f"Fairlearn {_name} ({_kind})": PUMethod(fairlearn(_name, _classes)),
            f"error-parity {_name} ({_kind})": PUMethod(error_parity(_name, _classes)),
        }
METHODS |= {
    "Fairlearn EO (posteriors, our c)": PUMethod(fairlearn("EO", by_group)),
    "Direct EO (true c)": PUMethod(
        direct("equalized_odds", _known),
        "true label frequencies",
        direct("equalized_odds", _known, objective=_FULL),
    ),
}
for _width in TOLERANCES:
    _within = {"constraint": "equalized_odds", "tolerance": _width}
    METHODS |= {
        f"Oracle EO within {_width}": PUMethod(
            of_classes(**_within), _CLASSES, of_classes(**_within, objective=_FULL)
        ),
        f"Direct EO within {_width}": PUMethod(
            direct(**_within), fill=direct(**_within, objective=_FULL)
        ),
    }
