"""Drawing a million noisy answers: ours, exact, beside OpenDP's discrete Laplace on vectors.

101 outcomes, seconds per million, median of the repetitions. The rival is in the extra ``bench``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from timing import median_seconds

from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.modular import Modular
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design

COUNT, SIZE, REPETITIONS = 1_000_000, 101, 5


def main() -> None:
    """Print the figures."""
    answers = np.arange(COUNT, dtype=np.int64) % SIZE
    sensitivity = Sensitivity.of(Group((SIZE,)), [(1,)])
    ours = {}
    for definition, delta in (("pure", "0"), ("approximate", "0.000000000001")):
        guarantee = Guarantee(Definition(definition), Fraction(1), Fraction(delta))
        loss = named_loss(LossName.SQUARED, Topology.CYCLIC, SIZE)
        law = design(sensitivity, guarantee, loss).mechanism.pmf
        ours[law.bits] = median_seconds(lambda law=law: Modular(law).draw(answers), REPETITIONS)  # type: ignore[misc] # a default binds the loop variable
        print(
            f"{COUNT:,} answers, {SIZE} outcomes, a law of {law.bits} bits: {ours[law.bits]:.3f} s"
        )
    try:
        import opendp.prelude as dp
    except ImportError:
        print("OpenDP is not installed (pip install 'dp-release[bench]'): nothing beside")
        return
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int), size=COUNT)
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=1.0)
    vector = answers.tolist()
    rival = median_seconds(lambda: laplace(vector), REPETITIONS)
    print(f"OpenDP {dp_version()}, discrete Laplace on a vector: {rival:.3f} s")
    for bits, seconds in ours.items():
        print(f"  ratio to our law of {bits} bits: {rival / seconds:.0f}x")


def dp_version() -> str:
    """The rival's version."""
    from importlib.metadata import version

    return version("opendp")


if __name__ == "__main__":
    main()
