"""The verifier: passes what was published, and no byte of it changed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rfc8785

from dp_release_verify.digests import commit, sha256
from release.bundle.mechanisms import mechanism_record
from release.bundle.metadata import registry
from release.bundle.statements import SUMS
from release.errors import ReleaseError, VerificationError
from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.pipeline import auditor_bundle, run_release
from release.queries import sensitivity as seen
from release.queries.read import parse_spec, read_spec
from release.records.models import ReleaseRecord, canonical, parse
from release.verification.verifier import verify
from tests.conftest import PROJECT
from tests.planted.specs import SPECS
from tests.small import UNSIGNED, Small, joint, part, query


@pytest.fixture
def release(ami_release: Path, tmp_path: Path) -> Path:
    """A copy of the sample release, both bundles; the public folder."""
    shutil.copytree(ami_release.parent.parent, tmp_path / "out")
    return tmp_path / "out" / "public" / ami_release.name


def sign_anew(public: Path) -> None:
    """Make the sums fit again, as a forger would."""
    files = sorted(p for p in public.rglob("*") if p.is_file() and p.name != SUMS)
    sums = [f"{sha256(p.read_bytes())}  {p.relative_to(public)}\n" for p in files]
    (public / SUMS).write_text("".join(sums), "utf-8")


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> bytes:
    plain = json.loads(path.read_bytes())
    change(plain)
    path.write_bytes(rfc8785.dumps(plain))
    return path.read_bytes()


def edit_law(public: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a public law, and all sums that depend on it."""
    data = edit_json(public / "mechanisms" / "heavy_evenings.json", change)

    def rename(release: dict[str, Any]) -> None:
        release["queries"][2]["mechanism_file"]["sha256"] = sha256(data)

    edit_json(public / "release.json", rename)
    sign_anew(public)


def _unnumbered(field: pa.Field) -> pa.Field:
    """Reading adds field numbers, which writing would keep."""
    known = {k: v for k, v in (field.metadata or {}).items() if k != b"PARQUET:field_id"}
    return field.with_metadata(known or None)


