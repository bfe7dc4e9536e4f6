"""Catalogue of the models: what the files of :mod:`shadowprice.models` say of themselves.

A model is a file there with a function that returns a ``ConcreteModel``. Its docstring begins with what it
is and has a paragraph ``Source:``; ``KIND`` is ``"exact"`` or ``"relaxation"``; ``RUNS_IN`` names the
module that solves it for users, and ``REFERENCE`` the tests that compare it with an oracle. A function
``of_instance(instance)`` builds it from jobs and a cluster; where its data are others, ``example()``
builds a small one. Files are read, not imported: a list does not load Pyomo.
"""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shadowprice.models
from shadowprice.errors import InputError
from shadowprice.instances.entries import expected_name

if TYPE_CHECKING:
    import pyomo.environ as pyo

    from shadowprice.instances.instance import Instance

FOLDER = Path(shadowprice.models.__path__[0])

_ROLE = re.compile(r":\w+:`[~.]*([^`]+)`")
"""Sphinx's marks of names."""

OF_INSTANCE, EXAMPLE = "of_instance", "example"
"""Functions that build a model for display."""


@dataclass(frozen=True)
class ModelFile:
    """Statements of a file on its model.

    Parameters
    ----------
    name : str
        Of the file.
    title : str
        First line of its docstring.
    source : str
        Citation, and what is recalled or derived.
    kind : str
        ``exact`` or ``relaxation``.
    runs_in, reference : str
        Module that solves it, and tests that compare it with an oracle; empty if there is none.
    builders : tuple of str
        Functions that build it, with their data as the paper has them.
    displayed_by : str
        ``of_instance``, ``example``, or empty.
    text : str
        The whole docstring: symbols and programme.
    """

    name: str
    title: str
    source: str
    kind: str
    runs_in: str
    reference: str
    builders: tuple[str, ...]
    displayed_by: str
    text: str

    def build(self, instance: Instance | None) -> pyo.ConcreteModel:
        """The model of an instance, or the example of its file.

        Raises
        ------
        InputError
            If it takes an instance and none is given, or the other way round.
        """
        module: Any = importlib.import_module(f"{shadowprice.models.__name__}.{self.name}")
        if self.displayed_by == OF_INSTANCE:
            if instance is None:
                raise InputError(
                    f"model {self.name}: is built from jobs and a cluster, expected TRACE and --cluster"
                )
            return module.of_instance(instance)
        if instance is not None:
            raise InputError(
                f"model {self.name}: is not about a trace; without TRACE it shows an example"
            )
        if not self.displayed_by:
            raise InputError(f"model {self.name}: has no example, expected a function example()")
        return module.example()


def model_files() -> dict[str, ModelFile]:
    """All models by name, in the order of the alphabet.

    Raises
    ------
    InputError
        If a file with a model does not say what it has to.
    """
    found = (_read(path) for path in sorted(FOLDER.glob("*.py")))
    return {each.name: each for each in found if each is not None}


def model_file(name: str) -> ModelFile:
    """The model of a name.

    Raises
    ------
    InputError
        Listing what there is.
    """
    known = model_files()
    if name not in known:
        raise InputError(f"model {name!r}: {expected_name(name, known, 'shadowprice models')}")
    return known[name]


def _read(path: Path) -> ModelFile | None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    building = [node.name for node in functions if _returns_a_model(node)]
    builders = tuple(name for name in building if name not in (OF_INSTANCE, EXAMPLE))
    if not builders:
        return None
    text = _ROLE.sub(r"\1", (ast.get_docstring(tree) or "").strip())
    constants = dict(_constants(tree))
    kind, source = constants.get("KIND", ""), _source(text)
    if not source or kind not in ("exact", "relaxation"):
        raise InputError(
            f"{path}: has KIND {kind!r} and source {source!r}, expected exact or relaxation, and a "
            "paragraph 'Source:' in the docstring"
        )
    shown = next((name for name in (OF_INSTANCE, EXAMPLE) if name in building), "")
    return ModelFile(
        path.stem,
        text.splitlines()[0],
        source,
        kind,
        constants.get("RUNS_IN", ""),
        constants.get("REFERENCE", ""),
        builders,
        shown,
        text,
    )


def _returns_a_model(function: ast.FunctionDef) -> bool:
    public = not function.name.startswith("_")
    return (
        public and function.returns is not None and "ConcreteModel" in ast.unparse(function.returns)
    )


def _constants(tree: ast.Module) -> list[tuple[str, str]]:
    """Names at the top of a file that stand for texts."""
    return [
        (target.id, node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    ]


def _source(text: str) -> str:
    """The paragraph that begins with ``Source:``, in one line."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("Source:"):
            return " ".join(paragraph.removeprefix("Source:").split())
    return ""
