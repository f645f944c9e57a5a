"""From options to library calls: what must be given together, and defaults of files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairpul import (
    Capacity,
    DecisionRule,
    GroupCounts,
    GroupScores,
    RecallFloor,
)
from fairpul import audit as audit_scores
from fairpul._groups import encode_groups
from fairpul.audit import Audit
from fairpul.cli.files import PARQUET, is_counts
from fairpul.cli.options import parse_priors
from fairpul.cli.rows import (
    Columns,
    array_of,
    group_of,
    read_counts,
    read_rows,
    read_scores,
)
from fairpul.objectives import MinimumCost, Objective


@dataclass(frozen=True)
class RuleFile:
    """A rule with the names of the columns that it was fitted on, where known."""

    rule: DecisionRule
    score: str | None = None
    labeled: str | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cut:
    """Who is accepted, as the options say."""

    decision: str | None
    score: str | None
    threshold: float | None
    capacity: float | None
    rule: RuleFile | None


def required(option: str, value: str | None) -> str:
    """Value of an option, or an error that names it."""
    if value is None:
        raise ValueError(f"{option} is required: name the column of the file.")
    return value


def columns_of(
    score: str | None,
    labeled: str | None,
    group: Sequence[str] | None,
    weight: str | None,
    cluster: str | None = None,
) -> Columns:
    """Names of the columns to read."""
    groups = tuple(group or ())
    if len(set(groups)) < len(groups):
        raise ValueError(f"--group names a column twice: {', '.join(groups)}.")
    return Columns(
        required("--score", score),
        required("--labeled", labeled),
        groups,
        weight,
        cluster,
    )


def objective_of(
    recall: float | None, capacity: float | None, *, assured: bool
) -> Objective:
    """Objective that --recall and --capacity ask for."""
    floor = None if recall is None else RecallFloor(recall, assured=assured)
    if capacity is not None:
        return Capacity(capacity, floor)
    return MinimumCost() if floor is None else floor


def check_parquet(out: Path) -> None:
    """Refuse the name of a table of counts that could not be found again."""
    if not out.name.lower().endswith(PARQUET):
        raise ValueError(f"--out {str(out)!r} must end in {' or '.join(PARQUET)}.")


def read_rule(path: Path) -> RuleFile:
    """Rule of a JSON file."""
    if not path.is_file():
        raise ValueError(f"The rule {str(path)!r} does not exist. Check the path.")
    try:
        text = path.read_text("utf-8")
        rule = DecisionRule.from_json(text)
    except ValueError as error:  # also of text that is no JSON, or no UTF-8
        raise ValueError(f"{str(path)!r} is not a rule: {error}") from error
    columns = json.loads(text).get("columns") or {}
    return RuleFile(
        rule,
        columns.get("score"),
        columns.get("labeled"),
        tuple(columns.get("group") or ()),
    )


def scores_of(
    files: Sequence[Path],
    score: str | None,
    labeled: str | None,
    group: Sequence[str] | None,
    weight: str | None,
    cluster: str | None,
) -> GroupScores | GroupCounts:
    """Scores of rows, or tables of counts if the files are such."""
    if any(map(is_counts, files)):
        if weight is not None or cluster is not None:
            raise ValueError(
                "--weight and --cluster need rows, and a table of counts has none. "
                "Give --weight to fairpul count, or name files of rows."
            )
        return read_counts(files)
    return read_scores(files, columns_of(score, labeled, group, weight, cluster))


def audit_files(
    files: Sequence[Path],
    labeled: str | None,
    group: Sequence[str] | None,
    cut: Cut,
    prior: Sequence[str] | None,
    weight: str | None,
    cluster: str | None,
) -> Audit:
    """Audit of the rows or counts of files."""
    _check_cut(cut)
    labeled = labeled or (cut.rule.labeled if cut.rule else None)
    group = group or (cut.rule.groups if cut.rule else ())
    if cut.decision is not None:
        columns = columns_of(cut.decision, labeled, group, weight, cluster)
        return _audit_decisions(files, columns, cut.score, prior or [])
    score = cut.score or (cut.rule.score if cut.rule else None)
    rows = scores_of(files, score, labeled, group, weight, cluster)
    return audit_scores(
        rows,
        threshold=cut.threshold,
        capacity=cut.capacity,
        rule=cut.rule.rule if cut.rule else None,
        class_prior=parse_priors(prior or [], rows.groups),
    )


def _check_cut(cut: Cut) -> None:
    ways = {
        "--decision": cut.decision,
        "--threshold": cut.threshold,
        "--capacity": cut.capacity,
        "--rule": cut.rule,
    }
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise ValueError(
            f"Who is accepted? Give exactly one of {', '.join(ways)}; got {found}."
        )


def _audit_decisions(
    files: Sequence[Path], columns: Columns, score: str | None, prior: Sequence[str]
) -> Audit:
    """Audit a column of decisions; ``columns.score`` names it."""
    if any(map(is_counts, files)):
        raise ValueError(
            "A table of counts holds no decisions. Give --threshold, --capacity or "
            "--rule instead of --decision."
        )
    rows = read_rows(files, columns, score)
    group = group_of(rows, columns.groups)
    _, groups = encode_groups(group, len(rows))
    return audit_scores(
        labeled=rows[columns.labeled].to_numpy(),
        group=group,
        decision=rows[columns.score].to_numpy(),
        score=array_of(rows, score),
        class_prior=parse_priors(prior, groups),
        sample_weight=array_of(rows, columns.weight),
        cluster=array_of(rows, columns.cluster),
    )
