"""Reading a release spec: YAML to models, names resolved, key sets opened, errors in one line.

What is returned is complete: every later stage works from :class:`SpecFile` without looking at
files named in it again, except the confidential tables.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from release.channel import (
    LEAST_UNSEEN,
    MOST_ROWS,
    MOST_UNSEEN,
    channel_fits,
    channel_unseen,
    has_order,
)
from release.contract import Contract, OnViolation, read_contract
from release.domains import MAX_ANSWERS, Model, Nominal
from release.errors import SpecError, listed, unknown_name
from release.exact import format_exact
from release.formats import unread
from release.keys import declared_keys
from release.losses import table_loss
from release.mechanisms.fitted import MODULAR_WITH_DELTA, ON_LINE, ON_LINE_WITH_DELTA
from release.parts import with_parts
from release.periods import Period, filled
from release.queries import check_declared
from release.spec import (
    ColumnType,
    CountQuery,
    LevelQuery,
    Mechanism,
    ModeQuery,
    Query,
    RealQuery,
    Spec,
    SqlQuery,
    TableLoss,
    ValueQuery,
    answer_columns,
    answer_domain,
    answers_for_units,
    plain_parts,
)

_ENGINE_NAMES = ("rowid", "filename", "file_row_number", "file_index")
MAX_SPEC_BYTES = 4 * 2**20


@dataclass(frozen=True)
class SpecFile:
    """A spec that has been read and found consistent.

    ``keys[column]`` are the public keys as strings, each once, in the order of their code points;
    ``text`` is the file as it was, which is what gets published.
    """

    spec: Spec
    text: bytes
    folder: Path
    keys: dict[str, tuple[str, ...]]
    contracts: dict[str, Contract] = field(default_factory=dict)


def read_text(path: Path) -> bytes:
    """The text of a spec, as it stands in its file.

    Raises:
        SpecError: it cannot be read, or is too long.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_SPEC_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SpecError(
            str(path),
            "cannot be read; give the path of a spec",
        ) from error
    _check_length(text)
    return text


def _check_length(text: bytes) -> None:
    if len(text) > MAX_SPEC_BYTES:
        raise SpecError("spec", f"above {MAX_SPEC_BYTES} bytes; put long key sets in a file")


def read_spec(path: Path, period: Period | None = None) -> SpecFile:
    """Read and check the spec at ``path`` and open the key sets it names.

    A template (:mod:`release.periods`) is read for ``period``.

    Raises:
        SpecError: anything that cannot be meant; the message names the field and the remedy.
    """
    text = filled(read_text(path), period)
    spec = parse_spec(text)
    keys = {column: declared_keys(spec, column, path.parent) for column in spec.keys}
    for index, query in enumerate(spec.queries):
        cells = prod(len(keys[column]) for column in query.by)
        if cells > MAX_ANSWERS:
            raise SpecError(f"queries[{index}].by", f"{cells} cells; at most {MAX_ANSWERS}")
    contracts = {
        name: _contract(spec, name, path.parent / table.contract)
        for name, table in spec.tables.items()
        if table.contract is not None
    }
    return SpecFile(spec, text, path.parent, keys, contracts)


def _contract(spec: Spec, name: str, path: Path) -> Contract:
    at = f"tables.{name}.contract"
    contract, declared = read_contract(at, path), spec.tables[name].columns
    for column, rule in contract.columns.items():
        if column in declared and declared[column] is not rule.type:
            raise SpecError(
                at, f"says {column!r} is {rule.type.value}, declared is {declared[column].value}"
            )
        told = [
            query.name
            for query in spec.released
            if not query.is_empirical and name in {query.table, _joined(spec, query.table)}
        ]
        if column in declared and rule.on_violation is OnViolation.REFUSE and told:
            raise SpecError(
                at,
                f"{column!r} is on_violation: refuse, which would tell of the table in the "
                f"worst-case query {told[0]!r}; write drop or clamp",
            )
    return contract


def _joined(spec: Spec, name: str) -> str | None:
    join = spec.tables[name].join
    return None if join is None else join.table


