"""The one bin expression: floor(f^(1/4) * bins), the same to the bit on every engine.

Bins that are equally wide in the fourth root of the score are narrow where scores are
small, so rules for rare outcomes keep their resolution. IEEE square roots are exact,
and a number of bins that is a power of two scales without rounding. Hence every engine
bins alike, and the bins of a coarser grid are unions of the bins of a finer one. A
score of 1 has the bin number ``bins`` to itself.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from operator import index
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

#: Bins of a table unless told otherwise.
BINS = 2**12
#: Bins that a bin is resolved to where a rule has its threshold.
FINE_BINS = 2**26
#: Bins to resolve, by group.
Refinement = Mapping[Hashable, Collection[int]]


def check_bins(bins: Any) -> int:
    """Return the number of bins as int, a power of two from 2 to ``FINE_BINS``."""
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        number = int(bins)
        if 2 <= number <= FINE_BINS and number & (number - 1) == 0:
            return number
    raise ValueError(
        f"bins must be a power of two from 2 to 2**26 = {FINE_BINS}, got {bins!r}."
    )


def check_refinement(
    refine: Refinement | bool | None, bins: int
) -> dict[Hashable, tuple[int, ...]]:
    """Bins to resolve, sorted, without the groups that name none."""
    if refine is None or isinstance(refine, bool):
        return {}
    if not isinstance(refine, Mapping):
        raise TypeError(
            f"refine must be True or map groups to numbers of bins, got {refine!r}."
        )
    wanted = {key: tuple(sorted({index(b) for b in refine[key]})) for key in refine}
    numbers = [number for one in wanted.values() for number in one]
    if numbers and not 0 <= min(numbers) <= max(numbers) <= bins:
        raise ValueError(
            f"refine must name bins from 0 to {bins}, got {min(numbers)} to "
            f"{max(numbers)}."
        )
    return {key: chosen for key, chosen in wanted.items() if chosen}


def bin_of(score: NDArray[Any], bins: int) -> NDArray[np.int64]:
    r"""Bin number of each score in [0, 1], :math:`\lfloor f^{1/4} \cdot bins \rfloor`.

    Examples
    --------
    >>> bin_of(np.array([0.0, 0.0001, 0.0625, 1.0]), 4096).tolist()
    [0, 409, 2048, 4096]
    """
    root = np.sqrt(np.sqrt(score.astype(np.float64, copy=False)))
    return np.asarray((root * bins).astype(np.int64))


def bin_expression(score: nw.Expr, bins: int) -> nw.Expr:
    """Write :func:`bin_of` for a float64 column of valid scores, for any engine."""
    return (score.sqrt().sqrt() * float(bins)).floor().cast(nw.Int64)


def middle(number: NDArray[Any], bins: int) -> NDArray[np.float64]:
    """Scores that stand for the rows of bins, at most 1.

    Examples
    --------
    >>> middle(np.array([1, 2]), 2).tolist()
    [0.31640625, 1.0]
    """
    return np.asarray(np.minimum(1.0, ((number + 0.5) / bins) ** 4))


def lower_edge(number: float, bins: int) -> float:
    """Smallest score of a bin, up to rounding; to display, never to compare with."""
    return float((number / bins) ** 4)


def least_score(cut: float, bins: int | None) -> float:
    """Score from which a cut accepts, where cuts may be numbers of bins; to display."""
    return cut if bins is None else lower_edge(cut, bins)
