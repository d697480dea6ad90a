"""Loading a release spec: YAML to models, key sets and contracts opened, errors in one line.

Whether the parts of a spec go together is checked in :mod:`release.queries.read`, where the kinds
of query are known.

A :class:`SpecFile` is complete: later stages read none of the files that it names again, except
the confidential tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from release.errors import Faults, SpecError, control_character, did_you_mean, listed
from release.records.versions import unread
from release.spec.contracts.model import ColumnContract, Contract, OnViolation
from release.spec.contracts.read import read_contract
from release.spec.declarations import ColumnType
from release.spec.domains import INTEGER_LIMIT, MAX_ANSWERS
from release.spec.key_sets import declared_keys
from release.spec.model import Spec
from release.spec.named import by_name
from release.spec.refusals.shape import shape_error
from release.tabulations.spec.open import open_tabulation
from release.tabulations.spec.opened import OpenTabulation

MAX_SPEC_BYTES = 4 * 2**20

_LONGEST_INTEGER = 4000
"""Characters of an integer; the models say which of them are too large, and name the field."""

"""The file of a public bundle that holds :func:`spec_json`."""
_BEGIN = "dp-release init writes a first spec for a table"
_EMPTY = f"the file is empty; {_BEGIN}"
_NO_SPEC = f"a list or plain text, not fields with their values; {_BEGIN}"


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

    def cells(self, columns: Iterable[str]) -> int:
        """In how many cells ``columns`` divide a table: one for each combination of their keys."""
        return prod(len(self.keys[column]) for column in columns)

    def tabulation(self, name: str) -> OpenTabulation:
        """The tabulation of this name.

        Raises:
            KeyError: there is none.
        """
        return by_name(self.tabulations)[name]


def read_text(path: Path) -> bytes:
    """The text of a spec, as it stands in its file.

    Raises:
        SpecError: it cannot be read, or is too long.
    """
    if "\n" in str(path):
        raise SpecError("spec", "a text of several lines; give the path of the file that holds it")
    try:
        with path.open("rb") as file:
            # One byte more than allowed shows that a file is too long, without reading all of it.
            text = file.read(MAX_SPEC_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SpecError(str(path), f"{_unread_spec(path)}give the path of a spec") from error
    _check_length(text)
    return text


def _unread_spec(path: Path) -> str:
    """What is wrong with the path of a spec, and which file was probably meant."""
    folder = path if path.is_dir() else path.parent
    try:
        names = [file.name for file in folder.iterdir() if file.suffix in (".yaml", ".yml")]
    except OSError:
        names = []
    if path.is_dir():
        return f"a folder{f' with {listed(names)}' if names else ''}; "
    if path.exists():
        return "cannot be read; "
    return f"no such file; {did_you_mean(path.name, names)}"


def renamed(text: bytes, release_id: str) -> bytes:
    """The text of a spec with another ``release.id``, and nothing else changed.

    Raises:
        SpecError: the text is no YAML with a release id.
    """
    try:
        node: Any = yaml.compose(text.decode("utf-8"), yaml.SafeLoader)
        # The place of the id in the text, so that comments and spelling of all else stay.
        for name in ("release", "id"):
            (node,) = (value for key, value in node.value if key.value == name)
        begin, end = node.start_mark.index, node.end_mark.index
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, ValueError) as error:
        raise SpecError("release.id", "cannot be read; write it as id: NAME") from error
    plain = text.decode("utf-8")
    return f"{plain[:begin]}{release_id}{plain[end:]}".encode()


def _check_length(text: bytes) -> None:
    if len(text) > MAX_SPEC_BYTES:
        raise SpecError("spec", f"above {MAX_SPEC_BYTES} bytes; put long key sets in a file")


def open_named(spec: Spec, text: bytes, folder: Path) -> SpecFile:
    """The spec with the key sets and contracts that it names, relative to ``folder``.

    Raises:
        SpecError: a file cannot be read, or does not go together with the spec.
    """
    faults = Faults()
    keys: dict[str, tuple[str, ...]] = {}
    for column in spec.keys:
        with faults.caught():
            keys[column] = declared_keys(spec, column, folder)
    contracts: dict[str, Contract] = {}
    for name, table in spec.tables.items():
        if table.contract is not None:
            with faults.caught():
                contracts[name] = _contract(spec, name, folder / table.contract)
    faults.refuse()
    spec_file = SpecFile(spec, text, folder, keys, contracts)
    for index, query in enumerate(spec.queries):
        # A number of combinations, which are multiplied out only where they are few enough.
        cells = spec_file.cells(query.by)
        if cells > MAX_ANSWERS:
            raise SpecError(f"queries[{index}].by", f"{cells} cells; at most {MAX_ANSWERS}")
    tabulations = []
    for place in range(len(spec.tabulations)):
        tabulations.append(open_tabulation(spec, place, folder))
    return replace(spec_file, tabulations=tuple(tabulations))


def _contract(spec: Spec, name: str, path: Path) -> Contract:
    at = f"tables.{name}.contract"
    declared = spec.tables[name].columns
    contract = read_contract(at, path, declared)
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
        # The unit is not clamped: a clamped unit would be another unit.
        if column in declared and column != spec.privacy.unit:
            _check_reachable(at, column, rule)
        # Whether a release is refused depends on the table, which a guarantee for every table must
        # not show. An instance-specific guarantee depends on it already.
        if column in declared and rule.on_violation is OnViolation.REFUSE and worst_case:
            raise SpecError(
                at,
                f"{column!r} is on_violation: refuse, which would tell of the table in the "
                f"worst-case query {worst_case[0]!r}; write drop or clamp",
            )
    return contract


def _check_reachable(at: str, column: str, rule: ColumnContract) -> None:
    """Refuse bounds that no integer of a table can lie beyond."""
    for bound in (rule.minimum, rule.maximum):
        if (
            rule.type is ColumnType.INTEGER
            and isinstance(bound, int)
            and abs(bound) > INTEGER_LIMIT
        ):
            raise SpecError(
                at,
                f"a bound of {column!r} is beyond ±{INTEGER_LIMIT}, and an integer there is "
                "missing; write one within it",
            )


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


def spec_plain(text: bytes) -> Any:
    """The spec as plain data, as JSON could hold it.

    ``text`` is a spec that :func:`parse_models` accepts.

    Raises:
        SpecError: the text is no YAML.
    """
    return _json_value(_plain(text))


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
            raise SpecError(f"line {line}", _no_key(key))
        if key in keys:
            raise SpecError(f"line {line}", f"{key!r} stands twice; keep one")
        keys.add(key)
    return loader.construct_mapping(node, deep=True)


def _no_key(key: object) -> str:
    """What is wrong with a name of a field that is no text."""
    if isinstance(key, bool):
        words = "on, yes and true" if key else "off, no and false"
        return f"the key {key} is not text, as YAML reads {words}; put it in quotes"
    if isinstance(key, int):
        return f"the key {key} is not text; put it in quotes, or write 1000 where 1,000 is meant"
    return f"the key {key!r} is not text; put it in quotes"


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    # YAML 1.1 reads 1:30 in base 60, in time that grows with the square of the length.
    if len(node.value) > _LONGEST_INTEGER:
        line = node.start_mark.line + 1
        raise SpecError(f"line {line}", f"an integer of {len(node.value)} characters; shorten it")
    return int(loader.construct_yaml_int(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


# A run reads the spec, publishes it as JSON, and verifies both: reading YAML takes most of that.
# Whatever reads the tree copies what it keeps.
@lru_cache(maxsize=2)
def _plain(text: bytes) -> object:
    try:
        # PyYAML would take the bytes for UTF-16 by their first two.
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecError("spec", _unreadable(text)) from error
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
        problem = getattr(error, "problem", None)
        raise SpecError(place, f"not valid YAML: {_of_yaml(problem)}") from error


_YAML = {
    "'\\t'": "a tab stands where spaces belong; indent with spaces",
    "mapping values are not allowed": "a second colon in the line; put the value in quotes",
    "could not find expected ':'": "a field without a colon; write name: value",
    "but found '<scalar>'": "text behind a quotation mark; put all of the value in quotes",
    "escape character": "a backslash in double quotes; write /, or put it in single quotes",
    "another document": "a second document begins; remove the line ---",
    "<block end>": "the line does not fit those above; indent fields of one level alike",
    "',' or ']'": "a bracket is not closed; write ]",
    "',' or '}'": "a brace is not closed; write }",
    "end of stream": "a quotation mark or a bracket is not closed; close it",
    "cannot start any token": "a value begins with a mark of YAML's own; put it in quotes",
    "<document start>": "plain text, and no fields; is it a spec?",
}
"""What PyYAML says of a text, by a part of it, and what it means."""


def _of_yaml(problem: str | None) -> str:
    if problem is None:
        return "no value of YAML's types; put it in quotes"
    for part, words in _YAML.items():
        if part in problem:
            return words
    return "the line cannot be read; correct it"


def _unreadable(text: bytes) -> str:
    if text.startswith(b"PAR1"):
        return f"a Parquet table, and no spec; {_BEGIN}"
    return "not readable as UTF-8 text; save it as UTF-8"


_SURROGATE = re.compile("[\ud800-\udfff]")


def _check_text(at: str, plain: object) -> None:
    """Refuse surrogates and control characters, which YAML accepts as text.

    A published file cannot hold the first; the second reach the terminals of all who read it.
    """
    if isinstance(plain, dict):
        for key, value in plain.items():
            _check_text(at, key)
            _check_text(f"{at}.{key}".removeprefix("spec."), value)
    elif isinstance(plain, list):
        for place, value in enumerate(plain):
            _check_text(f"{at}[{place}]", value)
    elif isinstance(plain, str) and _SURROGATE.search(plain):
        raise SpecError(at, "half a character (a surrogate) stands in it; write the whole one")
    elif isinstance(plain, str) and (found := control_character(plain)) is not None:
        raise SpecError(at, f"a control character ({found}) stands in it; take it out")


def _validated(plain: object) -> Spec:
    if not isinstance(plain, dict):
        raise SpecError("spec", _NO_SPEC if plain is not None else _EMPTY)
    try:
        return Spec.model_validate(plain)
    except ValidationError as error:
        raise shape_error(Spec, error) from error
