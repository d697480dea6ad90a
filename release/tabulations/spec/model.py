"""The models of a tabulation: what the curator writes of tables that add up.

A tabulation counts the units of a table. Each has one row, lies in one area of the lowest level of
a hierarchy, and in one category of each attribute. What is published are *margins*: for each level
the attributes by which its counts are broken down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from release.exact.privacy import Definition
from release.spec.declarations import Budget, Column, FilePath, KeyRange, KeyValue, Name, Text
from release.spec.domains import Exact, Label, Model, one_of
from release.spec.guarantees import GuaranteeSpec

MarginNames: TypeAlias = list[str]
"""The attributes or groupings of a margin; none for the total."""

Categories: TypeAlias = Annotated[
    Annotated[list[KeyValue], Field(min_length=1), Tag("list")] | Annotated[KeyRange, Tag("range")],
    one_of(list="[c1, c2]", range="{range: [first, last]}"),
]


class Hierarchy(Model):
    """The areas: a public file in which every area names those that it lies in."""

    file: FilePath = Field(
        description="a CSV file with a column for each level, and a line for each area of the "
        "lowest level; its path is relative to the spec"
    )
    levels: list[Column] = Field(
        min_length=1, max_length=12, description="the levels, from the highest to the lowest"
    )


class Grouping(Model):
    """Categories of an attribute that are counted together."""

    of: str = Field(description="the attribute")
    classes: dict[Label, Categories] = Field(
        min_length=1,
        description="the categories of each class, by its label; every category is in one class",
    )


class DeclaredNumbers(Model):
    """A table of the highest level that is known without noise, such as an official total."""

    level: str = Field(description="the highest level; numbers of no other are declared")
    margin: MarginNames = Field(description="the attributes or groupings; `[]` for the total")
    file: FilePath = Field(
        description="a CSV file with the columns of the level and of the margin, and `count`, and "
        "a line for each cell; its path is relative to the spec"
    )


class Impossible(Model):
    """Combinations of categories that nobody can have, in any area."""

    impossible: dict[str, Categories] = Field(
        min_length=1, description="categories of attributes; nobody has a combination of them"
    )


def margin_text(names: Sequence[str]) -> str:
    """A margin as readers see it."""
    return " × ".join(names) or "total"


def _constraint(value: object) -> str:
    # Pydantic also asks of finished constraints, when it writes or copies them.
    if isinstance(value, dict):
        return "impossible" if "impossible" in value else "numbers"
    return "impossible" if isinstance(value, Impossible) else "numbers"


Constraint: TypeAlias = Annotated[
    Annotated[DeclaredNumbers, Tag("numbers")] | Annotated[Impossible, Tag("impossible")],
    Discriminator(_constraint),
]


class PinnedTable(Model):
    """A table that a pinned strategy measures."""

    level: str = Field(description="the level")
    margin: MarginNames = Field(description="the attributes or groupings; `[]` for the total")
    share: Exact = Field(
        description="its part of the budget beside the other shares, above 0: of ε for geometric "
        "noise, of the precision (one over the variance) for Gaussian noise"
    )


class PinnedStrategy(Model):
    """How the tables are measured, in place of the strategy that is found to be best."""

    noise: Literal["geometric", "gaussian"] | None = Field(
        default=None, description="the family of the noise; else the better one"
    )
    tables: list[PinnedTable] | None = Field(
        default=None, description="the tables to measure; else the best that are found"
    )


class Tabulation(Model):
    """Tables of counts that add up over all levels and margins, from one budget."""

    name: Name = Field(description="its name, with which the names of its files begin")
    title: Text | None = Field(default=None, description="a title for people; else the name")
    units: Text | None = Field(default=None, description="what is counted, such as `persons`")
    table: str = Field(
        default="",
        description="the table, in which a unit has one row; it may be left out where one is",
    )
    where: str | None = Field(
        default=None, description="an SQL condition on one row; others do not count"
    )
    hierarchy: Hierarchy = Field(description="the areas")
    attributes: dict[Column, Categories] = Field(
        default={}, description="the columns that break counts down, with their public categories"
    )
    groupings: dict[Column, Grouping] = Field(
        default={}, description="coarser categories of an attribute, by the name of the new column"
    )
    publish: dict[str, list[MarginNames]] = Field(
        min_length=1, description="for each level the margins to publish; `[]` is the total"
    )
    importance: dict[str, Exact] = Field(
        default={},
        description="how much an error counts on a level, above 0; 1 where none is given",
    )
    # Whoever declares a fact asserts that it is public: no noise and no charge stand for it.
    constraints: list[Constraint] = Field(
        default=[], description="public facts that the published numbers keep to"
    )
    guarantee: GuaranteeSpec | None = Field(
        default=None,
        description="the guarantee of all its tables together; without it the whole budget",
    )
    # No pin changes the guarantee: the shares part one budget, whatever they are.
    strategy: PinnedStrategy | None = Field(
        default=None, description="how to measure; without it the best strategy that is found"
    )

    @property
    def facts(self) -> tuple[DeclaredNumbers, ...]:
        """The constraints that are numbers."""
        return tuple(own for own in self.constraints if isinstance(own, DeclaredNumbers))

    @property
    def zeros(self) -> tuple[Impossible, ...]:
        """The constraints that are combinations of categories."""
        return tuple(own for own in self.constraints if isinstance(own, Impossible))

    def guarantee_of_all(self, budget: Budget) -> GuaranteeSpec:
        """The guarantee of all its tables together: its own, or the whole budget.

        Raises:
            ValidationError: the budget is no guarantee, such as one with ε above 100.
        """
        if self.guarantee is not None:
            return self.guarantee
        definition = Definition.APPROXIMATE if budget.delta else Definition.PURE
        return GuaranteeSpec(definition=definition, epsilon=budget.epsilon, delta=budget.delta)

    def of(self, name: str) -> str:
        """The attribute that a name in a margin is of: itself, or that of the grouping."""
        return self.groupings[name].of if name in self.groupings else name

    def in_order(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names of a margin in the order of the attributes that they are of."""
        # One order of its names, so that a margin has one file name, one header, one order of rows.
        attributes = list(self.attributes)
        return tuple(sorted(names, key=lambda name: attributes.index(self.of(name))))

    def publishes(self, level: str, names: Sequence[str]) -> bool:
        """Whether a level publishes the margin of these names.

        By its names: a grouping of one class has the same counts as no grouping, in another table.
        """
        published = [self.in_order(margin) for margin in self.publish[level]]
        return self.in_order(names) in published
