"""Bytes of the verifier against other programs: JSON, numbers, signatures, forms."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from dp_release_verify import canonical, forms
from dp_release_verify.errors import Refused
from dp_release_verify.signatures import SignatureError, check_ed25519, read_key, split_note
from tests.conftest import PROJECT
from tests.verifier import made
from tests.verifier.signing import private_key, public_key

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-canonical.LARGEST, canonical.LARGEST)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_json_is_that_of_rfc_8785(value: Any) -> None:
    data = canonical.dumps(value)
    assert data == rfc8785.dumps(value)
    assert canonical.loads("f", data) == value


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":1}',
        b'{"b":1,"a":1}',
        b"{ }",
        b"1.0",
        b"1e3",
        b"NaN",
        b"-0",
        b"01",
        b"9007199254740993",
        b'"\\u0041"',
        b'"\xff"',
        b"[" * 100_000,
        b"",
        b'{"a":1}\n',
        b'"\\ud800"',
    ],
)
def test_other_json_is_refused(text: bytes) -> None:
    with pytest.raises(Refused):
        canonical.loads("f", text)


@given(st.fractions(min_value=0, max_denominator=10**9))
def test_a_number_has_one_text_that_is_read_back(value: Fraction) -> None:
    text = canonical.exact(value)
    assert Fraction(text) == value
    assert canonical.NUMBER.fullmatch(text)
    assert len(text) < 400


@given(st.fractions(min_value=0, max_value=100, max_denominator=10**6))
def test_bounds_of_e_lie_on_their_sides(value: Fraction) -> None:
    power = power_of_e(value)
    below, above = canonical.below_e(value), canonical.above_e(value)
    assert below <= power * canonical.SCALE <= above
    assert above - below <= 4


def power_of_e(value: Fraction) -> Fraction:
    """e^value by its series, to 60 digits and more."""
    # Of a small exponent few terms are needed: the result is squared as often as that was halved.
    small = Fraction(round(value * 10**90 / 2**10), 10**90)
    total = term = Fraction(1)
    for number in range(1, 60):
        term = Fraction(round(term * small / number * 10**150), 10**150)
        total += term
    for _ in range(10):
        total = Fraction(round(total * total * 10**150), 10**150)
    return total


@given(st.integers(1, 2**64 - 1))
def test_the_loss_of_a_ratio_is_never_too_small(ratio: int) -> None:
    stated = canonical.loss_of(ratio)
    assert power_of_e(stated) * ratio > 2**64
    assert power_of_e(stated - Fraction(1, 10**58)) * ratio < 2**64


def test_signatures_are_those_of_another_library() -> None:
    for length in range(40):
        key = Ed25519PrivateKey.generate()
        raw, message = key.public_key().public_bytes_raw(), os.urandom(length)
        signature = key.sign(message)
        check_ed25519(raw, message, signature)
        changed = bytearray(signature)
        changed[length % 64] ^= 1 << (length % 8)
        for wrong in (bytes(changed), signature[:63], b"", signature + b"\0"):
            with pytest.raises(SignatureError):
                check_ed25519(raw, message, wrong)
        with pytest.raises(SignatureError):
            check_ed25519(raw, message + b"x", signature)


def test_a_second_scalar_of_one_signature_is_refused() -> None:
    """The scalar plus the order of the curve is another text of the same signature."""
    order = 2**252 + 27742317777372353535851937790883648493
    key = private_key(5)
    raw, signature = key.public_key().public_bytes_raw(), key.sign(b"m")
    scalar = int.from_bytes(signature[32:], "little") + order
    twin = signature[:32] + scalar.to_bytes(32, "little")
    with pytest.raises(SignatureError, match="order"):
        check_ed25519(raw, b"m", twin)


def test_a_key_is_read_back_and_others_are_refused() -> None:
    key = public_key(private_key(5))
    assert read_key(str(key)) == key
    name, hint, rest = str(key).split("+", 2)
    for wrong in (
        "",
        "a+b",
        f"x{name}+{hint}+{rest}",
        f"{name}+{hint}+{rest[:-4]}",
        f"{name}+00000000+{rest}",
    ):
        with pytest.raises(SignatureError):
            read_key(wrong)
    for wrong in ("", "text", "text\n\n", "text\n\n— a !!\n", "text\n\n— a AAAA"):
        with pytest.raises(SignatureError):
            split_note(wrong)


@dataclass(frozen=True)
class Inner:
    """A form within another."""

    number: forms.Exact
    size: forms.Count = 1


@dataclass(frozen=True)
class Outer:
    """A form with every kind of field."""

    name: forms.Name
    weights: forms.Weights
    inner: list[Inner]
    by_name: dict[forms.Name, Inner]
    label: forms.Label
    flag: bool
    kind: forms.Definition
    later: Inner | None = None


WHOLE = {
    "name": "a",
    "weights": ["1", "340282366920938463463374607431768211456"],
    "inner": [{"number": "1/3"}, {"number": "0.5", "size": 3}],
    "by_name": {"b": {"number": "2"}},
    "label": 7,
    "flag": True,
    "kind": "pure",
    "later": {"number": "4"},
}


def test_a_form_is_read_and_written() -> None:
    found = forms.read(Outer, "f", WHOLE)
    assert found.weights == [1, 2**128]
    assert found.inner[0].number == Fraction(1, 3)
    again = forms.plain(found)
    assert again["weights"] == WHOLE["weights"]
    assert again["inner"][0] == {"number": "1/3", "size": 1}
    assert forms.read(Outer, "f", again) == found


@pytest.mark.parametrize(
    "change",
    [
        {"name": "A"},
        {"name": "a\n"},
        {"weights": [1]},
        {"weights": []},
        {"weights": ["01"]},
        {"weights": ["-1"]},
        {"inner": {}},
        {"inner": [{"number": "1/0"}]},
        {"inner": [{"number": "1", "size": True}]},
        {"inner": [{"number": "1", "size": 0}]},
        {"inner": [{"number": "1", "other": 0}]},
        {"by_name": {"B": {"number": "2"}}},
        {"label": None},
        {"label": 1.5},
        {"flag": 1},
        {"kind": "PURE"},
        {"kind": ["pure"]},
        {"later": None},
        {"more": 1},
    ],
)
def test_what_is_not_of_a_form_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        forms.read(Outer, "f", {**WHOLE, **change})


@pytest.mark.parametrize("name", [name for name in WHOLE if name != "later"])
def test_a_field_that_has_to_be_there_is_missed(name: str) -> None:
    with pytest.raises(Refused, match=name):
        forms.read(Outer, "f", {key: value for key, value in WHOLE.items() if key != name})


def test_the_schemas_take_what_is_released_and_nothing_more(tmp_path: Path) -> None:
    jsonschema: Any = pytest.importorskip("jsonschema")
    (tmp_path / "small").mkdir()
    (tmp_path / "tabulated").mkdir()
    folders = [made.small(tmp_path / "small")[0], made.tabulated(tmp_path / "tabulated")]
    named = {"release.json": "release", "keys.json": "keys"}
    seen = 0
    for folder in folders:
        for path in sorted(folder.rglob("*.json")):
            name = named.get(path.name, "mechanism" if path.parent != folder else "")
            if not name:
                continue
            schema = json.loads((PROJECT / "schemas" / f"{name}.schema.json").read_bytes())
            check = jsonschema.Draft202012Validator(schema)
            plain = json.loads(path.read_bytes())
            assert check.is_valid(plain), path
            assert not check.is_valid({**plain, "more": 1})
            seen += 1
    assert seen > 8


def test_the_schemas_name_every_field() -> None:
    plain = json.dumps(forms.schema(forms.Release))
    for name in ("max_rows_per_unit", "commitment", "histogram", "groupings", "step"):
        assert f'"{name}"' in plain
    assert '"additionalProperties": true' not in plain
