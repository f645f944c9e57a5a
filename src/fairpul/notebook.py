"""Small tables of rates, audits and rules, in a terminal and in a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

_WIDTH = 88


def html_table(caption: str, rows: Sequence[Sequence[str]]) -> str:
    """Table as HTML, all text escaped; the first row is the head.

    Examples
    --------
    >>> html_table("A rule", [["group", "TPR"], ["<b>", "0.5"]])  # doctest: +ELLIPSIS
    '<table><caption>A rule</caption><thead>...<th scope="row">&lt;b&gt;</th>...
    """
    head, *body = rows
    cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in body
    )
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"
    )


def text_table(rows: Sequence[Sequence[str]], *, rule: bool = False) -> str:
    """Table in plain columns.

    Parameters
    ----------
    rows : sequence of sequences of str
        The first row is the head.
    rule : bool
        Whether to draw a line below the head.

    Examples
    --------
    >>> print(text_table([["group", "TPR"], ["f", "0.5"]], rule=True))
    group  TPR
    -----  ---
    f      0.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if rule:
        lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def html_notes(texts: Sequence[str]) -> str:
    """Sentences below a table as an HTML list, escaped; nothing where there is none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def text_notes(texts: Sequence[str]) -> list[str]:
    """Sentences below a table in plain text, wrapped.

    Examples
    --------
    >>> text_notes(["Read the interval."])
    ['! Read the interval.']
    """
    return [
        textwrap.fill(text, _WIDTH, initial_indent="! ", subsequent_indent="  ")
        for text in texts
    ]
