"""A table of counts as a Parquet file: integers, and one JSON text that explains them.

The metadata key ``fairpul.counts`` holds the format version, the bins, the groups with
their types, the model, and what was invalid. A reader without this library needs
nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul._files import replacing
from fairpul._groups import key_from_json, key_to_json
from fairpul.binning import FINE_BINS, check_bins
from fairpul.cells import INVALID

#: Version of the layout; tables of another version are refused.
FORMAT = 1
BINNING = "floor(score ** 0.25 * bins)"

_KEY = b"fairpul.counts"
_CELL = ("group", "bin")
_SUMS = ("n", "labeled", "weight", "weight_labeled", "square", "square_labeled")


def write_fields(fields: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the fields of a table of counts; the file appears whole or not at all."""
    pa, parquet = _pyarrow()
    explained = {
        "format": FORMAT,
        "binning": BINNING,
        "bins": fields["base_bins"],
        "refined": [
            [key_to_json(key), list(bins)] for key, bins in fields["refined"].items()
        ],
        "groups": [key_to_json(key) for key in fields["groups"]],
        "invalid": fields["invalid"],
        "misplaced": fields["misplaced"].tolist(),
        "model": fields["model"],
    }
    columns = [fields["codes"].astype(np.int64), fields["bin"], *fields["sums"].T]
    names = [*_CELL, *_SUMS][: len(columns)]
    table = pa.table(dict(zip(names, columns, strict=True)))
    table = table.replace_schema_metadata({_KEY: json.dumps(explained)})
    with replacing(Path(path)) as beside:
        parquet.write_table(table, beside)


def read_fields(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Fields of a table of counts, checked."""
    _, parquet = _pyarrow()
    with parquet.ParquetFile(path) as file:
        metadata, table = file.schema_arrow.metadata or {}, file.read()
    if _KEY not in metadata:
        raise ValueError(
            f"{os.fspath(path)!r} is not a table of counts written by fairpul. Count "
            "rows with GroupCounts.from_frame."
        )
    explained = json.loads(metadata[_KEY])
    if explained.get("format") != FORMAT or explained.get("binning") != BINNING:
        raise ValueError(
            f"A table of counts of format {FORMAT} is required, "
            f"{os.fspath(path)!r} is of {explained.get('format')!r}. Count again."
        )
    columns = [column.to_numpy() for column in table.columns]
    if any(
        column.dtype != np.int64 for column in columns
    ) or table.column_names not in (
        [*_CELL, *_SUMS[:2]],
        [*_CELL, *_SUMS],
    ):
        raise _damaged(path)
    fields = {
        "groups": tuple(key_from_json(key) for key in explained["groups"]),
        "codes": columns[0].astype(np.intp),
        "bin": columns[1],
        "sums": np.column_stack(columns[2:]),
        "base_bins": check_bins(explained["bins"]),
        "refined": {
            key_from_json(key): tuple(bins) for key, bins in explained["refined"]
        },
        "invalid": {kind: explained["invalid"].get(kind, 0) for kind in INVALID},
        "misplaced": np.array(explained["misplaced"], dtype=np.int64).reshape(-1, 2),
        "model": explained["model"],
    }
    if not _consistent(fields):
        raise _damaged(path)
    return fields


def _consistent(fields: Mapping[str, Any]) -> bool:
    """Whether cells are sorted and distinct, in range, and hold possible counts."""
    codes, number, sums = fields["codes"], fields["bin"], fields["sums"]
    top = FINE_BINS if fields["refined"] else fields["base_bins"]
    if not len(codes):
        return not fields["groups"]
    place: NDArray[np.int64] = codes * np.int64(top + 1) + number
    return bool(
        codes.min() >= 0
        and codes.max() < len(fields["groups"]) == len(fields["misplaced"])
        and number.min() >= 0
        and number.max() <= top
        and (np.diff(place) > 0).all()
        and (sums >= 0).all()
        and (sums[:, 0] >= np.maximum(sums[:, 1], 1)).all()
        and (sums[:, 2::2] >= sums[:, 3::2]).all()
    )


def _damaged(path: str | os.PathLike[str]) -> ValueError:
    return ValueError(f"The table of counts {os.fspath(path)!r} is damaged.")


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "Reading and writing tables of counts needs pyarrow: "
            'pip install "fairpul[app]".'
        ) from None
    return pyarrow, pyarrow.parquet
