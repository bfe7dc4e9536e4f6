"""Instances of the library: a recipe, and the bytes that it makes, known by their digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_data import text_of
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.documents.written_instance import InstanceWithJobs, written_with_jobs
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.library.recipes.recipe import Recipe
from shadowprice.studies.data_sets.download import place_of


@dataclass(frozen=True, repr=False)
class LibraryInstance(Brief):
    """An instance of the library.

    Parameters
    ----------
    name : str
        ``FAMILY-JOBS-SOURCE-NUMBER``.
    family : str
        First word of the name.
    recipe : Recipe
        What makes it.
    objectives : tuple of Objective
        Costs of which the library has an entry each.
    preemptive : bool
        Whether jobs may stop and resume; else each begins once.
    digest, records_digest : str
        SHA-256 of its written form, and of its records in certificates; empty before it is published.
    """

    name: str
    family: str
    recipe: Recipe
    objectives: tuple[Objective, ...]
    preemptive: bool
    digest: str
    records_digest: str

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return self.recipe.jobs

    def absent(self) -> tuple[str, ...]:
        """Data sets that it needs and that are not here."""
        return tuple(each for each in self.recipe.data_sets() if not place_of(each).is_file())

    @cached_property
    def text(self) -> str:
        """Written form: one object of JSON, a line an entry.

        Raises
        ------
        InputError
            If a data set is not here, or the recipe makes other bytes than those that were published.
        """
        found = text_of(written_with_jobs(self.recipe.instance()))
        digest = digest_of_text(found)
        if self.digest and digest != self.digest:
            raise InputError(
                f"instance {self.name!r}: its recipe makes an instance of SHA-256 {digest}, expected {self.digest}; "
                "another version of a package draws or reads other jobs"
            )
        return found

    def instance(self) -> Instance:
        """The instance, as its written form says.

        Raises
        ------
        InputError
            As :attr:`text`.
        """
        return instance_of_text(self.text, self.name)

    def objective(self, text: str) -> Objective:
        """An objective of the instance by its name.

        Raises
        ------
        InputError
            If it has none of that name.
        """
        if text not in self.objectives:
            raise InputError(
                f"instance {self.name!r}: objective {text!r}, expected {' or '.join(self.objectives)}"
            )
        return Objective(text)

    def document(self) -> dict[str, Any]:
        """Declaration as JSON has it."""
        return {
            "name": self.name,
            "family": self.family,
            "jobs": self.jobs,
            "objectives": [str(each) for each in self.objectives],
            "preemptive": self.preemptive,
            "digest": self.digest,
            "records_digest": self.records_digest,
            "recipe": self.recipe.document(),
        }


def digest_of_text(text: str) -> str:
    """SHA-256 of a written form."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def instance_of_text(text: str, where: str) -> Instance:
    """Instance of a written form.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InputError(f"{where}: {error}, expected JSON") from None
    return decode(InstanceWithJobs, document, where).whole(where)
