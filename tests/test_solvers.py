"""The solvers against the full LP, and against cases worked by hand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from scipy.stats import norm

from fairpul import fit_rule
from fairpul.group_scores import GroupScores
from fairpul.lottery import exact_mixtures
from fairpul.objectives import Capacity, MinimumCost, RecallFloor, check_tolerance
from fairpul.operating_points import OperatingPoints
from fairpul.solvers import Follower, GroupHull, make_program, solve
from fairpul.solvers.columns import solve_by_columns
from fairpul.solvers.program import lagrangian_bound, rate_of
from fairpul.solvers.single_cuts import best_single_cuts

CONSTRAINTS = [
    None,
    "equal_opportunity",
    "equalized_odds",
    "predictive_equality",
    "demographic_parity",
]
# HiGHS itself answers to 1e-10.
EXACT = 1e-9


def full_lp(tables, gaps, objective):
    """Optimum over all cuts at once, written out row by row; None if there is none.

    ``tables`` has the TPR, selection rate and FPR of each cut of every group, the
    group's share and its prior.
    """
    k = len(tables)
    ends = np.cumsum([0] + [len(tpr) for tpr, *_ in tables])
    n = ends[-1] + len(gaps)
    cost, upper, upper_end, equal = np.zeros(n), [], [], []
    floor = objective if isinstance(objective, RecallFloor) else None
    if isinstance(objective, Capacity):
        floor = objective.floor
    positives = sum(share * prior for *_, share, prior in tables)

    def row(s, value):
        line = np.zeros(n)
        line[ends[s] : ends[s + 1]] = value
        return line

    for s, (tpr, selection, fpr, share, prior) in enumerate(tables):
        if isinstance(objective, MinimumCost):
            missed = prior * objective.false_negative * (1 - tpr)
            cost += row(
                s, share * (missed + (1 - prior) * objective.false_positive * fpr)
            )
        elif isinstance(objective, Capacity):
            cost += row(s, share * prior * (1 - tpr) / positives)
        else:
            cost += row(s, share * selection)
        equal.append(row(s, 1.0))
        if floor is not None:
            upper.append(-row(s, tpr))
            upper_end.append(-floor.recall)
        values = {"tpr": tpr, "selection_rate": selection, "fpr": fpr}
        for number, (rate, gap) in enumerate(gaps.items()):
            line = row(s, values[rate])
            line[ends[-1] + number] = -1
            upper += [line, -line]
            upper_end += [gap, 0.0]
    if isinstance(objective, Capacity):
        upper.append(sum(row(s, t[3] * t[1]) for s, t in enumerate(tables)))
        upper_end.append(objective.share)
    result = linprog(
        cost,
        A_ub=sparse.csr_array(np.array(upper)) if upper else None,
        b_ub=upper_end or None,
        A_eq=sparse.csr_array(np.array(equal)),
        b_eq=np.ones(k),
        bounds=[(0, None)] * ends[-1] + [(0, 1)] * len(gaps),
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    return result.fun if result.status == 0 else None


def table_of(score, labeled, weight, share, frequency):
    """Rates of every cut of one group's rows, counted cut by cut."""
    cuts = np.append(np.inf, np.unique(score)[::-1])
    accepted = (score >= cuts[:, None]).astype(float)
    mass, hits = weight.sum(), weight[labeled].sum()
    tpr = accepted[:, labeled] @ weight[labeled] / hits
    selection = accepted @ weight / mass
    prior = hits / mass / frequency
    return tpr, selection, (selection - prior * tpr) / (1 - prior), share, prior


def tables_of(rows, frequency):
    """Rates of every cut of every group, hulls unknown."""
    weight = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
    return [
        table_of(
            rows.score[member],
            rows.labeled[member],
            weight[member],
            weight[member].sum() / weight.sum(),
            c,
        )
        for member, c in ((rows.codes == s, c) for s, c in frequency.items())
    ]


def tables_of_hulls(program):
    return [
        (h.points.tpr, h.points.selection_rate, h.fpr, h.share, h.prior)
        for h in program.hulls
    ]


