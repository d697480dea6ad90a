"""A second verifier of dp-release: one file, standard library only, written from the page alone.

    python3 -I -S standalone.py PUBLIC [--auditor DIR] [--ledger DIR] [--trust KEY]… [--require …]

It was written from ``docs/design/format.md`` and shares no code with the program that writes
releases. The numbers in brackets are sections and steps of that page. It prints what it *proved*
in exact arithmetic, what it *tested* by comparison, and what it did *not read*. The exit status is
0 if all that it reads is right, 1 if the release is refused, and 3 if something it reads was not
there: a signature, or an auditor bundle.
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
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice, pairwise, permutations, product
from itertools import combinations_with_replacement as multisets
from math import ceil, gcd, isqrt, lcm, prod
from pathlib import Path
from typing import Any

Plain = dict[str, Any]

NEVER_READ = (
    "the tables (Parquet): their hashes are compared, their keys and answers are not opened; so "
    "neither are the numbers of areas, and of keys that stand in a file",
    "spec.yaml: this file reads spec.json, and cannot compare it with the YAML",
    "report.html, datapackage.json and registry.yaml: their hashes are compared, no more",
    "whether the trees of conditions are what their SQL says, and their patterns; accuracy, "
    "expected loss and ε of all differences of mechanisms; rules of a spec that no figure rests on",
    "lower bounds of other classes than noise on the integers; constraints on modular noise; that "
    "a share or target claims no more than needed; the estimates of tabulations, and a guarantee "
    "of one among others; residuals; stores",
)

PAGE = "what docs/design/format.md says"


class RefusedError(Exception):
    """A check failed: the file, the check, the value and what was expected."""

    def __init__(self, file: str, check: str, value: object, expected: object) -> None:
        value, expected = str(value)[:300], str(expected)[:300]
        super().__init__(f"{file}: {check}: found {value}, expected {expected}")


def need(holds: object, file: str, check: str, value: object, expected: object = PAGE) -> None:
    """Refuse if a condition does not hold."""
    if not holds:
        raise RefusedError(file, check, value, expected)


def same(file: str, check: str, value: object, expected: object) -> None:
    """Refuse values that differ; JSON tells ``true`` from 1, so types are compared too."""
    equal = type(value) is type(expected) and value == expected
    need(equal, file, check, repr(value), repr(expected))


def agree(file: str, plain: Plain, expected: Plain, at: str = "") -> None:
    """Refuse an object of which a field differs from what is expected of it."""
    for name, value in expected.items():
        same(file, f"{at}{name}", plain[name], value)


@dataclass
class Verdict:
    """What was proved and tested, and what was there to be read and could not be."""

    proved: list[str] = field(default_factory=list)
    tested: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


# ---- Canonical JSON (1.1) and the forms of files ------------------------------------------------


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
    """One object in canonical form; a repeated key cannot serialise to its bytes."""

    def integer(text: str) -> int:
        if not re.fullmatch("-?[0-9]{1,16}", text) or abs(int(text)) >= 2**53:
            raise ValueError(f"the number {text[:40]}")
        return int(text)

    numbers: Plain = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), integer)
    try:
        value: Any = json.loads(data.decode("utf-8"), **numbers)
        is_canonical = isinstance(value, dict) and canonical(value) == data
    except (ValueError, RecursionError) as error:
        raise RefusedError(file, "JSON", error, "canonical JSON") from error
    need(is_canonical, file, "JSON", "another form", "one object in canonical form")
    plain: Plain = value
    return plain


def check_shape(file: str, value: Any, shape: Any, at: str = "") -> None:
    """Compare a value with a shape: a type, choices, a range, None, [items], {fields}, (either…).

    A field whose name ends in ``?`` may be absent. Fields that the shape does not name are refused.
    A shape of one pattern in place of names is that of any fields whose names match it.
    """
    right = True
    if isinstance(shape, dict):
        need(type(value) is dict, file, at, type(value).__name__, "an object")
        pattern = next((each for each in shape if isinstance(each, re.Pattern)), None)
        if pattern is not None:
            need(all(map(pattern.fullmatch, value)), file, at, sorted(value), "names of its form")
            shape = {f"{name}?": shape[pattern] for name in value}
        inner = {name.removesuffix("?"): each for name, each in shape.items()}
        needed = {name for name in shape if not name.endswith("?")}
        right = needed <= set(value) <= set(inner)
        need(right, file, at, sorted(value), f"the fields {sorted(inner)}")
        for name in value:
            check_shape(file, value[name], inner[name], f"{at}.{name}".strip("."))
    elif isinstance(shape, list):
        need(type(value) is list, file, at, type(value).__name__, "a list")
        for place, item in enumerate(value):
            check_shape(file, item, shape[0], f"{at}[{place}]")
    elif isinstance(shape, tuple):
        right = any(fits(value, each) for each in shape)
    elif isinstance(shape, re.Pattern):
        right = type(value) is str and bool(shape.fullmatch(value))
    elif isinstance(shape, frozenset | range):
        right = type(value) is (str if isinstance(shape, frozenset) else int) and value in shape
    else:
        right = type(value) is (type(None) if shape is None else shape)
    need(right, file, at, repr(value), f"the form {shape}")


def fits(value: Any, shape: Any) -> bool:
    """Whether a value has a shape."""
    try:
        check_shape("", value, shape)
    except RefusedError:
        return False
    return True


# ---- Exact numbers (1.2), dates (1.5), and the rationals about e^ε (1.3) ------------------------

EXACT = re.compile(r"(?=.{1,400}\Z)[0-9]+(\.[0-9]+|/[1-9][0-9]*)?")
WHOLE = re.compile(r"(?=.{1,400}\Z)(0|[1-9][0-9]*)")
SCALE = 10**40
UNIT = 2**64
ACCEPTANCE = re.compile(
    r"[^:]+: *(p95|mean_error|error_rate|absolute|squared) *<= *[0-9]{1,40}([./][0-9]{1,40})? *"
)


@lru_cache(maxsize=40_000, typed=True)
def number(text: Any) -> Fraction:
    """The value of an exact number; a spec may hold an integer in its place."""
    if type(text) is int and text >= 0:
        return Fraction(text)
    need(fits(text, EXACT), "file", "exact number", repr(text), "an exact number")
    return Fraction(text)


def decimal(scaled: int, places: int) -> str:
    """The decimal form of scaled / 10^places."""
    digits = str(scaled).rjust(places + 1, "0")
    cut = len(digits) - places
    return f"{digits[:cut]}.{digits[cut:]}".rstrip("0").rstrip(".")


def exact(value: Fraction) -> str:
    """``exact(x)`` of 1.2."""
    places = value.denominator.bit_length()
    if 10**places % value.denominator:
        return f"{value.numerator}/{value.denominator}"
    return decimal(int(value * 10**places), places)


def up(value: Fraction, places: int) -> str:
    """``up(x, p)`` of 1.2."""
    return decimal(ceil(value * 10**places), places)


def ceil_div(value: int, by: int) -> int:
    """The quotient, rounded up."""
    return -(-value // by)


def is_date(text: Any) -> bool:
    """A day of the Gregorian calendar (1.5)."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == str(text)
    except (TypeError, ValueError):
        return False


@lru_cache(maxsize=40_000)
def power_of_e(value: Fraction) -> tuple[int, int]:
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
    return max(SCALE, power_of_e(value)[0] - 1)


def above_e(value: Fraction) -> int:
    """10^40 · r̄(ε): more than 10^40 · e^ε."""
    return power_of_e(value)[1] + 1


# ---- Files and digests (8.1) -------------------------------------------------------------------

SUM_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_./-]*)\n")


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
            plain = path.is_file() and path.stat().st_size <= 2**30
            need(plain, name, "file set", "another", "a plain file of at most 2^30 bytes")
            files[name] = path.read_bytes()
    return files


def check_sums(files: dict[str, bytes]) -> dict[str, str]:
    """The digests of SHA256SUMS, compared with the files [2-4]."""
    file = "SHA256SUMS"
    need(file in files, file, "file", "none", "the list of digests")
    lines = files[file].decode("latin-1").splitlines(keepends=True)
    matches = [match for match in map(SUM_LINE.fullmatch, lines) if match]
    same(file, "lines of a digest, two blanks and a path", len(matches), len(lines))
    names = [match[2] for match in matches]
    same(file, "order, each once", names, sorted(set(names)))
    same(file, "file set", names, sorted(set(files) - {file}))
    for match in matches:
        same(match[2], "SHA-256", digest(files[match[2]]), match[1])
    return {match[2]: match[1] for match in matches}


# ---- The spec (3), and what follows from it (4) -------------------------------------------------

STATISTICS = ("sum", "mean", "min", "max", "median")
LINE_LOSSES = ("error_rate", "absolute", "squared")
DESCRIPTIONS = ("title", "curator", "contact", "purpose", "period", "license")
TYPES = ("boolean", "integer", "number", "string", "date", "timestamp")
COUNT = range(1, 10**6 + 1)
NAME, ID = re.compile("[a-z][a-z0-9_]{0,62}"), re.compile("[a-z0-9][a-z0-9._-]{0,99}")
COLUMN, TEXT = re.compile(r"[^#\0-\x1f][^\0-\x1f]*"), (re.compile("(?s).+"), int)
NUMBER = (re.compile(r"[0-9]{1,40}([./][0-9]{1,40})?"), int)
BINS = {"low": int, "high": int, "count": COUNT}
GRID = {"low": int, "high": int, "step": int, "scale": NUMBER}
ORDERED = {"ordered": {"min": int, "max": int}}
DOMAIN = ({"cyclic": COUNT}, {"nominal": [str]}, ORDERED)
CATEGORIES = ([(str, int)], {"range": [int]})
GUARANTEE = {
    "definition": frozenset(("pure", "probabilistic", "approximate")),
    **{"epsilon": NUMBER, "delta?": NUMBER, "fallback?": frozenset(("approximate",))},
    "least?": frozenset(("epsilon", "delta")),
}
OF_PAPERS = ("sadeghi_count", "geng_zero_epsilon", "qin_wasserstein", "qin_relaxed")
NEED_ORDER = ("integer", "geometric_clamped", "gaussian_clamped", "gumbel_clamped", *OF_PAPERS)
NEED_ROWS = ("channel", "geometric_truncated", "exponential")
NEED_NOTHING = ("geometric_modular", "gaussian_modular", "randomised_response", "data_independent")
OF_EVERY_KIND = {
    **{"name": NAME, "kind": str, "title?": TEXT, "units?": TEXT, "table": str, "by": [str]},
    **{"where?": str, "max_rows_per_unit?": COUNT, "guarantee?": GUARANTEE, "share?": NUMBER},
    "sensitivity?": (frozenset(("empirical", "global")), {"declared": [(int, [int])]}),
    "target?": re.compile(r" *(error_rate|absolute|squared) *<= *\S+ *"),
    "loss?": (frozenset((*LINE_LOSSES, "noise_squared")), {"table": [NUMBER]}),
    **{"mechanism?": str, "parameters?": {NAME: NUMBER}, "prior?": [NUMBER]},
    **{"objective?": frozenset(("mean", "worst_case")), "constraints?": [str]},
}
NOISY = {"of": str, "noise?": frozenset(("on_statistic", "on_answer")), "clamp?": [int]}
COUNTED = {"of": str, "domain": DOMAIN, "count?": frozenset(("units", "rows"))}
BINNED = ({**NOISY, "bins": BINS, "values?": [int]}, {**NOISY, "grid": GRID})
QUANTILES = {"of": str, "at": [NUMBER], "clamp?": [int], "cell_size?": int, "noise?": str}
KINDS: dict[str, Any] = {
    "count": {"of?": str, "domain": (ORDERED, {"integers": {}})},
    "mode": COUNTED | NOISY | {"weight?": str},
    "top": COUNTED
    | {"k": range(1, 51), "counts?": bool, "histogram?": bool, "cell_size?": int, "noise?": str},
    **dict.fromkeys(("sum", "mean"), BINNED),
    **{kind: {**NOISY, "bins": BINS, "rank?": COUNT} for kind in ("min", "max")},
    "median": {**NOISY, "bins": BINS},
    "quantiles": (QUANTILES | {"bins": BINS}, QUANTILES | {"domain": ORDERED}),
    "per_unit": {"of": str, "domain": DOMAIN},
    "tuple": {"of": [str]},
    "sql": {"sql": str, "domain": ({"cyclic": COUNT}, ORDERED, {"bins": BINS})},
}
TABLE = {
    **{"path": str, "columns": {COLUMN: frozenset(TYPES)}, "relation?": str, "contract?": str},
    "join?": {"table": str},
    "derive?": {COLUMN: {"type": frozenset(TYPES), "sql": str}},
}
MARGIN = {"level": str, "margin": [str]}
SPEC = {
    **{"spec": frozenset(("dp-release/spec/v1",)), "tables": {NAME: TABLE}},
    "release": {"id": ID, **dict.fromkeys(DESCRIPTIONS, TEXT)},
    "privacy": {
        **{"unit": str, "neighbors": str, "max_rows_per_unit": COUNT, "fixed?": [str]},
        **{"max_cells_per_unit?": COUNT, "attribute?": str},
        "replacement?": frozenset(("observed", "domain")),
    },
    "budget": {
        **{"scope": ID, "epsilon": NUMBER, "delta": NUMBER, "slot?": ID},
        "composition?": frozenset(("basic", "pld")),
    },
    "keys?": {COLUMN: (*CATEGORIES, {"file": str})},
    **{"queries?": [dict], "acceptance?": [ACCEPTANCE]},
    "tabulations?": [
        {
            **{"name": NAME, "title?": TEXT, "units?": TEXT, "table": str, "where?": str},
            **{"hierarchy": {"file": str, "levels": [str]}, "attributes?": {COLUMN: CATEGORIES}},
            "groupings?": {COLUMN: {"of": str, "classes": {re.compile("(?s).*"): CATEGORIES}}},
            **{"publish": {COLUMN: [[str]]}, "importance?": {COLUMN: NUMBER}},
            "constraints?": [(MARGIN | {"file": str}, {"impossible": {COLUMN: CATEGORIES}})],
            "guarantee?": GUARANTEE,
            "strategy?": {"noise?": str, "tables?": [MARGIN | {"share": NUMBER}]},
        }
    ],
    "engine?": {"backend?": frozenset(("duckdb", "spark")), "cluster?": frozenset(("inside",))},
}
Vector = tuple[int, ...]


def domain_of(plain: Plain) -> tuple[int, str]:
    """The number of answers of one part (3.8), and their topology."""
    ((kind, of),) = plain.items()
    if kind == "ordered":
        size = of["max"] - of["min"] + 1
    elif kind == "integers":
        size = 2**53 - 1
    elif kind == "bins":
        size = of["count"]
        rule(size <= of["high"] - of["low"], "bins", of)
    elif kind == "grid":
        steps, rest = divmod(of["high"] - of["low"], of["step"])
        rule(of["step"] >= 1 and rest == 0, "grid", of)
        size = steps + 1
    else:
        rule(kind in ("cyclic", "nominal"), "domain", kind)
        size = of if kind == "cyclic" else len(set(of))
    rule(type(size) is int and size >= 2, "domain", plain)
    return size, kind if kind in ("cyclic", "nominal") else "ordered"


def rule(holds: object, at: str, value: object) -> None:
    """Refuse a spec that breaks a rule."""
    need(holds, "spec.json", at, value, "what the rules of section 3 allow")


def without_null(value: Any) -> Any:
    """The value without fields that are null: they say what absent ones say (3.1)."""
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return list(map(without_null, value)) if isinstance(value, list) else value


