import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpul import Capacity, DecisionRule, MinimumCost, RecallFloor, fit_rule


def rows(groups=("f", "m"), n_per_group=500, seed=0):
    """Scores, labels and groups; the first group is labeled half as often."""
    rng = np.random.default_rng(seed)
    group = [key for key in groups for _ in range(n_per_group)]
    posterior = rng.beta(0.8, 1.2, size=len(group))
    frequency = np.repeat(np.linspace(0.4, 0.8, len(groups)), n_per_group)
    labeled = rng.random(len(group)) < posterior * frequency
    return np.round(posterior * frequency, 2), labeled, group


def fitted(groups=("f", "m"), **options):
    options = {"label_frequency": 0.9, "random_state": 0} | options
    return fit_rule(*rows(groups), **options)


@pytest.fixture(scope="module")
def plain():
    return fitted()


@pytest.fixture(scope="module")
def odds():
    return fitted(constraint="equalized_odds")


@pytest.fixture(scope="module")
def lottery(plain):
    """Rule with lotteries of every kind, by hand."""
    return replace(
        plain,
        cuts=(((0.75, 0.25), (0.5, 0.5), (0.25, 0.25)), ((np.inf, 0.4), (0.0, 0.6))),
        seed=99,
    )


@pytest.mark.parametrize(
    ("cuts", "score", "probability"),
    [
        (((0.5, 1.0),), [0.5, 0.4999, 1.0, 0.0], [1, 0, 1, 0]),
        (((np.inf, 1.0),), [1.0, 0.0], [0, 0]),
        (((0.0, 1.0),), [1.0, 0.0], [1, 1]),
        (((0.75, 0.25), (0.5, 0.75)), [0.75, 0.74, 0.5, 0.49], [1, 0.75, 0.75, 0]),
        (((0.75, 0.25), (0.5, 0.5), (0.25, 0.25)), [0.6, 0.3, 0.2], [0.75, 0.25, 0]),
        (((np.inf, 0.25), (0.5, 0.75)), [1.0, 0.1], [0.75, 0]),
    ],
)
def test_acceptance_probabilities_by_hand(plain, cuts, score, probability):
    rule = replace(plain, cuts=(cuts, ((0.5, 1.0),)))
    found = rule.acceptance_probability(score, ["f"] * len(score))
    assert found.tolist() == probability


def test_each_row_is_judged_by_its_group(plain):
    rule = replace(plain, cuts=(((0.3, 1.0),), ((0.6, 1.0),)))
    group = ["m", "f", "m", "f"]
    assert rule.decide([0.5, 0.5, 0.6, 0.2], group).tolist() == [0, 1, 1, 0]


def test_rates_on_the_fitted_rows_are_the_realized_rates(plain, odds):
    score, labeled, group = rows()
    for rule in (plain, odds):
        accepted = rule.acceptance_probability(score, group)
        for key in rule.groups:
            member = np.array(group) == key
            rates = rule.realized[key]
            # Sums of up to 500 rounded terms.
            assert accepted[member].mean() == pytest.approx(
                rates["selection_rate"].estimate, abs=1e-12
            )
            assert accepted[member & labeled].mean() == pytest.approx(
                rates["tpr"].estimate, abs=1e-12
            )


def test_lottery_share_is_the_share_of_rows_with_an_open_decision(odds):
    score, _, group = rows()
    probability = odds.acceptance_probability(score, group)
    is_open = (probability > 0) & (probability < 1)
    assert is_open.any()
    assert odds.has_lottery
    for key, share in odds.lottery_share.items():
        assert share == pytest.approx(is_open[np.array(group) == key].mean(), abs=1e-12)


