"""What published answers say of the true ones: estimates that take the noise into account.

The noise law of a worst-case query is public, so that a reader can correct for it; nothing
confidential is read here, and nothing is spent. For each published answer o there are

- the posterior over the true answers, with its mean, its mode and its credible interval; these
  hold on average over the prior, and lean towards it;
- an unbiased value g(o), with Σ_o P(o|q)·g(o) = v(q) at every true answer q, v(q) being its label.
  It leans nowhere, may lie outside the domain, and is the one to add up over cells.

An unbiased value does not always exist: a channel that never publishes some of its answers, as that
for the squared loss often does, tells fewer answers apart than there are. Then the posterior alone
is given. Answers on a circle have neither a mean nor an unbiased value, and categories no interval.

:func:`estimate_release` reads a release as it stands; whether its files are genuine is for
:func:`release.verification.verifier.verify` to say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, TypeAdapter

from release.bundle.read import parse_mechanism
from release.errors import DesignError, SpecError, VerificationError, unknown_name
from release.exact.domain import AnswerDomain, Codes, Topology
from release.exact.mechanism import Mechanism
from release.records.hashes import sha256
from release.records.models import (
    MechanismFile,
    QueryRecord,
    ReleaseRecord,
    parse,
)
from release.spec.domains import Domain, Grid, plain_answers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Floats: TypeAlias = NDArray[np.float64]
Key: TypeAlias = tuple[str, ...]
R = TypeVar("R", bound=BaseModel)

MOST_ANSWERS = 2000
"""A table of more answers than that takes longer to solve than a reader waits."""

_ROUNDING = 1e-12
"""Posterior masses nearer than that count as equal, so that no tie hangs on a rounding."""

_BIAS = 1e-9
"""The most that an unbiased value may be off on average, in ranges of the labels."""


@dataclass(frozen=True)
class Estimate:
    """What one published answer says of the true one; all in label values, ``scale`` of a grid.

    ``mode`` is the true answer of most posterior mass. ``low`` and ``high`` bound the credible
    interval, both included; round a circle ``low`` may be above ``high``. For levels they are, as
    labels are, the least integers of their levels. ``credible`` is, for categories, the least set
    of the credible mass, likeliest first.

    ``unbiased`` has the ``standard_error`` of an answer whose truth is ``mode``. ``variance`` is an
    unbiased estimate of the variance of ``unbiased`` at whatever the true answer is; a single one
    can be negative, a sum over cells is near what it estimates.
    """

    published: int | str
    mode: int | str
    low: int | None = None
    high: int | None = None
    credible: tuple[str, ...] | None = None
    posterior_mean: float | None = None
    unbiased: float | None = None
    variance: float | None = None
    standard_error: float | None = None


@dataclass(frozen=True)
class Estimates:
    """An estimate for each cell; ``keys[i]`` holds the values of the columns ``by`` in cell i."""

    cells: tuple[Estimate, ...]
    by: tuple[str, ...]
    keys: tuple[Key, ...]

    @property
    def unbiased(self) -> Floats | None:
        """The unbiased values, shape (cells,); None for all when no unbiased estimator exists."""
        found = [cell.unbiased for cell in self.cells if cell.unbiased is not None]
        return np.array(found) if len(found) == len(self.cells) else None

    def to_arrow(self) -> pa.Table:
        """A row for each cell: the key columns, then the fields of :class:`Estimate`."""
        # Arrow is loaded here, so that whoever only computes need not wait for it.
        import pyarrow as pa

        text = any(isinstance(cell.published, str) for cell in self.cells)
        label = pa.string() if text else pa.int64()
        types = {
            "published": label,
            "mode": label,
            "low": pa.int64(),
            "high": pa.int64(),
            "credible": pa.list_(pa.string()),
            "posterior_mean": pa.float64(),
            "unbiased": pa.float64(),
            "variance": pa.float64(),
            "standard_error": pa.float64(),
        }
        columns = [
            pa.array([key[i] for key in self.keys], pa.string()) for i in range(len(self.by))
        ]
        columns += [
            pa.array([getattr(cell, name) for cell in self.cells], kind)
            for name, kind in types.items()
        ]
        return pa.Table.from_arrays(columns, names=[*self.by, *types])

    def to_pandas(self) -> pd.DataFrame:
        """As :meth:`to_arrow`, a frame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame


@dataclass(frozen=True, eq=False)
class Correction:
    """For each published answer the unbiased value and its estimated variance, shape (answers,)."""

    unbiased: Floats
    variance: Floats


