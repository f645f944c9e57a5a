"""A decision rule as one SQL expression, for DuckDB and Spark."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from fairpul._groups import EVERYBODY
from fairpul.cuts import Cuts, acceptance_levels
from fairpul.draw import PRIME, SECOND_PRIME, accepted_integers, polynomial

_QUOTES = {"duckdb": '"', "spark": "`"}


def decision_expression(
    dialect: str,
    groups: Sequence[Hashable],
    cuts: Sequence[Cuts],
    seed: int,
    bins: int | None = None,
    *,
    score: str,
    group: str | Sequence[str] | None,
    row_id: str | None,
) -> str:
    """CASE expression that gives 1, 0, or -1 for invalid scores and unknown groups."""
    if dialect not in _QUOTES:
        raise ValueError(
            f"dialect must be one of {sorted(_QUOTES)!r}, got {dialect!r}."
        )
    if row_id is None and any(len(group_cuts) > 1 for group_cuts in cuts):
        raise ValueError(
            "This rule draws lots, so its SQL needs row_id=, the name of an integer "
            "column. Fit with lottery=False and a tolerance for a rule without."
        )
    columns = group_columns(groups, group)
    value = f"CAST({_name(score, dialect)} AS DOUBLE)"
    compared = value if bins is None else _bin(value, bins)
    draw = None if row_id is None else _draw(_name(row_id, dialect), seed)
    branches = [
        f"WHEN {_is_group(columns, key, dialect)} "
        f"THEN {_decide(compared, group_cuts, draw)}"
        for key, group_cuts in zip(groups, cuts, strict=True)
    ]
    # NaN compares greater than every number in both engines, so `<= 1` removes it.
    invalid = f"NOT ({value} >= {_number(0.0)} AND {value} <= {_number(1.0)})"
    guards = [f"{_name(score, dialect)} IS NULL OR {invalid}"]
    if draw is not None and any(len(group_cuts) > 1 for group_cuts in cuts):
        guards.append(f"{_name(row_id or '', dialect)} IS NULL")
    guard = " OR ".join(guards)
    return f"CASE WHEN {guard} THEN -1 {' '.join(branches)} ELSE -1 END"


def group_columns(
    groups: Sequence[Hashable], group: str | Sequence[str] | None
) -> list[str]:
    """Names of the columns that a rule's groups are told by."""
    if group is None:
        if tuple(groups) != (EVERYBODY,):
            raise ValueError(
                f"The rule knows the groups {list(groups)!r}: name their column(s) "
                "with group=."
            )
        return []
    names = [group] if isinstance(group, str) else list(group)
    widths = {len(key) if isinstance(key, tuple) else 1 for key in groups}
    if widths != {len(names)}:
        raise ValueError(
            f"The groups {list(groups)!r} do not fit {len(names)} columns {names!r}."
        )
    return names


def _is_group(columns: list[str], key: Hashable, dialect: str) -> str:
    if not columns:
        return "TRUE"
    parts = key if isinstance(key, tuple) else (key,)
    return " AND ".join(
        f"{_name(column, dialect)} = {_literal(part, dialect)}"
        for column, part in zip(columns, parts, strict=True)
    )


def _decide(value: str, cuts: Cuts, draw: str | None) -> str:
    branches = []
    for (cut, _), level in zip(cuts, acceptance_levels(cuts), strict=True):
        if math.isinf(cut):
            continue
        outcome = "1"
        if level < 1:
            threshold = int(accepted_integers(np.array([level]))[0])
            outcome = f"CASE WHEN {draw} < {threshold} THEN 1 ELSE 0 END"
        branches.append(f"WHEN {value} >= {_number(cut)} THEN {outcome}")
    return f"CASE {' '.join(branches)} ELSE 0 END" if branches else "0"


def _bin(value: str, bins: int) -> str:
    """Return :func:`fairpul.binning.bin_of` in SQL."""
    # Engines may evaluate a branch that the guard excludes: no root of a negative.
    return f"FLOOR(SQRT(SQRT(ABS({value}))) * {_number(float(bins))})"


def _draw(row_id: str, seed: int) -> str:
    """Return the polynomial of :func:`fairpul.draw.draw_integers` in SQL."""
    a, b, c, d, e = polynomial(seed)

    def modulo(value: str, prime: int) -> str:
        # Cast before the sum, which would overflow the 32 bits of an INTEGER id.
        return f"((CAST({value} % {prime} AS BIGINT) + {prime}) % {prime})"

    def reduced(value: str) -> str:
        return f"({value}) % {PRIME}"

    x, y = modulo(row_id, PRIME), modulo(row_id, SECOND_PRIME)
    linear = reduced(f"CAST({a} AS BIGINT) * {x} + {b}")
    quadratic = reduced(f"{linear} * {x} + {c}")
    cubic = reduced(f"{quadratic} * {x} + {d}")
    return reduced(f"{cubic} + {reduced(f'CAST({e} AS BIGINT) * {y}')}")


def _name(column: str, dialect: str) -> str:
    quote = _QUOTES[dialect]
    return quote + column.replace(quote, quote * 2) + quote


def _number(value: float) -> str:
    # Through a string: engines read a bare 0.1 as a decimal, not as the nearest double.
    return f"CAST('{value!r}' AS DOUBLE)"


def _literal(key: Hashable, dialect: str) -> str:
    if isinstance(key, bool):
        return "TRUE" if key else "FALSE"
    if isinstance(key, int):
        return str(key)
    if not isinstance(key, str):
        raise ValueError(
            f"Group {key!r} of type {type(key).__name__} has no SQL literal here. "
            "Recode the groups to str, int or bool before fitting."
        )
    text = key.replace("\\", "\\\\") if dialect == "spark" else key
    return "'" + text.replace("'", "\\'" if dialect == "spark" else "''") + "'"
