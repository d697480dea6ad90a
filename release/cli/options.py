"""Options that several commands take, and what their texts mean."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from release.errors import SpecError
from release.exact.numbers import parse_exact
from release.verification.required import Required

if TYPE_CHECKING:
    from release.noise.processes import FanOut
    from release.operate.operations import Place

Out = Annotated[Path, typer.Option("--out", help="The folder that holds the releases.")]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", envvar="DP_RELEASE_KEY", help="The file of the signing key."),
]
To = Annotated[
    str | None,
    typer.Option("--to", help="A store to deliver to: a folder, s3://…, or another URI."),
]
SparkMaster = Annotated[
    str | None,
    typer.Option(
        "--spark",
        envvar="DP_RELEASE_SPARK",
        help="Read the tables on the Spark cluster of this master, such as local[2].",
    ),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Processes of this machine to work in.")
]
Specs = Annotated[list[Path], typer.Argument(help="Release specs that name {period}.")]
Since = Annotated[
    str, typer.Option("--since", help="The first period: 2024-01-05, 2024-w01, 2024-01, …")
]
DelayDays = Annotated[
    int,
    typer.Option(
        "--delay-days", min=0, max=3660, help="Full days to wait after the end of a period."
    ),
]
Attempts = Annotated[
    int, typer.Option("--attempts", min=1, help="Charges for one period before it is left out.")
]
Require = Annotated[
    Required, typer.Option("--require", help="What has to be signed: the release, or nothing.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def place_of(out: Path, key: Path | None, to: str | None) -> Place:
    """Where releases go.

    Raises:
        SpecError: the store cannot be opened.
    """
    from release.operate.operations import Place
    from release.tables.stores import open_store

    return Place(out, key, None if to is None else open_store(to, "--to"))


@contextmanager
def fan_out(jobs: int | None) -> Iterator[FanOut | None]:
    """Who does independent work: so many processes, or nobody else."""
    from release.noise.processes import processes

    if jobs is not None and jobs > 1:
        with processes(jobs) as out:
            yield out
    else:
        yield None


def today_in(zone: str) -> datetime.date:
    """The day it is in a time zone.

    Raises:
        SpecError: there is no such zone.
    """
    from zoneinfo import ZoneInfo

    try:
        return datetime.datetime.now(tz=ZoneInfo(zone)).date()
    except (ValueError, OSError, KeyError) as error:
        raise SpecError("--timezone", f"{zone!r} is none; write Europe/Vienna") from error


def parse_gap(text: str) -> Fraction:
    """The share that ``--accept-gap`` names.

    Raises:
        SpecError: it is no exact number.
    """
    try:
        return parse_exact(text)
    except ValueError as error:
        raise SpecError("--accept-gap", str(error)) from None
