"""The figures, readable in black and white: markers and line styles, never color."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

mpl.use("Agg")

_MARKERS = {
    "Oracle": "*",
    "Naive": "o",
    "Agarwal": "s",
    "Hardt": "D",
    "Chzhen": "^",
    "uPU": "v",
    "wPU": "<",
    "Bagging": ">",
    "FairPUL-EO": "P",
    "FairPUL-EOP": "P",
    "Direct EO": "X",
    "Direct EOP": "X",
}
_SHARED = tuple(_MARKERS)[:8]


def draw(
    measured: pd.DataFrame, theorem: pd.DataFrame, results: Path, splits: int
) -> None:
    """Draw every figure from the result rows alone."""
    synthetic = measured[measured.dataset == "synthetic"]
    _save(draw_synthetic(synthetic), results / "synthetic.png")
    unlabeled = measured[measured.extra_share.notna() & (measured.seed < splits)]
    _save(draw_unlabeled(unlabeled), results / "unlabeled.png")
    _save(draw_theorem(theorem), results / "theorem1.png")


def draw_synthetic(rows: pd.DataFrame) -> Figure:
    """Error against unfairness on two Gaussian groups; lighter means fewer labels."""
    figure, panels = _panels(2, (11, 5.2))
    constant = rows[rows.method == "Everyone positive"].error.mean()
    for axes, short, metric in zip(panels, ("EO", "EOP"), ("aod", "eod"), strict=True):
        for method in (*_SHARED, f"FairPUL-{short}", f"Direct {short}"):
            means = (
                rows[rows.method == method]
                .groupby("labeling_rate")
                .mean(numeric_only=True)
            )
            shades = [str(round(0.75 * (1 - rate), 2)) for rate in means.index]
            # Our two markers are open, so that they stand out from the paper's rivals.
            is_open = method.startswith(("FairPUL", "Direct"))
            is_oracle = method == "Oracle"  # large, so that others do not hide it
            axes.scatter(
                means[metric],
                means.error,
                s=200 if is_oracle else 70,
                marker=_MARKERS[method],
                facecolors="white" if is_open else shades,
                edgecolors="white" if is_oracle else shades,
                linewidths=1.6 if is_open else 0.5,
                zorder=4 if is_oracle else 3 if is_open else 2,
            )
            axes.scatter(
                [],
                [],
                s=70,
                marker=_MARKERS[method],
                facecolors="white" if is_open else "black",
                edgecolors="black",
                label=method.removesuffix(f"-{short}").removesuffix(f" {short}"),
            )
        _constants(
            axes, {"everyone positive": constant, "everyone negative": 1 - constant}
        )
        axes.set_xlabel(
            "average odds difference (true classes)"
            if metric == "aod"
            else "difference in TPR (true classes)"
        )
        axes.set_title(short)
    panels[0].set_ylabel("error rate (true classes)")
    figure.suptitle("Two Gaussian groups, labeling rates from 1 (black) to .2 (light)")
    panels[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def draw_unlabeled(rows: pd.DataFrame) -> Figure:
    """F1, AOD, EOD and error with more unlabeled rows."""
    figure, panels = _panels(4, (14, 4))
    titles = {"f1": "F1", "aod": "AOD", "eod": "EOD", "error": "error rate"}
    # Filled or open, and a little apart, so that bars do not hide each other.
    styles = {
        "FairPUL-EOP": ("-", "o", "black", -0.5),
        "Direct EOP": ("--", "s", "white", 0.5),
        "Everyone positive": (":", None, None, 0.0),
    }
    for axes, (metric, title) in zip(panels, titles.items(), strict=True):
        for method, (line, marker, fill, aside) in styles.items():
            of_share = rows[rows.method == method].groupby("extra_share")[metric]
            mean = of_share.mean()
            half = 1.96 * of_share.std() / np.sqrt(of_share.count())
            axes.errorbar(
                100 * mean.index + aside,
                mean,
                half if marker else None,
                linestyle=line,
                marker=marker,
                markerfacecolor=fill,
                color="black",
                capsize=3,
                label=method if marker else "everyone positive (constant)",
            )
        axes.set_xlabel("share of the pool added as unlabeled (%)")
        axes.set_ylabel(title)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    figure.suptitle("COMPAS, Lin.LR: extra unlabeled rows, number of labels fixed")
    return figure


def draw_theorem(rows: pd.DataFrame) -> Figure:
    """Excess risk and unfairness as the sample grows: EO's failure, EOP's success."""
    figure = Figure(figsize=(11, 7.4), layout="constrained")
    grid = figure.subplots(2, 2, sharex=True)
    kinds = {
        ("paper", "true posterior"): ("-", "o"),
        ("paper", "isotonic"): ("--", "o"),
        ("exact", "true posterior"): ("-", "s"),
        ("exact", "isotonic"): ("--", "s"),
    }
    names = {"equalized_odds": "EO", "equal_opportunity": "EOP"}
    rows = rows.assign(excess=rows.risk - rows.optimal_risk)
    for column, constraint in enumerate(names):
        unfair = "aod" if constraint == "equalized_odds" else "eod"
        here = rows[rows.constraint == constraint]
        for (rule, score), (line, marker) in kinds.items():
            mine = here[(here.rule == rule) & (here.score == score)].groupby("n")
            label = f"{_RULES[rule]}, {score}"
            for axes, metric in zip(grid[:, column], ("excess", unfair), strict=True):
                axes.plot(
                    mine[metric].mean(),
                    linestyle=line,
                    marker=marker,
                    color="black",
                    markerfacecolor="black" if rule == "paper" else "white",
                    label=label,
                )
        top, bottom = grid[:, column]
        top.axhline(0, color="black", linewidth=0.8)
        top.set_title(f"{names[constraint]}: risk minus the least without a gap")
        bottom.set_title("true unfairness (" + unfair.upper() + ")")
        constant = rows.constant_risk.iloc[0] - here.optimal_risk.iloc[0]
        top.axhline(constant, color="black", linestyle=":")
        top.annotate(
            "best constant rule",
            (rows.n.max(), constant),
            ha="right",
            va="bottom",
            fontsize=8,
        )
        bottom.set_ylim(bottom=0)
        bottom.set_xlabel("number of rows")
        bottom.set_xscale("log")
        bottom.annotate(
            "a constant rule has 0 unfairness",
            (rows.n.min(), 0),
            va="bottom",
            fontsize=8,
        )
    grid[0, 0].set_ylabel("excess risk")
    grid[1, 0].set_ylabel("gap between groups")
    grid[0, 1].legend(frameon=False, fontsize=8)
    return figure


_RULES = {"paper": "the paper's rule", "exact": "exact randomized rule"}


def _constants(axes: Axes, errors: dict[str, float]) -> None:
    """Draw the two constant classifiers: no gap at all, whatever their error."""
    for text, error in errors.items():
        axes.plot(0, error, marker="_", markersize=16, color="black", zorder=4)
        axes.annotate(
            text, (0, error), xytext=(10, 4), textcoords="offset points", fontsize=8
        )


def _panels(number: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(1, number)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=130)
