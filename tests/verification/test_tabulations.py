"""Measured tables of a tabulation: their residuals, and what their entries say of their files."""

from __future__ import annotations

import copy
from fractions import Fraction

import numpy as np
import pytest

from release.errors import VerificationError
from release.exact.domain import Codes
from release.exact.integers.mechanism import IntegerMechanism
from release.noise.solvers.staircase import staircase
from release.pipeline import run_release
from release.spec.model import Spec
from release.spec.tabulations.areas import nested
from release.spec.tabulations.open import with_areas
from release.spec.tabulations.opened import OpenTabulation
from release.verification.tabulations import MeasuredCounts, check_residuals
from release.verification.verifier import verify
from tests.small import UNSIGNED
from tests.spec.tabulations.test_check import PLAIN
from tests.tabulated import Plain, Tabulated, plain_spec
from tests.verification.test_forgeries import Forger, read, written

COUNTIES = 30
AREAS = [(f"c{i:02}", f"t{i:02}{part}") for i in range(COUNTIES) for part in "ab"]
"""Two tracts in each county."""
NOISE = IntegerMechanism(staircase((1,), Fraction(1, 100), 1).noise, 2**20)


def opened() -> OpenTabulation:
    return with_areas(Spec.model_validate(PLAIN), 0, nested("file", ["county", "tract"], AREAS))


def counts(level: str, names: list[str], numbers: Codes) -> MeasuredCounts:
    """The counts of a table, of which each row is an area."""
    name = "_".join([level, *names])
    table = opened().table(level, names).table
    return MeasuredCounts(name, name, table, NOISE, numbers, by_bytes=True)


def numbered(areas: int, cells: int) -> Codes:
    return np.arange(areas * cells, dtype=np.int64).reshape(areas, cells) ** 2


PARTS = {
    "tracts": counts("tract", ["adult"], numbered(2 * COUNTIES, 2)),
    "cells": counts("county", ["race", "age"], numbered(COUNTIES, 8)),
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_a_total_without_noise_is_refused(parts: MeasuredCounts) -> None:
    """In either order of the two tables."""
    sums = parts.counts.reshape(COUNTIES, -1).sum(axis=1, keepdims=True)
    exact, noisy = counts("county", [], sums), counts("county", [], sums + 1)
    name = f"county minus the sums of {parts.name}"
    for both in ([exact, parts], [parts, exact]):
        with pytest.raises(VerificationError, match=f"{name}: 30 of 30 residuals are within"):
            list(check_residuals(opened(), both))
    for both in ([noisy, parts], [parts, noisy]):
        (found,) = check_residuals(opened(), both)
        assert found.text.startswith(f"{name}: 0 of 30 residuals are within")


def test_tables_of_which_neither_is_a_total_are_not_compared() -> None:
    """Groups of ages have no races, and counties are no parts of tracts."""
    races, tracts = counts("county", ["race"], numbered(COUNTIES, 2)), PARTS["tracts"]
    assert not list(check_residuals(opened(), [races, tracts]))
    totals = counts("tract", [], numbered(2 * COUNTIES, 1))
    assert not list(check_residuals(opened(), [totals, PARTS["cells"]]))


MEASURED: Plain = {
    "name": "tab",
    "table": "persons",
    "hierarchy": {"file": "tab.csv", "levels": ["state", "tract"]},
    "attributes": {"race": ["a", "b"]},
    "publish": {"state": [[]], "tract": [["race"]]},
    "strategy": {
        "tables": [
            {"level": "state", "margin": [], "share": "1"},
            {"level": "tract", "margin": ["race"], "share": "1"},
        ]
    },
}


@pytest.fixture(scope="module")
def forger(tmp_path_factory: pytest.TempPathFactory) -> Forger:
    """A release of two measured tables, one of them the total of the other."""
    folder = tmp_path_factory.mktemp("measured")
    files = {"tab.csv": [["state", "tract"], ["s1", "t1"], ["s1", "t2"], ["s2", "t3"]]}
    case = Tabulated(plain_spec([copy.deepcopy(MEASURED)]), [], files)
    run_release(case.write(folder), folder / "made")
    return Forger(folder / "made", folder / "out")


def test_a_verdict_tells_of_the_residuals_of_measured_tables(forger: Forger) -> None:
    verdict = verify(forger.public, None, UNSIGNED)
    (found,) = (one.text for one in verdict.findings if one.identifier == "residuals")
    assert found.startswith("tab_state_total minus the sums of tab_tract_race: ")


def test_the_named_noise_is_that_of_the_mechanisms(forger: Forger) -> None:
    path = forger.public / "release.json"
    plain = read(path)
    assert plain["tabulations"][0]["noise"] == "geometric"
    plain["tabulations"][0]["noise"] = "gaussian"
    path.write_bytes(written(path, plain))
    forger.fit(path)
    told = r"tabulations\.tab\.noise: found 'gaussian', expected 'geometric'$"
    with pytest.raises(VerificationError, match=told):
        verify(forger.public, None, UNSIGNED)
    forger.restore()


def test_an_entry_has_as_many_rows_as_its_table(forger: Forger) -> None:
    path = forger.public / "release.json"
    plain = read(path)
    (first, _) = plain["tabulations"][0]["measured"]
    assert (first["name"], first["cells"], first["output"]["rows"]) == ("tab_state_total", 2, 2)
    first["output"]["rows"] = 3
    path.write_bytes(written(path, plain))
    forger.fit(path)
    with pytest.raises(VerificationError, match=r"tab_state_total \(rows\): found 3, expected 2$"):
        verify(forger.public, None, UNSIGNED)
    forger.restore()
