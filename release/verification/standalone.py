"""A second verifier of dp-release: one file, standard library only, written from the page alone.

    python3 -I -S standalone.py PUBLIC [--auditor DIR] [--ledger DIR] [--trust KEY]… [--require …]

It was written from ``docs/design/format.md`` and shares no code with the program that writes
releases. The numbers in brackets are sections and steps of that page. It prints what it *proved*
in exact arithmetic, what it *tested* by comparison, and what it did *not read*. The exit status is
0 if all that it reads is right, 1 if the release is refused, and 3 if something it reads was not
there: a signature, an auditor bundle, or ``spec.json``.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import hashlib
import hmac
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise, permutations, product
from math import gcd, isqrt, lcm, prod
from pathlib import Path
from typing import Any

Plain = dict[str, Any]

NEVER_READ = (
    "the tables (Parquet): their hashes are compared, their keys and answers are not opened",
    "spec.yaml: this file reads spec.json, and cannot compare it with the YAML",
    "report.html, datapackage.json and registry.yaml: their hashes are compared, no more",
    "the trees of conditions, the fixed texts, accuracy and expected loss of mechanisms, and the "
    "rules of a spec that no figure here rests on",
    "lower bounds of other classes than noise on the integers; that a share or target claims no "
    "more than it needs; the estimates of tabulations; residuals; cosignatures; stores",
)


class RefusedError(Exception):
    """A check failed: the file, the check, what was found and what was expected."""

    def __init__(self, file: str, check: str, found: object, expected: object) -> None:
        cut = [str(value)[:300] for value in (found, expected)]
        super().__init__(f"{file}: {check}: found {cut[0]}, expected {cut[1]}")


class UnreadError(Exception):
    """Something is needed that stands in a table alone."""


def same(file: str, check: str, found: object, expected: object) -> None:
    """Refuse values that differ; JSON tells ``true`` from 1, so types are compared too."""
    if type(found) is not type(expected) or found != expected:
        raise RefusedError(file, check, repr(found), repr(expected))


def need(holds: object, file: str, check: str, found: object, expected: object) -> None:
    """Refuse if a condition does not hold."""
    if not holds:
        raise RefusedError(file, check, found, expected)


@dataclass
class Verdict:
    """What was proved and tested, and what was there to be read and could not be."""

    proved: list[str] = field(default_factory=list)
    tested: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


# ---- Canonical JSON (1.1) ----------------------------------------------------------------------


def canonical(value: Any) -> bytes:
    """RFC 8785 for objects, lists, strings, booleans, null and integers."""

    def ordered(node: Any) -> Any:
        if isinstance(node, dict):
            keys = sorted(node, key=lambda key: str(key).encode("utf-16-be"))
            return {key: ordered(node[key]) for key in keys}
        return [ordered(item) for item in node] if isinstance(node, list) else node

    text = json.dumps(ordered(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def read_json(file: str, data: bytes) -> Plain:
    """One object in canonical form; a repeated key or a float cannot serialise to its bytes."""

    def refuse(text: str) -> Any:
        raise ValueError(f"the number {text[:40]}")

    try:
        value = json.loads(data.decode("utf-8"), parse_float=refuse, parse_constant=refuse)
        is_canonical = isinstance(value, dict) and canonical(value) == data
    except (ValueError, RecursionError) as error:
        raise RefusedError(file, "JSON", error, "canonical JSON") from error
    need(is_canonical, file, "JSON", "another form", "one object in canonical form")
    check_integers(file, value)
    plain: Plain = value
    return plain


def check_integers(file: str, value: Any) -> None:
    """All numbers are integers below 2^53."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            check_integers(file, item)
    elif isinstance(value, int):
        need(abs(value) < 2**53, file, "number", value, "at most 2^53 - 1")


def check_shape(file: str, at: str, value: Any, shape: Any) -> None:
    """Compare a value with a shape: a type, a set of choices, None, [items], {fields}, (either…).

    A field whose name ends in ``?`` may be absent. Fields that the shape does not name are refused.
    """
    if isinstance(shape, dict):
        need(type(value) is dict, file, at, type(value).__name__, "an object")
        names = {name.rstrip("?") for name in shape}
        needed = {name for name in shape if not name.endswith("?")}
        need(needed <= set(value) <= names, file, at, sorted(value), f"the fields {sorted(names)}")
        for name, inner in shape.items():
            if name.rstrip("?") in value:
                check_shape(file, f"{at}.{name}".strip(".?"), value[name.rstrip("?")], inner)
    elif isinstance(shape, list):
        need(type(value) is list, file, at, type(value).__name__, "a list")
        for place, item in enumerate(value):
            check_shape(file, f"{at}[{place}]", item, shape[0])
    elif isinstance(shape, tuple):
        need(any(fits(value, each) for each in shape), file, at, value, "another form")
    elif isinstance(shape, re.Pattern):
        right = type(value) is str and shape.fullmatch(value)
        need(right, file, at, repr(value), shape.pattern)
    elif isinstance(shape, frozenset):
        need(type(value) is str and value in shape, file, at, repr(value), sorted(shape))
    elif shape is None:
        need(value is None, file, at, repr(value), "null")
    else:
        need(type(value) is shape, file, at, repr(value), shape.__name__)


def fits(value: Any, shape: Any) -> bool:
    """Whether a value has a shape."""
    try:
        check_shape("", "", value, shape)
    except RefusedError:
        return False
    return True


# ---- Exact numbers (1.2), and the rationals about e^ε (1.3) ------------------------------------

EXACT = re.compile(r"(?=.{1,400}\Z)[0-9]+(\.[0-9]+|/[1-9][0-9]*)?")
WHOLE = re.compile(r"(?=.{1,400}\Z)(0|[1-9][0-9]*)")
SCALE = 10**40


def number(text: Any) -> Fraction:
    """The value of an exact number; a spec may hold an integer in its place."""
    if type(text) is int and text >= 0:
        return Fraction(text)
    need(type(text) is str and EXACT.fullmatch(text), "file", "exact number", text, "an exact one")
    return Fraction(text)


def places_of(scaled: int, places: int) -> str:
    """The decimal form of scaled / 10^places."""
    if not places:
        return str(scaled)
    digits = str(scaled).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


def exact(value: Fraction) -> str:
    """``exact(x)`` of 1.2."""
    rest, places = value.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    return places_of(int(value * 10**places), places)


def up(value: Fraction, places: int) -> str:
    """``up(x, p)`` of 1.2."""
    return places_of(ceil(value * 10**places), places)


def ceil(value: Fraction) -> int:
    """The least integer that is not below."""
    return -((-value.numerator) // value.denominator)


def ceil_div(value: int, by: int) -> int:
    """The quotient, rounded up."""
    return -(-value // by)


@lru_cache(maxsize=40_000)
def _power_of_e(value: Fraction) -> tuple[int, int]:
    """The floor and the ceiling of 10^40 · e^value."""
    if value == 0:
        return SCALE, SCALE
    work = Context(prec=140, rounding=ROUND_HALF_EVEN, Emax=10**6, Emin=-(10**6))
    ratio = work.divide(Decimal(value.numerator), Decimal(value.denominator))
    floor = int(work.multiply(work.exp(ratio), Decimal(SCALE)))
    # e to a rational other than 0 is irrational, so the ceiling is the next integer.
    return floor, floor + 1


def below_e(value: Fraction) -> int:
    """10^40 · r(ε): at most 10^40 · e^ε."""
    return max(SCALE, _power_of_e(value)[0] - 1)


def above_e(value: Fraction) -> int:
    """10^40 · r̄(ε): more than 10^40 · e^ε."""
    return _power_of_e(value)[1] + 1


# ---- Files and digests (8.1) -------------------------------------------------------------------

SUM_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_./-]*)")


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def bundle_files(folder: Path) -> dict[str, bytes]:
    """All files of a bundle by path; links, empty folders and nested ones are refused [1]."""
    files = {}
    need(folder.is_dir(), str(folder), "folder", "none", "a bundle")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        need(not path.is_symlink(), name, "file set", "a link", "plain files")
        if path.is_dir():
            flat = path.parent == folder and any(path.iterdir())
            need(flat, name, "file set", "a folder", "no empty and no nested folder")
        else:
            need(path.is_file(), name, "file set", "no plain file", "plain files")
            need(path.stat().st_size <= 2**30, name, "size", "more", "at most 2^30 bytes")
            files[name] = path.read_bytes()
    return files


def check_sums(files: dict[str, bytes]) -> dict[str, str]:
    """The digests of SHA256SUMS, compared with the files [2-4]."""
    file = "SHA256SUMS"
    need(file in files, file, "file", "none", "the list of digests")
    text = files[file].decode("latin-1")
    need(text.endswith("\n") and text.isascii(), file, "form", "another", "lines of ASCII")
    sums: dict[str, str] = {}
    for line in text[:-1].split("\n"):
        match = SUM_LINE.fullmatch(line)
        need(match, file, "line", repr(line), "a digest, two blanks and a path")
        if match is not None:
            need(not sums or match[2] > max(sums), file, "order", match[2], "sorted, each once")
            sums[match[2]] = match[1]
    same(file, "file set", sorted(sums), sorted(set(files) - {file}))
    for name, stated in sums.items():
        same(name, "SHA-256", digest(files[name]), stated)
    return sums


# ---- The spec (3) ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Domain:
    """The possible answers of one part (3.8): how many, and their topology."""

    size: int
    topology: str


def domain_of(plain: Plain) -> Domain:
    """Read a domain."""
    need(len(plain) == 1, "spec.json", "domain", plain, "a mapping with one key")
    ((kind, of),) = plain.items()
    if kind == "cyclic":
        size = of
    elif kind == "ordered":
        size = of["max"] - of["min"] + 1
    elif kind == "integers":
        size = 2**53 - 1
    elif kind == "nominal":
        size = len(set(of))
    elif kind == "bins":
        size = of["count"]
        need(2 <= size <= of["high"] - of["low"], "spec.json", "bins", of, "2 to high - low")
    else:
        same("spec.json", "domain", kind, "grid")
        size = (of["high"] - of["low"]) // of["step"] + 1
        whole = of["step"] >= 1 and (of["high"] - of["low"]) % of["step"] == 0
        need(whole, "spec.json", "grid", of, "steps that end at high")
    need(type(size) is int and size >= 2, "spec.json", "domain", plain, "two answers or more")
    return Domain(size, kind if kind in ("cyclic", "nominal") else "ordered")


STATISTICS = ("sum", "mean", "min", "max", "median")
INTEGER_NOISE = ("geometric_clamped", "gaussian_clamped", "gumbel_clamped", "integer")


