"""Slurm's command line: what is asked of it, and its answers as records.

Only ``sbatch``, ``squeue``, ``scancel`` and ``sinfo`` are used, as argv lists, each with a time-out;
neither accounting nor an administrator is needed. Written and tested against Slurm 22.05.8.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from shadowprice.errors import HostError

PROGRAMS = ("sbatch", "squeue", "scancel", "sinfo")
TIMEOUT_S = 10.0
REFRESH_S = 1.0
"""Between two questions of the same kind; what is known is answered from memory."""
GB_PER_MIB = 1.048576e-3
"""Slurm counts memory in MiB."""
T = TypeVar("T")
_JOB_FIELDS = "JobID:|,State:|,NodeList:|,exit_code:|,Reason:|,Comment:|"
_NODE_FIELDS = "NodeList:|,StateComplete:|,CPUs:|,Memory:|,NodeAddr:|,GresUsed:|,Gres:|"
_GPU = re.compile(
    r"(?:^|,)\s*(?:gres[:/])?gpu(?::(?P<type>[^:,=()]+))??[:=](?P<count>\d+)(?:\([^)]*\))?"
)
# A pilot runs inside a job; what that job was given must not become what a new one asks for.
_INHERITED = ("SLURM_", "SBATCH_", "SALLOC_", "SRUN_")


@dataclass(frozen=True)
class SlurmJob:
    """One job as ``squeue`` sees it; ``code`` is the exit code of its script once it ended."""

    identity: int
    state: str
    node: str
    code: int
    reason: str
    comment: str

    @property
    def is_pending(self) -> bool:
        """True if no node was given to it yet."""
        return self.state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")

    @property
    def is_over(self) -> bool:
        """True if Slurm is done with it; its processes are gone unless its node was lost."""
        return self.state not in _ALIVE and not self.is_pending


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
    gpus, gpus_used : mapping of str to int
        GPUs there are and that jobs hold, by type (``gpu`` where the site names none).
    """

    name: str
    states: frozenset[str]
    cpus: int
    memory_mb: int
    address: str
    gpus: Mapping[str, int]
    gpus_used: Mapping[str, int]

    @property
    def is_down(self) -> bool:
        """True if Slurm has given it up; one that has missed a question is not down yet."""
        return bool(self.states & {"DOWN", "FAIL", "POWERED_DOWN", "FUTURE"})

    @property
    def takes_jobs(self) -> bool:
        """True if it answers and is given new jobs."""
        return not self.is_down and not self.states & _CLOSED


