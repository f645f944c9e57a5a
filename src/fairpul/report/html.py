"""The page: one self-contained HTML text made of numbers that were computed before.

It loads nothing: styles, figures and the scripts of the explorer are inside, and a
content security policy forbids the rest. All text is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairpul.audit import Audit
from fairpul.findings import extremes, group_name
from fairpul.report import charts
from fairpul.report.exhibits import Exhibits
from fairpul.report.explorer import Explorer
from fairpul.report.explorer_view import explorer_view
from fairpul.report.tables import (
    assumptions,
    break_evens,
    frontier_words,
    gap_rows,
    lottery,
    rate_rows,
    rule_rows,
)
from fairpul.report.words import (
    headline,
    hundredths,
    percent,
    points,
    points_interval,
    sentences,
)

_TITLE = "An audit of decisions by group"
_LIBRARIES = ("fairpul", "numpy", "scipy", "scikit-learn", "altair")


def to_html(
    data: Exhibits,
    *,
    title: str | None = None,
    date: str | None = None,
    source: str | None = None,
    fingerprint: str | None = None,
) -> str:
    """Write the page; the same arguments and library versions give the same bytes.

    Parameters
    ----------
    data : Exhibits
        As :func:`fairpul.report.exhibits.exhibits` returns them.
    title, date, source : str, optional
        Printed as they are; what is not given is left out.
    fingerprint : str, optional
        SHA-256 of the files; default: that of the audited rows.

    Returns
    -------
    str
        HTML without any reference to another file or address.
    """
    audit = data.audit
    names = [group_name(key) for key in audit.rates]
    page = _environment().get_template("page.html.j2")
    return page.render(
        title=title or _TITLE,
        headline=headline(audit),
        sentences=sentences(audit),
        hundreds=_hundreds(audit),
        warnings=audit.warnings,
        level=f"{audit.level:.0%}",
        date=date,
        source=source,
        fingerprint=fingerprint or data.fingerprint,
        sizes=[
            (group_name(key), f"{n:,}", f"{m:,}") for key, (n, m) in data.sizes.items()
        ],
        several=len(audit.rates) > 1,
        names=names,
        rates=rate_rows(audit),
        gaps=gap_rows(audit),
        figures=_figures(data),
        explorer=data.explorer and _explorer(data.explorer, names),
        selected=percent(data.selected),
        gap_now=points_interval(audit.gaps["tpr"]),
        frontier_words=frontier_words(data) if data.frontier else None,
        break_evens=break_evens(audit),
        assumptions=assumptions(audit),
        lottery=lottery(data),
        rule=rule_rows(data),
        rule_audited=data.rule_audited,
        rule_json=None if data.rule is None else data.rule.to_json(),
        versions=[(name, version(name)) for name in _LIBRARIES],
        swatches=_swatches(len(audit.rates)),
    )


def _hundreds(audit: Audit) -> list[tuple[int, str, int, Markup]]:
    """Draw the headline: of 100 positives, how many are found in the extreme groups."""
    pair = extremes(audit.rates, "tpr")
    if pair is None or audit.gaps["tpr"].low <= 0:
        return []
    drawn = []
    for key in reversed(pair):
        found = hundredths(audit.rates[key]["tpr"])
        number = list(audit.rates).index(key)
        drawn.append((number, group_name(key), found, Markup(charts.hundred(found))))
    return drawn


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("fairpul.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _figures(data: Exhibits) -> dict[str, Any]:
    """Figures by name; None where there are no numbers."""
    figures: dict[str, Any] = dict.fromkeys(
        ("curves", "scores", "frontier", "frontier_rows", "hidden_gap")
    )
    if data.curves:
        figures["curves"] = _drawn(charts.operating_curves(data))
        figures["scores"] = [
            (group_name(key), _drawn(charts.score_distribution(data, key)))
            for key in data.distributions
        ]
    if len(data.frontier) > 1:
        figures["frontier"] = _drawn(charts.frontier_curve(data))
        figures["frontier_rows"] = [
            (points(row["gap"]), percent(row["recall"]))
            for row in data.frontier[:: max(1, len(data.frontier) // 5)]
        ]
    if extremes(data.audit.rates, "tpr") is not None:
        figures["hidden_gap"] = _drawn(charts.hidden_gap_band(data))
    return figures


def _drawn(chart: Any) -> Markup:
    return Markup(charts.to_svg(chart))


def _explorer(explorer: Explorer, names: Sequence[str]) -> dict[str, Any]:
    view = explorer_view(explorer, names)
    return view | {
        "json": Markup(_script_json(view["data"])),
        "libraries": Markup(_libraries()),
    }


def _libraries() -> str:
    """Vega, Vega-Lite and its embedder, to go into a script element."""
    bundle: Any = vl_convert.javascript_bundle  # typed as if it needed a snippet
    # A closing tag inside one of its strings would end the script.
    return str(bundle()).replace("</script", "<\\/script")


def _script_json(value: Any) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _swatches(n_groups: int) -> list[str]:
    """Class of each group's color and shape."""
    return [f"g{number % charts.N_COLORS}" for number in range(n_groups)]
