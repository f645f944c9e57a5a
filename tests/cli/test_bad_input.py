import os
import resource
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from fairpul import GroupCounts, GroupScores
from fairpul.cli.running import _of_system

CUT = ("--threshold", 0.2)
COLUMNS = ("--score", "p", "--labeled", "dx", "--group", "sex")


def scores_of(rows):
    return GroupScores(rows["p"].to_numpy(), rows["dx"].to_numpy(), rows["sex"])


def parts(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("audit", "nope.parquet", *COLUMNS, "--threshold", 0.2), "does not exist"),
        (("audit", ".", *COLUMNS, "--threshold", 0.2), "is a folder"),
        (("audit", "scored.parquet", *COLUMNS), "exactly one of --decision"),
        (
            ("audit", "scored.parquet", *COLUMNS, "--threshold", 0.2, "--capacity", 1),
            "got --threshold and --capacity",
        ),
        (("audit", "scored.parquet", *COLUMNS, "--threshold", 2), "threshold must lie"),
        (("audit", "scored.parquet", *COLUMNS, "--threshold", "x"), "Invalid value"),
        (
            ("audit", "scored.parquet", "--labeled", "dx", "--threshold", 0.2),
            "--score is required",
        ),
        (
            ("audit", "scored.parquet", "--labeled", "zz", "--decision", "referred"),
            "no columns ['zz']",
        ),
        (
            ("audit", "scored.parquet", "--labeled", "sex", "--decision", "referred"),
            "'sex' must hold numbers",
        ),
        (
            ("audit", "scored.parquet", "--labeled", "id", "--decision", "referred"),
            "Labels must be 1 or True",
        ),
        (
            ("audit", "scored.parquet", *COLUMNS, "--decision", "id"),
            "decision must be 1",
        ),
        (
            (*("audit", "scored.parquet", *COLUMNS), "--decision", "p", "--prior", "x"),
            "A prior must be",
        ),
        (
            *(("audit", "scored.parquet", *COLUMNS, "--threshold", 0.2, "--prior"),),
            "requires an argument",
        ),
        (
            ("audit", "scored.parquet", *COLUMNS, "--capacity", 0.2, "--prior", "z=.1"),
            "one of ['f', 'm']",
        ),
        (
            ("audit", "scored.parquet", *COLUMNS, "--capacity", 0.2, "--fail-if", "a"),
            "--fail-if takes one comparison",
        ),
        (
            (
                *("audit", "scored.parquet", *COLUMNS, "--capacity", 0.2),
                *("--fail-if", "gaps.nope.low > 0"),
            ),
            "no number 'gaps.nope.low'",
        ),
        (
            ("audit", "scored.parquet", "--rule", "nope.json"),
            "'nope.json' does not exist",
        ),
        (
            (*("audit", "scored.parquet", *COLUMNS, "--group", "sex"), *CUT),
            "--group names a column twice",
        ),
        (
            (*("audit", "scored.parquet", *COLUMNS, *CUT), *("--prior", "f=.2") * 2),
            "--prior is given twice for group 'f'",
        ),
        (
            (
                *("audit", "scored.parquet", *COLUMNS, *CUT, "--html", "x"),
                "--json",
                "x",
            ),
            "name the same file",
        ),
        (
            ("audit", "scored.parquet", "--score", "p", "--labeled", "p", *CUT),
            "'p' holds other values than 1",
        ),
        (
            ("audit", "scored.parquet", *COLUMNS, *CUT, "--html", os.devnull),
            "is a device",
        ),
        (
            ("fit", "all.counts.parquet", "--cluster", "id", "--out", "o.json"),
            "--weight and --cluster need rows",
        ),
        (("fit", "scored.parquet", *COLUMNS), "Missing option '--out'"),
        (
            ("fit", "scored.parquet", *COLUMNS, "--recall", 2, "--out", "o.json"),
            "recall must be",
        ),
        (
            (
                *("fit", "scored.parquet", *COLUMNS, "--constraint", "justice"),
                *("--out", "o.json"),
            ),
            "constraint must be one of",
        ),
        (
            ("fit", "scored.parquet", *COLUMNS, "--out", "nope/o.json"),
            "'nope' does not exist",
        ),
        (("count", "scored.parquet", *COLUMNS, "--out", "o.csv"), "must end in"),
        (
            (
                *("count", "scored.parquet", *COLUMNS, "--bins", 100),
                *("--out", "o.counts.parquet"),
            ),
            "power of two",
        ),
        (
            ("merge", "scored.parquet", "--out", "o.counts.parquet"),
            "is not a table of counts",
        ),
        (("apply", "scored.parquet", "rule.txt", "--out", "o.csv"), "is not a rule"),
        (("frobnicate",), "No such command"),
    ],
)
def test_bad_input_gives_one_line_and_no_file(
    quick, scored, rows, tmp_path, arguments, said
):
    (tmp_path / "rule.txt").write_text("no rule")
    GroupCounts.from_scores(scores_of(rows)).write_parquet(
        tmp_path / "all.counts.parquet"
    )
    before = sorted(tmp_path.iterdir())
    assert said in quick(*arguments, code=2).complaint
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("audit", "scored.parquet"), "exactly one of --decision"),
        (("fit", "scored.parquet", "--out", "o.json"), "--score is required"),
        (("apply", "scored.parquet", "x.json", "--out", "o.csv"), "does not exist"),
        (("count", "scored.parquet", "--out", "o.parquet"), "--score is required"),
        (("merge", "x.parquet", "--out", "o.parquet"), "not a table of counts"),
        (("demo", "--out", "nope/demo.html"), "'nope' does not exist"),
    ],
)
def test_every_command_fails_in_one_line(fairpul, scored, tmp_path, arguments, said):
    assert said in fairpul(*arguments, code=2).complaint
    assert [*tmp_path.iterdir()] == [scored]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", "", "is empty"),
        ("header.csv", "p,dx,sex\n", "no rows"),
        ("text.csv", "p,dx,sex\n0.5,1,f\nmany,0,f\n", "'p' must hold numbers"),
        ("score.csv", "p,dx,sex\n0.5,1,f\n7.5,0,f\n", "between 0 and 1"),
        ("codes.csv", "p,dx,sex\n0.5,1,f\n0.5,2,f\n", "Labels must be 1"),
        ("none.csv", "p,dx,sex\n0.5,0,f\n0.5,0,f\n", "no labeled row"),
        ("group.csv", "p,dx,sex\n0.5,1,f\n0.5,0,f\n0.5,0,m\n", "['m'] have no labeled"),
        ("missing.csv", "p,dx,sex\n0.5,1,f\n0.5,0,\n", "missing in 1 rows"),
        ("blank.csv", "p,dx,sex\n0.5,1,f\n,0,f\n", "'p' has no value in 1 rows"),
        ("unknown.csv", "p,dx,sex\n0.5,1,f\n0.5,,f\n", "'dx' has no value in 1 rows"),
        ("broken.parquet", "PAR1 this is not Parquet PAR1", "cannot be read"),
        ("what.xlsx", "p,dx,sex\n", "must be CSV or Parquet"),
        (
            "ragged.csv",
            "p,dx,sex\n0.5,1,f\n0.5,0,f,9,9\n",
            "ragged.csv' cannot be read",
        ),
    ],
)
def test_bad_data_gives_one_line_and_no_file(quick, tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content)
    arguments = ("--threshold", 0.4, "--html", "o.html")
    done = quick("audit", path, *COLUMNS, *arguments, code=2)
    assert said in done.complaint
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("p,dx,sex\n0.5,1,f\n0.5,7,f\n", "label unknown: 1"),
        ("p,dx,sex\n0.5,1,f\n0.5,0,\n", "group missing: 1"),
        ("p,dx,sex\n0.5,1,f\n1.5,0,f\n", "score out of range: 1"),
        ("p,dx,sex\n0.5,1,f\n0.5,0,f\n0.5,0,m\n", "['m'] have no labeled"),
    ],
)
def test_rows_that_cannot_be_counted_are_an_error(quick, tmp_path, content, said):
    path = tmp_path / "rows.csv"
    path.write_text(content)
    done = quick("count", path, *COLUMNS, "--out", "o.counts.parquet", code=2)
    assert said in done.complaint
    assert list(tmp_path.iterdir()) == [path]


