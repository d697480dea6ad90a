"""The mutants of a module: every place that a change fits, by the syntax tree.

Messages, types, decorators and texts for people are left alone.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias

PROJECT = Path(__file__).parent.parent.parent

Key: TypeAlias = tuple[str, str, str, str]
"""File, function, line and change: what identifies a mutant when lines move."""
Part: TypeAlias = tuple[str, int | None]
"""A field of a node, and the place in it where it is a list."""

_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}


@dataclass(frozen=True)
class Place:
    """Where a node stands: the functions and classes around it, and the lines of its statement.

    ``code`` is (qualified name, first line) of the outermost function, None outside of functions.
    """

    names: tuple[str, ...] = ()
    code: tuple[str, int] | None = None
    lines: range = range(0)
    returns_none: bool = True

    def into(self, node: ast.AST) -> Place:
        """The place of the body of ``node``."""
        if isinstance(node, ast.ClassDef):
            return replace(self, names=(*self.names, node.name))
        if not isinstance(node, ast.FunctionDef):
            return self
        names = (*self.names, node.name)
        first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
        optional = node.returns is None or "None" in ast.unparse(node.returns)
        return Place(names, self.code or (".".join(names), first), self.lines, optional)

    def at(self, node: ast.AST) -> Place:
        """The place of ``node`` itself: for a compound statement, the lines of its head."""
        if not isinstance(node, ast.stmt):
            return self
        bodies = {"body", "orelse", "finalbody", "handlers", "cases"}
        parts = [part for name, _, part in _children(node) if name not in bodies]
        ends = [getattr(inner, "end_lineno", 0) for part in parts for inner in ast.walk(part)]
        return replace(self, lines=range(node.lineno, max([node.lineno, *ends]) + 1))


@dataclass(frozen=True)
class Mutant:
    """One change: the child ``part`` of ``parent`` becomes ``new``."""

    file: str
    line: str
    change: str
    place: Place
    parent: ast.AST
    part: Part
    new: ast.AST

    @property
    def key(self) -> Key:
        """What identifies the mutant when lines move."""
        return (self.file, ".".join(self.place.names), self.line, self.change)


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield name, None, value
        elif isinstance(value, list):
            for index, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield name, index, child


def _has_own_mutant(test: ast.expr) -> bool:
    """Whether the negation of a condition is already the mutant of its operator."""
    one = isinstance(test, ast.Compare) and len(test.ops) == 1
    return one or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


def _put(parent: ast.AST, part: Part, node: ast.AST) -> None:
    name, index = part
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def _changed(node: ast.AST, **fields: Any) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _replacements(node: Any, returns_none: bool) -> Iterator[ast.AST]:  # noqa: PLR0912
    """What takes the place of ``node``, one mutant each: a table, one case a kind of node."""
    match node:
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Return(value=ast.expr()) if not returns_none:
            yield ast.Return(ast.Constant(None))
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
        case ast.If() | ast.While() | ast.IfExp() if not _has_own_mutant(node.test):
            yield _changed(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.comprehension():
            for i, test in enumerate(node.ifs):
                if not _has_own_mutant(test):
                    negated = ast.UnaryOp(ast.Not(), test)
                    yield _changed(node, ifs=[*node.ifs[:i], negated, *node.ifs[i + 1 :]])
        case ast.Compare():
            for i, operator in enumerate(node.ops):
                for kind in _OPERATORS[type(operator)]:
                    yield _changed(node, ops=[*node.ops[:i], kind(), *node.ops[i + 1 :]])
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign():
            for kind in _OPERATORS.get(type(node.op), ()):
                yield _changed(node, op=kind())
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int(value) | float(value)):
            for step in (1, -1):
                yield ast.Constant(value + step)
        case ast.Name() if node.id in _NAMES:
            yield ast.Name(_NAMES[node.id], ast.Load())
        case ast.Attribute() if node.attr in _NAMES:
            yield _changed(node, attr=_NAMES[node.attr])


def _holds_nothing_to_check(node: ast.AST) -> bool:
    """Whether a subtree is a message, or types alone."""
    match node:
        case ast.JoinedStr() | ast.Raise():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return True
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
    return False


class Module:
    """A module under test: its tree, and the mutants of it."""

    def __init__(self, path: Path, root: Path = PROJECT) -> None:
        self.path = path
        self.file = path.relative_to(root).as_posix()
        source = path.read_text("utf-8")
        self.digest = hashlib.sha256(source.encode()).hexdigest()
        self.tree = ast.parse(source)
        self._lines = source.splitlines()
        self._times: Counter[Key] = Counter()
        self.mutants = list(self._below(self.tree, Place()))

    def _below(self, node: ast.AST, place: Place) -> Iterator[Mutant]:
        for name, index, child in _children(node):
            if name == "decorator_list":
                continue
            at = (place.into(node) if name == "body" else place).at(child)
            if name in {"annotation", "returns"}:
                # Of a type only what pydantic checks by it: Field(ge=0).
                for call in ast.walk(child):
                    if isinstance(call, ast.Call):
                        yield from self._below(call, replace(at, code=None))
                continue
            for new in _replacements(child, at.returns_none):
                yield self._mutant(node, (name, index), child, new, at)
            if not _holds_nothing_to_check(child):
                yield from self._below(child, at)

    def _mutant(self, parent: ast.AST, part: Part, old: ast.AST, new: ast.AST, at: Place) -> Mutant:
        ast.fix_missing_locations(ast.copy_location(new, old))
        line = self._lines[getattr(old, "lineno", at.lines.start) - 1].strip()
        # A bare 1 -> 2 says little: show what the number stands in.
        small = isinstance(old, ast.Constant | ast.Name) and isinstance(
            parent, ast.expr | ast.keyword
        )
        texts = []
        for node in (new, old):
            _put(parent, part, node)
            texts.append(ast.unparse(parent if small else node).strip().split("\n")[0])
        mutant = Mutant(self.file, line, f"{texts[1]} -> {texts[0]}", at, parent, part, new)
        self._times[mutant.key] += 1
        if (times := self._times[mutant.key]) > 1:
            return replace(mutant, change=f"{mutant.change} (place {times})")
        return mutant

    def code_with(self, mutant: Mutant | None) -> CodeType:
        """The code of the module with the mutant in it; the tree stays changed."""
        if mutant is not None:
            _put(mutant.parent, mutant.part, mutant.new)
        return compile(self.tree, str(self.path), "exec")


def modules(targets: Iterable[str]) -> list[Module]:
    """The modules in files and folders, without those that only list names."""
    paths: list[Path] = []
    for target in targets:
        path = (PROJECT / target).resolve()
        paths += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [module for module in map(Module, paths) if module.mutants]
