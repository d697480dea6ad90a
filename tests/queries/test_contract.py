"""Every kind of query keeps what the engine and the guarantee rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from release.queries.kinds.count import Count
from release.spec import kinds
from tests.conftest import PROJECT
from tests.docs.blocks import blocks
from tests.queries.contract import check_steps_hold, check_sums_add_up, spec_text, wish

BINS = {"low": 0, "high": 2000, "count": 8}
LEVELS = {"noise": "on_answer", "of": "wh", "clamp": [0, 2000], "bins": BINS}
WISHES = [
    wish("count", name="rows", domain={"ordered": {"min": 0, "max": 9}}),
    wish("count", name="homes", of="home", domain={"ordered": {"min": 0, "max": 4}}),
    wish("mode", noise="on_answer", of="hour", domain={"cyclic": 24}),
    wish("mode", name="weighted", of="hour", weight="wh", clamp=[0, 900], domain={"cyclic": 24})
    | {"noise": "on_answer"},
    wish("sum", **LEVELS),
    wish("sum", name="on_grid", noise="on_answer", of="kwh", clamp=[0, 2000])
    | {"grid": {"low": 0, "high": 6000, "step": 1000, "scale": "0.001"}},
    *(wish(kind, **LEVELS) for kind in ("mean", "min", "max", "median")),
    wish("tuple", of=["the_mode", "homes"], mechanism="modular"),
]
OF_HOMES = [wish("per_unit", by=["home"], of="wh", domain={"ordered": {"min": 0, "max": 9}})]
ON_STATISTIC = {"top", "quantiles"}
"""The noise of these is on the sums themselves: tests/queries/test_on_statistic.py tries them."""
RUNS_AGAIN = {"sql"}


def test_every_kind_is_tried() -> None:
    tried = {one["kind"] for one in [*WISHES, *OF_HOMES]}
    assert tried | ON_STATISTIC | RUNS_AGAIN == set(kinds.KINDS)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove", "attribute"])
@pytest.mark.parametrize("check", [check_sums_add_up, check_steps_hold])
@pytest.mark.parametrize("seed", range(2))
def test_a_kind_keeps_its_contract(
    check: Callable[[Path, str, int], None], relation: str, seed: int, tmp_path: Path
) -> None:
    check(tmp_path, spec_text(relation, OF_HOMES if relation == "attribute" else WISHES), seed)


def test_a_kind_that_breaks_its_contract_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a unit has two rows is no sum; and one row can move a count of rows by one."""

    def has_two(kind: Count, profiles, unit, item, total, rows) -> None:  # type: ignore[no-untyped-def]
        profiles[unit, 0] = rows >= 2

    text = spec_text("replace_one", WISHES[:1])
    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="rows"):
        patch.setattr(Count, "fill", has_two)
        for seed in range(5):
            (tmp_path / f"fill-{seed}").mkdir()
            check_sums_add_up(tmp_path / f"fill-{seed}", text, seed)
    with monkeypatch.context() as patch, pytest.raises(AssertionError, match="rows"):
        patch.setattr(Count, "steps", lambda *_: np.arange(2))
        for seed in range(20):
            (tmp_path / f"steps-{seed}").mkdir()
            check_steps_hold(tmp_path / f"steps-{seed}", text, seed)


NEWCOMER = """
import json, sys
from pathlib import Path
import release.queries.kinds as package
from release.spec.kinds import KINDS
from tests.queries.contract import check_steps_hold, check_sums_add_up, random_rows, spec_text
from tests.queries.contract import table_of, wish
from random import Random

place = Path(sys.argv[1])
package.__path__.append(str(place / "kinds"))
exec((place / "entry.py").read_text("utf-8"))
text = spec_text("add_remove", [wish("threshold", at_least=4)])
answers = []
for seed in range(6):
    folder = place / str(seed)
    folder.mkdir()
    check_sums_add_up(folder, text, seed)
    check_steps_hold(folder, text, seed)
    homes = [random_rows(Random(seed), f"h{number}") for number in range(5)]
    (run,) = table_of(folder / "asked", text, homes)
    rows = [row["circuit"] for home in homes for row in home]
    asked = [int(rows.count(circuit) >= 4) for circuit in ("north", "south")]
    answers.append([run.codes.tolist(), asked])
print(json.dumps(answers))
"""


def test_the_kind_of_the_page_keeps_its_contract_and_answers_as_asked(tmp_path: Path) -> None:
    """Its two blocks, in a process that has read no spec before."""
    module, entry, *_ = blocks("design/extending", "python")
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "threshold.py").write_text(module, "utf-8")
    (tmp_path / "entry.py").write_text(entry, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", NEWCOMER, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert all(given == asked for given, asked in answers)
    assert len({str(given) for given, _ in answers}) > 1
