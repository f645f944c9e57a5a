"""Figures of the page as SVG text: colors are variables of the page's style sheet.

So light, dark and print need one drawing. Groups differ by color, by lightness, by dash
and by shape: the figures stay legible in gray.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import altair as alt
import vl_convert

from fairpul.binning import least_score
from fairpul.findings import group_name
from fairpul.report.exhibits import Curve, Exhibits

#: Variables of the style sheet, repeated after the last.
N_COLORS = 6
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
DASHES = ((1, 0), (7, 3), (2, 2), (8, 2, 2, 2), (4, 4), (10, 4))

_WIDTH, _HEIGHT = 330, 230


def group_scales(names: Sequence[str]) -> dict[str, Any]:
    """Color, dash and shape of each group, as scales of Vega-Lite."""
    order = list(names)
    return {
        "color": alt.Scale(
            domain=order,
            range=[f"var(--group-{i % N_COLORS})" for i in range(len(order))],
        ),
        "dash": alt.Scale(
            domain=order,
            range=[list(DASHES[i % len(DASHES)]) for i in range(len(order))],
        ),
        "shape": alt.Scale(
            domain=order, range=[SHAPES[i % len(SHAPES)] for i in range(len(order))]
        ),
    }


def styled(chart: Any) -> dict[str, Any]:
    """Specification of a chart in the look of the page."""
    ink, soft, line = "var(--ink)", "var(--soft)", "var(--line)"
    spec: dict[str, Any] = chart.to_dict()
    spec["background"] = "transparent"
    spec["config"] = {
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": soft,
            "titleColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "domainColor": line,
            "tickColor": line,
            "gridColor": line,
            "gridOpacity": 0.6,
            "tickCount": 5,
            "labelPadding": 5,
            "labelFlush": False,
        },
        "text": {"color": ink, "fontSize": 12},
    }
    return spec


def to_svg(chart: Any) -> str:
    """SVG text of a chart, sized by the page and hidden from screen readers.

    The figure around it carries the description, and a table the numbers.
    """
    svg: str = vl_convert.vegalite_to_svg(styled(chart))
    head, _, rest = svg.partition(">")
    viewbox = head.split('viewBox="')[1].split('"')[0]
    width = viewbox.split()[2]
    body = rest.replace(' role="graphics-document"', "")
    return (
        f'<svg viewBox="{viewbox}" style="max-width:{width}px" aria-hidden="true" '
        f'focusable="false">{body}'
    )


def hundred(found: int) -> str:
    """SVG text of ten rows of ten dots, so many of them of the class ``found``."""
    dots = [f"M{10 * (i % 10) + 5} {10 * (i // 10) + 5}h0" for i in range(100)]
    found_path, rest = "".join(dots[:found]), "".join(dots[found:])
    return (
        '<svg viewBox="0 0 100 100" focusable="false">'
        f'<path class="found" d="{found_path}"/><path d="{rest}"/></svg>'
    )


def operating_curves(data: Exhibits) -> Any:
    """Recall against selection rate by group, with the points that were chosen."""
    names = [group_name(key) for key in data.curves]
    scale = group_scales(names)
    rows = [row for key, curve in data.curves.items() for row in _curve(key, curve)]
    lines = (
        _chart(rows)
        .mark_line(strokeWidth=2, interpolate="linear")
        .encode(
            x=_share(alt.X, "q:Q", "Share of the group selected"),
            y=_share(alt.Y, "t:Q", "True positive rate"),
            color=alt.Color("group:N", scale=scale["color"], legend=None),
            strokeDash=alt.StrokeDash("group:N", scale=scale["dash"], legend=None),
            order="at:Q",
        )
    )
    return (lines + _chosen(data, scale)).properties(width=_WIDTH, height=_HEIGHT)


def _curve(key: Any, curve: Curve) -> list[dict[str, Any]]:
    return [
        {"group": group_name(key), "q": round(q, 4), "t": round(t, 4), "at": at}
        for at, (q, t) in enumerate(
            zip(curve.selection_rate.tolist(), curve.tpr.tolist(), strict=True)
        )
    ]


def _chosen(data: Exhibits, scale: Mapping[str, Any]) -> Any:
    """Draw filled marks for the audited decisions, hollow ones for another rule."""
    rows = [_point(key, rates, "audited") for key, rates in data.audit.rates.items()]
    if data.rule is not None and not data.rule_audited:
        rows += [
            _point(key, data.rule.realized[key], "rule") for key in data.rule.groups
        ]
    marks = _chart(rows).mark_point(size=110, strokeWidth=2, opacity=1)
    return marks.encode(
        x=alt.X("q:Q"),
        y=alt.Y("t:Q"),
        shape=alt.Shape("group:N", scale=scale["shape"], legend=None),
        stroke=alt.Stroke("group:N", scale=scale["color"], legend=None),
        fill=alt.condition(
            "datum.kind === 'rule'", alt.value("var(--paper)"), _fill(scale)
        ),
    )


def _fill(scale: Mapping[str, Any]) -> Any:
    return alt.Fill("group:N", scale=scale["color"], legend=None)


def _point(key: Any, rates: Any, kind: str) -> dict[str, Any]:
    return {
        "group": group_name(key),
        "q": rates["selection_rate"].estimate,
        "t": rates["tpr"].estimate,
        "kind": kind,
    }


def score_distribution(data: Exhibits, key: Hashable) -> Any:
    """Histogram of a group's scores: everybody as bars, the labeled as a line.

    With the threshold of the audited decisions, and dashed that of another rule.
    """
    color = f"var(--group-{list(data.distributions).index(key) % N_COLORS})"
    values = data.distributions[key]
    edges = values.edges.tolist()
    rows = [
        {"from": a, "to": b, "rows": r, "labeled": m}
        for a, b, r, m in zip(
            edges,
            edges[1:],
            values.rows.tolist(),
            values.labeled.tolist(),
            strict=False,
        )
    ]
    # A step goes on to the end of its bin, so the last one needs a second point.
    steps = [*rows, {**rows[-1], "from": edges[-1]}]
    base = _chart(rows)
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="Score", format=".1f", grid=True),
    )
    everybody = base.mark_bar(color=color, opacity=0.35).encode(
        x=x,
        x2="to:Q",
        y=_share(alt.Y, "rows:Q", "Share of rows", domain=None),
        y2=alt.datum(0),
    )
    labeled = (
        _chart(steps)
        .mark_line(color=color, strokeWidth=2.2, interpolate="step-after")
        .encode(x=x, y=alt.Y("labeled:Q"))
    )
    layers = [everybody, labeled]
    if key in data.cuts:
        layers.append(_threshold(data.cuts[key], [1, 0]))
    if data.rule is not None and not data.rule_audited:
        cuts = dict(zip(data.rule.groups, data.rule.cuts, strict=True))[key]
        layers += [
            _threshold(least_score(cut, data.rule.bins), [4, 3])
            for cut, _ in cuts
            if not math.isinf(cut)
        ]
    return alt.layer(*layers).properties(width=_WIDTH, height=130)


def _threshold(cut: float, dash: list[int]) -> Any:
    return (
        _chart([{"cut": cut}])
        .mark_rule(color="var(--ink)", strokeWidth=1.6, strokeDash=dash)
        .encode(x="cut:Q")
    )


def frontier_curve(data: Exhibits) -> Any:
    """Recall overall against the TPR gap, with the audited decisions as a mark."""
    rows = data.frontier
    now = {"gap": data.audit.gaps["tpr"].estimate, "recall": data.recall}
    recalls = [row["recall"] for row in (*rows, now)]
    spread = max(0.02, max(recalls) - min(recalls))
    low = max(0.0, min(recalls) - spread)
    high = min(1.0, max(recalls) + spread)
    line = _chart(rows).mark_line(
        color="var(--accent)",
        strokeWidth=2.2,
        point=alt.OverlayMarkDef(color="var(--accent)", size=28),
    )
    x = _share(alt.X, "gap:Q", "Gap in true positive rates", domain=None)
    y = _share(alt.Y, "recall:Q", "Recall overall", domain=(low, high))
    here = _chart([now]).encode(x=x, y=y)
    layers = [
        line.encode(x=x, y=y),
        here.mark_point(
            color="var(--ink)", filled=True, opacity=1, size=90, shape="diamond"
        ),
        here.mark_text(dy=16, align="center").encode(text=alt.value("now")),
    ]
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)


def hidden_gap_band(data: Exhibits) -> Any:
    """Range of the true gap by the labeling bias that is granted."""
    gap = data.audit.gaps["tpr"]
    hidden = data.audit.sensitivity["hidden_gap"]
    rows = [{"bias": 1.0, "low": gap.low, "high": gap.high}] + [
        {"bias": float(bias), "low": value.low, "high": value.high}
        for bias, value in hidden.items()
    ]
    base = _chart(rows)
    x = alt.X(
        "bias:Q",
        scale=alt.Scale(type="log", domain=[1, rows[-1]["bias"]]),
        axis=alt.Axis(
            title="Labeling bias granted in every group, to 1",
            values=[row["bias"] for row in rows],
            tickCount=len(rows),  # with fewer, some of the values would be left out
            format="~g",
            labelOverlap=False,
        ),
    )
    band = base.mark_area(color="var(--accent)", opacity=0.22).encode(
        x=x, y=_share(alt.Y, "low:Q", "Gap in true positive rates"), y2="high:Q"
    )
    edges = [
        base.mark_line(color="var(--accent)", strokeWidth=1.6).encode(x=x, y=end)
        for end in ("low:Q", "high:Q")
    ]
    middle = (
        _chart([{"gap": gap.estimate}])
        .mark_rule(color="var(--ink)", strokeDash=[4, 3])
        .encode(y="gap:Q")
    )
    return alt.layer(band, *edges, middle).properties(width=_WIDTH, height=_HEIGHT)


def _chart(rows: list[dict[str, Any]]) -> Any:
    """Start a chart of inline rows."""
    inline: Any = alt.Data  # whose signature altair leaves untyped
    return alt.Chart(inline(values=rows))


def _share(
    channel: Any,
    field: str,
    title: str,
    domain: tuple[float, float] | None = (0.0, 1.0),
) -> Any:
    """Axis of shares, in percent."""
    scale = alt.Scale(zero=True) if domain is None else alt.Scale(domain=list(domain))
    return channel(
        field, scale=scale, axis=alt.Axis(title=title, format=".0%", grid=True)
    )
