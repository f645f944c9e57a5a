"""Maximum likelihood of a label frequency per group and a logistic posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from fairpul.label_frequency._counts import FLOOR_FACTOR

Floats = NDArray[np.float64]

# Keeps the slopes finite where the labels are separable; far below one row's weight.
_RIDGE = 1e-3
# The likelihood can have a mode at a steep and one at a flat logit: where the label
# frequencies start between their floor and 1.
_STARTS = (0.1, 0.5, 0.9)


def joint_label_frequency(
    features: Floats,
    labeled: NDArray[np.bool_],
    codes: NDArray[np.intp],
    sample_weight: Floats | None = None,
) -> Floats:
    r"""Label frequency of each code that maximizes the likelihood of the labels.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_columns)
        Standardized features, without missing values and without an intercept.
    labeled : ndarray of bool of shape (n_rows,)
        Labeled rows.
    codes : ndarray of int of shape (n_rows,)
        Which label frequency each row has, 0 to k - 1.
    sample_weight : ndarray of shape (n_rows,), optional
        Sampling weights.

    Returns
    -------
    ndarray of shape (k,)

    Notes
    -----
    :math:`P(L = 1 \mid x, s) = c_s \cdot \mathrm{sigmoid}(b_0 + b^T x)` with
    :math:`c_s` between 1.02 times the labeled share of the group and 1. What
    identifies :math:`c_s` is how the labeled share bends away from a logistic curve,
    so the result is as good as the logistic form.
    """
    weight = np.ones(len(labeled)) if sample_weight is None else sample_weight
    share = np.bincount(codes, weight * labeled) / np.bincount(codes, weight)
    low = np.minimum(FLOOR_FACTOR * share, 1.0)
    design = np.column_stack([np.ones(len(labeled)), features])
    n_slopes = design.shape[1]
    overall = np.average(labeled, weights=weight)
    best: Any = None
    for start in _STARTS:
        first = np.zeros(n_slopes + len(low))
        first[n_slopes:] = low + start * (1 - low)
        typical = min(0.95, overall / first[n_slopes:].mean())
        first[0] = logit(typical)
        found = minimize(
            _loss_and_gradient,
            first,
            args=(design, labeled, codes, weight),
            method="L-BFGS-B",
            jac=True,
            bounds=[(None, None)] * n_slopes + [(c, 1.0) for c in low],
            options={"maxiter": 500, "maxfun": 2000},
        )
        if best is None or found.fun < best.fun:
            best = found
    return np.asarray(best.x[n_slopes:])


def _loss_and_gradient(
    parameters: Floats,
    design: Floats,
    labeled: NDArray[np.bool_],
    codes: NDArray[np.intp],
    weight: Floats,
) -> tuple[float, Floats]:
    """Mean negative log-likelihood with a small ridge, and its gradient."""
    n_slopes = design.shape[1]
    b, c = parameters[:n_slopes], parameters[n_slopes:][codes]
    z = design @ b
    posterior, complement = expit(z), expit(-z)
    # 1 - c * posterior without cancellation where both are near 1.
    unlabeled = np.maximum((1 - c) + c * complement, np.finfo(float).tiny)
    slopes = np.append(0.0, b[1:])
    terms = np.where(labeled, np.log(c) + log_expit(z), np.log(unlabeled))
    by_z = np.where(labeled, complement, -c * posterior * complement / unlabeled)
    by_c = np.where(labeled, 1 / c, -posterior / unlabeled)
    total = weight.sum()
    loss = (_RIDGE / 2 * slopes @ slopes - weight @ terms) / total
    gradient = np.concatenate(
        [
            _RIDGE * slopes - design.T @ (weight * by_z),
            -np.bincount(codes, weight * by_c, minlength=len(parameters) - n_slopes),
        ]
    )
    return float(loss), gradient / total
