"""Estimates: unbiased where they say so, intervals that cover, and refusals in one line."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from fractions import Fraction
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from release.analysis.estimation import (
    Estimates,
    estimate,
    estimate_release,
    likelihood,
    sum_of,
)
from release.analysis.unbiased import correction
from release.errors import DesignError, SpecError, VerificationError
from release.exact.channel import Channel
from release.exact.domain import AnswerDomain, Codes, Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import Asked
from release.noise.published.baselines import geometric_clamped, geometric_modular
from release.noise.select import choose
from release.noise.solve import design
from release.street import run_release
from tests.small import Small, joint, mechanism_of, part, query
from tests.verifier.made import seal

DRAWS = 10_000
SIZE = 25
CLAMPED = geometric_clamped(SIZE, Fraction(1))
WRAPPED = geometric_modular(SIZE, Fraction(1))
ROWS = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]


def best(loss: LossName, size: int = 12) -> Channel:
    """The best channel of pure ε = 1 for neighbors 1 apart."""
    pure = Guarantee(Definition.PURE, Fraction(1), Fraction(0))
    domain = AnswerDomain(Topology.ORDERED, tuple(range(size)))
    costs = named_loss(loss, Topology.ORDERED, size)
    asked = Asked(domain, Sensitivity.on_line(size, (1,)), pure, costs, loss)
    made = choose(asked, "channel")
    assert isinstance(made.mechanism, Channel)
    return made.mechanism


def designed(size: int = SIZE) -> Modular:
    """A designed law of approximate ε = 1, δ = 0.01 on a line."""
    group = Group((size,))
    guarantee = Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 100))
    loss = named_loss(LossName.ABSOLUTE, Topology.ORDERED, size)
    return design(Sensitivity.of(group, [(1,)]), guarantee, loss).mechanism


def masses(mechanism: Mechanism) -> Any:
    return Channel.of_mechanism(mechanism).to_floats()


def seeded(seed: int) -> random.Random:
    """The same draws in every run: these tests bound how often chance alone would fail them."""
    return random.Random(seed)  # noqa: S311 - repeatable draws, nothing is kept secret


def published(mechanism: Mechanism, true: Codes, seed: int) -> Codes:
    return mechanism.draw(true, seeded(seed).randbytes)


def columns(found: Estimates, *names: str) -> list[Any]:
    return [np.array([getattr(cell, name) for cell in found.cells]) for name in names]


def test_the_likelihood_of_small_laws_by_hand() -> None:
    channel = Channel.of([[4, 2, 2], [1, 6, 1], [0, 0, 8]])
    wanted = [[1 / 2, 1 / 4, 1 / 4], [1 / 8, 3 / 4, 1 / 8], [0, 0, 1]]
    assert np.exp(likelihood(channel)) == pytest.approx(np.array(wanted))
    assert likelihood(channel)[2].tolist() == [-np.inf, -np.inf, 0]
    # One unit of noise upwards in a quarter of the draws: P(o|q) = f(o - q), not f(q - o).
    table = likelihood(Modular(Pmf.of(Group((3,)), [3, 1, 0])))
    quarter, rest, never = log(1 / 4), log(3 / 4), -np.inf
    wanted = [[rest, quarter, never], [never, rest, quarter], [quarter, never, rest]]
    assert table == pytest.approx(np.array(wanted))


def test_the_likelihood_of_joint_noise_is_that_of_its_channel() -> None:
    law = Modular(Pmf.of(Group((2, 3)), [9, 3, 1, 2, 0, 1]))
    assert np.exp(likelihood(law)) == pytest.approx(masses(law))


def test_the_likelihood_holds_where_no_float_holds_the_weights() -> None:
    law = Modular(Pmf.of(Group((2,)), [2**1100 - 1, 1]))
    assert likelihood(law)[0] == pytest.approx([0, -1100 * log(2)])


@pytest.mark.parametrize(
    "law",
    [CLAMPED, WRAPPED, designed(), best(LossName.ERROR_RATE)],
    ids=["clamped", "wrapped", "designed", "best"],
)
def test_unbiased_values_are_right_on_average_at_every_true_answer(law: Mechanism) -> None:
    """Values and variances, with labels far from 0 and in steps; P itself is the exact law's."""
    exact = masses(law)
    size = exact.shape[0]
    values = [1000 + 3 * code for code in range(size)]
    made = correction(likelihood(law), values)
    assert np.abs(exact @ made.unbiased - values).max() < 1e-9
    spread = [
        sum(mass * (g - value) ** 2 for mass, g in zip(row, made.unbiased, strict=True))
        for row, value in zip(exact, values, strict=True)
    ]
    assert exact @ made.variance == pytest.approx(np.array(spread))


