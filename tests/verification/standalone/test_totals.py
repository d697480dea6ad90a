"""The verifier in one file: totals, scopes, expressions and audit records of a release."""

from __future__ import annotations

import base64
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.records.keys.files import FileSigner
from release.verification import standalone
from tests.sample import FOLDER
from tests.verification.standalone.alone import Plain, asked, plain_spec, refused

RECORD, PARTS, NOTHING = "release.json", 10**28, Fraction(0)
QUARTER = Fraction(1, 4)
SIGNER = FileSigner(Ed25519PrivateKey.from_private_bytes(b"\5" * 32))
KEY = standalone.read_key(str(SIGNER.public("example.org/dp")))


def charged(
    name: str, epsilon: str, delta: str = "0", source: str = "global", **fields: Any
) -> standalone.Charged:
    """A query that is charged so much, and what its record says of it."""
    query = SimpleNamespace(name=name, source=source, is_table=False, **fields)
    charge = Fraction(epsilon), Fraction(delta)
    entry: Plain = {"definition": "pure" if delta == "0" else "approximate", "parallel": False}
    entry |= {"charge": {"epsilon": epsilon, "delta": delta}}
    own = cast("standalone.Query", query)
    return standalone.Charged(own, entry, None, 2, Fraction(delta), charge, [])


def totalled(
    epsilon: str, delta: str = "0", *, definition: str = "pure", rule: str = "basic-v1"
) -> standalone.Release:
    """A release with these figures, and a budget of 3 and 1/4."""
    release = object.__new__(standalone.Release)
    figures = {"epsilon": epsilon, "delta": delta}
    release.record = {"composition": {"rule": rule} | figures}
    release.record["guarantee"] = {"definition": definition} | figures
    release.figures, release.missing, release.proved = figures, [], []
    plain = plain_spec(asked("count"))
    plain["budget"] |= {"epsilon": "3", "delta": "1/4"}
    plain["budget"]["composition"] = "pld" if rule == "pld-v1" else "basic"
    release.spec = standalone.Spec(plain)
    return release


BOTH = [charged("a", "1"), charged("b", "0.5", "0.125")]


def test_charges_add_up_to_the_total() -> None:
    release = totalled("1.5", "0.125", definition="approximate")
    release.check_total(BOTH, None)
    assert release.proved == ["the charges follow from the spec, and their total keeps its cap"]
    totalled("1", definition="pure").check_total(BOTH[:1], None)
    totalled("3", "0.25", definition="approximate").check_total([charged("a", "3", "0.25")], None)


@pytest.mark.parametrize(
    ("epsilon", "delta", "fields", "says"),
    [
        ("1.5", "0.1", {}, "composition: found"),
        ("1.4", "0.125", {}, "composition: found"),
        ("1.6", "0.125", {}, "composition: found"),
        ("1.5", "0.125", {"definition": "pure"}, "guarantee.definition"),
        ("1.5", "0.125", {"definition": "probabilistic"}, "guarantee.definition"),
        ("1.5", "0.125", {"rule": "pld-v1"}, "composition.rule: found 'pld-v1'"),
        ("3.01", "0.125", {}, "charges: found ['3.01', '0.125'], expected at most ['3', '0.25']"),
        ("1.5", "0.26", {}, "charges"),
    ],
)
def test_another_total_is_refused(epsilon: str, delta: str, fields: Plain, says: str) -> None:
    release = totalled(epsilon, delta, **({"definition": "approximate"} | fields))
    release.spec.composes_exactly = False
    with refused(f"{RECORD}: {says}"):
        release.check_total(BOTH, None)


def test_a_delta_is_below_one_whatever_the_cap() -> None:
    release = totalled("1", "1", definition="approximate")
    release.spec.plain["budget"]["delta"] = "1"
    with refused(f"{RECORD}: charges"):
        release.check_total([charged("a", "1", "1")], None)


