"""Other libraries of differential privacy beside ours: the same promise, error and time.

The promise is pure ε = 1 for answers that one unit moves by 1. Ours is exact, from the law; the
others are sampled, with the standard error. Their pins exclude each other, so each may have a
Python of its own: ``--python smartnoise=PATH``. What is not installed is left out. ``--only NAME``
limits the run; ``--no-million`` leaves the largest vectors out.

Every measurement is a process of its own, which this file starts with ``--worker``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from release.exact.channel import Channel
    from release.exact.pmf import Pmf

Codes: TypeAlias = NDArray[np.int64]
Run: TypeAlias = Callable[[], Codes]
"""Publishes all answers once."""

Prepare: TypeAlias = Callable[[Codes], Run]
"""From true answers to a run: tables are made here, before the clock starts."""

Row: TypeAlias = dict[str, Any]

SIZES, HOURS, LEADS, LIMIT = (25, 119), 24, (1, 5, 10, 20), 300
VECTORS, REPETITIONS, SELECTIONS = (10_000, 1_000_000), 3, 20_000
MEASURES = ("squared", "absolute", "exact")


@dataclass(frozen=True)
class Library:
    """A library: its package, its mechanisms for a count of so many answers, and how it selects.

    Of the mechanisms the first is timed. ``answers`` is how many are sampled for the errors. A
    ``table`` is read and grouped; the others are given the true answers. Times are compared within
    each kind.
    """

    title: str
    package: str
    make: Callable[[int], dict[str, Prepare]]
    answers: int
    select: Callable[[int | None], dict[str, Callable[[int], Codes]]] | None = None
    table: bool = False


def best(size: int, loss_name: str = "squared") -> Channel:
    """Our mechanism of a count 0..size-1, as a release takes it."""
    from release.exact.domain import AnswerDomain, Topology
    from release.exact.losses import LossName, named_loss
    from release.exact.privacy import Definition, Guarantee
    from release.exact.sensitivity import Sensitivity
    from release.noise.design import Asked
    from release.noise.select import choose

    name = LossName(loss_name)
    made = choose(
        Asked(
            AnswerDomain(Topology.ORDERED, tuple(range(size))),
            Sensitivity.on_line(size, [1]),
            Guarantee(Definition.PURE, Fraction(1), Fraction(0)),
            named_loss(name, Topology.ORDERED, size),
            name,
        )
    )
    if not isinstance(made.mechanism, Channel):
        raise TypeError(f"the best for {loss_name} is {made.method}, not a channel")
    return made.mechanism


def ours(size: int) -> dict[str, Prepare]:
    """Draws from the best channel."""
    channel = best(size)
    return {"best for squared loss": lambda true: lambda: channel.draw(true)}


def exact_rows(size: int) -> list[Row]:
    """Our errors, from the integers of the laws."""
    from release.exact.channel import answer_costs
    from release.noise.published.baselines import geometric_clamped

    channels = {f"best for {loss}": best(size, loss) for loss in ("squared", "absolute")}
    channels["best for error rate"] = best(size, "error_rate")
    channels["(clamped geometric, our baseline)"] = geometric_clamped(size, Fraction(1))
    rows = []
    for name, channel in channels.items():
        losses = [float(channel.mean_loss(answer_costs(power, size))) for power in (2, 1, 0)]
        means = [losses[0], losses[1], 1 - losses[2]]
        rows.append({"name": name, "count": 0, "means": means, "errors": [0.0] * 3, "bias": None})
    return rows


def our_release(size: int) -> dict[str, Prepare]:
    """A whole release from a Parquet file: spec, bounds, law, files, and their verification."""
    parquet, arrow = import_module("pyarrow.parquet"), import_module("pyarrow")
    yaml = import_module("yaml")
    from release.street import run_release

    def prepare(true: Codes) -> Run:
        def run() -> Codes:
            with tempfile.TemporaryDirectory() as out:
                run_release(spec, Path(out))
                found = parquet.read_table(next(Path(out).rglob("data/n.parquet")))
            order = found["g"].to_numpy().astype(np.int64)
            published = np.empty(true.size, dtype=np.int64)
            published[order] = found["answer"].to_numpy()
            return published

        cell = np.repeat(np.arange(true.size), true)
        rows = arrow.table({"unit": np.arange(cell.size), "g": cell})
        parquet.write_table(rows, folder / "t.parquet")
        spec = folder / "spec.yaml"
        spec.write_text(yaml.safe_dump(_spec(size, true.size)), encoding="utf-8")
        return run

    keep = tempfile.TemporaryDirectory()
    folder = Path(keep.name)
    # The default holds the folder for as long as there is something to prepare.
    return {"a whole release": lambda true, _keep=keep: prepare(true)}  # type: ignore[misc]


def _spec(size: int, cells: int) -> dict[str, object]:
    about = dict.fromkeys(("title", "curator", "contact", "purpose", "period", "license"), "x")
    return {
        "spec": "dp-release/spec/v1",
        "release": {"id": "t", **about},
        "tables": {"t": {"path": "t.parquet", "columns": {"unit": "integer", "g": "integer"}}},
        "privacy": {"unit": "unit", "neighbors": "add_remove", "max_rows_per_unit": 1},
        "budget": {"scope": "bench", "epsilon": "1", "delta": "0"},
        "keys": {"g": {"range": [0, cells - 1]}},
        "queries": [
            {
                "name": "n",
                "kind": "count",
                "table": "t",
                "by": ["g"],
                "domain": {"ordered": {"min": 0, "max": size - 1}},
                "sensitivity": "global",
                "guarantee": {"definition": "pure", "epsilon": "1"},
                "loss": "squared",
            }
        ],
    }


def our_selection(lead: int | None) -> dict[str, Callable[[int], Codes]]:
    """The commonest category: by its law, or as the largest of published counts."""
    from release.exact.domain import Group, Topology
    from release.exact.losses import LossName, named_loss
    from release.exact.privacy import Definition, Guarantee
    from release.exact.sampling import draw_noise
    from release.exact.sensitivity import Sensitivity
    from release.noise.solve import design

    group = Group((HOURS,))
    anywhere = Sensitivity.everything(group)
    sensitivity = Sensitivity.of(group, [(1,)]) if lead is None else anywhere
    claimed = Guarantee(Definition.PURE, Fraction(1), Fraction(0))
    loss = named_loss(LossName.ERROR_RATE, Topology.CYCLIC, HOURS)
    law: Pmf = design(sensitivity, claimed, loss).mechanism.pmf
    found: dict[str, Callable[[int], Codes]] = {
        "best for error rate": lambda count: draw_noise(law, count)
    }
    if lead is not None:
        channel, counts = best(201), np.tile(category_counts(lead), SELECTIONS)

        def largest(count: int) -> Codes:
            drawn = channel.draw(counts[: count * HOURS]).reshape(count, HOURS)
            ties = np.random.default_rng().random(drawn.shape)
            return np.asarray(np.argmax(drawn + ties, axis=1), dtype=np.int64)

        found["largest of 24 published counts"] = largest
    return found


def category_counts(lead: int | None) -> Codes:
    """Scores of 24 categories, the first the best: of hours on a circle, or rows of each."""
    if lead is None:
        hour = np.arange(HOURS)
        return HOURS // 2 - np.minimum(hour, HOURS - hour)
    return np.array([100 + lead] + [100] * (HOURS - 1), dtype=np.int64)


def clamped(answers: Any, size: int) -> Codes:
    """Answers brought into the domain, where a library does not do so."""
    return np.clip(np.asarray(answers, dtype=np.int64), 0, size - 1)


def opendp(size: int) -> dict[str, Prepare]:
    """Discrete Laplace on vectors, clamped after or (geometric) within."""
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")

    def laplace(true: Codes) -> Run:
        domain = dp.vector_domain(dp.atom_domain(T=int), size=true.size)
        made = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=1.0)
        _check(made.map(1))
        given = true.tolist()
        return lambda: clamped(made(given), size)

    def geometric(true: Codes) -> Run:
        space = dp.vector_domain(dp.atom_domain(T=int), size=true.size), dp.l1_distance(T=int)
        made = dp.m.make_geometric(*space, scale=1.0, bounds=(0, size - 1))
        _check(made.map(1))
        given = true.tolist()
        return lambda: clamped(made(given), size)

    return {"make_laplace, clamped": laplace, "make_geometric(bounds)": geometric}


def _check(epsilon: float) -> None:
    """That a rival's own map says the promise that is compared."""
    if not abs(epsilon - 1) < 1e-9:
        raise ValueError(f"the mechanism keeps ε = {epsilon}, not 1")


