"""Values of published answers that add up: unbiased where that can be, nearly so everywhere else.

An unbiased value g(o) has Σ_o P(o|q)·g(o) = v(q) at every true answer q, v(q) being its label. It
does not exist where a mechanism tells fewer answers apart than there are: one for the squared loss
often never publishes its outermost answers. Then there is a g whose bias is small beside the noise
and known at each true answer, so an interval of a sum can allow for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from release.errors import DesignError
from release.exact.domain import Codes
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.outcomes import Outcomes

Floats = NDArray[np.float64]

MOST_ANSWERS = 2000
"""A table of more answers takes longer to solve than a reader waits."""

_BIAS = 1e-9
"""The most that an unbiased value may be off on average, in ranges of the labels."""


@dataclass(frozen=True, eq=False)
class Correction:
    """For each published answer the unbiased value and its estimated variance, shape (answers,)."""

    unbiased: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class NearlyUnbiased:
    """``values`` of each published answer; ``bias`` and ``variance`` of them at each true one."""

    values: Floats
    bias: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class Summands:
    """What each cell brings into a sum; shape (cells,) each.

    The bias of ``values`` is between ``least_bias`` and ``most_bias``, and their variance at most
    ``variance``, wherever the true answer is within its interval.
    """

    values: Floats
    least_bias: Floats
    most_bias: Floats
    variance: Floats


def correction(table: Floats, values: Sequence[int]) -> Correction:
    """The unbiased values: g with P g = v, of least norm where there are several.

    ``table`` holds log P(published | true); ``values`` are the labels of the true answers, shape
    (answers,). With h such that P h = v², the variance Σ_o P(o|q)·g(o)² - v(q)² is the mean of
    g(o)² - h(o), whatever q is.

    Raises:
        DesignError: no unbiased estimator exists, to working precision, or there are more than 2000
            answers.
    """
    check_size(len(values))
    masses = np.exp(table)
    # Rows add up to 1, so a constant may be subtracted from v and added to g: around the middle of
    # the labels their squares lose fewest digits.
    middle = (min(values) + max(values)) // 2
    centred = np.array([value - middle for value in values], dtype=np.float64)
    targets = np.stack([centred, centred**2], axis=1)
    solved = np.asarray(np.linalg.lstsq(masses, targets, rcond=None)[0], dtype=np.float64)
    # Least squares solve a singular system too, wrongly: only the bias shows it.
    bias = np.abs(masses @ solved - targets).max(axis=0) / np.abs(targets).max(axis=0)
    if not (bias <= _BIAS).all():
        raise DesignError(
            "no unbiased estimator exists: the mechanism tells fewer answers apart than there are "
            "(its table is singular); use the posterior mean and the credible interval"
        )
    return Correction(middle + solved[:, 0], solved[:, 0] ** 2 - solved[:, 1])


def check_size(answers: int) -> None:
    """Refuse a table that takes too long.

    Raises:
        DesignError: it has more than 2000 answers.
    """
    if not answers <= MOST_ANSWERS:
        raise DesignError(
            f"the mechanism has {answers} answers; estimates are made for {MOST_ANSWERS} at most"
        )


def of_table(masses: Floats, labels: Floats) -> NearlyUnbiased:
    """The values of least squared bias over all true answers; ``masses``: P(published | true)."""
    middle = (labels[0] + labels[-1]) / 2
    centred = labels - middle
    solved = np.asarray(np.linalg.lstsq(masses, centred, rcond=None)[0], dtype=np.float64)
    expected = masses @ solved
    variance = masses @ solved**2 - expected**2
    return NearlyUnbiased(middle + solved, expected - centred, np.maximum(variance, 0.0))


def of_noise(mechanism: IntegerMechanism) -> NearlyUnbiased:
    """The published answers less the mean of the noise, both ends moved; all in codes.

    What is published at an end is moved so far that there is no bias where that end is the truth:
    with geometric noise that is clamped, there is then none anywhere. ``mechanism`` has no more
    answers than are within reach of either end.
    """
    noise, size = mechanism.noise, mechanism.size
    steps = np.arange(-size, size + 1, dtype=np.int64)
    masses = Outcomes(noise, size + 1).masses
    codes = np.arange(size, dtype=np.int64)
    published = mechanism.published(codes)
    values = codes - noise.mean
    for end in (0, size - 1):
        chances = np.bincount(published, mechanism.outcomes.row(end), size)
        values[published[end]] += (end - chances @ values) / chances[published[end]]
    # With d(y) = g(y) - y the error of g is η + d(q + η), and d is 0 away from both ends.
    outcomes = np.arange(-size, 2 * size, dtype=np.int64)
    moved = np.asarray(values[published[np.clip(outcomes, 0, size - 1)]] - outcomes)
    bias = noise.mean + _correlated(masses, moved)[:size]
    squares = float(noise.moment(2)) + _correlated(masses, moved**2)[:size]
    squares += 2 * _correlated(masses * steps, moved)[:size]
    variance = np.maximum(squares - bias**2, 0.0)
    return NearlyUnbiased(np.asarray(values), np.asarray(bias), np.asarray(variance))


def _correlated(masses: Floats, values: Floats) -> Floats:
    """Σ_η masses(η)·values(q + η) for q = 0, 1, …, by a Fourier transform."""
    length = 1 << (values.size + masses.size).bit_length()
    product = np.fft.rfft(values, length) * np.conj(np.fft.rfft(masses, length))
    return np.asarray(np.fft.irfft(product, length))


def summands(nearly: NearlyUnbiased, published: Codes, low: Codes, high: Codes) -> Summands:
    """What cells bring into a sum; their true answers are ``low`` to ``high``. All in codes."""
    ends, place = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
    found = np.empty((3, ends.shape[1]))
    for number, (first, last) in enumerate(ends.T.tolist()):
        bias = nearly.bias[first : last + 1]
        found[:, number] = bias.min(), bias.max(), nearly.variance[first : last + 1].max()
    least, most, variance = found[:, place.reshape(-1)]
    return Summands(nearly.values[published], least, most, variance)
