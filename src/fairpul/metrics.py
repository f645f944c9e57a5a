"""Rates of groups and their gaps, from decisions and labels, true or PU.

A metric of true labels is the PU metric at label frequency 1, where every positive is
labeled; one implementation serves both.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from fairpul import rates
from fairpul._groups import encode_groups
from fairpul._validation import check_decision, check_labels, check_weight
from fairpul.label_frequency import LabelFrequency
from fairpul.measures import PRIOR_METHOD
from fairpul.rates import Rates
from fairpul.scorers import (
    best_within,
    pu_cost_scorer,
    pu_tpr_gap_scorer,
    worst_group_recall_scorer,
)
from fairpul.tally import Tally, tally

__all__ = [
    "average_odds_difference",
    "best_within",
    "equal_opportunity_difference",
    "fpr_gap",
    "group_rates",
    "pu_average_odds_difference",
    "pu_cost_scorer",
    "pu_fpr_gap",
    "pu_group_rates",
    "pu_selection_rate_gap",
    "pu_tpr_gap",
    "pu_tpr_gap_scorer",
    "selection_rate_gap",
    "tpr_gap",
    "worst_group_recall_scorer",
]


def group_rates(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
) -> dict[Hashable, dict[str, float]]:
    """Rates of each group against the true class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class: 1 for positive, 0 or -1 for negative. PU labels belong to
        :func:`pu_group_rates`.
    y_pred : array-like of shape (n_samples,)
        Decisions (1 for accepted, 0 or -1), or acceptance probabilities in [0, 1].
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row; several columns form intersectional groups.
    sample_weight : array-like of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    dict
        Group -> ``{"tpr", "fpr", "selection_rate", "ppv", "prevalence"}`` -> float,
        nan where undefined (a TPR without positives, an FPR without negatives, a PPV
        without accepted rows).

    Examples
    --------
    >>> found = group_rates(
    ...     [1, 1, 0, 1], [1, 0, 0, 1], sensitive_features=["a", "a", "a", "b"]
    ... )
    >>> found["a"]["tpr"], found["a"]["fpr"], found["b"]["fpr"]
    (0.5, 0.0, nan)
    """
    found = _true_rates(y_true, y_pred, sensitive_features, sample_weight)
    return {
        key: {name: float(rate.estimate) for name, rate in of_group.items()}
        for key, of_group in found.items()
    }


def tpr_gap(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Largest difference in true positive rate between two groups.

    Parameters are those of :func:`group_rates`.

    Returns
    -------
    float
        In [0, 1]; nan when some group has no positive.

    Notes
    -----
    :math:`\max_a \mathrm{TPR}_a - \min_a \mathrm{TPR}_a`.

    Examples
    --------
    >>> tpr_gap([1, 1, 1, 1], [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    found = _true_rates(y_true, y_pred, sensitive_features, sample_weight)
    return found.gaps["tpr"].estimate


def fpr_gap(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Largest difference in false positive rate between two groups.

    Parameters are those of :func:`group_rates`.

    Returns
    -------
    float
        In [0, 1]; nan when some group has no negative.

    Examples
    --------
    >>> fpr_gap([0, 0, 0, 1], [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    found = _true_rates(y_true, y_pred, sensitive_features, sample_weight)
    return found.gaps["fpr"].estimate


def selection_rate_gap(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Largest difference in selection rate between two groups.

    Parameters are those of :func:`group_rates`; ``y_true`` does not change the value.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> accepted = [1, 0, 1, 1]
    >>> selection_rate_gap(accepted, accepted, sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    found = _true_rates(y_true, y_pred, sensitive_features, sample_weight)
    return found.gaps["selection_rate"].estimate


def average_odds_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean of the gaps in true and in false positive rate.

    Parameters are those of :func:`group_rates`.

    Returns
    -------
    float
        In [0, 1]; nan when some group has no positive or no negative.

    Notes
    -----
    Both gaps are absolute, so that opposite differences do not cancel.

    Examples
    --------
    >>> average_odds_difference(
    ...     [1, 0, 1, 0], [1, 0, 0, 1], sensitive_features=["a", "a", "b", "b"]
    ... )
    1.0
    """
    return _average_odds(_true_rates(y_true, y_pred, sensitive_features, sample_weight))