def opendp_selection(lead: int | None) -> dict[str, Callable[[int], Codes]]:
    """Report noisy max (permute-and-flip); on the circle also noise modulo 24."""
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    metric = dp.linf_distance(T=int, monotonic=lead is not None)
    scale = 2.0 if lead is None else 1.0
    domain = dp.vector_domain(dp.atom_domain(T=int))
    made = dp.m.make_noisy_max(domain, metric, dp.max_divergence(), scale=scale)
    _check(made.map(1))
    scores = category_counts(lead).tolist()
    found: dict[str, Callable[[int], Codes]] = {
        "make_noisy_max": lambda count: np.array([made(scores) for _ in range(count)])
    }
    if lead is None:

        def wrapped(count: int) -> Codes:
            vectors = dp.vector_domain(dp.atom_domain(T=int), size=count)
            noise = dp.m.make_laplace(vectors, dp.l1_distance(T=int), scale=1.0)
            return np.asarray(np.array(noise([0] * count)) % HOURS, dtype=np.int64)

        found["make_laplace, modulo 24"] = wrapped
    return found


def opendp_polars(size: int) -> dict[str, Prepare]:
    """A grouped len() of a Polars frame with public keys."""
    dp, pl = import_module("opendp.prelude"), import_module("polars")
    dp.enable_features("contrib")

    def prepare(true: Codes) -> Run:
        rows = pl.LazyFrame({"g": np.repeat(np.arange(true.size), true)})
        keys = pl.LazyFrame({"g": np.arange(true.size)})

        def run() -> Codes:
            context = dp.Context.compositor(
                data=rows,
                privacy_unit=dp.unit_of(contributions=1),
                privacy_loss=dp.loss_of(epsilon=1.0),
                split_evenly_over=1,
            )
            asked = context.query().group_by("g").agg(dp.len(signed=True)).with_keys(keys)
            found = asked.release().collect().sort("g")
            return clamped(found["len"].to_numpy(), size)

        return run

    return {"group_by, len, with_keys": prepare}


