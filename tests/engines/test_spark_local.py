import pytest

pyspark = pytest.importorskip("pyspark.sql")
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def spark():
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


def test_spark_sql_decides_like_plain_python(frame, check_sql):
    functions = pytest.importorskip("pyspark.sql.functions")

    def run(text):
        return read(frame.withColumn("decision", functions.expr(text)))

    check_sql(run, "spark")
