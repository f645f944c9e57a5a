"""From rows to cells: rows per group and bin, and what was wrong with the others.

Lazy frames are counted where they are; everything else goes through NumPy, a million
rows at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairpul._groups import typed
from fairpul.binning import FINE_BINS, Refinement, bin_of
from fairpul.cells import INVALID, Cells, add_cells
from fairpul.fixed_point import (
    Integers,
    check_weight_scale,
    join_limbs,
    limb_arrays,
    usable,
)
from fairpul.frame_columns import (
    Columns,
    check_columns,
    codes_or_missing,
    float_column,
)
from fairpul.group_scores import GroupScores
from fairpul.lazy_counting import count_lazily

# Rows counted at a time: the sums of their limbs stay below 2**53.
_CHUNK = 2**20
# Cells of so many chunks are kept before they are added up.
_MOST_PARTS = 16
_SMALL_TABLE = 2**22


def count_frame(frame: Any, columns: Columns, bins: int, refine: Refinement) -> Cells:
    """Count a frame of any kind that narwhals knows."""
    table = nw.from_native(frame)
    if isinstance(table, nw.LazyFrame):
        return _checked([count_lazily(table, columns, bins, refine)])
    return count_batches([table], columns, bins, refine)


def count_batches(
    batches: Iterable[Any], columns: Columns, bins: int, refine: Refinement
) -> Cells:
    """Count eager frames and Arrow record batches as they come."""
    if isinstance(batches, str) or _is_frame(batches) or _is_arrow(batches):
        raise TypeError(
            "from_batches takes an iterable of batches, got a single "
            f"{type(batches).__name__}. Pass [batch], or use from_frame."
        )
    parts: list[Cells] = []
    for batch in batches:
        for rows in _slices(_eager(batch)):
            parts.append(_count_eagerly(rows, columns, bins, refine))
        if len(parts) > _MOST_PARTS:
            parts = [add_cells(parts)]
    return _checked(parts or [_none(weighted=columns.weight is not None)])


def count_scores(scores: GroupScores, bins: int, refine: Refinement) -> Cells:
    """Count rows that are in memory as arrays."""
    weight = scores.sample_weight
    parts = []
    for start in range(0, len(scores), _CHUNK):
        rows = slice(start, start + _CHUNK)
        parts.append(
            _count_arrays(
                scores.score[rows],
                scores.labeled[rows],
                scores.codes[rows],
                scores.groups,
                None if weight is None else weight[rows],
                bins,
                refine,
            )
        )
    return _checked(parts)


def _is_frame(batch: Any) -> bool:
    return isinstance(batch, nw.DataFrame) or nw.dependencies.is_into_dataframe(batch)


def _is_arrow(batch: Any) -> bool:
    return hasattr(batch, "__arrow_c_array__")


def _eager(batch: Any) -> nw.DataFrame[Any]:
    if _is_frame(batch):
        return nw.from_native(batch, eager_only=True)
    if _is_arrow(batch):
        return nw.DataFrame.from_arrow(batch, backend="pyarrow")
    raise TypeError(
        "Batches must be eager frames or Arrow record batches, got a "
        f"{type(batch).__name__}."
    )


def _slices(frame: nw.DataFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
    for start in range(0, max(1, len(frame)), _CHUNK):
        yield frame[start : start + _CHUNK]


def _checked(parts: Sequence[Cells]) -> Cells:
    """Cells of all parts together."""
    cells = add_cells(parts)
    _check_one_unlabeled_code(cells)
    if cells.sums.shape[1] > 2:
        check_weight_scale(cells.sums)
    return cells


def _none(*, weighted: bool) -> Cells:
    """No cells, of an iterator without batches: engines have empty partitions."""
    empty = np.zeros(0, dtype=np.int64)
    sums = np.zeros((0, 6 if weighted else 2), dtype=np.int64)
    return Cells((), empty.astype(np.intp), empty, sums, dict.fromkeys(INVALID, 0))


def _count_eagerly(
    frame: nw.DataFrame[Any], columns: Columns, bins: int, refine: Refinement
) -> Cells:
    """Count the rows of a frame in memory, with NumPy."""
    check_columns(frame.schema, columns)
    codes, groups = codes_or_missing(frame, columns.groups)
    return _count_arrays(
        float_column(frame[columns.score]),
        float_column(frame[columns.labeled]),
        codes,
        groups,
        None if columns.weight is None else float_column(frame[columns.weight]),
        bins,
        refine,
    )


def _count_arrays(
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
        *([] if weight is None else [~usable(weight)]),
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
        values += limb_arrays(weight, labeled)
    sums = np.column_stack(
        # Integers below 2**53 add exactly in the float64 of bincount.
        [np.bincount(position, v, len(cell)).astype(np.int64) for v in values]
    )
    return Cells(
        groups,
        (cell // (top + 1)).astype(np.intp),
        cell % (top + 1),
        sums if weight is None else join_limbs(sums),
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


def _check_one_unlabeled_code(cells: Cells) -> None:
    """Refuse rows of which some unlabeled ones are coded 0 and others -1."""
    n_unlabeled = int(cells.sums[:, 0].sum() - cells.sums[:, 1].sum())
    if 0 < cells.n_minus < n_unlabeled:
        raise ValueError(
            "Labels must be 1 or True for labeled and 0, -1 or False for unlabeled "
            "rows, with one code for unlabeled; got "
            f"{n_unlabeled - cells.n_minus} rows of 0 and {cells.n_minus} of -1. "
            "Recode the column."
        )
