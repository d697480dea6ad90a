"""``dp-release verify``: the verdict on one release, or a line for each of several."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli import options as opt
from release.cli.console import echo, print_changes, print_json, print_verdict, working
from release.errors import ReleaseError, SpecError, VerificationError
from release.verification.required import Required

if TYPE_CHECKING:
    from release.verification.provenance import Trust
    from release.verification.verifier import Verdict

Folders = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FOLDER…", help="Public folders of releases, or whole output folders."),
]
StandaloneFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a verifier of its own, in one Python file, and end."),
]
AuditorFolder = Annotated[
    Path | None, typer.Option(help="The auditor bundle of this release, or of all releases.")
]
CuratorKeys = Annotated[list[str] | None, typer.Option(help=opt.TRUSTED)]

WitnessKeys = Annotated[
    list[str] | None, typer.Option(help="A key of a witness, or the file that holds it.")
]


def verify(  # noqa: PLR0913 - one parameter for each option
    folders: Folders = None,
    auditor: AuditorFolder = None,
    ledger: opt.LedgerPath = None,
    trust: CuratorKeys = None,
    since: opt.OlderCheckpoint = None,
    witness: WitnessKeys = None,
    require: opt.Require = Required.SIGNED,
    jobs: opt.Jobs = None,
    as_json: opt.AsJson = False,
    standalone: StandaloneFile = None,
) -> None:
    """Check releases without the confidential data: what is proved, tested, only asserted.

    Several releases, or an output folder, get one line each. With an output folder its ledger and
    its auditor bundles are read too. A ledger that comes with the folder does not show who signed:
    give --trust, or name a ledger. Exit status 3 where a mechanism could not be opened, or a
    required signature could not be checked.

    Example: dp-release verify out/public/ami-2013-01-05 --auditor out/auditor --require none
    """
    from release.records.keys.cosignatures import read_witness_key
    from release.records.signing import read_public_key
    from release.verification.provenance import Trust

    if standalone is not None:
        _write_standalone(standalone)
        return
    if not folders:
        raise SpecError("FOLDER", "none is given; name the public folder of a release")
    if since is not None and ledger is None:
        raise SpecError("--since", "an older checkpoint is compared with a ledger; give --ledger")
    # Without a key or a ledger nothing shows who signed: the verdict is then in part only.
    keys = tuple(map(read_public_key, trust or ()))
    witnesses = tuple(map(read_witness_key, witness or ()))
    evidence = Trust(ledger, keys, since, require, witnesses=witnesses)
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
    try:
        verdict = _verdict(folders[0], auditor, evidence)
    except VerificationError as error:
        if as_json:
            print_json(_refusal(folders[0], error))
        raise
    if as_json:
        print_json(_plain(verdict))
    else:
        print_verdict(verdict)
        if (name := folders[0].resolve().name) != verdict.release_id:
            echo(f"the folder {name} holds the release {verdict.release_id}")
        print_changes(folders[0])
    raise typer.Exit(0 if verdict.complete else 3)


def _check_folder(folder: Path) -> None:
    """Refuse what is no release and no output folder: such a path is a slip, and no forgery."""
    if not folder.is_dir():
        raise SpecError("FOLDER", f"no folder {folder}; name OUT, or OUT/public/RELEASE")
    from release.bundle.evidence.record import AUDIT

    names = {path.name for path in folder.iterdir()}
    if names & {"public", "release.json", "SHA256SUMS"}:
        return
    if names & {"openings.json", AUDIT}:
        raise SpecError(
            "FOLDER", f"{folder} is an auditor bundle; name the public folder, and it by --auditor"
        )
    raise SpecError("FOLDER", f"{folder} holds no release; name OUT, or OUT/public/RELEASE")


def _check_auditor(auditor: Path, folders: list[Path]) -> None:
    """Refuse a folder that is no auditor bundle and holds none of these releases."""
    remedy = "name OUT/auditor, or leave it out"
    if not auditor.is_dir():
        raise SpecError("--auditor", f"no folder {auditor}; {remedy}")
    names = list(map(_release_id, folders))
    bundles = list(map(auditor.joinpath, names))
    if any((place / "release.json").exists() for place in (auditor, *bundles)):
        raise SpecError("--auditor", f"{auditor} is a public folder; {remedy}")
    if not _is_bundle(auditor) and not any(map(Path.is_dir, bundles)):
        raise SpecError("--auditor", f"{auditor} holds no bundle of {names[0]}; {remedy}")


def _is_bundle(auditor: Path) -> bool:
    """Whether a folder is an auditor bundle itself, and not that of all bundles."""
    from release.bundle.evidence.record import AUDIT

    # A bundle of which a file is lost is for the verifier to refuse.
    return any((auditor / name).exists() for name in ("openings.json", "mechanisms", AUDIT))


def _write_standalone(file: Path) -> None:
    """Write the second verifier, byte for byte; its file is data here and never imported."""
    file.write_bytes((resources.files("release.verification") / "standalone.py").read_bytes())
    echo(f"{file}: run it with python3 -I -S {file} PUBLIC_FOLDER")


def _verdict(public: Path, auditor: Path | None, evidence: Trust) -> Verdict:
    from release.verification.verifier import verify as verify_release

    # The folder is the bundle of this release, or holds the bundles of all releases by id.
    if auditor is not None and not _is_bundle(auditor):
        auditor = auditor / _release_id(public)
    return verify_release(public, auditor, evidence)


def _release_id(public: Path) -> str:
    """The id that a release has, by which the auditor's half of it is called.

    A copy of a folder may have any name. Nothing is proved here: what is no id is no name either.
    """
    with suppress(OSError, ValueError, TypeError, KeyError):
        named = str(json.loads((public / "release.json").read_bytes())["release_id"])
        if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", named):
            return named
    return public.resolve().name


def _verify_each(
    folders: list[Path], auditor: Path | None, evidence: Trust, jobs: int | None, as_json: bool
) -> None:
    """Print a line for each release; the worst of them decides the exit status."""
    from release.operate.operations import IN_PART, lacks_root, verify_each
    from release.verification.provenance import LACKS_ROOT

    verdicts: list[tuple[str, str]] = []
    with working("verifying") as display, opt.fan_out(jobs) as pool:
        for finished, folder in enumerate(folders):
            if (folder / "public").is_dir():
                verdicts += verify_each(folder, pool, evidence, display.watch)
                continue
            try:
                display.watch(finished, len(folders), folder.name)
                # By its own id: a copy of an older release under a newer name is the older one.
                name = _release_id(folder)
                is_complete = _verdict(folder, auditor, evidence).complete
                verdicts.append((name, "verified" if is_complete else IN_PART))
            except ReleaseError as error:
                # A refusal is a verdict: the releases after this one are verified too.
                verdicts.append((name, f"refused: {error}"))
    if as_json:
        print_json([{"release_id": name, "verdict": verdict} for name, verdict in verdicts])
    else:
        for name, verdict in verdicts:
            echo(f"{name}  {verdict}")
    if any(lacks_root(folder, evidence) for folder in folders):
        echo(f"not seen: {LACKS_ROOT}", err=True)
    if any(verdict.startswith("refused") for _, verdict in verdicts):
        raise ReleaseError("some releases do not verify; see above")
    raise typer.Exit(3 if any(verdict.startswith(IN_PART) for _, verdict in verdicts) else 0)


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "release_id": verdict.release_id,
        "verified": "complete" if verdict.complete else "as far as the given bundles allow",
        "evidence": verdict.evidence,
        "findings": list(map(asdict, verdict.findings)),
    }


def _refusal(folder: Path, error: VerificationError) -> dict[str, Any]:
    return {
        "release_id": _release_id(folder),
        "verified": "refused",
        "identifier": error.identifier,
        "file": error.file,
        "check": error.check,
        "found": error.actual,
        "expected": error.expected,
    }
