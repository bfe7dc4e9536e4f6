"""Models as they are published here, told from models that somebody has edited.

A structured method that reasons about a model without looking at its rows (an enumeration, a
symmetry, a bound in closed form) is right about the model as published. The tokens of each file of
:mod:`shadowprice.models`, comments and docstrings left out, have a digest; where the file has
another one now, or a model comes from elsewhere, such methods are not used and the model itself is solved.
``docs/publish_models.py`` writes the digests, after a change of a model and of the methods that know it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import json
import tokenize
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import shadowprice.models

DIGESTS = Path(shadowprice.models.__path__[0]) / "published.json"
"""Digest of each file, by its name."""

_SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER)


class EditedModelWarning(UserWarning):
    """A method is not used because it knows a model only as published."""


def is_published(build: Callable[..., Any]) -> bool:
    """True if a function that builds a model is one of this package's, in a file as published."""
    package = f"{shadowprice.models.__name__}."
    module = getattr(build, "__module__", "")
    return module.startswith(package) and _as_published(module)


def falls_back(build: Callable[..., Any], what: str) -> bool:
    """True if a method cannot answer for a model, with a warning once for each place.

    Parameters
    ----------
    what : str
        The method, and what is done instead: ``the search by CP-SAT is not used; the model itself is solved``.
    """
    if is_published(build):
        return False
    name = f"{getattr(build, '__module__', '?')}.{getattr(build, '__name__', build)}"
    warnings.warn(f"{name} is not the published model: {what}", EditedModelWarning, stacklevel=3)
    return True


@cache
def _as_published(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return False
    known = json.loads(DIGESTS.read_text("utf-8"))
    name = module.rpartition(".")[2]
    return bool(known.get(name) == digest(Path(spec.origin).read_text("utf-8")))


def digest(source: str) -> str:
    """SHA-256 of the tokens of a Python file, without comments, docstrings and blank lines."""
    silent = _docstring_lines(ast.parse(source))
    words = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _SILENT or token.start[0] in silent:
            continue
        words.append({tokenize.INDENT: ">", tokenize.DEDENT: "<"}.get(token.type, token.string))
    return hashlib.sha256("".join(words).encode()).hexdigest()


def _docstring_lines(tree: ast.Module) -> set[int]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            lines |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines
