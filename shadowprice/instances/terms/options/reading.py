"""Terms read from options and mappings: each once, every mistake named with its place and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shadowprice.errors import InputError
from shadowprice.instances.documents.named_settings import split_settings
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.entries import expected_name, known_keys, shown
from shadowprice.instances.terms.declared import DeclaredTerm
from shadowprice.instances.terms.options.declared_settings import DeclaredSettings, own_term
from shadowprice.instances.terms.registry import DECLARED, ORIGINS, SETTINGS
from shadowprice.instances.terms.settings import TermContext, TermSettings, kinds_of
from shadowprice.user_code import names_a_file, split_parameters

OPTION = "--with"


def term_type(name: str, where: str) -> type[TermSettings | DeclaredTerm]:
    """The record of settings of a term.

    Raises
    ------
    InputError
        If there is no such term, naming the nearest, or what else gives it.
    """
    if names_a_file(name):
        return own_term(name, where)
    if name in DECLARED:
        return DECLARED[name]
    otherwise = {feature.value: brought for feature, brought in ORIGINS.items()}
    if name not in SETTINGS and name in otherwise:
        raise InputError(
            f"{where} {name}: is no term that is written, but given by {otherwise[name]}"
        )
    if name not in SETTINGS:
        known = expected_name(name, (*SETTINGS, *DECLARED))
        raise InputError(f"{where} {shown(name)[1:-1]}: no such term, {known}")
    return SETTINGS[name]


def term_of(name: str, settings: object, where: str) -> TermSettings:
    """A term of its name and settings, which may be text, or numbers where these are expected.

    Parameters
    ----------
    where : str
        Option, or file and place in it, for messages.

    Raises
    ------
    InputError
        If there is no such term or setting, or a value is not as expected.
    """
    place = f"{where} {name}"
    made = decode(term_type(name, where), _mapping(settings, place), place, numbers_as_text=True)
    return DeclaredSettings(name, made) if isinstance(made, DeclaredTerm) else made


def read_setting(name: str, setting: str, value: object, where: str) -> Any:
    """A value of one setting of a term, which there is, as plain data.

    Raises
    ------
    InputError
        If it is not as expected.
    """
    kind = kinds_of(term_type(name, where))[setting]
    return msgspec.to_builtins(decode(kind, value, where, numbers_as_text=True))


def settings_read(name: str, settings: object, where: str) -> dict[str, Any]:
    """Settings of a term, each by itself, as plain data: others may be needed beside them.

    Raises
    ------
    InputError
        If there is no such term or setting, or a value is not as expected.
    """
    place, known = f"{where} {name}", tuple(kinds_of(term_type(name, where)))
    given = known_keys(_mapping(settings, place), place, known)
    return {key: read_setting(name, key, value, f"{place}: {key}") for key, value in given.items()}


def _mapping(settings: object, where: str) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        raise InputError(
            f"{where}: is {shown(settings)}, expected a mapping of settings, {{}} for none"
        )
    return dict(settings)


def terms_of_options(texts: Iterable[str], option: str = OPTION) -> tuple[TermSettings, ...]:
    """Terms as a repeated option has them, ``NAME[:key=value,...]`` each.

    Raises
    ------
    InputError
        As of :func:`term_of`; or if a term is given twice.

    Examples
    --------
    >>> [str(term) for term in terms_of_options(["restart", "charges:start_s=5"])]
    ['charges:start_s=5.0', 'restart']
    """
    found: dict[str, TermSettings] = {}
    for text in texts:
        name, settings = _split(text, option)
        if name in found:
            raise InputError(
                f"{option} {name}: is given twice, expected once with all its settings"
            )
        found[name] = term_of(name, settings, option)
    return in_order(found)


def _split(text: str, option: str) -> tuple[str, dict[str, str]]:
    """Name and settings; the name of a term in a file of one's own has a colon."""
    if not names_a_file(text):
        return split_settings(text, option)
    name, rest = split_parameters(text)
    return name, split_settings(f"own:{rest}", option)[1] if rest else {}


def terms_of_mapping(terms: Mapping[str, object], where: str) -> tuple[TermSettings, ...]:
    """Terms as files have them: settings by name.

    Raises
    ------
    InputError
        As of :func:`term_of`.
    """
    return in_order({name: term_of(name, each, f"{where}:") for name, each in terms.items()})


def in_order(terms: Mapping[str, TermSettings]) -> tuple[TermSettings, ...]:
    """Terms in the order in which they are read."""
    return tuple(terms[name] for name in names_in_order(terms))


def names_in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names of terms in the order in which they are read: those of the package first, then one's own."""
    given, order = list(names), [*SETTINGS, *DECLARED]
    own = (name for name in given if name not in order)
    return (*(name for name in order if name in given), *own)


def with_terms(run: TermContext, terms: Iterable[TermSettings]) -> TermContext:
    """A run with all of these terms, their files read.

    Raises
    ------
    InputError
        As of :meth:`TermSettings.on`, naming the term.
    """
    for term in terms:
        run = term.on(run)
    return run
