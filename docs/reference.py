"""Generates the pages of ``docs/reference/``: ``python docs/reference.py``.

The head of a page, down to :data:`MARK`, is written by hand. Below it ``spec.md`` follows from its
JSON Schema, where the models' own descriptions stand, the pages of ``commands/``, one a command,
from the help of the command line, and ``verdict.md`` from the list of checks. The examples of
``spec.md`` are the queries of ``docs/reference/example/``, and the screens of the commands are one
session, ``commands.txt`` there. A test compares the files with :func:`pages`, runs the examples,
and compares what the session prints.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from textwrap import dedent
from typing import Any

import typer
from typer.cli import get_docs_for_click

from dp_release_verify import checks
from release.cli.main import app
from release.spec.load import parse_models

FOLDER = Path(__file__).parent / "reference"
SCHEMAS = Path(__file__).parent.parent / "schemas"
MARK = "<!-- Below this line everything is generated: python docs/reference.py -->"
SHAPES = {
    r"^(0|[1-9][0-9]*)$": "whole number as text",
    r"^[0-9]+(\.[0-9]+|/[1-9][0-9]*)?$": "exact number as text",
    r"^([0-9]+(\.[0-9]+)?|inf)$": "exact number as text, or `inf`",
    r"^[0-9a-f]{64}$": "64 hexadecimal digits",
    r"^hmac-sha256:[0-9a-f]{64}$": "`hmac-sha256:` and 64 hexadecimal digits",
    r"^sha256:[0-9a-f]{64}$": "`sha256:` and 64 hexadecimal digits",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "date",
}
"""Patterns of text, in words."""

Schema = dict[str, Any]


def pages() -> dict[str, str]:
    """The text of each generated page by its file name."""
    parts = {"spec.md": _spec(), "verdict.md": [_verdict()]}
    parts["commands/index.md"] = [_list_of_commands()]
    heads = {name: (FOLDER / name).read_text("utf-8").partition(MARK)[0] for name in parts}
    texts = {name: "\n\n".join([heads[name] + MARK, *parts[name]]) + "\n" for name in parts}
    for name, text in _commands().items():
        # Nothing of these is written by hand: the title comes first.
        title, _, rest = text.partition("\n")
        texts[f"commands/{name}.md"] = f"{title}\n\n{MARK}\n{rest}\n"
    return texts


def _spec() -> list[str]:
    objects, examples = objects_of("spec"), _examples()
    kinds = [name for name in objects if name.endswith("Query")]
    shared = set.intersection(*(set(objects[name]["properties"]) for name in kinds)) - {"kind"}
    sections = []
    for name, schema in objects.items():
        if name not in kinds:
            sections.append(_section(name, schema))
            continue
        if name == kinds[0]:
            sections.append(f"## Every query\n\n{_table(schema, shared)}")
        section = _section(name, schema, set(schema["properties"]) - shared)
        sections.append(f"{section}\n\n```yaml\n{examples[name]}```")
    return sections


def _examples() -> dict[str, str]:
    """The queries of the example specs, as they stand there, by the name of their model."""
    examples: dict[str, str] = defaultdict(str)
    for path in sorted((FOLDER / "example").glob("*.yaml")):
        text = path.read_text("utf-8")
        blocks = re.findall(r"^  - .+\n(?:    .+\n)*", text, re.MULTILINE)
        for query, block in zip(parse_models(text.encode()).queries, blocks, strict=True):
            examples[type(query).__name__] += dedent(block)
    return dict(examples)


def objects_of(file: str) -> dict[str, Schema]:
    """The objects of a schema by name: those of the file itself first, then what they refer to."""
    schema = json.loads((SCHEMAS / f"{file}.schema.json").read_text("utf-8"))
    definitions = schema.pop("$defs", {})
    # A discriminator repeats the references in another order.
    schema.pop("discriminator", None)
    objects = {schema["title"]: schema} if "properties" in schema else {}
    waiting = [schema]
    while waiting:
        for name in re.findall(r"#/\$defs/(\w+)", json.dumps(waiting.pop(0))):
            if name not in objects:
                objects[name] = definitions[name]
                waiting.append(definitions[name])
    return objects


def _section(name: str, schema: Schema, fields: set[str] | None = None) -> str:
    text = re.sub(r":\w+:`", "`", schema["description"]).replace("``", "`")
    values = [f"`{value}`" for value in schema.get("enum", ())]
    rest = f"One of {', '.join(values)}." if values else _table(schema, fields)
    return f"## {name}\n\n{text}\n\n{rest}"


def _table(schema: Schema, fields: set[str] | None = None) -> str:
    rows = ["| field | type | required | meaning |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        if fields is None or name in fields:
            default = f"; `{field['default']}`" if field.get("default") else ""
            needed = "yes" if name in schema.get("required", ()) else f"no{default}"
            rows.append(f"| `{name}` | {_type(field)} | {needed} | {field['description']} |")
    return "\n".join(rows)


def _type(field: Schema) -> str:
    """The type of a field in a few words, with links to the objects of the page."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if alternatives := field.get("anyOf", field.get("oneOf")):
        nothing = {"type": "null"} if "default" in field else None
        return " or ".join(dict.fromkeys(_type(one) for one in alternatives if one != nothing))
    if values := field.get("enum", [field["const"]] if "const" in field else []):
        return " or ".join(f"`{value}`" for value in values)
    if field["type"] in ("array", "object"):
        inner = [field.get("items"), field.get("additionalProperties")]
        inner += field.get("patternProperties", {}).values()
        types = " or ".join(_type(one) for one in inner if isinstance(one, dict))
        return {"array": "list of ", "object": "map to " if types else "map"}[field["type"]] + types
    if "pattern" in field:
        return SHAPES.get(field["pattern"], f"text, `{field['pattern']}`").replace("|", "\\|")
    words = {"string": field.get("format", "text"), "boolean": "`true` or `false`"}
    bounds = {"minimum": "at least", "maximum": "at most", "exclusiveMaximum": "below"}
    limits = [f"{words} {field[key]}" for key, words in bounds.items() if key in field]
    return f"{words.get(field['type'], field['type'])} {' and '.join(limits)}".rstrip()


