"""How the command line speaks of itself: help in groups, and every wrong call in one line.

Typer's own refusals name its types and quote the library that checks them. Here each is the option
or the argument, the value that was found, and what to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from release.errors import nearest

PUBLISH = "Publish"
CHECK = "Check"
LOOK = "Look"
OPERATE = "Operate"
LEDGER = "Ledger and keys"
GROUPS = (PUBLISH, CHECK, LOOK, OPERATE, LEDGER)
"""The groups of commands in the help, in this order."""

USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
"""The root of Typer's usage errors, which it exports only by its children."""

_OTHER_WORDS = {
    "completion": "dp-release --install-completion",
    "estimate": "release.estimate in Python",
    "inspect": "report",
    "keygen": "ledger key new",
    "lint": "check, or plan, which reads no data",
    "new": "init",
    "preview": "plan",
    "publish": "run",
    "show": "report, or ledger show",
    "status": "doctor",
    "test": "check, or plan, which reads no data",
    "version": "dp-release --version",
    "validate": "check, or plan, which reads no data",
}
"""What people call commands that have another name here."""


_LONGEST_HELP = 300
"""Letters of a command's first sentence, which is shown whole."""


class Grouped(TyperGroup):
    """Shows commands under the heading of their panel."""

    # Not by Typer's own panels: they need Rich, which takes long to import, and frames, which
    # depend on the width of a terminal.
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        for name in self.list_commands(ctx):
            command = self.commands[name]
            panel = getattr(command, "rich_help_panel", None)
            heading = panel if panel in sections else "Commands"
            row = (name, command.get_short_help_str(_LONGEST_HELP))
            sections.setdefault(heading, []).append(row)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


NO_COMMAND = "NoArgsIsHelpError"
"""Typer's error where a group of commands stands alone; its message is the help."""


def usage_line(error: Any, words: Sequence[str]) -> str:
    """A usage error of Typer in our own words; ``words`` are those of the command line."""
    return f"{_problem(error, words)}; see {_command_of(error)} --help"


def _command_of(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return "dp-release" if context is None else str(context.command_path)


def _problem(error: Any, words: Sequence[str]) -> str:
    param = getattr(error, "param", None)
    kind = type(error).__name__
    if kind == "NoSuchOption":
        return _unknown_option(error)
    if kind == "MissingParameter" and param is not None:
        return f"{_name(param)}: missing; give {_meaning(param)}"
    if kind == "BadParameter" and param is not None:
        return f"{_name(param)}: {_found(param, words)}write {_wanted(param)}"
    if kind == "BadOptionUsage":
        needs_one = "requires" in error.message
        remedy = "needs a value; write it behind" if needs_one else "takes no value; remove it"
        return f"{error.option_name}: {remedy}"
    return _surplus(error, words) or _other(error, words)


def _other(error: Any, words: Sequence[str]) -> str:
    """The refusal of an unknown command, or what Typer says."""
    commands = getattr(getattr(error.ctx, "command", None), "commands", None)
    unknown = next((word for word in words if _is_unknown(word, error)), None)
    if commands and unknown is not None:
        return _unknown_command(unknown, commands)
    return " ".join(str(error.format_message()).split()).rstrip(".")


def _surplus(error: Any, words: Sequence[str]) -> str | None:
    """The refusal of more arguments than a command takes; None of another fault."""
    if "unexpected extra argument" not in error.message:
        return None
    params = error.ctx.command.params
    names = [_name(param) for param in params if param.param_type_name == "argument"]
    choices = error.message.partition("(")[2].rstrip(").")
    # The letters between the brackets: words of the command line, which may have any form.
    extra = next((word for word in words[::-1] if choices.endswith(word)), choices)
    takes = f"takes {' and '.join(names)} alone" if names else "takes options alone"
    return f"{extra}: one argument too many; {error.ctx.command.name} {takes}"


def _is_unknown(word: str, error: Any) -> bool:
    # The message is the only place in which Typer keeps the word.
    return f"'{word}'" in error.message.partition(".")[0]


def _unknown_command(word: str, commands: Sequence[str]) -> str:
    if word in _OTHER_WORDS:
        return f"{word}: no such command; use {_OTHER_WORDS[word]}"
    near = nearest(word, commands)
    hint = f"did you mean {near}? " if near else ""
    return f"{word}: no such command; {hint}known are {', '.join(commands)}"


_OTHER_OPTIONS = {
    "--dry-run": "plan shows the cost, and check rehearses a run; neither spends anything",
    "--epsilon": "it stands in the spec: budget.epsilon",
    "--delta": "it stands in the spec: budget.delta",
    "--spec": "write the file without it",
    "-k": "write --key",
    "-o": "write --out",
    "-u": "write --unit",
}
"""Options that other tools have, and what to do here."""


def _unknown_option(error: Any) -> str:
    name, context = str(error.option_name), getattr(error, "ctx", None)
    known: list[str] = []
    for param in context.command.params if context is not None else ():
        known += (option for option in param.opts if option.startswith("--"))
    if name in _OTHER_OPTIONS:
        return f"{name}: no such option; {_OTHER_OPTIONS[name]}"
    if name == "--key" and "--trust" in known:
        return "--key: no such option; write --trust and the public key"
    # Without the hyphens, which would make any two options similar.
    near = nearest(name.lstrip("-"), [option.lstrip("-") for option in known])
    hint = f"did you mean --{near}?" if near else "remove it"
    return f"{name}: no such option; {hint}"


def _name(param: Any) -> str:
    is_argument = param.param_type_name == "argument"
    return str(param.metavar or param.name).strip("…").upper() if is_argument else param.opts[0]


def _meaning(param: Any) -> str:
    text = str(param.help or "a value").rstrip(".")
    return text[:1].lower() + text[1:]


def _found(param: Any, words: Sequence[str]) -> str:
    # Typer's error has the value only inside a text of another library.
    for position, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in param.opts:
            following = words[position + 1 : position + 2]
            return f"found {value if equals else ' '.join(following)!r}; "
    return ""


def _wanted(param: Any) -> str:
    least, most = getattr(param, "min", None), getattr(param, "max", None)
    if least is not None:
        most_text = "" if most is None else f" and at most {most}"
        return f"a whole number of at least {least}{most_text}"
    annotation = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    choices = [str(choice.value) for choice in getattr(annotation, "__members__", {}).values()]
    if choices:
        return f"one of {', '.join(choices)}"
    return "a whole number" if annotation is int else _meaning(param)
