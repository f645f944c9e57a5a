"""From scores to a decision rule: hulls, solver, cuts, and what to expect of them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from fairpul._callers import depth_in_package
from fairpul.assurance import assured_tpr
from fairpul.cuts import Cuts, acceptance_levels
from fairpul.doubts import warn_of_coarse_counts, warn_of_few_labels
from fairpul.evidence import by_cuts
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import (
    LabelFrequency,
    LabelFrequencyWarning,
    resolve_label_frequency,
)
from fairpul.lottery import (
    Mixture,
    exact_mixtures,
    flat_top_may_serve,
    lottery_mass,
    snap,
)
from fairpul.objectives import (
    Capacity,
    Objective,
    RecallFloor,
    check_lottery,
    check_objective,
    check_tolerance,
    needs_label_frequency,
)
from fairpul.operating_points import OperatingPoints
from fairpul.rates import DeferredRates, Rates, group_rates
from fairpul.rule import DecisionRule
from fairpul.solvers import GroupHull, Program, Solution, make_program, solve
from fairpul.solvers.program import rate_of
from fairpul.solvers.single_cuts import best_single_cuts
from fairpul.tally import Tally, tally

Lottery = Literal["auto"] | bool
Rows = GroupScores | GroupCounts

# Together the assured floors of all groups fail in at most this share of samples.
_RISK = 0.05


def fit_rule(
    scores: Rows | ArrayLike,
    labeled: ArrayLike | None = None,
    group: Any = None,
    *,
    constraint: str | None = "equal_opportunity",
    tolerance: float | Mapping[str, float] = 0.0,
    objective: Objective | None = None,
    label_frequency: Any = "peak_rate",
    class_prior: Any = None,
    lottery: Lottery = "auto",
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    random_state: Any = None,
) -> DecisionRule:
    """Best decision rule whose group gaps stay within a tolerance.

    Parameters
    ----------
    scores : GroupScores, GroupCounts, or array-like of shape (n_rows,)
        Scores in [0, 1], out-of-fold or held out. With an array, ``labeled`` and
        ``group`` follow. A rule fitted on counts cuts between their bins.
    labeled : array-like of shape (n_rows,)
        1 or True for labeled positives; 0, -1 or False for unlabeled rows.
    group : array-like of shape (n_rows,) or (n_rows, n_columns), or None
        Group of each row; None makes one group of all.
    constraint : {"equal_opportunity", "equalized_odds", "predictive_equality", \
"demographic_parity"} or None, default="equal_opportunity"
        Which rates the groups must share: TPR, TPR and FPR, FPR, selection rate.
    tolerance : float or dict, default=0.0
        Largest gap allowed in each constrained rate, or one number per rate, such as
        ``{"tpr": 0.02, "fpr": 0.05}``.
    objective : MinimumCost, RecallFloor, Capacity or None, default=None
        What the rule should achieve; None is ``MinimumCost()``, the error rate.
    label_frequency : str, float, dict or estimator, default="peak_rate"
        P(labeled given positive), or how to estimate it. Matters only where FPRs or
        costs do; see :mod:`fairpul.label_frequency`.
    class_prior : float or dict, optional
        P(positive) instead of a label frequency; per group also (point, low, high). The
        label frequency of groups that a dict leaves out is estimated.
    lottery : {"auto", True, False}, default="auto"
        "auto" draws lots only where the constraint needs it (equalized odds); True
        deploys the exact mixture; False never draws, and reports the gap that remains.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights: a row of weight 2 counts as two rows.
    cluster : array-like of shape (n_rows,), optional
        Rows that belong together, such as the patient of each row.
    random_state : int, RandomState or None
        Source of the lottery's salt.

    Returns
    -------
    DecisionRule
        Cuts by group, expected and realized rates with intervals, certificate.

    Notes
    -----
    Certificate and optimality speak of the exact mixture on these rows. The rates are
    tuned on the same rows: the true TPR tends to be slightly below its estimate.

    Examples
    --------
    >>> from fairpul import RecallFloor
    >>> from fairpul.datasets import make_underdiagnosed
    >>> data = make_underdiagnosed(8000, random_state=0)
    >>> rule = fit_rule(data.score, data.labeled, data.group,
    ...                 objective=RecallFloor(0.8), label_frequency=0.9)
    >>> rule  # doctest: +ELLIPSIS
    DecisionRule(equal_opportunity, RecallFloor(recall=0.8, assured=False))
      f  accept score >= 0.0...
      m  accept score >= 0.2...
    >>> rule.decide([0.1, 0.1], ["f", "m"]).tolist()
    [1, 0]
    """
    rows = _as_scores(scores, labeled, group, sample_weight, cluster)
    allowed = check_tolerance(constraint, tolerance)
    goal = check_objective(objective)
    check_lottery(lottery)
    frequency = _label_frequency(rows, label_frequency, class_prior, goal, allowed)
    program = program_of(rows, frequency, goal, allowed)
    solution = solve(program, goal)
    warn_of_few_labels(rows)
    rule = rule_of(
        rows,
        program,
        solution,
        constraint=constraint,
        objective=goal,
        label_frequency=frequency,
        lottery=lottery,
        random_state=random_state,
    )
    warn_of_coarse_counts(rows, [rule])
    return rule


def rule_of(
    rows: Rows,
    program: Program,
    solution: Solution,
    *,
    constraint: str | None,
    objective: Objective,
    label_frequency: Mapping[Hashable, LabelFrequency],
    lottery: Lottery,
    random_state: Any = None,
) -> DecisionRule:
    """Decision rule that deploys the solution of a program; see :func:`fit_rule`."""
    hulls, mixtures = _exact(rows, program, solution)
    tables, exact = _among_cuts(rows, program, hulls, mixtures, lottery)
    deployed = _deploy(rows, program, tables, exact, lottery)
    snapped = deployed != exact
    expected = _rates(rows, tables, exact, label_frequency, snapped=False)
    realized = expected
    if snapped:
        realized = _rates(rows, tables, deployed, label_frequency, snapped=True)
    has_lottery = any(len(mixture) > 1 for mixture in deployed)
    cost_of_snapping = 0.0
    if snapped:
        tpr, selection = _points_of(tables, deployed)
        cost_of_snapping = program.value(tpr, selection) - solution.value
    return DecisionRule(
        groups=rows.groups,
        cuts=_cuts(tables, deployed),
        expected=expected,
        realized=realized,
        certificate=solution.certificate,
        objective_value=(
            1 - solution.value if isinstance(objective, Capacity) else solution.value
        ),
        cost_of_snapping=cost_of_snapping,
        constraint=constraint,
        tolerance=program.tolerance,
        objective=objective,
        label_frequency=label_frequency,
        seed=_salt(random_state) if has_lottery else 0,
        lottery_share={
            key: lottery_mass(mixture, points.selection_rate)
            for key, mixture, points in zip(rows.groups, deployed, tables, strict=True)
        },
        bins=rows.bins if isinstance(rows, GroupCounts) else None,
    )


def _as_scores(
    scores: Any, labeled: Any, group: Any, sample_weight: Any, cluster: Any
) -> Rows:
    if not isinstance(scores, GroupScores | GroupCounts):
        if labeled is None:
            raise TypeError(
                "fit_rule takes GroupScores, GroupCounts, or arrays of score, labeled "
                "and group; got a score without labels."
            )
        return GroupScores(
            scores, labeled, group, sample_weight=sample_weight, cluster=cluster
        )
    given = {
        "labeled": labeled,
        "group": group,
        "sample_weight": sample_weight,
        "cluster": cluster,
    }
    twice = [name for name, value in given.items() if value is not None]
    if twice:
        kind = type(scores).__name__
        raise TypeError(f"{kind} hold {twice!r} already; do not pass them again.")
    if isinstance(scores, GroupCounts):
        scores.check_every_group_is_labeled()
    return scores


def _label_frequency(
    rows: Rows,
    label_frequency: Any,
    class_prior: Any,
    objective: Objective,
    tolerance: Mapping[str, float],
) -> dict[Hashable, LabelFrequency]:
    """Label frequency by group; its doubts are told only where the rule rests on it."""
    if isinstance(label_frequency, Mapping) and all(
        isinstance(value, LabelFrequency) for value in label_frequency.values()
    ):
        missing = [key for key in rows.groups if key not in label_frequency]
        if missing:
            raise ValueError(f"label_frequency has no value for groups {missing!r}.")
        return {key: label_frequency[key] for key in rows.groups}
    with warnings.catch_warnings():
        if not needs_label_frequency(objective, tolerance):
            warnings.simplefilter("ignore", LabelFrequencyWarning)
        return resolve_label_frequency(label_frequency, class_prior, rows)


def program_of(
    rows: Rows,
    frequency: Mapping[Hashable, LabelFrequency],
    objective: Objective,
    tolerance: Mapping[str, float],
) -> Program:
    """Optimization problem of a table of points by group."""
    if "fpr" in tolerance:
        _check_negatives(rows, frequency)
    floors = _floors(rows, objective)
    hulls = []
    for s, key in enumerate(rows.groups):
        hull = rows.hull(s)
        if np.isnan(floors[s]):  # only accepting everybody is sure to hold the floor
            hull, floors[s] = hull[-1:], 1.0
        hulls.append(GroupHull(hull, float(rows.shares[s]), frequency[key].estimate))
    return make_program(hulls, objective, tolerance, floors)


def _check_negatives(rows: Rows, frequency: Mapping[Hashable, LabelFrequency]) -> None:
    """Refuse to equalize an FPR that some group does not have."""
    without = [
        key
        for s, key in enumerate(rows.groups)
        if rows.hull(s).labeled_share >= frequency[key].estimate
    ]
    if without:
        raise ValueError(
            f"All rows of groups {without!r} are positive, so they have no false "
            "positive rate to equalize. Merge these groups with others, drop them, or "
            "constrain the true positive rate alone."
        )


def _floors(rows: Rows, objective: Objective) -> NDArray[np.float64]:
    """Floor under each group's TPR; nan where no cut can assure it."""
    floor = objective.floor if isinstance(objective, Capacity) else objective
    floors = np.zeros(len(rows.groups))
    if not isinstance(floor, RecallFloor):
        return floors
    floors[:] = floor.recall
    if floor.assured:
        risk = _RISK / len(floors)
        for s in range(len(floors)):
            m = rows.m_effective(s) / _design_effect(rows, s, floor.recall)
            floors[s] = assured_tpr(floor.recall, m, risk)
        unsure = [
            key for key, f in zip(rows.groups, floors, strict=True) if np.isnan(f)
        ]
        if unsure:
            warnings.warn(
                f"Groups {unsure!r} have too few labeled rows to assure a recall of "
                f"{floor.recall:g}: everybody in them is accepted.",
                stacklevel=depth_in_package(),
            )
    return floors


