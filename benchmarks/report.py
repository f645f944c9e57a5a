"""From the CSV files of a benchmark to the page and the plot of the docs."""

import contextlib
import csv
import io
import platform
from pathlib import Path

import numpy as np
import scipy
from stages import FEW_ROWS

# Goals for a bare solver; a public fit, all checks included, may cost 1.5x.
REACH = {
    ("equalized_odds", 2): {10**4: 8, 10**5: 2.5, 10**6: 1.5, 10**7: 0.8},
    ("equalized_odds", 8): {10**4: 12, 10**5: 3, 10**6: 1.65, 10**7: 0.8},
    ("equal_opportunity", 2): {10**6: 1.7, 10**7: 1.25},
    ("equal_opportunity", 8): {10**6: 2.1, 10**7: 1.25},
}

STAGE = "stage: "

PAGE = """# Benchmarks

What a group-wise rule costs, in CPU time of `np.sort` of the same scores. A wall clock
would say as much about the machine's other tenants; a ratio to a sort, taken in turns
in the same process, is what another machine can be compared with. Numbers are medians;
the memory is the largest in use at a time beyond the caller's arrays, in multiples of
the scores' size. `make bench` measures everything on this page again.

```{{figure}} _static/benchmarks.svg
:alt: Cost against number of rows, log-log, of fairpul and four other libraries.

Equalized odds of two groups: CPU time over that of sorting the scores. Dashed: the
goal for the bare solver.
```

{machine}

## Fitting a rule

`fit_rule(score, labeled, group, label_frequency=..., lottery=True)`: arrays in, the
exact mixture with its certificate out, checks included. Groups are integers. In
parentheses: the goal for the bare solver; all around it may cost half as much again.

{fits}

## Where the time of a fit goes

Equalized odds, in sorts of the scores. {few:,} rows show what a fit costs before it has
anything to do: hundreds of calls of NumPy of about a microsecond each, more with every
group. {floor}

{stages}

## How exact

The largest excess of a rule's cost over the lower bound on any rule's, and the largest
gap in a constrained rate, over {exact_count} problems: 2, 8 and 64 groups, all scores
below, equal opportunity and equalized odds. Both are read from the acceptance
probabilities of the rows.

{exact}

## Scores that are harder

Equalized odds, two groups. Tied: two decimals (still against the sort of continuous
scores, for a sort of tied ones is fast). Rare: one positive in a thousand. Tiny group:
one group has a thousandth of the rows.

{scenarios}

## Extra peak memory of a fit

{memory}

## Everything else

Two groups, in sorts of the scores. Deciding is to be compared with copying the scores.
Group names in strings are coded first, which costs more than the fit itself. The
frontier has 101 tolerances. The paper's annealing takes its 18,400 steps from sums over
the sorted scores: {annealing}, with the sort of its own.

{others}

## Around the base model

What `FairPULClassifier.fit` adds to the CPU time of cross-fitting its base model alone,
label frequency known; five columns of features. The logistic regression is a pipeline
with a scaler, as quick as a model gets.

{added}

What sharpening costs, and what reading a stratified subsample of 20,000 rows does to
the label frequency: bias and standard deviation of estimate minus truth over both
groups and {seeds} data sets, on cross-fitted scores of boosted trees.

{sharpening}

## Other libraries

Equalized odds of two groups, each library by its defaults. They expect true labels
and get the PU labels instead, so that all read the same rows.

{peers}

## How

Up to 300,000 rows, group, score and label of a row share one 64-bit integer, so one
vectorized sort orders everything; where scores of more than two groups spread over so
many orders of magnitude that they do not fit, rows are dealt to their groups first. No
two scores are ever merged. Above, rows are counted in bins, and only the bins that can
touch the hull are sorted: the result is the same to the last bit
(`tests/test_speed_paths.py`). Weighted rows are sorted by an index, which is slower.
Labels as bools, groups as integers from 0 on and float32 or float64 scores are read in
place, memory maps included.
"""


