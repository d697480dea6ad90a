"""Fan-out through Prefect: one task of a flow, and the Dask client of the flow's task runner.

Prefect costs some hundred milliseconds for each of its tasks and Dask some two, so a stage that
does thousands of things is one Prefect task, which hands batches to Dask itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from prefect import Flow

from release.errors import SpecError
from release.fanout import OnDask, Refused

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


@dataclass(frozen=True)
class ThroughPrefect:
    """On the Dask cluster of the flow whose task asks; ``leaves`` as of a FanOut."""

    leaves: bool

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R | Refused]:
        """As :class:`release.fanout.FanOut` has it."""
        from distributed import Client
        from prefect.context import FlowRunContext
        from prefect_dask.utils import get_dask_client

        # The cluster is there once its client was asked for, and found where that is the current.
        context: Any = FlowRunContext.get()
        with Client.as_current(context.task_runner.client), get_dask_client() as client:
            yield from OnDask(client).map(function, items)


def on_cluster(flow: Flow[P, R], scheduler: str | None, workers: int | None) -> Callable[P, R]:
    """The flow with a Dask cluster: that of a scheduler, or of so many processes of its own.

    Raises:
        SpecError: Dask is not installed.
    """
    try:
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError as error:
        raise SpecError("--scheduler", "needs Dask; pip install 'dp-release[dask]'") from error
    if scheduler is not None:
        runner: Any = DaskTaskRunner(address=scheduler)
    else:
        kept = {"n_workers": workers or 2, "threads_per_worker": 1, "dashboard_address": ":0"}
        runner = DaskTaskRunner(cluster_kwargs=kept)
    return flow.with_options(task_runner=runner)
