import os
import pickle
import sys

import pytest

from fairpul import GroupCounts

pyspark = pytest.importorskip("pyspark.sql")
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        pyspark.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def frame(spark, hostile_files):
    return spark.read.parquet(str(hostile_files))


def read(frame):
    rows = frame.orderBy("row").select("decision").collect()
    return [row["decision"] for row in rows]


def test_spark_counts_like_plain_python(frame, check_counts):
    check_counts(frame)


def test_spark_decides_like_plain_python(frame, check_decisions):
    # Spark has no unsigned integers and reads `uid` as DECIMAL(20, 0).
    check_decisions(frame, read)


def test_spark_refines_to_the_rule_of_the_rows(frame, check_refined):
    check_refined(frame)


def test_spark_sql_decides_like_plain_python(frame, check_sql):
    functions = pytest.importorskip("pyspark.sql.functions")

    def run(text):
        return read(frame.withColumn("decision", functions.expr(text)))

    check_sql(run, "spark")


def test_partitions_counted_by_map_in_arrow_add_up(frame):
    pa = pytest.importorskip("pyarrow")
    columns = {"score": "p", "labeled": "dx", "group": "sex", "sample_weight": "w"}

    def count(batches):
        table = GroupCounts.from_batches(batches, **columns)
        yield pa.RecordBatch.from_pydict({"table": [pickle.dumps(table)]})

    # More partitions than files: some are empty.
    rows = frame.repartition(7, "sex").mapInArrow(count, "table binary").collect()
    tables = [pickle.loads(row["table"]) for row in rows]
    assert any(table.groups == () for table in tables)
    assert sum(tables) == GroupCounts.from_frame(frame, **columns)
