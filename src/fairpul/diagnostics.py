"""What the data say about the score, the labels and a prior, before any rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import expit, logit, ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpul.estimate import Estimate
from fairpul.intervals import critical_value
from fairpul.tally import Tally

# Scores of 0 and 1 have no log odds.
_LEAST_SCORE = 1e-6
_FEWEST_PER_SOURCE = 5


def recognizes_positives(tallies: Sequence[Tally], *, level: float = 0.95) -> bool:
    r"""Whether labeled rows are accepted more often than the others, beyond chance.

    Accepting everybody, nobody, nearly so, or by a coin has no gap and no use; such a
    decision is found by this test.

    Notes
    -----
    One-sided z-test of :math:`\sum_s m_s (T_s - U_s)`, U the acceptance of the
    unlabeled rows, within groups: rates that differ between groups only do not count.
    Rows that belong together count for what they add.

    Examples
    --------
    >>> levels = np.array([0.0, 1.0])
    >>> useful = Tally(levels, np.array([700, 300]), np.array([40, 120]), 1000, 160)
    >>> everybody = Tally(levels, np.array([0, 1000]), np.array([0, 160]), 1000, 160)
    >>> recognizes_positives([useful]), recognizes_positives([everybody])
    (True, False)
    """
    difference = variance = 0.0
    for group in tallies:
        unlabeled = group.n - group.m
        if group.m == 0 or unlabeled == 0:
            continue
        rest = float((group.weight - group.labeled) @ group.acceptance) / unlabeled
        difference += group.m * (group.tpr - rest)
        independent = group.m**2 * (
            group.tpr * (1 - group.tpr) / group.m_effective
            + rest * (1 - rest) / group.u_effective
        )
        odds = group.m / unlabeled
        influence = [odds * rest, -group.tpr - odds * rest, -odds, 1 + odds]
        spread = group.spread(np.array(influence), group.n_effective)
        variance += max(independent * spread.effect, spread.se**2)
    return bool(difference > ndtri(level) * math.sqrt(variance))


class Calibration(NamedTuple):
    """Logistic recalibration of a score; slope 1 and intercept 0 if calibrated."""

    slope: Estimate
    intercept: Estimate


def calibration(
    score: ArrayLike,
    labeled: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    count: ArrayLike | None = None,
    cluster: NDArray[np.intp] | None = None,
    level: float = 0.95,
) -> Calibration:
    r"""Slope and intercept of the labels on the log odds of the score.

    Parameters
    ----------
    score : array-like of shape (n,)
        Estimates of P(labeled), in [0, 1].
    labeled : array-like of shape (n,)
        Whether each row is labeled.
    sample_weight : array-like of shape (n,), optional
        Sampling weights.
    count : array-like of shape (n,), optional
        How many rows each entry stands for.
    cluster : ndarray of shape (n,), optional
        Codes of entries that belong together.
    level : float
        Confidence level.

    Returns
    -------
    Calibration
        nan with the reason where the score is constant or tells the labels exactly.

    Notes
    -----
    :math:`\mathrm{logit}\,P(L = 1) = a + b\,\mathrm{logit}\,f`, robust standard errors.

    Examples
    --------
    >>> score = np.repeat([0.2, 0.5, 0.8], 100)
    >>> labeled = np.concatenate([np.arange(100) < k for k in (20, 50, 80)])
    >>> found = calibration(score, labeled)
    >>> round(found.slope.estimate, 3), abs(round(found.intercept.estimate, 3))
    (1.0, 0.0)
    """
    f = np.clip(np.asarray(score, dtype=np.float64), _LEAST_SCORE, 1 - _LEAST_SCORE)
    y = np.asarray(labeled, dtype=np.float64)
    one = np.ones(len(y))
    w = one if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    rows = one if count is None else np.asarray(count, dtype=np.float64)
    design = np.column_stack([np.ones(len(f)), logit(f)])
    fitted = _logistic_fit(design, y, w, rows, cluster)
    if fitted is None:
        reason = "the score is constant, or tells labeled rows apart without an error"
        missing = Estimate.undefined("c-free", reason)
        return Calibration(missing, missing)
    value, covariance = fitted
    df = math.inf if cluster is None else len(np.unique(cluster)) - 1
    half = critical_value(level, df) * np.sqrt(np.diag(covariance))
    intercept, slope = (
        Estimate(float(v), float(v - h), float(v + h), "c-free")
        for v, h in zip(value, half, strict=True)
    )
    return Calibration(slope, intercept)


def _logistic_fit(
    design: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    rows: NDArray[np.float64],
    cluster: NDArray[np.intp] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Newton's method from the calibrated value on, and the sandwich covariance."""
    value = np.array([0.0, 1.0])
    for _ in range(50):
        p = expit(design @ value)
        information = (design * (rows * w * p * (1 - p))[:, None]).T @ design
        if np.linalg.cond(information) > 1e12:
            return None
        step = np.linalg.solve(information, design.T @ (rows * w * (y - p)))
        # A long step overshoots where most rows are far from the middle.
        value = value + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            influence = design * (w * np.sqrt(rows) * (y - p))[:, None]
            summed, inverse = (
                _by_cluster(influence, cluster),
                np.linalg.inv(information),
            )
            return value, inverse @ (summed.T @ summed) @ inverse
    return None


def _by_cluster(
    influence: NDArray[np.float64], cluster: NDArray[np.intp] | None
) -> NDArray[np.float64]:
    """Sum the influences, of shape (n, n_values), of rows that belong together."""
    if cluster is None:
        return influence
    present, number = np.unique(cluster, return_inverse=True)
    columns = [np.bincount(number, column, len(present)) for column in influence.T]
    return np.column_stack(columns)


