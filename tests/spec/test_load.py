"""The spec: what is refused, in one line that names the field and the remedy."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from release.budget.cost import charges
from release.bundle.schemas import FOLDER, schema_texts
from release.errors import BudgetError, ReleaseError, SpecError, nearest
from release.queries.kinds.joint import TupleQuery
from release.queries.read import parse_spec, read_spec
from release.spec.declarations import ColumnType
from release.spec.key_sets import key_text
from tests.conftest import PROJECT
from tests.small import Small, joint, part, query


def plain(*queries: dict[str, Any]) -> dict[str, Any]:
    return Small([], list(queries or [query("mode")])).plain()


def refusal(spec: Any) -> str:
    text = spec if isinstance(spec, bytes) else yaml.safe_dump(spec, sort_keys=False).encode()
    with pytest.raises(SpecError) as error:
        parse_spec(text)
    message = str(error.value)
    assert "\n" not in message
    return message


def changed(path: str, value: Any, base: dict[str, Any] | None = None) -> dict[str, Any]:
    """The spec with one field set; ``path`` as in messages, with dots and numbers."""
    spec = base or plain()
    at: Any = spec
    *steps, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    for step in steps:
        at = at[step]
    at[last] = value
    return spec


@pytest.mark.parametrize(
    ("path", "value", "field", "says"),
    [
        ("colour", "red", "colour", "unknown field"),
        ("queries.0.wieght", "wh", "queries[0].wieght", "did you mean 'weight'"),
        (
            "queries.0.kind",
            "total",
            "queries[0].kind",
            "count, mode, top, quantiles, sum, mean, min, max, median, per_unit, tuple, sql",
        ),
        ("queries.0.kind", "level", "queries[0].kind", "with bins"),
        ("queries.0.kind", "real", "queries[0].kind", "with grid"),
        ("queries.0.kind", "value", "queries[0].kind", "write per_unit"),
        ("queries.0.differences", "empirical", "queries[0].differences", "called 'sensitivity'"),
        ("privacy.neighbours", "add_remove", "privacy.neighbours", "called 'neighbors'"),
        ("release.licence", "CC0-1.0", "release.licence", "called 'license'"),
        ("queries.0.sensitivity", "structural", "queries[0].sensitivity", "called 'global'"),
        ("queries.0.domain", {"levels": {}}, "queries[0].domain", "'levels' is called 'bins'"),
        ("privacy.fixd", ["place"], "privacy.fixd", "did you mean 'fixed'"),
        ("budget.tables", "x", "budget.tables", "remove it"),
        ("budget.units", "x", "budget.units", "remove it"),
        ("release.a\nb", "x", "release.'a\\nb'", "unknown field"),
        ("queries.0.of", 7, "queries[0].of", "found 7; write text, in quotes"),
        ("queries.0.of", "kid", "queries[0].of", "did you mean 'kind'"),
        ("queries.0.of", "place", "queries[0].of", "declared string; needed is integer"),
        ("queries.0.table", "cols", "queries[0].table", "known are rows"),
        ("queries.0.by", ["wh2"], "queries[0].by[0]", "did you mean 'wh'"),
        ("queries.0.by", ["unit"], "queries[0].by[0]", "confidential"),
        ("queries.0.by", ["place", "place"], "queries[0].by[1]", "stands twice"),
        ("queries.0.by", ["kind"], "keys.kind", "needs the public keys"),
        ("queries.0.name", "Peak", "queries[0].name", "such as 'peak'"),
        ("queries.0.guarantee.epsilon", "0", "queries[0].guarantee", "epsilon must be above 0"),
        ("queries.0.guarantee.epsilon", "-1", "queries[0].guarantee.epsilon", "at least 0"),
        ("queries.0.guarantee.epsilon", 0.5, "queries[0].guarantee.epsilon", "as a string"),
        ("queries.0.guarantee.epsilon", True, "queries[0].guarantee.epsilon", "as a string"),
        ("queries.0.guarantee.delta", "1", "queries[0].guarantee", "below 1"),
        ("queries.0.guarantee.delta", "0.1", "queries[0].guarantee", "pure guarantee has delta 0"),
        ("queries.0.guarantee.definition", "renyi", "queries[0].guarantee.definition", "'pure'"),
        (
            "queries.0.domain",
            {"cyclic": 1},
            "queries[0].domain.cyclic",
            "found 1; write a number at least 2",
        ),
        ("queries.0.domain", {"nominal": ["x"]}, "queries[0].domain.nominal", "at least 2"),
        ("queries.0.domain", {"ring": 4}, "queries[0].domain", "{cyclic: k}"),
        ("queries.0.domain", {"ordered": {"min": 3, "max": 3}}, "queries[0].domain", "two answers"),
        ("queries.0.loss", "rmse", "queries[0].loss", "'error_rate'"),
        ("queries.0.loss", {"table": ["1", "2"]}, "queries[0].loss.table", "2 costs for 4 answers"),
        ("queries.0.sensitivity", "guessed", "queries[0].sensitivity", "'empirical'"),
        ("keys.place", [], "keys.place", "at least 1"),
        ("keys.nowhere", ["a"], "keys.nowhere", "known are"),
        ("privacy.neighbors", "event", "privacy.neighbors", "'replace_one'"),
        ("privacy.max_rows_per_unit", 0, "privacy.max_rows_per_unit", "at least 1"),
        ("queries.0.max_rows_per_unit", 4, "queries[0].max_rows_per_unit", "above the bound of 3"),
        ("privacy.unit", "meter", "privacy.unit", "'meter' is not there"),
        ("privacy.fixed", ["circuit"], "privacy.fixed[0]", "'circuit' is not there"),
        ("budget.epsilon", "0", "budget.epsilon", "above 0"),
        ("budget.delta", "1.0", "budget.delta", "below 1"),
        ("tables.rows.columns.wh", "float", "tables.rows.columns.wh", "'number'"),
        ("tables.rows.columns.#x", "string", "tables.rows.columns.#x: ", "without #"),
        ("release.id", "../x", "release.id", "lower-case letters"),
        ("queries", [], "queries", "or tabulations"),
        ("spec", "dp-release/spec/v2", "spec", "dp-release/spec/v1"),
    ],
)
def test_one_line_names_the_field_and_the_remedy(
    path: str, value: Any, field: str, says: str
) -> None:
    message = refusal(changed(path, value))
    assert message.startswith(f"{field}"), message
    assert says in message, message


def test_missing_fields_are_named() -> None:
    spec = plain()
    del spec["queries"][0]["of"]
    assert refusal(spec) == "queries[0].of: missing; add it (the column of the category)"
    spec = plain()
    del spec["budget"]
    assert refusal(spec) == "budget: missing; add it (what the release may cost)"


@pytest.mark.parametrize(
    ("place", "name", "other", "says"),
    [
        ("privacy", "neighbors", "neighbours", "it is called 'neighbors'"),
        ("release", "license", "licence", "it is called 'license'"),
        ("release", "curator", "currator", "did you mean 'curator'"),
    ],
)
def test_another_spelling_is_told_of_before_the_field_that_it_leaves_missing(
    place: str, name: str, other: str, says: str
) -> None:
    spec = plain()
    spec[place][other] = spec[place].pop(name)
    assert refusal(spec).startswith(f"{place}.{other}: unknown field; {says}")


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        ({"grid": {"low": 0, "high": 10, "step": 1, "scale": "1"}}, "grid"),
        ({"levels": {"low": 0, "high": 10, "count": 5}}, "bins"),
        ({"bins": {"low": 0, "high": 10, "count": 5}}, "bins"),
        ({"cyclic": 4}, "bins"),
    ],
)
def test_a_sum_with_a_domain_is_told_what_stands_in_its_place(
    domain: dict[str, Any], name: str
) -> None:
    base = plain(query("binned"))
    del base["queries"][0]["bins"]
    base["queries"][0]["domain"] = domain
    says = f"queries[0].domain: unknown field; write {name}: {{…}} without domain"
    assert refusal(base).startswith(says)


def test_repeated_names_are_refused() -> None:
    message = refusal(plain(query("mode"), query("count", name="the_mode")))
    assert message.startswith("queries[1].name: 'the_mode' is also the name of queries[0]")


def test_repeated_yaml_keys_are_refused_with_their_line() -> None:
    assert refusal(b"spec: a\nspec: b\n") == "line 2: 'spec' stands twice; keep one"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[1, 2]",
        b"a: [",
        b"\xff\xfe",
        b"- !!python/object:os.x {}",
        b"spec: !!int ''",
        b"spec: 0x" + b"f" * 5000,
    ],
)
def test_what_is_no_spec_is_refused(text: bytes) -> None:
    assert refusal(text)


def test_yaml_aliases_cannot_be_used_to_grow_a_spec() -> None:
    assert "aliases" in refusal(b"a: &a [x, x]\nb: [*a, *a]\n")


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("binned", {"clamp": None}, "a sum needs clamp"),
        ("binned", {"clamp": [5, 5]}, "lo below hi"),
        ("binned", {"clamp": [0, 2**31]}, "within"),
        ("binned", {"domain": {"cyclic": 4}}, "unknown field"),
        ("binned", {"bins": {"low": 0, "high": 5, "count": 6}}, "at most high - low"),
        ("count", {"domain": {"cyclic": 4}}, "a count needs domain"),
        ("count", {"domain": {"ordered": {"min": -1, "max": 4}}}, "min at least 0"),
        (
            "mode",
            {"domain": {"bins": {"low": 0, "high": 9, "count": 3}}},
            "a mode needs a domain",
        ),
    ],
)
def test_domains_have_to_suit_the_kind(kind: str, fields: dict[str, Any], says: str) -> None:
    assert says in refusal(plain(query(kind, **fields)))


def test_keys_are_written_as_the_columns_values(tmp_path: Path) -> None:
    spec = plain(query("mode", by=["day"]))
    spec["keys"] = {"day": [10, "2", 1]}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec), "utf-8")
    assert read_spec(tmp_path / "spec.yaml").keys == {"day": ("1", "2", "10")}
    for keys, says in (
        ([1, "1"], "twice"),
        (["x"], "not a integer"),
        ([1.5], "write text or a whole number or a date"),
    ):
        spec["keys"] = {"day": keys}
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec), "utf-8")
        with pytest.raises(SpecError, match=says):
            read_spec(tmp_path / "spec.yaml")


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *((ColumnType.INTEGER, key) for key in ("01", "1_0", " 7", "7 ", "+7", "-0", "٣", "7.0")),
        *((ColumnType.DATE, key) for key in ("20240131", "2024-W05-3", "2024-1-31", "2024-02-30")),
        (ColumnType.INTEGER, datetime.date(2024, 1, 31)),
        (ColumnType.DATE, 20240131),
    ],
)
def test_a_key_has_one_spelling(kind: ColumnType, key: str | int | datetime.date) -> None:
    """What a parser takes and prints otherwise would be another key in the release."""
    with pytest.raises(SpecError, match=r"keys.day\[0\]: '.*' is not a (integer|date) as columns"):
        key_text("keys.day[0]", key, kind)
    for huge in (16**5000, "9007199254740992"):
        with pytest.raises(SpecError, match="integer keys lie within"):
            key_text("keys.day[0]", huge, ColumnType.INTEGER)
    assert key_text("keys.day[0]", -7, ColumnType.INTEGER) == "-7"
    day = datetime.date(2024, 1, 31)
    assert key_text("", day, ColumnType.DATE) == key_text("", "2024-01-31", ColumnType.DATE)


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ([1, 10**6 + 1], "keys.day.range: 1000001 keys; at most 1000000"),
        ([-(2**60), 0], "keys.day.range: write"),
        ([0, 10**100], "keys.day.range: write"),
        ([2, 1], "keys.day.range: write"),
    ],
)
def test_a_range_of_keys_is_bounded(ends: list[int], says: str, tmp_path: Path) -> None:
    spec = plain()
    spec["keys"]["day"] = {"range": ends}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec), "utf-8")
    with pytest.raises(SpecError, match=f"^{re.escape(says)}"):
        read_spec(tmp_path / "spec.yaml")


@pytest.mark.parametrize("more", [0, 1])
def test_the_keys_of_all_columns_are_counted_before_they_are_built(more: int) -> None:
    spec = plain()
    columns = {f"k{number}": "integer" for number in range(4)}
    (table,) = spec["tables"].values()
    table["columns"] |= columns
    spec["keys"] = {name: {"range": [1, 500_000]} for name in columns} | {"place": ["a", "b"]}
    spec["keys"]["k0"] = {"range": [1, 2**21 - 1_500_002 + more]}
    text = yaml.safe_dump(spec).encode()
    if not more:
        assert parse_spec(text).keys
        return
    with pytest.raises(SpecError, match=r"^keys: more than 2,097,152 keys in all"):
        parse_spec(text)


@pytest.mark.parametrize("noise", ["on_answer", "on_statistic"])
@pytest.mark.parametrize("kind", ["mode", "per_unit"])
def test_only_a_count_has_more_than_a_million_answers(kind: str, noise: str) -> None:
    """What a unit can change is listed for others, answer by answer."""
    spec = Small([], [query("count", sensitivity="global", by=[])]).plain()
    wide = {"ordered": {"min": 0, "max": 2**52}}
    asked = spec["queries"][0]
    asked |= {"domain": wide, "mechanism": "integer"}
    assert parse_spec(yaml.safe_dump(spec).encode()).queries[0].answers.size == 2**52 + 1
    asked |= {"kind": kind, "of": "wh"}
    if kind == "mode":
        asked |= {"noise": noise, "mechanism": "best"}
    if kind == "per_unit":
        asked["by"] = ["unit"]
        spec["keys"]["unit"] = ["u1"]
        spec["privacy"] |= {"neighbors": "attribute", "attribute": "wh"}
    with pytest.raises(SpecError, match="more than 1,000,000 answers are for a count"):
        parse_spec(yaml.safe_dump(spec).encode())


@pytest.mark.parametrize("text", ["1" + ":1" * 100_000, "0b" + "1" * 5000, "1" * 4001])
def test_a_long_integer_is_not_converted(text: str) -> None:
    """Text in base 60, which YAML 1.1 has, takes time that grows with the square of its length."""
    with pytest.raises(SpecError, match=r"^line 2: an integer of \d+ characters; shorten it"):
        parse_spec(f"release: x\nnumber: {text}\n".encode())


def test_for_what_is_not_shown_no_similar_name_is_looked_for() -> None:
    spec = plain()
    (table,) = spec["tables"].values()
    table["columns"] |= {f"column_{number}": "integer" for number in range(1000)}
    spec["privacy"]["fixed"] = [f"kolumn_{number}" for number in range(1000)]
    with pytest.raises(SpecError, match="did you mean 'column_0'") as error:
        parse_spec(yaml.safe_dump(spec).encode())
    assert len(error.value.others) == 999
    assert "did you mean" in str(error.value.others[18])
    assert str(error.value.others[19]) == "privacy.fixed[20]: is not there"


def test_a_similar_name_is_looked_for_among_two_thousand_short_ones() -> None:
    names = [f"column_{number}" for number in range(2000)]
    assert nearest("kolumn_7", names) == "column_7"
    assert nearest("kolumn_7", [*names, "more"]) is None
    assert nearest("x" * 201, ["x" * 200]) is None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_a_spec_is_utf_8(encoding: str) -> None:
    spec = plain()
    spec["release"]["title"] = "größe"
    text = yaml.safe_dump(spec, allow_unicode=True)
    assert parse_spec(text.encode()).release.title == "größe"
    assert "UTF-8" in refusal(text.encode(encoding))


def test_key_files(tmp_path: Path) -> None:
    spec = plain()
    spec["keys"]["place"] = {"file": "places.csv"}
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(spec), "utf-8")
    told = r"keys.place.file: there is no places.csv; correct the path"
    with pytest.raises(SpecError, match=told):
        read_spec(path)
    (tmp_path / "places.csv").write_text("town\nb\n", "utf-8")
    with pytest.raises(SpecError, match="no column 'place'"):
        read_spec(path)
    (tmp_path / "places.csv").write_text("place\n", "utf-8")
    with pytest.raises(SpecError, match="empty"):
        read_spec(path)
    (tmp_path / "places.csv").write_text("place\nb\na\n", "utf-8")
    assert read_spec(path).keys["place"] == ("a", "b")


def charged(**fields: Any) -> tuple[int, Fraction, Fraction]:
    queries = [query("count", by=["place", "day"], guarantee=fields.pop("guarantee"))]
    small = Small([], queries, **fields)
    text = yaml.safe_dump(small.plain()).encode()
    from release.spec.load import SpecFile

    keys: dict[str, tuple[str, ...]] = {"place": ("a", "b"), "day": ("1", "2")}
    found = charges(SpecFile(parse_spec(text), text, Path(), keys))
    return found.queries[0].cells, found.epsilon, found.delta


@pytest.mark.parametrize(
    ("neighbors", "rows", "fixed", "cells"),
    [
        # four cells; a unit is in as many as it has rows, a replaced one leaves and enters
        ("add_remove", 1, [], 1),
        ("add_remove", 3, [], 3),
        ("add_remove", 9, [], 4),
        ("replace_one", 1, [], 2),
        ("replace_one", 3, [], 4),
        # the place is fixed: two cells at most, and none is entered that could not be left
        ("add_remove", 1, ["place"], 1),
        ("replace_one", 1, ["place"], 2),
        ("replace_one", 9, ["place"], 2),
        ("replace_one", 9, ["place", "day"], 1),
    ],
)
def test_the_charge_counts_the_cells_a_unit_can_touch(
    neighbors: str, rows: int, fixed: list[str], cells: int
) -> None:
    guarantee = {"definition": "approximate", "epsilon": "1/3", "delta": "0.01"}
    found = charged(neighbors=neighbors, max_rows_per_unit=rows, fixed=fixed, guarantee=guarantee)
    assert found == (cells, cells * Fraction(1, 3), cells * Fraction(1, 100))


def test_a_release_over_its_budget_is_refused_with_both_numbers() -> None:
    guarantee = {"definition": "pure", "epsilon": "1"}
    with pytest.raises(BudgetError, match=r"budget.epsilon: the queries charge 4, the cap is 3.9;"):
        charged(max_rows_per_unit=9, guarantee=guarantee, budget=("3.9", "0"))
    assert charged(max_rows_per_unit=9, guarantee=guarantee, budget=("4", "0"))[1] == 4


json_like = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=8), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(st.data())
def test_any_field_set_to_anything_gives_a_spec_or_one_line(data: st.DataObject) -> None:
    spec = plain(query("mode"), query("count"), query("binned"))
    at: Any = spec
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(json_like)
    try:
        parse_spec(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True).encode())
    except ReleaseError as error:
        assert str(error)


@pytest.mark.parametrize("name", ["ami.yaml", "persons.yaml"])
def test_the_example_specs_read(name: str) -> None:
    spec_file = read_spec(PROJECT / "data" / name)
    assert charges(spec_file).epsilon <= spec_file.spec.budget.epsilon
    assert datetime.date.today().year >= int(str(spec_file.spec.release.period)[:4])


def test_the_schemas_on_disk_are_those_of_the_models() -> None:
    on_disk = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.schema.json")}
    assert on_disk == schema_texts()


def tuple_spec(path: str = "queries.0.of", value: Any = None) -> dict[str, Any]:
    """A tuple of two parts, with one field set."""
    base = plain(
        joint("rows_here", "commonest"),
        part("rows_here", "count"),
        part("commonest", "mode"),
        query("count", name="whole", by=["day"]),
    )
    if value is not None:
        changed(path, value, base)
    return base


def test_a_tuple_looks_its_parts_up() -> None:
    spec = parse_spec(yaml.safe_dump(tuple_spec()).encode())
    assert [query.name for query in spec.released] == ["the_count", "whole"]
    jointly = spec.queries[0]
    assert isinstance(jointly, TupleQuery)
    assert [one.name for one in jointly.parts] == ["rows_here", "commonest"]


@pytest.mark.parametrize(
    ("path", "value", "field", "says"),
    [
        ("queries.0.of", ["rows_here"], "queries[0].of", "at least 2"),
        ("queries.0.of", ["rows_here", "rows"], "queries[0].of[1]", "did you mean 'rows_here'"),
        ("queries.0.of", ["rows_here", "rows_here"], "queries[0].of[1]", "stands twice"),
        ("queries.0.of", ["rows_here", "the_count"], "queries[0].of[1]", "is a tuple"),
        ("queries.0.of", ["commonest", "whole"], "queries[0].of[1]", "another by"),
        ("queries.0.domain", {"cyclic": 4}, "queries[0].domain", "unknown field"),
        ("queries.0.loss", {"table": ["0", "1"]}, "queries[0].loss.table", "2 costs for 24"),
        ("queries.0.max_rows_per_unit", 2, "queries[0].of[0]", "another max_rows_per_unit"),
        ("queries.0.sensitivity", {"declared": [1]}, "queries[0].sensitivity.declared", "lists of"),
        (
            "queries.0.sensitivity",
            {"declared": [[1, 1]]},
            "queries[0].sensitivity.declared",
            "0, 1; 0, 2",
        ),
        ("queries.1.loss", "squared", "queries[1].loss", "remove it"),
        ("queries.1.sensitivity", "global", "queries[1].sensitivity", "remove it"),
        ("queries.3.guarantee", None, "queries[3].guarantee", "add it (the claimed guarantee"),
        ("queries.2.domain", {"cyclic": 10**6}, "queries[0].of", "6000000 joint answers"),
        ("queries.1.name", "rows", "queries[0].of[0]", "did you mean 'rows'"),
        ("privacy.replacement", "any", "privacy.replacement", "'observed' or 'domain'"),
    ],
)
def test_one_line_names_what_is_wrong_with_a_tuple(
    path: str, value: Any, field: str, says: str
) -> None:
    base = tuple_spec(path, value)
    if value is None:
        del base["queries"][3]["guarantee"]
    message = refusal(base)
    assert message.startswith(f"{field}: "), message
    assert says in message


def test_a_part_is_not_called_as_the_joint_code_is() -> None:
    base = plain(joint("code", "commonest"), part("code", "count"), part("commonest", "mode"))
    assert "column of the joint code" in refusal(base)
    base = plain(joint("one", "two"), part("one", "count"), part("two", "mode"))
    base["tables"]["rows"]["columns"]["answer_one"] = "string"
    base["keys"]["answer_one"] = ["x"]
    for one in base["queries"]:
        one["by"] = ["answer_one"]
    assert "column of the released table" in refusal(base)


@pytest.mark.parametrize("field", ["of", "weight"])
def test_a_fixed_column_is_no_answer_where_units_are_copied(field: str) -> None:
    """The copy takes the column over, so its profile is not that of the unit it is a copy of."""
    base = plain(query("mode", of="kind", weight="wh"))
    base["privacy"]["fixed"] = ["kind" if field == "of" else "wh"]
    assert f"queries[0].{field}: " in refusal(base)
    base = plain(joint("a", "b"), part("a", "mode", weight="wh"), part("b", "count"))
    base["privacy"]["fixed"] = ["kind" if field == "of" else "wh"]
    assert f"queries[1].{field}: " in refusal(base)
    for change in ({"replacement": "domain"}, {}):
        base["privacy"] |= change
        base["queries"][0]["sensitivity"] = "empirical" if change else "global"
        assert parse_spec(yaml.safe_dump(base).encode())


def test_the_path_of_a_wrong_vector_names_fields_only() -> None:
    message = refusal(tuple_spec("queries.0.sensitivity", {"declared": [[1, "x"]]}))
    assert message.startswith("queries[0].sensitivity.declared[0][1]: ")


def test_replacement_by_the_domain_goes_with_neither_attribute_nor_statement() -> None:
    spec = changed("privacy.replacement", "domain")
    assert "leave replacement out" in refusal(
        changed("privacy.attribute", "kind", changed("privacy.neighbors", "attribute", spec))
    )
    statement = query("count") | {"kind": "sql", "sql": "SELECT 1 AS answer"}
    for privacy in ({"replacement": "domain"}, {"neighbors": "attribute", "attribute": "kind"}):
        base = plain(statement)
        base["privacy"] |= privacy
        assert "what is observed only" in refusal(base)


@pytest.mark.parametrize("endless", ["/dev/zero", "keys.csv"])
def test_a_key_file_without_end_is_refused(endless: str, tmp_path: Path) -> None:
    path = Small([], [query("count", sensitivity="global")]).write(tmp_path)
    plain = yaml.safe_load(path.read_text("utf-8"))
    plain["keys"]["place"] = {"file": endless}
    path.write_text(yaml.safe_dump(plain), "utf-8")
    with (tmp_path / "keys.csv").open("wb") as file:
        file.write(b"place\na\n")
        # Without blocks on the disk, and longer than any list of keys.
        file.truncate(2**40)
    with pytest.raises(SpecError, match=r"^keys\.place\.file: .* has more than 67108864 bytes; "):
        read_spec(path)
