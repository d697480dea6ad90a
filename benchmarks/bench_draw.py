"""Drawing a million noisy answers: ours, exact, beside OpenDP's discrete Laplace on vectors.

101 outcomes, seconds per million, median of the repetitions. The rival is in the extra ``bench``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from release.answers import Group, Topology
from release.guarantee import Definition, Differences, Guarantee
from release.ladder import design
from release.losses import LossName, named_loss
from release.sampling import add_noise

COUNT, SIZE, REPETITIONS = 1_000_000, 101, 5


def median(action: Callable[[], object]) -> float:
    """Median seconds of the repetitions."""
    seconds = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    """Print the figures."""
    answers = np.arange(COUNT, dtype=np.int64) % SIZE
    differences = Differences.of(Group((SIZE,)), [(1,)])
    ours = {}
    for definition, delta in (("pure", "0"), ("approximate", "0.000000000001")):
        guarantee = Guarantee(Definition(definition), Fraction(1), Fraction(delta))
        loss = named_loss(LossName.SQUARED, Topology.CYCLIC, SIZE)
        law = design(differences, guarantee, loss).law
        ours[law.bits] = median(lambda law=law: add_noise(answers, law))  # type: ignore[misc] # a default binds the loop variable
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
    rival = statistics.median([median_once(laplace, vector) for _ in range(REPETITIONS)])
    print(f"OpenDP {dp_version()}, discrete Laplace on a vector: {rival:.3f} s")
    for bits, seconds in ours.items():
        print(f"  ratio to our law of {bits} bits: {rival / seconds:.0f}x")


def median_once(mechanism: Callable[[list[int]], object], vector: list[int]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    mechanism(vector)
    return time.perf_counter() - start


def dp_version() -> str:
    """The rival's version."""
    from importlib.metadata import version

    return version("opendp")


if __name__ == "__main__":
    main()
