"""Every other problem: a dual simplex that goes on from one tolerance to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fairpul.solvers.program import Array, Program, Solution, lagrangian_bound

# Rates are shares: weights and gaps further below 0 than this are violated.
_ROUNDING = 1e-13
# Smaller pivots would magnify rounding.
_LEAST_PIVOT = 1e-10
# The inverse is updated at every pivot, at a cost that grows as the square of this.
_MOST_ROWS = 400
# Pivots per cut and row; a walk along the hulls passes each cut about once.
_MOST_PIVOTS = 4
# What the certificate of an accepted solution may be at most.
_ACCURACY = 1e-12


class Follower:
    r"""Optimum of one program as its tolerances move.

    Parameters
    ----------
    program : Program
        The problem; its tolerances are given anew to each call of :meth:`at`.

    Notes
    -----
    Every row of the program gets a slack, and each group starts at the cut that is best
    for it alone. No reduced cost is then negative, so the dual simplex can start there,
    and since tolerances stand on the right-hand side only, it can go on from the
    optimum at one tolerance to the next: as many pivots as hull cuts are passed. All
    cuts of the hulls are columns; what they share is never written out:

    .. math::
        \textstyle\sum_j x_{sj} = 1,\quad M_s - u_M + z = \epsilon_M,\quad
        u_M - M_s + z = 0,\quad z - T_s = -r_s,\quad \sum_s p_s Q_s + z = B
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        hulls, k = program.hulls, len(program.hulls)
        self._rates = list(program.tolerance)
        self._owner = np.repeat(np.arange(k), [len(hull.points) for hull in hulls])
        tpr = np.concatenate([hull.points.tpr for hull in hulls])
        selection = np.concatenate([hull.points.selection_rate for hull in hulls])
        # What a cut of group s adds to its rows: [(first row, coefficient)].
        self._entries: list[tuple[int, Array]] = [(0, np.ones(len(tpr)))]
        n_rows = k
        for rate in self._rates:
            value = np.concatenate([hull.rate(rate) for hull in hulls])
            self._entries += [(n_rows, value), (n_rows + k, -value)]
            n_rows += 2 * k
        self._floor = n_rows if program.floor.any() else None
        if self._floor is not None:
            self._entries.append((n_rows, -tpr))
            n_rows += k
        self._budget = n_rows if np.isfinite(program.budget) else None
        self._spent = program.shares[self._owner] * selection
        if self._budget is not None:
            n_rows += 1
        self._n_rows = n_rows
        cost = program.tpr_cost[self._owner] * tpr
        cost += program.selection_cost[self._owner] * selection
        self._cost = np.append(cost, np.zeros(len(self._rates) + n_rows - k))
        self._basis: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def at(self, tolerance: Mapping[str, float]) -> Solution | None:
        """Optimum at some tolerances, or None where it was not found."""
        if self._n_rows > _MOST_ROWS:
            return None
        if not len(self._basis):
            self._start()
        ends = self._ends(tolerance)
        for _ in range(_MOST_PIVOTS * len(self._cost)):
            x = self._solved(ends)
            leaving = int(np.argmin(x))
            if x[leaving] >= -_ROUNDING:
                return self._solution(tolerance, x)
            if not self._pivot(leaving):
                break
        self._basis = self._basis[:0]  # nothing to go on from
        return None

    def _start(self) -> None:
        """Take every group's own best cut, and a slack for every other row."""
        k = len(self._program.hulls)
        starts = np.searchsorted(self._owner, np.arange(k + 1))
        best = [
            start + int(np.argmin(self._cost[start:stop]))
            for start, stop in pairwise(starts)
        ]
        slacks = len(self._owner) + len(self._rates) + np.arange(self._n_rows - k)
        self._basis = np.append(best, slacks)
        self._matrix = np.array([self._column(j) for j in self._basis]).T
        # Below the groups' rows the matrix is the unit matrix.
        self._inverse = np.eye(self._n_rows)
        self._inverse[k:, :k] = -self._matrix[k:, :k]
        prices = self._cost[self._basis] @ self._inverse
        self._reduced = self._cost - self._along(prices)

    def _along(self, weight: Array) -> Array:
        """Sum of the rows of the program with some weights, column by column."""
        k, owner = len(self._program.hulls), self._owner
        cuts = sum(
            weight[first : first + k].take(owner) * value
            for first, value in self._entries
        )
        if self._budget is not None:
            cuts = cuts + weight[self._budget] * self._spent
        lows = [
            weight[first + k : first + 2 * k].sum() - weight[first : first + k].sum()
            for first in k + 2 * k * np.arange(len(self._rates))
        ]
        return np.concatenate([cuts, lows, weight[k:]])

    def _column(self, j: int) -> Array:
        """Column of a cut, of the low end of an interval, or of a slack."""
        k, n_cuts = len(self._program.hulls), len(self._owner)
        column = np.zeros(self._n_rows)
        if j < n_cuts:
            for first, value in self._entries:
                column[first + self._owner[j]] = value[j]
            if self._budget is not None:
                column[self._budget] = self._spent[j]
        elif j < n_cuts + len(self._rates):
            first = k + 2 * k * (j - n_cuts)
            column[first : first + k] = -1
            column[first + k : first + 2 * k] = 1
        else:
            column[k + j - n_cuts - len(self._rates)] = 1
        return column

    def _ends(self, tolerance: Mapping[str, float]) -> Array:
        """Right-hand side of the rows."""
        k, program = len(self._program.hulls), self._program
        ends = np.zeros(self._n_rows)
        ends[:k] = 1
        for number, rate in enumerate(self._rates):
            first = k + 2 * k * number
            ends[first : first + k] = tolerance[rate]
        if self._floor is not None:
            ends[self._floor : self._floor + k] = -program.floor
        if self._budget is not None:
            ends[self._budget] = program.budget
        return ends

    def _solved(self, ends: Array) -> Array:
        """Values of the basic variables; one refinement removes rounding."""
        x = self._inverse @ ends
        return np.asarray(x + self._inverse @ (ends - self._matrix @ x))

    def _pivot(self, leaving: int) -> bool:
        """Exchange the basic variable of a row; False if no rule fits the program."""
        along = self._along(self._inverse[leaving])
        along[self._basis] = 0
        able = np.flatnonzero(along < -_LEAST_PIVOT)
        if not len(able):
            return False
        ratio = np.maximum(self._reduced[able], 0) / -along[able]
        tied = able[ratio <= ratio.min() + _ROUNDING]
        entering = int(tied[np.argmin(along[tied])])
        step = self._reduced[entering] / along[entering]
        self._reduced -= step * along
        self._reduced[self._basis[leaving]] = -step
        self._reduced[entering] = 0
        column = self._column(entering)
        change = self._inverse @ column
        row = self._inverse[leaving] / change[leaving]
        self._inverse -= np.outer(change, row)
        self._inverse[leaving] = row
        self._matrix[:, leaving] = column
        self._basis[leaving] = entering
        return True

    def _solution(self, tolerance: Mapping[str, float], x: Array) -> Solution | None:
        """Rates, mixtures and bound of the basic variables."""
        program, k = self._program, len(self._program.hulls)
        mixtures: list[dict[int, float]] = [{} for _ in range(k)]
        tpr, selection = np.zeros((2, k))
        starts = np.searchsorted(self._owner, np.arange(k))
        for j, weight in zip(self._basis.tolist(), x.tolist(), strict=True):
            if j < len(self._owner) and weight > 0:
                s = int(self._owner[j])
                cut = j - int(starts[s])
                mixtures[s][cut] = weight
                points = program.hulls[s].points
                tpr[s] += weight * points.tpr[cut]
                selection[s] += weight * points.selection_rate[cut]
        prices = self._cost[self._basis] @ self._inverse
        prices += (self._cost[self._basis] - prices @ self._matrix) @ self._inverse
        # A row with a slack may only cost: its price is negative but for rounding.
        paid = np.maximum(-prices, 0)
        firsts = k + 2 * k * np.arange(len(self._rates))
        floor, budget = self._floor, self._budget
        bound = lagrangian_bound(
            replace(program, tolerance=tolerance),
            {
                rate: paid[first : first + k] - paid[first + k : first + 2 * k]
                for rate, first in zip(self._rates, firsts.tolist(), strict=True)
            },
            None if floor is None else paid[floor : floor + k],
            0.0 if budget is None else float(paid[budget]),
        )
        value = program.value(tpr, selection)
        if value - bound > _ACCURACY:
            return None
        return Solution(tpr, selection, value, bound, 10 * _ROUNDING, tuple(mixtures))
