"""The label frequency per group that a user's arguments ask for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairpul._callers import depth_in_package
from fairpul._groups import typed
from fairpul.label_frequency._base import LabelFrequencyEstimator
from fairpul.label_frequency._counts import (
    label_frequency_bound,
    surely_not_contradicted,
)
from fairpul.label_frequency._readings import contradiction
from fairpul.label_frequency._result import LabelFrequency, LabelFrequencyWarning
from fairpul.label_frequency._row_estimators import ElkanNoto, Joint
from fairpul.label_frequency._top_estimators import BestBin, PeakRate, TopRate
from fairpul.label_frequency._top_sets import group_top_sets

DEFAULT = "peak_rate"

_BY_NAME: dict[str, Callable[[Any], LabelFrequencyEstimator]] = {
    "peak_rate": lambda random_state: PeakRate(random_state=random_state),
    "top_rate": lambda random_state: TopRate(),
    "bbe": lambda random_state: BestBin(),
    "joint": lambda random_state: Joint(),
    "elkan_noto": lambda random_state: ElkanNoto(),
}


def resolve_label_frequency(
    label_frequency: Any,
    class_prior: Any,
    scores: Any,
    *,
    X: Any = None,
    folds: ArrayLike | None = None,
    random_state: Any = None,
) -> dict[Hashable, LabelFrequency]:
    r"""Label frequency of each group, estimated or as the user gives it.

    Parameters
    ----------
    label_frequency : str, float, dict or estimator
        ``"peak_rate"``, ``"top_rate"``, ``"bbe"``, ``"joint"``, ``"elkan_noto"``; one
        number for all groups; a number by group; or an object with ``estimate``.
    class_prior : float, dict or None
        P(positive), for all groups or by group, where a group's value may be
        ``(point, low, high)``. Takes the place of ``label_frequency``, which must then
        be ``"peak_rate"``, its default, and serves the groups that a dict leaves out.
    scores : GroupScores or table of counts
        Out-of-fold or held-out scores.
    X : array-like or data frame, optional
        Features of the rows, for the estimators that use them.
    folds : array-like of shape (n_rows,), optional
        The folds that gave the scores.
    random_state : int, RandomState or None
        Fixes estimators asked for by name.

    Returns
    -------
    dict
        :class:`LabelFrequency` by group, in the order of ``scores.groups``.

    Warns
    -----
    LabelFrequencyWarning
        Once per different text of ``LabelFrequency.warning``.

    Notes
    -----
    A prior :math:`\pi_s` gives :math:`c_s = \rho_s / \pi_s`, :math:`\rho_s` the
    labeled share, and an interval of priors the interval of label frequencies. A
    value without an interval is taken as certain: ``low`` and ``high`` equal it.

    Examples
    --------
    >>> from fairpul.group_scores import GroupScores
    >>> scores = GroupScores([0.9, 0.2, 0.8, 0.4], [1, 0, 1, 0], list("ffmm"))
    >>> found = resolve_label_frequency("peak_rate", {"f": 0.625, "m": 0.8}, scores)
    >>> found["f"].estimate, found["m"].estimate
    (0.8, 0.625)
    """
    found = _resolved(label_frequency, class_prior, scores, X, folds, random_state)
    texts = dict.fromkeys(value.warning for value in found.values())
    for text in texts:
        if text is not None:
            warnings.warn(text, LabelFrequencyWarning, stacklevel=depth_in_package())
    return found


def check_label_frequency(label_frequency: Any, class_prior: Any) -> None:
    """Refuse arguments of :func:`resolve_label_frequency` that no data could fit."""
    if class_prior is not None:
        if not (isinstance(label_frequency, str) and label_frequency == DEFAULT):
            raise ValueError(
                "Give either label_frequency or class_prior, not both; got "
                f"label_frequency={label_frequency!r} and class_prior={class_prior!r}."
            )
        return
    required = (
        f"label_frequency must be one of {sorted(_BY_NAME)!r}, a number, a dict by "
        f"group or an estimator; got {label_frequency!r}."
    )
    if isinstance(label_frequency, str):
        if label_frequency not in _BY_NAME:
            raise ValueError(required)
    elif not (
        _is_number(label_frequency)
        or isinstance(label_frequency, Mapping)
        or (
            hasattr(label_frequency, "estimate")
            and not isinstance(label_frequency, type)
        )
    ):
        raise TypeError(required)


def _resolved(
    label_frequency: Any,
    class_prior: Any,
    scores: Any,
    X: Any,
    folds: ArrayLike | None,
    random_state: Any,
) -> dict[Hashable, LabelFrequency]:
    check_label_frequency(label_frequency, class_prior)
    if class_prior is not None:
        known = _from_prior(class_prior, scores)
        if len(known) == len(scores.groups):
            return known
        others = _resolved(label_frequency, None, scores, X, folds, random_state)
        return others | known
    if isinstance(label_frequency, str):
        label_frequency = _BY_NAME[label_frequency](random_state)
    if _is_number(label_frequency) or isinstance(label_frequency, Mapping):
        return _known(label_frequency, scores)
    if isinstance(label_frequency, LabelFrequencyEstimator):
        return label_frequency.from_scores(scores, X=X, folds=folds)
    return _from_other_estimator(label_frequency, scores, X, folds)


def _known(given: Any, scores: Any) -> dict[Hashable, LabelFrequency]:
    result: dict[Hashable, LabelFrequency] = {}
    values = _by_group(given, scores.groups, "label_frequency")
    for number, (key, value) in enumerate(values.items()):
        c = _number(value, f"The label frequency of group {key!r}")
        share = scores.hull(number).labeled_share
        if not 0 < c <= 1:
            raise ValueError(
                f"The label frequency of group {key!r} must be above 0 and at most 1, "
                f"got {c!r}."
            )
        _check_some_unlabeled(key, share)
        if c <= share:
            raise ValueError(
                f"The label frequency {c!r} of group {key!r} is not above the share "
                f"{share:.4g} of its rows that is labeled, so more than everybody "
                "would be positive. Give a larger one."
            )
        result[key] = _user_value(scores, number, c, c, c, "known")
    return result


def _from_prior(given: Any, scores: Any) -> dict[Hashable, LabelFrequency]:
    result: dict[Hashable, LabelFrequency] = {}
    named = scores.groups
    if isinstance(given, Mapping):
        named = tuple(key for key in named if key in given)
    # A dict without any of the groups is a mistake, not a choice.
    values = _by_group(given, named or scores.groups, "class_prior")
    for key, value in values.items():
        number = scores.groups.index(key)
        point, low, high = _prior_interval(key, value)
        share = scores.hull(number).labeled_share
        _check_some_unlabeled(key, share)
        if not share <= point < 1:
            raise ValueError(
                f"The class prior {point!r} of group {key!r} must be at least the "
                f"share {share:.4g} of its rows that is labeled, and below 1."
            )
        result[key] = _user_value(
            scores,
            number,
            share / point,
            share / high,
            min(1.0, share / max(low, share)),
            "class_prior",
        )
    return result


def _check_some_unlabeled(key: Hashable, share: float) -> None:
    if share == 1:
        raise ValueError(
            f"All rows of group {key!r} are labeled, so no label frequency or class "
            "prior leaves it a negative. Merge it with another group or drop it."
        )


def _user_value(
    scores: Any, number: int, c: float, low: float, high: float, method: str
) -> LabelFrequency:
    hull = scores.hull(number)
    independent = getattr(scores, "cluster", None) is None
    unweighted = scores.n_effective(number) == hull.accepted[-1]
    if (
        independent
        and unweighted
        and surely_not_contradicted(hull.accepted, hull.labeled, c)
    ):
        return LabelFrequency(c, low, high, method)
    top = group_top_sets(scores, number)
    bound = label_frequency_bound(
        top.accepted, top.labeled, n_effective=top.n_effective
    )
    warning = contradiction(scores.groups[number], c, bound) if bound > c else None
    return LabelFrequency(c, low, high, method, warning)


def _prior_interval(key: Hashable, value: Any) -> tuple[float, float, float]:
    name = f"The class prior of group {key!r}"
    if not isinstance(value, tuple | list):
        point = _number(value, name)
        return point, point, point
    if len(value) != 3:
        raise ValueError(
            f"{name} must be a number or (point, low, high), got {value!r}."
        )
    point, low, high = (_number(part, name) for part in value)
    if not 0 < low <= point <= high < 1:
        raise ValueError(
            f"{name} must be (point, low, high) with 0 < low <= point <= high < 1, "
            f"got {value!r}."
        )
    return point, low, high


def _from_other_estimator(
    estimator: Any, scores: Any, X: Any, folds: ArrayLike | None
) -> dict[Hashable, LabelFrequency]:
    """Call an estimator that is not ours by the documented signature."""
    if not hasattr(scores, "score"):
        raise ValueError(
            f"{type(estimator).__name__} needs the rows, got a {type(scores).__name__} "
            "that holds counts only."
        )
    keys = np.empty(len(scores.groups), dtype=object)
    keys[:] = scores.groups
    more = {"sample_weight": scores.sample_weight, "cluster": scores.cluster}
    found = estimator.estimate(
        scores.score,
        scores.labeled,
        X=X,
        group=keys[scores.codes],
        folds=folds,
        **{name: value for name, value in more.items() if value is not None},
    )
    return _by_group(found, scores.groups, "label_frequency")


def _by_group(
    given: Any, groups: tuple[Hashable, ...], name: str
) -> dict[Hashable, Any]:
    """One value per group, in the order of the groups."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(groups, given)
    known = {typed(key) for key in groups}
    missing = [key for key in groups if key not in given]
    extra = [key for key in given if typed(_plain(key)) not in known]
    if extra or missing:
        raise ValueError(
            f"{name} must have one value for each of the groups {list(groups)!r}; "
            f"missing {missing!r}, not a group {extra!r}."
        )
    return {key: given[key] for key in groups if key in given}


def _plain(key: Hashable) -> Hashable:
    return key.item() if isinstance(key, np.generic) else key


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _number(value: Any, name: str) -> float:
    if not _is_number(value) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
    return float(value)
