"""Two studies beside the tables: how far annealing ends, and what Theorem 1 promises."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit, ndtr
from sklearn.isotonic import IsotonicRegression

from experiments.data import real_split, synthetic_split
from experiments.methods import Task
from experiments.rows import RowFile
from experiments.variants import published_search
from fairpul import fit_rule
from fairpul.datasets import SimulatedData, make_two_groups
from fairpul.objectives import MinimumCost
from fairpul.paper import (
    PlugIn,
    cuts,
    dual_annealing_search,
    plug_in,
    search,
    unfairness,
    weights,
)
from fairpul.solvers import solve

Array = NDArray[np.float64]

SIZES = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_CONSTRAINTS = ("equalized_odds", "equal_opportunity")
_SEARCHES: dict[str, Callable[..., list[float]]] = {
    "published": published_search,
    "box from 0": search,
    "dual annealing": dual_annealing_search,
}
_ANNEALED = (
    ("german", "Lin.SVM"),
    ("compas", "Lin.SVM"),
    ("compas", "Lin.LR"),
    ("drug", "Lin.SVM"),
    ("synthetic", "Lin.LR"),
)
_RATE = 0.5

ANNEALING_KEY = ("dataset", "base_model", "constraint", "search", "seed")
ANNEALING_COLUMNS = (
    "unfairness",
    "least_unfairness",
    "plug_in_error",
    "exact_error",
    "selection_rate",
    "seconds",
)
THEOREM_KEY = ("n", "score", "constraint", "rule", "seed")
THEOREM_COLUMNS = (
    "risk",
    "optimal_risk",
    "constant_risk",
    "aod",
    "eod",
    "lottery",
    "seconds",
)


def run_annealing(raw: Path, n_seeds: int) -> pd.DataFrame:
    """Where each search ends on one split of each data set, by the search's seed."""
    rows = RowFile(raw / "annealing.csv", ANNEALING_KEY, ANNEALING_COLUMNS)
    done = rows.done()
    for dataset, base in _ANNEALED:
        split = synthetic_split(0.8, 0) if dataset == "synthetic" else None
        task = Task(split or real_split(dataset, 0.9, 0), dataset, base)
        for constraint in _CONSTRAINTS:
            keys = [
                (dataset, base, constraint, name, str(seed))
                for name in _SEARCHES
                for seed in range(n_seeds)
            ]
            keys = [key for key in keys if key not in done]
            if not keys:
                continue
            least = least_unfairness(task.plug_in, constraint)
            best = solve(task.plug_in.program(constraint), MinimumCost()).value
            found = [_annealed(task.plug_in, key, least, best) for key in keys]
            rows.append(found)
            print(f"annealing {dataset} {base} {constraint}: done", flush=True)
    return _frame(rows, ANNEALING_KEY[:-1])


def least_unfairness(estimates: PlugIn, constraint: str) -> float:
    r"""Smallest unfairness of two groups' rules that multipliers in the box can give.

    Notes
    -----
    With :math:`u_s` the posterior odds at the cut over the group's own odds, times the
    odds of all rows, the box reaches exactly the pairs of cuts with
    :math:`\min u_s \le 1 \le \max u_s`: :math:`\sum_s P_{1s} A_s` and
    :math:`\sum_s P_{0s} B_s` are constant, and :math:`B_s / A_s` is the odds at the cut.
    Equal opportunity leaves one multiplier, so its rules are met one by one.
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
    return dict(zip(ANNEALING_KEY, key, strict=True)) | {
        "unfairness": _value(estimates, constraint, found),
        "least_unfairness": least,
        "plug_in_error": error,
        "exact_error": best,
        "selection_rate": positives @ rates[:, 0] + negatives @ rates[:, 1],
        "seconds": round(seconds, 3),
    }


def run_theorem(raw: Path, sizes: Sequence[int], draws: int) -> pd.DataFrame:
    """True risk and unfairness of both rules as the sample grows, c known."""
    rows = RowFile(raw / "theorem1.csv", THEOREM_KEY, THEOREM_COLUMNS)
    done = rows.done()
    for n in sizes:
        for seed in range(draws):
            keys = [
                (str(n), score, constraint, rule, str(seed))
                for score in ("true posterior", "isotonic")
                for constraint in _CONSTRAINTS
                for rule in ("paper", "exact")
            ]
            if all(key in done for key in keys):
                continue
            data = make_two_groups(n, label_frequency=_RATE, random_state=seed)
            found = [_risk_of(data, key) for key in keys if key not in done]
            rows.append(found)
        print(f"theorem 1, n = {n}: done", flush=True)
    return _frame(rows, THEOREM_KEY[:-1])


def _risk_of(data: SimulatedData, key: Sequence[str]) -> dict[str, Any]:
    _, kind, constraint, rule, seed = key
    start = time.perf_counter()
    group = (data.group == "b").astype(np.intp)
    score = data.score if kind == "true posterior" else _isotonic(data)
    if rule == "paper":
        estimates = plug_in(score, group, _RATE)
        found = cuts(estimates, search(estimates, constraint, _rng(seed)))
        table = tuple(((cut, 1.0),) for cut in found)
    else:
        fitted = fit_rule(
            score,
            data.labeled,
            group,
            constraint=constraint,
            label_frequency=_RATE,
            lottery=True,
            random_state=int(seed),
        )
        table = fitted.cuts
    rates = np.array([_population_rates(data, score, s, table[s]) for s in (0, 1)])
    share = np.array([(group == s).mean() for s in (0, 1)])
    prior = np.array(list(data.class_prior.values()))
    gaps = abs(rates[1] - rates[0])
    return dict(zip(THEOREM_KEY, key, strict=True)) | {
        "risk": share @ (prior * (1 - rates[:, 0]) + (1 - prior) * rates[:, 1]),
        "optimal_risk": optimal_risk(data, share, constraint),
        "constant_risk": min(share @ prior, share @ (1 - prior)),
        "aod": gaps.mean(),
        "eod": gaps[0],
        "lottery": max(1 - max(w for _, w in cuts_of) for cuts_of in table),
        "seconds": round(time.perf_counter() - start, 3),
    }


def _isotonic(data: SimulatedData) -> Array:
    """Isotonic regression of the label on the posterior, in each group by itself."""
    score = np.empty(len(data.labeled))
    for key in data.class_prior:
        rows = data.group == key
        fit = IsotonicRegression(y_min=0, y_max=_RATE, out_of_bounds="clip")
        score[rows] = fit.fit_transform(data.posterior[rows], data.labeled[rows])
    return score


def _population_rates(
    data: SimulatedData, score: Array, number: int, table: Sequence[tuple[float, float]]
) -> Array:
    """TPR and FPR in the population of one group's cuts on a monotone score."""
    key = tuple(data.class_prior)[number]
    rows = data.group == key
    posterior, own = data.posterior[rows], score[rows]
    total = np.zeros(2)
    for cut, weight in table:
        # The cut on the posterior that accepts the same rows, midway to the next row.
        accepted, other = posterior[own >= cut], posterior[own < cut]
        above = float(accepted.min()) if len(accepted) else 1.0
        below = float(other.max()) if len(other) else 0.0
        constant = not len(accepted) or not len(other)
        level = float(not len(accepted)) if constant else (above + below) / 2
        rates = data.population_rates(level)[key]
        total += weight * np.array([rates["tpr"], rates["fpr"]])
    return total


