"""Columns of X that hold the group, whatever kind of table X is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from scipy.sparse import issparse


def group_columns(X: Any, columns: str | int | Sequence[str | int]) -> Any:
    """Columns of X that hold the group, by name or position.

    Examples
    --------
    >>> import numpy as np
    >>> group_columns(np.array([[0.5, 1.0], [0.2, 0.0]]), 1).ravel()
    array([1., 0.])
    """
    if isinstance(columns, str | int | np.integer):
        columns = [columns]
    names = None
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        names = frame.columns
        n_columns = len(names)
    elif issparse(X) or isinstance(X, np.ndarray):
        n_columns = X.shape[1] if X.ndim == 2 else 0
    else:
        n_columns = min((len(row) for row in X), default=0)
    positions = [_position(column, names, n_columns) for column in columns]
    if names is not None:
        return frame[:, positions].to_native()
    if issparse(X):
        return X.tocsc()[:, positions].toarray()
    if isinstance(X, np.ndarray):
        return X[:, positions]
    # Lists may mix types that an array would turn into strings.
    rows = [tuple(row[j] for j in positions) for row in X]
    return rows if len(positions) > 1 else [row[0] for row in rows]


def _position(column: str | int, names: Sequence[str] | None, n_columns: int) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"sensitive_columns names column {column!r}, but X has no column "
                "names. Give positions, or pass a DataFrame (in a Pipeline: "
                "set_output(transform='pandas'))."
            )
        if column not in names:
            raise ValueError(
                f"sensitive_columns names column {column!r}, which X lacks; it has "
                f"{list(names)!r}."
            )
        return list(names).index(column)
    if not -n_columns <= column < n_columns:
        raise ValueError(
            f"sensitive_columns asks for column {column!r} of X, which has "
            f"{n_columns} columns."
        )
    return int(column) % n_columns
