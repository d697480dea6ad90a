"""The law of a mechanism as it is published: whole numbers, and nothing that the question says.

What a reader can work out from the question, such as how far one unit moves an answer, stands in no
file (docs/design/format.md, 5). So a law becomes a mechanism again only with its question.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from dp_release_verify import forms
from release.exact.channel import Channel
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.mechanism import BoundOf, Mechanism
from release.exact.modular import Modular
from release.exact.numbers import format_down
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import StatisticMechanism
from release.queries.registry import statistic_of
from release.spec.mechanisms import mechanism_on_statistic
from release.spec.model import Spec
from release.spec.query import Query

if TYPE_CHECKING:
    # Whoever reads a release loads no solver.
    from release.noise.families import AnyDesign
    from release.noise.on_statistic import StatisticDesign

AnyMechanism: TypeAlias = Mechanism | StatisticMechanism

ON_ANSWERS: dict[str, type[IntegerMechanism | Modular | Channel]] = {
    "integers": IntegerMechanism,
    "modular": Modular,
    "channel": Channel,
}
"""The mechanisms on answers that a release can have, by the family of their law."""


def law_of(design: AnyDesign | StatisticDesign) -> forms.Law:
    """The law of a designed mechanism, with the bound that is proved of its loss."""
    law = design.mechanism.law()
    return replace(law, bound=_bound(design)) if isinstance(law, forms.IntegersLaw) else law


def _bound(design: Any) -> forms.Bound | None:
    """The loss that no noise on the integers is below, where that is proved."""
    bound = Fraction(format_down(design.lower_bound, 18))
    is_proved = design.bound_proved and design.bound_of is BoundOf.INTEGERS
    if not is_proved or bound == 0:
        return None
    multipliers = {} if design.multipliers is None else design.multipliers.of
    prices = [forms.Price(distance, list(own)) for distance, own in multipliers.items()]
    return forms.Bound(bound, prices or None)


def found_of(mechanism: Mechanism, sensitivity: Sensitivity) -> forms.Found:
    """How far neighbors of the very table move an answer, for the auditor alone."""
    if mechanism.modular_noise is not None or sensitivity.distances is None:
        return forms.Found(differences=[list(shift) for shift in sensitivity.shifts])
    return forms.Found(distances=sorted(sensitivity.distances))


def mechanism_of(spec: Spec, query: Query, law: Any) -> AnyMechanism:
    """The mechanism that a public law is for the question that it answers.

    Args:
        spec: the spec of the question.
        query: the question.
        law: one of the forms of :data:`dp_release_verify.forms.LAWS`.

    Raises:
        ValueError, OverflowError: the integers are no mechanism of this question.
    """
    if law.family in ON_ANSWERS:
        return ON_ANSWERS[law.family].of_law(query.answers, law)
    if not query.is_on_statistic:
        raise ValueError(f"{law.family} is noise on a statistic, and {query.name} has none")
    statistic = statistic_of(spec, query)
    if law.family not in statistic.families:
        raise ValueError(f"{law.family} does not answer this question")
    return mechanism_on_statistic(law.family).of_law(statistic, law)
