"""A release that is written in Python is the one that its YAML asks for."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import release
from release.bundle.files.asked import asked_of

KEYS = {"origin": ["EWR", "JFK", "LGA"]}


def flights() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    planes = rng.integers(0, 800, 4000)
    return pd.DataFrame(
        {
            "tailnum": [f"N{plane}" for plane in planes],
            "origin": rng.choice(["EWR", "JFK", "LGA", "TEB"], 4000),
            "minutes": rng.integers(20, 400, 4000),
            "day": [datetime.date(2013, 1, int(day)) for day in rng.integers(1, 29, 4000)],
            "late": rng.random(4000) < 0.2,
        }
    )


def frames(plain: pd.DataFrame) -> dict[str, Any]:
    arrow = pa.Table.from_pandas(plain, preserve_index=False)
    categories = plain.assign(origin=plain["origin"].astype("category"))
    return {
        "pandas": plain,
        "categories": categories,
        "arrow": arrow,
        "dictionary": pa.Table.from_pandas(categories, preserve_index=False),
        "polars": pl.DataFrame(arrow),
    }


def draft_of(frame: Any) -> Any:
    given = {"day": "date"} if isinstance(frame, pd.DataFrame) else {}
    data = release.dataset(frame, unit="tailnum", rows=10, keys=KEYS, columns=given, name="flights")
    draft = data.release("flights-2013", epsilon=62, title="Flights")
    draft.count("planes", of="tailnum", by=["origin"], epsilon=20, where="minutes > 60")
    return draft.count("departures", epsilon=2)


def test_five_lines_publish_what_the_same_spec_publishes(tmp_path: Path) -> None:
    plain = flights()
    # At this ε the noise is 0, or the test would fail once in many thousand runs.
    is_long = plain["minutes"] > 60
    truth = [
        plain[is_long & (plain["origin"] == key)]["tailnum"].nunique() for key in KEYS["origin"]
    ]
    asked = set()
    for name, frame in frames(plain).items():
        draft = draft_of(frame)
        published = draft.run(tmp_path / name)
        table = release.open(published.public)["planes"].to_pandas()
        # A plane counts in an airport if one of its ten rows is kept there: most are.
        assert np.abs(table["answer"].to_numpy() - truth).max() <= 3
        assert release.verify(published.public, require="none").status == 0
        path = draft.write(tmp_path / f"{name}.yaml")
        assert path.read_text("utf-8") == (published.public / "spec.yaml").read_text("utf-8")
        asked.add(str(asked_of(release.read_spec(path).spec)))
    # The frame's own library leaves no trace in what is asked.
    assert len(asked) == 1


def test_questions_without_an_epsilon_share_the_budget() -> None:
    data = release.dataset(flights(), unit="tailnum", rows=10, keys=KEYS)
    draft = data.release("shares", epsilon=3)
    draft.mode("busiest", of="origin", categories=KEYS["origin"])
    draft.mean("length", of="minutes", clamp=(0, 500))
    draft.quantiles("quartiles", of="minutes", at=["0.25", "0.75"], within=(0, 500))
    plan = draft.plan()
    assert plan.epsilon <= 3
    assert plan.epsilon > 2
    assert [query["share"] for query in draft.queries] == ["1", "1", "1"]


def test_a_draft_shows_no_row_of_its_frame() -> None:
    draft = draft_of(flights())
    for shown in (repr(draft), repr(draft.dataset), draft.text):
        assert "N1" not in shown
        assert "TEB" not in shown
    checked = draft.check()
    assert "TEB" not in repr(checked)


def test_a_notebook_shows_plans_verdicts_and_what_was_published(tmp_path: Path) -> None:
    draft = draft_of(flights())
    plan = draft.plan()
    assert repr(plan) == "<plan of flights-2013: ε = 62, δ = 0 of ε = 62, δ = 0>"
    shown = plan._repr_html_()
    assert "<td>planes</td><td>3</td>" in shown
    assert "<td>ε 60</td>" in shown
    published = draft.run(tmp_path / "out")
    verdict = release.verify(published.public, require="none")
    for shown in (published._repr_html_(), verdict._repr_html_()):
        assert "VERIFIED" in shown
        assert "TEB" not in shown
    assert "report.html" in published._repr_html_()
    # What a spec calls a question is text, and no HTML.
    verdict.questions.append("<b>bold</b>")
    assert "<b>" not in verdict._repr_html_()


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    frame = flights()
    with pytest.raises(release.SpecError, match="found list; give a pandas or Polars frame"):
        release.dataset([1, 2], unit="tailnum", rows=1)
    with pytest.raises(release.SpecError, match=r"columns: 'dya' is not there; did you mean 'day'"):
        release.dataset(frame, unit="tailnum", rows=1, columns={"dya": "date"})
    data = release.dataset(frame, unit="tailnumber", rows=1)
    with pytest.raises(release.SpecError, match=r"privacy.unit: 'tailnumber' is not there; did"):
        data.release("a", epsilon=1).count("rows").plan()
    with pytest.raises(release.SpecError, match="epsilon"):
        data.release("a", epsilon=0.1)  # type: ignore[arg-type]
    draft = release.dataset(frame, unit="tailnum", rows=1).release("a", epsilon=1).count("rows")
    draft.write(tmp_path / "spec.yaml")
    with pytest.raises(release.StorageError, match="is there already; name another file"):
        draft.write(tmp_path / "spec.yaml")


def ask(**fields: Any) -> Any:
    data = release.dataset(flights(), unit="tailnum", rows=10, keys=fields.pop("keys", KEYS))
    return data.release("a", epsilon=1).query("n", fields.pop("kind", "count"), **fields)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"where": pd.Series(["secret"])}, r"queries\[0\].where: found Series; write text"),
        ({"where": len}, r"where: found builtin_function_or_method; write text"),
        ({"by": "origin"}, r"by: found 'origin'; write a list"),
        ({"keys": {"origin": "EWR"}}, r"keys.origin: found 'EWR'; write one of"),
        ({"keys": ["origin"]}, r"keys: write the keys of each column"),
        ({"domain": range(9)}, r"domain: found a list; write one of"),
    ],
)
def test_what_no_spec_has_is_refused_without_a_value(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(release.SpecError, match=says) as caught:
        ask(**fields).plan()
    assert "secret" not in str(caught.value)


def test_no_name_of_a_field_shows_a_value_of_a_frame() -> None:
    frame = flights()
    for given in (frame["day"].value_counts().to_dict(), {np.int64(104729): 1}):
        with pytest.raises(release.SpecError, match="names are no text") as caught:
            ask(kind="mean", of="minutes", bins=given)
        assert "104729" not in str(caught.value)
    with pytest.raises(release.SpecError, match="found NaT; write a date"):
        ask(keys={"day": [pd.NaT]})
    with pytest.raises(release.SpecError, match="write text, a number"):
        ask(where=np.longdouble(1))


def test_arguments_of_questions_are_told_by_their_own_names() -> None:
    draft = ask()
    for clamp in (110, ("0", "110"), (110,), (110, 0)):
        with pytest.raises(release.SpecError, match=r"^clamp: "):
            draft.mean("m", of="minutes", clamp=clamp)
    with pytest.raises(release.SpecError, match=r"^max_rows_per_unit: it is called rows here"):
        release.dataset(flights(), unit="tailnum", rows=1, max_rows_per_unit=5)
    with pytest.raises(release.SpecError, match=r"^spec: found a draft; call its own"):
        release.plan(draft)
    twice = pd.concat([flights(), flights()[["origin"]]], axis=1)
    with pytest.raises(release.SpecError, match=r"^frame: the column 'origin' stands twice"):
        release.dataset(twice, unit="tailnum", rows=1)


def test_keys_of_other_libraries_are_those_of_a_list() -> None:
    days = {"day": [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]}
    for given in (
        {"day": pd.date_range("2024-01-01", periods=2)},
        {"day": [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")]},
        {"day": pl.Series(days["day"])},
    ):
        assert release.dataset(flights(), unit="tailnum", rows=1, keys=given).keys == days
    numbers = {"minutes": np.arange(2)}
    assert ask(keys=numbers, by=["minutes"]).plan().epsilon == 1


def test_an_arrow_column_of_another_type_is_refused_without_a_value(tmp_path: Path) -> None:
    table = pa.table({"home": ["h1", "h2"], "wh": ["secret", "3"]})
    data = release.dataset(table, unit="home", rows=1, columns={"wh": "integer"})
    draft = data.release("homes", epsilon=1).count("homes")
    with pytest.raises(release.ReleaseError) as caught:
        draft.run(tmp_path / "out")
    assert "type string, declared integer" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_column_of_a_type_that_no_spec_has_is_left_out() -> None:
    frame = pl.DataFrame({"home": ["h1"], "wh": pl.Series([[1, 2]])})
    assert release.dataset(frame, unit="home", rows=1).columns == {"home": "string"}
