"""Loading confidential tables into an in-process DuckDB under their declared columns.

The declaration rules, never the file: columns are taken by name, and every value has a meaning
under its declared type (:mod:`release.tables.normal`), so that no row can make loading fail. Rows
without a privacy unit are left out. A table that one query alone reads may be read in passing,
without a copy (:meth:`Tables.in_passing`). A file is refused for its schema alone. An open engine
can read its scratch folder and nothing else: no network, no extensions, and its settings are
locked.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from release.errors import DataError, SpecError
from release.spec.contracts.model import OnViolation
from release.spec.declarations import ColumnType
from release.spec.expressions import identifier, literal
from release.spec.expressions.parse import parse_expression
from release.spec.expressions.places import derived_tree, usable_columns
from release.spec.expressions.sql import row_sql
from release.spec.load import SpecFile
from release.tables.columns import number_column, numbers_of, repeated_hashes, text_column
from release.tables.formats.base import Incoming, Source
from release.tables.formats.duckdb_file import DuckDbFile, check_stored, database, relation_of
from release.tables.formats.parquet import Parquet, read_parquet
from release.tables.kept import text_of
from release.tables.lines import UNREADABLE
from release.tables.normal import (
    as_read,
    fault_counts,
    is_instant,
    normal_sql,
    within_limits,
)
from release.tables.schemas import (
    SQL_TYPES,
    check_relation,
)
from release.tables.sources import check_unchanged, fetched, find_sources, stamps_of

_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # Queries order what they read; keeping the order of rows would cost memory.
    "preserve_insertion_order": "false",
    # Cells are numbered from 0: up to 2^20 of them are counted in a table by their number.
    "perfect_ht_threshold": "20",
}


@dataclass(frozen=True)
class Engine:
    """The limits of the engine: memory such as ``2GB``, and threads.

    Beyond its memory it uses the scratch folder. ``spark`` is the master of a Spark cluster, such
    as ``local[2]``.
    """

    memory_limit: str | None = None
    threads: int | None = None
    spark: str | None = None


_AS_WRITTEN = {"disabled_optimizers": "join_order,build_side_probe_side"}
"""So that rows in passing are looked up in the key sets: the engine cannot count the rows of a
stream, takes it for the smaller side of a join, and would hold all of it."""

PASSING = '"#passing"'
"""The SQL name of the rows of a table that is read in passing."""

_MOST_HASHES = 10**8
"""Hashes of units that are held at most: 16 bytes each."""

_BATCH_ROWS = 2**20

_OUT_OF_MEMORY = "Out of Memory Error: "
"""How the text of an error begins that DuckDB's own type no longer tells."""

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


