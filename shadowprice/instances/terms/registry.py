"""All terms: those that have an entry of their own in instances, and those that are declared by their settings.

A new term is a file in this folder and a line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, get_args

import msgspec
from msgspec import UNSET, UnsetType

from shadowprice.instances.features import Feature
from shadowprice.instances.terms.charges import ChargesTerm
from shadowprice.instances.terms.copies import CopiesTerm
from shadowprice.instances.terms.cpu_memory import CpuMemoryTerm
from shadowprice.instances.terms.declared import DeclaredTerm
from shadowprice.instances.terms.failures import FailuresTerm
from shadowprice.instances.terms.goodput import Goodput, GoodputSettings
from shadowprice.instances.terms.graphs import GraphsTerm
from shadowprice.instances.terms.parts import PartsTerm
from shadowprice.instances.terms.profiles import ProfilesTerm
from shadowprice.instances.terms.quotas import QuotasTerm
from shadowprice.instances.terms.racks import Racks
from shadowprice.instances.terms.rates import CoresTerm, RatesTerm, TypesTerm
from shadowprice.instances.terms.restart import RestartTerm
from shadowprice.instances.terms.settings import TermSettings
from shadowprice.instances.terms.sharing import SharingTerm
from shadowprice.instances.terms.spread import SpreadTerm
from shadowprice.instances.terms.stopped import StoppedTerm
from shadowprice.instances.terms.term import Term
from shadowprice.instances.terms.widths import WidthsTerm
from shadowprice.instances.terms.window import WindowTerm

TERMS: tuple[Term[Any], ...] = (
    RatesTerm(),
    TypesTerm(),
    ChargesTerm(),
    SharingTerm(),
    GraphsTerm(),
    ProfilesTerm(),
    SpreadTerm(),
    WidthsTerm(),
    CopiesTerm(),
    FailuresTerm(),
    QuotasTerm(),
    PartsTerm(),
    CoresTerm(),
    CpuMemoryTerm(),
    WindowTerm(),
    StoppedTerm(),
    RestartTerm(),
)
"""In the order in which they are checked, read and written; that of factors is the order of their product."""

SETTINGS: Mapping[str, type[TermSettings]] = MappingProxyType(
    {each.feature.value: each.settings for each in TERMS if each.settings is not None}
    | {Feature.GOODPUT.value: GoodputSettings}
)
"""Settings of those that an option has, by name, in the order in which they are read however they are written."""

ORIGINS: Mapping[Feature, str] = MappingProxyType(
    {each.feature: each.origin for each in TERMS if each.origin}
    | {Feature.OWN: "--with FILE.py:NAME, a class in a file of one's own"}
)
"""Origin of features in words, where it is not, or not only, an option."""


class DeclaredTerms(msgspec.Struct, frozen=True):
    """Those of an instance, by the settings of each."""

    racks: Racks | UnsetType = UNSET
    goodput: Goodput | UnsetType = UNSET

    def __iter__(self) -> Iterator[DeclaredTerm]:
        found = (getattr(self, name) for name in self.__struct_fields__)
        return (each for each in found if each is not UNSET)


DECLARED: Mapping[str, type[DeclaredTerm]] = MappingProxyType(
    {
        each.name: get_args(each.type)[0]
        for each in msgspec.structs.fields(DeclaredTerms)
        if each.name not in SETTINGS
    }
)
"""Declared terms that are their own settings, by name; read after the others, those in files of one's own last."""


def term_of_option(option: str) -> str | None:
    """Name of the term that sets an option of a run, None if none does by itself."""
    return next((name for name, term in SETTINGS.items() if option in term.sets), None)
