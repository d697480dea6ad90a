"""What was asked, in words: the title, the unit and the condition of a query.

All of it is public: the query as the spec declares it, and the trees of its conditions.
"""

from __future__ import annotations

from collections.abc import Iterable

from release.bundle.report.conditions import (
    Trees,
    columns_of,
    derived_columns,
    in_words,
    listed,
)
from release.spec.expressions.places import place_of_condition
from release.spec.query import PlainQuery, Query, spoken

_ENDINGS = (" id", " key", " number", " no", " code")


def unit_word(column: str) -> str:
    """One protected unit in words, from the column that names it: ``household_id``, a household."""
    words = spoken(column).strip()
    for ending in _ENDINGS:
        if words.lower().endswith(ending) and len(words) > len(ending):
            return words[: -len(ending)]
    return words


def plural(word: str) -> str:
    """Several of a word, by the rules that hold for most nouns."""
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return "people" if word == "person" else f"{word}s"


def title_of(query: Query) -> str:
    """The title for people, else the name as words; it begins with a capital letter."""
    title = query.title or spoken(query.name)
    return title[:1].upper() + title[1:]


def answer_word(part: PlainQuery, unit: str) -> str:
    """The unit of measure of the answers of one column; empty where they have none.

    The spec's, else what is counted. On a grid without a unit, the size of its integers.
    """
    if part.units is not None:
        return part.units
    if part.step_word in ("rows", "units"):
        return "rows" if part.step_word == "rows" else plural(unit)
    scale = part.facts().get("scale_factor", "1")
    if scale != "1":
        return f"units of {scale}"
    return ""


def question_of(column: str, trees: Trees, query: Query) -> str:
    """What is asked, with its condition, as one sentence; ``column`` names the unit."""
    units = plural(unit_word(column))
    asked = []
    for part in query.parts:
        where = _where(trees, part)
        # The condition of a tuple decides which rows its parts read.
        asked.append(part.question(units) + (f" where {where}" if where else ""))
    own = _where(trees, query) if query.part_names else None
    condition = f", of rows where {own}" if own else ""
    # In a list of conditions and questions alike, a semicolon tells the questions apart.
    text = asked[0] if len(asked) == 1 else "; and ".join(asked)
    cells = f"; for each {listed(map(spoken, query.by))}" if query.by else ""
    return f"{text[:1].upper()}{text[1:]}{condition}{cells}."


def source_of(query: Query) -> str:
    """The table that was read, in words."""
    return spoken(query.table)


def meanings_of(trees: Trees, query: Query) -> list[tuple[str, str]]:
    """The derived columns that a question names, each with its meaning in words."""
    derived, named = derived_columns(trees, query.table), list(_named(trees, query))
    meanings = {}
    for column in named:
        if column in derived:
            meanings[spoken(column)] = in_words(derived[column])
    return list(meanings.items())


def _where(trees: Trees, query: Query) -> str | None:
    tree = trees.get(place_of_condition(query))
    return None if tree is None else in_words(tree)


def _named(trees: Trees, query: Query) -> Iterable[str]:
    """The columns that the questions of a query read."""
    yield from query.by
    # A query that is no tuple is its own only part, and is read once.
    for part in (query, *query.parts) if query.part_names else query.parts:
        for column, _ in part.needed_columns().values():
            yield column
        tree = trees.get(place_of_condition(part))
        if tree is not None:
            yield from columns_of(tree)
