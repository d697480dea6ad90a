"""The records of tabulations: what was measured with how much noise, and which tables follow."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from release.records.base import (
    ChargeRecord,
    DefinitionName,
    Exact,
    FromSpec,
    MechanismFile,
    OutputFile,
    Record,
)

LevelName: TypeAlias = Annotated[str, Field(description="the level of the areas")]
MarginRecord: TypeAlias = Annotated[
    list[str], Field(description="the attributes and groupings of the margin; none for the total")
]


class LevelRecord(Record):
    """The published tables of one level, all margins in one file."""

    level: LevelName
    areas: int = Field(ge=1, description="the number of areas")
    margins: list[MarginRecord] = Field(
        min_length=1, description="the published margins, in the order of their rows"
    )
    output: OutputFile = Field(description="the published tables")


class MeasuredRecord(Record):
    """One table that is measured with noise."""

    name: str = Field(description="the name of the table and of its files")
    level: LevelName
    margin: MarginRecord
    cells: int = Field(ge=1, description="the number of cells in all areas")
    definition: DefinitionName
    epsilon: Exact = Field(description="ε of one cell")
    delta: Exact = Field(description="δ of one cell")
    charge: ChargeRecord = Field(description="the guarantee times the cells that a unit can touch")
    mechanism_file: MechanismFile = Field(description="the mechanism file")
    output: OutputFile = Field(description="the noisy counts")


class DeclaredRecord(Record):
    """One table that is declared: it is published without noise."""

    level: LevelName
    margin: MarginRecord
    output: OutputFile = Field(description="the declared numbers")


class TabulationRecord(Record):
    """Tables of counts that add up over areas and attributes, with the noisy counts behind them."""

    name: FromSpec
    table: FromSpec
    noise: Literal["geometric", "gaussian"] = Field(
        description="the family of the noise of all measured tables"
    )
    # Of the estimates: whole numbers have a bias, and no variance that follows from the spec.
    objective: Exact = Field(
        description="the mean over the published tables of the mean standard error of their cells, "
        "before rounding to whole numbers"
    )
    levels: list[LevelRecord] = Field(
        min_length=1, description="the levels, from the highest to the lowest"
    )
    measured: list[MeasuredRecord] = Field(min_length=1, description="the tables with noise")
    # Facts that the spec asserts to be public: they are charged nothing, and no noise covers them.
    declared: list[DeclaredRecord] = Field(description="the tables without noise; none without any")

    @property
    def level_names(self) -> list[str]:
        """The names of all levels, which are the columns of the areas; from the highest down."""
        return [level.level for level in self.levels]

    @property
    def cells(self) -> int:
        """The number of published numbers."""
        return sum(level.output.rows for level in self.levels)

    @property
    def outputs(self) -> tuple[OutputFile, ...]:
        """All files: the published tables, the noisy counts, the declared numbers."""
        tables = (*self.levels, *self.measured, *self.declared)
        return tuple(map(attrgetter("output"), tables))
