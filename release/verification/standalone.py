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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import MAX_EMAX, ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import accumulate, chain, islice, pairwise, permutations, product
from itertools import combinations_with_replacement as multisets
from math import ceil, comb, gcd, isqrt, lcm, prod
from operator import getitem, mul
from pathlib import Path
from typing import Any, NamedTuple

Plain = dict[str, Any]
Vector = tuple[int, ...]

NEVER_READ = (
    "the tables (Parquet): their hashes are compared, their keys and answers are not opened; so "
    "neither are the numbers of areas, and of keys that stand in a file",
    "spec.yaml: this file reads spec.json, and cannot compare it with the YAML",
    "report.html, datapackage.json and registry.yaml: their hashes are compared, no more",
    "whether the trees of conditions are what their SQL says, and their patterns; accuracy, "
    "expected loss and ε between any two answers; rules of a spec that no figure rests on",
    "lower bounds of other classes than noise on the integers; constraints on modular noise; that "
    "a share or target claims no more than needed; the estimates of tabulations, and a guarantee "
    "of one among others; residuals; stores",
)

PAGE = "what docs/design/format.md says"


class RefusedError(Exception):
    """A check failed: the file, the check, the value and what was expected."""


class UsageError(Exception):
    """What was given on the command line is no bundle, ledger or key."""


def need(holds: object, file: str, at: str, value: object = "", expected: object = PAGE) -> None:
    """Refuse if a condition does not hold."""
    if not holds:
        message = f"found {str(value)[:300] or 'another'}, expected {str(expected)[:300]}"
        raise RefusedError(f"{file}: {at}: {message}")


def same(file: str, check: str, value: object, expected: object) -> None:
    """Refuse values that differ; JSON tells ``true`` from 1, so types are compared too."""
    equal = type(value) is type(expected) and value == expected
    need(equal, file, check, repr(value), repr(expected))


def agree(file: str, plain: Plain, expected: Plain, at: str = "") -> None:
    """Refuse an object of which a field, ``a`` or ``a.b``, differs from what is expected."""
    for name, value in expected.items():
        same(file, f"{at}{name}", reduce(getitem, name.split("."), plain), value)


# ---- The forms of all files ---------------------------------------------------------------------

# A form has a name and fields, ``name:form``, or ``name?:form`` if the field may be absent; names
# before a colon share their form, and a name without one brings in all fields of that form. Other
# fields may not stand. ``a*`` is a list of a, ``a>b`` an object with names of the form a and values
# of the form b, ``a|b`` one of both, ``1..9`` an integer, ``/…`` a text that matches this pattern,
# and a word in small letters that very text. ``A = b`` is another name of b.
FORMS = r"""
ANY = /(?s).*; TEXT = /(?s).+; NAME = /[a-z][a-z0-9_]{0,62}; ID = /[a-z0-9][a-z0-9._-]{0,99}
COLUMN = /[^#\0-\x1f][^\0-\x1f]*; DIGITS = /[0-9]{1,40}([./][0-9]{1,40})?; HEX = /[0-9a-f]{32}
EXACT = /(?=.{1,400}\Z)[0-9]+(\.[0-9]+|/[1-9][0-9]*)?; WHOLE = /(?=.{1,400}\Z)(0|[1-9][0-9]*)
DIGEST = /[0-9a-f]{64}; HASHED = /sha256:[0-9a-f]{64}; COMMITMENT = /hmac-sha256:[0-9a-f]{64}
BASE64 = /[A-Za-z0-9+/=]{88}; PATH = /[A-Za-z0-9_][A-Za-z0-9_./-]*; VERSION = /[0-9A-Za-z.+]{1,40}
REASON = /[^\0-\x1f\x7f]{1,300}; PERSON = /[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}|\?
INSTANT = /[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z; COUNT = 1..1000000
Text = TEXT|int; Number = DIGITS|int; Label = str|int; Range range:int*; Listed file:str
Type = boolean|integer|number|string|date|timestamp; Definition = pure|probabilistic|approximate
Categories = Label*|Range; Keys = Label*|Range|Listed; Joined table:str; Derived type:Type sql:str
About id:ID title,curator,contact,purpose,period,license:Text
Table path:str columns:COLUMN>Type relation?,contract?:str join?:Joined derive?:COLUMN>Derived
Privacy unit:str neighbors:replace_one|add_remove|attribute max_rows_per_unit:COUNT fixed?:str*
    max_cells_per_unit?:COUNT attribute?:str replacement?:observed|domain
Budget scope:ID epsilon,delta:Number slot?:ID composition?:basic|pld
Engine backend?:duckdb|spark cluster?:inside
Guarantee definition:Definition epsilon,delta?:Number fallback?:approximate least?:epsilon|delta
Hierarchy file:str levels:str*; Grouping of:str classes:ANY>Categories; Margin level:str margin:str*
Known Margin file:str; Impossible impossible:COLUMN>Categories; Constraint = Known|Impossible
Pinned Margin share:Number; Strategy noise?:str tables?:Pinned*
Tabulation name:NAME title?,units?:Text table,where?:str hierarchy:Hierarchy guarantee?:Guarantee
    attributes?:COLUMN>Categories groupings?:COLUMN>Grouping publish:COLUMN>str**
    importance?:COLUMN>Number constraints?:Constraint* strategy?:Strategy
Spec spec:dp-release/spec/v1 release:About tables:NAME>Table privacy:Privacy budget:Budget
    engine?:Engine keys?:COLUMN>Keys queries?:object* acceptance?:ACCEPTANCE*
    tabulations?:Tabulation*
Vector = int|int*; Changes declared:Vector*; Costs table:Number*
Query name:NAME kind,table,where?,mechanism?:str title?,units?:Text by,constraints?:str*
    max_rows_per_unit?:COUNT guarantee?:Guarantee target?:TARGET share?:Number
    sensitivity?:empirical|global|Changes loss?:error_rate|absolute|squared|noise_squared|Costs
    parameters?:NAME>Number prior?:Number* objective?:mean|worst_case
Ends min,max:int; Bins low,high:int count:COUNT; Grid low,high,step:int scale:Number; Nothing
Cyclic cyclic:COUNT; Nominal nominal:str*; Ordered ordered:Ends; Integers integers:Nothing
Binned bins:Bins; Domain = Cyclic|Nominal|Ordered
Noisy Query of:str noise?:on_statistic|on_answer clamp?:int*; Count Query of?:str
    domain:Ordered|Integers; Mode Noisy domain:Domain count?:units|rows weight?:str
Top Query of,noise?:str domain:Domain count?:units|rows k:1..50 counts?,histogram?:bool
    cell_size?:int; Median Noisy bins:Bins; Min Median rank?:COUNT; Max Min
In_bins Median values?:int*; On_grid Noisy grid:Grid; Sum = In_bins|On_grid; Mean = In_bins|On_grid
Shares Query of,noise?:str at:Number* clamp?:int* cell_size?:int; Shares_in_bins Shares bins:Bins
Shares_of_points Shares domain:Ordered; Quantiles = Shares_in_bins|Shares_of_points
Per_unit Query of:str domain:Domain; Tuple Query of:str*; Sql Query sql:str
    domain:Cyclic|Ordered|Binned
Figures epsilon,delta:EXACT; Claim Figures definition:Definition; Committed commitment:COMMITMENT
File path:str sha256:DIGEST; Output File rows:int; Declared Margin output:Output
Charged Claim cells:int charge:Figures output:Output
Entry Charged name,kind,mechanism:str by:str* domain:object parallel:bool
    sensitivity_source:empirical|global|declared guarantee_kind:instance-specific|worst-case
    mechanism_file:File|Committed
Level level:str areas:int margins:str** output:Output
Measured Charged Margin name:str mechanism_file:File
Tabulated name,table:str noise:geometric|gaussian objective:EXACT levels:Level* measured:Measured*
    declared:Declared*
Relation unit,neighbors,adjacency_text,enforced_by:str max_rows_per_unit:int fixed:str*
Released Claim kind:str; Expression place:str tree:object
Composition Figures rule:str step:EXACT|null; Sampling source,method:str seeded:bool
Account scope:str sequence:int|null; Extra = fast|flows|postgresql|spark
Environment extras:Extra* sha256:DIGEST
Software dp_release,python,duckdb,highs:VERSION source:DIGEST environment:Environment|null
Record schema,release_id,kind,published,title,curator,contact,purpose,period,license:str
    privacy:Relation guarantee:Released expressions?:Expression* queries:Entry*
    tabulations?:Tabulated* composition:Composition sampling:Sampling ledger:Account
    invariants,post_processing,withheld,limits:str* software:Software
Call call:str of:object*; Cast cast:Type of:object; Tail period:int ratio:WHOLE
Noise low:int lengths:int* weights:WHOLE* left,right:Tail|null
Profile step:EXACT values:WHOLE* patterns:int**
Mechanism schema,query,mechanism:str guarantee:Claim profile?:Profile
Recomputed delta_probabilistic,delta_approximate:EXACT epsilon_everywhere:str
Accuracy p_exact,mean_absolute,p_within_1:EXACT; Multiplier distance:int prices:WHOLE*
Design method,loss,solver:str objective,bounded_loss,lower_bound,gap:EXACT bound_of:BOUNDED
    bound:proved|solver notes:str* multipliers:Multiplier*
On_answer Mechanism group:int* total:WHOLE directed:bool recomputed:Recomputed accuracy:Accuracy
    design:Design
Modular On_answer weights:WHOLE* sensitivity:int**; Channel On_answer rows:WHOLE** pairs:int**
Integer On_answer noise:Noise low_end,high_end,distances:int**
Spread Mechanism spread:int; Two_categories Spread ratio:WHOLE
Permute_and_flip Two_categories candidates:int; Exponential_mechanism Permute_and_flip
Gap_table Spread categories,cap:int weights:WHOLE**; Noisy_sums Spread sums:int noise:Noise
Joint_quantiles Permute_and_flip shares:EXACT* sublevels:int
Quantile_tree Permute_and_flip shares:EXACT* rows:int replaced:bool block:COUNT
Top_canonical Two_categories categories,members,touched,weight:int replaced:bool
Top_peeled Top_canonical; Top_histogram Top_canonical counts,histogram:bool
Signature keyid:DIGEST sig:str; Envelope payload,payloadType:str signatures:Signature*
Period Figures every:day|month|year; Curve step:EXACT values:WHOLE*
Times name:ID times:1..100000; Stated_slot Times Figures declared?:bool
Curved_slot Times profile:Curve
Slot = Stated_slot|Curved_slot
Cap Figures scope:str period?:Period|null rule?:basic|pld|renyi_filter order?:int cuts?:EXACT
    planned?:Slot*
Dated seq:int prev:HASHED date,kind:str; Named Dated release_id:str; Store Dated uri:str
Genesis Dated origin:str scopes:Cap* keys:str*; Policy Dated cap:Cap
Key Dated action:add|retire key,signature:str; Commit Named attestation:HASHED
Reserve Named Figures scope,slot?:str run?:HEX moment?,cut?:EXACT; Withdraw Named
Abort Named drawn:bool reason?:refused|storage|interrupted|internal|cut-off|abandoned
Skip Named reason:REASON; Revise Skip by:str
Opening Committed key:DIGEST; Openings openings:str>Opening release_id,schema:str
Inputs table:str files:Opening*; Put_aside table,rule,column:str count:int
Left_out of,words,noun,example:str count,whole:int
Audited schema,release_id:str sequence:int|null began,prepared:INSTANT run:HEX|null
    actor,approver?:PERSON inputs:Inputs* set_aside:Put_aside*|null left_out:Left_out*|null
    signature?:BASE64
"""
ALIASES = {
    "BOUNDED": "/every mechanism|modular noise|noise on the integers",
    "TARGET": r"/ *(error_rate|absolute|squared) *<= *\S+ *",
    "ACCEPTANCE": "/[^:]+: *(p95|mean_error|error_rate|absolute|squared) *<= *[0-9]{1,40}"
    "([./][0-9]{1,40})? *",
}
FIELDS: dict[str, dict[str, str]] = {}
for form_text in re.split("; |\n", re.sub("\n +", " ", FORMS.strip())):
    form_name, *words = form_text.split()
    if words[:1] == ["="]:
        ALIASES[form_name] = words[1]
        continue
    FIELDS[form_name] = {}
    for field_names, _, field_form in (word.partition(":") for word in words):
        shared = dict.fromkeys(field_names.split(","), field_form)
        FIELDS[form_name] |= shared if field_form else FIELDS[field_names]
TYPES = {"str": str, "int": int, "bool": bool, "null": type(None), "object": dict}


def misfit(value: Any, form: str, at: str = "") -> str:
    """Where a value is not of a form, and what stands there; empty if it is of that form."""
    form = wanted = ALIASES.get(form, form)
    names, _, inner = form.partition(">")
    right: object = value == form
    parts: Any = ()
    if form.startswith("/"):
        right = type(value) is str and re.fullmatch(form[1:], value)
    elif "|" in form:
        right = not all(misfit(value, each) for each in form.split("|"))
    elif inner:
        right = type(value) is dict and not any(misfit(name, names) for name in value)
        parts = right and ((value[name], inner, f"{at}.{name}") for name in value)
    elif form.endswith("*"):
        right = type(value) is list
        parts = right and ((item, form[:-1], f"{at}[{place}]") for place, item in enumerate(value))
    elif form in FIELDS:
        fields = {name.removesuffix("?"): each for name, each in FIELDS[form].items()}
        needed, wanted = FIELDS[form].keys() & fields.keys(), f"the fields {sorted(fields)}"
        right = type(value) is dict and needed <= value.keys() <= fields.keys()
        parts = right and ((value[n], fields[n], f"{at}.{n}".strip(".")) for n in value)
    elif form in TYPES:
        right = type(value) is TYPES[form]
    elif ".." in form:
        low, high = map(int, form.split(".."))
        right = type(value) is int and low <= value <= high
    if not right:
        shown = sorted(value) if type(value) is dict else repr(value)
        return f"{at}: found {str(shown)[:300]}, expected {wanted[:300]}"
    return next(filter(None, (misfit(*part) for part in parts)), "")


def check_form(file: str, value: Any, form: str, at: str = "") -> None:
    """Refuse a value that is not of a form."""
    if wrong := misfit(value, form, at):
        raise RefusedError(f"{file}: {wrong}")


# ---- Canonical JSON, exact numbers, e^ε, digests and dates (1) ----------------------------------

SCALE = 10**40
UNIT = 2**64


def canonical(value: Any) -> bytes:
    """RFC 8785 for objects, lists, strings, booleans, null and integers."""

    def ordered(node: Any) -> Any:
        if isinstance(node, dict):
            keys = sorted(node, key=lambda key: str(key).encode("utf-16-be"))
            return {key: ordered(node[key]) for key in keys}
        return list(map(ordered, node)) if isinstance(node, list) else node

    return json.dumps(ordered(value), ensure_ascii=False, separators=(",", ":")).encode()


def read_json(file: str, data: bytes, form: str = "object") -> Plain:
    """One object in canonical form; a repeated key cannot serialise to its bytes."""

    def integer(text: str) -> int:
        need(re.fullmatch("-?[0-9]{1,16}", text), file, "number", text)
        need(abs(int(text)) < 2**53, file, "number", text)
        return int(text)

    try:
        plain = json.loads(data, parse_int=integer, parse_float=integer, parse_constant=integer)
        need(canonical(plain) == data, file, "JSON", "another form", "canonical JSON")
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{file}: JSON: {error}") from error
    check_form(file, plain, form)
    return dict(plain)


