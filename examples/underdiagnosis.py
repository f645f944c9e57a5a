"""Find and fix a gap in recall where a disease is recorded less often in one group.

The patients are simulated, so that the true rates can be printed beside what the method
sees: a recorded diagnosis for some of the diseased, and nothing for everybody else.
"""

import textwrap
import warnings

import numpy as np

from fairpul import FairPULClassifier, MinimumCost, audit
from fairpul.datasets import make_underdiagnosed
from fairpul.label_frequency import LabelFrequencyWarning

# To miss a diseased patient is as bad as to refer this many healthy ones in vain.
COST_OF_A_MISS = 4


def main():
    """Fit on last year's patients, audit on this year's, compare with the truth."""
    last_year = make_underdiagnosed(8000, random_state=0)
    this_year = make_underdiagnosed(8000, random_state=1)
    population = make_underdiagnosed(400_000, random_state=2)

    classifier = FairPULClassifier(
        constraint="equal_opportunity",
        objective=MinimumCost(false_negative=COST_OF_A_MISS, false_positive=1),
        random_state=0,
    )
    with warnings.catch_warnings():
        # Printed below, with the estimates that it speaks of.
        warnings.simplefilter("ignore", LabelFrequencyWarning)
        classifier.fit(
            last_year.X, last_year.labeled, sensitive_features=last_year.group
        )
    rule = classifier.rule_

    score = classifier.decision_function(this_year.X)
    n_referred = int(rule.decide(score, this_year.group).sum())
    threshold = np.sort(score)[-n_referred]

    def refer_by_one_threshold(patients):
        return (classifier.decision_function(patients.X) >= threshold).astype(int)

    def refer_by_rule(patients):
        return classifier.predict(patients.X, sensitive_features=patients.group)

    print("THE DATA: diagnoses recorded this year")
    print_patients(this_year)
    print(f"ONE THRESHOLD FOR ALL: refer if score >= {threshold:.3f}")
    print_finding(refer_by_one_threshold, this_year, population)
    print("EQUAL OPPORTUNITY: one threshold per group, as many referred")
    print_finding(refer_by_rule, this_year, population)
    print("THE RULE")
    print_rule(rule)
    print("WHAT IT ASSUMES")
    print(
        "  Within a group, each diseased patient is equally likely to have a recorded\n"
        "  diagnosis. Then the diagnosed stand for all the diseased, and recall (TPR)\n"
        "  needs nothing else: neither the share of disease that is recorded nor the\n"
        "  prevalence. Which common recall is best does need them; estimated here:\n"
    )
    print_label_frequencies(classifier.label_frequency_, this_year)


def print_patients(patients):
    """Sizes of the groups; nobody but a simulation knows the last column."""
    rows = []
    for key in sorted(patients.class_prior):
        member = patients.group == key
        diagnosed, diseased = patients.labeled[member], patients.y_true[member]
        rows.append([key, member.sum(), diagnosed.sum(), diseased.sum()])
    print_table(["group", "patients", "diagnosed", "truly diseased"], rows)


def print_finding(refer, patients, population):
    """Recall of each group as the labels show it, beside the true one."""
    report = audit(
        labeled=patients.labeled, group=patients.group, decision=refer(patients)
    )
    rates = report.rates
    truth = true_recall(refer(population), population)
    rows = [[key, *cells(rates[key]["tpr"]), f"{truth[key]:.3f}"] for key in rates]
    true_gap = max(truth.values()) - min(truth.values())
    rows.append(["gap", *cells(rates.gaps["tpr"]), f"{true_gap:.3f}"])
    print_table(["group", "recall", "95% interval", "true recall"], rows)


def true_recall(referred, patients):
    """Share of the diseased who are referred, by group."""
    diseased = patients.y_true == 1
    return {
        key: referred[diseased & (patients.group == key)].mean()
        for key in sorted(patients.class_prior)
    }


def print_rule(rule):
    """Cuts of a rule without a lottery: one per group."""
    rows = [
        [key, f"score >= {cut:.4f}", *cells(rule.realized[key]["selection_rate"])]
        for key, ((cut, _),) in zip(rule.groups, rule.cuts, strict=True)
    ]
    print_table(["group", "refer if", "share referred", "95% interval"], rows)


def print_label_frequencies(estimated, patients):
    """Estimated share of the diseased with a diagnosis, beside the true one."""
    rows = [
        [key, *cells(c), f"{patients.label_frequency[key]:.3f}"]
        for key, c in estimated.items()
    ]
    print_table(["group", "share recorded", "95% bounds", "true share"], rows)
    for c in estimated.values():
        if c.warning:
            print(
                textwrap.fill(
                    c.warning, 80, initial_indent="  ", subsequent_indent="  "
                )
            )


def cells(estimate):
    """Write a number and its interval as two cells of a table."""
    return [f"{estimate.estimate:.3f}", f"[{estimate.low:.3f}, {estimate.high:.3f}]"]


def print_table(header, rows):
    """Plain columns, a rule below the header and a blank line at the end."""
    lines = [[str(cell) for cell in line] for line in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  " + "  ".join(padded).rstrip())
    print()


if __name__ == "__main__":
    main()
