"""Loading a release spec: YAML to models, key sets and contracts opened, errors in one line.

Whether the parts of a spec go together is checked in :mod:`release.queries.read`, where the kinds
of query are known.

A :class:`SpecFile` is complete: later stages read none of the files that it names again, except
the confidential tables.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import rfc8785
import yaml
from pydantic import ValidationError

from release.errors import SpecError
from release.records.versions import unread
from release.spec.contract import Contract, OnViolation, read_contract
from release.spec.domains import MAX_ANSWERS, only_key
from release.spec.fields import description_of, fields_at
from release.spec.key_sets import declared_keys
from release.spec.kinds import KINDS
from release.spec.model import Spec
from release.spec.tabulations.open import open_tabulation
from release.spec.tabulations.opened import OpenTabulation

MAX_SPEC_BYTES = 4 * 2**20
SPEC_JSON = "spec.json"
"""The file of a public bundle that holds :func:`spec_json`."""
_READ_ERRORS = 100
"""The errors searched for a misspelt field; a hostile spec may have 10^5 of them."""


@dataclass(frozen=True)
class SpecFile:
    """A spec whose syntax and consistency have been checked.

    ``keys[column]`` are the public keys as strings, each once, in the order of their code points;
    ``text`` is the file as it was, which is what gets published.
    """

    spec: Spec
    text: bytes
    folder: Path
    keys: dict[str, tuple[str, ...]]
    contracts: dict[str, Contract] = field(default_factory=dict)
    tabulations: tuple[OpenTabulation, ...] = ()


def read_text(path: Path) -> bytes:
    """The text of a spec, as it stands in its file.

    Raises:
        SpecError: it cannot be read, or is too long.
    """
    try:
        with path.open("rb") as file:
            # One byte more than allowed shows that a file is too long, without reading all of it.
            text = file.read(MAX_SPEC_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SpecError(str(path), "cannot be read; give the path of a spec") from error
    _check_length(text)
    return text


def _check_length(text: bytes) -> None:
    if len(text) > MAX_SPEC_BYTES:
        raise SpecError("spec", f"above {MAX_SPEC_BYTES} bytes; put long key sets in a file")


def open_named(spec: Spec, text: bytes, folder: Path) -> SpecFile:
    """The spec with the key sets and contracts that it names, relative to ``folder``.

    Raises:
        SpecError: a file cannot be read, or does not go together with the spec.
    """
    keys = {column: declared_keys(spec, column, folder) for column in spec.keys}
    for index, query in enumerate(spec.queries):
        cells = prod(len(keys[column]) for column in query.by)
        if cells > MAX_ANSWERS:
            raise SpecError(f"queries[{index}].by", f"{cells} cells; at most {MAX_ANSWERS}")
    contracts = {}
    for name, table in spec.tables.items():
        if table.contract is not None:
            contracts[name] = _contract(spec, name, folder / table.contract)
    places = range(len(spec.tabulations))
    tabulations = tuple(open_tabulation(spec, place, folder) for place in places)
    return SpecFile(spec, text, folder, keys, contracts, tabulations)


def _contract(spec: Spec, name: str, path: Path) -> Contract:
    at = f"tables.{name}.contract"
    contract, declared = read_contract(at, path), spec.tables[name].columns
    worst_case = []
    for query in spec.released:
        if not query.is_empirical and name in {query.table, _joined(spec, query.table)}:
            worst_case.append(query.name)
    for tabulation in spec.tabulations:
        if name in {tabulation.table, _joined(spec, tabulation.table)}:
            worst_case.append(tabulation.name)
    for column, rule in contract.columns.items():
        if column in declared and declared[column] is not rule.type:
            raise SpecError(
                at, f"says {column!r} is {rule.type.value}, declared is {declared[column].value}"
            )
        # Whether a release is refused depends on the table, which a guarantee for every table must
        # not show. An instance-specific guarantee depends on it already.
        if column in declared and rule.on_violation is OnViolation.REFUSE and worst_case:
            raise SpecError(
                at,
                f"{column!r} is on_violation: refuse, which would tell of the table in the "
                f"worst-case query {worst_case[0]!r}; write drop or clamp",
            )
    return contract


def _joined(spec: Spec, name: str) -> str | None:
    join = spec.tables[name].join
    return None if join is None else join.table


def parse_models(text: bytes) -> Spec:
    """The models of a spec: syntax and types, not yet whether its parts go together.

    Raises:
        SpecError: anything that is no YAML of the declared shape; the message names the field.
    """
    _check_length(text)
    plain = _plain(text)
    # First, so that a spec of a later format is called that and not misspelt.
    if isinstance(plain, dict) and (later := unread(plain.get("spec"))) is not None:
        raise SpecError("spec", later)
    _check_text("spec", plain)
    return _validated(plain)


def spec_json(text: bytes) -> bytes:
    """The spec as canonical JSON, for verifiers that read no YAML (docs/design/format.md, 5.2.1).

    ``text`` is a spec that :func:`parse_models` accepts.

    Raises:
        SpecError: the text is no YAML.
    """
    return rfc8785.dumps(_json_value(_plain(text)))


def _json_value(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _json_value(member) for key, member in value.items()}
    if isinstance(value, list):
        return list(map(_json_value, value))
    # YAML reads 2013-01-05 as a date; and JSON numbers are exact within 53 bits only.
    is_number = isinstance(value, int) and abs(value) < 2**53
    return value if value is None or is_number or isinstance(value, str) else str(value)


class _Loader(yaml.SafeLoader):
    """YAML without repeated keys, of which the last would silently win."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise SpecError(f"line {line}", f"the key {key!r} is not text; put it in quotes")
        if key in keys:
            raise SpecError(f"line {line}", f"{key!r} stands twice; keep one")
        keys.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _plain(text: bytes) -> object:
    try:
        # PyYAML would take the bytes for UTF-16 by their first two.
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecError("spec", "not readable as UTF-8 text; save it as UTF-8") from error
    try:
        # Aliases of aliases grow a short text to any size. They are found in the tokens, before
        # anything is built. A text without & has none, and is not read twice.
        tokens = map(type, yaml.scan(decoded, yaml.SafeLoader)) if "&" in decoded else ()
        if yaml.AliasToken in tokens:
            raise SpecError("", "YAML aliases (*name) are not allowed; write the value out")
        return yaml.load(decoded, Loader=_Loader)  # noqa: S506 - a SafeLoader, stricter
    except SpecError:
        raise
    # PyYAML's constructors of explicit tags raise whatever their conversion raises.
    except Exception as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark is not None else "spec"
        problem = getattr(error, "problem", None) or "no value of YAML's types"
        raise SpecError(place, f"not valid YAML: {problem}") from error


