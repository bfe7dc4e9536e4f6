"""Objects from files of the user's own, named as ``mine.py:build``.

Naming a file runs it, with all rights of the user who runs the command.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from shadowprice.errors import InputError


def names_a_file(text: str) -> bool:
    """True if a text is of the form ``FILE.py:NAME``."""
    return text.rpartition(":")[0].endswith(".py")


def load(text: str, what: str) -> Any:
    """The object that ``FILE.py:NAME`` names; the file is run once a process, and again if it changed.

    Parameters
    ----------
    what : str
        What such an object is called in messages.

    Raises
    ------
    InputError
        If there is no such file or name, or the file cannot be run: with the line, and the sentence
        Python has for it.
    """
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise InputError(f"{what} {text!r}: expected FILE.py:NAME")
    path = Path(file).expanduser()
    try:
        at = path.stat()
    except OSError as error:
        raise InputError(f"{what} {text!r}: {file}: {error.strerror or error}") from None
    module = _module(path.resolve(), at.st_mtime_ns, at.st_size)
    if not hasattr(module, name):
        public = [each for each in vars(module) if not each.startswith("_")]
        own = [each for each in public if _made_in(module, getattr(module, each))]
        raise InputError(
            f"{what} {text!r}: {file} has no {name!r}; it defines {', '.join(own) or 'nothing'}"
        )
    return getattr(module, name)


@cache
def _module(path: Path, changed_ns: int, size: int) -> ModuleType:
    """The module of a file as it is."""
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    name = f"user_code_{digest}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{path}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        raise InputError(f"{where(error, path)}: {type(error).__name__}: {error}") from None
    return module


def where(error: BaseException, path: Path) -> str:
    """File and line of an error, as near to a file as its traceback gets."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if frame.filename == str(path)]
    return f"{path}, line {mine[-1].lineno}" if mine else str(path)


def _made_in(module: ModuleType, value: object) -> bool:
    return getattr(value, "__module__", module.__name__) == module.__name__ and not isinstance(
        value, ModuleType
    )
