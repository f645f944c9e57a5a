"""The scikit-learn estimator: fold models, and one rule on their scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from fairpul._columns import group_columns
from fairpul._groups import codes_of, encode_groups
from fairpul._validation import are_coded_labels, check_labels, check_weight
from fairpul.audit import Audit, audit
from fairpul.crossfit import crossfit, is_prefit, median_score, refit
from fairpul.fitting import fit_rule
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import resolve_label_frequency
from fairpul.label_frequency._resolve import check_label_frequency
from fairpul.objectives import check_lottery, check_objective, check_tolerance
from fairpul.operating_points import segment_posterior
from fairpul.paper import fit_paper

_DEPLOY = ("median", "refit")
_METHODS = ("direct", "paper")
# All that the paper's method can use.
_PAPER_PARAMETERS = {"estimator", "constraint", "method", "n_jobs", "random_state"}


class FairPULClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier with equal rates between groups, from positive and unlabeled rows.

    A classifier of the user's choice learns which rows are labeled, on cross-fitting
    folds. One cut per group on its out-of-fold scores is then chosen so that the
    constrained rates of the groups are equal and the objective is met.

    Parameters
    ----------
    estimator : classifier, default=None
        Cloned, never fitted in place, unless ``cv=None``. None is
        ``LogisticRegression()``.
    constraint : str or None, default="equal_opportunity"
        Rates that must be equal between groups: ``"equal_opportunity"`` (TPR),
        ``"predictive_equality"`` (FPR), ``"equalized_odds"`` (both),
        ``"demographic_parity"`` (selection rate) or None.
    tolerance : float or dict, default=0.0
        Largest gap allowed between groups, or one per constrained rate, such as
        ``{"tpr": 0.02, "fpr": 0.05}``.
    objective : MinimumCost, RecallFloor or Capacity, default=None
        What is best among the rules that meet the constraint. None is the error rate.
    label_frequency : str, float, dict or estimator, default="peak_rate"
        P(labeled | positive), or how to estimate it, in each group. Rules on TPR and
        selection rate alone do not depend on it.
    class_prior : float or dict, default=None
        P(positive), if known, instead of a label frequency; per group also
        ``(point, low, high)``. That of groups which a dict leaves out is estimated.
    cv : int, splitter, iterable or None, default=5
        Folds, at least 3. None or a ``FrozenEstimator``: the estimator is fitted
        already and the rows are held out.
    deploy : {"median", "refit"}, default="median"
        Score new rows by the median of the fold models, or by one model refitted on
        all rows, which suits regularized linear models.
    sensitive_columns : str, int or list of them, default=None
        Names or positions of the columns of X that hold the group, so that ``predict``
        needs X alone. They are passed on to the estimator untouched.
    lottery : {"auto", True, False}, default="auto"
        Whether rows may be decided by chance: only where the constraint needs it, for
        the exact optimum, or never.
    method : {"direct", "paper"}, default="direct"
        How the rule is found. "paper" reproduces Wu and He (2022) with the sign of
        their rule corrected; it fits on 80% of the rows, knows equal opportunity and
        equalized odds, and uses ``estimator``, ``n_jobs`` and ``random_state`` alone.
    n_jobs : int, default=None
        Folds fitted at the same time.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the label frequency and of the salt of a lottery. The
        estimator keeps its own.

    Attributes
    ----------
    rule_ : DecisionRule
        The cuts, with the rates they are expected to give.
    label_frequency_ : dict
        `LabelFrequency` of each group.
    estimators_ : tuple
        The models whose median score is deployed.
    audit_ : Audit
        Audit of the rule on its out-of-fold scores, made when first asked for.
    classes_ : ndarray of shape (2,)
        The caller's codes for unlabeled and labeled rows.
    groups_ : tuple
        Keys of the groups; ``("all",)`` if none were given.
    n_features_in_ : int
        Number of columns of X, if the estimator counts them.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if the estimator keeps them.

    Notes
    -----
    Labels are 1 or True for labeled rows and 0, -1 or False for unlabeled ones. An
    unlabeled row is no negative: rates are estimated under labeling completely at
    random within each group.

    ``cross_validate`` passes its ``groups`` to the outer splitter only, unless
    metadata routing is enabled and ``set_fit_request(groups=True)`` was called.
    scikit-learn's scorers never pass ``sensitive_features`` to ``predict``: use
    ``score`` with ``set_score_request(sensitive_features=True)``, or
    ``sensitive_columns``. Before version 1.8 they route nothing to the ``score`` of a
    ``Pipeline`` around this estimator either: put the pipeline inside.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], size=2000)
    >>> x = rng.normal(size=2000)
    >>> positive = rng.random(2000) < 1 / (1 + np.exp(3 - 6 * x))
    >>> labeled = positive & (rng.random(2000) < np.where(sex == "f", 0.3, 0.6))
    >>> clf = FairPULClassifier(random_state=0)
    >>> clf = clf.fit(x[:, None], labeled, sensitive_features=sex)
    >>> clf.predict([[-2.0], [2.0]], sensitive_features=["f", "m"])
    array([False,  True])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: str | None = "equal_opportunity",
        tolerance: Any = 0.0,
        objective: Any = None,
        label_frequency: Any = "peak_rate",
        class_prior: Any = None,
        cv: Any = 5,
        deploy: str = "median",
        sensitive_columns: Any = None,
        lottery: Any = "auto",
        method: str = "direct",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.tolerance = tolerance
        self.objective = objective
        self.label_frequency = label_frequency
        self.class_prior = class_prior
        self.cv = cv
        self.deploy = deploy
        self.sensitive_columns = sensitive_columns
        self.lottery = lottery
        self.method = method
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        row_id: ArrayLike | None = None,
        **fit_params: Any,
    ) -> FairPULClassifier:
        """Fit the fold models, and the rule on their out-of-fold scores.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Goes to the estimator as it is.
        y : array-like of shape (n_samples,)
            1 or True for labeled rows; 0, -1 or False for unlabeled ones.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, k)
            Group of each row; several columns form intersectional groups. Without it
            and without ``sensitive_columns``, all rows are one group.
        groups : array-like of shape (n_samples,), optional
            Rows that belong together, such as the patient of each row: they stay in
            one fold and widen the intervals.
        sample_weight : array-like of shape (n_samples,), optional
            Sampling weights, for the estimator and the rule alike.
        row_id : array-like of shape (n_samples,), optional
            A unique id per row: folds then depend on the ids and ``random_state``, not
            on the order of the rows.
        **fit_params : dict
            More keywords for the estimator's ``fit``.

        Returns
        -------
        FairPULClassifier
            The fitted estimator itself.
        """
        self._check_parameters()
        labeled, classes = _check_binary_labels(y)
        group = self._group(X, sensitive_features)
        coded = encode_groups(group, len(labeled))
        random = check_random_state(self.random_state)
        fold_seed, *rule_seeds = random.randint(np.iinfo(np.int32).max, size=3)
        estimator = self._base_estimator()
        training = {
            "groups": groups,
            "sample_weight": sample_weight,
            "fit_params": fit_params,
            "row_id": row_id,
            "random_state": fold_seed,
        }
        if self.method == "paper":
            self._fit_paper(X, labeled, group, training)
            self.classes_, self._grouped = classes, True
            return self
        folds = {"cv": self.cv, "keys": coded.keys, "n_jobs": self.n_jobs}
        fitted = crossfit(estimator, X, labeled, coded.codes, **folds, **training)
        scores = GroupScores(
            fitted.score, labeled, coded, sample_weight=sample_weight, cluster=groups
        )
        self._fit_rule(scores, X, fitted.folds, *rule_seeds)
        self.estimators_ = fitted.estimators
        if self.deploy == "refit":
            self.estimators_ = (refit(estimator, X, labeled, **training),)
        self.classes_ = classes
        self._grouped = group is not None
        return self

    def _fit_rule(
        self,
        scores: GroupScores,
        X: Any,
        folds: NDArray[np.intp] | None,
        frequency_seed: int,
        salt_seed: int,
    ) -> None:
        self.groups_ = scores.groups
        self.label_frequency_ = resolve_label_frequency(
            self.label_frequency,
            self.class_prior,
            scores,
            X=X,
            folds=folds,
            random_state=frequency_seed,
        )
        self.rule_ = fit_rule(
            scores,
            constraint=self.constraint,
            tolerance=self.tolerance,
            objective=self.objective,
            label_frequency=self.label_frequency_,
            lottery=self.lottery,
            random_state=salt_seed,
        )
        self._posterior = self._posterior_steps(scores)
        self._scores = scores
        self._audit: Audit | None = None

    def _fit_paper(
        self, X: Any, labeled: NDArray[np.bool_], group: Any, training: dict[str, Any]
    ) -> None:
        """Fit the paper's method; what it cannot honor is refused."""
        given = [
            name
            for name in ("groups", "sample_weight", "row_id")
            if training[name] is not None
        ] + list(training["fit_params"])
        if given:
            raise ValueError(f'method="paper" cannot use {given!r}. Drop them.')
        seed = training["random_state"]
        model, scores, self.rule_ = fit_paper(
            self._base_estimator(), X, labeled, group, self.constraint, seed
        )
        self.estimators_, self.groups_ = (model,), scores.groups
        self.label_frequency_ = dict(self.rule_.label_frequency)
        self._posterior = self._posterior_steps(scores)

    @property
    def audit_(self) -> Audit:
        """Audit of the rule on its own out-of-fold scores, made when first asked for.

        Its intervals allow for the tuning. A pickle holds no rows: ask before pickling
        to keep it.
        """
        check_is_fitted(self)
        found: Audit | None = getattr(self, "_audit", None)
        if found is None:
            if not hasattr(self, "_scores"):
                raise AttributeError(
                    "audit_ needs the out-of-fold scores, which neither a pickle nor "
                    'method="paper" has. Use fairpul.audit on held-out rows.'
                )
            # One number for all groups is doubted; as a dict it would be believed.
            known: dict[str, Any] = {"label_frequency": self.label_frequency_}
            for name in ("label_frequency", "class_prior"):
                if isinstance(getattr(self, name), Real):
                    known = {name: getattr(self, name)}
            found = self._audit = audit(self._scores, rule=self.rule_, **known)
        return found

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_scores", None)
        if state.get("_audit") is not None:
            state["_audit"] = replace(state["_audit"], evidence=None)
        return state

    def predict(
        self, X: Any, *, sensitive_features: Any = None, row_id: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Decide on each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to decide on.
        sensitive_features : array-like, optional
            Group of each row, as in ``fit``.
        row_id : array-like of int, shape (n_samples,), optional
            Ids that decide the draw where the rule has a lottery; a row then gets the
            same decision in every batch.

        Returns
        -------
        ndarray of shape (n_samples,)
            The caller's code for labeled where a row is accepted, for unlabeled
            elsewhere.
        """
        score = self.decision_function(X)
        group = self._group_at_predict(X, sensitive_features)
        return self.classes_[self.rule_.decide(score, group, row_id=row_id)]

    def acceptance_probability(
        self, X: Any, *, sensitive_features: Any = None
    ) -> NDArray[np.float64]:
        """Probability that `predict` accepts each row; 0 or 1 without a lottery.

        The parameters are those of `predict`.
        """
        score = self.decision_function(X)
        group = self._group_at_predict(X, sensitive_features)
        return self.rule_.acceptance_probability(score, group)

    def decision_function(
        self, X: Any, *, sensitive_features: Any = None
    ) -> NDArray[np.float64]:
        """Score of each row, P(labeled), in [0, 1].

        ``rule_`` cuts it, at a level of its own in each group, and not at 0.
        ``sensitive_features`` is taken as by the other methods, and not used.
        """
        check_is_fitted(self)
        return median_score(self.estimators_, X)

    def predict_proba(
        self, X: Any, *, sensitive_features: Any = None
    ) -> NDArray[np.float64]:
        """1 - P(positive) and P(positive) of each row, in the order of ``classes_``.

        The parameters are those of `predict`.

        Notes
        -----
        Isotonic regression of the label on the score within the group, over the
        group's label frequency, clipped to [0, 1].
        """
        score = self.decision_function(X)
        group = self._group_at_predict(X, sensitive_features)
        codes = codes_of(group, self.groups_, len(score))
        positive = np.empty(len(score))
        for number, (cut, posterior) in enumerate(self._posterior):
            rows = codes == number
            positive[rows] = posterior[np.searchsorted(-cut, -score[rows])]
        return np.column_stack([1 - positive, positive])

    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        r"""Accuracy that the decisions would have against the unseen true classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were not used in ``fit``.
        y : array-like of shape (n_samples,)
            PU labels, coded as in ``fit``.
        sensitive_features : array-like, optional
            Group of each row, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), optional
            Sampling weights.

        Returns
        -------
        float
            At most 1 in expectation; an estimate can lie outside [0, 1].

        Notes
        -----
        :math:`1 - \sum_s p_s [\pi_s (1 - T_s) + (1 - \pi_s) F_s]` with the group
        shares :math:`p_s`, labeled shares :math:`\rho_s`, true positive rates
        :math:`T_s` and selection rates of the rows given, the priors
        :math:`\pi_s = \rho_s / c_s` by the label frequencies :math:`c_s` of ``fit``,
        and :math:`(1 - \pi_s) F_s = Q_s - \pi_s T_s`. With acceptance probability
        :math:`g` it equals the mean over rows of :math:`1 - L/c - g + 2 g L/c`. A rule
        with a lottery is scored by its expectation.
        """
        labeled, _ = check_labels(y)
        weight = check_weight(sample_weight, len(labeled))
        accepted = self.acceptance_probability(X, sensitive_features=sensitive_features)
        group = self._group_at_predict(X, sensitive_features)
        codes = codes_of(group, self.groups_, len(accepted))
        frequency = np.array([self.label_frequency_[g].estimate for g in self.groups_])
        positive = labeled / frequency[codes]
        correct = 1 - positive - accepted + 2 * accepted * positive
        return float(np.average(correct, weights=weight))

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X in ``fit``."""
        return self.estimators_[0].n_features_in_  # type: ignore[no-any-return]

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns of X in ``fit``."""
        return self.estimators_[0].feature_names_in_  # type: ignore[no-any-return]

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata used here, and handed on to the wrapped estimator."""
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                estimator=self._base_estimator(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._rule_html()
        return bundle

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # A property, as in scikit-learn, where it is missing if display="text".
        diagram = super()._repr_html_
        return lambda: diagram() + self._rule_html()

    def _rule_html(self) -> str:
        return self.rule_._repr_html_() if hasattr(self, "rule_") else ""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        estimator = self._base_estimator()
        # Classifiers from outside scikit-learn may have no tags.
        if hasattr(estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(estimator).input_tags
        return tags

    def _base_estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _check_parameters(self) -> None:
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {_METHODS}, got {self.method!r}.")
        if self.method == "paper":
            defaults = type(self)().get_params(deep=False)
            changed = [
                name
                for name, value in self.get_params(deep=False).items()
                if name not in _PAPER_PARAMETERS
                and not (np.isscalar(value) and value == defaults[name])
                and value is not defaults[name]
            ]
            if changed:
                raise ValueError(
                    f'method="paper" cannot use {changed!r}. Leave them at their '
                    'defaults, or use method="direct".'
                )
        if self.deploy not in _DEPLOY:
            raise ValueError(f"deploy must be one of {_DEPLOY}, got {self.deploy!r}.")
        if self.deploy == "refit" and is_prefit(self._base_estimator(), self.cv):
            raise ValueError(
                "deploy='refit' would fit an estimator that is fitted already. Use "
                "deploy='median', or let cv be a number of folds."
            )
        # Refused before any model is fitted.
        check_objective(self.objective)
        check_tolerance(self.constraint, self.tolerance)
        check_lottery(self.lottery)
        check_label_frequency(self.label_frequency, self.class_prior)

    def _group(self, X: Any, sensitive_features: Any) -> Any:
        """Group of each row, from the keyword or from columns of X; None for none."""
        if self.sensitive_columns is None:
            return sensitive_features
        if sensitive_features is not None:
            raise ValueError(
                "The group is read from X by sensitive_columns="
                f"{self.sensitive_columns!r}, but sensitive_features was given too. "
                "Give one of them."
            )
        return group_columns(X, self.sensitive_columns)

    def _group_at_predict(self, X: Any, sensitive_features: Any) -> Any:
        group = self._group(X, sensitive_features)
        if self._grouped and group is None:
            raise ValueError(
                f"The rule was fitted for groups {list(self.groups_)!r}, but no group "
                "was given. Pass sensitive_features."
            )
        if group is not None and not self._grouped:
            raise ValueError(
                "sensitive_features was given, but the rule was fitted without groups. "
                "Fit with sensitive_features, or drop it here."
            )
        return group

    def _posterior_steps(
        self, scores: GroupScores
    ) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Cuts of each group's hull, and the clipped posterior from each cut up."""
        steps = []
        for number, key in enumerate(scores.groups):
            hull = scores.hull(number)  # the posterior is 0 all over its flat top
            posterior = segment_posterior(hull, self.label_frequency_[key].estimate)
            steps.append((hull.cut[1:], np.clip(posterior, 0, 1)))
        return steps


def _check_binary_labels(y: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    if are_coded_labels(y):
        return check_labels(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{kind}; recode it to 1 for labeled and 0 for unlabeled rows."
        )
    return check_labels(y)
