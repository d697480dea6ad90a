"""The remarks of a mechanism file: how it was found, in words for people that no verifier reads."""

from __future__ import annotations

from collections.abc import Sequence

SOLVERS_BOUND = "the lower bound is the solver's, not proved exactly"
WORK_LIMIT = "the work limit ended the search; the gap is what is left open"
TOLERANCE = "the search ended within the solver's tolerance; the gap is what is left open"
FROM_PURE = "made for the pure guarantee, which implies this one"
NEVER_OCCURS = "some published values never occur: ε between some two answers is infinite"


def above_best(share: float) -> str:
    """How far a channel is above the best one at most, as a share of its own cost."""
    return f"at most {share:.2%} above the best channel, whose cost has a proved bound"


def pinned(baseline: str) -> str:
    """That the spec names this baseline."""
    return f"pinned to the baseline {baseline}; nothing is proved of others"


def ranking(
    loss: str,
    losses: Sequence[tuple[str, float]],
    winner: str,
    second: str = "",
    times: float = 1,
) -> str:
    """The mechanisms that were compared, by loss, and by how much the winner won.

    ``second`` is the next one, with ``times`` the loss of the winner; empty where there is none.
    """
    listed = ", ".join(f"{name} {value:.4g}" for name, value in losses)
    comparison = f"best of {len(losses)} by {loss} loss: {listed}"
    if not second:
        return comparison
    share = "as much as" if times == 1 else f"{times:.5g} times what"
    return f"{comparison}; the next, {second}, loses {share} {winner} loses"
