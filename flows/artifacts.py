"""Prefect artifacts of a release: made from its public folder, so that they hold nothing else."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from release.bundle.publish import LEDGER
from release.bundle.summary import QuerySummary, summarise
from release.verification.provenance import Trust
from release.verification.verifier import Verdict, verify


def show_quietly(public: Path, out: Path) -> None:
    """Make the artifacts of a release; one that cannot be made holds nothing up."""
    with suppress(Exception):
        show(public, out)


def show(public: Path, out: Path) -> None:
    """Artifacts of a release: its queries and their errors, its verdict, its report."""
    found = summarise(public)
    record = found.record
    key = re.sub(r"[^a-z0-9]+", "-", record.release_id).strip("-")
    rows = [query_row(query) for query in found.queries]
    create_table_artifact(rows, key=f"queries-{key}", description=record.title)
    ledger = out / LEDGER
    verdict = verify(public, None, Trust(ledger if ledger.is_dir() else None))
    create_markdown_artifact(verdict_text(verdict), key=f"verdict-{key}")
    report = found.report.absolute().as_uri()
    create_link_artifact(report, link_text=record.title, key=f"report-{key}")


def query_row(query: QuerySummary) -> dict[str, str | int]:
    """What is public of a query: its promise, its charge, and its error where that is public."""
    return {
        "query": query.record.name,
        "cells": query.record.cells,
        "promise": query.promise,
        "charge": query.charge,
        "error": query.error,
    }


def verdict_text(verdict: Verdict) -> str:
    """The verdict of somebody who has the public bundle and the ledger."""
    word = "verified" if verdict.complete else "verified as far as the public bundle allows"
    parts = [f"# {verdict.release_id}: {word}"]
    for title, items in (
        ("Proved in exact arithmetic", verdict.proved),
        ("Tested", verdict.tested),
        ("Only asserted", verdict.asserted),
    ):
        parts += [f"## {title}", *(f"- {item}" for item in items)]
    return "\n".join(parts)
