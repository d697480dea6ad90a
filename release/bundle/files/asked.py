"""What was asked, with every default written out: the spec of record of a release.

A spec may leave out what has a default, and say one thing in several ways; of the form that this
makes of it every reader reads the same (docs/design/format.md, 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dp_release_verify import forms
from release.exact.losses import LossName
from release.spec.declarations import KeyRange, Privacy, Table
from release.spec.demands import EQUAL, MEAN_SQUARE, MONOTONE, Demand, demands_of
from release.spec.expressions.places import (
    expressions,
    place_of_condition,
    place_of_derived,
    place_of_filter,
)
from release.spec.guarantees import DeclaredSensitivity, GuaranteeSpec, Objective, TableLoss
from release.spec.losses import acceptance_of
from release.spec.mechanisms import BEST
from release.spec.model import Spec
from release.spec.query import Query
from release.tabulations.spec.model import Categories, DeclaredNumbers, PinnedStrategy, Tabulation

_FAMILY_NAMES = {"integer": "integers"}
"""Families that a spec calls otherwise than a file does."""


def asked_of(spec: Spec) -> forms.Asked:
    """The question of a spec; of guarantees that are found as the spec asks for them."""
    trees = {}
    for expression in expressions(spec):
        trees[expression.place] = expression.tree.model_dump(mode="json")
    info, budget = spec.release, spec.budget
    queries: list[forms.Query] = [_query(spec, query, trees) for query in spec.queries]
    tabulations = [_tabulation(each, trees) for each in spec.tabulations]
    return forms.Asked(
        release=forms.About(
            id=info.id,
            title=info.title,
            curator=info.curator,
            contact=info.contact,
            purpose=info.purpose,
            period=info.period,
            license=info.license,
        ),
        tables={name: _table(name, table, trees) for name, table in spec.tables.items()},
        privacy=_privacy(spec.privacy),
        budget=forms.Budget(
            budget.scope, budget.epsilon, budget.delta, budget.slot, budget.composition
        ),
        queries=queries or None,
        tabulations=tabulations or None,
        acceptance=_acceptance(spec) or None,
    )


def _table(name: str, table: Table, trees: Mapping[str, Any]) -> forms.Table:
    derive = {}
    for column, derived in table.derive.items():
        tree = trees[place_of_derived(name, column)]
        derive[column] = forms.Derived(derived.type.value, derived.sql, tree)
    return forms.Table(
        path=table.path,
        columns={column: kind.value for column, kind in table.columns.items()},
        relation=table.relation,
        contract=table.contract,
        join=None if table.join is None else forms.Join(table.join.table, table.join.many or None),
        derive=derive or None,
    )


def _privacy(privacy: Privacy) -> forms.Privacy:
    return forms.Privacy(
        unit=privacy.unit,
        neighbors=privacy.neighbors.value,
        max_rows_per_unit=privacy.max_rows_per_unit,
        fixed=list(privacy.fixed) or None,
        max_cells_per_unit=privacy.max_cells_per_unit,
        attribute=privacy.attribute,
        replacement=None if privacy.replacement is None else privacy.replacement.value,
    )


def _acceptance(spec: Spec) -> list[forms.Acceptance]:
    found = []
    for entry in acceptance_of(spec):
        figure: Any = entry.figure
        margin = None if entry.level is None else list(entry.margin)
        found.append(forms.Acceptance(entry.name, figure, entry.cap, entry.level, margin))
    return found


# ---- Questions -----------------------------------------------------------------------------------


def _query(spec: Spec, query: Query, trees: Mapping[str, Any]) -> forms.Query:
    fields = _common(spec, query, trees)
    if query.is_released:
        fields |= _published(query)
    # The parts of a tuple have the domains.
    if not query.part_names:
        fields["domain"] = _domain(query)
    form: Any = forms.QUERIES[query.kind]
    made: forms.Query = form(**fields, **query.asked_fields())
    return made


def _common(spec: Spec, query: Query, trees: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that every question has."""
    where = None
    if query.where is not None:
        where = forms.Condition(query.where, trees[place_of_condition(query)])
    return {
        "name": query.name,
        "kind": query.kind,
        "table": query.table,
        "by": list(query.by),
        "max_rows_per_unit": spec.rows_per_unit(query),
        "title": query.title,
        "units": query.units,
        "where": where,
    }


