"""Searches that write what they found, a file for each, and print a line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from shadowprice.errors import InputError


@dataclass(frozen=True)
class Found:
    """What a search found.

    Parameters
    ----------
    file : str
        Name of its file.
    text : str
        What is in it.
    says : str
        It in a line.
    """

    file: str
    text: str
    says: str


def search_each(
    words: str | None, names: Iterable[str], evaluations: int, find: Callable[[str, int], Found]
) -> None:
    """Look for something of each name with so many evaluations, write it to a folder and print it.

    Parameters
    ----------
    words : str, optional
        What the search is about, for ``--help``.
    names, evaluations
        Unless the command line has others.
    """
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--evaluations", type=int, default=evaluations)
    parser.add_argument("--only", default=",".join(names), help="names, by default all")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in given.only.split(","):
            began = time.process_time()
            found = find(name, given.evaluations)
            (given.folder / found.file).write_text(found.text, encoding="utf-8")
            spent = time.process_time() - began
            print(f"{name}: {found.says} ({spent:.0f} CPU s)", flush=True)
    except InputError as error:
        sys.exit(f"error: {error}")
