import numpy as np
import pytest
from experiments import coverage

CELL = coverage.Cell("fixed", "posterior", "none", 2000, 2, "unequal", "alone")


def counted(half, bias=0.0, n=4000, quantity="tpr", cell=CELL):
    """Row of a study whose intervals have a fixed half-width and errors of SD .05."""
    counter = coverage.Counter()
    for error in np.random.default_rng(0).normal(bias, 0.05, n):
        value = coverage.Estimate(
            0.5 + error, 0.5 + error - half, 0.5 + error + half, ""
        )
        counter.add(value, 0.5)
    return coverage.summary(cell, quantity, counter, n, n, 200.0)


@pytest.mark.parametrize(
    ("half", "bias", "cause"),
    [
        (0.098, 0.0, ""),
        (0.06, 0.0, "interval 0.6"),
        (0.15, 0.0, "interval 1.5"),
        (0.098, 0.06, "estimates off by +0.0"),
    ],
)
def test_the_cause_of_a_wrong_coverage_is_read_from_errors_and_widths(
    half, bias, cause
):
    row = counted(half, bias)
    assert row.cause.startswith(cause)
    assert bool(row.cause) == bool(cause)
    assert (row.coverage > 0.93) == (half > 0.09 and not bias)


def test_few_runs_are_not_blamed_on_the_method():
    assert "two standard errors" in counted(0.15, n=20).cause


def test_no_interval_is_no_coverage():
    row = coverage.summary(CELL, "all", coverage.Counter(), 10, 0, 0.0)
    assert np.isnan(row.coverage)
    assert row.refused == 10
    assert row.cause.startswith("no interval")


def test_a_cell_of_each_study_runs():
    rows = coverage.run(CELL, 3, 0)
    by_name = {row.quantity: row for row in rows}
    assert by_name["tpr"].intervals == 6
    assert by_name["tpr gap"].intervals == 3
    assert by_name["label frequency bound"].coverage == 1
    assert abs(by_name["tpr"].bias) < 0.1


def test_the_csv_has_a_row_for_every_quantity(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "cells", lambda sizes: [CELL])
    out = tmp_path / "coverage.csv"
    coverage.main(["--out", str(out), "--runs", "2"])
    lines = out.read_text().splitlines()
    assert lines[0].startswith("study,base,constraint,n,groups")
    assert len(lines) == 8
