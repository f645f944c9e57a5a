"""The rule of the rows from counts: count again where a finer look could matter.

Bins hide how their rows are ordered. At best all labeled rows of a bin come first: with
these *outer corners* in the hulls the solver gives a bound that no cut inside any bin
can beat. Only bins whose corner rises above the hull at the optimum can improve the
rule, so a second pass over the data resolves these and leaves the others as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairpul._callers import depth_in_package
from fairpul.binning import Refinement
from fairpul.fitting import fit_rule, program_of
from fairpul.group_counts import GroupCounts
from fairpul.objectives import Capacity
from fairpul.operating_points import OperatingPoints
from fairpul.rule import DecisionRule
from fairpul.solvers import Program, solve

# Two to four passes are usual. Each reads the data once more.
_MOST_PASSES = 8
# Resolving a bin adds up to 2**14 cells to the table.
_MOST_BINS = 64
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Refined:
    """A rule from counts that were refined where it cuts.

    Attributes
    ----------
    rule : DecisionRule
        Its certificate bounds what any rule on the *rows* could gain, at the label
        frequencies of the rule and up to ties among the 2**26 bins.
    counts : GroupCounts
        The table that it was fitted on.
    passes : int
        How often the data were counted.
    """

    rule: DecisionRule
    counts: GroupCounts
    passes: int


def refine_rule(
    count: GroupCounts | Callable[[Refinement], GroupCounts],
    fit: Callable[[GroupCounts], DecisionRule] = fit_rule,
    *,
    accuracy: float = 1e-5,
) -> Refined:
    """Fit a rule on counts, refining them until it is as good as one on the rows.

    Parameters
    ----------
    count : GroupCounts or callable
        A table counted with ``refine=True``; or a function that counts the data with
        the bins of a mapping resolved, empty at first, where the data are a stream or
        several sites.
    fit : callable, default=fit_rule
        Fits the rule; :func:`functools.partial` sets its options.
    accuracy : float, default=1e-5
        How far the objective may be from the best on the rows, and how large a share
        of a group the bins next to its cuts may hold.

    Examples
    --------
    >>> from functools import partial
    >>> import pandas as pd
    >>> from fairpul.datasets import make_underdiagnosed
    >>> data = make_underdiagnosed(20_000, random_state=0)
    >>> frame = pd.DataFrame({"p": data.score, "dx": data.labeled, "sex": data.group})
    >>> counts = GroupCounts.from_frame(
    ...     frame, score="p", labeled="dx", group="sex", refine=True
    ... )
    >>> refined = refine_rule(counts, partial(fit_rule, label_frequency=0.8))
    >>> refined.rule.bins == 2**26, refined.rule.certificate < 1e-5
    (True, True)
    """
    wanted: dict[Hashable, set[int]] = {}
    passes = 1
    if isinstance(count, GroupCounts):
        counts, count = replace(count, sources=()), count.recount
    else:
        counts = count({})
    while True:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rule = fit(counts)
        certificate = row_certificate(counts, rule)
        more = _bins_to_resolve(counts, rule, certificate > accuracy, accuracy)
        if passes == _MOST_PASSES or not any(more.values()):
            break
        for key, bins in more.items():
            wanted.setdefault(key, set()).update(bins)
        counts = count({key: sorted(bins) for key, bins in wanted.items()})
        passes += 1
    for warning in caught:
        warnings.warn(warning.message, stacklevel=depth_in_package())
    return Refined(replace(rule, certificate=certificate), counts, passes)


def row_certificate(counts: GroupCounts, rule: DecisionRule) -> float:
    """How much better than a rule fitted on counts any rule on their rows could be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about floors; the fit told already
        program = program_of(
            counts, rule.label_frequency, rule.objective, rule.tolerance
        )
    bound = solve(_with_outer_corners(program, counts), rule.objective).bound
    value = rule.objective_value
    if isinstance(rule.objective, Capacity):
        value = 1 - value
    return max(0.0, value - bound)


