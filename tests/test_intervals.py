import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fairpul.intervals import (
    agresti,
    critical_value,
    difference_se,
    dkw_bounds,
    gap_interval,
    range_quantile,
    tukey_kramer,
    wilson,
)

# Standard errors that are 0 or not much smaller than the others.
standard_errors = st.lists(st.floats(0.02, 1.0), min_size=3, max_size=6)


def test_wilson_of_half_of_a_hundred_by_hand():
    # Center 1/2, half-width sqrt(z^2 (1/400 + z^2/40000)) / (1 + z^2/100).
    z2 = 1.959963984540054**2
    half = math.sqrt(z2 * (1 / 400 + z2 / 40_000)) / (1 + z2 / 100)
    assert wilson(50, 100) == pytest.approx((0.5 - half, 0.5 + half), rel=1e-12)


@pytest.mark.parametrize(("successes", "n"), [(0, 7), (1, 20), (13, 40), (30, 30)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_wilson_agrees_with_scipy(successes, n, level):
    reference = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    # Float precision; scipy leaves 0 and 1 to within a rounding error.
    assert wilson(successes, n, level) == pytest.approx(tuple(reference), abs=1e-12)


def test_wilson_without_rows_is_undefined():
    assert all(math.isnan(end) for end in wilson(0, 0))
    assert all(math.isnan(value) for value in agresti(0, 0))


def test_wilson_of_few_clusters_uses_t():
    # The t quantile takes the place of z, nothing else changes.
    level = 2 * stats.norm.cdf(stats.t.ppf(0.975, 14)) - 1
    assert wilson(12, 30, df=14) == pytest.approx(wilson(12, 30, level), rel=1e-9)


@given(st.floats(0, 1), st.floats(0.5, 1e9), st.floats(0.5, 0.999))
def test_wilson_contains_the_share_and_stays_in_the_unit_interval(share, n, level):
    low, high = wilson(share * n, n, level)
    # Rounding of share * n / n.
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


def test_agresti_adds_two_successes_and_two_failures_or_so():
    z2 = critical_value() ** 2
    center, se = agresti(18, 20)
    assert center == pytest.approx((18 + z2 / 2) / (20 + z2), rel=1e-12)
    assert se == pytest.approx(math.sqrt(center * (1 - center) / (20 + z2)), rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.975])
@pytest.mark.parametrize("k", [3, 6, 20])
def test_range_quantile_of_equal_errors_is_the_studentized_range(k, level):
    expected = 0.3 * stats.studentized_range.ppf(level, k, np.inf)
    # Both sides integrate to about 1e-9.
    assert range_quantile(np.full(k, 0.3), level) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    "se", [(1.0, 0.5), (1.0, 0.3, 0.2), (0.0, 1.0, 1.0, 0.4), (0.1,) * 5 + (1.0,)]
)
def test_range_quantile_agrees_with_brute_force(se):
    errors = np.random.default_rng(0).normal(size=(400_000, len(se))) * se
    exceeded = np.ptp(errors, axis=1) > range_quantile(se)
    # Four standard errors of a share of .05 of 400,000 draws.
    assert exceeded.mean() == pytest.approx(0.05, abs=0.0014)


def test_range_of_two_errors_is_their_hypotenuse():
    assert range_quantile([3, 4]) == pytest.approx(5 * critical_value(), rel=1e-12)


def test_range_of_one_error_among_exact_rates_is_its_absolute_value():
    # Exact rates are widened to a hundredth of the widest error.
    assert range_quantile([0, 2, 0]) == pytest.approx(2 * critical_value(), rel=0.005)


def test_range_of_one_error_or_of_none_is_zero():
    assert range_quantile([]) == 0
    assert range_quantile([0.3]) == 0
    assert range_quantile([0.0, 0.0, 0.0]) == 0


@settings(max_examples=25)
@given(standard_errors, st.randoms(use_true_random=False), st.floats(0.01, 100))
def test_range_quantile_scales_and_forgets_the_order(se, random, factor):
    shuffled = random.sample(se, len(se))
    # The root is found to 1e-10 of the widest error.
    assert range_quantile(np.array(shuffled) * factor) == pytest.approx(
        factor * range_quantile(se), rel=1e-8
    )


@settings(max_examples=25)
@given(standard_errors)
def test_range_quantile_grows_with_every_further_error(se):
    assert range_quantile(se) > range_quantile(se[:-1])
    assert range_quantile(se) < range_quantile(np.full(len(se), max(se))) * (1 + 1e-9)


