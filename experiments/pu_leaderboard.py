"""From rows of the PU-fairness benchmark to its CSV and its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.rows import RowFile
from experiments.tables import failures

CELL = ["dataset", "mechanism", "base_model"]
#: A cell's winner has a gap of at most this above what sampling noise shows.
TOLERATED = 0.05
CONSTANT = ("Everyone positive", "Nobody positive")
#: Whose a method is, by how its name starts, first match first.
_FAMILIES = {
    "ours": ("Direct", "Recall floor", "Unconstrained PU"),
    "the paper's": ("FairPUL",),
    "constant rules": CONSTANT,
    "Naive": ("Naive",),
    "rivals": ("Fairlearn", "error-parity"),
}
_TEXT = (*CELL, "method", "told", "failure")


@dataclass(frozen=True)
class Board:
    """What methods are compared by: a cost, a gap, and the gap that is noise."""

    title: str
    cost_name: str
    gap_name: str
    cost: Callable[[pd.DataFrame], pd.Series]
    gap: str
    noise: str


BOARDS = (
    Board(
        "Equalized odds",
        "error",
        "larger gap",
        lambda means: means.error,
        "larger_gap",
        "noise_larger_gap",
    ),
    Board(
        "Equal opportunity",
        "error",
        "TPR gap",
        lambda means: means.error,
        "tpr_gap",
        "noise_tpr_gap",
    ),
    Board(
        "A capacity of 20%",
        "share missed",
        "TPR gap",
        lambda means: 1 - means.recall_at_capacity,
        "tpr_gap_at_capacity",
        "noise_at_capacity",
    ),
)


def read(rows: RowFile, seeds: int) -> pd.DataFrame:
    """Read the rows of the first seeds, numbers as numbers."""
    measured = pd.read_csv(rows.path, dtype=dict.fromkeys(_TEXT, str))
    return measured[measured.seed < seeds].reset_index(drop=True)


def summarize(measured: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation and number of runs of every metric, in long form."""
    left_out = {*CELL, "method", "seed", "told", "seconds", "failure"}
    long = measured.melt(
        id_vars=[*CELL, "method"],
        value_vars=[name for name in measured if name not in left_out],
        var_name="metric",
    )
    groups = long.groupby([*CELL, "method", "metric"], sort=False).value
    return groups.agg(mean="mean", sd="std", runs="count").reset_index()


def compared(measured: pd.DataFrame, board: Board) -> pd.DataFrame:
    """Cost, gap and noise of each method in each cell, and what became of it there.

    *Within* is a gap of at most ``TOLERATED`` above the noise. The *winner* costs the
    least of those within who were told no truth and ran on all splits. *Beaten* is who
    costs as much as the better constant rule, which has no gap. Points of a frontier
    are no methods of their own.
    """
    kept = measured[~measured.method.str.contains(" within ")]
    by_cell = kept.groupby([*CELL, "method", "told"], sort=False)
    found = by_cell.mean(numeric_only=True)
    found = pd.DataFrame(
        {
            "cost": board.cost(found),
            "gap": found[board.gap],
            "noise": found[board.noise],
            "failures": by_cell.failure.count(),
        }
    ).reset_index()
    found["cell"] = found.groupby(CELL, sort=False).ngroup()
    found["within"] = found.gap <= TOLERATED + found.noise
    may_win = found.within & ~_told_truth(found.told) & (found.failures == 0)
    found["winner"] = found.cost == _least(found, may_win)
    found["winner"] &= may_win
    constant = found.method.isin(CONSTANT)
    found["beaten"] = ~constant & (found.cost >= _least(found, constant))
    return found


def _told_truth(told: pd.Series) -> pd.Series:
    return told.str.startswith("true")


def _least(found: pd.DataFrame, among: pd.Series) -> pd.Series:
    """Least cost of some methods in the cell of each row."""
    return found.cost.where(among).groupby(found.cell).transform("min")


def write(measured: pd.DataFrame, results: Path) -> None:
    """Write the long CSV and the page."""
    summary = summarize(measured)
    summary.round(4).to_csv(results / "pu_benchmark.csv", index=False)
    page = "\n".join(_page(measured)) + "\n"
    (results / "pu_benchmark.md").write_text(page, encoding="utf-8")


