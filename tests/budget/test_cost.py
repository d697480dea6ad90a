"""Charges: the cells that one unit can touch, caps at their edge, the definition of the sum."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.budget.composed import Together, step_for, step_of_budget
from release.budget.cost import (
    Charges,
    charge_of,
    charges,
    least_charges,
    release_step,
    touched_cells,
)
from release.errors import BudgetError
from release.exact.composition.profile import pure_profile
from release.exact.privacy import Definition, Guarantee
from release.queries.read import parse_spec
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.model import Spec
from release.tabulations.measure.table_count import table_count
from release.tabulations.spec.areas import nested
from release.tabulations.spec.open import with_areas
from tests.small import Small, part, query
from tests.small import joint as joint_query
from tests.tabulations.spec.test_check import PLAIN

KEYS: dict[str, tuple[str, ...]] = {"place": ("a", "b"), "day": ("1", "2"), "unit": ("u", "v")}
PURE = {"definition": "pure", "epsilon": "1"}


def spec_file(*queries: dict[str, Any], **fields: Any) -> SpecFile:
    privacy = fields.pop("privacy", {})
    plain = Small([], list(queries), **fields).plain()
    plain["privacy"] |= privacy
    plain["keys"]["unit"] = list(KEYS["unit"])
    text = yaml.safe_dump(plain).encode()
    return SpecFile(parse_spec(text), text, Path(), KEYS)


def cells(asked: dict[str, Any], **fields: Any) -> int:
    read = spec_file(asked, **fields)
    return touched_cells(read, read.spec.released[0])


BOTH = query("count", by=["place", "day"])


@pytest.mark.parametrize(
    ("neighbors", "rows", "most", "fixed", "expected"),
    [
        ("add_remove", 3, 1, [], 1),
        ("replace_one", 3, 1, [], 2),
        ("add_remove", 1, 3, [], 1),
        ("add_remove", 9, 3, [], 3),
        ("replace_one", 9, 2, [], 4),
        ("replace_one", 9, 3, [], 4),
        ("replace_one", 9, 1, ["place"], 2),
        ("add_remove", 9, 1, ["place"], 1),
    ],
)
def test_a_bound_on_cells_is_a_bound_on_what_is_charged(
    neighbors: str, rows: int, most: int, fixed: list[str], expected: int
) -> None:
    found = cells(
        BOTH, neighbors=neighbors, max_rows_per_unit=rows, max_cells_per_unit=most, fixed=fixed
    )
    assert found == expected


def test_a_query_of_one_cell_is_charged_once() -> None:
    assert cells(query("count", by=[]), neighbors="replace_one") == 1
    assert cells(BOTH, fixed=["place", "day"], neighbors="replace_one") == 1


def test_a_changed_attribute_counts_as_a_replacement() -> None:
    privacy = {"neighbors": "attribute", "attribute": "kind"}
    asked = query("count", by=["place", "day"], sensitivity="global", where="kind = 1")
    assert cells(asked, max_rows_per_unit=1, privacy=privacy) == 2


def test_an_answer_for_each_unit_is_one_cell() -> None:
    own = query("count", by=["unit"], sensitivity="global", domain={"nominal": ["a", "b"]})
    own |= {"kind": "per_unit", "of": "place"}
    privacy = {"neighbors": "attribute", "attribute": "place"}
    assert cells(own, privacy=privacy) == 1


def test_a_statement_may_touch_every_cell() -> None:
    own = query("count", by=["place", "day"], sql="SELECT 1") | {"kind": "sql"}
    for fields in ({"max_rows_per_unit": 1}, {"max_cells_per_unit": 1}):
        assert cells(own, neighbors="add_remove", **fields) == 4


def named(*guarantees: dict[str, str]) -> list[dict[str, Any]]:
    return [
        query("mode", name=f"q{number}", by=[], guarantee=dict(guarantee))
        for number, guarantee in enumerate(guarantees)
    ]


def charged(*guarantees: dict[str, str], budget: tuple[str, str] = ("1000", "0.9")) -> Charges:
    """Charges of queries that touch one cell each."""
    return charges(spec_file(*named(*guarantees), budget=budget))


def approximate(epsilon: str, delta: str) -> dict[str, str]:
    return {"definition": "approximate", "epsilon": epsilon, "delta": delta}


def test_a_release_may_charge_its_cap_and_no_more() -> None:
    third, tenth = approximate("1/3", "0.1"), approximate("1", "0.1")
    found = charged(third, third, tenth, budget=("5/3", "0.3"))
    assert (found.epsilon, found.delta) == (Fraction(5, 3), Fraction(3, 10))
    assert [charge.epsilon for charge in found.queries] == [Fraction(1, 3), Fraction(1, 3), 1]
    with pytest.raises(BudgetError, match=r"budget\.epsilon"):
        charged(third, third, tenth, budget=("1.666666", "0.3"))
    with pytest.raises(BudgetError, match=r"budget\.delta"):
        charged(third, third, tenth, budget=("5/3", "0.299999"))


PROBABILISTIC = {"definition": "probabilistic", "epsilon": "1", "delta": "0.01"}
WITHOUT_DELTA = {"definition": "probabilistic", "epsilon": "1", "delta": "0"}


@pytest.mark.parametrize(
    ("guarantees", "expected"),
    [
        ([PURE], Definition.PURE),
        ([PURE, WITHOUT_DELTA], Definition.PURE),
        ([PURE, PROBABILISTIC], Definition.PROBABILISTIC),
        ([PROBABILISTIC, approximate("1", "0.01"), PURE], Definition.APPROXIMATE),
        ([PROBABILISTIC, approximate("1", "0")], Definition.PROBABILISTIC),
    ],
)
def test_the_sum_satisfies_the_weakest_definition_of_its_parts(
    guarantees: list[dict[str, str]], expected: Definition
) -> None:
    assert charged(*guarantees).definition is expected


def test_a_charge_is_the_guarantee_of_a_cell_times_the_cells() -> None:
    read = spec_file(BOTH, neighbors="add_remove", max_rows_per_unit=3)
    guarantee = Guarantee(Definition.APPROXIMATE, Fraction(1, 3), Fraction(1, 7))
    charge = charge_of(read, read.spec.released[0], guarantee)
    assert (charge.cells, charge.epsilon, charge.delta) == (3, Fraction(1), Fraction(3, 7))
    assert not charge.parallel
    read = spec_file(BOTH, neighbors="add_remove", max_rows_per_unit=1)
    assert charge_of(read, read.spec.released[0], guarantee).parallel


def test_the_least_charge_is_that_of_noise_in_proportion_without_a_delta() -> None:
    """Three rows of a unit move three cells by one, or one cell by three."""
    asked = BOTH | {
        "sensitivity": "global",
        "domain": {"ordered": {"min": 0, "max": 50}},
        "guarantee": {"definition": "approximate", "epsilon": "1", "delta": "0.01"},
    }
    fields = {"neighbors": "add_remove", "max_rows_per_unit": 3}
    least = least_charges(spec_file(asked, budget=("1", "0"), **fields))
    assert [least.epsilon, least.delta, least.queries[0].cells] == [1, 0, 3]
    with pytest.raises(BudgetError, match=r"budget\.epsilon: the queries charge 3"):
        charges(spec_file(asked, budget=("1", "0.1"), **fields))
    with pytest.raises(BudgetError, match=r"budget\.epsilon: the queries charge 1, the cap"):
        least_charges(spec_file(asked, budget=("0.999", "0.1"), **fields))


def test_parts_of_a_tuple_are_not_charged_by_themselves() -> None:
    parts = [part("low", "mode", where="wh < 3", by=[]), part("high", "mode", by=[])]
    both = joint_query("low", "high", name="both", by=[], guarantee=PURE)
    assert [charge.epsilon for charge in charges(spec_file(*parts, both)).queries] == [1]


def measured(*epsilons: tuple[str, ...], guarantees: tuple[str | None, ...]) -> SpecFile:
    """Tabulations of counties, each with a pure guarantee or none, and tables that they measure."""
    plain = PLAIN | {"tabulations": [], "budget": PLAIN["budget"] | {"epsilon": "9"}}
    for number, epsilon in enumerate(guarantees):
        own = PLAIN["tabulations"][0] | {"name": f"census{number}"}
        if epsilon is not None:
            own["guarantee"] = {"definition": "pure", "epsilon": epsilon}
        plain["tabulations"].append(own)
    spec, opened, queries = Spec.model_validate(plain), [], []
    areas = nested("file", ["county", "tract"], [("hi", "t1"), ("ak", "t2")])
    for number, of_tables in enumerate(epsilons):
        tabulation = with_areas(spec, number, areas)
        opened.append(tabulation)
        for table, epsilon in zip(tabulation.margins, of_tables, strict=False):
            guarantee = GuaranteeSpec(definition=Definition.PURE, epsilon=Fraction(epsilon))
            queries.append(table_count(tabulation, table, guarantee))
    spec = spec.model_copy(update={"queries": queries})
    return SpecFile(spec, b"", Path(), {}, tabulations=tuple(opened))


def charged_together(read: SpecFile) -> Charges:
    """The charges where each table has pure noise."""
    step = release_step(read)
    profiles = [pure_profile(query.claimed.epsilon, step) for query in read.spec.charged]
    return charges(read, None, Together(step, tuple(profiles)))


def test_the_tables_of_a_tabulation_stay_within_its_own_guarantee() -> None:
    found = charged_together(measured(("0.5", "0.5"), guarantees=("1",)))
    assert [found.epsilon, found.delta] == [1, 0]
    assert found.definition is Definition.PURE
    with pytest.raises(BudgetError) as refusal:
        charged_together(measured(("0.5", "0.501"), guarantees=("1",)))
    assert str(refusal.value) == (
        "tabulations[0].guarantee: its tables charge 1.001, δ 0; raise it"
    )


def test_each_tabulation_pays_for_its_own_tables() -> None:
    """The first has no guarantee of its own: its tables have the whole budget."""
    both = measured(("2", "1"), ("0.5", "0.5"), guarantees=(None, "1"))
    assert charged_together(both).epsilon == 4
    more = measured(("2", "1"), ("0.5", "0.7"), guarantees=(None, "1"))
    with pytest.raises(BudgetError, match=r"tabulations\[1\]\.guarantee: its tables charge 1.2, "):
        charged_together(more)
    both = measured(("0.1", "1"), ("0.5", "0.5"), guarantees=("1", "1"))
    with pytest.raises(BudgetError, match=r"tabulations\[0\]\.guarantee: its tables charge 1.1, "):
        charged_together(both)


def test_a_tabulation_with_a_delta_is_read_from_the_profiles_of_its_tables() -> None:
    """Three pure tables of 0.5 compose to less than 1.49 at its δ, and to more than 1.4."""

    def with_delta(*tables: str, epsilon: str) -> Charges:
        read = measured(tables, guarantees=("1",))
        plain = {"definition": "approximate", "epsilon": epsilon, "delta": "0.01"}
        own = read.spec.tabulations[0]
        guarantee = GuaranteeSpec.model_validate(plain)
        own = own.model_copy(update={"guarantee": guarantee})
        spec = read.spec.model_copy(update={"tabulations": [own]})
        return charged_together(replace(read, spec=spec))

    assert with_delta("0.5", "0.5", "0.5", epsilon="1.5").epsilon == Fraction("1.5")
    assert with_delta("0.5", "0.5", "0.5", epsilon="1.49").epsilon == Fraction("1.5")
    with pytest.raises(BudgetError, match=r"tabulations\[0\]\.guarantee: its tables charge 1\.4"):
        with_delta("0.5", "0.5", "0.5", epsilon="1.4")


def test_the_grid_of_a_tabulation_is_that_of_all_tables_it_could_measure() -> None:
    # Three margins on two levels, one cell of each for a unit that is added.
    read = measured(("0.5", "0.5"), guarantees=("1",))
    assert read.spec.privacy.neighbors == "add_remove"
    assert len(read.tabulations[0].margins) == 3
    assert release_step(read) == step_of_budget(Fraction(9), 6)


def test_the_grid_of_a_release_is_that_of_its_charges_or_of_its_cap() -> None:
    third, half = Fraction(1, 3), Fraction(1, 2)

    def step(cap: str, *epsilons: str) -> Fraction:
        """Of queries with public mechanisms, each of one cell, and one that counts for nothing."""
        queries = named(approximate("3/7", "0.1"))
        for number, epsilon in enumerate(epsilons):
            guarantee = approximate(epsilon, "0.1")
            own = query("mode", name=f"own{number}", by=[], guarantee=guarantee)
            queries.append(own | {"sensitivity": "global", "noise": "on_answer"})
        return release_step(spec_file(*queries, budget=(cap, "0.9")))

    # The least of the cap and the sum of the claimed ε, on a grid that holds both.
    assert step("5", "1/3", "1/2") == step_for([third, half], third + half, 2)
    assert step("1/2", "1/3", "1/2") == step_for([third, half], half, 2)
    assert step("5", "0") == step_for([], Fraction(5), 1)
    many = ["1/3"] * 3
    assert step("5", *many) == step_for([third], Fraction(1), 3) != step_for([third], third, 3)