def _design_effect(rows: Rows, s: int, recall: float) -> float:
    """How much the clusters of a group inflate the variance of its TPR at a recall."""
    if isinstance(rows, GroupCounts) or rows.cluster is None:
        return 1.0
    points = rows.points(s)
    cut = points.cut[np.searchsorted(points.tpr, recall)]
    member = rows.rows(s)
    (group,) = tally(
        rows.score[member] >= cut,
        rows.labeled[member],
        np.zeros(len(member), dtype=np.intp),
        1,
        None if rows.sample_weight is None else rows.sample_weight[member],
        rows.cluster[member],
    )
    influence = np.array([0.0, -group.tpr, 0.0, 1.0]) / group.m
    return float(group.spread(influence, group.m_effective).effect)


def _exact(
    rows: Rows, program: Program, solution: Solution
) -> tuple[list[OperatingPoints], tuple[Mixture, ...]]:
    """Hulls and their exact mixtures, with the cuts of a flat top that may serve."""
    mixtures = exact_mixtures(program.hulls, solution)
    hulls = [hull.points for hull in program.hulls]
    if isinstance(rows, GroupCounts):  # these have all cuts of the flat top
        return hulls, mixtures
    targets = zip(solution.selection_rate, solution.tpr, strict=True)
    wanted = [
        flat_top_may_serve(hull, mixture, *target)
        for hull, mixture, target in zip(hulls, mixtures, targets, strict=True)
    ]
    if not any(wanted):
        return hulls, mixtures
    ends = [
        (len(hull) - 2, len(hull) - 1) if opened else (0, 0)
        for hull, opened in zip(hulls, wanted, strict=True)
    ]
    tops = rows.between(hulls, ends)
    hulls = [
        hull[:-2].joined(top) if opened else hull
        for hull, top, opened in zip(hulls, tops, wanted, strict=True)
    ]
    refined = tuple(
        replace(hull, points=points)
        for hull, points in zip(program.hulls, hulls, strict=True)
    )
    return hulls, exact_mixtures(refined, replace(solution, mixtures=None))


