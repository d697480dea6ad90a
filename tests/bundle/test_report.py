"""The report and the descriptions: what they say is so, and anyone can read them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

import release
from dp_release_verify import forms
from dp_release_verify.digests import sha256
from release.bundle.exports import registry
from release.bundle.opened import open_public
from release.bundle.report.answers import answer_columns, table_of
from release.bundle.report.long_tables import rows_of
from release.bundle.report.page import chance, odds
from release.bundle.report.published import PublicQuery
from release.bundle.tables.parquet import stated_facts
from release.job import auditor_bundle
from release.queries.read import parse_spec
from release.spec.query import DomainQuery
from release.street import run_release
from tests.small import Row, Small, joint, part, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % 2, "kind": i % 4, "wh": i % 9}
    for i in range(20)
]
NOMINAL = {"nominal": ["<b>", "$x$", "c & d"]}
GLOBAL: list[dict[str, Any]] = [
    query("count", sensitivity="global", by=["place", "day"], loss="squared"),
    query("mode", sensitivity="global", title="The commonest kind", units="kinds"),
    query("binned", sensitivity="global", units="Wh", loss="absolute"),
    query("on_grid", sensitivity="global", name="grid"),
    part("one", "count"),
    part("two", "mode"),
    joint("one", "two", name="both", sensitivity="global"),
]


class Page(HTMLParser):
    """The elements of a page, and whether what has to be closed is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember it."""
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "link", "img"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember it; it has no end."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """The last that was opened is the first to close."""
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    path = Small(ROWS, GLOBAL, max_rows_per_unit=2).write(place)
    return run_release(path, place / "out").public


def test_texts_are_made_once_for_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """All labels, once a cell, cost 1,900 CPU s for 227,056 cells of 30,001 answers."""
    made: list[int] = []
    texts_of = DomainQuery.shown_answers

    def counted_texts(one: DomainQuery, codes: Sequence[int]) -> list[str]:
        made.append(len(codes))
        return texts_of(one, codes)

    monkeypatch.setattr(DomainQuery, "shown_answers", counted_texts)
    wide = query("count", sensitivity="global", domain={"ordered": {"min": 5, "max": 30_005}})
    plain = Small([], [wide | {"mechanism": "modular"}]).plain()
    spec = parse_spec(yaml.safe_dump(plain).encode())
    (counted,) = spec.released
    keys = tuple((f"k{place:05}",) for place in range(20_000))
    one = Fraction(1)
    entry = forms.MadeQuery("the_count", "pure", one, one, 20_000, forms.Figures(one, one))
    public = PublicQuery(counted, entry, "modular", keys, np.arange(20_000)[:, None], None)
    columns = table_of(public, answer_columns(public, "unit"), 20_000)
    assert made == [20_000]
    rows = rows_of(columns, 20_000)
    assert rows[0] == ("k00000", "5")
    assert rows[-1] == ("k19999", "20004")


def test_a_page_for_everyone(published: Path) -> None:
    """One file that fetches nothing; headings in order, each picture told in words.

    Its one script is its own, and the page forbids any other.
    """
    text = (published / "report.html").read_text("utf-8")
    page = Page(text)
    assert not page.open
    tags = [tag for tag, _ in page.elements]
    assert not {"iframe", "link", "img", "object", "embed"} & set(tags)
    assert not re.search(r'(?:href|src)="(?!#|data/[a-z_]+\.parquet")', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}';" in policy
    assert "url(" not in re.sub(r"url\(#", "", text)
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    for tag, attributes in page.elements:
        if tag == "figure":
            assert "role" not in attributes  # it would hide the caption
        if attributes.get("role") == "img":
            assert len(attributes["aria-label"] or "") > 20
        if attributes.get("class") == "scroll":
            assert attributes["tabindex"] == "0"
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert dict(page.elements)["html"] == {"lang": "en"}
    targets = set(re.findall(r'href="#([^"]+)"', text))
    assert targets <= set(ids)
    order = ["readers", "meaning", "facts", "unprotected", "auditors", "evidence", "check"]
    assert [one for one in ids if one in order] == order


def test_a_bound_stands_beside_the_loss_that_it_bounds(tmp_path: Path) -> None:
    """A loss of 1.8302 stood beside the proof that none is below 1.8413, of unclamped noise."""
    asked = query("count", sensitivity="global", loss="squared")
    asked["domain"] = {"ordered": {"min": 0, "max": 40}}
    path = Small(ROWS, [asked], max_rows_per_unit=1).write(tmp_path)
    public = run_release(path, tmp_path / "out").public
    page = (public / "report.html").read_text("utf-8")
    figures = re.search(
        r"Its squared loss, on average over all true answers, is ([\d.]+)\. Far from both ends, "
        r"where nothing is clamped, it is ([\d.]+); it is proved that no noise on the integers "
        r"with this guarantee has a loss there below ([\d.]+)\.",
        page,
    )
    assert figures is not None
    everywhere, far, bound = map(float, figures.groups())
    assert everywhere < bound <= far
    stated = open_public(public).law("the_count").bound.at_least
    assert float(stated) == pytest.approx(bound, abs=1e-9)


def test_the_same_release_gives_the_same_page(tmp_path: Path) -> None:
    """With the noise frozen; a clock or a random identifier in a picture would show."""
    pages = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        path = Small(ROWS, GLOBAL[:3], max_rows_per_unit=2).write(tmp_path / place)
        made = run_release(path, tmp_path / place / "out", test_source=bytes)
        pages.append((made.public / "report.html").read_bytes())
    assert pages[0] == pages[1]
    assert b"This is a test run" in pages[0]


def test_the_worked_example_is_the_interval_of_the_frame(published: Path) -> None:
    """The report and Python say the same of the first answer, to the last digit."""
    text = (published / "report.html").read_text("utf-8")
    frame = release.open(published)["the_count"].to_pandas()
    answer, low, high = (int(frame[name].iloc[0]) for name in ("answer", "low", "high"))
    told = f"Published {answer} rows for a, 1: the answer of the rows that were read"
    if (low, high) != (0, 5):
        where = f"is {low} rows" if low == high else f"lies from {low} to {high} rows"
        assert f"{told} {where}, 95 times in 100." in text
    else:
        # An interval of all answers says nothing.
        assert told not in text


def test_an_instance_specific_query_shows_no_accuracy(tmp_path: Path) -> None:
    """Its law hangs on the table: neither numbers nor pictures of it are in the page."""
    path = Small(ROWS, [query("count"), query("mode")], max_rows_per_unit=2).write(tmp_path)
    public = run_release(path, tmp_path / "out").public
    text = (public / "report.html").read_text("utf-8")
    half = auditor_bundle(public)
    assert half is not None
    assert sorted(path.name for path in half.iterdir()) == ["the_count.json", "the_mode.json"]
    assert 'id="law-' not in text
    assert "An answer is exact in" not in text
    assert "so only auditors see it" in text


def test_labels_with_a_meaning_elsewhere_are_shown_as_they_are(tmp_path: Path) -> None:
    asked = query("mode", sensitivity="global", domain=NOMINAL, of="place")
    path = Small(ROWS, [asked], max_rows_per_unit=2).write(tmp_path)
    public = run_release(path, tmp_path / "out").public
    text = (public / "report.html").read_text("utf-8")
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    package = json.loads((public / "datapackage.json").read_bytes())
    answer = package["resources"][0]["schema"]["fields"][1]
    assert answer["constraints"]["enum"] == answer["labels"] == NOMINAL["nominal"]


def test_numbers_in_sentences_are_on_the_safe_side() -> None:
    from fractions import Fraction

    assert odds(Fraction(1)) == "2.72"
    assert float(odds(Fraction(1, 10))) > 2.718281828**0.1
    assert odds(Fraction(10)) == "22,027"
    assert odds(Fraction(1000)) == "10^435"
    assert chance(Fraction(0)) is None
    assert chance(Fraction(1, 1000)) == "1,000"
    assert chance(Fraction(3, 1000)) == "333"


def test_columns_say_what_they_mean(published: Path) -> None:
    """Titles and units of the columns in an entry for people; the three others stay."""

    def facts(name: str, column: str = "answer") -> dict[str, str]:
        return stated_facts(pq.read_schema(published / "data" / f"{name}.parquet"), column)

    assert facts("the_binned")["title"] == "the binned"
    assert facts("the_binned")["unit"] == "Wh"
    assert facts("the_mode")["title"] == "The commonest kind"
    assert facts("both", "answer_one")["title"] == "one"
    assert facts("grid")["scale"] == "interval"
    stored = pq.read_metadata(published / "data" / "the_binned.parquet").metadata
    assert {b"release_id", b"query", b"format"} < set(stored)
    # Six levels of 0..20: the least integer of each, and the end.
    package = json.loads((published / "datapackage.json").read_bytes())
    edges = [
        one["edges"]
        for own in package["resources"]
        for one in own["schema"]["fields"]
        if own["name"] == "the_binned" and "edges" in one
    ]
    assert edges == [[0, 4, 7, 10, 14, 17, 20]]


def test_the_package_describes_the_tables(published: Path) -> None:
    package = json.loads((published / "datapackage.json").read_bytes())
    assert package["name"] == "small"
    assert not any("path" in source for source in package["sources"])
    assert len(package["resources"]) == 5
    for resource in package["resources"]:
        data = (published / resource["path"]).read_bytes()
        assert resource["bytes"] == len(data)
        assert resource["hash"] == f"sha256:{sha256(data)}"
        schema = pq.read_schema(published / resource["path"])
        assert [one["name"] for one in resource["schema"]["fields"]] == schema.names


@pytest.mark.skipif(find_spec("frictionless") is None, reason="frictionless is not installed")
def test_the_package_is_valid_by_another_reader(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frictionless' own profile of Data Package v2."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from frictionless import Package

        monkeypatch.chdir(published)
        report = Package.validate_descriptor("datapackage.json")
        assert report.valid, report.flatten(["message"])
        broken = json.loads((published / "datapackage.json").read_bytes())
        broken["resources"][0].pop("name")
        assert not Package.validate_descriptor(broken).valid


def test_the_registry_record_has_every_field(published: Path) -> None:
    """The sections and fields of docs/design/format.md, and what the release knows in them."""
    record = yaml.safe_load(registry(open_public(published)))
    assert {name: set(fields) for name, fields in record.items()} == {
        "basic": {
            "name",
            "data_curators",
            "intended_use",
            "data_product_type",
            "data_product_region",
            "description",
            "publication_date",
            "data_product_sector",
        },
        "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
        "privacy_loss": {
            "privacy_unit",
            "privacy_unit_details",
            "privacy_parameters",
            "privacy_parameters_details",
        },
        "deployment_model": {
            "model_name",
            "model_name_details",
            "actors",
            "release_type",
            "release_type_details",
            "data_source_type",
            "data_source_type_details",
            "access_type",
            "access_type_details",
        },
        "accounting": {"post_processing", "composition"},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning",
            "mechanisms",
            "justification",
        },
        "administrative": {"sources", "notes", "registry_authors"},
    }
    assert record["dp_variant"]["variant_name"] == "Pure DP"
    total = json.loads((published / "release.json").read_bytes())["made"]["total"]
    parameters = record["privacy_loss"]["privacy_parameters"]
    assert parameters == {name: total[name] for name in ("epsilon", "delta")}
    assert record["basic"]["data_product_region"] == "TODO(curator)"


@pytest.mark.parametrize(
    ("definition", "variant"),
    [("approximate", "Approximate DP"), ("probabilistic", "Custom"), ("pure", "Pure DP")],
)
def test_the_variant_is_named_as_the_registry_does(
    definition: str, variant: str, tmp_path: Path
) -> None:
    delta = {} if definition == "pure" else {"delta": "0.3"}
    promise = {"definition": definition, "epsilon": "1", **delta}
    asked = query("count", sensitivity="global", guarantee=promise)
    spec = Small(ROWS, [asked], max_rows_per_unit=1).write(tmp_path)
    public = run_release(spec, tmp_path / "out").public
    record = yaml.safe_load(registry(open_public(public)))
    assert record["dp_variant"]["variant_name"] == variant
    details = record["privacy_loss"]["privacy_parameters_details"]
    assert ("with chance 1 - delta" in details) == (variant == "Custom")