def equal_opportunity_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Distance from equal opportunity: the largest difference in TPR.

    The name of :func:`tpr_gap` in the literature.

    Examples
    --------
    >>> equal_opportunity_difference(
    ...     [1, 1, 1, 1], [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"]
    ... )
    0.5
    """
    return tpr_gap(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
    )


def pu_group_rates(
    y_pu: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    label_frequency: Any = None,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Rates:
    r"""Rates of each group from positive and unlabeled rows, with intervals.

    Parameters
    ----------
    y_pu : array-like of shape (n_samples,)
        1 for labeled positives, 0 or -1 for unlabeled rows.
    y_pred : array-like of shape (n_samples,)
        Decisions (1 for accepted, 0 or -1), or acceptance probabilities in [0, 1], of
        a rule that was not tuned on these rows.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row; several columns form intersectional groups.
    label_frequency : float, or dict by group, optional
        P(labeled | positive), as a number or a ``LabelFrequency``.
    class_prior : float, or dict by group, optional
        P(positive), in place of the label frequency; also as (point, low, high). FPR,
        PPV and prevalence are shown over the whole of such an interval, and over that
        from ``low`` to ``high`` of a ``LabelFrequency``.
    sample_weight : array-like of shape (n_samples,), optional
        Sampling weights; a row of weight 2 counts as two rows in every rate, and
        intervals use effective sizes.

    Returns
    -------
    Rates
        FPR, PPV and prevalence are nan, with the reason, without a label frequency or
        a prior, and in a group with fewer than 20 labeled rows.

    Notes
    -----
    Within a group labeled rows stand for the positives, which is right if positives
    are labeled completely at random there. TPR and selection rate need nothing else;
    :math:`F = (Q - \pi T)/(1 - \pi)` needs the prior :math:`\pi = \rho / c`.

    Examples
    --------
    >>> y_pu, y_pred = [1, 1, 0, 0, 1, 0], [1, 0, 1, 0, 1, 0]
    >>> found = pu_group_rates(y_pu, y_pred, sensitive_features=list("aaaabb"))
    >>> found["a"]["tpr"].estimate, found["a"]["selection_rate"].estimate
    (0.5, 0.5)
    >>> found["a"]["fpr"].reason
    'needs a label frequency or a class prior'
    """
    labeled, _ = check_labels(y_pu)
    tallies, keys = _tallies(labeled, y_pred, sensitive_features, sample_weight)
    given = _given(label_frequency, class_prior, tallies, keys)
    return rates.group_rates(tallies, keys, given, tuned=False, ranges=True)


def pu_tpr_gap(
    y_pu: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    label_frequency: Any = None,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Largest difference in TPR between two groups, from PU labels.

    Parameters are those of :func:`pu_group_rates`; no label frequency or prior changes
    the value.

    Returns
    -------
    float
        In [0, 1]; nan when some group has no labeled row.

    Examples
    --------
    >>> y_pu, y_pred = [1, 1, 0, 1, 1, 0], [1, 0, 0, 1, 1, 0]
    >>> pu_tpr_gap(y_pu, y_pred, sensitive_features=list("aaabbb"))
    0.5
    """
    found = pu_group_rates(
        y_pu,
        y_pred,
        sensitive_features=sensitive_features,
        label_frequency=label_frequency,
        class_prior=class_prior,
        sample_weight=sample_weight,
    )
    return found.gaps["tpr"].estimate


def pu_selection_rate_gap(
    y_pu: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    label_frequency: Any = None,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Largest difference in selection rate between two groups.

    Parameters are those of :func:`pu_group_rates`; no label, label frequency or prior
    changes the value.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> y_pu, y_pred = [1, 1, 0, 1, 1, 0], [1, 0, 0, 1, 1, 1]
    >>> round(pu_selection_rate_gap(y_pu, y_pred, sensitive_features=list("aaabbb")), 3)
    0.667
    """
    found = pu_group_rates(
        y_pu,
        y_pred,
        sensitive_features=sensitive_features,
        label_frequency=label_frequency,
        class_prior=class_prior,
        sample_weight=sample_weight,
    )
    return found.gaps["selection_rate"].estimate


def pu_fpr_gap(
    y_pu: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    label_frequency: Any = None,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Largest difference in FPR between two groups, from PU labels.

    Parameters are those of :func:`pu_group_rates`, of which ``label_frequency`` or
    ``class_prior`` is required.

    Returns
    -------
    float
        nan when some group has fewer than 20 labeled rows.

    Examples
    --------
    >>> y_pu = [1] * 20 + [0] * 80 + [1] * 20 + [0] * 80
    >>> y_pred = [1] * 40 + [0] * 60 + [1] * 52 + [0] * 48
    >>> group = ["a"] * 100 + ["b"] * 100
    >>> gap = pu_fpr_gap(y_pu, y_pred, sensitive_features=group, label_frequency=0.5)
    >>> round(gap, 3)
    0.2
    """
    _require_prior(label_frequency, class_prior, "pu_fpr_gap")
    found = pu_group_rates(
        y_pu,
        y_pred,
        sensitive_features=sensitive_features,
        label_frequency=label_frequency,
        class_prior=class_prior,
        sample_weight=sample_weight,
    )
    return found.gaps["fpr"].estimate


def pu_average_odds_difference(
    y_pu: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    label_frequency: Any = None,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean of the gaps in TPR and in FPR, from PU labels.

    Parameters are those of :func:`pu_group_rates`, of which ``label_frequency`` or
    ``class_prior`` is required.

    Returns
    -------
    float
        nan when some group has fewer than 20 labeled rows.

    Examples
    --------
    >>> y_pu = [1] * 20 + [0] * 80 + [1] * 20 + [0] * 80
    >>> y_pred = [1] * 40 + [0] * 60 + [1] * 52 + [0] * 48
    >>> group = ["a"] * 100 + ["b"] * 100
    >>> difference = pu_average_odds_difference(
    ...     y_pu, y_pred, sensitive_features=group, class_prior=0.4
    ... )
    >>> round(difference, 3)
    0.1
    """
    _require_prior(label_frequency, class_prior, "pu_average_odds_difference")
    return _average_odds(
        pu_group_rates(
            y_pu,
            y_pred,
            sensitive_features=sensitive_features,
            label_frequency=label_frequency,
            class_prior=class_prior,
            sample_weight=sample_weight,
        )
    )


def _true_rates(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sensitive_features: Any,
    sample_weight: ArrayLike | None,
) -> Rates:
    tallies, keys = _tallies(
        _positive(y_true), y_pred, sensitive_features, sample_weight
    )
    given = _given(1.0, None, tallies, keys)
    return rates.group_rates(tallies, keys, given, tuned=False)


def _average_odds(found: Rates) -> float:
    return (found.gaps["tpr"].estimate + found.gaps["fpr"].estimate) / 2


def _tallies(
    labeled: NDArray[np.bool_],
    y_pred: ArrayLike,
    sensitive_features: Any,
    sample_weight: ArrayLike | None,
) -> tuple[tuple[Tally, ...], tuple[Hashable, ...]]:
    accepted = check_decision(y_pred, "y_pred")
    check_consistent_length(labeled, accepted)
    if len(labeled) == 0:
        raise ValueError("At least one row is required, got none.")
    codes, keys = encode_groups(sensitive_features, len(labeled))
    weight = check_weight(sample_weight, len(labeled))
    return tally(accepted, labeled, codes, len(keys), weight), keys


def _positive(y_true: ArrayLike) -> NDArray[np.bool_]:
    """Which rows are positive; unlike PU labels, one class alone is fine."""
    column = column_or_1d(y_true)
    values = np.unique(column)
    if not (np.isin(values, (0, 1)).all() or np.isin(values, (-1, 1)).all()):
        raise ValueError(
            "y_true must be 1 or True for positives and 0, -1 or False for negatives, "
            f"got the values {values.tolist()!r}."
        )
    return np.asarray(column == 1)


def _require_prior(label_frequency: Any, class_prior: Any, name: str) -> None:
    if label_frequency is None and class_prior is None:
        raise ValueError(
            f"{name} needs label_frequency or class_prior: PU labels alone do not "
            "identify a false positive rate. pu_tpr_gap needs neither."
        )


def _given(
    label_frequency: Any,
    class_prior: Any,
    tallies: tuple[Tally, ...],
    keys: tuple[Hashable, ...],
) -> dict[Hashable, LabelFrequency] | None:
    """Label frequency of each group as the caller gives it, None if not at all."""
    if label_frequency is not None and class_prior is not None:
        raise ValueError("Give label_frequency or class_prior, not both.")
    if class_prior is not None:
        given = _by_group(class_prior, keys, "class_prior")
        return {
            key: _from_prior(given[key], group, key)
            for key, group in zip(keys, tallies, strict=True)
        }
    if label_frequency is None:
        return None
    given = _by_group(label_frequency, keys, "label_frequency")
    return {key: _known(given[key], key) for key in keys}


def _by_group(
    given: Any, keys: tuple[Hashable, ...], name: str
) -> Mapping[Hashable, Any]:
    if not isinstance(given, Mapping):
        return dict.fromkeys(keys, given)
    missing = [key for key in keys if key not in given]
    if missing:
        raise ValueError(f"{name} has no value for the groups {missing!r}.")
    return given


def _known(value: Any, key: Hashable) -> LabelFrequency:
    if isinstance(value, LabelFrequency):
        return value
    if not (isinstance(value, Real) and 0 < float(value) <= 1):
        raise ValueError(
            f"The label frequency of group {key!r} must be above 0 and at most 1, or a "
            f"LabelFrequency, got {value!r}. fairpul.audit estimates it from scores."
        )
    return LabelFrequency(float(value), float(value), float(value), "known")


def _from_prior(value: Any, group: Tally, key: Hashable) -> LabelFrequency:
    share = group.labeled_share
    parts = value if isinstance(value, tuple | list) else (value,) * 3
    if len(parts) == 3 and all(isinstance(part, Real) for part in parts):
        point, low, high = map(float, parts)
        if share <= point < 1 and 0 < low <= point <= high < 1:
            return LabelFrequency(
                share / point, share / high, min(1.0, share / low), PRIOR_METHOD
            )
    raise ValueError(
        f"The class prior of group {key!r} must be below 1 and at least its labeled "
        f"share {share:.4g}, as a number or as (point, low, high) in order, got "
        f"{value!r}."
    )
