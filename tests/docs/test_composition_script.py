"""The script of docs/verify.md finds the certified figure again, with nothing of ours."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from release.budget.ledger import Ledger, ScopeCap, Spent, abort, commit, create_ledger, reserve
from release.budget.spending import composed_epsilon
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from tests.conftest import PROJECT


def script() -> str:
    blocks = re.findall(
        r"^```python\n(.*?)^```", (PROJECT / "docs/verify.md").read_text("utf-8"), re.M | re.S
    )
    (found,) = [block for block in blocks if "losses" in block]
    return str(found)


def run(ledger: Path, scope: str, delta: str) -> Fraction:
    return printed(script(), str(ledger), scope, delta)


def printed(program: str, *arguments: str) -> Fraction:
    done = subprocess.run(
        [sys.executable, "-I", "-", *arguments],
        input=program,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Fraction(done.stdout.strip())


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scope of equal charges, one of different ones; aborts, one of them refunded."""
    folder = tmp_path_factory.mktemp("out")
    create_key(folder / "key")
    signer = read_key(folder / "key")
    caps = tuple(ScopeCap(scope=name, epsilon="99", delta="0.5") for name in ("a", "b", "c"))
    create_ledger(folder / "ledger", signer, "example.org/dp", caps, "2024-03-01")
    writing = Ledger(folder / "ledger", signer)
    for night in range(40):
        writing.append(reserve("a", f"night-{night}", Spent(Fraction("0.05")), "2024-03-01"))
    for number, (epsilon, delta) in enumerate(CHARGES):
        charge = Spent(Fraction(epsilon), Fraction(delta))
        writing.append(reserve("b", f"b-{number}", charge, "2024-03-01"))
    writing.append(abort("b-0", "2024-03-01", drawn=False))
    writing.append(abort("b-1", "2024-03-01", drawn=True))
    writing.append(reserve("a", "b-1", Spent(Fraction("0.05")), "2024-03-01"))
    writing.append(commit("b-1", b"x", "2024-03-01"))
    return folder / "ledger"


CHARGES = (("5", "0.1"), ("1/3", "0"), ("0.5", "1e-9"), ("0.5", "1/300"), ("2", "0"), ("0.25", "0"))


@pytest.mark.parametrize("delta", ["0.000001", "0.01", "0.2"])
def test_the_script_finds_the_figure_of_the_ledger_again(ledger: Path, delta: str) -> None:
    nights = [Spent(Fraction("0.05"))] * 41
    others = [Spent(Fraction(epsilon), Fraction(part)) for epsilon, part in CHARGES[1:]]
    for scope, charges in (("a", nights), ("b", others), ("c", [])):
        certified, found = composed_epsilon(charges, Fraction(delta)), run(ledger, scope, delta)
        if certified is None:
            assert found > 10**6
        else:
            assert abs(found - certified) <= Fraction(2, 10**9)
