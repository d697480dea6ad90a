"""The residual test: a noisy total minus its noisy parts is noise of a known distribution.

Where one count of a release has fewer keys than another of the same rows, each of its cells minus
the sum of the other's cells in it is noise of both, for the true counts cancel. They need not: key
sets that leave rows out, clamped counts and bounds that fall on different rows shift a residual. No
shift can bring it nearer to zero more often than noise alone does, for the pmfs here are symmetric
and fall off from zero (T. W. Anderson, 1955, for one dimension). So too many small residuals are
evidence that noise is missing, whatever the data are, and nothing else is tested.

Noise that wraps around shifts a residual too, by sums S of whole domains, and depends on the noise.
Of all these shifts and that of the data together one at most is nearer to zero than half of what
lies between two elements of S; for the others to give a residual of at most w, the noise itself has
to be at least that half less w away. The chance of that is added.

A channel has another pmf for each true answer, of which nothing is known but that the parts of a
residual are independent. The chance that it is exactly 0 is Σ_x P(x)·R(z - x), with P the pmf of
the total and R that of a part, for some z that the other parts decide; by Cauchy and Schwarz it is
at most √ΣP² · √ΣR², at the true answers where these are largest.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from release.exact.domain import Codes
from release.exact.mechanism import Mechanism
from release.spec.query import PlainQuery
from release.verification.residual_noise import chance_of_at_least, falls_off, residual_pmf, spacing

CHANCE = 1e-9
"""Residuals that noise makes so small with less than this chance are refused."""


@dataclass(frozen=True)
class Released:
    """A released count: its query, its mechanism, the keys of its cells and their noisy codes."""

    query: PlainQuery
    mechanism: Mechanism
    keys: tuple[tuple[str, ...], ...]
    codes: Codes

    @property
    def counts(self) -> list[int]:
        """The noisy counts."""
        labels = self.query.answers.labels
        return [int(labels[code]) for code in self.codes.tolist()]


@dataclass(frozen=True)
class Residuals:
    """How many of ``cells`` residuals are at most ``within`` off, and how likely so many are."""

    total: str
    parts: str
    cells: int
    small: int
    within: int
    chance: float

    def __str__(self) -> str:
        return (
            f"{self.total} minus the sums of {self.parts}: {self.small} of {self.cells} residuals "
            f"are within ±{self.within}, as many or more with chance {self.chance:.2g} or less"
        )


def is_total_of(total: PlainQuery, parts: PlainQuery) -> bool:
    """Whether true counts of ``total`` are sums of those of ``parts``, as far as is declared."""
    return (
        total.counts_rows
        and parts.counts_rows
        and (total.table, total.where) == (parts.table, parts.where)
        and total.max_rows_per_unit == parts.max_rows_per_unit
        and set(total.by) < set(parts.by)
    )


def residuals(total: Released, parts: Released) -> Residuals | None:
    """Test the residuals of two counts; None where their pmf is too long.

    ``within`` is such that about half of the residuals of noise alone are that small. It is 0 for
    channels, and for a pmf that does not fall off from zero.
    """
    values = _differences(total, parts)
    # Every combination of keys is published, so each cell of the total has as many parts.
    share = len(parts.keys) // len(total.keys)
    noise, of_parts = total.mechanism.modular_noise, parts.mechanism.modular_noise
    if noise is None or of_parts is None or not (falls_off(noise) and falls_off(of_parts)):
        # For noise of any kind: by Cauchy-Schwarz no residual of 0 is likelier (mathematics, 2.21).
        most = total.mechanism.concentration() * parts.mechanism.concentration()
        return _counted(total, parts, values, 0, most + 1e-9)
    masses = residual_pmf(noise, of_parts, share)
    if masses is None:
        return None
    # Item i is the chance of a residual of at most i, either sign.
    at_most = np.minimum(np.cumsum(masses), 1.0)
    within = int(np.searchsorted(at_most, 0.5))
    # Another sum of whole domains is near only if the noise goes half the spacing, less ``within``.
    far = spacing(noise.group.size, of_parts.group.size, share) // 2 - within
    wrapped = 1.0 if far <= 0 else 1 - float(at_most[min(far, at_most.size) - 1])
    chance = min(1.0, float(at_most[within]) + wrapped + 1e-9)  # floats, to the safe side
    return _counted(total, parts, values, within, chance)


def no_residuals(names: tuple[str, str], values: Codes, concentrations: float) -> Residuals:
    """Test how many residuals are exactly 0, where noise makes few so.

    Args:
        names: of the total and of its parts.
        values: the residual of each cell of the total.
        concentrations: the product of both mechanisms' :meth:`Mechanism.concentration`.
    """
    small = int((values == 0).sum())
    likely = chance_of_at_least(values.size, small, min(1.0, concentrations + 1e-9))
    return Residuals(*names, values.size, small, 0, likely)


def _differences(total: Released, parts: Released) -> list[int]:
    """The residual of each cell of ``total``."""
    sums: dict[tuple[str, ...], int] = defaultdict(int)
    places = list(map(parts.query.by.index, total.query.by))
    for key, count in zip(parts.keys, parts.counts, strict=True):
        sums[tuple(key[place] for place in places)] += count
    # Python's integers: sums of counts from a hostile file may exceed 64 bits.
    return [count - sums[key] for key, count in zip(total.keys, total.counts, strict=True)]


def _counted(
    total: Released, parts: Released, values: list[int], within: int, chance: float
) -> Residuals:
    small = sum(abs(value) <= within for value in values)
    likely = chance_of_at_least(len(values), small, min(1.0, chance))
    return Residuals(total.query.name, parts.query.name, len(values), small, within, likely)
