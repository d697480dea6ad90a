"""The exponential mechanism as a selection that a spec, or a shared budget, asks for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from release.exact.privacy import Definition, Guarantee
from release.exact.statistics.exponential import ExponentialMechanism
from release.exact.statistics.nearness import lead_for
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.statistic import Scores
from release.noise.on_statistic import design_on_statistic

SCORES = Scores(24, 2, np.asarray)
ASKED = Guarantee(Definition.PURE, Fraction(1), Fraction(0))


def test_it_is_designed_where_it_is_named_and_is_never_the_default() -> None:
    named = design_on_statistic(SCORES, "exponential_mechanism", ASKED)
    assert isinstance(named.mechanism, ExponentialMechanism)
    assert named.mechanism.satisfies(Fraction(1))
    default = design_on_statistic(SCORES, "best", ASKED)
    assert isinstance(default.mechanism, PermuteAndFlip)
    # With one charge it needs a larger lead.
    assert lead_for(named.mechanism.chance_of_leader) > lead_for(default.mechanism.chance_of_leader)