_LEGEND = (
    "Means over data sets and base models of means over splits, on fresh rows with "
    "true classes. *Won*: cells where a method costs the least of those whose gap is "
    f"at most {TOLERATED} above sampling noise; a shared win counts for each. "
    "*Within*: cells where its gap is. *Worse than a constant*: cells where accepting "
    "or rejecting everybody costs no more, and has no gap at all. *Failed*: splits "
    "without a rule. Who was told true classes or label frequencies does not compete."
)


_PLOT = (
    "Filled marks were asked for equalized odds, open ones for equal opportunity, "
    "which leaves the FPR free. Lines join tolerances 0, .05, .1 and .2. Gray: what a "
    "rule without a true gap shows on as many test rows. What errs more than twice as "
    "much as the better constant rule stands on the upper edge; what failed on some "
    "splits is left out."
)
_PLOTTED = "Error against the larger true gap on {}, one panel per labeling mechanism"


def _page(measured: pd.DataFrame) -> Iterator[str]:
    seeds = measured.seed.nunique()
    yield f"# The PU-fairness benchmark, {seeds} splits"
    yield from ("", _LEGEND)
    for board in BOARDS:
        found = compared(measured, board)
        yield from ("", f"## {board.title}", "", *_verdict(found, board), "")
        yield from _standings(found, board)
        if found.failures.any():
            yield from ("", "\\* Failed on some splits; the mean is of the others.")
    yield from ("", "## Who wins where", "", _WINNERS, "", *_winners(measured))
    yield from ("", "## What error costs in gaps", "", _PLOT)
    for dataset in measured.dataset.unique():
        yield from ("", f"![{_PLOTTED.format(dataset)}](pu_frontier_{dataset}.png)")
    yield from ("", "## When labels depend on the features", "", _SAR, "")
    yield from _broken(measured)
    yield from ("", *failures(measured, CELL))


def _verdict(found: pd.DataFrame, board: Board) -> Iterator[str]:
    """Who won how many cells, and what that is worth."""
    for mechanism, here in found.groupby("mechanism", sort=False):
        wins = here[here.winner].method
        counts = {
            family: sum(name.startswith(starts) for name in wins)
            for family, starts in _FAMILIES.items()
        }
        listed = [f"{family} {count}" for family, count in counts.items() if count]
        yield f"* {mechanism}, of {here.cell.nunique()} cells: {', '.join(listed)}."
    yield ""
    constant = _least(found, found.method.isin(CONSTANT))
    least = _least(found, found.winner)
    saved = (constant - least).groupby(found.cell).first()
    yield (
        f"The winner's {board.cost_name} is below that of the better constant rule by "
        f"{saved.mean():.3f} on average, {saved.max():.3f} at most."
    )


def _standings(found: pd.DataFrame, board: Board) -> Iterator[str]:
    """One line per method, by cells won and then by cost: means over the cells."""
    head = ["method", "won", "within", "worse than a constant", "failed"]
    for mechanism in found.mechanism.unique():
        head += [f"{mechanism}: {board.cost_name}", board.gap_name]
    yield from _head(head)
    found = found.assign(truth=_told_truth(found.told))
    order = found.groupby("method", sort=False).agg(
        truth=("truth", "first"), won=("winner", "sum"), cost=("cost", "mean")
    )
    order = order.sort_values(["truth", "won", "cost"], ascending=[True, False, True])
    for method in order.index:
        mine = found[found.method == method]
        line = [method, "-" if mine.truth.iloc[0] else str(mine.winner.sum())]
        line += [str(mine.within.sum()), str(mine.beaten.sum())]
        line.append(str(mine.failures.sum()))
        for _, here in mine.groupby("mechanism", sort=False):
            mark = "*" if here.failures.any() else ""
            line += [f"{here.cost.mean():.3f}{mark}", f"{here.gap.mean():.3f}{mark}"]
        yield _line(line)


_WINNERS = (
    "Cost / gap: the least cost of all methods whose mean gap is at most "
    f"{TOLERATED} above what sampling noise shows on as many test rows, and beside it "
    "*Direct EO* or *Direct EOP*, bold where it is the winner."
)


