"""The rooms of the package: what imports what, and that names do not collide.

Rooms are listed from the ground up. A module imports from its own room and from those below, also
inside functions; type annotations are imports too. ``flows``, ``dp_release_audit`` and ``research``
stand above all of them, each for itself.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pytest

import release
from tests.conftest import LONGEST, PROJECT

ROOMS = (
    "errors",
    "version",
    "exact",
    "records",
    "spec",
    "tables",
    "queries",
    "budget",
    "noise",
    "bundle",
    "verification",
    "planning",
    "analysis",
    "at_work",
    "facts",
    "job",
    "rehearsal",
    "street",
    "operate",
    "drafts",
    "cli",
    "__main__",
)
ABOVE = ("flows", "dp_release_audit", "research")


def name_of(path: Path) -> str:
    parts = list(path.relative_to(PROJECT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def picture_of_rooms() -> Any:
    """The program that draws the rooms."""
    found = util.spec_from_file_location("rooms", PROJECT / "docs" / "rooms.py")
    assert found is not None
    assert found.loader is not None
    rooms = util.module_from_spec(found)
    found.loader.exec_module(rooms)
    return rooms


PICTURE_OF_ROOMS = picture_of_rooms()

MODULES = {
    name_of(path): path
    for package in ("release", *ABOVE)
    for path in sorted((PROJECT / package).rglob("*.py"))
}


def floor(module: str) -> int:
    package, _, rest = module.partition(".")
    if package in ABOVE:
        return len(ROOMS)
    # The package itself holds the verbs, which reach into every room.
    if not rest:
        return len(ROOMS)
    room, _, inner = rest.partition(".")
    if room == "tabulations":
        # The package itself is imported with each of its parts, and imports nothing.
        room = PICTURE_OF_ROOMS.TABULATIONS[inner.split(".")[0]] if inner else "errors"
    return ROOMS.index(room)


def imports(module: str) -> Iterator[str]:
    """All modules of ours that a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def ours(module: str) -> set[str]:
    return {name for name in imports(module) if name.split(".")[0] in {"release", *ABOVE}}


GRAPH = {module: ours(module) for module in MODULES}


def test_every_import_of_ours_is_there() -> None:
    assert {name for names in GRAPH.values() for name in names} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_downwards(module: str) -> None:
    above = {name for name in GRAPH[module] if floor(name) > floor(module)}
    assert not above
    # The papers' figures hold programs as printed, so nothing of the product imports them.
    package = module.partition(".")[0]
    assert not {name for name in GRAPH[module] if name.partition(".")[0] in set(ABOVE) - {package}}


def reached_from(module: str) -> set[str]:
    found: set[str] = set()
    waiting = list(GRAPH[module])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += GRAPH[name]
    return found


def test_no_module_imports_itself_through_others() -> None:
    assert [module for module in MODULES if module in reached_from(module)] == []


def test_the_picture_of_the_rooms_is_made_from_the_imports() -> None:
    rooms = PICTURE_OF_ROOMS
    assert [room for room in rooms.ROOMS if room in ROOMS] == [
        room for room in ROOMS if room in rooms.ROOMS
    ]
    assert rooms.PICTURE.read_text("utf-8") == rooms.picture(), "python docs/rooms.py"


def test_a_check_of_the_checks() -> None:
    """The search finds an import inside a function, and a cycle of two."""
    assert "release.planning.targets" in GRAPH["release.cli.plan"]
    assert "release.planning.plan" in reached_from("release.cli.main")
    assert floor("release.exact.pmf") < floor("release.queries.engines.spark") < floor("flows.x")


VERBS = ("run", "verify", "plan", "read_spec", "dataset", "design", "estimate", "open")


def test_no_room_has_the_name_of_a_verb(tmp_path: Path) -> None:
    """Importing a module ``release.verify`` would put it in the place of the function."""
    for module in MODULES:
        if not module.endswith("__main__") and not module.startswith("flows"):
            importlib.import_module(module)
    assert set(VERBS) < set(dir(release))
    assert release.__version__
    public = tmp_path / "out" / "public" / "census-2024"
    spec = PROJECT / "data" / "persons.yaml"
    for turn in ("first", "second"):
        out = tmp_path / turn
        assert release.read_spec(str(spec)).spec.release.id == "census-2024"
        made = release.design(24, "cyclic", sensitivity=[1], epsilon=1, loss="squared")
        assert made.is_within()
        planned = release.plan(spec)
        assert (len(planned.queries), len(planned.on_statistic)) == (2, 1)
        public = release.run(str(spec), out).public
        assert release.verify(public, require="none").status == 0
        assert len(release.estimate(public, "minors_by_tract").cells) == 24
        assert list(release.open(public)) == [
            "persons_by_tract_and_sex",
            "minors_by_tract",
            "commonest_commute",
        ]


MENTION = re.compile(r"[\w./-]*\w\.md\b")


def absent_documents() -> list[tuple[str, str]]:
    """Files of the repository with the documents that they mention and that are not in it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - git's own
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    known = {Path(name).name for name in listed if name.endswith(".md")}
    absent = []
    for name in listed:
        path = PROJECT / name
        if path.suffix not in {".py", ".md", ".toml", ".yaml", ".yml", ".html", ".json"}:
            continue
        if not path.is_file() or name.startswith("tests/formats/"):
            continue
        for mention in MENTION.findall(path.read_text("utf-8")):
            if Path(mention).name not in known:
                absent.append((name, mention))
    return absent


def test_documents_that_are_mentioned_are_in_the_repository() -> None:
    assert absent_documents() == []


KIND_FILES = {
    f"release.queries.kinds.{name}"
    for name in ("count", "mode", "per_unit", "binned", "grid", "joint", "sql", "top", "quantiles")
}


def test_tests_that_are_named_by_hand_are_there() -> None:
    """The slow tier and what begins first: a name that is gone would change both in silence."""
    slow = (PROJECT / "tests" / "slow.txt").read_text("utf-8").split()
    assert [path for path in slow if not (PROJECT / path).exists()] == []
    assert len(slow) == len(set(slow))
    stems = {path.stem for path in (PROJECT / "tests").rglob("test_*.py")}
    assert {f"test_{name}" for name in LONGEST} <= stems


def test_no_module_but_a_kinds_own_file_imports_a_kind() -> None:
    """The registry names kinds as text, so that a new one needs no change elsewhere."""
    product = {module for module in GRAPH if not module.startswith("research")}
    # What a tabulation measures is a count, which no spec can ask for by itself.
    counts = {"release.tabulations.measure.table_count"}
    assert {module for module in product if GRAPH[module] & KIND_FILES} <= KIND_FILES | counts
