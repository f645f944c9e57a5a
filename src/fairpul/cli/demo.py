"""The demonstration: under-diagnosis in two simulated groups, found and fixed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpul import Capacity, GroupScores, fit_rule
from fairpul import audit as audit_scores
from fairpul._files import replacing
from fairpul.cli.console import show, show_table
from fairpul.cli.pages import page_of
from fairpul.cli.printing import print_audit, print_rule
from fairpul.datasets import SimulatedData, make_underdiagnosed
from fairpul.report.words import headline, percent, points

DEMO_ROWS = 8000
_GROUPS = ("women", "men")
_CAPACITY = 0.2
# Enough to show the truth to a tenth of a percent.
_POPULATION = 200_000


def run_demo(out: Path, n_rows: int, date: str | None) -> None:
    """Simulate, audit one threshold for all, fit a rule, audit it, write the page."""
    years = [
        make_underdiagnosed(n_rows, groups=_GROUPS, random_state=year)
        for year in range(3)
    ]
    population = make_underdiagnosed(_POPULATION, groups=_GROUPS, random_state=3)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(years[0].X, years[0].labeled)

    def scored(data: SimulatedData) -> GroupScores:
        score = model.predict_proba(data.X)[:, 1]
        return GroupScores(score, data.labeled, data.group)

    this_year, next_year = scored(years[1]), scored(years[2])
    with replacing(out) as beside:
        show("1. AUDIT. Simulated patients; a score from recorded diagnoses; the")
        show(f"   {_CAPACITY:.0%} with the highest scores are referred.\n")
        before = audit_scores(this_year, capacity=_CAPACITY)
        print_audit(before)
        show("\n2. FIX. As many referrals, with equal recall in both groups.\n")
        rule = fit_rule(this_year, objective=Capacity(_CAPACITY), random_state=0)
        print_rule(rule)
        show("\n3. CHECK on the patients of the next year, whom the rule never saw.\n")
        print_audit(audit_scores(next_year, rule=rule))
        page = page_of(
            before,
            None,
            [],
            title="Who is referred? An audit of simulated patients",
            date=date,
            source=(
                "simulated patients, whose disease is recorded less often among women "
                "(30%) than among men (70%)"
            ),
        )
        beside.write_text(page, "utf-8")
    everybody = scored(population)
    cut = np.sort(this_year.score)[-int(_CAPACITY * len(this_year))]
    decide = rule.decide(everybody.score, population.group)
    show("\n4. THE TRUTH, which only a simulation knows:\n")
    _print_truth(population, everybody.score >= cut, decide == 1)
    show("\nTHE FINDING")
    show(headline(before), style="bold")
    show(
        "Separate thresholds with equal recall select as many; what gap is left on new "
        "patients is above, with its interval."
    )
    show(f"Open the page: {out}")


def _print_truth(data: SimulatedData, before: np.ndarray, after: np.ndarray) -> None:
    """Print the true recall of each group under both ways to decide."""
    rows, recalls = [], []
    for key in _GROUPS:
        diseased = (data.group == key) & (data.y_true == 1)
        recalls.append([before[diseased].mean(), after[diseased].mean()])
        rows.append([key, *map(percent, recalls[-1])])
    gaps = np.ptp(recalls, axis=0)
    rows.append(["gap, in points", *map(points, gaps)])
    show_table(["true recall", "one threshold", "rule"], rows)
