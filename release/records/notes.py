"""The remarks that a mechanism file may hold: a closed list, so that none says what no check knows.

A remark with figures has them in one form, and names of mechanisms from the registry alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

SOLVERS_BOUND = "the lower bound is the solver's, not proved exactly"
WORK_LIMIT = "the work limit ended the search; the gap is what is left open"
TOLERANCE = "the search ended within the solver's tolerance; the gap is what is left open"
FROM_PURE = "made for the pure guarantee, which implies this one"
NEVER_OCCURS = "some published values never occur: ε between some two answers is infinite"

_FIXED = {SOLVERS_BOUND, WORK_LIMIT, TOLERANCE, FROM_PURE, NEVER_OCCURS}
# Room for the figures below (.4g and .5g) and hardly more: digits could carry a message.
_FIGURE = r"[0-9]{1,12}(\.[0-9]{1,6})?(e[+-][0-9]{2,3})?"
_NAME = "[a-z_]{1,63}"
_RANKING = re.compile(
    rf"best of [0-9]+ by {_NAME} loss: (?P<names>{_NAME} {_FIGURE}(, {_NAME} {_FIGURE})*)"
    rf"(; the next, (?P<next>{_NAME}), loses (as much as|{_FIGURE} times what) "
    rf"(?P<first>{_NAME}) loses)?",
    re.ASCII,
)
_PINNED = re.compile(
    rf"pinned to the baseline (?P<names>{_NAME}); nothing is proved of others", re.ASCII
)
_ABOVE = re.compile(
    r"at most [0-9]{1,3}\.[0-9]{2}% above the best channel, whose cost has a proved bound", re.ASCII
)


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


def is_note(text: str, mechanisms: Collection[str]) -> bool:
    """Whether a remark is one of the list, about mechanisms of these names."""
    if text in _FIXED or _ABOVE.fullmatch(text):
        return True
    match = _RANKING.fullmatch(text) or _PINNED.fullmatch(text)
    if match is None:
        return False
    # A text in the form of a name could hold anything else, so each has to be a mechanism's.
    parts = match.groupdict()
    names = [parts.get("next"), parts.get("first")]
    for entry in parts["names"].split(", "):
        name, _, _ = entry.partition(" ")
        names.append(name)
    return set(filter(None, names)) <= set(mechanisms)
