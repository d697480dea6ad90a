"""Composition by OpenDP's own measurements and by autodp's accountant, where they are installed.

OpenDP composes its Laplace noise on integers (two-sided geometric) by addition, or as zCDP, and its
Gaussian noise as zCDP; its own search finds the least scale that stays within (ε, δ). autodp
composes Rényi divergences. Each figure is the library's own, by its own calls; ours are elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

LARGEST_SCALE = 1e7
"""Where OpenDP's search ends; without bounds it takes 20 times as long."""


def title(name: str) -> str:
    """The library and its version, or that it is missing."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} is not installed: its figures are left out"


def is_installed(name: str) -> bool:
    """Whether the library can be compared."""
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


@lru_cache(maxsize=1)
def opendp() -> Any:
    """OpenDP's functions, with all that is neither proved nor refused."""
    library: Any = import_module("opendp.prelude")
    library.enable_features("contrib")
    return library


def _integers() -> tuple[Any, Any]:
    dp = opendp()
    return dp.atom_domain(T=int), dp.absolute_distance(T=int)


def gaussian(scale: float) -> Any:
    """Discrete Gaussian noise on a count."""
    return opendp().m.make_gaussian(*_integers(), scale=scale)


def laplace(scale: float) -> Any:
    """Two-sided geometric noise on a count, pure."""
    return opendp().m.make_laplace(*_integers(), scale=scale)


def laplace_as_zcdp(scale: float) -> Any:
    """Two-sided geometric noise on a count, accounted by its ρ."""
    return opendp().c.make_pureDP_to_zCDP(laplace(scale))


def noisy_max(scale: float) -> Any:
    """The exponential mechanism on scores of which none falls: report noisy max, by its ρ."""
    dp = opendp()
    scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=True)
    return dp.m.make_noisy_max(*scores, dp.zero_concentrated_divergence(), scale=scale)


def converted(measurements: Sequence[Any], delta: float) -> Any:
    """Measurements composed as zCDP, and converted to (ε, δ)."""
    dp = opendp()
    whole = dp.c.make_zCDP_to_approxDP(dp.c.make_composition(list(measurements)))
    return dp.c.make_fix_delta(whole, delta=delta)


def opendp_epsilon(one: Any, count: int, delta: float) -> float:
    """The ε at δ of ``count`` measurements that are accounted by their ρ."""
    return float(converted([one] * count, delta).map(1)[0])


def opendp_scale(make: Callable[[float], Sequence[Any]], epsilon: float, delta: float) -> float:
    """The least scale with which the measurements, composed as zCDP, stay within (ε, δ)."""

    def whole(scale: float) -> Any:
        return converted(make(scale), delta)

    # OpenDP refuses a ρ of several hundreds; less noise than this is never within an ε.
    least = math.sqrt(len(make(1.0))) / max(1.0, epsilon)
    found = opendp().binary_search_param(
        whole, d_in=1, d_out=(epsilon, delta), bounds=(least, LARGEST_SCALE), T=float
    )
    return float(found)


def opendp_added_scale(count: int, epsilon: float) -> float:
    """The least scale of geometric noise with which ``count`` measurements add up to ε."""
    dp = opendp()

    def whole(scale: float) -> Any:
        return dp.c.make_composition([laplace(scale)] * count)

    bounds = (count / epsilon / 2, LARGEST_SCALE)
    return float(dp.binary_search_param(whole, d_in=1, d_out=epsilon, bounds=bounds, T=float))


def opendp_variance(count: int, epsilon: float, delta: float) -> float:
    """The variance of one of ``count`` measurements: Gaussian or geometric, the lesser."""
    wide = opendp_scale(lambda scale: [gaussian(scale)] * count, epsilon, delta)
    ratio = math.exp(-1 / opendp_added_scale(count, epsilon))
    # A discrete Gaussian's variance is at most its scale's square, and hardly less from 1 on.
    return min(wide**2, 2 * ratio / (1 - ratio) ** 2)


def autodp_epsilon(mechanism: str, parameter: float, count: int, delta: float) -> float:
    """The ε at δ of ``count`` mechanisms of autodp's zoo, by their Rényi divergences."""
    zoo: Any = import_module("autodp.mechanism_zoo")
    transformers: Any = import_module("autodp.transformer_zoo")
    one = getattr(zoo, mechanism)(parameter)
    return float(transformers.Composition()([one], [count]).get_approxDP(delta))


def autodp_variance(count: int, epsilon: float, delta: float) -> float:
    """The least variance of Gaussian noise that autodp's accountant allows ``count`` times."""
    low, high = 0.1, 1e5
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        if autodp_epsilon("GaussianMechanism", middle, count, delta) <= epsilon:
            high = middle
        else:
            low = middle
    return high**2
