"""Rows of the coverage study: what they hold, their file, and a page of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from fairpul.estimate import Estimate

ACCEPTABLE = 0.93, 0.98
QUANTITIES = {
    "tpr": "TPR",
    "fpr": "FPR",
    "selection_rate": "selection",
    "tpr gap": "TPR gap",
    "fpr gap": "FPR gap",
    "selection_rate gap": "selection gap",
    "label frequency bound": "bound on c",
}


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
class Row(Cell):
    """Coverage of one quantity in one cell."""

    quantity: str = ""
    runs: int = 0
    refused: int = 0
    intervals: int = 0
    covered: int = 0
    coverage: float = np.nan
    standard_error: float = np.nan
    mean_width: float = np.nan
    bias: float = np.nan
    spread: float = np.nan
    mean_labeled: float = np.nan
    cause: str = ""

    @property
    def cell(self) -> tuple[Any, ...]:
        """Values of the cell that the row belongs to."""
        return astuple(self)[: len(fields(Cell))]


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


def summary(
    cell: Cell, name: str, counter: Counter, runs: int, done: int, labeled: float
) -> Row:
    """Row of one quantity."""
    n, covered = len(counter.covered), sum(counter.covered)
    row = Row(*astuple(cell), name, runs, runs - done, n, covered, mean_labeled=labeled)
    if n:
        # Not 0 at a coverage of 1: as if one interval more had missed.
        least = (covered + 1) / (n + 2)
        row = replace(
            row,
            coverage=covered / n,
            standard_error=float(np.sqrt(least * (1 - least) / n)),
            mean_width=float(np.mean(counter.width)),
            bias=float(np.mean(counter.error)),
            spread=float(np.std(counter.error)),
        )
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
    return _of_wide(row) if row.coverage > high else _of_short(row)


def _of_wide(row: Row) -> str:
    if "gap" in row.quantity and row.study == "tuned":
        return "tuned: the interval holds all gaps that tuning may hide, from 0 on"
    if "gap" in row.quantity and row.groups == 2:
        return (
            "a true gap within some two standard errors of 0: only the low end can miss"
        )
    if "gap" in row.quantity:
        pairs = row.groups * (row.groups - 1) // 2
        return f"both ends hold for all {pairs} pairs of groups at once"
    if row.constraint == "equalized_odds" and row.quantity in ("tpr", "fpr"):
        return "a lottery: the interval counts its draws, the rate is their expectation"
    return _width(row)


def _of_short(row: Row) -> str:
    whole = (row.runs - row.refused) * row.groups
    if row.quantity == "fpr" and row.intervals < 0.1 * whole:
        return (
            "only where a group has 20 labeled rows by chance, far more than expected: "
            f"estimates off by {row.bias:+.3f}"
        )
    if abs(row.bias) > 0.5 * row.spread:
        return f"estimates off by {row.bias:+.3f} on average, spread {row.spread:.3f}"
    return _width(row)


def _width(row: Row) -> str:
    ratio = row.mean_width / 2 / (1.96 * row.spread)
    return f"interval {ratio:.2f} times as wide as the errors need"


def _of_bound(row: Row) -> str:
    if row.coverage >= 0.95:
        return ""
    if row.coverage + 2 * row.standard_error >= 0.95:
        return "within two standard errors of this study"
    return "below .95"


def append(path: Path, rows: Sequence[Row], seed: int) -> None:
    """Add rows to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([*(field.name for field in fields(Row)), "seed"])
        writer.writerows([*map(_text, astuple(row)), seed] for row in rows)


def _text(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def read(path: Path) -> list[Row]:
    """Rows of the file, with causes as this module sees them now."""
    kinds = {"int": int, "float": float, "str": str}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            Row(*(kinds[str(f.type)](line[f.name]) for f in fields(Row)))
            for line in csv.DictReader(file)
        ]
    return [replace(row, cause=cause(row)) for row in rows]


