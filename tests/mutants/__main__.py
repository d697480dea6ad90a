"""The command ``python -m tests.mutants``."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import tests.mutants
from tests.mutants.changes import PROJECT, Key, Module, Mutant, modules
from tests.mutants.runner import OPTIONS, SURVIVED, Outcomes, Runner, say

TARGETS = ("release/budget", "release/exact", "release/verification")
TESTS = (
    *("exact", "budget", "records", "spec", "verification", "test_verbs.py"),
    # What a verdict says of a release that was revised.
    "operate/test_revise.py",
)
REASONS = Path(__file__).with_name("equivalent.toml")
MAY_SURVIVE = 0.05


def read_reasons() -> dict[Key, str]:
    """The equivalent mutants that are listed, each with its reason."""
    listed = tomllib.loads(REASONS.read_text("utf-8"))["equivalent"]
    return {
        (each["file"], each["in"], each["line"], change): each["reason"]
        for each in listed
        for change in each["changes"]
    }


def report(chosen: list[tuple[Module, Mutant]], outcomes: Outcomes, reasons: dict[Key, str]) -> int:
    """Print what became of the mutants; the exit status."""
    tally: defaultdict[str, Counter[str]] = defaultdict(Counter)
    rooms, of_rooms = Counter[str](), Counter[str]()
    survivors = []
    for module, mutant in chosen:
        outcome = "equivalent" if mutant.key in reasons else outcomes.of(module, mutant) or "open"
        tally[module.file][outcome] += 1
        room = "/".join(Path(module.file).parts[:2])
        rooms[room] += 1
        if outcome in SURVIVED:
            survivors.append((outcome, mutant))
            of_rooms[room] += 1
    for outcome, mutant in survivors:
        say(
            f"{outcome}: {mutant.file}:{mutant.place.lines.start} in {'.'.join(mutant.place.names)}"
        )
        say(f"    {mutant.line}\n    {mutant.change}")
    for file, counts in tally.items():
        say(f"{file}: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    for room, number in rooms.items():
        say(f"{room}: {of_rooms[room]} of {number} survive unexplained")
    share = len(survivors) / max(1, len(chosen))
    say(f"{len(survivors)} of {len(chosen)} mutants survive unexplained: {share:.1%}")
    return int(share > MAY_SURVIVE)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=tests.mutants.__doc__
    )
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--sample", type=int, help="so many mutants, chosen at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", default=[f"tests/{name}" for name in TESTS])
    arguments = parser.parse_args()
    os.chdir(PROJECT)
    pairs = [(module, mutant) for module in modules(arguments.targets) for mutant in module.mutants]
    if arguments.sample is not None and arguments.sample < len(pairs):
        # No secret hangs on which mutants these are.
        pairs = random.Random(arguments.seed).sample(pairs, arguments.sample)  # noqa: S311
    outcomes, reasons = Outcomes(), read_reasons()
    files = {module.file for module, _ in pairs}
    present = {mutant.key for module in modules(files) for mutant in module.mutants}
    for key in reasons:
        if key[0] in files and key not in present:
            say(f"listed as equivalent, and no longer a mutant: {key}")
    chosen = [p for p in pairs if p[1].key not in reasons and outcomes.of(*p) is None]
    say(f"{len(pairs)} mutants, {len(chosen)} of them to run")
    if chosen:
        status = pytest.main([*OPTIONS, *arguments.tests], plugins=[Runner(chosen, outcomes)])
        if status != 0:
            return int(status)
    return report(pairs, outcomes, reasons)


if __name__ == "__main__":
    sys.exit(main())
