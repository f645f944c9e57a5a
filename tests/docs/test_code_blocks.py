"""Every code block of README.md and docs/ runs, and prints what the page says."""

import doctest
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

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
_BLOCK = re.compile(r"^```(python|pycon|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Kind, text and first line number of each block of a page that runs."""
    text = page.read_text("utf-8")
    return [
        (found[1], found[2], text.count("\n", 0, found.start(2)))
        for found in _BLOCK.finditer(text)
    ]


def has_console(page):
    """Whether a page shows commands."""
    return any(kind == "console" for kind, _, _ in blocks(page))


def run(kind, code, line, page, namespace):
    """Run a block: a script as it is, a session with its output compared."""
    if kind == "python":
        # Blank lines in front make tracebacks point into the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)
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
            # Each command starts Python anew.
            marks=[pytest.mark.slow] * has_console(page),
        )
        for page in PAGES
        if blocks(page)
    ],
)
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    with warnings.catch_warnings():
        # Doubts about label frequencies are part of what the pages show.
        warnings.simplefilter("default")
        for kind, code, line in blocks(page):
            try:
                run(kind, code, line, page, namespace)
            except ModuleNotFoundError as error:
                if (error.name or "").split(".")[0] not in _ENGINES:
                    raise
                pytest.skip(f"{error.name} is not installed")


def test_pages_with_code_are_found():
    assert sum(len(blocks(page)) for page in PAGES) > 20
