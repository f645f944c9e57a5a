"""Run everything: ``python -m experiments.run``; interrupted, it goes on where it was."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments import figures, studies, tables
from experiments.data import Split, real_split, synthetic_split, unlabeled_split
from experiments.methods import METHODS, Task
from experiments.plan import (
    SYNTHETIC_TRIALS,
    Cell,
    main_cells,
    synthetic_cells,
    table_cells,
    unlabeled_cells,
)
from experiments.rows import METRICS, RowFile
from fairpul.label_frequency import LabelFrequencyWarning

KEY = ("dataset", "base_model", "labeling_rate", "extra_share", "method", "seed")
COLUMNS = (*METRICS, "label_frequency", "seconds", "fitted_on", "failure")
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then write the tables and figures."""
    options = _parser().parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    # Doubts about label frequencies and small groups are what the tables measure.
    warnings.simplefilter("ignore", LabelFrequencyWarning)
    warnings.filterwarnings("ignore", "Groups .* have fewer than")
    raw, results = options.raw, options.results
    rows = RowFile(raw / "rows.csv", KEY, COLUMNS)
    run_cells(rows, list(_runs(options.splits, smoke=options.smoke)))
    if options.main:
        more = [(cell, seed) for seed in range(40) for cell in main_cells()]
        run_cells(rows, more)
    sizes = (1000, 10_000) if options.smoke else studies.SIZES
    theorem = studies.run_theorem(raw, sizes, 1 if options.smoke else 5)
    annealing = studies.run_annealing(raw, 1 if options.smoke else 30)
    results.mkdir(parents=True, exist_ok=True)
    measured = tables.read(rows)
    tables.write(measured, results, options.splits, "replication")
    if options.main:
        tables.write(measured, results, 40, "replication-40")
    studies.write_tables(theorem, annealing, results)
    figures.draw(measured, theorem, results, options.splits)
    print(f"Tables and figures are in {results}")


def run_cells(rows: RowFile, runs: Sequence[tuple[Cell, int]]) -> None:
    """Run the methods that have no row yet, and say how long the rest will take."""
    done = rows.done()
    todo = [
        (cell, seed, missing)
        for cell, seed in runs
        if (missing := [m for m in cell.methods if _key(cell, m, seed) not in done])
    ]
    spent: dict[tuple[str, str], list[float]] = {}
    for number, (cell, seed, missing) in enumerate(todo, start=1):
        start = time.perf_counter()
        rows.append(list(run(cell, seed, missing)))
        kind = (cell.dataset, cell.base)
        spent.setdefault(kind, []).append(time.perf_counter() - start)
        left = _time_left(spent, [(c.dataset, c.base) for c, *_ in todo[number:]])
        print(
            f"[{number}/{len(todo)}] {cell.dataset} {cell.base} rate {cell.rate} "
            f"seed {seed}: {spent[kind][-1]:.0f} s, about {left / 60:.0f} min left",
            flush=True,
        )


def run(cell: Cell, seed: int, methods: Iterable[str]) -> Iterator[dict[str, object]]:
    """Rows of some methods on one split; a method that fails gives a row as well."""
    task = Task(_split(cell, seed), cell.dataset, cell.base)
    test = task.split.test
    for name in methods:
        method = METHODS[name]
        row: dict[str, object] = dict(
            zip(KEY, _key(cell, name, seed), strict=True), fitted_on=method.fitted_on
        )
        start = time.perf_counter()
        try:
            row |= method.measure(test.y_true, method.decide(task), test.group)
        except (ArithmeticError, RuntimeError, ValueError) as failure:
            row["failure"] = f"{type(failure).__name__}: {failure}"
        row["seconds"] = round(time.perf_counter() - start, 3)
        row["label_frequency"] = _label_frequency(task, name)
        yield row


def _label_frequency(task: Task, name: str) -> float:
    """The label frequency that a method used, where all groups share one."""
    if name in ("FairPUL-EO", "FairPUL-EOP", "uPU", "wPU"):
        return task.e1
    return np.nan


def _split(cell: Cell, seed: int) -> Split:
    if cell.dataset == "synthetic":
        return synthetic_split(cell.rate, seed)
    if cell.extra_share is not None:
        return unlabeled_split(cell.extra_share, cell.rate, seed)
    return real_split(cell.dataset, cell.rate, seed, unit_scale=cell.base == "SVM")


def _key(cell: Cell, method: str, seed: int) -> tuple[str, ...]:
    share = "" if cell.extra_share is None else str(cell.extra_share)
    return cell.dataset, cell.base, str(cell.rate), share, method, str(seed)


def _runs(splits: int, *, smoke: bool) -> Iterator[tuple[Cell, int]]:
    """Runs by seed, so that an interrupted run has whole splits of everything."""
    for seed in range(splits):
        for cell in [*table_cells(), *unlabeled_cells()]:
            yield cell, seed
        if seed < (1 if smoke else SYNTHETIC_TRIALS):
            for cell in synthetic_cells():
                yield cell, seed


def _time_left(
    spent: dict[tuple[str, str], list[float]], todo: list[tuple[str, str]]
) -> float:
    """Mean seconds of the same kind of cell, of all kinds where it is the first."""
    overall = float(np.mean([s for seconds in spent.values() for s in seconds]))
    return sum(float(np.mean(spent.get(kind, [overall]))) for kind in todo)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10, help="train/test splits")
    parser.add_argument("--main", action="store_true", help="main rows at 40 splits")
    parser.add_argument("--smoke", action="store_true", help="small studies")
    parser.add_argument("--raw", type=Path, default=Path("build/replication"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser


if __name__ == "__main__":
    main()
