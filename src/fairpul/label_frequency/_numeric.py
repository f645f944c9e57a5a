"""Any table of features as one float array, categories coded by their order."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

# Random forests work in float32: a value beyond it would be refused as infinite.
_LARGEST = float(np.finfo(np.float32).max)


class NotNumericError(ValueError):
    """The features cannot be made numeric; the text says why."""


def numeric_table(X: Any, rows: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
    """Features as floats: missing is nan, categories are coded by their order.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
        NumPy array of any type, list of rows, pandas, Polars or Arrow frame.
    rows : ndarray of int, optional
        Rows to take; all of them by default.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)

    Examples
    --------
    >>> numeric_table([[3.5, "low"], [None, "high"]]).tolist()
    [[3.5, 1.0], [nan, 0.0]]
    """
    if nw.dependencies.is_into_dataframe(X):
        columns = _frame_columns(X, rows)
    else:
        array = _two_dimensional(X)
        if rows is not None:
            array = array[rows]
        columns = [_numeric_column(array[:, j]) for j in range(array.shape[1])]
    if not columns:
        raise NotNumericError("X has no column")
    table = np.column_stack(columns)
    table[~np.isfinite(table)] = np.nan
    return np.clip(table, -_LARGEST, _LARGEST)


def _frame_columns(X: Any, rows: NDArray[np.intp] | None) -> list[NDArray[np.float64]]:
    try:
        frame = nw.from_native(X, eager_only=True)
        if rows is not None:
            frame = frame[rows]
        return [_numeric_series(column) for column in frame.iter_columns()]
    except nw.exceptions.DuplicateError:
        raise NotNumericError("several columns of X share a name") from None


def _two_dimensional(X: Any) -> NDArray[Any]:
    if hasattr(X, "tocsr"):
        raise NotNumericError("X is a sparse matrix")
    try:
        array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    except ValueError:
        raise NotNumericError("the rows of X differ in length") from None
    if array.ndim != 2:
        raise NotNumericError(f"X is a {type(X).__name__} of {array.ndim} dimension(s)")
    return array


def _numeric_column(column: NDArray[Any]) -> NDArray[np.float64]:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64))
    if column.dtype.kind in "OUS":
        return _numeric_objects(column.tolist())
    raise NotNumericError(f"a column of X has type {column.dtype}")


def _numeric_series(column: nw.Series[Any]) -> NDArray[np.float64]:
    dtype = column.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return column.cast(nw.Float64).to_numpy().astype(np.float64)
    if dtype.is_temporal():
        return _numeric_column(np.asarray(column.to_numpy()))
    if isinstance(dtype, nw.Enum):
        return _coded(column.to_list(), list(dtype.categories))
    if dtype in (nw.Categorical, nw.String, nw.Object):
        return _numeric_objects(column.to_list())
    raise NotNumericError(f"column {column.name!r} of X has type {dtype}")


def _numeric_objects(values: list[Any]) -> NDArray[np.float64]:
    present = [value for value in values if not _is_missing(value)]
    if all(isinstance(value, int | float | np.number | np.bool_) for value in present):
        return np.array([np.nan if _is_missing(v) else float(v) for v in values])
    try:
        distinct = set(present)
    except TypeError:
        raise NotNumericError("a column of X holds lists, arrays or the like") from None
    return _coded(values, sorted(distinct, key=lambda v: (type(v).__name__, str(v))))


def _coded(values: list[Any], order: list[Any]) -> NDArray[np.float64]:
    position = {value: float(number) for number, value in enumerate(order)}
    return np.array(
        [np.nan if _is_missing(value) else position[value] for value in values]
    )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)
