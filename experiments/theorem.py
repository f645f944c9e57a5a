"""Theorem 1 on samples: risk and unfairness in the population as the rows grow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit, ndtr
from sklearn.isotonic import IsotonicRegression

from experiments.progress import Progress
from experiments.rows import RowFile
from fairpul import fit_rule
from fairpul.datasets import SimulatedData, make_two_groups
from fairpul.paper import cuts, plug_in, search

Array = NDArray[np.float64]

SIZES = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_CONSTRAINTS = ("equalized_odds", "equal_opportunity")
_RATE = 0.5
KEY = ("n", "score", "constraint", "rule", "seed")
COLUMNS = (
    "risk",
    "optimal_risk",
    "constant_risk",
    "aod",
    "eod",
    "lottery",
    "seconds",
)


def run(raw: Path, sizes: Sequence[int], draws: int) -> pd.DataFrame:
    """Measure true risk and unfairness of both rules as the sample grows, c known."""
    rows = RowFile(raw / "theorem1.csv", KEY, COLUMNS)
    done = rows.done()
    todo = []
    # By draw, so that the first one tells how long every size takes.
    for seed, n in product(range(draws), sizes):
        keys = [
            (str(n), score, constraint, rule, str(seed))
            for score in ("true posterior", "isotonic")
            for constraint in _CONSTRAINTS
            for rule in ("paper", "exact")
        ]
        if missing := [key for key in keys if key not in done]:
            todo.append((n, seed, missing))
    progress = Progress([n for n, *_ in todo])
    for n, seed, missing in todo:
        data = make_two_groups(n, label_frequency=_RATE, random_state=seed)
        rows.append([_risk_of(data, key) for key in missing])
        progress.tell(f"theorem 1, {n} rows, seed {seed}")
    return pd.read_csv(rows.path)


def _risk_of(data: SimulatedData, key: Sequence[str]) -> dict[str, Any]:
    _, kind, constraint, rule, seed = key
    start = time.perf_counter()
    group = (data.group == "b").astype(np.intp)
    score = data.score if kind == "true posterior" else _isotonic(data)
    if rule == "paper":
        estimates = plug_in(score, group, _RATE)
        found = cuts(
            estimates, search(estimates, constraint, np.random.RandomState(int(seed)))
        )
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
    return dict(zip(KEY, key, strict=True)) | {
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
    """Least risk of any rule without a gap in the population, from its ROC curves."""
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


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the draws."""
    rows = rows.assign(excess_risk=rows.risk - rows.optimal_risk)
    by = rows.groupby(["constraint", "score", "rule", "n"], sort=False)
    return by[["excess_risk", "aod", "eod", "seconds"]].mean().reset_index()
