"""The value that every loader of real data returns, and how text becomes columns."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
Preprocessing = Literal["paper"] | None


@dataclass(frozen=True, eq=False, repr=False)
class RealData:
    """A published data set with its true classes and sensitive groups.

    Attributes
    ----------
    columns : dict of ndarray
        Columns as published, typed; NaT and NaN stand for missing.
    X : ndarray of shape (n_rows, n_features)
        Features as floats, not scaled.
    feature_names : tuple of str
        Names of the columns of ``X``; ``"job=A172"`` indicates a category.
    y_true : ndarray of shape (n_rows,)
        True class, 1 for positive. Draw PU labels with :func:`pu_labels`.
    group : ndarray of shape (n_rows,)
        Sensitive group of each row.
    target, sensitive : str
        Names of the columns that ``y_true`` and ``group`` are read from.
    license, source : str
        Terms of the publisher and the address of the file.
    """

    columns: Columns
    X: NDArray[np.float64]
    feature_names: tuple[str, ...]
    y_true: NDArray[np.int64]
    group: NDArray[np.str_]
    target: str
    sensitive: str
    license: str
    source: str

    def __repr__(self) -> str:
        """Sizes and roles of the columns, not their content."""
        return (
            f"RealData({len(self.X)} rows, {self.X.shape[1]} features, "
            f"target {self.target!r}, sensitive {self.sensitive!r})"
        )

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"]) -> Any:
        """Return ``columns`` as a data frame of the given library.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            The library, which must be installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            One row for each row of ``X``.
        """
        lists = {
            name: column.tolist() if column.dtype.kind == "U" else column
            for name, column in self.columns.items()
        }
        return nw.from_dict(lists, backend=backend).to_native()


def design_matrix(
    columns: Columns, names: Sequence[str]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Numbers as they are, categories as indicators of every level but the first."""
    features: Columns = {}
    for name in names:
        column = columns[name]
        if column.dtype.kind == "U":
            levels = np.unique(column)[1:]
            features |= {f"{name}={level}": column == level for level in levels}
        else:
            features[name] = column
    return np.column_stack(list(features.values())).astype(np.float64), tuple(features)


def table(records: Sequence[Sequence[str]], types: Mapping[str, str]) -> Columns:
    """Columns of records whose fields come in the order of the types."""
    fields = zip(*records, strict=True)
    return {
        name: typed(field, dtype)
        for (name, dtype), field in zip(types.items(), fields, strict=True)
    }


def typed(field: Sequence[str], dtype: str) -> NDArray[Any]:
    """Column of a type; an empty field is NaN, NaT or the empty string."""
    missing = {"float64": "nan", "datetime64[us]": "NaT"}.get(dtype, "")
    return np.array([value or missing for value in field]).astype(dtype)


def comma_separated(text: str) -> list[list[str]]:
    """Split a file without a header into records, blank lines left out."""
    return [row for row in csv.reader(text.splitlines()) if row]


def rows(columns: Columns, kept: NDArray[np.bool_]) -> Columns:
    """Rows of all columns where ``kept`` is true."""
    return {name: column[kept] for name, column in columns.items()}


def check_preprocessing(preprocessing: Any) -> None:
    """Refuse any preprocessing but the two that exist."""
    if preprocessing not in (None, "paper"):
        raise ValueError(
            f"preprocessing must be None or 'paper', got {preprocessing!r}."
        )
