from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from fairpul import fit_rule
from fairpul.cuts import acceptance_levels

HALF_EACH = ((0.75, 0.5), (0.25, 0.5))
SINGLE = ((0.5, 1.0),)
NOBODY_OR_SOME = ((np.inf, 0.4), (0.3, 0.6))
EVERYBODY_OR_SOME = ((0.9, 0.1), (0.1 + 0.2, 0.3), (0.0, 0.6))
NOBODY = ((np.inf, 1.0),)
EVERYBODY = ((0.0, 1.0),)


def rule_with(cuts, seed=12345):
    """Rule with the given cuts by group; what else it holds does not matter here."""
    rng = np.random.default_rng(0)
    score = rng.random(200 * len(cuts))
    group = [key for key in cuts for _ in range(200)]
    labeled = rng.random(len(score)) < score
    rule = fit_rule(score, labeled, group, label_frequency=0.95)
    return replace(rule, cuts=tuple(cuts[key] for key in rule.groups), seed=seed)


def run(expression, table):
    with duckdb.connect() as connection:
        connection.register("data", table)
        found = connection.sql(f"SELECT {expression} AS decision FROM data").fetchall()
    return [decision for (decision,) in found]


def edge_scores(cuts):
    """Scores at, next to and far from every cut."""
    at = [cut for group in cuts.values() for cut, _ in group if np.isfinite(cut)]
    around = [np.nextafter(cut, side) for cut in at for side in (0, 1)]
    return np.unique([*at, *around, 0.0, 1.0, 0.5, 1e-300, 0.123456789])


GROUPS = {
    "plain": {"f": SINGLE, "m": ((0.1 + 0.2, 1.0),)},
    "odd text": {
        "O'Brien": SINGLE,
        'say "hi"': ((0.25, 1.0),),
        "back\\slash": ((1e-7, 1.0),),
        "": NOBODY,
        "\u00e9\u4e2d; DROP TABLE data --": EVERYBODY,
        "F": ((1 / 3, 1.0),),
        "f": ((2 / 3, 1.0),),
    },
    "integers": {-5: SINGLE, 0: NOBODY, 2**40: ((0.75, 1.0),)},
    "booleans": {False: SINGLE, True: EVERYBODY},
}


@pytest.mark.parametrize("cuts", GROUPS.values(), ids=GROUPS)
def test_decisions_are_those_of_decide(cuts):
    rule = rule_with(cuts)
    score = np.tile(edge_scores(cuts), len(cuts))
    group = [key for key in cuts for _ in edge_scores(cuts)]
    table = pa.table({"p": score, "g": group})
    found = run(rule.to_sql("duckdb", score="p", group="g"), table)
    assert found == rule.decide(score, group).tolist()
    assert set(found) == {0, 1}


def test_float32_scores_decide_alike():
    score = np.random.default_rng(0).random(500, dtype=np.float32)
    rule = rule_with({"f": ((float(score[0]), 1.0),)})
    table = pa.table({"p": score, "g": ["f"] * 500})
    found = run(rule.to_sql("duckdb", score="p", group="g"), table)
    assert found == rule.decide(score, ["f"] * 500).tolist()


def test_invalid_rows_and_unknown_groups_are_minus_one():
    rule = rule_with({"f": SINGLE, "m": EVERYBODY})
    score = [None, np.nan, np.inf, -np.inf, -1e-300, np.nextafter(1, 2), 0.5, 0.5, 0.5]
    group = ["m"] * 6 + [None, "x", "F"]
    table = pa.table(
        {"p": pa.array(score, pa.float64(), from_pandas=False), "g": group}
    )
    assert run(rule.to_sql("duckdb", score="p", group="g"), table) == [-1] * 9


def test_a_rule_for_everybody_needs_no_group():
    rng = np.random.default_rng(0)
    score = rng.random(400)
    rule = fit_rule(
        score, rng.random(400) < score, None, constraint=None, label_frequency=0.95
    )
    table = pa.table({"p": [*score, None]})
    found = run(rule.to_sql("duckdb", score="p"), table)
    assert found == [*rule.decide(score).tolist(), -1]
    assert set(found) == {0, 1, -1}


def test_several_columns():
    cuts = {("f", 1): SINGLE, ("f", 2): NOBODY, ("m", 1): EVERYBODY}
    rule = rule_with(cuts)
    table = pa.table(
        {
            "p": [0.5, 0.4, 1.0, 0.0, 0.9, 0.9, 0.9],
            "sex": ["f", "f", "f", "m", "m", None, "f"],
            "site": [1, 1, 2, 1, 2, 1, None],
        }
    )
    expression = rule.to_sql("duckdb", score="p", group=["sex", "site"])
    assert run(expression, table) == [1, 0, 0, 1, -1, -1, -1]


@pytest.mark.parametrize("name", ['sc"ore', "select", "a b; --", "p'", "p\\", "\u00e9"])
def test_identifiers_are_quoted(name):
    rule = rule_with({"f": HALF_EACH})
    names = {"score": name, "group": f"{name} g", "row_id": f"{name} id"}
    columns = [[0.2, 0.9], ["f", "f"], [1, 2]]
    table = pa.table(dict(zip(names.values(), columns, strict=True)))
    assert run(rule.to_sql("duckdb", **names), table) == [0, 1]


