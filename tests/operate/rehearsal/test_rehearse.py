"""A rehearsal finds what a run would: its counts against plain loops, its refusals against it."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from release.cli.main import main
from release.operate.rehearsal.folder import CHECKED
from release.operate.rehearsal.rehearse import check_run
from release.operate.rehearsal.text import FIRST_LINE, Rehearsal, _counted, lines_of
from release.queries.read import read_spec
from tests.small import Row, Small, joint, part, query
from tests.tabulated import Tabulated, misspelt

HOMES: list[Row] = [
    {"unit": f"u{i}", "place": place, "day": 1, "kind": i % 4, "wh": i}
    for i, place in enumerate(["a"] * 5 + ["heat_pump"] * 86)
]


def rehearsed(small: Small | Tabulated, folder: Path) -> Rehearsal:
    return check_run(read_spec(small.write(folder)))


def with_keys(small: Small, folder: Path, keys: list[str]) -> Path:
    path = small.write(folder)
    plain = yaml.safe_load(path.read_text("utf-8"))
    plain["keys"]["place"] = keys
    path.write_text(yaml.safe_dump(plain), "utf-8")
    return path


def command(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    shown = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, shown.out, shown.err


def test_a_misspelt_key_is_named_beside_the_value_that_was_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = Small(HOMES, [query("count", sensitivity="global")])
    path = with_keys(small, tmp_path, ["a", "heatpump"])
    (of_query,) = check_run(read_spec(path)).queries
    assert (of_query.rows, of_query.outside, of_query.empty) == (91, 86, 1)
    (keys,) = of_query.keys
    assert [(key.value, key.rows) for key in keys.keys] == [("a", 5)]
    assert keys.without_rows == ("heatpump",)
    assert keys.near == {"heatpump": "heat_pump"}
    assert (keys.unnamed_values, keys.unnamed_rows) == (1, 86)
    status, told, _ = command(capsys, "check", path)
    assert status == 0
    assert told.splitlines()[0] == FIRST_LINE
    assert "no row has 'heatpump'; did you mean 'heat_pump', which no key names?" in told
    assert "heat_pump: 86 rows of 86 units" in told
    assert "86 of them in no cell" in told


def random_rows(rng: Random) -> list[Row]:
    rows = []
    for _ in range(300):
        rows.append(
            {
                "unit": f"u{rng.randrange(60)}",
                "place": rng.choice(["a", "b", "c", None]),
                "day": rng.choice([1, 2, 3, None]),
                "kind": rng.choice([0, 1, 2, 3, 4, None]),
                "wh": rng.choice([None, None, None, *range(-9, 21)]),
            }
        )
    return rows


def test_counts_are_those_of_plain_loops(tmp_path: Path) -> None:
    rows = random_rows(Random(5))  # noqa: S311 - test data
    asked = query("binned", by=["place", "day"], where="kind < 3", sensitivity="global")
    (found,) = rehearsed(Small(rows, [asked], max_rows_per_unit=2), tmp_path).queries
    met = [row for row in rows if row["kind"] is not None and row["kind"] < 3]
    inside = [row for row in met if row["place"] in ("a", "b") and row["day"] in (1, 2)]
    read = [row for row in inside if row["wh"] is not None]
    cut = {one.bound: one.count for one in found.cuts}
    assert (found.rows, found.outside) == (len(met), len(met) - len(inside))
    assert cut.pop("values are below -5, and count as that") == sum(r["wh"] < -5 for r in read)
    assert cut.pop("values are above 15, and count as that") == sum(r["wh"] > 15 for r in read)
    beyond = sum(max(n - 2, 0) for n in Counter(row["unit"] for row in read).values())
    assert cut.pop("rows are beyond max_rows_per_unit: 2, and are left out") == beyond > 0
    missing = cut.pop("rows have no value, or one outside the domain, and are left out")
    assert missing == len(inside) - len(read) > 0
    for column, named in ((found.keys[0], {"a": "a", "b": "b"}), (found.keys[1], {1: "1", 2: "2"})):
        of_value, units = Counter[Any](), defaultdict[Any, set[str]](set)
        for row in met:
            of_value[row[column.column]] += 1
            units[row[column.column]].add(row["unit"])
        assert column.missing == of_value.pop(None)
        told = {key.value: (key.rows, key.units) for key in column.keys}
        assert told == {text: (of_value[v], len(units[v])) for v, text in named.items()}
        unnamed = {one.value: (one.rows, one.units) for one in column.unnamed}
        others = [value for value in of_value if value not in named]
        assert unnamed == {str(v): (of_value[v], len(units[v])) for v in others}


def test_each_bound_cuts_what_the_one_before_it_left(tmp_path: Path) -> None:
    rows: list[Row] = [
        *({"unit": "u0", "place": "a", "day": day, "kind": 0, "wh": 0} for day in (1, 1, 1, 2)),
        {"unit": "u0", "place": "b", "day": 1, "kind": 0, "wh": 0},
        {"unit": "u1", "place": "b", "day": 2, "kind": 0, "wh": 0},
    ]
    asked = query("count", by=["place", "day"], sensitivity="global")
    small = Small(rows, [asked], max_rows_per_unit=2, fixed=["place"], max_cells_per_unit=1)
    (found,) = rehearsed(small, tmp_path).queries
    # Of days 1 and 2 the hash keeps the second, which has one row.
    assert [(one.count, one.bound.split(",")[0]) for one in found.cuts] == [
        (1, "rows are of a unit whose place is another"),
        (3, "rows are beyond max_cells_per_unit: 1"),
    ]


def test_a_count_beyond_its_domain_is_among_what_is_changed(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"unit": f"u{i}", "place": "ab"[i % 10 == 0], "day": 1, "kind": 0, "wh": 0}
        for i in range(30)
    ]
    asked = query("count", sensitivity="global", domain={"ordered": {"min": 0, "max": 9}})
    told = [reason.sentence for reason in rehearsed(Small(rows, [asked]), tmp_path).left_out]
    assert told == [
        "the_count: 1 OF 2 CELLS (50.0 %) HAVE 9 OR MORE, THE END OF ITS DOMAIN, AND COUNT AS THAT"
    ]


def test_columns_show_their_ends_and_no_unit(tmp_path: Path) -> None:
    rows = [*HOMES, {"unit": "u99", "place": None, "day": None, "kind": 1, "wh": None}]
    found = rehearsed(Small(rows, [query("count")]), tmp_path)
    (table,) = found.tables
    ends = {one.column: (one.least, one.greatest, one.missing) for one in table.columns}
    assert (table.rows, table.units, table.seen) == (92, 92, 92)
    assert ends == {
        "unit": (None, None, 0),
        "place": (None, None, 1),
        "day": ("1", "1", 1),
        "kind": ("0", "3", 0),
        "wh": ("0", "90", 1),
    }
    assert "quagzil" not in repr(found)
    assert repr(found) == "Rehearsal(confidential)"


def test_small_counts_are_hardly_more_than_noise(tmp_path: Path) -> None:
    """Answers of 2 to 3 rows under ε = 1/10 err by more; under ε = 10 they do not."""
    rows: list[Row] = [
        {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": 0, "wh": 0} for i in range(5)
    ]
    told = []
    for epsilon in ("0.1", "10"):
        guarantee = {"definition": "pure", "epsilon": epsilon}
        asked = query("count", sensitivity="global", guarantee=guarantee)
        found = rehearsed(Small(rows, [asked]), tmp_path)
        (of_query,) = found.queries[0].told
        told.append(of_query.is_hardly_more_than_noise)
        assert ("HARDLY MORE THAN NOISE" in "\n".join(lines_of(found))) is told[-1]
    assert told == [True, False]


@pytest.mark.parametrize(
    ("fields", "is_noise"),
    [
        # A lead of 20 units, and of none.
        ({"kind": "mode", "domain": {"cyclic": 4}, "where": "kind = 1 OR wh < 1"}, False),
        ({"kind": "mode", "domain": {"cyclic": 4}}, True),
        # The sum of all is 4,095; of the first two 1.
        ({"kind": "sum"}, False),
        ({"kind": "sum", "where": "wh < 2"}, True),
        # A mean of 91 rows, and of one.
        ({"kind": "mean"}, False),
        ({"kind": "mean", "where": "wh = 1"}, True),
        # Half of 91 rows, and of three.
        ({"kind": "median"}, False),
        ({"kind": "median", "where": "wh < 3"}, True),
    ],
)
def test_noise_on_the_statistic_is_judged_by_what_the_cell_holds(
    tmp_path: Path, fields: dict[str, Any], is_noise: bool
) -> None:
    plain = query("binned", by=[], sensitivity="global", noise="on_statistic")
    plain["guarantee"] = {"definition": "pure", "epsilon": "4"}
    plain |= {"bins": {"low": 0, "high": 96, "count": 6}, "clamp": [0, 95]}
    if fields["kind"] == "mode":
        plain["of"] = "kind"
        del plain["bins"], plain["clamp"]
    if fields["kind"] != "sum":
        plain.pop("clamp", None)
    found = rehearsed(Small(HOMES, [plain | fields], max_rows_per_unit=1), tmp_path)
    assert found.refusals == ()
    (told,) = found.queries[0].told
    assert (told.cells, told.is_hardly_more_than_noise) == (1, is_noise), told.sentence


def test_every_kind_of_query_can_be_rehearsed(tmp_path: Path) -> None:
    queries = [
        query("mode"),
        query("count", name="all_days", by=["place", "day"]),
        query("binned", statistic="max"),
        query("on_grid", sensitivity="global"),
        query("count", name="tops", of="kind", domain={"cyclic": 4}, sensitivity="global")
        | {"kind": "top", "k": 2},
        query("count", name="quarters", of="wh", sensitivity="global")
        | {"kind": "quantiles", "at": ["1/4", "3/4"]},
        part("some", "count", where="kind = 2"),
        part("commonest", "mode"),
        joint("some", "commonest", name="jointly"),
        query("count", name="written", by=[])
        | {"kind": "sql", "sql": "SELECT least(count(*), 5) AS answer FROM rows"},
    ]
    found = rehearsed(Small(HOMES[:20], queries), tmp_path)
    assert found.refusals == ()
    assert [one.name for one in found.queries] == [
        *("the_mode", "all_days", "the_binned", "the_on_grid", "tops", "quarters"),
        *("jointly", "written"),
    ]
    empirical = [one.name for one in found.queries if one.sensitivity is not None]
    assert empirical == ["the_mode", "all_days", "the_binned", "jointly", "written"]
    assert "\n".join(lines_of(found, None))


def spoilt(spec: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    plain = yaml.safe_load(spec.read_text("utf-8"))
    change(plain)
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    return spec


def nothing_left_to_share(plain: dict[str, Any]) -> None:
    shared = query("count", name="shared", sensitivity="global", share="1")
    del shared["guarantee"]
    plain["queries"].append(shared)
    plain["budget"]["epsilon"] = "0.5"


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain["queries"][0].update(where="wh >"),
        lambda plain: plain["queries"][0].update(where="what > 1"),
        lambda plain: plain["release"].update(title="TODO(curator)"),
        lambda plain: plain["budget"].update(epsilon="0.5"),
        lambda plain: plain["queries"][0].update(
            domain={"ordered": {"min": 0, "max": 4}},
            guarantee={"definition": "pure", "epsilon": "0.2"},
            loss="squared",
        ),
        lambda plain: plain["tables"]["rows"].update(path="none.parquet"),
        lambda plain: plain["tables"]["rows"]["columns"].update(wh="date"),
        lambda plain: plain["tables"]["rows"]["columns"].update(watts="integer"),
        lambda plain: plain["queries"].append(
            query("count", name="failing", by=[]) | {"kind": "sql", "sql": "SELECT 1 AS other"}
        ),
        lambda plain: plain["tables"]["rows"].update(contract="rows.contract.yaml"),
        nothing_left_to_share,
    ],
)
def test_a_rehearsal_is_refused_as_the_run_is(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any]], object],
) -> None:
    asked = query("count", sensitivity="global", guarantee={"definition": "pure", "epsilon": "0.7"})
    small = Small(HOMES[:20], [asked], max_rows_per_unit=1, budget=("2", "0"))
    spec = spoilt(small.write(tmp_path), change)
    (tmp_path / "rows.contract.yaml").write_text(
        "contract: dp-release/table/v1\ncolumns: {wh: {maximum: 3, on_violation: refuse}}\n"
    )
    run = command(capsys, "run", spec, "--out", tmp_path / "out")
    check = command(capsys, "check", spec)
    assert run[0] != 0
    lines = [[line for line in e.splitlines() if "error: " in line] for _, _, e in (run, check)]
    assert (check[0], lines[1]) == (run[0], lines[0])


def test_all_refusals_are_told_at_once(tmp_path: Path) -> None:
    constant = {
        "sensitivity": "global",
        "domain": {"ordered": {"min": 0, "max": 4}},
        "guarantee": {"definition": "pure", "epsilon": "0.2"},
        "loss": "squared",
    }
    dear = {"sensitivity": "global", "guarantee": {"definition": "pure", "epsilon": "90"}}
    queries = [
        query("count", name="one", **constant),
        query("count", name="two", **constant),
        query("count", name="three", **dear),
    ]
    found = rehearsed(Small(HOMES, queries, max_rows_per_unit=1, budget=("1", "0")), tmp_path)
    assert [str(error).split(":")[0] for error in found.refusals] == [
        *("budget.epsilon", "query one", "query two")
    ]
    assert [one.rows for one in found.queries] == [91, 91, 91]


def test_the_file_is_for_its_owner_and_replaces_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = Small(HOMES, [query("count")]).write(tmp_path)
    for words, first in ((["--json"], '{"confidential": true'), ([], FIRST_LINE)):
        file = tmp_path / f"found{len(words)}"
        status, told, _ = command(capsys, "check", spec, "--out", file, *words)
        assert (status, told) == (0, f"wrote  {file}  (confidential)\n")
        assert file.stat().st_mode & 0o777 == 0o600
        text = file.read_text("utf-8")
        assert text.startswith(first)
        assert "u0" not in text
        status, told, line = command(capsys, "check", spec, "--out", file)
        assert (status, told) == (2, "")
        assert line == "error: --out: is there already; name another file\n"
        assert file.read_text("utf-8") == text


def test_a_long_list_is_cut_on_the_terminal_and_whole_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**row, "place": f"p{i:02}"} for i, row in enumerate(HOMES)]
    small = Small(rows, [query("count", sensitivity="global")])
    spec = with_keys(small, tmp_path, [f"p{i:02}" for i in range(30)])
    _, told, _ = command(capsys, "check", spec)
    assert "and 20 more keys" in told
    assert "p09: 1 row of 1 unit" in told
    assert "p10: " not in told
    assert "and 51 more values" in told
    plain = json.loads(command(capsys, "check", spec, "--json")[1])
    (keys,) = plain["queries"][0]["keys"]
    assert [one["value"] for one in keys["keys"]] == [f"p{i:02}" for i in range(30)]
    assert len(keys["unnamed"]) == keys["unnamed_values"] == 61


def test_a_tabulation_is_rehearsed(tmp_path: Path) -> None:
    """A category that is misspelt, an area of no row, a declared number that is wrong."""
    found = rehearsed(misspelt(), tmp_path)
    assert found.refusals == ()
    (facts,) = found.queries
    tracts, race = facts.keys
    assert (tracts.without_rows, race.without_rows) == (("t2",), ("bee",))
    assert race.near == {"bee": "be"}
    assert [(one.value, one.rows) for one in race.unnamed] == [("be", 3)]
    assert [(one.count, one.bound) for one in facts.cuts] == [
        (3, "rows are in no cell, or of a unit that counts already, and are left out"),
        (1, "declared numbers of state [] are not those of the table"),
    ]
    # The tract without a row is hardly more than noise, and so is the race without one.
    assert [(one.cells, one.noisy) for one in facts.told] == [(1, 0), (2, 1), (2, 1)]


COUNTED = Small(HOMES, [query("count", sensitivity="global")], budget=("3", "0"))


def ledger_with(cap: str, rule: str = "") -> Callable[[Path], None]:
    """Makes a ledger for the scope of the small specs."""

    def prepare(folder: Path) -> None:
        made = ["ledger", "init", "--out", "out", "--key", "key", "--origin", "example.org/dp"]
        planned = ["--rule", "tests=pld", "--planned", f"tests={rule}"] if rule else []
        assert status_of("ledger", "key", "new", "key") == 0
        assert status_of(*made, "--scope", f"tests:{cap}", *planned) == 0

    return prepare


def status_of(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def published(folder: Path) -> None:
    assert status_of("run", "spec.yaml", "--out", "out") == 0


def foreign_key(folder: Path) -> None:
    ledger_with("5:0")(folder)
    Path("key").rename("first")
    assert status_of("ledger", "key", "new", "key") == 0


def other_scope(folder: Path) -> None:
    ledger_with("5:0")(folder)
    spec = folder / "spec.yaml"
    spec.write_text(spec.read_text("utf-8").replace("scope: tests", "scope: others"), "utf-8")


def a_file_there(folder: Path) -> None:
    Path("out").write_text("", "utf-8")


KEYED = ("--key", "key")


def files_in(folder: Path) -> dict[Path, bytes]:
    """All files but the notes of checks."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and CHECKED not in path.parts:
            found[path] = path.read_bytes()
    return found


