"""How often 95% intervals hold the truth: ``python -m experiments.coverage``.

Three studies on simulated patients, whose truth is known:

* *fixed*: a decision fixed beforehand, by the true posterior; truth in closed form.
* *before*: cuts fixed beforehand on the cross-fitted score of a base model, audited on
  the rows that the model was fitted on; truth on fresh rows.
* *tuned*: the whole chain of ``FairPULClassifier`` (cross-fitting, snapped cuts or a
  lottery, median score), audited on the rows that tuned it; truth on fresh rows.

Label frequencies are known, as FPRs assume; the one-sided bounds on them are counted
too, with and without an anchor. One row per cell and quantity, written as it is done.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.coverage_rows import (
    Cell,
    Counter,
    Row,
    append,
    cells_in,
    summary,
    write_page,
)
from fairpul import Audit, FairPULClassifier, audit
from fairpul.datasets import make_underdiagnosed
from fairpul.datasets.simulated_data import SimulatedData

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
CUT = 0.4
VISITS = 3
SIZES = (2000, 10_000, 500)
# Patients drawn to show the truth: all of the diseased are kept and one in so many of
# the healthy. All runs share them, so their own error must be small beside that of the
# intervals: of an FPR .0008 and .0009 with 2 and 6 groups, against .006 and .011 at
# n = 10,000.
FRESH, ONE_HEALTHY_IN = 320_000, 2
# What the library says where data cannot carry an interval, or a fit.
_REFUSALS = ("clusters with a labeled row", "Cross-fitting needs", "no labeled row")
BASES = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "boosting": HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, random_state=0
    ),
}
# Of the chain with boosting, which takes ten times as long.
_BOOSTING = [
    ("equal_opportunity", 2, "equal", "alone"),
    ("equal_opportunity", 2, "unequal", "alone"),
    ("equal_opportunity", 6, "unequal", "alone"),
    ("equalized_odds", 2, "unequal", "alone"),
    ("equalized_odds", 6, "unequal", "alone"),
    ("equal_opportunity", 2, "unequal", "clustered"),
]
Truth = dict[Any, dict[str, float]]


def cells(sizes: Sequence[int]) -> Iterator[Cell]:
    """List fixed decisions first, which take a moment, then the chain by size."""
    frequencies, togetherness = ("equal", "unequal"), ("alone", "clustered")
    for n, k, c, rows in itertools.product(sizes, (2, 4, 6), frequencies, togetherness):
        yield Cell("fixed", "posterior", "none", n, k, c, rows)
    for n, k, c in itertools.product(sizes, (2, 6), frequencies):
        yield Cell("fixed", "posterior", "none", n, k, c, "alone", "no anchor")
    constraints = ("equal_opportunity", "equalized_odds")
    logistic = itertools.product(constraints, (2, 6), frequencies, togetherness)
    for base, designs in (("logistic", list(logistic)), ("boosting", _BOOSTING)):
        for n, (constraint, k, c, rows) in itertools.product(sizes, designs):
            yield Cell("tuned", base, constraint, n, k, c, rows)
        without = Cell("tuned", base, constraints[0], 0, 2, "unequal", "alone")
        for n in sizes:
            yield replace(without, n=n, anchor="no anchor")


class Sample:
    """Simulated rows; clustered ones are visits of a patient, measured anew."""

    def __init__(self, cell: Cell, n_patients: int, visits: int, seed: int) -> None:
        equal = cell.label_frequency == "equal"
        self.data: SimulatedData = make_underdiagnosed(
            n_patients,
            groups=range(cell.groups),
            label_frequency=0.5 if equal else np.linspace(0.3, 0.7, cell.groups),
            anchor_share=0.15 if cell.anchor == "anchor" else 0.0,
            random_state=seed,
        )
        self.cluster: np.ndarray | None = None
        self.X = self.data.X
        if cell.rows == "clustered":
            self.cluster = np.repeat(np.arange(n_patients), visits)
            shape = n_patients * visits, self.X.shape[1]
            noise = np.random.default_rng(seed).normal(size=shape)
            self.X = self.X[self.cluster] + 0.3 * self.X.std(axis=0) * noise

    def of_rows(self, column: Any) -> Any:
        """Value of each row from that of its patient."""
        return column if self.cluster is None else column[self.cluster]


def draw(cell: Cell, seed: int) -> Sample:
    """Rows of a cell."""
    visits = VISITS if cell.rows == "clustered" else 1
    return Sample(cell, cell.n // visits, visits, seed)


def fixed(cell: Cell, seed: int) -> dict[str, tuple[Audit, Truth]]:
    """Audit of a decision by the posterior, and its closed-form rates."""
    sample = draw(cell, seed)
    data = sample.data
    found = audit(
        labeled=sample.of_rows(data.labeled),
        group=sample.of_rows(data.group),
        score=sample.of_rows(data.score),
        decision=sample.of_rows(data.posterior) >= CUT,
        label_frequency=data.label_frequency,
        cluster=sample.cluster,
    )
    return {"fixed": (found, data.population_rates(CUT))}


def tuned(cell: Cell, seed: int) -> dict[str, tuple[Audit, Truth]]:
    """Audits of the fitted classifier, and of its score before it is tuned."""
    sample, fresh = draw(cell, seed), fresh_rows(cell)
    data = sample.data
    model = FairPULClassifier(
        BASES[cell.base],
        constraint=cell.constraint,
        label_frequency=data.label_frequency,
        random_state=seed,
    )
    model.fit(
        sample.X,
        sample.of_rows(data.labeled),
        sensitive_features=sample.of_rows(data.group),
        groups=sample.cluster,
    )
    group = fresh.group
    score = model.decision_function(fresh.X, sensitive_features=group)
    accepted = model.rule_.acceptance_probability(score, group)
    found = {"tuned": (model.audit_, fresh.rates(accepted))}
    if cell.constraint == "equal_opportunity":
        cut = CUT * np.array([data.label_frequency[s] for s in range(cell.groups)])
        scores = model.audit_.evidence.scores
        before = audit(
            scores,
            decision=scores.score >= cut[scores.codes],
            label_frequency=data.label_frequency,
        )
        found["before"] = before, fresh.rates(score >= cut[group])
    return found


class Fresh:
    """Rows that show the truth; more of the diseased than there are."""

    def __init__(self, cell: Cell) -> None:
        # One visit of each: a rate is that of any visit.
        sample = Sample(cell, FRESH, 1, 10**6)
        healthy = sample.data.y_true == 0
        kept = ~healthy | (np.arange(FRESH) % ONE_HEALTHY_IN == 0)
        self.X, self.group = sample.X[kept], sample.data.group[kept]
        self.posterior = sample.data.posterior[kept]
        self.diseased, self.prior = ~healthy[kept], sample.data.class_prior

    def rates(self, accepted: np.ndarray) -> Truth:
        """Rates of a decision in the population, by group."""
        truth: Truth = {}
        for key, prior in self.prior.items():
            own = self.group == key
            tpr = float(accepted[own & self.diseased].mean())
            fpr = float(accepted[own & ~self.diseased].mean())
            selected = prior * tpr + (1 - prior) * fpr
            truth[key] = {"tpr": tpr, "fpr": fpr, "selection_rate": selected}
        return truth


@lru_cache(maxsize=4)
def _fresh(design: Cell) -> Fresh:
    return Fresh(design)


def fresh_rows(cell: Cell) -> Fresh:
    """Rows that show the truth, the same for all runs; labels play no part."""
    design = Cell("", "", "", 0, cell.groups, "equal", cell.rows, cell.anchor)
    return _fresh(design)


def run(cell: Cell, runs: int, first_seed: int) -> list[Row]:
    """Coverage of every quantity of a cell."""
    one = fixed if cell.study == "fixed" else tuned
    counters: dict[tuple[str, str], Counter] = defaultdict(Counter)
    done, labeled = 0, []
    for seed in range(first_seed, first_seed + runs):
        try:
            studies = one(cell, seed)
        except ValueError as error:
            if not any(text in str(error) for text in _REFUSALS):
                raise
            continue
        done += 1
        for study, (found, truth) in studies.items():
            count(found, truth, study, counters)
        labeled.append(_labeled(found))
    if not done:
        counters[cell.study, "all"] = Counter()
    mean_labeled = float(np.mean(labeled or [0]))
    return [
        summary(_as(cell, study), name, counter, runs, done, mean_labeled)
        for (study, name), counter in counters.items()
    ]


def _as(cell: Cell, study: str) -> Cell:
    constraint = "none" if study == "before" else cell.constraint
    return replace(cell, study=study, constraint=constraint)


def count(
    found: Audit, truth: Truth, study: str, counters: dict[tuple[str, str], Counter]
) -> None:
    """Add the intervals of one audit."""
    for name in ("tpr", "fpr", "selection_rate"):
        values = [rates[name] for rates in truth.values()]
        for key, value in zip(truth, values, strict=True):
            counters[study, name].add(found.rates[key][name], value)
        gap = max(values) - min(values)
        counters[study, f"{name} gap"].add(found.gaps[name], gap)
    if study != "before":  # the bounds are of the score, not of the decision
        for key, known in found.checks["label_frequency"].items():
            bound = found.checks["label_frequency_bound"][key]
            counters[study, "label frequency bound"].add(bound, known.estimate)


def _labeled(found: Audit) -> float:
    """Smallest effective number of labeled rows of a group."""
    scores = found.evidence.scores
    return min(scores.m_effective(s) for s in range(len(scores.groups)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells that the file lacks, append their rows, and write the page."""
    options = _parser().parse_args(arguments)
    warnings.simplefilter("ignore")  # doubts and small groups are what is measured
    done = cells_in(options.out)
    started = time.monotonic()
    for cell in cells(options.sizes):
        if tuple(map(str, astuple(cell))) in done:
            continue
        if time.monotonic() - started > 60 * options.minutes:
            print(f"Stopped before {cell}: the time is over. Run again to go on.")
            break
        append(options.out, run(cell, _runs(cell, options), options.seed), options.seed)
        print(f"{time.monotonic() - started:6.0f} s  {cell}", flush=True)
    write_page(options.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--runs", type=int, default=800, help="of a fixed decision")
    parser.add_argument("--chain-runs", type=int, default=150, help="logistic base")
    parser.add_argument("--boosting-runs", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=90, help="then stop early")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def _runs(cell: Cell, options: argparse.Namespace) -> int:
    if cell.study == "fixed":
        return int(options.runs)
    boosting = cell.base == "boosting"
    return int(options.boosting_runs if boosting else options.chain_runs)


if __name__ == "__main__":
    main()
