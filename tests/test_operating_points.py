from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from fairpul.operating_points import concave_hull, segment_posterior, sorted_points


def points_of(score, labeled, weight=None):
    weight = None if weight is None else np.asarray(weight, dtype=float)
    return sorted_points(np.asarray(score), np.asarray(labeled, dtype=bool), weight)


def test_cuts_of_a_small_example():
    points = points_of([0.2, 0.9, 0.5, 0.5, 0.1], [0, 1, 1, 0, 0])
    assert points.cut.tolist() == [np.inf, 0.9, 0.5, 0.2, 0.0]
    assert points.accepted.tolist() == [0, 1, 3, 4, 5]
    assert points.labeled.tolist() == [0, 1, 2, 2, 2]
    assert points.tpr.tolist() == [0, 0.5, 1, 1, 1]
    assert points.selection_rate.tolist() == [0, 0.2, 0.6, 0.8, 1]
    assert points.labeled_share == 0.4
    assert points.accepted.dtype.kind == points.labeled.dtype.kind == "i"


def test_rows_of_one_score_are_accepted_together():
    points = points_of([0.5] * 4, [1, 0, 1, 0])
    assert points.cut.tolist() == [np.inf, 0.0]
    assert points.accepted.tolist() == [0, 4]


def test_negative_zero_is_zero():
    assert points_of([0.0, -0.0, 0.5], [1, 0, 1]).accepted.tolist() == [0, 1, 3]


def test_weight_two_is_the_row_twice():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 12, size=40) / 16
    labeled = rng.random(40) < 0.5
    weight = rng.integers(0, 4, size=40)
    weight[0], labeled[0] = 1, True
    weighted = points_of(score, labeled, weight)
    repeated = points_of(np.repeat(score, weight), np.repeat(labeled, weight))
    np.testing.assert_array_equal(weighted.cut, repeated.cut)
    np.testing.assert_array_equal(weighted.accepted, repeated.accepted)
    np.testing.assert_array_equal(weighted.labeled, repeated.labeled)
    np.testing.assert_array_equal(weighted.hull_positions, repeated.hull_positions)


def test_rows_of_weight_zero_make_no_cut():
    points = points_of([0.9, 0.8, 0.5, 0.3, 0.1], [1, 1, 1, 0, 0], [0, 1, 0, 2, 0])
    assert points.cut.tolist() == [np.inf, 0.8, 0.0]
    assert points.accepted.tolist() == [0, 1, 3]
    assert points.labeled.tolist() == [0, 1, 1]


def test_cuts_of_float32_scores_accept_the_rows_they_were_read_from():
    score = np.random.default_rng(0).random(500, dtype=np.float32)
    points = points_of(score, score > 0.5)
    for cut, accepted in zip(points.cut, points.accepted, strict=True):
        assert np.count_nonzero(score >= cut) == accepted


def test_hull_of_a_small_example():
    # (accepted, labeled): (1, 0) lies below the edge from (0, 0) to (2, 2), and (3, 3)
    # on the edge from (2, 2) to (4, 4).
    accepted = np.array([0, 1, 2, 3, 4, 6])
    labeled = np.array([0, 0, 2, 3, 4, 4])
    assert concave_hull(accepted, labeled).tolist() == [0, 2, 3, 4, 5]


def hull_by_brute_force(accepted, labeled):
    """Points that no chord between two others passes above, in exact integers."""
    n = len(accepted)
    x, y = [int(v) for v in accepted], [int(v) for v in labeled]

    def below_some_chord(j):
        return any(
            (y[k] - y[i]) * (x[j] - x[i]) > (y[j] - y[i]) * (x[k] - x[i])
            for i in range(j)
            for k in range(j + 1, n)
        )

    return [j for j in range(n) if not below_some_chord(j)]


steps = st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(st.lists(steps, min_size=1, max_size=12))
def test_hull_agrees_with_brute_force(steps):
    accepted, labeled = np.cumsum([(0, 0), *steps], axis=0).T
    expected = hull_by_brute_force(accepted, labeled)
    assert concave_hull(accepted, labeled).tolist() == expected


def test_long_collinear_runs_are_kept_whole():
    # One labeled in three throughout: thirds are no floats, so only exact products see
    # that all cuts lie on one edge.
    accepted = 3 * np.arange(0, 20_001)
    assert len(concave_hull(accepted, accepted // 3)) == 20_001


def test_hull_of_weighted_points_is_that_of_the_counts():
    rng = np.random.default_rng(5)
    for _ in range(50):
        n = rng.integers(1, 4, size=15)
        accepted = np.cumsum(np.append(0, n))
        labeled = np.cumsum(np.append(0, rng.binomial(n, 0.4)))
        np.testing.assert_array_equal(
            concave_hull(accepted.astype(float), labeled.astype(float)),
            concave_hull(accepted, labeled),
        )


def test_posterior_is_the_isotonic_regression_of_the_label():
    rng = np.random.default_rng(1)
    score = rng.integers(0, 40, size=400) / 40
    labeled = rng.random(400) < score
    hull = points_of(score, labeled).hull()
    posterior = segment_posterior(hull, 0.5)
    expected = IsotonicRegression().fit(score, labeled).predict(score) / 0.5
    segment = np.array([np.flatnonzero(hull.cut[1:] <= one)[0] for one in score])
    # Means of at most 400 zeros and ones.
    np.testing.assert_allclose(posterior[segment], expected, rtol=1e-13)


def test_posterior_by_hand_is_not_clipped():
    hull = points_of([0.9, 0.9, 0.1, 0.1], [1, 1, 0, 1]).hull()
    assert segment_posterior(hull, 0.8).tolist() == [1.25, 0.625]


def test_hull_contains_its_ends_and_is_concave():
    rng = np.random.default_rng(2)
    score = rng.random(300)
    hull = points_of(score, rng.random(300) < score).hull()
    assert (hull.tpr[0], hull.tpr[-1]) == (0, 1)
    assert (hull.cut[0], hull.cut[-1]) == (np.inf, 0)
    slopes = [
        (b[1] - a[1]) / (b[0] - a[0])
        for a, b in pairwise(zip(hull.accepted, hull.labeled, strict=True))
    ]
    assert slopes == sorted(slopes, reverse=True)


@pytest.mark.parametrize("which", [slice(1, 3), [0, 2], np.array([True, False, True])])
def test_points_can_be_selected(which):
    points = points_of([0.9, 0.5], [1, 0])
    np.testing.assert_array_equal(points[which].cut, points.cut[which])
