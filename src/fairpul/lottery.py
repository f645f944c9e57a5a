"""From the best rates to cuts: the nearest single cut, or the smallest lottery."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairpul.operating_points import OperatingPoints
from fairpul.solvers.program import GroupHull, Solution

Array = NDArray[np.float64]
#: Weights of positions on a group's hull, or of positions among all its cuts.
Mixture = dict[int, float]

# Up to so many pairs of cuts, a table of all of them costs less than a search.
_FEW_CHORDS = 4096

# Weights under this are rounding, not a decision.
_NO_WEIGHT = 1e-9


def exact_mixtures(
    hulls: tuple[GroupHull, ...], solution: Solution
) -> tuple[Mixture, ...]:
    """Each group's mixture of hull cuts that meets its rates with the least lottery."""
    mixtures = []
    for s, hull in enumerate(hulls):
        q, t = hull.points.selection_rate, hull.points.tpr
        target = float(solution.selection_rate[s]), float(solution.tpr[s])
        mixture = smallest_lottery(*target, q, t, noise=solution.noise)
        own = None if solution.mixtures is None else solution.mixtures[s]
        if own is not None and lottery_mass(own, q) < lottery_mass(mixture, q):
            mixture = own
        mixtures.append(mixture)
    return tuple(mixtures)


def smallest_lottery(
    selection: float,
    tpr: float,
    hull_selection: Array,
    hull_tpr: Array,
    *,
    noise: float = 1e-9,
) -> Mixture:
    r"""Weights of hull cuts that give the target rates and leave least to chance.

    Parameters
    ----------
    selection, tpr : float
        The target, on or below the hull.
    hull_selection, hull_tpr : ndarray of shape (n_cuts,)
        The hull's cuts, from strict to lenient.
    noise : float, default=1e-9
        How far below an edge a target still counts as on it.

    Returns
    -------
    dict of int to float
        At most three cuts and their weights, which sum to 1. Rows between the
        strictest and the most lenient of them are drawn by lot.

    Notes
    -----
    A target lies in the hull of the cuts i..j exactly if the chord from i to j passes
    at or below it. For each i with :math:`Q_i \le q` the first such j is found by
    bisection, because the chord falls at q as j grows; the pair with the smallest
    :math:`Q_j - Q_i` wins.

    Examples
    --------
    >>> smallest_lottery(0.5, 0.75, np.array([0.0, 0.5, 1.0]), np.array([0.0, 1, 1]))
    {0: 0.25, 1: 0.5, 2: 0.25}
    """
    q, t = hull_selection, hull_tpr
    at = np.flatnonzero((abs(q - selection) <= noise) & (abs(t - tpr) <= noise))
    if len(at):
        return {int(at[np.argmin(abs(t[at] - tpr))]): 1.0}
    first = np.arange(int(np.searchsorted(q, selection, side="right")))
    if len(first) == len(q):
        return {len(q) - 1: 1.0}
    last = _first_chord_below(selection, tpr + noise, q, t, first)
    reached = last < len(q)
    first, last = first[reached], last[reached]
    best = int(np.argmin(q[last] - q[first]))
    i, j = int(first[best]), int(last[best])
    share = (selection - q[i]) / (q[j] - q[i])
    if j - 1 == i or abs(t[i] + share * (t[j] - t[i]) - tpr) <= noise:
        weights = {i: 1 - share, j: share}
    else:
        weights = _barycentric(selection, tpr, q, t, (i, j - 1, j))
    kept = {cut: float(w) for cut, w in weights.items() if w > _NO_WEIGHT}
    total = sum(kept.values())
    return {cut: w / total for cut, w in kept.items()}


