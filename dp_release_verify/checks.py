"""The checks of a release, in order, and the walk through them.

 1 files.sums           t  the folder holds the files of SHA256SUMS with these hashes, and no others
 2 files.forms          t  each file is one that the record names, with the fields of the page alone
 3 asked.rules          t  the question is one that a run accepts
 4 asked.keys           t  keys and areas are sorted, stand once, and are of their column's type
 5 asked.one_row        p  conditions and derived columns look at one row of declared columns
 6 made.claims          t  each claim is the one asked for, or less where the least was sought
 7 tables.form          t  every combination of keys once, with answers that are possible
 8 mechanism.law        p  the integers are a law that can be drawn exactly
 9 mechanism.guarantee  p  it keeps the claim for all that one unit can change
10 mechanism.opened     p  a committed law is that of the auditor's folder, and keeps the claim
11 mechanism.bound      p  no noise on the integers with this claim loses less than is printed
12 charges.query        p  each charge is at least what the law costs in all cells of a unit
13 charges.total        p  the charges, added or composed, are at most the stated total
14 charges.budget       p  the total is within the budget
15 tabulation.measured  t  measured tables are margins, each once, whole
16 tabulation.least     p  the answers are the least-squares estimates
17 tabulation.whole     p  whole numbers add up, are not negative, and keep what was declared
18 ledger.replay        p  every entry follows, and no cap was ever passed
19 ledger.commit        p  a signed ledger holds the hash of SHA256SUMS
20 ledger.key           t  a key you trust signed
21 ledger.paid          p  the ledger reserved this total by its rule
22 ledger.older         t  an older checkpoint that you kept is of this ledger
23 ledger.witness       p  a witness you trust saw the ledger
24 ledger.newest        t  the release was not withdrawn
25 auditor.audit        t  audit.json is of this release, and signed

p is proved in exact arithmetic, t tested by comparison. What no file can show is on trust, and the
verdict names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dp_release_verify import canonical, forms
from dp_release_verify.asked import Answers, Question, Spec, claim_of
from dp_release_verify.charges import Charged, check_charge, check_total, compose
from dp_release_verify.conditions import check_conditions
from dp_release_verify.digests import (
    AUDIT,
    INFORMATIVE,
    SUMS,
    Folder,
    commit,
    read_folder,
    sums_text,
)
from dp_release_verify.errors import NotProved, Refused, refuse_unless
from dp_release_verify.ledger import Ledger
from dp_release_verify.losses import Losses
from dp_release_verify.mechanisms import FAMILIES, ON_STATISTIC, Mechanism
from dp_release_verify.mechanisms.bound import check_bound
from dp_release_verify.mechanisms.integers import Integers
from dp_release_verify.parquet import Value
from dp_release_verify.provenance import (
    Published,
    Trust,
    check_audit,
    check_in_ledger,
    check_older,
    check_paid,
    check_signed,
    check_trusted,
    replayed,
    unpaid_rules,
)
from dp_release_verify.reach import Reach
from dp_release_verify.signatures import VerifierKey
from dp_release_verify.tables import cells_of, check_order, key_values, read_released
from dp_release_verify.tabulations import (
    Files,
    Shape,
    Tabulated,
    check_adds_up,
    check_follows,
    check_least,
    check_measured,
    check_whole,
    read_declared,
    read_levels,
    read_measured,
    shape_of,
    variance_of,
)
from dp_release_verify.verdict import (
    NOT_PROVED,
    OWN_FAULT,
    REFUSED,
    UNSIGNED,
    VERIFIED,
    Finding,
    Level,
    Verdict,
)

RECORD = "release.json"
KEYS = "keys.json"

Kind: TypeAlias = Literal["RELEASE", "TEST", "REHEARSAL"]
Evidence: TypeAlias = Literal["none", "signed", "paid", "witnessed"]
EVIDENCE: tuple[Evidence, ...] = ("none", "signed", "paid", "witnessed")

ON_TRUST = (
    ("reading", "that the tables were read, bounded and answered as asked"),
    ("noise", "that the noise was drawn once, from the system's generator"),
    ("keys", "that keys, areas and declared numbers are public"),
    ("fixed", "that fixed columns are public facts of a unit"),
    ("engine", "that the trees of conditions were evaluated, and say what their SQL says"),
    ("accuracy", "low, high and standard errors; what was accepted; expected losses"),
    ("rounded", "that whole numbers and intervals of tabulations follow from noisy counts alone"),
    ("pages", "report.html, datapackage.json and spec.yaml, which this package does not read"),
    ("software", "the software that is named, and whose key it is"),
)


@dataclass
class Work:
    """A verification at work: what was given, and what the checks have read so far."""

    place: Path
    auditor: Path | None
    trust: Trust
    require: Evidence
    older: str | None
    verdict: Verdict
    kind: Kind = "RELEASE"
    folder: Folder = field(default_factory=lambda: Folder({}, {}))
    opened: Folder | None = None
    release: Any = None
    keys: Any = None
    spec: Any = None
    values: dict[str, list[Value]] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    charged: list[Charged] = field(default_factory=list)
    losses: Losses | None = None
    tabulated: dict[str, Tabulated] = field(default_factory=dict)
    ledger: Ledger | None = None
    published: Published | None = None
    owners: set[VerifierKey] = field(default_factory=set)
    _laws: dict[str, Any] = field(default_factory=dict)
    mechanisms: dict[str, Mechanism] = field(default_factory=dict)
    reaches: dict[str, Reach] = field(default_factory=dict)

    @property
    def made(self) -> forms.Made:
        """What was made."""
        made: forms.Made = self.release.made
        return made

    def law_of(self, name: str) -> object:
        """The law in a file; a second question may have the same."""
        if name not in self._laws:
            file = f"mechanisms/{name}.json"
            plain = canonical.loads(file, self.folder.read(file))
            self._laws[name] = read_law(file, plain)
        return self._laws[name]

    def lacks(self, check: str, sentence: str, evidence: Evidence) -> Iterator[Finding]:
        """What is missing, where at least this evidence is asked for."""
        if EVIDENCE.index(self.require) >= EVIDENCE.index(evidence):
            yield Finding(check, "missing", "", sentence)


def read_law(file: str, plain: object) -> object:
    """A law of a family of the page.

    Raises:
        NotProved: the page does not name its family.
        Refused: it has another form.
    """
    check_family(plain)
    return forms.read(forms.Law, file, plain)


def check_family(plain: object) -> None:
    """Check that the page names the family of a law, where it has one.

    Raises:
        NotProved: it does not.
    """
    family = plain.get("family") if isinstance(plain, dict) else None
    if isinstance(family, str) and family not in forms.LAWS:
        raise NotProved(f"the page does not name the family {family!r}")


Does: TypeAlias = Callable[[Work, "Check"], Iterator[Finding]]


@dataclass(frozen=True)
class Check:
    """One check: its name in the list, and what it finds."""

    name: str
    level: Level
    does: Does

    def found(self, sentence: str, about: str = "") -> Finding:
        """Something that this check found to be right."""
        return Finding(self.name, self.level, about, sentence)


# ---- Files ---------------------------------------------------------------------------------------


def files_sums(work: Work, check: Check) -> Iterator[Finding]:
    """The folder holds the files of SHA256SUMS with these hashes, and no others."""
    work.folder = read_folder(work.place)
    stated, found = work.folder.read(SUMS), sums_text(work.folder.sums)
    if stated != found:
        # Name the first line that is another.
        lines = (stated.decode("utf-8", "replace").split("\n"), found.decode().split("\n"))
        for own, other in zip(*lines, strict=False):
            refuse_unless(own[66:] == other[66:], SUMS, "", own[66:], other[66:])
            refuse_unless(own == other, own[66:], "SHA-256", own[:64], other[:64])
        raise Refused(SUMS, "", f"{len(lines[0]) - 1} files", f"{len(lines[1]) - 1} files")
    yield check.found(f"the SHA-256 of {len(work.folder.sums)} files")


def files_forms(work: Work, check: Check) -> Iterator[Finding]:
    """Each file is one that the record names, with the fields of the page and no others."""
    release = forms.loads(forms.Release, RECORD, work.folder.read(RECORD))
    work.release = release
    about = release.asked.release
    work.verdict.release_id = about.id
    work.verdict.not_said = [name for name in forms.ABOUT_TEXTS if getattr(about, name) is None]
    refuse_unless(release.kind == work.kind, RECORD, "kind", release.kind, work.kind)
    work.keys = forms.loads(forms.Keys, KEYS, work.folder.read(KEYS))
    named = {RECORD, KEYS, *INFORMATIVE}
    for query in release.made.queries:
        named.add(f"data/{query.name}.parquet")
        one = (query.mechanism is None) != (query.commitment is None)
        refuse_unless(one, RECORD, f"made.{query.name}", "both or none", "a law or a commitment")
        if query.mechanism is not None:
            named.add(f"mechanisms/{query.mechanism}.json")
    for tabulation in release.made.tabulations or ():
        named |= {f"data/{each.file}.parquet" for each in tabulation.levels}
        for table in tabulation.measured:
            named |= {f"data/{table.name}.parquet", f"mechanisms/{table.mechanism}.json"}
        if tabulation.declared is not None:
            named.add(f"data/{tabulation.declared}.parquet")
    tables = _table_names(release.made)
    refuse_unless(len(set(tables)) == len(tables), RECORD, "made", "a name twice", "each name once")
    found = set(work.folder.sums)
    unknown, missing = sorted(found - named), sorted(named - found - set(INFORMATIVE))
    refuse_unless(not unknown, unknown[0] if unknown else "", "", "a file", "none of this name")
    refuse_unless(not missing, missing[0] if missing else "", "", "nothing", "a file")
    yield check.found(f"{RECORD}, {KEYS} and the laws have the fields of the page")


def _table_names(made: forms.Made) -> list[str]:
    """The names of all released tables."""
    names = [query.name for query in made.queries]
    for tabulation in made.tabulations or ():
        names += [table.name for table in tabulation.measured]
        names += [level.file for level in tabulation.levels]
        if tabulation.declared is not None:
            names.append(tabulation.declared)
    return names


# ---- What was asked ------------------------------------------------------------------------------


def asked_rules(work: Work, check: Check) -> Iterator[Finding]:
    """The question is one that a run accepts."""
    spec = Spec(work.release.asked)
    work.spec = spec
    spec.check()
    stated = [query.name for query in work.made.queries]
    asked = [question.name for question in spec.published]
    refuse_unless(stated == asked, RECORD, "made.queries", stated, asked)
    own = [each.name for each in work.made.tabulations or ()]
    refuse_unless(own == list(spec.tabulations), RECORD, "made.tabulations", own, "those asked for")
    yield check.found("the question keeps the rules that sensitivity and charges rest on")


def asked_keys(work: Work, check: Check) -> Iterator[Finding]:
    """Keys and areas are sorted, stand once, and are of their column's type."""
    spec: Spec = work.spec
    work.values = key_values(spec, work.keys)
    own = set(work.keys.areas or {})
    refuse_unless(own == set(spec.tabulations), KEYS, "areas", sorted(own), "those asked for")
    for name, tabulation in spec.tabulations.items():
        work.shapes[name] = shape_of(tabulation, work.keys)
    for question, made in zip(spec.published, work.made.queries, strict=True):
        free, cells = cells_of(question, work.values)
        refuse_unless(made.cells == cells, RECORD, f"made.{made.name}.cells", made.cells, cells)
        work.reaches[made.name] = Reach(question, free, cells)
        work.verdict.questions.append(_question_text(question, cells))
    for tabulated in work.made.tabulations or ():
        for table in tabulated.measured:
            question = table_question(spec, tabulated.name, table.name)
            work.reaches[table.name] = Reach(question, table.cells, table.cells)
        work.verdict.questions.append(_tabulation_text(spec.tabulations[tabulated.name]))
    check_order(work.values)
    yield check.found("keys and areas are sorted, each once")


