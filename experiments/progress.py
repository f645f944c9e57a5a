"""How long the rest of a run will take."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence


class Progress:
    """Pieces of work in their order, each of a kind that takes about as long.

    A piece is expected to take the mean of its kind so far, and the mean of all where
    it is the first of its kind.
    """

    def __init__(self, kinds: Sequence[Hashable]) -> None:
        self._kinds = kinds
        self._spent: list[float] = []
        self._start = time.perf_counter()

    def tell(self, what: str) -> None:
        """Print that the next piece is done, and the time left."""
        now = time.perf_counter()
        self._spent.append(now - self._start)
        self._start = now
        print(
            f"[{len(self._spent)}/{len(self._kinds)}] {what}: {self._spent[-1]:.0f} s, "
            f"about {self.seconds_left() / 60:.0f} min left",
            flush=True,
        )

    def seconds_left(self) -> float:
        """Sum up the expected time of the pieces that are not done."""
        n_done = len(self._spent)
        by_kind: dict[Hashable, list[float]] = {}
        for kind, seconds in zip(self._kinds[:n_done], self._spent, strict=True):
            by_kind.setdefault(kind, []).append(seconds)
        return sum(
            sum(of_kind) / len(of_kind)
            for kind in self._kinds[n_done:]
            for of_kind in [by_kind.get(kind, self._spent)]
        )
