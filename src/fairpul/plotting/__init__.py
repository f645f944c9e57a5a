"""Plots of scores, rules and audits, in the manner of scikit-learn's displays.

Each display is built by a class method, ``from_...(..., ax=None)``, draws at once, and
keeps the numbers that it drew. Groups differ by line style and marker as well as by
color. Needs ``pip install fairpul[plot]``.
"""

from fairpul.plotting._curves import FrontierDisplay, GroupCurvesDisplay
from fairpul.plotting._intervals import IntervalsDisplay, LabelFrequencyDisplay
from fairpul.plotting._scores import CalibrationDisplay, ScoreDistributionDisplay
from fairpul.plotting._sensitivity import SensitivityDisplay

__all__ = [
    "CalibrationDisplay",
    "FrontierDisplay",
    "GroupCurvesDisplay",
    "IntervalsDisplay",
    "LabelFrequencyDisplay",
    "ScoreDistributionDisplay",
    "SensitivityDisplay",
]
