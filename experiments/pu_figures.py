"""Frontier plots of the PU-fairness benchmark, readable in black and white."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.pu_leaderboard import CONSTANT

mpl.use("Agg")

#: Marker of each family; filled for equalized odds, open for equal opportunity.
_MARKERS = {
    "FairPUL-{}": "P",
    "Direct {}": "X",
    "Fairlearn {} (labels)": "s",
    "Fairlearn {} (posteriors)": "D",
    "error-parity {} (labels)": "^",
    "error-parity {} (posteriors)": "v",
}
_ALONE = {"Oracle": "*", "Naive": "o", "Unconstrained PU": "h", "Recall floor": "<"}
_FRONTIERS = {"Oracle EO": "--", "Direct EO": "-"}


def draw(measured: pd.DataFrame, results: Path) -> None:
    """Draw the frontier of each data set from the rows alone."""
    keys = ["mechanism", "base_model", "method"]
    for dataset, rows in measured.groupby("dataset", sort=False):
        groups = rows.groupby(keys, sort=False)
        # The other splits' mean is no match for the mean of all.
        ran = groups.failure.count() == 0
        means = groups.mean(numeric_only=True)[ran]
        figure = draw_frontier(means, str(dataset))
        figure.savefig(results / f"pu_frontier_{dataset}.png", dpi=110)


def draw_frontier(means: pd.DataFrame, dataset: str) -> Figure:
    """Error against the larger true gap, by mechanism and base model."""
    mechanisms = means.index.unique("mechanism")
    bases = means.index.unique("base_model")
    size = (4 * len(mechanisms) + 2.4, 3.7 * len(bases) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(
        len(bases), len(mechanisms), squeeze=False, sharex=True, sharey=True
    )
    top = _top(means)
    for base, line in zip(bases, grid, strict=True):
        for mechanism, axes in zip(mechanisms, line, strict=True):
            _panel(axes, means.loc[mechanism, base], top)
            axes.set_title(f"{mechanism}, {base}")
        line[0].set_ylabel("error rate (true classes)")
    for axes in grid[-1]:
        axes.set_xlabel("larger of the gaps in TPR and FPR")
    grid[0, 0].set_xlim(left=-0.02)
    low = grid[0, 0].get_ylim()[0]
    grid[0, 0].set_ylim(low, top + 0.05 * (top - low))
    figure.suptitle(f"{dataset}: error against true gaps on fresh rows")
    drawn = {
        label: handle
        for axes in grid.flat
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        drawn.values(),
        drawn.keys(),
        loc="outside right center",
        frameon=False,
        fontsize=8,
    )
    return figure


def _top(means: pd.DataFrame) -> float:
    """Largest error to show: no more than twice that of the better constant."""
    constant = means.index.get_level_values("method").isin(CONSTANT)
    better = means.error[constant].min()
    return min(max(means.error[~constant].max(), 1.1 * better), 2 * better)


def _panel(axes: Axes, means: pd.DataFrame, top: float) -> None:
    noise = means.noise_larger_gap.get("Oracle EO", 0.0)
    axes.axvspan(0, noise, color="0.88", label="sampling noise alone", zorder=0)
    for name, style in _FRONTIERS.items():
        points = [m for m in means.index if m == name or m.startswith(f"{name} within")]
        line = means.loc[points]
        axes.plot(
            line.larger_gap,
            line.error,
            linestyle=style,
            marker=".",
            color="black",
            linewidth=1,
            zorder=2,
            label=f"{name}, tolerances 0 to .2",
        )
    for family, marker in _MARKERS.items():
        for short, face in (("EO", "black"), ("EOP", "white")):
            _point(axes, means, family.format(short), marker, face, top)
    for name, marker in _ALONE.items():
        _point(axes, means, name, marker, "0.6", top)
    for name in CONSTANT:
        if name in means.index:
            _constant(axes, name.lower(), means.loc[name, "error"], top)


def _constant(axes: Axes, name: str, error: float, top: float) -> None:
    """Draw a constant rule at gap 0; where it is above the plot, say so at its edge."""
    if error > top:
        marker = {"marker": r"$\uparrow$", "markersize": 11}
        text = f"{name} (constant), {error:.3f}, above"
        where = {"xytext": (-4, 7), "ha": "right", "va": "top"}
        anchor, xycoords = (1, top), axes.get_yaxis_transform()
    else:
        marker = {"marker": "_", "markersize": 18}
        text = f"{name} (constant), {error:.3f}"
        where = {"xytext": (11, -3)}
        anchor, xycoords = (0, error), "data"
    axes.plot(0, min(error, top), linestyle="", color="black", zorder=4, **marker)
    axes.annotate(
        text,
        anchor,
        xycoords=xycoords,
        textcoords="offset points",
        fontsize=8,
        **where,
    )


def _point(
    axes: Axes, means: pd.DataFrame, name: str, marker: str, face: str, top: float
) -> None:
    """Draw a method; one that errs more than is shown stands on the upper edge."""
    if name in means.index:
        axes.scatter(
            means.loc[name, "larger_gap"],
            min(means.loc[name, "error"], top),
            s=60,
            marker=marker,
            facecolors=face,
            edgecolors="black",
            linewidths=1,
            label=name,
            zorder=3,
        )
