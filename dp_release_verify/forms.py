"""The files of a release as plain classes: read with default-deny, written, and shown as schemas.

A class is a form: its fields are those that a file may have, and no others. Whoever adds a field to
a file adds it here; the reader, the writer, the schema and the refusal of other fields follow.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
import types
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from dp_release_verify import canonical
from dp_release_verify.errors import Refused

T = TypeVar("T")

# ---- How a field is read -------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern:
    """Which texts a field takes."""

    text: str

    def read(self, file: str, value: Any, at: str) -> str:
        """The text."""
        if type(value) is not str or not _compiled(self.text).fullmatch(value):
            raise Refused(file, at, value, self.text)
        return value

    def plain(self, value: Any) -> Any:
        """The text."""
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        return {"type": "string", "pattern": f"^(?:{self.text})$"}


@dataclass(frozen=True)
class Number:
    """An exact number that is not negative, as a text: digits, a decimal, or a/b."""

    def read(self, file: str, value: Any, at: str) -> Fraction:
        """The number."""
        if type(value) is not str or not canonical.NUMBER.fullmatch(value):
            raise Refused(file, at, value, "an exact number")
        return Fraction(value)

    def plain(self, value: Fraction) -> str:
        """The text."""
        return canonical.exact(value)

    schema: ClassVar[dict[str, Any]] = {
        "type": "string",
        "pattern": f"^(?:{canonical.NUMBER.pattern})$",
    }


@dataclass(frozen=True)
class Digits:
    """A whole number as a text, because it may be beyond 2^53."""

    def read(self, file: str, value: Any, at: str) -> int:
        """The number."""
        # Bounded: the time to read a number grows with the square of its digits.
        if type(value) is not str or not _compiled("(0|[1-9][0-9]{0,399})").fullmatch(value):
            raise Refused(file, at, value, "a whole number as a text")
        return int(value)

    def plain(self, value: int) -> str:
        """The text."""
        return str(value)

    schema: ClassVar[dict[str, Any]] = {"type": "string", "pattern": "^(0|[1-9][0-9]{0,399})$"}


@dataclass(frozen=True)
class Within:
    """An integer between two bounds, both included."""

    low: int
    high: int

    def read(self, file: str, value: Any, at: str) -> int:
        """The integer."""
        # True is an integer for Python, and not for JSON.
        if type(value) is not int or not self.low <= value <= self.high:
            raise Refused(file, at, value, f"an integer from {self.low} to {self.high}")
        return value

    def plain(self, value: Any) -> Any:
        """The integer."""
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Day:
    """A day of the Gregorian calendar, as YYYY-MM-DD."""

    def read(self, file: str, value: Any, at: str) -> str:
        """The text."""
        if type(value) is not str or not is_day(value):
            raise Refused(file, at, value, "a day as YYYY-MM-DD")
        return value

    def plain(self, value: Any) -> Any:
        """The text."""
        return value

    schema: ClassVar[dict[str, Any]] = {"type": "string", "format": "date"}


@dataclass(frozen=True)
class Whatever:
    """Any JSON, which another module reads."""

    def read(self, file: str, value: Any, at: str) -> Any:
        """The value as it stands."""
        return value

    def plain(self, value: Any) -> Any:
        """The value."""
        return value

    schema: ClassVar[dict[str, Any]] = {}


@dataclass(frozen=True)
class Sized:
    """How many items a list has, or an object names."""

    least: int = 0
    most: int = 2**21


@dataclass(frozen=True)
class ByField:
    """Which form an object has is decided by one of its fields."""

    field: str
    forms: dict[str, Any] = dataclasses.field(hash=False)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def is_day(text: str) -> bool:
    """Whether a text is a day of the Gregorian calendar, as YYYY-MM-DD."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


@cache
def _fields_of(form: Hashable) -> dict[str, tuple[Any, bool]]:
    """The type of each field, and whether it may be absent."""
    hints = get_type_hints(form, include_extras=True)
    found = {}
    for field in dataclasses.fields(form):  # type: ignore[arg-type]
        is_optional = field.default is not dataclasses.MISSING
        found[field.name] = (hints[field.name], is_optional)
    return found


