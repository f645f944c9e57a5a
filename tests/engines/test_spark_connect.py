import pytest

pyspark = pytest.importorskip("pyspark.sql")
pytest.importorskip("grpc")
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def frame(hostile_files):
    session = (
        pyspark.SparkSession.builder.remote("local[2]")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    assert "connect" in type(session).__module__
    yield session.read.parquet(str(hostile_files))
    session.stop()


def read(frame):
    rows = frame.orderBy("row").select("decision").collect()
    return [row["decision"] for row in rows]


def test_spark_connect_counts_like_plain_python(frame, check_counts):
    check_counts(frame)


def test_spark_connect_decides_like_plain_python(frame, check_decisions):
    check_decisions(frame, read)
