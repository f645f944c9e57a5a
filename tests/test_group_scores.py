import numpy as np
import pytest

from fairpul import GroupScores
from fairpul.operating_points import sorted_points


def random_rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 30, size=n) / 32
    labeled = rng.random(n) < score
    return score, labeled, rng.choice(["f", "m", "x"], size=n)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arrays_of_the_caller_are_viewed_not_copied(kind):
    score, labeled, group = random_rows()
    score = score.astype(kind)
    weight = np.arange(200.0)
    rows = GroupScores(score, labeled, group, sample_weight=weight)
    assert np.shares_memory(rows.score, score)
    assert np.shares_memory(rows.sample_weight, weight)


def test_groups_of_a_small_example():
    rows = GroupScores(
        [0.9, 0.2, 0.8, 0.4], [1, 0, 1, 0], ["m", "f", "f", "m"], cluster=[5, 5, 3, 3]
    )
    assert rows.groups == ("f", "m")
    assert rows.codes.tolist() == [1, 0, 0, 1]
    assert rows.cluster.tolist() == [1, 1, 0, 0]
    assert rows.rows(1).tolist() == [0, 3]
    assert rows.shares.tolist() == [0.5, 0.5]
    assert len(rows) == 4
    assert repr(rows) == "GroupScores(4 rows, 2 labeled, groups 'f', 'm')"


def test_points_of_a_group_are_those_of_its_rows():
    score, labeled, group = random_rows()
    weight = np.random.default_rng(1).integers(1, 4, size=200).astype(float)
    rows = GroupScores(score, labeled, group, sample_weight=weight)
    for number, key in enumerate(rows.groups):
        member = group == key
        expected = sorted_points(score[member], labeled[member], weight[member])
        points = rows.points(number)
        np.testing.assert_array_equal(points.cut, expected.cut)
        np.testing.assert_array_equal(points.tpr, expected.tpr)
        np.testing.assert_array_equal(points.selection_rate, expected.selection_rate)


def test_effective_sizes_by_hand():
    rows = GroupScores(
        [0.9, 0.2, 0.8, 0.4, 0.5],
        [1, 0, 1, 1, 0],
        ["m", "m", "f", "f", "f"],
        sample_weight=[1, 3, 2, 2, 0],
    )
    # f: weights 2, 2, 0 -> 16 / 8; labeled 2, 2. m: 1, 3 -> 16 / 10; labeled 1.
    assert [rows.n_effective(0), rows.n_effective(1)] == [2.0, 1.6]
    assert [rows.m_effective(0), rows.m_effective(1)] == [2.0, 1.0]
    assert rows.shares.tolist() == [0.5, 0.5]


def test_effective_sizes_without_weights_are_counts():
    score, labeled, group = random_rows()
    rows = GroupScores(score, labeled, group)
    for number, key in enumerate(rows.groups):
        assert rows.n_effective(number) == (group == key).sum()
        assert rows.m_effective(number) == labeled[group == key].sum()


def test_equal_weights_change_no_effective_size():
    plain = GroupScores(*random_rows())
    halves = GroupScores(*random_rows(), sample_weight=np.full(200, 0.5))
    for number in range(3):
        assert halves.n_effective(number) == plain.n_effective(number)
        assert halves.m_effective(number) == plain.m_effective(number)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([0.1, 0.2], [1, 0, 0], None), {}, "score has 2 rows, labeled has 3"),
        (([0.1, 0.2], [1, 0], ["a"]), {}, "group has 1 rows where 2"),
        (([0.1, 2], [1, 0], None), {}, "0 missing and 1 outside"),
        (([0.1, 0.2], [1, 2], None), {}, "Labels must be 1 or True"),
        (([0.1, 0.2], [1, 0], ["a", None]), {}, "missing in 1 rows"),
        (([0.1, 0.2], [1, 0], None), {"sample_weight": [1]}, "sample_weight has 1"),
        (([0.1, 0.2], [1, 0], None), {"cluster": [1]}, "cluster has 1"),
        (([], [], []), {}, "Labeled and unlabeled rows are both required"),
    ],
)
def test_bad_input_is_refused(arguments, options, text):
    with pytest.raises(ValueError, match=text):
        GroupScores(*arguments, **options)


def test_group_without_a_labeled_row_is_named():
    with pytest.raises(ValueError, match=r"Groups \['m'\] have no labeled row"):
        GroupScores([0.1, 0.2, 0.3], [1, 0, 0], ["f", "f", "m"])


def test_labeled_rows_of_weight_zero_do_not_count_as_labeled():
    with pytest.raises(ValueError, match=r"Groups \['m'\] have no labeled row"):
        GroupScores(
            [0.1, 0.2, 0.3, 0.4],
            [1, 0, 1, 0],
            ["f", "f", "m", "m"],
            sample_weight=[1, 1, 0, 1],
        )
