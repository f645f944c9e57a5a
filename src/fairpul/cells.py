"""Sums of rows by group and bin, and how they add up.

All integers: their sums do not depend on the order or the parts of the rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairpul._groups import encode_groups
from fairpul.fixed_point import Integers, check_sum

#: Why a row was not counted; the first that holds.
INVALID = (
    "score missing",
    "score out of range",
    "group missing",
    "label unknown",
    "weight unusable",
)


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums of rows by group and bin, in no order.

    ``sums`` has one row per cell: n, labeled and, where there are weights, the sums of
    w, of w over labeled rows, of w^2 and of w^2 over labeled rows in ``WEIGHT_UNIT``.
    ``n_minus`` counts the unlabeled rows that were coded -1.
    """

    groups: tuple[Hashable, ...]
    codes: NDArray[np.intp]
    bin: Integers
    sums: Integers
    invalid: dict[str, int]
    n_minus: int = 0


def add_cells(parts: Sequence[Cells]) -> Cells:
    """Cells of all parts, sorted by group and bin, each once."""
    codes, groups = _common_codes(parts)
    number = np.concatenate([part.bin for part in parts])
    sums = np.concatenate([part.sums for part in parts])
    order = np.lexsort((number, codes))
    codes, number, sums = codes[order], number[order], sums[order]
    new = (np.diff(codes, prepend=-1) != 0) | (np.diff(number, prepend=-1) != 0)
    starts = np.flatnonzero(new)
    if len(starts):
        check_sum(np.add.reduceat(sums.astype(np.float64), starts))
        sums = np.add.reduceat(sums, starts)
    invalid = {kind: sum(part.invalid[kind] for part in parts) for kind in INVALID}
    n_minus = sum(part.n_minus for part in parts)
    return Cells(groups, codes[starts], number[starts], sums, invalid, n_minus)


def _common_codes(
    parts: Sequence[Cells],
) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    """Codes of the cells of all parts under common keys, of groups with cells only."""
    present = [np.unique(part.codes) for part in parts]
    keys = [
        part.groups[code]
        for part, codes in zip(parts, present, strict=True)
        for code in codes
    ]
    column = np.empty(len(keys), dtype=object)
    column[:] = keys
    common, groups = encode_groups(column, len(keys))
    ends = np.cumsum([len(codes) for codes in present])
    translated = [
        new[np.searchsorted(old, part.codes)]
        for part, old, new in zip(
            parts, present, np.split(common, ends[:-1]), strict=True
        )
    ]
    return np.concatenate(translated), groups


def unlabeled_and_labeled(sums: Integers) -> tuple[Integers, Integers]:
    """Split the sums of each cell into its unlabeled and its labeled rows."""
    labeled = np.repeat(sums[:, 1::2], 2, axis=1)
    unlabeled = np.zeros_like(sums)
    unlabeled[:, ::2] = sums[:, ::2] - sums[:, 1::2]
    return unlabeled, labeled
