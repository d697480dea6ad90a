"""The distribution of what a query publishes of one cell, measured on the code that draws it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, chain
from math import comb
from typing import TypeAlias

import numpy as np

from dp_release_audit.words import (
    Drawing,
    ExhaustedError,
    IrregularError,
    Law,
    Limits,
    Outcome,
    Stream,
    enumerated,
)
from release.at_work import Answered, AtWork
from release.exact.domain import Codes
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.mechanism import Mechanism
from release.exact.sampling import RandomBytes
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.quantile_tree import QuantileTree
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.histogram import HistogramTop, NoisyHistogram

Truth: TypeAlias = tuple[int, ...]
AnyMechanism: TypeAlias = Mechanism | StatisticMechanism
NoisyColumns: TypeAlias = NoisySums | NoisyHistogram

DRAWS = 20_000
"""So often a cell is drawn where its words cannot be enumerated."""

DRAWS_ALONE = 5000
"""So often where the mechanism states no chances either."""

_MOVED_DRAWS = 4000
_MOST_PATHS = 20_000
_DEVIATIONS = 7

_ROUNDED = Fraction(1, 2**30)
"""What a chance in floating point may be off by: above all rounding, below any mistake."""

_TIED = Fraction(1, 2**56)
"""The chance that a word ties with a limit, and others decide."""


@dataclass(frozen=True)
class CellLaw:
    """Independent parts of what is published of a cell: outcomes are one of each."""

    parts: tuple[Law, ...]

    @property
    def how(self) -> str:
        """Where the chances are from."""
        return max((part.how for part in self.parts), default="enumerated")


class Laws:
    """Measures distributions, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Truth], CellLaw] = {}
        # Held, so that no other mechanism gets the identity of one.
        self._held: list[AtWork] = []
        self._columns: dict[tuple[int, int], tuple[Truth, Law]] = {}
        self._limits: dict[tuple[int, int], Limits] = {}
        self._failed: dict[int, UnknownLawError] = {}
        self._exhausted: set[int] = set()

    def of(self, run: AtWork, truth: Truth) -> CellLaw:
        """The law of a cell whose true answer is ``truth``.

        Raises:
            WrongDrawError: the code does not draw what the mechanism says.
            UnmeasuredError: to find out would take too much work.
        """
        mechanism = id(run.made)
        # It would fail for the next answer as well, and after as much work.
        if mechanism in self._failed:
            raise self._failed[mechanism]
        key = mechanism, truth
        if key not in self._known:
            self._held.append(run)
            try:
                self._known[key] = self._measured(run, truth)
            except UnknownLawError as error:
                self._failed[mechanism] = error
                raise
        return self._known[key]

    @property
    def count(self) -> int:
        """How many were measured."""
        return len(self._known)

    @property
    def outcomes(self) -> int:
        """How many outcomes they have."""
        number = 0
        for law in self._known.values():
            for part in law.parts:
                number += len(part.chances)
        return number

    def _measured(self, run: AtWork, truth: Truth) -> CellLaw:
        mechanism = run.made.mechanism
        if isinstance(mechanism, Mechanism):
            return CellLaw((self._of_code(run, mechanism, truth[0]),))
        if isinstance(mechanism, NoisySums):
            return self._of_columns(run, mechanism, truth)
        if isinstance(mechanism, HistogramTop):
            _check_reads_noisy_alone(mechanism, truth)
            # What is read off the noisy counts says no more than they do.
            return self._of_columns(run, mechanism.histogram, truth)
        if isinstance(mechanism, QuantileTree):
            _check_reads_noisy_alone(mechanism, truth)
        return CellLaw((_of_statistic(mechanism, truth),))

    def _enumerated(self, run: AtWork, column: int, drawing: Drawing, hints: Sequence[int]) -> Law:
        key = id(run.made), column
        law, self._limits[key] = enumerated(drawing, hints, self._limits.get(key))
        return law

    def _of_code(self, run: AtWork, mechanism: Mechanism, code: int) -> Law:
        def drawing(draws: int, source: RandomBytes) -> Codes:
            codes = np.full(draws, code, dtype=np.int64)
            # The stage itself is run, and not only the mechanism that it should use.
            drawn = replace(run, answered=Answered(None, codes)).draw(source)
            if drawn is None:
                raise WrongDrawError("the draw left no noisy answers")
            return drawn.reshape(draws, -1)

        stated, hints = _row(mechanism, code), _hints(mechanism, code)
        # Noise with tails has no row of integers; of other rows only ties of words are not seen.
        has_tails = isinstance(mechanism, IntegerMechanism)
        if id(run.made) in self._exhausted:
            return _sampled(drawing, stated)
        try:
            if has_tails:
                law = self._enumerated(run, 0, drawing, hints)
            else:
                # No limits of another answer: they may be a little off, which no test would show.
                law, _ = enumerated(drawing, hints)
        except IrregularError as error:
            if isinstance(error, ExhaustedError):
                self._exhausted.add(id(run.made))
            return _sampled(drawing, stated)
        if stated is not None:
            # Of a total of 62 bits or fewer one word decides, so every chance is exact.
            exact = Fraction(0) if mechanism.total <= 2**62 else _TIED
            _check_stated(law, stated, _ROUNDED if has_tails else exact)
        return law

    def _of_columns(self, run: AtWork, mechanism: NoisyColumns, truth: Truth) -> CellLaw:
        """The laws of statistics each of which has noise of its own."""
        statistics = np.array(truth, dtype=np.int64)
        laws = []
        noise = getattr(mechanism, "noise", None)
        hints = _places(noise) if isinstance(noise, IntegerNoise) else []
        for column in range(len(truth)):

            def drawing(draws: int, source: RandomBytes, column: int = column) -> Codes:
                drawn = mechanism.draw(np.tile(statistics, (draws, 1)), source)
                return drawn[:, column : column + 1]

            earlier = self._columns.get((id(run.made), column))
            # Additive noise has one law up to its center: to enumerate it once is enough.
            if earlier is not None and _is_moved(mechanism, earlier[0], truth, column):
                laws.append(earlier[1].shifted(truth[column] - earlier[0][column]))
                continue
            try:
                law = self._enumerated(run, column, drawing, hints if not column else ())
                if isinstance(noise, IntegerNoise):
                    _check_stated(law, _masses(noise, truth[column], law), _ROUNDED)
                laws.append(law)
                self._columns[id(run.made), column] = truth, law
            except ExhaustedError as error:
                raise UnmeasuredError(str(error)) from error
            except IrregularError as error:
                raise WrongDrawError(f"the noise of statistic {column + 1}: {error}") from error
        used = Counter(chain.from_iterable(law.words for law in laws))
        if any(times > 1 for times in used.values()):
            raise WrongDrawError("two statistics of a cell share their noise")
        return CellLaw(tuple(laws))


