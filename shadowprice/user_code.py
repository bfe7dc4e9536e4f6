"""Objects from files of the user's own, named as ``mine.py:build``.

Naming a file runs it, with all rights of the user who runs the command.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from shadowprice.errors import InputError

MODULE_PREFIX = "user_code_"
"""Beginning of the names of modules that are files of the user's own."""


def names_a_file(text: str) -> bool:
    """True if a text is of the form ``FILE.py:NAME``, perhaps with parameters after a further colon.

    >>> [names_a_file(text) for text in ("mine.py:Own", "mine.py:Own:window_s=60", "fifo", "las:quantum_s=9")]
    [True, True, False, False]
    >>> names_a_file("gavel:model=mine.py:build")
    False
    """
    return text.partition(":")[0].endswith(".py")


def runs_a_file(text: str) -> bool:
    """True if looking a text up runs a file: it names one, or a parameter of it does."""
    return ".py:" in text


_CODE = re.compile(r"[^\s:=,]+\.py(?=:)")


def code_in(text: str) -> list[str]:
    """Files that a text names, however deep in its parameters.

    >>> code_in("gavel:model=mine.py:build")
    ['mine.py']
    """
    return _CODE.findall(text)


def code_from(text: str, folder: Path) -> str:
    """A text whose files are relative to a folder, with absolute ones."""
    return _CODE.sub(
        lambda match: str((folder / Path(match.group()).expanduser()).absolute()), text
    )


def files_sha256(text: str) -> str:
    """SHA-256 of the files that a text names, however deep in its parameters.

    Raises
    ------
    InputError
        If one cannot be read.
    """
    digest = hashlib.sha256()
    for file in code_in(text):
        try:
            digest.update(Path(file).expanduser().read_bytes())
        except OSError as error:
            raise InputError(f"{file}: {error.strerror or error}") from error
    return digest.hexdigest()


def split_parameters(text: str) -> tuple[str, str]:
    """``FILE.py:NAME`` and the parameters after a further colon, empty if there are none.

    >>> split_parameters("mine.py:Own:window_s=60,model=other.py:build")
    ('mine.py:Own', 'window_s=60,model=other.py:build')
    """
    file, _, rest = text.partition(":")
    name, _, parameters = rest.partition(":")
    return f"{file}:{name}" if rest else file, parameters


def load(text: str, what: str) -> Any:
    """The object that ``FILE.py:NAME`` names; the file is run once a process, and again if it changed.

    As where Python runs a script, what lies beside the file can be imported by it.

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
    if not path.is_file():
        raise InputError(f"{what} {text!r}: {file}: is no file, expected one in Python")
    module = _module(path.resolve(), at.st_mtime_ns, at.st_size)
    if not hasattr(module, name):
        raise InputError(
            f"{what} {text!r}: {file} has no {name!r}; it defines {', '.join(defined_in(module)) or 'nothing'}"
        )
    return getattr(module, name)


def own_modules() -> list[ModuleType]:
    """Modules of files of the user's own that were run, and of what they imported from beside them."""
    own = [each for name, each in sys.modules.items() if name.startswith(MODULE_PREFIX)]
    folders = {_folder(each) for each in own} - {None}
    tops = {name: sys.modules.get(name.partition(".")[0]) for name in list(sys.modules)}
    beside = [sys.modules[name] for name, top in tops.items() if top and _folder(top) in folders]
    return list(dict.fromkeys([*own, *beside]))


def defined_in(module: ModuleType) -> list[str]:
    """Public names that a module defines itself."""
    public = [each for each in vars(module) if not each.startswith("_")]
    return [each for each in public if _made_in(module, getattr(module, each))]


@cache
def _module(path: Path, changed_ns: int, size: int) -> ModuleType:
    """The module of a file as it is."""
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    name = f"{MODULE_PREFIX}{digest}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[name] = module
    try:
        with _importing_from(path.parent):
            spec.loader.exec_module(module)
    # A script that ends the interpreter has to end this file alone.
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(sentence(error, path)) from error
    return module


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Let a file import what lies in its folder, as a script of Python's does.

    What another file imported from a folder of its own under the same name is put aside, so that two
    versions of the same files can be compared.
    """
    for module in own_modules():
        top = module.__name__.partition(".")[0]
        here = any((folder / f"{top}{end}").exists() for end in (".py", "/__init__.py"))
        if here and _folder(sys.modules.get(top, module)) != folder:
            sys.modules.pop(module.__name__, None)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _folder(module: ModuleType) -> Path | None:
    """Folder from which a module is imported; None if it has no file."""
    file = getattr(module, "__file__", None)
    if not file:
        return None
    path = Path(file)
    return path.parents[1] if path.name == "__init__.py" else path.parent


def sentence(error: BaseException, path: Path | None = None) -> str:
    """File, line and Python's sentence for an error, where it left code of the user's own.

    Parameters
    ----------
    path : Path, optional
        The file that is named if no code of the user's own is on the way; by default that of the last
        frame.
    """
    if isinstance(error, SyntaxError) and error.filename:
        line = f", line {error.lineno}" if error.lineno else ""
        return f"{error.filename}{line}: {_on_one_line(error.msg)}"
    frames = _frames(error)
    mine = [frame for frame in frames if frame.filename == str(path)]
    last = ([*filter(_is_own, frames)] or mine or ([] if path else frames))[-1:]
    where = f"{last[0].filename}, line {last[0].lineno}: " if last else f"{path}: " if path else ""
    said = _on_one_line(str(error)) + _what_it_has(error)
    return f"{where}{type(error).__name__}{f': {said}' if said else ''}"


def _what_it_has(error: BaseException) -> str:
    """Names nearest to one that an object of this package lacks; all that it has if none is near."""
    if not isinstance(error, AttributeError) or not error.name:
        return ""
    if type(error.obj).__module__.partition(".")[0] != __name__.partition(".")[0]:
        return ""
    public = [name for name in dir(error.obj) if not name.startswith("_")]
    near = difflib.get_close_matches(error.name, public, n=3, cutoff=0.5)
    return f"; it has {', '.join(near or public)}" if public else ""


def in_user_code(error: BaseException) -> bool:
    """True if an error was caused by one in a file that is neither ours nor an installed one."""
    return error.__cause__ is not None and any(map(_is_own, _frames(error.__cause__)))


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Frames of a traceback; the machinery of imports is nobody's file."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if not frame.filename.startswith("<")]


def _is_own(frame: traceback.FrameSummary) -> bool:
    installed = (Path(__file__).parent, Path(sys.prefix), Path(sys.base_prefix))
    return not any(Path(frame.filename).is_relative_to(folder) for folder in installed)


def file_of(thing: object) -> Path | None:
    """File that defines a class, or the class of an object; None if no file does."""
    try:
        return Path(inspect.getfile(thing if isinstance(thing, type) else type(thing)))
    except (TypeError, OSError):
        return None


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _made_in(module: ModuleType, value: object) -> bool:
    return getattr(value, "__module__", module.__name__) == module.__name__ and not isinstance(
        value, ModuleType
    )
