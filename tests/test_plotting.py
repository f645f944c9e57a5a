import subprocess
import sys

import numpy as np
import pytest

from fairpul import GroupCounts, GroupScores, RecallFloor, fit_rule, frontier
from fairpul.audit import audit
from fairpul.datasets import make_underdiagnosed
from fairpul.label_frequency import LabelFrequency
from fairpul.metrics import pu_group_rates
from fairpul.plotting import (
    CalibrationDisplay,
    FrontierDisplay,
    GroupCurvesDisplay,
    IntervalsDisplay,
    LabelFrequencyDisplay,
    ScoreDistributionDisplay,
    SensitivityDisplay,
)
from fairpul.plotting._style import style

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

KNOWN = {"f": 0.3, "m": 0.7}


@pytest.fixture(scope="module")
def scores():
    data = make_underdiagnosed(4000, random_state=0)
    return GroupScores(data.score, data.labeled, data.group)


@pytest.fixture(scope="module")
def rule(scores):
    return fit_rule(scores, objective=RecallFloor(0.8), label_frequency=KNOWN)


@pytest.fixture(scope="module")
def report(scores):
    return audit(scores, threshold=0.2, label_frequency=KNOWN)


@pytest.fixture
def ax():
    """Axes that pyplot knows nothing of."""
    return Figure().subplots()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def every_display(scores, rule, report, ax):
    """One display of each kind, on the same axes or each on its own."""
    curve = frontier(scores, tolerances=[0, 0.1], label_frequency=KNOWN)
    return [
        GroupCurvesDisplay.from_scores(scores, rule=rule, ax=ax),
        FrontierDisplay.from_frontier(curve, ax=ax),
        IntervalsDisplay.from_rates(rule.realized, ax=ax),
        LabelFrequencyDisplay.from_label_frequency(rule.label_frequency, ax=ax),
        ScoreDistributionDisplay.from_scores(scores, rule=rule, ax=ax),
        CalibrationDisplay.from_scores(scores, ax=ax),
        SensitivityDisplay.from_audit(report, ax=ax),
    ]


def test_given_axes_are_used_and_pyplot_is_left_alone(scores, rule, report, ax):
    from matplotlib import pyplot

    before, settings = pyplot.get_fignums(), dict(matplotlib.rcParams)
    displays = every_display(scores, rule, report, ax)
    assert all(display.ax_ is ax for display in displays)
    assert all(display.figure_ is ax.figure for display in displays)
    assert pyplot.get_fignums() == before
    assert dict(matplotlib.rcParams) == settings


def test_without_axes_each_display_makes_one_figure(scores, rule, report):
    from matplotlib import pyplot

    displays = every_display(scores, rule, report, None)
    assert len(pyplot.get_fignums()) == len(displays)
    for display in displays:
        display.figure_.canvas.draw()  # warnings are errors


def test_curves_are_the_hull_and_the_marks_the_realized_rates(scores, rule, ax):
    display = GroupCurvesDisplay.from_scores(scores, rule=rule, ax=ax)
    marks = [bar.lines[0].get_xydata()[0] for bar in ax.containers]
    for number, key in enumerate(scores.groups):
        hull = scores.points(number).hull()
        x, y = display.lines_[key].get_data()
        np.testing.assert_array_equal(x, hull.selection_rate)
        np.testing.assert_array_equal(y, hull.tpr)
        rates = rule.realized[key]
        assert marks[number].tolist() == [
            rates["selection_rate"].estimate,
            rates["tpr"].estimate,
        ]


def test_marks_on_new_rows_are_the_rates_on_those(rule, ax):
    new = make_underdiagnosed(4000, random_state=1)
    scores = GroupScores(new.score, new.labeled, new.group)
    display = GroupCurvesDisplay.from_scores(scores, rule=rule, ax=ax)
    accepted = rule.decide(new.score, new.group) == 1
    for key in "fm":
        x, tpr = (value.estimate for value in display.points[key])
        assert x == accepted[new.group == key].mean()
        assert tpr == accepted[(new.group == key) & (new.labeled == 1)].mean()


