"""The meaning of every stored value under its declared type: one SQL expression for each.

No value makes loading fail, because a failure, its message and its time would tell of one row. A
value has a meaning, or it is missing: what is not of the declared type, a text that is not UTF-8 or
holds U+FFFD, an empty text, NaN. ``docs/tables.md`` has the table of all cases. Each expression
looks at one value alone, and is total: what could fail is reached only by values that cannot.

Sources hand text on as bytes that nobody has checked. So nothing looks at one but a regular
expression, which matches only UTF-8, and the cast to an integer: other functions of the engine
raise, or are undefined. Arrow tells which texts are ASCII
(:func:`release.tables.columns.ascii_of`): those are UTF-8, and need no regular expression, which
would take most of the time of a load.
"""

from __future__ import annotations

from collections.abc import Mapping

from release.spec.declarations import ColumnType
from release.spec.domains import INTEGER_LIMIT
from release.spec.expressions import identifier, literal
from release.tables.columns import ascii_of, instant_of, number_of

_NARROW = {"tinyint", "smallint", "integer", "utinyint", "usmallint", "uinteger"}
_INTEGERS = _NARROW | {"bigint", "hugeint", "ubigint", "uhugeint"}
_FLOATS = {"float", "double"}
_TEXTS = {"varchar", "enum"}
# A decimal's text is exact, and the engine's own cast may give the number beside it.
_WRITTEN = _TEXTS | {"decimal"}
_TIMES = {"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"}
_ZONED = "timestamp with time zone"
_NUMBERS = _INTEGERS | _FLOATS | {"decimal"}

ENGINE_TYPES: dict[ColumnType, set[str]] = {
    ColumnType.STRING: _TEXTS | _INTEGERS | {"uuid"},
    ColumnType.INTEGER: _NUMBERS,
    ColumnType.NUMBER: _NUMBERS,
    ColumnType.DATE: _TIMES | {"date"},
    ColumnType.TIMESTAMP: _TIMES | {_ZONED},
    ColumnType.BOOLEAN: {"boolean"},
}
"""The engine's types that a table of a DuckDB file may have for a declared type."""

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_AHEAD = rf"[ \t]*{_DAY}[ T]{_TIME} ?[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?[ \t]*"
"""The texts of a time with its offset from UTC."""

_MIDNIGHT = r"00:00(:00(\.0{1,9})?)?"
_FORMS = {
    # Without U+FFFD, which stands where somebody has replaced what was not UTF-8.
    ColumnType.STRING: r"[\x00-\x{D7FF}\x{E000}-\x{FFFC}\x{FFFE}-\x{10FFFF}]+",
    # Of decimals, Arrow writes a zero of many places as 0E-8.
    ColumnType.INTEGER: r"[ \t]*[+-]?([0-9]+(\.0+)?|0[eE][+-]?[0-9]{1,3})[ \t]*",
    ColumnType.NUMBER: (
        r"(?i)[ \t]*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity)[ \t]*"
    ),
    ColumnType.DATE: rf"[ \t]*{_DAY}([ T]{_MIDNIGHT})?[ \t]*",
    ColumnType.TIMESTAMP: rf"[ \t]*{_DAY}([ T]{_TIME}Z?)?[ \t]*",
}
"""The texts that have a value of a declared type."""

_YEARS = "TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"

_TRUE = r"(?i)[ \t]*(true|t|yes|y|1)[ \t]*"
_FALSE = r"(?i)[ \t]*(false|f|no|n|0)[ \t]*"
_MISSING = r"(?i)[ \t]*(nan)?[ \t]*"
_WORDS = r"(?i)[ \t]*(n/?a|n\.a\.|#n/a|null|\(null\)|none|nil|missing|-+|\.)[ \t]*"
"""Texts that usually mean that there is no value."""
_COMMA = r"[ \t]*[+-]?[0-9.]*,[0-9]+[ \t]*"
"""Numbers with a decimal comma, or with one between thousands."""


