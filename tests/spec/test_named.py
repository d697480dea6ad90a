"""Things by their names."""

from __future__ import annotations

from dataclasses import dataclass

from release.spec.named import by_name, names_of


@dataclass(frozen=True)
class _Cap:
    name: str
    most: int


YEAR, DAY, LATER_YEAR = _Cap("year", 4), _Cap("day", 1), _Cap("year", 5)


def test_items_stand_under_their_names_and_of_two_with_one_name_the_last() -> None:
    assert by_name([YEAR, DAY]) == {"year": YEAR, "day": DAY}
    assert list(by_name([YEAR, DAY, LATER_YEAR]).values()) == [LATER_YEAR, DAY]
    assert by_name([]) == {}


def test_every_item_gives_its_name_in_order() -> None:
    assert names_of(iter([DAY, YEAR, DAY])) == ["day", "year", "day"]
