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
    assert checked().distances == (1, 2, 3)
    assert checked("the_binned", "the_binned").shifts


@pytest.mark.parametrize("asked", ["the_mode"])
def test_a_file_is_of_its_own_query(asked: str) -> None:
    with pytest.raises(VerificationError, match=r"query|mechanism|group|loss"):
        checked(asked=asked)


def test_noise_that_is_not_modular_meets_no_constraint() -> None:
    asked = QUERIES["the_count"]
    record = parse_mechanism("the_count", (SMALL / "mechanisms" / "the_count.json").read_bytes())
    check_mechanism("the_count", record, asked)
    demanding = asked.model_copy(update={"constraints": ["mean_square <= 100"]})
    with pytest.raises(VerificationError, match="constraints: found mean square"):
        check_mechanism("the_count", record, demanding)


def edited(*path: str, value: Any) -> Sensitivity:
    """The stored file of the count with one other value."""
    plain = json.loads((SMALL / "mechanisms" / "the_count.json").read_bytes())
    at = plain
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    record = parse_mechanism("the_count", rfc8785.dumps(plain))
    return check_mechanism("the_count", record, QUERIES["the_count"])


@pytest.mark.parametrize(
    ("path", "value", "check"),
    [
        (("query",), "the_mode", "query"),
        (("guarantee", "definition"), "approximate", "definition"),
        (("guarantee", "epsilon"), "2", "epsilon"),
        (("guarantee", "epsilon"), "0.999", "epsilon"),
        (("guarantee", "delta"), "0.1", "delta"),
        (("recomputed", "delta_probabilistic"), "0.1", "delta_probabilistic"),
        (("recomputed", "delta_approximate"), "0.1", "delta_approximate"),
        (("recomputed", "epsilon_everywhere"), "1.9", "epsilon_everywhere"),
        (("accuracy", "mean_absolute"), "1.300268516301", "accuracy.mean_absolute"),
        (("accuracy", "p_exact"), "0.394299927889", "accuracy.p_exact"),
        (("accuracy", "p_within_1"), "0.615145814167", "accuracy.p_within_1"),
        (("design", "loss"), "absolute", "design.loss"),
        (("design", "objective"), "0.605700072112486025", "design.objective"),
    ],
)
def test_what_a_file_states_is_what_its_integers_are(
    path: tuple[str, ...], value: object, check: str
) -> None:
    with pytest.raises(VerificationError, match=rf"^the_count: {check}: found "):
        edited(*path, value=value)


@pytest.mark.parametrize(("cap", "is_met"), [("0.6058", True), ("0.6057", False)])
def test_a_file_that_misses_the_target_of_the_least_guarantee_is_refused(
    cap: str, is_met: bool
) -> None:
    """An expected loss of 0.605700072112."""
    guarantee = QUERIES["the_count"].claimed.model_copy(update={"least": "epsilon"})
    changes = {"target": f"error_rate <= {cap}", "guarantee": guarantee}
    asked = QUERIES["the_count"].model_copy(update=changes)
    file = (SMALL / "mechanisms" / "the_count.json").read_bytes()
    record = parse_mechanism("the_count", file)
    if is_met:
        check_mechanism("the_count", record, asked)
        return
    with pytest.raises(VerificationError, match=r"the_count: target: found 0\.6057000.*at most"):
        check_mechanism("the_count", record, asked)


def test_integers_that_break_the_guarantee_are_refused() -> None:
    """A channel that publishes the truth: all that neighbors differ in is seen."""
    truth = [["0"] * place + [str(2**62)] + ["0"] * (5 - place) for place in range(6)]
    with pytest.raises(VerificationError, match=r"^the_count: δ: found 1, expected at most 0$"):
        edited("rows", value=truth)


@pytest.mark.parametrize(
    ("mechanism", "name", "check"),
    [
        ("modular", "the_count", "mechanism: found 'channel', expected 'modular'"),
        ("geometric_clamped", "the_count", "design.method: found 'linear program'"),
        ("integer", "the_binned", "mechanism: found 'channel', expected 'integer'"),
    ],
)
def test_a_file_has_the_mechanism_that_the_spec_names(
    mechanism: str, name: str, check: str
) -> None:
    asked = QUERIES[name].model_copy(update={"mechanism": mechanism})
    plain = json.loads((SMALL / "mechanisms" / f"{name}.json").read_bytes())
    record = parse_mechanism(name, rfc8785.dumps(plain))
    with pytest.raises(VerificationError, match=check):
        check_mechanism(name, record, asked)
    for right in ("channel", "best"):
        check_mechanism(name, record, asked.model_copy(update={"mechanism": right}))


def test_the_best_mechanism_of_answers_in_order_cannot_wrap() -> None:
    """A modular file is refused before it is proved, and where the spec names it, is proved."""
    plain = json.loads((SMALL / "mechanisms" / "the_count.json").read_bytes())
    for field in ("pairs", "rows"):
        del plain[field]
    plain |= {"mechanism": "modular", "weights": [str(2**60)] * 3, "sensitivity": [[1]]}
    record = parse_mechanism("the_count", rfc8785.dumps(plain | {"group": [3]}))
    with pytest.raises(VerificationError, match=r"found 'modular'.*cannot wrap round an order"):
        check_mechanism("the_count", record, QUERIES["the_count"])
    named = QUERIES["the_count"].model_copy(update={"mechanism": "modular"})
    with pytest.raises(VerificationError, match=r"the_count: group: found \(3,\)"):
        check_mechanism("the_count", record, named)


@pytest.mark.parametrize(
    ("path", "value", "check"),
    [
        (("total",), str(2**63), "total|weights"),
        (("total",), "9" * 20, "size"),
        (("pairs",), [], "sensitivity: found none"),
        (("pairs",), [[1, 0], [0, 1]], "pairs"),
        (("directed",), True, "directed|δ|pairs"),
    ],
)
def test_integers_that_are_no_mechanism_are_refused(
    path: tuple[str, ...], value: object, check: str
) -> None:
    with pytest.raises(VerificationError, match=check):
        edited(*path, value=value)


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