class Query:
    """A query of the spec, and what follows from it (4)."""

    def __init__(self, plain: Plain, spec: Spec) -> None:
        self.plain, self.spec = plain, spec
        self.name: str = plain["name"]
        self.kind: str = plain["kind"]
        self.by: list[str] = plain["by"]
        self.mechanism: str = plain.get("mechanism") or "best"
        self.is_composed = plain.get("share") is not None or plain.get("target") is not None
        self.is_published = self.is_composed or plain.get("guarantee") is not None
        given = plain.get("sensitivity")
        self.source = "declared" if isinstance(given, dict) else str(given)
        self.parts = [self]
        if self.kind == "tuple":
            self.parts = [spec.query(name) for name in plain["of"]]
        kinds = ("count", "mode", "top", *STATISTICS, "quantiles", "per_unit", "tuple", "sql")
        need(self.kind in kinds, "spec.json", f"{self.name}.kind", self.kind, kinds)
        stated = plain.get("noise") or ("on_statistic" if given == "global" else "on_answer")
        able = self.kind in ("mode", *STATISTICS) and self.is_published
        self.on_statistic = self.kind in ("top", "quantiles") or (able and stated == "on_statistic")
        if self.on_statistic:
            same("spec.json", f"{self.name}.sensitivity", given, "global")
        if self.is_published:
            known = self.source in ("global", "declared", "empirical")
            need(known, "spec.json", f"{self.name}.sensitivity", given, "its source")

    @property
    def domain_plain(self) -> Plain:
        """The domain as release.json has it (3.8)."""
        plain = self.plain
        if self.kind == "tuple":
            return {"tuple": [part.domain_plain for part in self.parts]}
        if plain.get("bins") is not None:
            return {"bins": plain["bins"]}
        if plain.get("grid") is not None:
            return {"grid": plain["grid"] | {"scale": exact(number(plain["grid"]["scale"]))}}
        domain: Plain = plain["domain"]
        return domain

    @property
    def domains(self) -> list[Domain]:
        """The domain of each part."""
        return [domain_of(part.domain_plain) for part in self.parts]

    @property
    def group(self) -> list[int]:
        """The sizes of the parts (1.6)."""
        return [domain.size for domain in self.domains]

    @property
    def is_line(self) -> bool:
        """Whether there is one part, and it is ordered."""
        return [domain.topology for domain in self.domains] == ["ordered"]

    @property
    def loss_name(self) -> str:
        """The name of the loss function, as ``design.loss`` has it."""
        loss = self.plain.get("loss")
        if self.plain.get("target") is not None:
            return str(self.plain["target"]).split(" ")[0]
        return "table" if isinstance(loss, dict) else loss or "error_rate"

    def claimed(self, entry: Plain) -> tuple[str, Fraction, Fraction]:
        """Definition, ε and δ that one cell claims (3.6)."""
        if self.is_composed:
            return entry["definition"], number(entry["epsilon"]), number(entry["delta"])
        guarantee = self.plain["guarantee"]
        definition = guarantee["definition"]
        domains = self.domains
        ordered = any(domain.topology == "ordered" for domain in domains)
        out_of_reach = ordered and not (len(domains) == 1 and domains[0].size <= 64)
        if guarantee.get("fallback") is not None and out_of_reach:
            definition = guarantee["fallback"]
        return definition, number(guarantee["epsilon"]), number(guarantee.get("delta") or "0")

    @property
    def rows_stated(self) -> int:
        """The bound r₀ of 4.1."""
        if all(part.kind == "per_unit" for part in self.parts):
            return 1
        limit = self.spec.privacy["max_rows_per_unit"]
        rows = self.plain.get("max_rows_per_unit")
        rows = limit if rows is None else rows
        need(type(rows) is int and 1 <= rows <= limit, "spec.json", "rows", rows, f"1 to {limit}")
        return int(rows)

    @property
    def rows(self) -> int:
        """The bound r of 4.1: the rows of a unit that are read."""
        if self.source != "declared":
            return self.rows_stated
        group, declared = self.group, set()
        for entry in self.plain["sensitivity"]["declared"]:
            vector = entry if isinstance(entry, list) else [entry]
            same("spec.json", "declared entry", len(vector), len(group))
            for sign in (1, -1):
                declared.add(tuple(sign * c % n for c, n in zip(vector, group, strict=True)))
        few, many = 0, self.rows_stated
        while few < many:
            middle = (few + many + 1) // 2
            if self.sensitivity(middle)[0] <= declared:
                few = middle
            else:
                many = middle - 1
        need(few, "spec.json", "declared sensitivity", "no row fits", "one row of a unit")
        return few

    def sum_of(self, rows: int) -> tuple[int, int]:
        """The p and q of 4.2: by how much a unit that comes in raises and lowers a sum."""
        low, high = self.clamp
        return rows * max(high, 0), rows * max(-low, 0)

    @property
    def clamp(self) -> tuple[int, int]:
        """The bounds of one row; without ``clamp`` the range of the bins."""
        clamp = self.plain.get("clamp")
        if clamp is None:
            clamp = [self.plain["bins"]["low"], self.plain["bins"]["high"]]
        low, high = clamp
        need(type(low) is int and type(high) is int and low < high, "spec.json", "clamp", clamp, "")
        return low, high

    def steps(self, rows: int) -> range:
        """The signed changes of the code of a single part (4.2)."""
        size = domain_of(self.domain_plain).size
        one_way = self.spec.is_one_way
        if self.kind == "count":
            rise = min(1 if self.plain.get("of") is not None else rows, size - 1)
            return range(0 if one_way else -rise, rise + 1)
        if self.kind != "sum":
            return range(size)
        more, less = self.sum_of(rows)
        rise, fall = (more, less) if one_way else (more + less, more + less)
        grid, bins = self.plain.get("grid"), self.plain.get("bins")
        if grid is None:
            need(bins is not None, "spec.json", f"{self.name}.bins", None, "bins or a grid")
        span = Fraction(0) if bins is None else Fraction(bins["high"] - bins["low"], size)
        width = span if grid is None else Fraction(grid["step"])
        most = [min(ceil(change / width), size - 1) for change in (fall, rise)]
        return range(-most[0], most[1] + 1)

    def sensitivity(self, rows: int) -> tuple[set[tuple[int, ...]], set[int]]:
        """M and the distances A of 4.2."""
        group = self.group
        steps = [part.steps(rows) for part in self.parts]
        distances = {abs(step) for step in steps[0]} - {0} if self.is_line else set()
        moved = set()
        for vector in product(*steps):
            for sign in (1, -1):
                moved.add(tuple(sign * c % n for c, n in zip(vector, group, strict=True)))
        return moved - {(0,) * len(group)}, distances

    def cells_touched(self, free: int, cells: int) -> int:
        """The number t of 4.3, where ``free`` is F and ``cells`` the product of all key sets."""
        if all(part.kind == "per_unit" for part in self.parts):
            return 1
        if self.kind == "sql":
            return cells
        # At once a unit is in k cells. One that is replaced leaves k and enters k others.
        at_once = min(free, self.rows, self.spec.privacy.get("max_cells_per_unit") or free)
        return at_once if self.spec.is_one_way else min(free, at_once * 2)


class TableCount(Query):
    """A table that a tabulation measures: a count of rows on all integers, r = 1 (4.3)."""

    def __init__(self, name: str, spec: Spec) -> None:
        plain = {"name": name, "kind": "count", "by": [], "domain": {"integers": {}}}
        super().__init__(plain | {"sensitivity": "global"}, spec)
        self.is_composed = self.is_published = True

    @property
    def rows_stated(self) -> int:
        """A unit has one row."""
        return 1

    @property
    def loss_name(self) -> str:
        """No spec names one; any of those that noise on the integers has may stand."""
        return ""


class Spec:
    """The release spec, as ``spec.json`` has it."""

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        same("spec.json", "spec", plain.get("spec"), "dp-release/spec/v1")
        self.privacy: Plain = plain["privacy"]
        relation = self.privacy["neighbors"]
        known = ("add_remove", "replace_one", "attribute")
        need(relation in known, "spec.json", "neighbors", relation, known)
        self.is_one_way = relation == "add_remove"
        self.fixed: list[str] = self.privacy.get("fixed") or []
        self.tabulations: list[Plain] = plain.get("tabulations") or []
        self.queries: dict[str, Query] = {}
        self._plain_queries = {each["name"]: each for each in plain.get("queries") or []}
        same("spec.json", "names", len(self._plain_queries), len(plain.get("queries") or []))
        for name in self._plain_queries:
            self.query(name)
        self.published = [q for q in map(self.query, self._plain_queries) if q.is_published]

    def query(self, name: str) -> Query:
        """The query of a name; the parts of a tuple are read before it."""
        if name not in self.queries:
            need(name in self._plain_queries, "spec.json", "query", name, "one of the spec")
            self.queries[name] = Query(self._plain_queries[name], self)
        return self.queries[name]

    @property
    def composes_exactly(self) -> bool:
        """Whether the charges compose by ``pld`` (3.2)."""
        stated = self.plain["budget"].get("composition")
        forced = bool(self.tabulations) or any(query.is_composed for query in self.published)
        return bool(forced or stated == "pld")

    def key_sizes(self, record: Plain) -> dict[str, int]:
        """The number of keys of each column; of a file it follows from the number of cells."""
        sizes: dict[str, int] = {}
        for column, keys in (self.plain.get("keys") or {}).items():
            if isinstance(keys, list):
                sizes[column] = len({str(key) for key in keys})
            elif "range" in keys:
                sizes[column] = keys["range"][1] - keys["range"][0] + 1
        known = -1
        while known < len(sizes):
            known = len(sizes)
            for entry in record["queries"]:
                unknown = [column for column in entry["by"] if column not in sizes]
                others = prod(sizes[column] for column in entry["by"] if column in sizes)
                if len(unknown) == 1:
                    sizes[unknown[0]] = entry["cells"] // others
        for entry in record["queries"]:
            if all(column in sizes for column in entry["by"]):
                expected = prod(sizes[column] for column in entry["by"])
                same("release.json", f"{entry['name']}.cells", entry["cells"], expected)
        return sizes


# ---- The record (5.1), against the spec (8.2 to 8.4) -------------------------------------------

DIGEST = re.compile("[0-9a-f]{64}")
FIGURES = {"epsilon": EXACT, "delta": EXACT}
OUTPUT = {"path": str, "sha256": DIGEST, "rows": int}
FILE = {"path": str, "sha256": DIGEST}
COMMITMENT = {"commitment": re.compile("hmac-sha256:[0-9a-f]{64}")}
SOURCES = frozenset(("empirical", "global", "declared"))
DEFINITIONS = frozenset(("pure", "probabilistic", "approximate"))
DESCRIPTIONS = ("title", "curator", "contact", "purpose", "period", "license")
QUERY_SHAPE = {
    **dict.fromkeys(("name", "kind", "mechanism"), str),
    **{"by": [str], "domain": dict, "cells": int, "definition": DEFINITIONS, **FIGURES},
    **{"charge": FIGURES, "parallel": bool, "sensitivity_source": SOURCES, "output": OUTPUT},
    "guarantee_kind": frozenset(("instance-specific", "worst-case")),
    "mechanism_file": (FILE, COMMITMENT),
}
LEVEL = {"level": str, "areas": int, "margins": [[str]], "output": OUTPUT}
MEASURED = {
    **{"name": str, "level": str, "margin": [str], "cells": int, "definition": DEFINITIONS},
    **{"charge": FIGURES, "mechanism_file": FILE, "output": OUTPUT, **FIGURES},
}
TABULATION = {
    **{"name": str, "table": str, "noise": frozenset(("geometric", "gaussian"))},
    **{"objective": EXACT, "levels": [LEVEL], "measured": [MEASURED]},
    "declared": [{"level": str, "margin": [str], "output": OUTPUT}],
}
VERSIONS = ("dp_release", "python", "duckdb", "highs")
RECORD = {
    **dict.fromkeys(("schema", "release_id", "kind", "published", *DESCRIPTIONS), str),
    "privacy": {
        **dict.fromkeys(("unit", "neighbors", "adjacency_text", "enforced_by"), str),
        **{"max_rows_per_unit": int, "fixed": [str]},
    },
    "guarantee": {"kind": str, "definition": DEFINITIONS, **FIGURES},
    "expressions?": [{"place": str, "tree": dict}],
    **{"queries": [QUERY_SHAPE], "tabulations?": [TABULATION]},
    "composition": {"rule": str, "step": (EXACT, None), **FIGURES},
    "sampling": {"source": str, "method": str, "seeded": bool},
    **{"invariants": [str], "post_processing": [str], "withheld": [str], "limits": [str]},
    "ledger": {"scope": str, "sequence": (int, None)},
    "software": dict.fromkeys(VERSIONS, re.compile("[0-9A-Za-z.+]{1,40}")),
}