def table_question(spec: Spec, tabulation: str, name: str) -> Question:
    """A table that a tabulation measures: a count of rows on all integers, one a unit."""
    query = forms.CountQuery(
        name=name,
        kind="count",
        table=spec.tabulations[tabulation].table,
        by=[],
        max_rows_per_unit=1,
        sensitivity="global",
        noise="on_answer",
        share=Fraction(1),
        domain=forms.Domain(integers=forms.Nothing()),
    )
    answers = Answers(2**53 - 1, "ordered", -(2**52 - 1))
    return Question(query, (query,), (answers,), spec.neighbors, is_table=True)


def _question_text(question: Question, cells: int) -> str:
    query = question.query
    of = getattr(query, "of", None)
    what = query.kind if not isinstance(of, str) else f"{query.kind} of {of}"
    text = f"{query.name}: {what}, of {query.table}"
    if query.where is not None:
        text += f" where {query.where.sql}"
    if query.by:
        text += f", by {', '.join(query.by)} ({cells} cells)"
    return text


def _tabulation_text(tabulation: forms.Tabulation) -> str:
    text = f"{tabulation.name}: counts of {tabulation.table}"
    if tabulation.where is not None:
        text += f" where {tabulation.where.sql}"
    return f"{text}, by {', '.join(tabulation.hierarchy.levels)}"


