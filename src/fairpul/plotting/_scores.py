"""Scores by group: how they are spread, and whether they are calibrated."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairpul.findings import group_name
from fairpul.group_scores import GroupScores
from fairpul.intervals import wilson
from fairpul.plotting._style import MUTED, axes_or_new, style, tidy
from fairpul.rule import DecisionRule


class Histogram(NamedTuple):
    """Shares of a group's labeled, and of its unlabeled, weight in each bin."""

    labeled: NDArray[np.float64]
    unlabeled: NDArray[np.float64]


class ScoreDistributionDisplay:
    """Scores of labeled and unlabeled rows, one strip per group.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Ends of the bins.
    histograms : mapping
        Group key -> :class:`Histogram`.
    cuts : mapping
        Group key -> pairs (cut, weight) of a rule.

    Attributes
    ----------
    ax_, figure_
        Axes and figure; set by :meth:`plot`.
    """

    def __init__(
        self,
        *,
        edges: NDArray[np.float64],
        histograms: Mapping[Hashable, Histogram],
        cuts: Mapping[Hashable, tuple[tuple[float, float], ...]],
    ) -> None:
        self.edges = edges
        self.histograms = histograms
        self.cuts = cuts

    @classmethod
    def from_scores(
        cls,
        scores: GroupScores,
        *,
        rule: DecisionRule | None = None,
        bins: int = 40,
        ax: Any = None,
    ) -> ScoreDistributionDisplay:
        """Draw the scores of rows.

        Parameters
        ----------
        scores : GroupScores
            Scores, labels and groups.
        rule : DecisionRule, optional
            Its cuts are drawn as vertical lines. It must cut scores, not bins.
        bins : int, default=40
            Number of equal bins between 0 and 1.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.

        Notes
        -----
        Labeled rows stand for all positives of the group; the unlabeled ones are a
        mixture of the other positives and of the negatives.

        Examples
        --------
        >>> from fairpul import GroupScores
        >>> scores = GroupScores([0.9, 0.8, 0.2, 0.1], [1, 0, 0, 0], None)
        >>> display = ScoreDistributionDisplay.from_scores(scores, bins=2)
        >>> display.histograms["all"].unlabeled.round(2).tolist()
        [0.67, 0.33]
        """
        if rule is not None and rule.bins is not None:
            raise ValueError(
                f"The rule cuts {rule.bins} bins, not scores. Draw the operating "
                "curves of its counts instead."
            )
        edges = np.linspace(0, 1, bins + 1)
        histograms = {
            key: _histogram(scores, number, edges)
            for number, key in enumerate(scores.groups)
        }
        cuts = {} if rule is None else dict(zip(rule.groups, rule.cuts, strict=True))
        return cls(edges=edges, histograms=histograms, cuts=cuts).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ScoreDistributionDisplay:
        """Draw on the axes given, or on a new figure."""
        count = len(self.histograms)
        ax = axes_or_new(ax, size=(5.8, 1.2 + 1.25 * count))
        for number, (key, histogram) in enumerate(self.histograms.items()):
            floor = float(count - 1 - number)
            self._strip(ax, histogram, floor, number)
            for cut, weight in self.cuts.get(key, ()):
                if np.isfinite(cut):
                    ax.vlines(cut, floor, floor + 0.95, color="black", lw=1.6)
                    share = "" if weight == 1 else f", in {weight:.0%} of draws"
                    ax.annotate(
                        f"accept from {cut:.3g}{share}",
                        (cut, floor + 0.9),
                        xytext=(4, 0),
                        textcoords="offset points",
                        va="top",
                        fontsize=8,
                    )
        tidy(ax)
        ax.grid(axis="y", visible=False)
        names = [group_name(key) for key in self.histograms]
        ax.set_yticks(np.arange(count)[::-1] + 0.3, labels=names)
        ax.tick_params(axis="y", length=0)
        ax.set(xlim=(0, 1), ylim=(-0.05, count), xlabel="score")
        legend = ax.legend(loc="upper right", frameon=False)
        legend.get_lines()[0].set_color("black")  # the line of all groups
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _strip(self, ax: Any, histogram: Histogram, floor: float, number: int) -> None:
        """Both histograms of a group on one scale, their highest bin at 0.85."""
        scale = 0.85 / max(histogram.labeled.max(), histogram.unlabeled.max())
        ax.stairs(
            floor + scale * histogram.unlabeled,
            self.edges,
            baseline=floor,
            fill=True,
            color="#c9cdd2",
            label="" if number else "unlabeled rows",
        )
        ax.stairs(
            floor + scale * histogram.labeled,
            self.edges,
            baseline=floor,
            color=style(number).color,
            linewidth=1.6,
            label="" if number else "labeled rows",
        )


