"""The residual test: it passes noise, finds its absence, and its law is that of a brute force."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from release.errors import ReleaseError
from release.exact.domain import Group
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.job import Job, Stage
from release.noise.published.baselines import geometric_clamped
from release.queries.kinds.count import CountQuery
from release.street import run_release
from release.verification.residual_noise import chance_of_at_least, residual_pmf
from release.verification.residuals import Released, is_total_of, residuals
from release.verification.verifier import verify
from tests.small import Row, Small, query, write_rows

PLACES = [f"p{i:02}" for i in range(60)]


def write(folder: Path, rows: list[Row], mechanism: str = "modular") -> Path:
    """Counts by place, and by place and day."""
    alike = {
        "domain": {"ordered": {"min": 0, "max": 200}},
        "sensitivity": "global",
        "mechanism": mechanism,
    }
    queries = [
        query("count", name="total", by=["place"], **alike),
        query("count", name="parts", by=["day", "place"], **alike),
    ]
    plain = Small(rows, queries, max_rows_per_unit=1).plain()
    plain["keys"]["place"] = PLACES
    write_rows(folder / "rows.parquet", rows)
    (folder / "spec.yaml").write_text(json.dumps(plain))
    return folder / "spec.yaml"


def rows(days: tuple[int, ...]) -> list[Row]:
    return [
        {"unit": f"u{i}", "place": PLACES[i % 60], "day": days[i % len(days)], "kind": 0, "wh": 0}
        for i in range(3000)
    ]


@pytest.mark.parametrize("mechanism", ["modular", "integer"])
@pytest.mark.parametrize("days", [(1, 2), (1, 2, 3)])
def test_a_release_with_its_noise_passes(
    days: tuple[int, ...], mechanism: str, tmp_path: Path
) -> None:
    """Also where a third of the rows is of a day that is no key."""
    published = run_release(write(tmp_path, rows(days), mechanism), tmp_path / "out")
    told = [own.sentence for own in verify(published.public).findings if "residuals" in own.check]
    assert len(told) == 1
    assert told[0].startswith("total minus the sums of parts: ")


@pytest.mark.parametrize("mechanism", ["modular", "integer"])
def test_a_release_without_noise_is_found(mechanism: str, tmp_path: Path) -> None:
    def perform(stage: Stage, job: Job) -> None:
        if stage.name == "draw":
            job.noisy = tuple(run.codes for run in job.runs)
        else:
            stage.does(job)

    with pytest.raises(ReleaseError, match="60 of 60 residuals are within"):
        run_release(write(tmp_path, rows((1, 2)), mechanism), tmp_path / "out", perform)


LAWS = [
    Pmf.of(Group((5,)), [8, 3, 1, 1, 3]),
    Pmf.of(Group((4,)), [10, 2, 2, 2]),
    Pmf.of(Group((7,)), [64, 20, 10, 2, 2, 10, 20]),
]


def centred(law: Pmf) -> list[tuple[int, Fraction]]:
    size = law.group.size
    return [(i if i <= size // 2 else i - size, law.mass(i)) for i in range(size)]


@pytest.mark.parametrize("share", [1, 2, 3])
@pytest.mark.parametrize(("total", "parts"), list(itertools.product([0, 2], repeat=2)))
def test_the_law_of_a_residual_is_that_of_all_outcomes(total: int, parts: int, share: int) -> None:
    expected: dict[int, Fraction] = defaultdict(Fraction)
    for first, *others in itertools.product(centred(LAWS[total]), *[centred(LAWS[parts])] * share):
        residual = abs(first[0] - sum(value for value, _ in others))
        mass = first[1]
        for _, one in others:
            mass *= one
        expected[residual] += mass
    found = residual_pmf(LAWS[total], LAWS[parts], share)
    assert found is not None
    for residual, mass in enumerate(found.tolist()):
        assert mass == pytest.approx(float(expected.get(residual, 0)), abs=1e-12)


def count(by: list[str], **fields: Any) -> CountQuery:
    return TypeAdapter(CountQuery).validate_python(query("count", by=by, **fields))


def test_only_counts_of_the_same_rows_are_compared() -> None:
    total, parts = count(["place"]), count(["day", "place"])
    assert is_total_of(total, parts)
    assert not is_total_of(parts, total)
    assert not is_total_of(total, total)
    assert not is_total_of(total, count(["day", "place"], where="wh > 1"))
    assert not is_total_of(total, count(["day", "place"], max_rows_per_unit=1))
    assert not is_total_of(total, count(["day", "place"], of="unit"))
    assert not is_total_of(count([]), count(["day"], table="other"))


def test_of_laws_that_do_not_fall_off_no_chance_is_told_that_is_too_small() -> None:
    """All outcomes of one total and two parts: it is 0 no more often than is said."""
    rises = Pmf.of(Group((5,)), [2, 6, 1, 1, 6])
    leans = Pmf.of(Group((5,)), [8, 4, 2, 1, 1])
    good = Pmf.of(Group((5,)), [8, 3, 1, 1, 3])
    trues = itertools.product(range(5), repeat=3)
    for law, (total, first, second) in [(law, t) for t in trues for law in (rises, leans)]:
        zero = Fraction(0)
        for a, b in itertools.product(range(5), repeat=2):
            wanted = (a + first) % 5 + (b + second) % 5
            if wanted < 5:
                zero += law.mass(a) * law.mass(b) * good.mass((wanted - total) % 5)
        one = Released(count([]), Modular(good), ((),), np.array([2]))
        parts = Released(count(["day"]), Modular(law), (("1",), ("2",)), np.array([1, 1]))
        found = residuals(one, parts)
        assert found is not None
        assert (found.small, found.within) == (1, 0)
        assert float(zero) <= found.chance


def test_false_alarms_of_channels_are_rare_at_the_edges_too() -> None:
    """Counts of 0, where a clamped channel is most often right: the chance is never below 1e-6."""
    channel = geometric_clamped(30, Fraction(2))
    for _ in range(200):
        one, two = (
            Released(
                count(by, domain={"ordered": {"min": 0, "max": 29}}),
                channel,
                keys,
                channel.draw(np.zeros(len(keys), dtype=np.int64)),
            )
            for by, keys in (
                (["place"], tuple((f"{i:02}",) for i in range(40))),
                (["day", "place"], tuple((d, f"{i:02}") for d in "12" for i in range(40))),
            )
        )
        found = residuals(one, two)
        assert found is not None
        assert found.chance > 1e-6


def geometric(size: int) -> Pmf:
    """Two-sided geometric noise at e^ε = 2, in 2^40ths."""
    masses = [2.0 ** -min(i, size - i) for i in range(size)]
    weights = [int(mass / sum(masses) * 2**40) for mass in masses]
    weights[0] += 2**40 - sum(weights)
    return Pmf.of(Group((size,)), weights)


@pytest.mark.parametrize("true", [(0, 0), (60, 0), (60, 30), (60, 29), (100, 50), (3, 0)])
@pytest.mark.parametrize("size", [101, 102])
def test_false_alarms_are_as_rare_as_they_say_whatever_the_counts(
    true: tuple[int, int], size: int
) -> None:
    """500 honest pairs: a chance below 1/20 is told of few more than one in 20, wraps included."""
    laws = geometric(101), geometric(size)
    alarms = 0
    for _ in range(500):
        one = Released(
            count(["place"], domain={"ordered": {"min": 0, "max": 100}}),
            Modular(laws[0]),
            tuple((f"{i:02}",) for i in range(40)),
            Modular(laws[0]).draw(np.full(40, true[0])),
        )
        two = Released(
            count(["day", "place"], domain={"ordered": {"min": 0, "max": size - 1}}),
            Modular(laws[1]),
            tuple((day, f"{i:02}") for day in "12" for i in range(40)),
            Modular(laws[1]).draw(np.full(80, true[1])),
        )
        found = residuals(one, two)
        assert found is not None
        alarms += found.chance < 0.05
    # More than 60 of 500 at 1/20 each: about once in four billion runs.
    assert alarms <= 60


def test_the_chance_of_many_is_at_least_the_binomial_one() -> None:
    from scipy.stats import binom

    for number, successes, chance in [
        (10, 7, 0.5),
        (1000, 600, 0.5),
        (5000, 2700, 0.5),
        (3, 0, 0.1),
    ]:
        exact = float(binom.sf(successes - 1, number, chance))
        assert chance_of_at_least(number, successes, chance) >= exact * (1 - 1e-9)
        if number <= 1000:
            assert chance_of_at_least(number, successes, chance) == pytest.approx(exact)
