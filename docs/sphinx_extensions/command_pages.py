"""The command line: a page made from the commands themselves, with their options and examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from shadowprice.cli.app import app
from shadowprice.cli.panels import examples, panels

INTRODUCTION = """\
# Command line

Made from the commands themselves; `shadowprice COMMAND --help` shows the same. Wrong input is one line on stderr that
names file, row, column, value and expectation, and exit code 2. `--install-completion` teaches your shell the commands
and options. `SHADOWPRICE_DEBUG=1` in the environment shows tracebacks.
"""


def pages() -> dict[str, str]:
    """Text of the page."""
    return {"commands.md": "\n".join([INTRODUCTION, *_panels(typer.main.get_command(app))])}


def commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Commands by their words, groups left out."""
    for name, command in getattr(group, "commands", {}).items():
        words = f"{above} {name}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, words)
        else:
            yield words, command


def _panels(root: Any) -> Iterator[str]:
    found = dict(commands(root))
    for panel, names in panels().items():
        mine = [words for name in names for words in found if words.split()[0] == name]
        if mine:
            yield f"## {panel}\n"
        for words in mine:
            yield from _command(words, found[words])


def _command(words: str, command: Any) -> Iterator[str]:
    with typer.Context(command, info_name=f"shadowprice {words}") as context:
        usage = command.get_usage(context).removeprefix("Usage: ")
    yield f"### {words}\n"
    yield f"{(command.help or '').strip()}\n"
    yield f"```text\n{usage.strip()}\n```\n"
    rows = [_row(parameter) for parameter in command.params if not _hidden(parameter)]
    if rows:
        yield "\n".join(["| argument or option | meaning |", "|---|---|", *rows]) + "\n"
    for example in examples().get(words, ()):
        yield f"{example.does}\n\n```text\nshadowprice {example.line}\n```\n"


def _hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False)) or parameter.name == "help"


def _row(parameter: Any) -> str:
    names = parameter.opts if parameter.param_type_name == "option" else [parameter.name or ""]
    name = ", ".join(f"`{each}`" for each in names)
    text = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
    default = parameter.default
    if isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        text += f" Default: `{default}`."
    if parameter.required:
        text += " Required."
    return f"| {name} | {_literal(text)} |"


def _literal(text: str) -> str:
    """Text in which nothing is taken for markup."""
    return text.replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*")