def snap(
    points: OperatingPoints,
    values: Array,
    mixture: Mixture,
    *,
    least_tpr: float = 0.0,
    within_selection: bool = False,
) -> int | None:
    """Position of the single cut that stands in for a mixture.

    Parameters
    ----------
    points : OperatingPoints
        All cuts of the group.
    values : ndarray of shape (n_cuts,)
        The constrained rate at each of them.
    mixture : dict of int to float
        Weights of positions among all cuts.
    least_tpr : float, default=0
        Floor under the TPR.
    within_selection : bool, default=False
        Whether the cut may select no more than the mixture does: a budget is shared.

    Returns
    -------
    int or None
        Among the cuts within the mixture that break no floor or budget, the nearest in
        the constrained rate; of equally near ones the one that accepts fewer. None if
        all of them break one.

    Notes
    -----
    Without the first condition a cut with the wanted FPR may be one that accepts half
    the group more, because a sample's FPR is not monotone.
    """
    cuts = list(mixture)
    weights = np.array([mixture[cut] for cut in cuts])
    inside = np.arange(min(cuts), max(cuts) + 1)
    slack = 1e-9  # what the LP may have left of a floor or a budget
    allowed = points.tpr[inside] >= least_tpr - slack
    if within_selection:
        most = weights @ points.selection_rate[cuts]
        allowed &= points.selection_rate[inside] <= most + slack
    if not allowed.any():
        return None
    inside = inside[allowed]
    distance = abs(values[inside] - weights @ values[cuts])
    return int(inside[np.argmin(distance)])


def flat_top_may_serve(
    hull: OperatingPoints, mixture: Mixture, selection: float, tpr: float
) -> bool:
    """Whether cuts in the middle of a hull's flat top could leave less to chance.

    Notes
    -----
    A lottery that ends in the flat top starts at or before the last cut whose chord to
    the end of the hull passes at or below the target, and ends no sooner than the flat
    top begins. If even that is no less than the mixture at hand, none is.
    """
    if len(mixture) == 1 or len(hull) < 2 or hull.labeled[-2] < hull.labeled[-1]:
        return False
    q, t = hull.selection_rate, hull.tpr
    mass = lottery_mass(mixture, q)
    if q[-2] - selection >= mass:  # no start lies beyond the target
        return False
    first = np.arange(min(int(np.searchsorted(q, selection, side="right")), len(q) - 1))
    chord = t[first] + (1 - t[first]) * (selection - q[first]) / (1 - q[first])
    below = np.flatnonzero(chord <= tpr + _NO_WEIGHT)
    if not len(below):
        return False
    least = max(float(q[-2]), selection) - float(q[below[-1]])
    return least < mass


def lottery_mass(mixture: Mixture, selection: Array) -> float:
    """Share of the group's rows that a mixture of cuts leaves to chance."""
    cuts = list(mixture)
    return float(selection[max(cuts)] - selection[min(cuts)])


def _barycentric(
    x: float, y: float, q: Array, t: Array, corners: tuple[int, int, int]
) -> Mixture:
    """Weights of three cuts that give a point of the plane."""
    xi, xj, xk = (q.item(c) - x for c in corners)
    yi, yj, yk = (t.item(c) - y for c in corners)
    areas = xj * yk - xk * yj, xk * yi - xi * yk, xi * yj - xj * yi
    whole = sum(areas)
    return {c: area / whole for c, area in zip(corners, areas, strict=True)}


def _first_chord_below(
    x: float, height: float, q: Array, t: Array, first: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the first end, for each start, whose chord passes x at or below height."""
    above = int(np.searchsorted(q, x, side="left"))
    if len(first) * (len(q) - above) <= _FEW_CHORDS:  # look at all at once
        i = first[:, None]
        end = slice(max(above, 1), None)
        later = q[end] > q[i]
        chord = t[i] + (t[end] - t[i]) * (x - q[i]) / np.where(later, q[end] - q[i], 1)
        below = (chord <= height) & later
        found = below.argmax(axis=1) + end.start
        return np.where(below.any(axis=1), found, len(q))
    low: NDArray[np.intp] = np.maximum(above, first + 1)
    high = np.full(len(first), len(q))
    while (low < high).any():
        middle = (low + high) // 2
        end = np.minimum(middle, len(q) - 1)
        chord = t[first] + (t[end] - t[first]) * (x - q[first]) / (q[end] - q[first])
        below = (chord <= height) & (middle < len(q))
        searching = low < high
        high = np.where(searching & below, middle, high)
        low = np.where(searching & ~below, middle + 1, low)
    return low
