"""Profiles by CPUs and memory as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msgspec import UNSET, UnsetType

from shadowprice.analysis.terms.written_term import WrittenRun, WrittenTerm
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.profiles import Profiles


@dataclass(frozen=True)
class ProfilesSettings(WrittenTerm):
    """Speeds of models by the CPUs and memory of a run, on nodes that say how much they have.

    Parameters
    ----------
    file : str
        JSON file of models, such as `profile` writes; those made after Synergy's paper if left out.
    """

    feature: ClassVar[Feature] = Feature.PROFILES
    sets: ClassVar[tuple[str, ...]] = ("profiles",)
    example: ClassVar[str] = (
        "simulate sensitive.csv --cluster 4x8+24cpu+500gb --policy synergy-tune:srtf --with profiles"
    )

    file: FileName | UnsetType = UNSET

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run with these profiles."""
        found = Profiles.synthetic() if self.file is UNSET else Profiles.load(self.file)
        return run.switched(profiles=found)
