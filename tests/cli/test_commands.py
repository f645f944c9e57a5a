import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from fairpul import (
    Capacity,
    DecisionRule,
    GroupCounts,
    GroupScores,
    RecallFloor,
    audit,
    fit_rule,
)

COLUMNS = ("--score", "p", "--labeled", "dx", "--group", "sex")


def scores_of(rows):
    return GroupScores(rows["p"].to_numpy(), rows["dx"].to_numpy(), rows["sex"])


def read_rule(path):
    return DecisionRule.from_json(path.read_text("utf-8"))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_audit_prints_the_numbers_of_the_library_as_json(fairpul, tmp_path, rows, kind):
    path = tmp_path / f"rows.{kind}"
    (rows.write_csv if kind == "csv" else rows.write_parquet)(path)
    done = fairpul("audit", path, *COLUMNS, "--capacity", 0.1, "--json", "-")
    assert json.loads(done.out) == audit(scores_of(rows), capacity=0.1).to_dict()


def test_audit_of_decisions_needs_no_score(quick, scored, rows):
    done = quick(
        *("audit", scored, "--labeled", "dx", "--group", "sex"),
        *("--decision", "referred", "--json", "-"),
    )
    expected = audit(
        labeled=rows["dx"].to_numpy(),
        group=rows["sex"],
        decision=rows["referred"].to_numpy(),
    )
    assert json.loads(done.out) == expected.to_dict()


def test_audit_takes_priors_of_intersectional_groups_by_name(quick, scored):
    done = quick(
        *("audit", scored, *COLUMNS, "--group", "race", "--threshold", 0.2),
        *("--prior", "f/b=0.15:0.10:0.20", "--prior", "f/w=0.2"),
        *("--prior", "m/b=0.3", "--prior", "m/w=0.3", "--json", "-"),
    )
    rates = json.loads(done.out)["rates"]
    assert set(rates) == {"f/b", "f/w", "m/b", "m/w"}
    assert rates["f/b"]["prevalence"]["low"] == pytest.approx(0.10)
    assert rates["f/w"]["fpr"]["tier"] == "prior"


def test_audit_leads_with_the_finding_in_words(fairpul, scored):
    done = fairpul("audit", scored, *COLUMNS, "--threshold", 0.2)
    first, table = done.out.splitlines()[0], done.out
    assert first.startswith("Of 100 positives in group ")
    assert "TPR" in table
    assert "\x1b" not in done.out + done.err  # no color where no terminal is


def test_audit_writes_json_to_a_file_too(quick, scored, tmp_path):
    quick("audit", scored, *COLUMNS, "--threshold", 0.2, "--json", "a.json")
    assert "gaps" in json.loads((tmp_path / "a.json").read_text("utf-8"))


def test_a_condition_that_holds_exits_with_3_after_writing(fairpul, scored, tmp_path):
    done = fairpul(
        *("audit", scored, *COLUMNS, "--threshold", 0.2, "--json", "a.json"),
        *("--fail-if", "gaps.tpr.low > 0.01"),
        code=3,
    )
    assert "gaps.tpr.low > 0.01" in done.err
    assert (tmp_path / "a.json").exists()


def test_a_condition_that_does_not_hold_exits_with_0(quick, scored):
    quick(
        *("audit", scored, *COLUMNS, "--threshold", 0.2),
        *("--fail-if", "rates.f.tpr.high < 0.01"),
    )


def test_fit_writes_the_rule_of_the_library_with_an_assured_floor(
    fairpul, scored, rows, tmp_path
):
    fairpul("fit", scored, *COLUMNS, "--recall", 0.8, "--out", "rule.json")
    expected = fit_rule(
        scores_of(rows), objective=RecallFloor(0.8, assured=True), random_state=0
    )
    assert read_rule(tmp_path / "rule.json") == expected


def test_fit_takes_the_floor_on_the_estimate_if_told_so(quick, scored, rows, tmp_path):
    arguments = ("--recall", 0.8, "--no-assured", "--out", "rule.json")
    quick("fit", scored, *COLUMNS, *arguments)
    expected = fit_rule(scores_of(rows), objective=RecallFloor(0.8), random_state=0)
    assert read_rule(tmp_path / "rule.json") == expected