def test_rows_are_accepted_as_often_as_the_probability_says(lottery):
    n = 20_000
    for score, group, probability in (
        (0.6, "f", 0.75),
        (0.3, "f", 0.25),
        (0, "m", 0.6),
    ):
        ids = np.arange(n)
        text = np.array([f"row {i}" for i in range(n)])
        for row_id in (ids, text):
            accepted = lottery.decide([score] * n, [group] * n, row_id=row_id).mean()
            # Four standard errors of a share of n rows.
            assert abs(accepted - probability) < 4 * np.sqrt(0.25 / n)
        # Without ids the count is even: within a few rows whatever n.
        count = lottery.decide([score] * n, [group] * n).sum()
        assert abs(count - n * probability) <= 4


def test_decisions_agree_with_certain_probabilities(lottery):
    rng = np.random.default_rng(0)
    score, group = rng.random(500), rng.choice(["f", "m"], size=500)
    probability = lottery.acceptance_probability(score, group)
    for row_id in (None, np.arange(500)):
        decision = lottery.decide(score, group, row_id=row_id)
        assert set(decision.tolist()) == {0, 1}
        assert (decision[probability == 1] == 1).all()
        assert (decision[probability == 0] == 0).all()


def test_a_higher_score_of_the_same_row_is_never_worse(lottery):
    ids = np.arange(300)
    decisions = [
        lottery.decide(np.full(300, score), ["f"] * 300, row_id=ids)
        for score in (0.2, 0.3, 0.6, 0.8)
    ]
    assert (np.diff(decisions, axis=0) >= 0).all()


batches = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.2, 0.3, 0.5, 0.6, 0.8, 1.0]), st.sampled_from("fm")
    ),
    min_size=1,
    max_size=30,
)


@given(batch=batches, random=st.randoms(), start=st.integers(-(2**62), 2**62))
def test_with_ids_order_and_batches_change_no_decision(lottery, batch, random, start):
    score, group = map(list, zip(*batch, strict=True))
    n = len(batch)
    for ids in (start + np.arange(n), np.array([f"{start}:{i}" for i in range(n)])):
        expected = lottery.decide(score, group, row_id=ids)
        order = random.sample(range(n), n)
        shuffled = lottery.decide(
            [score[i] for i in order], [group[i] for i in order], row_id=ids[order]
        )
        np.testing.assert_array_equal(shuffled, expected[order])
        split = random.randrange(n + 1)
        parts = [
            lottery.decide(score[part], group[part], row_id=ids[part])
            for part in (slice(split), slice(split, None))
        ]
        np.testing.assert_array_equal(np.concatenate(parts), expected)


@given(batch=batches, random=st.randoms())
def test_without_ids_order_changes_no_count_per_content(lottery, batch, random):
    def counts(batch):
        score, group = zip(*batch, strict=True)
        accepted = lottery.decide(score, group)
        return {
            content: sum(
                int(one)
                for one, other in zip(accepted, batch, strict=True)
                if other == content
            )
            for content in sorted(set(batch))
        }

    assert counts(random.sample(batch, len(batch))) == counts(batch)


def test_other_groups_in_the_batch_change_no_decision(lottery):
    score, group = np.tile([0.3, 0.6], 50), np.repeat(["f", "m"], 50)
    alone = lottery.decide(score[:50], group[:50])
    np.testing.assert_array_equal(lottery.decide(score, group)[:50], alone)


def test_the_salt_alone_sets_the_draws(lottery):
    score, group = [0.6] * 200, ["f"] * 200
    again = lottery.decide(score, group, row_id=range(200))
    other = replace(lottery, seed=100).decide(score, group, row_id=range(200))
    assert (lottery.decide(score, group, row_id=range(200)) == again).all()
    assert (other != again).any()


def test_random_state_sets_the_salt():
    seeds = {fitted(constraint="equalized_odds", random_state=s).seed for s in (1, 2)}
    assert len(seeds) == 2
    assert fitted(constraint="equalized_odds", random_state=1).seed in seeds
    assert fitted(random_state=1).seed == 0