@pytest.mark.parametrize(
    "channel",
    [
        best(LossName.SQUARED),  # moves published answers away from the ends
        Channel.of([[2, 2, 0], [1, 3, 0], [0, 4, 0]]),
        Channel.of([[4, 4, 8], [4, 4, 8], [2, 2, 12]]),
    ],
    ids=["best", "never published", "two alike"],
)
def test_without_an_unbiased_estimator_the_posterior_is_left(channel: Channel) -> None:
    table, size = likelihood(channel), channel.answers
    with pytest.raises(DesignError, match=r"^no unbiased estimator exists: .*posterior") as error:
        correction(table, range(size))
    assert "\n" not in str(error.value)
    codes = np.flatnonzero(channel.rows.sum(axis=0))
    found = estimate(codes, table, range(size))
    assert found.unbiased is None
    assert all(cell.standard_error is None for cell in found.cells)
    posterior = masses(channel)[:, codes] / masses(channel)[:, codes].sum(axis=0)
    mean, low, high = columns(found, "posterior_mean", "low", "high")
    assert mean == pytest.approx(np.arange(size) @ posterior)
    assert (low <= high).all()
    with pytest.raises(DesignError, match="none for their sum"):
        sum_of(found)


@pytest.mark.parametrize("law", [CLAMPED, WRAPPED], ids=["clamped", "wrapped"])
def test_ten_thousand_releases_of_uniform_answers(law: Mechanism) -> None:
    true = np.array(seeded(1).choices(range(SIZE), k=DRAWS), dtype=np.int64)
    values = range(-3, SIZE - 3)
    found = estimate(published(law, true, 2), likelihood(law), values)
    label = true - 3
    unbiased, low, high, mean = columns(found, "unbiased", "low", "high", "posterior_mean")
    off = unbiased - label
    assert abs(off.mean()) < 5 * off.std() / sqrt(DRAWS)
    covered = ((low <= label) & (label <= high)).mean()
    assert covered > 0.95 - 5 * sqrt(0.95 * 0.05 / DRAWS)
    # Under its own prior the posterior mean is the best there is.
    assert ((mean - label) ** 2).mean() < (off**2).mean()


@pytest.mark.parametrize("law", [CLAMPED, WRAPPED], ids=["clamped", "wrapped"])
def test_ten_thousand_releases_of_an_answer_at_the_edge(law: Mechanism) -> None:
    """What is published leans inwards; the unbiased value does not, and knows how far it strays."""
    codes = published(law, np.zeros(DRAWS, dtype=np.int64), 3)
    found = estimate(codes, likelihood(law), range(SIZE))
    unbiased, variance = columns(found, "unbiased", "variance")
    assert codes.mean() > 10 * codes.std() / sqrt(DRAWS)
    assert abs(unbiased.mean()) < 5 * unbiased.std() / sqrt(DRAWS)
    true_variance = float(masses(law)[0] @ correction(likelihood(law), range(SIZE)).unbiased ** 2)
    assert abs(variance.mean() - true_variance) < 5 * variance.std() / sqrt(DRAWS)


def test_sums_over_cells_stray_as_their_standard_errors_say() -> None:
    """500 sums of 20 cells of wrapped noise, at three answers: errors over standard errors."""
    table = likelihood(WRAPPED)
    true = np.tile(np.array([0, 4, 12, 12]), 5)
    sums = [sum_of(estimate(published(WRAPPED, true, s), table, range(SIZE))) for s in range(500)]
    off = np.array([value for value, _ in sums]) - true.sum()
    assert abs(off.mean()) < 5 * off.std() / sqrt(len(sums))
    assert np.mean([error**2 for _, error in sums]) == pytest.approx(off.var(), rel=0.25)


def test_a_sum_by_hand() -> None:
    """Randomised response: with 7/8 the truth, the unbiased values are -1/6 and 7/6."""
    found = estimate(np.array([0, 1, 1]), likelihood(Modular(Pmf.of(Group((2,)), [7, 1]))), [0, 1])
    unbiased, variance, error = columns(found, "unbiased", "variance", "standard_error")
    assert unbiased == pytest.approx([-1 / 6, 7 / 6, 7 / 6])
    assert variance == pytest.approx([7 / 36] * 3)
    assert error == pytest.approx([sqrt(7) / 6] * 3)
    assert sum_of(found) == pytest.approx((13 / 6, sqrt(21) / 6))
    # Variances that add up to less than nothing are not taken for a standard error.
    below = replace(found, cells=tuple(replace(cell, variance=-1.0) for cell in found.cells))
    assert sum_of(below) == pytest.approx((13 / 6, sqrt(21) / 6))


