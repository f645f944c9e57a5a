"""How often positives are labeled, per group: P(labeled | positive).

The data alone set a lower bound only. The estimators here read a point within
[bound, 1] under an assumption that each one names; a value from outside
(``label_frequency`` or ``class_prior``) is better where it is credible. True positive
rates, and with them equal opportunity, need none of this.
"""

from fairpul.label_frequency._base import LabelFrequencyEstimator
from fairpul.label_frequency._counts import (
    PlateauTrend,
    best_bin,
    label_frequency_bound,
    peak_rate,
    plateau_trend,
    top_rate,
)
from fairpul.label_frequency._resolve import resolve_label_frequency
from fairpul.label_frequency._result import LabelFrequency, LabelFrequencyWarning
from fairpul.label_frequency._row_estimators import ElkanNoto, Joint
from fairpul.label_frequency._top_estimators import BestBin, PeakRate, TopRate

__all__ = [
    "BestBin",
    "ElkanNoto",
    "Joint",
    "LabelFrequency",
    "LabelFrequencyEstimator",
    "LabelFrequencyWarning",
    "PeakRate",
    "PlateauTrend",
    "TopRate",
    "best_bin",
    "label_frequency_bound",
    "peak_rate",
    "plateau_trend",
    "resolve_label_frequency",
    "top_rate",
]
