"""The verifier in one file replays a ledger: each rule of section 7, at its edge and one beyond."""

from __future__ import annotations

import base64
import hashlib
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dp_release_verify.merkle import inclusion_proof, root
from release.exact.composition.renyi import most_moments
from release.records.keys.cosignatures import cosigned, witness_key
from release.records.keys.files import FileSigner
from release.records.signing import sign_note
from release.verification import standalone
from tests.verification.standalone.alone import Plain, refused

NAME, DAY = "example.org/dp", "2024-03-01"
KEY, OTHER = (FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2))
BASIC: Plain = {"scope": "s", "epsilon": "1", "delta": "0.5"}
SLOT: Plain = {"name": "night", "times": 2, "epsilon": "0.1", "delta": "0"}
PLD: Plain = BASIC | {"rule": "pld", "planned": [SLOT]}
FILTER: Plain = BASIC | {"epsilon": "0", "rule": "renyi_filter", "order": 2, "cuts": "0"}
CURVE: Plain = {"name": "curve", "times": 1, "profile": {"step": "0.5", "values": ["7", "7", "0"]}}


def genesis(*caps: Plain, **fields: Any) -> Plain:
    plain = {"kind": "genesis", "origin": NAME, "keys": [str(KEY.public(NAME))]}
    return plain | {"scopes": list(caps or (BASIC,))} | fields


def reserve(name: str, epsilon: str = "0", **fields: Any) -> Plain:
    plain = {"kind": "reserve", "scope": "s", "release_id": name, "delta": "0"}
    return plain | {"epsilon": epsilon} | fields


def commit(name: str) -> Plain:
    return {"kind": "commit", "release_id": name, "attestation": "sha256:" + "0" * 64}


def abort(name: str, *, drawn: bool) -> Plain:
    return {"kind": "abort", "release_id": name, "drawn": drawn}


def public(name: str) -> list[Plain]:
    return [reserve(name), commit(name)]


def said(kind: str, name: str, **fields: Any) -> Plain:
    reason = {} if kind == "withdraw" else {"reason": "why not"}
    return {"kind": kind, "release_id": name, **reason, **fields}


def policy(**fields: Any) -> Plain:
    return {"kind": "policy", "cap": BASIC | fields}


def change_key(action: str, key: FileSigner, signer: FileSigner, name: str = NAME) -> Plain:
    return {"kind": "key", "action": action, "key": str(key.public(name)), "by": signer}


def read(folder: Path, *entries: Plain) -> standalone.Ledger:
    """The ledger of these entries, numbered and chained."""
    folder.mkdir(parents=True, exist_ok=True)
    before = "0" * 64
    for seq, entry in enumerate(entries):
        plain: Plain = {"seq": seq, "prev": f"sha256:{before}", "date": DAY} | entry
        signer = plain.pop("by") if plain["kind"] == "key" else None
        if signer is not None:
            signature = signer.sign(rfc8785.dumps(plain | {"signature": ""}))
            plain["signature"] = base64.b64encode(signature).decode()
        data = rfc8785.dumps(plain)
        before = hashlib.sha256(data).hexdigest()
        (folder / f"{seq:08}.json").write_bytes(data)
    return standalone.Ledger(folder)


def test_a_ledger_is_read_to_its_end(tmp_path: Path) -> None:
    entries = [genesis(), *public("a"), *public("b"), *public("c"), said("withdraw", "c")]
    entries += [said("skip", "d"), said("revise", "a", by="b"), reserve("e", "0.25", delta="0.5")]
    entries += [{"kind": "store", "uri": "s3://bucket"}, policy(epsilon="2")]
    ledger = read(tmp_path, *entries)
    assert [entry["kind"] for entry in ledger.entries] == [entry["kind"] for entry in entries]
    assert ledger.committed == {"a": 2, "b": 4, "c": 6}
    assert ledger.public == {"a", "b"}
    assert ledger.said == {"withdraw": {"c": ""}, "skip": {"d": ""}, "revise": {"a": "b"}}
    assert list(ledger.open) == ["e"]
    assert ledger.caps == {"s": BASIC | {"epsilon": "2"}}
    data = (tmp_path / "00000003.json").read_bytes()
    assert ledger.leaves[3] == hashlib.sha256(b"\0" + data).digest()


