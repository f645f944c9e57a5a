"""Claims about the truth, on data whose truth is known: `make simulate` runs them."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from fairpul import FairPULClassifier, RecallFloor, fit_rule
from fairpul.datasets import make_underdiagnosed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*label"),
]

BASES = {
    "logistic": LogisticRegression(),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
TRUE_FREQUENCY = {"f": 0.3, "m": 0.7}
SEEDS = range(12)


@pytest.fixture(scope="module")
def fresh():
    return make_underdiagnosed(100_000, label_frequency=(0.3, 0.7), random_state=10_001)


def true_rates(accepted, data):
    """TPR and FPR of both groups by the true classes."""
    return {
        y: np.array(
            [
                accepted[(data.group == key) & (data.y_true == y)].mean()
                for key in ("f", "m")
            ]
        )
        for y in (1, 0)
    }


def z_scores(base, fresh, *, constraint, label_frequency, in_sample=False):
    """True gaps on fresh rows over their standard error, one row per data set."""
    scores = []
    for seed in SEEDS:
        data = make_underdiagnosed(
            10_000, label_frequency=(0.3, 0.7), random_state=seed
        )
        if in_sample:
            model = BASES[base].fit(data.X, data.labeled)
            rule = fit_rule(
                model.predict_proba(data.X)[:, 1],
                data.labeled,
                data.group,
                constraint=constraint,
                label_frequency=label_frequency,
            )
            accepted = rule.acceptance_probability(
                model.predict_proba(fresh.X)[:, 1], fresh.group
            )
        else:
            model = FairPULClassifier(
                BASES[base],
                constraint=constraint,
                label_frequency=label_frequency,
                random_state=seed,
            ).fit(data.X, data.labeled, sensitive_features=data.group)
            accepted = model.acceptance_probability(
                fresh.X, sensitive_features=fresh.group
            )
        rates = true_rates(accepted, fresh)
        scores.append(
            [
                np.diff(rates[y])[0] / standard_error(data, rates[1], rates[y], y)
                for y in ((1,) if constraint == "equal_opportunity" else (1, 0))
            ]
        )
    return np.array(scores)


def standard_error(data, tpr, rate, y):
    """Of a gap that a rule tuned on these rows leaves, by the delta method."""
    variance = 0.0
    for number, key in enumerate(("f", "m")):
        member = data.group == key
        m, n = np.sum(member & data.labeled), np.sum(member)
        t = tpr[number]
        if y == 1:
            variance += t * (1 - t) / m
            continue
        f, c = rate[number], TRUE_FREQUENCY[key]
        prior = m / n / c
        accepted = prior * t + (1 - prior) * f
        at_labeled = (1 - 1 / c) ** 2 * c * prior * (t * (1 - 2 * f) + f**2)
        share = accepted - c * prior * t
        at_unlabeled = share * (1 - 2 * f) + (1 - c * prior) * f**2
        variance += (at_labeled + at_unlabeled) / (1 - prior) ** 2 / n
    return np.sqrt(variance)


# Of 12 gaps about 11 lie within two standard errors; 8 or fewer have probability 2e-4.
ENOUGH = int(binom.ppf(0.0005, len(SEEDS), 0.954))


@pytest.mark.parametrize("base", BASES)
def test_equal_opportunity_is_immune_to_a_wrong_pooled_label_frequency(base, fresh):
    z = z_scores(base, fresh, constraint="equal_opportunity", label_frequency=0.75)
    assert (abs(z) < 2).sum() >= ENOUGH


@pytest.mark.parametrize("base", BASES)
def test_equalized_odds_holds_for_both_rates_with_the_right_frequencies(base, fresh):
    z = z_scores(
        base, fresh, constraint="equalized_odds", label_frequency=TRUE_FREQUENCY
    )
    assert ((abs(z) < 2).sum(axis=0) >= ENOUGH).all()


def test_equalized_odds_fails_with_a_wrong_pooled_label_frequency(fresh):
    z = z_scores("logistic", fresh, constraint="equalized_odds", label_frequency=0.75)
    assert (abs(z[:, 1]) > 2).sum() >= ENOUGH


@pytest.mark.parametrize("constraint", ["equal_opportunity", "equalized_odds"])
def test_boosting_without_cross_fitting_leaves_a_gap(constraint, fresh):
    z = z_scores(
        "boosting",
        fresh,
        constraint=constraint,
        label_frequency=TRUE_FREQUENCY,
        in_sample=True,
    )
    assert (abs(z[:, 0]) > 2).sum() >= ENOUGH


def test_assured_floors_hold_in_all_three_groups():
    groups = ("a", "b", "c")
    held = 0
    fits = 300
    fresh = make_underdiagnosed(
        200_000, groups=groups, label_frequency=(0.3, 0.5, 0.7), random_state=1
    )
    positive = fresh.y_true == 1
    for seed in range(2, fits + 2):
        data = make_underdiagnosed(
            4_000, groups=groups, label_frequency=(0.3, 0.5, 0.7), random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rule = fit_rule(
                data.posterior,
                data.labeled,
                data.group,
                constraint=None,
                objective=RecallFloor(0.8, assured=True),
                label_frequency=0.9,
            )
        accepted = rule.decide(fresh.posterior, fresh.group) == 1
        tpr = [accepted[positive & (fresh.group == key)].mean() for key in groups]
        held += min(tpr) >= 0.8
    # Holds in 95% of samples or more; what the issue asks for.
    assert held >= 0.93 * fits
