"""From the groups' hulls to the best rates any rule can have, with a certificate."""

from __future__ import annotations

from fairpul.objectives import MinimumCost, Objective
from fairpul.solvers.columns import solve_by_columns
from fairpul.solvers.exact import (
    solve_equal_opportunity,
    solve_equalized_odds,
    solve_unconstrained,
)
from fairpul.solvers.following import Follower
from fairpul.solvers.program import GroupHull, Program, Solution, make_program

__all__ = ["Follower", "GroupHull", "Program", "Solution", "make_program", "solve"]


def solve(
    program: Program, objective: Objective, follower: Follower | None = None
) -> Solution:
    """Best mixture of every group's cuts; raises where no rule satisfies all.

    The cost-optimal rules without constraint, with equal opportunity and equalized odds
    (this at tolerance 0) are found by a search along one axis. All others are linear
    programs: of few groups solved by a dual simplex, which ``follower`` has begun for
    another tolerance of the same program; of many, and where rounding leaves a doubt,
    by column generation.
    """
    if isinstance(objective, MinimumCost):
        if not program.tolerance:
            return solve_unconstrained(program, objective)
        if list(program.tolerance) == ["tpr"]:
            return solve_equal_opportunity(program, objective)
        if program.tolerance == {"tpr": 0.0, "fpr": 0.0}:
            return solve_equalized_odds(program, objective)
    if follower is None:
        follower = Follower(program)
    return follower.at(program.tolerance) or solve_by_columns(program)