def asked_one_row(work: Work, check: Check) -> Iterator[Finding]:
    """Conditions and derived columns look at one row of declared columns."""
    number = check_conditions(work.spec)
    if number:
        what = f"{number} conditions and derived columns look"
        if number == 1:
            what = "1 condition or derived column looks"
        yield check.found(f"{what} at one row")


def made_claims(work: Work, check: Check) -> Iterator[Finding]:
    """Each claim is the one asked for, or less where the least was sought."""
    for question, made in zip(work.spec.published, work.made.queries, strict=True):
        claim = claim_of(question, made)
        stated = (made.definition, made.epsilon, made.delta)
        needed = (claim.definition, claim.epsilon, claim.delta)
        at = f"made.{made.name}"
        refuse_unless(stated == needed, RECORD, at, stated, needed)
        _check_claim(made)
        hides = made.commitment is not None
        refuse_unless(
            hides == question.is_empirical, RECORD, at, hides, "a commitment, if empirical"
        )
        if question.on_statistic:
            refuse_unless(made.epsilon > 0, RECORD, at, made.epsilon, "above 0")
    for tabulation in work.made.tabulations or ():
        for table in tabulation.measured:
            _check_claim(table)
    yield check.found("each claim is the one that was asked for")


def _check_claim(made: forms.MadeQuery | forms.MadeTable) -> None:
    """A claim is one that there can be."""
    right = made.epsilon <= 100 and made.delta < 1
    right = right and (made.definition != "pure" or made.delta == 0)
    stated = f"{made.definition}, ε {canonical.about(made.epsilon)}"
    needed = "ε up to 100, δ below 1, and 0 where pure"
    refuse_unless(right, RECORD, f"made.{made.name}", stated, needed)


