"""The exact output distribution of a draw, from the code that draws.

A draw reads uniform 64-bit words, always so many of them. Between a few limits a word changes
nothing: the limits are found by bisection, so the words fall into boxes, the draw is run once on
each, and the chance of a box is a rational. Where that cannot be, :class:`IrregularError` says so,
and where it would take too much work, :class:`ExhaustedError`.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.sampling import RandomBytes

Words: TypeAlias = NDArray[np.uint64]
Outcome: TypeAlias = tuple[int, ...]
Drawing: TypeAlias = Callable[[int, RandomBytes], Codes]
"""So many independent draws of one cell; shape (draws, outputs)."""

MOST_BOXES = 2**17
_FEW_BOXES = 2**10
_DECIDING = 3
LEAST_BOX = 2.0**-50
"""Boxes of smaller chance are left out, and count against the program."""

_WORD = 64
_LAST = 2**_WORD - 1
_MOST_WORDS = 2000
_MOST_LIMITS, _MOST_LATER = 5000, 64
_MOST_ROUNDS = 12
_ROWS_AT_ONCE = 4096
_CONTEXTS = 8
_TESTED = 1500


class IrregularError(Exception):
    """The words of a draw do not fall into a few boxes."""


class ExhaustedError(IrregularError):
    """The work that an audit puts into one draw is used up: this says nothing against the draw."""


@dataclass(frozen=True)
class Law:
    """The chance of each outcome; ``rest`` is that of all which are left out.

    ``how`` says where it is from: "enumerated", or with "sampled" only tested by draws.
    ``slack`` is what the chances of all outcomes together may be off by.
    """

    chances: dict[Outcome, Fraction]
    rest: Fraction
    how: str
    slack: Fraction = Fraction(0)
    words: frozenset[int] = frozenset()
    """The places of the words on which the outcome depends."""

    @cached_property
    def logs(self) -> dict[Outcome, float]:
        """The natural logarithm of each chance above 0."""
        logs = {}
        for outcome, chance in self.chances.items():
            if chance:
                logs[outcome] = math.log(chance.numerator) - math.log(chance.denominator)
        return logs

    def shifted(self, step: int) -> Law:
        """The law of every outcome plus ``step``."""
        chances: dict[Outcome, Fraction] = {}
        for (own,), chance in self.chances.items():
            chances[(own + step,)] = chance
        return replace(self, chances=chances)


class Stream:
    """A fixed source of bytes that look random; it keeps the sizes of what was asked for."""

    def __init__(self, name: str, changed: tuple[int, int] | None = None) -> None:
        """``changed`` replaces the word at a place by another."""
        self._seed = hashlib.sha256(name.encode()).digest()
        self._changed = changed
        self.sizes: list[int] = []

    def __call__(self, size: int) -> bytes:
        """So many bytes."""
        start = sum(self.sizes)
        self.sizes.append(size)
        data = bytearray(hashlib.shake_256(self._seed + start.to_bytes(8, "little")).digest(size))
        if self._changed is not None:
            place = 8 * self._changed[0] - start
            if 0 <= place <= size - 8:
                data[place : place + 8] = self._changed[1].to_bytes(8, "little")
        return bytes(data)


class _Chosen:
    """Hands out chosen words, one row of them for each draw."""

    def __init__(self, layout: Sequence[tuple[int, int]], rows: Words) -> None:
        self._layout, self._rows = list(layout), rows
        self._start = 0

    def __call__(self, size: int) -> bytes:
        draws = len(self._rows)
        if not self._layout or size != 8 * draws * prod(self._layout[0]):
            # A tie of a word with its limit, of chance 2^-64, asks for more.
            if size > _WORD:
                raise IrregularError("draws take words in several ways")
            return b"\xff" * size
        outer, inner = self._layout.pop(0)
        own = self._rows[:, self._start : self._start + outer * inner]
        self._start += outer * inner
        ordered = own.reshape(draws, outer, inner).transpose(1, 0, 2)
        return ordered.astype("<u8").tobytes()


class _Draw:
    """A draw as a function of its words."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        sizes = Stream("layout")
        drawing(2, sizes)
        if any(size % 16 for size in sizes.sizes):
            raise IrregularError("draws take an odd number of words")
        counts = [size // 16 for size in sizes.sizes]
        self.words = sum(counts)
        if not self.words:
            raise IrregularError("a draw takes no words")
        if self.words > _MOST_WORDS:
            raise ExhaustedError(f"a draw takes {self.words} words, of {_MOST_WORDS} at most")
        self._layout = self._tried(counts)

    def _tried(self, counts: list[int]) -> list[tuple[int, int]]:
        """How the words of several draws lie within one request: found by draws one by one."""
        rows = random_words("layouts", 6, self.words)
        # One draw has its words in the order of the requests, however several would share them.
        single = [(count, 1) for count in counts]
        alone = [self._drawing(1, _Chosen(single, row[None])) for row in rows]
        expected = np.concatenate(alone)
        for inner in range(1, max(counts) + 1):
            layout = []
            for count in counts:
                layout.append((count // inner, inner) if count % inner == 0 else (count, 1))
            try:
                if np.array_equal(self._drawing(len(rows), _Chosen(layout, rows)), expected):
                    return layout
            except IrregularError:
                continue
        raise IrregularError("draws take their words in no order")

    def __call__(self, rows: Words) -> Codes:
        """The outcome for each row of words; shape (rows, outputs)."""
        parts = []
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            own = rows[start : start + _ROWS_AT_ONCE]
            # Two draws at least: a request of one could not be told from that of a tie.
            padded = np.concatenate([own, own]) if len(own) == 1 else own
            parts.append(self._drawing(len(padded), _Chosen(self._layout, padded))[: len(own)])
        return np.concatenate(parts)


def random_words(name: str, rows: int, columns: int) -> Words:
    """Fixed words that look random."""
    data = np.frombuffer(Stream(name)(8 * rows * columns), dtype="<u8")
    return data.astype(np.uint64).reshape(rows, columns)


Limits: TypeAlias = list[list[int]]
"""For each word of a draw those from which the outcome is another."""


def enumerated(
    drawing: Drawing, hints: Sequence[int] = (), earlier: Limits | None = None
) -> tuple[Law, Limits]:
    """The exact distribution of a draw, and the limits of its words.

    ``hints`` are words near which the first word may have a limit. With ``earlier`` limits, those
    of another true answer, no other ones are looked for where they pass the test.

    Raises:
        IrregularError: words that do not fall into boxes.
        ExhaustedError: too many words, limits or boxes.
    """
    draw = _Draw(drawing)
    limits: Limits = []
    if earlier is not None and len(earlier) == draw.words:
        with contextlib.suppress(IrregularError):
            boxes = _Boxes(earlier)
            boxes.test(draw, 4 * _TESTED)
            return boxes.law(draw, random_words("base", 1, draw.words)[0]), earlier
    base = random_words("base", 1, draw.words)
    limits += _limits(draw, [0], _contexts(base, limits), _probes(hints, 512))
    later = range(1, draw.words)
    limits += _limits(draw, later, _contexts(base, limits), _probes((), 32))
    if earlier is not None and len(earlier) == draw.words:
        for own, before in zip(limits, earlier, strict=True):
            own[:] = sorted({*own, *before})
    boxes = _Boxes(limits)
    boxes.test(draw, _TESTED)
    return boxes.law(draw, base[0]), limits


def _contexts(base: Words, limits: list[list[int]]) -> Words:
    """Rows of words in which one is varied: some in every box of the first."""
    firsts = [0, *limits[0]] if limits else [int(base[0, 0])]
    step = -(-len(firsts) // _CONTEXTS)
    rows = []
    for first in {*firsts[::step], firsts[-1]}:
        for fill in _fills(base[0]):
            row = fill.copy()
            row[0] = first
            rows.append(row)
    return np.stack(rows)


def _fills(base: Words) -> list[Words]:
    """Rows of words among which another word shows: of random, least, largest and mixed ones.

    Published answers may be fewer than drawn ones, so that the last digit of a small or a large
    number hides where two of them are published as one. Mixed words make numbers in between.
    """
    least, largest = np.full_like(base, 1), np.full_like(base, _LAST - 1)
    is_even = np.arange(len(base)) % 2 == 0
    mixed = [np.where(is_even, least, largest), np.where(is_even, largest, least)]
    return [base, least, largest, *mixed]


def _probes(hints: Sequence[int], regular: int) -> list[int]:
    """Words at which a draw is looked at: regular ones, all sizes next to both ends, and hints."""
    probes = {step * (2**_WORD // regular) for step in range(regular)}
    for bit in range(_WORD):
        probes |= {2**bit - 1, 2**bit, _LAST - 2**bit, _LAST - 2**bit + 1}
    for hint in hints:
        probes |= {hint - 1, hint}
    return sorted(probe for probe in {*probes, 0, _LAST} if 0 <= probe <= _LAST)


@dataclass(frozen=True)
class _Stretch:
    """Words at a place, from one to another that has another outcome, in one context."""

    place: int
    context: int
    low: int
    high: int


def _limits(
    draw: _Draw, places: Sequence[int], contexts: Words, probes: list[int]
) -> list[list[int]]:
    """For each place the words from which the outcome is another, in any of the contexts.

    Raises:
        ExhaustedError: one of them has too many limits.
    """
    waiting: list[_Stretch] = []
    for place in places:
        waiting += _differing(draw, place, contexts, probes)
    limits: dict[int, set[int]] = {place: set() for place in places}
    for _ in range(_MOST_ROUNDS):
        if not waiting:
            return [sorted(limits[place]) for place in places]
        # Those of all places at once: a draw of few rows costs as much as one of many.
        crossings = _first_limits(draw, contexts, waiting)
        for stretch, crossing in zip(waiting, crossings, strict=True):
            limits[stretch.place].add(crossing)
        for place, own in limits.items():
            _check_limits(place, len(own))
        # Between the limit that was found and the end there may be others.
        after = [replace(own, low=at) for own, at in zip(waiting, crossings, strict=True)]
        ends = _at(draw, contexts, after, [own.low for own in after])
        goals = _at(draw, contexts, after, [own.high for own in after])
        open_still = (ends != goals).any(axis=1)
        waiting = [own for own, is_open in zip(after, open_still, strict=True) if is_open]
    raise ExhaustedError("a word has too many limits")


def _differing(draw: _Draw, place: int, contexts: Words, probes: list[int]) -> list[_Stretch]:
    """The stretches from one probe to the next at whose ends the outcomes differ."""
    rows = np.repeat(contexts, len(probes), axis=0)
    rows[:, place] = np.tile(np.array(probes, dtype=np.uint64), len(contexts))
    outcomes = draw(rows).reshape(len(contexts), len(probes), -1)
    differs = (outcomes[:, 1:] != outcomes[:, :-1]).any(axis=2)
    _check_limits(place, int(differs.any(axis=0).sum()))
    return [
        _Stretch(place, int(context), probes[number], probes[number + 1])
        for context, number in np.argwhere(differs)
    ]


def _check_limits(place: int, limits: int) -> None:
    most = _MOST_LATER if place else _MOST_LIMITS
    if limits > most:
        raise ExhaustedError(f"a word has more than {most} limits")


def _at(draw: _Draw, contexts: Words, stretches: list[_Stretch], words: list[int]) -> Codes:
    """The outcome of each stretch's context with a word at its place."""
    rows = contexts[[own.context for own in stretches]]
    places = [own.place for own in stretches]
    rows[np.arange(len(rows)), places] = np.array(words, dtype=np.uint64)
    return draw(rows)


def _first_limits(draw: _Draw, contexts: Words, between: list[_Stretch]) -> list[int]:
    """For each stretch the least word with another outcome than its first, by bisection."""
    low = [own.low for own in between]
    high = [own.high for own in between]
    begin = _at(draw, contexts, between, low)
    # Invariant of each stretch: at its low the outcome is that of its first word, at its high
    # another.
    while any(last - first > 1 for first, last in zip(low, high, strict=True)):
        middle = [(first + last) // 2 for first, last in zip(low, high, strict=True)]
        reached = _at(draw, contexts, between, middle)
        for number, is_same in enumerate((reached == begin).all(axis=1).tolist()):
            (low if is_same else high)[number] = middle[number]
    return high


def _stretches(limits: list[int]) -> list[int]:
    """How many words lie between each two limits of a word that follow each other."""
    return [end - start for start, end in pairwise([0, *limits, 2**_WORD])]


Fixed: TypeAlias = dict[int, int]
"""Places of words, each with the number of a stretch."""


class _Boxes:
    """Products of stretches of words within which the outcome does not change."""

    def __init__(self, limits: list[list[int]]) -> None:
        self.starts = [np.array([0, *own], dtype=np.uint64) for own in limits]
        self.sizes = [_stretches(own) for own in limits]
        # Within a stretch: at its end a word may tie with its limit, and take others.
        self.inside = []
        for starts, sizes in zip(self.starts, self.sizes, strict=True):
            halves = np.array([size // 2 for size in sizes], dtype=np.uint64)
            self.inside.append(starts + halves)

    def test(self, draw: _Draw, count: int) -> None:
        """Hold the boxes against ``count`` rows of words that look random, some with extreme ones.

        Raises:
            IrregularError: the outcome changes within a box.
        """
        rows = random_words("test", count, len(self.starts))
        for number in range(count // 4):
            rows[number, number % rows.shape[1]] = (0, _LAST)[number // rows.shape[1] % 2]
        inside = rows.copy()
        for place, starts in enumerate(self.starts):
            box = np.searchsorted(starts, rows[:, place], side="right") - 1
            inside[:, place] = self.inside[place][box]
        if not np.array_equal(draw(rows), draw(inside)):
            raise IrregularError("an outcome changes within a box")

    def law(self, draw: _Draw, base: Words) -> Law:
        """The distribution, box by box."""
        chances: dict[Outcome, Fraction] = defaultdict(Fraction)
        used: set[int] = set()
        for first in range(len(self.starts[0])):
            for fixed, places in self._branches(draw, base, {0: first}):
                used |= {*fixed, *places}
                self._add(draw, base, (fixed, places), chances)
        if len(self.sizes[0]) == 1:
            used.discard(0)
        rest = 1 - sum(chances.values(), Fraction(0))
        return Law(dict(chances), rest, "enumerated", words=frozenset(used))

    def _branches(
        self, draw: _Draw, base: Words, fixed: Fixed
    ) -> Iterator[tuple[Fixed, list[int]]]:
        """Words with a chosen stretch, and the places that matter beside them.

        A word of three stretches or more may decide which of the others count: the side of a noise,
        and with it the tail that lengthens it. What does not count is not multiplied.
        """
        places = self._relevant(draw, self._row(base, fixed), fixed)
        deciding = [place for place in places if len(self.sizes[place]) >= _DECIDING]
        boxes = prod(len(self.sizes[place]) for place in places)
        # One such word beside the first: of many the branches would be as many as the boxes.
        if not deciding or len(fixed) > 1 or boxes <= _FEW_BOXES:
            yield fixed, places
            return
        for number in range(len(self.sizes[deciding[0]])):
            yield from self._branches(draw, base, fixed | {deciding[0]: number})

    def _row(self, base: Words, fixed: Fixed) -> Words:
        row = base.copy()
        for place, number in fixed.items():
            row[place] = self.inside[place][number]
        return row

    def _relevant(self, draw: _Draw, row: Words, fixed: Fixed) -> list[int]:
        """The places beside the fixed ones at which another word changes the outcome."""
        fills = _fills(row)
        rows, owners = [], []
        for place in range(1, len(self.starts)):
            # One stretch: the word decides nothing.
            if len(self.starts[place]) == 1 or place in fixed:
                continue
            for fill in fills:
                for word in self.inside[place]:
                    own = fill.copy()
                    for chosen in fixed:
                        own[chosen] = row[chosen]
                    own[place] = word
                    rows.append(own)
                    owners.append((place, id(fill)))
        if not rows:
            return []
        codes = draw(np.stack(rows)).tolist()
        outcomes: dict[tuple[int, int], set[Outcome]] = defaultdict(set)
        for owner, outcome in zip(owners, codes, strict=True):
            outcomes[owner].add(tuple(outcome))
        return sorted({place for (place, _), own in outcomes.items() if len(own) > 1})

    def _add(
        self,
        draw: _Draw,
        base: Words,
        branch: tuple[Fixed, list[int]],
        chances: dict[Outcome, Fraction],
    ) -> None:
        """Add the boxes of one branch.

        Raises:
            ExhaustedError: there are too many.
        """
        fixed, places = branch
        row = self._row(base, fixed)
        chance = prod(self.sizes[place][number] / 2**_WORD for place, number in fixed.items())
        own: list[tuple[float, Outcome]] = [(chance, tuple(fixed.values()))]
        for place in places:
            longer: list[tuple[float, Outcome]] = []
            for chance, stretches in own:
                for number, size in enumerate(self.sizes[place]):
                    part = chance * size / 2**_WORD
                    if part >= LEAST_BOX:
                        longer.append((part, (*stretches, number)))
            own = longer
            if len(own) > MOST_BOXES:
                raise ExhaustedError(f"the words fall into more than {MOST_BOXES:,} boxes")
        rows = np.repeat(row[None], len(own), axis=0)
        order = [*fixed, *places]
        for column, place in enumerate(order):
            rows[:, place] = self.inside[place][[stretches[column] for _, stretches in own]]
        if not own:
            return
        # Sizes are added as integers, with one division at the end: the chances are exact.
        whole = 1 << (_WORD * len(order))
        sums: dict[Outcome, int] = defaultdict(int)
        for (_, stretches), outcome in zip(own, draw(rows).tolist(), strict=True):
            sizes = [
                self.sizes[place][number] for place, number in zip(order, stretches, strict=True)
            ]
            sums[tuple(outcome)] += prod(sizes)
        for outcome, size in sums.items():
            chances[outcome] += Fraction(size, whole)
