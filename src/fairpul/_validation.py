"""Checks that scikit-learn cannot make: PU labels, scores, sampling weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

# Nonnegative floats and their bits read as integers have the same order.
_UNSIGNED = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}


def check_labels(y: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which rows are labeled, and the caller's codes for unlabeled and labeled.

    1 or True is labeled; 0, -1 or False is unlabeled; anything else is refused, and
    so is a column of one value only.
    """
    if y is None:
        raise ValueError(
            "A PU label per row is required, but the target y is None. This "
            "estimator requires y to be passed, but the target y is None."
        )
    column: NDArray[Any] = y
    if not _is_column(y):
        _refuse_mask(y, "labels")
        # NumPy first: scikit-learn reads nullable integers and booleans as floats.
        column = _plain_labels(column_or_1d(np.asarray(y), warn=True))
    if _holds_codes(column):
        values: list[Any] = [int(column.min()), 1]
    else:
        values = _checked_values(column)
    labeled = np.asarray(column if column.dtype == bool else column == 1)
    n_labeled = int(np.count_nonzero(labeled))
    if n_labeled in (0, len(labeled)):
        found = "no labeled row" if n_labeled == 0 else "labeled rows only"
        raise ValueError(
            f"Labeled and unlabeled rows are both required, got {found}: one class "
            "cannot show a rate."
        )
    unlabeled = -1 if -1 in values else 0
    dtype = column.dtype if column.dtype.kind in "biuf" else np.int64
    return labeled, np.array([unlabeled, 1], dtype=dtype)


def _is_column(values: Any) -> bool:
    """Whether values are an array of one dimension that needs no conversion."""
    return (
        type(values) in (np.ndarray, np.memmap)
        and values.ndim == 1
        and values.dtype.kind in "biuf"
    )


def are_coded_labels(y: Any) -> bool:
    """Whether labels are an array of the codes, told without a sort."""
    return _is_column(y) and _holds_codes(y)


def _holds_codes(column: NDArray[Any]) -> bool:
    """Whether these are 0 and 1, or -1 and 1, told without a sort."""
    if column.dtype == bool:
        return True
    if column.dtype.kind not in "iu" or not len(column) or column.max() != 1:
        return False
    return bool(column.min() == 0 or (column.min() == -1 and column.all()))


def _checked_values(column: NDArray[Any]) -> list[Any]:
    """Distinct values of a column of labels; refuses all but the codes."""
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise ValueError(
            f"Input y contains NaN in {int(np.isnan(column).sum())} rows. Drop them, "
            "or code rows of unknown class as unlabeled: 0."
        )
    check_classification_targets(column)
    values = _distinct(column)
    if any(isinstance(value, str | bytes) for value in values):
        values_are_codes = False
    else:
        values_are_codes = set(values) <= {0, 1} or set(values) <= {-1, 1}
    if not values_are_codes:
        raise ValueError(
            "Labels must be 1 or True for labeled and 0, -1 or False for unlabeled "
            f"rows, with one code for unlabeled; got the values {values!r}. "
            "Recode the column."
        )
    return values


def _plain_labels(column: NDArray[Any]) -> NDArray[Any]:
    """Nullable columns come as Python objects: as integers or booleans again."""
    if column.dtype.kind != "O" or not len(column):
        return column
    for kinds, dtype in (
        ((bool, np.bool_), np.bool_),
        ((int, np.integer), np.int64),
    ):
        if all(isinstance(value, kinds) for value in column):
            return column.astype(dtype)
    if all(isinstance(value, str) for value in column):
        return column
    kinds_found = sorted({type(value).__name__ for value in column})
    raise ValueError(
        "Labels must be 1 or True for labeled and 0, -1 or False for unlabeled rows, "
        f"none missing; got a column of {', '.join(kinds_found)}. Recode the column."
    )


def check_score(score: Any) -> NDArray[Any]:
    """Scores as a float array of one dimension, a view where that is possible."""
    column: NDArray[Any] = score if _is_column(score) else _one_column(score)
    unsigned = _UNSIGNED.get(column.dtype)
    # Missing and negative scores and a negative zero have bits above those of 1.
    if (
        unsigned is not None
        and len(column)
        and column.view(unsigned).max() <= column.dtype.type(1).view(unsigned)
    ):
        return np.asarray(column)
    if column.dtype.kind in "biuf" and column.dtype.itemsize < 4:
        column = column.astype(np.float32)
    elif column.dtype not in (np.float32, np.float64):
        column = _as_float(column, "scores")
    if len(column) and not (column.min() >= 0 and column.max() <= 1):
        n_missing = int(np.isnan(column).sum())
        n_outside = int(np.count_nonzero((column < 0) | (column > 1)))
        raise ValueError(
            "Scores must lie between 0 and 1 (an estimate of P(labeled)); got "
            f"{n_missing} missing and {n_outside} outside. Drop rows without a score; "
            "rescale others, for any increasing map leaves the rule as it is."
        )
    return np.asarray(column + column.dtype.type(0))  # a negative zero becomes zero


