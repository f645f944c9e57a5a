import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpul import FairPULClassifier
from fairpul.datasets import make_underdiagnosed
from fairpul.metrics import (
    best_within,
    pu_cost_scorer,
    pu_tpr_gap,
    pu_tpr_gap_scorer,
    worst_group_recall_scorer,
)
from fairpul.scorers import top_share

DATA = make_underdiagnosed(3000, label_frequency=(0.5, 0.7), random_state=0)
#: The group as a last column of X: 0 for f, 1 for m.
WITH_GROUP = np.column_stack([DATA.X, DATA.group == "m"])
SCORERS = {
    "gap": pu_tpr_gap_scorer,
    "recall": worst_group_recall_scorer(0.2),
    "cost": pu_cost_scorer(class_prior={"f": 0.15, "m": 0.25}, false_negative=3),
}

pytestmark = pytest.mark.filterwarnings("ignore:.*label")


def fair(**parameters):
    base = make_pipeline(StandardScaler(), LogisticRegression())
    return FairPULClassifier(
        base, cv=3, random_state=0, label_frequency=0.9, **parameters
    )


class Rule:
    """Accepts as it was told; a stand-in for a fitted classifier."""

    sensitive_columns = None
    groups_ = ("f", "m")

    def __init__(self, accepted):
        self.accepted = accepted

    def acceptance_probability(self, X, *, sensitive_features):
        return np.asarray(self.accepted, dtype=float)


# Hand-worked cases

LABELED = np.repeat([1, 0, 1, 0], [40, 160, 40, 160])
GROUP = np.repeat(["f", "m"], 200)
#: TPR .75 in f, .5 in m; selection rates .25 and .2; both together .225.
ACCEPTED = np.concatenate(
    [np.arange(40) < 30, np.arange(160) < 20, np.arange(40) < 20, np.arange(160) < 20]
)


def value_of(scorer, accepted):
    return scorer(Rule(accepted), LABELED[:, None], LABELED, sensitive_features=GROUP)


def test_scores_by_hand():
    assert value_of(pu_tpr_gap_scorer, ACCEPTED) == -0.25
    assert value_of(worst_group_recall_scorer(0.5), ACCEPTED) == 0.5
    # Q = .225: of the accepted only .1/.225 have room.
    assert value_of(worst_group_recall_scorer(0.1), ACCEPTED) == pytest.approx(
        0.5 * 0.1 / 0.225
    )
    # pi = .4: 80 positives a group; f misses 20 and accepts 50 - 60 < 0 negatives.
    missed, hits = 20 + 40, 60 + 40
    cost = missed + (50 + 40 - hits)
    assert value_of(pu_cost_scorer(class_prior=0.4), ACCEPTED) == pytest.approx(
        1 - cost / 160
    )
    assert value_of(pu_cost_scorer(label_frequency=0.5), ACCEPTED) == pytest.approx(
        1 - cost / 160
    )


@pytest.mark.parametrize(
    "accepted",
    [
        np.zeros(400),
        np.ones(400),
        np.full(400, 0.4),
        np.arange(400) > 0,  # everybody but one
        np.arange(400) % 3 == 0,  # by chance
        GROUP == "m",
    ],
    ids=["nobody", "everybody", "coin", "nearly everybody", "a third", "one group"],
)
def test_trivial_decisions_never_look_good(accepted):
    assert value_of(pu_tpr_gap_scorer, accepted) == -1
    for capacity in (0.1, 0.9, 1.0):
        assert value_of(worst_group_recall_scorer(capacity), accepted) == 0
    assert value_of(pu_cost_scorer(class_prior=0.4), accepted) < 0.03


def test_accepting_all_or_nobody_saves_nothing():
    rare = pu_cost_scorer(class_prior=0.25)
    assert value_of(rare, np.zeros(400)) == 0
    assert value_of(rare, np.ones(400)) == pytest.approx(-2)


def test_ties_at_the_capacity_are_shared():
    assert top_share(np.full(10, 0.3), 0.2).tolist() == pytest.approx([0.2] * 10)
    assert top_share(np.array([0.1, 0.9, 0.5]), 1 / 3).tolist() == [0, 1, 0]


