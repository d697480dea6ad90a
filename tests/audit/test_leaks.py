"""Each planted leak is found; the copy without any is held."""

from __future__ import annotations

import pytest

from tests.audit.draws import DRAWS
from tests.audit.leaks import COUNT, LEAKS, Leak, small
from tests.audit.runner import Job, audited
from tests.every import every


@pytest.mark.parametrize("leak", LEAKS[:: every(8)], ids=lambda leak: leak.name)
def test_a_leak_is_found(leak: Leak) -> None:
    (found,) = audited([Job(leak.name, leak.module, leak.old, leak.new, leak.write)])
    assert found.is_found, found


def test_a_copy_without_a_leak_is_held() -> None:
    (found,) = audited([Job("nothing", "", "", "", small(COUNT))])
    assert found.status == 0, found


@pytest.mark.parametrize("job", DRAWS[:: every(3)], ids=lambda job: job.name)
def test_a_wrong_draw_of_every_family_is_found(job: Job) -> None:
    (found,) = audited([job])
    assert found.is_found, found
