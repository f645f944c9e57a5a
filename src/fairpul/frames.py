"""Decisions as a column of the user's frame, lazily where the frame is lazy.

Written once in narwhals. Eager frames go through NumPy; lazy ones get expressions that
use comparisons, square roots and integer ``*``, ``+``, ``%`` alone, so that every
engine gives the same decision to the same row.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairpul.binning import bin_expression, bin_of
from fairpul.cuts import acceptance, acceptance_levels
from fairpul.draw import (
    PRIME,
    SECOND_PRIME,
    accepted_integers,
    draw_integers,
    polynomial,
)
from fairpul.frame_columns import (
    check_present,
    check_score_column,
    float_column,
    integer_column,
    is_group,
    key_type,
    known_codes,
)
from fairpul.sql import group_columns

if TYPE_CHECKING:
    from fairpul.rule import DecisionRule

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

DECISION = "decision"
PROBABILITY = "acceptance_probability"
_CODE = "__fairpul_code"
_COMPARED = "__fairpul_compared"


def decide_frame(
    frame: Any,
    rule: DecisionRule,
    *,
    score: str,
    group: str | Sequence[str] | None,
    row_id: str | None,
    probability: bool,
) -> Any:
    """Frame with the decision of a rule; see :meth:`DecisionRule.apply`."""
    table: Frame = nw.from_native(frame)
    schema = table.collect_schema()
    names = group_columns(rule.groups, group)
    check_present(schema, [score, *names, *([] if row_id is None else [row_id])])
    check_score_column(schema, score)
    _check_keys(schema, names, rule.groups)
    lazy = isinstance(table, nw.LazyFrame)
    _check_row_id(schema, row_id, rule.has_lottery, lazy)
    taken = [
        name for name in (DECISION, PROBABILITY)[: 1 + probability] if name in schema
    ]
    if taken:
        raise ValueError(f"The frame has columns {taken!r} already. Rename them first.")
    decided: Frame
    if isinstance(table, nw.DataFrame):
        decided = _decide_eagerly(table, rule, score, names, row_id, probability)
    else:
        decided = _decide_lazily(table, rule, score, names, row_id, probability)
    wrapped = isinstance(frame, nw.DataFrame | nw.LazyFrame)
    return decided if wrapped else decided.to_native()


def _decide_eagerly(
    table: nw.DataFrame[Any],
    rule: DecisionRule,
    score: str,
    names: Sequence[str],
    row_id: str | None,
    probability: bool,
) -> nw.DataFrame[Any]:
    value = float_column(table[score])
    codes = known_codes(table, names, rule.groups)
    valid = (value >= 0) & (value <= 1) & (codes >= 0)
    if rule.has_lottery and row_id is not None:
        valid &= ~table[row_id].is_null().to_numpy()
    inside = value[valid]
    compared = inside if rule.bins is None else bin_of(inside, rule.bins)
    chance = np.full(len(value), np.nan)
    chance[valid] = acceptance(compared, codes[valid], rule.cuts)
    decision = np.where(valid, chance == 1, -1).astype(np.int8)
    drawn = np.flatnonzero((chance > 0) & (chance < 1))
    if len(drawn) and row_id is not None:
        draw = draw_integers(integer_column(table[row_id])[drawn], rule.seed)
        decision[drawn] = draw < accepted_integers(chance[drawn])
    backend = table.implementation
    decided = table.with_columns(
        nw.new_series(DECISION, decision, nw.Int8, backend=backend)
    )
    if not probability:
        return decided
    column = nw.new_series(PROBABILITY, chance, nw.Float64, backend=backend)
    known = nw.when(nw.col(DECISION) >= 0).then(nw.col(PROBABILITY))
    return decided.with_columns(column).with_columns(known.alias(PROBABILITY))


def _decide_lazily(
    table: nw.LazyFrame[Any],
    rule: DecisionRule,
    score: str,
    names: Sequence[str],
    row_id: str | None,
    probability: bool,
) -> nw.LazyFrame[Any]:
    value = nw.col(score).cast(nw.Float64)
    valid = ((value >= 0.0) & (value <= 1.0)).fill_null(False)
    if rule.has_lottery and row_id is not None:
        valid = valid & ~nw.col(row_id).is_null()
    inside = nw.when(valid).then(value).otherwise(nw.lit(0.0))
    compared = inside if rule.bins is None else bin_expression(inside, rule.bins)
    code = _group_number(names, rule.groups)
    code = nw.when(valid).then(code).otherwise(nw.lit(0, nw.Int64))
    prepared = table.with_columns(code.alias(_CODE), compared.alias(_COMPARED))
    levels = [acceptance_levels(cuts) for cuts in rule.cuts]
    if rule.has_lottery and row_id is not None:
        dtype = table.collect_schema()[row_id]
        draw = draw_expression(nw.col(row_id), dtype, rule.seed)
        limits = [accepted_integers(np.array(level)).tolist() for level in levels]
        limit = _of_strictest_cut(rule, limits, nw.Int64())
        accepted = nw.when(draw < limit)
    else:
        accepted = nw.when(_of_strictest_cut(rule, levels, nw.Float64()) > 0.0)
    decision = accepted.then(nw.lit(1, nw.Int64)).otherwise(nw.lit(0, nw.Int64))
    known = nw.when(nw.col(_CODE) > 0)
    decided = known.then(decision).otherwise(nw.lit(-1, nw.Int64)).cast(nw.Int8)
    added = [decided.alias(DECISION)]
    if probability:
        chance = _of_strictest_cut(rule, levels, nw.Float64())
        added.append(known.then(chance).alias(PROBABILITY))
    return prepared.with_columns(*added).drop(_CODE, _COMPARED)


def draw_expression(row_id: nw.Expr, dtype: nw.dtypes.DType, salt: int) -> nw.Expr:
    """Write :func:`fairpul.draw.draw_integers` for a column of integer ids."""
    a, b, c, d, e = polynomial(salt)

    def modulo(prime: int) -> nw.Expr:
        # Unsigned ids may exceed 2**63, small types do not hold the prime, and engines
        # disagree on the remainder of a negative number. Missing ids are refused by
        # the caller; Dask casts none.
        known = row_id.fill_null(0)
        if isinstance(dtype, nw.Decimal):
            rest = (known % prime).cast(nw.Int64)
        elif isinstance(dtype, nw.UInt64):
            rest = (known.cast(nw.UInt64) % prime).cast(nw.Int64)
        else:
            rest = known.cast(nw.Int64) % prime
        return (rest + prime) % prime

    x, y = modulo(PRIME), modulo(SECOND_PRIME)
    quadratic = ((x * a + b) % PRIME * x + c) % PRIME
    cubic = (quadratic * x + d) % PRIME
    return (cubic + (y * e) % PRIME) % PRIME


def _group_number(names: Sequence[str], keys: Sequence[Hashable]) -> nw.Expr:
    """Position of a row's group, from 1; 0 where it is missing or unknown."""
    if not names:
        return nw.lit(1, nw.Int64)
    none = nw.lit(0, nw.Int64)
    return _sum(
        [
            nw.when(is_group(names, key)).then(nw.lit(number, nw.Int64)).otherwise(none)
            for number, key in enumerate(keys, start=1)
        ]
    )