def test_files_of_other_names_are_ignored_and_a_gap_is_not(tmp_path: Path) -> None:
    read(tmp_path, genesis(), *public("a"))
    for name in ("0000000.json", "000000003.json", "00000003.jsonl", "checkpoint"):
        (tmp_path / name).write_text("x")
    assert len(standalone.Ledger(tmp_path).entries) == 3
    (tmp_path / "00000001.json").unlink()
    with refused("ledger: files: "):
        standalone.Ledger(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    with refused("ledger: entries: found none"):
        standalone.Ledger(empty)


NEW = {**BASIC, "scope": "t"}
ADDED = change_key("add", OTHER, KEY)
WRONG: list[tuple[list[Plain], str]] = [
    ([public("a")[0]], "00000000.json: genesis first"),
    ([genesis(), genesis()], "00000001.json: genesis first"),
    ([genesis(seq=1)], "00000000.json: seq"),
    ([genesis(prev="sha256:" + "1" * 64)], "00000000.json: prev"),
    ([genesis(), reserve("a", seq=2)], "00000001.json: seq"),
    ([genesis(), reserve("a", prev="sha256:" + "0" * 64)], "00000001.json: prev"),
    ([genesis(date="2024-02-30")], "00000000.json: date: found 2024-02-30"),
    ([genesis(), reserve("a", date="2024-02-29")], "00000001.json: date: found 2024-02-29"),
    ([genesis(), reserve("a", date="2024-3-10")], "00000001.json: date: found 2024-3-10"),
    ([genesis(kind="geneses")], "00000000.json: kind: found geneses"),
    ([genesis(), {"kind": "cap", "scope": "s"}], "00000001.json: kind: found cap"),
    ([genesis(more=1)], "00000000.json"),
    ([genesis(origin="example.com/dp")], "00000000.json: keys"),
    ([genesis(keys=[])], "00000000.json: keys"),
    ([genesis(BASIC, BASIC)], "00000000.json: scopes"),
    ([genesis(), reserve("a", scope="t")], "00000001.json: scope: found t"),
    ([genesis(), reserve("a"), reserve("a")], "00000002.json: reserve: found a"),
    ([genesis(), *public("a"), reserve("a")], "00000003.json: reserve: found a"),
    ([genesis(), said("skip", "a"), reserve("a")], "00000002.json: reserve: found a"),
    ([genesis(), commit("a")], "00000001.json: commit: found a"),
    ([genesis(), *public("a"), commit("a")], "00000003.json: commit: found a"),
    ([genesis(), abort("a", drawn=False)], "00000001.json: abort: found a"),
    ([genesis(), *public("a"), abort("a", drawn=True)], "00000003.json: abort: found a"),
    ([genesis(), reserve("a"), said("withdraw", "a")], "00000002.json: withdraw: found a"),
    (
        [genesis(), *public("a"), said("withdraw", "a"), said("withdraw", "a")],
        "00000004.json: withdraw: found a",
    ),
    ([genesis(), *public("a"), said("revise", "a", by="a")], "00000003.json: revise: found a"),
    ([genesis(), *public("a"), said("skip", "a")], "00000003.json: skip: found a"),
    ([genesis(), change_key("add", KEY, KEY)], "00000001.json: key: found add"),
    ([genesis(), change_key("add", OTHER, OTHER)], "00000001.json: key: found add"),
    ([genesis(), change_key("add", OTHER, KEY, "example.com")], "00000001.json: key.name"),
    ([genesis(), change_key("retire", OTHER, KEY)], "00000001.json: key: found retire"),
    ([genesis(), change_key("retire", KEY, KEY)], "00000001.json: key: found retire"),
    ([genesis(), ADDED, change_key("retire", KEY, KEY)], "00000002.json: key: found retire"),
    (
        [genesis(), ADDED, change_key("retire", KEY, OTHER), change_key("add", KEY, KEY)],
        "00000003.json: key: found add",
    ),
]


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_what_does_not_follow_is_refused(place: int, tmp_path: Path) -> None:
    entries, says = WRONG[place]
    with refused(says):
        read(tmp_path, *entries)


RIGHT: list[list[Plain]] = [
    [genesis(), reserve("a"), abort("a", drawn=True), *public("a")],
    [genesis(), reserve("a"), abort("a", drawn=False), said("skip", "a")],
    [genesis(), *public("a"), *public("b"), said("revise", "a", by="b"), said("withdraw", "a")],
    [genesis(), ADDED, change_key("retire", KEY, OTHER), change_key("add", KEY, OTHER)],
    [genesis(), ADDED, change_key("retire", OTHER, KEY)],
    [genesis(BASIC, NEW), reserve("a", scope="t")],
    [genesis(date="2024-02-29"), reserve("a", date="2024-03-01"), reserve("b", date="2024-03-01")],
]


@pytest.mark.parametrize("place", range(len(RIGHT)))
def test_what_follows_is_read(place: int, tmp_path: Path) -> None:
    entries = RIGHT[place]
    assert len(read(tmp_path, *entries).entries) == len(entries)


def test_keys_are_valid_from_the_entry_that_adds_them(tmp_path: Path) -> None:
    ledger = read(tmp_path, genesis(), ADDED, change_key("retire", KEY, OTHER))
    own, other = (standalone.read_key(str(key.public(NAME))) for key in (KEY, OTHER))
    assert ledger.keys == [[own], [own, other], [other]]


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ([("0.5", "0"), ("0.5", "0.5")], ""),
        ([("0.5", "0"), ("0.500001", "0")], "cap : found epsilon"),
        ([("0", "1/4"), ("0", "0.25")], ""),
        ([("0", "1/4"), ("0", "0.251")], "cap : found delta"),
    ],
)
def test_charges_add_up_to_the_cap(
    figures: list[tuple[str, str]], says: str, tmp_path: Path
) -> None:
    entries = [reserve(f"r{i}", epsilon, delta=delta) for i, (epsilon, delta) in enumerate(figures)]
    others = reserve("other", "9", scope="t")
    entries = [genesis(BASIC, NEW | {"epsilon": "9"}), others, *entries]
    if not says:
        assert len(read(tmp_path, *entries).standing) == 3
        return
    with refused("00000003.json: ", says):
        read(tmp_path, *entries)


