"""Small counts moved to neighboring bins, so that no cell of a table shows a person."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairpul.cells import Cells, add_cells, unlabeled_and_labeled
from fairpul.fixed_point import Integers


def suppressed(cells: Cells, least: int) -> tuple[Cells, Integers]:
    """Cells without small counts, and what that costs.

    Returns
    -------
    Cells
        Every cell has no labeled row or at least so many; no unlabeled row or at
        least so many.
    ndarray of shape (n_groups, 2)
        Rows, and labeled rows, of each group on the wrong side of some cut, at most;
        of weighted rows their weight.
    """
    if not isinstance(least, int | np.integer) or least < 2:
        raise ValueError(
            f"suppress_below must be an integer, at least 2, got {least!r}."
        )
    cost = np.zeros((len(cells.groups), 2), dtype=np.int64)
    parts = []
    for is_labeled, sums in enumerate(unlabeled_and_labeled(cells.sums)):
        moved = cells.bin.copy()
        for number, key in enumerate(cells.groups):
            own = cells.codes == number
            old, count = cells.bin[own], sums[own, 0]
            new = without_small_counts(old, count, least)
            if new is None:
                raise ValueError(
                    f"Group {key!r} has fewer than {least} labeled or unlabeled rows, "
                    "too few to share. Merge it with another group or leave it out."
                )
            moved[own] = new
            mass = sums[own, 2] if sums.shape[1] > 2 else count
            off = misplaced(old, new, mass)
            cost[number] += [off, off * is_labeled]
        held = sums[:, 0] > 0
        parts.append(
            replace(cells, codes=cells.codes[held], bin=moved[held], sums=sums[held])
        )
    return replace(add_cells(parts), invalid=cells.invalid), cost


def without_small_counts(bin: Integers, count: Integers, least: int) -> Integers | None:
    """Bin that each count moves to so that all bins hold none or enough.

    Parameters
    ----------
    bin, count : ndarray of shape (n_cells,)
        Bin numbers, ascending, and how many rows each of them holds.
    least : int
        Smallest number that a bin may hold, unless it holds none.

    Returns
    -------
    ndarray of shape (n_cells,) or None
        None where all counts together are too few.

    Notes
    -----
    From the highest bin on, counts are joined until they are enough, and take the
    lowest of their bins; what is left at the bottom joins the last of these. So every
    cut has fewer than ``least`` rows on its wrong side.

    Examples
    --------
    >>> bins, counts = np.array([1, 2, 4, 6, 7]), np.array([2, 40, 3, 4, 30])
    >>> without_small_counts(bins, counts, least=5).tolist()
    [2, 2, 4, 4, 7]
    """
    target = np.empty_like(bin)
    end, total = len(bin), 0
    for cell in reversed(range(len(bin))):
        total += int(count[cell])
        if total >= least:
            target[cell:end] = bin[cell]
            end, total = cell, 0
    if end == len(bin):
        return None if total else bin
    target[:end] = target[end]
    return target


def misplaced(bin: Integers, moved: Integers, mass: Integers) -> int:
    """Rows, or their weight, that some cut takes for being on its other side, at most.

    Examples
    --------
    >>> misplaced(np.array([1, 2, 4]), np.array([2, 2, 2]), np.array([3, 40, 4]))
    4
    """
    crossed = mass.copy()
    np.subtract.at(crossed, np.searchsorted(bin, moved), mass)
    return int(abs(np.cumsum(crossed)).max(initial=0))
