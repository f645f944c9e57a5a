"""The loop over cells and splits: resumes, tells the time left, keeps failures."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments.data import Split, real_split, synthetic_split, unlabeled_split
from experiments.methods import METHODS
from experiments.plan import Cell
from experiments.progress import Progress
from experiments.rows import METRICS, RowFile
from experiments.task import Task
from fairpul.label_frequency import LabelFrequencyWarning

KEY = ("dataset", "base_model", "labeling_rate", "extra_share", "method", "seed")
COLUMNS = (*METRICS, "label_frequency", "seconds", "fitted_on", "failure")


#: Rows of some methods on one split of a cell.
Run = Callable[[Any, int, Iterable[str]], Iterable[dict[str, object]]]
_FAILURES = (ArithmeticError, ImportError, RuntimeError, ValueError)


def run_cells(rows: RowFile, runs: Sequence[tuple[Cell, int]]) -> None:
    """Run the methods that have no row yet, and say how long the rest will take."""
    run_missing(rows, runs, run, _key)


def run_missing(
    rows: RowFile,
    runs: Sequence[tuple[Any, int]],
    run: Run,
    key: Callable[[Any, str, int], tuple[str, ...]],
) -> None:
    """Run the methods of any cells that have no row yet.

    A cell has a dataset, a base model and methods; its text names it in the progress.
    """
    done = rows.done()
    todo = [
        (cell, seed, missing)
        for cell, seed in runs
        if (missing := [m for m in cell.methods if key(cell, m, seed) not in done])
    ]
    progress = Progress([(cell.dataset, cell.base) for cell, *_ in todo])
    for cell, seed, missing in todo:
        rows.append(list(run(cell, seed, missing)))
        progress.tell(f"{cell} seed {seed}")


def run(cell: Cell, seed: int, methods: Iterable[str]) -> Iterator[dict[str, object]]:
    """Rows of some methods on one split; a method that fails gives a row as well."""
    task = Task(_split(cell, seed), cell.dataset, cell.base)
    test = task.split.test

    def measured(name: str) -> dict[str, object]:
        method = METHODS[name]
        found = method.measure(test.y_true, method.decide(task), test.group)
        return found | {"label_frequency": _label_frequency(task, name)}

    for name in methods:
        row = dict(zip(KEY, _key(cell, name, seed), strict=True))
        yield attempt(row | {"fitted_on": METHODS[name].fitted_on}, measured, name)


def attempt(
    row: dict[str, object], measured: Callable[[str], dict[str, object]], name: str
) -> dict[str, object]:
    """Add to a row what a method measures and its time, or why it failed."""
    start = time.perf_counter()
    try:
        row |= measured(name)
    except _FAILURES as failure:
        row["failure"] = f"{type(failure).__name__}: {failure}"
    row["seconds"] = round(time.perf_counter() - start, 3)
    return row


def ignore_expected_warnings() -> None:
    """Silence what the tables measure: doubts about label frequencies, small groups."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", LabelFrequencyWarning)
    warnings.filterwarnings("ignore", "Groups .* have fewer than")


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
