"""One walk through the public verbs: plan, check, run, verify, as a curator types them.

Everything happens in this process, because a start of the command takes most of a second.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import yaml

import release
from release.cli.main import main
from tests.street.specs import RELEASE, SCOPE, Case, Plain, cells_touched, exact, with_budget

UNEXPECTED = 4
# What a process may set that outlives a case.
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@dataclass(frozen=True)
class Said:
    """What a command did.

    Attributes:
        verb: its name.
        status: its exit status.
        out: what it printed.
        err: what it printed on standard error.
        seconds: of the processor.
    """

    verb: str
    status: int
    out: str
    err: str
    seconds: float

    @property
    def reason(self) -> str:
        """The line of a refusal; empty where there is none."""
        lines = [line.strip() for line in (self.err + "\n" + self.out).splitlines()]
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return errors[0] if errors else ""

    @property
    def words(self) -> str:
        """All that was printed, with the refusals of JSON as text."""
        refusals = [str(each) for each in self.json.get("refusals", ())]
        return "\n".join([self.out, self.err, *refusals])

    @property
    def json(self) -> Plain:
        """What it printed with --json."""
        try:
            return dict(json.loads(self.out))
        except ValueError:
            return {}


@dataclass(frozen=True)
class Walk:
    """What a case came to.

    Attributes:
        case: with the budget that it had.
        folder: its files.
        said: what each verb did, by name.
    """

    case: Case
    folder: Path
    said: dict[str, Said] = field(default_factory=dict)

    @property
    def public(self) -> Path:
        """The folder of the release."""
        return self.folder / "out" / "public" / RELEASE

    @property
    def is_published(self) -> bool:
        """Whether there is a release."""
        return (self.public / "release.json").exists()


def processor() -> float:
    """Seconds of the processor, of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@contextlib.contextmanager
def as_found(cache: Path) -> Iterator[None]:
    """Leave the signals and the environment as they were; keep mechanisms in the case's folder."""
    handlers = [(number, signal.getsignal(number)) for number in SIGNALS]
    before = dict(os.environ)
    os.environ["DP_RELEASE_CACHE"] = str(cache)
    for name in ("DP_RELEASE_KEY", "DP_RELEASE_LOG", "DP_RELEASE_AUDIT", "DP_RELEASE_NOTIFY"):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        for number, handler in handlers:
            signal.signal(number, handler)


def told(verb: str, action: Callable[[], int]) -> Said:
    """Do it, and keep what was printed, the status and the seconds."""
    out, err = io.StringIO(), io.StringIO()
    start = processor()
    printed = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with printed[0], printed[1], warnings.catch_warnings():
        # As the command has them: a warning is a line on standard error.
        warnings.simplefilter("default")
        try:
            status = action()
        except Exception:
            status = UNEXPECTED
            err.write(traceback.format_exc())
    return Said(verb, status, out.getvalue(), err.getvalue(), processor() - start)


def command(*words: str | Path) -> Said:
    """The command line, in this process."""

    def typed() -> int:
        try:
            main([str(word) for word in words])
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    return told(str(words[0]), typed)


def with_frames(case: Case, spec: Path, out: Path, key: Path | None) -> Said:
    """The run of Python, with frames in place of files."""
    tables = {"visits": case.street.main.frame()}
    if case.street.facts is not None and "people" in case.spec["tables"]:
        tables["people"] = case.street.facts.frame()

    def called() -> int:
        try:
            release.run(spec, out, tables=tables, key=key)
        except release.ReleaseError as error:
            print(f"error: {error}", file=sys.stderr)  # noqa: T201 - as the command does
            return error.exit_status
        return 0

    return told("run", called)


