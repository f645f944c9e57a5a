"""Rows of the page's tables: numbers as text, positions of intervals in percent."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

from fairpul.audit import Audit
from fairpul.cautions import SURPRISE
from fairpul.estimate import Estimate
from fairpul.findings import extremes, group_name
from fairpul.measures import RATES
from fairpul.report.exhibits import Exhibits
from fairpul.report.words import (
    MISSING,
    MIXED_TIERS,
    RATE_MEANINGS,
    RATE_NAMES,
    TIER_WORDS,
    cuts_text,
    fpr_tiers,
    interval,
    percent,
    points,
)


def rate_rows(audit: Audit) -> list[dict[str, Any]]:
    """One block per rate, with one interval per group."""
    return [
        {
            "name": RATE_NAMES[name],
            "meaning": RATE_MEANINGS[name],
            **_tier({rates[name].tier for rates in audit.rates.values()}),
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
            **_tier(set(fpr_tiers(audit)) if name == "fpr" else {gap.tier}),
            "value": points(gap.estimate),
            "range": f"{points(gap.low)} to {points(gap.high)}",
            "reason": gap.reason or "",
            "settled": _settled(gap),
            **_strip(gap),
        }
        for name, gap in audit.gaps.items()
    ]


def _tier(tiers: set[str]) -> dict[str, Any]:
    """Say what a rate leans on in the groups."""
    words = TIER_WORDS[min(tiers)] if len(tiers) == 1 else MIXED_TIERS
    return {"tier": words, "c_free": tiers == {"c-free"}}


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
    """How wrong an assumption must be before a finding flips."""
    return [*_labeling_bias(audit), *_false_labels(audit), *_fpr_flips(audit)]


def _settled_gap(audit: Audit) -> tuple[Hashable, Hashable] | None:
    """Name the groups with the highest and the lowest TPR, if a gap is shown."""
    return extremes(audit.rates, "tpr") if audit.gaps["tpr"].low > 0 else None


def _labeling_bias(audit: Audit) -> Iterator[dict[str, str]]:
    pair = _settled_gap(audit)
    if pair is None:
        return
    high, low = map(group_name, pair)
    for name, groups, note in (
        (
            "labeling_bias",
            "one group",
            f"In group {high}, selected positives would be labeled this many times as "
            f"readily, in odds, as the others; in group {low}, all alike.",
        ),
        (
            "labeling_bias_both",
            "two groups",
            f"In group {high}, labels would favor the selected positives this much; in "
            f"group {low}, the others.",
        ),
    ):
        bias = audit.sensitivity[name]
        yield {
            "what": f"No gap in recall: labels are biased in {groups}",
            "note": note,
            "value": f"{bias.estimate:.2f} to 1",
            "range": f"at least {bias.low:.2f} to 1",
        }


def _false_labels(audit: Audit) -> Iterator[dict[str, str]]:
    pair = _settled_gap(audit)
    if pair is None:
        return
    notes = {
        "least": "This share of the labeled rows of one group would not be positive "
        "at all, whoever they are.",
        "at_fpr": f"The same in group {group_name(pair[1])}, if false labels are "
        "selected as rarely as its negatives.",
    }
    for name, value in audit.sensitivity["false_labels"].items():
        at_least = percent(min(value.low, value.estimate))
        yield {
            "what": "No gap in recall: some labels are false",
            "note": notes[name],
            "value": percent(value.estimate),
            "range": MISSING if math.isnan(value.low) else f"at least {at_least}",
        }


def _fpr_flips(audit: Audit) -> Iterator[dict[str, str]]:
    pair = extremes(audit.rates, "fpr")
    if pair is None:
        return
    for key, flip in audit.sensitivity["fpr_flip"].items():
        other = pair[1] if key == pair[0] else pair[0]
        allowed = interval(audit.checks["label_frequency"][key])
        yield {
            "what": "No gap in false positive rates",
            "note": f"This share of the positives of group {group_name(key)} would be "
            f"labeled, the false positive rate of group {group_name(other)} being as "
            "estimated.",
            "value": percent(flip.estimate),
            "range": f"possible: {allowed}",
        }


def assumptions(audit: Audit) -> list[dict[str, Any]]:
    """List the checks of what the numbers lean on, one block per check."""
    blocks = []
    for name, question, row in (
        ("label_frequency", "Which share of the positives is labeled?", _share),
        ("plateau", "Does the labeled share level off at the top?", _plateau),
        ("calibration", "Does the score say how likely a label is?", _calibration),
        ("source", "Are labels from different sources alike?", _source),
        ("label_frequency_ratio", "Share labeled, by that of the first group", _ratio),
    ):
        found = audit.checks.get(name, {})
        rows = [
            {"group": group_name(key), **row(audit, key)}
            for key in audit.rates
            if key in found
        ]
        if rows:
            blocks.append({"name": question, "rows": rows})
    return blocks


def _share(audit: Audit, key: Hashable) -> dict[str, str]:
    known = audit.checks["label_frequency"][key]
    least = audit.checks["label_frequency_bound"][key]
    note = f"The data allow {interval(least)}."
    if (known.low, known.high) != (least.low, least.high):
        note += f" Taken as possible: {interval(known)}."
    return {"value": percent(known.estimate), "note": note}


def _plateau(audit: Audit, key: Hashable) -> dict[str, str]:
    return _test(audit.checks["plateau"][key], "no rise is seen", "no, it still rises")


def _source(audit: Audit, key: Hashable) -> dict[str, str]:
    return _test(audit.checks["source"][key], "no difference is seen", "they differ")


def _test(p_value: Estimate, kept: str, rejected: str) -> dict[str, str]:
    """Verdict of a test in words."""
    reason = p_value.reason or ""
    if math.isnan(p_value.estimate):
        return {"value": "cannot be told", "note": reason}
    verdict = rejected if p_value.estimate < SURPRISE else kept
    reason = reason.removeprefix("p-value of a rise: ")
    return {"value": verdict, "note": f"{reason}; p = {_number(p_value.estimate)}"}


def _calibration(audit: Audit, key: Hashable) -> dict[str, str]:
    found = audit.checks["calibration"][key]
    parts = [
        (name, found[name], right) for name, right in (("slope", 1), ("intercept", 0))
    ]
    calibrated = all(value.low <= right <= value.high for _, value, right in parts)
    note = "; ".join(
        f"{name} {_with_ends(value)}, right is {right}" for name, value, right in parts
    )
    return {"value": "as far as seen" if calibrated else "no", "note": note}


def _ratio(audit: Audit, key: Hashable) -> dict[str, str]:
    found = audit.checks["label_frequency_ratio"][key]
    return {"value": _with_ends(found), "note": found.reason or ""}


def _with_ends(value: Estimate) -> str:
    if math.isnan(value.low) or math.isnan(value.high):
        return _number(value.estimate)
    ends = f"{_number(value.low)} to {_number(value.high)}"
    return f"{_number(value.estimate)} ({ends})"


def _number(value: float) -> str:
    if math.isnan(value):
        return MISSING
    return "under 0.001" if 0 < value < 0.001 else f"{value:.3g}"


def frontier_words(data: Exhibits) -> str:
    """Write what the audited decisions and the rule without a gap find overall."""
    least = min(data.frontier, key=lambda row: row["gap"])
    return (
        f"Now {percent(data.recall)} of all positives are found, with a gap of "
        f"{points(data.audit.gaps['tpr'].estimate)} points between the groups. With as "
        f"many selected and a gap of {points(least['gap'])}, the best rule finds "
        f"{percent(least['recall'])}."
    )


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
        f"In group {group_name(key)}, chance decides about {percent(share)}, with the "
        "same odds for the same score."
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
            "cut": cuts_text(cuts, rule.bins),
            "tpr": percent(rule.realized[key]["tpr"].estimate),
            "tpr_range": interval(rule.realized[key]["tpr"]),
            "selected": percent(rule.realized[key]["selection_rate"].estimate),
            "selected_range": interval(rule.realized[key]["selection_rate"]),
        }
        for key, cuts in zip(rule.groups, rule.cuts, strict=True)
    ]
