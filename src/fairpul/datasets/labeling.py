"""PU labels drawn from true classes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from fairpul._groups import encode_groups

ByGroup = float | Sequence[float] | Mapping[Any, float]


def pu_labels(
    y: ArrayLike,
    rate: float | Mapping[Any, float] | ArrayLike,
    *,
    group: Any = None,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.int64]:
    """PU labels drawn from true classes: some positives labeled, no negative.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True class, 1 or True for positive, 0 or False for negative.
    rate : float, mapping or array-like of shape (n_samples,)
        P(labeled given positive). A float labels completely at random (SCAR); a mapping
        from group to rate does so within groups; an array gives each row its own
        probability, which may depend on the features (SAR).
    group : array-like of shape (n_samples,), optional
        Group of each row; required with a mapping.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    ndarray of shape (n_samples,)
        1 for labeled positives, 0 for unlabeled rows. Labels are independent draws, so
        the labeled share of positives is ``rate`` in expectation only.

    Examples
    --------
    >>> pu_labels([1, 1, 0, 0], 1.0).tolist()
    [1, 1, 0, 0]
    >>> pu_labels([1, 1, 1, 0], [1, 0, 1, 1]).tolist()
    [1, 0, 1, 0]
    """
    positive = np.asarray(y)
    if positive.ndim != 1 or not np.isin(positive, (0, 1)).all():
        raise ValueError(
            "True classes 0 and 1 in one dimension are required, got values "
            f"{np.unique(positive).tolist()[:5]!r} in shape {positive.shape}."
        )
    probability = _rate_of_rows(rate, group, len(positive))
    draw = check_random_state(random_state).uniform(size=len(positive))
    return np.asarray((positive == 1) & (draw < probability), dtype=np.int64)


def _rate_of_rows(rate: Any, group: Any, n_rows: int) -> NDArray[np.float64]:
    if isinstance(rate, Mapping):
        if group is None:
            raise ValueError("Rates by group were given without the group of each row.")
        codes, keys = encode_groups(group, n_rows)
        probability = np.array(list(by_group(rate, keys, "rate").values()))[codes]
    else:
        probability = np.asarray(rate, dtype=np.float64)
        if probability.shape not in ((), (n_rows,)):
            raise ValueError(
                f"One rate, or one for each of the {n_rows} rows, is required; got "
                f"shape {probability.shape}."
            )
    if not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError(f"Rates must lie in [0, 1], got {rate!r}.")
    return probability


def by_group(value: Any, keys: Sequence[Hashable], what: str) -> dict[Hashable, float]:
    """Value of each group, from one number, a sequence in their order or a mapping."""
    if isinstance(value, Mapping):
        missing = [key for key in keys if key not in value]
        if missing:
            raise ValueError(f"{what} has no value for groups {missing!r}.")
        return {key: float(value[key]) for key in keys}
    if np.ndim(value) == 0:
        return {key: float(value) for key in keys}
    if len(value) != len(keys):
        raise ValueError(
            f"{what} must hold one value for each of the groups {list(keys)!r}, "
            f"got {value!r}."
        )
    return keyed(keys, value)


def keyed(keys: Sequence[Hashable], values: Any) -> dict[Hashable, float]:
    """Python float of each group."""
    return {key: float(value) for key, value in zip(keys, values, strict=True)}