def _among_cuts(
    rows: Rows,
    program: Program,
    hulls: list[OperatingPoints],
    mixtures: tuple[Mixture, ...],
    lottery: Lottery,
) -> tuple[list[OperatingPoints], tuple[Mixture, ...]]:
    """Cuts that may be deployed, by group, and the exact mixtures of them."""
    drawn = any(len(mixture) > 1 for mixture in mixtures)
    several = len(program.tolerance) > 1
    if isinstance(rows, GroupCounts) or (lottery is False and several and drawn):
        tables = [rows.points(s) for s in range(len(hulls))]
    elif lottery is True or several or not drawn:
        return hulls, mixtures
    else:
        ends = [(min(mixture), max(mixture)) for mixture in mixtures]
        tables = rows.between(hulls, ends)
    moved = []
    for points, hull, mixture in zip(tables, hulls, mixtures, strict=True):
        position = np.searchsorted(-points.cut, -hull.cut[list(mixture)])
        weights = mixture.values()
        moved.append(dict(zip(position.tolist(), weights, strict=True)))
    return tables, tuple(moved)


def _deploy(
    rows: Rows,
    program: Program,
    tables: list[OperatingPoints],
    exact: tuple[Mixture, ...],
    lottery: Lottery,
) -> tuple[Mixture, ...]:
    """Mixtures to deploy: the exact ones, snapped ones, or the best single cuts."""
    if lottery is True or all(len(mixture) == 1 for mixture in exact):
        return exact
    if len(program.tolerance) > 1:
        if lottery == "auto":
            return exact
        return tuple({cut: 1.0} for cut in best_single_cuts(program, tables))
    rate = next(iter(program.tolerance), None)
    if rate is None:
        rate = "selection_rate" if np.isfinite(program.budget) else "tpr"
    deployed = []
    for s, (points, mixture) in enumerate(zip(tables, exact, strict=True)):
        cut = snap(
            points,
            rate_of(points, rate, program.hulls[s].prior),
            mixture,
            least_tpr=float(program.floor[s]),
            within_selection=bool(np.isfinite(program.budget)),
        )
        if cut is None and lottery is False:
            raise ValueError(
                f"No single cut of group {rows.groups[s]!r} holds both the recall "
                'floor and the capacity. Use lottery="auto" or raise the capacity.'
            )
        deployed.append(mixture if cut is None else {cut: 1.0})
    return tuple(deployed)


