"""Writes ``docs/journey.md``: ``python docs/journey.py FOLDER``, the folder with the LCL tables.

The page is one journey over real tables, from an empty folder to a chart with intervals: the steps
below are run in order, and the page shows what each prints. The pictures are the report's page, if
there is a Chromium, and the chart. A test runs the steps again where the tables are, and compares.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
PROJECT = DOCS.parent
RELEASE = "evening-2013-01-07"
TABLES = ("lcl_halfhourly_2013.parquet", "households_325.parquet")
CHART = f"""\
import release
from matplotlib.figure import Figure

opened = release.open("out/public/{RELEASE}")
figure = Figure(figsize=(9, 3.4), layout="constrained")
for axes, query in zip(figure.subplots(1, 2), opened, strict=True):
    frame = opened[query].to_pandas()
    key = frame.attrs["by"][0]
    frame = frame.sort_values(key)
    axes.vlines(frame[key].astype(str), frame["low"], frame["high"], color="#2b5d8a")
    axes.plot(frame[key].astype(str), frame["answer"], "o", color="#2b5d8a")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(key)
    axes.set_ylabel(frame.attrs["unit"])
    axes.set_title(frame.attrs["title"], loc="left", fontsize=10)
    axes.margins(x=0.1)
    print(frame.to_string(index=False))
    print(frame.attrs["interval"])
figure.savefig("chart.png", dpi=100)
"""


@dataclass(frozen=True)
class Step:
    """A command of the journey, with the Markdown that stands before and after its screen."""

    before: str
    command: str
    status: int = 0
    after: str = ""
    noisy: bool = False
    """Whether the screen shows drawn answers, whose digits differ in every run."""
    first: int = 7
    last: int = 7
    """The first and the last lines of a screen that are shown; the page leaves the middle out."""


STEPS = (
    Step(
        """## The steward

The folder holds two tables: the energy of each home in each half hour of a year, and for each
home a neighbourhood and a social class. `init` writes a first spec from the names and types of
the columns.""",
        "dp-release init lcl_halfhourly_2013.parquet --unit household_id --out first.yaml",
    ),
    Step(
        """The steward makes the choices that `first.yaml` marks, in `evening.yaml`:

```yaml
{spec}```

`check` rehearses the run on the tables. **Its figures are confidential: without noise, and for
the steward alone.** They are shown here because these tables are public research data. In real
use they never leave the steward's machine.""",
        "dp-release check evening.yaml",
        first=40,
        after="""\
One home has the class `U`, which no key names: it is left out of `mean_load`. Whether a class is
published is decided by what is public about it, and never by its number of homes.""",
    ),
    Step(
        """`plan` reads no table, so its figures may be shown to anybody: what each answer costs,
and how accurate it will be.""",
        "dp-release plan evening.yaml",
    ),
    Step(
        "A signing key and a ledger, once. Auditors get the public key by another way.",
        "dp-release ledger key new signing.key",
    ),
    Step(
        "",
        "dp-release ledger init --out out --key signing.key --origin example.org/dp "
        "--scope lcl-2013:6:0 > made",
    ),
    Step("", "sed -n 's/^key *//p' made > curator.pub"),
    Step(
        "`run` draws the noise, charges the ledger and publishes.",
        "dp-release run evening.yaml --out out --key signing.key",
        after="""\
The folder `out/public/{release}` is what leaves. Its `report.html` is for everybody:

![The head of the report: what was asked, and the published answers with their
intervals](journey-report.png)""",
    ),
    Step(
        """## The analyst

The analyst has the public folder alone. Each table opens as a data frame with an interval for
each answer, and this program draws them:

```python
{chart}```""",
        "python chart.py",
        noisy=True,
        first=40,
        after="""\
![Published answers with their intervals: homes by neighbourhood, mean energy by
class](journey-chart.png)

The answers of another run differ: the noise is drawn once and never again. The line below each
table says what its intervals are ([Use the answers](answers.md)).""",
    ),
    Step(
        """## The auditor

The auditor has the public folder, the ledger and the public key, and proves the release again.""",
        f"dp-release verify out/public/{RELEASE} --ledger out/ledger --trust curator.pub",
        first=11,
        last=1,
    ),
    Step(
        """The verifier is a small package that needs Python alone, was written from the
[page of the format](design/format.md), and imports nothing of the program that publishes. An
auditor runs it without that program.""",
        f"python -m dp_release_verify out/public/{RELEASE} --ledger out/ledger --trust curator.pub",
        first=40,
    ),
    Step(
        "A changed file does not get through.",
        f"echo >> out/public/{RELEASE}/report.html",
    ),
    Step(
        "",
        f"dp-release verify out/public/{RELEASE} --ledger out/ledger --trust curator.pub",
        status=1,
    ),
)

