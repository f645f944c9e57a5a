"""Rows that engines read differently, and what counts and decisions they must give.

The reference is plain Python: no array, no frame, no code of the library but the
coefficients of the draw.
"""

import math
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from fairpul import DecisionRule, GroupCounts, GroupScores, fit_rule
from fairpul.draw import PRIME, SECOND_PRIME, polynomial
from fairpul.label_frequency import LabelFrequency
from fairpul.objectives import MinimumCost
from fairpul.rates import Estimate, Rates

_SPECIAL = [None, math.nan, math.inf, -math.inf, -1e-9, 1.0000001, -0.0, 0.0, 1.0, 0.5]
_SPECIAL += [1e-300, 5e-324, 1 - 2**-53, 0.0625, math.nextafter(0.0625, 0), 0.1]


@dataclass
class HostileRows:
    """Columns of rows with every kind of trouble, as Python lists."""

    columns: dict[str, list]

    @property
    def records(self):
        return [
            dict(zip(self.columns, row, strict=True))
            for row in zip(*self.columns.values(), strict=True)
        ]

    def arrow(self):
        pa = pytest.importorskip("pyarrow")
        types = {"uid": pa.uint64(), "id": pa.int64(), "site": pa.int32()}
        return pa.table(
            {
                name: pa.array(values, types.get(name), from_pandas=False)
                for name, values in self.columns.items()
            }
        )

    def invalid_kind(self, row, group, weight=None):
        f, y = row["p"], row["dx"]
        if f is None or math.isnan(f):
            return "score missing"
        if not 0 <= f <= 1:
            return "score out of range"
        if any(row[name] is None for name in group):
            return "group missing"
        if y not in (0, 1):
            return "label unknown"
        if weight is not None:
            w = row[weight]
            if w is None or not 0 <= w < 2**21:
                return "weight unusable"
        return None

    def counts(self, group, bins=4096, refine=None, weight=None):
        """Sums by (group key, bin) and invalid rows by kind."""
        cells, invalid = {}, Counter()
        for row in self.records:
            kind = self.invalid_kind(row, group, weight)
            if kind is not None:
                invalid[kind] += 1
                continue
            key = tuple(row[name] for name in group)
            key = key[0] if len(key) == 1 else key or "all"
            number = math.floor(math.sqrt(math.sqrt(row["p"])) * bins)
            if refine and number in refine.get(key, ()):
                number = math.floor(math.sqrt(math.sqrt(row["p"])) * 2**26)
            elif refine:
                number *= 2**26 // bins
            w = 0.0 if weight is None else row[weight]
            whole, square = math.floor(w * 2**20), math.floor(w * w * 2**20)
            y = row["dx"]
            values = [1, y, whole, whole * y, square, square * y]
            cell = cells.setdefault((key, number), [0] * 6)
            cells[key, number] = [a + b for a, b in zip(cell, values, strict=True)]
        return cells, dict(invalid)

    def decisions(self, rule, group, row_id=None):
        return [self._decide(rule, row, group, row_id) for row in self.records]

    def _decide(self, rule, row, group, row_id):
        f = row["p"]
        key = tuple(row[name] for name in group)
        key = key[0] if len(key) == 1 else key or "all"
        known = key in rule.groups
        if f is None or not 0 <= f <= 1 or not known:
            return -1
        if rule.has_lottery and row[row_id] is None:
            return -1
        if rule.bins is not None:
            f = math.floor(math.sqrt(math.sqrt(f)) * rule.bins)
        cuts = rule.cuts[rule.groups.index(key)]
        chance = sum(weight for cut, weight in cuts if f >= cut)
        if len(cuts) == 1 or chance in (0, 1):
            return int(chance)
        if f >= cuts[0][0]:
            return 1
        a, b, c, d, e = polynomial(rule.seed)
        x, y = row[row_id] % PRIME, row[row_id] % SECOND_PRIME
        draw = (a * x**3 + b * x**2 + c * x + d + e * y) % PRIME
        return int(draw < math.ceil(chance * PRIME))


@pytest.fixture(scope="session")
def hostile_rows():
    rng = np.random.default_rng(7)
    n = 6000

    def sprinkle(values, troubles, share):
        at = np.flatnonzero(rng.random(n) < share)
        for row, trouble in zip(at, rng.integers(len(troubles), size=n), strict=False):
            values[row] = troubles[trouble]
        return values

    score = rng.beta(0.3, 0.8, n)
    labeled = (rng.random(n) < 0.6 * score).astype(int).tolist()
    unsigned = [*range(2**64 - n // 2, 2**64), *range(n - n // 2)]
    weight = np.exp(rng.normal(size=n)).tolist()
    return HostileRows(
        {
            "p": sprinkle(score.tolist(), _SPECIAL, 0.1),
            "dx": sprinkle(labeled, [None, 2, 3], 0.02),
            "sex": sprinkle(
                rng.choice(["f", "m"], n).tolist(), [None, "x", "é'"], 0.05
            ),
            "site": sprinkle(rng.integers(-1, 2, n).tolist(), [None], 0.03),
            "urban": sprinkle((rng.random(n) < 0.5).tolist(), [None], 0.03),
            "w": sprinkle(weight, [None, -1.0, math.inf, 2.0**21, 0.0, 1e6], 0.03),
            "id": sprinkle(
                rng.integers(-(2**63), 2**63, n, dtype=np.int64).tolist(), [None], 0.01
            ),
            "uid": unsigned,
            "row": list(range(n)),
        }
    )


@pytest.fixture(scope="session")
def make_rule():
    """Build a rule by hand from groups and cuts."""

    def make(groups, cuts, bins=None, seed=12345):
        nothing = Estimate.undefined("c-free", "made by hand")
        rates = dict.fromkeys(
            ("tpr", "fpr", "selection_rate", "ppv", "prevalence"), nothing
        )
        gaps = dict.fromkeys(("tpr", "fpr", "selection_rate"), nothing)
        known = LabelFrequency(0.5, 0.5, 0.5, "known")
        expected = Rates(dict.fromkeys(groups, rates), gaps)
        return DecisionRule(
            groups=tuple(groups),
            cuts=tuple(cuts),
            expected=expected,
            realized=expected,
            certificate=0.0,
            objective_value=0.0,
            cost_of_snapping=0.0,
            constraint="equalized_odds",
            tolerance={"tpr": 0.0, "fpr": 0.0},
            objective=MinimumCost(),
            label_frequency=dict.fromkeys(groups, known),
            seed=seed,
            lottery_share=dict.fromkeys(groups, 0.0),
            bins=bins,
        )

    return make


@pytest.fixture
def check_refined(hostile_rows):
    """Check that ``refine=True`` gives the rule of the rows, whatever the frame."""
    valid = [
        row
        for row in hostile_rows.records
        if hostile_rows.invalid_kind(row, ["sex"]) is None
    ]
    rows = GroupScores(*([row[name] for row in valid] for name in ("p", "dx", "sex")))

    def check(frame):
        counts = GroupCounts.from_frame(
            frame, score="p", labeled="dx", group="sex", bins=256, refine=True
        )
        fit = partial(
            fit_rule,
            constraint="equalized_odds",
            tolerance=0.05,
            label_frequency=0.8,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rule, exact = fit(counts), fit(rows)
        assert rule.bins == 2**26
        assert rule.certificate <= 1e-5
        assert rule.objective_value == pytest.approx(exact.objective_value, abs=1e-5)
        for group, rates in rule.expected.items():
            for name in ("tpr", "selection_rate"):
                assert rates[name].estimate == pytest.approx(
                    exact.expected[group][name].estimate, abs=1e-4
                )

    return check
