"""Estimates of true answers from published ones, taking the noise into account.

The mechanism of a worst-case query is public, so a reader can correct for its noise; nothing
confidential is read here, and no budget is spent. For each published answer o there are

- an interval that holds the true answer with its level, whatever that is;
- the posterior over the true answers, with its mean and its mode; these hold on average over the
  prior, and are biased towards it;
- an unbiased value g(o), with Σ_o P(o|q)·g(o) = v(q) at every true answer q, v(q) being its label.
  It may lie outside the domain, and is the value to add up over cells.

An unbiased value does not always exist: a channel that never publishes some of its answers, as that
for the squared loss often does, distinguishes fewer answers than there are. Then there is the
posterior alone. Answers on a circle have neither a mean nor an unbiased value, and categories no
interval. :func:`estimate_release` does not check whether the files of a release are genuine; that
is the task of :func:`release.verification.verifier.verify`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_release_verify import forms
from release.analysis.combined import (
    Combined,
    Key,
    KeyValue,
    difference_of,
    ranks_of,
    ratio_of,
    total_of,
)
from release.analysis.intervals import (
    AddedNoise,
    CellNoise,
    ClampedNoise,
    MeanNoise,
    TableNoise,
)
from release.analysis.unbiased import MOST_ANSWERS, check_size, correction
from release.bundle.bounded import shared_words
from release.bundle.opened import PublicRelease, open_public
from release.errors import DesignError, SpecError, VerificationError
from release.exact.domain import AnswerDomain, Codes, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.intervals import runs_of
from release.exact.mechanism import Mechanism
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.bounds import Published
from release.exact.statistics.top.histogram import HistogramTop
from release.queries.intervals import around_sums, in_codes, mean_of_sums
from release.queries.on_statistic import OnStatisticQuery
from release.queries.zeros import chances_of_zero
from release.spec.domains import MOST_IN_ORDER, Bins, ends_of_bins
from release.spec.named import by_name, names_of
from release.spec.query import Query
from release.tables.columns import numbers_of
from release.tabulations.frames import no_such_query

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Floats: TypeAlias = NDArray[np.float64]
Keys: TypeAlias = tuple[tuple[KeyValue, ...], ...]
"""The values of the key columns, of each cell."""

_ROUNDING = 1e-12
"""Posterior masses nearer than that count as equal, so that rounding breaks no tie."""

_TOTAL = 1e-9
"""The most that the masses of a row may be off 1."""


@dataclass(frozen=True)
class Estimate:
    """The estimate of one true answer; all in label values, ``scale`` of a grid.

    ``mode`` is the true answer of most posterior mass. ``low`` and ``high`` bound the interval,
    both included, which holds the true answer with its level whatever that is; round a circle
    ``low`` may be above ``high``. Of bins ``high`` is the largest integer of its bin, without end
    of the last one. Of sums and means they are these themselves, and ``value`` is what the noisy
    sums make, before it is put into a bin. ``credible`` is, for categories, the least set of the
    credible mass, likeliest first.

    ``standard_error`` is that of ``unbiased`` if the true answer is ``mode``. ``variance`` is an
    unbiased estimate of the variance of ``unbiased``, whatever the true answer; for one cell it can
    be negative, summed over many cells it is accurate.
    """

    published: int | str
    mode: int | str
    low: float | None = None
    high: float | None = None
    credible: tuple[str, ...] | None = None
    value: float | None = None
    posterior_mean: float | None = None
    unbiased: float | None = None
    variance: float | None = None
    standard_error: float | None = None


@dataclass(frozen=True)
class Estimates:
    """An estimate for each cell; ``keys[i]`` holds the values of the columns ``by`` in cell i.

    ``noise`` is what the intervals of sums, differences, ratios and ranks are made of; None where
    answers are categories or go round a circle, which have none. ``shared`` says why the cells do
    not add up, where one unit may be counted in several.
    """

    cells: tuple[Estimate, ...]
    by: tuple[str, ...]
    keys: Keys
    noise: CellNoise | None = field(default=None, compare=False, repr=False)
    shared: str = field(default="", compare=False, repr=False)

    def sum(self, keys: Sequence[Key] | None = None, *, level: float = 0.95) -> Combined:
        """The sum of the true answers of these cells, or of all, with an interval.

        A UserWarning is given where one unit may be counted in several cells: the sum is then more
        than the number of units.

        Raises:
            SpecError: no such cell, the level is wrong, or the answers do not add up.
        """
        if self.shared:
            # At the line of the caller, where a reader of a notebook sees it.
            warnings.warn(self.shared, stacklevel=2)
        return total_of(self, keys, level)

    def difference(self, first: Key, second: Key, *, level: float = 0.95) -> Combined:
        """The true answer of the cell ``first`` less that of ``second``, with an interval.

        Raises:
            SpecError: as :meth:`sum`.
        """
        return difference_of(self, first, second, level)

    def ratio(
        self, above: Key, below: Key, *, of: Estimates | None = None, level: float = 0.95
    ) -> Combined:
        """The true answer of the cell ``above`` over that of ``below``, with an interval.

        ``of`` are the estimates of another query, to which ``below`` belongs.

        Raises:
            SpecError: as :meth:`sum`.
            DesignError: the lower answer may be negative as well as positive.
        """
        return ratio_of((self, above), (self if of is None else of, below), level)

    def ranks(self, *, level: float = 0.95) -> tuple[Combined, ...]:
        """The rank of each cell, 1 for the largest; all intervals hold at once with ``level``.

        Raises:
            SpecError: as :meth:`sum`.
        """
        return ranks_of(self, level)

    @property
    def unbiased(self) -> Floats | None:
        """The unbiased values, shape (cells,); None for all when no unbiased estimator exists."""
        values = self.column("unbiased")
        return None if None in values else np.array(values, dtype=np.float64)

    def _repr_html_(self) -> str:
        """What a notebook shows: the frame of :meth:`to_pandas`, without empty columns."""
        table: str = self.to_pandas().dropna(axis="columns", how="all").to_html(max_rows=10)
        return table

    def column(self, name: str) -> list[Any]:
        """One field of all estimates, in the order of the cells."""
        return [getattr(cell, name) for cell in self.cells]

    def to_arrow(self) -> pa.Table:
        """A row for each cell: the key columns, then the fields of :class:`Estimate`."""
        # Late, so that programs that only compute need not load Arrow.
        import pyarrow as pa

        # Categories are texts and all other labels integers, so that no column holds both.
        is_text = str in set(map(type, self.column("published")))
        label = pa.string() if is_text else pa.int64()
        types = {
            "published": label,
            "mode": label,
            "low": _kind_of(self.column("low")),
            "high": _kind_of(self.column("high")),
            "credible": pa.list_(pa.string()),
            "value": pa.float64(),
            "posterior_mean": pa.float64(),
            "unbiased": pa.float64(),
            "variance": pa.float64(),
            "standard_error": pa.float64(),
        }
        columns = []
        for place in range(len(self.by)):
            values = [key[place] for key in self.keys]
            columns.append(pa.array(values, pa.string() if not values else None))
        for name, kind in types.items():
            columns.append(pa.array(self.column(name), kind))
        return pa.Table.from_arrays(columns, names=[*self.by, *types])

    def to_pandas(self) -> pd.DataFrame:
        """As :meth:`to_arrow`, a frame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame


