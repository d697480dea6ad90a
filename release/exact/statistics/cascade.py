"""The weights of gap tables for the commonest of few categories: the cascade, in integers.

In the cascade every category that does not lead has e^-ε times the most it has in any neighboring
state, and the leaders share the rest equally. It is found in floats; whoever uses it proves it in
integers. For many categories and small ε it is not private.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from release.exact.numbers import exp_below_any_verifier
from release.exact.statistics.gap_states import (
    FEWEST,
    MOST,
    MOST_STATES,
    TOTAL,
    Integers,
    count_states,
    first_places,
    neighbor_places,
    states,
)

# The share of e^ε that is kept back in floats. Rounding moves a weight by a dozen units at most, so
# it breaks no ratio of weights above 2^40; smaller weights are raised afterwards.
_SLACK = 2.0**-36

_CLOSE = 2.0**-44
_MOST_SWEEPS = 10_000

# From a gap g on, the followers' chance is about e^(-ε·g/2). A cap at 32/ε lets it fall to 10^-7;
# a cap below 24/ε would leave more than 6·10^-6 to every large lead.
_ENOUGH = 32
_TOO_LITTLE = 24


def public_cap(categories: int, epsilon: Fraction) -> int | None:
    """The cap of a gap table for ``epsilon`` > 0, or None where the table would be too large.

    It depends on public parameters alone.

    Raises:
        ValueError: a number of categories that no gap table has, or ε that is not above 0.
    """
    if not FEWEST <= categories <= MOST:
        raise ValueError(f"a gap table has {FEWEST} to {MOST} categories")
    if not epsilon > 0:
        raise ValueError("epsilon must be above 0")
    cap = ceil(_ENOUGH / epsilon)
    while cap * epsilon >= _TOO_LITTLE:
        if count_states(categories, cap) <= MOST_STATES:
            return cap
        cap -= 1
    return None


@dataclass(frozen=True)
class _Places:
    """Where the categories that do not lead stand, and what each of them is compared with."""

    lowest: Integers
    """Flat indices of their first places, increasing."""
    after: Integers
    """The flat indices that these are compared with, one run for each."""
    runs: NDArray[np.intp]
    """Where the run of each begins in ``after``."""
    origin: Integers
    """For every flat index that of the first place with the same gap."""
    leads: NDArray[np.bool_]
    """Whether the gap is 0; shape (states, categories)."""


def cascade_weights(categories: int, cap: int, epsilon: Fraction) -> Integers:
    """The weights of the cascade; shape (states, categories), each row adding up to the total."""
    ratio = exp_below_any_verifier(epsilon)
    places = _places(categories, cap)
    shares = _fixed_point(places, 1 / (float(ratio) * (1 - _SLACK)))
    return _integers(places, shares, ratio)


def _places(categories: int, cap: int) -> _Places:
    gaps = states(categories, cap)
    before, after = neighbor_places(categories, cap)
    follows = gaps.ravel()[before] > 0
    before, after = before[follows], after[follows]
    # The pairs are sorted, so that each index is one run.
    runs = np.flatnonzero(np.append(True, before[1:] != before[:-1]))
    rows = np.arange(len(gaps), dtype=np.int64)[:, np.newaxis]
    origin = (rows * categories + first_places(gaps)).ravel()
    return _Places(before[runs], after, runs, origin, gaps == 0)


def _fixed_point(places: _Places, ratio: float) -> NDArray[np.float64]:
    """The cascade in floats; shape (states, categories)."""
    rows, categories = places.leads.shape
    shares = np.full((rows, categories), 1 / categories)
    # At a tie of the others x = ratio·(1 - (K-1)·x): an undamped sweep multiplies an error by
    # -ratio·(K-1), and along a chain of states by 0. This weight is best between the two.
    weight = 2 / (2 + ratio * (categories - 1))
    for _ in range(_MOST_SWEEPS):
        most = np.maximum.reduceat(shares.ravel()[places.after], places.runs)
        old = shares.ravel()[places.lowest]
        new = old + weight * (ratio * most - old)
        shares = _completed(places, new, 1.0)
        if (np.abs(new - old) <= _CLOSE * new).all():
            break
    return shares


def _completed(places: _Places, lowest: NDArray[np.float64], whole: float) -> NDArray[np.float64]:
    """The shares of all, from those of the followers' first places; leaders share the rest."""
    flat = np.zeros(places.leads.size)
    flat[places.lowest] = lowest
    shares = flat[places.origin].reshape(places.leads.shape)
    rest = (whole - shares.sum(axis=1, keepdims=True)) / places.leads.sum(axis=1, keepdims=True)
    return np.where(places.leads, rest, shares)


def _integers(places: _Places, shares: NDArray[np.float64], ratio: Fraction) -> Integers:
    """Weights near the shares, in which no follower has too little beside a neighboring state.

    A follower's weight is a multiple of the number of leaders, so that these can share the rest.
    """
    rows, categories = places.leads.shape
    leaders = places.leads.sum(axis=1, dtype=np.int64)
    units = leaders[places.lowest // categories]
    lowest = np.ceil(shares.ravel()[places.lowest] * TOTAL / units).astype(np.int64) * units
    while True:
        flat = np.zeros(rows * categories, dtype=np.int64)
        flat[places.lowest] = lowest
        weights = flat[places.origin].reshape(rows, categories)
        rest = (TOTAL - weights.sum(axis=1)) // leaders
        weights = np.where(places.leads, rest[:, np.newaxis], weights)
        most = np.maximum.reduceat(weights.ravel()[places.after], places.runs)
        least = _least(most, units, ratio)
        if (lowest >= least).all():
            return weights
        # Weights only rise, and leaders only fall, so this ends.
        lowest = np.maximum(lowest, least)


def _least(most: Integers, units: Integers, ratio: Fraction) -> Integers:
    """The least multiples of ``units`` that ``ratio`` times is at least ``most``."""
    pairs = zip(most.tolist(), units.tolist(), strict=True)
    multiples = [
        -(-weight * ratio.denominator // (ratio.numerator * unit)) * unit for weight, unit in pairs
    ]
    return np.array(multiples, dtype=np.int64)
