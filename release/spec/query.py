"""A query of the spec: the fields of every kind, and the protocol that a kind fulfils."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import Field

from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import LossName
from release.spec.declarations import ColumnType, Count, Name, Privacy, Text
from release.spec.domains import Bins, Domain, Model, plain_answers
from release.spec.guarantees import (
    DeclaredSensitivity,
    GuaranteeSpec,
    LossSpec,
    SensitivitySpec,
    Source,
)
from release.spec.mechanisms import BEST, MechanismName


class Query(Model):
    """A query of any kind: the fields that all have in common, and what a kind has to say.

    A kind is a subclass in :mod:`release.queries`, registered in :mod:`release.spec.kinds`
    (CONTRIBUTING.md, "your first query kind"). What is defined here is true of most kinds; a kind
    overrides what is not true of it.
    """

    can_be_part: ClassVar[bool] = True
    """Whether a tuple can answer it jointly with others."""

    runs_again: ClassVar[bool] = False
    """Whether its sensitivity is found by answering it on every neighbor of the table."""

    kind: str = Field(description="the kind of query")

    name: Name = Field(description="the name of the query and of its files")
    title: Text | None = Field(default=None, description="a title for people; without it the name")
    units: Text | None = Field(default=None, description="the unit of measure of the answers")
    table: str = Field(description="the table that the query reads")
    by: list[str] = Field(description="the key columns of the cells; `[]` for one answer")
    where: str | None = Field(default=None, description="an SQL condition on one row")
    max_rows_per_unit: Count | None = Field(
        default=None,
        description="the most rows of a unit that this query reads; else the bound of `privacy`",
    )
    sensitivity: SensitivitySpec | None = Field(
        default=None,
        description="where the sensitivity comes from; a query with a guarantee needs it",
    )
    guarantee: GuaranteeSpec | None = Field(
        default=None,
        description="the claimed guarantee of one cell; without it, a query serves tuples only",
    )
    loss: LossSpec = Field(default=LossName.ERROR_RATE, description="the loss function to minimise")
    mechanism: MechanismName = Field(
        default=BEST,
        strict=False,
        description="how the noisy answer is drawn: `best`, a type, or a baseline",
    )

    @property
    def promised(self) -> GuaranteeSpec:
        """The guarantee of a query that is published by itself.

        Raises:
            TypeError: it is a part of a tuple only.
        """
        if self.guarantee is None:
            raise TypeError(f"{self.name} is a part of a tuple and has no guarantee of its own")
        return self.guarantee

    @property
    def source(self) -> Literal["empirical", "global", "declared"]:
        """Where the sensitivity comes from: this table, every table, or the spec."""
        if isinstance(self.sensitivity, DeclaredSensitivity):
            return "declared"
        if self.sensitivity is None:
            raise TypeError(f"{self.name} is a part of a tuple and has no sensitivity of its own")
        return self.sensitivity.value

    @property
    def is_empirical(self) -> bool:
        """Whether the sensitivity, and so the mechanism, depend on the confidential table."""
        return self.sensitivity is Source.EMPIRICAL

    @property
    def for_units(self) -> bool:
        """Whether it answers for each unit by itself, so that units are keys."""
        return False

    @property
    @abstractmethod
    def parts(self) -> tuple[PlainQuery, ...]:
        """The queries that it answers: itself, or the parts of a tuple."""

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of the queries that it answers jointly; none for most kinds."""
        return ()

    def with_parts(self, parts: tuple[PlainQuery, ...]) -> Query:
        """The query that holds the ``parts`` of these names."""
        return self

    @property
    @abstractmethod
    def answers(self) -> AnswerDomain | JointDomain:
        """The possible answers, in code order."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the released table that hold labels (docs/design/format.md)."""
        return ("answer",)

    @abstractmethod
    def domain_record(self) -> dict[str, Any]:
        """The domain as it stands in the spec and in ``release.json``."""

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """By field, the column that it names and the type that this column has to have."""
        return {}

    def check(self, at: str, privacy: Privacy, keys: Collection[str]) -> None:
        """Refuse what the kind cannot answer; ``at`` is the path of the query, for messages.

        Raises:
            SpecError: the query does not go together with the privacy unit or the key sets.
        """


class PlainQuery(Query):
    """A query with one answer a cell."""

    @property
    def parts(self) -> tuple[PlainQuery, ...]:
        """Itself."""
        return (self,)

    @property
    @abstractmethod
    def answers(self) -> AnswerDomain:
        """The possible answers, in code order."""

    @property
    def counts_rows(self) -> bool:
        """Whether its true answers are numbers of rows, so that those of parts add up."""
        return False

    def shown_labels(self) -> tuple[str, ...]:
        """What a reader sees of each answer, in code order."""
        return tuple(map(str, self.answers.labels))

    def shown_interval(self, first: int, last: int) -> tuple[str, str]:
        """What a reader sees of the answers from code ``first`` to code ``last``."""
        labels = self.shown_labels()
        return labels[first], labels[last]

    def facts(self) -> dict[str, Any]:
        """What a description says of the answers beside title, unit and topology."""
        return {}

    def edges(self) -> tuple[int, ...] | None:
        """Where the bins of the answers begin, and where the last one ends; None without bins."""
        return None


class DomainQuery(PlainQuery):
    """A plain query whose possible answers the field ``domain`` declares."""

    domain: Domain = Field(description="the possible answers")

    @property
    def answers(self) -> AnswerDomain:
        """Those of ``domain``."""
        return plain_answers(self.domain)

    def domain_record(self) -> dict[str, Any]:
        """As it stands in the spec."""
        return self.domain.model_dump(mode="json")

    def shown_labels(self) -> tuple[str, ...]:
        """Of bins their least and largest integer, else the labels."""
        return bin_labels(self.answers) if isinstance(self.domain, Bins) else super().shown_labels()

    def shown_interval(self, first: int, last: int) -> tuple[str, str]:
        """Of bins from where the first begins to where the last ends, else the labels."""
        shown = super().shown_interval(first, last)
        return bin_interval(self.answers, first, last) if isinstance(self.domain, Bins) else shown


def bin_labels(answers: AnswerDomain) -> tuple[str, ...]:
    """Bins as from their least integer to their largest; the last one has no end."""
    lows = [int(label) for label in answers.labels]
    closed = (f"{low} to {following - 1}" for low, following in pairwise(lows))
    return (*closed, f"{lows[-1]} or more")


def bin_interval(answers: AnswerDomain, first: int, last: int) -> tuple[str, str]:
    """From where bin ``first`` begins to where bin ``last`` ends."""
    return str(answers.labels[first]), bin_labels(answers)[last].split(" to ")[-1]