@pytest.mark.parametrize(
    ("every", "first", "same", "next_one"),
    [
        ("day", "2024-01-31", "2024-01-31", "2024-02-01"),
        ("month", "2024-02-01", "2024-02-29", "2024-03-01"),
        ("year", "2024-01-01", "2024-12-31", "2025-01-01"),
    ],
)
@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_a_period_has_a_cap_of_its_own(
    every: str, first: str, same: str, next_one: str, name: str, tmp_path: Path
) -> None:
    period = {"every": every, "epsilon": "0.3", "delta": "0.2"}
    begin = genesis(BASIC | {"period": period}, date="2023-05-05")
    most = Fraction(period[name])
    half, rest = f"{most / 2}", f"{most / 2 + Fraction(1, 100)}"
    one = reserve("one", date=first) | {name: half}
    two = reserve("two", date=same)
    read(tmp_path / "right", begin, one, two | {name: half})
    read(tmp_path / "later", begin, one, two | {"date": next_one, name: rest})
    taken = [one, abort("one", drawn=False) | {"date": first}]
    read(tmp_path / "taken", begin, *taken, two | {name: rest})
    with refused(f"cap {first[: {'day': 10, 'month': 7, 'year': 4}[every]]}: found {name}"):
        read(tmp_path / "wrong", begin, one, two | {name: rest})
    read(tmp_path / "none", genesis(BASIC | {"period": None}), reserve("a", "1"))


