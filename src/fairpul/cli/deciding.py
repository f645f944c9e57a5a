"""Decisions written beside the rows of a file, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from fairpul._files import replacing
from fairpul.cli.files import CSV, PARQUET, batches
from fairpul.frames import DECISION
from fairpul.rule import DecisionRule


def decide_file(
    source: Path,
    rule: DecisionRule,
    target: Path,
    *,
    score: str,
    groups: Sequence[str],
    row_id: str | None,
) -> dict[str, int]:
    """Write all rows with a column ``decision``; return how many were accepted.

    A row without a decision is an error, and then no file is written: a group that the
    rule does not know, a missing score.
    """
    if rule.has_lottery and row_id is None:
        raise ValueError(
            "This rule draws lots, so it needs --row-id, a column of integers that "
            "name the rows. A rule that constrains the TPR alone needs none."
        )
    rows = accepted = 0
    undecided: list[pl.DataFrame] = []
    with replacing(target) as beside, _writer(target, beside) as writer:
        for batch in batches([source], None, "Deciding"):
            decided = rule.apply(
                batch, score=score, group=list(groups) or None, row_id=row_id
            )
            undecided.append(_undecided(decided, groups))
            if not any(map(len, undecided)):
                writer.write(decided)
            rows += len(decided)
            accepted += int((decided[DECISION] == 1).sum())
        if any(map(len, undecided)):
            raise ValueError(_why(pl.concat(undecided), rule, groups))
    return {"rows": rows, "accepted": accepted}


def _undecided(decided: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """Count the groups of rows without a decision, each once."""
    without = decided.filter(pl.col(DECISION) == -1)
    text = [pl.col(name).cast(pl.String).fill_null("(missing)") for name in groups]
    key = pl.concat_str(text, separator="/") if text else pl.lit("all")
    return without.select(key.alias("group")).group_by("group").len()


def _why(undecided: pl.DataFrame, rule: DecisionRule, groups: Sequence[str]) -> str:
    total = undecided.group_by("group").agg(pl.col("len").sum()).sort("group")
    counts = ", ".join(f"{group!r}: {n}" for group, n in total.rows()[:8])
    return (
        f"{total['len'].sum()} rows have no decision, by group {counts}. The rule "
        f"knows the groups {list(rule.groups)!r}; it needs a score in [0, 1] and, for "
        "a lottery, a row id. Refit it with the new groups, or repair these rows."
    )


class _ParquetWriter:
    """Parquet as batches come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def __enter__(self) -> _ParquetWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, frame: pl.DataFrame) -> None:
        """Append the rows."""
        table = frame.to_arrow()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)


class _CsvWriter:
    """CSV as batches come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._header = True

    def __enter__(self) -> _CsvWriter:
        self._file = self._path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, frame: pl.DataFrame) -> None:
        """Append the rows, after a header the first time."""
        frame.write_csv(self._file, include_header=self._header)
        self._header = False


def _writer(target: Path, beside: Path) -> _ParquetWriter | _CsvWriter:
    name = target.name.lower()
    if name.endswith(PARQUET):
        return _ParquetWriter(beside)
    if name.endswith(CSV[0]):
        return _CsvWriter(beside)
    raise ValueError(
        f"--out {str(target)!r} must end in {', '.join(PARQUET)} or {CSV[0]}."
    )