def is_date(text: Any) -> bool:
    """A day of the Gregorian calendar (1.5)."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == str(text)
    except (TypeError, ValueError):
        return False


def check_files_of(record: Plain, sums: dict[str, str]) -> None:
    """The paths and digests of the record, and the set of files [6, 7]."""
    expected = {"release.json", "report.html", "spec.yaml", "datapackage.json", "registry.yaml"}
    expected |= {"spec.json"} & set(sums)
    if record["ledger"]["sequence"] is not None:
        expected |= {"attestation.dsse.json", "ledger.proof"}
    outputs, earlier = [], set()
    owners = [(entry, "data") for entry in record["queries"]]
    for tabulation in record.get("tabulations", []):
        owners += [(entry, "measurements") for entry in tabulation["measured"]]
        outputs += [each["output"] for each in tabulation["levels"] + tabulation["declared"]]
    for entry, folder in owners:
        path = f"{folder}/{entry['name']}.parquet"
        same("release.json", f"{entry['name']}.output.path", entry["output"]["path"], path)
        same("release.json", f"{path}: rows", entry["output"]["rows"], entry["cells"])
        outputs.append(entry["output"])
        file = entry["mechanism_file"]
        if "path" in file:
            earlier.add(f"mechanisms/{entry['name']}.json")
            need(file["path"] in earlier, entry["name"], "mechanism path", file["path"], "its own")
            outputs.append(file)
    for output in outputs:
        same(output["path"], "SHA-256 in release.json", output["sha256"], sums.get(output["path"]))
        expected.add(output["path"])
    same("SHA256SUMS", "file set of release.json", sorted(sums), sorted(expected))


def check_record(record: Plain, spec: Spec) -> None:
    """What release.json repeats of the spec, and its fixed texts [10-13]."""
    file, privacy, plain = "release.json", record["privacy"], spec.plain
    same(file, "release_id", record["release_id"], plain["release"]["id"])
    for name in DESCRIPTIONS:
        same(file, name, record[name], str(plain["release"][name]))
    for name in ("unit", "neighbors", "max_rows_per_unit"):
        same(file, f"privacy.{name}", privacy[name], spec.privacy[name])
    same(file, "privacy.fixed", privacy["fixed"], spec.fixed)
    same(file, "ledger.scope", record["ledger"]["scope"], plain["budget"]["scope"])
    sampling = {"source": "os", "method": "inverse-cdf-integer", "seeded": False}
    same(file, "sampling", record["sampling"], sampling)
    need(is_date(record["published"]), file, "published", record["published"], "a date")
    names = [entry["name"] for entry in record["queries"]]
    same(file, "queries", names, [query.name for query in spec.published])
    for query, entry in zip(spec.published, record["queries"], strict=True):
        check_entry(query, entry)
    empirical = any(query.source == "empirical" for query in spec.published)
    kind = "instance-specific" if empirical else "worst-case"
    same(file, "guarantee.kind", record["guarantee"]["kind"], kind)
    check_tabulations(record, spec)


def check_entry(query: Query, entry: Plain) -> None:
    """One query of the record against the spec [10-12]."""
    file, at = "release.json", query.name
    definition, epsilon, delta = query.claimed(entry)
    need(epsilon <= 100 and delta < 1, file, f"{at}.epsilon", epsilon, "at most 100, δ below 1")
    need(definition != "pure" or delta == 0, file, f"{at}.delta", delta, "0 of a pure guarantee")
    empirical = query.source == "empirical"
    expected = {
        **{"kind": query.kind, "by": query.by, "domain": query.domain_plain},
        **{"definition": definition, "epsilon": exact(epsilon), "delta": exact(delta)},
        "sensitivity_source": query.source,
        "guarantee_kind": "instance-specific" if empirical else "worst-case",
    }
    for name, value in expected.items():
        same(file, f"{at}.{name}", entry[name], value)
    same(file, f"{at}: committed", "commitment" in entry["mechanism_file"], empirical)
    if query.mechanism in ("modular", "integer", "channel"):
        same(file, f"{at}.mechanism", entry["mechanism"], query.mechanism)
    elif empirical and query.mechanism == "best":
        same(file, f"{at}.mechanism", entry["mechanism"], unseen_family(query, entry))


def unseen_family(query: Query, entry: Plain) -> str:
    """The family that follows from public parameters alone (3.9)."""
    domains, epsilon = query.domains, number(entry["epsilon"])
    if all(domain.topology != "ordered" for domain in domains):
        return "modular"
    fits_line = query.is_line and query.loss_name in ("error_rate", "absolute", "squared")
    plain = entry["definition"] != "probabilistic" or number(entry["delta"]) == 0
    if fits_line and domains[0].size <= 21 and epsilon >= Fraction(1, 1000) and plain:
        return "channel"
    return "integer" if fits_line and epsilon > 0 and plain else "none"


def check_tabulations(record: Plain, spec: Spec) -> None:
    """Names, texts and measured tables of the tabulations (10.6, 10.7) [43, 44]."""
    file, entries = "release.json", record.get("tabulations", [])
    same(file, "tabulations", "tabulations" in record, bool(spec.tabulations))
    for plain, entry in zip(spec.tabulations, entries, strict=True):
        name, levels = plain["name"], plain["hierarchy"]["levels"]
        same(file, "tabulation", entry["name"], name)
        same(file, f"{name}.table", entry["table"], plain["table"])
        same(file, f"{name}.levels", [level["level"] for level in entry["levels"]], levels)
        tables = [(each["level"], tuple(each["margin"])) for each in entry["measured"]]
        need(tables and len(set(tables)) == len(tables), file, name, "a table twice", "each once")
        for each in entry["measured"]:
            level = next(level for level in entry["levels"] if level["level"] == each["level"])
            same(file, each["name"], each["cells"], level["areas"] * categories(plain, each))


def categories(tabulation: Plain, table: Plain) -> int:
    """The number of cells of a margin in one area."""
    sizes = []
    for name in table["margin"]:
        values = (tabulation.get("attributes") or {}).get(name)
        if values is None:
            sizes.append(len(tabulation["groupings"][name]["classes"]))
        elif isinstance(values, dict):
            sizes.append(values["range"][1] - values["range"][0] + 1)
        else:
            sizes.append(len(values))
    return prod(sizes)


# ---- Privacy of pairs of distributions (4.5) ---------------------------------------------------


class Pairs:
    """The outcomes of two distributions P and Q, by falling P/Q, with sums from the front.

    ``of`` maps (p, q) to how often it occurs; all masses are over ``total``.
    """

    def __init__(self, of: dict[tuple[int, int], int], total: int) -> None:
        occurring = [pair for pair in of if pair[0] > 0]
        # Floats would tie ratios that differ; a ratio to 60 bits more than any mass has would not.
        width = max((max(pair).bit_length() for pair in occurring), default=1) * 2 + 2
        infinite = 1 << (2 * width)
        key = {(p, q): (p << width) // q if q else infinite for p, q in occurring}
        self.pairs = sorted(occurring, key=key.__getitem__, reverse=True)
        self.above = [0, *accumulate(p * of[p, q] for p, q in self.pairs)]
        self.below = [0, *accumulate(q * of[p, q] for p, q in self.pairs)]
        self.total = total

    def count(self, ratio: int) -> int:
        """How many of the pairs have p > ratio · q, with the ratio over 10^40."""
        low, high = 0, len(self.pairs)
        while low < high:
            middle = (low + high) // 2
            p, q = self.pairs[middle]
            low, high = (middle + 1, high) if p * SCALE > ratio * q else (low, middle)
        return low

    def approximate(self, ratio: int) -> Fraction:
        """The δ of ``approximate``."""
        return Fraction(self.excess(ratio), SCALE * self.total)

    def excess(self, ratio: int) -> int:
        """The same times 10^40 · total."""
        place = self.count(ratio)
        return self.above[place] * SCALE - ratio * self.below[place]

    def probabilistic(self, ratio: int) -> Fraction:
        """The δ of ``probabilistic``."""
        return Fraction(self.above[self.count(ratio)], self.total)

    def length(self, ratios: list[int]) -> int:
        """The number of values up to the first ratio that no finite p/q exceeds (5.3.1)."""
        finite = next((pair for pair in self.pairs if pair[1]), None)
        for place, ratio in enumerate(ratios):
            if finite is None or finite[0] * SCALE <= ratio * finite[1]:
                return place + 1
        return len(ratios)


def rolled(weights: list[int], group: list[int], by: tuple[int, ...]) -> list[int]:
    """The list whose element η is the weight of η + by, in row-major order."""
    if len(group) == 1:
        return weights[by[0] :] + weights[: by[0]]
    inner = prod(group[1:])
    blocks = []
    for place in range(group[0]):
        start = (place + by[0]) % group[0] * inner
        blocks += rolled(weights[start : start + inner], group[1:], by[1:])
    return blocks


# ---- Noise on the integers (5.3) ---------------------------------------------------------------

Run = tuple[int, int, int]
"""The first and the last integer, and the mass of each integer between them."""
TAIL = {"period": int, "ratio": WHOLE}
NOISE = {
    **{"low": int, "lengths": [int], "weights": [WHOLE]},
    **{"left": (TAIL, None), "right": (TAIL, None)},
}
FAR = 256
UNIT = 2**64


class Noise:
    """Runs of equal weight in a window, and tails of repeated blocks that fall by ρ."""

    def __init__(self, file: str, plain: Plain, total: int) -> None:
        self.low, self.total = plain["low"], total
        self.lengths: list[int] = plain["lengths"]
        self.weights = [int(weight) for weight in plain["weights"]]
        self.high = self.low + sum(self.lengths) - 1
        same(file, "noise.lengths", len(self.lengths), len(self.weights))
        need(min(self.lengths) >= 1, file, "noise.lengths", self.lengths, "at least 1 each")
        window = sum(n * w for n, w in zip(self.lengths, self.weights, strict=True))
        same(file, "noise.weights", window, total)
        inside = max(-self.low, self.high) <= 2**62
        need(inside, file, "noise.low", self.low, "a window within ±2^62")
        repeated = any(a == b for a, b in pairwise(self.weights))
        need(not repeated, file, "noise.weights", "equal neighbors", "different neighbors")
        self.periods, self.ratios = [0, 0], [0, 0]
        for side, name in enumerate(("left", "right")):
            tail = plain[name]
            if tail is not None:
                self.periods[side], self.ratios[side] = tail["period"], int(tail["ratio"])
                proper = tail["period"] >= 1 and 1 <= self.ratios[side] < UNIT
                need(proper, file, f"noise.{name}", tail, "a period from 1, a ratio below 2^64")
        p, q = self.periods
        need(p + q <= self.high - self.low + 1, file, "periods", (p, q), "within the window")
        middle = (not q or self.high - q >= -1) and (not p or self.low + p <= 1)
        need(middle, file, "noise", "a tail that begins beyond 0", "tails on their sides of 0")

    def blocks(self) -> Iterator[tuple[int, int, int, int]]:
        """The runs of the window, cut at the tails: first, last, weight and side (-1, 0 or 1)."""
        cuts = (self.low + self.periods[0], self.high - self.periods[1] + 1)
        start = self.low
        for length, weight in zip(self.lengths, self.weights, strict=True):
            end = start + length
            edges = [start, *(cut for cut in sorted(set(cuts)) if start < cut < end), end]
            for first, after in pairwise(edges):
                side = -1 if first < cuts[0] else int(first >= cuts[1])
                yield first, after - 1, weight, side
            start = end

    def scale(self, most: int) -> int:
        """The sum of the masses of :meth:`runs`."""
        return self.total << 64 * (most + 1)

    def runs(self, low: int, high: int, most: int) -> list[Run]:
        """The masses from low to high, in order; ``most`` repetitions of a block suffice."""
        found: list[Run] = []
        for first, last, weight, side in self.blocks():
            if side == 0:
                found.append((first, last, weight * UNIT ** (most + 1)))
                continue
            period, ratio = self.periods[side > 0], self.ratios[side > 0]
            if ratio == 0:
                continue
            mass = weight * (UNIT - ratio) * UNIT**most
            for times in range(most + 1):
                shift = side * times * period
                if last + shift >= low and first + shift <= high:
                    found.append((first + shift, last + shift, mass))
                mass = mass * ratio // UNIT
        whole: list[Run] = []
        at = low
        for first, last, mass in sorted(found):
            if last < low or first > high:
                continue
            if first > at:
                whole.append((at, first - 1, 0))
            whole.append((max(first, low), min(last, high), mass))
            at = last + 1
        return whole if at > high else [*whole, (at, high, 0)]

    def repetitions(self, low: int, high: int) -> int:
        """How many repetitions of a block reach from the window to both bounds."""
        p, q = self.periods
        left = ceil_div(self.low - low, p) if p and low < self.low else 0
        return max(1, left, ceil_div(high - self.high, q) if q and high > self.high else 0)

    def pairs(self, distance: int) -> Pairs:
        """The pairs f(k) and f(k + distance); one period of a tail stands for the whole of it."""
        p, q = self.periods
        low = min(self.low, self.low - distance) - p
        high = max(self.high, self.high - distance) + q
        most = self.repetitions(min(low, low + distance), max(high, high + distance))
        here, there = self.runs(low, high, most), self.runs(low + distance, high + distance, most)
        times = [UNIT - ratio for ratio in self.ratios]
        found: Counter[tuple[int, int]] = Counter()
        # The first and the last period are divided by 1 - ρ, and all is over both of these.
        edges = [(low, low + p - 1, UNIT * times[1]), (low + p, high - q, times[0] * times[1])]
        edges.append((high - q + 1, high, times[0] * UNIT))
        for first, last, mass, other in together(here, there, distance):
            for start, end, factor in edges:
                common = min(last, end) - max(first, start) + 1
                if common > 0:
                    found[mass, other] += common * factor
        return Pairs(found, self.scale(most) * times[0] * times[1])

    @property
    def is_unimodal(self) -> bool:
        """Whether the masses rise and then fall, with one period beyond each end."""
        low, high = self.low - self.periods[0], self.high + self.periods[1]
        masses = [0] * (not self.periods[0]) + [run[2] for run in self.runs(low, high, 1)]
        masses += [0] * (not self.periods[1])
        falls = [a > b for a, b in pairwise(masses) if a != b]
        return falls == sorted(falls)

    def mass(self, place: int) -> Fraction:
        """The probability of one integer."""
        most = self.repetitions(place, place)
        return Fraction(self.runs(place, place, most)[0][2], self.scale(most))

    def mirrored(self) -> Noise:
        """The noise f(-k)."""
        other = object.__new__(Noise)
        other.low, other.high, other.total = -self.high, -self.low, self.total
        other.lengths, other.weights = self.lengths[::-1], self.weights[::-1]
        other.periods, other.ratios = self.periods[::-1], self.ratios[::-1]
        return other

    def step_ratio(self) -> Fraction | None:
        """The largest f(k) / f(k ± period), the same of both tails; none if it is infinite."""
        period = self.periods[0]
        if not period or self.periods[1] != period or self.ratios[0] != self.ratios[1]:
            return None
        largest = Fraction(0)
        for sign in (1, -1):
            for p, q in self.pairs(sign * period).pairs:
                if q == 0:
                    return None
                largest = max(largest, Fraction(p, q))
        return largest

    def moment(self, power: int) -> Fraction:
        """The sum of |k|^power · f(k), with 0^0 = 0."""
        total = Fraction(0)
        for first, last, weight, side in self.blocks():
            rho = Fraction(self.ratios[side > 0], UNIT) if side else Fraction(0)
            p = self.periods[side > 0] if side else 0
            # Of a run of the left tail the mirror image; a tail lies on its side of 0.
            a, b = (-last, -first) if side < 0 else (first, last)
            # The number G of repetitions is geometric; these are its mean and that of its square.
            mean, square = rho / (1 - rho), rho * (1 + rho) / (1 - rho) ** 2
            count, ones, twos = b - a + 1, absolute_sum(a, b), square_sum(a, b)
            moments = (
                count - (a <= 0 <= b) * (1 - rho),
                ones + count * p * mean,
                twos + 2 * ones * p * mean + count * p * p * square,
            )
            total += Fraction(weight, self.total) * moments[power]
        return total


def absolute_sum(first: int, last: int) -> int:
    """The sum of |k| over a run."""
    if first < 0 < last:
        return absolute_sum(first, 0) + absolute_sum(0, last)
    return (last - first + 1) * abs(first + last) // 2


def square_sum(first: int, last: int) -> int:
    """The sum of k² over a run."""
    upto = [n * (n + 1) * (2 * n + 1) // 6 for n in (last, first - 1)]
    return upto[0] - upto[1]


def together(here: list[Run], there: list[Run], shift: int) -> Iterator[tuple[int, int, int, int]]:
    """The common runs of f(k) and f(k + shift)."""
    i = j = 0
    while i < len(here) and j < len(there):
        first = max(here[i][0], there[j][0] - shift)
        last = min(here[i][1], there[j][1] - shift)
        if first <= last:
            yield first, last, here[i][2], there[j][2]
        if here[i][1] == last:
            i += 1
        if there[j][1] - shift == last:
            j += 1


# ---- Mechanism files (5.3, 8.11) ---------------------------------------------------------------

BASE = {
    **{"schema": str, "query": str, "mechanism": str},
    "guarantee": {"definition": DEFINITIONS, **FIGURES},
    "profile?": {"step": EXACT, "values": [WHOLE], "patterns": [[int]]},
}
RECOMPUTED = ("delta_probabilistic", "delta_approximate", "epsilon_all_differences")
BOUNDED = ("every mechanism", "modular noise", "noise on the integers")
ON_ANSWER = {
    **BASE,
    **{"group": [int], "total": WHOLE, "directed": bool},
    "recomputed": dict.fromkeys(RECOMPUTED, str),
    "accuracy": dict.fromkeys(("p_exact", "mean_absolute", "p_within_1"), EXACT),
    "design": {
        **dict.fromkeys(("method", "loss", "solver"), str),
        **dict.fromkeys(("objective", "bounded_loss", "lower_bound", "gap"), EXACT),
        **{"bound": frozenset(("proved", "solver")), "bound_of": frozenset(BOUNDED)},
        **{"multipliers": [{"distance": int, "prices": [WHOLE]}], "notes": [str]},
    },
}
FAMILIES = {
    "modular": {**ON_ANSWER, "weights": [WHOLE], "sensitivity": [[int]]},
    "channel": {**ON_ANSWER, "rows": [[WHOLE]], "pairs": [[int]]},
    "integer": {
        **{**ON_ANSWER, "noise": NOISE},
        **{"low_end": [[int]], "high_end": [[int]], "distances": [[int]]},
    },
}


@dataclass
class Mechanism:
    """A mechanism that was checked: the δ that it uses, and how far it lets an answer move.

    ``cell`` gives the pairs of distributions that one cell compares when it moves by d; without it
    the cell is that of the pure ε.
    """

    delta: Fraction
    epsilon: Fraction
    cell: Callable[[int], list[Pairs] | Fraction | None] | None = None


def check_mechanism(file: str, plain: Plain, query: Query, entry: Plain) -> Mechanism:
    """One mechanism file against the spec; gives what charges and profiles rest on [30-40]."""
    family = entry["mechanism"]
    same(file, "schema", plain.get("schema"), "dp-release/mechanism/v1")
    same(file, "mechanism", plain.get("mechanism"), family)
    stated = {name: entry[name] for name in ("definition", "epsilon", "delta")}
    same(file, "guarantee", plain.get("guarantee"), stated)
    if query.on_statistic:
        need(family in STATISTIC, file, "mechanism", family, "noise on the statistic")
        check_shape(file, "", plain, {**BASE, **STATISTIC[family]})
        check_statistic(file, plain, query, number(entry["epsilon"]))
        return statistic_cells(file, plain, number(entry["epsilon"]))
    need(family in FAMILIES, file, "mechanism", family, "modular, channel or integer")
    check_shape(file, "", plain, FAMILIES[family])
    same(file, "group", plain["group"], query.group)
    same(file, "directed", plain["directed"], False)
    total = int(plain["total"])
    most = 10**78 if family == "modular" else 2**62 + 1
    power = 2 <= total < most and total & (total - 1) == 0
    need(power, file, "total", total, "a power of two of the size allowed")
    check_name(file, plain, query)
    check = {"modular": modular, "channel": channel, "integer": on_integers}[family]
    compared, cell = check(file, plain, query)
    epsilon = number(entry["epsilon"])
    ratio = below_e(epsilon)
    if family == "integer":
        x = max((pairs.approximate(ratio) for pairs in compared), default=Fraction(1))
        deltas = [Fraction(x > 0), x]
    else:
        deltas = [max(pairs.probabilistic(ratio) for pairs in compared)]
        deltas.append(max(pairs.approximate(ratio) for pairs in compared))
    own = deltas[entry["definition"] == "approximate"]
    need(own <= number(entry["delta"]), file, "guarantee", f"δ {up(own, 20)}", entry["delta"])
    recomputed = plain["recomputed"]
    same(file, RECOMPUTED[0], number(recomputed[RECOMPUTED[0]]), deltas[0])
    same(file, RECOMPUTED[1], recomputed[RECOMPUTED[1]], up(deltas[1], 60))
    check_design(file, plain)
    return Mechanism(own, epsilon, cell)


def check_name(file: str, plain: Plain, query: Query) -> None:
    """The family and the method that the spec names [31], and the loss function [39]."""
    design, family, named = plain["design"], plain["mechanism"], query.mechanism
    if query.loss_name:
        same(file, "design.loss", design["loss"], query.loss_name)
    if named == "best":
        ordered = any(domain.topology == "ordered" for domain in query.domains)
        need((family == "modular") != ordered, file, "mechanism", family, "one for the domain")
    elif named not in FAMILIES:
        same(file, "design.method", design["method"], f"baseline {named}")


def check_design(file: str, plain: Plain) -> None:
    """Bounds and notes [39]."""
    design = plain["design"]
    objective, bounded = number(design["objective"]), number(design["bounded_loss"])
    bound, on_line = number(design["lower_bound"]), design["bound_of"] == BOUNDED[2]
    need(not on_line or plain["mechanism"] == "integer", file, "bound_of", BOUNDED[2], "another")
    if not on_line:
        same(file, "design.bounded_loss", bounded, objective)
        same(file, "design.multipliers", design["multipliers"], [])
    need(bound <= bounded, file, "design.lower_bound", bound, f"at most {bounded}")
    same(file, "design.gap", design["gap"], exact(bounded - bound))


Checked = tuple[list[Pairs], Callable[[int], list[Pairs] | Fraction | None]]
"""All pairs of distributions, and the pairs of a cell (5.3.1)."""


def modular(file: str, plain: Plain, query: Query) -> Checked:
    """Noise in the group [32-40]."""
    group, weights = plain["group"], [int(weight) for weight in plain["weights"]]
    vectors = [tuple(vector) for vector in plain["sensitivity"]]
    same(file, "weights", (len(weights), sum(weights)), (prod(group), int(plain["total"])))
    inside = all(
        len(v) == len(group) and any(v) and all(0 <= c < n for c, n in zip(v, group, strict=True))
        for v in vectors
    )
    need(inside and vectors, file, "sensitivity", "others", "elements of the group but zero")
    opposite = {tuple(-c % n for c, n in zip(v, group, strict=True)) for v in vectors}
    same(file, "sensitivity", vectors, sorted(set(vectors)))
    same(file, "sensitivity (negated)", opposite, set(vectors))
    if query.source != "empirical":
        lacking = query.sensitivity(query.rows)[0] - set(vectors)
        need(not lacking, file, "sensitivity", f"without {sorted(lacking)[:3]}", "all of M")
    need(len(weights) * len(vectors) <= 10**9, file, "size", len(vectors), "at most 10^9 in all")
    need(max(weights) < int(plain["total"]), file, "weights", "no noise", "noise")
    pairs = {}
    for vector in vectors:
        moved = rolled(weights, group, vector)
        pairs[vector] = Pairs(Counter(zip(weights, moved, strict=True)), int(plain["total"]))

    def cell(far: int) -> list[Pairs]:
        if far == 0:
            return list(pairs.values())
        near_by = [s for s in range(1, far + 1) if (s,) in pairs]
        chosen = {each for s in near_by for each in ((s,), (group[0] - s,))}
        return [pairs[each] for each in sorted(chosen)]

    return list(pairs.values()), cell


def channel(file: str, plain: Plain, query: Query) -> Checked:
    """A row of weights for each true code [32-40]."""
    need(query.is_line, file, "mechanism", "channel", "one ordered part")
    size, total = query.group[0], int(plain["total"])
    rows = [[int(weight) for weight in row] for row in plain["rows"]]
    same(file, "rows", [(len(row), sum(row)) for row in rows], [(size, total)] * size)
    need(max(map(max, rows)) < total, file, "rows", "no noise", "noise")
    distances = {abs(pair[0] - pair[-1]) for pair in plain["pairs"]}
    need(distances and 0 not in distances, file, "pairs", "none, or equal codes", "different codes")
    codes = permutations(range(size), 2)
    expected = [[a, b] for a, b in codes if abs(a - b) in distances]
    same(file, "pairs", plain["pairs"], expected)
    check_distances(file, query, distances)
    pairs: dict[int, list[Pairs]] = {}
    for a, b in expected:
        compared = Pairs(Counter(zip(rows[a], rows[b], strict=True)), total)
        pairs.setdefault(abs(a - b), []).append(compared)

    def cell(far: int) -> list[Pairs]:
        return [
            each for distance in pairs if distance <= far or far == 0 for each in pairs[distance]
        ]

    return [each for some in pairs.values() for each in some], cell


def check_distances(file: str, query: Query, distances: set[int]) -> None:
    """The distances of a public file hold all of A [40]."""
    if query.source != "empirical":
        lacking = query.sensitivity(query.rows)[1] - distances
        need(not lacking, file, "distances", f"without {sorted(lacking)[:3]}", "all of A")


def on_integers(file: str, plain: Plain, query: Query) -> Checked:
    """Noise on the integers, clamped and remapped at the ends [32-40]."""
    need(query.is_line, file, "mechanism", "integer", "one ordered part")
    size = query.group[0]
    noise = Noise(file, plain["noise"], int(plain["total"]))
    check_ends(file, plain, size)
    distances: set[int] = set()
    for interval in plain["distances"]:
        first, last = interval
        apart = 1 <= first <= last < size and (not distances or first > max(distances) + 1)
        need(apart and last <= 10**7, file, "distances", interval, "ascending intervals")
        distances |= set(range(first, last + 1))
    need(distances, file, "distances", "none", "one or more")
    check_distances(file, query, distances)
    chosen = {max(distances)} if noise.is_unimodal else distances
    need(work_of(noise, chosen) <= 10**6, file, "size", work_of(noise, chosen), "at most 10^6")
    if plain["design"]["bound_of"] == BOUNDED[2]:
        check_line_bound(file, plain, noise, distances)

    def cell(far: int) -> list[Pairs] | Fraction | None:
        return integer_cell(noise, {each for each in distances if each <= far})

    if is_far(noise, chosen):
        pure = noise.step_ratio()
        times = ceil_div(max(distances), max(1, noise.periods[0]))
        ratio = below_e(number(plain["guarantee"]["epsilon"]))
        is_pure = pure is not None and pure**times * SCALE <= ratio
        return [Pairs({}, 1)] if is_pure else [], cell
    compared = [noise.pairs(sign * each) for each in sorted(chosen) for sign in (1, -1)]
    return compared, cell


def check_ends(file: str, plain: Plain, size: int) -> None:
    """The tables of the two ends: runs of outcomes, each with its shift (5.3)."""
    counted = 0
    for name in ("low_end", "high_end"):
        runs = [(count, shift) for count, shift in plain[name]]
        length = sum(count for count, _ in runs)
        counted += length
        at = 0 if name == "low_end" else size - length
        for place, (count, shift) in enumerate(runs):
            inside = count >= 1 and at + shift >= 0 and at + count - 1 + shift < size
            differs = place == 0 or runs[place - 1][1] != shift
            need(inside and differs, file, name, runs[place], "a run within the domain")
            at += count
    need(counted <= size, file, "low_end, high_end", counted, f"at most {size} outcomes")


def check_line_bound(file: str, plain: Plain, noise: Noise, distances: set[int]) -> None:
    """The loss that is bounded, and a proved bound of noise on the integers [39]."""
    design, guarantee = plain["design"], plain["guarantee"]
    degree = {"error_rate": 0, "absolute": 1, "squared": 2}.get(design["loss"], 3)
    need(degree < 3, file, "design.loss", design["loss"], "one of a line")
    same(file, "design.bounded_loss", design["bounded_loss"], up(noise.moment(degree), 18))
    epsilon, delta = number(guarantee["epsilon"]), number(guarantee["delta"])
    if design["bound"] == "proved" and number(design["lower_bound"]) > 0:
        best = closed_bound(distances, degree, epsilon, delta)
        if design["multipliers"]:
            best = max(best, priced_bound(file, plain, distances, degree))
        proved = number(design["lower_bound"]) <= best
        need(proved, file, "lower_bound", design["lower_bound"], f"at most {up(best, 20)}")


def closed_bound(distances: set[int], degree: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The closed form for A = {g, 2g, …, m·g}, or 0 (5.3)."""
    unit = gcd(*distances)
    m = max(distances) // unit
    if len(distances) != m or epsilon == 0 or (delta > 0 and degree > 0):
        return Fraction(0)
    x = Fraction(SCALE, above_e(epsilon))
    mean, square = x / (1 - x), x * (1 + x) / (1 - x) ** 2
    sums = []
    for t in range(1, m + 1):
        # Blocks of m integers from t on have the weights x, x², …, on both sides of 0.
        ones, twos = absolute_sum(t, t + m - 1), square_sum(t, t + m - 1)
        outer = (m, ones + m * m * mean, twos + 2 * ones * m * mean + m**3 * square)[degree]
        inner = (t - 1, absolute_sum(0, t - 1), square_sum(0, t - 1))[degree]
        sums.append((2 * inner + 2 * outer * mean) / (2 * t - 1 + 2 * m * mean))
    least: Fraction = min(sums) * (1, unit, unit * unit)[degree]
    if degree == 2 and m > 1:
        least -= unit * unit // 4
    return least * (1 - delta)


