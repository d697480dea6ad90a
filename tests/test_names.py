"""No test of the first suite was lost when the suite was divided into rooms.

``names/before.txt`` lists the test functions of the first suite, a name a line. Each of them is in
the present suite, is renamed in ``names/renamed.txt``, or stands in ``names/removed.txt`` with the
reason. The files of the tests do not matter.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.conftest import PROJECT

NAMES = PROJECT / "tests" / "names"


def lines(name: str) -> list[str]:
    return (NAMES / name).read_text("utf-8").splitlines()


def table(name: str, separator: str) -> dict[str, str]:
    """A file of two columns; no name stands in it twice."""
    rows = dict(line.split(separator, 1) for line in lines(name))
    assert len(rows) == len(lines(name))
    return rows


def functions_of(path: Path) -> list[str]:
    """The names of the functions that pytest collects from a file."""
    statements = ast.parse(path.read_text("utf-8")).body
    functions = [node.name for node in statements if isinstance(node, ast.FunctionDef)]
    return [name for name in functions if name.startswith("test")]


def present() -> Counter[str]:
    return Counter(
        name for path in (PROJECT / "tests").rglob("test_*.py") for name in functions_of(path)
    )


def missing(
    before: Counter[str], now: Counter[str], renamed: dict[str, str], removed: dict[str, str]
) -> list[str]:
    """The names of before that are gone unexplained, and the explanations that are not true."""
    gone = before - now
    explained = renamed.keys() | removed.keys()
    return [
        *(f"{name}: gone unexplained" for name in gone if name not in explained),
        *(f"{name}: explained, but not gone" for name in explained if name not in gone),
        *(f"{name}: explained twice" for name in renamed.keys() & removed.keys()),
        *(f"{new}: is not there" for new in renamed.values() if new not in now),
        *(f"{name}: no reason" for name, reason in removed.items() if not reason.strip()),
    ]


def test_every_test_of_the_first_suite_is_present_renamed_or_removed_for_a_reason() -> None:
    before = Counter(lines("before.txt"))
    renamed, removed = table("renamed.txt", " -> "), table("removed.txt", ": ")
    assert missing(before, present(), renamed, removed) == []
    assert before.total() > 600


def test_reasons_name_tests_that_are_there() -> None:
    now = present()
    for name, reason in table("removed.txt", ": ").items():
        for word in reason.replace(".", " ").split():
            assert not word.startswith("test_") or word in now, name


def test_a_name_that_is_lost_is_missed() -> None:
    before = Counter(["test_a", "test_twice", "test_twice"])
    assert missing(before, before, {}, {}) == []
    once = Counter(["test_a", "test_twice"])
    assert missing(before, once, {}, {}) == ["test_twice: gone unexplained"]
    assert missing(before, once, {}, {"test_twice": "one is enough"}) == []
    assert missing(before, once, {}, {"test_twice": " "}) == ["test_twice: no reason"]
    assert missing(before, once, {"test_twice": "test_b"}, {}) == ["test_b: is not there"]
    wrong = missing(before, before, {"test_a": "test_twice"}, {})
    assert wrong == ["test_a: explained, but not gone"]
