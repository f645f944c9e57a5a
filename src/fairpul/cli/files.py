"""Files of rows and of counts: told apart, and read lazily."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from fairpul.cli.console import Bar

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".csv.zst", ".tsv")

# Rows read at a time: some tens of megabytes for the few columns that are needed.
_BATCH = 2**19
_COUNTS_KEY = b"fairpul.counts"


def scan(path: Path) -> pl.LazyFrame:
    """Rows of a CSV or Parquet file, not read yet."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ValueError(f"The file {str(path)!r} {what}. Check the path.")
    if path.stat().st_size == 0:
        raise ValueError(f"The file {str(path)!r} is empty. Export it again.")
    name = path.name.lower()
    # A path is one file: * and ? in it are letters.
    if name.endswith(PARQUET):
        return pl.scan_parquet(path, glob=False)
    if name.endswith(CSV):
        separator = "\t" if name.endswith(".tsv") else ","
        return pl.scan_csv(
            path, glob=False, separator=separator, infer_schema_length=10_000
        )
    raise ValueError(
        f"The file {str(path)!r} must be CSV or Parquet: its name must end in "
        f"{', '.join((*PARQUET, *CSV))}."
    )


def is_counts(path: Path) -> bool:
    """Whether a file is a table of counts rather than of rows."""
    if not (path.is_file() and path.name.lower().endswith(PARQUET)):
        return False
    if path.stat().st_size == 0:
        return False
    try:
        return _COUNTS_KEY in (pq.read_schema(path).metadata or {})
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"The file {str(path)!r} cannot be read: {str(error).rstrip('.')}. Is it "
            "complete? Export it again."
        ) from error


def check_columns(frame: pl.LazyFrame, names: Sequence[str], path: Path) -> None:
    """Refuse names of columns that a file does not have."""
    present = frame.collect_schema().names()
    missing = [name for name in names if name not in present]
    if missing:
        raise ValueError(
            f"{str(path)!r} has no columns {missing!r}; it has {present!r}. Name the "
            "columns as they are spelled in the file."
        )


def row_count(paths: Sequence[Path]) -> int:
    """Rows of all files, without reading their columns."""
    total = 0
    for path in paths:
        with _named(path):
            total += scan(path).select(pl.len()).collect(engine="streaming").item()
    return total


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        # Polars appends hints for programmers below the first line.
        first = str(error).strip().splitlines()[0]
        raise ValueError(
            f"The file {str(path)!r} cannot be read: {first}. Is it complete? CSV must "
            "be UTF-8, with a comma between columns."
        ) from error


def batches(
    paths: Sequence[Path], names: Sequence[str] | None, what: str
) -> Iterator[pl.DataFrame]:
    """Read some columns of all files, a batch at a time, with progress.

    None asks for all columns. A file without rows is refused.
    """
    frames = {path: scan(path) for path in paths}
    for path, frame in frames.items():
        with _named(path):
            check_columns(frame, [] if names is None else names, path)
    total = row_count(paths)
    if total == 0:
        listed = ", ".join(repr(str(path)) for path in paths)
        raise ValueError(f"There are no rows in {listed}. Export the data again.")
    with Bar(what, total) as bar:
        for path in paths:
            wanted = frames[path]
            if names is not None:
                wanted = wanted.select(list(dict.fromkeys(names)))
            with _named(path):
                for batch in wanted.collect_batches(
                    chunk_size=_BATCH, engine="streaming"
                ):
                    yield batch
                    bar.advance(len(batch))


def fingerprint(paths: Sequence[Path]) -> str:
    """SHA-256 of one file, or of the SHA-256 sums of several in the order given."""
    sums = []
    for path in paths:
        with path.open("rb") as file:
            sums.append(hashlib.file_digest(file, "sha256").hexdigest())
    if len(sums) == 1:
        return sums[0]
    return hashlib.sha256("\n".join(sums).encode()).hexdigest()
