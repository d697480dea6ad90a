"""Turns a release as it is written now into the smaller form that ``dp_release_verify`` reads.

Until the writer writes that form itself, the verifier is tried on releases that are turned into it:
what they say is the same, so every fault of one shows in the other.
"""

from __future__ import annotations

import io
import json
import math
import re
import secrets
import shutil
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from scipy import sparse
from scipy.sparse import linalg

from dp_release_verify import canonical, forms
from dp_release_verify.digests import commit, read_folder, sums_text
from dp_release_verify.mechanisms.noise import NoiseLaw
from dp_release_verify.tabulations import Shape, shape_of

Plain = dict[str, Any]

TYPES = {"integer": pa.int64(), "date": pa.date32(), "string": pa.string()}
STATISTICS = ("sum", "mean", "min", "max", "median")


def exact(value: object) -> str:
    """A number of a spec in its one form."""
    return canonical.exact(Fraction(Decimal(str(value)) if "/" not in str(value) else str(value)))


def without_null(value: Any) -> Any:
    """The value without fields that are null."""
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


class Converter:
    """One release on its way into the smaller form."""

    def __init__(self, public: Path, auditor: Path | None) -> None:
        self.public = public
        self.auditor = auditor
        self.record: Plain = json.loads((public / "release.json").read_bytes())
        self.spec: Plain = without_null(json.loads((public / "spec.json").read_bytes()))
        self.trees = {each["place"]: each["tree"] for each in self.record.get("expressions", [])}
        self.made = {each["name"]: each for each in self.record["queries"]}
        self.columns: dict[str, Plain] = {}
        for name, table in self.spec["tables"].items():
            joined: Plain = {}
            if "join" in table:
                joined = dict(self.spec["tables"][table["join"]["table"]]["columns"])
            derived = {column: of["type"] for column, of in table.get("derive", {}).items()}
            self.columns[name] = {**joined, **table["columns"], **derived}

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
        text = yaml.safe_load((self.public / "spec.yaml").read_text("utf-8"))
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

    # ---- What was made

    def law(self, path: Path) -> Plain:
        """A mechanism file without what follows from the question."""
        old: Plain = json.loads(path.read_bytes())
        family = {"integer": "integers"}.get(old["mechanism"], old["mechanism"])
        law: Plain = {"schema": "dp-release/mechanism/v1", "family": family}
        if family in ("integers", "noisy_sums"):
            law["noise"] = without_null(old["noise"])
        if family == "integers":
            law["ends"] = {"low": old["low_end"], "high": old["high_end"]}
            design = old["design"]
            stated = Fraction(design["lower_bound"])
            is_proved = design["bound"] == "proved" and stated > 0
            if design["bound_of"] == "noise on the integers" and is_proved:
                law["bound"] = {"at_least": canonical.exact(stated)}
                if design["multipliers"]:
                    law["bound"]["prices"] = design["multipliers"]
        for name in ("weights", "rows", "ratio", "block", "cap"):
            if name in old and not (name == "rows" and family != "channel"):
                law[name] = old[name]
        return law

    def sensitivity(self, path: Path) -> Plain:
        """What the auditor's folder has of a law: differences, or distances on a line."""
        old: Plain = json.loads(path.read_bytes())
        if old["mechanism"] == "modular":
            return {"differences": old["sensitivity"]}
        if "pairs" in old:
            return {"distances": sorted({abs(a - b) for a, b in old["pairs"]})}
        distances: list[int] = []
        for first, last in old["distances"]:
            distances += range(first, last + 1)
        return {"distances": distances}

    def made_query(self, old: Plain, into: Path, opened: Path | None) -> Plain:
        """One question as it was made, and the file of its law."""
        found = {name: old[name] for name in ("name", "definition", "epsilon", "delta", "cells")}
        found["charge"] = old["charge"]
        file = old["mechanism_file"]
        if "path" in file:
            found["mechanism"] = Path(file["path"]).stem
            self.write(
                into / f"mechanisms/{found['mechanism']}.json", self.law(self.public / file["path"])
            )
            return found
        key = secrets.token_bytes(32)
        if self.auditor is None or opened is None:
            found["commitment"] = commit(key, b"")
            return found
        path = self.auditor / f"mechanisms/{old['name']}.json"
        law, sensitivity = self.law(path), self.sensitivity(path)
        covered = {"law": law, "sensitivity": sensitivity}
        found["commitment"] = commit(key, canonical.dumps(covered))
        whole = {"schema": "dp-release/opened/v1", "release_id": self.record["release_id"]}
        self.write(opened / f"{old['name']}.json", {**whole, "key": key.hex(), **covered})
        return found

    def made_tabulation(self, old: Plain, into: Path) -> Plain:
        """A tabulation as it was made, and its files."""
        measured = []
        for each in old["measured"]:
            own = {**self.made_query(each, into, None), "level": each["level"]}
            measured.append({**own, "margin": each["margin"]})
            self.table(each["output"]["path"], into, {})
        levels = []
        for each in old["levels"]:
            path = each["output"]["path"]
            self.table(path, into, {})
            levels.append({"level": each["level"], "file": Path(path).stem})
        found = {"name": old["name"], "measured": measured, "levels": levels}
        for each in old["declared"]:
            self.table(each["output"]["path"], into, {})
            found["declared"] = Path(each["output"]["path"]).stem
        return found

    @staticmethod
    def write(path: Path, plain: Plain) -> None:
        """Write a file of canonical JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(canonical.dumps(plain))

    def table(self, name: str, into: Path, types: Plain) -> pa.Table:
        """A table in the smaller form: typed keys, gzip, three entries."""
        old = pq.read_table(self.public / name)
        kept = pq.ParquetFile(self.public / name).metadata.metadata
        fields, columns = [], []
        for field in old.schema:
            column = old.column(field.name)
            kind = TYPES.get(types.get(field.name, ""), field.type)
            wide = field.name.startswith("answer_code_")
            kind = pa.int64() if wide else kind
            if kind != field.type:
                column = column.cast(kind)
            fields.append(pa.field(field.name, kind, nullable=field.nullable))
            columns.append(column)
        table = pa.table(columns, schema=pa.schema(fields))
        entries = {}
        for key in (b"release_id", b"query", b"format"):
            entries[key.decode()] = kept[key].decode()
        if types:
            order = [(field, "ascending") for field in types if field in table.column_names]
            table = table.sort_by(order) if order else table
        path = into / "data" / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(parquet_bytes(table, entries))
        return table

    def keys(self, into: Path) -> Plain:
        """All key sets and areas in full; writes the released tables."""
        keys: dict[str, list[Any]] = {}
        for old in self.record["queries"]:
            types = {column: self.columns_of(old["name"])[column] for column in old["by"]}
            table = self.table(old["output"]["path"], into, types)
            for column in old["by"]:
                values = sorted(set(table.column(column).to_pylist()))
                keys[column] = [str(v) if types[column] == "date" else v for v in values]
        found: Plain = {"schema": "dp-release/keys/v1", "keys": keys}
        areas = {}
        for old in self.record.get("tabulations", []):
            lowest = pq.read_table(self.public / old["levels"][-1]["output"]["path"])
            levels = [each["level"] for each in old["levels"]]
            rows = {tuple(row[level] for level in levels) for row in lowest.to_pylist()}
            areas[old["name"]] = {"levels": levels, "rows": [list(row) for row in sorted(rows)]}
        if areas:
            found["areas"] = areas
        return found

    def columns_of(self, query: str) -> Plain:
        """The types of the columns of a question's table."""
        (plain,) = (each for each in self.spec["queries"] if each["name"] == query)
        return self.columns[plain["table"]]

    def convert(self, into: Path, opened: Path | None) -> None:
        """Write the release in the smaller form, and the auditor's folder."""
        keys = self.keys(into)
        made: Plain = {"queries": []}
        for old in self.record["queries"]:
            made["queries"].append(self.made_query(old, into, opened))
        guarantee = self.record["guarantee"]
        made["total"] = {name: guarantee[name] for name in ("definition", "epsilon", "delta")}
        if self.record.get("tabulations"):
            tabulations = self.record["tabulations"]
            made["tabulations"] = [self.made_tabulation(each, into) for each in tabulations]
        if self.record["composition"]["step"] is not None:
            made["step"] = self.record["composition"]["step"]
        software = {name: self.record["software"][name] for name in ("dp_release", "source")}
        release = {
            "schema": "dp-release/release/v1",
            "kind": self.record["kind"],
            "published": self.record["published"],
            "asked": self.asked(),
            "made": made,
            "software": software,
        }
        self.write(into / "release.json", release)
        self.write(into / "keys.json", keys)
        for number in range(len(self.record.get("tabulations", []))):
            add_estimates(into, number)
        for name in ("report.html", "datapackage.json", "spec.yaml"):
            shutil.copyfile(self.public / name, into / name)
        seal(into)


