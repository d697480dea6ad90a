"""Releases whose budget composes exactly: what they state, what verifies, and what is refused."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import pytest

from release.errors import BudgetError, SpecError, VerificationError
from release.exact.composition.charges import compose
from release.exact.integers.noise import IntegerNoise
from release.street import run_release
from release.verification.verifier import verify
from tests.small import UNSIGNED, Row, Small, mechanism_of, query
from tests.verifier.made import edit

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
    """What was made."""
    found: dict[str, Any] = json.loads((public / "release.json").read_text())["made"]
    return found


def noise_of(public: Path, name: str) -> IntegerNoise:
    noise: IntegerNoise = mechanism_of(public, name).noise
    return noise


def composing(queries: list[dict[str, Any]], delta: str, folder: Path, **fields: Any) -> Path:
    """A release of queries with guarantees, which compose exactly because the spec says so."""
    path = small(queries, delta, **fields).write(folder)
    plain = path.read_text().replace("budget:\n", "budget:\n  composition: pld\n")
    assert "composition: pld" in plain
    path.write_text(plain)
    return run_release(path, folder / "out").public


def test_forty_pure_counts_have_the_binomial_total(tmp_path: Path) -> None:
    counts = [promised(f"count_{i}", "0.05") for i in range(40)]
    total = record(composing(counts, MICRO, tmp_path, budget=("2", MICRO)))["total"]
    # Every loss of two-sided geometric noise is ±ε, so the sum is binomial: nothing is split.
    exact = compose([(Fraction("0.05"), Fraction(0))] * 40).epsilon_at(Fraction(MICRO))
    assert exact is not None
    assert exact - Fraction(1, 10**9) <= Fraction(total["epsilon"]) <= exact
    assert Fraction(total["epsilon"]) < Fraction("1.5")


def test_ten_shares_use_the_whole_budget_and_have_the_known_variance(tmp_path: Path) -> None:
    public = released(small([sharing(f"count_{i}", share="1") for i in range(10)]), tmp_path)
    total = record(public)["total"]
    assert Fraction("0.9995") <= Fraction(total["epsilon"]) <= 1
    assert total["delta"] == MICRO
    noise = noise_of(public, "count_3")
    # Geometric noise by basic composition has 199.8; the best of its kind known has 159.0.
    assert 158 < noise.moment(2) <= Fraction("159.1")
    verify(public, None, UNSIGNED)


def test_no_share_errs_more_than_with_its_part_of_the_budget(tmp_path: Path) -> None:
    queries = [sharing("large", share="100")]
    queries += [sharing(f"count_{i}", share="1") for i in range(9)]
    public = released(small(queries), tmp_path)
    variances = [noise_of(public, name).moment(2) for name in ("large", "count_0")]
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
    noise = noise_of(public, "aimed")
    found = noise.moment(1 if loss == "absolute" else 2)
    assert Fraction(99, 100) * Fraction(cap) <= found <= Fraction(cap)
    assert Fraction("0.999") <= Fraction(record(public)["total"]["epsilon"]) <= 1
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
    assert Fraction("0.999") <= Fraction(found["total"]["epsilon"]) <= 1
    assert [entry["name"] for entry in found["queries"]] == ["fixed", "free", "choice", "mode"]
    verify(public, None, UNSIGNED)


def test_without_delta_all_noise_is_pure_and_charges_add_up(tmp_path: Path) -> None:
    queries = [sharing("one", share="8"), sharing("other", share="1")]
    public = released(small(queries, "0"), tmp_path)
    found = record(public)
    epsilons = [Fraction(entry["epsilon"]) for entry in found["queries"]]
    assert {entry["definition"] for entry in found["queries"]} == {"pure"}
    assert sum(epsilons) == Fraction(found["total"]["epsilon"]) <= 1
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
    assert Fraction("0.999") <= Fraction(record(public)["total"]["epsilon"]) <= 1
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
    epsilon = Fraction(record(public)["total"]["epsilon"])
    assert Fraction("0.1413") <= epsilon <= Fraction("0.1414")
    verify(public, None, UNSIGNED)


def test_an_instance_specific_charge_is_added_as_declared(tmp_path: Path) -> None:
    own = query("count", name="own", by=[], guarantee={"definition": "pure", "epsilon": "0.25"})
    public = released(small([own, sharing("free", share="1")]), tmp_path)
    found = record(public)
    assert "commitment" in found["queries"][0]
    rest = Fraction(found["total"]["epsilon"]) - Fraction("0.25")
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
        files.append((mechanisms, entries, found["total"], found["step"]))
    assert files[0] == files[1]


def _at(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def test_the_grid_of_a_composition_holds_every_epsilon(tmp_path: Path) -> None:
    public = composing([promised("a", "0.5"), promised("b", "0.2")], MICRO, tmp_path)
    made = record(public)
    step = Fraction(made["step"])
    # Both ε lie on the grid, so their sum is exact and no more.
    assert Fraction("0.5") % step == Fraction("0.2") % step == 0
    assert Fraction(made["total"]["epsilon"]) <= Fraction("0.7")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("total", "epsilon"), "0.5"),
        (("total", "delta"), "0"),
        (("total", "definition"), "pure"),
        (("queries", 0, "epsilon"), "0.01"),
        (("queries", 0, "delta"), "0.0000001"),
        (("queries", 0, "charge", "epsilon"), "0.01"),
    ],
)
def test_a_forged_figure_of_a_shared_budget_is_refused(
    shared_release: Path, tmp_path: Path, place: tuple[Any, ...], value: str
) -> None:
    public = tmp_path / "public" / shared_release.name
    shutil.copytree(shared_release, public)

    def forge(plain: Any) -> None:
        inner = plain["made"]
        for step in place[:-1]:
            inner = inner[step]
        assert inner[place[-1]] != value
        inner[place[-1]] = value

    edit(public, "release.json", forge)
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
