"""How far simulated annealing ends from the least unfairness that its box allows.

For two groups that least is found by going through all pairs of cuts. More groups have
one pair of multipliers each, as the paper remarks, and are held against the exact
mixture, which leaves no gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.data import Split, four_races_split, real_split, synthetic_split
from experiments.progress import Progress
from experiments.rows import RowFile
from experiments.task import Task
from experiments.variants import published_search
from fairpul.objectives import MinimumCost
from fairpul.paper import (
    PlugIn,
    dual_annealing_search,
    search,
    unfairness,
    weights,
)
from fairpul.solvers import solve

Array = NDArray[np.float64]

FOUR_RACES = "compas, four races"
_CONSTRAINTS = ("equalized_odds", "equal_opportunity")
_SEARCHES: dict[str, Callable[..., list[float]]] = {
    "published": published_search,
    "box from 0": search,
    "dual annealing": dual_annealing_search,
}
_SPLITS = (
    ("german", "Lin.SVM"),
    ("compas", "Lin.SVM"),
    ("compas", "Lin.LR"),
    ("drug", "Lin.SVM"),
    ("synthetic", "Lin.LR"),
    (FOUR_RACES, "Lin.LR"),
)
KEY = ("dataset", "base_model", "constraint", "search", "seed")
COLUMNS = (
    "unfairness",
    "least_unfairness",
    "plug_in_error",
    "exact_error",
    "selection_rate",
    "seconds",
)


def run(raw: Path, n_seeds: int) -> pd.DataFrame:
    """Where each search ends on one split of each data set, by the search's seed."""
    rows = RowFile(raw / "annealing.csv", KEY, COLUMNS)
    done = rows.done()
    todo = []
    for (dataset, base), constraint in product(_SPLITS, _CONSTRAINTS):
        keys = [
            (dataset, base, constraint, name, str(seed))
            for name in _SEARCHES
            for seed in range(n_seeds)
        ]
        if missing := [key for key in keys if key not in done]:
            todo.append((dataset, base, constraint, missing))
    progress = Progress([dataset for dataset, *_ in todo])
    for dataset, base, constraint, missing in todo:
        estimates = Task(_split(dataset), dataset, base).plug_in
        best = solve(estimates.program(constraint), MinimumCost())
        if dataset == FOUR_RACES:
            least = float(np.ptp(best.tpr))  # 0: the exact mixture has no gap
        else:
            least = least_unfairness(estimates, constraint)
        rows.append([_annealed(estimates, key, least, best.value) for key in missing])
        progress.tell(f"annealing {dataset} {base} {constraint}")
    return pd.read_csv(rows.path)


def _split(dataset: str) -> Split:
    if dataset == "synthetic":
        return synthetic_split(0.8, 0)
    if dataset == FOUR_RACES:
        return four_races_split(0.9, 0)
    return real_split(dataset, 0.9, 0)


def least_unfairness(estimates: PlugIn, constraint: str) -> float:
    r"""Smallest unfairness of two groups' rules that multipliers in the box can give.

    Notes
    -----
    With :math:`u_s` the posterior odds at the cut over the group's own odds, times the
    odds of all rows, the box reaches exactly the pairs of cuts with
    :math:`\min u_s \le 1 \le \max u_s`: :math:`\sum_s P_{1s} A_s` and
    :math:`\sum_s P_{0s} B_s` are constant, and :math:`B_s / A_s` is the odds at the
    cut. Equal opportunity leaves one multiplier, so its rules are met one by one.
    """
    if constraint == "equal_opportunity":
        return min(_value(estimates, constraint, [t]) for t in _steps(estimates))
    (t0, f0, low0, high0), (t1, f1, low1, high1) = (
        _every_rule(estimates, s) for s in range(2)
    )
    gaps = (abs(t1[:, None] - t0) + abs(f1[:, None] - f0)) / 2
    inside = (low1[:, None] < 1) & (high0 >= 1) | (high1[:, None] >= 1) & (low0 < 1)
    return float(gaps[inside].min())


def _steps(estimates: PlugIn) -> list[float]:
    """One multiplier between any two at which some row changes sides."""
    (p0, p1), c = estimates.positives, estimates.label_frequency
    at = [p1 * (2 - c / estimates.score[1]), -p0 * (2 - c / estimates.score[0])]
    changes = np.unique(np.clip(np.concatenate([*at, [-p0, p1]]), -p0, p1))
    return ((changes[1:] + changes[:-1]) / 2).tolist()


def _every_rule(estimates: PlugIn, number: int) -> tuple[Array, Array, Array, Array]:
    """TPR and FPR of a group at every cut, and the interval of relative odds it spans.

    A cut accepts the same rows from the next lower score, exclusive, to its own.
    """
    points, c = estimates.points(number), estimates.label_frequency
    prior = points.labeled_share / c
    fpr = (points.selection_rate - prior * points.tpr) / (1 - prior)
    positives, negatives = sum(estimates.positives), sum(estimates.negatives)
    own = estimates.negatives[number] / estimates.positives[number]
    posterior = np.minimum(np.unique(estimates.score[number])[::-1] / c, 1.0)
    with np.errstate(divide="ignore"):
        relative = posterior / (1 - posterior) * own * positives / negatives
    # Everybody is accepted down to odds of 0, inclusive.
    return points.tpr, fpr, np.append(relative, -1.0), np.append(np.inf, relative)


def _value(estimates: PlugIn, constraint: str, multipliers: Sequence[float]) -> float:
    return unfairness(estimates.rates(*weights(estimates, multipliers)), constraint)


def _annealed(
    estimates: PlugIn, key: Sequence[str], least: float, best: float
) -> dict[str, Any]:
    *_, constraint, name, seed = key
    start = time.perf_counter()
    rng = np.random.RandomState(int(seed))
    found = _SEARCHES[name](estimates, constraint, rng)
    seconds = time.perf_counter() - start
    rates = np.array(estimates.rates(*weights(estimates, found)))
    positives, negatives = np.array(estimates.positives), np.array(estimates.negatives)
    error = positives @ (1 - rates[:, 0]) + negatives @ rates[:, 1]
    return dict(zip(KEY, key, strict=True)) | {
        "unfairness": _value(estimates, constraint, found),
        "least_unfairness": least,
        "plug_in_error": error,
        "exact_error": best,
        "selection_rate": positives @ rates[:, 0] + negatives @ rates[:, 1],
        "seconds": round(seconds, 3),
    }


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """Distance of every search on every data set, over the seeds."""
    rows = rows.assign(
        distance=rows.unfairness - rows.least_unfairness,
        excess_error=rows.plug_in_error - rows.exact_error,
    )
    by = ["dataset", "base_model", "constraint", "search"]
    found = rows.groupby(by, sort=False).agg(
        least=("least_unfairness", "first"),
        median=("unfairness", "median"),
        worst=("unfairness", "max"),
        median_distance=("distance", "median"),
        median_excess_error=("excess_error", "median"),
        selection_rate=("selection_rate", "median"),
        seconds=("seconds", "median"),
    )
    return found.reset_index()
