"""What a person who makes a mistake reads: the field and the remedy, word for word."""

from __future__ import annotations

import copy
import datetime
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.cli.main import main
from tests.conftest import PROJECT
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
COLUMNS = "known are day, kind, place, unit, wh"
BEGIN = "dp-release init writes a first spec for a table"
LOSSES = "losses are error_rate, absolute, squared, noise_squared"
ID = "lower-case letters, digits and . _ -, a letter or digit first"

# What libraries say, and a person should not have to read.
RAW = re.compile(
    r"Traceback|internal error|Input should|[Ii]nput should|pydantic|Extra inputs|Field required"
    r"|DuckDB|Binder Error|Parser Error|Catalog Error|Invalid value for|No such|Missing|yaml\.",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a small spec, as a person has it; nothing else is in it."""
    Small(ROWS, [query("mode"), query("count"), query("binned")]).write(tmp_path)
    monkeypatch.chdir(tmp_path)
    # The cache of mechanisms would lie in the home of whoever runs the tests.
    monkeypatch.setenv("DP_RELEASE_CACHE", "")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    """The status and the lines of an error; nothing is printed, nothing raw, nothing left."""
    before = sorted(path.name for path in Path.cwd().rglob("*"))
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert RAW.search(shown.err) is None, shown.err
    assert sorted(path.name for path in Path.cwd().rglob("*")) == before
    assert isinstance(ended.value.code, int)
    return ended.value.code, shown.err.splitlines()


def changed(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Sets one field of a spec; None removes it."""

    def change(plain: Any) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
        for step in steps:
            plain = plain[step]
        if value is None:
            del plain[last]
        else:
            plain[last] = value

    return change


def all_of(*changes: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Makes several changes."""

    def change(plain: dict[str, Any]) -> None:
        for one in changes:
            one(plain)

    return change


def misspelt(plain: dict[str, Any]) -> None:
    plain["privacy"]["neigbors"] = plain["privacy"].pop("neighbors")


def joined(plain: dict[str, Any]) -> None:
    homes = {"path": "homes.parquet", "columns": {"unti": "string", "size": "integer"}}
    plain["tables"]["homes"] = homes
    plain["tables"]["rows"]["join"] = {"table": "homes"}


TARGET = all_of(changed("queries/1/guarantee", None), changed("queries/1/target", "accuracy > 0.9"))

SPECS = {
    "unknown column": (
        changed("queries/0/of", "kid"),
        f"queries[0].of: 'kid' is not there; did you mean 'kind'? {COLUMNS}",
    ),
    "SQL error": (
        changed("queries/0/where", "wh > 3 AND"),
        "queries[0].where: not an SQL expression: see line 1, character 10; "
        "write conditions such as age >= 18, joined by AND or OR",
    ),
    "sub-select": (
        changed("queries/0/where", "wh > (SELECT max(wh) FROM rows)"),
        "queries[0].where: a subquery is not allowed; use the columns of one row, constants and "
        "known functions",
    ),
    "misspelt key": (
        changed("queries/0/lss", "squared"),
        "queries[0].lss: unknown field; did you mean 'loss'?",
    ),
    "neighbors misspelt": (
        misspelt,
        "privacy.neigbors: unknown field; did you mean 'neighbors'?",
    ),
    "negative epsilon": (
        changed("queries/0/guarantee/epsilon", "-1"),
        "queries[0].guarantee.epsilon: found '-1'; write a number of at least 0",
    ),
    "text domain on a circle": (
        changed("queries/0/domain", {"cyclic": ["mon", "tue"]}),
        "queries[0].domain.cyclic: a circle has numbers only: write how many, or nominal: [labels]",
    ),
    "column of text on a circle": (
        changed("queries/0/of", "place"),
        "queries[0].of: 'place' is declared string; needed is integer; for categories write "
        "nominal: [labels], else name or derive another column",
    ),
    "id with capitals": (
        changed("release/id", "AMI-2013"),
        f"release.id: found 'AMI-2013'; write {ID}, such as 'ami-2013'",
    ),
    "missing id": (
        changed("release/id", None),
        "release.id: missing; add it (the name of the release and of its folder)",
    ),
    "missing clamp": (
        changed("queries/2/clamp", None),
        "queries[2]: a sum needs clamp: [lo, hi], the bounds of one row",
    ),
    "bins of a number column": (
        changed("tables/rows/columns/wh", "number"),
        "queries[2].of: 'wh' is declared number; needed is integer; write grid in place of bins, "
        "or name or derive another column",
    ),
    "unit misspelt with a join": (
        joined,
        "tables.homes.columns: the privacy unit 'unit' is not declared; did you mean it by "
        "'unti'? declared are size, unti",
    ),
    "accuracy > 0.9": (
        TARGET,
        "queries[1].target: found 'accuracy > 0.9'; write a loss and its cap, such as "
        f'"error_rate <= 0.2"; {LOSSES}',
    ),
    "on_violation misplaced": (
        changed("tables/rows/on_violation", "drop"),
        "tables.rows.on_violation: unknown field; it stands in the contract of a table, below "
        "columns and the name of a column",
    ),
    "weekofyear": (
        changed("queries/0/where", "weekofyear(DATE '2024-01-05') = wh"),
        "queries[0].where: the function weekofyear is not allowed; it is called week",
    ),
    # What else a new steward, an analyst or an auditor does.
    "epsilon as a float": (
        changed("queries/0/guarantee/epsilon", 0.5),
        'queries[0].guarantee.epsilon: write the number as a string, such as "0.001": it has to '
        "be exact",
    ),
    "epsilon of 1e400": (
        changed("budget/epsilon", "1e400"),
        "budget.epsilon: found '1e400'; not an exact number; write an integer \"4\", a decimal "
        '"0.001" or a rational "1/3"',
    ),
    "neighbors in other letters": (
        changed("privacy/neighbors", "replace-one"),
        "privacy.neighbors: found 'replace-one'; did you mean 'replace_one'? write 'replace_one', "
        "'add_remove' or 'attribute'",
    ),
    "unknown kind": (
        changed("queries/1/kind", "cuont"),
        "queries[1].kind: found 'cuont'; did you mean 'count'? write one of count, mode, top, "
        "quantiles, sum, mean, min, max, median, per_unit, tuple, sql",
    ),
    "later version": (
        changed("spec", "dp-release/spec/v1.1"),
        "spec: found 'dp-release/spec/v1.1'; write 'dp-release/spec/v1'",
    ),
    "epsilon beside its guarantee": (
        changed("queries/0/epsilon", "1"),
        "queries[0].epsilon: unknown field; it stands below 'guarantee'",
    ),
    "unit nowhere": (
        changed("privacy/unit", "units"),
        f"privacy.unit: 'units' is not there; did you mean 'unit'? {COLUMNS}",
    ),
    "bad date": (
        changed("queries/0/where", "DATE '2013-02-30' = DATE '2013-02-01'"),
        "queries[0].where: '2013-02-30' is no date; write one such as 2013-01-05",
    ),
    "empty section": (
        lambda plain: plain.update(privacy=None),
        "privacy: empty; write fields with their values (whom the guarantee protects)",
    ),
    "key file misspelt": (
        changed("keys/place", {"file": "rows.parque"}),
        "keys.place.file: there is no rows.parque; did you mean 'rows.parquet'? correct the path",
    ),
    "text in double quotes": (
        changed("queries/0/where", 'place = "a" AND wh > 1'),
        "queries[0].where: \"a\" in double quotes names a column; write text as 'a'",
    ),
    "yes and no as keys": (
        changed("keys/place", [True, "b"]),
        "keys.place[0]: found True, as YAML reads yes, on and true; put the word in quotes",
    ),
    "a comma in a number": (
        changed("budget/epsilon", "0,5"),
        "budget.epsilon: found '0,5'; not an exact number; write \"0.5\", with a point",
    ),
    "two comparisons": (
        changed("queries/0/where", "wh <> < 18"),
        "queries[0].where: not an SQL expression: see line 1, character 10; write conditions such "
        "as age >= 18, joined by AND or OR",
    ),
    "acceptance as a mapping": (
        changed("acceptance", {"the_count": "p95 <= 2"}),
        'acceptance: found fields; put each entry in quotes: ["homes: mean_error <= 3"]',
    ),
    "table misspelt": (
        changed("queries/0/table", "row"),
        "queries[0].table: 'row' is not there; did you mean 'rows'? known are rows",
    ),
}
"""For each mistake the change of the spec, and the one line without its ``error: ``."""


@pytest.mark.parametrize("name", SPECS)
def test_a_mistake_in_a_spec(capsys: pytest.CaptureFixture[str], folder: Path, name: str) -> None:
    change, sentence = SPECS[name]
    plain = yaml.safe_load((folder / "spec.yaml").read_text("utf-8"))
    change(plain)
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    expected = (2, [f"error: {sentence}"])
    assert told(capsys, "run", "spec.yaml", "--out", "out") == expected
    # The plan, which is looked at first, says the same.
    assert told(capsys, "plan", "spec.yaml") == expected


TEXTS = {
    "empty": (b"", f"spec: the file is empty; {BEGIN}"),
    "CSV": (
        b"a,b\n1,2\n",
        f"spec: a list or plain text, not fields with their values; {BEGIN}",
    ),
    "Parquet": (b"PAR1\x00\xff", f"spec: a Parquet table, and no spec; {BEGIN}"),
    "tabs": (
        b"spec: dp-release/spec/v1\nrelease:\n\tid: x\n",
        "line 3: not valid YAML: a tab stands where spaces belong; indent with spaces",
    ),
    "a key twice": (b"spec: a\nspec: b\n", "line 2: 'spec' stands twice; keep one"),
    "UTF-16": (
        "spec: x".encode("utf-16"),
        "spec: not readable as UTF-8 text; save it as UTF-8",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_no_spec(
    capsys: pytest.CaptureFixture[str], folder: Path, name: str
) -> None:
    text, sentence = TEXTS[name]
    (folder / "spec.yaml").write_bytes(text)
    assert told(capsys, "plan", "spec.yaml") == (2, [f"error: {sentence}"])


@pytest.mark.parametrize(
    "change", [lambda t: t.replace(b"\n", b"\r\n"), lambda t: b"\xef\xbb\xbf" + t]
)
def test_line_ends_and_marks_of_another_system_do_no_harm(
    capsys: pytest.CaptureFixture[str], folder: Path, change: Callable[[bytes], bytes]
) -> None:
    path = folder / "spec.yaml"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(SystemExit) as ended:
        main(["plan", "spec.yaml"])
    assert ended.value.code == 0
    assert "charged together" in capsys.readouterr().out


RUN = ("run", "spec.yaml")
NIGHTLY = str(PROJECT / "data" / "nightly.yaml")
COMMANDS = "run, check, verify, report, compare"

CALLS: dict[tuple[str, ...], str] = {
    ("lint", "spec.yaml"): "lint: no such command; use check, or plan, which reads no data; see "
    "dp-release --help",
    ("estimate", "out"): "estimate: no such command; use release.estimate in Python; see "
    "dp-release --help",
    ("validate", "spec.yaml"): "validate: no such command; use check, or plan, which reads no "
    "data; see dp-release --help",
    RUN: "--out: missing; give the folder that holds the releases; see dp-release run --help",
    ("run", "--out", "out"): "SPEC: missing; give the release spec, a YAML file; see dp-release "
    "run --help",
    (*RUN, "--out", "out", "--jobs", "zero"): "--jobs: found 'zero'; write a whole number of at "
    "least 1; see dp-release run --help",
    (*RUN, "--out", "out", "--jobs=0"): "--jobs: found '0'; write a whole number of at least 1; "
    "see dp-release run --help",
    (*RUN, "--outt", "out"): "--outt: no such option; did you mean --out?; see dp-release run "
    "--help",
    (*RUN, "--out", "out", "--seed", "1"): "--seed: no such option; remove it; see dp-release run "
    "--help",
    (*RUN, "--out", "out", "--accept-gap", "some"): "--accept-gap: not an exact number; write an "
    'integer "4", a decimal "0.001" or a rational "1/3"',
    ("run", "nowhere.yaml", "--out", "out"): "nowhere.yaml: no such file; give the path of a spec",
    ("run", ".", "--out", "out"): ".: a folder with spec.yaml; give the path of a spec",
    ("run", "spec.yml", "--out", "out"): "spec.yml: no such file; did you mean 'spec.yaml'? give "
    "the path of a spec",
    ("version",): "version: no such command; use dp-release --version; see dp-release --help",
    ("plan", "spec.yaml", "--epsilon-for", "accuracy > 0.9"): "--epsilon-for: found 'accuracy > "
    f'0.9\'; write a loss and its cap, such as "error_rate <= 0.2"; {LOSSES}',
    ("plan", "spec.yaml", "--epsilon-for", "error_rate <= 20%"): "--epsilon-for: found '20%'; "
    'not an exact number; write "0.2" in place of a percentage',
    ("verify", "out"): "FOLDER: no folder out; name OUT, or OUT/public/RELEASE",
    ("verify", "."): "FOLDER: . holds no release; name OUT, or OUT/public/RELEASE",
    ("plan", "spec.yaml", "rows.parquet"): "rows.parquet: one argument too many; plan takes SPEC "
    "alone; see dp-release plan --help",
    (
        "verify",
        ".",
        "--require",
    ): "--require: needs a value; write it behind; see dp-release --help",
    (*RUN, "--out", "rows.parquet"): "--out: rows.parquet is a file; name a folder, which may be a "
    "new one",
    ("check", "spec.yaml", "--out", "nowhere/all"): "--out: there is no folder nowhere; create it, "
    "or name another",
    ("report", "nowhere"): "PUBLIC: no folder nowhere; name OUT/public/RELEASE",
    ("report", "spec.yaml"): "PUBLIC: . holds no release; name OUT/public/RELEASE",
    ("verify", ".", "--require", "all"): "--require: found 'all'; write one of none, signed, "
    "paid, witnessed; see dp-release verify --help",
    ("catch-up", NIGHTLY, "--since", "yesterday", "--out", "out"): "--since: found 'yesterday'; "
    "write a period: 2024-01-05, 2024-w01, 2024-01, 2024-q1 or 2024",
}


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_a_wrong_call(
    capsys: pytest.CaptureFixture[str], folder: Path, words: tuple[str, ...]
) -> None:
    assert told(capsys, *words) == (2, [f"error: {CALLS[words]}"])


def test_a_wrong_key_file_is_named(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "dp.key").write_text("nothing secret", "utf-8")
    (folder / "dp.key").chmod(0o600)
    words = ("ledger", "init", "--out", "out", "--key", "dp.key", "--origin", "example.org/dp")
    status, lines = told(capsys, *words, "--scope", "tests:4:0.01")
    assert status == 2
    assert lines == [
        "error: --key: dp.key is no private key; create one: dp-release ledger key new"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_spec(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "spec.yaml").chmod(0)
    (folder / "other.yaml").touch()
    sentence = "spec.yaml: cannot be read; give the path of a spec"
    assert told(capsys, "plan", "spec.yaml") == (2, [f"error: {sentence}"])


def test_a_schedule_that_begins_in_the_future_is_told_so(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    words = ["catch-up", NIGHTLY, "--since", "2999-01-01", "--out", "out"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == [
        "nightly.yaml: caught up, 0 released",
        "nightly.yaml: --since 2999-01-01 has not begun; nothing is due before",
    ]


def test_wrong_auditors_and_an_output_folder(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "spec.yaml", "--out", "out"])
    assert ended.value.code == 0
    capsys.readouterr()
    remedy = "name OUT/auditor, or leave it out"
    (folder / "empty").mkdir()
    for wrong, problem in (
        ("nowhere", "no folder nowhere"),
        ("empty", "empty holds nothing of small"),
        ("out/public/small", "out/public/small is a public folder"),
        ("out/public", "out/public is a public folder"),
    ):
        lines = [f"error: --auditor: {problem}; {remedy}"]
        assert told(capsys, "verify", "out/public/small", "--auditor", wrong) == (2, lines)
    lines = ["error: FOLDER: out/auditor/small holds no release; name OUT, or OUT/public/RELEASE"]
    assert told(capsys, "verify", "out/auditor/small") == (2, lines)
    with pytest.raises(SystemExit) as ended:
        main(["verify", "out", "--require", "none"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "small  VERIFIED\n"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The status, the output and the errors of a call."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def test_a_report_is_found_from_its_page_and_from_an_output_folder(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert shown(capsys, *RUN, "--out", "out")[0] == 0
    whole = shown(capsys, "report", "out/public/small")
    assert whole[0] == 0
    for place in ("out", "out/public", "out/public/small/report.html"):
        assert shown(capsys, "report", place) == whole
    shutil.copytree("out/public/small", "out/public/other")
    remedy = "name OUT/public/RELEASE"
    sentence = f"error: PUBLIC: out holds several releases: other, small; {remedy}"
    assert told(capsys, "report", "out") == (2, [sentence])
    sentence = f"error: PUBLIC: out/auditor/small is an auditor's folder; {remedy}"
    assert told(capsys, "report", "out/auditor/small") == (2, [sentence])


@pytest.mark.parametrize("words", [["ledger"], ["ledger", "key"], ["help"], ["help", "run"]])
def test_help_is_shown_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """Not as one line of an error, and as ``-h`` shows it."""
    status, out, err = shown(capsys, *words)
    own = [word for word in words if word != "help"]
    assert (status, err) == (0, "")
    assert out.startswith(" ".join(["Usage: dp-release", *own]))
    assert len(out.splitlines()) > 8
    for flag in ("-h", "--help"):
        assert shown(capsys, *own, flag)[1].strip() == out.strip()


def test_a_refusal_of_a_rehearsal_stands_once(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    plain = yaml.safe_load((folder / "spec.yaml").read_text("utf-8"))
    columns = plain["tables"]["rows"]["columns"]
    columns["plce"] = columns["place"]
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    status, out, err = shown(capsys, "check", "spec.yaml")
    sentence = "rows.parquet has no such column; did you mean 'place'? it has "
    assert status == 2
    assert (out.count(sentence), err.count(sentence)) == (0, 1)
    assert out.endswith("a run would be refused:\n")
    # Where the list goes elsewhere, the line of a run is the error.
    status, out, err = shown(capsys, "check", "spec.yaml", "--json")
    assert (status, sentence in err) == (2, True)


def test_years_of_nights_are_not_released_without_a_ledger_or_a_question(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    words = ("catch-up", NIGHTLY, "--since", "2012-01-01", "--out", "out")
    status, lines = told(capsys, *words)
    assert status == 2
    counted = re.fullmatch(
        r"error: --since: ([\d,]+) periods are due, from 2012-01-01 to (\S+), and no ledger counts "
        r"their charges; create one: dp-release ledger init; or name a later period, or how many "
        r"to release: --most N",
        lines[0],
    )
    assert counted is not None, lines
    days = (datetime.date.fromisoformat(counted[2]) - datetime.date(2012, 1, 1)).days + 1
    assert counted[1] == f"{days:,}"
    ended, out, err = shown(capsys, *words, "--most", "2")
    assert ended == 0
    assert f"{counted[1]} periods are due, from 2012-01-01 to " in err
    assert "releasing the first 2" in err
    assert out.splitlines()[-1] == "nightly.yaml: caught up, 2 released"
    names = sorted(path.name for path in Path("out/public").iterdir())
    assert names == ["evenings-2012-01-01", "evenings-2012-01-02"]


def test_years_of_nights_are_not_served_without_a_ledger_or_a_question(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """The first run would charge them all, at night; no server is asked before."""
    words = ("serve", NIGHTLY, "--cron", "15 3 * * *", "--since", "2012-01-01", "--out", "out")
    status, lines = told(capsys, *words)
    assert status == 2
    assert re.match(r"error: --since: [\d,]+ periods are due, from 2012-01-01 to ", lines[0])
    assert lines[0].endswith("or how many to release: --most N")
    assert not Path("out").exists()


def test_all_faults_of_a_spec_are_told_of_at_once(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    plain = yaml.safe_load((folder / "spec.yaml").read_text("utf-8"))
    shape, meaning = copy.deepcopy(plain), copy.deepcopy(plain)
    shape["release"]["id"] = "A"
    shape["budget"]["epsilon"] = "-1"
    shape["queries"][0]["domian"] = shape["queries"][0].pop("domain")
    (folder / "spec.yaml").write_text(yaml.safe_dump(shape, sort_keys=False), "utf-8")
    status, lines = told(capsys, "plan", "spec.yaml")
    assert (status, lines) == (
        2,
        [
            f"error: release.id: found 'A'; write {ID}, such as 'a'",
            "error: budget.epsilon: found '-1'; write a number of at least 0",
            "error: queries[0].domian: unknown field; did you mean 'domain'?",
        ],
    )
    meaning["keys"]["plaec"] = ["a"]
    meaning["queries"][0]["of"] = "kid"
    meaning["queries"][0]["by"] = ["plac"]
    meaning["queries"][1]["where"] = "whh > 1"
    meaning["queries"][2]["table"] = "row"
    (folder / "spec.yaml").write_text(yaml.safe_dump(meaning, sort_keys=False), "utf-8")
    status, lines = told(capsys, "plan", "spec.yaml")
    assert (status, lines) == (
        2,
        [
            f"error: keys.plaec: 'plaec' is not there; did you mean 'place'? {COLUMNS}",
            f"error: queries[0].by[0]: 'plac' is not there; did you mean 'place'? {COLUMNS}",
            f"error: queries[0].of: 'kid' is not there; did you mean 'kind'? {COLUMNS}",
            "error: queries[2].table: 'row' is not there; did you mean 'rows'? known are rows",
            f"error: queries[1].where: 'whh' is not there; did you mean 'wh'? {COLUMNS}",
        ],
    )


def test_of_many_faults_the_first_twenty_are_shown(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = folder / "spec.yaml"
    plain = yaml.safe_load(path.read_text("utf-8"))
    plain["privacy"]["fixed"] = [f"column_{place}" for place in range(23)]
    path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    status, lines = told(capsys, "plan", "spec.yaml")
    assert (status, len(lines)) == (2, 21)
    assert lines[19].startswith("error: privacy.fixed[19]: 'column_19' is not there; ")
    assert lines[20] == "error: and 3 more"


def test_the_end_of_a_run_says_what_a_curator_asks_next(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "spec.yaml", "--out", "out"])
    assert ended.value.code == 0
    shown = capsys.readouterr()
    # Nothing of the work on a pipe, where nobody watches it.
    assert shown.err == ""
    lines = shown.out.splitlines()
    heads = [line.split("  ")[0].strip() for line in lines]
    assert heads == [
        "published",
        "auditor",
        "charged",
        "left",
        "answers",
        "",
        "",
        "checked",
        "report",
        "verify",
    ]
    assert lines[3] == "left       no ledger keeps account of it; dp-release ledger init"
    confidential = "the_mode: its error is confidential: out/auditor/small/the_mode.json"
    assert lines[4] == f"answers    {confidential}"
    assert Path(confidential.rsplit(": ", 1)[-1]).is_file()
    assert lines[-1] == (
        "verify     dp-release verify out/public/small --auditor out/auditor/small"
    )


def test_the_end_of_a_run_says_how_near_answers_by_a_statistic_are(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    noise = {"noise": "on_statistic", "sensitivity": "global"}
    Small(ROWS, [query("mode") | noise]).write(folder)
    status, out, _ = shown(capsys, *RUN, "--out", "out")
    assert status == 0
    sentence = r"answers    the_mode: a category that leads every other by [\w ,]+ is published in "
    assert re.search(sentence + "at least 95 of 100 cases", out)


def test_verbose_shows_each_stage_with_its_time_wherever_it_stands(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    from release.street import STREET

    for out, words in (("a", ["-v", "run"]), ("b", ["run", "--verbose"])):
        with pytest.raises(SystemExit) as ended:
            main([*words, "spec.yaml", "--out", out])
        assert ended.value.code == 0
        lines = capsys.readouterr().err.splitlines()
        assert all(re.match(r" *\d+\.\d s  ", line) for line in lines)
        left_out = ("share", "measure", "note")
        expected = [stage.sentence for stage in STREET if stage.name not in left_out]
        assert [line.split(" s  ")[1] for line in lines] == expected


def test_help_has_groups_and_whole_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    heads = re.findall(r"^([A-Z].*):$", shown, re.MULTILINE)
    assert heads == ["Options", "Publish", "Check", "Look", "Operate", "Ledger and keys"]
    assert "..." not in shown.partition("Publish:")[2]


def test_an_option_is_described_once() -> None:
    """One name and one meaning: the same help wherever an option stands."""
    import typer

    from release.cli.main import app

    helps: dict[str, set[str]] = {}
    waiting: list[Any] = [typer.main.get_command(app)]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        for param in command.params:
            if param.param_type_name == "option":
                helps.setdefault(param.opts[0], set()).add(str(param.help))
    several = {name for name, texts in helps.items() if len(texts) > 1}
    assert several == OWN_MEANINGS


OWN_MEANINGS = {"--out", "--since"}
"""Two have another meaning somewhere: the new spec of init, and an older checkpoint."""
