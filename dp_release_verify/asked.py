"""What was asked: the questions of a release, and the rules that a run accepts them by.

The numbers in brackets are sections of the format page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Literal, TypeAlias

from dp_release_verify import forms
from dp_release_verify.errors import Refused, refuse_unless

FILE = "release.json"

Topology: TypeAlias = Literal["ordered", "cyclic", "nominal"]

LINE_LOSSES = ("error_rate", "absolute", "squared")
STATISTICS = ("sum", "mean", "min", "max", "median")
SELECTIONS = ("permute_and_flip", "exponential_mechanism")

OF_PAPERS = ("sadeghi_count", "geng_zero_epsilon", "qin_wasserstein", "qin_relaxed")
NEED_A_LINE = ("integers", "geometric_clamped", "gaussian_clamped", "gumbel_clamped", *OF_PAPERS)
NEED_ROWS = ("channel", "geometric_truncated", "exponential")
NEED_ONE_PART = (
    "geometric_modular",
    "gaussian_modular",
    "randomised_response",
    "data_independent",
)

_OF_ENGINES = {"rowid", "filename", "file_row_number", "file_index"}
"""Columns of these names would tell of the other rows of a file."""

MOST_ANSWERS = 10**6
MOST_IN_ROWS = 1000
MOST_IN_REACH = 64
"""On more ordered answers than these a probabilistic guarantee is out of reach."""


def rule(holds: bool, place: str, found: object, needed: str) -> None:
    """Refuse a question that no run accepts.

    Raises:
        Refused: the condition does not hold.
    """
    refuse_unless(holds, FILE, place, found, needed)


@dataclass(frozen=True)
class Answers:
    """The possible answers of one part of a question.

    Attributes:
        size: how many there are; their codes are 0 to size − 1.
        topology: what is next to what.
        low: the label of the first code, where labels are integers.
        width: the distance of two labels; of bins their mean width.
        labels: of nominal answers.
    """

    size: int
    topology: Topology
    low: int = 0
    width: Fraction = Fraction(1)
    labels: tuple[str, ...] = ()

    def label(self, code: int) -> str | int:
        """What is published for a code."""
        if self.labels:
            return self.labels[code]
        # The least integer of the bin; of points and grids the point itself.
        return self.low + -(-code * self.width.numerator // self.width.denominator)


def answers_of(domain: forms.Domain, at: str) -> Answers:
    """The answers of a domain [2.8].

    Raises:
        Refused: there are none, or too many.
    """
    if domain.ordered is not None:
        ends = domain.ordered
        rule(ends.min < ends.max, at, ends, "min below max")
        return Answers(ends.max - ends.min + 1, "ordered", ends.min)
    if domain.integers is not None:
        return Answers(2**53 - 1, "ordered", -(2**52 - 1))
    if domain.cyclic is not None:
        rule(domain.cyclic >= 2, at, domain.cyclic, "2 or more")
        return Answers(domain.cyclic, "cyclic")
    if domain.nominal is not None:
        labels = domain.nominal
        rule(len(set(labels)) == len(labels), at, "a label twice", "each label once")
        return Answers(len(labels), "nominal", labels=tuple(labels))
    if domain.bins is not None:
        bins = domain.bins
        rule(2 <= bins.count <= bins.high - bins.low, at, bins, "2 bins or more, of 1 or more")
        return Answers(bins.count, "ordered", bins.low, Fraction(bins.high - bins.low, bins.count))
    grid = domain.grid
    if grid is None:
        raise Refused(FILE, at, "no domain", "one")
    whole = grid.step >= 1 and grid.high > grid.low and (grid.high - grid.low) % grid.step == 0
    rule(whole and grid.scale > 0, at, grid, "a whole number of steps from low to high")
    size = (grid.high - grid.low) // grid.step + 1
    rule(size <= MOST_ANSWERS, at, size, f"at most {MOST_ANSWERS}")
    return Answers(size, "ordered", grid.low, Fraction(grid.step))


@dataclass(frozen=True)
class Neighbors:
    """What two neighboring tables differ in.

    Attributes:
        ways: 1 where a unit comes or goes, 2 where it is replaced or changes.
        rows: the most rows of a unit.
        cells: the most cells of a unit; none without a bound.
        fixed: the columns that are public facts of a unit.
    """

    unit: str
    relation: str
    ways: int
    rows: int
    cells: int | None
    fixed: frozenset[str]
    attribute: str | None
    is_observed: bool


def neighbors_of(privacy: forms.Privacy) -> Neighbors:
    """The relation of a spec."""
    has_attribute = privacy.attribute is not None
    return Neighbors(
        unit=privacy.unit,
        relation=privacy.neighbors,
        ways=1 if privacy.neighbors == "add_remove" else 2,
        rows=privacy.max_rows_per_unit,
        cells=privacy.max_cells_per_unit,
        fixed=frozenset(privacy.fixed or ()),
        attribute=privacy.attribute,
        is_observed=not has_attribute and privacy.replacement != "domain",
    )


def check_neighbors(privacy: forms.Privacy) -> None:
    """The fields of a relation fit together.

    Raises:
        Refused: they contradict each other.
    """
    has_attribute = privacy.attribute is not None
    is_attribute = privacy.neighbors == "attribute"
    rule(has_attribute == is_attribute, "privacy.attribute", privacy.attribute, "with its relation")
    rule(
        not (has_attribute and privacy.replacement is not None),
        "privacy.replacement",
        privacy.replacement,
        "none beside an attribute",
    )


def clamp_of(query: forms.Query) -> tuple[int, int]:
    """The bounds of what one row counts as, in a question or a part of one.

    Raises:
        Refused: there are none.
    """
    at = f"{query.name}.clamp"
    stated = getattr(query, "clamp", None) or getattr(query, "values", None)
    if stated is None:
        bins = None
        if isinstance(query, (forms.Statistic, forms.Quantiles)):
            bins = query.domain.bins
        if bins is None:
            raise Refused(FILE, at, "nothing", "the bounds of one row")
        return bins.low, bins.high
    rule(stated[0] < stated[-1], at, stated, "a low end below the high one")
    return stated[0], stated[-1]


@dataclass(frozen=True)
class Question:
    """A question that is published by itself, or a table that a tabulation measures.

    Attributes:
        query: what was asked; of a measured table a count of rows on all integers.
        parts: the questions of a joint one; else the question alone.
        answers: of each part.
        neighbors: the relation.
        rows: the most rows of a unit that are read [3.1]; of a declared sensitivity less.
        is_table: whether a tabulation measures it.
    """

    query: forms.Query
    parts: tuple[forms.Query, ...]
    answers: tuple[Answers, ...]
    neighbors: Neighbors
    is_table: bool = False

    @property
    def name(self) -> str:
        """The name of the question."""
        return self.query.name

    @property
    def kind(self) -> str:
        """The kind of question."""
        return self.query.kind

    @property
    def group(self) -> tuple[int, ...]:
        """The number of answers of each part."""
        return tuple(answers.size for answers in self.answers)

    @property
    def size(self) -> int:
        """The number of joint answers."""
        return prod(self.group)

    @property
    def is_line(self) -> bool:
        """Whether the answers are one ordered part."""
        return len(self.answers) == 1 and self.answers[0].topology == "ordered"

    @property
    def has_order(self) -> bool:
        """Whether some part is ordered."""
        return any(answers.topology == "ordered" for answers in self.answers)

    @property
    def is_empirical(self) -> bool:
        """Whether the mechanism depends on the confidential table, and is committed."""
        return self.query.sensitivity == "empirical"

    @property
    def is_composed(self) -> bool:
        """Whether its guarantee was found with those of the whole spec."""
        query = self.query
        return query.share is not None or (query.target is not None and query.guarantee is None)

    @property
    def on_statistic(self) -> bool:
        """Whether the noise is on the integers that decide the answer."""
        return self.query.noise == "on_statistic"

    @property
    def is_per_unit(self) -> bool:
        """Whether every part is the category of a unit."""
        return all(part.kind == "per_unit" for part in self.parts)

    @property
    def most_rows(self) -> int:
        """The bound on the rows of a unit that the question states."""
        return 1 if self.is_per_unit else self.query.max_rows_per_unit

    @property
    def loss(self) -> str:
        """The loss function."""
        target = self.query.target
        if target is not None:
            return next(name for name in LINE_LOSSES if getattr(target, name) is not None)
        return self.query.loss or "error_rate"

    @property
    def counts_rows(self) -> bool:
        """Whether it is a number of rows, of which a unit may have several."""
        return isinstance(self.query, forms.CountQuery) and self.query.of is None

    @property
    def clamp(self) -> tuple[int, int]:
        """The bounds of what one row counts as.

        Raises:
            Refused: there are none.
        """
        return clamp_of(self.query)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The shares of rows below the answers of quantiles; of a median one half."""
        query = self.query
        return tuple(query.at) if isinstance(query, forms.Quantiles) else (Fraction(1, 2),)


