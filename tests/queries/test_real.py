"""Real-valued queries: a clamped sum or mean of floats, published on a grid."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import SpecError
from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, Guarantee, deltas_at_ratio, keeps
from release.exact.sensitivity import Sensitivity
from release.noise.constraints import monotone
from release.noise.solve import design
from release.queries.read import read_spec
from release.queries.registry import sensitivity_without_data
from release.street import run_release
from release.verification.verifier import verify
from research.published.geng import zero_delta_noise
from research.published.integer_pmf import IntegerPmf
from tests.answers import answer, load
from tests.small import UNSIGNED, Small, sensitivities

GRID: dict[str, Any] = {"low": -6, "high": 18, "step": 3, "scale": "0.25"}
Rows = list[tuple[str, str, float | None]]


def real(**fields: Any) -> dict[str, Any]:
    return {
        "name": "energy",
        "kind": "sum",
        "table": "rows",
        "of": "kwh",
        "clamp": [-4, 10],
        "by": ["place"],
        "grid": GRID,
        "sensitivity": "empirical",
        "guarantee": {"definition": "pure", "epsilon": "1"},
        "loss": "absolute",
    } | fields


def write(folder: Path, rows: Rows, *queries: dict[str, Any], bound: int = 2) -> Path:
    plain = Small([], list(queries), max_rows_per_unit=bound, fixed=["place"]).plain()
    del plain["keys"]["day"]
    kinds = {"unit": "string", "place": "string", "kwh": "number"}
    plain["tables"]["rows"] = {"path": "rows.parquet", "columns": kinds}
    columns = dict(zip(("unit", "place", "kwh"), zip(*rows, strict=True), strict=True))
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    table = table.set_column(2, "kwh", table["kwh"].cast(pa.float64()))
    pq.write_table(table, folder / "rows.parquet")
    (folder / "spec.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(plain))), "utf-8")
    return folder / "spec.yaml"


def units_of(value: float) -> int:
    """The value in quarters, rounded half away from zero, clamped."""
    if math.isinf(value):
        return 10 if value > 0 else -4
    exact = Fraction(value) * 4
    rounded = math.floor(abs(exact) + Fraction(1, 2)) * (1 if exact >= 0 else -1)
    return min(max(rounded, -4), 10)


def code_of(rows: Rows, place: str, measure: str) -> int:
    """The nearest grid point, by hand; an empty mean is code 0."""
    values = [units_of(v) for _, p, v in rows if p == place and v is not None and not math.isnan(v)]
    if measure == "mean" and not values:
        return 0
    exact = Fraction(sum(values), len(values) if measure == "mean" else 1)
    code = math.floor((exact - GRID["low"]) / GRID["step"] + Fraction(1, 2))
    return int(min(max(code, 0), 8))


VALUES = st.sampled_from(
    [0.0, 0.12, 0.125, -0.125, 0.3, 1.1, 2.6, -3.0, 1e300, math.inf, -math.inf]
)
TABLES = st.lists(
    st.tuples(
        st.sampled_from(["u0", "u1", "u2", "u3"]),
        st.sampled_from(["a", "b"]),
        VALUES | st.none() | st.just(math.nan),
    ),
    min_size=1,
    max_size=8,
)


@given(TABLES, st.sampled_from(["sum", "mean"]))
@settings(max_examples=60, deadline=None)
def test_answers_and_differences_are_those_by_hand(
    tmp_path_factory: pytest.TempPathFactory, rows: Rows, measure: str
) -> None:
    # One place a unit: it is fixed, a public fact of the unit.
    rows = [(unit, "ab"[int(unit[1]) % 2], value) for unit, _, value in rows]
    spec_file = read_spec(write(tmp_path_factory.mktemp("real"), rows, real(kind=measure), bound=8))
    with load(spec_file) as tables:
        answered = answer(tables, spec_file)
        (found,) = sensitivities(answered, spec_file)
    here = [code_of(rows, place, measure) for place in "ab"]
    assert answered[0].codes.tolist() == here
    seen = set()
    units = sorted({unit for unit, _, _ in rows})
    holdings = [[row for row in rows if row[0] == unit] for unit in units]
    for unit in [*units, None]:
        others = [row for row in rows if row[0] != unit]
        for new in [*holdings, []]:
            places = "ab" if unit is None else "ab"[int(unit[1]) % 2]
            for place in places:
                neighbor = others + [("new", place, value) for _, _, value in new]
                there = [code_of(neighbor, p, measure) for p in "ab"]
                seen |= {a - b for a, b in zip(here, there, strict=True)}
    expected = {d % 9 for d in seen} | {-d % 9 for d in seen}
    expected = expected - {0} or {1, 8}
    assert {shift[0] for shift in found.shifts} == expected


def test_a_release_on_a_grid_is_published_and_verified(tmp_path: Path) -> None:
    """Worst case, and (0, δ); answers are whole multiples of the scale."""
    rows: Rows = [(f"u{i}", "ab"[i % 2], 0.25 * i) for i in range(12)]
    zero = {"definition": "approximate", "epsilon": "0", "delta": "0.3"}
    queries = [
        real(sensitivity="global", noise="on_answer"),
        real(name="flat", clamp=[-1, 1], sensitivity={"declared": [1, 2]}, guarantee=zero),
    ]
    path = write(tmp_path, rows, *queries, bound=1)
    public = run_release(path, tmp_path / "out").public
    assert verify(public, None, UNSIGNED).status == 0
    table = pq.read_table(public / "data" / "flat.parquet")
    assert table.schema.field("answer").type == pa.int64()
    points = set(range(GRID["low"], GRID["high"] + 1, GRID["step"]))
    assert set(table.column("answer").to_pylist()) <= points
    first = table.column("answer").to_pylist()[0]
    assert f">{first}</td>" in (public / "report.html").read_text("utf-8")


def test_structural_differences_are_those_of_the_bounds(tmp_path: Path) -> None:
    """Two rows of -4..10 quarters each: a sum moves by at most 28, that is 10 points of 3."""
    wide = {"low": -60, "high": 60, "step": 3, "scale": "0.25"}
    query = real(sensitivity="global", noise="on_answer", grid=wide)
    spec_file = read_spec(write(tmp_path, [("u", "a", 0.0)], query))
    found = sensitivity_without_data(spec_file.spec, spec_file.spec.queries[0])
    reach = max(min(s, 41 - s) for (s,) in found.shifts)
    assert reach == 10


@pytest.mark.parametrize(
    ("delta", "most"), [("0.3", 1), ("0.3", 3), ("0.6", 4), ("0.8", 4), ("0.9", 2)]
)
@pytest.mark.parametrize(("name", "power"), [(LossName.ABSOLUTE, 1), (LossName.SQUARED, 2)])
def test_the_program_finds_the_grid_law_of_geng(
    delta: str, most: int, name: LossName, power: int
) -> None:
    """(0, δ) on a ring much wider than the noise, with falling masses: the same cost.

    Without that demand it finds less: the optimum of Geng et al. is one among falling laws.
    """
    size, share = 61, Fraction(delta)
    group = Group((size,))
    sensitivity = Sensitivity.of(group, ((s,) for s in range(1, most + 1)))
    loss = named_loss(name, Topology.CYCLIC, size)
    promise = Guarantee(Definition.APPROXIMATE, Fraction(0), share)
    noise = zero_delta_noise(most, share, Fraction(power))
    cost = sum(float(noise.mass(k)) * abs(k) ** power for k in range(noise.low, noise.high + 1))
    distance = np.minimum(np.arange(size), size - np.arange(size))
    falling = design(sensitivity, promise, loss, monotone(group, distance))
    assert float(falling.objective) == pytest.approx(cost, rel=1e-7)
    free = design(sensitivity, promise, loss)
    assert free.is_within()
    assert float(free.objective) <= cost * (1 + 1e-9)


def test_the_optimum_of_geng_is_one_among_falling_laws_only() -> None:
    """δ = 0.6, 4 steps, squared: masses 0.1 and 0.2 by turns cost 3.6 for 3.7333."""
    sensitivity = Sensitivity.of(Group((61,)), ((s,) for s in range(1, 5)))
    promise = Guarantee(Definition.APPROXIMATE, Fraction(0), Fraction("0.6"))
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, 61)
    assert float(design(sensitivity, promise, loss).objective) == pytest.approx(3.6, rel=1e-9)
    masses = {k: Fraction(2 - k % 2, 10) for k in range(-3, 4)}
    by_turns = IntegerPmf(-3, tuple(masses.values()))
    assert by_turns.deltas(4, Fraction(1)).approximate == Fraction("0.6")
    assert sum(mass * k * k for k, mass in masses.items()) == Fraction("3.6")
    best = zero_delta_noise(4, Fraction("0.6"), Fraction(2))
    assert sum(best.mass(k) * k * k for k in range(best.low, best.high + 1)) > Fraction("3.73")


@pytest.mark.parametrize("epsilon", ["0", "0.2", "1"])
def test_its_neighbors_come_from_the_same_program(epsilon: str) -> None:
    """As ε grows from 0 the loss falls, and every law is proved."""
    sensitivity = Sensitivity.of(Group((41,)), [(1,), (2,)])
    loss = named_loss(LossName.SQUARED, Topology.ORDERED, 41)
    losses = []
    for e in sorted({"0", epsilon, "2"}):
        promise = Guarantee(Definition.APPROXIMATE, Fraction(e), Fraction("0.05"))
        made = design(sensitivity, promise, loss)
        # docs/design/format.md lets a verifier take any rational within 10⁻³⁰ below e^ε.
        least = exp_bounds(Fraction(e))[0] - Fraction(1, 10**30)
        assert keeps(made.mechanism.pmf, sensitivity, promise, least)
        assert deltas_at_ratio(made.mechanism.pmf, sensitivity, least).approximate <= promise.delta
        losses.append(made.objective)
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("name", [LossName.ERROR_RATE, LossName.ABSOLUTE, LossName.SQUARED])
@pytest.mark.parametrize("delta", ["0.000000000001", "0.1", "0.999999999999"])
@pytest.mark.parametrize(
    ("size", "shifts"), [(4, [2]), (6, [2, 3]), (6, [3]), (9, [3]), (11, [1]), (11, [5])]
)
def test_epsilon_zero_on_any_differences(
    size: int, shifts: list[int], delta: str, name: LossName
) -> None:
    """Those that do not generate the group, and δ at both its ends."""
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in shifts))
    promise = Guarantee(Definition.APPROXIMATE, Fraction(0), Fraction(delta))
    loss = named_loss(name, Topology.ORDERED, size)
    made = design(sensitivity, promise, loss)
    assert made.guarantee == promise
    assert keeps(made.mechanism.pmf, sensitivity, promise, 1 - Fraction(1, 10**30))
    near = design(
        sensitivity, Guarantee(Definition.APPROXIMATE, Fraction(1, 10**9), Fraction(delta)), loss
    )
    assert float(made.objective) == pytest.approx(float(near.objective), rel=1e-5, abs=1e-6)


def test_zero_epsilon_without_a_delta_promises_nothing() -> None:
    for definition, delta in (
        (Definition.PURE, Fraction(0)),
        (Definition.PROBABILISTIC, Fraction(1, 10)),
        (Definition.APPROXIMATE, Fraction(0)),
        (Definition.APPROXIMATE, Fraction(1, 10**20)),
    ):
        with pytest.raises(ValueError, match="epsilon must be above 0"):
            Guarantee(definition, Fraction(0), delta)
    for epsilon in (Fraction(1, 10**13), Fraction(101), Fraction(-1)):
        with pytest.raises(ValueError, match=r"at least 10\^-12 and at most 100"):
            Guarantee(Definition.APPROXIMATE, epsilon, Fraction(1, 10))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"of": "unit"}, r"queries\[0\]\.of: 'unit' is declared string; needed is number"),
        ({"of": "nothing"}, r"queries\[0\]\.of: 'nothing' is not there"),
        ({"kind": "max"}, "found 'max'; write 'sum' or 'mean'"),
        ({"clamp": [3, 3]}, "lo below hi"),
        ({"clamp": [0, 2**30]}, r"within ±2\^29"),
        ({"domain": {"cyclic": 5}}, "domain: unknown field"),
        ({"grid": GRID | {"high": 19}}, "whole number of steps"),
        ({"grid": GRID | {"high": -6}}, "two points or more"),
        ({"grid": GRID | {"scale": "0"}}, "scale must be above 0"),
        ({"grid": GRID | {"scale": 0.25}}, "has to be exact"),
        ({"grid": GRID | {"step": 0}}, "step"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    path = write(tmp_path, [("u", "a", 0.0)], real(**fields))
    with pytest.raises(SpecError, match=says):
        read_spec(path)


def test_floats_that_differ_in_the_last_bit_are_one_answer(tmp_path: Path) -> None:
    """What is published has no trace of how a float was rounded: 0.1 + 0.2 is 0.3."""
    codes = []
    for value in (0.1 + 0.2, 0.3, np.nextafter(0.3, 1)):
        spec_file = read_spec(write(tmp_path, [("u", "a", float(value))], real()))
        with load(spec_file) as tables:
            codes.append(answer(tables, spec_file)[0].codes.tolist())
    assert codes[0] == codes[1] == codes[2]
