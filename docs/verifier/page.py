"""What the page does in Python: reads what was dropped, within limits, and has it verified.

It is run by Pyodide in a browser, beside the verifier, and by tests as it is. It imports the
standard library and the verifier alone.
"""

from __future__ import annotations

import io
import json
import shutil
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from dp_release_verify.checks import Evidence, verify
from dp_release_verify.digests import SUMS
from dp_release_verify.ledger import CHECKPOINT
from dp_release_verify.provenance import Trust
from dp_release_verify.signatures import CURATOR, SignatureError, VerifierKey, read_key
from dp_release_verify.verdict import escaped, worst

MOST_FILES = 5_000
MOST_BYTES = 2**28
"""Of all files together, as they are unpacked."""

DROPPED = Path("/dropped")
"""Where Pyodide keeps files: in the memory of the page."""


class NotTaken(Exception):  # noqa: N818 - no fault of anybody
    """What was dropped is not looked at; the message says why."""


def check_path(name: str) -> str:
    """The path of a file in what was dropped.

    Raises:
        NotTaken: it leads out of the folder, or is none.
    """
    path = PurePosixPath(name)
    odd = path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name
    if odd or not path.parts or len(name) > 500:
        raise NotTaken(f"a file has the path {name[:100]!a}")
    return path.as_posix()


def unpacked(data: bytes) -> dict[str, bytes]:
    """The files of a zip, by their paths.

    Raises:
        NotTaken: it is no zip, or larger than the limits, or holds a link or a path that leads out.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(entries) > MOST_FILES:
            raise NotTaken(f"the zip has {len(entries):,} files; at most {MOST_FILES:,} are read")
        left = MOST_BYTES
        found: dict[str, bytes] = {}
        for entry in entries:
            name = check_path(entry.filename)
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise NotTaken(f"{name} is a link")
            if name in found:
                raise NotTaken(f"{name} stands twice in the zip")
            with archive.open(entry) as file:
                # What an entry says of its size is not relied on.
                content = file.read(left + 1)
            left -= len(content)
            if left < 0:
                raise NotTaken(f"unpacked the zip has more than {MOST_BYTES >> 20} MB")
            found[name] = content
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        raise NotTaken(f"this is no zip that can be read: {error}") from None
    except OSError as error:
        raise NotTaken(f"this zip is damaged: {error}") from None
    return found


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files below a new folder.

    Raises:
        NotTaken: there are too many, or a path leads out.
    """
    if len(files) > MOST_FILES or sum(map(len, files.values())) > MOST_BYTES:
        raise NotTaken(f"at most {MOST_FILES:,} files and {MOST_BYTES >> 20} MB are read")
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        path = folder / check_path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(data))
        except OSError:
            raise NotTaken(f"{name} is a file and a folder at once") from None


def folders_with(name: str, folder: Path) -> list[Path]:
    """The folders that hold a file of this name, those of an auditor left out."""
    found = []
    for path in sorted(folder.rglob(name)):
        if "auditor" not in path.relative_to(folder).parts:
            found.append(path.parent)
    return found


def trusted(text: str) -> tuple[VerifierKey, ...]:
    """The keys that were pasted, one a line.

    Raises:
        NotTaken: a line is no public key.
    """
    keys = []
    for line in text.splitlines():
        if line.strip():
            try:
                keys.append(read_key(line.strip(), CURATOR))
            except (SignatureError, ValueError):
                # It may be the secret half, so it is not shown.
                raise NotTaken("a line of the keys is no public key: name+hint+base64") from None
    return tuple(keys)


def verdicts(
    files: Mapping[str, bytes], keys: str, require: Evidence, folder: Path = DROPPED
) -> str:
    """The verdict on each release among the files, as JSON for the page.

    Args:
        files: the bytes of each file, by its path; or a zip alone.
        keys: public keys, one a line.
        require: the least evidence that is not missing.
        folder: where the files are written, anew each time.
    """
    try:
        trust = trusted(keys)
        names = list(files)
        if len(names) == 1 and names[0].lower().endswith(".zip"):
            files = unpacked(bytes(files[names[0]]))
        write_files(files, folder)
        releases = folders_with(SUMS, folder)
        if not releases:
            raise NotTaken(f"no release is in it: a release folder holds a file {SUMS}")
        # Only the folder of a ledger has a checkpoint.
        ledgers = folders_with(CHECKPOINT, folder)
        ledger = ledgers[0] if ledgers else None
        found = [verify(each, None, Trust(trust, (), ledger), require) for each in releases]
    except NotTaken as error:
        return json.dumps({"problem": str(error)})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told = []
    for verdict in found:
        head = escaped(f"{verdict.release_id or '(no name)'}: {verdict.head}")
        lines, every = verdict.lines()[1:], verdict.lines(verbose=True)[1:]
        told.append({"status": verdict.status, "head": head, "lines": lines, "all": every})
    return json.dumps({"status": worst([each.status for each in found]), "verdicts": told})
