import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from fairpul.datasets import make_underdiagnosed
from fairpul.diagnostics import (
    calibration,
    label_frequency_ratio,
    recognizes_positives,
    source_differences,
)
from fairpul.tally import tally


def scored(seed, n=4000, slope=1.0, intercept=0.0):
    """Scores whose log odds are off by a slope and an intercept."""
    rng = np.random.default_rng(seed)
    score = rng.beta(1, 3, n)
    return score, rng.random(n) < expit(intercept + slope * logit(score))


def test_calibration_agrees_with_scikit_learn():
    score, labeled = scored(0)
    found = calibration(score, labeled)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    model.fit(logit(score)[:, None], labeled)
    assert found.slope.estimate == pytest.approx(model.coef_[0, 0], rel=1e-4)
    assert found.intercept.estimate == pytest.approx(model.intercept_[0], abs=1e-4)


@pytest.mark.parametrize(("slope", "intercept"), [(1, 0), (0.5, -0.3)])
def test_calibration_covers_the_truth(slope, intercept):
    inside = np.zeros(2)
    for seed in range(200):
        found = calibration(*scored(seed, 1500, slope, intercept))
        inside += [
            value.low <= truth <= value.high
            for value, truth in zip(found, (slope, intercept), strict=True)
        ]
    # 3.2 standard errors of .015 below .95.
    assert (inside / 200 > 0.90).all()


def test_counts_calibrate_as_their_rows_do():
    score, labeled = scored(1)
    score = np.round(score, 2)
    level, number = np.unique(score, return_inverse=True)
    hits = np.bincount(number, labeled)
    counts = calibration(
        np.tile(level, 2),
        np.repeat([1, 0], len(level)),
        count=np.concatenate([hits, np.bincount(number) - hits]),
    )
    rows = calibration(score, labeled)
    for one, other in zip(rows, counts, strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9)


@pytest.mark.parametrize("score", [np.full(100, 0.3), np.linspace(0, 1, 100)])
def test_a_score_without_a_calibration_says_why(score):
    found = calibration(
        score, score > 0.5 if score[0] != score[-1] else np.arange(100) < 9
    )
    assert np.isnan(found.slope.estimate)
    assert "constant" in found.slope.reason


def test_sources_that_label_alike_are_rarely_told_apart():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 150, 3))
    source = rng.integers(3, size=(300, 150))
    p = [source_differences(v, s)[0] for v, s in zip(values, source, strict=True)]
    # .05 of 300 is 15, standard deviation 3.8.
    assert np.sum(np.array(p) < 0.05) < 30


def test_the_column_in_which_sources_differ_is_named():
    rng = np.random.default_rng(0)
    values, source = rng.normal(size=(200, 3)), np.repeat(["a", "b"], 100)
    values[source == "b", 2] += 1
    p_value, column = source_differences(values, source)
    assert p_value < 1e-6
    assert column == 2


def test_one_source_shows_nothing():
    p_value, _ = source_differences(np.arange(20.0)[:, None], np.repeat("a", 20))
    assert np.isnan(p_value)


def test_ratio_of_label_frequencies_is_found_without_an_anchor():
    """P(Y | X, S) = P(Y | X): the class depends on x only, labels on the group."""
    inside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(3000, 1))
        member = rng.random(3000) < expit(x[:, 0])
        positive = rng.random(3000) < expit(2 * x[:, 0] - 1)
        labeled = positive & (rng.random(3000) < np.where(member, 0.7, 0.35))
        found = label_frequency_ratio(x, labeled, member)
        inside += found.low <= 2 <= found.high
    assert inside >= 52  # 3 standard deviations of 1.7 below 57


def test_a_useful_score_recognizes_positives_and_chance_does_not():
    data = make_underdiagnosed(2000, random_state=0)
    codes = (data.group == "m").astype(np.intp)
    labeled, rng = data.labeled == 1, np.random.default_rng(0)
    assert recognizes_positives(tally(data.posterior > 0.5, labeled, codes, 2))
    told = [
        recognizes_positives(tally(rng.random(2000) < 0.3, labeled, codes, 2))
        for _ in range(200)
    ]
    assert sum(told) < 22  # .05 of 200 is 10, standard deviation 3.1
    # Accepting one group only recognizes nobody within a group.
    assert not recognizes_positives(tally(codes == 1, labeled, codes, 2))