def _kind_of(values: Sequence[float | None]) -> pa.DataType:
    import pyarrow as pa

    return pa.float64() if any(isinstance(value, float) for value in values) else pa.int64()


def likelihood(mechanism: Mechanism) -> Floats:
    """The table log P(published | true), shape (true answers, published), -inf where impossible.

    Joint answers are numbered row-major. Natural logarithms, rounded.

    Raises:
        DesignError: more than 2000 answers.
    """
    check_size(mechanism.answers)
    whole = math.log(mechanism.total)
    logs: dict[int, float] = {0: -math.inf}
    table = np.empty((mechanism.answers, mechanism.answers))
    for code in range(mechanism.answers):
        weights = mechanism.row(code).tolist()
        for weight in set(weights) - logs.keys():
            # Python's logarithm: a weight may be an integer too large for any float.
            logs[weight] = math.log(weight) - whole
        table[code] = [logs[weight] for weight in weights]
    return table


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
    answers = []
    ends = None
    if domain.topology is not Topology.NOMINAL:
        ends = runs_of(np.exp(table), domain.topology, level)
    for code, masses in zip(published.tolist(), posterior.T, strict=True):
        answer = _of_posterior(domain, code, masses, level)
        if ends is not None:
            low, high = (int(domain.labels[own[code]]) for own in ends)
            answer = replace(answer, low=low, high=high)
        answers.append(answer)
    if domain.is_line:
        answers = _corrected(answers, table, domain, published)
    cells = [answers[place] for place in cell.tolist()]
    noise = None
    if domain.is_line:
        labels = np.array(domain.labels, dtype=np.float64)
        noise = TableNoise(np.exp(table), np.asarray(codes, dtype=np.int64), labels)
    return Estimates(tuple(cells), (), ((),) * cell.size, noise)


