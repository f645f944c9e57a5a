import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpul._groups import (
    EVERYBODY,
    codes_of,
    encode_groups,
    key_from_json,
    key_to_json,
    typed,
)

STRINGS = ["m", "f", "m", "x"]
INTEGERS = [7, -3, 7, 250]
BOOLEANS = [True, False, True, True]

SPELLINGS = {
    "list": (STRINGS, STRINGS),
    "tuple": (tuple(STRINGS), STRINGS),
    "array of strings": (np.array(STRINGS), STRINGS),
    "array of objects": (np.array(STRINGS, dtype=object), STRINGS),
    "list of NumPy strings": ([np.str_(key) for key in STRINGS], STRINGS),
    "pandas str": (pd.Series(STRINGS, index=[9, 2, 5, 5]), STRINGS),
    "pandas object": (pd.Series(STRINGS, dtype=object), STRINGS),
    "pandas nullable string": (pd.Series(STRINGS, dtype="string"), STRINGS),
    "pandas Arrow string": (
        pd.Series(STRINGS, dtype=pd.ArrowDtype(pa.string())),
        STRINGS,
    ),
    "pandas index": (pd.Index(STRINGS), STRINGS),
    "pandas categorical": (pd.Series(STRINGS).astype("category"), STRINGS),
    "pandas ordered categorical": (
        pd.Series(pd.Categorical(STRINGS, ["x", "m", "f"], ordered=True)),
        STRINGS,
    ),
    "pandas categorical of integers": (pd.Series(INTEGERS, dtype="category"), INTEGERS),
    "pandas Categorical": (pd.Categorical(INTEGERS), INTEGERS),
    "polars strings": (pl.Series(STRINGS), STRINGS),
    "polars Categorical": (pl.Series(STRINGS, dtype=pl.Categorical), STRINGS),
    "polars Enum": (pl.Series(STRINGS, dtype=pl.Enum(["x", "m", "f"])), STRINGS),
    "Arrow array": (pa.array(STRINGS), STRINGS),
    "Arrow chunked array": (pa.chunked_array([STRINGS[:1], STRINGS[1:]]), STRINGS),
    "Arrow dictionary": (pa.array(STRINGS).dictionary_encode(), STRINGS),
    "list of integers": (INTEGERS, INTEGERS),
    "list of NumPy and Python integers": ([7, np.int64(-3), 7, 250], INTEGERS),
    "int16": (np.array(INTEGERS, dtype=np.int16), INTEGERS),
    "integers every other": (np.repeat(INTEGERS, 2)[::2], INTEGERS),
    "pandas Int64": (pd.Series(INTEGERS, dtype="Int64"), INTEGERS),
    "polars integers": (pl.Series(INTEGERS), INTEGERS),
    "Arrow integers": (pa.array(INTEGERS), INTEGERS),
    "uint8": (np.array([7, 0, 7, 255], dtype=np.uint8), [7, 0, 7, 255]),
    "list of booleans": (BOOLEANS, BOOLEANS),
    "booleans": (np.array(BOOLEANS), BOOLEANS),
    "pandas boolean": (pd.Series(BOOLEANS, dtype="boolean"), BOOLEANS),
    "polars booleans": (pl.Series(BOOLEANS), BOOLEANS),
}
if hasattr(np.dtypes, "StringDType"):  # since NumPy 2
    as_text = np.array(STRINGS, dtype=np.dtypes.StringDType())
    SPELLINGS["array of StringDType"] = (as_text, STRINGS)


