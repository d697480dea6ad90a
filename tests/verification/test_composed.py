"""Releases whose budget composes exactly: what they state, what verifies, and what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from release.budget.composed import Together
from release.errors import BudgetError, ReleaseError, SpecError, VerificationError
from release.exact.composition.charges import compose
from release.exact.privacy import Definition, Guarantee
from release.noise import shares
from release.noise.composed.groups import ShareRequest
from release.noise.on_statistic import StatisticDesign, design_on_statistic
from release.pipeline import run_release
from release.records.mechanisms import IntegerRecord
from release.records.models import parse
from release.verification.verifier import verify
from tests.small import UNSIGNED, Row, Small, query
from tests.verification.test_values import fit

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
MICRO = "0.000001"


def sharing(name: str, **fields: Any) -> dict[str, Any]:
    """A count without a guarantee of its own; ``fields`` say how it takes part in the budget."""
    count = query("count", name=name, by=[], sensitivity="global", loss="squared")
    del count["guarantee"]
    return count | {"domain": {"integers": {}}} | fields


def promised(name: str, epsilon: str, **fields: Any) -> dict[str, Any]:
    guarantee = {"definition": "pure", "epsilon": epsilon}
    return query("count", name=name, by=[], sensitivity="global", guarantee=guarantee, **fields)


def small(queries: list[dict[str, Any]], delta: str = MICRO, **fields: Any) -> Small:
    given: dict[str, Any] = {"neighbors": "add_remove", "max_rows_per_unit": 1}
    given |= {"budget": ("1", delta)} | fields
    return Small(ROWS, queries, **given)


def released(spec: Small, folder: Path) -> Path:
    return run_release(spec.write(folder), folder / "out").public


def record(public: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((public / "release.json").read_text())
    return found


def noise_of(public: Path, name: str) -> IntegerRecord:
    entry = next(q for q in record(public)["queries"] if q["name"] == name)
    return parse(IntegerRecord, (public / entry["mechanism_file"]["path"]).read_bytes())


def composing(queries: list[dict[str, Any]], delta: str, folder: Path, **fields: Any) -> Path:
    """A release of queries with guarantees, which compose exactly because the spec says so."""
    path = small(queries, delta, **fields).write(folder)
    plain = path.read_text().replace("budget:\n", "budget:\n  composition: pld\n")
    assert "composition: pld" in plain
    path.write_text(plain)
    return run_release(path, folder / "out").public


def test_forty_pure_counts_have_the_binomial_total(tmp_path: Path) -> None:
    counts = [promised(f"count_{i}", "0.05") for i in range(40)]
    total = record(composing(counts, MICRO, tmp_path, budget=("2", MICRO)))["composition"]
    # Every loss of two-sided geometric noise is ±ε, so the sum is binomial: nothing is split.
    exact = compose([(Fraction("0.05"), Fraction(0))] * 40).epsilon_at(Fraction(MICRO))
    assert exact is not None
    assert total["rule"] == "pld-v1"
    assert exact - Fraction(1, 10**9) <= Fraction(total["epsilon"]) <= exact
    assert Fraction(total["epsilon"]) < Fraction("1.5")


def test_ten_shares_use_the_whole_budget_and_have_the_known_variance(tmp_path: Path) -> None:
    public = released(small([sharing(f"count_{i}", share="1") for i in range(10)]), tmp_path)
    total = record(public)["composition"]
    assert Fraction("0.9995") <= Fraction(total["epsilon"]) <= 1
    assert total["delta"] == MICRO
    noise = noise_of(public, "count_3").noise.to_noise()
    # Geometric noise by basic composition has 199.8; the best of its kind known has 159.0.
    assert 158 < noise.moment(2) <= Fraction("159.1")
    verify(public, None, UNSIGNED)


def test_no_share_errs_more_than_with_its_part_of_the_budget(tmp_path: Path) -> None:
    queries = [sharing("large", share="100")]
    queries += [sharing(f"count_{i}", share="1") for i in range(9)]
    public = released(small(queries), tmp_path)
    variances = [noise_of(public, name).noise.to_noise().moment(2) for name in ("large", "count_0")]
    for share, variance in zip((100, 1), variances, strict=True):
        ratio = exp(-share / 109)
        # Of two-sided geometric noise.
        assert variance <= 2 * ratio / (1 - ratio) ** 2 * (1 + 1e-9)


@pytest.mark.parametrize(("loss", "cap"), [("absolute", "20"), ("squared", "900")])
def test_a_target_is_met_and_what_is_left_goes_to_the_shares(
    tmp_path: Path, loss: str, cap: str
) -> None:
    queries = [sharing("aimed", target=f"{loss} <= {cap}", loss=loss), sharing("rest", share="1")]
    public = released(small(queries), tmp_path)
    noise = noise_of(public, "aimed").noise.to_noise()
    found = noise.moment(1 if loss == "absolute" else 2)
    assert Fraction(99, 100) * Fraction(cap) <= found <= Fraction(cap)
    assert Fraction("0.999") <= Fraction(record(public)["composition"]["epsilon"]) <= 1
    verify(public, None, UNSIGNED)


def test_a_target_beyond_the_budget_names_the_query(tmp_path: Path) -> None:
    queries = [sharing("near", target="absolute <= 0.1", loss="absolute")]
    with pytest.raises(BudgetError, match="near"):
        released(small(queries), tmp_path)
    assert not (tmp_path / "out" / "public").exists()


def test_guarantees_shares_and_selections_compose_together(tmp_path: Path) -> None:
    mode = query("mode", name="mode", by=["place"], sensitivity="global", noise="on_statistic")
    choice = mode | {"name": "choice", "share": "1"}
    del choice["guarantee"]
    queries = [promised("fixed", "0.3"), sharing("free", share="1", by=["place"]), choice, mode]
    mode["guarantee"] = {"definition": "pure", "epsilon": "0.1"}
    public = released(small(queries, max_rows_per_unit=2, neighbors="replace_one"), tmp_path)
    found = record(public)
    assert Fraction("0.999") <= Fraction(found["composition"]["epsilon"]) <= 1
    assert [entry["name"] for entry in found["queries"]] == ["fixed", "free", "choice", "mode"]
    verify(public, None, UNSIGNED)


def test_without_delta_all_noise_is_pure_and_charges_add_up(tmp_path: Path) -> None:
    queries = [sharing("one", share="8"), sharing("other", share="1")]
    public = released(small(queries, "0"), tmp_path)
    found = record(public)
    epsilons = [Fraction(entry["epsilon"]) for entry in found["queries"]]
    assert {entry["definition"] for entry in found["queries"]} == {"pure"}
    assert sum(epsilons) == Fraction(found["composition"]["epsilon"]) <= 1
    assert epsilons[0] == 8 * epsilons[1]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_without_delta_rows_in_several_cells_stay_within_the_budget(
    tmp_path: Path, neighbors: str
) -> None:
    """What is shared out is what is charged: ε of a cell times the cells."""
    apart: dict[str, Any] = {"by": ["place", "day"]}
    queries = [sharing("free", share="1", **apart), sharing("rest", share="3")]
    queries.append(promised("fixed", "0.1") | apart)
    public = released(small(queries, "0", neighbors=neighbors, max_rows_per_unit=3), tmp_path)
    assert Fraction("0.999") <= Fraction(record(public)["composition"]["epsilon"]) <= 1
    verify(public, None, UNSIGNED)


def test_without_delta_many_guarantees_leave_the_rest(tmp_path: Path) -> None:
    """Their largest losses together are so rare that a grid would count them as δ."""
    queries = [promised(f"count_{i}", "0.01") for i in range(80)] + [sharing("rest", share="1")]
    public = released(small(queries, "0"), tmp_path)
    epsilon = Fraction(record(public)["queries"][-1]["epsilon"])
    assert Fraction("0.1999") <= epsilon <= Fraction("0.2")


def test_without_delta_a_target_may_stand_alone(tmp_path: Path) -> None:
    public = released(small([sharing("aimed", target="squared <= 100")], "0"), tmp_path)
    # Two-sided geometric noise of variance 100 has ε = 0.1413.
    epsilon = Fraction(record(public)["composition"]["epsilon"])
    assert Fraction("0.1413") <= epsilon <= Fraction("0.1414")
    verify(public, None, UNSIGNED)


def test_an_instance_specific_charge_is_added_as_declared(tmp_path: Path) -> None:
    own = query("count", name="own", by=[], guarantee={"definition": "pure", "epsilon": "0.25"})
    public = released(small([own, sharing("free", share="1")]), tmp_path)
    found = record(public)
    assert found["guarantee"]["kind"] == "instance-specific"
    rest = Fraction(found["composition"]["epsilon"]) - Fraction("0.25")
    assert Fraction("0.7495") <= rest <= Fraction("0.75")


def test_nothing_of_a_composition_depends_on_the_table(tmp_path: Path) -> None:
    queries = [sharing("one", share="2", by=["place"]), sharing("other", target="squared <= 500")]
    files = []
    for name, rows in (("full", ROWS), ("empty", ROWS[:1])):
        spec = small(queries)
        public = released(
            Small(rows, spec.queries, spec.neighbors, 1, budget=spec.budget), _at(tmp_path, name)
        )
        found = record(public)
        mechanisms = {path.name: path.read_bytes() for path in (public / "mechanisms").iterdir()}
        entries = [(q["epsilon"], q["delta"], q["charge"]) for q in found["queries"]]
        files.append((mechanisms, entries, found["composition"], found["guarantee"]))
    assert files[0] == files[1]


def _at(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def test_profiles_on_different_grids_compose_on_the_finest(tmp_path: Path) -> None:
    public = composing([promised("a", "0.5"), promised("b", "0.2")], MICRO, tmp_path)
    found = record(public)
    step = Fraction(found["composition"]["step"])
    # Both ε lie on the grid, so their sum is exact and no more.
    assert Fraction("0.5") % step == Fraction("0.2") % step == 0
    parts = [noise_of(public, name).profile for name in ("a", "b")]
    profiles = [part.to_profile() for part in parts if part is not None]
    assert [profile.step for profile in profiles] == [step, step]
    together = Together(step, tuple(profiles)).losses
    assert Fraction(found["composition"]["epsilon"]) <= Fraction("0.7")
    assert together.delta_at(Fraction("0.7")) <= Fraction(1, 10**18)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("composition", "epsilon"), "0.5"),
        (("composition", "rule"), "basic-v1"),
        (("composition", "step"), "0.002"),
        (("composition", "step"), None),
        (("composition", "delta"), "0"),
        (("queries", 0, "epsilon"), "0.01"),
        (("queries", 0, "epsilon"), "0.9"),
        (("queries", 0, "delta"), "0.0000001"),
        (("queries", 0, "charge", "epsilon"), "0.01"),
        (("guarantee", "epsilon"), "0.5"),
        (("guarantee", "definition"), "pure"),
    ],
)
def test_a_forged_figure_of_a_shared_budget_is_refused(
    shared_release: Path, tmp_path: Path, place: tuple[Any, ...], value: str | None
) -> None:
    public = tmp_path / "public" / shared_release.name
    shutil.copytree(shared_release, public)
    found = record(public)
    inner = found
    for step in place[:-1]:
        inner = inner[step]
    assert inner[place[-1]] != value
    inner[place[-1]] = value
    (public / "release.json").write_bytes(rfc8785.dumps(found))
    fit(public)
    with pytest.raises(VerificationError):
        verify(public, None, UNSIGNED)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"share": "0"}, "above 0"),
        ({"share": "1", "target": "absolute <= 1"}, "keep one"),
        ({"share": "1", "guarantee": {"definition": "pure", "epsilon": "1"}}, "keep one"),
        ({"share": "1", "sensitivity": "empirical"}, "global"),
        ({"share": "1", "mechanism": "integer"}, "leave it out"),
        ({"target": "absolute"}, "write a loss"),
        ({"target": "absolute <= 1", "loss": "squared"}, "loss says another"),
        ({"share": "1", "loss": "noise_squared"}, "answers in order"),
    ],
)
def test_a_share_that_cannot_be_meant_is_refused_in_one_line(
    tmp_path: Path, fields: dict[str, Any], word: str
) -> None:
    with pytest.raises(SpecError, match=word) as caught:
        released(small([sharing("count", **fields)]), tmp_path)
    assert "\n" not in str(caught.value)
    assert "queries[0]" in str(caught.value)


@pytest.fixture(scope="module")
def shared_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    queries = [sharing(f"count_{i}", share="1") for i in range(8)]
    return released(small(queries), tmp_path_factory.mktemp("shared"))


@pytest.mark.parametrize("definition", [Definition.PURE, Definition.APPROXIMATE])
def test_a_found_guarantee_that_is_larger_than_needed_does_not_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, definition: Definition
) -> None:
    honest = shares._guarantee_of

    def overstated(*arguments: Any) -> Guarantee:
        pure = honest(*arguments)
        assert pure.definition is Definition.PURE
        if definition is Definition.PURE:
            return Guarantee(definition, pure.epsilon * Fraction(11, 10), pure.delta)
        # At a delta above 0 less than the pure epsilon would do.
        return Guarantee(definition, pure.epsilon, Fraction(MICRO))

    # All files of the release then say the same, so that nothing but the needed epsilon tells.
    monkeypatch.setattr(shares, "_guarantee_of", overstated)
    queries = [sharing(f"count_{i}", share="1") for i in range(12)]
    with pytest.raises(ReleaseError, match=r"would not verify.*queries\..*\.epsilon"):
        released(small(queries), tmp_path)


def test_a_found_guarantee_of_a_sum_is_no_larger_than_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overstated(statistic: Any, named: str, guarantee: Guarantee) -> StatisticDesign:
        less = replace(guarantee, epsilon=guarantee.epsilon * Fraction(10, 11))
        return replace(design_on_statistic(statistic, named, less), guarantee=guarantee)

    monkeypatch.setattr(shares, "design_on_statistic", overstated)
    # Its noise is larger than that of charges that add up, which would be taken in its place.
    monkeypatch.setattr(shares, "_is_no_worse", lambda *_: True)
    added = query("binned", name="added", by=[], sensitivity="global", noise="on_statistic")
    del added["guarantee"]
    with pytest.raises(ReleaseError, match=r"would not verify.*queries\.added\.epsilon"):
        released(small([added | {"share": "1"}, promised("fixed", "0.1")]), tmp_path)


def test_noise_above_its_target_does_not_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = shares._request

    def loosened(*arguments: Any) -> ShareRequest:
        request = honest(*arguments)
        return request if request.target is None else replace(request, target=request.target * 2)

    monkeypatch.setattr(shares, "_request", loosened)
    with pytest.raises(ReleaseError, match=r"would not verify.*queries\.aimed\.target"):
        released(small([sharing("aimed", target="squared <= 300")]), tmp_path)