def likelihood(mechanism: Mechanism) -> Floats:
    """The table log P(published | true), shape (true answers, published), -inf where impossible.

    Joint answers are numbered row-major. Natural logarithms, rounded.

    Raises:
        DesignError: more than 2000 answers.
    """
    _check_size(mechanism.answers)
    whole = math.log(mechanism.total)
    logs: dict[int, float] = {0: -math.inf}
    table = np.empty((mechanism.answers, mechanism.answers))
    for code in range(mechanism.answers):
        weights = mechanism.row(code).tolist()
        for weight in set(weights) - logs.keys():
            # Python's logarithm, for weights that no float holds.
            logs[weight] = math.log(weight) - whole
        table[code] = [logs[weight] for weight in weights]
    return table


def _check_size(answers: int) -> None:
    if not answers <= MOST_ANSWERS:
        raise DesignError(
            f"the mechanism has {answers} answers; estimates are made for {MOST_ANSWERS} at most"
        )


def correction(table: Floats, values: Sequence[int]) -> Correction:
    """The unbiased values: g with P g = v, of least norm where there are several.

    ``table`` as :func:`likelihood`; ``values`` are the labels of the true answers, shape
    (answers,). With h such that P h = v², the variance Σ_o P(o|q)·g(o)² - v(q)² is the mean of
    g(o)² - h(o), whatever q is.

    Raises:
        DesignError: no unbiased estimator exists, to working precision, or there are more than 2000
            answers.
    """
    _check_size(len(values))
    masses = np.exp(table)
    # Rows add up to 1, so a constant may be taken off v and put back onto g: around the middle of
    # the labels their squares lose fewest digits.
    middle = (min(values) + max(values)) // 2
    centred = np.array([value - middle for value in values], dtype=np.float64)
    wanted = np.stack([centred, centred**2], axis=1)
    solved = np.asarray(np.linalg.lstsq(masses, wanted, rcond=None)[0], dtype=np.float64)
    bias = np.abs(masses @ solved - wanted).max(axis=0) / np.abs(wanted).max(axis=0)
    if not (bias <= _BIAS).all():
        raise DesignError(
            "no unbiased estimator exists: the mechanism tells fewer answers apart than there are "
            "(its table is singular); use the posterior mean and the credible interval"
        )
    return Correction(middle + solved[:, 0], solved[:, 0] ** 2 - solved[:, 1])


def estimate(
    codes: Codes,
    table: Floats,
    values: Sequence[int] | AnswerDomain,
    *,
    prior: Sequence[float] | Floats | None = None,
    level: float = 0.95,
) -> Estimates:
    """The estimates of published ``codes``, shape (cells,), in their order and without keys.

    ``table`` as :func:`likelihood`; ``values`` are the labels of all answers, ascending, or the
    declared domain. ``prior`` is a mass for each true answer, not all zero, uniform by default. The
    credible interval is the one of fewest answers with posterior mass of ``level`` or more; of
    several the heaviest, and the lowest of these. Where no unbiased estimator exists, ``unbiased``
    is None for all, and the posterior is still given.

    Raises:
        SpecError: a level not between 0 and 1, or a code, table, prior or label that does not fit.
    """
    domain = values if isinstance(values, AnswerDomain) else _ordered(values)
    check_level(level)
    _check_table(table, domain.size)
    published, cell = _distinct(codes, domain.size)
    posterior = _posterior(table[:, published], prior)
    answers = [
        _of_posterior(domain, code, masses, level)
        for code, masses in zip(published.tolist(), posterior.T, strict=True)
    ]
    if domain.is_line:
        modes = [domain.labels.index(answer.mode) for answer in answers]
        answers = _corrected(answers, table, domain, published, np.array(modes, dtype=np.int64))
    return Estimates(tuple(answers[i] for i in cell.tolist()), (), ((),) * cell.size)


def _ordered(values: Sequence[int]) -> AnswerDomain:
    labels = tuple(int(value) for value in values)
    if not (len(labels) >= 2 and all(a < b for a, b in pairwise(labels))):
        raise SpecError("values", "write the labels of two answers or more, ascending")
    return AnswerDomain(Topology.ORDERED, labels)


def _check_table(table: Floats, answers: int) -> None:
    if table.shape != (answers, answers):
        raise SpecError("table", f"found shape {table.shape}; {answers} answers need their square")
    if not np.abs(np.exp(table).sum(axis=1) - 1).max() <= _BIAS:
        raise SpecError("table", "a row adds up to something else than 1; take it from likelihood")


