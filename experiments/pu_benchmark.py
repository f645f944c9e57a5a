"""The PU-fairness benchmark: ``python -m experiments.pu_benchmark``.

Judged on fresh rows with true classes: error, and recall where a fifth of all rows can
be accepted, against the gaps in TPR and FPR, by how positives came to be labeled.
Interrupted, it goes on from there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments import pu_figures, pu_leaderboard
from experiments.harness import attempt, ignore_expected_warnings, run_missing
from experiments.methods import Decisions
from experiments.pu_data import DATASETS, MECHANISMS, PUTask, pu_task
from experiments.pu_methods import CAPACITY, METHODS, PUMethod
from experiments.rows import RowFile, measure, sampling_noise
from fairpul import audit
from fairpul.findings import BIASES
from fairpul.metrics import group_rates

RESULTS = Path(__file__).parent / "results"
KEY = ("dataset", "mechanism", "base_model", "method", "seed")
METRICS = (
    *("error", "tpr_gap", "fpr_gap", "larger_gap", "noise_tpr_gap", "noise_larger_gap"),
    *("recall", "worst_recall", "selection_rate"),
    *("recall_at_capacity", "tpr_gap_at_capacity", "noise_at_capacity"),
    *("audited_tpr_gap", "audited_low", "audited_high", "audit_holds"),
    *("gamma", "gamma_low", "labeling_bias", "hidden_gap_holds"),
)
COLUMNS = (*METRICS, "told", "seconds", "failure")
# Of the synthetic data, where two models are worth the time.
_BASES = {
    "underdiagnosed": ("Lin.LR", "Boosting"),
    "two_groups": ("Lin.LR", "Boosting"),
}


@dataclass(frozen=True)
class Cell:
    """One data set, labeling mechanism and base model, with the methods to run."""

    dataset: str
    mechanism: str
    base: str
    methods: tuple[str, ...] = tuple(METHODS)

    def __str__(self) -> str:
        return f"{self.dataset} {self.mechanism} {self.base}"


def cells() -> list[Cell]:
    """List every data set under every mechanism with its base models."""
    return [
        Cell(dataset, mechanism, base)
        for dataset in DATASETS
        for mechanism in MECHANISMS
        for base in _BASES.get(dataset, ("Lin.LR",))
    ]


def run(cell: Cell, seed: int, methods: Iterable[str]) -> Iterator[dict[str, object]]:
    """Rows of some methods on one split; a method that fails gives a row as well."""
    task = pu_task(cell.dataset, cell.mechanism, cell.base, seed)

    def measured(name: str) -> dict[str, object]:
        return dict(measure_method(task, METHODS[name]))

    for name in methods:
        row = dict(zip(KEY, key(cell, name, seed), strict=True))
        yield attempt(row | {"told": METHODS[name].told}, measured, name)


def key(cell: Cell, method: str, seed: int) -> tuple[str, ...]:
    """Values of the key columns of a row."""
    return cell.dataset, cell.mechanism, cell.base, method, str(seed)


def measure_method(task: PUTask, method: PUMethod) -> dict[str, float]:
    """Everything that is read off a method's decisions on the test rows."""
    test = task.split.test
    decision = method.decide(task)
    found = measure(test.y_true, decision, test.group)
    noise = sampling_noise(test.y_true, decision, test.group)
    recalls = _recalls(task, decision)
    full = at_capacity(method.fill(task) if method.fill else decision, task.split.seed)
    full_recalls = _recalls(task, full)
    return {
        **{name: found[name] for name in ("error", "tpr_gap", "fpr_gap")},
        "larger_gap": max(found["tpr_gap"], found["fpr_gap"]),
        "noise_tpr_gap": noise["tpr_gap"],
        "noise_larger_gap": max(noise["tpr_gap"], noise["fpr_gap"]),
        "recall": float((decision[test.y_true == 1] == 1).mean()),
        "worst_recall": min(recalls),
        "selection_rate": found["selection_rate"],
        "recall_at_capacity": float(full[test.y_true == 1].mean()),
        "tpr_gap_at_capacity": max(full_recalls) - min(full_recalls),
        "noise_at_capacity": sampling_noise(test.y_true, full, test.group)["tpr_gap"],
        **_audited(task, decision, found["tpr_gap"]),
    }


def at_capacity(decision: Decisions, seed: int) -> Decisions:
    """Fill a capacity exactly: accepted rows first, the rest by lot.

    A rule without an order of its own leaves no other way to who has fewer places, or
    more, than it accepts rows.
    """
    draw = np.random.default_rng(seed).uniform(size=len(decision))
    first = np.lexsort((draw, decision != 1))
    full = np.zeros(len(decision), dtype=np.int64)
    full[first[: round(CAPACITY * len(decision))]] = 1
    return full


def _recalls(task: PUTask, decision: Decisions) -> list[float]:
    test = task.split.test
    rates = group_rates(test.y_true, decision == 1, sensitive_features=test.group)
    return [rate["tpr"] for rate in rates.values()]


def _audited(task: PUTask, decision: Decisions, true_gap: float) -> dict[str, float]:
    """Audit the gap in TPR on the test rows by their PU labels.

    ``labeling_bias`` is the truth behind Gamma*: how many times as easily an accepted
    positive is labeled as a rejected one, in one group over the other. The hidden gap
    is read at the smallest bias of the audit that covers the true one of each group.
    """
    test = task.split.test
    report = audit(
        labeled=task.test_labeled,
        group=test.group,
        decision=decision,
        label_frequency=1.0,  # of no account: the TPR does without
    )
    gap, gamma = report.gaps["tpr"], report.sensitivity["labeling_bias"]
    found = {
        "audited_tpr_gap": gap.estimate,
        "audited_low": gap.low,
        "audited_high": gap.high,
        "audit_holds": float(gap.low <= true_gap <= gap.high),
        "gamma": gamma.estimate,
        "gamma_low": gamma.low,
    }
    ratios = [
        _mean(task.propensity[rows & (decision == 1)])
        / _mean(task.propensity[rows & (decision != 1)])
        for s in (0, 1)
        for rows in [(test.group == s) & (test.y_true == 1)]
    ]
    found["labeling_bias"] = max(ratios[0] / ratios[1], ratios[1] / ratios[0])
    each = max(max(ratio, 1 / ratio) for ratio in ratios)
    enough = [bias for bias in BIASES if bias >= each]
    if enough:
        hidden = report.sensitivity["hidden_gap"][f"{enough[0]:g}"]
        found["hidden_gap_holds"] = float(hidden.low <= true_gap <= hidden.high)
    return found


def _mean(values: np.ndarray) -> float:
    """Mean; nan of nothing, as for the rejected of a rule that accepts everybody."""
    return float(values.mean()) if len(values) else float("nan")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then write the CSV, the page and the plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="splits of each data set")
    parser.add_argument("--raw", type=Path, default=Path("build/pu-benchmark"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    ignore_expected_warnings()
    rows = RowFile(options.raw / "rows.csv", KEY, COLUMNS)
    # By seed, so that an interrupted run has whole splits of everything.
    run_missing(
        rows,
        [(cell, seed) for seed in range(options.seeds) for cell in cells()],
        run,
        key,
    )
    options.results.mkdir(parents=True, exist_ok=True)
    measured = pu_leaderboard.read(rows, options.seeds)
    pu_leaderboard.write(measured, options.results)
    pu_figures.draw(measured, options.results)
    print(f"Leaderboard and plots are in {options.results}")


if __name__ == "__main__":
    main()
