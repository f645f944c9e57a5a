"""From rows to cells: rows per group and bin, and what was wrong with the others.

A frame is counted in one aggregation, of integers only: sums of integers do not depend
on the order of the rows, hence all engines agree to the last digit.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairpul._groups import encode_groups, typed
from fairpul.binning import FINE_BINS, bin_expression, bin_of
from fairpul.cells import INVALID, WEIGHT_UNIT, Cells, Integers, check_sum
from fairpul.frames import (
    check_present,
    check_score_column,
    codes_or_missing,
    float_column,
    is_group,
    key_type,
)

#: Bins to resolve, by group.
Refinement = Mapping[Hashable, Collection[int]]

#: Weights from here on are unusable: two limbs do not hold their squares.
LARGEST_WEIGHT = 2.0**21
# Two limbs of 31 bits: sums of either over so many rows fit into 62 bits.
_LIMB = 2.0**31
_MOST_ROWS = 2**31
_SMALL_TABLE = 2**22
_LIMBS = tuple(
    f"{name}_{limb}" for name in ("w", "wl", "w2", "w2l") for limb in ("high", "low")
)


@dataclass(frozen=True)
class Columns:
    """Names of the columns to count."""

    score: str
    labeled: str
    groups: tuple[str, ...]
    weight: str | None

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


def count_lazily(
    frame: nw.LazyFrame[Any], columns: Columns, bins: int, refine: Refinement
) -> Cells:
    """Count the rows of a lazy frame where they are; only cells come back."""
    schema = frame.collect_schema()
    check_columns(schema, columns)
    groups = [f"group_{place}" for place in range(len(columns.groups))]
    rows = frame.select(
        *(
            _plain_key(name, schema[name]).alias(alias)
            for name, alias in zip(columns.groups, groups, strict=True)
        ),
        nw.col(columns.score).cast(nw.Float64).alias("f"),
        nw.col(columns.labeled).cast(nw.Float64).alias("y"),
        *(
            []
            if columns.weight is None
            else [nw.col(columns.weight).cast(nw.Float64).alias("w")]
        ),
    )
    # A column of its own: Spark would write the roots out for every group that is
    # refined, into code too long for Java to compile.
    score = nw.col("f")
    inside = nw.when((score >= 0.0) & (score <= 1.0)).then(score)
    rows = rows.with_columns(inside.otherwise(nw.lit(0.0)).alias("safe"))
    rows = rows.with_columns(bin_expression(nw.col("safe"), bins).alias("base"))
    weighted = columns.weight is not None
    one, none = nw.lit(1, nw.Int64), nw.lit(0, nw.Int64)
    labeled = nw.when(nw.col("y") == 1.0).then(one).otherwise(none)
    minus = nw.when(nw.col("y") == -1.0).then(one).otherwise(none)
    cell = rows.select(
        *groups,
        _cell_expression(groups, weighted, bins, refine).alias("bin"),
        labeled.alias("labeled"),
        minus.alias("minus"),
        *(_limb_expressions() if weighted else []),
    )
    summed = ["labeled", "minus", *(_LIMBS if weighted else [])]
    counted = (
        cell.group_by(*groups, "bin")
        .agg(nw.len().alias("n"), *(nw.col(name).sum() for name in summed))
        .collect()
    )
    return _cells_of(counted, groups, weighted)


def count_eagerly(
    frame: nw.DataFrame[Any], columns: Columns, bins: int, refine: Refinement
) -> Cells:
    """Count the rows of a frame in memory, with NumPy."""
    check_columns(frame.schema, columns)
    codes, groups = codes_or_missing(frame, columns.groups)
    return count_arrays(
        float_column(frame[columns.score]),
        float_column(frame[columns.labeled]),
        codes,
        groups,
        None if columns.weight is None else float_column(frame[columns.weight]),
        bins,
        refine,
    )


def count_arrays(
    score: NDArray[Any],
    label: NDArray[Any],
    codes: NDArray[np.intp],
    groups: tuple[Hashable, ...],
    weight: NDArray[np.float64] | None,
    bins: int,
    refine: Refinement,
) -> Cells:
    """Count rows given as arrays; codes of -1 are missing groups."""
    valid = (score >= 0) & (score <= 1)
    labeled, minus = label == 1, label == -1
    kinds = [
        np.isnan(score),
        ~valid,
        codes < 0,
        ~(labeled | minus | (label == 0)),
        *([] if weight is None else [~((weight >= 0) & (weight < LARGEST_WEIGHT))]),
    ]
    kind = np.select(kinds, np.arange(1, len(kinds) + 1), 0)
    invalid = np.bincount(kind, minlength=len(INVALID) + 1)[1:]
    if kind.any():
        kept = kind == 0
        score, labeled, minus = score[kept], labeled[kept], minus[kept]
        codes = codes[kept]
        weight = None if weight is None else weight[kept]
    number = _numbers(score, codes, groups, bins, refine)
    top = FINE_BINS if refine else bins
    key = codes * np.int64(top + 1) + number
    cell, position = _distinct(key, len(groups) * (top + 1))
    values = [np.ones(len(key)), labeled]
    if weight is not None:
        values += _limb_arrays(weight, labeled)
    sums = np.column_stack(
        # Integers below 2**53 add exactly in the float64 of bincount.
        [np.bincount(position, v, len(cell)).astype(np.int64) for v in values]
    )
    return Cells(
        groups,
        (cell // (top + 1)).astype(np.intp),
        cell % (top + 1),
        sums if weight is None else _join_limbs(sums),
        dict(zip(INVALID, invalid.tolist(), strict=True)),
        int(minus.sum()),
    )


def _numbers(
    score: NDArray[Any],
    codes: NDArray[np.intp],
    groups: tuple[Hashable, ...],
    bins: int,
    refine: Refinement,
) -> Integers:
    number = bin_of(score, bins)
    if not refine:
        return number
    resolved = np.zeros((len(groups), bins + 1), dtype=bool)
    position = {typed(key): place for place, key in enumerate(groups)}
    for key, wanted in refine.items():
        if typed(key) in position:
            resolved[position[typed(key)], list(wanted)] = True
    return np.where(
        resolved[codes, number], bin_of(score, FINE_BINS), number * (FINE_BINS // bins)
    )


def _distinct(key: Integers, size: int) -> tuple[Integers, NDArray[np.intp]]:
    """Distinct keys and the position of each key's own among them."""
    if size > _SMALL_TABLE:
        present, position = np.unique(key, return_inverse=True)
        return present, position
    present = np.flatnonzero(np.bincount(key, minlength=size))
    table = np.zeros(size, dtype=np.intp)
    table[present] = np.arange(len(present))
    return present, table[key]