def source_differences(
    values: NDArray[np.float64],
    source: NDArray[Any],
    sample_weight: NDArray[np.float64] | None = None,
    cluster: NDArray[np.intp] | None = None,
) -> tuple[float, int]:
    r"""Whether labeled rows from several sources have unlike features.

    Parameters
    ----------
    values : ndarray of shape (m, n_columns)
        Features of the labeled rows of one group; nan is left out.
    source : ndarray of shape (m,)
        Where each label comes from, such as a site. Sources with fewer than 5 rows
        are left out.
    sample_weight : ndarray of shape (m,), optional
        Sampling weights.
    cluster : ndarray of shape (m,), optional
        Codes of rows that belong together.

    Returns
    -------
    p_value : float
        Of the most unlike column, times the number of columns (Bonferroni); nan
        where fewer than two sources remain or nothing varies.
    column : int
        Number of that column.

    Notes
    -----
    Kruskal-Wallis tests; with weights or clusters, Wald tests of the mean ranks with
    robust errors. If labels are given completely at random within the group,
    from each source, labeled rows of all sources look alike; a small p-value refutes
    this, a large one proves nothing.

    Examples
    --------
    >>> values = np.concatenate([np.arange(50.0), np.arange(50.0) + 100])[:, None]
    >>> p_value, column = source_differences(values, np.repeat(["a", "b"], 50))
    >>> p_value < 1e-6, column
    (True, 0)
    """
    _, number, counts = np.unique(source, return_inverse=True, return_counts=True)
    kept = (counts >= _FEWEST_PER_SOURCE)[number]
    p_values = np.full(values.shape[1], np.nan)
    for j, column in enumerate(values.T):
        rows = np.flatnonzero(kept & ~np.isnan(column))
        _, code = np.unique(number[rows], return_inverse=True)
        if len(rows) == 0 or code.max() == 0 or np.ptp(column[rows]) == 0:
            continue
        if sample_weight is None and cluster is None:
            samples = [column[rows[code == s]] for s in range(code.max() + 1)]
            p_values[j] = stats.kruskal(*samples).pvalue
        else:
            weight = None if sample_weight is None else sample_weight[rows]
            together = None if cluster is None else cluster[rows]
            p_values[j] = _rank_test(column[rows], code, weight, together)
    if np.isnan(p_values).all():
        return math.nan, 0
    worst = int(np.nanargmin(p_values))
    return min(1.0, float(p_values[worst]) * len(p_values)), worst


def _rank_test(
    column: NDArray[np.float64],
    code: NDArray[np.intp],
    sample_weight: NDArray[np.float64] | None,
    cluster: NDArray[np.intp] | None,
) -> float:
    """P-value that samples have one mean rank, by an F test with robust errors."""
    rank = stats.rankdata(column)
    w = np.ones(len(rank)) if sample_weight is None else sample_weight
    member = code[:, None] == np.arange(code.max() + 1)
    share = w[:, None] * member / (w @ member)
    mean = rank @ share
    summed = _by_cluster(share * (rank[:, None] - mean), cluster)
    contrast = mean[1:] - mean[0]
    errors = summed[:, 1:] - summed[:, :1]
    df = len(summed) - len(mean)
    covariance = errors.T @ errors
    if df < 1 or np.linalg.cond(covariance) > 1e12:
        return math.nan
    statistic = float(contrast @ np.linalg.solve(covariance, contrast)) / len(contrast)
    return float(stats.f.sf(statistic, len(contrast), df))


def label_frequency_ratio(
    X: NDArray[np.float64],
    labeled: NDArray[np.bool_],
    member: NDArray[np.bool_],
    sample_weight: NDArray[np.float64] | None = None,
    cluster: NDArray[np.intp] | None = None,
    *,
    level: float = 0.95,
) -> Estimate:
    r"""Label frequency of a group over that of the others, without any anchor.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Features that tell all there is to know about the class.
    labeled, member : ndarray of shape (n_rows,)
        Whether each row is labeled, and whether it is in the group.
    sample_weight : ndarray of shape (n_rows,), optional
        Sampling weights.
    cluster : ndarray of shape (n_rows,), optional
        Codes of rows that belong together.
    level : float
        Confidence level.

    Notes
    -----
    Right only if the group adds nothing to the features:
    :math:`P(Y | X, S) = P(Y | X)`. Then
    :math:`r = \overline{L 1_{S=1} e_0(X)} / \overline{L 1_{S=0} e_1(X)}` with
    :math:`e_s = P(S = s | X)`, here by cross-fitted logistic regression. The interval
    is by the delta method on log r, conditional on e.

    References
    ----------
    D. Shanmugam, E. Pierson. Quantifying Inequality in Underreported Medical
    Conditions. arXiv:2110.04133.
    """
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    kind = StratifiedKFold if cluster is None else StratifiedGroupKFold
    inside = cross_val_predict(
        model,
        X,
        member.astype(int),
        groups=cluster,
        cv=kind(5, shuffle=True, random_state=0),
        method="predict_proba",
    )[:, 1]
    w = np.ones(len(labeled)) if sample_weight is None else sample_weight
    above = w * labeled * member * (1 - inside)
    below = w * labeled * ~member * inside
    total_above, total_below = float(above.sum()), float(below.sum())
    tier = "label frequency"
    if min(total_above, total_below) == 0:
        return Estimate.undefined(tier, "no labeled row on one side")
    ratio = total_above / total_below
    error = _by_cluster((above / total_above - below / total_below)[:, None], cluster)
    df = math.inf if cluster is None else len(error) - 1
    half = critical_value(level, df) * float(np.linalg.norm(error))
    factor = math.exp(half)
    reason = "if the features tell the class as well in every group (PURPLE)"
    return Estimate(ratio, ratio / factor, ratio * factor, tier, reason)
