"""``dp-release check``: the rehearsal of a run, for the curator only."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from release.cli import options as opt
from release.cli.console import echo, print_json, working
from release.errors import SpecError, StorageError, StrictError
from release.exact.numbers import exact

ConfidentialFile = Annotated[
    Path | None,
    typer.Option("--out", help="A new file for all that is found; only you may read it."),
]


RunFolder = Annotated[
    Path | None,
    typer.Option(
        "--into",
        callback=opt.folder_of_releases,
        help="The --out of the run: are its ledger, budget and id free? It notes there when the "
        "spec was checked, which a run then says.",
    ),
]


Strict = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="End with status 6 where a larger share of anything is left out, such as 0.01.",
    ),
]


def check(  # noqa: PLR0913 - one parameter for each option
    spec: opt.SpecPath,
    out: ConfidentialFile = None,
    into: RunFolder = None,
    key: opt.KeyFile = None,
    period: opt.PeriodOption = None,
    strict: Strict = None,
    as_json: opt.AsJson = False,
) -> None:
    """Rehearse a run against the tables of a spec: keys, bounds, accuracy. For the curator only.

    Nothing is published or charged; what is shown is confidential. Where a run would be refused,
    the exit status is that of the run, and all reasons are listed.

    Example: dp-release check data/ami.yaml
    """
    from release.noise.cache import default_cache
    from release.operate.rehearsal.folder import Destination
    from release.operate.rehearsal.rehearse import check_run
    from release.operate.rehearsal.text import lines_of, plain_rehearsal
    from release.queries.read import read_spec

    allowed = None if strict is None else exact("--strict", strict)
    if allowed is not None and not 0 <= allowed < 1:
        raise SpecError("--strict", "write a share from 0 on and below 1, such as 0.01")
    spec_file = read_spec(spec, opt.named_period(period))
    if out is not None and os.path.lexists(out):
        raise SpecError("--out", "is there already; name another file")
    if out is not None and not out.parent.is_dir():
        raise SpecError("--out", f"there is no folder {out.parent}; create it, or name another")
    with working("rehearsing"):
        destination = None if into is None else Destination(into, key)
        found = check_run(spec_file, default_cache(), into=destination)
    if destination is not None:
        destination.note_check(spec)
    if out is not None:
        every = "\n".join(lines_of(found, most=None))
        _write(out, json.dumps(plain_rehearsal(found), ensure_ascii=False) if as_json else every)
        echo(f"wrote  {out}  (confidential)")
    elif as_json:
        print_json(plain_rehearsal(found))
    else:
        lines = lines_of(found)
        if found.refusals:
            # The first stands below, in the words of the run, as the error.
            lines.remove(f"  {found.refusals[0]}")
        echo("\n".join(lines))
    if found.refusals:
        # As a run would: the line of its first refusal, and its status.
        raise found.refusals[0]
    if allowed is not None:
        loud = [reason for reason in found.left_out if reason.share > allowed]
        if loud:
            # Without a figure: what an exit status tells of the table is told on the page.
            raise StrictError(
                f"--strict: more than {strict} is left out or changed, in {len(loud)} of the lines "
                "above"
            )


def _write(path: Path, text: str) -> None:
    """Write a new file that nobody else may read.

    Raises:
        SpecError: there is one already.
        StorageError: it cannot be written.
    """
    try:
        # Created with its mode, so that at no moment others may read it.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except FileExistsError:
        raise SpecError("--out", "is there already; name another file") from None
    except OSError as error:
        raise StorageError(f"--out: cannot be written: {error.strerror}") from error
