"""What is known of the label frequency of each group, and how far it may be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from fairpul.estimate import Estimate
from fairpul.evidence import Rows
from fairpul.label_frequency import (
    LabelFrequency,
    LabelFrequencyWarning,
    label_frequency_bound,
    resolve_label_frequency,
)
from fairpul.label_frequency._top_sets import group_top_sets
from fairpul.measures import is_prior
from fairpul.rates import Rates

_LEANING = ("fpr", "ppv", "prevalence")


@dataclass(frozen=True)
class Knowledge:
    """Label frequency of each group as an audit may use it.

    Attributes
    ----------
    label_frequency : dict
        Group key -> LabelFrequency; ``low`` and ``high`` enclose all that is possible.
    bound : dict
        Group key -> lower 95% confidence bound that the data set.
    contradicted : dict
        Group key -> why the data rule out what was given.
    pooled : {"label frequency", "class prior"} or None
        What was given as one number for several groups.
    """

    label_frequency: dict[Hashable, LabelFrequency]
    bound: dict[Hashable, float]
    contradicted: dict[Hashable, str]
    pooled: str | None

    def confronted(self, rates: Rates) -> Knowledge:
        """Knowledge that also holds what FPRs of the user's values contradict.

        An FPR below 0, beyond chance, says that more positives than rows would be
        accepted.
        """
        below = {
            key: (
                f"the data contradict the {_what(value)} given for group {key!r}: more "
                "positives than rows would be accepted, beyond chance (95% confidence);"
                f" give a {_remedy(value)} one"
            )
            for key, value in self.label_frequency.items()
            if _from_user(value) and rates[key]["fpr"].high < 0
        }
        return replace(self, contradicted=below | self.contradicted)

    def without_contradicted(self, rates: Rates) -> Rates:
        """Rates without those that rest on a value which the data rule out."""
        if not self.contradicted:
            return rates
        by_group: dict[Hashable, dict[str, Estimate]] = {}
        for key, of_group in rates.items():
            by_group[key] = dict(of_group)
            if key in self.contradicted:
                for name in _LEANING:
                    by_group[key][name] = Estimate.undefined(
                        of_group[name].tier, self.contradicted[key]
                    )
        reason = "; ".join(self.contradicted.values())
        gap = Estimate.undefined(rates.gaps["fpr"].tier, reason)
        return Rates(by_group, {**rates.gaps, "fpr": gap})


def know_label_frequency(
    scores: Rows, label_frequency: Any, class_prior: Any, X: Any
) -> Knowledge:
    """Label frequency by group, with the range that an audit must consider.

    A value that the user gave for a group stands for certain; one number for several
    groups does not, unless it is 1: its range, like that of an estimate, starts at the
    lower bound of the group's own data and ends at 1.
    """
    bound = {
        key: _own_bound(scores, number) for number, key in enumerate(scores.groups)
    }
    given = _given(scores, label_frequency, class_prior, X)
    pooled = _pooled(label_frequency, class_prior, given)
    known, contradicted = {}, {}
    for key, value in given.items():
        from_user = _from_user(value)
        if from_user and bound[key] > value.high:
            contradicted[key] = _contradiction(key, value, bound[key])
        if from_user and pooled != "label frequency":
            known[key] = value
        else:
            # What bounds all groups together is no bound for each.
            low = min(value.low, bound[key])
            # The estimate of a small group may come from all groups together.
            at = value.estimate if from_user else max(value.estimate, low)
            known[key] = replace(value, estimate=at, low=low, high=1.0)
    return Knowledge(known, bound, contradicted, pooled)


def _given(
    scores: Rows, label_frequency: Any, class_prior: Any, X: Any
) -> dict[Hashable, LabelFrequency]:
    if isinstance(label_frequency, Mapping) and all(
        isinstance(value, LabelFrequency) for value in label_frequency.values()
    ):
        missing = [key for key in scores.groups if key not in label_frequency]
        if missing:
            raise ValueError(f"label_frequency has no value for groups {missing!r}.")
        return {key: label_frequency[key] for key in scores.groups}
    with warnings.catch_warnings():
        # They are among the warnings of the audit.
        warnings.simplefilter("ignore", LabelFrequencyWarning)
        return resolve_label_frequency(
            label_frequency, class_prior, scores, X=X, random_state=0
        )


def _pooled(
    label_frequency: Any, class_prior: Any, given: Mapping[Hashable, LabelFrequency]
) -> str | None:
    """Name what the user gave as one number for several groups, if anything."""
    if len(given) < 2:
        return None
    if class_prior is not None:
        return None if isinstance(class_prior, Mapping) else "class prior"
    one_number = isinstance(label_frequency, Real)
    return "label frequency" if one_number and label_frequency < 1 else None


def _own_bound(scores: Rows, number: int) -> float:
    top = group_top_sets(scores, number)
    return label_frequency_bound(top.accepted, top.labeled, n_effective=top.n_effective)


def _contradiction(key: Hashable, value: LabelFrequency, bound: float) -> str:
    return (
        f"the data contradict the {_what(value)} given for group {key!r}: more than "
        f"{bound:.3g} of its highest scores are labeled (95% confidence), but at most "
        f"{value.high:.3g} of its positives would be; give a {_remedy(value)} one"
    )


def _from_user(value: LabelFrequency) -> bool:
    return value.method == "known" or is_prior(value)


def _what(value: LabelFrequency) -> str:
    return "class prior" if is_prior(value) else "label frequency"


def _remedy(value: LabelFrequency) -> str:
    return "smaller" if is_prior(value) else "larger"
