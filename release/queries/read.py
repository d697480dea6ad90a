"""Reading a release spec: its models, and the checks that span several fields.

They stand above the models because some depend on the kind of a query. All of them run before any
table is opened.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from release.errors import MOST_FAULTS, Faults, SpecError, listed, nearest, unknown_name
from release.exact.channel import MOST_PROBABILISTIC, MOST_ROWS, channel_fits, probabilistic_fits
from release.exact.losses import LossName, line_fits, table_loss
from release.exact.privacy import Definition
from release.queries.on_statistic import OnStatisticQuery
from release.queries.registry import check_declared
from release.spec.declarations import ColumnType, Relation
from release.spec.demands import check_demands
from release.spec.domains import MAX_ANSWERS
from release.spec.expressions.places import expression_checks
from release.spec.guarantees import TableLoss
from release.spec.key_sets import MOST_KEYS, size_of
from release.spec.load import SpecFile, open_named, parse_models, read_text, renamed
from release.spec.losses import acceptance_of
from release.spec.mechanisms import BEST, MECHANISMS, ON_STATISTIC, chosen_unseen
from release.spec.model import Spec
from release.spec.named import check_table, names_of
from release.spec.periods import Period, filled
from release.spec.query import Query
from release.spec.shares import check_shared, with_target_losses
from release.spec.tuples import with_parts
from release.tabulations.measure.table_count import MAX_FILE_NAME, files_of
from release.tabulations.spec.check import check_tabulation

ENGINE_NAMES = ("rowid", "filename", "file_row_number", "file_index")
"""Virtual columns that DuckDB adds to its tables and files, in any case."""

_OTHER_FORMS = {
    (ColumnType.STRING, ColumnType.INTEGER): "for categories write nominal: [labels], else name",
    (ColumnType.NUMBER, ColumnType.INTEGER): "write grid in place of bins, or name",
    (ColumnType.INTEGER, ColumnType.NUMBER): "write bins in place of grid, or name",
}
"""What to write for a column of another type than is needed."""


def read_spec(path: Path, period: Period | None = None, release_id: str | None = None) -> SpecFile:
    """Read and check the spec at ``path`` and open the key sets it names.

    A template (:mod:`release.spec.periods`) is read for ``period``; ``release_id`` takes the place
    of the spec's own.

    Raises:
        SpecError: anything that cannot be meant; the message names the field and the remedy.
    """
    text = filled(read_text(path), period)
    if release_id is not None:
        text = renamed(text, release_id)
    return open_named(parse_spec(text), text, path.parent)


def parse_spec(text: bytes) -> Spec:
    """Read and check the bytes of a spec; files it names are not opened.

    Raises:
        SpecError: as :func:`read_spec`.
    """
    spec = parse_models(text)
    _refuse_names(spec)
    # Tuples look their parts up by name, and a check of a tuple reads its parts.
    faults = Faults()
    with faults.caught():
        spec = with_parts(spec)
    _check_columns(spec, faults)
    # Without its parts a tuple has no answers to check.
    if not faults.errors or not any(query.part_names for query in spec.queries):
        for index, query in enumerate(spec.queries):
            with faults.caught():
                _check_query(spec, index, query)
    if not faults.errors:
        with faults.caught():
            _check_tabulations(spec)
    _check_expressions(spec, faults)
    with faults.caught():
        acceptance_of(spec)
    faults.refuse()
    return with_target_losses(spec)


def _refuse_names(spec: Spec) -> None:
    """Refuse what every later check looks up: names that stand twice, and tables that do not fit.

    Raises:
        SpecError: a name stands twice, or a table has no columns that could be known.
    """
    faults = Faults()
    names: dict[str, int] = {}
    for index, query in enumerate(spec.queries):
        if query.name in names:
            problem = f"{query.name!r} is also the name of queries[{names[query.name]}]; rename one"
            faults.add(SpecError(f"queries[{index}].name", problem))
        names.setdefault(query.name, index)
    with faults.caught():
        if not spec.budget.epsilon > 0:
            raise SpecError("budget.epsilon", "must be above 0")
    with faults.caught():
        if not 0 <= spec.budget.delta < 1:
            raise SpecError("budget.delta", "must be at least 0 and below 1")
    for name in spec.tables:
        with faults.caught():
            _check_table(spec, name)
    faults.refuse()


def _check_columns(spec: Spec, faults: Faults) -> None:
    """Check the columns that privacy and keys name."""
    with faults.caught():
        _check_unit(spec)
    every = set().union(*map(spec.table_columns, spec.tables))
    attribute = spec.privacy.attribute
    if attribute is not None and attribute not in every:
        faults.add(SpecError("privacy.attribute", unknown_name(attribute, every)))
    if attribute in {spec.privacy.unit, *spec.privacy.fixed}:
        problem = f"{attribute!r} is the unit or fixed; name the sensitive column"
        faults.add(SpecError("privacy.attribute", problem))
    if any(attribute in table.derive for table in spec.tables.values()):
        # No neighbor has another value of it and the same values of what it is computed from.
        problem = f"{attribute!r} is derived; name the column that it is derived from"
        faults.add(SpecError("privacy.attribute", problem))
    # Each is built as text: a range of a few letters names a million.
    if sum(map(size_of, spec.keys.values())) > MOST_KEYS:
        faults.add(SpecError("keys", f"more than {MOST_KEYS:,} keys in all; declare fewer"))
    named = {f"privacy.fixed[{place}]": name for place, name in enumerate(spec.privacy.fixed)}
    named |= {f"keys.{column}": column for column in spec.keys}
    for place, column in named.items():
        if column not in every:
            # What is not shown needs no similar name, for which all columns are looked through.
            is_shown = len(faults.errors) < MOST_FAULTS
            faults.add(
                SpecError(place, unknown_name(column, every) if is_shown else "is not there")
            )


def _check_expressions(spec: Spec, faults: Faults) -> None:
    for check in expression_checks(spec):
        with faults.caught():
            check()


def _check_tabulations(spec: Spec) -> None:
    if not spec.queries and not spec.tabulations:
        raise SpecError("queries", "missing; add it (the queries), or tabulations")
    if not spec.tabulations:
        return
    if spec.budget.composition == "basic":
        raise SpecError("budget.composition", "tabulations compose by pld; leave it out")
    for query in spec.queries:
        if query.is_shared:
            raise SpecError(
                spec.place_of(query), "beside a tabulation a query needs a guarantee of its own"
            )
    for place in range(len(spec.tabulations)):
        check_tabulation(spec, place)
        _check_guarantee(spec, place)
    _check_files(spec)


def _check_guarantee(spec: Spec, place: int) -> None:
    guarantee, budget = spec.tabulations[place].guarantee, spec.budget
    field = f"tabulations[{place}].guarantee"
    if guarantee is None:
        if len(spec.tabulations) + len(spec.queries) > 1:
            raise SpecError(field, "missing; a tabulation that is not alone needs its own")
        try:
            spec.tabulations[place].guarantee_of_all(budget)
        except ValidationError as error:
            raise SpecError("budget", str(error.errors()[0]["ctx"]["error"])) from error
        return
    if guarantee.least is not None:
        raise SpecError(f"{field}.least", "is for a query with a target; leave it out")
    if guarantee.definition is Definition.PROBABILISTIC:
        raise SpecError(f"{field}.definition", "write pure or approximate")
    if not guarantee.epsilon:
        raise SpecError(f"{field}.epsilon", "tabulations need more than 0; raise it")
    # Of several guarantees the budget decides later, by what they charge together.
    if guarantee.delta and not budget.delta:
        raise SpecError(f"{field}.delta", "the budget has no delta; write 0, or raise budget.delta")


def _check_files(spec: Spec) -> None:
    """Refuse two files of one name: those of queries, and of the levels and tables of tabulations.

    Which tables are measured is decided later; all that can be have names of their own.
    """
    names = set(names_of(spec.queries))
    for place, tabulation in enumerate(spec.tabulations):
        field = f"tabulations[{place}].name"
        # Charges and strategies go by this name, and no file may be taken for another's.
        if tabulation.name in names:
            raise SpecError(field, f"{tabulation.name!r} is also the name of another; rename one")
        names.add(tabulation.name)
        for file in files_of(tabulation):
            if len(file) > MAX_FILE_NAME:
                raise SpecError(
                    field,
                    f"a file would be called {file[:40]!r}… of {len(file)} letters, at most "
                    f"{MAX_FILE_NAME}; shorten the names of levels or attributes",
                )
            if file in names:
                raise SpecError(
                    field, f"two files would be called {file!r}; rename the tabulation, or a column"
                )
            names.add(file)


def _check_unit(spec: Spec) -> None:
    """The privacy unit is a column of one type in all tables; each table is checked."""
    unit = spec.privacy.unit
    declared = set().union(*(table.columns for table in spec.tables.values()))
    if unit not in declared:
        raise SpecError("privacy.unit", unknown_name(unit, declared))
    types = {table.columns.get(unit) for table in spec.tables.values()} - {None}
    if len(types) > 1 or types - {ColumnType.STRING, ColumnType.INTEGER}:
        raise SpecError(
            "privacy.unit", "declare it string in every table, or integer in every table"
        )
    for name, table in spec.tables.items():
        if unit not in table.columns:
            near = nearest(unit, table.columns)
            hint = f"did you mean it by {near!r}? " if near else ""
            raise SpecError(
                f"tables.{name}.columns",
                f"the privacy unit {unit!r} is not declared; {hint}declared are "
                f"{listed(table.columns)}",
            )


def _check_table(spec: Spec, name: str) -> None:
    table = spec.tables[name]
    at = f"tables.{name}.join"
    joined: list[str] = []
    if table.join is not None:
        partner = table.join.table
        if partner not in spec.tables or partner == name:
            raise SpecError(f"{at}.table", unknown_name(partner, spec.tables.keys() - {name}))
        if spec.tables[partner].join is not None or spec.tables[partner].derive:
            raise SpecError(
                f"{at}.table", f"{partner!r} joins or derives itself; join plain tables"
            )
        joined += spec.tables[partner].columns
        for column in joined:
            if column in table.columns and column != spec.privacy.unit:
                raise SpecError(at, f"both tables declare {column!r}; declare it in one")
    # DuckDB does not tell names apart by case, so two such columns would be read as one.
    spellings: dict[str, str] = {}
    for column in [*table.columns, *joined, *table.derive]:
        spelling = spellings.setdefault(column.casefold(), column)
        at = f"tables.{name}.{'derive' if column in table.derive else 'columns'}.{column}"
        if column in table.derive and (column in table.columns or column in joined):
            raise SpecError(at, "is also declared; rename it")
        if spelling != column:
            raise SpecError(at, f"differs from {spelling!r} in case only; rename one")
        if column.casefold() in ENGINE_NAMES:
            raise SpecError(at, "is a name of the engine's own; rename the column")


def _check_query(spec: Spec, index: int, query: Query) -> None:
    at = f"queries[{index}]"
    check_table(f"{at}.table", query.table, spec.tables)
    columns, faults = spec.table_columns(query.table), Faults()
    with faults.caught():
        _check_by(spec, at, query, columns)
    if spec.rows_per_unit(query) > spec.privacy.max_rows_per_unit:
        problem = f"above the bound of {spec.privacy.max_rows_per_unit} in privacy; lower it"
        faults.add(SpecError(f"{at}.max_rows_per_unit", problem))
    with faults.caught():
        _check_kind(spec, at, query, columns)
    faults.refuse()
    _check_relation(spec, at, query)
    size = query.answers.size
    if size > MAX_ANSWERS and query.is_narrow and len(query.parts) == 1:
        reason = f"more than {MAX_ANSWERS:,} answers are for a count; declare fewer"
        raise SpecError(f"{at}.domain", reason)
    check_shared(spec, at, query)
    check_mechanism(at, query)
    check_demands(at, query)
    if len(query.parts) > 1 and size > MAX_ANSWERS:
        raise SpecError(f"{at}.of", f"{size} joint answers; at most {MAX_ANSWERS}")
    if query.is_released:
        check_declared(spec, at, query)
    if isinstance(query.loss, TableLoss):
        try:
            table_loss(tuple(query.loss.table))
        except ValueError as error:
            raise SpecError(f"{at}.loss.table", str(error)) from error
        if len(query.loss.table) != size:
            raise SpecError(
                f"{at}.loss.table", f"{len(query.loss.table)} costs for {size} answers; give {size}"
            )


def check_mechanism(at: str, query: Query) -> None:
    """Refuse a mechanism that does not fit the answers, the loss or the guarantee.

    Raises:
        SpecError: it does not; the message names the field below ``at``.
    """
    if query.guarantee is None:
        return
    if isinstance(query, OnStatisticQuery) and query.is_on_statistic:
        _check_on_statistic(at, query)
        return
    at, domain = f"{at}.mechanism", query.answers
    if query.mechanism in ON_STATISTIC:
        raise SpecError(at, f"{query.mechanism!r} is noise on a statistic; write best")
    if domain.size > MAX_ANSWERS and len(domain.parts) == 1:
        _check_wide(at, query)
    if query.mechanism == BEST:
        _check_reach(at, query)
        return
    entry = MECHANISMS[query.mechanism]
    if (entry.needs_order or entry.is_baseline) and len(domain.parts) > 1:
        raise SpecError(at, f"{entry.name!r} answers one query; a tuple takes best or modular")
    fits = channel_fits if entry.needs_rows else line_fits
    if entry.needs_order and not fits(domain, query.loss):
        most = f"at most {MOST_ROWS} " if entry.needs_rows else ""
        raise SpecError(
            at,
            f"{entry.name!r} needs {most}answers in order, and the loss error_rate, absolute or "
            "squared; declare these, or write modular",
        )
    if entry.needs_order and _is_out_of_reach(query):
        raise SpecError(at, _OUT_OF_REACH)
    claimed = query.claimed
    if entry.name == "integer" and claimed.definition is Definition.PROBABILISTIC:
        raise SpecError(at, "clamping preserves no probabilistic delta; write best or channel")
    if entry.needs_delta and query.guarantee.delta == 0:
        raise SpecError(at, f"{entry.name!r} needs delta above 0; write best")
    if entry.needs_epsilon and query.guarantee.epsilon == 0:
        raise SpecError(at, f"{entry.name!r} needs epsilon above 0; write best")


def _check_on_statistic(at: str, query: OnStatisticQuery) -> None:
    """Refuse what noise on a statistic cannot be."""
    # Which of them can answer also follows from the neighbors: the design refuses the others.
    families = {BEST: None}
    for relation in Relation:
        families |= dict.fromkeys(query.statistic(1, relation).families)
    if query.mechanism not in families:
        allowed = ", ".join(families)
        raise SpecError(
            f"{at}.mechanism",
            f"{query.mechanism!r} is noise on the answer; write one of {allowed}, or "
            "noise: on_answer",
        )
    if "loss" in query.model_fields_set:
        raise SpecError(
            f"{at}.loss", "is for noise on the answer; leave it out, or write noise: on_answer"
        )
    if not query.claimed.epsilon:
        raise SpecError(
            f"{at}.guarantee.epsilon", "noise on a statistic needs more than 0; raise it"
        )


def _check_wide(at: str, query: Query) -> None:
    """Refuse more than 10^6 answers for what would make a list of them."""
    needs, without = None, [BEST]
    for name, entry in MECHANISMS.items():
        if entry.needs_order and not (entry.needs_rows or entry.needs_prior):
            without.append(name)
    if query.mechanism not in without:
        needs = f"mechanism: one of {', '.join(without)}"
    elif query.is_empirical:
        needs = "sensitivity: global"
    elif not isinstance(query.loss, LossName) or not line_fits(query.answers, query.loss):
        needs = "loss: error_rate, absolute or squared"
    if needs is not None:
        raise SpecError(at, f"more than {MAX_ANSWERS:,} answers need {needs}")


def _check_reach(at: str, query: Query) -> None:
    """Refuse ``best`` where it could only be modular noise on answers in order."""
    # Such noise can publish the one end of the domain for the other. A curator has to name it. Only
    # public fields decide: under empirical sensitivity even a refusal would tell of the table.
    domain = query.answers
    reason = None
    if not domain.has_order:
        return
    if len(domain.parts) > 1:
        reason = "best has no noise for tuples with a part in order; publish each part by itself"
    elif not line_fits(domain, query.loss):
        reason = "best needs the loss error_rate, absolute or squared for answers in order"
    elif query.claimed.epsilon == 0 and domain.size > MOST_ROWS:
        reason = f"with epsilon 0 best reaches {MOST_ROWS:,} answers in order"
    elif _is_out_of_reach(query):
        reason = _OUT_OF_REACH
    elif query.is_empirical:
        reason = _unreached_unseen(query)
    if reason is None:
        return
    if domain.size <= MAX_ANSWERS:
        reason += ", or write mechanism: modular, which can publish one end for the other"
    raise SpecError(at, reason)


def _unreached_unseen(query: Query) -> str | None:
    """Why ``best`` is refused under empirical sensitivity, which may not decide on it."""
    claimed, domain = query.claimed, query.answers
    if chosen_unseen(domain, LossName(query.loss), claimed.to_guarantee()) is not None:
        return None
    if claimed.epsilon == 0:
        return "with epsilon 0 best has no mechanism under sensitivity: empirical"
    return (
        "best has no probabilistic guarantee for answers in order under sensitivity: empirical; "
        "write definition: approximate, or pure without delta"
    )


_OUT_OF_REACH = (
    f"a probabilistic delta reaches {MOST_PROBABILISTIC} answers in order; add fallback: "
    "approximate to the guarantee, or declare a smaller domain"
)


def _is_out_of_reach(query: Query) -> bool:
    claimed = query.claimed
    is_probabilistic = claimed.definition is Definition.PROBABILISTIC and claimed.delta > 0
    return is_probabilistic and not probabilistic_fits(query.answers)


def _check_by(spec: Spec, at: str, query: Query, columns: dict[str, ColumnType]) -> None:
    for position, column in enumerate(query.by):
        place = f"{at}.by[{position}]"
        if column not in columns:
            raise SpecError(place, unknown_name(column, columns))
        if column in query.by[:position]:
            raise SpecError(place, f"{column!r} stands twice; keep one")
        if column == spec.privacy.unit and not query.for_units:
            raise SpecError(place, "the privacy unit cannot be a key; its values are confidential")
        if column in {*query.columns, *query.outcome_columns, "answer_code"}:
            raise SpecError(place, f"{column!r} is a column of the released table; derive another")
        if columns[column] not in {ColumnType.STRING, ColumnType.INTEGER, ColumnType.DATE}:
            raise SpecError(place, "keys are strings, integers or dates; derive such a column")
        if column not in spec.keys:
            raise SpecError(f"keys.{column}", f"missing; {query.name!r} needs the public keys")


def _check_relation(spec: Spec, at: str, query: Query) -> None:
    _check_taken_over(spec, at, query)
    attribute = spec.privacy.attribute
    if attribute is None:
        if query.for_units:
            raise SpecError(
                f"{at}.kind", "per_unit shows who is listed; it needs neighbors: attribute"
            )
        return
    reads: set[str | None] = set(query.by)
    # SQL may read any column of the row, so a condition or a derived column counts as reading it.
    may_read = bool(spec.tables[query.table].derive or query.where)
    for part in query.parts:
        reads |= {getattr(part, "of", None), getattr(part, "weight", None)}
        may_read = may_read or bool(part.where)
    if attribute not in reads and not may_read and query.is_released:
        raise SpecError(
            at, f"does not read {attribute!r}, so attribute neighbors would promise nothing"
        )


def _check_taken_over(spec: Spec, at: str, query: Query) -> None:
    """Refuse to copy units where their profiles depend on a fixed column."""
    # A copy takes over the fixed columns of the unit that it replaces, but its profile was computed
    # from its own.
    if not query.is_empirical or spec.privacy.any_of_domain:
        return
    for part in query.parts:
        for field_name in ("of", "weight"):
            column = getattr(part, field_name, None)
            if column in spec.privacy.fixed:
                raise SpecError(
                    f"{at if part is query else spec.place_of(part)}.{field_name}",
                    f"{column!r} is fixed, so a unit that comes in takes it over; write "
                    "sensitivity: global, or replacement: domain in privacy",
                )


def _check_kind(spec: Spec, at: str, query: Query, columns: dict[str, ColumnType]) -> None:
    query.check(at, spec.privacy, spec.keys)
    faults = Faults()
    for field, (column, needed) in query.needed_columns().items():
        with faults.caught():
            _check_column(f"{at}.{field}", column, needed, columns)
    faults.refuse()


def _check_column(at: str, column: str, needed: ColumnType, columns: dict[str, ColumnType]) -> None:
    if column not in columns:
        raise SpecError(at, unknown_name(column, columns))
    if columns[column] is not needed:
        problem = f"{column!r} is declared {columns[column].value}; needed is {needed.value}"
        remedy = _OTHER_FORMS.get((columns[column], needed), "name")
        raise SpecError(at, f"{problem}; {remedy} or derive another column")