@pytest.mark.parametrize(
    ("prepare", "words", "told"),
    [
        (lambda _: None, (), None),
        (published, (), "'small' is published there already"),
        (ledger_with("5:0"), KEYED, None),
        (ledger_with("5:0"), (), "--key: "),
        (lambda _: status_of("ledger", "key", "new", "key"), KEYED, "no ledger in"),
        (ledger_with("0.5:0"), KEYED, "budget.epsilon: scope 'tests' has spent 0"),
        (ledger_with("3:0", "1xnight:2:0"), KEYED, None),
        (ledger_with("3:0", "2xnight:1:0"), KEYED, "fits no free slot of scope"),
        (foreign_key, KEYED, "does not know this key"),
        (other_scope, KEYED, "the ledger has no scope 'others'"),
        (a_file_there, (), "is a file; name a folder"),
    ],
)  # fmt: skip
def test_the_folder_of_a_run_is_refused_in_the_words_of_the_run(
    prepare: Callable[[Path], object],
    words: tuple[str, ...],
    told: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    COUNTED.write(tmp_path)
    prepare(tmp_path)
    before = files_in(tmp_path)
    capsys.readouterr()
    checked, shown, complained = command(capsys, "check", "spec.yaml", "--into", "out", *words)
    assert files_in(tmp_path) == before
    ran, _, refused = command(capsys, "run", "spec.yaml", "--out", "out", *words)
    assert checked == ran
    if told is None:
        assert checked == 0
        assert "a run would not be refused before its charge" in shown
    else:
        line = refused.strip().splitlines()[-1]
        assert told in line
        assert line == complained.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("sentence", "one"),
    [
        ("rows have no value", "row has no value"),
        ("rows have no value and need one", "row has no value and needs one"),
        ("more rows have no unit, and are left out", "more row has no unit, and is left out"),
        ("values are below -5, and count as that", "value is below -5, and counts as that"),
        (
            "rows are beyond the 2 rows of a unit that are read, and are left out",
            "row is beyond the 2 rows of a unit that are read, and is left out",
        ),
        ("rows break range", "row breaks range"),
        ("lines cannot be read, and are left out", "line cannot be read, and is left out"),
    ],
)
def test_one_thing_is_told_in_the_singular(sentence: str, one: str) -> None:
    assert _counted(1, sentence) == f"1 {one}"
    assert _counted(1200, sentence) == f"1,200 {sentence}"