@pytest.mark.parametrize(
    "ids",
    [
        list(range(100)),
        pd.Series(range(100), dtype="Int64"),
        pd.Series(range(100), dtype=object),
        pl.Series(range(100)),
        np.arange(100, dtype=np.uint8),
        np.arange(100, dtype=np.int16),
    ],
)
def test_integer_ids_of_any_kind_draw_alike(lottery, ids):
    expected = lottery.decide([0.6] * 100, ["f"] * 100, row_id=np.arange(100))
    found = lottery.decide([0.6] * 100, ["f"] * 100, row_id=ids)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_text_ids_of_any_kind_draw_alike(lottery, kind):
    ids = [f"p{i}" for i in range(100)]
    expected = lottery.decide([0.6] * 100, ["f"] * 100, row_id=np.array(ids))
    found = lottery.decide([0.6] * 100, ["f"] * 100, row_id=kind(ids))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("key", [0.5, ("f", 0.5), b"f", ("f", 1)])
def test_lots_are_drawn_for_groups_of_any_type(key):
    rule = fitted(groups=(key, "m"))
    rule = replace(rule, cuts=tuple(((0.5, 0.5), (0.25, 0.5)) for _ in rule.groups))
    group = [key, "m"] * 100
    # 200 rows of two contents, each accepted in its share to within a few rows.
    assert abs(rule.decide([0.3] * 200, group).sum() - 100) <= 8


def test_an_empty_batch_has_no_decision(lottery):
    assert lottery.decide([], []).tolist() == []
    assert lottery.decide([], [], row_id=[]).tolist() == []
    assert lottery.acceptance_probability([], []).tolist() == []


@pytest.mark.parametrize(
    ("arguments", "row_id", "text"),
    [
        (([0.5, 0.5], ["f", "x"]), None, r"Groups \['x'\] were not seen"),
        (([0.5], None), None, "no group was given"),
        (([0.5], [None]), None, "group is missing in 1 rows"),
        (([0.5], ["f", "m"]), None, "group has 2 rows where 1 were expected"),
        (([np.nan], ["f"]), None, "1 missing and 0 outside"),
        (([1.5], ["f"]), None, "0 missing and 1 outside"),
        (([0.5], ["f"]), [1, 2], "row_id has 2 rows where 1 were expected"),
        (([0.5], ["f"]), [0.5], "must hold integers or strings, none missing"),
        (([0.5], ["f"]), [None], "must hold integers or strings, none missing"),
        (([0.5, 0.5], ["f"] * 2), ["a", None], "must hold integers or strings"),
        (([0.5, 0.5], ["f"] * 2), pd.Series([1, None], dtype="Int64"), "none missing"),
        (([0.5], ["f"]), [True], "must hold integers or strings"),
    ],
)
def test_bad_input_is_refused_with_and_without_a_lottery(
    plain, lottery, arguments, row_id, text
):
    for rule in (plain, lottery):
        with pytest.raises(ValueError, match=text):
            rule.decide(*arguments, row_id=row_id)
    if row_id is None:
        with pytest.raises(ValueError, match=text):
            plain.acceptance_probability(*arguments)


FITS = {
    "default": {},
    "odds": {"constraint": "equalized_odds"},
    "two tolerances": {
        "constraint": "equalized_odds",
        "tolerance": {"tpr": 0.02, "fpr": 0.05},
    },
    "parity with costs": {
        "constraint": "demographic_parity",
        "objective": MinimumCost(np.int64(3), 1),
    },
    "exact mixture": {"constraint": "predictive_equality", "lottery": True},
    "recall": {"objective": RecallFloor(0.7, assured=True), "constraint": None},
    "capacity": {"objective": Capacity(np.float32(0.2))},
    "capacity and floor": {
        "objective": Capacity(0.5, floor=RecallFloor(0.2)),
        "constraint": None,
    },
    "frequencies": {"label_frequency": {"f": 0.6, "m": 0.9}},
}


