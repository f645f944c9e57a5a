"""Group gaps in true and false positive rates, from positive and unlabeled data."""

from fairpul.audit import Audit, audit
from fairpul.classifier import FairPULClassifier
from fairpul.fitting import fit_rule
from fairpul.frontier import Frontier, frontier
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.objectives import Capacity, MinimumCost, RecallFloor
from fairpul.rule import DecisionRule

__all__ = [
    "Audit",
    "Capacity",
    "DecisionRule",
    "FairPULClassifier",
    "Frontier",
    "GroupCounts",
    "GroupScores",
    "MinimumCost",
    "RecallFloor",
    "audit",
    "fit_rule",
    "frontier",
]