def add_estimates(into: Path, number: int) -> None:
    """Give the measured tables that no level publishes their estimates, solved with floats."""
    release = forms.loads(forms.Release, "release.json", (into / "release.json").read_bytes())
    keys = forms.loads(forms.Keys, "keys.json", (into / "keys.json").read_bytes())
    asked = (release.asked.tabulations or [])[number]
    made = (release.made.tabulations or [])[number]
    shape = shape_of(asked, keys)
    scaled, right, unpublished = [], [], {}
    for table in made.measured:
        path = into / f"data/{table.name}.parquet"
        level, margin = shape.levels.index(table.level), shape.ordered(table.margin)
        law = canonical.loads("law", (into / f"mechanisms/{table.mechanism}.json").read_bytes())
        noise = NoiseLaw("law", forms.read(forms.IntegersLaw, "law", law).noise)
        scale = 1 / math.sqrt(float(noise.moment(2)))
        added = added_up(shape, level, margin)
        scaled.append(added * scale)
        right.append(numbers_of(path, "measured") * scale)
        if margin not in [shape.ordered(each) for each in asked.publish[table.level]]:
            unpublished[path] = added
    for each in asked.constraints or ():
        if each.level is not None and made.declared is not None:
            # Declared numbers are exact: a weight that hides all noise.
            scaled.append(added_up(shape, 0, shape.ordered(each.margin or [])) * 1e5)
            right.append(numbers_of(into / f"data/{made.declared}.parquet", "count") * 1e5)
    matrix = sparse.vstack(scaled).tocsr()
    solved = linalg.lsqr(matrix, np.concatenate(right), atol=1e-15, btol=1e-15, iter_lim=10**5)[0]
    for path, added in unpublished.items():
        old = pq.read_table(path)
        estimates = pa.array(np.round(added @ solved, 6), pa.float64())
        field = pa.field("estimate", pa.float64(), nullable=False)
        schema = old.schema.remove_metadata().append(field)
        entries = pq.ParquetFile(path).metadata.metadata
        named = {key.decode(): value.decode() for key, value in entries.items()}
        columns = [*old.columns, estimates]
        path.write_bytes(parquet_bytes(pa.table(columns, schema=schema), named))