def outer_corners(
    points: OperatingPoints, resolvable: NDArray[np.bool_]
) -> OperatingPoints:
    """Points that would be there if the labeled rows of each bin came first.

    Examples
    --------
    >>> points = OperatingPoints(
    ...     np.array([np.inf, 7.0, 0.0]), np.array([0, 10, 30]), np.array([0, 6, 8])
    ... )
    >>> outer_corners(points, np.array([True, True])).accepted.tolist()
    [6, 12]
    """
    mass, labeled = np.diff(points.accepted), np.diff(points.labeled)
    mixed = np.flatnonzero(resolvable & (labeled > 0) & (labeled < mass))
    return OperatingPoints(
        points.cut[mixed + 1] + 0.5,
        points.accepted[mixed] + labeled[mixed],
        points.labeled[mixed] + labeled[mixed],
    )


def _with_outer_corners(program: Program, counts: GroupCounts) -> Program:
    hulls = []
    for s, hull in enumerate(program.hulls):
        if len(hull.points) == 1:  # a floor that only accepting everybody holds
            hulls.append(hull)
            continue
        points = counts.points(s)
        corners = outer_corners(points, counts.resolvable(s))
        merged = _merged(points, corners)
        hulls.append(replace(hull, points=merged.hull()))
    return replace(program, hulls=tuple(hulls))


def _merged(points: OperatingPoints, corners: OperatingPoints) -> OperatingPoints:
    cut = np.concatenate([points.cut, corners.cut])
    order = np.argsort(-cut, kind="stable")
    return OperatingPoints(
        cut[order],
        np.concatenate([points.accepted, corners.accepted])[order],
        np.concatenate([points.labeled, corners.labeled])[order],
    )


def _bins_to_resolve(
    counts: GroupCounts, rule: DecisionRule, improvable: bool, accuracy: float
) -> dict[Hashable, set[int]]:
    """Bins at the thresholds and, of a rule that can be improved, those that could."""
    wanted: dict[Hashable, set[int]] = {}
    for s, key in enumerate(counts.groups):
        points, resolvable = counts.points(s), counts.resolvable(s)
        share = np.diff(points.accepted) / points.accepted[-1]
        at = np.searchsorted(-points.cut, [-cut for cut, _ in rule.cuts[s]])
        beside = np.unique(np.concatenate([at - 1, at]))
        beside = beside[(beside >= 0) & (beside < len(share))]
        chosen = [beside[share[beside] > accuracy]]
        if improvable:
            rates = rule.expected[key]
            target = rates["selection_rate"].estimate, rates["tpr"].estimate
            chosen.append(_above_tangent(points, resolvable, *target))
        cells = np.concatenate(chosen)
        cells = cells[resolvable[cells]]
        wanted[key] = set(counts.base_bins_of(s)[cells].tolist())
    return wanted


def _above_tangent(
    points: OperatingPoints, resolvable: NDArray[np.bool_], q: float, t: float
) -> NDArray[np.intp]:
    """Bins whose outer corner lies above the hull's tangent at (q, t), highest first.

    None if (q, t) is below the hull, for then this group is not what limits the rule.
    """
    hull = points.hull()
    x, y = hull.selection_rate, hull.tpr
    if np.interp(q, x, y) > t + 1e-9:
        return np.zeros(0, dtype=np.intp)
    slope = np.diff(y) / np.diff(x)
    edges = np.searchsorted(x, [q - _ROUNDING, q + _ROUNDING]) - 1
    before, after = np.clip(edges, 0, len(slope) - 1)
    labeled = np.diff(points.labeled)
    corner_x = (points.accepted[:-1] + labeled) / points.accepted[-1]
    corner_y = points.tpr[1:]
    tangent = np.where(corner_x <= q, slope[before], slope[after])
    excess = np.where(resolvable, corner_y - t - tangent * (corner_x - q), 0.0)
    order = np.argsort(-excess)[:_MOST_BINS]
    return order[excess[order] > _ROUNDING]
