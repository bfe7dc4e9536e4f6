"""Declared terms as they are written: by their own fields, those in a file of one's own by ``FILE.py:NAME``."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_data import settings_in
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.declared import DeclaredTerm
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.user_code import load


@dataclass(frozen=True)
class DeclaredSettings(TermSettings):
    """A declared term, and the name by which it was written.

    Parameters
    ----------
    name : str
    term : DeclaredTerm
    """

    name: str
    term: DeclaredTerm

    feature: ClassVar[Feature] = Feature.OWN
    sets: ClassVar[tuple[str, ...]] = ("declared",)

    def on(self, run: TermContext) -> TermContext:
        """The run with the term."""
        return run.with_options(declared=(*run.options.get("declared", ()), self.term))

    @property
    def label(self) -> str:
        """Name by which it was written."""
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that are not as usual, as plain data."""
        return settings_in(self.term)

    @property
    def files(self) -> dict[str, str]:
        """The file that defines it, if that is one of one's own."""
        return {"file": self.name.rpartition(":")[0]} if is_own(self.term) else {}

    def within(self, folder: Path) -> DeclaredSettings:
        """The same term, its file named from a folder."""
        if not is_own(self.term):
            return self
        file, _, name = self.name.rpartition(":")
        return replace(self, name=f"{(folder / Path(file).expanduser()).absolute()}:{name}")


def is_own(term: DeclaredTerm) -> bool:
    """True if a term is in a file of one's own."""
    return term.feature is Feature.OWN


def own_term(text: str, where: str) -> type[DeclaredTerm]:
    """The class that ``FILE.py:NAME`` names; the file is run.

    Raises
    ------
    InputError
        If there is none, or it is no dataclass that says what runs hold or how much slower they are.
    """
    found = load(text, f"{where}: term")
    if not (isinstance(found, type) and issubclass(found, DeclaredTerm)):
        raise InputError(
            f"{where} {text}: is no term, expected a class of HoldingTerm, SlowingTerm or both"
        )
    if not is_dataclass(found):
        raise InputError(f"{where} {text}: expected a frozen dataclass, whose fields are settings")
    if not isinstance(getattr(found, "name", None), str):
        raise InputError(f"{where} {text}: has no name, expected a ClassVar[str]")
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"{where} {text}: does not say {', '.join(missing)}")
    if found.feature is not Feature.OWN:
        raise InputError(
            f"{where} {text}: says that it is {found.feature}, which comes with the package; expected Feature.OWN"
        )
    return found