def diffprivlib(size: int) -> dict[str, Prepare]:
    """The three geometric mechanisms, one answer a call."""
    mechanisms = import_module("diffprivlib.mechanisms")
    bounds = {"lower": 0, "upper": size - 1}

    def prepare_with(name: str, arguments: dict[str, int]) -> Prepare:
        made = getattr(mechanisms, name)(epsilon=1.0, sensitivity=1, **arguments)

        def prepare(true: Codes) -> Run:
            given = true.tolist()
            return lambda: clamped([made.randomise(one) for one in given], size)

        return prepare

    return {
        "GeometricTruncated": prepare_with("GeometricTruncated", bounds),
        "Geometric, clamped": prepare_with("Geometric", {}),
        "GeometricFolded": prepare_with("GeometricFolded", bounds),
    }


def diffprivlib_selection(lead: int | None) -> dict[str, Callable[[int], Codes]]:
    """The exponential mechanism and permute-and-flip."""
    mechanisms = import_module("diffprivlib.mechanisms")
    utility = category_counts(lead).tolist()

    def select_with(name: str) -> Callable[[int], Codes]:
        made = getattr(mechanisms, name)(
            epsilon=1.0, sensitivity=1, utility=utility, monotonic=lead is not None
        )
        return lambda count: np.array([made.randomise() for _ in range(count)])

    return {name: select_with(name) for name in ("PermuteAndFlip", "Exponential")}


def smartnoise(size: int) -> dict[str, Prepare]:
    """A grouped COUNT of a pandas frame; a group without answers has one row that is missing."""
    snsql, pandas = import_module("snsql"), import_module("pandas")
    columns = {"g": {"type": "int"}, "x": {"type": "int", "nullable": True}}
    options = {"row_privacy": True, "censor_dims": False, "clamp_counts": True}
    metadata = {"": {"t": {"t": {**options, **columns}}}}

    def prepare(true: Codes) -> Run:
        cell = np.repeat(np.arange(true.size), true + 1)
        value = np.ones(cell.size)
        value[np.cumsum(true + 1) - 1] = np.nan
        frame = pandas.DataFrame({"g": cell, "x": value})
        privacy = snsql.Privacy(epsilon=1.0, delta=0.0)

        def run() -> Codes:
            reader = snsql.from_df(frame, privacy=privacy, metadata=metadata)
            _, *found = reader.execute("SELECT g, COUNT(x) AS n FROM t.t GROUP BY g")
            published = np.zeros(true.size, dtype=np.int64)
            for cell_of, count in found:
                published[cell_of] = count
            return clamped(published, size)

        return run

    return {"COUNT with GROUP BY": prepare}