def cells_in(path: Path) -> set[tuple[str, ...]]:
    """Cells that the file holds, as text."""
    if not path.exists():
        return set()
    return {tuple(map(str, row.cell)) for row in read(path)}


def write_page(path: Path) -> None:
    """Write all cells of a file as tables, next to it."""
    rows = read(path)
    outside = [row for row in rows if row.cause]
    text = [
        f"# Coverage\n\n{len(rows) - len(outside)} of {len(rows)} entries lie where "
        "they should. Those outside are **bold**; their causes are below.\n",
        "## All designs of a size together\n",
        *_pooled(rows),
        *_tables(rows),
        "## Outside, and why\n",
        *_causes(outside),
    ]
    path.with_suffix(".md").write_text("\n".join(text), encoding="utf-8")
    print(f"{len(rows) - len(outside)} of {len(rows)} inside, see {path}")


def _pooled(rows: Sequence[Row]) -> Iterator[str]:
    """Coverage of all intervals of a study, base model and size."""
    yield _line(["study", "base", "n", *QUANTITIES.values()])
    yield _line(["---"] * (3 + len(QUANTITIES)))
    keys = {(row.study, row.base != "boosting", row.base, row.n) for row in rows}
    for study, _, base, n in sorted(keys):
        own = [row for row in rows if (row.study, row.base, row.n) == (study, base, n)]
        entries = []
        for name in QUANTITIES:
            of = [row for row in own if row.quantity == name]
            total = sum(row.intervals for row in of)
            covered = sum(row.covered for row in of)
            entries.append(f"{covered / total:.3f}" if total else "\N{EN DASH}")
        yield _line([study, base, n, *entries])
    yield ""


def _tables(rows: Sequence[Row]) -> Iterator[str]:
    head = ["base", "constraint", "rows", "c", "anchor", "groups", "n", "fewest labels"]
    for study in dict.fromkeys(row.study for row in rows):
        yield f"## {study.capitalize()}\n"
        yield _line([*head, "runs", *QUANTITIES.values()])
        yield _line(["---"] * (len(head) + 1 + len(QUANTITIES)))
        own = sorted((row for row in rows if row.study == study), key=_order)
        for _, group in groupby(own, key=_order):
            of = {row.quantity: row for row in group}
            row = next(iter(of.values()))
            yield _line(
                [
                    *(row.base, row.constraint.replace("_", " "), row.rows),
                    *(row.label_frequency, "" if row.anchor == "anchor" else "none"),
                    *(row.groups, row.n, f"{row.mean_labeled:.0f}"),
                    row.runs - row.refused,
                    *(_entry(of.get(name)) for name in QUANTITIES),
                ]
            )
        yield ""


def _order(row: Row) -> tuple[Any, ...]:
    design = row.rows, row.label_frequency, row.anchor
    return row.base == "boosting", row.constraint, *design, row.groups, row.n


def _entry(row: Row | None) -> str:
    if row is None or row.intervals == 0:
        return "\N{EN DASH}"
    value = f"{row.coverage:.3f}"
    return f"**{value}**" if row.cause else value


def _causes(outside: Sequence[Row]) -> Iterator[str]:
    yield _line(["cell", "quantity", "coverage", "SE", "cause"])
    yield _line(["---"] * 5)
    for row in sorted(outside, key=lambda row: (row.study, _order(row))):
        where = ", ".join(
            [
                *(row.study, row.base, row.constraint.replace("_", " ")),
                *(row.rows, f"c {row.label_frequency}", row.anchor),
                *(f"{row.groups} groups", f"n = {row.n}"),
            ]
        )
        number = [_entry(row).strip("*"), f"{row.standard_error:.3f}"]
        if row.intervals == 0:
            number = ["\N{EN DASH}"] * 2
        yield _line([where, QUANTITIES.get(row.quantity, "all"), *number, row.cause])


def _line(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
