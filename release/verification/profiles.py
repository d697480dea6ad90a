"""Recomputes the privacy profile of a public mechanism file, from its integers and the spec."""

from __future__ import annotations

from fractions import Fraction

from release.budget.patterns import Pattern, patterns_of
from release.budget.profiles import own_step, profile_over
from release.errors import VerificationError
from release.exact.numbers import format_exact
from release.exact.sensitivity import Sensitivity
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.profiles import ProfileRecord
from release.records.statistics import StatisticRecord
from release.spec.load import SpecFile
from release.spec.query import Query
from release.verification.mechanisms import expect


class ProfileChecks:
    """Checks profiles, each once for all queries that share it.

    ``step`` is that of the release where its rule composes profiles; without it every query has its
    own.
    """

    def __init__(self, step: Fraction | None = None) -> None:
        self._step = step
        self._computed: dict[tuple[str, tuple[Pattern, ...], Fraction], ProfileRecord] = {}

    def check(
        self,
        file: str,
        record: AnyMechanismRecord,
        spec_file: SpecFile,
        query: Query,
        sensitivity: Sensitivity | None,
    ) -> str:
        """Compare the profile of a proved file with the recomputed one; the finding as a sentence.

        Raises:
            VerificationError: there is none, or another step, pattern or value.
        """
        # A part of step 40 of docs/design/format.md, 8.11.
        stated = record.profile
        if stated is None:
            raise VerificationError(file, "profile", "none", "the profile of a public mechanism")
        step, patterns = self._step or own_step(query), patterns_of(spec_file, query)
        key = (file, patterns, step)
        if key not in self._computed:
            if not isinstance(record, MechanismRecord | StatisticRecord):
                raise TypeError(f"{file} is of no known form")
            profile = profile_over(patterns, query, record.to_mechanism(), sensitivity, step)
            self._computed[key] = ProfileRecord.of(profile, patterns)
        computed = self._computed[key]
        # Texts, not numbers: equal mechanisms have equal bytes.
        expect(file, "profile.step", stated.step, computed.step)
        expect(file, "profile.patterns", stated.patterns, computed.patterns)
        expect(file, "profile.values", len(stated.values), len(computed.values))
        for place, (own, value) in enumerate(zip(stated.values, computed.values, strict=True)):
            expect(file, f"profile.values[{place}]", own, value)
        most = max(map(len, patterns))
        cells = "1 cell" if most == 1 else f"up to {most} cells"
        return (
            f"{query.name}: the profile covers all that one unit can change, in {cells}, and "
            f"follows from the integers at {len(computed.values)} losses {format_exact(step)} apart"
        )
