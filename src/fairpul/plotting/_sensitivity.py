"""How much labeling bias a finding about the TPR gap survives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.audit import Audit
from fairpul.plotting._style import MUTED, axes_or_new, style, tidy


class SensitivityDisplay:
    """True TPR gaps that are possible, by the labeling bias that is granted.

    Parameters
    ----------
    bias : ndarray of shape (n,)
        Labeling bias in each group, from 1 (none) up.
    gap : float
        Gap that the labels show.
    low, high : ndarray of shape (n,)
        Smallest and largest true gap at each bias.
    break_even : float
        Bias of one group's labels at which there would be no gap.

    Attributes
    ----------
    ax_, figure_, band_
        Axes, figure and the band between ``low`` and ``high``; set by :meth:`plot`.
    """

    def __init__(
        self,
        *,
        bias: NDArray[np.float64],
        gap: float,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        break_even: float,
    ) -> None:
        self.bias = bias
        self.gap = gap
        self.low = low
        self.high = high
        self.break_even = break_even

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None) -> SensitivityDisplay:
        r"""Draw the hidden gaps of an audit.

        Parameters
        ----------
        audit : Audit
            From :func:`fairpul.audit`, with at least two groups.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.

        Notes
        -----
        With a bias of :math:`\Gamma`, accepted positives are labeled at most
        :math:`\Gamma` times as often as rejected ones, or the reverse, in any group;
        the band allows for sampling error, too.

        Examples
        --------
        >>> from fairpul.audit import audit
        >>> score = [0.9, 0.8, 0.6, 0.3] * 40
        >>> labeled, group = [1, 1, 0, 0, 0, 1, 0, 0] * 20, ["f"] * 80 + ["m"] * 80
        >>> report = audit(score=score, labeled=labeled, group=group, threshold=0.7,
        ...                label_frequency=0.8)
        >>> display = SensitivityDisplay.from_audit(report)
        >>> float(display.bias[0]), display.gap == report.gaps["tpr"].estimate
        (1.0, True)
        """
        hidden = audit.sensitivity.get("hidden_gap")
        if not hidden:
            raise ValueError(
                "The audit has no TPR gap, whose sensitivity could be drawn: at least "
                "two groups with labeled rows are required."
            )
        found = [audit.gaps["tpr"], *hidden.values()]
        return cls(
            bias=np.array([1.0, *map(float, hidden)]),
            gap=found[0].estimate,
            low=np.array([one.low for one in found]),
            high=np.array([one.high for one in found]),
            break_even=audit.sensitivity["labeling_bias"].estimate,
        ).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> SensitivityDisplay:
        """Draw on the axes given, or on a new figure."""
        ax = axes_or_new(ax)
        color = style(0).color
        self.band_ = ax.fill_between(
            self.bias, self.low, self.high, color=color, alpha=0.22, linewidth=0
        )
        for end in (self.low, self.high):
            ax.plot(self.bias, end, color=color, marker="o", markersize=4)
        ax.axhline(self.gap, color="black", linewidth=1, linestyle=(0, (5, 2)))
        ax.annotate(
            f"gap among labeled rows: {self.gap:.3f}",
            (self.bias[-1], self.gap),
            xytext=(0, 4),
            textcoords="offset points",
            ha="right",
        )
        if self.break_even <= self.bias[-1]:
            ax.axvline(self.break_even, color=MUTED, linewidth=1, linestyle=(0, (1, 1)))
        alone = f"at a bias of {self.break_even:.3g}"
        ax.set_title(
            f"One group's labels alone explain the gap {alone}",
            color=MUTED,
            fontsize=9,
            loc="left",
        )
        tidy(ax)
        ax.set_xscale("log")
        ax.set_xticks(self.bias, labels=[f"{bias:g}" for bias in self.bias])
        ax.minorticks_off()
        ax.set(
            xlabel="labeling bias granted in each group (ratio, 1 = none)",
            ylabel="true TPR gaps that are possible",
            ylim=(-0.02, None),
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self
