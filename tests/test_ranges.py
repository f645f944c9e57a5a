"""Rates over all possible label frequencies, and among the unlabeled."""

import math

import numpy as np
import pytest

from fairpul.intervals import gap_interval, gap_interval_of_ranges
from fairpul.label_frequency import LabelFrequency
from fairpul.rates import group_rates
from fairpul.tally import Tally, tally

DECISION = np.array([0.0, 1.0])


def from_counts(labeled_accepted, labeled_rejected, accepted, rejected):
    labeled = np.array([labeled_rejected, labeled_accepted])
    weight = labeled + np.array([rejected, accepted])
    return Tally(DECISION, weight, labeled, weight.sum(), labeled.sum())


#: n = 1000, rho = .16, T = .75, Q = .3; FPR .140/.84 at c = 1, .06/.68 at .5.
WOMEN = from_counts(120, 40, 180, 660)
MEN = from_counts(90, 60, 160, 690)


def rates(c, low, high, method="peak_rate", **options):
    known = LabelFrequency(c, low, high, method)
    both = {"f": known, "m": LabelFrequency(0.5, 0.5, 0.5, "known")}
    options = {"ranges": True, "tuned": False} | options
    return group_rates([WOMEN, MEN], ["f", "m"], both, **options)


def test_a_range_is_the_union_of_the_intervals_in_it():
    found = rates(0.5, 0.4, 1.0)["f"]
    grid = [rates(c, c, c, ranges=False)["f"] for c in np.linspace(0.4, 1, 61).tolist()]
    for name in ("fpr", "ppv", "prevalence"):
        low, high = min(r[name].low for r in grid), max(r[name].high for r in grid)
        assert found[name].high == pytest.approx(high)
        # The FPR at c = .4 allows for a larger labeled share in its own way.
        assert found[name].low == pytest.approx(low, abs=0.01 if name == "fpr" else 0)
        assert found[name].estimate == rates(0.5, 0.5, 0.5)["f"][name].estimate
        assert "over label frequencies from 0.4 to 1" in found[name].reason
    assert found["tpr"] == rates(0.5, 0.5, 0.5)["f"]["tpr"]


def test_without_any_knowledge_the_fpr_may_be_zero():
    found = rates(0.5, 0.1, 1.0)["f"]["fpr"]  # below the labeled share of .16
    assert found.low == 0
    assert found.high == pytest.approx(rates(1.0, 1.0, 1.0)["f"]["fpr"].high, abs=0.02)


def test_an_estimate_never_lies_outside_its_own_interval():
    # At c = .35 the FPR of women is (.3 - .457 * .75)/.543 = -.079, their PPV 1.14.
    found = rates(0.35, 0.3, 1.0)["f"]
    assert found["fpr"].estimate < 0
    assert found["ppv"].estimate > 1
    for rate in found.values():
        assert rate.low <= rate.estimate <= rate.high


def test_a_point_has_no_range():
    assert (
        rates(0.5, 0.5, 0.5).to_dict() == rates(0.5, 0.5, 0.5, ranges=False).to_dict()
    )


def test_the_interval_of_a_prior_is_a_range_of_the_tier_prior():
    found = rates(0.5, 0.4, 0.8, method="class_prior")["f"]
    assert found["fpr"].tier == "prior"
    assert found["fpr"].reason.startswith("over class priors from 0.2 to 0.4")
    assert (found["prevalence"].low, found["prevalence"].high) == pytest.approx(
        (0.2, 0.4)
    )


def test_the_fpr_gap_over_a_range_says_when_its_sign_is_open():
    # Men: .07/.7 = .1 at c = .5; women from 0 to .17.
    gap = rates(0.5, 0.3, 1.0).gaps["fpr"]
    assert gap.low == 0
    assert "not determined" in gap.reason
    surely = rates(0.9, 0.85, 1.0, level=0.5).gaps["fpr"]
    assert surely.low > 0
    assert "not determined" not in surely.reason


@pytest.mark.parametrize("tuned", [True, False])
def test_ranges_that_are_points_give_the_usual_gap_of_two(tuned):
    center, se = np.array([0.6, 0.3]), np.array([0.03, 0.04])
    z = 1.959963985
    found = gap_interval_of_ranges(
        center, center, center - z * se, center + z * se, tuned=tuned
    )
    assert found == pytest.approx(gap_interval(center, se, tuned=tuned), rel=1e-9)


# Among the unlabeled


def simulated(seed, n, c=0.4, prior=0.3):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < prior
    labeled = positive & (rng.random(n) < c)
    accepted = rng.random(n) < np.where(positive, 0.7, 0.2)
    return positive, labeled, accepted


@pytest.mark.parametrize("method", ["known", "class_prior"])
def test_rates_of_the_unlabeled_are_those_of_the_unlabeled(method):
    n = 400_000
    positive, labeled, accepted = simulated(0, n)
    group = tally(accepted, labeled, np.zeros(n, dtype=np.intp), 1)
    c = 0.4 if method == "known" else labeled.mean() / 0.3
    known = {"a": LabelFrequency(c, c, c, method)}
    found = group_rates(group, ["a"], known, tuned=False, population="unlabeled")["a"]
    hidden = ~labeled
    truth = {
        "tpr": accepted[hidden & positive].mean(),
        "fpr": accepted[hidden & ~positive].mean(),
        "selection_rate": accepted[hidden].mean(),
        "ppv": positive[hidden & accepted].mean(),
        "prevalence": positive[hidden].mean(),
    }
    for name, value in truth.items():
        # 5 standard errors of a share of some 50,000 rows, times 1/(1 - pi).
        assert found[name].estimate == pytest.approx(value, abs=0.012)
    assert found["selection_rate"].estimate == pytest.approx(truth["selection_rate"])


@pytest.mark.parametrize("method", ["known", "class_prior"])
def test_intervals_of_the_unlabeled_cover(method):
    runs, n, c, prior = 400, 2000, 0.4, 0.3
    q = (prior * 0.6 * 0.7 + 0.7 * 0.2) / (1 - prior * c)
    truth = {
        "selection_rate": q,
        "ppv": prior * 0.6 * 0.7 / (prior * 0.6 * 0.7 + 0.7 * 0.2),
        "prevalence": prior * 0.6 / (1 - prior * c),
    }
    covered = dict.fromkeys(truth, 0)
    for seed in range(runs):
        _, labeled, accepted = simulated(seed, n)
        group = tally(accepted, labeled, np.zeros(n, dtype=np.intp), 1)
        used = c if method == "known" else labeled.mean() / prior
        known = {"a": LabelFrequency(used, used, used, method)}
        found = group_rates(group, ["a"], known, tuned=False, population="unlabeled")
        for name, value in truth.items():
            covered[name] += found["a"][name].low <= value <= found["a"][name].high
    for name, count in covered.items():
        # 3.5 standard errors of .011 each.
        assert count / runs > 0.91, name


def test_there_is_nothing_to_say_where_all_rows_are_labeled():
    group = from_counts(30, 30, 0, 0)
    known = {"a": LabelFrequency(1.0, 1.0, 1.0, "known")}
    found = group_rates([group], ["a"], known, tuned=False, population="unlabeled")
    assert math.isnan(found["a"]["selection_rate"].estimate)
    assert found["a"]["prevalence"].reason == "no unlabeled row"
