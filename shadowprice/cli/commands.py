"""Commands that a part of the program brings, or another distribution: found through entry points.

A distribution offers them by a line in its metadata::

    [project.entry-points."shadowprice.commands"]
    theirs = "their_package.command_line:COMMANDS"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import typer

from shadowprice.cli.results import ResultForm
from shadowprice.entry_points import COMMANDS, Offer, offers
from shadowprice.errors import InputError


class Example(NamedTuple):
    """A command line, and what it does."""

    line: str
    does: str

    def text(self) -> str:
        """Comment and command line, as in a terminal."""
        return f"\n   # {self.does}\n   shadowprice {self.line}\n"


class DirectoryVerifier(NamedTuple):
    """Verification of directories of one kind, for ``verify``.

    Parameters
    ----------
    recognises : callable
        Whether a path is a directory of the kind.
    print_verified : callable
        Verify it and print the counts in a form.
    """

    recognises: Callable[[Path], bool]
    print_verified: Callable[[Path, ResultForm], None]


@dataclass(frozen=True)
class Commands:
    """Commands of one part of the program.

    Parameters
    ----------
    panels : mapping of str to tuple of str
        Names of the commands by panel of the help, both in order.
    examples : mapping of str to tuple of Example
        Below the help of each command, by its words (``study run``), in an order in which they can be run in an empty
        folder; those that need more say what.
    run : mapping of str to callable or Typer
        What runs a command, or the group of commands, by name.
    verifiers : tuple of DirectoryVerifier
        Directories that ``verify`` can check because of this part.
    """

    panels: Mapping[str, tuple[str, ...]]
    examples: Mapping[str, tuple[Example, ...]]
    run: Mapping[str, Callable[..., None] | typer.Typer] = field(default_factory=dict)
    verifiers: tuple[DirectoryVerifier, ...] = ()


@cache
def offered_commands() -> tuple[Commands, ...]:
    """Commands of all installed distributions, in the order of the entry points' names.

    One that cannot be loaded is a command of the entry point's name that says why.
    """
    return tuple(_commands_of(offer) for offer in offers(COMMANDS))


def _commands_of(offer: Offer) -> Commands:
    try:
        loaded = offer.load()
        if not isinstance(loaded, Commands):
            raise InputError(f"{offer}: expected a Commands, got {type(loaded).__name__}")
    except InputError as error:
        reason = str(error)
    else:
        return loaded

    def broken() -> None:
        """Say why this cannot be run."""
        raise InputError(reason)

    name = offer.name
    return Commands({"Broken": (name,)}, {name: (Example(name, "Why."),)}, {name: broken})
