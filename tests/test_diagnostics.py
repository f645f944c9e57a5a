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


@pytest.mark.parametrize("kind", ["weights", "clusters"])
def test_sources_are_told_apart_with_weights_and_clusters_as_rarely(kind):
    """60 patients with 5 visits, or weights that undo a selection by the feature."""
    rng, p = np.random.default_rng(0), []
    for _ in range(300):
        if kind == "clusters":
            cluster = np.repeat(np.arange(60), 5)
            value, source = (
                np.repeat(rng.normal(size=60), 5),
                np.repeat(rng.integers(2, size=60), 5),
            )
            value = value + 0.3 * rng.normal(size=300)
            p.append(source_differences(value[:, None], source, None, cluster)[0])
        else:
            value, source = rng.normal(size=800), rng.integers(2, size=800)
            share = np.where((source == 1) & (value < 0), 0.3, 0.9)
            kept = rng.random(800) < share
            weight = 1 / share[kept]
            p.append(source_differences(value[kept, None], source[kept], weight)[0])
    # .05 of 300 is 15, standard deviation 3.8.
    assert np.sum(np.array(p) < 0.05) < 30


def test_robust_rank_test_finds_what_kruskal_finds():
    rng = np.random.default_rng(0)
    values, source = rng.normal(size=(600, 2)), rng.integers(3, size=600)
    values[:, 1] += 0.25 * source
    plain, column = source_differences(values, source)
    robust, same = source_differences(values, source, np.ones(600))
    assert column == same == 1
    assert np.log10(robust) == pytest.approx(np.log10(plain), rel=0.15)


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
    # Nor does chance by patient, with five visits each.
    patient = np.repeat(np.arange(400), 5)
    positive = np.repeat(rng.random((200, 400)) < 0.3, 5, axis=1)
    by_chance = np.repeat(rng.random((200, 400)) < 0.3, 5, axis=1)
    told = [
        recognizes_positives(tally(a, y, 0 * patient, 1, None, patient))
        for a, y in zip(by_chance, positive, strict=True)
    ]
    assert sum(told) < 22  # of rows taken as independent, some 40
    # Accepting one group only recognizes nobody within a group.
    assert not recognizes_positives(tally(codes == 1, labeled, codes, 2))


def test_repeated_visits_leave_calibration_and_ratio_as_uncertain_as_their_patients():
    data = make_underdiagnosed(2000, random_state=0)
    member, labeled = data.group == "m", data.labeled == 1
    visit = np.repeat(np.arange(2000), 4)
    once = calibration(data.score, labeled)
    robust = calibration(data.score[visit], labeled[visit], cluster=visit)
    naive = calibration(data.score[visit], labeled[visit])
    for one, four, wrong in zip(once, robust, naive, strict=True):
        # t with 1999 degrees is 1.0006 times as wide as the normal.
        assert four.high - four.low == pytest.approx(one.high - one.low, rel=1e-3)
        assert wrong.high - wrong.low == pytest.approx((one.high - one.low) / 2)
    ratio = label_frequency_ratio(data.X, labeled, member)
    same = label_frequency_ratio(
        data.X[visit], labeled[visit], member[visit], cluster=visit
    )
    # Other folds: the width moves by some percent.
    assert np.log(same.high / same.low) == pytest.approx(
        np.log(ratio.high / ratio.low), rel=0.05
    )
