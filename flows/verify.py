"""Every release of a folder verified as a Prefect flow: ``python -m flows.verify OUT``.

One Prefect task; with a Dask cluster it hands the releases to that in batches.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

from prefect import flow

from flows.cluster import ThroughPrefect, on_cluster
from flows.release import Sealed, run_sealed
from release.cli import guarded
from release.errors import ReleaseError
from release.operations import IN_PART, verify_each
from release.required import Required


@flow(name="dp-release-verify", persist_result=False, retries=0, log_prints=False)
def verify_flow(
    out: str,
    cluster: Literal["here", "elsewhere"] | None = None,
    require: Literal["signature", "none"] = "signature",
) -> Sealed:
    """Verify every release of ``out``, with its ledger and the auditor's halves that are there."""
    fan_out = None if cluster is None else ThroughPrefect(cluster == "elsewhere")
    found = run_sealed("verify-all", verify_each, Path(out), fan_out, Required(require))
    return Sealed(found)


def main(arguments: list[str] | None = None) -> None:
    """The command line of the flow; errors and exit status as of ``dp-release verify-all``."""
    parser = argparse.ArgumentParser(prog="python -m flows.verify", description=__doc__)
    parser.add_argument("out", help="the folder that holds the releases")
    parser.add_argument("--scheduler", help="a Dask scheduler: tcp://host:8786")
    parser.add_argument("--workers", type=int, help="or so many Dask workers of this machine")
    parser.add_argument("--require", choices=list(Required), default=Required.SIGNATURE)
    given = parser.parse_args(arguments)

    def action() -> int:
        run: Callable[..., Sealed] = verify_flow
        cluster: Literal["here", "elsewhere"] | None = None
        if given.scheduler is not None or given.workers is not None:
            run = on_cluster(verify_flow, given.scheduler, given.workers)
            cluster = "here" if given.scheduler is None else "elsewhere"
        done = run(given.out, cluster, str(given.require))
        found = cast("tuple[tuple[str, str], ...]", done.content)
        for name, told in found:
            print(f"{name}  {told}")  # noqa: T201 - for people
        if any(told.startswith("refused") for _, told in found):
            raise ReleaseError("some releases do not verify; see above")
        return 3 if any(told == IN_PART for _, told in found) else 0

    sys.exit(guarded(action))


if __name__ == "__main__":
    main()
