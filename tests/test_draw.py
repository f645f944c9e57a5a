import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairpul.draw import (
    PRIME,
    SECOND_PRIME,
    accepted_integers,
    draw_by_content,
    draw_by_id,
    draw_integers,
    polynomial,
)

SALTS = range(400)


@given(
    st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=20),
    st.integers(0, 2**62),
)
def test_draws_are_the_polynomial_in_exact_integers(ids, salt):
    a, b, c, d, e = polynomial(salt)

    def reference(row):
        x, y = row % PRIME, row % SECOND_PRIME
        return (a * x**3 + b * x**2 + c * x + d + e * y) % PRIME

    fits_int64 = [row for row in ids if row < 2**63]
    unsigned = [row for row in ids if row >= 0]
    for rows, kind in ((fits_int64, np.int64), (unsigned, np.uint64)):
        drawn = draw_integers(np.array(rows, dtype=kind), salt)
        assert drawn.tolist() == [reference(row) for row in rows]


@pytest.mark.parametrize("salt", [0, 1, 7, 2**62, 2**64 - 1])
def test_coefficients_make_a_cubic_that_uses_both_residues(salt):
    coefficients = polynomial(salt)
    assert all(0 <= one < PRIME for one in coefficients)
    assert coefficients[0] > 0
    assert coefficients[-1] > 0


def test_both_moduli_are_prime():
    for number in (PRIME, SECOND_PRIME):
        divisors = np.arange(2, int(number**0.5) + 1)
        assert (number % divisors).all()


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_draws_of_an_id_do_not_depend_on_its_width(kind):
    ids = np.array([0, 1, 100])
    expected = draw_integers(ids, salt=5)
    np.testing.assert_array_equal(draw_integers(ids.astype(kind), salt=5), expected)


def test_ids_that_share_a_residue_draw_apart():
    # 2**31 - 1 rows later the cubic repeats; the second residue does not.
    ids = np.arange(2000)
    pairs = np.corrcoef(
        draw_integers(ids, 3),
        draw_integers(ids + PRIME * (1 + np.arange(2000) % 7), 3),
    )
    # Independent draws: standard deviation of the correlation 1 / sqrt(2000).
    assert abs(pairs[0, 1]) < 4 / np.sqrt(2000)


