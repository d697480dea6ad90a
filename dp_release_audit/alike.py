"""Holds whole runs against each other: all that is not noise has to be the same for every table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from dp_release_audit.program import Answers, Program, Seen, truth_of
from dp_release_audit.storing import FORMS, case_lines
from dp_release_audit.tables import Case
from dp_release_audit.verdict import Finding, Verdict
from dp_release_audit.words import Stream
from release.at_work import AtWork
from release.errors import ReleaseError
from release.exact.domain import Codes

MOST_WORDS = 120


def compare_runs(
    program: Program,
    base: tuple[Case, Seen],
    cases: Iterable[Case],
    answers: dict[Case, Answers],
    verdict: Verdict,
    watch: Callable[[], None],
) -> None:
    """Run the program on the cases, in both stored forms and orders, and compare with the base."""
    # Of each form: the spec names another file, so the bytes differ.
    bases = {"parquet": base[1]}
    for number, case in enumerate(cases):
        # The bases are written forwards, and half of the others backwards: an order would show.
        form, backwards = FORMS[number % 2], number % 2 == 0
        output = program.whole(case, form, backwards=backwards)
        verdict.tried.runs += 1
        if not output.is_system:
            text = "the noise is not drawn from the operating system's generator"
            verdict.add(Finding("the source of noise", "", text))
        if output.elsewhere:
            text = "a run writes or reaches something beside its output and temporary files"
            verdict.add(Finding("elsewhere", "", text, output.elsewhere[:6]))
        _compare_answers(program, case, output, answers[case], verdict)
        if form not in bases:
            bases[form] = program.whole(base[0], form)
            verdict.tried.runs += 1
        _compare_bytes(program, (base[0], case), (bases[form], output), verdict)
        watch()


def _compare_bytes(
    program: Program, cases: tuple[Case, Case], outputs: tuple[Seen, Seen], verdict: Verdict
) -> None:
    first, second = outputs[0].files, outputs[1].files
    different = [
        name for name in sorted(first.keys() | second.keys()) if first.get(name) != second.get(name)
    ]
    if not different:
        return
    lines = [
        f"differs: {_difference(name, first.get(name), second.get(name))}" for name in different
    ]
    lines = [*lines[:6], f"and {len(lines) - 6} more"] if len(lines) > 6 else lines
    spec_file = program.spec_file
    lines += ["one table:", *case_lines(spec_file, cases[0])]
    lines += ["another:", *case_lines(spec_file, cases[1])]
    text = "two tables with the same noisy answers are published differently"
    verdict.add(Finding("all that is not noise", "", text, tuple(lines)))


def _difference(name: str, first: bytes | None, second: bytes | None) -> str:
    if first is None or second is None:
        return f"{name} is there for one table only"
    if name in {"standard output", "standard error", "exit status"}:
        return f"{name}: {first.decode()!r} and {second.decode()!r}"
    return f"{name} ({len(first)} and {len(second)} bytes)"


def _compare_answers(
    program: Program, case: Case, output: Seen, answers: Answers, verdict: Verdict
) -> None:
    """The stored form and the order of rows decide nothing."""
    if output.runs is None:
        return
    for run, truth in zip(output.runs, answers.truths, strict=True):
        if not np.array_equal(truth_of(run), truth):
            text = "the answers depend on the stored form, or on the order of the rows"
            lines = tuple(case_lines(program.spec_file, case))
            verdict.add(Finding("the answers", run.query.name, text, lines))


def compare_nobody(program: Program, pairs: Sequence[tuple[Case, Case]], verdict: Verdict) -> None:
    """Rows without a unit have to count nowhere."""
    for plain, with_nobody in pairs:
        try:
            first, second = program.answers(plain), program.answers(with_nobody)
        except ReleaseError as error:
            verdict.add(Finding("rows of nobody", "", f"refused: {error}"))
            return
        verdict.tried.tables += 2
        for run, truth, second_truth in zip(first.runs, first.truths, second.truths, strict=True):
            if not np.array_equal(truth, second_truth):
                lines = tuple(case_lines(program.spec_file, with_nobody))
                text = "rows without a unit change the answers"
                verdict.add(Finding("rows of nobody", run.query.name, text, lines))


def change_words(runs: Sequence[AtWork], verdict: Verdict) -> None:
    """Change the words of the noise one by one: each may move one cell of one query at most."""
    stream = Stream("words")
    noisy = _drawn(runs, stream)
    words = sum(stream.sizes) // 8
    if not words:
        verdict.add(
            Finding("the draw", runs[0].query.name, "no random word is taken for the noise")
        )
        return
    step = -(-words // MOST_WORDS)
    for place in range(0, words, step):
        for word in (0, 2**64 - 1, 2**63 + 12345):
            changed = Stream("words", (place, word))
            after = _drawn(runs, changed)
            verdict.tried.words += 1
            if changed.sizes != stream.sizes:
                # A draw that begins anew takes other words from here on.
                continue
            # Independent noise: a word that two cells share would tie their answers together.
            moved = list(_moved_cells(runs, noisy, after))
            if len(moved) > 1:
                text = f"one random word moves {len(moved)} cells: {moved[:4]}"
                verdict.add(Finding("independent noise", moved[0][0], text))
                return


def _moved_cells(
    runs: Sequence[AtWork], before: Sequence[Codes], after: Sequence[Codes]
) -> Iterator[tuple[str, int]]:
    """The cells whose noisy answers differ, each with the name of its query."""
    for run, own, changed in zip(runs, before, after, strict=True):
        for cell in np.flatnonzero((own != changed).any(axis=1)).tolist():
            yield run.query.name, cell


def _drawn(runs: Sequence[AtWork], stream: Stream) -> list[Codes]:
    codes = []
    for run in runs:
        noisy = run.draw(stream)
        codes.append(noisy.reshape(len(truth_of(run)), -1))
    return codes
