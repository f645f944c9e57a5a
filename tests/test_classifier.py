import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import skops.io
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

from fairpul import MinimumCost, RecallFloor, fit_rule
from fairpul._columns import group_columns
from fairpul.classifier import FairPULClassifier
from fairpul.crossfit import crossfit
from fairpul.label_frequency import LabelFrequency

FREQUENCY = {"f": 0.5, "m": 0.8}


class Rows:
    """Two groups with different priors, scores and label frequencies."""

    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        self.sex = rng.choice(["f", "m"], size=n)
        self.X = rng.normal(size=(n, 2))
        slope = np.where(self.sex == "f", 2.0, 4.0)
        self.positive = rng.random(n) < 1 / (1 + np.exp(1 - slope * self.X[:, 0]))
        frequency = np.where(self.sex == "f", FREQUENCY["f"], FREQUENCY["m"])
        self.y = (self.positive & (rng.random(n) < frequency)).astype(int)

    @property
    def frame(self):
        return pd.DataFrame({"sex": self.sex, "a": self.X[:, 0], "b": self.X[:, 1]})


@pytest.fixture(scope="module")
def rows():
    return Rows(1500)


def classifier(estimator=None, **parameters):
    """Skip what these tests do not depend on: the estimated label frequency."""
    given = {"label_frequency": FREQUENCY, "random_state": 0} | parameters
    return FairPULClassifier(estimator, **given)


def encoder_and(estimator):
    """Model of a frame in which ``sex`` is a column of strings."""
    columns = make_column_transformer(
        (OneHotEncoder(), ["sex"]), remainder="passthrough"
    )
    return make_pipeline(columns, estimator)


def numbers_of(frame):
    return np.column_stack([frame["a"], frame["b"]])


class ThirdParty:
    """What LightGBM and XGBoost have in common, and nothing of scikit-learn's."""

    def __init__(self, strength=1.0):
        self.strength = strength

    def get_params(self, deep=True):
        return {"strength": self.strength}

    def set_params(self, **parameters):
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def fit(self, X, y, sample_weight=None):
        self.model = LogisticRegression(C=self.strength)
        self.model.fit(X, y, sample_weight=sample_weight)
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(X).astype(np.float32)


class Twins(ClassifierMixin, BaseEstimator):
    """Scores 1 for a row whose patient, in column 1, it was trained on, else 1/2."""

    def fit(self, X, y):
        self.classes_, self.seen_ = np.unique(y), np.unique(X[:, 1])
        return self

    def predict_proba(self, X):
        known = 0.5 + 0.5 * np.isin(X[:, 1], self.seen_)
        return np.column_stack([1 - known, known])


class Scores(BaseEstimator):
    """A label frequency that keeps the out-of-fold scores it was asked about."""

    def estimate(self, score, labeled, **more):
        self.score_ = score
        return {"all": LabelFrequency(0.9, 0.9, 0.9, "known")}


def out_of_fold(clf):
    return clf.label_frequency.score_


def with_patients(rows):
    patient = np.arange(len(rows.y)) // 3
    return np.column_stack([rows.X[:, 0], patient]), patient


def test_predictions_are_the_rule_on_the_median_of_the_fold_models(rows):
    clf = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)

    score = np.median([m.predict_proba(rows.X)[:, 1] for m in clf.estimators_], axis=0)
    assert_array_equal(clf.decision_function(rows.X), score)
    accepted = np.zeros(len(score), dtype=int)
    for key, ((cut, _),) in zip(clf.groups_, clf.rule_.cuts, strict=True):
        accepted[rows.sex == key] = score[rows.sex == key] >= cut
    assert_array_equal(clf.predict(rows.X, sensitive_features=rows.sex), accepted)
    assert_array_equal(
        clf.acceptance_probability(rows.X, sensitive_features=rows.sex), accepted
    )


def test_the_rule_is_tuned_on_out_of_fold_scores(rows):
    clf = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)
    codes = (rows.sex == "m").astype(int)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=3)[0]
    fit = crossfit(LogisticRegression(), rows.X, rows.y == 1, codes, random_state=seed)

    accepted = clf.rule_.decide(fit.score, rows.sex)
    for key in clf.groups_:
        mask = (rows.sex == key) & (rows.y == 1)
        # The rule reports what it does on the rows that tuned it, to the last digit.
        assert_allclose(
            clf.rule_.realized[key]["tpr"].estimate, accepted[mask].mean(), rtol=1e-12
        )


