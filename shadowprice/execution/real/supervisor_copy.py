"""Puts the supervisor where nodes find it: into the state directory, with what it imports."""

from __future__ import annotations

import importlib.resources
import sys
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.execution.supervision.files import write_text

LIBRARY = "library/shadowprice"


def copy_supervisor(state: Path) -> Path:
    """Put the supervisor into a state directory; the file to run.

    Raises
    ------
    HostError
        If it cannot be written.
    """
    package = importlib.resources.files("shadowprice.execution")
    folder = f"{LIBRARY}/execution/supervision"
    # Nothing else of this package goes with it, so the packages around it are empty.
    sources = {f"{LIBRARY}/__init__.py": "", f"{LIBRARY}/execution/__init__.py": ""}
    for part in package.joinpath("supervision").iterdir():
        if part.name.endswith(".py"):
            sources[f"{folder}/{part.name}"] = part.read_text(encoding="utf-8")
    sources["supervisor.py"] = package.joinpath("supervisor.py").read_text(encoding="utf-8")
    try:
        (state / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in sources.items():  # the file to run last
            if not (state / name).is_file() or (state / name).read_text("utf-8") != text:
                write_text(str(state / name), text)
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"state directory {state}: cannot write the supervisor: {error}") from None
    return state / "supervisor.py"


def supervisor_argv(state: Path, directory: Path, python: str = sys.executable) -> list[str]:
    """What to execute on a node for the order in a lease's directory."""
    return [python, "-I", "-S", str(state / "supervisor.py"), str(directory)]
