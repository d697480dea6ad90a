"""Prefect artifacts of a release, built from its public folder alone: nothing else can get in."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from dp_release_verify.digests import SUMS
from dp_release_verify.verdict import Level, Verdict
from release.analysis.summary import summarise
from release.budget.cost import Charges
from release.bundle.prepared import Prepared
from release.bundle.publish import LEDGER, Publication
from release.exact.numbers import format_up
from release.spec.load import SpecFile
from release.spec.query import Query
from release.verification.verifier import own_trust, verify


def show_quietly(public: Path, out: Path) -> None:
    """Create the artifacts of a release; a failure is ignored."""
    # The release is public and paid for, so its run must not end as failed.
    with suppress(Exception):
        show(public, out)


def show_stage(name: str, result: object) -> None:
    """Create the artifact of a stage from what is public by then; a failure is ignored.

    Nothing of a table is: what the stages *load*, *answer* and *sensitivity* give is confidential,
    and neither they nor *draw* have an artifact.
    """
    # The charge may be reserved by now, so its run must not end for want of a dashboard.
    with suppress(Exception):
        table = _rows(name, result)
        if table is not None:
            rows, description = table
            create_table_artifact(rows, key=name, description=description)


Rows: TypeAlias = list[dict[str, str]]


def _rows(name: str, result: object) -> tuple[Rows, str] | None:
    """The rows of a stage's artifact and what they are; None of a stage that has none."""
    match result:
        case SpecFile():
            rows = list(map(_asked, result.spec.charged))
            table = rows, f"{result.spec.release.title}: what is asked"
        case Publication():
            payer = "no ledger: the cap of the spec" if result.ledger is None else "the ledger"
            table = [{"release": result.release_id, "paid by": payer}], "the place of the release"
        case Charges():
            charge = {"ε": format_up(result.epsilon, 6), "δ": format_up(result.delta, 6)}
            table = [charge], "the charge of the release"
        case Prepared() if name == "prepare":
            # The family's name is published, whether the mechanism itself is or not.
            rows = [{"query": own.query.name, "mechanism": own.family} for own in result.queries]
            table = rows, "the mechanisms of the release"
        case Path() if name == "publish":
            lines = (result / SUMS).read_text("utf-8").splitlines()
            rows = [{"file": line.split("  ")[1]} for line in lines]
            table = rows, "the files of the release"
        case Verdict():
            levels: tuple[Level, ...] = ("proved", "tested", "trust")
            counts: dict[str, str] = {level: str(len(result.at(level))) for level in levels}
            table = [counts], "the checks of the verifier"
        case tuple() if name == "deliver":
            rows = [{"release": str(release_id)} for release_id in result]
            table = rows, "what was delivered"
        case _:
            return None
    return table


def _asked(query: Query) -> dict[str, str]:
    keys = ", ".join(query.by) or "one answer"
    return {"query": query.name, "kind": query.kind, "by": keys}


def show(public: Path, out: Path) -> None:
    """Create the artifacts of a release: its queries and their errors, its verdict, its report."""
    summary = summarise(public)
    # Prefect allows no other characters in a key.
    key = re.sub(r"[^a-z0-9]+", "-", summary.about.id).strip("-")
    rows = []
    for query in summary.queries:
        row = {"query": query.name, "cells": query.made.cells, "promise": query.claim}
        rows.append({**row, "charge": query.charge, "error": query.error})
    for own in summary.tabulations:
        row = {"query": own.name, "cells": own.cells, "promise": own.noise}
        rows.append({**row, "charge": own.charge, "error": own.error})
    create_table_artifact(rows, key=f"queries-{key}", description=summary.about.title)
    ledger = out / LEDGER
    verdict = verify(public, None, own_trust(ledger))
    create_markdown_artifact(verdict_text(verdict), key=f"verdict-{key}")
    report = summary.report.absolute().as_uri()
    create_link_artifact(report, link_text=summary.about.title, key=f"report-{key}")


def verdict_text(verdict: Verdict) -> str:
    """The verdict of a reader who has the public bundle and the ledger, as Markdown."""
    head, *lines = verdict.lines(verbose=True)
    return "\n".join([f"# {head}", *(f"- {line.strip()}" for line in lines)])
