"""The question with every default written out, against a second way to work it out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
