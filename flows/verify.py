"""Verifying every release of a folder as a Prefect flow: ``python -m flows.verify OUT``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Literal, TypeAlias, cast

from prefect import flow

from flows.release import Sealed, run_sealed
from release.cli.console import guarded
from release.errors import ReleaseError
from release.operate.operations import IN_PART, verify_each
from release.records.signing import read_public_key
from release.verification.provenance import Trust
from release.verification.required import Required

Evidence: TypeAlias = Literal["none", "signed", "paid", "witnessed"]


@flow(name="dp-release-verify", persist_result=False, retries=0, log_prints=False)
def verify_flow(out: str, trust: tuple[str, ...] = (), require: Evidence = "signed") -> Sealed:
    """Verify every release of ``out``, with its ledger and the auditor bundles beside it.

    ``trust`` holds the curator's public keys, or the paths of files with them.
    """
    keys = tuple(read_public_key(text) for text in trust)
    asked = Trust(keys=keys, require=Required(require))
    # Sealed, because a refusal may tell of an auditor bundle.
    return Sealed(run_sealed("verify", verify_each, Path(out), None, asked))


def main(arguments: list[str] | None = None) -> None:
    """The command line of the flow; errors and exit status as of ``dp-release verify OUT``."""
    parser = argparse.ArgumentParser(prog="python -m flows.verify", description=__doc__)
    parser.add_argument("out", help="the folder that holds the releases")
    parser.add_argument("--trust", action="append", default=[], help="as of dp-release verify")
    parser.add_argument("--require", choices=list(Required), default=Required.SIGNED)
    options = parser.parse_args(arguments)

    def action() -> int:
        sealed = verify_flow(options.out, tuple(options.trust), options.require)
        verdicts = dict(cast("tuple[tuple[str, str], ...]", sealed.content))
        for name, verdict in verdicts.items():
            print(f"{name}  {verdict}")  # noqa: T201 - for people
        if any(verdict.startswith("refused") for verdict in verdicts.values()):
            raise ReleaseError("some releases do not verify; see above")
        return 3 if IN_PART in verdicts.values() else 0

    sys.exit(guarded(action))


if __name__ == "__main__":
    main()
