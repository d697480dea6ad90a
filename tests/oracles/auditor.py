"""An independent verifier of a release folder, written from the page of the file format alone.

It covers checks 1 to 14 of the page: files, forms, rules, keys, claims, tables, laws, opened laws,
bounds, charges, total and budget. It leaves out: the trees of conditions (check 5), signatures and
the ledger (18 to 24), estimates of tabulations (15 to 17), and audit.json (25).
"""

# Kept as its author wrote it, who was shown the page and sample folders, and no code.
# mypy: ignore-errors
# ruff: noqa: N818, PLR0911, PLW2901, SIM102

import datetime
import decimal
import hashlib
import hmac
import itertools
import json
import math
import re
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

SCALE = 10**40  # a rational near e^epsilon is an integer over SCALE
UNIT = 10**28  # masses of losses are integers in units of 1/UNIT
NAME = r"[a-z][a-z0-9_]{0,62}"
ID = r"[a-z0-9][a-z0-9._-]{0,99}"
FILE_NAME = r"[a-z0-9][a-z0-9_]{0,199}"
HASH = r"[0-9a-f]{64}"
EXACT = r"[0-9]+(\.[0-9]+)?|[0-9]+/[1-9][0-9]*"
WHOLE = r"0|[1-9][0-9]{0,399}"
TYPES = {"boolean", "integer", "number", "string", "date", "timestamp"}
DEFINITIONS = ["pure", "probabilistic", "approximate"]
INTEGERS = {"integers": {}}
SUMMED = {"sum", "mean"}
MALFORMED = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    OSError,
    struct.error,
    zlib.error,
)
PLAIN_FILES = {"release.json", "keys.json", "report.html", "datapackage.json", "spec.yaml"}


class Refused(Exception):
    """The first check that fails."""


def need(condition: bool, message: str) -> None:
    """Refuse with the message unless the condition holds."""
    if not condition:
        raise Refused(message)


# --- bytes -----------------------------------------------------------------------------------


def canonical(value: object) -> str:
    """The form of RFC 8785 of a value without fractions and null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        need(abs(value) < 2**53, f"files.forms: {value} is beyond 2^53 - 1")
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    need(isinstance(value, dict), "files.forms: null or a number that is no integer")
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"


def read_json(path: Path) -> dict:
    """One object, whose bytes are those that it would give anew."""
    data = path.read_bytes()
    try:
        value = json.loads(data.decode("utf-8"))
        again = canonical(value).encode("utf-8")
    except ValueError as error:
        raise Refused(f"files.forms: {path.name}: {error}") from error
    need(isinstance(value, dict) and again == data, f"files.forms: {path.name} is not canonical")
    return value


def fields(value: object, required: str, optional: str = "", where: str = "") -> dict:
    """An object with all required fields and no other than these and the optional ones."""
    need(isinstance(value, dict), f"files.forms: {where} is no object")
    missing = set(required.split()) - set(value)
    unknown = set(value) - set(required.split()) - set(optional.split())
    need(not missing, f"files.forms: {where} lacks {sorted(missing)}")
    need(not unknown, f"files.forms: {where} has the unknown {sorted(unknown)}")
    return value


def match(pattern: str, value: object, where: str) -> str:
    """A text of the pattern."""
    good = isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None
    need(good, f"files.forms: {where}: {value!r}")
    return value


def text(value: object, where: str) -> str:
    """A text for people: 1 to 10,000 characters without control characters."""
    good = isinstance(value, str) and 1 <= len(value) <= 10_000
    need(good and not re.search("[\x00-\x1f\x7f-\x9f]", value), f"files.forms: text {where}")
    return value


def exact(value: object, where: str = "a number") -> Fraction:
    """An exact number, as a rational."""
    match(EXACT, value, where)
    need(len(value) <= 400, f"files.forms: {where} is too long")
    return Fraction(value)


def whole(value: object, where: str) -> int:
    """A whole number as text."""
    return int(match(WHOLE, value, where))


def integer(value: object, low: int, high: int, where: str) -> int:
    """A JSON integer within bounds."""
    good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    need(good, f"files.forms: {where}: {value!r}")
    return value


def day(value: object, where: str) -> datetime.date:
    """A day of the Gregorian calendar."""
    match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value, where)
    try:
        return datetime.date.fromisoformat(value)
    except ValueError as error:
        raise Refused(f"files.forms: {where}: {value} is no day") from error


@cache
def exp_floor(epsilon: Fraction) -> int:
    """The integer part of SCALE times e^epsilon."""
    with decimal.localcontext() as context:
        context.prec = 120 + int(epsilon)
        power = decimal.Decimal(epsilon.numerator) / decimal.Decimal(epsilon.denominator)
        return int(power.exp() * SCALE)


def exp_below(epsilon: Fraction) -> int:
    """R of epsilon, below e^epsilon, over SCALE."""
    return max(SCALE, exp_floor(epsilon) - 1)


def exp_above(epsilon: Fraction) -> int:
    """The rational above e^epsilon, over SCALE."""
    return exp_floor(epsilon) + 2 if epsilon else SCALE


def loss_above(ratio: int) -> Fraction:
    """ln(1/rho), rounded upward."""
    with decimal.localcontext() as context:
        context.prec = 80
        loss = (decimal.Decimal(2**64) / decimal.Decimal(ratio)).ln()
    return Fraction(loss) + Fraction(1, 10**50)


# --- parquet ---------------------------------------------------------------------------------


class Compact:
    """A reader of Thrift's compact protocol; a struct is a dictionary by field number."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def byte(self) -> int:
        """The next byte."""
        self.position += 1
        return self.data[self.position - 1]

    def varint(self) -> int:
        """An unsigned number of seven bits a byte."""
        result = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            result |= (byte & 127) << shift
            if byte < 128:
                return result
        raise Refused("tables.form: a number of the footer is too long")

    def zigzag(self) -> int:
        """A signed number."""
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def value(self, kind: int) -> object:
        """A value of one of the kinds that Parquet uses."""
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            length = self.varint()
            self.position += length
            return self.data[self.position - length : self.position]
        if kind == 9:
            head = self.byte()
            length = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.value(head & 15) for _ in range(length)]
        need(kind == 12, "tables.form: an unknown kind in the footer")
        return self.struct()

    def struct(self) -> dict[int, object]:
        """A struct; each field once."""
        result: dict[int, object] = {}
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            need(field not in result, "tables.form: a field of the footer stands twice")
            result[field] = self.value(head & 15)
        return result


KINDS = {
    (6, 0): "string",
    (1, 6): "date",
    (1, None): "int32",
    (2, None): "int64",
    (5, None): "double",
}
WIDTHS = {"date": "<i", "int32": "<i", "int64": "<q", "double": "<d"}


@dataclass
class Table:
    """A released table: kinds by column in their order, optional columns, values, metadata."""

    kinds: dict[str, str]
    optional: set[str]
    values: dict[str, list]
    metadata: dict[str, str]


def present_flags(data: bytes, count: int) -> tuple[list[int], int]:
    """Definition levels of an optional column, and the bytes that they take."""
    length = struct.unpack_from("<I", data)[0]
    reader = Compact(data, 4)
    flags: list[int] = []
    while reader.position < 4 + length:
        head = reader.varint()
        if head & 1:
            for _ in range(head >> 1):
                byte = reader.byte()
                flags += [byte >> bit & 1 for bit in range(8)]
        else:
            flags += [reader.byte()] * (head >> 1)
    need(reader.position == 4 + length and len(flags) >= count, "tables.form: definition levels")
    need(max(flags[:count], default=0) <= 1, "tables.form: a definition level above 1")
    return flags[:count], 4 + length


def plain_values(data: bytes, kind: str, count: int) -> list:
    """All values of a page with plain encoding, which is read to its end."""
    values: list = []
    position = 0
    for _ in range(count):
        if kind == "string":
            length = struct.unpack_from("<I", data, position)[0]
            need(position + 4 + length <= len(data), "tables.form: a string beyond its page")
            values.append(data[position + 4 : position + 4 + length].decode("utf-8"))
            position += 4 + length
        else:
            values.append(struct.unpack_from(WIDTHS[kind], data, position)[0])
            position += struct.calcsize(WIDTHS[kind])
    need(position == len(data), "tables.form: unread bytes in a page")
    return values


def read_page(reader: Compact, kind: str, optional: bool) -> list:
    """The values of the data page of version 1 at the position of the reader."""
    header = reader.struct()
    need(header.get(1) == 0 and 4 not in header, "tables.form: not a data page of version 1")
    form = header[5]
    need((form[2], form[3], form[4]) == (0, 3, 3), "tables.form: the encoding is not plain")
    need(not form.get(5), "tables.form: statistics in a page")
    packed = reader.data[reader.position : reader.position + header[3]]
    reader.position += header[3]
    unpacker = zlib.decompressobj(31)
    data = unpacker.decompress(packed, header[2] + 1)
    need(unpacker.eof and not unpacker.unused_data, "tables.form: a page is not one gzip member")
    need(len(data) == header[2], "tables.form: the size of a page")
    if not optional:
        return plain_values(data, kind, form[1])
    flags, used = present_flags(data, form[1])
    found = iter(plain_values(data[used:], kind, sum(flags)))
    return [next(found) if flag else None for flag in flags]


def read_parquet(path: Path) -> Table:
    """A flat table in one row group, of which every byte is read."""
    data = path.read_bytes()
    need(len(data) > 12 and data[:4] == data[-4:] == b"PAR1", "tables.form: no Parquet file")
    start = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    need(start >= 4, "tables.form: the length of the footer")
    footer_reader = Compact(data, start)
    footer = footer_reader.struct()
    need(footer_reader.position == len(data) - 8, "tables.form: unread bytes in the footer")
    root, *elements = footer[2]
    need(root[5] == len(elements) and len(footer[4]) == 1, "tables.form: not flat in one group")
    table = Table({}, set(), {}, {})
    pages = Compact(data, 4)
    need(len(footer[4][0][1]) == len(elements), "tables.form: columns")
    for element, chunk in zip(elements, footer[4][0][1], strict=False):
        name = element[4].decode("utf-8")
        kind = KINDS.get((element[1], element.get(6)))
        need(kind is not None and 5 not in element, f"tables.form: the kind of {name}")
        need((10 in element) == (kind in ("string", "date")), f"tables.form: {name} has a type")
        need(element[3] in (0, 1) and name not in table.kinds, f"tables.form: column {name}")
        meta = chunk[3]
        need(not set(chunk) - {2, 3} and not {10, 11, 12, 14} & set(meta), f"tables.form: {name}")
        need(meta[4] == 2 and meta[9] == pages.position, f"tables.form: pages of {name}")
        need(meta[1] == element[1] and meta[3] == [element[4]], f"tables.form: chunk of {name}")
        values: list = []
        while len(values) < footer[3]:
            values += read_page(pages, kind, element[3] == 1)
        need(len(values) == footer[3] == meta[5], f"tables.form: the rows of {name}")
        table.kinds[name] = kind
        table.values[name] = values
        if element[3] == 1:
            table.optional.add(name)
    need(pages.position == start, "tables.form: unread bytes between the pages")
    for pair in footer.get(5, []):
        key = pair[1].decode("utf-8")
        need(key not in table.metadata, "tables.form: metadata stand twice")
        table.metadata[key] = pair[2].decode("utf-8")
    return table


