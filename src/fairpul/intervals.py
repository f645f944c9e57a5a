"""Interval formulas: of a share, of the range of several rates, of their differences.

Functions of numbers only. What a rate is, and how uncertain, is in ``rates``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit
from scipy.stats import studentized_range

# The density of the smallest error is summed between these limits, in units of the
# widest error, in steps of a tenth of the narrowest error, for which the trapezoid rule
# is exact to float precision. Errors narrower than the bound are widened to it, which
# adds at most a few thousandths of the widest to the quantile.
_LIMIT = 8.5
_NARROWEST = 0.01


def critical_value(level: float = 0.95, df: float = math.inf) -> float:
    """Half-width, in standard errors, of a two-sided normal or t interval.

    Examples
    --------
    >>> round(critical_value(0.95), 3), round(critical_value(0.95, df=14), 3)
    (1.96, 2.145)
    """
    upper = (1 + level) / 2
    return float(ndtri(upper) if math.isinf(df) else stdtrit(df, upper))


def wilson(
    successes: float, n: float, level: float = 0.95, df: float = math.inf
) -> tuple[float, float]:
    r"""Wilson score interval of a share.

    Parameters
    ----------
    successes, n : float
        Effective numbers: with weights or clusters they need not be whole.
    level : float
        Confidence level.
    df : float
        Degrees of freedom of t in place of the normal quantile, for clusters.

    Returns
    -------
    low, high : float
        nan when n is 0.

    Notes
    -----
    :math:`(p + z^2/2n \pm z \sqrt{p(1-p)/n + z^2/4n^2}) / (1 + z^2/n)`.

    Examples
    --------
    >>> low, high = wilson(0, 10)
    >>> low, round(high, 3)
    (0.0, 0.278)
    """
    if n == 0:
        return math.nan, math.nan
    z2 = critical_value(level, df) ** 2
    share = successes / n
    center = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    # Rounding must not leave the share of 0 or 1 outside its own interval.
    return max(0.0, min(center - half, share)), min(1.0, max(center + half, share))


def agresti(
    successes: float, n: float, level: float = 0.95, df: float = math.inf
) -> tuple[float, float]:
    r"""Agresti-Coull center and standard error of a share, fit for differences.

    Notes
    -----
    With :math:`z^2` rows added, half of them successes:
    :math:`p = (x + z^2/2)/(n + z^2)` and :math:`\sqrt{p(1-p)/(n + z^2)}`, which does
    not vanish at a share of 0 or 1. nan when n is 0.

    Examples
    --------
    >>> center, se = agresti(10, 10)
    >>> round(center, 3), round(se, 3)
    (0.861, 0.093)
    """
    if n == 0:
        return math.nan, math.nan
    z2 = critical_value(level, df) ** 2
    center = (successes + z2 / 2) / (n + z2)
    return center, math.sqrt(center * (1 - center) / (n + z2))


def range_quantile(se: ArrayLike, level: float = 0.95) -> float:
    r"""Quantile of the range (largest minus smallest) of independent normal errors.

    Parameters
    ----------
    se : array-like of shape (k,)
        Standard deviations of the errors, whose means are 0.
    level : float
        Order of the quantile.

    Returns
    -------
    float
        0 for fewer than two errors.

    Notes
    -----
    :math:`P(R \le q) = \int \sum_i \frac{1}{s_i} \phi(\frac{x}{s_i})
    \prod_{j \ne i} [\Phi(\frac{x+q}{s_j}) - \Phi(\frac{x}{s_j})] dx`, x the smallest
    error. Two errors: the normal quantile times their hypotenuse.

    Examples
    --------
    >>> round(range_quantile([3.0, 4.0]), 3)
    9.8
    >>> round(range_quantile([1.0, 1.0, 1.0]), 3)
    3.314
    """
    scale = np.asarray(se, dtype=np.float64)
    widest = float(scale.max(initial=0.0))
    if len(scale) < 2 or widest == 0:
        return 0.0
    if len(scale) == 2:
        return critical_value(level) * math.hypot(*scale)
    units = np.maximum(scale / widest, _NARROWEST)
    steps = math.ceil(2 * _LIMIT / (0.1 * units.min()))
    smallest, step = np.linspace(-_LIMIT, _LIMIT, steps + 1, retstep=True)

    def excess(q: float) -> float:
        return _range_density(q, units, smallest) * step - level

    return widest * float(brentq(excess, 0, 2 * _LIMIT, xtol=1e-10))


def _range_density(
    q: float, se: NDArray[np.float64], smallest: NDArray[np.float64]
) -> float:
    """Sum, over values of the smallest error, of its density while the range is < q."""
    x = smallest / se[:, None]
    density = np.exp(-(x**2) / 2) / (se[:, None] * math.sqrt(2 * math.pi))
    between = ndtr(x + q / se[:, None]) - ndtr(x)
    # Product over all other errors without a division, which fails where one is 0.
    ones = np.ones((1, x.shape[1]))
    before = np.cumprod(np.concatenate([ones, between[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([ones, between[:0:-1]]), axis=0)[::-1]
    return float((density * before * after).sum())


def difference_se(
    se: NDArray[np.float64], correlation: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the standard errors of all pairwise differences, of shape (k, k)."""
    variance = se[:, None] ** 2 + se**2
    if correlation is not None:
        variance = variance - 2 * correlation * np.outer(se, se)
    np.fill_diagonal(variance, 0.0)
    return np.sqrt(np.maximum(variance, 0.0))