def random_rows(rng):
    """Rows of 2 to 6 groups: ties, tiny groups, skewed weights."""
    k, n = int(rng.integers(2, 7)), int(rng.integers(60, 1500))
    group = rng.choice(k, n, p=rng.dirichlet(np.ones(k)))
    group[: 4 * k] = np.repeat(np.arange(k), 4)
    score = np.round(rng.random(n), int(rng.integers(1, 6)))
    labeled = rng.random(n) < score * rng.uniform(0.2, 0.9, k)[group]
    labeled[: 4 * k] = np.tile([True, False, True, False], k)
    weight = None if rng.random() < 0.5 else rng.exponential(1, n) ** 3
    return GroupScores(score, labeled, group, sample_weight=weight)


def random_problem(rng):
    """Rows, label frequencies, constraint, tolerances and objective."""
    rows = random_rows(rng)
    k = len(rows.groups)
    least = np.array([rows.points(s).labeled_share for s in range(k)])
    frequency = rng.uniform(least + 0.02 * (1 - least), 1)
    constraint = CONSTRAINTS[rng.integers(5)]
    gaps = check_tolerance(constraint, 0.0)
    gaps = {rate: float(rng.choice([0, 0.02, 0.1])) for rate in gaps}
    kind = rng.random()
    objective = MinimumCost(float(rng.uniform(0, 5)), float(rng.uniform(0.01, 5)))
    if kind < 0.25:
        objective = RecallFloor(float(rng.random()))
    elif kind < 0.4:
        objective = Capacity(float(rng.random()))
    elif kind < 0.55:
        objective = Capacity(float(rng.random()), RecallFloor(float(rng.random() / 2)))
    return rows, dict(enumerate(frequency.tolist())), constraint, gaps, objective


def random_program(rng):
    rows, frequency, _, gaps, objective = random_problem(rng)
    hulls = [
        GroupHull(rows.points(s).hull(), float(rows.shares[s]), c)
        for s, c in frequency.items()
    ]
    floor = objective if isinstance(objective, RecallFloor) else None
    if isinstance(objective, Capacity):
        floor = objective.floor
    floors = np.full(len(hulls), 0.0 if floor is None else floor.recall)
    return make_program(hulls, objective, gaps, floors), objective


def mixture_rates(program, solution):
    """Rates of the mixtures of cuts that a rule would deploy."""
    rates = {"tpr": [], "selection_rate": [], "fpr": []}
    mixtures = exact_mixtures(program.hulls, solution)
    for hull, mixture in zip(program.hulls, mixtures, strict=True):
        cuts, weights = list(mixture), list(mixture.values())
        for rate, values in rates.items():
            values.append(hull.rate(rate)[cuts] @ weights)
    return {rate: np.array(values) for rate, values in rates.items()}


@pytest.mark.filterwarnings("ignore:.*label")
@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_random_rules_equal_the_full_lp(seed):
    rng = np.random.default_rng(seed)
    infeasible = 0
    for _ in range(100):
        rows, frequency, constraint, gaps, objective = random_problem(rng)
        tables = tables_of(rows, frequency)
        reference = full_lp(tables, gaps, objective)
        asked = {
            "constraint": constraint,
            "tolerance": gaps,
            "objective": objective,
            "label_frequency": frequency,
            "lottery": True,
        }
        if reference is None:
            with pytest.raises(ValueError, match="takes at least"):
                fit_rule(rows, **asked)
            infeasible += 1
            continue
        rule = fit_rule(rows, **asked)
        value = rule.objective_value
        if isinstance(objective, Capacity):
            value = 1 - value
        assert value == pytest.approx(reference, abs=EXACT)
        assert 0 <= rule.certificate < EXACT
        check_decisions(rule, rows, tables, gaps, objective, reference)
    assert infeasible < 20


