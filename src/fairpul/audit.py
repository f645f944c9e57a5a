"""Audit of decisions: rates of each group, their gaps, and what both lean on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from fairpul._files import write_text
from fairpul._validation import check_decision
from fairpul.cautions import cautions, cautions_of_counts
from fairpul.checks import run_checks
from fairpul.comparison import Comparison, compare_evidence
from fairpul.estimate import Estimate
from fairpul.evidence import (
    Evidence,
    Rows,
    by_capacity,
    by_decision,
    by_rule,
    by_threshold,
)
from fairpul.findings import group_names, sensitivity_of
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.knowledge import Knowledge, know_label_frequency
from fairpul.ranges import POPULATIONS
from fairpul.rates import Rates, group_rates
from fairpul.report.text import to_html_table, to_markdown, to_text
from fairpul.rule import DecisionRule
from fairpul.tally import Tally

Leaves = Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What labels tell about decisions: every number with its interval and its tier.

    Built by :func:`fairpul.audit`. Prints as a table; shows as one in notebooks.

    Attributes
    ----------
    rates : Rates
        Group key -> ``{"tpr", "fpr", "selection_rate", "ppv", "prevalence"}`` ->
        :class:`fairpul.estimate.Estimate`.
    gaps : dict
        ``{"tpr", "fpr", "selection_rate"}`` -> Estimate: largest minus smallest.
    sensitivity : dict
        How wrong an assumption must be before a finding flips: ``labeling_bias`` and
        ``labeling_bias_both`` (odds ratios), ``hidden_gap`` (the true TPR gap by the
        labeling bias that is granted), ``false_labels`` (shares), ``fpr_flip`` (label
        frequencies by group).
    checks : dict
        ``label_frequency``, ``label_frequency_bound``, ``plateau``, ``calibration``,
        and where they were asked for ``source`` and ``label_frequency_ratio``.
    warnings : tuple of str
        What to bear in mind before acting on the numbers.
    population : {"all", "unlabeled"}
        Whom selection rate, PPV and prevalence are about.
    level : float
        Confidence level of the intervals.
    knowledge : Knowledge or None
        What is known of the label frequencies that FPR, PPV and prevalence lean on.
    tuned : bool
        Whether the rule was tuned on the very rows of the audit.
    evidence : Evidence or None
        The rows and who of them is accepted, for :meth:`compare`.
    """

    rates: Rates
    sensitivity: Leaves
    checks: Leaves
    warnings: tuple[str, ...]
    population: str = "all"
    level: float = 0.95
    knowledge: Knowledge | None = None
    tuned: bool = False
    evidence: Evidence | None = None

    @property
    def gaps(self) -> Mapping[str, Estimate]:
        """Gap of each rate: largest minus smallest of the groups."""
        return self.rates.gaps

    def to_dict(self) -> dict[str, Any]:
        """Plain values; groups are strings, every number an Estimate as a dict."""
        names = group_names(tuple(self.rates))
        return {
            "rates": {names[key]: _plain(self.rates[key]) for key in self.rates},
            "gaps": _plain(self.gaps),
            "sensitivity": _plain(self.sensitivity),
            "checks": _plain(self.checks),
            "warnings": list(self.warnings),
        }

    def to_json(self) -> str:
        """JSON text of :meth:`to_dict`; what is undefined is null."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def to_markdown(self) -> str:
        """Tables and sentences for a report."""
        return to_markdown(self)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Write the page of this audit: one self-contained HTML text.

        Needs ``fairpul[app]``, and some seconds for the rules of its explorer.

        Parameters
        ----------
        path : path, optional
            File to write the page to as well, whole or not at all.
        """
        # Only a page needs the extra.
        from fairpul.report.exhibits import exhibits
        from fairpul.report.html import to_html

        page = to_html(exhibits(self))
        if path is not None:
            write_text(Path(path), page)
        return page

    def compare(self, other: Audit) -> Comparison:
        """Change from this audit to another of the same rows, with intervals.

        Parameters
        ----------
        other : Audit
            Of other decisions on the same rows, such as those of a new rule.

        Returns
        -------
        Comparison
            Other minus this, of each group's rates and of the gaps; paired by row.

        Examples
        --------
        >>> score = [0.9, 0.8, 0.6, 0.3] * 20
        >>> labeled, group = [1, 1, 0, 0, 0, 1, 0, 0] * 10, ["f"] * 40 + ["m"] * 40
        >>> before = audit(score=score, labeled=labeled, group=group, threshold=0.85)
        >>> after = audit(score=score, labeled=labeled, group=group, threshold=0.7)
        >>> round(before.compare(after).rates["f"]["tpr"].estimate, 3)
        0.667
        """
        return compare_evidence(self, other)

    def __repr__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        return to_html_table(self)