IDS = {
    "consecutive": np.arange(300),
    "negative": -np.arange(1, 301) * 10**12,
    "above 2**63": np.arange(300, dtype=np.uint64) + np.uint64(2**63),
    "shard in the high word": (np.arange(300) % 3 << 32) + np.arange(300) // 3,
    "time in the high word": np.arange(300) << 32,
    "strings": np.array([f"patient-{i}" for i in range(300)]),
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("probability", [0.05, 0.5])
def test_accepted_counts_are_binomial_over_salts(ids, probability):
    counts = np.array(
        [np.count_nonzero(draw_by_id(ids, salt) < probability) for salt in SALTS]
    )
    variance = 300 * probability * (1 - probability)
    # Mean of 400 counts within 4 standard errors; their variance, whose relative
    # standard error is about sqrt(2 / 400) = 0.07, within 4 of these.
    assert abs(counts.mean() - 300 * probability) < 4 * np.sqrt(variance / 400)
    assert abs(counts.var(ddof=1) / variance - 1) < 4 * np.sqrt(2 / 400)


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_draws_are_uniform(ids):
    draws = np.concatenate([draw_by_id(ids, salt) for salt in range(20)])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert stats.kstest(draws, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_draws_of_two_rows_or_two_salts_are_uncorrelated(ids):
    draws = np.array([draw_by_id(ids, salt) for salt in SALTS]) - 0.5
    neighbors = 12 * (draws[:, 1:] * draws[:, :-1]).mean()
    salts = 12 * (draws[1:] * draws[:-1]).mean()
    # Some 120,000 products of independent uniforms, scaled to variance 1.
    assert abs(neighbors) < 4 / np.sqrt(draws.size)
    assert abs(salts) < 4 / np.sqrt(draws.size)


def test_the_draw_of_an_id_does_not_depend_on_other_rows():
    for ids in IDS.values():
        order = np.random.default_rng(0).permutation(300)
        expected = draw_by_id(ids, 9)
        np.testing.assert_array_equal(draw_by_id(ids[order], 9), expected[order])
        np.testing.assert_array_equal(draw_by_id(ids[7:8], 9), expected[7:8])


def test_padding_of_strings_changes_no_draw():
    short = draw_by_id(np.array(["a", "", "bc"]), 1)
    padded = draw_by_id(np.array(["a", "", "bc", "a very long name"]), 1)
    np.testing.assert_array_equal(short, padded[:3])
    np.testing.assert_array_equal(draw_by_id(np.array([""]), 1), short[1:2])
    swapped = np.array(["a", "", "bc"], dtype=">U9")
    np.testing.assert_array_equal(draw_by_id(swapped, 1), short)


def test_strings_of_the_same_letters_draw_apart():
    draws = draw_by_id(np.array(["ab", "ba", "a", "b", "abb", "\u00e9", "\u0301"]), 1)
    assert len(set(draws)) == 7


@pytest.mark.parametrize("probability", [1e-12, 1 / 3, 0.5, 1 - 1e-12])
def test_integer_thresholds_accept_exactly_the_draws_below_the_probability(probability):
    threshold = int(accepted_integers(np.array([probability]))[0])
    # The largest accepted and the smallest refused draw, compared without rounding.
    scaled = probability * PRIME
    assert threshold - 1 < scaled <= threshold


def accepted_by_content(score, probability, salt=11, key="f"):
    drawn = draw_by_content(score, key, salt) < probability
    return {one: int(drawn[score == one].sum()) for one in np.unique(score)}


@pytest.mark.parametrize("n_rows", [1000, 10_000])
@pytest.mark.parametrize("probability", [0.1, 0.37, 0.5, 0.9])
def test_each_content_is_accepted_in_its_share(n_rows, probability):
    for salt in range(25):
        score = np.repeat([0.25, 0.5], n_rows)
        for accepted in accepted_by_content(score, probability, salt).values():
            # Golden-ratio sequences: O(log n) off; method.md saw 3 at 1e3 draws.
            assert abs(accepted - n_rows * probability) <= 4


def test_order_changes_no_count_per_content():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 20, size=500) / 32
    expected = accepted_by_content(score, 0.4)
    for _ in range(10):
        assert accepted_by_content(rng.permutation(score), 0.4) == expected


def test_single_contents_are_accepted_by_chance_over_salts():
    score = np.arange(50) / 64
    draws = np.concatenate([draw_by_content(score, "f", salt) for salt in SALTS])
    assert stats.kstest(draws, "uniform").pvalue > 1e-4


def test_negative_zero_and_float32_are_the_same_content():
    score = np.array([0.0, -0.0, 0.0])
    np.testing.assert_array_equal(
        draw_by_content(score, "f", 1), draw_by_content(np.abs(score), "f", 1)
    )
    half = np.array([0.5, 0.25])
    np.testing.assert_array_equal(
        draw_by_content(half.astype(np.float32), "f", 1), draw_by_content(half, "f", 1)
    )


def test_groups_draw_apart_by_value_and_type():
    keys = ["f", "m", 1, "1", True, ("f", 1), ("f", "1"), ("f", True), 0.5]
    draws = [float(draw_by_content(np.array([0.5]), key, 1)[0]) for key in keys]
    assert len(set(draws)) == len(keys)


def test_no_rows_draw_nothing():
    nothing = np.array([], dtype=float)
    assert draw_by_content(nothing, "f", 1).shape == (0,)
    assert draw_by_id(np.array([], dtype=np.int64), 1).shape == (0,)
    assert draw_by_id(np.array([], dtype=str), 1).shape == (0,)