def test_equal_opportunity_holds_on_fresh_rows():
    clf = classifier().fit(
        (train := Rows(6000)).X, train.y, sensitive_features=train.sex
    )
    free = classifier(constraint=None).fit(
        train.X, train.y, sensitive_features=train.sex
    )
    fresh = Rows(6000, seed=1)

    def gap(model):
        accepted = model.predict(fresh.X, sensitive_features=fresh.sex)
        tpr = [accepted[fresh.positive & (fresh.sex == s)].mean() for s in "fm"]
        return abs(tpr[0] - tpr[1])

    # About 1,000 labeled rows a group tune it and 1,200 positives a group test it:
    # three standard errors of the gap are 3 * .014 * sqrt(2).
    assert gap(clf) < 0.06
    assert gap(free) > 0.15


@pytest.mark.parametrize(
    ("coded", "negative"),
    [
        pytest.param(lambda y: y, 0, id="0/1"),
        pytest.param(lambda y: 2 * y - 1, -1, id="-1/1"),
        pytest.param(lambda y: y == 1, False, id="bool"),
        pytest.param(lambda y: y.tolist(), 0, id="list"),
        pytest.param(
            lambda y: pd.Series(y, index=np.arange(len(y)) + 5), 0, id="pandas"
        ),
        pytest.param(lambda y: pl.Series(y), 0, id="polars"),
    ],
)
def test_predictions_keep_the_coding_of_the_labels(rows, coded, negative):
    reference = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)
    clf = classifier().fit(rows.X, coded(rows.y), sensitive_features=rows.sex)

    accepted = reference.predict(rows.X, sensitive_features=rows.sex) == 1
    predicted = clf.predict(rows.X, sensitive_features=rows.sex)
    assert_array_equal(predicted, np.where(accepted, True, negative))
    assert predicted.dtype == clf.classes_.dtype
    assert clf.classes_.tolist() == [negative, 1]


@pytest.mark.parametrize("frequency", ["peak_rate", 0.7])
@pytest.mark.parametrize("weighted", [False, True])
def test_in_one_group_predict_is_half_a_posterior(frequency, weighted):
    rows, fresh = Rows(700, seed=4), Rows(5000, seed=5)
    weight = np.random.default_rng(0).integers(1, 4, size=700) if weighted else None
    clf = classifier(constraint=None, label_frequency=frequency)
    clf.fit(rows.X, rows.y, sample_weight=weight)
    posterior = clf.predict_proba(fresh.X)

    assert 0.2 < clf.predict(fresh.X).mean() < 0.8
    assert_array_equal(clf.predict(fresh.X), (posterior[:, 1] >= 0.5).astype(int))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.booleans()), min_size=8, max_size=60
    ).filter(lambda rows: 3 <= sum(label for _, label in rows) < len(rows) - 2),
    st.sampled_from([0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
)
def test_in_one_group_predict_is_half_a_posterior_on_any_tied_scores(pairs, frequency):
    class Given(BaseEstimator):
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.column_stack([1 - X[:, 0], X[:, 0]])

    X = np.array([[level / 6] for level, _ in pairs])
    y = np.array([label for _, label in pairs]).astype(int)
    assume(y.mean() < frequency)
    clf = FairPULClassifier(
        Given(), cv=None, constraint=None, label_frequency=frequency
    )
    with pytest.warns(UserWarning, match="labeled"):
        clf.fit(X, y)
    new = np.linspace(0, 1, 101)[:, None]
    assert_array_equal(clf.predict(new), (clf.predict_proba(new)[:, 1] >= 0.5) * 1)


def test_the_posterior_is_isotonic_in_each_group_and_sums_to_one(rows):
    clf = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)
    posterior = clf.predict_proba(rows.X, sensitive_features=rows.sex)
    score = clf.decision_function(rows.X)

    assert_array_equal(posterior.sum(axis=1), 1.0)
    assert ((posterior >= 0) & (posterior <= 1)).all()
    for key in clf.groups_:
        order = np.argsort(score[rows.sex == key])
        assert (np.diff(posterior[rows.sex == key, 1][order]) >= 0).all()


