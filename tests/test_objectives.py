from fractions import Fraction

import numpy as np
import pytest

from fairpul import Capacity, MinimumCost, RecallFloor
from fairpul.objectives import (
    CONSTRAINTS,
    check_objective,
    check_tolerance,
    needs_label_frequency,
)


def test_objectives_are_values():
    assert MinimumCost() == MinimumCost(false_negative=1, false_positive=1.0)
    assert RecallFloor(0.8) != RecallFloor(0.8, assured=True)
    assert hash(Capacity(0.1)) == hash(Capacity(0.1))


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_numbers_of_any_kind_become_floats(number):
    for value in (
        MinimumCost(number, number).false_negative,
        MinimumCost(number, number).false_positive,
        RecallFloor(number).recall,
        Capacity(number).share,
    ):
        assert type(value) is float
        assert value == 0.5


@pytest.mark.parametrize("cost", [-1, np.inf, np.nan, "1", None, True])
def test_bad_costs_are_refused(cost):
    with pytest.raises(ValueError, match="Costs must be finite numbers >= 0"):
        MinimumCost(cost, 1)
    with pytest.raises(ValueError, match="Costs must be finite numbers >= 0"):
        MinimumCost(1, cost)


def test_costs_must_not_both_be_zero():
    assert MinimumCost(0, 1).false_negative == 0
    with pytest.raises(ValueError, match="At least one of the two costs"):
        MinimumCost(0, 0)


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan, "0.5", None, True])
def test_bad_shares_are_refused(share):
    with pytest.raises(ValueError, match=r"recall must be a number in \[0, 1\]"):
        RecallFloor(share)
    with pytest.raises(ValueError, match=r"share must be a number in \[0, 1\]"):
        Capacity(share)


def test_assured_is_yes_or_no():
    with pytest.raises(TypeError, match="assured must be True or False, got 'yes'"):
        RecallFloor(0.8, assured="yes")


def test_certainty_cannot_be_assured():
    assert RecallFloor(1).recall == 1
    with pytest.raises(ValueError, match="A recall of 1 cannot be assured"):
        RecallFloor(1, assured=True)


def test_the_floor_of_a_capacity_must_be_one():
    with pytest.raises(TypeError, match=r"floor must be a RecallFloor, got 0\.5"):
        Capacity(0.1, floor=0.5)


def test_no_objective_is_the_error_rate():
    assert check_objective(None) == MinimumCost()
    assert check_objective(Capacity(0)) == Capacity(0)
    with pytest.raises(TypeError, match="objective must be MinimumCost"):
        check_objective("cost")
    with pytest.raises(TypeError, match="objective must be MinimumCost"):
        check_objective(RecallFloor)


@pytest.mark.parametrize(
    ("constraint", "tolerance", "expected"),
    [
        ("equal_opportunity", 0, {"tpr": 0.0}),
        ("equalized_odds", 0.1, {"tpr": 0.1, "fpr": 0.1}),
        ("equalized_odds", {"fpr": 0.2, "tpr": 0}, {"tpr": 0.0, "fpr": 0.2}),
        ("predictive_equality", np.float32(0.5), {"fpr": 0.5}),
        ("demographic_parity", {"selection_rate": 1}, {"selection_rate": 1.0}),
        (None, 0.0, {}),
        (None, {}, {}),
    ],
)
def test_tolerance_is_one_number_per_constrained_rate(constraint, tolerance, expected):
    found = check_tolerance(constraint, tolerance)
    assert found == expected
    assert list(found) == list(CONSTRAINTS[constraint])
    assert all(type(gap) is float for gap in found.values())


@pytest.mark.parametrize(
    ("constraint", "tolerance", "text"),
    [
        ("fairness", 0, "constraint must be one of"),
        (["tpr"], 0, "constraint must be one of"),
        ("equalized_odds", {"tpr": 0.1}, "needs one entry for each of"),
        ("equal_opportunity", {"tpr": 0, "fpr": 0}, "needs one entry for each of"),
        (None, 0.1, "needs a constraint"),
        (None, {"tpr": 0}, "needs one entry for each of"),
        ("equal_opportunity", -0.1, r"tolerance of tpr must be a number in \[0, 1\]"),
        ("equal_opportunity", 1.1, r"tolerance of tpr must be a number in \[0, 1\]"),
        ("equal_opportunity", np.nan, r"tolerance of tpr must be a number in"),
        ("equal_opportunity", None, r"tolerance of tpr must be a number in"),
        ("equal_opportunity", True, r"tolerance of tpr must be a number in"),
        ("equalized_odds", {"tpr": 0, "fpr": "x"}, "tolerance of fpr must be"),
    ],
)
def test_bad_constraints_and_tolerances_are_refused(constraint, tolerance, text):
    with pytest.raises(ValueError, match=text):
        check_tolerance(constraint, tolerance)


FLOOR = RecallFloor(0.5)


@pytest.mark.parametrize(
    ("objective", "tolerance", "needed"),
    [
        (MinimumCost(), {}, True),
        (MinimumCost(), {"tpr": 0.0}, True),
        (FLOOR, {}, False),
        (FLOOR, {"tpr": 0.1}, False),
        (FLOOR, {"selection_rate": 0.0}, False),
        (FLOOR, {"tpr": 0.0, "fpr": 0.0}, True),
        (Capacity(0.1), {"tpr": 0.0}, False),
        (Capacity(0.1), {"selection_rate": 0.0}, False),
        (Capacity(0.1), {"fpr": 0.0}, True),
        # With groups of unlike TPR, overall recall weighs them by their priors.
        (Capacity(0.1), {"tpr": 0.1}, True),
        (Capacity(0.1), {}, True),
        (Capacity(0.1, floor=FLOOR), {"tpr": 0.0}, True),
    ],
)
def test_which_problems_need_the_label_frequency(objective, tolerance, needed):
    assert needs_label_frequency(objective, tolerance) is needed