def claim_of(question: Question, made: forms.Claim | forms.MadeQuery) -> forms.Claim:
    """The guarantee of one cell that was asked for; of a sought one as it was made [2.6].

    Raises:
        Refused: what was made is more than was asked for.
    """
    guarantee = question.query.guarantee
    if question.is_composed or guarantee is None:
        return forms.Claim(made.definition, made.epsilon, made.delta)
    definition: forms.Definition = guarantee.definition
    is_small = len(question.group) == 1 and question.group[0] <= MOST_IN_REACH
    if guarantee.fallback is not None and question.has_order and not is_small:
        definition = guarantee.fallback
    epsilon, delta = guarantee.epsilon, guarantee.delta
    at = f"made.{question.name}"
    if guarantee.least == "epsilon":
        rule(made.epsilon <= epsilon, f"{at}.epsilon", made.epsilon, f"at most {epsilon}")
        epsilon = made.epsilon
    if guarantee.least == "delta":
        rule(made.delta <= delta, f"{at}.delta", made.delta, f"at most {delta}")
        delta = made.delta
    return forms.Claim(definition, epsilon, delta)


class Spec:
    """All that was asked, with the questions that were published, in order.

    Raises:
        Refused: it names a part, a table or a domain that is not there.
    """

    def __init__(self, asked: forms.Asked) -> None:
        self.asked = asked
        self.neighbors = neighbors_of(asked.privacy)
        self.columns: dict[str, dict[str, str]] = {}
        """The types of all columns of a table, with those that are joined and derived."""
        self.plain_columns: dict[str, dict[str, str]] = {}
        """The same without the derived ones."""
        self._read_columns()
        self.queries = {query.name: query for query in asked.queries or ()}
        self.tabulations = {each.name: each for each in asked.tabulations or ()}
        self.published = tuple(self._published())

    def check(self) -> None:
        """Check the rules that sensitivity, cells and charges rest on.

        Raises:
            Refused: a run would not accept this.
        """
        asked = self.asked
        names = [query.name for query in asked.queries or ()]
        names += [each.name for each in asked.tabulations or ()]
        rule(len(names) > 0 and len(set(names)) == len(names), "names", names, "each name once")
        check_neighbors(asked.privacy)
        self._check_columns()
        for question in self.published:
            check_question(question, self.columns.get(question.query.table, {}))
        self._check_parts()
        for tabulation in asked.tabulations or ():
            self._check_tabulation(tabulation)
        self._check_budget()

    @property
    def composes_exactly(self) -> bool:
        """Whether the release is charged what its losses compose to."""
        is_found = any(question.is_composed for question in self.published)
        return is_found or bool(self.tabulations) or self.asked.budget.composition == "pld"

    @property
    def is_empirical(self) -> bool:
        """Whether a question depends on the confidential table beyond its answer."""
        return any(question.is_empirical for question in self.published)

    def _read_columns(self) -> None:
        """The columns of all tables [2.3]."""
        for name, table in self.asked.tables.items():
            joined: dict[str, str] = {}
            if table.join is not None:
                joined = self._joined(name, table.join.table)
            derived = {column: each.type for column, each in (table.derive or {}).items()}
            self.plain_columns[name] = {**table.columns, **joined}
            self.columns[name] = {**self.plain_columns[name], **derived}

    def _check_columns(self) -> None:
        """Columns stand once, and those that ``privacy`` names are there [2.3, 2.4]."""
        unit = self.neighbors.unit
        computed: set[str] = set()
        for name, table in self.asked.tables.items():
            joined = {} if table.join is None else self._joined(name, table.join.table)
            every = [*table.columns, *joined, *(table.derive or {})]
            folded = {column.casefold() for column in every}
            hidden = folded & _OF_ENGINES
            rule(not hidden, f"tables.{name}", sorted(hidden), "no name of an engine's own")
            rule(len(folded) == len(every), f"tables.{name}", "a column twice", "each once")
            kind = table.columns.get(unit)
            rule(kind in ("string", "integer"), f"tables.{name}", kind, "the unit, with its type")
            computed |= set(table.derive or {})
        types = {table.columns[unit] for table in self.asked.tables.values()}
        rule(len(types) == 1, "privacy.unit", sorted(types), "one type in every table")
        known = {column for columns in self.columns.values() for column in columns}
        fixed = self.neighbors.fixed
        rule(fixed <= known, "privacy.fixed", sorted(fixed), "columns of a table")
        attribute = self.neighbors.attribute
        if attribute is not None:
            is_plain = attribute in known - computed - {unit} - fixed
            rule(is_plain, "privacy.attribute", attribute, "a column that is no other's")

    def _joined(self, name: str, other: str) -> dict[str, str]:
        """The columns that a plain table adds to another."""
        partner = self.asked.tables.get(other)
        if partner is None or other == name or partner.join is not None or partner.derive:
            raise Refused(FILE, f"tables.{name}.join", other, "a plain table")
        unit = self.neighbors.unit
        return {column: kind for column, kind in partner.columns.items() if column != unit}

    def _published(self) -> Iterator[Question]:
        for query in self.asked.queries or ():
            if query.guarantee is None and query.share is None and query.target is None:
                continue
            yield self._question(query)

    def _question(self, query: forms.Query) -> Question:
        parts: tuple[forms.Query, ...] = (query,)
        if isinstance(query, forms.TupleQuery):
            missing = [name for name in query.of if name not in self.queries]
            rule(not missing, f"{query.name}.of", missing, "names of questions")
            parts = tuple(self.queries[name] for name in query.of)
        answers = []
        for part in parts:
            domain = getattr(part, "domain", None)
            if domain is None:
                raise Refused(FILE, f"{query.name}.of", part.name, "a question with answers")
            answers.append(answers_of(domain, f"{part.name}.domain"))
        return Question(query, parts, tuple(answers), self.neighbors)

    def _check_parts(self) -> None:
        """A question that is not published is a part of one that is, and claims nothing [2.9]."""
        published = {question.name for question in self.published}
        parts = {part.name for question in self.published for part in question.parts}
        for name, query in self.queries.items():
            if name in published:
                continue
            claims = [query.sensitivity, query.loss, query.mechanism, query.noise]
            is_part = name in parts and claims == [None] * len(claims)
            rule(is_part, name, "no guarantee", "a guarantee, or a part of a tuple")

    def _check_tabulation(self, tabulation: forms.Tabulation) -> None:
        """The rules of tabulations on which cells and charges rest [2.13]."""
        at, neighbors = tabulation.name, self.neighbors
        is_plain = neighbors.attribute is None and neighbors.rows == 1
        rule(is_plain, f"{at}: rows of a unit", neighbors.rows, "one, and no attribute")
        columns = self.columns.get(tabulation.table, {})
        attributes = {each.name: each.categories for each in tabulation.attributes or ()}
        right = len(attributes) == len(tabulation.attributes or ())
        rule(right, f"{at}.attributes", "a name twice", "each name once")
        levels = tabulation.hierarchy.levels
        read = [levels[-1], *attributes]
        for column in read:
            kind = columns.get(column)
            is_key = kind in ("string", "integer", "date") and column not in neighbors.fixed
            rule(is_key and column != neighbors.unit, f"{at}: {column}", kind, "a key column")
        groupings = {each.name: each for each in tabulation.groupings or ()}
        names = [name.casefold() for name in (*levels, *attributes, *groupings)]
        rule(len(set(names)) == len(names), f"{at}: names", names, "each name once")
        rule(neighbors.unit not in levels, f"{at}: levels", neighbors.unit, "no unit")
        for name, categories in attributes.items():
            texts = [str(each) for each in categories]
            rule(len(set(texts)) == len(texts), f"{at}.{name}", "a category twice", "each once")
        combinations = prod(len(categories) for categories in attributes.values())
        rule(combinations <= 2**20, f"{at}: combinations", combinations, "at most 2^20")
        for name, grouping in groupings.items():
            whole = sorted(str(each) for each in attributes.get(grouping.of, []))
            own = [str(each) for group in grouping.classes for each in group.categories]
            rule(sorted(own) == whole, f"{at}.{name}", "other categories", "each category once")
        rule(sorted(tabulation.publish) == sorted(levels), f"{at}.publish", "levels", "every level")
        for margin in [each for margins in tabulation.publish.values() for each in margins]:
            broken = [groupings[name].of if name in groupings else name for name in margin]
            is_margin = set(broken) <= set(attributes) and len(set(broken)) == len(broken)
            rule(is_margin, f"{at}.publish", margin, "attributes and groupings, each once")

        for constraint in tabulation.constraints or ():
            _check_constraint(constraint, tabulation, attributes)

    def _check_budget(self) -> None:
        budget = self.asked.budget
        is_found = any(question.is_composed for question in self.published)
        rule(not (is_found and self.tabulations), "tabulations", "a share", "none beside them")
        is_exact = is_found or bool(self.tabulations)
        rule(
            not (is_exact and budget.composition == "basic"),
            "budget.composition",
            "basic",
            "exact composition, where guarantees are found",
        )
        sources = {question.name: question.is_empirical for question in self.published}
        for entry in self.asked.acceptance or ():
            rule(
                not sources.get(entry.of, False),
                "acceptance",
                entry.of,
                "a question whose accuracy is public",
            )


