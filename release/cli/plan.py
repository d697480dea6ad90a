"""``dp-release plan``, ``compare`` and ``init``: everything that is done before a release."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli import options as opt
from release.cli import plan_output as output
from release.cli.console import print_json, print_table, working
from release.errors import SpecError, StorageError
from release.exact.numbers import format_exact, parse_exact

if TYPE_CHECKING:
    from release.noise.design import Asked
    from release.noise.families import Solvers
    from release.planning.compare import Losses
    from release.spec.load import SpecFile
    from release.spec.model import Query

EpsilonFor = Annotated[
    str | None, typer.Option(help='The least ε for a loss, such as "error_rate <= 0.2".')
]
DeltaFor = Annotated[
    str | None, typer.Option(help='The least δ for a loss, such as "error_rate <= 0.2".')
]
Split = Annotated[bool, typer.Option("--split", help="Split the budget for the least total loss.")]
Weights = Annotated[
    list[str] | None,
    typer.Option(help="With --split: NAME=NUMBER, how much the loss of a query counts."),
]
QueryName = Annotated[str, typer.Argument(help="The name of a query of the spec.")]
TablePath = Annotated[Path, typer.Argument(help="A table: a Parquet or CSV file.")]
UnitColumn = Annotated[str | None, typer.Option(help="The column that names the privacy unit.")]
NewSpec = Annotated[
    Path | None, typer.Option("--out", help="The spec to write; the file must not exist yet.")
]


def plan(  # noqa: PLR0913 - one parameter for each option
    spec: opt.SpecPath,
    epsilon_for: EpsilonFor = None,
    delta_for: DeltaFor = None,
    split: Split = False,
    weight: Weights = None,
    ledger: opt.LedgerPath = None,
    html: opt.Html = None,
    period: opt.PeriodOption = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show accuracy and charge of a spec before anything is spent; reads no confidential data.

    Example: dp-release plan data/persons.yaml --html plan.html
    """
    from release.planning.plan import make_plan
    from release.queries.read import read_spec

    questions = [epsilon_for is not None, delta_for is not None, split]
    if sum(questions) > 1:
        raise SpecError(
            "--split", "ask one question at a time: --epsilon-for, --delta-for, --split"
        )
    if any(questions) and (html is not None or ledger is not None):
        raise SpecError("--html", "--html and --ledger are for plain plans; leave them out")
    if weight and not split:
        raise SpecError("--weight", "is for a split of the budget; give --split too")
    spec_file, solvers = read_spec(spec, opt.named_period(period)), _solvers()
    if epsilon_for is not None or delta_for is not None:
        _targets(spec_file, epsilon_for, delta_for, as_json)
        return
    if split:
        _split(spec_file, weight or [], as_json)
        return
    with working("planning"):
        planned = make_plan(spec_file, solvers)
    remaining = None if ledger is None else _remaining(spec_file, ledger)
    # The page comes first: where it cannot be written, nothing else is printed.
    if html is not None:
        from release.planning.page import plan_html

        _write(html, plan_html(spec_file, planned, remaining))
    if as_json:
        print_json(output.plain_plan(spec_file, planned, remaining))
        return
    output.print_plan(spec_file, planned, remaining)
    if html is not None:
        typer.echo(f"page  {html}")


