"""A number with its interval and what it assumes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: What a number leans on besides the rows, from least to most.
TIERS = ("c-free", "label frequency", "prior")


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, its interval, and the tier of what it assumes.

    Attributes
    ----------
    estimate, low, high : float
        nan where undefined.
    tier : {"c-free", "label frequency", "prior"}
        What the number leans on besides the rows.
    reason : str or None
        Why the number is undefined, or what its interval is conditional on.

    Examples
    --------
    >>> print(Estimate(0.5, 0.25, 0.75, "c-free"))
    0.500 [0.250, 0.750]
    """

    estimate: float
    low: float
    high: float
    tier: str
    reason: str | None = None

    @classmethod
    def undefined(cls, tier: str, reason: str) -> Estimate:
        """Estimate without a value, and why."""
        return cls(math.nan, math.nan, math.nan, tier, reason)

    def to_dict(self) -> dict[str, Any]:
        """Fields by name, None in place of nan."""
        return {
            "estimate": None if math.isnan(self.estimate) else self.estimate,
            "low": None if math.isnan(self.low) else self.low,
            "high": None if math.isnan(self.high) else self.high,
            "tier": self.tier,
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Estimate:
        """Estimate back from :meth:`to_dict`."""
        estimate, low, high = (
            math.nan if fields[name] is None else float(fields[name])
            for name in ("estimate", "low", "high")
        )
        return cls(estimate, low, high, fields["tier"], fields["reason"])

    def __str__(self) -> str:
        if math.isnan(self.estimate):
            return "nan"
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Estimate):
            return NotImplemented
        return self.to_dict() == other.to_dict()  # None equals None, nan is not nan

    def __hash__(self) -> int:
        return hash(tuple(self.to_dict().values()))
