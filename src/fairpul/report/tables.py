"""Rows of the page's tables: numbers as text, positions of intervals in percent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fairpul.audit import Audit
from fairpul.estimate import Estimate
from fairpul.findings import group_name
from fairpul.measures import RATES
from fairpul.report.exhibits import Exhibits
from fairpul.report.explorer import cut_text
from fairpul.report.words import (
    MISSING,
    RATE_MEANINGS,
    RATE_NAMES,
    TIER_WORDS,
    interval,
    percent,
    points,
)

_CHECK_NAMES = {
    "label_frequency": "Share of positives that is labeled",
    "label_frequency_bound": "Least share that the data allow",
    "plateau": "Is the top of the scores a plateau? (p-value of a rise)",
    "source": "Are labels from different sources alike? (p-value)",
    "label_frequency_ratio": "Label frequency against that of the first group",
}


def rate_rows(audit: Audit) -> list[dict[str, Any]]:
    """One block per rate, with one interval per group."""
    return [
        {
            "name": RATE_NAMES[name],
            "meaning": RATE_MEANINGS[name],
            "tier": TIER_WORDS[next(iter(audit.rates.values()))[name].tier],
            "c_free": next(iter(audit.rates.values()))[name].tier == "c-free",
            "groups": [
                {"group": group_name(key), **_cell(rates[name])}
                for key, rates in audit.rates.items()
            ],
        }
        for name in RATES
    ]


def gap_rows(audit: Audit) -> list[dict[str, Any]]:
    """One row per gap, in percentage points."""
    return [
        {
            "name": RATE_NAMES[name],
            "tier": TIER_WORDS[gap.tier],
            "c_free": gap.tier == "c-free",
            "value": points(gap.estimate),
            "range": f"{points(gap.low)} to {points(gap.high)}",
            "reason": gap.reason or "",
            "settled": _settled(gap),
            **_strip(gap),
        }
        for name, gap in audit.gaps.items()
    ]


def _settled(gap: Estimate) -> str:
    if math.isnan(gap.estimate):
        return "unknown"
    return "a gap is shown" if gap.low > 0 else "not determined"


def _cell(value: Estimate) -> dict[str, Any]:
    return {
        "value": percent(value.estimate),
        "range": interval(value),
        "reason": value.reason or "",
        **_strip(value),
    }


def _strip(value: Estimate) -> dict[str, Any]:
    """Position of an interval on a line from 0 to 1, in percent of its length."""
    if any(math.isnan(end) for end in (value.estimate, value.low, value.high)):
        return {"drawn": False, "left": "0", "width": "0", "at": "0"}
    low, high = max(0.0, value.low), min(1.0, value.high)
    return {
        "drawn": True,
        "left": f"{100 * low:.2f}",
        "width": f"{100 * max(0.0, high - low):.2f}",
        "at": f"{100 * min(1.0, max(0.0, value.estimate)):.2f}",
    }


def break_evens(audit: Audit) -> list[dict[str, str]]:
    """How wrong an assumption must be before the finding flips."""
    found = audit.sensitivity
    rows = []
    for name, what in (
        ("labeling_bias", "Labeling bias in one group that would explain the gap"),
        ("labeling_bias_both", "Labeling bias in all groups, in opposite directions"),
    ):
        if name in found:
            value = found[name]
            rows.append(
                {
                    "what": what,
                    "value": f"{value.estimate:.2f} to 1",
                    "range": f"at least {value.low:.2f} to 1",
                    "reason": value.reason or "",
                }
            )
    for name, value in found.get("false_labels", {}).items():
        how = "whoever they are" if name == "least" else "selected as negatives are"
        rows.append(
            {
                "what": f"False labels in one group that would explain it, {how}",
                "value": percent(value.estimate),
                "range": f"at least {percent(min(value.low, value.estimate))}"
                if not math.isnan(value.low)
                else MISSING,
                "reason": value.reason or "",
            }
        )
    for key, value in found.get("fpr_flip", {}).items():
        rows.append(
            {
                "what": (
                    "Share of positives labeled in group "
                    f"{group_name(key)} at which false positive rates would be equal"
                ),
                "value": percent(value.estimate),
                "range": MISSING,
                "reason": value.reason or "",
            }
        )
    return rows


def assumptions(audit: Audit) -> list[dict[str, Any]]:
    """List the checks of what the numbers lean on, one block per check."""
    blocks = [
        {"name": name, "rows": _check_rows(audit.checks[key])}
        for key, name in _CHECK_NAMES.items()
        if key in audit.checks
    ]
    calibration = audit.checks.get("calibration", {})
    for part, name in (
        ("slope", "Calibration of the score against the labels: slope (1 is right)"),
        ("intercept", "Calibration: intercept (0 is right)"),
    ):
        rows = {key: value[part] for key, value in calibration.items() if part in value}
        if rows:
            blocks.append({"name": name, "rows": _check_rows(rows)})
    return blocks


def _check_rows(values: Mapping[Any, Estimate]) -> list[dict[str, str]]:
    return [
        {
            "group": group_name(key),
            "value": _plain(value.estimate),
            "range": MISSING
            if math.isnan(value.low) or math.isnan(value.high)
            else f"{_plain(value.low)} to {_plain(value.high)}",
            "reason": value.reason or "",
        }
        for key, value in values.items()
    ]


def _plain(value: float) -> str:
    if math.isnan(value):
        return MISSING
    return "under 0.001" if 0 < value < 0.001 else f"{value:.3f}"


def lottery(data: Exhibits) -> list[str]:
    """Say what a lottery means here and whom it touches."""
    rule = data.rule
    if rule is None:
        return []
    drawn = {key: share for key, share in rule.lottery_share.items() if share > 0}
    if not drawn:
        return [
            "This rule draws no lots: whoever reaches the threshold of their group is "
            "selected, and nobody else."
        ]
    text = [
        f"In group {group_name(key)}, {percent(share)} have scores between two "
        "thresholds. For them chance decides, with the same odds for the same score."
        for key, share in drawn.items()
    ]
    return [
        *text,
        "The draw of a row depends on its id and on a number stored in the rule, so it "
        "can be repeated and checked, and does not change from day to day.",
    ]


def rule_rows(data: Exhibits) -> list[dict[str, str]]:
    """One row per group: who is selected, and what to expect."""
    rule = data.rule
    if rule is None:
        return []
    return [
        {
            "group": group_name(key),
            "cut": "; ".join(cut_text(*cut, rule.bins) for cut in cuts),
            "tpr": percent(rule.realized[key]["tpr"].estimate),
            "tpr_range": interval(rule.realized[key]["tpr"]),
            "selected": percent(rule.realized[key]["selection_rate"].estimate),
            "selected_range": interval(rule.realized[key]["selection_rate"]),
        }
        for key, cuts in zip(rule.groups, rule.cuts, strict=True)
    ]
