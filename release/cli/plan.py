"""``dp-release plan``, ``compare`` and ``init``: everything that is done before a release."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.errors import SpecError, StorageError
from release.exact.numbers import format_exact, format_up, parse_exact
from release.spec.periods import Period, parse_period

if TYPE_CHECKING:
    from release.budget.ledger import Replayed
    from release.noise.design import Asked
    from release.noise.families import Solvers
    from release.planning.plan import Candidate, Least, Plan, QueryPlan, Share
    from release.spec.load import SpecFile

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write a page with pictures there.")]
SpecPath = Annotated[Path, typer.Argument(help="The release spec, a YAML file.")]
PeriodOption = Annotated[
    str | None,
    typer.Option("--period", help="The period of a spec template, such as 2024-01-05 or 2024-01."),
]


def named_period(text: str | None) -> Period | None:
    """The period that ``--period`` names.

    Raises:
        SpecError: it names none.
    """
    return None if text is None else parse_period(text)


def plan(  # noqa: PLR0913 - one for each question that a plan answers
    spec: SpecPath,
    epsilon_for: Annotated[
        str | None,
        typer.Option(help='The least ε for a loss, such as "error_rate <= 0.2".'),
    ] = None,
    delta_for: Annotated[
        str | None, typer.Option(help='The least δ for a loss, such as "error_rate <= 0.2".')
    ] = None,
    split: Annotated[
        bool, typer.Option("--split", help="Split the budget so that the total loss is least.")
    ] = False,
    weight: Annotated[
        list[str] | None,
        typer.Option(help="With --split: NAME=NUMBER, how much a query's loss counts."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="The ledger that will pay, to see what is left.")
    ] = None,
    html: Html = None,
    period: PeriodOption = None,
    as_json: AsJson = False,
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
        raise SpecError("--html", "pages, and --ledger, are for plain plans; leave them out")
    if weight and not split:
        raise SpecError("--weight", "is for a split of the budget; give --split too")
    spec_file, solvers = read_spec(spec, named_period(period)), _solvers()
    if epsilon_for is not None or delta_for is not None:
        _targets(spec_file, epsilon_for, delta_for, as_json)
        return
    if split:
        _split(spec_file, weight or [], as_json)
        return
    with _working("planning"):
        made = make_plan(spec_file, solvers)
    left = None if ledger is None else _left(spec_file, ledger)
    if html is not None:
        from release.planning.page import plan_html

        _write(html, plan_html(spec_file, made, left))
    if as_json:
        _print_json(_plain_plan(spec_file, made, left))
        return
    _print_plan(spec_file, made, left)
    if html is not None:
        typer.echo(f"page  {html}")


def compare(
    spec: SpecPath,
    query: Annotated[str, typer.Argument(help="The name of a query of the spec.")],
    html: Html = None,
    period: PeriodOption = None,
    as_json: AsJson = False,
) -> None:
    """Compare all mechanisms on one query: what each loses at several ε; reads no data.

    Example: dp-release compare data/persons.yaml minors_by_tract --html compare.html
    """
    from release.noise.select import compare as compare_families
    from release.planning.compare import curves_at_equal_loss, losses_by_epsilon, side_by_side
    from release.planning.plan import possible
    from release.queries.read import read_spec

    spec_file, solvers = read_spec(spec, named_period(period)), _solvers()
    named = {one.name: one for one in spec_file.spec.released}
    if query not in named:
        raise SpecError("QUERY", f"{query!r} is none; write one of {', '.join(named)}")
    # Where differences are seen in the table, the most that the declaration allows.
    *_, (_, asked) = possible(spec_file, named[query])
    with _working("comparing"):
        found = losses_by_epsilon(asked, solvers)
    order = sorted(found, key=lambda one: _last_loss(one.losses))
    if html is not None:
        from release.planning.page import compare_html

        with _working("drawing"):
            there, _ = compare_families(asked, solvers)
            there = {one.mechanism: there[one.mechanism] for one in order if one.mechanism in there}
            kept = tuple(curves_at_equal_loss(asked, there, solvers))
            page = compare_html(named[query], asked, order, kept, side_by_side(asked, there))
        _write(html, page)
    if as_json:
        _print_json(
            {
                "query": query,
                "loss": asked.loss.name,
                "mechanisms": [
                    {
                        "mechanism": one.mechanism,
                        "losses": {
                            format_exact(epsilon): None if loss is None else float(loss)
                            for epsilon, loss in zip(one.epsilons, one.losses, strict=True)
                        },
                    }
                    for one in order
                ],
            }
        )
        return
    rows = [
        [one.mechanism, *("-" if loss is None else _short(loss) for loss in one.losses)]
        for one in order
    ]
    typer.echo(f"{query}: {asked.loss.name.replace('_', ' ')} loss by ε, with {_promise(asked)}")
    print_table(["mechanism", *(f"ε = {format_exact(e)}" for e in order[0].epsilons)], rows)
    if html is not None:
        typer.echo(f"page  {html}")


def init(
    table: Annotated[Path, typer.Argument(help="A table: a Parquet or CSV file.")],
    unit: Annotated[
        str | None, typer.Option(help="The column that names the privacy unit.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The spec to write; it must not be there yet.")
    ] = None,
) -> None:
    """Write a starting spec for a table from its schema: names and types only, no value is read.

    Example: dp-release init data/persons.parquet --out persons.yaml
    """
    from release.planning.scaffold import starting_spec

    text = starting_spec(table, unit, None if out is None else out.parent)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SpecError("--out", "is there already; name another file") from None
    except OSError as error:
        raise StorageError(f"--out: cannot be written: {error.strerror}") from error
    typer.echo(f"wrote  {out}; every choice to make is marked CHOOSE")


def _promise(asked: Asked) -> str:
    return f"{asked.guarantee.definition.value} δ = {format_exact(asked.guarantee.delta)}"


def _last_loss(losses: Sequence[Fraction | None]) -> float:
    return min((float(loss) for loss in losses if loss is not None), default=float("inf"))


def _solvers() -> Solvers:
    from release.noise.cache import default_cache
    from release.noise.design import GAP
    from release.noise.stage import solvers_of

    # A plan is made of public things only, so all its laws may be kept.
    return solvers_of(default_cache(), GAP)


@contextmanager
def _working(what: str) -> Iterator[None]:
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False)
    if console.is_terminal:
        with console.status(f"{what} ..."):
            yield
    else:
        console.print(f"{what} ...")
        yield


def _left(spec_file: SpecFile, ledger: Path) -> tuple[Fraction, Fraction]:
    """What of the scope is left in ε and δ."""
    from release.budget.ledger import read_ledger

    found: Replayed = read_ledger(ledger)
    scope = spec_file.spec.budget.scope
    if scope not in found.state.caps:
        raise SpecError("budget.scope", f"{scope!r} is no scope of the ledger")
    cap, spent = found.state.caps[scope], found.state.spent(scope)
    return parse_exact(cap.epsilon) - spent.epsilon, parse_exact(cap.delta) - spent.delta


_PLAN_COLUMNS = [
    "query",
    "answers",
    "sensitivity",
    "mechanism",
    "exact",
    "mean error",
    "at lowest",
    "at highest",
    "95 in 100",
    "loss",
    "charge ε",
    "charge δ",
]


def _print_plan(spec_file: SpecFile, made: Plan, left: tuple[Fraction, Fraction] | None) -> None:
    rows = [_row(one, candidate) for one in made.queries for candidate in (one.chosen, *one.others)]
    print_table(_PLAN_COLUMNS, rows)
    epsilon, delta = format_exact(made.epsilon), format_exact(made.delta)
    caps = format_exact(made.cap_epsilon), format_exact(made.cap_delta)
    typer.echo(f"charged together: ε = {epsilon} of {caps[0]}, δ = {delta} of {caps[1]}")
    if made.is_over:
        typer.echo("a run would be refused: over the budget of the spec")
    for told in made.refusals:
        typer.echo(f"a run would be refused: {told}")
    if left is not None:
        scope = spec_file.spec.budget.scope
        typer.echo(
            f"left in {scope}: ε = {format_exact(left[0])}, δ = {format_exact(left[1])}; after "
            f"this ε = {_signed(left[0] - made.epsilon)}, δ = {_signed(left[1] - made.delta)}"
        )
    if any(one.assumed for one in made.queries):
        typer.echo(
            "empirical differences are not known before the table is read: shown are one step and "
            "the most"
        )


def _signed(value: Fraction) -> str:
    return f"-{format_exact(-value)} (too little)" if value < 0 else format_exact(value)


def _row(one: QueryPlan, candidate: Candidate) -> list[str]:
    chosen = candidate is one.chosen
    accuracy = candidate.accuracy
    lead = (
        [
            one.query.name,
            f"{one.cells} × {one.asked.domain.size}",
            _sensitivity(one),
        ]
        if chosen
        else ["", "", ""]
    )
    return [
        *lead,
        f"{candidate.mechanism}{' *' if chosen else ''}",
        f"{float(accuracy.p_exact):.3f}",
        _short(Fraction(accuracy.mean_absolute)),
        *(("-", "-") if candidate.ends is None else map(_short, candidate.ends)),
        "-" if candidate.within is None else f"±{candidate.within}",
        _short(candidate.objective),
        format_exact(one.charge.epsilon) if chosen else "",
        format_exact(one.charge.delta) if chosen else "",
    ]


def _sensitivity(one: QueryPlan) -> str:
    """M in short, and what is assumed of it."""
    found = one.asked.sensitivity
    steps = found.apart if found.apart is not None else found.shifts
    told = f"{len(found.shifts)}"
    if found.apart is not None and steps == tuple(range(1, len(found.apart) + 1)):
        told = f"±1..±{len(found.apart)}" if len(found.apart) > 1 else "±1"
    return f"{told}, {one.assumed}" if one.assumed else f"{told}, {one.query.source}"


def _short(value: Fraction) -> str:
    return f"{float(value):.4g}"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns side by side, as wide as they have to be, wherever they are printed to."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def _targets(
    spec_file: SpecFile, epsilon_text: str | None, delta_text: str | None, as_json: bool
) -> None:
    from release.planning import plan as planning

    plain = []
    for name, text, search in (
        ("epsilon", epsilon_text, planning.epsilon_for),
        ("delta", delta_text, planning.delta_for),
    ):
        if text is None:
            continue
        target = planning.parse_target(f"--{name}-for", text)
        with _working(f"looking for the least {name}"):
            found = list(search(spec_file, target, _solvers()))
        plain += [{"for": text, **_plain_least(one)} for one in found]
        if not as_json:
            typer.echo(f"the least {name} for {text}")
            rows = [[str(value) for value in _plain_least(one).values()] for one in found]
            print_table(["query", "assumed", "definition", "ε", "δ", "loss", "charge ε"], rows)
    if as_json:
        _print_json({"least": plain})


def _plain_least(one: Least) -> dict[str, Any]:
    return {
        "query": one.query.name,
        "assumed": one.assumed or "",
        "definition": one.guarantee.definition.value,
        "epsilon": format_exact(one.guarantee.epsilon),
        "delta": format_exact(one.guarantee.delta),
        "loss": format_up(one.objective, 6),
        "charge": format_exact(one.charge.epsilon),
    }


def _split(spec_file: SpecFile, weights: Sequence[str], as_json: bool) -> None:
    from release.planning.plan import split_budget

    with _working("splitting the budget"):
        named = [_weight(text) for text in weights]
        if len(dict(named)) < len(named):
            raise SpecError("--weight", "names a query twice; keep one")
        shares = split_budget(spec_file, dict(named), _solvers())
    if as_json:
        _print_json({"split": [_plain_share(one) for one in shares]})
        return
    rows = [[str(value) for value in _plain_share(one).values()] for one in shares]
    print_table(["query", "weight", "ε of a cell", "charge ε", "loss", "loss as written"], rows)
    total = sum((one.weight * one.objective for one in shares), Fraction(0))
    now = sum((one.weight * one.now for one in shares), Fraction(0))
    cap = format_exact(spec_file.spec.budget.epsilon)
    if len({str(one.query.loss) for one in shares}) > 1:
        typer.echo("losses of several kinds are added as they are; --weight says what one is worth")
    typer.echo(f"weighted loss {_short(total)} within ε = {cap}; as written {_short(now)}")


def _weight(text: str) -> tuple[str, Fraction]:
    name, _, number = text.partition("=")
    try:
        return name, parse_exact(number)
    except ValueError as error:
        raise SpecError("--weight", str(error)) from None


def _plain_share(one: Share) -> dict[str, Any]:
    return {
        "query": one.query.name,
        "weight": format_exact(one.weight),
        "epsilon": format_exact(one.epsilon),
        "charge": format_exact(one.charge),
        "loss": _short(one.objective),
        "loss_as_written": _short(one.now),
    }


def _plain_plan(
    spec_file: SpecFile, made: Plan, left: tuple[Fraction, Fraction] | None
) -> dict[str, Any]:
    return {
        "release_id": spec_file.spec.release.id,
        "epsilon": format_exact(made.epsilon),
        "delta": format_exact(made.delta),
        "cap": {"epsilon": format_exact(made.cap_epsilon), "delta": format_exact(made.cap_delta)},
        "over_budget": made.is_over,
        "refusals": list(made.refusals),
        "left": None
        if left is None
        else {"epsilon": format_exact(left[0]), "delta": format_exact(left[1])},
        "queries": [
            {
                "name": one.query.name,
                "assumed": one.assumed,
                "cells": one.cells,
                "answers": one.asked.domain.size,
                "sensitivity": len(one.asked.sensitivity.shifts),
                "charge": {
                    "epsilon": format_exact(one.charge.epsilon),
                    "delta": format_exact(one.charge.delta),
                },
                "mechanism": one.chosen.mechanism,
                "candidates": [
                    {
                        "mechanism": candidate.mechanism,
                        "loss": float(candidate.objective),
                        "p_exact": candidate.accuracy.p_exact,
                        "mean_absolute": candidate.accuracy.mean_absolute,
                        "at_lowest": _at(candidate.ends, 0),
                        "at_highest": _at(candidate.ends, 1),
                        "within_95": candidate.within,
                    }
                    for candidate in (one.chosen, *one.others)
                ],
            }
            for one in made.queries
        ],
    }


def _at(ends: tuple[Fraction, Fraction] | None, place: int) -> float | None:
    return None if ends is None else float(ends[place])


def _print_json(plain: dict[str, Any]) -> None:
    typer.echo(json.dumps(plain, ensure_ascii=False))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--html: cannot be written: {error.strerror}") from error
