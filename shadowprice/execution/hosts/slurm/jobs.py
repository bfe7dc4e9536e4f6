"""Slurm job of one lease: its options, its script, and how to find it again."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from shadowprice.execution.hosts.protocol import FoundNode, LaunchSpec, LeaseKey
from shadowprice.execution.hosts.slurm.discovery import GB_PER_MIB
from shadowprice.execution.hosts.slurm.options import SlurmOptions

AGENT = "slurm_agent.py"
LOG = "slurm.log"
NO_STATE, NO_PYTHON = 66, 69
"""Exit codes of the script: the node sees no state directory, or has no such Python."""
_MARK = "shadowprice"
_SWEEP = "sweep"
SWEEP_MEMORY_MB = 64


@dataclass(frozen=True)
class Comment:
    """The comment of a job, by which a driver that starts later finds it.

    Parameters
    ----------
    gpus : int
        GPUs the job holds, 0 for CPU slots and sweeps.
    sweep : bool
        Whether it only cleans up after the lease.
    """

    run: str
    key: LeaseKey
    gpus: int
    sweep: bool = False

    def __str__(self) -> str:
        """As one word: job names hold no slash."""
        key = self.key
        kind = _SWEEP if self.sweep else "lease"
        parts = (_MARK, self.run, kind, key.job, key.epoch, key.rank, key.copy, self.gpus)
        return "/".join(map(str, parts))

    @classmethod
    def parse(cls, text: str) -> Comment | None:
        """Read a comment; None if it is not one of ours."""
        parts = text.split("/")
        if len(parts) != 8 or parts[0] != _MARK or not all(p.isdigit() for p in parts[4:]):
            return None
        epoch, rank, copy, gpus = map(int, parts[4:])
        return cls(parts[1], LeaseKey(parts[3], epoch, rank, copy), gpus, parts[2] == _SWEEP)


def lease_options(order: LaunchSpec, node: FoundNode, run: str, options: SlurmOptions) -> list[str]:
    """Options of ``sbatch`` for a lease's job: its node, its devices, and their share of the rest.

    CPUs and memory are the node's in proportion to the devices. Without a limit on memory, Slurm
    would give a job all of a node's wherever memory is counted, and no second lease would fit.
    """
    held, of = len(order.devices), len(node.devices)
    has_gpus = not order.devices[0].uuid.startswith(f"{node.name}/cpu:")
    kind = "" if node.gpu_type == "gpu" else f"{node.gpu_type}:"
    gpus = [f"--gres=gpu:{kind}{held}"] if has_gpus else []
    memory_mb = math.floor(node.memory_gb / GB_PER_MIB * held / of + 1e-6)
    # SIGTERM before a time limit leaves room for a checkpoint.
    notice_s = min(65535, math.ceil(order.grace_s) + 5)
    key = order.key
    return [
        *_common(order.node, str(Comment(run, key, held if has_gpus else 0)), options),
        f"--job-name={_MARK}-{key.job}-{key.folder}",
        f"--cpus-per-task={max(1, math.floor(node.cpus * held / of))}",
        *([f"--mem={memory_mb}M"] if memory_mb else []),
        *gpus,
        *([f"--time={options.time_limit}"] if options.time_limit else []),
        f"--signal=B:TERM@{notice_s}",
    ]


def sweep_options(order: LaunchSpec, run: str, options: SlurmOptions) -> list[str]:
    """Options for the job that cleans up after a lease on its node; it needs no device."""
    return [
        *_common(order.node, str(Comment(run, order.key, 0, sweep=True)), options),
        f"--job-name={_MARK}-sweep-{order.key.job}-{order.key.folder}",
        f"--mem={SWEEP_MEMORY_MB}M",
        "--time=5",
    ]


def _common(node: str, comment: str, options: SlurmOptions) -> list[str]:
    return [
        "--no-requeue",
        "--nodes=1",
        "--ntasks=1",
        f"--nodelist={node}",
        f"--comment={comment}",
        # Slurm fails a job whose output it cannot open; the script says better what is missing.
        "--output=/dev/null",
        "--chdir=/",
        *options.arguments(),
    ]


def guests_of(state: Path, lease: Path) -> Path:
    """Folder of guests for the agent of a lease's job; outside the lease's, which is its job's."""
    return state / "slurm" / lease.parent.parent.name / lease.name


def script(state: Path, lease: Path, python: str, what: str) -> str:
    """The job's script: becomes the agent, or says by its exit code why it cannot.

    Parameters
    ----------
    what : str
        ``hold`` or ``sweep``.
    """
    agent, python = shlex.quote(str(state / AGENT)), shlex.quote(python)
    log, folder = shlex.quote(str(lease / LOG)), shlex.quote(str(lease))
    guests = shlex.quote(str(guests_of(state, lease)))
    return (
        "#!/bin/sh\n"
        "umask 077\n"
        # Until the agent listens, a hint to look into the files is no reason to die.
        "trap '' USR1\n"
        f"[ -r {agent} ] && [ -w {folder} ] || exit {NO_STATE}\n"
        f"[ -x {python} ] || exit {NO_PYTHON}\n"
        f"exec {python} -I {agent} {what} {folder} {guests} >>{log} 2>&1\n"
    )


def why_not(code: int, node: str, state: Path, python: str) -> str:
    """Meaning of an exit code of the script, empty if it is not one of its own."""
    if code == NO_STATE:
        return (
            f"node {node} cannot read {state}; put --state on storage that this machine and all nodes "
            "of the partition share"
        )
    if code == NO_PYTHON:
        return (
            f"node {node} has no {python}; run from a Python that all nodes have at the same path"
        )
    return ""
