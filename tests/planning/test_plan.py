"""Plans: what a release will have, without a table; targets against brute force."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from release.bundle.statements import accuracy_of
from release.errors import DesignError, SpecError
from release.exact.channel import Channel
from release.exact.domain import Topology
from release.exact.privacy import Guarantee
from release.noise.families import Solvers
from release.noise.select import compare
from release.planning.compare import Losses, curves_at_equal_loss, losses_by_epsilon, side_by_side
from release.planning.page import compare_html
from release.planning.plan import (
    MOST_ALLOWED,
    ONE_STEP,
    QueryPlan,
    make_plan,
    possible,
    without_baselines,
)
from release.planning.targets import delta_for, epsilon_for
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.spec.losses import parse_target
from release.spec.mechanisms import BEST
from release.street import run_release
from tests.cli.test_main import run
from tests.small import Small, joint, mechanism_of, part, query

Capture: TypeAlias = pytest.CaptureFixture[str]

QUERIES: list[dict[str, Any]] = [
    query("count", sensitivity="global", loss="squared"),
    query("mode", sensitivity="global"),
    query("binned", sensitivity={"declared": [1, 2, 3, 4, 5]}, loss="absolute", name="declared"),
]


def spec_of(tmp_path: Path, *queries: dict[str, Any], **fields: Any) -> SpecFile:
    path = Small([], list(queries), **fields).write(tmp_path)
    (tmp_path / "rows.parquet").unlink()
    return read_spec(path)


def test_a_plan_is_what_the_release_will_have(tmp_path: Path) -> None:
    """Mechanism, accuracy, loss and charge, for structural and declared differences."""
    path = Small([], QUERIES).write(tmp_path)
    plan = make_plan(read_spec(path))
    public = run_release(path, tmp_path / "out").public
    made = json.loads((public / "release.json").read_bytes())["made"]
    assert Fraction(made["total"]["epsilon"]) == plan.epsilon
    for one, record in zip(plan.queries, made["queries"], strict=True):
        mechanism = mechanism_of(public, record["name"])
        assert one.assumed is None
        assert accuracy_of(mechanism, one.query.answers) == one.chosen.accuracy
        assert mechanism.family == one.chosen.mechanism
        assert Fraction(record["charge"]["epsilon"]) == one.charge.epsilon


def test_queries_that_ask_alike_are_compared_once(tmp_path: Path) -> None:
    """A hundred counts took a hundred times one; what differs in any part has its own."""
    one = query("count", sensitivity="global", domain={"ordered": {"min": 0, "max": 3}})
    others: list[dict[str, Any]] = [
        {},
        {"loss": "squared"},
        {"domain": {"ordered": {"min": 0, "max": 4}}},
        {"guarantee": {"definition": "pure", "epsilon": "2"}},
        {"mechanism": "modular"},
        {"sensitivity": "empirical"},
    ]
    asked = [{**one, **fields, "name": f"q{place}"} for place, fields in enumerate(others)]
    plans = make_plan(spec_of(tmp_path, one, *asked)).queries
    assert plans[1].chosen is plans[0].chosen
    assert plans[1].query.name == "q0"
    for planned in plans[2:]:
        assert planned.chosen is not plans[0].chosen
    # Each is what it is alone.
    for planned, alone in zip(plans[1:], asked, strict=False):
        (own, *_) = make_plan(spec_of(tmp_path, alone)).queries
        assert own.chosen.objective == planned.chosen.objective
        assert own.chosen.accuracy == planned.chosen.accuracy
        assert [other.mechanism for other in own.others] == [
            other.mechanism for other in planned.others
        ]
        assert own.charge == planned.charge


def brute_within(one: QueryPlan) -> float:
    """The share of answers at most ``within`` codes off, cell by cell of the law."""
    size = one.asked.domain.size
    rows = Channel.of_mechanism(one.chosen.design.mechanism).to_floats()
    near = 0.0
    assert one.chosen.within is not None
    for true, published in product(range(size), repeat=2):
        apart = abs(true - published)
        if one.query.kind == "mode":
            apart = min(apart, size - apart)
        near += rows[true, published] * (apart <= one.chosen.within) / size
    return near


def test_intervals_hold_in_95_of_100(tmp_path: Path) -> None:
    for one in make_plan(spec_of(tmp_path, *QUERIES)).queries:
        assert brute_within(one) >= 0.95 - 1e-12


def test_errors_at_the_ends_are_those_of_their_rows(tmp_path: Path) -> None:
    """Of every mechanism of the plan, row by row; circles and categories have no ends."""
    places = {"nominal": ["a", "b", "c"]}
    tuples = [
        part("one", "count", by=["day"]),
        part("two", "mode", by=["day"]),
        part("three", "mode", of="place", domain=places, by=["day"]),
        joint("one", "two", "three", name="all_three", by=["day"], sensitivity="global"),
    ]
    plan = make_plan(spec_of(tmp_path, *QUERIES, *tuples))
    for one in plan.queries:
        parts = one.asked.domain.parts
        for candidate in (one.chosen, *one.others):
            if one.query.kind == "mode":
                assert candidate.ends is None
                continue
            rows = Channel.of_mechanism(candidate.design.mechanism).to_floats()
            sizes = [part.size for part in parts]
            answers = list(product(*map(range, sizes)))
            assert candidate.ends is not None
            for end, place in zip(candidate.ends, (0, -1), strict=True):
                wanted = 0.0
                for published, mass in zip(answers, rows[place], strict=True):
                    for code, true, one_part in zip(published, answers[place], parts, strict=True):
                        apart = abs(code - true)
                        if one_part.topology is Topology.CYCLIC:
                            apart = min(apart, one_part.size - apart)
                        if one_part.topology is Topology.NOMINAL:
                            apart = min(apart, 1)
                        wanted += mass * apart
                assert float(end) == pytest.approx(wanted)


def test_a_plan_shows_what_a_mean_hides(tmp_path: Path, capsys: Capture) -> None:
    """Modular noise is near on average and far off at the ends, where most counts are."""
    wide = {"ordered": {"min": 0, "max": 999}}
    counted = query("count", sensitivity="global", domain=wide, loss="absolute")
    path = Small([], [counted], max_rows_per_unit=1).write(tmp_path)
    status, printed, _ = run(capsys, "-v", "plan", path, "--json")
    assert status == 0
    (plan,) = json.loads(printed)["queries"]
    families = {one["mechanism"]: one for one in plan["candidates"]}
    assert plan["mechanism"] == "integer"
    for name in ("integer", "geometric_clamped"):
        assert families[name]["at_lowest"] < 1
        assert families[name]["at_highest"] < 1
    assert float(families["modular"]["mean_absolute"]) < 2
    assert families["modular"]["at_lowest"] > 200
    lines = run(capsys, "-v", "plan", path)[1].splitlines()
    assert re.search(r"mean error +at lowest +at highest", lines[0])
    (modular,) = (line for line in lines if line.lstrip().startswith("modular"))
    for end in ("at_lowest", "at_highest"):
        assert f"  {families['modular'][end]:.4g} rows" in modular


def test_people_read_errors_in_the_unit_of_the_answer(tmp_path: Path, capsys: Capture) -> None:
    """In the text and on the pages; JSON stays in codes."""
    bins = {"low": 0, "high": 300, "count": 6}
    energy = query("binned", bins=bins, units="Wh", sensitivity={"declared": [1]}, loss="absolute")
    places = {"nominal": ["a", "b", "c"]}
    commonest = query("mode", of="place", domain=places, sensitivity="global", name="commonest")
    path = Small([], [energy, commonest]).write(tmp_path)
    status, printed, _ = run(capsys, "plan", path, "--json")
    assert status == 0
    plan = json.loads(printed)["queries"][0]["candidates"][0]
    mean = f"{50 * float(plan['mean_absolute']):.4g} Wh"
    within = f"±{50 * plan['within_95']} Wh"
    page = tmp_path / "plan.html"
    printed = run(capsys, "-v", "plan", path, "--html", page)[1]
    rows = {line.split()[0]: line for line in printed.splitlines()}
    assert f"  {mean}  " in rows["the_binned"]
    assert f"  {within}  " in rows["the_binned"]
    # Categories have no distances.
    assert re.search(r"modular \* +0\.\d+  -  +-  +-  +-  ", rows["commonest"])
    text = page.read_text("utf-8")
    assert f">{mean}<" in text
    assert f">{within}<" in text
    assert "published minus true answer, in Wh" in text
    assert "its neighbor, 50 away" in text
    assert run(capsys, "compare", path, "the_binned", "--html", page)[0] == 0
    text = page.read_text("utf-8")
    assert "published minus true answer, in Wh" in text
    assert re.search(r">±[1-9]\d*[05]0 Wh<|>±50 Wh<", text)


def test_both_ends_of_what_will_be_seen_are_shown(tmp_path: Path) -> None:
    asked = query("count", loss="squared")
    plan = make_plan(spec_of(tmp_path, asked, max_rows_per_unit=3))
    assert [one.assumed for one in plan.queries] == [ONE_STEP, MOST_ALLOWED]
    least, most = plan.queries
    assert least.asked.sensitivity.distances == (1,)
    assert most.asked.sensitivity.distances == (1, 2, 3)
    assert least.chosen.objective < most.chosen.objective
    # One query, one charge.
    assert plan.epsilon == least.charge.epsilon


@pytest.mark.parametrize("loss", ["error_rate", "squared"])
def test_the_least_epsilon_is_enough_and_a_hundredth_less_is_not(loss: str, tmp_path: Path) -> None:
    spec_file = spec_of(tmp_path, *QUERIES)
    target = parse_target("--epsilon-for", f"{loss} <= 0.4")
    found = list(epsilon_for(spec_file, target))
    assert [one.query.name for one in found] == ["the_count", "the_mode", "declared"]
    for one, (_, asked) in zip(
        found, (pair for q in found for pair in possible(spec_file, q.query)), strict=True
    ):
        assert one.objective <= Fraction(2, 5)
        less = Guarantee(
            one.guarantee.definition, one.guarantee.epsilon - Fraction(1, 100), one.guarantee.delta
        )
        other = without_baselines(one.query, replace(asked, guarantee=less), Solvers())
        assert other.objective > Fraction(2, 5)
        assert one.charge.epsilon == one.charge.cells * one.guarantee.epsilon


def test_the_least_delta_is_enough(tmp_path: Path) -> None:
    """Where any answer may turn into any other the least δ for an error rate is known."""
    spec_file = spec_of(tmp_path, query("mode", sensitivity="global"))
    (found,) = delta_for(spec_file, parse_target("--delta-for", "error_rate <= 0.3"))
    # f(0) = δ + (1-δ)·p with p = e/(e+3), so δ = (0.7 - p)/(1 - p), up to a thousandth.
    p = 2.718281828 / (2.718281828 + 3)
    assert float(found.guarantee.delta) == pytest.approx((0.7 - p) / (1 - p), abs=1e-3)
    assert found.objective <= Fraction(3, 10)


@pytest.mark.parametrize(
    "text", ["", "error_rate", "error_rate < 0.2", "loss <= 1", "squared <= x", "absolute <= 1 2"]
)
def test_a_target_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="--epsilon-for"):
        parse_target("--epsilon-for", text)


def test_a_target_out_of_reach_is_refused(tmp_path: Path) -> None:
    spec_file = spec_of(tmp_path, query("mode", sensitivity="global"))
    with pytest.raises(DesignError, match="raise the cap"):
        list(epsilon_for(spec_file, parse_target("--epsilon-for", "error_rate <= 0")))


def test_targets_of_mechanisms_that_cannot_be_made_everywhere(tmp_path: Path) -> None:
    """A pinned Gaussian needs δ, and ε = 0 has no pure promise: neither ends a search."""
    promise = {"definition": "approximate", "epsilon": "1", "delta": "0.1"}
    nothing = {"definition": "approximate", "epsilon": "0", "delta": "0.1"}
    spec_file = spec_of(
        tmp_path,
        query("count", sensitivity="global", mechanism="gaussian_clamped", guarantee=promise),
        query("count", sensitivity="global", name="at_zero", guarantee=nothing),
    )
    target = parse_target("--delta-for", "error_rate <= 0.7")
    for one in delta_for(spec_file, target):
        assert one.objective <= Fraction(7, 10)
        assert one.guarantee.delta > 0
    ((_, asked),) = possible(spec_file, spec_file.spec.released[1])
    assert list(curves_at_equal_loss(asked, compare(asked, Solvers())[0], Solvers())) == []
    assert {len(one.epsilons) for one in losses_by_epsilon(asked, BEST, Solvers())} == {1}


def test_all_families_side_by_side(tmp_path: Path) -> None:
    """Losses fall with ε, the best is never behind, and at equal loss it tells least."""
    spec_file = spec_of(tmp_path, QUERIES[0])
    ((_, asked),) = possible(spec_file, spec_file.spec.released[0])
    found = {one.mechanism: one for one in losses_by_epsilon(asked, BEST, Solvers())}
    for one in found.values():
        there = [loss for loss in one.losses if loss is not None]
        assert there == sorted(there, reverse=True)
    for place in range(5):
        least = min(float(o.losses[place] or 1e9) for o in found.values())
        assert float(found["channel"].losses[place] or 0) <= least + 1e-9
    made, _ = compare(asked, Solvers())
    kept = {one.mechanism: one for one in curves_at_equal_loss(asked, made, Solvers())}
    promised = kept["channel"].epsilons.index(float(asked.guarantee.epsilon))
    assert kept["channel"].deltas[promised] == 0
    assert all(one.deltas[promised] >= 0 for one in kept.values())
    assert kept["randomised_response"].deltas[promised] > 0.1
    for side in side_by_side(asked, made):
        assert sum(side.masses) <= 1 + 1e-9


def test_a_family_of_too_many_pairs_has_no_curve(tmp_path: Path) -> None:
    """With 1,000 answers a curve took minutes and gigabytes."""
    wide = {"ordered": {"min": 0, "max": 249}}
    spec_file = spec_of(tmp_path, query("mode", of="wh", domain=wide, sensitivity="global"))
    (asked_query,) = spec_file.spec.released
    ((_, asked),) = possible(spec_file, asked_query)
    names = ("geometric_truncated", "randomised_response")
    made, _ = compare(asked, Solvers(), names)
    curves = tuple(curves_at_equal_loss(asked, made, Solvers()))
    assert {one.mechanism: len(one.deltas) for one in curves} == {names[0]: 0, names[1]: 25}
    losses = [Losses(name, (Fraction(1),), (Fraction(1, 2),), made[name]) for name in names]
    page = compare_html(asked_query, asked, losses, {}, curves, side_by_side(asked, made))
    assert "Not drawn, for too many pairs of neighboring answers: geometric_truncated." in page
    page = compare_html(asked_query, asked, losses, {}, curves[:1], side_by_side(asked, made))
    assert "Delta of each mechanism" not in page


def test_comparisons_say_charges_and_have_the_query_s_own_mechanism(
    capsys: Capture, tmp_path: Path
) -> None:
    """In four cells a unit moves what two cells' noise hides, if that loses in proportion."""
    wide = {"ordered": {"min": 0, "max": 5000}}
    claimed = {"definition": "approximate", "epsilon": "1", "delta": "0.001"}
    shared_out = query("count", sensitivity="global", loss="squared", by=["place", "day"])
    named = query(
        "count", name="named", mechanism="gaussian_clamped", sensitivity="global", domain=wide
    )
    spec_of(tmp_path, shared_out, {**named, "guarantee": claimed})
    spec = str(tmp_path / "spec.yaml")
    planned = json.loads(ran(capsys, "plan", spec, "--json").stdout)["queries"]
    for place, (name, mechanism) in enumerate(
        [("the_count", "integer"), ("named", "gaussian_clamped")]
    ):
        told = json.loads(ran(capsys, "compare", spec, name, "--json").stdout)
        found = {one["mechanism"]: one for one in told["mechanisms"]}
        assert None not in found[mechanism]["losses"].values()
        assert found[mechanism]["charge"] == planned[place]["charge"]
        charged = {one["charge"]["epsilon"] for one in found.values() if one["charge"]}
        assert charged == ({"2", "4"} if name == "the_count" else {"2"})


