"""Random small specs, the charges of which are held against what neighboring tables really lose.

A charge is a formula of public bounds, which differs by kind, relation, keys and bounds on a unit.
Here these meet in combinations that nobody thought of.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from dp_release_audit.guarantees import Guarantees
from dp_release_audit.laws import AnyMechanism, CellLaw, Laws, Truth
from dp_release_audit.program import Answers, Program
from dp_release_audit.tables import NOTHING, Case, Cases, Row
from dp_release_audit.verdict import Verdict
from dp_release_audit.words import Law, Outcome
from release.at_work import AtWork
from release.budget import cost
from release.errors import SpecError
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.mechanism import Mechanism
from release.exact.statistics.selection import Selection
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.histogram import HistogramTop
from release.exact.statistics.top.peeled import PeeledTop
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.spec.query import Query
from release.street import charges_of
from tests.small import Small, query

SEEDS = range(25)

TABLES = 7
"""So many tables of a spec are answered, and one without the unit: the time is mostly theirs."""

TOLD = (10, 15, 24)
"""Seeds by which half of a charge is told: of a count, and of sums of integers and of numbers."""

_EQUAL = 0.6
"""How often all rows of a unit are equal."""

_LARGEST = 64
"""No statistic of a table here is further from 0."""

_TOGETHER = 2
"""Queries of a spec: a table is written and opened once for both."""

_RELATIONS = ("replace_one", "add_remove", "attribute")
_BY: tuple[list[str], ...] = (["place"], ["day"], ["place", "day"], [])
_WHERE = (None, None, "wh > 0", "kind <> 1")
_EPSILONS = ("1/2", "1", "2")
_GLOBAL = {"sensitivity": "global"}


def spec(seed: int) -> Small:
    """A spec over a table of nobody."""
    rng = Random(seed)  # noqa: S311 - nothing is kept secret by it
    relation = rng.choice(_RELATIONS)
    return Small(
        [],
        [asked(rng, f"q{number}") for number in range(_TOGETHER)],
        neighbors=relation,
        max_rows_per_unit=rng.choice((1, 2, 2)),
        fixed=rng.choice(([], [], ["place"])),
        max_cells_per_unit=rng.choice((None, None, 1)),
        attribute=rng.choice(("kind", "wh", "day")) if relation == "attribute" else None,
    )


def asked(rng: Random, name: str) -> dict[str, Any]:
    """A query of any kind, with few answers."""
    plain = rng.choice(_KINDS)(rng)
    plain |= {"name": name, "by": rng.choice(_BY)}
    plain["guarantee"] = {"definition": "pure", "epsilon": rng.choice(_EPSILONS)}
    where = rng.choice(_WHERE)
    return plain if where is None else plain | {"where": where}


def _count(rng: Random) -> dict[str, Any]:
    few: dict[str, Any] = {"ordered": {"min": 0, "max": rng.choice((1, 3))}}
    plain = query("count", loss="absolute", domain=rng.choice((few, {"integers": {}})), **_GLOBAL)
    return plain | rng.choice(({}, {}, {"of": "unit"}, {"sensitivity": {"declared": [1]}}))


def _mode(rng: Random) -> dict[str, Any]:
    counted: tuple[dict[str, Any], ...] = (
        {"count": "units"},
        {"count": "rows"},
        {"weight": "wh", "clamp": rng.choice(([-1, 2], [0, 1]))},
    )
    return query(
        "mode", domain={"cyclic": rng.choice((2, 3))}, **rng.choice(counted), **_noisy(rng)
    )


def _top(rng: Random) -> dict[str, Any]:
    plain = query("mode", domain={"cyclic": 3}, count=rng.choice(("units", "rows")), **_GLOBAL)
    del plain["noise"]
    mechanism = rng.choice(("top_histogram", "top_canonical", "top_peeled"))
    return plain | {"kind": "top", "k": rng.choice((1, 2)), "mechanism": mechanism}


def _statistic(rng: Random) -> dict[str, Any]:
    statistic = rng.choice(("sum", "sum", "mean", "median", "min"))
    clamp = rng.choice(([-1, 2], [0, 2], [1, 2], [-3, -1]))
    bins = {"low": -3, "high": 3, "count": rng.choice((2, 3))}
    plain = query("binned", statistic=statistic, clamp=clamp, bins=bins, **_noisy(rng))
    needs_rank = statistic == "min" and plain["noise"] == "on_statistic"
    return plain | {"rank": 2} if needs_rank else plain


def _on_grid(rng: Random) -> dict[str, Any]:
    statistic = rng.choice(("sum", "mean"))
    return query("on_grid", statistic=statistic, clamp=[-1, 3], **_noisy(rng))


def _quantiles(rng: Random) -> dict[str, Any]:
    plain = query("binned", bins={"low": -1, "high": 2, "count": 3}, clamp=[-1, 1], **_GLOBAL)
    del plain["noise"]
    at = rng.choice((["1/2"], ["1/3"], ["1/4", "3/4"]))
    return plain | {"kind": "quantiles", "at": at}


def _noisy(rng: Random) -> dict[str, Any]:
    return {**_GLOBAL, "noise": rng.choice(("on_statistic", "on_statistic", "on_answer"))}


_KINDS = (_count, _count, _mode, _top, _statistic, _statistic, _on_grid, _quantiles)


def row(rng: Random, small: Small) -> Row:
    """A row of one unit, with values at the ends of what queries tell apart, and beyond."""
    # One home, because a unit that moves to another is no neighbor.
    place = "a" if small.fixed else rng.choice("ab")
    kind, wh = rng.choice((0, 1, 2)), rng.choice((-9, 0, 1, 9))
    return (("place", place), ("day", rng.choice((1, 2))), ("kind", kind), ("wh", wh))


def contents(rng: Random, small: Small) -> tuple[Row, ...]:
    """All rows of one unit: often equal ones, which move one cell most, and often one too many."""
    most = small.max_rows_per_unit + rng.choice((0, 0, 1))
    if rng.random() < _EQUAL:
        return (row(rng, small),) * most
    return tuple(row(rng, small) for _ in range(most))


def alternatives(rng: Random, small: Small, most: int) -> list[tuple[Row, ...]]:
    """What one unit may hold in tables of which any two are neighbors."""
    if small.attribute is None:
        return [contents(rng, small) for _ in range(most)]
    found = []
    base = contents(rng, small)
    for _ in range(most):
        values = [dict(row(rng, small))[small.attribute] for _ in base]
        if rng.random() < _EQUAL:
            values = values[:1] * len(base)
        changed = []
        for own, value in zip(base, values, strict=True):
            changed.append(tuple((dict(own) | {small.attribute: value}).items()))
        found.append(tuple(changed))
    return found


class Stated(Laws):
    """The chances that mechanisms state, where they do.

    Other tests hold the draws against them. A charge needs no more, and this takes a tenth of the
    time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stated: dict[tuple[int, Truth], CellLaw] = {}
        # Held, so that no other mechanism gets the identity of one.
        self._runs: list[AtWork] = []

    def of(self, run: AtWork, truth: Truth) -> CellLaw:
        """As :meth:`Laws.of`."""
        key = id(run.made), truth
        if key not in self._stated:
            self._runs.append(run)
            parts = stated_parts(run.made.mechanism, truth)
            self._stated[key] = super().of(run, truth) if parts is None else CellLaw(parts)
        return self._stated[key]


