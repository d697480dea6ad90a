"""Prefect artifacts of a release, built from its public folder alone: nothing else can get in."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from release.bundle.publish import LEDGER
from release.bundle.report.summary import summarise
from release.verification.provenance import own_trust
from release.verification.verifier import Verdict, verify


def show_quietly(public: Path, out: Path) -> None:
    """Create the artifacts of a release; a failure is ignored."""
    # The release is public and paid for, so its run must not end as failed.
    with suppress(Exception):
        show(public, out)


def show(public: Path, out: Path) -> None:
    """Create the artifacts of a release: its queries and their errors, its verdict, its report."""
    summary = summarise(public)
    record = summary.record
    # Prefect allows no other characters in a key.
    key = re.sub(r"[^a-z0-9]+", "-", record.release_id).strip("-")
    rows = []
    for query in summary.queries:
        row = {"query": query.record.name, "cells": query.record.cells, "promise": query.promise}
        rows.append({**row, "charge": query.charge, "error": query.error})
    for own in summary.tabulations:
        row = {"query": own.record.name, "cells": own.cells, "promise": own.noise}
        rows.append({**row, "charge": own.charge, "error": own.error})
    create_table_artifact(rows, key=f"queries-{key}", description=record.title)
    ledger = out / LEDGER
    verdict = verify(public, None, own_trust(ledger))
    create_markdown_artifact(verdict_text(verdict), key=f"verdict-{key}")
    report = summary.report.absolute().as_uri()
    create_link_artifact(report, link_text=record.title, key=f"report-{key}")


def verdict_text(verdict: Verdict) -> str:
    """The verdict of a reader who has the public bundle and the ledger, as Markdown."""
    word = "verified" if verdict.complete else "verified as far as the public bundle allows"
    parts = [f"# {verdict.release_id}: {word}"]
    for title, items in (
        ("Proved in exact arithmetic", verdict.proved),
        ("Tested", verdict.tested),
        ("Only asserted", verdict.asserted),
    ):
        parts += [f"## {title}", *(f"- {item}" for item in items)]
    return "\n".join(parts)