def tumult(size: int) -> dict[str, Prepare]:
    """A grouped count on a local Spark."""
    # Spark's own Python processes have to find the library too.
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    analytics, pandas = import_module("tmlt.analytics"), import_module("pandas")
    builder = import_module("pyspark.sql").SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    budget = analytics.PureDPBudget

    def prepare(true: Codes) -> Run:
        rows = pandas.DataFrame({"g": np.repeat(np.arange(true.size), true)})
        keys = pandas.DataFrame({"g": np.arange(true.size)})
        keyset = analytics.KeySet.from_dataframe(spark.createDataFrame(keys))
        session = analytics.Session.from_dataframe(
            privacy_budget=budget(float("inf")),
            source_id="t",
            dataframe=spark.createDataFrame(rows),
            protected_change=analytics.AddOneRow(),
        )
        query = analytics.QueryBuilder("t").groupby(keyset).count(name="n")

        def run() -> Codes:
            found = session.evaluate(query, budget(1)).toPandas().sort_values("g")
            return clamped(found["n"].to_numpy(), size)

        return run

    return {"groupby(KeySet).count": prepare}


LIBRARIES = {
    "ours": Library("dp-release, the law", "dp-release", ours, 0, our_selection),
    "opendp": Library("OpenDP", "opendp", opendp, 200_000, opendp_selection),
    "diffprivlib": Library(
        "diffprivlib", "diffprivlib", diffprivlib, 200_000, diffprivlib_selection
    ),
    "release": Library("dp-release, a release", "dp-release", our_release, 40_000, table=True),
    "polars": Library("OpenDP Polars", "polars", opendp_polars, 40_000, table=True),
    "smartnoise": Library("SmartNoise SQL", "smartnoise-sql", smartnoise, 40_000, table=True),
    "tumult": Library("Tumult Analytics", "tmlt.analytics", tumult, 40_000, table=True),
}
"""Ours first, for the ratios; mechanisms, then what answers from a table."""


def errors_of(name: str, prepare: Prepare, count: int, size: int) -> Row:
    """The mean errors of a sample with as many of each true answer, and their standard errors."""
    true = np.arange(count, dtype=np.int64) % size
    error = prepare(true)() - true
    samples = [error**2, abs(error), error == 0]
    return {
        "name": name,
        "count": count,
        "means": [float(np.mean(sample)) for sample in samples],
        "errors": [float(np.std(sample) / np.sqrt(count)) for sample in samples],
        "bias": float(np.mean(error)),
    }


def measured(key: str, task: str, given: int) -> object:
    """What a worker does: the version, errors, selections, one answer or a vector of them."""
    library = LIBRARIES[key]
    if task == "version":
        try:
            return version(library.package)
        except PackageNotFoundError:
            return None
    if task == "select" and library.select is not None:
        ways = library.select(given if given >= 0 else None)
        return {name: float(np.mean(run(SELECTIONS) != 0)) for name, run in ways.items()}
    if task == "errors":
        if not library.answers:
            return exact_rows(given)
        ways_of = library.make(given).items()
        return [errors_of(name, prepare, library.answers, given) for name, prepare in ways_of]
    _, prepare = next(iter(library.make(SIZES[0]).items()))
    run_once = prepare(np.ones(given, dtype=np.int64))
    seconds = []
    for _ in range(REPETITIONS if 1 < given <= VECTORS[0] else 1):
        start = time.perf_counter()
        run_once()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


@dataclass(frozen=True)
class Ended:
    """How a worker ended: what it measured, or why it did not; and its seconds as a whole."""

    value: Any
    failure: str | None
    seconds: float


def start_worker(python: str, key: str, task: str, given: int = 0) -> Ended:
    """Run a worker to its end or the limit; what it started ends with it."""
    command = [python, str(Path(__file__).resolve()), "--worker", key, task, str(given)]
    start = time.perf_counter()
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, told = child.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return Ended(None, f"> {LIMIT} s", float(LIMIT))
    seconds = time.perf_counter() - start
    if child.returncode:
        return Ended(None, (told.strip().splitlines() or ["no word"])[-1][:100], seconds)
    return Ended(json.loads(out.splitlines()[-1]), None, seconds)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--only", action="append", choices=[*LIBRARIES], default=[])
    parser.add_argument("--no-million", action="store_true")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        key, task, number = given.worker
        print("\n" + json.dumps(measured(key, task, int(number))))
        return
    pythons = dict.fromkeys(LIBRARIES, sys.executable)
    pythons.update(one.split("=", 1) for one in given.python)
    wanted = {key: pythons[key] for key in LIBRARIES if not given.only or key in given.only}
    present = {key: python for key, python in wanted.items() if is_installed(key, python)}
    print_errors(present)
    print_selections(present)
    print_times(present, VECTORS[:1] if given.no_million else VECTORS)


