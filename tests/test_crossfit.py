import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairpul.crossfit import crossfit, median_score, refit


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers the rows it was fitted on, and scores 1 for each of them."""

    def fit(self, X, y, sample_weight=None, extra=None, scalar=None):
        self.classes_ = np.unique(y)
        self.seen_ = np.asarray(X)[:, 0].tolist()
        self.target_ = np.asarray(y)
        self.sample_weight_, self.extra_, self.scalar_ = sample_weight, extra, scalar
        return self

    def predict_proba(self, X):
        known = np.isin(np.asarray(X)[:, 0], self.seen_)
        return np.column_stack([1 - known, known]).astype(np.float32)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=240)
    X = np.column_stack([np.arange(240.0), rng.normal(size=(240, 2))])
    labeled = rng.random(240) < 1 / (1 + np.exp(1 - X[:, 1]))
    return X, labeled, codes


def test_no_row_is_scored_by_a_model_that_saw_it(rows):
    fit = crossfit(Recorder(), *rows, random_state=0)

    assert_array_equal(fit.score, 0.0)
    assert fit.score.dtype == np.float64
    for number, model in enumerate(fit.estimators):
        trained = np.isin(np.arange(240), model.seen_)
        assert_array_equal(trained, fit.folds != number)


def test_scores_are_those_of_scikit_learn_on_the_same_folds(rows):
    X, labeled, codes = rows
    splits = list(KFold(4).split(X))
    fit = crossfit(LogisticRegression(), X, labeled, codes, cv=splits)

    expected = sklearn.model_selection.cross_val_predict(
        LogisticRegression(), X, labeled, cv=splits, method="predict_proba"
    )
    assert_array_equal(fit.score, expected[:, 1])
    assert_array_equal(fit.folds, np.repeat(np.arange(4), 60))


def test_folds_hold_each_group_and_label_in_proportion(rows):
    _, labeled, codes = rows
    fit = crossfit(Recorder(), *rows, random_state=3)

    for code in (0, 1):
        for label in (False, True):
            stratum = (codes == code) & (labeled == label)
            counts = np.bincount(fit.folds[stratum], minlength=5)
            assert counts.max() - counts.min() <= 1


def test_the_estimator_learns_integers_and_stays_unfitted(rows):
    estimator = Recorder()
    fit = crossfit(estimator, *rows, random_state=0)

    assert not hasattr(estimator, "seen_")
    assert fit.estimators[0].target_.dtype.kind == "i"
    assert set(fit.estimators[0].target_) == {0, 1}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(lambda X: pd.DataFrame(X, index=np.arange(240) * 7), id="pandas"),
        pytest.param(lambda X: pl.DataFrame(X), id="polars"),
        pytest.param(sparse.csr_matrix, id="csr"),
        pytest.param(sparse.coo_array, id="coo"),
        pytest.param(lambda X: X.tolist(), id="list"),
    ],
)
def test_any_kind_of_rows_gives_the_same_scores(rows, kind):
    X, labeled, codes = rows
    X = X / 100
    base = LogisticRegression(tol=1e-10)
    expected = crossfit(base, X, labeled, codes, random_state=0).score
    fit = crossfit(base, kind(X), labeled, codes, random_state=0)

    # The solver sums in another order on sparse rows; tol bounds what that moves.
    assert_allclose(fit.score, expected, atol=1e-7)
    assert_allclose(
        median_score(fit.estimators, kind(X)),
        np.median([m.predict_proba(kind(X))[:, 1] for m in fit.estimators], axis=0),
    )


def test_frames_reach_the_estimator_as_frames():
    class WantsFrame(Recorder):
        def fit(self, X, y):
            assert list(X.columns) == ["x", "sex"]
            return super().fit(X, y)

    frame = pd.DataFrame({"x": np.arange(30.0), "sex": ["f", "m"] * 15})
    fit = crossfit(WantsFrame(), frame, frame["x"] % 3 == 0, np.zeros(30, int), cv=3)
    assert_array_equal(fit.score, 0.0)


def test_keywords_of_fit_are_indexed_if_they_have_a_row_each(rows):
    X, labeled, codes = rows
    fit = crossfit(
        Recorder(),
        X,
        labeled,
        codes,
        sample_weight=X[:, 0] + 1,
        fit_params={"extra": [f"row {i}" for i in range(240)], "scalar": "abc"},
        random_state=0,
    )

    for model in fit.estimators:
        assert_array_equal(model.sample_weight_, np.array(model.seen_) + 1)
        assert model.extra_ == [f"row {int(i)}" for i in model.seen_]
        assert model.scalar_ == "abc"


def test_groups_stay_in_one_fold(rows):
    patient = np.random.default_rng(1).integers(60, size=240)
    fit = crossfit(Recorder(), *rows, groups=patient, random_state=0)

    for member in np.unique(patient):
        assert len(np.unique(fit.folds[patient == member])) == 1
    assert set(fit.folds) == set(range(5))


@pytest.mark.parametrize("patients", [None, np.arange(240) // 3])
@pytest.mark.parametrize(
    "cv", [5, StratifiedGroupKFold(4, shuffle=True, random_state=0)]
)
def test_with_row_ids_the_order_of_the_rows_changes_no_model(rows, cv, patients):
    X, labeled, codes = rows
    row_id = np.array([f"id-{i}" for i in range(240)])
    if patients is None and cv != 5:
        cv = StratifiedKFold(4, shuffle=True, random_state=0)

    def fit(order):
        return crossfit(
            Recorder(),
            X[order],
            labeled[order],
            codes[order],
            cv=cv,
            groups=None if patients is None else patients[order],
            row_id=row_id[order],
            random_state=5,
        )

    straight = fit(np.arange(240))
    order = np.random.default_rng(2).permutation(240)
    shuffled = fit(order)

    assert_array_equal(shuffled.folds, straight.folds[order])
    for a, b in zip(straight.estimators, shuffled.estimators, strict=True):
        assert a.seen_ == b.seen_
    X_order = refit(Recorder(), X, labeled, row_id=row_id, random_state=5).seen_
    again = refit(
        Recorder(), X[order], labeled[order], row_id=row_id[order], random_state=5
    ).seen_
    assert X_order == again


def test_the_seed_decides_the_folds(rows):
    folds = [
        crossfit(Recorder(), *rows, row_id=np.arange(240), random_state=seed).folds
        for seed in (0, 0, 1)
    ]
    assert_array_equal(folds[0], folds[1])
    assert (folds[0] != folds[2]).any()


def test_parallel_folds_give_the_same_scores(rows):
    fits = [
        crossfit(LogisticRegression(), *rows, random_state=0, n_jobs=n) for n in (1, 2)
    ]
    assert_array_equal(fits[0].score, fits[1].score)


def test_decision_values_are_calibrated_on_the_training_part(rows):
    X, labeled, codes = rows
    fit = crossfit(LinearSVC(random_state=0), X[:, 1:], labeled, codes, random_state=0)

    assert ((fit.score > 0) & (fit.score < 1)).all()
    for number, model in enumerate(fit.estimators):
        rows_of_fold = fit.folds == number
        inner = model.calibrated_classifiers_[0].estimator
        # One inner model (ensemble=False), fitted on exactly the training part.
        again = LinearSVC(random_state=0).fit(
            X[~rows_of_fold, 1:], labeled[~rows_of_fold]
        )
        assert_array_equal(inner.coef_, again.coef_)
        decision = again.decision_function(X[rows_of_fold, 1:])
        assert_array_equal(
            np.argsort(decision), np.argsort(fit.score[rows_of_fold], kind="stable")
        )


def test_calibration_keeps_groups_together(rows):
    class Nearest(ClassifierMixin, BaseEstimator):
        """Decision value of the nearest training row: perfect on a patient's twins."""

        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.X_, self.y_ = X, y
            return self

        def decision_function(self, X):
            nearest = np.abs(X - self.X_.T).argmin(axis=1)
            return np.where(self.y_[nearest] == 1, 1.0, -1.0)

        def predict(self, X):
            return (self.decision_function(X) > 0).astype(int)

    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(300), 2)
    # Labels say nothing about x; rows of one patient share both.
    X = np.repeat(rng.normal(size=300), 2)[:, None]
    labeled = np.repeat(rng.random(300) < 0.5, 2)
    codes = np.zeros(600, dtype=int)

    spread = [
        np.ptp(crossfit(Nearest(), X, labeled, codes, groups=g, random_state=0).score)
        for g in (patient, None)
    ]
    # With a twin among the inner training rows most decisions are right, so the
    # sigmoid is steep; kept apart, its slope is 0 up to an error of 1 / sqrt(300).
    assert spread[0] < 0.3
    assert spread[1] > 0.5


