import pickle

import narwhals as nw
import numpy as np
import pytest

from fairpul import GroupCounts
from fairpul.cells import INVALID

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

FRAMES = {
    "pandas": lambda table: (
        table.to_pandas(integer_object_nulls=True)
        .astype({"dx": "Int64", "site": "Int32", "urban": "boolean", "id": "Int64"})
        .set_index(pd.Index(range(5, 5 + len(table))))
    ),
    "pandas with Arrow types": lambda table: table.to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "pyarrow": lambda table: table,
    "polars": pl.from_arrow,
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "polars categorical": lambda table: pl.from_arrow(table).with_columns(
        pl.col("sex").cast(pl.Categorical)
    ),
    "polars lazy categorical": lambda table: (
        pl.from_arrow(table).lazy().with_columns(pl.col("sex").cast(pl.Categorical))
    ),
    "duckdb": lambda table: duckdb.from_arrow(table),
}


@pytest.fixture(params=FRAMES, scope="module")
def frame(request, hostile_rows):
    return FRAMES[request.param](hostile_rows.arrow())


def column_of(frame, name):
    """Column of the result, in the order of the rows."""
    if isinstance(frame, duckdb.DuckDBPyRelation):
        frame = frame.order("row").to_arrow_table()
    elif isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    column = frame[name]
    return column.to_list() if hasattr(column, "to_list") else column.to_pylist()


def as_cells(counts):
    return {
        (counts.groups[code], number): sums
        for code, number, sums in zip(
            counts.codes, counts.bin.tolist(), counts.sums.tolist(), strict=True
        )
    }


GROUPS = [[], ["sex"], ["site"], ["urban"], ["sex", "site", "urban"]]


@pytest.mark.parametrize("group", GROUPS, ids="/".join)
def test_counts_are_those_of_plain_python(frame, hostile_rows, group):
    counts = GroupCounts.from_frame(frame, score="p", labeled="dx", group=group or None)
    cells, invalid = hostile_rows.counts(group)
    assert as_cells(counts) == {at: sums[:2] for at, sums in cells.items()}
    assert counts.invalid == dict.fromkeys(INVALID, 0) | invalid


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("group", GROUPS, ids="/".join)
def test_a_frame_without_rows_gives_a_table_that_adds_nothing(
    kind, group, hostile_rows
):
    table = hostile_rows.arrow()
    columns = {"score": "p", "labeled": "dx", "group": group or None}
    none = GroupCounts.from_frame(FRAMES[kind](table[:0]), **columns)
    assert none.groups == ()
    assert set(none.invalid.values()) == {0}
    some = GroupCounts.from_frame(table, **columns)
    assert none + some == some


@pytest.mark.parametrize("refine", [None, {"f": (1700, 4095), "m": (0, 4096)}])
def test_weighted_counts_are_those_of_plain_python(frame, hostile_rows, refine):
    counts = GroupCounts.from_frame(
        frame, score="p", labeled="dx", group="sex", sample_weight="w", refine=refine
    )
    cells, invalid = hostile_rows.counts(["sex"], refine=refine, weight="w")
    assert as_cells(counts) == cells
    assert counts.invalid == dict.fromkeys(INVALID, 0) | invalid


def test_a_table_refined_on_any_engine_gives_the_rule_of_the_rows(
    frame, hostile_rows, check_refined
):
    check_refined(frame)


ONE = ((np.inf, 0.2), (0.7, 0.3), (0.1, 0.5)), ((0.25, 1.0),)
BINNED = ((3800.0, 0.25), (2000.0, 0.75)), ((np.inf, 1.0),)
FINE = ((60_000_000.0, 1.0),), ((2.0**26, 0.5), (0.0, 0.5))


@pytest.mark.parametrize("row_id", ["id", "uid"])
@pytest.mark.parametrize(("cuts", "bins"), [(ONE, None), (BINNED, 4096), (FINE, 2**26)])
def test_decisions_are_those_of_plain_python(
    frame, hostile_rows, make_rule, cuts, bins, row_id
):
    rule = make_rule(["f", "m"], cuts, bins)
    decided = rule.apply(frame, score="p", group="sex", row_id=row_id, probability=True)
    wanted = hostile_rows.decisions(rule, ["sex"], row_id)
    assert set(wanted) == {-1, 0, 1}
    assert column_of(decided, "decision") == wanted
    chance = column_of(decided, "acceptance_probability")
    known = [one is not None and one == one for one in map(_none, chance)]
    assert known == [decision >= 0 for decision in wanted]
    for value, decision in zip(chance, wanted, strict=True):
        assert decision < 0 or (value in (0, 1)) <= (decision == value)


def _none(value):
    return None if value is pd.NA else value


