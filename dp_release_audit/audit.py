"""The audit of a spec: the program on tiny tables, held against the guarantee that is claimed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np

from dp_release_audit.alike import change_words, compare_nobody, compare_runs
from dp_release_audit.guarantees import Guarantees
from dp_release_audit.laws import Laws
from dp_release_audit.ledgers import spend_ledgers
from dp_release_audit.program import Answers, Program, Seen
from dp_release_audit.storing import case_lines, write_spec, write_tables
from dp_release_audit.tables import NOTHING, Case, Cases
from dp_release_audit.verdict import Finding, Verdict
from release.budget.cost import Charges
from release.errors import BudgetError, DesignError, ReleaseError, SpecError
from release.exact.domain import Codes
from release.job import Watch
from release.queries.read import read_spec
from release.spec.periods import Period
from release.tables.duckdb import Engine

_BASES = 6
"""How many tables are tried for one with which the others are compared."""

TABLES, RUNS = 160, 24
"""How many tables are answered, and how many of them are released as a whole."""


@dataclass(frozen=True)
class AuditOptions:
    """How much is tried.

    ``processes`` releases are started as processes of their own. With ``is_brief`` the audit ends
    with the pair, the run or the step of its first finding: it says that something is wrong, and
    not all that is.
    """

    tables: int = TABLES
    runs: int = RUNS
    processes: int = 2
    is_brief: bool = False
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
        try:
            program = Program(spec_file, Path(folder), options.spark)
        except (BudgetError, DesignError) as error:
            # A run decides this from the spec, before it opens a table.
            raise SpecError("spec", f"a run is refused: {error}") from error
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
        self._answers: dict[Case, Answers | None] = {}
        self._say_limits()
        every = self._cases.cases()
        base, output, charged = self._released(every)
        self.verdict.epsilon, self.verdict.delta = charged.epsilon, charged.delta
        # What takes least for most errors comes first: a pair is two tables that are answered, and
        # a ledger is some releases.
        steps: tuple[Callable[[], None], ...] = (
            lambda: self._compare_pairs(charged, len(every)),
            lambda: self._compare_runs(every, (base, output)),
            lambda: compare_nobody(program, self._cases.same(), self.verdict),
            lambda: change_words(output.runs or (), self.verdict),
            lambda: spend_ledgers(program, base, charged, self.verdict),
            lambda: self._run_processes(base, every[0]),
        )
        for step in steps:
            if self._goes_on():
                step()

    def _goes_on(self, *_what_is_next: object) -> bool:
        return self.verdict.is_held or not self._options.is_brief

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

    def _answered(self, case: Case, total: int) -> Answers | None:
        """The answers of a table, found once; None of one that is refused, which is a finding."""
        if case not in self._answers:
            self._watch(len(self._answers), total, "tables")
            try:
                self._answers[case] = self._program.answers(case)
                self.verdict.tried.tables += 1
            except ReleaseError as error:
                self._answers[case] = None
                lines = tuple(case_lines(self._program.spec_file, case))
                text = f"refused because of its rows: {error}"
                self.verdict.add(Finding("refusals", "", text, lines))
        return self._answers[case]

    def _compare_runs(self, cases: list[Case], base: tuple[Case, Seen]) -> None:
        """Release some of the tables as a whole, and hold them against the one of ``base``."""
        answers = {}
        for case in cases:
            answered = self._answered(case, len(cases))
            if answered is not None:
                answers[case] = answered
        chosen = _spread(list(answers), len(self._cases.contents), self._options.runs)
        counted = self._counted(len(chosen))
        compared = takewhile(self._goes_on, chosen)
        compare_runs(self._program, base, compared, answers, self.verdict, counted)

    def _compare_pairs(self, charged: Charges, total: int) -> None:
        laws = Laws()
        program = self._program
        guarantees = Guarantees(program.spec_file, charged, laws, self.verdict)
        compared = 0
        for case, neighbor in takewhile(self._goes_on, self._cases.pairs()):
            here, there = self._answered(case, total), self._answered(neighbor, total)
            # A table that was refused is a finding of its own, and has no answers to compare.
            if here is not None and there is not None:
                compared += 1
                guarantees.compare(case, neighbor, here, there, self._cases)
        for own in [own for own in self._answers.values() if own is not None][:1]:
            # A query that was compared nowhere is named too, as not measured.
            for charge, run in zip(charged.queries, own.runs, strict=True):
                self.verdict.of_query.setdefault(run.query.name, (charge.epsilon, 0.0))
        guarantees.name_hidden()
        tried = self.verdict.tried
        tried.pairs, tried.laws, tried.outcomes = compared, laws.count, laws.outcomes

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
