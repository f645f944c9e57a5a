"""From what top sets show to label frequencies: floors, few labels, doubts in words."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from fairpul.label_frequency._counts import (
    FLOOR_FACTOR,
    PlateauTrend,
    at_least_floor,
    label_frequency_bound,
    plateau_trend,
)
from fairpul.label_frequency._result import LabelFrequency
from fairpul.label_frequency._top_sets import TopSets

# With fewer labeled rows than this a group has no label frequency of its own.
_LEAST_LABELED = 60
_TREND_LEVEL = 0.01


@dataclass(frozen=True)
class Reading:
    """What the rows of one group, or of all together, say before any floor."""

    estimate: float
    bound: float
    labeled_share: float
    trend: PlateauTrend | None = None

    @staticmethod
    def of(top: TopSets, estimate: float, *, trend: bool = False) -> Reading:
        """Attach the lower bound, and the trend at the top where it matters."""
        counts, n = (top.accepted, top.labeled), top.n_effective
        return Reading(
            estimate,
            label_frequency_bound(*counts, n_effective=n),
            float(top.labeled[-1] / top.accepted[-1]),
            plateau_trend(*counts, n_effective=n) if trend else None,
        )


def conclude(
    scores: Any,
    readings: list[Reading],
    together: Callable[[], Reading],
    method: str,
    pooled: bool,
    *,
    note: str | None = None,
    raised: bool = True,
) -> dict[Hashable, LabelFrequency]:
    """Label frequency of each group from its reading or the one of all groups.

    Parameters
    ----------
    scores : GroupScores or table of counts
        Gives the groups and their effective numbers of labeled rows.
    readings : list of Reading
        One per group.
    together : callable
        Reads all groups together; called only if some group needs it.
    method : str
        Name that the results carry.
    pooled : bool
        Give all groups the same label frequency.
    note : str, optional
        A doubt that holds for all groups.
    raised : bool, default=True
        Raise estimates to the lower confidence bound.
    """
    several = len(readings) > 1
    m = [scores.m_effective(number) for number in range(len(readings))]
    few = [several and labeled < _LEAST_LABELED for labeled in m]
    whole = together() if several and (pooled or any(few)) else None
    if whole is not None and pooled:
        # One value must leave every group a class prior below 1.
        largest = max(reading.labeled_share for reading in readings)
        whole = replace(whole, labeled_share=largest)
    result: dict[Hashable, LabelFrequency] = {}
    for key, own, labeled, is_few in zip(scores.groups, readings, m, few, strict=True):
        doubts = [] if note is None else [note]
        used, name = own, method
        if whole is not None and pooled:
            used, name = whole, f"{method}, pooled"
        elif whole is not None and is_few:
            used = replace(own, estimate=whole.estimate, trend=None)
            name = f"{method}, pooled"
            doubts.append(_few_labels(key, labeled))
        c = at_least_floor(
            used.estimate, used.bound if raised else 0.0, used.labeled_share
        )
        doubts += _doubts(key, c, used, own.bound)
        result[key] = LabelFrequency(c, used.bound, 1.0, name, " ".join(doubts) or None)
    return result


def contradiction(key: Hashable, label_frequency: float, bound: float) -> str:
    """Sentence on a label frequency below the bound that the data set."""
    return (
        f"The data contradict a label frequency of {label_frequency:.3g} in group "
        f"{key!r}: among its highest scores more than {bound:.3g} of the rows are "
        "labeled (95% confidence). The false positive rates that rest on it are wrong; "
        f"use a label frequency above {bound:.3g}, that is a smaller class prior."
    )


def _doubts(key: Hashable, c: float, used: Reading, own_bound: float) -> list[str]:
    doubts = []
    floor = FLOOR_FACTOR * used.labeled_share
    if c < own_bound:
        doubts.append(contradiction(key, c, own_bound))
    if c == min(1.0, floor) and used.estimate < c:
        doubts.append(
            f"In group {key!r} the score does not tell labeled rows apart, so the "
            f"label frequency was set to {c:.3g}, just above the labeled share; this "
            "says that nearly everyone in the group is positive. Do not read false "
            "positive rates of this group without a class_prior or label_frequency "
            "from outside."
        )
    elif used.trend is not None and used.trend.p_value < _TREND_LEVEL:
        doubts.append(
            f"In group {key!r} the labeled share still rises towards the highest "
            f"scores ({used.trend.top:.3g} of the top 2.5%, {used.trend.next:.3g} of "
            f"the next 7.5%), so the label frequency {c:.3g} may be too low and the "
            "class prior too high. Compare with a class_prior from outside if you "
            "have one."
        )
    return doubts


def _few_labels(key: Hashable, labeled: float) -> str:
    return (
        f"Group {key!r} has only {labeled:.0f} labeled rows, fewer than "
        f"{_LEAST_LABELED}, so its label frequency was read from all groups together. "
        "That is right only if its positives are labeled as often as those of the "
        "others; otherwise give its class_prior or label_frequency."
    )