def _check_text(at: str, plain: object) -> None:
    """Refuse surrogates, which YAML accepts as text: a published file cannot hold them."""
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
        errors = error.errors(include_url=False)
        # A misspelt field also leaves one missing, and only one error is shown.
        first = next(filter(_remedy, errors[:_READ_ERRORS]), errors[0])
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        place = _field_path(first["loc"]) or "spec"
        place += ".kind" if first["type"].startswith("union_tag") else ""
        raise SpecError(place, _problem(first) + more) from error


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
    "differences": "sensitivity",
    "levels": "bins",
    "licence": "license",
    "measure": "kind",
    "neighbours": "neighbors",
    "structural": "global",
}
"""Names that stood in drafts, or that another spelling suggests."""

_RENAMED_KINDS = {
    "level": "the statistic as the kind (sum, mean, min, max, median), with bins",
    "real": "the statistic as the kind (sum, mean), with grid",
    "value": "per_unit",
}


def _field_path(location: tuple[int | str, ...]) -> str:
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
    return location[position] in _TAGS and (
        previous in {"domain", "loss", "sensitivity"}
        or location[position] in {"codes", "vectors"}
        or location[position - 2 : position - 1] == ("keys",)
    )


def _problem(error: Any) -> str:  # noqa: PLR0911 - one return for each kind of problem
    kind, context = error["type"], error.get("ctx", {})
    value = error["input"]
    # Python refuses to print integers of more than 4,300 digits, even within a message.
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits; no field takes one"
    if kind == "missing":
        return f"missing; add it ({description_of(Spec, error['loc'])})"
    if kind == "extra_forbidden":
        return f"unknown field; {_remedy(error) or 'remove it'}"
    if kind in {"literal_error", "enum"}:
        if isinstance(value, str) and value in _RENAMED:
            return f"found {value!r}; it is called {_RENAMED[value]!r}"
        return f"found {value!r}; write {context['expected']}"
    if kind == "alternatives" and (key := only_key(value)) in _RENAMED:
        return f"{key!r} is called {_RENAMED[key]!r}"
    if kind == "union_tag_invalid":
        remedy = _RENAMED_KINDS.get(context["tag"], f"one of {', '.join(KINDS)}")
        return f"found {context['tag']!r}; write {remedy}"
    if kind == "union_tag_not_found":
        return f"missing; write one of {', '.join(KINDS)}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_pattern_mismatch":
        return f"found {value!r}; it has to match {context['pattern']}"
    if kind == "too_short":
        return "empty or too short; name at least " + str(context["min_length"])
    # A list or a mapping could be as long as the spec.
    quoted = f"found {value!r}; " if isinstance(value, str | int | float | None) else ""
    message: str = error["msg"]
    return quoted + message[:1].lower() + message[1:]


def _remedy(error: Any) -> str:
    """The likely remedy for an unknown field; empty where none is likely."""
    if error["type"] != "extra_forbidden":
        return ""
    name, fields = str(error["loc"][-1]), set(fields_at(Spec, error["loc"][:-1]))
    if name == "domain" and fields & {"bins", "grid"}:
        form = "grid" if only_key(error["input"]) == "grid" else "bins"
        return f"write {form}: {{…}} without domain"
    if _RENAMED.get(name) in fields:
        return f"it is called {_RENAMED[name]!r}"
    near = difflib.get_close_matches(name, sorted(fields), 1)
    return f"did you mean {near[0]!r}?" if near else ""
