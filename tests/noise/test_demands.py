"""Priors, the worst true answer and constraints, from the spec to a verified release."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from release.cli.main import main
from release.errors import SpecError
from release.exact.channel import Channel, answer_costs
from release.exact.domain import Topology
from release.exact.losses import error_costs
from release.exact.mechanism import Mechanism
from release.noise.families import Solvers
from release.noise.select import choose
from release.noise.stage import asked_of
from release.queries.read import parse_spec
from release.queries.registry import sensitivity_without_data
from release.street import run_release
from release.verification.verifier import verify
from tests.small import UNSIGNED, Row, Small, query
from tests.small import mechanism_of as public_mechanism

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": 0} for i in range(20)
]
SIZE = 6
PRIOR = [Fraction(k, 48) for k in (1, 1, 1, 5, 20, 20)]
TEXTS = list(map(str, PRIOR))
WEAK = {"definition": "approximate", "epsilon": "1", "delta": "0.05"}
NAMES = {"error_rate": 0, "absolute": 1, "squared": 2}


def counted(**fields: Any) -> dict[str, Any]:
    return query("count", name="asked", **({"sensitivity": "global", "loss": "absolute"} | fields))


def mode(**fields: Any) -> dict[str, Any]:
    return query("mode", name="asked", **({"sensitivity": "global"} | fields))


def released(folder: Path, plain: dict[str, Any], rows: int = 1) -> Path:
    folder.mkdir(exist_ok=True)
    spec = Small(ROWS, [plain], max_rows_per_unit=rows)
    return run_release(spec.write(folder), folder / "out").public


def mechanism_of(public: Path) -> Mechanism:
    mechanism: Mechanism = public_mechanism(public, "asked")
    return mechanism


def losses_of(mechanism: Mechanism, costs: Any) -> list[float]:
    """The expected cost at each true answer, from the rows."""
    rows = [mechanism.probabilities(q) for q in range(mechanism.answers)]
    return [float(row @ cost) for row, cost in zip(rows, costs, strict=True)]


def checked(public: Path) -> None:
    assert verify(public, None, UNSIGNED).status == 0


@pytest.mark.parametrize("guarantee", [{"definition": "pure", "epsilon": "1"}, WEAK])
@pytest.mark.parametrize("mechanism", ["integer", "channel", "modular", "geometric_clamped"])
@pytest.mark.parametrize("demand", [{"prior": TEXTS}, {"objective": "worst_case"}])
def test_what_a_plan_calls_the_loss_is_that_of_the_published_law(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    guarantee: dict[str, str],
    mechanism: str,
    demand: dict[str, Any],
) -> None:
    """Against the rows: Σ π(q)·loss(q), or the largest loss; and it is not the uniform mean.

    But for the channel of the worst case, which makes all losses equal.
    """
    plain = counted(mechanism=mechanism, guarantee=guarantee, **demand)
    public = released(tmp_path, plain)
    losses = losses_of(mechanism_of(public), answer_costs(1, SIZE))
    expected = (
        max(losses) if "objective" in demand else float(np.dot(losses, list(map(float, PRIOR))))
    )
    stated = float(choose(asked_with(plain), mechanism, Solvers()).objective)
    assert stated == pytest.approx(expected, rel=1e-8)
    is_equal = mechanism == "channel" and "objective" in demand
    assert (abs(stated - np.mean(losses)) < 1e-6) == is_equal
    checked(public)


def asked_with(plain: dict[str, Any], rows: int = 1) -> Any:
    spec = parse_spec(json.dumps(Small(ROWS, [plain], max_rows_per_unit=rows).plain()).encode())
    (asked,) = spec.queries
    return asked_of(asked, sensitivity_without_data(spec, asked))


@pytest.mark.parametrize("loss", list(NAMES))
def test_with_a_prior_remapped_noise_is_as_good_as_the_best_channel(loss: str) -> None:
    """Ghosh et al. 2009: for neighbors one apart, any prior; the channel is a program's optimum."""
    question = asked_with(counted(prior=TEXTS, loss=loss))
    noise, channel = choose(question, "integer"), choose(question, "channel")
    assert float(noise.objective) == pytest.approx(float(channel.objective), rel=1e-7)
    uniform = choose(asked_with(counted(loss=loss)), "integer").mechanism
    assert noise.objective < Channel.of_mechanism(uniform).objective(question.loss, question.domain)


@pytest.mark.parametrize("guarantee", [{"definition": "pure", "epsilon": "1"}, WEAK])
def test_the_worst_case_is_a_little_smaller_than_that_of_the_best_mean(
    guarantee: dict[str, str],
) -> None:
    worst = asked_with(counted(objective="worst_case", guarantee=guarantee))
    mean = asked_with(counted(guarantee=guarantee))
    best = choose(worst)
    assert best.objective < choose(mean).mechanism.objective(worst.loss, worst.domain)
    assert best.is_within()
    assert best.name == "channel"
    costs = answer_costs(1, SIZE)
    assert float(best.objective) == pytest.approx(max(losses_of(best.mechanism, costs)), rel=1e-9)


