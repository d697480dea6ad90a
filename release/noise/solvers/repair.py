"""From a solver's floats to exact integers that keep the guarantee.

Only the shape of the solver's answer is used. Where constraints are hard, integers are rounded up
from the heaviest element outwards until every ratio holds; where δ may be spent, the program was
solved with a slightly smaller δ, and rounding uses what was left free. Nothing here is trusted:
:func:`release.noise.solve.design` proves each law again before anyone sees it.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.pmf import Pmf
from release.exact.sensitivity import Sensitivity
from release.noise.solvers.refine import PLACES, Precise

Pattern: TypeAlias = NDArray[np.bool_]
"""Shape (|M|, size): which constraints f(η) ≤ E·f(η+μ) are given up."""

_ROUNDS = 6


def raise_to_feasible(
    masses: Precise, sensitivity: Sensitivity, ratio: Fraction, bits: int, pattern: Pattern | None
) -> Pmf:
    """Integers near ``masses`` with w(η) ≤ ratio·w(η+μ) for every constraint not given up.

    The least such integers above the rounded masses; what this adds is taken off by scaling, and
    the last few units off the heaviest element. ``pattern`` names the constraints given up.

    Raises:
        ValueError: the surplus is larger than the heaviest weight: the masses were no law.
    """
    total = 2**bits
    scale = Fraction(total)
    shares = {int(e): int(masses[e]) for e in np.flatnonzero(masses > 0)}
    whole = sum(shares.values())
    if not whole:
        raise ValueError("there is no mass")
    moved = [sensitivity.group.moved(shift).tolist() for shift in sensitivity.shifts]
    given_up = None if pattern is None else pattern.tolist()
    weights: list[int] = []
    for _ in range(_ROUNDS):
        start = [0] * sensitivity.group.size
        for element, share in shares.items():
            start[element] = share * scale.numerator // (whole * scale.denominator)
        weights = close(start, moved, ratio, given_up)
        surplus = sum(weights) - total
        if 0 <= surplus <= 4 * len(weights):
            break
        scale = scale * total / sum(weights) + len(weights)
    surplus = sum(weights) - total
    heaviest = max(range(len(weights)), key=weights.__getitem__)
    if not 0 <= surplus < weights[heaviest]:
        raise ValueError("the masses cannot be made a law")
    weights[heaviest] -= surplus
    return Pmf.of(sensitivity.group, weights)


def close(
    weights: list[int],
    moved: list[list[int]],
    ratio: Fraction,
    given_up: list[list[bool]] | None = None,
) -> list[int]:
    """The least integers ≥ ``weights`` that keep the ratios: heaviest first, each settled once.

    An element can only be raised by a heavier one, so taking them in descending order is final,
    as in Dijkstra's search. ``moved[i][e]`` is the element that constraint i of element e is about.
    """
    numerator, denominator = ratio.numerator, ratio.denominator
    loose_tails = given_up or [[False] * len(weights)] * len(moved)
    queue = [(-w, e) for e, w in enumerate(weights) if w]
    heapq.heapify(queue)
    settled = [False] * len(weights)
    while queue:
        _, element = heapq.heappop(queue)
        if settled[element]:
            continue
        settled[element] = True
        least = -(-weights[element] * denominator // numerator)
        for heads, loose in zip(moved, loose_tails, strict=True):
            head = heads[element]
            if weights[head] < least and not loose[element]:
                weights[head] = least
                heapq.heappush(queue, (-least, head))
    return weights


def round_down(masses: Precise, sensitivity: Sensitivity, bits: int) -> Pmf:
    """Integers just below ``masses``; what is missing to the total goes to the heaviest.

    Raises:
        ValueError: the masses add up to much more than one.
    """
    weights = [(int(mass) << bits) >> PLACES for mass in masses.tolist()]
    weights[int(np.argmax(masses))] += 2**bits - sum(weights)
    return Pmf.of(sensitivity.group, weights)


def mix(law: Pmf, safe: Pmf, share: Fraction) -> Pmf:
    """Integers near share·law + (1-share)·safe, two laws of the same total.

    The hockey-stick δ is convex, so mixing towards a law with δ = 0 lowers it in proportion.
    Rounding down loses less than two units an element; they go to the heaviest.
    """
    weights = [
        int(share * one) + int((1 - share) * other)
        for one, other in zip(law.weights.tolist(), safe.weights.tolist(), strict=True)
    ]
    weights[weights.index(max(weights))] += law.total - sum(weights)
    return Pmf.of(law.group, weights)
