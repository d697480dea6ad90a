"""The sentences and figures that several readers of a release say of it, in words for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import LossName
from release.exact.mechanism import Mechanism
from release.exact.numbers import format_down, format_up
from release.spec.declarations import Privacy, Relation
from release.spec.losses import loss_on
from release.spec.model import Spec
from release.spec.query import Query
from release.tabulations.spec.model import Tabulation

NO_LEDGER_WITHHELD = (
    "SHA256SUMS.sig and ledger.proof: the curator keeps no ledger, so nothing is signed and the "
    "budget cap of the spec was enforced within this release only"
)
INSTANCE_WITHHELD = (
    "mechanisms, sensitivity and accuracy of instance-specific queries: they depend on the "
    "confidential table; an auditor opens their commitments with the auditor's folder"
)
LIMITS = (
    "that the tables were read as the spec says, the bounds on a unit's rows enforced and the true "
    "answers computed as described: only the software and the curator vouch for it",
    "that the noise was drawn from the operating system's generator, once",
    "that fixed keys are public facts that neighboring tables share",
)
INSTANCE_LIMITS = (
    "instance-specific queries: the guarantee covers the neighbors of this very table, as far as "
    "their sensitivity was found in it; it is not a guarantee for every table"
)

ENFORCED_BY = (
    "of the rows of a unit that a query reads, max_rows_per_unit are kept, those of the least "
    "hash, within max_cells_per_unit cells where that is declared; integers are clamped; a unit "
    "has one fixed part; declared sensitivity is enforced by reading fewer rows"
)


def withheld(*, instance: bool, ledger: bool) -> list[str]:
    """What a release leaves out, in words."""
    texts = []
    if instance:
        texts.append(INSTANCE_WITHHELD)
    if not ledger:
        texts.append(NO_LEDGER_WITHHELD)
    return texts


def limits(*, instance: bool) -> list[str]:
    """What a release asserts and its files cannot show."""
    return [*([INSTANCE_LIMITS] if instance else []), *LIMITS]


@dataclass(frozen=True)
class Accuracy:
    """The errors of one answer under the uniform prior, as texts rounded to 12 decimals.

    Attributes:
        p_exact: the probability that the answer is the true one.
        mean_absolute: the mean distance from the true answer, in codes.
        p_within_1: the probability of an error of at most one code.
    """

    p_exact: str
    mean_absolute: str
    p_within_1: str


def accuracy_of(mechanism: Mechanism, domain: AnswerDomain | JointDomain) -> Accuracy:
    """What a reader can expect of one answer under the uniform prior.

    Of a joint answer the absolute errors of its parts add up, and all have to be exact or near.
    """
    # Expected under the uniform prior, which needs no knowledge of the table.
    absolute = loss_on(LossName.ABSOLUTE, domain)
    return Accuracy(
        p_exact=_rounded(mechanism.chance_within(domain, 0)),
        mean_absolute=_rounded(mechanism.expected_loss(absolute, domain)),
        p_within_1=_rounded(mechanism.chance_within(domain, 1)),
    )


def _rounded(value: Fraction) -> str:
    # Half a unit of the last place, then down: to the nearest, on every machine alike.
    return format_down(value + Fraction(1, 2 * 10**12), 12)


def epsilon_everywhere(mechanism: Mechanism) -> str:
    """The least ε over all pairs of true answers, rounded up; or ``inf``."""
    epsilon = mechanism.epsilon_everywhere()
    return "inf" if epsilon is None else format_up(Fraction(epsilon), 12)


def rests_on(spec: Spec, query: Query) -> str | None:
    """The assumption of a worst-case query about the SQL in its spec; None where it has no SQL.

    That its conditions look at one row at a time is proved of their published trees. That the
    engine evaluated these, and nothing else, no file can show.
    """
    # By name: a query that is not a tuple is its own only part.
    conditions = {part.name: part.where for part in (query, *query.parts)}
    sql = []
    for name, condition in conditions.items():
        if condition is not None:
            sql.append("its condition" if name == query.name else f"the condition of {name}")
    return None if query.is_empirical else _as_published(spec, query, sql)


def _as_published(
    spec: Spec, declared: Query | Tabulation, conditions: Sequence[str]
) -> str | None:
    """The assumption about these conditions and the derived columns; None without any."""
    sql = [*conditions, *map("the derived column {}".format, spec.tables[declared.table].derive)]
    if not sql:
        return None
    return (
        f"{declared.name}: that the engine evaluated {' and '.join(sql)} as published in "
        "release.json; the guarantee rests on it"
    )


def guarantee_kind(queries: Sequence[Query]) -> Literal["worst-case", "instance-specific"]:
    """Whether the guarantee holds for every table in the declared domain."""
    # One instance-specific query is enough: a release is no better than its weakest part.
    if any(query.is_empirical for query in queries):
        return "instance-specific"
    return "worst-case"


def adjacency_text(privacy: Privacy) -> str:
    """The neighboring relation in words."""
    unit, relation, fixed = privacy.unit, privacy.neighbors, privacy.fixed
    if relation is Relation.ATTRIBUTE:
        return (
            f"the {privacy.attribute} of one {unit} takes other values; all other columns, and who "
            "is in the table, are held to be public"
        )
    same = f", which keeps its {' and '.join(fixed)}" if fixed else ""
    within = "; it may hold anything within the declared bounds" if privacy.any_of_domain else ""
    if relation is Relation.REPLACE_ONE:
        return f"all rows of one {unit} are replaced by those of another{same}{within}"
    return f"all rows of one {unit} are removed, or those of a new one added{same}{within}"


def invariants(spec: Spec) -> list[str]:
    """What is published without noise, in words: what tabulations declare."""
    texts = []
    for tabulation in spec.tabulations:
        for fact in tabulation.facts:
            by = f" by {' and '.join(fact.margin)}" if fact.margin else ""
            texts.append(
                f"{tabulation.name}: the counts of the {fact.level} level{by} are declared "
                "numbers, published without noise; the guarantee is beside what they reveal"
            )
        if tabulation.zeros:
            texts.append(
                f"{tabulation.name}: whole numbers are 0 in combinations of categories that are "
                "declared impossible"
            )
    return texts


def post_processing(spec: Spec) -> list[str]:
    """What is made of noisy answers, in words: the tables of tabulations."""
    method = "least squares over all measured tables, and whole numbers that add up"
    return [f"{tabulation.name}: {method}" for tabulation in spec.tabulations]


def tabulation_rests_on(spec: Spec, tabulation: Tabulation) -> str | None:
    """The assumption about the SQL of a tabulation, as :func:`rests_on` of a query."""
    return _as_published(spec, tabulation, [] if tabulation.where is None else ["its condition"])
