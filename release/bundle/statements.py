"""What the writer and the verifier of a release folder have to agree on, computed once for both.

Kept apart from :mod:`release.bundle.write`, so that the verifier loads nothing that writes or
solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Literal

import numpy as np

from release.exact.channel import COST_POWERS, Channel, answer_costs
from release.exact.domain import AnswerDomain
from release.exact.losses import LossName, joint_loss, probability_within
from release.exact.numbers import format_down, format_up
from release.exact.pmf import Law
from release.records.models import Accuracy
from release.spec.declarations import Privacy, Relation
from release.spec.model import Query, Spec, plain_parts

SUMS, ATTESTATION, PROOF = "SHA256SUMS", "attestation.dsse.json", "ledger.proof"

NO_LEDGER_WITHHELD = (
    "attestation.dsse.json and ledger.proof: the curator keeps no ledger, so nothing is signed and "
    "the budget cap of the spec was enforced within this release only"
)
INSTANCE_WITHHELD = (
    "mechanisms, sensitivity and accuracy of instance-specific queries: they depend on the "
    "confidential table; an auditor opens their commitments with the auditor bundle"
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
    "of the rows of a unit that a query reads, the first max_rows_per_unit by the declared columns "
    "are kept, within its first max_cells_per_unit cells where that is declared; integers are "
    "clamped; a unit has one fixed part; declared sensitivity is enforced by reading fewer rows"
)


def withheld(*, instance: bool, ledger: bool) -> list[str]:
    """What a release leaves out, in words."""
    return [
        *([INSTANCE_WITHHELD] if instance else []),
        *([] if ledger else [NO_LEDGER_WITHHELD]),
    ]


def limits(*, instance: bool) -> list[str]:
    """What a release asserts and its files cannot show."""
    return [*([INSTANCE_LIMITS] if instance else []), *LIMITS]


def accuracy_of(law: Law, parts: tuple[AnswerDomain, ...]) -> Accuracy:
    """What a reader can expect of one answer under the uniform prior.

    Of a joint answer the absolute errors of its parts add up, and all have to be exact or near.
    """
    absolute = joint_loss(LossName.ABSOLUTE, parts).of(law)
    return Accuracy(
        p_exact=_rounded(law.mass(0)),
        mean_absolute=_rounded(absolute),
        p_within_1=_rounded(probability_within(law, parts, 1)),
    )


def channel_accuracy(channel: Channel) -> Accuracy:
    """As :func:`accuracy_of`, of a channel of answers in order."""
    size = channel.answers
    apart = answer_costs(1, size)
    wrong, far = np.asarray(apart > 0, np.int64), np.asarray(apart > 1, np.int64)
    return Accuracy(
        p_exact=_rounded(1 - channel.mean_loss(wrong)),
        mean_absolute=_rounded(channel.mean_loss(apart)),
        p_within_1=_rounded(1 - channel.mean_loss(far)),
    )


def channel_loss(channel: Channel, query: Query) -> Fraction:
    """The expected loss of a channel under the uniform prior, as the spec counts it.

    Raises:
        ValueError: the spec's loss is none of published answers in order.
    """
    if not isinstance(query.loss, LossName) or query.loss not in COST_POWERS:
        raise ValueError("a channel needs the loss error_rate, absolute or squared")
    return channel.mean_loss(answer_costs(COST_POWERS[query.loss], channel.answers))


def _rounded(value: Fraction) -> str:
    return format_down(value + Fraction(1, 2 * 10**12), 12)


def epsilon_everywhere(law: Law) -> str:
    """The least ε of the law over all differences, rounded up; ``inf`` if there is none."""
    return _epsilon_between(int(law.weights.min()), int(law.weights.max()))


def channel_epsilon(channel: Channel) -> str:
    """The least ε of a channel over all pairs of answers, rounded up; ``inf`` if there is none."""
    pairs = zip(channel.rows.min(axis=0).tolist(), channel.rows.max(axis=0).tolist(), strict=True)
    # What is never published tells nothing.
    told = [(least, most) for least, most in pairs if most]
    if not all(least for least, _ in told):
        return "inf"
    return _epsilon_between(*max(told, key=lambda pair: Fraction(pair[1], pair[0])))


def _epsilon_between(least: int, largest: int) -> str:
    if least == 0:
        return "inf"
    context = Context(prec=40)
    logarithm = context.divide(Decimal(largest), Decimal(least)).ln(context)
    return format_up(Fraction(logarithm), 12)


def rests_on(spec: Spec, query: Query) -> str | None:
    """What a worst-case query asserts of the SQL in its spec; None where there is none.

    A condition that looks at other rows (a sub-select, say) lets one unit change what is counted of
    another, and then no bound on its own rows holds. A verifier does not read SQL.
    """
    sql = [
        "its condition" if part.name == query.name else f"the condition of {part.name}"
        for part in {one.name: one for one in (query, *plain_parts(query))}.values()
        if part.where is not None
    ]
    sql += [f"the derived column {column}" for column in spec.tables[query.table].derive]
    if not sql or query.is_empirical:
        return None
    return (
        f"{query.name}: that {' and '.join(sql)} can be evaluated on each row by itself; no SQL is "
        "read by a verifier, and the guarantee rests on it"
    )


def guarantee_kind(queries: Sequence[Query]) -> Literal["worst-case", "instance-specific"]:
    """Whether the guarantee holds for every table in the declared domain."""
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
    keeps = f", which keeps its {' and '.join(fixed)}" if fixed else ""
    within = "; it may hold anything within the declared bounds" if privacy.any_of_domain else ""
    if relation is Relation.REPLACE_ONE:
        return f"all rows of one {unit} are replaced by those of another{keeps}{within}"
    return f"all rows of one {unit} are removed, or those of a new one added{keeps}{within}"
