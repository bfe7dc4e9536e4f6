"""Objects that installed packages offer by name, through entry points.

A distribution offers a policy, a builder of models, an importer of traces, commands or presets by a line in its
metadata::

    [project.entry-points."shadowprice.policies"]
    widest = "their_package.policies:Widest"

A broken one is an error for who asks for it and for nobody else.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError
from shadowprice.user_code import defined_in, load, names_a_file, sentence

POLICIES = "shadowprice.policies"
MODELS = "shadowprice.models"
TRACES = "shadowprice.traces"
COMMANDS = "shadowprice.commands"
PRESETS = "shadowprice.presets"
"""Groups of entry points: policies, builders of models for ``--model``, importers of traces, commands of the command
line, packages with presets of published simulators."""

_WHAT = {
    POLICIES: "policy",
    MODELS: "model",
    TRACES: "trace importer",
    COMMANDS: "commands",
    PRESETS: "package of presets",
}


@dataclass(frozen=True)
class Offer:
    """An object that a distribution offers.

    Parameters
    ----------
    group : str
        One of the groups above.
    name : str
        By which it is asked for.
    distribution : str
        Name and version of the distribution.
    target : str
        Where it is: ``package.module:name``.
    """

    group: str
    name: str
    distribution: str
    target: str

    def load(self) -> Any:
        """The object; its module is imported.

        Raises
        ------
        InputError
            If it cannot be: with distribution, file, line and Python's sentence.
        """
        module_name, _, attribute = self.target.partition(":")
        try:
            found: Any = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            raise InputError(f"{self}: {sentence(error, _origin(module_name))}") from error
        module = found
        for part in filter(None, attribute.split(".")):
            if not hasattr(found, part):
                defined = ", ".join(defined_in(module)) or "nothing"
                raise InputError(
                    f"{self}: {module.__file__} has no {attribute!r}; it defines {defined}"
                )
            found = getattr(found, part)
        return found

    def __str__(self) -> str:
        return f"{_WHAT[self.group]} {self.name!r} of {self.distribution} ({self.target})"


def offers(group: str) -> tuple[Offer, ...]:
    """All that installed distributions offer in a group, by name and distribution; imports nothing of theirs."""
    found = [
        Offer(group, entry.name, _described(entry), entry.value)
        for entry in importlib.metadata.entry_points(group=group)
    ]
    return tuple(sorted(set(found), key=lambda offer: (offer.name, offer.distribution)))


def offered(group: str, name: str) -> Offer | None:
    """The offer of a group by a name; None if there is none.

    Raises
    ------
    InputError
        If several distributions offer something by it.
    """
    found = [offer for offer in offers(group) if offer.name == name]
    if len(found) > 1:
        several = " and ".join(offer.distribution for offer in found)
        raise InputError(
            f"{_WHAT[group]} {name!r}: offered by {several}, expected one distribution to offer it"
        )
    return found[0] if found else None


def named_object(text: str, group: str) -> Any:
    """The object that ``FILE.py:NAME`` names, or that an installed distribution offers by a name.

    Raises
    ------
    InputError
        If there is none, or what defines it cannot be run.
    """
    if names_a_file(text):
        return load(text, _WHAT[group])
    found = offered(group, text)
    if found is None:
        names = ", ".join(sorted({offer.name for offer in offers(group)}))
        known = f" or one of {names}" if names else ""
        raise InputError(f"{_WHAT[group]} {text!r}: expected FILE.py:NAME{known}")
    return found.load()


def _described(entry: importlib.metadata.EntryPoint) -> str:
    made_by = entry.dist
    return "unknown" if made_by is None else f"{made_by.name} {made_by.version}"


def _origin(module: str) -> Path | None:
    """File of a module; None if it cannot be found."""
    try:
        spec = importlib.util.find_spec(module)
    except (Exception, SystemExit):
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)
