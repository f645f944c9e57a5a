"""Simulated data that carry their truth, and the paper's three real data sets."""

from fairpul.datasets.compas import fetch_compas
from fairpul.datasets.drug_consumption import fetch_drug_consumption
from fairpul.datasets.german_credit import fetch_german_credit
from fairpul.datasets.labeling import pu_labels
from fairpul.datasets.real_data import RealData
from fairpul.datasets.simulated_data import SimulatedData
from fairpul.datasets.simulations import make_two_groups, make_underdiagnosed

__all__ = [
    "RealData",
    "SimulatedData",
    "fetch_compas",
    "fetch_drug_consumption",
    "fetch_german_credit",
    "make_two_groups",
    "make_underdiagnosed",
    "pu_labels",
]
