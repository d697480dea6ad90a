"""For every check a forgery that it alone refuses, which passes when the check is off."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_release_verify import canonical
from dp_release_verify.checks import CHECKS, Check, Work, verify
from dp_release_verify.errors import Refused
from dp_release_verify.provenance import Trust
from dp_release_verify.signatures import SUMS_WORD, WITNESS
from dp_release_verify.verdict import Finding, Verdict
from release.bundle.tables.parquet import parquet_bytes
from tests.verifier import made, signing
from tests.verifier.made import seal
from tests.verifier.signing import Book, private_key, public_key

Plain = dict[str, Any]

KEY, OTHER, SEEN = private_key(1), private_key(2), private_key(3)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed release of several kinds with its ledger, and one of tables that add up."""
    folder = tmp_path_factory.mktemp("sound")
    for name in ("several", "tables"):
        (folder / name).mkdir()
    release, auditor = made.small(folder / "several")
    assert auditor is not None
    made.tabulated(folder / "tables")
    book = Book(folder / "several" / "ledger", KEY)
    book.begin()
    signing.publish(release, book, run="0" * 32)
    audit = {
        "schema": "dp-release/audit/v1",
        "release_id": "small",
        "began": "2026-11-28T01:00:00Z",
        "prepared": "2026-11-28T01:00:05Z",
        "actor": "ada",
        "inputs": [],
        "entry": 1,
    }
    write_audit(auditor, audit | {"run": "0" * 32})
    return folder