def _published(query: Query) -> dict[str, Any]:
    """The fields of a question that claims a guarantee."""
    declared, costs, loss = None, None, None
    if isinstance(query.sensitivity, DeclaredSensitivity):
        declared = [list(shift) for shift in query.sensitivity.shifts]
    if isinstance(query.loss, TableLoss):
        loss, costs = "table", list(query.loss.table)
    elif "loss" in query.model_fields_set or query.loss is not LossName.ERROR_RATE:
        loss = query.loss.value
    mechanism = None if query.mechanism == BEST else str(query.mechanism)
    is_worst = query.objective is Objective.WORST_CASE
    return {
        "sensitivity": query.source,
        "declared": declared,
        "guarantee": None if query.guarantee is None else _guarantee(query.guarantee),
        "share": query.share,
        "target": None if query.target is None else _target(query.target),
        "noise": "on_statistic" if query.is_on_statistic else "on_answer",
        "loss": loss,
        "costs": costs,
        "mechanism": _FAMILY_NAMES.get(mechanism or "", mechanism),
        "parameters": dict(query.parameters) or None,
        "prior": None if query.prior is None else list(query.prior),
        "objective": "worst_case" if is_worst else None,
        "constraints": [_demand(each) for each in demands_of(query)] or None,
    }


def _guarantee(guarantee: GuaranteeSpec) -> forms.Guarantee:
    return forms.Guarantee(
        definition=guarantee.definition.value,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        fallback=guarantee.fallback,
        least=guarantee.least,
    )


def _target(text: str) -> forms.Target:
    loss, _, cap = text.partition("<=")
    return forms.Target(**{loss.strip(): Fraction(cap.strip())})


def _demand(demand: Demand) -> forms.Demand:
    if demand.kind == EQUAL:
        return forms.Demand(equal=list(demand.noise))
    if demand.kind == MEAN_SQUARE:
        return forms.Demand(mean_square=demand.cap)
    if demand.kind == MONOTONE:
        return forms.Demand(monotone=forms.Nothing())
    return forms.Demand(zero_mean=forms.Nothing())


def _domain(query: Query) -> forms.Domain:
    """The answers, as the spec has them."""
    found: forms.Domain = forms.read(forms.Domain, query.name, query.domain_record())
    return found


# ---- Tabulations ---------------------------------------------------------------------------------


def _tabulation(plain: Tabulation, trees: Mapping[str, Any]) -> forms.Tabulation:
    where = None
    if plain.where is not None:
        where = forms.Condition(plain.where, trees[place_of_filter(plain)])
    attributes = []
    for name, categories in plain.attributes.items():
        attributes.append(forms.Attribute(name, _categories(categories)))
    groupings = []
    for name, grouping in plain.groupings.items():
        classes = []
        for label, categories in grouping.classes.items():
            classes.append(forms.Class(label, _categories(categories)))
        groupings.append(forms.Grouping(name, grouping.of, classes))
    return forms.Tabulation(
        name=plain.name,
        table=plain.table,
        hierarchy=forms.Hierarchy(plain.hierarchy.file, list(plain.hierarchy.levels)),
        publish={level: [list(each) for each in of] for level, of in plain.publish.items()},
        title=plain.title,
        units=plain.units,
        where=where,
        attributes=attributes or None,
        groupings=groupings or None,
        importance=dict(plain.importance) or None,
        constraints=_constraints(plain) or None,
        guarantee=None if plain.guarantee is None else _guarantee(plain.guarantee),
        strategy=None if plain.strategy is None else _strategy(plain.strategy),
    )


def _categories(categories: Categories) -> list[forms.Label]:
    if isinstance(categories, KeyRange):
        first, last = categories.range
        return list(range(first, last + 1))
    return [each if isinstance(each, int) else str(each) for each in categories]


def _constraints(plain: Tabulation) -> list[forms.Constraint]:
    found = []
    for each in plain.constraints:
        if isinstance(each, DeclaredNumbers):
            found.append(forms.Constraint(each.level, list(each.margin), each.file))
        else:
            impossible = {name: _categories(of) for name, of in each.impossible.items()}
            found.append(forms.Constraint(impossible=impossible))
    return found


def _strategy(plain: PinnedStrategy) -> forms.Strategy:
    tables = []
    for table in plain.tables or ():
        tables.append(forms.Pinned(table.level, list(table.margin), table.share))
    return forms.Strategy(plain.noise, tables or None)
