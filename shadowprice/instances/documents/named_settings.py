"""A name with settings on one line: ``NAME[:key=value,...]``, as options of commands have it.

The name ends with the first colon, a key with the first equals sign after it, a value with the next comma that is not
doubled: values may hold colons and equals signs as they are, and commas written twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shadowprice.errors import InputError
from shadowprice.instances.entries import shown

_TOKENS = re.compile(r",,|,|[^,]+")


def split_settings(text: str, where: str) -> tuple[str, dict[str, str]]:
    """Name and settings of a line, each as the text that it is.

    Parameters
    ----------
    where : str
        Option that has the line, for messages.

    Raises
    ------
    InputError
        If there is no name, nothing behind the colon, a part that is no ``key=value``, or a key twice.

    Examples
    --------
    >>> split_settings("quotas:file=C:/vc.csv,date=2020-04-01T12:00:00", "--with")
    ('quotas', {'file': 'C:/vc.csv', 'date': '2020-04-01T12:00:00'})
    >>> split_settings("quotas:file=a,,b.csv,date=2020-04-01", "--with")
    ('quotas', {'file': 'a,b.csv', 'date': '2020-04-01'})
    """
    name, colon, rest = text.partition(":")
    if not name or (colon and not rest):
        raise InputError(f"{where} {shown(text)}: expected NAME or NAME:key=value,...")
    return name, read_settings(rest, f"{where} {name}")


def read_settings(text: str, where: str) -> dict[str, str]:
    """Settings without a name, ``key=value,...``; none of an empty line.

    Raises
    ------
    InputError
        If a part is no ``key=value``, or a key is there twice.
    """
    found: dict[str, str] = {}
    for part in parts_of(text) if text else ():
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise InputError(
                f"{where}: {shown(part)} is no key=value; a comma begins the next key, expected it twice in a "
                "value, as a,,b"
            )
        if key in found:
            raise InputError(f"{where}: {key} is given twice, expected once")
        found[key] = value
    return found


def parts_of(text: str) -> Iterator[str]:
    """Parts between commas, with one comma for each that is doubled."""
    part = ""
    for token in _TOKENS.findall(text):
        if token == ",":
            yield part
            part = ""
        else:
            part += "," if token == ",," else token
    yield part


def joined_settings(name: str, settings: Mapping[str, object]) -> str:
    """The line that :func:`split_settings` reads back.

    Examples
    --------
    >>> joined_settings("charges", {"start_s": 10.0}), joined_settings("restart", {})
    ('charges:start_s=10.0', 'restart')
    >>> joined_settings("spread", {"file": "a,b.json"})
    'spread:file=a,,b.json'
    """
    doubled = {key: str(value).replace(",", ",,") for key, value in settings.items()}
    told = ",".join(f"{key}={value}" for key, value in doubled.items())
    return f"{name}:{told}" if told else name