def normal_sql(
    relation: str,
    stored: Mapping[str, str],
    columns: Mapping[str, ColumnType],
    unit: str | None = None,
    in_passing: bool = False,
    zones: Mapping[str, str] | None = None,
) -> str:
    """A query of a relation's ``columns`` under their declared types, of the rows with a unit.

    ``stored`` names the engine's type of each column, as its Python types do in ``id``. The unit is
    not clamped, because a clamped unit would be another unit. Without a ``unit`` all rows stay.
    The rows are stored, or read ``in_passing``: then other conditions are met in the same step.
    Instants of a column in ``zones`` are read as the local time of its zone, all others in UTC.
    """
    values = {}
    for column, kind in columns.items():
        zone = (zones or {}).get(column)
        values[column] = _value(column, stored, kind, column == unit, zone)
    rows = as_read(relation, stored, columns)
    # In passing the engine may meet a condition on the unit before this one: only a value that is
    # guarded by itself is safe there.
    is_bare = unit is not None and columns[unit] is ColumnType.STRING and not in_passing
    if unit is not None and is_bare:
        # Looked at once, before anything else: the engine would look at it twice.
        values[unit] = _plain(identifier(unit), stored[unit])
        rows = f"{rows} WHERE {_is_string(unit, stored)}"
    named = [f"{value} AS {identifier(column)}" for column, value in values.items()]
    named += _numbers(stored)
    selected = f"SELECT {', '.join(named)} FROM ({rows})"
    if unit is None or is_bare:
        return selected
    return f"FROM ({selected}) WHERE {identifier(unit)} IS NOT NULL"


def fault_counts(
    stored: Mapping[str, str],
    columns: Mapping[str, ColumnType],
    unit: str,
    *,
    is_csv: bool = False,
    zones: Mapping[str, str] | None = None,
) -> dict[tuple[str, str], str]:
    """The SQL of counts over the rows of :func:`as_read`, by rule and column.

    How often a value is not of its declared type, of rows with a unit, and how many rows have none.
    Texts of a CSV file that look like a word for what is missing, or like a number with a decimal
    comma, are counted apart; and units that look like such a word.
    """
    counts = {}
    own = f"({_value(unit, stored, columns[unit], True)}) IS NULL"
    for column, kind in columns.items():
        is_missing = _is_missing(identifier(column), stored[column])
        value = _value(column, stored, kind, column == unit, (zones or {}).get(column))
        wrong = f"NOT ({own}) AND NOT ({is_missing}) AND ({value}) IS NULL"
        if column == unit:
            counts["no unit", column] = own
        elif not (is_csv and stored[column] in _TEXTS):
            counts[f"not a {kind.value}", column] = wrong
        else:
            is_word, is_comma = _looks(column, stored, _WORDS), _looks(column, stored, _COMMA)
            counts[f"not a {kind.value}", column] = f"{wrong} AND NOT {is_word} AND NOT {is_comma}"
            counts["a word", column] = f"{wrong} AND {is_word}"
            counts["a decimal comma", column] = f"{wrong} AND {is_comma}"
    if is_csv and stored[unit] in _TEXTS:
        counts["a unit of a word", unit] = f"NOT ({own}) AND {_looks(unit, stored, _WORDS)}"
    return {rule: f"count(*) FILTER (WHERE {test})" for rule, test in counts.items()}


def _looks(column: str, stored: Mapping[str, str], form: str) -> str:
    text = _plain(identifier(column), stored[column])
    return f"regexp_full_match({text}, {literal(form)})"


def as_read(relation: str, stored: Mapping[str, str], columns: Mapping[str, ColumnType]) -> str:
    """A query of a relation's rows, with what helps to find the value of each column."""
    return f"SELECT {_read(stored, columns)} FROM {relation}"


def _read(stored: Mapping[str, str], columns: Mapping[str, ColumnType]) -> str:
    """What is read of a relation, beside each column what helps to find its value."""
    read = []
    for column, kind in columns.items():
        read.append(identifier(column) + _short(column, stored[column], kind))
        if ascii_of(column) in stored:
            read.append(identifier(ascii_of(column)))
        if instant_of(column) in stored:
            read.append(identifier(instant_of(column)))
    return ", ".join(read + _numbers(stored))


def _numbers(stored: Mapping[str, str]) -> list[str]:
    """The columns that number the keys of others, which are read as they are."""
    # Of columns too that are not read themselves. No declared column begins with #.
    return [identifier(column) for column in stored if column.startswith(number_of(""))]


def _plain(name: str, stored: str) -> str:
    return name if stored == "varchar" else f"CAST({name} AS VARCHAR)"


def _short(column: str, stored: str, kind: ColumnType) -> str:
    """A second column with the value of most texts of integers, so that it is read once."""
    if stored not in _WRITTEN or kind is not ColumnType.INTEGER:
        return ""
    name = identifier(column)
    return f", TRY_CAST({_plain(name, stored)} AS BIGINT) AS {identifier(f'#{column}')}"


