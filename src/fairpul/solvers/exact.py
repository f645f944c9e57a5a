"""Problems solved by a search along one axis: no LP, exact to rounding."""

from __future__ import annotations

import numpy as np

from fairpul.objectives import MinimumCost
from fairpul.operating_points import segment_posterior
from fairpul.solvers.program import (
    Array,
    GroupHull,
    Program,
    Solution,
    lagrangian_bound,
)

# Rates are sums of up to n rounded terms divided once; comparisons of two of them
# that mean the same number differ by a few units in the last place.
_ROUNDING = 1e-14


def solve_unconstrained(program: Program, cost: MinimumCost) -> Solution:
    """Cost-optimal cut of each group by itself.

    Accepts the rows whose posterior reaches
    ``false_positive / (false_negative + false_positive)``, ties accepted.
    """
    level = cost.false_positive / (cost.false_negative + cost.false_positive)
    last = [
        int(np.count_nonzero(segment_posterior(h.points, h.label_frequency) >= level))
        for h in program.hulls
    ]
    tpr = np.array([h.points.tpr[j] for h, j in zip(program.hulls, last, strict=True)])
    selection = np.array(
        [h.points.selection_rate[j] for h, j in zip(program.hulls, last, strict=True)]
    )
    value = program.value(tpr, selection)
    return Solution(tpr, selection, value, lagrangian_bound(program, {}), _ROUNDING)


def solve_equal_opportunity(program: Program, cost: MinimumCost) -> Solution:
    r"""Least cost with TPRs in one interval as wide as the tolerance.

    Notes
    -----
    With :math:`Q_s(b)` the selection rate on the hull at TPR :math:`b`, the cost
    :math:`f_s(b) = c_{FP}\, p_s Q_s(b) - (c_{FN} + c_{FP})\, p_s \pi_s b` is convex and
    piecewise linear, so over the lower end :math:`u` of the interval the least
    :math:`\sum_s f_s(b_s)`, each :math:`b_s` as near to the best of its group as
    :math:`[u, u + \epsilon]` allows, is at a hull cut of some group or
    :math:`\epsilon` below one. Of equal minima the largest TPR is taken.
    """
    width = program.tolerance["tpr"]
    chains = [_up_to_full_tpr(hull) for hull in program.hulls]
    gain = (cost.false_negative + cost.false_positive) * _positives(program)
    slack = _ROUNDING * max(1.0, gain)
    curves = [
        (t, program.tpr_cost[s] * t + program.selection_cost[s] * q)
        for s, (t, q) in enumerate(chains)
    ]
    best = np.array([_last_minimum(*curve, slack) for curve in curves])
    knots = np.concatenate([t for t, _ in chains])
    if width:
        knots = np.concatenate([knots, np.maximum(knots - width, 0.0)])
    knots = np.unique(knots)
    losses = sum(
        np.interp(np.clip(b, knots, knots + width), *curve)
        for b, curve in zip(best, curves, strict=True)
    )
    u = float(knots[np.flatnonzero(losses <= losses.min() + slack)[-1]])
    tpr = np.clip(best, u, min(1.0, u + width))
    selection = np.array(
        [np.interp(t, *chain) for t, chain in zip(tpr, chains, strict=True)]
    )
    slopes = np.array(
        [_slopes_at(t, *curve) for t, curve in zip(tpr, curves, strict=True)]
    )
    low, high = slopes.T
    if width:  # what holds a group at the lower end cannot pull it down, and so on
        at_low, at_high = tpr <= u + _ROUNDING, tpr >= u + width - _ROUNDING
        low = np.where(tpr == 0, -np.inf, low)
        low = np.where(at_low, np.maximum(low, 0), np.where(at_high, low, 0))
        high = np.where(at_low, high, np.where(at_high, np.minimum(high, 0), 0))
    bound = lagrangian_bound(program, {"tpr": -_prices(low, high, 0.0)})
    return Solution(tpr, selection, program.value(tpr, selection), bound, _ROUNDING)


def _last_minimum(x: Array, y: Array, slack: float) -> float:
    """Argument of the smallest value, the largest of equal ones."""
    return float(x[np.flatnonzero(y <= y.min() + slack)[-1]])


def solve_equalized_odds(program: Program, cost: MinimumCost) -> Solution:
    r"""Least cost with one common TPR and one common FPR.

    Notes
    -----
    With :math:`H(a) = \min_s R_s(a)` the lowest of the groups' hulls at FPR
    :math:`a`, the cost :math:`(1-\pi) c_{FP}\, a - \pi c_{FN} H(a)` is convex and
    piecewise linear on [0, 1]: its minimum is at a hull cut, at a crossing of two
    hulls, or at 0.
    """
    chains = [_rising_part(hull) for hull in program.hulls]
    positives = _positives(program)
    loss_a = cost.false_positive * (1 - positives)
    gain_t = cost.false_negative * positives
    knots = np.concatenate([fpr for fpr, _ in chains])
    knots = np.unique(np.append(knots[(knots > 0) & (knots < 1)], [0.0, 1.0]))
    heights = np.array([np.interp(knots, *chain) for chain in chains])
    best = int(np.argmin(loss_a * knots - gain_t * heights.min(axis=0)))
    candidates = [(float(knots[best]), float(heights[:, best].min()))]
    for left in (best - 1, best):
        if 0 <= left < len(knots) - 1:
            ends = knots[left : left + 2], heights[:, left : left + 2]
            candidates += _crossings(*ends)
    a, t = min(candidates, key=lambda point: loss_a * point[0] - gain_t * point[1])
    tpr = np.full(len(chains), t)
    priors = np.array([hull.prior for hull in program.hulls])
    selection = (1 - priors) * a + priors * t
    multipliers = _odds_multipliers(program, cost, chains, a, t)
    bound = lagrangian_bound(program, multipliers)
    return Solution(tpr, selection, program.value(tpr, selection), bound, _ROUNDING)


