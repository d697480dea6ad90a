"""Mechanism files: bounds and gaps to the last decimal, totals, and what a message shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785

from release.bundle.read import parse_mechanism
from release.errors import VerificationError
from release.exact.sensitivity import Sensitivity
from release.queries.read import parse_spec
from release.verification.mechanisms import check_mechanism, excerpt, expect
from tests.conftest import PROJECT

SMALL = PROJECT / "tests" / "formats" / "v1" / "public" / "small"
QUERIES = {query.name: query for query in parse_spec((SMALL / "spec.yaml").read_bytes()).released}


def checked(name: str = "the_count", asked: str = "the_count", **design: Any) -> Sensitivity:
    """A stored file with another design, against a query of its spec."""
    plain = json.loads((SMALL / "mechanisms" / f"{name}.json").read_bytes())
    plain["design"] |= design
    return check_mechanism(name, parse_mechanism(name, rfc8785.dumps(plain)), QUERIES[asked])


def test_a_sound_file_gives_its_differences() -> None:
    assert checked().apart == (1, 2, 3)
    assert checked("the_binned", "the_binned").shifts


@pytest.mark.parametrize("asked", ["the_mode"])
def test_a_file_is_of_its_own_query(asked: str) -> None:
    with pytest.raises(VerificationError, match=r"query|mechanism|group|loss"):
        checked(asked=asked)


@pytest.mark.parametrize(("units", "is_sound"), [(41, False), (42, True), (43, False)])
def test_a_gap_is_the_objective_less_the_bound(units: int, is_sound: bool) -> None:
    """Loss and bound, as written, are 42 units of 10^-18 apart."""
    gap = f"0.{units:018d}"
    if is_sound:
        checked(gap=gap)
        return
    with pytest.raises(VerificationError, match=r"design\.gap"):
        checked(gap=gap)


def test_a_bound_is_at_most_the_objective() -> None:
    """The objective as it is written, rounded up."""
    checked(lower_bound="0.605700072112486024", gap="0")
    with pytest.raises(VerificationError, match=r"design\.lower_bound"):
        checked(lower_bound="0.605700072112486025", gap="0")


def test_the_bounded_loss_of_a_channel_is_its_objective() -> None:
    """Only of noise on the integers, far from the ends, is another loss bounded."""
    with pytest.raises(VerificationError, match=r"design\.bounded_loss"):
        checked(bounded_loss="0.605700072112486025")
    with pytest.raises(VerificationError, match=r"design\.bound_of"):
        checked(bound_of="noise on the integers")


def test_values_in_messages_are_cut_at_two_hundred_characters() -> None:
    assert excerpt("a" * 198) == repr("a" * 198)
    assert excerpt("a" * 199) == "'" + "a" * 199 + "…"
    expect("file", "check", [1], [1])
    with pytest.raises(VerificationError, match="file: check: found 1, expected 2"):
        expect("file", "check", 1, 2)
