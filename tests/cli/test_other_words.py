"""Words of other tools, and things in each other's place, are answered with what is meant."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import release
from tests.cli.test_main import run
from tests.small import Small, query

WORDS = [
    ("privacy.neighbors", "bounded", "it is called 'replace_one'"),
    ("queries.0.kind", "average", "it is called 'mean'"),
    ("tables.rows.columns.wh", "float", "it is called 'number'"),
    ("queries.0.mechanism", "laplace", "in whole numbers it is 'geometric_clamped', or best"),
    ("queries.0.loss", "mse", "it is called 'squared'"),
    ("queries.0.guarantee", "pure", """write guarantee: {epsilon: "1"}"""),
    ("queries.0.domain.ordered", [0, 9], "write ordered: {min: a, max: b}"),
    ("budget.delta", "1e-6", "write it out: '0.000001'"),
    ("budget.epsilon", "“3”", "these marks are not those of YAML"),
]


@pytest.mark.parametrize(("place", "word", "answer"), WORDS, ids=[str(one[1]) for one in WORDS])
def test_a_word_of_another_tool(place: str, word: object, answer: str, tmp_path: Path) -> None:
    plain = Small([], [query("count")]).plain()
    inner: Any = plain
    *above, last = place.split(".")
    for step in above:
        inner = inner[int(step)] if isinstance(inner, list) else inner[step]
    inner[last] = word
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(plain, allow_unicode=True), "utf-8")
    with pytest.raises(release.SpecError) as caught:
        release.read_spec(path)
    assert answer in str(caught.value)


def test_keys_in_each_others_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, public, out = tmp_path / "dp.key", tmp_path / "dp.pub", tmp_path / "out"
    assert run(capsys, "ledger", "key", "new", key)[0] == 0
    scope = ["--origin", "example.org/a", "--scope", "tests:9:0"]
    status, printed, _ = run(capsys, "ledger", "init", "--out", out, "--key", key, *scope)
    assert status == 0
    public.write_text(next(word for word in printed.split() if word.count("+") >= 2))
    spec = Small([], [query("count")]).write(tmp_path)
    status, _, told = run(capsys, "run", spec, "--out", out, "--key", public)
    assert status == 2
    assert "is a public key; pass the file of the signing key" in told
    assert run(capsys, "run", spec, "--out", out, "--key", key)[0] == 0
    folder = out / "public" / "small"
    status, _, told = run(capsys, "verify", folder, "--trust", key)
    assert status == 2
    assert "--trust: this is a secret key; give its public half" in told
    status, _, told = run(capsys, "verify", folder / "release.json")
    assert status == 2
    assert "is a file; name OUT, or OUT/public/RELEASE" in told


def test_a_text_is_no_path() -> None:
    with pytest.raises(release.SpecError, match="spec: a text of several lines; give the path"):
        release.plan("spec: dp-release/spec/v1\nrelease: {id: a}\n")


def test_a_shell_completes_commands() -> None:
    """As bash asks: with the words in its environment."""
    asked = {
        "_DP_RELEASE_COMPLETE": "complete_bash",
        "COMP_WORDS": "dp-release ver",
        "COMP_CWORD": "1",
    }
    command = [sys.executable, "-c", "from release.cli.main import main; main()"]
    done = subprocess.run(
        command, env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["verify"]
