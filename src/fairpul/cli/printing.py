"""Results on the terminal: finding first, then the numbers."""

from __future__ import annotations

import math
from pathlib import Path

from fairpul import DecisionRule, GroupCounts
from fairpul.audit import Audit
from fairpul.cli.console import say, show, show_table
from fairpul.estimate import Estimate
from fairpul.findings import group_name
from fairpul.measures import RATES
from fairpul.report.text import HEADINGS
from fairpul.report.words import (
    cuts_text,
    headline,
    interval,
    percent,
    points,
    sentences,
)


def print_audit(audit: Audit) -> None:
    """Print the finding, the table of rates and gaps, and what to bear in mind."""
    show(headline(audit), style="bold")
    for sentence in sentences(audit):
        show(sentence)
    show("")
    rows = [
        [group_name(key), *(_cell(audit.rates[key][name]) for name in RATES)]
        for key in audit.rates
    ]
    if len(audit.rates) > 1:
        gaps = audit.gaps
        rows.append(
            ["gap, points", *(_gap(gaps[n]) if n in gaps else "" for n in RATES)]
        )
    show_table(["Group", *(HEADINGS[name] for name in RATES)], rows)
    for warning in audit.warnings:
        say(f"note: {warning}", style="yellow")


def print_rule(rule: DecisionRule) -> None:
    """Print the cuts of a rule and what to expect of it."""
    rows = []
    for key, cuts in zip(rule.groups, rule.cuts, strict=True):
        rates = rule.realized[key]
        rows.append(
            [
                group_name(key),
                cuts_text(cuts, rule.bins),
                _cell(rates["tpr"]),
                _cell(rates["selection_rate"]),
            ]
        )
    show_table(["Group", "Accept", HEADINGS["tpr"], HEADINGS["selection_rate"]], rows)
    if len(rule.groups) > 1:
        gap = rule.realized.gaps["tpr"]
        show(
            f"TPR gap {_gap(gap)} points on these rows, on which the rule was tuned: "
            "audit it on rows of its own."
        )
    drawn = {key: share for key, share in rule.lottery_share.items() if share > 0}
    for key, share in drawn.items():
        show(f"A lottery decides on {percent(share)} of group {group_name(key)}.")


def print_counts(counts: GroupCounts, out: Path) -> None:
    """Print the size of a table of counts and where it is."""
    n, labeled = counts.sums[:, :2].sum(axis=0).tolist()
    groups = ", ".join(map(group_name, counts.groups))
    show(f"{n:,} rows, {labeled:,} labeled, groups {groups}: {out}")


def _cell(value: Estimate) -> str:
    if math.isnan(value.estimate):
        return "-"
    return f"{percent(value.estimate)} ({interval(value)})"


def _gap(value: Estimate) -> str:
    if math.isnan(value.estimate):
        return "-"
    return f"{points(value.estimate)} ({points(value.low)} to {points(value.high)})"
