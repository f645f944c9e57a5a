import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logit

from fairpul.sensitivity import (
    false_label_break_even,
    fpr_flip,
    odds_ratio,
    shifted_tpr,
)

shares = st.floats(0.01, 0.99)

#: P(labeled | positive, accepted) and P(labeled | positive, rejected).
MECHANISMS = {
    "at random": (0.4, 0.4),
    "accepted are found more often": (0.6, 0.3),
    "rejected are found more often": (0.2, 0.5),
    "hardly any rejected": (0.5, 0.02),
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_odds_identity_to_three_digits(mechanism):
    """Odds of the observed TPR = labeling ratio times odds of the true one."""
    of_accepted, of_rejected = MECHANISMS[mechanism]
    rng = np.random.default_rng(5)
    n, tpr = 2_000_000_000, 0.7  # positives
    accepted = rng.binomial(n, tpr)
    labeled_accepted = rng.binomial(accepted, of_accepted)
    labeled = labeled_accepted + rng.binomial(n - accepted, of_rejected)
    observed = labeled_accepted / labeled
    recovered = shifted_tpr(observed, of_accepted / of_rejected)
    # The fewest labels are 1.2e7 of rejected positives: 5 standard errors are 3e-4.
    assert recovered == pytest.approx(tpr, abs=5e-4)
    ratio = (observed / (1 - observed)) / (tpr / (1 - tpr))
    assert ratio == pytest.approx(of_accepted / of_rejected, rel=2e-3)


def test_gamma_recovers_the_labeling_ratio_of_a_disparity_by_labeling_alone():
    """Both groups have the same true TPR; labels of one favor the accepted 2 to 1."""
    rng = np.random.default_rng(0)
    m, tpr, ratio, covered = 600, 0.6, 2.0, 0
    observed = expit(logit(tpr) + np.log(ratio))
    for _ in range(2000):
        higher, lower = rng.binomial(m, [observed, tpr]) / m
        estimate, low, high = odds_ratio(higher, lower, m, m)
        covered += low <= ratio <= high
    assert estimate == pytest.approx(ratio, rel=0.5)
    # Standard error .005 of a coverage of .95.
    assert 0.935 < covered / 2000 < 0.97


def test_odds_ratio_agrees_with_scipy():
    table = np.array([[120, 40], [90, 60]])
    found = odds_ratio(120 / 160, 90 / 150, 160, 150)
    assert found[0] == pytest.approx(
        stats.contingency.odds_ratio(table, kind="sample").statistic
    )
    half = 1.959964 * np.sqrt((1 / (table + 0.5)).sum())
    assert np.log(found[2] / found[0]) == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_extremes_of_many_equal_groups_need_no_labeling_bias(k):
    """Gamma* is 1 in .95 of samples from groups of one TPR, however many there are."""
    rng, runs, false = np.random.default_rng(0), 2000, 0
    for tprs in rng.binomial(200, 0.7, (runs, k)) / 200:
        _, low, _ = odds_ratio(tprs.max(), tprs.min(), 200, 200, n_groups=k)
        false += low > 1
    # Five standard errors of .005 about .05; the interval of one pair gives .20 at 4.
    assert 0.025 < false / runs < 0.075


def test_few_clusters_widen_the_odds_ratio_as_t_does():
    _, low, _ = odds_ratio(0.75, 0.5, 160, 160)
    _, wider, _ = odds_ratio(0.75, 0.5, 160, 160, df=14)
    ratio = np.log(3 / wider) / np.log(3 / low)
    assert ratio == pytest.approx(stats.t.ppf(0.975, 14) / stats.norm.ppf(0.975))


def test_odds_ratio_of_a_group_without_misses_is_finite():
    estimate, low, high = odds_ratio(1.0, 0.5, 50, 50)
    assert 1 < low < estimate < high < np.inf


@given(shares, st.floats(0.2, 5))
def test_shifting_back_is_no_shift(tpr, ratio):
    assert shifted_tpr(shifted_tpr(tpr, ratio), 1 / ratio) == pytest.approx(tpr)


@given(shares, shares, st.floats(0, 0.5), st.floats(0, 1))
def test_false_labels_at_the_break_even_close_the_gap(tpr, fpr, phi, other):
    """Observed T = (1 - phi) TPR + phi F; both groups have the same TPR."""
    observed = (1 - phi) * tpr + phi * fpr
    if fpr < observed < tpr:
        assert false_label_break_even(tpr, observed, fpr) == pytest.approx(phi)
        assert false_label_break_even(tpr, observed) <= phi + 1e-12


def test_false_labels_by_hand():
    assert false_label_break_even(0.8, 0.6) == pytest.approx(0.25)  # .2/.8 < .2/.4
    assert false_label_break_even(0.4, 0.2) == pytest.approx(0.25)  # .2/.8 < .2/.4
    assert false_label_break_even(0.6, 0.6) == 0
    assert np.isnan(false_label_break_even(0.6, 0.3, 0.4))


@given(shares, shares, st.floats(0.05, 0.9), st.floats(0.05, 0.95))
def test_fprs_are_equal_at_the_flip(tpr, fpr, prior, c):
    if abs(tpr - fpr) > 0.01:
        selection_rate = prior * tpr + (1 - prior) * fpr
        flip = fpr_flip(tpr, selection_rate, prior * c, fpr)
        assert flip == pytest.approx(c, rel=1e-6)


def test_no_prior_may_make_fprs_equal():
    assert np.isnan(fpr_flip(0.8, 0.3, 0.1, 0.9))
    assert np.isnan(fpr_flip(0.8, 0.3, 0.1, 0.8))
