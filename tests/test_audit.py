import json
import math
import pickle
import warnings
from html import unescape

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairpul import (
    FairPULClassifier,
    GroupCounts,
    GroupScores,
    audit,
    fit_rule,
)
from fairpul.binning import bin_of
from fairpul.datasets import make_underdiagnosed
from fairpul.estimate import Estimate
from fairpul.metrics import pu_group_rates

FREQUENCY = {"f": 0.3, "m": 0.7}
DATA = make_underdiagnosed(8000, label_frequency=(0.3, 0.7), random_state=0)
ROWS = {"labeled": DATA.labeled, "group": DATA.group, "score": DATA.score}
SCORES = GroupScores(DATA.score, DATA.labeled, DATA.group)
LARGE = make_underdiagnosed(200_000, label_frequency=(0.3, 0.7), random_state=1)


def leaves(tree):
    if set(tree) == {"estimate", "low", "high", "tier", "reason"}:
        yield tree
        return
    for value in tree.values():
        yield from leaves(value)


# The same numbers whatever the way in


def test_rates_are_those_of_the_metrics():
    decision = DATA.score >= 0.2
    found = audit(**ROWS, decision=decision, label_frequency=FREQUENCY)
    expected = pu_group_rates(
        DATA.labeled,
        decision,
        sensitive_features=DATA.group,
        label_frequency=FREQUENCY,
    )
    assert found.rates.to_dict() == expected.to_dict()


def test_arrays_scores_and_counts_read_the_same():
    threshold = 0.0625  # the edge of a bin: its fourth root is 1/2
    counts = GroupCounts.from_scores(SCORES)
    rows, scores, table = (
        audit(threshold=threshold, **ROWS),
        audit(SCORES, threshold=threshold),
        audit(counts, threshold=threshold),
    )
    assert rows.to_dict() == scores.to_dict()
    for key in ("f", "m"):
        for name in ("tpr", "selection_rate"):
            assert table.rates[key][name] == scores.rates[key][name]
        # Bins blur the order of the scores, of which c is read, by very little.
        assert table.rates[key]["fpr"].estimate == pytest.approx(
            scores.rates[key]["fpr"].estimate, abs=0.01
        )
    assert table.checks["calibration"]["f"]["slope"].estimate == pytest.approx(
        scores.checks["calibration"]["f"]["slope"].estimate, abs=0.02
    )


def test_a_rule_on_counts_is_audited_on_counts():
    counts = GroupCounts.from_scores(SCORES)
    rule = fit_rule(counts, label_frequency=FREQUENCY)
    for rows in (counts, SCORES):
        found = audit(rows, rule=rule)
        for key in ("f", "m"):
            assert found.rates[key]["tpr"].estimate == pytest.approx(
                rule.realized[key]["tpr"].estimate, rel=1e-12
            )
    with pytest.raises(ValueError, match="The rule cuts scores, the table has 4096"):
        audit(counts, rule=fit_rule(SCORES, label_frequency=FREQUENCY))


def test_weighted_counts_read_as_weighted_rows():
    weight = np.random.default_rng(0).integers(1, 4, len(DATA.score)).astype(float)
    scores = GroupScores(DATA.score, DATA.labeled, DATA.group, sample_weight=weight)
    table = audit(GroupCounts.from_scores(scores), threshold=0.0625)
    rows = audit(scores, threshold=0.0625)
    for key in ("f", "m"):
        for name in ("tpr", "selection_rate"):
            one, other = table.rates[key][name], rows.rates[key][name]
            assert (one.estimate, one.low, one.high) == pytest.approx(
                (other.estimate, other.low, other.high), rel=1e-6
            )


def test_a_threshold_inside_a_heavy_bin_is_told():
    counts = GroupCounts.from_scores(SCORES, bins=16)
    (told,) = [text for text in audit(counts, threshold=0.1).warnings if "bin" in text]
    assert "threshold lies inside a bin of the table, which holds" in told
    for threshold in (0.0, 0.0625):  # 0.0625 is an edge
        report = audit(counts, threshold=threshold)
        assert not any("bin of the table" in text for text in report.warnings)