def _check_constraint(
    constraint: forms.Constraint,
    tabulation: forms.Tabulation,
    attributes: dict[str, list[forms.Label]],
) -> None:
    """Declared numbers are of the highest level and of a margin; or categories are impossible."""
    at = f"{tabulation.name}.constraints"
    declared = (constraint.level, constraint.margin, constraint.file)
    if constraint.impossible is None:
        rule(None not in declared, at, declared, "a level, a margin and a file")
        highest = tabulation.hierarchy.levels[0]
        rule(constraint.level == highest, at, constraint.level, f"the highest level, {highest}")
        groupings = {each.name: each.of for each in tabulation.groupings or ()}
        broken = [groupings.get(name, name) for name in constraint.margin or ()]
        is_margin = set(broken) <= set(attributes) and len(set(broken)) == len(broken)
        rule(is_margin, at, constraint.margin, "attributes and groupings, each once")
        return
    rule(declared == (None, None, None), at, declared, "impossible categories alone")
    for name, categories in constraint.impossible.items():
        known = {str(each) for each in attributes.get(name, ())}
        right = {str(each) for each in categories} <= known
        rule(right, f"{at}.{name}", categories, "categories of an attribute")


def check_question(question: Question, columns: dict[str, str]) -> None:
    """The rules of one published question on which sensitivity and charges rest [2.9].

    Raises:
        Refused: one is broken.
    """
    query, neighbors, at = question.query, question.neighbors, question.name
    rule(bool(columns), f"{at}.table", query.table, "a table")
    rule(
        query.max_rows_per_unit <= neighbors.rows,
        f"{at}.max_rows_per_unit",
        query.max_rows_per_unit,
        f"at most {neighbors.rows}",
    )
    rule(
        question.size <= MOST_ANSWERS or query.kind == "count",
        f"{at}.domain",
        question.size,
        f"at most {MOST_ANSWERS} answers",
    )
    _check_keys(question, columns)
    for part in question.parts:
        rule(
            _reads_its_columns(part, columns, neighbors.unit),
            f"{part.name}.of",
            "a column",
            "one of its type",
        )
        is_same = (part.table, part.by) == (query.table, query.by)
        is_same = is_same and part.max_rows_per_unit == query.max_rows_per_unit
        rule(is_same, f"{at}: {part.name}", "another table, keys or bound", "those of the tuple")
    if isinstance(query, forms.TupleQuery):
        kinds = {part.kind for part in question.parts}
        rule(len(set(query.of)) == len(query.of), f"{at}.of", query.of, "each part once")
        rule(not kinds & {"tuple", "sql", "top", "quantiles"}, f"{at}.of", kinds, "other kinds")
    _check_kind(question)
    _check_source(question)
    _check_mechanism(question)