class Written(yaml.SafeDumper):
    """YAML as people write it: a list that stands twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        """Name no list."""
        return True


def write(case: Case, folder: Path) -> Path:
    """Write the tables, the public files and the spec; the path of the spec."""
    case.street.main.write(folder)
    if case.street.facts is not None:
        case.street.facts.write(folder)
    for name, text in case.files.items():
        (folder / name).write_text(text, "utf-8")
    path = folder / "spec.yaml"
    text = yaml.dump(case.spec, Dumper=Written, sort_keys=False, allow_unicode=True)
    path.write_text(text, "utf-8")
    return path


def budgeted(case: Case, plan: Said) -> Case:
    """The case with a budget that is exactly what the plan charges, or a part of it."""
    found = plan.json
    if plan.status or "epsilon" not in found:
        return case
    epsilon, delta = str(found["epsilon"]), str(found["delta"])
    if case.budget == "exact":
        return with_budget(case, epsilon, delta)
    return with_budget(case, exact(float(Fraction(epsilon)) * 0.7), delta)


def new_ledger(case: Case, folder: Path) -> tuple[Path, list[Said]]:
    """A key and a ledger whose cap is a multiple of the budget."""
    key = folder / "signing.key"
    budget = case.spec["budget"]
    epsilon = exact(float(Fraction(budget["epsilon"]) * Fraction(case.ledger or "1")), 6)
    cap = f"{SCOPE}:{budget['epsilon'] if case.ledger == '1' else epsilon}:{budget['delta']}"
    said = [
        command("ledger", "key", "new", key),
        command(
            *("ledger", "init", "--out", folder / "out", "--key", key),
            *("--origin", "example.org/street", "--scope", cap),
        ),
    ]
    return key, said


def by_hand(case: Case, folder: Path, plan: Said) -> Said:
    """The plan of what a curator writes without shares: the same parts of the budget, added up."""
    planned = plan.json
    rows = [*planned.get("queries", ()), *planned.get("on_statistic", ())]
    charges = {row["name"]: Fraction(row["charge"]["epsilon"]) for row in rows}
    shared = [wish.name for wish in case.wishes if "share" in wish.query]
    together = sum((charges.get(name, Fraction(0)) for name in shared), Fraction(0))
    if plan.status or not together:
        return plan
    paid = sum((charges[name] for name in charges if name not in shared), Fraction(0))
    left = Fraction(case.spec["budget"]["epsilon"]) - paid
    queries = []
    for wish in case.wishes:
        query = {name: value for name, value in wish.query.items() if name != "share"}
        if wish.name in shared:
            part = left * charges[wish.name] / together / cells_touched(case, wish.query)
            query["guarantee"] = {"definition": "pure", "epsilon": exact(float(part), 6)}
        queries.append(query)
    budget = case.spec["budget"] | {"epsilon": "100000", "delta": "0.5"}
    path = folder / "by-hand.yaml"
    text = yaml.dump(case.spec | {"queries": queries, "budget": budget}, Dumper=Written)
    path.write_text(text, "utf-8")
    return command("plan", path, "--json")


def walk(case: Case, folder: Path) -> Walk:
    """All verbs, in the order in which a careful curator uses them."""
    with as_found(folder / "laws"):
        return _walk(case, folder)


def _walk(case: Case, folder: Path) -> Walk:
    spec = write(case, folder)
    said = {}
    if case.budget in ("exact", "small"):
        said["first plan"] = command("plan", spec, "--json")
        case = budgeted(case, said["first plan"])
        write(case, folder)
    out, key = folder / "out", None
    signed: list[str | Path] = []
    if case.ledger is not None:
        key, made = new_ledger(case, folder)
        said |= {f"ledger {number}": each for number, each in enumerate(made)}
        signed = ["--key", key]
    paid: list[str | Path] = [] if key is None else ["--ledger", out / "ledger"]
    has_shares = any("share" in wish.query for wish in case.wishes)
    # The figures of shares stand beside those of adding up, where all is compared.
    said["plan"] = command("plan", spec, "--json", *paid, *(["-v"] if has_shares else []))
    if has_shares:
        said["plan text"] = command("plan", spec)
        said["by hand"] = by_hand(case, folder, said["plan"])
    into: list[str | Path] = [] if key is None else ["--into", out, *signed]
    said["check"] = command("check", spec, *into)
    if case.street.main.form == "frame":
        said["run"] = with_frames(case, spec, out, key)
    else:
        said["run"] = command("run", spec, "--out", out, *signed)
    if key is not None:
        said["show"] = command("ledger", "show", "--out", out, "--json")
    walked = Walk(case, folder, said)
    if walked.is_published:
        auditor = out / "auditor" / RELEASE
        opened: list[str | Path] = ["--auditor", auditor] if auditor.exists() else []
        said["verify"] = command("verify", walked.public, "--require", "none", *opened, *paid)
    return walked
