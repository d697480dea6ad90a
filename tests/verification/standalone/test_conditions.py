"""The trees of conditions, as the verifier in one file reads them: no other verdict than ours."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from release.records.trees import Node
from release.spec.declarations import ColumnType
from release.spec.expressions.check import check_tree
from release.spec.expressions.functions import FUNCTIONS, PATTERNS
from release.verification import standalone
from tests.spec.trees import COLUMNS, any_tree

NODE: TypeAdapter[Node] = TypeAdapter(Node)
NAMES = {name: kind.value for name, kind in COLUMNS.items()}
OTHERS = sorted(set(FUNCTIONS) - set(PATTERNS))


def is_accepted(tree: Any, wanted: ColumnType) -> bool:
    """What the verifier in one file says of a tree."""
    try:
        letter, nodes, joined, _ = standalone.read_tree("q", tree, NAMES)
    except (standalone.RefusedError, ValueError):  # both are refusals of its command line
        return False
    return letter.lower() == wanted.value[0] and nodes <= 1000 and joined <= 16


def is_right(tree: Any, wanted: ColumnType) -> bool:
    """What the program says of it."""
    try:
        check_tree(NODE.validate_python(tree), COLUMNS, wanted)
    except (ValidationError, ValueError):
        return False
    return True


def nodes_in(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """All nodes that call a function."""
    of = tree.get("of", [])
    inner = [node for each in (of if isinstance(of, list) else [of]) for node in nodes_in(each)]
    return [tree, *inner] if "call" in tree else inner


def changed(tree: dict[str, Any], draw: st.DataObject) -> None:
    """Give one call another function, or one argument more or less."""
    calls = nodes_in(tree)
    if calls:
        node = draw.draw(st.sampled_from(calls))
        how = draw.draw(st.sampled_from(["name", "more", "less", "swap"]))
        if how == "name":
            node["call"] = draw.draw(st.sampled_from(OTHERS))
        elif how == "more":
            node["of"] = [*node["of"], {"column": draw.draw(st.sampled_from(sorted(NAMES)))}]
        elif how == "less":
            node["of"] = node["of"][1:]
        else:
            node["of"] = node["of"][::-1]


@settings(max_examples=600, deadline=None)
@given(any_tree(), st.sampled_from(ColumnType), st.data())
def test_both_verifiers_take_the_same_trees(
    tree: Node, wanted: ColumnType, data: st.DataObject
) -> None:
    plain = NODE.dump_python(tree, mode="json", exclude_none=True)
    for kind in ColumnType:
        assert is_accepted(plain, kind) == is_right(plain, kind)
    changed(plain, data)
    patterns = [n for n in nodes_in(plain) if n["call"] in PATTERNS]
    # Of patterns only one of the two looks at the text.
    if not patterns or is_right(plain, wanted):
        assert is_accepted(plain, wanted) == is_right(plain, wanted)


@pytest.mark.parametrize(
    "tree",
    [
        {"boolean": 1},
        {"integer": "07"},
        {"integer": str(2**63)},
        {"number": "1e5"},
        {"number": "inf"},
        {"string": "\0"},
        {"date": "2013-02-30"},
        {"timestamp": "2013-01-05T12:30:00"},
        {"timestamp": "2013-01-05 12:30:00-05:00"},
        {"column": "nobody"},
        {"column": "i", "of": []},
        {"cast": "date", "of": {"string": "2013-01-05"}},
        {"cast": "integer", "of": {"column": "i"}},
        {"call": "median", "of": [{"column": "i"}]},
        {"call": "date_trunc", "of": [{"string": "era"}, {"column": "t"}]},
        {"call": "like", "of": [{"column": "s"}, {"column": "s"}]},
    ],
)
def test_a_tree_of_another_form_is_refused(tree: dict[str, Any]) -> None:
    assert not any(is_accepted(tree, kind) for kind in ColumnType)
