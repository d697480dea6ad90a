"""Loading confidential tables into an in-process DuckDB under their declared columns.

The declaration rules, never the file: columns are taken by name and cast to the declared type,
integers are clamped to ±(2^31 - 1), rows without a privacy unit are left out, and a file that does
not fit is refused with its place, never a value. Once the engine is open it can read the declared
folders and nothing else: no network, no extensions, no other file, and its settings are locked.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from release.errors import DataError, SpecError
from release.spec.contract import OnViolation
from release.spec.declarations import ColumnType
from release.spec.domains import INTEGER_LIMIT
from release.spec.expressions import identifier, literal, row_expression
from release.spec.load import SpecFile
from release.tables.sources import (
    SQL_TYPES,
    Format,
    Source,
    check_relation,
    check_unchanged,
    database,
    dataset_of,
    fetched,
    find_sources,
    scan_sql,
    stamps_of,
)
from release.tables.sqlite import batches

_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # Every answer is ordered where it is read; keeping the order of rows would cost memory.
    "preserve_insertion_order": "false",
}


@dataclass(frozen=True)
class Engine:
    """What the engine may use: memory such as ``2GB`` (beyond it, the scratch folder), threads.

    ``spark`` is the master of a Spark cluster, such as ``local[2]``.
    """

    memory_limit: str | None = None
    threads: int | None = None
    spark: str | None = None


_CLAMPED = {"minimum", "maximum"}


@dataclass(frozen=True, repr=False)
class Quality:
    """Confidential: rows with a unit, units, repeated rows, and faults by rule and column."""

    table: str
    rows: int
    units: int
    repeated: int
    faults: dict[tuple[str, str], int]

    def __repr__(self) -> str:
        return "Quality(confidential)"


class Tables:
    """The confidential tables of one run, open in a locked DuckDB with a private scratch folder.

    Use it as a context manager; leaving it closes the engine and wipes the scratch folder, which is
    an empty one of its own unless given. Its representation shows nothing of the tables. Tables
    ``given`` as Arrow, one or more for each name, are copied; no file is looked at then.
    """

    def __init__(
        self,
        spec_file: SpecFile,
        engine: Engine | None = None,
        scratch: Path | None = None,
        given: Mapping[str, Iterable[pa.Table]] | None = None,
    ) -> None:
        self._spec_file = spec_file
        self._put: dict[str, pa.Table] = {}
        self._answers: dict[str, pa.Table] = {}
        sources = {} if given is not None else find_sources(spec_file)
        self._sources = sources
        self._stamps = stamps_of(sources)
        self._scratch = scratch or Path(tempfile.mkdtemp(prefix="dp-release-"))
        try:
            self.connection = _open(sources, self._scratch, engine or Engine())
            for name, source in sources.items():
                if source.format is Format.PARQUET and source.store is not None:
                    dataset = dataset_of(spec_file.spec.tables[name], source)
                    self.connection.register(f"store {name}", dataset)
                    self._load(name, source)
                else:
                    self._load(name, fetched(source, self._scratch))
            for name, batches_of in (given or {}).items():
                self._copy(name, iter(batches_of), self._selected(name)('"#incoming"'))
                self._enforce(name)
            for name in spec_file.spec.tables:
                self._widen(name)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return "Tables(confidential)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the engine and wipe the scratch folder."""
        if hasattr(self, "connection"):
            self.connection.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _load(self, name: str, source: Source) -> None:
        table = self._spec_file.spec.tables[name]
        if source.format is Format.DUCKDB:
            check_relation(name, table, self.connection)
        selected = self._selected(name)
        if source.format is Format.SQLITE:
            self._copy(name, batches(name, table, source.files[0]), selected('"#incoming"'))
            self._enforce(name)
            return
        scanned = selected(scan_sql(name, table, source))
        with _engine_errors(f"tables.{name}.path"):
            if source.format is Format.CSV:
                # Read once, for its rejected rows are known only then.
                self.connection.execute(f"CREATE TABLE {given_table(name)} AS {scanned}")
                self._refuse_rejected_rows(name, source)
            else:
                # Read where it lies, as often as it is asked for: a copy could fill the memory.
                self.connection.execute(f"CREATE VIEW {given_table(name)} AS {scanned}")
            self._enforce(name)

    def _selected(self, name: str) -> Callable[[str], str]:
        """How the declared columns of a table are read from what has them."""
        table = self._spec_file.spec.tables[name]
        unit_name = self._spec_file.spec.privacy.unit
        columns = ", ".join(
            # A clamped unit would be another unit's.
            f"{identifier(column) if column == unit_name else _cast(identifier(column), kind)} "
            f"AS {identifier(column)}"
            for column, kind in table.columns.items()
        )
        unit = identifier(unit_name)

        def selected(scan: str) -> str:
            return f"SELECT {columns} FROM {scan} WHERE {unit} IS NOT NULL"

        return selected

    def _copy(self, name: str, given: Iterator[pa.Table], selected: str) -> None:
        """Store what comes in batches; ``selected`` reads the declared columns of one."""
        make = f"CREATE TABLE {given_table(name)} AS {selected}"
        for batch in given:
            self.connection.register("#incoming", batch)
            with _engine_errors(f"tables.{name}.path"):
                self.connection.execute(make)
            self.connection.unregister("#incoming")
            make = f"INSERT INTO {given_table(name)} {selected}"

    def _enforce(self, name: str) -> None:
        """The view with the contract kept: values clamped, rows dropped, or the table refused."""
        spec, contract = self._spec_file.spec, self._spec_file.contracts.get(name)
        columns, kept = [], []
        for column in spec.tables[name].columns:
            rule = None if contract is None else contract.columns.get(column)
            if rule is None or column in spec.privacy.fixed:
                columns.append(identifier(column))
                continue
            rules = rule.kept_sql(column)
            clamps = rule.on_violation is OnViolation.CLAMP and column != spec.privacy.unit
            value = rule.clamped_sql(column) if clamps else identifier(column)
            columns.append(f"{value} AS {identifier(column)}")
            kept += [sql for r, sql in rules.items() if not clamps or r not in _CLAMPED]
            if (
                rule.on_violation is OnViolation.REFUSE
                and self.connection.execute(
                    f"SELECT 1 FROM {given_table(name)} WHERE NOT ({' AND '.join(rules.values())}) "
                    "LIMIT 1"
                ).fetchall()
            ):
                raise DataError(
                    f"tables.{name}.contract: values of {column!r} break their contract, which "
                    "says refuse; correct the table"
                )
        self.connection.execute(
            f"CREATE VIEW {raw_table(name)} AS SELECT {', '.join(columns)} "
            f"FROM {given_table(name)} WHERE {' AND '.join(kept) or 'true'}"
        )

    def quality(self, name: str) -> Quality:
        """What is wrong with a table as it was given. Confidential: for the curator only."""
        spec, contract = self._spec_file.spec, self._spec_file.contracts.get(name)
        given, unit = given_table(name), identifier(spec.privacy.unit)
        counted = {("rows", ""): "count(*)", ("units", ""): f"count(DISTINCT {unit})"}
        for column in spec.tables[name].columns:
            counted["missing", column] = f"count(*) - count({identifier(column)})"
            rule = None if contract is None else contract.columns.get(column)
            for broken, sql in {} if rule is None else rule.kept_sql(column).items():
                counted[broken, column] = f"count(*) FILTER (WHERE NOT ({sql}))"
        figures = ", ".join(
            f"{sql} AS {identifier(f'#{i}')}" for i, sql in enumerate(counted.values())
        )
        found = self.rows(f"SELECT {figures} FROM {given}", name).to_pylist()[0]
        numbers = dict(zip(counted, map(int, found.values()), strict=True))
        unique = [] if contract is None else [identifier(c) for c in contract.unique]
        repeated = 0
        if unique:
            repeats = self.rows(
                "SELECT coalesce(sum(n - 1), 0)::BIGINT AS n FROM (SELECT count(*) AS n "
                f"FROM {given} GROUP BY {', '.join(unique)})",
                name,
            )
            repeated = int(repeats.column("n")[0].as_py())
        faults = {key: n for key, n in numbers.items() if key[1] and n}
        return Quality(name, numbers["rows", ""], numbers["units", ""], repeated, faults)

    def check_unchanged(self) -> None:
        """See to it that all answers are of the same files.

        Raises:
            DataError: a file was changed or replaced since it was opened.
        """
        check_unchanged(self._sources, self._stamps)

    def _refuse_rejected_rows(self, name: str, source: Source) -> None:
        rows = self.connection.execute(
            "SELECT f.file_path, e.line, e.column_name, lower(e.error_type::VARCHAR), "
            "count(*) OVER () FROM reject_errors e JOIN reject_scans f USING (scan_id, file_id) "
            "ORDER BY ALL LIMIT 1"
        ).fetchall()
        if rows:
            path, line, column, kind, count = rows[0]
            where = f", column {column!r}" if column else ""
            more = f" (and {count - 1} more)" if count > 1 else ""
            wrong = {
                "cast": "does not have the declared type",
                "missing columns": "has too few columns",
                "too many columns": "has too many columns",
                "unquoted value": "has a quote that does not end",
            }.get(kind, "cannot be read")
            raise DataError(
                f"tables.{name}.path: {Path(path).name}, line {line}{where}: the row {wrong}{more};"
                " correct the file"
            )

    def _widen(self, name: str) -> None:
        """The view that queries read: declared, joined and derived columns of each row."""
        spec = self._spec_file.spec
        table, unit = spec.tables[name], identifier(spec.privacy.unit)
        source, columns = raw_table(name), [identifier(c) for c in table.columns]
        if table.join is not None:
            other = table.join.table
            source = f"{source} JOIN {raw_table(other)} USING ({unit})"
            columns += [identifier(c) for c in spec.tables[other].columns if identifier(c) != unit]
        known = {c for c in spec.table_columns(name) if c not in table.derive}
        for column, derived in table.derive.items():
            field = f"tables.{name}.derive.{column}.sql"
            parsed = row_expression(self.connection, field, derived.sql, known)
            self._refuse_fixed(field, name, parsed.columns)
            if column in spec.privacy.fixed and spec.privacy.attribute in parsed.columns:
                raise SpecError(
                    field,
                    f"{column!r} is fixed, but changes with the attribute "
                    f"{spec.privacy.attribute!r}; leave it out of privacy.fixed",
                )
            expression = parsed.sql
            # TRY: a row on which the expression fails has no value; failing would tell of the row.
            value = _cast(f"TRY(CAST({expression} AS {SQL_TYPES[derived.type]}))", derived.type)
            columns.append(f"{value} AS {identifier(column)}")
        with _spec_errors(f"tables.{name}"):
            self.connection.execute(
                f"CREATE VIEW {wide_table(name)} AS SELECT {', '.join(columns)} FROM {source}"
            )

    def _refuse_fixed(self, field: str, table: str, used: frozenset[str]) -> None:
        """A neighbor takes over fixed columns; what is computed from them would have to follow."""
        spec = self._spec_file.spec
        empirical = any(query.table == table and query.is_empirical for query in spec.queries)
        taken = sorted(used & set(spec.privacy.fixed))
        if empirical and taken:
            raise SpecError(
                field,
                f"{taken[0]!r} is fixed, and a query on the table has empirical differences; "
                "make it a key instead",
            )

    def condition(self, field: str, table: str, text: str | None, *, empirical: bool) -> str:
        """A spec's condition over ``table``, checked; a row on which it fails does not meet it.

        Raises:
            SpecError: the condition is not a Boolean expression over the table's columns.
        """
        if text is None:
            return "true"
        columns = self._spec_file.spec.table_columns(table)
        parsed = row_expression(self.connection, field, text, columns)
        if empirical:
            self._refuse_fixed(field, table, parsed.columns)
        expression = f"TRY({parsed.sql})"
        with _spec_errors(field):
            kind = self.connection.execute(
                f"SELECT typeof({expression}) FROM "
                f"(SELECT * FROM {wide_table(table)} LIMIT 0) RIGHT JOIN (SELECT 1) ON true"
            ).fetchall()[0][0]
        if kind != "BOOLEAN":
            raise SpecError(field, f"the condition is {kind}, not true or false; compare something")
        return expression

    def rows(self, sql: str, table: str) -> pa.Table:
        """The result of one of our own queries on ``table``, as Arrow."""
        with _engine_errors(f"tables.{table}"):
            return self.connection.sql(sql).to_arrow_table()

    def rows_once(self, sql: str, table: str) -> pa.Table:
        """As :meth:`rows`, for a question that several queries ask: answered once a run."""
        if sql not in self._answers:
            self._answers[sql] = self.rows(sql, table)
        return self._answers[sql]

    def run(self, sql: str) -> None:
        """Execute one of our own statements."""
        with _engine_errors("tables"):
            self.connection.execute(sql)

    def put(self, name: str, table: pa.Table) -> None:
        """Store a public table (key sets) beside the confidential ones; the last is kept."""
        if self._put.get(name) == table:
            return
        self._put[name] = table
        self.connection.register("#incoming", table)
        self.connection.execute(f'CREATE OR REPLACE TABLE {identifier(name)} AS FROM "#incoming"')
        self.connection.unregister("#incoming")


