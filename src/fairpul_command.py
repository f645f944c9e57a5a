"""Entry of the ``fairpul`` command, beside the package, which takes a while to import.

So an interrupt gives one line from the first moment on, and a request to terminate is
an interrupt: what was begun is cleared away.
"""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command and return its exit code: 0, 2 for bad input, 3 for --fail-if."""
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from fairpul.cli import main as command

        return command()
    except KeyboardInterrupt:
        print("fairpul: interrupted; no file was written or replaced", file=sys.stderr)
        return 2