def test_a_refined_table_is_cut_at_the_bin_that_holds_the_threshold():
    threshold = 0.1
    (number,) = bin_of(np.array([threshold]), 64)
    plain = audit(GroupCounts.from_scores(SCORES, bins=64), threshold=threshold)
    exact = audit(SCORES, threshold=threshold)
    for refine, wanted in [({"f": [number]}, exact), ({"f": [number + 3]}, plain)]:
        counts = GroupCounts.from_scores(SCORES, bins=64, refine=refine)
        found = audit(counts, threshold=threshold)
        for key, other in (("f", wanted), ("m", plain)):
            for name in ("tpr", "selection_rate"):
                assert found.rates[key][name] == other.rates[key][name]
        told = [text for text in found.warnings if "inside a bin" in text]
        assert ("'f'" in told[0]) == (wanted is plain)


def test_what_suppression_costs_is_told():
    counts = GroupCounts.from_scores(SCORES).coarsen(256, suppress_below=10)
    (told,) = [t for t in audit(counts, capacity=0.1).warnings if "suppressed" in t]
    cost = counts.cost_of_suppression["f"]
    assert f"'f' by {cost['selection_rate']:.2%} and {cost['tpr']:.2%}" in told


def test_features_of_rows_do_not_go_with_counts():
    with pytest.raises(ValueError, match="X= needs the rows"):
        audit(GroupCounts.from_scores(SCORES), threshold=0.1, X=DATA.X)


def test_capacity_accepts_the_top_share_and_no_more():
    found = audit(SCORES, capacity=0.1)
    accepted = sum(
        found.rates[key]["selection_rate"].estimate * share
        for key, share in zip(SCORES.groups, SCORES.shares, strict=True)
    )
    assert 0.099 < accepted <= 0.1  # scores hardly tie


def test_decisions_of_any_coding_read_the_same():
    accepted = DATA.score >= 0.2
    found = [
        audit(labeled=DATA.labeled, group=DATA.group, decision=decision).to_dict()
        for decision in (
            accepted,
            accepted.astype(int),
            np.where(accepted, 1, -1),
            accepted.astype(object),  # what nullable columns come as
        )
    ]
    assert found[0] == found[1] == found[2] == found[3]
    assert "calibration" not in found[0]["checks"]


def test_true_labels_give_ordinary_rates():
    accepted = DATA.posterior > 0.5
    found = audit(
        labeled=DATA.y_true, group=DATA.group, decision=accepted, label_frequency=1.0
    )
    for key in ("f", "m"):
        member = DATA.group == key
        expected = {
            "tpr": accepted[member & (DATA.y_true == 1)].mean(),
            "fpr": accepted[member & (DATA.y_true == 0)].mean(),
            "ppv": DATA.y_true[member & accepted].mean(),
            "prevalence": DATA.y_true[member].mean(),
        }
        for name, value in expected.items():
            assert found.rates[key][name].estimate == pytest.approx(value, rel=1e-12)


# What it must not say


@pytest.mark.parametrize("pooled", [0.35, 0.5, 0.7, 0.9])
def test_a_pooled_label_frequency_gives_no_confident_wrong_fpr(pooled):
    truth = LARGE.population_rates({"f": 0.4, "m": 0.4})
    scores = GroupScores(LARGE.score, LARGE.labeled, LARGE.group)
    decision = LARGE.posterior >= 0.4
    found = audit(scores, decision=decision, label_frequency=pooled)
    for key in ("f", "m"):
        fpr = found.rates[key]["fpr"]
        assert fpr.tier == "label frequency"
        if math.isnan(fpr.estimate):
            assert "contradict" in fpr.reason
        else:
            assert fpr.low <= truth[key]["fpr"] <= fpr.high
            assert "over label frequencies" in fpr.reason
    assert any("One label frequency" in text for text in found.warnings)
    # The same number for each group is a statement on each: taken at its word.
    told = audit(scores, decision=decision, label_frequency=FREQUENCY)
    for key in ("f", "m"):
        # 5 standard errors with 80,000 negatives in a group, over (1 - pi).
        assert told.rates[key]["fpr"].estimate == pytest.approx(
            truth[key]["fpr"], abs=0.006
        )
    assert not any("One label frequency" in text for text in told.warnings)


