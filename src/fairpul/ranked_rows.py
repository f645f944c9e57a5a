"""Rows in order of group and score by one sort of packed keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.operating_points import OperatingPoints, on_concave_hulls, with_nobody

# Scores in [0, 1] leave the two highest bits of a float unused: one for the label (at
# the low end, after a shift) and one for two groups.
_UNSIGNED = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}


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
    _mask: int
    _base: int
    _kind: Any

    def score(self, positions: Any) -> NDArray[np.float64]:
        """Scores of the rows at some positions."""
        keys = self._keys[positions]
        bits = keys >> keys.dtype.type(1)
        bits = bits & keys.dtype.type(self._mask)
        if self._base:
            bits = np.where(bits > 0, bits + keys.dtype.type(self._base), bits)
        return np.asarray(bits.astype(_UNSIGNED[self._kind]).view(self._kind)).astype(
            np.float64
        )

    def last_of_ties(self) -> NDArray[np.bool_]:
        """Whether each row is the last one of its group and score."""
        order = self._keys >> self._keys.dtype.type(1)
        last = np.empty(len(order), dtype=bool)
        np.not_equal(order[1:], order[:-1], out=last[:-1])
        last[self.bounds[1:] - 1] = True
        return last


def rank_rows(
    score: NDArray[Any],
    labeled: NDArray[np.bool_],
    codes: NDArray[np.intp] | None = None,
    n_groups: int = 1,
) -> RankedRows:
    """Sort rows by group, falling score and label.

    Parameters
    ----------
    score : ndarray of float32 or float64, shape (n_rows,)
        In [0, 1], without negative zeros.
    labeled : ndarray of bool, shape (n_rows,)
        Whether each row is labeled.
    codes : ndarray of shape (n_rows,), optional
        Group of each row; None for one group.
    n_groups : int
        Number of groups, each of which has a row.

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
    >>> ranked = rank_rows(score, labeled)
    >>> ranked.score(slice(None)).tolist(), ranked.labeled.tolist()
    ([0.9, 0.5, 0.2], [0, 1, 0])
    """
    unsigned = _UNSIGNED[score.dtype]
    bits = score.view(unsigned)
    width = 8 * score.dtype.itemsize
    if codes is None or n_groups == 1:
        return _sorted(_with_label(bits, labeled), None, 1, width - 2, 0, score.dtype)
    if n_groups == 2:
        first = np.left_shift(codes == 0, unsigned(width - 1), dtype=unsigned)
        keys = _with_label(bits, labeled)
        return _sorted(keys, first, 2, width - 2, 0, score.dtype)
    room = 63 - (n_groups - 1).bit_length()
    base = 0
    if score.dtype == np.float64:
        base = int(np.float64(1).view(np.uint64)) - (2**room - 1)
        # Zeros wrap around and pass.
        if base > 0 and int((bits - np.uint64(1)).min()) >= base:
            lowered = np.maximum(bits, np.uint64(base))
            lowered -= np.uint64(base)
        else:
            return _dealt(bits, labeled, codes, n_groups, score.dtype)
    else:
        lowered = bits.astype(np.uint64)
    group = (n_groups - 1 - codes).astype(np.uint64)
    group <<= np.uint64(room + 1)
    keys = _with_label(lowered, labeled)
    return _sorted(keys, group, n_groups, room, base, score.dtype)


def _with_label(bits: NDArray[Any], labeled: NDArray[np.bool_]) -> NDArray[Any]:
    keys = np.left_shift(bits, bits.dtype.type(1))
    keys |= labeled.view(np.uint8)
    return keys


def _sorted(
    keys: NDArray[Any],
    group: NDArray[Any] | None,
    n_groups: int,
    room: int,
    base: int,
    kind: Any,
) -> RankedRows:
    """Sort keys whose group stands above ``room`` bits of score and one of label."""
    if group is not None:
        keys |= group
    keys.sort()
    firsts = np.arange(n_groups, dtype=keys.dtype) << keys.dtype.type(room + 1)
    if n_groups == 2:  # the one bit of the group is the highest
        firsts = np.array([0, 1 << (8 * keys.itemsize - 1)], dtype=keys.dtype)
    starts = np.searchsorted(keys, firsts)
    bounds = (len(keys) - np.append(starts, len(keys)))[::-1]
    falling = keys[::-1]
    labeled = falling.astype(np.uint8) & np.uint8(1)
    mask = (1 << room) - 1
    return RankedRows(labeled, bounds, falling, mask, base, kind)


def _dealt(
    bits: NDArray[Any],
    labeled: NDArray[np.bool_],
    codes: NDArray[np.intp],
    n_groups: int,
    kind: Any,
) -> RankedRows:
    """Rows of each group side by side, each group sorted by itself."""
    narrow = np.uint16 if n_groups <= 2**16 else np.intp  # 16 bits: a radix sort
    order = np.argsort((n_groups - 1 - codes).astype(narrow), kind="stable")
    keys = _with_label(bits[order], labeled[order])
    bounds = np.append(0, np.cumsum(np.bincount(codes, minlength=n_groups)))
    for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
        keys[len(keys) - stop : len(keys) - start].sort()
    falling = keys[::-1]
    lowest = falling.astype(np.uint8) & np.uint8(1)
    return RankedRows(lowest, bounds, falling, 2**63 - 1, 0, kind)


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
    for start, stop in zip(ranked.bounds[:-1], ranked.bounds[1:], strict=True):
        if start < stop and labeled[start]:
            run = int(np.argmin(labeled[start:stop])) or stop - start
            corner[start : start + run] = True
    return np.flatnonzero(corner)


def _corners_of_ties(
    ranked: RankedRows, last: NDArray[np.bool_], runs: NDArray[np.intp]
) -> NDArray[np.intp]:
    ends = np.flatnonzero(last)
    hits = np.cumsum(ranked.labeled, dtype=np.int64)[ends]
    n, m = np.diff(ends, prepend=-1), np.diff(hits, prepend=0)
    fall = np.sign(m[:-1] * n[1:] - m[1:] * n[:-1])
    keep = np.append((fall > 0) | ((fall == 0) & (m[:-1] > 0)), True)
    keep[np.searchsorted(ends, runs)] = True
    return np.asarray(ends[keep])


def ranked_points(ranked: RankedRows, number: int) -> OperatingPoints:
    """All operating points of one group of ranked rows."""
    start, stop = ranked.bounds[number : number + 2]
    ends = start + np.flatnonzero(ranked.last_of_ties()[start:stop])
    hits = np.cumsum(ranked.labeled[start:stop], dtype=np.int64)
    return with_nobody(ranked.score(ends), ends + 1 - start, hits[ends - start])


def ranked_hulls(ranked: RankedRows) -> list[OperatingPoints]:
    """Hull of each group of ranked rows; of its flat top only the two ends."""
    ends = ranked.bounds[1:] - 1
    at = corners(ranked, ends)
    hits = np.cumsum(ranked.labeled, dtype=np.int64)
    starts = np.searchsorted(at, ranked.bounds[:-1])
    sizes = np.diff(starts, append=len(at))
    base = np.append(0, hits[ends[:-1]])
    accepted = at + 1 - np.repeat(ranked.bounds[:-1], sizes)
    labeled = hits[at] - np.repeat(base, sizes)
    on_hull = on_concave_hulls(accepted, labeled, starts)
    return [
        hull_of(ranked.score, at[part], accepted[part], labeled[part], on_hull[part])
        for part in map(slice, starts, [*starts[1:], len(at)])
    ]


def hull_of(
    score_at: Callable[[Any], NDArray[Any]],
    at: NDArray[Any],
    accepted: NDArray[np.int64],
    labeled: NDArray[np.int64],
    on_hull: NDArray[np.bool_],
) -> OperatingPoints:
    """Hull of one group from its candidates, the middle of its flat top left out."""
    kept = np.flatnonzero(on_hull)
    flat = int(np.searchsorted(labeled[kept], labeled[-1])) + 1
    if flat < len(kept) - 1:
        kept = np.append(kept[:flat], kept[-1])
    return with_nobody(score_at(at[kept]), accepted[kept], labeled[kept])


def joined_points(
    hull: OperatingPoints, first: int, ranked: RankedRows, number: int
) -> OperatingPoints:
    """Operating points from a hull cut down through ranked rows, and everybody."""
    start, stop = ranked.bounds[number : number + 2]
    cut, masses = hull.cut[[first]], [hull.accepted[[first]], hull.labeled[[first]]]
    if start < stop:
        more = ranked_points(ranked, number)[1:]
        # Only the last cut of a group is 0, not the last of some of its rows.
        lowest = ranked.score([stop - 1])
        cut = np.concatenate([cut, more.cut[:-1], lowest])
        masses = [
            np.append(mass, mass + more_mass)
            for mass, more_mass in zip(
                masses, (more.accepted, more.labeled), strict=True
            )
        ]
    if masses[0][-1] == hull.accepted[-1]:
        cut[-1] = hull.cut[-1]
        return OperatingPoints(cut, masses[0], masses[1])
    return OperatingPoints(
        np.append(cut, hull.cut[-1]),
        np.append(masses[0], hull.accepted[-1]),
        np.append(masses[1], hull.labeled[-1]),
    )