def read(form: Any, file: str, value: Any, at: str = "") -> Any:  # noqa: PLR0911 - one return a kind
    """The value as an object of its form; every field is known and of its type.

    Raises:
        Refused: it is of another form; the message names the place.
    """
    if dataclasses.is_dataclass(form):
        return _read_object(form, file, value, at)
    origin, inner = get_origin(form), get_args(form)
    if origin is Annotated:
        return _read_annotated(inner, file, value, at)
    if origin is Literal:
        if type(value) is not str or value not in inner:
            raise Refused(file, at, value, " or ".join(inner))
        return value
    if origin is list:
        if type(value) is not list:
            raise Refused(file, at, value, "a list")
        return [read(inner[0], file, each, f"{at}[{place}]") for place, each in enumerate(value)]
    if origin is dict:
        if type(value) is not dict:
            raise Refused(file, at, value, "an object")
        found = {}
        for name, each in value.items():
            read(inner[0], file, name, f"{at}: a name")
            found[name] = read(inner[1], file, each, f"{at}.{name}")
        return found
    if origin in (types.UnionType, Union):
        return _read_union(inner, file, value, at)
    if type(value) is not form:
        raise Refused(file, at, value, form.__name__)
    return value


def _read_annotated(inner: tuple[Any, ...], file: str, value: Any, at: str) -> Any:
    kind, rule = inner
    if isinstance(rule, Sized):
        found = read(kind, file, value, at)
        if not rule.least <= len(found) <= rule.most:
            raise Refused(file, at, len(found), f"{rule.least} to {rule.most} in all")
        return found
    if isinstance(rule, ByField):
        named = value.get(rule.field) if type(value) is dict else None
        if type(named) is not str or named not in rule.forms:
            raise Refused(file, f"{at}.{rule.field}", named, " or ".join(rule.forms))
        return _read_object(rule.forms[named], file, value, at)
    return rule.read(file, value, at)


def _read_union(inner: tuple[Any, ...], file: str, value: Any, at: str) -> Any:
    """A value of the one member that fits, of different types of JSON."""
    kinds = [each for each in inner if each is not type(None)]
    if len(kinds) == 1:
        return read(kinds[0], file, value, at)
    for kind in kinds:
        if type(value) is _json_type(kind):
            return read(kind, file, value, at)
    raise Refused(file, at, value, "one of the forms of the page")


def _json_type(form: Any) -> Any:
    if dataclasses.is_dataclass(form):
        return dict
    origin, inner = get_origin(form), get_args(form)
    if origin is Annotated:
        return int if isinstance(inner[1], Within) else _json_type(inner[0])
    if origin is Literal:
        return str
    return origin if origin in (list, dict) else form


def _read_object(form: Any, file: str, value: Any, at: str) -> Any:
    if type(value) is not dict:
        raise Refused(file, at, value, "an object")
    found = {}
    fields = _fields_of(form)
    prefix = f"{at}." if at else ""
    for name, each in value.items():
        if name not in fields:
            raise Refused(file, f"{prefix}{name}", "a field", f"no other than {', '.join(fields)}")
        found[name] = read(fields[name][0], file, each, f"{prefix}{name}")
    for name, (_, is_optional) in fields.items():
        if name not in value and not is_optional:
            raise Refused(file, f"{prefix}{name}", "nothing", "a field that has to be there")
    if getattr(form, "EXACTLY_ONE", False) and len(found) != 1:
        raise Refused(file, at, sorted(found), f"exactly one of {', '.join(fields)}")
    return form(**found)


def loads(form: type[T], file: str, data: bytes) -> T:
    """The object of a file of canonical JSON.

    Raises:
        Refused: another form.
    """
    found: T = read(form, file, canonical.loads(file, data))
    return found


def plain(value: Any, form: Any = None) -> Any:  # noqa: PLR0911 - one return a kind
    """The object as JSON has it; fields that are absent are left out."""
    form = type(value) if form is None else form
    if dataclasses.is_dataclass(value):
        pairs = {}
        own_form: Any = type(value)
        for name, (kind, _) in _fields_of(own_form).items():
            own = getattr(value, name)
            if own is not None:
                pairs[name] = plain(own, kind)
        return pairs
    origin, inner = get_origin(form), get_args(form)
    if origin is Annotated:
        if isinstance(inner[1], (Sized, ByField)):
            return plain(value, inner[0])
        return inner[1].plain(value)
    if origin in (types.UnionType, Union):
        kinds = [each for each in inner if each is not type(None)]
        if len(kinds) == 1:
            return plain(value, kinds[0])
        fitting = [kind for kind in kinds if type(value) is _json_type(kind)]
        return plain(value, fitting[0] if fitting else None)
    if isinstance(value, list):
        return [plain(each, inner[0] if inner else None) for each in value]
    if isinstance(value, dict):
        return {name: plain(each, inner[1] if inner else None) for name, each in value.items()}
    return value