@pytest.mark.parametrize(("group", "values"), SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_gives_plain_sorted_keys(group, values):
    codes, keys = encode_groups(group, 4)
    assert keys == tuple(sorted(set(values)))
    assert {type(key) for key in keys} == {type(values[0])}
    assert [keys[code] for code in codes] == values
    assert codes.dtype == np.intp


PAIRS = [("m", 1), ("f", 2), ("m", 2), ("m", 1)]
COLUMNS = {"sex": ["m", "f", "m", "m"], "site": [1, 2, 2, 1]}
SEVERAL_COLUMNS = {
    "list of tuples": PAIRS,
    "list of lists": [list(pair) for pair in PAIRS],
    "object array": np.array(PAIRS, dtype=object),
    "pandas frame": pd.DataFrame(COLUMNS),
    "pandas frame with integer names": pd.DataFrame(COLUMNS).set_axis([1, 0], axis=1),
    "polars frame": pl.DataFrame(COLUMNS),
    "Arrow table": pa.table(COLUMNS),
}


@pytest.mark.parametrize("group", SEVERAL_COLUMNS.values(), ids=SEVERAL_COLUMNS)
def test_several_columns_give_one_group_per_combination_that_occurs(group):
    codes, keys = encode_groups(group, 4)
    assert keys == (("f", 2), ("m", 1), ("m", 2))
    assert codes.tolist() == [1, 0, 2, 1]
    assert all(type(site) is int for _, site in keys)


def test_two_dimensional_array_of_strings_gives_tuples():
    _, keys = encode_groups(np.array([["f", "x"], ["m", "y"]]), 2)
    assert keys == (("f", "x"), ("m", "y"))


def test_frame_of_one_column_gives_plain_keys():
    assert encode_groups(pd.DataFrame({"g": ["b", "a"]}), 2)[1] == ("a", "b")


def test_no_group_puts_every_row_into_one():
    codes, keys = encode_groups(None, 3)
    assert codes.tolist() == [0, 0, 0]
    assert keys == (EVERYBODY,)
    assert codes_of(None, keys, 2).tolist() == [0, 0]


@pytest.mark.parametrize(
    "values",
    [
        [-(2**63), 2**63 - 1, 0],
        [2**63 - 1, 2**63 - 2, 0],
        [10**12, -(10**12), 5],
    ],
)
def test_integers_of_any_range_keep_their_values(values):
    codes, keys = encode_groups(np.array(values), 3)
    assert keys == tuple(sorted(values))
    assert [keys[code] for code in codes] == values


def test_unsigned_integers_above_int64_keep_their_values():
    values = [2**63 + 1, 2**63, 2**63 + 1]
    for group in (values, np.array(values, dtype=np.uint64)):
        codes, keys = encode_groups(group, 3)
        assert keys == (2**63, 2**63 + 1)
        assert codes.tolist() == [1, 0, 1]


def test_integers_beyond_64_bits_do_not_become_floats():
    _, keys = encode_groups([2**63 + 1, -1, 2**63 + 2], 3)
    assert keys == (-1, 2**63 + 1, 2**63 + 2)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint32, np.int64])
def test_integers_with_gaps_agree_with_unique(kind):
    group = np.random.default_rng(0).choice([0, 3, 90, 100], size=500).astype(kind)
    codes, keys = encode_groups(group, 500)
    values, expected = np.unique(group, return_inverse=True)
    assert keys == tuple(values.tolist())
    np.testing.assert_array_equal(codes, expected)


hashables = st.one_of(
    st.text(max_size=2), st.integers(-3, 3), st.tuples(st.text(max_size=1), st.just(1))
)


@given(st.lists(hashables, min_size=1), st.randoms())
def test_keys_depend_on_the_set_of_keys_alone(group, random):
    codes, keys = encode_groups(group, len(group))
    order = list(range(len(group)))
    random.shuffle(order)
    shuffled, same_keys = encode_groups([group[i] for i in order], len(group))
    assert same_keys == keys
    np.testing.assert_array_equal(shuffled, codes[order])
    assert [keys[code] for code in codes] == group


def test_a_number_and_its_text_stay_two_groups():
    codes, keys = encode_groups([1, "1", 1], 3)
    assert keys == (1, "1")
    assert codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "group",
    [
        [1, True],
        [1, 1.0],
        [0, False, "a"],
        [("a", 1), ("a", True)],
        np.array([["a", 1], ["a", True]], dtype=object),
    ],
)
def test_keys_that_are_equal_in_python_but_unlike_are_refused(group):
    with pytest.raises(ValueError, match="equal in Python although their types differ"):
        encode_groups(group, len(group))


def test_text_that_prints_otherwise_is_its_text():
    class Female(str):
        __slots__ = ()

        def __str__(self):
            return "Sex.FEMALE"

    codes, keys = encode_groups([Female("f"), "f"], 2)
    assert keys == ("f",)
    assert codes.tolist() == [0, 0]


