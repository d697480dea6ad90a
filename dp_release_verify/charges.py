"""What a release costs: each question in all cells that a unit touches, and all of them together.

A stated figure is right if the bound that is worked out here is at most that figure, so the order
of roundings does not matter.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from dp_release_verify import forms
from dp_release_verify.asked import FILE
from dp_release_verify.canonical import about
from dp_release_verify.errors import NotProved, Refused, refuse_unless
from dp_release_verify.losses import (
    LARGEST_LOSS,
    SHORTEST_STEP,
    Losses,
    composed,
    profile_of_patterns,
)
from dp_release_verify.mechanisms import Deltas, Mechanism
from dp_release_verify.reach import Reach

_WEAKER = ("pure", "probabilistic", "approximate")
"""Each definition follows from those before it."""


@dataclass(frozen=True)
class Charged:
    """A question as it was made, with what it costs.

    Attributes:
        made: what is stated of it.
        reach: what one unit can change.
        mechanism: its law; none where it is committed, or its family is not known here.
        deltas: what the law keeps at the stated ε; none without a law.
    """

    made: forms.MadeQuery | forms.MadeTable
    reach: Reach
    mechanism: Mechanism | None
    deltas: Deltas | None

    @property
    def delta(self) -> Fraction:
        """The δ of one cell: of a public law no more than it uses."""
        if self.deltas is None or self.reach.question.is_empirical:
            # Another charge of a committed law would tell of the table.
            return self.made.delta
        return min(self.made.delta, self.deltas.under(self.made.definition))

    @property
    def times(self) -> Fraction:
        """How often the ε of one cell is charged."""
        touched = Fraction(self.reach.cells_touched)
        mechanism = self.mechanism
        if mechanism is None or touched == 1 or self.reach.question.is_empirical:
            return touched
        is_divisible = self.reach.question.on_statistic or self.reach.question.counts_rows
        if not is_divisible or not mechanism.loses_in_proportion(self.made.epsilon):
            return touched
        return min(touched, self.reach.share_of_spread())

    @property
    def due(self) -> forms.Figures:
        """The charge."""
        touched = self.reach.cells_touched
        return forms.Figures(self.times * self.made.epsilon, touched * self.delta)


def check_charge(charged: Charged) -> None:
    """A stated charge is at least what is due.

    Raises:
        Refused: it is less.
    """
    at, stated, due = f"made.{charged.made.name}.charge", charged.made.charge, charged.due
    enough = stated.epsilon >= due.epsilon and stated.delta >= due.delta
    refuse_unless(enough, FILE, at, _said(stated), f"at least {_said(due)}")


def _said(figures: forms.Figures | forms.Claim) -> str:
    return f"ε {about(figures.epsilon)}, δ {about(figures.delta)}"


def compose(charged: list[Charged], step: Fraction) -> Losses | None:
    """The losses of all public questions together on a grid; none if there are none.

    Raises:
        NotProved: the profile of one is too much work here.
        Refused: the grid is too fine.
    """
    right = SHORTEST_STEP <= step <= LARGEST_LOSS
    refuse_unless(right, FILE, "made.step", about(step), "from 10^-30 to 100")
    counted: Counter[tuple[int, ...]] = Counter()
    for each in charged:
        if each.reach.question.is_empirical:
            continue
        mechanism = each.mechanism
        if mechanism is None:
            raise NotProved(f"{each.made.name}: its law is not known here")
        epsilon = each.made.epsilon
        profile = profile_of_patterns(
            lambda far, grid, law=mechanism, own=epsilon: law.cell(far, grid, own),  # type: ignore[misc]
            each.reach.patterns(),
            step,
        )
        counted[tuple(profile)] += 1
    if not counted:
        return None
    return composed((Losses.of(list(values), step), times) for values, times in counted.items())


def check_total(
    charged: list[Charged], total: forms.Claim, step: Fraction | None, *, composes_exactly: bool
) -> Losses | None:
    """The charges, added or composed, are at most the stated total; gives the composed losses.

    Raises:
        Refused: they are more.
        NotProved: they cannot be composed here.
    """
    charges = [each.made.charge for each in charged]
    added = forms.Figures(
        sum((each.epsilon for each in charges), Fraction(0)),
        sum((each.delta for each in charges), Fraction(0)),
    )
    refuse_unless(total.delta < 1, FILE, "made.total.delta", about(total.delta), "below 1")
    weakest, losses = _weakest(charged), None
    if added.epsilon > total.epsilon or added.delta > total.delta:
        if not composes_exactly or step is None:
            raise Refused(FILE, "made.total", _said(total), f"at least {_said(added)}")
        losses = compose(charged, step)
        _check_composed(charged, total, losses)
        weakest = "approximate" if total.delta > 0 else weakest
    is_said = _WEAKER.index(total.definition) >= _WEAKER.index(weakest)
    refuse_unless(is_said, FILE, "made.total.definition", total.definition, weakest)
    return losses


def _check_composed(charged: list[Charged], total: forms.Claim, losses: Losses | None) -> None:
    """What the public questions compose to is within what the committed ones leave of a total."""
    epsilon, delta = total.epsilon, total.delta
    for each in charged:
        if each.reach.question.is_empirical:
            epsilon -= each.made.charge.epsilon
            delta -= each.made.charge.delta
    refuse_unless(min(epsilon, delta) >= 0, FILE, "made.total", _said(total), "the hidden charges")
    own = Fraction(0) if losses is None else losses.delta_at(epsilon)
    refuse_unless(own <= delta, FILE, "made.total", f"δ {about(own)}", about(delta))


def _weakest(charged: list[Charged]) -> str:
    """The weakest definition among the questions that use a δ."""
    used = [each.made.definition for each in charged if each.made.charge.delta > 0]
    return max(used, key=_WEAKER.index, default="pure")
