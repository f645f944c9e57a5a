"""Weights as integers, whose sums do not depend on the order of the rows.

A weight counts in whole parts of 1 / ``WEIGHT_UNIT``, and so does its square. Each is
summed in a high and a low limb of 31 bits, because sums of the whole could pass 63.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: Weights are summed as integers of this many parts of 1.
WEIGHT_UNIT = 2.0**20
#: Weights from here on are unusable: two limbs do not hold their squares.
LARGEST_WEIGHT = 2.0**21
#: Names of the limbs: of w and of w^2, over all rows and over labeled rows.
LIMBS = tuple(
    f"{name}_{limb}" for name in ("w", "wl", "w2", "w2l") for limb in ("high", "low")
)
_LIMB = 2.0**31
# Sums of either limb over so many rows fit into 62 bits.
_MOST_ROWS = 2**31
# Weights whose mean is smaller than this lose digits in fixed point.
_LEAST_MEAN_WEIGHT = 2.0**-10


def usable(weight: Any) -> Any:
    """Whether weights, an array or an expression, can be summed in fixed point."""
    return (weight >= 0.0) & (weight < LARGEST_WEIGHT)


def limb_arrays(
    weight: NDArray[np.float64], labeled: NDArray[np.bool_]
) -> list[NDArray[np.float64]]:
    """Limbs of usable weights and of their squares, in the order of ``LIMBS``."""
    limbs = []
    for value in (weight, weight * weight):
        high = np.floor(value * (WEIGHT_UNIT / _LIMB))
        low = np.floor(value * WEIGHT_UNIT) - high * _LIMB
        limbs += [high, low, high * labeled, low * labeled]
    return limbs


def limb_expressions(weight: nw.Expr, labeled: nw.Expr) -> list[nw.Expr]:
    """Write :func:`limb_arrays` for a float64 column; unusable weights count 0."""
    limbs = []
    weight = nw.when(usable(weight)).then(weight).otherwise(nw.lit(0.0))
    for name, value in (("w", weight), ("w2", weight * weight)):
        high = (value * (WEIGHT_UNIT / _LIMB)).floor()
        low = (value * WEIGHT_UNIT).floor() - high * _LIMB
        for limb, part in (("high", high), ("low", low)):
            whole = part.cast(nw.Int64)
            among = nw.when(labeled).then(whole).otherwise(nw.lit(0, nw.Int64))
            limbs += [whole.alias(f"{name}_{limb}"), among.alias(f"{name}l_{limb}")]
    return limbs


def join_limbs(sums: Integers) -> Integers:
    """Join the limbs of each weighted sum; refuse sums beyond 62 bits."""
    if (sums[:, 0] > _MOST_ROWS).any():
        raise OverflowError(
            "A bin holds more than 2**31 weighted rows, whose limbs may have passed 63 "
            "bits. Count parts of the frame and add their tables."
        )
    columns = [sums[:, 0], sums[:, 1]]
    for place in range(2, sums.shape[1], 2):
        high, low = sums[:, place], sums[:, place + 1]
        check_sum(high.astype(np.float64) * _LIMB + low)
        columns.append(high * np.int64(_LIMB) + low)
    return np.column_stack(columns)


def check_sum(total: NDArray[np.float64]) -> None:
    """Refuse fixed-point sums that could pass 2**62."""
    if len(total) and total.max() > 2.0**62 * (1 - 1e-9):
        raise OverflowError(
            "The weights or their squares sum to more than 2**42, which the table "
            "does not hold. Divide the weights by a constant: the rule is the same."
        )


def check_weight_scale(sums: Integers) -> None:
    """Refuse weights that are mostly lost in fixed point."""
    n, weight = int(sums[:, 0].sum()), int(sums[:, 2].sum())
    if weight < n * _LEAST_MEAN_WEIGHT * WEIGHT_UNIT:
        raise ValueError(
            f"The weights of {n} rows sum to {weight / WEIGHT_UNIT:.3g}, too little "
            "for the fixed point of the table. Multiply them by a constant: the rule "
            "is the same."
        )