def _has_form(name: str, stored: str, kind: ColumnType = ColumnType.STRING) -> str:
    return f"regexp_full_match({_plain(name, stored)}, {literal(_FORMS[kind])})"


def _is_string(column: str, stored: Mapping[str, str]) -> str:
    """Whether a stored text is a string."""
    name, is_ascii = identifier(column), ascii_of(column)
    has_form = _has_form(name, stored[column])
    if is_ascii not in stored:
        return has_form
    return f"CASE WHEN {identifier(is_ascii)} THEN {name} <> '' ELSE {has_form} END"


def _is_missing(name: str, stored: str) -> str:
    """Whether a stored value is missing in its source already."""
    if stored in _FLOATS:
        return f"{name} IS NULL OR isnan({name})"
    empty = f" OR regexp_full_match({_plain(name, stored)}, {literal(_MISSING)})"
    return f"{name} IS NULL{empty if stored in _TEXTS else ''}"


def is_instant(column: str, stored: Mapping[str, str]) -> bool:
    """Whether the engine's types of a relation say that a column holds instants."""
    return stored[column] == _ZONED or instant_of(column) in stored


def _value(  # noqa: PLR0911 - one for each type
    column: str,
    types: Mapping[str, str],
    kind: ColumnType,
    is_unit: bool,
    zone: str | None = None,
) -> str:
    name, stored = identifier(column), types[column]
    if stored in _WRITTEN:
        return _of_text(column, types, kind, is_unit, zone)
    if kind is ColumnType.STRING:
        return _plain(name, stored)
    if kind is ColumnType.INTEGER:
        read = _of_float if stored in _FLOATS else _of_number
        return read(name, stored, is_unit)
    if kind is ColumnType.NUMBER:
        # Plus zero, because -0.0 equals 0.0 but has another text and another hash.
        number = f"CAST({name} AS DOUBLE) + 0.0"
        return f"CASE WHEN NOT isnan({number}) THEN {number} END"
    if kind is ColumnType.BOOLEAN:
        return name
    if kind is ColumnType.DATE:
        return _of_day(name, stored)
    time = _of_time(name, stored)
    return _local(time, zone) if is_instant(column, types) else time


def _of_text(
    column: str, types: Mapping[str, str], kind: ColumnType, is_unit: bool, zone: str | None
) -> str:
    stored = types[column]
    text = _plain(identifier(column), stored)
    if kind is ColumnType.STRING:
        return f"CASE WHEN {_is_string(column, types)} THEN {text} END"
    if kind is ColumnType.BOOLEAN:
        true, false = (f"regexp_full_match({text}, {literal(form)})" for form in (_TRUE, _FALSE))
        return f"CASE WHEN {true} THEN true WHEN {false} THEN false END"
    has_form = _has_form(identifier(column), stored, kind)
    if kind is ColumnType.INTEGER:
        short = identifier(f"#{column}")
        # Most texts are the integer's own: this is quicker than a regular expression.
        return (
            f"CASE WHEN CAST({short} AS VARCHAR) = {text} "
            f"THEN {short if is_unit else within_limits(short)} "
            f"WHEN {has_form} THEN {_of_digits(text, is_unit)} END"
        )
    plain = f"trim({text}, ' ' || chr(9))"
    if kind is ColumnType.NUMBER:
        # Texts beyond the largest number are infinite, and those below the least are zero.
        return f"CASE WHEN {has_form} THEN TRY_CAST({plain} AS DOUBLE) + 0.0 END"
    # To the engine the year 0000 is one before Christ.
    in_years = f"NOT contains({text}, '0000-')"
    if kind is ColumnType.DATE:
        day = f"TRY_CAST(left({plain}, 10) AS DATE)"
        return f"CASE WHEN {has_form} THEN CASE WHEN {in_years} THEN {day} END END"
    local = f"CASE WHEN {in_years} THEN TRY_CAST({plain} AS TIMESTAMP) END"
    if zone is not None:
        local = f"CASE WHEN contains({text}, 'Z') THEN {_local(local, zone)} ELSE {local} END"
    is_ahead = f"regexp_full_match({text}, {literal(_AHEAD)})"
    ahead = _local(_instant(plain), zone)
    return f"CASE WHEN {has_form} THEN {local} WHEN {is_ahead} THEN {ahead} END"