def given_table(name: str) -> str:
    """The SQL name of a table as it was given, under its declared types."""
    return identifier(f"given {name}")


def raw_table(name: str) -> str:
    """The SQL name of a table with its contract kept."""
    return identifier(f"raw {name}")


def wide_table(name: str) -> str:
    """The SQL name of a table as queries see it."""
    return identifier(f"wide {name}")


def _open(sources: dict[str, Source], scratch: Path, engine: Engine) -> duckdb.DuckDBPyConnection:
    given = {"memory_limit": engine.memory_limit, "threads": engine.threads}
    settings = {name: str(value) for name, value in given.items() if value is not None}
    try:
        connection = duckdb.connect(
            ":memory:", config={**_SETTINGS, "temp_directory": str(scratch), **settings}
        )
    except duckdb.Error as error:
        raise SpecError(
            "--memory-limit", f"{engine.memory_limit!r} is no size; write one such as 2GB"
        ) from error
    for name, source in sources.items():
        if source.format is Format.DUCKDB:
            path = literal(str(source.files[0]))
            with _engine_errors(f"tables.{name}.path"):
                connection.execute(f"ATTACH {path} AS {database(name)} (READ_ONLY)")
    folders = {folder for source in sources.values() for folder in source.folders}
    allowed = ", ".join(literal(f"{folder}/") for folder in sorted({*folders, scratch}))
    connection.execute(f"SET allowed_directories = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    # Its bar would tell how long a query took on whatever screen or log is there.
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _cast(expression: str, kind: ColumnType) -> str:
    if kind is ColumnType.INTEGER:
        clamped = f"greatest(least({expression}, {INTEGER_LIMIT}), {-INTEGER_LIMIT})"
        # greatest and least skip NULL, but a missing value must stay missing.
        return f"CASE WHEN {expression} IS NOT NULL THEN CAST({clamped} AS BIGINT) END"
    cast = f"CAST({expression} AS {SQL_TYPES[kind]})"
    if kind is ColumnType.NUMBER:
        # Not a number is missing. DuckDB believes the bounds in Parquet files, which leave it out,
        # and folds isnan(x) and x > 5 by them (duckdb/duckdb issue 25521): what one row is taken
        # for would hang on others. It knows no bounds of text.
        return f"CASE WHEN CAST({cast} AS VARCHAR) NOT LIKE '%nan%' THEN {cast} END"
    return cast


@contextmanager
def _engine_errors(field: str) -> Iterator[None]:
    """DuckDB's messages quote values, so only their class is passed on."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise DataError(f"{field}: not enough memory or scratch space to read the table") from error
    except duckdb.Error as error:
        raise DataError(f"{field}: the table cannot be read ({type(error).__name__})") from error


@contextmanager
def _spec_errors(field: str) -> Iterator[None]:
    """Binding looks at types only, so the message tells of the spec's text, not of the data."""
    try:
        yield
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ConversionException) as error:
        first = str(error).splitlines()[0].removeprefix("Binder Error: ")
        raise SpecError(field, f"does not fit the columns: {first}") from error