def check_decisions(rule, rows, tables, gaps, objective, reference):
    """Assert what a rule promises on the rows, from its probabilities alone."""
    accepted = rule.acceptance_probability(rows.score, rows.codes)
    weight = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
    everyone = [rows.codes == s for s in range(len(tables))]
    tpr, selection = (
        np.array([np.average(accepted[r], weights=weight[r]) for r in of_groups])
        for of_groups in ([r & rows.labeled for r in everyone], everyone)
    )
    share, prior = np.array([table[3:] for table in tables]).T
    fpr = (selection - prior * tpr) / (1 - prior)
    rates = {"tpr": tpr, "selection_rate": selection, "fpr": fpr}
    for rate, gap in gaps.items():
        assert np.ptp(rates[rate]) <= gap + EXACT
    if isinstance(objective, MinimumCost):
        missed = objective.false_negative * prior * (1 - tpr)
        value = share @ (missed + objective.false_positive * (1 - prior) * fpr)
    elif isinstance(objective, RecallFloor):
        value = share @ selection
        assert tpr.min() >= objective.recall - EXACT
    else:
        value = 1 - (share * prior) @ tpr / (share @ prior)
        assert share @ selection <= objective.share + EXACT
        if objective.floor is not None:
            assert tpr.min() >= objective.floor.recall - EXACT
    assert value == pytest.approx(reference, abs=EXACT)


@pytest.mark.parametrize("seed", range(5))
def test_following_the_tolerance_gives_what_column_generation_finds(seed):
    rng = np.random.default_rng(seed)
    followed = 0
    for _ in range(20):
        program, _ = random_program(rng)
        follower = Follower(program)
        for gap in rng.permutation([0.0, 0.003, 0.01, 0.05, 0.3]):
            program = replace(
                program, tolerance=dict.fromkeys(program.tolerance, float(gap))
            )
            found = follower.at(program.tolerance)
            try:
                reference = solve_by_columns(program)
            except ValueError:
                assert found is None
                continue
            if found is None:
                continue
            followed += 1
            assert found.value == pytest.approx(reference.value, abs=EXACT)
            assert found.certificate < 1e-12
            assert (found.tpr >= program.floor - 1e-12).all()
            assert program.shares @ found.selection_rate <= program.budget + 1e-12
            for rate, allowed in program.tolerance.items():
                values = [
                    hull.rate(rate)[list(mixture)] @ list(mixture.values())
                    for hull, mixture in zip(program.hulls, found.mixtures, strict=True)
                ]
                assert np.ptp(values) <= allowed + 1e-12
    assert followed > 80


def test_too_many_groups_to_follow_are_left_to_column_generation():
    rng = np.random.default_rng(0)
    n, k = 20_000, 120
    group = np.arange(n) % k
    score = rng.random(n)
    rows = GroupScores(score, rng.random(n) < 0.5 * score, group)
    hulls = [GroupHull(rows.hull(s), float(rows.shares[s]), 0.6) for s in range(k)]
    gaps = {"tpr": 0.05, "fpr": 0.05}
    program = make_program(hulls, MinimumCost(), gaps, np.zeros(k))
    assert Follower(program).at(gaps) is None
    assert solve(program, MinimumCost()).certificate < EXACT


def test_nearest_feasible_capacity_is_named():
    rng = np.random.default_rng(3)
    rows = random_rows(rng)
    hulls = [
        GroupHull(rows.points(s).hull(), float(rows.shares[s]), 1.0)
        for s in range(len(rows.groups))
    ]
    floor = np.full(len(hulls), 0.8)
    objective = Capacity(0.05, RecallFloor(0.8))
    with pytest.raises(ValueError, match="takes at least") as error:
        solve(make_program(hulls, objective, {"tpr": 0.0}, floor), objective)
    needed = float(str(error.value).split("at least ")[1].split(". ")[0])
    enough = Capacity(needed, RecallFloor(0.8))
    solve(make_program(hulls, enough, {"tpr": 0.0}, floor), enough)
    less = Capacity(needed - 1e-4, RecallFloor(0.8))  # printed to 4 decimals
    with pytest.raises(ValueError, match="takes at least"):
        solve(make_program(hulls, less, {"tpr": 0.0}, floor), less)


def test_column_generation_agrees_with_the_searches_along_one_axis():
    rng = np.random.default_rng(0)
    for constraint in (None, "equal_opportunity", "equalized_odds"):
        for _ in range(20):
            program, _ = random_program(rng)
            cost = MinimumCost(2.0, 0.7)
            program = make_program(
                program.hulls,
                cost,
                check_tolerance(constraint, 0.0),
                np.zeros(len(program.hulls)),
            )
            assert solve(program, cost).value == pytest.approx(
                solve_by_columns(program).value, abs=EXACT
            )


