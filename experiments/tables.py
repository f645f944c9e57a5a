"""From result rows to the paper's tables, ours beside the published figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.plan import EXTRAS, Cell
from experiments.rows import METRICS, RowFile

#: The figures of the paper's tables, a row as printed there.
PAPER = Path(__file__).parent / "paper_tables.csv"
TABLES = ("methods", "in-vs-post", "label-rates", "base-models")
CELL = ["dataset", "base_model", "labeling_rate"]
COLUMNS = [
    "table",
    *CELL,
    "method",
    "metric",
    "mean",
    "sd",
    "published_mean",
    "published_sd",
    "distance",
    "splits",
    "fitted_on",
]
_WITH_VARIANTS = ("methods", "base-models")
#: Names in the published tables that differ from ours.
OURS = {"FairPUL": "FairPUL-EOP", "In": "Agarwal"}
#: The published row copies another one and contradicts the same cell elsewhere.
COPIED_ROW = ("label-rates", "german", "Lin.SVM", 0.9, "Naive")


def read(rows: RowFile) -> pd.DataFrame:
    """Read result rows, numbers as numbers."""
    text = dict.fromkeys(["dataset", "base_model", "method", "fitted_on"], str)
    return pd.read_csv(rows.path, dtype=text).astype({"failure": "object"})


def published() -> pd.DataFrame:
    """Read the published figures, in long form with columns ``mean`` and ``sd``."""
    printed = pd.read_csv(PAPER)
    key = ["table", *CELL, "method"]
    long = [
        printed[key].assign(
            metric=name, mean=printed[name], sd=printed[f"{name}_sd"], row=printed.index
        )
        for name in ("f1", "aod", "eod")
    ]
    rows = pd.concat(long).dropna(subset="mean").sort_values("row", kind="stable")
    return rows.drop(columns="row").reset_index(drop=True)


def of_tables(measured: pd.DataFrame, splits: int) -> pd.DataFrame:
    """Rows of the real data sets' tables: no extra unlabeled rows, the first splits."""
    kept = measured.extra_share.isna() & (measured.seed < splits)
    return measured[kept & (measured.dataset != "synthetic")]


