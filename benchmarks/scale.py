"""Count, solve, refine, apply and verify a rule on engines, with time and memory.

Rows are written to Parquet once. Each engine counts them, counts them again with the
threshold bins resolved, and writes a decision for each; NumPy then does the same, and
every count and every decision must agree.

    python benchmarks/scale.py --rows 1_000_000 --folder build/scale-small
"""

import argparse
import csv
import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from fairpul import DecisionRule, GroupCounts, fit_rule
from fairpul.refining import refine_rule

COLUMNS = {"score": "p", "labeled": "dx", "group": "sex"}
ENGINES = ("polars", "duckdb", "dask", "spark")
PART = 2_500_000
# Peak MB that these may take, however many the rows.
MOST_MB = {"polars": 1500, "duckdb": 1500}
# others: how many cores other work on the machine took meanwhile, on average.
FIELDS = ("engine", "step", "rows", "wall_s", "cpu_s", "peak_mb", "others")


def write_rows(folder, n_rows):
    """Write the rows in parts of 2.5 million, from one seed each."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n_rows, PART)):
        path = folder / f"part-{number:04d}.parquet"
        if not path.exists():
            size = min(PART, n_rows - start)
            pq.write_table(part(number, start, size), path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)


def part(number, start, size):
    """Rows with four groups that are labeled at different rates."""
    rng = np.random.default_rng([2026, number])
    code = rng.choice(4, size, p=[0.45, 0.4, 0.1, 0.05]).astype(np.int8)
    logit = rng.normal(-2 + 0.2 * code, 1.6)
    score = (0.8 - 0.1 * code) / (1 + np.exp(-logit))
    groups = pa.DictionaryArray.from_arrays(code, ["f", "m", "x", "y"])
    return pa.table(
        {
            "row": np.arange(start, start + size),
            "p": score,
            "dx": (rng.random(size) < score).astype(np.int8),
            "sex": groups.cast(pa.string()),
        }
    )


def open_frame(engine, folder):
    """Lazy frame of the rows on an engine."""
    if engine == "polars":
        import polars as pl

        return pl.scan_parquet(folder / "*.parquet")
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET threads = 2")
        return connection.read_parquet(str(folder / "*.parquet"))
    if engine == "dask":
        import dask.dataframe as dd

        return dd.read_parquet(folder)
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    return session.read.parquet(str(folder))


def write_frame(engine, frame, target):
    """Write a lazy frame to Parquet the way its engine does."""
    if engine == "polars":
        frame.sink_parquet(target)
    elif engine == "duckdb":
        frame.write_parquet(str(target))
    elif engine == "dask":
        frame.to_parquet(target)
    else:
        frame.write.mode("overwrite").parquet(str(target))


@contextmanager
def cluster_of(engine):
    """Two worker processes for Dask; the others bring their own."""
    if engine != "dask":
        yield
        return
    from distributed import Client, LocalCluster

    workers = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**workers) as cluster, Client(cluster):
        yield


def run_step(engine, step, folder):
    """One step on one engine, in this process."""
    rows, out = folder / "rows", folder / engine
    out.mkdir(exist_ok=True)
    with cluster_of(engine):
        frame = open_frame(engine, rows)
        if step == "apply":
            rule = DecisionRule.from_json((folder / "rule.json").read_text())
            decided = rule.apply(frame, score="p", group="sex", row_id="row")
            names = ["row", "decision"]
            if engine == "duckdb":
                decided = decided.select(*names)
            else:
                decided = decided[names] if engine == "dask" else decided.select(names)
            write_frame(engine, decided, out / "decided.parquet")
            return
        refine = None
        if step == "refine":
            refine = dict(json.loads((folder / "refine.json").read_text()))
        counts = GroupCounts.from_frame(frame, **COLUMNS, refine=refine)
        counts.write_parquet(out / f"{step}.parquet")


class Meter:
    """Wall time, CPU time and largest resident memory of a process and its children."""

    def __init__(self, process):
        self.busy = busy_seconds()
        self.process = psutil.Process(process.pid)
        self.peak = 0
        self.cpu = {}
        self.start = time.perf_counter()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _watch(self):
        while not self.stopped.wait(0.05):
            resident = 0
            try:
                family = [self.process, *self.process.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            for member in family:
                try:
                    resident += member.memory_info().rss
                    times = member.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                self.cpu[member.pid] = times.user + times.system
            self.peak = max(self.peak, resident)

    def stop(self):
        """Return wall seconds, CPU seconds, peak MB and cores of other work."""
        wall = time.perf_counter() - self.start
        busy = busy_seconds() - self.busy
        self.stopped.set()
        self.thread.join()
        cpu = sum(self.cpu.values())
        others = max(0.0, busy - cpu) / wall
        return round(wall, 1), round(cpu, 1), round(self.peak / 1e6), round(others, 1)


def busy_seconds():
    """CPU time of all processes of the machine since it started."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0)