def stated_parts(mechanism: AnyMechanism, truth: Truth) -> tuple[Law, ...] | None:
    """The laws of the independent parts of a cell; None where the mechanism states none."""
    if isinstance(mechanism, IntegerMechanism):
        # Codes of all integers are far from 0, around the middle one.
        return (noisy(mechanism.noise, truth[0] - mechanism.size // 2),)
    # What is made of noisy integers, such as answers within the domain, says no more.
    if isinstance(mechanism, HistogramTop):
        return tuple(noisy(mechanism.histogram.noise, own) for own in truth)
    if isinstance(mechanism, NoisySums):
        return tuple(noisy(mechanism.noise, own) for own in truth)
    chances: Mapping[Outcome, Fraction]
    if isinstance(mechanism, Mechanism):
        weights = mechanism.row(truth[0]).tolist()
        chances = {(at,): Fraction(weight, mechanism.total) for at, weight in enumerate(weights)}
    elif isinstance(mechanism, Selection):
        counted = enumerate(mechanism.chances(np.array(truth, dtype=np.int64)))
        chances = {(at,): chance for at, chance in counted}
    elif isinstance(mechanism, CanonicalTop | PeeledTop):
        chances = mechanism.chances(truth)
    else:
        return None
    likely = {outcome: chance for outcome, chance in chances.items() if chance}
    return (Law(likely, Fraction(0), "enumerated"),)


def noisy(noise: IntegerNoise, true: int) -> Law:
    """The law of one integer with noise, on outcomes that are the same for all true integers."""
    assert abs(true) <= _LARGEST
    masses, reach = masses_of(noise)
    found: dict[Outcome, Fraction] = {}
    for outcome in range(-reach, reach + 1):
        mass = masses[outcome - true + reach + _LARGEST]
        if mass:
            found[(outcome,)] = mass
    return Law(found, max(Fraction(0), 1 - sum(found.values(), Fraction(0))), "enumerated")


@cache
def masses_of(noise: IntegerNoise) -> tuple[list[Fraction], int]:
    """Rounded masses from -r - T to r + T, T the largest true integer, and r.

    Beyond ±(r - T) lies less than an audit tells from 0.
    """
    reach = noise.radius(1 - 2.0**-44) + _LARGEST
    places = range(-reach - _LARGEST, reach + _LARGEST + 1)
    return [Fraction(float(noise.mass(place))) for place in places], reach


def audited(small: Small, seed: int, folder: Path, tables: int = TABLES) -> Verdict:
    """What the audit finds of the charges, on random tables and without its whole runs.

    Raises:
        SpecError: the spec is refused.
    """
    rng = Random(seed)  # noqa: S311 - as above
    program = Program(read_spec(small.write(folder)), folder)
    beside = (("rows", contents(rng, small)),)
    held = [(("rows", rows),) for rows in alternatives(rng, small, tables)]
    answers: dict[Case, Answers] = {}
    for own in dict.fromkeys([NOTHING, *held]):
        case = Case((own, beside))
        answers[case] = program.answers(case)
    absent, *present = answers
    charged, _ = charges_of(program.spec_file, answers[absent].runs)
    verdict = Verdict("small")
    guarantees = Guarantees(program.spec_file, charged, Stated(), verdict)
    # Asked of empirical queries only, of which there are none here.
    unseen = Cases(program.spec_file, tables, lambda case: _TOGETHER)
    pairs = list(permutations(present, 2))
    if small.neighbors == "add_remove":
        pairs = [*product([absent], present), *product(present, [absent])]
    for here, there in pairs:
        guarantees.compare(here, there, answers[here], answers[there], unseen)
    return verdict


def refusal(seed: int, folder: Path) -> str | None:
    """Why the spec of a seed is refused; None where it is not."""
    try:
        read_spec(spec(seed).write(folder))
    except SpecError as error:
        return str(error)
    return None


@pytest.mark.parametrize("seed", SEEDS)
def test_the_charges_of_a_random_spec_hold(seed: int, tmp_path: Path) -> None:
    refused = refusal(seed, tmp_path)
    if refused is not None:
        pytest.skip(refused)
    verdict = audited(spec(seed), seed, tmp_path)
    assert verdict.findings == []


def test_most_random_specs_are_audited(tmp_path: Path) -> None:
    accepted = [seed for seed in SEEDS if refusal(seed, tmp_path) is None]
    assert len(accepted) >= len(SEEDS) / 2


@pytest.mark.parametrize("seed", TOLD)
def test_half_of_a_charge_does_not_hold(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = cost.moved_together

    def half(spec_file: SpecFile, query: Query) -> Fraction:
        return right(spec_file, query) / 2

    monkeypatch.setattr(cost, "moved_together", half)
    verdict = audited(spec(seed), seed, tmp_path)
    assert "the charge" in [found.check for found in verdict.findings]
