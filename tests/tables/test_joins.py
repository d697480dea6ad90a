"""A row takes one row of its unit in another table, chosen by a hash, or each with ``many``."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import release
from release.bundle.files.asked import asked_of
from release.queries.read import read_spec
from release.tables.duckdb import Tables, wide_table
from tests.small import Small, query

Rows = list[dict[str, Any]]


def spec_of(
    folder: Path,
    rows: Rows,
    homes: Rows,
    *,
    many: bool | None = None,
    is_empirical: bool = False,
) -> Path:
    asked = query("count", by=[], sensitivity="empirical" if is_empirical else "global")
    plain = Small([], [asked]).plain("rows.parquet")
    plain["keys"] = {}
    join: dict[str, Any] = {"table": "homes"} | ({} if many is None else {"many": many})
    plain["tables"]["rows"] |= {"columns": {"unit": "string", "wh": "integer"}, "join": join}
    columns = {"unit": "string", "heating": "string", "size": "integer"}
    plain["tables"]["homes"] = {"path": "homes.parquet", "columns": columns}
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    pq.write_table(pa.Table.from_pylist(homes), folder / "homes.parquet")
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    return folder / "spec.yaml"


def seen(spec: Path) -> Counter[tuple[Any, ...]]:
    """The rows that queries see: unit, wh, heating, size."""
    with Tables(read_spec(spec)) as tables:
        found = tables.rows(f"SELECT * FROM {wide_table('rows')}", "rows").to_pylist()
    return Counter((row["unit"], row["wh"], row["heating"], row["size"]) for row in found)


def tables_of(seed: int) -> tuple[Rows, Rows]:
    chance = random.Random(seed)  # noqa: S311 - a table
    rows = [{"unit": f"u{chance.randrange(30)}", "wh": number} for number in range(80)]
    homes = [
        {
            "unit": f"u{chance.randrange(35)}",
            "heating": chance.choice(["gas", "oil", None]),
            "size": chance.choice([1, 2, 30, None]),
        }
        for _ in range(60)
    ]
    return rows, homes


def expected(
    rows: Rows, homes: Rows, release_id: str, *, is_empirical: bool
) -> Counter[tuple[Any, ...]]:
    """The rule of docs/design/spec.md in Python."""

    def rank(home: Mapping[str, Any]) -> bytes:
        text = f"{release_id}|"
        # Of a copy of a unit, under another name, the same row has to be kept.
        for name in ("heating", "size") if is_empirical else ("unit", *sorted(home)):
            value = home[name]
            text += "-" if value is None else f"{len(str(value))}:{value}"
        return sha256(text.encode()).digest()

    of_unit = defaultdict(list)
    for home in homes:
        of_unit[home["unit"]].append(home)
    taken = {unit: min(own, key=rank) for unit, own in of_unit.items()}
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        if row["unit"] in taken:
            home = taken[row["unit"]]
            found[row["unit"], row["wh"], home["heating"], home["size"]] += 1
    return found


@pytest.mark.parametrize("is_empirical", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_row_takes_the_row_of_its_unit_with_the_least_hash(
    seed: int, is_empirical: bool, tmp_path: Path
) -> None:
    rows, homes = tables_of(seed)
    spec = spec_of(tmp_path, rows, homes, is_empirical=is_empirical)
    release_id = read_spec(spec).spec.release.id
    assert seen(spec) == expected(rows, homes, release_id, is_empirical=is_empirical)
    # What another unit has there, and in which order rows stand, changes nothing for the others.
    without = [home for home in homes if home["unit"] != "u3"]
    own = Counter({row: count for row, count in seen(spec).items() if row[0] != "u3"})
    assert seen(spec_of(tmp_path, rows, without[::-1], is_empirical=is_empirical)) == own


def test_many_rows_count_once_for_each(tmp_path: Path) -> None:
    rows, homes = tables_of(9)
    spec = spec_of(tmp_path, rows, homes, many=True)
    every: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        for home in homes:
            if home["unit"] == row["unit"]:
                every[row["unit"], row["wh"], home["heating"], home["size"]] += 1
    assert seen(spec) == every


def test_what_a_join_leaves_out_and_chooses_is_told_and_published(tmp_path: Path) -> None:
    rows = [{"unit": unit, "wh": 1} for unit in ("a", "b", "b", "c")]
    homes = [{"unit": unit, "heating": "gas", "size": n} for n, unit in enumerate("bba")]
    for many, words in (
        (None, "have several partners in homes, and take one of them"),
        (True, "have several partners in homes, and count once for each"),
    ):
        spec = spec_of(tmp_path, rows, homes, many=many)
        told = {reason.words: reason.count for reason in release.check(spec).left_out}
        assert told["have no partner in homes, and are left out"] == 1
        assert told[words] == 2
        join = asked_of(read_spec(spec).spec).tables["rows"].join
        assert join is not None
        assert join.many is many
        published = release.run(spec, tmp_path / f"out-{many}")
        assert release.verify(published.public, require="none")
