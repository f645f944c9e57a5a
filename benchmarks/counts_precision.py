"""How much a rule from counts differs from the rule from the rows, plain and refined.

Scores are known functions of the posterior, so the true rates of every rule are known.
One row of the table per scenario, number of bins and seed.

    make precision
"""

import argparse
import csv
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from fairpul import GroupCounts, GroupScores, RecallFloor, fit_rule
from fairpul.refining import refine_rule, row_certificate

SCENARIOS = {
    # name: (intercept, slope of the normal score's logit)
    "balanced": (-0.5, 1.8),
    "prevalence 10%": (-3.2, 1.8),
    "prevalence 0.1%": (-8.5, 1.8),
    "U-shaped": (-1.0, 9.0),
    "ties (64 scores)": (-1.5, 1.8),
}
PROBLEMS = {
    "equal opportunity": {},
    "equal opportunity, recall 0.8": {"objective": RecallFloor(0.8)},
    "equalized odds, tolerance 0.02": {
        "constraint": "equalized_odds",
        "tolerance": 0.02,
    },
    "predictive equality": {"constraint": "predictive_equality"},
}
KNOWN = {"f": 0.8, "m": 0.5}
FIELDS = (
    "scenario",
    "problem",
    "table",
    "rows",
    "seed",
    "loss",
    "certificate",
    "tpr_gap_change",
    "fpr_gap_change",
    "decided_otherwise",
    "passes",
    "cells",
)


def simulate(name, n_rows, seed):
    """Scores, labels and groups, and the posterior of each row."""
    rng = np.random.default_rng([7, seed])
    intercept, slope = SCENARIOS[name]
    group = np.where(rng.random(n_rows) < 0.4, "m", "f")
    logit = intercept + slope * rng.normal(size=n_rows) + 0.4 * (group == "m")
    if name.startswith("ties"):
        logit = np.round(logit * 4) / 4
    posterior = 1 / (1 + np.exp(-logit))
    frequency = np.where(group == "m", KNOWN["m"], KNOWN["f"])
    labeled = rng.random(n_rows) < posterior * frequency
    # Any increasing map of the posterior does; bins are widest near a score of 1.
    scale = 1.0 if name == "U-shaped" else 0.65
    return posterior * scale, labeled, group, posterior


def true_gaps(rule, score, group, posterior):
    """Gaps in true and false positive rates among the people behind the rows."""
    accepted = rule.acceptance_probability(score, group)
    rates = []
    for key in rule.groups:
        of = group == key
        rates.append(
            [
                accepted[of] @ posterior[of] / posterior[of].sum(),
                accepted[of] @ (1 - posterior[of]) / (1 - posterior[of]).sum(),
            ]
        )
    return np.ptp(np.array(rates), axis=0), accepted


def compare(scenario, problem, n_rows, seed):
    """Rows of the table: each kind of counts against the rows themselves."""
    score, labeled, group, posterior = simulate(scenario, n_rows, seed)
    scores = GroupScores(score, labeled, group)
    fit = partial(fit_rule, label_frequency=KNOWN, random_state=0, **PROBLEMS[problem])
    exact = fit(scores)
    gaps, accepted = true_gaps(exact, score, group, posterior)
    count = partial(GroupCounts.from_scores, scores)
    tables = {f"2^{bits}": count(bins=2**bits) for bits in (8, 12, 16)}
    fitted = {
        name: (fit(t), row_certificate(t, fit(t)), t, 1) for name, t in tables.items()
    }
    refined = refine_rule(count(refine=True), fit)
    fitted["2^12 refined"] = (
        refined.rule,
        refined.rule.certificate,
        refined.counts,
        refined.passes,
    )
    for name, (rule, certificate, table, passes) in fitted.items():
        found, decided = true_gaps(rule, score, group, posterior)
        change = abs(found - gaps)
        yield {
            "scenario": scenario,
            "problem": problem,
            "table": name,
            "rows": n_rows,
            "seed": seed,
            "loss": rule.objective_value - exact.objective_value,
            "certificate": certificate,
            "tpr_gap_change": change[0],
            "fpr_gap_change": change[1],
            "decided_otherwise": abs(decided - accepted).mean(),
            "passes": passes,
            "cells": len(table.bin),
        }


def show(rows):
    """Largest difference per scenario and table, over problems and seeds."""
    print(f"{'scenario':18} {'table':13} {'loss':>9} {'tpr gap':>9} {'fpr gap':>9}")
    keys = dict.fromkeys((row["scenario"], row["table"]) for row in rows)
    for key in keys:
        chosen = [row for row in rows if (row["scenario"], row["table"]) == key]
        worst = [
            max(row[field] for row in chosen)
            for field in ("loss", "tpr_gap_change", "fpr_gap_change")
        ]
        print(f"{key[0]:18} {key[1]:13} " + " ".join(f"{w:9.1e}" for w in worst))


def main():
    """Run all scenarios and problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [
        row
        for scenario in SCENARIOS
        for problem in PROBLEMS
        for seed in range(options.seeds)
        for row in compare(scenario, problem, options.rows, seed)
    ]
    show(rows)
    if options.csv:
        options.csv.parent.mkdir(parents=True, exist_ok=True)
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
