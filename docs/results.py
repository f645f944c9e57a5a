"""Result files of the experiments and benchmarks, as parts of pages."""

from __future__ import annotations

import shutil
from pathlib import Path

import engine_results

ROOT = Path(__file__).parent.parent
FOLDER = Path(__file__).parent / "_generated"
MISSING = "*The results are not in this checkout; `{command}` writes them.*\n"


def write_all():
    """Copy tables and figures; say which command makes those that are missing."""
    FOLDER.mkdir(exist_ok=True)
    results = ROOT / "experiments" / "results"
    for name in ("replication", "theorem1", "annealing"):
        copy_table(results / f"{name}.md", "make replicate")
    copy_table(results / "replication-40.md", "make replicate-40")
    copy_table(results / "coverage.md", "make coverage")
    copy_table(results / "pu_benchmark.md", "make pu-benchmark")
    engine_results.write_all(FOLDER)
    for picture in results.glob("*.png"):
        shutil.copy(picture, FOLDER)


def copy_table(source, command):
    """Copy a page of tables, without its title, which the including page has."""
    target = FOLDER / source.name
    if not source.exists():
        target.write_text(MISSING.format(command=command), encoding="utf-8")
        return
    lines = source.read_text(encoding="utf-8").splitlines()
    if lines and lines[0].startswith("# "):
        lines = lines[1:]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
