"""Small cells of a table of counts moved together, so that no cell shows a person."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def without_small_cells(
    key: Hashable, bin: Integers, n: Integers, labeled: Integers, least: int
) -> Integers:
    """Bin of each cell of one group after small cells moved to lower bins.

    Parameters
    ----------
    key : hashable
        The group, for the error.
    bin, n, labeled : ndarray of shape (n_cells,)
        Bin number, rows and labeled rows of each cell, bins ascending.
    least : int
        Smallest number of rows of a cell; also of its labeled and of its unlabeled
        rows, where it has any.

    Notes
    -----
    From the highest bin on, cells are joined until their rows are enough. Joined rows
    take the lowest of their bins; what is left at the bottom joins the cells above.

    Examples
    --------
    >>> cells = np.array([[1, 40, 0], [2, 9, 3], [4, 11, 10], [7, 30, 10]]).T
    >>> without_small_cells("f", *cells, least=5).tolist()
    [1, 2, 2, 7]
    """
    if least < 2:
        raise ValueError(f"suppress_below must be at least 2, got {least!r}.")
    parts = np.column_stack([n - labeled, labeled])

    def enough(first: int, end: int) -> bool:
        total = parts[first:end].sum(axis=0)
        return bool(((total == 0) | (total >= least)).all())

    starts: list[int] = []
    end = len(bin)
    for cell in reversed(range(len(bin))):
        if enough(cell, end):
            starts.append(cell)
            end = cell
    while end > 0:
        if not starts:
            raise ValueError(
                f"Group {key!r} has {n.sum()} rows, {labeled.sum()} of them labeled: "
                f"too few to show no cell below {least}. Merge it with another group "
                "or leave it out."
            )
        starts.pop()
        end = starts[-1] if starts else len(bin)
        if enough(0, end):
            starts.append(0)
            end = 0
    edges = np.array(starts[::-1])
    run = np.searchsorted(edges, np.arange(len(bin)), side="right") - 1
    return np.asarray(bin[edges[run]])


def misplaced(
    bin: Integers, moved: Integers, n: Integers, labeled: Integers
) -> Integers:
    """Rows, and labeled rows, that a cut takes for being on its other side, at most.

    Examples
    --------
    >>> bin, moved = np.array([1, 2, 4]), np.array([1, 2, 2])
    >>> misplaced(bin, moved, np.array([40, 9, 11]), np.array([0, 3, 10])).tolist()
    [11, 10]
    """
    # Between the bin a cell had and the one it has now, every cut misplaces it.
    cuts = np.unique(bin)
    across = (moved[:, None] < cuts) & (cuts <= bin[:, None])
    return np.array([(n @ across).max(initial=0), (labeled @ across).max(initial=0)])
