"""The entries of a tabulation in ``release.json``, from what is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dp_release_verify import forms
from release.budget.cost import Charge
from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.exact.numbers import format_up
from release.exact.statistics.sums import geometric_noise
from release.tabulations.estimate.rounding import MILLION
from release.tabulations.files.numbers import LevelNumbers
from release.tabulations.measure.table_count import TableCount
from release.tabulations.spec.opened import OpenTabulation


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A table that was measured, and its public noise, whose law is in the file ``law``.

    ``counts`` are the noisy ones; shape (areas, cells).
    """

    query: TableCount
    charge: Charge
    noise: IntegerNoise
    law: str
    counts: Codes


def made_table(own: MeasuredTable) -> forms.MadeTable:
    """The entry of a measured table."""
    query, claimed = own.query, own.query.claimed
    return forms.MadeTable(
        name=query.name,
        level=query.level,
        margin=list(query.margin),
        definition=claimed.definition.value,
        epsilon=claimed.epsilon,
        delta=claimed.delta,
        cells=query.cells,
        charge=forms.Figures(own.charge.epsilon, own.charge.delta),
        mechanism=own.law,
    )


def family_of(noises: Sequence[IntegerNoise]) -> Literal["geometric", "gaussian"]:
    """The family of the noise of all measured tables."""
    return "geometric" if all(map(_is_geometric, noises)) else "gaussian"


def _is_geometric(noise: IntegerNoise) -> bool:
    # By its masses, as a verifier knows no more: the ratio of a tail names the only candidate.
    return noise.right is not None and noise == geometric_noise(noise.right.ratio)


def objective_of(opened: OpenTabulation, levels: Sequence[LevelNumbers]) -> str:
    """The mean standard error of the published tables, weighted by importance; as published."""
    total, weights = Fraction(0), Fraction(0)
    for level in levels:
        weight = opened.declared.importance.get(opened.levels[level.level], Fraction(1))
        for numbers in level.margins:
            errors = numbers.standard_error
            # In rationals of published integers, so that a verifier finds the same digits.
            total += weight * Fraction(int(errors.sum()), errors.size * MILLION)
            weights += weight
    return format_up(total / weights, 6)
