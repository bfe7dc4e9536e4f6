"""A job that somebody wants to be run for real, and what its command is told.

Placeholders of a command are ``{python}``, ``{directory}`` and ``{checkpoint_dir}``; everything else
in braces is the command's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shadowprice.instances.speeds.observations import kind_name

_PLACEHOLDER = re.compile(r"\{(python|directory|checkpoint_dir)\}")


@dataclass(frozen=True)
class Job:
    """What somebody wants to be run.

    Parameters
    ----------
    name : str
        Unique whatever its case, and safe as the name of a folder.
    command : tuple of str
        Program and arguments, with placeholders; see :meth:`argv`.
    env : mapping of str to str
        Variables of its environment; they may be secrets, and are left out of its ``repr``.
    gpus : int
        Gang size.
    iterations : int
        Steps to do.
    directory : Path
        Where it runs; absolute.
    gpu_types : tuple of str
        Types on which it may run; empty for all.
    cpus, memory_gb : float
        CPU cores and memory [GB] of the whole gang; 0 if it does not matter.
    weight, arrival_s, deadline_s : float
        As in a workload: times [s] count from the beginning of the run; no deadline is infinity.
    model, tenant : str
        Kind of model and owner, empty if unknown.
    throughput : float or mapping of str to float or None
        Iterations per second of the whole gang, on all types or by type (0 or left out: it cannot
        run there); None if unknown.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    gpus: int
    iterations: int
    directory: Path
    gpu_types: tuple[str, ...] = ()
    cpus: float = 0.0
    memory_gb: float = 0.0
    weight: float = 1.0
    arrival_s: float = 0.0
    deadline_s: float = math.inf
    model: str = ""
    tenant: str = ""
    throughput: float | Mapping[str, float] | None = None

    @property
    def kind(self) -> str:
        """Name under which its rates are kept: its model, or its own."""
        return kind_name(self.name, self.model)

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether the command asks for a directory to save its checkpoints in."""
        return any("{checkpoint_dir}" in text for text in self.command)

    def argv(self, python: str, checkpoint_dir: str) -> tuple[str, ...]:
        """The command with its placeholders replaced, all at once and each once.

        >>> job = Job("a", ("{python}", "t.py", "--out={checkpoint_dir}", "{x}"), {}, 1, 5, Path("/d"))
        >>> job.argv("python3", "/c/{python}")
        ('python3', 't.py', '--out=/c/{python}', '{x}')
        """
        told = {
            "python": python,
            "directory": str(self.directory),
            "checkpoint_dir": checkpoint_dir,
        }
        return tuple(_PLACEHOLDER.sub(lambda found: told[found[1]], text) for text in self.command)