CHANGES: list[tuple[Plain, Plain, str]] = [
    (BASIC, BASIC | {"epsilon": "0.1"}, ""),
    (BASIC, BASIC | {"period": {"every": "day", "epsilon": "1", "delta": "0"}}, ""),
    (BASIC, BASIC | {"rule": "basic"}, ""),
    (BASIC | {"rule": "basic"}, BASIC | {"epsilon": "3"}, ""),
    (BASIC, PLD, "policy"),
    (BASIC, FILTER, "policy"),
    (BASIC, PLD | {"scope": "t"}, ""),
    (PLD, PLD, ""),
    (PLD, PLD | {"epsilon": "2"}, "policy"),
    (PLD, BASIC, "policy"),
    (PLD, FILTER, "policy"),
    (FILTER, FILTER, ""),
    (FILTER, FILTER | {"order": 3}, "policy"),
    (BASIC, PLD | {"scope": "t", "delta": "1"}, "policy"),
    (BASIC, BASIC | {"scope": "t", "delta": "1"}, ""),
    (BASIC, PLD | {"scope": "t", "delta": "0.999"}, ""),
    (BASIC, PLD | {"scope": "t", "period": None}, ""),
    (
        BASIC,
        PLD | {"scope": "t", "period": {"every": "day", "epsilon": "1", "delta": "0"}},
        "policy",
    ),
    (BASIC, FILTER | {"scope": "t", "delta": "1"}, "policy"),
    (BASIC, PLD | {"scope": "t", "planned": [SLOT, SLOT | {"name": "day"}, CURVE]}, ""),
    (BASIC, PLD | {"scope": "t", "planned": [SLOT, SLOT | {"times": 1}]}, "planned"),
    (BASIC, PLD | {"scope": "t", "planned": []}, "planned"),
    (BASIC, PLD | {"scope": "t", "planned": [SLOT | {"times": 0}]}, "times"),
    (BASIC, PLD | {"scope": "t", "planned": [SLOT | {"times": -5, "declared": True}]}, "times"),
    (BASIC, PLD | {"scope": "t", "planned": [SLOT | {"times": 10**5}]}, ""),
    (BASIC, PLD | {"scope": "t", "planned": [SLOT | {"times": 10**5 + 1}]}, "times"),
    (
        BASIC,
        PLD | {"scope": "t", "planned": [SLOT | {"name": f"n{i}"} for i in range(1000)]},
        "",
    ),
    (
        BASIC,
        PLD | {"scope": "t", "planned": [SLOT | {"name": f"n{i}"} for i in range(1001)]},
        "planned",
    ),
]


def curve(**fields: Any) -> Plain:
    return CURVE | {"profile": CURVE["profile"] | fields}


CHANGES += [
    (BASIC, PLD | {"scope": "t", "planned": [slot]}, says)
    for slot, says in (
        (curve(values=["0", "0"]), ""),
        (curve(values=[str(10**28)]), ""),
        (curve(values=[str(10**28 + 1)]), "planned"),
        (curve(values=["0", "1"]), "planned"),
        (curve(values=["5"] * (2**14 + 1)), ""),
        (curve(values=["5"] * (2**14 + 2)), "planned"),
        (curve(step="0"), "planned"),
        (curve(step="100"), ""),
        (curve(step="100.01"), "planned"),
        (curve(values=[]), "planned"),
    )
]


@pytest.mark.parametrize("place", range(len(CHANGES)))
def test_a_cap_is_changed_where_charges_add_up_alone(place: int, tmp_path: Path) -> None:
    before, after, says = CHANGES[place]
    entries = [genesis(before), {"kind": "policy", "cap": after}]
    if not says:
        assert read(tmp_path, *entries).caps[after["scope"]] == after
        return
    with refused("00000001.json: ", says):
        read(tmp_path, *entries)


