"""The verifier in one file: what it accepts and refuses, and that it shares nothing with us."""

from __future__ import annotations

import ast
import base64
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from dp_release_verify.digests import commit, sha256
from release.budget.witness import cosign_ledger
from release.bundle.statements import SUMS
from release.cli.main import main
from release.errors import VerificationError
from release.pipeline import auditor_bundle, run_release
from release.records.keys.cosignatures import witness_key
from release.records.keys.files import create_key
from release.verification import standalone
from release.verification.verifier import verify
from tests import sample
from tests.conftest import PROJECT
from tests.small import UNSIGNED, Row, Small, joint, part, query
from tests.tabulated import random_release
from tests.verification.test_composed import MICRO, composing, promised, released, sharing, small

FILE = PROJECT / "release" / "verification" / "standalone.py"
ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
WEAK = {"definition": "approximate", "epsilon": "1", "delta": "0.001"}
ON_STATISTIC = {"sensitivity": "global", "noise": "on_statistic"}
COUNT = {"sensitivity": "global"}
QUERIES = [
    query("count", name="line", mechanism="integer", loss="squared", guarantee=WEAK, **COUNT),
    query("count", name="total", mechanism="integer", loss="absolute", **COUNT),
    query("count", name="rows", mechanism="channel", guarantee=WEAK, where="kind < 9", **COUNT),
    query("mode", name="ring", guarantee=WEAK, sensitivity="global", noise="on_answer"),
    query("mode", name="held", guarantee=WEAK),
    query("mode", name="flipped", domain={"cyclic": 6}, **ON_STATISTIC),
    query("mode", name="weighed", mechanism="exponential_mechanism", by=["place"], **ON_STATISTIC),
    query("mode", name="gaps", mechanism="gap_table", domain={"cyclic": 3}, **ON_STATISTIC),
    query("binned", name="summed", statistic="sum", **ON_STATISTIC),
    query("binned", name="meant", statistic="mean", **ON_STATISTIC),
    query("count", name="tops", of="kind", domain={"cyclic": 6}, **COUNT) | {"kind": "top", "k": 2},
    query("count", name="quarters", of="wh", **COUNT)
    | {"kind": "quantiles", "at": ["1/4", "3/4"], "domain": {"ordered": {"min": 0, "max": 8}}},
]

Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with a release of every family."""
    folder = tmp_path_factory.mktemp("standalone")
    run_release(Small(ROWS, QUERIES, max_rows_per_unit=1).write(folder), folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample release with its ledger and its key."""
    folder = tmp_path_factory.mktemp("signed")
    sample.make(folder)
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """The exit status and what was printed."""
    status = standalone.main(list(map(str, arguments)))
    return status, capsys.readouterr().out


def with_auditor(out: Path) -> tuple[object, ...]:
    return (out / "public" / "small", "--auditor", out / "auditor", "--require", "none")


def sum_up(public: Path) -> None:
    """Make the digests of release.json and SHA256SUMS fit the files again."""
    record = json.loads((public / "release.json").read_bytes())
    for entry in record["queries"]:
        path = entry["mechanism_file"].get("path")
        if path is not None:
            entry["mechanism_file"]["sha256"] = sha256((public / path).read_bytes())
    (public / "release.json").write_bytes(rfc8785.dumps(record))
    files = sorted(path for path in public.rglob("*") if path.is_file() and path.name != SUMS)
    sums = [f"{sha256(path.read_bytes())}  {path.relative_to(public)}\n" for path in files]
    (public / SUMS).write_text("".join(sums), "utf-8")


def edit(path: Path, change: Change) -> bytes:
    plain = json.loads(path.read_bytes())
    change(plain)
    path.write_bytes(rfc8785.dumps(plain))
    return path.read_bytes()