# ---- Tables --------------------------------------------------------------------------------------


def tables_form(work: Work, check: Check) -> Iterator[Finding]:
    """Every combination of keys once, with answers that are possible."""
    for question in work.spec.published:
        file = f"data/{question.name}.parquet"
        data = work.folder.read(file)
        name = work.verdict.release_id
        read_released(file, data, name, work.spec, question, work.values)
    if work.spec.published:
        number = len(work.spec.published)
        yield check.found(f"{number} tables have every combination of keys, and possible answers")


# ---- Mechanisms ----------------------------------------------------------------------------------


def _laws(work: Work) -> Iterator[tuple[forms.MadeQuery | forms.MadeTable, str]]:
    """All that was made with a public law, and the name of its file."""
    for query in work.made.queries:
        if query.mechanism is not None:
            yield query, query.mechanism
    for tabulation in work.made.tabulations or ():
        for table in tabulation.measured:
            yield table, table.mechanism


def _mechanism(file: str, law: Any, reach: Reach, found: forms.Found | None = None) -> Mechanism:
    """The mechanism of a law, for one question."""
    question = reach.question
    is_on_statistic = law.family in ON_STATISTIC
    right = is_on_statistic == question.on_statistic
    refuse_unless(right, file, "family", law.family, question.query.noise)
    named = question.query.mechanism
    if named in FAMILIES:
        refuse_unless(law.family == named, file, "family", law.family, named)
    made: Mechanism = FAMILIES[law.family](file, law, reach, found)
    return made


