"""A standalone cluster of one master and two workers, each a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from fairpul import GroupCounts

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.engine

PARTS = 16
COLUMNS = {"score": "p", "labeled": "dx", "group": "sex"}
_DEPLOY = "org.apache.spark.deploy"


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _start(folder, *command):
    """Start a daemon in a process group of its own, which its children share."""
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            [home / "bin" / "spark-class", *command],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_for(port):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("the Spark master did not start")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """URL of the master and the processes of the two workers."""
    port, folder = _free_port(), tmp_path_factory.mktemp("spark")
    url = f"spark://127.0.0.1:{port}"
    address = ["--host", "127.0.0.1", "--port"]
    master = [f"{_DEPLOY}.master.Master", *address, str(port), "--webui-port", "0"]
    worker = [f"{_DEPLOY}.worker.Worker", *address, "0", "--webui-port", "0"]
    worker += ["--cores", "1", "--memory", "1g", url]
    started = [_start(folder, *master)]
    try:
        _wait_for(port)
        started += [_start(folder, *worker) for _ in range(2)]
        yield url, started[1:]
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def spark(cluster):
    url, _ = cluster
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        pyspark.sql.SparkSession.builder.master(url)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .config("spark.cores.max", "2")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()


def read(frame):
    rows = frame.orderBy("row").select("decision").collect()
    return [row["decision"] for row in rows]


def test_a_cluster_counts_and_decides_like_plain_python(
    spark, hostile_files, check_counts, check_decisions
):
    frame = spark.read.parquet(str(hostile_files))
    check_counts(frame)
    check_decisions(frame, read)


def _part(number):
    import pandas as pd

    rng = np.random.default_rng(number)
    score = rng.random(2000)
    labeled = (rng.random(2000) < score / 2).astype(int)
    return pd.DataFrame(
        {"p": score, "dx": labeled, "sex": rng.choice(["f", "m"], 2000)}
    )


def _slow_parts(folder):
    """Make parts out of their numbers, and a file of each that tells its worker."""
    part = _part  # a worker cannot import this module: the function travels by value

    def make(batches):
        for batch in batches:
            for number in batch["id"].tolist():
                name = f"{folder}/{number}-{os.getsid(0)}-{time.monotonic_ns()}"
                with open(name, "w"):
                    time.sleep(0.5)
                yield part(number)

    return make


def _loads_of(folder):
    return [tuple(map(int, name.split("-"))) for name in os.listdir(folder)]


def test_a_spark_worker_killed_while_counting_changes_no_count(
    spark, cluster, tmp_path
):
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    numbers = spark.range(PARTS, numPartitions=PARTS)
    frame = numbers.mapInPandas(_slow_parts(tmp_path), "p double, dx long, sex string")
    found = []
    counting = threading.Thread(
        target=lambda: found.append(GroupCounts.from_frame(frame, **COLUMNS))
    )
    counting.start()
    _, workers = cluster
    deadline = time.monotonic() + 120
    victim = workers[0].pid  # the session of its executor and Python processes
    while sum(session == victim for _, session, _ in _loads_of(tmp_path)) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert counting.is_alive()
    os.killpg(victim, signal.SIGKILL)
    counting.join(timeout=240)
    loads = _loads_of(tmp_path)
    assert {number for number, _, _ in loads} == set(range(PARTS))
    assert len(loads) > PARTS  # what the killed executor held was made again
    parts = [_part(number) for number in range(PARTS)]
    assert found == [GroupCounts.from_batches(parts, **COLUMNS)]
