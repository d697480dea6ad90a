"""Proves profiles, the total of a release, and guarantees that were found and not declared."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from release.budget.composed import Together, found_epsilon
from release.budget.cost import Kept, charges, release_step
from release.budget.patterns import Pattern, patterns_of
from release.budget.profiles import own_step, profile_over
from release.errors import ReleaseError, VerificationError
from release.exact.composition.profile import Profile
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.losses import COST_POWERS
from release.exact.numbers import format_exact, format_up
from release.exact.privacy import Definition
from release.exact.sensitivity import Sensitivity
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import QueryRecord, ReleaseRecord
from release.records.profiles import ProfileRecord
from release.records.statistics import StatisticRecord
from release.records.tabulations import MeasuredRecord
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.model import Spec
from release.spec.named import by_name
from release.spec.query import Query
from release.spec.shares import seeking, shared, target_of, with_found
from release.verification.mechanisms import expect

FILE = "release.json"


def with_stated(spec: Spec, release: ReleaseRecord) -> Spec:
    """The spec with the guarantees that release.json states for shares and targets.

    Raises:
        VerificationError: a query has no entry, or its entry states no guarantee.
    """
    # A spec asks for noise within a budget, and only the record says which guarantee came of it.
    # What it states is judged later: by the mechanism, by the target, and by the total.
    records = by_name(release.queries)
    guarantees = {}
    for query in (*shared(spec), *seeking(spec)):
        record = records.get(query.name)
        if record is None:
            raise VerificationError(FILE, "queries", "no entry", query.name)
        try:
            guarantees[query.name] = GuaranteeSpec(
                definition=Definition(record.definition),
                epsilon=Fraction(record.epsilon),
                delta=Fraction(record.delta),
                least=None if query.guarantee is None else query.guarantee.least,
            )
        except ValueError as error:
            at = f"queries.{query.name}.epsilon"
            raise VerificationError(FILE, at, record.epsilon, "a guarantee") from error
        _check_least(query, guarantees[query.name])
    return with_found(spec, guarantees)


def _check_least(query: Query, found: GuaranteeSpec) -> None:
    """Check that the least ε or δ is at most what the spec allows, and the other what it states."""
    stated, at = query.guarantee, f"queries.{query.name}"
    if stated is None:
        return
    # Exactly one of both was searched for; the other has to be the spec's to the last digit.
    for name in ("epsilon", "delta"):
        largest, value = getattr(stated, name), getattr(found, name)
        if value > largest or (name != stated.least and value != largest):
            raise VerificationError(
                FILE, f"{at}.{name}", format_exact(value), f"at most {format_exact(largest)}"
            )
    claimed = stated.within_reach(query.answers).definition
    expect(FILE, f"{at}.definition", found.definition, claimed)


def check_charges(
    release: ReleaseRecord,
    spec_file: SpecFile,
    kept: Kept,
    mechanisms: Mapping[str, AnyMechanismRecord],
) -> None:
    """Check every charge, the total and its rule against the spec and the mechanism files.

    Raises:
        VerificationError: one of them is another, or the cap of the spec is exceeded.
    """
    # Step 26 of docs/design/format.md, 8.9.
    spec = spec_file.spec
    exactly = spec.composes_exactly
    step = release_step(spec_file) if exactly else None
    expect(FILE, "composition.rule", release.composition.rule, "pld-v1" if exactly else "basic-v1")
    # The grid follows from the spec, so a record cannot choose a finer or a coarser one.
    stated = None if step is None else format_exact(step)
    expect(FILE, "composition.step", release.composition.step, stated)
    together = None
    if step is not None:
        profiles = []
        for query in spec.charged:
            # The others are instance-specific and have no profile (mathematics, 2.19).
            if query.name in mechanisms:
                profiles.append(_profile_of(mechanisms[query.name]))
                _check_found(query, mechanisms[query.name], step)
        together = Together(step, tuple(profiles))
    try:
        charged = charges(spec_file, kept, together)
    except ReleaseError as error:
        raise VerificationError(FILE, "charges", str(error), "charges within the cap") from error
    entries: list[QueryRecord | MeasuredRecord] = [*release.queries, *release.measured]
    for record, charge in zip(entries, charged.queries, strict=True):
        at = f"queries.{record.name}"
        if isinstance(record, QueryRecord):
            expect(FILE, f"{at}.parallel", record.parallel, charge.parallel)
        expect(FILE, f"{at}.charge.epsilon", record.charge.epsilon, format_exact(charge.epsilon))
        expect(FILE, f"{at}.charge.delta", record.charge.delta, format_exact(charge.delta))
    for name, value in (("epsilon", charged.epsilon), ("delta", charged.delta)):
        for place in ("composition", "guarantee"):
            total = getattr(getattr(release, place), name)
            expect(FILE, f"{place}.{name}", total, format_exact(value))
    expect(FILE, "guarantee.definition", release.guarantee.definition, charged.definition.value)


def _profile_of(record: AnyMechanismRecord) -> Profile:
    if record.profile is None:
        raise VerificationError(FILE, "composition", "no profile", "one in every mechanism file")
    return record.profile.to_profile()


def _check_found(query: Query, record: AnyMechanismRecord, step: Fraction) -> None:
    """Check that a found guarantee is no larger than its mechanism needs, and meets its target."""
    if not query.is_shared:
        return
    # Too large an ε would be harmless to people and wrong in the ledger: budget spent on nothing.
    claimed, at = query.claimed, f"queries.{query.name}.epsilon"
    smaller = claimed.epsilon * _NEARLY
    if isinstance(record, StatisticRecord):
        expect(FILE, f"{at} (needed)", not record.to_mechanism().satisfies(smaller), True)
        return
    mechanism = record.to_mechanism() if isinstance(record, MechanismRecord) else None
    if not isinstance(record, MechanismRecord) or not isinstance(mechanism, IntegerMechanism):
        raise VerificationError(FILE, at, record.mechanism, "noise on the integers")
    sensitivity = record.to_sensitivity()
    if claimed.delta:
        least = found_epsilon(mechanism, sensitivity, step, claimed.delta)
        expect(FILE, at, format_exact(claimed.epsilon), format_exact(least or Fraction(0)))
    else:
        expect(FILE, f"{at} (needed)", _needs_delta(mechanism, sensitivity, smaller), True)
    if query.target is not None:
        target = target_of(f"queries.{query.name}.target", query)
        loss = mechanism.noise.moment(COST_POWERS[target.loss])
        if loss > target.cap:
            raise VerificationError(
                FILE, f"queries.{query.name}.target", format_up(loss, 12), f"at most {target.cap}"
            )


@lru_cache(maxsize=1000)
def _needs_delta(mechanism: IntegerMechanism, sensitivity: Sensitivity, epsilon: Fraction) -> bool:
    """Whether a pure guarantee of ``epsilon`` is too small for it. Equal queries ask it once."""
    return mechanism.deltas(sensitivity, epsilon).approximate > 0


_NEARLY = Fraction(999, 1000)
"""A pure ε is found by floats; it may be larger than needed by less than this leaves."""


class ProfileChecks:
    """Checks profiles, each once for all queries that share it.

    ``step`` is that of the release where its rule composes profiles; without it every query has its
    own.
    """

    def __init__(self) -> None:
        self.step: Fraction | None = None
        self._computed: dict[tuple[str, tuple[Pattern, ...], Fraction], ProfileRecord] = {}

    def take_over(self, earlier: ProfileChecks) -> None:
        """Take over the profiles of the same files."""
        self._computed = earlier._computed

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
        step, patterns = self.step or own_step(query), patterns_of(spec_file, query)
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