class Told(NamedTuple):
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def ran(capsys: Capture, *arguments: str) -> Told:
    return Told(*run(capsys, *arguments))


def test_the_commands(capsys: Capture, tmp_path: Path) -> None:
    """Tables and JSON say the same; nothing confidential has to be there."""
    spec_of(tmp_path, *QUERIES)
    say = partial(ran, capsys)
    path = str(tmp_path / "spec.yaml")
    told = say("plan", path)
    assert told.returncode == 0, told.stderr
    assert "charged together: ε = 6" in told.stdout
    plain = json.loads(say("plan", path, "--json", "--html", str(tmp_path / "p.html")).stdout)
    assert [one["name"] for one in plain["queries"]] == ["the_count", "the_mode", "declared"]
    assert plain["queries"][0]["mechanism"] == "channel"
    assert plain["over_budget"] is False
    page = (tmp_path / "p.html").read_text("utf-8")
    assert "<script" not in page
    for name in ("the_count", "the_mode", "declared"):
        assert name in page
    least = json.loads(say("plan", path, "--epsilon-for", "error_rate <= 0.5", "--json").stdout)
    assert len(least["least"]) == 3
    compared = ran(
        capsys, "compare", path, "the_count", "--json", "--html", str(tmp_path / "c.html")
    )
    assert json.loads(compared.stdout)["mechanisms"][0]["mechanism"] == "channel"
    assert "Noise distributions side by side" in (tmp_path / "c.html").read_text("utf-8")


