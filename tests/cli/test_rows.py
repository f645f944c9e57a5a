import polars as pl
import pytest

from fairpul import GroupCounts, audit, fit_rule
from fairpul.cli import rows
from fairpul.cli.rows import Columns, read_scores
from fairpul.datasets import make_underdiagnosed


@pytest.fixture
def files(tmp_path):
    data = make_underdiagnosed(20_000, random_state=0)
    frame = pl.DataFrame({"p": data.score, "dx": data.labeled, "sex": data.group})
    paths = [tmp_path / "one.parquet", tmp_path / "two.csv"]
    frame[:12_000].write_parquet(paths[0])
    frame[12_000:].write_csv(paths[1])
    return paths


def test_a_file_that_is_counted_gives_the_rule_of_its_rows(files, monkeypatch):
    columns = Columns("p", "dx", ("sex",))
    exact = fit_rule(read_scores(files, columns), label_frequency=0.8)
    monkeypatch.setattr(rows, "_MOST_ROWS", 1000)
    counts = read_scores(files, columns)
    assert isinstance(counts, GroupCounts)
    rule = fit_rule(counts, label_frequency=0.8)
    # 1e-5: what refining promises.
    assert rule.objective_value == pytest.approx(exact.objective_value, abs=1e-5)
    found = audit(counts, rule=rule, label_frequency=0.8)
    assert found.rates["f"]["tpr"].estimate == pytest.approx(
        exact.realized["f"]["tpr"].estimate, abs=1e-3
    )
