"""The faults that a model finds in a file that people write, as errors in our own words.

Pydantic's own messages name its types and quote whole values. Here each fault is a field, the value
that was found in short, and what to write.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from pydantic import ValidationError

from release.errors import Faults, SpecError, did_you_mean, listed, nearest
from release.spec.domains import Model, only_key
from release.spec.kinds import KINDS
from release.spec.refusals.fields import description_of, fields_at

_READ_ERRORS = 1000
"""The errors that are put into words; a hostile spec may have 10^5 of them."""

_MOST_SHOWN = 60
"""The letters of a value that a message quotes."""

# The names of a union's alternatives, which pydantic puts into the location of an error.
_TAGS = {
    *("cyclic", "ordered", "nominal", "bins"),
    *("list", "range", "file", "str", "int", "date", "[key]"),
    *("declared", "codes", "vectors", "name", "table"),
}

_TABULATION_TAGS = {
    # tabulations[0].attributes.<name>.<list or range>[0].<type of a category>
    "attributes": (4, 6),
    # tabulations[0].groupings.<name>.classes.<label>.<list or range>[0].<type of a category>
    "groupings": (6, 8),
    # tabulations[0].constraints[0].<kind>.impossible.<name>.<list or range>[0].<type of a category>
    "constraints": (4, 7, 9),
}
"""Where such names stand in the location of an error below a field of a tabulation."""

_RENAMED = {
    "bounds": "clamp",
    "column": "of",
    "differences": "sensitivity",
    **dict.fromkeys(("condition", "filter"), "where"),
    **dict.fromkeys(("group_by", "groupby", "groups"), "by"),
    "levels": "bins",
    "licence": "license",
    "measure": "kind",
    "neighbours": "neighbors",
    "noise": "mechanism",
    "structural": "global",
}
"""Names that stood in drafts, that other tools have, or that another spelling suggests."""

_OTHER_WORDS = {
    **{"bounded": "replace_one", "substitute": "replace_one", "unbounded": "add_remove"},
    **dict.fromkeys(("symmetric", "add_one_row", "addonerow", "add_or_remove"), "add_remove"),
    **dict.fromkeys(("average", "avg"), "mean"),
    **dict.fromkeys(("float", "double", "decimal", "numeric", "real"), "number"),
    **dict.fromkeys(("int", "int64", "bigint", "long"), "integer"),
    **dict.fromkeys(("str", "text", "varchar", "category"), "string"),
    **{"bool": "boolean", "datetime": "timestamp"},
    **{"mae": "absolute", "l1": "absolute", "mse": "squared", "l2": "squared"},
}
"""What other tools call a value of a spec."""

_RENAMED_KINDS = {
    "level": "the statistic as the kind (sum, mean, min, max, median), with bins",
    "real": "the statistic as the kind (sum, mean), with grid",
    "value": "per_unit",
    **dict.fromkeys(("count_distinct", "nunique", "distinct"), "count with of: the unit"),
    **dict.fromkeys(("histogram", "group_by", "groupby"), "count with by: [the column], and keys"),
    **dict.fromkeys(("variance", "var", "std", "stdev", "deviation"), "mean and quantiles"),
    **dict.fromkeys(("quantile", "percentile", "percentiles"), "quantiles with at: [shares]"),
}

_ELSEWHERE = {
    "alpha": "leave it out; intervals hold in 95 of 100",
    "derive": "a column is derived of a table: tables.NAME.derive",
    "on": "leave it out; tables are joined on the privacy unit",
    "on_violation": "it stands in the contract of a table, below columns and the name of a column",
}
"""Fields that stand in another place, or that nothing has."""

_TYPES = {
    "bool_type": "true or false",
    "date_type": "a date such as 2024-01-31",
    "dict_type": "fields with their values",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list such as [a, b]",
    "model_type": "fields with their values",
    "string_type": "text",
}
"""What to write where a value is of another type."""

_FORMS = {
    "attributes": "{name: [k1, k2]}",
    "bins": "{low: a, high: b, count: k}",
    "budget": '{scope: name, epsilon: "1"}',
    "grid": "{low: a, high: b, step: s, scale: unit}",
    "columns": "{name: type}",
    "derive": "{name: {type: boolean, sql: age > 17}}",
    "guarantee": '{epsilon: "1"}',
    "hierarchy": "{file: areas.csv, levels: [county, tract]}",
    "join": "{table: name}",
    "ordered": "{min: a, max: b}",
    "publish": "{county: [[], [sex]]}",
    "tables": "{name: {path: file, columns: {name: type}}}",
}
"""How fields with fields of their own are written."""

_BOUNDS = {
    "greater_than": ("gt", "above {}"),
    "greater_than_equal": ("ge", "at least {}"),
    "less_than": ("lt", "below {}"),
    "less_than_equal": ("le", "at most {}"),
}

_PATTERNS = {
    "^[a-z][a-z0-9_]*$": "lower-case letters, digits and _, a letter first",
    "^[a-z0-9][a-z0-9._-]*$": "lower-case letters, digits and . _ -, a letter or digit first",
    r"^[^#\x00-\x1f][^\x00-\x1f]*$": "another name, without # in front",
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "a date such as 2024-01-31",
}
"""Patterns of text, in words."""


def shape_error(model: type[Model], error: ValidationError, prefix: str = "") -> SpecError:
    """All faults of a file as one error, those of the same field in one line.

    ``model`` is that of the whole file; ``prefix`` stands before every field.
    """
    errors = error.errors(include_url=False)
    read = errors[:_READ_ERRORS]
    # A misspelt field leaves another one missing: that would be the same fault a second time.
    meant: set[tuple[int | str | None, ...]] = set()
    for fault in read:
        meant |= {(*fault["loc"][:-1], name) for name in _meant(model, fault)}
    faults = Faults()
    for place, own in _by_place(read).items():
        first = own[0]
        if first["type"] == "missing" and tuple(first["loc"]) in meant:
            continue
        faults.add(SpecError(f"{prefix}{place}", _problem(model, own)))
    unread = [SpecError("", "not read")] * (len(errors) - len(read))
    first_fault, *rest = faults.errors
    return SpecError(first_fault.field, first_fault.problem, [*rest, *unread])


def _by_place(errors: Sequence[Any]) -> dict[str, list[Any]]:
    places: dict[str, list[Any]] = {}
    for error in errors:
        place = field_path(error["loc"]) or "spec"
        place += ".kind" if error["type"].startswith("union_tag") else ""
        places.setdefault(place, []).append(error)
    return places


def field_path(location: tuple[int | str, ...]) -> str:
    """``queries[0].guarantee.epsilon``; the names of a union's alternatives are left out."""
    path = ""
    for position, part in enumerate(location):
        if isinstance(part, int):
            path += f"[{part}]"
        elif not _is_tag(location, position):
            # A message is one line, whatever somebody calls a field.
            name = part if part.isprintable() else repr(part)
            path += f".{name}" if path else name
    return path