_CLOSED = frozenset(
    {"NOT_RESPONDING", "NO_RESPOND", "UNKNOWN", "INVAL", "INVALID", "MAINT", "RESERVED", "BLOCKED"}
    | {"DRAIN", "DRAINING", "DRAINED", "FAILING", "REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
    | {"POWERING_DOWN", "POWERING_UP", "POWER_DOWN"}
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

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self.timeout_s = timeout_s
        absent = [program for program in PROGRAMS if shutil.which(program) is None]
        if absent:
            raise HostError(
                f"slurm: {', '.join(absent)} not found on PATH, expected Slurm's client commands; install "
                "them (Debian: slurm-client) and run on a machine of the cluster, or use --hosts local"
            )

    def _run(
        self, *argv: str, script: str | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name == "SLURM_CONF" or not name.startswith(_INHERITED)
        }
        try:
            done = subprocess.run(
                argv,
                input=script,
                stdin=subprocess.DEVNULL if script is None else None,
                env={**kept, **(env or {})},
                capture_output=True,
                text=True,
                timeout=self.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HostError(
                f"slurm: {argv[0]} gave no answer in {self.timeout_s:.0f} s; is slurmctld running?"
            ) from None
        except OSError as error:
            raise HostError(f"slurm: {argv[0]} could not be executed: {error}") from None
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[:500]
            raise HostError(f"slurm: {argv[0]} exited with {done.returncode}: {said}")
        return done.stdout

    def submit(self, options: list[str], script: str, env: Mapping[str, str] | None = None) -> int:
        """Submit a script by ``sbatch``; the number of its job.

        ``env`` goes through the environment of ``sbatch``: variables named in ``--export`` make
        Slurm run a login shell on the node first.
        """
        chosen = ("--parsable", "--export=ALL", *options)
        said = self._run("sbatch", *chosen, script=script, env=env)
        head = said.strip().splitlines()[-1].split(";")[0] if said.strip() else ""
        if not head.isdigit():
            raise HostError(
                f"slurm: sbatch answered {said.strip()!r}, expected the number of a job"
            )
        return int(head)

    def jobs(self) -> dict[int, SlurmJob]:
        """The caller's jobs, those that ended lately too."""
        said = self._run("squeue", "-h", "-t", "all", f"--user={os.getuid()}", "-O", _JOB_FIELDS)
        found = {}
        for line in said.splitlines():
            parts = line.split("|", 5)
            if len(parts) == 6 and parts[0].strip().isdigit():
                head, state, node, code, reason, comment = (part.strip() for part in parts)
                node = "" if node == "(null)" else node
                status = int(code) if code.isdigit() else 0
                comment = comment.rstrip("|")
                found[int(head)] = SlurmJob(int(head), state, node, _code(status), reason, comment)
        return found

    def cancel(self, jobs: list[int], only_pending: bool = False) -> None:
        """Remove jobs from the queue, or end them as the site does: SIGTERM, KillWait, SIGKILL."""
        if jobs:
            which = ["--state=PENDING"] if only_pending else []
            self._run("scancel", *which, *map(str, jobs))

    def signal(self, jobs: list[int], name: str, everyone: bool = False) -> None:
        """Send a signal to the scripts of running jobs, or to every process of them."""
        if jobs:
            whom = "--full" if everyone else "--batch"
            self._run("scancel", whom, f"--signal={name}", *map(str, jobs))

    def nodes(self, partition: str = "") -> dict[str, SlurmNode]:
        """Nodes of a partition, of all of them if none is named."""
        chosen = ["-p", partition] if partition else []
        return nodes_of_lines(self._run("sinfo", "-h", "-N", *chosen, "-O", _NODE_FIELDS))

    def time_limit(self, partition: str = "") -> str:
        """Longest time that a job of a partition may take, the default one's if none is named.

        As Slurm writes it, ``infinite`` for none; empty if there is no such partition.
        """
        for line in self._run("sinfo", "-h", "-o", "%P|%l").splitlines():
            name, _, limit = line.strip().partition("|")
            if name.rstrip("*") == partition or (not partition and name.endswith("*")):
                return limit.strip()
        return ""


def _code(status: int) -> int:
    """Exit code of a wait status, or as some versions have it the code itself; -N for a signal."""
    if status >= 256:
        return status >> 8
    return -(status & 127) if status & 127 else status


def nodes_of_lines(text: str) -> dict[str, SlurmNode]:
    """Nodes of ``sinfo -N -O`` with the fields asked for here."""
    found = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) >= 7 and parts[0]:
            name, states, cpus, memory, address, used, gres = parts[:7]
            found[name] = SlurmNode(
                name=name,
                states=words(states),
                cpus=int(cpus) if cpus.isdigit() else 0,
                memory_mb=int(memory) if memory.isdigit() else 0,
                address=address or name,
                gpus=gpus_of(gres),
                gpus_used=gpus_of(used),
            )
    return found


@dataclass
class CachedQuery(Generic[T]):
    """An answer, the time when it was asked for, and why it could not be asked for again.

    A controller that is restarted leaves the last answer standing: leases live on by their files.
    """

    ask: Callable[[], T]
    answer: T
    asked_s: float = -math.inf
    tried_s: float = -math.inf
    trouble: str = ""

    def get(self, newer_s: float = REFRESH_S) -> T:
        """The answer, asked for again if it is older than ``newer_s`` seconds."""
        now = time.monotonic()
        if now - self.tried_s >= newer_s:
            self.tried_s = now
            try:
                self.answer, self.asked_s, self.trouble = self.ask(), now, ""
            except HostError as error:
                self.trouble = str(error)
        return self.answer


class SlurmView:
    """Jobs of this user, and nodes of a partition."""

    def __init__(self, slurm: Slurm, partition: str) -> None:
        jobs: dict[int, SlurmJob] = {}
        nodes: dict[str, SlurmNode] = {}
        self.jobs = CachedQuery(slurm.jobs, jobs)
        self.nodes = CachedQuery(lambda: slurm.nodes(partition), nodes)

    def job(self, identity: int, since_s: float) -> SlurmJob | None:
        """A job that was submitted at ``since_s``; None if that is not known yet.

        A job that Slurm has forgotten is over.
        """
        found = self.jobs.get().get(identity)
        if found is None and self.jobs.asked_s > since_s:
            return SlurmJob(identity, "FORGOTTEN", "", 0, "Slurm knows it no more", "")
        return found

    def is_closed(self, node: str) -> bool:
        """True if a node starts no job now: it is down, drained, or an administrator closed it."""
        found = self.nodes.answer.get(node)
        return found is not None and not found.takes_jobs

    def is_down(self, node: str) -> bool:
        """True if Slurm has given a node up."""
        found = self.nodes.get().get(node)
        return found is not None and found.is_down
