"""Writes mechanisms as records: every figure is recomputed from the integers."""

from __future__ import annotations

from fractions import Fraction

from release.bundle.statements import accuracy_of, epsilon_everywhere
from release.exact.bounds import Multipliers
from release.exact.numbers import format_down, format_exact, format_up
from release.exact.privacy import Deltas, Guarantee
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.records.mechanisms import MechanismRecord
from release.records.models import (
    DesignRecord,
    GuaranteeRecord,
    Prices,
    Recomputed,
    definition_name,
)
from release.records.notes import NEVER_OCCURS
from release.records.profiles import ProfileRecord
from release.records.statistics import StatisticRecord
from release.spec.mechanisms import record_model, statistic_record_model
from release.spec.query import Query


def statistic_record(
    query: Query, design: StatisticDesign, profile: ProfileRecord | None = None
) -> StatisticRecord:
    """The file of a mechanism on a statistic."""
    model = statistic_record_model(design.mechanism.family)
    return model.model_validate(
        {
            "schema": "dp-release/mechanism/v1",
            "query": query.name,
            "mechanism": design.mechanism.family,
            "guarantee": _guarantee_record(design.guarantee),
            **({} if profile is None else {"profile": profile}),
            **model.own_fields(design.mechanism),
        }
    )


def mechanism_record(
    query: Query, design: AnyDesign, profile: ProfileRecord | None = None
) -> MechanismRecord:
    """The file of a query's mechanism; every figure in it is recomputed from the integers.

    A public file has a ``profile``, a committed one has none.
    """
    # Never the solver's own figures: a verifier compares each with one that it computes itself.
    mechanism, sensitivity = design.mechanism, design.sensitivity
    domain = query.answers
    everywhere = epsilon_everywhere(mechanism)
    model = record_model(mechanism.family)
    return model.model_validate(
        {
            "schema": "dp-release/mechanism/v1",
            "query": query.name,
            "mechanism": mechanism.family,
            "group": list(domain.group.moduli),
            "total": str(mechanism.total),
            # A directed set would protect one order of neighbors only; a verifier refuses it.
            "directed": False,
            "guarantee": _guarantee_record(design.guarantee),
            "recomputed": _recomputed(design.deltas, everywhere),
            "design": _design_record(design, everywhere),
            "accuracy": accuracy_of(mechanism, domain),
            **({} if profile is None else {"profile": profile}),
            **model.own_fields(mechanism, sensitivity),
        }
    )


def _guarantee_record(guarantee: Guarantee) -> GuaranteeRecord:
    return GuaranteeRecord(
        definition=definition_name(guarantee.definition),
        epsilon=format_exact(guarantee.epsilon),
        delta=format_exact(guarantee.delta),
    )


def _recomputed(deltas: Deltas, everywhere: str) -> Recomputed:
    return Recomputed(
        delta_probabilistic=format_exact(deltas.probabilistic),
        # Sums of powers of e may need any number of digits; up never understates a δ.
        delta_approximate=format_up(deltas.approximate, 60),
        epsilon_everywhere=everywhere,
    )


def _design_record(design: AnyDesign, everywhere: str) -> DesignRecord:
    bounded, bound = format_up(design.bounded_loss, 18), format_down(design.lower_bound, 18)
    return DesignRecord(
        method=design.method,
        loss=design.loss.plain_name,
        objective=format_up(design.objective, 18),
        bound_of=design.bound_of.value,
        bounded_loss=bounded,
        lower_bound=bound,
        bound="proved" if design.bound_proved else "solver",
        # Of the two figures as they are written, so that nobody has to allow for rounding.
        gap=format_exact(Fraction(bounded) - Fraction(bound)),
        multipliers=_prices(design.multipliers),
        solver=design.solver,
        notes=[*design.notes, *([NEVER_OCCURS] if everywhere == "inf" else [])],
    )


def _prices(multipliers: Multipliers | None) -> list[Prices]:
    tables = {} if multipliers is None else multipliers.of
    return [Prices(distance=step, prices=list(map(str, prices))) for step, prices in tables.items()]