def numbers_of(path: Path, column: str) -> Any:
    """A column of a file, as floats."""
    return np.array(pq.read_table(path).column(column).to_pylist(), dtype=float)


def added_up(shape: Shape, level: int, margin: tuple[str, ...]) -> Any:
    """Which combinations of lowest area and categories each number of a table adds up."""
    lowest = len(shape.levels) - 1
    cells = [len(shape.breakdowns[name].labels) for name in shape.attributes]
    finest = list(product(range(len(shape.areas[lowest])), *map(range, cells)))
    rows = []
    for area, *categories in finest:
        for upper in range(lowest, level, -1):
            area = shape.parents[upper][area]  # noqa: PLW2901 - upwards
        rows.append(area * shape.size(margin) + cell_of(shape, margin, categories))
    size = (len(shape.areas[level]) * shape.size(margin), len(finest))
    return sparse.csr_matrix((np.ones(len(finest)), (rows, range(len(finest)))), size)


def cell_of(shape: Shape, margin: tuple[str, ...], categories: Sequence[int]) -> int:
    """The cell of a margin to which a combination belongs."""
    cell = 0
    for name in margin:
        breakdown = shape.breakdowns[name]
        cell = cell * len(breakdown.labels) + breakdown.of[categories[breakdown.attribute]]
    return cell


def seal(folder: Path) -> None:
    """Write SHA256SUMS anew."""
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    (folder / "SHA256SUMS").write_bytes(sums_text(read_folder(folder).sums))


def parquet_bytes(table: pa.Table, entries: dict[str, str]) -> bytes:
    """A Parquet file of the one shape that a release has."""
    stream = io.BytesIO()
    writer = pq.ParquetWriter(
        stream,
        table.schema,
        compression="gzip",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )
    writer.write_table(table, row_group_size=max(1, table.num_rows))
    writer.add_key_value_metadata(entries)
    writer.close()
    return stream.getvalue()


def listed(categories: Any) -> list[Any]:
    """Categories of a list or of a range."""
    if isinstance(categories, dict):
        first, last = categories["range"]
        return list(range(first, last + 1))
    return list(categories)


def convert(public: Path, into: Path, auditor: Path | None = None) -> Path | None:
    """Turn a release into the smaller form; gives the auditor's folder, if it has one."""
    if into.exists():
        shutil.rmtree(into)
    into.mkdir(parents=True)
    opened = None
    if auditor is not None:
        opened = into.parent / f"{into.name}-auditor"
        if opened.exists():
            shutil.rmtree(opened)
        opened.mkdir()
    Converter(public, auditor).convert(into, opened)
    return opened