def compare(
    spec: opt.SpecPath,
    query: QueryName,
    html: opt.Html = None,
    period: opt.PeriodOption = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare all mechanisms on one query: the loss of each at several ε; reads no data.

    Example: dp-release compare data/persons.yaml minors_by_tract --html compare.html
    """
    from release.planning.compare import losses_by_epsilon
    from release.planning.plan import possible
    from release.queries.read import read_spec

    spec_file, solvers = read_spec(spec, opt.named_period(period)), _solvers()
    queries = {released.name: released for released in spec_file.spec.released}
    if query not in queries:
        names = ", ".join(queries)
        raise SpecError("QUERY", f"{query!r} is not in the spec; write one of {names}")
    # For an empirical sensitivity the last is the most that the declaration allows.
    *_, (_, request) = possible(spec_file, queries[query])
    with working("comparing"):
        families = sorted(losses_by_epsilon(request, solvers), key=_least_loss)
    if html is not None:
        _write(html, _comparison_page(queries[query], request, families, solvers))
    if as_json:
        plain = list(map(_plain_losses, families))
        print_json({"query": query, "loss": request.loss.name, "mechanisms": plain})
        return
    loss, guarantee = request.loss.name.replace("_", " "), request.guarantee
    condition = f"{guarantee.definition.value} δ = {format_exact(guarantee.delta)}"
    typer.echo(f"{query}: {loss} loss by ε, with {condition}")
    columns = [f"ε = {format_exact(epsilon)}" for epsilon in families[0].epsilons]
    print_table(["mechanism", *columns], list(map(_losses_row, families)))
    if html is not None:
        typer.echo(f"page  {html}")


def init(table: TablePath, unit: UnitColumn = None, out: NewSpec = None) -> None:
    """Write a starting spec for a table from its schema: names and types only, no value is read.

    Example: dp-release init data/persons.parquet --out persons.yaml
    """
    from release.planning.scaffold import starting_spec

    text = starting_spec(table, unit, None if out is None else out.parent)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        # Mode "x" creates the file in one step, so that no spec is ever overwritten.
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SpecError("--out", "is there already; name another file") from None
    except OSError as error:
        raise StorageError(f"--out: cannot be written: {error.strerror}") from error
    typer.echo(f"wrote  {out}; every choice to make is marked CHOOSE")


def _solvers() -> Solvers:
    from release.noise.cache import default_cache
    from release.noise.design import GAP
    from release.noise.stage import solvers_of

    # Nothing in a plan depends on a table, so every mechanism may go into the cache.
    return solvers_of(default_cache(), GAP)


def _remaining(spec_file: SpecFile, ledger: Path) -> output.Remaining:
    """What is left of the lifetime caps of the scope, in ε and δ."""
    from release.budget.ledger import read_ledger

    state = read_ledger(ledger).state
    scope = spec_file.spec.budget.scope
    if scope not in state.caps:
        raise SpecError("budget.scope", f"{scope!r} is no scope of the ledger")
    cap, spent = state.caps[scope], state.spent(scope)
    # Below 0 where a policy has lowered the cap below what was spent.
    return parse_exact(cap.epsilon) - spent.epsilon, parse_exact(cap.delta) - spent.delta


def _targets(
    spec_file: SpecFile, epsilon_text: str | None, delta_text: str | None, as_json: bool
) -> None:
    from release.planning import plan as planning

    plain: list[dict[str, Any]] = []
    for name, text, search in (
        ("epsilon", epsilon_text, planning.epsilon_for),
        ("delta", delta_text, planning.delta_for),
    ):
        if text is None:
            continue
        target = planning.parse_target(f"--{name}-for", text)
        with working(f"searching for the least {name}"):
            rows = list(map(output.plain_least, search(spec_file, target, _solvers())))
        plain += [{"for": text, **row} for row in rows]
        if not as_json:
            typer.echo(f"the least {name} for {text}")
            columns = ["query", "assumed", "definition", "ε", "δ", "loss", "charge ε"]
            print_table(columns, [list(row.values()) for row in rows])
    if as_json:
        print_json({"least": plain})


def _split(spec_file: SpecFile, weights: Sequence[str], as_json: bool) -> None:
    from release.planning.plan import split_budget

    by_query: dict[str, Fraction] = {}
    for text in weights:
        name, _, number = text.partition("=")
        if name in by_query:
            raise SpecError("--weight", "names a query twice; keep one")
        try:
            by_query[name] = parse_exact(number)
        except ValueError as error:
            raise SpecError("--weight", str(error)) from None
    with working("splitting the budget"):
        shares = split_budget(spec_file, by_query, _solvers())
    rows = list(map(output.plain_share, shares))
    if as_json:
        print_json({"split": rows})
        return
    columns = ["query", "weight", "ε of a cell", "charge ε", "loss", "loss as written"]
    print_table(columns, [list(row.values()) for row in rows])
    total = as_written = Fraction(0)
    for share in shares:
        total += share.weight * share.objective
        as_written += share.weight * share.now
    cap = format_exact(spec_file.spec.budget.epsilon)
    # A squared error and an error rate have no common unit: only the curator can compare them.
    if len({str(share.query.loss) for share in shares}) > 1:
        typer.echo("the sum adds different loss functions; --weight says how much each counts")
    total_text, text_as_written = output.figure(total), output.figure(as_written)
    typer.echo(f"weighted loss {total_text} within ε = {cap}; as written {text_as_written}")


def _least_loss(family: Losses) -> float:
    """The least loss of a family; infinite, so that it is listed last, where it fails at each ε."""
    return min((float(loss) for loss in family.losses if loss is not None), default=float("inf"))


def _losses_row(family: Losses) -> list[str]:
    figures = ["-" if loss is None else output.figure(loss) for loss in family.losses]
    return [family.mechanism, *figures]


def _plain_losses(family: Losses) -> dict[str, Any]:
    losses = {}
    for epsilon, loss in zip(family.epsilons, family.losses, strict=True):
        # Keys are exact text: as a float, 1/3 would name another ε than the one compared.
        losses[format_exact(epsilon)] = None if loss is None else float(loss)
    return {"mechanism": family.mechanism, "losses": losses}


def _comparison_page(
    query: Query, request: Asked, families: Sequence[Losses], solvers: Solvers
) -> str:
    from release.noise.select import compare as compare_families
    from release.planning.compare import curves_at_equal_loss, side_by_side
    from release.planning.page import compare_html

    with working("drawing"):
        at_claimed, _ = compare_families(request, solvers)
        designs = {}
        # In the order of the table, so that the colors of the pictures follow it too.
        for family in families:
            if family.mechanism in at_claimed:
                designs[family.mechanism] = at_claimed[family.mechanism]
        curves = tuple(curves_at_equal_loss(request, designs, solvers))
        return compare_html(query, request, families, curves, side_by_side(request, designs))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--html: cannot be written: {error.strerror}") from error
