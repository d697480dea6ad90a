"""The question with every default written out, against a second way to work it out."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dp_release_verify import canonical, forms
from release.bundle.files.asked import asked_of
from release.errors import ReleaseError
from release.queries.read import read_spec
from release.spec.expressions.places import expressions
from release.spec.load import SpecFile, spec_plain
from tests.oracles.asked import Reading
from tests.street.specs import make_case
from tests.street.walk import write


def second(spec_file: SpecFile) -> Any:
    """The question, by the second way."""
    trees = {}
    for expression in expressions(spec_file.spec):
        trees[expression.place] = expression.tree.model_dump(mode="json")
    published = [query.name for query in spec_file.spec.released]
    return Reading(spec_file.text, spec_plain(spec_file.text), trees, published).asked()


def sorted_classes(plain: Any) -> Any:
    """The question without the order of classes, in which nothing depends on it."""
    for tabulation in plain.get("tabulations", []):
        for grouping in tabulation.get("groupings", []):
            grouping["classes"].sort(key=lambda each: str(each["label"]))
    return plain


@pytest.mark.parametrize("seed", range(0, 240, 6))
def test_it_says_what_the_spec_says_and_is_read_back(seed: int, tmp_path: Path) -> None:
    try:
        spec_file = read_spec(write(make_case(seed), tmp_path))
    except ReleaseError as refusal:
        pytest.skip(f"a spec that no run accepts: {refusal}")
    asked = asked_of(spec_file.spec)
    plain = json.loads(canonical.dumps(forms.plain(asked)))
    assert forms.read(forms.Asked, "asked", plain) == asked
    assert sorted_classes(plain) == sorted_classes(second(spec_file))


def without(plain: Any, at: tuple[Any, ...]) -> Any:
    """A copy of plain data without the field at a place."""
    copied = copy.deepcopy(plain)
    inner = copied
    for step in at[:-1]:
        inner = inner[step]
    del inner[at[-1]]
    return copied


def fields(plain: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all fields."""
    if isinstance(plain, dict):
        for name, value in plain.items():
            yield (*at, name)
            yield from fields(value, (*at, name))
    elif isinstance(plain, list):
        for place, value in enumerate(plain):
            yield from fields(value, (*at, place))


def test_every_field_of_a_spec_is_one_of_the_question(tmp_path: Path) -> None:
    """One that the writer forgets would be missing in a release without a word."""
    is_asked: dict[Any, bool] = {}
    for seed in range(3, 240, 12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = write(make_case(seed), folder)
        plain = yaml.safe_load(path.read_text("utf-8"))
        try:
            whole = read_spec(path).spec
        except ReleaseError:
            continue
        # Keys are in a file of their own, and what reads the tables is no part of the question.
        for at in [at for at in fields(plain) if at[0] not in ("keys", "engine")]:
            path.write_text(yaml.safe_dump(without(plain, at)), "utf-8")
            try:
                less = read_spec(path).spec
            except ReleaseError:
                continue
            if less != whole:
                # A field may say what is so without it.
                is_asked[at[0], at[-1]] = is_asked.get((at[0], at[-1])) or (
                    asked_of(less) != asked_of(whole)
                )
    assert len(is_asked) > 30
    assert [at for at, is_there in is_asked.items() if not is_there] == []
