"""One run of the command: what goes wrong becomes one line and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

from typer.exceptions import Abort, Exit, TyperException

from fairpul.cli.app import app
from fairpul.cli.console import one_line, say

BAD_INPUT = 2
_INTERRUPTED = 130  # as typer reports it
# Polars tells the number of a system error in its text only.
_OS_ERROR = re.compile(r"os error (\d+)")


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.showwarning = _note
        try:
            code = app(list(arguments), prog_name="fairpul", standalone_mode=False)
            sys.stdout.flush()
        except Exit as stop:
            code = int(stop.exit_code)
        except Abort:
            raise KeyboardInterrupt from None
        except TyperException as error:
            if not error.format_message().strip():  # help was asked for by no arguments
                return BAD_INPUT
            return _fail(f"{error.format_message()} See: fairpul --help")
        except BrokenPipeError:
            # The reader of a pipe left; nobody is there to be told.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except SystemExit:  # as rich ends when the reader of a pipe has left
            return 0
        except OSError as error:
            return _fail(_of_system(error))
        except (ValueError, TypeError, OverflowError, ImportError) as error:
            return _fail(str(error))
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _fail(message: str) -> int:
    say(f"fairpul: {one_line(message)}", style="bold red")
    return BAD_INPUT


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"note: {one_line(str(message))}", style="yellow")


def _of_system(error: OSError) -> str:
    name = f" {os.fspath(error.filename)!r}" if error.filename else ""
    advice: dict[Any, str] = {
        errno.ENOENT: "Check the path.",
        errno.ENOSPC: "Free some space, or write elsewhere with --out.",
        errno.EACCES: "Check the permissions.",
        errno.EISDIR: "Name a file.",
        errno.ENOTDIR: "Check the path.",
    }
    number = error.errno
    if number is None and (told := _OS_ERROR.search(str(error))):
        number = int(told[1])
    what = error.strerror or str(error)
    if number is not None:
        what = os.strerror(number)  # not the wording of the library that met it
    return f"cannot use the file{name}: {what}. {advice.get(number, '')}"
