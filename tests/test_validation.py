import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

from fairpul._validation import (
    check_cluster,
    check_labels,
    check_row_id,
    check_score,
    check_weight,
)


@pytest.mark.parametrize(
    ("y", "codes"),
    [
        ([1, 0, 0], [0, 1]),
        ([1, -1, -1], [-1, 1]),
        ([True, False, False], [False, True]),
        (np.array([1.0, 0.0, 0.0]), [0.0, 1.0]),
        (np.array([1, 0, 0], dtype=np.uint8), [0, 1]),
        (pd.Series([True, False, False], dtype="boolean"), [0, 1]),
        (pd.Series([1, 0, 0], dtype="Int64"), [0, 1]),
        (pl.Series([True, False, False]), [False, True]),
        (pa.array([1, 0, 0]), [0, 1]),
    ],
)
def test_every_coding_of_labels_is_read_and_kept(y, codes):
    labeled, classes = check_labels(y)
    assert labeled.dtype == bool
    assert labeled.tolist() == [True, False, False]
    assert classes.tolist() == codes


def test_nullable_columns_keep_their_kind_of_number():
    counts = check_labels(pd.Series([1, 0], dtype="Int64"))[1]
    assert counts.dtype == np.int64
    assert check_labels(pd.Series([True, False], dtype="boolean"))[1].dtype == bool


@pytest.mark.parametrize(
    "check",
    [
        check_labels,
        check_score,
        lambda column: check_weight(column, 3),
        lambda column: check_cluster(column, 3),
        lambda column: check_row_id(column, 3),
    ],
)
def test_masked_values_are_not_read_from_under_the_mask(check):
    whole = np.ma.masked_array([1, 0, 0], [False, False, False])
    check(whole)
    with pytest.raises(ValueError, match="masked in 1 rows"):
        check(np.ma.masked_array([1, 0, 0], [False, True, False]))


def test_classes_keep_the_dtype_of_the_caller():
    assert check_labels(np.array([1, 0], dtype=np.int8))[1].dtype == np.int8
    assert check_labels([True, False])[1].dtype == bool


@pytest.mark.parametrize(
    "y",
    [
        ["1", "0"],
        [1, 2],
        [0, 2],
        [-1, 0, 1],
        [-1, 0],
        np.array([2, 1], dtype=np.uint8),
        [1.0, 2.0],
    ],
)
def test_other_values_are_refused_as_labels(y):
    with pytest.raises(ValueError, match=r"Labels must be 1 or True .* got the values"):
        check_labels(y)


@pytest.mark.parametrize(
    ("y", "text"),
    [
        ([1, 1], "labeled rows only"),
        ([True, True], "labeled rows only"),
        ([0, 0], "no labeled row"),
        ([-1, -1], "no labeled row"),
        ([], "no labeled row"),
        (None, "y is None"),
        ([0.5, 1.0], "continuous"),
        ([np.nan, 1.0, np.nan], "NaN in 2 rows"),
        ([[1, 0], [0, 1]], "1d array"),
    ],
)
def test_labels_that_show_nothing_are_refused(y, text):
    with pytest.raises(ValueError, match=text):
        check_labels(y)


def test_a_column_of_labels_is_read_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        labeled, _ = check_labels([[1], [0]])
    assert labeled.tolist() == [True, False]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_float_scores_are_views(kind):
    score = np.linspace(0, 1, 5, dtype=kind)
    checked = check_score(score)
    assert np.shares_memory(checked, score)
    assert checked.dtype == kind


@pytest.mark.parametrize(
    ("score", "kind"),
    [
        ([True, False], np.float32),
        (np.array([1, 0], dtype=np.int8), np.float32),
        (np.array([1, 0], dtype=np.float16), np.float32),
        ([1, 0], np.float64),
        (np.array([1, 0], dtype=np.longdouble), np.float64),
        (np.array([1, 0], dtype=">f8"), np.float64),
        (pd.Series([1.0, 0.0], dtype="Float64"), np.float64),
        (pl.Series([1.0, 0.0]), np.float64),
        (pa.array([1.0, 0.0]), np.float64),
        (np.array([1, 0], dtype=object), np.float64),
    ],
)
def test_other_numbers_become_native_floats(score, kind):
    checked = check_score(score)
    assert checked.dtype == np.dtype(kind)
    assert checked.dtype.isnative
    assert checked.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("score", "text"),
    [
        ([np.nan, 0.5, np.nan], "2 missing and 0 outside"),
        ([1.5, 0.5, -0.1], "0 missing and 2 outside"),
        ([np.inf, 0.5, np.nan], "1 missing and 1 outside"),
        ([None, 0.5], "1 missing and 0 outside"),
        (np.array([1 + 1e-12, 0]), "0 missing and 1 outside"),
        (["a", "b"], "Numeric scores are required"),
        ([[0.1, 0.2], [0.3, 0.4]], r"shape \(2, 2\).* pass the one of labeled rows"),
        ([[[0.1]]], "dim 3"),
    ],
)
def test_bad_scores_are_refused_with_counts(score, text):
    with pytest.raises(ValueError, match=text):
        check_score(score)


def test_no_scores_are_fine():
    assert check_score([]).shape == (0,)


def test_weights_are_views_or_none():
    weight = np.array([0.0, 2.0])
    assert np.shares_memory(check_weight(weight, 2), weight)
    assert check_weight(None, 2) is None
    assert check_weight([1, 3], 2).tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        ([-1, 1], r"nonnegative and not all zero; got values from -1\.0 to 1\.0"),
        ([0, 0], "not all zero"),
        ([np.inf, 1], "finite"),
        ([np.nan, 1], "finite"),
        (["a", "b"], "Numeric sample weights"),
        ([1e300, 1], "between 1e-100 and 1e100"),
        ([0, 1e-300], "between 1e-100 and 1e100"),
        ([1, 2, 3], "sample_weight has 3 rows where 2 were expected"),
    ],
)
def test_bad_weights_are_refused(weight, text):
    with pytest.raises(ValueError, match=text):
        check_weight(weight, 2)


@pytest.mark.parametrize("cluster", [["p9", "p1", "p9"], [9, 1, 9], [9.0, 1.0, 9.0]])
def test_clusters_become_codes(cluster):
    assert check_cluster(cluster, 3).tolist() == [1, 0, 1]
    assert check_cluster(None, 3) is None


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        ([np.nan, 1.0, np.nan], "missing in 2 rows"),
        (["a", None, "b"], "missing in 1 rows"),
        ([1, 2], "cluster has 2 rows where 3 were expected"),
    ],
)
def test_bad_clusters_are_refused(cluster, text):
    with pytest.raises(ValueError, match=text):
        check_cluster(cluster, 3)


@pytest.mark.parametrize(
    "y",
    [
        np.array([True, False], dtype=object),
        np.array([1, 0], dtype=object),
        pd.Series([1, 0], dtype="Int64"),
        pd.Series([True, False], dtype="boolean"),
    ],
)
def test_nullable_and_object_labels_without_gaps_are_taken(y):
    assert check_labels(y)[0].tolist() == [True, False]


def test_object_labels_with_a_gap_are_refused():
    with pytest.raises(ValueError, match="none missing; got a column of NoneType, int"):
        check_labels(np.array([1, None, 0], dtype=object))