def mechanism_law(work: Work, check: Check) -> Iterator[Finding]:
    """The integers are a law that can be drawn exactly."""
    for made, name in _laws(work):
        file = f"mechanisms/{name}.json"
        try:
            law = work.law_of(name)
        except NotProved as unknown:
            sentence = str(unknown)
            yield Finding(check.name, "missing", made.name, sentence, is_guarantee=True)
            continue
        work.mechanisms[made.name] = _mechanism(file, law, work.reaches[made.name])
    for mechanism in work.mechanisms.values():
        mechanism.check()
    if work.mechanisms:
        number = len({name for _, name in _laws(work)})
        yield check.found(f"laws of whole numbers: {number}")


def _keeps(file: str, made: Any, mechanism: Mechanism) -> Charged:
    """A mechanism keeps its claim."""
    deltas = mechanism.deltas(made.epsilon)
    own = deltas.under(made.definition)
    kept = own <= made.delta
    needed = f"{made.definition} with ε {made.epsilon}, δ {canonical.about(made.delta)}"
    refuse_unless(kept, file, made.name, f"δ of at least {canonical.about(own)}", needed)
    return Charged(made, mechanism.reach, mechanism, deltas)


def mechanism_guarantee(work: Work, check: Check) -> Iterator[Finding]:
    """Each law keeps its claim for all that one unit can change."""
    known: dict[tuple[object, ...], Any] = {}
    for made, name in _laws(work):
        mechanism, reach = work.mechanisms.get(made.name), work.reaches[made.name]
        if mechanism is None:
            work.charged.append(Charged(made, reach, None, None))
            continue
        # Measured tables of one law and claim differ in nothing that a guarantee rests on.
        claim = (made.definition, made.epsilon, made.delta)
        key = (name, claim, reach.question.is_table or made.name)
        if key not in known:
            known[key] = _keeps(f"mechanisms/{name}.json", made, mechanism)
        work.charged.append(Charged(made, reach, mechanism, known[key].deltas))
        sentence = f"{made.definition}, ε {canonical.exact(made.epsilon)}"
        if made.delta:
            sentence += f", δ {canonical.exact(made.delta)}"
        yield check.found(f"the law keeps its claim: {sentence}", made.name)


def mechanism_opened(work: Work, check: Check) -> Iterator[Finding]:
    """A committed law is that of the auditor's folder, and keeps the claim."""
    hidden = [query for query in work.made.queries if query.commitment is not None]
    folder = _auditor_folder(work)
    if folder is not None:
        work.opened = read_folder(folder)
        expected = {f"{query.name}.json" for query in hidden}
        found = set(work.opened.sums) - {AUDIT}
        refuse_unless(found == expected, "auditor", "", sorted(found), sorted(expected))
    for made in hidden:
        reach = work.reaches[made.name]
        if work.opened is None:
            sentence = "its law is committed: give --auditor FOLDER"
            yield Finding(check.name, "missing", made.name, sentence, is_guarantee=True)
            work.charged.append(Charged(made, reach, None, None))
            continue
        file = f"{made.name}.json"
        plain = canonical.loads(file, work.opened.read(file))
        try:
            check_family(plain.get("law") if isinstance(plain, dict) else None)
        except NotProved as unknown:
            yield Finding(check.name, "missing", made.name, str(unknown), is_guarantee=True)
            work.charged.append(Charged(made, reach, None, None))
            continue
        opened: forms.Opened = forms.read(forms.Opened, file, plain)
        name = work.verdict.release_id
        refuse_unless(opened.release_id == name, file, "release_id", opened.release_id, name)
        covered = canonical.dumps({"law": plain["law"], "sensitivity": plain["sensitivity"]})
        value = commit(bytes.fromhex(opened.key), covered)
        refuse_unless(value == made.commitment, file, "commitment", value, made.commitment)
        mechanism = _mechanism(file, opened.law, reach, opened.sensitivity)
        mechanism.check()
        work.charged.append(_keeps(file, made, mechanism))
        yield check.found("the committed law keeps its claim, for the stated neighbors", made.name)
    order = {query.name: place for place, query in enumerate(work.made.queries)}
    work.charged.sort(key=lambda each: order.get(each.made.name, len(order)))


