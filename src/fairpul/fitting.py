"""From scores to a decision rule: label frequencies, floors, hulls and solver."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpul._callers import depth_in_package
from fairpul.assurance import assured_tpr
from fairpul.deployment import Lottery, rule_of
from fairpul.doubts import warn_of_coarse_counts, warn_of_few_labels
from fairpul.evidence import Rows
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import (
    LabelFrequency,
    LabelFrequencyWarning,
    resolve_label_frequency,
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
from fairpul.rule import DecisionRule
from fairpul.solvers import GroupHull, Program, make_program, solve
from fairpul.tally import tally

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
        ``group`` follow. A rule fitted on counts cuts between their bins; counted with
        ``refine=True``, the rows are counted again where the rule cuts.
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
    if isinstance(rows, GroupCounts) and rows.sources:
        from fairpul.refining import refine_rule  # which fits rules by this function

        fit = partial(
            fit_rule,
            constraint=constraint,
            tolerance=tolerance,
            objective=objective,
            label_frequency=label_frequency,
            class_prior=class_prior,
            lottery=lottery,
            random_state=random_state,
        )
        return refine_rule(rows, fit).rule
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