@pytest.mark.parametrize(
    ("cap", "fields", "says"),
    [
        (BASIC, {"slot": "night"}, "fields of the rule: found ['slot']"),
        (BASIC, {"moment": "1"}, "fields of the rule"),
        (PLD, {}, "fields of the rule"),
        (PLD, {"slot": "night", "cut": "0"}, "fields of the rule"),
        (PLD, {"slot": "day"}, "slot: found day"),
        (PLD, {"slot": "night"}, ""),
        (FILTER, {"moment": "1"}, "fields of the rule"),
        (FILTER, {"moment": "1", "cut": "0"}, ""),
        (FILTER, {"moment": "0.999", "cut": "0"}, "moment"),
        (FILTER, {"moment": "1", "cut": "0.001"}, "cut: found 0.001"),
    ],
)
def test_a_reserve_has_the_fields_of_its_rule(
    cap: Plain, fields: Plain, says: str, tmp_path: Path
) -> None:
    entries = [genesis(cap), reserve("a", **fields)]
    if not says:
        assert len(read(tmp_path, *entries).standing) == 1
        return
    with refused("00000001.json: ", says):
        read(tmp_path, *entries)


def test_a_slot_is_taken_as_often_as_is_planned(tmp_path: Path) -> None:
    taken = [reserve(name, slot="night") for name in "ab"]
    begin = genesis(PLD | {"planned": [SLOT, SLOT | {"name": "day", "times": 1}]})
    day = reserve("d", slot="day")
    again = reserve("c", slot="night")
    read(tmp_path / "full", begin, *taken, day)
    read(tmp_path / "freed", begin, *taken, day, abort("a", drawn=False), again)
    for name, more in (("third", []), ("drawn", [abort("a", drawn=True)])):
        with refused("slot: found night, expected a free one"):
            read(tmp_path / name, begin, *taken, day, *more, again)


THIRD = "1." + "3" * 30
"""4/3, which is the cap with δ = 1/3, as far as 30 decimals go."""


@pytest.mark.parametrize(
    ("delta", "moments", "is_kept"),
    [
        ("1/2", ["1.5", "4/3"], True),
        ("1/2", ["1.5", THIRD + "4"], False),
        ("1/3", [THIRD], True),
        ("1/3", [THIRD + "3"], False),
        ("1/3", ["1", THIRD, "1"], True),
        # Rounded up after each factor, though the product itself is below 4/3.
        ("1/3", ["1." + "1" * 20, "1.19999999999999999999"], True),
        ("1/2", ["2"], True),
        ("1/2", ["2." + "0" * 29 + "1"], False),
    ],
)
def test_a_filter_multiplies_moments_digit_by_digit(
    delta: str, moments: list[str], is_kept: bool, tmp_path: Path
) -> None:
    begin = genesis(FILTER | {"delta": delta})
    entries = [reserve(f"r{i}", moment=each, cut="0") for i, each in enumerate(moments)]
    product = Fraction(1)
    for each in moments:
        product = Fraction(ceil(product * Fraction(each) * 10**30), 10**30)
    assert (product <= 4 * Fraction(delta)) == is_kept
    if is_kept:
        read(tmp_path, begin, *entries)
        return
    with refused("moment"):
        read(tmp_path, begin, *entries)


def test_cuts_add_up_to_what_is_declared(tmp_path: Path) -> None:
    begin = genesis(FILTER | {"cuts": "0.1"})
    one = reserve("a", moment="1", cut="0.05")
    read(tmp_path / "kept", begin, one, one | {"release_id": "b"})
    with refused("cut: found 0.051, expected 0.1 in all"):
        read(tmp_path / "spent", begin, one, one | {"release_id": "b", "cut": "0.051"})


