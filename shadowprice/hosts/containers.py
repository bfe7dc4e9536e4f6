"""Containers of jobs: the command line that runs a command in an image.

Apptainer is the runtime: what it runs are children of the supervisor, which it can stop, see the end
of, and clean up after. A daemon such as Docker's would own them; its images run under Apptainer as
``docker://NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import Name
from shadowprice.instances.entries import shown

RUNTIME = "apptainer"
PYTHON = "python3"
"""The Python of an image, for ``{python}``."""
_REMOTE = re.compile(r"(docker|oras|library)://[A-Za-z0-9][A-Za-z0-9._/:@-]*")
_BIND = re.compile(r"/[^:,]*(:/[^:,]*(:(ro|rw))?)?")


@dataclass(frozen=True)
class Container:
    """Image in which the command of a job runs.

    Parameters
    ----------
    image : str
        A file or folder, from the job's directory on, or an image of a registry:
        ``docker://pytorch/pytorch:2.5``.
    binds : tuple of str
        Folders that are seen inside beside the job's own: ``/data``, ``/data:/inside``,
        ``/data:/inside:ro``.

    Raises
    ------
    ValueError
        If one is something else.
    """

    image: Name
    binds: Annotated[tuple[Name, ...], Meta(max_length=100, description="a list of text")] = ()

    def __post_init__(self) -> None:
        if "://" in self.image and not _REMOTE.fullmatch(self.image):
            raise ValueError(
                f"image is {shown(self.image)}, expected a path, or docker://, oras:// or library:// with a name"
            )
        for bind in self.binds:
            if not _BIND.fullmatch(bind):
                raise ValueError(
                    f"binds has {shown(bind)}, expected /FOLDER, /FOLDER:/INSIDE or /FOLDER:/INSIDE:ro"
                )

    def source(self, directory: Path) -> str:
        """The image as the runtime is told: an absolute path, or an image of a registry."""
        return self.image if "://" in self.image else str(directory / self.image)

    def expect_image(self, directory: Path, where: str) -> None:
        """Refuse an image that is no file or folder, where it should be one, and a directory that cannot be bound.

        Raises
        ------
        InputError
            Naming it.
        """
        if {":", ","} & set(str(directory)):
            raise InputError(
                f"{where}: directory is {shown(str(directory))}, expected no ':' and ',' in the path of a job in "
                "a container"
            )
        if "://" not in self.image and not (directory / self.image).exists():
            raise InputError(
                f"{where}: container: image is {shown(self.image)}, expected a file or folder that exists, "
                f"from {directory} on"
            )

    def argv(
        self,
        command: Sequence[str],
        directory: Path,
        own: Path,
        *,
        gpus: bool,
        cpus: float | None = None,
        memory_mib: int | None = None,
    ) -> tuple[str, ...]:
        """Command line of the runtime for a command.

        Variables of the environment are the command's too. Nothing of the image or the binds can be
        taken for an option, nor text of the command for one of the runtime.

        Parameters
        ----------
        directory : Path
            Where the command runs; absolute, and seen inside under the same name.
        own : Path
            The job's files in the state directory, seen inside under the same name.
        gpus : bool
            Whether the GPUs and their libraries are to be seen inside.
        cpus, memory_mib
            CPUs and memory [MiB] that the runtime limits it to, by control groups; None for no limit.

        Examples
        --------
        >>> Container("a.sif", ("/data",)).argv(["python3", "t.py"], Path("/d"), Path("/s/j"), gpus=True)[:4]
        ('apptainer', 'exec', '--nv', '--bind')
        """
        binds = [
            each for path in (str(directory), str(own), *self.binds) for each in ("--bind", path)
        ]
        devices = ["--nv"] if gpus else []
        where = ["--pwd", str(directory)]
        limits = [] if cpus is None else ["--cpus", f"{cpus:g}"]
        limits += [] if memory_mib is None else ["--memory", f"{memory_mib}M"]
        return (
            RUNTIME,
            "exec",
            *devices,
            *limits,
            *binds,
            *where,
            self.source(directory),
            *command,
        )
