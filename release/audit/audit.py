"""The audit of a spec: the program on tiny tables, held against the guarantee that is claimed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from release.audit.alike import change_words, compare_nobody, compare_runs
from release.audit.guarantees import Guarantees
from release.audit.laws import Laws
from release.audit.ledgers import spend_ledgers
from release.audit.program import Answers, Program, Seen
from release.audit.storing import case_lines, write_spec, write_tables
from release.audit.tables import NOTHING, Case, Cases
from release.audit.verdict import Finding, Verdict
from release.budget.cost import Charges
from release.errors import ReleaseError, SpecError
from release.exact.domain import Codes
from release.pipeline import Watch
from release.queries.read import read_spec
from release.spec.periods import Period
from release.tables.duckdb import Engine

_BASES = 6
"""How many tables are tried for one with which the others are compared."""

TABLES, RUNS = 160, 24
"""How many tables are answered, and how many of them are released as a whole."""


@dataclass(frozen=True)
class AuditOptions:
    """How much is tried. ``processes`` releases are started as processes of their own."""

    tables: int = TABLES
    runs: int = RUNS
    processes: int = 2
    spark: str | None = None
    period: Period | None = None


def audit(spec_path: Path, options: AuditOptions, watch: Watch) -> Verdict:
    """Audit a spec; no confidential table is opened.

    Raises:
        SpecError: the spec is wrong, or refused whatever the tables hold.
    """
    spec_file = read_spec(spec_path, options.period)
    with (
        tempfile.TemporaryDirectory(prefix="dp-release-audit-") as folder,
        _one_engine(options.spark),
    ):
        program = Program(spec_file, Path(folder), options.spark)
        return _Audit(program, options, watch).verdict


def _one_engine(spark: str | None) -> AbstractContextManager[None]:
    """One Spark for all tables of an audit: to start it takes far longer than a tiny table."""
    if spark is None:
        return nullcontext()
    from release.queries.engines.spark import one_spark

    return one_spark(spark, Engine(threads=1, spark=spark))


class _Audit:
    """One audit, step by step."""

    def __init__(self, program: Program, options: AuditOptions, watch: Watch) -> None:
        self._program, self._options, self._watch = program, options, watch
        spec_file = program.spec_file
        self.verdict = Verdict(spec_file.spec.release.id)
        self._nobody: tuple[Codes, ...] | None = None
        self._cases = Cases(spec_file, options.tables, self._moved)
        self._say_limits()
        every = self._cases.cases()
        base, output, charged = self._released(every)
        self.verdict.epsilon, self.verdict.delta = charged.epsilon, charged.delta
        answers = self._answered(every)
        chosen = _spread(list(answers), len(self._cases.contents), options.runs)
        compare_runs(
            program, (base, output), chosen, answers, self.verdict, self._counted(len(chosen))
        )
        compare_nobody(program, self._cases.same(), self.verdict)
        change_words(output.runs or (), self.verdict)
        spend_ledgers(program, base, charged, self.verdict)
        self._compare_pairs(answers, charged)
        self._run_processes(base, every[0])

    def _released(self, cases: list[Case]) -> tuple[Case, Seen, Charges]:
        """The first of some tables that is released: one with many rows, the empty one, others.

        Raises:
            SpecError: all are refused, so it is not because of their rows.
        """
        reasons = []
        for case in (cases[-1], cases[0], *cases[1 : -1 : -(-len(cases) // _BASES)]):
            output = self._program.whole(case)
            if output.charged is not None and output.runs is not None:
                return case, output, output.charged
            reasons.append(output.files["standard error"].decode().removeprefix("error: "))
        raise SpecError("spec", f"a run on a tiny table is refused: {reasons[0]}")

    def _moved(self, case: Case) -> int:
        """How many queries have other answers in a table than in one of nobody."""
        try:
            if self._nobody is None:
                self._nobody = self._program.answers(Case((NOTHING,))).truths
                self.verdict.tried.tables += 1
            truths = self._program.answers(case).truths
        except ReleaseError:
            return 0
        self.verdict.tried.tables += 1
        return sum(
            not np.array_equal(nobody, own)
            for nobody, own in zip(self._nobody, truths, strict=True)
        )

    def _say_limits(self) -> None:
        verdict, spec = self.verdict, self._program.spec_file.spec
        verdict.tried.left_out = self._cases.left_out
        for column, (before, now) in self._program.cut.items():
            verdict.note(f"the key set of {column} is cut from {before} keys to {now}")
        if self._program.spec_file.contracts:
            verdict.note("the patterns of contracts are left out: made-up units fit none")
        empirical = [query.name for query in spec.released if query.is_empirical]
        if empirical:
            verdict.note(
                f"{', '.join(empirical)}: empirical sensitivity; held for neighbors of each table "
                "whose incoming unit was seen in it; digests in public files are not compared"
            )

    def _counted(self, total: int) -> Callable[[], None]:
        finished = 0

        def watch() -> None:
            nonlocal finished
            finished += 1
            self._watch(finished, total, "whole runs")

        return watch

    def _answered(self, cases: list[Case]) -> dict[Case, Answers]:
        answers = {}
        for number, case in enumerate(cases):
            self._watch(number, len(cases), "tables")
            try:
                answers[case] = self._program.answers(case)
            except ReleaseError as error:
                lines = tuple(case_lines(self._program.spec_file, case))
                text = f"refused because of its rows: {error}"
                self.verdict.add(Finding("refusals", "", text, lines))
        self.verdict.tried.tables += len(answers)
        return answers

    def _compare_pairs(self, answers: dict[Case, Answers], charged: Charges) -> None:
        laws = Laws()
        program = self._program
        guarantees = Guarantees(program.spec_file, charged, laws, self.verdict)
        # A table that was refused is a finding of its own, and has no answers to compare.
        pairs = [pair for pair in self._cases.pairs() if answers.keys() >= set(pair)]
        for number, (case, neighbor) in enumerate(pairs):
            if number % 50 == 0:
                self._watch(number, len(pairs), "pairs")
            guarantees.compare(case, neighbor, answers[case], answers[neighbor], self._cases)
        for own in list(answers.values())[:1]:
            # A query that was compared nowhere is named too, as not measured.
            for charge, run in zip(charged.queries, own.runs, strict=True):
                self.verdict.of_query.setdefault(run.query.name, (charge.epsilon, 0.0))
        guarantees.name_hidden()
        tried = self.verdict.tried
        tried.pairs, tried.laws, tried.outcomes = len(pairs), laws.count, laws.outcomes

    def _run_processes(self, *cases: Case) -> None:
        """Release two tables by the command itself: status, text and names of files are equal."""
        endings = []
        program = self._program
        for case in cases[: self._options.processes]:
            folder = program.process_folder()
            spec = write_spec(program.plain, "parquet", folder)
            write_tables(program.spec_file, case, "parquet", folder)
            command = [sys.executable, "-m", "release", "run", str(spec), "--out", "out"]
            ended = subprocess.run(command, cwd=folder, capture_output=True, check=False)  # noqa: S603
            files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
            endings.append((ended.returncode, ended.stdout, ended.stderr, files))
            self.verdict.tried.runs += 1
        if endings and any(ending != endings[0] for ending in endings):
            lines = tuple(_ending_line(*ending[:3]) for ending in endings)
            text = "two tables end with another status, text or list of files"
            self.verdict.add(Finding("the command", "", text, lines))


def _ending_line(status: int, output: bytes, errors: bytes) -> str:
    return f"status {status}: {(output + errors).decode()!r}"


def _spread(cases: list[Case], group: int, most: int) -> list[Case]:
    """So many cases: half of the last ``group``, which have the most rows, in their order."""
    first, rest = cases[-group:], cases[:-group]
    near = first[: max(1, most // 2)] if rest else first[:most]
    remainder = most - len(near)
    return [*near, *rest[:: max(1, -(-len(rest) // remainder))][:remainder]] if remainder else near
