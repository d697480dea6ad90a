"""A query of the spec: the fields of every kind, and the members that a kind defines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from release.exact.domain import AnswerDomain, Codes, JointDomain, Topology
from release.exact.losses import LossName
from release.spec.declarations import ColumnType, Count, Name, Privacy, Text
from release.spec.domains import (
    BinRange,
    Bins,
    Domain,
    Exact,
    Model,
    ends_of_bins,
    plain_answers,
)
from release.spec.guarantees import (
    DeclaredSensitivity,
    GuaranteeSpec,
    LossSpec,
    Objective,
    SensitivitySpec,
    Source,
)
from release.spec.mechanisms import BEST, MechanismName


def spoken(name: str) -> str:
    """A name of a spec as words."""
    return name.replace("_", " ")


class Noise(StrEnum):
    """Where the noise is added: to the integers that decide the answer, or to the answer's code."""

    ON_STATISTIC = "on_statistic"
    ON_ANSWER = "on_answer"


class Query(Model):
    """A query of any kind: the fields that all kinds share, and what a kind has to define.

    A kind is a subclass in :mod:`release.queries`, registered in :mod:`release.spec.kinds`
    (docs/design/extending.md). The members with a body hold for most kinds; a kind
    overrides the others.
    """

    # Class variables and no fields: a spec cannot say otherwise of a query.
    can_be_part: ClassVar[bool] = True
    """Whether a tuple can answer it jointly with others."""

    runs_again: ClassVar[bool] = False
    """Whether its sensitivity is computed by a run on every neighbor of the table."""

    is_narrow: ClassVar[bool] = True
    """Whether what a unit can change is listed answer by answer, so that there are 10^6 at most."""

    kind: str = Field(description="the kind of query")

    name: Name = Field(description="the name of the query and of its files")
    title: Text | None = Field(default=None, description="a title for people; without it the name")
    units: Text | None = Field(default=None, description="the unit of measure of the answers")
    table: str = Field(
        default="", description="the table that the query reads; it may be left out where one is"
    )
    by: list[str] = Field(
        default=[], description="the key columns of the cells; without any, one answer"
    )
    where: str | None = Field(default=None, description="an SQL condition on one row")
    max_rows_per_unit: Count | None = Field(
        default=None,
        description="the most rows of a unit that this query reads; else the bound of `privacy`",
    )
    sensitivity: SensitivitySpec | None = Field(
        default=None,
        description="where the sensitivity comes from: `global` where a query is published and "
        "nothing is written",
    )
    # Of one cell: the charge is this for each cell that a unit can touch, by keys and bounds.
    guarantee: GuaranteeSpec | None = Field(
        default=None,
        description="the claimed guarantee of one cell; without it, a query serves tuples only",
    )
    share: Exact | None = Field(
        default=None,
        description="in place of a guarantee: the part of the budget that the query gets, beside "
        "the other shares, or better",
    )
    target: str | None = Field(
        default=None,
        description="in place of a guarantee, or beside one with `least`: a cap on the expected "
        'loss, such as "absolute <= 5"',
    )
    loss: LossSpec = Field(default=LossName.ERROR_RATE, description="the loss function to minimise")
    mechanism: MechanismName = Field(
        default=BEST,
        strict=False,
        description="how the noisy answer is drawn: `best`, a type, or a baseline",
    )
    parameters: dict[str, Exact] = Field(
        default={}, description="numbers that the mechanism is to have; others are fitted"
    )
    # Public, and in no proof: noise for a wrong prior loses more and protects no less.
    prior: list[Exact] | None = Field(
        default=None,
        description="a public probability for each true answer, over which losses are means; "
        "without it all are as likely",
    )
    objective: Objective = Field(
        default=Objective.MEAN,
        strict=False,
        description="what is least: the `mean` of the losses, or that of the `worst_case` answer",
    )
    constraints: list[str] = Field(
        default=[],
        max_length=100,
        description="demands on the pmf of modular noise: `zero_mean`, `monotone`, "
        "`mean_square <= 4`, `equal 1 -1`",
    )

    @model_validator(mode="before")
    @classmethod
    def _published_for_every_table(cls, data: Any) -> Any:
        """A query that is published, and says nothing else, has the sensitivity of every table."""
        is_mapping = isinstance(data, dict) and "sensitivity" not in data
        if is_mapping and any(name in data for name in ("guarantee", "share", "target")):
            return {**data, "sensitivity": Source.GLOBAL.value}
        return data

    @property
    def is_shared(self) -> bool:
        """Whether its guarantee is found with those of the whole spec, from a share or a target."""
        return self.share is not None or (self.target is not None and not self.seeks_least)

    @property
    def seeks_least(self) -> bool:
        """Whether it claims the least ε or δ that meets its target."""
        return self.guarantee is not None and self.guarantee.least is not None

    @property
    def tabulation(self) -> str | None:
        """The tabulation that measures it; None of a query that the spec asks for."""
        return None

    @property
    def is_measured(self) -> bool:
        """Whether a tabulation measures it, and no query of the spec asks for it."""
        return self.tabulation is not None

    @property
    def own_cells(self) -> int | None:
        """The number of its cells, where these are not the combinations of key sets."""
        return None

    @property
    def is_released(self) -> bool:
        """Whether it is published by itself, and not only as a part of tuples."""
        return self.guarantee is not None or self.is_shared

    @property
    def claimed(self) -> GuaranteeSpec:
        """The guarantee of a query that is published by itself.

        Raises:
            TypeError: it is a part of a tuple only, or its guarantee is still to be found.
        """
        if self.guarantee is None:
            raise TypeError(f"{self.name} has no guarantee of its own, or none yet")
        # What is claimed, charged and proved is what is within reach, and never the stronger text.
        return self.guarantee.within_reach(self.answers)

    @property
    def source(self) -> Literal["empirical", "global", "declared"]:
        """Where the sensitivity comes from: this table, every table, or the spec."""
        if isinstance(self.sensitivity, DeclaredSensitivity):
            return "declared"
        if self.sensitivity is None:
            raise TypeError(f"{self.name} is a part of a tuple and has no sensitivity of its own")
        return self.sensitivity.value

    @property
    def is_on_statistic(self) -> bool:
        """Whether noise is added to the integers that decide the answer, not to the answer."""
        return False

    @property
    def outcome_columns(self) -> tuple[str, ...]:
        """The columns of the released table that hold what was drawn, as integers."""
        return ("answer_code",)

    def answer_codes(self, outcomes: Codes) -> list[Codes]:
        """The codes of each answer column, from what was drawn: shape (cells, outcome columns)."""
        return list(self.answers.group.coordinates(outcomes[:, 0]))

    def impossible(self, outcomes: Codes) -> str | None:
        """What the mechanism could not have drawn among ``outcomes``; None where it could."""
        return None

    @property
    def is_empirical(self) -> bool:
        """Whether the sensitivity, and so the mechanism, depend on the confidential table."""
        # Then the mechanism file is confidential too: it stands in the auditor's folder alone.
        return self.sensitivity is Source.EMPIRICAL

    @property
    def for_units(self) -> bool:
        """Whether it has an answer for each unit, so that the units are its keys."""
        return False

    def question(self, units: str) -> str:
        """What is asked of the rows of a cell, as a phrase; ``units`` are the protected ones."""
        return f"the {spoken(self.kind)}"

    @property
    @abstractmethod
    def parts(self) -> tuple[PlainQuery, ...]:
        """The queries whose answers it gives: itself, or the parts of a tuple."""

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of the queries that a tuple answers jointly; none for other kinds."""
        return ()

    def with_parts(self, parts: tuple[PlainQuery, ...]) -> Query:
        """The query with the queries of :attr:`part_names`; itself for kinds without any."""
        # A tuple is read before its parts may be known: these are set once the whole spec is read.
        return self

    @property
    @abstractmethod
    def answers(self) -> AnswerDomain | JointDomain:
        """The possible answers, in code order."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the released table that hold labels (docs/design/format.md)."""
        return ("answer",)

    @property
    def column_domains(self) -> tuple[AnswerDomain, ...]:
        """The domain of each of :attr:`columns`."""
        return self.answers.parts

    @property
    def column_parts(self) -> tuple[PlainQuery, ...]:
        """The query that each of :attr:`columns` answers."""
        return self.parts

    @abstractmethod
    def domain_record(self) -> dict[str, Any]:
        """The answer domain as the spec and ``release.json`` hold it."""

    def asked_fields(self) -> dict[str, Any]:
        """The fields that a question of this kind has in a release, beside those of every one.

        Raises:
            TypeError: a tabulation measures it, and no spec asks for it.
        """
        raise TypeError(f"{self.kind} has no form")

    def counts_again(self, privacy: Privacy) -> bool:
        """Whether one unit may count in several cells, so that a sum of them counts it again.

        Of counts of distinct units alone: rows lie in one cell each.
        """
        return False

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """For each field that names a column: the column, and the type that it must have."""
        return {}

    def check(self, at: str, privacy: Privacy, keys: Collection[str]) -> None:
        """Refuse what the kind cannot answer; ``at`` is the path of the query, for messages.

        Raises:
            SpecError: the query does not fit the privacy unit or the key sets.
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
        """Whether its answers are numbers of rows, which add up over disjoint conditions."""
        return False

    @property
    def step_word(self) -> str:
        """What one code of the answer is, in the plural, where the spec names no unit."""
        return "steps"

    def shown_labels(self) -> tuple[str, ...]:
        """The text that readers see for each answer, in code order."""
        return tuple(self.shown_answers(range(self.answers.size)))

    def shown_answers(self, codes: Sequence[int]) -> list[str]:
        """The text that readers see for each of ``codes``."""
        # A domain may have far more labels than there are cells: no text is made of the others.
        return [str(self.answers.labels[code]) for code in codes]

    @property
    def scale(self) -> str:
        """The level of measurement of its answers: which comparisons of them mean something.

        The spec does not say whether the zero of a number is a true one, so only counts are ratios.
        """
        topology = self.answers.topology
        if topology is not Topology.ORDERED:
            return str(topology.value)
        return "interval" if self.has_distances else "ordinal"

    @property
    def has_distances(self) -> bool:
        """Whether differences of answers in order mean something, as those in a unit do."""
        return self.units is not None

    def facts(self) -> dict[str, Any]:
        """Further entries of the answers' description, beside title, unit and topology."""
        return {}

    def edges(self) -> tuple[int, ...] | None:
        """Where the bins of the answers begin, and where the last one ends; None without bins."""
        return None


