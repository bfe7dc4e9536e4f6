"""Declarations of a family: recipes, objectives and classes of schedules, from which names follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from shadowprice.instances.objective import Objective
from shadowprice.library.recipes.recipe import Recipe


@dataclass(frozen=True)
class Declaration:
    """An instance before it has a name.

    Parameters
    ----------
    recipe : Recipe
        What makes it.
    objectives : tuple of Objective
        Costs of which the library has an entry each.
    preemptive : bool
        Whether jobs may stop and resume; else each begins once.
    """

    recipe: Recipe
    objectives: tuple[Objective, ...] = (Objective.FLOW,)
    preemptive: bool = True


@dataclass(frozen=True)
class Family:
    """Instances that say the same kind of thing.

    Parameters
    ----------
    name : str
        First word of the names of its instances.
    about : str
        What they say, in a sentence.
    declarations : tuple of Declaration
        Instances in order of their size.
    """

    name: str
    about: str
    declarations: tuple[Declaration, ...]

    def named(self) -> Iterable[tuple[str, Declaration]]:
        """Declarations by name: ``FAMILY-JOBS-SOURCE-NUMBER``, numbered in order."""
        numbers: Counter[str] = Counter()
        for each in self.declarations:
            stem = f"{self.name}-{each.recipe.jobs}-{each.recipe.source}"
            numbers[stem] += 1
            yield f"{stem}-{numbers[stem]}", each
