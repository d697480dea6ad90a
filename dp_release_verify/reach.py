"""What one unit can change: codes, sums and scores of a cell, and how many cells.

All of it follows from the question alone, in whole numbers. The numbers in brackets are sections
of the format page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from math import ceil, gcd, lcm, prod
from typing import TypeAlias

from dp_release_verify import forms
from dp_release_verify.asked import Question, clamp_of, rule

Vector: TypeAlias = tuple[int, ...]

MOST_PATTERNS = 60
MOST_CHANGES = 10**6


@dataclass(frozen=True)
class Reach:
    """What one unit can change of the answers to a question.

    Attributes:
        question: what was asked.
        free: the number of combinations of keys that a unit may choose: those that are not fixed.
        cells: the number of all cells.
    """

    question: Question
    free: int
    cells: int

    @cached_property
    def rows(self) -> int:
        """How many rows of a unit are read: fewer, where more would pass a declared change [3.1].

        Raises:
            Refused: not even one row fits.
        """
        question = self.question
        declared = question.query.declared
        if declared is None:
            return question.most_rows
        allowed = both_ways([tuple(each) for each in declared], question.group)
        fitting = 0
        # Changes grow with the rows, so the first that does not fit ends the search.
        low, high = 1, question.most_rows
        while low <= high:
            middle = (low + high) // 2
            if self._fits(middle, allowed):
                fitting, low = middle, middle + 1
            else:
                high = middle - 1
        rule(fitting >= 1, f"{question.name}.declared", "too small", "the changes of one row")
        return fitting

    def _fits(self, rows: int, allowed: set[Vector]) -> bool:
        # Sets that are larger than what is allowed are not built.
        changes = [self.codes(place, rows) for place in range(len(self.question.parts))]
        if prod(len(each) for each in changes) > len(allowed) + 1:
            return False
        return both_ways(product(*changes), self.question.group) <= allowed

    # ---- The answer [3.2]

    def codes(self, place: int, rows: int) -> set[int]:
        """The changes of the code of a part, modulo its answers."""
        size = self.question.group[place]
        return {step % size for step in self.steps(place, rows)}

    def steps(self, place: int, rows: int) -> range:
        """The signed changes of the code of a part that so many rows of a unit can cause."""
        part, answers = self.question.parts[place], self.question.answers[place]
        last = answers.size - 1
        is_one_way = self.question.neighbors.ways == 1
        if isinstance(part, forms.CountQuery):
            rise = min(rows if part.of is None else 1, last)
            return range(0 if is_one_way else -rise, rise + 1)
        if part.kind != "sum" or not isinstance(part, forms.Statistic):
            return range(answers.size)
        rise, fall = self.moves_of_sum(part, rows)
        if not is_one_way:
            rise = fall = rise + fall
        unit = self._unit_of_values(part, place)
        down = min(ceil(Fraction(fall) / answers.width), last) // unit * unit
        up = min(ceil(Fraction(rise) / answers.width), last)
        return range(-down, up + 1, unit)

    def moves_of_sum(self, part: forms.Statistic, rows: int) -> tuple[int, int]:
        """By how much a unit that comes in raises and lowers a sum."""
        low, high = clamp_of(part)
        return rows * max(high, 0), rows * max(-low, 0)

    def _unit_of_values(self, part: forms.Statistic, place: int) -> int:
        """All changes are multiples of this many codes, where rows take few values."""
        answers = self.question.answers[place]
        if part.values is None:
            return 1
        unit = gcd(*part.values) / answers.width
        low = answers.low / answers.width
        is_whole = answers.width.denominator == unit.denominator == low.denominator == 1
        # Both ends of the answers have to lie on codes of sums, or clamping would move others.
        if not is_whole or unit == 0:
            return 1
        last = low + answers.size - 1
        return int(unit) if low % unit == 0 and last % unit == 0 else 1

    @cached_property
    def distances(self) -> set[int]:
        """On a line: how far one unit moves the code of an answer; empty elsewhere."""
        if not self.question.is_line:
            return set()
        steps = self.steps(0, self.rows)
        rule(len(steps) <= 2 * MOST_CHANGES + 1, self.question.name, len(steps), "10^6 distances")
        return {abs(step) for step in steps} - {0}

    @cached_property
    def differences(self) -> set[Vector]:
        """In the group of the answers: all changes but none, closed under negation."""
        changes = [self.codes(place, self.rows) for place in range(len(self.question.parts))]
        number = prod(len(each) for each in changes)
        rule(number <= MOST_CHANGES, self.question.name, number, f"{MOST_CHANGES} differences")
        return both_ways(product(*changes), self.question.group)

    # ---- The statistic [3.4]

    def spread(self, rows: int, ways: int) -> int:
        """The range in which one unit moves the integers that the noise is put on."""
        question, query = self.question, self.question.query
        low, high = 0, 0
        if query.kind in ("sum", "mean"):
            low, high = question.clamp
        if query.kind == "sum" and isinstance(query, forms.Statistic):
            rise, fall = self.moves_of_sum(query, rows)
            return max(rise, fall) if ways == 1 else rise + fall
        if query.kind == "mean":
            return rows * (high - low) * ways
        if query.kind == "top":
            touched = self.categories_touched(rows)
            both = touched if ways == 1 else min(2 * touched, question.size)
            return self.weight(rows) * both
        if query.kind == "mode":
            return self.weight(rows) * ways
        if query.kind in ("min", "max"):
            return 2 * rows
        # Every kind by its name: the spread of another one would be taken for that of ranks.
        is_of_ranks = query.kind in ("median", "quantiles")
        rule(is_of_ranks, f"{question.name}.kind", query.kind, "a kind whose sums are known here")
        return self._spread_of_ranks(rows, ways)

    def _spread_of_ranks(self, rows: int, ways: int) -> int:
        shares = self.question.shares
        base = lcm(*(share.denominator for share in shares))
        if ways == 2:
            return 2 * rows * base
        ends = [Fraction(0), *shares, Fraction(1)]
        least = min(after - share for share, after in pairwise(ends))
        return 2 * rows * int(base - base * least)

    def weight(self, rows: int) -> int:
        """By how much one unit moves one score."""
        query = self.question.query
        if isinstance(query, forms.Mode) and query.weight is not None:
            return rows * max(abs(end) for end in self.question.clamp)
        return 1 if self.counts_units else rows

    @property
    def counts_units(self) -> bool:
        """Whether a score counts units, not rows."""
        query = self.question.query
        return isinstance(query, (forms.Mode, forms.Top)) and query.count == "units"

    def categories_touched(self, rows: int) -> int:
        """How many scores one unit moves, where each is moved by the whole weight."""
        return min(rows, self.question.size) if self.counts_units else 1

    # ---- Cells [3.3]

    @property
    def cells_at_once(self) -> int:
        """How many cells the rows of one unit lie in."""
        bound = self.question.neighbors.cells
        return min(self.free, self.rows, self.free if bound is None else bound)

    @property
    def cells_touched(self) -> int:
        """How many cells one unit can change."""
        if self.question.is_per_unit:
            return 1
        if self.question.kind == "sql":
            return self.cells
        # A unit that is replaced leaves some cells and enters as many others.
        return min(self.free, self.cells_at_once * self.question.neighbors.ways)

    def share_of_spread(self) -> Fraction:
        """What one unit moves in all cells together, as a part of what it may move in one."""
        ways = self.question.neighbors.ways
        if self.question.on_statistic:
            most = self.spread(self.rows, ways)
            alone = self.spread(self.rows, 1)
            of_a_row = self.spread(1, 1)
        else:
            most = max(self.distances)
            alone = min(self.rows, self.question.size - 1)
            of_a_row = 1
        moved = min(self.cells_at_once * alone, self.rows * of_a_row) * ways
        return Fraction(moved, most)

    def patterns(self) -> list[tuple[int, ...]]:
        """By how much one unit moves the cells that it touches: falling lists, sorted."""
        question, touched = self.question, self.cells_touched
        if question.on_statistic:
            return [(self.spread(self.rows, question.neighbors.ways),) * touched]
        if not question.counts_rows or not question.is_line:
            far = max(self.distances) if question.is_line else 0
            return [(far,) * touched]
        return self._patterns_of_rows(touched)

    def _patterns_of_rows(self, touched: int) -> list[tuple[int, ...]]:
        """The ways to divide the rows of a unit among cells."""
        rows, last = self.rows, self.question.size - 1
        whole = [(min(rows, last),) * touched]
        parts: list[tuple[int, ...]] = []
        for each in partitions(rows, rows, self.cells_at_once):
            parts.append(each)
            if len(parts) > MOST_PATTERNS:
                return whole
        moves = set(parts)
        if self.question.neighbors.ways == 2 and self.free > 1:
            moves = set()
            for left, right in product(parts, parts):
                if len(left) + len(right) <= self.free:
                    moves.add(tuple(sorted(left + right, reverse=True)))
        if len(moves) > MOST_PATTERNS:
            return whole
        return sorted({tuple(min(move, last) for move in each) for each in moves})


def both_ways(vectors: Iterable[Iterable[int]], group: tuple[int, ...]) -> set[Vector]:
    """Vectors and their negatives, modulo the group, without zero."""
    changes = set()
    for vector in vectors:
        own = tuple(vector)
        rule(len(own) == len(group), "declared", own, f"{len(group)} coordinates")
        for sign in (1, -1):
            changes.add(tuple(sign * c % size for c, size in zip(own, group, strict=True)))
    return changes - {(0,) * len(group)}


def partitions(total: int, most: int, parts: int) -> Iterator[tuple[int, ...]]:
    """The falling lists of at most so many positive integers, each up to ``most``, with a sum."""
    if total == 0:
        yield ()
        return
    if parts == 0 or most * parts < total:
        return
    for first in range(min(total, most), 0, -1):
        for rest in partitions(total - first, first, parts - 1):
            yield (first, *rest)