def parse_spec(text: bytes) -> Spec:
    """Read and check the bytes of a spec; files it names are not opened.

    Raises:
        SpecError: as :func:`read_spec`.
    """
    _check_length(text)
    plain = _plain(text)
    if isinstance(plain, dict) and (later := unread(plain.get("spec"))) is not None:
        raise SpecError("spec", later)
    _check_text("spec", plain)
    spec = _validated(plain)
    _check_names(spec)
    spec = with_parts(spec)
    for index, query in enumerate(spec.queries):
        _check_query(spec, index, query)
    return spec


class _Loader(yaml.SafeLoader):
    """YAML without repeated keys, of which the last would silently win."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise SpecError(f"line {line}", f"the key {key!r} is not text; put it in quotes")
        if key in seen:
            raise SpecError(f"line {line}", f"{key!r} stands twice; keep one")
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _plain(text: bytes) -> object:
    try:
        if b"&" in text and any(
            isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=yaml.SafeLoader)
        ):
            raise SpecError("", "YAML aliases (*name) are not allowed; write the value out")
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader, stricter
    except SpecError:
        raise
    # PyYAML's constructors of explicit tags raise whatever their conversion raises.
    except Exception as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark is not None else "spec"
        problem = getattr(error, "problem", None) or "not readable as UTF-8 text"
        raise SpecError(place, f"not valid YAML: {problem}") from error


def _check_text(at: str, plain: object) -> None:
    """Half characters are text to YAML and to nothing else; publishing them would fail."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            _check_text("spec", key)
            _check_text(str(key), value)
    elif isinstance(plain, list):
        for value in plain:
            _check_text(at, value)
    elif isinstance(plain, str) and any("\ud800" <= letter <= "\udfff" for letter in plain):
        raise SpecError(at, "half a character (a surrogate) stands in it; write the whole one")


def _validated(plain: object) -> Spec:
    try:
        return Spec.model_validate(plain)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        more = f" (and {len(others)} more)" if others else ""
        place = _field_path(first["loc"]) or "spec"
        place += ".kind" if first["type"].startswith("union_tag") else ""
        raise SpecError(place, _problem(first) + more) from error


_TAGS = {
    "count",
    "mode",
    "level",
    "real",
    "grid",
    "value",
    "cyclic",
    "ordered",
    "nominal",
    "levels",
    "list",
    "range",
}
_TAGS |= {
    "sql",
    "tuple",
    "declared",
    "codes",
    "vectors",
    "file",
    "name",
    "table",
    "str",
    "int",
    "date",
    "[key]",
}


def _field_path(location: tuple[int | str, ...]) -> str:
    """``queries[0].guarantee.epsilon``; the names of a union's alternatives are left out."""
    path = ""
    for position, part in enumerate(location):
        if isinstance(part, int):
            path += f"[{part}]"
        elif not (part in _TAGS and _is_tag(location, position)):
            path += f".{part}" if path else part
    return path


def _is_tag(location: tuple[int | str, ...], position: int) -> bool:
    previous = location[position - 1] if position else None
    is_kind = isinstance(previous, int) and location[0] == "queries"
    return (
        is_kind
        or previous in {"domain", "loss", "differences"}
        or location[position] in {"codes", "vectors"}
        or location[position - 2 : position - 1] == ("keys",)
    )


def _problem(error: Any) -> str:  # noqa: PLR0911 - one return for each kind of problem
    kind, context = error["type"], error.get("ctx", {})
    found = error["input"]
    if isinstance(found, int) and abs(found) >= 10**40:
        return "a number of more than 40 digits; no field takes one"
    if kind == "missing":
        return "missing; add it"
    if kind == "extra_forbidden":
        name = str(error["loc"][-1])
        near = difflib.get_close_matches(name, _field_names(), 1)
        likely = f"did you mean {near[0]!r}?" if near and near[0] != name else "remove it"
        return f"unknown field; {likely}"
    if kind in {"literal_error", "enum"}:
        return f"found {found!r}; write {context['expected']}"
    if kind == "union_tag_invalid":
        return f"found {context['tag']!r}; write one of {context['expected_tags']}"
    if kind == "union_tag_not_found":
        return "missing; write count, mode, level, real, value, tuple or sql"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch":
        return f"found {found!r}; it has to match {context['pattern']}"
    if kind == "too_short":
        return "empty or too short; name at least " + str(context["min_length"])
    shown = f"found {found!r}; " if isinstance(found, str | int | float | None) else ""
    message: str = error["msg"]
    return shown + message[:1].lower() + message[1:]


