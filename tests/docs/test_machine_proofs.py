"""The proofs by machine compile, rest on allowed axioms, and define what the program computes."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from release.exact.channel import Channel
from release.exact.numbers import exp_bounds
from tests.conftest import PROJECT
from tests.test_proofs import CHECK

SCRIPT = PROJECT / "proofs" / "check.py"
LETTERS = {
    "sig_forall_dec": "D",
    "sig_not_dec": "N",
    "functional_extensionality_dep": "F",
    "classic": "X",
}
"""The column of axioms in the table of the README."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of compiled proofs."""
    coqc = shutil.which("coqc")
    if coqc is None:
        pytest.skip("there is no coqc (Debian's package coq)")
    out: Path = tmp_path_factory.mktemp("proofs")
    CHECK.compile_all(out, coqc)
    return out


def letters_of(axioms: Iterable[str]) -> str:
    """The column of the README."""
    return "".join(sorted(LETTERS[axiom.rpartition(".")[2]] for axiom in axioms)) or "–"


def listed_in_the_readme() -> dict[str, list[Any]]:
    """The theorems of the table by their letters."""
    groups: dict[str, list[Any]] = defaultdict(list)
    for line in (PROJECT / "proofs" / "README.md").read_text("utf-8").splitlines():
        row = re.match(r"\| `(\w+)` \| \[(\w+)\.v\]\(\w+\.v\) \| (\S+) \|", line)
        if row is not None:
            groups[row[3]].append(CHECK.Theorem(row[2], row[1]))
    return groups


def test_every_theorem_is_proved_from_the_axioms_that_the_readme_lists(compiled: Path) -> None:
    """Those with equal letters together rest on these and no other; the names are compared too."""
    groups, asking = listed_in_the_readme(), compiled / "Together.v"
    for letters, named in groups.items():
        asking.write_text(CHECK.together(named), "utf-8")
        (found,) = CHECK.answers(CHECK.compiled(asking, compiled, shutil.which("coqc")))
        assert letters_of(found.axioms) == letters
        assert CHECK.foreign(found) == []
    every_theorem = sorted((each.file, each.name) for each in CHECK.theorems(CHECK.sources()))
    assert sorted((each.file, each.name) for each in chain(*groups.values())) == every_theorem


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("coqc") is None, reason="there is no coqc (Debian's package coq)")
def test_the_command_prints_every_theorem_with_the_axioms_of_the_readme(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = []
    for letters, named in listed_in_the_readme().items():
        expected += [(each.file, each.name, letters) for each in named]
    printed = re.findall(r"^(\w+)\.v  (\w+)  axioms: (.*)$", done.stdout, re.MULTILINE)
    found = []
    for file, name, axioms in printed:
        found.append((file, name, letters_of(set(axioms.split(", ")) - {"none"})))
    assert sorted(found) == sorted(expected)


def rows_of(seed: int, width: int, total: int) -> tuple[list[int], list[int]]:
    """Two rows of weights with this total, the cuts of the second up to 60 from the first."""
    numbers = random.Random(seed)  # noqa: S311 - weights to compare
    cuts = sorted(numbers.randrange(total + 1) for _ in range(width - 1))
    first = [high - low for low, high in zip([0, *cuts], [*cuts, total], strict=True)]
    moved = sorted(min(total, max(0, cut + numbers.randrange(-60, 61))) for cut in cuts)
    second = [high - low for low, high in zip([0, *moved], [*moved, total], strict=True)]
    return first, second


def question(cases: list[tuple[list[int], list[int]]], ratio: Fraction, total: int) -> str:
    """A source that makes Coq print heavy and light of each pair of rows."""
    rows = "; ".join(f"({listed(first)}, {listed(second)})" for first, second in cases)
    given = f"(at_place a) (at_place b) {ratio.numerator} {ratio.denominator} {total}"
    lines = (
        "From Coq Require Import List ZArith.",
        "From DPRelease Require Import ExactCheck.",
        "Import ListNotations.",
        "Open Scope Z_scope.",
        "Definition at_place (row : list Z) (o : nat) : Z := nth o row 0.",
        "Definition sums (rows : list Z * list Z) : list Z := let (a, b) := rows in",
        f"  [heavy (seq 0 (length a)) {given}; light (seq 0 (length a)) {given}].",
        f"Eval vm_compute in map sums [{rows}].",
    )
    return "\n".join([*lines, ""])


def listed(row: list[int]) -> str:
    """A row as a list of Coq."""
    return f"[{'; '.join(map(str, row))}]"


def test_the_check_of_the_proof_computes_the_deltas_of_the_program(
    compiled: Path,
) -> None:
    """What ExactCheck.v calls heavy and light gives the δ of release/exact/channel.py."""
    total, ratio = 2**10, exp_bounds(Fraction(1, 2))[0]
    cases = [rows_of(seed, 8, total) for seed in range(60)]
    asking = compiled / "Deltas.v"
    asking.write_text(question(cases, ratio, total), "utf-8")
    command = ["coqc", "-q", "-noglob", "-Q", str(compiled), "DPRelease", str(asking)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=compiled)
    assert done.returncode == 0, done.stderr
    numbers = list(map(int, re.findall(r"\d+", done.stdout.partition(":")[0])))
    violated = 0
    for rows, heavy, light in zip(cases, numbers[::2], numbers[1::2], strict=True):
        deltas = Channel.of(rows).deltas_of_pairs([(0, 1)], ratio)
        assert deltas.probabilistic == Fraction(heavy, total)
        assert deltas.approximate == (heavy - ratio * light) / total
        violated += heavy > 0
    assert violated > 20


def test_a_machine_without_coq_is_told_which_package(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
    )
    assert done.returncode == 3
    assert "Debian's package coq" in done.stderr
