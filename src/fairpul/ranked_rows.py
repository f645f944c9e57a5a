"""Rows in order of group and score by one sort of packed keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.operating_points import OperatingPoints, on_concave_hulls, with_nobody

#: Integers whose order is that of the bits of scores. Scores in [0, 1] leave the two
#: highest bits unused: one for the label (at the low end, after a shift) and one for
#: two groups.
UNSIGNED = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}


Mask = NDArray[np.bool_]

# Rows packed at a time: their temporaries stay in the cache.
_CHUNK = 2**13


@dataclass(frozen=True)
class Packing:
    """How group, score and label of a row share one unsigned integer.

    Attributes
    ----------
    unsigned : type
        Type of the integers.
    room : int
        Bits of the score; one of the label stands below them, the group above.
    base : int
        Subtracted from the bits of scores above 0, to make room for the group.
    """

    unsigned: Any
    n_groups: int
    room: int
    base: int

    @staticmethod
    def of(kind: Any, n_groups: int) -> Packing:
        """Packing for scores of a float type."""
        unsigned = UNSIGNED[kind]
        if n_groups <= 2:
            return Packing(unsigned, n_groups, 8 * kind.itemsize - 2, 0)
        room = 63 - (n_groups - 1).bit_length()
        if unsigned is np.uint32:
            return Packing(np.uint64, n_groups, room, 0)
        one = int(np.float64(1).view(np.uint64))
        return Packing(np.uint64, n_groups, room, one - (2**room - 1))

    def fits(self, score: NDArray[Any]) -> bool:
        """Whether no two of these scores become one."""
        # Zeros wrap around to the largest integer and pass.
        return not self.base or int((score.view(np.uint64) - 1).min()) >= self.base

    def pack(
        self,
        score: NDArray[Any],
        labeled: NDArray[np.bool_],
        codes: NDArray[Any],
        out: NDArray[Any],
    ) -> None:
        """Write the packed rows, in reverse order of the groups."""
        unsigned = self.unsigned
        bits = score.view(UNSIGNED[score.dtype])
        if self.base:
            bits = np.maximum(bits, unsigned(self.base)) - unsigned(self.base)
        np.left_shift(bits, unsigned(1), out=out, dtype=unsigned)
        out |= labeled.view(np.uint8)
        if self.n_groups > 1:
            group = (self.n_groups - 1 - codes).astype(unsigned)
            group <<= unsigned(self.room + 1)
            out |= group

    def score(self, keys: NDArray[Any], kind: Any) -> NDArray[np.float64]:
        """Scores of packed rows."""
        bits = (keys >> self.unsigned(1)) & self.unsigned((1 << self.room) - 1)
        if self.base:
            bits = np.where(bits > 0, bits + self.unsigned(self.base), bits)
        score = bits.astype(UNSIGNED[kind]).view(kind)
        return np.asarray(score, dtype=np.float64)

    def starts(self) -> NDArray[Any]:
        """Smallest key of each group."""
        group = np.arange(self.n_groups, dtype=self.unsigned)
        return np.asarray(group << self.unsigned(self.room + 1))


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows by group, within a group by falling score, labeled ones first among ties.

    Attributes
    ----------
    labeled : ndarray of uint8, shape (n_rows,)
        1 for labeled rows.
    bounds : ndarray of shape (n_groups + 1,)
        Where each group begins, and the end.
    """

    labeled: NDArray[np.uint8]
    bounds: NDArray[np.intp]
    _keys: NDArray[Any]
    _packing: Packing
    _kind: Any

    def score(self, positions: Any) -> NDArray[np.float64]:
        """Scores of the rows at some positions."""
        return self._packing.score(self._keys[positions], self._kind)

    def last_of_ties(self, start: int = 0, stop: int | None = None) -> Mask:
        """Whether each of some rows is the last of its group and score among them."""
        ranked = self._keys[start:stop]
        last = np.ones(len(ranked), dtype=bool)
        for first in range(0, len(last) - 1, _CHUNK):
            keys = ranked[first : first + _CHUNK + 1]
            differing = keys[1:] ^ keys[:-1]  # in the label's bit alone if tied
            np.greater(differing, 1, out=last[first : first + len(differing)])
        if stop is None:
            last[self.bounds[1:][np.diff(self.bounds) > 0] - 1] = True
        return last


