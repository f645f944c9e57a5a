"""Every rate of every group: at its label frequency, or over all that are possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairpul.estimate import Estimate
from fairpul.label_frequency import LabelFrequency
from fairpul.measures import (
    FEWEST_LABELED,
    PRIOR_METHOD,
    RATES,
    Measured,
    bounded,
    false_positive_rate,
    is_prior,
    ppv,
    prevalence,
    selection_rate,
    true_positive_rate,
)
from fairpul.tally import Tally
from fairpul.unlabeled import (
    unlabeled_ppv,
    unlabeled_prevalence,
    unlabeled_selection_rate,
)

#: Whom selection rate, PPV and prevalence are about.
POPULATIONS = ("all", "unlabeled")
_FEWEST_CLUSTERS = 15
# Closer than this to the labeled share, a label frequency leaves hardly a negative.
_LEAST_ABOVE_SHARE = 1.02

Columns = dict[str, list[Measured]]
Formula = Callable[[Tally, LabelFrequency, float], Measured]


def measure(
    tallies: Sequence[Tally],
    groups: Sequence[Hashable],
    label_frequency: Mapping[Hashable, LabelFrequency] | None,
    level: float,
    population: str = "all",
) -> Columns:
    """Measure every rate of every group: name -> one per group."""
    _check_clusters(tallies, groups)
    of_unlabeled = population == "unlabeled"
    selection = unlabeled_selection_rate if of_unlabeled else selection_rate
    formulas: dict[str, Formula] = {
        "fpr": false_positive_rate,  # every negative is unlabeled
        "ppv": unlabeled_ppv if of_unlabeled else ppv,
        "prevalence": unlabeled_prevalence if of_unlabeled else prevalence,
    }
    columns: Columns = {name: [] for name in RATES}
    for key, group in zip(groups, tallies, strict=True):
        known = None if label_frequency is None else label_frequency[key]
        columns["tpr"].append(true_positive_rate(group, level))
        columns["selection_rate"].append(selection(group, level))
        tier = "prior" if is_prior(known) else "label frequency"
        reason = _why_undefined(group, key, known)
        for name, formula in formulas.items():
            if known is None or reason is not None:
                missing = Estimate.undefined(tier, reason or "")
                columns[name].append(Measured(missing))
            else:
                columns[name].append(formula(group, known, level))
    return columns


def measure_ranges(
    tallies: Sequence[Tally],
    groups: Sequence[Hashable],
    label_frequency: Mapping[Hashable, LabelFrequency],
    level: float,
    population: str = "all",
) -> Columns:
    r"""Measure as :func:`measure`, over all label frequencies from low to high.

    The interval of an FPR, PPV or prevalence becomes the union of its intervals. Each
    of these rates is monotone in c, so the two ends and the estimate give the union.
    """
    point = measure(tallies, groups, label_frequency, level, population)
    possible = {
        key: possible_range(group, label_frequency[key])
        for key, group in zip(groups, tallies, strict=True)
    }
    ends = [
        measure(
            tallies,
            groups,
            {
                key: replace(label_frequency[key], estimate=possible[key][side])
                for key in groups
            },
            level,
            population,
        )
        for side in (0, 1)
    ]
    for number, key in enumerate(groups):
        if not math.isnan(ends[0]["fpr"][number].estimate.estimate):
            ends[0]["fpr"][number] = _fpr_at_most_positives(
                tallies[number], possible[key][0], level
            )
    for name in ("fpr", "ppv", "prevalence"):
        for number, key in enumerate(groups):
            low, high = possible[key]
            if low < high:
                point[name][number] = _over(
                    point[name][number],
                    [columns[name][number] for columns in ends],
                    _range_in_words(tallies[number], label_frequency[key], low, high),
                )
    return point


def possible_range(group: Tally, known: LabelFrequency) -> tuple[float, float]:
    """Label frequencies that leave the group some negatives."""
    share = group.labeled_share
    least = share if is_prior(known) else min(1.0, _LEAST_ABOVE_SHARE * share)
    low = max(min(known.low, known.estimate), least)
    return low, max(low, known.high)


def _fpr_at_most_positives(group: Tally, c: float, level: float) -> Measured:
    r"""FPR at the lowest label frequency, by the largest prior that it allows.

    Near :math:`\pi = 1` the error of the labeled share has no linear approximation.
    Its upper end goes into the prior instead, at which the FPR is then taken.
    """
    whole = LabelFrequency(1.0, 1.0, 1.0, "known")
    labeled = prevalence(group, whole, level).estimate
    least = min(1.0, _LEAST_ABOVE_SHARE * group.labeled_share)
    c = max(least, c * labeled.estimate / labeled.high)
    return false_positive_rate(group, LabelFrequency(c, c, c, PRIOR_METHOD), level)


def _over(point: Measured, ends: Sequence[Measured], reason: str) -> Measured:
    """Widen a rate by its intervals at the ends of the range."""
    estimates = [point.estimate, *(end.estimate for end in ends)]
    if any(math.isnan(value.estimate) for value in estimates):
        return point
    inside = [min(1.0, max(0.0, value.estimate)) for value in estimates]
    value, tier = point.estimate.estimate, point.estimate.tier
    low = min(value.low for value in estimates)
    high = max(value.high for value in estimates)
    estimate = bounded(value, low, high, tier, reason)
    return replace(point, estimate=estimate, span=(min(inside), max(inside)))


def _range_in_words(
    group: Tally, known: LabelFrequency, low: float, high: float
) -> str:
    if is_prior(known):
        share = group.labeled_share
        return (
            f"over class priors from {share / high:.3g} to {share / low:.3g}, sampling "
            "error included"
        )
    return (
        f"over label frequencies from {low:.3g} to {high:.3g}, sampling error included;"
        f" the estimate is at {known.estimate:.3g} ({known.method})"
    )


def _check_clusters(tallies: Sequence[Tally], groups: Sequence[Hashable]) -> None:
    few = [
        key
        for key, group in zip(groups, tallies, strict=True)
        if group.clusters is not None
        and np.count_nonzero(group.clusters.sums[:, 1]) < _FEWEST_CLUSTERS
    ]
    if few:
        raise ValueError(
            f"At least {_FEWEST_CLUSTERS} clusters with a labeled row are required in "
            f"each group for an interval; groups {few!r} have fewer. Merge groups, or "
            "leave the clusters out if the rows are independent."
        )


def _why_undefined(
    group: Tally, key: Hashable, known: LabelFrequency | None
) -> str | None:
    """Reason why FPR, PPV and prevalence of a group have no value, if there is one."""
    if group.n == 0:
        return "no row"
    if known is None:
        return "needs a label frequency or a class prior"
    fully_labeled = known.estimate == 1 and known.method == "known"
    if group.m_effective < FEWEST_LABELED and not fully_labeled:
        return f"fewer than {FEWEST_LABELED} labeled rows"
    if known.estimate < group.labeled_share or (
        known.estimate == group.labeled_share < 1
    ):
        raise ValueError(
            f"The label frequency of group {key!r} must exceed its labeled share "
            f"{group.labeled_share:.4g}, got {known.estimate:.4g}: the class prior, "
            "their ratio, would not be below 1."
        )
    return None
