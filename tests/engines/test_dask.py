import os
import signal
import threading
import time

import numpy as np
import pytest

from fairpul import GroupCounts

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.engine

PARTS = 16


@pytest.fixture(scope="module", params=["threads", "LocalCluster"])
def scheduler(request):
    if request.param == "threads":
        yield None
        return
    with _cluster() as cluster, distributed.Client(cluster) as client:
        yield client


def _cluster():
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    )


@pytest.fixture(params=["numpy_nullable", "pyarrow"])
def frame(request, scheduler, hostile_files):
    return dd.read_parquet(hostile_files, dtype_backend=request.param)


def read(frame):
    return frame.compute().sort_values("row")["decision"].astype(int).tolist()


def test_dask_counts_like_plain_python(frame, check_counts):
    check_counts(frame)


def test_dask_decides_like_plain_python(frame, check_decisions):
    check_decisions(frame, read)


def test_dask_reads_integers_with_nulls_as_floats_but_counts_right(
    scheduler, hostile_files, check_counts, check_decisions
):
    frame = dd.read_parquet(hostile_files)
    check_counts(frame)
    check_decisions(frame, read, row_ids=["uid"])


def test_dask_refines_to_the_rule_of_the_rows(scheduler, hostile_files, check_refined):
    check_refined(dd.read_parquet(hostile_files, dtype_backend="pyarrow"))


def _slow_part(number, folder, seconds=0.4):
    import pandas as pd

    name = f"{folder}/{number}-{os.getpid()}-{time.monotonic_ns()}"
    with open(name, "w"):
        time.sleep(seconds)
    rng = np.random.default_rng(number)
    score = rng.random(5000)
    labeled = (rng.random(5000) < score / 2).astype(int)
    return pd.DataFrame(
        {"p": score, "dx": labeled, "sex": rng.choice(["f", "m"], 5000)}
    )


def _loads_of(folder):
    return [tuple(map(int, name.split("-"))) for name in os.listdir(folder)]


def test_a_dask_worker_killed_while_counting_changes_no_count(tmp_path):
    columns = {"score": "p", "labeled": "dx", "group": "sex"}
    with _cluster() as cluster, distributed.Client(cluster):
        frame = dd.from_map(
            _slow_part, range(PARTS), folder=str(tmp_path), meta=_slow_part(0, tmp_path)
        )
        found = []
        counting = threading.Thread(
            target=lambda: found.append(GroupCounts.from_frame(frame, **columns))
        )
        first_loads = len(_loads_of(tmp_path))
        counting.start()
        victim = next(iter(cluster.workers.values())).process.pid
        deadline = time.monotonic() + 60
        while sum(pid == victim for _, pid, _ in _loads_of(tmp_path)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(victim, signal.SIGKILL)
        counting.join(timeout=120)
        loads = _loads_of(tmp_path)
    assert len({number for number, _, _ in loads}) == PARTS
    # Some parts were loaded again: the killed worker held their results.
    assert len(loads) > first_loads + PARTS
    parts = (_slow_part(k, tmp_path, seconds=0) for k in range(PARTS))
    assert found == [GroupCounts.from_batches(parts, **columns)]
