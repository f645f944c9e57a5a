"""The explorer: the best rule on a grid of wishes, solved beforehand.

The reader moves a recall floor or a capacity, the tolerance, and the labeling bias that
is granted; the page looks up what was computed here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.audit import Audit, audit
from fairpul.estimate import Estimate
from fairpul.findings import BIASES, group_name
from fairpul.fitting import fit_rule
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import LabelFrequency
from fairpul.objectives import Capacity, Objective, RecallFloor
from fairpul.report.words import cuts_text
from fairpul.rule import DecisionRule
from fairpul.sensitivity import shifted_tpr

Progress = Callable[[int, int], None]

RECALLS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
CAPACITIES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
#: The last stands for no constraint.
TOLERANCES = (0.0, 0.02, 0.05, 0.1, 1.0)
#: 1 grants no labeling bias.
GRANTED = (1.0, *BIASES)


@dataclass(frozen=True)
class Explorer:
    """Rules on a grid, as plain values.

    Attributes
    ----------
    groups : tuple of str
        Names of the groups.
    wishes : dict
        ``{"recall": RECALLS, "capacity": CAPACITIES}``.
    tolerances, biases : tuple of float
        The other two axes.
    cells : dict
        ``"recall|level|tolerance"`` (positions on the axes) -> one rule: see
        :func:`describe`.
    """

    groups: tuple[str, ...]
    wishes: Mapping[str, tuple[float, ...]]
    tolerances: tuple[float, ...]
    biases: tuple[float, ...]
    cells: Mapping[str, Mapping[str, Any]]


def explore(
    scores: GroupScores | GroupCounts,
    label_frequency: Mapping[Hashable, LabelFrequency],
    progress: Progress | None = None,
) -> Explorer:
    """Solve the best rule for every wish and tolerance, and audit it."""
    wishes = {"recall": RECALLS, "capacity": CAPACITIES}
    cells = {}
    places = [
        (kind, level, tolerance)
        for kind, levels in wishes.items()
        for level, tolerance in product(range(len(levels)), range(len(TOLERANCES)))
    ]
    for done, (kind, level, tolerance) in enumerate(places, start=1):
        value = wishes[kind][level]
        goal: Objective = (
            RecallFloor(value, assured=True) if kind == "recall" else Capacity(value)
        )
        allowed = TOLERANCES[tolerance]
        with quietly():
            rule = fit_rule(
                scores,
                constraint=None if allowed == 1 else "equal_opportunity",
                tolerance=0.0 if allowed == 1 else allowed,
                objective=goal,
                label_frequency=label_frequency,
            )
            report = audit(scores, rule=rule, label_frequency=label_frequency)
        cells[f"{kind}|{level}|{tolerance}"] = describe(rule, report, scores.shares)
        if progress is not None:
            progress(done, len(places))
    names = tuple(group_name(key) for key in scores.groups)
    return Explorer(names, wishes, TOLERANCES, GRANTED, cells)


def describe(
    rule: DecisionRule, report: Audit, shares: NDArray[np.float64]
) -> dict[str, Any]:
    """One rule as the explorer shows it; ``shares`` are those of the groups.

    ``total``: share of everybody who is selected. ``groups``: per group the cut in
    words, selection rate and TPR with intervals, and the TPR range at each bias that is
    granted. ``gap``: the TPR gap with its interval at each bias; ``fpr_gap``: with the
    range over all label frequencies. ``open``: what stays undetermined at each bias.
    """
    groups = []
    for key, cuts in zip(rule.groups, rule.cuts, strict=True):
        rates = report.rates[key]
        groups.append(
            {
                "cut": cuts_text(cuts, rule.bins),
                "selected": _ends(rates["selection_rate"]),
                "tpr": _ends(rates["tpr"]),
                "shifted": [_shifted(rates["tpr"], bias) for bias in GRANTED],
            }
        )
    hidden = report.sensitivity["hidden_gap"]
    gaps = [report.gaps["tpr"], *(hidden[f"{bias:g}"] for bias in BIASES)]
    selected = [report.rates[key]["selection_rate"].estimate for key in rule.groups]
    return {
        "total": _round(float(shares @ selected)),
        "groups": groups,
        "gap": [_ends(gap) for gap in gaps],
        "fpr_gap": _ends(report.gaps["fpr"]),
        "open": [
            _undetermined(report, gap, bias)
            for gap, bias in zip(gaps, GRANTED, strict=True)
        ],
    }


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of single rules: the audit of the page has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _shifted(tpr: Estimate, bias: float) -> list[float]:
    """Range of the true TPR if labels favor either side by at most a bias."""
    low, high = shifted_tpr(tpr.low, bias), shifted_tpr(tpr.high, 1 / bias)
    return [_round(float(low)), _round(float(high))]


def _undetermined(report: Audit, gap: Estimate, bias: float) -> str:
    left_open = []
    if gap.low <= 0:
        left_open.append("whether recall differs between the groups")
    fpr = report.gaps["fpr"]
    if np.isnan(fpr.estimate) or bias > 1:
        # What bounds false positive rates are labels that favor nobody.
        left_open.append("the gap in false positive rates")
    elif fpr.low <= 0:
        left_open.append("whether false positive rates differ")
    return ", and ".join(left_open)


def _ends(value: Estimate) -> list[float | None]:
    return [_round(part) for part in (value.estimate, value.low, value.high)]


def _round(value: float) -> Any:
    return None if np.isnan(value) else round(value, 4)
