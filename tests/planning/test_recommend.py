"""What a plan recommends is applied literally, and gains what it names."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import release
from release.planning.plan import Plan, make_plan
from release.planning.recommend import Recommendation, make_advised_plan, recommendations
from release.queries.read import read_spec
from release.spec.load import SpecFile
from tests.cli.test_main import run
from tests.small import Small, joint, part, query

Plain = dict[str, Any]
PROBABILISTIC = {"definition": "probabilistic", "epsilon": "1", "delta": "0.001"}
GLOBAL = {"sensitivity": "global", "noise": "on_statistic"}


def planned(folder: Path, plain: Plain) -> tuple[SpecFile, Plan]:
    folder.mkdir(exist_ok=True)
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    spec_file = read_spec(path)
    return spec_file, make_plan(spec_file)


def advised(folder: Path, queries: list[Plain], **fields: Any) -> tuple[Plain, Recommendation]:
    """The spec of the queries, and the one change that its plan recommends."""
    plain = json.loads(json.dumps(Small([], queries, **fields).plain()))
    (found,) = recommendations(*planned(folder, plain))
    return plain, found


def applied(plain: Plain, found: Recommendation) -> Plain:
    """The spec with the changes made where their paths say."""
    changed = json.loads(json.dumps(plain))
    taken_out = []
    for path, value in found.changes:
        names = re.findall(r"[a-z_]+|[0-9]+", path)
        if value is None and names[-1].isdigit():
            taken_out.append(int(names[-1]))
            continue
        place: Any = changed
        for name in names[:-1]:
            place = place[int(name) if name.isdigit() else name]
        place[names[-1]] = value
        if value is None:
            del place[names[-1]]
    kept = [one for place, one in enumerate(changed["queries"]) if place not in taken_out]
    return {**changed, "queries": kept}


def test_a_mechanism_that_loses_twice_as_much(tmp_path: Path) -> None:
    counted = query("count", mechanism="modular", domain={"ordered": {"min": 0, "max": 500}})
    counted |= {"sensitivity": "global", "loss": "squared"}
    plain, found = advised(tmp_path, [counted], max_rows_per_unit=1)
    _, before = planned(tmp_path, plain)
    spec_file, after = planned(tmp_path, applied(plain, found))
    now, then = before.queries[0].chosen.objective, after.queries[0].chosen.objective
    assert now > 2 * then
    assert f"is then {float(then):.4g}, and {float(now):.4g} now" in found.sentence
    assert recommendations(spec_file, after) == ()
    assert before.epsilon == after.epsilon


def test_noise_on_the_answer_of_a_mode(tmp_path: Path) -> None:
    plain, found = advised(
        tmp_path,
        [query("mode", mechanism="modular", loss="error_rate", sensitivity="global")],
        neighbors="add_remove",
        max_rows_per_unit=1,
    )
    _, before = planned(tmp_path, plain)
    spec_file, after = planned(tmp_path, applied(plain, found))
    wrong = 100 * (1 - float(before.queries[0].chosen.accuracy.p_exact))
    assert f"wrong in {wrong:.3g} of 100" in found.sentence
    (then,) = after.on_statistic
    assert then.nearness.sentence in found.sentence
    # At the lead that it names, the error is at most 5 of 100 in fact.
    assert then.design.mechanism.chance_of_leader(int(then.nearness.near)) >= 0.95  # type: ignore[attr-defined]
    assert recommendations(spec_file, after) == ()


def test_noise_on_the_answer_of_a_largest_value(tmp_path: Path) -> None:
    largest = query("binned", statistic="max", sensitivity="global")
    plain, found = advised(tmp_path, [largest], max_rows_per_unit=1)
    _, after = planned(tmp_path, applied(plain, found))
    (then,) = after.on_statistic
    assert then.nearness.sentence in found.sentence
    assert "queries[0].rank: " in found.sentence


def test_a_rank_that_bins_beyond_all_rows_are_published_at(tmp_path: Path) -> None:
    """40 rows a cell in the ten lowest of 64 bins: the largest is published beyond them all."""
    rows = [
        {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i // 2 % 2, "kind": 0, "wh": i % 10}
        for i in range(160)
    ]
    asked = query("binned", statistic="max", rank=1, by=["place", "day"], **GLOBAL)
    asked |= {"bins": {"low": 0, "high": 64, "count": 64}, "clamp": [0, 63]}
    many = [{**asked, "name": f"largest_{i}"} for i in range(10)]
    spec = Small(rows, many, max_rows_per_unit=1)
    plain = json.loads(json.dumps(spec.plain()))
    advice = recommendations(*planned(tmp_path, plain))
    assert [one.query for one in advice] == [one["name"] for one in many]
    (path, rank), beyond = advice[0].changes[0], []
    assert path == "queries[0].rank"
    assert 1 < rank <= 10
    for number, wanted in enumerate((1, rank)):
        queries = [{**one, "rank": wanted} for one in many]
        folder = tmp_path / str(number)
        folder.mkdir()
        spec_path = Small(rows, queries, max_rows_per_unit=1).write(folder)
        found = release.open(release.run(spec_path, folder / "out").public)
        answers = [code for one in queries for code in codes_of(found, one["name"])]
        beyond.append(np.mean(np.array(answers) > 9))
    # Of 40 answers each: about 97 in 100 and 19 in 100.
    assert beyond[1] < beyond[0] / 2


def codes_of(found: Any, name: str) -> list[int]:
    return [int(code) for code in found[name].to_arrow()["answer_code"].to_pylist()]


TALL = {"ordered": {"min": 0, "max": 40}}
CATEGORIES = {"nominal": ["a", "b", "c"]}


def drawn_error(plain: Plain, query: int, folder: Path, true: int, part: int) -> float:
    """How far a part is off on average, by drawing the noise of the plan for one true answer."""
    mechanism = planned(folder, plain)[1].queries[query].chosen.design.mechanism
    domain = read_spec(folder / "spec.yaml").spec.released[query].answers
    answers = mechanism.draw(np.full(20_000, true), np.random.default_rng(1).bytes)
    codes = np.unravel_index(answers, domain.group.moduli)[part]
    return float(np.abs(codes - np.unravel_index(true, domain.group.moduli)[part]).mean())


def test_a_tuple_whose_part_in_order_wraps_round(tmp_path: Path) -> None:
    """By draws: at both ends the tuple is as far off as the sentence says, and apart it is not."""
    queries = [
        part("homes", "count", domain=TALL),
        part("usual", "mode", of="place", domain=CATEGORIES),
        joint("homes", "usual", name="both", sensitivity="global", loss="absolute"),
    ]
    plain, found = advised(tmp_path, queries, max_rows_per_unit=1)
    now, then = map(float, re.findall(r"([0-9.]+) rows", found.sentence))
    assert "homes can be published as its other end" in found.sentence
    for end in (0, 41 * 3 - 1):
        assert drawn_error(plain, 0, tmp_path, end, 0) == pytest.approx(now, rel=0.1)
    parted = applied(plain, found)
    worst = max(drawn_error(parted, 0, tmp_path, true, 0) for true in range(41))
    assert worst == pytest.approx(then, rel=0.1)
    assert now > 2 * then
    before, after = planned(tmp_path, plain)[1], planned(tmp_path, parted)[1]
    # The count alone may lose in proportion to what a unit moves, and is charged less then.
    assert after.epsilon <= before.epsilon
    assert after.delta <= before.delta


def test_no_parting_of_a_tuple_is_recommended_where_nothing_wraps(tmp_path: Path) -> None:
    """A circle and categories have no ends; two answers in order have no others between them."""
    for domain in ({"cyclic": 12}, CATEGORIES, {"ordered": {"min": 0, "max": 1}}):
        kind = "count" if "ordered" in domain else "mode"
        named = {"of": "place"} if "nominal" in domain else {}
        queries = [
            part("one", kind, domain=domain, **named),
            part("two", "mode", of="place", domain=CATEGORIES),
            joint("one", "two", sensitivity="global"),
        ]
        plain = json.loads(json.dumps(Small([], queries, max_rows_per_unit=1).plain()))
        assert recommendations(*planned(tmp_path, plain)) == ()


def test_a_plan_says_which_part_wraps_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = [
        part("homes", "count", domain=TALL),
        part("usual", "mode", of="place", domain=CATEGORIES),
        joint("homes", "usual", name="both", sensitivity="global"),
    ]
    planned(tmp_path, Small([], queries, max_rows_per_unit=1).plain())
    status, printed, _ = run(capsys, "plan", tmp_path / "spec.yaml")
    assert status == 0
    assert "both: noise wraps round: homes can be published as the other end" in printed
    assert "usual can be published" not in printed


def test_rows_in_place_of_units(tmp_path: Path) -> None:
    plain, found = advised(tmp_path, [query("mode", count="rows", **GLOBAL)], max_rows_per_unit=5)
    _, before = planned(tmp_path, plain)
    _, after = planned(tmp_path, applied(plain, found))
    now, then = before.on_statistic[0].nearness.near, after.on_statistic[0].nearness.near
    assert now > 2 * then
    assert f"lead by {now:.0f} rows now" in found.sentence
    assert f"by {then:.0f} units" in found.sentence


def test_quantiles_asked_one_by_one(tmp_path: Path) -> None:
    shared = {"domain": {"ordered": {"min": 0, "max": 1000}}, "of": "wh", "sensitivity": "global"}
    queries = []
    for place in range(1, 8):
        one = {"kind": "quantiles", "name": f"octile_{place}", "at": [f"{place}/8"]}
        queries.append(query("count", **shared) | one)
    plain, found = advised(tmp_path, queries, neighbors="add_remove", max_rows_per_unit=1)
    _, before = planned(tmp_path, plain)
    _, after = planned(tmp_path, applied(plain, found))
    (then,) = after.on_statistic
    now = max(one.nearness.near for one in before.on_statistic)
    assert now > 2 * then.nearness.near
    assert f"up to {now:.0f} rows off" in found.sentence
    assert f"then {then.nearness.near:.0f}" in found.sentence
    assert before.epsilon == after.epsilon


@pytest.mark.parametrize("at", [0, 3])
def test_a_median_is_one_of_the_quantiles(at: int, tmp_path: Path) -> None:
    """Also as the first of them, and with a mechanism that several quantiles do not have."""
    bins = {"bins": {"low": 0, "high": 64, "count": 64}}
    queries = []
    for place in (1, 2, 3, 5, 6, 7):
        one = query("count", of="wh", sensitivity="global") | bins
        one |= {"kind": "quantiles", "name": f"octile_{place}", "at": [f"{place}/8"]}
        del one["domain"]
        queries.append(one)
    median = query("binned", statistic="median", clamp=None, mechanism="permute_and_flip", **GLOBAL)
    del median["clamp"]
    queries.insert(at, median | bins)
    plain, found = advised(tmp_path, queries, neighbors="add_remove", max_rows_per_unit=1)
    _, before = planned(tmp_path, plain)
    _, after = planned(tmp_path, applied(plain, found))
    (then,) = after.on_statistic
    assert then.query.shares == tuple(Fraction(place, 8) for place in range(1, 8))
    assert f"then {then.nearness.near:.0f}" in found.sentence
    assert before.epsilon == after.epsilon


@pytest.mark.parametrize(
    "queries",
    [
        [query("mode", count="rows", by=["place"], **GLOBAL)],
        [
            query("count", of="wh", by=["place"], sensitivity="global")
            | {"kind": "quantiles", "name": f"at_{place}", "at": [f"{place}/8"]}
            | {"domain": {"ordered": {"min": 0, "max": 1000}}}
            for place in (1, 2, 4, 6, 7)
        ],
    ],
)
def test_what_is_recommended_costs_no_more(queries: list[Plain], tmp_path: Path) -> None:
    """Counted in units, or joined, noise is not charged by how far rows move all cells together."""
    plain, found = advised(tmp_path, queries, neighbors="add_remove", max_rows_per_unit=10)
    assert any(path.endswith("guarantee.epsilon") for path, _ in found.changes)
    _, before = planned(tmp_path, plain)
    _, after = planned(tmp_path, applied(plain, found))
    assert after.epsilon <= before.epsilon
    now = max(one.nearness.near for one in before.on_statistic)
    assert now > 2 * max(one.nearness.near for one in after.on_statistic)


@pytest.mark.parametrize(
    "asked",
    [
        *(query("binned", statistic=name) for name in ("sum", "mean", "median", "min", "max")),
        query("mode"),
        query("mode", weight="wh", clamp=[0, 9], guarantee=PROBABILISTIC, loss="error_rate"),
        query("mode", sensitivity="global", guarantee={"definition": "pure", "epsilon": "9"}),
    ],
    ids=lambda asked: f"{asked['kind']}-{asked['sensitivity']}-{asked.get('weight')}",
)
def test_noise_on_the_statistic_is_compared_where_it_is_not_recommended(
    asked: Plain, tmp_path: Path
) -> None:
    """The figure beside an empirical sensitivity is that of the spec with the changes made."""
    if asked["kind"] == "median":
        del asked["clamp"]
    plain = json.loads(json.dumps(Small([], [asked], max_rows_per_unit=1).plain()))
    spec_file, before = planned(tmp_path, plain)
    assert recommendations(spec_file, before) == ()
    # An empirical sensitivity is shown in two cases, and compared once.
    (instead,) = [one.instead for one in before.queries if one.instead is not None]
    _, after = planned(tmp_path, applied(plain, Recommendation("", instead.changes, "")))
    (then,) = after.on_statistic
    assert instead.sentence.endswith(f", {then.nearness.sentence}")
    assert instead.planned is not None
    assert (instead.planned.query, instead.planned.charge) == (then.query, then.charge)
    for path, value in instead.changes:
        assert value is None or f"{path.split('.')[-1]}: {value}" in instead.sentence


def test_a_weight_without_bounds_is_not_compared(tmp_path: Path) -> None:
    plain = json.loads(json.dumps(Small([], [query("mode", weight="wh")]).plain()))
    _, plan = planned(tmp_path, plain)
    (instead,) = [one.instead for one in plan.queries if one.instead is not None]
    assert instead.planned is None
    assert "write clamp: [lo, hi]" in instead.sentence


def test_bins_as_wide_as_the_noise_are_left_alone(tmp_path: Path) -> None:
    """Noise on a sum of which 95 in 100 are within three bins is no gain over one bin."""
    plain = query("binned", statistic="sum", clamp=[0, 1000], sensitivity="global")
    plain |= {"bins": {"low": 0, "high": 200_000, "count": 200}, "noise": "on_answer"}
    spec = Small([], [plain], neighbors="add_remove", max_rows_per_unit=1).plain()
    assert recommendations(*planned(tmp_path, spec)) == ()


def test_nothing_is_recommended_where_nothing_is_lost(tmp_path: Path) -> None:
    queries = [
        query("count", sensitivity="global"),
        query("mode", **GLOBAL),
        query("binned", statistic="mean", **GLOBAL),
        query("mode", name="of_this_table"),
    ]
    plain = json.loads(json.dumps(Small([], queries).plain()))
    spec_file, _ = planned(tmp_path, plain)
    assert make_advised_plan(spec_file).recommendations == ()


def test_mechanisms_on_a_statistic_are_compared_by_how_near_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = query("mode", **GLOBAL, domain={"cyclic": 3})
    (tmp_path / "spec.yaml").write_text(
        yaml.safe_dump(Small([], [own], max_rows_per_unit=1).plain()), "utf-8"
    )
    status, told, _ = run(capsys, "compare", tmp_path / "spec.yaml", "the_mode", "--json")
    assert status == 0
    compared = json.loads(told)
    assert compared["near"] == "lead over the next, in units, for at least 95 in 100"
    near = {one["mechanism"]: one["near"] for one in compared["mechanisms"]}
    table, accepted = near["gap_table"], near["permute_and_flip"]
    assert list(table) == list(accepted) == ["0.25", "0.5", "1", "2", "4"]
    # More ε needs less of a lead, and the table never more than permute-and-flip.
    assert list(accepted.values()) == sorted(accepted.values(), reverse=True)
    for epsilon, lead in table.items():
        assert lead is None or lead <= accepted[epsilon]
    for epsilon, lead in accepted.items():
        proportional = near["exponential_mechanism"][epsilon]
        assert lead is None or proportional is None or lead <= proportional
    assert accepted["1"] == plain_lead()
    asked = ("compare", tmp_path / "spec.yaml", "the_mode", "--html", "x.html")
    status, _, told = run(capsys, *asked)
    assert status == 2
    assert "leave it out" in told


def plain_lead() -> float:
    """The lead that permute-and-flip needs, by its formula: replaced units move a range of 2."""
    ratio = math.exp(-1 / 2)
    lead = 0
    while (1 - (1 - ratio**lead) ** 3) / (3 * ratio**lead) < 0.95:
        lead += 1
    return lead