def _ordered(values: Sequence[int]) -> AnswerDomain:
    labels = tuple(map(int, values))
    if len(labels) < 2 or list(labels) != sorted(set(labels)):
        raise SpecError("values", "write the labels of two answers or more, ascending")
    return AnswerDomain(Topology.ORDERED, labels)


def _check_table(table: Floats, answers: int) -> None:
    if table.shape != (answers, answers):
        raise SpecError("table", f"found shape {table.shape}; {answers} answers need their square")
    if not np.abs(np.exp(table).sum(axis=1) - 1).max() <= _TOTAL:
        raise SpecError("table", "a row adds up to something else than 1; take it from likelihood")


def _distinct(codes: Codes, answers: int) -> tuple[Codes, Codes]:
    """The published codes, each once and ascending, and for each cell the place of its code."""
    array = np.asarray(codes)
    # An empty list has the type of floats, and is no error.
    whole = np.issubdtype(array.dtype, np.integer) or not array.size
    if not (array.ndim == 1 and whole and ((array >= 0) & (array < answers)).all()):
        raise SpecError("codes", f"write one integer from 0 to {answers - 1} for each cell")
    published, cell = np.unique(array.astype(np.int64), return_inverse=True)
    return published, np.asarray(cell, dtype=np.int64)


def _posterior(columns: Floats, prior: Sequence[float] | Floats | None) -> Floats:
    """The posterior of each published answer in its column; shapes (true answers, published)."""
    answers = columns.shape[0]
    masses = np.ones(answers) if prior is None else np.asarray(prior, dtype=np.float64)
    fits = masses.shape == (answers,) and ((masses >= 0) & np.isfinite(masses)).all()
    if not (fits and masses.max() > 0):
        raise SpecError("prior", f"write {answers} masses, none negative and not all zero")
    with np.errstate(divide="ignore"):  # a mass of zero has the logarithm -inf, as intended
        joint = columns + np.log(masses)[:, None]
    heaviest = joint.max(axis=0, initial=-np.inf)
    if not np.isfinite(heaviest).all():
        raise SpecError("codes", "a published answer never occurs under this mechanism and prior")
    # Subtracted before exp, so that the heaviest mass is 1: else all of them may underflow to 0.
    posterior = np.exp(joint - heaviest)
    shares: Floats = posterior / posterior.sum(axis=0)
    return shares


def _of_posterior(domain: AnswerDomain, code: int, masses: Floats, level: float) -> Estimate:
    """The estimate without the unbiased value."""
    labels = domain.labels
    # Of several modes the published answer itself, or else the first.
    highest = np.flatnonzero(masses >= masses.max() - _ROUNDING)
    mode = labels[code if code in highest else int(highest[0])]
    if domain.topology is Topology.NOMINAL:
        likely = [labels[place] for place in _least_set(masses, level).tolist()]
        return Estimate(labels[code], mode, credible=tuple(map(str, likely)))
    mean = float(masses @ np.array(labels, dtype=np.float64)) if domain.is_line else None
    return Estimate(labels[code], mode, posterior_mean=mean)


