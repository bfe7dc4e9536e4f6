"""Placeholders of commands, and how they are quoted where a shell reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

SHELL = ("/bin/sh", "-c")
"""Program and option of a text for a shell, which comes after them."""

# Everything else in braces is the command's own.
_PLACEHOLDER = re.compile(r"\{(python|directory|checkpoint_dir)\}")


def filled(command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """A command with its placeholders replaced, all at once and each once.

    In the text of a shell each value is quoted as its place asks for: outside of quotes, in single or in
    double ones.

    Parameters
    ----------
    values : mapping of str to str
        ``python``, ``directory`` and ``checkpoint_dir``.

    >>> filled(("/bin/sh", "-c", "cp {directory}/x '{directory}/y'"), {"directory": "/a b"})[2]
    "cp '/a b'/x '/a b/y'"
    """
    in_shell = tuple(command[:2]) == SHELL
    return tuple(
        _in_shell(text, values)
        if in_shell and k == 2
        else _PLACEHOLDER.sub(lambda match: values[match[1]], text)
        for k, text in enumerate(command)
    )


def _in_shell(text: str, values: Mapping[str, str]) -> str:
    made, quote, at = [], "", 0
    while at < len(text):
        found = _PLACEHOLDER.match(text, at)
        if found is not None:
            made.append(_quoted(values[found[1]], quote))
            at = found.end()
            continue
        letter = text[at]
        if letter in ("'", '"') and quote in ("", letter):
            quote = "" if quote else letter
        size = 2 if letter == "\\" and quote != "'" else 1
        made.append(text[at : at + size])
        at += size
    return "".join(made)


def _quoted(value: str, quote: str) -> str:
    """A value where a shell reads it: in single or double quotes, or in none."""
    if quote == "'":
        return value.replace("'", "'\\''")
    if quote:
        return re.sub(r'([\\"$`])', r"\\\1", value)
    return shlex.quote(value)