def optimal_risk(data: SimulatedData, share: Array, constraint: str) -> float:
    """Least risk of any rule that is fair in the population, from its ROC curves."""
    level = 1 / (1 + np.exp(np.linspace(-25, 25, 100_001)))
    rates = _roc(data, level)
    prior = np.array(list(data.class_prior.values()))
    positives, negatives = share * prior, share * (1 - prior)
    if constraint == "equal_opportunity":
        common = np.linspace(0, 1, 20_001)
        fprs = [np.interp(common, tpr, fpr) for tpr, fpr in rates]
        risk = positives.sum() * (1 - common) + np.dot(negatives, fprs)
    else:
        common = np.linspace(0, 1, 200_001)
        tpr = np.min([np.interp(common, fpr, tpr) for tpr, fpr in rates], axis=0)
        risk = positives.sum() * (1 - tpr) + negatives.sum() * common
    return float(risk.min())


def _roc(data: SimulatedData, level: Array) -> list[tuple[Array, Array]]:
    """TPR and FPR of every group along the cuts, from strict to lenient."""
    curves = []
    for key, prior in data.class_prior.items():
        distance = data.separation[key]
        offset = (logit(prior) - logit(level)) / distance
        curves.append((ndtr(offset + distance / 2), ndtr(offset - distance / 2)))
    return curves


def write_tables(theorem: pd.DataFrame, annealing: pd.DataFrame, results: Path) -> None:
    """Write the rows of both studies and their summaries."""
    theorem.to_csv(results / "theorem1.csv", index=False, quoting=csv.QUOTE_MINIMAL)
    annealing.to_csv(results / "annealing.csv", index=False)
    distance = annealing.assign(
        distance=annealing.unfairness - annealing.least_unfairness,
        excess_error=annealing.plug_in_error - annealing.exact_error,
    )
    by = ["dataset", "base_model", "constraint", "search"]
    summary = distance.groupby(by, sort=False).agg(
        least=("least_unfairness", "first"),
        median=("unfairness", "median"),
        q90=("unfairness", lambda u: u.quantile(0.9)),
        worst=("unfairness", "max"),
        median_distance=("distance", "median"),
        excess_error=("excess_error", "median"),
        selection_rate=("selection_rate", "median"),
        seconds=("seconds", "median"),
    )
    text = ["# Annealing's distance from the exact optimum", ""]
    text += _markdown(summary.reset_index())
    text += ["", "# Theorem 1: means over the draws", ""]
    means = theorem.assign(excess_risk=theorem.risk - theorem.optimal_risk)
    means = means.groupby(["constraint", "score", "rule", "n"], sort=False)
    text += _markdown(means[["excess_risk", "aod", "eod", "seconds"]].mean().reset_index())
    (results / "studies.md").write_text("\n".join(text) + "\n", encoding="utf-8")


def _markdown(frame: pd.DataFrame) -> list[str]:
    lines = [" | ".join(frame.columns), " | ".join("---" for _ in frame.columns)]
    for row in frame.itertuples(index=False):
        cells = (f"{x:.4f}" if isinstance(x, float) else str(x) for x in row)
        lines.append(" | ".join(cells))
    return [f"| {line} |" for line in lines]


def _frame(rows: RowFile, text: Sequence[str]) -> pd.DataFrame:
    frame = pd.read_csv(rows.path, dtype=dict.fromkeys(text, str))
    return frame.assign(n=frame.n.astype(int)) if "n" in frame else frame


def _rng(seed: str) -> np.random.RandomState:
    return np.random.RandomState(int(seed))
