"""top: the k categories of most units or rows, from one charge.

The categories are those of a mode, and so are the counts: distinct units, or rows. Noise is on the
counts always. Where a unit has one row, a histogram of noisy counts costs the same whatever k is,
and its noisy counts may be published beside the categories: those of the k (``counts: true``), or
of all categories (``histogram: true``). Where a unit may be in many categories the set is drawn as
a whole, or peeled off one by one; declared sizes decide, or the spec does (docs/design/top-k.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from release.exact.domain import AnswerDomain, Codes
from release.exact.statistics.nearness import Wording
from release.exact.statistics.statistic import Counts
from release.exact.statistics.top.bounds import CountBounds, Published
from release.exact.statistics.top.histogram import largest
from release.queries.kinds.mode import Counted, Mode, category_type
from release.queries.on_statistic import OnStatisticQuery
from release.spec.declarations import ColumnType, Privacy, Relation
from release.spec.domains import Bins
from release.spec.guarantees import Source
from release.spec.query import DomainQuery, PlainQuery, spoken

_MOST_COLUMNS = 1_000
"""Categories whose noisy counts are published, each in a column of its own."""


class TopQuery(DomainQuery, OnStatisticQuery):
    """The ``k`` categories of most units or rows; its domain is cyclic, nominal or ordered."""

    can_be_part = False
    has_answer_noise = False

    kind: Literal["top"] = Field(description="the kind of query")
    of: str = Field(description="the column of the category")
    k: int = Field(ge=1, le=50, description="how many categories are published")
    count: Counted = Field(
        default=Counted.UNITS, strict=False, description="what is counted: `units` or `rows`"
    )
    counts: bool = Field(default=False, description="publish the noisy counts of the `k` too")
    histogram: bool = Field(
        default=False, description="publish the noisy counts of all categories, at no further cost"
    )
    cell_size: int | None = Field(
        default=None, ge=1, description="about how many rows a cell has, as far as is public"
    )

    @property
    def is_on_statistic(self) -> bool:
        """Always."""
        return self.sensitivity is not None

    def question(self, units: str) -> str:
        """The first few categories of most units or rows."""
        first = f"{self.k} values" if self.k > 1 else "value"
        return f"the {first} of {spoken(self.of)} of most {units if self.counts_units else 'rows'}"

    @property
    def counts_units(self) -> bool:
        """Whether a unit counts once in each of its categories."""
        return self.count is Counted.UNITS

    @property
    def in_units(self) -> dict[str, Any]:
        """Distinct units are counted where the spec counts rows."""
        return {} if self.counts_units else {"count": Counted.UNITS}

    @property
    def wording(self) -> Wording:
        """Counted are units or rows."""
        return replace(super().wording, counted=self.count.value)

    @property
    def weight(self) -> str | None:
        """Counts are not weighed."""
        return None

    @property
    def clamp(self) -> list[int] | None:
        """There is no weight to bound."""
        return None

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        return {
            "of": self.of,
            "k": self.k,
            "count": self.count.value,
            "cell_size": self.cell_size,
            "counts": self.counts,
            "histogram": self.histogram,
        }

    def counts_again(self, privacy: Privacy) -> bool:
        """As every question has it: the categories of a histogram are cells of one more column."""
        return self.histogram and self.count is Counted.UNITS

    def sums(self) -> Mode:
        """The counts of a mode."""
        return Mode(self)

    def statistic(self, rows: int, relation: Relation) -> Counts:
        """The counts of the categories."""
        size = self.answers.size
        # Rows are steps of one category each, whose ranges add up as those of one category do.
        touched, weight = (min(rows, size), 1) if self.counts_units else (1, rows)
        bounds = CountBounds(size, touched, weight, relation is not Relation.ADD_REMOVE)
        return Counts(
            size, bounds.norm, np.positive, bounds, self.k, self.cell_size, self.published
        )

    @property
    def published(self) -> Published:
        """Which noisy counts are published."""
        if self.histogram:
            return Published.ALL
        return Published.MEMBERS if self.counts else Published.NONE

    @property
    def count_columns(self) -> tuple[str, ...]:
        """The columns of the noisy counts: by category of a histogram, else by place."""
        if self.histogram:
            return tuple(map("noisy_count_{}".format, self.answers.labels))
        places = range(1, self.k + 1) if self.counts else ()
        return tuple(map("noisy_count_{}".format, places))

    @property
    def histogram_of(self) -> str | None:
        """The category's column."""
        return self.of if self.histogram else None

    @property
    def columns(self) -> tuple[str, ...]:
        """One for each place."""
        return tuple(map("answer_{}".format, range(1, self.k + 1)))

    @property
    def column_domains(self) -> tuple[AnswerDomain, ...]:
        """The categories, for each place."""
        return (self.answers,) * self.k

    @property
    def column_parts(self) -> tuple[PlainQuery, ...]:
        """The query itself, for each place."""
        return (self,) * self.k

    @property
    def outcome_columns(self) -> tuple[str, ...]:
        """The codes, and the noisy counts where they are published."""
        return (*map("answer_code_{}".format, range(1, self.k + 1)), *self.count_columns)

    def answer_codes(self, outcomes: Codes) -> list[Codes]:
        """The codes of each place."""
        return list(outcomes[:, : self.k].T)

    def impossible(self, outcomes: Codes) -> str | None:
        """A category twice, noisy counts that rise, or categories that are not the largest."""
        codes, counts = np.sort(outcomes[:, : self.k], axis=1), outcomes[:, self.k :]
        if (codes[:, 1:] == codes[:, :-1]).any():
            return "a category twice"
        if self.histogram:
            is_largest = (largest(counts, self.k) == outcomes[:, : self.k]).all()
            return None if is_largest else "categories that are not those of the largest counts"
        return "counts that rise" if (counts[:, 1:] > counts[:, :-1]).any() else None

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The category's column."""
        return {"of": (self.of, category_type(self.domain))}

    @model_validator(mode="after")
    def _check(self) -> TopQuery:
        if isinstance(self.domain, Bins):
            raise ValueError("a top needs a domain that is cyclic, nominal or ordered")
        if self.k >= self.answers.size:
            raise ValueError(f"k must be below the {self.answers.size} categories")
        if self.histogram and self.counts:
            raise ValueError("a histogram has the counts of the k; leave out counts")
        if self.histogram and self.answers.size > _MOST_COLUMNS:
            raise ValueError(f"a histogram is published of at most {_MOST_COLUMNS:,} categories")
        if self.sensitivity not in (None, Source.GLOBAL) or self.noise not in (
            None,
            "on_statistic",
        ):
            raise ValueError("a top has its noise on the statistic; write sensitivity: global")
        return self