def test_ranges_of_an_estimated_label_frequency_hold_the_truth():
    held = 0
    for seed in range(40):
        data = make_underdiagnosed(3000, anchor_share=0.0, random_state=seed)
        truth = data.population_rates(0.4)
        found = audit(
            labeled=data.labeled,
            group=data.group,
            score=data.score,
            decision=data.posterior >= 0.4,
        )
        held += all(
            found.rates[key]["fpr"].low
            <= truth[key]["fpr"]
            <= found.rates[key]["fpr"].high
            for key in ("f", "m")
        )
    assert held >= 36  # .90 of 40; it is a range, so nearly all hold


def test_a_prior_that_the_data_contradict_gives_no_fpr():
    found = audit(SCORES, threshold=0.2, class_prior={"f": 0.15, "m": 0.9})
    assert math.isnan(found.rates["m"]["fpr"].estimate)
    assert "contradict the class prior" in found.rates["m"]["fpr"].reason
    assert found.rates["m"]["fpr"].tier == "prior"
    assert math.isnan(found.gaps["fpr"].estimate)
    assert not math.isnan(found.rates["f"]["fpr"].estimate)
    assert any(text.startswith("The data contradict") for text in found.warnings)
    assert found.rates["m"]["tpr"].estimate > 0


@pytest.mark.parametrize(
    ("argument", "value", "what"),
    [
        ("class_prior", {"f": (0.4, 0.35, 0.45), "m": 0.2}, "class prior"),
        ("label_frequency", {"f": 0.25, "m": 0.5}, "label frequency"),
    ],
)
def test_an_fpr_below_zero_beyond_chance_contradicts_what_was_given(
    argument, value, what
):
    # Group f: 100 of 1000 labeled, T = .8; .14 are accepted, .32 - error at most.
    # The scores are ties at the accepted rows, which hide this from the top sets.
    labeled = np.tile(np.arange(1000) < 100, 2)
    accepted = np.concatenate([np.arange(1000) < 80, np.arange(1000) < 80])
    accepted |= (np.arange(2000) % 1000 >= 100) & (np.arange(2000) % 1000 < 160)
    found = audit(
        labeled=labeled,
        group=np.repeat(["f", "m"], 1000),
        score=np.where(np.arange(2000) % 7, 0.3, 0.31),
        decision=accepted,
        **{argument: value},
    )
    fpr = found.rates["f"]["fpr"]
    assert math.isnan(fpr.estimate)
    assert (
        f"contradict the {what} given for group 'f': more positives than" in fpr.reason
    )
    assert any("more positives than rows" in text for text in found.warnings)
    assert not math.isnan(found.rates["m"]["fpr"].estimate)
    assert not math.isnan(found.rates["f"]["tpr"].estimate)


def test_one_class_prior_for_all_groups_is_doubted():
    one = audit(SCORES, threshold=0.2, class_prior=0.3)
    each = audit(SCORES, threshold=0.2, class_prior={"f": 0.3, "m": 0.3})
    assert one.rates.to_dict() == each.rates.to_dict()
    assert any(text.startswith("One class prior") for text in one.warnings)
    assert not any(text.startswith("One class prior") for text in each.warnings)


def test_the_sign_of_the_fpr_gap_may_be_open():
    found = audit(SCORES, decision=DATA.posterior >= 0.7)
    assert found.gaps["fpr"].low == 0
    assert "not determined" in found.gaps["fpr"].reason
    assert any("more false alarms (FPR) is not" in text for text in found.warnings)
    flips = found.sensitivity["fpr_flip"].values()
    assert any(": possible" in flip.reason for flip in flips)


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (np.ones(8000), "accepts everybody in groups 'f', 'm'"),
        (np.zeros(8000), "accepts nobody in groups 'f', 'm'"),
        ((DATA.group == "m").astype(int), "accepts nobody in group 'f'"),
        (
            np.arange(8000) % 2,
            "nothing here says that the decision recognizes",
        ),
    ],
)
def test_trivial_decisions_are_called_so(decision, text):
    found = audit(**ROWS, decision=decision)
    assert any(text in warning for warning in found.warnings)


