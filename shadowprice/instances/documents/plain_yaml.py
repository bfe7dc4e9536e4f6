"""YAML as plain trees of text, for files that nobody has checked yet.

Every scalar is the text as it is written, or None for null: ``0755``, ``1.10`` and ``no`` are what
they look like, not 493, 1.1 and False, and whoever needs a number reads it from the text. Refused
are aliases (a small file with them can stand for a huge one), tags of other than plain data, keys
that are there twice, characters that no program argument can hold, nesting without end, and files
that are too large. Messages leave out what the file says, which may be a secret.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from shadowprice.errors import InputError
from shadowprice.instances.entries import shown

Tree: TypeAlias = "str | bool | list[Tree] | dict[str, Tree] | None"

MAX_BYTES = 1 << 20
"""Largest file read; some thousand jobs."""

MAX_DEPTH = 20
"""Lists and mappings within each other."""

_TAG = "tag:yaml.org,2002:"
_TEXT = _TAG + "str"
_SCALARS = {
    _TAG + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}


def read_small(path: Path) -> bytes:
    """Contents of a regular file, which is not decompressed.

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
                raise InputError(f"{path}: is no regular file, expected a small file of text")
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, expected a small file of text") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{path}: is larger than {MAX_BYTES} bytes, expected a small file of text")
    return data


def parse(data: bytes | str, source: str, *, truth_values: bool = False) -> Tree:
    """The tree of a YAML document, or of a JSON one.

    Parameters
    ----------
    truth_values : bool
        Read ``true``, ``no`` and the like as such if they are not in quotes.

    Raises
    ------
    InputError
        Naming source and line of what is refused.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{source}: is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from error
    try:
        node = yaml.compose(text, Loader=_Loader)
        return None if node is None else _tree(node, truth_values)
    except _Refused as error:
        raise InputError(f"{source}: {error}") from None
    except yaml.MarkedYAMLError as error:
        # Not the error's own text, which shows a piece of the file: that may hold a secret.
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise InputError(f"{source}: {line}is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # characters that are none
        raise InputError(f"{source}: is not YAML: {' '.join(str(error).split())}") from None


class _Refused(Exception):
    """YAML, but not of the kind that is read here."""

    def __init__(self, mark: Any, problem: str) -> None:
        super().__init__(f"line {mark.line + 1}: {problem}")


class _Loader(yaml.SafeLoader):
    """Composes nodes; refuses aliases, deep nesting and tags that text does not have by itself."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _Refused(
                event.start_mark, f"alias {shown(event.anchor)}, expected the thing itself"
            )
        if self.depth >= MAX_DEPTH:
            raise _Refused(event.start_mark, f"nests deeper than {MAX_DEPTH} lists and mappings")
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS - {_TEXT}:
            plain = self.resolve(yaml.ScalarNode, node.value, (True, False))  # type: ignore[no-untyped-call]
            if node.tag != plain:
                kind = node.tag.removeprefix(_TAG)
                raise _Refused(event.start_mark, f"tag {kind!r} of text that is no {kind}")
        return node


def _tree(node: yaml.Node, truth_values: bool) -> Tree:
    if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
        return [_tree(each, truth_values) for each in node.value]
    if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
        return _mapping(node, truth_values)
    if not isinstance(node, yaml.ScalarNode) or node.tag not in _SCALARS:
        raise _Refused(
            node.start_mark, f"tag {shown(node.tag)}, expected plain text, lists and mappings"
        )
    if node.tag == _TAG + "null":
        return None
    if truth_values and node.tag == _TAG + "bool":
        return yaml.SafeLoader.bool_values[node.value.lower()]
    return _text(node)


def _mapping(node: yaml.MappingNode, truth_values: bool) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in _SCALARS:
            raise _Refused(key_node.start_mark, "a key is no text, expected a name")
        key = _text(key_node)
        if key in found:
            raise _Refused(
                key_node.start_mark, f"key {shown(key)} is there twice, expected it once"
            )
        found[key] = _tree(value_node, truth_values)
    return found


def _text(node: yaml.ScalarNode) -> str:
    text = str(node.value)
    try:
        fine = "\0" not in text.encode().decode()
    except UnicodeEncodeError:
        fine = False
    if not fine:
        raise _Refused(
            node.start_mark, "text with a null character or half a character, expected none"
        )
    return text
