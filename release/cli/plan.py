"""``dp-release init`` and ``plan``: a first spec, and what it costs before a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli import options as opt
from release.cli import plan_output as output
from release.cli.console import echo, is_verbose, print_json, print_records, working
from release.errors import ReleaseError, SpecError, StorageError
from release.exact.numbers import format_exact, parse_exact

if TYPE_CHECKING:
    from release.planning.plan import Plan
    from release.spec.load import SpecFile

EpsilonFor = Annotated[
    str | None, typer.Option(help='The least ε for an expected loss, such as "error_rate <= 0.2".')
]
DeltaFor = Annotated[
    str | None, typer.Option(help='The least δ for an expected loss, such as "error_rate <= 0.2".')
]
Season = Annotated[
    int | None, typer.Option(help="What so many releases like this one amount to together.")
]
DropOne = Annotated[
    bool,
    typer.Option(
        "--drop-one",
        help="Also for large tabulations: what the other tables gain where one is left out.",
    ),
]
ProfileFile = Annotated[
    Path | None,
    typer.Option(
        "--profile",
        help="The file to write the privacy profile of the whole release to, for a slot of a "
        "plan: dp-release ledger init --planned NAME=TIMESxSLOT@FILE.",
    ),
]
TablePath = Annotated[Path, typer.Argument(help="A table: a Parquet or CSV file.")]
UnitColumn = Annotated[str | None, typer.Option(help="The column that names the privacy unit.")]
AreasFile = Annotated[
    Path | None,
    typer.Option(help="A CSV file of areas: a column for each level, a line for each lowest area."),
]
KeyFiles = Annotated[
    list[str] | None,
    typer.Option(
        help="With --hierarchy: COLUMN=KEYS.csv, a column of the table and the file of its keys."
    ),
]
LinesBefore = Annotated[
    int, typer.Option(min=0, max=1000, help="Lines that stand before the header of a CSV file.")
]
NewSpec = Annotated[Path | None, typer.Option("--out", help="The spec to write, a new file.")]


def plan(  # noqa: PLR0913 - one parameter for each option
    spec: opt.SpecPath,
    epsilon_for: EpsilonFor = None,
    delta_for: DeltaFor = None,
    season: Season = None,
    drop_one: DropOne = False,
    jobs: opt.Jobs = None,
    ledger: opt.LedgerPath = None,
    html: opt.Html = None,
    profile: ProfileFile = None,
    period: opt.PeriodOption = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show accuracy and charge of a spec before anything is spent; reads no confidential data.

    With -v, and on the page of --html, beside other mechanisms and other rules of composition.

    Example: dp-release plan data/persons.yaml --html plan.html
    """
    from release.job import Options
    from release.noise.cache import default_cache
    from release.noise.processes import InTurn
    from release.planning.recommend import make_advised_plan
    from release.queries.read import read_spec
    from release.street import refusal_of

    is_search = epsilon_for is not None or delta_for is not None
    plain_only = (html, ledger, season, profile, drop_one or None)
    if is_search and any(option is not None for option in plain_only):
        raise SpecError(
            "--html",
            "--html, --ledger, --profile, --season and --drop-one are for plain plans; leave them "
            "out",
        )
    if jobs is not None and not drop_one:
        raise SpecError("--jobs", "is for the searches of --drop-one; give it too")
    spec_file, solvers = read_spec(spec, opt.named_period(period)), output.cached_solvers()
    if is_search:
        _targets(spec_file, epsilon_for, delta_for, as_json)
        return
    with working("planning"), opt.fan_out(jobs) as pool:
        searches = (pool or InTurn()) if drop_one else None
        planned = make_advised_plan(
            spec_file,
            solvers,
            default_cache(),
            season,
            searches,
            is_compared=is_verbose() or html is not None,
        )
    remaining = None if ledger is None else _remaining(spec_file, ledger)
    if profile is not None:
        _write_profile(profile, planned)
    refusal = None
    if planned.unseen is not None:
        refusal = refusal_of(planned.unseen, Options(cache=default_cache()), ledger)
    _show(spec_file, planned, remaining, refusal, html, as_json=as_json)
    if refusal is not None:
        # As a run would end: its line, and its status.
        raise refusal


