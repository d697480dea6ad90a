"""What all mechanisms on statistics promise: the way to a file and back, and whom they answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from release.exact.statistics.nearness import Wording
from release.exact.statistics.statistic import Counts, Ranks, Scores, Statistic, Sums
from release.exact.statistics.top.bounds import CountBounds, Published
from release.spec.mechanisms import ON_STATISTIC, mechanism_on_statistic

ONE = Fraction(1)
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
BOUNDS = CountBounds(7, 2, is_replaced=True)

STATISTICS: dict[str, Statistic] = {
    "scores": Scores(9, 4, np.asarray),
    "a swap of two": Scores(2, 2, np.asarray, is_swap=True),
    "a swap of four": Scores(4, 2, np.asarray, is_swap=True),
    "a sum": Sums(1, 6, np.asarray),
    "two sums": Sums(2, 6, np.asarray),
    "ranks": Ranks(40, 32, np.asarray, QUARTILES, 2, replaces=True, total=None),
    "counts": Counts(7, 4, np.asarray, BOUNDS, 3, None, Published.NONE),
    "shown counts": Counts(7, 4, np.asarray, BOUNDS, 3, None, Published.ALL),
}


@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS)
def test_a_law_becomes_the_mechanism_that_it_was(statistic: Statistic) -> None:
    for name in statistic.families:
        family = mechanism_on_statistic(name)
        designed = family.designed(statistic, ONE, ONE)
        assert designed is not None
        assert designed.satisfies(ONE)
        assert family.of_law(statistic, designed.law()) == designed
        assert designed.law().family == family.family == name


@pytest.mark.parametrize("name", ON_STATISTIC)
def test_a_mechanism_is_made_for_no_other_kind_of_statistic(name: str) -> None:
    family = mechanism_on_statistic(name)
    mine = [own for own in STATISTICS.values() if name in own.families]
    designed = family.designed(mine[0], ONE, ONE)
    assert designed is not None
    kinds = {type(own) for own in mine}
    others = [own for own in STATISTICS.values() if type(own) not in kinds]
    assert others
    for other in others:
        with pytest.raises(TypeError, match="these are"):
            family.designed(other, ONE, ONE)
        with pytest.raises(TypeError, match="these are"):
            family.of_law(other, designed.law())


SELECTIONS = ["permute_and_flip", "exponential_mechanism", "two_categories"]


@pytest.mark.parametrize("name", SELECTIONS)
def test_the_lead_that_is_needed_grows_as_epsilon_falls(name: str) -> None:
    """To where a ratio is 1 in floating point."""
    statistic = STATISTICS["a swap of two" if name == "two_categories" else "scores"]
    spread = 1 if name == "two_categories" else 4
    leads = []
    for epsilon in (spread * Fraction(1, 2**12), spread * Fraction(1, 2**55)):
        mechanism = mechanism_on_statistic(name).designed(statistic, epsilon, ONE)
        assert mechanism is not None
        leads.append(mechanism.nearness(Wording("")).near * float(epsilon))
    assert leads[1] == pytest.approx(leads[0], rel=0.01)
