"""The proofs by machine, as texts: no gap in a source, and what the pages name is there.

``tests/docs/test_machine_proofs.py`` compiles them.
"""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.numbers import exp_bounds
from tests.conftest import PROJECT

PROOFS = PROJECT / "proofs"
MATHEMATICS = PROJECT / "docs" / "design" / "mathematics.md"
LINK = re.compile(r"\[proofs/(\w+)\.v\]\((?:\.\./)*proofs/(\w+)\.v\)")


def loaded(name: str, path: Path) -> ModuleType:
    spec = util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    # Dataclasses look their module up by its name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


CHECK = loaded("proofs_check", PROOFS / "check.py")
PROVED = {file: set(CHECK.THEOREM.findall(text)) for file, text in CHECK.sources().items()}


FILE = r"(?:dp_release_verify|release|docs)/[\w/]+\.(?:py|md)"


def named_in_mathematics() -> list[tuple[str, str]]:
    """The (file, theorem) pairs of every paragraph that begins with "Checked by machine"."""
    named = []
    for paragraph in MATHEMATICS.read_text("utf-8").split("\n\n"):
        if not paragraph.startswith("*Checked by machine:*"):
            continue
        # A link, then the theorems of its file, up to the next link.
        _, *parts = LINK.split(paragraph)
        for file, target, words in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            assert file == target
            named += [(file, name) for name in re.findall(r"`(\w+)`", words)]
    return named


def test_every_theorem_that_the_mathematics_names_is_in_its_file() -> None:
    named = named_in_mathematics()
    assert [pair for pair in named if pair[1] not in PROVED[pair[0]]] == []
    assert len(named) > 40


def test_the_site_shows_names_in_place_of_links_to_proofs() -> None:
    hook = loaded("site_links", PROJECT / "docs" / "site_links.py")
    text = MATHEMATICS.read_text("utf-8")
    shown = hook.on_page_markdown(text, page=None, config=None, files=None)
    assert "](../../proofs/" in text
    assert "](../../proofs/" not in shown
    assert "proofs/ErrorRate.v, `pure_upper_bound`" in shown
    assert shown.count("](") == text.count("](") - text.count("](../../proofs/")


def test_every_file_of_proofs_is_named_in_the_mathematics() -> None:
    without_theorems = {"Sums", "Series"}
    assert {file for file, _ in named_in_mathematics()} == set(PROVED) - without_theorems


def test_the_table_of_the_readme_lists_every_theorem_once() -> None:
    text = (PROOFS / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| \[(\w+)\.v\]\((\w+)\.v\) \|", text, re.MULTILINE)
    assert all(file == target for _, file, target in rows)
    listed = [(file, name) for name, file, _ in rows]
    assert sorted(listed) == sorted((file, name) for file in PROVED for name in PROVED[file])


def test_no_source_has_a_gap_and_each_says_what_it_states() -> None:
    for file, text in CHECK.sources().items():
        assert CHECK.gaps(text) == [], file
        assert text.startswith("(** "), file
        named = re.findall(
            r"(?:dp_release_verify|release|docs)/[\w/]+\.(?:py|md)", text.partition("*)")[0]
        )
        assert named != [], file
        assert [name for name in named if not (PROJECT / name).exists()] == [], file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Proof. admit. Admitted.", ["admit", "Admitted"]),
        ("Axiom easy : False.", ["Axiom"]),
        ("Parameter x : nat.", ["Parameter"]),
        ("Unset Guard Checking.", ["Unset Guard Checking"]),
        ("(* Nothing is admitted here. *) Qed.", []),
    ],
)
def test_a_gap_is_seen(text: str, words: list[str]) -> None:
    assert CHECK.gaps(text) == words


def test_axioms_are_read_from_what_coq_prints() -> None:
    printed = (
        "theorem: A.first\nClosed under the global context\n"
        "theorem: B.second\nAxioms:\nX.short : forall n : nat, n = n\n"
        "Y.long_name\n  : forall (A : Type),\n    A = A\n"
    )
    assert CHECK.answers(printed) == [
        CHECK.Theorem("A", "first", ()),
        CHECK.Theorem("B", "second", ("X.short", "Y.long_name")),
    ]
    with pytest.raises(CHECK.ProofError):
        CHECK.answers("theorem: A.first\nError\n")


def test_an_axiom_beside_those_of_the_reals_is_foreign() -> None:
    allowed = tuple(CHECK.ALLOWED)
    assert CHECK.foreign(CHECK.Theorem("A", "first", allowed)) == []
    assert CHECK.foreign(CHECK.Theorem("A", "first", (*allowed, "A.easy"))) == ["A.easy"]


def test_sources_stand_behind_what_they_require() -> None:
    order = list(CHECK.sources())
    assert order.index("Sums") < order.index("Privacy") < order.index("Groups")
    assert order.index("Groups") < order.index("ErrorRate")
    assert order.index("ErrorRate") < order.index("NormalForm")


@given(st.fractions(min_value=0, max_value=100, max_denominator=10**12))
def test_the_lower_bound_of_e_is_below_a_partial_sum(epsilon: Fraction) -> None:
    """The condition of ExpBound.certificate: so the bound is below e^ε without trust in Decimal."""
    low, _ = exp_bounds(epsilon)
    # 1 + ε/1·(1 + ε/2·(1 + …)), innermost first, as one fraction that is never shortened.
    over, under = 1, 1
    for k in range(400, 0, -1):
        above = epsilon.denominator * k * under
        over, under = above + epsilon.numerator * over, above
    assert low <= Fraction(over, under)


@pytest.mark.parametrize(("name", "epsilon"), [("one", Fraction(1)), ("half", Fraction(1, 2))])
def test_the_bounds_that_are_proved_are_those_of_the_program(name: str, epsilon: Fraction) -> None:
    text = (PROOFS / "ExpBound.v").read_text("utf-8")
    digits = re.search(rf"low_of_{name} : Q := (\d+) # \(10 \^ 40\)", text)
    assert digits is not None
    assert exp_bounds(epsilon)[0] == Fraction(int(digits[1]), 10**40)