def _instant(text: str) -> str:
    """A text of a time with its offset, in UTC."""
    offset = r"[+-][0-9]{2}(:?[0-9]{2})?$"
    # The engine passes over an offset.
    local = f"TRY_CAST(trim(regexp_replace({text}, '{offset}', '')) AS TIMESTAMP)"
    ahead = f"regexp_extract({text}, '{offset}')"
    hours = f"TRY_CAST(substr({ahead}, 2, 2) AS BIGINT)"
    minutes = f"coalesce(TRY_CAST(right(substr({ahead}, 4), 2) AS BIGINT), 0)"
    sign = f"CASE left({ahead}, 1) WHEN '-' THEN -1 ELSE 1 END"
    instant = f"{local} - to_minutes({sign} * (60 * {hours} + {minutes}))"
    return f"CASE WHEN {instant} BETWEEN {_YEARS} THEN {instant} END"


def _local(instant: str, zone: str | None) -> str:
    """A time in UTC as the local time of a zone; in UTC where none is declared."""
    if zone is None:
        return instant
    # A day away from the first and the last year, so that no zone leads beyond them.
    inside = f"{instant} BETWEEN TIMESTAMP '0001-01-02' AND TIMESTAMP '9999-12-30'"
    local = f"timezone({literal(zone)}, timezone('UTC', {instant}))"
    return f"CASE WHEN {inside} THEN {local} END"


def _of_digits(text: str, is_unit: bool) -> str:
    """A text of a sign, digits and zeros after a point as an integer."""
    digits = f"('0' || ltrim(regexp_extract({text}, '[0-9]+'), '0'))"
    sign = f"(CASE WHEN contains({text}, '-') THEN '-' ELSE '' END)"
    exact = f"TRY_CAST({sign} || {digits} AS BIGINT)"
    return exact if is_unit else within_limits(exact)


def within_limits(integer: str) -> str:
    """The SQL of an integer of 64 bits, missing beyond the limit of columns."""
    return f"CASE WHEN {integer} BETWEEN {-INTEGER_LIMIT} AND {INTEGER_LIMIT} THEN {integer} END"


def _of_number(name: str, stored: str, is_unit: bool) -> str:
    """A stored integer; one beyond 64 bits is missing."""
    exact = f"TRY_CAST({name} AS BIGINT)"
    return exact if is_unit or stored in _NARROW else within_limits(exact)


def _of_float(name: str, stored: str, is_unit: bool) -> str:
    """A stored float as an integer; one that is not whole is missing."""
    # As a DOUBLE, because a float of the limit is another number.
    number = f"CAST({name} AS DOUBLE)"
    # From the first bound on neighboring integers are one float, and two units would count as one.
    first_lost = (2**24 if stored == "float" else 2**53) if is_unit else INTEGER_LIMIT + 1
    is_whole = f"{number} = trunc({number}) AND abs({number}) < {first_lost}"
    return f"CASE WHEN {is_whole} THEN TRY_CAST({number} AS BIGINT) END"


def _of_day(name: str, stored: str) -> str:
    """A stored date, or a stored time that is a midnight."""
    if stored == "date":
        return f"CASE WHEN {name} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {name} END"
    time = _of_time(name, stored)
    return f"CASE WHEN {time} = date_trunc('day', {time}) THEN CAST({time} AS DATE) END"


def _of_time(name: str, stored: str) -> str:
    """A stored time in microseconds, rounded down; one of a zone in UTC."""
    if stored == _ZONED:
        instant = f"make_timestamp(epoch_us({name}))"
        inside = f"CASE WHEN {instant} BETWEEN {_YEARS} THEN {instant} END"
        return f"CASE WHEN isfinite({name}) THEN {inside} END"
    if stored == "timestamp_ns":
        ticks = f"epoch_ns({name})"
        # The division rounds to zero, and a cast to the nearest.
        micros = f"{ticks} // 1000 - CASE WHEN {ticks} % 1000 < 0 THEN 1 ELSE 0 END"
        return f"CASE WHEN isfinite({name}) THEN make_timestamp({micros}) END"
    # Compared in its own unit, because the largest cannot be converted.
    type_ = stored.upper()
    second = {"timestamp_s": "59", "timestamp_ms": "59.999"}.get(stored, "59.999999")
    years = f"{type_} '0001-01-01' AND {type_} '9999-12-31 23:59:{second}'"
    return f"CASE WHEN {name} BETWEEN {years} THEN CAST({name} AS TIMESTAMP) END"
