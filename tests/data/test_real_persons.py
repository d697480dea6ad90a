"""Real persons, whole: census counts against the published truth, survey records by three kinds.

The tables have no person's number, so each row is given one first, in a copy of the test's own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from scipy.stats import chi2

from release.queries.read import read_spec
from release.street import run_release
from release.verification.verifier import verify
from tests.answers import answer, load
from tests.small import UNSIGNED, Small, mechanism_of, sensitivities, truths


def numbered(source: Path, target: Path) -> None:
    """A copy with a number for each row."""
    duckdb.execute(
        f"COPY (SELECT 'p' || lpad((row_number() OVER ())::VARCHAR, 8, '0') AS person, * "
        f"FROM '{source}') TO '{target}' (FORMAT parquet)"
    )


def values(path: Path, column: str) -> list[str]:
    """The categories of a column, which the data dictionary makes public."""
    found = duckdb.execute(
        f"SELECT DISTINCT {column} FROM '{path}' WHERE {column} IS NOT NULL ORDER BY 1"
    ).fetchall()
    return [value for (value,) in found]


def spec(
    folder: Path, columns: list[str], keys: dict[str, list[str]], queries: list[Any], **privacy: Any
) -> Path:
    plain = Small([], queries).plain("persons.parquet")
    plain["tables"] = {
        "persons": {
            "path": "persons.parquet",
            "columns": dict.fromkeys(["person", *columns], "string"),
        }
    }
    plain["privacy"] = {"unit": "person", "max_rows_per_unit": 1, **privacy}
    plain["keys"] = keys
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain), "utf-8")
    return path


def query(name: str, kind: str, by: list[str], domain: Any, **more: Any) -> dict[str, Any]:
    guarantee = {"definition": "pure", "epsilon": "1"}
    shared = {"table": "persons", "by": by, "domain": domain, "guarantee": guarantee}
    return {"name": name, "kind": kind, "sensitivity": "global", **shared, **more}


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_counts_of_hawaii_by_tract_race_and_age(
    relation: str, census: Path, tmp_path: Path
) -> None:
    """461 tracts, eight classes, two ages: each of the 7,376 counts is the published one."""
    numbered(census / "persons_hi_2020.parquet", tmp_path / "persons.parquet")
    truth = duckdb.execute(
        f"SELECT tract, race_eth, age_group, n FROM '{census}/truth_hi_2020.parquet' ORDER BY ALL"
    ).fetchall()
    by = ["tract", "race_eth", "age_group"]
    keys = {column: sorted({row[i] for row in truth}) for i, column in enumerate(by)}
    top = {"ordered": {"min": 0, "max": 5000}}
    queries = [
        query("seen", "count", by, top, sensitivity="empirical"),
        query("by_tract", "count", ["tract"], {"ordered": {"min": 0, "max": 20_000}}),
    ]
    path = spec(tmp_path, by, keys, queries, neighbors=relation)
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        answered = answer(tables, spec_file)
    assert answered[0].codes.tolist() == [n for *_, n in truth]
    assert len(truth) == 7376
    assert answered[0].codes.sum() == 1_455_271
    for found in sensitivities(answered, spec_file):
        group = found.group.size
        assert {shift for (shift,) in found.shifts} == {1, group - 1}


def test_tracts_of_hawaii_are_published_and_verified(census: Path, tmp_path: Path) -> None:
    numbered(census / "persons_hi_2020.parquet", tmp_path / "persons.parquet")
    tracts = duckdb.execute(
        f"SELECT DISTINCT tract FROM '{census}/truth_hi_2020.parquet' ORDER BY 1"
    ).fetchall()
    counts = {"ordered": {"min": 0, "max": 20_000}}
    path = spec(
        tmp_path,
        ["tract"],
        {"tract": [tract for (tract,) in tracts]},
        [query("persons", "count", ["tract"], counts)],
        neighbors="add_remove",
    )
    published = run_release(path, tmp_path / "out")
    assert verify(published.public, None, UNSIGNED).status == 0
    released = pq.read_table(published.public / "data" / "persons.parquet")
    true = dict(
        duckdb.execute(
            f"SELECT tract, sum(n)::BIGINT FROM '{census}/truth_hi_2020.parquet' GROUP BY 1"
        ).fetchall()
    )
    off = np.array(
        [
            answer - true[tract]
            for tract, answer in zip(
                released.column("tract").to_pylist(),
                released.column("answer").to_pylist(),
                strict=True,
            )
        ]
    )
    # Discrete Laplace noise at ε = 1: one of 461 beyond 25 about once in 300 million runs.
    assert np.abs(off).max() <= 25
    assert np.abs(off).max() > 0


def test_every_count_of_hawaii_errs_as_its_mechanism_says(census: Path, tmp_path: Path) -> None:
    """7,376 cells of 0..10,000, most of them near empty: no error is out of its distribution."""
    numbered(census / "persons_hi_2020.parquet", tmp_path / "persons.parquet")
    by = ["tract", "race_eth", "age_group"]
    truth = duckdb.execute(
        f"SELECT tract, race_eth, age_group, n FROM '{census}/truth_hi_2020.parquet' ORDER BY ALL"
    ).fetchall()
    keys = {column: sorted({row[i] for row in truth}) for i, column in enumerate(by)}
    counts = {"ordered": {"min": 0, "max": 10_000}}
    path = spec(tmp_path, by, keys, [query("cells", "count", by, counts)], neighbors="add_remove")
    published = run_release(path, tmp_path / "out")
    mechanism = mechanism_of(published.public, "cells")
    table = pq.read_table(published.public / "data" / "cells.parquet")
    answers = np.array(table.column("answer").to_pylist())
    true = np.array([n for *_, n in truth])
    reach = 6
    seen, expected = np.zeros(2 * reach + 1), np.zeros(2 * reach + 1)
    for code in np.unique(true).tolist():
        here = answers[true == code] - code
        seen += np.bincount(np.clip(here, -reach, reach) + reach, minlength=seen.size)
        chances = mechanism.probabilities(code)
        errors = np.clip(np.arange(chances.size) - code, -reach, reach) + reach
        expected += here.size * np.bincount(errors, chances, seen.size)
    assert seen.sum() == 7376
    statistic = float(((seen - expected) ** 2 / expected).sum())
    # Cells of different truths make the sum smaller than chi-square, never larger.
    assert chi2.sf(statistic, seen.size - 1) > 1e-8
    assert abs(int(answers.sum()) - 1_455_271) < 7376


def test_survey_records_by_value_mode_and_count(acs: Path, tmp_path: Path) -> None:
    """Education of each person, industry by area, and counts by area and sex."""
    source = acs / "national2019.parquet"
    numbered(source, tmp_path / "persons.parquet")
    persons = tmp_path / "persons.parquet"
    columns = ["PUMA", "SEX", "EDU", "INDP_CAT"]
    everyone = values(persons, "person")
    schooling, areas = values(persons, "EDU"), values(persons, "PUMA")
    own = query("education", "per_unit", ["person"], {"nominal": schooling}, of="EDU")
    attribute = {"neighbors": "attribute", "attribute": "EDU"}
    spec_file = read_spec(spec(tmp_path, columns, {"person": everyone}, [own], **attribute))
    with load(spec_file) as tables:
        codes = answer(tables, spec_file)[0].codes
    real = pq.read_table(source).column("EDU").to_pylist()
    assert codes.tolist() == [0 if v is None else schooling.index(v) for v in real]
    published = run_release(tmp_path / "spec.yaml", tmp_path / "own")
    assert verify(published.public, None, UNSIGNED).status == 0
    record = json.loads((published.public / "release.json").read_bytes())
    assert record["made"]["queries"][0]["cells"] == 27_253
    released = pq.read_table(published.public / "data" / "education.parquet")
    kept = np.mean(np.array(released.column("answer_code").to_pylist()) == codes)
    odds = np.e
    assert kept == pytest.approx(odds / (odds + len(schooling) - 1), abs=0.02)

    work = values(persons, "INDP_CAT")
    queries = [
        query("industry", "mode", ["PUMA"], {"nominal": work}, of="INDP_CAT"),
        query("by_sex", "count", ["PUMA", "SEX"], {"ordered": {"min": 0, "max": 3000}}),
    ]
    keys = {"PUMA": areas, "SEX": ["1", "2"]}
    path = spec(tmp_path, columns, keys, queries, neighbors="replace_one", fixed=["PUMA"])
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        runs = answer(tables, spec_file)
    # The industry's noise is on the numbers of persons, so these are its truth.
    industry, by_sex = truths(runs, spec_file)
    table = pq.read_table(source, columns=columns).to_pylist()
    for place, area in enumerate(areas):
        here = [row for row in table if row["PUMA"] == area]
        counts = [sum(row["INDP_CAT"] == one for row in here) for one in work]
        assert industry[place] == counts
        for index, sex in enumerate(["1", "2"]):
            assert by_sex[2 * place + index] == sum(row["SEX"] == sex for row in here)
    assert verify(run_release(path, tmp_path / "areas").public, None, UNSIGNED).status == 0


def test_tenure_and_income_decile_jointly(acs: Path, tmp_path: Path) -> None:
    """The commonest of both by area, as one answer: every person replaced by every other."""
    source = acs / "national2019.parquet"
    numbered(source, tmp_path / "persons.parquet")
    persons = tmp_path / "persons.parquet"
    areas, tenures = values(persons, "PUMA"), values(persons, "OWN_RENT")
    deciles = values(persons, "PINCP_DECILE")
    sizes = (len(tenures), len(deciles))
    parts = [
        query("tenure", "mode", ["PUMA"], {"nominal": tenures}, of="OWN_RENT"),
        query("decile", "mode", ["PUMA"], {"nominal": deciles}, of="PINCP_DECILE"),
    ]
    for part in parts:
        del part["guarantee"], part["sensitivity"]
    queries = [
        {**query("seen", "tuple", ["PUMA"], None), "sensitivity": "empirical"},
        query("worst_case", "tuple", ["PUMA"], None),
    ]
    for one in queries:
        one["of"] = ["tenure", "decile"]
        del one["domain"]
    columns = ["PUMA", "OWN_RENT", "PINCP_DECILE"]
    privacy = {"neighbors": "replace_one", "fixed": ["PUMA"]}
    path = spec(tmp_path, columns, {"PUMA": areas}, [*parts, *queries], **privacy)
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        answered = answer(tables, spec_file)
    found = sensitivities(answered, spec_file)

    def profile(row: dict[str, str | None]) -> tuple[np.ndarray, ...]:
        return tuple(
            np.array([int(row[column] == label) for label in labels])
            for column, labels in (("OWN_RENT", tenures), ("PINCP_DECILE", deciles))
        )

    table = pq.read_table(source, columns=columns).to_pylist()
    everyone = {(row["OWN_RENT"], row["PINCP_DECILE"]): profile(row) for row in table}
    everyone["nobody", "nobody"] = (np.zeros(sizes[0], int), np.zeros(sizes[1], int))
    seen: set[tuple[int, ...]] = set()
    for place, area in enumerate(areas):
        here = [(row["OWN_RENT"], row["PINCP_DECILE"]) for row in table if row["PUMA"] == area]
        totals = [sum(everyone[one][part] for one in here) for part in range(2)]
        true = [int(np.argmax(total)) for total in totals]
        assert answered[0].codes[place] == true[0] * sizes[1] + true[1]
        for out in {*here, ("nobody", "nobody")}:
            for into in everyone.values():
                there = [np.argmax(totals[i] - everyone[out][i] + into[i]) for i in range(2)]
                gaps = [int(true[i] - there[i]) for i in range(2)]
                for sign in (1, -1):
                    seen.add(tuple(sign * gap % n for gap, n in zip(gaps, sizes, strict=True)))
    for place, size in enumerate(sizes):
        if not any(shift[place] for shift in seen):  # categories: everything stands in
            seen |= {tuple(s * (i == place) for i in range(2)) for s in range(1, size)}
    assert set(found[0].shifts) == seen - {(0, 0)}
    assert len(found[1].shifts) == sizes[0] * sizes[1] - 1
    published = run_release(path, tmp_path / "out")
    assert published.verdict is not None
    assert published.verdict.status == 0
    released = pq.read_table(published.public / "data" / "seen.parquet")
    assert released.column_names == ["PUMA", "answer_tenure", "answer_decile", "answer_code"]
    assert set(released.column("answer_decile").to_pylist()) <= set(deciles)
