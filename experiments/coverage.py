"""How often 95% intervals hold the truth: ``python -m experiments.coverage``.

Two studies on simulated patients, whose truth is known:

* *fixed*: a decision fixed beforehand, by the true posterior; truth in closed form.
* *tuned*: the whole chain of ``FairPULClassifier`` (cross-fitting, snapped cuts or a
  lottery, median score), audited on the rows that tuned it; truth on fresh rows.

Label frequencies are known, as FPRs assume; the one-sided bounds on them are counted
too, with and without an anchor. One row per cell and quantity, written as it is done.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpul import Audit, FairPULClassifier, audit
from fairpul.datasets import make_underdiagnosed
from fairpul.datasets.simulated_data import SimulatedData
from fairpul.estimate import Estimate

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
CUT = 0.4
VISITS = 3
SIZES = (2000, 10_000, 500)
# Many fresh rows, so that their own error is small beside that of the interval.
FRESH = 80_000
ACCEPTABLE = 0.93, 0.98
# What the library says where data cannot carry an interval, or a fit.
_REFUSALS = ("clusters with a labeled row", "Cross-fitting needs", "no labeled row")
BASES = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "boosting": HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, random_state=0
    ),
}
Truth = dict[Any, dict[str, float]]


@dataclass(frozen=True)
class Cell:
    """One design: a study, its data and its method."""

    study: str
    base: str
    constraint: str
    n: int
    groups: int
    label_frequency: str
    rows: str
    anchor: str = "anchor"


@dataclass(frozen=True)
class Row:
    """Coverage of one quantity in one cell."""

    study: str
    base: str
    constraint: str
    n: int
    groups: int
    label_frequency: str
    rows: str
    anchor: str
    quantity: str
    runs: int
    refused: int
    intervals: int
    covered: int
    coverage: float
    standard_error: float
    mean_width: float
    bias: float
    spread: float
    mean_labeled: float
    cause: str = ""


def cells(sizes: Sequence[int]) -> Iterator[Cell]:
    """List fixed decisions first, which take a moment, then the chain by size."""
    frequencies = ("equal", "unequal")
    for n, k, c in itertools.product(sizes, (2, 4, 6), frequencies):
        for rows in ("alone", "clustered"):
            yield Cell("fixed", "posterior", "none", n, k, c, rows)
    for n, c in itertools.product(sizes, frequencies):
        yield Cell("fixed", "posterior", "none", n, 2, c, "alone", "no anchor")
    chain = [
        ("logistic", "equal_opportunity", 2, "equal", "alone"),
        ("logistic", "equal_opportunity", 2, "unequal", "alone"),
        ("logistic", "equal_opportunity", 6, "unequal", "alone"),
        ("logistic", "equalized_odds", 2, "unequal", "alone"),
        ("logistic", "equalized_odds", 6, "unequal", "alone"),
        ("logistic", "equal_opportunity", 2, "unequal", "clustered"),
        ("boosting", "equal_opportunity", 2, "unequal", "alone"),
        ("boosting", "equalized_odds", 2, "unequal", "alone"),
        ("boosting", "equal_opportunity", 2, "unequal", "clustered"),
    ]
    for base in BASES:  # the slow one last
        of_base = [design for design in chain if design[0] == base]
        for n, (_, constraint, k, c, rows) in itertools.product(sizes, of_base):
            yield Cell("tuned", base, constraint, n, k, c, rows)


@dataclass(frozen=True)
class Sample:
    """Simulated rows, and the cluster of each where they belong together."""

    data: SimulatedData
    X: np.ndarray
    cluster: np.ndarray | None


def draw(cell: Cell, n: int, seed: int) -> Sample:
    """Rows of a cell; clustered ones are visits of a patient, measured anew."""
    c = 0.5 if cell.label_frequency == "equal" else np.linspace(0.3, 0.7, cell.groups)
    visits = VISITS if cell.rows == "clustered" else 1
    data = make_underdiagnosed(
        n // visits,
        groups=range(cell.groups),
        label_frequency=c,
        anchor_share=0.15 if cell.anchor == "anchor" else 0.0,
        random_state=seed,
    )
    if visits == 1:
        return Sample(data, data.X, None)
    patient = np.repeat(np.arange(len(data.group)), visits)
    rng = np.random.default_rng(seed)
    noise = 0.3 * data.X.std(axis=0) * rng.normal(size=(len(patient), data.X.shape[1]))
    return Sample(data, data.X[patient] + noise, patient)


def of_rows(sample: Sample, column: Any) -> Any:
    """Value of each row from that of its patient."""
    return column if sample.cluster is None else column[sample.cluster]


def fixed(cell: Cell, seed: int) -> tuple[Audit, Truth]:
    """Audit of a decision by the posterior, and its closed-form rates."""
    sample = draw(cell, cell.n, seed)
    data = sample.data
    found = audit(
        labeled=of_rows(sample, data.labeled),
        group=of_rows(sample, data.group),
        score=of_rows(sample, data.score),
        decision=of_rows(sample, data.posterior) >= CUT,
        label_frequency=data.label_frequency,
        cluster=sample.cluster,
    )
    return found, data.population_rates(CUT)


def tuned(cell: Cell, seed: int) -> tuple[Audit, Truth]:
    """Audit of the fitted classifier by itself, and its rates on fresh rows."""
    sample, fresh = draw(cell, cell.n, seed), fresh_rows(cell)
    data = sample.data
    model = FairPULClassifier(
        BASES[cell.base],
        constraint=cell.constraint,
        label_frequency=data.label_frequency,
        random_state=seed,
    )
    model.fit(
        sample.X,
        of_rows(sample, data.labeled),
        sensitive_features=of_rows(sample, data.group),
        groups=sample.cluster,
    )
    group, y_true = (of_rows(fresh, c) for c in (fresh.data.group, fresh.data.y_true))
    accepted = model.acceptance_probability(fresh.X, sensitive_features=group)
    truth = {
        key: {
            "tpr": accepted[(group == key) & (y_true == 1)].mean(),
            "fpr": accepted[(group == key) & (y_true == 0)].mean(),
            "selection_rate": accepted[group == key].mean(),
        }
        for key in range(cell.groups)
    }
    return model.audit_, truth


@lru_cache(maxsize=4)
def _fresh(groups: int, rows: str) -> Sample:
    cell = Cell("tuned", "", "", FRESH, groups, "equal", rows)
    return draw(cell, FRESH, 10**6)


def fresh_rows(cell: Cell) -> Sample:
    """Rows that show the truth, the same for all runs; labels play no part."""
    return _fresh(cell.groups, cell.rows)


class Counter:
    """Intervals of one quantity, and how far its estimates are from the truth."""

    def __init__(self) -> None:
        self.covered: list[bool] = []
        self.width: list[float] = []
        self.error: list[float] = []

    def add(self, value: Estimate, truth: float) -> None:
        """Count an interval; an undefined one is none."""
        if np.isnan(value.estimate):
            return
        # 1e-12: a truth of exactly 0 or 1 may meet an end that rounding moved.
        self.covered.append(value.low - 1e-12 <= truth <= value.high + 1e-12)
        self.width.append(value.high - value.low)
        self.error.append(value.estimate - truth)


def run(cell: Cell, runs: int, first_seed: int) -> list[Row]:
    """Coverage of every quantity of a cell."""
    one = fixed if cell.study == "fixed" else tuned
    counters: dict[str, Counter] = defaultdict(Counter)
    done, labeled = 0, []
    for seed in range(first_seed, first_seed + runs):
        try:
            found, truth = one(cell, seed)
        except ValueError as error:
            if not any(text in str(error) for text in _REFUSALS):
                raise
            continue
        done += 1
        count(found, truth, counters)
        labeled.append(_labeled(found))
    if not done:
        counters["all"] = Counter()
    return [
        summary(cell, name, counter, runs, done, float(np.mean(labeled or [0])))
        for name, counter in counters.items()
    ]


def count(found: Audit, truth: Truth, counters: dict[str, Counter]) -> None:
    """Add the intervals of one audit."""
    for name in ("tpr", "fpr", "selection_rate"):
        values = [rates[name] for rates in truth.values()]
        for key, value in zip(truth, values, strict=True):
            counters[name].add(found.rates[key][name], value)
        counters[f"{name} gap"].add(found.gaps[name], max(values) - min(values))
    for key, known in found.checks["label_frequency"].items():
        bound = found.checks["label_frequency_bound"][key]
        counters["label frequency bound"].add(bound, known.estimate)


def _labeled(found: Audit) -> float:
    """Smallest effective number of labeled rows of a group."""
    scores = found.evidence.scores
    return min(scores.m_effective(s) for s in range(len(scores.groups)))


def summary(
    cell: Cell, name: str, counter: Counter, runs: int, done: int, labeled: float
) -> Row:
    """Row of one quantity."""
    n, covered = len(counter.covered), sum(counter.covered)
    nothing = [np.nan] * 5
    numbers = nothing
    if n:
        share = covered / n
        # Not 0 at a coverage of 1: as if one interval more had missed.
        least = (covered + 1) / (n + 2)
        error = float(np.sqrt(least * (1 - least) / n))
        bias, spread = float(np.mean(counter.error)), float(np.std(counter.error))
        numbers = [share, error, float(np.mean(counter.width)), bias, spread]
    row = Row(*astuple(cell), name, runs, runs - done, n, covered, *numbers, labeled)
    return replace(row, cause=cause(row))


def cause(row: Row) -> str:
    """Why coverage lies outside .93 to .98, as far as the numbers show; else empty."""
    low, high = ACCEPTABLE
    if row.intervals == 0:
        return "no interval: too few labeled rows or clusters, refused or undefined"
    if row.quantity == "label frequency bound":
        return _of_bound(row)
    if low <= row.coverage <= high:
        return ""
    near = low if row.coverage < low else high
    if abs(row.coverage - near) <= 2 * row.standard_error:
        return "within two standard errors of this study"
    half = row.mean_width / 2
    if row.coverage > high:
        if "gap" in row.quantity and row.study == "tuned":
            return "tuned: the interval holds all gaps that tuning may hide, from 0 on"
        ratio = half / (1.96 * row.spread)
        return f"interval {ratio:.2f} times as wide as the errors need"
    if abs(row.bias) > 0.5 * row.spread:
        return f"estimates off by {row.bias:+.3f} on average, spread {row.spread:.3f}"
    return f"interval {half / (1.96 * row.spread):.2f} times as wide as the errors need"


def _of_bound(row: Row) -> str:
    if row.coverage >= 0.95:
        return ""
    if row.coverage + 2 * row.standard_error >= 0.95:
        return "within two standard errors of this study"
    return "below .95"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells that the file lacks, and append their rows."""
    options = _parser().parse_args(arguments)
    warnings.simplefilter("ignore")  # doubts and small groups are what is measured
    done = _done(options.out)
    started = time.monotonic()
    for cell in cells(options.sizes):
        if tuple(map(str, astuple(cell))) in done:
            continue
        if time.monotonic() - started > 60 * options.minutes:
            print(f"Stopped before {cell}: the time is over. Run again to go on.")
            break
        found = run(cell, _runs(cell, options), options.seed)
        _append(options.out, found, options.seed)
        print(f"{time.monotonic() - started:6.0f} s  {cell}", flush=True)
    _print_outside(options.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--runs", type=int, default=300, help="of a fixed decision")
    parser.add_argument("--chain-runs", type=int, default=60, help="logistic base")
    parser.add_argument("--boosting-runs", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=60, help="then stop early")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def _runs(cell: Cell, options: argparse.Namespace) -> int:
    if cell.study == "fixed":
        return int(options.runs)
    boosting = cell.base == "boosting"
    return int(options.boosting_runs if boosting else options.chain_runs)


def _done(path: Path) -> set[tuple[str, ...]]:
    """Cells that the file holds, as text."""
    if not path.exists():
        return set()
    width = len(fields(Cell))
    with path.open(encoding="utf-8", newline="") as file:
        return {tuple(line[:width]) for line in csv.reader(file)}


def _append(path: Path, rows: Sequence[Row], seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([*(field.name for field in fields(Row)), "seed"])
        writer.writerows([*map(_cell, astuple(row)), seed] for row in rows)


def _cell(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def _print_outside(path: Path) -> None:
    """Print every row whose coverage lies outside, with its cause."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    outside = [row for row in rows if row["cause"]]
    print(f"{len(rows) - len(outside)} of {len(rows)} inside; outside:")
    for row in outside:
        where = " ".join(list(row.values())[: len(fields(Cell))])
        print(f"  {row['coverage']:>6}  {row['quantity']}: {row['cause']} ({where})")


if __name__ == "__main__":
    main()
