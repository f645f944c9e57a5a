"""Commands of ``fairpul``: check the options, read, call the library, write."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated

import typer

from fairpul import fit_rule
from fairpul._files import replacing, write_text
from fairpul.cli.console import say, show
from fairpul.cli.deciding import decide_file
from fairpul.cli.demo import DEMO_ROWS, run_demo
from fairpul.cli.inputs import (
    Cut,
    audit_files,
    check_parquet,
    columns_of,
    objective_of,
    read_rule,
    required,
    scores_of,
)
from fairpul.cli.options import Condition, parse_priors
from fairpul.cli.pages import page_of
from fairpul.cli.printing import print_audit, print_counts, print_rule
from fairpul.cli.rows import count_rows, read_counts
from fairpul.objectives import CONSTRAINTS

FAILED_CONDITION = 3

app = typer.Typer(
    name="fairpul",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Audit and fix gaps in true and false positive rates between groups, from "
        "positives and unlabeled rows alone.\n\nStart with: fairpul demo"
    ),
)

Score = Annotated[
    str | None, typer.Option(help="Column of scores in [0, 1], held out.")
]
Labeled = Annotated[
    str | None, typer.Option(help="Column of labels: 1 labeled positive, 0 unlabeled.")
]
Group = Annotated[
    list[str] | None,
    typer.Option(help="Column of the group; repeat it for intersectional groups."),
]
Weight = Annotated[str | None, typer.Option(help="Column of sampling weights.")]
Cluster = Annotated[
    str | None, typer.Option(help="Column of what rows belong to, such as patients.")
]
Priors = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP=P[:LOW:HIGH]",
        help="Share of positives in a group, for example f=0.10:0.08:0.13.",
    ),
]
Date = Annotated[
    str | None,
    typer.Option(
        envvar="FAIRPUL_DATE",
        help="Date to print on the page; none is printed without it.",
    ),
]


@app.callback(invoke_without_command=True)
def fairpul(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = (
        False
    ),
) -> None:
    """Audit and fix gaps between groups."""
    if version:
        show(f"fairpul {version_of('fairpul')}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("demo.html"),
    rows: Annotated[int, typer.Option(min=1000, help="Patients.")] = DEMO_ROWS,
    date: Date = None,
) -> None:
    """Simulate under-diagnosis in two groups, audit, fix, and write a page.

    Needs no data and no network.

    Example:

    ```
    fairpul demo --out demo.html
    ```
    """
    run_demo(out, rows, date)


@app.command()
def audit(
    files: Annotated[list[Path], typer.Argument(help="CSV or Parquet files.")],
    labeled: Labeled = None,
    group: Group = None,
    decision: Annotated[
        str | None, typer.Option(help="Column of decisions: 1 accepted, 0 not.")
    ] = None,
    score: Score = None,
    threshold: Annotated[
        float | None, typer.Option(help="Accept scores of at least this.")
    ] = None,
    capacity: Annotated[
        float | None, typer.Option(help="Accept the top share of all rows by score.")
    ] = None,
    rule: Annotated[
        Path | None, typer.Option(help="Accept as this rule does (JSON).")
    ] = None,
    prior: Priors = None,
    weight: Weight = None,
    cluster: Cluster = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the page to this file.")
    ] = None,
    json_out: Annotated[
        str | None,
        typer.Option(
            "--json", help="Write numbers to this file; - is standard output."
        ),
    ] = None,
    fail_if: Annotated[
        str | None,
        typer.Option(help="Exit with 3 if this holds, such as gaps.tpr.low > 0.05."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    date: Date = None,
) -> None:
    r"""Rates of each group and their gaps, with an interval on every number.

    Example:

    ```
    fairpul audit scored.parquet --labeled dx --group sex \
        --score p --capacity 0.1 --html audit.html
    ```
    """
    condition = None if fail_if is None else Condition.parse(fail_if)
    chosen = None if rule is None else read_rule(rule)
    cut = Cut(decision, score, threshold, capacity, chosen)
    if html is not None and json_out is not None and html == Path(json_out):
        raise ValueError("--html and --json name the same file. Name two.")
    if html is None:
        report = audit_files(files, labeled, group, cut, prior, weight, cluster)
    else:
        with replacing(html) as beside:
            report = audit_files(files, labeled, group, cut, prior, weight, cluster)
            known = None if chosen is None else chosen.rule
            page = page_of(report, known, files, title=title, date=date)
            beside.write_text(page, "utf-8")
    if json_out == "-":
        sys.stdout.write(report.to_json() + "\n")
    else:
        print_audit(report)
        if json_out is not None:
            write_text(Path(json_out), report.to_json() + "\n")
        if html is not None:
            show(f"Page: {html}")
    if condition is not None and condition.holds(values := report.to_dict()):
        say(f"failed: {condition}, it is {condition.value(values):.4g}", "bold red")
        raise typer.Exit(FAILED_CONDITION)


@app.command()
def fit(
    files: Annotated[
        list[Path], typer.Argument(help="CSV or Parquet files, or tables of counts.")
    ],
    out: Annotated[Path, typer.Option(help="Rule to write (JSON).")],
    score: Score = None,
    labeled: Labeled = None,
    group: Group = None,
    constraint: Annotated[
        str, typer.Option(help=f"{', '.join(map(str, list(CONSTRAINTS)[:-1]))}, none.")
    ] = "equal_opportunity",
    tolerance: Annotated[
        float, typer.Option(help="Largest gap allowed in a constrained rate.")
    ] = 0.0,
    recall: Annotated[
        float | None, typer.Option(help="Least recall (TPR) of every group.")
    ] = None,
    assured: Annotated[
        bool, typer.Option(help="Hold the recall with 95% confidence.")
    ] = True,
    capacity: Annotated[
        float | None, typer.Option(help="Largest share of rows to accept.")
    ] = None,
    prior: Priors = None,
    weight: Weight = None,
    cluster: Cluster = None,
    seed: Annotated[int, typer.Option(help="Seed of a lottery's salt.")] = 0,
) -> None:
    r"""Fit the best decision rule whose gaps stay within a tolerance.

    With a recall floor it accepts as few as possible, with a capacity it finds as many
    positives as possible, with neither it makes the fewest errors.

    Example:

    ```
    fairpul fit scored.parquet --score p --labeled dx \
        --group sex --recall 0.8 --out rule.json
    ```
    """
    objective = objective_of(recall, capacity, assured=assured)
    with replacing(out) as beside:
        rows = scores_of(files, score, labeled, group, weight, cluster)
        rule = fit_rule(
            rows,
            constraint=None if constraint == "none" else constraint,
            tolerance=tolerance,
            objective=objective,
            class_prior=parse_priors(prior or [], rows.groups),
            random_state=seed,
        )
        columns = {"score": score, "labeled": labeled, "group": group}
        fields = rule.to_dict() | {"columns": columns}
        text = json.dumps(fields, indent=1, allow_nan=False)
        beside.write_text(text + "\n", "utf-8")
    print_rule(rule)
    show(f"Rule: {out}")


@app.command()
def apply(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file of scored rows.")],
    rule: Annotated[Path, typer.Argument(help="Rule (JSON) of fairpul fit.")],
    out: Annotated[Path, typer.Option(help="File to write, CSV or Parquet.")],
    row_id: Annotated[
        str | None,
        typer.Option(help="Column of integers that name the rows, for lotteries."),
    ] = None,
    score: Score = None,
    group: Group = None,
) -> None:
    r"""Write the rows of a file with a column of decisions.

    The columns of score and group are those that the rule was fitted with, unless
    named. A row without a decision is an error, and then no file is written.

    Example:

    ```
    fairpul apply scored.parquet rule.json --row-id id \
        --out decided.parquet
    ```
    """
    chosen = read_rule(rule)
    done = decide_file(
        file,
        chosen.rule,
        out,
        score=required("--score", score or chosen.score),
        groups=group or chosen.groups,
        row_id=row_id,
    )
    share = done["accepted"] / done["rows"]
    show(f"{done['accepted']:,} of {done['rows']:,} rows accepted ({share:.1%}): {out}")


@app.command()
def count(
    files: Annotated[list[Path], typer.Argument(help="CSV or Parquet files.")],
    out: Annotated[Path, typer.Option(help="Table of counts to write (Parquet).")],
    score: Score = None,
    labeled: Labeled = None,
    group: Group = None,
    weight: Weight = None,
    bins: Annotated[int, typer.Option(help="Bins of the score, a power of two.")] = (
        4096
    ),
    suppress_below: Annotated[
        int | None, typer.Option(help="Smallest cell to share; smaller ones move.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="What the scores come from, such as a version.")
    ] = None,
) -> None:
    r"""Count rows per group and bin: all that fit needs, without any row.

    Example:

    ```
    fairpul count part-1.parquet part-2.parquet --score p \
        --labeled dx --group sex --out site-a.counts.parquet
    ```
    """
    columns = columns_of(score, labeled, group, weight)
    check_parquet(out)
    with replacing(out) as beside:
        counts = count_rows(files, columns, bins=bins, model=model)
        if suppress_below is not None:
            counts = counts.coarsen(suppress_below=suppress_below)
        counts.write_parquet(beside)
    print_counts(counts, out)


@app.command()
def merge(
    files: Annotated[list[Path], typer.Argument(help="Tables of counts.")],
    out: Annotated[Path, typer.Option(help="Table of counts to write (Parquet).")],
) -> None:
    r"""Add up tables of counts, such as those of several sites.

    Example:

    ```
    fairpul merge site-a.counts.parquet site-b.counts.parquet \
        --out all.counts.parquet
    ```
    """
    check_parquet(out)
    with replacing(out) as beside:
        counts = read_counts(files)
        counts.write_parquet(beside)
    print_counts(counts, out)
