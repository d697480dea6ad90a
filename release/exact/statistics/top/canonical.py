"""The set of the k commonest categories by one draw from all sets of k.

The exponential mechanism (McSherry and Talwar 2007) with the canonical loss of a set: by how much
the largest count outside exceeds the least count inside, or 0. Shekelyan and Loukides 2022 propose
this loss. Gillenwater, Joseph, Muñoz Medina and Ribero Diaz 2022 draw from all sequences of k by
classes of equal utility; here sets are drawn likewise, in integers. The proofs that the engine
relies on are in docs/design/top-k.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate, combinations
from typing import NamedTuple

import numpy as np

from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import RATIO_BITS, RATIO_ONE, loss_above
from release.exact.statistics.top.bounds import CountBounds, check_counts
from release.exact.statistics.top.on_counts import OnCounts

SPARE_BITS = 64
"""All that rounding and the cap change has a probability of at most 2^-64."""

MOST_GAPS = 1 << 20
"""A table of weights has at most so many entries."""


class SetClass(NamedTuple):
    """Sets of categories with one loss, where categories are numbered by descending count.

    Each contains the categories before ``first_outside``, and not that one. Its other members are
    a combination of later ones: the combinations numbered ``start`` to ``start + sets - 1``.
    """

    first_outside: int
    start: int
    sets: int
    weight: int


@dataclass(frozen=True)
class CanonicalTop(OnCounts):
    """Publishes ``members`` categories; a set of loss g has the weight ``weights[g]``.

    The set is published in the order of the codes, because the order of the counts is confidential.

    Raises:
        ValueError: as :class:`OnCounts`, or the table would have more than 2^20 entries.
    """

    family = "top_canonical"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bits * math.log(2) <= MOST_GAPS * loss_above(self.ratio):
            raise ValueError("epsilon is so small that the table would exceed 2^20 entries")

    @staticmethod
    def spread_of(bounds: CountBounds, members: int) -> int:
        """The range of the changes of the loss between neighbors."""
        return bounds.range_of_losses(members)

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        return f"One draw from all sets of {self.members} {self.bounds.words}"

    def chance_of_all(self, lead: int) -> float:
        """As :meth:`OnCounts.chance_of_all`: the union bound over all other sets."""
        worse = math.comb(self.bounds.categories, self.members) - 1
        return 1 - worse * (self.ratio / RATIO_ONE) ** lead

    @property
    def bits(self) -> int:
        """The binary logarithm of the largest weight, from public numbers only.

        Rounding up adds less than 1/(1 - ρ) to each weight, over all gaps together. So all sets
        together gain at most 2^-64 of the weight that the best set alone has.
        """
        sets = math.comb(self.bounds.categories, self.members)
        steps = -(-RATIO_ONE // (RATIO_ONE - self.ratio))
        return SPARE_BITS + sets.bit_length() + steps.bit_length()

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The weights of losses 0, 1, …; larger losses have the last weight.

        W[g+1] = ⌈ρ·W[g]⌉, so W[g]·ρ ≤ W[g+1] ≤ W[g]. Where rounding up leads from a weight to
        itself, the table is constant from there on: this is the cap, and it is public.
        """
        table = [1 << self.bits]
        while (following := -(-table[-1] * self.ratio >> RATIO_BITS)) < table[-1]:
            table.append(following)
        return tuple(table)

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """Codes in ascending order, shape (cells, members), from counts (cells, categories).

        Raises:
            ValueError: the shape is another.
        """
        check_counts(self.bounds, statistics)
        drawn = np.empty((len(statistics), self.members), dtype=np.int64)
        for cell, counts in enumerate(statistics.tolist()):
            drawn[cell] = self._drawn(counts, source)
        return drawn

    def chances(self, counts: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The probability of every set of codes, by enumeration: for few categories."""
        weights = {
            codes: self.weight_of(_canonical_loss(counts, codes))
            for codes in combinations(range(len(counts)), self.members)
        }
        total = sum(weights.values())
        return {codes: Fraction(weight, total) for codes, weight in weights.items()}

    def weight_of(self, loss: int) -> int:
        """The weight of one set with this loss, 0 or more."""
        return self.weights[min(loss, len(self.weights) - 1)]

    def classes(self, ranked: Sequence[int]) -> Iterator[SetClass]:
        """All sets of categories, by loss; ``ranked`` holds the counts in descending order.

        There are at most members·(categories - members) + 1 classes, and no more than there are
        weights for each first category outside.
        """
        yield SetClass(self.members, 0, 1, self.weights[0])
        cap = len(self.weights) - 1
        falling = [-count for count in ranked]
        for first_outside in range(self.members):
            chosen = self.members - first_outside
            last, start = self.members, 0
            # The least member inside is one of those from ``last`` up to ``stop``: equal losses.
            while last < len(ranked):
                loss = ranked[first_outside] - ranked[last]
                is_capped = loss >= cap
                stop = len(ranked) if is_capped else bisect_right(falling, falling[last], lo=last)
                end = math.comb(stop - 1 - first_outside, chosen)
                yield SetClass(first_outside, start, end - start, self.weight_of(loss))
                last, start = stop, end

    def _drawn(self, counts: list[int], source: RandomBytes) -> list[int]:
        """One set of codes, ascending; which of equal counts comes first changes no weight."""
        order = sorted(range(len(counts)), key=lambda code: -counts[code])
        classes = list(self.classes([counts[place] for place in order]))
        chosen, number = _set_at(_uniform_below(sum(map(_class_weight, classes)), source), classes)
        later = _combination(number, self.members - chosen.first_outside)
        skipped = chosen.first_outside + 1
        places = [*range(chosen.first_outside), *(skipped + element for element in later)]
        return sorted(order[place] for place in places)


def _canonical_loss(counts: Sequence[int], codes: tuple[int, ...]) -> int:
    """By how much the largest count outside the set exceeds the least inside, or 0."""
    outside = max(count for code, count in enumerate(counts) if code not in codes)
    return max(0, outside - min(counts[code] for code in codes))


def _class_weight(chosen: SetClass) -> int:
    """The weight of all sets of a class together."""
    return chosen.sets * chosen.weight


def _set_at(place: int, classes: Sequence[SetClass]) -> tuple[SetClass, int]:
    """The class at ``place``, where all sets lie one after the other, and its set's number."""
    bounds = list(accumulate(map(_class_weight, classes)))
    index = bisect_right(bounds, place)
    within = place - (bounds[index - 1] if index else 0)
    chosen = classes[index]
    return chosen, chosen.start + within // chosen.weight


def _uniform_below(bound: int, source: RandomBytes) -> int:
    """A uniform integer from 0 to ``bound`` - 1; on average at most two draws of its bits."""
    bits = (bound - 1).bit_length()
    width = -(-bits // 8)
    while True:
        uniform = int.from_bytes(source(width), "little") >> (8 * width - bits)
        if uniform < bound:
            return uniform


def _binomial(chosen: int, size: int) -> int:
    return math.comb(size, chosen)


def _combination(number: int, size: int) -> list[int]:
    """The combination of ``size`` integers from 0 up with this ``number``, ordered by the largest.

    The combinations below n are those numbered below n over ``size``, so the largest integer is the
    last e with e over ``size`` at most ``number``, and what is left numbers the rest.
    """
    elements = []
    for chosen in range(size, 0, -1):
        stop = chosen
        while math.comb(stop, chosen) <= number:
            stop *= 2
        # The first integer whose binomial exceeds the number follows the one sought.
        following = bisect_right(range(stop + 1), number, key=partial(_binomial, chosen))
        element = following - 1
        elements.append(element)
        number -= math.comb(element, chosen)
    return elements