IDS = {
    "int8": np.arange(-128, 128).astype(np.int8),
    "uint8": np.arange(256).astype(np.uint8),
    "int16": np.arange(-500, 500).astype(np.int16),
    "int32": (np.arange(-500, 500) * 4_000_000).astype(np.int32),
    "uint32": (np.arange(1000) * 4_000_000).astype(np.uint32),
    "int64": np.arange(1000),
    "negative": -np.arange(1, 1001) * 7_654_321_987,
    "ends of int64": np.array(
        [*range(-(2**63), 500 - 2**63), *range(2**63 - 500, 2**63)]
    ),
    "uint64": np.uint64(2**64 - 1) - np.arange(1000, dtype=np.uint64),
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_lotteries_of_integer_ids_are_those_of_decide(ids):
    cuts = {"f": HALF_EACH, "m": NOBODY_OR_SOME, "x": EVERYBODY_OR_SOME, "y": SINGLE}
    rule = rule_with(cuts, seed=2**61 + 3)
    rng = np.random.default_rng(1)
    score = rng.choice(edge_scores(cuts), size=len(ids))
    group = rng.choice(list(cuts), size=len(ids))
    table = pa.table({"p": score, "g": group, "id": ids})
    found = run(rule.to_sql("duckdb", score="p", group="g", row_id="id"), table)
    assert found == rule.decide(score, group, row_id=ids).tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_bins_are_compared_as_decide_compares_them(kind):
    cuts = {"f": ((2048.0, 1.0),), "m": ((4096.0, 0.5), (100.0, 0.5))}
    rule = replace(rule_with(cuts), bins=4096)
    edges = (np.array([2048, 100, 4096]) / 4096) ** 4
    around = [edges, np.nextafter(edges, 0), np.nextafter(edges, 1), [0.0, 0.001, 0.5]]
    score = np.tile(np.concatenate(around), 20).astype(kind)
    group = np.where(np.arange(len(score)) % 24 < 12, "f", "m")
    table = pa.table({"p": score, "g": group, "id": np.arange(len(score))})
    found = run(rule.to_sql("duckdb", score="p", group="g", row_id="id"), table)
    assert found == rule.decide(score, group, row_id=np.arange(len(score))).tolist()
    outside = pa.table({"p": [-1.0, np.nan, 2.0], "g": ["f"] * 3, "id": [1, 2, 3]})
    expression = rule.to_sql("duckdb", score="p", group="g", row_id="id")
    assert run(expression, outside) == [-1] * 3


def test_rows_without_an_id_are_invalid_only_where_lots_are_drawn():
    table = pa.table({"p": [0.9, 0.5], "g": ["f", "f"], "id": [None, 3]})
    columns = {"score": "p", "group": "g", "row_id": "id"}
    lottery = rule_with({"f": HALF_EACH}).to_sql("duckdb", **columns)
    assert run(lottery, table)[0] == -1
    assert run(lottery, table)[1] in (0, 1)
    assert run(rule_with({"f": SINGLE}).to_sql("duckdb", **columns), table) == [1, 1]


def test_spark_reads_the_same_expression_in_its_own_quotes():
    # DuckDB runs it in the tests above; for plain names only the quotes differ.
    rule = rule_with({"f": HALF_EACH, "m": NOBODY_OR_SOME})
    columns = {"score": "p", "group": "g", "row_id": "id"}
    expected = rule.to_sql("duckdb", **columns).replace('"', "`")
    assert rule.to_sql("spark", **columns) == expected
    assert '"' not in expected


def test_spark_escapes_names_and_values():
    rule = rule_with({"O'Brien": SINGLE, "back\\slash": SINGLE})
    expression = rule.to_sql("spark", score="a`b", group='g"')
    assert "CAST(`a``b` AS DOUBLE)" in expression
    assert "`g\"` = 'O\\'Brien'" in expression
    assert "`g\"` = 'back\\\\slash'" in expression


def test_every_number_is_a_double():
    expression = rule_with({"f": ((0.1, 1.0),)}).to_sql("duckdb", score="p", group="g")
    assert "CAST('0.1' AS DOUBLE)" in expression
    assert "0.1" not in expression.replace("CAST('0.1' AS DOUBLE)", "")


def test_acceptance_levels_are_the_weights_still_to_come():
    assert acceptance_levels(SINGLE) == [1.0]
    assert acceptance_levels(((np.inf, 0.25), (0.5, 0.75))) == [1.0, 0.75]
    assert acceptance_levels(((0.9, 0.25), (0.5, 0.5), (0.1, 0.25))) == [1, 0.75, 0.25]


PAIRS = {("f", 1): SINGLE, ("m", 1): SINGLE}


@pytest.mark.parametrize(
    ("cuts", "dialect", "names", "text"),
    [
        ({"f": SINGLE}, "sqlite", {}, r"must be one of \['duckdb', 'spark'\]"),
        ({"f": HALF_EACH}, "duckdb", {}, "needs row_id=, the name of an integer"),
        ({"f": SINGLE}, "duckdb", {"group": None}, r"name their column\(s\)"),
        ({"f": SINGLE}, "duckdb", {"group": ["g", "h"]}, "do not fit 2 columns"),
        (PAIRS, "duckdb", {"group": "g"}, "do not fit 1 columns"),
        ({0.5: SINGLE}, "duckdb", {}, "of type float has no SQL literal"),
    ],
)
def test_what_sql_cannot_say_is_refused(cuts, dialect, names, text):
    rule = rule_with(cuts)
    with pytest.raises(ValueError, match=text):
        rule.to_sql(dialect, **{"score": "p", "group": "g"} | names)
