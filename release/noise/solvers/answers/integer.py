"""Probabilistic guarantees with δ > 0 on answers in order: a search for the masses to give up.

A channel satisfies the probabilistic (ε, δ) where for each ordered pair (a, b) of neighboring
answers the masses P(o|a) with P(o|a) > E·P(o|b) add up to at most δ (Kadam et al. 2024, equation
(3); Meiser 2018). Once each cell (a, b, o) is hard or given up, the rest is a linear program
(:mod:`release.noise.solvers.answers.relaxation`).

Branch and bound. A node has some cells decided, and its children decide one more. Each node has
a bound that is proved in integers by weak duality. Every channel with the guarantee belongs to a
node that is left, so the least of their bounds holds for all.

- Where a cell is given up, P(o|a) > E·P(o|b), its reverse is hard: P(o|b) ≤ E·P(o|a).
- If costs and prior are symmetric, the mirror image of a channel costs as much. A node that holds
  the mirror images of its channels decides a cell together with its mirror image, in three
  children: both hard, both given up, or the first given up and the second hard. A channel that has
  it the other way round has its mirror image in the third.

Incumbents. In the optima seen, an outcome has mass from one true answer to another, satisfies the
ratios in between and is given up at both ends. This is no theorem (two answers with E·(1-δ) < 1
break it) and the proof does not use it. A local search moves the ends. The best choice of cells is
solved to hundreds of bits and rounded to integers with a little of the uniform channel, which
breaks no ratio.

Blocks. Where the work ends before the proof, blocks of answers are searched by themselves, with the
pairs between blocks priced as in the relaxation: a far better bound for many answers
(:func:`_block_bound`).

All limits are counts, so that a busy machine makes the same channel.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from release.errors import DesignError
from release.exact.channel import Channel
from release.exact.numbers import exp_bounds
from release.exact.pmf import DEFAULT_BITS
from release.exact.privacy import Definition, Guarantee
from release.noise.solvers.answers.laws import design_channel, mixed_with_uniform
from release.noise.solvers.answers.problem import ChannelDesign, ChannelProblem
from release.noise.solvers.answers.relaxation import GIVEN_UP, HARD, OPEN, Cells, Node, Relaxation
from release.noise.solvers.program import Builder, Floats, Numbers
from release.noise.solvers.refine import ONE, refine
from release.records.notes import above_best

Cell: TypeAlias = tuple[int, int]
"""The number of a pair of neighboring answers, and an outcome."""

MOST_ANSWERS = 64
"""Beyond it a first channel alone takes minutes."""

MOST_WORK = 24_000_000
"""Rows of a program times steps of the simplex method, in branch and bound: some seconds.

Where that proves nothing, half as much is done in the blocks."""

MOST_MOVES = 12_000_000
"""The same in the local search before it."""

PROVED_GAP = Fraction(1, 10**6)
"""The relative gap at which the search ends."""

BRANCH_AND_BOUND = "branch and bound"
"""The method of these channels, by its name."""

_CLOSE = 5e-7
"""A node is left when its bound is within this share of the incumbent: half of the gap."""

_NOTHING = 1e-12
"""A gap below this share of the largest cost counts as none, or 0 would never be reached."""

_BETTER = 1 - 1e-9
"""A channel of less than this share of the incumbent's cost takes its place."""

_VISIBLE = 1e-7
"""Smaller violations are taken for the solver's when a cell is chosen; no proof depends on it."""

_SHARES = (0.2, 0.5, 0.8)
"""Shares of its mass from which on a cell that the relaxation gives up in part is given up."""

_UNIFORM = tuple(Fraction(1, 10**places) for places in (13, 11, 9))
"""Shares of the uniform channel that are mixed in where a channel breaks a ratio."""

_BLOCK = 8
"""Answers in a block; a search of as many ends."""

_COST_BITS = 32
"""Bits of the largest cost in a block."""

_FEW = 3
"""Radii in turn that make no better channel, after which larger ones are not tried."""

_NODES_A_ROUNDING = 50
"""How many nodes there are to a try to complete one of them to a channel."""


