"""The verifier in one file reads a spec: each rule of section 3, kept and broken by the least."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from release.verification import standalone
from tests.verification.standalone.alone import (
    COLUMNS,
    GLOBAL,
    PURE,
    Plain,
    asked,
    plain_spec,
    query_of,
    refused,
    spec_of,
    unpublished,
)

ATTRIBUTE: Plain = {"neighbors": "attribute", "attribute": "kind"}
LINE: Plain = {"ordered": {"min": 0, "max": 9}}
EMPIRICAL: Plain = {"sensitivity": "empirical"}


@pytest.mark.parametrize(
    ("plain", "size", "topology"),
    [
        ({"cyclic": 2}, 2, "cyclic"),
        ({"ordered": {"min": -1, "max": 0}}, 2, "ordered"),
        ({"ordered": {"min": 3, "max": 9}}, 7, "ordered"),
        ({"integers": {}}, 9_007_199_254_740_991, "ordered"),
        ({"nominal": ["x", "y", "z"]}, 3, "nominal"),
        ({"bins": {"low": -5, "high": 5, "count": 10}}, 10, "ordered"),
        ({"grid": {"low": -2, "high": 8, "step": 2, "scale": "1"}}, 6, "ordered"),
        ({"grid": {"low": 0, "high": 1, "step": 1, "scale": "1"}}, 2, "ordered"),
        ({"grid": {"low": 1, "high": 7, "step": 3, "scale": "1"}}, 3, "ordered"),
    ],
)
def test_a_domain_has_so_many_answers(plain: Plain, size: int, topology: str) -> None:
    assert standalone.domain_of(plain) == (size, topology)


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ({}, "domain"),
        ({"cyclic": 1}, "domain"),
        ({"cyclic": 2.5}, "domain"),
        ({"ordered": {"min": 3, "max": 3}}, "domain"),
        ({"nominal": ["x", "x"]}, "domain"),
        ({"bins": {"low": -5, "high": 5, "count": 11}}, "bins"),
        ({"bins": {"low": 0, "high": 1, "count": 1}}, "domain"),
        ({"grid": {"low": 0, "high": 9, "step": 2, "scale": "1"}}, "grid"),
        ({"grid": {"low": 0, "high": 9, "step": 0, "scale": "1"}}, "grid"),
        ({"grid": {"low": 0, "high": 8, "step": -2, "scale": "1"}}, "grid"),
        ({"grid": {"low": 0, "high": 0, "step": 2, "scale": "1"}}, "domain"),
    ],
)
def test_what_is_no_domain_is_refused(plain: Plain, says: str) -> None:
    with refused(f"spec.json: {says}: "):
        standalone.domain_of(plain)


def test_a_key_set_is_a_list_or_a_range() -> None:
    assert standalone.members([3, "x"]) == ["3", "x"]
    assert standalone.members({"range": [-1, 1]}) == ["-1", "0", "1"]
    assert standalone.members({"range": [7, 7]}) == ["7"]
    assert len(standalone.members({"range": [5, 5 + 2**20 - 1]})) == 2**20
    for first, last in ((2, 1), (5, 5 + 2**20)):
        with refused("spec.json: range: "):
            standalone.members({"range": [first, last]})
    with refused("spec.json: a list: "):
        standalone.members([1, "1"])


FACTS: list[tuple[Plain, Plain, Plain]] = [
    (
        asked("count"),
        {},
        {
            **{"group": [10], "is_line": True, "loss": "error_rate", "source": "global"},
            **{"on_statistic": False, "per_unit": False, "most_rows": 3, "mechanism": "best"},
            **{"is_composed": False, "is_published": True, "least": None, "by": []},
            **{"kind": "count", "name": "own", "domain": LINE, "is_table": False},
        },
    ),
    (asked("count", max_rows_per_unit=2, loss="squared"), {}, {"most_rows": 2, "loss": "squared"}),
    (asked("count", max_rows_per_unit=3), {}, {"most_rows": 3}),
    (asked("count", loss={"table": [0, 1]}), {}, {"loss": "table"}),
    (asked("mode"), {}, {"on_statistic": True, "is_line": False, "topologies": ["cyclic"]}),
    (asked("mode", noise="on_answer"), {}, {"on_statistic": False}),
    (asked("mode", **EMPIRICAL), {}, {"on_statistic": False, "source": "empirical"}),
    (asked("mode", sensitivity={"declared": [1, 2]}), {}, {"on_statistic": False, "rows": 3}),
    (asked("sum"), {}, {"on_statistic": True, "group": [6], "is_line": True}),
    (asked("top"), {}, {"on_statistic": True}),
    (asked("quantiles"), {}, {"on_statistic": True, "group": [9]}),
    (
        asked("sum", of="kwh", grid={"low": 0, "high": 4, "step": 2, "scale": "1/2"}),
        {},
        {"domain": {"grid": {"low": 0, "high": 4, "step": 2, "scale": "0.5"}}, "group": [3]},
    ),
    (
        asked("count", share="1"),
        {},
        {"is_composed": True, "is_published": True, "loss": "error_rate"},
    ),
    (
        asked("count", target=" absolute<= 5"),
        {},
        {"is_composed": True, "is_published": True, "loss": "absolute"},
    ),
    (
        asked("count", target="squared <= 9", guarantee=PURE | {"least": "epsilon"}),
        {},
        {"is_composed": False, "is_published": True, "loss": "squared", "least": "epsilon"},
    ),
    (
        asked("per_unit", by=["unit"], **EMPIRICAL),
        ATTRIBUTE,
        {"per_unit": True, "most_rows": 1, "on_statistic": False},
    ),
]


@pytest.mark.parametrize(("plain", "privacy", "facts"), FACTS)
def test_what_a_query_is_follows_from_its_fields(
    plain: Plain, privacy: Plain, facts: Plain
) -> None:
    without = {"bins"} if "grid" in plain else {"guarantee"} if facts.get("is_composed") else set()
    plain = {name: each for name, each in plain.items() if name not in without}
    own = plain_spec(plain, **privacy)
    own["keys"]["unit"] = ["u"]
    query = standalone.Spec(own).query("own")
    for name, value in facts.items():
        assert getattr(query, name) == value, name


def test_a_tuple_has_the_domains_of_its_parts() -> None:
    parts = [unpublished("count", "a"), unpublished("mode", "b")]
    query = query_of(asked("tuple", of=["a", "b"]), *parts)
    assert (query.group, query.topologies) == ([10, 4], ["ordered", "cyclic"])
    assert query.domain == {"tuple": [LINE, {"cyclic": 4}]}
    assert [part.name for part in query.parts] == ["a", "b"]
    assert (query.is_line, query.per_unit, query.is_published) == (False, False, True)
    assert not any(part.is_published or part.on_statistic for part in query.parts)


Case = tuple[list[Plain], Plain, str]
"""Queries, fields of ``privacy``, and what the refusal names; nothing if there is none."""

SMALL: Plain = {"domain": {"ordered": {"min": 0, "max": 3}}}
PARTS = [unpublished("count", name, **SMALL) for name in "abcdefgh"]
DECLARED: Plain = {"sensitivity": {"declared": [[1, 0], [0, 1]]}}
BOTH = asked("tuple", of=["a", "b"])
COUNTED = asked("count", guarantee=PURE | {"least": "epsilon"})
KINDS: list[Case] = [
    ([asked("median", clamp=[0, 9])], {}, ""),
    ([{"name": "own", "kind": "noisy", "table": "rows", "by": [], "of": "wh"}], {}, "own.kind"),
    ([asked("count", by=["place", "day"])], {}, ""),
    ([asked("count", by=["place", "place"])], {}, "own.by"),
    ([asked("count", by=["born"])], {}, ""),
    ([asked("count", by=["sort"])], {}, "own.by"),
    ([asked("count", by=["kwh"])], {}, "own.by"),
    ([asked("count", by=["ok"])], {}, "own.by"),
    ([asked("count", by=["unit"])], {}, "own.by"),
    ([asked("count", by=["other"])], {}, "own.by"),
    ([asked("count", table="others")], {}, ""),
    ([asked("count", table="none")], {}, "own.by"),
    ([asked("count", max_rows_per_unit=4)], {}, "max_rows_per_unit: found 4"),
    ([asked("count", of="unit")], {}, ""),
    ([asked("count", of="wh")], {}, "own.of: found wh"),
    ([asked("sum", of="kwh")], {}, "own.of"),
    ([asked("sum", of="place")], {}, "own.of"),
    ([asked("mode", of="place")], {}, "own.of"),
    ([asked("mode", of="place", domain={"nominal": ["x", "y"]})], {}, ""),
    ([asked("mode", domain={"nominal": ["x", "y"]})], {}, "own.of"),
    ([asked("mode", weight="wh", clamp=[0, 1])], {}, ""),
    ([asked("mode", weight="kwh", clamp=[0, 1])], {}, "own.of"),
    ([asked("mode", weight="wh", clamp=[0, 1], count="rows")], {}, "own.of"),
    ([asked("mode", count="rows")], {}, ""),
    ([asked("quantiles", of="kwh")], {}, "own.of"),
    ([asked("quantiles", of="place")], {}, "own.of"),
    ([asked("top", sensitivity="empirical")], {}, "own.sensitivity"),
    ([asked("quantiles", sensitivity={"declared": [1]})], {}, "own.sensitivity"),
    ([asked("mode", noise="on_statistic", **EMPIRICAL)], {}, "own.sensitivity"),
    ([{k: v for k, v in asked("count").items() if k != "sensitivity"}], {}, "own.sensitivity"),
    ([asked("per_unit", by=["unit"])], ATTRIBUTE, ""),
    ([asked("per_unit", by=["unit"], max_rows_per_unit=1)], ATTRIBUTE, ""),
    ([asked("per_unit", by=["unit"], max_rows_per_unit=2)], ATTRIBUTE, "own.by"),
    ([asked("per_unit", by=["unit"])], {}, "own.by"),
    ([asked("per_unit", by=["place"])], ATTRIBUTE, "own.by"),
    ([asked("per_unit", by=["unit", "place"])], ATTRIBUTE, "own.by"),
    (
        [
            asked("tuple", of=["a", "b"], by=["unit"]),
            unpublished("per_unit", "a", by=["unit"]),
            unpublished("per_unit", "b", by=["unit"]),
        ],
        ATTRIBUTE,
        "",
    ),
    (
        [
            asked("tuple", of=["a", "b"], by=["unit"]),
            unpublished("per_unit", "a", by=["unit"]),
            unpublished("mode", "b", by=["unit"]),
        ],
        ATTRIBUTE,
        "b.by",
    ),
    (
        [
            asked("tuple", of=["a", "b"]),
            unpublished("per_unit", "a", by=["unit"]),
            unpublished("mode", "b"),
        ],
        ATTRIBUTE,
        "own.by",
    ),
    (
        [
            asked("tuple", of=["a", "b"], by=["unit"]),
            unpublished("per_unit", "a", by=["unit"]),
            unpublished("mode", "b"),
        ],
        ATTRIBUTE,
        "own.by",
    ),
    ([asked("count", k=2)], {}, "own: found"),
    ([BOTH, *PARTS[:2]], {}, ""),
    ([asked("tuple", of=list("abcdefgh")), *PARTS], {}, ""),
    ([asked("tuple", of=list("abcdefghi")), *PARTS, unpublished("count", "i")], {}, "own.of"),
    ([asked("tuple", of=["a"]), PARTS[0]], {}, "own.of"),
    ([asked("tuple", of=["a", "a", "b"]), *PARTS[:2]], {}, "own.of"),
    ([BOTH, PARTS[0], unpublished("count", "b", by=["place"])], {}, "own: b: found by"),
    ([BOTH, PARTS[0], unpublished("count", "b", max_rows_per_unit=1)], {}, "own: b: found max_"),
    ([BOTH, PARTS[0], unpublished("count", "b", table="others")], {}, "own: b: found table"),
    ([BOTH, PARTS[0], asked("count", name="b")], {}, ""),
    ([BOTH, PARTS[0], asked("top", name="b")], {}, "own.of"),
    ([BOTH, PARTS[0], asked("quantiles", name="b")], {}, "own.of"),
    ([BOTH, PARTS[0], asked("sql", name="b")], {}, "own.of"),
    ([BOTH, PARTS[0], asked("tuple", name="b", of=["a", "c"]), PARTS[2]], {}, "domain: found"),
    ([BOTH, PARTS[0]], {}, "of: found b"),
    ([BOTH, *PARTS[:3]], {}, "c: found"),
    ([BOTH, PARTS[0], PARTS[1] | GLOBAL], {}, "b: found {'sensitivity'}"),
    ([BOTH, PARTS[0], PARTS[1] | {"loss": "absolute"}], {}, "b: found {'loss'}"),
    ([BOTH, PARTS[0], PARTS[1] | {"mechanism": "best"}], {}, "b: found {'mechanism'}"),
    ([asked("count", share="1")], {}, "own: found ['guarantee', 'share']"),
    ([asked("count", target="squared <= 9")], {}, "own: found ['guarantee', 'target']"),
    ([COUNTED], {}, "own: found ['guarantee']"),
    ([COUNTED | {"target": "squared <= 9"}], {}, ""),
    ([COUNTED | {"target": "squared <= 9", "share": "1"}], {}, "own: found ['guarantee', 'share"),
    ([asked("sql")], {}, ""),
    ([asked("sql", sensitivity="global")], {}, "own.sensitivity"),
    ([asked("sql")], {"fixed": ["place"]}, "own.sensitivity"),
    ([asked("sql")], {"replacement": "domain"}, "own.sensitivity"),
    ([asked("sql")], {"replacement": "observed"}, ""),
    ([asked("sql")], ATTRIBUTE, "own.sensitivity"),
    ([asked("mode", **EMPIRICAL)], {"fixed": ["place"]}, ""),
    ([asked("mode", **EMPIRICAL)], {"fixed": ["kind"]}, "own.of"),
    ([asked("mode")], {"fixed": ["kind"]}, ""),
    ([asked("mode", **EMPIRICAL)], {"fixed": ["kind"], "replacement": "domain"}, ""),
    ([asked("mode", **EMPIRICAL)], ATTRIBUTE | {"attribute": "wh", "fixed": ["kind"]}, ""),
    (
        [asked("mode", weight="wh", clamp=[0, 1], **EMPIRICAL)],
        {"fixed": ["wh"]},
        "own.of",
    ),
    ([BOTH | EMPIRICAL, PARTS[0], unpublished("mode", "b")], {"fixed": ["place"]}, ""),
    ([BOTH | EMPIRICAL, PARTS[0], unpublished("mode", "b")], {"fixed": ["kind"]}, "own.of"),
    ([BOTH | DECLARED, PARTS[0], unpublished("mode", "b")], {"fixed": ["kind"]}, ""),
]


def checked(queries: list[Plain], privacy: Plain, change: Callable[[Plain], object]) -> None:
    plain = plain_spec(*queries, **privacy)
    plain["keys"] |= {name: ["1", "2"] for name in ("born", "kwh", "ok", "unit", "other")}
    plain["tables"]["others"] = {"path": "o", "columns": {"unit": "string", "other": "string"}}
    change(plain)
    standalone.Spec(plain)


@pytest.mark.parametrize(("queries", "privacy", "says"), KINDS)
def test_queries_keep_the_rules_of_their_kind(
    queries: list[Plain], privacy: Plain, says: str
) -> None:
    if not says:
        checked(queries, privacy, lambda _: None)
        return
    with refused("spec.json: ", says):
        checked(queries, privacy, lambda _: None)


def test_a_share_is_of_no_instance_specific_query() -> None:
    plain = asked("count", share="1")
    del plain["guarantee"]
    spec_of(plain)
    with refused("spec.json: own.sensitivity"):
        spec_of(plain | EMPIRICAL)


ANY = {"best", "modular"}
NOMINAL = {"geometric_modular", "gaussian_modular", "randomised_response", "data_independent"}
ORDERED = {"integer", "geometric_clamped", "gaussian_clamped", "gumbel_clamped", "sadeghi_count"}
ORDERED |= {"geng_zero_epsilon", "qin_wasserstein", "qin_relaxed"}
ROWS = {"channel", "geometric_truncated", "exponential"}


@pytest.mark.parametrize(
    ("fields", "fitting"),
    [
        ({"domain": {"cyclic": 4}, "kind": "mode", "of": "kind"}, ANY | NOMINAL),
        ({"domain": LINE}, ANY | NOMINAL | ORDERED | ROWS),
        ({"domain": LINE, "loss": "noise_squared"}, ANY | NOMINAL),
        ({"domain": LINE, "loss": "absolute"}, ANY | NOMINAL | ORDERED | ROWS),
        ({"domain": {"ordered": {"min": 1, "max": 1000}}}, ANY | NOMINAL | ORDERED | ROWS),
        ({"domain": {"ordered": {"min": 0, "max": 1000}}}, ANY | NOMINAL | ORDERED),
        ({"kind": "tuple", "of": ["a", "b"]}, ANY),
    ],
)
def test_a_mechanism_fits_its_domain_and_loss(fields: Plain, fitting: set[str]) -> None:
    plain = asked("count", sensitivity="empirical") | fields
    if plain["kind"] == "tuple":
        del plain["domain"]
    parts = PARTS[:2] if plain["kind"] == "tuple" else []
    for mechanism in ANY | NOMINAL | ORDERED | ROWS | {"permute_and_flip", "none"}:
        if mechanism in fitting:
            spec_of(plain | {"mechanism": mechanism}, *parts)
        else:
            with refused(f"own.mechanism: found {mechanism}"):
                spec_of(plain | {"mechanism": mechanism}, *parts)
    spec_of(asked("mode", mechanism="permute_and_flip"))


@pytest.mark.parametrize(
    ("domain", "fallback", "definition"),
    [
        ({"ordered": {"min": 1, "max": 64}}, "approximate", "probabilistic"),
        ({"ordered": {"min": 0, "max": 64}}, "approximate", "approximate"),
        ({"ordered": {"min": 0, "max": 64}}, None, "probabilistic"),
        ({"cyclic": 65}, "approximate", "probabilistic"),
    ],
)
def test_a_domain_out_of_reach_falls_back(
    domain: Plain, fallback: str | None, definition: str
) -> None:
    stated = {"definition": "probabilistic", "epsilon": "1/2", "delta": "0.1"}
    stated |= {} if fallback is None else {"fallback": fallback}
    plain = asked("mode", domain=domain, noise="on_answer", guarantee=stated)
    claimed = query_of(plain).claimed({})
    assert claimed == (definition, Fraction(1, 2), Fraction(1, 10))


def test_a_small_part_in_order_is_out_of_reach_in_a_tuple() -> None:
    stated = {"definition": "probabilistic", "epsilon": "1", "fallback": "approximate"}
    both = asked("tuple", of=["a", "b"], guarantee=stated)
    assert query_of(both, *PARTS[:2]).claimed({}) == ("approximate", Fraction(1), Fraction(0))
    rings = [unpublished("mode", name) for name in "ab"]
    assert query_of(both, *rings).claimed({}) == ("probabilistic", Fraction(1), Fraction(0))


def test_what_is_shared_or_least_claims_what_the_record_states() -> None:
    entry = {"definition": "approximate", "epsilon": "0.25", "delta": "1/8"}
    plain = asked("count", share="1")
    del plain["guarantee"]
    assert query_of(plain).claimed(entry) == ("approximate", Fraction(1, 4), Fraction(1, 8))
    most = {"definition": "approximate", "epsilon": "0.25", "delta": "0.5", "least": "delta"}
    least = query_of(asked("count", target="squared <= 9", guarantee=most))
    assert least.claimed(entry | {"epsilon": "9"}) == (
        "approximate",
        Fraction(1, 4),
        Fraction(1, 8),
    )
    assert least.claimed(entry | {"delta": "0.5"})[2] == Fraction(1, 2)
    with refused("release.json: own.delta: found 51/100"):
        least.claimed(entry | {"delta": "0.51"})


def set_in(place: str, value: Any) -> Callable[[Plain], None]:
    def change(plain: Plain) -> None:
        *path, last = place.split(".")
        for name in path:
            plain = plain.setdefault(name, {})
        plain[last] = value

    return change


def joins(**others: Any) -> Callable[[Plain], None]:
    def change(plain: Plain) -> None:
        plain["tables"]["rows"]["join"] = {"table": "others"}
        plain["tables"]["others"] |= others

    return change


DERIVED = {"band": {"type": "integer", "sql": "kind // 2"}}
WHOLE: list[tuple[Callable[[Plain], None], str]] = [
    (joins(), ""),
    (joins(derive={}), ""),
    (joins(derive=DERIVED), "tables.rows.join: found others"),
    (joins(join={"table": "rows"}), "tables.rows.join: found others"),
    (joins(columns={"unit": "string", "KIND": "integer"}), "tables.rows: found"),
    (set_in("tables.rows.join", {"table": "rows"}), "tables.rows.join: found rows"),
    (set_in("tables.rows.derive", DERIVED), ""),
    (set_in("tables.rows.derive", {"Kind": DERIVED["band"]}), "tables.rows: found"),
    (set_in("tables.others.columns.unit", "integer"), "privacy.unit"),
    (set_in("tables.others.columns", {"other": "string"}), "privacy.unit"),
    (set_in("privacy.unit", "born"), "privacy.unit"),
    (set_in("privacy.fixed", ["other"]), ""),
    (set_in("privacy.fixed", ["none"]), "privacy.fixed, keys: found"),
    (set_in("keys.none", ["1"]), "privacy.fixed, keys: found"),
    (set_in("privacy.attribute", "kind"), "privacy.attribute: found kind"),
    (set_in("privacy.neighbors", "attribute"), "privacy.attribute: found None"),
    (lambda plain: plain["privacy"].update(ATTRIBUTE), ""),
    (lambda plain: plain["privacy"].update(ATTRIBUTE, attribute="unit"), "privacy.attribute"),
    (lambda plain: plain["privacy"].update(ATTRIBUTE, attribute="none"), "privacy.attribute"),
    (lambda plain: plain["privacy"].update(ATTRIBUTE, fixed=["kind"]), "privacy.attribute"),
    (lambda plain: plain["privacy"].update(ATTRIBUTE, fixed=["wh"]), ""),
    (
        lambda plain: plain["privacy"].update(ATTRIBUTE, replacement="domain"),
        "privacy.attribute: found kind",
    ),
    (lambda plain: plain.update(queries=[]), "names: found []"),
    (lambda plain: plain["queries"].append(plain["queries"][0]), "names: found ['own', 'own']"),
    (set_in("privacy.fixed", sorted({*COLUMNS, "other"})), ""),
    (set_in("nonsense", 1), "fields"),
    (set_in("budget.composition", "pld"), ""),
    (set_in("budget.composition", "basic"), ""),
    (set_in("acceptance", ["own: p95 <= 3"]), ""),
    (set_in("acceptance", [" own : p95 <= 3"]), ""),
]


@pytest.mark.parametrize("place", range(len(WHOLE)))
def test_the_tables_and_privacy_of_a_spec_keep_their_rules(place: int) -> None:
    change, says = WHOLE[place]
    if not says:
        checked([asked("count")], {}, change)
        return
    with refused("spec.json: ", says):
        checked([asked("count")], {}, change)


def test_a_derived_attribute_is_refused() -> None:
    def change(plain: Plain) -> None:
        plain["tables"]["rows"]["derive"] = DERIVED
        plain["privacy"].update(ATTRIBUTE, attribute="band")

    with refused("spec.json: privacy.attribute: found band"):
        checked([asked("count")], {}, change)


def test_no_error_of_what_is_seen_is_accepted() -> None:
    plain = plain_spec(asked("count", **EMPIRICAL))
    plain["acceptance"] = ["own : p95 <= 3"]
    with refused("spec.json: acceptance: found own : p95 <= 3"):
        standalone.Spec(plain)


@pytest.mark.parametrize(
    ("fields", "stated", "ways", "is_exact"),
    [
        ({"neighbors": "add_remove"}, None, 1, False),
        ({"neighbors": "replace_one"}, "basic", 2, False),
        (ATTRIBUTE, "pld", 2, True),
    ],
)
def test_what_a_spec_is_follows_from_its_fields(
    fields: Plain, stated: str | None, ways: int, is_exact: bool
) -> None:
    plain = plain_spec(asked("mode", noise="on_answer"), **fields)
    plain["budget"]["composition"] = stated
    plain["keys"]["sort"] = {"file": "sort.csv"}
    spec = standalone.Spec(plain)
    assert (spec.ways, spec.composes_exactly, spec.is_empirical) == (ways, is_exact, False)
    assert spec.in_files == {"sort"}
    assert spec_of(asked("mode", **EMPIRICAL)).is_empirical


def test_shares_compose_exactly() -> None:
    plain = plain_spec(asked("count", share="1"))
    del plain["queries"][0]["guarantee"]
    assert standalone.Spec(plain).composes_exactly
    plain["budget"]["composition"] = "basic"
    with refused("spec.json: budget: found basic"):
        standalone.Spec(plain)