def edit_data(public: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    """Change a released table, and all sums that depend on it."""
    path = public / "data" / "heavy_evenings.parquet"
    stored = pq.ParquetFile(path).metadata.metadata
    metadata = {name: stored[name.encode()] for name in ("release_id", "query", "format")}
    table = change(pq.read_table(path))
    plain = pa.schema([_unnumbered(f) for f in table.schema], table.schema.metadata)
    table = pa.Table.from_arrays([c.combine_chunks() for c in table.columns], schema=plain)
    settings = {
        "use_dictionary": False,
        "compression": "zstd",
        **options,
    }
    with pq.ParquetWriter(path, table.schema, **settings) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    data = path.read_bytes()

    def rename(release: dict[str, Any]) -> None:
        release["queries"][2]["output"]["sha256"] = sha256(data)

    def describe(package: dict[str, Any]) -> None:
        package["resources"][2] |= {"bytes": len(data), "hash": f"sha256:{sha256(data)}"}

    edit_json(public / "release.json", rename)
    edit_json(public / "datapackage.json", describe)
    sign_anew(public)


def refused(public: Path, auditor: Path | None = None) -> str:
    with pytest.raises(VerificationError) as error:
        verify(public, auditor)
    return str(error.value)


def test_a_release_verifies_with_and_without_the_auditors_half(release: Path) -> None:
    unseen = verify(release, None, UNSIGNED).unseen
    assert [told.split(":")[0] for told in unseen] == ["peak_hour", "mean_hour_load"]
    verdict = verify(release, auditor_bundle(release), UNSIGNED)
    assert verdict.complete
    assert sum("the mechanism satisfies" in line for line in verdict.proved) == 3


def test_what_rests_on_conditions_is_not_called_proved(release: Path) -> None:
    """That a condition looks at one row is proved; that the engine evaluated it, no file shows."""
    verdict = verify(release, auditor_bundle(release), UNSIGNED)
    proved, asserted = ("\n".join(lines) for lines in (verdict.proved, verdict.asserted))
    assert "every table" not in proved
    assert "queries.heavy_evenings.where: it looks at one row at a time" in proved
    assert (
        "heavy_evenings: that the engine evaluated its condition and the derived column "
        "heavy_evening as published in release.json"
    ) in asserted


def test_without_conditions_nothing_is_asserted_of_them(tmp_path: Path) -> None:
    rows = [{"unit": "u1", "place": "a", "day": 1, "kind": 0, "wh": 1}]
    plain = query("count", name="plain", sensitivity="global")
    held = query("count", name="held", sensitivity="global", where="day = 1")
    parts = [part("low", "mode", where="wh < 3"), part("high", "mode")]
    both = joint("low", "high", name="both", sensitivity="global")
    spec = Small(rows, [plain, held, *parts, both]).write(tmp_path)
    verdict = verify(run_release(spec, tmp_path / "out").public)
    told = [line for line in verdict.asserted if "the engine evaluated" in line]
    assert [line.split(" as published")[0] for line in told] == [
        "held: that the engine evaluated its condition",
        "both: that the engine evaluated the condition of low",
    ]


def test_bytes_that_were_not_compared_are_said_to_be_so(release: Path) -> None:
    """Another version of the writer writes other bytes, so only the contents are compared."""
    half = auditor_bundle(release)
    assert not any("were compared" in line for line in verify(release, half).asserted)
    path = release / "data" / "heavy_evenings.parquet"
    created = pq.read_metadata(path).created_by.encode()
    other = re.sub(rb"version [0-9]", b"version 1", created)
    if other == created:
        other = re.sub(rb"version [0-9]", b"version 2", created)
    data = path.read_bytes().replace(created, other)
    path.write_bytes(data)

    def rename(record: dict[str, Any]) -> None:
        record["queries"][2]["output"]["sha256"] = sha256(data)

    def describe(package: dict[str, Any]) -> None:
        package["resources"][2] |= {"bytes": len(data), "hash": f"sha256:{sha256(data)}"}

    edit_json(release / "release.json", rename)
    edit_json(release / "datapackage.json", describe)
    sign_anew(release)
    told = [line for line in verify(release, half).asserted if "were compared" in line]
    assert [line.split(":")[0] for line in told] == ["data/heavy_evenings.parquet"]


def test_modular_noise_on_an_order_has_to_be_named(release: Path) -> None:
    path = release / "spec.yaml"
    before, _, after = path.read_text("utf-8").rpartition("mechanism: modular")
    path.write_text(f"{before}mechanism: best{after}", "utf-8")
    record = parse(ReleaseRecord, (release / "release.json").read_bytes())
    (release / "registry.yaml").write_bytes(registry(parse_spec(path.read_bytes()), record))
    sign_anew(release)
    assert "mechanism: found 'modular', expected one that cannot wrap round an order" in refused(
        release
    )


def test_the_helpers_of_this_file_change_nothing_by_themselves(release: Path) -> None:
    edit_law(release, lambda law: None)
    edit_data(release, lambda table: table)
    assert verify(release, auditor_bundle(release), UNSIGNED).complete


def test_the_verifier_loads_no_engine_no_solver_and_no_orchestrator(release: Path) -> None:
    code = (
        "import sys, pathlib; from release.verification.verifier import verify; "
        f"verify(pathlib.Path({str(release)!r}), pathlib.Path({str(auditor_bundle(release))!r})); "
        "print([m for m in ('duckdb', 'pulp', 'highspy', 'prefect', 'matplotlib', 'jinja2') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert done.stdout.strip() == "[]"


def test_every_byte_counts(release: Path) -> None:
    """Every byte of every small file, and every 97th of the larger ones, flipped one at a time."""
    for path in sorted(p for p in release.rglob("*") if p.is_file()):
        data = path.read_bytes()
        for position in range(0, len(data), 1 if len(data) < 700 else 97):
            changed = bytearray(data)
            changed[position] ^= 1 << (position % 8)
            path.write_bytes(bytes(changed))
            assert refused(release)
        path.write_bytes(data[:-1])
        assert refused(release)
        path.write_bytes(data)
    assert verify(release)


def test_a_worst_case_release_ignores_an_auditors_half(tmp_path: Path) -> None:
    spec = Small([], [query("count", sensitivity="global")])
    public = run_release(spec.write(tmp_path), tmp_path).public
    assert verify(public, tmp_path / "auditor" / "small", UNSIGNED).complete


@pytest.mark.parametrize("name", ["raw", "data/raw", "raw/deep"])
def test_no_folder_may_be_added(release: Path, name: str) -> None:
    (release / name).mkdir(parents=True)
    assert "file set" in refused(release)


def test_no_folder_may_be_a_link(release: Path, tmp_path: Path) -> None:
    (release / "raw").symlink_to(tmp_path)
    assert "a link" in refused(release)


@pytest.mark.parametrize("name", ["extra.txt", "data/.hidden", "mechanisms/peak_hour.json"])
def test_no_file_may_be_added(release: Path, name: str) -> None:
    (release / name).write_text("x", "utf-8")
    assert "file set" in refused(release)
    sign_anew(release)
    assert refused(release)


@pytest.mark.parametrize(
    "name", ["report.html", "spec.yaml", "mechanisms/heavy_evenings.json", SUMS]
)
def test_no_file_may_be_missing(release: Path, name: str) -> None:
    (release / name).unlink()
    assert refused(release)
    sign_anew(release)
    assert refused(release) if name != SUMS else verify(release)


def test_links_are_not_followed(release: Path, tmp_path: Path) -> None:
    (release / "spec.yaml").rename(tmp_path / "spec.yaml")
    (release / "spec.yaml").symlink_to(tmp_path / "spec.yaml")
    assert "a link" in refused(release)


@pytest.mark.parametrize(
    ("says", "change"),
    [
        ("schema", lambda r: r.update(rows_read=1416)),
        ("kind", lambda r: r.update(kind="TEST")),
        ("seeded", lambda r: r["sampling"].update(seeded=True)),
        ("guarantee.epsilon", lambda r: r["guarantee"].update(epsilon="1")),
        ("guarantee.kind", lambda r: r["guarantee"].update(kind="worst-case")),
        ("guarantee.definition", lambda r: r["guarantee"].update(definition="pure")),
        ("composition.delta", lambda r: r["composition"].update(delta="0")),
        ("peak_hour.epsilon", lambda r: r["queries"][0].update(epsilon="0.5")),
        ("charge.epsilon", lambda r: r["queries"][0]["charge"].update(epsilon="0.5")),
        ("parallel", lambda r: r["queries"][0].update(parallel=False)),
        ("queries", lambda r: r["queries"].reverse()),
        ("file set", lambda r: r["queries"].pop()),
        ("curator", lambda r: r.update(curator="Somebody Else")),
        ("max_rows_per_unit", lambda r: r["privacy"].update(max_rows_per_unit=1)),
        ("adjacency_text", lambda r: r["privacy"].update(adjacency_text="nothing changes")),
        ("domain", lambda r: r["queries"][0]["domain"].update(cyclic=12)),
        ("rows", lambda r: r["queries"][0].update(cells=11)),
        ("invariants", lambda r: r["invariants"].append("the true count of c00 is 17")),
        ("post_processing", lambda r: r["post_processing"].append("none")),
        ("limits", lambda r: r["limits"].clear()),
        ("withheld", lambda r: r["withheld"].clear()),
        ("enforced_by", lambda r: r["privacy"].update(enforced_by="trust")),
        ("published", lambda r: r.update(published="9999-99-99")),
        ("attestation.dsse", lambda r: r["ledger"].update(sequence=999)),
        ("software", lambda r: r["software"].update(python="household 17")),
        ("scope", lambda r: r["ledger"].update(scope="another")),
    ],
)
def test_a_release_record_that_says_something_else_is_refused(
    release: Path, says: str, change: Callable[[dict[str, Any]], None]
) -> None:
    edit_json(release / "release.json", change)
    sign_anew(release)
    assert says in refused(release)


@pytest.mark.parametrize(
    "data",
    [b"{}", b"[]", b"", b"\xff", b'{"a":NaN}', b'{"kind":"RELEASE","kind":"RELEASE"}', b"[" * 9999],
)
def test_json_that_is_no_record_is_refused(release: Path, data: bytes) -> None:
    (release / "release.json").write_bytes(data)
    sign_anew(release)
    assert "release.json: schema" in refused(release)


def test_json_has_one_form(release: Path) -> None:
    path = release / "release.json"
    path.write_bytes(path.read_bytes() + b"\n")
    sign_anew(release)
    assert "canonical" in refused(release)


def move_weight(law: dict[str, Any]) -> None:
    """One unit of probability from the tail to the mode: ε is broken in the last digit."""
    weights = [int(w) for w in law["weights"]]
    weights[0] += 2**40
    weights[60] -= 2**40 if weights[60] > 2**40 else weights[60]
    weights[1] += 2**62 - sum(weights)
    law["weights"] = [str(w) for w in weights]


@pytest.mark.parametrize(
    ("says", "change"),
    [
        ("δ: found", move_weight),
        ("weights", lambda law: law["weights"].__setitem__(0, "0")),
        ("schema", lambda law: law["weights"].__setitem__(0, "-1")),
        ("schema", lambda law: law["weights"].__setitem__(0, 1)),
        ("weights", lambda law: law["weights"].__setitem__(0, str(2**200))),
        ("weights", lambda law: law["weights"].pop()),
        ("weights", lambda law: law.update(total="3")),
        ("directed", lambda law: law.update(directed=True)),
        ("sensitivity", lambda law: law.update(sensitivity=[[1]])),
        ("sensitivity", lambda law: law.update(sensitivity=[])),
        ("sensitivity", lambda law: law.update(sensitivity=[[0], *law["sensitivity"]])),
        ("group", lambda law: law.update(group=[7, 17])),
        ("epsilon", lambda law: law["guarantee"].update(epsilon="20")),
        ("definition", lambda law: law["guarantee"].update(definition="approximate")),
        ("delta_approximate", lambda law: law["recomputed"].update(delta_approximate="0.5")),
        ("epsilon_everywhere", lambda law: law["recomputed"].update(epsilon_everywhere="1")),
        ("accuracy", lambda law: law["accuracy"].update(p_exact="1")),
        ("objective", lambda law: law["design"].update(objective="0")),
        ("lower_bound", lambda law: law["design"].update(lower_bound="900000")),
        ("design.loss", lambda law: law["design"].update(loss="error_rate")),
        ("query", lambda law: law.update(query="peak_hour")),
    ],
)
def test_a_law_that_is_another_is_refused(
    release: Path, says: str, change: Callable[[dict[str, Any]], None]
) -> None:
    edit_law(release, change)
    assert says in refused(release)


def replaced(name: str, values: list[Any], kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(name)
        facts = table.schema.field(index).metadata
        field = pa.field(name, kind, nullable=None in values, metadata=facts)
        return table.set_column(index, field, pa.array(values, kind))

    return change


@pytest.mark.parametrize(
    ("says", "change"),
    [
        ("order", lambda table: table.take(list(range(11, -1, -1)))),
        ("order", lambda table: table.take([0, 0, *range(2, 12)])),
        ("rows", lambda table: table.slice(0, 11)),
        ("column names", lambda table: table.append_column("rows", pa.array(range(12)))),
        ("a code outside", replaced("answer_code", [119] * 12, pa.int32())),
        ("the label of its code", replaced("answer_code", [7] * 12, pa.int32())),
        ("column types", replaced("answer_code", [7] * 12, pa.int64())),
        ("keys of circuit", replaced("circuit", [f"d{i:02}" for i in range(12)], pa.string())),
        ("missing values", replaced("answer", [None] * 12, pa.int64())),
    ],
)
def test_a_released_table_of_another_shape_is_refused(
    release: Path, says: str, change: Callable[[pa.Table], pa.Table]
) -> None:
    edit_data(release, change)
    assert says in refused(release)


def test_dictionaries_in_a_released_table_are_refused(release: Path) -> None:
    edit_data(release, lambda table: table, use_dictionary=True)
    assert "encoding" in refused(release)


def test_bytes_hidden_in_a_released_table_are_refused(release: Path) -> None:
    """Between the magic number and the pages, where no reader looks."""
    path = release / "data" / "heavy_evenings.parquet"
    data = path.read_bytes()
    table = pq.read_table(path)
    edit_data(release, lambda _: table, compression="gzip")
    assert "bytes" in refused(release)
    path.write_bytes(data)
    edit_data(release, lambda _: table, write_statistics=False)
    assert "bytes" in refused(release)


def test_extra_metadata_in_a_released_table_is_refused(release: Path) -> None:
    edit_data(release, lambda table: table.replace_schema_metadata({"more": "37"}))
    assert "metadata" in refused(release)


def test_a_cap_lowered_after_the_fact_is_refused(release: Path) -> None:
    path = release / "spec.yaml"
    path.write_text(path.read_text("utf-8").replace('epsilon: "4"', 'epsilon: "3"'), "utf-8")
    sign_anew(release)
    assert "the cap is 3" in refused(release)


def test_the_auditors_half_has_to_fit_the_commitments(release: Path) -> None:
    auditor = auditor_bundle(release)
    assert auditor is not None
    law, openings = auditor / "mechanisms" / "peak_hour.json", auditor / "openings.json"
    good, good_openings = law.read_bytes(), openings.read_bytes()
    data = edit_json(law, lambda plain: plain["design"]["notes"].append("x"))
    assert "commitment" in refused(release, auditor)

    def recommit(plain: dict[str, Any]) -> None:
        opening = plain["openings"]["mechanisms/peak_hour.json"]
        opening["commitment"] = commit(bytes.fromhex(opening["key"]), data)

    edit_json(openings, recommit)
    assert "commitment" in refused(release, auditor)
    law.write_bytes(good)
    openings.write_bytes(good_openings)
    edit_json(auditor / "sensitivity" / "peak_hour.json", lambda p: p["sensitivity"].pop())
    assert "sensitivity" in refused(release, auditor)


def test_commitments_are_salted(ami_release: Path, tmp_path: Path) -> None:
    """Two runs over the same table commit to the same law and to different strings."""
    again = run_release(PROJECT / "data" / "ami.yaml", tmp_path).public
    one, two = (json.loads((p / "release.json").read_bytes()) for p in (ami_release, again))
    assert one["queries"][0]["mechanism_file"] != two["queries"][0]["mechanism_file"]
    halves = [auditor_bundle(p) for p in (ami_release, again)]
    laws = [(h / "mechanisms" / "peak_hour.json").read_bytes() for h in halves if h is not None]
    assert laws[0] == laws[1]


def test_a_seeded_run_is_marked_and_refused(tmp_path: Path) -> None:
    published = run_release(PROJECT / "data" / "ami.yaml", tmp_path, test_source=bytes)
    record = json.loads((published.public / "release.json").read_bytes())
    assert record["kind"] == "TEST"
    assert record["sampling"]["seeded"] is True
    assert "kind" in refused(published.public)


def test_a_law_for_fewer_differences_than_the_declaration_allows_is_refused(tmp_path: Path) -> None:
    """A law that is sound for ±1 only, where a unit may have three rows."""
    asked = query("count", sensitivity="global", mechanism="modular")
    spec = Small([], [asked], max_rows_per_unit=3)
    release = run_release(spec.write(tmp_path), tmp_path).public
    declared = read_spec(release / "spec.yaml").spec.queries[0]
    made = design(
        Sensitivity.of(Group((6,)), [(1,)]),
        Guarantee(Definition.PURE, Fraction(1), Fraction(0)),
        named_loss(LossName.ERROR_RATE, Topology.ORDERED, 6),
    )
    data = canonical(mechanism_record(declared, made))
    (release / "mechanisms" / "the_count.json").write_bytes(data)
    edit_json(
        release / "release.json",
        lambda r: r["queries"][0]["mechanism_file"].update(sha256=sha256(data)),
    )
    sign_anew(release)
    assert "all that the declaration allows" in refused(release)


def test_swapping_files_between_releases_is_refused(release: Path, tmp_path: Path) -> None:
    other = run_release(PROJECT / "data" / "ami.yaml", tmp_path / "other").public
    shutil.copy(other / "data" / "peak_hour.parquet", release / "data" / "peak_hour.parquet")
    assert refused(release)
    sign_anew(release)
    assert refused(release)


def test_an_answer_that_hides_only_large_steps_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_least(steps: Any, domain: Any) -> Sensitivity:
        return Sensitivity.on_line(domain.size, steps.tolist())

    # A writer that forgets the least step publishes an answer that no neighbor moves without noise.
    monkeypatch.setattr(seen, "seen_sensitivity", without_least)
    with pytest.raises(ReleaseError, match=r"distances: found \[3], expected 1 among them"):
        run_release(SPECS["far"].write(tmp_path), tmp_path / "out")