def test_a_run_says_when_its_spec_was_last_checked_and_nothing_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [query("count", sensitivity="global")]
    notes = set()
    # Homes that are all in a cell, and homes of which most are in none.
    for rows in (HOMES[:5], HOMES):
        folder = tmp_path / str(len(rows))
        folder.mkdir()
        path, out = Small(rows, asked).write(folder), folder / "out"
        command(capsys, "check", path, "--into", out)
        (note,) = (out / CHECKED).iterdir()
        notes.add(note.name)
        assert note.parent.stat().st_mode & 0o077 == 0
        assert re.fullmatch(r"[-0-9]{10} [0-9]{2}:[0-9]{2} UTC", note.read_text("ascii"))
        status, told, _ = command(capsys, "run", path, "--out", out)
        assert status == 0
        assert f"checked    {note.read_text('ascii')}" in told
        # Of another spec no check is known.
        path.write_text(path.read_text("utf-8").replace("id: small", "id: other"), "utf-8")
        status, told, _ = command(capsys, "run", path, "--out", out)
        assert status == 0
        assert f"checked    never: dp-release check SPEC --into {out} says what is left out" in told
    assert len(notes) == 1


@pytest.mark.parametrize("noise", ["on_statistic", "on_answer"])
def test_sums_beyond_their_bins_are_counted(noise: str, tmp_path: Path) -> None:
    rows: list[Row] = [
        {"unit": f"u{i}", "place": "aab"[i % 3], "day": 1, "kind": 1, "wh": 10} for i in range(30)
    ]
    sums = query("binned", statistic="sum", clamp=[0, 10], by=["place"], noise=noise)
    sums |= {"bins": {"low": 0, "high": 120, "count": 12}, "sensitivity": "global"}
    told = check_run(read_spec(Small(rows, [sums], max_rows_per_unit=1).write(tmp_path)))
    (beyond,) = [reason for reason in told.left_out if reason.noun == "cells"]
    # 200 in one place, which has 120 at most; 100 in the other.
    assert (beyond.count, beyond.whole) == (1, 2)
    assert beyond.words.startswith("have 110 or more, the end of its domain")
