"""From scores to a rule: what is optimal, what is deployed, what is promised."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from fairpul import (
    Capacity,
    GroupScores,
    MinimumCost,
    RecallFloor,
    fit_rule,
    frontier,
)
from fairpul.label_frequency import PeakRate

KNOWN = {"a": 0.5, "b": 0.8}


def make_rows(n=4000, seed=0, decimals=None):
    """Two groups with known posteriors, labeled at different frequencies."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "a", "b")
    posterior = rng.beta(1, 2 + (group == "a"), n)
    if decimals is not None:
        posterior = np.round(posterior, decimals)
    frequency = np.where(group == "a", 0.5, 0.8)
    labeled = rng.random(n) < posterior * frequency
    return posterior * frequency, labeled, group


def fit(rows=None, **options):
    score, labeled, group = make_rows() if rows is None else rows
    options.setdefault("label_frequency", KNOWN)
    return fit_rule(score, labeled, group, random_state=0, **options)


def rates_of(rule, score, labeled, group):
    """TPR and selection rate by group, counted from the rule's own decisions."""
    accepted = rule.acceptance_probability(score, group)
    return {
        key: (
            accepted[(group == key) & labeled].mean(),
            accepted[group == key].mean(),
        )
        for key in rule.groups
    }


@pytest.mark.parametrize("lottery", [True, "auto"])
@pytest.mark.parametrize(
    ("constraint", "rates"),
    [
        ("equal_opportunity", ["tpr"]),
        ("equalized_odds", ["tpr", "fpr"]),
        ("predictive_equality", ["fpr"]),
        ("demographic_parity", ["selection_rate"]),
    ],
)
@pytest.mark.parametrize("tolerance", [0.0, 0.03])
def test_expected_gaps_are_within_tolerance(constraint, rates, tolerance, lottery):
    rule = fit(constraint=constraint, tolerance=tolerance, lottery=lottery)
    assert rule.certificate < 1e-9
    for rate in rates:
        assert rule.expected.gaps[rate].estimate <= tolerance + 1e-9  # LP's precision


def test_a_tolerance_at_the_unconstrained_gap_gives_the_unconstrained_cost():
    free = fit(constraint=None, lottery=True)
    for constraint, rate in (
        ("equal_opportunity", "tpr"),
        ("predictive_equality", "fpr"),
    ):
        gap = free.expected.gaps[rate].estimate
        rule = fit(constraint=constraint, tolerance=gap, lottery=True)
        assert rule.objective_value == pytest.approx(free.objective_value, abs=1e-12)
        assert rule.certificate < 1e-12


def test_realized_rates_are_those_of_the_decisions():
    rows = make_rows()
    for options in ({}, {"constraint": "equalized_odds"}, {"lottery": True}):
        rule = fit(rows, **options)
        for key, (tpr, selection) in rates_of(rule, *rows).items():
            assert rule.realized[key]["tpr"].estimate == pytest.approx(tpr, abs=1e-12)
            assert rule.realized[key]["selection_rate"].estimate == pytest.approx(
                selection, abs=1e-12
            )


def test_snapped_equal_opportunity_draws_no_lots_and_the_exact_one_one_edge_a_group():
    snapped, exact = fit(), fit(lottery=True)
    assert all(len(cuts) == 1 for cuts in snapped.cuts)
    assert set(snapped.lottery_share.values()) == {0.0}
    assert all(len(cuts) <= 2 for cuts in exact.cuts)
    assert any(len(cuts) == 2 for cuts in exact.cuts)
    assert snapped.expected == exact.expected == exact.realized
    # One labeled row is the step of a snapped TPR, in each of two groups.
    step = sum(1 / make_rows()[1][make_rows()[2] == key].sum() for key in "ab")
    assert snapped.realized.gaps["tpr"].estimate <= step
    assert snapped.cost_of_snapping == pytest.approx(
        cost(snapped.realized) - cost(snapped.expected), abs=1e-12
    )


@pytest.mark.parametrize(
    "constraint",
    [None, "equal_opportunity", "predictive_equality", "demographic_parity"],
)
@pytest.mark.parametrize(
    "objective", [MinimumCost(3, 1), RecallFloor(0.6), Capacity(0.2)]
)
def test_with_one_rate_no_lottery_and_auto_are_one(constraint, objective):
    asked = {"constraint": constraint, "objective": objective}
    rule = fit(**asked, lottery=False)
    assert rule == fit(**asked, lottery="auto")
    assert not rule.has_lottery
    # The certificate is the exact mixture's, with or without a lottery.
    exact = fit(**asked, lottery=True)
    assert rule.certificate == exact.certificate < 1e-9
    assert rule.expected == exact.expected == exact.realized


