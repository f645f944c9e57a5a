"""Run everything: ``python -m experiments.run``; interrupted, it goes on from there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments import annealing, figures, tables, theorem
from experiments.harness import COLUMNS, KEY, ignore_expected_warnings, run_cells
from experiments.plan import (
    SYNTHETIC_TRIALS,
    Cell,
    main_cells,
    synthetic_cells,
    table_cells,
    unlabeled_cells,
)
from experiments.rows import RowFile

RESULTS = Path(__file__).parent / "results"
_MAIN_SPLITS = 40
_SMALL_SIZES = (1000, 10_000)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then write the tables and figures."""
    options = _parser().parse_args(arguments)
    ignore_expected_warnings()
    raw, results = options.raw, options.results
    rows = RowFile(raw / "rows.csv", KEY, COLUMNS)
    run_cells(rows, list(_runs(options.splits, smoke=options.smoke)))
    if options.main:
        more = [(cell, seed) for seed in range(_MAIN_SPLITS) for cell in main_cells()]
        run_cells(rows, more)
    sizes, draws = (_SMALL_SIZES, 1) if options.smoke else (theorem.SIZES, 5)
    by_size = theorem.run(raw, sizes, draws)
    by_search = annealing.run(raw, 1 if options.smoke else 30)
    results.mkdir(parents=True, exist_ok=True)
    measured = tables.read(rows)
    tables.write(measured, results, options.splits, "replication")
    if options.main:
        tables.write(measured, results, _MAIN_SPLITS, "replication-40", main_cells())
    tables.write_study(by_size, theorem.summarize(by_size), results, "theorem1")
    tables.write_study(by_search, annealing.summarize(by_search), results, "annealing")
    figures.draw(measured, by_size, results, options.splits)
    print(f"Tables and figures are in {results}")


def _runs(splits: int, *, smoke: bool) -> Iterator[tuple[Cell, int]]:
    """List runs by seed, so that an interrupted run has whole splits of everything."""
    for seed in range(splits):
        for cell in [*table_cells(), *unlabeled_cells()]:
            yield cell, seed
        if seed < (1 if smoke else SYNTHETIC_TRIALS):
            for cell in synthetic_cells():
                yield cell, seed


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
