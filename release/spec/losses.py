"""The loss function of a query, and caps on errors: targets, and what a run has to keep."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from release.errors import SpecError, unknown_name
from release.exact.channel import MOST_ROWS
from release.exact.domain import AnswerDomain, JointDomain, Topology
from release.exact.losses import (
    Loss,
    LossName,
    WorstCaseLoss,
    joint_loss,
    prior_loss,
    table_loss,
    worst_on_line,
)
from release.exact.numbers import member, parse_exact
from release.spec.domains import MAX_ANSWERS
from release.spec.guarantees import Objective, TableLoss
from release.spec.named import by_name
from release.spec.query import Query

if TYPE_CHECKING:
    from release.spec.model import Spec


def loss_of(query: Query) -> Loss | WorstCaseLoss:
    """The loss function that the spec names for ``query``, under its prior or its worst answer."""
    domain = query.answers
    if isinstance(query.loss, TableLoss):
        return table_loss(tuple(query.loss.table))
    if query.prior is not None:
        return prior_loss(query.loss, domain.parts[0].topology, tuple(query.prior))
    # Without an order every true answer of modular noise loses the same.
    if query.objective is Objective.WORST_CASE and domain.is_line:
        return worst_on_line(query.loss, domain.size, MOST_ROWS)
    return loss_on(query.loss, domain)


def loss_on(name: LossName | str, domain: AnswerDomain | JointDomain) -> Loss:
    """A named loss on the answers of a query.

    Raises:
        SpecError: there is no such loss.
    """
    name = member("loss", LossName, name)
    if domain.size > MAX_ANSWERS:
        # Of so many answers in order only noise on the integers makes use, which reads the name.
        return Loss(name.value, np.array([0, 1], dtype=np.int64))
    return joint_loss(name, domain.parts)


@dataclass(frozen=True)
class Target:
    """A cap on an expected loss, in the unit of the loss."""

    loss: LossName
    cap: Fraction


def parse_target(field: str, text: str) -> Target:
    """The target in a text.

    Raises:
        SpecError: the text is no target; ``field`` is where it was written.
    """
    figure, cap = _capped(field, text, _LOSSES, "loss")
    return Target(LossName(figure), cap)


def _capped(field: str, text: str, figures: Sequence[str], noun: str) -> tuple[str, Fraction]:
    """One of ``figures`` and its cap: the grammar of all places that name a cap."""
    # The grammar of docs/design/spec.md.
    words = text.replace("<=", " <= ").split()
    if len(words) != 3 or words[0] not in figures or words[1] != "<=":
        problem = f'found {text!r}; write a {noun} and its cap, such as "error_rate <= 0.2"'
        plural = "losses" if noun == "loss" else "figures"
        raise SpecError(field, f"{problem}; {plural} are {', '.join(figures)}")
    try:
        return words[0], parse_exact(words[2])
    except ValueError as error:
        raise SpecError(field, f"found {words[2]!r}; {error}") from None


P95, MEAN_ERROR = "p95", "mean_error"
"""The error of 95 in 100 answers, and the mean absolute error, both in the unit of the answer."""

_EXPECTED = (LossName.ERROR_RATE.value, LossName.ABSOLUTE.value, LossName.SQUARED.value)
_FIGURES = (P95, MEAN_ERROR, *_EXPECTED)

_LOSSES = tuple(name.value for name in LossName)

_OF_TABLE = re.compile(r"(?P<name>\S+) (?P<level>.+?) \[(?P<margin>[^\[\]]*)\]")


@dataclass(frozen=True)
class Acceptance:
    """A cap on the error of a query, or of a table of a tabulation, without which nothing is run.

    Attributes:
        place: the path of the entry, for messages.
        text: as it stands in the spec.
        name: of the query or of the tabulation.
        level: of a table of a tabulation; None of a query.
        margin: of that table.
        figure: what is capped.
        cap: its largest value.
    """

    place: str
    text: str
    name: str
    level: str | None
    margin: tuple[str, ...]
    figure: str
    cap: Fraction


def acceptance_of(spec: Spec) -> tuple[Acceptance, ...]:
    """The entries of ``acceptance``, in the order of the spec.

    Raises:
        SpecError: an entry names no query, no table or no figure of it, or the accuracy of its
            query depends on the confidential table.
    """
    entries = []
    for number, text in enumerate(spec.acceptance):
        entry = _entry(f"acceptance[{number}]", text)
        if entry.level is None:
            _check_of_query(spec, entry)
        else:
            _check_of_table(spec, entry)
        entries.append(entry)
    return tuple(entries)


def _entry(place: str, text: str) -> Acceptance:
    # The last colon: the name of a level may hold one, and a cap has none.
    of, colon, capped = text.rpartition(":")
    if not colon:
        raise SpecError(place, 'write what is capped, such as "homes: mean_error <= 3"')
    figure, cap = _capped(place, capped, _FIGURES, "figure")
    table = _OF_TABLE.fullmatch(of.strip())
    if table is None:
        return Acceptance(place, text, of.strip(), None, (), figure, cap)
    # An empty pair of brackets is the margin of no attribute, the total.
    margin = tuple(filter(None, map(str.strip, table["margin"].split(","))))
    return Acceptance(place, text, table["name"], table["level"].strip(), margin, figure, cap)


def _check_of_query(spec: Spec, entry: Acceptance) -> None:
    queries, tabulations = by_name(spec.released), by_name(spec.tabulations)
    if entry.name in tabulations:
        raise SpecError(
            entry.place, f'name a table of it, such as "{entry.name} LEVEL [NAME]: p95 <= 40"'
        )
    if entry.name not in queries:
        raise SpecError(entry.place, unknown_name(entry.name, [*queries, *tabulations]))
    query = queries[entry.name]
    if query.is_empirical:
        # A refusal would tell of the table; and so would a release that was not refused.
        raise SpecError(
            entry.place,
            f"the accuracy of {entry.name!r} depends on the table; write sensitivity: global, or "
            "look at it with dp-release check",
        )
    if query.is_on_statistic:
        if entry.figure != P95:
            raise SpecError(entry.place, "noise on the statistic has the figure p95; write that")
    elif entry.figure in (P95, MEAN_ERROR):
        parts = query.answers.parts
        if len(parts) > 1 or parts[0].topology is Topology.NOMINAL:
            raise SpecError(entry.place, "its answers have no distances; write error_rate")


def _check_of_table(spec: Spec, entry: Acceptance) -> None:
    queries, tabulations = by_name(spec.released), by_name(spec.tabulations)
    if entry.name not in tabulations:
        if entry.name in queries:
            raise SpecError(entry.place, f"{entry.name!r} is a query; name it alone")
        raise SpecError(entry.place, unknown_name(entry.name, [*tabulations, *queries]))
    publish = tabulations[entry.name].publish
    if entry.level not in publish:
        raise SpecError(entry.place, unknown_name(entry.level, publish))
    # A margin is the same in any order of its names.
    if sorted(entry.margin) not in map(sorted, publish[entry.level]):
        raise SpecError(
            entry.place, f"[{', '.join(entry.margin)}] is not published at {entry.level!r}"
        )
    if entry.figure != P95:
        raise SpecError(
            entry.place, "a table of a tabulation has the figure p95, of its intervals; write that"
        )