def _auditor_folder(work: Work) -> Path | None:
    """The auditor's folder of this release, given itself or above it."""
    if work.auditor is None:
        return None
    below = work.auditor / work.verdict.release_id
    return below if below.is_dir() else work.auditor


def mechanism_bound(work: Work, check: Check) -> Iterator[Finding]:
    """No noise on the integers with a claim loses less than is printed."""
    seen = set()
    for charged in work.charged:
        mechanism, made = charged.mechanism, charged.made
        if not isinstance(mechanism, Integers) or mechanism.law.bound is None:
            continue
        # Measured tables of one law and claim differ in nothing that a bound rests on.
        of_table = (made.mechanism, made.epsilon, made.delta)
        if charged.reach.question.is_table and of_table in seen:
            continue
        if charged.reach.question.is_table:
            seen.add(of_table)
        loss = check_bound(mechanism.file, mechanism, made.epsilon, made.delta)
        if loss is not None:
            sentence = (
                f"loses {canonical.about(loss[0])}, no noise below {canonical.about(loss[1])}"
            )
            yield check.found(sentence, made.name)


# ---- Charges -------------------------------------------------------------------------------------


def charges_query(work: Work, check: Check) -> Iterator[Finding]:
    """Each charge is at least what the law costs in all cells that a unit touches."""
    for charged in work.charged:
        check_charge(charged)
        if charged.mechanism is not None:
            touched = charged.reach.cells_touched
            sentence = f"charged for {touched} cell{'' if touched == 1 else 's'} of a unit"
            yield check.found(sentence, charged.made.name)


def charges_total(work: Work, check: Check) -> Iterator[Finding]:
    """The charges, added or composed, are at most the stated total."""
    total, made = work.made.total, work.made
    try:
        exactly = work.spec.composes_exactly
        work.losses = check_total(work.charged, total, made.step, composes_exactly=exactly)
    except NotProved as unknown:
        yield Finding(check.name, "missing", "the total", str(unknown), is_guarantee=True)
        return
    for tabulated in made.tabulations or ():
        guarantee = work.spec.tabulations[tabulated.name].guarantee
        if guarantee is not None:
            names = {table.name for table in tabulated.measured}
            own = [each for each in work.charged if each.made.name in names]
            claim = forms.Claim(guarantee.definition, guarantee.epsilon, guarantee.delta)
            check_total(own, claim, made.step, composes_exactly=True)
    figures = f"ε = {canonical.exact(total.epsilon)}, δ = {canonical.exact(total.delta)}"
    neighbors = work.spec.neighbors
    ways = {
        "add_remove": "coming or going",
        "replace_one": "replaced by another",
        "attribute": f"with another {neighbors.attribute}",
    }[neighbors.relation]
    whom = "for this very table" if work.spec.is_empirical else "for every table that fits"
    work.verdict.protects = f"each {neighbors.unit}, {ways} · {total.definition} {figures} · {whom}"
    yield check.found(f"all together: {total.definition} {figures}")


def charges_budget(work: Work, check: Check) -> Iterator[Finding]:
    """The total is within the budget."""
    total, budget = work.made.total, work.release.asked.budget
    within = total.epsilon <= budget.epsilon and total.delta <= budget.delta
    stated = f"ε {canonical.exact(budget.epsilon)}, δ {canonical.exact(budget.delta)}"
    refuse_unless(within, RECORD, "made.total", total, f"at most {stated}")
    yield check.found(f"within the budget of {stated}")


# ---- Tabulations ---------------------------------------------------------------------------------


def tabulation_measured(work: Work, check: Check) -> Iterator[Finding]:
    """Measured tables are margins, each once, whole."""
    for made in work.made.tabulations or ():
        asked, shape = work.spec.tabulations[made.name], work.shapes[made.name]
        check_measured(shape, asked, made)
        files = Files(work.folder, work.verdict.release_id, shape)
        measured = []
        answers, whole = read_levels(files, asked, made)
        for table in made.measured:
            numbers = read_measured(files, asked, table)
            if numbers.estimates is not None:
                answers.append(numbers.estimates)
            mechanism = work.mechanisms.get(table.name)
            if isinstance(mechanism, Integers):
                measured.append((numbers.counts, variance_of(mechanism)))
        declared = read_declared(files, asked, made)
        work.tabulated[made.name] = Tabulated(shape, measured, answers, whole, declared)
        yield check.found(f"{len(made.measured)} measured tables are whole", made.name)


