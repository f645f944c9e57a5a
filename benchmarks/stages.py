"""Where the time of a fit goes, and how exact its rule is, read from the rows."""

import numpy as np
from timing import cpu_seconds

from fairpul import GroupScores
from fairpul.deployment import rule_of
from fairpul.fitting import program_of
from fairpul.label_frequency import resolve_label_frequency
from fairpul.objectives import MinimumCost, check_tolerance
from fairpul.solvers import solve

# Few enough that all of a fit is the cost of calling NumPy.
FEW_ROWS = 500


class Fit:
    """The stages of a fit of an exact mixture, as methods to be called in order."""

    def __init__(self, score, labeled, group, frequency, constraint):
        self.data = score, labeled, group
        self.frequency, self.constraint = frequency, constraint

    def check_and_sort(self):
        """Check the arrays; sort the rows, or count them in bins."""
        self.rows = GroupScores(*self.data)

    def hulls(self):
        """Find the hull of each group."""
        self.rows.hull(0)

    def solve(self):
        """Check the label frequency, set up the problem and solve it."""
        allowed = check_tolerance(self.constraint, 0.0)
        self.known = resolve_label_frequency(self.frequency, None, self.rows)
        self.program = program_of(self.rows, self.known, MinimumCost(), allowed)
        self.solution = solve(self.program, MinimumCost())

    def lottery_and_rule(self):
        """Find the smallest lottery and write down the rule."""
        self.rule = rule_of(
            self.rows,
            self.program,
            self.solution,
            constraint=self.constraint,
            objective=MinimumCost(),
            label_frequency=self.known,
            lottery=True,
        )


STAGES = {
    "check and sort or count": Fit.check_and_sort,
    "hulls": Fit.hulls,
    "solve": Fit.solve,
    "lottery and rule": Fit.lottery_and_rule,
}


def stage_seconds(data, constraint, repeats):
    """Median CPU seconds of every stage."""
    spent = []
    for _ in range(repeats + 1):
        fit = Fit(*data, constraint)
        spent.append(
            [cpu_seconds(lambda: stage(fit)) for stage in STAGES.values()]  # noqa: B023
        )
    return dict(zip(STAGES, np.median(spent[1:], axis=0).tolist(), strict=True))


def exactness(rule, score, labeled, group, frequency):
    """Excess of a rule's cost over its lower bound, and its largest gap.

    Both from the acceptance probability of every row, not from what the rule says.
    """
    accepted = rule.acceptance_probability(score, group)
    rates, cost = {"tpr": [], "fpr": []}, 0.0
    for key, c in frequency.items():
        own = group == key
        chance, hits = accepted[own], accepted[own & labeled]
        prior = len(hits) / len(chance) / c
        tpr, selected = hits.mean(), chance.mean()
        rates["tpr"].append(tpr)
        rates["fpr"].append((selected - prior * tpr) / (1 - prior))
        share = len(chance) / len(score)
        cost += share * (prior * (1 - tpr) + selected - prior * tpr)
    gap = max(float(np.ptp(rates[name])) for name in rule.tolerance)
    return cost - (rule.objective_value - rule.certificate), gap
