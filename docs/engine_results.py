"""Result files of the engine benchmarks as tables of pages."""

from __future__ import annotations

import csv
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
MISSING = "*The results are not in this checkout; `make {target}` writes them.*\n"
STEPS = {"count": "count", "refine": "count, refined", "apply": "apply and write"}
ENGINES = {"polars": "Polars", "duckdb": "DuckDB", "dask": "Dask", "spark": "Spark"}
TABLES = ("2^12", "2^16", "2^12 refined")
DIFFERENCES = ("loss", "tpr_gap_change", "fpr_gap_change")
EXTRAPOLATED = 10**11


def write_all(folder):
    """Write the tables; say which command makes the results that are missing."""
    for name, target, table in (
        ("scale", "scale", scale),
        ("scale", "scale", core_hours),
        ("counts_precision", "precision", precision),
    ):
        text = MISSING.format(target=target)
        source = RESULTS / f"{name}.csv"
        if source.exists():
            with source.open(newline="") as file:
                text = table(list(csv.DictReader(file)))
        (folder / f"engines_{table.__name__}.md").write_text(text, encoding="utf-8")


def scale(rows):
    """Wall time, CPU time and peak memory of each step on each engine."""
    n_rows = f"{int(rows[0]['rows']):,} rows"
    titles = [f"{step}: wall s / CPU s / peak MB" for step in STEPS.values()]
    lines = _by_engine(rows, "{wall_s} / {cpu_s} / {peak_mb}".format_map)
    others = [float(row["others"]) for row in rows]
    return markdown([n_rows, *titles], lines) + (
        f"\nTwo cores; other work on the machine took {min(others):g} to "
        f"{max(others):g} of them meanwhile, which stretches wall times.\n"
    )


def core_hours(rows):
    """CPU time of each step for 10^11 rows, in hours, as the rows go."""

    def hours(row):
        total = float(row["cpu_s"]) * EXTRAPOLATED / int(row["rows"])
        return f"{total / 3600:.2g}"

    return markdown(["core hours", *STEPS.values()], _by_engine(rows, hours))


def _by_engine(rows, cell):
    """Line of each engine, with a cell for each step that was run."""
    at = {(row["engine"], row["step"]): cell(row) for row in rows}
    return [
        [name, *(at.get((engine, step), "not run") for step in STEPS)]
        for engine, name in ENGINES.items()
    ]


def precision(rows):
    """Largest difference from the rule of the rows, by scenario and kind of table."""
    lines = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        cells = []
        for table in TABLES:
            found = [
                row
                for row in rows
                if (row["scenario"], row["table"]) == (scenario, table)
            ]
            worst = (max(abs(float(row[d])) for row in found) for d in DIFFERENCES)
            cells.append(", ".join(map(rounded, worst)))
        lines.append([scenario, *cells])
    titles = [f"{table}: loss, TPR gap, FPR gap" for table in TABLES]
    return markdown(["scenario", *titles], lines)


def rounded(value):
    """One digit; what an LP solver leaves of 0 is 0."""
    return "0" if value < 1e-9 else f"{value:.0e}".replace("e-0", "e-")


def markdown(titles, lines):
    """Table of cells."""
    rule = ["---"] * len(titles)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [titles, rule, *lines])
