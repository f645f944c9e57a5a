"""What a smaller gap costs: the best rule at each tolerance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpul.deployment import rule_of
from fairpul.doubts import warn_of_coarse_counts, warn_of_few_labels
from fairpul.fitting import program_of
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import resolve_label_frequency
from fairpul.measures import FEWEST_LABELED
from fairpul.objectives import (
    CONSTRAINTS,
    Objective,
    check_objective,
    check_tolerance,
)
from fairpul.rule import DecisionRule
from fairpul.solvers import Follower, Program, Solution, solve


@dataclass(frozen=True, eq=False)
class Frontier:
    """Best rules over a range of tolerances.

    Attributes
    ----------
    tolerances : ndarray of shape (n_tolerances,)
        Largest gap allowed in each constrained rate.
    rules : tuple of DecisionRule
        The best rule at each tolerance.
    costs : ndarray of shape (n_tolerances,)
        Objective of the exact mixtures: cost, selection rate, or recall.
    gaps : ndarray of shape (n_tolerances,)
        Largest gap of the exact mixtures among the constrained rates; nan where an FPR
        is constrained and some group has too few labeled rows to tell it.
    """

    tolerances: NDArray[np.float64]
    rules: tuple[DecisionRule, ...]
    costs: NDArray[np.float64]
    gaps: NDArray[np.float64]


def frontier(
    scores: GroupScores | GroupCounts,
    *,
    constraint: str = "equal_opportunity",
    objective: Objective | None = None,
    tolerances: ArrayLike | None = None,
    label_frequency: Any = "peak_rate",
    class_prior: Any = None,
) -> Frontier:
    """Best rule at each tolerance, from equal rates to rates left alone.

    Parameters
    ----------
    scores : GroupScores or GroupCounts
        Scores, out-of-fold or held out.
    constraint : str, default="equal_opportunity"
        Which rates the groups must share.
    objective : MinimumCost, RecallFloor, Capacity or None, default=None
        What the rules should achieve.
    tolerances : array-like, optional
        Tolerances in [0, 1]. Default: 21 equal steps from 0 to the gap of the best
        rule without constraint, beyond which a larger tolerance changes nothing.
    label_frequency, class_prior
        As in :func:`fairpul.fit_rule`; estimated once for all tolerances.

    Returns
    -------
    Frontier
        Rules, objectives and gaps of the exact mixtures.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpul.datasets import make_underdiagnosed
    >>> data = make_underdiagnosed(4000, random_state=0)
    >>> scores = GroupScores(data.score, data.labeled, data.group)
    >>> curve = frontier(scores, label_frequency=0.8)
    >>> bool((np.diff(curve.costs) <= 1e-12).all())
    True
    """
    if not isinstance(scores, GroupScores | GroupCounts):
        raise TypeError(
            "frontier takes GroupScores or GroupCounts, got a "
            f"{type(scores).__name__}. Wrap arrays: GroupScores(score, labeled, group)."
        )
    if constraint is None or constraint not in CONSTRAINTS:
        raise ValueError(
            f"A frontier needs a constraint, one of {[*CONSTRAINTS][:-1]!r}; got "
            f"{constraint!r}."
        )
    goal = check_objective(objective)
    frequency = resolve_label_frequency(label_frequency, class_prior, scores)
    program = program_of(scores, frequency, goal, check_tolerance(constraint, 0.0))
    warn_of_few_labels(scores)
    if tolerances is None:
        free = solve(replace(program, tolerance={}), goal)
        widest = _largest_gap(program, free, constraint)
        tolerances = np.linspace(0.0, min(1.0, widest), 21)
    allowed = np.atleast_1d(np.asarray(tolerances, dtype=np.float64))
    unknown = "fpr" in program.tolerance and _some_fpr_is_unknown(scores, program)
    rules, gaps = [], []
    follower = Follower(program)
    for tolerance in allowed.tolist():
        program = replace(program, tolerance=check_tolerance(constraint, tolerance))
        solution = solve(program, goal, follower)
        rules.append(
            rule_of(
                scores,
                program,
                solution,
                constraint=constraint,
                objective=goal,
                label_frequency=frequency,
                lottery=True,
            )
        )
        gap = np.nan if unknown else _largest_gap(program, solution, constraint)
        gaps.append(gap)
    warn_of_coarse_counts(scores, rules)
    costs = [rule.objective_value for rule in rules]
    return Frontier(allowed, tuple(rules), np.array(costs), np.array(gaps))


def _largest_gap(program: Program, solution: Solution, constraint: str) -> float:
    """Largest gap of a solution among the constrained rates."""
    tpr, selection = solution.tpr, solution.selection_rate
    prior = np.array([hull.prior for hull in program.hulls])
    rates = {
        "tpr": tpr,
        "selection_rate": selection,
        "fpr": (selection - prior * tpr) / (1 - prior),
    }
    return max(float(np.ptp(rates[rate])) for rate in CONSTRAINTS[constraint])


def _some_fpr_is_unknown(scores: GroupScores | GroupCounts, program: Program) -> bool:
    """Whether the FPR of some group rests on too few labels, as in its rates."""
    return any(
        scores.m_effective(number) < FEWEST_LABELED and hull.label_frequency < 1
        for number, hull in enumerate(program.hulls)
    )
