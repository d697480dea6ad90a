"""All queries together: known figures, brute force, and plans that are what a release does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest
import yaml
from scipy import stats

from release.bundle.statements import accuracy_of
from release.errors import SpecError
from release.exact.composition.profile import Profile
from release.noise.shares import asked_of_budget
from release.planning.plan import Plan, make_plan
from release.planning.recommend import make_advised_plan
from release.planning.shared_noise import gaussian_loss, shared_noise
from release.planning.targets import epsilon_for
from release.planning.together import plan_together
from release.planning.totals import TogetherPlan
from release.planning.zcdp import Concentrated, concentrated, rho_within
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.spec.losses import parse_target
from release.street import run_release
from tests.cli.test_main import run
from tests.small import Small, mechanism_of, query

Capture: TypeAlias = pytest.CaptureFixture[str]
T = TypeVar("T")

MILLIONTH = "0.000001"
WIDE = {"ordered": {"min": 0, "max": 999}}


def counted(name: str, **fields: Any) -> dict[str, Any]:
    """A count with a share or a target in place of a guarantee, unless ``fields`` has one."""
    plain = query("count", name=name, sensitivity="global", domain=WIDE, **fields)
    if "guarantee" not in fields:
        del plain["guarantee"]
    return plain


def written(
    folder: Path, *queries: dict[str, Any], epsilon: str = "1", delta: str = MILLIONTH
) -> Path:
    """A spec whose unit counts once, composed exactly where a query needs that."""
    small = Small([], list(queries), "add_remove", 1, budget=(epsilon, delta))
    path = small.write(folder)
    plain = yaml.safe_load(path.read_text("utf-8"))
    if any("guarantee" not in one for one in queries):
        plain["budget"]["composition"] = "pld"
    path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    return path


def together(spec_file: SpecFile, plan: Plan, season: int | None = None) -> TogetherPlan:
    return known(plan_together(spec_file, plan, season))


def known(value: T | None) -> T:
    """A figure that is there."""
    assert value is not None
    return value


def a_count(epsilon: str) -> dict[str, Any]:
    guarantee = {"definition": "pure", "epsilon": epsilon}
    return counted("night", guarantee=guarantee, loss="squared")


def test_noise_of_a_hundred_counts_is_as_published(tmp_path: Path) -> None:
    """Within (1, 10⁻⁶): standard deviations 141 by addition, 45.3 by zCDP, 42.2 composed."""
    queries = [counted(f"q{place}", share="1", loss="squared") for place in range(100)]
    spec_file = read_spec(written(tmp_path, *queries))
    plan = make_plan(spec_file)
    assert Fraction(9995, 10_000) <= plan.epsilon <= 1
    assert not plan.is_over
    found = together(spec_file, plan)
    assert found.release.exact == plan.epsilon
    (row,) = found.noise
    assert (len(row.queries), row.measure) == (100, "standard deviation")
    assert row.added == pytest.approx(math.sqrt(19_999.8), abs=0.05)
    assert row.zcdp == pytest.approx(45.31, abs=0.01)
    assert row.exact == pytest.approx(42.22, abs=0.05)
    # Variances are in proportion to the number of queries.
    assert known(found.growth).share == pytest.approx(math.sqrt(1.01) - 1, abs=2e-4)


def test_a_year_of_nights_is_as_published(tmp_path: Path) -> None:
    """365 counts at ε = 0.05, read at δ = 10⁻⁶: 18.25, 4.96 and the exact binomial sum."""
    spec_file = read_spec(written(tmp_path, a_count("0.05"), epsilon="0.05"))
    found = together(spec_file, make_plan(spec_file), 365)
    season = known(found.season)
    assert season.added.epsilon == Fraction("18.25")
    assert season.zcdp == pytest.approx(4.958, abs=0.001)
    exact = known(season.exact)
    assert float(exact) == pytest.approx(4.61345, abs=0.00002)
    assert exact >= epsilon_of_binomial(365, 0.05, 1e-6)
    assert [totals.releases for totals in found.course][-2:] == [256, 365]
    for totals in found.course:
        least = epsilon_of_binomial(totals.releases, 0.05, 1e-6)
        assert float(known(totals.exact)) == pytest.approx(least, rel=1e-5)


def epsilon_of_binomial(times: int, epsilon: float, delta: float) -> float:
    """ε at ``delta`` of so many randomised responses: their losses are a binomial walk."""
    chance = math.exp(epsilon) / (1 + math.exp(epsilon))

    def delta_at(whole: float) -> float:
        total = 0.0
        for heads in range(times + 1):
            loss = epsilon * (2 * heads - times)
            if loss > whole:
                total += stats.binom.pmf(heads, times, chance) * -math.expm1(whole - loss)
        return total

    low, high = 0.0, times * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


def test_one_more_table_costs_what_a_release_with_it_does(tmp_path: Path) -> None:
    """The figure is the difference of two plans."""
    (tmp_path / "more").mkdir()
    few = [{**a_count("0.05"), "name": f"q{place}"} for place in range(12)]
    another = [*few, {**a_count("0.05"), "name": "another"}]
    totals = []
    for folder, queries in ((tmp_path, few), (tmp_path / "more", another)):
        spec_file = read_spec(written(folder, *queries, epsilon="2"))
        totals.append(together(spec_file, make_plan(spec_file)))
    before, after = totals
    more = known(before.one_more)
    assert more.added == Fraction("0.05")
    exact = known(after.release.exact) - known(before.release.exact)
    assert float(known(more.exact)) == pytest.approx(float(exact), rel=1e-3)
    assert more.zcdp == pytest.approx(known(after.release.zcdp) - known(before.release.zcdp))
    assert exact < Fraction("0.05")


def test_a_plan_with_shares_is_what_the_release_does(tmp_path: Path) -> None:
    """Shares, a target, a declared guarantee and a statistic: figure by figure."""
    queries = [
        counted("light", share="1", loss="squared"),
        counted("heavy", share="10", loss="absolute"),
        counted("aimed", target="absolute <= 20"),
        {**a_count("0.1"), "name": "declared"},
        shared_mode(),
    ]
    path = written(tmp_path, *queries)
    plan = make_plan(read_spec(path))
    public = run_release(path, tmp_path / "out").public
    made = json.loads((public / "release.json").read_bytes())["made"]
    assert "step" in made
    assert Fraction(made["total"]["epsilon"]) == plan.epsilon
    assert Fraction(made["total"]["delta"]) == plan.delta
    records = {record["name"]: record for record in made["queries"]}
    for one in plan.queries:
        record = records.pop(one.query.name)
        mechanism = mechanism_of(public, record["name"])
        assert accuracy_of(mechanism, one.query.answers) == one.chosen.accuracy
        assert Fraction(record["epsilon"]) == one.query.claimed.epsilon
        assert Fraction(record["charge"]["epsilon"]) == one.charge.epsilon
        assert Fraction(record["charge"]["delta"]) == one.charge.delta
    (statistic,) = plan.on_statistic
    record = records.pop(statistic.query.name)
    assert mechanism_of(public, record["name"]).family == statistic.design.name
    assert Fraction(record["charge"]["epsilon"]) == statistic.charge.epsilon
    assert not records


def shared_mode() -> dict[str, Any]:
    plain = query("mode", sensitivity="global", share="1", name="the_mode")
    del plain["guarantee"], plain["noise"]
    return plain


def test_targets_are_met_under_every_rule(tmp_path: Path) -> None:
    """A target decides the noise; what is left for a share differs by rule."""
    queries = [
        counted("aimed", target="absolute <= 40"),
        counted("free", share="1", loss="squared"),
    ]
    spec_file = read_spec(written(tmp_path, *queries))
    aimed, free = together(spec_file, make_plan(spec_file)).noise
    for figure in (aimed.added, aimed.zcdp, aimed.exact):
        assert figure == pytest.approx(40, rel=1e-3)
        assert known(figure) <= 40
    assert aimed.measure == "mean error"
    assert free.exact <= known(free.added) * (1 + 1e-3) < known(free.zcdp)


def test_rules_that_cannot_meet_the_targets_say_so(tmp_path: Path) -> None:
    """Thirty targets fit the budget where they compose, and not where they add up."""
    queries = [counted(f"q{place}", target="absolute <= 25") for place in range(30)]
    spec_file = read_spec(written(tmp_path, *queries))
    (row,) = together(spec_file, make_plan(spec_file)).noise
    assert row.added is None
    assert row.zcdp == pytest.approx(25, rel=1e-3)


def test_an_empirical_query_is_added_under_every_rule(tmp_path: Path) -> None:
    """Its mechanism has no profile, so its charge stands beside what the others amount to."""
    empirical = query("mode", name="seen", guarantee={"definition": "pure", "epsilon": "0.5"})
    alone = read_spec(written(tmp_path, a_count("0.05")))
    (tmp_path / "both").mkdir()
    both = read_spec(written(tmp_path / "both", a_count("0.05"), empirical))
    one, two = (known(together(spec, make_plan(spec), 50).season) for spec in (alone, both))
    assert known(two.exact) - known(one.exact) == 25
    assert known(two.zcdp) - known(one.zcdp) == pytest.approx(25)
    assert two.added.epsilon - one.added.epsilon == 25
    (tmp_path / "none").mkdir()
    none = read_spec(written(tmp_path / "none", empirical))
    assert plan_together(none, make_plan(none)) is None


def test_a_plan_composed_exactly_fits_where_a_sum_would_not(tmp_path: Path) -> None:
    queries = [{**a_count("0.1"), "name": f"q{place}"} for place in range(18)]
    path = written(tmp_path, *queries, epsilon="1.79")
    assert make_plan(read_spec(path)).is_over
    plain = yaml.safe_load(path.read_text("utf-8"))
    plain["budget"]["composition"] = "pld"
    path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    plan = make_plan(read_spec(path))
    assert not plan.is_over
    assert plan.delta == Fraction(MILLIONTH)
    assert float(plan.epsilon) == pytest.approx(epsilon_of_binomial(18, 0.1, 1e-6), rel=1e-4)
    assert plan.epsilon >= epsilon_of_binomial(18, 0.1, 1e-6)


@pytest.mark.parametrize("epsilon", ["0.05", "1", "6"])
def test_rho_of_a_pure_charge_is_that_of_randomised_response(epsilon: str) -> None:
    found = concentrated(Profile.of_charge(Fraction(epsilon), Fraction(0)).distribution())
    number = float(epsilon)
    assert found.rho == pytest.approx(number * math.tanh(number / 2), rel=1e-9)
    assert found.delta == 0
    # No order has a larger divergence than ρ·α, by the formula for two outcomes.
    heavy = 1 / (1 + math.exp(-number))
    for order in (1.001, 1.5, 2, 7, 60):
        moment = heavy**order * (1 - heavy) ** (1 - order) + (1 - heavy) ** order * heavy ** (
            1 - order
        )
        assert math.log(moment) / (order - 1) <= found.rho * order * (1 + 1e-9)


def test_the_conversion_of_zcdp_is_the_best_of_all_orders() -> None:
    """Against a fine grid of orders; and ρ within a budget gives the budget back."""
    for rho, delta in ((0.024356, 1e-6), (0.5, 1e-9), (4.0, 1e-3)):
        least = math.inf
        for place in range(1, 400_000):
            order = 1 + place / 1000
            bound = rho * order + math.log(1 / (order * delta)) / (order - 1)
            least = min(least, bound + math.log(1 - 1 / order))
        epsilon = Concentrated(rho).epsilon_at(delta)
        assert epsilon == pytest.approx(least, rel=1e-6)
        assert rho_within(epsilon or 0, delta) == pytest.approx(rho, rel=1e-6)
    assert Concentrated(0.1, 1e-6).epsilon_at(1e-6) is None


@pytest.mark.parametrize("deviation", [0.4, 3.0, 19.9, 20.1, 45.0])
def test_gaussian_noise_loses_what_its_sums_say(deviation: float) -> None:
    masses = {k: math.exp(-(k**2) / (2 * deviation**2)) for k in range(-900, 901)}
    total = sum(masses.values())
    wanted: list[Callable[[int], float]] = [lambda k: float(k != 0), abs, lambda k: k * k]
    for power, loss in enumerate(wanted):
        mean = sum(loss(k) * mass for k, mass in masses.items()) / total
        assert gaussian_loss(deviation, power) == pytest.approx(mean, rel=1e-3)


def test_gaussian_shares_are_the_best_of_their_budget(tmp_path: Path) -> None:
    """No other split of ρ between a light and a heavy share has a smaller weighted loss."""
    weights = {"light": 1, "heavy": 100}
    queries = []
    for name, weight in weights.items():
        queries.append(counted(name, share=str(weight), loss="squared"))
    spec_file = read_spec(written(tmp_path, *queries))
    asked, plan = asked_of_budget(spec_file, None, Fraction(0)), make_plan(spec_file)
    designs = {one.query.name: one.chosen.design for one in plan.queries}
    light, heavy = (known(row.zcdp) for row in shared_noise(asked, designs, None))
    rho = rho_within(1.0, 1e-6)
    assert 1 / (2 * light**2) + 1 / (2 * heavy**2) == pytest.approx(rho, rel=1e-3)
    best = light**2 + 100 * heavy**2
    for percent in range(1, 100):
        part = rho * percent / 100
        assert best <= (1 / (2 * part) + 100 / (2 * (rho - part))) * (1 + 1e-3)


def test_a_budget_without_delta_adds_up(tmp_path: Path) -> None:
    """Then there is no Gaussian noise, and ε is read at 10⁻⁶ beside the sum."""
    queries = [counted(f"q{place}", share="1", loss="squared") for place in range(20)]
    spec_file = read_spec(written(tmp_path, *queries, delta="0"))
    plan = make_plan(spec_file)
    assert plan.delta == 0
    found = together(spec_file, plan)
    assert found.delta == Fraction(MILLIONTH)
    assert known(found.release.exact) < plan.epsilon <= 1
    (row,) = found.noise
    assert row.zcdp is None
    assert row.added == row.exact == pytest.approx(math.sqrt(799.8), rel=1e-3)


def test_the_command_shows_a_season(tmp_path: Path, capsys: Capture) -> None:
    """In text, as JSON with exact figures, and on the page with its picture."""
    path = written(tmp_path, a_count("0.05"), epsilon="0.05")
    page = tmp_path / "plan.html"
    status, printed, _ = run(capsys, "plan", path, "--season", "365", "--html", page)
    assert status == 0
    (line,) = (line for line in printed.splitlines() if line.startswith("365 releases"))
    assert line.split()[-3:] == ["18.25", "4.958", "4.613449"]
    text = page.read_text("utf-8")
    assert "4.613449" in text
    assert "composed exactly</text>" in text
    plain = json.loads(run(capsys, "plan", path, "--season", "365", "--json")[1])
    season = plain["together"]["season"]
    assert season["added"] == {"epsilon": "18.25", "delta": "0"}
    assert Fraction(season["exact"]) <= Fraction("4.613449")
    assert len(plain["together"]["course"]) == 10
    assert plain["composition"] == "basic"
    assert json.loads(run(capsys, "plan", path, "-v", "--json")[1])["together"]["season"] is None


def test_a_season_without_any_epsilon_has_no_picture(tmp_path: Path, capsys: Capture) -> None:
    """Charges of δ that are added up exceed the δ at which ε is read."""
    guarantee = {"definition": "approximate", "epsilon": "0.5", "delta": MILLIONTH}
    empirical = query("mode", name="seen", guarantee=guarantee)
    path = written(tmp_path, a_count("0.05"), empirical)
    page = tmp_path / "plan.html"
    status, printed, _ = run(capsys, "plan", path, "--season", "30", "--html", page)
    assert status == 0
    (line,) = (line for line in printed.splitlines() if line.startswith("30 releases"))
    assert line.split()[4:] == ["16.5", "at", "δ", "=", "0.00003", "-", "-"]
    assert "30 releases like it" in page.read_text("utf-8")


@pytest.mark.parametrize("season", ["1", "0", "-3", "100001"])
def test_a_season_is_a_number_of_releases(tmp_path: Path, capsys: Capture, season: str) -> None:
    path = written(tmp_path, a_count("1"))
    status, _, error = run(capsys, "plan", path, "--season", season)
    assert status == 2
    assert "--season" in error
    with pytest.raises(SpecError, match="from 2 to 100000"):
        make_advised_plan(read_spec(path), season=int(season))


def test_questions_for_one_query_name_the_share(tmp_path: Path, capsys: Capture) -> None:
    """A least ε and a comparison are about guarantees; a share has none to change."""
    path = written(tmp_path, counted("free", share="1", loss="squared"), a_count("0.2"))
    spec_file = read_spec(path)
    found = list(epsilon_for(spec_file, parse_target("--epsilon-for", "absolute <= 3")))
    assert [least.query.name for least in found] == ["night"]
    status, _, error = run(capsys, "compare", path, "free")
    assert status == 2
    assert "queries[0].share" in error
    (tmp_path / "alone").mkdir()
    alone = read_spec(written(tmp_path / "alone", counted("free", target="absolute <= 9")))
    with pytest.raises(SpecError, match="from the whole budget"):
        list(epsilon_for(alone, parse_target("--epsilon-for", "absolute <= 3")))


def test_noise_for_a_share_is_not_talked_down(tmp_path: Path) -> None:
    """To write noise: on_statistic helps a guarantee; a share has none that could stay."""
    middle = {
        **query("binned", statistic="median", sensitivity="global", name="middle"),
        **{"loss": "absolute", "bins": {"low": 0, "high": 100, "count": 50}, "clamp": None},
    }
    del middle["clamp"]
    assert len(make_advised_plan(read_spec(written(tmp_path, middle))).recommendations) == 1
    del middle["guarantee"]
    shared = read_spec(written(tmp_path, {**middle, "share": "1"}))
    assert make_advised_plan(shared).recommendations == ()
