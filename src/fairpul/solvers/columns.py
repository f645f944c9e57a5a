"""Problems of many groups: column generation on HiGHS, with a bound from its duals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from fairpul.solvers.program import (
    Array,
    Program,
    Solution,
    lagrangian_bound,
    reduced_cost,
)

# The default of 1e-7 lets column generation stall before the optimum.
_LP_TOLERANCE = 1e-10
# Stop when no cut improves the objective by more: an order below the LP's noise.
_IMPROVEMENT = 1e-12
# Far above the 4 to 15 rounds seen; a bound against rounding that cycles.
_MOST_ROUNDS = 500


def solve_by_columns(program: Program) -> Solution:
    """Optimum over mixtures of hull cuts, for any program that has a solution.

    Parameters
    ----------
    program : Program
        The problem.

    Notes
    -----
    The master LP weighs a few cuts of each group and has one variable per constrained
    rate for the lower end of its interval. Its duals price all cuts of the hulls; the
    best of each group enters until none improves.
    """
    active = _first_columns(program)
    best_bound = -np.inf
    for _ in range(_MOST_ROUNDS):
        result = _solve_master(program, active)
        multipliers, floor, budget = _read_duals(program, result)
        bound = lagrangian_bound(program, multipliers, floor, budget)
        best_bound = max(best_bound, bound)
        if result.fun - best_bound <= _IMPROVEMENT:
            break
        if not _enter_columns(program, active, multipliers, floor, budget):
            break
    else:
        raise RuntimeError(
            f"Column generation did not settle in {_MOST_ROUNDS} rounds; the best "
            f"bound is {best_bound!r}, the value {result.fun!r}."
        )
    return _read_solution(program, active, result.x, best_bound)


def _enter_columns(
    program: Program,
    active: list[list[int]],
    multipliers: dict[str, Array],
    floor: Array | None,
    budget: float,
) -> bool:
    """Add each group's best cut under the duals; whether any was better."""
    entered = False
    for s, columns in enumerate(active):
        price = reduced_cost(program, s, multipliers, floor, budget)
        best = int(np.argmin(price))
        if price[best] < price[columns].min() - _IMPROVEMENT:
            columns.append(best)
            entered = True
    return entered


def _first_columns(program: Program) -> list[list[int]]:
    """Columns that make the master feasible.

    Accepting nobody fits any budget and everybody any floor. Where there are both, the
    mixture that holds the floors with the fewest rows shows whether they fit.
    """
    ends = [{0, len(hull.points) - 1} for hull in program.hulls]
    if np.isfinite(program.budget) and program.floor.any():
        least = _least_selection(program)
        if least.value > program.budget:
            enough = np.ceil(least.value * 1e4) / 1e4
            raise ValueError(
                f"A capacity of {program.budget:g} of all rows cannot hold the recall "
                f"floor: that takes at least {enough:g}. Raise the capacity to that or "
                "lower the floor."
            )
        for columns, mixture in zip(ends, least.mixtures or (), strict=True):
            columns.update(mixture)
    return [sorted(columns) for columns in ends]


def _least_selection(program: Program) -> Solution:
    """Smallest share of rows that satisfies all of a program but its budget."""
    nothing = np.zeros(len(program.hulls))
    relaxed = Program(
        program.hulls,
        program.tolerance,
        0.0,
        nothing,
        program.shares,
        program.floor,
        np.inf,
    )
    return solve_by_columns(relaxed)