def audit(
    scores: Rows | None = None,
    *,
    labeled: ArrayLike | None = None,
    group: Any = None,
    decision: ArrayLike | None = None,
    score: ArrayLike | None = None,
    threshold: float | None = None,
    capacity: float | None = None,
    rule: DecisionRule | None = None,
    label_frequency: Any = "peak_rate",
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    source: ArrayLike | None = None,
    X: Any = None,
    population: str = "all",
    level: float = 0.95,
) -> Audit:
    r"""Rates of each group and their gaps, from positive and unlabeled rows.

    Parameters
    ----------
    scores : GroupScores or GroupCounts, optional
        Scores, labels and groups together; arrays go into the keywords instead.
    labeled : array-like of shape (n_rows,)
        1 or True for labeled positives; 0, -1 or False for unlabeled rows.
    group : array-like of shape (n_rows,) or (n_rows, n_columns), or None
        Group of each row; several columns form intersectional groups.
    decision : array-like of shape (n_rows,), optional
        1 for accepted, 0 or -1 for not, or acceptance probabilities. Either decisions
        or exactly one of ``threshold``, ``capacity`` and ``rule`` is required.
    score : array-like of shape (n_rows,), optional
        Scores in [0, 1], out-of-fold or held out.
    threshold : float, optional
        Accept scores of at least this.
    capacity : float, optional
        Accept the highest scores of all groups together, at most this share of rows.
    rule : DecisionRule, optional
        Accept as the rule does. If it was tuned on these very rows, the intervals of
        the gaps allow for that.
    label_frequency : str, float, dict or estimator, default="peak_rate"
        P(labeled given positive), or how to estimate it; see
        :mod:`fairpul.label_frequency`. Touches FPR, PPV and prevalence only.
    class_prior : float or dict, optional
        P(positive) instead, per group also (point, low, high); a group that is not
        named keeps its estimate.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights: a row of weight 2 counts as two rows.
    cluster : array-like of shape (n_rows,), optional
        Rows that belong together, such as the patient of each row.
    source : array-like of shape (n_rows,), optional
        Where the labels come from, such as a site: tests whether labeled rows of
        different sources are alike, which labeling at random demands.
    X : array-like or data frame, optional
        Features of the rows: they sharpen ``"peak_rate"``, are compared between
        sources, and give the ratio of label frequencies of two groups (PURPLE).
    population : {"all", "unlabeled"}, default="all"
        Whom selection rate, PPV and prevalence are about: everybody, or those who have
        no label yet.
    level : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    Audit

    Notes
    -----
    TPR and selection rate need no label frequency. FPR, PPV and prevalence are shown
    over all label frequencies that the data, or the interval of a prior, leave
    possible, unless each group was given a value of its own. One number for several
    groups is not such a value: it is right only if their positives are labeled alike.

    Examples
    --------
    >>> from fairpul.datasets import make_underdiagnosed
    >>> patients = make_underdiagnosed(4000, random_state=0)
    >>> report = audit(labeled=patients.labeled, group=patients.group,
    ...                score=patients.score, capacity=0.2)
    >>> print(report.rates["f"]["tpr"], report.gaps["tpr"], sep=" | ")
    0.333 [0.243, 0.438] | 0.564 [0.436, 0.655]
    >>> report.rates["f"]["fpr"].tier
    'label frequency'
    """
    _check_options(population, level)
    rows = _rows(scores, labeled, group, decision, score, sample_weight, cluster)
    if X is not None and isinstance(rows, GroupCounts):
        raise ValueError("X= needs the rows, got a table of counts.")
    evidence = _evidence(rows, decision, threshold, capacity, rule)
    tallies = evidence.tallies()
    known = know_label_frequency(rows, label_frequency, class_prior, X)
    tuned = rule is not None and _tuned_on(rule, rows, tallies)
    rates = group_rates(
        tallies,
        rows.groups,
        known.label_frequency,
        tuned=tuned,
        snapped=rule is not None and rule.expected != rule.realized,
        ranges=True,
        population=population,
        level=level,
    )
    known = known.confronted(rates)
    rates = known.without_contradicted(rates)
    checks = run_checks(
        rows, known, source, X, has_score=scores is not None or score is not None
    )
    sensitivity = sensitivity_of(rates, tallies, known.label_frequency, level)
    warnings = [*cautions(rates, tallies, sensitivity, checks, known, tuned=tuned)]
    if isinstance(rows, GroupCounts):
        warnings += cautions_of_counts(rows, threshold)
    return Audit(
        rates,
        sensitivity,
        checks.leaves(),
        tuple(warnings),
        population,
        level,
        known,
        tuned,
        evidence,
    )


