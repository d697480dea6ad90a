"""Arguments and options of the commands, and what their texts mean."""

from __future__ import annotations

import datetime
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from release.cli.console import echo
from release.errors import SpecError
from release.spec.periods import Period, parse_period
from release.verification.evidence import Required

if TYPE_CHECKING:
    from release.noise.processes import FanOut
    from release.operate.notices.outbox import Outbox
    from release.operate.operations import Place
    from release.records.stores import Store

# Typer reads these annotations when a command is registered: what they name is imported above.
SpecPath = Annotated[Path, typer.Argument(help="The release spec, a YAML file.")]
Specs = Annotated[list[Path], typer.Argument(help="Release specs that name {period}.")]


def folder_of_releases(out: Path | None) -> Path | None:
    """Refuse what is no folder for releases, before anything is read."""
    if out is not None:
        from release.bundle.publish import check_output_folder

        check_output_folder(out)
    return out


Out = Annotated[
    Path,
    typer.Option("--out", callback=folder_of_releases, help="The folder that holds the releases."),
]
# The variable holds a path, never the key: other processes can read the environment.
_KEY = typer.Option(
    "--key", envvar="DP_RELEASE_KEY", help="The file of the signing key, or a signer, SCHEME:TEXT."
)
SigningKey = Annotated[Path, _KEY]
KeyFile = Annotated[Path | None, _KEY]
To = Annotated[
    str | None,
    typer.Option(help="A store to deliver to: a folder, s3://…; by default the ledger's own."),
]
SparkMaster = Annotated[
    str | None,
    typer.Option(
        envvar="DP_RELEASE_SPARK", help="The Spark master to read the tables on, such as local[2]."
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes of this machine to work in.")]
MemoryLimit = Annotated[
    str | None, typer.Option(help="The most memory that the engine may use, such as 2GB.")
]
AcceptGap = Annotated[
    str, typer.Option(help="The largest share of its loss that a better mechanism may save.")
]
PeriodOption = Annotated[
    str | None, typer.Option(help="The period of a spec template, such as 2024-01-05 or 2024-01.")
]
_FIRST_PERIOD = typer.Option(
    "--since", help="The first period of the schedule: 2024-01-05, 2024-w01, 2024-01, …"
)
Since = Annotated[str, _FIRST_PERIOD]
FirstPeriod = Annotated[str | None, _FIRST_PERIOD]
TRUSTED = "A public key of the curator, or the file that holds it."
CuratorKey = Annotated[str | None, typer.Option("--trust", help=TRUSTED)]
DelayDays = Annotated[
    int, typer.Option(min=0, max=3660, help="Full days to wait after the end of a period.")
]
Attempts = Annotated[int, typer.Option(min=1, help="Charges for a period before it is left out.")]
LateDays = Annotated[
    int | None,
    typer.Option(min=0, max=3660, help="Full days after which a due period is told to be late."),
]
Notify = Annotated[
    Path | None,
    typer.Option(
        envvar="DP_RELEASE_NOTIFY", help="A file of addresses to which ends of releases are told."
    ),
]
Html = Annotated[Path | None, typer.Option(help="The file of a page with pictures to write.")]


def _ledger_folder(given: Path | None) -> Path | None:
    from release.bundle.publish import ledger_folder

    return None if given is None else ledger_folder(given)


LedgerPath = Annotated[
    Path | None,
    typer.Option(help="The folder of the ledger that pays.", callback=_ledger_folder),
]
OlderCheckpoint = Annotated[
    Path | None, typer.Option("--since", help="An older checkpoint that the ledger must contain.")
]
Require = Annotated[Required, typer.Option(help="The least evidence that a release needs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def place_of(out: Path, key: Path | None, to: str | None) -> Place:
    """The folder of the releases, with its signing key and its store.

    Without ``to`` the store is the one that the ledger names, if it does.

    Raises:
        SpecError: the store cannot be opened.
    """
    from release.operate.operations import Place
    from release.records.stores import open_store

    return Place(out, key, store_of(out) if to is None else open_store(to, "--to"))


def store_of(out: Path) -> Store | None:
    """The store that the ledger of an output folder names, if it has one that does."""
    from release.budget.ledger import named_store, replay
    from release.bundle.publish import LEDGER
    from release.errors import BudgetError, LedgerError

    # What is wrong with a ledger is told by the command that follows, in its own words.
    with suppress(LedgerError, BudgetError):
        return named_store(replay(out / LEDGER))
    return None


def outbox_of(out: Path, notify: Path | None) -> Outbox:
    """What tells people how releases of ``out`` end; a channel that fails is told at the terminal.

    Raises:
        SpecError: the file of ``--notify`` is none, or an address in it is wrong.
    """
    from release.operate.notices.outbox import outbox

    own = outbox(out, notify, lambda line: echo(line, err=True))
    # Now, while somebody is watching, and not in the night in which it is needed.
    for channel in own.channels:
        channel.check()
    return own


def fan_out(jobs: int | None) -> AbstractContextManager[FanOut | None]:
    """The processes of ``--jobs``, or None where all work stays in this process."""
    from release.noise.processes import processes

    # One process beside this one would save no time and load the solvers twice.
    return nullcontext() if jobs is None or jobs == 1 else processes(jobs)


def named_period(text: str | None) -> Period | None:
    """The period of ``--period``.

    Raises:
        SpecError: the text is no period.
    """
    return None if text is None else parse_period(text)


def today_in(zone: str) -> datetime.date:
    """The date of today in a time zone.

    Raises:
        SpecError: there is no such zone.
    """
    from zoneinfo import ZoneInfo

    try:
        return datetime.datetime.now(tz=ZoneInfo(zone)).date()
    except (ValueError, OSError, KeyError) as error:
        # ZoneInfo reads a file of this name: a path is a ValueError, a folder an OSError.
        raise SpecError("--timezone", f"{zone!r} is no time zone; write Europe/Vienna") from error