@pytest.mark.filterwarnings("ignore:.*(50 labeled|fewer than 60)")
@pytest.mark.parametrize("label_frequency", [KNOWN, "peak_rate"])
def test_under_20_labels_nothing_is_said_of_an_fpr_and_the_fit_goes_on(
    label_frequency,
):
    score, labeled, group = make_rows()
    rare = labeled & (group == "a")
    for kept in (19, 20):
        few = labeled & ~(rare & (np.cumsum(rare) > kept))
        rule = fit(
            (score, few, group),
            constraint="equalized_odds",
            label_frequency=label_frequency,
        )
        for rates in (rule.expected, rule.realized):
            fprs = rates["a"]["fpr"], rates.gaps["fpr"]
            assert [np.isnan(rate.estimate) for rate in fprs] == [kept < 20] * 2
            if kept < 20:
                assert all("fewer than 20 labeled" in rate.reason for rate in fprs)
            assert np.isfinite(rates["b"]["fpr"].estimate)
            assert np.isfinite(rates.gaps["tpr"].estimate)


def cost(rates):
    """Error rate from the rates of the two groups of :func:`make_rows`."""
    _, _, group = make_rows()
    total = 0.0
    for key, c in KNOWN.items():
        share = np.mean(group == key)
        prior = make_rows()[1][group == key].mean() / c
        total += share * prior * (1 - rates[key]["tpr"].estimate)
        total += share * (1 - prior) * rates[key]["fpr"].estimate
    return total


def test_objective_value_is_the_cost_of_the_expected_rates():
    for constraint in (None, "equal_opportunity", "equalized_odds"):
        rule = fit(constraint=constraint)
        assert rule.objective_value == pytest.approx(cost(rule.expected), abs=1e-12)


def test_recall_floor_accepts_as_few_as_any_cut_that_meets_it():
    score, labeled, group = rows = make_rows()
    rule = fit(rows, constraint=None, objective=RecallFloor(0.8))
    for key, ((cut, _),) in zip(rule.groups, rule.cuts, strict=True):
        best = np.sort(score[(group == key) & labeled])[::-1]
        needed = int(np.ceil(0.8 * len(best)))
        assert cut == best[needed - 1]


def test_recall_floor_needs_no_label_frequency():
    rows = make_rows()
    for constraint in (None, "equal_opportunity", "demographic_parity"):
        rules = [
            fit(
                rows,
                constraint=constraint,
                objective=RecallFloor(0.7),
                label_frequency=c,
                tolerance=0.0 if constraint is None else tolerance,
            )
            for c in (0.4, {"a": 0.9, "b": 0.6})
            for tolerance in (0.05,)
        ]
        assert rules[0].cuts == rules[1].cuts


def test_capacity_with_equal_opportunity_needs_no_label_frequency():
    rows = make_rows()
    rules = [fit(rows, objective=Capacity(0.2), label_frequency=c) for c in (0.4, 0.9)]
    assert rules[0].cuts == rules[1].cuts
    assert rules[0].objective_value == pytest.approx(
        rules[0].expected["a"]["tpr"].estimate, abs=1e-9
    )


