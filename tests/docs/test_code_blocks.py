"""Every code block of README.md and docs/ runs, and prints what the page says."""

import doctest
import os
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

from fairpul.datasets import make_underdiagnosed

ROOT = Path(__file__).parents[2]
# Written at build time, from scripts and results that are tested elsewhere.
_GENERATED = ("_generated", "generated", "gallery")
PAGES = [ROOT / "README.md"] + [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if not any(part in _GENERATED for part in page.relative_to(ROOT).parts)
]
# What is not installed everywhere; `make engines` runs with these.
_ENGINES = {"dask", "ibis", "pyspark", "ray", "distributed"}
# A line after a dollar, continued by backslashes, and what it prints.
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# What a script prints may follow it.
_BLOCK = re.compile(
    r"^```(python|pycon|console)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


def blocks(page):
    """Kind, text, output and first line number of each block of a page that runs."""
    text = page.read_text("utf-8")
    return [
        (found[1], found[2], found[3], text.count("\n", 0, found.start(2)))
        for found in _BLOCK.finditer(text)
    ]


def is_slow(page):
    """Whether a page shows many commands: each starts Python anew."""
    return page.name != "README.md" and any(one[0] == "console" for one in blocks(page))


def needs_data(page):
    """Whether a page reads the published data sets."""
    return any("fetch_" in code for _, code, _, _ in blocks(page))


def run(kind, code, printed, line, page, namespace):
    """Run a block: a script as it is, a session with its output compared."""
    if kind == "python":
        # Blank lines in front make tracebacks point into the page.
        with redirect_stdout(StringIO()) as out:
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
        assert printed is None or out.getvalue() == printed
        return
    if kind == "console":
        run_commands(code, page)
        return
    test = doctest.DocTestParser().get_doctest(code, namespace, page.name, page, line)
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    assert not report, "".join(report)


def run_commands(code, page):
    """Run each line after a dollar in a shell; it must print what follows it."""
    pytest.importorskip("typer")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command, expected in _COMMAND.findall(code):
        done = subprocess.run(
            command,
            shell=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": path},
        )
        assert done.returncode == 0, f"{page.name}: {command}\n{done.stderr}"
        same = doctest.OutputChecker().check_output(
            expected, done.stdout or done.stderr, doctest.ELLIPSIS
        )
        assert same, f"{page.name}: {command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="the pages show the output of current versions",
)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.slow] * is_slow(page),
        )
        for page in PAGES
        if blocks(page)
    ],
)
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    if needs_data(page) and "FAIRPUL_DATA" not in os.environ:
        pytest.skip("FAIRPUL_DATA names no folder with the published data sets")
    if page.name == "README.md":
        write_scored(tmp_path / "scored.parquet")
    with warnings.catch_warnings():
        # Doubts about label frequencies are part of what the pages show, but the first
        # six lines have none.
        warnings.simplefilter("error" if page.name == "README.md" else "default")
        for block in blocks(page):
            try:
                run(*block, page, namespace)
            except ModuleNotFoundError as error:
                if (error.name or "").split(".")[0] not in _ENGINES:
                    raise
                pytest.skip(f"{error.name} is not installed")


def write_scored(path):
    """Write the file that the commands of the README speak of."""
    polars = pytest.importorskip("polars")
    data = make_underdiagnosed(8000, random_state=0)
    columns = {"p": data.score, "dx": data.labeled, "sex": data.group}
    polars.DataFrame(columns).write_parquet(path)


def test_pages_with_code_are_found():
    assert sum(len(blocks(page)) for page in PAGES) > 20
