"""Putting a mutant in place in a process that has imported the package."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType
from typing import Any

from tests.mutants.changes import Module, Mutant


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def put_in_place(module: Module, mutant: Mutant, live: list[FunctionType]) -> bool:
    """Exchange the code of the live function that the mutant is in; whether there is one."""
    wanted, done = mutant.place.code, False
    for code in _nested(module.code_with(mutant)):
        if (code.co_qualname, code.co_firstlineno) != wanted:
            continue
        for function in live:
            old = function.__code__
            same = old.co_filename == code.co_filename and old.co_firstlineno == wanted[1]
            if same and old.co_qualname == wanted[0]:
                function.__code__ = code
                done = True
    return done


def import_anew(module: Module, mutant: Mutant | None) -> None:
    """Forget the package and the tests; the next import of the module is that of the mutant.

    Without a mutant it is the module as it was read.
    """
    code, path = module.code_with(mutant), str(module.path)
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return code if loader.get_filename(name) == path else original(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]
    for name in [name for name in sys.modules if name.split(".")[0] in {"release", "tests"}]:
        del sys.modules[name]


def caches() -> list[Any]:
    """Every function cache of the package: a mutant of a cached function has to run."""
    return [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, functools._lru_cache_wrapper)
        and str(thing.__module__).startswith("release.")
    ]


def forget_properties() -> None:
    """Clear the cached properties of every object of the package."""
    for thing in gc.get_objects():
        kind = type(thing)
        if str(kind.__module__).startswith("release.") and hasattr(thing, "__dict__"):
            for name in list(vars(thing)):
                if isinstance(getattr(kind, name, None), functools.cached_property):
                    del vars(thing)[name]