_CATEGORIES = ("cyclic", "ordered", "nominal")
_DOMAINS: dict[str, tuple[str, ...]] = {
    "count": ("ordered", "integers"),
    "mode": _CATEGORIES,
    "top": _CATEGORIES,
    "per_unit": _CATEGORIES,
    "sum": ("bins", "grid"),
    "mean": ("bins", "grid"),
    "min": ("bins",),
    "max": ("bins",),
    "median": ("bins",),
    "quantiles": ("ordered", "bins"),
    "sql": ("cyclic", "ordered", "bins"),
}
"""The answers that a kind can have."""


def _check_part(part: forms.Query, *, on_statistic: bool) -> None:
    """The fields that a kind has by itself, also where it is a part of a tuple."""
    at = part.name
    domain = getattr(part, "domain", None)
    for name in (*_CATEGORIES, "integers", "bins", "grid"):
        if domain is not None and getattr(domain, name) is not None:
            allowed = _DOMAINS[part.kind]
            rule(name in allowed, f"{at}.domain", name, " or ".join(allowed))
    clamp, values = getattr(part, "clamp", None), getattr(part, "values", None)
    for name, stated in (("clamp", clamp), ("values", values)):
        if stated is not None:
            ascends = all(a < b for a, b in pairwise(stated))
            rule(ascends, f"{at}.{name}", stated, "ascending")
    if values is not None:
        is_plain = part.kind == "sum" and clamp is None and not on_statistic
        is_plain = is_plain and domain is not None and domain.grid is None
        rule(is_plain, f"{at}.values", values, "of a sum in bins, with noise on the answer")
    if isinstance(part, forms.CountQuery) and domain is not None and domain.ordered is not None:
        rule(domain.ordered.min >= 0, f"{at}.domain", domain.ordered.min, "0 or more")
    if isinstance(part, forms.Mode):
        rule(part.weight is None or part.count is None, f"{at}.count", part.count, "no weight")
        rule(part.clamp is None or part.weight is not None, f"{at}.clamp", clamp, "of a weight")


