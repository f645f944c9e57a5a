"""Label frequency of one group from the counts of its top sets of scores.

Every function takes two cumulative arrays over the distinct scores in descending
order, both starting at 0: how many rows a cut accepts, and how many of them are
labeled. Counts of several sites or bins can be added first.

With sampling weights both arrays are sums of weights, and ``n_effective`` is the
effective number of rows, (sum w)^2 / sum w^2. Shares and fractions use the sums, so
that a row of weight 2 equals two rows; what depends on how many rows were seen (the
least 20 or 30 rows, confidence limits) uses sums times ``n_effective / sum w``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

#: Fewest rows of a top set that an estimate may be read from.
LEAST_ROWS = 30
#: Share of the labeled rows that a top set must at least hold in rows, per method.
PEAK_FRACTION = 1 / 6
SHARPENED_PEAK_FRACTION = 1 / 4
TOP_FRACTION = 1 / 4
#: An estimate is at least this multiple of the labeled share, so that the class
#: prior stays below 1.
FLOOR_FACTOR = 1.02

_BOUND_TOPS = (0.01, 0.025, 0.05, 0.10)
_BOUND_LEAST_ROWS = 20
_BOUND_LEVEL = 0.05


def peak_rate(
    accepted: NDArray[Any],
    labeled: NDArray[Any],
    *,
    fraction: float = PEAK_FRACTION,
    n_effective: float | None = None,
) -> float:
    r"""Largest labeled share of any top set of the scores that is large enough.

    Parameters
    ----------
    accepted, labeled : ndarray of shape (n_points,)
        Rows and labeled rows at or above each distinct score, descending, from 0 on.
    fraction : float, default=1/6
        A top set must hold at least this multiple of the number of labeled rows
        (and 30 rows). 1/4 suits an order that was sharpened on the same labels.
    n_effective : float, optional
        Effective number of rows when the counts are sums of weights.

    Returns
    -------
    float
        The labeled share of the whole group when it has fewer than 30 rows.

    Notes
    -----
    :math:`\max_j m_j / n_j` over cuts with
    :math:`n_j \ge \max(30, m / 6)`. It estimates the largest P(labeled | x), which is
    the label frequency if some rows are positive beyond doubt (an anchor).

    Examples
    --------
    >>> import numpy as np
    >>> peak_rate(np.array([0, 20, 40, 60, 100]), np.array([0, 18, 30, 33, 36]))
    0.75
    """
    least = _least_mass(accepted, labeled, fraction, n_effective)
    first = _reach(accepted, least)
    return float(min(1.0, np.max(labeled[first:] / accepted[first:])))


def top_rate(
    accepted: NDArray[Any],
    labeled: NDArray[Any],
    *,
    n_effective: float | None = None,
) -> float:
    r"""Labeled share of the highest scores, as many as a quarter of the labeled rows.

    Parameters
    ----------
    accepted, labeled : ndarray of shape (n_points,)
        Rows and labeled rows at or above each distinct score, descending, from 0 on.
    n_effective : float, optional
        Effective number of rows when the counts are sums of weights.

    Returns
    -------
    float
        Labeled share of the :math:`\max(30, m / 4)` highest scores; ties at the last
        one all belong.

    Examples
    --------
    >>> import numpy as np
    >>> top_rate(np.array([0, 20, 40, 60, 100]), np.array([0, 12, 30, 33, 36]))
    0.75
    """
    least = _least_mass(accepted, labeled, TOP_FRACTION, n_effective)
    last = _reach(accepted, least)
    return float(min(1.0, labeled[last] / accepted[last]))


def best_bin(
    accepted: NDArray[Any],
    labeled: NDArray[Any],
    *,
    n_effective: float | None = None,
) -> float:
    r"""Label frequency through the best bin of the scores.

    Parameters
    ----------
    accepted, labeled : ndarray of shape (n_points,)
        Rows and labeled rows at or above each distinct score, descending, from 0 on.
    n_effective : float, optional
        Effective number of rows when the counts are sums of weights.

    Returns
    -------
    float
        1 when the best bin, or the group, holds no unlabeled row.

    Notes
    -----
    Let :math:`u_j` and :math:`t_j` be the shares of the unlabeled and of the labeled
    rows at or above cut j. The share of positives among unlabeled rows is at most
    :math:`u_j / t_j`, with equality if the bin holds positives only. Of all bins the
    one with the smallest upper confidence bound

    .. math:: \frac{u_j}{t_j} + \frac{1 + \gamma}{t_j} \left(
        \sqrt{\frac{\log(4/\delta)}{2 n_u}} + \sqrt{\frac{\log(4/\delta)}{2 m}}\right)

    is taken (:math:`\delta = .1, \gamma = .01`), and its ratio :math:`\alpha` gives
    :math:`c = m / (m + \alpha n_u)`, which is the labeled share of that bin.

    References
    ----------
    S. Garg, Y. Wu, A. Smola, S. Balakrishnan, Z. Lipton. Mixture Proportion
    Estimation and PU Learning: A Modern Approach. NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> best_bin(np.array([0, 300, 5000]), np.array([0, 150, 200]))
    0.5
    """
    delta, gamma = 0.1, 0.01
    scale = _rows_per_mass(accepted, n_effective)
    n_labeled = labeled[-1] * scale
    n_unlabeled = (accepted[-1] - labeled[-1]) * scale
    if n_unlabeled <= 0:
        return 1.0
    held = np.flatnonzero(labeled > 0)
    t = labeled[held] / labeled[-1]
    u = (accepted[held] - labeled[held]) / (accepted[-1] - labeled[-1])
    spread = np.sqrt(np.log(4 / delta) / 2) * (n_unlabeled**-0.5 + n_labeled**-0.5)
    best = held[np.argmin((u + (1 + gamma) * spread) / t)]
    return float(min(1.0, labeled[best] / accepted[best]))


def label_frequency_bound(
    accepted: NDArray[Any],
    labeled: NDArray[Any],
    *,
    n_effective: float | None = None,
) -> float:
    r"""Lower 95% confidence bound of the label frequency.

    Parameters
    ----------
    accepted, labeled : ndarray of shape (n_points,)
        Rows and labeled rows at or above each distinct score, descending, from 0 on.
    n_effective : float, optional
        Effective number of rows when the counts are sums of weights.

    Returns
    -------
    float
        Valid whether or not there is an anchor, for scores that are out-of-fold or
        held out.

    Notes
    -----
    The labeled share of any set of rows is at most c in expectation. The bound is the
    largest Clopper-Pearson lower limit, at level .05/4 each, of the labeled shares of
    the top 1, 2.5, 5 and 10% (at least 20 rows, ties kept whole).

    Examples
    --------
    All of the first 20 of 100 rows labeled gives the limit (.05/4)^(1/20):

    >>> import numpy as np
    >>> bound = label_frequency_bound(np.array([0, 20, 100]), np.array([0, 20, 25]))
    >>> round(bound, 4), round(0.0125 ** (1 / 20), 4)
    (0.8032, 0.8032)
    """
    scale = _rows_per_mass(accepted, n_effective)
    n_rows = accepted[-1] * scale
    # 1e-9: a product such as .025 * 1000 may come out just below the whole number.
    wanted = np.floor(np.array(_BOUND_TOPS) * n_rows + 1e-9)
    reached = _reach(accepted, np.maximum(_BOUND_LEAST_ROWS, wanted) / scale)
    trials = accepted[reached] * scale
    hits = np.minimum(labeled[reached] * scale, trials)
    level = _BOUND_LEVEL / len(_BOUND_TOPS)
    seen = hits > 0
    limits = np.zeros(len(_BOUND_TOPS))
    limits[seen] = stats.beta.ppf(level, hits[seen], trials[seen] - hits[seen] + 1)
    return float(limits.max())


def surely_not_contradicted(
    accepted: NDArray[Any], labeled: NDArray[Any], label_frequency: float
) -> bool:
    """Whether a hull alone shows the bound to be at most the label frequency.

    Parameters
    ----------
    accepted, labeled : ndarray of shape (n_points,)
        Counts at the cuts of the hull, from 0 on.
    label_frequency : float
        The label frequency that :func:`label_frequency_bound` might contradict.

    Notes
    -----
    No top set holds more labeled rows than the hull does, and the first cut that
    reaches a size is no later than the first cut of the hull that does. False proves
    nothing.

    Examples
    --------
    >>> import numpy as np
    >>> hull = np.array([0, 400, 1000]), np.array([0, 160, 200])
    >>> surely_not_contradicted(*hull, 0.4), surely_not_contradicted(*hull, 0.3)
    (True, False)
    """
    wanted = np.floor(np.array(_BOUND_TOPS) * int(accepted[-1]) + 1e-9)
    wanted = np.minimum(np.maximum(_BOUND_LEAST_ROWS, wanted), accepted[-1])
    share = np.interp(wanted, accepted, labeled) / wanted
    if share[0] <= label_frequency:  # the largest, for the hull is concave
        return True
    trials = accepted[np.searchsorted(accepted, wanted)]
    hits = share * trials
    level = _BOUND_LEVEL / len(_BOUND_TOPS)
    limits = special.betaincinv(hits, trials - hits + 1, level)
    return bool(limits.max() <= label_frequency)


@dataclass(frozen=True)
class PlateauTrend:
    """Labeled shares of the top 2.5% and of the next 7.5%, and the p-value of a rise.

    All three are nan where ties leave one of the two sets empty.
    """

    top: float
    next: float
    p_value: float


def plateau_trend(
    accepted: NDArray[Any],
    labeled: NDArray[Any],
    *,
    n_effective: float | None = None,
) -> PlateauTrend:
    """Whether the labeled share still rises within the top 10% of the scores.

    Parameters
    ----------
    accepted, labeled : ndarray of shape (n_points,)
        Rows and labeled rows at or above each distinct score, descending, from 0 on.
    n_effective : float, optional
        Effective number of rows when the counts are sums of weights.

    Returns
    -------
    PlateauTrend
        With the one-sided p-value of Fisher's exact test. A small one refutes that
        the top 10% are all positive, not the anchor itself; a large one proves
        nothing.

    Examples
    --------
    >>> import numpy as np
    >>> trend = plateau_trend(np.array([0, 25, 100, 1000]), np.array([0, 20, 30, 60]))
    >>> trend.top, round(trend.next, 3), trend.p_value < 1e-6
    (0.8, 0.133, True)
    """
    total = accepted[-1]
    first, second = _reach(accepted, np.array([0.025, 0.1]) * total)
    if second == first:
        return PlateauTrend(np.nan, np.nan, np.nan)
    scale = _rows_per_mass(accepted, n_effective)
    top, both = np.rint(np.array([accepted[first], accepted[second]]) * scale)
    top_hits, hits = np.rint(np.array([labeled[first], labeled[second]]) * scale)
    return PlateauTrend(
        float(labeled[first] / accepted[first]),
        float(
            (labeled[second] - labeled[first]) / (accepted[second] - accepted[first])
        ),
        float(stats.hypergeom.sf(top_hits - 1, both, hits, top)),
    )


def at_least_floor(estimate: float, bound: float, labeled_share: float) -> float:
    r"""Raise an estimate to what the data allow, min(1, max(c, bound, 1.02 rho)).

    Examples
    --------
    >>> at_least_floor(0.4, 0.35, 0.2), at_least_floor(0.2, 0.15, 0.2)
    (0.4, 0.20400000000000001)
    """
    return min(1.0, max(estimate, bound, FLOOR_FACTOR * labeled_share))


def _rows_per_mass(accepted: NDArray[Any], n_effective: float | None) -> float:
    return 1.0 if n_effective is None else float(n_effective / accepted[-1])


def _least_mass(
    accepted: NDArray[Any],
    labeled: NDArray[Any],
    fraction: float,
    n_effective: float | None,
) -> float:
    rows = LEAST_ROWS / _rows_per_mass(accepted, n_effective)
    return float(max(rows, fraction * labeled[-1]))


def _reach(accepted: NDArray[Any], mass: Any) -> Any:
    """Position of the first cut that accepts at least this mass, else the last."""
    # A mass that exceeds a cumulative weight by rounding only still reaches it.
    position = np.searchsorted(accepted, np.asarray(mass) * (1 - 1e-12))
    return np.minimum(position, len(accepted) - 1)