def write_report(folder, docs):
    """Write benchmarks.md and its plot from a folder of results."""
    rows = _read(folder / "bench.csv", "ratio", "memory", "seconds", "sort")
    exact = _read(folder / "exactness.csv", "excess", "gap")
    estimator = _read(folder / "estimator.csv", "seconds", "value", "spread")
    (docs / "_static").mkdir(parents=True, exist_ok=True)
    page = PAGE.format(
        machine=_machine(),
        fits=_fits(rows),
        few=FEW_ROWS,
        floor=_floor(rows),
        stages=_stages(rows),
        exact=_exact(exact),
        exact_count=f"{len(exact):,}",
        annealing=_annealing(rows),
        added=_added(estimator),
        sharpening=_sharpening(estimator),
        seeds=5,
        scenarios=_scenarios(rows),
        memory=_memory(rows),
        others=_others(rows),
        peers=_peers(rows),
    )
    (docs / "benchmarks.md").write_text(page, encoding="utf-8")
    _plot(rows, docs / "_static" / "benchmarks.svg")


def _read(path, *numbers):
    """Rows of a CSV file, numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row.update({name: int(row[name]) for name in ("k", "n") if name in row})
        row.update({name: float(row[name]) for name in numbers})
    return rows


def _machine():
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        np.show_runtime()
    found = [
        part
        for part in ("X86_V4", "AVX512F", "AVX2", "NEON")
        if part in text.getvalue()
    ]
    return (
        f"Measured on {_processor()}, Python {platform.python_version()}, NumPy "
        f"{np.__version__} (sort vectorized for {found[0] if found else 'no SIMD'}), "
        f"SciPy {scipy.__version__}, one thread."
    )


def _processor():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.machine()


def _table(head, lines):
    return "\n".join(
        [
            "| " + " | ".join(head) + " |",
            "|" + "---|" * len(head),
            *("| " + " | ".join(line) + " |" for line in lines),
        ]
    )


def _select(rows, **wanted):
    return {
        row["n"]: row
        for row in rows
        if all(row[name] == value for name, value in wanted.items())
    }


def _sizes(rows):
    return sorted({row["n"] for row in rows})


def _fit_sizes(rows):
    return [n for n in _sizes(rows) if n != FEW_ROWS]


def _by_size(rows, sizes, column, reach=None, **wanted):
    found = _select(rows, **wanted)
    cells = []
    for n in sizes:
        text = f"{found[n][column]:.3g}" if n in found else "-"
        goal = (reach or {}).get(n)
        cells.append(text if goal is None else f"{text} ({goal:g})")
    return cells


def _size_names(sizes):
    return [f"n = {n:,}" for n in sizes]


def _fits(rows):
    sizes, lines = _fit_sizes(rows), []
    for task in ("equal_opportunity", "equalized_odds", "equal_opportunity, snapped"):
        for k in (2, 8, 64):
            cells = _by_size(
                rows,
                sizes,
                "ratio",
                REACH.get((task, k)),
                name="fairpul",
                task=task,
                scenario="continuous",
                k=k,
            )
            lines.append([task.replace("_", " "), str(k), *cells])
    return _table(["constraint", "groups", *_size_names(sizes)], lines)


def _staged(rows):
    return [row for row in rows if row["task"].startswith(STAGE)]


def _floor(rows):
    """Say what a fit of a few rows costs."""
    told = []
    for k in (2, 8):
        few = [r for r in _staged(rows) if (r["k"], r["n"]) == (k, FEW_ROWS)]
        told.append(f"{1000 * sum(row['seconds'] for row in few):.2f} ms with {k}")
    sorts = {row["n"]: row["sort"] for row in _staged(rows)}
    n = min(n for n in sorts if n > FEW_ROWS)
    return (
        f"That is {told[0]} groups and {told[1]}, where sorting {n:,} scores takes "
        f"{1000 * sorts[n]:.3f} ms; it is why small data miss the goal."
    )


def _stages(rows):
    rows, sizes, lines = _staged(rows), _fit_sizes(rows), []
    for k in (2, 8):
        for task in dict.fromkeys(row["task"] for row in rows):
            cells = _by_size(rows, sizes, "ratio", k=k, task=task)
            lines.append([str(k), task.removeprefix(STAGE), *cells])
    return _table(["groups", "stage", *_size_names(sizes)], lines)


def _exact(rows):
    lines = []
    for n in _sizes(rows):
        own = [row for row in rows if row["n"] == n]
        worst = (max(row[name] for row in own) for name in ("excess", "gap"))
        lines.append([f"{n:,}", *(f"{value:.1e}" for value in worst)])
    return _table(["n", "excess cost", "gap"], lines)


def _annealing(rows):
    found = [r["seconds"] for r in rows if r["task"] == "the paper's annealing"]
    return f"{min(found):.1f} to {max(found):.1f} s"


def _added(rows):
    lines = [
        [r["what"], f"{r['n']:,}", f"{r['seconds']:.2f} s", f"{100 * r['value']:.1f}%"]
        for r in rows
        if r["study"] == "added by the classifier"
    ]
    return _table(["base model", "n", "cross-fit", "added"], lines)


def _sharpening(rows):
    lines = [
        [
            row["what"],
            f"{row['n']:,}",
            f"{row['seconds']:.2f} s",
            f"{row['value']:+.3f}",
            f"{row['spread']:.3f}",
        ]
        for row in rows
        if row["study"] == "label frequency"
    ]
    return _table(["read from", "n", "CPU time", "bias", "sd"], lines)


def _scenarios(rows):
    sizes, lines = _fit_sizes(rows), []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        wanted = {"task": "equalized_odds", "scenario": scenario, "k": 2}
        lines.append(
            [scenario, *_by_size(rows, sizes, "ratio", name="fairpul", **wanted)]
        )
    return _table(["scores", *_size_names(sizes)], lines)


def _memory(rows):
    sizes, lines = _fit_sizes(rows), []
    for k in (2, 8, 64):
        wanted = {"task": "equalized_odds", "scenario": "continuous", "k": k}
        cells = _by_size(rows, sizes, "memory", name="fairpul", **wanted)
        lines.append([f"fairpul, {k} groups", *cells])
    for name in _peer_names(rows):
        wanted = {"task": "equalized_odds", "k": 2}
        lines.append([name, *_by_size(rows, sizes, "memory", name=name, **wanted)])
    return _table(["library", *_size_names(sizes)], lines)


def _others(rows):
    rows = [row for row in rows if not row["task"].startswith(STAGE)]
    sizes = _fit_sizes(rows)
    tasks = dict.fromkeys(row["task"] for row in rows if row["name"] == "fairpul")
    fits = ("equal_opportunity", "equalized_odds", "equal_opportunity, snapped")
    lines = [
        [task.replace("_", " "), *_by_size(rows, sizes, "ratio", task=task)]
        for task in tasks
        if task not in fits
    ]
    copied = _select(rows, task="copy of the scores")
    decided = _select(rows, task="decide")
    lines.append(
        [
            "decide, in copies of the scores",
            *(f"{decided[n]['seconds'] / copied[n]['seconds']:.3g}" for n in sizes),
        ]
    )
    return _table(["task", *_size_names(sizes)], lines)


def _peer_names(rows):
    return [n for n in dict.fromkeys(row["name"] for row in rows) if n != "fairpul"]


def _peers(rows):
    sizes, lines = _fit_sizes(rows), []
    wanted = {"task": "equalized_odds", "scenario": "continuous", "k": 2}
    for name in ["fairpul", *_peer_names(rows)]:
        lines.append([name, *_by_size(rows, sizes, "ratio", name=name, **wanted)])
    return _table(["library", *_size_names(sizes)], lines)


def _plot(rows, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fairpul"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    wanted = {"task": "equalized_odds", "scenario": "continuous", "k": 2}
    names = [*_peer_names(rows), "fairpul"]
    for name, marker in zip(names, "sD^vo"[-len(names) :], strict=True):
        found = _select(rows, name=name, **wanted)
        sizes = sorted(found)
        ratios = [found[n]["ratio"] for n in sizes]
        width = 2.5 if name == "fairpul" else 1.2
        axes.plot(sizes, ratios, marker=marker, linewidth=width, label=name)
    reach = REACH["equalized_odds", 2]
    axes.plot(list(reach), list(reach.values()), "k--", linewidth=1, label="goal")
    axes.axhline(1, color="0.8", linewidth=1, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="CPU time / np.sort")
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    here = Path(__file__).parent
    write_report(here / "results", here.parent / "docs")
