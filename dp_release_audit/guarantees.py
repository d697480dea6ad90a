"""Holds every two neighboring tables against the guarantees: of a cell, a query and the release."""

from __future__ import annotations

from collections.abc import Sequence

from dp_release_audit.laws import (
    DRAWS,
    DRAWS_ALONE,
    Laws,
    Truth,
    UnmeasuredError,
    WrongDrawError,
)
from dp_release_audit.losses import CellPair, Composer, Together
from dp_release_audit.program import Answers
from dp_release_audit.storing import case_lines
from dp_release_audit.tables import Case, Cases
from dp_release_audit.verdict import Finding, Verdict
from release.at_work import AtWork
from release.budget.cost import Charge, Charges
from release.spec.load import SpecFile


class Guarantees:
    """Compares neighbors, and keeps what it finds in a verdict."""

    def __init__(self, spec_file: SpecFile, charged: Charges, laws: Laws, verdict: Verdict) -> None:
        self._spec_file = spec_file
        self._charged = charged
        self._laws = laws
        self._verdict = verdict
        self._composer = Composer()
        self._pairs: dict[tuple[int, Truth, int, Truth], CellPair] = {}
        self._wrong: set[CellPair] = set()
        self._shares: dict[str, int] = {}

    def compare(
        self, case: Case, neighbor: Case, here: Answers, there: Answers, cases: Cases
    ) -> None:
        """Hold one table against its neighbor."""
        every: list[CellPair] = []
        for number, run in enumerate(here.runs):
            neighbor_run = there.runs[number]
            if run.query.is_empirical:
                # The guarantee is that of this table: its mechanism, and who was seen in it.
                if not self._is_covered(case, neighbor, cases):
                    continue
                neighbor_run = run
            if here.truths[number].shape != there.truths[number].shape:
                text = "the number of its cells depends on the table"
                self._find("cells", run.query.name, text, (case, neighbor))
                continue
            cells = self._changed(number, (run, neighbor_run), (here, there))
            self._check_cells(run, cells, (case, neighbor))
            every += cells
            self._check_query(number, run, cells, (case, neighbor))
        total = self._composer.compose(every, self._charged.epsilon)
        self._verdict.attained = max(self._verdict.attained, total.attained)
        certain = total.least_delta - total.slack
        self._verdict.least_delta = max(self._verdict.least_delta, certain)
        self._hold(
            "the guarantee of the release", "", total, self._charged, every, (case, neighbor)
        )

    def name_hidden(self) -> None:
        """Name the queries of which shares of draws are too few to show any loss as unmeasured."""
        for name, outcomes in self._shares.items():
            if not self._verdict.of_query[name][1]:
                reason = f"{DRAWS_ALONE:,} draws of a cell have {outcomes:,} outcomes"
                self._verdict.leave_unmeasured(name, reason)

    def _is_covered(self, case: Case, neighbor: Case, cases: Cases) -> bool:
        return self._spec_file.spec.privacy.any_of_domain or cases.is_observed(case, neighbor)

    def _changed(
        self, number: int, runs: tuple[AtWork, AtWork], answers: tuple[Answers, Answers]
    ) -> list[CellPair]:
        """The cells whose law is another in the neighboring table."""
        run, neighbor_run = runs
        truths, neighbor_truths = (each.truths[number] for each in answers)
        is_same = run.made is neighbor_run.made
        changed = (truths != neighbor_truths).any(axis=1)
        cells = []
        for place in range(len(truths)):
            # One mechanism has one law for equal answers.
            if is_same and not changed[place]:
                continue
            pair = self._pair(
                run,
                tuple(truths[place].tolist()),
                neighbor_run,
                tuple(neighbor_truths[place].tolist()),
            )
            if pair is not None:
                cells.append(pair)
        return cells

    def _pair(
        self, run: AtWork, true: Truth, neighbor_run: AtWork, neighbor: Truth
    ) -> CellPair | None:
        # Safe as a key: Laws holds every measured run, so no identity is given out twice.
        key = id(run.made), true, id(neighbor_run.made), neighbor
        if key not in self._pairs:
            try:
                here, there = self._laws.of(run, true), self._laws.of(neighbor_run, neighbor)
            except WrongDrawError as error:
                self._verdict.add(Finding("the draw", run.query.name, str(error)))
                return None
            except UnmeasuredError as error:
                self._verdict.leave_unmeasured(run.query.name, str(error))
                return None
            if here.how == "sampled alone":
                outcomes = max(len(part.chances) for part in here.parts)
                self._shares[run.query.name] = max(self._shares.get(run.query.name, 0), outcomes)
            if here.how != "enumerated":
                self._verdict.note(
                    f"{run.query.name}: chances are those that its mechanism states, tested by "
                    f"{DRAWS:,} draws of each cell"
                    if here.how == "sampled"
                    else f"{run.query.name}: chances are shares of {DRAWS_ALONE:,} draws, with a "
                    "margin"
                )
            self._pairs[key] = CellPair(here, there)
        return self._pairs[key]

    def _check_cells(
        self, run: AtWork, cells: Sequence[CellPair], tables: tuple[Case, Case]
    ) -> None:
        # One δ bounds a cell as a whole; of cells in several parts the charge is checked instead.
        claimed = run.query.claimed.to_guarantee()
        for cell in cells:
            if cell in self._wrong or len(cell.pairs) > 1:
                continue
            delta = cell.delta(claimed)
            if delta > claimed.delta + cell.slack:
                self._wrong.add(cell)
                worst = cell.worst()
                self._find(
                    "the guarantee of one cell",
                    run.query.name,
                    f"δ is {float(delta):.3g} at ε {claimed.epsilon}; the outcome {worst.outcome} "
                    f"has the chances {float(worst.here):.6g} and {float(worst.there):.6g}",
                    tables,
                )

    def _check_query(
        self, number: int, run: AtWork, cells: list[CellPair], tables: tuple[Case, Case]
    ) -> None:
        charge = self._charged.queries[number]
        lost = self._composer.compose(cells, charge.epsilon)
        name = run.query.name
        _, before = self._verdict.of_query.get(name, (charge.epsilon, 0.0))
        self._verdict.of_query[name] = charge.epsilon, max(before, lost.attained)
        self._hold("the charge", name, lost, charge, cells, tables)

    def _hold(
        self,
        check: str,
        query: str,
        lost: Together,
        claimed: Charge | Charges,
        cells: list[CellPair],
        tables: tuple[Case, Case],
    ) -> None:
        epsilon, delta = claimed.epsilon, claimed.delta
        # Losses are added up in floats: what is less than a millionth off is rounding.
        if delta == 0:
            is_wrong = lost.attained > float(epsilon) + 1e-6 or lost.least_delta > lost.slack
        else:
            is_wrong = lost.least_delta > float(delta) * (1 + 1e-6) + lost.slack
        if is_wrong:
            worst = [cell.worst() for cell in cells]
            chances = [1.0, 1.0]
            for own in worst:
                chances = [chances[0] * float(own.here), chances[1] * float(own.there)]
            self._find(
                check,
                query,
                f"ε {epsilon}, δ {delta} are claimed; these tables have ε {lost.attained:.4f}, and "
                f"δ {lost.least_delta:.3g} at that ε; {len(cells)} cells change, and the outcome "
                f"{[own.outcome for own in worst][:8]} of them has the chances {chances[0]:.6g} "
                f"and {chances[1]:.6g}",
                tables,
            )

    def _find(self, check: str, query: str, text: str, tables: tuple[Case, Case]) -> None:
        lines = ["one table:", *case_lines(self._spec_file, tables[0])]
        lines += ["its neighbor:", *case_lines(self._spec_file, tables[1])]
        self._verdict.add(Finding(check, query, text, tuple(lines)))