def test_any_multipliers_bound_the_optimum_from_below():
    rng = np.random.default_rng(1)
    for _ in range(50):
        program, objective = random_program(rng)
        tables = tables_of_hulls(program)
        reference = full_lp(tables, program.tolerance, objective)
        if reference is None:
            continue
        k = len(program.hulls)
        multipliers = {rate: rng.normal(0, 0.3, k) for rate in program.tolerance}
        budget = rng.random() if np.isfinite(program.budget) else 0.0
        bound = lagrangian_bound(program, multipliers, rng.random(k), budget)
        assert bound <= reference + EXACT


def smooth_group(separation, prior, share, n=20_001):
    """Operating points of N(0, 1) against N(separation, 1) at c = 1, on a fine grid."""
    cut = norm.isf(np.linspace(0, 1, n))
    tpr = norm.sf(cut - separation)
    fpr = norm.sf(cut)
    accepted = prior * tpr + (1 - prior) * fpr
    points = OperatingPoints(-np.arange(n, dtype=float), accepted, prior * tpr)
    return GroupHull(points.hull(), share, 1.0)


def test_equalized_odds_at_a_kink_needs_a_lottery_and_costs_what_duality_says():
    # method.md E2: the second group's ROC lies above the first's everywhere.
    hulls = [smooth_group(1.0, 0.4, 0.5), smooth_group(2.0, 0.4, 0.5)]
    cost = MinimumCost()
    program = make_program(hulls, cost, {"tpr": 0.0, "fpr": 0.0}, np.zeros(2))
    solution = solve(program, cost)
    assert solution.value == pytest.approx(0.2945, abs=5e-5)  # four printed digits
    assert solution.certificate < 1e-12
    rates = mixture_rates(program, solution)
    assert np.ptp(rates["tpr"]) < 1e-9
    assert np.ptp(rates["fpr"]) < 1e-9
    mixtures = exact_mixtures(program.hulls, solution)
    assert [len(mixture) > 1 for mixture in mixtures] == [False, True]


def test_no_multiplier_rule_of_the_paper_meets_equalized_odds_at_the_kink():
    # The paper's family: one cut per group on the posterior, from two multipliers.
    share_1, share_0 = 0.5 * 0.4, 0.5 * 0.6
    # Inside the box, where no rule is reversed; finest near its corners.
    grid = np.tanh(np.linspace(-9, 9, 1201))
    l1, l2 = np.meshgrid(grid * share_1, grid * share_0)

    def rates(separation, sign):
        gain = 1 - sign * l1 / share_1
        loss = 1 - sign * l2 / share_0
        # posterior / (1 - posterior) >= loss / gain, in terms of the score itself
        odds = np.log(loss) - np.log(gain) - np.log(0.4 / 0.6)
        cut = odds / separation + separation / 2
        return norm.sf(cut - separation), norm.sf(cut)

    (tpr_1, fpr_1), (tpr_0, fpr_0) = rates(2.0, 1), rates(1.0, -1)
    unfairness = (abs(tpr_1 - tpr_0) + abs(fpr_1 - fpr_0)) / 2
    assert 0.077 < unfairness.min() < 0.078  # 0.0771 in the limit of a corner


def test_equal_opportunity_by_hand():
    # Group a: cuts (T, Q) = (1/2, 1/4), (1, 1/2); group b: (1/2, 1/2), (1, 1).
    a = OperatingPoints(
        np.array([np.inf, 0.8, 0.6, 0]), np.array([0, 1, 2, 4]), np.array([0, 1, 2, 2])
    )
    b = OperatingPoints(
        np.array([np.inf, 0.7, 0]), np.array([0, 2, 4]), np.array([0, 1, 2])
    )
    hulls = [GroupHull(a.hull(), 0.5, 0.8), GroupHull(b.hull(), 0.5, 0.8)]
    cost = MinimumCost()
    program = make_program(hulls, cost, {"tpr": 0.0}, np.zeros(2))
    solution = solve(program, cost)
    # pi = .5/.8 = .625 in both; cost(b) = .625 + sum .5 Q_s(b) - 1.25 b, with
    # Q_a = b/2 and Q_b = b: falls by .5 per unit of b, so b = 1 and cost .125.
    assert solution.tpr.tolist() == [1.0, 1.0]
    assert solution.selection_rate.tolist() == [0.5, 1.0]
    assert solution.value == pytest.approx(0.125, abs=1e-15)
    # A missed positive at a cost of .2: .75 b - 1.2 * .625 b, nil for every b, of which
    # the largest is taken.
    cheap = MinimumCost(0.2, 1.0)
    program = make_program(hulls, cheap, {"tpr": 0.0}, np.zeros(2))
    assert solve(program, cheap).tpr.tolist() == [1.0, 1.0]


