"""Groups of any spelling in, small integer codes and plain Python keys out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.intp]
Keys = tuple[Hashable, ...]

#: Key of the only group when no group is given.
EVERYBODY = "all"

# Integer codes spread wider than this many values per row are sorted instead of
# counted: a counting table would outgrow the data.
_WIDEST_TABLE = 4


class CodedGroups(NamedTuple):
    """Position of each row's group in the keys; taken wherever a group is."""

    codes: Codes
    keys: Keys


def encode_groups(group: Any, n_rows: int) -> CodedGroups:
    """Code of each row and the sorted keys the codes stand for.

    Parameters
    ----------
    group : array-like of shape (n_rows,) or (n_rows, n_columns), or None
        Any hashables: a list, an array, a pandas, Polars or Arrow column, plain,
        categorical or nullable. Several columns give one group per combination,
        keyed by tuples. None puts every row into one group, keyed ``"all"``.
    n_rows : int
        Number of rows expected.

    Returns
    -------
    codes : ndarray of shape (n_rows,)
        Position of each row's group in ``keys``.
    keys : tuple
        Python str, int, bool or tuples of them (other hashables are kept as they
        are), in an order that depends on the keys alone.
    """
    if isinstance(group, CodedGroups):
        return group
    if group is None:
        return CodedGroups(np.zeros(n_rows, dtype=np.intp), (EVERYBODY,))
    columns = _columns(group)
    if not columns:
        raise ValueError("The group has no column. Pass None for a single group.")
    for column in columns:
        if len(column) != n_rows:
            raise ValueError(
                f"The group has {len(column)} rows where {n_rows} were expected."
            )
    coded = [_encode_column(column) for column in columns]
    return CodedGroups(*(coded[0] if len(coded) == 1 else _intersect(coded)))


def codes_of(group: Any, keys: Sequence[Hashable], n_rows: int) -> Codes:
    """Code of each row under the keys of a fitted rule.

    A group that the rule does not know raises ``ValueError``.
    """
    if group is None and tuple(keys) != (EVERYBODY,):
        raise ValueError(
            f"The rule was fitted for groups {list(keys)!r}, but no group was given. "
            "Pass the group of each row."
        )
    codes, present = encode_groups(group, n_rows)
    position = {typed(key): number for number, key in enumerate(keys)}
    unknown = [key for key in present if typed(key) not in position]
    if unknown:
        raise ValueError(
            f"Groups {unknown!r} were not seen when the rule was fitted; it knows "
            f"{list(keys)!r}. Refit with rows of these groups or map them to a known "
            "one."
        )
    table = np.array([position[typed(key)] for key in present], dtype=np.intp)
    if np.array_equal(table, np.arange(len(table))):
        return codes
    return table[codes]


def key_to_json(key: Hashable) -> Any:
    """Key as JSON keeps it: str, int and bool stay typed, tuples become lists."""
    if isinstance(key, tuple):
        return [key_to_json(part) for part in key]
    if isinstance(key, str | int):
        return key
    raise ValueError(
        f"Group {key!r} of type {type(key).__name__} cannot be exported. "
        "Recode the groups to str, int or bool (or tuples of them) before fitting."
    )


def key_from_json(value: Any) -> Hashable:
    """Key back from its JSON form."""
    if isinstance(value, list):
        return tuple(key_from_json(part) for part in value)
    if isinstance(value, str | int):
        return value
    raise ValueError(f"A group key must be a string, an integer or a list: {value!r}.")


def typed(key: Hashable) -> Hashable:
    """Key that keeps 1, True and 1.0 apart in a dictionary."""
    if isinstance(key, tuple):
        return tuple(typed(part) for part in key)
    return (type(key).__name__, key)


def _columns(group: Any) -> list[Any]:
    """Return the one or several columns of a group argument."""
    if type(group) in (np.ndarray, np.memmap) and group.ndim == 1:
        return [group]
    if nw.dependencies.is_into_dataframe(group):
        frame = nw.from_native(group, eager_only=True)
        return list(frame.iter_columns())
    if nw.dependencies.is_into_series(group):
        return [nw.from_native(group, series_only=True)]
    if hasattr(group, "to_pylist"):  # an Arrow array; narwhals knows chunked ones only
        group = group.to_pylist()
    elif isinstance(group, np.ma.MaskedArray):
        group = group.tolist()
    array = group if isinstance(group, np.ndarray) else _as_array(list(group))
    if array.ndim == 2:
        return [array[:, j] for j in range(array.shape[1])]
    if array.ndim != 1:
        raise ValueError(
            f"The group must have one or two dimensions, got shape {array.shape}."
        )
    return [array]


def _as_array(values: list[Any]) -> NDArray[Any]:
    """Array of the values that changes none of them, two-dimensional for rows."""
    if any(isinstance(value, list | np.ndarray) for value in values):
        return np.array(values, dtype=object)
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and issubclass(kinds.pop(), int | np.integer | np.bool_):
        array = np.asarray(values)
        if array.dtype.kind in "biu":  # integers beyond 64 bits become floats
            return array
    return _objects(values)