def _field_names() -> list[str]:
    models, names = [Model], set()
    while models:
        model = models.pop()
        names |= set(model.model_fields)
        models.extend(model.__subclasses__())
    return sorted(names)


def _check_names(spec: Spec) -> None:
    names: dict[str, int] = {}
    for index, query in enumerate(spec.queries):
        if query.name in names:
            raise SpecError(
                f"queries[{index}].name",
                f"{query.name!r} is also the name of queries[{names[query.name]}]; rename one",
            )
        names[query.name] = index
    if not spec.budget.epsilon > 0:
        raise SpecError("budget.epsilon", "must be above 0")
    if not 0 <= spec.budget.delta < 1:
        raise SpecError("budget.delta", "must be at least 0 and below 1")
    kinds = {
        table.columns[spec.privacy.unit]
        for table in spec.tables.values()
        if spec.privacy.unit in table.columns
    }
    if len(kinds) > 1 or kinds - {ColumnType.STRING, ColumnType.INTEGER}:
        raise SpecError(
            "privacy.unit", "declare it string in every table, or integer in every table"
        )
    for name, table in spec.tables.items():
        _check_table(spec, name)
        if spec.privacy.unit not in table.columns:
            raise SpecError(
                f"tables.{name}.columns",
                f"the privacy unit {spec.privacy.unit!r} is not declared; "
                f"declared are {listed(table.columns)}",
            )
    every = {column for name in spec.tables for column in spec.table_columns(name)}
    attribute = spec.privacy.attribute
    if attribute is not None and (
        attribute not in every or attribute in {spec.privacy.unit, *spec.privacy.fixed}
    ):
        raise SpecError(
            "privacy.attribute",
            unknown_name(attribute, every)
            if attribute not in every
            else f"{attribute!r} is the unit or fixed; name the sensitive column",
        )
    for index, column in enumerate(spec.privacy.fixed):
        if column not in every:
            raise SpecError(f"privacy.fixed[{index}]", unknown_name(column, every))
    for column in spec.keys:
        if column not in every:
            raise SpecError(f"keys.{column}", unknown_name(column, every))


def _check_table(spec: Spec, name: str) -> None:
    table = spec.tables[name]
    if table.join is not None:
        other = table.join.table
        if other not in spec.tables or other == name:
            raise SpecError(
                f"tables.{name}.join.table", unknown_name(other, spec.tables.keys() - {name})
            )
        if spec.tables[other].join is not None or spec.tables[other].derive:
            raise SpecError(
                f"tables.{name}.join.table", f"{other!r} joins or derives itself; join plain tables"
            )
        for column in spec.tables[other].columns:
            if column in table.columns and column != spec.privacy.unit:
                raise SpecError(
                    f"tables.{name}.join", f"both tables declare {column!r}; declare it in one"
                )
    seen: dict[str, str] = {}
    joined = spec.tables[table.join.table].columns if table.join is not None else {}
    for column in [*table.columns, *(c for c in joined if c != spec.privacy.unit), *table.derive]:
        other = seen.setdefault(column.casefold(), column)
        at = f"tables.{name}.{'derive' if column in table.derive else 'columns'}.{column}"
        if column in table.derive and (column in table.columns or column in joined):
            raise SpecError(at, "is also declared; rename it")
        if other != column:
            raise SpecError(at, f"differs from {other!r} in case only; rename one")
        if column.casefold() in _ENGINE_NAMES:
            raise SpecError(at, "is a name of the engine's own; rename the column")


