"""Periods, spec templates, and which periods of a schedule are due."""

from __future__ import annotations

import calendar
import datetime
import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from release.budget.entries import Spent
from release.budget.ledger import ScopeCap, abort, create_ledger, reserve
from release.cli.main import main
from release.errors import BudgetError, DataError, LedgerError, ReleaseError, SpecError
from release.job import Options
from release.operate.catching_up import Ended, catch_up
from release.operate.doctor import examine
from release.operate.operations import Place
from release.operate.schedule import Became, OnePeriod, Schedule, periods_of
from release.queries.read import read_spec
from release.records.keys.files import create_key
from release.spec.periods import Every, Period, filled, is_template, parse_period, periods_ended
from release.street import run_release
from release.verification.verifier import verify
from tests.small import UNSIGNED, Row, Small, query

DATES = st.dates(datetime.date(1, 1, 8), datetime.date(9998, 12, 31))
DAY = datetime.timedelta(days=1)


@given(DATES, st.sampled_from(Every))
def test_periods_tile_the_calendar(day: datetime.date, every: Every) -> None:
    """Found by another road: the first day on which the name changes."""

    def name(one: datetime.date) -> str:
        year, week, _ = one.isocalendar()
        return {
            Every.DAY: one.strftime("%Y-%m-%d").zfill(10),
            Every.WEEK: f"{year:04}-w{week:02}",
            Every.MONTH: f"{one.year:04}-{one.month:02}",
            Every.QUARTER: f"{one.year:04}-q{-(-one.month // 3)}",
            Every.YEAR: f"{one.year:04}",
        }[every]

    period = parse_period(name(day))
    assert str(period) == name(day)
    assert period.start <= day <= period.end
    assert name(period.start) == name(period.end) == name(day)
    assert name(period.start - DAY) != name(day) != name(period.end + DAY)
    assert period.next().start == period.end + DAY
    assert parse_period(str(period.next())) == period.next()


@pytest.mark.parametrize(
    "text",
    ["", "2024-13", "2023-02-29", "2024-w54", "2024-q5", "24", "2024-1", "2024-W05", "0000",
     "2024-01-05 ", "2024/01", "٢٠٢٤", "2024-w00", "today"],
)  # fmt: skip
def test_what_is_no_period_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="--period: found"):
        parse_period(text)


def test_a_leap_year_has_its_day() -> None:
    days = list(periods_ended(parse_period("2024-02-01"), datetime.date(2024, 3, 1)))
    assert len(days) == calendar.monthrange(2024, 2)[1] == 29
    assert str(parse_period("2024-02").end) == "2024-02-29"
    assert str(parse_period("2020-w53").end) == "2021-01-03"


def test_a_template_is_filled_in_as_text() -> None:
    text = b"id: a-{period}\nwhere: d BETWEEN {period_start} AND {period_end} # {perio} {x}\n"
    assert is_template(text)
    assert filled(text, parse_period("2024-q1")) == (
        b"id: a-2024-q1\nwhere: d BETWEEN 2024-01-01 AND 2024-03-31 # {perio} {x}\n"
    )
    with pytest.raises(SpecError, match="the spec is a template; say for which"):
        filled(text, None)
    with pytest.raises(SpecError, match="the spec names no period"):
        filled(b"id: a\n", parse_period("2024"))


ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": day, "kind": i % 4, "wh": i}
    for i in range(12)
    for day in (1, 2, 3)
]


def template(folder: Path) -> Path:
    """A table for each of three days, and a spec for any day."""
    small = Small(ROWS, [query("count", sensitivity="global", by=[])])
    for day in (1, 2, 3):
        replace(small, rows=[row for row in ROWS if row["day"] <= day]).write(folder)
        (folder / "rows.parquet").rename(folder / f"rows-2024-01-0{day}.parquet")
    plain = small.plain("rows-{period}.parquet")
    plain["release"] |= {"id": "daily-{period}", "period": "{period}"}
    plain["queries"][0]["where"] = "day = day(DATE '{period}')"
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    return folder / "spec.yaml"