def test_a_fitted_estimator_is_used_as_it_is(rows):
    X, labeled, codes = rows
    fitted = LogisticRegression().fit(X[:100], labeled[:100])
    for estimator, cv in ((fitted, None), (FrozenEstimator(fitted), 5)):
        fit = crossfit(estimator, X[100:], labeled[100:], codes[100:], cv=cv)
        assert fit.estimators == (estimator,)
        assert fit.folds is None
        assert_array_equal(fit.score, fitted.predict_proba(X[100:])[:, 1])


def test_the_positive_column_of_a_fitted_estimator_is_found_by_its_class(rows):
    X, labeled, codes = rows
    fitted = GaussianNB().fit(X, np.where(labeled, 1, -1))
    fit = crossfit(fitted, X, labeled, codes, cv=None)
    assert_array_equal(fit.score, fitted.predict_proba(X)[:, 1])


def test_the_median_of_an_even_number_of_models_is_the_midpoint():
    class Constant:
        def __init__(self, value):
            self.value = value

        def predict_proba(self, X):
            return np.tile([1 - self.value, self.value], (len(X), 1))

    models = [Constant(value) for value in (0.9, 0.1, 0.2, 0.4)]
    # 0.2 + 0.4 in floats is off by one last digit.
    assert_allclose(median_score(models, [[0]]), [0.3], rtol=1e-15)
    assert_array_equal(median_score(models[:3], [[0]]), [0.2])


