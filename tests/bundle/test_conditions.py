"""Conditions in words: they say what the tree says, for every form that a spec can write."""

from __future__ import annotations

import pytest

from release.bundle.report.conditions import in_words, listed
from release.spec.declarations import ColumnType
from release.spec.expressions.functions import FUNCTIONS
from release.spec.expressions.parse import parse_expression

COLUMNS = {
    "heating": ColumnType.STRING,
    "year_built": ColumnType.INTEGER,
    "age": ColumnType.INTEGER,
    "day": ColumnType.DATE,
    "is_new": ColumnType.BOOLEAN,
    "kwh": ColumnType.NUMBER,
}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "heating = 'heat pump' AND year_built < 1960",
            "the heating is “heat pump” and the year built is before 1960",
        ),
        ("age < 18", "the age is below 18"),
        ("NOT age < 18", "the age is at least 18"),
        ("age BETWEEN 18 AND 64", "the age is from 18 to 64"),
        ("age NOT BETWEEN 18 AND 64", "the age is not from 18 to 64"),
        ("heating IN ('gas', 'oil', 'wood')", "the heating is “gas”, “oil” or “wood”"),
        ("day >= DATE '2013-01-05'", "the day is no earlier than 2013-01-05"),
        ("is_new", "is new is true"),
        ("NOT is_new", "is new is false"),
        ("is_new = FALSE", "is new is false"),
        ("kwh IS NOT NULL", "the kwh is not missing"),
        (
            "age < 18 AND (is_new OR kwh * 2 > 1.5)",
            "the age is below 18 and (is new is true or the kwh times 2.0 is above 1.5)",
        ),
        ("year(day) = 2013", "the year of the day is 2013"),
        ("starts_with(heating, 'g')", "the heating starts with “g”"),
        ("NOT (is_new AND age < 3)", "it is not so that (is new is true and the age is below 3)"),
    ],
)
def test_a_condition_is_told_in_plain_words(sql: str, words: str) -> None:
    assert in_words(parse_expression("where", sql, COLUMNS)) == words


def test_every_case_of_a_derived_column_is_told() -> None:
    sql = "CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' ELSE 'old' END"
    tree = parse_expression("sql", sql, COLUMNS, ColumnType.STRING)
    expected = "“minor” if the age is below 18, “adult” if the age is below 65, else “old”"
    assert in_words(tree) == expected


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_function_loses_an_argument(name: str) -> None:
    """Each argument stands in the words, whether the function has words of its own or not."""
    from release.records.trees import CallNode, ColumnNode

    function = FUNCTIONS[name]
    columns = [f"column_{'abc'[place]}" for place in range(len(function.takes))]
    tree = CallNode(call=name, of=[ColumnNode(column=column) for column in columns])
    words = in_words(tree)
    for column in columns:
        assert column.replace("_", " ") in words


def test_a_list_is_read_as_one() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"], "or") == "a, b or c"