def measured(engine, step, folder, n_rows):
    """Run a step in a process of its own; its figures as a row."""
    command = [
        sys.executable,
        __file__,
        "--folder",
        str(folder),
        "--step",
        engine,
        step,
    ]
    process = subprocess.Popen(command)
    meter = Meter(process)
    code = process.wait()
    figures = meter.stop()
    if code:
        raise SystemExit(f"{engine} failed in step {step}")
    row = dict(zip(FIELDS, (engine, step, n_rows, *figures), strict=True))
    print(row, flush=True)
    if row["peak_mb"] > MOST_MB.get(engine, np.inf):
        raise SystemExit(f"{engine} takes more than {MOST_MB[engine]} MB in {step}")
    return row


def batches(folder, columns=None):
    """Record batches of all parts."""
    for path in sorted(folder.glob("*.parquet")):
        yield from pq.ParquetFile(path).iter_batches(2**20, columns=columns)


def verify_counts(folder, engine, step, refine):
    """Compare an engine's counts with those of NumPy."""
    reference = folder / f"numpy-{step}.parquet"
    if not reference.exists():
        counts = GroupCounts.from_batches(
            batches(folder / "rows"), **COLUMNS, refine=refine
        )
        counts.write_parquet(reference)
    found = GroupCounts.read_parquet(folder / engine / f"{step}.parquet")
    if found != GroupCounts.read_parquet(reference):
        raise SystemExit(f"{engine} counts differently in step {step}")


def expected_decisions(folder, rule, n_rows):
    """Decision of each row by NumPy, at the position of its id."""
    decision = np.empty(n_rows, dtype=np.int8)
    for batch in batches(folder / "rows"):
        row = batch["row"].to_numpy()
        group = batch["sex"].dictionary_encode()
        keys = np.array(group.dictionary.to_pylist())
        group = keys[group.indices.to_numpy()]
        decision[row] = rule.decide(batch["p"].to_numpy(), group, row_id=row)
    return decision


def verify_decisions(folder, engine, expected):
    """Compare an engine's decisions with those of NumPy, row by row."""
    target = folder / engine / "decided.parquet"
    seen = np.zeros(len(expected), dtype=bool)
    for path in [target] if target.is_file() else sorted(target.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(2**20):
            row = batch["row"].to_numpy()
            seen[row] = batch["decision"].to_numpy() == expected[row]
    if not seen.all():
        raise SystemExit(f"{engine} decides {(~seen).sum()} rows differently")


def solve(folder, engine):
    """Fit a rule with a lottery on an engine's counts; keep it and the refined bins."""
    asked = []

    def count(refine):
        asked.append(refine)
        return GroupCounts.from_frame(frame, **COLUMNS, refine=refine)

    def fit(counts):
        return fit_rule(
            counts,
            constraint="equalized_odds",
            label_frequency={"f": 0.8, "m": 0.7, "x": 0.6, "y": 0.5},
            random_state=0,
        )

    with cluster_of(engine):
        frame = open_frame(engine, folder / "rows")
        start = time.perf_counter()
        first = fit(count({}))
        once = time.perf_counter()
        refined = refine_rule(count, fit)
        end = time.perf_counter()
    print(
        f"solved on {engine}: objective {first.objective_value:.8f} from counts "
        f"({once - start:.1f} s), {refined.rule.objective_value:.8f} refined in "
        f"{refined.passes} passes ({end - once:.1f} s), certificate "
        f"{refined.rule.certificate:.1e}, {len(refined.counts.bin)} cells",
        flush=True,
    )
    (folder / "rule.json").write_text(refined.rule.to_json())
    (folder / "refine.json").write_text(json.dumps(list(asked[-1].items())))


def main():
    """Run all steps on all engines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--engines", nargs="*", default=ENGINES, choices=ENGINES)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder
    if options.step:
        run_step(*options.step, folder)
        return
    write_rows(folder / "rows", options.rows)
    solve(folder, options.engines[0])
    refine = dict(json.loads((folder / "refine.json").read_text()))
    rule = DecisionRule.from_json((folder / "rule.json").read_text())
    rows = []
    for engine in options.engines:
        for step in ("count", "refine", "apply"):
            rows.append(measured(engine, step, folder, options.rows))
    expected = expected_decisions(folder, rule, options.rows)
    for engine in options.engines:
        verify_counts(folder, engine, "count", None)
        verify_counts(folder, engine, "refine", refine)
        verify_decisions(folder, engine, expected)
        print(f"{engine}: counts and {options.rows} decisions agree with NumPy")
    if options.csv:
        options.csv.parent.mkdir(parents=True, exist_ok=True)
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
