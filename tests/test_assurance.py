import math

import numpy as np
import pytest
from scipy import stats

from fairpul.assurance import assured_tpr


def j_by_brute_force(recall, m, risk):
    for j in range(1, m + 1):
        if stats.beta.cdf(recall, j, m + 1 - j) <= risk:
            return j
    return None


@pytest.mark.parametrize("recall", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("risk", [0.05, 0.05 / 3, 0.001])
@pytest.mark.parametrize("m", [1, 5, 13, 14, 30, 120, 999])
def test_smallest_count_agrees_with_brute_force(recall, m, risk):
    j = j_by_brute_force(recall, m, risk)
    found = assured_tpr(recall, m, risk)
    assert math.isnan(found) if j is None else found == j / m


def test_fourteen_labeled_rows_are_the_least_for_a_recall_of_80_percent():
    # All 14 are above the cut with probability 0.8**14 = 0.044 if the TPR is 0.8.
    assert 0.8**14 <= 0.05 < 0.8**13
    assert assured_tpr(0.8, 14, 0.05) == 1.0
    assert math.isnan(assured_tpr(0.8, 13, 0.05))


@pytest.mark.parametrize("m", [20, 100.0, 400])
def test_assured_tpr_is_above_the_recall_and_falls_with_more_rows(m):
    tpr = assured_tpr(0.7, m, 0.05)
    assert 0.7 < tpr <= 1
    assert assured_tpr(0.7, 4 * m, 0.05) < tpr


def test_less_risk_needs_a_higher_tpr():
    levels = [assured_tpr(0.7, 100, risk) for risk in (0.2, 0.05, 0.01, 0.001)]
    assert levels == sorted(levels)
    assert len(set(levels)) == 4


def test_fractional_sizes_lie_between_whole_ones():
    for size in (40.3, 40.5, 40.9):
        tpr = assured_tpr(0.7, size, 0.05)
        # One labeled row more or less moves j by at most one.
        assert abs(tpr - assured_tpr(0.7, 40, 0.05)) <= 2 / 40


@pytest.mark.parametrize("size", [0.0, 0.4, 0.99])
def test_less_than_one_labeled_row_assures_nothing(size):
    assert math.isnan(assured_tpr(0.5, size, 0.05))


@pytest.mark.parametrize(("recall", "m"), [(0.8, 60), (0.5, 25), (0.9, 200)])
def test_true_tpr_is_below_the_floor_at_most_as_often_as_the_risk(recall, m):
    # Positives score uniformly, so the true TPR of "score >= cut" is 1 - cut.
    rng = np.random.default_rng(0)
    j = round(assured_tpr(recall, m, 0.05) * m)
    ranked = np.sort(rng.random((20_000, m)), axis=1)[:, ::-1]
    true_tpr = 1 - ranked[:, j - 1]
    missed = np.mean(true_tpr < recall)
    error = np.sqrt(0.05 * 0.95 / 20_000)
    assert missed <= 0.05 + 4 * error
    # One row less would miss too often: the count is the smallest.
    assert np.mean(1 - ranked[:, j - 2] < recall) > 0.05 - 4 * error


def test_a_floor_of_zero_asks_for_nothing():
    assert assured_tpr(0.0, 100, 0.05) == 0.0
