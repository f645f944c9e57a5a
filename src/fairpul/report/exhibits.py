"""All numbers of the page beyond the audit: curves, distributions, rules, frontier.

The page computes nothing: what it shows is here, as plain values.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.audit import Audit
from fairpul.binning import lower_edge
from fairpul.fitting import fit_rule
from fairpul.frontier import frontier
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
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
    """Operating points of a group, thinned, and the point of the audited decisions."""

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
    cuts : dict
        Group key -> least score that the audited decisions accept, where all rows of
        the group are accepted from some score on.
    curves, distributions : dict
        By group key; empty without scores.
    frontier : list of dict
        ``{"gap", "recall"}`` of the best rule at each tolerance, selecting as many.
    explorer : Explorer or None
        Rules on a grid.
    """

    audit: Audit
    rule: DecisionRule | None = None
    rule_audited: bool = False
    sizes: dict[Hashable, tuple[int, int]] = field(default_factory=dict)
    curves: dict[Hashable, Curve] = field(default_factory=dict)
    distributions: dict[Hashable, Distribution] = field(default_factory=dict)
    frontier: list[dict[str, float]] = field(default_factory=list)
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
    if audit.evidence is None or audit.knowledge is None:
        raise ValueError(
            "The page needs the rows or counts of the audit; this Audit has none. Make "
            "it with fairpul.audit."
        )
    scores = audit.evidence.scores
    sizes = _sizes(scores)
    if "calibration" not in audit.checks:  # decisions without scores
        return Exhibits(audit, rule, rule is not None, sizes)
    curves = {
        key: _thinned(scores.points(number)) for number, key in enumerate(scores.groups)
    }
    spread = {
        key: _distribution(scores, number) for number, key in enumerate(scores.groups)
    }
    found = Exhibits(audit, rule, rule is not None, sizes, curves, spread)
    if len(scores.groups) < 2:
        return found
    known = audit.knowledge.label_frequency
    selected = _selected(audit)
    small = _small(scores)
    with quietly():
        if rule is None and 0 < selected < 1:
            rule = fit_rule(scores, objective=Capacity(selected), label_frequency=known)
        steps = frontier(
            small,
            objective=Capacity(selected),
            label_frequency={key: value.estimate for key, value in known.items()},
        )
        grid = explore(small, known, progress)
    return Exhibits(
        audit,
        rule,
        found.rule_audited,
        sizes,
        curves,
        spread,
        [
            {"gap": float(gap), "recall": float(recall)}
            for gap, recall in zip(steps.gaps, steps.costs, strict=True)
        ],
        grid,
    )


def cut_as_score(cut: float, bins: int | None) -> float:
    """Least score that a cut accepts; nan where it accepts nobody."""
    if math.isinf(cut):
        return math.nan
    return cut if bins is None else lower_edge(cut, bins)


def _selected(audit: Audit) -> float:
    """Share of all rows that the audited decisions accept."""
    assert_evidence: Any = audit.evidence
    tallies = assert_evidence.tallies()
    accepted = sum(group.selection_rate * group.n for group in tallies)
    return float(accepted / sum(group.n for group in tallies))


def _sizes(scores: GroupScores | GroupCounts) -> dict[Hashable, tuple[int, int]]:
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


def _small(scores: GroupScores | GroupCounts) -> Any:
    if isinstance(scores, GroupScores) and len(scores) > _MOST_ROWS:
        return GroupCounts.from_scores(scores)
    return scores


def _thinned(points: OperatingPoints) -> Curve:
    """Operating points evenly along the curve, both ends kept."""
    length = points.selection_rate + points.tpr
    wanted = np.linspace(0.0, 2.0, _CURVE_POINTS)
    kept = np.unique(np.minimum(np.searchsorted(length, wanted), len(points) - 1))
    return Curve(points.selection_rate[kept], points.tpr[kept])


def _distribution(scores: GroupScores | GroupCounts, number: int) -> Distribution:
    points = scores.points(number)
    cut = points.cut[1:]
    if isinstance(scores, GroupCounts):
        cut = ((cut + 0.5) / scores.bins) ** 4
    edges = np.linspace(0.0, 1.0, _HISTOGRAM_BINS + 1)
    rows, labeled = (
        np.histogram(np.minimum(cut, 1.0), edges, weights=np.diff(mass))[0]
        for mass in (points.accepted, points.labeled)
    )
    return Distribution(edges, rows / rows.sum(), labeled / labeled.sum())
