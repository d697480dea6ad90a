"""Tables that no single machine holds: DuckDB in the tasks of a Spark cluster.

Every statement up to the profiles looks at the rows of one unit at a time. So Spark brings the rows
of each unit together, in *buckets* by a hash of the unit, and each bucket is read by the same
statements in a DuckDB of its own. The tasks return the distinct profiles of each bucket, and
:func:`release.queries.profiles.merged` puts them together; the counts of tabulations are added up.
There is one dialect, and a condition means the same everywhere: the integers are equal by
construction, and a test compares every kind.

Cost: each declared column of each table goes over the network once for all queries and once for
each tabulation, as compressed Arrow batches; this package has to be installed where the tasks run.
Row groups of Parquet files are read where the tasks run; other formats are for one machine.

Confidential rows lie in the memory and the shuffle files of the cluster's workers. A cluster that
is not this machine has to be declared: ``engine: {backend: spark, cluster: inside}``. An error
leaves a task as a type and, where the message is ours, one line.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from release.errors import BudgetError, DataError, ReleaseError, SpecError
from release.exact.domain import Codes
from release.queries.base import MOST_UNITS, Rerun, RerunQuery
from release.queries.profiles import integers, merged, read_profiles
from release.spec.declarations import Table
from release.spec.expressions import identifier
from release.spec.load import SpecFile
from release.spec.query import Query
from release.tables.columns import instant_of, number_column
from release.tables.duckdb import Engine, Tables, given_table, wide_table, without_core_files
from release.tables.formats.base import Source
from release.tables.formats.parquet import Parquet, datasets_of, instants_in
from release.tables.formats.postgresql import PostgreSql
from release.tables.normal import normal_sql
from release.tables.schemas import ARROW_TYPES
from release.tables.sources import check_unchanged, fetched, find_sources, stamps_of
from release.tabulations.estimate.structure import Margin
from release.tabulations.measure.measuring import read_counts
from release.tabulations.spec.opened import OpenTabulation

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyspark import SparkContext

_ROWS_PER_BUCKET = 2**21
_MOST_BUCKETS = 20_000
"""Beyond this the buckets grow: more tasks would keep the driver busy with scheduling."""

_BATCH_ROWS = 2**19

_QUIET = Path(__file__).with_name("quiet.properties")
"""Settings of a log that says nothing: Spark's would show times, sizes and, of faults, values."""

_EXECUTOR_MEMORY = 1024
"""MiB of an executor of a cluster, where ``--memory-limit`` does not say another size."""

_WAIT_SECONDS = 120
"""How long a cluster may take to give the first executor."""


@dataclass(frozen=True)
class Fragment:
    """One row group of a file of a table, by the number of the file."""

    table: str
    number: int
    group: int


def is_local(master: str) -> bool:
    """Whether a Spark master is this machine."""
    return master == "local" or master.startswith("local[")


