"""The queries that can be answered with noise on their statistic."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

from pydantic import Field, model_validator

from release.exact.statistics.nearness import Wording
from release.exact.statistics.statistic import Statistic
from release.queries.base import SummedQuery
from release.spec.declarations import Relation
from release.spec.guarantees import Source
from release.spec.query import Noise, PlainQuery


class OnStatisticQuery(PlainQuery, SummedQuery):
    """A query that can be answered with noise on its statistic."""

    has_answer_noise: ClassVar[bool] = True
    """Whether noise on the answer is a choice."""

    noise: Noise | None = Field(
        default=None,
        strict=False,
        description="`on_statistic`, the default under global sensitivity, or `on_answer`",
    )

    @property
    def is_on_statistic(self) -> bool:
        """Whether noise is added to the statistic; by default where the sensitivity is global."""
        if self.noise is None:
            return self.sensitivity is Source.GLOBAL
        return self.noise is Noise.ON_STATISTIC

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The quantiles that are asked for; none of other kinds."""
        return ()

    @property
    def count_columns(self) -> tuple[str, ...]:
        """The columns of noisy counts that are published beside the answers."""
        return ()

    @property
    def histogram_of(self) -> str | None:
        """The column whose values have a noisy count each; None where no histogram is published."""
        return None

    @property
    def in_units(self) -> dict[str, Any]:
        """The fields with which units are counted in place of rows; none where they are."""
        return {}

    def fields_on_statistic(self, rows: int) -> dict[str, Any]:
        """Further fields that noise on the statistic needs, where a unit has up to ``rows`` rows.

        Raises:
            ValueError: a bound is needed that nothing public suggests.
        """
        return {}

    @property
    def sum_bounds(self) -> tuple[int, int]:
        """The lowest and highest value a row counts as in its sums.

        Raises:
            TypeError: the statistic is no sum.
        """
        raise TypeError(f"{self.name} has no sums")

    @property
    def wording(self) -> Wording:
        """What sentences about a mechanism need to know of this question."""
        return Wording(self.units or f"units of {self.name}")

    @abstractmethod
    def statistic(self, rows: int, relation: Relation) -> Statistic:
        """The integers that decide the answer, where a unit has at most ``rows`` rows in a cell."""

    @model_validator(mode="after")
    def _check_noise(self) -> OnStatisticQuery:
        if self.noise is Noise.ON_STATISTIC and self.sensitivity is not Source.GLOBAL:
            raise ValueError(
                "noise: on_statistic is proved for every table; write sensitivity: global"
            )
        return self
