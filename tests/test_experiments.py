"""The harness of the experiments: rows that resume, failures that stay, distances."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from experiments import annealing, harness, tables, theorem
from experiments.data import Rows, Split, upsampled
from experiments.harness import COLUMNS, KEY
from experiments.methods import METHODS, Method
from experiments.plan import EXTRAS, Cell, main_cells, table_cells
from experiments.progress import Progress
from experiments.rows import METRICS, RowFile, measure, sampling_noise


@pytest.fixture
def rows(tmp_path):
    return RowFile(tmp_path / "raw" / "rows.csv", KEY, COLUMNS)


@pytest.fixture
def cell(monkeypatch):
    """A cell on twelve rows with one method that works and one that fails."""
    rng = np.random.default_rng(0)
    some = Rows(rng.normal(size=(12, 2)), np.arange(12) % 2, np.arange(12) // 6)
    split = Split(some, some, some.y_true, 1.0, 0)
    monkeypatch.setattr(harness, "real_split", lambda *_, **__: split)

    def fail(task):
        raise ValueError("no rule satisfies this")

    works = Method(lambda task: task.split.test.y_true, "training rows")
    for name, method in {"works": works, "fails": Method(fail, "nothing")}.items():
        monkeypatch.setitem(METHODS, name, method)
    return Cell("compas", "Lin.LR", 0.9, ("works", "fails"))


def test_a_second_run_adds_no_row(rows, cell, capsys):
    harness.run_cells(rows, [(cell, 0), (cell, 1)])
    first = rows.path.read_bytes()
    harness.run_cells(rows, [(cell, 0), (cell, 1)])
    assert rows.path.read_bytes() == first
    assert len(rows.read()) == 4 == len(rows.done())
    assert "[2/2] compas Lin.LR rate 0.9 seed 1" in capsys.readouterr().out


def test_an_interrupted_run_goes_on_where_it_was(rows, cell):
    harness.run_cells(rows, [(cell, 0)])
    whole = rows.path.read_bytes()
    rows.path.write_bytes(whole[:-25])
    assert len(rows.done()) == 1
    harness.run_cells(rows, [(cell, 0)])
    assert sorted(row["method"] for row in rows.read()) == ["fails", "works"]


@pytest.mark.parametrize(
    ("study", "arguments"),
    [(theorem, ((3000,), 1)), (annealing, (1,))],
    ids=["theorem", "annealing"],
)
def test_an_interrupted_study_goes_on_where_it_was(
    study, arguments, tmp_path, monkeypatch
):
    monkeypatch.setattr(annealing, "_SPLITS", (("synthetic", "Lin.LR"),))
    monkeypatch.setattr(study, "_CONSTRAINTS", ("equal_opportunity",))
    whole = study.run(tmp_path, *arguments)
    (path,) = tmp_path.iterdir()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:20])
    again = study.run(tmp_path, *arguments)
    key = list(study.KEY)
    assert not again.duplicated(key).any()
    columns = [name for name in whole if name != "seconds"]
    pd.testing.assert_frame_equal(
        whole[columns].sort_values(key, ignore_index=True),
        again[columns].sort_values(key, ignore_index=True),
    )


def test_the_time_left_follows_the_kind_of_what_is_left(monkeypatch, capsys):
    clock = iter([0.0, 2.0, 12.0, 16.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    progress = Progress(["short", "long", "short", "long", "other"])
    progress.tell("one")  # 2 s, and so 2 s each of the other four
    assert progress.seconds_left() == 8
    progress.tell("two")  # 10 s; the first of a kind takes the mean of all
    assert progress.seconds_left() == 2 + 10 + 6
    progress.tell("three")
    assert progress.seconds_left() == pytest.approx(10 + 16 / 3)
    assert "[3/5] three: 4 s, about 0 min left" in capsys.readouterr().out


def test_a_failing_method_writes_a_row_that_says_so(rows, cell):
    harness.run_cells(rows, [(cell, 0)])
    works, fails = rows.read()
    assert (works["f1"], works["failure"]) == ("1.0", "")
    assert (fails["f1"], fails["failure"]) == ("", "ValueError: no rule satisfies this")


def test_an_error_in_the_program_stops_the_run(rows, cell, monkeypatch):
    monkeypatch.setitem(METHODS, "works", Method(lambda task: task.missing, ""))
    with pytest.raises(AttributeError, match="missing"):
        harness.run_cells(rows, [(cell, 0)])


def test_metrics_of_six_rows_by_hand():
    y_true = np.array([1, 1, 0, 1, 1, 0])
    found = measure(y_true, np.array([1, 1, 0, 1, 0, 1]), np.array([0, 0, 0, 1, 1, 1]))
    assert found == pytest.approx(
        {
            "f1": 2 * 3 / (4 + 4),
            "aod": (0.5 + 1) / 2,
            "eod": 0.5,
            "error": 2 / 6,
            "balanced_accuracy": (3 / 4 + 1 / 2) / 2,
            "selection_rate": 4 / 6,
            "tpr_gap": 0.5,
            "fpr_gap": 1.0,
        }
    )


def test_f1_of_accepting_nobody_is_zero():
    y_true, nobody = np.array([1, 0, 1, 0]), np.zeros(4, dtype=int)
    assert measure(y_true, nobody, np.array([0, 0, 1, 1]))["f1"] == 0


def test_sampling_noise_is_the_mean_gap_of_a_fair_rule():
    rng = np.random.default_rng(0)
    group, y_true = np.repeat([0, 1], [150, 450]), rng.integers(0, 2, 600)
    decision = (rng.uniform(size=600) < 0.7).astype(int)
    expected = sampling_noise(y_true, decision, group)
    rates = [decision[y_true == y].mean() for y in (0, 1)]
    drawn = [
        measure(y_true, (rng.uniform(size=600) < np.take(rates, y_true)) * 1, group)
        for _ in range(1000)
    ]
    for metric, value in expected.items():
        gaps = [found[metric] for found in drawn]
        # Four standard errors, and 3% for the normal approximation of counts.
        error = 4 * np.std(gaps) / np.sqrt(len(gaps))
        assert np.mean(gaps) == pytest.approx(value, abs=error + 0.03 * value)


@pytest.mark.parametrize(
    ("mean", "published", "sd", "distance"),
    [
        (0.65, 0.60, 0.02, 2.5),
        (0.0, 0.0, 0.0, 0.0),
        (0.0004, 0.0, 0.0, 0.0),
        (0.01, 0.0, 0.0, np.inf),
    ],
)
def test_distances_in_published_standard_deviations(mean, published, sd, distance):
    assert tables.distance(mean, published, sd) == pytest.approx(distance)


def test_every_published_figure_has_a_cell_and_a_method():
    published = tables.published()
    assert len(published) == 349
    planned = {
        (cell.dataset, cell.base, cell.rate, method)
        for cell in table_cells()
        for method in cell.methods
    }
    ours = published.method.replace(tables.OURS)
    rows = zip(
        published.dataset,
        published.base_model,
        published.labeling_rate,
        ours,
        strict=True,
    )
    assert set(rows) <= planned


def test_every_cell_runs_known_methods_and_the_rows_that_the_paper_lacks():
    for cell in table_cells():
        assert set(EXTRAS) <= set(cell.methods)
    for cell in [*table_cells(), *main_cells()]:
        assert set(cell.methods) <= set(METHODS)
        assert len(set(cell.methods)) == len(cell.methods)


def test_published_figures_come_first_with_ours_beside_them():
    published = tables.published()
    measured = pd.DataFrame(
        [
            {
                "dataset": "german",
                "base_model": "Lin.SVM",
                "labeling_rate": 0.9,
                "extra_share": np.nan,
                "method": method,
                "seed": seed,
                "fitted_on": "training rows",
                **dict.fromkeys(METRICS, 0.4 + 0.2 * seed),
            }
            for method in ("Oracle", "Everyone positive", "FairPUL-EOP", "Agarwal")
            for seed in (0, 1)
        ]
    )
    kept = tables.of_tables(measured, 2)
    both = tables.beside_published(tables.summarize(kept), published)
    first = both.iloc[:349]
    assert first[["table", "method", "metric"]].equals(
        published[["table", "method", "metric"]]
    )
    oracle = first.iloc[0]
    assert (oracle["mean"], oracle.splits) == (pytest.approx(0.5), 2)
    assert oracle.distance == pytest.approx((0.565 - 0.5) / 0.051)
    missing = first[first["mean"].isna()]
    assert (missing.splits == 0).all()
    extra = both.iloc[349:]
    assert "Everyone positive" in set(extra.method)
    # Our metrics of a method stand under the name that the paper's table uses.
    in_vs_post = extra[(extra.table == "in-vs-post") & (extra.metric == "error")]
    assert {"In", "FairPUL"} <= set(in_vs_post.method)
    key = ["table", *tables.CELL, "method", "metric"]
    assert not both.duplicated(key).any()


def test_the_main_rows_have_a_csv_of_their_own(tmp_path):
    measured = pd.DataFrame(
        [
            {
                "dataset": "german",
                "base_model": base,
                "labeling_rate": 0.9,
                "extra_share": np.nan,
                "method": "Oracle",
                "seed": seed,
                "fitted_on": "training rows",
                "failure": np.nan,
                **dict.fromkeys(METRICS, 0.565),
            }
            for base in ("Lin.SVM", "Lin.LR")
            for seed in range(3)
        ]
    )
    tables.write(measured, tmp_path, 2, "main", main_cells())
    written = pd.read_csv(tmp_path / "main.csv")
    oracle = written.iloc[0]
    assert (oracle["mean"], oracle.distance, oracle.splits) == (0.565, 0, 2)
    assert set(written.base_model[written.dataset == "german"]) == {"Lin.SVM"}
    # Published figures of the main rows stay where nothing has run.
    assert "compas" in set(written.dataset)
    page = (tmp_path / "main.md").read_text()
    assert "| german | Lin.SVM | 0.9 | Oracle | 0.0 |" in page
    assert (
        "0.9,Oracle,f1,0.565,0.0,0.565,0.051,0.0,2"
        in (tmp_path / "main.csv").read_text()
    )


def test_upsampling_evens_out_the_true_classes():
    y_true = np.array([1] * 9 + [0] * 3)
    some = Rows(np.arange(24.0).reshape(12, 2), y_true, np.arange(12) % 2)
    even = upsampled(Split(some, some, y_true, 1.0, seed=0))
    assert np.bincount(even.train.y_true).tolist() == [9, 9]
    assert set(even.train.X[even.train.y_true == 0, 0]) <= {18.0, 20.0, 22.0}
    # Labels follow their rows.
    assert (even.labeled == even.train.y_true).all()


def test_the_label_frequency_is_told_only_of_methods_that_estimate_it():
    task = SimpleNamespace(e1=0.4)
    assert harness._label_frequency(task, "uPU") == 0.4
    assert np.isnan(harness._label_frequency(task, "Direct EO"))