def test_single_cuts_equal_brute_force():
    rng = np.random.default_rng(5)
    for _ in range(40):
        k = int(rng.integers(2, 4))
        n = 12 * k
        group = np.repeat(np.arange(k), 12)
        score = np.round(rng.random(n), 2)
        labeled = rng.random(n) < 0.2 + 0.6 * score
        labeled[::12] = True
        rows = GroupScores(score, labeled, group)
        points = [rows.points(s) for s in range(k)]
        hulls = [
            GroupHull(p.hull(), float(rows.shares[s]), min(1.0, p.labeled_share * 1.3))
            for s, p in enumerate(points)
        ]
        gaps = {
            "tpr": float(rng.uniform(0.02, 0.3)),
            "fpr": float(rng.uniform(0.02, 1)),
        }
        floor = np.full(k, rng.choice([0.0, 0.5]))
        program = make_program(hulls, MinimumCost(1.0, 0.8), gaps, floor)
        chosen = best_single_cuts(program, points)
        best = np.inf
        for cuts in itertools.product(*(range(len(p)) for p in points)):
            best = min(best, single_cut_value(program, points, cuts))
        assert single_cut_value(program, points, chosen) == pytest.approx(best)
        assert np.isfinite(best)


def single_cut_value(program, points, cuts):
    rates = {
        rate: np.array(
            [
                rate_of(p, rate, hull.prior)[j]
                for p, hull, j in zip(points, program.hulls, cuts, strict=True)
            ]
        )
        for rate in ("tpr", "fpr", "selection_rate")
    }
    fits = all(
        np.ptp(rates[rate]) <= gap + 1e-12 for rate, gap in program.tolerance.items()
    )
    if not fits or (rates["tpr"] < program.floor - 1e-12).any():
        return np.inf
    return program.value(rates["tpr"], rates["selection_rate"])


def test_single_cuts_refuse_what_they_cannot_solve():
    rng = np.random.default_rng(0)
    program, _ = random_program(rng)
    hulls = program.hulls[:2]
    points = [hull.points for hull in hulls]
    exact = make_program(hulls, MinimumCost(), {"tpr": 0.0, "fpr": 0.1}, np.zeros(2))
    with pytest.raises(ValueError, match="tolerance above 0"):
        best_single_cuts(exact, points)
    budget = make_program(hulls, Capacity(0.3), {"tpr": 0.1, "fpr": 0.1}, np.zeros(2))
    with pytest.raises(ValueError, match="capacity"):
        best_single_cuts(budget, points)
    many = make_program(
        [hulls[0]] * 9, MinimumCost(), {"tpr": 0.1, "fpr": 0.1}, np.zeros(9)
    )
    with pytest.raises(ValueError, match="up to 8 groups"):
        best_single_cuts(many, [points[0]] * 9)


@pytest.mark.parametrize("cost", [MinimumCost(0.0, 1.0), MinimumCost(1.0, 0.0)])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_cost_of_zero_leaves_an_optimal_rule(cost, constraint):
    program, _ = random_program(np.random.default_rng(8))
    gaps = check_tolerance(constraint, 0.0)
    program = make_program(program.hulls, cost, gaps, np.zeros(len(program.hulls)))
    solution = solve(program, cost)
    reference = full_lp(tables_of_hulls(program), gaps, cost)
    assert solution.value == pytest.approx(reference, abs=EXACT)
    assert solution.certificate < EXACT