class Place:
    """A copy of a release that a test may change, with what an auditor gives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.release = folder / "several" / "release"
        self.auditor = folder / "several" / "release-auditor"
        self.tables = folder / "tables" / "release"
        self.ledger = folder / "several" / "ledger"
        self.trust = Trust((public_key(KEY),), (), None)
        self.older: str | None = None
        self.is_of_tables = False

    def record(self, change: Callable[[Plain], object]) -> None:
        """Change ``release.json``; the signatures are then of another folder, and go."""
        made.edit(self.unsigned(), "release.json", change)

    def unsigned(self) -> Path:
        """The release without what signs it."""
        self.trust = Trust()
        release = self.tables if self.is_of_tables else self.release
        for name in ("SHA256SUMS.sig", "ledger.proof"):
            (release / name).unlink(missing_ok=True)
        made.edit(release, "release.json", lambda p: p["made"].pop("ledger", None))
        (self.auditor / "audit.json").unlink(missing_ok=True)
        return release

    def book(self, **cap: Any) -> Book:
        """A ledger made anew for the release, with an entry for its charge."""
        shutil.rmtree(self.ledger)
        book = Book(self.ledger, KEY)
        book.begin(**cap)
        self.trust = replace(self.trust, ledger=self.ledger)
        return book

    def verify(self, without: str | None = None) -> Verdict:
        """The verdict, perhaps without a check."""
        checks = tuple(off(check) if check.name == without else check for check in CHECKS)
        release = self.tables if self.is_of_tables else self.release
        auditor = None if self.is_of_tables else self.auditor
        need = "signed" if self.trust.keys else "none"
        return verify(release, auditor, self.trust, need, self.older, checks)  # type: ignore[arg-type]


def off(check: Check) -> Check:
    """A check that reads what it reads, and refuses nothing."""

    def does(work: Work, own: Check) -> Iterator[Finding]:
        try:
            yield from check.does(work, own)
        except Refused:
            return

    return Check(check.name, check.level, does)


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Place:
    return Place(Path(shutil.copytree(sound, tmp_path / "copy")))


def write_audit(folder: Path, plain: Plain) -> None:
    message = canonical.dumps({**plain, "signature": ""})
    signature = signing.encoded(KEY.sign(message))
    (folder / "audit.json").write_bytes(canonical.dumps({**plain, "signature": signature}))


def query_of(plain: Plain, name: str) -> Plain:
    return next(each for each in plain["asked"]["queries"] if each["name"] == name)


def made_of(plain: Plain, name: str) -> Plain:
    return next(each for each in plain["made"]["queries"] if each["name"] == name)


# ---- Forgeries -----------------------------------------------------------------------------------


def another_byte(place: Place) -> None:
    with (place.release / "report.html").open("ab") as file:
        file.write(b"<p>more</p>")


def another_file(place: Place) -> None:
    place.unsigned()
    shutil.copyfile(place.release / "data/flipped.parquet", place.release / "data/more.parquet")
    seal(place.release)


def accepted_of_a_hidden_one(place: Place) -> None:
    entry = {"of": "committed", "figure": "p95", "at_most": "3"}
    place.record(lambda p: p["asked"].update(acceptance=[entry]))


def keys_out_of_order(place: Place) -> None:
    release = place.unsigned()
    for path in (release / "data").iterdir():
        table = pq.read_table(path).sort_by([("place", "descending")])
        entries = pq.ParquetFile(path).metadata.metadata
        schema = pq.read_schema(path).remove_metadata()
        named = {key.decode(): value.decode() for key, value in entries.items()}
        path.write_bytes(parquet_bytes(table.cast(schema), named))
    made.edit(release, "keys.json", lambda p: p["keys"]["place"].reverse())


def a_condition_on_another_row(place: Place) -> None:
    tree = {"call": ">", "of": [{"column": "the_rows_before"}, {"integer": "4"}]}
    place.record(lambda p: query_of(p, "the_count")["where"].update(tree=tree))


def more_than_was_asked(place: Place) -> None:
    place.record(lambda p: query_of(p, "the_count")["guarantee"].update(epsilon="1/2"))


def another_label(place: Place) -> None:
    path = place.unsigned() / "data/flipped.parquet"
    table = pq.read_table(path)
    entries = pq.ParquetFile(path).metadata.metadata
    labels = [(each + 1) % 4 for each in table.column("answer").to_pylist()]
    schema = table.schema.remove_metadata()
    table = table.set_column(1, schema.field("answer"), pa.array(labels, pa.int64()))
    named = {key.decode(): value.decode() for key, value in entries.items()}
    path.write_bytes(parquet_bytes(table.cast(schema), named))
    seal(place.release)


def a_law_that_no_bits_draw(place: Place) -> None:
    name = "mechanisms/by_channel.json"

    def more(plain: Plain) -> None:
        for row in plain["rows"]:
            row[:] = [str(3 * int(weight)) for weight in row]

    made.edit(place.unsigned(), name, more)


def noise_half_as_wide(place: Place) -> None:
    def narrow(plain: Plain) -> None:
        plain["ratio"] = str(int(plain["ratio"]) ** 2 // 2**64)

    made.edit(place.unsigned(), "mechanisms/flipped.json", narrow)


def another_law_for_the_auditor(place: Place) -> None:
    place.unsigned()
    path = place.auditor / "committed.json"
    made.edit(place.auditor, "committed.json", lambda p: p["law"]["weights"].reverse())
    (place.auditor / "SHA256SUMS").unlink()
    assert path.is_file()


def a_bound_that_is_too_high(place: Place) -> None:
    change = lambda p: p["bound"].update(at_least="99")  # noqa: E731 - a change in one word
    made.edit(place.unsigned(), "mechanisms/the_count.json", change)


def half_a_charge(place: Place) -> None:
    def less(plain: Plain) -> None:
        made_of(plain, "the_count")["charge"]["epsilon"] = "1/2"
        total = plain["made"]["total"]
        total["epsilon"] = canonical.exact(Fraction(total["epsilon"]) - Fraction(1, 2))

    place.record(less)


def a_total_below_the_sum(place: Place) -> None:
    place.record(lambda p: p["made"]["total"].update(epsilon="1"))


def a_budget_below_the_total(place: Place) -> None:
    place.record(lambda p: p["asked"]["budget"].update(epsilon="1"))


def a_measured_table_that_is_no_margin(place: Place) -> None:
    place.is_of_tables = True
    place.record(lambda p: p["asked"]["tabulations"][0]["publish"].update(tract=[["race"]]))


def with_column(path: Path, name: str, change: Callable[[list[Any]], list[Any]]) -> None:
    """Change a column of a table."""
    table = pq.read_table(path)
    entries = pq.ParquetFile(path).metadata.metadata
    schema = table.schema.remove_metadata()
    values = change(table.column(name).to_pylist())
    at = table.column_names.index(name)
    table = table.set_column(at, schema.field(name), pa.array(values, schema.field(name).type))
    named = {key.decode(): value.decode() for key, value in entries.items()}
    path.write_bytes(parquet_bytes(table.cast(schema), named))


def other_estimates(place: Place) -> None:
    """One estimate and all that it is a part of are a little larger: they still add up."""
    place.is_of_tables = True
    release = place.unsigned()
    for path in (release / "data").glob("pl_*.parquet"):
        if "answer" not in pq.read_schema(path).names:
            continue
        rows = pq.read_table(path).to_pylist()
        own = {"tract": "t0", "race": "b", "size": "1", "few": "one", "state": "s"}
        hits = []
        for row in rows:
            hits.append(all(row[name] in (own[name], None) for name in own if name in row))
        moved = lambda values, hits=hits: [  # noqa: E731 - of this file
            round(v + 0.001 * hit, 6) for v, hit in zip(values, hits, strict=True)
        ]
        with_column(path, "answer", moved)
    seal(release)


def a_whole_number_below_zero(place: Place) -> None:
    place.is_of_tables = True
    release = place.unsigned()
    path = next(
        path
        for path in (release / "data").iterdir()
        if "rounded" in pq.read_schema(path).names and "tract" not in pq.read_schema(path).names
    )
    with_column(path, "rounded", lambda values: [-1, *values[1:]])
    seal(release)


def a_cap_that_is_passed(place: Place) -> None:
    book = place.book(epsilon="1/10")
    signing.publish(place.release, book)
    new_audit(place)


def new_audit(place: Place) -> None:
    """The record of the auditor goes: it is of another ledger."""
    (place.auditor / "audit.json").unlink()


def a_commit_of_other_files(place: Place) -> None:
    book = place.book()
    signing.publish(place.release, book)
    change = lambda p: p["asked"]["release"].update(title="Another")  # noqa: E731 - a change
    made.edit(place.release, "release.json", change)
    sums = (place.release / "SHA256SUMS").read_bytes()
    block = signing.line(KEY, SUMS_WORD + sums)
    (place.release / "SHA256SUMS.sig").write_text(block, "utf-8")
    new_audit(place)


def a_key_of_somebody_else(place: Place) -> None:
    place.trust = Trust((public_key(OTHER),), (), place.ledger)


def a_reserve_of_half(place: Place) -> None:
    book = place.book()
    signing.publish(place.release, book, epsilon="1")
    new_audit(place)


def a_ledger_that_was_rewritten(place: Place) -> None:
    other = Book(place.folder / "other", KEY)
    other.begin(epsilon="7")
    place.older = other.checkpoint()
    place.trust = replace(place.trust, ledger=place.ledger)


def a_release_that_was_withdrawn(place: Place) -> None:
    book = place.book()
    signing.publish(place.release, book)
    book.add("withdraw", release_id="small")
    book.sign()
    new_audit(place)


def a_record_of_another_release(place: Place) -> None:
    plain = canonical.loads("audit.json", (place.auditor / "audit.json").read_bytes())
    write_audit(place.auditor, {**plain, "release_id": "another"})


FORGERIES: dict[str, Callable[[Place], None]] = {
    "files.sums": another_byte,
    "files.forms": another_file,
    "asked.rules": accepted_of_a_hidden_one,
    "asked.keys": keys_out_of_order,
    "asked.one_row": a_condition_on_another_row,
    "made.claims": more_than_was_asked,
    "tables.form": another_label,
    "mechanism.law": a_law_that_no_bits_draw,
    "mechanism.guarantee": noise_half_as_wide,
    "mechanism.opened": another_law_for_the_auditor,
    "mechanism.bound": a_bound_that_is_too_high,
    "charges.query": half_a_charge,
    "charges.total": a_total_below_the_sum,
    "charges.budget": a_budget_below_the_total,
    "tabulation.measured": a_measured_table_that_is_no_margin,
    "tabulation.least": other_estimates,
    "tabulation.whole": a_whole_number_below_zero,
    "ledger.replay": a_cap_that_is_passed,
    "ledger.commit": a_commit_of_other_files,
    "ledger.key": a_key_of_somebody_else,
    "ledger.paid": a_reserve_of_half,
    "ledger.older": a_ledger_that_was_rewritten,
    "ledger.newest": a_release_that_was_withdrawn,
    "auditor.audit": a_record_of_another_release,
}

FIND_ALONE = {"ledger.witness"}
"""These refuse nothing: what they do not find is missing."""


def test_there_is_a_forgery_for_every_check() -> None:
    assert FORGERIES.keys() | FIND_ALONE == {check.name for check in CHECKS}


def test_the_sound_releases_verify(place: Place) -> None:
    found = place.verify()
    assert (found.status, found.refusal) == (0, None)
    place.trust = replace(place.trust, ledger=place.ledger)
    assert place.verify().status == 0
    place.is_of_tables = True
    place.trust = Trust()
    assert place.verify().status == 0


@pytest.mark.parametrize("name", FORGERIES)
def test_each_check_alone_refuses_a_forgery(name: str, place: Place) -> None:
    FORGERIES[name](place)
    found = place.verify()
    assert found.status == 1
    assert found.refusal is not None
    assert found.refusal.check == name, found.refusal.sentence
    passed = place.verify(without=name)
    assert passed.refusal is None, passed.refusal
    assert passed.status in (0, 3)


def test_a_witness_that_did_not_sign_is_missing(place: Place) -> None:
    book = place.book()
    book.witnesses["witness.example"] = SEEN
    signing.publish(place.release, book)
    new_audit(place)
    for key, status in ((SEEN, 0), (OTHER, 3)):
        witness = public_key(key, "witness.example", WITNESS)
        trust = replace(place.trust, witnesses=(witness,))
        found = verify(place.release, place.auditor, trust, "witnessed")
        assert found.status == status
