"""The closed list of remarks in mechanism files: what writers make of it, and nothing else."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from release.records.notes import (
    FROM_PURE,
    NEVER_OCCURS,
    SOLVERS_BOUND,
    TOLERANCE,
    WORK_LIMIT,
    above_best,
    is_note,
    pinned,
    ranking,
)

NAMES = ("integer", "modular", "geometric_clamped", "two_categories")
FIXED = (FROM_PURE, NEVER_OCCURS, SOLVERS_BOUND, TOLERANCE, WORK_LIMIT)
losses = st.floats(min_value=0, max_value=1e300)


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), losses), min_size=1, max_size=4),
    st.sampled_from(["", *NAMES]),
    losses,
)
@example([("integer", 0.0)], "", 1)
@example([("integer", 5e-324), ("modular", 1e300)], "modular", 2.0**997)
def test_every_ranking_is_of_the_list(
    ranked: list[tuple[str, float]], second: str, times: float
) -> None:
    note = ranking("error_rate", ranked, ranked[0][0], second, times)
    assert is_note(note, NAMES)
    named = {name for name, _ in ranked} | {second} - {""}
    for name in named:
        assert not is_note(note, set(NAMES) - {name})


@given(st.floats(min_value=0, max_value=1))
def test_a_share_above_the_best_is_of_the_list(share: float) -> None:
    assert is_note(above_best(share), ())


@given(
    st.sampled_from([*FIXED, pinned("modular"), above_best(0.032)]),
    st.text(min_size=1, max_size=3),
    st.booleans(),
)
def test_nothing_can_be_added_to_a_note(note: str, more: str, before: bool) -> None:
    assert is_note(note, NAMES)
    assert not is_note(more + note if before else note + more, NAMES)


def test_a_baseline_outside_the_registry_is_no_note() -> None:
    assert not is_note(pinned("home_4711"), NAMES)
