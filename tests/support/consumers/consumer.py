"""A reader of instances, as the law of what it refuses sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from support.feature_instances import instance_with


@dataclass(frozen=True)
class Consumer:
    """One that reads instances.

    Parameters
    ----------
    name : str
        Module in which its constant is, without the package, and the constant: ``execution.engine.KNOWS``.
    knows : frozenset of Feature
        That constant.
    read : callable
        Makes it read an instance. Raises ``InputError`` where it refuses; one that leaves an instance to
        another reader instead of refusing raises here with the words of the features that it does not know.
    make : callable
        An instance with exactly these features, that meets its other hypotheses.
    """

    name: str
    knows: frozenset[Feature]
    read: Callable[[Instance], object]
    make: Callable[..., Instance] = instance_with
