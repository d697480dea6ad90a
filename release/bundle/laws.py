"""The law of a mechanism as it is published: whole numbers, and nothing that the question says.

What a reader can work out from the question, such as how far one unit moves an answer, stands in no
file (docs/design/smaller-format.md, 5).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from dp_release_verify import forms
from release.exact.channel import Channel
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise, Tail, merged
from release.exact.mechanism import BoundOf, Mechanism
from release.exact.modular import Modular
from release.exact.numbers import format_down
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.gap_table import GapTable
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.quantile_tree import QuantileTree
from release.exact.statistics.sums import NoisySums
from release.exact.statistics.top.histogram import HistogramTop
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign

_SCHEMA: Literal["dp-release/mechanism/v1"] = "dp-release/mechanism/v1"


def law_of(design: AnyDesign | StatisticDesign) -> Any:
    """The law of a designed mechanism, with the bound that is proved of its loss."""
    if isinstance(design, StatisticDesign):
        return _on_statistic(design.mechanism)
    mechanism: Mechanism = design.mechanism
    match mechanism:
        case IntegerMechanism():
            ends = forms.Shifts(
                [list(run) for run in merged(mechanism.low)],
                [list(run) for run in merged(mechanism.high)],
            )
            noise = _noise(mechanism.noise)
            return forms.IntegersLaw(_SCHEMA, "integers", noise, ends, _bound(design))
        case Modular():
            return forms.ModularLaw(_SCHEMA, "modular", mechanism.pmf.weights.tolist())
        case Channel():
            return forms.ChannelLaw(_SCHEMA, "channel", mechanism.rows.tolist())
    raise TypeError(f"{mechanism.family} has no form")


def _on_statistic(mechanism: StatisticMechanism) -> Any:
    match mechanism:
        case GapTable():
            weights = mechanism.weights.tolist()
            return forms.GapLaw(_SCHEMA, "gap_table", mechanism.cap, weights)
        case NoisySums():
            return forms.SumsLaw(_SCHEMA, "noisy_sums", _noise(mechanism.noise))
        case QuantileTree():
            return forms.TreeLaw(_SCHEMA, "quantile_tree", mechanism.ratio, mechanism.block)
        case HistogramTop():
            return forms.RatioLaw(_SCHEMA, mechanism.family, mechanism.histogram.ratio)
    # All others are decided by one number of their own.
    selection: Any = mechanism
    return forms.RatioLaw(_SCHEMA, mechanism.family, selection.ratio)


def _noise(noise: IntegerNoise) -> forms.Noise:
    lengths, weights = zip(*merged(noise.runs), strict=True)
    return forms.Noise(
        noise.low, list(lengths), list(weights), _tail(noise.left), _tail(noise.right)
    )


def _tail(tail: Tail | None) -> forms.Tail | None:
    return None if tail is None else forms.Tail(tail.period, tail.ratio)


def _bound(design: AnyDesign) -> forms.Bound | None:
    """The loss that no noise on the integers is below, where that is proved."""
    bound = Fraction(format_down(design.lower_bound, 18))
    is_proved = design.bound_proved and design.bound_of is BoundOf.INTEGERS
    if not is_proved or bound == 0:
        return None
    multipliers = {} if design.multipliers is None else design.multipliers.of
    prices = [forms.Price(distance, list(own)) for distance, own in multipliers.items()]
    return forms.Bound(bound, prices or None)


def found_of(sensitivity: Sensitivity) -> forms.Found:
    """How far neighbors of the very table move an answer, for the auditor alone."""
    if sensitivity.distances is not None:
        return forms.Found(distances=sorted(sensitivity.distances))
    return forms.Found(differences=[list(shift) for shift in sensitivity.shifts])
