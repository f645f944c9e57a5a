import pytest

ibis = pytest.importorskip("ibis")
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def frame(hostile_files):
    return ibis.duckdb.connect().read_parquet(str(hostile_files / "*.parquet"))


def test_ibis_counts_like_plain_python(frame, check_counts):
    check_counts(frame)


def test_ibis_decides_like_plain_python(frame, check_decisions):
    def read(table):
        return table.order_by("row").to_pyarrow()["decision"].to_pylist()

    check_decisions(frame, read)


def test_ibis_refines_to_the_rule_of_the_rows(frame, check_refined):
    check_refined(frame)
