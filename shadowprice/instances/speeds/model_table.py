"""Entries of models by name, for the jobs of a workload, from JSON or TOML files.

A file has a table ``models`` of names and entries; an entry ``default`` beside it is for all other models. Names
match whatever their case, hyphens and underscores: ``VGG19`` is ``vgg-19``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import parse_json, parse_toml, read_text
from shadowprice.instances.speeds.model_names import plain_name
from shadowprice.instances.workload import Workload

Entry = TypeVar("Entry")


@dataclass(frozen=True, repr=False)
class ModelTable(Brief, Generic[Entry]):
    """Models by name.

    Parameters
    ----------
    models : mapping of str to entry
        By name; no two may match.
    default : entry, optional
        For models that are not listed.
    source : str
        Where it is from, for messages.

    Attributes
    ----------
    kind : type
        Type of the entries of files.
    """

    kind: ClassVar[Any]

    models: Mapping[str, Entry]
    default: Entry | None = None
    source: str = "models"
    _by_key: Mapping[str, Entry] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, Entry] = {}
        for name, model in self.models.items():
            if plain_name(name) in found:
                raise InputError(f"{self.source}: model {name!r} is listed twice")
            found[plain_name(name)] = model
        object.__setattr__(self, "_by_key", found)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a JSON or TOML file, told apart by its ending.

        Raises
        ------
        InputError
            Naming file, model and value of what is wrong.
        """
        file = Path(path)
        if file.suffix not in (".json", ".toml"):
            raise InputError(f"{file}: ends in {file.suffix!r}, expected .json or .toml")
        parse = parse_json if file.suffix == ".json" else parse_toml
        entries = decode(_form(cls.kind), parse(read_text(file), str(file)), str(file))
        return cls(entries.models, entries.default, str(file))

    def entry(self, model: str) -> Entry | None:
        """Entry of a model, None if it is not listed and there is no default."""
        return self._by_key.get(plain_name(model), self.default)

    def of_jobs(self, workload: Workload) -> list[Entry]:
        """Entry of the model of every job; O(n).

        Raises
        ------
        InputError
            Naming the job and the model if that is not listed and there is no default.
        """
        entries = []
        for job, model in zip(workload.id.tolist(), workload.model.tolist(), strict=True):
            found = self.entry(model)
            if found is None:
                raise InputError(
                    f"{workload.source}: job {job!r} has model {model!r}, which {self.source} does not "
                    f"list, expected one of {', '.join(self.models)}, or a table with a default"
                )
            entries.append(found)
        return entries


@cache
def _form(kind: Any) -> Any:
    """Form of a file of entries."""
    return msgspec.defstruct(
        "ModelTable", [("models", dict[str, kind]), ("default", kind | None, None)], frozen=True
    )
