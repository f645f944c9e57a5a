"""Small tables that rules and classifiers show in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


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
