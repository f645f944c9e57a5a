"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Path beside the target that takes its place only if all went well.

    The target keeps its old content, or stays absent, on any error and on interrupts.
    """
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder. Name a file to write.")
    if path.exists() and not path.is_file():  # as root, /dev/null would be replaced
        raise ValueError(
            f"{str(path)!r} is a device or a pipe, not a file. Name a file to write."
        )
    if not path.parent.is_dir():
        raise ValueError(
            f"The folder {str(path.parent)!r} does not exist. Create it first."
        )
    path = path.resolve()  # a link stays, and what it points to is replaced
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.touch()  # a folder that cannot be written to fails before the work
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(text, "utf-8")
