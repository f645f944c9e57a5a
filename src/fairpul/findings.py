"""Sensitivity of an audit's findings: at which wrong assumption they flip."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from fairpul.estimate import Estimate
from fairpul.intervals import gap_interval_of_ranges
from fairpul.label_frequency import LabelFrequency
from fairpul.measures import size_of_mean
from fairpul.ranges import possible_range
from fairpul.rates import Rates
from fairpul.sensitivity import (
    false_label_break_even,
    fpr_flip,
    odds_ratio,
    shifted_tpr,
)
from fairpul.tally import Tally

#: Labeling biases at which the hidden gap is shown.
BIASES = (1.25, 1.5, 2.0, 3.0, 5.0)


def group_name(key: Hashable) -> str:
    """Group as text: the parts of an intersection with a slash between them.

    Examples
    --------
    >>> group_name("f"), group_name(("f", 1))
    ('f', 'f/1')
    """
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)


def group_names(keys: Sequence[Hashable]) -> dict[Hashable, str]:
    """Text of each group; two groups that would read alike are refused."""
    names = {key: group_name(key) for key in keys}
    if len(set(names.values())) < len(keys):
        raise ValueError(
            f"Some of the groups {list(keys)!r} read alike as text. Recode them "
            "before the audit."
        )
    return names


def readable_names(keys: Sequence[Hashable]) -> dict[Hashable, str]:
    """Text of each group for a reader: as Python writes it where texts are alike.

    Examples
    --------
    >>> readable_names(["f", "m"]), readable_names([1, "1"])
    ({'f': 'f', 'm': 'm'}, {1: '1', '1': "'1'"})
    """
    names = {key: group_name(key) for key in keys}
    alike = len(set(names.values())) < len(keys)
    return {key: repr(key) if alike else name for key, name in names.items()}


def extremes(rates: Rates, name: str) -> tuple[Hashable, Hashable] | None:
    """Find the groups with the highest and the lowest rate, if there is a gap."""
    if len(rates) < 2 or math.isnan(rates.gaps[name].estimate):
        return None
    ordered = sorted(rates, key=lambda key: rates[key][name].estimate)
    return ordered[-1], ordered[0]


def sensitivity_of(
    rates: Rates,
    tallies: Sequence[Tally],
    label_frequency: Mapping[Hashable, LabelFrequency],
    level: float,
) -> dict[str, Any]:
    """All break-even points of the gaps, as Estimates by name."""
    pair = extremes(rates, "tpr")
    if pair is None:
        return {}
    of = dict(zip(rates, tallies, strict=True))
    bias, both = _labeling_bias(pair, of, level)
    return {
        "labeling_bias": bias,
        "labeling_bias_both": both,
        "hidden_gap": {f"{g:g}": _hidden_gap(rates, g, level) for g in BIASES},
        "false_labels": _false_labels(rates, pair),
        "fpr_flip": _fpr_flips(rates, of, label_frequency),
    }


def _labeling_bias(
    pair: tuple[Hashable, Hashable], of: Mapping[Hashable, Tally], level: float
) -> tuple[Estimate, Estimate]:
    """Break-even labeling bias where one group departs, and where both do."""
    best, worst = (of[key] for key in pair)
    (best_size, best_df), (worst_size, worst_df) = map(_independent, (best, worst))
    found = odds_ratio(
        best.tpr,
        worst.tpr,
        best_size,
        worst_size,
        level,
        n_groups=len(of),
        df=min(best_df, worst_df),
    )
    value, low, high = (max(1.0, end) for end in found)
    names = " over ".join(repr(group_name(key)) for key in pair)
    one = (
        f"odds ratio of {names}: the labeling bias of one group that explains the gap "
        "in TPR"
    )
    two = "its root: the bias that does if both groups have it, in opposite directions"
    roots = math.sqrt(value), math.sqrt(low), math.sqrt(high)
    return Estimate(value, low, high, "c-free", one), Estimate(*roots, "c-free", two)


def _independent(group: Tally) -> tuple[float, float]:
    """How many independent labeled rows the TPR is worth, and degrees of freedom."""
    influence = np.array([0.0, -group.tpr, 0.0, 1.0]) / group.m
    spread = group.spread(influence, group.m_effective)
    variance = group.tpr * (1 - group.tpr)
    return size_of_mean(group, variance, group.m_effective, spread), spread.df


def _hidden_gap(rates: Rates, bias: float, level: float) -> Estimate:
    """Bound the true TPR gap if labels favor either side by at most the bias."""
    tpr = [rates[key]["tpr"] for key in rates]
    point = [rate.estimate for rate in tpr]
    low, high = gap_interval_of_ranges(
        shifted_tpr(point, bias),
        shifted_tpr(point, 1 / bias),
        shifted_tpr([rate.low for rate in tpr], bias),
        shifted_tpr([rate.high for rate in tpr], 1 / bias),
        tuned=False,
        level=level,
    )
    gap = max(point) - min(point)
    reason = f"labels favor accepted or rejected positives by at most {bias:g} to 1"
    return Estimate(gap, min(low, gap), max(high, gap), "c-free", reason)


def _false_labels(rates: Rates, pair: tuple[Hashable, Hashable]) -> dict[str, Estimate]:
    high, low = (rates[key]["tpr"].estimate for key in pair)
    gap, fpr = rates.gaps["tpr"], rates[pair[1]]["fpr"]
    # No gap is wider than its higher rate.
    tops = [(max(high, g), g) for g in (gap.estimate, gap.low, gap.high)]
    value, least, most = (false_label_break_even(top, top - g) for top, g in tops)
    reason = "share of false labels in one group, however often they are accepted"
    found = {
        "least": Estimate(value, min(value, least), max(value, most), "c-free", reason)
    }
    if math.isnan(fpr.estimate):
        return found | {"at_fpr": Estimate.undefined(fpr.tier, fpr.reason or "")}
    at_fpr = false_label_break_even(high, low, max(0.0, fpr.estimate))
    name = group_name(pair[1])
    reason = f"share of false labels in group {name!r}, accepted as negatives are"
    return found | {"at_fpr": Estimate(at_fpr, math.nan, math.nan, fpr.tier, reason)}


def _fpr_flips(
    rates: Rates,
    of: Mapping[Hashable, Tally],
    label_frequency: Mapping[Hashable, LabelFrequency],
) -> dict[Hashable, Estimate]:
    """Label frequency of either extreme group at which the FPRs would be equal."""
    pair = extremes(rates, "fpr")
    if pair is None:
        return {}
    found: dict[Hashable, Estimate] = {}
    for key, other in (pair, pair[::-1]):
        group, known, name = of[key], label_frequency[key], group_name(other)
        flip = fpr_flip(
            group.tpr,
            group.selection_rate,
            group.labeled_share,
            rates[other]["fpr"].estimate,
        )
        low, high = possible_range(group, known)
        tier = rates[key]["fpr"].tier
        reason = f"label frequency at which the FPR equals that of {name!r}: "
        if math.isnan(flip):
            reason = f"no label frequency makes it equal that of {name!r}"
        elif low == high:
            reason += f"it was given as {low:.3g}"
        else:
            inside = "possible" if low <= flip <= high else "not possible"
            reason += f"{inside}, as it may lie between {low:.3g} and {high:.3g}"
        found[key] = Estimate(flip, math.nan, math.nan, tier, reason)
    return found