def pairs_critical_value(k: int, level: float = 0.95, df: float = math.inf) -> float:
    r"""Half-width, in standard errors, that holds for all pairs of k rates at once.

    Notes
    -----
    :math:`q_{k, df} / \sqrt 2`, q the quantile of the studentized range.

    Examples
    --------
    >>> round(pairs_critical_value(2), 3), round(pairs_critical_value(6), 3)
    (1.96, 2.85)
    """
    if k <= 2:  # the same number as below, without an integral
        return critical_value(level, df)
    if math.isinf(df):
        return range_quantile(np.ones(k), level) / math.sqrt(2)
    return float(studentized_range.ppf(level, k, df)) / math.sqrt(2)


def tukey_kramer(
    se: ArrayLike,
    level: float = 0.95,
    df: float = math.inf,
    correlation: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    r"""Half-widths that hold for all pairwise differences at once, of shape (k, k).

    Notes
    -----
    :math:`\frac{1}{\sqrt 2} q_{k, df} \sqrt{s_i^2 + s_j^2}`, q the quantile of the
    studentized range; covariances of correlated rates enter the root.

    Examples
    --------
    >>> float(tukey_kramer([0.3, 0.4])[0, 1].round(2))
    0.98
    """
    scale = np.asarray(se, dtype=np.float64)
    critical = pairs_critical_value(len(scale), level, df)
    return critical * difference_se(scale, correlation)


def gap_interval(
    center: ArrayLike,
    se: ArrayLike,
    *,
    tuned: bool,
    level: float = 0.95,
    df: float = math.inf,
    correlation: NDArray[np.float64] | None = None,
    inflation: float = 1.0,
) -> tuple[float, float]:
    r"""Interval of the largest minus the smallest of k true rates.

    Parameters
    ----------
    center, se : array-like of shape (k,)
        Rates and their standard errors.
    tuned : bool
        Whether the decision rule was tuned on the same rows. Its observed gap is then
        too small by construction, and only the tuned form covers.
    level : float
        Confidence level.
    df : float
        Degrees of freedom of t in place of the normal quantile, for clusters.
    correlation : ndarray of shape (k, k), optional
        Of rates that share clusters; Tukey-Kramer then replaces the range quantile.
    inflation : float
        Factor on the half-width of the tuned form.

    Returns
    -------
    low, high : float
        In [0, 1].

    Notes
    -----
    With G the gap of the centers and :math:`q_p` the p quantile of the range of the
    errors, tuned: :math:`G \pm q_{.95}`. Fixed beforehand: from :math:`G - q_{.975}`
    to :math:`\max_{ij} (|d_{ij}| + 1.96\, s_{ij})`.

    Examples
    --------
    >>> low, high = gap_interval([0.7, 0.7], [0.03, 0.04], tuned=True)
    >>> low, round(high, 3)
    (0.0, 0.098)
    """
    rate = np.asarray(center, dtype=np.float64)
    scale = np.asarray(se, dtype=np.float64)
    if len(rate) < 2:
        return 0.0, 0.0
    distance = np.abs(rate[:, None] - rate)
    gap = float(distance.max())
    side = level if tuned else (1 + level) / 2
    if correlation is None:
        widening = critical_value(level, df) / critical_value(level)
        low = gap - range_quantile(scale, side) * widening * inflation
    else:
        half = tukey_kramer(scale, side, df, correlation)
        low = float((distance - inflation * half).max())
    if tuned and correlation is None:
        high = 2 * gap - low
    elif tuned:
        high = float((distance + inflation * half).max())
    else:
        error = critical_value(level, df) * difference_se(scale, correlation)
        high = float((distance + error).max())
    return min(1.0, max(0.0, low)), max(0.0, min(1.0, high))


def gap_interval_of_ranges(
    span_low: ArrayLike,
    span_high: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    tuned: bool,
    level: float = 0.95,
) -> tuple[float, float]:
    r"""Interval of the largest minus the smallest of k rates that have ranges.

    Parameters
    ----------
    span_low, span_high : array-like of shape (k,)
        Lowest and highest value of each rate apart from sampling error.
    low, high : array-like of shape (k,)
        The same with sampling error.
    tuned : bool
        Whether the decision rule was tuned on the same rows.
    level : float
        Confidence level.

    Returns
    -------
    low, high : float
        In [0, 1].

    Notes
    -----
    The errors of two ends add up as the root of their squares; of the greatest lower
    difference and, for a tuned rule, of the widest, they are scaled up as the range of
    k equal errors is.

    Examples
    --------
    >>> spans = [0.1, 0.4], [0.3, 0.6]
    >>> [round(end, 3) for end in gap_interval_of_ranges(*spans, *spans, tuned=False)]
    [0.1, 0.5]
    """
    least, most, low, high = (
        np.asarray(ends, dtype=np.float64) for ends in (span_low, span_high, low, high)
    )
    if len(least) < 2:
        return 0.0, 0.0
    side = level if tuned else (1 + level) / 2
    scale = range_quantile(np.ones(len(least)), side)
    scale /= math.sqrt(2) * critical_value(level)
    below, above = least - low, high - most
    apart = least[:, None] - most - scale * np.hypot(below[:, None], above)
    widest = most[:, None] - least
    widest += (scale if tuned else 1.0) * np.hypot(above[:, None], below)
    np.fill_diagonal(widest, 0.0)
    return max(0.0, float(apart.max())), min(1.0, float(widest.max()))


class Margins(NamedTuple):
    """Largest errors of a group's rates, over all cuts at once."""

    tpr: float
    selection_rate: float
    fpr: float


def dkw_bounds(
    n_labeled: float,
    n_rows: float,
    class_prior: float,
    *,
    n_groups: int = 1,
    delta: float = 0.05,
) -> Margins:
    r"""Errors that no cut of any group exceeds with probability 1 - delta.

    Valid in finite samples and about three times as wide as the usual intervals. The
    FPR margin holds at a known class prior.

    Parameters
    ----------
    n_labeled, n_rows : float
        Numbers of labeled and of all rows of the group.
    class_prior : float
        P(positive) in the group, known; the FPR margin is nan at 1.
    n_groups : int
        Number of groups the bounds hold for at once.
    delta : float
        Probability that some bound fails.

    Notes
    -----
    Dvoretzky-Kiefer-Wolfowitz with :math:`\delta' = \delta / 2k`:
    :math:`e_T = \sqrt{\log(2/\delta') / 2m}`,
    :math:`e_Q = \sqrt{\log(2/\delta') / 2n}`,
    :math:`e_F = (e_Q + \pi e_T) / (1 - \pi)`.

    Examples
    --------
    >>> [round(margin, 3) for margin in dkw_bounds(400, 10_000, 0.2)]
    [0.074, 0.015, 0.037]
    """
    log_term = math.log(4 * n_groups / delta)
    tpr = math.sqrt(log_term / (2 * n_labeled)) if n_labeled else math.nan
    selection = math.sqrt(log_term / (2 * n_rows)) if n_rows else math.nan
    negative = 1 - class_prior
    fpr = (selection + class_prior * tpr) / negative if negative > 0 else math.nan
    return Margins(tpr, selection, fpr)
