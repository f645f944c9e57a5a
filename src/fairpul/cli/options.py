"""Options that are small languages: priors by group, and what makes an audit fail."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairpul.findings import group_names

Prior = float | tuple[float, float, float]

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*(?P<path>\S.*?)\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>\S+)\s*")


def parse_priors(
    texts: Sequence[str], groups: Sequence[Hashable]
) -> Prior | dict[Hashable, Prior] | None:
    """Class priors as given: one number for all groups, or one for each by name.

    Examples
    --------
    >>> parse_priors(["f=0.10:0.08:0.13", "m=0.2"], ["f", "m"])
    {'f': (0.1, 0.08, 0.13), 'm': 0.2}
    """
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return _prior(texts[0])
    keys = {name: key for key, name in group_names(groups).items()}
    priors: dict[Hashable, Prior] = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign or name not in keys:
            raise ValueError(
                f"--prior must be GROUP=VALUE or GROUP=VALUE:LOW:HIGH with GROUP one "
                f"of {sorted(keys)!r}, got {text!r}."
            )
        if keys[name] in priors:
            raise ValueError(f"--prior is given twice for group {name!r}. Give one.")
        priors[keys[name]] = _prior(value)
    return priors


def _prior(text: str) -> Prior:
    try:
        numbers = [float(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) == 3:
        return numbers[0], numbers[1], numbers[2]
    raise ValueError(
        f"A prior must be a number such as 0.10, or POINT:LOW:HIGH such as "
        f"0.10:0.08:0.13; got {text!r}."
    )


@dataclass(frozen=True)
class Condition:
    """A comparison of one number of an audit with a limit.

    Examples
    --------
    >>> condition = Condition.parse("gaps.tpr.low > 0.05")
    >>> condition.holds({"gaps": {"tpr": {"low": 0.07}}})
    True
    """

    path: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Condition of a text such as ``gaps.tpr.low > 0.05``."""
        match = _CONDITION.fullmatch(text)
        try:
            if match is not None:
                return cls(match["path"], match["sign"], float(match["limit"]))
        except ValueError:
            pass
        raise ValueError(
            "--fail-if takes one comparison with a number, such as "
            f"'gaps.tpr.low > 0.05' or 'rates.f.tpr.high < 0.8'; got {text!r}."
        )

    def value(self, audit: Mapping[str, Any]) -> float:
        """Look up the number that is compared."""
        found = list(_at(audit, self.path))
        if len(found) != 1:
            raise ValueError(
                f"--fail-if: the audit has no number {self.path!r}. It has "
                "gaps.RATE.low, .estimate, .high and rates.GROUP.RATE.low and so on, "
                f"with the groups {list(audit.get('rates', {}))!r}."
            )
        if found[0] is None:
            raise ValueError(
                f"--fail-if: {self.path} is undefined in this audit, so it cannot be "
                "compared. Its reason is in the report."
            )
        return float(found[0])

    def holds(self, audit: Mapping[str, Any]) -> bool:
        """Whether the comparison is true of an audit."""
        return _COMPARISONS[self.sign](self.value(audit), self.limit)

    def __str__(self) -> str:
        return f"{self.path} {self.sign} {self.limit:g}"


def _at(values: Any, path: str) -> list[Any]:
    """Numbers at a dotted path; the name of a group may contain dots itself."""
    if not isinstance(values, Mapping):
        return []
    found = []
    for key, value in values.items():
        if path == key and (value is None or isinstance(value, int | float)):
            found.append(value)
        elif path.startswith(f"{key}."):
            found += _at(value, path[len(key) + 1 :])
    return found
