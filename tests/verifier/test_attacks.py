"""What an attacker once got through, or made the verifier fail or run for minutes with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dp_release_verify import canonical
from dp_release_verify.checks import verify
from dp_release_verify.digests import commit
from dp_release_verify.errors import Refused
from dp_release_verify.ledger import read_ledger
from dp_release_verify.provenance import Trust
from dp_release_verify.signatures import SUMS_WORD, WITNESS
from tests.verifier import made, signing
from tests.verifier.made import seal
from tests.verifier.signing import Book, private_key, public_key
from tests.verifier.test_each_check import query_of, with_column

Plain = dict[str, Any]

KEY, STRANGER = private_key(1), private_key(2)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    for name in ("several", "tables"):
        (folder / name).mkdir()
    made.small(folder / "several")
    made.tabulated(folder / "tables")
    return folder


@pytest.fixture
def several(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound / "several" / "release-auditor", tmp_path / "auditor")
    return Path(shutil.copytree(sound / "several" / "release", tmp_path / "several"))


@pytest.fixture
def tables(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound / "tables" / "release", tmp_path / "tables"))


def refused(folder: Path, check: str) -> str:
    """Why the release is refused by a check."""
    auditor = folder.parent / "auditor"
    found = made.verdict_of(folder, auditor if auditor.is_dir() else None)
    assert found.refusal is not None, found.lines()
    assert (found.status, found.refusal.check) == (1, check), found.refusal
    return found.refusal.sentence


def test_noise_on_a_sum_is_pure_or_refused(several: Path) -> None:
    """Nearly all of the mass at 0, with a weak approximate claim, composed as if it were pure."""
    weights = [1, 2**40 - 2, 1]
    noise = {"low": -1, "lengths": [1, 1, 1], "weights": [str(each) for each in weights]}
    made.edit(several, "mechanisms/summed.json", lambda p: p.update(noise=noise))
    weak = {"definition": "approximate", "epsilon": "1", "delta": "0.9999"}

    def claim(plain: Plain) -> None:
        query_of(plain, "summed")["guarantee"] = weak
        for each in plain["made"]["queries"]:
            if each["name"] == "summed":
                each.update(weak, charge={"epsilon": "1", "delta": "0.9999"})
        plain["asked"]["budget"] |= {"delta": "0.99999"}
        plain["made"]["total"] |= {"definition": "approximate", "delta": "0.99999"}

    made.edit(several, "release.json", claim)
    refused(several, "mechanism.guarantee")


def test_two_tables_of_one_name_are_refused(tables: Path) -> None:
    def twice(plain: Plain) -> None:
        for key in (plain["asked"]["tabulations"], plain["made"]["tabulations"]):
            key.append({**key[0], "name": "zz"})

    made.edit(tables, "release.json", twice)
    refused(tables, "files.forms")


def test_tables_that_no_measured_one_gives_are_refused(tables: Path) -> None:
    """The published counts of a margin that was never measured could be the confidential ones."""

    def coarser(plain: Plain) -> None:
        (tabulation,) = plain["made"]["tabulations"]
        for table in tabulation["measured"]:
            table["margin"] = ["race"]
            table["cells"] = 3 * 3

    made.edit(tables, "release.json", coarser)
    (path,) = (tables / "data").glob("pl_tract_race_size.parquet")
    found = made.verdict_of(tables)
    assert found.status == 1
    assert path.is_file()


QUESTIONS: dict[str, Callable[[Plain], object]] = {
    "a clamp beside values": lambda p: query_of(p, "by_channel").update(
        kind="sum", of="wh", values=[0, 999, 1000], clamp=[0, 1]
    ),
    "a count on a grid": lambda p: query_of(p, "by_channel").update(
        domain={"grid": {"low": 0, "high": 5, "step": 1, "scale": "0.001"}}
    ),
    "a sum of categories": lambda p: query_of(p, "summed").update(
        domain={"nominal": list("abcdef")}
    ),
    "a weight that is counted": lambda p: query_of(p, "flipped").update(weight="wh", clamp=[0, 1]),
    "quantiles that do not ascend": lambda p: query_of(p, "quarters").update(at=["3/4", "1/4"]),
    "a column that tells of other rows": lambda p: p["asked"]["tables"]["rows"]["columns"].update(
        File_Row_Number="integer"
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_that_no_run_accepts_is_refused(name: str, several: Path) -> None:
    made.edit(several, "release.json", QUESTIONS[name])
    found = made.verdict_of(several, several.parent / "auditor")
    assert found.refusal is not None
    assert found.refusal.check in ("asked.rules", "files.forms")


def test_the_guarantee_of_one_tabulation_is_kept(tables: Path) -> None:
    guarantee = {"definition": "pure", "epsilon": "1/1000", "delta": "0"}
    change = lambda p: p["asked"]["tabulations"][0].update(guarantee=guarantee)  # noqa: E731 - one
    made.edit(tables, "release.json", change)
    refused(tables, "charges.total")


def test_the_ledger_of_a_stranger_proves_no_payment(several: Path, tmp_path: Path) -> None:
    """The files are signed by a trusted key; their ledger is made by somebody else."""
    stranger = Book(tmp_path / "bogus", STRANGER)
    stranger.begin()
    signing.publish(several, stranger)
    sums = (several / "SHA256SUMS").read_bytes()
    (several / "SHA256SUMS.sig").write_text(signing.line(KEY, SUMS_WORD + sums), "utf-8")
    auditor = several.parent / "auditor"
    trust = Trust((public_key(KEY),), (), None)
    alone = verify(several, auditor, replace(trust, keys=(public_key(STRANGER),)), "signed")
    assert alone.status == 0
    for require in ("signed", "paid"):
        found = verify(several, auditor, replace(trust, ledger=stranger.folder), require)
        assert found.status == 1
        assert found.refusal is not None
        assert found.refusal.check == "ledger.key"


def test_a_witness_alone_signs_no_ledger(several: Path, tmp_path: Path) -> None:
    book = Book(tmp_path / "ledger", STRANGER, witnesses={"witness.example": KEY})
    book.begin()
    signing.publish(several, book)
    witness = public_key(KEY, "witness.example", WITNESS)
    trust = Trust((public_key(KEY),), (witness,), None)
    found = verify(several, several.parent / "auditor", trust, "none")
    assert found.refusal is not None
    assert found.refusal.check == "ledger.commit"


def test_margins_that_no_table_joins_add_up_to_one_total(tables: Path) -> None:
    """Races that add up to more than the few and the many of the same state."""
    path = next(each for each in (tables / "data").iterdir() if is_of_states(each))

    def more(values: list[float]) -> list[float]:
        # The rows of a state: the total, three races, two classes. A number is a whole millionth.
        found = []
        for place, value in enumerate(values):
            found.append(round(value + (place % 6 in (1, 2, 3)), 6))
        return found

    with_column(path, "answer", more)
    seal(tables)
    refused(tables, "tabulation.least")


def is_of_states(path: Path) -> bool:
    names = pq.read_schema(path).names
    return "rounded" in names and "tract" not in names


def test_noise_with_a_bias_is_no_noise_of_a_table(tables: Path) -> None:
    (path,) = (tables / "mechanisms").iterdir()
    made.edit(
        tables, f"mechanisms/{path.name}", lambda p: p["noise"].update(low=p["noise"]["low"] + 1)
    )
    refused(tables, "tabulation.measured")


def another_name(folder: Path) -> None:
    """A file whose name is no ASCII, which stands in SHA256SUMS as its bytes."""
    shutil.copy(folder / "keys.json", folder / "data/é.json")
    with (folder / "SHA256SUMS").open("ab") as file:
        file.write(b"0" * 64 + "  data/é.json\n".encode())


FAULTS: dict[str, Callable[[Path], object]] = {
    "a name that is not ASCII": another_name,
    "a claim of 400 digits": lambda f: made.edit(f, "release.json", claim_of_nines),
    "a charge of 400 digits": lambda f: made.edit(f, "release.json", charge_of_nines),
}


def claim_of_nines(plain: Plain) -> None:
    plain["made"]["queries"][0]["epsilon"] = "9" * 400
    query_of(plain, "the_count")["guarantee"]["epsilon"] = "9" * 400


def charge_of_nines(plain: Plain) -> None:
    plain["made"]["queries"][0]["charge"]["epsilon"] = "9" * 400


@pytest.mark.parametrize("name", FAULTS)
def test_no_file_makes_the_verifier_fail(name: str, several: Path) -> None:
    FAULTS[name](several)
    assert made.verdict_of(several, several.parent / "auditor").status == 1


def test_differences_of_another_length_are_refused(several: Path) -> None:
    path = several.parent / "auditor" / "committed.json"
    plain = json.loads(path.read_bytes())
    plain["sensitivity"] = {"differences": [[1, 2]]}
    path.write_bytes(canonical.dumps(plain))
    covered = canonical.dumps({"law": plain["law"], "sensitivity": plain["sensitivity"]})
    value = commit(bytes.fromhex(plain["key"]), covered)

    def committed(record: Plain) -> None:
        for each in record["made"]["queries"]:
            if each["name"] == "committed":
                each["commitment"] = value

    made.edit(several, "release.json", committed)
    refused(several, "mechanism.opened")


def test_a_filter_gives_back_the_moment_of_what_was_not_drawn(tmp_path: Path) -> None:
    """The cap of order 2 holds so many moments of 2, and one more after one was taken off."""
    book = Book(tmp_path / "ledger", KEY)
    book.begin(rule="renyi_filter", order=2, cuts="1/8", epsilon="2", delta="3/8")
    charge = {"scope": "tests", "epsilon": "1/1000", "delta": "0", "moment": "2", "cut": "0"}
    # The cap is 1/4 · 2 · 2·e² = 7.39: two moments of 2 fit, and three do not.
    book.add("reserve", release_id="a", **charge)
    book.add("reserve", release_id="b", **charge)
    assert len(read_ledger(book.folder).entries) == 3
    book.add("abort", release_id="b", drawn=False)
    book.add("reserve", release_id="c", **charge)
    assert len(read_ledger(book.folder).entries) == 5
    book.add("reserve", release_id="d", **charge)
    with pytest.raises(Refused, match="moment"):
        read_ledger(book.folder)
