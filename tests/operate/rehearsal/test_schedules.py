"""A schedule is rehearsed as it begins: reasons without figures."""

from __future__ import annotations

import datetime
from pathlib import Path

import yaml

from release.operate.rehearsal.schedules import rehearsal_lines
from release.operate.schedule import Schedule
from release.spec.periods import parse_period
from tests.small import MARKED, MARKS, Small, query

TODAY = datetime.date(2024, 1, 3)


def scheduled(folder: Path, where: str, since: str = "2024-01-02") -> list[str]:
    small = Small(MARKED, [query("count"), query("mode")])
    path = small.write(folder)
    plain = small.plain()
    plain["release"]["id"] = "day-{period}"
    plain["queries"][0]["where"] = where
    path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    schedule = Schedule(path, parse_period(since, "since"))
    return list(rehearsal_lines(schedule, folder / "out", TODAY, None))


def test_a_run_that_would_do_is_told_without_figures(tmp_path: Path) -> None:
    told = scheduled(tmp_path, "DATE '{period}' > DATE '2000-01-01'")
    assert told == [
        "spec.yaml: 2024-01-02 was rehearsed, and would not be refused before its charge"
    ]
    assert not any(mark.decode() in told[0] for mark in MARKS)
    assert not (tmp_path / "out").exists()


def test_a_run_that_would_be_refused_is_told_with_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "late"
    folder.mkdir()
    small = Small(MARKED, [query("count")])
    path = small.write(folder)
    plain = small.plain("rows-{period}.parquet")
    plain["release"]["id"] = "day-{period}"
    path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    schedule = Schedule(path, parse_period("2024-01-02", "since"))
    (told,) = rehearsal_lines(schedule, folder / "out", TODAY, None)
    assert told.startswith("spec.yaml: 2024-01-02 would be refused: tables.rows.path: no file")


def test_nothing_due_is_told_too(tmp_path: Path) -> None:
    told = scheduled(tmp_path, "DATE '{period}' > DATE '2000-01-01'", "2024-01-09")
    assert told == ["spec.yaml: no period is due, so nothing was rehearsed"]