def rank_rows(
    score: NDArray[Any],
    labeled: NDArray[np.bool_],
    codes: NDArray[np.intp],
    n_groups: int,
) -> RankedRows:
    """Sort rows by group, falling score and label.

    Parameters
    ----------
    score : ndarray of float32 or float64, shape (n_rows,)
        In [0, 1], without negative zeros.
    labeled : ndarray of bool, shape (n_rows,)
        Whether each row is labeled.
    codes : ndarray of shape (n_rows,)
        Group of each row.
    n_groups : int
        Number of groups.

    Notes
    -----
    A float in [0, 1] and its bits read as an integer have the same order. So group,
    score and label fit into one unsigned integer, whose sort is vectorized, and no row
    needs to be looked up afterwards. Beyond two groups of float64 scores the exponents
    that do not occur make room for the group; if scores spread over too many orders of
    magnitude for that, rows are dealt to their groups first. No two scores are merged.

    Examples
    --------
    >>> score, labeled = np.array([0.2, 0.9, 0.5]), np.array([False, False, True])
    >>> ranked = rank_rows(score, labeled, np.zeros(3, dtype=np.intp), 1)
    >>> ranked.score(slice(None)).tolist(), ranked.labeled.tolist()
    ([0.9, 0.5, 0.2], [0, 1, 0])
    """

    def batches() -> Iterator[tuple[NDArray[Any], ...]]:
        for start in range(0, len(score), _CHUNK):
            part = slice(start, start + _CHUNK)
            yield score[part], labeled[part], codes[part]

    return rank_batches(batches, len(score), score.dtype, n_groups)


def rank_batches(batches: Any, n_rows: int, kind: Any, n_groups: int) -> RankedRows:
    """Sort rows that come in batches, as :func:`rank_rows` does.

    ``batches`` is called for an iterable of (score, labeled, codes), perhaps twice;
    ``n_rows`` is the number of rows in all and ``kind`` the type of the scores.
    """
    packing = Packing.of(kind, n_groups)
    keys = np.empty(n_rows, dtype=packing.unsigned)
    filled = 0
    for score, labeled, codes in batches():
        if not packing.fits(score):
            columns = zip(*batches(), strict=True)
            return _rank_dealt(n_groups, *map(np.concatenate, columns))
        packing.pack(score, labeled, codes, keys[filled : filled + len(score)])
        filled += len(score)
    keys.sort()
    starts = np.searchsorted(keys, packing.starts())
    bounds = n_rows - np.append(starts, n_rows)[::-1]
    falling = keys[::-1]
    labeled = falling.astype(np.uint8) & np.uint8(1)
    return RankedRows(labeled, bounds, falling, packing, kind)


def _rank_dealt(
    n_groups: int,
    score: NDArray[Any],
    labeled: NDArray[np.bool_],
    codes: NDArray[np.intp],
) -> RankedRows:
    """Put rows of each group side by side and sort each group by itself."""
    narrow = np.uint16 if n_groups <= 2**16 else np.intp  # 16 bits: a radix sort
    order = np.argsort((n_groups - 1 - codes).astype(narrow), kind="stable")
    packing = Packing.of(score.dtype, 1)
    keys = np.empty(len(score), dtype=packing.unsigned)
    packing.pack(score[order], labeled[order], codes, keys)
    bounds = np.append(0, np.cumsum(np.bincount(codes, minlength=n_groups)))
    for start, stop in pairwise(bounds):
        keys[len(keys) - stop : len(keys) - start].sort()
    falling = keys[::-1]
    lowest = falling.astype(np.uint8) & np.uint8(1)
    return RankedRows(lowest, bounds, falling, packing, score.dtype)


def corners(ranked: RankedRows, runs: NDArray[np.intp]) -> NDArray[np.intp]:
    """Positions of the rows after which a hull can have a cut, its flat top left out.

    Parameters
    ----------
    ranked : RankedRows
        Rows in order.
    runs : ndarray
        Last positions of runs of adjacent rows that are kept whatever follows; the
        last row of each group among them.

    Notes
    -----
    A hull turns only where the labeled share falls: between distinct scores, where an
    unlabeled row follows a labeled one. Cuts on an edge are such places too, but for
    the edges of labeled rows only, at the top of a group, and of unlabeled rows only.
    """
    last, labeled = ranked.last_of_ties(), ranked.labeled
    if not last.all():
        return _corners_of_ties(ranked, last, runs)
    corner = np.empty(len(labeled), dtype=bool)
    np.greater(labeled[:-1], labeled[1:], out=corner[:-1])
    corner[runs] = True
    for start, stop in pairwise(ranked.bounds):
        if start < stop and labeled[start]:
            run = int(np.argmin(labeled[start:stop])) or stop - start
            corner[start : start + run] = True
    return np.flatnonzero(corner)


