"""Privacy profiles in mechanism files: recomputed to the last digit, and refused where forged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from dp_release_verify.digests import commit, sha256
from release.bundle.read import parse_any_mechanism
from release.errors import VerificationError
from release.exact.composition.distribution import UNIT
from release.exact.composition.profile import Profile
from release.pipeline import auditor_bundle, run_release
from release.verification.verifier import verify
from tests.hockey_stick import HAIR
from tests.small import UNSIGNED, Row, Small, joint, part, query
from tests.verification.test_values import fit

Plain = dict[str, Any]
Change = Callable[[Plain], Any]

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % 2, "kind": i % 4, "wh": i}
    for i in range(12)
]
WIDE: Plain = {"domain": {"ordered": {"min": 0, "max": 30}}, "sensitivity": "global"}
# Not in proportion, so that one cell and several get one mechanism.
ROWS_OF_CHANCES = WIDE | {"mechanism": "channel"}
WEAK = {"definition": "approximate", "epsilon": "1/3", "delta": "0.001"}
QUERIES = [
    query("count", name="everywhere", by=[], **ROWS_OF_CHANCES),
    query("count", name="by_place", **ROWS_OF_CHANCES),
    query("count", name="by_both", by=["place", "day"], **ROWS_OF_CHANCES),
    query("count", name="by_day", by=["day"], **ROWS_OF_CHANCES),
    query("count", name="weak", by=["day"], sensitivity="global", guarantee=WEAK),
    query("mode", name="chosen", sensitivity="global", noise="on_statistic"),
    query("binned", name="summed", by=[], sensitivity="global", noise="on_statistic"),
    query("count", name="ring", by=["place", "day"], mechanism="modular", **WIDE),
    query("count", name="line", by=["place", "day"], mechanism="integer", **WIDE),
    query("mode", name="held"),
    part("one", "mode"),
    part("other", "count", domain={"ordered": {"min": 0, "max": 2}}),
    joint("one", "other", name="both", sensitivity="global"),
]
PATTERNS = {
    "everywhere": [[2]],
    "by_place": [[2, 2]],
    "by_both": [[1, 1, 1, 1], [2, 1, 1], [2, 2]],
    "by_day": [[2, 2]],
    "weak": [[2, 2]],
    "chosen": [[2, 2]],
    "summed": [[40]],
    "ring": [[1, 1, 1, 1], [2, 1, 1], [2, 2]],
    "line": [[1, 1, 1, 1], [2, 1, 1], [2, 2]],
    "both": [[0, 0]],
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a release in which a unit has up to two rows."""
    folder = tmp_path_factory.mktemp("profiles")
    spec = Small(ROWS, QUERIES, max_rows_per_unit=2)
    run_release(spec.write(folder), folder / "out")
    return folder / "out"


@pytest.fixture
def public(published: Path, tmp_path: Path) -> Path:
    """A copy for a forger."""
    shutil.copytree(published, tmp_path / "out")
    return tmp_path / "out" / "public" / "small"


def paths(public: Path) -> dict[str, str]:
    """The mechanism file of each query that has a public one."""
    record = json.loads((public / "release.json").read_bytes())
    files = {}
    for entry in record["queries"]:
        if "path" in entry["mechanism_file"]:
            files[entry["name"]] = entry["mechanism_file"]["path"]
    return files


def forge(public: Path, path: str, change: Change) -> None:
    """Change a mechanism file, and make all that describes or sums it up fit."""
    plain = json.loads((public / path).read_bytes())
    change(plain)
    data = rfc8785.dumps(plain)
    (public / path).write_bytes(data)
    record = json.loads((public / "release.json").read_bytes())
    for entry in record["queries"]:
        if entry["mechanism_file"].get("path") == path:
            entry["mechanism_file"]["sha256"] = sha256(data)
    (public / "release.json").write_bytes(rfc8785.dumps(record))
    fit(public)


def refused(public: Path, auditor: Path | None = None) -> tuple[str, str]:
    """The identifier of the check that failed, and its message."""
    with pytest.raises(VerificationError) as caught:
        verify(public, auditor, UNSIGNED)
    return str(caught.value.identifier), str(caught.value)


def test_every_public_mechanism_has_the_profile_of_its_unit(public: Path) -> None:
    verdict = verify(public, auditor_bundle(public), UNSIGNED)
    told = [line for line in verdict.findings if line.identifier == "mechanism.profile"]
    assert [line.text.split(":")[0] for line in told] == list(PATTERNS)
    for name, path in paths(public).items():
        record = parse_any_mechanism(path, (public / path).read_bytes())
        assert record.profile is not None
        profile = record.profile.to_profile()
        assert 0 < profile.values[0] <= UNIT
        assert record.profile.patterns == PATTERNS[name]