def test_curves_over_the_fpr_follow_its_formula_by_hand(ax):
    # 2 of 10 rows labeled, c = .5: prior .4. The best 4 hold 1.5 of the labeled mass.
    scores = GroupScores([0.9] * 4 + [0.1] * 6, [1, 0, 0, 0, 1] + [0] * 5, None)
    known = {"all": LabelFrequency(0.5, 0.5, 0.5, "known")}
    display = GroupCurvesDisplay.from_scores(
        scores, x="fpr", label_frequency=known, ax=ax
    )
    x, y = display.curves["all"]
    # T = .5 and Q = .4 at the cut .9: F = (.4 - .4 * .5) / .6.
    assert y.tolist() == [0, 0.5, 1]
    np.testing.assert_allclose(x, [0, 1 / 3, 1], rtol=1e-15)


def test_curves_of_counts_are_those_of_their_bins(scores, ax):
    counts = GroupCounts.from_scores(scores)
    display = GroupCurvesDisplay.from_scores(counts, ax=ax)
    x, _ = display.curves["m"]
    number = counts.groups.index("m")
    np.testing.assert_array_equal(x, counts.points(number).hull().selection_rate)


def test_curves_over_the_fpr_need_a_label_frequency(scores, ax):
    with pytest.raises(ValueError, match="needs the label frequency of each group"):
        GroupCurvesDisplay.from_scores(scores, x="fpr", ax=ax)
    with pytest.raises(ValueError, match='"selection_rate" or "fpr", got \'ppv\''):
        GroupCurvesDisplay.from_scores(scores, x="ppv", ax=ax)


def test_frontier_is_drawn_as_it_is(scores, ax):
    curve = frontier(
        scores,
        objective=RecallFloor(0.8),
        tolerances=[0, 0.05, 0.1],
        label_frequency=KNOWN,
    )
    display = FrontierDisplay.from_frontier(curve, ax=ax)
    x, y = display.line_.get_data()
    np.testing.assert_array_equal(x, curve.gaps)
    np.testing.assert_array_equal(y, curve.costs)
    assert ax.get_ylabel() == "selection rate"


def test_interval_ends_are_those_of_the_rates(report, ax):
    display = IntervalsDisplay.from_rates(report.rates, ax=ax)
    drawn = {("gap", name): report.gaps[name] for name in report.gaps} | {
        (key, name): report.rates[key][name] for key in "fm" for name in report.gaps
    }
    for (label, name), value in drawn.items():
        line, _, (bar,) = display.points_[name, label].lines
        assert line.get_xdata()[0] == value.estimate
        (segment,) = bar.get_segments()
        # The bar is drawn from distances to the estimate: one rounding each.
        np.testing.assert_allclose(segment[:, 0], [value.low, value.high], atol=1e-15)


def test_markers_are_filled_only_where_no_label_frequency_is_needed(report, ax):
    display = IntervalsDisplay.from_rates(report.rates, ax=ax)
    face = {
        name: display.points_[name, "f"].lines[0].get_markerfacecolor()
        for name in ("tpr", "fpr")
    }
    assert face == {"tpr": style(0).color, "fpr": "white"}


def test_undefined_rates_are_written_out_and_not_marked(ax):
    rates = pu_group_rates([1, 0, 1, 0], [1, 0, 1, 1], sensitive_features=list("aabb"))
    display = IntervalsDisplay.from_rates(rates, names=["tpr", "fpr"], ax=ax)
    assert ("fpr", "a") not in display.points_
    written = [text.get_text() for text in ax.texts]
    assert "undefined: needs a label frequency or a class prior" in written


def test_unknown_rates_are_refused(rule, ax):
    with pytest.raises(ValueError, match="names must list rates among"):
        IntervalsDisplay.from_rates(rule.realized, names=["recall"], ax=ax)


def test_label_frequency_sets_run_from_the_bound_to_one(ax):
    known = {
        "f": LabelFrequency(0.4, 0.35, 1.0, "peak_rate"),
        "m": LabelFrequency(0.6, 0.5, 0.8, "class_prior"),
    }
    display = LabelFrequencyDisplay.from_label_frequency(known, ax=ax)
    spans = [lines.get_segments()[0][:, 0].tolist() for lines in ax.collections[::2]]
    assert spans == [[0.35, 1.0], [0.5, 0.8]]
    assert display.points_["m"].get_xdata()[0] == 0.6


