"""Specs as a statistician writes them: every kind, relation and definition."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, exp, log, prod
from random import Random
from typing import Any, TypeAlias

from tests.street.conditions import Condition, Derived, any_condition, derived_columns
from tests.street.tables import KINDS, Street, make_street

Plain: TypeAlias = dict[str, Any]

SCOPE = "street"
RELEASE = "street-1"
MOST_CELLS = 400
DERIVED_KEYS = {"hour": (0, 23), "weekday": (1, 7), "season": (1, 4)}
# What a wish with a share may be; probabilities are weights.
ON_STATISTIC = ("sum", "mean", "mode", "median", "max", "quantiles", "top")


@dataclass(frozen=True)
class Wish:
    """A query, as it is asked.

    Attributes:
        query: as it stands in the spec.
        where: its condition, if it has one.
    """

    query: Plain
    where: Condition | None

    @property
    def name(self) -> str:
        """The name of the query."""
        return str(self.query["name"])

    @property
    def kind(self) -> str:
        """The kind of query."""
        return str(self.query["kind"])

    @property
    def by(self) -> list[str]:
        """The key columns."""
        return list(self.query["by"])

    @property
    def is_on_statistic(self) -> bool:
        """Whether the noise is on what decides the answer."""
        if self.kind in ("count", "per_unit", "tuple", "sql"):
            return False
        return self.query.get("sensitivity") == "global" and "noise" not in self.query

    @property
    def is_published(self) -> bool:
        """Whether it has a table of its own."""
        return bool({"guarantee", "share", "target"} & self.query.keys())


@dataclass(frozen=True)
class Case:
    """All that follows from a seed.

    Attributes:
        seed: the integer from which it follows.
        street: the tables.
        spec: as it is written to the file.
        wishes: the queries of the spec.
        derived: the derived columns of the main table.
        files: public files beside the spec, by name.
        budget: whether the budget is plenty, far above, exactly, or less than the charge.
        ledger: the cap of the ledger's scope over that of the spec; None is no ledger.
        is_large: whether every ε is so large that answers are nearly those of the table.
    """

    seed: int
    street: Street
    spec: Plain
    wishes: tuple[Wish, ...] = ()
    derived: tuple[Derived, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    budget: str = "plenty"
    ledger: str | None = None
    is_large: bool = False

    @property
    def privacy(self) -> Plain:
        """The unit, the relation and the bounds."""
        return dict(self.spec["privacy"])

    @property
    def is_one_way(self) -> bool:
        """Whether a neighbor has a unit more or less, and none in another's place."""
        return bool(self.privacy["neighbors"] == "add_remove")


