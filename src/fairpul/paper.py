r"""The method of the paper (Wu and He, FAccT 2022), the sign of its rule corrected.

Kept to reproduce; :func:`fairpul.fit_rule` is what to use. The label frequency is the
mean score of held-out labeled rows, every rate is a plug-in of the scores, and
simulated annealing looks for the multipliers with the least unfairness. With
:math:`\eta = f / \hat c`, :math:`P_{1s} = P(Y=1, S=s)`, :math:`P_{0s} = P(Y=0, S=s)`,
a row of group s is accepted where

.. math:: \eta\,(1 - t_s / P_{1s}) - (1 - \eta)\,(1 - h_s / P_{0s}) \ge 0

with one pair of multipliers per group that sum to 0 over the groups. For two groups
:math:`t = (-\lambda_1, \lambda_1)` and :math:`h = (-\lambda_2, \lambda_2)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import dual_annealing
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from fairpul.crossfit import positive_score, refit
from fairpul.cuts import acceptance
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import ElkanNoto
from fairpul.objectives import MinimumCost, check_tolerance
from fairpul.operating_points import OperatingPoints
from fairpul.rates import group_rates
from fairpul.rule import DecisionRule
from fairpul.solvers import GroupHull, Program, make_program, solve
from fairpul.tally import tally

Array = NDArray[np.float64]
#: TPR and FPR of each group.
RatePairs = list[tuple[float, float]]

CONSTRAINTS = ("equal_opportunity", "equalized_odds")
HOLD_OUT_SHARE = 0.2

# 18,400 steps; the paper gives no schedule.
_TEMPERATURES = 0.95 ** np.arange(184)
_STEPS_PER_TEMPERATURE = 100
_STEP = 0.01


@dataclass(frozen=True, eq=False)
class PlugIn:
    r"""The paper's estimates of every rate, from scores alone.

    Attributes
    ----------
    score : tuple of ndarray
        Scores of each group, ascending.
    below : tuple of ndarray
        Sum of the j lowest scores of each group, j from 0 to all.
    label_frequency : float
        One for all groups.
    positives, negatives : tuple of float
        :math:`P(Y=1, S=s)` and :math:`P(Y=0, S=s)`.

    Notes
    -----
    TPR :math:`= E[f g] / E[f]`, FPR :math:`= E[(c - f) g] / E[c - f]` within the group.
    Rows with f > c weigh negatively, so an FPR can leave [0, 1].
    """

    score: tuple[Array, ...]
    below: tuple[Array, ...]
    label_frequency: float
    positives: tuple[float, ...]
    negatives: tuple[float, ...]

    def rates(self, gain: Sequence[float], loss: Sequence[float]) -> RatePairs:
        r"""TPR and FPR of each group under :math:`\eta A_s - (1 - \eta) B_s \ge 0`.

        Parameters
        ----------
        gain, loss : sequence of float
            :math:`A_s` and :math:`B_s`. Where their sum is negative the rule is
            reversed and accepts the low scores.

        Notes
        -----
        One binary search per group, whatever the number of rows.
        """
        c = self.label_frequency
        found = []
        for score, below, a, b in zip(self.score, self.below, gain, loss, strict=True):
            total = a + b
            n, mass = len(score), below.item(len(score))
            if total > 0:
                first = int(score.searchsorted(c * b / total))
                accepted, positive = n - first, mass - below.item(first)
            elif total < 0:
                accepted = int(score.searchsorted(c * b / total, side="right"))
                positive = below.item(accepted)
            else:
                accepted, positive = (n, mass) if b <= 0 else (0, 0.0)
            found.append((positive / mass, (c * accepted - positive) / (c * n - mass)))
        return found

    def points(self, number: int) -> OperatingPoints:
        """Operating points of a group whose "labeled" mass is its sum of scores."""
        score, below = self.score[number], self.below[number]
        first = np.flatnonzero(np.diff(score, prepend=-np.inf) > 0)[::-1]
        cut = score[first]
        cut[-1] = 0.0
        return OperatingPoints(
            np.append(np.inf, cut),
            np.append(0, len(score) - first),
            np.append(0.0, below[-1] - below[first]),
        )

    def program(self, constraint: str) -> Program:
        """Least error under the constraint, for the exact solvers."""
        share = np.add(self.positives, self.negatives)
        hulls = [
            GroupHull(self.points(s).hull(), float(share[s]), self.label_frequency)
            for s in range(len(self.score))
        ]
        tolerance = check_tolerance(constraint, 0.0)
        return make_program(hulls, MinimumCost(), tolerance, np.zeros(len(hulls)))


def plug_in(
    score: NDArray[Any], codes: NDArray[np.intp], label_frequency: float
) -> PlugIn:
    """Sort the scores of each group and add them up, once.

    Parameters
    ----------
    score : ndarray of shape (n_rows,)
        P(labeled) of each row.
    codes : ndarray of shape (n_rows,)
        Number of each row's group; every group has rows.
    label_frequency : float
        P(labeled given positive). Must exceed the mean score of every group, or the
        group would have more positives than rows.

    Examples
    --------
    >>> estimates = plug_in(np.array([0.5, 0.25, 0.5, 0.0]), np.array([0, 0, 1, 1]), 1)
    >>> estimates.rates([1, 1], [1, 1])  # eta >= 1/2
    [(0.6666666666666666, 0.4), (1.0, 0.3333333333333333)]
    """
    c = float(label_frequency)
    groups = [np.sort(score[codes == s], kind="stable") for s in range(codes.max() + 1)]
    below = [np.append(0.0, np.cumsum(group, dtype=np.float64)) for group in groups]
    for number, (group, sums) in enumerate(zip(groups, below, strict=True)):
        if not 0 < sums[-1] < c * len(group):
            raise ValueError(
                f"The label frequency {c:.4g} must exceed the mean score "
                f"{sums[-1] / len(group):.4g} of group number {number}, and that must "
                'exceed 0: the plug-in prior is their ratio. Use method="direct".'
            )
    n_rows = len(score)
    return PlugIn(
        tuple(np.asarray(group, dtype=np.float64) for group in groups),
        tuple(below),
        c,
        tuple(float(sums[-1] / c / n_rows) for sums in below),
        tuple(
            float((len(group) - sums[-1] / c) / n_rows)
            for group, sums in zip(groups, below, strict=True)
        ),
    )


def unfairness(rates: RatePairs, constraint: str) -> float:
    r"""Half the sum of the TPR and the FPR gap; with equal opportunity the TPR gap.

    Examples
    --------
    >>> round(unfairness([(0.5, 0.1), (0.7, 0.2)], "equalized_odds"), 3)
    0.15
    """
    tprs, fprs = zip(*rates, strict=True)
    tpr_gap = max(tprs) - min(tprs)
    if constraint == "equal_opportunity":
        return float(tpr_gap)
    return float(tpr_gap + max(fprs) - min(fprs)) / 2


def weights(
    estimates: PlugIn, multipliers: Sequence[float]
) -> tuple[list[float], list[float]]:
    r"""Gain :math:`A_s = 1 - t_s/P_{1s}` and loss :math:`B_s = 1 - h_s/P_{0s}`.

    Parameters
    ----------
    estimates : PlugIn
        Gives the groups' shares of positives and negatives.
    multipliers : sequence of float
        :math:`t_s` of every group but the first, then, for equalized odds,
        :math:`h_s` of the same groups. The first group's make each sum to 0.
    """
    n_free = len(estimates.positives) - 1
    t, h = list(multipliers[:n_free]), list(multipliers[n_free:])
    h = h or [0.0] * n_free
    gain = [1 - x / p for x, p in zip([-sum(t), *t], estimates.positives, strict=True)]
    loss = [1 - x / p for x, p in zip([-sum(h), *h], estimates.negatives, strict=True)]
    return gain, loss


def box(estimates: PlugIn, constraint: str) -> tuple[Array, Array]:
    r"""Return the ends beyond which some group's rule would be reversed or constant.

    Notes
    -----
    :math:`A_s \ge 0` in every group leaves :math:`-\sum_{r \ne s} P_{1r} \le t_s \le
    P_{1s}`; for two groups :math:`\lambda_1 \in [-P_{10}, P_{11}]`. The same holds of h
    and the negatives. With more groups the box still contains points with
    :math:`A_0 < 0`, which :func:`objective` refuses.
    """
    sides = [np.array(estimates.positives)]
    if constraint == "equalized_odds":
        sides.append(np.array(estimates.negatives))
    upper = np.concatenate([side[1:] for side in sides])
    return np.concatenate([side[1:] - side.sum() for side in sides]), upper


def objective(estimates: PlugIn, constraint: str) -> Callable[[Sequence[float]], float]:
    """Unfairness of the rule at given multipliers; inf outside the box."""

    def value(multipliers: Sequence[float]) -> float:
        gain, loss = weights(estimates, multipliers)
        # A corner of the box is in it, whatever the division rounds to.
        if min(gain) < -1e-12 or min(loss) < -1e-12:
            return np.inf
        return unfairness(estimates.rates(gain, loss), constraint)

    return value


def anneal(
    value: Callable[[Sequence[float]], float],
    start: Sequence[float],
    rng: np.random.RandomState,
) -> list[float]:
    """Anneal by 18,400 uniform steps of at most 0.01, cooled geometrically.

    Returns
    -------
    list of float
        Where the search ends, not the best point it has seen.
    """
    here, at = list(start), value(start)
    for temperature in _TEMPERATURES.tolist():
        steps = rng.uniform(-_STEP, _STEP, (_STEPS_PER_TEMPERATURE, len(here))).tolist()
        # exp(-x) exceeds a uniform number exactly where x is below an exponential one.
        patience = rng.standard_exponential(_STEPS_PER_TEMPERATURE).tolist()
        for step, slack in zip(steps, patience, strict=True):
            there = [x + dx for x, dx in zip(here, step, strict=True)]
            found = value(there)
            if found - at <= temperature * slack:
                here, at = there, found
    return here


def search(
    estimates: PlugIn, constraint: str, rng: np.random.RandomState
) -> list[float]:
    """Multipliers by annealing within the box, from the unconstrained rule on."""
    start = [0.0] * len(box(estimates, constraint)[0])
    return anneal(objective(estimates, constraint), start, rng)


def dual_annealing_search(
    estimates: PlugIn, constraint: str, rng: np.random.RandomState
) -> list[float]:
    """Multipliers by SciPy's generalized annealing on the same box."""
    value = objective(estimates, constraint)

    def finite(multipliers: Array) -> float:
        # SciPy stops at inf; no unfairness reaches 10.
        return min(value(multipliers.tolist()), 10.0)

    bounds = list(zip(*box(estimates, constraint), strict=True))
    found = dual_annealing(finite, bounds, seed=rng)
    return [float(x) for x in found.x]


