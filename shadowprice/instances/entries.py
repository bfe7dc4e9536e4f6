"""Checks of names, numbers and keys from outside: of everything that JSON, TOML and YAML can hold."""

from __future__ import annotations

import difflib
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeGuard

from shadowprice.errors import InputError

MAX_WHOLE = 2**53
"""Up to which whole numbers are exact in float64."""

LARGEST = sys.float_info.max
"""Largest finite number."""


def known_keys(
    entry: object,
    where: str,
    known: Sequence[str],
    required: Sequence[str] = (),
    meant: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """A mapping with these keys and no others, as it is.

    Parameters
    ----------
    where : str
        File and place in it, for messages.
    known : sequence of str
        All keys there may be.
    required : sequence of str
        Those that there must be.
    meant : mapping of str to str
        Known keys by what else one might call them, for messages.

    Raises
    ------
    InputError
        If it is no mapping, or naming the first unknown key and the known one nearest to it, or
        the first that is missing.
    """
    if not isinstance(entry, dict):
        expected = ", ".join(required or known)
        raise InputError(f"{where}: is {shown(entry)}, expected a mapping with {expected}")
    for key in entry:
        if key not in known:
            name = str(key)[:100]
            near = [meant[name]] if name in meant else difflib.get_close_matches(name, known, 1)
            guess = (
                f"did you mean {near[0]!r}?" if near else f"expected {', '.join(known) or 'none'}"
            )
            raise InputError(f"{where}: unknown key {shown(key)}; {guess}")
    for key in required:
        if key not in entry:
            raise InputError(f"{where}: has no {key}, expected {', '.join(required)}")
    return entry


MOST_LISTED = 16
"""Names that a message lists; of more it says what lists them."""


def expected_name(name: str, known: Iterable[str], listed_by: str | None = None) -> str:
    """The end of a message on a name that nothing has: those nearest to it, and all if they are few.

    Parameters
    ----------
    known : iterable of str
        Names there are.
    listed_by : str, optional
        Command that lists them, named instead of many; without it all are listed.

    Examples
    --------
    >>> expected_name("gavl", ["tiresias", "gavel"])
    "did you mean 'gavel'? There are gavel, tiresias"
    >>> many = [f"policy-{number}" for number in range(20)]
    >>> expected_name("Policy-17", many, "shadowprice policies")
    "did you mean 'policy-17', 'policy-7' or 'policy-1'? There are the 20 that `shadowprice policies` lists"
    >>> expected_name("magic", many, "shadowprice policies")
    'expected one of the 20 that `shadowprice policies` lists'
    """
    names = sorted(known)
    near = [repr(each) for each in difflib.get_close_matches(name[:100].lower(), names, 3)]
    every = ", ".join(names)
    if listed_by is not None and len(names) > MOST_LISTED:
        every = f"the {len(names)} that `{listed_by}` lists"
    if not near:
        return f"expected one of {every}"
    guess = " or ".join(filter(None, (", ".join(near[:-1]), near[-1])))
    return f"did you mean {guess}? There are {every}"


def is_number(value: object) -> TypeGuard[int | float]:
    """True if a value of JSON or TOML is a number that a float can hold; truth values are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -LARGEST <= value <= LARGEST


ONE_LINE = "text on one line, without control characters"

_LINES = frozenset(("Cc", "Cs", "Zl", "Zp"))
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: object, instead: str = " ") -> str:
    """One line that a terminal shows as it is: whatever would steer it becomes ``instead``."""
    shown = (c if c.isprintable() or c.isspace() else instead for c in str(text))
    return " ".join("".join(shown).split())


def on_one_line(text: str) -> bool:
    """True if a name is printable without ending a line, moving a cursor or turning text around.

    Whoever can name a job could otherwise have us print a line of his own.
    """
    if text.isprintable():
        return True
    return all(
        unicodedata.category(letter) not in _LINES and letter not in _DIRECTIONS for letter in text
    )


def shown(value: object) -> str:
    """A value as a message shows it: on one line, not long."""
    # A number of four thousand digits cannot be converted to text, and nobody would read it.
    try:
        text = repr(value)
    except ValueError:
        return "a very long number"
    return text if len(text) <= 80 else text[:77] + "..."
