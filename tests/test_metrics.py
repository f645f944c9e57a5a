import math

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import (
    MetricFrame,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from fairlearn.metrics import (
    equal_opportunity_difference as fairlearn_eod,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_score

from fairpul import metrics
from fairpul.label_frequency import LabelFrequency
from fairpul.measures import RATES

REFERENCES = {
    "tpr": true_positive_rate,
    "fpr": false_positive_rate,
    "selection_rate": selection_rate,
    "ppv": precision_score,
}
GAPS = {
    "tpr": metrics.tpr_gap,
    "fpr": metrics.fpr_gap,
    "selection_rate": metrics.selection_rate_gap,
}
PU_GAPS = {
    "tpr": metrics.pu_tpr_gap,
    "fpr": metrics.pu_fpr_gap,
    "selection_rate": metrics.pu_selection_rate_gap,
}


def sample(k, n=400, seed=0):
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.integers(0, 2, n), rng.integers(0, 2, n)
    return y_true, y_pred, rng.integers(0, k, n), rng.random(n)


def pu_sample(c, k=2, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    y_true, y_pred, group, weight = sample(k, n, seed)
    return y_true, y_true * (rng.random(n) < c), y_pred, group, weight


def test_group_rates_by_hand():
    y_true = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    y_pred = [1, 1, 0, 1, 0, 0, 1, 0, 0, 0]
    found = metrics.group_rates(y_true, y_pred, sensitive_features=list("aaaaabbbbb"))
    assert found["a"] == pytest.approx(
        {
            "tpr": 2 / 3,
            "fpr": 1 / 2,
            "selection_rate": 3 / 5,
            "ppv": 2 / 3,
            "prevalence": 3 / 5,
        }
    )
    assert found["b"] == pytest.approx(
        {"tpr": 0, "fpr": 1 / 4, "selection_rate": 1 / 5, "ppv": 0, "prevalence": 1 / 5}
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_rates_and_gaps_agree_with_fairlearn(k, weighted):
    y_true, y_pred, group, weight = sample(k)
    weight = weight if weighted else None
    reference = MetricFrame(
        metrics=REFERENCES,
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=group,
        sample_params={name: {"sample_weight": weight} for name in REFERENCES},
    )
    arguments = {"sensitive_features": group, "sample_weight": weight}
    found = metrics.group_rates(y_true, y_pred, **arguments)
    for key in range(k):
        for name in REFERENCES:
            expected = reference.by_group.loc[key, name]
            assert found[key][name] == pytest.approx(expected, abs=1e-12)
    for name, gap in GAPS.items():
        expected = reference.difference()[name]
        assert gap(y_true, y_pred, **arguments) == pytest.approx(expected, abs=1e-12)
    difference = metrics.equal_opportunity_difference(y_true, y_pred, **arguments)
    assert difference == pytest.approx(
        fairlearn_eod(y_true, y_pred, **arguments), abs=1e-12
    )
    odds = metrics.average_odds_difference(y_true, y_pred, **arguments)
    expected = reference.difference()[["tpr", "fpr"]].mean()
    assert odds == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_intersections_agree_with_fairlearn(weighted):
    y_true, y_pred, first, weight = sample(2, n=900)
    second = np.array(["x", "y", "z"])[np.arange(900) % 3]
    weight = weight if weighted else None
    reference = MetricFrame(
        metrics=REFERENCES,
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features={"first": first, "second": second},
        sample_params={name: {"sample_weight": weight} for name in REFERENCES},
    )
    columns = np.column_stack([first.astype(object), second])
    arguments = {"sensitive_features": columns, "sample_weight": weight}
    found = metrics.group_rates(y_true, y_pred, **arguments)
    assert len(found) == 6
    for key, of in found.items():
        for name in REFERENCES:
            expected = reference.by_group.loc[key, name]
            assert of[name] == pytest.approx(expected, abs=1e-12)
    for name, gap in GAPS.items():
        expected = reference.difference()[name]
        assert gap(y_true, y_pred, **arguments) == pytest.approx(expected, abs=1e-12)


def test_opposite_gaps_do_not_cancel():
    # Group a: TPR 1, FPR 0; group b: TPR 0, FPR 1.
    y_true, y_pred = [1, 0, 1, 0], [1, 0, 0, 1]
    odds = metrics.average_odds_difference(
        y_true, y_pred, sensitive_features=list("aabb")
    )
    assert odds == 1


def test_undefined_rates_are_nan_not_zero():
    # Group b has no negative, c no positive, d no accepted row; fairlearn has 0 there.
    y_true, y_pred = [1, 0, 1, 1, 0, 0, 1, 0], [1, 0, 1, 0, 1, 0, 0, 0]
    arguments = {"sensitive_features": list("aabbccdd")}
    found = metrics.group_rates(y_true, y_pred, **arguments)
    assert math.isnan(found["b"]["fpr"])
    assert math.isnan(found["c"]["tpr"])
    assert math.isnan(found["d"]["ppv"])
    assert math.isnan(metrics.tpr_gap(y_true, y_pred, **arguments))
    assert math.isnan(metrics.fpr_gap(y_true, y_pred, **arguments))
    assert math.isnan(metrics.average_odds_difference(y_true, y_pred, **arguments))
    assert metrics.selection_rate_gap(y_true, y_pred, **arguments) == 0.5


def test_one_true_class_alone_is_fine():
    found = metrics.group_rates([1, 1, 1], [1, 0, 1], sensitive_features=None)
    assert found["all"]["tpr"] == pytest.approx(2 / 3)
    assert math.isnan(found["all"]["fpr"])


@pytest.mark.parametrize("code", [lambda y: 2 * y - 1, lambda y: y.astype(bool), list])
def test_all_codings_of_labels_and_decisions_agree(code):
    y_true, y_pred, group, _ = sample(3)
    expected = metrics.group_rates(y_true, y_pred, sensitive_features=group)
    coded = metrics.group_rates(code(y_true), code(y_pred), sensitive_features=group)
    assert coded == expected
    assert metrics.pu_tpr_gap(
        code(y_true), code(y_pred), sensitive_features=group
    ) == metrics.tpr_gap(y_true, y_pred, sensitive_features=group)


def test_several_sensitive_columns_form_tuples():
    columns = pd.DataFrame({"sex": list("ffmm"), "old": [True, False, True, False]})
    found = metrics.group_rates([1, 1, 1, 1], [1, 0, 1, 1], sensitive_features=columns)
    assert set(found) == {("f", True), ("f", False), ("m", True), ("m", False)}
    assert found["f", False]["tpr"] == 0


# PU labels


@pytest.mark.parametrize("weighted", [False, True])
def test_pu_metrics_of_fully_labeled_rows_are_the_ordinary_ones(weighted):
    y_true, y_pred, group, weight = sample(3)
    arguments = {"sensitive_features": group}
    if weighted:
        arguments["sample_weight"] = weight
    pu = {**arguments, "label_frequency": 1.0}
    for name in GAPS:
        assert PU_GAPS[name](y_true, y_pred, **pu) == GAPS[name](
            y_true, y_pred, **arguments
        )
    rates = metrics.pu_group_rates(y_true, y_pred, **pu)
    floats = {key: {name: rates[key][name].estimate for name in RATES} for key in rates}
    assert floats == metrics.group_rates(y_true, y_pred, **arguments)
    odds = metrics.pu_average_odds_difference(y_true, y_pred, **pu)
    assert odds == metrics.average_odds_difference(y_true, y_pred, **arguments)


def test_pu_rates_find_the_truth_that_the_labels_hide():
    y_true, y_pu, y_pred, group, _ = pu_sample(0.4, n=40_000)
    truth = metrics.group_rates(y_true, y_pred, sensitive_features=group)
    found = metrics.pu_group_rates(
        y_pu, y_pred, sensitive_features=group, label_frequency=0.4
    )
    # Naive: unlabeled rows taken as negatives.
    naive = metrics.group_rates(y_pu, y_pred, sensitive_features=group)
    for key in (0, 1):
        for name in RATES:
            rate = found[key][name]
            # Twice the half-width, as the truth of a sample varies too.
            margin = rate.high - rate.low
            assert rate.estimate == pytest.approx(truth[key][name], abs=margin)
        assert naive[key]["ppv"] < truth[key]["ppv"] - 0.2


def test_a_label_frequency_and_the_prior_it_implies_agree():
    _, y_pu, y_pred, group, weight = pu_sample(0.5)
    arguments = {"sensitive_features": group, "sample_weight": weight}
    for number in (0, 1):
        rows = group == number
        share = np.average(y_pu[rows], weights=weight[rows])
        arguments.setdefault("prior", {})[number] = share / 0.6
    prior = arguments.pop("prior")
    by_c = metrics.pu_group_rates(y_pu, y_pred, label_frequency=0.6, **arguments)
    by_prior = metrics.pu_group_rates(y_pu, y_pred, class_prior=prior, **arguments)
    for key in (0, 1):
        for name in RATES:
            assert by_c[key][name].estimate == pytest.approx(
                by_prior[key][name].estimate
            )
    assert by_prior[0]["fpr"].tier == "prior"
    assert by_c.gaps["fpr"].estimate == pytest.approx(by_prior.gaps["fpr"].estimate)


def test_label_frequency_by_group_and_as_a_value():
    _, y_pu, y_pred, group, _ = pu_sample(0.5)
    arguments = {"sensitive_features": group}
    numbers = metrics.pu_fpr_gap(
        y_pu, y_pred, label_frequency={0: 0.5, 1: 0.8}, **arguments
    )
    values = {key: LabelFrequency(c, c, c, "known") for key, c in ((0, 0.5), (1, 0.8))}
    assert numbers == metrics.pu_fpr_gap(
        y_pu, y_pred, label_frequency=values, **arguments
    )
    pooled = metrics.pu_fpr_gap(y_pu, y_pred, label_frequency=0.5, **arguments)
    assert numbers != pooled


def test_acceptance_probabilities_are_averaged():
    y_pu, group = [1, 1, 0, 1, 1, 0], list("aaabbb")
    halves = [0.5, 0.5, 0.5, 1.0, 0.5, 0.0]
    gap = metrics.pu_tpr_gap(y_pu, halves, sensitive_features=group)
    assert gap == pytest.approx(0.25)
    share = metrics.pu_selection_rate_gap(y_pu, halves, sensitive_features=group)
    assert share == pytest.approx(0)


def test_few_labeled_rows_leave_the_tpr_gap_only():
    _, y_pu, y_pred, group, _ = pu_sample(0.5, n=60)
    arguments = {"sensitive_features": group}
    assert metrics.pu_tpr_gap(y_pu, y_pred, **arguments) >= 0
    assert math.isnan(
        metrics.pu_fpr_gap(y_pu, y_pred, label_frequency=0.5, **arguments)
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.6, 1.0]))
def test_weight_two_is_the_row_twice(seed, c):
    y_true, y_pu, y_pred, group, _ = pu_sample(c, n=300, seed=seed)
    repeats = np.random.default_rng(seed).integers(1, 4, len(y_true))
    twice = [np.repeat(column, repeats) for column in (y_pu, y_pred, group)]
    for gap in (*PU_GAPS.values(), metrics.pu_average_odds_difference):
        weighted = gap(
            y_pu,
            y_pred,
            sensitive_features=group,
            label_frequency=0.9 if c < 1 else 1.0,
            sample_weight=repeats,
        )
        repeated = gap(
            twice[0],
            twice[1],
            sensitive_features=twice[2],
            label_frequency=0.9 if c < 1 else 1.0,
        )
        assert weighted == pytest.approx(repeated, abs=1e-12)


def test_an_interval_of_the_prior_is_shown_over_its_whole():
    _, y_pu, y_pred, group, _ = pu_sample(0.5)
    arguments = {"sensitive_features": group}
    uncertain = {0: (0.5, 0.45, 0.6), 1: 0.5}
    found = metrics.pu_group_rates(y_pu, y_pred, class_prior=uncertain, **arguments)
    ends = [
        metrics.pu_group_rates(y_pu, y_pred, class_prior=prior, **arguments)
        for prior in (0.45, 0.5, 0.6)
    ]
    fprs = [end[0]["fpr"] for end in ends]
    assert found[0]["fpr"].estimate == ends[1][0]["fpr"].estimate
    assert found[0]["fpr"].low <= max(0, min(fpr.low for fpr in fprs)) + 1e-12
    assert found[0]["fpr"].high >= max(fpr.high for fpr in fprs)
    assert found[0]["fpr"].tier == "prior"
    assert found[1]["fpr"] == ends[1][1]["fpr"]


def test_an_estimated_label_frequency_is_shown_over_all_that_is_possible():
    _, y_pu, y_pred, group, _ = pu_sample(0.5)
    estimated = LabelFrequency(0.5, 0.4, 1.0, "peak_rate")
    found = metrics.pu_group_rates(
        y_pu,
        y_pred,
        sensitive_features=group,
        label_frequency={0: estimated, 1: 0.5},
    )
    assert found[0]["fpr"].reason.startswith("over label frequencies from 0.4 to 1")
    assert found[1]["fpr"].reason.startswith("conditional on a label frequency of 0.5")


# Refusals


@pytest.mark.parametrize(
    "gap", [metrics.pu_fpr_gap, metrics.pu_average_odds_difference]
)
def test_an_fpr_gap_without_a_prior_is_refused(gap):
    with pytest.raises(ValueError, match="needs label_frequency or class_prior"):
        gap([1, 0, 1, 0], [1, 0, 1, 0], sensitive_features=list("aabb"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"label_frequency": 0.5, "class_prior": 0.5}, "not both"),
        ({"label_frequency": {0: 0.5}}, r"no value for the groups \[1\]"),
        ({"label_frequency": 0}, "above 0 and at most 1, .* got 0"),
        ({"label_frequency": 1.5}, r"above 0 and at most 1, .* got 1\.5"),
        ({"label_frequency": 0.1}, "must exceed its labeled share"),
        ({"class_prior": 1.0}, "below 1 and at least its labeled share"),
        ({"class_prior": 0.1}, "below 1 and at least its labeled share"),
        ({"class_prior": (0.6, 0.7, 0.8)}, r"\(point, low, high\) in order"),
        ({"class_prior": (0.6, 0.7)}, r"\(point, low, high\) in order"),
        ({"class_prior": "half"}, r"\(point, low, high\) in order, got 'half'"),
        ({"label_frequency": "peak_rate"}, "estimates it from scores"),
    ],
)
def test_impossible_label_frequencies_are_refused(arguments, text):
    _, y_pu, y_pred, group, _ = pu_sample(0.5)
    with pytest.raises(ValueError, match=text):
        metrics.pu_group_rates(y_pu, y_pred, sensitive_features=group, **arguments)


@pytest.mark.parametrize("decision", [[0, 2], [0.5, 1.5], [-1, 0], [0.5, math.nan]])
def test_decisions_outside_the_unit_interval_are_refused(decision):
    with pytest.raises(ValueError, match=r"y_pred (must be 1|is missing in 1 rows)"):
        metrics.pu_tpr_gap([1, 0], decision, sensitive_features=["a", "a"])


def test_unknown_labels_are_refused():
    with pytest.raises(ValueError, match="y_true must be 1 or True"):
        metrics.tpr_gap([1, 2], [1, 0], sensitive_features=["a", "a"])
    with pytest.raises(ValueError, match="Labels must be 1 or True"):
        metrics.pu_tpr_gap([1, 2], [1, 0], sensitive_features=["a", "a"])
    with pytest.raises(ValueError, match="y_pred must be numbers"):
        metrics.tpr_gap([1, 0], ["yes", "no"], sensitive_features=["a", "a"])


def test_no_rows_have_no_rates():
    with pytest.raises(ValueError, match="At least one row"):
        metrics.tpr_gap([], [], sensitive_features=[])


def test_columns_of_unlike_length_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        metrics.tpr_gap([1, 0, 1], [1, 0], sensitive_features=["a", "a"])