def test_what_is_left_in_the_ledger(capsys: Capture, tmp_path: Path) -> None:
    spec_of(tmp_path, *QUERIES)
    key, out = str(tmp_path / "key"), str(tmp_path / "out")
    assert ran(capsys, "ledger", "key", "new", key).returncode == 0
    made = ran(
        capsys,
        *("ledger", "init", "--out", out, "--key", key),
        *("--origin", "example.org/t", "--scope", "tests:5:0.5"),
    )
    assert made.returncode == 0, made.stderr
    told = ran(capsys, "plan", str(tmp_path / "spec.yaml"), "--ledger", f"{out}/ledger")
    assert ran(capsys, "plan", str(tmp_path / "spec.yaml"), "--ledger", f"{out}") == told
    assert "left in tests: ε = 5, δ = 0.5; after this ε = -1 (too little), δ = 0.5" in told.stdout
    # As the run would end.
    assert told.returncode == 1
    assert "budget.epsilon: scope 'tests' has spent 0, the release costs 6" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan", "SPEC", "--epsilon-for", "nothing"], "--epsilon-for"),
        (["plan", "SPEC", "--epsilon-for", ""], "--epsilon-for"),
        (["plan", "SPEC", "--delta-for", "squared <= 1", "--html", "x.html"], "--html"),
        (["plan", "nowhere.yaml"], "nowhere.yaml"),
        (
            ["compare", "SPEC", "nobody"],
            "QUERY: 'nobody' is not in the spec; write one of the_count",
        ),
        (["init", "SPEC"], "TABLE"),
        (["plan", "SPEC", "--html", "/nowhere/page.html"], "--html"),
    ],
)
def test_a_call_that_cannot_be_meant(
    arguments: list[str], says: str, capsys: Capture, tmp_path: Path
) -> None:
    spec_of(tmp_path, QUERIES[0])
    place = str(tmp_path / "spec.yaml")
    told = ran(capsys, *(place if word == "SPEC" else word for word in arguments))
    assert told.returncode == (1 if "/nowhere/page.html" in arguments else 2)
    (line,) = (one for one in told.stderr.splitlines() if not one.endswith(" ..."))
    assert line.startswith("error: ")
    assert says in line