def test_the_posterior_is_isotonic_regression_over_the_label_frequency(rows):
    class Score(BaseEstimator):
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.column_stack([1 - X, X])

    score = 1 / (1 + np.exp(-rows.X[:, 0]))
    clf = classifier(Score(), cv=None)
    clf.fit(score, rows.y, sensitive_features=rows.sex)
    posterior = clf.predict_proba(score, sensitive_features=rows.sex)[:, 1]

    for key, frequency in FREQUENCY.items():
        mask = rows.sex == key
        isotonic = sklearn.isotonic.IsotonicRegression()
        share = isotonic.fit_transform(score[mask], rows.y[mask])
        # Both average the same blocks in another order of additions.
        assert_allclose(posterior[mask], np.clip(share / frequency, 0, 1), rtol=1e-12)


def test_score_estimates_the_accuracy_against_the_unseen_classes():
    train, fresh = Rows(4000), Rows(40_000, seed=1)
    clf = classifier().fit(train.X, train.y, sensitive_features=train.sex)
    accepted = clf.predict(fresh.X, sensitive_features=fresh.sex)

    estimate = clf.score(fresh.X, fresh.y, sensitive_features=fresh.sex)
    # A row's term has a standard deviation of at most 1, so 3 / sqrt(40,000).
    assert abs(estimate - (accepted == fresh.positive).mean()) < 0.015


def test_score_is_the_formula_of_the_group_rates(rows):
    clf = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)
    weight = np.random.default_rng(0).integers(1, 4, size=len(rows.y)).astype(float)
    accepted = clf.predict(rows.X, sensitive_features=rows.sex)

    error = 0.0
    for key, frequency in FREQUENCY.items():
        mask = rows.sex == key
        share = weight[mask].sum() / weight.sum()
        prior = np.average(rows.y[mask], weights=weight[mask]) / frequency
        labeled = mask & (rows.y == 1)
        tpr = np.average(accepted[labeled], weights=weight[labeled])
        selected = np.average(accepted[mask], weights=weight[mask])
        fpr = (selected - prior * tpr) / (1 - prior)
        error += share * (prior * (1 - tpr) + (1 - prior) * fpr)
    score = clf.score(rows.X, rows.y, sensitive_features=rows.sex, sample_weight=weight)
    assert score == pytest.approx(1 - error, abs=1e-12)


def test_weight_two_is_the_row_twice(rows):
    class Given(BaseEstimator):
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.column_stack([1 - X[:, 1], X[:, 1]])

    X = np.column_stack([rows.X[:, 0], 1 / (1 + np.exp(-rows.X[:, 0]))])
    count = np.random.default_rng(1).integers(1, 4, size=len(X))
    twice = np.repeat(np.arange(len(X)), count)
    weighted = classifier(Given(), cv=None).fit(
        X, rows.y, sensitive_features=rows.sex, sample_weight=count
    )
    repeated = classifier(Given(), cv=None).fit(
        X[twice], rows.y[twice], sensitive_features=rows.sex[twice]
    )
    assert weighted.rule_.cuts == repeated.rule_.cuts


def test_row_ids_free_the_fit_from_the_order_of_the_rows(rows):
    order = np.random.default_rng(3).permutation(len(rows.y))
    row_id = np.arange(len(rows.y)) + 1000

    def fit(order):
        clf = classifier(HistGradientBoostingClassifier(max_iter=10))
        return clf.fit(
            rows.X[order],
            rows.y[order],
            sensitive_features=rows.sex[order],
            row_id=row_id[order],
        )

    straight, shuffled = fit(np.arange(len(order))), fit(order)
    assert straight.rule_ == shuffled.rule_
    assert_array_equal(
        straight.decision_function(rows.X), shuffled.decision_function(rows.X)
    )


def test_the_order_of_new_rows_changes_no_decision(rows):
    clf = classifier(constraint="equalized_odds", tolerance=0.02)
    clf.fit(rows.X, rows.y, sensitive_features=rows.sex)
    order = np.random.default_rng(3).permutation(len(rows.y))
    row_id = np.arange(len(rows.y))
    straight = clf.predict(rows.X, sensitive_features=rows.sex, row_id=row_id)
    shuffled = clf.predict(
        rows.X[order], sensitive_features=rows.sex[order], row_id=row_id[order]
    )
    chance = clf.acceptance_probability(rows.X, sensitive_features=rows.sex)

    assert ((chance > 0) & (chance < 1)).any()
    assert_array_equal(shuffled, straight[order])


def test_a_seed_fixes_the_fit_and_none_does_not(rows):
    def cuts(seed):
        clf = classifier(random_state=seed)
        return clf.fit(rows.X, rows.y, sensitive_features=rows.sex).rule_.cuts

    assert cuts(7) == cuts(7)
    assert cuts(np.random.RandomState(7)) == cuts(7)
    assert cuts(7) != cuts(8)