def without_core_files() -> None:
    """Let no crash of this process, or of those it starts, leave its memory in a file."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


class Tables:
    """The confidential tables of one run, open in a locked DuckDB with a private scratch folder.

    Use it as a context manager: leaving it closes the engine and removes the scratch folder, which
    is a new one by default. Its representation shows nothing of the tables. Arrow tables in
    ``batches_of``, one or more for each name, are copied; no file is read then.
    """

    def __init__(
        self,
        spec_file: SpecFile,
        engine: Engine | None = None,
        scratch: Path | None = None,
        batches_of: Mapping[str, Iterable[pa.Table]] | None = None,
    ) -> None:
        without_core_files()
        self._spec_file = spec_file
        self._in_place: dict[str, str] = {}
        self._instants: dict[tuple[str, str], str] = {}
        self._read_again: dict[str, Callable[[], Iterator[Incoming]]] = {}
        self._keys: set[str] = set()
        self._hashes: dict[str, NDArray[np.uint64] | None] = {}
        self._answers: dict[str, pa.Table] = {}
        self._uncopied: str | None = None
        sources = {} if batches_of is not None else find_sources(spec_file)
        self._scratch = scratch or Path(tempfile.mkdtemp(prefix="dp-release-"))
        try:
            sources = fetched(spec_file, sources, self._scratch)
            self._sources = sources
            # Taken before the first read, so that a later change cannot go unnoticed.
            self._stamps = stamps_of(sources)
            for name, source in sources.items():
                if isinstance(source.format, Parquet) and _is_read_once(spec_file):
                    self._uncopied = name
            more = {} if self._uncopied is None else _AS_WRITTEN
            self.connection = _open(sources, self._scratch, engine or Engine(), more)
            for name, source in sources.items():
                self._load(name, source)
            for name, incoming in (batches_of or {}).items():
                self._copy(name, incoming, are_normal=True)
            # A table may join any other one, so all are loaded first.
            for name in spec_file.spec.tables:
                if name != self._uncopied:
                    self._widen(name)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return "Tables(confidential)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the engine and remove the scratch folder."""
        if hasattr(self, "connection"):
            self.connection.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _load(self, name: str, source: Source) -> None:
        table = self._spec_file.spec.tables[name]
        if isinstance(source.format, DuckDbFile):
            relation = relation_of(name, table)
            check_stored(name, table, self.connection)
            check_relation(name, table.columns, self._stored(relation), "the relation")
            self._in_place[name] = relation
            with _engine_errors(f"tables.{name}.path"):
                self.connection.execute(
                    f"CREATE TABLE {given_table(name)} AS {self._normal(name, relation)}"
                )
            self._enforce(name)
            return
        self._read_again[name] = partial(source.format.read, name, table, source, self._scratch)
        if name != self._uncopied:
            self._copy(name, self._read_again[name]())

    def _copy_uncopied(self) -> None:
        """Copy a table that no statement has needed so far."""
        if self._uncopied is not None:
            name, self._uncopied = self._uncopied, None
            self._copy(name, self._read_again[name]())
            self._widen(name)

    def _stored(self, relation: str) -> dict[str, str]:
        """The engine's type of each column."""
        described = self.connection.sql(f"SELECT * FROM {relation} LIMIT 0")
        return {c: kind.id for c, kind in zip(described.columns, described.types, strict=True)}

    def _normal(self, name: str, relation: str) -> str:
        """The SQL of a table's rows under their declared types."""
        spec = self._spec_file.spec
        table, unit = spec.tables[name], spec.privacy.unit
        stored = self._stored(relation)
        for column in table.columns:
            if is_instant(column, stored):
                self._instants[name, column] = table.zones.get(column, "UTC")
        return normal_sql(relation, stored, table.columns, unit, zones=table.zones)

    def _copy(self, name: str, incoming: Iterable[Incoming], are_normal: bool = False) -> None:
        """Store a table that comes in batches, and enforce its contract."""
        statement = f"CREATE TABLE {given_table(name)} AS "
        for batch in incoming:
            with self._incoming(name, batch) as relation:
                # Every query reads the copy: the values of a row are found once a run.
                values = f"FROM {relation}" if are_normal else self._normal(name, relation)
                self.connection.execute(statement + values)
            statement = f"INSERT INTO {given_table(name)} "
        self._enforce(name)

    @contextmanager
    def _incoming(self, name: str, batch: Incoming) -> Iterator[str]:
        with _engine_errors(f"tables.{name}.path"):
            self.connection.register("#incoming", batch)
            yield '"#incoming"'
            self.connection.unregister("#incoming")

    def _enforce(self, name: str) -> None:
        """Create the view that satisfies the contract: values clamped, rows dropped, or refused."""
        spec, contract = self._spec_file.spec, self._spec_file.contracts.get(name)
        columns, conditions = [], []
        for column in spec.tables[name].columns:
            rule = None if contract is None else contract.columns.get(column)
            # A neighbor takes over fixed columns as they are: their rules are only reported.
            if rule is None or column in spec.privacy.fixed:
                columns.append(identifier(column))
                continue
            rules = rule.kept_sql(column)
            if rule.on_violation is OnViolation.REFUSE:
                self._refuse_violations(name, column, rules)
            clamps = rule.on_violation is OnViolation.CLAMP and column != spec.privacy.unit
            value = rule.clamped_sql(column) if clamps else identifier(column)
            columns.append(f"{value} AS {identifier(column)}")
            for bound, sql in rules.items():
                if not clamps or bound not in _CLAMPED:
                    conditions.append(sql)
        self.connection.execute(
            f"CREATE VIEW {raw_table(name)} AS SELECT {', '.join(columns)} "
            f"FROM {given_table(name)} WHERE {' AND '.join(conditions) or 'true'}"
        )

    def _refuse_violations(self, name: str, column: str, rules: dict[str, str]) -> None:
        condition = " AND ".join(rules.values())
        violation = f"SELECT 1 FROM {given_table(name)} WHERE NOT ({condition}) LIMIT 1"
        if self.connection.execute(violation).fetchall():
            raise DataError(
                f"tables.{name}.contract: values of {column!r} break their contract, which "
                "says refuse; correct the table"
            )

    def quality(self, name: str) -> Quality:
        """The faults of a table before its contract. Confidential: for the curator only."""
        spec, contract = self._spec_file.spec, self._spec_file.contracts.get(name)
        unit = identifier(spec.privacy.unit)
        counts = {("rows", ""): "count(*)", ("units", ""): f"count(DISTINCT {unit})"}
        for column in spec.tables[name].columns:
            counts["missing", column] = f"count(*) - count({identifier(column)})"
            rule = None if contract is None else contract.columns.get(column)
            for broken, sql in {} if rule is None else rule.kept_sql(column).items():
                counts[broken, column] = f"count(*) FILTER (WHERE NOT ({sql}))"
        # As a list, because the columns of a result need names of their own.
        query = f"SELECT [{', '.join(counts.values())}] AS n FROM {given_table(name)}"
        numbers = dict(zip(counts, self.rows(query, name).column("n")[0].as_py(), strict=True))
        total, units = numbers.pop(("rows", "")), numbers.pop(("units", ""))
        numbers = self._left_out(name) | numbers
        faults = {key: number for key, number in numbers.items() if number}
        unique = [] if contract is None else contract.unique
        # A contract may be about more columns than a spec reads.
        if not set(unique) <= set(spec.tables[name].columns):
            unique = []
        return Quality(name, total, units, self._repeated(name, unique), faults)

    def zones(self, name: str) -> dict[str, str]:
        """The columns of a table that hold instants, with the zone in whose time they are read.

        By the types of its files alone; a text may be an instant too.
        """
        self._copy_uncopied()
        return {column: zone for (table, column), zone in self._instants.items() if table == name}

    def set_aside(self, name: str) -> Counter[tuple[str, str]]:
        """As :meth:`quality`, the rows that no query sees, and values made missing. Confidential.

        Those that the contract drops have the rule ``contract``.
        """
        found = self._left_out(name)
        if name not in self._spec_file.contracts:
            return found
        given, kept = given_table(name), raw_table(name)
        query = f"SELECT (SELECT count(*) FROM {given}) - (SELECT count(*) FROM {kept}) AS n"
        found["contract", ""] += int(self.rows(query, name).column("n")[0].as_py())
        return found

    def _left_out(self, name: str) -> Counter[tuple[str, str]]:
        """How many rows are left out and values made missing, by rule and column."""
        # Read once more: a run must not pay for it, nor its time depend on it.
        faults: Counter[tuple[str, str]] = Counter()
        if name in self._in_place:
            faults += self._left_out_of(name, self._in_place[name])
        for batch in self._read_again[name]() if name in self._read_again else ():
            for entry, count in (batch.schema.metadata or {}).items():
                if entry.startswith(UNREADABLE):
                    cause = entry.removeprefix(UNREADABLE).decode()
                    faults["unreadable line", cause] += int(count)
            with self._incoming(name, batch) as relation:
                faults += self._left_out_of(name, relation)
        return faults

    def _left_out_of(self, name: str, relation: str) -> Counter[tuple[str, str]]:
        table, unit = self._spec_file.spec.tables[name], self._spec_file.spec.privacy.unit
        is_csv = name in self._sources and self._sources[name].format.is_csv
        stored = self._stored(relation)
        counts = fault_counts(stored, table.columns, unit, is_csv=is_csv, zones=table.zones)
        # As a list, because the columns of a result need names of their own.
        rows = as_read(relation, stored, table.columns)
        query = f"SELECT [{', '.join(counts.values())}] AS n FROM ({rows})"
        # Not by ``rows``: that would copy a table which was read in passing, within this reading.
        numbers = self._answered(query, name).column("n")[0].as_py()
        return Counter(dict(zip(counts, numbers, strict=True)))

    def _repeated(self, name: str, unique: list[str]) -> int:
        """The number of rows that repeat the values of ``unique`` columns of an earlier row."""
        if not unique:
            return 0
        columns = ", ".join(map(identifier, unique))
        groups = f"SELECT count(*) AS n FROM {given_table(name)} GROUP BY {columns}"
        query = f"SELECT coalesce(sum(n - 1), 0)::BIGINT AS n FROM ({groups})"
        return int(self.rows(query, name).column("n")[0].as_py())

    def check_unchanged(self) -> None:
        """Check that all answers were computed from the same files.

        Raises:
            DataError: a file was changed or replaced since it was opened.
        """
        check_unchanged(self._sources, self._stamps)

    def _widen(self, name: str) -> None:
        """Create the view that queries read: declared, joined and derived columns of each row."""
        spec = self._spec_file.spec
        table, unit = spec.tables[name], identifier(spec.privacy.unit)
        source, columns = raw_table(name), list(map(identifier, table.columns))
        if table.join is not None:
            joined = table.join.table
            partners = raw_table(joined)
            if not table.join.many and self._has_several(partners):
                partners = self._one_partner(joined, name)
            source = f"{source} JOIN {partners} AS partners USING ({unit})"
            names = map(identifier, spec.tables[joined].columns)
            columns += [name for name in names if name != unit]
        for column, derived in table.derive.items():
            tree = derived_tree(spec, name, column)
            value = _cast(row_sql(tree, usable_columns(spec, name)), derived.type)
            columns.append(f"{value} AS {identifier(column)}")
        with _spec_errors(f"tables.{name}"):
            self.connection.execute(
                f"CREATE VIEW {wide_table(name)} AS SELECT {', '.join(columns)} FROM {source}"
            )

    def _has_several(self, relation: str) -> bool:
        """Whether some unit has several rows."""
        unit = identifier(self._spec_file.spec.privacy.unit)
        query = f"SELECT count(*) > count(DISTINCT {unit}) AS n FROM {relation}"
        return bool(self.connection.execute(query).fetchall()[0][0])

    def _one_partner(self, name: str, table: str) -> str:
        """The rows of a table, one of each unit: that of the least hash, as bounds on rows have it.

        Where a query of ``table`` measures copies of units, the text of a row names neither its
        unit nor its fixed part, so that a copy keeps the same row. Rows that are equal in it are
        ordered by all that they have.
        """
        spec = self._spec_file.spec
        columns, unit = spec.tables[name].columns, identifier(spec.privacy.unit)
        has_copies = any(query.is_empirical and query.table == table for query in spec.queries)
        text = text_of(self._spec_file, columns, is_empirical=has_copies)
        whole = text_of(self._spec_file, columns)
        return (
            f"(SELECT * FROM {raw_table(name)} AS rows QUALIFY row_number() "
            f"OVER (PARTITION BY {unit} ORDER BY sha256({text}), {whole}) = 1)"
        )

    def condition(self, field: str, table: str, text: str | None) -> str:
        """The SQL of a spec's condition over ``table``; a row where it is missing does not meet it.

        Raises:
            SpecError: the condition is not a Boolean expression over the table's columns.
        """
        if text is None:
            return "true"
        columns = self._spec_file.spec.table_columns(table)
        return row_sql(parse_expression(field, text, columns), columns)

    def rows(self, sql: str, table: str) -> pa.Table:
        """The result of a query of ours on ``table``. Confidential."""
        self._copy_uncopied()
        return self._answered(sql, table)

    def _answered(self, sql: str, table: str) -> pa.Table:
        with _engine_errors(f"tables.{table}"):
            return self.connection.sql(sql).to_arrow_table()

    def batches(self, sql: str, table: str) -> Iterator[pa.RecordBatch]:
        """As :meth:`rows`, in batches while the query runs. No other one may run meanwhile."""
        self._copy_uncopied()
        with _engine_errors(f"tables.{table}"):
            yield from self.connection.sql(sql).to_arrow_reader(_BATCH_ROWS)

    def rows_once(self, sql: str, table: str) -> pa.Table:
        """As :meth:`rows`, for SQL that several queries share: computed once a run."""
        if sql not in self._answers:
            self._answers[sql] = self.rows(sql, table)
        return self._answers[sql]

    def in_passing(
        self, table: str, keys: Mapping[str, Sequence[str]], read: str, counted: str
    ) -> pa.Table | None:
        """The result of ``counted``, if no two rows that ``read`` selects share a ``#hash``.

        ``read`` selects from :data:`PASSING`, the rows of a table that is not copied, and has the
        hash of each row's unit as ``#hash``; ``counted`` selects from ``#passed`` what it selected.
        Strings of which ``keys`` has the key set have their :func:`number_of` beside them.
        None where two hashes are equal, so that some unit may have several rows, or where the table
        is copied. Confidential. Cost: one reading of the table, and of its rows only what ``read``
        selects is held.
        """
        if table != self._uncopied:
            return None
        spec, declared = self._spec_file.spec, self._spec_file.spec.tables[table]
        columns = {}
        for column, kind in declared.columns.items():
            # A statement cannot read what it does not name; without the unit no row is left out.
            if identifier(column) in read or column == spec.privacy.unit:
                columns[column] = kind
        readers = list(read_parquet(table, declared, self._sources[table], keys, columns))
        # Files that store their columns in different ways are copied first.
        if len(readers) > 1:
            return None
        with self._incoming(table, readers[0]) as relation:
            stored, unit = self._stored(relation), spec.privacy.unit
            normal = normal_sql(
                relation, stored, columns, unit, in_passing=True, zones=declared.zones
            )
            self.connection.execute(f"CREATE TEMP VIEW {PASSING} AS {normal}")
            self.connection.execute(f'CREATE TABLE "#passed" AS {read}')
            self.connection.execute(f"DROP VIEW {PASSING}")
        with _engine_errors(f"tables.{table}"):
            select = self.connection.sql
            found = None
            if not self._has_repeated_hashes('"#passed"'):
                found = select(counted).to_arrow_table()
            self.connection.execute('DROP TABLE "#passed"')
        return found

    def _has_repeated_hashes(self, relation: str) -> bool:
        """Whether two rows share a ``#hash``."""
        repeated = self._more_than_once(f'SELECT "#hash" FROM {relation}')
        if repeated is not None:
            return repeated.size > 0
        groups = f'SELECT 1 FROM {relation} GROUP BY "#hash" HAVING count(*) > 1 LIMIT 1'
        return bool(self.connection.execute(groups).fetchall())

    def has_single_rows(self, table: str) -> bool:
        """Whether no unit has two rows in ``table`` as queries see it. Confidential.

        Cost: a hash of each row's unit, in memory. It is False too where two units share a hash,
        and of a table with very many rows: then another statement has to tell.
        """
        repeated = self._repeated_hashes(table)
        return repeated is not None and not repeated.size

    def repeated_units(self, table: str) -> str:
        """The SQL name of a table with the ``#hash`` of each unit with several rows. Confidential.

        A unit with one row may share such a hash. Cost: as :meth:`has_single_rows`; of a table with
        very many rows a grouping.
        """
        name = identifier(f"#repeated {table}")
        hashes = self._repeated_hashes(table)
        if hashes is None:
            self.run(
                f'CREATE TABLE IF NOT EXISTS {name} AS SELECT {self._hash} AS "#hash" '
                f"FROM {wide_table(table)} GROUP BY ALL HAVING count(*) > 1"
            )
        else:
            incoming = pa.table({"#hash": number_column(hashes, pa.uint64())})
            self.connection.register("#incoming", incoming)
            self.run(f'CREATE TABLE IF NOT EXISTS {name} AS SELECT * FROM "#incoming"')
            self.connection.unregister("#incoming")
        return name

    def _repeated_hashes(self, table: str) -> NDArray[np.uint64] | None:
        """The hash of each unit with several rows; None of a table with very many rows."""
        if table not in self._hashes:
            self._copy_uncopied()
            with _engine_errors(f"tables.{table}"):
                select = f"SELECT {self._hash} FROM {wide_table(table)}"
                self._hashes[table] = self._more_than_once(select)
        return self._hashes[table]

    def _more_than_once(self, select: str) -> NDArray[np.uint64] | None:
        """The hashes that a statement selects more than once; None where it selects very many."""
        # One more than will do, so that more rows can be told.
        hashes = (
            self.connection.sql(f"{select} LIMIT {_MOST_HASHES + 1}").to_arrow_table().column(0)
        )
        if len(hashes) > _MOST_HASHES:
            return None
        return repeated_hashes(map(numbers_of, hashes.chunks))

    @property
    def _hash(self) -> str:
        return f"hash({identifier(self._spec_file.spec.privacy.unit)})"

    def run(self, sql: str) -> None:
        """Execute a statement of ours."""
        self._copy_uncopied()
        with _engine_errors("tables"):
            self.connection.execute(sql)

    def put_keys(self, column: str, keys: Sequence[str]) -> str:
        """The SQL name of a public key set beside the confidential tables, put there once.

        ``#integer`` is the integer that has the text ``#key``, where one has.
        """
        table = identifier(f"#keys {column}")
        if column not in self._keys:
            numbers = number_column(range(len(keys)), pa.int64())
            incoming = pa.table({"#key": text_column(keys), "#number": numbers})
            self.connection.register("#incoming", incoming)
            integer = 'TRY_CAST("#key" AS BIGINT)'
            self.connection.execute(
                f'CREATE TABLE {table} AS SELECT *, CASE WHEN CAST({integer} AS VARCHAR) = "#key" '
                f'THEN {integer} END AS "#integer" FROM "#incoming"'
            )
            self.connection.unregister("#incoming")
            self._keys.add(column)
        return table