class Query:
    """A query of the spec, or a table of a tabulation, and what follows from it (4)."""

    def __init__(self, plain: Plain, spec: Spec, *, is_table: bool = False) -> None:
        self.plain, self.spec, self.is_table = plain, spec, is_table
        self.name, self.kind, self.by = str(plain["name"]), plain["kind"], plain["by"]
        rule(self.kind in KINDS, f"{self.name}.kind", self.kind)
        own = KINDS[self.kind]
        if not is_table and type(own) is tuple:
            check_shape("spec.json", plain, tuple(OF_EVERY_KIND | form for form in own), self.name)
        elif not is_table:
            check_shape("spec.json", plain, OF_EVERY_KIND | own, self.name)
        self.mechanism: str = plain.get("mechanism") or "best"
        self.least = (plain.get("guarantee") or {}).get("least")
        aimed = plain.get("target") is not None and self.least is None
        self.is_composed = plain.get("share") is not None or aimed
        self.is_published = self.is_composed or plain.get("guarantee") is not None
        self.parts = [spec.query(n) for n in plain["of"]] if self.kind == "tuple" else [self]
        self.domains = [domain_of(part.domain_plain) for part in self.parts]
        self.group = [size for size, _ in self.domains]
        self.is_line = [topology for _, topology in self.domains] == ["ordered"]
        source = plain.get("sensitivity")
        self.source = "declared" if isinstance(source, dict) else str(source)
        rule(source or not self.is_published, f"{self.name}.sensitivity", source)
        noise = plain.get("noise") or ("on_statistic" if source == "global" else "on_answer")
        able = self.kind in ("mode", *STATISTICS) and self.is_published
        self.on_statistic = self.kind in ("top", "quantiles") or (able and noise == "on_statistic")
        if self.on_statistic:
            same("spec.json", f"{self.name}.sensitivity", source, "global")
        if not is_table:
            self.check_rules()

    def check_rules(self) -> None:
        """The rules of 3.9 on which sensitivity and charges rest."""
        plain, spec, by, at = self.plain, self.spec, self.by, self.name
        unit, kinds = spec.privacy["unit"], {part.kind for part in self.parts}
        columns = spec.columns.get(plain["table"], {})
        keys = [column in spec.keys and columns.get(column, "-")[0] in "sid" for column in by]
        rule(all(keys) and len(set(by)) == len(by), f"{at}.by", by)
        if "per_unit" in kinds:
            alone = plain.get("max_rows_per_unit", 1) == 1 and "attribute" in spec.privacy
            rule(kinds == {"per_unit"} and by == [unit] and alone, f"{at}.by", by)
        rule(unit not in by or "per_unit" in kinds, f"{at}.by", by)
        for part in self.parts:
            rule(part.reads_its_columns(columns, unit), f"{part.name}.of", part.plain.get("of"))
            shared = [
                q.plain.get(n) for n in ("table", "by", "max_rows_per_unit") for q in (self, part)
            ]
            rule(shared[::2] == shared[1::2], f"{at}: {part.name}", shared)
        if self.kind == "tuple":
            rule(2 <= len(set(plain["of"])) == len(plain["of"]) <= 8, f"{at}.of", plain["of"])
            rule(not kinds & {"tuple", "sql", "top", "quantiles"}, f"{at}.of", kinds)
        ways = [each for each in ("guarantee", "share", "target") if each in plain]
        if self.is_published:
            # A guarantee that claims the least names the target that it meets (3.6).
            expected = ["guarantee", "target"] if self.least else ways[:1]
            rule(ways == expected, at, ways)
            self.check_published(at)
        else:
            whole = [each["of"] for each in spec.listed if each["kind"] == "tuple"]
            said = {"sensitivity", "loss", "mechanism"} & plain.keys()
            rule(not said and any(at in each for each in whole), at, said)

    def check_published(self, at: str) -> None:
        """The rules for sources and mechanisms."""
        spec, privacy, empirical = self.spec, self.spec.privacy, self.source == "empirical"
        rule(not (self.is_composed and empirical), f"{at}.sensitivity", self.source)
        observed = "attribute" not in privacy and privacy.get("replacement") != "domain"
        if empirical and observed:
            read = {part.plain.get(each) for part in self.parts for each in ("of", "weight")}
            rule(self.kind == "tuple" or not read & set(spec.fixed), f"{at}.of", read)
        if self.kind == "sql":
            rule(empirical and observed and not spec.fixed, at, "sql")
        if not self.on_statistic:
            line, single = self.is_line and self.loss_name in LINE_LOSSES, len(self.group) == 1
            fits = {"best": True, "modular": True, **dict.fromkeys(NEED_NOTHING, single)}
            fits |= dict.fromkeys(NEED_ORDER, line)
            fits |= dict.fromkeys(NEED_ROWS, line and self.group[0] <= 1000)
            rule(fits.get(self.mechanism), f"{at}.mechanism", self.mechanism)

    def reads_its_columns(self, columns: Plain, unit: str) -> bool:
        """Whether a query reads columns of the types that its kind needs."""
        plain, read = self.plain, columns.get(str(self.plain.get("of")))
        if self.kind in ("count", "sql"):
            return plain.get("of") in (None, unit)
        if self.kind not in ("mode", "top", "per_unit"):
            return read == ("number" if "grid" in plain else "integer")
        weighed = columns.get(plain.get("weight", "")) == "integer" and "count" not in plain
        named = "string" if self.domains[0][1] == "nominal" else "integer"
        return read == named and (weighed or "weight" not in plain)

    @property
    def domain_plain(self) -> Plain:
        """The domain as release.json has it (3.8)."""
        if self.kind == "tuple":
            return {"tuple": [part.domain_plain for part in self.parts]}
        if self.plain.get("bins") is not None:
            return {"bins": self.plain["bins"]}
        grid = self.plain.get("grid")
        if grid is not None:
            return {"grid": grid | {"scale": exact(number(grid["scale"]))}}
        domain: Plain = self.plain["domain"]
        return domain

    @property
    def loss_name(self) -> str:
        """The name of the loss function, as ``design.loss`` has it."""
        if self.plain.get("target") is not None:
            return str(self.plain["target"]).partition("<=")[0].strip()
        loss = self.plain.get("loss")
        return "table" if isinstance(loss, dict) else "error_rate" if loss is None else loss

    def claimed(self, entry: Plain) -> tuple[str, Fraction, Fraction]:
        """Definition, ε and δ that one cell claims (3.6)."""
        if self.is_composed:
            return entry["definition"], number(entry["epsilon"]), number(entry["delta"])
        guarantee = self.plain["guarantee"]
        ordered = any(topology == "ordered" for _, topology in self.domains)
        falls = ordered and not (len(self.domains) == 1 and self.group[0] <= 64)
        definition = (falls and guarantee.get("fallback")) or guarantee["definition"]
        claimed = {name: number(guarantee.get(name) or "0") for name in ("epsilon", "delta")}
        if self.least is not None:
            stated, most = number(entry[self.least]), claimed[self.least]
            need(stated <= most, "release.json", f"{self.name}.{self.least}", stated)
            claimed[self.least] = stated
        return definition, claimed["epsilon"], claimed["delta"]

    @property
    def rows_stated(self) -> int:
        """The bound r₀ of 4.1."""
        if all(part.kind == "per_unit" for part in self.parts):
            return 1
        limit, rows = self.spec.privacy["max_rows_per_unit"], self.plain.get("max_rows_per_unit")
        rows = limit if rows is None else rows
        rule(type(rows) is int and 1 <= rows <= limit, "max_rows_per_unit", rows)
        return int(rows)

    @property
    def rows(self) -> int:
        """The bound r of 4.1: the rows of a unit that are read."""
        if self.source != "declared":
            return self.rows_stated
        entries = self.plain["sensitivity"]["declared"]
        declared = self.both_ways(each if isinstance(each, list) else [each] for each in entries)
        numbers = range(1, self.rows_stated + 1)
        rows = bisect_left(numbers, True, key=lambda n: not self.sensitivity(n)[0] <= declared)
        rule(rows, "declared sensitivity", "no row fits")
        return rows

    def both_ways(self, vectors: Iterable[Iterable[int]]) -> set[Vector]:
        """Vectors and their negatives, modulo the group, without zero."""
        changes: set[Vector] = set()
        for vector in map(tuple, vectors):
            changes |= {tuple(c % n for c, n in zip(vector, self.group, strict=True))}
            changes |= {tuple(-c % n for c, n in zip(vector, self.group, strict=True))}
        return changes - {(0,) * len(self.group)}

    @property
    def clamp(self) -> tuple[int, int]:
        """The bounds of one row: ``clamp``, the ends of ``values``, or the range of the bins."""
        bins: Plain = self.plain.get("bins") or {}
        values = self.plain.get("values") or []
        stated = self.plain.get("clamp") or values[:1] + values[-1:]
        low, high = stated or (bins["low"], bins["high"])
        rule(low < high, f"{self.name}.clamp", (low, high))
        return int(low), int(high)

    def sum_of(self, rows: int) -> tuple[int, int]:
        """The p and q of 4.2: by how much a unit that comes in raises and lowers a sum."""
        low, high = self.clamp
        return rows * max(high, 0), rows * max(-low, 0)

    def steps(self, rows: int) -> range:
        """The signed changes of the code of a single part (4.2)."""
        (size,), one_way = self.group, self.spec.is_one_way
        if self.kind == "count":
            rise = min(1 if self.plain.get("of") is not None else rows, size - 1)
            return range(0 if one_way else -rise, rise + 1)
        if self.kind != "sum":
            return range(size)
        rise, fall = self.sum_of(rows)
        if not one_way:
            rise = fall = rise + fall
        grid, bins = self.plain.get("grid"), self.plain.get("bins")
        span = Fraction(bins["high"] - bins["low"], size) if bins is not None else Fraction(0)
        width = span if grid is None else Fraction(grid["step"])
        down, up = (min(ceil(most / width), size - 1) for most in (fall, rise))
        by = self.spacing(width)
        return range(-(down // by * by), up + 1, by)

    def spacing(self, width: Fraction) -> int:
        """The number of which all steps of a sum are multiples, by its declared values (4.2)."""
        values: list[int] = self.plain.get("values") or []
        by = gcd(*values) / width if values else Fraction(1)
        low = self.plain["bins"]["low"] / width if values else Fraction(0)
        ends = (low, low + self.group[0] - 1)
        whole = width.denominator == by.denominator == low.denominator == 1
        return int(by) if whole and not any(end % by for end in ends) else 1

    def sensitivity(self, rows: int) -> tuple[set[Vector], set[int]]:
        """M and the distances A of 4.2."""
        steps = [part.steps(rows) for part in self.parts]
        distances = {abs(step) for step in steps[0]} - {0} if self.is_line else set()
        return self.both_ways(product(*steps)), distances

    def cells_at_once(self, free: int) -> int:
        """The number k of 4.3, where ``free`` is F."""
        return min(free, self.rows, self.spec.privacy.get("max_cells_per_unit") or free)

    def cells_touched(self, free: int, cells: int) -> int:
        """The number t of 4.3; ``cells`` is the product of all key sets."""
        if all(part.kind == "per_unit" for part in self.parts):
            return 1
        if self.kind == "sql":
            return cells
        # One unit that is replaced leaves k cells and enters k others.
        return min(free, self.cells_at_once(free) * (1 if self.spec.is_one_way else 2))


def table_count(name: str, spec: Spec) -> Query:
    """A table that a tabulation measures: a count of rows on all integers, r = 1 (4.3)."""
    plain: Plain = {"name": name, "kind": "count", "by": [], "domain": {"integers": {}}}
    plain |= {"sensitivity": "global", "share": "1", "max_rows_per_unit": 1}
    return Query(plain, spec, is_table=True)


class Spec:
    """The release spec, as ``spec.json`` has it, and its rules (3)."""

    def __init__(self, published: Plain) -> None:
        plain = self.plain = without_null(published)
        check_shape("spec.json", plain, SPEC)
        self.privacy: Plain = plain["privacy"]
        relation = self.privacy["neighbors"]
        rule(relation in RELATIONS, "neighbors", relation)
        self.is_one_way = relation == "add_remove"
        self.fixed: list[str] = self.privacy.get("fixed", [])
        self.keys: Plain = plain.get("keys", {})
        self.in_files = {c for c, of in self.keys.items() if isinstance(of, dict) and "file" in of}
        self.plain_columns: dict[str, Plain] = {}
        self.columns: dict[str, Plain] = {}
        self.check_columns(relation)
        self.tabulations: list[Plain] = plain.get("tabulations", [])
        self.listed: list[Plain] = plain.get("queries", [])
        self.plain_queries = {each["name"]: each for each in self.listed}
        names = [each["name"] for each in self.listed + self.tabulations]
        rule(names and len(set(names)) == len(names), "names", names)
        for tabulation in self.tabulations:
            self.check_tabulation(tabulation)
        self.queries: dict[str, Query] = {}
        self.published = [q for q in map(self.query, self.plain_queries) if q.is_published]
        self.is_empirical = any(query.source == "empirical" for query in self.published)
        stated = plain["budget"].get("composition") == "pld" or bool(self.tabulations)
        self.composes_exactly = stated or any(query.is_composed for query in self.published)
        basic = plain["budget"].get("composition") == "basic"
        rule(not basic or not self.composes_exactly, "budget", "basic")
        alone = not any(query.is_composed for query in self.published) or not self.tabulations
        rule(alone, "tabulations", "beside a share or a target")
        # Of acceptance only the form is read here, and that it is about public facts.
        sources = {query.name: query.source for query in self.published}
        for entry in plain.get("acceptance", []):
            rule(sources.get(entry.rpartition(":")[0].strip()) != "empirical", "acceptance", entry)

    def check_columns(self, relation: str) -> None:
        """Tables, their columns, and the columns that ``privacy`` and ``keys`` name."""
        unit, tables = self.privacy["unit"], self.plain["tables"]
        for name, table in tables.items():
            partner, joined = table.get("join", {}).get("table"), {}
            if partner is not None:
                simple = partner != name and not tables[partner].get("derive")
                rule(simple and "join" not in tables[partner], f"tables.{name}.join", partner)
                joined = {c: of for c, of in tables[partner]["columns"].items() if c != unit}
            derived = {column: of["type"] for column, of in table.get("derive", {}).items()}
            names = [column.casefold() for column in (*table["columns"], *joined, *derived)]
            rule(len(set(names)) == len(names), f"tables.{name}", names)
            self.plain_columns[name] = table["columns"] | joined
            self.columns[name] = self.plain_columns[name] | derived
        units = {table["columns"].get(unit) for table in tables.values()}
        rule(units in ({"string"}, {"integer"}), "privacy.unit", unit)
        plain = {column for columns in self.plain_columns.values() for column in columns}
        every = {column for columns in self.columns.values() for column in columns}
        named = {*self.fixed, *self.keys}
        rule(named <= every, "privacy.fixed, keys", sorted(named))
        attribute = self.privacy.get("attribute")
        rule((attribute is not None) == (relation == "attribute"), "privacy.attribute", attribute)
        if attribute is not None:
            # It changes alone: what is derived from a column would change with that one.
            computed = {column for table in tables.values() for column in table.get("derive", {})}
            right = attribute in plain - computed - {unit, *self.fixed}
            rule(right and "replacement" not in self.privacy, "privacy.attribute", attribute)

    def check_tabulation(self, plain: Plain) -> None:
        """The rules of 3.13 on which cells and charges rest."""
        at, levels = plain["name"], plain["hierarchy"]["levels"]
        columns, unit = self.columns.get(plain["table"], {}), self.privacy["unit"]
        single = "attribute" not in self.privacy and self.privacy["max_rows_per_unit"] == 1
        rule(single, f"{at}: rows of a unit", self.privacy["max_rows_per_unit"])
        attributes, groupings = plain.get("attributes", {}), plain.get("groupings", {})
        read = [levels[-1], *attributes]
        kinds = [columns.get(column, "-")[0] in "sid" for column in read]
        free = not set(self.fixed) & set(read) and unit not in (*read, *levels)
        rule(all(kinds) and free, f"{at}: columns", read)
        names = [name.casefold() for name in (*levels, *attributes, *groupings)]
        rule(len(set(names)) == len(names), f"{at}: names", names)
        for name, grouping in groupings.items():
            classes = [part for of in grouping["classes"].values() for part in members(of)]
            whole = sorted(members(attributes.get(grouping["of"], [])))
            rule(sorted(classes) == whole, f"{at}.groupings.{name}", "not each category once")
        for margin in chain.from_iterable(plain["publish"].values()):
            of = [groupings[part]["of"] if part in groupings else part for part in margin]
            rule(set(of) <= attributes.keys() and len(set(of)) == len(of), f"{at}.publish", margin)

    def query(self, name: str) -> Query:
        """The query of a name; the parts of a tuple are read before it."""
        if name not in self.queries:
            rule(name in self.plain_queries, "query", name)
            self.queries[name] = Query(self.plain_queries[name], self)
        return self.queries[name]

    def key_sizes(self, record: Plain) -> dict[str, int]:
        """The number of keys of each column; of a file it follows from the number of cells."""
        entries, sizes = record["queries"], {}
        for column, keys in self.keys.items():
            if column not in self.in_files:
                sizes[column] = len(members(keys))
        for _ in entries:
            for entry in entries:
                unknown = [column for column in entry["by"] if column not in sizes]
                if len(unknown) == 1:
                    rest = prod(sizes[column] for column in entry["by"] if column in sizes)
                    sizes[unknown[0]] = entry["cells"] // rest
        for entry in entries:
            if all(column in sizes for column in entry["by"]):
                expected = prod(sizes[column] for column in entry["by"])
                same("release.json", f"{entry['name']}.cells", entry["cells"], expected)
        return sizes


def members(listed: Any) -> list[str]:
    """The keys or categories of a list or a range, each once."""
    if not isinstance(listed, list):
        first, last = listed["range"]
        rule(first <= last < first + 2**20, "range", listed["range"])
        return list(map(str, range(first, last + 1)))
    texts = list(map(str, listed))
    rule(len(set(texts)) == len(texts), "a list", listed)
    return texts


# ---- The form of release.json (5.1) [5-7] -------------------------------------------------------

DIGEST = re.compile("[0-9a-f]{64}")
FIGURES = {"epsilon": EXACT, "delta": EXACT}
OUTPUT = {"path": str, "sha256": DIGEST, "rows": int}
FILE = {"path": str, "sha256": DIGEST}
COMMITMENT = {"commitment": re.compile("hmac-sha256:[0-9a-f]{64}")}
DEFINITIONS = frozenset(("pure", "probabilistic", "approximate"))
CHARGED = {"cells": int, "definition": DEFINITIONS, **FIGURES, "charge": FIGURES, "output": OUTPUT}
QUERY = CHARGED | {
    **dict.fromkeys(("name", "kind", "mechanism"), str),
    **{"by": [str], "domain": dict, "parallel": bool},
    "sensitivity_source": frozenset(("empirical", "global", "declared")),
    "guarantee_kind": frozenset(("instance-specific", "worst-case")),
    "mechanism_file": (FILE, COMMITMENT),
}
TABULATION = {
    **{"name": str, "table": str, "noise": frozenset(("geometric", "gaussian"))},
    "objective": EXACT,
    "levels": [{"level": str, "areas": int, "margins": [[str]], "output": OUTPUT}],
    "measured": [CHARGED | {"name": str, "level": str, "margin": [str], "mechanism_file": FILE}],
    "declared": [{"level": str, "margin": [str], "output": OUTPUT}],
}
VERSIONS = ("dp_release", "python", "duckdb", "highs")
EXTRAS = frozenset(("fast", "flows", "postgresql", "spark"))
RECORD = {
    **dict.fromkeys(("schema", "release_id", "kind", "published", *DESCRIPTIONS), str),
    "privacy": {
        **dict.fromkeys(("unit", "neighbors", "adjacency_text", "enforced_by"), str),
        **{"max_rows_per_unit": int, "fixed": [str]},
    },
    "guarantee": {"kind": str, "definition": DEFINITIONS, **FIGURES},
    "expressions?": [{"place": str, "tree": dict}],
    **{"queries": [QUERY], "tabulations?": [TABULATION]},
    "composition": {"rule": str, "step": (EXACT, None), **FIGURES},
    "sampling": {"source": str, "method": str, "seeded": bool},
    **{"invariants": [str], "post_processing": [str], "withheld": [str], "limits": [str]},
    "ledger": {"scope": str, "sequence": (int, None)},
    "software": {
        **dict.fromkeys(VERSIONS, re.compile("[0-9A-Za-z.+]{1,40}")),
        "source": DIGEST,
        "environment": ({"extras": [EXTRAS], "sha256": DIGEST}, None),
    },
}


def check_files_of(record: Plain, sums: dict[str, str]) -> None:
    """The paths and digests of the record, and the set of files [6, 7]."""
    expected = {"release.json", "report.html", "spec.yaml", "spec.json"}
    expected |= {"datapackage.json", "registry.yaml"}
    if record["ledger"]["sequence"] is not None:
        expected |= {"attestation.dsse.json", "ledger.proof"}
    outputs, earlier = [], set()
    owners = [(entry, "data") for entry in record["queries"]]
    for tabulation in record.get("tabulations", []):
        owners += [(entry, "measurements") for entry in tabulation["measured"]]
        outputs += [each["output"] for each in tabulation["levels"] + tabulation["declared"]]
    for entry, folder in owners:
        path, file = f"{folder}/{entry['name']}.parquet", entry["mechanism_file"]
        same("release.json", f"{entry['name']}.output.path", entry["output"]["path"], path)
        same("release.json", f"{path}: rows", entry["output"]["rows"], entry["cells"])
        outputs.append(entry["output"])
        if "path" in file:
            earlier.add(f"mechanisms/{entry['name']}.json")
            need(file["path"] in earlier, entry["name"], "mechanism path", file["path"], "its own")
            outputs.append(file)
    for output in outputs:
        same(output["path"], "SHA-256 in release.json", output["sha256"], sums.get(output["path"]))
        expected.add(output["path"])
    same("SHA256SUMS", "file set of release.json", sorted(sums), sorted(expected))


# ---- The record against the spec (8.4) ----------------------------------------------------------


def check_record(record: Plain, spec: Spec) -> None:
    """What release.json repeats of the spec, and its fixed texts [10-13]."""
    plain, privacy, ledger = spec.plain, spec.privacy, record["ledger"]
    repeated = ("unit", "neighbors", "max_rows_per_unit")
    expected: Plain = {name: str(plain["release"][name]) for name in DESCRIPTIONS} | {
        "release_id": plain["release"]["id"],
        "privacy": {name: privacy[name] for name in repeated} | {"fixed": spec.fixed},
        "ledger": {"scope": plain["budget"]["scope"], "sequence": ledger["sequence"]},
        "sampling": {"source": "os", "method": "inverse-cdf-integer", "seeded": False},
    }
    expected["privacy"] |= {"adjacency_text": adjacency_of(spec), "enforced_by": ENFORCED_BY}
    empirical = spec.is_empirical
    expected["withheld"] = WITHHELD[not empirical : 1 + (ledger["sequence"] is None)]
    expected["limits"] = LIMITS[not empirical :]
    expected["invariants"] = [text for each in spec.tabulations for text in invariants_of(each)]
    expected["post_processing"] = [f"{each['name']}: {ESTIMATED}" for each in spec.tabulations]
    for name in ("privacy", "ledger", "sampling"):
        agree("release.json", record[name], expected[name], f"{name}.")
    agree("release.json", record, expected)
    need(is_date(record["published"]), "release.json", "published", record["published"], "a date")
    kind = "instance-specific" if empirical else "worst-case"
    same("release.json", "guarantee.kind", record["guarantee"]["kind"], kind)
    extras = (record["software"]["environment"] or {"extras": []})["extras"]
    same("release.json", "software.environment.extras", extras, sorted(set(extras)))
    names = [entry["name"] for entry in record["queries"]]
    same("release.json", "queries", names, [query.name for query in spec.published])
    for query, entry in zip(spec.published, record["queries"], strict=True):
        check_entry(query, entry)
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
    if query.mechanism in FAMILIES:
        expected["mechanism"] = query.mechanism
    elif empirical and query.mechanism == "best":
        expected["mechanism"] = unseen_family(query, entry)
    agree(file, entry, expected, f"{at}.")
    same(file, f"{at}: committed", "commitment" in entry["mechanism_file"], empirical)


def unseen_family(query: Query, entry: Plain) -> str:
    """The family that follows from public parameters alone (3.9)."""
    epsilon = number(entry["epsilon"])
    if all(topology != "ordered" for _, topology in query.domains):
        return "modular"
    plain = entry["definition"] != "probabilistic" or number(entry["delta"]) == 0
    if query.is_line and query.loss_name in LINE_LOSSES and plain and epsilon > 0:
        small = query.group[0] <= 21 and epsilon >= Fraction(1, 1000)
        return "channel" if small else "integer"
    return "none"


def check_tabulations(record: Plain, spec: Spec) -> None:
    """Names and measured tables of the tabulations [43, 44]."""
    file, entries = "release.json", record.get("tabulations", [])
    same(file, "tabulations", "tabulations" in record, bool(spec.tabulations))
    for plain, entry in zip(spec.tabulations, entries, strict=True):
        name, areas = plain["name"], {each["level"]: each["areas"] for each in entry["levels"]}
        same(file, "tabulation", (entry["name"], entry["table"]), (name, plain["table"]))
        same(file, f"{name}.levels", list(areas), plain["hierarchy"]["levels"])
        tables = [(each["level"], tuple(each["margin"])) for each in entry["measured"]]
        need(tables and len(set(tables)) == len(tables), file, name, "a table twice", "each once")
        categories = {name: len(members(of)) for name, of in plain.get("attributes", {}).items()}
        for grouping, of in plain.get("groupings", {}).items():
            categories[grouping] = len(of["classes"])
        published = list(map(sorted, chain.from_iterable(plain["publish"].values())))
        for each in entry["measured"]:
            is_published = sorted(each["margin"]) in published
            need(is_published, file, f"{each['name']}.margin", each["margin"], "a published margin")
            cells = areas[each["level"]] * prod(categories[part] for part in each["margin"])
            same(file, f"{each['name']}.cells", each["cells"], cells)


# ---- Fixed texts (10) ---------------------------------------------------------------------------

RELATIONS = {
    "replace_one": "all rows of one {unit} are replaced by those of another{shared}{within}",
    "add_remove": "all rows of one {unit} are removed, or those of a new one added{shared}{within}",
    "attribute": "the {attribute} of one {unit} takes other values; all other columns, and who is "
    "in the table, are held to be public",
}
ENFORCED_BY = (
    "of the rows of a unit that a query reads, the first max_rows_per_unit by the declared columns "
    "are kept, within its first max_cells_per_unit cells where that is declared; integers are "
    "clamped; a unit has one fixed part; declared sensitivity is enforced by reading fewer rows"
)
WITHHELD = [
    "mechanisms, sensitivity and accuracy of instance-specific queries: they depend on the "
    "confidential table; an auditor opens their commitments with the auditor bundle",
    "attestation.dsse.json and ledger.proof: the curator keeps no ledger, so nothing is signed and "
    "the budget cap of the spec was enforced within this release only",
]
LIMITS = [
    "instance-specific queries: the guarantee covers the neighbors of this very table, as far as "
    "their sensitivity was found in it; it is not a guarantee for every table",
    "that the tables were read as the spec says, the bounds on a unit's rows enforced and the true "
    "answers computed as described: only the software and the curator vouch for it",
    "that the noise was drawn from the operating system's generator, once",
    "that fixed keys are public facts that neighboring tables share",
]
ESTIMATED = "least squares over all measured tables, and whole numbers that add up"
FIGURE = r"[0-9]{1,12}(\.[0-9]{1,6})?(e[+-][0-9]{2})?"
NOTE = re.compile(
    "the lower bound is the solver's, not proved exactly"
    "|the work limit ended the search; the gap is what is left open"
    "|the search ended within the solver's tolerance; the gap is what is left open"
    "|made for the pure guarantee, which implies this one"
    "|some published values never occur: ε over all differences is infinite"
    r"|at most [0-9]+\.[0-9]{2}% above the best channel, whose cost has a proved bound"
    "|pinned to the baseline [a-z_]+; nothing is proved of others"
    rf"|best of [0-9]+ by [a-z_]+ loss: [a-z_-]+ {FIGURE}(, [a-z_-]+ {FIGURE})*"
    rf"(; the next, [a-z_-]+, loses (as much as|{FIGURE} times what) [a-z_-]+ loses)?"
)


def adjacency_of(spec: Spec) -> str:
    """The text of 10.1."""
    privacy = spec.privacy
    domain = privacy.get("replacement") == "domain"
    return RELATIONS[privacy["neighbors"]].format(
        unit=privacy["unit"],
        attribute=privacy.get("attribute"),
        shared=f", which keeps its {' and '.join(spec.fixed)}" if spec.fixed else "",
        within="; it may hold anything within the declared bounds" if domain else "",
    )


def invariants_of(tabulation: Plain) -> Iterator[str]:
    """The texts of 10.6."""
    name, stated = tabulation["name"], tabulation.get("constraints", [])
    for each in stated:
        if "level" in each:
            margin = f" by {' and '.join(each['margin'])}" if each["margin"] else ""
            yield (
                f"{name}: the counts of the {each['level']} level{margin} are declared numbers, "
                "published without noise; the guarantee is beside what they reveal"
            )
    if any("impossible" in each for each in stated):
        stays = "are 0 in combinations of categories that are declared impossible"
        yield f"{name}: whole numbers {stays}"


# ---- The trees of conditions (3.12, 5.1.1) [13] -------------------------------------------------

# Each argument is a letter: b, i, n, s, d and t for the types, and a capital for a constant. T is
# any type, N a number of either kind and D a date or timestamp, the same wherever it stands; K is
# a constant of the type T. A list is a regular expression over such letters.
VARIABLES = {"T": "binsdt", "N": "in", "D": "dt"}
FUNCTIONS = {
    **{"and or": "bbb*:b", "not": "b:b", "is_null": "T:b", "= <> < <= > >=": "TT:b"},
    **{"between": "TTT:b", "in": "TKK*:b", "case": "(bT)+T?:T", "nullif": "TT:T"},
    **{"coalesce greatest least": "TT*:T", "+ - *": "NN:N", "/ power": "nn:n", "// %": "ii:i"},
    **{"negate abs": "N:N", "sign": "N:i", "ceil floor sqrt ln log10 exp": "n:n"},
    **{"round": "nI?:n", "lower upper trim ltrim rtrim": "s:s", "length": "s:i"},
    **{"substring": "sii?:s", "left right": "si:s", "||": "sss*:s", "concat": "ss*:s"},
    **{"starts_with ends_with contains": "ss:b", "strpos": "ss:i", "regexp_extract": "sS:s"},
    "like ilike regexp_matches regexp_full_match": "sS:b",
    "year quarter month week day isodow dayofweek dayofyear": "D:i",
    **{"hour minute second": "t:i", "date_trunc": "St:t", "date_diff": "SDD:i"},
    "make_date": "iii:d",
}
SIGNATURES = {name: form for names, form in FUNCTIONS.items() for name in names.split()}
CASTS = {"bs", "is", "ns", "ds", "st", "in", "bi", "dt"}
TIMES = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
COUNTED_TWICE = {"between": 0, "in": 0, "nullif": 0, "//": -1, "%": -1}


def check_expressions(record: Plain, spec: Spec, verdict: Verdict) -> None:
    """Every condition and derived column has a tree that looks at one row of declared columns."""
    places = {}
    for name, table in spec.plain["tables"].items():
        for column, of in table.get("derive", {}).items():
            places[f"tables.{name}.derive.{column}"] = (spec.plain_columns[name], of["type"])
    for key in ("queries", "tabulations"):
        for each in spec.plain.get(key, []):
            if "where" in each:
                places[f"{key}.{each['name']}.where"] = (spec.columns[each["table"]], "boolean")
    entries = record.get("expressions", [])
    same("release.json", "expressions", "expressions" in record, bool(places))
    listed = sorted(entry["place"] for entry in entries)
    same("release.json", "places of expressions", listed, sorted(places))
    for entry in entries:
        columns, kind = places[entry["place"]]
        letter, nodes, joined = read_tree(entry["place"], entry["tree"], columns)
        same("release.json", entry["place"], letter.lower(), kind[0])
        need(nodes <= 1000 and joined <= 16, entry["place"], "size", nodes, "at most 1000 nodes")
    used = {entry["place"]: set(columns_in(entry["tree"])) for entry in entries}
    check_fixed(used, spec, verdict)


def check_fixed(used: dict[str, set[str]], spec: Spec, verdict: Verdict) -> None:
    """No fixed column changes with the attribute; no expression of what is seen uses one (3.9)."""
    attribute = spec.privacy.get("attribute")
    empirical = [query for query in spec.published if query.source == "empirical"]
    tables = {query.plain["table"] for query in empirical}
    hidden = {f"queries.{part.name}.where" for q in empirical for part in (q, *q.parts)}
    for name, table in spec.plain["tables"].items():
        for column, of in table.get("derive", {}).items():
            place = f"tables.{name}.derive.{column}"
            hidden |= {place} if name in tables else set()
            if column in spec.fixed and attribute is not None:
                rule(attribute not in used[place], f"privacy.fixed: {column}", attribute)
                if attribute.replace('"', '""').casefold() in of["sql"].casefold():
                    verdict.missing.append(f"whether {column}, which is fixed, reads {attribute}")
    for place in hidden & used.keys():
        rule(not used[place] & set(spec.fixed), place, sorted(used[place]))


def columns_in(tree: Plain) -> Iterator[str]:
    """The columns that a tree reads."""
    if "column" in tree:
        yield tree["column"]
    of = tree.get("of", [])
    for each in of if isinstance(of, list) else [of]:
        yield from columns_in(each)


def read_tree(place: str, node: Any, columns: Plain, depth: int = 1) -> tuple[str, int, int]:
    """The letter of a node's type, its number of nodes, and how many texts it joins."""
    need(type(node) is dict and depth <= 64, place, "tree", depth, "at most 64 nodes in a row")
    if "call" in node:
        check_shape(place, node, {"call": frozenset(SIGNATURES), "of": [dict]})
        name, of = node["call"], node["of"]
        parts = [read_tree(place, each, columns, depth + 1) for each in of]
        letters = "".join(part[0] for part in parts)
        letter = result_of(SIGNATURES[name], letters)
        need(letter, place, f"arguments of {name}", letters, SIGNATURES[name])
        if name in ("date_trunc", "date_diff"):
            need(of[0]["string"] in TIMES, place, name, of[0], TIMES)
        nodes = 1 + sum(part[1] for part in parts)
        if name in COUNTED_TWICE:
            nodes += parts[COUNTED_TWICE[name]][1]
        own = len(parts) if name in ("||", "concat") else 0
        return letter, nodes, own + sum(part[2] for part in parts)
    if "cast" in node:
        check_shape(place, node, {"cast": frozenset(TYPES), "of": dict})
        letter, nodes, joined = read_tree(place, node["of"], columns, depth + 1)
        to = node["cast"][0]
        able = "".join(sorted(letter.lower() + to)) in CASTS and letter + to not in ("Sd", "St")
        need(able, place, "cast", letter + to, "one of the page")
        return to, nodes + 1, joined
    ((kind, value),) = node.items()
    if kind == "column":
        need(value in columns, place, "column", value, sorted(columns))
        return columns[value][0], 1, 0
    need(kind in TYPES and is_constant(kind, value), place, "constant", node, "one in its one form")
    return kind[0].upper(), 1, 0


def result_of(form: str, letters: str) -> str:
    """The letter of what a function gives, or nothing if it does not take these arguments."""
    takes, gives = form.split(":")
    variable = next((each for each in VARIABLES if each in takes), "-")
    for letter in VARIABLES.get(variable, "-"):
        pattern = takes.replace(variable, letter).replace("K", letter.upper())
        pattern = re.sub("[a-z]", lambda each: f"[{each[0]}{each[0].upper()}]", pattern)
        if re.fullmatch(pattern, letters):
            return gives.replace(variable, letter)
    return ""


def is_constant(kind: str, value: Any) -> bool:
    """Whether a constant has the one form of its type (5.1.1)."""
    if kind == "boolean" or type(value) is not str:
        return kind == "boolean" and type(value) is bool
    try:
        if kind == "integer":
            return str(int(value)) == value and -(2**63) <= int(value) < 2**63
        if kind == "number":
            return repr(float(value)) == value and float(value) - float(value) == 0
        if kind == "timestamp":
            moment = datetime.datetime.fromisoformat(value)
            return str(moment) == value and moment.tzinfo is None
    except ValueError:
        return False
    return is_date(value) if kind == "date" else "\0" not in value


# ---- Signatures (5.9): Ed25519 of RFC 8032, section 5.1 ----------------------------------------

FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, -1, FIELD) % FIELD
Point = tuple[int, int, int, int]


def point_at(data: bytes) -> Point | None:
    """The point of 32 bytes, in extended coordinates; none if they are no point."""
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(CURVE * y * y + 1, -1, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    if (x * x - square) % FIELD:
        x = x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD
    if y >= FIELD or (x * x - square) % FIELD or (x == 0 and sign):
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
    if len(signature) != 64:
        return False
    a, r = point_at(key), point_at(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or BASE_POINT is None or s >= ORDER:
        return False
    hashed = hashlib.sha512(signature[:32] + key + message).digest()
    p, q = multiple(s, BASE_POINT), multiple(int.from_bytes(hashed, "little") % ORDER, a)
    q = add(r, q)
    return all((p[i] * q[2] - q[i] * p[2]) % FIELD == 0 for i in (0, 1))


CURATOR, WITNESS = b"\1", b"\4"


@dataclass(frozen=True)
class Key:
    """A public key with its name, of a curator or of a witness."""

    name: str
    key: bytes
    kind: bytes

    @property
    def hint(self) -> bytes:
        """The first 4 bytes of its hash."""
        return hashlib.sha256(self.name.encode() + b"\n" + self.kind + self.key).digest()[:4]


def decode(file: str, text: str) -> bytes:
    """Base64 in its one form."""
    data = base64.b64decode(text, validate=True)
    same(file, "base64", base64.b64encode(data).decode(), text)
    return data


def read_key(text: str, kind: bytes = CURATOR) -> Key:
    """A key from its text."""
    match = re.fullmatch(r"([!-*,-~]{1,200})\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text.strip())
    if match is None:
        raise RefusedError("key", "form", text, "name+hint+base64")
    data = decode("key", match[3])
    need(len(data) == 33 and data[:1] == kind, "key", "form", data[:1], f"{kind!r} and 32 bytes")
    key = Key(match[1], data[1:], kind)
    same("key", "hint", match[2], key.hint.hex())
    return key


@dataclass(frozen=True)
class Checkpoint:
    """A signed checkpoint (7.4), and the known keys that signed or cosigned it (7.8)."""

    origin: str
    size: int
    root: bytes
    signers: frozenset[Key]


def read_checkpoint(file: str, text: str, keys: Iterable[Key]) -> Checkpoint:
    """Read a checkpoint and check the signature of every known key."""
    lines = r"(([^\n]+)\n(0|[1-9][0-9]{0,8})\n([^\n]+)\n)\n((— [^ \n]+ [A-Za-z0-9+/=]+\n){1,100})"
    match = re.fullmatch(lines, text)
    if match is None:
        raise RefusedError(file, "checkpoint", text[:80], "origin, size, root and signatures")
    by_hint, signers = {(key.name, key.hint): key for key in keys}, set()
    for line in match[5].splitlines():
        _, name, encoded = line.split(" ")
        data, message = decode(file, encoded), match[1].encode()
        key, signature = by_hint.get((name, data[:4])), data[4:]
        if key is not None:
            if key.kind == WITNESS:
                seconds, signature = int.from_bytes(signature[:8], "big"), signature[8:]
                message = f"cosignature/v1\ntime {seconds}\n".encode() + message
            signed = is_signed(key.key, message, signature)
            need(signed, file, "signature", f"a false one of {name}", "a signature of its key")
            signers.add(key)
    own = any(key.kind == CURATOR for key in signers)
    need(own, file, "checkpoint", "no signature of a known key", "one of a known key")
    return Checkpoint(match[2], int(match[3]), decode(file, match[4]), frozenset(signers))


# ---- The ledger (7) ----------------------------------------------------------------------------

ENTRY = {"seq": int, "prev": str, "date": str, "kind": str}
SLOT = {"name": str, "times": int, "declared?": bool}
CURVE_OF_SLOT = {"step": EXACT, "values": [WHOLE]}
CAP = {
    **{"scope": str, **FIGURES, "period?": ({"every": str, **FIGURES}, None)},
    **{"rule?": frozenset(("basic", "pld", "renyi_filter")), "order?": int, "cuts?": EXACT},
    "planned?": [(SLOT | FIGURES, {"name": str, "times": int, "profile": CURVE_OF_SLOT})],
}
RELEASED = ENTRY | {"release_id": str}
REASONED = RELEASED | {"reason": re.compile(r"[^\0-\x1f\x7f]{1,300}")}
ABORTED = frozenset(["refused", "storage", "interrupted", "internal", "cut-off", "abandoned"])
ENTRIES: dict[str, Plain] = {
    "genesis": {**ENTRY, "origin": str, "scopes": [CAP], "keys": [str]},
    "reserve": {
        **{**RELEASED, "scope": str, **FIGURES, "run?": re.compile("[0-9a-f]{32}")},
        **{"slot?": str, "moment?": EXACT, "cut?": EXACT},
    },
    "commit": {**RELEASED, "attestation": re.compile("sha256:[0-9a-f]{64}")},
    "abort": {**RELEASED, "drawn": bool, "reason?": ABORTED},
    "withdraw": RELEASED,
    "skip": REASONED,
    "revise": {**REASONED, "by": str},
    "policy": {**ENTRY, "cap": CAP},
    "key": {**ENTRY, "action": frozenset(("add", "retire")), "key": str, "signature": str},
    "store": {**ENTRY, "uri": str},
}
RULES = {"basic": set(), "pld": {"slot"}, "renyi_filter": {"moment", "cut"}}
OF_A_DAY = {"day": 10, "month": 7, "year": 4}


def leaf(data: bytes) -> bytes:
    """The hash of a leaf (7.5)."""
    return hashlib.sha256(b"\0" + data).digest()


def node(first: bytes, second: bytes) -> bytes:
    """The hash of two subtrees."""
    return hashlib.sha256(b"\1" + first + second).digest()


def root_of(leaves: list[bytes]) -> bytes:
    """The root of the tree."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << ((len(leaves) - 1).bit_length() - 1)  # the largest power of two below
    return node(root_of(leaves[:k]), root_of(leaves[k:]))


def root_by_path(hashed: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root to which an audit path leads."""
    if size == 1 or not path:
        need(size == 1 and not path, "ledger.proof", "path", len(path), "one hash for each level")
        return hashed
    k = 1 << ((size - 1).bit_length() - 1)
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
    standing: list[Plain] = field(default_factory=list)
    open: dict[str, Plain] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    withdrawn: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    revised: dict[str, str] = field(default_factory=dict)

    def follow(self, data: bytes, file: str) -> None:
        """Apply the next entry."""
        entry = read_json(file, data)
        kind, before = entry.get("kind"), self.entries[-1] if self.entries else None
        need(kind in ENTRIES, file, "kind", kind, sorted(ENTRIES))
        check_shape(file, entry, ENTRIES[str(kind)])
        same(file, "seq", entry["seq"], len(self.entries))
        expected = digest(canonical(before)) if before else "0" * 64
        same(file, "prev", entry["prev"], f"sha256:{expected}")
        later = before is None or entry["date"] >= before["date"]
        need(is_date(entry["date"]) and later, file, "date", entry["date"], "a day, in order")
        same(file, "genesis first", kind == "genesis", before is None)
        keys = list(self.keys[-1]) if self.keys else []
        if kind == "genesis":
            keys = [read_key(text) for text in entry["keys"]]
            same(file, "keys", [key.name for key in keys], [entry["origin"]])
            for cap in entry["scopes"]:
                need(cap["scope"] not in self.caps, file, "scope", cap["scope"], "each once")
                self.set_cap(cap, file)
        elif kind == "policy":
            self.set_cap(entry["cap"], file)
        elif kind == "key":
            self.change_key(entry, file, keys)
        elif kind != "store":
            self.follow_release(entry, file)
        self.entries.append(entry)
        self.leaves.append(leaf(data))
        self.keys.append(keys)

    def set_cap(self, cap: Plain, file: str) -> None:
        """Create a scope, or change the cap of one that adds charges up."""
        rule, old = cap.get("rule", "basic"), self.caps.get(cap["scope"])
        is_kept = old is None or old == cap or rule == old.get("rule", "basic") == "basic"
        need(is_kept, file, "policy", rule, "the rule of the scope")
        if rule != "basic":
            plain = cap.get("period") is None and number(cap["delta"]) < 1
            need(plain, file, "cap", cap, "no period, and a delta below 1")
        if rule == "renyi_filter":
            need(moment_cap(cap) >= 1, file, "filter", float(moment_cap(cap)), "at least 1")
        self.caps[cap["scope"]] = cap

    def change_key(self, entry: Plain, file: str, keys: list[Key]) -> None:
        """Add or retire a key, as a valid one signed."""
        key, message = read_key(entry["key"]), canonical(entry | {"signature": ""})
        same(file, "key.name", key.name, self.entries[0]["origin"])
        retire, signature = entry["action"] == "retire", decode(file, entry["signature"])
        signers = [each for each in keys if not (retire and each == key)]
        signed = any(is_signed(each.key, message, signature) for each in signers)
        need((key in keys) == retire and signed, file, "key", entry["action"], "a signed change")
        keys.remove(key) if retire else keys.append(key)

    def follow_release(self, entry: Plain, file: str) -> None:
        """Reserve, commit, abort, withdraw, skip or revise."""
        name, kind = entry["release_id"], entry["kind"]
        public, by = self.committed.keys() - self.withdrawn, entry.get("by", "")
        if kind == "reserve":
            fresh = name not in {*self.open, *self.committed, *self.skipped}
            need(fresh and entry["scope"] in self.caps, file, "reserve", name, "a new release")
            self.open[name] = entry
            self.standing.append(entry)
            self.check_cap(entry, file)
        elif kind in ("withdraw", "revise", "skip"):
            said = {"withdraw": self.withdrawn, "revise": self.revised, "skip": self.skipped}[kind]
            charged = {each["release_id"] for each in self.standing} | self.skipped.keys()
            pair = name != by and {name, by} <= public - self.revised.keys()
            fits = {"withdraw": name in public, "revise": pair, "skip": name not in charged}[kind]
            need(fits, file, kind, name, "public, or public and not revised, or not charged")
            said[name] = by
        else:
            need(name in self.open, file, kind, name, "a release with an open reserve")
            reserve = self.open.pop(name)
            if kind == "commit":
                self.committed[name] = entry["seq"]
            elif not entry["drawn"]:
                self.standing.remove(reserve)

    def check_cap(self, entry: Plain, file: str) -> None:
        """What stands in the scope, with this entry, is within its cap (7.3, 7.9)."""
        cap = self.caps[entry["scope"]]
        rule, period = cap.get("rule", "basic"), cap.get("period")
        extra = {name for name in ("slot", "moment", "cut") if name in entry}
        same(file, "fields of the rule", sorted(extra), sorted(RULES[rule]))
        standing = [each for each in self.standing if each["scope"] == entry["scope"]]
        if rule == "pld":
            slots = {slot["name"]: slot["times"] for slot in cap["planned"]}
            named = sum(each["slot"] == entry["slot"] for each in standing)
            need(named <= slots.get(entry["slot"], 0), file, "slot", entry["slot"], "a free one")
            return
        if rule == "renyi_filter":
            moments, cuts = Fraction(1), sum(number(each["cut"]) for each in standing)
            for each in standing:
                moments = Fraction(ceil(moments * number(each["moment"]) * 10**30), 10**30)
            right = number(entry["moment"]) >= 1 and moments <= moment_cap(cap)
            need(right, file, "moment", entry["moment"], "at least 1, and a product within the cap")
            need(cuts <= number(cap["cuts"]), file, "cut", entry["cut"], f"{cap['cuts']} in all")
            return
        bounds = [("", cap)]
        bounds += [(entry["date"][: OF_A_DAY[period["every"]]], period)] if period else []
        for day, bound in bounds:
            paid = [each for each in standing if each["date"].startswith(day)]
            for name in FIGURES:
                spent = sum(number(each[name]) for each in paid)
                need(spent <= number(bound[name]), file, f"cap {day}", spent, bound[name])

    @property
    def every_key(self) -> set[Key]:
        """The keys that were ever valid."""
        return set(chain.from_iterable(self.keys))

    def check_checkpoint(self, file: str, text: str, witnesses: Iterable[Key]) -> Checkpoint:
        """A checkpoint that is of this ledger (7.6)."""
        point = read_checkpoint(file, text, self.every_key | set(witnesses))
        need(1 <= point.size <= len(self.entries), file, "size", point.size, len(self.entries))
        signed = point.signers & set(self.keys[point.size - 1])
        need(signed, file, "signature", "none of a valid key", "one of a key valid at its size")
        same(file, "origin", point.origin, self.entries[0]["origin"])
        same(file, "root", point.root, root_of(self.leaves[: point.size]))
        return point


def moment_cap(cap: Plain) -> Fraction:
    """The bound B of 7.9 on the product of moments."""
    order, rest = cap["order"], number(cap["delta"]) - number(cap["cuts"])
    need(2 <= order <= 256 and rest > 0, "ledger", "order, cuts", (order, rest), "2 to 256, > 0")
    grown = Fraction(below_e(number(cap["epsilon"])) * order, SCALE * (order - 1))
    return Fraction(rest * order * grown ** (order - 1))


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

EVIDENCE = ("none", "signed", "paid", "witnessed")
PROOF = re.compile(
    r"c2sp\.org/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9][0-9]*)\n((?:\S{44}\n){0,63})\n(.+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Trust:
    """What the auditor was given, and asks for."""

    keys: tuple[Key, ...] = ()
    witnesses: tuple[Key, ...] = ()
    folder: Path | None = None
    require: str = "signed"

    def asks(self, evidence: str) -> bool:
        """Whether the auditor asks for at least this evidence."""
        return EVIDENCE.index(self.require) >= EVIDENCE.index(evidence)


def check_provenance(
    files: dict[str, bytes], record: Plain, sums: dict[str, str], trust: Trust, verdict: Verdict
) -> Ledger | None:
    """Who signed, and whether the charge was reserved [14-22]; gives the ledger that was given."""
    name, sequence, file = record["release_id"], record["ledger"]["sequence"], "ledger.proof"
    if sequence is None:
        trusts = trust.keys or trust.folder is not None
        need(not trusts, "release.json", "ledger.sequence", None, "the number of an entry")
        if trust.asks("signed"):
            verdict.missing.append("who published this: no ledger, so nothing is signed")
        return None
    ledger, keys, every = None, list(trust.keys), set(trust.keys)
    if trust.folder is not None:
        ledger = read_ledger(trust.folder)
        text = (trust.folder / "checkpoint").read_text("utf-8")
        own = ledger.check_checkpoint("checkpoint", text, trust.witnesses)
        same("checkpoint", "size", own.size, len(ledger.entries))
        public = ledger.committed.keys() - ledger.withdrawn
        need(name in public, "ledger", "commit", name, "committed and not withdrawn")
        keys, every = ledger.keys[ledger.committed[name]], ledger.every_key
    check_attestation(files, record, sums, keys)
    if not keys:
        if trust.asks("signed"):
            verdict.missing.append("who signed: give --trust KEY or --ledger DIR")
        return ledger
    match = PROOF.fullmatch(files[file].decode("utf-8"))
    if match is None:
        raise RefusedError(file, "form", "another", "that of section 5.11")
    data, index = decode(file, match[1]), int(match[2])
    point = read_checkpoint(file, match[4], every | set(trust.witnesses))
    need(point.origin in {key.name for key in every}, file, "origin", point.origin, "a key's name")
    need(index < point.size, file, "index", index, f"below {point.size}")
    path = [decode(file, line) for line in match[3].split()]
    same(file, "root", root_by_path(leaf(data), index, point.size, path), point.root)
    entry = read_json(file, data)
    check_shape(file, entry, ENTRIES["commit"])
    commit = {"kind": "commit", "release_id": name, "seq": index}
    commit["attestation"] = "sha256:" + sums["attestation.dsse.json"]
    agree(file, entry, commit, "entry.")
    verdict.proved.append("a key signed every file, and a signed ledger holds the commit")
    if ledger is None:
        if trust.asks("paid"):
            verdict.missing.append("that the charge was reserved: give --ledger DIR")
        return None
    ledger.check_checkpoint(file, match[4], trust.witnesses)
    signers = point.signers | own.signers | set(ledger.keys[0])
    if trust.keys:
        need(signers & set(trust.keys), "ledger", "trust", "no trusted key", "one of --trust")
    elif trust.asks("signed"):
        verdict.missing.append("whose ledger this is: give --trust KEY")
    check_reserve(ledger, record)
    verdict.proved.append("the ledger is intact, reserved the charge, and kept every cap")
    if signers & set(trust.witnesses):
        verdict.proved.append("a trusted witness signed that the ledger only grew")
    elif trust.asks("witnessed"):
        verdict.missing.append("that the ledger only grew: give --witness KEY of one that cosigned")
    return ledger


def check_reserve(ledger: Ledger, record: Plain) -> None:
    """The entry that pays for the release [22]."""
    name, sequence = record["release_id"], record["ledger"]["sequence"]
    entry, total = ledger.entries[sequence], record["composition"]
    expected = {"kind": "reserve", "release_id": name, "scope": record["ledger"]["scope"]}
    agree("ledger", entry, expected | {each: total[each] for each in FIGURES}, f"entry {sequence}.")
    for later in ledger.entries[sequence + 1 : ledger.committed[name]]:
        need(later.get("release_id") != name, "ledger", "entries between", later, "none")


def check_attestation(
    files: dict[str, bytes], record: Plain, sums: dict[str, str], keys: list[Key]
) -> None:
    """The envelope, its signature and its subjects [16, 17]."""
    file = "attestation.dsse.json"
    envelope, kind = read_json(file, files[file]), "application/vnd.in-toto+json"
    shape = {"payload": str, "payloadType": str, "signatures": [{"keyid": DIGEST, "sig": str}]}
    check_shape(file, envelope, shape)
    same(file, "payloadType", envelope["payloadType"], kind)
    ((keyid, signature),) = (each.values() for each in envelope["signatures"])
    payload = decode(file, envelope["payload"])
    message = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    owners = [key for key in keys if digest(key.key) == keyid]
    signed = any(is_signed(key.key, message, decode(file, signature)) for key in owners)
    need(signed or not keys, file, "signature", keyid, "the signature of a known key")
    inside = [name for name in sums if name not in (file, "ledger.proof")]
    figures = {name: record["composition"][name] for name in FIGURES}
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "predicate": figures | {"release_id": record["release_id"], **record["ledger"]},
        "predicateType": "dp-release/release/v1",
        "subject": [{"digest": {"sha256": sums[name]}, "name": name} for name in inside],
    }
    same(file, "payload", payload, canonical(statement))


# ---- Privacy of pairs of distributions (4.5) ---------------------------------------------------


class Pairs:
    """The outcomes of two distributions P and Q, by falling P/Q, with sums from the front.

    ``of`` maps (p, q) to how often it occurs; all masses are over ``total``.
    """

    def __init__(self, of: dict[tuple[int, int], int], total: int) -> None:
        occurring = [pair for pair in of if pair[0] > 0]
        # Floats would tie ratios that differ; a ratio to more bits than two masses have would not.
        width = max((max(pair).bit_length() for pair in occurring), default=1) * 2 + 2
        key = {(p, q): (p << width) // q if q else 1 << (2 * width) for p, q in occurring}
        self.pairs = sorted(occurring, key=key.__getitem__, reverse=True)
        self.above = [0, *accumulate(p * of[p, q] for p, q in self.pairs)]
        self.below = [0, *accumulate(q * of[p, q] for p, q in self.pairs)]
        self.total = total
        self.finite = next((pair for pair in self.pairs if pair[1]), (0, 1))

    def count(self, ratio: int) -> int:
        """How many of the pairs have p > ratio · q, with the ratio over 10^40."""
        return bisect_left(self.pairs, True, key=lambda pair: pair[0] * SCALE <= ratio * pair[1])

    def probabilistic(self, ratio: int) -> Fraction:
        """The δ of ``probabilistic``."""
        return Fraction(self.above[self.count(ratio)], self.total)

    def approximate(self, ratio: int) -> Fraction:
        """The δ of ``approximate``."""
        return Fraction(self.excess(ratio), SCALE * self.total)

    def excess(self, ratio: int) -> int:
        """The same times 10^40 · total."""
        place = self.count(ratio)
        return self.above[place] * SCALE - ratio * self.below[place]


# ---- Noise on the integers (5.3) ---------------------------------------------------------------

TAIL = {"period": int, "ratio": WHOLE}
ENDS = {"left": (TAIL, None), "right": (TAIL, None)}
NOISE = {"low": int, "lengths": [int], "weights": [WHOLE], **ENDS}
FAR = 256


class Noise:
    """Runs of equal weight in a window, and tails of repeated blocks that fall by ρ."""

    def __init__(self, file: str, plain: Plain, total: int) -> None:
        self.low, self.total = plain["low"], total
        self.lengths: list[int] = plain["lengths"]
        self.weights = [int(weight) for weight in plain["weights"]]
        self.high = self.low + sum(self.lengths) - 1
        need(min(self.lengths) >= 1, file, "noise.lengths", self.lengths, "at least 1 each")
        window = sum(n * w for n, w in zip(self.lengths, self.weights, strict=True))
        same(file, "noise.weights", window, total)
        inside = max(-self.low, self.high) <= 2**62
        need(inside, file, "noise.low", self.low, "a window within ±2^62")
        repeated = any(a == b for a, b in pairwise(self.weights))
        need(not repeated, file, "noise.weights", "equal neighbors", "different neighbors")
        self.periods, self.ratios = [0, 0], [0, 0]
        for side, name in enumerate(ENDS):
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
            inner = sorted(cut for cut in set(cuts) if start < cut < start + length)
            for first, after in pairwise([start, *inner, start + length]):
                yield first, after - 1, weight, -1 if first < cuts[0] else int(first >= cuts[1])
            start += length

    def masses(self, most: int) -> tuple[list[int], list[int]]:
        """Where the mass changes, and the masses before, between and after these integers.

        Each tail is repeated ``most`` times, 0 stands for all beyond, and the sum of all is
        total · 2^(64 · (most + 1)).
        """
        p, q = self.periods
        changes = [(self.high + most * q + 1, 0)]
        falls = [
            [(UNIT - ratio) * ratio**times * UNIT ** (most - times) for times in range(most + 1)]
            for ratio in self.ratios
        ]
        for first, _, weight, side in self.blocks():
            if side == 0:
                changes.append((first, weight * UNIT ** (most + 1)))
                continue
            for times, fall in enumerate(falls[side > 0]):
                changes.append((first + (times * q if side > 0 else -times * p), weight * fall))
        changes.sort()
        return [start for start, _ in changes], [0, *(mass for _, mass in changes)]

    def pairs(self, distance: int) -> Pairs:
        """The pairs f(k) and f(k + distance); one period of a tail stands for the whole of it."""
        p, q = self.periods
        low = min(self.low, self.low - distance) - p
        after = max(self.high, self.high - distance) + q + 1
        reach = abs(distance)
        most = max(ceil_div(reach, period) + 1 if period else 1 for period in self.periods)
        starts, masses = self.masses(most)
        cuts = {low, low + p, after - q, after, *starts, *(start - distance for start in starts)}
        # The first and the last period are divided by 1 - ρ, and all is over both of these.
        low_rest, high_rest = (UNIT - ratio for ratio in self.ratios)
        counts: Counter[tuple[int, int]] = Counter()
        for first, end in pairwise(sorted(cut for cut in cuts if low <= cut <= after)):
            outer = UNIT * high_rest if first < low + p else low_rest * UNIT
            factor = low_rest * high_rest if low + p <= first < after - q else outer
            here = masses[bisect_right(starts, first)]
            there = masses[bisect_right(starts, first + distance)]
            counts[here, there] += (end - first) * factor
        return Pairs(counts, self.total * UNIT ** (most + 1) * low_rest * high_rest)

    @cached_property
    def is_unimodal(self) -> bool:
        """Whether the masses rise and then fall, with one period beyond each end."""
        falls = [a > b for a, b in pairwise(self.masses(1)[1]) if a != b]
        return falls == sorted(falls)

    def step_ratio(self) -> Fraction | None:
        """The largest f(k) / f(k ± period), the same of both tails; none if it is infinite."""
        period = self.periods[0]
        if not period or self.periods[1] != period or self.ratios[0] != self.ratios[1]:
            return None
        steps = [pair for sign in (1, -1) for pair in self.pairs(sign * period).pairs]
        return max(Fraction(p, q) for p, q in steps) if all(q for _, q in steps) else None

    def moment(self, power: int) -> Fraction:
        """The sum of |k|^power · f(k), with 0^0 = 0."""
        total = Fraction(0)
        for first, last, weight, side in self.blocks():
            rho = Fraction(self.ratios[side > 0], UNIT) if side else Fraction(0)
            # Of a run of the left tail the mirror image; a tail lies on its side of 0.
            a, b = (-last, -first) if side < 0 else (first, last)
            moments = list(repeated(sums(a, b), self.periods[side > 0], rho))
            moments[0] -= (a <= 0 <= b) * (1 - rho)
            total += Fraction(weight, self.total) * moments[power]
        return total

    def work(self, distances: set[int]) -> int:
        """The number of step 32."""
        tails = [min(FAR, max(distances) // period) for period in self.periods if period]
        return 2 * len(distances) * len(self.lengths) * (sum(tails) + 3) * (1 + sum(tails) // 8)

    def is_far(self, distances: set[int]) -> bool:
        """Whether the largest distance is more than 256 periods of a tail."""
        return any(period and max(distances) // period > FAR for period in self.periods)

    def compared(self, distances: set[int]) -> list[Pairs]:
        """The pairs at these distances, and at the largest alone where the noise is unimodal."""
        return [self.pairs(sign * each) for each in self.chosen(distances) for sign in (1, -1)]

    def chosen(self, distances: set[int]) -> set[int]:
        """The distances that have to be compared."""
        return {max(distances)} if self.is_unimodal else distances

    def proved(self, file: str, distances: set[int], epsilon: Fraction) -> list[Pairs]:
        """The same within the work of step 32; none of noise that is far and not pure."""
        work, far = self.work(self.chosen(distances)), max(distances)
        need(work <= 10**6, file, "size", work, "at most 10^6")
        if not self.is_far(distances):
            return self.compared(distances)
        ratio, times = self.step_ratio(), ceil_div(far, self.periods[0] or 1)
        is_pure = ratio is not None and ratio**times * SCALE <= below_e(epsilon)
        return [Pairs({}, 1)] if is_pure else []

    def cell(self, distances: set[int], step: Fraction) -> list[int] | None:
        """The profile of a cell that moves by these distances; none if it is rough."""
        if not self.is_far(distances) and self.work(self.chosen(distances)) <= 3 * 10**5:
            return values_of_pairs(self.compared(distances), step)
        ratio = self.step_ratio() if self.is_unimodal else None
        if ratio is None:
            return None
        digits = Context(prec=100, rounding="ROUND_CEILING")
        c = digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
        fifty = Context(prec=50, rounding=ROUND_HALF_EVEN)
        loss = Fraction(fifty.next_plus(fifty.ln(c)))
        return pure_values(ceil_div(max(distances), self.periods[0]) * loss, Fraction(0), step)


Sums = tuple[Fraction, Fraction, Fraction]


def sums(first: int, last: int) -> Sums:
    """Of a run of integers k: how many there are, the sum of |k| and that of k²."""
    if first < 0 < last:
        a, b = sums(first, -1), sums(0, last)
        return a[0] + b[0], a[1] + b[1], a[2] + b[2]
    count = last - first + 1
    squares = [n * (n + 1) * (2 * n + 1) // 6 for n in (last, first - 1)]
    ones = count * abs(first + last) // 2
    return Fraction(count), Fraction(ones), Fraction(squares[0] - squares[1])


def repeated(run: Sums, period: int, rho: Fraction) -> Sums:
    """Their means if the run moves by G · period away from 0, where G ≥ g has the chance ρ^g."""
    count, ones, twos = run
    mean, square = rho / (1 - rho), rho * (1 + rho) / (1 - rho) ** 2
    moved = twos + 2 * ones * period * mean + count * period**2 * square
    return count, ones + count * period * mean, moved


# ---- Mechanisms on the answer (5.3, 8.11) -------------------------------------------------------

BASE = {
    **{"schema": str, "query": str, "mechanism": str},
    "guarantee": {"definition": DEFINITIONS, **FIGURES},
    "profile?": {"step": EXACT, "values": [WHOLE], "patterns": [[int]]},
}
ON_THE_LINE = "noise on the integers"
ON_ANSWER = BASE | {
    **{"group": [int], "total": WHOLE, "directed": bool},
    "recomputed": {
        **{"delta_probabilistic": EXACT, "delta_approximate": EXACT},
        "epsilon_all_differences": str,
    },
    "accuracy": dict.fromkeys(("p_exact", "mean_absolute", "p_within_1"), EXACT),
    "design": {
        **dict.fromkeys(("method", "loss", "solver"), str),
        **dict.fromkeys(("objective", "bounded_loss", "lower_bound", "gap"), EXACT),
        "bound_of": frozenset(("every mechanism", "modular noise", ON_THE_LINE)),
        **{"bound": frozenset(("proved", "solver")), "notes": [NOTE]},
        "multipliers": [{"distance": int, "prices": [WHOLE]}],
    },
}
ENDS_AND_DISTANCES = {"low_end": [[int]], "high_end": [[int]], "distances": [[int]]}
FAMILIES = {
    "modular": ON_ANSWER | {"weights": [WHOLE], "sensitivity": [[int]]},
    "channel": ON_ANSWER | {"rows": [[WHOLE]], "pairs": [[int]]},
    "integer": ON_ANSWER | {"noise": NOISE, **ENDS_AND_DISTANCES},
}
Cell = Callable[[int, Fraction], list[int] | None]


@dataclass
class Mechanism:
    """A mechanism that was checked: the δ that it uses, and the profile of one cell (5.3.1).

    ``cell`` gives the values, for a cell that moves by d and a step; none if they are rough.
    """

    delta: Fraction
    cell: Cell


def check_mechanism(file: str, plain: Plain, query: Query, entry: Plain) -> Mechanism:
    """One mechanism file against the spec; gives what charges and profiles rest on [30-40]."""
    family, epsilon, delta = entry["mechanism"], number(entry["epsilon"]), number(entry["delta"])
    stated = {name: entry[name] for name in ("definition", "epsilon", "delta")}
    expected = {
        **{"schema": "dp-release/mechanism/v1", "mechanism": family, "guarantee": stated},
        "query": file.removeprefix("mechanisms/").removesuffix(".json"),
    }
    forms = STATISTIC if query.on_statistic else FAMILIES
    need(family in forms, file, "mechanism", family, list(forms))
    check_shape(file, plain, forms[family])
    if not query.on_statistic:
        expected |= {"group": query.group, "directed": False}
    agree(file, plain, expected)
    if query.on_statistic:
        return Mechanism(Fraction(0), check_statistic(file, plain, query, epsilon))
    total, named = int(plain["total"]), query.mechanism
    most = 10**78 if family == "modular" else 2**62 + 1
    is_power = 2 <= total < most and total & (total - 1) == 0
    need(is_power, file, "total", total, "a power of two of the size allowed")
    if named == "best":
        ordered = any(topology == "ordered" for _, topology in query.domains)
        need((family == "modular") != ordered, file, "mechanism", family, "one for the domain")
    elif named not in FAMILIES:
        same(file, "design.method", plain["design"]["method"], f"baseline {named}")
    ratio, stated = below_e(epsilon), plain["recomputed"]
    check = {"modular": modular, "channel": channel, "integer": on_integers}[family]
    compared, cell = check(file, plain, query)
    approximate = max((each.approximate(ratio) for each in compared), default=Fraction(1))
    probabilistic = Fraction(approximate > 0)
    if family != "integer":
        probabilistic = max(each.probabilistic(ratio) for each in compared)
    own = approximate if entry["definition"] == "approximate" else probabilistic
    need(own <= delta, file, "guarantee", f"δ {up(own, 20)}", entry["delta"])
    same(file, "delta_probabilistic", number(stated["delta_probabilistic"]), probabilistic)
    same(file, "delta_approximate", stated["delta_approximate"], up(approximate, 60))
    check_design(file, plain, query)
    return Mechanism(own, cell)


def check_design(file: str, plain: Plain, query: Query) -> None:
    """The loss function, and what the bounds are compared with [39]."""
    design = plain["design"]
    bounded, bound = number(design["bounded_loss"]), number(design["lower_bound"])
    if not query.is_table:
        same(file, "design.loss", design["loss"], query.loss_name)
    if design["bound_of"] == ON_THE_LINE:
        same(file, "design.bound_of", plain["mechanism"], "integer")
    else:
        same(file, "design.bounded_loss", bounded, number(design["objective"]))
        same(file, "design.multipliers", design["multipliers"], [])
    need(bound <= bounded, file, "design.lower_bound", bound, f"at most {bounded}")
    same(file, "design.gap", design["gap"], exact(bounded - bound))


Compared = tuple[list[Pairs], Cell]
"""All pairs of distributions, and those of a cell."""


def modular(file: str, plain: Plain, query: Query) -> Compared:
    """Noise in the group [32-40]."""
    group, total = query.group, int(plain["total"])
    weights = [int(weight) for weight in plain["weights"]]
    vectors = [tuple(vector) for vector in plain["sensitivity"]]
    same(file, "weights", (len(weights), sum(weights)), (prod(group), total))
    need(max(weights) < total, file, "weights", "no noise", "noise")
    need(vectors, file, "sensitivity", "none", "one vector or more")
    # Elements of the group but zero, closed under negation, in order.
    same(file, "sensitivity", vectors, sorted(query.both_ways(vectors)))
    if query.source != "empirical":
        lacking = query.sensitivity(query.rows)[0] - set(vectors)
        need(not lacking, file, "sensitivity", f"without {sorted(lacking)[:3]}", "all of M")
    need(len(weights) * len(vectors) <= 10**9, file, "size", len(vectors), "at most 10^9 in all")
    pairs: dict[int, list[Pairs]] = {}
    for vector in vectors:
        compared = Pairs(Counter(zip(weights, rolled(weights, group, vector), strict=True)), total)
        pairs.setdefault(min(vector[0], group[0] - vector[0]), []).append(compared)
    return compared_within(pairs)


def rolled(weights: list[int], group: list[int], by: Vector) -> list[int]:
    """The list whose element η is the weight of η + by, in row-major order."""
    if len(group) == 1:
        return weights[by[0] :] + weights[: by[0]]
    inner = prod(group[1:])
    blocks = []
    for place in range(group[0]):
        start = (place + by[0]) % group[0] * inner
        blocks += rolled(weights[start : start + inner], group[1:], by[1:])
    return blocks


def compared_within(pairs: dict[int, list[Pairs]]) -> Compared:
    """All pairs, and of a cell those of the distances up to d; a 0 stands for all."""

    def within(far: int) -> list[Pairs]:
        return [each for s in sorted(pairs) if s <= far or far == 0 for each in pairs[s]]

    return within(0), lambda far, step: values_of_pairs(within(far), step)


def channel(file: str, plain: Plain, query: Query) -> Compared:
    """A row of weights for each true code [32-40]."""
    need(query.is_line, file, "mechanism", "channel", "one ordered part")
    size, total = query.group[0], int(plain["total"])
    rows = [[int(weight) for weight in row] for row in plain["rows"]]
    same(file, "rows", [(len(row), sum(row)) for row in rows], [(size, total)] * size)
    need(max(map(max, rows)) < total, file, "rows", "no noise", "noise")
    distances = {abs(a - b) for a, b in plain["pairs"]}
    need(distances, file, "pairs", "none", "one or more")
    every = permutations(range(size), 2)
    expected = [[a, b] for a, b in every if abs(a - b) in distances]
    same(file, "pairs", plain["pairs"], expected)
    check_distances(file, query, distances)
    pairs: dict[int, list[Pairs]] = {}
    for a, b in expected:
        compared = Pairs(Counter(zip(rows[a], rows[b], strict=True)), total)
        pairs.setdefault(abs(a - b), []).append(compared)
    return compared_within(pairs)


def check_distances(file: str, query: Query, distances: set[int]) -> None:
    """The distances of a public file hold all of A [40]."""
    if query.source != "empirical":
        lacking = query.sensitivity(query.rows)[1] - distances
        need(not lacking, file, "distances", f"without {sorted(lacking)[:3]}", "all of A")


def on_integers(file: str, plain: Plain, query: Query) -> Compared:
    """Noise on the integers, clamped and remapped at the ends [32-40]."""
    need(query.is_line, file, "mechanism", "integer", "one ordered part")
    size, epsilon = query.group[0], number(plain["guarantee"]["epsilon"])
    noise = Noise(file, plain["noise"], int(plain["total"]))
    check_ends(file, plain, size)
    distances: set[int] = set()
    for first, last in plain["distances"]:
        apart = 1 <= first <= last < size and (not distances or first > max(distances) + 1)
        need(apart and last <= 10**7, file, "distances", (first, last), "ascending intervals")
        distances |= set(range(first, last + 1))
    need(distances, file, "distances", "none", "one or more")
    check_distances(file, query, distances)
    compared = noise.proved(file, distances, epsilon)
    if plain["design"]["bound_of"] == ON_THE_LINE:
        check_line_bound(file, plain, noise, distances)
    return compared, lambda far, step: noise.cell({s for s in distances if s <= far}, step)


def check_ends(file: str, plain: Plain, size: int) -> None:
    """The tables of the two ends: runs of outcomes, each with its shift (5.3)."""
    counted = 0
    for name in ("low_end", "high_end"):
        length = sum(count for count, _ in plain[name])
        counted += length
        at, before = 0 if name == "low_end" else size - length, None
        for count, shift in plain[name]:
            inside = count >= 1 and at + shift >= 0 and at + count - 1 + shift < size
            right = inside and shift != before
            need(right, file, name, (count, shift), "runs of different shifts within the domain")
            at, before = at + count, shift
    need(counted <= size, file, "low_end, high_end", counted, f"at most {size} outcomes")


def check_line_bound(file: str, plain: Plain, noise: Noise, distances: set[int]) -> None:
    """The loss that is bounded, and a proved bound of noise on the integers [39]."""
    design, guarantee = plain["design"], plain["guarantee"]
    need(design["loss"] in LINE_LOSSES, file, "design.loss", design["loss"], LINE_LOSSES)
    degree, stated = LINE_LOSSES.index(design["loss"]), number(design["lower_bound"])
    same(file, "design.bounded_loss", design["bounded_loss"], up(noise.moment(degree), 18))
    if design["bound"] == "proved" and stated > 0:
        epsilon, delta = number(guarantee["epsilon"]), number(guarantee["delta"])
        best = closed_bound(distances, degree, epsilon, delta)
        if design["multipliers"]:
            best = max(best, priced_bound(file, plain, distances, degree))
        need(stated <= best, file, "lower_bound", design["lower_bound"], f"at most {up(best, 20)}")


def closed_bound(distances: set[int], degree: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The closed form for A = {g, 2g, …, m·g}, or 0 (5.3)."""
    unit = gcd(*distances)
    m = max(distances) // unit
    if len(distances) != m or epsilon == 0 or (delta > 0 and degree > 0):
        return Fraction(0)
    x = Fraction(SCALE, above_e(epsilon))
    values = []
    for t in range(1, m + 1):
        # Blocks of m integers from t on have the weights x, x², …, on both sides of 0.
        outer = repeated(sums(t, t + m - 1), m, x)[degree] * x / (1 - x)
        inner = sums(1, t - 1)[degree]
        values.append((2 * inner + 2 * outer) / (2 * t - 1 + 2 * m * x / (1 - x)))
    least: Fraction = min(values) * unit**degree
    if degree == 2 and m > 1:
        least -= unit * unit // 4
    return least * (1 - delta)


def priced_bound(file: str, plain: Plain, distances: set[int], degree: int) -> Fraction:
    """The bound that multipliers prove (5.3)."""
    above = above_e(number(plain["guarantee"]["epsilon"]))
    listed = plain["design"]["multipliers"]
    prices = {each["distance"]: [int(price) for price in each["prices"]] for each in listed}
    once = len(prices) == len(listed) and set(prices) <= distances
    need(once, file, "multipliers", sorted(prices), "distances of the file, each once")
    reach = max(len(each) for each in prices.values()) // 2
    odd = all(len(each) == 2 * reach + 1 for each in prices.values())
    need(odd, file, "multipliers", reach, "lists of one odd length")
    tops = {s: max(each) for s, each in prices.items()}

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


# ---- Mechanisms on a statistic (4.7, 5.3) ------------------------------------------------------

RATIO = {"spread": int, "ratio": WHOLE}
TOP = RATIO | dict.fromkeys(("categories", "members", "touched", "weight"), int)
SELECTIONS = ("permute_and_flip", "exponential_mechanism")
PARAMETERS: dict[str, Plain] = {
    **dict.fromkeys(SELECTIONS, RATIO | {"candidates": int}),
    "two_categories": RATIO,
    "gap_table": {"spread": int, "categories": int, "cap": int, "weights": [[WHOLE]]},
    "noisy_sums": {"spread": int, "sums": int, "noise": NOISE},
    "joint_quantiles": RATIO | {"candidates": int, "shares": [EXACT], "sublevels": int},
    "quantile_tree": RATIO
    | {"candidates": int, "shares": [EXACT], "rows": int, "replaced": bool, "block": COUNT},
    "top_histogram": TOP | dict.fromkeys(("replaced", "counts", "histogram"), bool),
    **dict.fromkeys(("top_canonical", "top_peeled"), TOP | {"replaced": bool}),
}
IN_PROPORTION = (*SELECTIONS, "joint_quantiles", "quantile_tree", "top_histogram")
STATISTIC = {family: BASE | fields for family, fields in PARAMETERS.items()}


def check_statistic(file: str, plain: Plain, query: Query, epsilon: Fraction) -> Cell:
    """The family, its parameters and its condition for ε [30]."""
    family, size = plain["mechanism"], query.group[0]
    families = families_of(query)
    need(epsilon > 0, file, "epsilon", epsilon, "above 0")
    need(family in families, file, "mechanism", family, families)
    two_way, members = not query.spec.is_one_way, query.plain.get("k") or 0
    shares, weight, touched, spread = spread_of(query, query.rows, two_way=two_way)
    expected = {
        **{"spread": spread, "candidates": size, "categories": size, "sublevels": 256},
        **{"shares": [exact(share) for share in shares], "members": members},
        **{"touched": touched, "weight": weight, "replaced": two_way, "rows": query.rows},
        **{name: bool(query.plain.get(name)) for name in ("counts", "histogram")},
        "sums": 1 + (query.kind == "mean"),
    }
    agree(file, plain, {name: expected[name] for name in expected.keys() & plain.keys()})
    if family == "gap_table":
        check_gaps(file, plain, below_e(epsilon))
    elif family == "noisy_sums":
        noise = Noise(file, plain["noise"], 2**62)
        check_sums_noise(file, plain, noise, epsilon)
        small = not noise.is_far({spread}) and noise.work({spread}) <= 3 * 10**5
        if plain["sums"] == 1 and noise.is_unimodal and small:
            return lambda _, step: noise.cell({spread}, step)
    else:
        once = (1 + two_way) * weight
        levels = (1 + two_way) * (1 + (plain.get("block") != 1))
        canonical_twice = 1 if 1 in (touched, members, size - members) else 2
        factor = {
            **dict.fromkeys((*SELECTIONS, "top_histogram"), spread),
            "two_categories": 1,
            **{"joint_quantiles": 4 * 256 * spread, "top_canonical": once * canonical_twice},
            **{"top_peeled": once * members, "quantile_tree": levels * query.rows},
        }[family]
        check_ratio(file, int(plain["ratio"]), factor, epsilon)
    in_range = family == "exponential_mechanism"
    return lambda _, step: pure_values(epsilon, Fraction(0), step, in_range=in_range)


def spread_of(query: Query, rows: int, *, two_way: bool) -> tuple[list[Fraction], int, int, int]:
    """The shares of ranks, the weight and the reach of a unit, and the spread (4.7)."""
    plain, size, both = query.plain, query.group[0], 1 + two_way
    weighed = "weight" in plain
    units = plain.get("count", "rows" if weighed else "units") == "units"
    shares = [number(share) for share in plain.get("at", ["1/2"])]
    weight = rows * max(map(abs, query.clamp)) if weighed else 1 if units else rows
    touched = min(rows, size) if units else 1
    base = lcm(*(share.denominator for share in shares))
    if query.kind == "sum":
        more, less = query.sum_of(rows)
        spread = max(more, less) if both == 1 else more + less
    elif query.kind == "mean":
        spread = rows * (query.clamp[1] - query.clamp[0]) * both
    elif query.kind == "top":
        spread = weight * (touched if both == 1 else min(2 * touched, size))
    elif query.kind == "mode":
        spread = weight * both
    elif query.kind in ("min", "max"):
        spread = 2 * rows
    elif both == 2:
        spread = 2 * rows * base
    elif len(shares) == 1:
        spread = 2 * rows * max(shares[0].numerator, base - shares[0].numerator)
    else:
        steps = [after - share for share, after in pairwise([Fraction(0), *shares, Fraction(1)])]
        spread = 2 * rows * int(base - base * min(steps))
    return shares, weight, touched, spread


def moves_of(query: Query, distance: int) -> tuple[int, int, int]:
    """The s, a and b of 4.3; ``distance`` is the largest of the file of a count of rows."""
    rows, two_way = query.rows, not query.spec.is_one_way
    if not query.on_statistic:
        return distance, min(rows, query.group[0] - 1), 1
    neighbors = spread_of(query, rows, two_way=two_way)[3]
    alone, row = (spread_of(query, most, two_way=False)[3] for most in (rows, 1))
    return neighbors, alone, row


def loses_in_proportion(plain: Plain, spread: int, epsilon: Fraction) -> bool:
    """Whether a mechanism loses in proportion (4.3)."""
    family = plain["mechanism"]
    if family not in ("integer", "noisy_sums"):
        return family in IN_PROPORTION
    noise = Noise(family, plain["noise"], int(plain.get("total", 2**62)))
    if family == "integer":
        below = below_e(epsilon / spread)
        return all(noise.pairs(sign).excess(below) == 0 for sign in (1, -1))
    ratio = noise.ratios[1]
    return ratio > 0 and steps_within(noise, ratio) and spread * loss_of(ratio) <= epsilon


def families_of(query: Query) -> tuple[str, ...]:
    """The families that may answer a query with noise on the statistic [30]."""
    families: tuple[str, ...] = SELECTIONS
    single = query.plain.get("weight") is None or query.clamp == (0, 1)
    if query.kind in ("sum", "mean"):
        families = ("noisy_sums",)
    elif query.kind == "top":
        shown = query.plain.get("counts") or query.plain.get("histogram")
        families = ("top_histogram", *(() if shown else ("top_canonical", "top_peeled")))
    elif query.kind == "quantiles" and len(query.plain["at"]) > 1:
        families = ("joint_quantiles", "quantile_tree")
    elif query.kind == "mode" and query.rows == 1 and not query.spec.is_one_way and single:
        families += ("two_categories" if query.group[0] == 2 else "gap_table",)
    return tuple(each for each in families if query.mechanism in ("best", each))


def check_ratio(file: str, ratio: int, factor: int, epsilon: Fraction) -> None:
    """Check that factor · ln(1/ρ) is at most ε, and no smaller ρ has that."""
    right = 1 <= ratio < UNIT and factor * loss_of(ratio) <= epsilon
    need(right, file, "ratio", ratio, f"{factor} times its loss at most {epsilon}")
    least = ratio == 1 or factor * loss_of(ratio - 1) > epsilon
    need(least, file, "ratio", ratio, "the least that satisfies ε")


def loss_of(ratio: int) -> Fraction:
    """An upper bound of ln(2^64 / ratio) that is at most 10^-40 too large."""
    work = Context(prec=80, rounding=ROUND_HALF_EVEN)
    return Fraction(work.ln(work.divide(Decimal(UNIT), Decimal(ratio)))) + Fraction(1, 10**60)


def steps_within(noise: Noise, ratio: int) -> bool:
    """Whether no two neighboring integers have masses further apart than 1/ρ."""
    steps = [pair for sign in (1, -1) for pair in noise.pairs(sign).pairs]
    return all(p * ratio <= q * UNIT for p, q in steps)


def check_sums_noise(file: str, plain: Plain, noise: Noise, epsilon: Fraction) -> None:
    """The noise of sums and means."""
    spread, ratio, below = plain["spread"], noise.ratios[0], below_e(epsilon)
    if plain["sums"] == 1:
        need(noise.is_unimodal or spread <= 10**6, file, "spread", spread, "at most 10^6")
        distances = {spread} if noise.is_unimodal else set(range(1, spread + 1))
        compared = noise.proved(file, distances, epsilon)
        excess = max((pairs.excess(below) for pairs in compared), default=1)
        need(excess == 0, file, "guarantee", "a pure δ above 0", "0 at every distance")
        return
    same(file, "noise.right", (noise.ratios[1], noise.periods[1]), (ratio, noise.periods[0]))
    check_ratio(file, ratio, spread, epsilon)
    need(steps_within(noise, ratio), file, "noise", "a step above 1/ρ", "at most 1/ρ")


def check_gaps(file: str, plain: Plain, ratio: int) -> None:
    """Every change of one unit's votes moves every weight by at most the ratio."""
    size, cap = plain["categories"], plain["cap"]
    same(file, "spread", plain["spread"], 2)
    need(3 <= size <= 6 and cap >= 1, file, "categories", (size, cap), "3 to 6, cap from 1")
    states = [(0, *rest) for rest in multisets(range(cap + 1), size - 1)]
    need(len(states) <= 2**15, file, "states", len(states), "at most 2^15")
    lists = [[int(weight) for weight in weights] for weights in plain["weights"]]
    same(file, "weights", [(len(w), sum(w)) for w in lists], [(size, 2**62 - 4)] * len(states))
    chance: dict[Vector, dict[int, int]] = {}
    for state, weights in zip(states, lists, strict=True):
        chance[state] = dict(zip(state, weights, strict=True))
        same(file, "equal gaps", [chance[state][gap] for gap in state], weights)

    def weights_of(scores: Vector) -> list[int]:
        gaps = [min(max(scores) - score, cap) for score in scores]
        return [chance[tuple(sorted(gaps))][gap] for gap in gaps]

    votes = [tuple(int(i == place) for i in range(size)) for place in range(size + 1)]
    for gaps in multisets(range(cap + 3), size - 1):
        scores = (0, *(-gap for gap in gaps))
        before = weights_of(scores)
        for rises, falls in permutations(votes, 2):
            moved = zip(scores, rises, falls, strict=True)
            after = weights_of(tuple(a + b - c for a, b, c in moved))
            for v, w in zip(before, after, strict=True):
                near_by = v * SCALE <= ratio * w and w * SCALE <= ratio * v
                need(near_by, file, "weights", f"{v} and {w} at gaps {gaps}", "within ε")


# ---- Profiles (5.3.1) --------------------------------------------------------------------------

PARTS = 10**28
LONGEST = 2**14
SMALL = 10**6


@dataclass(frozen=True)
class Losses:
    """Masses at losses low·h, (low + 1)·h, …, and at an infinite loss; in units of 10^-28."""

    step: Fraction
    low: int
    masses: list[int]
    infinite: int


def values_of_pairs(compared: list[Pairs], step: Fraction) -> list[int]:
    """Upper bounds of δ at the losses 0, h, 2h, … over all pairs."""
    most = min(LONGEST, int(100 / step) + 1)
    lists = []
    for pairs in compared:
        values: list[int] = []
        while len(values) < most:
            ratio = below_e(len(values) * step)
            bound = ceil_div(PARTS * pairs.excess(ratio), SCALE * pairs.total)
            values.append(min(PARTS, bound))
            if pairs.finite[0] * SCALE <= ratio * pairs.finite[1]:
                break
        lists.append(values)
    return largest(lists, step)


def pure_values(
    epsilon: Fraction, delta: Fraction, step: Fraction, *, in_range: bool = False
) -> list[int]:
    """The worst case of ε and δ, or that of losses within an interval of length ε."""
    if epsilon > 100:
        return [PARTS]
    top, under = above_e(epsilon), below_e(epsilon)
    values: list[int] = []
    while len(values) < LONGEST and len(values) * step < epsilon:
        loss = len(values) * step
        share = Fraction(top - below_e(loss), top + SCALE)
        if in_range and under > SCALE:
            root = 1 - Fraction(SCALE, above_e((epsilon - loss) / 2))
            share = min(share, root**2 / (1 - Fraction(SCALE, under)))
        values.append(min(PARTS, ceil(PARTS * (delta + (1 - delta) * share))))
    return shortened([*values, ceil(PARTS * delta)], step)


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
        return Losses(step, 0, [PARTS - values[0]], values[0])
    b, c = Fraction(SCALE, above_e(step)), Fraction(SCALE, below_e(step))
    falls = [before - after for before, after in pairwise(values)] + [0]
    upper, lower, g = [], [], Fraction(1)
    for fall, after in pairwise(falls):
        mass = max(0, ceil((fall - b * after) / (1 - c)))
        g = Fraction(ceil(10**45 * g * c), 10**45)
        upper.append(mass)
        lower.append(ceil(mass * g))
    middle = max(0, ceil(PARTS - ((1 + b) * values[0] - 2 * c * values[1]) / (1 - b)))
    return Losses(step, -last, [*reversed(lower), middle, *upper], values[last])


def folded(losses: Losses) -> Losses:
    """Small masses at the ends go to the infinite loss, and to the least loss that is left."""
    masses = losses.masses
    first, last, top, bottom = 0, len(masses), 0, 0
    while last > 1 and top + masses[last - 1] <= SMALL:
        last -= 1
        top += masses[last]
    while last - first > 1 and bottom + masses[first] <= SMALL:
        bottom += masses[first]
        first += 1
    inner = masses[first:last]
    inner[0] += bottom
    return Losses(losses.step, losses.low + first, inner, losses.infinite + top)


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
    return folded(Losses(a.step, a.low + b.low, masses, ceil_div(lost, PARTS)))


def power(single: Losses, count: int) -> Losses:
    """Equal distributions together."""
    if count == 1:
        return single
    half = power(single, count // 2)
    both = composed(half, half)
    return composed(both, single) if count % 2 else both


def all_of(counted: Iterable[tuple[Losses, int]]) -> Losses:
    """Distributions, each so often, together: the two with the fewest masses first."""
    waiting = [power(losses, count) for losses, count in counted]
    while len(waiting) > 1:
        waiting.sort(key=lambda losses: len(losses.masses))
        waiting = [*waiting[2:], composed(*waiting[:2])]
    return waiting[0]


def read_values(total: Losses) -> list[int]:
    """The profile of a distribution at the losses 0, h, 2h, …."""
    top = total.low + len(total.masses) - 1
    values, above, fallen = [total.infinite], 0, 0
    falls = SCALE * SCALE // above_e(total.step)
    for place in range(top, 0, -1):
        mass = total.masses[place - total.low] if place >= total.low else 0
        above, fallen = above + mass, (fallen + mass) * falls // SCALE
        values.append(min(PARTS, total.infinite + above - fallen))
    return shortened(values[::-1], total.step)


def delta_at(whole: Losses, epsilon: Fraction) -> Fraction:
    """A bound of δ at one ε, in units of 10^-28."""
    delta = Fraction(whole.infinite)
    for place, mass in enumerate(whole.masses, whole.low):
        above = place * whole.step - epsilon
        if above > 0:
            delta += mass * (1 - Fraction(SCALE, above_e(above)) if above <= 100 else 1)
    return delta


def patterns_of(query: Query, touched: int, free: int, spread: int | None) -> list[list[int]]:
    """By how much one unit moves the cells that it touches (4.3)."""
    if spread is not None:
        return [[spread] * touched]
    if query.kind != "count" or query.plain.get("of") is not None or not query.is_line:
        far = max(query.sensitivity(query.rows)[1]) if query.is_line else 0
        return [[far] * touched]
    rows, most = query.rows, query.group[0] - 1
    # Beyond 60 it does not matter how many partitions there are.
    parts = list(islice(partitions(rows, rows, query.cells_at_once(free)), 61))
    moves = set(parts)
    if not query.spec.is_one_way and free > 1 and len(parts) <= 60:
        pairs = ((a, b) for a in parts for b in parts if len(a) + len(b) <= free)
        moves = {tuple(sorted(a + b, reverse=True)) for a, b in pairs}
    if len(moves) > 60:
        return [[min(rows, most)] * touched]
    return [list(each) for each in sorted({tuple(min(n, most) for n in each) for each in moves})]


def partitions(total: int, most: int, parts: int) -> Iterator[Vector]:
    """The falling lists of so many positive integers at most, each up to ``most``, with a sum."""
    if total == 0:
        yield ()
    elif parts > 0:
        for first in range(min(total, most), 0, -1):
            yield from ((first, *rest) for rest in partitions(total - first, first, parts - 1))


def profile_of(mechanism: Mechanism, patterns: list[list[int]], step: Fraction) -> list[int] | None:
    """The values of a profile; none where the page has rough values or coarser steps."""
    cells: dict[int, list[int]] = {}
    for far in {far for pattern in patterns for far in pattern}:
        values = mechanism.cell(far, step)
        if values is None:
            return None
        cells[far] = values
    lists = []
    for pattern in patterns:
        length = 2 * max(len(cells[far]) for far in pattern) - 1
        if len(pattern) == 1:
            lists.append(cells[pattern[0]])
        elif length * (isqrt(len(pattern)) + 1) > 2**16:
            return None
        else:
            counted = sorted(Counter(pattern).items())
            whole = all_of((losses_of(cells[far], step), count) for far, count in counted)
            lists.append(read_values(whole))
    return largest(lists, step)


# ---- Charges and their total (4.3, 4.4) [26] ----------------------------------------------------


@dataclass
class Charged:
    """One published query or measured table, with what its charge and profile rest on."""

    query: Query
    entry: Plain
    mechanism: Mechanism | None
    touched: int
    times: Fraction
    patterns: list[list[int]]

    @property
    def is_public(self) -> bool:
        """Whether its sensitivity, and so its mechanism, follows from the spec alone."""
        return self.query.source != "empirical"

    @property
    def delta(self) -> Fraction:
        """The δ′ of 4.3."""
        claimed = number(self.entry["delta"])
        if self.mechanism is None or not self.is_public:
            return claimed
        return min(claimed, Fraction(ceil(self.mechanism.delta * 10**12), 10**12))

    @property
    def charge(self) -> tuple[Fraction, Fraction]:
        """What all that a unit moves costs."""
        return self.times * number(self.entry["epsilon"]), self.touched * self.delta


def step_of(charged: list[Charged], spec: Spec) -> Fraction:
    """The grid of a release without tabulations (4.3.1)."""
    budget = number(spec.plain["budget"]["epsilon"])
    count = sum(each.touched for each in charged)
    steps = max(1000, 50 * (isqrt(count - 1) + 1))
    whole = ceil_div(steps, count) * count if 1 < count <= 1000 else min(LONGEST, steps)
    if any(each.query.is_composed for each in charged):
        return budget / whole
    unit = common_step([number(each.entry["epsilon"]) for each in charged])
    least = min(budget, sum(each.charge[0] for each in charged)) or budget
    if unit and LONGEST * unit >= least:
        return unit / ceil(unit * min(LONGEST, steps) / least)
    return least / whole


def common_step(claims: list[Fraction]) -> Fraction:
    """The greatest common divisor of some rationals."""
    base = lcm(*(claim.denominator for claim in claims))
    return Fraction(gcd(*(int(claim * base) for claim in claims)), base)


def check_total(record: Plain, spec: Spec, charged: list[Charged], whole: Losses | None) -> bool:
    """The charge of the release; whether it was proved."""
    file, stated, guarantee = "release.json", record["composition"], record["guarantee"]
    for each in charged:
        epsilon, delta = each.charge
        text = {"epsilon": exact(epsilon), "delta": exact(delta)}
        same(file, f"{each.entry['name']}.charge", each.entry["charge"], text)
        parallel = each.entry.get("parallel", each.touched == 1)
        same(file, f"{each.entry['name']}.parallel", parallel, each.touched == 1)
    hidden = [each.charge for each in charged if not each.is_public]
    asserted = [sum((pair[i] for pair in hidden), Fraction(0)) for i in (0, 1)]
    both = [sum((each.charge[i] for each in charged), Fraction(0)) for i in (0, 1)]
    total = [number(stated[name]) for name in FIGURES]
    caps = [number(spec.plain["budget"][name]) for name in FIGURES]
    within = total[0] <= caps[0] and total[1] <= caps[1] and total[1] < 1
    need(within, file, "charges", list(map(exact, total)), f"at most {list(map(exact, caps))}")
    same(file, "composition.rule", stated["rule"], ("basic-v1", "pld-v1")[spec.composes_exactly])
    for name, value in zip(FIGURES, total, strict=True):
        same(file, f"composition.{name}", stated[name], exact(value))
        same(file, f"guarantee.{name}", guarantee[name], exact(value))
    names = {each.entry["definition"] for each in charged if each.delta > 0}
    if spec.composes_exactly and total[1] > 0:
        names = {"approximate"}
    kind = next((name for name in ("approximate", "probabilistic") if name in names), "pure")
    same(file, "guarantee.definition", guarantee["definition"], kind)
    if not spec.composes_exactly or total == both:
        same(file, "composition", list(map(exact, total)), list(map(exact, both)))
        return True
    same(file, "composition.delta", total[1], caps[1])
    if whole is None:
        return False
    spare = caps[1] - asserted[1]
    delta = delta_at(whole, total[0] - asserted[0])
    need(delta <= spare * PARTS, file, "composition", f"δ {up(delta / PARTS, 20)}", exact(spare))
    return True


def read_queries(
    files: dict[str, bytes], record: Plain, spec: Spec, opened: dict[str, bytes], verdict: Verdict
) -> list[Charged]:
    """The mechanism and the reach of every published query and measured table."""
    answered: list[tuple[Query, Plain]] = list(zip(spec.published, record["queries"], strict=True))
    for tabulation in record.get("tabulations", []):
        for entry in tabulation["measured"]:
            answered.append((table_count(entry["name"], spec), entry | {"mechanism": "integer"}))
    sizes = spec.key_sizes(record)
    charged: list[Charged] = []
    for query, entry in answered:
        file = entry["mechanism_file"].get("path") or f"mechanisms/{query.name}.json"
        data = files.get(file) if "path" in entry["mechanism_file"] else opened.get(query.name)
        mechanism, spread = None, None
        if data is None:
            verdict.missing.append(f"{query.name}: its mechanism is committed; give --auditor DIR")
        else:
            plain = read_json(file, data)
            mechanism, spread = check_mechanism(file, plain, query, entry), plain.get("spread")
            verdict.proved.append(f"{query.name}: the mechanism satisfies its guarantee")
        counted = query.by if query.kind == "sql" else [c for c in query.by if c not in spec.fixed]
        if not all(column in sizes for column in counted):
            verdict.missing.append(f"the charges: the keys of {counted} stand in files")
            return []
        free = entry["cells"] if query.is_table else prod(sizes[column] for column in counted)
        touched = query.cells_touched(free, entry["cells"])
        in_file = query.is_table or not spec.in_files.isdisjoint(counted)
        if in_file and touched < query.cells_touched(10**6, 10**6):
            # With enough keys a unit would touch more cells, and how many there are is not read.
            unread = "areas" if query.is_table else "keys in a file"
            verdict.missing.append(f"{query.name}: the number of {unread}, which its charge needs")
        public = query.source != "empirical"
        patterns = patterns_of(query, touched, free, spread) if public else []
        times = Fraction(touched)
        if data is not None and public and touched > 1:
            times = times_charged(query, plain, touched, free)
        charged.append(Charged(query, entry, mechanism, touched, times, patterns))
    return charged


def times_charged(query: Query, plain: Plain, touched: int, free: int) -> Fraction:
    """The v of 4.3: how often the ε of one cell is charged."""
    counts_rows = query.kind == "count" and query.plain.get("of") is None
    if not query.on_statistic and not (counts_rows and plain["mechanism"] == "integer"):
        return Fraction(touched)
    farthest = max((last for _, last in plain.get("distances", [])), default=1)
    spread, alone, row = moves_of(query, farthest)
    together = min(query.cells_at_once(free) * alone, query.rows * row)
    moved = Fraction(together * (1 if query.spec.is_one_way else 2), spread)
    epsilon = number(plain["guarantee"]["epsilon"])
    if moved >= touched or not loses_in_proportion(plain, spread, epsilon):
        return Fraction(touched)
    return moved


def check_profiles(
    files: dict[str, bytes], record: Plain, spec: Spec, charged: list[Charged], verdict: Verdict
) -> Losses | None:
    """The profile of every public mechanism [40], composed; none if one is not recomputed."""
    public = [each for each in charged if each.is_public]
    stated = record["composition"]["step"]
    shared = None
    if spec.tabulations:
        # A total is proved on any grid, and this one rests on the areas, in a table.
        shared = number(stated)
        need(shared > 0, "release.json", "composition.step", stated, "a number above 0")
    elif spec.composes_exactly and public:
        shared = step_of(public, spec)
    same("release.json", "composition.step", stated, None if shared is None else exact(shared))
    computed: dict[tuple[str, str], list[int] | None] = {}
    lists: list[list[int]] = []
    steps: set[Fraction] = set()
    for each in public:
        file = each.entry["mechanism_file"]["path"]
        plain, epsilon = read_json(file, files[file]), number(each.entry["epsilon"])
        step = shared or (epsilon or Fraction(1)) / 64
        steps |= {step}
        need("profile" in plain and each.mechanism is not None, file, "profile", "none", "one")
        profile, key = plain["profile"], (file, str(each.patterns))
        same(file, "profile.step", profile["step"], exact(step))
        same(file, "profile.patterns", profile["patterns"], each.patterns)
        if key not in computed and each.mechanism is not None:
            computed[key] = profile_of(each.mechanism, each.patterns, step)
        values = computed[key]
        if values is None:
            verdict.missing.append(f"{each.query.name}: a rough profile or a coarse grid")
        else:
            same(file, "profile.values", profile["values"], list(map(str, values)))
            lists.append(values)
    if not lists or len(lists) < len(public) or len(steps) > 1:
        return None
    counted = Counter(map(tuple, lists))
    return all_of((losses_of(list(values), *steps), count) for values, count in counted.items())


# ---- Scopes that compose exactly (7.9) [22] -----------------------------------------------------


def unproved_of_scope(ledger: Ledger, record: Plain, spec: Spec, whole: Losses | None) -> list[str]:
    """Check that the release fits the slot or filter of its scope; gives what is not proved."""
    entry = ledger.entries[record["ledger"]["sequence"]]
    cap = ledger.caps[entry["scope"]]
    rule, name = cap.get("rule", "basic"), cap["scope"]
    own = None if spec.is_empirical else whole
    unproved = f"whether the release fits what it reserved in the scope {name}"
    if rule == "renyi_filter":
        if own is None:
            return [unproved]
        needed = dict(zip(("moment", "cut"), moment_of(own, cap["order"]), strict=True))
        for what, value in needed.items():
            need(value <= number(entry[what]), "ledger", what, entry[what], f"{up(value, 30)}")
    if rule != "pld":
        return []
    slot = next(slot for slot in cap["planned"] if slot["name"] == entry["slot"])
    same("ledger", "a declared slot", bool(slot.get("declared")), spec.is_empirical)
    plan = [] if plan_keeps(cap) else [f"whether the plan of the scope {name} keeps its cap"]
    if "epsilon" in slot and all(number(entry[each]) <= number(slot[each]) for each in FIGURES):
        return plan
    need(not spec.is_empirical, "ledger", "slot", entry["slot"], "one of the stated ε and δ")
    if own is None or ("profile" in slot and number(slot["profile"]["step"]) != own.step):
        return [unproved, *plan]
    values, bounds = read_values(own), values_of(slot, own.step)
    values += values[-1:] * (len(bounds) - len(values))
    bounds += bounds[-1:] * (len(values) - len(bounds))
    # Another order of composition differs by roundings, far below any δ that counts.
    fitting = all(a <= b + PARTS // 10**20 for a, b in zip(values, bounds, strict=True))
    need(fitting, "ledger", "slot", "a profile below that of the release", "one that holds it")
    # Between two losses the chord of a worst case lies above it, unless its ε is one of them.
    is_exact = "profile" in slot or number(slot["epsilon"]) % own.step == 0
    return plan if is_exact else [unproved, *plan]


def values_of(slot: Plain, step: Fraction) -> list[int]:
    """The curve of a slot on a grid: its profile, or the worst case of its ε and δ."""
    if "profile" in slot:
        return [int(value) for value in slot["profile"]["values"]]
    return pure_values(number(slot["epsilon"]), number(slot["delta"]), step)


def plan_keeps(cap: Plain) -> bool:
    """Whether the composition of all slots of a plan is proved to keep the cap."""
    rest, basic, claims = [number(cap[each]) for each in FIGURES], [Fraction(0)] * 2, []
    for slot in cap["planned"]:
        if "epsilon" in slot:
            charge = [slot["times"] * number(slot[each]) for each in FIGURES]
            if slot.get("declared"):
                rest = [a - b for a, b in zip(rest, charge, strict=True)]
            else:
                basic = [a + b for a, b in zip(basic, charge, strict=True)]
                claims.append(number(slot["epsilon"]))
    drawn = [slot for slot in cap["planned"] if not slot.get("declared")]
    steps = {number(slot["profile"]["step"]) for slot in drawn if "profile" in slot}
    if not steps and all(a <= b for a, b in zip(basic, rest, strict=True)):
        return True
    steps = steps or {common_step(claims)}
    if min(rest) < 0 or len(steps) > 1 or min(steps) == 0:
        return False
    whole = all_of((losses_of(values_of(s, *steps), *steps), s["times"]) for s in drawn)
    return delta_at(whole, rest[0]) <= rest[1] * PARTS


def moment_of(whole: Losses, order: int) -> tuple[Fraction, Fraction]:
    """Upper bounds of the moment and the cut of a release (7.9)."""
    moment = Fraction(0)
    cut = Fraction(whole.infinite + max(0, whole.infinite + sum(whole.masses) - PARTS))
    for place, mass in enumerate(whole.masses, whole.low):
        loss = place * whole.step
        far = (order - 1) * abs(loss)
        if loss > 100:
            cut += mass
        else:
            up_or_down = (above_e(far), SCALE) if loss >= 0 else (SCALE, below_e(far))
            moment += mass * Fraction(*up_or_down)
    return moment / PARTS, min(Fraction(1), cut / PARTS)


# ---- The auditor bundle (6) --------------------------------------------------------------------


AUDIT = "audit.json"
OF_AUDITOR = ("openings.json", "mechanisms", AUDIT)
"""What the bundle of one release has, and a folder of bundles has not."""
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
PERSON = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}|\?")
AUDITED = {
    **{"schema": str, "release_id": str, "sequence": (int, None), "began": INSTANT},
    **{"run": (re.compile("[0-9a-f]{32}"), None), "prepared": INSTANT, "actor": PERSON},
    "approver?": PERSON,
    "inputs": [{"table": str, "files": [COMMITMENT | {"key": DIGEST}]}],
    "set_aside": ([{"table": str, "rule": str, "column": str, "count": int}], None),
    "signature?": re.compile(r"[A-Za-z0-9+/=]{88}"),
}


def open_auditor(record: Plain, folder: Path | None, spec: Spec) -> dict[str, bytes]:
    """The committed mechanism files, by query [28, 29, 41]."""
    committed = [e for e in record["queries"] if "commitment" in e["mechanism_file"]]
    if folder is None or not committed:
        return {}
    files, names = bundle_files(folder), [entry["name"] for entry in committed]
    files.pop(AUDIT, None)
    expected = [f"{kind}/{name}.json" for kind in ("mechanisms", "sensitivity") for name in names]
    same("auditor bundle", "files", sorted(files), sorted([*expected, "openings.json"]))
    openings = read_json("openings.json", files["openings.json"])
    paths = {f"mechanisms/{name}.json": COMMITMENT | {"key": DIGEST} for name in names}
    shape = {"openings": paths, "release_id": str, "schema": str}
    check_shape("openings.json", openings, shape)
    named = {"schema": "dp-release/openings/v1", "release_id": record["release_id"]}
    agree("openings.json", openings, named)
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


def check_audit(
    record: Plain, folder: Path | None, ledger: Ledger | None, trust: Trust, verdict: Verdict
) -> None:
    """The audit record names this release and who paid, and is signed [48]."""
    if folder is None or not (folder / AUDIT).exists():
        return
    files = bundle_files(folder)
    if all("path" in entry["mechanism_file"] for entry in record["queries"]):
        same("auditor bundle", "files", sorted(files), [AUDIT])
    plain, sequence = read_json(AUDIT, files[AUDIT]), record["ledger"]["sequence"]
    check_shape(AUDIT, plain, AUDITED)
    named = {"schema": "dp-release/audit/v1", "release_id": record["release_id"]}
    agree(AUDIT, plain, named | {"sequence": sequence})
    signed, paid = sequence is not None, "with an entry that paid, and only then"
    need(signed == (plain["run"] is not None), AUDIT, "run", plain["run"], paid)
    need(signed == ("signature" in plain), AUDIT, "signature", sorted(plain), paid)
    counts = [each["count"] for each in plain["set_aside"] or ()]
    need(all(count >= 1 for count in counts), AUDIT, "set_aside", counts, "at least 1")
    need(plain["began"] <= plain["prepared"], AUDIT, "times", plain["began"], "before prepared")
    keys = set(trust.keys)
    if ledger is not None:
        keys = ledger.every_key
        same(AUDIT, "run", plain["run"], ledger.entries[sequence].get("run"))
    if signed and keys:
        message, signature = canonical(plain | {"signature": ""}), decode(AUDIT, plain["signature"])
        own = any(is_signed(key.key, message, signature) for key in keys)
        need(own, AUDIT, "signature", "another", "of a known key")
        verdict.tested.append("audit.json is of this release and signed; what it says is not seen")


def check_sensitivity(name: str, files: dict[str, bytes], mechanism: Plain, spec: Spec) -> None:
    """The sensitivity record says what the mechanism file says (6.2)."""
    file = f"sensitivity/{name}.json"
    own = read_json(file, files[file])
    distances, stated = None, mechanism.get("sensitivity")
    if mechanism["mechanism"] != "modular":
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
    same(file, "sensitivity", {"apart": None} | own, expected)


# ---- The whole verification (8) ----------------------------------------------------------------


def verify(public: Path, auditor: Path | None, trust: Trust) -> Verdict:
    """Check a release; what cannot be read is in the verdict."""
    verdict, files = Verdict(), bundle_files(public)
    sums = check_sums(files)
    verdict.tested.append(f"the SHA-256 of {len(sums)} files")
    record = read_json("release.json", files["release.json"])
    check_shape("release.json", record, RECORD)
    named = {"schema": "dp-release/release/v1", "kind": "RELEASE"}
    agree("release.json", record, named | {"release_id": public.resolve().name})
    check_files_of(record, sums)
    ledger = check_provenance(files, record, sums, trust, verdict)
    if ledger is not None and (name := record["release_id"]) in ledger.revised:
        verdict.tested.append(f"the ledger: revised, {ledger.revised[name]} takes its place")
    spec = Spec(read_json("spec.json", files["spec.json"]))
    check_record(record, spec)
    check_expressions(record, spec, verdict)
    verdict.proved.append("release.json says what the spec says")
    verdict.proved.append("every condition looks at one row of declared columns at a time")
    if auditor is not None and not any((auditor / name).exists() for name in OF_AUDITOR):
        auditor = auditor / record["release_id"]
    check_audit(record, auditor, ledger, trust, verdict)
    charged = read_queries(files, record, spec, open_auditor(record, auditor, spec), verdict)
    if len(charged) < len(spec.published):
        return verdict
    whole = check_profiles(files, record, spec, charged, verdict)
    if check_total(record, spec, charged, whole):
        verdict.proved.append("the charges follow from the spec, and their total keeps its cap")
    else:
        verdict.missing.append("the total: a profile that is not recomputed here")
    if ledger is not None:
        verdict.missing += unproved_of_scope(ledger, record, spec, whole)
    return verdict


def read_keys(words: list[str], kind: bytes) -> tuple[Key, ...]:
    """Each key is its text, or the file that holds it."""
    texts = (Path(word).read_text("utf-8") if Path(word).is_file() else word for word in words)
    return tuple(read_key(text, kind) for text in texts)


FORMLESS = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError),
    *(TypeError, ValueError, OSError, StopIteration),
)


def main(arguments: list[str]) -> int:
    """The command line; gives the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("public", type=Path)
    parser.add_argument("--auditor", type=Path)
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--trust", action="append", default=[])
    parser.add_argument("--witness", action="append", default=[])
    parser.add_argument("--require", choices=EVIDENCE, default="signed")
    options = parser.parse_args(arguments)
    try:
        curators, witnesses = read_keys(options.trust, CURATOR), read_keys(options.witness, WITNESS)
        trust = Trust(curators, witnesses, options.ledger, options.require)
        verdict = verify(options.public, options.auditor, trust)
    except RefusedError as error:
        sys.stdout.write(f"refused: {error}\n")
        return 1
    except FORMLESS as error:
        sys.stdout.write(f"refused: a file is not of its form: {type(error).__name__}: {error}\n")
        return 1
    lists = {"proved": verdict.proved, "tested": verdict.tested, "not read": verdict.missing}
    for word, lines in (*lists.items(), ("not read", NEVER_READ)):
        sys.stdout.writelines(f"{word}: {line}\n" for line in lines)
    return 3 if verdict.missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
