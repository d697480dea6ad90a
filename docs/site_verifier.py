"""Hook of the site: the page that verifies in a browser gets its verifier, and Python for it.

Python for the browser is a package of npm (Pyodide, MPL-2.0), fetched while the site is built and
held to the digest below. Where it cannot be had, the site is built without, and the page says so.
"""

from __future__ import annotations

import base64
import hashlib
import io
import logging
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from supply.one_file import NAME, verifier_file

PACKAGE = "pyodide@0.27.7"
SHA512 = "RUSVJlhQdfWfgO9hVHCiXoG+nVZQRS5D9FzgpLJ/VcgGBLSAKoPL8kTiOikxbHQm1kRISeWUBdulEgO26qpSRA=="
FILES = (
    "pyodide.mjs",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
)

_LOG = logging.getLogger("mkdocs.site_verifier")


def on_post_build(config: dict[str, Any], **_: Any) -> None:
    """Write the verifier and Python for it beside the page, ``verifier/verify.html``."""
    project, place = Path(__file__).parent.parent, Path(config["site_dir"]) / "verifier"
    (place / NAME).write_bytes(verifier_file(project))
    # mkdocs leaves out what is Python (exclude_docs); this file runs in the browser.
    shutil.copyfile(project / "docs" / "verifier" / "page.py", place / "page.py")
    data = _package()
    if data is None:
        _LOG.info("no Python for the browser: npm cannot fetch %s", PACKAGE)
        return
    unpack(data, place / "pyodide")


def unpack(data: bytes, folder: Path) -> None:
    """Write the files that the page loads.

    Raises:
        ValueError: the package is another one.
    """
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != SHA512:
        raise ValueError(f"{PACKAGE} has another digest than the site is made for")
    folder.mkdir(exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for name in FILES:
            file = archive.extractfile(f"package/{name}")
            if file is None:
                raise ValueError(f"{PACKAGE} has no {name}")
            (folder / name).write_bytes(file.read())


def _package() -> bytes | None:
    npm = shutil.which("npm")
    if npm is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", PACKAGE, "--pack-destination", folder, "--silent"]
        done = subprocess.run(command, capture_output=True, check=False, cwd=folder)  # noqa: S603
        found = sorted(Path(folder).glob("*.tgz"))
        return found[0].read_bytes() if done.returncode == 0 and found else None
