"""Figure 13, (57) and Remark 4 of Kadam et al. 2024: two answers with one noise."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from release.exact.domain import Group
from release.exact.losses import Loss
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.noise.solvers.program import Floats
from research.kadam.common import ONE_SIDED, PAPER
from research.programs import our_masses
from research.sheet import Panel, Series, Shape, Sheet, Stroke


def joint_optimum(
    size: int, moves: list[tuple[int, int]], epsilon: int, *, directed: bool
) -> Floats:
    """The optimal pmf of two answers with ``size`` values each; shape (size, size)."""
    optimum = design(
        Sensitivity.of(Group((size, size)), moves, directed=directed),
        Guarantee(Definition.PURE, Fraction(epsilon), Fraction(0)),
        Loss("error_rate", (np.arange(size * size) > 0).astype(np.int64)),
    )
    return optimum.mechanism.pmf.to_floats().reshape(size, size)


def heat(title: str, matrix: Floats) -> Panel:
    """A joint pmf as a heat map."""
    rows = [Series.of(str(k), range(row.size), row) for k, row in enumerate(matrix)]
    return Panel(title, "η₂", "η₁", tuple(rows), Shape.HEAT)


def figure_13() -> Sheet:
    """Joint pmfs of two answers, with (57)."""
    panels = []
    for title, size, first, second in (
        ("(a) n = 4, 0..2 each: (57)", 5, (0, 1, 2), (0, 1, 2)),
        ("(b) n = 6, {1, 3} × {2, 5}", 7, (1, 3), (2, 5)),
    ):
        moves = list(product(first, second))
        for direction, directed in (("one-sided", True), ("both signs", False)):
            matrix = joint_optimum(size, moves, 3, directed=directed)
            panels.append(heat(f"{title}, {direction}", matrix))
    as_printed, both = (panel.series[0].at(0) for panel in panels[:2])
    return Sheet(
        "kadam-13",
        "joint pmfs of two answers",
        f"{PAPER}, Figure 13 and (57)",
        "ε = 3, δ = 0, error rate",
        tuple(panels),
        f"(57) is right to its four digits, f(0, 0) = {as_printed:.4f}; with both signs it is "
        f"{both:.4f}.",
        (
            ONE_SIDED,
            "The pmf is e^{-3d}/S with d the number of steps from 0, for any group and any "
            "differences; one colour is one d.",
        ),
    )


def remark_4() -> Sheet:
    """F is no product of its marginals where coordinates move together, and is one elsewhere."""
    together = joint_optimum(5, list(product(range(3), range(3))), 3, directed=True)
    marginal = together.sum(axis=1)
    product_of_marginals = np.outer(marginal, marginal)
    apart = joint_optimum(5, [(1, 0), (2, 0), (0, 1), (0, 2)], 1, directed=False)
    alone = our_masses(4, [1, 2], 1.0, 0.0)
    panels = (
        heat("(a) (57): f, coordinates move together", together),
        heat("(b) the product f₁f₂ of its marginals", product_of_marginals),
        heat("(c) f where one coordinate moves, ε = 1", apart),
        Panel(
            "(d) marginals",
            "η",
            "probability",
            (
                Series.of("marginal of (57)", range(5), marginal),
                Series.of("marginal of (c)", range(5), apart.sum(axis=1), Stroke.DASHED),
                Series.of("one answer alone, ±{1,2}, ε = 1", range(5), alone, Stroke.DOTTED),
            ),
            Shape.BARS,
        ),
    )
    farthest = float(np.abs(apart - np.outer(alone, alone)).max())
    return Sheet(
        "kadam-remark-4",
        "when two answers need a noise of their own",
        f"{PAPER}, Remark 4",
        "n = 4 in each coordinate; error rate, δ = 0",
        panels,
        f"Where both answers move at once f(0, 0) = {together[0, 0]:.4f} is no product "
        f"({product_of_marginals[0, 0]:.4f}); where one moves at a time the optimum is the product "
        f"of the single ones.",
        (
            "Remark 4 says that independent noise is not optimal in general. That holds for (57), "
            "where neighbors differ in both coordinates. Where they differ in one coordinate, the "
            "number of steps is the sum of both coordinates' numbers, and the optimum is the "
            f"product: (c) differs from it by {farthest:.0e} at most.",
        ),
    )
