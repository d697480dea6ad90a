"""What a release says was asked, worked out from the plain data of a spec alone.

A second way to the same: it knows no model of a query, and nothing of the kinds in the product.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from typing import Any

import yaml

from dp_release_verify import canonical

Plain = dict[str, Any]

STATISTICS = ("sum", "mean", "min", "max", "median")


def exact(value: object) -> str:
    """A number of a spec in its one form."""
    return canonical.exact(Fraction(Decimal(str(value)) if "/" not in str(value) else str(value)))


def without_null(value: Any) -> Any:
    """The value without fields that are null."""
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


class Reading:
    """A spec on its way to what a release says was asked.

    Attributes:
        text: the YAML of the spec.
        spec: the same as plain data.
        trees: of its conditions and derived columns, by their places.
        made: the names of the questions that are published.
    """

    def __init__(self, text: bytes, spec: Any, trees: Plain, made: Collection[str]) -> None:
        self.text = text
        self.spec: Plain = without_null(spec)
        self.trees = trees
        self.made = made

    # ---- The question

    def asked(self) -> Plain:
        """The spec with every default written out."""
        spec = self.spec
        about = {name: str(value) for name, value in spec["release"].items()}
        tables = {}
        for name, table in spec["tables"].items():
            tables[name] = dict(table)
            if "derive" in table:
                derive = {}
                for column, of in table["derive"].items():
                    derive[column] = {**of, "tree": self.trees[f"tables.{name}.derive.{column}"]}
                tables[name]["derive"] = derive
                if not derive:
                    del tables[name]["derive"]
        budget = dict(spec["budget"])
        budget |= {name: exact(budget[name]) for name in ("epsilon", "delta")}
        privacy = {name: value for name, value in spec["privacy"].items() if value != []}
        asked = {"release": about, "tables": tables, "privacy": privacy, "budget": budget}
        queries = [self.query(query) for query in spec.get("queries", [])]
        if queries:
            asked["queries"] = queries
        if spec.get("tabulations"):
            asked["tabulations"] = [self.tabulation(each) for each in spec["tabulations"]]
        if spec.get("acceptance"):
            asked["acceptance"] = [self.acceptance(each) for each in spec["acceptance"]]
        return asked

    @staticmethod
    def acceptance(text: str) -> Plain:
        """An entry of ``acceptance`` as an object."""
        of, _, rest = text.rpartition(":")
        figure, _, cap = rest.partition("<=")
        found = {"figure": figure.strip(), "at_most": exact(cap.strip())}
        match = re.fullmatch(r"\s*(\S+)\s+(\S+)\s*\[(.*)\]\s*", of)
        if match is None:
            return {"of": of.strip(), **found}
        margin = [name.strip() for name in match[3].split(",") if name.strip()]
        return {"of": match[1], "level": match[2], "margin": margin, **found}

    def condition(self, sql: str, place: str) -> Plain:
        """A condition with its tree."""
        return {"sql": sql, "tree": self.trees[place]}

    def guarantee(self, plain: Plain) -> Plain:
        """A guarantee with its δ."""
        return {**plain, "epsilon": exact(plain["epsilon"]), "delta": exact(plain.get("delta", 0))}

    def query(self, plain: Plain) -> Plain:  # noqa: PLR0912 - one branch a field
        """A question with every default written out."""
        query = dict(plain)
        if not query.get("constraints"):
            query.pop("constraints", None)
        if not query.get("parameters"):
            query.pop("parameters", None)
        if query.get("objective") == "mean":
            del query["objective"]
        kinds = {each["name"]: each["kind"] for each in self.spec["queries"]}
        parts = query["of"] if query["kind"] == "tuple" else [query["name"]]
        # The category of a unit is that of its one row.
        is_local = all(kinds[part] == "per_unit" for part in parts)
        most = 1 if is_local else self.spec["privacy"]["max_rows_per_unit"]
        query.setdefault("max_rows_per_unit", most)
        if "where" in query:
            query["where"] = self.condition(query["where"], f"queries.{query['name']}.where")
        for name in ("bins", "grid"):
            if name in query:
                query["domain"] = {name: dict(query.pop(name))}
        if "grid" in query.get("domain", {}):
            query["domain"]["grid"]["scale"] = exact(query["domain"]["grid"]["scale"])
        is_published = query["name"] in self.made
        if not is_published:
            for name in ("mechanism", "loss", "noise", "sensitivity"):
                query.pop(name, None)
        else:
            self._published(query)
        kind = query["kind"]
        if kind == "top":
            query.setdefault("count", "units")
            query.setdefault("counts", False)
            query.setdefault("histogram", False)
        if kind == "quantiles":
            query["at"] = [exact(each) for each in query["at"]]
        if kind == "mode" and is_published and "weight" not in query:
            on_statistic = query["noise"] == "on_statistic"
            query.setdefault("count", "units" if on_statistic else "rows")
        if kind in (*STATISTICS, "quantiles") and "clamp" not in query and "values" not in query:
            bins = query["domain"].get("bins")
            if bins is not None:
                query["clamp"] = [bins["low"], bins["high"]]
        return query

    def _published(self, query: Plain) -> None:  # noqa: PLR0912 - one branch a field
        source = query["sensitivity"]
        if isinstance(source, dict):
            entries = source["declared"]
            query["declared"] = [each if isinstance(each, list) else [each] for each in entries]
            query["sensitivity"] = source = "declared"
        if "guarantee" in query:
            query["guarantee"] = self.guarantee(query["guarantee"])
        if "share" in query:
            query["share"] = exact(query["share"])
        if "target" in query:
            loss, _, cap = query["target"].partition("<=")
            query["target"] = {loss.strip(): exact(cap.strip())}
        if isinstance(query.get("loss"), dict):
            query["costs"] = [exact(each) for each in query["loss"]["table"]]
            query["loss"] = "table"
        if "prior" in query:
            query["prior"] = [exact(each) for each in query["prior"]]
        if "parameters" in query:
            query["parameters"] = {k: exact(v) for k, v in query["parameters"].items()}
        if "constraints" in query:
            query["constraints"] = [self.demand(each) for each in query["constraints"]]
        if query.get("mechanism") == "best":
            del query["mechanism"]
        if query.get("mechanism") == "integer":
            query["mechanism"] = "integers"
        kind = query["kind"]
        if kind in ("top", "quantiles"):
            query["noise"] = "on_statistic"
        elif kind in ("mode", *STATISTICS):
            query.setdefault("noise", "on_statistic" if source == "global" else "on_answer")
        else:
            query["noise"] = "on_answer"

    @staticmethod
    def demand(text: str) -> Plain:
        """A demand on noise as an object."""
        words = text.split()
        if words[0] == "equal":
            return {"equal": [int(each) for each in words[1:]]}
        if words[0] == "mean_square":
            return {"mean_square": exact(words[-1])}
        return {words[0]: {}}

    def order(self, tabulation: str, field: str) -> list[str]:
        """The names of a mapping in the order of the YAML, which canonical JSON does not keep."""
        text = yaml.safe_load(self.text)
        (plain,) = (each for each in text["tabulations"] if each["name"] == tabulation)
        return list(plain[field])

    def tabulation(self, plain: Plain) -> Plain:
        """A tabulation with its categories written out."""
        found = {name: value for name, value in plain.items() if value not in ({}, [])}
        if "where" in found:
            place = f"tabulations.{plain['name']}.where"
            found["where"] = self.condition(plain["where"], place)
        if "attributes" in found:
            found["attributes"] = [
                {"name": name, "categories": listed(plain["attributes"][name])}
                for name in self.order(plain["name"], "attributes")
            ]
        if "groupings" in found:
            found["groupings"] = []
            for name in self.order(plain["name"], "groupings"):
                of = plain["groupings"][name]
                classes = [{"label": k, "categories": listed(v)} for k, v in of["classes"].items()]
                found["groupings"].append({"name": name, "of": of["of"], "classes": classes})
        if "importance" in found:
            found["importance"] = {k: exact(v) for k, v in plain["importance"].items()}
        if "guarantee" in found:
            found["guarantee"] = self.guarantee(plain["guarantee"])
        if "constraints" in found:
            found["constraints"] = []
            for each in plain["constraints"]:
                own = dict(each)
                if "impossible" in own:
                    own["impossible"] = {k: listed(v) for k, v in each["impossible"].items()}
                found["constraints"].append(own)
        if "strategy" in found:
            found["strategy"] = dict(plain["strategy"])
            for each in found["strategy"].get("tables", []):
                each["share"] = exact(each["share"])
        return found


def listed(categories: Any) -> list[Any]:
    """Categories of a list or of a range."""
    if isinstance(categories, dict):
        first, last = categories["range"]
        return list(range(first, last + 1))
    return list(categories)
