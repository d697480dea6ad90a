"""Families of mechanisms with one measure of their noise, for searches over several at once.

The measure is the ``spread``: a privacy loss of about (differences / spread)²/2, whatever the
family. So a search moves spreads, and for noise on integers the power of its masses as well.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache

import numpy as np

from release.exact.composition.distribution import LossDistribution
from release.exact.composition.profile import pure_profile
from release.exact.integers.noise import IntegerNoise
from release.exact.statistics.exponential import bounded_range_profile
from release.noise.composed.account import group_losses
from release.noise.composed.estimate import Parts, moment, parts_of, placed
from release.noise.composed.groups import EXPONENTIAL, PURE, Kind, Selected, ShareRequest
from release.noise.composed.laws import MOST_HALF, Shape

_FEW_RUNS = 480
"""Runs of weights a side where blocks can make up for them."""

_BLOCKED = 24
"""From differences of so many codes on, integers share weights in blocks."""

_WORK = 70_000
"""A quarter of the pairs of masses that an exact profile compares."""


class Family(ABC):
    """Mechanisms for a request by the spread of their noise."""

    has_power = False
    """Whether the shape of the noise is a parameter as well."""

    def __init__(self, request: ShareRequest) -> None:
        self.request = request

    @property
    @abstractmethod
    def cost(self) -> float:
        """The square of what one unit changes, in the spread's unit."""

    @property
    def rise(self) -> float:
        """What the loss is at a spread of 1, about, if it rises as a power of the spread."""
        return self.loss(2.0, 100.0) / 100.0 ** max(1, self.request.loss_power)

    @abstractmethod
    def alternatives(self, power: float, spread: float, step: float) -> list[Parts]:
        """What a unit may do to the answers of one query, as losses in floats."""

    @abstractmethod
    def loss(self, power: float, spread: float) -> float:
        """The expected loss."""

    @abstractmethod
    def mechanism(self, power: float, spread: float) -> IntegerNoise | Selected:
        """The mechanism in exact numbers.

        Raises:
            ValueError: there is none of so much noise.
        """

    @abstractmethod
    def losses(self, mechanism: IntegerNoise | Selected, step: Fraction) -> LossDistribution:
        """Losses that dominate one query, exactly."""

    def exact_loss(self, mechanism: IntegerNoise | Selected, spread: float) -> Fraction:
        """The expected loss of a mechanism, never understated."""
        return Fraction(self.loss(2.0, spread) * (1 + 1e-9))

    def spread_for(self, power: float, loss: float) -> float:
        """The most spread with an expected loss of at most ``loss``, about."""
        # All losses rise with the spread. In logarithms, for it may have fifteen decades.
        low, high = 1e-3, 1e12
        for _ in range(200):
            middle = math.sqrt(low * high)
            if self.loss(power, middle) <= loss:
                low = middle
            else:
                high = middle
            if high < low * (1 + 1e-10):
                break
        return low


class OnIntegers(Family):
    """Noise with masses exp(-(|η|/t)^p); the spread is its standard deviation."""

    def __init__(self, request: ShareRequest) -> None:
        super().__init__(request)
        self.has_power = request.loss_power > 0
        self._most = max(map(max, request.patterns))

    @property
    def cost(self) -> float:
        """As :attr:`Family.cost`."""
        return float(max(sum(d * d for d in pattern) for pattern in self.request.patterns))

    @property
    def rise(self) -> float:
        """As :attr:`Family.rise`; an error rate is 1 less a share of 1/spread."""
        return (0.4, 0.8, 1.0)[self.request.loss_power]

    def shape(self, power: float, spread: float) -> Shape:
        """The parameters; geometric noise where others would be too wide for their runs."""
        power = power if self.has_power else 1.0
        if power > 1:
            # exp(-(|x|/t)^p) has the variance t²·Γ(3/p)/Γ(1/p).
            wide = spread * math.exp((math.lgamma(1 / power) - math.lgamma(3 / power)) / 2)
            shape = _in_blocks(Shape(_decimal(power), _decimal(wide)), self._most)
            if shape is not None:
                return shape
        return Shape(Fraction(1), _decimal(spread / math.sqrt(2)))

    def alternatives(self, power: float, spread: float, step: float) -> list[Parts]:
        """As :meth:`Family.alternatives`."""
        shape = self.shape(power, spread)
        return [parts_of(shape, pattern, step) for pattern in self.request.patterns]

    def loss(self, power: float, spread: float) -> float:
        """As :meth:`Family.loss`."""
        return moment(self.shape(power, spread), self.request.loss_power)

    def mechanism(self, power: float, spread: float) -> IntegerNoise:
        """As :meth:`Family.mechanism`."""
        return self.shape(power, spread).noise()

    def losses(self, mechanism: IntegerNoise | Selected, step: Fraction) -> LossDistribution:
        """As :meth:`Family.losses`."""
        assert isinstance(mechanism, IntegerNoise)  # noqa: S101 - what this family makes
        return group_losses(mechanism, self.request.patterns, step)

    def exact_loss(self, mechanism: IntegerNoise | Selected, spread: float) -> Fraction:
        """As :meth:`Family.exact_loss`."""
        assert isinstance(mechanism, IntegerNoise)  # noqa: S101 - what this family makes
        return mechanism.moment(self.request.loss_power)


