"""What many cases came to: counts, refusals by message, failures by kind, pooled figures."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path

from scipy.stats import binom

from tests.street.found import Failure, Measure, kind_of
from tests.street.held import held_against
from tests.street.specs import make_case
from tests.street.walk import Walk, processor, walk

SURE = 1e-6
BAND = 6.0


@dataclass(frozen=True)
class Outcome:
    """What a case came to.

    Attributes:
        seed: of the case.
        state: published, refused or failed.
        refusal: the line of a refusal.
        is_meant: whether the case was made to be refused, by a budget below its charge.
        failures: what must not be.
        measures: what is pooled.
        seconds: of the processor.
    """

    seed: int
    state: str
    refusal: str = ""
    is_meant: bool = False
    failures: tuple[Failure, ...] = ()
    measures: tuple[Measure, ...] = ()
    seconds: float = 0.0


def try_case(seed: int, kept: Path | None = None) -> tuple[Outcome, Walk]:
    """Walk a case in a folder that is removed, or kept where one is given."""
    start = processor()
    with tempfile.TemporaryDirectory(prefix="street-") as scratch:
        folder = kept or Path(scratch)
        folder.mkdir(exist_ok=True)
        walked = walk(make_case(seed), folder)
        found = held_against(walked)
        is_published = walked.is_published
    failures = tuple(each for each in found if isinstance(each, Failure))
    measures = tuple(each for each in found if isinstance(each, Measure))
    run = walked.said["run"]
    state = "published" if is_published and not run.status else "refused"
    case = walked.case
    is_meant = case.budget == "small" or case.ledger == "0.6"
    refusal = run.reason if state == "refused" else ""
    seconds = processor() - start
    return Outcome(seed, state, refusal, is_meant, failures, measures, seconds), walked


@dataclass
class Summary:
    """All outcomes of a run."""

    outcomes: list[Outcome] = field(default_factory=list)

    def pooled(self) -> list[tuple[str, int, float, str]]:
        """For each figure its cells, what was found beside what was expected, and the fault."""
        added: dict[str, list[Measure]] = {}
        for outcome in self.outcomes:
            for measure in outcome.measures:
                added.setdefault(measure.of, []).append(measure)
        lines = []
        for of, measures in sorted(added.items()):
            cells = sum(measure.cells for measure in measures)
            found = sum(measure.found for measure in measures)
            expected = sum(measure.expected for measure in measures)
            fault = ""
            if of.startswith("interval"):
                if binom.cdf(found, cells, 0.94) < SURE:
                    fault = f"{found:.0f} of {cells} intervals hold"
                ratio = found / cells if cells else 1.0
            else:
                deviation = sqrt(sum(measure.variance for measure in measures))
                if deviation and abs(found - expected) > BAND * deviation:
                    fault = f"{found:.5g} where {expected:.5g} was planned"
                ratio = found / expected if expected else 1.0
            lines.append((of, cells, ratio, fault))
        return lines

    def failures(self) -> dict[str, list[tuple[int, str]]]:
        """The failures by kind, with seeds; pooled ones have the seeds of the worst cases."""
        kinds: dict[str, list[tuple[int, str]]] = {}
        for outcome in self.outcomes:
            for failure in outcome.failures:
                kinds.setdefault(failure.kind, []).append((outcome.seed, failure.line))
        for of, _, _, fault in self.pooled():
            if fault:
                kinds[f"pooled {of}"] = [(self.worst(of), fault)]
        return kinds

    def worst(self, of: str) -> int:
        """The seed of the case that is furthest off in a pooled figure."""

        def off(outcome: Outcome) -> float:
            mine = [measure for measure in outcome.measures if measure.of == of]
            gap = sum(measure.expected - measure.found for measure in mine)
            return gap if of.startswith("interval") else abs(gap)

        return max(self.outcomes, key=off).seed

    def text(self) -> str:
        """The summary, for people."""
        states = Counter(outcome.state for outcome in self.outcomes)
        meant = sum(each.state == "refused" and each.is_meant for each in self.outcomes)
        seconds = sum(outcome.seconds for outcome in self.outcomes)
        lines = [
            f"{len(self.outcomes)} cases: {states['published']} published, "
            f"{states['refused']} refused ({meant} of them by a budget that is too small), "
            f"{states['failed']} without an end",
            f"{seconds / max(1, len(self.outcomes)):.1f} s of the processor a case",
            "",
            "refused, by message:",
        ]
        refused = Counter(kind_of(each.refusal) for each in self.outcomes if each.refusal)
        firsts: dict[str, int] = {}
        for each in self.outcomes:
            if each.refusal:
                firsts.setdefault(kind_of(each.refusal), each.seed)
        lines += [
            f"  {many:4} {words}  (case {firsts[words]})" for words, many in refused.most_common()
        ]
        lines += ["", "pooled figures:"]
        lines += [
            f"  {of}: {cells} cells, {ratio:.4f}" + (f"  WRONG: {fault}" if fault else "")
            for of, cells, ratio, fault in self.pooled()
        ]
        lines += ["", "failures by kind:"]
        kinds = self.failures()
        for kind, found in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
            seeds = " ".join(str(seed) for seed, _ in found[:8])
            more = f" and {len(found) - 8} more" if len(found) > 8 else ""
            lines.append(f"  {len(found):4} {kind}")
            lines.append(f"       {found[0][1][:300]}")
            lines.append(f"       cases {seeds}{more}")
            lines.append(f"       python -m tests.street --case {found[0][0]}")
        if not kinds:
            lines.append("  none")
        return "\n".join(lines)
