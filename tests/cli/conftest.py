"""The command as a user runs it: a process of its own in an empty folder."""

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from fairpul.datasets import make_underdiagnosed

# The oldest polars that the library supports is too old for the command.
collect_ignore_glob = [] if hasattr(pl.LazyFrame, "collect_batches") else ["test_*.py"]


@dataclass(frozen=True)
class Outcome:
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def complaint(self):
        """The one line of an error; notes come before it."""
        lines = [line for line in self.err.splitlines() if line.startswith("fairpul:")]
        assert len(lines) == 1, self.err
        assert self.err.rstrip().endswith(lines[0]), self.err
        assert "Traceback" not in self.err
        return lines[0]


@pytest.fixture
def fairpul(tmp_path):
    def run(*arguments, code=0, **environment):
        done = subprocess.run(
            [sys.executable, "-m", "fairpul.cli", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "80", **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stderr + done.stdout
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def quick(tmp_path, monkeypatch, capsys):
    """Run the command inside this process: for the many variants of bad input."""
    from fairpul.cli.running import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def inside(*arguments, code=0):
        capsys.readouterr()
        found = run([*map(str, arguments)])
        out, err = capsys.readouterr()
        assert found == code, err + out
        return Outcome(found, out, err)

    return inside


@pytest.fixture(scope="session")
def rows():
    data = make_underdiagnosed(3000, random_state=1)
    return pl.DataFrame(
        {
            "id": np.arange(3000),
            "p": data.score,
            "dx": data.labeled,
            "sex": data.group,
            "race": np.where(np.arange(3000) % 2 == 0, "b", "w"),
            "referred": (data.score >= 0.2).astype(int),
        }
    )


@pytest.fixture
def scored(tmp_path, rows):
    path = tmp_path / "scored.parquet"
    rows.write_parquet(path)
    return path
