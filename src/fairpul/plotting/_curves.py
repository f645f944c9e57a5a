"""Operating curves of the groups with a rule on them, and what fairness costs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.estimate import Estimate
from fairpul.evidence import by_rule
from fairpul.findings import group_name
from fairpul.frontier import Frontier
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.label_frequency import LabelFrequency
from fairpul.objectives import MinimumCost, Objective, RecallFloor
from fairpul.plotting._style import (
    MUTED,
    RATE_NAMES,
    axes_or_new,
    error_bar,
    style,
    tidy,
)
from fairpul.rates import group_rates
from fairpul.rule import DecisionRule

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


class GroupCurvesDisplay:
    """Rates that each group can have, and those that a rule gives it.

    Parameters
    ----------
    curves : mapping
        Group key -> (x, TPR) of the group's concave hull from strict to lenient.
    points : mapping
        Group key -> (x, TPR) as :class:`fairpul.estimate.Estimate`, of the rule.
    x : {"selection_rate", "fpr"}
        Rate on the horizontal axis.

    Attributes
    ----------
    ax_, figure_, lines_
        Axes, figure, and the line of each group by its key; set by :meth:`plot`.
    """

    def __init__(
        self,
        *,
        curves: Mapping[Hashable, Curve],
        points: Mapping[Hashable, tuple[Estimate, Estimate]],
        x: str,
    ) -> None:
        self.curves = curves
        self.points = points
        self.x = x

    @classmethod
    def from_scores(
        cls,
        scores: GroupScores | GroupCounts,
        *,
        rule: DecisionRule | None = None,
        x: str = "selection_rate",
        label_frequency: Mapping[Hashable, LabelFrequency] | None = None,
        ax: Any = None,
    ) -> GroupCurvesDisplay:
        r"""Draw the operating curves of scores.

        Parameters
        ----------
        scores : GroupScores or GroupCounts
            Out-of-fold or held-out scores.
        rule : DecisionRule, optional
            Marked with the rates that it has on these scores, and their intervals.
        x : {"selection_rate", "fpr"}, default="selection_rate"
            Rate on the horizontal axis. The selection rate assumes nothing about the
            label frequency; the FPR stands and falls with it.
        label_frequency : mapping, optional
            Group key -> :class:`~fairpul.label_frequency.LabelFrequency`, for the FPR;
            default: that of the rule.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.

        Notes
        -----
        A point of the concave hull is a cut, a point between two neighbors a lottery of
        the two. The FPR is :math:`(Q - \pi T)/(1 - \pi)` with :math:`\pi = \rho / c`;
        small negative values near the origin are sampling error and are not cut off.

        Examples
        --------
        >>> from fairpul import GroupScores, fit_rule
        >>> from fairpul.datasets import make_underdiagnosed
        >>> data = make_underdiagnosed(4000, random_state=0)
        >>> scores = GroupScores(data.score, data.labeled, data.group)
        >>> rule = fit_rule(scores, label_frequency=0.9)
        >>> display = GroupCurvesDisplay.from_scores(scores, rule=rule)
        >>> display.points["f"][1] == rule.realized["f"]["tpr"]
        True
        """
        if x not in ("selection_rate", "fpr"):
            raise ValueError(f'x must be "selection_rate" or "fpr", got {x!r}.')
        if label_frequency is None and rule is not None:
            label_frequency = rule.label_frequency
        if x == "fpr" and label_frequency is None:
            raise ValueError(
                "An FPR needs the label frequency of each group: pass label_frequency "
                'or a rule, or draw x="selection_rate", which needs none.'
            )
        curves = {}
        for number, key in enumerate(scores.groups):
            hull = scores.points(number).hull()
            across = hull.selection_rate
            if x == "fpr" and label_frequency is not None:
                prior = hull.labeled_share / label_frequency[key].estimate
                across = (hull.selection_rate - prior * hull.tpr) / (1 - prior)
            curves[key] = (across, hull.tpr)
        points = {}
        if rule is not None:
            tallies = by_rule(scores, rule).tallies()
            rates = group_rates(tallies, scores.groups, label_frequency, tuned=True)
            points = {key: (rates[key][x], rates[key]["tpr"]) for key in rates}
        return cls(curves=curves, points=points, x=x).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> GroupCurvesDisplay:
        """Draw on the axes given, or on a new figure."""
        ax = axes_or_new(ax)
        self.lines_ = {}
        for number, (key, (x, tpr)) in enumerate(self.curves.items()):
            look = style(number)
            (self.lines_[key],) = ax.plot(
                x, tpr, color=look.color, linestyle=look.line, label=group_name(key)
            )
            if key in self.points:
                self._mark(ax, number, *self.points[key])
        tidy(ax)
        ax.set(
            xlabel=RATE_NAMES[self.x],
            ylabel=RATE_NAMES["tpr"],
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.04),
        )
        title = "group, marker: rule" if self.points else "group"
        legend = ax.legend(
            title=title, loc="lower right", frameon=False, handlelength=4
        )
        for number, (key, line) in enumerate(
            zip(self.curves, legend.get_lines(), strict=True)
        ):
            if key in self.points:
                line.set_marker(style(number).marker)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _mark(self, ax: Any, number: int, x: Estimate, tpr: Estimate) -> None:
        """Rates under the rule; a rate without a value is not marked."""
        if np.isnan(x.estimate) or np.isnan(tpr.estimate):
            return
        look = style(number)
        ax.errorbar(
            x.estimate,
            tpr.estimate,
            xerr=error_bar(x),
            yerr=error_bar(tpr),
            color=look.color,
            marker=look.marker,
            markersize=9,
            markeredgecolor="white",
            elinewidth=1.2,
            capsize=2,
            zorder=4,
        )


class FrontierDisplay:
    """What a smaller gap costs: the objective of the best rule at each gap.

    Parameters
    ----------
    gaps, costs : ndarray of shape (n_tolerances,)
        Largest gap among the constrained rates, and the objective, of the best rules.
    cost_name : str
        What the objective is.

    Attributes
    ----------
    ax_, figure_, line_
        Axes, figure and line; set by :meth:`plot`.
    """

    def __init__(
        self,
        *,
        gaps: NDArray[np.float64],
        costs: NDArray[np.float64],
        cost_name: str = "objective",
    ) -> None:
        self.gaps = gaps
        self.costs = costs
        self.cost_name = cost_name

    @classmethod
    def from_frontier(cls, frontier: Frontier, *, ax: Any = None) -> FrontierDisplay:
        """Draw a frontier.

        Parameters
        ----------
        frontier : Frontier
            From :func:`fairpul.frontier`.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.

        Examples
        --------
        >>> from fairpul import GroupScores, frontier
        >>> from fairpul.datasets import make_underdiagnosed
        >>> data = make_underdiagnosed(4000, random_state=0)
        >>> scores = GroupScores(data.score, data.labeled, data.group)
        >>> curve = frontier(scores, tolerances=[0, 0.1, 0.2], label_frequency=0.8)
        >>> display = FrontierDisplay.from_frontier(curve)
        >>> display.cost_name
        'error rate'
        """
        name = _name_of(frontier.rules[0].objective)
        display = cls(gaps=frontier.gaps, costs=frontier.costs, cost_name=name)
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> FrontierDisplay:
        """Draw on the axes given, or on a new figure."""
        ax = axes_or_new(ax)
        (self.line_,) = ax.plot(
            self.gaps, self.costs, color=style(0).color, marker="o", markersize=4
        )
        # Beside the curve, whichever way it goes.
        up = 1 if self.costs[-1] >= self.costs[0] else -1
        ends = (
            (0, "smallest tolerance", "left", (8, -4 * up)),
            (-1, "largest tolerance", "right", (0, 9 * up)),
        )
        for end, text, side, offset in ends:
            ax.annotate(
                text,
                (self.gaps[end], self.costs[end]),
                xytext=offset,
                textcoords="offset points",
                ha=side,
                va="center",
                color=MUTED,
            )
        tidy(ax)
        ax.margins(y=0.15)
        ax.set(
            xlabel="largest gap between groups, of the exact mixture",
            ylabel=self.cost_name,
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _name_of(objective: Objective) -> str:
    if isinstance(objective, RecallFloor):
        return "selection rate"
    if isinstance(objective, MinimumCost):
        return "error rate" if objective == MinimumCost() else "expected cost per row"
    return "overall recall"
