"""Hypotheses of a theorem on an instance: the features that it knows, and predicates beside them.

A theorem file has a constant ``KNOWS``. Whatever else an instance says the theorem does not speak of it: ``bound`` and
``check`` refuse it. A predicate is about what is no feature, such as gangs that are powers of two. It yields what there
is that the theorem does not know, in the plural: ``gangs of neither 1 nor all GPUs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, require, unknown
from shadowprice.instances.instance import Instance

Predicate = Callable[[Instance], Iterator[str]]


@dataclass(frozen=True)
class Hypotheses:
    """Hypotheses of a theorem on an instance.

    Parameters
    ----------
    theorem : str
        Its identifier.
    knows : frozenset of Feature
        Features that an instance may have.
    predicates : tuple of callable
        Other hypotheses, which are asked of instances with no other features.
    """

    theorem: str
    knows: frozenset[Feature]
    predicates: tuple[Predicate, ...] = ()

    def missing(self, instance: Instance) -> tuple[str, ...]:
        """Hypotheses that an instance does not meet, in words; none where the theorem speaks of it."""
        return unknown(instance, self.knows) or tuple(
            f"there are {words}" for words in self._others(instance)
        )

    def expect(self, instance: Instance) -> None:
        """Refuse an instance of which the theorem does not speak.

        Raises
        ------
        InputError
            Naming what it does not know.
        """
        require(instance, self.knows, self.theorem)
        others = " and ".join(self._others(instance))
        if others:
            raise InputError(
                f"{instance.workload.source}: has {others}, not known to {self.theorem}"
            )

    def _others(self, instance: Instance) -> Iterator[str]:
        for each in self.predicates:
            yield from each(instance)


def not_one_gpu(instance: Instance) -> Iterator[str]:
    """Clusters of more than one GPU."""
    if instance.cluster.total_gpus != 1:
        yield f"{instance.cluster.total_gpus} GPUs"


def not_powers_of_two(instance: Instance) -> Iterator[str]:
    """Gangs, or a cluster, of a number of GPUs that is no power of two."""
    sizes = np.append(instance.workload.gpus, instance.cluster.total_gpus)
    if (sizes & (sizes - 1)).any():
        yield "numbers of GPUs that are no powers of two"


def not_one_weight(instance: Instance) -> Iterator[str]:
    """Jobs of different weights, where a theorem is about the unweighted sum."""
    weight = instance.workload.weight
    if (weight != weight[:1]).any():
        yield "jobs of different weights, and the theorem is about the unweighted sum"
