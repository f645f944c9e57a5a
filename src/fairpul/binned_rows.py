"""Exact hulls of many rows: count them in bins, then sort the bins that matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.operating_points import OperatingPoints, on_concave_hulls
from fairpul.ranked_rows import (
    UNSIGNED,
    RankedRows,
    corners,
    hulls_of,
    joined_points,
    labeled_up_to,
    rank_batches,
    rank_rows,
)

# Rows handled at a time: their temporaries stay in the second-level cache.
_CHUNK = 2**14
# With this many bins per row^(2/3), about a tenth of the rows can matter to the hull,
# whose edges grow as row^(2/3) too.
_BINS_FACTOR = 2.5
# Bins of all groups together, at most, in multiples of the rows.
_MOST_CELLS = 1 / 4
# Bins looked at together: groups share the overhead, and no table outgrows the rows.
_BLOCK = 2**14
_SAMPLE = 4096
# One in so many bins gives a first hull, beneath which most bins lie.
_COARSER = 16
# Shifts of the score before its bits are read: 1 gives bins of equal width, smaller
# ones bins that are narrower where scores are small.
_SHIFTS = (1.0, 2.0**-4, 2.0**-8, 2.0**-12, 2.0**-20, 2.0**-40, 2.0**-300)
# Bins with more rows than this are looked at for ties if they hold many of the rows.
_HEAVY_BIN = 256
_HEAVY_SHARE = 0.1


@dataclass(frozen=True)
class Grid:
    """A nonincreasing map of scores to bins: the leading bits of a shifted score.

    Bins are counted from the highest scores down.
    """

    shift: float
    top: int
    drop: int
    bits: int

    def cells(
        self,
        score: NDArray[Any],
        codes: NDArray[np.intp],
        out: NDArray[np.int64],
        spare: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Cell (group, bin) of each row, written into ``out``."""
        np.add(score, self.shift, out=spare.view(np.float64), dtype=np.float64)
        np.right_shift(spare, self.drop, out=spare)
        np.subtract(self.top, spare, out=out)
        np.left_shift(codes, self.bits, out=spare)
        return np.add(out, spare, out=out)