def test_a_charge_and_its_cells_are_those_of_the_record() -> None:
    for field, value in (("charge", {"epsilon": "1.0", "delta": "0"}), ("parallel", True)):
        own = charged("a", "1")
        own.entry[field] = value
        with refused(f"{RECORD}: a.{field}"):
            totalled("1").check_total([own], None)
    alone = charged("a", "1")._replace(touched=1)
    alone.entry["parallel"] = True
    totalled("1").check_total([alone], None)
    table = charged("a", "1")
    table.entry["parallel"] = True
    table.query.is_table = True
    totalled("1").check_total([table], None)


@pytest.mark.parametrize(
    ("definitions", "kind"),
    [
        (["pure", "probabilistic"], "probabilistic"),
        (["probabilistic", "approximate"], "approximate"),
        (["pure", "pure"], "pure"),
    ],
)
def test_the_definition_of_a_release_is_the_weakest_that_is_used(
    definitions: list[str], kind: str
) -> None:
    own = [charged(name, "1", "0.01") for name in "ab"]
    for each, definition in zip(own, definitions, strict=True):
        each.entry["definition"] = definition
    total = totalled("2", "0.02", definition=kind)
    if kind == "pure":
        own = [each._replace(delta=NOTHING) for each in own]
    total.check_total(own, None)
    unused = [own[0]._replace(delta=NOTHING), own[1]]
    unused[0].entry["definition"] = "approximate"
    if kind == "probabilistic":
        totalled("2", "0.02", definition=kind).check_total(unused, None)


def exact(epsilon: str, delta: str = "0.25", **fields: Any) -> standalone.Release:
    fields = {"definition": "approximate", "rule": "pld-v1"} | fields
    return totalled(epsilon, delta, **fields)


WHOLE = standalone.all_of([(standalone.pure_values(QUARTER, NOTHING, QUARTER), 20)], QUARTER)
MANY = [charged(f"q{n}", "0.25") for n in range(20)]
"""Twenty times ε = 1/4: their sum is 5, and at δ = 1/4 no more than 1."""


