"""What ``best`` reaches, and what is not published: no unasked wrapping, no unproved optimum."""

from __future__ import annotations

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import DesignError, SpecError
from release.exact.channel import MOST_ENTRIES, MOST_UNSEEN, Channel
from release.exact.domain import AnswerDomain, Group, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.losses import LossName, named_loss, power_of
from release.exact.mechanism import BoundOf
from release.exact.modular import Modular
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.job import Options
from release.noise.design import GAIN, Asked
from release.noise.refusal import refusal
from release.noise.select import choose, fitting
from release.planning.plan import make_plan
from release.queries.read import parse_spec, read_spec
from release.spec.losses import loss_on
from release.spec.query import Query
from release.street import run_release
from tests.cli.test_main import run
from tests.conftest import PROJECT
from tests.every import some
from tests.small import Row, Small, joint, mechanism_of, part, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]
WIDE = {"ordered": {"min": 0, "max": 2000}}
BINS = {"low": 0, "high": 3010, "count": 301}


def parsed(*queries: dict[str, Any]) -> None:
    parse_spec(yaml.safe_dump(Small([], list(queries)).plain()).encode())


LIKELY = {"definition": "probabilistic", "epsilon": "1", "delta": "0.01"}
NO_EPSILON = {"definition": "approximate", "epsilon": "0", "delta": "0.01"}
SIXTY_FIVE = {"ordered": {"min": 0, "max": 64}}

BEYOND = [
    pytest.param(
        [query("count", sensitivity="global", domain=WIDE, guarantee=NO_EPSILON)],
        "best reaches 1,000",
        id="too many without epsilon",
    ),
    pytest.param(
        [query("count", sensitivity="global", loss="noise_squared")],
        "best needs the loss error_rate, absolute or squared",
        id="loss",
    ),
    pytest.param(
        [query("count", sensitivity="global", domain=SIXTY_FIVE, guarantee=LIKELY)],
        "reaches 64 answers in order; add fallback: approximate",
        id="too many for a probabilistic guarantee",
    ),
    pytest.param(
        [query("count", guarantee=LIKELY)],
        "best has no probabilistic guarantee",
        id="unseen and probabilistic",
    ),
    pytest.param(
        [part("one", "count"), part("two", "mode"), joint("one", "two", name="both")],
        "best has no noise for tuples",
        id="tuple",
    ),
]


@pytest.mark.parametrize(("queries", "told"), BEYOND)
def test_best_is_refused_where_only_wrapping_noise_is_left(
    queries: list[dict[str, Any]], told: str
) -> None:
    """One line that names the field and the remedy; the remedy, taken literally, is accepted."""
    *before, last = queries
    parsed(*before, last | {"mechanism": "modular"})
    with pytest.raises(SpecError) as refused:
        parsed(*before, last | {"mechanism": "best"})
    line = str(refused.value)
    assert line.startswith(f"queries[{len(before)}].mechanism: ")
    assert told in line
    assert "\n" not in line
    assert "write mechanism: modular" in line


@pytest.mark.parametrize(
    "within",
    [
        pytest.param(query("count", sensitivity="global", domain=WIDE), id="many"),
        pytest.param(query("count", domain=WIDE), id="many unseen"),
        pytest.param(
            query("binned", guarantee={"definition": "pure", "epsilon": "0.0001"}),
            id="unseen with a tiny epsilon",
        ),
        pytest.param(
            query(
                "count",
                sensitivity="global",
                domain=SIXTY_FIVE,
                guarantee=LIKELY | {"fallback": "approximate"},
            ),
            id="a probabilistic guarantee that falls back",
        ),
    ],
)
def test_best_is_accepted_where_noise_on_the_integers_is_left(within: dict[str, Any]) -> None:
    parsed(within)


def test_a_fallback_is_taken_only_out_of_reach() -> None:
    """64 answers in order keep the probabilistic guarantee; 65 fall back."""
    falls_back = LIKELY | {"fallback": "approximate"}
    promised = []
    for most in (63, 64):
        asked_for = query(
            "count",
            sensitivity="global",
            mechanism="modular",
            domain={"ordered": {"min": 0, "max": most}},
            guarantee=falls_back,
        )
        text = yaml.safe_dump(Small([], [asked_for]).plain()).encode()
        promised.append(parse_spec(text).queries[0].claimed.to_guarantee())
    one, other = promised
    assert (one.definition, other.definition) == (Definition.PROBABILISTIC, Definition.APPROXIMATE)
    assert one.epsilon == other.epsilon == 1
    assert one.delta == other.delta == Fraction(1, 100)