def _limb_arrays(
    weight: NDArray[np.float64], labeled: NDArray[np.bool_]
) -> list[NDArray[np.float64]]:
    limbs = []
    for value in (weight, weight * weight):
        high = np.floor(value * (WEIGHT_UNIT / _LIMB))
        low = np.floor(value * WEIGHT_UNIT) - high * _LIMB
        limbs += [high, low, high * labeled, low * labeled]
    return limbs


def _limb_expressions() -> list[nw.Expr]:
    """Whole parts of w and w^2 in high and low limbs, all rows and labeled rows."""
    labeled = nw.col("y") == 1.0
    limbs = []
    usable = (nw.col("w") >= 0.0) & (nw.col("w") < LARGEST_WEIGHT)
    weight = nw.when(usable).then(nw.col("w")).otherwise(nw.lit(0.0))
    for name, value in (("w", weight), ("w2", weight * weight)):
        high = (value * (WEIGHT_UNIT / _LIMB)).floor()
        low = (value * WEIGHT_UNIT).floor() - high * _LIMB
        for limb, part in (("high", high), ("low", low)):
            whole = part.cast(nw.Int64)
            among = nw.when(labeled).then(whole).otherwise(nw.lit(0, nw.Int64))
            limbs += [whole.alias(f"{name}_{limb}"), among.alias(f"{name}l_{limb}")]
    return limbs


