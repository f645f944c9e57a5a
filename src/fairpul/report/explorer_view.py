"""The explorer on the page: its controls, its figure, and what it shows at first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from fairpul.report.charts import group_scales, styled
from fairpul.report.explorer import Explorer
from fairpul.report.words import MISSING

_NO_LIMIT = "no limit"
# Of the figure without the names of the groups; the page makes it fit the screen.
_WIDTH = 400


def explorer_view(explorer: Explorer, order: Sequence[str]) -> dict[str, Any]:
    """Lay out controls, data and first state of the explorer.

    ``data`` goes into the page as JSON: every state is looked up in it, by the
    positions of the controls.
    """
    controls = {
        "recall": [f"{value:.0%}" for value in explorer.wishes["recall"]],
        "capacity": [f"{value:.0%}" for value in explorer.wishes["capacity"]],
        "tolerance": [
            _NO_LIMIT if value == 1 else f"{100 * value:.0f} points"
            for value in explorer.tolerances
        ],
        "bias": [
            "none" if value == 1 else f"{value:g} to 1" for value in explorer.biases
        ],
    }
    start = {"recall": 4, "capacity": 4, "tolerance": 0, "bias": 0}
    return {
        "controls": controls,
        "start": start,
        "first": _first(explorer, f"recall|{start['recall']}|{start['tolerance']}"),
        "data": {
            "groups": list(explorer.groups),
            "controls": controls,
            "cells": explorer.cells,
            "spec": styled(_figure(order)),
        },
    }


def _first(explorer: Explorer, key: str) -> list[dict[str, str]]:
    """Rows of the table before anybody moves a control."""
    cell = explorer.cells[key]
    return [
        {
            "group": name,
            "cut": group["cut"],
            "tpr": _range(group["tpr"]),
            "selected": _range(group["selected"]),
        }
        for name, group in zip(explorer.groups, cell["groups"], strict=True)
    ]


def _range(ends: Sequence[float | None]) -> str:
    if any(value is None for value in ends):
        return MISSING
    middle, low, high = (100 * float(value or 0) for value in ends)
    return f"{middle:.1f}% ({low:.1f} to {high:.1f})"


def _figure(order: Sequence[str]) -> Any:
    """Intervals of both rates by group; the page fills in the rows."""
    scale = group_scales(order)
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title=None, format=".0%", grid=True),
    )
    y = alt.Y(
        "group:N",
        sort=list(order),
        axis=alt.Axis(
            title=None, domain=False, ticks=False, labelLimit=120, labelPadding=8
        ),
    )
    color = alt.Color("group:N", scale=scale["color"], legend=None)
    base = alt.Chart().encode(y=y, color=color)
    layers = alt.layer(
        base.mark_rule(strokeWidth=2, strokeDash=[2, 3]).encode(
            x=alt.X("wide_low:Q", title=None), x2="wide_high:Q"
        ),
        base.mark_rule(strokeWidth=4).encode(x="low:Q", x2="high:Q"),
        base.mark_point(size=120, filled=True, opacity=1).encode(
            x=x, shape=alt.Shape("group:N", scale=scale["shape"], legend=None)
        ),
        data=alt.NamedData(name="rows"),
    ).properties(width=_WIDTH, height={"step": 34})
    return layers.facet(
        row=alt.Row(
            "measure:N",
            sort=["True positive rate", "Share selected"],
            header=alt.Header(
                title=None,
                orient="top",
                labelAnchor="start",
                labelColor="var(--ink)",
                labelFontSize=13,
            ),
        )
    )