class SparkTables:
    """Confidential tables on a Spark cluster; as :class:`release.queries.engines.base.Loaded`.

    All queries are read in one job, when the first is asked for. Each tabulation is counted in a
    job of its own, because which cells to count is known only then. Spark stops when this is
    closed, but for one that :func:`one_spark` keeps.

    Raises:
        SpecError: PySpark is missing, the master cannot be reached, a table is not Parquet, or the
            cluster is not declared to be inside.
    """

    def __init__(
        self, spec_file: SpecFile, master: str, engine: Engine | None, scratch: Path | None
    ) -> None:
        without_core_files()
        declared = spec_file.spec.engine
        if not is_local(master) and (declared is None or declared.cluster != "inside"):
            raise SpecError(
                "engine.cluster",
                "rows would leave this machine; if the cluster may hold them, write "
                "engine: {backend: spark, cluster: inside}",
            )
        self._spec_file, self._engine = spec_file, engine or Engine()
        self._read: dict[str, pa.Table] | None = None
        self._base: dict[str, dict[str, list[bytes]]] = {}
        sources = find_sources(spec_file)
        for name, source in sources.items():
            # A copy of a server's table lies on this machine, where workers of others do not look.
            is_copied_here = isinstance(source.format, PostgreSql) and is_local(master)
            if not isinstance(source.format, Parquet) and not is_copied_here:
                raise SpecError(f"tables.{name}.path", "Spark reads Parquet; convert the table")
        self._scratch = scratch or Path(tempfile.mkdtemp(prefix="dp-release-"))
        try:
            self._sources = fetched(spec_file, sources, self._scratch)
            self._stamps = stamps_of(self._sources)
            self._check_statements()
            shared = _SHARED.get()
            self._owns_spark = shared is None or shared.master != master
            if shared is None or shared.master != master:
                self._context = _start(master, self._scratch, self._engine)
            else:
                self._context = shared
        except BaseException:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise

    def __repr__(self) -> str:
        return "SparkTables(confidential)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop a Spark of its own, and wipe the scratch folder."""
        if self._owns_spark:
            _stop(self._context)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def profiles(self, query: Query) -> pa.Table:
        """As :class:`release.queries.engines.base.Loaded` has it."""
        if self._read is None:
            self._read = self._gathered(self._run(read_bucket))
        return self._read[query.name]

    def counts(self, opened: OpenTabulation, cells: Mapping[int, Margin]) -> dict[int, Codes]:
        """As :class:`release.queries.engines.base.Loaded` has it: a job of its own."""
        count = partial(count_bucket, opened=opened, cells=dict(cells))
        return added(self._run(count), opened, cells)

    def rerun(self, query: RerunQuery) -> Rerun:
        """The answers of a statement and of every neighbor, on this machine: the table is small."""
        if self._read is None:
            self._read = self._gathered(self._run(read_bucket))
        blobs = self._base[query.name]
        rows = {}
        for name in self._sources:
            rows[name] = [self._empty(name), *map(_unpacked, blobs.get(name, ()))]
        with Tables(self._spec_file, self._engine, self._scratch / "rerun", rows) as tables:
            return query.rerun(tables, self._spec_file)

    def check_unchanged(self) -> None:
        """As :class:`release.queries.engines.base.Loaded` has it."""
        check_unchanged(self._sources, self._stamps)

    def _empty(self, name: str) -> pa.Table:
        return schema_of(self._spec_file.spec.tables[name]).empty_table()

    def _check_statements(self) -> None:
        """Refuse here what is wrong with the spec's own SQL, on tables without rows."""
        # Before Spark starts: else every task would fail, and only one error would come back.
        empty = {name: [self._empty(name)] for name in self._sources}
        with Tables(self._spec_file, self._engine, self._scratch / "empty", empty) as tables:
            for query in self._spec_file.spec.released:
                if not isinstance(query, RerunQuery):
                    read_profiles(tables, self._spec_file, query)
            for opened in self._spec_file.tabulations:
                read_counts(tables, self._spec_file, opened, {})

    def _run(self, read_one: ReadBucket) -> list[TaskResult]:
        """Read every bucket: one shuffle, one task a bucket.

        Results are sorted. Of several errors always the same is raised.
        """
        spec_file, sources = self._spec_file, self._sources
        fragments: list[Fragment] = []
        rows = 0
        for name, source in sources.items():
            datasets = datasets_of(name, spec_file.spec.tables[name], source)
            for number, counts in enumerate(rows_by_group(datasets)):
                fragments += map(partial(Fragment, name, number), range(len(counts)))
                rows += sum(counts)
        parallel = self._context.defaultParallelism
        buckets = min(_MOST_BUCKETS, max(parallel, -(-rows // _ROWS_PER_BUCKET)))
        # A task must not hold this object: its Spark context cannot be sent to a worker.
        engine = self._engine

        def split(part: Iterable[Fragment]) -> Iterator[tuple[int, tuple[str, bytes]]]:
            yield from split_rows(part, spec_file, sources, buckets)

        def read(part: Iterable[tuple[int, tuple[str, bytes]]]) -> Iterator[TaskResult]:
            yield from read_one(part, spec_file, engine)

        slices = max(1, min(len(fragments), 8 * parallel))
        try:
            results: list[TaskResult] = (
                self._context.parallelize(fragments, slices)
                .mapPartitions(_guarded(split, lambda error: (_BROKEN, error)))
                .partitionBy(buckets, partial(max, 0))
                .mapPartitions(_guarded(read, lambda error: error))
                .collect()
            )
        except ReleaseError:
            raise
        except Exception as error:
            # ``from None``: Spark's message holds the traceback of a task, which quotes values.
            raise DataError(f"tables: {_reason(error)}") from None
        results.sort(key=lambda result: result[:2])
        for label, name, content in results:
            if label == "error":
                raise _ERRORS.get(name, DataError)(content.decode("utf-8"))
        return results

    def _gathered(self, results: list[TaskResult]) -> dict[str, pa.Table]:
        batches = defaultdict(list)
        self._base = defaultdict(lambda: defaultdict(list))
        for label, name, content in results:
            if label == "profiles":
                batches[name].append(_unpacked(content))
            else:
                query_name, table = name.split("/")
                self._base[query_name][table].append(content)
        profiles = {}
        for query in self._spec_file.spec.released:
            if not isinstance(query, RerunQuery):
                profiles[query.name] = merged(batches[query.name])
        return profiles


TaskResult = tuple[str, str, bytes]
"""A label, a name and content.

Profiles of a query, rows of a table for a statement, counts of a level, or an error.
"""

ShuffledRows: TypeAlias = Iterable[tuple[int, tuple[str, bytes]]]
"""A bucket, and some normal rows of a table in it."""

ReadBucket: TypeAlias = Callable[[ShuffledRows, SpecFile, Engine], Iterator[TaskResult]]
"""What a task does with the rows of a bucket."""

_BROKEN = -1
"""The bucket of an error that occurred before the shuffle."""


_ERRORS: dict[str, Callable[[str], ReleaseError]] = {
    "SpecError": partial(SpecError, ""),
    "DataError": DataError,
    "BudgetError": BudgetError,
}


def _guarded(
    task: Callable[[Iterable[Any]], Iterator[Any]], wrapped: Callable[[TaskResult], object]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A task whose exceptions are results: a traceback would quote values in Spark's logs."""

    def guarded(part: Iterable[Any]) -> Iterator[Any]:
        try:
            yield from task(part)
        except Exception as error:
            # Only messages of ours are free of values; even the type of another could tell one.
            ours = isinstance(error, ReleaseError)
            kind = type(error).__name__ if ours else "DataError"
            text = str(error) if ours else "tables: a task could not read them"
            yield wrapped(("error", kind, text.encode()))

    return guarded


def _reason(error: Exception) -> str:
    """Why a job ended, of two reasons: its message is looked at for one word and never shown."""
    if "ExecutorLostFailure" in str(error):
        return "workers of the cluster died again and again; see why, then run it again"
    return "Spark could not read them"


def schema_of(table: Table) -> pa.Schema:
    """The Arrow schema of a table whose values are normal."""
    return pa.schema([(column, ARROW_TYPES[kind]) for column, kind in table.columns.items()])


def rows_by_group(datasets: Sequence[ds.Dataset]) -> Iterator[list[int]]:
    """The rows of each row group of each file."""
    for dataset in datasets:
        for fragment in dataset.get_fragments():
            yield [group.num_rows for group in fragment.row_groups]


def _group(
    table: Table, datasets: Sequence[ds.Dataset], number: int, group: int
) -> Iterator[pa.Table]:
    """One row group of one file, in batches of values as they are stored."""
    files = [(file, dataset.schema) for dataset in datasets for file in dataset.get_fragments()]
    fragment, schema = files[number]
    rows = fragment.subset(row_group_ids=[group])
    for batch in rows.to_batches(schema=schema, batch_size=_BATCH_ROWS):
        read = pa.Table.from_batches([batch])
        for column in instants_in(schema, table):
            read = read.append_column(instant_of(column), pa.repeat(True, read.num_rows))
        yield read


def split_rows(
    fragments: Iterable[Fragment], spec_file: SpecFile, sources: dict[str, Source], buckets: int
) -> Iterator[tuple[int, tuple[str, bytes]]]:
    """The normal rows of some fragments, by bucket; those without a unit are left out."""
    tables, unit = spec_file.spec.tables, spec_file.spec.privacy.unit
    opened: dict[str, list[ds.Dataset]] = {}
    # A hash of the unit as text: equal units of two tables may be declared as different types.
    bucket = f"(hash(CAST({identifier(unit)} AS VARCHAR)) % {buckets})::INTEGER"
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        # Spark runs one task for each core already.
        connection.execute("SET threads = 1")
        for fragment in fragments:
            name = fragment.table
            if name not in opened:
                opened[name] = datasets_of(name, tables[name], sources[name])
            schema = schema_of(tables[name])
            for rows in _group(tables[name], opened[name], fragment.number, fragment.group):
                connection.register("#rows", rows)
                described = connection.sql('SELECT * FROM "#rows" LIMIT 0')
                kinds = [kind.id for kind in described.types]
                stored = dict(zip(described.columns, kinds, strict=True))
                normal = normal_sql(
                    '"#rows"', stored, tables[name].columns, unit, zones=tables[name].zones
                )
                ordered = connection.sql(
                    f'SELECT *, {bucket} AS "#bucket" FROM ({normal}) ORDER BY "#bucket"'
                ).to_arrow_table()
                connection.unregister("#rows")
                numbers = ordered.column("#bucket").to_numpy()
                ordered = ordered.drop_columns("#bucket").cast(schema)
                starts = [0, *((numbers[1:] != numbers[:-1]).nonzero()[0] + 1), len(numbers)]
                for start, stop in pairwise(starts):
                    if stop > start:
                        part = ordered.slice(start, stop - start)
                        yield int(numbers[start]), (name, _packed(part))


def read_bucket(rows: ShuffledRows, spec_file: SpecFile, engine: Engine) -> Iterator[TaskResult]:
    """Every query of the spec on the rows of a bucket."""

    def read(tables: Tables) -> Iterator[TaskResult]:
        for query in spec_file.spec.released:
            if isinstance(query, RerunQuery):
                yield from _base_of(tables, spec_file, query)
            else:
                yield "profiles", query.name, _packed(read_profiles(tables, spec_file, query))

    yield from _on_bucket(rows, spec_file, engine, read)


def count_bucket(
    rows: ShuffledRows,
    spec_file: SpecFile,
    engine: Engine,
    opened: OpenTabulation,
    cells: Mapping[int, Margin],
) -> Iterator[TaskResult]:
    """The counts of a tabulation in a bucket, level by level; cells without a unit are left out."""

    def read(tables: Tables) -> Iterator[TaskResult]:
        for level, counts in read_counts(tables, spec_file, opened, cells).items():
            flat = counts.reshape(-1)
            places = np.flatnonzero(flat)
            columns = {"place": places, "count": flat[places]}
            arrays = {name: number_column(own, pa.int64()) for name, own in columns.items()}
            yield "counts", str(level), _packed(pa.table(arrays))

    yield from _on_bucket(rows, spec_file, engine, read)


def added(
    results: Iterable[TaskResult], opened: OpenTabulation, cells: Mapping[int, Margin]
) -> dict[int, Codes]:
    """The counts of disjoint groups of units as those of all of them. Confidential."""
    counts = {}
    for level, margin in cells.items():
        counts[level] = np.zeros((opened.named.areas.size(level), margin.cells), dtype=np.int64)
    for _, level_text, content in results:
        part = _unpacked(content)
        flat = counts[int(level_text)].reshape(-1)
        # A place stands once in each part.
        flat[integers(part, "place")] += integers(part, "count")
    return counts


def _on_bucket(
    rows: ShuffledRows,
    spec_file: SpecFile,
    engine: Engine,
    read: Callable[[Tables], Iterator[TaskResult]],
) -> Iterator[TaskResult]:
    """What ``read`` finds in the rows of a bucket; nothing where it has none."""
    schemas = {name: schema_of(table) for name, table in spec_file.spec.tables.items()}
    packed: dict[str, list[bytes]] = {name: [] for name in schemas}
    for bucket, item in rows:
        if bucket == _BROKEN:
            yield item  # type: ignore[misc]  # the result of a task that failed before the shuffle
            return
        name, batch = item
        packed[name].append(batch)
    if not any(packed.values()):
        return
    unpacked = dict(zip(packed, map(_each, schemas.values(), packed.values()), strict=True))
    limits = Engine(engine.memory_limit, engine.threads or 1)
    # Spark gives a task a folder for private files; without one it is the system's.
    private = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
    scratch = Path(tempfile.mkdtemp(prefix="dp-release-", dir=private))
    with Tables(spec_file, limits, scratch, unpacked) as tables:
        yield from read(tables)


def _each(schema: pa.Schema, blobs: list[bytes]) -> Iterator[pa.Table]:
    """The batches, after an empty one."""
    yield schema.empty_table()
    # Taken from the list, so that the memory of a batch is free once the next one is read.
    while blobs:
        yield _unpacked(blobs.pop())


def _base_of(tables: Tables, spec_file: SpecFile, query: RerunQuery) -> Iterator[TaskResult]:
    """The rows, before derivation, of the units that a statement reads, of each table it reads."""
    spec = spec_file.spec
    unit = identifier(spec.privacy.unit)
    condition = tables.condition(f"{spec.place_of(query)}.where", query.table, query.where)
    # Before any row leaves the task: the driver may hold few units only. One more than the bound
    # shows that there are too many, without counting them.
    units = f"SELECT DISTINCT {unit} FROM {wide_table(query.table)} WHERE {condition}"
    if tables.rows(f"SELECT * FROM ({units}) LIMIT {MOST_UNITS + 1}", query.table).num_rows > (
        MOST_UNITS
    ):
        raise DataError(
            f"{spec.place_of(query)}.{query.kind}: the table has more than {MOST_UNITS} units, and "
            "the statement runs once for each pair of them; use another kind of query"
        )
    join = spec.tables[query.table].join
    for name in [query.table] if join is None else [query.table, join.table]:
        rows = tables.rows(
            f"SELECT * FROM {given_table(name)} WHERE {unit} IN ({units})", query.table
        )
        yield "base", f"{query.name}/{name}", _packed(rows)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        # Combined: a slice would carry the rest of its buffers along.
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def _unpacked(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


@contextmanager
def _silent() -> Iterator[None]:
    """Processes that start meanwhile write nothing to standard error, now or later."""
    # The descriptor itself, because the JVM inherits it and knows nothing of ``sys.stderr``.
    sys.stderr.flush()
    standard_error = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(nowhere)


_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([KMGT]?)(i?)B?", re.IGNORECASE | re.ASCII)


def _mebibytes(text: str) -> int:
    """A memory limit in MiB, at least the half gibibyte that a JVM needs to start."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise SpecError("--memory-limit", f"{text!r} is no size; write one such as 2GB")
    factor = (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " ")
    return max(512, int(float(match[1]) * factor) // 2**20)


_SHARED: ContextVar[SparkContext | None] = ContextVar("_SHARED", default=None)


@contextmanager
def one_spark(master: str, engine: Engine) -> Iterator[None]:
    """Let all tables that are opened on ``master`` meanwhile share one Spark, with its one JVM.

    For tables that are not confidential: what Spark keeps in its folder stays until the end.

    Raises:
        SpecError: PySpark is missing, or the master cannot be reached.
    """
    with tempfile.TemporaryDirectory(prefix="dp-release-spark-") as folder:
        context = _start(master, Path(folder), engine)
        token = _SHARED.set(context)
        try:
            yield
        finally:
            _SHARED.reset(token)
            _stop(context)


def _stop(context: SparkContext) -> None:
    with _silent(), suppress(Exception):
        context.stop()
    # It would keep the folder of the first run for all later ones.
    _end_jvm()


def _end_jvm() -> None:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    with _silent():
        with suppress(Exception):
            gateway.shutdown()
        with suppress(Exception):
            # The JVM ends when its standard input does.
            gateway.proc.stdin.close()
            gateway.proc.wait(timeout=20)


def _start(master: str, scratch: Path, engine: Engine) -> SparkContext:
    """Start Spark, silent, with its files in the scratch folder."""
    try:
        with _silent():
            from pyspark import SparkConf, SparkContext
    except ImportError as error:
        raise SpecError(
            "engine.backend", "spark needs PySpark; pip install 'dp-release[spark]'"
        ) from error
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    limit = engine.memory_limit
    memory = _EXECUTOR_MEMORY if limit is None else _mebibytes(limit)
    quiet = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.log.level": "OFF",
        "spark.local.dir": str(scratch),
        "spark.driver.maxResultSize": "0",
        "spark.driver.extraJavaOptions": quiet,
        "spark.task.maxFailures": "1" if is_local(master) else "4",
        "spark.python.worker.reuse": "true",
    }
    if not is_local(master):
        settings |= {
            # The package lies where tasks run, at the same place where Python does.
            "spark.executor.extraJavaOptions": quiet,
            "spark.executor.syncLogLevel.enabled": "true",
            "spark.executor.memory": f"{memory}m",
            # A worker that is killed leaves its files: without the key nobody reads them.
            "spark.io.encryption.enabled": "true",
        }
    elif limit is not None:
        settings["spark.driver.memory"] = f"{memory}m"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    conf = SparkConf().setMaster(master).setAppName("dp-release").setAll(list(settings.items()))
    try:
        with _silent():
            context = SparkContext(conf=conf)
    except Exception as error:
        _end_jvm()
        kind = type(error).__name__
        raise SpecError(
            "--spark", f"Spark does not start at {master!r} ({kind}); it needs Java 17 or later"
        ) from None
    if not is_local(master) and not _has_executor(context):
        with _silent(), suppress(Exception):
            context.stop()
        _end_jvm()
        raise SpecError(
            "--spark",
            f"no worker of {master!r} has had a core and {memory} MiB free for {_WAIT_SECONDS} s; "
            "wait for other work there, or lower --memory-limit",
        )
    return context


def _has_executor(context: SparkContext) -> bool:
    """Whether the cluster gives an executor; a job would wait for one without end."""
    statuses: Any = context._jsc.sc().getExecutorMemoryStatus
    end = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < end:
        # The driver is one of them.
        if statuses().size() > 1:
            return True
        time.sleep(0.2)
    return False
