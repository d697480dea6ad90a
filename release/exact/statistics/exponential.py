"""The exponential mechanism on integer scores: a candidate with a chance in proportion to ρ^gap.

The gap is how far a score lies below the best (McSherry and Talwar 2007). With one charge
permute-and-flip is never worse. Among many selections that share a certified budget this mechanism
is the better one: its privacy losses lie within an interval of length ε, so that they compose
better than those of other ε-private mechanisms (Dong, Durfee and Rogers 2020; docs/design/
mathematics.md T4).

A draw proposes uniform candidates and accepts one with chance ρ^gap, the first accepted one being
published. Proposals come in rounds of as many as there are candidates. How many rounds a cell takes
depends on its scores: 1 where all tie, 1.6 on average where one leads by far. The time of a draw is
not protected (docs/privacy.md, which has it measured).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from release.exact.composition.distribution import UNIT
from release.exact.composition.profile import Profile
from release.exact.domain import Codes
from release.exact.numbers import MAX_EPSILON, exp_bounds
from release.exact.sampling import RandomBytes, draw_geometric, random_below_power
from release.exact.statistics.mechanism import RATIO_ONE, near_power
from release.exact.statistics.selection import Selection


class ExponentialMechanism(Selection):
    """A candidate's chance is in proportion to ρ^gap.

    A common shift of the scores changes no chance, so that changes lie in 0..``spread``. They
    multiply the weights by 1 to ρ^-spread, and with them the sum of all weights.
    """

    family = "exponential_mechanism"
    how = "the exponential mechanism"

    def profile(self, epsilon: Fraction, step: Fraction) -> Profile:
        """The profile of all that has losses within an interval of ``epsilon``, on a grid.

        Raises:
            ValueError: this mechanism is not proved to be ``epsilon``-private.
        """
        if not self.satisfies(epsilon):
            raise ValueError("the exponential mechanism has a larger epsilon")
        return bounded_range_profile(epsilon, step)

    def drawn(self, gaps: Codes, source: RandomBytes) -> Codes:
        """As :meth:`Selection.drawn`."""
        chosen = np.empty(len(gaps), dtype=np.int64)
        waiting = np.arange(len(gaps))
        while waiting.size:
            proposed = _uniform(self.candidates, waiting.size * self.candidates, source)
            proposed = proposed.reshape(waiting.size, self.candidates)
            # P(G ≥ gap) = ρ^gap. Gaps are below 2^62, so the end of G changes nothing.
            coins = draw_geometric(self.ratio, proposed.size, source).reshape(proposed.shape)
            is_accepted = coins >= np.take_along_axis(gaps[waiting], proposed, axis=1)
            first = is_accepted.argmax(axis=1)
            rows = np.arange(waiting.size)
            is_done = is_accepted[rows, first]
            chosen[waiting[is_done]] = proposed[rows, first][is_done]
            waiting = waiting[~is_done]
        return chosen

    def chances(self, scores: Codes) -> list[Fraction]:
        """As :meth:`Selection.chances`."""
        best = int(scores.max())
        share = Fraction(self.ratio, RATIO_ONE)
        weights = [share ** (best - score) for score in scores.tolist()]
        return [weight / sum(weights) for weight in weights]

    def chance_of_leader(self, lead: int) -> float:
        """As :meth:`Selection.chance_of_leader`."""
        return 1 / (1 + (self.candidates - 1) * near_power(self.ratio, lead))


def bounded_range_profile(epsilon: Fraction, step: Fraction) -> Profile:
    """Return the profile of mechanisms whose losses lie within an interval of length ``epsilon``.

    H(t) = (1 - √(t/E))²/(1 - 1/E) up to t = E = e^ε, and 0 beyond; rounded up. Where ε is not on
    the grid, the chord to the next loss of the grid lies above it.

    Args:
        epsilon: above 0, at most 100.
        step: the grid's.

    Raises:
        ValueError: another ε.

    Source: Dong, Durfee and Rogers 2020.
    """
    if not 0 < epsilon <= MAX_EPSILON:
        raise ValueError(f"epsilon must be above 0 and at most {MAX_EPSILON}")
    low, high = exp_bounds(epsilon)
    values = []
    for place in range(ceil(epsilon / step)):
        loss = place * step
        # No pure mechanism exceeds randomised response; for the least ε that is the bound.
        bound = (high - exp_bounds(loss)[0]) / (high + 1)
        if low > 1:
            root = 1 / exp_bounds((epsilon - loss) / 2)[1]
            bound = min(bound, (1 - root) ** 2 / (1 - 1 / low))
        values.append(min(UNIT, ceil(bound * UNIT)))
    return Profile(step, (*values, 0))


def _uniform(size: int, count: int, source: RandomBytes) -> Codes:
    """``count`` independent uniform integers below ``size``."""
    numbers = np.zeros(count, dtype=np.int64)
    waiting = np.arange(count)
    # So many words at the end would make some integers more likely.
    surplus = 2**64 % size
    while waiting.size:
        words = random_below_power(64, waiting.size, source)
        numbers[waiting] = (words % np.uint64(size)).astype(np.int64)
        waiting = waiting[words > np.uint64(2**64 - 1 - surplus)]
    return numbers
