"""Exact hulls of many rows: count them in bins, then sort the bins that matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.operating_points import on_concave_hulls
from fairpul.ranked_rows import RankedRows, rank_rows

# Rows handled at a time: their temporaries stay in the second-level cache.
_CHUNK = 2**15
# With this many bins per row^(2/3), about a tenth of the rows can matter to the hull,
# whose edges grow as row^(2/3) too.
_BINS_FACTOR = 5
_MOST_BINS = 2**20
_SAMPLE = 4096
# Shifts of the score before its bits are read: 1 gives bins of equal width, smaller
# ones bins that are narrower where scores are small.
_SHIFTS = (1.0, 2.0**-4, 2.0**-8, 2.0**-12, 2.0**-20)
# Bins with more rows than this are looked at for ties if they hold many of the rows.
_HEAVY_BIN = 256
_HEAVY_SHARE = 0.1


@dataclass(frozen=True)
class Grid:
    """A nondecreasing map of scores to bins: the leading bits of a shifted score."""

    shift: float
    base: int
    drop: int
    bits: int

    def cells(
        self,
        score: NDArray[Any],
        labeled: NDArray[np.bool_],
        codes: NDArray[np.intp],
        out: NDArray[np.int64],
        spare: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Cell (group, label, bin) of each row, written into ``out``."""
        cell, extra = out[: len(score)], spare[: len(score)]
        np.add(score, self.shift, out=extra.view(np.float64))
        np.subtract(extra, self.base, out=cell)
        np.right_shift(cell, self.drop, out=cell)
        np.left_shift(codes, self.bits + 1, out=extra)
        np.add(cell, extra, out=cell)
        np.left_shift(labeled.view(np.int8), self.bits, out=extra, dtype=np.int64)
        return np.add(cell, extra, out=cell)


def choose_grid(score: NDArray[Any], n_groups: int) -> Grid:
    """Grid with about the wanted number of bins that spreads a sample of rows best."""
    wanted = _BINS_FACTOR * (len(score) / n_groups) ** (2 / 3)
    bits = int(np.clip(np.ceil(np.log2(wanted)), 4, np.log2(_MOST_BINS)))
    sample = score[:: max(1, len(score) // _SAMPLE)].astype(np.float64)
    ends = np.array([score.min(), score.max()], dtype=np.float64)
    best, least = None, np.inf
    for shift in _SHIFTS:
        low, high = (ends + shift).view(np.int64).tolist()
        drop = max(0, (high - low).bit_length() - bits)
        # Pairs of a sample in one bin are too few to compare, unless bins are wide.
        coarse = ((sample + shift).view(np.int64) - low) >> (drop + 5)
        collisions = float((np.bincount(coarse).astype(np.float64) ** 2).sum())
        if collisions < least:
            best, least = Grid(shift, low, drop, bits), collisions
    assert best is not None  # noqa: S101 - one of the shifts is always taken
    return best