def test_weight_two_is_the_row_twice():
    weight = np.where(np.arange(400) % 2, 2, 1)
    for scorer in SCORERS.values():
        single = scorer(
            Rule(ACCEPTED),
            LABELED,
            LABELED,
            sensitive_features=GROUP,
            sample_weight=weight,
        )
        double = scorer(
            Rule(np.repeat(ACCEPTED, weight)),
            np.repeat(LABELED, weight),
            np.repeat(LABELED, weight),
            sensitive_features=np.repeat(GROUP, weight),
        )
        assert single == pytest.approx(double, rel=1e-12)


def test_a_plain_classifier_is_cut_at_the_capacity():
    model = LogisticRegression(max_iter=1000).fit(DATA.X, DATA.labeled)
    scorer = worst_group_recall_scorer(0.2)
    found = scorer(model, DATA.X, DATA.labeled, sensitive_features=DATA.group)
    accepted = top_share(model.predict_proba(DATA.X)[:, 1], 0.2)
    tpr = [
        accepted[(DATA.group == key) & (DATA.labeled == 1)].mean() for key in ("f", "m")
    ]
    assert found == pytest.approx(min(tpr))


def test_without_a_group_the_scorer_says_what_to_do():
    model = fair().fit(DATA.X, DATA.labeled, sensitive_features=DATA.group)
    with pytest.raises(ValueError, match="pass sensitive_features"):
        pu_tpr_gap_scorer(model, DATA.X, DATA.labeled)


@pytest.mark.parametrize("given", [{}, {"class_prior": 0.2, "label_frequency": 0.5}])
def test_a_cost_needs_exactly_one_prior(given):
    with pytest.raises(ValueError, match="exactly one"):
        value_of(pu_cost_scorer(**given), ACCEPTED)


def test_a_group_without_labels_has_no_score():
    for scorer in (pu_tpr_gap_scorer, worst_group_recall_scorer(0.2)):
        labeled = np.where(GROUP == "m", 0, LABELED)
        found = scorer(Rule(ACCEPTED), labeled, labeled, sensitive_features=GROUP)
        assert np.isnan(found)


# The three ways through scikit-learn


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def routed(**parameters):
    return fair(**parameters).set_fit_request(sensitive_features=True)


@pytest.mark.usefixtures("routing")
def test_score_is_routed():
    model = routed().set_score_request(sensitive_features=True)
    found = cross_validate(
        model, DATA.X, DATA.labeled, cv=3, params={"sensitive_features": DATA.group}
    )
    assert (found["test_score"] > 0.7).all()


@pytest.mark.usefixtures("routing")
def test_scorers_are_routed_by_cross_validate():
    found = cross_validate(
        routed(),
        DATA.X,
        DATA.labeled,
        cv=3,
        scoring=SCORERS,
        params={"sensitive_features": DATA.group},
        return_estimator=True,
        return_indices=True,
    )
    test = found["indices"]["test"][0]
    expected = -pu_tpr_gap(
        DATA.labeled[test],
        found["estimator"][0].predict(
            DATA.X[test], sensitive_features=DATA.group[test]
        ),
        sensitive_features=DATA.group[test],
    )
    assert found["test_gap"][0] == pytest.approx(expected)
    assert (found["test_cost"] > 0).all()
    assert (found["test_recall"] > 0.1).all()


@pytest.mark.usefixtures("routing")
def test_one_scorer_alone_is_routed():
    found = cross_validate(
        routed(),
        DATA.X,
        DATA.labeled,
        cv=3,
        scoring=pu_tpr_gap_scorer,
        params={"sensitive_features": DATA.group},
    )
    assert ((found["test_score"] <= 0) & (found["test_score"] > -1)).all()


@pytest.mark.usefixtures("routing")
def test_weights_are_routed():
    base = LogisticRegression(max_iter=3000).set_fit_request(sample_weight=True)
    model = routed().set_params(estimator=base)
    model.set_fit_request(sensitive_features=True, sample_weight=True)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(DATA.labeled))
    found = cross_validate(
        model,
        DATA.X,
        DATA.labeled,
        cv=3,
        scoring=SCORERS,
        params={"sensitive_features": DATA.group, "sample_weight": weight},
        return_estimator=True,
        return_indices=True,
    )
    test = found["indices"]["test"][0]
    for name, scorer in SCORERS.items():
        rows = found["estimator"][0], DATA.X[test], DATA.labeled[test]
        group = {"sensitive_features": DATA.group[test]}
        weighted = scorer(*rows, **group, sample_weight=weight[test])
        assert found[f"test_{name}"][0] == weighted != scorer(*rows, **group)


