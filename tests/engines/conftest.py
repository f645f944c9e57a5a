"""What every engine must do with the hostile rows: count and decide like plain Python.

Each file of this folder runs in a process of its own (`make engines`), because a
process holds one Spark session.
"""

import numpy as np
import pytest

from fairpul import GroupCounts
from fairpul.cells import INVALID

GROUPS = [[], ["sex"], ["site"], ["urban"], ["sex", "site", "urban"]]
REFINE = {"f": (1700, 4095), "m": (0, 4096)}
RULES = [
    ((((np.inf, 0.2), (0.7, 0.3), (0.1, 0.5)), ((0.25, 1.0),)), None),
    ((((3800.0, 0.25), (2000.0, 0.75)), ((np.inf, 1.0),)), 4096),
]


@pytest.fixture(scope="session")
def hostile_files(hostile_rows, tmp_path_factory):
    """Folder of four Parquet files."""
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("hostile")
    table = hostile_rows.arrow()
    for part in range(4):
        parquet.write_table(
            table.slice(part * 1500, 1500), folder / f"part-{part}.parquet"
        )
    return folder


def as_cells(counts):
    return {
        (counts.groups[code], number): sums
        for code, number, sums in zip(
            counts.codes, counts.bin.tolist(), counts.sums.tolist(), strict=True
        )
    }


@pytest.fixture
def check_counts(hostile_rows):
    def check(frame):
        for group in GROUPS:
            counts = GroupCounts.from_frame(
                frame, score="p", labeled="dx", group=group or None
            )
            cells, invalid = hostile_rows.counts(group)
            assert as_cells(counts) == {at: sums[:2] for at, sums in cells.items()}
            assert counts.invalid == dict.fromkeys(INVALID, 0) | invalid
        for refine in (None, REFINE):
            counts = GroupCounts.from_frame(
                frame,
                score="p",
                labeled="dx",
                group="sex",
                sample_weight="w",
                refine=refine,
            )
            cells, _ = hostile_rows.counts(["sex"], refine=refine, weight="w")
            assert as_cells(counts) == cells

    return check


@pytest.fixture
def check_decisions(hostile_rows, make_rule):
    """Check decisions; ``read`` returns those of a frame in the order of ``row``."""

    def check(frame, read, row_ids=("id", "uid")):
        for cuts, bins in RULES:
            rule = make_rule(["f", "m"], cuts, bins)
            for row_id in row_ids:
                decided = rule.apply(frame, score="p", group="sex", row_id=row_id)
                assert read(decided) == hostile_rows.decisions(rule, ["sex"], row_id)
        rule = make_rule([("f", -1, True), ("m", 0, False)], [((0.25, 1.0),)] * 2)
        names = ["sex", "site", "urban"]
        decided = rule.apply(frame, score="p", group=names, probability=True)
        assert read(decided) == hostile_rows.decisions(rule, names)

    return check


@pytest.fixture
def check_sql(hostile_rows, make_rule):
    """Check decisions by SQL; ``run`` evaluates an expression in the order of rows."""

    def check(run, dialect):
        for cuts, bins in RULES:
            rule = make_rule(["f", "m"], cuts, bins)
            text = rule.to_sql(dialect, score="p", group="sex", row_id="id")
            assert run(text) == hostile_rows.decisions(rule, ["sex"], "id")

    return check
