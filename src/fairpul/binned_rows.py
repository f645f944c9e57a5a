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
    grids = [_grid(ends, shift, bits) for shift in _SHIFTS]
    return min(grids, key=lambda grid: _collisions(sample, grid))


def _grid(ends: NDArray[np.float64], shift: float, bits: int) -> Grid:
    low, high = (ends + shift).view(np.int64).tolist()
    return Grid(shift, low, max(0, (high - low).bit_length() - bits), bits)


def _collisions(sample: NDArray[np.float64], grid: Grid) -> float:
    # Pairs of a sample in one bin are too few to compare, unless bins are wide.
    bins = ((sample + grid.shift).view(np.int64) - grid.base) >> (grid.drop + 5)
    return float((np.bincount(bins).astype(np.float64) ** 2).sum())


class BinnedRows:
    """Counts of rows by group, label and bin, and the rows they were counted from.

    Parameters
    ----------
    score, labeled, codes : ndarray of shape (n_rows,)
        Score in [0, 1], label and group of each row; only read, a chunk at a time.
    n_groups : int
        Number of groups.

    Notes
    -----
    The ends of bins are operating points, so their hull lies on or below the hull
    looked for. Within a bin no point is above its corner, where all labeled rows come
    first. Only rows of bins whose corner reaches the hull of the ends are sorted: no
    other row can end a hull cut.
    """

    def __init__(
        self,
        score: NDArray[Any],
        labeled: NDArray[np.bool_],
        codes: NDArray[np.intp],
        n_groups: int,
    ) -> None:
        self._rows = score, labeled, codes
        self._grid = choose_grid(score, n_groups)
        small = len(score) < np.iinfo(np.int32).max
        self._count = np.int32 if small else np.int64
        table = np.zeros(n_groups << (self._grid.bits + 1), dtype=self._count)
        one = self._count(1)
        for _, cells in self._chunks():
            np.add.at(table, cells, one)
        # From the highest bin down: group, label, bin.
        self._table = table.reshape(n_groups, 2, -1)[:, :, ::-1]

    @cached_property
    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and labeled rows of each group."""
        sums = self._table.sum(axis=2, dtype=np.int64)
        return sums.sum(axis=1), sums[:, 1]

    @cached_property
    def hulls(self) -> list[OperatingPoints]:
        """Hull of each group; of its flat top only the two ends."""
        bins = self._bins_that_matter()
        ties, tied_score = self._bins_of_one_score(bins)
        bins = bins[~ties]
        ranked = self._gather(bins)
        at, group, accepted, labeled = self._candidates(ranked, bins)
        everything = [at, group, accepted, labeled]
        for number, extra in enumerate(self._more_candidates(bins, ties)):
            everything[number] = np.append(everything[number], extra)
        return None


    def _chunks(self) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Slices of the rows and the cell of each row in them."""
        score, labeled, codes = self._rows
        out, spare = np.empty((2, min(_CHUNK, len(score))), dtype=np.int64)
        for start in range(0, len(score), _CHUNK):
            part = slice(start, start + _CHUNK)
            yield (
                part,
                self._grid.cells(score[part], labeled[part], codes[part], out, spare),
            )