def _distinct(codes: Codes, answers: int) -> tuple[Codes, Codes]:
    """The published codes, each once and ascending, and for each cell which of them it is."""
    found = np.asarray(codes)
    whole = np.issubdtype(found.dtype, np.integer) or not found.size
    if not (found.ndim == 1 and whole and ((found >= 0) & (found < answers)).all()):
        raise SpecError("codes", f"write one integer from 0 to {answers - 1} for each cell")
    published, cell = np.unique(found.astype(np.int64), return_inverse=True)
    return published, np.asarray(cell, dtype=np.int64)


def _posterior(columns: Floats, prior: Sequence[float] | Floats | None) -> Floats:
    """The posterior of each published answer in its column; shapes (true answers, published)."""
    answers = columns.shape[0]
    masses = np.ones(answers) if prior is None else np.asarray(prior, dtype=np.float64)
    fits = masses.shape == (answers,) and ((masses >= 0) & np.isfinite(masses)).all()
    if not (fits and masses.max() > 0):
        raise SpecError("prior", f"write {answers} masses, none negative and not all zero")
    with np.errstate(divide="ignore"):  # the logarithm of a mass of zero is what is meant
        joint = columns + np.log(masses)[:, None]
    heaviest = joint.max(axis=0, initial=-np.inf)
    if not np.isfinite(heaviest).all():
        raise SpecError("codes", "a published answer never occurs under this mechanism and prior")
    # Taken off before exp, so that the heaviest mass is 1 and none of them all vanish.
    posterior = np.exp(joint - heaviest)
    shares: Floats = posterior / posterior.sum(axis=0)
    return shares


def _of_posterior(domain: AnswerDomain, code: int, masses: Floats, level: float) -> Estimate:
    """All of an estimate but the unbiased value."""
    labels = domain.labels
    # Of several modes the published answer itself, or else the first.
    highest = np.flatnonzero(masses >= masses.max() - _ROUNDING)
    mode = labels[code if code in highest else int(highest[0])]
    told = Estimate(labels[code], mode)
    if domain.topology is Topology.NOMINAL:
        likely = _least_set(masses, level)
        return replace(told, credible=tuple(str(labels[one]) for one in likely.tolist()))
    low, high = _narrowest(masses, level, circle=domain.topology is Topology.CYCLIC)
    told = replace(told, low=int(labels[low]), high=int(labels[high]))
    if not domain.is_line:
        return told
    return replace(told, posterior_mean=float(masses @ np.array(labels, dtype=np.float64)))


def _least_set(masses: Floats, level: float) -> Codes:
    """The fewest codes with mass of ``level`` or more, likeliest first, ties in code order."""
    order = np.argsort(-np.round(masses / _ROUNDING), kind="stable")
    reached = np.cumsum(masses[order]) >= level - _ROUNDING
    return order[: int(np.argmax(reached)) + 1]


def _narrowest(masses: Floats, level: float, *, circle: bool) -> tuple[int, int]:
    """The first and last code of the credible interval; round a ``circle`` it may pass the end."""
    size = masses.size
    around = np.concatenate([masses, masses[:-1]]) if circle else masses
    below = np.concatenate([[0.0], np.cumsum(around)])
    low = np.arange(size)
    # For each low the first end with enough mass in [low, end); beyond the last there is none.
    end = np.searchsorted(below, below[low] + level - _ROUNDING, side="left")
    enough = end < below.size
    low, end = low[enough], end[enough]
    fewest = end - low == (end - low).min()
    low, end = low[fewest], end[fewest]
    mass = below[end] - below[low]
    best = int(np.argmax(mass >= mass.max() - _ROUNDING))
    return int(low[best]), int(end[best] - 1) % size


def _corrected(
    answers: list[Estimate], table: Floats, domain: AnswerDomain, published: Codes, modes: Codes
) -> list[Estimate]:
    """The estimates with their unbiased values, or as they are where there are none."""
    values = [int(label) for label in domain.labels]
    try:
        made = correction(table, values)
    except DesignError:
        return answers
    # (published, answers): how far g lies off when the truth is the mode of each.
    off = made.unbiased[None, :] - np.array(values, dtype=np.float64)[modes][:, None]
    errors = np.sqrt((np.exp(table[modes]) * off**2).sum(axis=1))
    return [
        replace(
            answer,
            unbiased=float(made.unbiased[code]),
            variance=float(made.variance[code]),
            standard_error=float(error),
        )
        for answer, code, error in zip(answers, published.tolist(), errors, strict=True)
    ]


