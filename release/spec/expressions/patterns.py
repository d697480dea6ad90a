r"""Regular expressions that every engine of the RE2 family accepts, in time linear in the text.

::

    pattern  =  branch ("|" branch)*
    branch   =  (atom quantifier?  |  "^"  |  "$"  |  "\b"  |  "\B")*
    quantifier = ("*" | "+" | "?" | "{" m "}" | "{" m ",}" | "{" m "," n "}") "?"?
    atom     =  "(" "?:"? pattern ")"  |  class  |  "."  |  escape  |  any other character
    class    =  "[" "^"? (escape | character ("-" character)?)+ "]"
    escape   =  "\" (one of d D w W s S t n r, or a punctuation character)
"""

from __future__ import annotations

import re

# Engines write repetitions out, so that ((a{9}){9}){9} is a program of 729 steps.
MOST_SIZE = 200
"""Characters and classes of a pattern, once its repetitions are written out."""
_MOST_LEVELS = 16

_QUANTIFIER = re.compile(r"(?:[*+?]|\{([0-9]{1,4})(,([0-9]{0,4}))?\})\??", re.ASCII)
_EDGE = re.compile(r"\^|\$|\\[bB]")
_ESCAPE = re.compile(r"\\(?:[dDwWsStnr]|[!-/:-@\[-`{-~])")
_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}\x00-\x1f]")
_IN_CLASS = re.compile(r"[^\\\[\]^\x00-\x1f-]")


def check_pattern(pattern: str) -> None:
    """Check that a pattern is of the grammar and of a bounded size.

    Raises:
        ValueError: it is not; the message says at which character.
    """
    end, size = _alternatives(pattern, 0, _MOST_LEVELS)
    if end < len(pattern):
        raise _wrong(pattern, end)
    _check_size(size)


def _check_size(size: int) -> None:
    if size > MOST_SIZE:
        raise ValueError(f"a pattern of more than {MOST_SIZE} repetitions; shorten it")


def _wrong(pattern: str, at: int) -> ValueError:
    part = f"{pattern[at]!r} at character {at + 1}" if at < len(pattern) else "its end"
    return ValueError(f"not a pattern that is understood: see {part}")


def _alternatives(text: str, at: int, levels: int) -> tuple[int, int]:
    """Where the alternatives from ``at`` on end, and their size."""
    size = 0
    while True:
        at, of_branch = _branch(text, at, levels)
        size += of_branch + 1
        if at >= len(text) or text[at] != "|":
            return at, size
        at += 1


def _branch(text: str, at: int, levels: int) -> tuple[int, int]:
    size = 0
    while at < len(text) and text[at] not in "|)":
        if edge := _EDGE.match(text, at):
            at, size = edge.end(), size + 1
            continue
        at, of_atom = _atom(text, at, levels)
        quantifier = _QUANTIFIER.match(text, at)
        if quantifier is not None:
            of_atom *= _times(text, at, quantifier)
            at = quantifier.end()
        size += of_atom
        # Here too, because repetitions of repetitions multiply.
        _check_size(size)
    return at, size


def _times(text: str, at: int, quantifier: re.Match[str]) -> int:
    """How often a quantifier writes its atom out at most."""
    least, has_comma, most = quantifier.groups()
    # ``*``, ``+`` and ``?``: the atom and a way round or back to it.
    if least is None:
        return 2
    if most and int(most) < int(least):
        raise _wrong(text, at)
    open_end = 1 if has_comma and not most else 0
    return max(int(most or least) + open_end, 1)


def _atom(text: str, at: int, levels: int) -> tuple[int, int]:
    if text[at] == "(" and levels:
        inner = at + 3 if text.startswith("(?:", at) else at + 1
        end, size = _alternatives(text, inner, levels - 1)
        if not text.startswith(")", end):
            raise _wrong(text, end)
        return end + 1, size
    if text[at] == "[":
        return _class(text, at), 1
    if text[at] == ".":
        return at + 1, 1
    match = _ESCAPE.match(text, at) or _PLAIN.match(text, at)
    if match is None:
        raise _wrong(text, at)
    return match.end(), 1


def _class(text: str, at: int) -> int:
    """Where the class of characters that starts at ``at`` ends."""
    start = at + 2 if text.startswith("[^", at) else at + 1
    at = start
    # A class ends at its first bracket: RE2 takes one right after the opening for a character, and
    # this grammar has none there.
    while not text.startswith("]", at):
        low = _IN_CLASS.match(text, at)
        match = low or _ESCAPE.match(text, at)
        if match is None:
            raise _wrong(text, at)
        at = match.end()
        if low is not None and text.startswith("-", at):
            high = _IN_CLASS.match(text, at + 1)
            if high is None or high[0] < low[0]:
                raise _wrong(text, at)
            at = high.end()
    if at == start:
        raise _wrong(text, at)
    return at + 1