def _winners(measured: pd.DataFrame) -> Iterator[str]:
    head = [*("data set", "mechanism", "base")]
    ours = ("Direct EO", "Direct EOP", "Direct EOP")
    for board, own in zip(BOARDS, ours, strict=True):
        head += [board.title, own]
    yield from _head(head)
    boards = [compared(measured, board) for board in BOARDS]
    for number in range(boards[0].cell.nunique()):
        line: list[str] = []
        for found, own in zip(boards, ours, strict=True):
            here = found[found.cell == number].set_index("method")
            line = line or [str(here[name].iloc[0]) for name in CELL]
            winner = here[here.winner].iloc[0]
            mark = "**" if here.winner.get(own, False) else ""
            line += [f"{winner.name}: {_pair(winner)}"]
            line += [f"{mark}{_pair(here.loc[own])}{mark}" if own in here.index else ""]
        yield _line(line)


def _pair(row: pd.Series) -> str:
    return f"{row.cost:.3f} / {row.gap:.3f}"


_SAR = (
    "Tolerance 0 was asked for; *excess* is the mean true TPR gap above sampling "
    "noise. *Audited* is the gap that the labels of the same fresh rows show, *holds* "
    "how many of its 95% intervals have the true one. *Gamma\\** is the labeling bias "
    "at which that finding would flip (medians), *bias* the true one: by how much more "
    "easily an accepted positive is labeled than a rejected one, in one group over the "
    "other. *Hidden gap* counts the audit's intervals that grant as large a bias as "
    "the true one, and have the true gap. Intervals are about the population; here "
    "the truth is that of the very rows, of which the labeled are a part, so that they "
    "hold more often than in 95%."
)
_AUDITED = ("Direct EO", "Direct EOP", "Unconstrained PU")


def _broken(measured: pd.DataFrame) -> Iterator[str]:
    """Our rules and the audit, where the assumption holds and where it does not."""
    shown = measured[measured.method.isin(_AUDITED)]
    yield from (*_alarm(shown), "")
    yield from _head(
        [
            *("data set", "base", "method", "SCAR: gap", "excess", "holds", "Gamma*"),
            *("SAR: gap", "excess", "audited", "holds", "Gamma*", "bias", "hidden gap"),
        ]
    )
    for key, rows in shown.groupby(["dataset", "base_model", "method"], sort=False):
        line = list(key)
        for mechanism in ("SCAR", "SAR"):
            here = rows[rows.mechanism == mechanism]
            excess = here.tpr_gap.mean() - here.noise_tpr_gap.mean()
            line += [f"{here.tpr_gap.mean():.3f}", f"{excess:.3f}"]
            if mechanism == "SAR":
                line.append(f"{here.audited_tpr_gap.mean():.3f}")
            line += [_share(here.audit_holds), f"{here.gamma.median():.2f}"]
        bias = f"{here.labeling_bias.median():.2f}"
        yield _line([*line, bias, _share(here.hidden_gap_holds)])


def _alarm(shown: pd.DataFrame) -> Iterator[str]:
    """Whether the audit tells labels that depend on the features from those at random.

    A finding is a gap whose interval lies above 0.
    """
    yield "In all of these audits:"
    yield ""
    for mechanism, rows in shown.groupby("mechanism", sort=False):
        found = rows[rows.audited_low > 0]
        explained = (found.gamma_low < found.labeling_bias).sum()
        yield (
            f"* {mechanism}: the interval of the gap holds the truth in "
            f"{_share(rows.audit_holds)}; a gap is found in {len(found)}, with a "
            f"median Gamma\\* of {found.gamma.median():.2f}, and its lower end is "
            f"below the true bias in {explained} of these; the hidden gap at the true "
            f"bias holds in {_share(rows.hidden_gap_holds)}."
        )


def _share(holds: pd.Series) -> str:
    return f"{int(np.nansum(holds))} of {int(holds.notna().sum())}"


def _head(names: Iterable[str]) -> Iterator[str]:
    names = list(names)
    yield _line(names)
    yield "|" + " --- |" * len(names)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