@pytest.mark.parametrize("circle", [False, True], ids=["line", "circle"])
def test_an_interval_holds_every_true_answer(circle: bool) -> None:
    """Exactly, for random tables of six answers, some of them with ties and impossible ones."""
    drawn = seeded(4)
    for _ in range(60):
        size = 6
        rows = [[drawn.choice([0, 1, 1, 2, 8, 20]) for _ in range(size)] for _ in range(size)]
        for row in rows:
            row[-1] += 128 - sum(row)
        channel = Channel.of(rows)
        domain = AnswerDomain(Topology.CYCLIC if circle else Topology.ORDERED, tuple(range(size)))
        level = drawn.choice([0.3, 0.5, 0.9])
        published = [code for code in range(size) if any(row[code] for row in rows)]
        found = estimate(np.array(published), likelihood(channel), domain, level=level).cells
        for true, row in enumerate(rows):
            held = 0
            for code, cell in zip(published, found, strict=True):
                assert cell.low is not None
                assert cell.high is not None
                width = (cell.high - cell.low) % size
                held += row[code] if (true - cell.low) % size <= width else 0
            assert Fraction(held, 128) >= Fraction(str(level))


def test_the_prior_moves_the_posterior_and_not_the_unbiased_value() -> None:
    table = likelihood(CLAMPED)
    flat = estimate(np.array([7]), table, range(SIZE)).cells[0]
    prior = np.exp(-np.arange(SIZE, dtype=np.float64))
    steep = estimate(np.array([7]), table, range(SIZE), prior=prior).cells[0]
    posterior = masses(CLAMPED)[:, 7] * prior
    assert steep.posterior_mean == pytest.approx(np.arange(SIZE) @ posterior / posterior.sum())
    assert steep.posterior_mean is not None
    assert flat.posterior_mean is not None
    assert steep.posterior_mean < flat.posterior_mean - 1
    assert steep.unbiased == flat.unbiased


def test_of_several_modes_the_published_answer_is_taken() -> None:
    blind = Modular(Pmf.of(Group((4,)), [1, 1, 1, 1]))
    found = estimate(np.array([2, 3]), likelihood(blind), [10, 20, 30, 40])
    assert [cell.mode for cell in found.cells] == [30, 40]
    # At the upper end clamping keeps more than it should, and the truth is likelier to be there.
    low, high = estimate(np.array([0, SIZE - 1]), likelihood(CLAMPED), range(SIZE)).cells
    assert (low.mode, high.mode) == (0, SIZE - 1)


def test_categories_have_a_set_and_circles_an_arc() -> None:
    law = Modular(Pmf.of(Group((4,)), [16, 8, 6, 2]))
    names = AnswerDomain(Topology.NOMINAL, ("a", "b", "c", "d"))
    (cell,) = estimate(np.array([1]), likelihood(law), names, level=0.7).cells
    # Published b: b with 16, a with f(1) = 8, d with f(2) = 6, c with f(3) = 2 of 32.
    assert (cell.published, cell.mode, cell.credible) == ("b", "b", ("b", "a"))
    assert (cell.low, cell.posterior_mean, cell.unbiased) == (None, None, None)
    (wider,) = estimate(np.array([1]), likelihood(law), names, level=0.76).cells
    assert wider.credible == ("b", "a", "d")
    hours = AnswerDomain(Topology.CYCLIC, (0, 1, 2, 3))
    (cell,) = estimate(np.array([0]), likelihood(law), hours, level=0.7).cells
    assert (cell.mode, cell.low, cell.high) == (0, 3, 0)
    assert (cell.credible, cell.posterior_mean, cell.unbiased) == (None, None, None)


def test_what_does_not_fit_is_refused() -> None:
    table = likelihood(CLAMPED)
    values, codes = range(SIZE), np.array([3])
    cases: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("level: found 1;", (codes, table, values), {"level": 1}),
        ("level: found nan;", (codes, table, values), {"level": float("nan")}),
        ("codes: write one integer from 0 to 24", (np.array([25]), table, values), {}),
        ("codes: write one integer from 0 to 24", (np.array([-1]), table, values), {}),
        ("codes: write one integer from 0 to 24", (np.array([1.5]), table, values), {}),
        ("table: found shape", (codes, table, range(24)), {}),
        ("table: a row adds up", (codes, np.exp(table), values), {}),
        ("values: write the labels", (codes, table, values[::-1]), {}),
        ("prior: write 25 masses", (codes, table, values), {"prior": [1.0] * 24}),
        ("prior: write 25 masses", (codes, table, values), {"prior": [0.0] * 25}),
        ("prior: write 25 masses", (codes, table, values), {"prior": [-1.0] + [1.0] * 24}),
        ("prior: write 25 masses", (codes, table, values), {"prior": [float("nan")] * 25}),
    ]
    for told, arguments, named in cases:
        with pytest.raises(SpecError) as error:
            estimate(*arguments, **named)
        assert str(error.value).startswith(told)
    never = likelihood(Channel.of([[2, 2, 0], [1, 3, 0], [0, 4, 0]]))
    with pytest.raises(SpecError, match="never occurs"):
        estimate(np.array([2]), never, range(3))
    with pytest.raises(DesignError, match="2001 answers; estimates are made for 2000"):
        likelihood(Modular(Pmf.of(Group((2001,)), [48] + [1] * 2000)))


