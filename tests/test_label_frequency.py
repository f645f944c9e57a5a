import warnings
from types import SimpleNamespace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse, stats
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from fairpul.group_scores import GroupScores
from fairpul.label_frequency import (
    BestBin,
    ElkanNoto,
    Joint,
    LabelFrequency,
    LabelFrequencyWarning,
    PeakRate,
    TopRate,
    _joint,
    _sharpening,
    best_bin,
    label_frequency_bound,
    peak_rate,
    plateau_trend,
    resolve_label_frequency,
    top_rate,
)
from fairpul.label_frequency._numeric import NotNumericError, numeric_table
from fairpul.label_frequency._top_sets import group_top_sets, merge_points
from fairpul.operating_points import sorted_points


def counts(*pairs):
    """Cumulative counts from (rows, labeled rows) per distinct score, best first."""
    rows, labeled = np.array(((0, 0), *pairs)).T
    return np.cumsum(rows), np.cumsum(labeled)


def counted(score, labeled, weight=None):
    points = sorted_points(np.asarray(score), np.asarray(labeled, bool), weight)
    return points.accepted, points.labeled


# --- counts, worked by hand -----------------------------------------------------


def test_peak_rate_ignores_top_sets_under_30_rows():
    # 29 rows all labeled do not count; 29 + 1 rows do, at 29 / 30.
    assert peak_rate(*counts((29, 29), (1, 0), (70, 10))) == 29 / 30
    # Cut only between distinct scores: the tie reaches down to 40 rows.
    assert peak_rate(*counts((29, 29), (11, 0), (60, 10))) == 29 / 40


def test_peak_rate_asks_for_a_sixth_of_the_labeled_rows():
    # m = 360: at least 60 rows, so 50 / 50 is passed over for 70 / 80.
    table = counts((50, 50), (30, 20), (920, 290))
    assert peak_rate(*table) == 70 / 80
    # A quarter, 90 rows: only the whole group is left.
    assert peak_rate(*table, fraction=1 / 4) == 360 / 1000


def test_peak_rate_of_a_small_group_is_its_labeled_share():
    assert peak_rate(*counts((10, 10), (15, 2))) == 12 / 25


def test_top_rate_takes_the_first_cut_that_is_large_enough_and_ties_whole():
    # m = 160: 40 rows are wanted, the second cut has 45.
    assert top_rate(*counts((30, 30), (15, 6), (900, 124))) == 36 / 45


def test_best_bin_trades_purity_for_size():
    # Top 10 of 200 labeled and no unlabeled row, ratio 0 but t = .05; the second bin,
    # 150 labeled of 200 and 50 unlabeled of 4800, has a far smaller upper bound.
    assert best_bin(*counts((10, 10), (190, 140), (4800, 50))) == 150 / 200
    # By the definition: c = m / (m + alpha * n_u), alpha = (50 / 4800) / (150 / 200).
    alpha = (50 / 4850) / (150 / 200)
    assert 150 / 200 == pytest.approx(200 / (200 + alpha * 4850))


def test_best_bin_of_a_group_without_unlabeled_rows_is_1():
    assert best_bin(*counts((40, 40))) == 1.0


def test_bound_is_the_clopper_pearson_limit_of_the_top_sets():
    # n = 1000: tops of 20 (twice: 1% is raised to 20), 50 and 100 rows.
    table = counts((20, 15), (5, 5), (25, 20), (50, 10), (900, 40))

    def limit(hits, rows):  # solves P(Bin(rows, p) >= hits) = .0125
        return optimize.brentq(
            lambda p: stats.binom.sf(hits - 1, rows, p) - 0.0125, 1e-9, 1 - 1e-9
        )

    expected = max(limit(15, 20), limit(20, 25), limit(40, 50), limit(50, 100))
    assert label_frequency_bound(*table) == pytest.approx(expected, abs=1e-10)


def test_bound_is_0_when_no_top_set_holds_a_labeled_row():
    assert label_frequency_bound(*counts((500, 0), (10, 3))) == pytest.approx(
        stats.beta.ppf(0.0125, 3, 508), abs=1e-12
    )


def test_plateau_trend_is_fishers_test():
    trend = plateau_trend(*counts((25, 20), (75, 30), (900, 50)))
    table = [[20, 5], [30, 45]]
    assert (trend.top, trend.next) == (0.8, 0.4)
    assert trend.p_value == pytest.approx(
        stats.fisher_exact(table, alternative="greater").pvalue, rel=1e-9
    )
    assert np.isnan(plateau_trend(*counts((500, 80), (500, 10))).p_value)
