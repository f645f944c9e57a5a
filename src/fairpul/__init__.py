"""Group gaps in true and false positive rates, from positive and unlabeled data."""

from fairpul.fitting import fit_rule
from fairpul.group_scores import GroupScores
from fairpul.objectives import Capacity, MinimumCost, RecallFloor
from fairpul.rule import DecisionRule

__all__ = [
    "Capacity",
    "DecisionRule",
    "GroupScores",
    "MinimumCost",
    "RecallFloor",
    "fit_rule",
]
