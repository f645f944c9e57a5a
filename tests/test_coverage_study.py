from dataclasses import replace

import numpy as np
import pytest
from experiments import coverage
from experiments.coverage_rows import QUANTITIES, Cell, Counter, read, summary

from fairpul.estimate import Estimate
from fairpul.intervals import gap_interval

CELL = Cell("fixed", "posterior", "none", 2000, 2, "unequal", "alone")


def counted(half, bias=0.0, n=4000, quantity="tpr", cell=CELL):
    """Row of a study whose intervals have a fixed half-width and errors of SD .05."""
    counter = Counter()
    for error in np.random.default_rng(0).normal(bias, 0.05, n):
        value = Estimate(0.5 + error, 0.5 + error - half, 0.5 + error + half, "")
        counter.add(value, 0.5)
    return summary(cell, quantity, counter, n, n, 200.0)


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


def test_the_interval_of_a_fixed_gap_covers_more_where_one_end_cannot_miss():
    """What the causes say of too much coverage, with normal errors of SD .01."""
    rng, runs = np.random.default_rng(0), 4000

    def misses(*rates):
        gap, se = max(rates) - min(rates), np.full(len(rates), 0.01)
        errors = 0.01 * rng.normal(size=(runs, len(rates)))
        ends = [gap_interval(rates + e, se, tuned=False) for e in errors]
        low, high = np.transpose(ends)
        return (low > gap).mean(), (high < gap).mean()

    below, above = misses(0.5, 0.51)  # .7 standard errors of the difference
    assert above == 0
    assert below < 0.02
    # .0125 and .025, give or take five standard errors of .0025 at most.
    assert misses(0.5, 0.56) == pytest.approx((0.0125, 0.025), abs=0.0125)
    assert sum(misses(*np.linspace(0.5, 0.56, 6))) < 0.02


@pytest.mark.parametrize(
    ("quantity", "study", "constraint", "groups", "cause"),
    [
        ("tpr gap", "fixed", "none", 2, "a true gap within some two standard errors"),
        ("tpr gap", "before", "none", 4, "both ends hold for all 6 pairs of groups"),
        ("tpr gap", "tuned", "equal_opportunity", 4, "tuned: the interval holds all"),
        ("tpr", "tuned", "equalized_odds", 2, "a lottery"),
    ],
)
def test_the_cause_of_a_wide_interval_is_that_of_its_kind(
    quantity, study, constraint, groups, cause
):
    cell = replace(CELL, study=study, constraint=constraint, groups=groups)
    assert counted(0.15, quantity=quantity, cell=cell).cause.startswith(cause)


def test_an_fpr_shown_only_by_chance_is_called_so():
    cell = replace(CELL, groups=6)
    counter = Counter()
    for error in np.random.default_rng(0).normal(-0.05, 0.05, 100):
        counter.add(Estimate(error, error - 0.05, error + 0.05, ""), 0.0)
    row = summary(cell, "fpr", counter, 800, 800, 3.0)
    assert row.cause.startswith("only where a group has 20 labeled rows by chance")


def test_few_runs_are_not_blamed_on_the_method():
    assert "two standard errors" in counted(0.15, n=20).cause


def test_no_interval_is_no_coverage():
    row = summary(CELL, "all", Counter(), 10, 0, 0.0)
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


def test_the_chain_is_counted_before_and_after_tuning():
    design = 2000, 2, "unequal", "clustered"
    rows = coverage.run(Cell("tuned", "logistic", "equal_opportunity", *design), 2, 0)
    assert {(row.study, row.constraint) for row in rows} == {
        ("before", "none"),
        ("tuned", "equal_opportunity"),
    }
    assert all(abs(row.bias) < 0.2 for row in rows if row.quantity != "tpr gap")


def test_fresh_rows_show_the_rates_of_the_population():
    fresh = coverage.fresh_rows(CELL)
    sample = coverage.Sample(CELL, 2, 1, 0).data
    # The features beside the finding that tell all: what the posterior is made of.
    accepted = fresh.posterior >= coverage.CUT
    expected = sample.population_rates(coverage.CUT)
    found = fresh.rates(accepted)
    for key, rates in expected.items():
        for name, value in rates.items():
            # Three standard errors of some 8000 rows of a class and group.
            assert found[key][name] == pytest.approx(value, abs=3 * 0.5 / 8000**0.5)


def test_the_file_and_its_page_have_a_place_for_every_quantity(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "cells", lambda sizes: [CELL])
    out = tmp_path / "coverage.csv"
    for _ in range(2):  # the second run finds its cell done
        coverage.main(["--out", str(out), "--runs", "2"])
    rows = read(out)
    assert len(rows) == 7
    assert {row.quantity for row in rows} == set(QUANTITIES)
    page = out.with_suffix(".md").read_text()
    assert page.count("| posterior |") == 2  # alone, and with all of its size
    assert page.count("| fixed | posterior | 2000 |") == 1
    assert page.count("two standard errors") == sum(bool(row.cause) for row in rows)
