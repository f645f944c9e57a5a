"""An audit as Markdown, as plain text and as a table in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from fairpul.estimate import TIERS, Estimate
from fairpul.findings import readable_names
from fairpul.measures import RATES
from fairpul.notebook import html_notes, html_table, text_notes, text_table
from fairpul.rates import GAPS
from fairpul.report.words import headline, sentences

if TYPE_CHECKING:
    from fairpul.audit import Audit

#: Headings of the rates.
HEADINGS = {
    "tpr": "TPR",
    "fpr": "FPR",
    "selection_rate": "Selection rate",
    "ppv": "PPV",
    "prevalence": "Prevalence",
}


def to_text(audit: Audit) -> str:
    """Rates, gaps, tiers and warnings in plain columns."""
    table = text_table(_table(audit), rule=True)
    return "\n".join([table, *text_notes(audit.warnings)])


def to_markdown(audit: Audit) -> str:
    """Write the finding, rates with tiers, assumptions, sensitivity and checks."""
    parts = [
        "## Finding",
        " ".join([headline(audit), *sentences(audit)]),
        "## Rates",
        _markdown_table(_table(audit)),
        _footnote(audit),
        *_assumptions(audit),
    ]
    if audit.sensitivity:
        rows = [["What", "value", "meaning"]]
        rows += [[name, *_cells(leaf)] for name, leaf in leaves(audit.sensitivity)]
        parts += ["## Sensitivity", _markdown_table(rows)]
    rows = [["Check", "value", "meaning"]]
    rows += [[name, *_cells(leaf)] for name, leaf in leaves(audit.checks)]
    parts += ["## Checks", _markdown_table(rows)]
    if audit.warnings:
        parts += ["## Warnings", "\n".join(f"* {text}" for text in audit.warnings)]
    return "\n\n".join(parts) + "\n"


def to_html_table(audit: Audit) -> str:
    """Rates, gaps and warnings as a bare HTML table and list, escaped."""
    table = html_table(headline(audit), _table(audit))
    return f"{table}<p>{escape(_footnote(audit))}</p>{html_notes(audit.warnings)}"


def leaves(tree: Mapping[Any, Any], path: str = "") -> list[tuple[str, Estimate]]:
    """Estimates of a nested mapping with their paths, such as ``plateau f``."""
    names = readable_names(tuple(tree))
    found: list[tuple[str, Estimate]] = []
    for key, value in tree.items():
        here = f"{path} {names[key]}".strip().replace("_", " ")
        if isinstance(value, Estimate):
            found.append((here, value))
        else:
            found += leaves(value, here)
    return found


def _table(audit: Audit) -> list[list[str]]:
    names = readable_names(tuple(audit.rates))
    rows = [["Group", *(HEADINGS[name] for name in RATES)]]
    for key, name in names.items():
        rows.append([name, *(_number(audit.rates[key][rate]) for rate in RATES)])
    if len(names) > 1:
        gaps = [_number(audit.gaps[r]) if r in GAPS else "" for r in RATES]
        rows.append(["gap", *gaps])
    rows.append(["tier", *(_tier(audit, name) for name in RATES)])
    return rows


def _tier(audit: Audit, name: str) -> str:
    """Tier of a rate; where groups differ, the one that leans on most."""
    return max((of[name].tier for of in audit.rates.values()), key=TIERS.index)


def _footnote(audit: Audit) -> str:
    who = "everybody" if audit.population == "all" else "rows without a label"
    return (
        f"Intervals of {audit.level:.0%}. Selection rate, PPV and prevalence are of "
        f"{who}. TPR and selection rate need no label frequency; FPR, PPV and "
        "prevalence do, and an interval in braces runs over all that are possible."
    )


def _assumptions(audit: Audit) -> list[str]:
    """Tier and reason of each rate that has one, once."""
    names = readable_names(tuple(audit.rates))
    lines = [
        f"* {names[key]}: FPR, PPV and prevalence need the {rate.tier}: {rate.reason}"
        for key in audit.rates
        for rate in [audit.rates[key]["fpr"]]
        if rate.reason
    ]
    lines += [
        f"* gap in {HEADINGS[name]}: {audit.gaps[name].reason}"
        for name in GAPS
        if audit.gaps[name].reason
    ]
    return ["\n".join(lines)] if lines else []


def _number(value: Estimate) -> str:
    """Estimate with its interval, in braces where that is more than sampling error."""
    if math.isnan(value.estimate):
        return "not determined"
    over_range = value.reason is not None and value.reason.startswith("over ")
    left, right = "{}" if over_range else "[]"
    return f"{value.estimate:.3f} {left}{value.low:.3f}, {value.high:.3f}{right}"


def _cells(value: Estimate) -> list[str]:
    if math.isnan(value.estimate):
        number = "not determined"
    elif math.isnan(value.low) or math.isnan(value.high):
        number = f"{value.estimate:.3g}"
    else:
        number = f"{value.estimate:.3g} [{value.low:.3g}, {value.high:.3g}]"
    return [number, value.reason or ""]


def _markdown_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
