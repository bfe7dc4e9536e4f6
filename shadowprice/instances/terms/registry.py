"""Declared terms of the package, by name: a new one is a file beside this one, and a field here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import get_args

import msgspec
from msgspec import UNSET, UnsetType

from shadowprice.instances.terms.declared import DeclaredTerm
from shadowprice.instances.terms.racks import Racks


class DeclaredTerms(msgspec.Struct, frozen=True):
    """Those of an instance, by the settings of each."""

    racks: Racks | UnsetType = UNSET

    def __iter__(self) -> Iterator[DeclaredTerm]:
        found = (getattr(self, name) for name in DECLARED)
        return (each for each in found if each is not UNSET)


DECLARED: Mapping[str, type[DeclaredTerm]] = MappingProxyType(
    {each.name: get_args(each.type)[0] for each in msgspec.structs.fields(DeclaredTerms)}
)
"""They are read after the others, those in files of one's own last."""
