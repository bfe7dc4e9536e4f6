"""Switches of a run that are a policy's, or a placement's, to follow: found on the object.

The engine follows the switches about when decisions are due, what runs are charged and on what
their speeds depend, whatever the policy. The others go to the policy, by one rule: it takes a switch
if it has a parameter of that name, or says so itself, as :class:`Configurable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, Self, TypeVar, cast, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Configurable(Protocol):
    """A policy or a placement for which a switch is more than a parameter of the same name."""

    @property
    def takes(self) -> frozenset[str]:
        """Names of these switches."""

    def with_switches(self, given: Mapping[str, Any]) -> Self:
        """The same policy or placement under values of these switches."""


def taken(thing: object, among: Iterable[str]) -> frozenset[str]:
    """Switches among some that a policy or a placement takes."""
    parameters = {each.name for each in fields(thing) if each.init} if is_dataclass(thing) else ()
    stated = thing.takes if isinstance(thing, Configurable) else ()
    return frozenset(among) & {*parameters, *stated}


def switched(thing: T, given: Mapping[str, Any]) -> T:
    """A policy or a placement under values of switches that it takes."""
    stated = thing.takes if isinstance(thing, Configurable) else frozenset()
    own = {name: value for name, value in given.items() if name in stated}
    found: Any = cast(Any, thing).with_switches(own) if own else thing
    parameters = {name: value for name, value in given.items() if name not in own}
    return cast(T, replace(found, **parameters) if parameters else found)
