"""Departures from the paper's text, each named for the one thing it changes.

They exist to explain published numbers; none of them is in the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairpul.lottery import exact_mixtures
from fairpul.objectives import MinimumCost
from fairpul.paper import (
    PlugIn,
    RatePairs,
    anneal,
    cuts,
    dual_annealing_search,
    plug_in,
    search,
    unfairness,
    weights,
)
from fairpul.rule import acceptance
from fairpul.solvers import solve

if TYPE_CHECKING:
    from experiments.task import Task

Decisions = NDArray[Any]
#: From multipliers to the gains and losses of the groups.
Weighing = Callable[[PlugIn, Sequence[float]], tuple[list[float], list[float]]]

_QUANTILE = 0.95


def published_search(
    estimates: PlugIn,
    constraint: str,
    rng: np.random.RandomState,
    weigh: Weighing = weights,
) -> list[float]:
    """Anneal as published: from a uniform point of (-2, 2)^2, without any box."""

    def value(multipliers: Sequence[float]) -> float:
        rates: RatePairs = estimates.rates(*weigh(estimates, multipliers))
        return unfairness(rates, constraint)

    n_free = len(estimates.positives) - 1
    n = n_free if constraint == "equal_opportunity" else 2 * n_free
    return anneal(value, rng.uniform(-2, 2, n).tolist(), rng)


def printed_sign(
    estimates: PlugIn, multipliers: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Weigh as printed: a plus sign in group 1 (erratum E1)."""
    gain, loss = weights(estimates, multipliers)
    return gain, [loss[0], *(-b for b in loss[1:])]


def public_code(
    estimates: PlugIn, multipliers: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Weigh as the authors' program: plus in both groups, P(Y=0) of the other one."""
    swapped = replace(estimates, negatives=estimates.negatives[::-1])
    gain, loss = weights(swapped, multipliers)
    return gain, [-b for b in loss]


def accept(
    score: NDArray[np.float64],
    group: NDArray[np.intp],
    label_frequency: float,
    gain: Sequence[float],
    loss: Sequence[float],
) -> Decisions:
    r"""Decisions :math:`\eta A_s - (1 - \eta) B_s \ge 0`, reversed rules included."""
    a, b = np.array(gain)[group], np.array(loss)[group]
    total = a + b
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = label_frequency * b / total
    decision = np.where(total > 0, score >= cut, score <= cut)
    return np.where(total == 0, b <= 0, decision).astype(np.int64)


def published(constraint: str, weigh: Weighing = weights, on_test: bool = False) -> Any:
    """Search as published, under any reading of the rule and on any rows."""

    def decide(task: Task) -> Decisions:
        test, estimates = task.split.test, task.plug_in
        if on_test:
            estimates = plug_in(task.test_score, test.group, task.e1)
        rng = np.random.RandomState(task.split.seed)
        found = published_search(estimates, constraint, rng, weigh)
        sides = weigh(estimates, found)
        return accept(task.test_score, test.group, task.e1, *sides)

    return decide


def tuned(
    constraint: str, estimate: Callable[[Task], PlugIn], find: Any = search
) -> Any:
    """Search on other rows, with another label frequency, or in another way."""

    def decide(task: Task) -> Decisions:
        estimates = estimate(task)
        rng = np.random.RandomState(task.split.seed)
        found = np.array(cuts(estimates, find(estimates, constraint, rng)))
        return (task.test_score >= found[task.split.test.group]).astype(np.int64)

    return decide


def exact(constraint: str) -> Any:
    """Take the exact randomized optimum of the paper's own estimates."""

    def decide(task: Task) -> Decisions:
        program = task.plug_in.program(constraint)
        mixtures = exact_mixtures(program.hulls, solve(program, MinimumCost()))
        table = tuple(
            tuple((float(hull.points.cut[j]), mixture[j]) for j in sorted(mixture))
            for hull, mixture in zip(program.hulls, mixtures, strict=True)
        )
        probability = acceptance(task.test_score, task.split.test.group, table)
        rng = np.random.default_rng(task.split.seed)
        return (rng.uniform(size=len(probability)) < probability).astype(np.int64)

    return decide


def _held_out(task: Task) -> PlugIn:
    held = task.parts[1]
    return plug_in(task.train_score[held], task.split.train.group[held], task.e1)


def _test_rows(task: Task) -> PlugIn:
    return plug_in(task.test_score, task.split.test.group, task.e1)


def _at(label_frequency: Callable[[Task], float]) -> Callable[[Task], PlugIn]:
    return lambda task: plug_in(
        task.train_score, task.split.train.group, label_frequency(task)
    )


def _high_quantile(task: Task) -> float:
    return float(np.quantile(task.train_score, _QUANTILE))


def _changed(change: Any) -> Any:
    return partial(tuned, estimate=change)


_TRAINING = "training rows, c held out"
#: Name, maker of the method from a constraint, and the rows the rule is fitted on.
VARIANTS = (
    ("exact", exact, _TRAINING),
    ("hold-out rows", _changed(_held_out), "held-out rows"),
    ("test rows", _changed(_test_rows), "test rows"),
    ("true c", _changed(_at(lambda task: task.split.label_frequency)), "training rows"),
    ("c at 95% quantile", _changed(_at(_high_quantile)), "training rows"),
    (
        "dual annealing",
        partial(tuned, estimate=lambda task: task.plug_in, find=dual_annealing_search),
        _TRAINING,
    ),
    ("published search", published, _TRAINING),
    ("printed sign", partial(published, weigh=printed_sign), _TRAINING),
    ("authors' code", partial(published, weigh=public_code, on_test=True), "test rows"),
)