def test_the_label_frequency_is_read_with_the_rows_and_the_folds(rows):
    class Spy(BaseEstimator):
        def estimate(self, score, labeled, *, X=None, group=None, folds=None, **more):
            seen.update(X=X, folds=folds)
            return {key: found[key] for key in np.unique(group)}

    seen = {}
    found = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)
    found = found.label_frequency_
    clf = classifier(label_frequency=Spy())
    clf.fit(rows.X, rows.y, sensitive_features=rows.sex)
    assert seen["X"] is rows.X
    assert_array_equal(np.unique(seen["folds"]), np.arange(5))
    assert clf.label_frequency_ == found
    assert dict(clf.rule_.label_frequency) == found


def test_an_estimator_from_elsewhere_needs_no_base_class(rows):
    estimator = ThirdParty()
    clf = classifier(estimator).fit(rows.X, rows.y, sensitive_features=rows.sex)
    expected = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)

    # It answers in float32.
    assert_allclose(
        clf.decision_function(rows.X), expected.decision_function(rows.X), atol=1e-7
    )
    assert not hasattr(estimator, "model")
    assert not hasattr(clf, "n_features_in_")
    weighted = clone(clf).set_params(estimator__strength=0.5)
    weighted.fit(
        rows.X, rows.y, sensitive_features=rows.sex, sample_weight=np.ones(len(rows.y))
    )
    assert weighted.estimators_[0].strength == 0.5


def test_an_estimator_with_decision_values_only_is_calibrated(rows):
    clf = classifier(LinearSVC()).fit(rows.X, rows.y, sensitive_features=rows.sex)
    score = clf.decision_function(rows.X)
    assert ((score > 0) & (score < 1)).all()
    assert clf.score(rows.X, rows.y, sensitive_features=rows.sex) > 0.75


@pytest.mark.parametrize("frozen", [False, True])
def test_a_fitted_estimator_is_used_as_it_is(rows, frozen):
    half = len(rows.y) // 2
    base = LogisticRegression().fit(rows.X[:half], rows.y[:half])
    estimator, cv = (FrozenEstimator(base), 5) if frozen else (base, None)
    before = pickle.dumps(base)
    clf = classifier(estimator, cv=cv)
    clf.fit(rows.X[half:], rows.y[half:], sensitive_features=rows.sex[half:])

    assert clf.estimators_ == (estimator,)
    assert pickle.dumps(base) == before
    assert_array_equal(clf.decision_function(rows.X), base.predict_proba(rows.X)[:, 1])


def test_refit_deploys_one_model_of_all_rows(rows):
    median = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)
    clf = classifier(deploy="refit").fit(rows.X, rows.y, sensitive_features=rows.sex)
    base = LogisticRegression().fit(rows.X, rows.y)

    assert_array_equal(clf.decision_function(rows.X), base.predict_proba(rows.X)[:, 1])
    assert clf.rule_ == median.rule_


def test_patients_stay_in_one_fold(rows):
    X, patient = with_patients(rows)
    clf = classifier(Twins(), constraint=None, label_frequency=Scores())
    with_groups = out_of_fold(clf.fit(X, rows.y, groups=patient))
    without = out_of_fold(clf.fit(X, rows.y))
    assert_array_equal(with_groups, 0.5)
    # The other two rows of a patient are both in the same fold in 1 of 25 cases.
    assert (without == 1).mean() > 0.9