def test_an_exact_total_is_read_from_all_profiles() -> None:
    least = next(n for n in range(99) if WHOLE.delta_at(n * QUARTER) <= PARTS / 4)
    right, wrong = (standalone.exact(n * QUARTER) for n in (least, least - 1))
    release = exact(right)
    release.check_total(MANY, WHOLE)
    assert release.proved
    release = exact(wrong)
    with refused(f"{RECORD}: composition: found δ 0.", "expected 0.25"):
        release.check_total(MANY, WHOLE)
    infinite = standalone.Losses(QUARTER, 0, [PARTS], PARTS // 4)
    exact(right).check_total(MANY, infinite)
    with refused(f"{RECORD}: composition: found δ 0.25"):
        exact(right).check_total(MANY, infinite._replace(infinite=PARTS // 4 + 1))
    release = exact(right)
    release.check_total(MANY, None)
    assert release.missing == ["the total: a profile that is not recomputed here"]
    assert not release.proved
    with refused(f"{RECORD}: composition.delta"):
        exact(right, "0.2").check_total(MANY, WHOLE)
    with refused(f"{RECORD}: composition: found "):
        basic = exact(right, rule="basic-v1", definition="pure")
        basic.check_total(MANY, WHOLE)


def test_what_is_seen_is_charged_beside_the_exact_total() -> None:
    """A seen query takes 1/8 of δ and 1/2 of ε, and what is left has to do for the others."""
    seen = charged("seen", "0.5", "0.125", source="empirical")
    least = next(n for n in range(99) if WHOLE.delta_at(n * QUARTER) <= PARTS / 8)
    right, wrong = (standalone.exact(n * QUARTER + Fraction(1, 2)) for n in (least, least - 1))
    release = exact(right)
    release.check_total([*MANY, seen], WHOLE)
    with refused(f"{RECORD}: composition: found δ", "expected 0.125"):
        exact(wrong).check_total([*MANY, seen], WHOLE)


def test_an_exact_total_is_approximate_if_it_has_a_delta() -> None:
    exact("1", "0", definition="pure").check_total([charged("a", "1")], None)
    probabilistic = charged("a", "1", "0.125")
    probabilistic.entry["definition"] = "probabilistic"
    exact("1", "0.125").check_total([probabilistic], None)
    with refused(f"{RECORD}: guarantee.definition"):
        exact("1", "0.125", definition="probabilistic").check_total([probabilistic], None)


SLOT: Plain = {"name": "night", "times": 1, "epsilon": "1", "delta": "0"}


def scoped(cap: Plain, entry: Plain, *, empirical: bool = False) -> standalone.Release:
    release = object.__new__(standalone.Release)
    whole: Plain = {"scope": "s", "epsilon": "1", "delta": "0"} | entry
    caps = {"s": {"scope": "s", "epsilon": "2", "delta": "0.01"} | cap}
    ledger = SimpleNamespace(entries=[{}, whole], caps=caps)
    release.ledger, release.sequence = cast("standalone.Ledger", ledger), 1
    release.spec = cast("standalone.Spec", SimpleNamespace(is_empirical=empirical))
    release.missing = []
    return release


def planned(*slots: Plain) -> Plain:
    return {"rule": "pld", "planned": list(slots)}


UNPROVED = "whether the release fits what it reserved in the scope s"
UNKEPT = "whether the plan of the scope s keeps its cap"
ONE = standalone.all_of([(standalone.pure_values(Fraction(1), NOTHING, QUARTER), 1)], QUARTER)
CURVE: Plain = {"name": "night", "times": 1}


def curve(values: list[int], step: str = "0.25") -> Plain:
    return CURVE | {"profile": {"step": step, "values": list(map(str, values))}}


OWN = ONE.values()
NIGHT: Plain = {"slot": "night"}


@pytest.mark.parametrize(
    ("slot", "entry", "whole", "missing"),
    [
        (SLOT, {}, None, []),
        (SLOT | {"epsilon": "0.9"}, {}, None, [UNPROVED]),
        (SLOT | {"epsilon": "0.9"}, {"epsilon": "0.9"}, None, []),
        (SLOT, {"delta": "0.1"}, None, [UNPROVED]),
        (SLOT | {"delta": "0.01"}, {"delta": "0.01"}, None, []),
        # The profile is below the worst case of the slot, whatever its ε and δ are.
        (SLOT, {"epsilon": "1.5"}, ONE, []),
        (SLOT | {"epsilon": "1.1"}, {"epsilon": "1.5"}, ONE, [UNPROVED]),
        (SLOT | {"epsilon": "1.25"}, {"epsilon": "1.5"}, ONE, []),
        (curve(OWN), {}, ONE, []),
        (curve([value + PARTS // 10**9 for value in OWN]), {}, ONE, []),
        (curve(OWN), {}, None, [UNPROVED]),
        (curve(OWN, "0.5"), {}, ONE, [UNPROVED]),
        (curve([value - PARTS // 10**20 if value else 0 for value in OWN]), {}, ONE, []),
        (curve([OWN[0]]), {}, ONE, [UNKEPT]),
        (curve([OWN[0], OWN[1]]), {}, ONE, [UNKEPT]),
        (SLOT | {"times": 3}, {}, None, [UNKEPT]),
        (SLOT | {"times": 3, "epsilon": "0.9"}, {}, None, [UNPROVED, UNKEPT]),
    ],
)
def test_a_release_fits_its_slot(
    slot: Plain, entry: Plain, whole: standalone.Losses | None, missing: list[str]
) -> None:
    other = SLOT | {"name": "day", "epsilon": "0"}
    release = scoped(planned(other, slot), NIGHT | entry)
    release.check_scope(whole)
    assert release.missing == missing


@pytest.mark.parametrize(
    "slot",
    [
        SLOT | {"epsilon": "0.75"},
        curve([value - 2 * PARTS // 10**20 if value else 0 for value in OWN]),
        curve([OWN[0], OWN[1], 0]),
        curve([OWN[0] - PARTS // 10**9, *OWN[1:]]),
    ],
)
def test_a_release_whose_profile_lies_above_its_slot_is_refused(slot: Plain) -> None:
    release = scoped(planned(slot), NIGHT | {"epsilon": "1.5"})
    with refused("ledger: slot: found a profile below that of the release"):
        release.check_scope(ONE)


def test_what_is_seen_takes_declared_slots_alone() -> None:
    declared = SLOT | {"declared": True}
    release = scoped(planned(declared), NIGHT, empirical=True)
    release.check_scope(ONE)
    assert release.missing == []
    for slot, empirical, says in (
        (SLOT, True, "a declared slot: found False, expected True"),
        (declared, False, "a declared slot: found True, expected False"),
        (declared | {"epsilon": "0.9"}, True, "slot: found night, expected one of the stated"),
    ):
        with refused(f"ledger: {says}"):
            scoped(planned(slot), NIGHT, empirical=empirical).check_scope(ONE)


def test_a_filter_takes_the_moment_and_the_cut_of_the_release() -> None:
    moment, cut = ONE.moment(4)
    cap = {"rule": "renyi_filter", "order": 4, "cuts": "0.001"}
    right = {"moment": standalone.up(moment, 30), "cut": standalone.up(cut, 30)}
    release = scoped(cap, right)
    release.check_scope(ONE)
    assert release.missing == []
    for name, least in (("moment", moment), ("cut", cut)):
        less = standalone.up(least - Fraction(1, 10**28), 30) if least else "0"
        if least:
            with refused(f"ledger: {name}: found {less}, expected {right[name]}"):
                scoped(cap, right | {name: less}).check_scope(ONE)
    for whole, empirical in ((None, False), (ONE, True)):
        release = scoped(cap, right, empirical=empirical)
        release.check_scope(whole)
        assert release.missing == [UNPROVED]


def test_sums_need_no_slot() -> None:
    release = scoped({}, {})
    release.check_scope(None)
    assert release.missing == []
    release.ledger = None
    release.check_scope(None)
    assert release.missing == []


def audited(
    sequence: int | None = 3, *keys: standalone.Key, run: str | None = "a" * 32
) -> standalone.Release:
    release = object.__new__(standalone.Release)
    release.name, release.sequence, release.tested = "small", sequence, []
    release.trust, release.ledger = standalone.Trust(keys), None
    if run is not None and keys == ():
        entries = [{}, {}, {}, {"run": run}]
        ledger = SimpleNamespace(entries=entries, keys=[[KEY._replace(key=b"\0" * 32)], [KEY]])
        release.ledger = cast("standalone.Ledger", ledger)
    return release


def audit(**fields: Any) -> Plain:
    plain: Plain = {"schema": "dp-release/audit/v1", "release_id": "small", "sequence": 3}
    plain |= {"began": "2026-01-01T00:00:00Z", "prepared": "2026-01-01T00:00:00Z"}
    plain |= {
        "run": "a" * 32,
        "set_aside": [{"count": 1}],
        "left_out": None,
        "signature": "",
        **fields,
    }
    if plain["signature"] == "":
        signature = SIGNER.sign(rfc8785.dumps(plain))
        plain["signature"] = base64.b64encode(signature).decode()
    return plain


TOLD = "audit.json is of this release and signed; what it says is not seen"


def test_an_audit_record_is_signed_by_a_known_key() -> None:
    for release in (audited(), audited(3, KEY)):
        release.check_audit(audit())
        assert release.tested == [TOLD]
    nobody = audited(run=None)
    nobody.check_audit(audit(signature="AAAA"))
    assert nobody.tested == []
    for release in (audited(), audited(3, KEY)):
        with refused("audit.json: signature: found another, expected of a known key"):
            release.check_audit(audit() | {"prepared": "2026-01-02T00:00:00Z"})
    with refused("audit.json: signature"):
        audited(3, KEY._replace(key=b"\0" * 32)).check_audit(audit())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"schema": "dp-release/audit/v2"}, "schema"),
        ({"release_id": "other"}, "release_id"),
        ({"sequence": 2}, "sequence"),
        ({"run": None}, "run, signature"),
        ({"run": "b" * 32}, "run: found"),
        ({"set_aside": [{"count": 1}, {"count": 0}]}, "set_aside, times"),
        ({"began": "2026-01-01T00:00:01Z"}, "set_aside, times"),
    ],
)
def test_what_an_audit_record_says_of_its_release_is_checked(fields: Plain, says: str) -> None:
    audited().check_audit(audit(set_aside=None))
    with refused(f"audit.json: {says}"):
        audited().check_audit(audit(**fields))


def test_an_audit_record_without_a_ledger_is_not_signed() -> None:
    plain = audit(sequence=None, run=None)
    del plain["signature"]
    release = audited(None, run=None)
    release.check_audit(plain)
    assert release.tested == []
    for fields in ({"run": "a" * 32}, {"signature": "AAAA"}):
        with refused("audit.json: run, signature"):
            release.check_audit(plain | fields)
    signed = audit()
    del signed["signature"]
    with refused("audit.json: run, signature"):
        audited().check_audit(signed)


COLUMN = {"column": "kind"}
TRUE = {"call": "=", "of": [COLUMN, {"integer": "1"}]}


def expressed(entries: Any, *queries: Plain, **privacy: Any) -> standalone.Release:
    release = object.__new__(standalone.Release)
    plain = plain_spec(*queries, **privacy)
    plain["tables"]["rows"]["derive"] = {"band": {"type": "integer", "sql": 'kind + "WH"'}}
    release.spec = standalone.Spec(plain)
    release.record = {} if entries is None else {"expressions": entries}
    release.proved, release.missing = [], []
    return release


def at(place: str, tree: Plain) -> Plain:
    return {"place": place, "tree": tree}


BAND, WHERE = "tables.rows.derive.band", "queries.own.where"
COUNTED = asked("count", where="kind = 1")


def test_each_expression_has_a_tree_in_its_place() -> None:
    right = [at(BAND, COLUMN), at(WHERE, {"call": "=", "of": [{"column": "band"}, COLUMN]})]
    release = expressed(right, COUNTED)
    release.check_expressions()
    assert release.proved
    for entries, says in (
        (None, f"{RECORD}: expressions"),
        ([], f"{RECORD}: places of expressions"),
        (right[:1], f"{RECORD}: places of expressions"),
        ([*right, right[0]], f"{RECORD}: places of expressions"),
        ([at(BAND, TRUE), right[1]], f"{RECORD}: {BAND}: found 'b', expected 'i'"),
        ([right[0], at(WHERE, COLUMN)], f"{RECORD}: {WHERE}: found 'i', expected 'b'"),
        ([at(BAND, {"column": "band"}), right[1]], f"{BAND}: column: found band"),
    ):
        with refused(says):
            expressed(entries, COUNTED).check_expressions()
    plain = expressed([], COUNTED)
    del plain.spec.plain["tables"]["rows"]["derive"], plain.spec.plain["queries"][0]["where"]
    with refused(f"{RECORD}: expressions: found True, expected False"):
        plain.check_expressions()


def large(nodes: int) -> Plain:
    """A condition of so many nodes, an odd number."""
    parts = [TRUE] * ((nodes - 1) // 3)
    rest = [{"boolean": True}] * (nodes - 1 - 3 * len(parts))
    return {"call": "and", "of": [*parts, *rest]}


def joining(texts: int) -> Plain:
    tree: Plain = {"call": "||", "of": [{"column": "sort"}] * texts}
    return {"call": "=", "of": [tree, {"string": "x"}]}


@pytest.mark.parametrize(
    ("tree", "is_read"),
    [(large(1000), True), (large(1001), False), (joining(16), True), (joining(17), False)],
)
def test_an_expression_has_a_size(tree: Plain, is_read: bool) -> None:
    release = expressed([at(BAND, COLUMN), at(WHERE, tree)], COUNTED)
    if is_read:
        release.check_expressions()
        return
    with refused(f"{WHERE}: size: found ", "at most 1000 nodes"):
        release.check_expressions()


@pytest.mark.parametrize(
    ("queries", "trees", "privacy", "says"),
    [
        ([COUNTED], (COLUMN, TRUE), {"fixed": ["kind"]}, ""),
        ([COUNTED | {"sensitivity": "empirical"}], (COLUMN, TRUE), {"fixed": ["day"]}, ""),
        ([COUNTED | {"sensitivity": "empirical"}], (COLUMN, TRUE), {"fixed": ["kind"]}, BAND),
        (
            [COUNTED | {"sensitivity": "empirical"}],
            ({"column": "wh"}, TRUE),
            {"fixed": ["kind"]},
            WHERE,
        ),
    ],
)
def test_no_expression_of_what_is_seen_reads_a_fixed_column(
    queries: list[Plain], trees: tuple[Plain, Plain], privacy: Plain, says: str
) -> None:
    release = expressed([at(BAND, trees[0]), at(WHERE, trees[1])], *queries, **privacy)
    if not says:
        release.check_expressions()
        return
    with refused(f"spec.json: {says}: found ['kind']"):
        release.check_expressions()


def test_conditions_of_parts_of_what_is_seen_count_too() -> None:
    part = asked("count", name="a", where="kind = 1")
    for name in ("guarantee", "sensitivity"):
        del part[name]
    both = asked("tuple", of=["a", "b"], sensitivity="empirical")
    other = {name: part[name] for name in part if name != "where"} | {"name": "b"}
    trees = [at(BAND, {"column": "wh"}), at("queries.a.where", TRUE)]
    expressed(trees, both, part, other, fixed=["day"]).check_expressions()
    with refused("spec.json: queries.a.where: found ['kind']"):
        expressed(trees, both, part, other, fixed=["kind"]).check_expressions()


def test_a_fixed_column_is_not_made_of_the_attribute() -> None:
    def release(tree: Plain, attribute: str) -> standalone.Release:
        fields = {"neighbors": "attribute", "attribute": attribute, "fixed": ["band"]}
        return expressed([at(BAND, tree)], asked("count", of="unit"), **fields)

    with refused("spec.json: privacy.fixed: band: found kind"):
        release(COLUMN, "kind").check_expressions()
    free = {"neighbors": "attribute", "attribute": "kind"}
    expressed([at(BAND, COLUMN)], asked("count", of="unit"), **free).check_expressions()
    for attribute, missing in (("day", []), ("wh", ["whether band, which is fixed, reads wh"])):
        own = release(COLUMN, attribute)
        own.check_expressions()
        assert own.missing == missing


def test_a_command_tells_what_it_read(capsys: pytest.CaptureFixture[str]) -> None:
    public = str(FOLDER / "public" / "small")
    whole = ["--auditor", str(FOLDER / "auditor"), "--ledger", str(FOLDER / "ledger")]
    whole += ["--trust", str(FOLDER / "key.pub")]
    assert standalone.main([public, *whole]) == 0
    told = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("not read: ") for line in told) == len(standalone.NEVER_READ)
    assert sum(line.startswith("proved: ") for line in told) == 10
    assert standalone.main([public, *whole[2:]]) == 3
    assert "not read: the_mode: its mechanism is committed" in capsys.readouterr().out
    assert standalone.main([public, *whole, "--require", "witnessed"]) == 3
    for wrong in (["--auditor", str(FOLDER / "none")], ["--trust", "nobody"]):
        with pytest.raises(SystemExit):
            standalone.main([public, *wrong])
    told_wrong = capsys.readouterr().err
    assert "none: no such folder" in told_wrong
    assert "write name+hint+base64" in told_wrong
    with pytest.raises(SystemExit, match=r"^0$"):
        standalone.main(["--help"])
    shown = capsys.readouterr().out
    assert "A second verifier of dp-release: one file, standard library only" in shown
    assert "It was written" not in shown
    assert standalone.main([str(FOLDER / "public")]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("refused: ")
