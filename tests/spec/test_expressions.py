"""Texts of conditions: read into trees of ours, or refused in one line that says what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import SpecError
from release.queries.read import parse_spec
from release.records.trees import CallNode, CastNode, ColumnNode, IntegerNode, Node, StringNode
from release.spec.declarations import ColumnType as Type
from release.spec.expressions import parse
from release.spec.expressions.check import MOST_NODES, check_tree, columns_of, nodes_of
from release.spec.expressions.functions import FUNCTIONS, SPELLINGS, table
from release.spec.expressions.parse import MOST_BRACKETS, MOST_CHARACTERS, parse_expression
from release.spec.expressions.patterns import check_pattern
from release.spec.expressions.sql import to_sql
from tests.conftest import PROJECT
from tests.small import Small, joint, part, query

COLUMNS = {
    "wh": Type.INTEGER,
    "k": Type.INTEGER,
    "day": Type.DATE,
    "ts": Type.TIMESTAMP,
    "s": Type.STRING,
    "volt": Type.NUMBER,
    "b": Type.BOOLEAN,
}


def tree(text: str, wanted: Type | None = None) -> Node:
    return parse_expression("queries[0].where", text, COLUMNS, wanted)


def plain(node: Node) -> Any:
    return node.model_dump(mode="json")


def refusal(text: str, wanted: Type | None = None) -> str:
    with pytest.raises(SpecError) as told:
        tree(text, wanted)
    message = str(told.value)
    assert message.startswith("queries[0].where: ")
    assert "\n" not in message
    assert len(message) < 300
    return message


def test_a_condition_is_a_small_tree() -> None:
    assert plain(tree("day = DATE '2013-01-05' AND wh > 1500")) == {
        "call": "and",
        "of": [
            {"call": "=", "of": [{"column": "day"}, {"date": "2013-01-05"}]},
            {"call": ">", "of": [{"column": "wh"}, {"integer": "1500"}]},
        ],
    }
    assert plain(tree("hour(ts)", Type.INTEGER)) == {"call": "hour", "of": [{"column": "ts"}]}
    assert plain(tree("CAST(ts AS DATE)", Type.DATE)) == {"cast": "date", "of": {"column": "ts"}}
    assert plain(tree("wh", Type.STRING)) == {"cast": "string", "of": {"column": "wh"}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hour(ts) = 1", "extract(HOUR FROM ts) = 1"),
        ("hour(ts) = 1", "date_part('hour', ts) = 1"),
        ("wh > 2", "((wh) > (2)) -- a remark"),
        ("b AND wh > 1 AND k > 1", "b AND (wh > 1 /* x */ AND k > 1)"),
        ("volt > 2", "volt > 2.0"),
        ("ts > DATE '2013-01-05'", "ts > TIMESTAMP '2013-01-05 00:00:00'"),
        ("CASE wh WHEN 1 THEN b ELSE NULL END", "CASE WHEN wh = 1 THEN b END"),
        ("substr(s, 2) = ''", "substring(s, 2) = ''"),
        ("wh NOT IN (1, 2)", "NOT (wh IN (1, 2))"),
        ("s IS NOT NULL", "NOT s IS NULL"),
        ("CAST(s AS INTEGER) > 1", "TRY_CAST(s AS BIGINT) > 1"),
        ('"wh" > 1', "wh > 1"),
        ("wh > - 5", "wh > -(5)"),
    ],
)
def test_two_texts_of_one_meaning_are_one_tree(one: str, other: str) -> None:
    assert tree(one) == tree(other)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s > 3", "'>' compares a string with an integer; write numbers without quotes"),
        ("day = '2013-01-05'", "compares a date with a string"),
        ("volts > 1", "'volts' is not there; did you mean 'volt'?"),
        ("wh >", "not an SQL expression: see line 1"),
        ("", "write one expression"),
        ("wh > 1; DROP TABLE x", "without ;"),
        ("wh > 1, k > 1", "not an SQL expression"),
        ("true) -- ", "not an SQL expression"),
        ("b /* not closed", "not an SQL expression"),
        ("wh", "the condition is of type integer, not boolean"),
        ("wh > (SELECT max(wh) FROM rows)", "a subquery is not allowed"),
        ("EXISTS (SELECT 1)", "a subquery is not allowed"),
        ("wh IN (SELECT 1)", "a subquery is not allowed"),
        ("wh > ALL (SELECT 1)", "is not allowed"),
        ("sum(wh) OVER () > 1", "a window function is not allowed"),
        ("wh > > 3", "the operator >> is not allowed"),
        ("wh << 3", "the operator << is not allowed"),
        ("wh & 3", "the operator & is not allowed"),
        ("wh | 3", "the operator | is not allowed"),
        ("~wh > 3", "the operator ~ is not allowed"),
        ("s -> 'a'", "the operator -> is not allowed"),
        ("s ->> 'a'", "the operator ->> is not allowed"),
        ("s @> 'a'", "the operator @> is not allowed"),
        ("s <@ 'a'", "the operator <@ is not allowed"),
        ("s && 'a'", "the operator && is not allowed"),
        ("s ^@ 'a'", "the operator ^@ is not allowed"),
        ("s ? 'a'", "the operator ? is not allowed"),
        ("s SIMILAR TO 'a'", "SIMILAR TO is not allowed"),
        ("ts AT TIME ZONE 'UTC' = ts", "AT TIME ZONE is not allowed"),
        ("count(*) > 1", "a function of several rows"),
        ("max(wh) > 1", "a function of several rows"),
        ("* > 1", "is not allowed"),
        ("COLUMNS(*) > 1", "the function columns is not allowed"),
        ("rows.wh > 1", "a name of several parts"),
        ("$1 > 1", "a parameter is not allowed"),
        ("? > 1", "a parameter is not allowed"),
        (":a > 1", "a parameter is not allowed"),
        ("list_filter([1], x -> x > 1) IS NULL", "lists and structs are not allowed"),
        ("f(x -> x)", "the function f is not allowed"),
        ("lenght(s) > 1", "the function lenght is not allowed; did you mean 'length'?"),
        ("random() < 1", "the function random is not allowed"),
        ("now() > ts", "the function now is not allowed"),
        ("current_date > day", "current_date is not allowed: it differs from day to day"),
        ("replace(s, 'a', 'bb') = s", "the function replace is not allowed"),
        ("repeat(s, 1000000) = s", "the function repeat is not allowed"),
        ("CAST(wh AS DECIMAL) > 1", "the type DECIMAL"),
        ("CAST(wh AS DECIMAL(3, 1)) > 1", "is not allowed"),
        ("CAST(s AS TIMESTAMPTZ) IS NULL", "the type TIMESTAMPTZ is not allowed in a cast"),
        ("CAST(day AS BIGINT) > 1", "a date is not cast to an integer"),
        ("day = DATE '2013-02-30'", "'2013-02-30' is no date; write one such as 2013-01-05"),
        ("day = DATE 'infinity'", "'infinity' is no date"),
        ("day > day - INTERVAL 1 DAY", "an interval is not allowed"),
        ("wh = NULL", "NULL by itself"),
        ("b IS TRUE", "IS takes NULL only"),
        ("s LIKE 'a' ESCAPE 'b'", "ESCAPE is not allowed"),
        ("s LIKE s", "argument 2 of 'like' has to be a constant"),
        ("wh IN (1, k)", "argument 3 of 'in' has to be a constant"),
        ("regexp_matches(s, s)", "argument 2 of 'regexp_matches' has to be a constant"),
        ("regexp_matches(s, '(a')", "not a pattern that is understood: see its end"),
        ("date_trunc('century', ts) = ts", "'century' is no part"),
        ("extract(epoch FROM ts) > 1", "is no part of a date"),
        ("s COLLATE NOCASE = 'a'", "COLLATE is not allowed"),
        ("s ~ 'a'", "write regexp_matches(x, 'pattern')"),
        ("wh ^ 2 > 1", "write power(x, y)"),
        ("k < wh < 3", "comparisons in a chain; join them with AND"),
        ("wh > 9223372036854775808", "an integer of more than 64 bits"),
        ("volt > 1e400", "a number beyond"),
        ("E'a' = s", "is not allowed"),
        ("$$a$$ = s", "is not allowed"),
        ("[1, 2] = wh", "lists and structs are not allowed"),
        ("{'a': 1} = wh", "lists and structs are not allowed"),
        ("ts AT TIME ZONE 'UTC' > ts", "is not allowed"),
        ("'\0' = s", "the character 0 stands in it"),
        ("s AS t", "not an SQL expression"),
        ("DISTINCT b", "not an SQL expression"),
        ("b ORDER BY b", "not an SQL expression"),
        ("row(1) = 1", "row(…) is not allowed"),
    ],
)
def test_what_is_no_condition_of_one_row_is_refused(text: str, says: str) -> None:
    assert says in refusal(text)


NESTED = [
    ("(", "b", ")"),
    ("abs(", "wh", ")"),
    ("NOT ", "b", ""),
    ("- ", "wh", ""),
    ("int(", "wh", ")"),
    ("decimal(", "wh", ")"),
    ("row(", "wh", ")"),
    ("timestamp(", "wh", ")"),
    ("CASE WHEN ", "b", " THEN b END"),
    ("CASE ", "wh", " WHEN 1 THEN 2 WHEN 2 THEN 3 WHEN 3 THEN 4 END"),
    ("CAST(", "wh", " AS BIGINT)"),
    ("(", "b", " BETWEEN b AND b)"),
    ("nullif(", "wh", ", 5)"),
    ("a[", "wh", "]"),
    ("f(x -> ", "wh", ")"),
    ("(SELECT ", "wh", ")"),
    ("{'a': ", "wh", "}"),
    ("EXISTS(", "wh", ")"),
    ("wh IN (", "1", ")"),
    ("extract(hour FROM ", "ts", ")"),
    ("interval ", "wh", ""),
    ("f(1) FILTER (WHERE ", "b", ")"),
]


@pytest.mark.parametrize("times", [12, 40, 400])
@pytest.mark.parametrize(("before", "middle", "after"), NESTED)
def test_what_nests_deep_is_refused_at_once(
    before: str, middle: str, after: str, times: int
) -> None:
    """And what is accepted has a bounded size, also as the engine writes it out."""
    text = before * times + middle + after * times
    try:
        found = tree(text, Type.STRING)
    except SpecError as error:
        assert "\n" not in str(error)
    else:
        assert times == 12 or before in {"- ", "NOT "}
        assert len(list(nodes_of(found))) <= MOST_NODES


def test_the_size_of_an_expression_is_bounded() -> None:
    assert str(MOST_CHARACTERS) in refusal("b OR " * MOST_CHARACTERS + "b")
    assert "nested" in refusal(" + ".join(["wh"] * 70) + " > 1")
    assert "brackets nest" in refusal("(" * (MOST_BRACKETS + 1) + "b" + ")" * (MOST_BRACKETS + 1))
    assert "joins more than 16 texts" in refusal(" || ".join(["s"] * 17) + " = s")
    assert "more than 1000 parts" in refusal(" OR ".join(["wh=k"] * 399))
    # The engine writes what BETWEEN compares twice, and so on at every level.
    between = "b"
    for _ in range(10):
        between = f"({between} BETWEEN b AND b)"
    assert "more than 1000 parts" in refusal(between)
    assert len(list(nodes_of(tree(" OR ".join(["wh=1"] * 300))))) == 901


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from([*"()[]{}.,;:$?*+-/%<>=!|&~^'\"@#", "wh", "AND", "NOT", "CASE", "WHEN"])
        | st.sampled_from(["THEN", "END", "SELECT", "FROM", "IN", "IS", "NULL", "CAST", "AS", "1"])
        | st.sampled_from(["INT", "DATE", "'a'", "BETWEEN", "LIKE", "OVER", "FILTER", "INTERVAL"]),
        max_size=14,
    ).map(" ".join)
)
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        found = tree(text, Type.STRING)
    except SpecError as error:
        assert "\n" not in str(error)
    else:
        check_tree(found, COLUMNS, Type.STRING)


def classes() -> list[Any]:
    """Every class of nodes that SQLGlot has."""
    from sqlglot import exp

    found: list[type] = []
    waiting: list[type] = [exp.Expr]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        found.append(kind)
    return sorted(set(found), key=lambda kind: kind.__name__)


ALLOWED = {
    *("Column", "Literal", "Boolean", "Paren", "Neg", "Not", "Is", "In", "Between", "Case"),
    *("Cast", "TryCast", "Extract", "Anonymous", "Like", "ILike", "And", "Or", "DPipe"),
    *("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "Add", "Sub", "Mul", "Div", "IntDiv", "Mod"),
}


def test_every_class_of_the_parser_is_allowed_or_refused() -> None:
    """Also one that a later version brings: it is not in the list."""
    kinds = classes()
    assert len(kinds) > 900
    assert {"Select", "Window", "Star", "Lambda", "Placeholder", "Sum", "Anonymous"} <= {
        kind.__name__ for kind in kinds
    }
    allowed = set()
    for kind in kinds:
        node = kind()
        try:
            parse._Reader(COLUMNS).read(node, 5)
        except ValueError as error:
            if str(error) == parse._refusal(node):
                continue
        except (AttributeError, KeyError, TypeError):
            # It has a handler, which misses the arguments of an empty node.
            pass
        allowed.add(kind.__name__)
    assert allowed == ALLOWED
    assert set(parse._handlers()) == ALLOWED


MEANINGS = [
    *("not wh = 5", "not b and b", "not b or wh > 3 and k > 1", "wh + k * 2 > 3", "wh - k - 1"),
    *("wh // 2 * 2", "wh % 3 + 1", "-wh % 3", "- wh + 2", "wh * -k", "wh - -k", "s || 'a' = 'Ta'"),
    *("s || wh::varchar", "wh between 1 and 5 and b", "wh not between 1 and 5 or b", "not b = b"),
    *("wh in (5, 0) and b", "wh not in (5) = b", "wh is null or b", "not wh is null", "wh == k"),
    *("wh is not null and b", "wh = 5 is null", "(wh = 5) is null", "wh::double / 2", "wh / k"),
    *("case when b then wh else k end + 1", "wh / 2 * k", "-wh::double", "wh::varchar::bigint + 1"),
    *("s like 'T%' or b", "not s like 'T%'", "s not like 'T%' and b", "s ilike 't%' = b"),
    *("wh + 1 between k and 5", "wh > 1 and k > 1 or b", "b or b and not b", "wh != k", "abs(-wh)"),
    *("round(volt)", "ceil(volt)", "floor(volt)", "round(volt, 1)", "greatest(wh, k, 1)"),
    *("least(wh, k)", "coalesce(wh, 0)", "nullif(wh, 5)", "hour(ts)", "extract(minute from ts)"),
    *("date_part('week', day)", "date_trunc('month', ts)", "date_trunc('week', day)", "second(ts)"),
    *("date_diff('day', day, date '2013-01-06')", "year(day) * 100 + month(day)", "isodow(day)"),
    *("dayofweek(day)", "dayofyear(day)", "quarter(day)", "substring(s, 1, 2)", "substr(s, 2)"),
    *("left(s, 1)", "right(s, 1)", "upper(s)", "length(s)", "strpos(s, 'U')", "lower(s)"),
    *("starts_with(s, 'T')", "ends_with(s, 'b')", "contains(s, '%')", "concat(s, 'x')", "trim(s)"),
    *("wh * 0.5 > 1", "volt > 1", "volt = 2.5", "volt between -1 and 3", "ts > date '2013-01-01'"),
    *("ts between date '2012-01-01' and date '2013-01-01'", "cast(ts as date) = day", "ts::date"),
    *("power(wh, 2)", "sqrt(volt)", "sign(wh)", "exp(volt)", "ln(volt)", "log10(volt)", "1 = 1"),
    *("wh < 1e3", "wh >= .5", "'a' || 'b' || s", "b = true", "b > false", "not not b", "s >= 'T'"),
    *("case wh when 5 then 'x' when 0 then 'y' else 'z' end", "case when wh > 3 then 1 end"),
    *(
        "try(wh // 0)",
        "wh - (k - 1)",
        "wh * k // 2",
        "wh // k * 2",
        "5 - wh % 3 * 2",
        "b and b = b",
    ),
    *("wh > 3 is not null", "b is null = b", "wh = k or wh = 5 and not b", "minute(ts) < 31"),
    *("regexp_matches(s, 'T.')", "regexp_full_match(s, 'To?U')", "regexp_extract(s, '[A-Z]+')"),
    *(
        "CAST(s AS BIGINT)",
        "wh::boolean",
        "b::integer",
        "volt::bigint",
        "day::timestamp",
        "b::text",
    ),
]
ROWS = """(VALUES
    (5::BIGINT, 3::BIGINT, DATE '2013-01-05', TIMESTAMP '2013-01-05 19:30:15.5', 'ToU', 2.5::DOUBLE,
     true),
    (-7, 2, DATE '2012-12-31', TIMESTAMP '2012-12-31 23:59:59', 'a%b', -0.5, false),
    (0, -1, DATE '2000-02-29', TIMESTAMP '2000-02-29 00:00:00', ' 12 ', 0.0, NULL),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL)) AS rows(wh, k, day, ts, s, volt, b)"""


@pytest.mark.parametrize("text", MEANINGS)
def test_a_text_means_what_the_engine_takes_it_for(text: str) -> None:
    """The same values as when the engine reads the text itself."""
    parsed = parse._Reader(COLUMNS).read(parse._syntax(text), 64)
    told = []
    with duckdb.connect() as engine:
        for sql in (f"TRY({text})", to_sql(parsed)):
            told.append(engine.execute(f"SELECT CAST({sql} AS VARCHAR) FROM {ROWS}").fetchall())
    assert told[0] == told[1]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from([*"ab1-^$.|*+?(){},[]\\", "d", "w", "3", "é", "(?:"]), max_size=9))
def test_a_pattern_that_is_accepted_is_one_of_the_engine(pieces: list[str]) -> None:
    pattern = "".join(pieces)
    try:
        check_pattern(pattern)
    except ValueError:
        return
    with duckdb.connect() as engine:
        found = engine.execute("SELECT regexp_matches('ab1', ?)", [pattern]).fetchall()
    assert found[0][0] in {True, False}


@pytest.mark.parametrize(
    "pattern",
    ["a{1001}", "(?:a{100}){100}", "(a|b)*(", "a**", "[b-a]", "[[:alpha:]]", "\\1", "(?i)a", "a)"],
)
def test_a_pattern_that_could_cost_much_or_mean_much_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        check_pattern(pattern)


def test_all_verbs_refuse_before_a_table_is_opened() -> None:
    for where, says in (("wh > 'a'", "queries[0].where"), ("whh > 1", "did you mean 'wh'")):
        small = Small([], [query("count", where=where)]).plain()
        with pytest.raises(SpecError) as told:
            parse_spec(_yaml(small))
        assert says in str(told.value)
    small = Small([], [query("count")]).plain()
    small["tables"]["rows"]["derive"] = {
        "twice": {"type": "integer", "sql": "wh * 2"},
        "more": {"type": "integer", "sql": "twice * 2"},
    }
    with pytest.raises(SpecError, match=r"tables\.rows\.derive\.more\.sql: 'twice' is not there"):
        parse_spec(_yaml(small))
    small["tables"]["rows"]["derive"] = {"day2": {"type": "date", "sql": "wh * 2"}}
    with pytest.raises(SpecError, match=r"day2\.sql: an integer is not cast to a date"):
        parse_spec(_yaml(small))


def _yaml(plain_spec: dict[str, Any]) -> bytes:
    import yaml

    return yaml.safe_dump(plain_spec).encode()


def test_the_parser_is_loaded_only_where_there_is_a_text() -> None:
    """A spec without conditions is read, and so is a tree checked, without it."""
    program = (
        "import sys; from release.queries.read import parse_spec;"
        "from release.verification import verifier; from release.spec.expressions import check;"
        "spec = parse_spec(sys.stdin.buffer.read());"
        "assert 'sqlglot' not in sys.modules and 'duckdb' not in sys.modules"
    )
    text = _yaml(Small([], [query("count")]).plain())
    subprocess.run([sys.executable, "-c", program], check=True, cwd=PROJECT, input=text)


def test_a_trees_columns_are_those_that_it_uses() -> None:
    assert columns_of(tree("wh > 1 AND CASE WHEN b THEN s END = 'a'")) == {"wh", "b", "s"}


def test_each_function_is_in_the_documentation() -> None:
    page = (PROJECT / "docs" / "design" / "spec.md").read_text("utf-8")
    assert table() in page
    assert set(SPELLINGS.values()) <= set(FUNCTIONS)
    for spelling in SPELLINGS:
        assert f"`{spelling}`" in page


@pytest.mark.parametrize(
    "forged",
    [
        CallNode(call="max", of=[ColumnNode(column="wh")]),
        CallNode(call=">", of=[ColumnNode(column="wh"), StringNode(string="a")]),
        CallNode(call=">", of=[ColumnNode(column="volt"), IntegerNode(integer="2")]),
        CallNode(call="=", of=[ColumnNode(column="other"), IntegerNode(integer="2")]),
        CallNode(call="like", of=[ColumnNode(column="s"), ColumnNode(column="s")]),
        CallNode(call="regexp_matches", of=[ColumnNode(column="s"), StringNode(string="(")]),
        CallNode(call="is_null", of=[ColumnNode(column="s"), ColumnNode(column="s")]),
        CallNode(call="case", of=[ColumnNode(column="b")]),
        CastNode(cast="boolean", of=ColumnNode(column="b")),
        CastNode(cast="boolean", of=ColumnNode(column="day")),
        ColumnNode(column="wh"),
    ],
)
def test_a_tree_that_no_text_has_is_refused(forged: Node) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_tree(forged, COLUMNS, Type.BOOLEAN)


@pytest.mark.parametrize("place", ["query", "part", "derived"])
def test_expressions_of_empirical_queries_use_no_fixed_column(place: str) -> None:
    """The verifiers read specs as the writer does, so a spec alone is enough for the refusal."""
    where = {} if place == "derived" else {"where": "place = 'a'"}
    queries = [query("mode", **where)]
    if place == "part":
        queries = [part("first", "mode", **where), part("second", "mode")]
        queries.append(joint("first", "second", name="both"))
    plain = Small([], queries, fixed=["place"]).plain()
    if place == "derived":
        plain["tables"]["rows"]["derive"] = {"at_a": {"type": "boolean", "sql": "place = 'a'"}}
    with pytest.raises(SpecError, match=r"'place' is fixed, and a query on the table"):
        parse_spec(json.dumps(plain).encode())
    plain["privacy"]["fixed"] = []
    parse_spec(json.dumps(plain).encode())
