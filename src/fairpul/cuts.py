"""Cuts and weights of one group, and the chance of acceptance they give a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    probability = np.zeros(len(score))
    for rank in reversed(range(max(map(len, cuts)))):  # from lenient to strict
        at = np.array([c[rank][0] if rank < len(c) else np.inf for c in cuts])
        level = np.array([p[rank] if rank < len(p) else 0.0 for p in levels])
        reached = score >= at[codes]
        probability = np.where(reached, level[codes], probability)
    return probability
