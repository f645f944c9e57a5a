"""From the groups' hulls to the best rates any rule can have, with a certificate."""

from __future__ import annotations

from fairpul.objectives import MinimumCost, Objective
from fairpul.solvers.columns import solve_by_columns
from fairpul.solvers.exact import (
    solve_equal_opportunity,
    solve_equalized_odds,
    solve_unconstrained,
)
from fairpul.solvers.program import GroupHull, Program, Solution, make_program

__all__ = ["GroupHull", "Program", "Solution", "make_program", "solve"]


def solve(
    program: Program, objective: Objective, near: Solution | None = None
) -> Solution:
    """Best mixture of every group's cuts; raises where no rule satisfies all.

    The cost-optimal rules without constraint, with equal opportunity and equalized odds
    (this at tolerance 0) are found by a search along one axis, all others by an LP,
    which a solution of the same hulls under other tolerances, ``near``, speeds up.
    """
    if isinstance(objective, MinimumCost):
        if not program.tolerance:
            return solve_unconstrained(program, objective)
        if list(program.tolerance) == ["tpr"]:
            return solve_equal_opportunity(program, objective)
        if program.tolerance == {"tpr": 0.0, "fpr": 0.0}:
            return solve_equalized_odds(program, objective)
    return solve_by_columns(program, near)
