import numpy as np
import pytest

from fairpul import GroupCounts, GroupScores, audit, fit_rule
from fairpul.comparison import gap_change
from fairpul.datasets import make_underdiagnosed
from fairpul.estimate import Estimate

DATA = make_underdiagnosed(4000, random_state=0)
SCORES = GroupScores(DATA.score, DATA.labeled, DATA.group)
BEFORE = audit(SCORES, capacity=0.2)
AFTER = audit(SCORES, rule=fit_rule(SCORES))


def test_changes_are_the_differences_of_the_audits():
    found = BEFORE.compare(AFTER)
    for key in ("f", "m"):
        for name in ("tpr", "fpr", "selection_rate"):
            expected = (
                AFTER.rates[key][name].estimate - BEFORE.rates[key][name].estimate
            )
            assert found.rates[key][name].estimate == pytest.approx(expected)
    for name in ("tpr", "fpr", "selection_rate"):
        expected = AFTER.gaps[name].estimate - BEFORE.gaps[name].estimate
        assert found.gaps[name].estimate == pytest.approx(expected)
        assert found.gaps[name].low <= expected <= found.gaps[name].high


def test_pairing_narrows_the_interval():
    nearby = audit(SCORES, capacity=0.22)
    for key in ("f", "m"):
        paired = BEFORE.compare(nearby).rates[key]["tpr"]
        alone = BEFORE.rates[key]["tpr"]
        # Unpaired, it would be wider than either by the root of 2.
        assert paired.high - paired.low < 0.85 * (alone.high - alone.low)


def test_no_change_is_not_a_certain_one():
    found = BEFORE.compare(BEFORE)
    same = found.rates["f"]["tpr"]
    assert same.estimate == 0
    assert same.low < 0 < same.high < 0.05
    assert found.gaps["tpr"].estimate == 0


def test_reversing_reverses_the_signs():
    one, other = BEFORE.compare(AFTER), AFTER.compare(BEFORE)
    for key in ("f", "m"):
        a, b = one.rates[key]["tpr"], other.rates[key]["tpr"]
        assert (a.low, a.high) == pytest.approx((-b.high, -b.low))


def test_counts_compare_as_rows_do():
    counts = GroupCounts.from_scores(SCORES)
    table = audit(counts, threshold=0.0625).compare(audit(counts, threshold=0.3164062))
    cut = (0.0625, 0.75**4)  # edges of bins
    rows = audit(SCORES, threshold=cut[0]).compare(audit(SCORES, threshold=cut[1]))
    for key in ("f", "m"):
        assert table.rates[key]["tpr"].estimate == pytest.approx(
            rows.rates[key]["tpr"].estimate, abs=0.01
        )
        assert table.rates[key]["tpr"].low == pytest.approx(
            rows.rates[key]["tpr"].low, abs=0.01
        )


def test_other_rows_are_refused():
    other = audit(
        SCORES.__class__(DATA.score[:50], DATA.labeled[:50], None), threshold=0.2
    )
    with pytest.raises(ValueError, match="same rows"):
        BEFORE.compare(other)


def test_audits_of_other_populations_or_levels_are_refused():
    for option in ({"population": "unlabeled"}, {"level": 0.9}):
        other = audit(SCORES, capacity=0.3, **option)
        with pytest.raises(ValueError, match=f"one {next(iter(option))}, got"):
            BEFORE.compare(other)


def test_selection_of_unlabeled_rows_is_compared_among_them():
    one, other = (
        audit(SCORES, capacity=share, population="unlabeled") for share in (0.2, 0.3)
    )
    found = one.compare(other)
    for key in ("f", "m"):
        change = found.rates[key]["selection_rate"]
        expected = (
            other.rates[key]["selection_rate"].estimate
            - one.rates[key]["selection_rate"].estimate
        )
        assert change.estimate == pytest.approx(expected)
        assert change.low < expected < change.high


def test_other_label_frequencies_leave_no_change_of_the_fpr():
    other = audit(SCORES, capacity=0.3, label_frequency={"f": 0.35, "m": 0.75})
    found = BEFORE.compare(other)
    assert np.isnan(found.gaps["fpr"].estimate)
    assert "different label frequencies" in found.rates["f"]["fpr"].reason
    assert found.rates["f"]["tpr"].estimate > 0


def test_a_gap_that_changes_its_sign_has_the_width_of_both():
    # f takes the place of m at the top, so that errors of the two gaps are opposite.
    accepted = [
        np.where(DATA.group == key, DATA.posterior >= 0.1, DATA.posterior >= 0.6)
        for key in ("m", "f")
    ]
    one, other = (
        audit(SCORES, decision=decision, label_frequency=DATA.label_frequency)
        for decision in accepted
    )
    found = one.compare(other).gaps["fpr"]
    one, other = one.gaps["fpr"], other.gaps["fpr"]
    independent = np.hypot(one.high - one.estimate, other.estimate - other.low)
    assert found.estimate - found.low > independent


def test_independent_gaps_differ_by_the_root_of_squares():
    found = gap_change(
        Estimate(0.3, 0.2, 0.4, "c-free"), Estimate(0.1, 0.0, 0.3, "c-free"), 0.0
    )
    assert found.low == pytest.approx(-0.2 - np.hypot(0.1, 0.1))
    assert found.high == pytest.approx(-0.2 + np.hypot(0.2, 0.1))


def test_it_prints_as_a_table_and_goes_to_a_dictionary():
    found = BEFORE.compare(AFTER)
    assert str(found).splitlines()[0].split() == [
        "change",
        "in",
        "tpr",
        "fpr",
        "selection_rate",
    ]
    assert set(found.to_dict()["rates"]) == {"f", "m"}


def test_what_is_not_determined_is_said_with_its_reason():
    other = audit(SCORES, threshold=0.1, label_frequency={"f": 0.35, "m": 0.7})
    for form in (str(BEFORE.compare(other)), BEFORE.compare(other)._repr_html_()):
        assert "not determined" in form
        assert "lean on different label frequencies" in " ".join(form.split())
        assert "nan" not in form


def test_intervals_of_changes_cover():
    runs, inside = 200, np.zeros(3)
    cuts = 0.3, 0.55
    truth = [
        make_underdiagnosed(10, random_state=0).population_rates(cut) for cut in cuts
    ]
    tpr = [{key: rates[key]["tpr"] for key in rates} for rates in truth]
    change = {key: tpr[1][key] - tpr[0][key] for key in ("f", "m")}
    gap = [abs(rates["f"] - rates["m"]) for rates in tpr]
    for seed in range(runs):
        data = make_underdiagnosed(2500, random_state=seed)
        one, other = (
            audit(
                labeled=data.labeled,
                group=data.group,
                decision=data.posterior >= cut,
                label_frequency=data.label_frequency,
            )
            for cut in cuts
        )
        found = one.compare(other)
        inside += [
            *(
                found.rates[key]["tpr"].low
                <= change[key]
                <= found.rates[key]["tpr"].high
                for key in ("f", "m")
            ),
            found.gaps["tpr"].low <= gap[1] - gap[0] <= found.gaps["tpr"].high,
        ]
    # 3.2 standard errors of .015 below .95; a gap's interval is wider than need be.
    assert (inside / runs > 0.90).all()