def released(place: Path, asked: dict[str, Any], *others: dict[str, Any]) -> Path:
    spec = Small(ROWS, [*others, asked], max_rows_per_unit=1)
    place.mkdir(exist_ok=True)
    return run_release(spec.write(place), place / "out").public


@pytest.mark.parametrize("mechanism", ["modular", "channel"])
def test_a_release_from_its_public_files(tmp_path: Path, mechanism: str) -> None:
    wide = {"ordered": {"min": 5, "max": 16}}
    by = ["place", "day"]
    asked = query("count", sensitivity="global", mechanism=mechanism, domain=wide, by=by)
    public = released(tmp_path, asked)
    found = estimate_release(public, "the_count", level=0.8)
    raw = pq.read_table(public / "data" / "the_count.parquet")
    assert found.by == ("place", "day")
    assert found.keys == (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    assert [cell.published for cell in found.cells] == raw.column("answer").to_pylist()
    law = mechanism_of(public, "the_count")
    assert law.family == mechanism
    codes = raw.column("answer_code").to_numpy()
    alone = estimate(codes, likelihood(law), range(5, 17), level=0.8)
    assert found.cells == alone.cells
    assert found.unbiased is not None
    assert found.unbiased.shape == (4,)
    table = found.to_arrow()
    assert table.column_names[:4] == ["place", "day", "published", "mode"]
    assert table.column("place").to_pylist() == ["a", "a", "b", "b"]
    assert table.column("unbiased").to_pylist() == found.unbiased.tolist()
    assert sum_of(found)[0] == pytest.approx(found.unbiased.sum())


@pytest.mark.parametrize("kind", ["mode", "binned", "on_grid", "nominal"])
def test_other_kinds_of_answers(tmp_path: Path, kind: str) -> None:
    asked = query("mode" if kind == "nominal" else kind, sensitivity="global")
    if kind == "nominal":
        asked |= {"of": "place", "domain": {"nominal": ["a", "b", "c"]}, "by": []}
    public = released(tmp_path, asked)
    name = asked["name"]
    found = estimate_release(public, name)
    raw = pq.read_table(public / "data" / f"{name}.parquet")
    assert found.to_arrow().column("published").equals(raw.column("answer"))
    assert all((cell.credible is None) == (kind != "nominal") for cell in found.cells)
    assert all(
        (cell.posterior_mean is None) == (kind in {"mode", "nominal"}) for cell in found.cells
    )


def test_laws_that_are_not_public_and_joint_answers_are_refused(tmp_path: Path) -> None:
    public = released(tmp_path / "seen", query("count", sensitivity="empirical"))
    with pytest.raises(SpecError, match="instance-specific and not public; choose") as error:
        estimate_release(public, "the_count")
    assert "\n" not in str(error.value)
    with pytest.raises(SpecError, match=r"query: 'the_cont' is not there; did you mean"):
        estimate_release(public, "the_cont")
    parts = [part("one", "count"), part("two", "mode")]
    both = joint("one", "two", name="both", sensitivity="global")
    public = released(tmp_path / "joint", both, *parts)
    with pytest.raises(SpecError, match="joint answers, which have no order; use likelihood"):
        estimate_release(public, "both")


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    public = released(tmp_path, query("count", sensitivity="global", mechanism="modular"))
    other = released(
        tmp_path / "other",
        query("count", sensitivity="global", mechanism="modular", guarantee=weaker()),
    )
    law, data = Path("mechanisms/the_count.json"), Path("data/the_count.parquet")
    kept = (public / law).read_bytes()
    shutil.copy(other / law, public / law)
    with pytest.raises(VerificationError, match=r"^mechanisms/the_count\.json: SHA-256"):
        estimate_release(public, "the_count")
    (public / law).write_bytes(kept)
    (public / data).unlink()
    with pytest.raises(VerificationError, match=r"^data/the_count\.parquet: file"):
        estimate_release(public, "the_count")
    (public / data).write_bytes(b"")
    plain = json.loads((public / "release.json").read_bytes())
    (public / "release.json").write_text(json.dumps(plain, indent=1))
    with pytest.raises(VerificationError, match=r"^release\.json: SHA-256"):
        estimate_release(public, "the_count")
    seal(public)
    with pytest.raises(VerificationError, match=r"^release\.json: form"):
        estimate_release(public, "the_count")
    with pytest.raises(VerificationError, match=r"^SHA256SUMS: file"):
        estimate_release(tmp_path, "the_count")


def weaker() -> dict[str, str]:
    return {"definition": "pure", "epsilon": "2"}