def test_refit_sees_all_rows_once(rows):
    X, labeled, _ = rows
    weight = X[:, 0] + 1
    model = refit(Recorder(), X, labeled, sample_weight=weight, random_state=0)
    assert model.seen_ == X[:, 0].tolist()
    assert_array_equal(model.sample_weight_, weight)


def test_fewer_labels_than_folds_give_fewer_folds_with_a_warning(rows):
    X, _, codes = rows
    labeled = codes == 0
    labeled[np.flatnonzero(codes == 1)[:4]] = True
    labeled[np.flatnonzero(codes == 0)[:50]] = False
    with pytest.warns(UserWarning, match=r"Group 'm' has 4 labeled rows.*using 4"):
        fit = crossfit(Recorder(), X, labeled, codes, keys=["f", "m"])
    assert len(fit.estimators) == 4


def test_labels_are_counted_by_patient_when_rows_belong_together(rows):
    X, labeled, codes = rows
    patient = np.arange(240) % 4
    with pytest.warns(UserWarning, match=r"4 groups= with a labeled row"):
        fit = crossfit(Recorder(), X, labeled, codes, groups=patient, random_state=0)
    assert len(fit.estimators) == 4


def test_under_three_labels_in_a_group_are_refused_by_name(rows):
    X, labeled, codes = rows
    labeled = labeled & (codes == 0)
    labeled[np.flatnonzero(codes == 1)[:2]] = True
    with pytest.raises(
        ValueError, match=r"at least 3 labeled rows .*\{'m': 2\}.*Merge"
    ):
        crossfit(Recorder(), X, labeled, codes, keys=["f", "m"])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (2, r"at least 3 folds, got 2: .*no majority"),
        (True, "at least 3 folds, got True"),
        (KFold(2), "at least 3 folds, got 2"),
        (
            [(np.arange(80, 240), np.arange(80))] * 3,
            "160 rows are never tested, 80 more",
        ),
        (
            [(np.arange(240), test) for test in np.split(np.arange(240), 3)],
            "Fold 0 trains on rows",
        ),
    ],
)
def test_folds_that_do_not_cross_fit_are_refused(rows, cv, message):
    with pytest.raises(ValueError, match=message):
        crossfit(Recorder(), *rows, cv=cv)


@pytest.mark.parametrize("cv", ["five", 5.0])
def test_cv_of_another_kind_is_refused(rows, cv):
    with pytest.raises(TypeError, match=f"cv must be a number of folds.*got {cv!r}"):
        crossfit(Recorder(), *rows, cv=cv)


def test_a_splitter_that_tears_groups_apart_is_refused(rows):
    splits = list(KFold(3).split(rows[0]))
    with pytest.raises(ValueError, match=r"members of groups=.*StratifiedGroupKFold"):
        crossfit(Recorder(), *rows, cv=splits, groups=np.arange(240) % 20)