@pytest.mark.usefixtures("routing")
def test_search_chooses_within_the_gap():
    search = GridSearchCV(
        routed(),
        {"constraint": ["equal_opportunity", None]},
        scoring={name: SCORERS[name] for name in ("gap", "cost")},
        refit=best_within("gap", 0.05),
        cv=3,
    )
    search.fit(DATA.X, DATA.labeled, sensitive_features=DATA.group)
    # One cut for the posterior of all misses far more of the group with weak symptoms.
    assert search.best_params_ == {"constraint": "equal_opportunity"}
    scored = pu_tpr_gap_scorer(
        search, DATA.X, DATA.labeled, sensitive_features=DATA.group
    )
    assert scored > -0.15


@pytest.mark.usefixtures("routing")
def test_a_pipeline_around_the_classifier_is_routed():
    model = make_pipeline(StandardScaler(), routed())
    found = cross_validate(
        model,
        DATA.X,
        DATA.labeled,
        cv=3,
        scoring=SCORERS,
        params={"sensitive_features": DATA.group},
        error_score="raise",
    )
    assert (found["test_cost"] > 0).all()


def test_the_group_is_read_from_columns_without_routing():
    model = fair(sensitive_columns=-1)
    found = cross_validate(
        model, WITH_GROUP, DATA.labeled, cv=3, scoring=pu_tpr_gap_scorer
    )
    assert ((found["test_score"] <= 0) & (found["test_score"] > -1)).all()


# The choice


def results(gaps, costs):
    """Results of a search over folds, candidates in columns."""
    gaps = -np.array(gaps, dtype=float)
    found = {f"split{i}_test_gap": fold for i, fold in enumerate(gaps)}
    return found | {
        "mean_test_gap": gaps.mean(axis=0),
        "mean_test_cost": np.array(costs, dtype=float),
    }


def test_the_best_within_the_limit_wins():
    found = results([[0.01, 0.20, 0.02], [0.03, 0.22, 0.02]], [0.5, 0.9, 0.6])
    assert best_within("gap", 0.05)(found) == 2
    assert best_within("gap", 0.3)(found) == 1


def test_a_gap_that_is_not_shown_to_exceed_the_limit_is_allowed():
    # Mean .1, standard error .09: its lower bound is below 0.
    found = results([[0.01, 0.02], [0.19, 0.02]], [0.9, 0.5])
    assert best_within("gap", 0.05)(found) == 0


def test_no_candidate_within_the_limit_is_told():
    found = results([[0.31, 0.20], [0.31, 0.20]], [0.9, 0.5])
    with pytest.warns(UserWarning, match="No candidate has a gap within 0.05"):
        assert best_within("gap", 0.05)(found) == 1


def test_a_candidate_that_fails_to_recognize_positives_in_a_fold_is_none():
    # The bound of the first gap, mean .367, is -.56: one bad fold widens it that far.
    found = results([[0.05, 0.2], [1.0, 0.2], [0.05, 0.2]], [0.9, 0.5])
    assert best_within("gap", 0.3)(found) == 1
    assert best_within("gap", 1.0)(found) == 0  # no limit at all


def test_an_unknown_gap_is_named_among_the_scorers():
    with pytest.raises(ValueError, match=r"named 'parity'.*'gap', 'cost'"):
        best_within("parity", 0.3)(results([[0.1], [0.1]], [0.9]))


def test_several_other_scores_must_be_told_apart():
    found = results([[0.1], [0.1]], [0.9]) | {"mean_test_recall": np.array([0.2])}
    with pytest.raises(ValueError, match="Say by score="):
        best_within("gap", 0.5)(found)
    assert best_within("gap", 0.5, score="recall")(found) == 0


def test_a_dummy_classifier_gets_the_worst_gap():
    for strategy in ("most_frequent", "uniform"):
        model = DummyClassifier(strategy=strategy, random_state=0)
        model.fit(DATA.X, DATA.labeled)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = pu_tpr_gap_scorer(
                model, DATA.X, DATA.labeled, sensitive_features=DATA.group
            )
        assert found == -1
