"""How many labeled positives to accept so that a recall floor holds with confidence."""

from __future__ import annotations

import math

from scipy.special import betainc


def assured_tpr(recall: float, m_effective: float, risk: float) -> float:
    r"""TPR that a rule needs on m labeled positives to assure a recall floor.

    Parameters
    ----------
    recall : float
        Floor under the true TPR.
    m_effective : float
        Effective number of labeled positives of the group.
    risk : float
        Largest probability that the true TPR is below the floor after all.

    Returns
    -------
    float
        :math:`j / m` for the smallest j for which accepting down to the j-th best
        labeled positive holds; nan if even the last is not enough, so that only
        accepting everybody is sure.

    Notes
    -----
    The true TPR at the j-th best of m independent labeled positives follows
    Beta(j, m + 1 - j). The smallest j with
    :math:`P(\mathrm{Beta} < r) \le risk` is found by bisection, because that
    probability falls as j grows.

    Examples
    --------
    >>> assured_tpr(0.8, 14, 0.05), assured_tpr(0.8, 13, 0.05)
    (1.0, nan)
    """
    if recall == 0:
        return 0.0  # every cut holds a floor of 0
    m = math.floor(m_effective)
    low, high = 1, m + 1
    while low < high:
        j = (low + high) // 2
        if betainc(j, m_effective + 1 - j, recall) <= risk:
            high = j
        else:
            low = j + 1
    return min(1.0, low / m_effective) if low <= m else math.nan