def _is_tag(location: tuple[int | str, ...], position: int) -> bool:
    previous = location[position - 1] if position else None
    if isinstance(previous, int) and location[0] == "queries":
        # The place of the query's model, which no field can be called.
        return ":" in str(location[position])
    if location[0] == "tabulations" and len(location) > 2:
        return position in _TABULATION_TAGS.get(str(location[2]), ())
    # Of a key that is refused: its own name stands before.
    if location[position] == "[key]":
        return True
    return location[position] in _TAGS and (
        previous in {"domain", "loss", "sensitivity"}
        or location[position] in {"codes", "vectors"}
        or (location[0] == "keys" and position > 1)
    )


def _problem(model: type[Model], errors: Sequence[Any]) -> str:
    first = errors[0]
    value = first["input"]
    # Python refuses to print integers of more than 4,300 digits, even within a message.
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits; no field takes one"
    types = [_TYPES[error["type"]] for error in errors if error["type"] in _TYPES]
    # A value that fits no type of a union has an error for each.
    if first["type"] in _TYPES:
        return _of_another_type(model, first, types)
    if first["type"] in {"missing", "extra_forbidden"}:
        return _of_fields(model, first)
    return _of_a_value(first)


def _of_fields(model: type[Model], error: Any) -> str:  # noqa: PLR0911 - one for each remedy
    location = error["loc"]
    if error["type"] == "missing":
        return f"missing; add it ({description_of(model, location)})"
    name, fields = str(location[-1]), fields_at(model, location[:-1])
    if form := _in_place_of_domain(name, fields, error["input"]):
        return f"unknown field; write {form}: {{…}} without domain"
    if _RENAMED.get(name) in fields:
        return f"unknown field; it is called {_RENAMED[name]!r}"
    if name in _ELSEWHERE:
        return f"unknown field; {_ELSEWHERE[name]}"
    for below in fields:
        if name in fields_at(model, [*location[:-1], below]):
            return f"unknown field; it stands below {below!r}"
    if near := nearest(name, fields):
        return f"unknown field; did you mean {near!r}?"
    return f"unknown field; remove it; known are {listed(fields)}"