def _verdict() -> str:
    """Every check of the verifier in its order, then what stays on trust."""
    # The list of checks stands once, at the head of their module.
    listed = re.findall(r"^ *\d+ (\S+) +[pt]  (.+)$", str(checks.__doc__), re.MULTILINE)
    meanings = dict(listed)
    rows = ["| check | level | what it says |", "|---|---|---|"]
    for check in checks.CHECKS:
        rows.append(f"| `{check.name}` | {check.level} | {meanings[check.name]} |")
    for name, sentence in checks.ON_TRUST:
        rows.append(f"| `trust.{name}` | on trust | {sentence} |")
    return "\n".join(rows)


def _list_of_commands() -> str:
    """The commands with a line on each, in the groups of the help."""
    root = typer.main.get_command(app)
    groups: dict[str, list[str]] = defaultdict(list)
    for name, command in root.commands.items():
        line = str(command.help).splitlines()[0]
        groups[str(command.rich_help_panel)].append(f"| [`{name}`]({name}.md) | {line} |")
    head = "| command | what it does |\n|---|---|\n"
    return "\n\n".join(f"## {group}\n\n{head}" + "\n".join(rows) for group, rows in groups.items())


def _commands() -> dict[str, str]:
    """The page of each command by its name: its help, with a screen in the place of its example.

    Raises:
        KeyError: A command has no screen in ``example/commands.txt``.
    """
    root = typer.main.get_command(app)
    text = get_docs_for_click(obj=root, ctx=typer.Context(root), name="dp-release")
    text = text[text.index("\n## ") :].replace("* `--help`: Show this message and exit.\n", "")
    text = re.sub(r"\*\*Options\*\*:\n\n\n", "", text)
    # Each command has a page of its own: its heading is the title.
    text = re.sub(r"^#(#+ `)", r"\1", text, flags=re.MULTILINE)
    screens, texts = _screens(), {}
    for page in re.split(r"^(?=# `)", text, flags=re.MULTILINE)[1:]:
        sections = re.split(r"^(?=#+ `)", page, flags=re.MULTILINE)[1:]
        name = page.partition("`dp-release ")[2].partition("`")[0]
        texts[name] = "".join(_with_screen(section, screens) for section in sections).strip()
    return texts


def _with_screen(section: str, screens: dict[str, str]) -> str:
    name = section.partition("`")[2].partition("`")[0]
    example = re.compile(r"^Example: (?:.+\n)+", re.MULTILINE)
    # The text of a screen is no pattern: it may hold what a substitution would read.
    return example.sub(lambda _: f"```console\n{screens[name]}```\n", section)


def _screens() -> dict[str, str]:
    """What each command shows, by its name: one session, run in the order of the file."""
    text = (FOLDER / "example" / "commands.txt").read_text("utf-8")
    parts = re.split(r"^# (.+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


if __name__ == "__main__":
    for file_name, page in pages().items():
        (FOLDER / file_name).write_text(page, encoding="utf-8")
