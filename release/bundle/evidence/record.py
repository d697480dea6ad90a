"""``audit.json`` of the auditor bundle: when and by whom a release was made, and from what.

Times, people and counts of rows depend on more than the spec, and some on the table. So they go to
the auditor bundle alone, and only where a run asks for them: reading the inputs once more takes
time, which no public file tells. The record names the entry of the ledger that paid, and the key of
the ledger signs it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from release.budget.entries import RunId
from release.bundle.evidence.people import Instant, PersonName
from release.bundle.evidence.signed import SignedRecord
from release.records.base import Record, ReleaseId
from release.records.models import Opening

AUDIT = "audit.json"


class InputRecord(Record):
    """The commitments to the files of one table, in the order of their names."""

    table: str = Field(description="the name of the table in the spec")
    files: list[Opening] = Field(
        description="one for each file; empty where the table lies in a database server"
    )


class SetAside(Record):
    """Rows or values of a table that were not taken as they stand."""

    table: str = Field(description="the name of the table in the spec")
    rule: str = Field(description="what was wrong: `no unit`, `unreadable line`, `contract`, …")
    column: str = Field(description="the column; empty where it is the whole row")
    count: int = Field(ge=1, description="how many rows, or values that were made missing")


class LeftOut(Record):
    """What the answers leave out of the tables, or change: a line at the head of ``check``."""

    of: str = Field(description="the table or query")
    words: str = Field(description="what happens to them, for people")
    count: int = Field(ge=1, description="how many")
    whole: int = Field(ge=0, description="of how many")
    noun: str = Field(description="what they are: `rows`, `lines`, `values`, …")
    example: str = Field(description="the cell that it changes most, for people; or empty")


class AuditRecord(SignedRecord):
    """``audit.json`` of the auditor bundle."""

    schema_: Literal["dp-release/audit/v1"] = Field(
        alias="schema", description="the version of this format"
    )
    release_id: ReleaseId
    sequence: int | None = Field(description="the number of the entry that reserved the charge")
    run: RunId | None = Field(description="the random digits of the run in that entry")
    began: Instant = Field(description="when the run began, in UTC")
    prepared: Instant = Field(description="when the noise was about to be drawn, in UTC")
    actor: PersonName = Field(description="who ran it")
    approver: PersonName | None = Field(default=None, description="who approved it")
    inputs: list[InputRecord] = Field(description="one object for each table")
    set_aside: list[SetAside] | None = Field(
        description="what was set aside; null where the engine does not count it"
    )
    left_out: list[LeftOut] | None = Field(
        description="what the answers leave out, the largest shares first; null where it was not "
        "counted"
    )
