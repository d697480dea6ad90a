"""The noise of papers that a spec can name: from parameters and prior to a verified release."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import DesignError, SpecError, VerificationError
from release.exact.domain import AnswerDomain, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.losses import LossName, named_loss, prior_loss
from release.exact.numbers import exp_below_any_verifier, exp_bounds
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import Asked
from release.noise.published.qin import integer_noise
from release.noise.published.sadeghi import count_noise
from release.noise.select import candidates, choose, fitting
from release.queries.read import parse_spec
from release.street import run_release
from release.verification.verifier import verify
from research.published.geng import least_cost
from research.published.integer_pmf import IntegerPmf, Tail
from research.published.qin import Input, distance, solve_exact, solve_relaxed
from research.published.sadeghi import count_law
from tests.small import UNSIGNED, Row, Small, query
from tests.verifier.made import edit

LAWS = ("sadeghi_count", "geng_zero_epsilon", "qin_wasserstein", "qin_relaxed")
ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": 0, "wh": 0} for i in range(20)
]
PRIOR = tuple(Fraction(8 if code == 2 else 1, 19) for code in range(12))


def asked(
    epsilon: str = "1",
    delta: str = "0",
    steps: tuple[int, ...] = (1,),
    loss: LossName = LossName.ABSOLUTE,
    prior: tuple[Fraction, ...] | None = None,
    **parameters: Fraction,
) -> Asked:
    size = len(prior) if prior else 12
    kind = Definition.APPROXIMATE if Fraction(delta) else Definition.PURE
    costs = named_loss(loss, Topology.ORDERED, size)
    if prior is not None:
        costs = prior_loss(loss, Topology.ORDERED, prior)
    return Asked(
        AnswerDomain(Topology.ORDERED, range(size)),
        Sensitivity.on_line(size, steps),
        Guarantee(kind, Fraction(epsilon), Fraction(delta)),
        costs,
        loss,
        tuple(parameters.items()),
    )


def noise_of(question: Asked, name: str) -> IntegerNoise:
    mechanism = choose(question, name).mechanism
    assert isinstance(mechanism, IntegerMechanism)
    assert mechanism.low == mechanism.high == ()
    return mechanism.noise


def wide(noise: IntegerNoise) -> list[Fraction]:
    """The masses far beyond the window, one by one."""
    return [noise.mass(k) for k in range(-120, 121)]


def delta_by_events(masses: list[Fraction], step: int, ratio: Fraction) -> Fraction:
    """The hockey-stick δ from the definition; both ends are empty or lie in tails."""
    moved = [Fraction(0)] * step + masses[:-step]
    pairs = [*zip(masses, moved, strict=True), *zip(moved, masses, strict=True)]
    half = len(masses)
    sides = [pairs[:half], pairs[half:]]
    return max(
        sum((max(Fraction(0), a - ratio * b) for a, b in side), Fraction(0)) for side in sides
    )


def test_the_count_noise_of_figure_1() -> None:
    """ε = 2.18, η = 0.8, D = 6: p(±1) = 0.08987, p(±2) = 0.00960, and nothing beyond ±3."""
    epsilon, keep = Fraction("2.18"), Fraction("0.8")
    noise = count_noise(6, keep, exp_bounds(epsilon)[0])
    exact = count_law(6, keep, epsilon)
    assert float(noise.mass(1)) == pytest.approx(0.08987, abs=5e-6)
    assert float(noise.mass(-2)) == pytest.approx(0.00960, abs=5e-6)
    assert noise.high <= 3
    assert sum(noise.mass(k) * k for k in range(-6, 7)) == 0
    for k in range(-6, 7):
        assert abs(noise.mass(k) - exact.noise.mass(k)) <= Fraction(16, 2**62)
    delta = noise.deltas((1,), exp_bounds(epsilon)[0]).approximate
    assert delta == delta_by_events(wide(noise), 1, exp_bounds(epsilon)[0])
    assert abs(delta - exact.delta) < Fraction(1, 10**15)


@given(st.integers(1, 12), st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=50))
@settings(max_examples=30, deadline=None)
def test_count_noise_is_that_of_the_theorem(reach: int, keep: Fraction) -> None:
    exact = count_law(reach, keep, Fraction(1)).noise
    noise = count_noise(reach, keep, exp_bounds(Fraction(1))[0])
    assert noise.is_symmetric
    assert max(abs(noise.mass(k) - exact.mass(k)) for k in range(-reach, reach + 1)) < Fraction(
        1, 2**56
    )


def test_a_fitted_count_takes_the_largest_chance_of_the_truth() -> None:
    """At ε = 1, δ = 0.01; a scan in steps of a thousandth, over D from 4 to 8, allows no more."""
    noise = noise_of(asked(delta="0.01", loss=LossName.ERROR_RATE), "sadeghi_count")
    keeps = [Fraction(k, 1000) for k in range(400, 560)]
    allowed = [
        keep
        for keep in keeps
        if any(count_law(reach, keep, Fraction(1)).delta <= Fraction(1, 100) for reach in (4, 6, 8))
    ]
    assert max(allowed) <= noise.mass(0) + Fraction(1, 10**5)
    assert noise.mass(0) < max(allowed) + Fraction(1, 1000)


@pytest.mark.parametrize("delta", ["0.3", "0.01", "0.8"])
@pytest.mark.parametrize(("loss", "power"), [(LossName.ABSOLUTE, 1), (LossName.SQUARED, 2)])
def test_the_noise_without_epsilon_is_near_the_theorem_on_the_line(
    delta: str, loss: LossName, power: int
) -> None:
    """Steps of a hundredth of the sensitivity: within 3 % of Theorem 3; δ is spent at ε = 0."""
    question = asked("0", delta, tuple(range(1, 101)), loss, (Fraction(1, 400),) * 400)
    noise = noise_of(question, "geng_zero_epsilon")
    cost = float(noise.moment(power))
    assert cost == pytest.approx(
        least_cost(Fraction(delta), Fraction(100), Fraction(power)), rel=0.03
    )
    masses = [noise.mass(k) for k in range(noise.low - 100, noise.high + 101)]
    exact = delta_by_events(masses, 100, Fraction(1))
    assert Fraction(delta) - Fraction(1, 10**12) < exact <= Fraction(delta)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_relaxed_program_is_the_staircase_of_the_mean_error(most: int) -> None:
    steps = tuple(range(1, most + 1))
    noise = noise_of(asked("0.7", steps=steps), "qin_relaxed")
    answers = Input(0, np.full(5, 0.2))
    assert float(noise.moment(1)) == pytest.approx(
        solve_relaxed(answers, Fraction("0.7"), most).objective, rel=1e-6
    )


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
@pytest.mark.parametrize("most", [1, 3])
def test_the_noise_that_moves_the_prior_least(epsilon: str, most: int) -> None:
    """The Wasserstein distance is that of the program, and below that of the relaxed one."""
    steps = tuple(range(1, most + 1))
    question = asked(epsilon, steps=steps, prior=PRIOR)
    answers = Input(0, np.array(list(map(float, PRIOR))))
    moved = [
        distance(answers, as_pmf(noise_of(question, name)))
        for name in ("qin_wasserstein", "qin_relaxed")
    ]
    exact = solve_exact(answers, Fraction(epsilon), most)
    assert moved[0] == pytest.approx(exact.distance, rel=1e-5)
    assert moved[0] <= moved[1] * (1 + 1e-6)
    noise = noise_of(question, "qin_wasserstein")
    ratio = exp_below_any_verifier(Fraction(epsilon))
    masses = wide(noise)
    for step in steps:
        pairs = zip(masses[step:], masses[:-step], strict=True)
        assert all(a <= ratio * b and b <= ratio * a for a, b in pairs)


def as_pmf(noise: IntegerNoise) -> IntegerPmf:
    tail = noise.right
    ends = None if tail is None else Tail(tail.period, tail.fraction)
    masses = [noise.mass(k) for k in range(noise.low, noise.high + 1)]
    return IntegerPmf(noise.low, tuple(masses), ends, ends)


def test_masses_too_light_for_62_bits_follow_the_tails() -> None:
    """A window of about e^{-|k|} to ±60, whose ends would be no unit of 2^-62."""
    ratio = exp_below_any_verifier(Fraction(1))
    masses = [int(2**200 * 0.46 * math.exp(-abs(k) * (1 - 1e-7))) for k in range(-60, 61)]
    noise = integer_noise(masses, 1, ratio * (1 - Fraction(1, 10**7)))
    assert 10 < noise.high < 40
    assert float(noise.mass(50)) == pytest.approx(0.462 * math.exp(-50), rel=1e-2)
    assert noise.deltas((1,), ratio).approximate == 0


FIELDS: dict[str, dict[str, Any]] = {
    "sadeghi_count": {
        "guarantee": {"definition": "approximate", "epsilon": "1", "delta": "0.1"},
        "parameters": {"reach": "4", "keep": "0.5"},
    },
    "geng_zero_epsilon": {
        "guarantee": {"definition": "approximate", "epsilon": "0", "delta": "0.2"}
    },
    "qin_wasserstein": {"prior": ["0.2"] * 3 + ["0.1"] * 3 + ["0.1"]},
    "qin_relaxed": {},
}


def counted(name: str, **fields: Any) -> dict[str, Any]:
    own = {
        "sensitivity": "global",
        "loss": "absolute",
        "domain": {"ordered": {"min": 0, "max": 6}},
        "mechanism": name,
    }
    return query("count", name="counted", **(own | FIELDS[name] | fields))


@pytest.mark.parametrize("name", LAWS)
def test_a_release_of_a_papers_noise_is_proved(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = Small(ROWS, [counted(name)], max_rows_per_unit=1)
    public = run_release(spec.write(tmp_path), tmp_path / "out").public
    law = json.loads((public / "mechanisms" / "counted.json").read_bytes())
    assert law["family"] == "integers"
    page = (public / "report.html").read_text("utf-8")
    assert f"pinned to the baseline {name}; nothing is proved of others" in page
    assert verify(public, None, UNSIGNED).status == 0
    # The δ of the law, from its weights alone.
    (made,) = json.loads((public / "release.json").read_bytes())["made"]["queries"]
    ratio = exp_bounds(Fraction(made["epsilon"]))[0]
    noise = law["noise"]
    if "right" not in noise:
        runs = list(zip(noise["lengths"], map(int, noise["weights"]), strict=True))
        total = sum(length * weight for length, weight in runs)
        weights = [Fraction(weight, total) for length, weight in runs for _ in range(length)]
        padded = [Fraction(0), *weights, Fraction(0)]
        exact = delta_by_events(padded, 1, ratio)
    else:
        exact = Fraction(0)
    assert exact <= Fraction(made["delta"])


@pytest.mark.parametrize("name", ["gumbel_clamped", "sadeghi_count", "qin_relaxed"])
def test_noise_of_papers_is_named_on_a_domain_of_any_size(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = {"ordered": {"min": 0, "max": 3_000_000}}
    asked = counted("sadeghi_count", domain=wide, mechanism=name)
    if name != "sadeghi_count":
        del asked["parameters"]
    spec = Small(ROWS, [asked], max_rows_per_unit=1)
    public = run_release(spec.write(tmp_path), tmp_path / "out").public
    assert verify(public, None, UNSIGNED).status == 0


def test_best_leaves_them_out_and_a_comparison_shows_them() -> None:
    question = asked(delta="0.01", prior=PRIOR)
    assert not set(LAWS) & set(candidates(question))
    assert set(LAWS) <= set(fitting(question))
    without = asked(delta="0.01")
    assert "qin_wasserstein" not in set(fitting(without))
    best = choose(question)
    assert all(best.objective <= choose(question, name).objective for name in LAWS)


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("sadeghi_count", {"parameters": {"reach": "2.5"}}, "parameters.reach: found 2.5; write a"),
        ("sadeghi_count", {"parameters": {"keep": "1"}}, "a number from 0.001 to 0.999"),
        ("sadeghi_count", {"parameters": {"depth": "1"}}, "parameters.depth: "),
        ("qin_relaxed", {"parameters": {"reach": "1"}}, "'qin_relaxed' has none; leave it out"),
        ("sadeghi_count", {"loss": "noise_squared"}, "needs answers in order"),
        ("geng_zero_epsilon", {"guarantee": {"definition": "pure", "epsilon": "1"}}, "delta above"),
        ("qin_wasserstein", {"prior": None}, "prior: missing; 'qin_wasserstein' needs the pmf"),
        ("qin_wasserstein", {"prior": ["0.5", "0.5"]}, "2 probabilities for 7 answers"),
        ("qin_wasserstein", {"prior": ["0.1"] * 7}, "add up to 1"),
        (
            "qin_wasserstein",
            {"domain": {"ordered": {"min": 0, "max": 10**6}}},
            "more than 1,000,000 answers need mechanism: one of best, integer, geometric_clamped",
        ),
        ("qin_wasserstein", {"objective": "worst_case"}, "keep one of prior and objective"),
    ],
)
def test_what_a_spec_cannot_ask_of_them_is_refused_in_a_line(
    name: str, fields: dict[str, Any], told: str
) -> None:
    plain = Small(ROWS, [counted(name, **fields)], max_rows_per_unit=1).plain()
    with pytest.raises(SpecError) as refused:
        parse_spec(json.dumps(plain).encode())
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "question", "told"),
    [
        ("sadeghi_count", asked(delta="0.1", steps=(1, 2)), "for neighbors 1 apart"),
        (
            "sadeghi_count",
            asked("2.18", "0.001", reach=Fraction(6), keep=Fraction("0.8")),
            "delta is 0.01537; claim that",
        ),
        (
            "sadeghi_count",
            asked("0.01", "0.000001", reach=Fraction(1)),
            "no reach and keep satisfy",
        ),
        ("geng_zero_epsilon", asked("0", "0.1", loss=LossName.ERROR_RATE), "absolute or squared"),
        ("geng_zero_epsilon", asked("0", "0.00000001"), "10^7 steps"),
        ("qin_wasserstein", asked("11", prior=PRIOR), "epsilon must be from 1/100 to 10"),
    ],
)
def test_what_cannot_be_fitted_says_why(name: str, question: Asked, told: str) -> None:
    with pytest.raises(DesignError, match=told.replace("^", r"\^")):
        choose(question, name)


def test_a_forged_weight_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ends of the count noise moved to the truth: δ becomes 0.16 where 0.1 is claimed."""
    spec = Small(ROWS, [counted("sadeghi_count")], max_rows_per_unit=1)
    public = run_release(spec.write(tmp_path), tmp_path / "out").public
    path = public / "mechanisms" / "counted.json"
    law = json.loads(path.read_bytes())
    noise = law["noise"]
    weights = list(map(int, noise["weights"]))
    middle = len(weights) // 2
    assert noise["lengths"] == [1] * len(weights)
    moved = sum(weights[: middle - 1])
    noise["weights"] = list(
        map(str, [weights[middle - 1], weights[middle] + 2 * moved, weights[middle + 1]])
    )
    noise["lengths"], noise["low"] = [1, 1, 1], -1
    edit(public, "mechanisms/counted.json", lambda plain: plain.update(law))
    with pytest.raises(VerificationError, match="δ"):
        verify(public, None, UNSIGNED)
