"""What the command says: results to standard output, everything else to the other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

_MOST_LETTERS = 1000
_PATIENCE = 1.0  # seconds before a progress bar appears


def say(text: str, style: str = "") -> None:
    """Print a line to standard error, in color on a terminal only."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        escape(text), style=style
    )


def show(text: str, style: str = "") -> None:
    """Print a line of the result."""
    Console(highlight=False, soft_wrap=True).print(escape(text), style=style)


def show_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of the result, the first column left and the others right."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for place, name in enumerate(header):
        table.add_column(
            escape(name), justify="right" if place else "left", no_wrap=True
        )
    for row in rows:
        table.add_row(*map(escape, row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200
    console.print(table)


def one_line(text: str) -> str:
    """Text without line breaks and other control characters, of bearable length."""
    words = "".join(x for x in " ".join(text.split()) if x.isprintable())
    if len(words) <= _MOST_LETTERS:
        return words
    half = _MOST_LETTERS // 2  # lists of groups are long; the remedy comes last
    return f"{words[:half]} ... {words[-half:]}"


def percent(value: float) -> str:
    """Write a share with a resolution that fits its size."""
    return f"{value:.1%}" if value < 0.1 else f"{value:.0%}"


class Bar:
    """Progress with the time left, shown once a second has passed on a terminal."""

    def __init__(self, what: str, total: float) -> None:
        self._started = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(escape(what), total=total)
        self._shown = False

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._progress.stop()

    def advance(self, amount: float = 1) -> None:
        """Count something as done."""
        self._progress.advance(self._task, amount)
        self._show_if_slow()

    def set(self, done: float, total: float) -> None:
        """Say how much is done."""
        self._progress.update(self._task, completed=done, total=total)
        self._show_if_slow()

    def _show_if_slow(self) -> None:
        waited = time.monotonic() - self._started > _PATIENCE
        if waited and not self._shown and self._progress.console.is_terminal:
            self._progress.start()
            self._shown = True
