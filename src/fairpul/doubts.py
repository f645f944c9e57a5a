"""Warnings about the rows or the counts that a rule is fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from fairpul._callers import depth_in_package
from fairpul.group_counts import GroupCounts
from fairpul.group_scores import GroupScores
from fairpul.rule import DecisionRule

_FEW_LABELED = 50
# What a table of counts may hide of a group before it is told: a cut cannot divide a
# bin, nor read a suppressed one.
_HIDDEN_SHARE = 1e-3


def warn_of_few_labels(rows: GroupScores | GroupCounts) -> None:
    """Tell which groups have too few labeled rows for rates to lean on."""
    few = [
        key for s, key in enumerate(rows.groups) if rows.m_effective(s) < _FEW_LABELED
    ]
    if few:
        warnings.warn(
            f"Groups {few!r} have fewer than {_FEW_LABELED} labeled rows: their rates, "
            "and any gap with them, are very uncertain. Read the intervals.",
            stacklevel=depth_in_package(),
        )


def warn_of_coarse_counts(
    rows: GroupScores | GroupCounts, rules: Sequence[DecisionRule]
) -> None:
    """Tell where a table of counts is too coarse for the cuts of some rules."""
    if isinstance(rows, GroupCounts):
        _warn_of_heavy_bins(rows, rules)
        _warn_of_suppression(rows)


def _warn_of_heavy_bins(rows: GroupCounts, rules: Sequence[DecisionRule]) -> None:
    heavy = {}
    for s, key in enumerate(rows.groups):
        cuts = np.array([cut for rule in rules for cut, _ in rule.cuts[s]])
        positions = np.searchsorted(-rows.points(s).cut, -cuts)
        share = rows.heaviest_bin_at(s, positions.tolist())
        if share > _HIDDEN_SHARE:
            heavy[key] = share
    if heavy:
        shares = ", ".join(f"{share:.2%} of {key!r}" for key, share in heavy.items())
        warnings.warn(
            f"A bin at a threshold holds {shares}: the rates of the best rule on the "
            "rows may differ by as much. Count with refine=True, or with more bins.",
            stacklevel=depth_in_package(),
        )


def _warn_of_suppression(rows: GroupCounts) -> None:
    off = {
        key: rates["tpr"]
        for key, rates in rows.cost_of_suppression.items()
        if max(rates.values()) > _HIDDEN_SHARE
    }
    if off:
        shares = ", ".join(f"{share:.2%} in {key!r}" for key, share in off.items())
        warnings.warn(
            "Small cells of the table were suppressed: the TPR of any cut may be off "
            f"by {shares}, which the intervals do not cover. Suppress less, or merge "
            "before suppressing.",
            stacklevel=depth_in_package(),
        )