def summarize(measured: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation and number of splits of every metric, in long form."""
    long = measured.melt(
        id_vars=[*CELL, "method", "seed", "fitted_on"],
        value_vars=list(METRICS),
        var_name="metric",
    )
    groups = long.groupby([*CELL, "method", "fitted_on", "metric"], sort=False).value
    found = groups.agg(mean="mean", sd="std", splits="count").reset_index()
    return found


def distance(mean: float, published_mean: float, published_sd: float) -> float:
    """Distance from a published mean in published standard deviations.

    A published 0.000 with standard deviation 0.000 is met exactly or not at all.
    """
    gap = abs(mean - published_mean)
    if published_sd > 0:
        return gap / published_sd
    return 0.0 if gap < 0.0005 else np.inf


def beside_published(summary: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Every published figure with ours beside it, then rows that the paper lacks."""
    published = published.rename(
        columns={"mean": "published_mean", "sd": "published_sd"}
    )
    published = published.assign(ours=published.method.replace(OURS))
    key = [*CELL, "metric"]
    ours = summary.rename(columns={"method": "ours"})
    first = published.merge(ours, on=[*key, "ours"], how="left")
    first["splits"] = first.splits.fillna(0).astype(int)
    rest = pd.concat(_unpublished(table, summary, published) for table in TABLES)
    both = pd.concat([first, rest], ignore_index=True)
    both["distance"] = [
        distance(*row)
        for row in both[["mean", "published_mean", "published_sd"]].itertuples(
            index=False
        )
    ]
    both.loc[both.published_mean.isna(), "distance"] = np.nan
    return both[COLUMNS]


def _unpublished(
    table: str, summary: pd.DataFrame, published: pd.DataFrame
) -> pd.DataFrame:
    """Methods and metrics of a table's cells without a published figure of their own.

    A variant of a method, such as "Oracle (upsampled)", carries the published figure of
    the method, so that its distance can be read too; it is shown in the tables that
    compare methods.
    """
    here = published[published.table == table]
    rows = summary.merge(here[CELL].drop_duplicates(), on=CELL)
    plain = rows.method.str.replace(r" \(.*\)", "", regex=True)
    rows = rows.assign(ours=plain, table=table)
    if table not in _WITH_VARIANTS:
        rows = rows[rows.method == plain]
    rows = rows[rows.ours.isin({*here.ours, *EXTRAS})]
    figures = here[[*CELL, "ours", "metric", "published_mean", "published_sd"]]
    rows = rows.merge(figures, on=[*CELL, "ours", "metric"], how="left")
    rows = rows[rows.published_mean.isna() | (rows.method != rows.ours)]
    theirs = here[[*CELL, "ours", "method"]].drop_duplicates()
    theirs = theirs.rename(columns={"method": "theirs"})
    rows = rows.merge(theirs, on=[*CELL, "ours"], how="left")
    renamed = (rows.method == rows.ours) & rows.theirs.notna()
    return rows.assign(method=rows.method.mask(renamed, rows.theirs))


def write(
    measured: pd.DataFrame,
    results: Path,
    splits: int,
    name: str,
    cells: Sequence[Cell] | None = None,
) -> None:
    """Write the long CSV and the tables as Markdown, of some cells or of all."""
    kept, figures = of_tables(measured, splits), published()
    if cells is not None:
        kept = _in_cells(kept, kept.method, cells)
        figures = _in_cells(figures, figures.method.replace(OURS), cells)
    both = beside_published(summarize(kept), figures)
    both.round(4).to_csv(results / f"{name}.csv", index=False)
    text = [f"# The paper's tables, {splits} splits", "", _LEGEND]
    is_variant = both.method.str.endswith(")")
    text += ["", "## How near the published figures", "", *_nearness(both[~is_variant])]
    text += ["", "### Variants that explain them", "", *_nearness(both[is_variant])]
    for table in TABLES:
        for dataset, rows in both[both.table == table].groupby("dataset", sort=False):
            text += ["", f"## {table}, {dataset}", "", *_markdown(rows)]
    text += ["", *failures(kept, CELL)]
    (results / f"{name}.md").write_text("\n".join(text) + "\n", encoding="utf-8")


def _in_cells(
    rows: pd.DataFrame, method: pd.Series, cells: Sequence[Cell]
) -> pd.DataFrame:
    """Rows of the methods that some cells name."""
    named = {
        (cell.dataset, cell.base, cell.rate, name)
        for cell in cells
        for name in cell.methods
    }
    keys = zip(rows.dataset, rows.base_model, rows.labeling_rate, method, strict=True)
    return rows[[key in named for key in keys]]


_LEGEND = (
    "Mean ± standard deviation over splits; in brackets the published mean ± standard "
    "deviation and the distance in published standard deviations. Error, balanced "
    "accuracy and share predicted positive have no published figures. *Sampling noise* "
    "is what a rule with the same true rates in both groups, those of FairPUL-EOP "
    "overall, is expected to show on as many test rows."
)
_NEAR = (
    *("data set", "base", "rate", "method"),
    *("F1", "AOD", "EOD", "within one sd", "splits"),
)
_HEAD = (
    *("base", "rate", "method", "F1", "AOD", "EOD"),
    *("error", "bal. acc.", "positive", "splits", "fitted on"),
)
_SHOWN = ("f1", "aod", "eod", "error", "balanced_accuracy", "selection_rate")


def _markdown(rows: pd.DataFrame) -> Iterable[str]:
    yield "| " + " | ".join(_HEAD) + " |"
    yield "|" + " --- |" * len(_HEAD)
    rows = _by_cell(rows)
    cells = rows.groupby(["base_model", "labeling_rate", "method"], sort=False)
    for (base, rate, method), cell in cells:
        by_metric = cell.drop_duplicates("metric").set_index("metric")
        shown = [
            _cell(by_metric.loc[m]) if m in by_metric.index else "" for m in _SHOWN
        ]
        copied = (cell.table.iloc[0], cell.dataset.iloc[0], base, rate, method)
        mark = " [a copied row in the paper]" if copied == COPIED_ROW else ""
        fitted_on = cell.fitted_on.dropna()
        last = [str(cell.splits.max()), fitted_on.iloc[0] if len(fitted_on) else ""]
        yield "| " + " | ".join([base, str(rate), method + mark, *shown, *last]) + " |"


def _by_cell(rows: pd.DataFrame) -> pd.DataFrame:
    """Put a cell's rows together, in the order in which cells first appear."""
    place = rows.groupby(CELL, sort=False).ngroup()
    return rows.assign(place=place).sort_values("place", kind="stable")


def _nearness(both: pd.DataFrame) -> Iterable[str]:
    """Distances of every row that has published figures, each row once."""
    rows = both[both.published_mean.notna()].assign(
        method=lambda row: row.method.replace(OURS)
    )
    rows = _by_cell(rows.drop_duplicates([*CELL, "method", "metric", "published_mean"]))
    near = (rows.distance <= 1).sum()
    yield f"{near} of {len(rows)} figures within one published standard deviation."
    yield ""
    yield "| " + " | ".join(_NEAR) + " |"
    yield "|" + " --- |" * len(_NEAR)
    for key, row in rows.groupby([*CELL, "method"], sort=False):
        by_metric = row.drop_duplicates("metric").set_index("metric").distance
        shown = [_distance(by_metric.get(m)) for m in ("f1", "aod", "eod")]
        within = "yes" if (by_metric <= 1).all() else "no"
        cells = [*map(str, key), *shown, within, str(row.splits.max())]
        yield "| " + " | ".join(cells) + " |"


def _distance(value: float | None) -> str:
    if value is None:
        return ""
    return "-" if np.isnan(value) else f"{value:.1f}"


def _cell(row: pd.Series) -> str:
    if np.isnan(row["mean"]):
        ours = "-"
    else:
        spread = "" if np.isnan(row.sd) else f" ± {row.sd:.3f}"
        ours = f"{row['mean']:.3f}{spread}"
    if np.isnan(row.published_mean):
        return ours
    published = f"{row.published_mean:.3f} ± {row.published_sd:.3f}"
    return f"{ours} ({published}; {row.distance:.1f})"


def failures(measured: pd.DataFrame, cell: Sequence[str]) -> Iterable[str]:
    """List the failures by cell and method, each with the first reason."""
    failed = measured[measured.failure.notna()]
    if failed.empty:
        return ["No method failed on any split."]
    lines = ["## Failed rows", ""]
    for key, rows in failed.groupby([*cell, "method"], sort=False):
        name = ", ".join(map(str, key))
        lines.append(f"* {name}: {len(rows)} splits. {rows.failure.iloc[0]}")
    return lines


def write_study(
    rows: pd.DataFrame, summary: pd.DataFrame, results: Path, name: str
) -> None:
    """Write the rows of a study as CSV and their summary as Markdown."""
    rows.to_csv(results / f"{name}.csv", index=False)
    lines = [list(summary.columns), ["---"] * summary.shape[1]]
    for row in summary.itertuples(index=False):
        lines.append([f"{x:.4f}" if isinstance(x, float) else str(x) for x in row])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    (results / f"{name}.md").write_text(text + "\n", encoding="utf-8")
