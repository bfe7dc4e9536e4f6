"""Terms read from options and mappings: each once, every mistake named with its place and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shadowprice.analysis.terms.registry import OTHERWISE, TERMS
from shadowprice.analysis.terms.written_term import WrittenRun, WrittenTerm
from shadowprice.errors import InputError
from shadowprice.instances.documents.named_settings import split_settings
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.entries import expected_name, shown

OPTION = "--with"


def term_of(name: str, settings: object, where: str) -> WrittenTerm:
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
    otherwise = {feature.value: brought for feature, brought in OTHERWISE.items()}
    if name not in TERMS and name in otherwise:
        raise InputError(
            f"{where} {name}: is no term that is written, but given by {otherwise[name]}"
        )
    if name not in TERMS:
        known = expected_name(name, TERMS)
        raise InputError(f"{where} {shown(name)[1:-1]}: no such term, {known}")
    if not isinstance(settings, Mapping):
        raise InputError(
            f"{where} {name}: is {shown(settings)}, expected a mapping of settings, {{}} for none"
        )
    return decode(TERMS[name], settings, f"{where} {name}", numbers_as_text=True)


def terms_of_options(texts: Iterable[str], option: str = OPTION) -> tuple[WrittenTerm, ...]:
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
    found: dict[str, WrittenTerm] = {}
    for text in texts:
        name, settings = split_settings(text, option)
        if name in found:
            raise InputError(
                f"{option} {name}: is given twice, expected once with all its settings"
            )
        found[name] = term_of(name, settings, option)
    return in_order(found)


def terms_of_mapping(given: Mapping[str, object], where: str) -> tuple[WrittenTerm, ...]:
    """Terms as files have them: settings by name.

    Raises
    ------
    InputError
        As of :func:`term_of`.
    """
    return in_order({name: term_of(name, each, f"{where}:") for name, each in given.items()})


def in_order(terms: Mapping[str, WrittenTerm]) -> tuple[WrittenTerm, ...]:
    """Terms in the order in which they are read."""
    return tuple(terms[name] for name in TERMS if name in terms)


def with_terms(run: WrittenRun, terms: Iterable[WrittenTerm]) -> WrittenRun:
    """A run with all of these terms, their files read.

    Raises
    ------
    InputError
        As of :meth:`WrittenTerm.on`, naming the term.
    """
    for term in terms:
        run = term.on(run)
    return run