class _PlannedNoise:
    """Stands for the noise of a mechanism, and returns what was planned, call by call."""

    def __init__(self, calls: Sequence[Codes]) -> None:
        self._calls = list(calls)

    def draw(self, count: int, source: RandomBytes) -> Codes:
        """The noise of the next call."""
        if not self._calls or self._calls[0].size != count:
            raise WrongDrawError("the noise is not drawn once for each noisy count")
        return self._calls.pop(0).reshape(-1)

    def check_used(self) -> None:
        """Refuse a draw that left out noise."""
        if self._calls:
            raise WrongDrawError("a noisy count is published without its noise")


def _check_reads_noisy_alone(mechanism: HistogramTop | QuantileTree, truth: Truth) -> None:
    """The draw is run with other true counts under the same noisy ones, which it may read alone.

    Raises:
        WrongDrawError: what is published depends on a true count beside its noise.
    """
    # A tree draws so many counts at once.
    draws = max(1, min(_MOVED_DRAWS, 2**20 // len(truth)))
    counts = np.tile(np.array(truth, dtype=np.int64), (draws, 1))
    own = mechanism.histogram if isinstance(mechanism, HistogramTop) else mechanism
    stream, noise = Stream("planned"), []
    for noised in _noised(own, counts):
        noise.append(own.noise.draw(noised.size, stream).reshape(noised.shape))
    published = _with_noise(mechanism, counts, noise)
    # Ties of noisy counts come about often in so many draws; other orders break them otherwise.
    ascending = np.tile(np.arange(len(truth)), (draws, 1))
    for others in (counts[:, ::-1], np.roll(counts, 1, axis=1), ascending):
        moved = []
        for drawn, here, there in zip(
            noise, _noised(own, counts), _noised(own, others), strict=True
        ):
            moved.append(drawn + here - there)
        if not np.array_equal(published, _with_noise(mechanism, others, moved)):
            raise WrongDrawError("what is published depends on a true count beside its noise")


def _noised(mechanism: NoisyHistogram | QuantileTree, counts: Codes) -> list[Codes]:
    """The counts that get noise, in the order of their draws, shape (draws, counts) each."""
    if not isinstance(mechanism, QuantileTree) or mechanism.block == 1:
        return [counts]
    starts = np.arange(0, mechanism.candidates, mechanism.block)
    return [counts, np.add.reduceat(counts, starts, axis=1)]


def _with_noise(
    mechanism: HistogramTop | QuantileTree, counts: Codes, noise: Sequence[Codes]
) -> Codes:
    """What the mechanism publishes where its noise is this."""
    planned = _PlannedNoise(noise)
    at_work: StatisticMechanism
    if isinstance(mechanism, HistogramTop):
        histogram = replace(mechanism.histogram)
        noisy, at_work = vars(histogram), replace(mechanism, histogram=histogram)
    else:
        at_work = replace(mechanism)
        noisy = vars(at_work)
    # A cached property is read from the instance, which is a copy here.
    noisy["noise"] = planned
    published = at_work.draw(counts, Stream("planned"))
    planned.check_used()
    return published


class UnknownLawError(Exception):
    """There is no law of a cell."""


class WrongDrawError(UnknownLawError):
    """The code does not draw what the mechanism says."""


class UnmeasuredError(UnknownLawError):
    """To find the law would take more work than an audit puts into one draw."""


def _masses(noise: IntegerNoise, truth: int, law: Law) -> dict[Outcome, Fraction]:
    """The stated chances of a law's outcomes, rounded by far less than :data:`_ROUNDED`."""
    masses: dict[Outcome, Fraction] = {}
    # Exact masses far out in a tail have very many digits.
    for (own,) in law.chances:
        masses[(own,)] = Fraction(noise.above(own - truth - 1) - noise.above(own - truth))
    return masses


def _is_moved(mechanism: NoisyColumns, earlier: Truth, truth: Truth, column: int) -> bool:
    """Whether the noise of a column is the same for another true statistic, draw by draw."""
    noise = []
    for own in (earlier, truth):
        statistics = np.tile(np.array(own, dtype=np.int64), (_MOVED_DRAWS, 1))
        noise.append(mechanism.draw(statistics, Stream("moved"))[:, column] - own[column])
    return np.array_equal(noise[0], noise[1])


def _check_stated(law: Law, stated: Mapping[Outcome, Fraction], rounded: Fraction) -> None:
    """A draw that keeps the guarantee but is not the published one is wrong as well.

    Raises:
        WrongDrawError: an outcome has another chance than the mechanism states.
    """
    allowed = law.rest + rounded
    for outcome, chance in law.chances.items():
        own = stated.get(outcome, Fraction(0))
        if abs(chance - own) > allowed:
            raise WrongDrawError(
                f"outcome {outcome} has the chance {float(chance):.12g}, and the mechanism states "
                f"{float(own):.12g}"
            )


def _row(mechanism: Mechanism, code: int) -> dict[Outcome, Fraction] | None:
    """The stated chances; None of so many answers that a row would not fit into memory."""
    if mechanism.answers > 10**5:
        return None
    row = mechanism.row(code).tolist()
    return {(at,): Fraction(weight, mechanism.total) for at, weight in enumerate(row) if weight}


def _hints(mechanism: Mechanism, code: int) -> list[int]:
    """Words near which the mechanism says that the outcome changes."""
    noise = getattr(mechanism, "noise", None)
    if isinstance(noise, IntegerNoise):
        return _places(noise)
    if mechanism.answers > 2000:
        return []
    weights = mechanism.row(code).tolist() if mechanism.modular_noise is None else []
    if mechanism.modular_noise is not None:
        weights = mechanism.modular_noise.weights.tolist()
    return [bound * 2**64 // mechanism.total for bound in accumulate(weights)]


def _places(noise: IntegerNoise) -> list[int]:
    if noise.high - noise.low > 2000:
        return []
    weights: list[int] = []
    for length, weight in noise.runs:
        weights += [weight] * length
    return [bound * 2**64 // noise.total for bound in accumulate(weights)]


def _of_statistic(mechanism: StatisticMechanism, truth: Truth) -> Law:
    statistics = np.array(truth, dtype=np.int64)

    def drawing(draws: int, source: RandomBytes) -> Codes:
        return mechanism.draw(np.tile(statistics, (draws, 1)), source)

    stated = _stated(mechanism, statistics)
    if stated is not None or isinstance(mechanism, JointQuantiles | QuantileTree):
        # The first begin anew until they accept something, so their words lie nowhere special;
        # a tree has too many noises to enumerate.
        return _sampled(drawing, stated)
    try:
        return enumerated(drawing)[0]
    except IrregularError:
        return _sampled(drawing, None)


def _stated(mechanism: StatisticMechanism, statistics: Codes) -> dict[Outcome, Fraction] | None:
    """The chances as the mechanism states them, where it does."""
    if isinstance(mechanism, JointQuantiles):
        positions = mechanism.candidates * mechanism.sublevels
        if comb(positions + mechanism.outputs - 1, mechanism.outputs) > _MOST_PATHS:
            return None
    chances = getattr(mechanism, "chances", None)
    if chances is None:
        return None
    stated: Mapping[Outcome, Fraction] | Sequence[Fraction] = chances(statistics)
    if isinstance(stated, Mapping):
        return dict(stated)
    return {(code,): chance for code, chance in enumerate(stated)}


def _sampled(drawing: Drawing, stated: dict[Outcome, Fraction] | None) -> Law:
    """The stated chances, tested by many draws; without them the shares of these draws.

    Raises:
        WrongDrawError: so many deviations from what is stated do not come about by chance.
    """
    draws = DRAWS if stated is not None else DRAWS_ALONE
    drawn = drawing(draws, Stream("sampled"))
    counts = Counter(map(tuple, drawn.tolist()))
    if stated is None:
        shares = {outcome: Fraction(count, draws) for outcome, count in counts.items()}
        slack = Fraction(_DEVIATIONS * (int(draws**0.5) + 1), draws)
        return Law(shares, Fraction(0), "sampled alone", slack)
    for outcome in stated.keys() | counts.keys():
        chance, count = float(stated.get(outcome, 0)), counts[outcome]
        allowed = _DEVIATIONS * (draws * chance * (1 - chance)) ** 0.5 + _DEVIATIONS
        if abs(count - draws * chance) > allowed:
            raise WrongDrawError(
                f"outcome {outcome} was drawn {count} times of {draws}, at a stated chance of "
                f"{chance:.6g}"
            )
    return Law(stated, 1 - sum(stated.values(), Fraction(0)), "sampled")