def _cuts(
    tables: list[OperatingPoints], mixtures: tuple[Mixture, ...]
) -> tuple[Cuts, ...]:
    return tuple(
        tuple((points.cut.item(j), mixture[j]) for j in sorted(mixture))
        for points, mixture in zip(tables, mixtures, strict=True)
    )


def _points_of(
    tables: list[OperatingPoints], mixtures: tuple[Mixture, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """TPR and selection rate of each group under its mixture."""
    tpr, selection = [], []
    for points, mixture in zip(tables, mixtures, strict=True):
        cuts, weights = list(mixture), list(mixture.values())
        tpr.append(points.tpr[cuts] @ weights)
        selection.append(points.selection_rate[cuts] @ weights)
    return np.array(tpr), np.array(selection)


def _rates(
    rows: Rows,
    tables: list[OperatingPoints],
    mixtures: tuple[Mixture, ...],
    frequency: Mapping[Hashable, LabelFrequency],
    *,
    snapped: bool,
) -> Rates:
    if not _alike(rows):
        tallies = by_cuts(rows, _cuts(tables, mixtures)).tallies()
        return group_rates(tallies, rows.groups, frequency, tuned=True, snapped=snapped)
    sizes = [(rows.n_effective(s), rows.m_effective(s)) for s in range(len(tables))]
    pieces = [
        (points[[*sorted(mixture), len(points) - 1]], mixture, size)
        for points, mixture, size in zip(tables, mixtures, sizes, strict=True)
    ]
    return DeferredRates(
        partial(_rates_of_pieces, pieces, rows.groups, frequency, snapped)
    )


def _alike(rows: Rows) -> bool:
    """Whether all rows are independent and of one weight."""
    if isinstance(rows, GroupCounts):
        return not rows.weighted
    return rows.cluster is None and rows.sample_weight is None


def _rates_of_pieces(
    pieces: list[tuple[OperatingPoints, Mixture, tuple[float, float]]],
    groups: tuple[Hashable, ...],
    frequency: Mapping[Hashable, LabelFrequency],
    snapped: bool,
) -> Rates:
    tallies = [_tally_of(*piece) for piece in pieces]
    return group_rates(tallies, groups, frequency, tuned=True, snapped=snapped)


def _tally_of(
    points: OperatingPoints, mixture: Mixture, size: tuple[float, float]
) -> Tally:
    """Masses of a group between the cuts of its mixture, and below the last."""
    weights = [mixture[cut] for cut in sorted(mixture)]
    cuts = tuple(zip(points.cut.tolist()[:-1], weights, strict=True))
    return Tally(
        np.array([*acceptance_levels(cuts), 0.0]),
        np.diff(points.accepted, prepend=0),
        np.diff(points.labeled, prepend=0),
        *size,
    )


def _salt(random_state: Any) -> int:
    high, low = check_random_state(random_state).randint(2**31 - 1, size=2)
    return int(high) * 2**31 + int(low)