def test_a_template_is_published_as_an_ordinary_spec(tmp_path: Path) -> None:
    spec, period = template(tmp_path), parse_period("2024-01-02")
    with pytest.raises(SpecError, match="--period"):
        run_release(spec, tmp_path / "out")
    public = run_release(spec, tmp_path / "out", options=Options(period=period)).public
    assert public.name == "daily-2024-01-02"
    published = (public / "spec.yaml").read_bytes()
    assert not is_template(published)
    assert published == filled(spec.read_bytes(), period)
    assert read_spec(spec, period).spec.tables["rows"].path == "rows-2024-01-02.parquet"
    assert verify(public, None, UNSIGNED).status == 0


def run_one(spec: Path, out: Path, key: Path | None = None) -> object:
    return lambda one: run_release(spec, out, options=Options(period=one.period, key=key))


JANUARY = parse_period("2024-01-01")


def test_missed_periods_are_caught_up_with_oldest_first(tmp_path: Path) -> None:
    spec, out = template(tmp_path), tmp_path / "out"
    schedule = Schedule(spec, JANUARY)
    assert not periods_of(schedule, out, JANUARY.start)
    done: list[str] = []

    def release_one(one: OnePeriod) -> None:
        run_release(spec, out, options=Options(period=one.period))
        done.append(str(one.period))

    first = catch_up(schedule, out, release_one, today=datetime.date(2024, 1, 4), most=2)
    assert first.ended is Ended.CAUGHT_UP
    assert done == ["2024-01-01", "2024-01-02"]
    # The table of the fourth is not there yet: that holds nothing up and is tried again.
    late = catch_up(schedule, out, release_one, today=datetime.date(2024, 1, 5))
    assert late.ended is Ended.FAILED
    assert [str(one.period) for one, _ in late.refused] == ["2024-01-04"]
    assert done == ["2024-01-01", "2024-01-02", "2024-01-03"]
    (tmp_path / "rows-2024-01-03.parquet").rename(tmp_path / "rows-2024-01-04.parquet")
    again = catch_up(schedule, out, release_one, today=datetime.date(2024, 1, 5))
    assert (again.ended, len(again.released), again.error) == (Ended.CAUGHT_UP, 1, None)
    found = periods_of(schedule, out, datetime.date(2024, 1, 5))
    assert {one.became for one in found} == {Became.PUBLIC}
    delayed = replace(schedule, delay_days=2)
    assert len(periods_of(delayed, out, datetime.date(2024, 1, 5))) == 2


def test_the_end_of_a_scope_ends_the_run_and_that_of_a_month_is_told_apart(tmp_path: Path) -> None:
    spec, out = template(tmp_path), tmp_path / "out"
    from release.budget.ledger import PeriodCap

    signer = create_key(tmp_path / "key")
    monthly = PeriodCap(every="month", epsilon="1", delta="0")
    cap = ScopeCap(scope="tests", epsilon="2", delta="0", period=monthly)
    ledger = create_ledger(out / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    run = run_one(spec, out, tmp_path / "key")
    schedule = Schedule(spec, JANUARY)
    third = datetime.date(2024, 1, 4)
    reached = catch_up(schedule, out, run, today=third)  # type: ignore[arg-type]
    assert (reached.ended, len(reached.released)) == (Ended.CAP_REACHED, 1)
    assert isinstance(reached.error, BudgetError)
    assert not reached.error.scope_ended
    from release.budget.ledger import policy

    ledger.append(policy(cap.model_copy(update={"period": None}), "2024-01-02"))
    spent = catch_up(schedule, out, run, today=third)  # type: ignore[arg-type]
    assert (spent.ended, len(spent.released)) == (Ended.BUDGET_SPENT, 1)
    assert "the cap is 2" in str(spent.error)
    found = periods_of(schedule, out, third)
    assert [one.became for one in found] == [Became.PUBLIC, Became.PUBLIC, Became.DUE]


def test_a_period_that_dies_after_drawing_is_left_out_in_the_end(tmp_path: Path) -> None:
    spec, out = template(tmp_path), tmp_path / "out"
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="9", delta="0")
    ledger = create_ledger(out / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    schedule, day = Schedule(spec, JANUARY, attempts=2), datetime.date(2024, 1, 2)
    name = "daily-2024-01-01"
    for times in (1, 2):
        ledger.append(reserve("tests", name, Spent(), "2024-01-02"))
        assert periods_of(schedule, out, day)[0].became is Became.CUT_OFF
        ledger.append(abort(name, "2024-01-02", drawn=True))
        expected = Became.DUE if times == 1 else Became.LEFT_OUT
        assert periods_of(schedule, out, day)[0].became is expected
    ledger.append(reserve("tests", "daily-2024-01-02", Spent(), "2024-01-02"))
    ledger.append(abort("daily-2024-01-02", "2024-01-02", drawn=False))
    assert periods_of(schedule, out, day + DAY)[1].became is Became.DUE


def test_a_night_that_never_comes_is_skipped_and_told_no_more(tmp_path: Path) -> None:
    spec, out = template(tmp_path), tmp_path / "out"
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="9", delta="0")
    create_ledger(out / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    (tmp_path / "rows-2024-01-02.parquet").unlink()
    schedule, run = Schedule(spec, JANUARY), run_one(spec, out, tmp_path / "key")
    fourth = datetime.date(2024, 1, 4)
    for _ in range(2):
        assert catch_up(schedule, out, run, today=fourth).error is not None  # type: ignore[arg-type]
    command = ["skip", str(spec), "2024-01-02", "--out", str(out), "--key", str(tmp_path / "key")]
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*command, "--reason", "the meter was down"])
    done = catch_up(schedule, out, run, today=fourth)  # type: ignore[arg-type]
    assert (done.ended, done.error, done.released) == (Ended.CAUGHT_UP, None, ())
    states = [one.became for one in periods_of(schedule, out, fourth)]
    assert states == [Became.PUBLIC, Became.SKIPPED, Became.PUBLIC]
    told = [finding.message for finding in examine(Place(out, tmp_path / "key"), (schedule,))]
    assert not [message for message in told if "2024-01-02" in message]
    for refused in ("2024-01-01", "2024-01-02"):
        with pytest.raises(SystemExit, match=r"^[1-9]"):
            main([*command[:2], refused, *command[3:], "--reason", "again"])