def cuts(estimates: PlugIn, multipliers: Sequence[float]) -> tuple[float, ...]:
    """Cut on the score of each group, for multipliers inside the box.

    Examples
    --------
    >>> estimates = plug_in(np.array([0.4, 0.2, 0.3, 0.1]), np.array([0, 0, 1, 1]), 0.5)
    >>> cuts(estimates, [0.0])
    (0.25, 0.25)
    """
    c = estimates.label_frequency
    found = []
    for a, b in zip(*weights(estimates, multipliers), strict=True):
        a, b = max(a, 0.0), max(b, 0.0)
        found.append(c * b / (a + b) if a + b > 0 else 0.0)
    return tuple(found)


def paper_rule(
    training: GroupScores,
    held_out: GroupScores,
    constraint: str,
    rng: np.random.RandomState,
) -> DecisionRule:
    """Rule of the paper, as a table of cuts.

    Parameters
    ----------
    training : GroupScores
        All training rows, on whose scores the multipliers are found.
    held_out : GroupScores
        Training rows that the classifier has not seen, of the same groups: they give
        the label frequency, and the rates that the rule reports.
    constraint : {"equal_opportunity", "equalized_odds"}
        What the search equalizes.
    rng : RandomState
        Source of the annealing.
    """
    e1 = ElkanNoto(pooled=True).from_scores(held_out)
    frequency = dict(zip(training.groups, e1.values(), strict=True))
    c = frequency[training.groups[0]].estimate
    estimates = plug_in(training.score, training.codes, c)
    found = cuts(estimates, search(estimates, constraint, rng))
    table = tuple(((cut, 1.0),) for cut in found)
    accepted = acceptance(held_out.score, held_out.codes, table)
    n_groups = len(training.groups)
    rates = group_rates(
        tally(accepted, held_out.labeled, held_out.codes, n_groups),
        training.groups,
        frequency,
        tuned=True,
    )
    cost = _plug_in_error(estimates, found)
    bound = solve(estimates.program(constraint), MinimumCost()).bound
    return DecisionRule(
        groups=training.groups,
        cuts=table,
        expected=rates,
        realized=rates,
        certificate=max(0.0, cost - bound),
        objective_value=cost,
        cost_of_snapping=0.0,
        constraint=constraint,
        tolerance=check_tolerance(constraint, 0.0),
        objective=MinimumCost(),
        label_frequency=frequency,
        seed=0,
        lottery_share=dict.fromkeys(training.groups, 0.0),
    )


