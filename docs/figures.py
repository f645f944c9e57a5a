"""Figures of the pages, drawn from the library at each build."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fairpul import GroupScores, RecallFloor, audit, fit_rule
from fairpul.datasets import make_underdiagnosed
from fairpul.label_frequency import LabelFrequencyWarning
from fairpul.metrics import pu_group_rates
from fairpul.plotting._style import MUTED, RATE_NAMES, style, tidy

FOLDER = Path(__file__).parent / "_generated"
#: Committed, for the README shows it too.
FRONT = Path(__file__).parent / "_static" / "front.svg"
THRESHOLD = 0.1
# From what labels alone show to what they do not.
ORDER = ("tpr", "selection_rate", "fpr", "ppv", "prevalence")
COLUMNS = (
    "Labels alone",
    "+ an anchor",
    "+ a prior that you trust",
)


def draw_all() -> None:
    """Draw every figure into the folder that pages read."""
    FOLDER.mkdir(exist_ok=True)
    # The same bytes at each build.
    with mpl.rc_context({"svg.hashsalt": "fairpul"}):
        draw_front().savefig(FRONT, metadata={"Date": None})
    draw_tiers().savefig(FOLDER / "tiers.svg")


def draw_front():
    """Draw recall under one threshold, and under a recall floor."""
    groups, floor = ("women", "men"), 0.8
    data = make_underdiagnosed(8000, groups=groups, random_state=0)
    scores = GroupScores(data.score, data.labeled, data.group)
    rule = fit_rule(scores, objective=RecallFloor(floor))
    new = make_underdiagnosed(8000, groups=groups, random_state=1)
    rows = {"labeled": new.labeled, "group": new.group, "score": new.score}
    share = rule.decide(new.score, new.group).mean()
    reports = (
        ("One threshold for all", audit(**rows, capacity=share)),
        (
            f"As many selected, {floor:.0%} in each group",
            audit(**rows, rule=rule),
        ),
    )
    figure = Figure(figsize=(8.4, 2.2), layout="constrained")
    figure.get_layout_engine().set(wspace=0.06, h_pad=0.08)
    panels = figure.subplots(1, 2, sharey=True)
    for ax, (title, report) in zip(panels, reports, strict=True):
        for number, key in enumerate(groups):
            tpr, look = report.rates[key]["tpr"], style(number)
            ax.hlines(-number, tpr.low, tpr.high, color=look.color, lw=9, alpha=0.35)
            ax.plot(tpr.estimate, -number, look.marker, color=look.color, ms=8)
            found = (new.group == key) & (new.y_true == 1)
            truth = report.evidence.acceptance[found].mean()
            ax.plot(truth, -number, "|", color="black", ms=17, mew=1.8)
            ax.annotate(
                f"{tpr.estimate:.0%}",
                (tpr.estimate, -number),
                xytext=(0, 11),
                textcoords="offset points",
                ha="center",
                color=look.color,
                fontweight="bold",
            )
        tidy(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(left=False)
        ax.grid(axis="y", visible=False)
        ax.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=10)
        ax.xaxis.set_major_formatter(PercentFormatter(1))
        ax.set(xlim=(0.5, 1), ylim=(-1.4, 0.6), xlabel="of the diseased, found")
    panels[1].axvline(floor, color=MUTED, lw=1, ls=(0, (4, 3)), zorder=0)
    panels[0].set_yticks([0, -1], labels=groups, fontsize=11)
    return figure


def draw_tiers():
    """Draw what is known of each rate, from left to right with more assumptions."""
    data, known = make_underdiagnosed(8000, random_state=3), rates_by_tier()
    names, groups = ORDER, ("f", "m")
    truth = true_rates(data)
    figure = Figure(figsize=(8.4, 4.8), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for ax, title, rates in zip(panels, COLUMNS, known, strict=True):
        for row, name in enumerate(names):
            for number, key in enumerate(groups):
                height = -row - 0.16 + 0.32 * (1 - number)
                draw_known(ax, rates[key][name], height, number)
                ax.plot(
                    truth[key][name],
                    height,
                    marker="|",
                    markersize=11,
                    markeredgewidth=1.6,
                    color="black",
                    zorder=5,
                )
        tidy(ax)
        ax.grid(axis="y", visible=False)
        ax.set_title(title, loc="left", fontsize=10)
        ax.set(xlim=(-0.02, 1.02), xlabel="rate", xticks=(0, 0.5, 1))
        ax.axhline(-1.5, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))

    labels = [RATE_NAMES[name] for name in ORDER]
    panels[0].set_yticks([-row for row in range(len(ORDER))], labels=labels)
    panels[0].annotate(
        "needs no label frequency", (0.98, -1.42), ha="right", fontsize=8
    )
    panels[0].annotate(
        "needs it", (0.98, -1.58), ha="right", va="top", fontsize=8, color=MUTED
    )
    handles = [
        panels[0].plot([], [], color=look.color, marker=look.marker, lw=5, alpha=0.6)[0]
        for look in map(style, range(2))
    ]
    handles.append(panels[0].plot([], [], "|", color="black", ms=11, mew=1.6)[0])
    figure.legend(
        handles,
        ["group f", "group m", "truth (simulated)"],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return figure


def draw_known(ax, value, height, number):
    """Draw an interval as a bar and the estimate as a marker."""
    look = style(number)
    ax.hlines(height, value.low, value.high, color=look.color, lw=5, alpha=0.45)
    ax.plot(value.estimate, height, color=look.color, marker=look.marker, ms=4.5)


def rates_by_tier():
    """Rates of one threshold under three states of knowledge."""
    data = make_underdiagnosed(8000, random_state=3)
    scores = GroupScores(data.score, data.labeled, data.group)
    with warnings.catch_warnings():
        # The width of the bars is what the warning says.
        warnings.simplefilter("ignore", LabelFrequencyWarning)
        alone = audit(scores, threshold=THRESHOLD, X=data.X)
    estimated = {
        key: alone.checks["label_frequency"][key].estimate for key in scores.groups
    }
    decision = scores.score >= THRESHOLD
    anchored, prior = (
        pu_group_rates(
            data.labeled, decision, sensitive_features=data.group, **assumption
        )
        for assumption in (
            {"label_frequency": estimated},
            {"class_prior": data.class_prior},
        )
    )
    return alone.rates, anchored, prior


def true_rates(data):
    """Rates against the true classes, which only a simulation knows."""
    accepted = data.score >= THRESHOLD
    found = {}
    for key in ("f", "m"):
        member = data.group == key
        positive = member & (data.y_true == 1)
        found[key] = {
            "tpr": accepted[positive].mean(),
            "fpr": accepted[member & (data.y_true == 0)].mean(),
            "selection_rate": accepted[member].mean(),
            "ppv": (data.y_true == 1)[member & accepted].mean(),
            "prevalence": positive.sum() / member.sum(),
        }
    return found
