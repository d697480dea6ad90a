"""A kind of query, a mechanism and a paper's noise from outside: a file and a line each.

What CONTRIBUTING.md tells somebody who writes a first kind or a first mechanism, done in a folder
of its own and in a process of its own, from the plan to the report.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import PROJECT
from tests.small import Row, Small, query

ROWS: list[Row] = [{"unit": f"u{i}", "place": "a", "day": 1, "kind": 0, "wh": 0} for i in range(5)]

KIND = '''
"""exists: whether a cell has any row."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from release.exact.domain import AnswerDomain, Topology
from release.queries.base import SummedQuery
from release.spec.query import PlainQuery


class ExistsQuery(PlainQuery, SummedQuery):
    kind: Literal["exists"] = Field(description="the kind of query")

    @property
    def answers(self):
        return AnswerDomain(Topology.NOMINAL, ("no", "yes"))

    def domain_record(self):
        return {"nominal": ["no", "yes"]}

    def sums(self):
        return Exists()


@dataclass(frozen=True)
class Exists:
    eligible_sql, item_sql, value_sql = "true", "0", "1"
    unit_sql, items, width = 'sum("#value")', 1, 1

    def fill(self, profiles, unit, item, total, rows):
        profiles[unit, 0] = total

    def decide(self, sums):
        return np.asarray(sums[:, 0] > 0, dtype=np.int64)

    def prepared(self, entering):
        return entering

    def reached(self, sums, leaving, entering):
        return self.decide((sums - leaving[:, None] + entering[None]).reshape(-1, 1))

    def reached_in_domain(self, sums, leaving, rows):
        return np.arange(2)

    def steps(self, rows, relation):
        return np.arange(2)
'''

MECHANISM = '''
"""coin: the true answer, or with a published chance any answer at all."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from pydantic import Field

from release.exact.mechanism import Mechanism
from release.exact.numbers import exp_below_any_verifier
from release.exact.sensitivity import Sensitivity
from release.noise.design import Design
from release.records.mechanisms import MechanismRecord
from release.records.models import Digits


@dataclass(frozen=True)
class Coin(Mechanism):
    family = "coin"

    size: int
    wrong: int
    total: int = 2**40

    @property
    def answers(self):
        return self.size

    def row(self, code):
        weights = np.full(self.size, self.wrong, dtype=np.int64)
        weights[code] = self.total - (self.size - 1) * self.wrong
        return weights


class CoinRecord(MechanismRecord):
    mechanism: Literal["coin"] = Field(description="a coin")
    wrong: Digits = Field(description="the weight of each wrong answer")

    @property
    def comparisons(self):
        return self.group[0] ** 2

    @property
    def sentence(self):
        return f"A coin that says one of {self.group[0]} answers"

    def to_mechanism(self):
        return Coin(self.group[0], int(self.wrong), int(self.total))

    def to_sensitivity(self):
        return Sensitivity.everything(self.to_group())

    def to_group(self):
        from release.exact.domain import Group

        return Group(tuple(self.group))

    @classmethod
    def own_fields(cls, mechanism: Any, sensitivity: Sensitivity):
        return {"wrong": str(mechanism.wrong)}


class CoinFamily:
    def fits(self, name, asked):
        return True

    def bounds(self, asked):
        return False

    def design(self, name, asked, solvers):
        size, ratio = asked.domain.size, exp_below_any_verifier(asked.guarantee.epsilon)
        wrong = -(-2**40 // (size - 1 + ratio))
        mechanism = Coin(size, int(wrong) + 1)
        everything = Sensitivity.everything(asked.domain.group)
        return Design(
            mechanism, everything, asked.guarantee, asked.loss, "closed form", name=name,
            objective=mechanism.expected_loss(asked.loss, asked.domain), is_named=True,
        )


FAMILY = CoinFamily()
'''

LAW = '''
"""level: as much mass on each of -reach .. reach, for neighbors one apart."""

from release.exact.integers.noise import IntegerNoise


def law(requirement):
    reach = int(requirement.parameters.get("reach", 1))
    weight = 2**62 // (2 * reach + 1)
    runs = ((reach, weight), (1, 2**62 - 2 * reach * weight), (reach, weight))
    return requirement.clamped(IntegerNoise(-reach, runs))
'''

DRIVER = """
import json, sys
from pathlib import Path

import release
from release.spec.kinds import KINDS
from fractions import Fraction

from release.spec.mechanisms import MECHANISMS, NamedMechanism, Parameter

KINDS["exists"] = {"": "my_kind:ExistsQuery"}
MECHANISMS["coin"] = NamedMechanism("coin", "my_mechanism:FAMILY", "my_mechanism:CoinRecord")
MECHANISMS["level"] = NamedMechanism(
    "level", "release.noise.families:BASELINES", law="my_law:law", needs_order=True,
    parameters=(Parameter("reach", Fraction(1), Fraction(9), is_whole=True),),
)

plan = release.plan("spec.yaml")
published = release.run("spec.yaml", "out")
verdict = release.verify(published.public, require="none")
opened = release.open(published.public)
print(json.dumps({
    "plan": [[one.query.name, one.chosen.mechanism, len(one.others)] for one in plan.queries],
    "proved": verdict.proved,
    "complete": verdict.complete,
    "answers": {name: table.to_pandas()["answer"].tolist() for name, table in opened.items()},
    "report": (published.public / "report.html").read_text("utf-8"),
    "estimates": len(release.estimate(published.public, "toy").cells),
}))
"""


def test_a_kind_and_a_mechanism_from_a_folder_go_down_the_whole_street(tmp_path: Path) -> None:
    queries = [
        query("count", name="toy", sensitivity="global", mechanism="coin") | {"kind": "exists"},
        query("mode", name="known", sensitivity="global", mechanism="coin"),
        query("count", name="both", sensitivity="global") | {"kind": "exists"},
    ]
    for plain in queries:
        if plain["kind"] == "exists":
            del plain["domain"]
        plain["guarantee"] = {"definition": "pure", "epsilon": "20"}
    level = query("count", name="levelled", sensitivity="global", mechanism="level")
    level["guarantee"] = {"definition": "approximate", "epsilon": "1", "delta": "0.25"}
    queries.append(level | {"parameters": {"reach": "2"}, "max_rows_per_unit": 1})
    Small(ROWS, queries).write(tmp_path)
    (tmp_path / "my_kind.py").write_text(KIND, "utf-8")
    (tmp_path / "my_mechanism.py").write_text(MECHANISM, "utf-8")
    (tmp_path / "my_law.py").write_text(LAW, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=tmp_path,
        env={
            "PYTHONPATH": f"{tmp_path}:{PROJECT}",
            "DP_RELEASE_CACHE": "",
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one[:2] for one in told["plan"][:2]] == [["toy", "coin"], ["known", "coin"]]
    # Beside modular noise and the baselines the coin is compared for the query that names best.
    assert told["plan"][2][2] >= 2
    assert told["complete"]
    assert sum("satisfies pure ε = 20" in line for line in told["proved"]) == 3
    # ε = 20 is wrong once in 10⁸ cells: of the two places only the first has rows.
    assert told["answers"]["toy"] == ["yes", "no"]
    assert told["estimates"] == 2
    assert "A coin that says one of 2 answers" in told["report"]
    # Each of five integers has a fifth of the mass, and one end of them is the δ.
    assert told["plan"][3][:2] == ["levelled", "level"]
    assert sum("satisfies approximate ε = 1, δ = 0.25" in line for line in told["proved"]) == 1