def _corners_of_ties(
    ranked: RankedRows, last: NDArray[np.bool_], runs: NDArray[np.intp]
) -> NDArray[np.intp]:
    ends = np.flatnonzero(last)
    hits = labeled_up_to(ranked.labeled, ends)
    n, m = np.diff(ends, prepend=-1), np.diff(hits, prepend=0)
    fall = np.sign(m[:-1] * n[1:] - m[1:] * n[:-1])
    keep = np.append((fall > 0) | ((fall == 0) & (m[:-1] > 0)), True)
    keep[np.searchsorted(ends, runs)] = True
    return np.asarray(ends[keep])


def ranked_points(ranked: RankedRows, start: int, stop: int) -> OperatingPoints:
    """All operating points of ranked rows of one group, as if it had no others."""
    ends = start + np.flatnonzero(ranked.last_of_ties(start, stop))
    labeled = labeled_up_to(ranked.labeled[start:stop], ends - start)
    return with_nobody(ranked.score(ends), ends + 1 - start, labeled)


def ranked_hulls(ranked: RankedRows) -> list[OperatingPoints]:
    """Hull of each group of ranked rows; of its flat top only the two ends."""
    at = corners(ranked, ranked.bounds[1:] - 1)
    starts = np.searchsorted(at, ranked.bounds[:-1])
    ends = np.append(starts[1:], len(at))
    sizes = ends - starts
    hits = labeled_up_to(ranked.labeled, at)
    labeled = hits - np.repeat(np.append(0, hits[starts[1:] - 1]), sizes)
    accepted = at + 1 - np.repeat(ranked.bounds[:-1], sizes)
    return hulls_of(ranked.score, at, accepted, labeled, starts)


def hulls_of(
    score_at: Callable[[Any], NDArray[Any]],
    at: NDArray[Any],
    accepted: NDArray[np.int64],
    labeled: NDArray[np.int64],
    starts: NDArray[np.intp],
) -> list[OperatingPoints]:
    """Hull of each group from its candidates, the middle of its flat top left out."""
    kept = on_concave_hulls(accepted, labeled, starts).nonzero()[0]
    score, accepted, labeled = score_at(at[kept]), accepted[kept], labeled[kept]
    hulls = []
    for start, stop in pairwise([*kept.searchsorted(starts), len(kept)]):
        flat = start + int(labeled[start:stop].searchsorted(labeled[stop - 1])) + 1
        part: Any = slice(start, stop)
        if flat < stop - 1:
            part = [*range(start, flat), stop - 1]
        hulls.append(with_nobody(score[part], accepted[part], labeled[part]))
    return hulls


def joined_points(
    hull: OperatingPoints, first: int, ranked: RankedRows, start: int, stop: int
) -> OperatingPoints:
    """Operating points from a hull cut down through ranked rows, and everybody."""
    points = hull[first : first + 1]
    if start < stop:
        more = ranked_points(ranked, start, stop)[1:]
        # Only the last cut of a group is 0, not the last of some of its rows.
        more.cut[-1] = ranked.score(slice(stop - 1, stop))[0]
        below = OperatingPoints(
            more.cut,
            more.accepted + points.accepted[0],
            more.labeled + points.labeled[0],
        )
        points = points.joined(below)
    if points.accepted[-1] == hull.accepted[-1]:
        points = points[:-1]
    return points.joined(hull[-1:])


def ranked_totals(
    ranked: RankedRows,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and labeled rows of each group."""
    hits = np.add.reduceat(ranked.labeled, ranked.bounds[:-1], dtype=np.int64)
    return np.diff(ranked.bounds), hits


def labeled_up_to(
    labeled: NDArray[np.uint8], positions: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Count the labeled rows up to and with each of some rising positions."""
    counts = np.empty(len(positions), dtype=np.int64)
    starts = np.arange(0, len(labeled), _CHUNK)
    parts = np.searchsorted(positions, [*starts, len(labeled)])
    before = 0
    for start, first, last in zip(starts, parts[:-1], parts[1:], strict=True):
        sums = np.cumsum(labeled[start : start + _CHUNK], dtype=np.int64)
        sums += before
        counts[first:last] = sums[positions[first:last] - start]
        before = sums[-1]
    return counts
