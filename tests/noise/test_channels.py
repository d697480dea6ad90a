"""Channels from spec to verdict: chosen, drawn from row by row, proved, refused when changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import DesignError, SpecError, VerificationError
from release.exact.channel import Channel
from release.exact.domain import AnswerDomain, Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity, line_pairs
from release.job import auditor_bundle
from release.noise.design import GAIN, Asked
from release.noise.families import Solvers
from release.noise.published.fitted import BASELINE_NAMES, Requirement, fitted
from release.noise.select import choose, compare, family_of, fitting
from release.queries.read import parse_spec, read_spec
from release.queries.registry import sensitivity_without_data
from release.street import run_release
from release.verification.verifier import verify
from tests.every import some
from tests.small import UNSIGNED, Small, query
from tests.verifier.made import edit

ROWS = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]


def worst_case(**fields: Any) -> dict[str, Any]:
    return query("count", **({"sensitivity": "global", "loss": "squared"} | fields))


def asked(
    size: int = 12,
    apart: tuple[int, ...] = (1,),
    guarantee: Guarantee | None = None,
    loss: LossName = LossName.SQUARED,
    topology: Topology = Topology.ORDERED,
) -> Asked:
    domain = AnswerDomain(topology, tuple(range(size)))
    sensitivity = (
        Sensitivity.on_line(size, apart)
        if topology is Topology.ORDERED
        else Sensitivity.of(Group((size,)), ((a,) for a in apart))
    )
    promise = guarantee or Guarantee(Definition.PURE, Fraction(1), Fraction(0))
    return Asked(domain, sensitivity, promise, named_loss(loss, topology, size), loss)


def published(place: Path, **fields: Any) -> Path:
    spec = Small(ROWS, [worst_case(**fields)], max_rows_per_unit=2)
    place.mkdir(exist_ok=True)
    return run_release(spec.write(place), place / "out").public


def test_best_is_a_channel_where_wrapping_round_costs(tmp_path: Path) -> None:
    public = published(tmp_path)
    law = json.loads((public / "mechanisms" / "the_count.json").read_bytes())
    assert law["family"] == "channel"
    assert len({sum(map(int, row)) for row in law["rows"]}) == 1
    (won,) = re.findall(r"best of \d+ by [^<]*", (public / "report.html").read_text("utf-8"))
    assert "channel" in won
    assert "modular" not in won
    assert verify(public, None, UNSIGNED).status == 0


def test_a_pinned_mechanism_is_taken_and_checked(tmp_path: Path) -> None:
    for name in ("modular", "channel", *BASELINE_NAMES):
        definition = {"definition": "approximate", "epsilon": "1", "delta": "0.01"}
        public = published(tmp_path / name, mechanism=name, guarantee=definition)
        law = json.loads((public / "mechanisms" / "the_count.json").read_bytes())
        family = "channel" if name in {"channel", "geometric_truncated", "exponential"} else None
        if name in {"geometric_clamped", "gaussian_clamped", "gumbel_clamped"}:
            family = "integers"
            # Clamped and no more: remapping is what best adds.
            assert law["ends"] == {"low": [], "high": []}
        assert law["family"] == (family or "modular")
        assert verify(public, None, UNSIGNED).status == 0


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": "mode", "mechanism": "channel"}, "queries[0].mechanism: 'channel' needs"),
        (
            {"mechanism": "channel", "loss": "noise_squared"},
            "queries[0].mechanism: 'channel' needs",
        ),
        ({"mechanism": "gaussian_clamped"}, "queries[0].mechanism: 'gaussian_clamped' needs delta"),
        (
            {"mechanism": "laplace"},
            "queries[0].mechanism: found 'laplace'; in whole numbers it is 'geometric_clamped'",
        ),
        (
            {"mechanism": "channel", "domain": {"ordered": {"min": 0, "max": 1000}}},
            "queries[0].mechanism: 'channel' needs",
        ),
    ],
)
def test_a_mechanism_that_does_not_fit_is_refused(fields: dict[str, Any], told: str) -> None:
    kind = fields.pop("kind", "count")
    asked_for = query(kind, sensitivity="global", **fields)
    text = json.dumps(Small([], [asked_for]).plain()).encode()
    with pytest.raises(SpecError) as error:
        parse_spec(text)
    assert told in str(error.value)


def rewritten(public: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """Change the law and the sums; what the verifier says."""
    edit(public, "mechanisms/the_count.json", change)
    with pytest.raises(VerificationError) as error:
        verify(public)
    return str(error.value)


def move(law: dict[str, Any]) -> None:
    """Half of what row 0 gives to 5 and 4 goes to 0: its odds against row 1 are broken."""
    row = law["rows"][0]
    taken = int(row[5])
    row[5], row[0] = "0", str(int(row[0]) + taken)


def test_a_channel_that_is_changed_is_refused(tmp_path: Path) -> None:
    cases: list[tuple[Callable[[dict[str, Any]], None], str]] = [
        (lambda law: None, ""),
        (move, "δ"),
        (lambda law: law["rows"].pop(), "rows"),
        (lambda law: law["rows"][2].reverse(), "δ"),
    ]
    for number, (change, told) in enumerate(cases):
        public = published(tmp_path / str(number), max_rows_per_unit=2)
        if not told:
            assert verify(public, None, UNSIGNED).status == 0
            continue
        assert told in rewritten(public, change)


def test_a_channel_for_fewer_rows_of_a_unit_is_refused(tmp_path: Path) -> None:
    """A channel made for one row of a unit, in a release that reads two."""
    one = published(tmp_path / "one", max_rows_per_unit=1, mechanism="channel")
    two = published(tmp_path / "two", max_rows_per_unit=2, mechanism="channel")
    law = json.loads((one / "mechanisms" / "the_count.json").read_bytes())

    def swap(other: dict[str, Any]) -> None:
        other.clear()
        other.update(law)

    assert "δ" in rewritten(two, swap)


def test_a_seen_channel_stays_in_the_auditors_half(tmp_path: Path) -> None:
    spec = Small(ROWS, [query("count", loss="squared")], max_rows_per_unit=2)
    public = run_release(spec.write(tmp_path), tmp_path / "out").public
    assert not (public / "mechanisms").exists()
    half = auditor_bundle(public)
    assert half is not None
    opened = json.loads((half / "the_count.json").read_bytes())
    assert opened["law"]["family"] == "channel"
    assert 1 in opened["sensitivity"]["distances"]
    assert verify(public, None, UNSIGNED).not_proved == ["the_count"]
    assert verify(public, half, UNSIGNED).status == 0


def family(wanted: Asked) -> str | None:
    """What ``best`` is where differences were seen; None where it is refused."""
    try:
        return family_of(wanted, "best", is_empirical=True)
    except DesignError:
        return None


def test_the_kind_of_mechanism_hangs_on_nothing_that_was_seen() -> None:
    """Every set of differences that a table could show gives the same answer."""
    promises = [
        Guarantee(Definition.PURE, Fraction(1), Fraction(0)),
        Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 100)),
        Guarantee(Definition.PROBABILISTIC, Fraction(1), Fraction(1, 100)),
    ]
    for promise in promises:
        for loss in (LossName.ERROR_RATE, LossName.SQUARED):
            kinds = {
                family(asked(5, tuple(apart), promise, loss))
                for apart in ([1], [2], [4], [1, 3], [1, 2, 3, 4])
            }
            assert kinds == ({"channel"} if promise is not promises[-1] else {None})


@given(
    st.integers(2, 9),
    st.sets(st.integers(1, 8), min_size=1, max_size=3),
    st.sampled_from(["0.1", "0.7", "2"]),
    st.sampled_from(["0", "0.001", "0.2"]),
    st.sampled_from([LossName.ERROR_RATE, LossName.ABSOLUTE, LossName.SQUARED]),
)
@settings(max_examples=some(60))
def test_best_loses_least_of_all_families_and_each_keeps_its_promise(
    size: int, apart: set[int], epsilon: str, delta: str, loss: LossName
) -> None:
    near = tuple(sorted(step for step in apart if step < size)) or (1,)
    kind = Definition.APPROXIMATE if Fraction(delta) else Definition.PURE
    wanted = asked(size, near, Guarantee(kind, Fraction(epsilon), Fraction(delta)), loss)
    found, _ = compare(wanted, Solvers())
    best = choose(wanted)
    low = exp_bounds(wanted.guarantee.epsilon)[0] - Fraction(1, 10**30)
    for name, made in found.items():
        assert (1 - GAIN) * best.objective <= made.objective + Fraction(1, 10**9), name
        kept = made.mechanism.deltas_at_ratio(made.sensitivity, low)
        assert kept.under(kind) <= wanted.guarantee.delta, name
    assert {"modular", "integer", "geometric_clamped"} <= set(found)


@pytest.mark.parametrize("topology", [Topology.CYCLIC, Topology.NOMINAL])
def test_without_an_order_modular_noise_is_best(topology: Topology) -> None:
    wanted = asked(7, (1, 2), topology=topology)
    assert "channel" not in set(fitting(wanted))
    assert choose(wanted).name == "modular"


@pytest.mark.parametrize("name", BASELINE_NAMES)
def test_a_fitted_baseline_keeps_its_promise_and_barely(name: str) -> None:
    """By a sum over all pairs; and less ε would have been too little to claim.

    Of the exponential mechanism, which gives away half, only the first.
    """
    guarantee = Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 50))
    promise = Requirement(9, Sensitivity.on_line(9, (1, 2)), guarantee)
    made = fitted(name, promise)
    channel = Channel.of_mechanism(made)
    pairs = line_pairs(9, (1, 2))
    if isinstance(made, Modular):
        # Modular noise is asked to keep it round the end too.
        pairs = tuple((a, b) for a in range(9) for b in range(9) if (a - b) % 9 in {1, 2, 7, 8})

    def delta(epsilon: Fraction) -> float:
        ratio = float(exp_bounds(epsilon)[0])
        rows = channel.to_floats()
        return max(float(np.maximum(rows[a] - ratio * rows[b], 0).sum()) for a, b in pairs)

    assert delta(Fraction(1)) <= 0.02 * (1 + 1e-9)
    assert name == "exponential" or delta(Fraction(9, 10)) > 0.9 * delta(Fraction(1))


def test_draws_follow_the_row_of_each_answer() -> None:
    """200,000 draws of each of three answers against the masses; and frozen bits by hand."""
    channel = Channel.of([[4, 2, 1, 1], [1, 5, 1, 1], [0, 0, 8, 0], [1, 1, 1, 5]])
    answers = np.repeat(np.array([0, 1, 2]), 200_000)
    drawn = channel.draw(answers).reshape(3, -1)
    for row, codes in zip(channel.to_floats(), drawn, strict=False):
        counted = np.bincount(codes, minlength=4) / codes.size
        assert np.abs(counted - row).max() < 6 * 0.5 / 200_000**0.5

    def source(count: int) -> bytes:
        return b"".join((i << 61).to_bytes(8, "little") for i in range(count // 8))

    by_hand = channel.draw(np.array([0, 0, 0, 0, 0, 0, 0, 0]), source)
    assert by_hand.tolist() == [0, 0, 0, 0, 1, 1, 2, 3]
    with pytest.raises(ValueError, match="outside the domain"):
        channel.draw(np.array([4]))


def test_neighboring_answers_are_told_apart_on_the_line(tmp_path: Path) -> None:
    """One row moves a count by one; 0 and 5 are neighbors round the end, not on the line."""
    path = Small([], [worst_case(max_rows_per_unit=1)]).write(tmp_path)
    spec = read_spec(path).spec
    found = sensitivity_without_data(spec, spec.queries[0])
    assert found.shifts == ((1,), (5,))
    assert found.distances == (1,)


def test_a_probabilistic_delta_below_the_least_makes_a_pure_channel(tmp_path: Path) -> None:
    """The solvers see no δ so small; the search that gives masses up is not for pure guarantees."""
    tiny = {"definition": "probabilistic", "epsilon": "1", "delta": "0.000000000001"}
    public = published(tmp_path / "tiny", mechanism="channel", guarantee=tiny)
    assert verify(public, None, UNSIGNED).status == 0
