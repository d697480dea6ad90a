"""The page that verifies in a browser: what it takes, and its verdicts in a real Chromium."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import json
import shutil
import threading
import zipfile
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from release.budget.ledger import ScopeCap, create_ledger
from release.job import Options
from release.records.keys.files import create_key
from release.street import run_release
from supply.one_file import verifier_file
from tests.conftest import PROJECT
from tests.small import Small
from tests.verifier import made

PAGE = PROJECT / "docs" / "verifier"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def module(path: Path) -> ModuleType:
    found = util.spec_from_file_location(path.stem, path)
    assert found is not None
    assert found.loader is not None
    loaded = util.module_from_spec(found)
    found.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def page() -> ModuleType:
    return module(PAGE / "page.py")


def zip_of(files: dict[str, bytes], mode: int = 0o100644) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return sink.getvalue()


def files_of(folder: Path, below: str = "") -> dict[str, bytes]:
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[below + path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sound")
    asked = made.QUERIES[:2]
    return run_release(Small(made.ROWS, asked).write(place), place / "out").public


# ---- What is taken ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"no zip", "no zip that can be read"),
        (zip_of({"../out": b"x"}), "path '../out'"),
        (zip_of({"/etc/x": b"x"}), "path '/etc/x'"),
        (zip_of({"a\\b": b"x"}), "path"),
        (zip_of({"link": b"/etc"}, mode=0o120777), "link is a link"),
        (zip_of({"a": b"x", "a/b": b"x"}), "a file and a folder at once"),
        (zip_of({f"f{i}": b"" for i in range(5001)}), "has 5,001 files"),
        (zip_of({"bomb": bytes(2**28 + 1)}), "more than 256 MB"),
        (zip_of({"a": b"x"})[:-30], "no zip that can be read"),
        (zip_of({"readme": b"x"}), "no release is in it"),
    ],
    ids=["text", "up", "absolute", "backslash", "link", "both", "many", "bomb", "cut", "empty"],
)
def test_what_is_no_release_is_not_read(
    page: ModuleType, tmp_path: Path, data: bytes, problem: str
) -> None:
    told = json.loads(page.verdicts({"dropped.zip": data}, "", "none", tmp_path / "dropped"))
    assert problem in told["problem"]
    assert list(tmp_path.iterdir()) == []


def test_the_secret_half_of_a_key_is_not_shown(page: ModuleType, tmp_path: Path) -> None:
    told = page.verdicts({}, "PRIVATE+KEY+quagzil", "none", tmp_path / "dropped")
    assert "no public key" in json.loads(told)["problem"]
    assert "quagzil" not in told


def test_an_output_folder_is_read_with_its_ledger(page: ModuleType, tmp_path: Path) -> None:
    """Dropped whole: each release, the ledger for who paid, and nothing of the auditor's."""
    out = tmp_path / "out"
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="100", delta="0.9")
    create_ledger(out / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    spec = Small(made.ROWS, made.QUERIES[:3]).write(tmp_path)
    run_release(spec, out, options=Options(key=tmp_path / "key"))
    files = files_of(out, "out/")
    assert any("/auditor/" in name for name in files)
    trusted = str(signer.public("example.org/dp"))
    told = json.loads(page.verdicts(files, trusted, "paid", tmp_path / "dropped"))
    (found,) = told["verdicts"]
    assert found["head"] == "small: NOT PROVED: committed"
    assert any("[ledger.replay]" in line for line in found["all"])
    assert not any("who published" in line for line in found["lines"])


# ---- In a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page in a browser, with its verifier loaded."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    if shutil.which("npm") is None:
        pytest.skip("there is no npm to fetch Python for the browser with")
    api = pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(PAGE, site / "verifier")
    module(PROJECT / "docs" / "site_verifier.py").on_post_build({"site_dir": str(site)})
    if not (site / "verifier" / "pyodide").is_dir():
        pytest.skip("npm cannot fetch Python for the browser")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(f"http://127.0.0.1:{server.server_port}/verifier/verify.html")
        tab.get_by_text("Ready.").wait_for(timeout=240_000)
        yield tab
        browser.close()
    server.shutdown()
    server.server_close()


def heads(tab: Any) -> list[str]:
    tab.get_by_text("Reading and proving").wait_for(state="hidden", timeout=120_000)
    tab.locator("#state", has_text="release").wait_for(timeout=120_000)
    return [str(text) for text in tab.locator("article h2").all_inner_texts()]


def forged(folder: Path) -> None:
    """A charge of half of what it is."""

    def change(plain: Any) -> None:
        plain["made"]["queries"][0]["charge"]["epsilon"] = "1/1000"

    made.edit(folder, "release.json", change)


def renamed(folder: Path) -> None:
    """A law of a family that the page does not name."""

    def change(plain: Any) -> None:
        plain["family"] = "other"

    made.edit(folder, "mechanisms/the_count.json", change)


def damaged(folder: Path) -> None:
    path = folder / "data" / "the_count.parquet"
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("change", "head"),
    [
        (None, "small: VERIFIED"),
        (forged, "small: REFUSED"),
        (renamed, "small: NOT PROVED: the_count"),
        (damaged, "(no name): REFUSED"),
    ],
    ids=["sound", "forged", "renamed", "damaged"],
)
def test_a_folder_and_its_zip_get_the_verdict_of_the_command(
    opened: Any, public: Path, tmp_path: Path, change: Any, head: str
) -> None:
    folder = tmp_path / "small"
    shutil.copytree(public, folder)
    if change is not None:
        change(folder)
    assert made.verdict_of(folder).head == head.partition(": ")[2]
    opened.locator("summary", has_text="Who published it").click()
    opened.select_option("#require", "none")
    opened.locator("summary", has_text="Who published it").click()
    opened.evaluate("() => document.getElementById('state').replaceChildren()")
    opened.set_input_files("#folder", folder)
    assert heads(opened) == [head]
    archive = tmp_path / "small.zip"
    archive.write_bytes(zip_of(files_of(folder, "small/")))
    opened.evaluate("() => document.getElementById('state').replaceChildren()")
    opened.set_input_files("#zip", archive)
    assert heads(opened) == [head]


DROP = """
async (bytes) => {
  const given = new DataTransfer();
  given.items.add(new File([new Uint8Array(bytes)], "small.zip"));
  document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: given, bubbles: true}));
}
"""


def test_a_zip_is_dropped(opened: Any, public: Path) -> None:
    # What an earlier test left would look like the verdict on this one.
    opened.evaluate("() => document.getElementById('state').replaceChildren()")
    opened.evaluate(DROP, list(zip_of(files_of(public, "small/"))))
    (head,) = heads(opened)
    assert head.startswith("small: VERIFIED")


def test_the_page_has_no_connection_and_shows_what_it_runs(opened: Any) -> None:
    asked = "() => fetch('page.py').then(() => 'connected', () => 'refused')"
    assert opened.evaluate(asked) == "refused"
    digest = hashlib.sha256(verifier_file(PROJECT)).hexdigest()
    assert digest in opened.inner_text("#version")
