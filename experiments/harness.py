"""The loop over cells and splits: resumes, tells the time left, keeps failures."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from experiments.data import Split, real_split, synthetic_split, unlabeled_split
from experiments.methods import METHODS
from experiments.plan import Cell
from experiments.progress import Progress
from experiments.rows import METRICS, RowFile
from experiments.task import Task

KEY = ("dataset", "base_model", "labeling_rate", "extra_share", "method", "seed")
COLUMNS = (*METRICS, "label_frequency", "seconds", "fitted_on", "failure")


def run_cells(rows: RowFile, runs: Sequence[tuple[Cell, int]]) -> None:
    """Run the methods that have no row yet, and say how long the rest will take."""
    done = rows.done()
    todo = [
        (cell, seed, missing)
        for cell, seed in runs
        if (missing := [m for m in cell.methods if _key(cell, m, seed) not in done])
    ]
    progress = Progress([(cell.dataset, cell.base) for cell, *_ in todo])
    for cell, seed, missing in todo:
        rows.append(list(run(cell, seed, missing)))
        progress.tell(f"{cell.dataset} {cell.base} rate {cell.rate} seed {seed}")


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
            row["label_frequency"] = _label_frequency(task, name)
        except (ArithmeticError, RuntimeError, ValueError) as failure:
            row["failure"] = f"{type(failure).__name__}: {failure}"
        row["seconds"] = round(time.perf_counter() - start, 3)
        yield row


def _label_frequency(task: Task, name: str) -> float:
    """Label frequency that a method used, where all groups share one."""
    if name in ("FairPUL-EO", "FairPUL-EOP", "uPU", "wPU"):
        return task.e1
    return np.nan


def _split(cell: Cell, seed: int) -> Split:
    if cell.dataset == "synthetic":
        return synthetic_split(cell.rate, seed)
    if cell.extra_share is not None:
        return unlabeled_split(cell.extra_share, cell.rate, seed)
    return real_split(cell.dataset, cell.rate, seed, bounded=cell.base == "SVM")


def _key(cell: Cell, method: str, seed: int) -> tuple[str, ...]:
    share = "" if cell.extra_share is None else str(cell.extra_share)
    return cell.dataset, cell.base, str(cell.rate), share, method, str(seed)