@pytest.mark.parametrize(
    ("order", "epsilon", "delta", "cuts"),
    [
        (2, "0", "0.25", "0"),
        (2, "3", "0.2", "0.1"),
        (7, "1/3", "0.5", "1/4"),
        (256, "1", "0.9", "0"),
    ],
)
def test_the_cap_of_moments_is_that_of_the_package(
    order: int, epsilon: str, delta: str, cuts: str
) -> None:
    cap = {"order": order, "epsilon": epsilon, "delta": delta, "cuts": cuts}
    most = most_moments(order, Fraction(epsilon), Fraction(delta) - Fraction(cuts))
    # t is below e^ε by 2·10⁻³⁰ or less; the package takes the least of these.
    assert most <= standalone.moment_cap(cap) <= most * (1 + Fraction(order, 10**29))
    if epsilon == "0":
        assert standalone.moment_cap(cap) == 1


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"order": 2}, ""),
        ({"order": 256}, ""),
        ({"order": 1}, "order"),
        ({"order": 257}, "order"),
        ({"cuts": "0.5"}, "order, cuts"),
        ({"cuts": "0.6"}, "order, cuts"),
        ({"delta": "1/4"}, ""),
        ({"delta": "0.2499999999"}, "filter"),
        ({"epsilon": "100"}, ""),
        ({"epsilon": "100.01"}, "order, cuts"),
    ],
)
def test_a_filter_has_room_for_nothing_at_least(fields: Plain, says: str, tmp_path: Path) -> None:
    if not says:
        read(tmp_path, genesis(FILTER | fields))
        return
    with refused(says):
        read(tmp_path, genesis(FILTER | fields))


def leaves(size: int) -> list[bytes]:
    return [hashlib.sha256(bytes([i])).digest() for i in range(size)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 13])
def test_roots_and_paths_are_those_of_the_package(size: int) -> None:
    hashed = leaves(size)
    assert standalone.root_of(hashed) == root(hashed)
    for index in range(size):
        path = inclusion_proof(hashed, index)
        assert standalone.root_by_path(hashed[index], index, size, path) == root(hashed)
        for wrong in (path[:-1], [*path, b"\0" * 32]):
            if len(wrong) != len(path):
                with refused("ledger.proof: path"):
                    standalone.root_by_path(hashed[index], index, size, wrong)


def signed(text: str, *signers: FileSigner, name: str = NAME) -> str:
    note = sign_note(text, signers[0], name)
    for signer in signers[1:]:
        note += sign_note(text, signer, name).splitlines(keepends=True)[-1]
    return note


def text_of(ledger: standalone.Ledger, size: int, origin: str = NAME) -> str:
    return f"{origin}\n{size}\n{base64.b64encode(root(ledger.leaves[:size])).decode()}\n"


def test_a_checkpoint_is_of_its_ledger(tmp_path: Path) -> None:
    ledger = read(tmp_path, genesis(), ADDED, change_key("retire", KEY, OTHER), *public("a"))
    own, other = (standalone.read_key(str(key.public(NAME))) for key in (KEY, OTHER))

    def check(note: str) -> standalone.Checkpoint:
        return ledger.check_checkpoint("checkpoint", note, ())

    whole = root(ledger.leaves)
    assert check(signed(text_of(ledger, 5), OTHER)) == (NAME, 5, whole, {other})
    assert check(signed(text_of(ledger, 2), KEY))[3] == {own}
    assert check(signed(text_of(ledger, 1), KEY))[1] == 1
    both = check(signed(text_of(ledger, 5), KEY, OTHER))
    assert both[3] == {own, other}
    for note, says in (
        (signed(text_of(ledger, 5), KEY), "none of a key valid then"),
        (signed(text_of(ledger, 1), OTHER), "none of a key valid then"),
        (signed(f"{NAME}\n0\n{'A' * 43}=\n", KEY), "size: found 0"),
        (signed(f"{NAME}\n6\n{'A' * 43}=\n", OTHER), "size: found 6"),
        (signed(text_of(ledger, 5, "example.com"), OTHER), "origin"),
        (signed(text_of(ledger, 4).replace("\n4\n", "\n5\n"), OTHER), "root"),
    ):
        with refused("checkpoint: ", says):
            check(note)