def _solve_master(program: Program, active: list[list[int]]) -> Any:
    """Solve the LP over the active cuts; its variables are weights, then intervals."""
    sizes = [len(columns) for columns in active]
    owner = np.repeat(np.arange(len(active)), sizes)
    tpr = _gather(program, active, "tpr")
    selection = _gather(program, active, "selection_rate")
    rates = list(program.tolerance)
    n_weights, n_groups = len(owner), len(active)
    columns = np.arange(n_weights)

    def by_group(value: Array) -> sparse.csr_array:
        return sparse.csr_array((value, (owner, columns)), (n_groups, n_weights))

    def interval(rate: str) -> sparse.csr_array:
        ones = np.zeros((n_groups, len(rates)))
        ones[:, rates.index(rate)] = 1.0
        return sparse.csr_array(ones)

    blank = sparse.csr_array((n_groups, len(rates)))
    upper, upper_end, equal = (
        [],
        [],
        [sparse.hstack([by_group(np.ones(n_weights)), blank])],
    )
    equal_to = [np.ones(n_groups)]
    for rate, gap in program.tolerance.items():
        value = by_group(_gather(program, active, rate))
        if gap == 0:
            equal.append(sparse.hstack([value, -interval(rate)]))
            equal_to.append(np.zeros(n_groups))
        else:
            upper += [
                sparse.hstack([value, -interval(rate)]),
                sparse.hstack([-value, interval(rate)]),
            ]
            upper_end += [np.full(n_groups, gap), np.zeros(n_groups)]
    if program.floor.any():
        upper.append(sparse.hstack([-by_group(tpr), blank]))
        upper_end.append(-program.floor)
    if np.isfinite(program.budget):
        spent = sparse.csr_array((program.shares[owner] * selection)[None, :])
        upper.append(sparse.hstack([spent, sparse.csr_array((1, len(rates)))]))
        upper_end.append(np.array([program.budget]))
    cost = program.tpr_cost[owner] * tpr + program.selection_cost[owner] * selection
    result = linprog(
        np.concatenate([cost, np.zeros(len(rates))]),
        A_ub=sparse.vstack(upper) if upper else None,
        b_ub=np.concatenate(upper_end) if upper else None,
        A_eq=sparse.vstack(equal),
        b_eq=np.concatenate(equal_to),
        bounds=[(0, None)] * n_weights + [(0, 1)] * len(rates),
        method="highs",
        options={
            "primal_feasibility_tolerance": _LP_TOLERANCE,
            "dual_feasibility_tolerance": _LP_TOLERANCE,
        },
    )
    if result.status != 0:
        raise ValueError(f"No rule satisfies all the requirements: {result.message}")
    result.fun += program.constant
    return result


def _read_duals(
    program: Program, result: Any
) -> tuple[dict[str, Array], Array | None, float]:
    """Multipliers of the master's rows, clipped to the signs that make a bound."""
    n_groups = len(program.hulls)
    equal = -result.eqlin.marginals[n_groups:]
    upper = -result.ineqlin.marginals
    multipliers = {}
    for rate, gap in program.tolerance.items():
        if gap == 0:
            multipliers[rate], equal = equal[:n_groups], equal[n_groups:]
        else:
            above, below = upper[:n_groups], upper[n_groups : 2 * n_groups]
            multipliers[rate] = np.maximum(above, 0) - np.maximum(below, 0)
            upper = upper[2 * n_groups :]
    floor = None
    if program.floor.any():
        floor, upper = np.maximum(upper[:n_groups], 0), upper[n_groups:]
    budget = max(0.0, float(upper[0])) if np.isfinite(program.budget) else 0.0
    return multipliers, floor, budget


def _read_solution(
    program: Program, active: list[list[int]], x: Array, bound: float
) -> Solution:
    mixtures, tpr, selection = [], [], []
    start = 0
    for hull, columns in zip(program.hulls, active, strict=True):
        weight = np.maximum(x[start : start + len(columns)], 0)
        weight = weight / weight.sum()
        start += len(columns)
        mixtures.append(
            {j: float(w) for j, w in zip(columns, weight, strict=True) if w > 0}
        )
        tpr.append(weight @ hull.points.tpr[columns])
        selection.append(weight @ hull.points.selection_rate[columns])
    t, q = np.array(tpr), np.array(selection)
    return Solution(
        t, q, program.value(t, q), bound, 2 * _LP_TOLERANCE, tuple(mixtures)
    )


def _gather(program: Program, active: list[list[int]], rate: str) -> Array:
    return np.concatenate(
        [
            hull.rate(rate)[columns]
            for hull, columns in zip(program.hulls, active, strict=True)
        ]
    )