HEAD = """# From two tables to a chart

<!-- Generated: python docs/journey.py FOLDER -->

This page is one journey on real tables, from an empty folder to a chart with intervals: a
**steward** publishes, an **analyst** reads, an **auditor** proves. Every screen is what the
command printed; `…` stands for what is left out: lines, a key, hashes. The tables are the
half-hourly readings of 325 homes in 2013 from the Low Carbon London project (UK Power Networks,
London Datastore, CC BY). The neighbourhoods are constructed."""


def journey(tables: Path, folder: Path) -> list[str]:
    """Runs all steps in an empty folder; gives what each printed.

    Args:
        tables: The folder that has the tables.
        folder: An empty folder, for all that is written.

    Raises:
        RuntimeError: A step ended with another status than it has to.
    """
    for name in TABLES:
        shutil.copyfile(tables / name, folder / name)
    (folder / "chart.py").write_text(CHART, "utf-8")
    shutil.copyfile(DOCS / "journey.yaml", folder / "evening.yaml")
    return [_printed(step, folder) for step in STEPS]


def _printed(step: Step, folder: Path) -> str:
    # Of this interpreter, whatever is installed beside it.
    python = shlex.quote(sys.executable)
    command = re.sub(r"^dp-release ", f"{python} -m release ", step.command)
    done = subprocess.run(  # noqa: S603 - the commands of this file
        ["/bin/sh", "-c", re.sub(r"^python ", f"{python} ", command)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != step.status:
        raise RuntimeError(f"{step.command}: exit status {done.returncode}: {done.stderr}")
    # A key and a hash of this run alone.
    text = re.sub(r"[0-9a-f]{64}|(?<=dp\+)\S+", "…", done.stdout + done.stderr)
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


def page(screens: list[str]) -> str:
    """The page, from what each step printed."""
    parts = [HEAD]
    for step, screen in zip(STEPS, screens, strict=True):
        remark = f" # exit status {step.status}" if step.status else ""
        block = f"```console\n$ {step.command}{remark}\n{_shortened(step, screen)}```"
        parts += [text for text in (_filled(step.before), block, _filled(step.after)) if text]
    return "\n\n".join(parts) + "\n"


def _filled(text: str) -> str:
    """The text with the spec, the program and the release's name in their places."""
    spec = (DOCS / "journey.yaml").read_text("utf-8")
    for name, words in {"spec": spec, "chart": CHART, "release": RELEASE}.items():
        text = text.replace(f"{{{name}}}", words)
    return text


def _shortened(step: Step, screen: str) -> str:
    lines = screen.splitlines(keepends=True)
    if len(lines) <= step.first + step.last:
        return screen
    return "".join([*lines[: step.first], "…\n", *lines[-step.last :]])


def without_draws(text: str) -> str:
    """The page without what a draw decides: digits and spaces of the analyst's tables."""
    noisy = next(step for step in STEPS if step.noisy)
    before, command, rest = text.partition(f"$ {noisy.command}\n")
    screen, end, after = rest.partition("```")
    return before + command + re.sub(r"[\d. ]+", " ", screen) + end + after


def photograph(report: Path, picture: Path) -> None:
    """The head of a report as a picture, where there is a Chromium; else the old picture stays."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1000,760"]
    shot = f"--screenshot={picture}"
    command = [chromium, *options, shot, report.as_uri()]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a page of our own


def main() -> None:
    """Writes the page and its pictures."""
    if len(sys.argv) != 2 or not all((Path(sys.argv[1]) / name).is_file() for name in TABLES):
        sys.exit(f"usage: python docs/journey.py FOLDER, a folder with {' and '.join(TABLES)}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        text = page(journey(Path(sys.argv[1]), folder))
        shutil.copyfile(folder / "chart.png", DOCS / "journey-chart.png")
        report = folder / "out" / "public" / RELEASE / "report.html"
        photograph(report, DOCS / "journey-report.png")
    (DOCS / "journey.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
