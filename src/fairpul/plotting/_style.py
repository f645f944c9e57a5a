"""Axes, and how groups are told apart: by line style and marker, not by color alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairpul.estimate import Estimate

#: What the rates are called on axes.
RATE_NAMES = {
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "selection_rate": "selection rate",
    "ppv": "positive predictive value",
    "prevalence": "prevalence",
}
MUTED = "#5f6368"


class Style(NamedTuple):
    """How one group is drawn."""

    color: str
    line: Any
    marker: str


# Colors of Okabe and Ito (2008) that are dark enough on white, in an order in which
# neighbors also differ in lightness.
_COLORS = ("#0072B2", "#D55E00", "#000000", "#009E73", "#CC79A7", "#7A5195")
_LINES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def style(number: int) -> Style:
    """Style of the group with this number; the first 210 differ.

    Examples
    --------
    >>> style(0)
    Style(color='#0072B2', line='-', marker='o')
    """
    return Style(
        _COLORS[number % len(_COLORS)],
        _LINES[number % len(_LINES)],
        _MARKERS[number % len(_MARKERS)],
    )


def axes_or_new(ax: Any, *, size: tuple[float, float] = (5.6, 4.2)) -> Any:
    """Return the axes given, untouched by pyplot, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib. Install it with `pip install fairpul[plot]`."
        ) from error
    _, ax = pyplot.subplots(figsize=size, layout="constrained")
    return ax


def tidy(ax: Any) -> None:
    """Leave the two spines that carry ticks, and a faint grid below the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e3e5e8", linewidth=0.7)
    ax.set_axisbelow(True)


def error_bar(value: Estimate) -> list[list[float]]:
    """Distances of the ends of an interval, as ``Axes.errorbar`` takes them."""
    below, above = value.estimate - value.low, value.high - value.estimate
    return [[max(0.0, below)], [max(0.0, above)]]
