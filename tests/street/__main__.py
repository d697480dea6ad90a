"""The command ``python -m tests.street``: many cases, or one, and what they came to."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import signal
import sys
from pathlib import Path
from random import Random

import yaml

from tests.street.crew import all_outcomes
from tests.street.summary import Summary, try_case


def show(text: str) -> None:
    """Print at once, also into a file."""
    print(text, flush=True)  # noqa: T201 - this is the command's output


def one_case(seed: int, kept: Path | None) -> int:
    """Walk one case, and show its spec and what every verb said."""
    outcome, walked = try_case(seed, kept)
    show(yaml.safe_dump(walked.case.spec, sort_keys=False, allow_unicode=True))
    for said in walked.said.values():
        status = f"{said.verb}: status {said.status}, {said.seconds:.1f} s of the processor"
        show(f"{status} {said.reason}")
    return report(Summary([outcome]))


def report(summary: Summary) -> int:
    """Show the summary; the exit status, for which a slow case is no failure."""
    show(summary.text())
    return int(any(not kind.startswith("slow") for kind in summary.failures()))


def main() -> int:
    """Read the arguments and walk."""
    parser = argparse.ArgumentParser(prog="python -m tests.street", description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--case", type=int, default=None)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=None)
    given = parser.parse_args()
    if given.case is not None:
        return one_case(given.case, given.keep)
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    show(f"seed {seed}")
    rng = Random(seed)  # noqa: S311 - seeds of cases
    seeds = [rng.randrange(10**9) for _ in range(given.cases)]
    summary = Summary()
    # Whoever has seen enough interrupts, and is told what was found until then; a shell starts what
    # it puts into the background with the signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        for outcome in all_outcomes(seeds, given.workers):
            summary.outcomes.append(outcome)
            # At once: a run of hours may be killed before its summary.
            for failure in outcome.failures:
                show(f"case {outcome.seed}: {failure.kind}: {failure.line[:200]}")
            done = len(summary.outcomes)
            if done % 50 == 0:
                show(f"{done} cases, {len(summary.failures())} kinds of failures")
    return report(summary)


if __name__ == "__main__":
    sys.exit(main())