def given_table(name: str) -> str:
    """The SQL name of a table under its declared types, before its contract."""
    return identifier(f"given {name}")


def raw_table(name: str) -> str:
    """The SQL name of a table that satisfies its contract."""
    return identifier(f"raw {name}")


def wide_table(name: str) -> str:
    """The SQL name of a table as queries see it."""
    return identifier(f"wide {name}")


def _is_read_once(spec_file: SpecFile) -> bool:
    """Whether one reading of the table may be all that a run needs, as the spec alone says.

    One query of one row a unit reads it, as it is stored.
    """
    spec = spec_file.spec
    if len(spec.tables) != 1 or len(spec.queries) != 1 or spec.tabulations or spec_file.contracts:
        return False
    (table,) = spec.tables.values()
    is_plain = table.join is None and not table.derive and not spec.queries[0].runs_again
    return is_plain and spec.rows_per_unit(spec.queries[0]) == 1


def _open(
    sources: dict[str, Source], scratch: Path, engine: Engine, more: Mapping[str, str]
) -> duckdb.DuckDBPyConnection:
    settings: dict[str, Any] = {**_SETTINGS, **more, "temp_directory": str(scratch)}
    for name in ("memory_limit", "threads"):
        if (limit := getattr(engine, name)) is not None:
            settings[name] = str(limit)
    try:
        connection = duckdb.connect(":memory:", config=settings)
    except duckdb.Error as error:
        raise SpecError(
            "--memory-limit", f"{engine.memory_limit!r} is no size; write one such as 2GB"
        ) from error
    folders = {scratch}
    for name, source in sources.items():
        if isinstance(source.format, DuckDbFile):
            path = literal(str(source.files[0]))
            folders.add(source.files[0].parent)
            with _engine_errors(f"tables.{name}.path"):
                connection.execute(f"ATTACH {path} AS {database(name)} (READ_ONLY)")
    allowed = ", ".join(literal(f"{folder}/") for folder in sorted(folders))
    # Attaching needs external access, so it is closed only now; the order of these matters.
    connection.execute(f"SET allowed_directories = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    # A progress bar would reveal on the screen, or in a log, how long a query took.
    # In a notebook without ipywidgets it is off, and DuckDB refuses to be told so.
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() != (False,):
        connection.execute("SET enable_progress_bar = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _cast(expression: str, kind: ColumnType) -> str:
    if kind is ColumnType.INTEGER:
        return within_limits(f"CAST({expression} AS BIGINT)")
    cast = f"CAST({expression} AS {SQL_TYPES[kind]})"
    if kind is ColumnType.NUMBER:
        # NaN counts as missing. DuckDB trusts the bounds in Parquet files, which omit NaN, and
        # folds isnan(x) and x > 5 by them (duckdb/duckdb issue 25521): the value of one row would
        # depend on others. Text has no such bounds.
        return f"CASE WHEN CAST({cast} AS VARCHAR) NOT LIKE '%nan%' THEN {cast} END"
    return cast


@contextmanager
def _engine_errors(field: str) -> Iterator[None]:
    """Translate the engine's errors: their messages quote values, and their types may tell one."""
    try:
        yield
    # An error in the midst of a result reaches Arrow as an OSError.
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        # Only the engine's own text begins so: what a row or a spec says comes after another type.
        if isinstance(error, duckdb.OutOfMemoryException) or str(error).startswith(_OUT_OF_MEMORY):
            problem = "not enough memory or scratch space to read the table"
        else:
            problem = "the table cannot be read"
        raise DataError(f"{field}: {problem}") from error


@contextmanager
def _spec_errors(field: str) -> Iterator[None]:
    """Translate errors of binding, whose messages quote the spec: binding reads no data."""
    try:
        yield
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ConversionException) as error:
        first = str(error).splitlines()[0].removeprefix("Binder Error: ")
        raise SpecError(field, f"does not fit the columns: {first}") from error
