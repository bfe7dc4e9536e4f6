"""YAML as plain trees of text, for files that nobody has checked yet.

Every scalar is the text as it is written, or None for null: ``0755``, ``1.10`` and ``no`` are what
they look like, not 493, 1.1 and False, and whoever needs a number reads it from the text. Refused
are aliases (a small file with them can stand for a huge one), tags of other than plain data, keys
that are there twice, characters that no program argument can hold, nesting without end, and files
that are too large.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TypeAlias

import yaml

from shadowprice.errors import InputError

Tree: TypeAlias = "str | list[Tree] | dict[str, Tree] | None"

MAX_BYTES = 1 << 20
"""Largest file read; some thousand jobs."""

MAX_DEPTH = 20
"""Lists and mappings within each other."""

_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    _TAG + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}


def read_small(path: Path) -> bytes:
    """Contents of a regular file.

    Raises
    ------
    InputError
        If it is missing, no regular file, unreadable, or larger than :data:`MAX_BYTES`.
    """
    try:
        # Without O_NONBLOCK a named pipe would wait for somebody to write.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(f"{path}: is no regular file, expected a file of jobs")
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, expected a file of jobs") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{path}: is larger than {MAX_BYTES} bytes, expected a file of jobs")
    return data


def parse(data: bytes, source: str) -> Tree:
    """The tree of a YAML document, or of a JSON one.

    Raises
    ------
    InputError
        Naming source and line of what is refused.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{source}: is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from error
    try:
        node = yaml.compose(text, Loader=_Loader)
    except _Refused as error:
        raise InputError(f"{source}: {error}") from None
    except yaml.MarkedYAMLError as error:
        # Not the error's own text, which shows a piece of the file: that may hold a secret.
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise InputError(f"{source}: {line}is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # characters that are none
        raise InputError(f"{source}: is not YAML: {' '.join(str(error).split())}") from None
    return None if node is None else _tree(node, source)


class _Refused(Exception):
    """YAML, but not of the kind that is read here."""


class _Loader(yaml.SafeLoader):
    """Composes nodes; refuses aliases and deep nesting while it reads."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = f"line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent):
            raise _Refused(
                f"{line}: alias {shown(event.anchor)}, expected the thing itself; 'defaults' says "
                "once what holds for all jobs"
            )
        if self.depth >= MAX_DEPTH:
            raise _Refused(f"{line}: nests deeper than {MAX_DEPTH} lists and mappings")
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _tree(node: yaml.Node, source: str) -> Tree:
    where = _where(node, source)
    if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
        return [_tree(each, source) for each in node.value]
    if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
        return _mapping(node, source)
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        if node.tag == _TAG + "null":
            return None
        _writable(node.value, where)
        return str(node.value)
    raise InputError(f"{where}: tag {shown(node.tag)}, expected plain text, lists and mappings")


def _mapping(node: yaml.MappingNode, source: str) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    for key_node, value_node in node.value:
        where = _where(key_node, source)
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in _SCALARS:
            raise InputError(f"{where}: a key is no text, expected a name")
        key = str(key_node.value)
        _writable(key, where)
        if key in found:
            raise InputError(f"{where}: key {shown(key)} is there twice, expected it once")
        found[key] = _tree(value_node, source)
    return found


def _where(node: yaml.Node, source: str) -> str:
    mark = node.start_mark
    return source if mark is None else f"{source}: line {mark.line + 1}"


def _writable(text: str, where: str) -> None:
    try:
        fine = "\0" not in text.encode().decode()
    except UnicodeEncodeError:
        fine = False
    if not fine:
        raise InputError(f"{where}: text with a null character or half a character, expected none")


def shown(value: object) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
