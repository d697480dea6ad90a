"""Laws kept on disk: solved once, proved on every load, and never of a confidential problem."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import stat
from fractions import Fraction
from pathlib import Path

import pytest

from release.exact.channel import answer_costs
from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss, worst_case
from release.exact.modular import Modular
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.job import Options
from release.noise.cache import DesignCache, default_cache, key_of
from release.noise.constraints import zero_mean
from release.noise.design import Design
from release.noise.solve import design
from release.noise.solvers.answers.problem import ChannelProblem
from release.street import run_release
from tests.small import Small, query

GROUP = Group((21,))
DIFFERENCES = Sensitivity.of(GROUP, [(1,), (2,)])
GUARANTEE = Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 1000))
SQUARED = named_loss(LossName.SQUARED, Topology.CYCLIC, 21)


def ask(folder: Path) -> Design[Modular]:
    return DesignCache(folder).design(DIFFERENCES, GUARANTEE, SQUARED)


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def refuse(*_: object, **__: object) -> Design[Modular]:
    raise AssertionError("it was solved again")


def test_a_problem_is_solved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mechanisms"
    first = ask(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.setattr("release.noise.cache.design", refuse)
    again = ask(folder)
    assert again.mechanism.pmf == first.mechanism.pmf
    assert (again.objective, again.lower_bound, again.method, again.solver, again.notes) == (
        first.objective,
        first.lower_bound,
        first.method,
        first.solver,
        first.notes,
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["weights"].reverse(),
        lambda r: r["weights"].pop(),
        lambda r: r.update(weights=["0"] * 20 + [str(2**62)]),
        lambda r: r.update(weights="no"),
        lambda r: r.update(lower_bound="1000000"),
        lambda r: r.update(lower_bound="1/0"),
        lambda r: r.update(lower_bound="0"),
        lambda r: r.update(schema="other"),
        lambda r: r.clear(),
    ],
)
def test_a_file_that_was_changed_is_not_believed(tmp_path: Path, change: object) -> None:
    first = ask(tmp_path)
    record = json.loads(only_file(tmp_path).read_text())
    change(record)  # type: ignore[operator] # a parametrised lambda
    only_file(tmp_path).write_text(json.dumps(record))
    again = ask(tmp_path)
    assert again.mechanism.pmf == first.mechanism.pmf
    assert again.lower_bound == first.lower_bound


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"[" * 100_000, b'{"weights": 1'])
def test_a_file_that_cannot_be_read_is_written_anew(tmp_path: Path, content: bytes) -> None:
    first = ask(tmp_path)
    path = only_file(tmp_path)
    path.write_bytes(content)
    assert ask(tmp_path).mechanism.pmf == first.mechanism.pmf
    assert json.loads(path.read_text())["schema"] == "dp-release/cached-law/v1"


def test_every_part_of_a_problem_is_part_of_its_key() -> None:
    asked = (DIFFERENCES, GUARANTEE, SQUARED, (), Fraction(1, 10))
    others = [
        (Sensitivity.of(GROUP, [(1,)]), *asked[1:]),
        (Sensitivity.of(GROUP, [(1,), (2,), (19,), (20,)], directed=True), *asked[1:]),
        (asked[0], Guarantee(Definition.PROBABILISTIC, Fraction(1), Fraction(1, 1000)), *asked[2:]),
        (asked[0], Guarantee(Definition.APPROXIMATE, Fraction(2), Fraction(1, 1000)), *asked[2:]),
        (asked[0], Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 999)), *asked[2:]),
        (*asked[:2], named_loss(LossName.ABSOLUTE, Topology.CYCLIC, 21), *asked[3:]),
        (*asked[:3], (zero_mean(GROUP),), asked[4]),
        (*asked[:4], Fraction(1, 11)),
    ]
    keys = {key_of(*one) for one in [asked, *others]}
    assert len(keys) == 1 + len(others)


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert ask(tmp_path / "file" / "mechanisms").mechanism.pmf == ask(tmp_path).mechanism.pmf


def test_two_processes_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        made = pool.map(ask, [tmp_path] * 3)
    assert made[0].mechanism.pmf == made[1].mechanism.pmf == made[2].mechanism.pmf
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"]


def test_everything_of_a_design_can_be_pickled() -> None:
    loss = worst_case(LossName.SQUARED, Topology.ORDERED, 21)
    made = design(DIFFERENCES, GUARANTEE, loss, [zero_mean(GROUP)])
    copy = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own
    assert copy.mechanism.pmf == made.mechanism.pmf
    assert copy.loss.of(copy.mechanism.pmf) == made.objective
    assert copy.sensitivity == made.sensitivity


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DP_RELEASE_CACHE", str(tmp_path))
    assert default_cache() == DesignCache(tmp_path)
    monkeypatch.setenv("DP_RELEASE_CACHE", "")
    assert default_cache() is None
    monkeypatch.delenv("DP_RELEASE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == DesignCache(tmp_path / "dp-release" / "mechanisms")


def test_laws_of_differences_seen_in_a_table_are_never_kept(tmp_path: Path) -> None:
    """They follow from confidential values, and the cache is not the auditor's folder."""
    rows = [{"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4} for i in range(9)]
    for source, files in (("empirical", 0), ("global", 1)):
        folder = tmp_path / source
        folder.mkdir()
        spec = Small(rows, [query("mode", sensitivity=source)]).write(folder)
        kept = folder / "mechanisms"
        run_release(spec, folder / "out", options=Options(cache=DesignCache(kept)))
        assert len(list(kept.glob("*"))) == files


def test_a_searched_channel_is_kept_with_its_bound_and_what_is_not_proved(tmp_path: Path) -> None:
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(1), Fraction(1, 20))
    costs, prior = answer_costs(2, 8), (Fraction(1, 8),) * 8
    problem = ChannelProblem((1,), guarantee, costs, prior)
    cache = DesignCache(tmp_path)
    made = cache.channel(problem)
    assert made.method == "branch and bound"
    (path,) = tmp_path.glob("*.json")
    again = cache.channel(problem)
    assert (again.objective, again.lower_bound) == (made.objective, made.lower_bound)
    assert (again.method, again.solver, again.notes) == (made.method, made.solver, made.notes)
    # A file may say little, and never that a channel is better than it is.
    record = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(record | {"lower_bound": str(2 * made.objective)}), "utf-8")
    assert cache.channel(problem).lower_bound == made.lower_bound
