"""The closed list of checks: each with an identifier, its meaning, and why it can be left out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How a verifier knows what a line says.

    ``proved``: from published integers and texts, in exact arithmetic. ``tested``: compared, and
    equal. ``asserted``: by the curator alone. ``withheld``: not in the release. ``unseen``: could
    not be looked at, and was needed. ``left_out``: did not apply, or was not asked for.
    """

    PROVED = "proved"
    TESTED = "tested"
    ASSERTED = "asserted"
    WITHHELD = "withheld"
    UNSEEN = "unseen"
    LEFT_OUT = "left_out"


@dataclass(frozen=True)
class Check:
    """One kind of line: what it means where it is there, and why it can be left out."""

    level: Level
    meaning: str
    absent: str = ""


_NO_QUERY = "no query of the release is instance-specific"


_NO_SQL = "the spec has no condition and no derived column"


_NO_TABULATION = "the spec has no tabulation"


_UNSIGNED = "nothing is signed"


_NO_LEDGER = "no ledger was given: --ledger"


CHECKS = {
    "files.sums": Check(
        Level.TESTED, "the folder holds the files of SHA256SUMS and no others, with these hashes"
    ),
    "release.record": Check(
        Level.TESTED, "release.json is canonical, of its form, and says what the spec says"
    ),
    "release.origin": Check(
        Level.ASSERTED,
        "the day of publication, and the software that made it, by versions and by the hashes of "
        "its sources and its libraries",
    ),
    "spec.unread": Check(
        Level.ASSERTED,
        "what no check reads of the spec: where tables lay, a cap above the charges, key sets and "
        "columns that nothing uses, attributes of no margin, titles of tabulations, whether a "
        "mechanism or a strategy, with its shares, was named or chosen, and what no proof rests on "
        "of the questions: their columns, ranks, clamps and rows, the unit and its fixed columns",
    ),
    "tables.form": Check(
        Level.TESTED, "tables have their columns, every combination of keys once, possible answers"
    ),
    "tables.bytes": Check(
        Level.ASSERTED,
        "a table that another version of the library wrote holds nothing beside its rows",
        "this version of the Parquet library wrote every table anew, to equal bytes",
    ),
    "descriptions": Check(
        Level.TESTED, "datapackage.json and registry.yaml follow from release.json and the spec"
    ),
    "charges.total": Check(
        Level.PROVED, "the charges follow from the spec, add up, and keep its cap"
    ),
    "acceptance": Check(
        Level.PROVED,
        "the errors of the published mechanisms keep the caps that the spec sets for a run",
        "the spec has no acceptance",
    ),
    "mechanism.guarantee": Check(
        Level.PROVED,
        "the integers of a public mechanism satisfy its guarantee for all neighbors",
        "no query has a public mechanism with noise on its answer",
    ),
    "mechanism.statistic": Check(
        Level.PROVED,
        "a mechanism on a statistic satisfies its guarantee for every table, by a theorem",
        "no query has noise on its statistic",
    ),
    "mechanism.profile": Check(
        Level.PROVED,
        "the profile of a public mechanism follows from its integers, for all that one unit can "
        "change",
        "no query has a public mechanism",
    ),
    "mechanism.bound": Check(
        Level.PROVED,
        "no noise on the integers with this guarantee loses less than the stated bound",
        "no public mechanism calls its lower bound proved",
    ),
    "mechanism.committed": Check(
        Level.PROVED,
        "a mechanism of the auditor bundle is the committed one, and satisfies its guarantee",
        _NO_QUERY,
    ),
    "mechanism.sensitivity": Check(
        Level.ASSERTED,
        "no difference occurs between neighbors but those of an opened mechanism",
        "no mechanism of an instance-specific query was opened",
    ),
    "mechanism.design": Check(
        Level.ASSERTED, "how a mechanism was found, and bounds that a solver claims"
    ),
    "conditions.row_local": Check(
        Level.PROVED, "the published trees look at one row, and give every row a value", _NO_SQL
    ),
    "conditions.text": Check(
        Level.TESTED, "the published trees are what the SQL of the spec says", _NO_SQL
    ),
    "conditions.engine": Check(
        Level.ASSERTED, "the engine evaluated the published trees, and nothing else", _NO_SQL
    ),
    "tabulations.tables": Check(
        Level.PROVED,
        "the published tables of a tabulation are what follows from its noisy counts, in exact "
        "arithmetic; whole numbers add up and are not negative",
        _NO_TABULATION,
    ),
    "tabulations.areas": Check(
        Level.ASSERTED, "the areas of a tabulation are public", _NO_TABULATION
    ),
    "tabulations.declared": Check(
        Level.ASSERTED,
        "declared numbers are public and true, and impossible combinations are impossible",
        "no tabulation declares numbers or impossible combinations",
    ),
    "residuals": Check(
        Level.TESTED,
        "totals differ from the sums of their parts by as much noise as is declared",
        "no public count is the total of another one",
    ),
    "keys.public": Check(
        Level.ASSERTED,
        "the keys that the spec takes from a file are public",
        "the spec takes no keys from a file",
    ),
    "provenance.attestation": Check(
        Level.TESTED, "the attestation names every file with its SHA-256", _UNSIGNED
    ),
    "provenance.signature": Check(
        Level.PROVED,
        "a key signed for every file, and for a ledger that holds the commit of these files",
        "no signature was asked for",
    ),
    "provenance.root": Check(
        Level.ASSERTED,
        "the key that signed is the curator's",
        "the signature was checked with a trusted key",
    ),
    "provenance.paid": Check(
        Level.PROVED, "the ledger reserved this charge, and keeps every cap", _NO_LEDGER
    ),
    "provenance.checkpoint": Check(
        Level.TESTED, "the checkpoints of ledger and release are of one ledger", _NO_LEDGER
    ),
    "provenance.older": Check(
        Level.TESTED, "an older checkpoint is of the same ledger", "none was given: --since"
    ),
    "provenance.newest": Check(
        Level.TESTED, "the ledger names no newer version of this release", _NO_LEDGER
    ),
    "provenance.store": Check(
        Level.TESTED,
        "the store of the ledger holds the same entries, or more that extend them",
        "no ledger was given, or it names no store",
    ),
    "provenance.witness": Check(
        Level.PROVED, "a trusted witness saw this checkpoint", "no witness was given: --witness"
    ),
    "provenance.audit": Check(
        Level.TESTED,
        "audit.json of the auditor bundle names this release and the entry that paid, and a key of "
        "the ledger signed it; what it says of people, times and rows is the curator's word",
        "no auditor bundle with audit.json was given",
    ),
    "limits.instance": Check(
        Level.ASSERTED, "the guarantee covers the neighbors of this very table", _NO_QUERY
    ),
    "limits.reading": Check(
        Level.ASSERTED, "tables were read, bounds enforced and answers computed as described"
    ),
    "limits.noise": Check(Level.ASSERTED, "the noise came from the operating system, once"),
    "limits.fixed": Check(Level.ASSERTED, "fixed keys are public facts that neighbors share"),
    "report.words": Check(Level.ASSERTED, "report.html says what the files say"),
    "withheld.instance": Check(
        Level.WITHHELD, "what depends on the table of an instance-specific query", _NO_QUERY
    ),
    "withheld.ledger": Check(
        Level.WITHHELD, "signatures, where the curator keeps no ledger", "the release is signed"
    ),
}
"""Every check by its identifier, in the order of a verdict."""