def test_a_training_part_of_one_class_is_refused():
    labeled = np.arange(30) < 10
    with pytest.raises(ValueError, match="Fold 0 trains on one class only"):
        crossfit(Recorder(), np.zeros((30, 1)), labeled, np.zeros(30, int), cv=KFold(3))


def test_repeated_or_missing_row_ids_are_refused(rows):
    with pytest.raises(ValueError, match=r"unique in fit, got 120 ids for 240 rows"):
        crossfit(Recorder(), *rows, row_id=np.arange(240) // 2)
    with pytest.raises(ValueError, match="row_id has 3 rows where 240 were expected"):
        crossfit(Recorder(), *rows, row_id=[1, 2, 3])
    with pytest.raises(ValueError, match="integers or strings, none missing"):
        crossfit(Recorder(), *rows, row_id=[None, *range(239)])


def test_weights_that_the_estimator_cannot_use_are_refused(rows):
    with pytest.raises(ValueError, match=r"KNeighborsClassifier.fit does not take it"):
        crossfit(KNeighborsClassifier(), *rows, sample_weight=np.ones(240))


def test_the_last_step_of_a_pipeline_gets_the_weights(rows):
    weight = rows[0][:, 0] + 1
    fit = crossfit(
        make_pipeline(StandardScaler(), Recorder()), *rows, sample_weight=weight
    )
    for number, model in enumerate(fit.estimators):
        assert_array_equal(model[-1].sample_weight_, weight[fit.folds != number])


def test_with_routing_weights_go_where_they_are_requested(rows):
    weight = rows[0][:, 0] + 1
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            Recorder().set_fit_request(sample_weight=True),
        )
        fit = crossfit(pipeline, *rows, sample_weight=weight, random_state=0)
        with pytest.raises(ValueError, match=r"set_fit_request\(sample_weight=True\)"):
            crossfit(Recorder(), *rows, sample_weight=weight)
    for number, model in enumerate(fit.estimators):
        assert_array_equal(model[-1].sample_weight_, weight[fit.folds != number])


def test_with_routing_groups_reach_a_search_inside(rows):
    patient = np.arange(240) % 40
    search = GridSearchCV(
        LogisticRegression(), {"C": [0.1, 1]}, cv=GroupKFold(3), scoring="roc_auc"
    )
    with sklearn.config_context(enable_metadata_routing=True):
        fit = crossfit(search, *rows, groups=patient, random_state=0)
    assert all(model.n_splits_ == 3 for model in fit.estimators)


def test_weights_move_the_calibrated_scores(rows):
    X, labeled, codes = rows
    weight = np.where(labeled, 20.0, 1.0)
    plain, weighted = (
        crossfit(
            LinearSVC(), X[:, 1:], labeled, codes, sample_weight=w, random_state=0
        ).score.mean()
        for w in (None, weight)
    )
    assert weighted > plain + 0.3


def test_an_estimator_without_an_order_is_refused(rows):
    class Hard(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X), int)

    with pytest.raises(ValueError, match="Hard has neither predict_proba nor decision"):
        crossfit(Hard(), *rows)


def test_a_fitted_estimator_that_gives_no_probabilities_is_refused(rows):
    X, labeled, codes = rows
    fitted = Perceptron().fit(X, labeled)
    with pytest.raises(ValueError, match="Wrap it in a CalibratedClassifierCV"):
        crossfit(fitted, X, labeled, codes, cv=None)
    calibrated = CalibratedClassifierCV(FrozenEstimator(fitted)).fit(X, labeled)
    assert crossfit(calibrated, X, labeled, codes, cv=None).score.shape == (240,)


def test_a_fitted_estimator_of_other_classes_is_refused(rows):
    X, labeled, codes = rows
    fitted = GaussianNB().fit(X, np.where(labeled, "yes", "no"))
    with pytest.raises(ValueError, match=r"1 for labeled rows; .*\['no', 'yes'\]"):
        crossfit(fitted, X, labeled, codes, cv=None)


def test_keywords_cannot_reach_the_fit_of_a_fitted_estimator(rows):
    X, labeled, codes = rows
    fitted = GaussianNB().fit(X, labeled)
    with pytest.raises(ValueError, match=r"\['extra'\] cannot reach its fit"):
        crossfit(fitted, X, labeled, codes, cv=None, fit_params={"extra": 1})