def test_snapping_never_exceeds_a_capacity():
    for seed in range(20):
        score, _, group = rows = make_rows(600, seed)
        for constraint in (None, "equal_opportunity", "demographic_parity"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few labels
                rule = fit(rows, constraint=constraint, objective=Capacity(0.15))
            assert rule.decide(score, group).mean() <= 0.15 + 1e-12


def test_snapping_never_breaks_a_floor():
    for seed in range(20):
        rows = make_rows(600, seed)
        for constraint in (None, "equal_opportunity", "predictive_equality"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few labels
                rule = fit(rows, constraint=constraint, objective=RecallFloor(0.75))
            assert all(tpr >= 0.75 - 1e-9 for tpr, _ in rates_of(rule, *rows).values())


def test_a_floor_above_the_capacity_names_the_nearest_feasible_one():
    with pytest.raises(ValueError, match=r"takes at least 0\.\d+"):
        fit(objective=Capacity(0.1, floor=RecallFloor(0.9)))


def test_assured_floors_share_a_risk_of_5_percent_between_the_groups():
    score, labeled, group = rows = make_rows()
    floor = RecallFloor(0.8, assured=True)
    for constraint in (None, "demographic_parity"):
        rule = fit(rows, constraint=constraint, objective=floor, tolerance=0.0)
        for key, ((cut, _),) in zip(rule.groups, rule.cuts, strict=True):
            best = np.sort(score[(group == key) & labeled])[::-1]
            j = np.arange(1, len(best) + 1)
            risk = beta.cdf(0.8, j, len(best) + 1 - j)
            needed = j[risk <= 0.05 / 2][0]
            if constraint is None:
                assert cut == best[needed - 1]
            else:  # selection rates are equal, so the floor binds in one group
                assert cut <= best[needed - 1]


@pytest.mark.filterwarnings("ignore:.*fewer than 50 labeled")
def test_assured_floor_that_no_cut_assures_accepts_everybody_and_says_so():
    score, labeled, group = make_rows(400, 1)
    few = labeled & ~((group == "a") & (np.cumsum(labeled & (group == "a")) > 12))
    with pytest.warns(UserWarning, match="everybody in them is accepted"):
        rule = fit_rule(
            score,
            few,
            group,
            label_frequency=0.9,
            constraint=None,
            objective=RecallFloor(0.8, assured=True),
        )
    assert rule.cuts[0] == ((0.0, 1.0),)
    assert rule.cuts[1][0][0] > 0


def test_assured_floor_with_clusters_accepts_more():
    score, labeled, group = make_rows(3000)
    cluster = np.repeat(np.arange(1000), 3)
    same = np.repeat(np.arange(1000), 3) * 3
    score, labeled = score[same], labeled[same]
    floor = RecallFloor(0.8, assured=True)
    alone, together = (
        fit_rule(
            score,
            labeled,
            group[same],
            cluster=c,
            constraint=None,
            objective=floor,
            label_frequency=KNOWN,
        )
        for c in (None, cluster)
    )
    for key in alone.groups:
        assert (
            together.realized[key]["selection_rate"].estimate
            > alone.realized[key]["selection_rate"].estimate
        )


def test_without_lottery_equalized_odds_reports_the_gap_that_remains():
    rule = fit(constraint="equalized_odds", tolerance=0.05, lottery=False)
    assert all(len(cuts) == 1 for cuts in rule.cuts)
    assert rule.cost_of_snapping >= -1e-12
    for rate in ("tpr", "fpr"):
        assert rule.realized.gaps[rate].estimate <= 0.05 + 1e-9
    with pytest.raises(ValueError, match="tolerance above 0"):
        fit(constraint="equalized_odds", lottery=False)


def test_a_row_of_weight_two_equals_two_rows():
    score, labeled, group = make_rows(1200, decimals=2)
    weight = np.random.default_rng(1).integers(1, 4, len(score)).astype(float)
    twice = np.repeat(np.arange(len(score)), weight.astype(int))
    for constraint in ("equal_opportunity", "equalized_odds"):
        weighted = fit(
            (score, labeled, group),
            constraint=constraint,
            sample_weight=weight,
            lottery=True,
        )
        repeated = fit(
            (score[twice], labeled[twice], group[twice]),
            constraint=constraint,
            lottery=True,
        )
        for a, b in zip(weighted.cuts, repeated.cuts, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        assert weighted.objective_value == pytest.approx(repeated.objective_value)


@settings(max_examples=20, deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(["equal_opportunity", "equalized_odds", "demographic_parity"]),
)
def test_permuting_rows_changes_no_rule(random, constraint):
    rows = make_rows(800, decimals=2)
    order = np.array(random.sample(range(800), 800))
    permuted = tuple(column[order] for column in rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few labels
        assert fit(rows, constraint=constraint) == fit(permuted, constraint=constraint)


def test_relabeling_groups_relabels_the_rule():
    score, labeled, group = make_rows()
    other = np.where(group == "a", "z", "y")
    rule = fit()
    renamed = fit((score, labeled, other), label_frequency={"z": 0.5, "y": 0.8})
    assert renamed.groups == ("y", "z")
    assert renamed.cuts == rule.cuts[::-1]


def test_any_increasing_map_of_the_scores_leaves_the_decisions():
    score, labeled, group = make_rows()
    for constraint in (None, "equal_opportunity", "demographic_parity"):
        before = fit((score, labeled, group), constraint=constraint)
        after = fit((score**3, labeled, group), constraint=constraint)
        np.testing.assert_array_equal(
            before.decide(score, group), after.decide(score**3, group)
        )


def test_float32_scores_give_the_rule_of_their_float64_copies():
    score, labeled, group = make_rows()
    single = score.astype(np.float32)
    assert fit((single, labeled, group)) == fit(
        (single.astype(np.float64), labeled, group)
    )


def test_group_scores_and_arrays_give_the_same_rule():
    rows = make_rows()
    assert fit_rule(GroupScores(*rows), label_frequency=KNOWN) == fit(rows)
    with pytest.raises(TypeError, match="already"):
        fit_rule(GroupScores(*rows), sample_weight=np.ones(len(rows[0])))
    with pytest.raises(TypeError, match="without labels"):
        fit_rule(rows[0])


def test_one_group_without_constraint_accepts_at_half_the_posterior():
    score, labeled, _ = make_rows()
    rule = fit_rule(score, labeled, None, constraint=None, label_frequency=0.7)
    assert rule.groups == ("all",)
    assert rule.decide(score).sum() == rule.decide(score, None).sum()


def test_many_groups_and_both_costs():
    rng = np.random.default_rng(2)
    n, k = 30_000, 40
    group = rng.integers(0, k, n)
    score = rng.random(n)
    labeled = rng.random(n) < 0.5 * score
    cheap = fit_rule(
        score,
        labeled,
        group,
        label_frequency=0.6,
        constraint="equalized_odds",
        objective=MinimumCost(1, 3),
    )
    assert cheap.certificate < 1e-12
    assert cheap.expected.gaps["tpr"].estimate < 1e-9


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"constraint": "equal_odds"}, "constraint must be one of"),
        ({"tolerance": -0.1}, r"in \[0, 1\]"),
        ({"tolerance": {"fpr": 0.1}}, "one entry for each"),
        ({"constraint": None, "tolerance": 0.1}, "needs a constraint"),
        ({"lottery": "yes"}, "lottery must be"),
        ({"label_frequency": 0.05}, "labeled"),
        ({"label_frequency": {"a": 0.5}}, "b"),
        ({"label_frequency": 0.5, "class_prior": 0.5}, "not both"),
        ({"label_frequency": "best"}, "must be one of"),
    ],
)
def test_bad_options_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        fit(**options)