def tabulation_least(work: Work, check: Check) -> Iterator[Finding]:
    """The answers are the least-squares estimates from the measured tables."""
    for name, found in work.tabulated.items():
        check_follows(found)
        check_least(found)
        check_adds_up(found, found.estimates, 1)
        yield check.found("the answers are the least-squares estimates", name)


def tabulation_whole(work: Work, check: Check) -> Iterator[Finding]:
    """Whole numbers add up, are not negative, and keep what was declared."""
    for name, found in work.tabulated.items():
        check_whole(found, work.spec.tabulations[name])
        yield check.found("the whole numbers add up, and none is negative", name)


# ---- Ledger --------------------------------------------------------------------------------------


def ledger_replay(work: Work, check: Check) -> Iterator[Finding]:
    """Every entry follows, and no cap was ever passed."""
    work.ledger = replayed(work.trust)
    if work.ledger is not None:
        yield check.found(f"{len(work.ledger.entries)} entries follow, and every cap was kept")


def ledger_commit(work: Work, check: Check) -> Iterator[Finding]:
    """A signed ledger holds the hash of SHA256SUMS."""
    work.published = check_signed(work.folder, work.release, work.trust, work.ledger)
    proof = work.published.proof
    if work.ledger is not None:
        work.owners = check_in_ledger(work.release, work.trust, work.ledger, proof)
    if proof is not None:
        yield check.found("a signed ledger holds the hash of all files")


def ledger_key(work: Work, check: Check) -> Iterator[Finding]:
    """A key that the auditor trusts signed."""
    published = work.published
    if work.trust.keys and published is not None:
        owners = None if work.ledger is None else work.owners
        key = check_trusted(work.trust, published, owners)
        yield check.found(f"signed by {key}")
        return
    yield from work.lacks(check.name, "who published it: give --trust KEY", "signed")


def ledger_paid(work: Work, check: Check) -> Iterator[Finding]:
    """The ledger reserved this total by its rule."""
    if work.ledger is None:
        sentence = "that the charge was reserved: give --ledger FOLDER"
        yield from work.lacks(check.name, sentence, "paid")
        return
    entry = check_paid(work.release, work.ledger)
    yield check.found(f"entry {entry.seq} reserved this total")
    is_empirical = work.spec.is_empirical
    adds_up = work.ledger.caps[entry.scope].rule in (None, "basic")
    if not adds_up and not is_empirical and work.losses is None and work.made.step is not None:
        with suppress(NotProved):
            work.losses = compose(work.charged, work.made.step)
    for sentence in unpaid_rules(entry, work.ledger, work.losses, is_empirical=is_empirical):
        yield Finding(check.name, "missing", "the ledger", sentence, is_guarantee=True)


def ledger_older(work: Work, check: Check) -> Iterator[Finding]:
    """An older checkpoint that the auditor kept is of this ledger."""
    if work.older is None:
        return
    if work.ledger is None:
        yield Finding(check.name, "missing", "", "an older checkpoint needs --ledger FOLDER")
        return
    size = check_older(work.ledger, work.older, work.trust.witnesses)
    yield check.found(f"the ledger goes on from the {size} entries that you saw")


def ledger_witness(work: Work, check: Check) -> Iterator[Finding]:
    """A witness that the auditor trusts saw the ledger."""
    seen = set(work.owners)
    if work.published is not None and work.published.proof is not None:
        seen |= work.published.proof.checkpoint.signers
    for key in work.trust.witnesses:
        if key in seen:
            yield check.found(f"the witness {key.name} saw the ledger")
            return
    sentence = "that the ledger only grew: give --witness KEY of one that cosigned"
    yield from work.lacks(check.name, sentence, "witnessed")


