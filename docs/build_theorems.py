"""The list of theorems: one page of statements, from the theorem files.

``python docs/build_theorems.py docs/theorems.md`` writes it; without a file it is printed.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import shadowprice.proofs
from shadowprice.errors import InputError
from shadowprice.instances.features import Feature

_PACKAGE = "shadowprice.proofs"

INTRODUCTION = """\
# Theorems

Made by `make theorems` from the files of [`proofs/`](../shadowprice/proofs), where each has its
proof, a function `bound` and a function `check`; tests try to break all of them. Do not edit this page.

*Holds with*: [features](features.md) that an instance may have beyond nodes and jobs; `bound` and `check` refuse one
that has more. *Status*: whose a theorem is; *recalled* and *derived* are
[words for evidence](semantics.md#words-for-evidence). How close to each theorem stored
instances come, and how large its factor is on generated ones, is in [a record](../benchmarks/records/theorems.md).
"""


@dataclass(frozen=True)
class Theorem:
    """A theorem file.

    Parameters
    ----------
    module : str
        Its name in :mod:`shadowprice.proofs`, as in ``asrpt.ratio``.
    identifier, title : str
        Before and after the colon of its first line.
    statement : str
        From there to the paragraph on its status, in reStructuredText.
    status : str
        In a few words.
    hypotheses : str
        What an instance may have, and what beside it not; empty for one that reads no instances.
    """

    module: str
    identifier: str
    title: str
    statement: str
    status: str
    hypotheses: str = ""

    @property
    def anchor(self) -> str:
        """Anchor of its section on the page."""
        return self.identifier.lower().replace(" ", "-")

    @property
    def link(self) -> str:
        """Path of its file, from the folder of the page."""
        return f"../shadowprice/proofs/{self.module.replace('.', '/')}.py"


def theorems() -> tuple[Theorem, ...]:
    """All theorem files, in order of their names: those with a status."""
    found = []
    for info in pkgutil.walk_packages(shadowprice.proofs.__path__, f"{_PACKAGE}."):
        module = importlib.import_module(info.name)
        if hasattr(module, "STATUS"):
            name = info.name.removeprefix(f"{_PACKAGE}.")
            read = read_theorem(name, module.__doc__ or "", module.STATUS)
            found.append(replace(read, hypotheses=hypotheses(module)))
    return tuple(found)


def hypotheses(module: ModuleType) -> str:
    """What an instance may have beyond nodes and jobs, from ``KNOWS``, and what not, from predicates."""
    knows = getattr(module, "KNOWS", None)
    if knows is None:
        return ""
    known = [f"`{each}`" for each in Feature if each in knows]
    unknown = [f"`{each}`" for each in Feature if each not in knows]
    all_but = "all but " + ", ".join(unknown)
    words = (", ".join(known) or "nothing more") if len(known) <= len(unknown) else all_but
    supposed = getattr(module, "HYPOTHESES", None)
    others = [] if supposed is None else [_first_line(each) for each in supposed.predicates]
    return words + (f". *Not with*: {'; '.join(others)}" if others else "")


def _first_line(predicate: Callable[..., object]) -> str:
    line = (predicate.__doc__ or "").partition("\n")[0].rstrip(".")
    return line[:1].lower() + line[1:]


def read_theorem(module: str, text: str, status: str) -> Theorem:
    """Take a theorem file's docstring apart.

    Raises
    ------
    InputError
        If it lacks a title or the paragraph on its status.
    """
    first, *rest = [part.rstrip() for part in re.split(r"\n\s*\n", text.strip("\n"))]
    identifier, colon, title = first.partition(": ")
    ends = [k for k, part in enumerate(rest) if part.startswith("Status.")]
    if not colon or not ends:
        raise InputError(
            f"{module}: docstring begins {first!r:.80}, expected 'ID: title.' there, and a paragraph "
            "'Status.' after the statement"
        )
    statement = "\n\n".join(rest[: ends[0]])
    return Theorem(module, identifier, title.rstrip("."), statement, status)


def markdown(text: str) -> str:
    """Markdown from the reStructuredText of docstrings: formulas, literals, roles."""
    text = re.sub(r"\.\. math::\n\s*\n", ".. math::\n", text)
    return "\n\n".join(_block(part) for part in re.split(r"\n\s*\n", text))


def _block(part: str) -> str:
    """A paragraph; a displayed formula may follow one or stand alone."""
    before, directive, formula = part.partition(".. math::")
    if directive:
        lines = "\n".join(line.strip() for line in formula.strip().splitlines())
        shown = f"```math\n{lines}\n```"
        return f"{_inline(before).rstrip()}\n\n{shown}" if before.strip() else shown
    return _inline(part)


def _inline(text: str) -> str:
    text = re.sub(r":math:`([^`]+)`", lambda found: f"$`{_one_line(found[1])}`$", text)
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def page() -> str:
    """The whole page, in Markdown."""
    all_of_them = theorems()
    rows = [f"- [{each.identifier}](#{each.anchor}): {_inline(each.title)}" for each in all_of_them]
    head = [INTRODUCTION, *rows, ""]
    return "\n".join([*head, *map(_section, all_of_them)])


def _section(theorem: Theorem) -> str:
    lines = [
        f"## {theorem.identifier}",
        markdown(theorem.statement).removeprefix("Statement. "),
        *([f"*Holds with*: {theorem.hypotheses}."] if theorem.hypotheses else []),
        f"*Status*: {theorem.status}. [Proof, sources and remarks]({theorem.link}).",
    ]
    return "\n\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
