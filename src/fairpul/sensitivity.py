"""How wrong an assumption must be before a conclusion about a gap flips.

Functions of numbers only; ``audit`` puts them together.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpul.intervals import pairs_critical_value


def odds_ratio(
    higher: float,
    lower: float,
    m_higher: float,
    m_lower: float,
    level: float = 0.95,
    *,
    n_groups: int = 2,
    df: float = math.inf,
) -> tuple[float, float, float]:
    r"""Ratio of the odds of two TPRs, and its interval.

    Parameters
    ----------
    higher, lower : float
        TPRs; that of the group that comes out better first.
    m_higher, m_lower : float
        Effective numbers of labeled rows that they are shares of.
    level : float
        Confidence level.
    n_groups : int
        Number of groups that the two were picked from: the interval holds for all of
        their pairs at once, hence also for the extremes.
    df : float
        Degrees of freedom of t in place of the normal quantile, for clusters.

    Returns
    -------
    estimate, low, high : float

    Notes
    -----
    The standard error of the log odds ratio is
    :math:`\sqrt{\sum 1/(a + .5) + 1/(m - a + .5)}`, a the labeled rows accepted. The
    halves enter the estimate only where it would be 0 or infinite.

    If :math:`r_s` is how much more likely an accepted positive is to be labeled than a
    rejected one, the odds of the TPR among labeled rows are exactly :math:`r_s` times
    those of the true TPR. Equal true TPRs would thus need :math:`r_1 / r_0` to be the
    odds ratio: this is :math:`\Gamma^*`, the labeling bias at which the finding flips.

    Examples
    --------
    >>> [round(value, 2) for value in odds_ratio(0.75, 0.5, 160, 160)]
    [3.0, 1.87, 4.81]
    """
    a, b = higher * m_higher, lower * m_lower
    cells = np.array([a, m_higher - a, b, m_lower - b])
    log_error = math.sqrt((1 / (cells + 0.5)).sum())
    if cells.min() <= 0:
        cells = cells + 0.5
    estimate = cells[0] * cells[3] / (cells[1] * cells[2])
    factor = math.exp(pairs_critical_value(n_groups, level, df) * log_error)
    return float(estimate), float(estimate / factor), float(estimate * factor)


def shifted_tpr(tpr: ArrayLike, ratio: float) -> NDArray[np.float64]:
    r"""TPR that is behind an observed one, if labels favor the accepted by a ratio.

    Notes
    -----
    :math:`\mathrm{expit}(\mathrm{logit}\,T - \log r)`, with
    :math:`r = P(L=1 \mid Y=1, accepted) / P(L=1 \mid Y=1, rejected)`.

    Examples
    --------
    >>> shifted_tpr([0.5, 0.75], 3.0).tolist()
    [0.25, 0.5]
    """
    observed = np.asarray(tpr, dtype=np.float64)
    return np.asarray(observed / (observed + ratio * (1 - observed)))


def false_label_break_even(
    higher: float, lower: float, fpr: float | None = None
) -> float:
    r"""Share of false labels in one group that explains all of a TPR gap.

    Parameters
    ----------
    higher, lower : float
        Observed TPRs of two groups.
    fpr : float, optional
        FPR of the lower group, if its false labels are accepted as often as negatives
        are. Without it, the smallest share in either group that could do it, however
        often false labels are accepted.

    Returns
    -------
    float
        0 without a gap; nan where the FPR is not below the TPR of its group.

    Notes
    -----
    Of the labeled rows of a group a share :math:`\phi` are negatives, accepted at a
    rate a: :math:`T = (1 - \phi) \mathrm{TPR} + \phi a`. Hence
    :math:`\phi^* = (T_0 - T_1)/(T_0 - F_1)`, and without an FPR
    :math:`\min[(T_0 - T_1)/T_0, (T_0 - T_1)/(1 - T_1)]`.

    Examples
    --------
    >>> round(false_label_break_even(0.8, 0.6, 0.1), 3)
    0.286
    >>> round(false_label_break_even(0.8, 0.6), 3)
    0.25
    """
    gap = higher - lower
    if gap <= 0:
        return 0.0
    if fpr is None:
        return min(gap / higher, gap / (1 - lower))
    return gap / (higher - fpr) if fpr < lower else math.nan


def fpr_flip(
    tpr: float, selection_rate: float, labeled_share: float, other_fpr: float
) -> float:
    r"""Label frequency of a group at which its FPR equals that of another.

    Returns
    -------
    float
        nan where no class prior in (0, 1) makes them equal.

    Notes
    -----
    :math:`\pi^* = (Q - F_0)/(T - F_0)` and :math:`c^* = \rho / \pi^*`.

    Examples
    --------
    >>> round(fpr_flip(0.8, 0.3, 0.1, 0.175), 3)
    0.5
    """
    if tpr == other_fpr:
        return math.nan
    prior = (selection_rate - other_fpr) / (tpr - other_fpr)
    return labeled_share / prior if 0 < prior < 1 else math.nan