class OfEpsilon(Family):
    """Mechanisms of a pure ε for each answer; the larger the spread, the smaller is ε."""

    def __init__(self, request: ShareRequest, family: str) -> None:
        super().__init__(request)
        self.family = family
        # Losses of ±ε have the square ε²; those spread over ±ε have a third of it.
        self._ratio = math.sqrt(3) if family == EXPONENTIAL else 1.0
        self._power = max(1, request.loss_power)
        self._at_one = float(request.loss_at_one)
        if request.kind is Kind.SELECTION:
            shortfall = _shortfall(family, request.candidates, self._power)
            self._at_one = shortfall * request.spread**self._power

    @property
    def cost(self) -> float:
        """As :attr:`Family.cost`."""
        return float(self.request.cells)

    def epsilon(self, spread: float) -> float:
        """The pure ε of one answer."""
        return self._ratio / spread

    def alternatives(self, power: float, spread: float, step: float) -> list[Parts]:
        """As :meth:`Family.alternatives`."""
        epsilon = self.epsilon(spread)
        if self.family == EXPONENTIAL:
            # The curve of T4 is that of losses with a density of e^(loss/2) on ±ε.
            middles = epsilon * (np.arange(-999, 1000, 2) / 1000)
            masses = np.exp((middles - epsilon) / 2)
        else:
            middles = np.array([epsilon, -epsilon])
            masses = np.array([1.0, math.exp(-epsilon)])
        losses = placed(middles, masses / masses.sum(), step)
        return [[(losses, self.request.cells)]]

    def loss(self, power: float, spread: float) -> float:
        """As :meth:`Family.loss`."""
        return self._at_one / self.epsilon(spread) ** self._power

    def mechanism(self, power: float, spread: float) -> Selected:
        """As :meth:`Family.mechanism`."""
        return Selected(self.family, _decimal(self.epsilon(spread)))

    def losses(self, mechanism: IntegerNoise | Selected, step: Fraction) -> LossDistribution:
        """As :meth:`Family.losses`."""
        assert isinstance(mechanism, Selected)  # noqa: S101 - what this family makes
        if mechanism.family == EXPONENTIAL:
            losses = bounded_range_profile(mechanism.epsilon, step).distribution()
        else:
            losses = pure_profile(mechanism.epsilon, step).distribution()
        return losses.repeated(self.request.cells)


def family_of(request: ShareRequest) -> Family:
    """Return the family that a search begins with."""
    if request.kind is Kind.INTEGERS:
        return OnIntegers(request)
    return OfEpsilon(request, request.families[0] if request.kind is Kind.SELECTION else PURE)


@lru_cache(maxsize=64)
def _shortfall(family: str, candidates: int, power: int) -> float:
    """The worst expected power of how far the chosen score lies below the best, at ε/spread = 1.

    It is worst where all other candidates tie.
    """
    # Below ln K of gap nearly every choice is wrong, above it the chance falls like e^-gap: the
    # maximum lies not far beyond.
    gaps = np.linspace(1e-3, math.log(candidates) + 40, 20_000)
    shares = np.exp(-gaps)
    if family == EXPONENTIAL:
        wrong = (candidates - 1) * shares / (1 + (candidates - 1) * shares)
    else:
        right = -np.expm1(candidates * np.log1p(-shares)) / (candidates * shares)
        wrong = 1 - right
    return float((gaps**power * wrong).max())


def _in_blocks(shape: Shape, most: int) -> Shape | None:
    """The shape with blocks as long as its runs need; None where they would be too long.

    A block may be as long as ``most``, the largest difference. Best is a whole number of blocks to
    a difference: all others lose more at some places than at others.
    """
    steps = shape.steps if most < _BLOCKED else shape.widest
    fewest = 1 if most < _BLOCKED else max(1, -(-steps // _FEW_RUNS))
    while fewest <= most and steps > fewest * _runs_for(most, fewest):
        fewest += 1 + fewest // 16
    if fewest == 1:
        return shape
    if fewest > most or most < _BLOCKED:
        return None
    spanned = most // fewest
    # Odd, so that a block has 0 in its middle and the noise is symmetric.
    block = round(most / spanned) // 2 * 2 + 1
    return Shape(shape.power, shape.scale, block)


def _runs_for(most: int, block: int) -> int:
    """How many blocks a side are few enough for exact comparisons at a distance of ``most``."""
    periods = 2 * (most // block)
    cheap = _WORK // ((periods + 3) * (1 + periods // 8))
    return min(cheap, MOST_HALF if most < _BLOCKED else _FEW_RUNS)


def _decimal(value: float) -> Fraction:
    """The number in ten digits, so that files and messages stay short."""
    return Fraction(f"{value:.9e}")