def test_patients_and_weights_count_in_the_intervals_of_the_rule(rows):
    model = LogisticRegression().fit(rows.X, rows.y)
    score = model.predict_proba(rows.X)[:, 1]
    given = {"sample_weight": 1 + np.arange(1500) % 3, "groups": np.arange(1500) // 3}
    found = {}
    for names in [(), ("sample_weight",), ("groups",), ("sample_weight", "groups")]:
        passed = {name: given[name] for name in names}
        clf = classifier(model, cv=None)
        clf.fit(rows.X, rows.y, sensitive_features=rows.sex, **passed)
        passed["cluster"] = passed.pop("groups", None)
        rule = fit_rule(
            score, rows.y, rows.sex, label_frequency=FREQUENCY, random_state=0, **passed
        )
        assert clf.rule_ == rule
        found[names] = rule.realized["f"]["tpr"]
    assert len(set(found.values())) == 4


def test_fit_keywords_reach_the_estimator(rows):
    class WithKeyword(LogisticRegression):
        def fit(self, X, y, sample_weight=None, *, extra=None):
            self.extra_ = extra
            return super().fit(X, y, sample_weight)

    clf = classifier(WithKeyword())
    clf.fit(rows.X, rows.y, sensitive_features=rows.sex, extra=np.arange(1500))
    assert [len(model.extra_) for model in clf.estimators_] == [1200] * 5


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("sex", pd.DataFrame),
        ("sex", pl.DataFrame),
        (0, pl.DataFrame),
        (-3, pd.DataFrame),
        (["sex"], pd.DataFrame),
    ],
)
def test_the_group_is_read_from_a_column(rows, column, kind):
    estimator = make_pipeline(FunctionTransformer(numbers_of), LogisticRegression())
    frame = kind(rows.frame.to_dict("list"))
    clf = classifier(estimator, sensitive_columns=column).fit(frame, rows.y)
    by_keyword = classifier(estimator)
    by_keyword.fit(frame, rows.y, sensitive_features=rows.sex)

    assert clf.groups_ == ("f", "m")
    assert clf.rule_ == by_keyword.rule_
    assert_array_equal(
        clf.predict(frame), by_keyword.predict(frame, sensitive_features=rows.sex)
    )
    assert clf.score(frame, rows.y) == by_keyword.score(
        frame, rows.y, sensitive_features=rows.sex
    )


@pytest.mark.parametrize(
    "kind", [np.asarray, lambda X: X.tolist(), sparse.csr_array, sparse.coo_array]
)
def test_the_group_is_read_from_a_column_of_numbers(rows, kind):
    X = np.column_stack([rows.X, rows.sex == "m"])
    frequency = {0.0: 0.5, 1.0: 0.8}
    clf = classifier(sensitive_columns=2, label_frequency=frequency)
    clf.fit(kind(X), rows.y)
    assert clf.groups_ == (0.0, 1.0)
    predicted = clf.predict(kind(X))
    by_keyword = classifier().fit(X, rows.y, sensitive_features=rows.sex)
    assert_array_equal(predicted, by_keyword.predict(X, sensitive_features=rows.sex))


@pytest.mark.parametrize(
    "columns", [np.int64(0), np.array([0]), np.array(["sex"]), [np.int8(-3)]]
)
def test_columns_may_be_numpy_scalars(rows, columns):
    assert list(group_columns(rows.frame, columns)["sex"]) == rows.sex.tolist()


def test_columns_are_counted_and_named_as_the_estimator_does(rows):
    frame = rows.frame[["a", "b"]]
    clf = classifier().fit(frame, rows.y, sensitive_features=rows.sex)
    assert list(clf.feature_names_in_) == ["a", "b"]
    assert clf.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame[["b", "a"]], sensitive_features=rows.sex)


def test_several_columns_form_groups_of_tuples(rows):
    old = np.arange(len(rows.y)) % 2 == 0
    frame = rows.frame.assign(old=old)
    clf = classifier(
        encoder_and(LogisticRegression()),
        sensitive_columns=["sex", "old"],
        label_frequency=0.9,
    ).fit(frame, rows.y)
    by_keyword = classifier(encoder_and(LogisticRegression()), label_frequency=0.9).fit(
        frame, rows.y, sensitive_features=frame[["sex", "old"]]
    )
    assert clf.groups_ == tuple((s, o) for s in "fm" for o in (False, True))
    assert clf.rule_ == by_keyword.rule_


def test_columns_of_lists_keep_their_types():
    X = [[1, "f", 0.5], [2, "m", 0.25]]
    assert group_columns(X, [1, 0]) == [("f", 1), ("m", 2)]
    assert group_columns(X, 0) == [1, 2]


def test_columns_of_a_frame_with_numbers_for_names_go_by_position():
    frame = pd.DataFrame({2: ["f", "m"], 0: [1, 2]})
    assert np.asarray(group_columns(frame, 0)).ravel().tolist() == ["f", "m"]


