"""What a rule should achieve, and which rates it must equalize."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

#: Rates that each constraint makes equal between groups.
CONSTRAINTS: dict[str | None, tuple[str, ...]] = {
    "equal_opportunity": ("tpr",),
    "equalized_odds": ("tpr", "fpr"),
    "predictive_equality": ("fpr",),
    "demographic_parity": ("selection_rate",),
    None: (),
}


@dataclass(frozen=True)
class MinimumCost:
    """Least expected cost of wrong decisions; with equal costs, the error rate.

    Parameters
    ----------
    false_negative, false_positive : float, default=1
        Cost of rejecting a positive and of accepting a negative.

    Examples
    --------
    >>> MinimumCost(false_negative=10)
    MinimumCost(false_negative=10.0, false_positive=1.0)
    """

    false_negative: float = 1.0
    false_positive: float = 1.0

    def __post_init__(self) -> None:
        costs = (self.false_negative, self.false_positive)
        if not all(_is_number(c) and 0 <= c < float("inf") for c in costs):
            raise ValueError(f"Costs must be finite numbers >= 0, got {costs!r}.")
        if not any(costs):
            raise ValueError("At least one of the two costs must be above 0.")
        object.__setattr__(self, "false_negative", float(self.false_negative))
        object.__setattr__(self, "false_positive", float(self.false_positive))


@dataclass(frozen=True)
class RecallFloor:
    """A lower bound on every group's TPR, with as few rows accepted as possible.

    Parameters
    ----------
    recall : float
        Lower bound, in [0, 1].
    assured : bool, default=False
        False bounds the estimate: the true TPR of some group then falls below the
        floor nearly always. True accepts more rows, so that the true TPR of all groups
        together is at or above the floor in 95% of samples.

    Examples
    --------
    >>> RecallFloor(0.8, assured=True)
    RecallFloor(recall=0.8, assured=True)
    """

    recall: float
    assured: bool = False

    def __post_init__(self) -> None:
        _check_share("recall", self.recall)
        object.__setattr__(self, "recall", float(self.recall))
        if not isinstance(self.assured, bool):
            raise TypeError(f"assured must be True or False, got {self.assured!r}.")
        if self.assured and self.recall == 1:
            raise ValueError(
                "A recall of 1 cannot be assured from a sample; ask for less than 1."
            )


@dataclass(frozen=True)
class Capacity:
    """The largest overall recall with at most a share of all rows accepted.

    Parameters
    ----------
    share : float
        Largest share of rows that can be accepted, in [0, 1].
    floor : RecallFloor, optional
        A floor under every group's TPR that must fit within the capacity.

    Examples
    --------
    >>> Capacity(0.1)
    Capacity(share=0.1, floor=None)
    """

    share: float
    floor: RecallFloor | None = None

    def __post_init__(self) -> None:
        _check_share("share", self.share)
        object.__setattr__(self, "share", float(self.share))
        if not (self.floor is None or isinstance(self.floor, RecallFloor)):
            raise TypeError(f"floor must be a RecallFloor, got {self.floor!r}.")


Objective = MinimumCost | RecallFloor | Capacity


def check_objective(objective: Any) -> Objective:
    """Objective as given; None is ``MinimumCost()``."""
    if objective is None:
        return MinimumCost()
    if isinstance(objective, MinimumCost | RecallFloor | Capacity):
        return objective
    raise TypeError(
        "objective must be MinimumCost(...), RecallFloor(...), Capacity(...) or None, "
        f"got {objective!r}."
    )


def check_tolerance(constraint: Any, tolerance: Any) -> dict[str, float]:
    """Largest allowed gap of each constrained rate.

    Examples
    --------
    >>> check_tolerance("equalized_odds", 0.05)
    {'tpr': 0.05, 'fpr': 0.05}
    """
    if not isinstance(constraint, str | None) or constraint not in CONSTRAINTS:
        raise ValueError(
            f"constraint must be one of {list(CONSTRAINTS)!r}, got {constraint!r}."
        )
    rates = CONSTRAINTS[constraint]
    if isinstance(tolerance, Mapping):
        if set(tolerance) != set(rates):
            raise ValueError(
                f"The tolerance of {constraint!r} needs one entry for each of "
                f"{list(rates)!r}, got {dict(tolerance)!r}."
            )
        allowed = {rate: tolerance[rate] for rate in rates}
    elif rates or tolerance == 0:
        allowed = dict.fromkeys(rates, tolerance)
    else:
        raise ValueError(
            f"A tolerance of {tolerance!r} needs a constraint, got constraint=None."
        )
    for rate in rates:
        _check_share(f"The tolerance of {rate}", allowed[rate])
    return {rate: float(gap) for rate, gap in allowed.items()}


def check_lottery(lottery: Any) -> None:
    """Refuse all but ``"auto"``, True and False."""
    if not (isinstance(lottery, bool) or lottery == "auto"):
        raise ValueError(f'lottery must be "auto", True or False, got {lottery!r}.')


def needs_label_frequency(objective: Objective, tolerance: Mapping[str, float]) -> bool:
    """Whether the best rule depends on how often positives are labeled.

    TPR and selection rate need no label frequency, hence neither does a problem that
    speaks of these alone. Overall recall weighs the groups by their priors, which only
    drop out where all groups share one TPR or one selection rate.
    """
    if isinstance(objective, MinimumCost) or "fpr" in tolerance:
        return True
    if isinstance(objective, RecallFloor):
        return False
    return objective.floor is not None or list(tolerance.values()) != [0.0]


def _check_share(name: str, value: Any) -> None:
    if not (_is_number(value) and 0 <= value <= 1):
        raise ValueError(f"{name} must be a number in [0, 1], got {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