def _cell_expression(
    groups: Sequence[str], weighted: bool, bins: int, refine: Refinement
) -> nw.Expr:
    """Bin of a valid row; -1, -2, ... for the kinds of invalid rows."""
    score, label = nw.col("f"), nw.col("y")
    inside = (score >= 0.0) & (score <= 1.0)
    grouped = [~nw.col(name).is_null() for name in groups]
    known = (label == 1.0) | (label == 0.0) | (label == -1.0)
    checks = [
        ~(score.is_null() | score.is_nan()),
        inside.fill_null(False),
        nw.all_horizontal(*grouped, ignore_nulls=False) if grouped else None,
        known.fill_null(False),
    ]
    if weighted:
        weight = nw.col("w")
        usable = (weight >= 0.0) & (weight < LARGEST_WEIGHT)
        checks.append(usable.fill_null(False))
    number = _bin_number(groups, bins, refine)
    for kind, holds in reversed(list(enumerate(checks, start=1))):
        if holds is not None:
            invalid = nw.lit(-kind, nw.Int64)
            number = nw.when(holds).then(number).otherwise(invalid)
    return number


def _bin_number(groups: Sequence[str], bins: int, refine: Refinement) -> nw.Expr:
    """Bin of a score, among the fine bins where any is resolved."""
    number = nw.col("base")
    if not refine:
        return number
    resolved = [
        (is_group(groups, key) if groups else nw.lit(True))
        & number.is_in(sorted(wanted))
        for key, wanted in refine.items()
    ]
    fine = nw.any_horizontal(*resolved, ignore_nulls=False)
    coarse = number * (FINE_BINS // bins)
    exact = bin_expression(nw.col("safe"), FINE_BINS)
    return nw.when(fine).then(exact).otherwise(coarse)


def _plain_key(name: str, dtype: nw.dtypes.DType) -> nw.Expr:
    categorical = isinstance(dtype, nw.Categorical | nw.Enum)
    return nw.col(name).cast(nw.String) if categorical else nw.col(name)


def _cells_of(
    counted: nw.DataFrame[Any], groups: Sequence[str], weighted: bool
) -> Cells:
    number = _int64(counted["bin"])
    names = ["n", "labeled", *(_LIMBS if weighted else [])]
    sums = np.column_stack([_int64(counted[name]) for name in names])
    minus = _int64(counted["minus"])
    invalid = {
        kind: int(sums[number == -place, 0].sum())
        for place, kind in enumerate(INVALID, start=1)
    }
    valid = number >= 0
    sums, number = sums[valid], number[valid]
    among = counted.select(*groups).filter(valid.tolist()) if groups else None
    codes, keys = encode_groups(
        None if among is None else among.to_native(), len(number)
    )
    if among is not None and not len(number):
        keys = ()
    sums = _join_limbs(sums) if weighted else sums
    return Cells(keys, codes, number, sums, invalid, int(minus[valid].sum()))


def _int64(column: nw.Series[Any]) -> Integers:
    # Engines widen sums: DuckDB to HUGEINT, which arrives as a decimal.
    return column.cast(nw.Int64).to_numpy().astype(np.int64, copy=False)


def _join_limbs(sums: Integers) -> Integers:
    """Join the limbs of each weighted sum; refuse sums beyond 62 bits."""
    if (sums[:, 0] > _MOST_ROWS).any():
        raise OverflowError(
            "A bin holds more than 2**31 weighted rows, whose limbs may have passed 63 "
            "bits. Count parts of the frame and add their tables."
        )
    columns = [sums[:, 0], sums[:, 1]]
    for place in range(2, sums.shape[1], 2):
        high, low = sums[:, place], sums[:, place + 1]
        check_sum(high.astype(np.float64) * _LIMB + low)
        columns.append(high * np.int64(_LIMB) + low)
    return np.column_stack(columns)


def check_one_unlabeled_code(cells: Sequence[Cells]) -> None:
    """Refuse a frame that codes some unlabeled rows 0 and others -1."""
    n_minus = sum(part.n_minus for part in cells)
    n_unlabeled = sum(
        int(part.sums[:, 0].sum() - part.sums[:, 1].sum()) for part in cells
    )
    if 0 < n_minus < n_unlabeled:
        raise ValueError(
            "Labels must be 1 or True for labeled and 0, -1 or False for unlabeled "
            f"rows, with one code for unlabeled; got {n_unlabeled - n_minus} rows of 0 "
            f"and {n_minus} of -1. Recode the column."
        )