@pytest.mark.parametrize(
    "around",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(
                parse_version(sklearn.__version__) < parse_version("1.8"),
                reason="before 1.8 nothing is routed to the score of a Pipeline",
            ),
        ),
    ],
)
def test_cross_validation_by_score_with_a_routing_request(rows, around):
    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier(make_pipeline(StandardScaler(), LogisticRegression()))
        clf.set_fit_request(sensitive_features=True)
        clf.set_score_request(sensitive_features=True)
        model = make_pipeline(StandardScaler(), clf) if around else clf
        result = cross_validate(
            model, rows.X, rows.y, cv=3, params={"sensitive_features": rows.sex}
        )
        prefix = "fairpulclassifier__" if around else ""
        search = GridSearchCV(
            model, {f"{prefix}estimator": [None, ThirdParty(0.1)]}, cv=3
        )
        search.fit(rows.X, rows.y, sensitive_features=rows.sex)
    assert (result["test_score"] > 0.7).all()
    assert search.best_score_ > 0.7
    best = search.best_estimator_[-1] if around else search.best_estimator_
    assert best.groups_ == ("f", "m")
    assert len(set(best.rule_.cuts)) == 2


def assert_each_group_is_judged_by_itself(fitted, frame):
    """Assert that the sex alone turns some decisions, at one and the same score."""
    score = fitted.decision_function(frame)
    f, m = (fitted.rule_.decide(score, np.full(len(score), sex)) for sex in "fm")
    assert fitted.groups_ == ("f", "m")
    assert np.mean(f != m) > 0.01
    assert_array_equal(fitted.predict(frame), np.where(frame["sex"] == "f", f, m))


def test_cross_validation_by_a_column_of_x(rows):
    clf = classifier(encoder_and(LogisticRegression()), sensitive_columns="sex")
    result = cross_validate(
        clf, rows.frame, rows.y, cv=3, scoring="roc_auc", return_estimator=True
    )
    search = GridSearchCV(
        clf, {"estimator__logisticregression__C": [0.01, 1], "tolerance": [0.1]}, cv=3
    )
    search.fit(rows.frame, rows.y)
    assert (result["test_score"] > 0.6).all()
    for fitted in (*result["estimator"], search.best_estimator_):
        assert_each_group_is_judged_by_itself(fitted, rows.frame)
    assert search.predict(rows.frame).shape == (1500,)
    assert_array_equal(
        search.predict(rows.frame), search.best_estimator_.predict(rows.frame)
    )