def _meant(model: type[Model], error: Any) -> tuple[str | None, ...]:
    """The fields, one of which an unknown one was probably meant to be."""
    if error["type"] != "extra_forbidden":
        return ()
    name, fields = str(error["loc"][-1]), fields_at(model, error["loc"][:-1])
    if _in_place_of_domain(name, fields, error["input"]):
        return ("bins", "grid")
    renamed = _RENAMED.get(name)
    return (renamed if renamed in fields else nearest(name, fields),)


def _in_place_of_domain(name: str, fields: Collection[str], value: object) -> str | None:
    """The field that a statistic has in place of ``domain``; None where this is not the fault."""
    if name != "domain" or not set(fields) & {"bins", "grid"}:
        return None
    return "grid" if only_key(value) == "grid" else "bins"


def _of_another_type(  # noqa: PLR0911 - one for each remedy
    model: type[Model], error: Any, types: Sequence[str]
) -> str:
    value = error["input"]
    field = str(error["loc"][-1]) if error["loc"] else ""
    if field == "cyclic" and isinstance(value, list):
        return "a circle has numbers only: write how many, or nominal: [labels]"
    words = " or ".join(dict.fromkeys(types))
    if error["loc"][-2:-1] == ("derive",):
        return f"found {_shown(value)}; write {{type: boolean, sql: age > 17}}"
    if field in _FORMS and error["type"] in ("model_type", "dict_type"):
        found = "empty" if value is None else f"found {_shown(value)}"
        return f"{found}; write {field}: {_FORMS[field]}"
    if isinstance(value, bool) and "text" in types:
        read = "yes, on and true" if value else "no, off and false"
        return f"found {value}, as YAML reads {read}; put the word in quotes"
    if error["loc"] == ("acceptance",) and isinstance(value, dict):
        return 'found fields; put each entry in quotes: ["homes: mean_error <= 3"]'
    if words == "text" and isinstance(value, int | float):
        words = "text, in quotes"
    # An optional field with nothing behind it is not refused, so here something is needed.
    if value is None:
        meaning = description_of(model, error["loc"])
        return f"empty; write {words}" + (f" ({meaning})" if meaning else "")
    return f"found {_shown(value)}; write {words}"


def _of_a_value(error: Any) -> str:  # noqa: PLR0911 - one for each kind of problem
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    if kind == "value_error":
        return str(context["error"])
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"found {_shown(value)}; write a number {words.format(context[key])}"
    if kind in {"literal_error", "enum"}:
        return _of_names(value, context["expected"])
    if kind == "alternatives":
        key = only_key(value)
        if key in _RENAMED:
            return f"{key!r} is called {_RENAMED[key]!r}"
        return f"found {_shown(value)}; {error['msg']}"
    if kind == "union_tag_invalid":
        return _of_kinds(context["tag"])
    if kind == "union_tag_not_found":
        return f"missing; write one of {', '.join(KINDS)}"
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        if re.search(r"\{\w*\}", str(value)):
            return f"found {_shown(value)}; what a spec leaves open is written {{period}}"
        words = _PATTERNS.get(pattern, f"text that matches {pattern}")
        lower = str(value).lower()
        hint = f", such as {lower!r}" if lower != value and re.search(pattern, lower) else ""
        return f"found {_shown(value)}; write {words}{hint}"
    if kind.endswith("too_short"):
        return f"empty or too short; name at least {context['min_length']}"
    if kind.endswith("too_long"):
        return f"too long; at most {context['max_length']}"
    return f"found {_shown(value)}; no such value fits here"


def _of_names(value: object, expected: str) -> str:
    if isinstance(value, str) and value in _RENAMED:
        return f"found {value!r}; it is called {_RENAMED[value]!r}"
    names = re.findall(r"'([^']*)'", expected)
    meant = _OTHER_WORDS.get(str(value).lower())
    if meant in names:
        return f"found {_shown(value)}; it is called {meant!r}"
    hint = did_you_mean(str(value), names) if len(names) > 1 else ""
    return f"found {_shown(value)}; {hint}write {expected}"


def _of_kinds(tag: str) -> str:
    if tag in _RENAMED_KINDS:
        return f"found {tag!r}; write {_RENAMED_KINDS[tag]}"
    if (meant := _OTHER_WORDS.get(tag.lower())) in KINDS:
        return f"found {_shown(tag)}; it is called {meant!r}"
    return f"found {_shown(tag)}; {did_you_mean(tag, KINDS)}write one of {', '.join(KINDS)}"


def _shown(value: object) -> str:
    """A value as a message quotes it; of a list or a mapping only that it is one."""
    # They could be as long as the spec.
    if isinstance(value, dict):
        return "fields"
    if isinstance(value, list):
        return "a list"
    text = repr(value) if isinstance(value, str | int | float | None) else f"{value!s}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