def _check_query(spec: Spec, index: int, query: Query) -> None:
    at = f"queries[{index}]"
    if query.table not in spec.tables:
        raise SpecError(f"{at}.table", unknown_name(query.table, spec.tables))
    columns = spec.table_columns(query.table)
    _check_by(spec, at, query, columns)
    if spec.rows_per_unit(query) > spec.privacy.max_rows_per_unit:
        raise SpecError(
            f"{at}.max_rows_per_unit",
            f"above the bound of {spec.privacy.max_rows_per_unit} in privacy; lower it",
        )
    _check_kind(spec, at, query, columns)
    _check_relation(spec, at, query)
    _check_mechanism(at, query)
    size = answer_domain(query).size
    if size > MAX_ANSWERS:
        raise SpecError(f"{at}.of", f"{size} joint answers; at most {MAX_ANSWERS}")
    if query.guarantee is not None:
        check_declared(spec, at, query)
    if isinstance(query.loss, TableLoss):
        try:
            table_loss(tuple(query.loss.table))
        except ValueError as error:
            raise SpecError(f"{at}.loss.table", str(error)) from error
        if len(query.loss.table) != size:
            raise SpecError(
                f"{at}.loss.table", f"{len(query.loss.table)} costs for {size} answers; give {size}"
            )


_NEED_ORDER = frozenset(map(Mechanism, ("channel", *ON_LINE, *ON_LINE_WITH_DELTA)))
_NEED_DELTA = frozenset(map(Mechanism, (*ON_LINE_WITH_DELTA, *MODULAR_WITH_DELTA)))


def _check_mechanism(at: str, query: Query) -> None:
    """See to it that the mechanism that is named fits the answers and the promise."""
    named, domain = query.mechanism, answer_domain(query)
    at = f"{at}.mechanism"
    if named is Mechanism.MODULAR or query.guarantee is None:
        return
    if named is Mechanism.BEST:
        _check_reach(at, query)
        return
    if len(domain.parts) > 1:
        raise SpecError(at, f"{named.value!r} answers one query; a tuple takes best or modular")
    if named in _NEED_ORDER and not channel_fits(domain, query.loss):
        raise SpecError(
            at,
            f"{named.value!r} needs at most {MOST_ROWS} answers in order, and the loss "
            "error_rate, absolute or squared; declare these, or write modular",
        )
    if named in _NEED_DELTA and query.guarantee.delta == 0:
        raise SpecError(at, f"{named.value!r} needs delta above 0; write best")
    if query.guarantee.epsilon == 0 and named is not Mechanism.CHANNEL:
        raise SpecError(at, f"{named.value!r} needs epsilon above 0; write best")


def _check_reach(at: str, query: Query) -> None:
    """Refuse ``best`` where it could only be modular noise on answers in order.

    Such noise can publish the one end of the domain for the other, which a curator has to have
    asked for by its name. Only public fields decide, so nothing confidential is read before.
    """
    domain = answer_domain(query)
    if not has_order(domain):
        return
    accepted = "or write mechanism: modular, which can publish one end of the domain for the other"
    if len(domain.parts) > 1:
        raise SpecError(
            at,
            "best has no noise for tuples with a part in order; publish the parts each by itself, "
            f"{accepted}",
        )
    if not channel_fits(domain, query.loss):
        raise SpecError(
            at,
            f"best reaches {MOST_ROWS:,} answers in order with the loss error_rate, absolute or "
            f"squared, and here are {domain.size:,}; declare a smaller domain or such a loss, "
            f"{accepted}",
        )
    if query.is_empirical and not channel_unseen(domain, query.loss, query.promised.to_guarantee()):
        raise SpecError(
            at,
            f"best reaches {MOST_UNSEEN} answers in order under differences: empirical, for pure "
            f"or approximate promises of epsilon {format_exact(LEAST_UNSEEN)} or more; write "
            f"mechanism: channel, or differences: structural, {accepted}",
        )


