"""``dp-release compare``: the loss of every mechanism for one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from release.cli import options as opt
from release.cli import plan_output as output
from release.cli.console import echo, print_json, print_table, working
from release.errors import SpecError
from release.exact.numbers import format_exact
from release.spec.named import by_name

if TYPE_CHECKING:
    from release.budget.cost import Charge
    from release.noise.design import Asked
    from release.noise.families import Solvers
    from release.planning.compare import Losses
    from release.spec.load import SpecFile
    from release.spec.query import Query

QueryName = Annotated[str, typer.Argument(help="The name of a query of the spec.")]


def compare(
    spec: opt.SpecPath,
    query: QueryName,
    html: opt.Html = None,
    period: opt.PeriodOption = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare all mechanisms on one query: the expected loss of each at several ε; reads no data.

    Charges are those at the ε of the spec. With noise on the statistic, how near the answers are
    takes the place of a loss.

    Example: dp-release compare data/persons.yaml minors_by_tract --html compare.html
    """
    from release.planning.compare import charge_texts, losses_by_epsilon
    from release.planning.plan import charge_with, check_not_shared, possible
    from release.queries.read import read_spec

    spec_file, solvers = read_spec(spec, opt.named_period(period)), output.cached_solvers()
    queries = by_name(spec_file.spec.released)
    if not queries:
        raise SpecError("QUERY", "the spec has no queries; plan compares the noise of tabulations")
    if query not in queries:
        names = ", ".join(queries)
        raise SpecError("QUERY", f"{query!r} is not in the spec; write one of {names}")
    check_not_shared(spec_file, queries[query])
    if queries[query].is_on_statistic:
        if html is not None:
            raise SpecError("--html", "draws noise on the answer; leave it out")
        _compare_on_statistic(spec_file, queries[query], as_json)
        return
    # For an empirical sensitivity the last is the most that the declaration allows.
    *_, (_, request) = possible(spec_file, queries[query])
    with working("comparing"):
        found = losses_by_epsilon(request, queries[query].mechanism, solvers)
    families, charges = sorted(found, key=_least_loss), {}
    for family in families:
        if family.claimed is not None:
            charges[family.mechanism] = charge_with(spec_file, queries[query], family.claimed)
    if html is not None:
        page = _comparison_page(queries[query], request, families, charges, solvers)
        output.write_page(html, page)
    if as_json:
        plain = [_plain_losses(family, charges.get(family.mechanism)) for family in families]
        print_json({"query": query, "loss": request.loss.plain_name, "mechanisms": plain})
        return
    loss, guarantee = request.loss.plain_name.replace("_", " "), request.guarantee
    condition = f"{guarantee.definition.value} δ = {format_exact(guarantee.delta)}"
    echo(f"{query}: {loss} loss by ε, with {condition}")
    columns = map("ε = {}".format, map(format_exact, families[0].epsilons))
    rows = []
    for family in families:
        rows.append([family.mechanism, *family.texts, *charge_texts(charges.get(family.mechanism))])
    print_table(["mechanism", *columns, "charge ε", "charge δ"], rows)
    if html is not None:
        echo(f"page  {html}")


def _compare_on_statistic(spec_file: SpecFile, query: Query, as_json: bool) -> None:
    from release.planning.compare import EPSILONS
    from release.planning.on_statistic import nearness_by_epsilon
    from release.queries.on_statistic import OnStatisticQuery

    if not isinstance(query, OnStatisticQuery):
        raise TypeError(f"{query.name} has its noise on the answer")
    epsilons = [factor * query.claimed.epsilon for factor in EPSILONS]
    nearness_of = nearness_by_epsilon(spec_file, query, epsilons)
    columns = list(map(format_exact, epsilons))
    known = [nearness for row in nearness_of.values() for nearness in row if nearness is not None]
    if as_json:
        plain = []
        for name, row in nearness_of.items():
            figures = [None if nearness is None else nearness.near for nearness in row]
            near = dict(zip(columns, figures, strict=True))
            plain.append({"mechanism": name, "near": near})
        of = known[0].near_of if known else None
        print_json({"query": query.name, "near": of, "mechanisms": plain})
        return
    if known:
        echo(f"{query.name}: {known[0].near_of}, by ε")
    rows = []
    for name, row in nearness_of.items():
        rows.append([name, *("-" if one is None else f"{one.near:.4g}" for one in row)])
    print_table(["mechanism", *map("ε = {}".format, columns)], rows)


def _least_loss(family: Losses) -> float:
    """The least loss of a family; infinite, so that it is listed last, where it fails at each ε."""
    return min((float(loss) for loss in family.losses if loss is not None), default=float("inf"))


def _plain_losses(family: Losses, charge: Charge | None) -> dict[str, Any]:
    losses = {}
    for epsilon, loss in zip(family.epsilons, family.losses, strict=True):
        # Keys are exact text: as a float, 1/3 would name another ε than the one compared.
        losses[format_exact(epsilon)] = None if loss is None else float(loss)
    charged = None if charge is None else output.plain_amounts(charge.epsilon, charge.delta)
    return {"mechanism": family.mechanism, "losses": losses, "charge": charged}


def _comparison_page(
    query: Query,
    request: Asked,
    families: Sequence[Losses],
    charges: Mapping[str, Charge],
    solvers: Solvers,
) -> str:
    from release.planning.compare import curves_at_equal_loss, side_by_side
    from release.planning.page import compare_html

    with working("drawing"):
        # In the order of the table, so that the colors of the pictures follow it too.
        designs = {}
        for family in families:
            if family.claimed is not None:
                designs[family.mechanism] = family.claimed
        curves = tuple(curves_at_equal_loss(request, designs, solvers))
        sides = side_by_side(request, designs)
        return compare_html(query, request, families, charges, curves, sides)
