"""From the best rates to the rule that is deployed: cuts, lots and what to expect."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from fairpul.cuts import Cuts, acceptance_levels
from fairpul.evidence import Rows, by_cuts
from fairpul.group_counts import GroupCounts
from fairpul.label_frequency import LabelFrequency
from fairpul.lottery import (
    Mixture,
    exact_mixtures,
    flat_top_may_serve,
    lottery_mass,
    snap,
)
from fairpul.objectives import Capacity, Objective
from fairpul.operating_points import OperatingPoints
from fairpul.rates import DeferredRates, Rates, group_rates
from fairpul.rule import DecisionRule
from fairpul.solvers import Program, Solution
from fairpul.solvers.program import rate_of
from fairpul.solvers.single_cuts import best_single_cuts
from fairpul.tally import Tally

Lottery = Literal["auto"] | bool


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
    """Decision rule that deploys a solution; see :func:`fairpul.fit_rule`."""
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
