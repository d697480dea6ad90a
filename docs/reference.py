"""Writes the pages of ``docs/reference/`` that are generated: ``python docs/reference.py``.

``spec.md`` and ``files.md`` come from the JSON Schemas in ``schemas/``, ``commands.md`` from the
command line itself. What a field means is said by the description of its object in the schema and,
field by field, in ``MEANINGS`` here; a field that nobody has described is an error, so that a new
one cannot be left out. A test holds the files on disk against :func:`pages`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from release.cli.main import app

PROJECT = Path(__file__).parent.parent
FOLDER = PROJECT / "docs" / "reference"

MEANINGS = """
# spec.yaml
Spec.spec: the version of this format
Spec.release: what is published and by whom
Spec.tables: the confidential tables, by name
Spec.privacy: whom the guarantee protects
Spec.budget: what the release may cost
Spec.keys: the public key set of each column that stands in a `by`
Spec.queries: what is asked
Spec.engine: what reads the tables, where it is not DuckDB on this machine
EngineSpec.backend: `duckdb`, or `spark` (a cluster's address is given with `--spark`)
EngineSpec.cluster: `inside`: a cluster may hold confidential rows, and laws that depend on them
ReleaseInfo.id: the name of the release and of its folder
ReleaseInfo.title: the title of the report
ReleaseInfo.curator: who publishes
ReleaseInfo.contact: where questions go
ReleaseInfo.purpose: what the release is for
ReleaseInfo.period: the period that the data are about
ReleaseInfo.license: the license of the released tables
Table.path: the file, relative to the spec; patterns such as `2013-*.parquet` are allowed
Table.columns: the columns that are read, each with its type; never guessed from the data
Table.relation: the table or view of a database file
Table.contract: the file of rules for the values of the table
Table.join: the table whose columns are brought in
Table.derive: columns that are computed from the same row
DerivedColumn.type: the type of the new column
DerivedColumn.sql: the expression
Join.table: the name of the other table, of the same privacy unit
Privacy.unit: the column that names the privacy unit
Privacy.neighbors: what two neighboring tables differ in
Privacy.max_rows_per_unit: the rows of a unit that a query reads at most
Privacy.max_cells_per_unit: the cells of a query in which a unit counts at most
Privacy.fixed: columns that are public facts of a unit, which neighbors share
Privacy.attribute: the sensitive column, for attribute neighbors only
Privacy.replacement: what a unit that comes in may hold, where differences are seen in the table
Budget.scope: the account of the ledger that pays
Budget.epsilon: the most that all charges together may be
Budget.delta: the same for δ
KeyRange.range: the first and the last integer
KeyFile.file: a text file, relative to the spec: the name of the column, then one key a line
name: the name of the query and of its files
title: a title for descriptions; without it the name
units: the unit of measure of the answers
table: the table that is read
by: the columns of the cells, each with a key set; `[]` for one answer
where: an SQL condition on one row
max_rows_per_unit: a lower bound than that of the release
sensitivity: where the sensitivity comes from; a query with a guarantee needs it
guarantee: the promise for one cell; a query without it is published within tuples only
loss: which errors the noise keeps small
mechanism: how the noise is made
CountQuery.kind: this kind
CountQuery.domain: an ordered domain, from 0 or more
ModeQuery.domain: the categories: a circle, ordered or nominal
PerUnitQuery.domain: the categories: a circle, ordered or nominal
BinnedQuery.bins: the bins of the answers
GridQuery.grid: the points of the answers
SqlQuery.domain: the answers there are, but no nominal ones
CountQuery.of: the privacy unit, to count units and not rows
ModeQuery.kind: this kind
ModeQuery.of: the column of the category
ModeQuery.weight: an integer column that is summed in place of counting rows
PerUnitQuery.kind: this kind
PerUnitQuery.of: the column of the unit's own category
BinnedQuery.kind: the statistic
BinnedQuery.of: the integer column
BinnedQuery.noise: where the noise is put: `on_answer`, on the code of the quantised answer
BinnedQuery.clamp: the bounds of one row; a sum needs them
GridQuery.kind: the statistic
GridQuery.of: the column of numbers
GridQuery.noise: where the noise is put: `on_answer`, on the code of the quantised answer
GridQuery.clamp: the bounds of one row, in units of the scale
TupleQuery.kind: this kind
TupleQuery.of: the names of its parts
SqlQuery.kind: this kind
SqlQuery.sql: the statement
Cyclic.cyclic: how many answers
Ordered.ordered: the bounds
OrderedRange.min: the least answer
OrderedRange.max: the largest answer
Nominal.nominal: the labels
Bins.bins: the range and the number of bins
BinRange.low: where the first bin begins
BinRange.high: where the last bin ends
BinRange.count: how many bins
Grid.grid: the points
GridRange.low: the least point
GridRange.high: the largest point
GridRange.step: the distance of two points
GridRange.scale: what one unit is in the column's own
GuaranteeSpec.definition: the definition under which δ is counted
GuaranteeSpec.epsilon: ε
GuaranteeSpec.delta: δ; 0 for a pure promise
DeclaredSensitivity.declared: the differences; the negative of each is added
TableLoss.table: the costs, that of no noise first
# laws
NoiseRecord.schema: the version of this format
NoiseRecord.query: the query that the law is for
NoiseRecord.group: the number of answers; of joint answers one number for each part
NoiseRecord.total: the sum of the weights, a power of two
NoiseRecord.directed: whether differences count in one direction only; false in every release
NoiseRecord.guarantee: the promise for one cell
NoiseRecord.recomputed: what the weights keep
NoiseRecord.design: how the law was found
NoiseRecord.accuracy: what a reader can expect
LawRecord.mechanism: this kind
LawRecord.weights: the weight of each noise value, in row-major order of the group
LawRecord.sensitivity: the differences that it is proved for, closed under negation
ChannelRecord.mechanism: this kind
ChannelRecord.rows: for each true answer the weight of each published answer
ChannelRecord.pairs: the codes of neighboring answers, both orders
Recomputed.delta_probabilistic: the largest δ of the probabilistic definition
Recomputed.delta_approximate: the largest δ of the approximate definition
Recomputed.epsilon_all_differences: the ε if any answer could turn into any other
DesignRecord.method: the way it was found, or `baseline` and its name
DesignRecord.loss: the loss of the spec
DesignRecord.objective: the expected loss under a uniform prior
DesignRecord.lower_bound: no law of this kind loses less
DesignRecord.bound: whether that is proved or a solver's word
DesignRecord.gap: the objective less the bound
DesignRecord.solver: the solver, if any
DesignRecord.notes: what else there is to say, such as what other mechanisms lose
Accuracy.p_exact: the chance that the answer is the true one
Accuracy.mean_absolute: the mean distance from the true answer, in codes
Accuracy.p_within_1: the chance of at most one code off
# release.json
ReleaseRecord.schema: the version of this format
ReleaseRecord.release_id: the name of the release and of its folder
ReleaseRecord.kind: `TEST` marks a run with chosen randomness; verifiers refuse it
ReleaseRecord.published: the day of publication
ReleaseRecord.title: from the spec
ReleaseRecord.curator: from the spec
ReleaseRecord.contact: from the spec
ReleaseRecord.purpose: from the spec
ReleaseRecord.period: from the spec
ReleaseRecord.license: from the spec
ReleaseRecord.privacy: whom the guarantee protects
ReleaseRecord.guarantee: the promise of the whole release
ReleaseRecord.queries: one entry for each query
ReleaseRecord.composition: the sum of the charges
ReleaseRecord.sampling: where the noise came from
ReleaseRecord.invariants: what was published without noise; empty
ReleaseRecord.post_processing: what was done to noisy answers; empty
ReleaseRecord.ledger: who paid
ReleaseRecord.software: the versions that made it
ReleaseRecord.withheld: what was left out, in words
ReleaseRecord.limits: what is asserted and cannot be checked from the files
PrivacyRecord.unit: the column that names the privacy unit
PrivacyRecord.neighbors: what two neighboring tables differ in
PrivacyRecord.adjacency_text: the same in words
PrivacyRecord.max_rows_per_unit: the bound of the spec
PrivacyRecord.fixed: the public facts of a unit
PrivacyRecord.enforced_by: how the bounds are kept, in words
ReleaseGuarantee.kind: for every table of the declaration, or for this very table
QueryRecord.name: from the spec
QueryRecord.kind: from the spec
QueryRecord.by: from the spec
QueryRecord.cells: how many answers are published
QueryRecord.domain: from the spec
QueryRecord.definition: of the promise for one cell
QueryRecord.epsilon: of the promise for one cell
QueryRecord.delta: of the promise for one cell
QueryRecord.parallel: whether a unit is in one cell only
QueryRecord.charge: the promise times the cells that one unit can touch
QueryRecord.guarantee_kind: for every table of the declaration, or for this very table
QueryRecord.sensitivity_source: where the differences come from
QueryRecord.mechanism: modular noise or a channel
QueryRecord.law: the file of the law, or the commitment to it
QueryRecord.output: the released table
LawFile.path: the file in the public folder
LawFile.sha256: its SHA-256
LawCommitment.commitment: HMAC-SHA-256 of the law's file under the key in `openings.json`
OutputFile.path: the file in the public folder
OutputFile.sha256: its SHA-256
OutputFile.rows: its rows, one for each cell
Composition.rule: charges add up
Sampling.source: the generator of the operating system
Sampling.method: the integer inverse of the cumulative weights
Sampling.seeded: true in a test run only
LedgerRecord.scope: the account
LedgerRecord.sequence: the number of the entry that reserved the charge
Software.dp_release: this program
Software.python: Python
Software.duckdb: DuckDB
Software.highs: HiGHS
# the auditor bundle
SensitivityRecord.schema: the version of this format
SensitivityRecord.query: the query
SensitivityRecord.source: where the differences come from
SensitivityRecord.neighbors: what two neighboring tables differ in
SensitivityRecord.group: the number of answers; of joint answers one number for each part
SensitivityRecord.sensitivity: the differences that were found, closed under negation
SensitivityRecord.apart: how far apart neighboring answers in order lie
OpeningsRecord.schema: the version of this format
OpeningsRecord.release_id: the release
OpeningsRecord.openings: by the path of the file in this half
Opening.key: 32 bytes
Opening.commitment: the value that stands in `release.json`
# the ledger
seq: the number of the entry
prev: the SHA-256 of the entry before
date: the day on which it was written
release_id: the release
scope: the account
epsilon: ε
delta: δ
Genesis.kind: this kind
Genesis.origin: the name of the ledger
Genesis.scopes: the caps of each scope
Genesis.keys: the first key
Reserve.kind: this kind
Commit.kind: this kind
Commit.attestation: the SHA-256 of the attestation
Abort.kind: this kind
Abort.drawn: whether noise may have been drawn; then the charge stays
Withdraw.kind: this kind
Policy.kind: this kind
Policy.cap: the caps from now on
Key.kind: this kind
Key.action: what is done with the key
Key.key: the public key
Key.signature: by a key that stays valid
ScopeCap.period: the cap of each period of a calendar
PeriodCap.every: the period
# who signed
Envelope.payloadType: what the payload is
Envelope.payload: the statement, in base64
Envelope.signatures: one signature
EnvelopeSignature.keyid: the SHA-256 of the public key
EnvelopeSignature.sig: the Ed25519 signature, in base64
Statement._type: the version of the statement
Statement.subject: the public files but the attestation, the proof and SHA256SUMS
Statement.predicateType: the version of what is stated
Statement.predicate: what is stated
Subject.name: the path of the file
Subject.digest: its hash
Digest.sha256: 64 hexadecimal digits
Predicate.sequence: the number of the entry that reserved the charge
GuaranteeRecord.definition: the definition under which δ is counted
definition: the definition under which δ is counted
"""

TEXTS = {
    r"^(0|[1-9][0-9]*)$": "whole number as text",
    r"^[0-9]+(\.[0-9]+|/[1-9][0-9]*)?$": "exact number as text",
    r"^([0-9]+(\.[0-9]+)?|inf)$": "exact number as text, or `inf`",
    r"^[0-9a-f]{64}$": "64 hexadecimal digits",
    r"^hmac-sha256:[0-9a-f]{64}$": "`hmac-sha256:` and 64 hexadecimal digits",
    r"^sha256:[0-9a-f]{64}$": "`sha256:` and 64 hexadecimal digits",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "date",
}
"""Texts of a certain shape, in words."""

EXACT = {"epsilon", "delta", "scale"}
"""Fields that the spec writes as exact numbers; their schema says text."""

FILES = (
    (
        "Mechanisms",
        "mechanism",
        "`mechanisms/<query>.json`; of instance-specific queries the auditor's.",
    ),
    ("The release", "release", "`release.json`: what was promised, charged and left out."),
    ("Differences", "sensitivity", "`sensitivity/<query>.json` of the auditor bundle."),
    ("Openings", "openings", "`openings.json` of the auditor bundle."),
    ("Ledger entries", "ledger-entry", "`ledger/00000000.json` and so on, one object a file."),
    ("Attestation", "attestation", "`attestation.dsse.json`: who signed for the public files."),
    ("Statement", "statement", "What the payload of the attestation is."),
)

SPEC_HEAD = """\
# The release spec

One YAML file. Whatever is not named here is refused, in one line that names the field and the
remedy. Exact numbers are written as text, such as `"0.001"` or `"1/3"`; a whole number may stand
without quotes. The same as a JSON Schema: `schemas/spec.schema.json`. What the fields do to the
guarantee is in [what a release protects](../privacy.md).
"""

FILES_HEAD = """\
# The files of a release

Every JSON file is canonical (RFC 8785): one form for one content. Exact numbers are text. The same
as JSON Schemas: `schemas/*.schema.json`. Unknown fields are refused.

```text
OUT/public/<id>/     data/<query>.parquet  mechanisms/<query>.json  spec.yaml  release.json
                     report.html  datapackage.json  registry.yaml  SHA256SUMS
                     attestation.dsse.json  ledger.proof            where there is a ledger
OUT/auditor/<id>/    mechanisms/<query>.json  sensitivity/<query>.json  openings.json
OUT/ledger/          00000000.json  00000001.json …  checkpoint
```

A released table has its key columns (text, sorted), `answer` (the label: text for categories, else
an integer) and `answer_code` (the number of the answer in its domain). A joint query has
`answer_<name>` for each part. `datapackage.json` and `registry.yaml` repeat what the other files
say, for other tools; see [what to do with the answers](../answers.md).
"""

COMMANDS_HEAD = """\
# Commands

Exit status: 0 done or verified, 1 refused or verification failed, 2 the spec or the call is wrong,
3 verified as far as the given bundles allow. Errors are one line on standard error.

`dp-release run` keeps the laws that it has solved, for queries whose differences are not seen in
the table, under `$DP_RELEASE_CACHE`, or in the user's cache folder; an empty value keeps none.
"""


def pages() -> dict[str, str]:
    """The text of each generated page by its file name."""
    return {"spec.md": _spec_page(), "files.md": _files_page(), "commands.md": _commands_page()}


def _meanings() -> dict[str, str]:
    lines = [line for line in MEANINGS.splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


_MEANINGS = _meanings()


def _meaning(model: str, field: str) -> str:
    places = [f"{model}.{field}", field]
    if model in ("LawRecord", "ChannelRecord"):
        places.insert(1, f"NoiseRecord.{field}")
    found = next((place for place in places if place in _MEANINGS), None)
    if found is None:
        raise LookupError(f"say in MEANINGS of docs/reference.py what {model}.{field} means")
    return _MEANINGS[found]


def _schema(name: str) -> dict[str, Any]:
    text = (PROJECT / "schemas" / f"{name}.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _objects(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The schema's objects and lists of values by name, those that are a whole file first."""
    found = dict(schema.get("$defs", {}))
    if "properties" in schema:
        return {schema["title"]: schema, **found}
    whole = [one["$ref"].rsplit("/", 1)[1] for one in schema["oneOf"]]
    return {name: found[name] for name in [*whole, *found]}


def _spec_page() -> str:
    objects = _objects(_schema("spec"))
    kinds = {name: one for name, one in objects.items() if "kind" in one.get("properties", {})}
    shared = set.intersection(*(set(one["properties"]) for one in kinds.values())) - {"kind"}
    any_kind = next(iter(kinds.values()))
    common = {
        **any_kind,
        "properties": {f: one for f, one in any_kind["properties"].items() if f in shared},
    }
    first = ["Spec", "ReleaseInfo", "Table", "DerivedColumn", "Join", "Privacy", "Budget"]
    later = sorted(set(objects) - set(first) - set(kinds))
    parts = [SPEC_HEAD]
    parts += [_section(name, objects[name]) for name in first]
    parts.append("## Every query\n\nWhat all kinds of query have.\n\n" + _table("", common))
    for name, one in kinds.items():
        own = {f: what for f, what in one["properties"].items() if f not in shared}
        parts.append(_section(name, {**one, "properties": own}))
    parts += [_section(name, objects[name]) for name in later]
    return "\n".join(parts)


def _files_page() -> str:
    parts, told = [FILES_HEAD], set()
    for title, name, about in FILES:
        parts.append(f"## {title}\n\n{about}\n")
        for model, one in _objects(_schema(name)).items():
            if model not in told:
                parts.append(_section(model, one, level=3))
            told.add(model)
    return "\n".join(parts)


def _section(name: str, schema: dict[str, Any], level: int = 2) -> str:
    lines = [f"{'#' * level} {name}", "", _prose(schema.get("description", "")), ""]
    if "enum" in schema:
        lines += ["One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".", ""]
        return "\n".join(lines)
    return "\n".join(lines) + "\n" + _table(name, schema)


def _prose(text: str) -> str:
    """A docstring as Markdown."""
    text = re.sub(r"\s*\(FORMAT\.md[^)]*\)", "", text)
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    return text.replace("``", "`").strip()


def _table(name: str, schema: dict[str, Any]) -> str:
    rows = ["| field | type | required | meaning |", "|---|---|---|---|"]
    required = schema.get("required", [])
    for field, what in schema["properties"].items():
        needed = "yes" if field in required else _default(what)
        kind = "exact number as text" if name and _is_exact(name, field, what) else _type(what)
        rows.append(f"| `{field}` | {kind} | {needed} | {_meaning(name, field)} |")
    return "\n".join(rows) + "\n"


def _is_exact(name: str, field: str, what: dict[str, Any]) -> bool:
    return field in EXACT and what.get("type") == "string" and "pattern" not in what


def _default(what: dict[str, Any]) -> str:
    default = what.get("default")
    return "no" if default in (None, [], {}) else f"no; `{default}`"


def _type(what: dict[str, Any]) -> str:
    """The type of a field in a few words, with links to the objects of the page."""
    if "$ref" in what:
        name = what["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for union in ("anyOf", "oneOf"):
        if union in what:
            kinds = [_type(one) for one in what[union] if one.get("type") != "null"]
            nothing = any(one.get("type") == "null" for one in what[union])
            optional = nothing and "default" not in what
            return " or ".join(dict.fromkeys(kinds)) + (" or null" if optional else "")
    if "const" in what:
        return f"`{what['const']}`"
    if "enum" in what:
        return " or ".join(f"`{value}`" for value in what["enum"])
    return _plain_type(what)


def _plain_type(what: dict[str, Any]) -> str:
    kind = what.get("type")
    if kind == "array":
        many = what.get("minItems"), what.get("maxItems")
        count = f"{many[0]} " if many[0] == many[1] and many[0] else ""
        return f"list of {count}{_type(what['items'])}"
    if kind == "object":
        values = [what.get("additionalProperties"), *what.get("patternProperties", {}).values()]
        kinds = [_type(one) for one in values if isinstance(one, dict)]
        return f"map to {' or '.join(kinds)}" if kinds else "map"
    if kind == "integer":
        low, high = what.get("minimum"), what.get("maximum")
        bounds = [f"at least {low}"] if low is not None else []
        bounds += [f"at most {high}"] if high is not None else []
        return "integer" + (f", {' and '.join(bounds)}" if bounds else "")
    if kind == "string":
        return _text_type(what)
    return {"boolean": "`true` or `false`"}.get(str(kind), str(kind))


def _text_type(what: dict[str, Any]) -> str:
    pattern = what.get("pattern")
    if pattern is None:
        return "date" if what.get("format") == "date" else "text"
    if pattern in TEXTS:
        return TEXTS[pattern]
    return _cell(f"text, `{pattern}`")


def _commands_page() -> str:
    root = typer.main.get_command(app)
    return "\n".join([COMMANDS_HEAD, *_commands("dp-release", root)])


def _commands(path: str, group: Any) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        full = f"{path} {name}"
        if hasattr(command, "commands"):
            yield f"## {full}\n\n{command.help}\n"
            yield from _commands(full, command)
        else:
            yield _command(full, command)


def _command(path: str, command: Any) -> str:
    text, _, example = command.help.partition("Example:")
    level = "##" if path.count(" ") == 1 else "###"
    lines = [f"{level} {path}", "", *(" ".join(one.split()) + "\n" for one in _paragraphs(text))]
    if example:
        lines += ["```text", " ".join(example.split()), "```", ""]
    rows = [_parameter(one) for one in command.params if "--help" not in one.opts]
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _paragraphs(text: str) -> list[str]:
    return [one for one in text.strip().split("\n\n") if one]


def _parameter(one: Any) -> str:
    if one.param_type_name == "argument":
        shown = one.name.upper()
    else:
        kind = one.type_descriptor.annotation
        value = "" if kind is bool else f" {_VALUES.get(getattr(kind, '__name__', ''), 'TEXT')}"
        shown = one.opts[0] + value
    told = [one.help or ""]
    if one.required:
        told.append("Required.")
    if one.multiple:
        told.append("May be given several times.")
    if isinstance(one.default, str | Path):
        told.append(f"Without it `{one.default}`.")
    if one.envvar:
        told.append(f"Else from `${one.envvar}`.")
    return f"| `{shown}` | {_cell(' '.join(told))} |"


def _cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")


_VALUES = {"Path": "PATH", "PosixPath": "PATH"}


def main() -> None:
    """Write the generated pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