def dumps(value: Any) -> bytes:
    """The file of an object, as canonical JSON."""
    return canonical.dumps(plain(value))


_Definitions: TypeAlias = dict[str, dict[str, Any]]


def schema(form: Any) -> dict[str, Any]:
    """The JSON Schema of a form, in which every class stands once, below ``$defs``."""
    definitions: _Definitions = {}
    found = _schema(form, definitions)
    return {**found, "$defs": definitions} if definitions else found


def _schema(form: Any, definitions: _Definitions) -> dict[str, Any]:  # noqa: PLR0911 - one a kind
    if dataclasses.is_dataclass(form):
        return _reference(form, definitions)
    origin, inner = get_origin(form), get_args(form)
    if origin is Annotated:
        kind, rule = inner
        return _schema_of_annotated(kind, rule, definitions)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": _schema(inner[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(inner[1], definitions)}
    if origin in (types.UnionType, Union):
        kinds = [_schema(each, definitions) for each in inner if each is not type(None)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {"type": {str: "string", int: "integer", bool: "boolean"}[form]}


def _reference(form: Any, definitions: _Definitions) -> dict[str, Any]:
    """A reference to the schema of a class, which is made where it is met first."""
    name = form.__name__
    if name not in definitions:
        # Named before its fields are looked at, because a class may hold its own kind.
        definitions[name] = {}
        fields = _fields_of(form)
        definitions[name] = {
            "type": "object",
            "description": (form.__doc__ or "").partition("\n")[0],
            "properties": {each: _schema(kind, definitions) for each, (kind, _) in fields.items()},
            "required": [each for each, (_, is_optional) in fields.items() if not is_optional],
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}


def _schema_of_annotated(kind: Any, rule: Any, definitions: _Definitions) -> dict[str, Any]:
    if isinstance(rule, Sized):
        bounds = ("minItems", "maxItems")
        if get_origin(kind) is dict:
            bounds = ("minProperties", "maxProperties")
        return {**_schema(kind, definitions), bounds[0]: rule.least, bounds[1]: rule.most}
    if isinstance(rule, ByField):
        return {"anyOf": [_schema(form, definitions) for form in rule.forms.values()]}
    found: dict[str, Any] = rule.schema
    return found


# ---- The types of fields -------------------------------------------------------------------------

Exact: TypeAlias = Annotated[Fraction, Number()]
Whole: TypeAlias = Annotated[int, Digits()]
Name: TypeAlias = Annotated[str, Pattern("[a-z][a-z0-9_]{0,62}")]
FileName: TypeAlias = Annotated[str, Pattern("[a-z0-9][a-z0-9_]{0,199}")]
Identifier: TypeAlias = Annotated[str, Pattern("[a-z0-9][a-z0-9._-]{0,99}")]
Text: TypeAlias = Annotated[str, Pattern(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,10000}")]
Column: TypeAlias = Annotated[str, Pattern(r"[^#\x00-\x1f][^\x00-\x1f]{0,999}")]
Label: TypeAlias = str | int
Digest: TypeAlias = Annotated[str, Pattern("[0-9a-f]{64}")]
Hashed: TypeAlias = Annotated[str, Pattern("sha256:[0-9a-f]{64}")]
Commitment: TypeAlias = Annotated[str, Pattern("hmac-sha256:[0-9a-f]{64}")]
Date: TypeAlias = Annotated[str, Day()]
Count: TypeAlias = Annotated[int, Within(1, 10**6)]
Integer: TypeAlias = Annotated[int, Within(-canonical.LARGEST, canonical.LARGEST)]
Size: TypeAlias = Annotated[int, Within(0, canonical.LARGEST)]
Anything: TypeAlias = Annotated[Any, Whatever()]
Definition: TypeAlias = Literal["pure", "probabilistic", "approximate"]
ColumnType: TypeAlias = Literal["boolean", "integer", "number", "string", "date", "timestamp"]

# ---- What was asked ------------------------------------------------------------------------------


ABOUT_TEXTS = ("title", "curator", "contact", "purpose", "period", "license")
"""What people are told of a release beside its id; each may be left out."""


@dataclass(frozen=True)
class About:
    """What the release is called, and who publishes it."""

    id: Identifier
    title: Text | None = None
    curator: Text | None = None
    contact: Text | None = None
    purpose: Text | None = None
    period: Text | None = None
    license: Text | None = None


@dataclass(frozen=True)
class Condition:
    """An expression over one row: its SQL for people, and the tree that is evaluated."""

    sql: str
    tree: Anything


@dataclass(frozen=True)
class Derived:
    """A column that is computed from one row."""

    type: ColumnType
    sql: str
    tree: Anything


@dataclass(frozen=True)
class Join:
    """A table whose columns are added: one row of a unit there, or each (``many``)."""

    table: str
    many: bool | None = None


@dataclass(frozen=True)
class Table:
    """A confidential table: where it lies, and the types of its columns."""

    path: str
    columns: Annotated[dict[Column, ColumnType], Sized(1, 10_000)]
    relation: str | None = None
    contract: str | None = None
    join: Join | None = None
    derive: dict[Column, Derived] | None = None


@dataclass(frozen=True)
class Privacy:
    """Whom the guarantee protects: what two neighboring tables differ in."""

    unit: str
    neighbors: Literal["replace_one", "add_remove", "attribute"]
    max_rows_per_unit: Count
    fixed: list[str] | None = None
    max_cells_per_unit: Count | None = None
    attribute: str | None = None
    replacement: Literal["observed", "domain"] | None = None


@dataclass(frozen=True)
class Budget:
    """The account that pays, and what this release may take of it."""

    scope: Identifier
    epsilon: Exact
    delta: Exact
    slot: Identifier | None = None
    composition: Literal["basic", "pld"] | None = None


@dataclass(frozen=True)
class Guarantee:
    """What one cell claims; ``least`` names the number that is found, up to the stated one."""

    definition: Definition
    epsilon: Exact
    delta: Exact
    fallback: Literal["approximate"] | None = None
    least: Literal["epsilon", "delta"] | None = None


@dataclass(frozen=True)
class Target:
    """A cap on the expected loss."""

    EXACTLY_ONE: ClassVar[bool] = True
    error_rate: Exact | None = None
    absolute: Exact | None = None
    squared: Exact | None = None


@dataclass(frozen=True)
class Ends:
    """Integers from the least to the largest."""

    min: Integer
    max: Integer


@dataclass(frozen=True)
class Bins:
    """Bins of integers of nearly equal width."""

    low: Integer
    high: Integer
    count: Count


@dataclass(frozen=True)
class Grid:
    """Points of a step, in units of the scale."""

    low: Integer
    high: Integer
    step: Integer
    scale: Exact


@dataclass(frozen=True)
class Nothing:
    """An object without fields."""


@dataclass(frozen=True)
class Domain:
    """The answers that are possible."""

    EXACTLY_ONE: ClassVar[bool] = True
    ordered: Ends | None = None
    cyclic: Count | None = None
    nominal: Annotated[list[str], Sized(2, 10**6)] | None = None
    integers: Nothing | None = None
    bins: Bins | None = None
    grid: Grid | None = None


@dataclass(frozen=True)
class Demand:
    """A demand on the weights of modular noise."""

    EXACTLY_ONE: ClassVar[bool] = True
    zero_mean: Nothing | None = None
    monotone: Nothing | None = None
    mean_square: Exact | None = None
    equal: Annotated[list[Integer], Sized(2, 100)] | None = None


NoiseOn: TypeAlias = Literal["on_statistic", "on_answer"]
Counted: TypeAlias = Literal["units", "rows"]
Clamp: TypeAlias = Annotated[list[Integer], Sized(2, 2)]
Loss: TypeAlias = Literal["error_rate", "absolute", "squared", "noise_squared", "table"]
Source: TypeAlias = Literal["empirical", "global", "declared"]


@dataclass(frozen=True, kw_only=True)
class Query:
    """The fields of every question.

    It is published if it has a guarantee, a share or a target; else it is a part of others.
    """

    name: Name
    kind: str
    table: str
    by: Annotated[list[str], Sized(0, 100)]
    max_rows_per_unit: Count
    title: Text | None = None
    units: Text | None = None
    where: Condition | None = None
    sensitivity: Source | None = None
    declared: Annotated[list[list[Integer]], Sized(1, 10**6)] | None = None
    guarantee: Guarantee | None = None
    share: Exact | None = None
    target: Target | None = None
    noise: NoiseOn | None = None
    loss: Loss | None = None
    costs: Annotated[list[Exact], Sized(2, 10**6)] | None = None
    mechanism: Name | None = None
    parameters: dict[Name, Exact] | None = None
    prior: Annotated[list[Exact], Sized(2, 1000)] | None = None
    objective: Literal["mean", "worst_case"] | None = None
    constraints: Annotated[list[Demand], Sized(1, 100)] | None = None


@dataclass(frozen=True, kw_only=True)
class CountQuery(Query):
    """A number of rows, or with ``of`` of units."""

    domain: Domain
    of: str | None = None


@dataclass(frozen=True, kw_only=True)
class Mode(Query):
    """The category with the most units, rows or weight."""

    of: str
    domain: Domain
    count: Counted | None = None
    weight: str | None = None
    clamp: Clamp | None = None


@dataclass(frozen=True, kw_only=True)
class Top(Query):
    """The k categories with the most units or rows."""

    of: str
    domain: Domain
    k: Annotated[int, Within(1, 50)]
    count: Counted
    counts: bool
    histogram: bool
    cell_size: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Statistic(Query):
    """A sum, mean, least, largest or median value, in bins or on a grid."""

    of: str
    domain: Domain
    clamp: Clamp | None = None
    values: Annotated[list[Integer], Sized(2, 100)] | None = None
    rank: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Quantiles(Query):
    """One quantile or several."""

    of: str
    domain: Domain
    at: Annotated[list[Exact], Sized(1, 20)]
    clamp: Clamp | None = None
    cell_size: Count | None = None


@dataclass(frozen=True, kw_only=True)
class PerUnit(Query):
    """The category of each unit, disturbed."""

    of: str
    domain: Domain


@dataclass(frozen=True, kw_only=True)
class TupleQuery(Query):
    """Several questions that are answered jointly."""

    of: Annotated[list[Name], Sized(2, 8)]


@dataclass(frozen=True, kw_only=True)
class SqlQuery(Query):
    """A statement of the curator's own, run on every neighbor of the table."""

    sql: str
    domain: Domain


QUERIES: dict[str, Any] = {
    "count": CountQuery,
    "mode": Mode,
    "top": Top,
    "sum": Statistic,
    "mean": Statistic,
    "min": Statistic,
    "max": Statistic,
    "median": Statistic,
    "quantiles": Quantiles,
    "per_unit": PerUnit,
    "tuple": TupleQuery,
    "sql": SqlQuery,
}
AnyQuery: TypeAlias = Annotated[Query, ByField("kind", QUERIES)]

Categories: TypeAlias = Annotated[list[Label], Sized(1, 2**20)]
Margin: TypeAlias = Annotated[list[str], Sized(0, 100)]


@dataclass(frozen=True)
class Hierarchy:
    """The columns of the areas, from the highest level to the lowest, and their file."""

    file: str
    levels: Annotated[list[str], Sized(1, 12)]


@dataclass(frozen=True)
class Attribute:
    """A column of the table, and its public categories."""

    name: str
    categories: Categories


@dataclass(frozen=True)
class Class:
    """Categories that are counted together, and what they are called."""

    label: str
    categories: Categories


@dataclass(frozen=True)
class Grouping:
    """Coarser categories of an attribute."""

    name: str
    of: str
    classes: Annotated[list[Class], Sized(1, 2**20)]


@dataclass(frozen=True)
class Constraint:
    """Declared numbers of a level and margin, or combinations of categories that nobody has."""

    level: str | None = None
    margin: Margin | None = None
    file: str | None = None
    impossible: dict[str, Categories] | None = None


@dataclass(frozen=True)
class Pinned:
    """A table that is to be measured, and its part of the budget."""

    level: str
    margin: Margin
    share: Exact


@dataclass(frozen=True)
class Strategy:
    """How a tabulation is to be measured."""

    noise: Literal["geometric", "gaussian"] | None = None
    tables: Annotated[list[Pinned], Sized(1, 10_000)] | None = None


@dataclass(frozen=True)
class Tabulation:
    """Counts of units by area and category, which add up."""

    name: Name
    table: str
    hierarchy: Hierarchy
    publish: dict[str, list[Margin]]
    title: Text | None = None
    units: Text | None = None
    where: Condition | None = None
    attributes: Annotated[list[Attribute], Sized(1, 1000)] | None = None
    groupings: Annotated[list[Grouping], Sized(1, 1000)] | None = None
    importance: dict[str, Exact] | None = None
    constraints: list[Constraint] | None = None
    guarantee: Guarantee | None = None
    strategy: Strategy | None = None


@dataclass(frozen=True)
class Acceptance:
    """A cap on an error, of a question or of a published table."""

    of: Name
    figure: Literal["p95", "mean_error", "error_rate", "absolute", "squared"]
    at_most: Exact
    level: str | None = None
    margin: Margin | None = None


@dataclass(frozen=True)
class Asked:
    """The spec of record: what was asked, with every default written out."""

    release: About
    tables: Annotated[dict[str, Table], Sized(1, 1000)]
    privacy: Privacy
    budget: Budget
    queries: Annotated[list[AnyQuery], Sized(0, 10_000)] | None = None
    tabulations: Annotated[list[Tabulation], Sized(1, 1000)] | None = None
    acceptance: Annotated[list[Acceptance], Sized(1, 10_000)] | None = None


# ---- What was made of it -------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """An ε and a δ."""

    epsilon: Exact
    delta: Exact


@dataclass(frozen=True)
class Claim:
    """A guarantee."""

    definition: Definition
    epsilon: Exact
    delta: Exact


@dataclass(frozen=True)
class MadeQuery:
    """A question as it was answered: what one cell claims, and what all cost together."""

    name: Name
    definition: Definition
    epsilon: Exact
    delta: Exact
    cells: Count
    charge: Figures
    mechanism: FileName | None = None
    commitment: Commitment | None = None


@dataclass(frozen=True)
class MadeTable:
    """A table that a tabulation measured."""

    name: FileName
    level: str
    margin: Margin
    definition: Definition
    epsilon: Exact
    delta: Exact
    cells: Annotated[int, Within(1, 2**25)]
    charge: Figures
    mechanism: FileName


@dataclass(frozen=True)
class MadeLevel:
    """The published tables of a level, and the file that has them."""

    level: str
    file: FileName


@dataclass(frozen=True)
class MadeTabulation:
    """A tabulation as it was measured, and the files of what follows."""

    name: Name
    measured: Annotated[list[MadeTable], Sized(1, 10_000)]
    levels: Annotated[list[MadeLevel], Sized(1, 12)]
    declared: FileName | None = None


@dataclass(frozen=True)
class Paid:
    """The entry of the ledger that reserved the charge."""

    entry: Annotated[int, Within(1, 10**8 - 1)]


@dataclass(frozen=True)
class Made:
    """What was published, and what it costs.

    ``step`` is the grid of privacy losses of a release whose charges compose exactly.
    """

    queries: Annotated[list[MadeQuery], Sized(0, 10_000)]
    total: Claim
    tabulations: Annotated[list[MadeTabulation], Sized(1, 1000)] | None = None
    step: Exact | None = None
    ledger: Paid | None = None


@dataclass(frozen=True)
class Software:
    """What made the release; informative."""

    dp_release: Text
    source: Digest


@dataclass(frozen=True)
class Release:
    """``release.json``."""

    schema: Literal["dp-release/release/v1"]
    kind: Literal["RELEASE", "TEST", "REHEARSAL"]
    published: Date
    asked: Asked
    made: Made
    software: Software


@dataclass(frozen=True)
class Areas:
    """The areas of a tabulation: for each of the lowest level its names from the highest on."""

    levels: Annotated[list[str], Sized(1, 12)]
    rows: Annotated[list[list[str]], Sized(1, 10**6)]


@dataclass(frozen=True)
class Keys:
    """``keys.json``: every key set, and every list of areas, in full."""

    schema: Literal["dp-release/keys/v1"]
    keys: dict[str, Annotated[list[Label], Sized(1, 2**21)]]
    areas: dict[Name, Areas] | None = None


# ---- Mechanisms ----------------------------------------------------------------------------------

Weights: TypeAlias = Annotated[list[Whole], Sized(1, 2**21)]


@dataclass(frozen=True)
class Tail:
    """An end of noise that repeats its last ``period`` integers, each time by ``ratio``/2^64."""

    period: Annotated[int, Within(1, 2**53 - 1)]
    ratio: Whole


@dataclass(frozen=True)
class Noise:
    """A law on the integers: runs of equal weight in a window, and tails."""

    low: Integer
    lengths: Annotated[list[Size], Sized(1, 2**21)]
    weights: Weights
    left: Tail | None = None
    right: Tail | None = None


@dataclass(frozen=True)
class Shifts:
    """What is published for outcomes near the ends: runs of a count and a shift."""

    low: Annotated[list[Annotated[list[Integer], Sized(2, 2)]], Sized()]
    high: Annotated[list[Annotated[list[Integer], Sized(2, 2)]], Sized()]


@dataclass(frozen=True)
class Price:
    """Multipliers of one distance, in units of 2^-80, which prove a bound."""

    distance: Count
    prices: Weights


@dataclass(frozen=True)
class Bound:
    """A loss that no noise on the integers with this guarantee is below."""

    at_least: Exact
    prices: Annotated[list[Price], Sized(1, 1000)] | None = None


MECHANISM: Literal["dp-release/mechanism/v1"] = "dp-release/mechanism/v1"


@dataclass(frozen=True)
class IntegersLaw:
    """Noise on the integers, clamped to the answers."""

    schema: Literal["dp-release/mechanism/v1"]
    family: Literal["integers"]
    noise: Noise
    ends: Shifts
    bound: Bound | None = None
    note: Text | None = None


@dataclass(frozen=True)
class ModularLaw:
    """Noise in the group of the answers: a weight for each element."""

    schema: Literal["dp-release/mechanism/v1"]
    family: Literal["modular"]
    weights: Weights
    note: Text | None = None


@dataclass(frozen=True)
class ChannelLaw:
    """A row of weights for each true answer."""

    schema: Literal["dp-release/mechanism/v1"]
    family: Literal["channel"]
    rows: Annotated[list[Weights], Sized(2, 1000)]
    note: Text | None = None


@dataclass(frozen=True)
class RatioLaw:
    """A selection that is decided by ``ratio``/2^64 for each unit of score."""

    schema: Literal["dp-release/mechanism/v1"]
    family: str
    ratio: Whole
    note: Text | None = None


@dataclass(frozen=True)
class TreeLaw:
    """A tree of selections for several quantiles; a leaf is a ``block`` of answers."""

    schema: Literal["dp-release/mechanism/v1"]
    family: Literal["quantile_tree"]
    ratio: Whole
    block: Count
    note: Text | None = None


@dataclass(frozen=True)
class GapLaw:
    """A row of weights for each state of gaps between the scores, up to ``cap``."""

    schema: Literal["dp-release/mechanism/v1"]
    family: Literal["gap_table"]
    cap: Count
    weights: Annotated[list[Weights], Sized(1, 2**15)]
    note: Text | None = None


@dataclass(frozen=True)
class SumsLaw:
    """Noise on the sums that decide the answer."""

    schema: Literal["dp-release/mechanism/v1"]
    family: Literal["noisy_sums"]
    noise: Noise
    note: Text | None = None


RATIO_FAMILIES = (
    "permute_and_flip",
    "exponential_mechanism",
    "two_categories",
    "top_histogram",
    "top_canonical",
    "top_peeled",
    "joint_quantiles",
)
LAWS: dict[str, Any] = {
    "integers": IntegersLaw,
    "modular": ModularLaw,
    "channel": ChannelLaw,
    "quantile_tree": TreeLaw,
    "gap_table": GapLaw,
    "noisy_sums": SumsLaw,
    **dict.fromkeys(RATIO_FAMILIES, RatioLaw),
}
Law: TypeAlias = Annotated[Any, ByField("family", LAWS)]

# ---- The auditor's folder ------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """How far neighbors of this very table move an answer: differences, or distances on a line."""

    EXACTLY_ONE: ClassVar[bool] = True
    differences: Annotated[list[list[Integer]], Sized(1, 10**6)] | None = None
    distances: Annotated[list[Count], Sized(1, 10**6)] | None = None


@dataclass(frozen=True)
class Committed:
    """What a commitment covers: the law, and the sensitivity it was made for."""

    law: Law
    sensitivity: Found


@dataclass(frozen=True)
class Opened:
    """``<query>.json`` of the auditor's folder."""

    schema: Literal["dp-release/opened/v1"]
    release_id: Identifier
    key: Digest
    law: Law
    sensitivity: Found


@dataclass(frozen=True)
class FileOpening:
    """The salt and the value of the commitment to an input file."""

    key: Digest
    commitment: Commitment


@dataclass(frozen=True)
class Input:
    """The commitments to the files of one table, in the order of their names."""

    table: str
    files: list[FileOpening]


@dataclass(frozen=True)
class SetAside:
    """Rows or values of a table that were not taken as they stand."""

    table: str
    rule: str
    column: str
    count: Annotated[int, Within(1, canonical.LARGEST)]


@dataclass(frozen=True)
class LeftOut:
    """What the answers leave out of the tables, or change."""

    of: str
    words: str
    count: Annotated[int, Within(1, canonical.LARGEST)]
    whole: Size
    noun: str
    example: str


Instant: TypeAlias = Annotated[
    str, Pattern("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
]
Person: TypeAlias = Annotated[str, Pattern(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}|\?")]
RunId: TypeAlias = Annotated[str, Pattern("[0-9a-f]{32}")]
Base64: TypeAlias = Annotated[str, Pattern("[A-Za-z0-9+/]{1,100}={0,2}")]


@dataclass(frozen=True)
class Audit:
    """``audit.json``: when and by whom a release was made, and from what."""

    schema: Literal["dp-release/audit/v1"]
    release_id: Identifier
    began: Instant
    prepared: Instant
    actor: Person
    inputs: list[Input]
    approver: Person | None = None
    entry: Annotated[int, Within(1, 10**8 - 1)] | None = None
    run: RunId | None = None
    set_aside: list[SetAside] | None = None
    left_out: list[LeftOut] | None = None
    signature: Base64 | None = None


# ---- The ledger ----------------------------------------------------------------------------------

KeyText: TypeAlias = Annotated[str, Pattern("[!-~]{1,400}")]
Reason: TypeAlias = Annotated[str, Pattern(r"[^\x00-\x1f\x7f]{1,300}")]


@dataclass(frozen=True)
class PeriodCap:
    """The cap of each calendar day, month or year."""

    every: Literal["day", "month", "year"]
    epsilon: Exact
    delta: Exact


@dataclass(frozen=True)
class Curve:
    """A privacy profile: bounds of δ at the losses 0, ``step``, …, in units of 10^-28."""

    step: Exact
    values: Annotated[list[Whole], Sized(1, 2**14 + 1)]


@dataclass(frozen=True)
class Slot:
    """A place in the plan of a scope, with an ε and a δ, or with a profile."""

    name: Identifier
    times: Annotated[int, Within(1, 10**5)]
    epsilon: Exact | None = None
    delta: Exact | None = None
    profile: Curve | None = None
    declared: bool | None = None


@dataclass(frozen=True)
class Cap:
    """What a scope may spend, and the rule by which its charges amount to something."""

    scope: Identifier
    epsilon: Exact
    delta: Exact
    period: PeriodCap | None = None
    rule: Literal["basic", "pld", "renyi_filter"] | None = None
    planned: Annotated[list[Slot], Sized(1, 1000)] | None = None
    order: Annotated[int, Within(2, 256)] | None = None
    cuts: Exact | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The fields of every entry: its number, the hash of the entry before, its day."""

    seq: Annotated[int, Within(0, 10**8 - 1)]
    prev: Hashed
    date: Date
    kind: str


@dataclass(frozen=True, kw_only=True)
class Genesis(Entry):
    """The first entry: the name of the ledger, its caps, and its first key."""

    origin: Annotated[str, Pattern("[!-*,-~]{1,200}")]
    scopes: list[Cap]
    keys: Annotated[list[KeyText], Sized(1, 1)]


@dataclass(frozen=True, kw_only=True)
class Reserve(Entry):
    """The charge of a release, before any noise is drawn."""

    release_id: Identifier
    scope: Identifier
    epsilon: Exact
    delta: Exact
    run: RunId | None = None
    slot: Identifier | None = None
    moment: Exact | None = None
    cut: Exact | None = None


@dataclass(frozen=True, kw_only=True)
class Commit(Entry):
    """The release becomes public: the hash of its SHA256SUMS."""

    release_id: Identifier
    sums: Hashed


@dataclass(frozen=True, kw_only=True)
class Abort(Entry):
    """The release does not become public; its charge stays if noise was drawn."""

    release_id: Identifier
    drawn: bool
    reason: (
        Literal["refused", "storage", "interrupted", "internal", "cut-off", "abandoned"] | None
    ) = None


@dataclass(frozen=True, kw_only=True)
class Withdraw(Entry):
    """A public release is taken back; its charge stays."""

    release_id: Identifier


@dataclass(frozen=True, kw_only=True)
class Skip(Entry):
    """A release that will not be made."""

    release_id: Identifier
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Revise(Entry):
    """Another release takes the place of a public one, which stays."""

    release_id: Identifier
    by: Identifier
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Policy(Entry):
    """A new scope, or other caps of one that adds charges up."""

    cap: Cap


@dataclass(frozen=True, kw_only=True)
class KeyChange(Entry):
    """A key is added or retired, as one that stays valid signed."""

    action: Literal["add", "retire"]
    key: KeyText
    signature: Base64


@dataclass(frozen=True, kw_only=True)
class StoreNamed(Entry):
    """The store in which later entries are put first."""

    uri: Annotated[str, Pattern("[a-z][a-z0-9]*://[!-~]{1,400}")]


ENTRIES: dict[str, Any] = {
    "genesis": Genesis,
    "reserve": Reserve,
    "commit": Commit,
    "abort": Abort,
    "withdraw": Withdraw,
    "skip": Skip,
    "revise": Revise,
    "policy": Policy,
    "key": KeyChange,
    "store": StoreNamed,
}
AnyEntry: TypeAlias = Annotated[Entry, ByField("kind", ENTRIES)]
