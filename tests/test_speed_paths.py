"""The fast ways to hulls and cuts against the plain one, a sort of each group."""

import pickle
import warnings

import numpy as np
import pytest

from fairpul import (
    Capacity,
    GroupCounts,
    GroupScores,
    RecallFloor,
    fit_rule,
    frontier,
    group_scores,
)
from fairpul.binned_rows import BinnedRows
from fairpul.operating_points import (
    OperatingPoints,
    concave_hull,
    on_concave_hulls,
    sorted_points,
)
from fairpul.ranked_rows import rank_rows, ranked_hulls, ranked_points


def make_rows(n, k, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    posterior = rng.beta(1, 2 + codes % 2, n)
    frequency = np.where(codes % 2 == 0, 0.5, 0.8)
    labeled = rng.random(n) < posterior * frequency
    return posterior * frequency, with_a_label(labeled, codes, k), codes


def with_a_label(labeled, codes, k):
    labeled = labeled.copy()
    labeled[[np.flatnonzero(codes == code)[0] for code in range(k)]] = True
    return labeled


def scenario(kind, n, k):
    score, labeled, codes = make_rows(n, k)
    rng = np.random.default_rng(1)
    if kind == "tied":
        score = np.round(score, 2)
    elif kind == "one heavy bin":
        score = np.where(rng.random(n) < 0.5, 0.3, score)
    elif kind == "two scores in one bin":
        score = np.where(rng.random(n) < 0.4, 0.3, score)
        score = np.where(rng.random(n) < 0.3, np.nextafter(0.3, 1), score)
    elif kind == "one score":
        score = np.full(n, 0.25)
    elif kind == "rare":
        score = score**4 / 100
        labeled = with_a_label(rng.random(n) < score * 5, codes, k)
    elif kind == "float32":
        score = score.astype(np.float32)
    elif kind == "perfect":
        labeled = score > 0.3
    elif kind == "of all magnitudes":
        score = score**60
    elif kind == "near one":
        score = 1 - score * 1e-9
    elif kind == "zeros and ones":
        score = np.where(rng.random(n) < 0.3, np.round(score), score)
    elif kind == "tiny group":
        codes = np.where(rng.random(n) < 0.98, 0, codes)
        codes[:k] = range(k)
        labeled = with_a_label(labeled, codes, k)
    return score, labeled, codes


KINDS = [
    "continuous",
    "tied",
    "one heavy bin",
    "two scores in one bin",
    "one score",
    "rare",
    "float32",
    "perfect",
    "of all magnitudes",
    "near one",
    "zeros and ones",
    "tiny group",
]


def plain_hull(points):
    """Hull of all points; of its flat top the two ends."""
    hull = points.hull()
    flat = np.flatnonzero(hull.labeled == hull.labeled[-1])[1:-1]
    return hull[np.setdiff1d(np.arange(len(hull)), flat)]


def assert_same(a, b):
    for name in ("cut", "accepted", "labeled"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("k", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_sorted_and_counted_rows_have_the_hulls_of_the_plain_path(kind, k):
    n = 20_000
    rows = scenario(kind, n, k)
    score, labeled, codes = rows
    ranked = rank_rows(*rows, k)
    by_sort, by_count = ranked_hulls(ranked), BinnedRows(*rows, k).hulls
    for code in range(k):
        points = sorted_points(score[codes == code], labeled[codes == code])
        start, stop = ranked.bounds[code : code + 2]
        assert_same(ranked_points(ranked, start, stop), points)
        assert_same(by_sort[code], plain_hull(points))
        assert_same(by_count[code], plain_hull(points))


def test_small_samples_too():
    for seed in range(40):
        n = 20 + 5 * seed
        rows = make_rows(n, 2, seed)
        for number, hull in enumerate(BinnedRows(*rows, 2).hulls):
            member = rows[2] == number
            plain = plain_hull(sorted_points(rows[0][member], rows[1][member]))
            assert_same(hull, plain)
            assert_same(ranked_hulls(rank_rows(*rows, 2))[number], plain)


@pytest.mark.parametrize("limit", [10**9, 0])
def test_cuts_between_two_points_of_the_hull(monkeypatch, limit):
    monkeypatch.setattr(group_scores, "_MANY_ROWS", limit)
    score, labeled, codes = make_rows(5000, 3)
    scores = GroupScores(score, labeled, codes)
    hulls = [scores.hull(number) for number in range(3)]
    ends = [(2, 5), (0, 0), (3, len(hulls[2]) - 1)]
    for number, found in enumerate(scores.between(hulls, ends)):
        points = sorted_points(score[codes == number], labeled[codes == number])
        first, last = (hulls[number].cut[end] for end in ends[number])
        chosen = (points.cut <= first) & (points.cut >= last) | (points.cut == 0)
        assert_same(found, points[chosen])


@pytest.fixture
def fit_both_ways(monkeypatch):
    def fit(*rows, **options):
        rules = []
        for limit in (10**9, 0):
            monkeypatch.setattr(group_scores, "_MANY_ROWS", limit)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few labels
                rules.append(
                    fit_rule(*rows, label_frequency=0.9, random_state=0, **options)
                )
        return rules

    return fit


@pytest.mark.parametrize("lottery", [True, "auto"])
@pytest.mark.parametrize(
    "constraint",
    [
        "equal_opportunity",
        "equalized_odds",
        "predictive_equality",
        "demographic_parity",
        None,
    ],
)
@pytest.mark.parametrize("kind", ["continuous", "tied", "rare", "float32"])
def test_both_paths_give_the_same_rule(fit_both_ways, kind, constraint, lottery):
    by_sort, by_count = fit_both_ways(
        *scenario(kind, 6000, 3), constraint=constraint, lottery=lottery
    )
    assert by_sort == by_count
    assert by_sort.certificate <= 1e-9  # what the LP solver may leave


@pytest.mark.parametrize(
    "options",
    [
        {"objective": RecallFloor(0.8)},
        {"objective": Capacity(0.1)},
        {"objective": Capacity(0.95), "constraint": "demographic_parity"},
        {"constraint": "equalized_odds", "tolerance": 0.05},
        {"constraint": "equalized_odds", "tolerance": 0.1, "lottery": False},
    ],
)
def test_both_paths_give_the_same_rule_for_other_problems(fit_both_ways, options):
    by_sort, by_count = fit_both_ways(*make_rows(4000, 2), **options)
    assert by_sort == by_count


@pytest.mark.parametrize("lottery", [True, "auto"])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.97])
def test_cuts_inside_a_flat_top_serve_a_common_selection_rate(
    monkeypatch, share, lottery
):
    # One group's labeled rows are all at its top: demographic parity at a generous
    # capacity accepts unlabeled rows down to a cut in the middle of the flat top.
    rng = np.random.default_rng(0)
    score, codes = rng.random(2000), rng.integers(0, 2, 2000)
    labeled = np.where(codes == 0, score > 0.8, rng.random(2000) < score)
    rules = []
    for hull in (GroupScores.hull, lambda scores, s: scores.points(s).hull()):
        monkeypatch.setattr(GroupScores, "hull", hull)
        rules.append(
            fit_rule(
                score,
                labeled,
                codes,
                label_frequency=0.9,
                constraint="demographic_parity",
                objective=Capacity(share),
                lottery=lottery,
            )
        )
    assert rules[0].cuts == rules[1].cuts
    assert rules[0].lottery_share[0] <= 1.5 / 1000  # a row or, by the LP, none


def test_exact_rules_of_many_rows_meet_their_certificate():
    score, labeled, codes = make_rows(400_000, 8)
    for constraint in ("equal_opportunity", "equalized_odds"):
        rule = fit_rule(
            score,
            labeled,
            codes,
            constraint=constraint,
            lottery=True,
            label_frequency=dict(enumerate([0.5, 0.8] * 4)),
        )
        assert rule.certificate <= 1e-12
        accepted = rule.acceptance_probability(score, codes)
        tpr = [accepted[labeled & (codes == code)].mean() for code in range(8)]
        assert np.ptp(tpr) <= 1e-12


def test_memory_maps_and_strided_columns_are_read_in_place(tmp_path, monkeypatch):
    monkeypatch.setattr(group_scores, "_MANY_ROWS", 0)
    rows = make_rows(3000, 2)
    mapped = []
    for number, column in enumerate(rows):
        path = tmp_path / str(number)
        column.tofile(path)
        mapped.append(np.memmap(path, dtype=column.dtype, mode="r"))
    strided = np.column_stack([1 - rows[0], rows[0]])[:, 1]
    scores = GroupScores(*mapped)
    for mine, theirs in zip(
        (scores.score, scores.labeled, scores.codes), mapped, strict=True
    ):
        assert np.shares_memory(mine, theirs)
    for number in range(2):
        assert_same(scores.hull(number), GroupScores(*rows).hull(number))
        assert_same(
            GroupScores(strided, *rows[1:]).hull(number),
            GroupScores(*rows).hull(number),
        )


def test_negative_zeros_are_zeros():
    score = np.array([-0.0, 0.0, 0.5, 0.7])
    scores = GroupScores(score, [0, 1, 1, 0], None)
    assert scores.hull(0).accepted[-1] == 4
    assert scores.points(0).accepted.tolist() == [0, 1, 2, 4]


def test_a_vertex_that_rounding_hides_is_found():
    # The two labeled shares differ by 1e-18, less than floats near one half can.
    x = np.array([0, 1_000_000_001, 2_000_000_000])
    y = np.array([0, 500_000_001, 1_000_000_000])
    assert concave_hull(x, y).tolist() == [0, 1, 2]
    assert on_concave_hulls(x[1:], y[1:], np.array([0])).all()
    dented = np.array([0, 500_000_000, 1_000_000_000])
    assert concave_hull(x, dented).tolist() == [0, 2]


def test_rates_of_a_rule_are_deferred_and_survive_pickling():
    score, labeled, codes = make_rows(4000, 2)
    rule = fit_rule(score, labeled, codes, label_frequency=0.9)
    untouched = pickle.loads(pickle.dumps(rule))
    assert untouched == rule
    assert repr(untouched.expected) == repr(rule.expected)
    assert isinstance(rule.expected[0]["tpr"].estimate, float)
    assert type(rule).from_json(rule.to_json()) == rule


def test_points_can_be_joined():
    points = OperatingPoints(np.array([0.5, 0.0]), np.array([1, 2]), np.array([1, 1]))
    assert points[:1].joined(points[1:]).cut.tolist() == [0.5, 0.0]


@pytest.mark.parametrize("constraint", ["equal_opportunity", "equalized_odds"])
def test_a_frontier_has_the_costs_and_gaps_of_single_fits(constraint):
    score, labeled, codes = make_rows(4000, 3)
    known = {0: 0.5, 1: 0.8, 2: 0.5}
    tolerances = [0.0, 0.02, 0.01, 0.3]
    curve = frontier(
        GroupScores(score, labeled, codes),
        constraint=constraint,
        tolerances=tolerances,
        label_frequency=known,
    )
    rates = {"equal_opportunity": ["tpr"], "equalized_odds": ["tpr", "fpr"]}
    for number, tolerance in enumerate(tolerances):
        rule = fit_rule(
            score,
            labeled,
            codes,
            constraint=constraint,
            tolerance=tolerance,
            label_frequency=known,
            lottery=True,
        )
        gap = max(rule.expected.gaps[rate].estimate for rate in rates[constraint])
        # The tolerance of the LP solver.
        assert curve.costs[number] == pytest.approx(rule.objective_value, abs=1e-9)
        assert curve.gaps[number] == pytest.approx(gap, abs=1e-9)
        assert curve.gaps[number] <= tolerance + 1e-9


def test_a_frontier_of_counts_tells_of_heavy_bins_once():
    score, labeled, codes = make_rows(4000, 2)
    counts = GroupCounts.from_scores(GroupScores(score, labeled, codes), bins=64)
    with pytest.warns(UserWarning, match="bin at a threshold") as caught:
        frontier(counts, tolerances=[0, 0.05, 0.1], label_frequency=0.9)
    assert len(caught) == 1


def test_a_frontier_of_arrays_is_refused():
    with pytest.raises(TypeError, match="Wrap arrays: GroupScores"):
        frontier(np.zeros(3))


def test_decisions_agree_with_the_probability_of_acceptance():
    score, labeled, codes = make_rows(30_000, 3)
    for constraint in (None, "equal_opportunity", "equalized_odds"):
        rule = fit_rule(
            score,
            labeled,
            codes,
            constraint=constraint,
            label_frequency=0.9,
            lottery=True,
            random_state=0,
        )
        probability = rule.acceptance_probability(score, codes)
        decision = rule.decide(score, codes, row_id=np.arange(len(score)))
        assert set(decision[probability == 1]) == {1}
        assert set(decision[probability == 0]) == {0}
        drawn = (probability > 0) & (probability < 1)
        if drawn.any():
            share = probability[drawn].mean()
            error = 4 * np.sqrt(0.25 / drawn.sum())  # four standard errors at most
            assert abs(decision[drawn].mean() - share) < error
