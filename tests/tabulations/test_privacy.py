"""The privacy loss of measured tables, computed anew from the files of a release.

Neighbors are tables of rows, counted by the engine. The probabilities are those of the mechanism
files, read by their text in the format. So nothing of the accounting is used but its result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.noise.design import GAP
from release.noise.unseen import find_unseen
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.street import run_release
from tests.answers import answer, load
from tests.tabulated import Plain, Row, Tabulated, plain_spec, rows_of

Floats = NDArray[np.float64]

LINES = [["s1", "t1"], ["s1", "t2"], ["s2", "t3"], ["s2", "t4"]]
FILES = {
    "tab.csv": [["state", "tract"], *LINES],
    "declared.csv": [["state", "count"], ["s1", "9"], ["s2", "8"]],
}
DECLARED = [
    {"impossible": {"race": ["b"], "size": [2]}},
    {"level": "state", "margin": [], "file": "declared.csv"},
]


def case(neighbors: str, noise: str, constraints: Sequence[Plain] = ()) -> Tabulated:
    """A tabulation that measures three tables."""
    tables = [("state", ["race"]), ("tract", []), ("tract", ["two", "size"])]
    shares = ["1", "2", "3/2"]
    tabulation: Plain = {
        "name": "tab",
        "table": "persons",
        "where": "wh IS NULL OR wh < 7",
        "hierarchy": {"file": "tab.csv", "levels": ["state", "tract"]},
        "attributes": {"race": ["b", "a", "c"], "size": [1, 2]},
        "groupings": {"two": {"of": "race", "classes": {"x": ["b"], "y": ["a", "c"]}}},
        "publish": {"state": [[], ["race"]], "tract": [[], ["two", "size"]]},
        "constraints": list(constraints),
        "strategy": {
            "noise": noise,
            "tables": [
                {"level": level, "margin": margin, "share": share}
                for (level, margin), share in zip(tables, shares, strict=True)
            ],
        },
    }
    delta = "0" if noise == "geometric" else "0.000001"
    spec = plain_spec([tabulation], neighbors=neighbors, budget=("2", delta))
    return Tabulated(spec, rows_of(Random(5), LINES, 12), FILES)  # noqa: S311


def masses(noise: Mapping[str, Any]) -> dict[int, Fraction]:
    """The probabilities of the integers, of the tails for 40 periods.

    From one period of a tail to the next all masses fall by one ratio: no loss is new out there.
    """
    pairs = zip(noise["lengths"], noise["weights"], strict=True)
    window = [int(weight) for length, weight in pairs for _ in range(length)]
    low, high = noise["low"], noise["low"] + len(window) - 1
    found = {low + place: Fraction(weight, sum(window)) for place, weight in enumerate(window)}
    for side, sign in (("left", -1), ("right", 1)):
        tail = noise[side]
        ratio, period = Fraction(int(tail["ratio"]), 2**64), tail["period"]
        end = high if sign > 0 else low
        for place in range(period):
            own = end - sign * place
            found[own] *= 1 - ratio
            for times in range(1, 41):
                found[own + sign * times * period] = found[own] * ratio**times
    return found


@dataclass(frozen=True)
class Made:
    """A release: the noise on each measured table, what it says that this amounts to, its spec."""

    mechanisms: dict[str, dict[int, Fraction]]
    epsilon: Fraction
    delta: Fraction
    spec_file: SpecFile


def made(folder: Path, own: Tabulated) -> Made:
    """Release a tabulation, and read its files."""
    folder.mkdir()
    public = run_release(own.write(folder), folder / "out").public
    record = json.loads((public / "release.json").read_bytes())
    mechanisms = {}
    for entry in record["made"]["tabulations"][0]["measured"]:
        file = json.loads((public / f"mechanisms/{entry['mechanism']}.json").read_bytes())
        assert file["ends"] == {"low": [], "high": []}
        mechanisms[entry["name"]] = masses(file["noise"])
    total = record["made"]["total"]
    spec_file = find_unseen(read_spec(folder / "spec.yaml"), None, GAP).spec_file
    return Made(mechanisms, Fraction(total["epsilon"]), Fraction(total["delta"]), spec_file)


def counts(folder: Path, own: Tabulated, released: Made) -> dict[str, Codes]:
    """The true counts of the measured tables, as the engine answers them."""
    folder.mkdir()
    own.write(folder)
    spec_file = replace(released.spec_file, folder=folder)
    with load(spec_file) as tables:
        return {run.query.name: run.codes for run in answer(tables, spec_file)}


def neighbors_of(rng: Random, own: Tabulated) -> Iterator[list[Row]]:
    """Tables in which one person's rows are added, removed or replaced."""
    names = sorted({row["person"] for row in own.rows})[:6]
    is_replaced = own.plain["privacy"]["neighbors"] == "replace_one"
    for name in names:
        others = [row for row in own.rows if row["person"] != name]
        new = [{**row, "person": name} for row in rows_of(rng, LINES, rng.randint(1, 3))]
        if is_replaced:
            yield [*others, *new]
            # Moved to another area and another category: two cells of every table.
            yield [*others, {**new[0], "tract": "t4", "race": "a", "size": 2, "wh": 1}]
        else:
            yield others
            yield [*own.rows, *({**row, "person": "new"} for row in new)]