def _of_strictest_cut(
    rule: DecisionRule, values: list[list[Any]], dtype: nw.dtypes.DType
) -> nw.Expr:
    """Value that belongs to the strictest cut that a row reaches, 0 if to none."""
    whole = rule.bins is not None
    beyond = 2.0 if rule.bins is None else rule.bins + 1
    result = nw.lit(0, dtype)
    for rank in reversed(range(max(map(len, rule.cuts)))):
        cuts = [cuts[rank][0] if rank < len(cuts) else np.inf for cuts in rule.cuts]
        finite = [beyond if np.isinf(cut) else cut for cut in cuts]
        at = _by_group(
            [int(cut) for cut in finite] if whole else finite,
            nw.Int64() if whole else nw.Float64(),
        )
        level = [value[rank] if rank < len(value) else 0 for value in values]
        reached = nw.when(nw.col(_COMPARED) >= at)
        result = reached.then(_by_group(level, dtype)).otherwise(result)
    return result


def _by_group(values: Sequence[Any], dtype: nw.dtypes.DType) -> nw.Expr:
    """Value of a row's group; that of the first where the group is unknown."""
    if len(set(values)) == 1:
        return nw.lit(values[0], dtype)
    none = nw.lit(0, dtype)
    return _sum(
        [
            nw.when(nw.col(_CODE) == number).then(nw.lit(value, dtype)).otherwise(none)
            for number, value in enumerate(values, start=1)
        ]
    )


def _sum(terms: list[nw.Expr]) -> nw.Expr:
    """Sum of terms, in pairs of pairs: a long chain would reach the recursion limit."""
    # Nested branches would too, and Dask cannot compare what sum_horizontal gives.
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return _sum(terms[:half]) + _sum(terms[half:])


def _check_keys(
    schema: nw.Schema, names: Sequence[str], keys: Sequence[Hashable]
) -> None:
    """Refuse columns whose type no key of the rule has: engines would cast or fail."""
    for place, name in enumerate(names):
        wanted = key_type(schema[name])
        found = {type(key[place] if isinstance(key, tuple) else key) for key in keys}
        if wanted is not None and found != {wanted}:
            kinds = sorted(kind.__name__ for kind in found)
            raise TypeError(
                f"The rule's groups are {kinds!r} where column {name!r} holds "
                f"{schema[name]}. Cast the column."
            )


def _check_row_id(
    schema: nw.Schema, row_id: str | None, has_lottery: bool, lazy: bool
) -> None:
    if row_id is None and has_lottery:
        raise ValueError(
            "This rule draws lots, so it needs row_id=, the name of an integer column. "
            "Fit with lottery=False and a tolerance for a rule without."
        )
    if row_id is None or schema[row_id].is_integer():
        return
    # Spark has no unsigned 64-bit integers and reads them as decimals.
    if not (lazy and isinstance(schema[row_id], nw.Decimal)):
        raise TypeError(
            f"The row_id column {row_id!r} must hold integers, it holds "
            f"{schema[row_id]}. Number the rows or hash the ids in your engine."
        )
