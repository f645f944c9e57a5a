"""All numbers of the page beyond the audit: curves, distributions, rules, frontier.

The page computes nothing: what it shows is here, as plain values.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fairpul.audit import Audit
from fairpul.binning import lower_edge, middle
from fairpul.evidence import Evidence, Rows
from fairpul.fitting import fit_rule
from fairpul.frontier import frontier
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import LabelFrequency
from fairpul.objectives import Capacity
from fairpul.operating_points import OperatingPoints
from fairpul.report.explorer import Explorer, Progress, explore, quietly
from fairpul.rule import DecisionRule

_CURVE_POINTS = 90
_HISTOGRAM_BINS = 24
# Tables of counts make every further rule as fast as on a few thousand rows.
_MOST_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class Curve:
    """Operating points of a group, thinned."""

    selection_rate: NDArray[np.float64]
    tpr: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Distribution:
    """Shares of a group's rows, and of its labeled rows, by bin of the score."""

    edges: NDArray[np.float64]
    rows: NDArray[np.float64]
    labeled: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Exhibits:
    """Numbers of one page.

    Attributes
    ----------
    audit : Audit
        The audit that the page is about.
    rule : DecisionRule or None
        The audited rule, or else one with equal recall that selects as many; None
        where there are no scores, or one group only.
    rule_audited : bool
        Whether the audit is of this rule.
    sizes : dict
        Group key -> number of rows, and of labeled rows.
    fingerprint : str
        SHA-256 of the rows or counts, and of who is accepted.
    selected : float
        Share of all rows that the audited decisions accept.
    curves, distributions : dict
        By group key; empty without scores.
    cuts : dict
        Group key -> least score that the audited decisions accept, of the groups in
        which they accept all rows from some score on.
    frontier : list of dict
        ``{"gap", "recall"}`` of the best rule at each tolerance, selecting as many.
    recall : float
        Recall overall of the audited decisions, groups weighed as in the frontier.
    explorer : Explorer or None
        Rules on a grid.
    """

    audit: Audit
    rule: DecisionRule | None
    rule_audited: bool
    sizes: dict[Hashable, tuple[int, int]]
    fingerprint: str
    selected: float
    curves: dict[Hashable, Curve] = field(default_factory=dict)
    distributions: dict[Hashable, Distribution] = field(default_factory=dict)
    cuts: dict[Hashable, float] = field(default_factory=dict)
    frontier: list[dict[str, float]] = field(default_factory=list)
    recall: float = math.nan
    explorer: Explorer | None = None


def exhibits(
    audit: Audit, rule: DecisionRule | None = None, *, progress: Progress | None = None
) -> Exhibits:
    """Numbers of a page.

    Parameters
    ----------
    audit : Audit
        As :func:`fairpul.audit` returns it.
    rule : DecisionRule, optional
        The rule that was audited.
    progress : callable, optional
        Called with (done, total) while the rules of the explorer are solved.
    """
    evidence, knowledge = audit.evidence, audit.knowledge
    if evidence is None or knowledge is None:
        raise ValueError(
            "The page needs the rows or counts of the audit; this Audit has none. Make "
            "it with fairpul.audit."
        )
    found = Exhibits(
        audit,
        rule,
        rule is not None,
        _sizes(evidence.scores),
        _fingerprint(evidence),
        _selected(evidence),
    )
    if "calibration" not in audit.checks:  # decisions without scores
        return found
    found = _of_the_score(found, evidence)
    if len(audit.rates) < 2:
        return found
    return _of_other_rules(found, evidence, knowledge.label_frequency, progress)


def _of_the_score(found: Exhibits, evidence: Evidence) -> Exhibits:
    """Add curves, distributions and cuts."""
    scores = evidence.scores
    numbers = {key: number for number, key in enumerate(scores.groups)}
    cuts = {key: _cut(evidence, number) for key, number in numbers.items()}
    return replace(
        found,
        curves={key: _thinned(scores.points(i)) for key, i in numbers.items()},
        distributions={key: _distribution(scores, i) for key, i in numbers.items()},
        cuts={key: cut for key, cut in cuts.items() if not math.isnan(cut)},
    )