def test_intersectional_groups_and_rules_without_lottery_need_no_row_id(
    frame, hostile_rows, make_rule
):
    groups = [("f", -1, True), ("m", 0, False), ("é'", 1, True)]
    rule = make_rule(groups, [((0.25, 1.0),), ((np.inf, 1.0),), ((0.0, 1.0),)])
    names = ["sex", "site", "urban"]
    decided = rule.apply(frame, score="p", group=names)
    assert type(decided) is type(frame)
    wanted = hostile_rows.decisions(rule, names)
    assert set(wanted) == {-1, 0, 1}
    assert column_of(decided, "decision") == wanted


def test_one_group_needs_no_group_column(frame, hostile_rows, make_rule):
    rule = make_rule(["all"], [((0.25, 1.0),)])
    decided = rule.apply(frame, score="p")
    assert column_of(decided, "decision") == hostile_rows.decisions(rule, [])


@pytest.mark.parametrize("bins", [None, 4096])
def test_sql_decides_like_apply(hostile_rows, make_rule, bins):
    relation = duckdb.from_arrow(hostile_rows.arrow())
    rule = make_rule(["f", "é'"], ONE if bins is None else BINNED, bins)
    text = rule.to_sql("duckdb", score="p", group="sex", row_id="uid")
    found = relation.order("row").project(text).fetchall()
    wanted = hostile_rows.decisions(rule, ["sex"], "uid")
    assert [value for (value,) in found] == wanted


def test_sixty_groups_do_not_exhaust_the_recursion(make_rule):
    keys = [f"g{k}" for k in range(200)]
    cuts = [((k / 200, 0.5), (k / 400, 0.5)) for k in range(1, 201)]
    rule = make_rule(keys, cuts)
    table = pl.DataFrame(
        {"p": np.linspace(0, 1, 4000), "g": keys * 20, "row": range(4000)}
    )
    eager = rule.apply(table, score="p", group="g", row_id="row")
    lazy = rule.apply(table.lazy(), score="p", group="g", row_id="row").collect()
    assert eager.equals(lazy)
    sql = duckdb.from_arrow(table.to_arrow())
    sql = rule.apply(sql, score="p", group="g", row_id="row").order("row")
    assert sql.to_arrow_table()["decision"].to_pylist() == lazy["decision"].to_list()


def test_a_frame_decides_like_arrays(make_rule):
    rng = np.random.default_rng(0)
    score, group = rng.random(500).astype(np.float32), rng.choice(["f", "m"], 500)
    rule = make_rule(["f", "m"], BINNED, 4096)
    frame = pd.DataFrame({"p": score, "sex": group, "row": np.arange(500)})
    decided = rule.apply(frame, score="p", group="sex", row_id="row")["decision"]
    assert np.array_equal(decided, rule.decide(score, group, row_id=np.arange(500)))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"score": "q"}, ValueError, r"no columns \['q'\]"),
        ({"score": "sex"}, TypeError, "must hold numbers"),
        ({"group": "site"}, TypeError, r"groups are \['str'\] where column 'site'"),
        ({"group": "p"}, TypeError, "strings, integers or booleans"),
        ({"group": None}, ValueError, "name their column"),
        ({"group": ["sex", "site"]}, ValueError, "do not fit 2 columns"),
        ({"row_id": None}, ValueError, "needs row_id="),
        ({"row_id": "p"}, TypeError, "must hold integers"),
    ],
)
def test_columns_that_do_not_fit_the_rule_are_refused(make_rule, change, error, text):
    rule = make_rule(["f", "m"], ONE)
    frame = pl.DataFrame({"p": [0.5], "sex": ["f"], "site": [1], "row": [1]})
    columns = {"score": "p", "group": "sex", "row_id": "row"} | change
    for kind in (frame, frame.lazy()):
        with pytest.raises(error, match=text):
            rule.apply(kind, **columns)


def test_a_frame_that_narwhals_wrapped_comes_back_wrapped(make_rule):
    rule = make_rule(["all"], [((0.5, 1.0),)])
    frame = nw.from_native(pl.DataFrame({"p": [0.5, 0.4]}))
    decided = rule.apply(frame, score="p")
    assert isinstance(decided, nw.DataFrame)
    assert decided["decision"].to_list() == [1, 0]
    assert isinstance(rule.apply(frame.lazy(), score="p"), nw.LazyFrame)


def test_a_column_that_would_be_overwritten_is_refused(make_rule):
    rule = make_rule(["all"], [((0.5, 1.0),)])
    frame = pl.DataFrame({"p": [0.5], "decision": [0]})
    with pytest.raises(ValueError, match=r"columns \['decision'\] already"):
        rule.apply(frame, score="p")


def test_a_binned_rule_survives_json_and_pickle(make_rule):
    rule = make_rule(["f", "m"], BINNED, 4096)
    again = type(rule).from_json(rule.to_json())
    assert again.bins == 4096
    assert again.cuts == rule.cuts
    assert pickle.loads(pickle.dumps(rule)).cuts == rule.cuts
    broken = rule.to_json().replace("3800.0", "3800.5")
    with pytest.raises(ValueError, match="bin numbers of a binned rule are whole"):
        type(rule).from_json(broken)
