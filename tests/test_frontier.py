"""The frontier: what it holds at its ends, and in between."""

import numpy as np
import pytest

from fairpul import (
    Capacity,
    Frontier,
    GroupCounts,
    GroupScores,
    RecallFloor,
    fit_rule,
    frontier,
)

KNOWN = {"a": 0.5, "b": 0.8}
CONSTRAINTS = {
    "equal_opportunity": ["tpr"],
    "equalized_odds": ["tpr", "fpr"],
    "predictive_equality": ["fpr"],
    "demographic_parity": ["selection_rate"],
}


def make_scores(n=3000, seed=0, most_labeled=None):
    """Two groups with different priors; group "a" keeps some of its labels."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "a", "b")
    posterior = rng.beta(1, 2 + 2 * (group == "a"), n)
    score = posterior * np.where(group == "a", 0.5, 0.8)
    labeled = rng.random(n) < score
    if most_labeled is not None:
        rare = labeled & (group == "a")
        labeled &= ~(rare & (np.cumsum(rare) > most_labeled))
    return GroupScores(score, labeled, group)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_by_default_it_goes_from_equal_rates_to_rates_left_alone(constraint):
    scores = make_scores()
    curve = frontier(scores, constraint=constraint, label_frequency=KNOWN)
    assert isinstance(curve, Frontier)
    equal, free = (
        fit_rule(scores, constraint=c, label_frequency=KNOWN, lottery=True)
        for c in (constraint, None)
    )
    gap = max(free.expected.gaps[rate].estimate for rate in CONSTRAINTS[constraint])
    # The precision of the LP, here and below.
    np.testing.assert_allclose(curve.tolerances, np.linspace(0, gap, 21), atol=1e-9)
    assert curve.costs[0] == pytest.approx(equal.objective_value, abs=1e-9)
    assert curve.costs[-1] == pytest.approx(free.objective_value, abs=1e-9)
    assert curve.costs[0] > curve.costs[-1] + 1e-6
    # The least cost is convex in the tolerance and falls.
    assert (np.diff(curve.costs) <= 1e-9).all()
    assert (np.diff(curve.costs, 2) >= -1e-9).all()
    assert (curve.gaps <= curve.tolerances + 1e-9).all()
    assert len(curve.rules) == 21
    for rule, tolerance in zip(curve.rules, curve.tolerances, strict=True):
        assert set(rule.tolerance.values()) == {tolerance}
        assert rule.realized == rule.expected
        assert rule.certificate < 1e-9


@pytest.mark.parametrize("objective", [RecallFloor(0.6), Capacity(0.15)])
def test_costs_are_the_objective_of_each_rule(objective):
    scores = make_scores()
    curve = frontier(
        scores,
        constraint="demographic_parity",
        objective=objective,
        tolerances=[0.0, 0.05, 0.2],
        label_frequency=KNOWN,
    )
    for rule, cost, tolerance in zip(
        curve.rules, curve.costs, curve.tolerances, strict=True
    ):
        alone = fit_rule(
            scores,
            constraint="demographic_parity",
            objective=objective,
            tolerance=tolerance,
            label_frequency=KNOWN,
            lottery=True,
        )
        assert rule.objective == objective
        assert cost == rule.objective_value
        assert cost == pytest.approx(alone.objective_value, abs=1e-9)
    better = np.diff(curve.costs) * (1 if isinstance(objective, Capacity) else -1)
    assert (better >= -1e-9).all()


def test_a_prior_by_group_stands_for_the_label_frequency():
    scores = make_scores()
    prior = {
        key: scores.hull(s).labeled_share / KNOWN[key]
        for s, key in enumerate(scores.groups)
    }
    by_prior = frontier(scores, tolerances=0.05, class_prior=prior)
    by_frequency = frontier(scores, tolerances=0.05, label_frequency=KNOWN)
    np.testing.assert_allclose(by_prior.costs, by_frequency.costs, atol=1e-12)
    assert by_prior.tolerances.tolist() == [0.05]


@pytest.mark.filterwarnings("ignore:A bin at a threshold holds 0.16% of 'a', 0.22%")
def test_counts_of_the_same_rows_give_nearly_the_same_curve():
    scores = make_scores()
    counts = GroupCounts.from_scores(scores)
    tolerances = [0.0, 0.05, 0.1]
    of_rows, of_counts = (
        frontier(rows, tolerances=tolerances, label_frequency=KNOWN)
        for rows in (scores, counts)
    )
    # What the heaviest bin at a cut can move each of TPR and FPR by.
    np.testing.assert_allclose(of_rows.costs, of_counts.costs, atol=2 * 0.0022)


@pytest.mark.filterwarnings("ignore:.*fewer than 50 labeled")
def test_the_gap_of_an_fpr_that_rests_on_few_labels_is_nan():
    scores = make_scores(most_labeled=15)
    for constraint, rates in CONSTRAINTS.items():
        curve = frontier(scores, constraint=constraint, label_frequency=KNOWN)
        assert np.isfinite(curve.tolerances).all()
        unknown = "fpr" in rates
        assert np.isnan(curve.gaps).all() == unknown
        gaps = curve.rules[0].expected.gaps
        assert np.isnan([gaps[rate].estimate for rate in rates]).any() == unknown


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"constraint": None}, ValueError, "needs a constraint, one of"),
        ({"constraint": "parity"}, ValueError, "needs a constraint, one of"),
        ({"tolerances": [0.1, 2]}, ValueError, r"in \[0, 1\], got 2\.0"),
        ({"tolerances": [np.nan]}, ValueError, r"in \[0, 1\], got nan"),
        ({"objective": "cost"}, TypeError, "objective must be"),
        ({"label_frequency": 0.5, "class_prior": 0.4}, ValueError, "not both"),
    ],
)
def test_bad_options_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        frontier(make_scores(), **options)
