"""Verifying every release of a folder as a Prefect flow: ``python -m flows.verify OUT``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Literal, TypeAlias, cast

from dp_release_verify.verdict import worst
from flows.environment import quiet_flow, set_environment
from flows.run import Sealed, run_sealed
from release.cli.console import echo, guarded
from release.operate.operations import Judged, verify_each
from release.verification.evidence import Required, Trust
from release.verification.keys import read_trusted

Evidence: TypeAlias = Literal["none", "signed", "paid", "witnessed"]


@quiet_flow(name="dp-release-verify")
def verify_flow(out: str, trust: tuple[str, ...] = (), require: Evidence = "signed") -> Sealed:
    """Verify every release of ``out``, with its ledger and the auditor's folders beside it.

    ``trust`` holds the curator's public keys, or the paths of files with them.
    """
    set_environment()
    asked = Trust(keys=read_trusted(trust), require=Required(require))
    # Sealed, because a refusal may tell of an auditor's folder.
    return Sealed(run_sealed("verify", verify_each, Path(out), None, asked))


def main(arguments: list[str] | None = None) -> None:
    """The command line of the flow; errors and exit status as of ``dp-release verify OUT``."""
    parser = argparse.ArgumentParser(prog="python -m flows.verify", description=__doc__)
    parser.add_argument("out", help="the folder that holds the releases")
    parser.add_argument("--trust", action="append", default=[], help="as of dp-release verify")
    parser.add_argument("--require", choices=list(Required), default=Required.SIGNED)
    options = parser.parse_args(arguments)

    def action() -> int:
        set_environment()
        sealed = verify_flow(options.out, tuple(options.trust), options.require)
        found = cast("tuple[Judged, ...]", sealed.content)
        for each in found:
            echo(f"{each.release_id}  {each.words}")
        return worst([each.status for each in found])

    sys.exit(guarded(action))


if __name__ == "__main__":
    main()