def test_the_census_with_large_counts_publishes_no_wrapped_zeros(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """24 true zeros came out as 0 to 3 and 1997 to 2000, with exit status 0."""
    for folder in ("data", "schemas"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    spec = tmp_path / "data" / "persons.yaml"
    text = spec.read_text("utf-8")
    spec.write_text(text.replace("max: 400", "max: 2000").replace("age < 18", "age > 200"), "utf-8")
    out = tmp_path / "out"
    status, printed, _ = run(capsys, "run", spec, "--out", out)
    assert status == 0
    assert printed
    (public,) = (out / "public").iterdir()
    law = json.loads((public / "mechanisms" / "minors_by_tract.json").read_bytes())
    assert law["family"] == "integers"
    answers = pq.read_table(public / "data" / "minors_by_tract.parquet")["answer"].to_pylist()
    assert len(answers) == 24
    # ε of a query is 0.1 and more: e^-50 at most that one of them is beyond.
    assert max(answers) < 1000


def test_the_reach_under_empirical_differences_is_what_a_program_solves() -> None:
    assert MOST_UNSEEN**3 <= MOST_ENTRIES < (MOST_UNSEEN + 1) ** 3


def asked(size: int, apart: tuple[int, ...], promise: Guarantee, loss: LossName) -> Asked:
    domain = AnswerDomain(Topology.ORDERED, tuple(range(size)))
    sensitivity = Sensitivity.on_line(size, apart)
    return Asked(domain, sensitivity, promise, named_loss(loss, Topology.ORDERED, size), loss)


@settings(max_examples=some(40))
@given(st.data())
def test_best_never_wraps_an_order(data: st.DataObject) -> None:
    """Not even where modular noise loses less by the mean; and its bound is below every family."""
    size = data.draw(st.integers(2, 8))
    apart = data.draw(st.sets(st.integers(1, size - 1), min_size=1).map(sorted))
    delta = data.draw(st.sampled_from(["0", "0.01", "0.2"]))
    definition = (
        Definition.PURE
        if delta == "0"
        else data.draw(st.sampled_from([Definition.APPROXIMATE, Definition.PROBABILISTIC]))
    )
    promise = Guarantee(definition, Fraction(data.draw(st.integers(1, 12)), 4), Fraction(delta))
    loss = data.draw(st.sampled_from([LossName.ERROR_RATE, LossName.ABSOLUTE, LossName.SQUARED]))
    of = asked(size, tuple(apart), promise, loss)
    made = choose(of)
    assert isinstance(made.mechanism, Channel | IntegerMechanism)
    assert made.mechanism.modular_noise is None
    assert "modular" in set(fitting(of))
    enough = (1 - GAIN) * made.objective - Fraction(1, 10**9)
    for name in fitting(of):
        try:
            other = choose(of, name)
        except DesignError:
            continue
        # The bound of noise on the integers speaks of its loss far from the ends, and of no other.
        if made.bound_of is not BoundOf.INTEGERS:
            assert made.lower_bound <= other.objective
        elif isinstance(other.mechanism, IntegerMechanism):
            assert made.lower_bound <= other.mechanism.noise.moment(power_of(of.loss))
        if not isinstance(other.mechanism, Modular):
            assert enough <= other.objective, name
    assert made.lower_bound <= made.bounded_loss


def test_a_pure_channel_is_not_called_best_for_a_probabilistic_promise() -> None:
    """Nine answers, ε = 1, δ = 0.3, squared: 1.302 by the pure channel, 0.387 by the best."""
    promise = Guarantee(Definition.PROBABILISTIC, Fraction(1), Fraction(3, 10))
    of = asked(9, (1,), promise, LossName.SQUARED)
    for mechanism in ("channel", "best"):
        made = choose(of, mechanism)
        assert float(made.objective) == pytest.approx(0.38694, abs=1e-5)
        assert made.is_within()
        assert 0 < made.deltas.probabilistic <= Fraction(3, 10)


WEAK = {"definition": "approximate", "epsilon": "1", "delta": "0.000001"}


def median(**fields: Any) -> dict[str, Any]:
    return query(
        "binned",
        statistic="median",
        clamp=None,
        sensitivity="global",
        bins=BINS,
        loss="absolute",
        **fields,
    )


def test_a_delta_that_no_mechanism_uses_is_not_charged(tmp_path: Path) -> None:
    """A worst-case median of 301 levels with δ: no program bounds noise of such a reach."""
    spec = Small(ROWS, [median(guarantee=WEAK)]).write(tmp_path)
    public = run_release(spec, tmp_path / "out").public
    record = json.loads((public / "release.json").read_bytes())
    assert record["made"]["total"] == {"definition": "pure", "epsilon": "2", "delta": "0"}


def test_the_median_of_many_levels_needs_no_gap(tmp_path: Path) -> None:
    """Noise on the integers is proved to be the best of its class where no channel can be."""
    spec = Small(ROWS, [median(mechanism="best")]).write(tmp_path)
    public = run_release(spec, tmp_path / "out").public
    law = json.loads((public / "mechanisms" / "the_binned.json").read_bytes())
    assert law["family"] == "integers"
    loss = mechanism_of(public, "the_binned").noise.moment(1)
    assert 0 < float(law["bound"]["at_least"]) <= loss
    assert loss <= (1 + 1e-6) * float(law["bound"]["at_least"])


def test_of_seen_differences_a_refusal_tells_no_number(tmp_path: Path) -> None:
    far: list[Row] = [ROWS[0] | {"unit": f"u{i}", "wh": 1000 * i} for i in range(4)]
    seen = {"sensitivity": "empirical", "mechanism": "integer"}
    spec = Small(far, [median() | seen]).write(tmp_path)
    try:
        run_release(spec, tmp_path / "out")
    except DesignError as error:
        # Of the spec alone: what was seen refuses nothing.
        near = [row | {"wh": 0} for row in far]
        again = Small(near, [median() | seen]).write(tmp_path)
        with pytest.raises(DesignError) as refused:
            run_release(again, tmp_path / "out")
        assert str(refused.value) == str(error)
        assert not re.search(r"\d", str(error).replace("the_binned", ""))


def test_a_weaker_promise_that_buys_nothing_is_charged_no_delta(tmp_path: Path) -> None:
    counted = median(guarantee=WEAK)
    spec = Small(ROWS, [counted], max_rows_per_unit=1).write(tmp_path)
    public = run_release(spec, tmp_path / "out").public
    record = json.loads((public / "release.json").read_bytes())
    assert record["made"]["queries"][0]["charge"]["delta"] == "0"


def test_a_baseline_that_the_spec_names_claims_nothing(tmp_path: Path) -> None:
    named = query("count", sensitivity="global", mechanism="geometric_clamped")
    spec = Small(ROWS, [named]).write(tmp_path)
    assert not make_plan(read_spec(spec)).refusals
    assert run_release(spec, tmp_path / "out", options=Options(Fraction(0))).public.is_dir()


def test_on_a_circle_the_bound_of_modular_noise_is_that_of_best() -> None:
    domain, group = AnswerDomain(Topology.CYCLIC, tuple(range(12))), Group((12,))
    promise = Guarantee(Definition.PURE, Fraction(1), Fraction(0))
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, 12)
    sensitivity = Sensitivity.of(group, ((a,) for a in (1, 2)))
    made = choose(Asked(domain, sensitivity, promise, loss, LossName.SQUARED))
    assert made.is_within()
    assert np.isclose(float(made.lower_bound), float(made.objective))


def test_a_baseline_asked_for_another_loss_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--epsilon-for`` may name a loss for which the named mechanism has no figure."""
    named = query("count", sensitivity="global", mechanism="geometric_clamped", loss="squared")
    spec = Small(ROWS, [named]).write(tmp_path)
    status, printed, errors = run(capsys, "plan", spec, "--epsilon-for", "noise_squared <= 1")
    assert (status, printed) == (2, "")
    assert errors.splitlines()[-1].startswith(
        "error: queries[0].mechanism: 'geometric_clamped' needs answers in order, and the loss"
    )


@pytest.mark.parametrize("name", ["gaussian_clamped", "gaussian_modular", "geometric_truncated"])
def test_a_baseline_that_cannot_be_fitted_is_refused(name: str) -> None:
    wide = Guarantee(Definition.APPROXIMATE, Fraction(100), Fraction(1, 100))
    try:
        made = choose(asked(6, (1,), wide, LossName.SQUARED), name)
    except DesignError as error:
        assert name in str(error)
    else:
        assert made.objective >= 0


@pytest.mark.parametrize("definition", list(Definition))
@pytest.mark.parametrize("loss", [LossName.ERROR_RATE, LossName.ABSOLUTE])
def test_more_epsilon_never_errs_more_and_is_never_refused(
    loss: LossName, definition: Definition
) -> None:
    """Beyond some ε a channel is no program; then whole-number noise takes its place."""
    domain = AnswerDomain(Topology.ORDERED, range(10))
    moves = Sensitivity.on_line(10, range(1, 10))
    delta = Fraction(0) if definition is Definition.PURE else Fraction(1, 200)
    losses = []
    for epsilon in (4, 8, 12, 14, 17, 19, 20):
        guarantee = Guarantee(definition, Fraction(epsilon), delta)
        made = choose(Asked(domain, moves, guarantee, loss_on(loss, domain), loss))
        losses.append(made.objective)
        asked = {"definition": definition.value, "epsilon": str(epsilon), "delta": str(delta)}
        assert refusal(counted_in_order(asked), made) is None
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < Fraction(1, 10**6)


def counted_in_order(guarantee: dict[str, str]) -> Query:
    asked = query("count", sensitivity="global", domain={"ordered": {"min": 0, "max": 9}})
    asked |= {"guarantee": guarantee}
    return parse_spec(yaml.safe_dump(Small([], [asked]).plain()).encode()).queries[0]