def ledger_newest(work: Work, check: Check) -> Iterator[Finding]:
    """The release was not withdrawn; if it was revised, the newer one is named."""
    ledger, name = work.ledger, work.verdict.release_id
    if ledger is None:
        return
    refuse_unless(name not in ledger.withdrawn, "ledger", "withdraw", name, "a public release")
    later = ledger.revised.get(name)
    yield check.found("not withdrawn" if later is None else f"revised: {later} takes its place")


def auditor_audit(work: Work, check: Check) -> Iterator[Finding]:
    """The audit record is of this release, and signed."""
    if work.opened is None or AUDIT not in work.opened.contents:
        return
    data = work.opened.read(AUDIT)
    key = check_audit(data, work.release, work.trust, work.ledger)
    if key is None:
        yield Finding(check.name, "trust", AUDIT, "that it is of this release: no key is known")
    else:
        yield check.found(f"audit.json is of this release, and {key} signed it")


CHECKS = (
    Check("files.sums", "tested", files_sums),
    Check("files.forms", "tested", files_forms),
    Check("asked.rules", "tested", asked_rules),
    Check("asked.keys", "tested", asked_keys),
    Check("asked.one_row", "proved", asked_one_row),
    Check("made.claims", "tested", made_claims),
    Check("tables.form", "tested", tables_form),
    Check("mechanism.law", "proved", mechanism_law),
    Check("mechanism.guarantee", "proved", mechanism_guarantee),
    Check("mechanism.opened", "proved", mechanism_opened),
    Check("mechanism.bound", "proved", mechanism_bound),
    Check("charges.query", "proved", charges_query),
    Check("charges.total", "proved", charges_total),
    Check("charges.budget", "proved", charges_budget),
    Check("tabulation.measured", "tested", tabulation_measured),
    Check("tabulation.least", "proved", tabulation_least),
    Check("tabulation.whole", "proved", tabulation_whole),
    Check("ledger.replay", "proved", ledger_replay),
    Check("ledger.commit", "proved", ledger_commit),
    Check("ledger.key", "tested", ledger_key),
    Check("ledger.paid", "proved", ledger_paid),
    Check("ledger.older", "tested", ledger_older),
    Check("ledger.witness", "proved", ledger_witness),
    Check("ledger.newest", "tested", ledger_newest),
    Check("auditor.audit", "tested", auditor_audit),
)


def verify(  # noqa: PLR0913 - what an auditor may give
    place: Path,
    auditor: Path | None = None,
    trust: Trust | None = None,
    require: Evidence = "signed",
    older: str | None = None,
    checks: tuple[Check, ...] = CHECKS,
    kind: Kind = "RELEASE",
) -> Verdict:
    """Verify the release of a folder.

    Args:
        place: the folder of the release.
        auditor: the auditor's folder of it, or of all.
        trust: keys and a ledger.
        require: the least evidence that is not missing.
        older: the text of a checkpoint that was kept.
        checks: those to walk through, in order.
        kind: the only kind that is not refused; its curator may look at a test or a rehearsal.

    Returns:
        The verdict: also of a refusal, and where the verifier itself failed.
    """
    verdict = Verdict()
    work = Work(place, auditor, trust or Trust(), require, older, verdict, kind)
    check = checks[0]
    try:
        for check in checks:
            verdict.findings += check.does(work, check)
    except Refused as refusal:
        found = Finding(
            check.name,
            "missing",
            refusal.file,
            str(refusal),
            refusal.found,
            refusal.needed,
        )
        verdict.refusal = found
        verdict.status = REFUSED
        return verdict
    except OSError as error:
        sentence = f"a file cannot be read: {error.strerror}"
        verdict.refusal = Finding(check.name, "missing", "", sentence)
        verdict.status = REFUSED
        return verdict
    except Exception as error:
        sentence = f"{type(error).__name__} in {check.name}: no word about the release"
        verdict.refusal = Finding(check.name, "missing", "", sentence)
        verdict.status = OWN_FAULT
        return verdict
    for name, sentence in ON_TRUST:
        verdict.findings.append(Finding(f"trust.{name}", "trust", "", sentence))
    missing = verdict.at("missing")
    verdict.status = VERIFIED
    if missing:
        verdict.status = UNSIGNED
    if any(finding.is_guarantee for finding in missing):
        verdict.status = NOT_PROVED
    return verdict
