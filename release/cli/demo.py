"""``dp-release demo``: key, ledger, a signed release of the samples, and its verdict."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from release.errors import SpecError

if TYPE_CHECKING:
    from release.records.signing import PublicKey

FOLDERS = ("data", "schemas")
ORIGIN = "example.org/demo"
SCOPES = (("lcl-2013", "4", "0.00001"), ("census-2024", "4", "0"))
"""The scopes of the samples, with enough for one release of each."""

Folder = Annotated[Path, typer.Option("--out", help="The folder to create.")]


def samples() -> Path:
    """The folder that holds ``data`` and ``schemas``: in the package, or the checkout around it."""
    inside = Path(__file__).parent.parent / "samples"
    return inside if inside.is_dir() else inside.parent.parent


def demo(folder: Folder = Path("out-demo")) -> None:
    """Publish, sign and verify a release of the sample tables, in a new folder.

    The folder gets data/ and schemas/, the samples, to change and to run again; the signing key
    demo.key and its public part demo.pub; and out/, the ledger and the release.

    Example: dp-release demo --out out-demo
    """
    from release.cli.console import echo, print_verdict, progress
    from release.job import Options
    from release.noise.cache import default_cache
    from release.street import run_release
    from release.verification.evidence import Required, Trust
    from release.verification.keys import read_trusted
    from release.verification.verifier import verify

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpecError("--out", f"{folder} is not empty; name a new folder")
    for name in FOLDERS:
        shutil.copytree(samples() / name, folder / name, ignore=_but_samples)
    echo("A utility publishes the peak load of 12 circuits without giving one home away.")
    out, key = folder / "out", folder / "demo.key"
    trusted = _begin_ledger(out, key)
    with progress() as display:
        options = Options(cache=default_cache(), watch=display.watch, key=key)
        published = run_release(folder / "data" / "ami.yaml", out, display.perform, options=options)
    echo("An auditor, who has both bundles and the curator's key, checks it:")
    trust = Trust(out / "ledger", read_trusted([str(trusted)]), require=Required.PAID)
    print_verdict(verify(published.public, published.auditor, trust))
    for word, line in (
        ("report", published.public / "report.html"),
        ("tables", published.public / "data"),
        ("samples", folder / "data"),
        ("check", f"dp-release verify {out} --trust {key.with_suffix('.pub')}"),
        ("next", f"dp-release run {folder / 'data/persons.yaml'} --out {out} --key {key}"),
    ):
        echo(f"{word:8} {line}")


def _but_samples(folder: str, names: list[str]) -> set[str]:
    """What a checkout has beside the samples: programs and pages."""
    return {name for name in names if Path(name).suffix in {".py", ".md"} or name[:2] == "__"}


def _begin_ledger(out: Path, key: Path) -> PublicKey:
    """Create the key and the ledger; the public part of the key, which has a file too."""
    from release.budget.ledger import ScopeCap, create_ledger, today
    from release.bundle.publish import LEDGER
    from release.records.keys.files import create_key

    signer = create_key(key)
    caps = [ScopeCap(scope=name, epsilon=e, delta=d) for name, e, d in SCOPES]
    create_ledger(out / LEDGER, signer, ORIGIN, tuple(caps), today().isoformat())
    public = signer.public(ORIGIN)
    key.with_suffix(".pub").write_text(f"{public}\n", "utf-8")
    return public
