"""Every rate of one group with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairpul.estimate import Estimate
from fairpul.intervals import agresti, critical_value, wilson
from fairpul.label_frequency import LabelFrequency
from fairpul.tally import Spread, Tally

#: The rates of a group.
RATES = ("tpr", "fpr", "selection_rate", "ppv", "prevalence")
#: Fewer labeled rows than this in a group support no claim beyond its TPR.
FEWEST_LABELED = 20
# Methods of a LabelFrequency that stand for a class prior of the user.
PRIOR_METHOD = "class_prior"


@dataclass(frozen=True, eq=False)
class Measured:
    """A rate of one group with what a gap needs of it.

    ``span`` holds the lowest and the highest value that the rate may have apart from
    sampling error, where the label frequency is known only to lie in an interval.
    """

    estimate: Estimate
    center: float = math.nan
    se: float = math.nan
    df: float = math.inf
    influence: NDArray[np.float64] | None = None
    span: tuple[float, float] | None = None


def is_prior(known: LabelFrequency | None) -> bool:
    """Whether a label frequency stands for a class prior of the user."""
    return known is not None and known.method == PRIOR_METHOD


def true_positive_rate(group: Tally, level: float) -> Measured:
    r"""TPR :math:`T`: the acceptance of the labeled rows."""
    if group.m == 0:
        return Measured(Estimate.undefined("c-free", "no labeled row"))
    influence = np.array([0.0, -group.tpr, 0.0, 1.0]) / group.m
    return share(group, group.tpr, group.m_effective, influence, level)


def selection_rate(group: Tally, level: float) -> Measured:
    r"""Measure the selection rate :math:`Q`: the acceptance of all rows."""
    if group.n == 0:
        return Measured(Estimate.undefined("c-free", "no row"))
    influence = np.array([-group.selection_rate, 0.0, 1.0, 0.0]) / group.n
    return share(group, group.selection_rate, group.n_effective, influence, level)


def false_positive_rate(group: Tally, known: LabelFrequency, level: float) -> Measured:
    r"""FPR :math:`(Q - \pi T)/(1 - \pi)`, conditional on the c or prior given."""
    c, selected, fpr = known.estimate, group.selection_rate, group.fpr(known.estimate)
    prior = group.labeled_share / c
    tier, reason = condition(group, known)
    if math.isnan(fpr):
        return Measured(Estimate.undefined(tier, "no negative row"))
    influence = fpr_influence(group, known)
    if c == 1 and tier != "prior":  # every unlabeled row is a negative
        return share(group, fpr, group.u_effective, influence, level, c, tier, reason)
    spread = group.spread(influence, group.n_effective)
    half = critical_value(level, spread.df) * spread.se
    low, high, se = fpr - half, fpr + half, spread.se
    if selected in (0.0, 1.0):
        # All rows are treated alike, which leaves no error to see. F is at most
        # Q / (1 - pi), and at least that of accepting every positive.
        overall = selection_rate(group, level)
        low = (overall.estimate.low - prior) / (1 - prior)
        high = overall.estimate.high / (1 - prior)
        se = overall.se / (1 - prior)
    estimate = bounded(fpr, low, high, tier, reason)
    return Measured(estimate, fpr, se, spread.df, spread.influence)


def fpr_influence(group: Tally, known: LabelFrequency) -> NDArray[np.float64]:
    r"""Influence of a row on the FPR at a given c or prior, by its w, wL, wg and wLg.

    :math:`(1 - L/c)(g - F)/(1 - \pi)` or :math:`[(g - Q) - (L/c)(g - T)]/(1 - \pi)`.
    """
    c = known.estimate
    if is_prior(known):
        rows, labeled = -group.selection_rate, group.tpr / c
    else:
        rows, labeled = -group.fpr(c), group.fpr(c) / c
    scale = (1 - group.labeled_share / c) * group.n
    return np.array([rows, labeled, 1.0, -1 / c]) / scale


def ppv(group: Tally, known: LabelFrequency, level: float) -> Measured:
    r"""PPV :math:`\pi T / Q`: the labeled share of the accepted rows, over c."""
    tier, reason = condition(group, known)
    accepted = group.selection_rate * group.n
    if accepted == 0:
        return Measured(Estimate.undefined(tier, "nobody is accepted"))
    if tier == "prior":
        return Measured(_ppv_at_prior(group, known.estimate, level, reason))
    return labeled_among_accepted(group, level, known.estimate, tier, reason)


def labeled_among_accepted(
    group: Tally, level: float, divisor: float, tier: str, reason: str | None
) -> Measured:
    """Labeled share of the accepted rows, of which there must be some."""
    accepted = group.selection_rate * group.n
    labeled = float(group.labeled @ group.acceptance) / accepted
    influence = np.array([0.0, 0.0, -labeled, 1.0]) / accepted
    size = accepted**2 / float(group.weight @ group.acceptance**2)
    size *= group.n_effective / group.n
    return share(group, labeled, size, influence, level, divisor, tier, reason)


def _ppv_at_prior(group: Tally, c: float, level: float, reason: str) -> Estimate:
    r"""PPV at a given prior, by the delta method on its logarithm.

    The influence on log PPV is :math:`L(g - T)/(\rho T) - (g - Q)/Q`.
    """
    tpr, accepted = true_positive_rate(group, level), group.selection_rate * group.n
    scale = group.labeled_share / c / group.selection_rate
    value = scale * group.tpr
    if value == 0:
        return bounded(0.0, 0.0, scale * tpr.estimate.high, "prior", reason)
    influence = np.array([0.0, -group.tpr, 0.0, 1.0]) / (group.m * group.tpr)
    spread = group.spread(influence, group.m_effective)
    # A sample TPR of 1 shows no error; that of Agresti's share stands in.
    unseen = max(0.0, (tpr.se / group.tpr) ** 2 - spread.se**2)
    influence += np.array([0.0, 0.0, -1.0, 0.0]) / accepted
    influence += np.array([1.0, 0.0, 0.0, 0.0]) / group.n
    spread = group.spread(influence, group.n_effective)
    ratio = math.exp(
        critical_value(level, spread.df) * math.sqrt(spread.se**2 + unseen)
    )
    return bounded(value, value / ratio, value * ratio, "prior", reason)


def prevalence(group: Tally, known: LabelFrequency, level: float) -> Measured:
    r"""Prevalence :math:`\pi = \rho / c`; of a prior, the interval of the user."""
    tier, reason = condition(group, known)
    labeled = group.labeled_share
    if tier == "prior":
        low, high = labeled / known.high, labeled / known.low
        return Measured(bounded(labeled / known.estimate, low, high, tier, reason))
    influence = np.array([-labeled, 1.0, 0.0, 0.0]) / group.n
    return share(
        group,
        labeled,
        group.n_effective,
        influence,
        level,
        known.estimate,
        tier,
        reason,
    )


def share(
    group: Tally,
    value: float,
    size: float,
    influence: NDArray[np.float64],
    level: float,
    divisor: float = 1.0,
    tier: str = "c-free",
    reason: str | None = None,
) -> Measured:
    """Measure a share of rows, over a constant, by Wilson and Agresti."""
    spread = group.spread(influence, size)
    n = size_of_mean(group, value * (1 - value), size, spread)
    low, high = wilson(value * n, n, level, spread.df)
    center, se = agresti(value * n, n, level, spread.df)
    estimate = bounded(value / divisor, low / divisor, high / divisor, tier, reason)
    return Measured(
        estimate, center / divisor, se / divisor, spread.df, spread.influence
    )


def size_of_mean(group: Tally, variance: float, size: float, spread: Spread) -> float:
    """How many independent rows of one weight the mean of a group is worth.

    Kish's number holds where weights do not depend on the decision. Where heavy rows
    are decided otherwise than light ones, the error itself tells the number.

    Parameters
    ----------
    group : Tally
        The group.
    variance : float
        Of a single row.
    size : float
        Kish's effective number of rows.
    spread : Spread
        Of the mean.
    """
    n = size / spread.effect
    if group.squares is None or spread.se == 0:
        return n
    return min(n, variance / spread.se**2)


def condition(group: Tally, known: LabelFrequency) -> tuple[str, str]:
    """Tier of what depends on the label frequency, and the condition it holds under."""
    if is_prior(known):
        prior = group.labeled_share / known.estimate
        return "prior", f"conditional on a class prior of {prior:.3g}"
    return "label frequency", (
        f"conditional on a label frequency of {known.estimate:.3g} ({known.method})"
    )


def bounded(
    value: float, low: float, high: float, tier: str, reason: str | None
) -> Estimate:
    """Estimate whose interval is cut to [0, 1] as far as the value allows."""
    return Estimate(
        value, min(value, max(0.0, low)), max(value, min(1.0, high)), tier, reason
    )