NAT = np.array(["2020-01-01", "NaT", "NaT"], dtype="datetime64[D]")
MISSING = {
    "None": (["a", None, None], 2),
    "nan among strings": (["a", np.nan, None], 2),
    "floats": (np.array([1.0, np.nan, 2.0]), 1),
    "pd.NA": (["a", pd.NA, "b"], 1),
    "pd.NaT": (["a", pd.NaT, "b"], 1),
    "NumPy NaT": (NAT, 2),
    "masked": (np.ma.array([1, 2, 3], mask=[0, 1, 1]), 2),
    "in a tuple": ([("a", 1), ("a", None), (None, 1)], 2),
    "pandas object": (pd.Series(["a", None, np.nan], dtype=object), 2),
    "pandas str": (pd.Series(["a", None, np.nan]), 2),
    "pandas string": (pd.Series(["a", None, pd.NA], dtype="string"), 2),
    "pandas Int64": (pd.Series([1, None, 2], dtype="Int64"), 1),
    "pandas Float64": (pd.Series([1.0, None, None], dtype="Float64"), 2),
    "pandas categorical": (pd.Series(["a", None, "a"], dtype="category"), 1),
    "pandas frame": (pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, None]}), 2),
    "polars strings": (pl.Series(["a", None, "b"]), 1),
    "polars floats": (pl.Series([1.0, None, float("nan")]), 2),
    "polars Categorical": (pl.Series(["a", None, None], dtype=pl.Categorical), 2),
    "Arrow array": (pa.array(["a", None, "b"]), 1),
    "Arrow chunked": (pa.chunked_array([["a"], [None, None]]), 2),
}


@pytest.mark.parametrize(("group", "count"), MISSING.values(), ids=MISSING)
def test_missing_groups_are_refused_with_their_count(group, count):
    with pytest.raises(ValueError, match=f"missing in {count} rows"):
        encode_groups(group, 3)


@pytest.mark.parametrize("group", [["a"], pd.DataFrame({"a": [1], "b": [2]})])
def test_another_number_of_rows_is_refused(group):
    with pytest.raises(ValueError, match="has 1 rows where 2 were expected"):
        encode_groups(group, 2)


def test_three_dimensions_and_no_column_are_refused():
    with pytest.raises(ValueError, match=r"got shape \(2, 2, 2\)"):
        encode_groups(np.zeros((2, 2, 2)), 2)
    with pytest.raises(ValueError, match="no column"):
        encode_groups(np.zeros((2, 0)), 2)


def test_codes_follow_the_keys_of_the_rule():
    assert codes_of(["m", "m", "f"], ("f", "m"), 3).tolist() == [1, 1, 0]
    assert codes_of(["m"], ("f", "m"), 1).tolist() == [1]
    assert codes_of([], ("f", "m"), 0).tolist() == []


def test_unseen_group_is_named():
    with pytest.raises(ValueError, match=r"Groups \['x'\] were not seen.*\['f', 'm'\]"):
        codes_of(["f", "x"], ("f", "m"), 2)
    with pytest.raises(ValueError, match=r"Groups \[1\] were not seen"):
        codes_of([1], ("1", True), 1)


def test_absent_group_is_refused_where_the_rule_has_groups():
    with pytest.raises(ValueError, match="no group was given"):
        codes_of(None, ("f", "m"), 2)


keys_of_rules = st.recursive(
    st.one_of(st.text(), st.integers(), st.booleans()),
    lambda parts: st.lists(parts, min_size=1, max_size=3).map(tuple),
    max_leaves=4,
)


@given(keys_of_rules)
def test_json_keeps_keys_and_their_types(key):
    assert typed(key_from_json(key_to_json(key))) == typed(key)


@pytest.mark.parametrize(
    "group",
    [
        [0.5],
        [datetime.date(2020, 1, 1)],
        [("a", 0.5)],
        [b"a"],
        np.array(["2020-01-01"], dtype="datetime64[ns]"),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pl.Series([datetime.date(2020, 1, 1)]),
    ],
)
def test_other_types_are_kept_but_not_exported(group):
    codes, (key,) = encode_groups(group, 1)
    assert codes_of(group, [key], 1).tolist() == codes.tolist() == [0]
    with pytest.raises(ValueError, match="cannot be exported"):
        key_to_json(key)


@pytest.mark.parametrize("value", [None, 0.5, {"a": 1}, ["a", None]])
def test_other_types_in_json_are_refused(value):
    with pytest.raises(ValueError, match="must be a string, an integer or a list"):
        key_from_json(value)