def test_tukey_kramer_of_two_independent_rates_is_the_usual_interval():
    half = tukey_kramer([0.03, 0.04])
    assert half[0, 1] == pytest.approx(0.05 * critical_value(), rel=1e-12)
    assert half[0, 0] == 0


@pytest.mark.parametrize(("k", "df"), [(2, 14), (2, 80), (4, 30), (4, np.inf)])
def test_tukey_kramer_is_the_studentized_range(k, df):
    expected = stats.studentized_range.ppf(0.95, k, df) * 0.1
    half = tukey_kramer(np.full(k, 0.1), df=df)
    assert half[0, 1] == pytest.approx(expected, rel=1e-6)  # a double integral


def test_rates_that_move_together_differ_by_nothing():
    together = np.ones((2, 2))
    assert difference_se(np.array([0.1, 0.1]), together) == pytest.approx(0, abs=1e-12)
    assert tukey_kramer([0.1, 0.1], df=20, correlation=together).max() < 1e-12


def test_gap_interval_of_two_groups_by_hand():
    error = 0.05 * critical_value()
    tuned = gap_interval([0.6, 0.8], [0.03, 0.04], tuned=True)
    assert tuned == pytest.approx((0.2 - error, 0.2 + error), rel=1e-12)
    low, high = gap_interval([0.6, 0.8], [0.03, 0.04], tuned=False)
    assert high == pytest.approx(0.2 + error, rel=1e-12)
    assert low == pytest.approx(0.2 - 0.05 * critical_value(0.975), rel=1e-12)


def test_gap_interval_of_a_fixed_rule_looks_at_all_pairs():
    # The imprecise middle group may lie further out than the two extreme ones.
    _, high = gap_interval([0.4, 0.5, 0.6], [0.01, 0.2, 0.01], tuned=False)
    assert high == pytest.approx(0.1 + critical_value() * math.hypot(0.01, 0.2))


def test_inflation_widens_the_tuned_interval_by_its_factor():
    _, plain = gap_interval([0.5, 0.5, 0.5], [0.02] * 3, tuned=True)
    _, wide = gap_interval([0.5, 0.5, 0.5], [0.02] * 3, tuned=True, inflation=1.1)
    assert wide == pytest.approx(1.1 * plain, rel=1e-12)


def test_one_group_has_no_gap():
    assert gap_interval([0.4], [0.1], tuned=False) == (0, 0)


@pytest.mark.parametrize("tuned", [True, False])
def test_uncorrelated_tukey_kramer_of_equal_errors_is_the_range_quantile(tuned):
    rates, errors = [0.3, 0.5, 0.7], [0.05] * 3
    independent = gap_interval(rates, errors, tuned=tuned)
    shared = gap_interval(rates, errors, tuned=tuned, correlation=np.eye(3))
    assert shared == pytest.approx(independent, abs=1e-7)  # two integrals


def test_dkw_margins_by_hand():
    margins = dkw_bounds(200, 5000, 0.25, n_groups=2, delta=0.1)
    tail = math.log(2 / (0.1 / 4))
    assert margins.tpr == pytest.approx(math.sqrt(tail / 400))
    assert margins.selection_rate == pytest.approx(math.sqrt(tail / 10_000))
    assert margins.fpr == pytest.approx(
        (margins.selection_rate + 0.25 * margins.tpr) / 0.75
    )


def test_dkw_margins_without_labels_or_negatives_are_undefined():
    assert math.isnan(dkw_bounds(0, 100, 0.2).tpr)
    assert math.isnan(dkw_bounds(50, 100, 1.0).fpr)


def test_dkw_margins_hold_for_all_cuts_at_once():
    rng = np.random.default_rng(1)
    labeled, prior, runs = 0.12, 0.3, 300
    cuts = np.linspace(-3, 4, 141)
    tpr, fpr = stats.norm.sf(cuts - 1), stats.norm.sf(cuts)
    failures = 0
    for _ in range(runs):
        positive = rng.random(1500) < prior
        score = rng.normal(size=1500) + positive
        known = positive & (rng.random(1500) < labeled / prior)
        t = (score[known, None] > cuts).mean(axis=0)
        q = (score[:, None] > cuts).mean(axis=0)
        margins = dkw_bounds(known.sum(), 1500, prior)
        f = (q - prior * t) / (1 - prior)
        failures += (
            np.abs(t - tpr).max() > margins.tpr or np.abs(f - fpr).max() > margins.fpr
        )
    # The bound is .05; it is loose, so no run in 300 exceeds it by chance alone.
    assert failures / runs <= 0.05
