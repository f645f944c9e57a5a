"""Counts of a lazy frame: one aggregation on its engine, of integers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from fairpul.binning import FINE_BINS, Refinement, bin_expression
from fairpul.cells import INVALID, Cells
from fairpul.fixed_point import (
    LIMBS,
    Integers,
    join_limbs,
    limb_expressions,
    usable,
)
from fairpul.frame_columns import Columns, check_columns, codes_or_missing, is_group


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
        *(limb_expressions(nw.col("w"), nw.col("y") == 1.0) if weighted else []),
    )
    summed = ["labeled", "minus", *(LIMBS if weighted else [])]
    counted = (
        cell.group_by(*groups, "bin")
        .agg(nw.len().alias("n"), *(nw.col(name).sum() for name in summed))
        .collect()
    )
    return _cells_of(counted, groups, weighted)


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
        checks.append(usable(nw.col("w")).fill_null(False))
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
    names = ["n", "labeled", *(LIMBS if weighted else [])]
    sums = np.column_stack([_int64(counted[name]) for name in names])
    minus = _int64(counted["minus"])
    invalid = {
        kind: int(sums[number == -place, 0].sum())
        for place, kind in enumerate(INVALID, start=1)
    }
    valid = number >= 0
    codes, keys = codes_or_missing(counted[np.flatnonzero(valid)], groups)
    sums, number = sums[valid], number[valid]
    sums = join_limbs(sums) if weighted else sums
    return Cells(keys, codes, number, sums, invalid, int(minus[valid].sum()))


def _int64(column: nw.Series[Any]) -> Integers:
    # Engines widen sums: DuckDB to HUGEINT, which arrives as a decimal.
    return column.cast(nw.Int64).to_numpy().astype(np.int64, copy=False)
