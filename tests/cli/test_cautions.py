"""What promises little, and what will not add up: plan, check, run and report say it alike."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import release
from release.cli.main import main
from tests.small import Row, Small, query

ROWS: list[Row] = []
for _number in range(30):
    ROWS.append(
        {
            "unit": f"u{_number % 10}",
            "place": "ab"[_number % 2],
            "day": 1 + _number % 2,
            "kind": _number % 4,
            "wh": _number % 9,
        }
    )


def said(capsys: pytest.CaptureFixture[str], *words: Path | str) -> str:
    """What a command prints that ends well."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    assert ended.value.code == 0
    return capsys.readouterr().out


def cautions_of(text: str) -> list[str]:
    found = []
    for line in text.splitlines():
        if line.startswith("caution: "):
            found.append(line.removeprefix("caution: "))
    return found


def counted(epsilon: str, delta: str, **told: Any) -> dict[str, Any]:
    definition = "pure" if delta == "0" else "approximate"
    claimed = {"definition": definition, "epsilon": epsilon, "delta": delta}
    return query("count", guarantee=claimed, sensitivity="global", **told)


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        ("10", "0", []),
        ("1", "0.00009", []),
        ("10.5", "0", [r"ε = 10\.5 is above 10"]),
        (
            "1",
            "0.001",
            [r"δ = 0\.00\d+ allows the guarantee to fail one time in 1,\d{3}, for each"],
        ),
        (
            "12",
            "0.1",
            ["ε = 12 is above 10", r"δ = 0\.\d+ allows the guarantee to fail one time in"],
        ),
    ],
)
def test_three_commands_say_alike_what_promises_little(
    epsilon: str,
    delta: str,
    expected: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = counted(epsilon, delta, by=[])
    if delta != "0":
        # Charged is the δ that this noise needs, a little less than the declared one.
        asked["mechanism"] = "gaussian_clamped"
    spec = Small(ROWS, [asked], max_rows_per_unit=1).write(tmp_path)
    planned = cautions_of(said(capsys, "plan", spec))
    checked = cautions_of(said(capsys, "check", spec))
    ran = cautions_of(said(capsys, "run", spec, "--out", tmp_path / "out"))
    assert planned == checked == ran
    assert len(planned) == len(expected)
    for caution, beginning in zip(planned, expected, strict=True):
        assert re.match(beginning, caution)
    plain = json.loads(said(capsys, "plan", spec, "--json"))
    assert plain["cautions"] == planned


def test_the_report_promises_what_its_epsilon_keeps(tmp_path: Path) -> None:
    pages = {}
    for epsilon in ("1", "12"):
        folder = tmp_path / epsilon
        folder.mkdir()
        spec = Small(ROWS, [counted(epsilon, "0", by=[])], max_rows_per_unit=1).write(folder)
        public = release.run(str(spec), str(folder / "out")).public
        pages[epsilon] = (public / "report.html").read_text("utf-8")
    # Bayes: even odds become e to 1 at ε = 1, which is 73.1 %, rounded up.
    assert "as likely as not is at most 73.2 % sure after all of them." in pages["1"]
    assert "at ε = 12 the noise rules out next to nothing" in pages["12"]


def test_distinct_units_in_several_cells_are_not_added_without_a_word(tmp_path: Path) -> None:
    units = counted("4", "0", name="units", of="unit")
    rows = counted("4", "0", name="rows")
    settled = counted("4", "0", name="settled", of="unit", max_rows_per_unit=1)
    spec = Small(ROWS, [units, rows, settled]).write(tmp_path)
    public = release.run(str(spec), str(tmp_path / "out")).public
    with pytest.warns(UserWarning, match="one unit may be counted in several cells"):
        release.estimate(public, "units").sum()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release.estimate(public, "rows").sum()
        release.estimate(public, "settled").sum()
    page = (public / "report.html").read_text("utf-8")
    assert page.count("may be counted in several cells") == 1


def test_units_of_a_fixed_place_add_up(tmp_path: Path) -> None:
    rows = [row | {"place": "ab"[int(str(row["unit"])[1:]) % 2]} for row in ROWS]
    spec = Small(rows, [counted("4", "0", of="unit")], fixed=["place"]).write(tmp_path)
    public = release.run(str(spec), str(tmp_path / "out")).public
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release.estimate(public, "the_count").sum()


def test_two_tabulations_of_the_same_rows_are_said_to_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "areas.csv").write_text("county,tract\na,a1\na,a2\nb,b1\n", "utf-8")
    (tmp_path / "rows.csv").write_text("unit,tract,sex,own\nu1,a1,f,yes\nu2,b1,m,no\n", "utf-8")
    plain = Small(ROWS, [], max_rows_per_unit=1).plain("rows.csv")
    columns = dict.fromkeys(["unit", "tract", "sex", "own"], "string")
    plain["tables"]["rows"]["columns"] = columns
    hierarchy = {"file": "areas.csv", "levels": ["county", "tract"]}
    tabulations = []
    for column, categories in (("sex", ["f", "m"]), ("own", ["yes", "no"])):
        tabulations.append(
            {
                "name": f"by_{column}",
                "table": "rows",
                "hierarchy": hierarchy,
                "attributes": {column: categories},
                "publish": {"county": [[], [column]], "tract": [[]]},
                "guarantee": {"definition": "pure", "epsilon": "1"},
            }
        )
    del plain["keys"], plain["queries"]
    plain["budget"] = plain["budget"] | {"epsilon": "4", "delta": "0"}
    plain |= {"tabulations": tabulations, "privacy": plain["privacy"] | {"neighbors": "add_remove"}}
    spec = tmp_path / "spec.yaml"
    # As JSON, which is YAML too: an alias for what stands twice is refused.
    spec.write_text(json.dumps(plain), "utf-8")
    (planned,) = cautions_of(said(capsys, "plan", spec))
    (ran,) = cautions_of(said(capsys, "run", spec, "--out", tmp_path / "out"))
    assert planned == ran
    assert planned.startswith("by_sex and by_own count the same rows")
    assert planned in (tmp_path / "out/public/small/report.html").read_text("utf-8")
    # With another condition they are of other rows, and nobody expects one total.
    tabulations[1]["where"] = "sex = 'f'"
    spec.write_text(json.dumps(plain), "utf-8")
    assert cautions_of(said(capsys, "plan", spec)) == []