@pytest.mark.parametrize("error", [LedgerError("broken"), DataError("missing")])
def test_a_broken_ledger_ends_the_run_and_a_missing_table_does_not(
    error: ReleaseError, tmp_path: Path
) -> None:
    tried = []

    def fail(one: OnePeriod) -> None:
        tried.append(one)
        raise error

    schedule = Schedule(template(tmp_path), JANUARY)
    found = catch_up(schedule, tmp_path / "out", fail, today=datetime.date(2024, 1, 4))
    assert found.ended is Ended.FAILED
    assert len(tried) == (1 if isinstance(error, LedgerError) else 3)
    assert found.error is error


@pytest.mark.parametrize("name", ["daily", "daily-{period}-{period}", "x{period_start}"])
def test_a_templates_id_names_its_period_once(name: str, tmp_path: Path) -> None:
    spec = template(tmp_path)
    text = spec.read_text("utf-8").replace("DATE '{period}'", "DATE '{period_start}'")
    spec.write_text(text.replace("daily-{period}", name), "utf-8")
    schedule = Schedule(spec, Period(datetime.date(2024, 1, 1), Every.MONTH))
    with pytest.raises(SpecError, match=r"release.id"):
        periods_of(schedule, tmp_path, datetime.date(2024, 3, 1))


def test_a_machine_that_dies_in_every_draw_spends_no_more_than_its_attempts(
    tmp_path: Path,
) -> None:
    """Killed for real, night after night, while it draws."""
    from release import job
    from release.budget.ledger import read_ledger
    from release.operate.operations import Place, Run, release_due

    spec, out = template(tmp_path), tmp_path / "out"
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="90", delta="0")
    create_ledger(out / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    schedule = Schedule(spec, JANUARY, attempts=2)
    day = datetime.date(2024, 1, 2)
    statuses = []
    for _ in range(5):
        child = os.fork()
        if child == 0:
            vars(job)["SYSTEM"] = lambda size: os._exit(9)
            try:
                release_due(schedule, Run(Place(out, tmp_path / "key")), day)
            finally:
                os._exit(0)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert statuses == [9, 9, 0, 0, 0]
    assert read_ledger(out / "ledger").state.spent("tests").epsilon == 2
    assert periods_of(schedule, out, day)[0].became is Became.LEFT_OUT