def _one_column(score: Any) -> NDArray[Any]:
    """Score as an array of one dimension, for (n, 1) is no mistake but (n, 2) is."""
    _refuse_mask(score, "scores")
    shape = score.shape if hasattr(score, "shape") else np.shape(score)
    if len(shape) == 2 and shape[1] == 2:
        raise ValueError(
            f"One score per row is required, got an array of shape {shape}. Of the "
            "columns of predict_proba, pass the one of labeled rows: [:, 1]."
        )
    return np.asarray(column_or_1d(score))


def check_weight(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Nonnegative, finite sampling weights, or None."""
    if sample_weight is None:
        return None
    _refuse_mask(sample_weight, "sample weights")
    weight = _as_float(column_or_1d(sample_weight), "sample weights")
    _check_length("sample_weight", len(weight), n_rows)
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError(
            "Sample weights must be finite, nonnegative and not all zero; got "
            f"values from {float(weight.min())!r} to {float(weight.max())!r}."
        )
    if not 1e-100 < weight.max() < 1e100:  # products of sums would leave the floats
        raise ValueError(
            "The largest sample weight must lie between 1e-100 and 1e100, got "
            f"{float(weight.max())!r}. Multiply all weights by a constant: only their "
            "ratios matter."
        )
    return weight


def check_cluster(cluster: Any, n_rows: int) -> NDArray[np.intp] | None:
    """Integer codes of the clusters of rows that belong together, or None."""
    if cluster is None:
        return None
    _refuse_mask(cluster, "clusters")
    return _coded(cluster, n_rows, "cluster", "each of them a cluster of its own")


def check_source(source: Any, n_rows: int) -> NDArray[np.intp]:
    """Integer codes of where the label of each row comes from."""
    return _coded(source, n_rows, "source", "them a source, such as 'unknown'")


def _coded(values: Any, n_rows: int, name: str, remedy: str) -> NDArray[np.intp]:
    column = column_or_1d(values)
    _check_length(name, len(column), n_rows)
    n_missing = _n_missing(column)
    if n_missing:
        raise ValueError(
            f"The {name} is missing in {n_missing} rows. Drop these rows or give "
            f"{remedy}."
        )
    return np.unique(column, return_inverse=True)[1].astype(np.intp, copy=False)


def check_decision(decision: Any, name: str = "decision") -> NDArray[Any]:
    """Decisions (1 and 0 or -1, or bool) or probabilities as such probabilities."""
    column: NDArray[Any] = column_or_1d(decision)
    if column.dtype == bool:
        return column
    n_missing = _n_missing(column)
    if n_missing:
        raise ValueError(
            f"{name} is missing in {n_missing} rows. Drop rows without a decision."
        )
    if column.dtype.kind == "O":  # nullable columns come as Python objects
        column = _as_float(column, f"values of {name}")
    if column.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers or bool, got {column.dtype}.")
    if np.isin(column, (-1, 1)).all():
        return np.asarray(column == 1)
    if not ((column >= 0) & (column <= 1)).all():
        raise ValueError(
            f"{name} must be 1 for accepted and 0 or -1 for not, or an acceptance "
            f"probability in [0, 1]; got values from {column.min():.4g} to "
            f"{column.max():.4g}."
        )
    return column


def check_row_id(row_id: Any, n_rows: int) -> NDArray[Any]:
    """Ids of the rows as an array of integers or strings."""
    _refuse_mask(row_id, "row_id")
    # NumPy first: scikit-learn reads nullable integers as floats.
    ids: NDArray[Any] = column_or_1d(np.asarray(row_id))
    _check_length("row_id", len(ids), n_rows)
    if not n_rows:
        return ids.astype(np.int64)
    if ids.dtype.kind == "O" and (
        all(isinstance(one, str) for one in ids) or {type(one) for one in ids} == {int}
    ):
        ids = np.array(ids.tolist())
    if ids.dtype.kind not in "iuU":
        raise ValueError(
            f"row_id must hold integers or strings, none missing; got {ids.dtype}."
        )
    return ids


def _refuse_mask(values: Any, what: str) -> None:
    """Refuse masked values, which NumPy would read as what is under the mask."""
    if not isinstance(values, np.ma.MaskedArray):
        return
    n_masked = int(np.count_nonzero(np.ma.getmaskarray(values)))
    if n_masked:
        raise ValueError(
            f"The {what} are masked in {n_masked} rows. Drop these rows or fill them."
        )


def _n_missing(column: NDArray[Any]) -> int:
    if column.dtype.kind == "f":
        return int(np.count_nonzero(np.isnan(column)))
    if column.dtype.kind == "O":
        return sum(map(_is_missing, column.tolist()))
    return 0


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # the NA of pandas is neither true nor false
        return True


def _check_length(name: str, length: int, n_rows: int) -> None:
    if length != n_rows:
        raise ValueError(f"{name} has {length} rows where {n_rows} were expected.")


def _as_float(column: NDArray[Any], what: str) -> NDArray[np.float64]:
    try:
        return column.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(
            f"Numeric {what} are required, got an array of {column.dtype}."
        ) from None


def _distinct(column: NDArray[Any]) -> list[Any]:
    if column.dtype == bool:
        return [False, True]
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if low in (-1, 0) and high == 1:
            return [v for v in range(low, 2) if (column == v).any()]
    return np.unique(column).tolist()  # type: ignore[no-any-return]