def probabilistic_channel(
    problem: ChannelProblem, most_work: int = MOST_WORK, most_moves: int = MOST_MOVES
) -> ChannelDesign:
    """The channel of least expected cost with a probabilistic guarantee, as far as work allows.

    The lower bound is proved for every such channel; the notes name a gap above ``PROVED_GAP``.
    ``most_work`` and ``most_moves`` count rows times steps of the simplex method.

    Raises:
        DesignError: there are more than ``MOST_ANSWERS`` answers.
        ValueError: another guarantee, or δ = 0.
    """
    guarantee = problem.guarantee
    if guarantee.definition is not Definition.PROBABILISTIC or not guarantee.delta:
        raise ValueError("the search is for a probabilistic guarantee with delta above 0")
    if max(problem.costs.shape) > MOST_ANSWERS:
        raise DesignError(
            f"found {max(problem.costs.shape)} answers; a channel with a probabilistic guarantee "
            f"is made for at most {MOST_ANSWERS}; `fallback: approximate` accepts an approximate "
            "guarantee instead"
        )
    pure = _pure(problem)
    search = _Search(problem, float(pure.objective))
    search.move_ends(most_moves)
    search.run(most_work)
    design = replace(pure, problem=problem, notes=())
    if search.best is not None:
        channel = _rounded(problem, search.best.cells)
        if channel is not None and problem.loss_of(channel) < pure.objective:
            design = replace(design, channel=channel, objective=problem.loss_of(channel))
    bound = search.proved_bound
    if not search.is_close(bound):
        bound = max(bound, _block_bound(problem, search.root, most_work // 2))
    bound = min(design.objective, bound)
    gap = float(design.objective - bound)
    notes: tuple[str, ...] = ()
    if gap > PROVED_GAP * design.objective + 2 * _NOTHING * int(problem.costs.max()):
        notes = (above_best(gap / float(design.objective)),)
    solver = search.relaxation.solver
    return replace(design, lower_bound=bound, method=BRANCH_AND_BOUND, solver=solver, notes=notes)


def best_channel(problem: ChannelProblem) -> ChannelDesign:
    """The channel of least expected cost with the problem's guarantee, as far as work allows.

    Raises:
        DesignError: there are too many answers, or ε is too small.
    """
    guarantee = problem.guarantee
    # With the least δ a channel is made for the pure guarantee, and none is given up.
    if guarantee.definition is Definition.PROBABILISTIC and guarantee.delta > 0:
        return probabilistic_channel(problem)
    return design_channel(problem)


def _pure(problem: ChannelProblem) -> ChannelDesign:
    """The channel with the pure guarantee, which implies the probabilistic one."""
    guarantee = Guarantee(Definition.PURE, problem.guarantee.epsilon, Fraction(0))
    return design_channel(replace(problem, guarantee=guarantee))


class _Search:
    """``best`` is the cheapest node whose cells are all decided; ``cap`` is what it costs.

    Until there is one, ``cap`` is what the pure channel costs. ``proved_bound`` holds for every
    channel with the guarantee.
    """

    def __init__(self, problem: ChannelProblem, cap: float) -> None:
        self.problem, self.cap = problem, cap
        self.relaxation = Relaxation(problem, cap or 1.0)
        self.best: Node | None = None
        numbers = dict(zip(problem.pairs, range(len(problem.pairs)), strict=True))
        last = problem.answers - 1
        self.reverses = [numbers[b, a] for a, b in problem.pairs]
        self.mirrors = [numbers[last - a, last - b] for a, b in problem.pairs]
        cells: Cells = np.full(self.relaxation.given.shape, OPEN, dtype=np.int8)
        self.root = self.relaxation.solve(cells, symmetric=self._is_symmetric)
        self.proved_bound = self.root.bound
        self._complete(self.root)

    @property
    def _is_symmetric(self) -> bool:
        costs, prior = self.problem.costs, self.problem.prior
        return bool((costs == costs[::-1, ::-1]).all()) and (prior is None or prior == prior[::-1])

    def run(self, most_work: int) -> None:
        """Branch and bound, until the bound meets the incumbent or the work is done."""
        # The age decides between equal bounds, since nodes have no order; it also makes the search
        # the same on every machine.
        nodes, age = [(self.root.bound, 0, self.root)], 0
        end = self.relaxation.work + most_work
        # Invariant: each channel with the guarantee, or its mirror image, belongs to one of the
        # nodes or costs at least one of the bounds that are left.
        open_bounds: list[Fraction] = []
        while nodes and self.relaxation.work < end and not self.is_close(nodes[0][0]):
            bound, number, node = heapq.heappop(nodes)
            cell = _branching_cell(self.relaxation, node)
            if cell is None:
                # The relaxation gives up whole masses: it is exact in this node.
                self._try(_decided(self.relaxation, node, 1 - _VISIBLE), node)
                open_bounds.append(bound)
                continue
            if number % _NODES_A_ROUNDING == 1:
                self._complete(node)
            for child in self._children(node, *cell):
                if self.is_close(child.bound):
                    open_bounds.append(child.bound)
                    continue
                age += 1
                heapq.heappush(nodes, (child.bound, age, child))
        open_bounds += [bound for bound, _, _ in nodes[:1]]
        self.proved_bound = max(self.proved_bound, min(open_bounds))

    def is_close(self, bound: Fraction) -> bool:
        """Whether what is left between the bound and the incumbent counts as nothing."""
        nothing = _NOTHING * int(self.problem.costs.max())
        return float(bound) >= self.cap * (1 - _CLOSE) - nothing

    def _children(self, node: Node, pair: int, outcome: int) -> Iterator[Node]:
        """The nodes with the cell hard and with it given up; three where the node is symmetric."""
        cell = (pair, outcome)
        mirrored = self.mirrors[pair], node.cells.shape[1] - 1 - outcome
        # A pair is never its own mirror image, so a symmetric node has two open cells here.
        choices: list[tuple[list[Cell], list[Cell], bool]] = [
            ([cell], [], False),
            ([], [cell], False),
        ]
        if node.symmetric:
            choices = [
                ([cell, mirrored], [], True),
                ([], [cell, mirrored], True),
                ([mirrored], [cell], False),
            ]
        for hard, given_up, symmetric in choices:
            cells = self._with(node.cells, hard, given_up)
            if cells is not None:
                child = self.relaxation.solve(cells, node.basis, symmetric=symmetric)
                # A child's channels are its parent's too.
                yield replace(child, bound=max(child.bound, node.bound))

    def _with(self, cells: Cells, hard: list[Cell], given_up: list[Cell]) -> Cells | None:
        """The cells with these decided; None where no channel gives up all of ``given_up``."""
        decided = cells.copy()
        for cell in hard:
            decided[cell] = HARD
        for pair, outcome in given_up:
            decided[self.reverses[pair], outcome] = HARD
        for cell in given_up:
            # A cell and its mirror image may be each other's reverse.
            if decided[cell] == HARD:
                return None
            decided[cell] = GIVEN_UP
        return decided

    def _complete(self, node: Node) -> None:
        """Try the cells that the node's relaxation gives up for the most part."""
        for share in _SHARES:
            self._try(_decided(self.relaxation, node, share), node)

    def _try(self, cells: Cells, near: Node) -> bool:
        """Whether these cells, all decided, make a cheaper channel: then it is the best."""
        node = self.relaxation.solve(cells, near.basis)
        cost = node.objective * self.relaxation.unit
        if node.missing > _VISIBLE or cost >= self.cap * _BETTER:
            return False
        self.best, self.cap = node, cost
        return True

    def move_ends(self, most_work: int) -> None:
        """Move the ends of the outcomes' masses, one at a time, while channels get better."""
        end = self.relaxation.work + most_work
        true, published = self.root.masses.shape
        centres = np.arange(published) * (true - 1) // max(1, published - 1)
        worse = 0
        for radius in range(true):
            # Too small a radius gives up too much for any channel.
            if worse == _FEW or self.relaxation.work > end:
                break
            cells = self._cells_within(centres - radius, centres + radius)
            tried = self._try(cells, self.best or self.root)
            worse = 0 if tried or self.best is None else worse + 1
        moved = self.best is not None
        while moved and self.relaxation.work < end:
            moved = False
            for side in range(2 * published):
                moved = self._move_end(*divmod(side, 2)) or moved
                if self.relaxation.work > end:
                    break

    def _move_end(self, outcome: int, side: int) -> bool:
        """Whether an end of an outcome, moved outwards or inwards, makes a better channel."""
        if self.best is None:
            return False
        ends = _ends(self.best.masses)
        for step in (-1, 1):
            moved = ends.copy()
            moved[side, outcome] += step
            if self._try(self._cells_within(*moved), self.best):
                return True
        return False

    def _cells_within(self, low: Numbers, high: Numbers) -> Cells:
        """Given up are the cells from a true answer within the ends to one beyond them."""
        own, neighbor = self.relaxation.own[:, None], self.relaxation.other[:, None]
        leaves = (low <= own) & (own <= high) & ((neighbor < low) | (neighbor > high))
        cells: Cells = np.where(leaves, GIVEN_UP, HARD).astype(np.int8)
        return cells


def _block_bound(problem: ChannelProblem, root: Node, most_work: int) -> Fraction:
    """A bound from blocks of answers, each searched by itself; 0 for the worst true answer.

    For prices u ≥ 0 every channel has Σ_o u(o)·(P(o|a) - E·P(o|b)) ≤ δ·max u. With the prices of
    the pairs that cross from block to block added to the costs, no other row connects the blocks.
    """
    answers, prior = problem.answers, problem.prior
    width = min(_BLOCK, answers // 2)
    steps = tuple(step for step in problem.steps if step < width)
    if prior is None or not steps:
        return Fraction(0)
    # Integers in these units; each may be any number, as long as all use the same ones.
    unit = float(problem.costs.max()) / 2**_COST_BITS
    # Exact fractions, rounded down: the bound is a proof, and floats could round it up.
    shares = np.array(prior, dtype=object)[:, None] / Fraction(unit)
    costs = np.vectorize(int, otypes=[object])(shares * problem.costs.astype(object))
    ratio_above = exp_bounds(problem.guarantee.epsilon)[1]
    edges = [*range(0, answers - width + 1, width), answers]
    block_of = np.searchsorted(edges, np.arange(answers), side="right")
    paid = 0
    for (a, b), prices in zip(problem.pairs, root.prices, strict=True):
        if block_of[a] != block_of[b]:
            whole = np.floor(prices / unit).astype(np.int64).astype(object)
            costs[a] += whole
            # At least E·u: to subtract too much lowers the bound, which stays one.
            costs[b] -= np.array([-int(-u * ratio_above // 1) for u in whole.tolist()])
            paid += max(whole.tolist())
    total = -problem.guarantee.delta * paid
    for low, high in pairwise(edges):
        # A constant for each row makes the costs at least 0.
        least = costs[low:high].min(axis=1)
        block = (costs[low:high] - least[:, None]).astype(np.int64)
        share = (Fraction(1, high - low),) * (high - low)
        part = ChannelProblem(steps, problem.guarantee, block, share)
        search = _Search(part, float(block.max(axis=1).mean()))
        search.run(most_work * (high - low) // answers)
        total += search.proved_bound * (high - low) + sum(least.tolist())
    return max(Fraction(0), total * Fraction(unit))


def _ends(masses: Floats) -> Numbers:
    """The first and the last true answer with mass of each outcome, shape (2, published)."""
    visible = masses > _VISIBLE
    last = len(masses) - 1
    ends: Numbers = np.stack([visible.argmax(axis=0), last - visible[::-1].argmax(axis=0)])
    # An outcome without mass ends before it begins.
    ends[1, ~visible.any(axis=0)] = -1
    return ends


def _branching_cell(relaxation: Relaxation, node: Node) -> tuple[int, int] | None:
    """The cell to decide: where the ratio is violated most, for the least that was counted."""
    over = node.masses[relaxation.own] - relaxation.ratio * node.masses[relaxation.other]
    uncounted = node.masses[relaxation.own] - node.given
    undecided = (node.cells == OPEN) & (over > _VISIBLE) & (uncounted > _VISIBLE)
    if not undecided.any():
        return None
    # The product is large where either child differs from the node.
    place = int(np.argmax(np.where(undecided, over * uncounted, 0.0)))
    pair, outcome = divmod(place, node.cells.shape[1])
    return pair, outcome


def _decided(relaxation: Relaxation, node: Node, share: float) -> Cells:
    """The node's cells; an open one is given up where that ``share`` of its mass was counted."""
    own = node.masses[relaxation.own]
    over = own - relaxation.ratio * node.masses[relaxation.other]
    given_up = (over > _VISIBLE) & (node.given >= share * own)
    chosen = np.where(given_up, GIVEN_UP, HARD).astype(np.int8)
    cells: Cells = np.where(node.cells == OPEN, chosen, node.cells)
    return cells


def _rounded(problem: ChannelProblem, cells: Cells) -> Channel | None:
    """The best channel with these cells in integers; None where rounding takes more than δ."""
    width, ratio = problem.costs.shape[1], problem.ratio
    # The uniform channel's share in Channel.near and the units that rounding moves.
    least = Fraction(8 * width**2) * (1 + ratio) / ((ratio - 1) * 2**DEFAULT_BITS)
    # Where the solver stops short of hundreds of bits, a uniform channel mends the ratios.
    for share in (Fraction(0), *_UNIFORM):
        reserve = least + share
        if reserve * 2 > problem.guarantee.delta:
            return None
        masses = _solved(problem, cells, problem.guarantee.delta - reserve)
        if masses is None:
            return None
        try:
            channel = Channel.near(mixed_with_uniform(masses, share), keep=ratio)
        except ValueError:
            return None
        if problem.is_satisfied_by(channel):
            return channel
    return None


def _solved(problem: ChannelProblem, cells: Cells, delta: Fraction) -> list[list[Fraction]] | None:
    """The masses of the linear program with the cells decided, to hundreds of bits."""
    builder, published = Builder(), problem.costs.shape[1]
    # A float of the ratio alone would be refined to an optimum of another program.
    ratio = float(problem.ratio)
    residue = float(problem.ratio - Fraction(ratio))
    costs = problem.costs / max(1.0, float(problem.costs.max()))
    if problem.prior is None:
        masses = builder.add_columns(np.zeros(costs.size)).reshape(costs.shape)
        top = builder.add_columns(np.ones(1))
        for row, losses in zip(masses, costs, strict=True):
            builder.add_row(np.append(row, top), np.append(losses, -1.0), 0.0)
    else:
        shares = np.array(list(map(float, problem.prior)))
        masses = builder.add_columns((costs * shares[:, None]).reshape(-1)).reshape(costs.shape)
    for row in masses:
        builder.add_row(row, np.ones(published), 1.0, equal=True)
    for (a, b), row in zip(problem.pairs, cells, strict=True):
        hard, given_up = np.flatnonzero(row == HARD), np.flatnonzero(row == GIVEN_UP)
        columns = np.stack([masses[a, hard], masses[b, hard]], axis=1)
        values = np.broadcast_to(np.array([1.0, -ratio]), columns.shape)
        residues = np.broadcast_to(np.array([0.0, -residue]), columns.shape)
        builder.add_rows(columns, values, np.zeros(hard.size), residues)
        if given_up.size:
            limit = np.full(given_up.size, 1 / float(delta))
            builder.add_row(masses[a, given_up], limit, 1.0)
    refined = refine(builder.build())
    if refined is None:
        return None
    in_units = np.vectorize(partial(Fraction, denominator=ONE), otypes=[object])
    rows: list[list[Fraction]] = in_units(refined.values[masses]).tolist()
    return rows
