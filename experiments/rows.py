"""Result rows: measured once, written as they come, never twice."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpul.metrics import group_rates

METRICS = (
    "f1",
    "aod",
    "eod",
    "error",
    "balanced_accuracy",
    "selection_rate",
    "tpr_gap",
    "fpr_gap",
)


def measure(
    y_true: NDArray[np.int64], decision: NDArray[Any], group: NDArray[np.intp]
) -> dict[str, float]:
    """Metrics of the paper and ours, on true classes.

    F1 without any accepted positive is 0, as in the published tables.
    """
    accepted, positive = decision == 1, y_true == 1
    hits = int((accepted & positive).sum())
    rates = group_rates(y_true, accepted, sensitive_features=group).values()
    tprs, fprs = [r["tpr"] for r in rates], [r["fpr"] for r in rates]
    tpr_gap, fpr_gap = max(tprs) - min(tprs), max(fprs) - min(fprs)
    return {
        "f1": 2 * hits / (int(accepted.sum()) + int(positive.sum())),
        "aod": (tpr_gap + fpr_gap) / 2,
        "eod": tpr_gap,
        "error": float((accepted != positive).mean()),
        "balanced_accuracy": float(
            (accepted[positive].mean() + 1 - accepted[~positive].mean()) / 2
        ),
        "selection_rate": float(accepted.mean()),
        "tpr_gap": tpr_gap,
        "fpr_gap": fpr_gap,
    }


def sampling_noise(
    y_true: NDArray[np.int64], decision: NDArray[Any], group: NDArray[np.intp]
) -> dict[str, float]:
    r"""Gaps to expect of a fair rule on these rows, from sampling alone.

    A rule with the decision's overall TPR and FPR in both of two groups shows an
    expected gap of :math:`\sqrt{2/\pi}\,\sqrt{r(1-r)(1/n_0 + 1/n_1)}` in a rate r.
    """
    gaps = []
    for positive in (1, 0):
        rows = y_true == positive
        rate = float(decision[rows].mean())
        spread = rate * (1 - rate) * (1 / np.bincount(group[rows])).sum()
        gaps.append(float(np.sqrt(2 / np.pi * spread)))
    tpr_gap, fpr_gap = gaps
    return {
        "aod": (tpr_gap + fpr_gap) / 2,
        "eod": tpr_gap,
        "tpr_gap": tpr_gap,
        "fpr_gap": fpr_gap,
    }


@dataclass(frozen=True)
class RowFile:
    """A CSV file that rows are appended to; the key columns name a row.

    A line that an interrupted run left unfinished is dropped, so that its row is
    computed again.
    """

    path: Path
    key: Sequence[str]
    columns: Sequence[str]

    def done(self) -> set[tuple[str, ...]]:
        """Keys of the rows in the file."""
        return {self.key_of(row) for row in self.read()}

    def key_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Key of a row, as text."""
        return tuple(str(row[name]) for name in self.key)

    def read(self) -> list[dict[str, str]]:
        """All complete rows."""
        if not self.path.exists():
            return []
        self._drop_unfinished_line()
        with self.path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write some rows and hand them to the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists() or not self.path.stat().st_size
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*self.key, *self.columns])
            if is_new:
                writer.writeheader()
            writer.writerows(rows)
            file.flush()
            os.fsync(file.fileno())

    def _drop_unfinished_line(self) -> None:
        content = self.path.read_bytes()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):
            with self.path.open("r+b") as file:
                file.truncate(complete)