def priced_bound(file: str, plain: Plain, distances: set[int], degree: int) -> Fraction:
    """The bound that multipliers prove (5.3)."""
    above = above_e(number(plain["guarantee"]["epsilon"]))
    prices: dict[int, list[int]] = {}
    for each in plain["design"]["multipliers"]:
        known = each["distance"] in distances and each["distance"] not in prices
        need(known, file, "multipliers", each["distance"], "distances of the file, each once")
        prices[each["distance"]] = list(map(int, each["prices"]))
    lengths = {len(listed) for listed in prices.values()}
    reach = max(lengths) // 2
    need(lengths == {2 * reach + 1}, file, "multipliers", lengths, "one odd length")
    tops = {s: max(listed) for s, listed in prices.items()}

    def price(s: int, k: int) -> int:
        return prices[s][k + reach] if abs(k) <= reach else tops[s]

    values = []
    for k in range(reach + max(prices) + 2):
        total = 2 * (k**degree if k else 0) * 2**80 * SCALE
        for s in prices:
            total += SCALE * (price(s, k) + price(s, -k))
            total -= above * (price(s, k - s) + price(s, -k - s))
        values.append(total)
    least = Fraction(min(values), 2 * 2**80 * SCALE)
    spent = number(plain["guarantee"]["delta"]) * Fraction(sum(tops.values()), 2**80)
    return max(least - spent, Fraction(0))