def with_a_group_of_labeled_rows_only():
    score, labeled, group = make_rows()
    return (
        np.append(score, np.full(80, 0.5)),
        np.append(labeled, np.ones(80, dtype=bool)),
        np.append(group, np.full(80, "c")),
    )


@pytest.mark.parametrize("constraint", ["predictive_equality", "equalized_odds"])
def test_a_group_without_negatives_has_no_fpr_to_equalize(constraint):
    rows = with_a_group_of_labeled_rows_only()
    message = r"All rows of groups \['c'\] are positive, so they have no false"
    with pytest.raises(ValueError, match=message):
        fit(rows, constraint=constraint, label_frequency="peak_rate")
    with pytest.raises(ValueError, match=message):
        frontier(GroupScores(*rows), constraint=constraint)


def test_a_group_without_negatives_can_have_the_tpr_of_the_others():
    rows = with_a_group_of_labeled_rows_only()
    rule = fit(rows, label_frequency="peak_rate", lottery=True)
    assert rule.expected.gaps["tpr"].estimate < 1e-12
    assert rule.expected["c"]["fpr"].reason == "no negative row"
    message = "All rows of group 'c' are labeled"
    with pytest.raises(ValueError, match=message):
        fit(rows, label_frequency=1)
    with pytest.raises(ValueError, match=message):
        fit(rows, label_frequency="peak_rate", class_prior=0.9)


def test_an_objective_of_the_wrong_type_is_refused():
    with pytest.raises(TypeError, match="MinimumCost"):
        fit(objective="cost")


def test_an_estimator_class_in_place_of_an_estimator_is_refused():
    with pytest.raises(TypeError, match=r"must be one of .* or an estimator"):
        fit(label_frequency=PeakRate)


def test_few_labels_warn_at_the_line_of_the_caller():
    with pytest.warns(UserWarning, match="fewer than 50 labeled") as caught:
        fit(make_rows(300))
    assert {warning.filename for warning in caught} == {__file__}