@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
def test_json_gives_back_the_same_rule(options):
    rule = fitted(**options)
    again = DecisionRule.from_json(rule.to_json())
    assert again == rule
    assert again.to_json() == rule.to_json()
    assert repr(again) == repr(rule)
    score, _, group = rows()
    np.testing.assert_array_equal(again.decide(score, group), rule.decide(score, group))


@pytest.mark.parametrize(
    "groups", [(1, "1"), (True, False), (("f", 1), ("f", "1")), (-3, 10**15), ("", "é")]
)
def test_json_keeps_the_types_of_groups(groups):
    rule = fitted(groups, constraint="equalized_odds")
    again = DecisionRule.from_json(rule.to_json())
    assert again == rule
    assert [repr(key) for key in again.groups] == [repr(key) for key in rule.groups]
    score, _, group = rows(groups)
    np.testing.assert_array_equal(again.decide(score, group), rule.decide(score, group))


def test_json_keeps_infinite_cuts_and_every_digit(lottery):
    cuts = (((0.1 + 0.2, 1 / 3), (1e-300, 2 / 3)), ((np.inf, 0.4), (5e-324, 0.6)))
    rule = replace(lottery, cuts=cuts, seed=2**62 - 1)
    text = rule.to_json()
    assert "Infinity" not in text
    again = DecisionRule.from_json(text)
    assert again.cuts == cuts
    assert again.seed == 2**62 - 1


def test_json_keeps_the_bins_of_a_binned_rule(lottery):
    cuts = (((2048.0, 0.5), (17.0, 0.5)), ((np.inf, 0.4), (0.0, 0.6)))
    rule = replace(lottery, cuts=cuts, bins=4096)
    again = DecisionRule.from_json(rule.to_json())
    assert again == rule
    # (2048 / 4096)**4 = 0.0625 is the lower edge of the first cut's bin.
    assert again.acceptance_probability([0.0625, 0.0624], ["f"] * 2).tolist() == [
        1,
        0.5,
    ]


def test_json_keeps_undefined_rates():
    score, labeled, group = rows(n_per_group=60)
    with pytest.warns(UserWarning, match="fewer than 50 labeled rows"):
        rule = fit_rule(score, labeled, group, label_frequency=0.9)
    assert np.isnan(rule.realized["f"]["fpr"].estimate)
    text = rule.to_json()
    assert "NaN" not in text
    again = DecisionRule.from_json(text)
    assert again.to_json() == text
    assert np.isnan(again.realized["f"]["fpr"].estimate)


def test_groups_without_a_json_form_are_refused_at_export():
    rule = fitted(groups=(0.5, 1.5))
    with pytest.raises(
        ValueError, match=r"Group 0\.5 of type float cannot be exported"
    ):
        rule.to_json()


