"""The optimization in the plane of selection rate and TPR, free of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairpul.objectives import Capacity, MinimumCost, Objective
from fairpul.operating_points import OperatingPoints

Array = NDArray[np.float64]


def rate_of(points: OperatingPoints, name: str, prior: float) -> Array:
    r"""Rate of a group at each cut; the FPR is :math:`(Q - \pi T)/(1 - \pi)`."""
    if name == "tpr":
        return points.tpr
    if name == "selection_rate":
        return points.selection_rate
    return np.asarray((points.selection_rate - prior * points.tpr) / (1 - prior))


@dataclass(frozen=True, eq=False)
class GroupHull:
    """One group as a solver sees it: its hull, its share and its label frequency."""

    points: OperatingPoints
    share: float
    label_frequency: float

    @property
    def prior(self) -> float:
        """P(positive) in the group."""
        return self.points.labeled_share / self.label_frequency

    @cached_property
    def fpr(self) -> Array:
        """FPR at each hull cut; on samples slightly negative near the origin."""
        return rate_of(self.points, "fpr", self.prior)

    def rate(self, name: str) -> Array:
        """Rate ``"tpr"``, ``"fpr"`` or ``"selection_rate"`` at each hull cut."""
        return self.fpr if name == "fpr" else rate_of(self.points, name, self.prior)


@dataclass(frozen=True, eq=False)
class Program:
    r"""Minimize a linear function of the groups' rates under gaps, floors, a budget.

    .. math::
        \min\; k + \sum_s a_s T_s + b_s Q_s
        \quad\text{s.t.}\quad \max_s M_s - \min_s M_s \le \epsilon_M,\;
        T_s \ge r_s,\; \sum_s p_s Q_s \le B

    over the hull of every group's operating points, for each constrained rate
    :math:`M`. Common FPRs below 0, which samples show near the origin, are excluded.
    """

    hulls: tuple[GroupHull, ...]
    tolerance: Mapping[str, float]
    constant: float
    tpr_cost: Array
    selection_cost: Array
    floor: Array
    budget: float

    def value(self, tpr: Array, selection: Array) -> float:
        """Objective at the groups' TPRs and selection rates."""
        return float(
            self.constant + self.tpr_cost @ tpr + self.selection_cost @ selection
        )

    @property
    def shares(self) -> Array:
        """Share of each group."""
        return np.array([hull.share for hull in self.hulls])


@dataclass(frozen=True, eq=False)
class Solution:
    """Best rates of every group, what they cost, and a bound nothing can beat.

    ``noise`` is how far floating point or the LP's tolerance may have moved a rate;
    ``mixtures`` are the weights of hull cuts that the solver itself found, if it did.
    """

    tpr: Array
    selection_rate: Array
    value: float
    bound: float
    noise: float
    mixtures: tuple[dict[int, float], ...] | None = None

    @property
    def certificate(self) -> float:
        """Value minus lower bound: how much better any rule could possibly be."""
        return max(0.0, self.value - self.bound)


def make_program(
    hulls: Sequence[GroupHull],
    objective: Objective,
    tolerance: Mapping[str, float],
    floor: Array,
) -> Program:
    """Write an objective as a linear function of the groups' rates."""
    share = np.array([hull.share for hull in hulls])
    positives = share * np.array([hull.prior for hull in hulls])
    budget = np.inf
    if isinstance(objective, MinimumCost):
        missed, wrong = objective.false_negative, objective.false_positive
        constant = missed * positives.sum()
        tpr_cost, selection_cost = -(missed + wrong) * positives, wrong * share
    elif isinstance(objective, Capacity):
        constant, budget = 1.0, objective.share
        tpr_cost, selection_cost = -positives / positives.sum(), 0 * share
    else:
        constant, tpr_cost, selection_cost = 0.0, 0 * share, share
    return Program(
        tuple(hulls), tolerance, constant, tpr_cost, selection_cost, floor, budget
    )


def lagrangian_bound(
    program: Program,
    multipliers: Mapping[str, Array],
    floor_multiplier: Array | None = None,
    budget_multiplier: float = 0.0,
) -> float:
    r"""Lower bound on the program, valid for whatever multipliers are given.

    Parameters
    ----------
    program : Program
        The problem.
    multipliers : mapping of str to ndarray of shape (n_groups,)
        For each constrained rate, the price of raising it in each group; positive
        where the group is at the upper end of the allowed interval.
    floor_multiplier : ndarray of shape (n_groups,), optional
        Nonnegative price of each floor.
    budget_multiplier : float, default=0
        Nonnegative price of the budget.

    Notes
    -----
    Relaxing :math:`u_M \le M_s \le u_M + \epsilon_M`, :math:`u_M \in [0, 1]`, with
    :math:`y_{Ms}`, the floors with :math:`\phi_s` and the budget with :math:`\gamma`
    leaves one minimum over cuts per group:

    .. math::
        k + \sum_s \min_j [a_s T_j + b_s Q_j + \textstyle\sum_M y_{Ms} M_j
        - \phi_s (T_j - r_s) + \gamma p_s Q_j] - \gamma B
        + \sum_M [\min(0, -\textstyle\sum_s y_{Ms}) - \epsilon_M \sum_s y_{Ms}^+]
    """
    bound = program.constant
    for s in range(len(program.hulls)):
        bound += float(
            reduced_cost(
                program, s, multipliers, floor_multiplier, budget_multiplier
            ).min()
        )
        if floor_multiplier is not None:
            bound += floor_multiplier[s] * program.floor[s]
    if budget_multiplier:
        bound -= budget_multiplier * program.budget
    for rate, y in multipliers.items():
        bound += min(0.0, -float(y.sum()))
        bound -= program.tolerance[rate] * float(np.maximum(y, 0).sum())
    return float(bound)


def reduced_cost(
    program: Program,
    s: int,
    multipliers: Mapping[str, Array],
    floor_multiplier: Array | None = None,
    budget_multiplier: float = 0.0,
) -> Array:
    """Price of every hull cut of group number ``s`` under the given multipliers."""
    hull = program.hulls[s]
    price_t, price_q = program.tpr_cost[s], program.selection_cost[s]
    if floor_multiplier is not None:
        price_t = price_t - floor_multiplier[s]
    price_q = price_q + budget_multiplier * hull.share
    cost = price_t * hull.points.tpr + price_q * hull.points.selection_rate
    for rate, y in multipliers.items():
        cost = cost + y[s] * hull.rate(rate)
    return np.asarray(cost)
