"""Checks of the score, the labels and the label frequency of an audit."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul._validation import check_source
from fairpul.binning import middle
from fairpul.diagnostics import (
    Calibration,
    calibration,
    label_frequency_ratio,
    source_differences,
)
from fairpul.estimate import Estimate
from fairpul.evidence import Rows
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.knowledge import Knowledge
from fairpul.label_frequency import plateau_trend
from fairpul.label_frequency._numeric import NotNumericError, numeric_table
from fairpul.label_frequency._top_sets import group_top_sets
from fairpul.measures import is_prior

ByGroup = dict[Hashable, Estimate]


@dataclass(frozen=True)
class Checks:
    """Results by group; empty where a check was not asked for or not possible."""

    label_frequency: ByGroup
    bound: ByGroup
    plateau: ByGroup
    calibration: dict[Hashable, Calibration] = field(default_factory=dict)
    source: ByGroup = field(default_factory=dict)
    ratio: ByGroup = field(default_factory=dict)
    has_score: bool = True

    def leaves(self) -> dict[str, Any]:
        """Estimates by name and group."""
        found: dict[str, Any] = {
            "label_frequency": self.label_frequency,
            "label_frequency_bound": self.bound,
            "plateau": self.plateau,
            "calibration": {
                key: value._asdict() for key, value in self.calibration.items()
            },
            "source": self.source,
            "label_frequency_ratio": self.ratio,
        }
        return {name: leaf for name, leaf in found.items() if leaf}


def run_checks(
    scores: Rows, known: Knowledge, source: Any, X: Any, *, has_score: bool
) -> Checks:
    """All checks that the rows or counts allow."""
    numbers = dict(enumerate(scores.groups))
    frequency, bound = {}, {}
    for key, value in known.label_frequency.items():
        tier = "prior" if is_prior(value) else "label frequency"
        reason = value.warning or value.method
        frequency[key] = Estimate(value.estimate, value.low, value.high, tier, reason)
        least = known.bound[key]
        reason = "lower 95% confidence bound of the label frequency"
        bound[key] = Estimate(least, least, 1.0, "c-free", reason)
    return Checks(
        frequency,
        bound,
        {key: _plateau(scores, number) for number, key in numbers.items()}
        if has_score
        else {},
        {key: _calibration(scores, number) for number, key in numbers.items()}
        if has_score
        else {},
        _sources(scores, source, X, has_score=has_score),
        _ratio(scores, X),
        has_score,
    )


def _plateau(scores: Rows, number: int) -> Estimate:
    """P-value of a labeled share that still rises at the top of the scores."""
    top = group_top_sets(scores, number)
    trend = plateau_trend(top.accepted, top.labeled, n_effective=top.n_effective)
    if math.isnan(trend.p_value):
        return Estimate.undefined("c-free", "ties at the top of the scores")
    reason = (
        f"p-value of a rise: {trend.top:.3g} of the top 2.5% are labeled, "
        f"{trend.next:.3g} of the next 7.5%"
    )
    return Estimate(trend.p_value, math.nan, math.nan, "c-free", reason)


def _calibration(scores: Rows, number: int) -> Calibration:
    if isinstance(scores, GroupScores):
        rows = scores.rows(number)
        weight, cluster = _of_rows(scores, rows)
        return calibration(
            scores.score[rows], scores.labeled[rows], weight, cluster=cluster
        )
    # A cell stands for its rows by the middle of its bin.
    cells = scores.cells_of(number)
    points = scores.points(number)
    labeled, rows_of_cell = np.diff(points.labeled), np.diff(points.accepted)
    return calibration(
        np.tile(middle(scores.bin[cells], scores.bins), 2),
        np.repeat([1.0, 0.0], len(cells)),
        count=np.concatenate([labeled, rows_of_cell - labeled]),
    )


def _sources(scores: Rows, source: Any, X: Any, *, has_score: bool) -> ByGroup:
    if source is None:
        return {}
    if isinstance(scores, GroupCounts):
        raise ValueError("source= needs the rows, got a table of counts.")
    column = check_source(source, len(scores))
    if X is None and not has_score:
        raise ValueError("source= compares features or scores: give X= or score=.")
    table = _features(scores, X)
    values = scores.score[:, None] if table is None else table
    found: ByGroup = {}
    for number, key in enumerate(scores.groups):
        rows = np.flatnonzero((scores.codes == number) & scores.labeled)
        p_value, worst = source_differences(
            values[rows], column[rows], *_of_rows(scores, rows)
        )
        what = "the score" if table is None else f"column {worst} of X"
        reason = (
            f"p-value that labeled rows of all sources are alike; least so in {what}"
            if not math.isnan(p_value)
            else "needs at least 5 labeled rows from each of two sources"
        )
        found[key] = Estimate(p_value, math.nan, math.nan, "c-free", reason)
    return found


def _ratio(scores: Rows, X: Any) -> ByGroup:
    """Label frequency of each further group over that of the first, from features."""
    if X is None or isinstance(scores, GroupCounts) or len(scores.groups) < 2:
        return {}
    table = _features(scores, X)
    if table is None or np.isnan(table).any():
        return {}
    found: ByGroup = {}
    for number, key in enumerate(scores.groups[1:], start=1):
        rows = np.flatnonzero((scores.codes == 0) | (scores.codes == number))
        found[key] = label_frequency_ratio(
            table[rows],
            scores.labeled[rows],
            scores.codes[rows] == number,
            *_of_rows(scores, rows),
        )
    return found


def _of_rows(
    scores: GroupScores, rows: NDArray[np.intp]
) -> tuple[NDArray[np.float64] | None, NDArray[np.intp] | None]:
    """Weights and clusters of some rows, where there are any."""
    weight, cluster = scores.sample_weight, scores.cluster
    return (
        None if weight is None else weight[rows],
        None if cluster is None else cluster[rows],
    )


def _features(scores: GroupScores, X: Any) -> NDArray[np.float64] | None:
    """Features as numbers; None where there are none."""
    if X is None:
        return None
    try:
        table = numeric_table(X)
    except NotNumericError:
        return None
    if len(table) != len(scores):
        raise ValueError(f"X has {len(table)} rows where {len(scores)} were expected.")
    return table