def _objects(values: list[Any]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _encode_column(column: Any) -> tuple[Codes, Keys]:
    if isinstance(column, nw.Series):
        n_missing = int(column.null_count())
        if n_missing and not column.dtype.is_float():
            raise _missing(n_missing)
        categorical = isinstance(column.dtype, nw.Categorical | nw.Enum)
        # The categories of pandas can be of any type, which a cast would lose.
        if categorical and not column.implementation.is_pandas_like():
            column = column.cast(nw.String)
        column = column.to_numpy()
    if column.dtype.kind == "f":
        n_missing = int(np.isnan(column).sum())
        if n_missing:
            raise _missing(n_missing)
    if column.dtype.kind in "biu":
        codes, values = _count_integers(column)
    elif column.dtype.kind in "fU":
        values, codes = np.unique(column, return_inverse=True)
    else:
        return _encode_objects(column)
    return codes.astype(np.intp, copy=False), tuple(values.tolist())


def _count_integers(column: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Code integers by a table of their range, or by sorting where it is wide."""
    if not len(column):
        return np.zeros(0, dtype=np.intp), column
    numbers = column.view(np.uint8) if column.dtype == bool else column
    low, high = int(numbers.min()), int(numbers.max())
    beyond = high > np.iinfo(np.intp).max
    if beyond or high - low > _WIDEST_TABLE * len(column):
        values, codes = np.unique(column, return_inverse=True)
        return codes.astype(np.intp, copy=False), values
    offset = numbers.astype(np.intp, copy=False)
    if low:
        offset = offset - low
    present = _present(offset, high - low + 1)
    values = (present + low).astype(column.dtype)
    if len(present) == high - low + 1:
        return offset, values
    table = np.zeros(high - low + 1, dtype=np.intp)
    table[present] = np.arange(len(present))
    return table[offset], values


def _present(codes: Codes, n_codes: int) -> NDArray[np.intp]:
    """Codes that occur; a first look at some rows often shows them all."""
    first = np.bincount(codes[: 64 * n_codes], minlength=n_codes)
    counts = first if first.all() else np.bincount(codes, minlength=n_codes)
    return np.flatnonzero(counts)


def _encode_objects(column: Iterable[Any]) -> tuple[Codes, Keys]:
    """Code hashables; equal values of unlike type (1 and True) are refused."""
    seen: dict[tuple[Any, Any], int] = {}
    raw = np.fromiter(
        (seen.setdefault((_types(value), value), len(seen)) for value in column),
        dtype=np.intp,
    )
    values = [value for _, value in seen]
    absent = np.array([_is_missing(value) for value in values], dtype=bool)
    if absent.any():
        raise _missing(int(absent[raw].sum()))
    plain = [_plain(value) for value in values]
    keys = sorted({typed(key): key for key in plain}.values(), key=_order)
    if len(set(keys)) < len(keys):
        raise ValueError(
            f"Some of the groups {keys!r} are equal in Python although their types "
            "differ (such as 1 and True). Recode them to one type."
        )
    position = {key: number for number, key in enumerate(keys)}
    table = np.array([position[key] for key in plain], dtype=np.intp)
    return table[raw], tuple(keys)


def _intersect(coded: list[tuple[Codes, Keys]]) -> tuple[Codes, Keys]:
    joint = coded[0][0]
    for codes, keys in coded[1:]:
        joint = joint * len(keys) + codes
    codes, present = _count_integers(joint)
    combinations = np.unravel_index(present, [len(keys) for _, keys in coded])
    keys = tuple(
        tuple(column[int(part)] for (_, column), part in zip(coded, parts, strict=True))
        for parts in zip(*combinations, strict=True)
    )
    return codes, keys


def _types(value: Any) -> Any:
    """Type of a value, or of the parts of a tuple: (1,) equals (True,) in Python."""
    if isinstance(value, tuple):
        return tuple(_types(part) for part in value)
    return value.__class__


def _plain(value: Any) -> Hashable:
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value  # nanoseconds would become integers
    if isinstance(value, np.generic):
        return value.item()  # type: ignore[no-any-return]
    return str.__str__(value) if isinstance(value, str) else value


def _order(key: Hashable) -> tuple[Any, ...]:
    if isinstance(key, tuple):
        return ("tuple", tuple(_order(part) for part in key))
    comparable = isinstance(key, str | int | float)
    return (type(key).__name__, key if comparable else repr(key))


def _is_missing(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_is_missing(part) for part in value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | np.datetime64) and value != value


def _missing(count: int) -> ValueError:
    return ValueError(
        f"The group is missing in {count} rows. Drop these rows or give them a group "
        "of their own (such as 'unknown')."
    )