def test_it_runs_alone_and_accepts_the_signed_sample(signed: Path, tmp_path: Path) -> None:
    given = ["--auditor", signed / "auditor", "--ledger", signed / "ledger"]
    given += ["--trust", signed / "key.pub"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", *map(str, [FILE, signed / "public" / "small", *given])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "proved: the_binned: the mechanism satisfies its guarantee" in done.stdout
    assert "proved: the ledger is intact, reserved the charge, and kept every cap" in done.stdout
    assert "not read: the tables (Parquet)" in done.stdout


def test_a_release_without_its_spec_is_refused(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = Path(shutil.copytree(built, tmp_path / "out")) / "public" / "small"
    (public / "spec.json").unlink()
    sum_up(public)
    status, text = told(capsys, public, "--require", "none")
    assert status == 1
    assert "refused: SHA256SUMS: file set" in text


def test_every_family_is_accepted(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = told(capsys, *with_auditor(built))
    assert status == 0, text
    for each in QUERIES:
        assert f"proved: {each['name']}: the mechanism satisfies its guarantee" in text
    status, text = told(capsys, built / "public" / "small", "--require", "none")
    assert status == 3
    assert "not read: held: its mechanism is committed" in text


def test_what_is_not_signed_is_read_in_part(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, *with_auditor(built)[:3])[0] == 3


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_rows_and_relations_give_the_same_reach(
    relation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A gap table needs one row of a unit.
    plain = [{**each, "mechanism": "best"} if each["name"] == "gaps" else each for each in QUERIES]
    spec = Small(ROWS, plain[:6] + plain[7:], relation, 5, max_cells_per_unit=2)
    run_release(spec.write(tmp_path), tmp_path / "out")
    status, text = told(capsys, *with_auditor(tmp_path / "out"))
    assert status == 0, text


def test_totals_that_compose_exactly_are_recomputed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / "counts", tmp_path / "shares", tmp_path / "selections"]
    for folder in folders:
        folder.mkdir()
    counts = [promised(f"count_{i}", "0.1") for i in range(20)]
    publics = [composing(counts, MICRO, folders[0], budget=("2", MICRO))]
    shares = [sharing("aimed", target="absolute <= 20", loss="absolute"), sharing("b", share="1")]
    publics.append(released(small(shares), folders[1]))
    publics.append(released(selections(), folders[2]))
    families = {json.loads(each.read_bytes())["mechanism"] for each in publics[2].glob("mech*/*")}
    assert families == {"exponential_mechanism"}
    for public in publics:
        status, text = told(capsys, public, "--require", "none")
        assert status == 0, text

    def undercharge(record: Any) -> None:
        epsilon = record["composition"]["epsilon"]
        less = epsilon[:-1] + str(int(epsilon[-1]) - 1) if epsilon[-1] > "0" else "0"
        record["composition"]["epsilon"] = record["guarantee"]["epsilon"] = less

    edit(publics[0] / "release.json", undercharge)
    sum_up(publics[0])
    status, text = told(capsys, publics[0], "--require", "none")
    assert status == 1
    assert "composition: found δ" in text


def selections() -> Small:
    """So many selections that share a budget that losses within an interval pay."""
    modes = []
    for number in range(40):
        mode = query("mode", name=f"mode_{number}", by=[], domain={"cyclic": 6}, **ON_STATISTIC)
        modes.append({key: mode[key] for key in mode.keys() - {"guarantee"}} | {"share": "1"})
    return small(modes)


def test_a_profile_of_losses_in_an_interval_is_not_that_of_other_mechanisms(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its values are those of the theorem; a record that calls permute-and-flip so is refused."""
    epsilon, step = Fraction(1), Fraction(1, 64)
    values = standalone.pure_values(epsilon, Fraction(0), step, in_range=True)
    whole = standalone.pure_values(epsilon, Fraction(0), step)
    assert len(values) == len(whole) == 65
    for place, (value, plain) in enumerate(zip(values, whole, strict=True)):
        root = 1 - math.exp((place / 64 - 1) / 2)
        assert value / 1e28 == pytest.approx(root**2 / (1 - math.exp(-1)), abs=1e-12)
        assert value < plain or value == plain == 0
    out = Path(shutil.copytree(built, tmp_path / "out"))
    public = out / "public" / "small"

    def rename(record: Any) -> None:
        record["queries"][entry("flipped")]["mechanism"] = "exponential_mechanism"

    edit(public / "release.json", rename)
    edit(public / "mechanisms" / "flipped.json", at("mechanism", "exponential_mechanism"))
    sum_up(public)
    status, text = told(capsys, *with_auditor(out))
    assert status == 1
    assert "mechanisms/flipped.json: profile.values" in text


@pytest.mark.parametrize("seed", [7, 11])
def test_tabulations_are_read(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = run_release(random_release(seed).write(tmp_path), tmp_path / "out").public
    status, text = told(capsys, public, "--require", "none")
    # Of one area or many, the file tells nothing: a unit that moves would touch two.
    unread = "the number of areas, which its charge needs" in text
    assert (status, unread) == ((3, True) if seed == 11 else (0, False)), text


def entry(name: str) -> int:
    return [each["name"] for each in QUERIES].index(name)


def at(path: str, value: Any) -> Change:
    """Set a value; a function changes the one that is there."""

    def change(plain: Any) -> None:
        *places, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for place in places:
            plain = plain[place]
        plain[last] = value(plain[last]) if callable(value) else value

    return change


def more(text: str) -> str:
    return str(int(text) + 1)


def less(text: str) -> str:
    return str(int(text) - 1)


def moved(field: str, first: int, second: int) -> Change:
    """Move some weight from one element to another: the sum stays."""

    def change(plain: Any) -> None:
        weights = plain
        for place in field.split("."):
            weights = weights[int(place) if place.isdigit() else place]
        some = int(weights[first]) // 3
        weights[first] = str(int(weights[first]) - some)
        weights[second] = str(int(weights[second]) + some)

    return change


def charge(name: str, epsilon: str) -> Change:
    return at(f"queries.{entry(name)}.charge.epsilon", epsilon)


FORGED: list[tuple[str, Change, str]] = [
    ("release.json", charge("total", "1"), "total.charge"),
    ("release.json", charge("flipped", "0.5"), "flipped.charge"),
    ("release.json", at("composition.epsilon", "1"), "guarantee.epsilon"),
    ("release.json", at("composition.delta", "0"), "guarantee.delta"),
    ("release.json", at("composition.rule", "pld-v1"), "composition.rule"),
    ("release.json", at("composition.step", "0.1"), "composition.step"),
    ("release.json", at("guarantee.definition", "pure"), "guarantee.definition"),
    ("release.json", at("guarantee.kind", "worst-case"), "guarantee.kind"),
    ("release.json", at(f"queries.{entry('rows')}.epsilon", "0.5"), "rows.epsilon"),
    ("release.json", at(f"queries.{entry('rows')}.parallel", True), "rows.parallel"),
    ("release.json", at(f"queries.{entry('rows')}.cells", 1), "rows"),
    ("release.json", at(f"queries.{entry('ring')}.domain", {"cyclic": 5}), "ring.domain"),
    ("release.json", at("privacy.neighbors", "add_remove"), "privacy.neighbors"),
    ("release.json", at("privacy.max_rows_per_unit", True), "privacy.max_rows_per_unit"),
    ("release.json", at("sampling.seeded", True), "sampling"),
    ("release.json", at("published", "2024-02-30"), "published"),
    ("release.json", lambda plain: plain.update(more="field"), "fields"),
    ("release.json", at("privacy.adjacency_text", "all rows are hidden"), "privacy.adjacency_text"),
    ("release.json", at("privacy.enforced_by", "nobody"), "privacy.enforced_by"),
    ("release.json", lambda plain: plain["limits"].pop(), "limits"),
    ("release.json", lambda plain: plain["withheld"].pop(), "withheld"),
    ("release.json", at("invariants", ["all"]), "invariants"),
    ("release.json", at("post_processing", ["none"]), "post_processing"),
    ("release.json", lambda plain: plain.pop("expressions"), "expressions"),
    ("release.json", at("expressions.0.place", "queries.line.where"), "places of expressions"),
    ("release.json", at("expressions.0.tree.call", "median"), "call"),
    ("release.json", at("expressions.0.tree.of.0.column", "nobody"), "column"),
    ("release.json", at("expressions.0.tree.of.1", {"string": "9"}), "arguments of <"),
    ("release.json", at("expressions.0.tree", {"integer": "1"}), "queries.rows.where"),
    ("spec.json", at("privacy.neighbors", "add_remove"), "privacy.neighbors"),
    ("spec.json", at("privacy.neighbors", "nobody"), "neighbors"),
    ("spec.json", at("budget.epsilon", "3"), "charges"),
    ("spec.json", at("privacy.max_cells_per_unit", 1), "accepted"),
    ("spec.json", at(f"queries.{entry('line')}.loss", "absolute"), "design.loss"),
    ("mechanisms/total.json", at("distances", [[2, 2]]), "distances"),
    ("mechanisms/total.json", at("noise.left.ratio", lambda ratio: ratio[:-5]), ""),
    ("mechanisms/total.json", at("noise.right", None), ""),
    ("mechanisms/total.json", at("noise.low", -3), ""),
    ("mechanisms/total.json", at("low_end", [[1, -1]]), "low_end"),
    ("mechanisms/total.json", at("design.lower_bound", "0.9"), "lower_bound"),
    ("mechanisms/total.json", at("design.bounded_loss", "0.9"), "bounded_loss"),
    ("mechanisms/line.json", at("recomputed.delta_approximate", "0"), "delta_approximate"),
    ("mechanisms/line.json", at("profile.values.3", more), "profile.values"),
    ("mechanisms/line.json", at("profile.patterns", [[1]]), "profile.patterns"),
    ("mechanisms/line.json", at("profile.step", "0.5"), "profile.step"),
    ("mechanisms/rows.json", moved("rows.0", 1, 0), ""),
    ("mechanisms/rows.json", lambda plain: plain["pairs"].pop(), "pairs"),
    ("mechanisms/rows.json", at("guarantee.epsilon", "2"), "guarantee"),
    ("mechanisms/ring.json", moved("weights", 1, 0), "guarantee"),
    ("mechanisms/ring.json", moved("weights", 0, 1), ""),
    ("mechanisms/ring.json", at("weights.0", more), "weights"),
    ("mechanisms/ring.json", lambda plain: plain["sensitivity"].remove([2]), "sensitivity"),
    ("mechanisms/ring.json", at("group", [2, 2]), "group"),
    ("mechanisms/flipped.json", at("ratio", lambda ratio: ratio[:-1]), "ratio"),
    ("mechanisms/flipped.json", at("ratio", more), "ratio"),
    ("mechanisms/flipped.json", at("spread", 1), "spread"),
    ("mechanisms/flipped.json", at("mechanism", "two_categories"), "mechanism"),
    ("mechanisms/weighed.json", at("ratio", less), "ratio"),
    ("mechanisms/weighed.json", at("ratio", more), "ratio"),
    ("mechanisms/weighed.json", at("spread", 1), "spread"),
    ("mechanisms/weighed.json", at("candidates", 5), "candidates"),
    ("mechanisms/weighed.json", at("profile.values.0", less), "profile.values"),
    ("mechanisms/weighed.json", at("profile.values.40", less), "profile.values"),
    ("mechanisms/weighed.json", at("mechanism", "permute_and_flip"), "mechanism"),
    ("mechanisms/summed.json", at("spread", 1), "spread"),
    ("mechanisms/summed.json", at("noise.left.ratio", "1"), ""),
    ("mechanisms/meant.json", at("noise.left.ratio", "1"), ""),
    ("mechanisms/meant.json", at("sums", 1), "sums"),
    ("mechanisms/tops.json", at("members", 1), "members"),
    ("mechanisms/tops.json", at("replaced", False), "replaced"),
    ("mechanisms/quarters.json", at("sublevels", 1), "sublevels"),
    ("mechanisms/quarters.json", at("shares", ["1/4", "1/2"]), "shares"),
]


@pytest.mark.parametrize("place", range(len(FORGED)))
def test_a_forgery_whose_digests_fit_is_refused(
    place: int, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, change, says = FORGED[place]
    out = Path(shutil.copytree(built, tmp_path / "out"))
    public = out / "public" / "small"
    before = (public / file).read_bytes()
    assert edit(public / file, change) != before
    sum_up(public)
    status, text = told(capsys, *with_auditor(out))
    if says == "accepted":
        # With one row of a unit, one cell was all that it could touch.
        assert status == 0, text
    else:
        assert status == 1, text
        assert says in text.splitlines()[0]


def test_a_weight_of_a_gap_table_is_within_the_guarantee(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(shutil.copytree(built, tmp_path / "out"))
    (path,) = (out / "public" / "small" / "mechanisms").glob("gaps.json")
    plain = json.loads(path.read_bytes())
    assert plain["mechanism"] == "gap_table"
    first, second, third = map(int, plain["weights"][-1])
    assert second == third < first
    edit(
        path,
        at(
            f"weights.{len(plain['weights']) - 1}",
            [str(first - 16 * second), *[str(9 * second)] * 2],
        ),
    )
    sum_up(path.parent.parent)
    assert "weights: found" in told(capsys, *with_auditor(out))[1]


def test_a_committed_mechanism_is_the_committed_one(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(shutil.copytree(built, tmp_path / "out"))
    auditor = auditor_bundle(out / "public" / "small")
    assert auditor is not None
    data = edit(auditor / "mechanisms" / "held.json", moved("weights", 2, 0))
    assert "mechanisms/held.json: commitment" in told(capsys, *with_auditor(out))[1]
    opening = json.loads((auditor / "openings.json").read_bytes())["openings"]
    stated = commit(bytes.fromhex(opening["mechanisms/held.json"]["key"]), data)
    edit(
        auditor / "openings.json",
        lambda p: p["openings"]["mechanisms/held.json"].update(commitment=stated),
    )
    public = out / "public" / "small"
    edit(public / "release.json", at(f"queries.{entry('held')}.mechanism_file.commitment", stated))
    sum_up(public)
    assert "mechanisms/held.json: guarantee: found δ" in told(capsys, *with_auditor(out))[1]


LEDGER = ("00000000.json", "00000001.json", "00000002.json", "checkpoint")


@pytest.mark.parametrize("file", LEDGER)
def test_a_changed_ledger_is_refused(
    file: str, signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(signed / "ledger", tmp_path / "ledger"))
    text = (folder / file).read_text("utf-8")
    (folder / file).write_text(text.replace("example.org", "example.com").replace("small", "smell"))
    assert (folder / file).read_text("utf-8") != text
    assert told(capsys, signed / "public" / "small", "--ledger", folder)[0] == 1


def test_a_file_that_is_not_signed_for_is_refused(
    signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = Path(shutil.copytree(signed / "public" / "small", tmp_path / "small"))
    (public / "report.html").write_text("<p>others</p>", "utf-8")
    assert "report.html: SHA-256" in told(capsys, public)[1]
    sum_up(public)
    assert "attestation.dsse.json: payload" in told(capsys, public)[1]


def test_a_key_of_another_is_refused(
    signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample.make(tmp_path)
    other = ("--trust", tmp_path / "key.pub")
    assert "signature" in told(capsys, signed / "public" / "small", *other)[1]
    given = ("--ledger", signed / "ledger", *other)
    assert "trust" in told(capsys, signed / "public" / "small", *given)[1]


def test_a_trusted_witness_makes_a_release_witnessed(
    signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Path(shutil.copytree(signed / "ledger", tmp_path / "ledger"))
    witness = create_key(tmp_path / "witness.key")
    cosign_ledger(ledger, witness, "witness.example/w", tmp_path / "seen")
    given: list[object] = [signed / "public" / "small", "--auditor", signed / "auditor"]
    given += ["--ledger", ledger, "--trust", signed / "key.pub", "--require", "witnessed"]
    assert told(capsys, *given)[0] == 3
    given += ["--witness", witness_key(witness, "witness.example/w")]
    status, text = told(capsys, *given)
    assert status == 0, text
    assert "proved: a trusted witness signed that the ledger only grew" in text
    checkpoint = ledger / "checkpoint"
    lines = checkpoint.read_text("utf-8").splitlines(keepends=True)
    name, data = lines[-1].rsplit(" ", 1)
    later = base64.b64decode(data)
    later = later[:11] + bytes([later[11] ^ 1]) + later[12:]  # the time is signed for
    lines[-1] = f"{name} {base64.b64encode(later).decode()}\n"
    checkpoint.write_text("".join(lines), "utf-8")
    assert "checkpoint: signature" in told(capsys, *given)[1]


def test_signatures_are_those_of_rfc_8032() -> None:
    # Section 7.1 of the RFC, test 2.
    key = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert standalone.is_signed(key, b"\x72", signature)
    assert not standalone.is_signed(key, b"\x73", signature)
    order = (2**252 + 27742317777372353535851937790883648493).to_bytes(32, "little")
    added = int.from_bytes(signature[32:], "little") + int.from_bytes(order, "little")
    assert not standalone.is_signed(key, b"\x72", signature[:32] + added.to_bytes(32, "little"))


def test_the_published_json_is_that_of_the_yaml(built: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(built, tmp_path / "out"))
    public = out / "public" / "small"
    verify(public, None, UNSIGNED)
    edit(public / "spec.json", at("keys.day.range", [1, 3]))
    sum_up(public)
    with pytest.raises(VerificationError, match=r"spec\.json: bytes"):
        verify(public, None, UNSIGNED)


def test_it_is_written_out_byte_for_byte(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["verify", "--standalone", str(tmp_path / "v.py")])
    assert (tmp_path / "v.py").read_bytes() == FILE.read_bytes()


def usage(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a wrong call is told, on standard error."""
    with pytest.raises(SystemExit) as ended:
        standalone.main(list(map(str, arguments)))
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_wrong_call_has_a_status_of_its_own_and_shows_no_key(
    signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (public,) = (signed / "public").iterdir()
    create_key(tmp_path / "key")
    secret = (tmp_path / "key").read_text("utf-8").splitlines()[1]
    told = usage(capsys, public, "--trust", tmp_path / "key")
    assert "name+hint+base64" in told
    assert secret not in told
    missing = tmp_path / "none"
    assert "no such folder" in usage(capsys, missing)
    assert "no such folder" in usage(capsys, public, "--auditor", missing)
    assert "no such folder" in usage(capsys, public, "--ledger", missing)


def test_no_value_of_a_file_looks_like_a_line_of_the_verdict(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(built, tmp_path / "out")
    public = tmp_path / "out" / "public" / "small"
    edit(public / "release.json", lambda plain: plain.update(published="x\nproved: all of it\x1b"))
    sum_up(public)
    status, text = told(capsys, *with_auditor(tmp_path / "out"))
    assert status == 1
    assert text.count("\n") == 1
    assert "x\\nproved: all of it\\x1b" in text


def test_a_name_that_no_terminal_shows_is_escaped(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(built, tmp_path / "out")
    (tmp_path / "out" / "public" / "small" / os.fsdecode(b"bad\xff")).write_text("")
    status, text = told(capsys, *with_auditor(tmp_path / "out"))
    assert status == 1
    assert "bad\\udcff" in text


def test_a_part_that_is_no_query_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = joint("one", "two", name="both", sensitivity="global")
    spec = Small(ROWS, [part("one", "count"), part("two", "mode"), both])
    run_release(spec.write(tmp_path), tmp_path / "out")
    public = tmp_path / "out" / "public" / "small"
    edit(
        public / "spec.json", lambda plain: plain["queries"][2].update(of=["one", "two", "no_such"])
    )
    sum_up(public)
    status, text = told(capsys, public, "--require", "none")
    assert status == 1
    assert "of: found no_such" in text


def test_every_form_is_one_of_the_table_or_a_word_of_the_page() -> None:
    """A misspelt name of a form would be a word, which stands for itself alone."""
    stated = [form for fields in standalone.FIELDS.values() for form in fields.values()]
    stated += [form for form in standalone.ALIASES.values() if not form.startswith("/")]
    words = {word for form in stated for word in re.split(r"[|>*]+", form) if word}
    words -= standalone.TYPES.keys() | standalone.FIELDS.keys() | standalone.ALIASES.keys()
    page = (PROJECT / "docs" / "design" / "format.md").read_text("utf-8")
    unknown = {word for word in words if f"`{word}`" not in page and ".." not in word}
    assert len(words) > 40
    assert not unknown


@pytest.mark.parametrize(
    ("form", "right", "wrong"),
    [
        ("Period", {"every": "day"}, {"every": "week"}),
        ("Figures", {}, {"epsilon": "1e5"}),
        ("Figures", {}, {"more": "1"}),
        ("Committed|File", {"path": "a", "sha256": "0" * 64}, {"path": "a"}),
        ("NAME>int*", {"a": [1]}, {"a": [True]}),
        ("1..50", 50, 51),
        ("str*|null", None, [None]),
    ],
)
def test_forms_are_read_as_the_table_says(form: str, right: Any, wrong: Any) -> None:
    if form in ("Period", "Figures"):
        figures = {"epsilon": "1", "delta": "1/3"}
        right, wrong = figures | right, figures | wrong
    standalone.check_form("a.json", right, form)
    with pytest.raises(standalone.RefusedError, match=r"^a\.json: "):
        standalone.check_form("a.json", wrong, form)


def test_it_imports_the_standard_library_only() -> None:
    tree = ast.parse(FILE.read_text("utf-8"))
    names = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            names |= {alias.name.split(".")[0] for alias in each.names}
        elif isinstance(each, ast.ImportFrom):
            names.add(str(each.module).split(".")[0])
    assert names <= sys.stdlib_module_names


def test_it_shares_no_run_of_eight_lines_with_the_package() -> None:
    def runs(path: Path) -> set[tuple[str, ...]]:
        lines = [" ".join(line.split()) for line in path.read_text("utf-8").splitlines()]
        lines = [line for line in lines if line]
        return {tuple(lines[i : i + 8]) for i in range(len(lines) - 7)}

    own = runs(FILE)
    for path in (PROJECT / "release").rglob("*.py"):
        assert path == FILE or not own & runs(path), path


def test_nothing_of_the_package_imports_it() -> None:
    for path in (PROJECT / "release").rglob("*.py"):
        assert "import standalone" not in path.read_text("utf-8")
