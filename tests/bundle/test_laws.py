"""Laws as forms, against the files that are written of the same mechanisms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dp_release_verify import canonical, forms
from release.bundle.laws import found_of, law_of
from release.bundle.mechanisms import mechanism_record, statistic_record
from release.errors import ReleaseError
from release.noise.on_statistic import StatisticDesign
from release.pipeline import Options, decide
from release.queries.read import read_spec
from release.records.models import canonical as record_bytes
from tests.street.specs import make_case
from tests.street.walk import write
from tests.verifier.convert import Converter


@pytest.mark.parametrize("seed", range(0, 120, 5))
def test_a_law_says_what_its_file_says(seed: int, tmp_path: Path) -> None:
    try:
        spec_file = read_spec(write(make_case(seed), tmp_path))
        unseen, _ = decide(spec_file, Options())
    except ReleaseError as refusal:
        pytest.skip(f"a spec that no run accepts: {refusal}")
    own = Converter.__new__(Converter)
    path = tmp_path / "mechanism.json"
    queries = {query.name: query for query in unseen.spec_file.spec.charged}
    for name, design in unseen.designs.items():
        if isinstance(design, StatisticDesign):
            path.write_bytes(record_bytes(statistic_record(queries[name], design)))
        else:
            path.write_bytes(record_bytes(mechanism_record(queries[name], design)))
            found = forms.plain(found_of(design.sensitivity))
            assert found == own.sensitivity(path)
        plain = json.loads(canonical.dumps(forms.plain(law_of(design))))
        assert plain == own.law(path)
        assert forms.read(forms.Law, "law", plain) == law_of(design)