@pytest.mark.filterwarnings("ignore::fairpul.label_frequency.LabelFrequencyWarning")
def test_fit_takes_a_capacity_and_a_constraint(quick, scored, rows, tmp_path):
    quick(
        *("fit", scored, *COLUMNS, "--capacity", 0.2, "--tolerance", 0.05),
        *("--constraint", "demographic_parity", "--out", "rule.json"),
    )
    expected = fit_rule(
        scores_of(rows),
        constraint="demographic_parity",
        tolerance=0.05,
        objective=Capacity(0.2),
        random_state=0,
    )
    assert read_rule(tmp_path / "rule.json") == expected


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_apply_decides_as_the_library_does(quick, scored, rows, tmp_path, kind):
    quick("fit", scored, *COLUMNS, "--recall", 0.8, "--out", "rule.json")
    quick("apply", scored, "rule.json", "--row-id", "id", "--out", f"d.{kind}")
    path = tmp_path / f"d.{kind}"
    decided = pl.read_csv(path) if kind == "csv" else pl.read_parquet(path)
    rule = read_rule(tmp_path / "rule.json")
    expected = rule.apply(rows, score="p", group="sex", row_id="id")
    assert decided["decision"].to_list() == expected["decision"].to_list()
    assert decided["id"].to_list() == rows["id"].to_list()


def test_audit_of_a_rule_finds_its_columns_in_the_rule(quick, scored):
    quick("fit", scored, *COLUMNS, "--recall", 0.8, "--out", "rule.json")
    done = quick("audit", scored, "--rule", "rule.json", "--json", "-")
    assert json.loads(done.out)["gaps"]["tpr"]["estimate"] < 0.01  # tuned on these rows


def test_counts_of_parts_merge_to_the_counts_of_the_whole(quick, rows, tmp_path):
    rows[:1000].write_parquet(tmp_path / "one.parquet")
    rows[1000:].write_parquet(tmp_path / "two.parquet")
    for part in ("one", "two"):
        quick(
            *("count", f"{part}.parquet", *COLUMNS),
            *("--out", f"{part}.counts.parquet"),
        )
    quick(
        *("merge", "one.counts.parquet", "two.counts.parquet"),
        *("--out", "all.counts.parquet"),
    )
    quick(
        *("count", "one.parquet", "two.parquet", *COLUMNS),
        *("--out", "both.counts.parquet"),
    )
    merged = GroupCounts.read_parquet(tmp_path / "all.counts.parquet")
    assert merged == GroupCounts.from_scores(scores_of(rows))
    assert merged == GroupCounts.read_parquet(tmp_path / "both.counts.parquet")
    quick("fit", "all.counts.parquet", "--recall", 0.8, "--out", "rule.json")
    goal = RecallFloor(0.8, assured=True)
    with pytest.warns(UserWarning, match="bin at a threshold"):
        expected = fit_rule(merged, objective=goal, random_state=0)
    assert read_rule(tmp_path / "rule.json") == expected


def test_counts_to_share_hold_no_small_cell(quick, scored, tmp_path):
    quick(
        *("count", scored, *COLUMNS, "--bins", 64, "--suppress-below", 10),
        *("--out", "small.counts.parquet"),
    )
    counts = GroupCounts.read_parquet(tmp_path / "small.counts.parquet")
    assert counts.sums[:, 0].min() >= 10


def test_the_page_is_the_same_to_the_byte_and_bears_a_date_only_if_given(
    fairpul, quick, monkeypatch, scored, tmp_path
):
    arguments = ("audit", scored, *COLUMNS, "--capacity", 0.2, "--html")
    fairpul(*arguments, "one.html")  # of two processes, whose hash seeds differ
    quick(*arguments, "two.html")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    quick(*arguments, "three.html")
    one, two, three = (
        (tmp_path / f"{name}.html").read_bytes() for name in ("one", "two", "three")
    )
    assert one == two
    assert b"1970-01-02" in three
    assert len(one) < 3_000_000


def test_demo_ends_with_the_finding_and_the_page(fairpul, tmp_path):
    done = fairpul("demo", "--rows", 3000, "--out", "demo.html")
    last = done.out.splitlines()[-5:]
    assert any(line.startswith("Of 100 positives in") for line in last)
    assert "demo.html" in last[-1]
    assert (tmp_path / "demo.html").stat().st_size < 3_000_000


