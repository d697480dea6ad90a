"""Rules that share a check with others: each refuses a forgery of its own, by its own sentence."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_release_verify import forms
from dp_release_verify.errors import Refused
from dp_release_verify.ledger import Ledger, read_ledger
from dp_release_verify.losses import Losses, worst_case
from dp_release_verify.provenance import check_paid, plan_keeps, unpaid_rules
from release.bundle.tables.parquet import FACTS, parquet_bytes
from tests.verifier import made, signing
from tests.verifier.signing import Book, private_key

Plain = dict[str, Any]

KEY = private_key(1)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return made.small(tmp_path_factory.mktemp("rules"))


# ---- What is asked ------------------------------------------------------------------------------


def query_of(plain: Plain, name: str) -> Plain:
    return next(each for each in plain["asked"]["queries"] if each["name"] == name)


def where(tree: Plain) -> Plain:
    return {"where": {"sql": "what it says is not read", "tree": tree}}


def of_a_fixed_column(plain: Plain) -> None:
    tree = {"call": "=", "of": [{"column": "place"}, {"string": "a"}]}
    query_of(plain, "committed").update(where(tree))


def of_seventeen_texts(plain: Plain) -> None:
    texts = {"call": "concat", "of": [{"column": "place"}] * 17}
    tree = {"call": "=", "of": [texts, {"string": "a"}]}
    query_of(plain, "the_count").update(where(tree))


def fixing_no_column(plain: Plain) -> None:
    plain["asked"]["privacy"]["fixed"] = ["nothing"]


def fixing_what_is_measured(plain: Plain) -> None:
    plain["asked"]["privacy"]["fixed"] = ["kind", "place"]


def protecting_a_fixed_attribute(plain: Plain) -> None:
    plain["asked"]["privacy"].update(neighbors="attribute", attribute="place")


@pytest.mark.parametrize(
    ("change", "check", "sentence"),
    [
        (of_a_fixed_column, "asked.one_row", "no fixed column"),
        (of_seventeen_texts, "asked.one_row", "16 joined texts"),
        (fixing_no_column, "asked.rules", "columns of a table"),
        (fixing_what_is_measured, "asked.rules", "no fixed column"),
        (protecting_a_fixed_attribute, "asked.rules", "a column that is no other's"),
    ],
)
def test_a_question_breaks_one_rule(
    sound: tuple[Path, Path],
    tmp_path: Path,
    change: Callable[[Plain], None],
    check: str,
    sentence: str,
) -> None:
    release, auditor = (Path(shutil.copytree(each, tmp_path / each.name)) for each in sound)
    assert made.verdict_of(release, auditor).refusal is None
    made.edit(release, "release.json", change)
    refusal = made.verdict_of(release, auditor).refusal
    assert refusal is not None
    assert (refusal.check, refusal.needed) == (check, sentence)


def test_a_committed_law_says_nothing_by_intervals(
    sound: tuple[Path, Path], tmp_path: Path
) -> None:
    release, auditor = (Path(shutil.copytree(each, tmp_path / each.name)) for each in sound)
    path = release / "data" / "committed.parquet"
    table = pq.read_table(path)
    assert table.column_names == ["place", "answer", "answer_code"]
    ends = table.select(["answer"]).rename_columns(["low"])
    for place, name in enumerate(("low", "high"), 2):
        table = table.add_column(place, pa.field(name, pa.int64(), nullable=False), ends[0])
    entries = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
    entries.pop(FACTS)
    path.write_bytes(parquet_bytes(table, entries))
    made.seal(release)
    refusal = made.verdict_of(release, auditor).refusal
    assert refusal is not None
    assert (refusal.check, refusal.about) == ("tables.form", "data/committed.parquet")


# ---- A ledger ------------------------------------------------------------------------------------


def book_of(folder: Path, **cap: Any) -> Book:
    book = Book(folder / "ledger", KEY)
    book.begin(**cap)
    return book


def reserve(book: Book, name: str, epsilon: str, delta: str, **more: Any) -> None:
    book.add("reserve", release_id=name, scope="tests", epsilon=epsilon, delta=delta, **more)
    book.sign()


@pytest.mark.parametrize(
    "cap",
    [
        {"delta": "0.001"},
        {"period": {"every": "month", "epsilon": "9", "delta": "0.001"}},
        {"period": {"every": "day", "epsilon": "9", "delta": "0.001"}},
    ],
)
def test_a_cap_of_delta_is_kept_too(tmp_path: Path, cap: Plain) -> None:
    book = book_of(tmp_path, **cap)
    reserve(book, "a", "1", "0.0005")
    reserve(book, "b", "1", "0.0005")
    assert read_ledger(book.folder).caps["tests"].epsilon == 1000
    reserve(book, "c", "1", "1/100000")
    with pytest.raises(Refused, match="cap"):
        read_ledger(book.folder)


def planned(folder: Path, *slots: Plain, **cap: Any) -> Book:
    return book_of(folder, rule="pld", planned=list(slots), **cap)


def test_a_slot_is_taken_as_often_as_planned(tmp_path: Path) -> None:
    book = planned(tmp_path, {"name": "day", "times": 2, "epsilon": "1", "delta": "0"})
    for name in ("a", "b"):
        reserve(book, name, "1", "0", slot="day")
    assert len(read_ledger(book.folder).entries) == 3
    reserve(book, "c", "1", "0", slot="day")
    with pytest.raises(Refused, match="a slot that is free"):
        read_ledger(book.folder)


def test_a_slot_that_nobody_planned_is_not_free(tmp_path: Path) -> None:
    book = planned(tmp_path, {"name": "day", "times": 2, "epsilon": "1", "delta": "0"})
    reserve(book, "a", "1", "0", slot="night")
    with pytest.raises(Refused, match="a slot that is free"):
        read_ledger(book.folder)


# ---- What was paid for it -----------------------------------------------------------------------


@pytest.fixture
def paid(sound: tuple[Path, Path], tmp_path: Path) -> Callable[..., tuple[forms.Release, Ledger]]:
    """A release and its ledger, in which the entry that pays has other figures."""

    def published(**figures: Any) -> tuple[forms.Release, Ledger]:
        release = Path(shutil.copytree(sound[0], tmp_path / "release"))
        book = book_of(tmp_path)
        signing.publish(release, book, **figures)
        data = (release / "release.json").read_bytes()
        return forms.loads(forms.Release, "release.json", data), read_ledger(book.folder)

    return published


@pytest.mark.parametrize(
    "figures", [{"delta": "0.001"}, {"delta": "0.003"}, {"epsilon": "7"}, {"epsilon": "9"}]
)
def test_the_entry_reserved_this_total(paid: Any, figures: Plain) -> None:
    release, ledger = paid(**figures)
    with pytest.raises(Refused, match="ledger: entry 1"):
        check_paid(release, ledger)


def test_the_entry_of_the_total_is_taken(paid: Any) -> None:
    release, ledger = paid()
    assert check_paid(release, ledger).seq == 1


def entry_of(epsilon: str, delta: str) -> forms.Reserve:
    return forms.Reserve(
        seq=1,
        prev="sha256:" + "0" * 64,
        date="2026-11-28",
        kind="reserve",
        release_id="a",
        scope="tests",
        epsilon=Fraction(epsilon),
        delta=Fraction(delta),
        slot="day",
    )


def ledger_with(folder: Path, **slot: Any) -> Ledger:
    book = planned(folder, {"name": "day", "times": 1, **slot})
    book.sign()
    return read_ledger(book.folder)


STEP = Fraction(1, 64)


def worst(delta: str) -> Losses:
    """The most that a release of ε = 1 and this δ can lose."""
    return Losses.of(worst_case(Fraction(1), Fraction(delta), STEP), STEP)


def test_a_slot_holds_delta_as_well_as_epsilon(tmp_path: Path) -> None:
    """With the worst case of its own figures a release of more δ lies above the slot."""
    ledger = ledger_with(tmp_path, epsilon="1", delta="0.001")
    for delta in ("0.001", "0.0001"):
        entry = entry_of("1", delta)
        assert list(unpaid_rules(entry, ledger, worst(delta), is_empirical=False)) == []
    with pytest.raises(Refused, match="a profile above that of it"):
        list(unpaid_rules(entry_of("1", "0.002"), ledger, worst("0.002"), is_empirical=False))
    # Without its losses nothing shows that it fits.
    (said,) = unpaid_rules(entry_of("1", "0.002"), ledger, None, is_empirical=False)
    assert said.startswith("whether the release fits the slot")


def test_a_declared_slot_holds_delta_too(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, epsilon="1", delta="0.001", declared=True)
    assert list(unpaid_rules(entry_of("1", "0.001"), ledger, None, is_empirical=True)) == []
    with pytest.raises(Refused, match="one of at least the stated"):
        list(unpaid_rules(entry_of("1", "0.002"), ledger, None, is_empirical=True))


@pytest.mark.parametrize(
    ("cap", "keeps"),
    [
        ({"epsilon": "3", "delta": "0.003"}, True),
        ({"epsilon": "3", "delta": "0.002"}, False),
        ({"epsilon": "2", "delta": "0.003"}, False),
    ],
)
def test_what_is_declared_of_a_plan_adds_up(cap: Plain, keeps: bool) -> None:
    slot = forms.Slot("day", 3, Fraction(1), Fraction("0.001"), declared=True)
    epsilon, delta = Fraction(cap["epsilon"]), Fraction(cap["delta"])
    assert plan_keeps(forms.Cap("tests", epsilon, delta, rule="pld", planned=[slot])) is keeps