def _check_by(spec: Spec, at: str, query: Query, columns: dict[str, ColumnType]) -> None:
    for position, column in enumerate(query.by):
        place = f"{at}.by[{position}]"
        if column not in columns:
            raise SpecError(place, unknown_name(column, columns))
        if column in query.by[:position]:
            raise SpecError(place, f"{column!r} stands twice; keep one")
        if column == spec.privacy.unit and not answers_for_units(query):
            raise SpecError(place, "the privacy unit cannot be a key; its values are confidential")
        if column in {*answer_columns(query), "answer_code"}:
            raise SpecError(place, f"{column!r} is a column of the released table; derive another")
        if columns[column] not in {ColumnType.STRING, ColumnType.INTEGER, ColumnType.DATE}:
            raise SpecError(place, "keys are strings, integers or dates; derive such a column")
        if column not in spec.keys:
            raise SpecError(f"keys.{column}", f"missing; {query.name!r} needs the public keys")


def _check_relation(spec: Spec, at: str, query: Query) -> None:
    if isinstance(query, SqlQuery) and spec.privacy.fixed:
        raise SpecError(
            f"{at}.kind", "a statement cannot be told what neighbours share; leave fixed out"
        )
    if isinstance(query, SqlQuery) and spec.privacy.any_of_domain:
        raise SpecError(
            f"{at}.kind",
            "a statement runs anew for what is observed only; leave attribute and replacement out",
        )
    _check_taken_over(spec, at, query)
    attribute = spec.privacy.attribute
    if attribute is None:
        if answers_for_units(query):
            raise SpecError(
                f"{at}.kind", "a value shows who is listed; it needs neighbours: attribute"
            )
        return
    parts = plain_parts(query)
    reads = {*query.by, *(getattr(one, name, None) for one in parts for name in ("of", "weight"))}
    unknown = spec.tables[query.table].derive or any(one.where for one in (query, *parts))
    if attribute not in reads and not unknown and query.guarantee is not None:
        raise SpecError(
            at, f"does not read {attribute!r}, so attribute neighbours would promise nothing"
        )


def _check_taken_over(spec: Spec, at: str, query: Query) -> None:
    """A copy of another unit takes over fixed columns, but its profile was made of its own."""
    if not query.is_empirical or spec.privacy.any_of_domain:
        return
    for part in plain_parts(query):
        for field_name in ("of", "weight"):
            column = getattr(part, field_name, None)
            if column in spec.privacy.fixed:
                raise SpecError(
                    f"{at if part is query else spec.place_of(part)}.{field_name}",
                    f"{column!r} is fixed, so a unit that comes in takes it over; write "
                    "differences: structural, or replacement: domain in privacy",
                )


def _check_kind(spec: Spec, at: str, query: Query, columns: dict[str, ColumnType]) -> None:
    unit = spec.privacy.unit
    if isinstance(query, CountQuery) and query.of not in (None, unit):
        raise SpecError(f"{at}.of", f"a count counts rows, or units: leave it out or write {unit}")
    wanted: dict[str, tuple[str, ColumnType]] = {}
    if answers_for_units(query) and (query.by != [unit] or unit not in spec.keys):
        raise SpecError(f"{at}.by", f"a value is one answer a unit: write [{unit}], and its keys")
    if isinstance(query, ModeQuery | ValueQuery):
        nominal = isinstance(query.domain, Nominal)
        wanted["of"] = (query.of, ColumnType.STRING if nominal else ColumnType.INTEGER)
        if query.weight is not None:
            wanted["weight"] = (query.weight, ColumnType.INTEGER)
    elif isinstance(query, LevelQuery):
        wanted["of"] = (query.of, ColumnType.INTEGER)
    elif isinstance(query, RealQuery):
        wanted["of"] = (query.of, ColumnType.NUMBER)
    for part, (column, kind) in wanted.items():
        if column not in columns:
            raise SpecError(f"{at}.{part}", unknown_name(column, columns))
        if columns[column] is not kind:
            raise SpecError(
                f"{at}.{part}",
                f"{column!r} is declared {columns[column].value}; needed is {kind.value}",
            )
