"""``dp-release report``: what a release says, read from its public folder and nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from release.analysis.summary import summarise
from release.cli.main import app
from release.errors import VerificationError
from release.street import run_release
from tests.small import Row, Small, joint, mechanism_of, part, query
from tests.verifier.made import edit, seal

ROWS: list[Row] = [
    {"unit": f"quagzil-{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i}
    for i in range(9)
]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("summary")
    queries = [
        query("count", sensitivity="global", mechanism="modular"),
        query("count", name="by_channel", sensitivity="global", loss="squared"),
        query("mode"),
        query(
            "mode",
            name="unordered",
            sensitivity="global",
            of="place",
            domain={"nominal": ["a", "b"]},
        ),
        joint("rows_here", "commonest", name="jointly", sensitivity="global"),
        part("rows_here", "count"),
        part("commonest", "mode"),
    ]
    return run_release(Small(ROWS, queries).write(place), place / "out").public


def shown(*words: str) -> str:
    done = CliRunner().invoke(app, ["report", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_it_says_what_the_files_say(public: Path) -> None:
    plain: dict[str, Any] = json.loads(shown(str(public), "--json"))
    record = json.loads((public / "release.json").read_bytes())
    total = record["made"]["total"]
    assert {name: plain["guarantee"][name] for name in total} == total
    names = ["the_count", "by_channel", "the_mode", "unordered", "jointly"]
    assert [one["query"] for one in plain["queries"]] == names
    for one, told in zip(plain["queries"], record["made"]["queries"], strict=True):
        assert {name: one[name] for name in ("epsilon", "charge", "cells")} == {
            name: told[name] for name in ("epsilon", "charge", "cells")
        }
    # The errors once more, from the weights themselves: 6 answers round a ring.
    law = mechanism_of(public, "the_count").pmf
    weights, total = law.weights.tolist(), law.total
    pairs = [(q, (q + shift) % 6, w) for q in range(6) for shift, w in enumerate(weights)]
    mean = sum(Fraction(abs(a - b) * w, 6 * total) for a, b, w in pairs)
    accuracy = plain["queries"][0]["accuracy"]
    assert abs(Fraction(accuracy["mean_absolute"]) - mean) <= Fraction(1, 10**12)
    assert abs(Fraction(accuracy["p_exact"]) - Fraction(weights[0], total)) <= Fraction(1, 10**12)
    # The law of what was seen is not public, and neither is its error.
    assert plain["queries"][2]["accuracy"] is None


def test_people_see_every_query_in_a_line(public: Path) -> None:
    text = shown(str(public))
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "instance-specific" in lines["guarantee:"]
    assert "in the auditor's folder" in lines["the_mode"]
    assert "channel" in lines["by_channel"]
    assert "pure, ε 1, δ 0" in lines["the_count"]
    assert "codes on average" in lines["jointly"]
    assert lines["the_count"].endswith(" rows on average")
    assert lines["unordered"].endswith("answers without an order")
    assert "quagzil" not in text


def changed(public: Path, folder: Path, change: Callable[[Any], None]) -> Path:
    shutil.copytree(public, folder)
    edit(folder, "release.json", change)
    return folder


def test_a_hostile_folder_neither_steers_the_terminal_nor_the_reader(
    public: Path, tmp_path: Path
) -> None:
    def steer(plain: Any) -> None:
        plain["asked"]["release"]["title"] = "gone\u202e"

    text = shown(str(changed(public, tmp_path / "there", steer)))
    assert all(one.isprintable() for one in text if one != "\n")
    assert "gone?" in text

    def lead_out(plain: Any) -> None:
        plain["made"]["queries"][0]["mechanism"] = "../../elsewhere"

    (tmp_path / "elsewhere.json").write_text("no law")
    with pytest.raises(VerificationError, match="mechanism"):
        summarise(changed(public, tmp_path / "out", lead_out))


def test_what_is_no_release_is_refused_in_one_line(public: Path, tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match=r"SHA256SUMS: file: found nothing"):
        summarise(tmp_path)
    there = changed(public, tmp_path / "there", lambda plain: plain.update(published=7))
    with pytest.raises(VerificationError, match=r"release\.json: published: found 7"):
        summarise(there)
    law = there.with_name("law")
    shutil.copytree(public, law)
    (law / "mechanisms" / "the_count.json").write_bytes(b"{}")
    seal(law)
    with pytest.raises(VerificationError, match=r"mechanisms/the_count\.json: .*family"):
        summarise(law)
