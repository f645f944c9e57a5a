"""From files to what the library takes: scores of rows, or a table of counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fairpul import GroupCounts, GroupScores
from fairpul.binning import BINS
from fairpul.cli.files import batches, is_counts, row_count

# A file with more rows is counted, not held: some 40 bytes a row.
_MOST_ROWS = 5_000_000


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read."""

    score: str
    labeled: str
    groups: tuple[str, ...] = ()
    weight: str | None = None
    cluster: str | None = None

    @property
    def names(self) -> list[str]:
        """All names."""
        more = [name for name in (self.weight, self.cluster) if name is not None]
        return [self.score, self.labeled, *self.groups, *more]


def read_scores(paths: Sequence[Path], columns: Columns) -> GroupScores | GroupCounts:
    """Scores of the rows; counts of them where the files are larger than memory."""
    if row_count(paths) > _MOST_ROWS:
        return count_rows(paths, columns, refine=True)
    rows = read_rows(paths, columns)
    return GroupScores(
        rows[columns.score].to_numpy(),
        rows[columns.labeled].to_numpy(),
        group_of(rows, columns.groups),
        sample_weight=array_of(rows, columns.weight),
        cluster=array_of(rows, columns.cluster),
    )


def read_rows(
    paths: Sequence[Path], columns: Columns, *more: str | None
) -> pl.DataFrame:
    """Columns of all rows, checked where the library would not name the column."""
    others = [name for name in more if name is not None]
    names = [*columns.names, *others]
    rows = pl.concat(_checked(paths, names, "Reading"))
    for name in (columns.score, columns.labeled, *others):
        if not (rows[name].dtype.is_numeric() or rows[name].dtype == pl.Boolean):
            raise ValueError(
                f"The column {name!r} must hold numbers or booleans, it holds "
                f"{rows[name].dtype}. Recode it."
            )
        if missing := rows[name].null_count():
            raise ValueError(
                f"The column {name!r} has no value in {missing} rows. Drop them, or "
                "code rows of unknown class as unlabeled: 0."
            )
    label = rows[columns.labeled]
    if label.dtype.is_float() and not label.is_in([1.0, 0.0, -1.0]).all():
        raise ValueError(
            f"The column {columns.labeled!r} holds other values than 1 for labeled "
            "and 0 (or -1) for unlabeled rows. Name the column of labels, or recode it."
        )
    return rows


def count_rows(
    paths: Sequence[Path],
    columns: Columns,
    *,
    bins: int = BINS,
    refine: bool | None = None,
    model: str | None = None,
) -> GroupCounts:
    """Table of counts of all rows; a row that cannot be counted is an error."""
    if columns.cluster is not None:
        raise ValueError(
            f"--cluster needs all rows in memory, at most {_MOST_ROWS:,}; the file has "
            "more. Leave it out, or audit a sample of whole clusters."
        )
    counts = GroupCounts.from_batches(
        _ArrowBatches(paths, columns.names),
        score=columns.score,
        labeled=columns.labeled,
        group=list(columns.groups) or None,
        sample_weight=columns.weight,
        bins=bins,
        refine=refine,
        model=model,
    )
    invalid = {kind: number for kind, number in counts.invalid.items() if number}
    if invalid:
        kinds = ", ".join(f"{kind}: {number}" for kind, number in invalid.items())
        raise ValueError(
            f"Some rows cannot be counted ({kinds}). Labels must be 1 and 0, scores "
            "in [0, 1], groups present: repair or drop these rows."
        )
    counts.check_every_group_is_labeled()
    return counts


@dataclass(frozen=True)
class _ArrowBatches:
    """Batches of files, read anew each time that they are counted."""

    paths: Sequence[Path]
    names: Sequence[str]

    def __iter__(self) -> Iterator[Any]:
        for batch in _checked(self.paths, self.names, "Counting"):
            yield batch.to_arrow()


def read_counts(paths: Sequence[Path]) -> GroupCounts:
    """Sum of tables of counts."""
    for path in paths:
        if not is_counts(path):
            raise ValueError(
                f"{str(path)!r} is not a table of counts. Write one with: fairpul count"
            )
    total = GroupCounts.read_parquet(paths[0])
    for path in paths[1:]:
        total = total + GroupCounts.read_parquet(path)
    return total


def group_of(rows: pl.DataFrame, names: Sequence[str]) -> Any:
    """Group column, or frame of several columns, as the library takes it."""
    if not names:
        return None
    return rows[names[0]] if len(names) == 1 else rows.select(names)


def array_of(rows: pl.DataFrame, name: str | None) -> Any:
    """Column as an array; None where no name is given."""
    return None if name is None else rows[name].to_numpy()


def _checked(
    paths: Sequence[Path], names: Sequence[str], what: str
) -> Iterator[pl.DataFrame]:
    """Batches; files whose columns differ in type are refused by name."""
    schema: pl.Schema | None = None
    for batch in batches(paths, names, what):
        if schema is None:
            schema = batch.schema
        elif batch.schema != schema:
            raise ValueError(
                f"The files disagree on the types of their columns: {dict(schema)} and "
                f"{dict(batch.schema)}. Export them alike."
            )
        yield batch