def _show(
    spec_file: SpecFile,
    planned: Plan,
    remaining: output.Remaining | None,
    refusal: ReleaseError | None,
    html: Path | None,
    *,
    as_json: bool,
) -> None:
    # The page comes first: where it cannot be written, nothing else is printed.
    if html is not None:
        from release.planning.page import plan_html

        output.write_page(html, plan_html(spec_file, planned, remaining))
    if as_json:
        print_json(output.plain_plan(spec_file, planned, remaining))
        return
    output.print_plan(spec_file, planned, remaining, refusal)
    if html is not None:
        echo(f"page  {html}")


def _write_profile(path: Path, planned: Plan) -> None:
    found = planned.profile()
    values = list(map(str, found.values))
    output.write_page(path, json.dumps({"step": format_exact(found.step), "values": values}))


def init(
    table: TablePath,
    unit: UnitColumn = None,
    hierarchy: AreasFile = None,
    attribute: KeyFiles = None,
    skip: LinesBefore = 0,
    out: NewSpec = None,
) -> None:
    """Write a starting spec for a table from its schema: names and types only, no value is read.

    With --hierarchy for tables that add up over areas, whose areas and categories are in public
    files.

    Example: dp-release init data/persons.parquet --out persons.yaml
    """
    from release.planning.scaffold import starting_spec
    from release.tabulations.planning.scaffold import starting_tabulation

    if attribute and hierarchy is None:
        raise SpecError("--attribute", "is for tables that add up; give --hierarchy too")
    folder = None if out is None else out.parent
    if hierarchy is None:
        text = starting_spec(table, unit, folder, skip)
    else:
        text = starting_tabulation(table, hierarchy, attribute or [], unit, folder)
    if out is None:
        echo(text, nl=False)
        return
    try:
        # Mode "x" creates the file in one step, so that no spec is ever overwritten.
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SpecError("--out", "is there already; name another file") from None
    except OSError as error:
        raise StorageError(f"--out: cannot be written: {error.strerror}") from error
    echo(f"wrote  {out}; every choice to make is marked CHOOSE")


def _remaining(spec_file: SpecFile, ledger: Path) -> output.Remaining | None:
    from release.budget.ledger import read_ledger

    state = read_ledger(ledger).state
    scope = spec_file.spec.budget.scope
    if scope not in state.caps:
        raise SpecError("budget.scope", f"{scope!r} is no scope of the ledger")
    account = state.accounts[scope]
    cap, spent = account.cap, account.spent()
    if cap.rule != "basic":
        # No ε and δ can be taken off: what is left is slots, or what a filter lets through.
        echo(f"scope {scope} {account.summary()}; left: {account.left()}", err=True)
        return None
    # Below 0 where a policy has lowered the cap below what was spent.
    return parse_exact(cap.epsilon) - spent.epsilon, parse_exact(cap.delta) - spent.delta


def _targets(
    spec_file: SpecFile, epsilon_text: str | None, delta_text: str | None, as_json: bool
) -> None:
    from release.planning import targets
    from release.spec.losses import parse_target

    plain: list[dict[str, Any]] = []
    for name, text, search in (
        ("epsilon", epsilon_text, targets.epsilon_for),
        ("delta", delta_text, targets.delta_for),
    ):
        if text is None:
            continue
        target = parse_target(f"--{name}-for", text)
        with working(f"searching for the least {name}"):
            rows = list(map(output.plain_least, search(spec_file, target, output.cached_solvers())))
        plain += [{"for": text, **row} for row in rows]
        if not as_json:
            echo(f"the least {name} for {text}")
            columns = ["query", "assumed", "definition", "ε", "δ", "loss", "charge ε"]
            print_records(columns, rows)
    if as_json:
        print_json({"least": plain})