def is_far(noise: Noise, distances: set[int]) -> bool:
    """Whether the largest distance is more than 256 periods of a tail."""
    return any(period and max(distances) // period > FAR for period in noise.periods)


def work_of(noise: Noise, distances: set[int]) -> int:
    """The number of step 32."""
    tails = [min(FAR, max(distances) // period) for period in noise.periods if period]
    count = 1 if noise.is_unimodal else len(distances)
    return 2 * count * len(noise.lengths) * (sum(tails) + 3) * (1 + sum(tails) // 8)


def integer_cell(noise: Noise, distances: set[int]) -> list[Pairs] | Fraction | None:
    """The pairs of a cell that moves by these distances, or its pure ε; none if it is rough."""
    if noise.is_unimodal:
        distances = {max(distances)}
    if not is_far(noise, distances) and work_of(noise, distances) <= 3 * 10**5:
        return [noise.pairs(sign * each) for each in sorted(distances) for sign in (1, -1)]
    ratio = noise.step_ratio() if noise.is_unimodal else None
    if ratio is None:
        return None
    digits = Context(prec=100, rounding="ROUND_CEILING")
    c = digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    fifty = Context(prec=50, rounding=ROUND_HALF_EVEN)
    loss = Fraction(fifty.next_plus(fifty.ln(c)))
    return ceil_div(max(distances), noise.periods[0]) * loss


# ---- Mechanisms on a statistic (4.7, 5.3) ------------------------------------------------------

STATISTIC: dict[str, Plain] = {
    "permute_and_flip": {"spread": int, "ratio": WHOLE, "candidates": int},
    "two_categories": {"spread": int, "ratio": WHOLE},
    "gap_table": {"spread": int, "categories": int, "cap": int, "weights": [[WHOLE]]},
    "noisy_sums": {"spread": int, "sums": int, "noise": NOISE},
    "joint_quantiles": {
        **{"spread": int, "ratio": WHOLE, "candidates": int},
        **{"shares": [EXACT], "sublevels": int},
    },
}
TOP = {"categories": int, "members": int, "touched": int, "weight": int, "replaced": bool}
for _family in ("top_histogram", "top_canonical", "top_peeled"):
    STATISTIC[_family] = {"spread": int, "ratio": WHOLE, **TOP}
STATISTIC["top_histogram"]["counts"] = bool


def check_statistic(file: str, plain: Plain, query: Query, epsilon: Fraction) -> None:
    """The family, its parameters and its condition for ε [30]."""
    family, given = plain["mechanism"], query.plain
    size, two_way = query.group[0], not query.spec.is_one_way
    need(epsilon > 0, file, "epsilon", epsilon, "above 0")
    need(family in families_of(query), file, "mechanism", family, families_of(query))
    shares, weight, touched, spread = spread_of(query)
    once = (2 if two_way else 1) * weight
    expected = {
        **{"spread": spread, "candidates": size, "categories": size, "sublevels": 256},
        **{"shares": [exact(share) for share in shares], "members": given.get("k")},
        **{"touched": touched, "weight": weight, "replaced": two_way},
        **{"counts": bool(given.get("counts")), "sums": 1 + (query.kind == "mean")},
    }
    for name, value in expected.items():
        if name in plain:
            same(file, name, plain[name], value)
    if family == "noisy_sums":
        check_sums_noise(file, plain, epsilon)
    elif family == "gap_table":
        check_gaps(file, plain, below_e(epsilon))
    else:
        few = 1 in (touched, given.get("k"), size - (given.get("k") or 0))
        factor = {
            **{"permute_and_flip": spread, "two_categories": 1, "top_histogram": spread},
            **{"joint_quantiles": 4 * 256 * spread, "top_canonical": once * (1 if few else 2)},
            "top_peeled": once * (given.get("k") or 1),
        }[family]
        check_ratio(file, int(plain["ratio"]), factor, epsilon)


def spread_of(query: Query) -> tuple[list[Fraction], int, int, int]:
    """The shares of ranks, the weight and the reach of a unit, and the spread (4.7)."""
    given, size, rows, two_way = query.plain, query.group[0], query.rows, not query.spec.is_one_way
    shares = [number(share) for share in given.get("at") or ["1/2"]]
    weight = 1 if counts_units(query) else rows
    if given.get("weight") is not None:
        weight = rows * max(map(abs, query.clamp))
    touched = min(rows, size) if counts_units(query) else 1
    if query.kind == "sum":
        more, less = query.sum_of(rows)
        return shares, weight, touched, more + less if two_way else max(more, less)
    if query.kind == "mean":
        width = query.clamp[1] - query.clamp[0]
        return shares, weight, touched, rows * width * (1 + two_way)
    if query.kind == "top":
        norm = weight * (min(2 * touched, size) if two_way else touched)
        return shares, weight, touched, norm
    if query.kind == "mode":
        return shares, weight, touched, weight * (1 + two_way)
    return shares, weight, touched, 2 * rows * rank_steps(query.kind, shares, two_way)


def rank_steps(kind: str, shares: list[Fraction], two_way: bool) -> int:
    """By how much one row moves the score of a rank, in halves of what 4.7 calls the spread."""
    if kind in ("min", "max"):
        return 1
    if len(shares) == 1:
        a, b = shares[0].numerator, shares[0].denominator
        return b if two_way else max(a, b - a)
    base = lcm(*(share.denominator for share in shares))
    ends = zip([Fraction(0), *shares], [*shares, Fraction(1)], strict=True)
    return base - (0 if two_way else min(int(base * (after - share)) for share, after in ends))


def counts_units(query: Query) -> bool:
    """Whether a unit counts once in each category (3.7)."""
    default = "units" if query.plain.get("weight") is None else "rows"
    return (query.plain.get("count") or default) == "units"


def families_of(query: Query) -> tuple[str, ...]:
    """The families that may answer a query with noise on the statistic [30]."""
    if query.mechanism != "best":
        return (query.mechanism,)
    if query.kind in ("sum", "mean"):
        return ("noisy_sums",)
    if query.kind == "top":
        many = ("top_histogram", "top_canonical", "top_peeled")
        return many[:1] if query.plain.get("counts") else many
    if query.kind == "quantiles" and len(query.plain["at"]) > 1:
        return ("joint_quantiles",)
    single = query.plain.get("weight") is None or query.clamp == (0, 1)
    if query.kind == "mode" and query.rows == 1 and not query.spec.is_one_way and single:
        size = query.group[0]
        return ("permute_and_flip", *(["two_categories"] if size == 2 else []), "gap_table")
    return ("permute_and_flip",)


def loss_of(ratio: int) -> Fraction:
    """An upper bound of ln(2^64 / ratio) that is at most 10^-40 too large."""
    work = Context(prec=80, rounding=ROUND_HALF_EVEN)
    return Fraction(work.ln(work.divide(Decimal(UNIT), Decimal(ratio)))) + Fraction(1, 10**60)


def check_ratio(file: str, ratio: int, factor: int, epsilon: Fraction) -> None:
    """Check that factor · ln(1/ρ) is at most ε, and no smaller ρ has that."""
    need(1 <= ratio < UNIT, file, "ratio", ratio, "1 to 2^64 - 1")
    need(factor * loss_of(ratio) <= epsilon, file, "ratio", ratio, f"a loss of at most {epsilon}")
    least = ratio == 1 or factor * loss_of(ratio - 1) > epsilon
    need(least, file, "ratio", ratio, "the least that satisfies ε")


def check_sums_noise(file: str, plain: Plain, epsilon: Fraction) -> None:
    """The noise of sums and means."""
    noise, spread = Noise(file, plain["noise"], 2**62), plain["spread"]
    if plain["sums"] == 1:
        need(noise.is_unimodal or spread <= 10**6, file, "spread", spread, "at most 10^6")
        distances = {spread} if noise.is_unimodal else set(range(1, spread + 1))
        compared = cell_of_noise(file, noise, distances, epsilon)
        excess = max((pairs.excess(below_e(epsilon)) for pairs in compared), default=1)
        need(excess == 0, file, "guarantee", "a pure δ above 0", "0 at every distance")
        return
    ratio = noise.ratios[0]
    same(file, "noise.right", (noise.ratios[1], noise.periods[1]), (ratio, noise.periods[0]))
    check_ratio(file, ratio, spread, epsilon)
    for sign in (1, -1):
        for p, q in noise.pairs(sign).pairs:
            need(p * ratio <= q * UNIT, file, "noise", "a step above 1/ρ", "at most 1/ρ")


def cell_of_noise(file: str, noise: Noise, distances: set[int], epsilon: Fraction) -> list[Pairs]:
    """The comparisons of noise at some distances; none if it is far and not pure [32]."""
    need(work_of(noise, distances) <= 10**6, file, "size", work_of(noise, distances), "10^6")
    if not is_far(noise, distances):
        return [noise.pairs(sign * each) for each in sorted(distances) for sign in (1, -1)]
    pure = noise.step_ratio()
    times = ceil_div(max(distances), noise.periods[0] or 1)
    is_pure = pure is not None and pure**times * SCALE <= below_e(epsilon)
    return [Pairs({}, 1)] if is_pure else []


def check_gaps(file: str, plain: Plain, ratio: int) -> None:
    """Every change of one unit's votes moves every weight by at most the ratio."""
    size, cap = plain["categories"], plain["cap"]
    same(file, "spread", plain["spread"], 2)
    need(3 <= size <= 6 and cap >= 1, file, "categories", (size, cap), "3 to 6, cap from 1")
    states = [(0, *rest) for rest in product(range(cap + 1), repeat=size - 1)]
    states = [state for state in states if list(state) == sorted(state)]
    need(len(states) <= 2**15, file, "states", len(states), "at most 2^15")
    lists = [[int(weight) for weight in weights] for weights in plain["weights"]]
    same(file, "weights", [(len(w), sum(w)) for w in lists], [(size, 2**62 - 4)] * len(states))
    chance: dict[tuple[int, ...], dict[int, int]] = {}
    for state, weights in zip(states, lists, strict=True):
        chance[state] = dict(zip(state, weights, strict=True))
        same(file, "equal gaps", [chance[state][gap] for gap in state], weights)

    def weights_of(scores: list[int]) -> list[int]:
        gaps = [min(max(scores) - score, cap) for score in scores]
        return [chance[tuple(sorted(gaps))][gap] for gap in gaps]

    single = [tuple(int(i == place) for i in range(size)) for place in range(size)]
    moves = [*single, *(tuple(-c for c in one) for one in single)]
    moves += [tuple(a - b for a, b in zip(*two, strict=True)) for two in permutations(single, 2)]
    for rest in product(range(cap + 3), repeat=size - 1):
        if list(rest) != sorted(rest):
            continue
        scores = [0, *(-gap for gap in rest)]
        before = weights_of(scores)
        for move in moves:
            after = weights_of([a + b for a, b in zip(scores, move, strict=True)])
            for v, w in zip(before, after, strict=True):
                near_by = v * SCALE <= ratio * w and w * SCALE <= ratio * v
                need(near_by, file, "weights", f"{v} and {w} at gaps {rest}", "within ε")


def statistic_cells(file: str, plain: Plain, epsilon: Fraction) -> Mechanism:
    """What the profile of a statistic compares: its pure ε, or the noise of a sum."""
    if plain["mechanism"] == "noisy_sums" and plain["sums"] == 1:
        noise, spread = Noise(file, plain["noise"], 2**62), {plain["spread"]}
        small = work_of(noise, spread) <= 3 * 10**5 and not is_far(noise, spread)
        if noise.is_unimodal and small:
            return Mechanism(Fraction(0), epsilon, lambda _: integer_cell(noise, spread))
    return Mechanism(Fraction(0), epsilon)


# ---- Profiles (5.3.1) --------------------------------------------------------------------------

PARTS = 10**28
LONGEST = 2**14
SMALL = 10**6


@dataclass(frozen=True)
class Losses:
    """Masses at losses low·h, (low + 1)·h, …, and at an infinite loss; in units of 10^-28."""

    low: int
    masses: list[int]
    infinite: int


def cell_values(mechanism: Mechanism, far: int, step: Fraction) -> list[int] | None:
    """Upper bounds of δ at the losses 0, h, 2h, … of one cell; none if they are rough."""
    most = min(LONGEST, int(100 / step) + 1)
    pairs = mechanism.cell(far) if mechanism.cell else mechanism.epsilon
    if pairs is None:
        return None
    if isinstance(pairs, Fraction):
        if pairs > 100:
            return [PARTS]
        top = above_e(pairs)
        values: list[int] = []
        while len(values) < most and len(values) * step < pairs:
            excess = top - below_e(len(values) * step)
            values.append(min(PARTS, ceil_div(PARTS * excess, top + SCALE)))
        return shortened([*values, 0], step)
    lists = []
    for each in pairs:
        values = []
        finite = next((pair for pair in each.pairs if pair[1]), (0, 1))
        while len(values) < most:
            ratio = below_e(len(values) * step)
            bound = ceil_div(PARTS * each.excess(ratio), SCALE * each.total)
            values.append(min(PARTS, bound))
            if finite[0] * SCALE <= ratio * finite[1]:
                break
        lists.append(values)
    return largest(lists, step)


def largest(lists: list[list[int]], step: Fraction) -> list[int]:
    """The largest value at each loss; a list repeats its last value."""
    length = max(map(len, lists))
    filled = [values + values[-1:] * (length - len(values)) for values in lists]
    return shortened([max(column) for column in zip(*filled, strict=True)], step)


def shortened(values: list[int], step: Fraction) -> list[int]:
    """The list without equal values at its end."""
    values = values[: min(LONGEST, int(100 / step) + 2)]
    while len(values) > 1 and values[-1] == values[-2]:
        values.pop()
    return values


def losses_of(values: list[int], step: Fraction) -> Losses:
    """The distribution whose profile joins the values by chords."""
    last = len(values) - 1
    if last == 0:
        return Losses(0, [PARTS - values[0]], values[0])
    b, c = Fraction(SCALE, above_e(step)), Fraction(SCALE, below_e(step))
    falls = [before - after for before, after in pairwise(values)] + [0]
    upper, lower, g = [], [], Fraction(1)
    for i in range(1, last + 1):
        mass = max(0, ceil((falls[i - 1] - b * falls[i]) / (1 - c)))
        g = Fraction(ceil(10**45 * g * c), 10**45)
        upper.append(mass)
        lower.append(ceil(mass * g))
    middle = max(0, ceil(PARTS - ((1 + b) * values[0] - 2 * c * values[1]) / (1 - b)))
    return Losses(-last, [*reversed(lower), middle, *upper], values[last])


def folded(low: int, masses: list[int], infinite: int) -> Losses:
    """Small masses at the ends go to the infinite loss, and to the least loss that is left."""
    first, last, top, bottom = 0, len(masses), 0, 0
    while last > 1 and top + masses[last - 1] <= SMALL:
        last -= 1
        top += masses[last]
    while last - first > 1 and bottom + masses[first] <= SMALL:
        bottom += masses[first]
        first += 1
    kept = masses[first:last]
    kept[0] += bottom
    return Losses(low + first, kept, infinite + top)


def times(a: list[int], b: list[int]) -> list[int]:
    """The product of two polynomials, by one multiplication of long decimal numbers."""
    width = len(str(max(a))) + len(str(max(b))) + len(str(min(len(a), len(b)))) + 1
    work = Context(prec=(len(a) + len(b)) * width, Emax=10**15, Emin=-(10**15))
    texts = ["".join(str(c).rjust(width, "0") for c in reversed(each)) for each in (a, b)]
    text = format(work.multiply(Decimal(texts[0]), Decimal(texts[1])), "f")
    count = len(a) + len(b) - 1
    text = text.rjust(count * width, "0")[-count * width :]
    return [int(text[i * width : (i + 1) * width]) for i in reversed(range(count))]


def composed(a: Losses, b: Losses) -> Losses:
    """Both distributions together."""
    masses = [ceil_div(each, PARTS) for each in times(a.masses, b.masses)]
    lost = a.infinite * (sum(b.masses) + b.infinite) + b.infinite * sum(a.masses)
    return folded(a.low + b.low, masses, ceil_div(lost, PARTS))


def power(one: Losses, count: int) -> Losses:
    """Equal distributions together."""
    if count == 1:
        return one
    half = power(one, count // 2)
    both = composed(half, half)
    return composed(both, one) if count % 2 else both


def all_of(several: list[Losses]) -> Losses:
    """Different distributions together: the two with the fewest masses first."""
    waiting = list(several)
    while len(waiting) > 1:
        order = sorted(range(len(waiting)), key=lambda i: len(waiting[i].masses))
        first, second = order[0], order[1]
        both = composed(waiting[first], waiting[second])
        waiting = [each for i, each in enumerate(waiting) if i not in (first, second)] + [both]
    return waiting[0]


def read_values(total: Losses, step: Fraction) -> list[int]:
    """The profile of a distribution at the losses 0, h, 2h, …."""
    top = total.low + len(total.masses) - 1
    values, above, fallen = [total.infinite], 0, 0
    falls = SCALE * SCALE // above_e(step)
    for place in range(top, 0, -1):
        mass = total.masses[place - total.low] if place >= total.low else 0
        above, fallen = above + mass, (fallen + mass) * falls // SCALE
        values.append(min(PARTS, total.infinite + above - fallen))
    return shortened(values[::-1], step)


def patterns_of(query: Query, touched: int, free: int, spread: int | None) -> list[list[int]]:
    """By how much one unit moves the cells that it touches (4.3)."""
    if spread is not None:
        return [[spread] * touched]
    if query.kind != "count" or query.plain.get("of") is not None or not query.is_line:
        far = max(query.sensitivity(query.rows)[1]) if query.is_line else 0
        return [[far] * touched]
    rows, most = query.rows, query.group[0] - 1
    longest = min(free, rows, query.spec.privacy.get("max_cells_per_unit") or free)
    # Beyond 61 it does not matter how many partitions there are.
    parts: list[list[int]] = []
    for one in partitions(rows, rows, longest):
        parts.append(one)
        if len(parts) > 60:
            return [[min(rows, most)] * touched]
    found = {tuple(part) for part in parts}
    if not query.spec.is_one_way and free > 1:
        pairs = ((a, b) for a in parts for b in parts if len(a) + len(b) <= free)
        found = {tuple(sorted(a + b, reverse=True)) for a, b in pairs}
    if len(found) > 60:
        return [[min(rows, most)] * touched]
    return [list(each) for each in sorted({tuple(min(n, most) for n in each) for each in found})]


def partitions(total: int, largest_part: int, parts: int) -> Iterator[list[int]]:
    """The falling lists of at most so many positive integers with a sum."""
    if total == 0:
        yield []
    elif parts > 0:
        for first in range(min(total, largest_part), 0, -1):
            yield from ([first, *rest] for rest in partitions(total - first, first, parts - 1))


def profile_of(mechanism: Mechanism, patterns: list[list[int]], step: Fraction) -> list[int] | None:
    """The values of a profile; none where the page has rough values or coarser steps."""
    cells = {}
    for far in {far for pattern in patterns for far in pattern}:
        values = cell_values(mechanism, far, step)
        if values is None:
            return None
        cells[far] = values
    lists = []
    for pattern in patterns:
        longest = max(len(cells[far]) for far in pattern)
        if len(pattern) == 1:
            lists.append(cells[pattern[0]])
            continue
        if (2 * longest - 1) * (isqrt(len(pattern)) + 1) > 2**16:
            return None
        counted = sorted(Counter(pattern).items())
        several = [power(losses_of(cells[far], step), count) for far, count in counted]
        lists.append(read_values(all_of(several), step))
    return largest(lists, step)


# ---- Charges (4.3, 4.4) [26] -------------------------------------------------------------------


@dataclass
class Charged:
    """One published query or measured table, with what its charge and profile rest on."""

    query: Query
    entry: Plain
    mechanism: Mechanism | None
    touched: int
    free: int
    patterns: list[list[int]]

    @property
    def delta(self) -> Fraction:
        """The δ′ of 4.3."""
        claimed = number(self.entry["delta"])
        if self.mechanism is None or self.query.source == "empirical":
            return claimed
        return min(claimed, Fraction(ceil(self.mechanism.delta * 10**12), 10**12))

    def check(self) -> tuple[Fraction, Fraction]:
        """The charge, as the record has it."""
        name, entry = self.entry["name"], self.entry
        charge = self.touched * number(entry["epsilon"]), self.touched * self.delta
        stated = {"epsilon": exact(charge[0]), "delta": exact(charge[1])}
        same("release.json", f"{name}.charge", entry["charge"], stated)
        if "parallel" in entry:
            same("release.json", f"{name}.parallel", entry["parallel"], self.touched == 1)
        return charge


def step_of(charged: list[Charged], spec: Spec, spent: Fraction) -> Fraction:
    """The grid of a release without tabulations (4.3.1)."""
    budget = number(spec.plain["budget"]["epsilon"])
    count = sum(each.touched for each in charged)
    steps = max(1000, 50 * (isqrt(count - 1) + 1))
    whole = ceil_div(steps, count) * count if 1 < count <= 1000 else min(LONGEST, steps)
    if any(each.query.is_composed for each in charged):
        return budget / whole
    claims = [number(each.entry["epsilon"]) for each in charged]
    base = lcm(*(claim.denominator for claim in claims))
    unit = Fraction(gcd(*(int(claim * base) for claim in claims)), base)
    least = min(budget, spent) or budget
    if unit and LONGEST * unit >= least:
        return unit / ceil(unit * min(LONGEST, steps) / least)
    return least / whole


def check_total(
    record: Plain, spec: Spec, charged: list[Charged], profiles: list[list[int]] | None
) -> bool:
    """The charge of the release; whether it was proved."""
    file, stated, guarantee = "release.json", record["composition"], record["guarantee"]
    sums = {True: [Fraction(0), Fraction(0)], False: [Fraction(0), Fraction(0)]}
    for each in charged:
        sums[each.query.source == "empirical"] = [
            a + b for a, b in zip(sums[each.query.source == "empirical"], each.check(), strict=True)
        ]
    asserted, public = sums[True], sums[False]
    both = [a + b for a, b in zip(asserted, public, strict=True)]
    total = [number(stated["epsilon"]), number(stated["delta"])]
    caps = [number(spec.plain["budget"][name]) for name in ("epsilon", "delta")]
    within = total[0] <= caps[0] and total[1] <= caps[1] and total[1] < 1
    need(within, file, "charges", list(map(exact, total)), f"at most {list(map(exact, caps))}")
    same(file, "composition.rule", stated["rule"], ("basic-v1", "pld-v1")[spec.composes_exactly])
    for name, value in zip(("epsilon", "delta"), total, strict=True):
        same(file, f"composition.{name}", stated[name], exact(value))
        same(file, f"guarantee.{name}", guarantee[name], exact(value))
    names = {each.entry["definition"] for each in charged if each.delta > 0}
    kind = next((name for name in ("approximate", "probabilistic") if name in names), "pure")
    if spec.composes_exactly and total[1] > 0:
        kind = "approximate"
    same(file, "guarantee.definition", guarantee["definition"], kind)
    if not spec.composes_exactly or total == both:
        same(file, "composition", list(map(exact, total)), list(map(exact, both)))
        return True
    same(file, "composition.delta", total[1], caps[1])
    if profiles is None:
        return False
    step, epsilon = number(stated["step"]), total[0] - asserted[0]
    whole = all_of([losses_of(values, step) for values in profiles])
    delta = Fraction(whole.infinite)
    for place, mass in enumerate(whole.masses, whole.low):
        above = place * step - epsilon
        if above > 0:
            left = 1 - Fraction(SCALE, above_e(above)) if above <= 100 else 1
            delta += mass * left
    spare = caps[1] - asserted[1]
    need(delta <= spare * PARTS, file, "composition", f"δ {up(delta / PARTS, 20)}", exact(spare))
    return True


# ---- Signatures (5.9): Ed25519 of RFC 8032, section 5.1 ----------------------------------------

FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, -1, FIELD) % FIELD
Point = tuple[int, int, int, int]


def point_at(data: bytes) -> Point | None:
    """The point of 32 bytes, in extended coordinates; none if they are no point."""
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    if y >= FIELD:
        return None
    square = (y * y - 1) * pow(CURVE * y * y + 1, -1, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    if (x * x - square) % FIELD:
        x = x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD
    if (x * x - square) % FIELD or (x == 0 and sign):
        return None
    x = FIELD - x if x % 2 != sign else x
    return x, y, 1, x * y % FIELD


def add(p: Point, q: Point) -> Point:
    """The sum of two points."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * CURVE, 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % FIELD, g * h % FIELD, f * g % FIELD, e * h % FIELD


def multiple(scalar: int, point: Point) -> Point:
    """The point times the scalar."""
    result: Point = (0, 1, 1, 0)
    for bit in bin(scalar)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


BASE_POINT = point_at((4 * pow(5, -1, FIELD) % FIELD).to_bytes(32, "little"))


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature verifies."""
    if len(signature) != 64 or BASE_POINT is None:
        return False
    a, r = point_at(key), point_at(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= ORDER:
        return False
    hashed = hashlib.sha512(signature[:32] + key + message).digest()
    left = multiple(s, BASE_POINT)
    right = add(r, multiple(int.from_bytes(hashed, "little") % ORDER, a))
    equal = [(left[i] * right[2] - right[i] * left[2]) % FIELD for i in (0, 1)]
    return equal == [0, 0]


@dataclass(frozen=True)
class Key:
    """A public key with its name."""

    name: str
    key: bytes

    @property
    def hint(self) -> bytes:
        """The first 4 bytes of its hash."""
        return hashlib.sha256(self.name.encode() + b"\n\x01" + self.key).digest()[:4]


def decode(file: str, text: str) -> bytes:
    """Base64 in its one form."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise RefusedError(file, "base64", text, "base64") from error
    same(file, "base64", base64.b64encode(data).decode(), text)
    return data


def read_key(text: str) -> Key:
    """A key from its text."""
    match = re.fullmatch(r"([!-*,-~]{1,200})\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text.strip())
    if match is None:
        raise RefusedError("key", "form", text, "name+hint+base64")
    data = decode("key", match[3])
    need(len(data) == 33 and data[0] == 1, "key", "form", data[:1], "byte 1 and 32 bytes")
    key = Key(match[1], data[1:])
    same("key", "hint", match[2], key.hint.hex())
    return key


@dataclass(frozen=True)
class Checkpoint:
    """A signed checkpoint (7.4), and the keys that signed it."""

    origin: str
    size: int
    root: bytes
    signers: frozenset[Key]


def read_checkpoint(file: str, text: str, keys: Iterable[Key]) -> Checkpoint:
    """Read a checkpoint and check the signature of every known key."""
    match = re.fullmatch(
        r"(([^\n]+)\n(0|[1-9][0-9]{0,8})\n([^\n]+)\n)\n((— [^ \n]+ [A-Za-z0-9+/=]+\n){1,100})", text
    )
    if match is None:
        raise RefusedError(file, "checkpoint", text[:80], "origin, size, root and signatures")
    known = {(key.name, key.hint): key for key in keys}
    signers = set()
    for line in match[5].splitlines():
        _, name, encoded = line.split(" ")
        data = decode(file, encoded)
        key = known.get((name, data[:4]))
        if key is not None:
            signed = is_signed(key.key, match[1].encode(), data[4:])
            need(signed, file, "signature", f"a false one of {name}", "a signature of its key")
            signers.add(key)
    need(signers, file, "checkpoint", "no signature of a known key", "one of a known key")
    root = decode(file, match[4])
    return Checkpoint(match[2], int(match[3]), root, frozenset(signers))


# ---- The ledger (7) ----------------------------------------------------------------------------

ENTRY = {"seq": int, "prev": str, "date": str, "kind": str}
CAP = {"scope": str, **FIGURES, "period?": ({"every": str, **FIGURES}, None)}
OTHER_RULES = {"rule?": str, "planned?": list, "order?": int, "cuts?": EXACT}
RELEASED = {**ENTRY, "release_id": str}
ENTRIES: dict[str, Plain] = {
    "genesis": {**ENTRY, "origin": str, "scopes": [{**CAP, **OTHER_RULES}], "keys": [str]},
    "reserve": {
        **{**RELEASED, "scope": str, **FIGURES, "run?": re.compile("[0-9a-f]{32}")},
        **{"slot?": str, "moment?": EXACT, "cut?": EXACT},
    },
    "commit": {**RELEASED, "attestation": re.compile("sha256:[0-9a-f]{64}")},
    "abort": {**RELEASED, "drawn": bool},
    "withdraw": RELEASED,
    "policy": {**ENTRY, "cap": {**CAP, **OTHER_RULES}},
    "key": {**ENTRY, "action": frozenset(("add", "retire")), "key": str, "signature": str},
    "store": {**ENTRY, "uri": str},
}


def leaf(data: bytes) -> bytes:
    """The hash of a leaf (7.5)."""
    return hashlib.sha256(b"\0" + data).digest()


def node(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees."""
    return hashlib.sha256(b"\1" + left + right).digest()


def split(size: int) -> int:
    """The largest power of two below the size."""
    return 1 << ((size - 1).bit_length() - 1)


def root_of(leaves: list[bytes]) -> bytes:
    """The root of the tree."""
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return node(root_of(leaves[:k]), root_of(leaves[k:]))


def root_by_path(hashed: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root to which an audit path leads."""
    if size == 1 or not path:
        need(size == 1 and not path, "ledger.proof", "path", len(path), "one hash for each level")
        return hashed
    k = split(size)
    if index < k:
        return node(root_by_path(hashed, index, k, path[:-1]), path[-1])
    return node(path[-1], root_by_path(hashed, index - k, size - k, path[:-1]))


@dataclass
class Ledger:
    """The state after all entries, and what the checks of a release ask of them (7.3)."""

    entries: list[Plain] = field(default_factory=list)
    leaves: list[bytes] = field(default_factory=list)
    keys: list[list[Key]] = field(default_factory=list)
    caps: dict[str, Plain] = field(default_factory=dict)
    spent: dict[tuple[str, str, str], Fraction] = field(default_factory=dict)
    open: dict[str, Plain] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)

    def follow(self, data: bytes, file: str) -> None:
        """Apply the next entry."""
        entry = read_json(file, data)
        need(entry.get("kind") in ENTRIES, file, "kind", entry.get("kind"), sorted(ENTRIES))
        check_shape(file, "", entry, ENTRIES[entry["kind"]])
        same(file, "seq", entry["seq"], len(self.entries))
        before = self.entries[-1] if self.entries else None
        expected = digest(canonical(before)) if before else "0" * 64
        same(file, "prev", entry["prev"], f"sha256:{expected}")
        later = before is None or entry["date"] >= before["date"]
        need(is_date(entry["date"]) and later, file, "date", entry["date"], "a day, in order")
        same(file, "genesis first", entry["kind"] == "genesis", before is None)
        keys = list(self.keys[-1]) if self.keys else []
        if entry["kind"] == "genesis":
            keys = [read_key(text) for text in entry["keys"]]
            same(file, "keys", [key.name for key in keys], [entry["origin"]])
            self.caps = {cap["scope"]: cap for cap in entry["scopes"]}
            same(file, "scopes", len(self.caps), len(entry["scopes"]))
        elif entry["kind"] == "policy":
            cap, old = entry["cap"], self.caps.get(entry["cap"]["scope"])
            rule = cap.get("rule", "basic")
            kept = old is None or old == cap or rule == old.get("rule", "basic") == "basic"
            need(kept, file, "policy", rule, "the rule of the scope")
            self.caps[cap["scope"]] = cap
        elif entry["kind"] == "key":
            self.change_key(entry, file, keys)
        elif entry["kind"] != "store":
            self.follow_release(entry, file)
        self.entries.append(entry)
        self.leaves.append(leaf(data))
        self.keys.append(keys)

    def change_key(self, entry: Plain, file: str, keys: list[Key]) -> None:
        """Add or retire a key, as a valid one signed."""
        key, message = read_key(entry["key"]), canonical(entry | {"signature": ""})
        same(file, "key.name", key.name, self.entries[0]["origin"])
        retire, signature = entry["action"] == "retire", decode(file, entry["signature"])
        others = [each for each in keys if not (retire and each == key)]
        signed = any(is_signed(each.key, message, signature) for each in others)
        need((key in keys) == retire and signed, file, "key", entry["action"], "a signed change")
        keys.remove(key) if retire else keys.append(key)

    def follow_release(self, entry: Plain, file: str) -> None:
        """Reserve, commit, abort or withdraw."""
        name, kind = entry["release_id"], entry["kind"]
        if kind == "reserve":
            fresh = name not in self.open and name not in self.committed
            need(fresh and entry["scope"] in self.caps, file, "reserve", name, "a new release")
            self.book(entry, 1)
            self.check_cap(entry, file)
            self.open[name] = entry
        elif kind == "withdraw":
            public = name in self.committed and name not in self.withdrawn
            need(public, file, "withdraw", name, "a committed release")
            self.withdrawn.add(name)
        else:
            need(name in self.open, file, kind, name, "a release with an open reserve")
            reserve = self.open.pop(name)
            if kind == "commit":
                self.committed[name] = entry["seq"]
            elif not entry["drawn"]:
                self.book(reserve, -1)

    def book(self, entry: Plain, sign: int) -> None:
        """Add a charge to the scope, and to the day, the month and the year."""
        for day in ("", entry["date"], entry["date"][:7], entry["date"][:4]):
            for what in ("epsilon", "delta"):
                key = (entry["scope"], day, what)
                self.spent[key] = self.spent.get(key, Fraction(0)) + sign * number(entry[what])

    def check_cap(self, entry: Plain, file: str) -> None:
        """What was spent is within the cap of the scope."""
        cap = self.caps[entry["scope"]]
        rule = cap.get("rule", "basic")
        extra = {name for name in ("slot", "moment", "cut") if name in entry}
        fields = {"basic": set(), "pld": {"slot"}, "renyi_filter": {"moment", "cut"}}[rule]
        same(file, "fields of the rule", sorted(extra), sorted(fields))
        bounds = [("", cap)] if rule == "basic" else []
        if bounds and cap.get("period") is not None:
            length = {"day": 10, "month": 7, "year": 4}[cap["period"]["every"]]
            bounds.append((entry["date"][:length], cap["period"]))
        for day, bound in bounds:
            for what in ("epsilon", "delta"):
                spent = self.spent[entry["scope"], day, what]
                need(spent <= number(bound[what]), file, f"cap {day}", spent, bound[what])

    def check_checkpoint(self, file: str, text: str) -> Checkpoint:
        """A checkpoint that is of this ledger (7.6)."""
        every = {key for keys in self.keys for key in keys}
        point = read_checkpoint(file, text, every)
        need(1 <= point.size <= len(self.entries), file, "size", point.size, len(self.entries))
        signed = point.signers & set(self.keys[point.size - 1])
        need(signed, file, "signature", "none of a valid key", "one of a key valid at its size")
        same(file, "origin", point.origin, self.entries[0]["origin"])
        same(file, "root", point.root, root_of(self.leaves[: point.size]))
        return point


def read_ledger(folder: Path) -> Ledger:
    """Replay a ledger."""
    ledger = Ledger()
    names = sorted(p.name for p in folder.iterdir() if re.fullmatch(r"[0-9]{8}\.json", p.name))
    same("ledger", "files", names, [f"{n:08}.json" for n in range(len(names))])
    need(names, "ledger", "entries", "none", "one or more")
    for name in names:
        ledger.follow((folder / name).read_bytes(), name)
    return ledger


# ---- Attestation and proof (8.5) ---------------------------------------------------------------


@dataclass(frozen=True)
class Trust:
    """What the auditor was given, and asks for."""

    keys: tuple[Key, ...]
    ledger: Path | None
    require: str


def check_provenance(
    files: dict[str, bytes], record: Plain, sums: dict[str, str], trust: Trust, verdict: Verdict
) -> None:
    """Who signed, and whether the charge was reserved [14-22]."""
    name, sequence, file = record["release_id"], record["ledger"]["sequence"], "ledger.proof"
    if sequence is None:
        given = trust.keys or trust.ledger is not None
        need(not given, "release.json", "ledger.sequence", None, "the number of an entry")
        if trust.require != "none":
            verdict.missing.append("who published this: no ledger, so nothing is signed")
        return
    ledger, keys, every = None, list(trust.keys), set(trust.keys)
    if trust.ledger is not None:
        ledger = read_ledger(trust.ledger)
        text = (trust.ledger / "checkpoint").read_text("utf-8")
        own = ledger.check_checkpoint("checkpoint", text)
        same("checkpoint", "size", own.size, len(ledger.entries))
        public = name in ledger.committed and name not in ledger.withdrawn
        need(public, "ledger", "commit", name, "committed and not withdrawn")
        keys, every = ledger.keys[ledger.committed[name]], {k for some in ledger.keys for k in some}
    check_attestation(files, record, sums, keys)
    if not keys:
        if trust.require != "none":
            verdict.missing.append("who signed: give --trust KEY or --ledger DIR")
        return
    match = re.fullmatch(
        r"c2sp\.org/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9][0-9]*)\n((?:\S{44}\n){0,63})\n(.+)",
        files[file].decode("utf-8"),
        re.DOTALL,
    )
    if match is None:
        raise RefusedError(file, "form", "another", "that of section 5.11")
    data, index = decode(file, match[1]), int(match[2])
    point = read_checkpoint(file, match[4], every)
    need(
        any(key.name == point.origin for key in every), file, "origin", point.origin, "a key's name"
    )
    need(index < point.size, file, "index", index, f"below {point.size}")
    path = [decode(file, line) for line in match[3].split()]
    same(file, "root", root_by_path(leaf(data), index, point.size, path), point.root)
    entry = read_json(file, data)
    check_shape(file, "", entry, ENTRIES["commit"])
    signed = "sha256:" + sums["attestation.dsse.json"]
    found = (entry["kind"], entry["release_id"], entry["seq"], entry["attestation"])
    same(file, "entry", found, ("commit", name, index, signed))
    verdict.proved.append("a key signed every file, and a signed ledger holds the commit")
    if ledger is None:
        if trust.require == "paid":
            verdict.missing.append("that the charge was reserved: give --ledger DIR")
        return
    ledger.check_checkpoint(file, match[4])
    same(file, "entry of the ledger", ledger.leaves[index], leaf(data))
    if trust.keys:
        signers = point.signers | own.signers | set(ledger.keys[0])
        need(signers & set(trust.keys), "ledger", "trust", "no trusted key", "one of --trust")
    elif trust.require != "none":
        verdict.missing.append("whose ledger this is: give --trust KEY")
    check_reserve(ledger, record, verdict)


def check_reserve(ledger: Ledger, record: Plain, verdict: Verdict) -> None:
    """The entry that pays for the release [22]."""
    name, sequence = record["release_id"], record["ledger"]["sequence"]
    between = ledger.entries[sequence + 1 : ledger.committed[name]]
    entry = ledger.entries[sequence]
    same("ledger", "kind of the entry", entry["kind"], "reserve")
    total = record["composition"]
    expected = (name, record["ledger"]["scope"], total["epsilon"], total["delta"])
    found = tuple(entry[each] for each in ("release_id", "scope", "epsilon", "delta"))
    same("ledger", f"entry {sequence}", found, expected)
    others = [each for each in between if each.get("release_id") == name]
    same("ledger", "entries between", others, [])
    if ledger.caps[entry["scope"]].get("rule", "basic") == "basic":
        verdict.proved.append("the ledger is intact, reserved the charge, and kept every cap")
    else:
        verdict.missing.append("whether the release fits the plan or filter of its scope")


def check_attestation(
    files: dict[str, bytes], record: Plain, sums: dict[str, str], keys: list[Key]
) -> None:
    """The envelope, its signature and its subjects [16, 17]."""
    file = "attestation.dsse.json"
    envelope, kind = read_json(file, files[file]), "application/vnd.in-toto+json"
    shape = {"payload": str, "payloadType": str, "signatures": [{"keyid": DIGEST, "sig": str}]}
    check_shape(file, "", envelope, shape)
    same(file, "payloadType", envelope["payloadType"], kind)
    same(file, "signatures", len(envelope["signatures"]), 1)
    payload, signature = decode(file, envelope["payload"]), envelope["signatures"][0]
    sig = decode(file, signature["sig"])
    if keys:
        owners = [key for key in keys if digest(key.key) == signature["keyid"]]
        message = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
        signed = any(is_signed(key.key, message, sig) for key in owners)
        need(signed, file, "signature", signature["keyid"], "the signature of a known key")
    outside = (file, "ledger.proof")
    subjects = [
        {"digest": {"sha256": sums[name]}, "name": name} for name in sums if name not in outside
    ]
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "predicate": {
            **{name: record["composition"][name] for name in ("delta", "epsilon")},
            **{"release_id": record["release_id"], **record["ledger"]},
        },
        **{"predicateType": "dp-release/release/v1", "subject": subjects},
    }
    same(file, "payload", payload, canonical(statement))


# ---- The auditor bundle (6) --------------------------------------------------------------------


def open_auditor(record: Plain, folder: Path | None, spec: Spec) -> dict[str, bytes]:
    """The committed mechanism files, by query [28, 29, 41]."""
    committed = [e for e in record["queries"] if "commitment" in e["mechanism_file"]]
    if folder is None or not committed:
        return {}
    if not (folder / "openings.json").exists():
        folder = folder / record["release_id"]
    files, names = bundle_files(folder), [entry["name"] for entry in committed]
    expected = [f"{kind}/{name}.json" for kind in ("mechanisms", "sensitivity") for name in names]
    same("auditor bundle", "files", sorted(files), sorted([*expected, "openings.json"]))
    openings = read_json("openings.json", files["openings.json"])
    opening = {"commitment": COMMITMENT["commitment"], "key": DIGEST}
    paths = dict.fromkeys((f"mechanisms/{name}.json" for name in names), opening)
    check_shape(
        "openings.json", "", openings, {"openings": paths, "release_id": str, "schema": str}
    )
    found = (openings["schema"], openings["release_id"])
    same("openings.json", "release", found, ("dp-release/openings/v1", record["release_id"]))
    opened = {}
    for entry in committed:
        path = f"mechanisms/{entry['name']}.json"
        pair, data = openings["openings"][path], files[path]
        value = hmac.new(bytes.fromhex(pair["key"]), data, hashlib.sha256).hexdigest()
        for text in (pair["commitment"], f"hmac-sha256:{value}"):
            right = hmac.compare_digest(text, entry["mechanism_file"]["commitment"])
            need(right, path, "commitment", "another", "that of release.json")
        opened[entry["name"]] = data
        check_sensitivity(entry["name"], files, read_json(path, data), spec)
    return opened


def check_sensitivity(name: str, files: dict[str, bytes], mechanism: Plain, spec: Spec) -> None:
    """The sensitivity record says what the mechanism file says (6.2)."""
    file = f"sensitivity/{name}.json"
    found = read_json(file, files[file])
    if mechanism["mechanism"] == "modular":
        distances, stated = None, mechanism["sensitivity"]
    else:
        of = mechanism.get("distances") or [[abs(a - b)] * 2 for a, b in mechanism["pairs"]]
        distances = sorted({s for first, last in of for s in range(first, last + 1)})
        size = mechanism["group"][0]
        stated = [[s] for s in sorted({c for d in distances for c in (d, size - d)})]
        need(1 in distances, file, "distances", distances, "1 among them")
    expected = {
        **{"schema": "dp-release/sensitivity/v1", "query": name, "source": "empirical"},
        **{"neighbors": spec.privacy["neighbors"], "group": mechanism["group"]},
        **{"sensitivity": stated, "apart": distances},
    }
    same(file, "sensitivity", {"apart": None} | found, expected)


# ---- The whole verification (8) ----------------------------------------------------------------


def verify(public: Path, auditor: Path | None, trust: Trust) -> Verdict:
    """Check a release; what cannot be read is in the verdict."""
    verdict = Verdict()
    files = bundle_files(public)
    sums = check_sums(files)
    verdict.tested.append(f"the SHA-256 of {len(sums)} files")
    record = read_json("release.json", files["release.json"])
    check_shape("release.json", "", record, RECORD)
    found = (record["schema"], record["kind"], record["release_id"])
    same(
        "release.json",
        "release",
        found,
        ("dp-release/release/v1", "RELEASE", public.resolve().name),
    )
    check_files_of(record, sums)
    check_provenance(files, record, sums, trust, verdict)
    if "spec.json" not in files:
        verdict.missing.append(
            "the spec: an older release has no spec.json, so no figure is proved"
        )
        return verdict
    spec = Spec(read_json("spec.json", files["spec.json"]))
    check_record(record, spec)
    verdict.proved.append("release.json says what the spec says")
    opened = open_auditor(record, auditor, spec)
    try:
        check_figures(files, record, spec, opened, verdict)
    except UnreadError as error:
        verdict.missing.append(f"charges: {error}")
    return verdict


def check_figures(
    files: dict[str, bytes], record: Plain, spec: Spec, opened: dict[str, bytes], verdict: Verdict
) -> None:
    """Mechanisms, profiles and charges."""
    charged = check_queries(files, record, spec, opened, verdict)
    profiles = check_profiles(files, record, spec, charged, verdict)
    if check_total(record, spec, charged, profiles):
        verdict.proved.append("the charges follow from the spec, and their total keeps its cap")
    else:
        verdict.missing.append("the total: a profile that is not recomputed here")


def check_queries(
    files: dict[str, bytes], record: Plain, spec: Spec, opened: dict[str, bytes], verdict: Verdict
) -> list[Charged]:
    """The mechanism and the reach of every published query and measured table."""
    asked: list[tuple[Query, Plain]] = list(zip(spec.published, record["queries"], strict=True))
    for tabulation in record.get("tabulations", []):
        for entry in tabulation["measured"]:
            asked.append((TableCount(entry["name"], spec), entry | {"mechanism": "integer"}))
    sizes = spec.key_sizes(record)
    charged = []
    for query, entry in asked:
        file = entry["mechanism_file"].get("path") or f"mechanisms/{query.name}.json"
        data = files.get(file) if "path" in entry["mechanism_file"] else opened.get(query.name)
        mechanism, spread = None, None
        if data is None:
            verdict.missing.append(f"{query.name}: its mechanism is committed; give --auditor DIR")
        else:
            plain = read_json(file, data)
            mechanism, spread = check_mechanism(file, plain, query, entry), plain.get("spread")
            owner = file.removeprefix("mechanisms/").removesuffix(".json")
            same(file, "query", plain["query"], owner)
            verdict.proved.append(f"{query.name}: the mechanism satisfies its guarantee")
        free = entry["cells"]
        for column in query.by:
            if column in spec.fixed:
                if column not in sizes:
                    raise UnreadError(f"the number of keys of {column}: they stand in a file")
                free //= sizes[column]
        touched = query.cells_touched(free, entry["cells"])
        public = query.source != "empirical"
        patterns = patterns_of(query, touched, free, spread) if public else []
        charged.append(Charged(query, entry, mechanism, touched, free, patterns))
    return charged


def check_profiles(
    files: dict[str, bytes], record: Plain, spec: Spec, charged: list[Charged], verdict: Verdict
) -> list[list[int]] | None:
    """The profile of every public mechanism [40]; none if one of them is not recomputed."""
    public = [each for each in charged if each.query.source != "empirical"]
    spent = sum((each.touched * number(each.entry["epsilon"]) for each in public), Fraction(0))
    stated = record["composition"]["step"]
    shared = None
    if spec.tabulations:
        # A total is proved on any grid, and this one rests on the areas, in a table.
        shared = number(stated)
        need(shared > 0, "release.json", "composition.step", stated, "a number above 0")
    elif spec.composes_exactly and public:
        shared = step_of(public, spec, spent)
    same("release.json", "composition.step", stated, None if shared is None else exact(shared))
    known: dict[tuple[str, str], list[int] | None] = {}
    lists: list[list[int]] = []
    for each in public:
        file = each.entry["mechanism_file"]["path"]
        plain, epsilon = read_json(file, files[file]), number(each.entry["epsilon"])
        step = shared or (epsilon or Fraction(1)) / 64
        need("profile" in plain and each.mechanism is not None, file, "profile", "none", "one")
        profile = plain["profile"]
        same(file, "profile.step", profile["step"], exact(step))
        same(file, "profile.patterns", profile["patterns"], each.patterns)
        key = (file, str(each.patterns))
        if key not in known and each.mechanism is not None:
            known[key] = profile_of(each.mechanism, each.patterns, step)
        values = known[key]
        if values is None:
            verdict.missing.append(f"{each.query.name}: a rough profile or a coarse grid")
        else:
            same(file, "profile.values", profile["values"], list(map(str, values)))
            lists.append(values)
    return lists if len(lists) == len(public) else None


def main(arguments: list[str]) -> int:
    """The command line; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="standalone.py", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("public", type=Path)
    parser.add_argument("--auditor", type=Path)
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--trust", action="append", default=[])
    parser.add_argument("--require", choices=("none", "signed", "paid"), default="signed")
    given = parser.parse_args(arguments)
    try:
        texts = [Path(k).read_text("utf-8") if Path(k).is_file() else k for k in given.trust]
        trust = Trust(tuple(map(read_key, texts)), given.ledger, given.require)
        verdict = verify(given.public, given.auditor, trust)
    except RefusedError as error:
        sys.stdout.write(f"refused: {error}\n")
        return 1
    except (ArithmeticError, LookupError, TypeError, ValueError, OSError, StopIteration) as error:
        sys.stdout.write(f"refused: a file is not of its form: {type(error).__name__}: {error}\n")
        return 1
    for line in verdict.proved:
        sys.stdout.write(f"proved: {line}\n")
    for line in verdict.tested:
        sys.stdout.write(f"tested: {line}\n")
    for line in (*verdict.missing, *NEVER_READ):
        sys.stdout.write(f"not read: {line}\n")
    return 3 if verdict.missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