def test_an_unknown_group_at_apply_leaves_the_old_decisions(
    quick, scored, rows, tmp_path
):
    quick("fit", scored, *COLUMNS, "--recall", 0.8, "--out", "rule.json")
    quick("apply", scored, "rule.json", "--out", "decided.csv")
    old = (tmp_path / "decided.csv").read_bytes()
    other = rows.with_columns(
        sex=pl.when(pl.col("id") < 3).then(pl.lit("x")).otherwise(pl.col("sex"))
    )
    other.write_parquet(tmp_path / "new.parquet")
    done = quick("apply", "new.parquet", "rule.json", "--out", "decided.csv", code=2)
    assert "3 rows have no decision, by group 'x': 3" in done.complaint
    assert (tmp_path / "decided.csv").read_bytes() == old
    assert parts(tmp_path) == []


def test_a_lottery_without_row_ids_is_refused(quick, scored, tmp_path):
    quick(
        *("fit", scored, *COLUMNS, "--constraint", "equalized_odds"),
        *("--capacity", 0.2, "--out", "rule.json"),
    )
    done = quick("apply", scored, "rule.json", "--out", "d.parquet", code=2)
    assert "--row-id" in done.complaint
    assert not (tmp_path / "d.parquet").exists()


def test_a_full_disk_is_told_and_leaves_nothing(scored, tmp_path):
    # A limit on the size of files stands for a disk that is full.
    done = subprocess.run(
        [
            *(sys.executable, "-m", "fairpul.cli", "audit", str(scored), *COLUMNS),
            *("--threshold", "0.2", "--html", "big.html"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_small_files_only,
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scored.parquet"]


def _small_files_only():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(scored, tmp_path, stop):
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "fairpul.cli", "audit", str(scored), *COLUMNS),
            *("--threshold", "0.2", "--html", "page.html"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not parts(tmp_path):  # until the page is begun
        time.sleep(0.05)
        assert running.poll() is None, running.communicate()
    running.send_signal(stop)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 2, err
    assert err.splitlines()[-1].startswith("fairpul: interrupted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scored.parquet"]


def test_an_interrupt_while_the_library_is_imported_is_one_line(tmp_path):
    code = (
        "import sys, types\n"
        "class Pulled:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'fairpul': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pulled())\n"
        "from fairpul_command import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "fairpul: interrupted; no file was written or replaced\n"


def test_a_long_list_of_groups_stays_one_bearable_line(quick, scored):
    columns = ("--score", "p", "--labeled", "dx", "--group", "id")
    done = quick("audit", scored, *columns, *CUT, code=2)
    assert len(done.complaint) < 1200
    assert "have no labeled row" in done.complaint


def test_a_file_in_another_encoding_is_named(quick, tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("p,dx,sex\n0.5,1,f\xe9\n0.5,0,f\xe9\n".encode("latin-1"))
    said = quick("audit", path, *COLUMNS, *CUT, code=2).complaint
    assert "latin.csv" in said
    assert "UTF-8" in said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("more", [(), ("--json", "-")])
def test_a_full_standard_output_is_told(scored, more):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "fairpul.cli", "audit", str(scored), *COLUMNS),
                *("--threshold", "0.2", *more),
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "No space left on device. Free some space" in done.stderr.splitlines()[-1]


def test_a_system_error_that_polars_met_has_the_advice_too():
    error = OSError("No space left on device (os error 28)")
    said = _of_system(error)
    assert "No space left on device. Free some space" in said


def test_missing_extras_are_named(tmp_path):
    code = (
        "import sys; sys.modules['importlib.util'].find_spec = lambda name: None\n"
        "from fairpul.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import importlib.util\n" + code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert 'pip install "fairpul[app]"' in done.stderr