def test_init_writes_a_spec_once(capsys: Capture, tmp_path: Path) -> None:
    path = Small([], [QUERIES[0]]).write(tmp_path)
    assert path.exists()
    spec, table = tmp_path / "new.yaml", str(tmp_path / "rows.parquet")
    first = ran(capsys, "init", table, "--unit", "unit", "--out", str(spec))
    assert first.returncode == 0, first.stderr
    assert read_spec(spec).spec.privacy.unit == "unit"
    again = ran(capsys, "init", table, "--out", str(spec))
    assert (again.returncode, "is there already" in again.stderr) == (2, True)
    told = ran(capsys, "plan", str(spec))
    # The plan is shown, and what a run would say of the words that are not written yet.
    assert "charged together" in told.stdout
    assert (told.returncode, "write what is meant" in told.stderr) == (2, True)
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "new.yaml"
    assert ran(capsys, "init", table, "--unit", "unit", "--out", str(moved)).returncode == 0
    # As a run would be: what init leaves open is not yet written.
    rehearsed = ran(capsys, "check", str(moved))
    assert rehearsed.returncode == 2
    assert "release.title: says TODO(curator); write what is meant" in rehearsed.stderr


def test_a_comparison_ends_at_the_largest_epsilon(tmp_path: Path, capsys: Capture) -> None:
    asked = query("count", sensitivity="global", guarantee={"definition": "pure", "epsilon": "60"})
    path = Small([], [asked]).write(tmp_path)
    page = tmp_path / "page.html"
    assert run(capsys, "compare", path, "the_count", "--html", page)[0] == 0
    assert page.is_file()


def test_a_target_of_a_loss_that_would_wrap_names_the_loss(tmp_path: Path) -> None:
    """Noise alone has no loss of published answers, so only wrapping noise would be left."""
    spec_file = spec_of(tmp_path, query("count", sensitivity="global"))
    target = parse_target("--epsilon-for", "noise_squared <= 5")
    with pytest.raises(SpecError, match=r"best needs the loss error_rate, absolute or squared"):
        list(epsilon_for(spec_file, target))
