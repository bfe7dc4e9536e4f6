"""A name with settings on one line: ``NAME[:key=value,...]``, as options of commands have it.

The name ends with the first colon, a key with the first equals sign after it, a value with the next comma: values may
hold colons and equals signs, and no comma.
"""

from __future__ import annotations

from collections.abc import Mapping

from shadowprice.errors import InputError
from shadowprice.instances.entries import shown


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
    """
    name, colon, rest = text.partition(":")
    if not name or (colon and not rest):
        raise InputError(f"{where} {shown(text)}: expected NAME or NAME:key=value,...")
    found: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise InputError(
                f"{where} {name}: {shown(part)} is no key=value; a comma begins the next key, expected values without "
                "one (a study file may have them)"
            )
        if key in found:
            raise InputError(f"{where} {name}: {key} is given twice, expected once")
        found[key] = value
    return name, found


def joined_settings(name: str, settings: Mapping[str, object]) -> str:
    """The line that :func:`split_settings` reads back.

    Raises
    ------
    InputError
        If a value has a comma.

    Examples
    --------
    >>> joined_settings("charges", {"start_s": 10.0}), joined_settings("restart", {})
    ('charges:start_s=10.0', 'restart')
    """
    for key, value in settings.items():
        if "," in str(value):
            raise InputError(
                f"{name}: {key} is {shown(value)}, expected a value without a comma, which begins the next key"
            )
    told = ",".join(f"{key}={value}" for key, value in settings.items())
    return f"{name}:{told}" if told else name