def fit_paper(
    estimator: Any,
    X: Any,
    labeled: NDArray[np.bool_],
    group: Any,
    constraint: str | None,
    seed: int,
) -> tuple[Any, GroupScores, DecisionRule]:
    """Fit a classifier on 80% of the rows; return it, all rows' scores and the rule."""
    rng = np.random.RandomState(seed)
    if constraint not in CONSTRAINTS:
        raise ValueError(
            f'method="paper" knows the constraints {list(CONSTRAINTS)!r}, got '
            f'{constraint!r}. Use method="direct".'
        )
    codes = GroupScores(np.zeros(len(labeled)), labeled, group).codes
    if codes.max() < 1:
        raise ValueError(
            'method="paper" compares groups, so it needs two or more; got one. Pass '
            "sensitive_features."
        )
    stratum = 2 * codes + labeled
    fewest = np.bincount(stratum, minlength=2 * (codes.max() + 1)).min()
    if fewest < 2:
        raise ValueError(
            'method="paper" holds out labeled and unlabeled rows of every group, so it '
            f"needs 2 of each in every group; got {fewest}."
        )
    used, held = train_test_split(
        np.arange(len(labeled)),
        test_size=HOLD_OUT_SHARE,
        stratify=stratum,
        random_state=rng,
    )
    model = refit(estimator, _safe_indexing(X, used), labeled[used], random_state=rng)
    training = GroupScores(positive_score(model, X), labeled, group)
    held_out = GroupScores(training.score[held], labeled[held], codes[held])
    return model, training, paper_rule(training, held_out, constraint, rng)


def _plug_in_error(estimates: PlugIn, found: tuple[float, ...]) -> float:
    """Plug-in error rate of the cuts of every group."""
    error = 0.0
    for score, below, cut, positives in zip(
        estimates.score, estimates.below, found, estimates.positives, strict=True
    ):
        first = int(score.searchsorted(cut))
        n_rows = sum(map(len, estimates.score))
        hits = float(below[-1] - below[first]) / estimates.label_frequency / n_rows
        error += positives - 2 * hits + (len(score) - first) / n_rows
    return error
