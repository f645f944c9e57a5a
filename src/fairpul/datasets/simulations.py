"""Simulations: the paper's two Gaussian groups, and under-diagnosis in a clinic."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from fairpul.datasets.labeling import ByGroup, by_group, keyed, pu_labels
from fairpul.datasets.simulated_data import SimulatedData

# Donini et al. (2018): both classes of a group lie opposite each other on the
# diagonal, at plus and minus this coordinate.
_CENTER = np.array([1.0, 0.5])
_VARIANCE = np.array([0.8, 0.5])
# Rows of (group a positive, a negative, b positive, b negative) in the paper.
_PAPER_SIZES = np.array([1000, 1000, 200, 1000])

_FEATURES = ("age", "systolic_bp", "ldl", "symptom_score", "imaging_finding")
_UNIT_CENTER = np.array([55.0, 128.0, 125.0, 50.0])
_UNIT_SCALE = np.array([9.0, 14.0, 30.0, 10.0])
# Shift of the diseased in each feature, in standard deviations. Only the symptoms
# differ by group: they are weak in the first group and typical in the last.
_SHIFT = np.array([1.0, 0.7, 0.6, 1.6])
_WEAKEST_SYMPTOMS = 0.4
_PREVALENCE = (0.15, 0.25)


def make_two_groups(
    n_samples: int | None = None,
    *,
    label_frequency: ByGroup = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> SimulatedData:
    """Two Gaussian groups of the paper's synthetic study, positives partly labeled.

    Parameters
    ----------
    n_samples : int, optional
        Rows in all, split between classes and groups in the paper's proportions
        5 : 5 : 1 : 5. By default 3200, as in the paper: 1000 positives and 1000
        negatives in group "a", 200 and 1000 in group "b".
    label_frequency : float, sequence or mapping, default=0.5
        P(labeled given positive): one for both groups, as in the paper, or one for
        each of "a" and "b".
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    SimulatedData
        Class sizes are exact, not drawn; the prior is 1/2 in "a" and 1/6 in "b".

    Notes
    -----
    Positives of "a" have mean (-1, -1), its negatives (1, 1), both variance 0.8; those
    of "b" (-0.5, -0.5) and (0.5, 0.5), variance 0.5 (Donini et al., 2018). One common
    threshold recalls far less of group "b".

    Examples
    --------
    >>> data = make_two_groups(label_frequency=0.4, random_state=0)
    >>> data
    SimulatedData(3200 rows, 2 features, groups 'a', 'b')
    >>> data.class_prior["a"], int(data.y_true[data.group == "b"].sum())
    (0.5, 200)
    """
    n_rows = int(_PAPER_SIZES.sum()) if n_samples is None else n_samples
    if n_rows < 16:
        raise ValueError(f"At least 16 rows are required, got n_samples={n_rows!r}.")
    rng = check_random_state(random_state)
    keys = ("a", "b")
    cell = rng.permutation(np.repeat(np.arange(4), _split(n_rows, _PAPER_SIZES)))
    codes, y_true = cell // 2, 1 - cell % 2
    center, variance = _CENTER[codes], _VARIANCE[codes]
    mean = np.where(y_true == 1, -center, center)
    noise = rng.standard_normal((n_rows, 2))
    X = mean[:, None] + np.sqrt(variance)[:, None] * noise
    prior = _PAPER_SIZES[::2] / (_PAPER_SIZES[::2] + _PAPER_SIZES[1::2])
    # log of the ratio of two isotropic normal densities at -center and +center
    log_ratio = -2 * center * X.sum(axis=1) / variance
    group = np.array(keys)[codes]
    frequency = by_group(label_frequency, keys, "label_frequency")
    return SimulatedData(
        X=X,
        labeled=pu_labels(y_true, frequency, group=group, random_state=rng),
        group=group,
        feature_names=("x1", "x2"),
        y_true=y_true,
        posterior=expit(logit(prior)[codes] + log_ratio),
        label_frequency=frequency,
        class_prior=keyed(keys, prior),
        separation=keyed(keys, 2 * _CENTER * np.sqrt(2 / _VARIANCE)),
    )


def make_underdiagnosed(
    n_samples: int = 6000,
    *,
    groups: Sequence[Any] = ("f", "m"),
    label_frequency: ByGroup = (0.3, 0.7),
    anchor_share: float = 0.15,
    random_state: int | np.random.RandomState | None = None,
) -> SimulatedData:
    """Patients whose disease is recorded less often in some groups than in others.

    Parameters
    ----------
    n_samples : int, default=6000
        Patients in all; each belongs to any of the groups with equal probability.
    groups : sequence of hashables, default=("f", "m")
        Names of the groups, from the weakest symptoms to the most typical ones.
    label_frequency : float, sequence or mapping, default=(0.3, 0.7)
        Share of the diseased with a recorded diagnosis: one for all groups, one for
        each in the order of ``groups``, or a mapping.
    anchor_share : float, default=0.15
        Share of the diseased with a finding that no healthy patient has. 0 leaves the
        finding out, to see what estimates of the label frequency do without it.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    SimulatedData
        ``labeled`` is the recorded diagnosis, ``y_true`` the disease.

    Notes
    -----
    Prevalence rises evenly from 15% in the first group to 25% in the last. The diseased
    are shifted in age, blood pressure, LDL cholesterol and a symptom score; the shift
    in symptoms is 0.4 of the typical one in the first group and rises evenly to the
    last. One common threshold therefore misses more of the first group's diseased and
    has a higher FPR in the last. Positives are labeled completely at random within a
    group.

    *Anchor region*: rows with ``imaging_finding`` have posterior exactly 1, so the
    label frequency of a group is the labeled share of its anchor rows, and can be
    estimated from labeled and unlabeled rows.

    Examples
    --------
    >>> data = make_underdiagnosed(random_state=0)
    >>> data
    SimulatedData(6000 rows, 5 features, groups 'f', 'm')
    >>> rates = data.population_rates(0.5)
    >>> [round(rates[key]["tpr"], 2) for key in ("f", "m")]
    [0.41, 0.72]
    """
    keys = _check_groups(groups)
    if n_samples < 1:
        raise ValueError(f"At least one row is required, got n_samples={n_samples!r}.")
    if not 0 <= anchor_share < 1:
        raise ValueError(f"anchor_share must lie in [0, 1), got {anchor_share!r}.")
    rng = check_random_state(random_state)
    prior = np.linspace(*_PREVALENCE, len(keys))
    shift = np.tile(_SHIFT, (len(keys), 1))
    shift[:, -1] *= np.linspace(_WEAKEST_SYMPTOMS, 1, len(keys))

    codes = rng.randint(len(keys), size=n_samples)
    y_true = (rng.uniform(size=n_samples) < prior[codes]).astype(np.int64)
    anchor = (y_true == 1) & (rng.uniform(size=n_samples) < anchor_share)
    z = rng.standard_normal((n_samples, len(_SHIFT))) + y_true[:, None] * shift[codes]
    log_ratio = (z * shift[codes]).sum(axis=1) - (shift**2).sum(axis=1)[codes] / 2
    log_odds = logit(prior)[codes] + np.log1p(-anchor_share) + log_ratio

    X = _UNIT_CENTER + _UNIT_SCALE * z
    if anchor_share > 0:
        X = np.column_stack([X, anchor])
    group = _as_array(keys)[codes]
    frequency = by_group(label_frequency, keys, "label_frequency")
    return SimulatedData(
        X=X,
        labeled=pu_labels(y_true, frequency, group=group, random_state=rng),
        group=group,
        feature_names=_FEATURES[: X.shape[1]],
        y_true=y_true,
        posterior=np.where(anchor, 1.0, expit(log_odds)),
        label_frequency=frequency,
        class_prior=keyed(keys, prior),
        separation=keyed(keys, np.sqrt((shift**2).sum(axis=1))),
        anchor_share=float(anchor_share),
    )


def _check_groups(groups: Sequence[Any]) -> tuple[Hashable, ...]:
    keys = tuple(groups)
    if not keys or len(set(keys)) < len(keys):
        raise ValueError(f"Distinct groups are required, at least one; got {groups!r}.")
    return keys


def _as_array(keys: tuple[Hashable, ...]) -> NDArray[Any]:
    """Keys in one dimension, tuples included, strings and numbers in their own type."""
    if len({type(key) for key in keys}) == 1 and not isinstance(keys[0], tuple):
        return np.array(keys)
    array = np.empty(len(keys), dtype=object)
    array[:] = keys
    return array


def _split(n_rows: int, proportions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers that add up to n_rows, nearest to the proportions."""
    exact = n_rows * proportions / proportions.sum()
    sizes = np.floor(exact).astype(np.int64)
    sizes[np.argsort(sizes - exact)[: n_rows - sizes.sum()]] += 1
    return np.asarray(sizes)
