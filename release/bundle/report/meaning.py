"""What the guarantee means: a worked example in the numbers of the release.

Whatever the odds of a guess were before the release, it changes them by a factor of at most e^ε,
upwards or downwards. A probability p becomes at most e^ε·p/(1 - p + e^ε·p), and at least what
e^-ε in place of e^ε gives. Every share that is written is rounded away from p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from release.exact.numbers import exp_bounds, format_exact

_BEFORE = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))

_ALL = "more than 99.9"

_LARGEST = Fraction(20)
"""Beyond this ε every share is written as almost nothing or almost all."""


@dataclass(frozen=True)
class Guess:
    """How sure somebody is of a guess before and after the release, in percent."""

    before: str
    at_least: str
    at_most: str

    @property
    def is_weak(self) -> bool:
        """Whether the bound lets somebody become all but certain."""
        return self.at_most == _ALL


def guesses(epsilon: Fraction) -> tuple[Guess, ...]:
    """What becomes of a few guesses under ``epsilon``."""
    ratio = exp_bounds(min(epsilon, _LARGEST))[1]
    texts = []
    for before in _BEFORE:
        # By Bayes: the odds of a guess change by a factor of at most e^ε, either way.
        high = ratio * before / (1 - before + ratio * before)
        low = before / (before + ratio * (1 - before))
        texts.append(Guess(f"{float(100 * before):g}", _percent_down(low), _percent_up(high)))
    return tuple(texts)


def promise(epsilon: Fraction, chance: str | None, unit: str) -> str:
    """What the noise of a whole release keeps from a reader, in one sentence.

    ``chance`` is δ as one in so many; None where it is 0.
    """
    even = guesses(epsilon)[_BEFORE.index(Fraction(1, 2))]
    if even.is_weak:
        return (
            f"Together the answers may all but prove a guess about one {unit}: at ε = "
            f"{format_exact(epsilon)} the noise rules out next to nothing."
        )
    return (
        f"A guess about one {unit} that is as likely as not is at most {even.at_most} % sure "
        f"after all of them{f', but for a chance of 1 in {chance}' if chance else ''}."
    )


def _percent_up(share: Fraction) -> str:
    tenths = math.ceil(1000 * share)
    return _ALL if tenths >= 1000 else f"{tenths / 10:g}"


def _percent_down(share: Fraction) -> str:
    tenths = math.floor(1000 * share)
    return "less than 0.1" if tenths < 1 else f"{tenths / 10:g}"