def test_score_histograms_are_weighted_shares_of_each_side(ax):
    scores = GroupScores(
        [0.1, 0.4, 0.9, 0.9], [0, 0, 0, 1], None, sample_weight=[1, 1, 2, 5]
    )
    display = ScoreDistributionDisplay.from_scores(scores, bins=2, ax=ax)
    assert display.histograms["all"].unlabeled.tolist() == [0.5, 0.5]
    assert display.histograms["all"].labeled.tolist() == [0, 1]


def test_cuts_of_the_rule_are_drawn_in_the_strip_of_their_group(scores, rule, ax):
    ScoreDistributionDisplay.from_scores(scores, rule=rule, ax=ax)
    drawn = [lines.get_segments()[0] for lines in ax.collections]
    assert [line[0, 0] for line in drawn] == [cuts[0][0] for cuts in rule.cuts]
    assert [line[0, 1] for line in drawn] == [1, 0]  # the first group is on top


def test_a_group_that_is_labeled_throughout_can_be_drawn(ax):
    scores = GroupScores([0.9, 0.8, 0.1], [1, 1, 0], ["f", "m", "m"])
    display = ScoreDistributionDisplay.from_scores(scores, bins=2, ax=ax)
    assert display.histograms["f"].unlabeled.tolist() == [0, 0]


def test_rules_on_bins_have_no_place_on_scores(scores, ax):
    counts = GroupCounts.from_scores(scores, bins=64)
    with pytest.warns(UserWarning, match="A bin at a threshold holds"):
        binned = fit_rule(counts, objective=RecallFloor(0.8))
    with pytest.raises(ValueError, match="cuts 64 bins, not scores"):
        ScoreDistributionDisplay.from_scores(scores, rule=binned, ax=ax)


def test_calibration_bins_by_hand(ax):
    score = [0.1, 0.1, 0.1, 0.3, 0.5, 0.7]
    scores = GroupScores(score, [0, 0, 1, 0, 1, 1], None, sample_weight=[1] * 5 + [3])
    display = CalibrationDisplay.from_scores(scores, n_bins=2, ax=ax)
    found = display.bins["all"]
    # The median is .2: three rows of .1 below it, the rest above.
    np.testing.assert_allclose(found.score, [0.1, 2.9 / 5], rtol=1e-15)
    np.testing.assert_allclose(found.labeled_share, [1 / 3, 4 / 5], rtol=1e-15)
    x, y = display.lines_["all"].get_data()
    np.testing.assert_array_equal(x, found.score)
    np.testing.assert_array_equal(y, found.labeled_share)


def test_sensitivity_shows_the_hidden_gaps_of_the_audit(report, ax):
    display = SensitivityDisplay.from_audit(report, ax=ax)
    hidden = report.sensitivity["hidden_gap"]
    assert display.bias.tolist() == [1.0, *map(float, hidden)]
    assert display.low.tolist()[1:] == [gap.low for gap in hidden.values()]
    low, high = ax.lines[:2]
    np.testing.assert_array_equal(low.get_ydata(), display.low)
    np.testing.assert_array_equal(high.get_ydata(), display.high)
    assert low.get_ydata()[0] == report.gaps["tpr"].low


def test_a_single_group_has_no_sensitivity_to_draw(scores, ax):
    one = audit(score=scores.score, labeled=scores.labeled, threshold=0.2)
    with pytest.raises(ValueError, match="at least two groups"):
        SensitivityDisplay.from_audit(one, ax=ax)


def test_groups_differ_without_color():
    # 35 pairs of line style and marker before one comes back.
    looks = {(str(look.line), look.marker) for look in map(style, range(35))}
    assert len(looks) == 35


def test_without_matplotlib_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from fairpul.plotting import LabelFrequencyDisplay\n"
        "try: LabelFrequencyDisplay.from_label_frequency({})\n"
        "except ImportError as error: print(error)\n"
    )
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "pip install fairpul[plot]" in found.stdout
