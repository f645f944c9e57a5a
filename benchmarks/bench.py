"""Measure fairpul and its peers against np.sort: CSV, a table and a plot for the docs.

python benchmarks/bench.py                  minutes; writes benchmarks/results
python benchmarks/bench.py --smoke          seconds; checks that all of it runs
"""

import argparse
import csv
import subprocess
import warnings
from functools import partial
from itertools import chain, product
from pathlib import Path

import numpy as np
from estimator import HEADER as ESTIMATOR_HEADER
from estimator import measure_estimator
from report import write_report
from rows import SCENARIOS, make_rows
from stages import FEW_ROWS, exactness, stage_seconds
from timing import cpu_ratio, cpu_seconds, peak_memory

import fairpul
from fairpul.paper import plug_in, search

HERE = Path(__file__).parent
HEADER = ["name", "task", "scenario", "k", "n", "seconds", "sort", "ratio", "memory"]
EXACT = ["task", "scenario", "k", "n", "excess", "gap"]
CONSTRAINTS = ("equal_opportunity", "equalized_odds")
PEERS = ("fairlearn", "error-parity", "aif360", "oxonfair")
# A grid search at 1e7 rows takes these minutes a repeat.
SLOW_PEERS = ("fairlearn", "oxonfair")
ESTIMATOR_SIZES = (100_000, 1_000_000)


def fit_tasks(score, labeled, group, frequency):
    """Exact mixtures and the deployed default, through the public function."""
    fit = partial(fairpul.fit_rule, score, labeled, group, label_frequency=frequency)
    for constraint in CONSTRAINTS:
        yield constraint, partial(fit, constraint=constraint, lottery=True)
    yield "equal_opportunity, snapped", fit


def other_tasks(score, labeled, group, frequency):
    """Decisions, the frontier, the audit, and what other inputs cost."""
    fit = partial(fairpul.fit_rule, score, labeled, group, label_frequency=frequency)
    rule = fit()
    yield "copy of the scores", score.copy
    yield "decide", partial(rule.decide, score, group)
    yield "acceptance_probability", partial(rule.acceptance_probability, score, group)
    yield "the paper's annealing", partial(paper_search, score, group, frequency)
    yield (
        "float32 scores",
        partial(
            fairpul.fit_rule,
            score.astype(np.float32),
            labeled,
            group,
            label_frequency=frequency,
            lottery=True,
        ),
    )
    yield "with weights", partial(fit, sample_weight=np.ones(len(score)), lottery=True)
    yield "peak_rate", partial(fairpul.fit_rule, score, labeled, group, lottery=True)
    yield (
        "audit",
        partial(
            fairpul.audit,
            score=score,
            labeled=labeled,
            group=group,
            threshold=0.3,
            label_frequency=frequency,
        ),
    )
    for constraint in CONSTRAINTS:
        yield (
            f"frontier of {constraint}",
            partial(frontier_from_rows, score, labeled, group, frequency, constraint),
        )
    if len(score) <= 1_000_000:
        texts = np.array(["female", "male"])[group % 2]
        yield (
            "fit, string groups",
            partial(
                fairpul.fit_rule,
                score,
                labeled,
                texts,
                label_frequency={"female": 0.5, "male": 0.8},
                lottery=True,
            ),
        )


def frontier_from_rows(score, labeled, group, frequency, constraint):
    """Fit 101 tolerances, the rows included."""
    fairpul.frontier(
        fairpul.GroupScores(score, labeled, group),
        constraint=constraint,
        tolerances=np.linspace(0, 0.2, 101),
        label_frequency=frequency,
    )


def paper_search(score, group, frequency):
    """Anneal by the paper's schedule: 18,400 steps, whatever the number of rows."""
    estimates = plug_in(score, group, max(frequency.values()))
    search(estimates, "equalized_odds", np.random.RandomState(0))


def measure(tasks, score, repeats, *labels):
    """Rows of the results, one per task."""
    for task, run in tasks:
        seconds, sort = cpu_ratio(run, score, repeats)
        row = ["fairpul", task, *labels, seconds, sort, seconds / sort]
        yield [*row, peak_memory(run, score)]


def measure_all(sizes, repeats):
    """Rows of the results for fairpul itself."""
    for n in sizes:
        for k in (2, 8, 64):
            for scenario in SCENARIOS:
                data = make_rows(scenario, n, k)
                # Ties make the sort itself fast: continuous scores are the measure.
                score = make_rows("continuous", n, k)[0]
                yield from measure(fit_tasks(*data), score, repeats, scenario, k, n)
        data = make_rows("continuous", n, 2)
        yield from measure(
            other_tasks(*data), data[0], min(5, repeats), "continuous", 2, n
        )


def measure_exactness(sizes):
    """How exact the rules of every size and scenario are, read from the rows."""
    for n, k, scenario in product(sizes, (2, 8, 64), SCENARIOS):
        data = make_rows(scenario, n, k)
        for task, run in list(fit_tasks(*data))[:2]:
            yield [task, scenario, k, n, *exactness(run(), *data)]


def measure_stages(sizes, repeats):
    """Where the time of a fit of equalized odds goes, in multiples of a sort."""
    for n, k in product([FEW_ROWS, *sizes], (2, 8)):
        data = make_rows("continuous", n, k)
        sort = np.median([cpu_seconds(partial(np.sort, data[0])) for _ in range(9)])
        for stage, seconds in stage_seconds(data, "equalized_odds", repeats).items():
            row = [f"stage: {stage}", "continuous", k, n, seconds, sort, seconds / sort]
            yield ["fairpul", *row, np.nan]


def measure_peers(environments, sizes, repeats, folder):
    """Rows of the results for the peers whose environments exist."""
    for peer in PEERS:
        python = environments / f".venv-bench-{peer}" / "bin" / "python"
        if not python.exists():
            print(f"{peer}: no environment {python}, left out")
            continue
        output = folder / f"{peer}.csv"
        fit_in = [n for n in sizes if n < 10**7 or peer not in SLOW_PEERS]
        subprocess.run(
            [
                *(python, HERE / "peers.py", peer, output),
                *("--repeats", str(repeats), "--rows", *map(str, fit_in)),
            ],
            check=True,
        )
        with output.open(newline="", encoding="utf-8") as file:
            yield from csv.reader(file)
        output.unlink()


def main():
    """Run the benchmark and write its results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--environments", type=Path, default=HERE.parent)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of few labels
    sizes = arguments.sizes or [10**4, 10**5, 10**6, 10**7]
    repeats, folder, docs = arguments.repeats, HERE / "results", HERE.parent / "docs"
    if arguments.smoke:
        sizes, repeats = [2_000], 1
        folder = docs = HERE.parent / "build" / "bench-smoke"
    folder.mkdir(parents=True, exist_ok=True)
    speeds = chain(measure_all(sizes, repeats), measure_stages(sizes, repeats))
    if not arguments.smoke:
        speeds = chain(speeds, measure_peers(arguments.environments, sizes, 5, folder))
    write_rows(folder / "bench.csv", HEADER, speeds)
    write_rows(folder / "exactness.csv", EXACT, measure_exactness(sizes))
    by_estimator = measure_estimator(
        sizes if arguments.smoke else ESTIMATOR_SIZES, min(5, repeats)
    )
    write_rows(folder / "estimator.csv", ESTIMATOR_HEADER, by_estimator)
    write_report(folder, docs)
    print(f"{folder} and {docs / 'benchmarks.md'} written")


def write_rows(path, header, rows):
    """Write rows to a CSV file as they come."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for row in rows:
            writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    main()