def _of_other_rules(
    found: Exhibits,
    evidence: Evidence,
    known: Mapping[Hashable, LabelFrequency],
    progress: Progress | None,
) -> Exhibits:
    """Add the rule with equal recall, the frontier and the explorer."""
    scores, rule, selected = evidence.scores, found.rule, found.selected
    small = _small(scores)
    estimates = {key: value.estimate for key, value in known.items()}
    steps = []
    with quietly():
        if 0 < selected < 1:
            goal = Capacity(selected)
            if rule is None:
                rule = fit_rule(scores, objective=goal, label_frequency=known)
            curve = frontier(small, objective=goal, label_frequency=estimates)
            steps = [
                {"gap": float(gap), "recall": float(recall)}
                for gap, recall in zip(curve.gaps, curve.costs, strict=True)
            ]
        grid = explore(small, known, progress)
    return replace(
        found,
        rule=rule,
        frontier=steps,
        recall=_recall(evidence, estimates),
        explorer=grid,
    )


def _selected(evidence: Evidence) -> float:
    tallies = evidence.tallies()
    accepted = sum(group.selection_rate * group.n for group in tallies)
    return accepted / sum(group.n for group in tallies)


def _recall(evidence: Evidence, label_frequency: Mapping[Hashable, float]) -> float:
    """Recall of all groups together, each weighed by its estimated positives."""
    tallies = evidence.tallies()
    positives = [
        group.m / label_frequency[key]
        for key, group in zip(evidence.scores.groups, tallies, strict=True)
    ]
    return float(np.average([group.tpr for group in tallies], weights=positives))


def _fingerprint(evidence: Evidence) -> str:
    """SHA-256 of groups and of all columns that the audit rests on."""
    scores = evidence.scores
    columns = (
        (scores.score, scores.labeled, scores.sample_weight, scores.cluster)
        if isinstance(scores, GroupScores)
        else (scores.bin, scores.sums)
    )
    found = hashlib.sha256(repr(scores.groups).encode())
    for column in (*columns, scores.codes, evidence.acceptance):
        if column is not None:
            found.update(np.ascontiguousarray(column).data)
    return found.hexdigest()


def _cut(evidence: Evidence, number: int) -> float:
    """Least score from which on a group is accepted; nan where there is none."""
    scores = evidence.scores
    if isinstance(scores, GroupScores):
        units = scores.rows(number)
        score, accepted = scores.score[units], evidence.acceptance[units]
    else:
        units = scores.cells_of(number)
        score, accepted = scores.bin[units], evidence.acceptance[units]
    certain = accepted == 1
    if not certain.any():
        return math.nan
    least = float(score[certain].min())
    if not certain[score >= least].all():
        return math.nan
    return least if isinstance(scores, GroupScores) else lower_edge(least, scores.bins)


def _sizes(scores: Rows) -> dict[Hashable, tuple[int, int]]:
    """Rows and labeled rows of each group."""
    if isinstance(scores, GroupScores):
        n = np.bincount(scores.codes, minlength=len(scores.groups))
        m = np.bincount(scores.codes[scores.labeled], minlength=len(scores.groups))
    else:
        n, m = (
            np.bincount(scores.codes, scores.sums[:, column], len(scores.groups))
            for column in (0, 1)
        )
    return {key: (int(n[i]), int(m[i])) for i, key in enumerate(scores.groups)}


def _small(scores: Rows) -> Rows:
    """Rows, or counts of them where there are many."""
    if isinstance(scores, GroupScores) and len(scores) > _MOST_ROWS:
        return GroupCounts.from_scores(scores)
    return scores


def _thinned(points: OperatingPoints) -> Curve:
    """Operating points evenly along the curve, both ends kept."""
    length = points.selection_rate + points.tpr
    wanted = np.linspace(0.0, 2.0, _CURVE_POINTS)
    kept = np.unique(np.minimum(np.searchsorted(length, wanted), len(points) - 1))
    return Curve(points.selection_rate[kept], points.tpr[kept])


def _distribution(scores: Rows, number: int) -> Distribution:
    points = scores.points(number)
    cut = points.cut[1:]
    if isinstance(scores, GroupCounts):
        cut = middle(cut, scores.bins)
    edges = np.linspace(0.0, 1.0, _HISTOGRAM_BINS + 1)
    rows, labeled = (
        np.histogram(cut, edges, weights=np.diff(mass))[0]
        for mass in (points.accepted, points.labeled)
    )
    return Distribution(edges, rows / rows.sum(), labeled / labeled.sum())