def choose_grid(score: NDArray[Any], codes: NDArray[np.intp], n_groups: int) -> Grid:
    """Grid with about the wanted number of bins that spreads a sample of rows best."""
    step = max(1, len(score) // _SAMPLE)
    counts = np.bincount(codes[::step], minlength=n_groups)
    largest = len(score) * counts.max() / counts.sum()
    wanted = np.ceil(np.log2(_BINS_FACTOR * largest ** (2 / 3)))
    most = np.floor(np.log2(_MOST_CELLS * len(score) / n_groups))
    bits = int(max(4, min(wanted, most)))
    sample = score[::step].astype(np.float64)
    # Scores and their bits have one order, and integers are compared faster.
    raw = score.view(UNSIGNED[score.dtype])
    ends = np.array([raw.min(), raw.max()]).view(score.dtype).astype(np.float64)
    grids = [_grid(ends, shift, bits) for shift in _SHIFTS]
    return min(grids, key=lambda grid: _collisions(sample, grid))


def _grid(ends: NDArray[np.float64], shift: float, bits: int) -> Grid:
    low, high = (ends + shift).view(np.int64).tolist()
    drop = max(0, (high - low).bit_length() - bits)
    while (high >> drop) - (low >> drop) >= 1 << bits:
        drop += 1
    return Grid(shift, high >> drop, drop, bits)


def _collisions(sample: NDArray[np.float64], grid: Grid) -> float:
    # Pairs of a sample in one bin are too few to compare, unless bins are wide.
    bins = (grid.top >> 5) - ((sample + grid.shift).view(np.int64) >> (grid.drop + 5))
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
        self._grid = choose_grid(score, codes, n_groups)
        size = n_groups << self._grid.bits
        small = len(score) < np.iinfo(np.int32).max
        count = np.int32 if small else np.int64
        table = np.zeros(2 * size, dtype=count)
        one, spare = count(1), np.empty(_CHUNK, dtype=np.int64)
        for part, cells in self._chunks():
            of_label = spare[: len(cells)]
            np.multiply(labeled[part].view(np.int8), size, out=of_label, dtype=np.int64)
            np.add.at(table, np.add(cells, of_label, out=cells), one)
        # Label, group, bin.
        self._table = table.reshape(2, n_groups, -1)

    @cached_property
    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and labeled rows of each group."""
        unlabeled, labeled = self._table.sum(axis=2, dtype=np.int64)
        return unlabeled + labeled, labeled

    @cached_property
    def hulls(self) -> list[OperatingPoints]:
        """Hull of each group; of its flat top only the two ends."""
        bins, inner = self._bins_that_matter()
        tied = self._one_score(bins)
        sorted_ones = bins.n_labeled > 0
        sorted_ones[tied.positions] = False
        which = np.flatnonzero(sorted_ones)
        ranked = self._gather(bins, which)
        ends = np.cumsum(bins.n[which]) - 1
        at = corners(ranked, ends)
        # Counts at a row: those at the end of its bin without the rows in between.
        run = np.searchsorted(ends, at)
        below = labeled_up_to(ranked.labeled, ends)[run]
        below -= labeled_up_to(ranked.labeled, at)
        found = _Candidates(
            at,
            bins.group[which[run]],
            bins.accepted[which[run]] - (ends[run] - at),
            bins.labeled[which[run]] - below,
        )
        found = found.chosen(inner.reached(found.group, found.accepted, found.labeled))
        found = found.joined(bins.candidates(tied.positions))
        found = found.joined(
            bins.candidates(np.append(bins.first[1:], len(bins.n)) - 1)
        )

        def score_at(at: NDArray[np.intp]) -> NDArray[np.float64]:
            score = np.zeros(len(at))
            score[at >= 0] = ranked.score(at[at >= 0])
            place = np.searchsorted(tied.positions, -1 - at[at < 0])
            score[at < 0] = np.append(tied.score, 0.0)[place]
            return score

        return found.hulls(score_at)

    def between(
        self, hulls: Sequence[OperatingPoints], ends: Sequence[tuple[int, int]]
    ) -> list[OperatingPoints]:
        """All cuts of each group between two positions on its hull, and everybody."""
        pairs = list(zip(hulls, ends, strict=True))
        strict = np.array([hull.cut[first] for hull, (first, _) in pairs])
        lenient = np.array([hull.cut[last] for hull, (_, last) in pairs])
        score, labeled, codes = self._rows
        rows = []
        for start in range(0, len(score), _CHUNK):
            part = slice(start, start + _CHUNK)
            code = codes[part]
            inside = score[part] < strict.take(code)
            inside &= score[part] >= lenient.take(code)
            rows.append(start + np.flatnonzero(inside))
        chosen = np.concatenate(rows)
        ranked = rank_rows(score[chosen], labeled[chosen], codes[chosen], len(hulls))
        return [
            joined_points(hull, first, ranked, *ranked.bounds[number : number + 2])
            for number, (hull, (first, _)) in enumerate(pairs)
        ]

    def _bins_that_matter(self) -> tuple[_Bins, _InnerHulls]:
        """Bins whose corner reaches the hull of the ends of bins, and these hulls.

        The last bin of each group is among them.
        """
        _, n_groups, n_bins = self._table.shape
        step = max(1, _BLOCK // n_bins)
        kept = []
        for start in range(0, n_groups, step):
            bins = self._bins(slice(start, start + step))
            some = np.zeros(len(bins.n), dtype=bool)
            some[::_COARSER] = some[bins.last] = True
            kept.append(bins.reaching(bins.chosen(some))[0].moved(start))
        bins = _Bins.concatenated(kept)
        return bins.reaching(bins)

    def _bins(self, groups: slice) -> _Bins:
        """Bins with rows in them, by group and from the highest down."""
        unlabeled, labeled = self._table[:, groups]
        n_groups, n_bins = labeled.shape
        n = (unlabeled + labeled).ravel()
        at = np.flatnonzero(n)
        group, number = at >> self._grid.bits, at & (n_bins - 1)
        n, m = (counts.ravel()[at].astype(np.int64) for counts in (n, labeled))
        first = np.searchsorted(at, n_bins * np.arange(n_groups))
        sums = np.cumsum([n, m], axis=1)
        before = np.concatenate([[[0], [0]], sums[:, first[1:] - 1]], axis=1)
        sums -= np.repeat(before, np.diff(first, append=len(at)), axis=1)
        return _Bins(group, number, n, m, sums[0], sums[1])

    def _one_score(self, bins: _Bins) -> _TiedBins:
        """Bins with many rows that all have one score, which need no sorting."""
        heavy = np.flatnonzero((bins.n_labeled > 0) & (bins.n > _HEAVY_BIN))
        if bins.n[heavy].sum() < _HEAVY_SHARE * len(self._rows[0]):
            return _TiedBins(heavy[:0], np.zeros(0))
        lookup = np.full(self._table[0].shape, -1, dtype=np.int32)
        lookup[bins.group[heavy], bins.number[heavy]] = np.arange(len(heavy))
        seen = np.full(len(heavy), np.nan)
        several = np.zeros(len(heavy), dtype=bool)
        for part, cells in self._chunks():
            place = lookup.take(cells)
            rows = np.flatnonzero(place >= 0)
            place, score = place[rows], self._rows[0][part][rows]
            new = np.isnan(seen[place])
            seen[place[new]] = score[new]
            several[place[seen[place] != score]] = True
        return _TiedBins(heavy[~several], seen[~several])

    def _gather(self, bins: _Bins, which: NDArray[np.intp]) -> RankedRows:
        """Rows of some bins in order."""
        wanted = np.zeros(self._table[0].shape, dtype=bool)
        wanted[bins.group[which], bins.number[which]] = True
        n_rows, n_groups = int(bins.n[which].sum()), len(wanted)

        def batches() -> Iterator[list[NDArray[Any]]]:
            for part, cells in self._chunks():
                rows = np.flatnonzero(wanted.take(cells))
                if len(rows):
                    yield [column[part][rows] for column in self._rows]

        return rank_batches(batches, n_rows, self._rows[0].dtype, n_groups)

    def _chunks(self) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Slices of the rows and the cell of each row in them."""
        score, _, codes = self._rows
        out, spare = np.empty((2, min(_CHUNK, len(score))), dtype=np.int64)
        for start in range(0, len(score), _CHUNK):
            part = slice(start, start + _CHUNK)
            size = len(score[part])
            yield (
                part,
                self._grid.cells(score[part], codes[part], out[:size], spare[:size]),
            )


@dataclass(frozen=True, eq=False)
class _TiedBins:
    """Positions of bins whose rows have one score, and the scores."""

    positions: NDArray[np.intp]
    score: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Bins:
    """Bins with rows: counts, and sums from the top of the group on."""

    group: NDArray[np.intp]
    number: NDArray[np.intp]
    n: NDArray[np.int64]
    n_labeled: NDArray[np.int64]
    accepted: NDArray[np.int64]
    labeled: NDArray[np.int64]

    @staticmethod
    def concatenated(parts: list[_Bins]) -> _Bins:
        """Bins of several blocks of groups."""
        names = [field.name for field in fields(_Bins)]
        return _Bins(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """Position of the first bin of each group."""
        return np.flatnonzero(np.diff(self.group, prepend=-1))

    @cached_property
    def last(self) -> NDArray[np.intp]:
        """Position of the last bin of each group."""
        return np.append(self.first[1:], len(self.group)) - 1

    def chosen(self, which: NDArray[np.bool_]) -> _Bins:
        """Take some of the bins."""
        return _Bins(*(getattr(self, field.name)[which] for field in fields(self)))

    def reaching(self, ends: _Bins) -> tuple[_Bins, _InnerHulls]:
        """Bins whose corner reaches the hull of the ends of some, and this hull.

        The last bin of each group, which must be among those, is kept.
        """
        on_hull = on_concave_hulls(ends.accepted, ends.labeled, ends.first)
        hulls = _InnerHulls.of(ends.chosen(on_hull))
        corner = self.accepted - self.n + self.n_labeled
        matter = hulls.reached(self.group, corner, self.labeled)
        matter &= self.n_labeled > 0
        matter[self.last] = True
        return self.chosen(matter), hulls

    def moved(self, groups: int) -> _Bins:
        """Count the groups from another number on."""
        return replace(self, group=self.group + groups)

    def candidates(self, positions: NDArray[np.intp]) -> _Candidates:
        """Take the ends of bins as candidates, numbered from -1 down."""
        return _Candidates(
            -1 - positions,
            self.group[positions],
            self.accepted[positions],
            self.labeled[positions],
        )


@dataclass(frozen=True, eq=False)
class _InnerHulls:
    """Hull of the ends of bins of each group, which no point on the hull is below."""

    chains: list[tuple[NDArray[np.int64], NDArray[np.int64]]]

    @staticmethod
    def of(vertices: _Bins) -> _InnerHulls:
        """Hulls through the ends of some bins."""
        parts = list(map(slice, vertices.first, vertices.last + 1))
        return _InnerHulls(
            [
                (
                    np.append(0, vertices.accepted[part]),
                    np.append(0, vertices.labeled[part]),
                )
                for part in parts
            ]
        )

    def reached(
        self,
        group: NDArray[np.intp],
        accepted: NDArray[np.int64],
        labeled: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Whether points, by group, lie on or above the hull of their group."""
        result = np.empty(len(group), dtype=bool)
        bounds = np.searchsorted(group, np.arange(len(self.chains) + 1))
        for (x, y), (start, stop) in zip(self.chains, pairwise(bounds), strict=True):
            part = slice(start, stop)
            slack = 1e-9 * y[-1]  # above the rounding of an interpolation
            height = np.interp(accepted[part], x, y)
            result[part] = labeled[part] >= height - slack
        return result


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Rows, or ends of bins, that may be on the hull: by group and masses."""

    at: NDArray[np.intp]
    group: NDArray[np.intp]
    accepted: NDArray[np.int64]
    labeled: NDArray[np.int64]

    def chosen(self, which: NDArray[np.bool_]) -> _Candidates:
        """Take some of the candidates."""
        return _Candidates(
            *(getattr(self, field.name)[which] for field in fields(self))
        )

    def joined(self, other: _Candidates) -> _Candidates:
        """Add those of another that are not among them."""
        if not len(other.at):
            return self
        size = max(int(self.accepted.max(initial=0)), int(other.accepted.max())) + 1
        keys = self.group * size + self.accepted
        wanted = other.group * size + other.accepted
        place = np.searchsorted(keys, wanted)
        new = np.append(keys, -1)[place] != wanted
        return _Candidates(
            *(
                np.insert(
                    getattr(self, field.name),
                    place[new],
                    getattr(other, field.name)[new],
                )
                for field in fields(self)
            )
        )

    def hulls(self, score_at: Any) -> list[OperatingPoints]:
        """Hull of each group."""
        starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        return hulls_of(score_at, self.at, self.accepted, self.labeled, starts)
