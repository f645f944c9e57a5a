"""Columns of a user's frame: what they may hold, and how they are read.

Eager columns are read as NumPy arrays; for lazy ones there are expressions.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairpul._groups import encode_groups, typed


@dataclass(frozen=True)
class Columns:
    """Names of the columns to count."""

    score: str
    labeled: str
    groups: tuple[str, ...]
    weight: str | None

    @classmethod
    def named(
        cls,
        score: str,
        labeled: str,
        group: str | Sequence[str] | None,
        weight: str | None,
    ) -> Columns:
        """Return the columns as a caller names them, one, several or no groups."""
        if group is None:
            group = ()
        names = (group,) if isinstance(group, str) else tuple(group)
        if len(set(names)) < len(names):
            raise ValueError(f"group must name columns, each once, got {[*names]!r}.")
        return cls(score, labeled, names, weight)

    @property
    def names(self) -> list[str]:
        """All names."""
        weight = [] if self.weight is None else [self.weight]
        return [self.score, self.labeled, *self.groups, *weight]


def check_columns(schema: nw.Schema, columns: Columns) -> None:
    """Refuse columns that are absent or of a type that cannot be counted."""
    check_present(schema, columns.names)
    check_score_column(schema, columns.score)
    dtype = schema[columns.labeled]
    if not (dtype.is_numeric() or isinstance(dtype, nw.Boolean | nw.Object)):
        raise TypeError(
            f"The label column {columns.labeled!r} must hold 1 and 0, 1 and -1 or "
            f"booleans, it holds {dtype}. Recode it."
        )
    if columns.weight is not None and not schema[columns.weight].is_numeric():
        raise TypeError(
            f"The weight column {columns.weight!r} must hold numbers, it holds "
            f"{schema[columns.weight]}."
        )
    for name in columns.groups:
        key_type(schema[name])


def check_present(schema: nw.Schema, names: Sequence[str]) -> None:
    """Refuse column names that the frame does not have."""
    missing = [name for name in names if name not in schema]
    if missing:
        raise ValueError(
            f"The frame has no columns {missing!r}; it has {schema.names()!r}."
        )


def check_score_column(schema: nw.Schema, score: str) -> None:
    """Refuse scores that are not numbers; engines would read text as numbers."""
    if not schema[score].is_numeric():
        raise TypeError(
            f"The score column {score!r} must hold numbers, it holds {schema[score]}."
        )


def key_type(dtype: nw.dtypes.DType) -> type | None:
    """Python type of the group keys that a column gives; None where any may occur."""
    if isinstance(dtype, nw.Categorical):
        return None  # in pandas, a category may be an integer
    if isinstance(dtype, nw.String | nw.Enum):
        return str
    if isinstance(dtype, nw.Boolean):
        return bool
    if dtype.is_integer():
        return int
    if isinstance(dtype, nw.Object):
        return None
    raise TypeError(
        f"A group column must hold strings, integers or booleans, got {dtype}. "
        "Cast it first."
    )


def known_codes(
    table: nw.DataFrame[Any], names: Sequence[str], keys: Sequence[Hashable]
) -> NDArray[np.intp]:
    """Position of each row's group in ``keys``; -1 where it is missing or unknown."""
    codes, present = codes_or_missing(table, names)
    position = {typed(key): number for number, key in enumerate(keys)}
    lookup = np.array([position.get(typed(key), -1) for key in present] + [-1])
    return np.asarray(lookup[codes])


def codes_or_missing(
    table: nw.DataFrame[Any], names: Sequence[str]
) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    """Code of each row and the keys; -1 where some group column is missing."""
    if not names:
        return encode_groups(None, len(table))
    there = ~np.any([table[name].is_null().to_numpy() for name in names], axis=0)
    codes = np.full(len(table), -1, dtype=np.intp)
    if not there.any():
        return codes, ()
    groups = table.select(*names)
    if not there.all():
        groups = groups.filter(there.tolist())
    codes[there], keys = encode_groups(groups.to_native(), int(there.sum()))
    return codes, keys


def is_group(names: Sequence[str], key: Hashable) -> nw.Expr:
    """Whether a row belongs to a group, never null."""
    parts = key if isinstance(key, tuple) else (key,)
    same = [
        nw.col(name) == nw.lit(part) for name, part in zip(names, parts, strict=True)
    ]
    return nw.all_horizontal(*same, ignore_nulls=False).fill_null(False)


def integer_column(column: nw.Series[Any]) -> NDArray[Any]:
    """Integers of a column, 0 where they are missing; unsigned ones stay unsigned."""
    unsigned = isinstance(column.dtype, nw.UInt64)
    values: NDArray[Any] = column.fill_null(0).to_numpy()
    return values.astype(np.uint64 if unsigned else np.int64, copy=False)


def float_column(column: nw.Series[Any]) -> NDArray[np.float64]:
    """Numbers of a column as float64, nan where they are missing."""
    values: NDArray[Any] = column.cast(nw.Float64).to_numpy()
    return values.astype(np.float64, copy=False)
