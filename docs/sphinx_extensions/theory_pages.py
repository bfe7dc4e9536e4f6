"""Theory: a page a folder of theorem files, and a page a model, rendered from their docstrings as they stand."""

from __future__ import annotations

import importlib
from types import ModuleType

import build_theorems
from shadowprice.solvers.programs.catalogue import model_files

SYSTEMS = {
    "lower_bounds": "Lower bounds of the offline optimum",
    "classic": "Classic policies",
    "tiresias": "Tiresias",
    "hadar": "Hadar and HadarE",
    "asrpt": "A-SRPT",
    "gandiva": "Gandiva",
    "synergy": "Synergy",
    "gavel": "Gavel",
}
"""Titles of the folders of ``shadowprice/proofs``."""


def pages() -> dict[str, str]:
    """Texts of the theory: theorems with their proofs by folder, and models."""
    by_folder: dict[str, list[build_theorems.Theorem]] = {}
    for theorem in build_theorems.theorems():
        by_folder.setdefault(theorem.module.partition(".")[0], []).append(theorem)
    texts = {
        f"theory/{folder}.rst": _folder_page(SYSTEMS[folder], found)
        for folder, found in by_folder.items()
    }
    names = [folder for folder in SYSTEMS if folder in by_folder]
    texts["theory/index.rst"] = _index(
        "Theorems with their proofs",
        "Rendered from the theorem files of ``shadowprice/proofs``: statement, status, proof, and the two functions "
        "that make it usable, ``bound`` and ``check``. Tests try to break each. The "
        ":doc:`list of all theorems </theorems>` has the tightest instance of each beside it.",
        names,
    )
    texts.update(_model_pages())
    return texts


def _index(title: str, text: str, names: list[str]) -> str:
    listed = "\n".join(f"   {name}" for name in names)
    return f"{_heading(title)}\n{text}\n\n.. toctree::\n   :maxdepth: 2\n\n{listed}\n"


def _heading(title: str, under: str = "=") -> str:
    return f"{title}\n{under * len(title)}\n"


def _folder_page(title: str, found: list[build_theorems.Theorem]) -> str:
    parts = [_heading(title)]
    for theorem in found:
        module = importlib.import_module(f"shadowprice.proofs.{theorem.module}")
        parts += [
            f".. _theorem-{theorem.identifier.lower().replace(' ', '-')}:\n",
            _heading(f"{theorem.identifier}: {theorem.title}", "-"),
            f"*{theorem.status}*\n",
            _rest(module),
            f".. currentmodule:: {module.__name__}\n",
        ]
        parts += [
            f".. autofunction:: {name}\n" for name in ("bound", "check") if _has(module, name)
        ]
    return "\n".join(parts)


def _has(module: ModuleType, name: str) -> bool:
    return callable(getattr(module, name, None))


def _rest(module: ModuleType) -> str:
    """Docstring below its first line."""
    return (module.__doc__ or "").strip("\n").partition("\n")[2].strip("\n") + "\n"


def _model_pages() -> dict[str, str]:
    texts, names = {}, []
    for entry in model_files().values():
        module = importlib.import_module(f"shadowprice.models.{entry.name}")
        names.append(entry.name)
        first = (module.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        texts[f"models/{entry.name}.rst"] = "\n".join(
            [
                _heading(f"{entry.name}: {first}"),
                f"``shadowprice models {entry.name}`` prints it; :doc:`/formulations` says how it is edited.\n",
                f".. automodule:: {module.__name__}\n   :members:\n",
            ]
        )
    texts["models/index.rst"] = _index(
        "Models",
        "Rendered from the files of ``shadowprice/models``: each programme as its paper writes it, with its symbols. "
        "The file is what is solved.",
        names,
    )
    return texts
