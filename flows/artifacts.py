"""Prefect artifacts of a release, built from its public folder alone: nothing else can get in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from dp_release_verify.digests import SUMS
from dp_release_verify.verdict import Level, Verdict
from release.analysis.summary import summarise
from release.bundle.about import release_title
from release.bundle.publish import LEDGER
from release.exact.numbers import format_up
from release.job import Job, Stage
from release.spec.query import Query
from release.verification.verifier import own_trust, verify


def show_quietly(public: Path, out: Path) -> None:
    """Create the artifacts of a release; a failure is ignored."""
    # The release is public and paid for, so its run must not end as failed.
    with suppress(Exception):
        show(public, out)


Rows: TypeAlias = list[dict[str, str]]


def show_stage(stage: Stage, job: Job) -> None:
    """Create the artifact of a stage from what is public by then; a failure is ignored.

    Nothing of a table is: what *load*, *answer* and *move* add is confidential, and neither they
    nor *draw* have an artifact.
    """
    # The charge may be reserved by now, so its run must not end for want of a dashboard.
    with suppress(Exception):
        if stage.name in _SHOWN:
            rows, description = _SHOWN[stage.name](job)
            create_table_artifact(rows, key=stage.name, description=description)


def _questions(job: Job) -> tuple[Rows, str]:
    spec = job.spec_file.spec
    return list(map(_asked, spec.charged)), f"{release_title(spec.release)}: what is asked"


def _place(job: Job) -> tuple[Rows, str]:
    has_ledger = job.publication.ledger is not None
    payer = "the ledger" if has_ledger else "no ledger: the cap of the spec"
    return [{"release": job.publication.release_id, "paid by": payer}], "the place of the release"


def _charge(job: Job) -> tuple[Rows, str]:
    charge = {"ε": format_up(job.price.epsilon, 6), "δ": format_up(job.price.delta, 6)}
    return [charge], "the charge of the release"


def _mechanisms(job: Job) -> tuple[Rows, str]:
    # The family's name is published, whether the mechanism itself is or not.
    rows = [{"query": own.query.name, "mechanism": own.family} for own in job.prepared.queries]
    return rows, "the mechanisms of the release"


def _files(job: Job) -> tuple[Rows, str]:
    lines = (job.public / SUMS).read_text("utf-8").splitlines()
    return [{"file": line.split("  ")[1]} for line in lines], "the files of the release"


def _checks(job: Job) -> tuple[Rows, str]:
    levels: tuple[Level, ...] = ("proved", "tested", "trust")
    counts: dict[str, str] = {level: str(len(job.verdict.at(level))) for level in levels}
    return [counts], "the checks of the verifier"


def _delivered(job: Job) -> tuple[Rows, str]:
    return [{"release": release_id} for release_id in job.delivered], "what was delivered"


_SHOWN: Mapping[str, Callable[[Job], tuple[Rows, str]]] = {
    "read": _questions,
    "open": _place,
    "charge": _charge,
    "prepare": _mechanisms,
    "publish": _files,
    "confirm": _checks,
    "deliver": _delivered,
}
"""What is shown of a stage, by its name: rows, and what they are."""


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
    create_table_artifact(rows, key=f"queries-{key}", description=release_title(summary.about))
    ledger = out / LEDGER
    verdict = verify(public, None, own_trust(ledger))
    create_markdown_artifact(verdict_text(verdict), key=f"verdict-{key}")
    report = summary.report.absolute().as_uri()
    create_link_artifact(report, link_text=release_title(summary.about), key=f"report-{key}")


def verdict_text(verdict: Verdict) -> str:
    """The verdict of a reader who has the public bundle and the ledger, as Markdown."""
    head, *lines = verdict.lines(verbose=True)
    return "\n".join([f"# {head}", *(f"- {line.strip()}" for line in lines)])