def test_a_note_is_signed_by_every_known_key_that_it_names(tmp_path: Path) -> None:
    ledger = read(tmp_path, genesis())
    text = text_of(ledger, 1)
    key = standalone.read_key(str(KEY.public(NAME)))
    witness = standalone.read_key(str(witness_key(OTHER, "w")), standalone.WITNESS)

    def check(note: str, *keys: standalone.Key) -> set[standalone.Key]:
        return standalone.read_checkpoint("note", note, keys)[3]

    note = signed(text, KEY)
    seen = cosigned(note, OTHER, "w", 1_700_000_000)
    assert check(note, key) == {key}
    assert check(seen, key) == {key}
    assert check(seen, key, witness) == {key, witness}
    with refused("note: checkpoint: found no known signature"):
        check(seen, witness)
    lines = seen.splitlines(keepends=True)
    # The witness alone signs for another curator's text, and an unknown line comes first.
    swapped = "".join([*lines[:-2], lines[-1], lines[-2]])
    assert check(swapped, key, witness) == {key, witness}
    assert check(swapped, key) == {key}
    with refused("note: signature: found a false one of w"):
        check(seen.replace(lines[-1], lines[-1].replace(lines[-1][40:44], "AAAA")), key, witness)
    longer = note.replace(text, text.replace("\n1\n", "\n10\n"))
    with refused("note: signature: found a false one of example.org/dp"):
        check(longer, key)


HEAD = f"{NAME}\n1\n{'A' * 43}=\n"
LINE = "— name AAAAAAAA\n"


@pytest.mark.parametrize(
    "note",
    [
        HEAD + LINE,
        HEAD + "\n",
        HEAD.replace("\n1\n", "\n01\n") + "\n" + LINE,
        HEAD.replace("\n1\n", "\n1000000000\n") + "\n" + LINE,
        HEAD + "more\n\n" + LINE,
        HEAD + "\n" + LINE.replace("—", "-"),
        HEAD + "\n" + LINE * 101,
        HEAD + "\n" + LINE + "\n",
    ],
)
def test_what_is_no_signed_note_is_refused(note: str) -> None:
    with refused("note: checkpoint: expected origin, size, root and signatures"):
        standalone.read_checkpoint("note", note, ())
    with refused("note: checkpoint: found no known signature"):
        standalone.read_checkpoint("note", HEAD + "\n" + LINE * 100, ())


def with_hint(name: str, data: bytes) -> str:
    hint = hashlib.sha256(name.encode() + b"\n" + data).hexdigest()[:8]
    return f"{name}+{hint}+{base64.b64encode(data).decode()}"


def test_a_key_is_read_from_its_text() -> None:
    raw = KEY.public(NAME).raw
    key = standalone.read_key(f" {KEY.public(NAME)}\n")
    assert key == (NAME, raw, b"\1", KEY.public(NAME).hint)
    assert standalone.read_key(with_hint("w", b"\4" + raw), standalone.WITNESS).kind == b"\4"
    assert standalone.read_key(with_hint("x" * 200, b"\1" + raw)).key == raw
    for text in (NAME, with_hint("x" * 201, b"\1" + raw), with_hint("a b", b"\1" + raw)):
        with pytest.raises(standalone.UsageError, match=r"^--trust, --witness: write name"):
            standalone.read_key(text)
    for data in (b"\4" + raw, b"\1" + raw[:-1], b"\1" + raw + b"\0"):
        with refused(f"key: form: found {data[:1]!r}, expected"):
            standalone.read_key(with_hint("w", data))
    with refused("key: hint"):
        standalone.read_key(str(KEY.public(NAME)).replace("example", "exemple"))


def test_base64_has_one_form() -> None:
    assert standalone.decode("f", "AAE=") == b"\0\1"
    with refused("f: base64: found 'AAE='"):
        standalone.decode("f", "AAF=")
    with pytest.raises(ValueError, match="base64"):
        standalone.decode("f", "A AE=")