def sha(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


def bundle_files(folder: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """The files of a bundle that are read, and all digests; no links, no nested folders [1]."""
    files, sums, held = dict[str, bytes](), dict[str, str](), 0
    need(folder.is_dir(), str(folder), "folder", "none", "a bundle")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        right = path.is_file() and path.stat().st_size <= 2**30
        if path.is_dir():
            right = path.parent == folder and any(path.iterdir())
        need(right and not path.is_symlink(), name, "file set", "another", "files, in one folder")
        if path.is_file():
            is_read = path.suffix in ("", ".json", ".proof")
            held += path.stat().st_size * is_read
            need(held <= 2**30, name, "size", held, "at most 2^30 bytes that are read")
            if is_read:
                files[name] = path.read_bytes()
                sums[name] = sha(files[name]).hex()
            else:
                with path.open("rb") as data:
                    sums[name] = hashlib.file_digest(data, "sha256").hexdigest()
    return files, sums


def read_file(path: Path, name: str) -> bytes:
    """The bytes of a plain file; a pipe would have no end."""
    plain = path.is_file() and path.stat().st_size <= 2**30
    need(plain, name, "file", "none or another", "a plain file of at most 2^30 bytes")
    return path.read_bytes()


@lru_cache(maxsize=40_000, typed=True)
def number(text: Any) -> Fraction:
    """The value of an exact number; a spec may hold an integer in its place."""
    need(not misfit(text, "EXACT") or (type(text) is int and text >= 0), "file", "number", text)
    return Fraction(text)


def numbers(plain: Plain) -> tuple[Fraction, Fraction]:
    """The ε and the δ of an object."""
    return number(plain["epsilon"]), number(plain["delta"])


def exact(value: Fraction) -> str:
    """``exact(x)`` of 1.2."""
    places = value.denominator.bit_length()
    return str(value) if 10**places % value.denominator else up(value, places)


def up(value: Fraction, places: int) -> str:
    """``up(x, p)`` of 1.2."""
    digits = str(ceil(value * 10**places)).rjust(places + 1, "0")
    cut = len(digits) - places
    return f"{digits[:cut]}.{digits[cut:]}".rstrip("0").rstrip(".")


def is_date(text: Any) -> bool:
    """A day of the Gregorian calendar (1.5)."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == str(text)
    except (TypeError, ValueError):
        return False


@lru_cache(maxsize=40_000)
def floor_of_e(value: Fraction) -> int:
    """The floor of 10^40 · e^value."""
    work = Context(prec=140, rounding=ROUND_HALF_EVEN)
    ratio = work.divide(Decimal(value.numerator), Decimal(value.denominator))
    return int(work.multiply(work.exp(ratio), Decimal(SCALE)))


def below_e(value: Fraction) -> int:
    """10^40 · r(ε): at most 10^40 · e^ε."""
    return max(SCALE, floor_of_e(value) - 1)


def above_e(value: Fraction) -> int:
    """10^40 · r̄(ε): more than 10^40 · e^ε."""
    # e to a rational other than 0 is irrational, so the ceiling is the next integer.
    return floor_of_e(value) + (2 if value else 1)


# ---- The spec (3), and what follows from it (4) -------------------------------------------------

STATISTICS = ("sum", "mean", "min", "max", "median")
KINDS = ("count", "mode", "top", *STATISTICS, "quantiles", "per_unit", "tuple", "sql")
SELECTIONS = ("permute_and_flip", "exponential_mechanism")
IN_PROPORTION = (*SELECTIONS, "joint_quantiles", "quantile_tree", "top_histogram")
LINE_LOSSES = ("error_rate", "absolute", "squared")
OF_PAPERS = ("sadeghi_count", "geng_zero_epsilon", "qin_wasserstein", "qin_relaxed")
NEED_ORDER = ("integer", "geometric_clamped", "gaussian_clamped", "gumbel_clamped", *OF_PAPERS)
NEED_ROWS = ("channel", "geometric_truncated", "exponential")
NEED_NOTHING = ("geometric_modular", "gaussian_modular", "randomised_response", "data_independent")


def rule(holds: object, at: str, value: object) -> None:
    """Refuse a spec that breaks a rule."""
    need(holds, "spec.json", at, value, "what the rules of section 3 allow")


def without_null(value: Any) -> Any:
    """The value without fields that are null: they say what absent ones say (3.1)."""
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return list(map(without_null, value)) if isinstance(value, list) else value


def domain_of(plain: Plain) -> tuple[int, str]:
    """The number of answers of one part (3.8), and their topology."""
    size, topology = 0, "ordered"
    match plain:
        case {"ordered": {"min": low, "max": high}}:
            size = high - low + 1
        case {"integers": _}:
            size = 2**53 - 1
        case {"bins": {"low": low, "high": high, "count": size}}:
            rule(size <= high - low, "bins", plain)
        case {"grid": {"low": low, "high": high, "step": step}}:
            rule(step >= 1 and (high - low) % step == 0, "grid", plain)
            size = (high - low) // step + 1
        case {"cyclic": size}:
            topology = "cyclic"
        case {"nominal": labels}:
            size, topology = len(set(labels)), "nominal"
    rule(type(size) is int and size >= 2, "domain", plain)
    return size, topology


def members(listed: Any) -> list[str]:
    """The keys or categories of a list or a range, each once."""
    if isinstance(listed, dict):
        first, last = listed["range"]
        rule(first <= last < first + 2**20, "range", listed)
        listed = range(first, last + 1)
    texts = list(map(str, listed))
    rule(len(set(texts)) == len(texts), "a list", listed)
    return texts


def limit(at: str, listed: Iterable[Any], most: int) -> None:
    """Lists and ranges have so many members in all, counted before any of them is built."""
    total = 0
    for each in listed:
        first, last = each.get("range", (1, 0)) if type(each) is dict else (1, len(each))
        total += max(0, last - first + 1)
    need(total <= most, "spec.json", at, f"{total} in all", f"at most {most}")


class Query:
    """A query of the spec, or a table of a tabulation, and what follows from it (4)."""

    def __init__(self, plain: Plain, spec: Spec) -> None:
        self.plain, self.spec, self.is_table = plain, spec, False
        self.name, self.kind, self.by = str(plain["name"]), plain["kind"], plain["by"]
        rule(self.kind in KINDS, f"{self.name}.kind", self.kind)
        check_form("spec.json", plain, self.kind.capitalize(), self.name)
        self.mechanism: str = plain.get("mechanism", "best")
        self.least = plain.get("guarantee", {}).get("least")
        self.is_composed = "share" in plain or ("target" in plain and self.least is None)
        self.is_published = self.is_composed or "guarantee" in plain
        self.parts = [spec.query(n) for n in plain["of"]] if self.kind == "tuple" else [self]
        self.domain: Plain = {"bins": plain["bins"]} if "bins" in plain else plain.get("domain", {})
        if "grid" in plain:
            self.domain = {"grid": plain["grid"] | {"scale": exact(number(plain["grid"]["scale"]))}}
        elif self.kind == "tuple":
            self.domain = {"tuple": [part.domain for part in self.parts]}
        domains = [domain_of(part.domain) for part in self.parts]
        self.group = [size for size, _ in domains]
        self.topologies = [topology for _, topology in domains]
        self.is_line = self.topologies == ["ordered"]
        loss = plain.get("loss", "error_rate")
        self.loss = str(plain.get("target", "")).partition("<=")[0].strip() or loss
        self.loss = "table" if isinstance(self.loss, dict) else self.loss
        source = plain.get("sensitivity")
        self.source = "declared" if isinstance(source, dict) else source
        noise = plain.get("noise", "on_statistic" if source == "global" else "on_answer")
        able = self.kind in ("mode", *STATISTICS) and self.is_published
        self.on_statistic = self.kind in ("top", "quantiles") or (able and noise == "on_statistic")
        right = source == "global" if self.on_statistic else source or not self.is_published
        rule(right, f"{self.name}.sensitivity", source)
        self.per_unit = all(part.kind == "per_unit" for part in self.parts)
        most = int(spec.privacy["max_rows_per_unit"])
        self.most_rows: int = 1 if self.per_unit else plain.get("max_rows_per_unit", most)
        rule(self.most_rows <= most, "max_rows_per_unit", self.most_rows)
        self.check_rules()

    def check_rules(self) -> None:
        """The rules of 3.9 on which sensitivity and charges rest."""
        plain, spec, by, at = self.plain, self.spec, self.by, self.name
        unit, kinds = spec.privacy["unit"], {part.kind for part in self.parts}
        columns = spec.columns.get(plain["table"], {})
        keys = [column in spec.keys and columns.get(column, "-")[0] in "sid" for column in by]
        alone = plain.get("max_rows_per_unit", 1) == 1 and "attribute" in spec.privacy
        rule(self.kind == "count" or prod(self.group) <= 10**6, f"{at}.domain", self.group)
        right = unit not in by and bool(columns)
        if "per_unit" in kinds:
            right = self.per_unit and by == [unit] and alone
        rule(right and all(keys) and len(set(by)) == len(by), f"{at}.by", by)
        for part in self.parts:
            rule(part.reads_its_columns(columns, unit), f"{part.name}.of", part.plain.get("of"))
            for name in ("table", "by", "max_rows_per_unit"):
                rule(part.plain.get(name) == plain.get(name), f"{at}: {part.name}", name)
        if self.kind == "tuple":
            once = 2 <= len(set(plain["of"])) == len(plain["of"]) <= 8
            rule(once and not kinds & {"tuple", "sql", "top", "quantiles"}, f"{at}.of", kinds)
        if not self.is_published:
            whole = [each["of"] for each in spec.listed if each["kind"] == "tuple"]
            said = {"sensitivity", "loss", "mechanism"} & plain.keys()
            rule(not said and at in chain(*whole), at, said)
            return
        # A guarantee that claims the least names the target that it meets (3.6).
        ways = [each for each in ("guarantee", "share", "target") if each in plain]
        rule(ways == (["guarantee", "target"] if self.least else ways[:1]), at, ways)
        empirical = self.source == "empirical"
        observed = "attribute" not in spec.privacy and spec.privacy.get("replacement") != "domain"
        right = not (self.is_composed and empirical)
        if self.kind == "sql":
            right = empirical and observed and not spec.fixed
        rule(right, f"{at}.sensitivity", self.source)
        if empirical and observed:
            read = {part.plain.get(name) for part in self.parts for name in ("of", "weight")}
            rule(not read & set(spec.fixed), f"{at}.of", read)
        line, single = self.is_line and self.loss in LINE_LOSSES, len(self.group) == 1
        fitting = {"best", "modular", *(NEED_NOTHING if single else ())}
        fitting |= {*(NEED_ORDER if line else ())}
        fitting |= {*(NEED_ROWS if line and self.group[0] <= 1000 else ())}
        rule(self.on_statistic or self.mechanism in fitting, f"{at}.mechanism", self.mechanism)

    def reads_its_columns(self, columns: Plain, unit: str) -> bool:
        """Whether a query reads columns of the types that its kind needs."""
        plain, read = self.plain, columns.get(self.plain.get("of", ""))
        if self.kind in ("count", "sql"):
            return plain.get("of") in (None, unit)
        if self.kind not in ("mode", "top", "per_unit"):
            return read == ("number" if "grid" in plain else "integer")
        weighed = columns.get(plain.get("weight", "")) == "integer" and "count" not in plain
        named = "string" if self.topologies[0] == "nominal" else "integer"
        return read == named and (weighed or "weight" not in plain)

    def claimed(self, entry: Plain) -> tuple[str, Fraction, Fraction]:
        """Definition, ε and δ that one cell claims (3.6)."""
        if self.is_composed:
            return entry["definition"], *numbers(entry)
        guarantee = {"delta": "0"} | self.plain["guarantee"]
        falls = "ordered" in self.topologies and not (len(self.group) == 1 and self.group[0] <= 64)
        definition = (falls and guarantee.get("fallback")) or guarantee["definition"]
        if self.least is not None:
            stated, most = number(entry[self.least]), number(guarantee[self.least])
            need(stated <= most, "release.json", f"{self.name}.{self.least}", stated)
            guarantee[self.least] = exact(stated)
        return definition, *numbers(guarantee)

    @cached_property
    def rows(self) -> int:
        """The bound r of 4.1: the rows of a unit that are read."""
        if self.source != "declared":
            return self.most_rows
        entries = self.plain["sensitivity"]["declared"]
        declared = self.both_ways([each] if isinstance(each, int) else each for each in entries)
        most, sizes = len(declared) + 1, range(1, self.most_rows + 1)
        # More changes than there are declared are not built.
        fit = sizes[: bisect_right(sizes, most, key=lambda n: prod(map(len, self.changes(n))))]
        rows = bisect_left(fit, True, key=lambda n: not self.sensitivity(n)[0] <= declared)
        rule(rows, "declared sensitivity", "no row fits")
        return rows

    def both_ways(self, vectors: Iterable[Iterable[int]]) -> set[Vector]:
        """Vectors and their negatives, modulo the group, without zero."""
        changes = set()
        for vector, sign in product(vectors, (1, -1)):
            changes.add(tuple(sign * c % n for c, n in zip(vector, self.group, strict=True)))
        return changes - {(0,) * len(self.group)}

    @property
    def clamp(self) -> tuple[int, int]:
        """The bounds of one row: ``clamp``, the ends of ``values``, or the range of the bins."""
        bins, values = self.plain.get("bins", {}), self.plain.get("values", [])
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
        (size,), one_way = self.group, self.spec.ways == 1
        if self.kind == "count":
            rise = min(1 if "of" in self.plain else rows, size - 1)
            return range(0 if one_way else -rise, rise + 1)
        if self.kind != "sum":
            return range(size)
        rise, fall = self.sum_of(rows)
        if not one_way:
            rise = fall = rise + fall
        bins, values, by = self.plain.get("bins", {}), self.plain.get("values", []), 1
        width = Fraction(bins["high"] - bins["low"], size) if bins else Fraction(0)
        width = width or Fraction(self.plain["grid"]["step"])
        if values:
            # All sums are multiples of the values' divisor, and so may both ends of the domain be.
            unit, low = gcd(*values) / width, bins["low"] / width
            whole = width.denominator == unit.denominator == low.denominator == 1
            by = int(unit) if whole and low % unit == (low + size - 1) % unit == 0 else 1
        down, up = (min(ceil(most / width), size - 1) for most in (fall, rise))
        return range(-(down // by * by), up + 1, by)

    def sensitivity(self, rows: int) -> tuple[set[Vector], set[int]]:
        """M and the distances A of 4.2."""
        distances = set(map(abs, self.parts[0].steps(rows))) - {0} if self.is_line else set()
        return self.both_ways(product(*self.changes(rows))), distances

    def changes(self, rows: int) -> list[set[int]]:
        """The changes of the code of each part, modulo its answers."""
        parts = zip(self.parts, self.group, strict=True)
        return [{change % size for change in part.steps(rows)} for part, size in parts]

    def cells_at_once(self, free: int) -> int:
        """The number k of 4.3, where ``free`` is F."""
        return min(free, self.rows, int(self.spec.privacy.get("max_cells_per_unit", free)))

    def cells_touched(self, free: int, cells: int) -> int:
        """The number t of 4.3; ``cells`` is the product of all key sets."""
        if self.per_unit or self.kind == "sql":
            return 1 if self.per_unit else cells
        # One unit that is replaced leaves k cells and enters k others.
        return min(free, self.cells_at_once(free) * self.spec.ways)

    def spread(self, rows: int, ways: int) -> tuple[list[Fraction], int, int, int]:
        """The shares of ranks, the weight and the reach of a unit, and the spread (4.7)."""
        plain, size = self.plain, self.group[0]
        units = plain.get("count", "rows" if "weight" in plain else "units") == "units"
        shares = [number(share) for share in plain.get("at", ["1/2"])]
        weight, touched = (1, min(rows, size)) if units else (rows, 1)
        if "weight" in plain:
            weight = rows * max(map(abs, self.clamp))
        base = lcm(*(share.denominator for share in shares))
        match self.kind:
            case "sum":
                more, less = self.sum_of(rows)
                spread = max(more, less) if ways == 1 else more + less
            case "mean":
                spread = rows * (self.clamp[1] - self.clamp[0]) * ways
            case "top":
                spread = weight * (touched if ways == 1 else min(2 * touched, size))
            case "mode":
                spread = weight * ways
            case "min" | "max":
                spread = 2 * rows
            case _ if ways == 2:
                spread = 2 * rows * base
            case _:
                ends = [Fraction(0), *shares, Fraction(1)]
                least = min(after - share for share, after in pairwise(ends))
                spread = 2 * rows * int(base - base * least)
        return shares, weight, touched, spread

    def families(self) -> tuple[str, ...]:
        """The families that may answer a query with noise on the statistic [30]."""
        plain = self.plain
        families: tuple[str, ...] = SELECTIONS
        two = self.kind == "mode" and self.rows == 1 and self.spec.ways == 2
        if self.kind in ("sum", "mean"):
            families = ("noisy_sums",)
        elif self.kind == "top":
            shown = plain.get("counts") or plain.get("histogram")
            families = ("top_histogram", *(() if shown else ("top_canonical", "top_peeled")))
        elif self.kind == "quantiles" and len(plain["at"]) > 1:
            families = ("joint_quantiles", "quantile_tree")
        elif two and ("weight" not in plain or self.clamp == (0, 1)):
            families += ("two_categories" if self.group[0] == 2 else "gap_table",)
        return tuple(each for each in families if self.mechanism in ("best", each))

    def times_charged(self, plain: Plain, touched: int, free: int) -> Fraction:
        """The v of 4.3: how often the ε of one cell is charged."""
        rows, ways, family = self.rows, self.spec.ways, plain["mechanism"]
        of_rows = self.kind == "count" and "of" not in self.plain and family == "integer"
        if touched == 1 or not (self.on_statistic or of_rows):
            return Fraction(touched)
        if self.on_statistic:
            spread = plain["spread"]
            alone, row = (self.spread(most, 1)[3] for most in (rows, 1))
        else:
            spread = max(last for _, last in plain["distances"])
            alone, row = min(rows, self.group[0] - 1), 1
        moved = Fraction(min(self.cells_at_once(free) * alone, rows * row) * ways, spread)
        # Whether a mechanism loses in proportion to what moves (4.3).
        epsilon, loses = number(plain["guarantee"]["epsilon"]), family in IN_PROPORTION
        if family in ("integer", "noisy_sums"):
            noise = Noise(family, plain["noise"], int(plain.get("total", 2**62)))
            ratio, below = noise.ratios[1], below_e(epsilon / spread)
            if family == "integer":
                loses = all(noise.pairs(sign).excess(below) == 0 for sign in (1, -1))
            elif ratio > 0:
                loses = noise.falls_by(ratio) and spread * loss_of(ratio) <= epsilon
        return moved if loses and moved < touched else Fraction(touched)

    def patterns(self, touched: int, free: int, spread: int | None) -> list[list[int]]:
        """By how much one unit moves the cells that it touches (4.3)."""
        if spread is not None or self.kind != "count" or "of" in self.plain or not self.is_line:
            far = max(self.sensitivity(self.rows)[1]) if spread is None and self.is_line else 0
            return [[far if spread is None else spread] * touched]
        rows, most = self.rows, self.group[0] - 1

        def partitions(total: int, most: int, parts: int) -> Iterator[Vector]:
            # The falling lists of so many positive integers at most, each up to ``most``.
            if total == 0:
                yield ()
            for first in range(min(total, most) if parts else 0, 0, -1):
                yield from ((first, *rest) for rest in partitions(total - first, first, parts - 1))

        # Beyond 60 it does not matter how many partitions there are.
        parts = list(islice(partitions(rows, rows, self.cells_at_once(free)), 61))
        moves = set(parts)
        if self.spec.ways == 2 and free > 1 and len(parts) <= 60:
            pairs = [a + b for a, b in product(parts, parts) if len(a) + len(b) <= free]
            moves = {tuple(sorted(pair, reverse=True)) for pair in pairs}
        if len(moves) > 60:
            return [[min(rows, most)] * touched]
        return sorted(map(list, {tuple(min(n, most) for n in each) for each in moves}))


class Spec:
    """The release spec, as ``spec.json`` has it, and its rules (3)."""

    def __init__(self, published: Plain) -> None:
        plain = self.plain = without_null(published)
        check_form("spec.json", plain, "Spec")
        self.privacy: Plain = plain["privacy"]
        # A unit is added or removed, or it is replaced.
        self.ways = 1 if self.privacy["neighbors"] == "add_remove" else 2
        self.fixed: list[str] = self.privacy.get("fixed", [])
        self.keys: Plain = plain.get("keys", {})
        limit("keys", self.keys.values(), 2**21)
        self.in_files = {c for c, of in self.keys.items() if isinstance(of, dict) and "file" in of}
        self.plain_columns, self.columns = dict[str, Plain](), dict[str, Plain]()
        self.check_columns()
        self.tabulations: list[Plain] = plain.get("tabulations", [])
        self.categories, self.queries = dict[str, dict[str, int]](), dict[str, Query]()
        self.listed: list[Plain] = plain.get("queries", [])
        names = [each["name"] for each in self.listed + self.tabulations]
        rule(names and len(set(names)) == len(names), "names", names)
        for tabulation in self.tabulations:
            self.check_tabulation(tabulation)
        self.published = [q for q in (self.query(p["name"]) for p in self.listed) if q.is_published]
        sources = {query.name: query.source for query in self.published}
        self.is_empirical = "empirical" in sources.values()
        composed = [query for query in self.published if query.is_composed]
        rule(not composed or not self.tabulations, "tabulations", "beside a share or a target")
        stated, whole = plain["budget"].get("composition"), bool(composed or self.tabulations)
        rule(not whole or stated != "basic", "budget", "basic")
        self.composes_exactly = whole or stated == "pld"
        # Of acceptance only the form is read here, and that it is about public facts.
        for entry in plain.get("acceptance", []):
            rule(sources.get(entry.rpartition(":")[0].strip()) != "empirical", "acceptance", entry)

    def check_columns(self) -> None:
        """Tables, their columns, and the columns that ``privacy`` and ``keys`` name."""
        unit, tables, computed = self.privacy["unit"], self.plain["tables"], set[str]()
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
            computed |= derived.keys()
        units = {table["columns"].get(unit) for table in tables.values()}
        rule(units in ({"string"}, {"integer"}), "privacy.unit", unit)
        every, named = set(chain(*self.columns.values())), {*self.fixed, *self.keys}
        rule(named <= every, "privacy.fixed, keys", sorted(named))
        attribute, relation = self.privacy.get("attribute"), self.privacy["neighbors"]
        rule((attribute is None) == (relation != "attribute"), "privacy.attribute", attribute)
        if attribute is not None:
            # It changes alone: what is derived from a column would change with that one.
            right = attribute in every - computed - {unit, *self.fixed}
            rule(right and "replacement" not in self.privacy, "privacy.attribute", attribute)

    def check_tabulation(self, plain: Plain) -> None:
        """The rules of 3.13 on which cells and charges rest."""
        at, levels, unit = plain["name"], plain["hierarchy"]["levels"], self.privacy["unit"]
        columns, rows = self.columns.get(plain["table"], {}), self.privacy["max_rows_per_unit"]
        rule("attribute" not in self.privacy and rows == 1, f"{at}: rows of a unit", rows)
        attributes, groupings = plain.get("attributes", {}), plain.get("groupings", {})
        stated = [grouping["classes"] for grouping in groupings.values()]
        stated += [each.get("impossible", {}) for each in plain.get("constraints", [])]
        limit(f"{at}: categories", chain(*(of.values() for of in (attributes, *stated))), 2**20)
        categories = {name: len(members(of)) for name, of in attributes.items()}
        right = all(0 < most <= 2**20 for most in accumulate(categories.values(), mul))
        rule(right, f"{at}: combinations", len(categories))
        read = [levels[-1], *attributes]
        keys = [columns.get(column, "-")[0] in "sid" for column in read]
        free = not set(self.fixed) & set(read) and unit not in (*read, *levels)
        rule(all(keys) and free, f"{at}: columns", read)
        names = [name.casefold() for name in (*levels, *attributes, *groupings)]
        rule(len(set(names)) == len(names), f"{at}: names", names)
        for name, grouping in groupings.items():
            classes = sorted(chain(*map(members, grouping["classes"].values())))
            whole = sorted(members(attributes.get(grouping["of"], [])))
            rule(classes == whole, f"{at}.groupings.{name}", "not each category once")
            categories[name] = len(grouping["classes"])
        self.categories[at] = categories
        for margin in chain(*plain["publish"].values()):
            of = [groupings[part]["of"] if part in groupings else part for part in margin]
            rule(set(of) <= attributes.keys() and len(set(of)) == len(of), f"{at}.publish", margin)

    def query(self, name: str) -> Query:
        """The query of a name; the parts of a tuple are read before it."""
        if name not in self.queries:
            named = [plain for plain in self.listed if plain["name"] == name]
            rule(named, "of", name)
            self.queries[name] = Query(named[0], self)
        return self.queries[name]

    def key_sizes(self, entries: list[Plain]) -> dict[str, int]:
        """The number of keys of each column; of a file it follows from the number of cells."""
        sizes = {c: len(members(keys)) for c, keys in self.keys.items() if c not in self.in_files}
        for entry in entries * len(self.in_files):
            unknown = [column for column in entry["by"] if column not in sizes]
            if len(unknown) == 1:
                rest = prod(sizes[column] for column in entry["by"] if column in sizes)
                sizes[unknown[0]] = entry["cells"] // rest
        for entry in entries:
            if all(column in sizes for column in entry["by"]):
                cells = prod(sizes[column] for column in entry["by"])
                same("release.json", f"{entry['name']}.cells", entry["cells"], cells)
        return sizes


# ---- The trees of conditions (3.12, 5.1.1) [13] -------------------------------------------------

# What each function takes and gives. Each argument is a letter: b, i, n, s, d and t for the types,
# and a capital for a constant. T is any type, N a number of either kind and D a date or timestamp,
# the same wherever it stands; K is a constant of the type T. What it takes is a regular expression.
FUNCTIONS = """
bbb*:b and or; b:b not; T:b is_null; TT:b = <> < <= > >=; TTT:b between; TKK*:b in; (bT)+T?:T case;
TT:T nullif; TT*:T coalesce greatest least; NN:N + - *; nn:n / power; ii:i // %; N:N negate abs;
N:i sign; n:n ceil floor sqrt ln log10 exp; nI?:n round; s:s lower upper trim ltrim rtrim;
s:i length; sii?:s substring; si:s left right; sss*:s ||; ss*:s concat;
ss:b starts_with ends_with contains; ss:i strpos; sS:s regexp_extract;
sS:b like ilike regexp_matches regexp_full_match; t:i hour minute second; St:t date_trunc;
D:i year quarter month week day isodow dayofweek dayofyear; SDD:i date_diff; iii:d make_date
"""
SIGNATURES: dict[str, str] = {}
for entry in FUNCTIONS.split(";"):
    signature, *function_names = entry.split()
    SIGNATURES |= dict.fromkeys(function_names, signature)
VARIABLES = {"T": "binsdt", "N": "in", "D": "dt"}
CASTS = {"bs", "is", "ns", "ds", "st", "in", "bi", "dt"}
TIMES = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
MOMENT = datetime.datetime.fromisoformat
CONSTANTS: dict[str, Callable[[Any], bool]] = {
    "boolean": lambda _: True,
    "integer": lambda value: str(int(value)) == value and -(2**63) <= int(value) < 2**63,
    "number": lambda value: repr(float(value)) == value and float(value) - float(value) == 0,
    "string": lambda value: "\0" not in value,
    "date": is_date,
    "timestamp": lambda text: str(MOMENT(text).replace(tzinfo=None)) == text,
}
Tree = tuple[str, int, int, set[str]]
COUNTED_TWICE = {"between": 0, "in": 0, "nullif": 0, "//": -1, "%": -1}


def read_tree(place: str, node: Any, columns: Plain, depth: int = 1) -> Tree:
    """The letter of a node's type, its number of nodes, how many texts it joins, its columns."""
    need(type(node) is dict and depth <= 64, place, "tree", depth, "at most 64 nodes in a row")
    if "call" not in node and "cast" not in node:
        ((kind, value),) = node.items()
        if kind == "column":
            need(value in columns, place, "column", value, sorted(columns))
            return columns[value][0], 1, 0, {value}
        right = type(value) is (bool if kind == "boolean" else str) and kind in CONSTANTS
        need(right and CONSTANTS[kind](value), place, "constant", node, "one in its one form")
        return kind[0].upper(), 1, 0, set()
    check_form(place, node, "Call" if "call" in node else "Cast")
    of = node["of"] if "call" in node else [node["of"]]
    parts = [read_tree(place, each, columns, depth + 1) for each in of]
    letters = "".join(part[0] for part in parts)
    nodes, joined = 1 + sum(part[1] for part in parts), sum(part[2] for part in parts)
    used = set(chain(*(part[3] for part in parts)))
    if "cast" in node:
        to = node["cast"][0]
        able = "".join(sorted(letters.lower() + to)) in CASTS and letters + to not in ("Sd", "St")
        need(able, place, "cast", letters + to, "one of the page")
        return to, nodes, joined, used
    name = node["call"]
    need(name in SIGNATURES, place, "call", name, "a function of the page")
    letter = result_of(SIGNATURES[name], letters)
    need(letter, place, f"arguments of {name}", letters, SIGNATURES[name])
    if name in ("date_trunc", "date_diff"):
        need(of[0]["string"] in TIMES, place, name, of[0], TIMES)
    if name in COUNTED_TWICE:
        nodes += parts[COUNTED_TWICE[name]][1]
    return letter, nodes, joined + len(parts) * (name in ("||", "concat")), used


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


# ---- Signatures (5.9): Ed25519 of RFC 8032, section 5.1 -----------------------------------------

FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, -1, FIELD) % FIELD
Point = tuple[int, int]


def point_at(data: bytes) -> Point:
    """The point of 32 bytes; ``ValueError`` if they are no point."""
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(CURVE * y * y + 1, -1, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    if (x * x - square) % FIELD:
        x = x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD
    if y >= FIELD or (x * x - square) % FIELD or (x == 0 and sign):
        raise ValueError("no point of the curve")
    return FIELD - x if x % 2 != sign else x, y


def multiple(scalar: int, point: Point, start: Point = (0, 1)) -> Point:
    """The point times the scalar, added to the start."""

    def add(p: Point, q: Point) -> Point:
        product = CURVE * p[0] * q[0] * p[1] * q[1]
        x = (p[0] * q[1] + q[0] * p[1]) * pow(1 + product, -1, FIELD)
        return x % FIELD, (p[1] * q[1] + p[0] * q[0]) * pow(1 - product, -1, FIELD) % FIELD

    while scalar:
        if scalar % 2:
            start = add(start, point)
        scalar, point = scalar // 2, add(point, point)
    return start


BASE_POINT = point_at((4 * pow(5, -1, FIELD) % FIELD).to_bytes(32, "little"))


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature verifies."""
    first, s = signature[:32], int.from_bytes(signature[32:], "little")
    hashed = int.from_bytes(hashlib.sha512(first + key + message).digest(), "little")
    try:
        right = multiple(hashed % ORDER, point_at(key), point_at(first))
    except ValueError:
        return False
    return len(signature) == 64 and s < ORDER and multiple(s, BASE_POINT) == right


CURATOR, WITNESS = b"\1", b"\4"


class Key(NamedTuple):
    """A public key of a curator or of a witness, with its name, and the first bytes of its hash."""

    name: str
    key: bytes
    kind: bytes
    hint: bytes


def decode(file: str, text: str) -> bytes:
    """Base64 in its one form."""
    data = base64.b64decode(text, validate=True)
    same(file, "base64", base64.b64encode(data).decode(), text)
    return data


def read_key(text: str, kind: bytes = CURATOR) -> Key:
    """A key from its text."""
    match = re.fullmatch(r"([!-*,-~]{1,200})\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text.strip())
    if match is None:
        # It may be the secret half, so it is not shown.
        raise UsageError("--trust, --witness: write name+hint+base64, or the file that holds it")
    data = decode("key", match[3])
    need(len(data) == 33 and data[:1] == kind, "key", "form", data[:1], f"{kind!r} and 32 bytes")
    hint = sha(match[1].encode() + b"\n" + data)[:4]
    same("key", "hint", match[2], hint.hex())
    return Key(match[1], data[1:], kind, hint)


Checkpoint = tuple[str, int, bytes, set[Key]]


def read_checkpoint(file: str, text: str, keys: Iterable[Key]) -> Checkpoint:
    """Origin, size and root of a checkpoint (7.4), and the known keys that signed it (7.8)."""
    lines = r"(([^\n]+)\n(0|[1-9][0-9]{0,8})\n([^\n]+)\n)\n((— [^ \n]+ [A-Za-z0-9+/=]+\n){1,100})"
    match = re.fullmatch(lines, text)
    if match is None:
        raise RefusedError(f"{file}: checkpoint: expected origin, size, root and signatures")
    by_hint, signers = {(key.name, key.hint): key for key in keys}, set()
    for _, name, encoded in (line.split(" ") for line in match[5].splitlines()):
        data, message = decode(file, encoded), match[1].encode()
        key, signature = by_hint.get((name, data[:4])), data[4:]
        if key is None:
            continue
        if key.kind == WITNESS:
            seconds, signature = int.from_bytes(signature[:8], "big"), signature[8:]
            message = f"cosignature/v1\ntime {seconds}\n".encode() + message
        need(is_signed(key.key, message, signature), file, "signature", f"a false one of {name}")
        signers.add(key)
    need(any(key.kind == CURATOR for key in signers), file, "checkpoint", "no known signature")
    return match[2], int(match[3]), decode(file, match[4]), signers


# ---- The ledger (7) -----------------------------------------------------------------------------

CHANGES = ("genesis", "policy", "key", "store")
OF_RELEASES = ("reserve", "commit", "abort", "withdraw", "skip", "revise")
RULES = {"basic": [], "pld": ["slot"], "renyi_filter": ["cut", "moment"]}
OF_A_DAY = {"day": 10, "month": 7, "year": 4}


def root_of(leaves: list[bytes]) -> bytes:
    """The root of the tree (7.5)."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << ((len(leaves) - 1).bit_length() - 1)  # the largest power of two below
    return sha(b"\1" + root_of(leaves[:k]) + root_of(leaves[k:]))


def root_by_path(hashed: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root to which an audit path leads."""
    need((size == 1) == (not path), "ledger.proof", "path", len(path), "one hash for each level")
    if not path:
        return hashed
    k = 1 << ((size - 1).bit_length() - 1)
    if index < k:
        return sha(b"\1" + root_by_path(hashed, index, k, path[:-1]) + path[-1])
    return sha(b"\1" + path[-1] + root_by_path(hashed, index - k, size - k, path[:-1]))


class Ledger:
    """The state after all entries, and what the checks of a release ask of them (7.3)."""

    def __init__(self, folder: Path) -> None:
        self.entries, self.leaves = list[Plain](), list[bytes]()
        self.keys = list[list[Key]]()  # those that are valid after each entry
        self.standing = list[Plain]()  # the reserves whose charges count, and their sums
        self.paid = defaultdict[tuple[str, str, str], Fraction](Fraction)
        self.caps, self.open = dict[str, Plain](), dict[str, Plain]()
        self.committed = dict[str, int]()
        self.said: dict[str, dict[str, str]] = {"withdraw": {}, "skip": {}, "revise": {}}
        names = sorted(p.name for p in folder.iterdir() if re.fullmatch(r"[0-9]{8}\.json", p.name))
        same("ledger", "files", names, [f"{n:08}.json" for n in range(len(names))])
        need(names, "ledger", "entries", "none", "one or more")
        for name in names:
            self.follow(read_file(folder / name, name), name)

    def follow(self, data: bytes, file: str) -> None:
        """Apply the next entry."""
        entry, before = read_json(file, data), self.entries[-1] if self.entries else {"date": ""}
        kind = entry["kind"]
        need(kind in (*CHANGES, *OF_RELEASES), file, "kind", kind)
        check_form(file, entry, kind.capitalize())
        expected = sha(canonical(before)).hex() if self.entries else "0" * 64
        agree(file, entry, {"seq": len(self.entries), "prev": f"sha256:{expected}"})
        in_order = is_date(entry["date"]) and entry["date"] >= before["date"]
        need(in_order, file, "date", entry["date"])
        same(file, "genesis first", kind == "genesis", not self.entries)
        keys = list(self.keys[-1]) if self.keys else list(map(read_key, entry["keys"]))
        if kind == "genesis":
            same(file, "keys", [key.name for key in keys], [entry["origin"]])
            scopes = [cap["scope"] for cap in entry["scopes"]]
            same(file, "scopes", sorted(scopes), sorted(set(scopes)))
        for cap in entry.get("scopes", [entry["cap"]] if kind == "policy" else []):
            self.set_cap(cap, file)
        if kind == "key":
            self.change_key(entry, file, keys)
        elif kind in OF_RELEASES:
            self.follow_release(entry, file)
        self.entries.append(entry)
        self.leaves.append(sha(b"\0" + data))
        self.keys.append(keys)

    def set_cap(self, cap: Plain, file: str) -> None:
        """Create a scope, or change the cap of one that adds charges up."""
        rule, old = cap.get("rule", "basic"), self.caps.get(cap["scope"], cap)
        kept = old == cap or rule == old.get("rule", "basic") == "basic"
        kept &= rule == "basic" or (cap.get("period") is None and number(cap["delta"]) < 1)
        need(kept, file, "policy", cap, "the rule of the scope; no period, and a delta below 1")
        if rule == "pld":
            names = [slot["name"] for slot in cap["planned"]]
            need(0 < len(names) == len(set(names)) <= 1000, file, "planned", names)
            for curve in (slot["profile"] for slot in cap["planned"] if "profile" in slot):
                falls = [PARTS, *map(int, curve["values"])]
                right = 1 < len(falls) <= LONGEST + 2 and falls == sorted(falls, reverse=True)
                need(right and 0 < number(curve["step"]) <= 100, file, "planned", curve)
        if rule == "renyi_filter":
            need(moment_cap(cap) >= 1, file, "filter", float(moment_cap(cap)), "at least 1")
        self.caps[cap["scope"]] = cap

    def change_key(self, entry: Plain, file: str, keys: list[Key]) -> None:
        """Add or retire a key, as a valid one signed."""
        key, retire = read_key(entry["key"]), entry["action"] == "retire"
        same(file, "key.name", key.name, self.entries[0]["origin"])
        need(retire or len(keys) < 16, file, "key", len(keys) + 1, "at most 16 valid at once")
        signers = [each for each in keys if not (retire and each == key)]
        need((key in keys) == retire and is_own(file, entry, signers), file, "key", entry["action"])
        keys.remove(key) if retire else keys.append(key)

    def follow_release(self, entry: Plain, file: str) -> None:
        """Reserve, commit, abort, withdraw, skip or revise."""
        name, kind, by = entry["release_id"], entry["kind"], entry.get("by", "")
        skipped, revised, public = self.said["skip"], self.said["revise"], self.public
        fits = {
            "reserve": name not in {*self.open, *self.committed, *skipped},
            **{"commit": name in self.open, "abort": name in self.open, "withdraw": name in public},
            "revise": name != by and {name, by} <= public - revised.keys(),
            "skip": name not in {each["release_id"] for each in self.standing} | skipped.keys(),
        }
        need(fits[kind], file, kind, name, "a release of which this can be said")
        if kind == "reserve":
            self.open[name] = entry
            self.standing.append(entry)
            self.pay(entry, 1)
            need(entry["scope"] in self.caps, file, "scope", entry["scope"])
            self.check_cap(entry, file)
        elif kind in ("commit", "abort"):
            reserve = self.open.pop(name)
            if kind == "commit":
                self.committed[name] = entry["seq"]
            elif not entry["drawn"]:
                self.standing.remove(reserve)
                self.pay(reserve, -1)
        else:
            self.said[kind][name] = by

    def pay(self, entry: Plain, sign: int) -> None:
        """Add a charge to what its scope has paid, in all and in each period, or take it off."""
        days = ["", *(entry["date"][:length] for length in OF_A_DAY.values())]
        for day, name in product(days, {"epsilon", "delta", "cut"} & entry.keys()):
            self.paid[entry["scope"], day, name] += sign * number(entry[name])

    def check_cap(self, entry: Plain, file: str) -> None:
        """What stands in the scope, with this entry, is within its cap (7.3, 7.9)."""
        cap = self.caps[entry["scope"]]
        rule, period = cap.get("rule", "basic"), cap.get("period")
        extra = sorted({"slot", "moment", "cut"} & entry.keys())
        same(file, "fields of the rule", extra, RULES[rule])
        standing = [each for each in self.standing if each["scope"] == entry["scope"]]
        if rule == "pld":
            slots = {slot["name"]: slot["times"] for slot in cap["planned"]}
            named = sum(each["slot"] == entry["slot"] for each in standing)
            need(named <= slots.get(entry["slot"], 0), file, "slot", entry["slot"], "a free one")
        elif rule == "renyi_filter":
            moments, cuts = Fraction(1), self.paid[cap["scope"], "", "cut"]
            for each in standing:
                moments = Fraction(ceil(moments * number(each["moment"]) * 10**30), 10**30)
            need(number(entry["moment"]) >= 1 and moments <= moment_cap(cap), file, "moment")
            need(cuts <= number(cap["cuts"]), file, "cut", entry["cut"], f"{cap['cuts']} in all")
        else:
            bounds = [("", cap)]
            bounds += [(entry["date"][: OF_A_DAY[period["every"]]], period)] if period else []
            for (day, bound), name in product(bounds, ("epsilon", "delta")):
                paid = self.paid[cap["scope"], day, name]
                need(paid <= number(bound[name]), file, f"cap {day}", name, bound[name])

    @property
    def public(self) -> set[str]:
        """The releases that are committed and not withdrawn."""
        return self.committed.keys() - self.said["withdraw"]

    def check_checkpoint(self, file: str, text: str, witnesses: Iterable[Key]) -> Checkpoint:
        """A checkpoint that is of this ledger (7.6)."""
        point = read_checkpoint(file, text, {*chain(*self.keys), *witnesses})
        origin, size, root, signers = point
        need(1 <= size <= len(self.entries), file, "size", size, len(self.entries))
        need(signers & set(self.keys[size - 1]), file, "signature", "none of a key valid then")
        same(file, "origin", origin, self.entries[0]["origin"])
        same(file, "root", root, root_of(self.leaves[:size]))
        return point


def is_own(file: str, plain: Plain, keys: Iterable[Key]) -> bool:
    """Whether one of the keys signed an object, whose field ``signature`` was empty then."""
    message, signature = canonical(plain | {"signature": ""}), decode(file, plain["signature"])
    return any(is_signed(key.key, message, signature) for key in keys)


def moment_cap(cap: Plain) -> Fraction:
    """The bound B of 7.9 on the product of moments."""
    order, rest, top = cap["order"], number(cap["delta"]) - number(cap["cuts"]), cap["epsilon"]
    right = 2 <= order <= 256 and rest > 0 and number(top) <= 100
    need(right, "ledger", "order, cuts", (order, rest, top), "2 to 256, > 0, at most 100")
    grown = Fraction(below_e(number(top)) * order, SCALE * (order - 1))
    return Fraction(rest * order * grown ** (order - 1))


# ---- Privacy of pairs of distributions (4.5), and noise on the integers (5.3) -------------------

FAR = 256


class Pairs:
    """The outcomes of two distributions P and Q, by falling P/Q, with sums from the front."""

    def __init__(self, of: dict[tuple[int, int], int], total: int) -> None:
        # How often (p, q) occurs; all masses are over the total.
        self.total, self.pairs = total, [pair for pair in of if pair[0] > 0]
        # Floats would tie ratios that differ; a ratio to more bits than two masses have would not.
        width = max((max(pair).bit_length() for pair in self.pairs), default=1) * 2 + 2
        key = {(p, q): (p << width) // q if q else 1 << (2 * width) for p, q in self.pairs}
        self.pairs.sort(key=key.__getitem__, reverse=True)
        self.above = [0, *accumulate(p * of[p, q] for p, q in self.pairs)]
        self.below = [0, *accumulate(q * of[p, q] for p, q in self.pairs)]
        self.finite = next((pair for pair in self.pairs if pair[1]), (0, 1))

    def count(self, ratio: int) -> int:
        """How many of the pairs have p > ratio · q, with the ratio over 10^40."""
        return bisect_left(self.pairs, True, key=lambda pair: pair[0] * SCALE <= ratio * pair[1])

    def excess(self, ratio: int) -> int:
        """The δ of ``approximate``, times 10^40 · total."""
        place = self.count(ratio)
        return self.above[place] * SCALE - ratio * self.below[place]


class Noise:
    """Runs of equal weight in a window, and tails of repeated blocks that fall by ρ."""

    def __init__(self, file: str, plain: Plain, total: int) -> None:
        self.low, self.total, tails = plain["low"], total, (plain["left"], plain["right"])
        self.lengths: list[int] = plain["lengths"]
        self.weights = list(map(int, plain["weights"]))
        self.high = self.low + sum(self.lengths) - 1
        self.periods = p, q = [tail["period"] if tail else 0 for tail in tails]
        self.ratios = [int(tail["ratio"]) if tail else 0 for tail in tails]
        window = sum(n * w for n, w in zip(self.lengths, self.weights, strict=True))
        right = window == total and min(self.lengths) >= 1 and max(-self.low, self.high) <= 2**62
        need(right, file, "noise", "a window", "runs within ±2^62 that have the total")
        need(all(a != b for a, b in pairwise(self.weights)), file, "noise", "runs of equal weight")
        for tail in filter(None, tails):
            need(tail["period"] >= 1 and 1 <= int(tail["ratio"]) < UNIT, file, "noise", tail)
        # A tail begins on its side of 0.
        right = (not q or self.high - q >= -1) and (not p or self.low + p <= 1)
        need(right and p + q <= self.high - self.low + 1, file, "noise", "periods", (p, q))

    def blocks(self) -> Iterator[tuple[int, int, int, int]]:
        """The runs of the window, cut at 0 and at the tails: first, last, weight and side."""
        cuts = (self.low + self.periods[0], self.high - self.periods[1] + 1)
        start = self.low
        for length, weight in zip(self.lengths, self.weights, strict=True):
            inner = sorted(cut for cut in {0, *cuts} if start < cut < start + length)
            for first, after in pairwise([start, *inner, start + length]):
                yield first, after - 1, weight, -1 if first < cuts[0] else int(first >= cuts[1])
            start += length

    def masses(self, most: int) -> tuple[list[int], list[int]]:
        """Where the mass changes, and the masses before, between and after these integers."""
        # Tails are repeated ``most`` times, 0 is all beyond; the sum is total · 2^(64·(most + 1)).
        p, q = self.periods
        changes, falls = [(self.high + most * q + 1, 0)], []
        for ratio in self.ratios:
            powers = (ratio**times * UNIT ** (most - times) for times in range(most + 1))
            falls.append([(UNIT - ratio) * each for each in powers])
        for first, _, weight, side in self.blocks():
            if side == 0:
                changes.append((first, weight * UNIT ** (most + 1)))
                continue
            for times, fall in enumerate(falls[side > 0]):
                changes.append((first + times * (q if side > 0 else -p), weight * fall))
        changes.sort()
        return [start for start, _ in changes], [0, *(mass for _, mass in changes)]

    def pairs(self, distance: int) -> Pairs:
        """The pairs f(k) and f(k + distance); one period of a tail stands for the whole of it."""
        p, q = self.periods
        low = min(self.low, self.low - distance) - p
        after = max(self.high, self.high - distance) + q + 1
        most = max(-(-abs(distance) // each) + 1 if each else 1 for each in self.periods)
        starts, masses = self.masses(most)
        # Among these are the end of the first period, and the begin of the last.
        cuts = {low, after, *starts, *(start - distance for start in starts)}
        # The first and the last period are divided by 1 - ρ, and all is over both of these.
        low_rest, high_rest = (UNIT - ratio for ratio in self.ratios)
        counts: Counter[tuple[int, int]] = Counter()
        for first, end in pairwise(sorted(cut for cut in cuts if low <= cut <= after)):
            factor = low_rest * high_rest
            if first < low + p or first >= after - q:
                factor = UNIT * (high_rest if first < low + p else low_rest)
            here = masses[bisect_right(starts, first)]
            there = masses[bisect_right(starts, first + distance)]
            counts[here, there] += (end - first) * factor
        return Pairs(counts, self.total * UNIT ** (most + 1) * low_rest * high_rest)

    @cached_property
    def is_unimodal(self) -> bool:
        """Whether the masses rise and then fall, with one period beyond each end."""
        falls = [a > b for a, b in pairwise(self.masses(1)[1]) if a != b]
        return falls == sorted(falls)

    def steps(self, distance: int) -> list[tuple[int, int]]:
        """The pairs of f(k) and f(k ± distance)."""
        return self.pairs(distance).pairs + self.pairs(-distance).pairs

    def falls_by(self, ratio: int) -> bool:
        """Whether no two neighboring integers have masses further apart than 1/ρ."""
        return all(p * ratio <= q * UNIT for p, q in self.steps(1))

    def step_ratio(self) -> Fraction | None:
        """The largest f(k) / f(k ± period), the same of both tails; none if it is infinite."""
        period = self.periods[0]
        if not period or self.periods[1] != period or self.ratios[0] != self.ratios[1]:
            return None
        steps = self.steps(period)
        return max(Fraction(p, q) for p, q in steps) if all(q for _, q in steps) else None

    def moment(self, power: int) -> Fraction:
        """The sum of |k|^power · f(k), with 0^0 = 0."""
        total = Fraction(0)
        for first, last, weight, side in self.blocks():
            rho = Fraction(self.ratios[side > 0], UNIT) if side else Fraction(0)
            # Of a run below 0 the mirror image; a tail lies on its side of 0.
            a, b = (-last, -first) if last <= 0 else (first, last)
            moment = moments(a, b, self.periods[side > 0], rho)[power]
            if power == 0 == a:
                moment -= 1 - rho
            total += Fraction(weight, self.total) * moment
        return total

    def size(self, distances: set[int]) -> tuple[set[int], int, bool]:
        """Which distances to compare, the number of step 32, and whether a tail is far shorter."""
        chosen = {max(distances)} if self.is_unimodal else distances
        reaches = [max(distances) // period for period in self.periods if period]
        reach = sum(min(FAR, each) for each in reaches)
        work = 2 * len(chosen) * len(self.lengths) * (reach + 3) * (1 + reach // 8)
        return chosen, work, max(reaches, default=0) > FAR

    def proved(self, file: str, distances: set[int], epsilon: Fraction) -> list[Pairs]:
        """All pairs within the work of step 32; none of noise that is far and not pure."""
        chosen, work, is_far = self.size(distances)
        need(work <= 10**6, file, "size", work, "at most 10^6")
        if not is_far:
            return [self.pairs(sign * each) for each in chosen for sign in (1, -1)]
        ratio, power = self.step_ratio(), Decimal(1)
        if ratio is None:
            return []
        # The power of a ratio of 1 or more, each product rounded up; it is never far from exact.
        up_to, c = Context(prec=100, rounding=ROUND_CEILING), rounded_up(ratio)
        for digit in bin(-(-max(distances) // self.periods[0]))[2:]:
            power = up_to.multiply(up_to.multiply(power, power), c if digit == "1" else Decimal(1))
            if up_to.multiply(power, Decimal(SCALE)) > below_e(epsilon):
                return []
        return [Pairs({}, 1)]

    def cell(self, distances: set[int], step: Fraction) -> list[int]:
        """The profile of a cell that moves by these distances; empty if it is rough."""
        chosen, work, is_far = self.size(distances)
        if not is_far and work <= 3 * 10**5:
            pairs = (self.pairs(sign * each) for each in chosen for sign in (1, -1))
            return largest([values_of_pair(each, step) for each in pairs], step)
        ratio = self.step_ratio() if self.is_unimodal else None
        if ratio is None:
            return []
        fifty = Context(prec=50)
        loss = Fraction(fifty.next_plus(fifty.ln(rounded_up(ratio))))
        return pure_values(-(-max(distances) // self.periods[0]) * loss, Fraction(0), step)


def rounded_up(ratio: Fraction) -> Decimal:
    """The least decimal of 100 digits that is no less."""
    digits = Context(prec=100, rounding=ROUND_CEILING)
    return digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))


def moments(first: int, last: int, period: int, rho: Fraction) -> list[Fraction]:
    """The sums of 1, k and k² over a run from 0 on, or their means if it moves up by G · period."""
    # G ≥ g has the chance ρ^g.
    count, ones = last - first + 1, (last - first + 1) * (first + last) // 2
    twos = [n * (n + 1) * (2 * n + 1) // 6 for n in (first - 1, last)]
    mean, square = period * rho / (1 - rho), period**2 * rho * (1 + rho) / (1 - rho) ** 2
    moved = twos[1] - twos[0] + 2 * ones * mean + count * square
    return [Fraction(count), ones + count * mean, moved]


# ---- Mechanisms on the answer (5.3, 8.11) -------------------------------------------------------

FAMILIES = ("modular", "channel", "integer")
ON_THE_LINE = "noise on the integers"
# The profile of a cell that moves by d, on a grid of a step (5.3.1); empty if it is rough.
Cell = Callable[[int, Fraction], list[int]]
Mechanism = tuple[Fraction, Cell]  # the δ that it uses, and the profile of one cell


def check_mechanism(file: str, plain: Plain, query: Query, entry: Plain) -> Mechanism:
    """One mechanism file against the spec; gives what charges and profiles rest on [30-40]."""
    family, named, (epsilon, delta) = entry["mechanism"], query.mechanism, numbers(entry)
    fitting: tuple[str, ...] = query.families() if query.on_statistic else FAMILIES
    if not query.on_statistic and named == "best":
        fitting = ("channel", "integer") if "ordered" in query.topologies else ("modular",)
    need(family in fitting, file, "mechanism", family, fitting)
    check_form(file, plain, family.capitalize())
    expected = {
        **{"schema": "dp-release/mechanism/v1", "mechanism": family},
        **{f"guarantee.{name}": entry[name] for name in ("definition", "epsilon", "delta")},
        "query": file.removeprefix("mechanisms/").removesuffix(".json"),
    }
    if not query.on_statistic:
        expected |= {"group": query.group, "directed": False}
        if named not in ("best", *FAMILIES):
            expected["design.method"] = f"baseline {named}"
    agree(file, plain, expected)
    if query.on_statistic:
        return Fraction(0), check_statistic(file, plain, query, epsilon)
    need(family == "modular" or query.is_line, file, "mechanism", family, "one ordered part")
    total, most = int(plain["total"]), 10**78 if family == "modular" else 2**62 + 1
    need(2 <= total < most and total & (total - 1) == 0, file, "total", total, "a power of two")
    ratio, stated, design = below_e(epsilon), plain["recomputed"], plain["design"]
    compared, cell = (modular, channel, on_integers)[FAMILIES.index(family)](file, plain, query)
    found = [(each.excess(ratio), each.above[each.count(ratio)], each.total) for each in compared]
    deltas, masses = ([Fraction(each[i], each[2]) for each in found] for i in (0, 1))
    approximate = max(deltas, default=Fraction(SCALE)) / SCALE
    probabilistic = Fraction(approximate > 0) if family == "integer" else max(masses)
    own = approximate if entry["definition"] == "approximate" else probabilistic
    need(own <= delta, file, "guarantee", f"δ {up(own, 20)}", entry["delta"])
    same(file, "delta_probabilistic", number(stated["delta_probabilistic"]), probabilistic)
    same(file, "delta_approximate", stated["delta_approximate"], up(approximate, 60))
    # The loss function, and what the bounds are compared with [39].
    bounded, bound = number(design["bounded_loss"]), number(design["lower_bound"])
    need(query.is_table or design["loss"] == query.loss, file, "design.loss", design["loss"])
    if design["bound_of"] != ON_THE_LINE:
        same(file, "design.bounded_loss", bounded, number(design["objective"]))
        same(file, "design.multipliers", design["multipliers"], [])
    need(design["bound_of"] != ON_THE_LINE or family == "integer", file, "design.bound_of", family)
    need(bound <= bounded, file, "design.lower_bound", bound, f"at most {bounded}")
    same(file, "design.gap", design["gap"], exact(bounded - bound))
    return own, cell


Compared = tuple[Iterable[Pairs], Cell]
"""All pairs of distributions, and the profile of a cell."""


def modular(file: str, plain: Plain, query: Query) -> Compared:
    """Noise in the group [32-40]."""
    group, total = query.group, int(plain["total"])
    weights, vectors = list(map(int, plain["weights"])), list(map(tuple, plain["sensitivity"]))
    same(file, "weights", (len(weights), sum(weights)), (prod(group), total))
    need(max(weights) < total, file, "weights", "no noise", "noise")
    # Elements of the group but zero, closed under negation, in order.
    same(file, "sensitivity", vectors, sorted(query.both_ways(vectors)))
    check_complete(file, query, 0, vectors)
    need(len(weights) * len(vectors) <= 10**9, file, "size", len(vectors), "at most 10^9 in all")
    apart = [(min(v[0], group[0] - v[0]), v) for v in vectors]
    return compared_within(apart, lambda v: (weights, rolled(weights, group, v)), total)


def rolled(weights: list[int], group: list[int], by: Vector) -> list[int]:
    """The list whose element η is the weight of η + by, in row-major order."""
    inner = prod(group[1:])
    blocks = weights[by[0] * inner :] + weights[: by[0] * inner]
    if len(group) == 1:
        return blocks
    parts = (blocks[place : place + inner] for place in range(0, len(blocks), inner))
    return [weight for part in parts for weight in rolled(part, group[1:], by[1:])]


def compared_within(
    apart: list[tuple[int, Any]], of: Callable[[Any], tuple[list[int], list[int]]], total: int
) -> Compared:
    """One pair after another; of a cell those of the distances up to d, and a 0 stands for all."""

    def cell(far: int, step: Fraction) -> list[int]:
        lists, work, compared = dict[frozenset[Any], list[int]](), 0, 0
        for p, q in (of(place) for s, place in apart if s <= far or far == 0):
            counts = Counter(zip(p, q, strict=True))
            masses, compared = frozenset(counts.items()), compared + len(p)
            if masses not in lists:
                lists[masses] = values_of_pair(Pairs(counts, total), step)
                work += len(masses) + len(lists[masses])
            if work > 3 * 10**5 or compared > 10**7:
                return []
        return largest(list(lists.values()), step)

    return (Pairs(Counter(zip(*of(place), strict=True)), total) for _, place in apart), cell


def channel(file: str, plain: Plain, query: Query) -> Compared:
    """A row of weights for each true code [32-40]."""
    size, total = query.group[0], int(plain["total"])
    rows = [list(map(int, row)) for row in plain["rows"]]
    fits = len(rows) == size and size * len(plain["pairs"]) <= 10**9
    need(fits, file, "rows, pairs", len(rows), f"{size}, and at most 10^9 numbers to compare")
    same(file, "rows", [(len(row), sum(row)) for row in rows], [(size, total)] * size)
    need(max(map(max, rows)) < total, file, "rows", "no noise", "noise")
    distances = {abs(a - b) for a, b in plain["pairs"]}
    check_complete(file, query, 1, distances)
    expected = [[a, b] for a, b in permutations(range(size), 2) if abs(a - b) in distances]
    same(file, "pairs", plain["pairs"], expected)
    apart = [(abs(a - b), (rows[a], rows[b])) for a, b in expected]
    return compared_within(apart, lambda pair: pair, total)


def check_complete(file: str, query: Query, which: int, stated: Iterable[Any]) -> None:
    """The file has one or more; a public one has all vectors of M, or all distances of A [40]."""
    every = set[Any]() if query.source == "empirical" else query.sensitivity(query.rows)[which]
    missing = sorted(every - set(stated))[:3]
    need(stated and not missing, file, "sensitivity, distances", f"without {missing}")


def on_integers(file: str, plain: Plain, query: Query) -> Compared:
    """Noise on the integers, clamped and remapped at the ends [32-40]."""
    size, epsilon = query.group[0], number(plain["guarantee"]["epsilon"])
    noise = Noise(file, plain["noise"], int(plain["total"]))
    # The tables of the two ends: runs of outcomes, each with its shift; both near their end (5.3).
    near = size if size <= 2**22 else 2**21
    lengths = [sum(count for count, _ in plain[name]) for name in ("low_end", "high_end")]
    need(sum(lengths) <= size, file, "low_end, high_end", lengths, f"at most {size} outcomes")
    for name, start, low in (("low_end", 0, 0), ("high_end", size - lengths[1], size - near)):
        at, before = start, None
        for count, shift in plain[name]:
            inside = low <= at + min(shift, 0) and at + count + max(shift, 0) <= low + near
            need(count >= 1 and inside and shift != before, file, name, (count, shift))
            at, before = at + count, shift
    distances = distances_of(file, plain, size)
    check_complete(file, query, 1, distances)
    compared = noise.proved(file, distances, epsilon)
    if plain["design"]["bound_of"] == ON_THE_LINE:
        check_line_bound(file, plain, noise, distances)
    return compared, lambda far, step: noise.cell({s for s in distances if s <= far}, step)


def distances_of(file: str, plain: Plain, size: int) -> set[int]:
    """The distances of noise on the integers, which are counted before the set is built."""
    count, before = 0, -1
    for first, last in plain["distances"]:
        apart = before + 1 < first <= last < size
        need(apart, file, "distances", (first, last), "ascending intervals")
        count, before = count + last - first + 1, last
    need(count <= 10**6, file, "distances", count, "at most 10^6 in all")
    return set(chain(*(range(first, last + 1) for first, last in plain["distances"])))


def check_line_bound(file: str, plain: Plain, noise: Noise, distances: set[int]) -> None:
    """The loss that is bounded, and a proved bound of noise on the integers [39]."""
    design, (epsilon, delta) = plain["design"], numbers(plain["guarantee"])
    need(design["loss"] in LINE_LOSSES, file, "design.loss", design["loss"], LINE_LOSSES)
    degree, stated = LINE_LOSSES.index(design["loss"]), number(design["lower_bound"])
    same(file, "design.bounded_loss", design["bounded_loss"], up(noise.moment(degree), 18))
    if design["bound"] == "proved" and stated > 0:
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

    def loss(t: int) -> Fraction:
        # Blocks of m integers from t on have the weights x, x², …, on both sides of 0.
        outer = moments(t, t + m - 1, m, x)[degree] * x / (1 - x)
        inner = moments(1, t - 1, m, Fraction(0))[degree]
        return (2 * inner + 2 * outer) / (2 * t - 1 + 2 * m * x / (1 - x))

    # It falls, and then rises: the first t whose next is no better.
    t = bisect_left(range(1, m), True, key=lambda t: loss(t + 1) >= loss(t)) + 1
    least: Fraction = loss(t) * unit**degree
    if degree == 2 and m > 1:
        least -= unit * unit // 4
    return least * (1 - delta)


def priced_bound(file: str, plain: Plain, distances: set[int], degree: int) -> Fraction:
    """The bound that multipliers prove (5.3)."""
    epsilon, delta = numbers(plain["guarantee"])
    above, listed = above_e(epsilon), plain["design"]["multipliers"]
    prices = {each["distance"]: list(map(int, each["prices"])) for each in listed}
    reach = max(map(len, prices.values())) // 2
    right = all(len(each) == 2 * reach + 1 for each in prices.values())
    right = right and len(prices) == len(listed) and prices.keys() <= distances
    need(right, file, "multipliers", sorted(prices), "distances, once, and lists of one length")
    work = (reach + max(prices)) * len(prices)
    need(work <= 10**6, file, "multipliers", work, "at most 10^6 (number times reach)")
    tops, values = {s: max(each) for s, each in prices.items()}, []

    def price(s: int, k: int) -> int:
        return prices[s][k + reach] if abs(k) <= reach else tops[s]

    for k in range(reach + max(prices) + 2):
        total = 2 * (k**degree if k else 0) * 2**80 * SCALE
        for s in prices:
            total += SCALE * (price(s, k) + price(s, -k))
            total -= above * (price(s, k - s) + price(s, -k - s))
        values.append(total)
    least = Fraction(min(values), 2 * 2**80 * SCALE)
    return max(least - delta * Fraction(sum(tops.values()), 2**80), Fraction(0))


# ---- Mechanisms on a statistic (4.7, 5.3) -------------------------------------------------------


def check_statistic(file: str, plain: Plain, query: Query, epsilon: Fraction) -> Cell:
    """The parameters of a family, and its condition for ε [30]."""
    family, size, ways = plain["mechanism"], query.group[0], query.spec.ways
    need(epsilon > 0, file, "epsilon", epsilon, "above 0")
    members = query.plain.get("k", 0)
    shares, weight, touched, spread = query.spread(query.rows, ways)
    expected = {
        **{"spread": spread, "candidates": size, "categories": size, "sublevels": 256},
        **{"shares": list(map(exact, shares)), "members": members, "touched": touched},
        **{"weight": weight, "replaced": ways == 2, "rows": query.rows},
        **{name: query.plain.get(name, False) for name in ("counts", "histogram")},
        "sums": 1 + (query.kind == "mean"),
    }
    agree(file, plain, {name: expected[name] for name in expected.keys() & plain.keys()})
    if family == "gap_table":
        check_gaps(file, plain, below_e(epsilon))
    elif family == "noisy_sums":
        noise = Noise(file, plain["noise"], 2**62)
        if plain["sums"] == 1:
            unimodal, below = noise.is_unimodal, below_e(epsilon)
            need(unimodal or spread <= 10**6, file, "spread", spread, "at most 10^6")
            distances = {spread} if unimodal else set(range(1, spread + 1))
            compared = noise.proved(file, distances, epsilon)
            pure = compared and not any(pairs.excess(below) for pairs in compared)
            need(pure, file, "guarantee", "a pure δ above 0", "0 at every distance")
            _, work, is_far = noise.size({spread})
            if unimodal and not is_far and work <= 3 * 10**5:
                return lambda _, step: noise.cell({spread}, step)
        else:
            left, right = zip(noise.ratios, noise.periods, strict=True)
            same(file, "noise.right", right, left)
            check_ratio(file, left[0], spread, epsilon)
            need(noise.falls_by(left[0]), file, "noise", "a step above 1/ρ", "at most 1/ρ")
    else:
        twice = 1 if 1 in (touched, members, size - members) else 2
        factors = {
            **dict.fromkeys((*SELECTIONS, "top_histogram"), spread),
            **{"two_categories": 1, "joint_quantiles": 4 * 256 * spread},
            "quantile_tree": ways * (1 + (plain.get("block") != 1)) * query.rows,
            **{"top_canonical": ways * weight * twice, "top_peeled": ways * weight * members},
        }
        check_ratio(file, int(plain["ratio"]), factors[family], epsilon)
    in_range = family == "exponential_mechanism"
    return lambda _, step: pure_values(epsilon, Fraction(0), step, in_range=in_range)


def loss_of(ratio: int) -> Fraction:
    """An upper bound of ln(2^64 / ratio) that is at most 10^-40 too large."""
    work = Context(prec=80, rounding=ROUND_HALF_EVEN)
    return Fraction(work.ln(work.divide(Decimal(UNIT), Decimal(ratio)))) + Fraction(1, 10**60)


def check_ratio(file: str, ratio: int, factor: int, epsilon: Fraction) -> None:
    """Check that factor · ln(1/ρ) is at most ε, and no smaller ρ has that."""
    right = 1 <= ratio < UNIT and factor * loss_of(ratio) <= epsilon
    right = right and (ratio == 1 or factor * loss_of(ratio - 1) > epsilon)
    need(right, file, "ratio", ratio, f"the least with {factor} times its loss at most {epsilon}")


def check_gaps(file: str, plain: Plain, ratio: int) -> None:
    """Every change of one unit's votes moves every weight by at most the ratio."""
    size, cap = plain["categories"], plain["cap"]
    same(file, "spread", plain["spread"], 2)
    need(3 <= size <= 6 and cap >= 1, file, "categories", (size, cap), "3 to 6, cap from 1")
    need(comb(cap + size - 1, cap) <= 2**15, file, "states", (size, cap), "at most 2^15")
    states = [(0, *rest) for rest in multisets(range(cap + 1), size - 1)]
    lists = [list(map(int, weights)) for weights in plain["weights"]]
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
                need(max(v, w) * SCALE <= ratio * min(v, w), file, "weights", (v, w), "within ε")


# ---- Profiles (5.3.1), and what composes exactly (4.3.1, 7.9) -----------------------------------

PARTS = 10**28
LONGEST = 2**14
SMALL = 10**6


class Losses(NamedTuple):
    """Masses at losses low·h, (low + 1)·h, …, and at an infinite loss; in units of 10^-28."""

    step: Fraction
    low: int
    masses: list[int]
    infinite: int

    def composed(self, b: Losses) -> Losses:
        """Both together, folded: small masses at the ends go to the infinite loss and the least."""
        # The product of two polynomials, by one multiplication of long decimal numbers.
        count = len(self.masses) + len(b.masses)
        width = len(str(max(self.masses))) + len(str(max(b.masses))) + len(str(count))
        work = Context(prec=count * width, Emax=MAX_EMAX)
        texts = ("".join(str(c).rjust(width, "0") for c in each.masses[::-1]) for each in (self, b))
        text = format(work.multiply(*map(Decimal, texts)), "f").rjust(count * width, "0")
        ends = range(len(text), len(text) - (count - 1) * width, -width)
        masses = [-(-int(text[end - width : end]) // PARTS) for end in ends]
        lost = self.infinite * (sum(b.masses) + b.infinite) + b.infinite * sum(self.masses)
        top = bottom = first = 0
        while len(masses) > 1 and top + masses[-1] <= SMALL:
            top += masses.pop()
        while first < len(masses) - 1 and bottom + masses[first] <= SMALL:
            bottom += masses[first]
            first += 1
        masses[first] += bottom
        return Losses(self.step, self.low + b.low + first, masses[first:], -(-lost // PARTS) + top)

    def values(self) -> list[int]:
        """The profile of a distribution at the losses 0, h, 2h, …."""
        top = self.low + len(self.masses) - 1
        values, above, fallen = [self.infinite], 0, 0
        falls = SCALE * SCALE // above_e(self.step)
        for place in range(top, 0, -1):
            mass = self.masses[place - self.low] if place >= self.low else 0
            above, fallen = above + mass, (fallen + mass) * falls // SCALE
            values.append(min(PARTS, self.infinite + above - fallen))
        return largest([values[::-1]], self.step)

    def delta_at(self, epsilon: Fraction) -> Fraction:
        """A bound of δ at one ε, in units of 10^-28."""
        first = max(self.low, int(epsilon // self.step) + 1)
        nearest, end = first * self.step - epsilon, int((epsilon + 100) // self.step) + 1
        delta = Fraction(self.infinite + sum(self.masses[first - self.low :]))
        if nearest > 100:
            return delta
        # Of losses up to 100 above ε a part falls away: their sum by Horner, in units of 10^-40.
        falls, fallen = SCALE * SCALE // above_e(self.step), 0
        for mass in reversed(self.masses[first - self.low : max(0, end - self.low)]):
            fallen = fallen * falls // SCALE + mass * SCALE
        return delta - Fraction(fallen, above_e(nearest))

    def moment(self, order: int) -> tuple[Fraction, Fraction]:
        """Upper bounds of the moment and the cut of a release (7.9)."""
        moment, cut = 0, Fraction(self.infinite + max(0, self.infinite + sum(self.masses) - PARTS))
        for place, mass in enumerate(self.masses, self.low):
            loss = place * self.step
            far = (order - 1) * abs(loss)
            if loss > 100:
                cut += mass
            else:
                up_or_down = (above_e(far), SCALE) if loss > 0 else (SCALE, below_e(far))
                moment += -(-mass * SCALE * up_or_down[0] // up_or_down[1])
        return Fraction(moment, SCALE * PARTS), min(Fraction(1), cut / PARTS)


def values_of_pair(pairs: Pairs, step: Fraction) -> list[int]:
    """Upper bounds of δ at the losses 0, h, 2h, …, up to the first that repeats for ever."""
    most, values, ratio = min(LONGEST, int(100 / step) + 1), list[int](), -1
    p, q = pairs.finite
    while len(values) < most and p * SCALE > ratio * q:
        ratio = below_e(len(values) * step)
        values.append(min(PARTS, -(-PARTS * pairs.excess(ratio) // (SCALE * pairs.total))))
    return values


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
    return largest([[*values, ceil(PARTS * delta)]], step)


def largest(lists: list[list[int]], step: Fraction) -> list[int]:
    """The largest value at each loss, shortened; a list repeats its last value."""
    length = max(map(len, lists))
    filled = (values + values[-1:] * (length - len(values)) for values in lists)
    values = list(map(max, zip(*filled, strict=True)))[: min(LONGEST, int(100 / step) + 2)]
    while len(values) > 1 and values[-1] == values[-2]:
        values.pop()
    return values


def losses_of(values: list[int], step: Fraction) -> Losses:
    """The distribution whose profile joins the values by chords."""
    if len(values) == 1:
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
    return Losses(step, 1 - len(values), [*reversed(lower), middle, *upper], values[-1])


def all_of(counted: Iterable[Any], step: Fraction, check: Callable[[Losses], Any] = len) -> Losses:
    """The distributions of profiles, each so often, together; ``check`` sees what is between."""

    def power(single: Losses, count: int) -> Losses:
        if count == 1:
            return single
        half = power(single, count // 2)
        check(both := half.composed(half))
        return both.composed(single) if count % 2 else both

    waiting = [power(losses_of(values, step), count) for values, count in counted]
    while len(waiting) > 1:
        waiting.sort(key=lambda losses: len(losses.masses))
        check(both := waiting[0].composed(waiting[1]))
        waiting = [*waiting[2:], both]
    return waiting[0]


def profile_of(mechanism: Mechanism, patterns: list[list[int]], step: Fraction) -> list[int]:
    """The values of a profile; empty where the page has rough values or coarser steps."""
    cells, lists = {far: mechanism[1](far, step) for far in set(chain(*patterns))}, []
    if not all(cells.values()):
        return []
    for pattern in patterns:
        values, length = cells[pattern[0]], max(len(cells[far]) for far in pattern)
        if len(pattern) > 1:
            if length * (isqrt(len(pattern)) + 1) > 2**16:
                return []
            counted = sorted(Counter(pattern).items())
            values = all_of([(cells[far], count) for far, count in counted], step).values()
        lists.append(values)
    return largest(lists, step)


class Charged(NamedTuple):
    """A published query or measured table: what one cell and all that a unit moves cost."""

    query: Query
    entry: Plain
    mechanism: Mechanism | None
    touched: int
    delta: Fraction
    charge: tuple[Fraction, Fraction]
    patterns: list[list[int]]


def common_step(claims: list[Fraction]) -> Fraction:
    """The greatest common divisor of some rationals."""
    base = lcm(*(claim.denominator for claim in claims))
    return Fraction(gcd(*(int(claim * base) for claim in claims)), base)


def step_of(public: list[Charged], spec: Spec) -> Fraction:
    """The grid of a release without tabulations (4.3.1)."""
    budget, count = number(spec.plain["budget"]["epsilon"]), sum(each.touched for each in public)
    steps = max(1000, 50 * (isqrt(count - 1) + 1))
    whole = -(-steps // count) * count if 1 < count <= 1000 else min(LONGEST, steps)
    if any(each.query.is_composed for each in public):
        return budget / whole
    unit = common_step([number(each.entry["epsilon"]) for each in public])
    # Of all cells, whether or not the noise loses in proportion: the grid follows from the spec.
    asked = sum(each.touched * number(each.entry["epsilon"]) for each in public)
    least = min(budget, asked) or budget
    if unit and LONGEST * unit >= least:
        return unit / ceil(unit * min(LONGEST, steps) / least)
    return least / whole


def values_of(slot: Plain, step: Fraction) -> list[int]:
    """The curve of a slot on a grid: its profile, or the worst case of its ε and δ."""
    if "profile" in slot:
        return list(map(int, slot["profile"]["values"]))
    return pure_values(*numbers(slot), step)


def plan_keeps(cap: Plain) -> bool:
    """Whether the composition of all slots of a plan is proved to keep the cap."""
    (epsilon, delta), basic, claims, drawn = numbers(cap), [Fraction(0)] * 2, [], []
    for slot in cap["planned"]:
        charge = [slot["times"] * each for each in numbers(slot)] if "epsilon" in slot else basic
        if slot.get("declared"):
            epsilon, delta = epsilon - charge[0], delta - charge[1]
            continue
        drawn.append(slot)
        if "epsilon" in slot:
            basic = [basic[0] + charge[0], basic[1] + charge[1]]
            claims.append(number(slot["epsilon"]))
    steps = {number(slot["profile"]["step"]) for slot in drawn if "profile" in slot}
    if not steps and basic[0] <= epsilon and basic[1] <= delta:
        return True
    step, *others = steps or {common_step(claims)}
    if min(epsilon, delta) < 0 or others or step == 0:
        return False
    whole = all_of([(values_of(slot, step), slot["times"]) for slot in drawn], step)
    return whole.delta_at(epsilon) <= delta * PARTS


# ---- A release, and the steps of section 8 in their order ---------------------------------------

RECORD = "release.json"
ATTESTATION = "attestation.dsse.json"
AUDIT = "audit.json"
OF_AUDITOR = ("openings.json", "mechanisms", AUDIT)
"""What the bundle of one release has, and a folder of bundles has not."""
FILES = (RECORD, "report.html", "spec.json", "spec.yaml", "datapackage.json", "registry.yaml")
EVIDENCE = ("none", "signed", "paid", "witnessed")
PROOF = (
    r"(?s)\Ac2sp\.org/tlog-proof@v1\nextra (\S+)\nindex (0|[1-9][0-9]*)\n"
    r"((?:\S{44}\n){0,63})\n(.+)"
)

# The fixed texts of section 10.
REPEATED = ("unit", "neighbors", "max_rows_per_unit")
RELATIONS = {
    "replace_one": "all rows of one {unit} are replaced by those of another{shared}",
    "add_remove": "all rows of one {unit} are removed, or those of a new one added{shared}",
    "attribute": "the {attribute} of one {unit} takes other values; all other columns, and who is "
    "in the table, are held to be public",
}
ENFORCED_BY = (
    "of the rows of a unit that a query reads, max_rows_per_unit are kept, those of the least "
    "hash, within max_cells_per_unit cells where that is declared; integers are clamped; a unit "
    "has one fixed part; declared sensitivity is enforced by reading fewer rows"
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
WITHIN = "; it may hold anything within the declared bounds"
DECLARED = "are declared numbers, published without noise; the guarantee is beside what they reveal"
IMPOSSIBLE = "whole numbers are 0 in combinations of categories that are declared impossible"


class Trust(NamedTuple):
    """What the auditor was given, and asks for."""

    keys: tuple[Key, ...] = ()
    witnesses: tuple[Key, ...] = ()
    folder: Path | None = None
    require: str = "signed"


class Release:
    """A release: what was proved and tested of it, and what was asked for and could not be read."""

    def __init__(self, public: Path, auditor: Path | None, trust: Trust) -> None:
        self.trust, (self.files, sums) = trust, bundle_files(public)
        self.proved, self.missing = list[str](), list[str]()
        # SHA256SUMS lists all other files with their digests, in order [2-4].
        names = sorted(sums.keys() - {"SHA256SUMS"})
        self.sums = {name: sums[name] for name in names}
        lines = self.files["SHA256SUMS"].decode("ascii").split("\n")
        for line, name in zip(lines, names, strict=False):
            need(not misfit(name, "PATH"), name, "path", name)
            same(name, "SHA-256", line, f"{self.sums[name]}  {name}")
        same("SHA256SUMS", "file set", lines[len(names) :], [""])
        self.tested = [f"the SHA-256 of {len(names)} files"]
        self.record = read_json(RECORD, self.files[RECORD], "Record")
        agree(RECORD, self.record, {"schema": "dp-release/release/v1", "kind": "RELEASE"})
        self.name, self.sequence = self.record["release_id"], self.record["ledger"]["sequence"]
        self.figures = {each: self.record["composition"][each] for each in ("epsilon", "delta")}
        self.check_files()
        self.ledger = None if trust.folder is None else Ledger(trust.folder)
        self.check_provenance()
        self.spec = Spec(read_json("spec.json", self.files["spec.json"]))
        self.check_record()
        self.proved.append("release.json says what the spec says")
        self.check_expressions()
        charged = self.read_queries(self.open_auditor(auditor))
        if len(charged) >= len(self.spec.published):
            whole = self.check_profiles(charged)
            self.check_total(charged, whole)
            self.check_scope(whole)

    def lacks(self, evidence: str, what: str) -> None:
        """Say what is missing, if the auditor asks for at least this evidence."""
        if EVIDENCE.index(self.trust.require) >= EVIDENCE.index(evidence):
            self.missing.append(what)

    def check_files(self) -> None:
        """The paths and digests of the record, and the set of files [6, 7]."""
        names = {*FILES, *((ATTESTATION, "ledger.proof") if self.sequence is not None else ())}
        outputs, earlier = [], set()
        owners = [(entry, "data") for entry in self.record["queries"]]
        for tabulation in self.record.get("tabulations", []):
            owners += [(entry, "measurements") for entry in tabulation["measured"]]
            outputs += [each["output"] for each in tabulation["levels"] + tabulation["declared"]]
        for entry, folder in owners:
            name, file = entry["name"], entry["mechanism_file"]
            expected = {"path": f"{folder}/{name}.parquet", "rows": entry["cells"]}
            agree(RECORD, entry["output"], expected, f"{name}.output.")
            outputs.append(entry["output"])
            if "path" in file:
                earlier.add(f"mechanisms/{name}.json")
                need(file["path"] in earlier, RECORD, f"{name}.mechanism_file", file["path"])
                outputs.append(file)
        for path, output in ((output["path"], output) for output in outputs):
            same(path, "SHA-256 in release.json", output["sha256"], self.sums.get(path))
            names.add(path)
        same("SHA256SUMS", "file set of release.json", sorted(self.sums), sorted(names))

    # ---- Attestation, proof and ledger (8.5)

    def check_provenance(self) -> None:
        """Who signed, and whether the charge was reserved [14-22]."""
        trust, ledger, file = self.trust, self.ledger, "ledger.proof"
        if self.sequence is None:
            need(not trust.keys and ledger is None, RECORD, "ledger.sequence", None, "an entry")
            self.lacks("signed", "who published this: no ledger, so nothing is signed")
            return
        keys, every, owners = list(trust.keys), set(trust.keys), set[Key]()
        if ledger is not None and trust.folder is not None:
            own = read_file(trust.folder / "checkpoint", "checkpoint").decode()
            _, size, _, owners = ledger.check_checkpoint("checkpoint", own, trust.witnesses)
            same("checkpoint", "size", size, len(ledger.entries))
            need(self.name in ledger.public, "ledger", "commit", self.name)
            keys, every = ledger.keys[ledger.committed[self.name]], set(chain(*ledger.keys))
            owners |= set(ledger.keys[0])
        self.check_attestation(keys)
        if not keys:
            self.lacks("signed", "who signed: give --trust KEY or --ledger DIR")
            return
        ((extra, place, hashes, text),) = re.findall(PROOF, self.files[file].decode())
        data, index = decode(file, extra), int(place)
        origin, size, root, signers = read_checkpoint(file, text, every | set(trust.witnesses))
        right = index < size and origin in {key.name for key in every}
        need(right, file, "index, origin", (index, origin), f"below {size}, and a key's name")
        path = [decode(file, line) for line in hashes.split()]
        same(file, "root", root_by_path(sha(b"\0" + data), index, size, path), root)
        expected = {"kind": "commit", "release_id": self.name, "seq": index}
        expected["attestation"] = f"sha256:{self.sums[ATTESTATION]}"
        agree(file, read_json(file, data, "Commit"), expected, "entry.")
        self.proved.append("a key signed every file, and a signed ledger holds the commit")
        if ledger is None:
            self.lacks("paid", "that the charge was reserved: give --ledger DIR")
            return
        ledger.check_checkpoint(file, text, trust.witnesses)
        owners |= signers
        need(not trust.keys or owners & set(trust.keys), "ledger", "trust", "no trusted key")
        if not trust.keys:
            self.lacks("signed", "whose ledger this is: give --trust KEY")
        # The entry that pays for the release [22].
        expected = {"kind": "reserve", "release_id": self.name, **self.figures}
        expected["scope"] = self.record["ledger"]["scope"]
        agree("ledger", ledger.entries[self.sequence], expected, f"entry {self.sequence}.")
        for between in ledger.entries[self.sequence + 1 : ledger.committed[self.name]]:
            need(between.get("release_id") != self.name, "ledger", "entries between", between)
        self.proved.append("the ledger is intact, reserved the charge, and kept every cap")
        if owners & set(trust.witnesses):
            self.proved.append("a trusted witness signed that the ledger only grew")
        else:
            give = "give --witness KEY of one that cosigned"
            self.lacks("witnessed", f"that the ledger only grew: {give}")
        if later := ledger.said["revise"].get(self.name):
            self.tested.append(f"the ledger: revised, {later} takes its place")

    def check_attestation(self, keys: list[Key]) -> None:
        """The envelope, its signature and its subjects [16, 17]."""
        kind = "application/vnd.in-toto+json"
        envelope = read_json(ATTESTATION, self.files[ATTESTATION], "Envelope")
        same(ATTESTATION, "payloadType", envelope["payloadType"], kind)
        ((keyid, sig),) = (map(each.get, ("keyid", "sig")) for each in envelope["signatures"])
        payload, signature = (decode(ATTESTATION, text) for text in (envelope["payload"], sig))
        message = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
        owners = [key for key in keys if sha(key.key).hex() == keyid]
        signed = any(is_signed(key.key, message, signature) for key in owners)
        need(signed or not keys, ATTESTATION, "signature", keyid, "that of a known key")
        inside = [name for name in self.sums if name not in (ATTESTATION, "ledger.proof")]
        statement = {
            "_type": "https://in-toto.io/Statement/v1",
            "predicate": self.figures | {"release_id": self.name, **self.record["ledger"]},
            "predicateType": "dp-release/release/v1",
            "subject": [{"digest": {"sha256": self.sums[name]}, "name": name} for name in inside],
        }
        same(ATTESTATION, "payload", payload, canonical(statement))

    # ---- The record against the spec (8.4)

    def check_record(self) -> None:
        """What release.json repeats of the spec, and its fixed texts [10-13]."""
        record, spec, privacy = self.record, self.spec, self.spec.privacy
        extras = (record["software"]["environment"] or {"extras": []})["extras"]
        shared = f", which keeps its {' and '.join(spec.fixed)}" if spec.fixed else ""
        shared += WITHIN if privacy.get("replacement") == "domain" else ""
        about, relation, invariants = spec.plain["release"], RELATIONS[privacy["neighbors"]], []
        for tabulation in spec.tabulations:
            name, stated = tabulation["name"], tabulation.get("constraints", [])
            for each in (each for each in stated if "level" in each):
                by = f" by {' and '.join(each['margin'])}" if each["margin"] else ""
                invariants.append(f"{name}: the counts of the {each['level']} level{by} {DECLARED}")
            if any("impossible" in each for each in stated):
                invariants.append(f"{name}: {IMPOSSIBLE}")
        expected = {
            **{"release_id" if name == "id" else name: str(about[name]) for name in about},
            **{f"privacy.{name}": privacy[name] for name in REPEATED},
            **{"privacy.fixed": spec.fixed, "privacy.enforced_by": ENFORCED_BY},
            "privacy.adjacency_text": relation.format(shared=shared, **privacy),
            "ledger.scope": spec.plain["budget"]["scope"],
            "sampling": {"source": "os", "method": "inverse-cdf-integer", "seeded": False},
            "guarantee.kind": "instance-specific" if spec.is_empirical else "worst-case",
            "withheld": WITHHELD[not spec.is_empirical : 1 + (self.sequence is None)],
            "limits": LIMITS[not spec.is_empirical :],
            "invariants": invariants,
            "post_processing": [f"{each['name']}: {ESTIMATED}" for each in spec.tabulations],
        }
        agree(RECORD, record, expected)
        need(is_date(record["published"]), RECORD, "published", record["published"], "a date")
        same(RECORD, "software.environment.extras", extras, sorted(set(extras)))
        names = [entry["name"] for entry in record["queries"]]
        same(RECORD, "queries", names, [query.name for query in spec.published])
        for query, entry in zip(spec.published, record["queries"], strict=True):
            self.check_entry(query, entry)
        same(RECORD, "tabulations", "tabulations" in record, bool(spec.tabulations))
        for tabulation, entry in zip(spec.tabulations, record.get("tabulations", []), strict=True):
            self.check_tabulation(tabulation, entry)

    def check_entry(self, query: Query, entry: Plain) -> None:
        """One query of the record against the spec [10-12]."""
        at, empirical = query.name, query.source == "empirical"
        definition, epsilon, delta = query.claimed(entry)
        right = epsilon <= 100 and delta < 1 and (definition != "pure" or delta == 0)
        need(right, RECORD, f"{at}.epsilon, delta", (definition, epsilon, delta))
        expected = {
            **{"kind": query.kind, "by": query.by, "domain": query.domain},
            **{"definition": definition, "epsilon": exact(epsilon), "delta": exact(delta)},
            "sensitivity_source": query.source,
            "guarantee_kind": "instance-specific" if empirical else "worst-case",
        }
        if query.mechanism in FAMILIES:
            expected["mechanism"] = query.mechanism
        elif empirical and query.mechanism == "best":
            # The family follows from public parameters alone (3.9).
            fits = definition != "probabilistic" or delta == 0
            fits = fits and query.is_line and query.loss in LINE_LOSSES and epsilon > 0
            small = query.group[0] <= 21 and Fraction(1, 1000) <= epsilon <= 12
            on_line = ("channel" if small else "integer") if fits else "none"
            expected["mechanism"] = on_line if "ordered" in query.topologies else "modular"
        agree(RECORD, entry, expected, f"{at}.")
        same(RECORD, f"{at}: committed", "commitment" in entry["mechanism_file"], empirical)

    def check_tabulation(self, plain: Plain, entry: Plain) -> None:
        """The names and the measured tables of a tabulation [43, 44]."""
        name, areas = plain["name"], {each["level"]: each["areas"] for each in entry["levels"]}
        agree(RECORD, entry, {"name": name, "table": plain["table"]}, "tabulations.")
        same(RECORD, f"{name}.levels", list(areas), plain["hierarchy"]["levels"])
        sizes = self.spec.categories[name]
        for each in entry["levels"]:
            at, margins = f"{name}.{each['level']}", plain["publish"][each["level"]]
            stated = list(map(sorted, each["margins"]))
            same(RECORD, f"{at}.margins", stated, list(map(sorted, margins)))
            cells = sum(prod(sizes[part] for part in margin) for margin in margins)
            same(RECORD, f"{at}.rows", each["output"]["rows"], each["areas"] * cells)
        published = list(map(sorted, chain(*plain["publish"].values())))
        tables = set()
        for each in entry["measured"]:
            level, margin, at = each["level"], each["margin"], each["name"]
            need(sorted(margin) in published, RECORD, f"{at}.margin", margin)
            cells = areas[level] * prod(sizes[part] for part in margin)
            same(RECORD, f"{at}.cells", each["cells"], cells)
            tables.add((level, tuple(margin)))
        need(len(tables) == len(entry["measured"]) > 0, RECORD, f"{name}.measured", "a table twice")

    def check_expressions(self) -> None:
        """Every condition and derived column has a tree that looks at one row of its columns."""
        spec, attribute, places, fixed = self.spec, self.spec.privacy.get("attribute"), {}, {}
        seen = [query for query in spec.published if query.source == "empirical"]
        # No expression of what is seen uses a fixed column, and none of these the attribute (3.9).
        hidden = {f"queries.{part.name}.where" for query in seen for part in (query, *query.parts)}
        for name, table in spec.plain["tables"].items():
            for column, of in table.get("derive", {}).items():
                place = f"tables.{name}.derive.{column}"
                places[place] = (spec.plain_columns[name], of["type"])
                if any(query.plain["table"] == name for query in seen):
                    hidden.add(place)
                if column in spec.fixed and attribute is not None:
                    fixed[place] = (column, of["sql"].casefold())
        for key in ("queries", "tabulations"):
            for each in (each for each in spec.plain.get(key, []) if "where" in each):
                places[f"{key}.{each['name']}.where"] = (spec.columns[each["table"]], "boolean")
        entries = self.record.get("expressions", [])
        same(RECORD, "expressions", "expressions" in self.record, bool(places))
        stated = sorted(entry["place"] for entry in entries)
        same(RECORD, "places of expressions", stated, sorted(places))
        for place, tree in ((entry["place"], entry["tree"]) for entry in entries):
            columns, kind = places[place]
            letter, nodes, joined, used = read_tree(place, tree, columns)
            same(RECORD, place, letter.lower(), kind[0])
            need(nodes <= 1000 and joined <= 16, place, "size", nodes, "at most 1000 nodes")
            rule(place not in hidden or not used & set(spec.fixed), place, sorted(used))
            if place in fixed and attribute is not None:
                column, sql = fixed[place]
                rule(attribute not in used, f"privacy.fixed: {column}", attribute)
                if attribute.replace('"', '""').casefold() in sql:
                    self.missing.append(f"whether {column}, which is fixed, reads {attribute}")
        self.proved.append("every condition looks at one row of declared columns at a time")

    # ---- The auditor bundle (6)

    def open_auditor(self, folder: Path | None) -> dict[str, bytes]:
        """The committed mechanism files, by path [28, 29, 41]."""
        committed = [e for e in self.record["queries"] if "commitment" in e["mechanism_file"]]
        if folder is not None and not any((folder / each).exists() for each in OF_AUDITOR):
            folder /= self.name
        if folder is None or not (committed or (folder / AUDIT).exists()):
            return {}
        (files, sums), names = bundle_files(folder), [entry["name"] for entry in committed]
        expected = [AUDIT] * (AUDIT in files) + ["openings.json"] * bool(committed)
        expected += [f"mechanisms/{name}.json" for name in names]
        expected += [f"sensitivity/{name}.json" for name in names]
        same("auditor bundle", "files", sorted(sums), sorted(expected))
        if AUDIT in files:
            self.check_audit(read_json(AUDIT, files[AUDIT], "Audited"))
        if not committed:
            return {}
        openings = read_json("openings.json", files["openings.json"], "Openings")
        named = {"schema": "dp-release/openings/v1", "release_id": self.name}
        agree("openings.json", openings, named)
        paths = [f"mechanisms/{name}.json" for name in names]
        same("openings.json", "openings", sorted(openings["openings"]), sorted(paths))
        for path, entry in zip(paths, committed, strict=True):
            pair, data = openings["openings"][path], files[path]
            value = hmac.new(bytes.fromhex(pair["key"]), data, hashlib.sha256).hexdigest()
            for text in (pair["commitment"], f"hmac-sha256:{value}"):
                right = hmac.compare_digest(text, entry["mechanism_file"]["commitment"])
                need(right, path, "commitment")
            self.check_sensitivity(entry["name"], files, read_json(path, data))
        return {path: files[path] for path in paths}

    def check_audit(self, plain: Plain) -> None:
        """The audit record names this release and who paid, and is signed [48]."""
        named = {"schema": "dp-release/audit/v1", "release_id": self.name}
        agree(AUDIT, plain, named | {"sequence": self.sequence})
        signed = self.sequence is not None
        right = signed == (plain["run"] is not None) == ("signature" in plain)
        need(right, AUDIT, "run, signature")
        counted = [*(plain["set_aside"] or ()), *(plain["left_out"] or ())]
        right = all(each["count"] >= 1 for each in counted)
        need(right and plain["began"] <= plain["prepared"], AUDIT, "set_aside, times")
        keys = set(self.trust.keys)
        if self.ledger is not None:
            keys = set(chain(*self.ledger.keys))
            same(AUDIT, "run", plain["run"], self.ledger.entries[self.sequence].get("run"))
        if signed and keys:
            need(is_own(AUDIT, plain, keys), AUDIT, "signature", "another", "of a known key")
            self.tested.append("audit.json is of this release and signed; what it says is not seen")

    def check_sensitivity(self, name: str, files: dict[str, bytes], mechanism: Plain) -> None:
        """The sensitivity record says what the mechanism file says (6.2)."""
        file = f"sensitivity/{name}.json"
        distances, stated = None, mechanism.get("sensitivity")
        if mechanism["mechanism"] != "modular":
            size, of = mechanism["group"][0], {abs(a - b) for a, b in mechanism.get("pairs", [])}
            distances = sorted(of or distances_of(file, mechanism, size))
            stated = [[s] for s in sorted({c for d in distances for c in (d, size - d)})]
            need(1 in distances, file, "distances", distances, "1 among them")
        expected = {
            **{"schema": "dp-release/sensitivity/v1", "query": name, "source": "empirical"},
            **{"neighbors": self.spec.privacy["neighbors"], "group": mechanism["group"]},
            **{"sensitivity": stated, "distances": distances},
        }
        same(file, "sensitivity", {"distances": None} | read_json(file, files[file]), expected)

    # ---- Mechanisms, profiles and charges (8.9, 8.11)

    def read_queries(self, opened: dict[str, bytes]) -> list[Charged]:
        """The mechanism and the reach of every published query and measured table."""
        record, spec, charged = self.record, self.spec, []
        answered = list(zip(spec.published, record["queries"], strict=True))
        for tabulation in record.get("tabulations", []):
            for entry in tabulation["measured"]:
                # A table that a tabulation measures: a count of rows on all integers, r = 1 (4.3).
                count: Plain = {"name": "a", "kind": "count", "by": [], "share": "1"}
                count |= {"domain": {"integers": {}}, "table": tabulation["table"]}
                table = Query(count | {"max_rows_per_unit": 1, "sensitivity": "global"}, spec)
                table.name, table.is_table = entry["name"], True
                answered.append((table, entry | {"mechanism": "integer"}))
        sizes = spec.key_sizes(record["queries"])
        for query, entry in answered:
            file = entry["mechanism_file"].get("path", f"mechanisms/{query.name}.json")
            data = (self.files if "path" in entry["mechanism_file"] else opened).get(file)
            mechanism, plain, public = None, {}, query.source != "empirical"
            if data is None:
                self.missing.append(f"{query.name}: its mechanism is committed; give --auditor DIR")
            else:
                plain = read_json(file, data)
                mechanism = check_mechanism(file, plain, query, entry)
                self.proved.append(f"{query.name}: the mechanism satisfies its guarantee")
            counted = [column for column in query.by if column not in spec.fixed]
            if not sizes.keys() >= set(counted):
                self.missing.append(f"the charges: the keys of {counted} stand in files")
                return []
            free = entry["cells"] if query.is_table else prod(sizes[c] for c in counted)
            touched = query.cells_touched(free, entry["cells"])
            in_file = query.is_table or not spec.in_files.isdisjoint(counted)
            if in_file and touched < query.cells_touched(10**6, 10**6):
                # With enough keys a unit would touch more cells; how many there are is not read.
                unread = "areas" if query.is_table else "keys in a file"
                self.missing.append(f"{query.name}: the number of {unread}, which its charge needs")
            (epsilon, delta), times, patterns = numbers(entry), Fraction(touched), []
            if mechanism is not None and public:
                delta = min(delta, Fraction(ceil(mechanism[0] * 10**12), 10**12))
                times = query.times_charged(plain, touched, free)
                patterns = query.patterns(touched, free, plain.get("spread"))
            charge = (times * epsilon, touched * delta)
            charged.append(Charged(query, entry, mechanism, touched, delta, charge, patterns))
        return charged

    def check_profiles(self, charged: list[Charged]) -> Losses | None:
        """The profile of every public mechanism [40], composed; none if one is not recomputed."""
        spec, stated, shared = self.spec, self.record["composition"]["step"], None
        public = [each for each in charged if each.query.source != "empirical"]
        if spec.tabulations:
            # A total is proved on any grid, and this one rests on the areas, in a table.
            shared = number(stated)
            need(shared > 0, RECORD, "composition.step", stated, "a number above 0")
        elif spec.composes_exactly and public:
            shared = step_of(public, spec)
        same(RECORD, "composition.step", stated, None if shared is None else exact(shared))
        computed, lists = dict[tuple[str, str], list[int]](), list[Vector]()
        steps: set[Fraction] = set()
        for each in public:
            file, epsilon = each.entry["mechanism_file"]["path"], number(each.entry["epsilon"])
            step, key = shared or (epsilon or Fraction(1)) / 64, (file, str(each.patterns))
            profile = read_json(file, self.files[file])["profile"]
            agree(file, profile, {"step": exact(step), "patterns": each.patterns}, "profile.")
            if key not in computed and each.mechanism is not None:
                computed[key] = profile_of(each.mechanism, each.patterns, step)
            if computed[key]:
                same(file, "profile.values", profile["values"], list(map(str, computed[key])))
                lists.append(tuple(computed[key]))
                steps.add(step)
            else:
                self.missing.append(f"{each.query.name}: a rough profile or a coarse grid")
        if not lists or len(lists) < len(public) or len(steps) > 1:
            return None
        counted = [(list(values), count) for values, count in Counter(lists).items()]
        # A part has no larger δ than all, but for roundings, so not all are composed in vain.
        return all_of(counted, steps.pop(), lambda part: self.check_delta(charged, part, 1))

    def check_delta(self, charged: list[Charged], part: Losses, slack: int = 0) -> None:
        """If charges are no sum, δ is within what is left for it at the stated ε [26]."""
        total, cap = numbers(self.figures), number(self.spec.plain["budget"]["delta"])
        hidden = [each for each in charged if each.query.source == "empirical"]
        both, seen = ([sum(c.charge[i] for c in of) for i in (0, 1)] for of in (charged, hidden))
        if self.spec.composes_exactly and list(total) != both:
            spare, delta = cap - seen[1], part.delta_at(total[0] - seen[0]) / PARTS
            holds = delta <= spare + Fraction(slack, 10**20)
            need(holds, RECORD, "composition", f"δ {up(delta, 20)}", exact(spare))

    def check_total(self, charged: list[Charged], whole: Losses | None) -> None:
        """The charge of the release [26]."""
        spec, total, caps = self.spec, numbers(self.figures), numbers(self.spec.plain["budget"])
        for each in charged:
            charge = dict(zip(self.figures, map(exact, each.charge), strict=True))
            parallel = {} if each.query.is_table else {"parallel": each.touched == 1}
            agree(RECORD, each.entry, {"charge": charge, **parallel}, f"{each.query.name}.")
        both = [sum((each.charge[i] for each in charged), Fraction(0)) for i in (0, 1)]
        within = total[0] <= caps[0] and total[1] <= caps[1] and total[1] < 1
        stated, most = list(map(exact, total)), list(map(exact, caps))
        need(within, RECORD, "charges", stated, f"at most {most}")
        names = {each.entry["definition"] for each in charged if each.delta > 0}
        if spec.composes_exactly and total[1] > 0:
            names = {"approximate"}
        kind = next((name for name in ("approximate", "probabilistic") if name in names), "pure")
        figures = dict(zip(self.figures, map(exact, total), strict=True))
        rule = {"rule": "pld-v1" if spec.composes_exactly else "basic-v1"}
        agree(RECORD, self.record["composition"], rule | figures, "composition.")
        agree(RECORD, self.record["guarantee"], {"definition": kind} | figures, "guarantee.")
        if list(total) != both:
            need(spec.composes_exactly, RECORD, "composition", total, both)
            same(RECORD, "composition.delta", total[1], caps[1])
            if whole is None:
                self.missing.append("the total: a profile that is not recomputed here")
                return
            self.check_delta(charged, whole)
        self.proved.append("the charges follow from the spec, and their total keeps its cap")

    # ---- Scopes that compose exactly (7.9) [22]

    def check_scope(self, whole: Losses | None) -> None:
        """The release fits the slot or the filter of its scope."""
        ledger, empirical = self.ledger, self.spec.is_empirical
        if ledger is None:
            return
        entry = ledger.entries[self.sequence]
        cap = ledger.caps[entry["scope"]]
        rule, own = cap.get("rule", "basic"), None if empirical else whole
        unproved = f"whether the release fits what it reserved in the scope {cap['scope']}"
        if rule == "renyi_filter" and own is None:
            self.missing.append(unproved)
        elif rule == "renyi_filter" and own is not None:
            for name, least in zip(("moment", "cut"), own.moment(cap["order"]), strict=True):
                need(least <= number(entry[name]), "ledger", name, entry[name], up(least, 30))
        if rule != "pld":
            return
        slot = next(slot for slot in cap["planned"] if slot["name"] == entry["slot"])
        same("ledger", "a declared slot", slot.get("declared", False), empirical)
        is_stated = "epsilon" in slot
        fits = is_stated and all(a <= b for a, b in zip(numbers(entry), numbers(slot), strict=True))
        need(fits or not empirical, "ledger", "slot", entry["slot"], "one of the stated ε and δ")
        if not fits and own and (is_stated or number(slot["profile"]["step"]) == own.step):
            values, bounds = own.values(), values_of(slot, own.step)
            length = max(len(values), len(bounds))
            values += values[-1:] * (length - len(values))
            bounds += bounds[-1:] * (length - len(bounds))
            # Another order of composition differs by roundings, far below any δ that counts.
            holds = all(a <= b + PARTS // 10**20 for a, b in zip(values, bounds, strict=True))
            need(holds, "ledger", "slot", "a profile below that of the release")
            # Between losses the chord of a worst case lies above it, unless its ε is one of them.
            fits = not is_stated or number(slot["epsilon"]) % own.step == 0
        if not fits:
            self.missing.append(unproved)
        if not plan_keeps(cap):
            self.missing.append(f"whether the plan of the scope {cap['scope']} keeps its cap")


# ---- The command line ---------------------------------------------------------------------------


def read_keys(words: list[str], kind: bytes) -> tuple[Key, ...]:
    """Each key is its text, or the file that holds it."""
    texts = (Path(word).read_text("utf-8") if Path(word).is_file() else word for word in words)
    return tuple(read_key(text, kind) for text in texts)


def show(line: str) -> None:
    """Print a line; what a file could hold to look like another is escaped."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(shown.encode(encoding, "backslashreplace").decode(encoding) + "\n")


FORMLESS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


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
    for folder in (options.public, options.auditor, options.ledger):
        if folder is not None and not folder.is_dir():
            parser.error(f"{folder}: no such folder")
    try:
        curators, witnesses = read_keys(options.trust, CURATOR), read_keys(options.witness, WITNESS)
        trust = Trust(curators, witnesses, options.ledger, options.require)
        release = Release(options.public, options.auditor, trust)
    except UsageError as error:
        parser.error(str(error))
    except (RefusedError, OSError, StopIteration, MemoryError, *FORMLESS) as error:
        formless = f"a file is not of its form: {type(error).__name__}: "
        show(f"refused: {'' if type(error) is RefusedError else formless}{error}")
        return 1
    lists = {"proved": release.proved, "tested": release.tested}
    for word, lines in (lists | {"not read": [*release.missing, *NEVER_READ]}).items():
        for line in lines:
            show(f"{word}: {line}")
    return 3 if release.missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