def test_a_pipeline_around_keeps_the_column_when_it_keeps_the_names(rows):
    scale = make_column_transformer(
        (StandardScaler(), ["a", "b"]),
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    clf = classifier(encoder_and(LogisticRegression()), sensitive_columns="sex")
    pipeline = make_pipeline(scale, clf).fit(rows.frame, rows.y)
    assert pipeline[-1].groups_ == ("f", "m")
    assert pipeline.predict(rows.frame).shape == (1500,)


def test_without_routing_a_pipeline_takes_the_group_by_step_name(rows):
    pipeline = make_pipeline(StandardScaler(), classifier())
    pipeline.fit(rows.X, rows.y, fairpulclassifier__sensitive_features=rows.sex)
    predicted = pipeline.predict(rows.X, sensitive_features=rows.sex)
    assert 0.2 < predicted.mean() < 0.8


def test_requests_of_every_keyword_can_be_set():
    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier(LogisticRegression().set_fit_request(sample_weight=True))
        clf.set_fit_request(
            sensitive_features=True, groups="patient", sample_weight=True, row_id=True
        )
        clf.set_predict_request(sensitive_features=True, row_id=True)
        clf.set_predict_proba_request(sensitive_features=True)
        clf.set_score_request(sensitive_features=True, sample_weight=True)
        routing = clf.get_metadata_routing()
        fit = routing.consumes(
            "fit", ["sensitive_features", "patient", "sample_weight", "row_id"]
        )
        predict = routing.consumes("predict", ["sensitive_features", "row_id"])
    assert fit == {"sensitive_features", "patient", "sample_weight", "row_id"}
    assert predict == {"sensitive_features", "row_id"}


def test_with_routing_the_folds_inside_respect_groups_too(rows):
    X, patient = with_patients(rows)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier(Twins(), constraint=None, label_frequency=Scores())
        pipeline = make_pipeline(
            FunctionTransformer(), clf.set_fit_request(groups=True)
        )
        pipeline.fit(X, rows.y, groups=patient)
    assert_array_equal(out_of_fold(clf), 0.5)


def test_clone_keeps_every_parameter_and_nothing_fitted(rows):
    clf = classifier(
        LogisticRegression(C=0.5),
        constraint="demographic_parity",
        tolerance={"selection_rate": 0.1},
        objective=MinimumCost(false_negative=2),
        deploy="refit",
    ).fit(rows.X, rows.y, sensitive_features=rows.sex)
    copy = clone(clf)
    assert repr(copy) == repr(clf)
    assert [name for name in vars(copy) if name.endswith("_")] == []


def test_tags_follow_the_wrapped_estimator():
    tags = get_tags(classifier(HistGradientBoostingClassifier()))
    assert tags.input_tags.allow_nan
    assert not tags.input_tags.sparse
    assert not tags.classifier_tags.multi_class
    for base in (LogisticRegression(), KNeighborsClassifier(metric="precomputed")):
        assert get_tags(classifier(base)).input_tags == get_tags(base).input_tags
    assert get_tags(classifier(ThirdParty())).input_tags.two_d_array


def test_missing_values_and_frames_reach_the_estimator_untouched(rows):
    frame = rows.frame.astype({"sex": "category"})
    frame.loc[::7, "b"] = np.nan
    base = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    clf = classifier(base, sensitive_columns="sex").fit(frame, rows.y)
    assert clf.groups_ == ("f", "m")
    assert clf.predict(frame).shape == (1500,)


def dump_joblib(clf):
    file = io.BytesIO()
    joblib.dump(clf, file)
    file.seek(0)
    return joblib.load(file)


def dump_skops(clf):
    data = skops.io.dumps(clf)
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


@pytest.mark.parametrize(
    "copied",
    [lambda clf: pickle.loads(pickle.dumps(clf)), dump_joblib, dump_skops],
    ids=["pickle", "joblib", "skops"],
)
@pytest.mark.parametrize("base", [LogisticRegression(), LinearSVC()])
def test_a_copy_from_disk_predicts_the_same(rows, copied, base):
    clf = classifier(base, constraint="equalized_odds")
    clf.fit(rows.X, rows.y, sensitive_features=rows.sex)
    copy = copied(clf)
    for method in ("predict", "predict_proba", "acceptance_probability"):
        assert_array_equal(
            getattr(copy, method)(rows.X, sensitive_features=rows.sex),
            getattr(clf, method)(rows.X, sensitive_features=rows.sex),
        )
    assert copy.rule_ == clf.rule_
    assert copy.score(rows.X, rows.y, sensitive_features=rows.sex) == clf.score(
        rows.X, rows.y, sensitive_features=rows.sex
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "annealing"}, r"method must be one of .*'direct'.*'annealing'"),
        (
            {"deploy": "mean"},
            r"deploy must be one of \('median', 'refit'\), got 'mean'",
        ),
        ({"cv": 2}, "at least 3 folds, got 2"),
        ({"constraint": "parity"}, "constraint must be one of"),
        ({"lottery": "never"}, "lottery must be"),
        ({"label_frequency": "e1"}, "label_frequency must be one of"),
        ({"class_prior": 0.3}, "either label_frequency or class_prior"),
        (
            {"estimator": FrozenEstimator(LogisticRegression()), "deploy": "refit"},
            "would fit an estimator that is fitted already",
        ),
        ({"cv": None, "deploy": "refit"}, "would fit an estimator that is fitted"),
    ],
)
def test_wrong_parameters_are_refused_in_fit(rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        classifier(**parameters).fit(rows.X, rows.y, sensitive_features=rows.sex)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"constraint": "parity"}, ValueError),
        ({"tolerance": 2}, ValueError),
        ({"objective": "cost"}, TypeError),
        ({"lottery": "never"}, ValueError),
        ({"label_frequency": "e1"}, ValueError),
        ({"label_frequency": [0.3, 0.4]}, TypeError),
        ({"class_prior": 0.3}, ValueError),
    ],
)
def test_wrong_parameters_are_refused_before_any_model_is_fitted(
    rows, parameters, error
):
    class Unfittable(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("fitted")

    with pytest.raises(error):
        classifier(Unfittable(), **parameters).fit(rows.X, rows.y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: np.where(y == 1, "yes", "no"), r"Labels must be 1 or True.*'no'"),
        (lambda y: y + 1, r"Labels must be 1 or True.*\[1, 2\]"),
        (lambda y: y - (np.arange(len(y)) % 2), "Only binary classification"),
        (lambda y: np.ones_like(y), "labeled rows only"),
        (lambda y: np.zeros_like(y), "no labeled row"),
    ],
)
def test_other_labels_are_refused(rows, labels, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(rows.X, labels(rows.y), sensitive_features=rows.sex)


def test_a_group_given_twice_is_refused(rows):
    clf = classifier(encoder_and(LogisticRegression()), sensitive_columns="sex")
    message = r"sensitive_columns='sex', but sensitive_features was given too"
    with pytest.raises(ValueError, match=message):
        clf.fit(rows.frame, rows.y, sensitive_features=rows.sex)
    clf.fit(rows.frame, rows.y)
    with pytest.raises(ValueError, match=message):
        clf.predict(rows.frame, sensitive_features=rows.sex)


@pytest.mark.parametrize(
    ("X", "columns", "message"),
    [
        (pd.DataFrame({"a": [1]}), "sex", r"'sex', which X lacks; it has \['a'\]"),
        (np.zeros((2, 2)), "sex", "no column names. Give positions, or pass"),
        (np.zeros((2, 2)), 2, "column 2 of X, which has 2 columns"),
        ([[1, 2]], [0, -3], "column -3 of X, which has 2 columns"),
    ],
)
def test_columns_that_x_lacks_are_refused(X, columns, message):
    with pytest.raises(ValueError, match=message):
        group_columns(X, columns)


def test_the_group_must_be_given_to_predict_as_it_was_to_fit(rows):
    clf = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)
    with pytest.raises(ValueError, match=r"\['f', 'm'\], but no group.*Pass sensitive"):
        clf.predict(rows.X)
    alone = classifier(label_frequency=0.9).fit(rows.X, rows.y)
    with pytest.raises(ValueError, match=r"fitted without groups\. Fit with sensitive"):
        alone.predict(rows.X, sensitive_features=rows.sex)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score"])
