"""What is audited: rows or counts, and who of them is accepted."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpul._groups import typed
from fairpul._validation import check_decision
from fairpul.binning import FINE_BINS, bin_of
from fairpul.cuts import Cuts, acceptance
from fairpul.fixed_point import WEIGHT_UNIT
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.label_frequency._top_sets import merge_points
from fairpul.rule import DecisionRule
from fairpul.tally import Tally, tally

Rows = GroupScores | GroupCounts


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows or counts of the groups, with the acceptance probability of each.

    Attributes
    ----------
    scores : GroupScores or GroupCounts
        The rows, or cells of rows with a common group and bin.
    acceptance : ndarray
        Of each row; of counts, of each cell.
    """

    scores: Rows
    acceptance: NDArray[np.float64]

    def tallies(self) -> tuple[Tally, ...]:
        """Add up each group."""
        scores = self.scores
        if isinstance(scores, GroupScores):
            return tally(
                self.acceptance,
                scores.labeled,
                scores.codes,
                len(scores.groups),
                scores.sample_weight,
                scores.cluster,
            )
        return tuple(
            Tally(
                self.acceptance[scores.cells_of(number)],
                np.diff(scores.points(number).accepted),
                np.diff(scores.points(number).labeled),
                scores.n_effective(number),
                scores.m_effective(number),
                _squares_of(scores, number),
            )
            for number in range(len(scores.groups))
        )


def _squares_of(counts: GroupCounts, number: int) -> NDArray[np.float64] | None:
    """Sum the squared weights of the unlabeled and of the labeled rows by cell."""
    if not counts.weighted:
        return None
    of_all, of_labeled = counts.sums[counts.cells_of(number), 4:].T / WEIGHT_UNIT
    return np.column_stack([of_all - of_labeled, of_labeled])


def by_decision(scores: Rows, decision: ArrayLike) -> Evidence:
    """Accept as a column of the caller says: decisions or acceptance probabilities."""
    column = check_decision(decision)
    if len(column) != _n_units(scores):
        raise ValueError(
            f"decision has {len(column)} rows where {_n_units(scores)} were expected."
        )
    return Evidence(scores, column.astype(np.float64))


def by_threshold(scores: Rows, threshold: float) -> Evidence:
    """Accept scores of at least a threshold; of counts, the bins from its bin on."""
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must lie in [0, 1], got {threshold!r}.")
    numbers = range(len(scores.groups))
    if isinstance(scores, GroupCounts):
        cuts = [float(scores.bin_at(number, threshold)) for number in numbers]
    else:
        cuts = [float(threshold) for _ in numbers]
    return by_cuts(scores, tuple(((cut, 1.0),) for cut in cuts))


def by_capacity(scores: Rows, capacity: float) -> Evidence:
    """Accept the highest scores of all groups together, at most a share of the rows."""
    if not 0 < capacity <= 1:
        raise ValueError(f"capacity must lie in (0, 1], got {capacity!r}.")
    points = merge_points([scores.points(s) for s in range(len(scores.groups))])
    # 1e-12: a product such as .1 * 30 may come out just below the whole number.
    allowed = capacity * points.accepted[-1] * (1 + 1e-12)
    position = int(np.searchsorted(points.accepted, allowed, side="right")) - 1
    cut = float(points.cut[position])
    return by_cuts(scores, (((cut, 1.0),),) * len(scores.groups))


def by_rule(scores: Rows, rule: DecisionRule) -> Evidence:
    """Accept as a decision rule does."""
    known = {typed(key): cuts for key, cuts in zip(rule.groups, rule.cuts, strict=True)}
    unknown = [key for key in scores.groups if typed(key) not in known]
    if unknown:
        raise ValueError(
            f"The rule has no cut for the groups {unknown!r}; it knows "
            f"{list(rule.groups)!r}. Drop these rows or map them to a known group."
        )
    cuts = tuple(known[typed(key)] for key in scores.groups)
    if not isinstance(scores, GroupCounts):
        return by_cuts(scores, cuts, rule.bins)
    if rule.bins is None:
        raise ValueError(
            f"The rule cuts scores, the table has {scores.bins} bins. Fit the rule on "
            "counts, or audit the rows."
        )
    table = _undivided(scores, cuts, rule.bins)
    scale = table.bins / rule.bins  # a power of two
    moved = tuple(tuple((cut * scale, weight) for cut, weight in one) for one in cuts)
    return by_cuts(table, moved)


def _undivided(counts: GroupCounts, cuts: tuple[Cuts, ...], bins: int) -> GroupCounts:
    """Table whose bins no cut divides: the same, or the rows counted again."""
    wide = FINE_BINS // counts.base_bins
    divided: dict[Hashable, set[int]] = {}
    for key, group_cuts in zip(counts.groups, cuts, strict=True):
        finite = (cut for cut, _ in group_cuts if np.isfinite(cut))
        for cut in finite:
            base, rest = divmod(int(cut) * (FINE_BINS // bins), wide)
            if rest and base not in counts.refined.get(key, ()):
                divided.setdefault(key, set()).add(base)
    if not divided:
        return counts
    if counts.sources:
        return counts.recount(divided)
    raise ValueError(
        f"The rule cuts inside bins of the table, of groups {[*divided]!r}. Count with "
        "refine=True, or audit the rows."
    )


def by_cuts(scores: Rows, cuts: tuple[Cuts, ...], bins: int | None = None) -> Evidence:
    """Accept by the cuts of each group, on bins of counts or where bins are given."""
    if isinstance(scores, GroupCounts):
        compared: NDArray[Any] = scores.bin
    else:
        compared = scores.score if bins is None else bin_of(scores.score, bins)
    return Evidence(scores, acceptance(compared, scores.codes, cuts))


def _n_units(scores: Rows) -> int:
    return len(scores) if isinstance(scores, GroupScores) else len(scores.bin)
