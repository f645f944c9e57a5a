"""Two constrained rates without a lottery: the best single cut of every group."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from fairpul.operating_points import OperatingPoints
from fairpul.solvers.program import Program, rate_of

_MOST_GROUPS = 8
# Gaps are compared as the LP compares them.
_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Cost and the two constrained rates of one group's cuts."""

    cost: NDArray[np.float64]
    rates: NDArray[np.float64]  # two rows


def best_single_cuts(
    program: Program, points: Sequence[OperatingPoints]
) -> tuple[int, ...]:
    r"""Positions of the cuts with least cost whose two gaps are within tolerance.

    Parameters
    ----------
    program : Program
        Two constrained rates with tolerances above 0 and no budget.
    points : sequence of OperatingPoints
        All cuts of each group, not the hull alone.

    Notes
    -----
    Branch and bound, best first, over the lower ends :math:`u` of the two intervals
    that hold the groups' rates. For u in a box every group by itself takes its cheapest
    cut with rates between the box's lower end and its upper end plus the tolerance,
    which bounds the cost from below. Where these cuts do not fit one interval the box
    is split so that each half loses one of the two cuts that are too far apart; hence
    the search ends, with the exact optimum.
    """
    _check(program)
    width = np.array(list(program.tolerance.values()))
    groups = [_cuts_of(program, s, points[s]) for s in range(len(points))]
    # Accepting nobody or everybody fits any tolerance; the floors decide which.
    low, high = np.full(2, -1.0), np.ones(2)
    ticket = count()
    start = _cheapest(groups, low, high + width)
    heap = [(start[0], next(ticket), low, high, start[1])] if start else []
    while heap:
        _, _, low, high, picks = heapq.heappop(heap)
        rates = np.array(
            [group.rates[:, j] for group, j in zip(groups, picks, strict=True)]
        )
        least, most = rates.min(axis=0), rates.max(axis=0)
        excess = (most - least) - width
        axis = int(np.argmax(excess))
        if excess[axis] <= _SLACK:
            return picks
        middle = (least[axis] + most[axis] - width[axis]) / 2
        for side in (0, 1):
            ends = low.copy(), high.copy()
            ends[1 - side][axis] = middle
            found = _cheapest(groups, ends[0], ends[1] + width)
            if found:
                heapq.heappush(heap, (found[0], next(ticket), *ends, found[1]))
    raise ValueError("No single cut per group satisfies all the requirements.")


def _check(program: Program) -> None:
    n_groups = len(program.hulls)
    if n_groups > _MOST_GROUPS:
        raise ValueError(
            f"lottery=False with two constrained rates is solved for up to "
            f'{_MOST_GROUPS} groups, got {n_groups}. Use lottery="auto".'
        )
    if min(program.tolerance.values()) == 0:
        raise ValueError(
            "Without a lottery, two rates are equal only under a constant rule: give "
            "both a tolerance above 0 (such as tolerance=0.05), or use "
            'lottery="auto".'
        )
    if np.isfinite(program.budget):
        raise ValueError(
            "lottery=False with two constrained rates has no exact solver under a "
            'capacity. Use lottery="auto", RecallFloor or MinimumCost.'
        )


def _cuts_of(program: Program, s: int, points: OperatingPoints) -> _Cuts:
    """Cuts above the group's floor; below it they cost infinitely much."""
    hull = program.hulls[s]
    cost = (
        program.tpr_cost[s] * points.tpr
        + program.selection_cost[s] * points.selection_rate
    )
    cost = np.where(points.tpr >= program.floor[s] - _SLACK, cost, np.inf)
    cost[points.cut > hull.points.cut[0]] = np.inf  # everybody must be accepted
    rates = [rate_of(points, rate, hull.prior) for rate in program.tolerance]
    return _Cuts(cost, np.array(rates))


def _cheapest(
    groups: Sequence[_Cuts], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[float, tuple[int, ...]] | None:
    """Cheapest cut of each group with rates in a box, and their cost in all."""
    total, picks = 0.0, []
    for group in groups:
        # The first rate, TPR, rises along the cuts: only a slice can be inside.
        start = int(np.searchsorted(group.rates[0], low[0] - _SLACK))
        stop = int(np.searchsorted(group.rates[0], high[0] + _SLACK, side="right"))
        second = group.rates[1, start:stop]
        inside = (second >= low[1] - _SLACK) & (second <= high[1] + _SLACK)
        cost = np.where(inside, group.cost[start:stop], np.inf)
        if not len(cost) or not np.isfinite(cost.min()):
            return None
        best = int(np.argmin(cost))
        total += float(cost[best])
        picks.append(start + best)
    return total, tuple(picks)