def sum_of(estimates: Estimates) -> tuple[float, float]:
    """The sum of the unbiased values over all cells, and its standard error.

    Each cell has noise of its own, so variances add up: those estimated without bias, or, where so
    few cells make a sum of them that is not positive, the squares of the cells' standard errors.

    Raises:
        DesignError: there is no unbiased estimator for these cells.
    """
    unbiased = estimates.unbiased
    if unbiased is None:
        raise DesignError("no unbiased estimator exists for these answers, so none for their sum")
    variance = math.fsum(cell.variance or 0.0 for cell in estimates.cells)
    if not variance > 0:
        variance = math.fsum((cell.standard_error or 0.0) ** 2 for cell in estimates.cells)
    return math.fsum(unbiased.tolist()), math.sqrt(variance)


_DOMAIN: TypeAdapter[Domain] = TypeAdapter(Domain)


def check_level(level: Any) -> None:
    """Refuse a level that no credible interval can have.

    Raises:
        SpecError: it is no number above 0 and below 1.
    """
    if not (isinstance(level, int | float) and 0 < level < 1):
        raise SpecError("level", f"found {level!r}; write a number above 0 and below 1")


def estimate_release(public: Path, query: str, *, level: float = 0.95) -> Estimates:
    """The estimates of a released query, from the files of the folder ``public`` alone.

    The prior is uniform; with another one, call :func:`estimate`.

    Raises:
        SpecError: no such query, a law that is not public, joint answers, or a level as above.
        DesignError: more than 2000 answers.
        VerificationError: a file is missing, is not what ``release.json`` says, or does not fit.
    """
    check_level(level)
    release = _parsed(ReleaseRecord, "release.json", _bytes(public, "release.json"))
    records = {record.name: record for record in release.queries}
    if not isinstance(query, str) or query not in records:
        raise SpecError("query", unknown_name(query, records))
    record = records[query]
    if not isinstance(record.mechanism_file, MechanismFile):
        raise SpecError(
            "query",
            f"the mechanism of {query!r} is instance-specific and not public; choose a query with "
            "a worst-case guarantee",
        )
    domain = _declared(record)
    file = f"mechanisms/{query}.json"
    stated = parse_mechanism(file, _bytes(public, file, record.mechanism_file.sha256))
    if stated.group != [domain.size]:
        raise VerificationError(file, "group", str(stated.group), str([domain.size]))
    try:
        table = likelihood(stated.to_mechanism())
    except (ValueError, OverflowError) as error:
        raise VerificationError(file, "weights", str(error), "a mechanism") from error
    keys, codes = _released(public, record)
    found = estimate(codes, table, domain, level=level)
    return replace(found, by=tuple(record.by), keys=keys)


def _declared(record: QueryRecord) -> AnswerDomain:
    if "tuple" in record.domain:
        raise SpecError(
            "query",
            f"{record.name!r} has joint answers, which have no order; use likelihood with its "
            "mechanism, whose answers are the column answer_code",
        )
    try:
        if "grid" in record.domain:
            return plain_answers(Grid.model_validate(record.domain))
        return plain_answers(_DOMAIN.validate_python(record.domain))
    except ValueError as error:
        at = f"queries.{record.name}.domain"
        raise VerificationError("release.json", at, "another shape", "a domain") from error


def _parsed(model: type[R], file: str, data: bytes) -> R:
    try:
        return parse(model, data)
    except (ValueError, RecursionError) as error:
        raise VerificationError(
            file, "schema", "another shape", "canonical JSON of the declared shape"
        ) from error


def _bytes(public: Path, file: str, digest: str | None = None) -> bytes:
    """The bytes of a file, of the SHA-256 that ``release.json`` gives for all files but itself."""
    try:
        data = (public / file).read_bytes()
    except OSError as error:
        raise VerificationError(file, "file", "nothing readable", "a file") from error
    if digest is not None and sha256(data) != digest:
        raise VerificationError(file, "SHA-256", sha256(data), digest)
    return data


def _released(public: Path, record: QueryRecord) -> tuple[tuple[Key, ...], Codes]:
    """The keys and the codes of a released table."""
    # Arrow is loaded here, so that whoever only computes need not wait for it.
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = f"data/{record.name}.parquet"
    _bytes(public, file, record.output.sha256)
    try:
        table = pq.ParquetFile(public / file).read([*record.by, "answer_code"])
        columns = [table.column(name).to_pylist() for name in record.by]
        codes = np.asarray(table.column("answer_code").to_numpy(), dtype=np.int64)
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        raise VerificationError(
            file, "format", "another table", "the key columns and answer_code"
        ) from error
    keys = tuple(zip(*columns, strict=True)) if columns else ((),) * codes.size
    return keys, codes