# --- domains and laws ------------------------------------------------------------------------


def domain_size(domain: dict) -> int:
    """The number of answers N; the form of a domain is refused unless it is one of the page."""
    need(len(domain) == 1, "asked.rules: a domain has one kind")
    kind, form = next(iter(domain.items()))
    if kind == "ordered":
        fields(form, "min max", "", "ordered")
        return form["max"] - form["min"] + 1
    if kind == "integers":
        fields(form, "", "", "integers")
        return 2**53 - 1
    if kind == "cyclic":
        return integer(form, 2, 10**6, "cyclic")
    if kind == "nominal":
        need(len(set(form)) == len(form), "asked.rules: nominal answers differ")
        return len([text(label, "nominal") for label in form])
    if kind == "bins":
        fields(form, "low high count", "", "bins")
        need(form["low"] < form["high"], "asked.rules: bins ascend")
        return integer(form["count"], 2, 10**6, "bins")
    need(kind == "grid", f"asked.rules: the domain {kind}")
    fields(form, "low high step scale", "", "grid")
    good = form["step"] > 0 and (form["high"] - form["low"]) % form["step"] == 0
    need(good, "asked.rules: the step of a grid")
    return (form["high"] - form["low"]) // form["step"] + 1


def domain_label(domain: dict, code: int) -> int | str:
    """The label of a code."""
    kind, form = next(iter(domain.items()))
    if kind == "ordered":
        return form["min"] + code
    if kind == "integers":
        return code - (2**52 - 1)
    if kind == "cyclic":
        return code
    if kind == "nominal":
        return form[code]
    if kind == "bins":
        return form["low"] + -(-code * (form["high"] - form["low"]) // form["count"])
    return form["low"] + code * form["step"]


def code_width(domain: dict) -> Fraction:
    """The width of a code of bins or a grid."""
    if "grid" in domain:
        return Fraction(domain["grid"]["step"])
    bins = domain["bins"]
    return Fraction(bins["high"] - bins["low"], bins["count"])


def on_line(domain: dict) -> bool:
    """Whether the answers are on a line."""
    return not {"cyclic", "nominal"} & set(domain)


def excess(p: Fraction | int, q: Fraction | int, factor: int, definition: str) -> Fraction | int:
    """SCALE times what an outcome with the chances p and q adds to delta."""
    gain = p * SCALE - factor * q
    if gain <= 0:
        return 0
    return gain if definition == "approximate" else p * SCALE


@dataclass(frozen=True)
class Tail:
    """A tail: its period, and the ratio over 2^64."""

    period: int
    ratio: int

    @property
    def rho(self) -> Fraction:
        """The factor from one repetition to the next."""
        return Fraction(self.ratio, 2**64)


def read_ratio(value: object) -> int:
    """A ratio over 2^64."""
    ratio = whole(value, "ratio")
    need(1 <= ratio < 2**64, "mechanism.law: a ratio beyond its bounds")
    return ratio


class Noise:
    """Noise on the integers: runs of equal weights, perhaps with tails."""

    def __init__(self, form: dict) -> None:
        fields(form, "low lengths weights", "left right", "noise")
        self.lengths = [integer(n, 1, 2**53, "length") for n in form["lengths"]]
        self.weights = [whole(weight, "weight") for weight in form["weights"]]
        need(len(self.lengths) == len(self.weights) > 0, "mechanism.law: runs of the noise")
        pairs = itertools.pairwise(self.weights)
        need(all(a != b for a, b in pairs), "mechanism.law: neighboring runs are equal")
        self.low = integer(form["low"], -(2**53), 2**53, "low")
        self.starts = list(itertools.accumulate(self.lengths, initial=self.low))[:-1]
        self.high = self.low + sum(self.lengths) - 1
        self.total = sum(n * weight for n, weight in zip(self.lengths, self.weights, strict=False))
        need(power_of_two(self.total, 2**62), "mechanism.law: the total of the noise")
        self.left = self.read_tail(form.get("left"))
        self.right = self.read_tail(form.get("right"))
        self.last_left = self.low - 1 + (self.left.period if self.left else 0)
        self.first_right = self.high + 1 - (self.right.period if self.right else 0)
        need(self.last_left < self.first_right, "mechanism.law: the periods overlap")
        need(self.left is None or self.last_left <= 0, "mechanism.law: the left period")
        need(self.right is None or self.first_right >= 0, "mechanism.law: the right period")
        self.chances: dict[int, Fraction] = {}

    @staticmethod
    def read_tail(form: dict | None) -> Tail | None:
        """A tail from its form."""
        if form is None:
            return None
        fields(form, "period ratio", "", "tail")
        return Tail(integer(form["period"], 1, 2**53, "period"), read_ratio(form["ratio"]))

    def window(self, k: int) -> Fraction:
        """w[k]/T within the window."""
        run = max(i for i, start in enumerate(self.starts) if start <= k)
        return Fraction(self.weights[run], self.total)

    def at(self, k: int) -> Fraction:
        """The chance f(k)."""
        if k not in self.chances:
            self.chances[k] = self.chance(k)
        return self.chances[k]

    def chance(self, k: int) -> Fraction:
        """The chance f(k), worked out."""
        if self.right and k >= self.first_right:
            repeat, place = divmod(k - self.first_right, self.right.period)
            rho = self.right.rho
            return self.window(self.first_right + place) * (1 - rho) * rho**repeat
        if self.left and k <= self.last_left:
            repeat, place = divmod(self.last_left - k, self.left.period)
            rho = self.left.rho
            return self.window(self.last_left - place) * (1 - rho) * rho**repeat
        return self.window(k) if self.low <= k <= self.high else Fraction(0)

    def changes(self, low: int, high: int) -> set[int]:
        """All k from low to high at which f may differ from f(k - 1)."""
        points = set(self.starts) | {self.high + 1, self.first_right, self.last_left + 1}
        for start in [*self.starts, self.first_right]:
            if self.right and start >= self.first_right:
                points.update(range(start, high + 1, self.right.period))
        for end in [*(start - 1 for start in self.starts), self.last_left]:
            if self.left and end <= self.last_left:
                points.update(k + 1 for k in range(end, low - 2, -self.left.period))
        return {k for k in points if low <= k <= high}

    def add_up(self, low: int, high: int, shift: int, factor: int, definition: str) -> Fraction:
        """SCALE times what f(k) against f(k + shift) adds to delta for k from low to high."""
        points = self.changes(low, high) | {low}
        points |= {k - shift for k in self.changes(low + shift, high + shift)}
        ordered = [*sorted(points), high + 1]
        total = Fraction(0)
        for start, end in itertools.pairwise(ordered):
            part = excess(self.at(start), self.at(start + shift), factor, definition)
            total += (end - start) * part
        return total

    def delta(self, shift: int, epsilon: Fraction, definition: str) -> Fraction:
        """The delta of f(k) against f(k + shift) over all integers."""
        factor = exp_below(epsilon)
        first = self.first_right + max(0, -shift)
        last = self.last_left - max(0, shift)
        total = Fraction(0)
        if last + 1 < first:
            total += self.add_up(last + 1, first - 1, shift, factor, definition)
        if self.right:
            one = self.add_up(first, first + self.right.period - 1, shift, factor, definition)
            total += one / (1 - self.right.rho)
        if self.left:
            one = self.add_up(last - self.left.period + 1, last, shift, factor, definition)
            total += one / (1 - self.left.rho)
        return total / SCALE

    def unimodal(self) -> bool:
        """Whether f rises to a highest place and falls from there."""
        low = self.low - (self.left.period if self.left else 1)
        high = self.high + (self.right.period if self.right else 1)
        values = [self.at(k) for k in sorted(self.changes(low, high) | {low})]
        top = values.index(max(values))
        rises = all(a <= b for a, b in itertools.pairwise(values[: top + 1]))
        return rises and all(a >= b for a, b in itertools.pairwise(values[top:]))

    def largest_delta(self, distances: Iterable[int], claim: "Claim") -> Fraction:
        """The largest delta over all distances and both directions."""
        found = sorted(distances)
        if not found:
            return Fraction(0)
        need(found[-1] <= 10**6, "mechanism.guarantee: a distance above 10^6")
        if self.unimodal():
            found = found[-1:]
            period = min((tail.period for tail in (self.left, self.right) if tail), default=0)
            if period and found[0] > 256 * period:
                return self.far_delta(found[0], period, claim)
        shifts = [sign * s for s in found for sign in (1, -1)]
        return max(self.delta(s, claim.epsilon, claim.definition) for s in shifts)

    def far_delta(self, distance: int, period: int, claim: "Claim") -> Fraction:
        """0 for a distance of many periods; anything but a pure law is refused."""
        need(self.left == self.right, "mechanism.guarantee: the tails differ")
        points = sorted(self.changes(self.low - 2 * period, self.high + 2 * period))
        near = [k + move for k in points for move in (-period, 0, period)]
        pairs = [(self.at(k), self.at(k + move)) for k in near for move in (-period, period)]
        need(all(q > 0 for _, q in pairs), "mechanism.guarantee: the noise ends")
        most = max(p / q for p, q in pairs) ** -(-distance // period)
        need(most * SCALE <= exp_below(claim.epsilon), "mechanism.guarantee: far distances")
        return Fraction(0)

    def smooth(self, factor: Fraction) -> bool:
        """Whether f(k) is at most factor times f(k - 1) and f(k + 1), for all k."""
        periods = [tail.period for tail in (self.left, self.right) if tail]
        low = self.low - max(periods, default=0) - 1
        high = self.high + max(periods, default=0) + 1
        points = self.changes(low, high)
        steps = [(self.at(k - 1), self.at(k)) for k in points]
        return all(a <= factor * b and b <= factor * a for a, b in steps)


def power_of_two(number: int, most: int) -> bool:
    """Whether the number is a power of two up to the most."""
    return 0 < number <= most and number & (number - 1) == 0


@dataclass(frozen=True)
class Claim:
    """What a question or the total keeps."""

    definition: str
    epsilon: Fraction
    delta: Fraction


def read_claim(form: dict, where: str) -> Claim:
    """A definition with its two numbers."""
    epsilon = exact(form["epsilon"], where)
    delta = exact(form["delta"], where)
    need(form["definition"] in DEFINITIONS, f"files.forms: the definition of {where}")
    need(delta < 1, f"files.forms: the delta of {where}")
    need(form["definition"] != "pure" or delta == 0, f"files.forms: {where} is pure with a delta")
    return Claim(form["definition"], epsilon, delta)


def read_weights(values: list, count: int, where: str) -> list[int]:
    """A list of whole numbers of the length."""
    need(isinstance(values, list) and len(values) == count, f"mechanism.law: length of {where}")
    return [whole(value, where) for value in values]


def pair_delta(first: list[int], second: list[int], claim: Claim) -> Fraction:
    """The delta of two laws that are lists of weights with one total."""
    factor = exp_below(claim.epsilon)
    pairs = zip(first, second, strict=False)
    total = sum(excess(p, q, factor, claim.definition) for p, q in pairs)
    return Fraction(total, SCALE * sum(first))


def channel_delta(rows: list[list[int]], distances: Iterable[int], claim: Claim) -> Fraction:
    """The largest delta of two rows whose codes are a distance apart."""
    most = Fraction(0)
    for distance in distances:
        for a, b in zip(rows, rows[distance:], strict=False):
            most = max(most, pair_delta(a, b, claim), pair_delta(b, a, claim))
    return most


def modular_delta(weights: list[int], sizes: list[int], moves: Iterable, claim: Claim) -> Fraction:
    """The largest delta of f(eta) against f(eta + mu), over all differences mu."""
    most = Fraction(0)
    codes = list(itertools.product(*map(range, sizes)))
    place = {code: index for index, code in enumerate(codes)}
    for move in moves:
        moved = [
            tuple((c + m) % n for c, m, n in zip(code, move, sizes, strict=False)) for code in codes
        ]
        most = max(most, pair_delta(weights, [weights[place[code]] for code in moved], claim))
    return most


def check_ends(ends: dict, size: int) -> None:
    """The form of the ends of clamped noise."""
    fields(ends, "low high", "", "ends")
    for runs in ends.values():
        for run in runs:
            need(isinstance(run, list) and len(run) == 2, "mechanism.law: a run of the ends")
            integer(run[0], 1, size, "run")
            integer(run[1], -size, size, "shift")
        need(all(a[1] != b[1] for a, b in itertools.pairwise(runs)), "mechanism.law: equal shifts")
    low = sum(run[0] for run in ends["low"])
    high = sum(run[0] for run in ends["high"])
    need(low + high <= size, "mechanism.law: the ends overlap")
    need(size <= 2**22 or max(low, high) < 2**21, "mechanism.law: the ends are too long")
    for first, runs in ((0, ends["low"]), (size - high, ends["high"])):
        for count, shift in runs:
            inside = first + shift >= 0 and first + count - 1 + shift <= size - 1
            need(inside, "mechanism.law: a shift leads beyond the answers")
            first += count


def check_gap_table(law: dict, size: int, epsilon: Fraction) -> None:
    """Every change of one vote changes every weight by a factor of at most r(epsilon)."""
    cap = integer(law["cap"], 0, 2**15, "cap")
    states = list(itertools.combinations_with_replacement(range(cap + 1), size - 1))
    need(len(states) == len(law["weights"]) <= 2**15, "mechanism.law: states of a gap table")
    table: dict[tuple, dict[int, int]] = {}
    for state, row in zip(states, law["weights"], strict=False):
        weights = read_weights(row, size, "gap table")
        need(sum(weights) == 2**62 - 4, "mechanism.law: the sum of a gap table")
        pairs = list(zip((0, *state), weights, strict=False))
        need(len(set(pairs)) == len({0, *state}), "mechanism.law: equal gaps differ")
        table[state] = dict(pairs)

    def chances(scores: tuple[int, ...]) -> list[int]:
        """The weight of each category at the scores."""
        gaps = [min(cap, max(scores) - score) for score in scores]
        state = tuple(sorted(gaps)[1:])
        return [table[state][gap] for gap in gaps]

    steps = [s for s in itertools.product((-1, 0, 1), repeat=size) if abs(sum(s)) <= 1]
    steps = [s for s in steps if 1 <= sum(map(abs, s)) <= 2]
    for gaps in itertools.combinations_with_replacement(range(cap + 3), size - 1):
        scores = (0, *(-gap for gap in gaps))
        before = chances(scores)
        for step in steps:
            after = chances(tuple(a + b for a, b in zip(scores, step, strict=False)))
            for a, b in ((before, after), (after, before)):
                over = any(p * SCALE > exp_below(epsilon) * q for p, q in zip(a, b, strict=False))
                need(not over, "mechanism.guarantee: a gap table")


# --- bounds ----------------------------------------------------------------------------------


def closed_bound(q: int, step: int, count: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The closed form of a bound for the distances step, 2 step, up to count steps."""
    if epsilon == 0 or (delta > 0 and q > 0):
        return Fraction(0)
    x = Fraction(SCALE, exp_above(epsilon))
    geometric = [x / (1 - x), x / (1 - x) ** 2, x * (1 + x) / (1 - x) ** 3]

    def moment(power: int, t: int) -> Fraction:
        """The sum of k^power v(k) over k above 0."""
        total = Fraction(sum(k**power for k in range(1, t)))
        for i in range(1, count + 1):
            base = t - 1 - count + i
            for j in range(power + 1):
                total += math.comb(power, j) * base ** (power - j) * count**j * geometric[j]
        return total

    best = min(2 * moment(q, t) / (1 + 2 * moment(0, t)) for t in range(1, count + 1))
    best *= step**q
    if q == 2 and count > 1:
        best -= step**2 // 4
    return best * (1 - delta)


def priced_bound(q: int, prices: list, distances: range, claim: Claim) -> Fraction:
    """What a list of prices proves."""
    lists: dict[int, list[Fraction]] = {}
    for form in prices:
        fields(form, "distance prices", "", "prices")
        values = [Fraction(whole(y, "price"), 2**80) for y in form["prices"]]
        good = form["distance"] in distances and form["distance"] not in lists
        need(good, "mechanism.bound: a distance of the prices")
        lists[form["distance"]] = values
    lengths = {len(values) for values in lists.values()}
    need(len(lengths) == 1 and min(lengths) % 2 == 1, "mechanism.bound: lengths of the prices")
    reach = min(lengths) // 2
    need((reach + max(lists)) * len(lists) <= 10**6, "mechanism.bound: too many prices")
    factor = Fraction(exp_above(claim.epsilon), SCALE)
    most = {s: max(values) for s, values in lists.items()}

    def price(s: int, k: int) -> Fraction:
        """The price of k, or the largest one beyond the list."""
        return lists[s][k + reach] if abs(k) <= reach else most[s]

    least: Fraction | None = None
    for k in range(reach + max(lists) + 2):
        value = Fraction(k**q if k else 0)
        for s in lists:
            away = price(s, k - s) + price(s, -k - s)
            value += (price(s, k) + price(s, -k) - factor * away) / 2
        least = value if least is None else min(least, value)
    return least - claim.delta * sum(most.values())


def check_bound(bound: dict, loss: str, distances: range, claim: Claim) -> None:
    """No noise with this claim has a smaller loss than is stated."""
    fields(bound, "at_least", "prices", "bound")
    orders = {"error_rate": 0, "absolute": 1, "squared": 2}
    need(loss in orders, "mechanism.bound: a bound for such a loss")
    need(len(distances) > 0, "mechanism.bound: no distances")
    q = orders[loss]
    best = closed_bound(q, distances.start, len(distances), claim.epsilon, claim.delta)
    if "prices" in bound:
        best = max(best, priced_bound(q, bound["prices"], distances, claim))
    need(exact(bound["at_least"]) <= best, "mechanism.bound: it is above what is proved")


# --- composition -----------------------------------------------------------------------------


@dataclass
class Losses:
    """Masses in units of 1/UNIT at multiples of the step, and at infinity."""

    masses: dict[int, int]
    infinite: int


def ceil(number: Fraction) -> int:
    """The least integer that is not below."""
    return -(-number.numerator // number.denominator)


def losses_of(values: list[int], step: Fraction) -> Losses:
    """The law of losses with the values at 0, h, 2h and so on, by chords in e^loss."""
    below = Fraction(SCALE, exp_below(step))  # 1/r(h)
    above = Fraction(SCALE, exp_above(step))
    n = len(values) - 1
    falls = [values[i] - values[i + 1] for i in range(n)] + [0]
    masses: dict[int, int] = {}
    power = Fraction(1)
    for i in range(1, n + 1):
        power = Fraction(ceil(power * below * SCALE), SCALE)
        masses[i] = max(0, ceil((falls[i - 1] - falls[i] * above) / (1 - below)))
        masses[-i] = ceil(masses[i] * power)
    second = values[1] if n else 0
    middle = UNIT - ((1 + above) * values[0] - 2 * second * below) / (1 - above)
    masses[0] = max(0, ceil(middle))
    return Losses({i: m for i, m in masses.items() if m}, values[-1])


def compose(a: Losses, b: Losses) -> Losses:
    """The losses of two laws added; products are rounded up."""
    sums: dict[int, int] = {}
    for i, m in a.masses.items():
        for j, n in b.masses.items():
            sums[i + j] = sums.get(i + j, 0) + m * n
    masses = {i: -(-m // UNIT) for i, m in sums.items()}
    total_b = sum(b.masses.values()) + b.infinite
    infinite = a.infinite * total_b + sum(a.masses.values()) * b.infinite
    return Losses(masses, -(-infinite // UNIT))


def composed_delta(losses: Losses, step: Fraction, epsilon: Fraction) -> int:
    """What lies above epsilon, in units of 1/UNIT."""
    total = losses.infinite
    for i, m in losses.masses.items():
        if i * step > epsilon:
            total += m - m * SCALE // exp_above(i * step - epsilon)
    return total


def partitions(number: int, parts: int, most: int) -> Iterator[list[int]]:
    """All falling lists of at most so many positive integers with the sum."""
    if number == 0:
        yield []
    if number <= 0 or parts == 0:
        return
    for first in range(min(number, most), 0, -1):
        for rest in partitions(number - first, parts - 1, first):
            yield [first, *rest]


# --- questions -------------------------------------------------------------------------------

PUBLISHED_FIELDS = (
    "sensitivity declared guarantee share target noise loss costs mechanism parameters prior"
    " objective constraints"
)
KIND_FIELDS = {
    "count": ("domain", "of"),
    "mode": ("of domain", "count weight clamp"),
    "top": ("of domain k count counts histogram", "cell_size"),
    "sum": ("of domain", "clamp values"),
    "mean": ("of domain clamp", ""),
    "min": ("of domain clamp", "rank"),
    "max": ("of domain clamp", "rank"),
    "median": ("of domain clamp", ""),
    "quantiles": ("of domain at", "clamp cell_size"),
    "per_unit": ("of domain", ""),
    "tuple": ("of", ""),
    "sql": ("sql domain", ""),
}
STATISTIC_KINDS = {"mode", "top", "sum", "mean", "min", "max", "median", "quantiles"}
SELECTED = {"permute_and_flip", "exponential_mechanism"}
TOPS = {"top_histogram", "top_canonical", "top_peeled"}
LAW_FIELDS = {
    "modular": ("weights", ""),
    "channel": ("rows", ""),
    "integers": ("noise ends", "bound"),
    "two_categories": ("ratio", ""),
    "gap_table": ("cap weights", ""),
    "noisy_sums": ("noise", ""),
    "joint_quantiles": ("ratio", ""),
    "quantile_tree": ("ratio block", ""),
} | dict.fromkeys(SELECTED | TOPS, ("ratio", ""))
PROPORTIONAL = SELECTED | {"top_histogram", "joint_quantiles", "quantile_tree"}


@dataclass
class Question:
    """A published question, or a measured table, with what follows from it."""

    form: dict
    parts: list[dict]
    two_way: bool
    free_cells: int
    all_cells: int
    most_cells: int | None
    claim: Claim
    rows: int = 1

    @property
    def sizes(self) -> list[int]:
        """The group."""
        return [domain_size(part["domain"]) for part in self.parts]

    @property
    def line(self) -> bool:
        """Whether there is one part, on a line."""
        return len(self.parts) == 1 and on_line(self.parts[0]["domain"])

    @property
    def row_count(self) -> bool:
        """Whether it is one count of rows."""
        return self.form["kind"] == "count" and "of" not in self.form

    @property
    def shares(self) -> list[Fraction]:
        """The shares of quantiles; a median is the half."""
        return [exact(share, "share") for share in self.form.get("at", ["1/2"])]

    def steps(self, part: dict, rows: int) -> range:
        """The signed changes of the code of a part."""
        size = domain_size(part["domain"])
        if part["kind"] == "count":
            most = min(1 if "of" in part else rows, size - 1)
            return range(-most if self.two_way else 0, most + 1)
        if part["kind"] != "sum":
            return range(size)
        width = code_width(part["domain"])
        up, down = self.sum_reach(part, rows)
        high = min(ceil(up / width), size - 1)
        low = min(ceil(down / width), size - 1)
        stride = self.sum_stride(part, width, size)
        return range(-(low // stride * stride), high + 1, stride)

    def sum_reach(self, part: dict, rows: int) -> tuple[int, int]:
        """How far a unit moves a sum up and down."""
        low, high = part.get("clamp") or (min(part["values"]), max(part["values"]))
        up = rows * max(high, 0)
        down = rows * max(-low, 0)
        return (up + down, up + down) if self.two_way else (up, down)

    @staticmethod
    def sum_stride(part: dict, width: Fraction, size: int) -> int:
        """The stride s of the changes of a sum with given values."""
        if "values" not in part:
            return 1
        low = Fraction(next(iter(part["domain"].values()))["low"]) / width
        stride = math.gcd(*part["values"]) / width
        if not width.denominator == stride.denominator == low.denominator == 1 or stride < 1:
            return 1
        fits = low % stride == 0 and (low + size - 1) % stride == 0
        return int(stride) if fits else 1

    def distances(self, rows: int | None = None) -> range:
        """The distances on a line: multiples of the first."""
        steps = self.steps(self.parts[0], rows or self.rows)
        most = max(abs(steps[0]), abs(steps[-1]))
        return range(steps.step, most + 1, steps.step)

    def differences(self, rows: int) -> set[tuple[int, ...]]:
        """All changes in the group, with their negatives, but 0."""
        sizes = self.sizes
        found: set[tuple[int, ...]] = set()
        for move in itertools.product(*(self.steps(part, rows) for part in self.parts)):
            found.add(tuple(m % n for m, n in zip(move, sizes, strict=False)))
            found.add(tuple(-m % n for m, n in zip(move, sizes, strict=False)))
        return {move for move in found if any(move)}

    def set_rows(self) -> None:
        """The rows that are read of a unit."""
        self.rows = self.form["max_rows_per_unit"]
        if all(part["kind"] == "per_unit" for part in self.parts):
            self.rows = 1
        if self.form.get("sensitivity") == "declared":
            declared: set[tuple[int, ...]] = set()
            for move in self.form["declared"]:
                need(len(move) == len(self.parts), "asked.rules: the declared sensitivity")
                declared.add(tuple(m % n for m, n in zip(move, self.sizes, strict=False)))
                declared.add(tuple(-m % n for m, n in zip(move, self.sizes, strict=False)))
            while self.rows and not self.differences(self.rows) <= declared:
                self.rows -= 1
            need(self.rows > 0, "asked.rules: declared changes do not hold those of one row")

    @property
    def cells_in(self) -> int:
        """k, the cells that the rows of a unit lie in."""
        bounds = [self.free_cells, self.rows]
        return min(bounds if self.most_cells is None else [*bounds, self.most_cells])

    @property
    def touched(self) -> int:
        """t, the cells that a unit touches."""
        if all(part["kind"] == "per_unit" for part in self.parts):
            return 1
        if self.form["kind"] == "sql":
            return self.all_cells
        k = self.cells_in
        return min(self.free_cells, 2 * k) if self.two_way else k

    def category_weight(self, rows: int) -> tuple[int, int]:
        """W and m of a mode or top: what a unit adds to a category, and to how many."""
        size = self.sizes[0]
        if "weight" in self.form:
            return rows * max(abs(bound) for bound in self.form["clamp"]), 1
        if self.form["count"] == "units":
            return 1, min(rows, size)
        return rows, 1

    def spread(self, rows: int, two_way: bool) -> Fraction:
        """How much a unit moves the statistic."""
        kind = self.form["kind"]
        if kind in ("min", "max"):
            return Fraction(2 * rows)
        if kind == "median" or (kind == "quantiles" and len(self.shares) == 1):
            a, b = self.shares[0].as_integer_ratio()
            return Fraction(2 * rows * (b if two_way else max(a, b - a)))
        if kind == "quantiles":
            common = math.lcm(*(share.denominator for share in self.shares))
            ends = [Fraction(0), *self.shares, Fraction(1)]
            gap = min(b - a for a, b in itertools.pairwise(ends))
            return 2 * rows * (Fraction(common) if two_way else common - common * gap)
        if kind == "sum":
            low, high = self.form.get("clamp") or (
                min(self.form["values"]),
                max(self.form["values"]),
            )
            up, down = rows * max(high, 0), rows * max(-low, 0)
            return Fraction(up + down if two_way else max(up, down))
        if kind == "mean":
            low, high = self.form["clamp"]
            return Fraction(rows * (high - low) * (2 if two_way else 1))
        weight, categories = self.category_weight(rows)
        if kind == "mode":
            return Fraction(weight * (2 if two_way else 1))
        need(kind == "top", f"mechanism.law: {kind} has no statistic")
        many = min(2 * categories, self.sizes[0]) if two_way else categories
        return Fraction(weight * many)

    @property
    def on_statistic(self) -> bool:
        """Whether noise is on the statistic."""
        return self.form.get("noise") == "on_statistic"


def read_law(law: dict, question: Question) -> str:
    """The family of a law that fits the question; its fields are checked."""
    need(law.get("schema") == "dp-release/mechanism/v1", "mechanism.law: schema")
    family = law.get("family")
    need(family in LAW_FIELDS, f"mechanism.law: not proved, an unknown family {family!r}")
    required, optional = LAW_FIELDS[family]
    fields(law, "schema family " + required, "note " + optional, "a law")
    if "note" in law:
        text(law["note"], "note")
    need(
        question.on_statistic != (family in ("modular", "channel", "integers")),
        f"mechanism.law: {family} goes with other noise",
    )
    need(family not in ("channel", "integers") or question.line, "mechanism.law: no line")
    if question.on_statistic:
        check_statistic_family(family, question)
    named = question.form.get("mechanism")
    need(named not in LAW_FIELDS or named == family, "mechanism.law: another family was named")
    return family


def check_statistic_family(family: str, question: Question) -> None:
    """A family on the statistic goes with the kind of the question."""
    kind = question.form["kind"]
    several = kind == "quantiles" and len(question.shares) > 1
    if family in SELECTED:
        kinds = {"mode", "median", "min", "max"} | (set() if several else {"quantiles"})
        need(kind in kinds, f"mechanism.law: {family} with {kind}")
    elif family == "noisy_sums":
        need(kind in SUMMED, f"mechanism.law: {family} with {kind}")
    elif family in ("joint_quantiles", "quantile_tree"):
        need(several, f"mechanism.law: {family} with {kind}")
    elif family in TOPS:
        need(kind == "top", f"mechanism.law: {family} with {kind}")
        histogram = question.form["counts"] or question.form["histogram"]
        need(not histogram or family == "top_histogram", "mechanism.law: counts are published")
    else:
        clamp = question.form.get("clamp", [0, 1])
        fits = kind == "mode" and question.rows == 1 and question.two_way and clamp == [0, 1]
        size = question.sizes[0]
        categories = size == 2 if family == "two_categories" else 3 <= size <= 6
        need(fits and categories, f"mechanism.law: {family} with such a question")


def law_delta(
    law: dict,
    question: Question,
    distances: Iterable[int] | None = None,
    differences: Iterable | None = None,
    claim: Claim | None = None,
) -> Fraction:
    """The delta that a law keeps with the epsilon of the claim; 1 or a refusal if none."""
    claim = claim or question.claim
    family = law["family"]
    size = question.sizes[0]
    if family == "modular":
        weights = read_weights(law["weights"], math.prod(question.sizes), "weights")
        good = power_of_two(sum(weights), 10**78) and max(weights) < sum(weights)
        need(good, "mechanism.law: the weights of a modular law")
        if differences is None:
            differences = question.differences(question.rows)
        return modular_delta(weights, question.sizes, differences, claim)
    if distances is None and question.line:
        distances = question.distances()
    if family == "channel":
        need(size <= 1000 and len(law["rows"]) == size, "mechanism.law: rows of a channel")
        rows = [read_weights(row, size, "row") for row in law["rows"]]
        totals = {sum(row) for row in rows}
        need(len(totals) == 1 and power_of_two(min(totals), 2**62), "mechanism.law: totals")
        return channel_delta(rows, distances, claim)
    if family == "integers":
        check_ends(law["ends"], size)
        delta = Noise(law["noise"]).largest_delta(distances, claim)
        return Fraction(1) if claim.definition == "probabilistic" and delta else delta
    return statistic_delta(law, question, claim)


def statistic_delta(law: dict, question: Question, claim: Claim) -> Fraction:
    """The delta that a law on the statistic keeps: 0, or that of one noisy sum."""
    family = law["family"]
    spread = question.spread(question.rows, question.two_way)
    if family == "noisy_sums":
        noise = Noise(law["noise"])
        if question.form["kind"] == "sum":
            return noise.largest_delta(range(1, int(spread) + 1), claim)
        need(noise.left is not None and noise.left == noise.right, "mechanism.law: tails differ")
        need(noise.smooth(1 / noise.left.rho), "mechanism.guarantee: sums are not smooth")
        factor, ratio = spread, noise.left.ratio
    elif family == "gap_table":
        check_gap_table(law, question.sizes[0], claim.epsilon)
        return Fraction(0)
    else:
        factor, ratio = loss_factor(law, question, spread), read_ratio(law["ratio"])
    need(factor * loss_above(ratio) <= claim.epsilon, f"mechanism.guarantee: {family}")
    return Fraction(0)


def loss_factor(law: dict, question: Question, spread: Fraction) -> Fraction:
    """What ln(1/rho) is multiplied by, in a family with a ratio."""
    family = law["family"]
    doubled = 2 if question.two_way else 1
    if family == "two_categories":
        return Fraction(1)
    if family == "joint_quantiles":
        return 1024 * spread
    if family == "quantile_tree":
        block = integer(law["block"], 1, 2**53, "block")
        return Fraction(doubled * (2 if block > 1 else 1) * question.rows)
    if family in ("top_canonical", "top_peeled"):
        weight, many = question.category_weight(question.rows)
        k = question.form["k"]
        if family == "top_peeled":
            return Fraction(k * weight * doubled)
        return Fraction(weight * doubled * (1 if 1 in (many, k, question.sizes[0] - k) else 2))
    return spread


def in_proportion(law: dict | None, question: Question, spread: Fraction) -> bool:
    """Whether a law loses in proportion to what a unit moves."""
    if law is None or question.form.get("sensitivity") == "empirical":
        return False
    if law["family"] in PROPORTIONAL:
        return True
    if law["family"] == "noisy_sums":
        noise = Noise(law["noise"])
        if noise.right is None or not noise.smooth(1 / noise.right.rho):
            return False
        return spread * loss_above(noise.right.ratio) <= question.claim.epsilon
    if law["family"] != "integers" or not question.row_count:
        return False
    noise = Noise(law["noise"])
    small = question.claim.epsilon / spread
    return all(noise.delta(shift, small, "approximate") == 0 for shift in (1, -1))


def charge_of(law: dict | None, question: Question, kept: Fraction) -> tuple[Fraction, Fraction]:
    """The least charge of a question."""
    touched = Fraction(question.touched)
    if question.on_statistic or question.row_count:
        if question.on_statistic:
            spread = question.spread(question.rows, question.two_way)
            many = question.spread(question.rows, False)
            one = question.spread(1, False)
        else:
            spread = Fraction(question.distances()[-1])
            many = Fraction(min(question.rows, question.sizes[0] - 1))
            one = Fraction(1)
        moved = min(question.cells_in * many, question.rows * one) * (1 + question.two_way)
        if in_proportion(law, question, spread):
            touched = min(touched, moved / spread)
    return touched * question.claim.epsilon, question.touched * kept


def cell_values(law: dict, question: Question, distance: int, step: Fraction) -> list[int]:
    """Delta at 0, h, 2h and so on for a cell that a unit moves by the distance, rounded up."""
    one_sum = question.form["kind"] == "sum" and law["family"] == "noisy_sums"
    smooth_sum = one_sum and Noise(law["noise"]).unimodal()
    epsilon = question.claim.epsilon
    values: list[int] = []
    for j in range(min(2**14, int(100 / step)) + 1):
        loss = j * step
        if question.on_statistic and not smooth_sum:
            top = exp_above(epsilon)
            value = Fraction(max(0, top - exp_below(loss)), top + SCALE)
            value = value if loss < epsilon else Fraction(0)
            if law["family"] == "exponential_mechanism" and loss < epsilon:
                half = 1 - Fraction(SCALE, exp_above((epsilon - loss) / 2))
                value = min(value, half**2 / (1 - Fraction(SCALE, exp_below(epsilon))))
        else:
            claim = Claim("approximate", loss, Fraction(0))
            distances = range(1, distance + 1) if distance and question.line else None
            moves = None
            if distances and law["family"] == "modular":
                size = question.sizes[0]
                moves = {(sign * d % size,) for d in distances for sign in (1, -1)} - {(0,)}
            value = law_delta(law, question, distances, moves, claim)
        values.append(ceil(value * UNIT))
        if value == 0:
            break
    return values


def patterns(question: Question) -> list[list[int]]:
    """The lists of what one unit moves in the cells that it touches."""
    t, k, r = question.touched, question.cells_in, question.rows
    if question.on_statistic:
        return [[int(question.spread(r, question.two_way))] * t]
    if not question.row_count:
        return [[question.distances()[-1] if question.line else 0] * t]
    top = question.sizes[0] - 1
    singles = list(itertools.islice(partitions(r, k, r), 61))
    found = {tuple(min(x, top) for x in pattern) for pattern in singles}
    if question.two_way and len(singles) <= 60:
        pairs = itertools.product(found, repeat=2)
        found = {tuple(sorted(a + b, reverse=True)) for a, b in pairs}
        found = {pattern for pattern in found if len(pattern) <= question.free_cells} or set()
    if len(found) > 60 or len(singles) > 60 or not found:
        return [[min(r, top)] * t]
    return [list(pattern) for pattern in found]


def question_losses(law: dict, question: Question, step: Fraction) -> Losses:
    """The law of losses of one question, over all patterns."""
    cells: dict[int, Losses] = {}
    composed: list[Losses] = []
    for pattern in patterns(question):
        total = Losses({0: UNIT}, 0)
        for distance in pattern:
            if distance not in cells:
                cells[distance] = losses_of(cell_values(law, question, distance, step), step)
            total = compose(total, cells[distance])
        composed.append(total)
    if len(composed) == 1:
        return composed[0]
    most = max(max(losses.masses) for losses in composed)
    values = [max(composed_delta(x, step, j * step) for x in composed) for j in range(most + 1)]
    return losses_of(values, step)


# --- the release -----------------------------------------------------------------------------


@dataclass
class Release:
    """A release folder that is being checked; `proved` are the lines of what was proved."""

    folder: Path
    auditor: Path | None
    proved: list[str]
    form: dict
    keys: dict

    @property
    def asked(self) -> dict:
        """What was asked."""
        return self.form["asked"]

    @property
    def made(self) -> dict:
        """What was made."""
        return self.form["made"]

    @property
    def two_way(self) -> bool:
        """Whether the relation is symmetric."""
        return self.asked["privacy"]["neighbors"] != "add_remove"

    @property
    def published(self) -> list[dict]:
        """The published questions, in order."""
        found = self.asked.get("queries", [])
        return [form for form in found if {"guarantee", "share", "target"} & set(form)]

    def column_types(self, table: str) -> dict[str, str]:
        """The types of the columns of a table, joined and derived ones too."""
        form = self.asked["tables"][table]
        types = dict(form["columns"])
        if "join" in form:
            types |= self.asked["tables"][form["join"]["table"]]["columns"]
        return types | {name: one["type"] for name, one in form.get("derive", {}).items()}

    def question(self, form: dict, claim: Claim) -> Question:
        """A published question with its parts and cells."""
        parts = [form]
        if form["kind"] == "tuple":
            by_name = {one["name"]: one for one in self.asked["queries"]}
            parts = [by_name[name] for name in form["of"]]
        fixed = self.asked["privacy"].get("fixed", [])
        sizes = {column: len(self.keys["keys"][column]) for column in form["by"]}
        free = math.prod(n for column, n in sizes.items() if column not in fixed)
        most = self.asked["privacy"].get("max_cells_per_unit")
        total = math.prod(sizes.values())
        question = Question(form, parts, self.two_way, free, total, most, claim)
        question.set_rows()
        return question

    def measured_question(self, entry: dict) -> Question:
        """A measured table as a count of rows on all integers."""
        form = {"kind": "count", "domain": INTEGERS, "noise": "on_answer", "max_rows_per_unit": 1}
        claim = read_claim(entry, entry["name"])
        most = self.asked["privacy"].get("max_cells_per_unit")
        cells = entry["cells"]
        return Question(form, [form], self.two_way, cells, cells, most, claim)


def listed_files(folder: Path) -> list[str]:
    """All files of the folder that SHA256SUMS has to name; nothing else may be there."""
    found: list[str] = []
    for path in sorted(folder.iterdir()):
        need(not path.is_symlink(), f"files.sums: {path.name} is a link")
        if path.is_dir():
            need(path.name in ("data", "mechanisms"), f"files.sums: the folder {path.name}")
            inner = sorted(path.iterdir())
            need(len(inner) > 0, f"files.sums: {path.name} is empty")
            end = "parquet" if path.name == "data" else "json"
            for file in inner:
                good = file.is_file() and not file.is_symlink()
                good = good and re.fullmatch(rf"{FILE_NAME}\.{end}", file.name) is not None
                need(good, f"files.sums: {path.name}/{file.name}")
                found.append(f"{path.name}/{file.name}")
        elif path.name not in ("SHA256SUMS", "SHA256SUMS.sig", "ledger.proof"):
            need(path.name in PLAIN_FILES, f"files.sums: {path.name} is no file of a release")
            found.append(path.name)
    return sorted(found)


def check_sums(folder: Path) -> None:
    """Check 1: the folder holds what SHA256SUMS says, and nothing else."""
    need((folder / "SHA256SUMS").is_file(), "files.sums: no SHA256SUMS")
    found = listed_files(folder)
    lines = []
    for name in found:
        lines.append(f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n")
    same = (folder / "SHA256SUMS").read_bytes() == "".join(lines).encode("ascii")
    need(same, "files.sums: SHA256SUMS is not that of the files")
    read = [name for name in found if name.endswith((".json", ".parquet"))]
    size = sum((folder / name).stat().st_size for name in read if name != "datapackage.json")
    need(size <= 2**30, "files.sums: more than 2^30 bytes")


def check_release_form(form: dict) -> None:
    """Check 2: the fields of release.json that do not belong to a question."""
    fields(form, "schema kind published asked made software", "", "release.json")
    need(form["schema"] == "dp-release/release/v1", "files.forms: the schema of release.json")
    need(form["kind"] == "RELEASE", f"files.forms: a release of kind {form['kind']}")
    day(form["published"], "published")
    fields(form["software"], "dp_release source", "", "software")
    text(form["software"]["dp_release"], "dp_release")
    match(HASH, form["software"]["source"], "source")
    asked = fields(
        form["asked"], "release budget tables privacy", "queries tabulations acceptance", "asked"
    )
    fields(asked["release"], "id title curator contact purpose period license", "", "release")
    match(ID, asked["release"]["id"], "id")
    for name in set(asked["release"]) - {"id"}:
        text(asked["release"][name], name)
    budget = fields(asked["budget"], "scope epsilon delta", "slot composition", "budget")
    match(ID, budget["scope"], "scope")
    match(ID, budget.get("slot", "a"), "slot")
    need(budget.get("composition", "pld") in ("basic", "pld"), "files.forms: composition")
    exact(budget["epsilon"])
    exact(budget["delta"])
    for one in asked.get("acceptance", []):
        fields(one, "of figure at_most", "level margin", "acceptance")
        exact(one["at_most"])
    made = fields(form["made"], "queries total", "tabulations step ledger", "made")
    fields(made["total"], "definition epsilon delta", "", "total")
    if "ledger" in made:
        fields(made["ledger"], "entry", "", "ledger")
        integer(made["ledger"]["entry"], 0, 10**8, "entry")


def check_tables_asked(asked: dict) -> None:
    """Check 3: declared tables, the relation of neighbors and the bounds of a unit."""
    privacy = fields(
        asked["privacy"],
        "unit neighbors max_rows_per_unit",
        "fixed max_cells_per_unit attribute replacement",
        "privacy",
    )
    relation = privacy["neighbors"]
    need(relation in ("add_remove", "replace_one", "attribute"), "asked.rules: neighbors")
    need((relation == "attribute") == ("attribute" in privacy), "asked.rules: attribute")
    integer(privacy["max_rows_per_unit"], 1, 10**6, "max_rows_per_unit")
    integer(privacy.get("max_cells_per_unit", 1), 1, 10**6, "max_cells_per_unit")
    need(privacy.get("replacement", "domain") in ("observed", "domain"), "asked.rules: replacement")
    need("attribute" not in privacy or "replacement" not in privacy, "asked.rules: replacement")
    need(privacy.get("fixed") != [], "asked.rules: fixed is absent if there is none")
    need(privacy["unit"] not in privacy.get("fixed", []), "asked.rules: the unit is fixed")
    unit_types = set()
    for name, table in asked["tables"].items():
        fields(table, "path columns", "relation contract join derive", name)
        text(table["path"], "path")
        derived = table.get("derive", {})
        for one in derived.values():
            fields(one, "type sql tree", "", "derive")
        types = {*table["columns"].values(), *(one["type"] for one in derived.values())}
        need(types <= TYPES, f"asked.rules: types of {name}")
        columns = [*table["columns"], *derived]
        need(len({c.lower() for c in columns}) == len(columns), f"asked.rules: columns of {name}")
        unit_types.add(table["columns"].get(privacy["unit"]))
    need(len(unit_types) == 1 and unit_types <= {"string", "integer"}, "asked.rules: the unit")


def check_question_asked(release: Release, form: dict) -> None:
    """Check 3: the fields of one question."""
    kind = form.get("kind")
    need(kind in KIND_FIELDS, f"asked.rules: the kind {kind!r}")
    required, optional = KIND_FIELDS[kind]
    published = form in release.published
    allowed = f"title units where {optional} {PUBLISHED_FIELDS if published else ''}"
    own = "sensitivity noise" if published else ""
    fields(form, f"name kind table by max_rows_per_unit {required} {own}", allowed, "a question")
    match(NAME, form["name"], "the name of a question")
    privacy = release.asked["privacy"]
    need(form["table"] in release.asked["tables"], "asked.rules: an unknown table")
    types = release.column_types(form["table"])
    integer(form["max_rows_per_unit"], 1, privacy["max_rows_per_unit"], "max_rows_per_unit")
    need(len(set(form["by"])) == len(form["by"]), "asked.rules: a key column stands twice")
    unit_keys = [privacy["unit"]] if kind == "per_unit" else []
    need(privacy["unit"] not in form["by"] or form["by"] == unit_keys, "asked.rules: by the unit")
    need(all(types.get(c) in ("string", "integer", "date") for c in form["by"]), "asked.rules: by")
    for name in {"title", "units"} & set(form):
        text(form[name], name)
    if "where" in form:
        fields(form["where"], "sql tree", "", "where")
        text(form["where"]["sql"], "sql")
    if "domain" in form:
        size = domain_size(form["domain"])
        small = size <= 10**6 or kind == "count"
        need(size >= 2 and small, "asked.rules: the number of answers")
    if kind not in ("tuple", "sql", "count"):
        need(form["of"] in types, f"asked.rules: {form['of']} is no column")
    if kind == "count":
        need(form.get("of", privacy["unit"]) == privacy["unit"], "asked.rules: count of no unit")
        need({"ordered", "integers"} & set(form["domain"]), "asked.rules: the domain of a count")
    if kind == "mode":
        need(("count" in form) != ("weight" in form), "asked.rules: a mode has count or weight")
    if kind == "sum":
        need(("clamp" in form) != ("values" in form), "asked.rules: a sum has clamp or values")
    if published:
        check_published_asked(form, privacy)


def check_published_asked(form: dict, privacy: dict) -> None:
    """Check 3: what a published question asks for."""
    need(form["noise"] in ("on_answer", "on_statistic"), "asked.rules: noise")
    need(form["sensitivity"] in ("global", "empirical", "declared"), "asked.rules: sensitivity")
    need(("declared" in form) == (form["sensitivity"] == "declared"), "asked.rules: declared")
    losses = ("error_rate", "absolute", "squared", "noise_squared", "table")
    need(form.get("loss", "table") in losses, "asked.rules: loss")
    need(("costs" in form) == (form.get("loss") == "table"), "asked.rules: costs")
    if form["noise"] == "on_statistic":
        good = form["sensitivity"] == "global" and form["kind"] in STATISTIC_KINDS
        need(good, "asked.rules: noise on the statistic")
    always = form["kind"] in ("top", "quantiles")
    need(not always or form["noise"] == "on_statistic", "asked.rules: noise on the answer")
    if form["kind"] == "sql":
        good = form["sensitivity"] == "empirical" and not {"fixed", "attribute"} & set(privacy)
        need(good and privacy.get("replacement") != "domain", "asked.rules: sql")
    guarantee = form.get("guarantee")
    wanted = [name for name in ("guarantee", "share", "target") if name in form]
    with_least = guarantee is not None and "least" in guarantee
    need(wanted == (["guarantee", "target"] if with_least else wanted[:1]), "asked.rules: claims")
    if "share" in form:
        exact(form["share"], "share")
    if "target" in form:
        need(len(form["target"]) == 1, "asked.rules: target")
        need(set(form["target"]) <= {"error_rate", "absolute", "squared"}, "asked.rules: target")
    if guarantee is None:
        need(form["sensitivity"] != "empirical", "asked.rules: empirical without a guarantee")
        return
    fields(guarantee, "definition epsilon delta", "fallback least", "guarantee")
    need(guarantee.get("fallback", "approximate") == "approximate", "asked.rules: fallback")
    need(guarantee.get("least", "delta") in ("epsilon", "delta"), "asked.rules: least")
    claim = read_claim(guarantee, form["name"])
    need(claim.epsilon <= 100, "asked.rules: epsilon above 100")
    need(form["noise"] == "on_answer" or claim.epsilon > 0, "asked.rules: epsilon of 0")


def check_tuples(release: Release) -> None:
    """Check 3: tuples and their parts, and that names of questions differ."""
    forms = release.asked.get("queries", [])
    by_name = {form["name"]: form for form in forms}
    need(len(by_name) == len(forms), "asked.rules: two questions of one name")
    used: set[str] = set()
    for form in forms:
        if form["kind"] == "tuple":
            need(2 <= len(form["of"]) == len(set(form["of"])) <= 8, "asked.rules: a tuple")
            for name in form["of"]:
                part = by_name.get(name, {})
                same = all(part.get(f) == form[f] for f in ("table", "by", "max_rows_per_unit"))
                good = part.get("kind") not in ("tuple", "sql", "top", "quantiles")
                need(same and good, f"asked.rules: the part {name} of a tuple")
                used.add(name)
    for form in forms:
        need(form in release.published or form["name"] in used, "asked.rules: nobody's part")


def check_tabulation_asked(form: dict) -> None:
    """Check 3: the fields of a tabulation."""
    fields(
        form,
        "name table hierarchy attributes publish",
        "title units where groupings importance guarantee strategy constraints",
        "tabulation",
    )
    match(NAME, form["name"], "the name of a tabulation")
    fields(form["hierarchy"], "file levels", "", "hierarchy")
    levels = form["hierarchy"]["levels"]
    need(1 <= len(levels) <= 12, "asked.rules: 1 to 12 levels")
    classes = {}
    for attribute in form["attributes"]:
        fields(attribute, "name categories", "", "attribute")
        classes[attribute["name"]] = attribute["categories"]
    for grouping in form.get("groupings", []):
        fields(grouping, "name of classes", "", "grouping")
        found = []
        for one in grouping["classes"]:
            found += fields(one, "label categories", "", "class")["categories"]
        whole_attribute = sorted(map(str, classes[grouping["of"]]))
        need(sorted(map(str, found)) == whole_attribute, "asked.rules: the classes of a grouping")
    names = [*levels, *classes, *(one["name"] for one in form.get("groupings", []))]
    need(len({name.lower() for name in names}) == len(names), "asked.rules: names of a tabulation")
    need(math.prod(map(len, classes.values())) <= 2**20, "asked.rules: too many combinations")
    need(set(form["publish"]) == set(levels), "asked.rules: publish")
    for one in form.get("constraints", []):
        fields(one, *(("impossible",) if "impossible" in one else ("level margin file",)))


def is_ascending(values: list) -> bool:
    """Whether the values ascend, each once."""
    return all(a < b for a, b in itertools.pairwise(values))


def check_keys(release: Release) -> None:
    """Check 4: key sets and areas."""
    form = fields(release.keys, "schema keys", "areas", "keys.json")
    need(form["schema"] == "dp-release/keys/v1", "asked.keys: the schema of keys.json")
    forms = release.asked.get("queries", [])
    wanted = {column for one in forms for column in one["by"]}
    need(set(form["keys"]) == wanted, "asked.keys: the columns with key sets")
    for question in forms:
        types = release.column_types(question["table"])
        for column in question["by"]:
            values = form["keys"][column]
            kind = int if types[column] == "integer" else str
            need(all(type(value) is kind for value in values), f"asked.keys: the type of {column}")
            need(len(values) > 0 and is_ascending(values), f"asked.keys: the order of {column}")
            for value in values if types[column] == "date" else []:
                day(value, column)
        cells = math.prod(len(form["keys"][column]) for column in question["by"])
        need(cells <= 10**6, "asked.keys: more than 10^6 cells")
    tabulations = {one["name"]: one for one in release.asked.get("tabulations", [])}
    need(set(form.get("areas", {})) == set(tabulations), "asked.keys: areas")
    for name, areas in form.get("areas", {}).items():
        fields(areas, "levels rows", "", "areas")
        need(areas["levels"] == tabulations[name]["hierarchy"]["levels"], "asked.keys: levels")
        need(is_ascending(areas["rows"]) and areas["rows"], "asked.keys: the order of areas")
        for higher, lower in itertools.pairwise(zip(*areas["rows"], strict=False)):
            pairs = set(zip(higher, lower, strict=False))
            need(len(pairs) == len(set(lower)), "asked.keys: an area lies in two above")


def check_claims(release: Release) -> list[Question]:
    """Check 6: each published question claims what was asked; the questions are returned."""
    forms = release.published
    entries = release.made["queries"]
    need(
        [one.get("name") for one in entries] == [one["name"] for one in forms],
        "made.claims: the questions are not those that were asked",
    )
    questions = []
    for form, entry in zip(forms, entries, strict=False):
        other = "commitment" if form["sensitivity"] == "empirical" else "mechanism"
        fields(entry, f"name definition epsilon delta cells charge {other}", "", form["name"])
        fields(entry["charge"], "epsilon delta", "", "charge")
        if other == "commitment":
            match(f"hmac-sha256:{HASH}", entry["commitment"], "commitment")
        else:
            match(FILE_NAME, entry["mechanism"], "mechanism")
        question = release.question(form, read_claim(entry, form["name"]))
        need(entry["cells"] == question.all_cells, f"made.claims: the cells of {form['name']}")
        need(question.claim.epsilon <= 100, f"made.claims: epsilon of {form['name']}")
        if "guarantee" in form:
            check_guarantee(form["guarantee"], question)
        questions.append(question)
    return questions


def check_guarantee(guarantee: dict, question: Question) -> None:
    """The claim of a question is its guarantee, with its fallback and its least number."""
    asked = read_claim({k: guarantee[k] for k in ("definition", "epsilon", "delta")}, "guarantee")
    definition = asked.definition
    if "fallback" in guarantee and any(on_line(part["domain"]) for part in question.parts):
        if len(question.parts) > 1 or question.sizes[0] > 64:
            definition = "approximate"
    least = guarantee.get("least")
    claim = question.claim
    name = question.form["name"]
    need(claim.definition == definition, f"made.claims: the definition of {name}")
    for number in ("epsilon", "delta"):
        stated, wanted = getattr(claim, number), getattr(asked, number)
        good = stated <= wanted if least == number else stated == wanted
        need(good, f"made.claims: the {number} of {name}")


# --- released tables -------------------------------------------------------------------------


def share_suffix(share: str) -> str:
    """The suffix of the columns of one of several quantiles."""
    return re.sub(r"[./]", "_", share)


def label_parts(question: Question) -> list[tuple[str, dict]]:
    """The suffix and the domain of each label column."""
    form = question.form
    if form["kind"] == "tuple":
        return [(f"_{part['name']}", part["domain"]) for part in question.parts]
    if form["kind"] == "top":
        return [(f"_{i}", form["domain"]) for i in range(1, form["k"] + 1)]
    if form["kind"] == "quantiles" and len(form["at"]) > 1:
        return [(f"_{share_suffix(share)}", form["domain"]) for share in form["at"]]
    return [("", form["domain"])]


def drawn_columns(question: Question) -> dict[str, str]:
    """The columns of what was drawn, with their kinds."""
    form = question.form
    if form["kind"] == "top":
        names = [f"answer_code_{i}" for i in range(1, form["k"] + 1)]
        if form["counts"]:
            names += [f"noisy_count_{i}" for i in range(1, form["k"] + 1)]
        if form["histogram"]:
            codes = range(question.sizes[0])
            names += [f"noisy_count_{domain_label(form['domain'], code)}" for code in codes]
        return dict.fromkeys(names, "int64")
    if form["kind"] == "quantiles" and len(form["at"]) > 1:
        return {f"answer_code{suffix}": "int64" for suffix, _ in label_parts(question)}
    if question.on_statistic and form["kind"] in SUMMED:
        names = ["noisy_sum"] if form["kind"] == "sum" else ["noisy_above", "noisy_below"]
        return dict.fromkeys(names, "int64")
    return {"answer_code": "int32" if math.prod(question.sizes) <= 2**31 else "int64"}


def check_metadata(table: Table, release: Release, name: str, form: str) -> None:
    """The key-value metadata of a table."""
    own = {key: value for key, value in table.metadata.items() if key != "PANDAS_ATTRS"}
    wanted = {
        "release_id": release.asked["release"]["id"],
        "query": name,
        "format": f"dp-release/{form}/v1",
    }
    need(own == wanted, f"tables.form: the metadata of {name}")


def check_table(release: Release, question: Question) -> None:
    """Check 7: the released table of a question has its form, and labels are those of codes."""
    form = question.form
    name = form["name"]
    table = read_parquet(release.folder / "data" / f"{name}.parquet")
    check_metadata(table, release, name, "data")
    types = release.column_types(form["table"])
    key_kinds = {"integer": "int64", "string": "string", "date": "date"}
    kinds = {column: key_kinds[types[column]] for column in form["by"]}
    for suffix, domain in label_parts(question):
        kinds[f"answer{suffix}"] = "string" if "nominal" in domain else "int64"
    is_public = form["sensitivity"] != "empirical"
    if is_public and ("low" in table.kinds or "high" in table.kinds):
        real = form["kind"] == "mean" or "bins" in form.get("domain", {})
        kinds |= dict.fromkeys(("low", "high"), "double" if real else "int64")
    kinds |= drawn_columns(question)
    need(list(table.kinds.items()) == list(kinds.items()), f"tables.form: the columns of {name}")
    need(not table.optional, f"tables.form: optional columns of {name}")
    key_sets = []
    for column in form["by"]:
        values = release.keys["keys"][column]
        if types[column] == "date":
            epoch = datetime.date(1970, 1, 1)
            values = [(day(value, column) - epoch).days for value in values]
        key_sets.append(values)
    rows = list(itertools.product(*key_sets))
    found = (
        list(zip(*(table.values[column] for column in form["by"]), strict=False))
        if form["by"]
        else [()]
    )
    need(found == rows, f"tables.form: the keys of {name}")
    for row in range(len(rows)):
        check_row(question, {column: values[row] for column, values in table.values.items()})


def summed_code(question: Question, row: dict) -> int:
    """The code that follows from noisy sums."""
    form = question.form
    domain = next(iter(form["domain"].values()))
    if form["kind"] == "sum":
        value = Fraction(row["noisy_sum"])
    else:
        low, high = form["clamp"]
        above, below = row["noisy_above"], row["noisy_below"]
        width = high - low
        value = Fraction(low + high, 2)
        value += Fraction(width * (above - below), 2 * max(above + below, width))
        value = max(Fraction(low), min(Fraction(high), value))
    place = (value - domain["low"]) / code_width(form["domain"])
    code = math.floor(place + (Fraction(1, 2) if "grid" in form["domain"] else 0))
    return max(0, min(question.sizes[0] - 1, code))


def check_row(question: Question, row: dict) -> None:
    """Codes are of the domain, labels are those of the codes, and drawn numbers fit."""
    form = question.form
    name = form["name"]
    labels = label_parts(question)
    if "noisy_sum" in row or "noisy_above" in row:
        codes = [summed_code(question, row)]
    elif f"answer_code{labels[0][0]}" in row:
        codes = [row[f"answer_code{suffix}"] for suffix, _ in labels]
    else:
        joint, codes = row["answer_code"], []
        for size in reversed(question.sizes):
            joint, code = divmod(joint, size)
            codes.insert(0, code)
        need(joint == 0, f"tables.form: a code of {name}")
    for code, (suffix, domain) in zip(codes, labels, strict=False):
        need(0 <= code < domain_size(domain), f"tables.form: a code of {name}")
        same = row[f"answer{suffix}"] == domain_label(domain, code)
        need(same, f"tables.form: a label of {name} is not that of its code")
    if form["kind"] == "quantiles":
        order = sorted(zip(question.shares, codes, strict=False))
        good = all(a[1] <= b[1] for a, b in itertools.pairwise(order))
        need(good, f"tables.form: quantiles of {name} descend")
    if form["kind"] == "top":
        check_top_row(question, row, codes)


def check_top_row(question: Question, row: dict, codes: list[int]) -> None:
    """Codes of a top differ; counts do not rise; a histogram gives its codes."""
    form = question.form
    name = form["name"]
    need(len(set(codes)) == len(codes), f"tables.form: codes of {name} are equal")
    if form["counts"]:
        counts = [row[f"noisy_count_{i}"] for i in range(1, form["k"] + 1)]
        need(counts == sorted(counts, reverse=True), f"tables.form: counts of {name} rise")
    if form["histogram"]:
        labels = [domain_label(form["domain"], code) for code in range(question.sizes[0])]
        order = sorted(range(len(labels)), key=lambda c: (-row[f"noisy_count_{labels[c]}"], c))
        need(codes == order[: form["k"]], f"tables.form: {name} does not follow its histogram")


def tabulation_names(form: dict) -> dict[str, list[str]]:
    """The attributes and groupings in their order, each with its labels."""
    names: dict[str, list[str]] = {}
    for attribute in form["attributes"]:
        categories = attribute["categories"]
        names[attribute["name"]] = [str(category) for category in categories]
        for grouping in form.get("groupings", []):
            if grouping["of"] == attribute["name"]:
                first = {
                    one["label"]: min(map(categories.index, one["categories"]))
                    for one in grouping["classes"]
                }
                names[grouping["name"]] = sorted(first, key=first.get)
    return names


def check_tabulated(
    release: Release,
    form: dict,
    file: str,
    level: str,
    margins: list[list[str]],
    numbers: dict[str, str],
    together: bool,
) -> int:
    """Check 7: a table of a tabulation has its columns and rows; their number is returned."""
    table = read_parquet(release.folder / "data" / f"{file}.parquet")
    check_metadata(table, release, file, "tabulation")
    areas = release.keys["areas"][form["name"]]
    depth = areas["levels"].index(level) + 1
    names = tabulation_names(form)
    used = [name for name in names if any(name in margin for margin in margins)]
    kinds = dict.fromkeys([*areas["levels"][:depth], *used], "string") | numbers
    need(list(table.kinds.items()) == list(kinds.items()), f"tables.form: the columns of {file}")
    need(table.optional == (set(used) if together else set()), f"tables.form: columns of {file}")
    rows = []
    for area in sorted({tuple(row[:depth]) for row in areas["rows"]}):
        for margin in margins:
            lists = [names[name] if name in margin else [None] for name in used]
            rows += [area + labels for labels in itertools.product(*lists)]
    need(len(rows) <= 2**25, f"tables.form: too many rows of {file}")
    found = list(zip(*(table.values[name] for name in kinds if name not in numbers), strict=False))
    need(found == rows, f"tables.form: the rows of {file}")
    return len(rows)


def check_tabulation(release: Release, form: dict, made: dict) -> list[tuple[Question, dict]]:
    """Checks 6 and 7 of a tabulation; its measured tables and their entries are returned."""
    fields(made, "name measured levels", "declared", "a tabulation that was made")
    need(made["name"] == form["name"], "made.claims: the tabulations are not those asked for")
    levels = form["hierarchy"]["levels"]
    need([one.get("level") for one in made["levels"]] == levels, "made.claims: levels")
    numbers = {
        "answer": "double",
        "rounded": "int64",
        "low": "int64",
        "high": "int64",
        "standard_error": "double",
    }
    for one in made["levels"]:
        fields(one, "level file", "", "level")
        margins = form["publish"][one["level"]]
        check_tabulated(release, form, one["file"], one["level"], margins, numbers, True)
    declared = [one for one in form.get("constraints", []) if "level" in one]
    need(("declared" in made) == bool(declared), "made.claims: declared numbers")
    if declared:
        margin = declared[0]["margin"]
        check_tabulated(
            release, form, made["declared"], levels[0], [margin], {"count": "int64"}, False
        )
    found = []
    for entry in made["measured"]:
        own = "name definition epsilon delta cells charge mechanism level margin"
        fields(entry, own, "", "a measured table")
        fields(entry["charge"], "epsilon delta", "", "charge")
        names = [name for name in tabulation_names(form) if name in entry["margin"]]
        need(names == entry["margin"], "made.claims: the order of a margin")
        published = [set(margin) for margin in form["publish"][entry["level"]]]
        numbers = {"measured": "int64"}
        if set(names) not in published:
            numbers["estimate"] = "double"
        file = entry["name"]
        cells = check_tabulated(release, form, file, entry["level"], [names], numbers, False)
        need(cells == entry["cells"], f"made.claims: the cells of {file}")
        found.append((release.measured_question(entry), entry))
    return found


# --- laws, charges, total --------------------------------------------------------------------


def check_law(release: Release, question: Question, entry: dict) -> tuple[dict, Fraction]:
    """Checks 8, 9 and 11 of a public law: the law, and the delta that it keeps."""
    name = entry["name"]
    law = read_json(release.folder / "mechanisms" / f"{entry['mechanism']}.json")
    read_law(law, question)
    kept = law_delta(law, question)
    need(kept <= question.claim.delta, f"mechanism.guarantee: {name} does not keep its claim")
    if "bound" in law:
        loss = question.form.get("loss", "error_rate")
        check_bound(law["bound"], loss, question.distances(), question.claim)
    release.proved.append(
        f"mechanism.guarantee: {name} keeps {question.claim.definition}"
        f" epsilon {question.claim.epsilon} with {law['family']}"
    )
    return law, kept


def check_opened(release: Release, question: Question, entry: dict) -> None:
    """Check 10: the auditor's folder opens a committed law, which keeps the claim."""
    name = entry["name"]
    path = release.auditor / f"{name}.json" if release.auditor else None
    if path is None or not path.is_file():
        release.proved.append(f"mechanism.opened: missing: the law of {name}")
        return
    opened = fields(read_json(path), "schema release_id key law sensitivity", "", path.name)
    need(opened["schema"] == "dp-release/opened/v1", f"mechanism.opened: the schema of {name}")
    own = opened["release_id"] == release.asked["release"]["id"]
    need(own, f"mechanism.opened: {name} is of another release")
    secret = bytes.fromhex(match(HASH, opened["key"], "key"))
    inside = canonical({"law": opened["law"], "sensitivity": opened["sensitivity"]})
    digest = hmac.new(secret, inside.encode("utf-8"), hashlib.sha256).hexdigest()
    same = entry["commitment"] == f"hmac-sha256:{digest}"
    need(same, f"mechanism.opened: {name} is not what was committed")
    family = read_law(opened["law"], question)
    form = fields(opened["sensitivity"], "", "differences distances", "sensitivity")
    need(
        set(form) == {"differences" if family == "modular" else "distances"},
        f"mechanism.opened: the sensitivity of {name}",
    )
    sizes = question.sizes
    if family == "modular":
        moves = {tuple(move) for move in form["differences"]}
        good = all(len(m) == len(sizes) and any(m) for m in moves)
        good = good and all(0 <= c < n for move in moves for c, n in zip(move, sizes, strict=False))
        good = good and moves == {
            tuple(-c % n for c, n in zip(m, sizes, strict=False)) for m in moves
        }
        need(good, f"mechanism.opened: the differences of {name}")
        kept = law_delta(opened["law"], question, None, moves)
    else:
        steps = [integer(s, 1, sizes[0] - 1, "distance") for s in form["distances"]]
        kept = law_delta(opened["law"], question, steps)
    need(kept <= question.claim.delta, f"mechanism.opened: {name} does not keep its claim")
    release.proved.append(f"mechanism.opened: {name} keeps its claim for its opened sensitivity")


def check_charge(question: Question, entry: dict, law: dict | None, kept: Fraction) -> Claim:
    """Check 12: a charge is at least what the question costs."""
    least = charge_of(law, question, kept)
    epsilon = exact(entry["charge"]["epsilon"])
    delta = exact(entry["charge"]["delta"])
    need(epsilon >= least[0], f"charges.query: the charge of {entry['name']} is below {least[0]}")
    need(delta >= least[1], f"charges.query: the delta of {entry['name']} is below {least[1]}")
    return Claim(question.claim.definition, epsilon, delta)


def composes(release: Release) -> bool:
    """Whether losses may be composed."""
    several = any({"share", "target"} & set(form) for form in release.published)
    pld = release.asked["budget"].get("composition") == "pld"
    return several or pld or bool(release.asked.get("tabulations"))


def check_total(release: Release, found: list[tuple[Question, dict | None, Claim]]) -> None:
    """Check 13: the total is at least the sum of the charges, or what the losses compose to."""
    total = read_claim(release.made["total"], "total")
    with_delta = [charge.definition for _, _, charge in found if charge.delta > 0]
    weakest = max(map(DEFINITIONS.index, with_delta), default=0)
    need(DEFINITIONS.index(total.definition) >= weakest, "charges.total: the definition")
    need("step" not in release.made or composes(release), "charges.total: a step for nothing")
    epsilon = sum((charge.epsilon for _, _, charge in found), Fraction(0))
    delta = sum((charge.delta for _, _, charge in found), Fraction(0))
    if total.epsilon >= epsilon and total.delta >= delta:
        release.proved.append(f"charges.total: the charges add up to {epsilon} and {delta}")
        return
    good = composes(release) and "step" in release.made
    need(good, f"charges.total: it is below the sum {epsilon}, {delta}")
    need(total.definition == "approximate" or total.delta == 0, "charges.total: the definition")
    step = exact(release.made["step"], "step")
    need(step > 0, "charges.total: the step")
    left_epsilon, left_delta = total.epsilon, total.delta
    losses = Losses({0: UNIT}, 0)
    for question, law, charge in found:
        if law is None:
            left_epsilon -= charge.epsilon
            left_delta -= charge.delta
        else:
            losses = compose(losses, question_losses(law, question, step))
    need(left_epsilon >= 0 and left_delta >= 0, "charges.total: empirical questions cost more")
    composed = Fraction(composed_delta(losses, step, left_epsilon), UNIT)
    need(composed <= left_delta, f"charges.total: the losses compose to delta {float(composed)}")
    release.proved.append(f"charges.total: the losses compose to delta {float(composed)}")


def check_budget(release: Release) -> None:
    """Check 14: the total is at most the budget."""
    total = release.made["total"]
    budget = release.asked["budget"]
    for number in ("epsilon", "delta"):
        need(exact(total[number]) <= exact(budget[number]), f"charges.budget: {number}")
    release.proved.append("charges.budget: the total is at most the budget")


def check_names(release: Release) -> None:
    """The files of data and mechanisms are exactly those that the release names."""
    entries = list(release.made["queries"])
    data = [entry["name"] for entry in entries]
    for made in release.made.get("tabulations", []):
        entries += made["measured"]
        data += [entry["name"] for entry in made["measured"]]
        data += [level["file"] for level in made["levels"]]
        data += [made["declared"]] if "declared" in made else []
    laws = {entry["mechanism"] for entry in entries if "mechanism" in entry}
    need(len(set(data)) == len(data), "files.sums: two tables of one name")
    wanted = {f"data/{name}.parquet" for name in data}
    wanted |= {f"mechanisms/{name}.json" for name in laws}
    found = {name for name in listed_files(release.folder) if "/" in name}
    need(found == wanted, f"files.sums: {sorted(found ^ wanted)} too few or too many")
    proof = (release.folder / "ledger.proof").exists()
    need(proof == ("ledger" in release.made), "files.sums: ledger.proof")


def check_all(folder: Path, auditor: Path | None) -> list[str]:
    """All checks in the order of the page."""
    check_sums(folder)
    release = Release(
        folder,
        auditor,
        ["files.sums"],
        read_json(folder / "release.json"),
        read_json(folder / "keys.json"),
    )
    check_release_form(release.form)
    check_names(release)
    check_tables_asked(release.asked)
    for form in release.asked.get("queries", []):
        check_question_asked(release, form)
    check_tuples(release)
    for form in release.asked.get("tabulations", []):
        check_tabulation_asked(form)
    check_keys(release)
    questions = check_claims(release)
    for question in questions:
        check_table(release, question)
    pairs = list(zip(questions, release.made["queries"], strict=False))
    asked, made = release.asked.get("tabulations", []), release.made.get("tabulations", [])
    need(len(asked) == len(made), "made.claims: the tabulations are not those asked for")
    for form, one in zip(asked, made, strict=False):
        pairs += check_tabulation(release, form, one)
    release.proved += ["files.forms", "asked.rules", "asked.keys", "made.claims", "tables.form"]
    found = []
    for question, entry in pairs:
        law, kept = None, question.claim.delta
        if "commitment" in entry:
            check_opened(release, question, entry)
        else:
            law, kept = check_law(release, question, entry)
        found.append((question, law, check_charge(question, entry, law, kept)))
    release.proved.append("charges.query")
    check_total(release, found)
    check_budget(release)
    return release.proved


def check(folder: Path, auditor: Path | None = None) -> list[str]:
    """Lines of what is proved of a release; Refused at the first check that fails."""
    try:
        return check_all(folder, auditor)
    except MALFORMED as error:
        raise Refused(f"files.forms: malformed: {error!r}") from error


def main(arguments: list[str]) -> int:
    """The command: 0 proved, 1 refused, 2 wrong call, 5 a committed law was not opened."""
    if len(arguments) not in (1, 2):
        sys.stderr.write("usage: auditor.py FOLDER [AUDITOR]\n")
        return 2
    try:
        lines = check(*map(Path, arguments))
    except Refused as refusal:
        sys.stdout.write(f"refused: {refusal}\n")
        return 1
    sys.stdout.write("\n".join(lines) + "\n")
    return 5 if any("missing" in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