def test_unseen_and_missing_groups_are_refused(rows, method):
    clf = classifier().fit(rows.X, rows.y, sensitive_features=rows.sex)
    arguments = (rows.X[:2], [0, 1]) if method == "score" else (rows.X[:2],)
    with pytest.raises(ValueError, match=r"\['x'\] were not seen .*Refit"):
        getattr(clf, method)(*arguments, sensitive_features=["f", "x"])
    with pytest.raises(ValueError, match=r"missing in 1 rows.*Drop these rows"):
        getattr(clf, method)(*arguments, sensitive_features=["f", None])


def test_groups_without_enough_labels_are_named(rows):
    sex = rows.sex.copy()
    sex[np.flatnonzero(rows.y == 1)[:2]] = "x"
    with pytest.raises(ValueError, match=r"at least 3 labeled rows .*\{'x': 2\}"):
        classifier().fit(rows.X, rows.y, sensitive_features=sex)
    sex = rows.sex.copy()
    sex[np.flatnonzero(rows.y == 0)[:9]] = "x"
    with pytest.raises(ValueError, match=r"'x'.*Merge"):
        classifier().fit(rows.X, rows.y, sensitive_features=sex)


def test_few_labels_give_fewer_folds_and_a_warning(rows):
    sex = rows.sex.copy()
    sex[np.flatnonzero(rows.y == 1)[:4]] = "x"
    sex[np.flatnonzero(rows.y == 0)[:40]] = "x"
    clf = classifier(label_frequency=0.9)
    with (
        pytest.warns(UserWarning, match=r"Group 'x' has 4 labeled rows.*using 4") as w,
        pytest.warns(UserWarning, match=r"\['x'\] have fewer than 50 labeled"),
    ):
        clf.fit(rows.X, rows.y, sensitive_features=sex)
    assert len(clf.estimators_) == 4
    assert w[0].filename == __file__


def test_weights_that_the_estimator_cannot_use_are_refused(rows):
    clf = classifier(KNeighborsClassifier())
    with pytest.raises(ValueError, match=r"fit does not take it.*or refused"):
        clf.fit(
            rows.X,
            rows.y,
            sensitive_features=rows.sex,
            sample_weight=np.ones(len(rows.y)),
        )


def test_weights_on_one_class_only_are_refused(rows):
    with pytest.raises(ValueError, match="positive sample_weight are of one class"):
        classifier().fit(rows.X, rows.y, sample_weight=rows.y)


def test_an_unfitted_classifier_says_so(rows):
    with pytest.raises(NotFittedError):
        classifier().predict(rows.X)


def test_a_recall_floor_is_kept_on_the_rows_that_tuned_it(rows):
    clf = classifier(objective=RecallFloor(0.8))
    clf.fit(rows.X, rows.y, sensitive_features=rows.sex)
    for key in clf.groups_:
        assert clf.rule_.realized[key]["tpr"].estimate >= 0.8