def _check_kind(question: Question) -> None:
    """The fields that a kind has by itself."""
    query, at, size = question.query, question.name, question.size
    for part in question.parts:
        _check_part(part, on_statistic=question.on_statistic)
    if isinstance(query, forms.Top):
        shown = query.counts + query.histogram
        rule(query.k < size and shown <= 1, f"{at}.k", query.k, f"below {size}; one kind of counts")
        rule(not query.histogram or size <= MOST_IN_ROWS, f"{at}.histogram", size, "at most 1000")
    if isinstance(query, forms.Quantiles):
        ends = [Fraction(0), *query.at, Fraction(1)]
        in_order = all(a < b for a, b in pairwise(ends))
        rule(in_order, f"{at}.at", "another order", "shares between 0 and 1, ascending")
    if isinstance(query, forms.Statistic):
        is_extreme = query.kind in ("min", "max") and question.on_statistic
        rule((query.rank is not None) == is_extreme, f"{at}.rank", query.rank, "of min and max")


def _check_keys(question: Question, columns: dict[str, str]) -> None:
    query, neighbors, at = question.query, question.neighbors, question.name
    rule(len(set(query.by)) == len(query.by), f"{at}.by", query.by, "each column once")
    for column in query.by:
        is_key = columns.get(column) in ("string", "integer", "date")
        rule(is_key, f"{at}.by", column, "a column of text, integers or dates")
    kinds = {part.kind for part in question.parts}
    if "per_unit" in kinds:
        is_local = question.is_per_unit and query.by == [neighbors.unit]
        is_local = is_local and neighbors.attribute is not None
        rule(is_local and query.max_rows_per_unit == 1, f"{at}.by", query.by, "the unit alone")
    else:
        rule(neighbors.unit not in query.by, f"{at}.by", neighbors.unit, "no unit")