SINGLE = [[0.5, 1.0]]
TAMPERED = {
    "format": ({"format": 2}, "A fairpul rule of format 1 is required, got 2"),
    "unknown constraint": ({"constraint": "fair"}, "constraint must be one of"),
    "tolerance of another": ({"tolerance": {"fpr": 0}}, "needs one entry for each of"),
    "tolerance of text": ({"tolerance": {"tpr": "0"}}, "must be a number in"),
    "unknown objective": ({"objective": {"name": "Profit"}}, "Unknown objective"),
    "bad objective": ({"objective": {"name": "Capacity", "share": 2}}, "share must be"),
    "objective field": ({"objective": {"name": "Capacity", "x": 2}}, "are damaged"),
    "same groups": ({"groups": ["f", "f"]}, "each of its distinct groups"),
    "equal groups": ({"groups": [1, True]}, "each of its distinct groups"),
    "more groups": ({"groups": ["f", "m", "x"]}, "each of its distinct groups"),
    "float group": ({"groups": ["f", 0.5]}, "must be a string, an integer or a list"),
    "missing group": ({"groups": ["f", None]}, "must be a string, an integer"),
    "no cuts": ({"cuts": [SINGLE, []]}, "positive weights that sum to 1"),
    "rising cuts": ({"cuts": [SINGLE, [[0.2, 0.5], [0.4, 0.5]]]}, "Cuts must fall"),
    "same cuts": ({"cuts": [SINGLE, [[0.4, 0.5], [0.4, 0.5]]]}, "Cuts must fall"),
    "weights": ({"cuts": [SINGLE, [[0.4, 0.9]]]}, "weights that sum to 1"),
    "negative weight": ({"cuts": [SINGLE, [[0.4, 2], [0.2, -1]]]}, "positive weights"),
    "cut above 1": ({"cuts": [SINGLE, [[1.5, 1.0]]]}, r"each in \[0, 1\] or null"),
    "cut below 0": ({"cuts": [SINGLE, [[-0.5, 1.0]]]}, r"each in \[0, 1\] or null"),
    "cut nan": ({"cuts": [SINGLE, [[float("nan"), 1.0]]]}, r"each in \[0, 1\] or null"),
    "weight nan": ({"cuts": [SINGLE, [[0.5, float("nan")]]]}, "weights that sum to 1"),
    "cuts null": ({"cuts": None}, "are damaged"),
    "bins": ({"bins": 1000}, "bins must be a power of two"),
    "bins of cuts": ({"bins": 4096}, "bin numbers of a binned rule are whole"),
    "cuts flat": ({"cuts": [0.5, 0.5]}, "are damaged"),
    "seed text": ({"seed": "x"}, "seed must be an integer"),
    "seed float": ({"seed": 1.5}, "seed must be an integer"),
    "seed bool": ({"seed": True}, "seed must be an integer"),
    "shares": ({"lottery_share": [0.0]}, "one lottery_share for each of its groups"),
    "frequencies": ({"label_frequency": []}, "one label_frequency for each"),
    "frequency": ({"label_frequency": [{}, {}]}, "are damaged"),
    "rates": ({"realized": {}}, "are damaged"),
    "rates null": ({"expected": None}, "are damaged"),
}


@pytest.mark.parametrize(("change", "text"), TAMPERED.values(), ids=TAMPERED)
def test_tampered_json_is_refused(plain, change, text):
    fields = json.loads(plain.to_json())
    with pytest.raises(ValueError, match=text):
        DecisionRule.from_json(json.dumps(fields | change))


def test_missing_fields_are_named(plain):
    fields = json.loads(plain.to_json())
    del fields["cuts"], fields["seed"]
    with pytest.raises(ValueError, match=r"lacks the fields \['cuts', 'seed'\]"):
        DecisionRule.from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["[]", "1", '"rule"', "null", "{}"])
def test_other_json_is_refused(text):
    with pytest.raises(ValueError, match="A fairpul rule of format 1 is required"):
        DecisionRule.from_json(text)


def test_text_that_is_not_json_is_refused(plain):
    with pytest.raises(json.JSONDecodeError):
        DecisionRule.from_json(plain.to_json()[:-5])


def test_rules_are_frozen_values(plain):
    assert plain == fitted()
    assert plain != fitted(tolerance=0.3)
    with pytest.raises(FrozenInstanceError):
        plain.seed = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(plain)


def test_printed_rule_is_a_table(lottery):
    rule = replace(
        lottery,
        groups=("f", "other"),
        cuts=(((0.75, 0.25), (1 / 3, 0.75)), ((np.inf, 0.4), (0.0, 0.6))),
    )
    assert repr(rule).splitlines() == [
        "DecisionRule(equal_opportunity, "
        "MinimumCost(false_negative=1.0, false_positive=1.0))",
        "  f      25.0%: accept score >= 0.75; 75.0%: accept score >= 0.333333",
        "  other  40.0%: accept nobody; 60.0%: accept everybody",
    ]
    single = replace(rule, cuts=(((0.5, 1.0),),), groups=(1,), constraint=None)
    assert repr(single).splitlines()[1:] == ["  1  accept score >= 0.5"]
    assert repr(single).startswith("DecisionRule(no constraint, ")