def _check_options(population: str, level: float) -> None:
    if population not in POPULATIONS:
        raise ValueError(
            f"population must be one of {POPULATIONS}, got {population!r}."
        )
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")


def _rows(
    scores: Any,
    labeled: Any,
    group: Any,
    decision: Any,
    score: Any,
    sample_weight: Any,
    cluster: Any,
) -> Rows:
    """Rows or counts to audit; where there is no score, the decision serves as one."""
    columns = {
        "labeled": labeled,
        "group": group,
        "score": score,
        "sample_weight": sample_weight,
        "cluster": cluster,
    }
    if isinstance(scores, GroupScores | GroupCounts):
        twice = [name for name, value in columns.items() if value is not None]
        if twice:
            kind = type(scores).__name__
            raise TypeError(f"{kind} holds {twice!r} already; do not pass them again.")
        if isinstance(scores, GroupCounts):
            scores.check_every_group_is_labeled()
        return scores
    if scores is not None:
        raise TypeError(
            "audit takes GroupScores or GroupCounts first, or arrays as keywords: "
            f"labeled=, group=, score= or decision=; got a {type(scores).__name__}."
        )
    if labeled is None or (score is None and decision is None):
        raise TypeError(
            "audit needs labeled= and either decision= or score=, or GroupScores or "
            "GroupCounts first."
        )
    if score is None:
        score = check_decision(decision)
    check_consistent_length(labeled, score)
    return GroupScores(
        score, labeled, group, sample_weight=sample_weight, cluster=cluster
    )


def _evidence(
    rows: Rows,
    decision: Any,
    threshold: float | None,
    capacity: float | None,
    rule: DecisionRule | None,
) -> Evidence:
    """Who is accepted, by the one criterion that was given."""
    criteria = {
        "decision": decision,
        "threshold": threshold,
        "capacity": capacity,
        "rule": rule,
    }
    given = [name for name, value in criteria.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"Give one of {list(criteria)!r}, got {given!r}.")
    if decision is not None:
        return by_decision(rows, decision)
    if threshold is not None:
        return by_threshold(rows, threshold)
    if capacity is not None:
        return by_capacity(rows, capacity)
    if rule is not None:
        return by_rule(rows, rule)
    raise ValueError(
        "A score has rates only at a cut. Give threshold=, capacity= (the top share by "
        "score) or rule=, or the decisions themselves."
    )


def _tuned_on(rule: DecisionRule, rows: Rows, tallies: tuple[Tally, ...]) -> bool:
    """Whether a rule was tuned on these rows: its own rates are theirs to the digit."""
    if set(rule.groups) != set(rows.groups):
        return False
    return all(
        abs(rule.realized[key][name].estimate - rate) < 1e-9
        for key, group in zip(rows.groups, tallies, strict=True)
        for name, rate in (
            ("tpr", group.tpr),
            ("selection_rate", group.selection_rate),
        )
    )


def _plain(leaves: Any) -> Any:
    if isinstance(leaves, Estimate):
        return leaves.to_dict()
    names = group_names(tuple(leaves))
    return {names[key]: _plain(value) for key, value in leaves.items()}
