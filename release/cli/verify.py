"""``dp-release verify``: the verdict on one release, or a line for each of several."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from release.cli import options as opt
from release.cli.console import echo, print_changes, print_json, print_verdict, working
from release.errors import SpecError
from release.verification.evidence import Required, Trust

if TYPE_CHECKING:
    from dp_release_verify.verdict import Verdict

Folders = Annotated[
    list[Path],
    typer.Argument(metavar="FOLDER…", help="Public folders of releases, or whole output folders."),
]
AuditorFolder = Annotated[
    Path | None, typer.Option(help="The auditor's folder of this release, or of all releases.")
]
CuratorKeys = Annotated[list[str] | None, typer.Option(help=opt.TRUSTED)]

WitnessKeys = Annotated[
    list[str] | None, typer.Option(help="A key of a witness, or the file that holds it.")
]


def verify(  # noqa: PLR0913 - one parameter for each option
    folders: Folders,
    auditor: AuditorFolder = None,
    ledger: opt.LedgerPath = None,
    trust: CuratorKeys = None,
    since: opt.OlderCheckpoint = None,
    witness: WitnessKeys = None,
    require: opt.Require = Required.SIGNED,
    jobs: opt.Jobs = None,
    as_json: opt.AsJson = False,
) -> None:
    """Check releases without the confidential data: what is proved, tested, and on trust.

    Several releases, or an output folder, get one line each, and the worst decides the exit
    status. With an output folder its ledger and its auditor's folders are read too. Only --trust
    says who published a release. -v shows every finding. Exit status 3 where evidence that is
    required was not there, 5 where a guarantee is not proved for want of the auditor's folder.

    Example: dp-release verify out/public/ami-2013-01-05 --auditor out/auditor --require none
    """
    from release.verification.keys import read_trusted, read_witnesses

    if since is not None and ledger is None:
        raise SpecError("--since", "an older checkpoint is compared with a ledger; give --ledger")
    keys, witnesses = read_trusted(trust or ()), read_witnesses(witness or ())
    evidence = Trust(ledger, keys, since, require, witnesses)
    for folder in folders:
        _check_folder(folder)
    if ledger is not None and not ledger.is_dir():
        raise SpecError("--ledger", f"no folder {ledger}; name the ledger, or leave it out")
    if auditor is not None:
        _check_auditor(auditor, folders)
    # An output folder may hold one release only; its verdict is a line all the same.
    if len(folders) > 1 or (folders[0] / "public").is_dir():
        _verify_each(folders, auditor, evidence, jobs, as_json)
        return
    verdict = _verdict(folders[0], auditor, evidence)
    if as_json:
        print_json(verdict.plain())
    else:
        print_verdict(verdict)
        name = folders[0].resolve().name
        if verdict.release_id not in ("", name):
            echo(f"the folder {name} holds the release {verdict.release_id}")
        print_changes(folders[0])
    raise typer.Exit(verdict.status)


def _check_folder(folder: Path) -> None:
    """Refuse what is no release and no output folder: such a path is a slip, and no forgery."""
    if folder.is_file():
        raise SpecError("FOLDER", f"{folder} is a file; name OUT, or OUT/public/RELEASE")
    if not folder.is_dir():
        raise SpecError("FOLDER", f"no folder {folder}; name OUT, or OUT/public/RELEASE")
    names = {path.name for path in folder.iterdir()}
    if not names & {"public", "release.json", "SHA256SUMS"}:
        raise SpecError("FOLDER", f"{folder} holds no release; name OUT, or OUT/public/RELEASE")


def _check_auditor(auditor: Path, folders: list[Path]) -> None:
    """Refuse a folder that is no auditor's folder and holds none of these releases."""
    remedy = "name OUT/auditor, or leave it out"
    if not auditor.is_dir():
        raise SpecError("--auditor", f"no folder {auditor}; {remedy}")
    names = list(map(_release_id, folders))
    places = list(map(auditor.joinpath, names))
    if any((place / "release.json").exists() for place in (auditor, *places)):
        raise SpecError("--auditor", f"{auditor} is a public folder; {remedy}")
    if not _is_of_one(auditor) and not any(map(Path.is_dir, places)):
        raise SpecError("--auditor", f"{auditor} holds nothing of {names[0]}; {remedy}")


def _is_of_one(auditor: Path) -> bool:
    """Whether a folder is the auditor's of one release, and not that of all."""
    return any(auditor.glob("*.json"))


def _verdict(public: Path, auditor: Path | None, evidence: Trust) -> Verdict:
    from release.verification.verifier import judge

    # The folder is that of this release, or holds those of all releases by id.
    if auditor is not None and not _is_of_one(auditor):
        own = auditor / _release_id(public)
        auditor = own if own.is_dir() else None
    return judge(public, auditor, evidence)


def _release_id(public: Path) -> str:
    """The id that a release has, by which the auditor's half of it is called.

    A copy of a folder may have any name. Nothing is proved here: what is no id is no name either.
    """
    with suppress(OSError, ValueError, TypeError, KeyError):
        record = json.loads((public / "release.json").read_bytes())
        named = str(record["asked"]["release"]["id"])
        if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", named):
            return named
    return public.resolve().name


def _verify_each(
    folders: list[Path], auditor: Path | None, evidence: Trust, jobs: int | None, as_json: bool
) -> None:
    """Print a line for each release; the worst of them decides the exit status."""
    from dp_release_verify.verdict import worst
    from release.operate.operations import Judged, judged, verify_each

    found: list[Judged] = []
    with working("verifying") as display, opt.fan_out(jobs) as pool:
        for finished, folder in enumerate(folders):
            if (folder / "public").is_dir():
                found += verify_each(folder, pool, evidence, display.watch)
                continue
            display.watch(finished, len(folders), folder.name)
            # By its own id: a copy of an older release under a newer name is the older one.
            found.append(judged(_release_id(folder), _verdict(folder, auditor, evidence)))
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        for each in found:
            echo(f"{each.release_id}  {each.words}")
    raise typer.Exit(worst([each.status for each in found]))
