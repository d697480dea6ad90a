"""The tool of ``make mutants``: which changes it makes of a module, and that they take effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.mutants.__main__ import read_reasons
from tests.mutants.changes import Module, modules

SOURCE = '''"""Not 1 of the numbers in a text."""
LIMIT = 3


def first(values: list[int], least: int = 0) -> int:
    """The first of the values."""
    check(values)
    for value in values:
        if not value or value < least:
            continue
        return value + LIMIT
    raise ValueError(f"{1 + len(values)} values")
'''

CHANGES = {
    "LIMIT = 3": ["3 -> 4", "3 -> 2"],
    "def first(values: list[int], least: int = 0) -> int:": ["0 -> 1", "0 -> -1"],
    "check(values)": ["check(values) -> pass"],
    "if not value or value < least:": [
        "if not value or value < least: -> if not (not value or value < least):",
        "not value or value < least -> not value and value < least",
        "not value -> value",
        "value < least -> value <= least",
        "value < least -> value >= least",
    ],
    "continue": ["continue -> break"],
    "return value + LIMIT": [
        "return value + LIMIT -> return None",
        "value + LIMIT -> value - LIMIT",
    ],
    'raise ValueError(f"{1 + len(values)} values")': [
        "raise ValueError(f'{1 + len(values)} values') -> pass"
    ],
}


def module(folder: Path) -> Module:
    path = folder / "module.py"
    path.write_text(SOURCE)
    return Module(path, folder)


def test_every_change_of_a_small_module_is_known(tmp_path: Path) -> None:
    found: dict[str, list[str]] = {}
    for mutant in module(tmp_path).mutants:
        found.setdefault(mutant.line, []).append(mutant.change)
    expected = {line: sorted(changes) for line, changes in CHANGES.items()}
    assert {line: sorted(changes) for line, changes in found.items()} == expected


def run(module: Module, change: str) -> Any:
    (mutant,) = (mutant for mutant in module.mutants if mutant.change == change)
    names: dict[str, Any] = {"check": lambda values: None}
    exec(module.code_with(mutant), names)  # noqa: S102 - the source above
    return names["first"]([0, 2, 5], 2)


def test_a_change_takes_effect_in_its_place(tmp_path: Path) -> None:
    assert run(module(tmp_path), "check(values) -> pass") == 5
    assert run(module(tmp_path), "value + LIMIT -> value - LIMIT") == -1
    assert run(module(tmp_path), "value < least -> value <= least") == 8


def test_every_mutant_that_is_listed_as_equivalent_exists() -> None:
    """After its line has changed, an entry has to be judged anew, and changed or left out."""
    listed = read_reasons()
    present = set()
    for each in modules(sorted({file for file, *_ in listed})):
        present |= {mutant.key for mutant in each.mutants}
    assert not listed.keys() - present
    assert all(listed.values())
