"""``dp-release log …``: checks the log of runs, and exports it for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from release.cli import options as opt
from release.cli.console import echo
from release.errors import ReleaseError, SpecError

if TYPE_CHECKING:
    from release.budget.ledger import Replayed

app = typer.Typer(
    name="log",
    help="Check the log that runs write, and export it for other programs.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Logs = Annotated[
    list[Path],
    typer.Argument(metavar="LOG…", help="The log; of one in several files all, the oldest first."),
]
MaybeOut = Annotated[
    Path | None, typer.Option("--out", help="The folder of the releases, whose ledger pays.")
]
MaybeLogs = Annotated[
    list[Path] | None, typer.Option("--log", help="A log of the runs; may stand several times.")
]
Target = Annotated[
    Path | None, typer.Option("--file", help="The file to write; by default standard output.")
]
Signed = Annotated[bool, typer.Option("--signed", help="Refuse a line without a signature.")]
Namespace = Annotated[str, typer.Option(help="The namespace of jobs and releases.")]


@app.command()
def verify(
    logs: Logs, out: MaybeOut = None, trust: opt.CuratorKey = None, signed: Signed = False
) -> None:
    """Check that no line of a log was changed, removed or added, and who signed the lines.

    The keys are those of the ledger in OUT, and --trust. With OUT, each release that the ledger
    commits after the log's first day has to be in the log.

    Example: dp-release log verify out-log
    """
    from release.budget.ledger import keys_ever
    from release.operate.log.file import check_log, ends_missing
    from release.records.signing import read_public_key

    ledger = None if out is None else _ledger(out)
    keys = () if ledger is None else keys_ever(ledger)
    if trust is not None:
        keys = (*keys, read_public_key(trust))
    if signed and not keys:
        raise SpecError("--signed", "no key is known; give --trust, or --out with a ledger")
    checked = check_log(logs, keys)
    count, unchecked = len(checked.lines), "" if keys else "; no key is known to check them"
    signatures = f"{count - checked.unsigned} signed, {checked.unsigned} not signed{unchecked}"
    echo(f"{count} lines, each follows from the one before: {signatures}")
    if checked.torn:
        echo(f"{checked.torn} parts of lines, which crashes left")
    missing = () if ledger is None else ends_missing(checked.lines, ledger.entries)
    for name in missing:
        # Another machine has a log of its own.
        echo(f"{name}: the ledger commits it, and the log does not have it")
    if signed and checked.unsigned:
        raise ReleaseError(f"{checked.unsigned} lines are not signed")
    if missing and (ledger is None or ledger.state.store is None):
        raise ReleaseError("the log lacks releases of the ledger; see above")


@app.command()
def openlineage(logs: Logs, to: Target = None, namespace: Namespace = "dp-release") -> None:
    """Write the releases of a log as OpenLineage run events, one JSON object a line.

    Example: dp-release log openlineage out-log --file out-events.jsonl
    """
    from release.operate.log.file import read_log
    from release.operate.log.openlineage import events

    lines = [json.dumps(event) for event in events(read_log(logs), namespace)]
    _write(to, "".join(f"{line}\n" for line in lines))


@app.command()
def metrics(out: opt.Out, logs: MaybeLogs = None, to: Target = None) -> None:
    """Write the state of a ledger, and the ends of runs, as OpenMetrics text.

    Example: dp-release log metrics --out out --log out-log --file out-metrics.txt
    """
    from release.operate.log.file import read_log
    from release.operate.log.metrics import metrics_text

    _write(to, metrics_text(_ledger(out), read_log(logs or ())))


def _ledger(out: Path) -> Replayed:
    from release.budget.ledger import read_ledger
    from release.bundle.publish import LEDGER

    return read_ledger(out / LEDGER)


def _write(to: Path | None, text: str) -> None:
    from release.records.files import storage_errors, write_anew

    if to is None:
        echo(text, nl=False)
        return
    with storage_errors(to, "the export"):
        # At once, because a collector may read it at any moment.
        write_anew(to, text.encode())
    echo(f"wrote  {to}")
