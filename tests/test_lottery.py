from itertools import combinations

import numpy as np
import pytest

from fairpul.lottery import lottery_mass, smallest_lottery, snap
from fairpul.operating_points import OperatingPoints, concave_hull

NOISE = 1e-9


def random_hull(rng, n_cuts):
    """Hull of random integer counts, with runs of collinear cuts."""
    accepted = np.cumsum(np.append(0, rng.integers(1, 4, size=n_cuts)))
    labeled = np.append(0, rng.integers(0, accepted[1:] + 1))
    labeled = np.maximum.accumulate(np.minimum(labeled, accepted))
    labeled[-1] = max(labeled[-1], 1)
    kept = concave_hull(accepted, labeled)
    return accepted[kept] / accepted[-1], labeled[kept] / labeled[-1]


def mass_by_brute_force(q, t, selection, tpr):
    """Least lottery over all single cuts, chords and triangles of cuts."""
    best = np.inf
    for j in range(len(q)):
        if abs(q[j] - selection) <= NOISE and abs(t[j] - tpr) <= NOISE:
            best = 0.0
    for i, j in combinations(range(len(q)), 2):
        share = (selection - q[i]) / (q[j] - q[i])
        height = t[i] + share * (t[j] - t[i])
        if -NOISE <= share <= 1 + NOISE and abs(height - tpr) <= NOISE:
            best = min(best, q[j] - q[i])
    for i, j, k in combinations(range(len(q)), 3):
        system = np.array([np.ones(3), q[[i, j, k]], t[[i, j, k]]])
        if abs(np.linalg.det(system)) < 1e-12:
            continue
        weights = np.linalg.solve(system, [1, selection, tpr])
        if weights.min() >= -NOISE:
            best = min(best, q[k] - q[i])
    return best


def check_reproduction(mixture, q, t, selection, tpr, off=2 * NOISE):
    cuts, weights = list(mixture), np.array(list(mixture.values()))
    assert weights.min() > 0
    # Dropped weights of 1e-9 and targets 1e-9 under an edge move the rates.
    assert abs(weights.sum() - 1) < 1e-12
    assert abs(weights @ q[cuts] - selection) < off
    assert abs(weights @ t[cuts] - tpr) < off


@pytest.mark.parametrize("seed", range(12))
def test_lottery_is_as_small_as_brute_force_finds(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        q, t = random_hull(rng, int(rng.integers(1, 9)))
        weights = rng.dirichlet(np.full(len(q), 0.4))
        selection, tpr = float(weights @ q), float(weights @ t)
        mixture = smallest_lottery(selection, tpr, q, t)
        expected = mass_by_brute_force(q, t, selection, tpr)
        assert lottery_mass(mixture, q) == pytest.approx(expected, abs=1e-12)
        assert len(mixture) <= 3
        check_reproduction(mixture, q, t, selection, tpr)


HULL = (
    np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]),
    np.array([0.0, 0.4, 0.7, 0.9, 0.975, 1.0]),
)


@pytest.mark.parametrize("j", range(6))
def test_targets_on_a_vertex_need_no_lottery(j):
    q, t = HULL
    assert smallest_lottery(q[j], t[j], q, t) == {j: 1.0}
    off = np.clip(q[j] + 1e-12, 0, 1), np.clip(t[j] - 1e-12, 0, 1)
    assert smallest_lottery(*off, q, t) == {j: 1.0}


@pytest.mark.parametrize("below", [0.0, 1e-11, -1e-11])
@pytest.mark.parametrize("j", range(5))
def test_targets_on_an_edge_draw_between_its_ends_alone(j, below):
    # Without the allowance a target 1e-11 under an edge needs a third cut far away.
    q, t = HULL
    selection, tpr = (q[j] + q[j + 1]) / 2, (t[j] + t[j + 1]) / 2 - below
    mixture = smallest_lottery(selection, tpr, q, t)
    assert set(mixture) == {j, j + 1}
    check_reproduction(mixture, q, t, selection, tpr)


def test_targets_between_collinear_cuts_draw_between_the_nearest():
    q = t = np.array([0.0, 0.25, 0.5, 1.0])
    assert smallest_lottery(0.375, 0.375, q, t) == {1: 0.5, 2: 0.5}


def test_a_target_on_the_diagonal_draws_over_all():
    q, t = np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.0])
    assert smallest_lottery(0.25, 0.25, q, t) == {0: 0.75, 2: 0.25}


def test_a_target_off_the_edges_by_hand():
    q, t = np.array([0.0, 0.25, 0.5, 1.0]), np.array([0.0, 0.75, 1.0, 1.0])
    mixture = smallest_lottery(0.375, 0.75, q, t)
    # The chord from cut 0 to 2 passes through it: mass 0.5. The only shorter chords,
    # 0-1 and 1-2, are edges of the hull and pass above.
    assert mixture == pytest.approx({0: 0.25, 2: 0.75})


def test_lottery_mass_is_the_selection_between_the_outer_cuts():
    q = np.array([0.0, 0.25, 0.5, 1.0])
    assert lottery_mass({3: 0.1, 1: 0.9}, q) == 0.75
    assert lottery_mass({2: 1.0}, q) == 0.0


POINTS = OperatingPoints(
    np.array([np.inf, 0.8, 0.6, 0.4, 0.2, 0.0]),
    np.array([0, 2, 4, 6, 8, 10]),
    np.array([0, 4, 6, 7, 8, 8]),
)
T, Q = POINTS.tpr, POINTS.selection_rate


@pytest.mark.parametrize(
    ("mixture", "values", "options", "cut"),
    [
        # TPR 0.625 between 0.5 (cut 1) and 0.75 (cut 2): a tie goes to the stricter.
        ({1: 0.5, 2: 0.5}, T, {}, 1),
        ({1: 0.25, 2: 0.75}, T, {}, 2),
        # Selection 0.5 between cuts 1 and 4: cuts 2 and 3 are both 0.1 away.
        ({1: 0.5, 4: 0.5}, Q, {}, 2),
        ({2: 1.0}, Q, {}, 2),
        # A floor of 0.75 rules out cut 1.
        ({1: 0.75, 2: 0.25}, T, {"least_tpr": 0.75}, 2),
        ({1: 0.75, 2: 0.25}, T, {"least_tpr": 0.75 + 1e-11}, 2),
        # The budget is what the mixture selects: cut 2 selects more, though nearer.
        ({1: 0.25, 2: 0.75}, T, {"within_selection": True}, 1),
        ({1: 0.25, 4: 0.75}, Q, {"within_selection": True}, 3),
        # Both, and a cut between that holds them.
        ({1: 0.25, 4: 0.75}, Q, {"within_selection": True, "least_tpr": 0.8}, 3),
        # Both, and no cut between holds them.
        ({1: 0.25, 2: 0.75}, T, {"within_selection": True, "least_tpr": 0.6}, None),
        ({0: 0.9, 1: 0.1}, T, {"least_tpr": 0.75}, None),
    ],
)
def test_snapping_by_hand(mixture, values, options, cut):
    assert snap(POINTS, values, mixture, **options) == cut


def test_snapping_stays_within_the_mixture():
    # Cut 4 has exactly the wanted rate, but lies outside.
    values = np.array([0.0, 0.1, 0.5, 0.45, 0.3, 1.0])
    assert snap(POINTS, values, {1: 0.5, 2: 0.5}) == 1
