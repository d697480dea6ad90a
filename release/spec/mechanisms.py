"""The mechanisms that a spec can name: the registry of mechanism families and baselines.

A mechanism is added by one file and one entry of :data:`MECHANISMS` (docs/design/extending.md).
The entry says where the mechanism lies instead of importing it: reading a spec loads no solver,
and verifying a release loads no module that designs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

from pydantic import AfterValidator, WithJsonSchema

from release.exact.channel import channel_unseen
from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import LossName, line_fits
from release.exact.numbers import format_exact
from release.exact.privacy import Definition, Guarantee
from release.spec.named import by_name

if TYPE_CHECKING:
    from release.exact.statistics.mechanism import StatisticMechanism

BEST = "best"
"""The mechanism with the least expected loss of all that fit."""


@dataclass(frozen=True)
class Parameter:
    """A number that a spec may fix of a mechanism, from ``least`` to ``most``."""

    name: str
    least: Fraction
    most: Fraction
    is_whole: bool = False

    def check(self, value: Fraction) -> None:
        """Refuse another number.

        Raises:
            ValueError: it is out of its range, or no whole number where only these are.
        """
        if not self.least <= value <= self.most or (self.is_whole and value.denominator != 1):
            kind = "a whole number" if self.is_whole else "a number"
            least, most = format_exact(self.least), format_exact(self.most)
            raise ValueError(f"found {format_exact(value)}; write {kind} from {least} to {most}")


@dataclass(frozen=True)
class NamedMechanism:
    """The public facts of a mechanism that a spec can name.

    ``family`` and ``law`` are places ``module:name``. The first is of a
    :class:`release.noise.families.Family`. The second is of a
    :data:`release.noise.published.fitted.Law`: of a paper's noise that ``best`` leaves out, as one
    of the families is at least as good. ``is_baseline`` says whether it is from the literature,
    without a bound on its expected loss.
    """

    name: str
    family: str
    is_baseline: bool = False

    law: str | None = None
    parameters: tuple[Parameter, ...] = ()
    needs_order: bool = False
    """It needs answers in order, and the loss error_rate, absolute or squared."""
    # A row is a pmf over all answers: their number is squared in the file.
    needs_rows: bool = False
    """It needs few enough of these answers for a row each."""
    needs_delta: bool = False

    needs_epsilon: bool = False
    needs_prior: bool = False
    can_wrap: bool = False
    """Whether it can publish one end of an order for the other, so that ``best`` leaves it out."""


def _baseline(
    name: str, *, needs_order: bool = False, needs_rows: bool = False, needs_delta: bool = False
) -> NamedMechanism:
    return NamedMechanism(
        name,
        family="release.noise.families:BASELINES",
        is_baseline=True,
        needs_order=needs_order,
        needs_rows=needs_rows,
        needs_delta=needs_delta,
        needs_epsilon=True,
        # The baselines that need no order are modular noise.
        can_wrap=not needs_order,
    )


def _law(
    name: str,
    law: str,
    *parameters: Parameter,
    needs_delta: bool = False,
    needs_prior: bool = False,
) -> NamedMechanism:
    return NamedMechanism(
        name,
        family="release.noise.families:BASELINES",
        is_baseline=True,
        law=f"release.noise.published.{law}",
        parameters=parameters,
        needs_order=True,
        needs_delta=needs_delta,
        needs_epsilon=not needs_delta,
        needs_prior=needs_prior,
    )


_SADEGHI = (
    Parameter("reach", Fraction(1), Fraction(64), is_whole=True),
    Parameter("keep", Fraction(1, 1000), Fraction(999, 1000)),
)

MECHANISMS: dict[str, NamedMechanism] = by_name(
    (
        NamedMechanism(
            "modular",
            family="release.noise.families:MODULAR",
            can_wrap=True,
        ),
        NamedMechanism(
            "integer",
            family="release.noise.families:INTEGER",
            needs_order=True,
            needs_epsilon=True,
        ),
        NamedMechanism(
            "channel",
            family="release.noise.families:CHANNEL",
            needs_order=True,
            needs_rows=True,
        ),
        _baseline("geometric_clamped", needs_order=True),
        _baseline("geometric_truncated", needs_order=True, needs_rows=True),
        _baseline("exponential", needs_order=True, needs_rows=True),
        _baseline("gaussian_clamped", needs_order=True, needs_delta=True),
        _baseline("gumbel_clamped", needs_order=True, needs_delta=True),
        _baseline("randomised_response"),
        _baseline("data_independent"),
        _baseline("geometric_modular"),
        _baseline("gaussian_modular", needs_delta=True),
        _law("sadeghi_count", "sadeghi:law", *_SADEGHI, needs_delta=True),
        _law("geng_zero_epsilon", "geng:law", needs_delta=True),
        _law("qin_wasserstein", "qin:wasserstein", needs_prior=True),
        _law("qin_relaxed", "qin:relaxed"),
    )
)
"""Every mechanism by its name, in the order in which they are compared."""


_STATISTICS = "release.exact.statistics"

ON_STATISTIC: dict[str, str] = {
    "permute_and_flip": f"{_STATISTICS}.permute_and_flip:PermuteAndFlip",
    "exponential_mechanism": f"{_STATISTICS}.exponential:ExponentialMechanism",
    "two_categories": f"{_STATISTICS}.two_categories:TwoCategories",
    "gap_table": f"{_STATISTICS}.gap_table:GapTable",
    "top_histogram": f"{_STATISTICS}.top.histogram:HistogramTop",
    "top_canonical": f"{_STATISTICS}.top.canonical:CanonicalTop",
    "top_peeled": f"{_STATISTICS}.top.peeled:PeeledTop",
    "joint_quantiles": f"{_STATISTICS}.joint_quantiles:JointQuantiles",
    "quantile_tree": f"{_STATISTICS}.quantile_tree:QuantileTree",
    "noisy_sums": f"{_STATISTICS}.sums:NoisySums",
}
"""Every mechanism on statistics by its name, and the place ``module:class`` where it lies."""


def mechanism_on_statistic(name: str) -> type[StatisticMechanism]:
    """The mechanism on statistics of this name, loaded on use.

    Raises:
        KeyError: there is none.
    """
    module, _, attribute = ON_STATISTIC[name].partition(":")
    return cast("type[StatisticMechanism]", getattr(import_module(module), attribute))


def chosen_unseen(
    domain: AnswerDomain | JointDomain, loss: LossName | None, guarantee: Guarantee
) -> str | None:
    """The mechanism of ``best`` under empirical sensitivity; None where the spec has to name one.

    It is modular noise where the answers have no order; a channel where they have one and are so
    few that a program holds all differences; else noise on the integers.
    """
    # The name of the mechanism is published, so no argument here comes from a table.
    if not domain.has_order:
        return "modular"
    if channel_unseen(domain, loss, guarantee):
        return "channel"
    is_pure = guarantee.definition is not Definition.PROBABILISTIC or guarantee.delta == 0
    return "integer" if line_fits(domain, loss) and guarantee.epsilon and is_pure else None


_OF_OTHERS = {
    "laplace": "geometric_clamped",
    "discrete_laplace": "geometric_clamped",
    "geometric": "geometric_clamped",
    "gaussian": "gaussian_clamped",
    "discrete_gaussian": "gaussian_clamped",
    "randomized_response": "randomised_response",
}
"""What other tools call a mechanism."""


def check_name(name: str) -> str:
    """The name of a mechanism, or ``best``.

    Raises:
        ValueError: another name.
    """
    names = [BEST, *MECHANISMS, *ON_STATISTIC]
    if name in _OF_OTHERS:
        raise ValueError(f"found {name!r}; in whole numbers it is {_OF_OTHERS[name]!r}, or best")
    if name not in names:
        raise ValueError(f"found {name!r}; write {', '.join(names[:-1])} or {names[-1]}")
    return name


_SCHEMA = {"type": "string", "enum": [BEST, *MECHANISMS, *ON_STATISTIC]}
MechanismName: TypeAlias = Annotated[str, AfterValidator(check_name), WithJsonSchema(_SCHEMA)]