def _positives(program: Program) -> float:
    return float(sum(hull.share * hull.prior for hull in program.hulls))


def _up_to_full_tpr(hull: GroupHull) -> tuple[Array, Array]:
    """Hull as (TPR, selection rate) without its flat top, where TPR is 1 already."""
    tpr = hull.points.tpr
    top = int(np.searchsorted(tpr, tpr[-1])) + 1
    return tpr[:top], hull.points.selection_rate[:top]


def _rising_part(hull: GroupHull) -> tuple[Array, Array]:
    """Hull as (FPR, TPR) from its smallest FPR on, where FPR begins to rise."""
    fpr = hull.fpr
    start = len(fpr) - 1 - int(np.argmin(fpr[::-1]))
    return fpr[start:], hull.points.tpr[start:]


def _slopes_at(x: float, xs: Array, ys: Array) -> tuple[float, float]:
    """Slopes of a piecewise linear function left and right of ``x``; inf outside."""
    left = int(np.searchsorted(xs, x - _ROUNDING)) - 1
    right = int(np.searchsorted(xs, x + _ROUNDING, side="right"))
    if left + 1 == right:  # inside one piece
        slope = (ys[right] - ys[left]) / (xs[right] - xs[left])
        return slope, slope
    middle = left + 1
    before, after = np.inf, np.inf
    if left >= 0:
        before = (ys[middle] - ys[left]) / (xs[middle] - xs[left])
    if right < len(xs):
        after = (ys[right] - ys[right - 1]) / (xs[right] - xs[right - 1])
    return float(before), float(after)


def _prices(low: Array, high: Array, total: float) -> Array:
    """Subgradients between two ends that sum to ``total`` where possible."""
    if np.isinf(low).any():  # b = 0: every smaller slope is a subgradient too
        low = high - max(0.0, float(high.sum()) - total)
    high = np.where(np.isinf(high), low + max(0.0, total - float(low.sum())), high)
    room = float((high - low).sum())
    step = (total - float(low.sum())) / room if room > 0 else 0.0
    return np.asarray(low + np.clip(step, 0.0, 1.0) * (high - low))


def _crossings(x: Array, heights: Array) -> list[tuple[float, float]]:
    """Corners of the lower envelope of lines between two neighboring knots."""
    corners: list[tuple[float, float]] = []
    at, slope = heights[:, 0], (heights[:, 1] - heights[:, 0]) / (x[1] - x[0])
    position = 0.0
    line = int(np.lexsort((slope, at))[0])
    while True:
        falling = slope < slope[line]
        if not falling.any():
            return corners
        meet = np.full(len(at), np.inf)
        meet[falling] = (at[falling] - at[line]) / (slope[line] - slope[falling])
        step = float(meet.min())
        if not position <= step < x[1] - x[0]:
            return corners
        height = float(at[line] + slope[line] * step)
        corners.append((float(x[0] + step), height))
        tied = np.flatnonzero(meet == step)
        position, line = step, int(tied[np.argmin(slope[tied])])


def _odds_multipliers(
    program: Program,
    cost: MinimumCost,
    chains: list[tuple[Array, Array]],
    a: float,
    t: float,
) -> dict[str, Array]:
    """Multipliers that support the common point (a, t) of equalized odds.

    The groups whose hull passes through the point carry the weights: one of them if
    its supporting slopes contain the exchange rate of the two costs, else the two
    nearest on either side of it.
    """
    positives = _positives(program)
    loss_a = cost.false_positive * (1 - positives)
    gain_t = cost.false_negative * positives
    shares = program.shares
    priors = np.array([hull.prior for hull in program.hulls])
    if gain_t == 0:  # accepting no negative is free of any loss
        return {
            "tpr": np.zeros(len(chains)),
            "fpr": -cost.false_positive * shares * (1 - priors),
        }
    exchange = loss_a / gain_t
    active = [
        s for s, c in enumerate(chains) if np.interp(a, *c) <= t + 100 * _ROUNDING
    ]
    slopes = {s: _slopes_at(a, *chains[s]) for s in active}
    weight, slope = np.zeros(len(chains)), np.zeros(len(chains))
    steep = {
        s: after if np.isfinite(after) else 0.0 for s, (_, after) in slopes.items()
    }
    flat = {s: before for s, (before, _) in slopes.items()}
    s = min(active, key=lambda s: max(steep[s] - exchange, exchange - flat[s], 0.0))
    weight[s], slope[s] = 1.0, np.clip(exchange, steep[s], flat[s])
    above = [s for s in active if steep[s] > exchange]
    below = [s for s in active if flat[s] < exchange]
    if slope[s] != exchange and above and below:
        up = min(above, key=lambda s: steep[s])
        down = max(below, key=lambda s: flat[s])
        part = (exchange - flat[down]) / (steep[up] - flat[down])
        weight[:] = slope[:] = 0.0
        weight[up], slope[up] = part, steep[up]
        weight[down], slope[down] = 1 - part, flat[down]
    return {
        "tpr": cost.false_negative * shares * priors - gain_t * weight,
        "fpr": gain_t * weight * slope - cost.false_positive * shares * (1 - priors),
    }
