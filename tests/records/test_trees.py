"""Constants of published conditions: one form each."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from release.records.trees import TimestampNode


@pytest.mark.parametrize("text", ["2013-01-05 12:30:00", "2013-01-05 12:30:00.000001"])
def test_a_time_without_an_offset(text: str) -> None:
    assert TimestampNode.model_validate({"timestamp": text}).timestamp == text


@pytest.mark.parametrize(
    "text",
    [
        "2013-01-05 12:30:00-05:00",
        "2013-01-05 12:30:00+00:00",
        "2013-01-05 12:30:00Z",
        "2013-01-05T12:30:00",
        "2013-01-05 12:30",
        "2013-01-05 12:30:00.100",
    ],
)
def test_another_form_of_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="not a timestamp such as 2013-01-05 12:30:00"):
        TimestampNode.model_validate({"timestamp": text})
