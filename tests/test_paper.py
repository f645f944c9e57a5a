"""The paper's method, and its errata E1 to E7: each with the test that shows it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from fairpul import DecisionRule, FairPULClassifier
from fairpul.datasets import make_two_groups, make_underdiagnosed
from fairpul.objectives import MinimumCost
from fairpul.paper import (
    anneal,
    box,
    cuts,
    dual_annealing_search,
    objective,
    plug_in,
    search,
    unfairness,
    weights,
)
from fairpul.solvers import solve

# Sums of at most a few hundred scores, in another order.
ROUNDING = 1e-12


def scores_of(data):
    """True scores, group codes and label frequency of simulated data."""
    group = np.unique(data.group, return_inverse=True)[1]
    return data.score, group, next(iter(data.label_frequency.values()))


@pytest.fixture(scope="module")
def two_groups():
    return plug_in(*scores_of(make_two_groups(random_state=0)))


@pytest.fixture(scope="module")
def three_groups():
    data = make_underdiagnosed(
        3000, groups=("a", "b", "c"), label_frequency=0.5, random_state=0
    )
    return plug_in(*scores_of(data))


def rates_row_by_row(score, group, c, gain, loss):
    """TPR and FPR by the formula of the paper, one pass over all rows."""
    found = []
    for s in range(len(gain)):
        f = score[group == s]
        accepted = f / c * gain[s] - (1 - f / c) * loss[s] >= 0
        fpr = 1 - ((c - f) * ~accepted).mean() / (c - f.mean())
        found.append(((f * accepted).mean() / f.mean(), fpr))
    return found


def plug_in_error(estimates, rates):
    """Error rate at the TPR and FPR of every group, by the estimates."""
    missed = estimates.positives @ (1 - rates[:, 0])
    return missed + estimates.negatives @ rates[:, 1]


# Scores on a grid that no cut of these signs meets, so that rounding decides nothing.
@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.booleans()), min_size=4, max_size=60
    ).filter(lambda rows: len({s for _, s in rows}) == 2),
    st.lists(st.integers(-30, 30), min_size=4, max_size=4),
)
def test_prefix_sums_give_the_rates_of_the_papers_formula(rows, sides):
    score = np.array([f for f, _ in rows]) / 97
    group = np.array([int(s) for _, s in rows])
    gain, loss = np.array(sides[:2]) + 0.3137, np.array(sides[2:]) + 0.2719
    found = plug_in(score, group, 0.5).rates(gain.tolist(), loss.tolist())
    expected = rates_row_by_row(score, group, 0.5, gain, loss)
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


def test_without_any_slope_a_rule_accepts_everybody_or_nobody(two_groups):
    (everybody, nobody) = two_groups.rates([1, -1], [-1, 1])
    assert everybody == pytest.approx((1, 1), abs=ROUNDING)
    assert nobody == (0, 0)


def test_cuts_give_the_rates_that_the_search_saw(two_groups):
    multipliers = search(two_groups, "equalized_odds", np.random.RandomState(0))
    found = two_groups.rates(*weights(two_groups, multipliers))
    for s, cut in enumerate(cuts(two_groups, multipliers)):
        f, c = two_groups.score[s], two_groups.label_frequency
        tpr = f[f >= cut].sum() / f.sum()
        fpr = (c - f[f >= cut]).sum() / (c - f).sum()
        assert found[s] == pytest.approx((tpr, fpr), abs=ROUNDING)


def test_the_operating_points_are_those_of_the_cuts(two_groups):
    points = two_groups.points(1)
    for j in (1, 7, len(points) - 1):
        c, cut = two_groups.label_frequency, points.cut[j]
        odds = [(1 - cut / c), cut / c]
        tpr, fpr = two_groups.rates([1, odds[0]], [1, odds[1]])[1]
        prior = points.labeled_share / c
        selection = prior * tpr + (1 - prior) * fpr
        assert points.tpr[j] == pytest.approx(tpr, abs=ROUNDING)
        assert points.selection_rate[j] == pytest.approx(selection, abs=ROUNDING)


def test_a_label_frequency_below_a_groups_mean_score_is_refused():
    with pytest.raises(ValueError, match=r"0\.5 must exceed the mean score 0\.6 of"):
        plug_in(np.array([0.6, 0.6, 0.1, 0.2]), np.array([0, 0, 1, 1]), 0.5)


class TestE1TheSignOfGroupOne:
    def test_at_zero_the_printed_rule_accepts_everybody_and_ours_is_bayes(
        self, two_groups
    ):
        score, c = two_groups.score[1], two_groups.label_frequency
        eta = score / c
        printed = eta * (1 - 0) + (1 - eta) * (1 - 0) >= 0
        assert printed.all()
        assert cuts(two_groups, [0.0, 0.0]) == pytest.approx((c / 2, c / 2))

    def test_the_corrected_rule_minimizes_the_lagrangian(self):
        # Two groups of three equally likely x each; all 64 rules are compared.
        eta = np.array([[0.1, 0.45, 0.8], [0.3, 0.55, 0.9]])
        joint = np.stack([(1 - eta) / 6, eta / 6])
        negatives, positives = joint.sum(axis=2)
        rules = np.array(list(itertools.product([0, 1], repeat=6))).reshape(-1, 2, 3)
        for l1, l2 in [(0, 0), (0.05, -0.03), (-0.1, 0.07), (0.12, 0.1)]:
            tpr = (rules * joint[1]).sum(axis=2) / positives
            fpr = (rules * joint[0]).sum(axis=2) / negatives
            risk = (1 - tpr) @ positives + fpr @ negatives
            tnr_gap = (1 - fpr[:, 1]) - (1 - fpr[:, 0])
            lagrangian = risk + l1 * (tpr[:, 1] - tpr[:, 0]) + l2 * tnr_gap
            gain = 1 + np.array([1, -1]) * l1 / positives
            loss = 1 + np.array([1, -1]) * l2 / negatives
            ours = eta * gain[:, None] - (1 - eta) * loss[:, None] >= 0
            at = int((rules == ours).all(axis=(1, 2)).argmax())
            assert lagrangian[at] == pytest.approx(lagrangian.min(), abs=ROUNDING)
            printed = ours.copy()
            printed[1] = eta[1] * gain[1] + (1 - eta[1]) * loss[1] >= 0
            at = int((rules == printed).all(axis=(1, 2)).argmax())
            assert lagrangian[at] > lagrangian.min() + 0.01


class TestE2NoThresholdsForEqualizedOdds:
    """Negatives N(0, 1); positives N(1, 1) in group 0 and N(2, 1) in group 1."""

    PRIOR = 0.4
    DISTANCE = np.array([1.0, 2.0])

    def rates(self, log_odds):
        """TPR and FPR of both groups where the posterior reaches given log odds."""
        offset = (np.log(self.PRIOR / (1 - self.PRIOR)) - log_odds)[:, None]
        z = offset / self.DISTANCE
        half = self.DISTANCE / 2
        return norm.cdf(z + half), norm.cdf(z - half)

    def test_dual_and_randomized_optimum_agree(self):
        fpr = np.linspace(0, 1, 100_001)[1:-1]
        lower = np.min([norm.cdf(norm.ppf(fpr) + d) for d in self.DISTANCE], axis=0)
        primal = ((1 - self.PRIOR) * fpr + self.PRIOR * (1 - lower)).min()
        assert primal == pytest.approx(0.2945, abs=5e-5)
        # At (P11, P01) group 1 has gain and loss 0, group 0 has 2 and 2.
        tpr, fpr = self.rates(np.linspace(-8, 8, 4001))
        share = 0.5 * 2
        best = (self.PRIOR * tpr[:, 0] - (1 - self.PRIOR) * fpr[:, 0]).max()
        assert self.PRIOR - share * best == pytest.approx(primal, abs=1e-6)

    def test_no_multipliers_come_below_an_average_odds_difference_of_0_077(self):
        log_odds = np.linspace(-12, 12, 1201)
        tpr, fpr = self.rates(log_odds)
        aod = abs(tpr[:, None, 0] - tpr[None, :, 1]) / 2
        aod += abs(fpr[:, None, 0] - fpr[None, :, 1]) / 2
        # Groups are alike in size and prior, so the box holds exactly the pairs of
        # posterior cuts on either side of 1/2 (see docs/errata.md).
        either_side = np.sign(log_odds)[:, None] * np.sign(log_odds) <= 0
        assert 0.077 < aod[either_side].min() < 0.079

    def test_annealing_cannot_do_it_and_the_mixture_can(self, two_groups):
        rng = np.random.RandomState(0)
        found = search(two_groups, "equalized_odds", rng)
        assert objective(two_groups, "equalized_odds")(found) > 0.04
        solution = solve(two_groups.program("equalized_odds"), MinimumCost())
        assert np.ptp(solution.tpr) < ROUNDING
        assert solution.certificate < 1e-9


class TestE3OneRootForEqualOpportunity:
    def test_the_gap_in_tpr_falls_along_the_multiplier(self, two_groups):
        (low,), (high,) = box(two_groups, "equal_opportunity")
        gaps = []
        for t in np.linspace(low, high, 500).tolist():
            (tpr0, _), (tpr1, _) = two_groups.rates(*weights(two_groups, [t]))
            gaps.append(tpr1 - tpr0)
        assert (np.diff(gaps) <= ROUNDING).all()
        assert gaps[0] > 0 > gaps[-1]

    def test_annealing_finds_the_fair_optimum_up_to_one_row(self, two_groups):
        rng = np.random.RandomState(0)
        found = search(two_groups, "equal_opportunity", rng)
        # One row moves the TPR by at most 1 / sum(f / c) of the smaller group.
        step = 1 / min(f.sum() / two_groups.label_frequency for f in two_groups.score)
        assert objective(two_groups, "equal_opportunity")(found) <= step
        rates = np.array(two_groups.rates(*weights(two_groups, found)))
        error = plug_in_error(two_groups, rates)
        best = solve(two_groups.program("equal_opportunity"), MinimumCost()).value
        # A gap of one step is worth at most its share of positives, at slope 1.
        assert error == pytest.approx(best, abs=step * sum(two_groups.positives))


class TestE4LeastUnfairnessIsNotLeastRisk:
    def test_only_a_rule_without_any_gap_is_the_fair_optimum(self, two_groups):
        # Weak duality, inside the box and outside: the error may exceed the fair
        # optimum by as much as the multipliers times the gaps that are left.
        best = solve(two_groups.program("equalized_odds"), MinimumCost()).value
        rng = np.random.RandomState(0)
        above = 0
        for l1, l2 in rng.uniform(-2, 2, (2000, 2)).tolist():
            rates = np.array(two_groups.rates(*weights(two_groups, [l1, l2])))
            error = plug_in_error(two_groups, rates)
            tpr_gap, fpr_gap = rates[1] - rates[0]
            assert error + l1 * tpr_gap - l2 * fpr_gap <= best + ROUNDING
            above += error > best + 0.1
        assert above > 500

    def test_a_constant_rule_wins_where_scores_are_bounded(self):
        # Group 0 has posteriors of 0.7 to 1 at this label frequency, which makes
        # accepting everybody the fair optimum of the estimates: at a label frequency
        # of 1 the same scores say that most rows are negative.
        rng = np.random.RandomState(0)
        score = np.append(rng.uniform(0.35, 0.5, 500), rng.uniform(0.1, 0.5, 500))
        estimates = plug_in(score, np.repeat([0, 1], 500), 0.5)
        best = solve(estimates.program("equalized_odds"), MinimumCost())
        assert best.selection_rate == pytest.approx([1, 1])
        found = dual_annealing_search(estimates, "equalized_odds", rng)
        rates = np.array(estimates.rates(*weights(estimates, found)))
        assert unfairness(rates.tolist(), "equalized_odds") < ROUNDING
        assert plug_in_error(estimates, rates) == pytest.approx(best.value)
        assert score.mean() < 0.5

    def test_outside_the_box_rules_are_reversed_and_refused(self, two_groups):
        _, upper = box(two_groups, "equalized_odds")
        outside = (2.5 * upper).tolist()
        gain, loss = weights(two_groups, outside)
        assert gain[1] < 0 > loss[1]
        # The reversed rule of group 1 accepts its lowest scores: FPR above TPR.
        _, (tpr, fpr) = two_groups.rates(gain, loss)
        assert fpr > tpr
        assert objective(two_groups, "equalized_odds")(outside) == np.inf

    def test_both_ends_of_the_box_are_inside(self, two_groups, three_groups):
        value = objective(two_groups, "equalized_odds")
        assert all(np.isfinite(value(end)) for end in box(two_groups, "equalized_odds"))
        # Three groups: at the lower end the first group's gain is negative.
        value = objective(three_groups, "equal_opportunity")
        assert value(box(three_groups, "equal_opportunity")[0]) == np.inf


def test_e5_the_mean_score_of_labeled_rows_is_below_the_label_frequency():
    data = make_two_groups(200_000, label_frequency=0.5, random_state=0)
    e1 = data.score[data.labeled == 1].mean()
    eta = data.posterior
    # The mean of m scores in [0, 0.5] has a standard error below 0.25 / sqrt(m).
    error = 4 * 0.25 / np.sqrt(data.labeled.sum())
    assert e1 == pytest.approx(0.5 * (eta**2).mean() / eta.mean(), abs=error)
    assert e1 < 0.5 - 10 * error


def test_e6_the_plug_in_fpr_leaves_the_unit_interval():
    # c = 0.5 is below the two highest scores: their weights c - f are negative.
    estimates = plug_in(
        np.array([0.9, 0.7, 0.1, 0.1, 0.3]), np.array([0] * 4 + [1]), 0.5
    )
    odds = 0.6 / 0.4  # accept f >= 0.3, the two highest of group 0
    (_, fpr), _ = estimates.rates([1, 1], [odds, 1])
    assert fpr == pytest.approx((0.5 - 0.9 + 0.5 - 0.7) / (2.0 - 1.8))
    assert fpr < 0


def test_e7_the_wrong_groups_negatives_move_the_rule(two_groups):
    swapped = replace(two_groups, negatives=two_groups.negatives[::-1])
    multipliers = [0.02, 0.02]
    assert cuts(two_groups, multipliers) != cuts(swapped, multipliers)
    # With the right groups the losses weighted by P(Y=0, S=s) sum to P(Y=0).
    for estimates, holds in ((two_groups, True), (swapped, False)):
        _, loss = weights(estimates, multipliers)
        total = np.dot(loss, two_groups.negatives)
        assert (abs(total - sum(two_groups.negatives)) < ROUNDING) == holds


def test_gains_and_losses_average_to_one_over_any_number_of_groups(three_groups):
    gain, loss = weights(three_groups, [0.01, -0.02, 0.03, 0.01])
    assert np.dot(gain, three_groups.positives) == pytest.approx(
        sum(three_groups.positives)
    )
    assert np.dot(loss, three_groups.negatives) == pytest.approx(
        sum(three_groups.negatives)
    )


def test_three_groups_come_near_the_exact_optimum(three_groups):
    rng = np.random.RandomState(0)
    found = search(three_groups, "equal_opportunity", rng)
    # Annealing in two dimensions; the exact gap is 0, one row is 1/150 of a group.
    assert objective(three_groups, "equal_opportunity")(found) < 0.02
    rates = np.array(three_groups.rates(*weights(three_groups, found)))
    error = plug_in_error(three_groups, rates)
    best = solve(three_groups.program("equal_opportunity"), MinimumCost()).value
    assert error == pytest.approx(best, abs=0.005)


def test_dual_annealing_stays_in_the_box_and_is_reproducible(two_groups):
    first, second = (
        dual_annealing_search(two_groups, "equalized_odds", np.random.RandomState(3))
        for _ in range(2)
    )
    assert first == second
    low, high = box(two_groups, "equalized_odds")
    assert ((low <= first) & (first <= high)).all()


def test_annealing_descends_a_bowl_to_its_bottom():
    found = anneal(
        lambda x: (x[0] - 0.3) ** 2 + (x[1] + 0.2) ** 2,
        [0, 0],
        np.random.RandomState(0),
    )
    # At the last temperature, 8e-5, the standard deviation per axis is 0.0065.
    assert found == pytest.approx([0.3, -0.2], abs=4 * 0.0065)


@pytest.fixture(scope="module")
def patients():
    # An anchor region, so that the label frequency exceeds every group's mean score.
    return make_underdiagnosed(4000, label_frequency=0.6, random_state=1)


@pytest.mark.parametrize("constraint", ["equal_opportunity", "equalized_odds"])
def test_the_classifier_offers_the_papers_method(patients, constraint):
    clf = FairPULClassifier(
        LogisticRegression(max_iter=1000),
        constraint=constraint,
        method="paper",
        random_state=0,
    )
    clf.fit(patients.X, patients.labeled, sensitive_features=patients.group)
    assert len(clf.estimators_) == 1
    assert DecisionRule.from_json(clf.rule_.to_json()) == clf.rule_
    (c,) = {found.estimate for found in clf.label_frequency_.values()}
    score = clf.decision_function(patients.X)
    cut = dict(zip(clf.groups_, clf.rule_.cuts, strict=True))
    expected = [f >= cut[s][0][0] for f, s in zip(score, patients.group, strict=True)]
    decided = clf.predict(patients.X, sensitive_features=patients.group)
    np.testing.assert_array_equal(decided, np.array(expected, dtype=int))
    # e1 of a random fifth lies near the mean over all labeled rows: with some 90
    # scores of standard deviation under 0.25, four standard errors are 0.11.
    assert c == pytest.approx(score[patients.labeled == 1].mean(), abs=0.11)
    gap = clf.rule_.realized.gaps["tpr"]
    assert gap.low <= gap.estimate <= gap.high


@pytest.mark.parametrize(
    ("parameters", "fit", "message"),
    [
        *(
            ({name: value}, {}, rf"cannot use \['{name}'\]")
            for name, value in {
                "tolerance": 0.1,
                "objective": MinimumCost(),
                "label_frequency": 0.4,
                "class_prior": {"f": 0.2, "m": 0.3},
                "cv": [(np.arange(9), np.arange(9))] * 3,
                "deploy": "refit",
                "sensitive_columns": np.array([0]),
                "lottery": True,
            }.items()
        ),
        *(
            ({}, {name: np.arange(4000)}, rf"cannot use \['{name}'\]")
            for name in ("groups", "row_id", "check_input")
        ),
        ({"constraint": None}, {}, "knows the constraints"),
        ({}, {"sample_weight": np.ones(4000)}, r"cannot use \['sample_weight'\]"),
        ({}, {"sensitive_features": None}, "needs two or more; got one"),
    ],
)
def test_what_the_papers_method_cannot_honor_is_refused(
    patients, parameters, fit, message
):
    clf = FairPULClassifier(method="paper", **parameters)
    arguments = {"sensitive_features": patients.group} | fit
    with pytest.raises(ValueError, match=message):
        clf.fit(patients.X, patients.labeled, **arguments)
