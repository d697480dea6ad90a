"""quantiles: several quantiles of a column from one charge, which never cross.

The candidates are the points of an ordered domain, or bins. A single quantile is selected by rank;
several are drawn together, or read off noisy counts of few candidates, as declared sizes decide
(docs/design/mathematics.md 2.27). Each row counts at the candidate to
which its clamped value belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, model_validator

from release.exact.domain import AnswerDomain, Codes
from release.exact.numbers import format_exact
from release.exact.statistics.joint_quantiles import spread_of
from release.exact.statistics.nearness import Wording
from release.exact.statistics.statistic import Ranks, Scores, Statistic
from release.queries.base import Profiles
from release.queries.kinds.binned import Binned, BinnedQuery, ranks_of
from release.queries.on_statistic import OnStatisticQuery
from release.queries.statistics import rank_scores, rank_spread
from release.spec.declarations import ColumnType, Pair, Relation
from release.spec.domains import AMOUNT_LIMIT, BinRange, Bins, Exact, Ordered, plain_answers
from release.spec.guarantees import Source
from release.spec.query import PlainQuery, spoken

_FINEST = 10**6
"""The largest denominator of a quantile: times the rows of a cell it has to fit 64 bits."""


class QuantilesQuery(OnStatisticQuery):
    """The quantiles ``at`` of an integer column, on the points of a domain or in bins."""

    can_be_part = False
    has_answer_noise = False

    kind: Literal["quantiles"] = Field(description="the kind of query")
    of: str = Field(description="the column of the numbers")
    at: list[Exact] = Field(
        min_length=1, max_length=20, description="the quantiles, ascending, between 0 and 1"
    )
    domain: Ordered | None = Field(default=None, description="the points of the answers")
    bins: BinRange | None = Field(default=None, description="the bins of the answers")
    clamp: Pair | None = Field(
        default=None, description="the lowest and highest value a row counts as; else the domain's"
    )
    cell_size: int | None = Field(
        default=None, ge=1, description="about how many rows a cell has, as far as is public"
    )

    @property
    def is_on_statistic(self) -> bool:
        """Always."""
        return self.sensitivity is not None

    @property
    def answers(self) -> AnswerDomain:
        """The points or the bins."""
        return plain_answers(self.domain or Bins(bins=self.own_bins))

    @property
    def own_bins(self) -> BinRange:
        """The bins, or one for each point."""
        if self.bins is not None:
            return self.bins
        if self.domain is None:
            raise TypeError(f"{self.name} has neither points nor bins")
        low, high = self.domain.ordered.min, self.domain.ordered.max
        return BinRange(low=low, high=high + 1, count=high - low + 1)

    def domain_record(self) -> dict[str, Any]:
        """As it stands in the spec."""
        answers = self.domain or Bins(bins=self.own_bins)
        return answers.model_dump(mode="json")

    @property
    def binned(self) -> BinnedQuery:
        """The median in the same bins: rows are counted alike."""
        return BinnedQuery(
            kind="median",
            name=self.name,
            table=self.table,
            by=self.by,
            of=self.of,
            bins=self.own_bins,
            clamp=self.clamp,
        )

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        clamp = self.clamp if self.bins is None else list(self.binned.row_bounds)
        return {"of": self.of, "at": self.at, "clamp": clamp, "cell_size": self.cell_size}

    def sums(self) -> Binned:
        """How its profiles become sums: the rows at or above each candidate."""
        return self.binned.sums()

    @property
    def bounded(self) -> tuple[str, int, int]:
        """The column, and the bounds of a row."""
        return self.binned.bounded

    def statistic(self, rows: int, relation: Relation) -> Statistic:
        """The distance from the rank of one quantile, or for several the rows at each candidate."""
        size, shares = self.answers.size, tuple(self.at)
        if len(shares) == 1:
            spread = rank_spread(shares[0], rows, relation)
            return Scores(size, spread, lambda sums: rank_scores(*ranks_of(sums), shares[0]))
        replaces = relation is not Relation.ADD_REMOVE
        spread = spread_of(shares, rows, replaces=replaces)
        return Ranks(size, spread, _rows_at, shares, rows, replaces, self.cell_size)

    def question(self, units: str) -> str:
        """The quantiles of the column."""
        *before_last, last = map(format_exact, self.at)
        named = (
            f"{', '.join(before_last)} and {last} quantiles" if before_last else f"{last} quantile"
        )
        return f"the {named} of the {spoken(self.of)}"

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Those of ``at``."""
        return tuple(self.at)

    @property
    def wording(self) -> Wording:
        """A rank is multiplied by so much in the scores of one quantile."""
        return replace(super().wording, scores_a_row=self.at[0].denominator)

    @property
    def columns(self) -> tuple[str, ...]:
        """``answer`` of one quantile; of several a column for each, such as ``answer_0_25``."""
        if len(self.at) == 1:
            return ("answer",)
        texts = map(format_exact, self.at)
        return tuple(f"answer_{text.replace('.', '_').replace('/', '_')}" for text in texts)

    @property
    def column_domains(self) -> tuple[AnswerDomain, ...]:
        """The candidates, for each quantile."""
        return (self.answers,) * len(self.at)

    @property
    def column_parts(self) -> tuple[PlainQuery, ...]:
        """The query itself, for each quantile."""
        return (self,) * len(self.at)

    @property
    def outcome_columns(self) -> tuple[str, ...]:
        """The codes of the quantiles."""
        return tuple(name.replace("answer", "answer_code", 1) for name in self.columns)

    def answer_codes(self, outcomes: Codes) -> list[Codes]:
        """The codes of each quantile."""
        return list(outcomes.T)

    def impossible(self, outcomes: Codes) -> str | None:
        """Quantiles that fall."""
        return "quantiles that fall" if (outcomes[:, 1:] < outcomes[:, :-1]).any() else None

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The column of the numbers."""
        return {"of": (self.of, ColumnType.INTEGER)}

    def shown_answers(self, codes: Sequence[int]) -> list[str]:
        """The points, or from the least integer of each bin to the largest."""
        if self.bins is None:
            return super().shown_answers(codes)
        return self.binned.shown_answers(codes)

    @model_validator(mode="after")
    def _check(self) -> QuantilesQuery:
        if (self.domain is None) == (self.bins is None):
            raise ValueError("quantiles need domain: {ordered: {min: a, max: b}}, or bins")
        own = self.own_bins
        if max(abs(own.low), abs(own.high)) > AMOUNT_LIMIT or own.count > 10**6:
            raise ValueError("quantiles need at most 10^6 points, within ±(2^31 - 1)")
        if not all(0 < share < 1 for share in self.at) or sorted(set(self.at)) != self.at:
            raise ValueError("at lists numbers between 0 and 1, ascending, each once")
        if max(share.denominator for share in self.at) > _FINEST:
            raise ValueError("at needs numbers of six digits at most, or fractions as small")
        if self.sensitivity not in (None, Source.GLOBAL) or self.noise not in (
            None,
            "on_statistic",
        ):
            raise ValueError(
                "quantiles have their noise on the statistic; write sensitivity: global"
            )
        # The same bounds and messages as a median's.
        _ = self.binned
        return self


def _rows_at(sums: Profiles) -> Codes:
    return ranks_of(sums)[1]
