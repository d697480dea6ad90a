"""The families of mechanisms, each with the proof of what it keeps."""

from __future__ import annotations

from typing import Any

from dp_release_verify.mechanisms.base import Deltas, Mechanism
from dp_release_verify.mechanisms.gap_table import GapTable
from dp_release_verify.mechanisms.integers import Integers
from dp_release_verify.mechanisms.rows import Channel, Modular
from dp_release_verify.mechanisms.selection import (
    ExponentialMechanism,
    JointQuantiles,
    PermuteAndFlip,
    QuantileTree,
    TopCanonical,
    TopHistogram,
    TopPeeled,
    TwoCategories,
)
from dp_release_verify.mechanisms.sums import NoisySums

FAMILIES: dict[str, Any] = {
    "integers": Integers,
    "modular": Modular,
    "channel": Channel,
    "permute_and_flip": PermuteAndFlip,
    "exponential_mechanism": ExponentialMechanism,
    "two_categories": TwoCategories,
    "gap_table": GapTable,
    "noisy_sums": NoisySums,
    "top_histogram": TopHistogram,
    "top_canonical": TopCanonical,
    "top_peeled": TopPeeled,
    "joint_quantiles": JointQuantiles,
    "quantile_tree": QuantileTree,
}

ON_STATISTIC = frozenset(FAMILIES) - {"integers", "modular", "channel"}

__all__ = ["FAMILIES", "ON_STATISTIC", "Deltas", "Mechanism"]
