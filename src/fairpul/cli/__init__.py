"""The ``fairpul`` command: audits, rules, decisions and counts without writing Python.

Only this package and what it calls in :mod:`fairpul.report` need the extra
``fairpul[app]``.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

_REQUIRED = ("typer", "rich", "jinja2", "altair", "vl_convert", "pyarrow", "polars")


def main() -> int:
    """Run the command and return its exit code: 0, 2 for bad input, 3 for --fail-if."""
    missing = [name for name in _REQUIRED if find_spec(name) is None]
    if missing:
        print(
            f"fairpul: the command needs {', '.join(missing)}. "
            'Install them with: pip install "fairpul[app]"',
            file=sys.stderr,
        )
        return 2
    from fairpul.cli.running import run

    return run(sys.argv[1:])
