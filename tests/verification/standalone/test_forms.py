"""The verifier in one file: JSON, numbers, trees, curves and lines, each at its edge."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.verification import standalone
from tests.verification.standalone.alone import Plain, refused

FIELD = 2**255 - 19


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"a":9007199254740991}', ""),
        (b'{"a":-9007199254740991}', ""),
        (b'{"a":9007199254740992}', "number: found 9007199254740992"),
        (b'{"a":-9007199254740992}', "number: found -9007199254740992"),
        (b'{"a":10000000000000000}', "number: found 10000000000000000"),
        (b'{"a":1.5}', "number: found 1.5"),
        (b'{"a":1e3}', "number: found 1e3"),
        (b'{"a":NaN}', "number: found NaN"),
        (b'{"a":-0}', "JSON: found another form"),
        (b'{"b":1,"a":2}', "JSON: found another form"),
        (b'{"a":1,"a":1}', "JSON: found another form"),
        (b'{"a": 1}', "JSON: found another form"),
        (b'{"a":"\\u0061"}', "JSON: found another form"),
        (b'{"a":1}\n', "JSON: found another form"),
        (b"{", "JSON: "),
        (b'{"a":"\xff"}', "JSON: "),
        (b"[1]", "found [1], expected object"),
        (b'{"a":' + b"[" * 10**5, "JSON: "),
    ],
)
def test_one_object_in_canonical_form_is_read(data: bytes, says: str) -> None:
    if not says:
        assert standalone.read_json("f", data) == json.loads(data)
        return
    with refused("f: ", says):
        standalone.read_json("f", data)


def test_keys_are_sorted_by_code_units() -> None:
    plain: Plain = {"\U0001f600": [{"b": 1, "a": None}], "\uff5e": True, "ä": "\n\u2028", "": 1}
    assert standalone.canonical(plain) == rfc8785.dumps(plain)
    assert standalone.read_json("f", rfc8785.dumps(plain)) == plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.25", Fraction(1, 4)),
        ("1/3", Fraction(1, 3)),
        ("007", Fraction(7)),
        (5, Fraction(5)),
        (0, Fraction(0)),
        ("1" * 400, Fraction(int("1" * 400))),
    ],
)
def test_exact_numbers_have_a_value(text: Any, value: Fraction) -> None:
    assert standalone.number(text) == value


@pytest.mark.parametrize("text", ["-1", "1e3", " 1", "1/0", "1.", ".5", "1" * 401, -1, True, None])
def test_what_is_no_exact_number_is_refused(text: Any) -> None:
    with refused(f"file: number: found {str(text)[:300]}"):
        standalone.number(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1/8", "0.125"),
        ("1/3", "1/3"),
        ("12", "12"),
        ("120", "120"),
        ("0", "0"),
        ("7/20", "0.35"),
        ("1/1024", "0.0009765625"),
        ("1/6", "1/6"),
        ("2001/1000", "2.001"),
    ],
)
def test_numbers_are_written_in_one_way(value: str, text: str) -> None:
    assert standalone.exact(Fraction(value)) == text


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        ("1/3", 3, "0.334"),
        ("1/3", 1, "0.4"),
        ("0", 3, "0"),
        ("1/1000", 3, "0.001"),
        ("10", 2, "10"),
        ("1999/1000", 2, "2"),
        ("123456/1000", 2, "123.46"),
        ("1/10000", 2, "0.01"),
    ],
)
def test_decimals_are_rounded_up(value: str, places: int, text: str) -> None:
    assert standalone.up(Fraction(value), places) == text


def test_days_are_of_the_calendar() -> None:
    assert standalone.is_date("2024-02-29")
    assert standalone.is_date("0001-01-01")
    for text in ("2023-02-29", "20240229", "2024-W09-4", "2024-2-9", "0000-01-01", None, 20240229):
        assert standalone.is_date(text) is False


def test_nulls_say_what_absence_says() -> None:
    plain = {"a": None, "b": [{"c": None, "d": [None, 0]}, False], "e": ""}
    assert standalone.without_null(plain) == {"b": [{"d": [None, 0]}, False], "e": ""}


@pytest.mark.parametrize(
    ("value", "form", "says"),
    [
        ([1, "x"], "int*", "[1]: found 'x', expected int"),
        ({"a": 1, "b": True}, "NAME>int", ".b: found True, expected int"),
        ({"B": 1}, "NAME>int", ": found ['B'], expected NAME>int"),
        (0, "1..50", ": found 0, expected 1..50"),
        (1, "1..50", ""),
        (50, "1..50", ""),
        ({"a": 1, "B": 1}, "NAME>int", ": found ['B', 'a'], expected NAME>int"),
        (True, "1..50", ": found True"),
        ("1", "1..50", ": found '1'"),
        ({"epsilon": "1"}, "Figures", ": found ['epsilon'], expected the fields"),
        ({"epsilon": "1", "delta": 0}, "Figures", "delta: found 0"),
        ({"every": "day", "epsilon": "1", "delta": "0"}, "Period|null", ""),
        ({"every": "hour", "epsilon": "1", "delta": "0"}, "Period", "every: found 'hour'"),
        (["a"], "object", ": found ['a'], expected object"),
        ("pld", "basic|pld", ""),
        ("PLD", "basic|pld", ": found 'PLD'"),
        ({"x": [[1]]}, "ANY>int**", ""),
        ({"x": [1]}, "ANY>int**", ".x[0]: found 1, expected int*"),
        ("x" * 400, "int", "found 'x"),
    ],
)
def test_a_misfit_is_told_with_its_place(value: Any, form: str, says: str) -> None:
    found = standalone.misfit(value, form)
    assert found.startswith(says) if says[:5] != "found" else says in found
    assert bool(found) == bool(says)
    assert len(found) < 700


def test_optional_fields_may_be_absent_and_no_others_stand() -> None:
    forms = standalone.FIELDS
    assert forms["Period"] == {"epsilon": "EXACT", "delta": "EXACT", "every": "day|month|year"}
    assert forms["Guarantee"]["delta?"] == forms["Guarantee"]["epsilon"] == "Number"
    assert forms["Nothing"] == {}
    assert standalone.misfit({}, "Nothing") == ""
    stated = {"name": "n", "times": 1, "epsilon": "1", "delta": "0"}
    assert not standalone.misfit(stated, "Slot")
    assert not standalone.misfit(stated | {"declared": True}, "Slot")
    assert standalone.misfit(stated | {"declared": 1}, "Slot")
    assert standalone.misfit(stated | {"profile": {}}, "Slot")


def test_two_values_are_the_same_with_their_type() -> None:
    standalone.same("f", "x", [1], [1])
    for value, expected in ((1, True), (1, "1"), ([1], (1,)), (None, 0), ("a", "b")):
        with refused(f"f: x: found {value!r}, expected {expected!r}"):
            standalone.same("f", "x", value, expected)
    standalone.agree("f", {"a": {"b": 1}, "c": 2}, {"a.b": 1, "c": 2})
    with refused("f: at.a.b: found 1, expected 2"):
        standalone.agree("f", {"a": {"b": 1}}, {"a.b": 2}, "at.")


def test_a_bundle_has_files_in_one_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "data" / "b").write_bytes(b"2")
    (tmp_path / "data" / "b.html").write_bytes(b"3")
    files, sums = standalone.bundle_files(tmp_path)
    assert files == {"a": b"1", "data/b": b"2"}
    hashed = {"a": b"1", "data/b": b"2", "data/b.html": b"3"}
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in hashed.items()}
    for more in (tmp_path / "more", tmp_path / "data" / "more"):
        for target in ("a", "data"):
            more.symlink_to(tmp_path / target)
            with refused("more: file set: found another, expected files, in one folder"):
                standalone.bundle_files(tmp_path)
            more.unlink()
        more.mkdir()
        with refused("more: file set: found another, expected files, in one folder"):
            standalone.bundle_files(tmp_path)
    (tmp_path / "more").rmdir()
    (tmp_path / "data" / "more" / "c").write_bytes(b"3")
    with refused("data/more: file set"):
        standalone.bundle_files(tmp_path)
    with refused("none: folder: found none, expected a bundle"):
        standalone.bundle_files(tmp_path / "none")


def test_a_file_of_a_bundle_has_a_size_of_one_gibibyte_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: hashlib.sha256())
    big = tmp_path / "big.html"
    big.touch()
    os.truncate(big, 2**30)
    assert standalone.bundle_files(tmp_path) == ({}, {"big.html": hashlib.sha256().hexdigest()})
    os.truncate(big, 2**30 + 1)
    with refused("big.html: file set"):
        standalone.bundle_files(tmp_path)


@pytest.mark.parametrize("name", ["x.parquet", "x.html", "x.csv"])
def test_tables_and_pages_are_hashed_without_being_held(name: str, tmp_path: Path) -> None:
    """A sparse file takes no place on the disk, and so may be part of any release."""
    (tmp_path / "a.json").write_bytes(b"{}")
    (tmp_path / name).touch()
    os.truncate(tmp_path / name, 2**26)
    tracemalloc.start()
    files, sums = standalone.bundle_files(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()
    assert files == {"a.json": b"{}"}
    assert sums == {
        "a.json": hashlib.sha256(b"{}").hexdigest(),
        name: hashlib.sha256(bytes(2**26)).hexdigest(),
    }


@pytest.mark.parametrize("name", ["x", "x.json", "x.proof"])
def test_files_that_are_held_have_a_gibibyte_at_most(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Their sizes are looked at first, and this machine may not have the memory.
    monkeypatch.setattr(Path, "read_bytes", lambda _: b"")
    for file in (tmp_path / "a.json", tmp_path / name):
        file.touch()
        os.truncate(file, 2**29)
    assert len(standalone.bundle_files(tmp_path)[0]) == 2
    os.truncate(tmp_path / name, 2**29 + 1)
    with refused(f"{name}: size: found 1073741825, expected at most 2^30 bytes that are read"):
        standalone.bundle_files(tmp_path)


COLUMNS = {"i": "integer", "n": "number", "s": "string", "b": "boolean", "d": "date"}
TREES: list[tuple[Plain, tuple[str, int, int]]] = [
    ({"column": "i"}, ("i", 1, 0)),
    ({"integer": "-9223372036854775808"}, ("I", 1, 0)),
    ({"integer": "9223372036854775807"}, ("I", 1, 0)),
    ({"boolean": False}, ("B", 1, 0)),
    ({"number": "1.5"}, ("N", 1, 0)),
    ({"number": "-1e+300"}, ("N", 1, 0)),
    ({"string": "\x01"}, ("S", 1, 0)),
    ({"date": "2024-02-29"}, ("D", 1, 0)),
    ({"timestamp": "2024-02-29 12:30:00.000001"}, ("T", 1, 0)),
    ({"cast": "number", "of": {"column": "i"}}, ("n", 2, 0)),
    ({"cast": "integer", "of": {"boolean": True}}, ("i", 2, 0)),
    ({"call": "=", "of": [{"column": "i"}, {"integer": "3"}]}, ("b", 3, 0)),
    ({"call": "//", "of": [{"column": "i"}, {"integer": "3"}]}, ("i", 4, 0)),
    (
        {
            "call": "in",
            "of": [
                {"call": "negate", "of": [{"column": "i"}]},
                {"integer": "3"},
                {"integer": "4"},
                {"integer": "5"},
            ],
        },
        ("b", 8, 0),
    ),
    (
        {"call": "%", "of": [{"column": "i"}, {"call": "negate", "of": [{"column": "i"}]}]},
        ("i", 6, 0),
    ),
    (
        {"call": "//", "of": [{"column": "i"}, {"call": "abs", "of": [{"column": "i"}]}]},
        ("i", 6, 0),
    ),
    (
        {
            "call": "between",
            "of": [
                {"call": "negate", "of": [{"column": "i"}]},
                {"integer": "3"},
                {"call": "abs", "of": [{"call": "abs", "of": [{"column": "i"}]}]},
            ],
        },
        ("b", 9, 0),
    ),
    (
        {"call": "nullif", "of": [{"call": "negate", "of": [{"column": "i"}]}, {"column": "i"}]},
        ("i", 6, 0),
    ),
    ({"call": "||", "of": [{"column": "s"}, {"string": "x"}, {"column": "s"}]}, ("s", 4, 3)),
    (
        {
            "call": "concat",
            "of": [
                {"call": "||", "of": [{"column": "s"}, {"column": "s"}]},
                {"call": "lower", "of": [{"column": "s"}]},
            ],
        },
        ("s", 6, 4),
    ),
    ({"call": "date_diff", "of": [{"string": "day"}, *[{"column": "d"}] * 2]}, ("i", 4, 0)),
]


@pytest.mark.parametrize("place", range(len(TREES)))
def test_a_tree_has_a_type_and_a_size(place: int) -> None:
    tree, (letter, nodes, joined) = TREES[place]
    found = standalone.read_tree("q", tree, COLUMNS)
    assert found[:3] == (letter, nodes, joined)
    text = json.dumps(tree)
    assert found[3] == {name for name in COLUMNS if f'"column": "{name}"' in text}


@pytest.mark.parametrize(
    ("form", "letters", "gives"),
    [
        ("NN:N", "ii", "i"),
        ("NN:N", "nN", "n"),
        ("NN:N", "in", ""),
        ("TKK*:b", "iI", "b"),
        ("TKK*:b", "ii", ""),
        ("(bT)+T?:T", "bsBsS", "s"),
        ("(bT)+T?:T", "bsbi", ""),
        ("SDD:i", "Stt", "i"),
        ("SDD:i", "Sdt", ""),
    ],
)
def test_a_function_takes_what_its_form_says(form: str, letters: str, gives: str) -> None:
    assert standalone.result_of(form, letters) == gives


def nested(depth: int) -> Plain:
    tree: Plain = {"column": "b"}
    for _ in range(depth - 1):
        tree = {"call": "not", "of": [tree]}
    return tree


def test_a_tree_has_64_nodes_in_a_row_at_most() -> None:
    assert standalone.read_tree("q", nested(64), COLUMNS)[1] == 64
    with refused("q: tree: found 65, expected at most 64 nodes in a row"):
        standalone.read_tree("q", nested(65), COLUMNS)


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ([], "tree: found 1"),
        ({"call": "not", "of": ["b"]}, "of[0]: found 'b', expected object"),
        ({"column": "x"}, "column: found x"),
        ({"integer": "9223372036854775808"}, "constant"),
        ({"integer": "-9223372036854775809"}, "constant"),
        ({"integer": 3}, "constant"),
        ({"number": "inf"}, "constant"),
        ({"number": "nan"}, "constant"),
        ({"number": "1.50"}, "constant"),
        ({"number": "1"}, "constant"),
        ({"string": "a\0"}, "constant"),
        ({"date": "2024-02-30"}, "constant"),
        ({"timestamp": "2024-02-29"}, "constant"),
        ({"timestamp": "2024-02-29 12:30:00+00:00"}, "constant"),
        ({"boolean": "true"}, "constant"),
        ({"color": "red"}, "constant"),
        ({"cast": "boolean", "of": {"column": "d"}}, "cast: found db"),
        ({"cast": "date", "of": {"string": "2024-01-01"}}, "cast: found Sd"),
        ({"cast": "color", "of": {"column": "d"}}, "cast"),
        ({"call": "nothing", "of": [{"column": "d"}]}, "call: found nothing"),
        ({"call": "not", "of": [{"column": "i"}]}, "arguments of not: found i"),
        ({"call": "not", "of": []}, "arguments of not"),
        ({"call": "=", "of": [{"column": "i"}, {"column": "n"}]}, "arguments of =: found in"),
        ({"call": "in", "of": [{"column": "i"}, {"column": "i"}]}, "arguments of in: found ii"),
        (
            {"call": "date_diff", "of": [{"string": "era"}, *[{"column": "d"}] * 2]},
            "date_diff: found {'string': 'era'}",
        ),
        ({"call": "not", "of": [{"column": "b"}], "more": 1}, "fields"),
        ({"cast": "date", "of": [{"column": "s"}]}, "found"),
    ],
)
def test_what_is_no_tree_is_refused(tree: Any, says: str) -> None:
    with refused("q: ", says) if says not in ("fields", "found") else refused("q", says):
        standalone.read_tree("q", tree, COLUMNS)


@pytest.mark.parametrize("seed", range(6))
def test_a_public_key_is_a_point_of_the_curve(seed: int) -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes([seed + 40]) * 32)
    raw = private.public_key().public_bytes_raw()
    x, y = standalone.point_at(raw)
    d = -121665 * pow(121666, FIELD - 2, FIELD)
    assert (y * y - x * x - 1 - d * x * x * y * y) % FIELD == 0
    assert 0 <= x < FIELD
    assert (y | (x % 2) << 255).to_bytes(32, "little") == raw
    message = bytes(range(seed * 50))
    signature = private.sign(message)
    assert standalone.is_signed(raw, message, signature)
    assert not standalone.is_signed(raw, message + b"\0", signature)
    for place in (0, 31, 32, 60):
        changed = bytes(b ^ (n == place) for n, b in enumerate(signature))
        assert not standalone.is_signed(raw, message, changed)


def test_a_signature_has_64_bytes_and_one_form() -> None:
    private = Ed25519PrivateKey.from_private_bytes(b"\7" * 32)
    raw, signature = private.public_key().public_bytes_raw(), private.sign(b"m")
    assert standalone.is_signed(raw, b"m", signature)
    assert not standalone.is_signed(raw, b"m", signature + b"\0")
    assert not standalone.is_signed(raw, b"m", signature[:32])
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(signature[32:], "little")
    more = signature[:32] + (s + order).to_bytes(32, "little")
    assert not standalone.is_signed(raw, b"m", more)
    # Of the neutral point as key and commitment, s = 0 verifies, and s = the order is refused.
    neutral = (1).to_bytes(32, "little")
    assert standalone.is_signed(neutral, b"m", neutral + bytes(32))
    assert not standalone.is_signed(neutral, b"m", neutral + order.to_bytes(32, "little"))
    no_point = bytes([2]) + bytes(31)
    assert standalone.is_signed(no_point, b"m", neutral + bytes(32)) is False


def encoded(y: int, sign: int = 0) -> bytes:
    return (y | sign << 255).to_bytes(32, "little")


def test_points_of_few_powers_are_read() -> None:
    """Those of y = 0, 1 and -1: their orders are 4, 1 and 2."""
    assert standalone.point_at(encoded(1)) == (0, 1)
    assert standalone.point_at(encoded(FIELD - 1)) == (0, FIELD - 1)
    root = pow(2, (FIELD - 1) // 4, FIELD)
    even, odd = sorted((root, FIELD - root), key=lambda x: x % 2)
    assert standalone.point_at(encoded(0)) == (even, 0)
    assert standalone.point_at(encoded(0, 1)) == (odd, 0)
    point = standalone.point_at(encoded(0))
    assert standalone.multiple(2, point) == (0, FIELD - 1)
    assert standalone.multiple(4, point) == (0, 1)
    assert standalone.multiple(5, point) == point
    assert standalone.multiple(0, point, point) == point


@pytest.mark.parametrize(
    "data",
    [
        encoded(1, 1),
        encoded(FIELD - 1, 1),
        encoded(FIELD),
        encoded(FIELD + 1),
        encoded(2**255 - 1),
        encoded(2),
        encoded(7),
    ],
)
def test_what_is_no_point_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no point of the curve"):
        standalone.point_at(data)


def test_multiples_of_the_base_add_up() -> None:
    base = standalone.BASE_POINT
    assert base[1] == 4 * pow(5, FIELD - 2, FIELD) % FIELD
    assert base[0] % 2 == 0
    four = standalone.multiple(4, base)
    assert standalone.multiple(3, base, base) == four
    assert standalone.multiple(9, base) == standalone.multiple(2, four, base)
    order = 2**252 + 27742317777372353535851937790883648493
    assert standalone.multiple(order, base) == (0, 1)
    assert standalone.multiple(order - 1, base) == (FIELD - base[0], base[1])


def test_a_line_shows_what_a_terminal_would_hide(capsys: pytest.CaptureFixture[str]) -> None:
    standalone.show("a\tb\x1b \u202e ä'\\")
    assert capsys.readouterr().out == "a\\tb\\x1b \\u202e ä'\\\n"
