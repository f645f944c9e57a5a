"""What is known of P(labeled | positive) in one group."""

from __future__ import annotations

from dataclasses import dataclass


class LabelFrequencyWarning(UserWarning):
    """A label frequency is usable but doubtful; the text says why and what to do."""


@dataclass(frozen=True)
class LabelFrequency:
    r"""Label frequency of one group, with the set that the data or the user leave.

    Parameters
    ----------
    estimate : float
        :math:`c_s = P(L = 1 \mid Y = 1, S = s)`, the share of the group's positives
        that is labeled.
    low : float
        One-sided 95% lower confidence bound when read from the data, else the lower
        end that the user's value or interval allows.
    high : float
        1 when read from the data, for PU data set no upper limit; else the upper end
        that the user's value or interval allows.
    method : str
        How the estimate was obtained.
    warning : str, optional
        Why the estimate is doubtful, and what to do.

    Examples
    --------
    >>> LabelFrequency(0.4, 0.35, 1.0, "peak_rate")
    LabelFrequency(estimate=0.4, low=0.35, high=1.0, method='peak_rate', warning=None)
    """

    estimate: float
    low: float
    high: float
    method: str
    warning: str | None = None