class DomainQuery(PlainQuery):
    """A plain query whose possible answers the field ``domain`` declares."""

    domain: Domain = Field(description="the possible answers")

    @property
    def answers(self) -> AnswerDomain:
        """The answers of ``domain``."""
        return plain_answers(self.domain)

    def domain_record(self) -> dict[str, Any]:
        """As it stands in the spec."""
        return self.domain.model_dump(mode="json")

    @property
    def has_distances(self) -> bool:
        """Bins are of a number."""
        return isinstance(self.domain, Bins) or super().has_distances

    @property
    def step_word(self) -> str:
        """Bins, or steps."""
        return "bins" if isinstance(self.domain, Bins) else super().step_word

    def shown_answers(self, codes: Sequence[int]) -> list[str]:
        """For bins their least and largest integer, else the labels."""
        if isinstance(self.domain, Bins):
            return bin_texts(self.domain.bins, codes)
        return super().shown_answers(codes)


def bin_texts(bins: BinRange, codes: Sequence[int], *, is_real: bool = False) -> list[str]:
    """Bins as from where to where their values lie; the last one has no end."""
    texts = []
    for low, high in ends_of_bins(bins, codes, is_real=is_real):
        texts.append(f"{low} or more" if high is None else f"{low} to {high}")
    return texts
