"""Slurm's command line: what is asked of it, and its answers as records.

Only ``sbatch``, ``squeue``, ``sinfo``, ``scontrol`` and ``srun`` are used, as argv lists, each with a
time-out; neither accounting nor an administrator is needed. Written and tested against Slurm 22.05.8.

Jobs and nodes are asked for in a fixed format: the shape of ``--json`` differs between versions, and
``squeue --json`` of 22.05 answers with every job of the cluster, whatever it is told to leave out.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from shadowprice.errors import HostError

PROGRAMS = ("sbatch", "squeue", "sinfo", "scontrol", "srun")
TIMEOUT_S, STEP_TIMEOUT_S = 10.0, 60.0
"""Of an answer, and of a step that looks at the nodes [s]."""
REFRESH_S = 1.0
"""Between two questions of the same kind; what is known is answered from memory."""
GB_PER_MIB = 1.048576e-3
"""Slurm counts memory in MiB."""
T = TypeVar("T")
_NODE_FIELDS = "NodeList:|,StateComplete:|,Memory:|,NodeAddr:|,Gres:|"
_GPU = re.compile(
    r"(?:^|,)\s*(?:gres[:/])?gpu(?::(?P<type>[^:,=()]+))??[:=](?P<count>\d+)(?:\([^)]*\))?"
)
_ALIVE = frozenset(
    {"CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"}
)


@dataclass(frozen=True)
class SlurmNode:
    """One node as ``sinfo`` sees it.

    Parameters
    ----------
    states : frozenset of str
        Upper-case words: ``IDLE``, ``MIXED``, ``DOWN``, ``DRAIN``, ``NOT_RESPONDING`` ...
    gpus : mapping of str to int
        GPUs by type (``gpu`` where the site names none).
    """

    name: str
    states: frozenset[str]
    memory_mb: int
    address: str
    gpus: Mapping[str, int]

    @property
    def answers(self) -> bool:
        """True if steps can be started on it; one that is drained keeps the jobs that it has."""
        return not self.states & _SILENT


_SILENT = frozenset(
    {"DOWN", "FAIL", "POWERED_DOWN", "FUTURE", "NOT_RESPONDING", "NO_RESPOND", "UNKNOWN"}
)


def gpus_of(gres: str) -> dict[str, int]:
    """GPUs by type of a gres string.

    ``gpu:v100:2(S:0-1)``, ``gpu:2``, ``gres/gpu:v100=2``; other resources, shards for instance, are
    left out.
    """
    found: dict[str, int] = {}
    for match in _GPU.finditer(gres or ""):
        kind = match["type"] or "gpu"
        found[kind] = found.get(kind, 0) + int(match["count"])
    return found


def words(states: str) -> frozenset[str]:
    """States as upper-case words, from ``idle+drain`` or short forms such as ``idle*``."""
    found: set[str] = set()
    for part in re.split(r"[+,]", states):
        word = part.strip().upper()
        if word.endswith("*"):
            found.add("NOT_RESPONDING")
        found.add(word.rstrip("*~#!%$@^-+"))
    return frozenset(found - {""})


class Slurm:
    """The commands, in the environment of this process without the job it may itself be in."""

    def __init__(self) -> None:
        absent = [program for program in PROGRAMS if shutil.which(program) is None]
        if absent:
            raise HostError(
                f"slurm: {', '.join(absent)} not found on PATH, expected Slurm's client commands; install "
                "them (Debian: slurm-client) and run on a machine of the cluster, or use --hosts local"
            )

    def run(self, *argv: str, script: str | None = None, timeout_s: float = TIMEOUT_S) -> str:
        """Output of a command.

        Raises
        ------
        HostError
            If it fails, or does not answer in time.
        """
        try:
            done = subprocess.run(
                argv,
                input=script,
                stdin=subprocess.DEVNULL if script is None else None,
                env=outside_jobs(os.environ),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HostError(
                f"slurm: {argv[0]} gave no answer in {timeout_s:.0f} s; is slurmctld running?"
            ) from None
        except OSError as error:
            raise HostError(f"slurm: {argv[0]} could not be executed: {error}") from None
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[:500]
            raise HostError(f"slurm: {argv[0]} exited with {done.returncode}: {said}")
        return done.stdout

    def submit(self, options: Sequence[str], script: str) -> int:
        """Submit a script by ``sbatch``; the number of its job."""
        said = self.run("sbatch", "--parsable", "--export=ALL", *options, script=script)
        head = said.strip().splitlines()[-1].split(";")[0] if said.strip() else ""
        if not head.isdigit():
            raise HostError(
                f"slurm: sbatch answered {said.strip()!r}, expected the number of a job"
            )
        return int(head)

    def living_jobs(self) -> dict[int, str]:
        """Running jobs of the caller, with their lists of nodes as Slurm shortens them."""
        said = self.run(
            *("squeue", "-h", "-t", "all", f"--user={os.getuid()}"),
            *("-O", "JobID:|,State:|,NodeList:|"),
        )
        rows = [[part.strip() for part in line.split("|")] for line in said.splitlines()]
        return {
            int(row[0]): row[2]
            for row in rows
            if len(row) >= 3 and row[0].isdigit() and row[1] in _ALIVE
        }

    def hostnames(self, listed: str) -> list[str]:
        """Names of a shortened list: ``n[0-1]``."""
        return self.run("scontrol", "show", "hostnames", listed).split()

    def nodes(self, names: Sequence[str]) -> dict[str, SlurmNode]:
        """Nodes by their names."""
        chosen = ("-n", ",".join(names), "-O", _NODE_FIELDS)
        return nodes_of_lines(self.run("sinfo", "-h", "-N", "-a", *chosen))


def outside_jobs(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment without what Slurm says of the job that this process is in: it would become options."""
    inherited = ("SLURM_", "SBATCH_", "SALLOC_", "SRUN_", "SLURMD_")
    return {
        name: value
        for name, value in environment.items()
        if name == "SLURM_CONF" or not name.startswith(inherited)
    }


def nodes_of_lines(text: str) -> dict[str, SlurmNode]:
    """Nodes of ``sinfo -N -O`` with the fields asked for here."""
    found = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) >= 5 and parts[0]:
            name, states, memory, address, gres = parts[:5]
            found[name] = SlurmNode(
                name=name,
                states=words(states),
                memory_mb=int(memory) if memory.isdigit() else 0,
                address=address or name,
                gpus=gpus_of(gres),
            )
    return found


@dataclass
class CachedQuery(Generic[T]):
    """An answer, and when it was asked for.

    A controller that is restarted leaves the last answer standing: leases live on by their files.
    """

    ask: Callable[[], T]
    answer: T
    asked_s: float = -math.inf

    def get(self) -> T:
        """The answer, asked for again after a while."""
        now = time.monotonic()
        if now - self.asked_s >= REFRESH_S:
            self.asked_s = now
            with suppress(HostError):
                self.answer = self.ask()
        return self.answer
