"""Where the user's line is, for warnings to point at."""

from __future__ import annotations

import sys


def depth_in_package() -> int:
    """Stack level, seen from the caller of this function, of the first frame outside.

    A warning is reached through ``fit_rule``, ``fit`` or directly, so the number of our
    own frames between it and the user's line is not fixed.
    """
    package = __name__.partition(".")[0]
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] != package:
            break
        frame = frame.f_back
        level += 1
    return level