def test_the_example_in_every_help_runs_as_it_stands(quick, scored, rows, tmp_path):
    for name, part in (("part-1", rows[:1500]), ("part-2", rows[1500:])):
        part.write_parquet(tmp_path / f"{name}.parquet")
        counts = GroupCounts.from_scores(scores_of(part))
        counts.write_parquet(
            tmp_path / f"{name.replace('part', 'site')}.counts.parquet"
        )
    quick("count", "part-2.parquet", *COLUMNS, "--out", "site-b.counts.parquet")
    for name in ("demo", "audit", "fit", "apply", "count", "merge"):
        text = quick(name, "--help").out.split("Example:")[1]
        example = text[: text.index("─")].strip(" \n╭").replace("\\", " ")
        command, *arguments = example.split()
        assert (command, arguments[0]) == ("fairpul", name)
        quick(*arguments)
    written = {path.name for path in tmp_path.iterdir()}
    assert {"demo.html", "audit.html", "rule.json", "decided.parquet"} <= written
    assert {"site-a.counts.parquet", "all.counts.parquet"} <= written


def test_a_prior_of_one_group_leaves_the_others_their_estimate(quick, scored, rows):
    arguments = ("audit", scored, *COLUMNS, "--threshold", 0.2, "--json", "-")
    with_prior = json.loads(quick(*arguments, "--prior", "f=0.15:0.12:0.20").out)
    without = json.loads(quick(*arguments).out)
    found = with_prior["rates"]["f"]["prevalence"]
    assert (found["low"], found["high"]) == pytest.approx((0.12, 0.20))
    assert found["tier"] == "prior"
    assert with_prior["rates"]["m"] == without["rates"]["m"]
    expected = audit(
        scores_of(rows), threshold=0.2, class_prior={"f": (0.15, 0.12, 0.20)}
    )
    assert with_prior == expected.to_dict()


def test_a_prior_of_one_group_is_told_in_words(quick, scored):
    arguments = ("audit", scored, *COLUMNS, "--threshold", 0.2)
    said = quick(*arguments, "--prior", "f=0.15").out
    assert "given the prevalence entered, and in the other groups over" in said
    said = quick(*arguments, "--prior", "f=0.15", "--prior", "m=0.3").out
    assert "given the prevalence entered" in said
    assert "in the other groups" not in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_the_command(quick, shell):
    assert "fairpul" in quick("--show-completion", shell).out


def test_the_reader_of_a_pipe_may_leave(scored, tmp_path):
    command = [sys.executable, "-m", "fairpul.cli", "audit", str(scored), *COLUMNS]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*command, "--threshold", "0.2"],
        cwd=tmp_path,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


def test_version_is_printed(fairpul):
    assert fairpul("--version").out.startswith("fairpul ")


def test_weights_count_as_rows(quick, rows, tmp_path):
    weighted = rows.with_columns(pl.Series("w", np.full(len(rows), 2.0)))
    weighted.write_parquet(tmp_path / "w.parquet")
    arguments = (*COLUMNS, "--threshold", 0.2, "--json", "-")
    plain = json.loads(quick("audit", "w.parquet", *arguments).out)
    done = quick("audit", "w.parquet", *arguments, "--weight", "w")
    assert json.loads(done.out)["rates"]["f"]["tpr"] == pytest.approx(
        plain["rates"]["f"]["tpr"]
    )


def test_clusters_widen_the_intervals(quick, rows, tmp_path):
    twice = pl.concat([rows, rows])  # each row is there twice
    twice.write_parquet(tmp_path / "twice.parquet")
    arguments = (*COLUMNS, "--threshold", 0.2, "--json", "-")
    naive = json.loads(quick("audit", "twice.parquet", *arguments).out)
    done = quick("audit", "twice.parquet", *arguments, "--cluster", "id")
    tpr, honest = (
        found["rates"]["f"]["tpr"] for found in (naive, json.loads(done.out))
    )
    assert tpr["estimate"] == honest["estimate"]
    assert honest["high"] - honest["low"] > 1.3 * (tpr["high"] - tpr["low"])


def test_every_command_runs_as_a_process(fairpul, scored, tmp_path):
    fairpul("count", scored, *COLUMNS, "--out", "a.counts.parquet")
    fairpul("merge", "a.counts.parquet", "--out", "all.counts.parquet")
    fairpul("fit", "all.counts.parquet", "--recall", 0.8, "--out", "rule.json")
    arguments = ("--score", "p", "--group", "sex", "--out", "decided.csv")
    done = fairpul("apply", scored, "rule.json", *arguments)
    assert "of 3,000 rows accepted" in done.out
    fairpul("audit", "all.counts.parquet", "--rule", "rule.json")
