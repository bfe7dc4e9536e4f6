"""Finding things by name: the text of a package's files says what they offer, one file is imported.

A file offers objects in one constant, ``POLICIES = (Fifo(), FifoSkip())``. The name of each is
written in the call that makes it, first or as ``name=``, or is the default of its class in the same
file. A file that says it in another way is not guessed at but imported.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from shadowprice.errors import InputError

T = TypeVar("T")


class Offers(Mapping[str, T], Generic[T]):
    """Objects that the files of a package offer, by name, in order of the files.

    Parameters
    ----------
    package : module
        Packages inside it are gone through as well.
    constant : str
        The constant that files list their objects in, or that holds a single one.

    Raises
    ------
    InputError
        On going through all of them, if two have the same name.
    """

    def __init__(self, package: ModuleType, constant: str) -> None:
        self._package = package
        self._constant = constant
        self._texts = _texts_with(tuple(package.__path__), constant)

    def __getitem__(self, name: str) -> T:
        module = self._home(name)
        if module is None:
            raise KeyError(name)
        return self._objects(module)[name]

    def __iter__(self) -> Iterator[str]:
        home: dict[str, str] = {}
        for module in self._texts:
            for name in self._names(module):
                if name in home:
                    raise InputError(
                        f"two definitions are named {name!r}: in {home[name]} and {module} of "
                        f"{self._package.__name__}"
                    )
                home[name] = module
        return iter(home)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._home(name) is not None

    def _home(self, name: str) -> str | None:
        """Module that offers a name; only files in whose text it occurs are looked at closely."""
        for module, text in self._texts.items():
            if name in text and name in (self._written(module) or ()):
                return module
        silent = (module for module in self._texts if self._written(module) is None)
        return next((module for module in silent if name in self._objects(module)), None)

    def _names(self, module: str) -> tuple[str, ...]:
        written = self._written(module)
        return tuple(self._objects(module)) if written is None else written

    def _written(self, module: str) -> tuple[str, ...] | None:
        return written_names(self._texts[module], self._constant)

    def _objects(self, module: str) -> dict[str, T]:
        found = getattr(
            importlib.import_module(f"{self._package.__name__}.{module}"), self._constant
        )
        objects = found if isinstance(found, tuple) else (found,)
        return {each.name: each for each in objects}


@cache
def written_names(text: str, constant: str) -> tuple[str, ...] | None:
    r"""Names of the objects in a constant, by a file's text alone; None if it does not say them.

    >>> fifo = "class Fifo:\n    name: str = 'fifo'\n"
    >>> written_names(fifo + "POLICIES = (Fifo(), Fifo('lifo'))", "POLICIES")
    ('fifo', 'lifo')
    >>> written_names(fifo + "POLICIES = tuple(map(Fifo, ('fifo', 'lifo')))", "POLICIES")
    """
    body = ast.parse(text).body
    classes = {each.name: each for each in body if isinstance(each, ast.ClassDef)}
    values = [value for each in body if (value := _assigned(each, constant)) is not None]
    if len(values) != 1:
        return None
    objects = values[0].elts if isinstance(values[0], ast.Tuple) else [values[0]]
    names = [_name(each, classes) for each in objects]
    known = [name for name in names if name is not None]
    return tuple(known) if len(known) == len(names) == len(set(known)) else None


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    """Value that a statement gives to a name, or adds to it."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return None
    named = any(isinstance(each, ast.Name) and each.id == name for each in targets)
    return statement.value if named else None


def _name(expression: ast.expr, classes: Mapping[str, ast.ClassDef]) -> str | None:
    """Name of the object that a call makes: a keyword, the argument in its place, or the default."""
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name):
        return None
    if any(each.arg is None for each in expression.keywords):
        return None
    for each in expression.keywords:
        if each.arg == "name":
            return _text(each.value)
    made = classes.get(expression.func.id)
    if made is None:
        return None
    fields = [each for each in made.body if isinstance(each, ast.AnnAssign)]
    names = [each.target.id for each in fields if isinstance(each.target, ast.Name)]
    if expression.args and (made.bases or names[:1] != ["name"]):
        return None
    if expression.args:
        return _text(expression.args[0])
    return _text(fields[names.index("name")].value) if "name" in names else None


def _text(expression: ast.expr | None) -> str | None:
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return expression.value
    return None


@cache
def _texts_with(folders: tuple[str, ...], constant: str) -> dict[str, str]:
    """Texts of the files that set a constant, by the names of their modules in the package.

    In order of the files' own names, so that what is offered keeps its place when a file moves into
    a folder.
    """
    begins = re.compile(rf"^{constant}\b", re.MULTILINE)
    found = [(Path(folder), path) for folder in folders for path in Path(folder).rglob("[!_]*.py")]
    names = {
        ".".join(path.relative_to(folder).with_suffix("").parts): path for folder, path in found
    }
    ordered = sorted(names.items(), key=lambda item: (item[1].stem, item[0]))
    texts = ((name, path.read_text(encoding="utf-8")) for name, path in ordered)
    return {name: text for name, text in texts if begins.search(text)}
