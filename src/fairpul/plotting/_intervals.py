"""Intervals by group: of rates and gaps, and of what is known of label frequencies."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from fairpul.estimate import Estimate
from fairpul.findings import group_name
from fairpul.label_frequency import LabelFrequency
from fairpul.plotting._style import (
    MUTED,
    RATE_NAMES,
    Style,
    axes_or_new,
    error_bar,
    style,
    tidy,
)
from fairpul.rates import GAPS, Rates

_GAP = Style("#000000", "-", "D")


class Row(NamedTuple):
    """One line of an intervals display."""

    label: str
    value: Estimate
    look: Style


class IntervalsDisplay:
    """Rates of each group and their gaps as points with intervals.

    Parameters
    ----------
    rows : dict
        Rate name -> list of :class:`Row`, one per group and one for the gap.

    Attributes
    ----------
    ax_, figure_, points_
        Axes, figure, and per drawn row its error-bar container, keyed by (rate name,
        row label); set by :meth:`plot`.
    """

    def __init__(self, *, rows: Mapping[str, Sequence[Row]]) -> None:
        self.rows = rows

    @classmethod
    def from_rates(
        cls, rates: Rates, *, names: Sequence[str] = GAPS, ax: Any = None
    ) -> IntervalsDisplay:
        """Draw rates, such as ``rule.realized`` or the ``rates`` of an audit.

        Parameters
        ----------
        rates : Rates
            Rates by group, and their gaps.
        names : sequence of str, default=("tpr", "fpr", "selection_rate")
            Which rates, from top to bottom; "ppv" and "prevalence" have no gap.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.

        Notes
        -----
        Filled markers assume no label frequency; open ones lean on a label frequency or
        a prior. What is undefined has no marker, and says so.

        Examples
        --------
        >>> from fairpul.metrics import pu_group_rates
        >>> y_pu, y_pred = [1, 1, 0, 0, 1, 1], [1, 0, 1, 0, 1, 1]
        >>> rates = pu_group_rates(y_pu, y_pred, sensitive_features=list("aabbbb"))
        >>> display = IntervalsDisplay.from_rates(rates, names=["tpr"])
        >>> [(row.label, row.value.estimate) for row in display.rows["tpr"]]
        [('a', 0.5), ('b', 1.0), ('gap', 0.5)]
        """
        unknown = [name for name in names if name not in RATE_NAMES]
        if unknown or not names:
            raise ValueError(
                f"names must list rates among {list(RATE_NAMES)!r}, got {names!r}."
            )
        rows = {}
        for name in names:
            rows[name] = [
                Row(group_name(key), rates[key][name], style(number))
                for number, key in enumerate(rates)
            ]
            if name in rates.gaps and len(rates) > 1:
                rows[name].append(Row("gap", rates.gaps[name], _GAP))
        return cls(rows=rows).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> IntervalsDisplay:
        """Draw on the axes given, or on a new figure."""
        n_lines = sum(len(rows) + 1 for rows in self.rows.values())
        ax = axes_or_new(ax, size=(6.2, 0.9 + 0.26 * n_lines))
        self.points_ = {}
        ticks: list[tuple[float, str]] = []
        height = 0.0
        for name, rows in self.rows.items():
            ax.text(
                0, height, RATE_NAMES[name], fontweight="bold", va="center", fontsize=9
            )
            for row in rows:
                height -= 1
                ticks.append((height, row.label))
                found = self._draw(ax, row, height)
                if found is not None:
                    self.points_[name, row.label] = found
            height -= 1.25
        tidy(ax)
        ax.grid(axis="y", visible=False)
        ax.set_yticks([at for at, _ in ticks], labels=[text for _, text in ticks])
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(-0.02, 1.02), ylim=(height + 0.6, 0.7), xlabel="rate")
        self._explain_tiers(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any, row: Row, height: float) -> Any:
        value = row.value
        if math.isnan(value.estimate):
            text = f"undefined: {value.reason}" if value.reason else "undefined"
            ax.text(
                0.01, height, text, va="center", color=MUTED, fontsize=8, clip_on=True
            )
            return None
        return ax.errorbar(
            value.estimate,
            height,
            xerr=error_bar(value),
            color=row.look.color,
            marker=row.look.marker,
            markerfacecolor=row.look.color if value.tier == "c-free" else "white",
            markersize=6,
            capsize=2.5,
        )

    def _explain_tiers(self, ax: Any) -> None:
        tiers = {row.value.tier for rows in self.rows.values() for row in rows}
        lean = [tier for tier in ("label frequency", "prior") if tier in tiers]
        if not lean:
            return
        needs = " or ".join(lean)
        ax.set_title(
            f"filled: c-free, needs no more than labels   open: needs the {needs}",
            fontsize=8,
            color=MUTED,
            loc="left",
        )


class LabelFrequencyDisplay:
    """What is known of each group's label frequency: a set, and a point in it.

    Parameters
    ----------
    label_frequency : mapping
        Group key -> :class:`~fairpul.label_frequency.LabelFrequency`.

    Attributes
    ----------
    ax_, figure_, points_
        Axes, figure, and the marker of each group by its key; set by :meth:`plot`.
    """

    def __init__(self, *, label_frequency: Mapping[Hashable, LabelFrequency]) -> None:
        self.label_frequency = label_frequency

    @classmethod
    def from_label_frequency(
        cls, label_frequency: Mapping[Hashable, LabelFrequency], *, ax: Any = None
    ) -> LabelFrequencyDisplay:
        """Draw the label frequencies of a rule or a classifier.

        Parameters
        ----------
        label_frequency : mapping
            ``rule.label_frequency`` or ``classifier.label_frequency_``.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.

        Notes
        -----
        Positive and unlabeled rows alone leave the whole interval from a lower
        confidence bound to 1. The marker is the estimate, right under the assumption
        that its method names.

        Examples
        --------
        >>> from fairpul.label_frequency import LabelFrequency
        >>> known = {"f": LabelFrequency(0.4, 0.35, 1.0, "peak_rate")}
        >>> display = LabelFrequencyDisplay.from_label_frequency(known)
        >>> float(display.points_["f"].get_xdata()[0])
        0.4
        """
        return cls(label_frequency=label_frequency).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> LabelFrequencyDisplay:
        """Draw on the axes given, or on a new figure."""
        count = len(self.label_frequency)
        ax = axes_or_new(ax, size=(5.6, 1.1 + 0.55 * count))
        self.points_ = {}
        for number, (key, known) in enumerate(self.label_frequency.items()):
            look = style(number)
            ax.hlines(
                number, known.low, known.high, color=look.color, linewidth=8, alpha=0.28
            )
            ax.vlines(known.low, number - 0.2, number + 0.2, color=look.color)
            (self.points_[key],) = ax.plot(
                known.estimate, number, color=look.color, marker=look.marker, ms=8
            )
            doubt = ", doubtful" if known.warning else ""
            near_the_end = known.low > 0.7  # no room for the text
            ax.annotate(
                f"{known.method}{doubt}",
                (1 if near_the_end else known.low, number),
                xytext=(0 if near_the_end else 5, 10),
                textcoords="offset points",
                ha="right" if near_the_end else "left",
                fontsize=8,
                color=MUTED,
            )
        tidy(ax)
        ax.grid(axis="y", visible=False)
        names = [group_name(key) for key in self.label_frequency]
        ax.set_yticks(range(count), labels=names)
        ax.set(
            xlim=(-0.02, 1.02),
            ylim=(count - 0.5, -0.7),
            xlabel="label frequency: share of the positives that is labeled",
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self