def test_few_labels_are_told_and_claim_no_fpr():
    few = np.flatnonzero((DATA.group == "f") & (DATA.labeled == 1))[12:]
    kept = np.setdiff1d(np.arange(8000), few)
    found = audit(
        labeled=DATA.labeled[kept],
        group=DATA.group[kept],
        score=DATA.score[kept],
        threshold=0.2,
    )
    assert found.rates["f"]["fpr"].reason == "fewer than 20 labeled rows"
    assert found.warnings[0].startswith("Group 'f' has only 12 labeled rows")


# Tuned or fixed


def test_a_rule_is_recognized_on_the_rows_that_tuned_it():
    rule = fit_rule(SCORES, label_frequency=FREQUENCY)
    tuned = audit(SCORES, rule=rule)
    other = make_underdiagnosed(8000, label_frequency=(0.3, 0.7), random_state=9)
    fixed = audit(
        labeled=other.labeled, group=other.group, score=other.score, rule=rule
    )
    assert tuned.gaps["tpr"] == rule.realized.gaps["tpr"]
    assert "tuned on these rows" in tuned.warnings[0]
    assert not any("tuned" in text for text in fixed.warnings)
    assert not fixed.tuned


def test_the_classifier_audits_itself_on_out_of_fold_scores():
    clf = FairPULClassifier(LogisticRegression(max_iter=5000), random_state=0, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(DATA.X, DATA.labeled, sensitive_features=DATA.group)
    bare = pickle.loads(pickle.dumps(clf))
    with pytest.raises(AttributeError, match="held-out rows"):
        _ = bare.audit_
    found = clf.audit_
    assert found is clf.audit_
    assert found.tuned
    assert found.gaps["tpr"] == clf.rule_.realized.gaps["tpr"]
    kept = pickle.loads(pickle.dumps(clf)).audit_
    assert kept.to_dict() == found.to_dict()
    assert kept.evidence is None


def test_many_groups_share_their_warnings():
    group = np.arange(8000) % 40
    found = audit(labeled=DATA.labeled, group=group, score=DATA.score, threshold=0.2)
    assert len(found.warnings) < 8
    few = next(text for text in found.warnings if "have few labeled rows" in text)
    assert few.count("(") == 10
    assert " more have few labeled rows" in few
    pooled = [text for text in found.warnings if "all groups together" in text]
    assert len(pooled) == 1
    assert "The same goes for groups '1', '2', " in pooled[0]


@pytest.mark.parametrize(
    ("given", "doubt"),
    [
        ({"label_frequency": 0.9}, "One label frequency (0.9) was given for all"),
        ({"class_prior": 0.3}, "One class prior was given for all groups"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*contradict")
def test_the_audit_of_a_classifier_doubts_one_number_for_all_groups(given, doubt):
    clf = FairPULClassifier(
        LogisticRegression(max_iter=5000), random_state=0, cv=3, **given
    )
    clf.fit(DATA.X, DATA.labeled, sensitive_features=DATA.group)
    assert any(doubt in text for text in clf.audit_.warnings)


def test_a_prior_of_one_group_leaves_the_range_of_the_other():
    one = audit(SCORES, threshold=0.1, class_prior={"f": (0.15, 0.1, 0.2)})
    both = audit(SCORES, threshold=0.1, class_prior={"f": (0.15, 0.1, 0.2), "m": 0.25})
    none = audit(SCORES, threshold=0.1)
    assert one.rates["f"] == both.rates["f"]
    assert one.rates["m"] == none.rates["m"]
    assert [one.rates[key]["fpr"].tier for key in "fm"] == ["prior", "label frequency"]
    assert "all label frequency or prior values" in one.gaps["fpr"].reason
    said = "given the prevalence entered, and in the other groups over every share"
    assert said in one.to_html()


# Sensitivity and checks


def test_sensitivity_of_the_tpr_gap_by_hand():
    # T = .75 of 160 in f, .5 of 160 in m; odds ratio 3.
    labeled = np.tile(np.arange(1000) < 160, 2)
    accepted = np.concatenate(
        [
            np.where(np.arange(1000) < 160, np.arange(1000) < share, False)
            for share in (120, 80)
        ]
    )
    report = audit(
        labeled=labeled,
        group=np.repeat(["f", "m"], 1000),
        decision=accepted,
    )
    found = report.sensitivity
    assert found["labeling_bias"].estimate == pytest.approx(3)
    assert found["labeling_bias_both"].estimate == pytest.approx(math.sqrt(3))
    assert found["hidden_gap"]["1.25"].low > 0
    # At a bias of 2 > sqrt(3) in both groups, nothing is left.
    assert found["hidden_gap"]["2"].low == 0
    least = found["false_labels"]["least"]
    assert least.estimate == pytest.approx(1 / 3)
    # At the ends of the gap's interval: a gap g is g/.75 or g/(.25 + g), if smaller.
    gap = report.gaps["tpr"]
    assert least.low == pytest.approx(min(gap.low / 0.75, gap.low / (0.25 + gap.low)))
    assert least.high == pytest.approx(
        min(gap.high / 0.75, gap.high / (0.25 + gap.high))
    )


def test_a_fragile_gap_is_called_so():
    labeled = np.tile(np.arange(4000) < 2000, 2)
    accepted = np.concatenate([np.arange(4000) < share for share in (1250, 1100)])
    found = audit(labeled=labeled, group=np.repeat(["f", "m"], 4000), decision=accepted)
    assert found.gaps["tpr"].low > 0
    assert any(text.startswith("The gap in TPR is fragile") for text in found.warnings)


def test_sources_that_differ_are_told():
    source = np.where(np.arange(8000) % 2, "a", "b")
    score = np.where((source == "a") & (DATA.labeled == 1), DATA.score / 2, DATA.score)
    rows = {"labeled": DATA.labeled, "group": DATA.group, "score": score}
    found = audit(**rows, threshold=0.2, source=source)
    assert found.checks["source"]["m"].estimate < 1e-6
    assert any("differ between sources" in text for text in found.warnings)
    plain = audit(**ROWS, threshold=0.2, source=source)
    assert plain.checks["source"]["m"].estimate > 1e-3


def test_features_give_the_ratio_of_label_frequencies():
    found = audit(**ROWS, threshold=0.2, X=DATA.X, label_frequency=FREQUENCY)
    assert set(found.checks["label_frequency_ratio"]) == {"m"}
    assert found.checks["label_frequency_ratio"]["m"].tier == "label frequency"


def test_a_score_that_is_no_probability_is_told():
    found = audit(
        labeled=DATA.labeled, group=DATA.group, score=DATA.score**3, threshold=0.01
    )
    assert any("no calibrated probability" in text for text in found.warnings)


def test_unlabeled_rows_can_be_the_population():
    everybody = audit(SCORES, threshold=0.2, label_frequency=FREQUENCY)
    found = audit(
        SCORES, threshold=0.2, label_frequency=FREQUENCY, population="unlabeled"
    )
    for key in ("f", "m"):
        one, other = found.rates[key], everybody.rates[key]
        assert (one["tpr"], one["fpr"]) == (other["tpr"], other["fpr"])
        assert one["selection_rate"].estimate < other["selection_rate"].estimate
        assert one["prevalence"].estimate < other["prevalence"].estimate


# Its forms


def test_the_dictionary_has_the_leaves_of_the_contract():
    found = json.loads(audit(SCORES, threshold=0.2).to_json())
    assert list(found) == ["rates", "gaps", "sensitivity", "checks", "warnings"]
    assert list(found["rates"]) == ["f", "m"]
    assert set(found["rates"]["f"]) == {
        "tpr",
        "fpr",
        "selection_rate",
        "ppv",
        "prevalence",
    }
    assert set(found["gaps"]) == {"tpr", "fpr", "selection_rate"}
    for branch in ("rates", "gaps", "sensitivity", "checks"):
        for leaf in leaves(found[branch]):
            assert leaf["tier"] in ("c-free", "label frequency", "prior")
    assert found["gaps"]["tpr"] == audit(SCORES, threshold=0.2).gaps["tpr"].to_dict()


def test_groups_that_read_alike_are_refused_as_text():
    group = np.array([1, "1"], dtype=object)[(DATA.group == "m").astype(int)]
    found = audit(labeled=DATA.labeled, group=group, score=DATA.score, threshold=0.2)
    assert set(found.rates) == {1, "1"}
    with pytest.raises(ValueError, match="read alike"):
        found.to_dict()
    for text in (repr(found), found.to_markdown(), found._repr_html_()):
        assert "'1'" in text.replace("&#x27;", "'")
    change = found.compare(found)
    assert "\n'1'  " in repr(change)
    with pytest.raises(ValueError, match="read alike"):
        change.to_dict()


def test_intersections_are_named_by_their_parts():
    group = np.column_stack([DATA.group, np.where(np.arange(8000) % 2, "a", "b")])
    found = audit(labeled=DATA.labeled, group=group, score=DATA.score, threshold=0.2)
    assert list(found.to_dict()["rates"]) == ["f/a", "f/b", "m/a", "m/b"]


def test_one_group_has_no_gap_and_no_sensitivity():
    found = audit(labeled=DATA.labeled, score=DATA.score, threshold=0.2)
    assert found.gaps["tpr"].estimate == 0
    assert found.sensitivity == {}
    assert not any("gap" in text for text in found.warnings)
    assert "## Sensitivity" not in found.to_markdown()
    assert "gap" not in repr(found)


def test_markdown_and_html_hold_every_rate_and_warning():
    found = audit(SCORES, threshold=0.2)
    markdown, html, text = found.to_markdown(), found._repr_html_(), repr(found)
    for form in (markdown, html, text):
        assert f"{found.rates['m']['tpr'].estimate:.3f}" in form
        assert f"{found.gaps['tpr'].high:.3f}" in form
    assert markdown.startswith("## Finding\n\nOf 100 positives in group f, ")
    for warning in found.warnings:
        assert f"* {warning}" in markdown
        assert warning in unescape(html)
        assert warning in " ".join(text.replace("\n  ", " ").split("\n! "))
    assert text.splitlines()[5].split("  ")[0] == "tier"
    for line in markdown.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_group_names_are_escaped():
    group = np.where(DATA.group == "f", "<b>f|f</b>", "m")
    found = audit(labeled=DATA.labeled, group=group, score=DATA.score, threshold=0.2)
    assert "<b>" not in found._repr_html_()
    assert "&lt;b&gt;" in found._repr_html_()
    assert "f\\|f" in found.to_markdown()


# Refusals


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "only at a cut"),
        ({"threshold": 0.2, "capacity": 0.1}, ValueError, "Give one of"),
        ({"threshold": 1.2}, ValueError, r"threshold must lie in \[0, 1\]"),
        ({"capacity": 0.0}, ValueError, r"capacity must lie in \(0, 1\]"),
        ({"threshold": 0.2, "population": "some"}, ValueError, "population must be"),
        ({"threshold": 0.2, "level": 95}, ValueError, "level must lie between"),
        ({"threshold": 0.2, "labeled": DATA.labeled}, TypeError, "already"),
        ({"decision": np.full(8000, 2)}, ValueError, "decision must be 1"),
        ({"decision": [1, 0]}, ValueError, "decision has 2 rows"),
        ({"decision": [None, *[1] * 7999]}, ValueError, "decision is missing in 1 row"),
        ({"decision": ["yes"] * 8000}, ValueError, "decision must be numbers"),
        ({"threshold": 0.2, "source": ["a"]}, ValueError, "source has 1 rows"),
        (
            {"threshold": 0.2, "source": [*["a"] * 7998, None, math.nan]},
            ValueError,
            "source is missing in 2 rows",
        ),
    ],
)
def test_unusable_arguments_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        audit(SCORES, **arguments)


def test_arrays_need_labels_and_a_score_or_decision():
    with pytest.raises(TypeError, match="audit needs labeled="):
        audit(score=DATA.score, threshold=0.2)
    with pytest.raises(TypeError, match="audit needs labeled="):
        audit(labeled=DATA.labeled, threshold=0.2)
    with pytest.raises(TypeError, match="audit takes GroupScores"):
        audit(DATA.score, labeled=DATA.labeled, threshold=0.2)


def test_a_rule_that_lacks_a_group_is_refused():
    rule = fit_rule(SCORES, label_frequency=FREQUENCY)
    with pytest.raises(ValueError, match="no cut for the groups"):
        audit(
            labeled=DATA.labeled,
            group=np.where(DATA.group == "f", "x", "m"),
            score=DATA.score,
            rule=rule,
        )


def test_an_estimate_is_all_that_a_leaf_holds():
    found = audit(SCORES, threshold=0.2)
    assert isinstance(found.sensitivity["hidden_gap"]["2"], Estimate)