def is_installed(key: str, python: str) -> bool:
    """Whether a library can be measured; its version is printed."""
    library = LIBRARIES[key]
    ended = start_worker(python, key, "version")
    print(f"{library.title:24} {library.package} {ended.value or 'not installed'}", flush=True)
    return ended.value is not None


def print_errors(present: dict[str, str]) -> None:
    """Errors of a bounded count; ratios to ours for the same loss, from the same run."""
    for size in SIZES:
        print(f"\ncount 0..{size - 1}, pure ε = 1, neighbors ±1, uniform prior")
        print(f"  {'':54} {'squared':>18} {'absolute':>18} {'exact':>18}    bias  ratios")
        least: list[float] = []
        for key, python in present.items():
            ended = start_worker(python, key, "errors", size)
            if ended.failure:
                print(f"  {LIBRARIES[key].title:24} {ended.failure}")
                continue
            if key == "ours":
                means = np.array([row["means"] for row in ended.value])
                least = [*means[:, :2].min(axis=0), means[:, 2].max()]
            for row in ended.value:
                print_error(LIBRARIES[key].title, row, least)


def print_error(title: str, row: Row, least: list[float]) -> None:
    """One line: means with standard errors, and ratios of squared, absolute and wrong answers."""
    cells = []
    for mean, error in zip(row["means"], row["errors"], strict=True):
        cells.append(f"{mean:.4f}" + (f" ± {error:.4f}" if row["count"] else " (law)  "))
    ratios = []
    if least:
        losses = [*row["means"][:2], 1 - row["means"][2]]
        ours_best = [*least[:2], 1 - least[2]]
        ratios = [f"{loss / ours:.3f}" for loss, ours in zip(losses, ours_best, strict=True)]
    bias = "" if row["bias"] is None else f"{row['bias']:+.3f}"
    sample = f"n = {row['count']:,}" if row["count"] else "exact"
    print(
        f"  {title:22} {row['name']:33}"
        f"{cells[0]:>18} {cells[1]:>18} {cells[2]:>18}  {bias:>6}  {' '.join(ratios)}  {sample}",
        flush=True,
    )


def print_selections(present: dict[str, str]) -> None:
    """Error rates of the commonest of 24 categories."""
    cases: dict[int, str] = {-1: "an hour of 24, known up to one hour by neighbors, scores -d"}
    cases |= {lead: f"commonest of 24, 100 rows each, the first {lead} more" for lead in LEADS}
    for lead, told in cases.items():
        print(f"\n{told}: error rate, ε = 1, {SELECTIONS:,} draws each")
        for key, python in present.items():
            if LIBRARIES[key].select is None:
                continue
            ended = start_worker(python, key, "select", lead)
            for name, rate in (ended.value or {ended.failure: float("nan")}).items():
                error = np.sqrt(rate * (1 - rate) / SELECTIONS)
                print(f"  {LIBRARIES[key].title:24} {name:32} {rate:.4f} ± {error:.4f}", flush=True)


def print_times(present: dict[str, str], vectors: tuple[int, ...]) -> None:
    """Seconds of a whole process with one answer, and of vectors without it."""
    print(f"\nseconds, limit {LIMIT}; a process: imports, law and one answer, median of 3;")
    print(
        "a vector: its answers only, median of 3 (one million: one run); a table has one row each"
    )
    first: dict[tuple[bool, int], float] = {}
    for key, python in present.items():
        runs = [start_worker(python, key, "time", 1) for _ in range(REPETITIONS)]
        whole = statistics.median(one.seconds for one in runs)
        cells = [f"process {whole:6.2f}" if not runs[0].failure else str(runs[0].failure)]
        for count in () if runs[0].failure else vectors:
            ended = start_worker(python, key, "time", count)
            if ended.failure:
                cells.append(f"{count:,}: {ended.failure}")
                continue
            kind = (LIBRARIES[key].table, count)
            if key in ("ours", "release"):
                first[kind] = ended.value
            ratio = f", {ended.value / first[kind]:.1f}x" if kind in first else ""
            each = ended.value / count * 1e6
            cells.append(f"{count:,}: {ended.value:.4g} s, {each:.3g} µs each{ratio}")
        print(f"  {LIBRARIES[key].title:24} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
