"""dp-release: differentially private tables with provably least noise and a log that re-proves it.

The noise laws in five lines::

    import release
    from fractions import Fraction

    group = release.Group((24,))                                     # 24 hours
    differences = release.Differences.of(group, [(1,)])              # one hour up or down
    guarantee = release.Guarantee(release.Definition.PURE, Fraction(1), Fraction(0))
    loss = release.named_loss(release.LossName.SQUARED, release.Topology.CYCLIC, 24)
    made = release.design(differences, guarantee, loss)              # made.law, made.gap, …

Whole releases run through :func:`release.pipeline.run_release` and are checked by
:func:`release.verify.verify`. Importing the package loads nothing; names load on use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from release.version import VERSION

if TYPE_CHECKING:
    from release.answers import AnswerDomain, Group, Topology, levels
    from release.cache import DesignCache
    from release.constraints import Constraint, at_most, equal_masses, monotone, zero_mean
    from release.errors import DesignError, ReleaseError
    from release.estimation import (
        Estimate,
        Estimates,
        estimate,
        estimate_release,
        likelihood,
        sum_of,
    )
    from release.guarantee import Definition, Deltas, Differences, Guarantee, deltas
    from release.ladder import Design, design
    from release.law import Law
    from release.losses import (
        Loss,
        LossName,
        WorstCaseLoss,
        named_loss,
        prior_loss,
        table_loss,
        worst_case,
    )
    from release.search import least_delta, least_epsilon

_HOMES = {
    "answers": ("AnswerDomain", "Group", "Topology", "levels"),
    "cache": ("DesignCache",),
    "constraints": ("Constraint", "at_most", "equal_masses", "monotone", "zero_mean"),
    "errors": ("DesignError", "ReleaseError"),
    "estimation": (
        "Estimate",
        "Estimates",
        "estimate",
        "estimate_release",
        "likelihood",
        "sum_of",
    ),
    "guarantee": ("Definition", "Deltas", "Differences", "Guarantee", "deltas"),
    "ladder": ("Design", "design"),
    "law": ("Law",),
    "losses": (
        "Loss",
        "LossName",
        "WorstCaseLoss",
        "named_loss",
        "prior_loss",
        "table_loss",
        "worst_case",
    ),
    "search": ("least_delta", "least_epsilon"),
}

__all__ = [
    "VERSION",
    "AnswerDomain",
    "Constraint",
    "Definition",
    "Deltas",
    "Design",
    "DesignCache",
    "DesignError",
    "Differences",
    "Estimate",
    "Estimates",
    "Group",
    "Guarantee",
    "Law",
    "Loss",
    "LossName",
    "ReleaseError",
    "Topology",
    "WorstCaseLoss",
    "at_most",
    "deltas",
    "design",
    "equal_masses",
    "estimate",
    "estimate_release",
    "least_delta",
    "least_epsilon",
    "levels",
    "likelihood",
    "monotone",
    "named_loss",
    "prior_loss",
    "sum_of",
    "table_loss",
    "worst_case",
    "zero_mean",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"release.{home}"), name)
    raise AttributeError(f"module 'release' has no attribute {name!r}")
