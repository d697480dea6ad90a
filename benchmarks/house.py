"""What the house looks like, in numbers: ``python -m benchmarks.house``; status 1 beyond a target.

Measured on ``release`` and ``flows``: import cycles, imports upwards, the fullest folder, mentions
of absent documents (all as ``tests/test_rooms.py`` finds them), lines, comments, comprehensions,
names that are bare participles or pronouns, the longest function, and the maintainability index of
the median module where radon is installed. Ten comments drawn at random follow, to be read.
"""

from __future__ import annotations

import ast
import io
import random
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.test_rooms import GRAPH, absent_documents, floor, reached_from

PROJECT = Path(__file__).parent.parent
PRODUCT = ("release", "flows")
BARE = frozenset(
    [
        *("found", "made", "one", "told", "given", "wanted", "asked", "kept", "seen", "done"),
        *("shown", "known", "left", "taken", "written", "other", "others", "some", "all"),
        *("these", "those", "it", "them"),
    ]
)
"""Names that say nothing of what they hold."""


@dataclass(frozen=True)
class Measure:
    """A number, and the bound that it has to keep."""

    name: str
    value: float
    bound: float
    is_most: bool

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.bound if self.is_most else self.value >= self.bound

    def __str__(self) -> str:
        sign = "at most" if self.is_most else "at least"
        mark = "" if self.holds else "   <- beyond"
        return f"{self.name:48} {self.value:9.2f}   {sign} {self.bound:g}{mark}"


def modules() -> list[Path]:
    """The modules of the product."""
    return [path for package in PRODUCT for path in sorted((PROJECT / package).rglob("*.py"))]


def bound_names(tree: ast.Module) -> Iterator[str]:
    """Every name that a module binds: variables, arguments, functions, classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def comment_lines(text: str) -> int:
    """How many lines hold a comment that is no directive for a tool."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return sum(not text.startswith(("# noqa", "# type:")) for text in comments)


def longest_function(tree: ast.Module) -> int:
    """The lines of the longest function body."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    lengths = ((node.end_lineno or 0) - node.body[0].lineno + 1 for node in functions)
    return max(lengths, default=0)


def measures() -> list[Measure]:
    """All of them."""
    texts = {path: path.read_text("utf-8") for path in modules()}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = sum(text.count("\n") for text in texts.values())
    names = Counter(name for tree in trees.values() for name in bound_names(tree))
    bare = sum(count for name, count in names.items() if name in BARE)
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    comprehensions = sum(
        isinstance(node, kinds) for tree in trees.values() for node in ast.walk(tree)
    )
    fullness = Counter(path.parent for path in texts if path.name != "__init__.py")
    comments = sum(map(comment_lines, texts.values()))
    cycles = [module for module in GRAPH if module in reached_from(module)]
    upwards = [module for module in GRAPH if any(floor(n) > floor(module) for n in GRAPH[module])]
    results = [
        Measure("modules in an import cycle", len(cycles), 0, is_most=True),
        Measure("modules that import upwards", len(upwards), 0, is_most=True),
        Measure("mentions of absent documents", len(absent_documents()), 0, is_most=True),
        Measure("lines of the product", lines, 24_000, is_most=True),
        Measure("modules in the fullest folder", max(fullness.values()), 16, is_most=True),
        Measure("comments, % of lines", 100 * comments / lines, 3, is_most=False),
        Measure("comprehensions per 1,000 lines", 1000 * comprehensions / lines, 15, is_most=True),
        Measure("bare names, % of bound names", 100 * bare / names.total(), 0.5, is_most=True),
        Measure("longest function, lines", max(map(longest_function, trees.values())), 60, True),
    ]
    index = maintainability()
    if index is not None:
        indices = [index(text) for text in texts.values()]
        results.append(
            Measure("maintainability, median module", statistics.median(indices), 60, is_most=False)
        )
    return results


def maintainability() -> Callable[[str], float] | None:
    """Radon's maintainability index of a text; None where radon is not installed."""
    try:
        from radon.metrics import mi_visit
    except ImportError:
        return None
    return lambda text: float(mi_visit(text, multi=True))


def main() -> None:
    """Print the measures, and ten comments to be read."""
    results = measures()
    for measure in results:
        print(measure)
    places = [(path, line) for path in modules() for line in commented(path)]
    print("\nTen comments at random; none may restate its line:")
    for path, line in sorted(random.SystemRandom().sample(places, 10)):
        print(f"  {path.relative_to(PROJECT)}:{line}")
        for text in path.read_text("utf-8").splitlines()[line - 1 : line + 1]:
            print(f"    {text.strip()}")
    sys.exit(0 if all(measure.holds for measure in results) else 1)


def commented(path: Path) -> list[int]:
    """The lines of a module that begin a comment."""
    lines = path.read_text("utf-8").splitlines()
    comments = [text.lstrip().startswith("# ") for text in lines]
    return [
        n
        for n, (now, before) in enumerate(zip(comments, [False, *comments], strict=False), 1)
        if now and not before
    ]


if __name__ == "__main__":
    main()