def _reads_its_columns(part: forms.Query, columns: dict[str, str], unit: str) -> bool:
    """Whether a question reads columns of the types that its kind needs."""
    if isinstance(part, forms.CountQuery):
        return part.of in (None, unit)
    if isinstance(part, forms.SqlQuery):
        return True
    of = getattr(part, "of", None)
    kind = columns.get(of) if isinstance(of, str) else None
    if isinstance(part, (forms.Statistic, forms.Quantiles)):
        return kind == ("number" if part.domain.grid is not None else "integer")
    if isinstance(part, forms.TupleQuery):
        return True
    weight = getattr(part, "weight", None)
    if weight is not None and columns.get(weight) != "integer":
        return False
    domain = getattr(part, "domain", None)
    is_nominal = domain is not None and domain.nominal is not None
    return kind == ("string" if is_nominal else "integer")


def _check_source(question: Question) -> None:
    """Where the sensitivity comes from, and what is seen of the table because of it."""
    query, neighbors, at = question.query, question.neighbors, question.name
    ways = [query.guarantee is not None, query.share is not None, query.target is not None]
    has_least = query.guarantee is not None and query.guarantee.least is not None
    expected = [True, False, True] if has_least else None
    rule(
        ways == expected if has_least else ways.count(True) == 1,
        at,
        "another number",
        "one of guarantee, share and target",
    )
    rule(query.sensitivity is not None, f"{at}.sensitivity", "nothing", "one")
    is_declared = query.sensitivity == "declared"
    rule(is_declared == (query.declared is not None), f"{at}.declared", "a list", "with its source")
    rule(query.noise is not None, f"{at}.noise", "nothing", "where the noise is")
    rule(not (question.is_composed and question.is_empirical), at, "empirical", "a public source")
    can_be_on_statistic = query.kind in ("mode", "top", "quantiles", *STATISTICS)
    if question.on_statistic:
        is_public = can_be_on_statistic and query.sensitivity == "global"
        rule(is_public, f"{at}.noise", query.kind, "noise on the answer")
    else:
        rule(query.kind not in ("top", "quantiles"), f"{at}.noise", query.noise, "on the statistic")
    if isinstance(query, forms.SqlQuery):
        is_seen = question.is_empirical and neighbors.is_observed and not neighbors.fixed
        rule(is_seen, f"{at}.sensitivity", query.sensitivity, "empirical, and nothing fixed")
    if question.is_empirical and neighbors.is_observed:
        read = {getattr(part, "of", None) for part in question.parts if part.kind != "tuple"}
        read |= {getattr(part, "weight", None) for part in question.parts}
        read -= {None}
        rule(not read & neighbors.fixed, f"{at}.of", sorted(map(str, read)), "no fixed column")


def _check_mechanism(question: Question) -> None:
    """The named mechanism can answer this question."""
    query, at = question.query, question.name
    named = query.mechanism
    if named is None or question.on_statistic:
        return
    fitting = {"modular"}
    is_line = question.is_line and question.loss in LINE_LOSSES
    if len(question.group) == 1:
        fitting |= set(NEED_ONE_PART)
    if is_line:
        fitting |= set(NEED_A_LINE)
    if is_line and question.size <= MOST_IN_ROWS:
        fitting |= set(NEED_ROWS)
    rule(named in fitting, f"{at}.mechanism", named, "one that answers this question")
