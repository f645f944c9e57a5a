"""Cuts and weights of one group, and the chance of acceptance they give a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rows compared at a time: their temporaries stay in the cache.
_CHUNK = 2**13

#: Pairs (cut, weight) of one group, from strict to lenient.
Cuts = tuple[tuple[float, float], ...]


def acceptance_levels(cuts: Cuts) -> list[float]:
    """Probability of acceptance by the strictest cut that a score reaches.

    Examples
    --------
    >>> acceptance_levels(((0.9, 0.25), (0.5, 0.75)))
    [1.0, 0.75]
    """
    tails = np.cumsum([weight for _, weight in reversed(cuts)])[::-1]
    return [1.0, *tails[1:].tolist()]


def acceptance(
    score: NDArray[Any], codes: NDArray[np.intp], cuts: tuple[Cuts, ...]
) -> NDArray[np.float64]:
    """Look up the acceptance probability of rows with coded groups."""
    levels = [acceptance_levels(group_cuts) for group_cuts in cuts]
    probability = np.empty(len(score))
    most = max(map(len, cuts))
    for rank in reversed(range(most)):  # from lenient to strict
        level = np.array([p[rank] if rank < len(p) else 0.0 for p in levels])
        for part, reached in _reached(score, codes, _cut_at(cuts, rank)):
            if most == 1:
                probability[part] = reached
            elif rank == most - 1:
                np.multiply(reached, level.take(codes[part]), out=probability[part])
            else:
                np.copyto(probability[part], level.take(codes[part]), where=reached)
    return probability


def decided(
    score: NDArray[Any], codes: NDArray[np.intp], cuts: tuple[Cuts, ...]
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Decisions of the strictest cuts, and the rows about which lots are drawn.

    Examples
    --------
    >>> score, codes = np.array([0.9, 0.6, 0.2]), np.zeros(3, dtype=np.intp)
    >>> decision, drawn = decided(score, codes, (((0.8, 0.5), (0.5, 0.5)),))
    >>> decision.tolist(), drawn.tolist()
    ([1, 0, 0], [1])
    """
    decision = np.empty(len(score), dtype=np.int64)
    for part, reached in _reached(score, codes, _cut_at(cuts, 0)):
        decision[part] = reached
    if max(map(len, cuts)) == 1:
        return decision, np.zeros(0, dtype=np.intp)
    drawn = []
    for part, reached in _reached(score, codes, _cut_at(cuts, -1)):
        drawn.append(part.start + np.flatnonzero(reached > decision[part]))
    return decision, np.concatenate([np.zeros(0, dtype=np.intp), *drawn])


def _cut_at(cuts: tuple[Cuts, ...], rank: int) -> NDArray[np.float64]:
    """Cut of each group at a rank, -1 the last; inf where it has fewer."""
    return np.array([c[rank][0] if rank < len(c) else np.inf for c in cuts])


def _reached(
    score: NDArray[Any], codes: NDArray[np.intp], cut: NDArray[np.float64]
) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Slices of the rows, and which rows in them reach the cut of their group."""
    for start in range(0, len(score), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(score)))
        yield part, score[part] >= cut.take(codes[part])