def test_a_file_is_shared_where_the_profile_is_equal(public: Path) -> None:
    """One question in one cell, in two and in four: one mechanism with three profiles."""
    files = paths(public)
    assert files["by_day"] == files["by_place"] == "mechanisms/by_place.json"
    assert files["everywhere"] == "mechanisms/everywhere.json"
    assert files["by_both"] == "mechanisms/by_both.json"
    mechanisms = []
    for name in ("everywhere", "by_place", "by_both"):
        plain = json.loads((public / files[name]).read_bytes())
        del plain["query"], plain["profile"]
        mechanisms.append(plain)
    assert mechanisms[0] == mechanisms[1] == mechanisms[2]


def test_a_whole_query_reveals_at_most_what_is_charged(public: Path) -> None:
    """At the charged ε the δ of the profile is no more than the charged δ."""
    record = json.loads((public / "release.json").read_bytes())
    files = paths(public)
    for entry in record["queries"]:
        if entry["name"] not in files:
            continue
        plain = json.loads((public / files[entry["name"]]).read_bytes())["profile"]
        profile = Profile(Fraction(plain["step"]), tuple(map(int, plain["values"])))
        reached = profile.delta_at(Fraction(entry["charge"]["epsilon"]))
        assert reached <= Fraction(entry["charge"]["delta"]) + HAIR


def lowered(plain: Plain) -> None:
    """A value that claims a little more privacy than there is."""
    values = plain["profile"]["values"]
    values[3] = str(int(values[3]) - 1)


def raised(plain: Plain) -> None:
    """A larger value would be true as well; but one mechanism has one file."""
    values = plain["profile"]["values"]
    values[3] = str(int(values[3]) + 1)


FORGED: list[tuple[Change, str]] = [
    (lambda p: p.pop("profile"), "profile: found none"),
    (lambda p: p.update(profile=None), "schema: found profile: Value error, null"),
    (lowered, "profile.values[3]: "),
    (raised, "profile.values[3]: "),
    (lambda p: p["profile"]["values"].append("0"), "profile.values: "),
    (lambda p: p["profile"].update(values=["0"]), "profile.values: found 1"),
    (lambda p: p["profile"]["values"].__setitem__(0, "01"), "schema: found profile.values.0"),
    (lambda p: p["profile"].update(step="1/32"), "profile.step: found '1/32'"),
    (lambda p: p["profile"].update(step=p["profile"]["step"] + "0"), "profile.step: "),
    (lambda p: p["profile"].update(patterns=[[1]]), "profile.patterns: found [[1]]"),
    (lambda p: p["profile"]["patterns"].append([1]), "profile.patterns: "),
    (lambda p: p["profile"].update(patterns=[]), "schema: found profile.patterns"),
    (lambda p: p["profile"].update(other=1), "schema: found profile.other"),
]


@pytest.mark.parametrize("name", ["by_both", "chosen"])
@pytest.mark.parametrize(("change", "says"), FORGED, ids=list(map(str, range(len(FORGED)))))
def test_a_profile_follows_from_integers_and_spec(
    name: str, change: Change, says: str, public: Path
) -> None:
    path = f"mechanisms/{name}.json"
    forge(public, path, change)
    identifier, message = refused(public)
    assert message.startswith(f"{path}: {says}")
    if "schema" not in says:
        assert identifier == "mechanism.profile"


def test_a_query_cannot_borrow_the_profile_of_fewer_cells(public: Path) -> None:
    """The mechanism is the same, and its guarantee holds; a unit touches more cells."""
    data = (public / "mechanisms" / "everywhere.json").read_bytes()
    record = json.loads((public / "release.json").read_bytes())
    (entry,) = (each for each in record["queries"] if each["name"] == "by_both")
    entry["mechanism_file"] = {"path": "mechanisms/everywhere.json", "sha256": sha256(data)}
    (public / "release.json").write_bytes(rfc8785.dumps(record))
    (public / "mechanisms" / "by_both.json").unlink()
    fit(public)
    identifier, message = refused(public)
    assert identifier == "mechanism.profile"
    assert message.startswith("mechanisms/everywhere.json: profile.patterns: found [[2]]")


def test_a_committed_mechanism_has_no_profile(public: Path) -> None:
    """Beside another table it would be another mechanism, so no curve bounds both."""
    auditor = auditor_bundle(public)
    assert auditor is not None
    path = "mechanisms/held.json"
    plain = json.loads((auditor / path).read_bytes())
    assert "profile" not in plain
    public_one = json.loads((public / "mechanisms" / "everywhere.json").read_bytes())
    data = rfc8785.dumps(plain | {"profile": public_one["profile"]})
    (auditor / path).write_bytes(data)
    openings = json.loads((auditor / "openings.json").read_bytes())
    promise = commit(bytes.fromhex(openings["openings"][path]["key"]), data)
    openings["openings"][path]["commitment"] = promise
    (auditor / "openings.json").write_bytes(rfc8785.dumps(openings))
    record = json.loads((public / "release.json").read_bytes())
    (entry,) = (each for each in record["queries"] if each["name"] == "held")
    entry["mechanism_file"]["commitment"] = promise
    (public / "release.json").write_bytes(rfc8785.dumps(record))
    fit(public)
    assert refused(public, auditor)[1].startswith(f"{path}: profile: ")
