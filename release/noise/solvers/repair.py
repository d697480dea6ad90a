"""From a solver's floats to exact integers that satisfy the guarantee.

Only the shape of the solver's answer is used (docs/design/mathematics.md 1.4). Where constraints
are hard, integers are rounded up from the heaviest element outwards until every ratio holds. Where
δ may be spent, the program was solved with a slightly smaller δ, and rounding uses the remainder.
Nothing here is trusted: :func:`release.noise.solve.design` checks each result exactly.
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

    They are the least such integers above the rounded masses. ``pattern`` names the constraints
    given up.

    Raises:
        ValueError: there is no mass, or the surplus is larger than the heaviest weight.
    """
    total = 2**bits
    scale = Fraction(total)
    shares = np.maximum(masses, 0)
    whole = int(shares.sum())
    if not whole:
        raise ValueError("there is no mass")
    moved = [sensitivity.group.moved(shift).tolist() for shift in sensitivity.shifts]
    given_up = None if pattern is None else pattern.tolist()
    weights: list[int] = []
    # The closure adds mass. Each round starts from masses scaled down by what the last one added,
    # until the surplus is a few units an element.
    for _ in range(_ROUNDS):
        start = shares * scale.numerator // (whole * scale.denominator)
        weights = close(start.tolist(), moved, ratio, given_up)
        if 0 <= sum(weights) - total <= 4 * len(weights):
            break
        scale = scale * total / sum(weights) + len(weights)
    # A lighter mode is feasible as a tail, and as a head as long as it stays the heaviest; the
    # exact check of the caller decides where it does not.
    surplus = sum(weights) - total
    heaviest = max(range(len(weights)), key=lambda place: weights[place])
    if not 0 <= surplus < weights[heaviest]:
        raise ValueError("the masses cannot be rounded to a pmf")
    weights[heaviest] -= surplus
    return Pmf.of(sensitivity.group, weights)


def close(
    weights: list[int],
    moved: list[list[int]],
    ratio: Fraction,
    given_up: list[list[bool]] | None = None,
) -> list[int]:
    """The least integers ≥ ``weights`` that satisfy the ratios; ``weights`` itself is changed.

    ``moved[i][e]`` is the element that constraint i of element e is about.
    """
    numerator, denominator = ratio.numerator, ratio.denominator
    loose_tails = given_up or [[False] * len(weights)] * len(moved)
    queue = [(-w, e) for e, w in enumerate(weights) if w]
    heapq.heapify(queue)
    settled = [False] * len(weights)
    # Invariant: a settled element has its final weight. Only a heavier element raises another one,
    # and elements leave the queue in descending order, as in Dijkstra's search.
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
    weights = ((masses << bits) >> PLACES).tolist()
    weights[int(np.argmax(masses))] += 2**bits - sum(weights)
    return Pmf.of(sensitivity.group, weights)


def mix(pmf: Pmf, safe: Pmf, share: Fraction) -> Pmf:
    """Integers near share·pmf + (1-share)·safe, two pmfs of the same total.

    The approximate δ is convex, so mixing with a pmf whose δ is 0 lowers it in proportion.
    """
    rest = 1 - share
    weights = (
        pmf.weights.astype(object) * share.numerator // share.denominator
        + safe.weights.astype(object) * rest.numerator // rest.denominator
    ).tolist()
    # Each element loses less than two units; they go to the heaviest.
    weights[weights.index(max(weights))] += pmf.total - sum(weights)
    return Pmf.of(pmf.group, weights)