class Bins(NamedTuple):
    """Mean score and labeled share of bins of a group, with Wilson intervals."""

    score: NDArray[np.float64]
    labeled_share: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class CalibrationDisplay:
    """Labeled share against the score, by group.

    Parameters
    ----------
    bins : mapping
        Group key -> :class:`Bins`.

    Attributes
    ----------
    ax_, figure_, lines_
        Axes, figure, and the line of each group by its key; set by :meth:`plot`.
    """

    def __init__(self, *, bins: Mapping[Hashable, Bins]) -> None:
        self.bins = bins

    @classmethod
    def from_scores(
        cls, scores: GroupScores, *, n_bins: int = 10, ax: Any = None
    ) -> CalibrationDisplay:
        """Draw the labeled share in bins of equal size.

        Parameters
        ----------
        scores : GroupScores
            Scores, labels and groups.
        n_bins : int, default=10
            Bins per group, of equally many rows; equal scores stay together.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.

        Notes
        -----
        The score estimates P(labeled), which is observed, so that this can be checked
        without any assumption. It says nothing about P(positive).

        Examples
        --------
        >>> import numpy as np
        >>> from fairpul import GroupScores
        >>> score, labeled = np.repeat([0.2, 0.8], 10), np.arange(20) % 10 < 5
        >>> scores = GroupScores(score, labeled, None)
        >>> display = CalibrationDisplay.from_scores(scores, n_bins=2)
        >>> display.bins["all"].labeled_share.tolist()
        [0.5, 0.5]
        """
        bins = {
            key: _bins(scores, number, n_bins)
            for number, key in enumerate(scores.groups)
        }
        return cls(bins=bins).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> CalibrationDisplay:
        """Draw on the axes given, or on a new figure."""
        ax = axes_or_new(ax, size=(4.8, 4.4))
        ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.9)
        self.lines_ = {}
        for number, (key, found) in enumerate(self.bins.items()):
            look = style(number)
            bars = np.abs([found.low, found.high] - found.labeled_share)
            container = ax.errorbar(
                found.score,
                found.labeled_share,
                yerr=bars,
                color=look.color,
                linestyle=look.line,
                marker=look.marker,
                markersize=5,
                elinewidth=0.9,
                label=group_name(key),
            )
            self.lines_[key] = container.lines[0]
        tidy(ax)
        widest = max(float(found.score.max()) for found in self.bins.values())
        highest = max(float(found.high.max()) for found in self.bins.values())
        end = min(1.0, 1.05 * max(widest, highest))
        ax.set(
            xlim=(-0.02 * end, end),
            ylim=(-0.02 * end, end),
            xlabel="mean score of the bin",
            ylabel="share of rows that is labeled",
        )
        ax.set_aspect("equal")
        ax.legend(title="group", loc="upper left", frameon=False, handlelength=3)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _histogram(
    scores: GroupScores, number: int, edges: NDArray[np.float64]
) -> Histogram:
    rows = scores.rows(number)
    score, labeled = scores.score[rows], scores.labeled[rows]
    weight = _weight(scores, rows)
    counts = [
        np.histogram(score[side], edges, weights=weight[side])[0]
        for side in (labeled, ~labeled)
    ]
    # A group may be labeled throughout; then nothing is drawn of the other side.
    return Histogram(
        *(count / max(count.sum(), np.finfo(float).tiny) for count in counts)
    )


def _bins(scores: GroupScores, number: int, n_bins: int) -> Bins:
    rows = scores.rows(number)
    score, labeled = scores.score[rows], scores.labeled[rows]
    weight = _weight(scores, rows)
    edges = np.unique(np.quantile(score, np.linspace(0, 1, n_bins + 1)[1:-1]))
    of = np.searchsorted(edges, score, side="left")
    mass = np.bincount(of, weights=weight)
    kept = mass > 0
    squares = np.bincount(of, weights=weight**2)[kept]
    hits = np.bincount(of, weights=weight * labeled)[kept]
    means = np.bincount(of, weights=weight * score)[kept]
    mass = mass[kept]
    share, n_effective = hits / mass, mass**2 / squares
    ends = np.array([wilson(p * n, n) for p, n in zip(share, n_effective, strict=True)])
    return Bins(means / mass, share, ends[:, 0], ends[:, 1])


def _weight(scores: GroupScores, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    if scores.sample_weight is None:
        return np.ones(len(rows))
    return scores.sample_weight[rows]
