"""Columns made from their bytes, and whether hashes differ."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from release.tables.columns import number_column, numbers_of, repeated_hashes, text_column


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_a_column_of_text_is_the_one_arrow_makes(values: list[str]) -> None:
    """Empty ones, and letters of several bytes."""
    column = text_column(values)
    column.validate(full=True)
    assert column.equals(pa.array(values, pa.string()))


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_numbers_go_in_and_come_out(values: list[int]) -> None:
    """Of both widths that released tables have."""
    for kind in (pa.int32(), pa.int64()):
        column = number_column(values, kind)
        assert column.equals(pa.array(values, kind))
        assert numbers_of(column).tolist() == values


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9) | st.integers(2**56 - 2, 2**56 + 2)),
    st.integers(0, 20),
)
def test_repeated_hashes_are_those_that_are_counted_twice(values: list[int], cut: int) -> None:
    """However they are split into batches."""
    hashes = np.array(values, dtype=np.uint64)
    found = repeated_hashes([hashes[:cut], hashes[cut:]])
    assert found.dtype == np.uint64
    assert sorted(found.tolist()) == sorted({one for one in values if values.count(one) > 1})


def test_no_column_loads_pandas() -> None:
    """It would take longer than most queries."""
    code = (
        "import sys, pyarrow as pa; from release.tables.columns import *; "
        "text_column(['a']); numbers_of(number_column([1], pa.int64())); "
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
