"""The page of an audit, from the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fairpul import DecisionRule
from fairpul.audit import Audit
from fairpul.cli.console import Bar
from fairpul.cli.files import fingerprint
from fairpul.report.exhibits import exhibits
from fairpul.report.html import to_html


def page_of(
    report: Audit,
    rule: DecisionRule | None,
    files: Sequence[Path],
    *,
    title: str | None,
    date: str | None,
    source: str | None = None,
) -> str:
    """Text of the page, with progress while its rules are solved."""
    with Bar("Solving rules for the explorer", 1) as bar:
        numbers = exhibits(report, rule, progress=bar.set)
    if source is None:
        source = ", ".join(path.name for path in files)
    return to_html(
        numbers,
        title=title,
        date=date or _date_of_build(),
        source=source,
        fingerprint=fingerprint(files) if files else None,
    )


def _date_of_build() -> str | None:
    """Date that reproducible builds ask for; none otherwise."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if not seconds:
        return None
    if not seconds.isdigit():
        raise ValueError(
            f"SOURCE_DATE_EPOCH must be whole seconds since 1970, got {seconds!r}."
        )
    return datetime.fromtimestamp(int(seconds), UTC).date().isoformat()