def test_without_an_order_the_worst_case_is_the_mean() -> None:
    mean, worst = mode(loss="squared"), mode(loss="squared", objective="worst_case")
    assert choose(asked_with(mean)).objective == choose(asked_with(worst)).objective


def test_modular_noise_for_a_prior_claims_nothing_of_other_mechanisms() -> None:
    prior = ["0.7", "0.1", "0.1", "0.1"]
    design = choose(asked_with(mode(prior=prior, loss="squared")))
    assert (design.name, design.bound_of.value) == ("modular", "modular noise")
    costs = error_costs("squared", Topology.CYCLIC, 4)
    by_noise = np.array(list(map(float, prior))) @ costs
    assert float(design.objective) == pytest.approx(
        float(by_noise @ design.mechanism.row(0)) / 2**62
    )


SHAPED = {
    "zero_mean": lambda f: abs(sum((k if k < 4 else k - 7) * w for k, w in enumerate(f))),
    "mean_square <= 2": lambda f: sum(min(k, 7 - k) ** 2 * w for k, w in enumerate(f)) - 2,
    "equal 1 -3 2": lambda f: max(f[1], f[2], f[4]) - min(f[1], f[2], f[4]),
    "monotone": lambda f: max(
        f[b] - f[a] for a in range(7) for b in range(7) if min(a, 7 - a) < min(b, 7 - b)
    ),
}


@pytest.mark.parametrize("text", list(SHAPED))
def test_a_constraint_shapes_the_pmf_and_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """On a ring of 7 with differences of 2 allowed, whose best pmf is a comb for some of them."""
    plain = query(
        "count",
        name="asked",
        sensitivity="global",
        loss="noise_squared" if text == "zero_mean" else "squared",
        domain={"ordered": {"min": 0, "max": 6}},
        mechanism="modular",
        guarantee={"definition": "approximate", "epsilon": "1", "delta": "0.1"},
    )
    public = released(tmp_path / "shaped", plain | {"constraints": [text]}, 2)
    held = mechanism_of(public).probabilities(0).tolist()
    assert SHAPED[text](held) <= 1e-11
    checked(public)


def test_constraints_that_leave_no_pmf_are_refused() -> None:
    question = asked_with(counted(mechanism="modular", constraints=["mean_square <= 0.001"]))
    with pytest.raises(Exception, match="and the constraints"):
        choose(question, "modular", Solvers())


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        (counted(prior=TEXTS[1:]), "prior: 5 probabilities for 6 answers"),
        (counted(prior=["0.1"] * 6), "prior: a prior needs probabilities of at least 0 that add"),
        (counted(prior=TEXTS, objective="worst_case"), "keep one of prior and objective"),
        (counted(objective="median"), "objective: found 'median'"),
        (counted(loss="noise_squared", objective="worst_case", mechanism="modular"), "objective"),
        (mode(loss={"table": ["0", "1", "2", "1"]}, prior=["0.25"] * 4), "a table of costs"),
        (counted(constraints=["zero_mean"]), "write mechanism: modular"),
        (counted(mechanism="modular", constraints=["zero"]), "constraints[0]: found 'zero'; write"),
        (counted(mechanism="modular", constraints=["equal 1 9"]), "noise is within ±5"),
        (counted(mechanism="modular", constraints=["mean_square <= x"]), "found 'x'"),
        (counted(parameters={"reach": "2"}), "'best' has none; leave it out"),
        (counted(share="1", guarantee=None, prior=TEXTS), "with a guarantee of its own"),
        (mode(noise="on_statistic", prior=["0.25"] * 4), "is for noise on the answer"),
    ],
)
def test_a_demand_that_does_not_fit_is_refused(plain: dict[str, Any], told: str) -> None:
    given = {name: value for name, value in plain.items() if value is not None}
    text = json.dumps(Small(ROWS, [given], max_rows_per_unit=1).plain()).encode()
    with pytest.raises(SpecError) as refused:
        parse_spec(text)
    assert told in str(refused.value)


def test_a_plan_says_over_what_the_loss_is_a_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = [
        counted(prior=TEXTS),
        counted(objective="worst_case") | {"name": "worst"},
        counted(mechanism="qin_relaxed") | {"name": "named"},
    ]
    path = Small(ROWS, queries, max_rows_per_unit=1).write(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["-v", "plan", str(path)])
    told = capsys.readouterr().out
    assert "asked: the loss is a mean under the prior of the spec, the other means are not" in told
    assert "worst: the loss is that at the worst true answer" in told
    # A paper's noise is planned where the spec names it, and nowhere else.
    assert told.count("qin_relaxed *") == told.count("qin_relaxed") == 1
    with pytest.raises(SystemExit, match="0"):
        main(["compare", str(path), "named"])
    assert "qin_relaxed" in capsys.readouterr().out