def _least_set(masses: Floats, level: float) -> Codes:
    """The fewest codes with mass of ``level`` or more, likeliest first, ties in code order."""
    order = np.argsort(-np.round(masses / _ROUNDING), kind="stable")
    reached = np.cumsum(masses[order]) >= level - _ROUNDING
    return order[: int(np.argmax(reached)) + 1]


def _corrected(
    answers: list[Estimate], table: Floats, domain: AnswerDomain, published: Codes
) -> list[Estimate]:
    """The estimates with their unbiased values, or unchanged where none exist."""
    values = list(map(int, domain.labels))
    try:
        corrected = correction(table, values)
    except DesignError:
        return answers
    modes = [values.index(int(answer.mode)) for answer in answers]
    # Shape (published, answers): the error of g where the mode of each is the true answer.
    errors = corrected.unbiased[None, :] - np.array(values, dtype=np.float64)[modes][:, None]
    squares = (np.exp(table[modes]) * errors**2).sum(axis=1)
    estimates = []
    for answer, code, square in zip(answers, published.tolist(), squares, strict=True):
        estimates.append(
            replace(
                answer,
                unbiased=float(corrected.unbiased[code]),
                variance=float(corrected.variance[code]),
                standard_error=float(np.sqrt(square)),
            )
        )
    return estimates


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
    # fsum, so that the sum does not depend on the order of the cells.
    return math.fsum(unbiased.tolist()), math.sqrt(variance)


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
        SpecError: no such query, a mechanism that is not public, joint answers, or a level not
            between 0 and 1.
        DesignError: more than 2000 answers.
        VerificationError: a file is missing, is not what SHA256SUMS says, or does not fit.
    """
    check_level(level)
    return estimates_of(open_public(public), query, level)


def estimates_of(release: PublicRelease, query: str, level: float) -> Estimates:
    """As :func:`estimate_release`, of a folder that is open."""
    made = by_name(release.made.queries)
    if query in names_of(release.tabulations):
        raise SpecError(
            "query",
            f"the cells of {query!r} are correlated by least squares, and their covariances are "
            "not published; open(…).table(level, margin) has every sum with an interval of its own",
        )
    # The type first: a list has no hash, and the dictionary would raise another error.
    if not isinstance(query, str) or query not in made:
        raise SpecError("query", no_such_query(query, release))
    found = _estimated(release, made[query], level)
    return replace(found, shared=shared_words(release.spec, release.query(query)))


def _estimated(release: PublicRelease, made: forms.MadeQuery, level: float) -> Estimates:
    query, mechanism = release.query(made.name), release.mechanism(made)
    if mechanism is None:
        raise SpecError(
            "query",
            f"the mechanism of {made.name!r} is instance-specific and not public; choose a query "
            "with a worst-case guarantee",
        )
    domain = query.answers
    if not isinstance(domain, AnswerDomain):
        raise SpecError(
            "query",
            f"{made.name!r} has joint answers, which have no order; use likelihood with its "
            "mechanism, whose answers are the column answer_code",
        )
    if isinstance(query, OnStatisticQuery):
        if isinstance(mechanism, NoisySums):
            return estimate_sums(release, query, mechanism, level)
        if isinstance(mechanism, HistogramTop) and mechanism.counts is Published.ALL:
            return estimate_histogram(release, query, mechanism, level)
    if not isinstance(mechanism, Mechanism):
        raise SpecError(
            "query",
            f"the answers of {made.name!r} were selected by their statistic; the report says how "
            "near they are",
        )
    is_wide = isinstance(mechanism, IntegerMechanism) and domain.size > MOST_ANSWERS
    table = np.empty(0) if is_wide else likelihood(mechanism)
    keys, drawn = _released(release, query, ("answer_code",))
    codes = drawn[:, 0]
    if isinstance(mechanism, IntegerMechanism) and is_wide:
        estimates = estimate_wide(codes, mechanism, domain, level=level)
    else:
        estimates = estimate(codes, table, domain, level=level)
    bins = getattr(query, "domain", None)
    if isinstance(bins, Bins):
        estimates = _to_bins(estimates, domain, bins, is_real=query.kind == "mean")
    return replace(estimates, by=tuple(query.by), keys=keys)


def _to_bins(
    estimates: Estimates, domain: AnswerDomain, declared: Bins, *, is_real: bool
) -> Estimates:
    """The estimates with intervals of whole bins, from the begin of one to the end of another."""
    bins = declared.bins
    begins = list(map(int, domain.labels))
    ends = ends_of_bins(bins, range(bins.count), is_real=is_real)
    by_label = dict(zip(begins, ends, strict=True))
    # A column has one type: with an open end all are floats.
    is_open = any(cell.high == begins[-1] for cell in estimates.cells)
    cells = []
    for cell in estimates.cells:
        if cell.low is None or cell.high is None:
            cells.append(cell)
            continue
        (low, _), (_, high) = by_label[int(cell.low)], by_label[int(cell.high)]
        end = math.inf if high is None else high
        cells.append(
            replace(
                cell,
                low=float(low) if is_real else low,
                high=float(end) if is_real or is_open else end,
            )
        )
    return replace(estimates, cells=tuple(cells))


def estimate_wide(
    codes: Codes, mechanism: IntegerMechanism, domain: AnswerDomain, *, level: float = 0.95
) -> Estimates:
    """As :func:`estimate` with a uniform prior, for noise on the integers and any domain.

    All answers beyond the reach of both ends fare alike, so one of them stands for all. Where those
    within reach are too many for a table too, what is published stands for the posterior.
    """
    check_level(level)
    labels, has_ends = domain.labels, domain.size < MOST_IN_ORDER
    narrow, near = mechanism.narrowed(codes)
    if has_ends and narrow.size <= MOST_ANSWERS and isinstance(labels, range):
        found = estimate(near, likelihood(narrow), labels[: narrow.size], level=level)
        found = _moved(found, labels.step * (codes - near))
    else:
        found = _of_noise_alone(codes, mechanism, domain, has_ends=has_ends)
    ends = in_codes(domain, mechanism, codes, level)
    if ends is None:
        return found
    cells = []
    for cell, low, high in zip(found.cells, ends.low.tolist(), ends.high.tolist(), strict=True):
        cells.append(replace(cell, low=int(labels[low]), high=int(labels[high])))
    return replace(found, cells=tuple(cells))


def _moved(estimates: Estimates, by: Codes) -> Estimates:
    """The estimates of answers that are higher by so much each, and fare alike."""
    cells = []
    for cell, more in zip(estimates.cells, by.tolist(), strict=True):
        values: dict[str, Any] = {}
        for name in ("published", "mode", "posterior_mean", "unbiased"):
            value = getattr(cell, name)
            values[name] = None if value is None else value + more
        cells.append(replace(cell, **values))
    own = estimates.noise
    if isinstance(own, TableNoise):
        own = replace(own, moved=by.astype(np.float64))
    return replace(estimates, cells=tuple(cells), noise=own)


def _of_noise_alone(
    codes: Codes, mechanism: IntegerMechanism, domain: AnswerDomain, *, has_ends: bool
) -> Estimates:
    """The estimates of wide noise. Without ends what is published less its mean is unbiased."""
    noise, step = mechanism.noise, int(domain.labels[1]) - int(domain.labels[0])
    variance, cells = step**2 * (float(noise.moment(2)) - noise.mean**2), []
    for code in codes.tolist():
        label = int(domain.labels[code])
        cell = Estimate(label, label, standard_error=math.sqrt(variance))
        if not has_ends:
            cell = replace(cell, unbiased=label - step * noise.mean, variance=variance)
        cells.append(cell)
    own: CellNoise = ClampedNoise(codes, mechanism, domain)
    if not has_ends:
        own = AddedNoise(domain.numbers(codes), noise, step)
    return Estimates(tuple(cells), (), ((),) * len(cells), own)


def estimate_sums(
    release: PublicRelease, query: OnStatisticQuery, mechanism: NoisySums, level: float
) -> Estimates:
    """The estimates of sums and means whose noise is on the sums, with confidence intervals."""
    keys, sums = _released(release, query, query.outcome_columns)
    labels, codes = query.answers.labels, query.answer_codes(sums)[0]
    noise, deviation = mechanism.noise, math.sqrt(mechanism.noise.moment(2))
    ends = around_sums(query, mechanism, sums, level)
    if mechanism.sums == 1:
        errors = np.full(len(sums), deviation)
        values = sums[:, 0].astype(np.float64)
    else:
        bounds = query.sum_bounds
        wide = bounds[1] - bounds[0]
        # Noise can leave no rows, or fewer than none: a mean is that of one row at least.
        share = np.clip(sums[:, 0] / np.maximum(sums.sum(axis=1), wide), 0, 1)
        spread = np.sqrt(share**2 + (1 - share) ** 2) * wide * deviation
        errors = np.minimum(spread / np.maximum(sums.sum(axis=1), wide), wide)
        values = mean_of_sums(query, sums)
    cells = []
    columns = [own.tolist() for own in (codes, ends.low, ends.high, errors, values)]
    for code, low, high, error, value in zip(*columns, strict=True):
        estimate = Estimate(
            labels[code], labels[code], low, high, value=value, standard_error=error
        )
        if mechanism.sums == 1:
            estimate = replace(estimate, unbiased=value, variance=deviation**2)
        cells.append(estimate)
    own: CellNoise = MeanNoise(sums, noise, query.sum_bounds)
    if mechanism.sums == 1:
        own = AddedNoise(sums[:, 0].astype(np.float64), noise)
    return Estimates(tuple(cells), tuple(query.by), keys, own)


def estimate_histogram(
    release: PublicRelease, query: OnStatisticQuery, mechanism: HistogramTop, level: float
) -> Estimates:
    """The estimates of the counts of a published histogram, with confidence intervals.

    A cell of the estimates is a cell of the query and a category, which is the last value of its
    key.
    """
    if query.histogram_of is None:
        raise VerificationError("spec.yaml", "histogram", "none", "true")
    keys, noisy = _released(release, query, query.count_columns)
    noise = mechanism.histogram.noise
    reach, variance = noise.radius(level), float(noise.moment(2))
    cells, long_keys = [], []
    for key, counts in zip(keys, noisy.tolist(), strict=True):
        for label, count in zip(query.answers.labels, counts, strict=True):
            long_keys.append((*key, str(label)))
            # A true count is not negative; the noisy one stays as it is, because it is unbiased.
            low, high = max(0, count - reach), max(0, count + reach)
            cells.append(
                Estimate(
                    count,
                    max(0, count),
                    low,
                    high,
                    unbiased=float(count),
                    variance=variance,
                    standard_error=math.sqrt(variance),
                )
            )
    own = AddedNoise(noisy.reshape(-1).astype(np.float64), noise)
    return Estimates(tuple(cells), (*query.by, query.histogram_of), tuple(long_keys), own)


def zero_chances(release: PublicRelease, made: forms.MadeQuery) -> Floats | None:
    """The chance of each cell that its true answer is 0; None where there is no estimate.

    Raises:
        VerificationError: a file is missing, is not what SHA256SUMS says, or does not fit.
    """
    query, mechanism = release.query(made.name), release.mechanism(made)
    if not isinstance(mechanism, Mechanism) or not isinstance(query.answers, AnswerDomain):
        return None
    _, codes = _released(release, query, ("answer_code",))
    return chances_of_zero(query, mechanism, codes[:, 0])


def _released(release: PublicRelease, query: Query, drawn: tuple[str, ...]) -> tuple[Keys, Codes]:
    """The keys, and the columns ``drawn``, shape (cells, columns)."""
    table = release.table(query.name)
    for name in (*query.by, *drawn):
        if name not in table.column_names:
            file = f"data/{query.name}.parquet"
            raise VerificationError(file, "columns", "no such column", repr(name))
    columns = table.select(query.by).to_pydict().values()
    numbers = []
    for name in drawn:
        numbers.append(np.asarray(numbers_of(table.column(name)), dtype=np.int64))
    # Without key columns there is nothing to zip, and still a key for each row: the empty one.
    keys = tuple(zip(*columns, strict=True)) if columns else ((),) * table.num_rows
    return keys, np.stack(numbers, axis=1)
