"""Rates among the unlabeled rows of one group: the people who are not yet diagnosed.

Labels are a matter of chance within a group, so TPR and FPR are those of all rows.
"""

from __future__ import annotations

import math

import numpy as np

from fairpul.estimate import Estimate
from fairpul.intervals import critical_value
from fairpul.label_frequency import LabelFrequency
from fairpul.measures import (
    Measured,
    bounded,
    condition,
    is_prior,
    labeled_among_accepted,
    prevalence,
    share,
)
from fairpul.tally import Tally


def unlabeled_selection_rate(group: Tally, level: float) -> Measured:
    """Measure the acceptance of the unlabeled rows."""
    mass = group.n - group.m
    if mass == 0:
        return Measured(Estimate.undefined("c-free", "no unlabeled row"))
    rate = float((group.weight - group.labeled) @ group.acceptance) / mass
    influence = np.array([-rate, rate, 1.0, -1.0]) / mass
    return share(group, rate, group.u_effective, influence, level)


def unlabeled_prevalence(group: Tally, known: LabelFrequency, level: float) -> Measured:
    r"""Share of positives among the unlabeled rows, :math:`(\pi - \rho)/(1 - \rho)`.

    At a given c it is :math:`\frac{\rho}{1 - \rho} \cdot \frac{1 - c}{c}`.
    """
    tier, reason = condition(group, known)
    rho = group.labeled_share
    if rho == 1:
        return Measured(Estimate.undefined(tier, "no unlabeled row"))
    if is_prior(known):
        # The more of a given prior is labeled, the less of it is left.
        seen = prevalence(group, LabelFrequency(1.0, 1.0, 1.0, "known"), level).estimate
        prior, least, most = (rho / c for c in (known.estimate, known.high, known.low))
        value = _rest(prior, rho)
        low, high = _rest(least, seen.high), _rest(most, seen.low)
        return Measured(bounded(value, low, high, tier, reason))
    at = prevalence(group, LabelFrequency(1.0, 1.0, 1.0, "known"), level).estimate
    value, low, high = (
        _hidden(x, known.estimate) for x in (at.estimate, at.low, at.high)
    )
    return Measured(bounded(value, low, high, tier, reason))


def unlabeled_ppv(group: Tally, known: LabelFrequency, level: float) -> Measured:
    r"""Share of positives among the accepted unlabeled rows.

    With :math:`a` the labeled share of the accepted rows,
    :math:`\frac{a}{1 - a} \cdot \frac{1 - c}{c}` at a given c, and
    :math:`(\pi - \rho) T / (Q - \rho T)` at a given prior.
    """
    tier, reason = condition(group, known)
    if float((group.weight - group.labeled) @ group.acceptance) <= 0:
        return Measured(Estimate.undefined(tier, "no unlabeled row is accepted"))
    at = labeled_among_accepted(group, level, 1.0, tier, reason).estimate
    value, low, high = (
        _hidden(x, known.estimate) for x in (at.estimate, at.low, at.high)
    )
    if not is_prior(known) or group.tpr == 0 or known.estimate == 1:
        return Measured(bounded(value, low, high, tier, reason))
    ratio = _ratio_at_prior(group, known.estimate, level)
    return Measured(bounded(value, value / ratio, value * ratio, tier, reason))


def _ratio_at_prior(group: Tally, c: float, level: float) -> float:
    """Factor of the interval of the PPV at a given prior, by its logarithm."""
    rho, tpr, selected = group.labeled_share, group.tpr, group.selection_rate
    rest = selected - rho * tpr
    by_rho = tpr / rest - 1 / (rho / c - rho)
    by_tpr = 1 / (rho * tpr) + 1 / rest
    rows = -rho * by_rho + selected / rest
    labeled = by_rho - tpr * by_tpr
    influence = np.array([rows, labeled, -1 / rest, by_tpr]) / group.n
    spread = group.spread(influence, group.n_effective)
    return math.exp(critical_value(level, spread.df) * spread.se)


def _hidden(labeled: float, c: float) -> float:
    """Positives per unlabeled row where a share of all rows is labeled."""
    return labeled / (1 - labeled) * (1 - c) / c if labeled < 1 else math.inf


def _rest(prior: float, labeled: float) -> float:
    return (prior - labeled) / (1 - labeled)