def exact(number: float, digits: int = 3) -> str:
    """A number as a spec writes it: so many digits that count, no exponent."""
    if number <= 0:
        return "0"
    places = max(0, digits - 1 - int(log(number, 10) // 1))
    text = f"{number:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def log_uniform(rng: Random, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return exp(rng.uniform(log(low), log(high)))


def nice(number: float) -> int:
    """The next of 1, 2, 5, 10, 20, … that is not below; what people write as a bound."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= number:
                return factor * step
        step *= 10


@dataclass
class Draft:
    """A spec in the making.

    Attributes:
        rng: the chance of this case.
        street: the tables.
        is_large: whether every ε is large.
        privacy: the section of the spec.
        derived: all derived columns that may be used, by name.
        joined: whether the facts are joined to the main table.
        plan: how noise is asked for: guarantee, share, or target.
        keys: the key sets that were needed so far.
        used: the columns that were needed so far.
        files: the public files that were needed so far.
    """

    rng: Random
    street: Street
    is_large: bool
    privacy: Plain
    derived: dict[str, Derived]
    joined: bool
    plan: str
    keys: Plain = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows the main table has."""
        return len(self.street.main.rows)

    def typical(self, column: str) -> list[Any]:
        """Values that occur in a column."""
        facts = self.street.facts
        if column in self.derived:
            values = [
                self.derived[column].value(value)
                for value in self.typical(self.derived[column].reads)
            ]
        elif facts is not None and column in facts.columns:
            values = facts.rows[column].tolist()
        else:
            values = self.street.main.rows[column].tolist()
        return [value for value in values if value is not None]

    def quantile(self, column: str, share: float) -> int:
        """About the value that this share of the rows does not exceed."""
        values = sorted(self.typical(column)) or [1]
        return int(values[min(len(values) - 1, int(share * len(values)))])

    def clamp(self, column: str) -> list[int]:
        """The bounds that a statistician writes for a column, without having seen it all."""
        low = 0 if self.quantile(column, 0.02) >= 0 else -nice(-self.quantile(column, 0.02))
        high = nice(max(1, self.quantile(column, self.rng.choice((0.8, 0.95, 0.999)))))
        return [low, max(high, low + 2)]

    def key_set(self, column: str) -> Any:
        """The public keys of a column: some have no row, and some rows have none."""
        rng = self.rng
        if column in DERIVED_KEYS:
            return {"range": list(DERIVED_KEYS[column])}
        if column == "month":
            return {"range": [1, 12]} if rng.random() < 0.8 else [1, 2, 3, 4, 5, 6]
        listed = {
            "quarter": list("nesw"),
            "sex": ["f", "m"],
            "band": ["low", "high"],
            "kind": list(KINDS[: rng.randint(3, len(KINDS))]),
        }
        if column in listed:
            return listed[column]
        places = list(self.street.places)
        if len(places) > 2 and rng.random() < 0.3:
            places.pop(rng.randrange(len(places)))
        if rng.random() < 0.3:
            places += ["x98", "x99"]
        if rng.random() < 0.25:
            self.files["places.csv"] = "\n".join(["place", *places]) + "\n"
            return {"file": "places.csv"}
        return places

    def size(self, column: str) -> int:
        """How many keys a column has."""
        keys = self.keys[column]
        if isinstance(keys, list):
            return len(keys)
        if "file" in keys:
            return len(self.files[keys["file"]].splitlines()) - 1
        first, last = keys["range"]
        return int(last - first + 1)

    def by(self, avoid: str | None = None) -> list[str]:
        """Up to two key columns."""
        rng = self.rng
        offered = [
            "place",
            "place",
            "month",
            "kind",
            "quarter",
            "season",
            "weekday",
            "band",
            "hour",
        ]
        if self.joined:
            offered += ["sex", "sex"]
        chosen: list[str] = []
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            column = rng.choice(offered)
            if column in chosen or column == avoid:
                continue
            if column not in self.keys:
                self.keys[column] = self.key_set(column)
            if prod(self.size(name) for name in [*chosen, column]) <= MOST_CELLS:
                chosen.append(column)
        self.used |= set(chosen)
        return chosen

    def where(self, chance: float = 0.35, empirical: bool = False) -> Condition | None:
        """A condition, in some queries."""
        if self.rng.random() >= chance:
            return None
        allowed = ["amount", "rating", "kind", "paid", "month", "day", "big", "hour"]
        if not (empirical and self.privacy.get("fixed")):
            allowed.append("quarter")
        if self.joined:
            allowed += ["age", "sex"]
        typical = {column: self.typical(column) for column in allowed}
        condition = any_condition(self.rng, typical, allowed)
        self.used |= condition.columns
        return condition

    def guarantee(self, pure: bool = False, probabilistic: bool = True) -> Plain:
        """What a query claims: mostly pure, else with a δ."""
        rng = self.rng
        epsilon = rng.uniform(15, 20) if self.is_large else log_uniform(rng, 0.05, 20)
        way = "pure"
        if not pure:
            offered = ["pure", "pure", "pure", "approximate", "approximate"]
            way = rng.choice([*offered, "probabilistic"] if probabilistic else offered)
        delta = "0" if way == "pure" else exact(log_uniform(rng, 1e-9, 1e-2), 2)
        return {"definition": way, "epsilon": exact(epsilon), "delta": delta}

    def answered(self, on_statistic: bool, ordered: bool, few: bool = False) -> Plain:
        """How the noise of a worst-case query is asked for, and its loss where it has one."""
        rng = self.rng
        fields: Plain = {"sensitivity": "global"}
        if not on_statistic and ordered:
            fields["loss"] = rng.choice(("absolute", "squared", "squared", "error_rate"))
        if self.plan == "share" and (on_statistic or ordered) and rng.random() < 0.85:
            return fields | {"share": rng.choice(("1", "1", "2", "1/2"))}
        if self.plan == "target" and ordered and not on_statistic:
            reach = exact(log_uniform(rng, 0.5, 30), 2)
            fields |= {"loss": "absolute", "target": f"absolute <= {reach}"}
            if rng.random() < 0.4:
                fields["guarantee"] = {"definition": "pure", "epsilon": "20", "least": "epsilon"}
            return fields
        fields["guarantee"] = self.guarantee(pure=on_statistic and rng.random() < 0.8)
        claimed = fields["guarantee"]
        # Answers in order have probabilistic guarantees up to 64 answers; the page says so.
        if claimed["definition"] == "probabilistic" and ordered and not on_statistic and not few:
            claimed["fallback"] = "approximate"
        return fields

    def empirical(self, ordered: bool) -> Plain:
        """How the noise of an instance-specific query is asked for."""
        fields: Plain = {"sensitivity": "empirical"}
        fields["guarantee"] = self.guarantee(probabilistic=not ordered)
        if ordered:
            fields["loss"] = self.rng.choice(("absolute", "squared", "error_rate"))
        return fields


def count_query(draft: Draft) -> tuple[Plain, Condition | None]:
    """How many rows, or how many units."""
    rng = draft.rng
    query: Plain = {"kind": "count", "by": draft.by()}
    if rng.random() < 0.4:
        query["of"] = draft.street.unit
    empirical = draft.plan == "guarantee" and rng.random() < 0.12
    few = rng.random() < 0.15
    most = rng.choice((20, 60)) if few else nice(rng.choice((1, 2)) * draft.rows)
    query["domain"] = {"ordered": {"min": 0, "max": most}}
    if not empirical and not few and rng.random() < 0.5:
        query["domain"] = {"integers": {}}
    if not empirical and rng.random() < 0.15:
        query["max_rows_per_unit"] = max(1, draft.privacy["max_rows_per_unit"] // 2)
    where = draft.where(0.5, empirical)
    fields = draft.empirical(ordered=True) if empirical else draft.answered(False, True, few)
    if rng.random() < 0.3:
        query["units"] = "visits"
    if not empirical and "guarantee" in fields and "target" not in fields:
        if rng.random() < 0.06:
            fields["mechanism"] = "geometric_clamped"
        elif rng.random() < 0.06:
            query["max_rows_per_unit"] = 1
            fields["sensitivity"] = {"declared": [1]}
    return query | fields, where


def sum_query(draft: Draft) -> tuple[Plain, Condition | None]:
    """A sum of amounts in bins, or of energy on a grid."""
    rng = draft.rng
    by = draft.by()
    if rng.random() < 0.3:
        most = nice(draft.quantile("kwh", 0.98) * 1000 + 1)
        step = rng.choice((10, 100))
        top = ceil(nice(draft.rows / 2 * most / 3) / step) * step
        while top > 500_000_000 or top // step > 20_000:
            step *= 10
            top = min(500_000_000, ceil(top / step) * step)
        grid = {"low": 0, "high": top, "step": step, "scale": "0.001"}
        draft.used.add("kwh")
        query: Plain = {"kind": "sum", "of": "kwh", "by": by, "clamp": [0, most], "grid": grid}
        return query | draft.answered(True, False), draft.where()
    column = rng.choice(("amount", "amount", "rating"))
    clamp = draft.clamp(column)
    cells = max(1, prod(draft.size(name) for name in by))
    high = nice(max(10, clamp[1] * draft.rows / cells))
    low = min(0, ceil(clamp[0] * draft.rows / cells))
    return binned(draft, {"kind": "sum", "of": column, "by": by, "clamp": clamp}, low, high)


def mean_query(draft: Draft) -> tuple[Plain, Condition | None]:
    """A mean of amounts, ratings or ages."""
    rng = draft.rng
    columns = ("amount", "rating", "age") if draft.joined else ("amount", "rating")
    column = rng.choice(columns)
    clamp = draft.clamp(column)
    query: Plain = {"kind": "mean", "of": column, "by": draft.by(), "clamp": clamp}
    return binned(draft, query, clamp[0], clamp[1])


def rank_query(draft: Draft) -> tuple[Plain, Condition | None]:
    """A median, or one of the least or largest values."""
    rng = draft.rng
    column = rng.choice(("amount", "rating"))
    low, high = draft.clamp(column)
    query: Plain = {"kind": rng.choice(("median", "min", "max")), "of": column, "by": draft.by()}
    return binned(draft, query, low, high)


def binned(draft: Draft, query: Plain, low: int, high: int) -> tuple[Plain, Condition | None]:
    """Bins for a statistic, and where its noise is."""
    rng = draft.rng
    draft.used.add(query["of"])
    way = (
        "statistic"
        if draft.plan != "guarantee"
        else rng.choice(("statistic",) * 4 + ("answer", "empirical"))
    )
    most = rng.choice((20, 50, 100, 200)) if way == "statistic" else rng.choice((5, 10, 20))
    query["bins"] = {"low": low, "high": high, "count": max(2, min(most, high - low))}
    if rng.random() < 0.3:
        query["units"] = "euros"
    if way == "empirical":
        return query | draft.empirical(ordered=True), draft.where(empirical=True)
    if way == "answer":
        few = query["bins"]["count"] <= 64
        return query | {"noise": "on_answer"} | draft.answered(False, True, few), draft.where()
    if query["kind"] in ("min", "max"):
        query["rank"] = rng.choice((3, 5, 10, 20))
    return query | draft.answered(True, True), draft.where()


def quantiles_query(draft: Draft) -> tuple[Plain, Condition | None]:
    """Quartiles and the like."""
    rng = draft.rng
    column = rng.choice(("amount", "rating", "age") if draft.joined else ("amount", "rating"))
    low, high = draft.clamp(column)
    shares = (["0.5"], ["0.25", "0.5", "0.75"], ["0.1", "0.9"], ["1/3", "2/3"])
    query: Plain = {"kind": "quantiles", "of": column, "at": rng.choice(shares), "by": draft.by()}
    draft.used.add(column)
    if high - low <= 1000 and rng.random() < 0.6:
        query["domain"] = {"ordered": {"min": low, "max": high}}
    else:
        query["bins"] = {"low": low, "high": high, "count": max(2, min(50, high - low))}
    return query | draft.answered(True, True), draft.where()


def categories(draft: Draft) -> tuple[str, Plain]:
    """A column of categories, and the domain of its commonest."""
    rng = draft.rng
    column = rng.choice(("kind", "kind", "kind", "hour", "weekday", "rating"))
    domains: dict[str, Plain] = {
        "kind": {"nominal": list(KINDS[: rng.randint(3, len(KINDS))])},
        "hour": {"cyclic": 24},
        "weekday": {"ordered": {"min": 1, "max": 7}},
        "rating": {"ordered": {"min": 0, "max": 10}},
    }
    draft.used.add(column)
    return column, domains[column]


def mode_query(draft: Draft) -> tuple[Plain, Condition | None]:
    """The commonest category, by units, rows or amount."""
    rng = draft.rng
    column, domain = categories(draft)
    query: Plain = {"kind": "mode", "of": column, "by": draft.by(column), "domain": domain}
    way = (
        "statistic"
        if draft.plan != "guarantee"
        else rng.choice(("statistic",) * 4 + ("answer", "empirical"))
    )
    weigh = rng.random()
    if weigh < 0.2:
        query |= {"weight": "amount", "clamp": [0, max(1, draft.clamp("amount")[1])]}
        draft.used.add("amount")
    elif weigh < 0.5:
        query["count"] = "rows"
    ordered = "ordered" in domain
    if way == "empirical":
        return query | draft.empirical(ordered), draft.where(empirical=True)
    if way == "answer":
        fields = draft.answered(False, ordered, few=True)
        return query | {"noise": "on_answer"} | fields, draft.where()
    return query | draft.answered(True, ordered), draft.where()


def top_query(draft: Draft) -> tuple[Plain, Condition | None]:
    """The k commonest categories, with or without their counts."""
    rng = draft.rng
    column, domain = categories(draft)
    sizes = {"kind": len(domain.get("nominal", ())), "hour": 24, "weekday": 7, "rating": 11}
    k = rng.randint(1, min(5, sizes[column] - 1))
    query: Plain = {"kind": "top", "of": column, "k": k, "by": draft.by(column), "domain": domain}
    if rng.random() < 0.4:
        query["count"] = "rows"
    extra = rng.choice((None, "counts", "histogram"))
    if extra is not None:
        query[extra] = True
    return query | draft.answered(True, False), draft.where()


BUILDERS = {
    "count": count_query,
    "sum": sum_query,
    "mean": mean_query,
    "rank": rank_query,
    "quantiles": quantiles_query,
    "mode": mode_query,
    "top": top_query,
}
OFTEN = {"count": 7, "sum": 4, "mean": 4, "rank": 3, "quantiles": 2, "mode": 4, "top": 2}


def any_wishes(draft: Draft, many: int) -> list[Wish]:
    """So many queries of any kind."""
    wishes = []
    for number in range(many):
        kinds = list(BUILDERS)
        if draft.plan == "target":
            kinds = ["count"]
        chosen = draft.rng.choices(kinds, [OFTEN[kind] for kind in kinds])[0]
        query, where = BUILDERS[chosen](draft)
        wishes.append(named(f"q{number}", query, where))
    return wishes


def named(name: str, query: Plain, where: Condition | None) -> Wish:
    """A wish with its name, its table and its condition in the order of the pages."""
    start: Plain = {"name": name, "kind": query["kind"], "table": "visits"}
    if where is not None:
        start["where"] = where.sql
    return Wish(start | query, where)


def tuple_wishes(draft: Draft) -> list[Wish]:
    """Two modes that are answered jointly."""
    by = draft.by("kind")
    draft.used |= {"kind", "season"}
    parts = [
        {"kind": "mode", "of": "kind", "by": by, "domain": {"nominal": list(KINDS[:4])}},
        {"kind": "mode", "of": "season", "by": by, "domain": {"cyclic": 4}},
    ]
    wishes = [named(f"part{number}", part, draft.where()) for number, part in enumerate(parts)]
    source = draft.rng.choice(("global", "empirical"))
    joint: Plain = {"kind": "tuple", "of": ["part0", "part1"], "by": by, "sensitivity": source}
    joint["guarantee"] = draft.guarantee()
    return [*wishes, named("both", joint, None)]


def sql_wishes(draft: Draft) -> list[Wish]:
    """A statement of the curator's own."""
    step = max(1, draft.quantile("amount", 0.9) // 8)
    draft.keys["place"] = draft.key_set("place")
    draft.used |= {"place", "amount"}
    sql = f"SELECT place, max(amount) // {step} AS answer FROM visits GROUP BY place"
    query: Plain = {
        "kind": "sql",
        "sql": sql,
        "by": ["place"],
        "domain": {"ordered": {"min": 0, "max": 9}},
    }
    return [named("largest", query | draft.empirical(ordered=True), None)]


def attribute_wishes(draft: Draft) -> list[Wish]:
    """Questions that all read the attribute, which is the kind."""
    rng = draft.rng
    draft.used.add("kind")
    domain = {"nominal": list(KINDS)}
    wishes = []
    if len(draft.street.units) <= 60 and rng.random() < 0.6:
        unit = draft.street.unit
        draft.keys[unit] = list(draft.street.units)
        own: Plain = {"kind": "per_unit", "of": "kind", "by": [unit], "domain": domain}
        own |= {"sensitivity": "global", "guarantee": draft.guarantee()}
        wishes.append(named("own", own, None))
    while len(wishes) < 2:
        query, where = mode_query(draft) if rng.random() < 0.5 else count_query(draft)
        if query["kind"] == "mode":
            query |= {"of": "kind", "domain": domain}
            query["by"] = [name for name in query["by"] if name != "kind"]
        elif where is None or "kind" not in where.columns:
            where = any_condition(rng, {"kind": list(KINDS[:3])}, ["kind"])
        wishes.append(named(f"q{len(wishes)}", query, where))
    return wishes


def make_case(seed: int) -> Case:
    """The case of a seed."""
    rng = Random(seed)  # noqa: S311 - a table and a spec
    theme = rng.choices(("wishes", "tabulation", "attribute", "tuple", "sql"), (80, 8, 5, 4, 3))[0]
    if theme == "tabulation":
        from tests.street.tabulations import tabulation_case

        return tabulation_case(seed, rng)
    street = make_street(rng, most_units=120 if theme == "sql" else 3000)
    draft = start(rng, street, theme)
    makers = {"attribute": attribute_wishes, "tuple": tuple_wishes, "sql": sql_wishes}
    if theme == "wishes":
        wishes = any_wishes(draft, rng.choice((1, 1, 2, 2, 3, 4)))
    else:
        wishes = makers[theme](draft)
    return finish(seed, draft, wishes)


def start(rng: Random, street: Street, theme: str) -> Draft:
    """The privacy of a spec and how noise is asked for, before the first query."""
    busiest = max(street.main.rows[street.unit].value_counts().tolist() or [1])
    bound = rng.choice((max(1, busiest // 3), busiest, nice(busiest)))
    neighbors = rng.choices(("add_remove", "replace_one"), (65, 35))[0]
    privacy: Plain = {
        "unit": street.unit,
        "neighbors": "attribute" if theme == "attribute" else neighbors,
        "max_rows_per_unit": bound if rng.random() < 0.7 else min(bound, 10),
    }
    if theme == "attribute":
        privacy["attribute"] = "kind"
    if rng.random() < 0.2:
        privacy["max_cells_per_unit"] = rng.randint(1, 4)
    if rng.random() < 0.35 and theme != "sql":
        privacy["fixed"] = ["quarter"]
    plan = "guarantee"
    if theme == "wishes":
        plan = rng.choices(("guarantee", "share", "target"), (80, 15, 5))[0]
    is_large = plan == "guarantee" and rng.random() < 0.35
    joined = street.facts is not None and theme == "wishes" and rng.random() < 0.7
    edge = nice(rng.choice((10, 30, 80)))
    return Draft(rng, street, is_large, privacy, derived_columns(edge), joined, plan)


def most_rows(query: Plain, privacy: Plain) -> int:
    """The most rows of a unit that a query reads."""
    return int((query if "max_rows_per_unit" in query else privacy)["max_rows_per_unit"])


def cells_touched(case: Case, query: Plain) -> int:
    """The most cells that one change of a unit can touch, of a whole case."""
    keys = case.spec.get("keys", {})
    draft = Draft(Random(0), case.street, False, case.privacy, {}, False, "", keys)  # noqa: S311
    draft.files = case.files
    return most_cells(draft, query)


def most_cells(draft: Draft, query: Plain) -> int:
    """The most cells that one change of a unit can touch."""
    fixed = draft.privacy.get("fixed", ())
    sizes = prod(draft.size(name) for name in query["by"] if name not in fixed)
    if query["kind"] == "sql":
        return sizes
    rows = most_rows(query, draft.privacy)
    touched = min(sizes, rows, int(draft.privacy.get("max_cells_per_unit", sizes)))
    return min(sizes, 2 * touched) if draft.privacy["neighbors"] != "add_remove" else touched


def budget_of(draft: Draft, wishes: list[Wish]) -> tuple[Plain, str]:
    """The budget, and how it lies beside the charge."""
    rng = draft.rng
    charged, losing = Fraction(0), Fraction(0)
    for wish in wishes:
        if "guarantee" not in wish.query:
            continue
        cells = most_cells(draft, wish.query)
        charged += cells * Fraction(wish.query["guarantee"]["epsilon"])
        losing += cells * Fraction(wish.query["guarantee"].get("delta", "0"))
    if draft.plan != "guarantee":
        left = log_uniform(rng, 0.3, 20) if draft.plan == "share" else rng.uniform(100, 300)
        delta = rng.choice((0, 0, 1e-6, 1e-5, 1e-9)) + float(min(Fraction(1, 2), losing))
        epsilon = exact(left + float(charged), 6)
        return {"scope": SCOPE, "epsilon": epsilon, "delta": exact(delta, 6)}, "shared"
    way = rng.choices(("plenty", "far", "exact", "small"), (50, 15, 27, 8))[0]
    factor = Fraction(50) if way == "far" else Fraction(6, 5)
    most = min(Fraction(1, 2), losing * 2)
    budget = {
        "scope": SCOPE,
        "epsilon": exact(float(charged * factor)),
        "delta": exact(float(most)),
    }
    if way == "plenty" and rng.random() < 0.15:
        budget["composition"] = "pld"
    return budget, way


def finish(seed: int, draft: Draft, wishes: list[Wish]) -> Case:
    """The whole spec."""
    rng, street = draft.rng, draft.street
    derived = [draft.derived[name] for name in sorted(draft.used & draft.derived.keys())]
    read = draft.used | {column.reads for column in derived}
    privacy = draft.privacy
    read |= set(privacy.get("fixed", ()))
    columns = {
        name: kind
        for name, kind in street.main.columns.items()
        if name == street.unit or name in read or rng.random() < 0.15
    }
    visits: Plain = {"path": street.main.file, "columns": columns}
    if derived:
        visits["derive"] = {
            column.name: {"type": column.type, "sql": column.sql} for column in derived
        }
    tables = {"visits": visits}
    if draft.joined and street.facts is not None:
        visits["join"] = {"table": "people"}
        tables["people"] = {"path": street.facts.file, "columns": dict(street.facts.columns)}
    budget, way = budget_of(draft, wishes)
    spec = {
        "spec": "dp-release/spec/v1",
        "release": release_info(),
        "tables": tables,
        "privacy": privacy,
        "budget": budget,
        "queries": [wish.query for wish in wishes],
    }
    needed = {name for wish in wishes for name in wish.by}
    if needed:
        spec["keys"] = {name: keys for name, keys in draft.keys.items() if name in needed}
    ledger = rng.choices((None, "1", "1.5", "0.6"), (70, 12, 12, 6))[0]
    return Case(
        seed,
        street,
        spec,
        tuple(wishes),
        tuple(derived),
        dict(draft.files),
        way,
        ledger,
        draft.is_large,
    )


def release_info() -> Plain:
    """Who publishes."""
    return {
        "id": RELEASE,
        "title": "Visits of a year",
        "curator": "Office of the street",
        "contact": "street@example.org",
        "purpose": "planning",
        "period": "2024",
        "license": "CC-BY-4.0",
    }


def with_budget(case: Case, epsilon: str, delta: str) -> Case:
    """The case with another budget."""
    spec = case.spec | {"budget": case.spec["budget"] | {"epsilon": epsilon, "delta": delta}}
    return replace(case, spec=spec)