def steps_of(one: Mapping[str, Codes], two: Mapping[str, Codes]) -> list[tuple[str, int]]:
    """The table and the change of each cell that differs."""
    steps = []
    for name, codes in one.items():
        changes = two[name] - codes
        steps += [(name, int(change)) for change in changes[changes != 0]]
    return steps


def ratios(mass: Mapping[int, Fraction], step: int) -> list[tuple[Fraction, Fraction]]:
    """The probabilities of each output of a cell under both neighbors."""
    return [(own, mass[noise - step]) for noise, own in mass.items() if noise - step in mass]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("constraints", [(), DECLARED])
def test_no_output_tells_more_than_pure_epsilon_and_some_tells_all_of_it(
    neighbors: str, constraints: Sequence[Plain], tmp_path: Path
) -> None:
    own = case(neighbors, "geometric", constraints)
    released = made(tmp_path / "made", own)
    assert released.delta == 0
    true, most = counts(tmp_path / "true", own, released), 0.0
    rng = Random(11)  # noqa: S311
    for number, rows in enumerate(neighbors_of(rng, own)):
        other = counts(tmp_path / f"other-{number}", own.with_rows(rows), released)
        steps = steps_of(true, other)
        assert all(abs(step) == 1 for _, step in steps)
        # Cells are independent: the worst output is the worst one of each.
        worst = Fraction(1)
        for name, step in steps:
            worst *= max(p / q for p, q in ratios(released.mechanisms[name], step))
        assert log(worst) <= released.epsilon
        most = max(most, log(worst))
        for _ in range(20):
            loss = Fraction(1)
            for name, step in steps:
                p, q = rng.choice(ratios(released.mechanisms[name], step))
                loss *= p / q
            assert log(loss) <= released.epsilon
    assert most >= released.epsilon * (1 - Fraction(1, 10**6))


GRID = 2.0**-11


def delta_of(released: Made, steps: Sequence[tuple[str, int]], epsilon: float) -> float:
    """δ at ε of one pair of neighbors; losses are rounded down, so that it is too low if anything.

    Independent cells' losses add up: their distributions are convolved.
    """
    size = 2**17
    spectrum = np.ones(size, dtype=np.complex128)
    for name, step in steps:
        distribution = np.zeros(size)
        for p, q in ratios(released.mechanisms[name], step):
            loss = int(log(p / q) // GRID)
            distribution[loss % size] += float(p)
        spectrum = spectrum * np.fft.fft(distribution)
    together = np.fft.ifft(spectrum).real
    losses = GRID * np.where(np.arange(size) < size // 2, np.arange(size), np.arange(size) - size)
    above = losses > epsilon
    return float((together[above] * (1 - np.exp(epsilon - losses[above]))).sum())


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_gaussian_noise_has_the_delta_that_the_release_says(neighbors: str, tmp_path: Path) -> None:
    own = case(neighbors, "gaussian")
    released = made(tmp_path / "made", own)
    assert released.delta == Fraction(1, 10**6)
    true, most = counts(tmp_path / "true", own, released), 0.0
    known: dict[tuple[tuple[str, int], ...], tuple[float, float]] = {}
    for number, rows in enumerate(neighbors_of(Random(12), own)):  # noqa: S311
        other = counts(tmp_path / f"other-{number}", own.with_rows(rows), released)
        steps = tuple(sorted(steps_of(true, other)))
        if steps not in known:
            found = delta_of(released, steps, float(released.epsilon))
            slack = len(steps) * GRID
            known[steps] = found, delta_of(released, steps, float(released.epsilon) - slack)
        least, greatest = known[steps]
        assert least <= released.delta
        most = max(most, greatest)
    # The same with losses rounded up comes near: the accounting gives away little.
    assert most >= 0.9 * float(released.delta)
