"""Slurm jobs of leases: their options and scripts, who is in them, and how to find them again."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from shadowprice.errors import HostError
from shadowprice.hosts.protocol import DiscoveredNode, LaunchSpec, LeaseKey
from shadowprice.hosts.shared_storage import StoredLease
from shadowprice.hosts.slurm.commands import GB_PER_MIB
from shadowprice.hosts.slurm.time_limits import limit_s
from shadowprice.hosts.supervision.files import read_json, write_json

LOG = "slurm.log"
NO_STATE, NO_PYTHON = 66, 69
"""Exit codes of the script: the node sees no state directory, or has no such Python."""
_MARK = "shadowprice"
_SWEEP = "sweep"
SWEEP_MEMORY_MB = 64
NOTE = "slurm.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_PASSED = ("account", "qos", "reservation")


def checked_limit(text: str) -> str:
    """A time limit, as it was given.

    Raises
    ------
    HostError
        If it is none.
    """
    try:
        limit_s(text)
    except ValueError as error:
        raise HostError(f"slurm: time={text}: {error}") from None
    return text


@dataclass(frozen=True)
class SlurmOptions:
    """The address of a Slurm host: partition and what its jobs ask for.

    ``PARTITION[,time=LIMIT][,account=NAME][,qos=NAME][,reservation=NAME][,exclude=NODE]...``, every
    part optional; ``gpu,time=2-00:00:00,account=lab`` for instance.

    Parameters
    ----------
    partition : str
        Empty for all nodes of the cluster, and jobs to its default partition.
    time_limit : str
        Of each lease's job, as ``--time`` takes it; empty for the partition's own.
    passed : tuple of (str, str)
        Other options of ``sbatch``, name and value.
    exclude : frozenset of str
        Nodes that are not used.
    """

    partition: str = ""
    time_limit: str = ""
    passed: tuple[tuple[str, str], ...] = ()
    exclude: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, address: str) -> SlurmOptions:
        """Read an address.

        Raises
        ------
        HostError
            If a part is unknown or malformed.
        """
        partition, time_limit, exclude = "", "", set()
        passed: dict[str, str] = {}
        for position, part in enumerate(filter(None, address.split(","))):
            name, equals, value = part.partition("=")
            if not equals and position == 0 and _NAME.fullmatch(name):
                partition = name
            elif name == "time":
                time_limit = checked_limit(value)
            elif name == "exclude" and _NAME.fullmatch(value):
                exclude.add(value)
            elif name in _PASSED and _NAME.fullmatch(value):
                passed[name] = value
            else:
                raise HostError(
                    f"slurm: {part!r} in address {address!r}, expected PARTITION[,time=LIMIT][,account=NAME]"
                    "[,qos=NAME][,reservation=NAME][,exclude=NODE]"
                )
        return cls(partition, time_limit, tuple(passed.items()), frozenset(exclude))

    def check_limit(self, allowed: str) -> None:
        """Refuse a time limit that is longer than that of the partition.

        Raises
        ------
        HostError
            If it is.
        """
        if not self.time_limit:
            return
        try:
            most_s = limit_s(allowed)
        except ValueError:
            return  # the site does not say
        if limit_s(self.time_limit) > most_s:
            where = f"partition {self.partition}" if self.partition else "the default partition"
            raise HostError(
                f"slurm: time={self.time_limit} is longer than {where} allows, expected at most {allowed}"
            )

    def arguments(self) -> list[str]:
        """Options of ``sbatch`` that place a job, its time limit left out."""
        chosen = [f"--partition={self.partition}"] if self.partition else []
        return chosen + [f"--{name}={value}" for name, value in self.passed]


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


def lease_options(
    order: LaunchSpec, node: DiscoveredNode, run: str, options: SlurmOptions
) -> list[str]:
    """Options of ``sbatch`` for a lease's job: its node, its devices, and what it holds of the rest.

    CPUs and memory are those of the lease; where they are not counted, the node's in proportion to
    the devices. Without a limit on memory, Slurm would give a job all of a node's wherever memory is
    counted, and no second lease would fit.
    """
    held, of = len(order.devices), len(node.devices)
    has_gpus = not order.devices[0].uuid.startswith(f"{node.name}/cpu:")
    kind = "" if node.gpu_type == "gpu" else f"{node.gpu_type}:"
    gpus = [f"--gres=gpu:{kind}{held}"] if has_gpus else []
    cpus = max(1, math.floor(node.cpus * held / of))
    memory_mb = math.floor(node.memory_gb / GB_PER_MIB * held / of + 1e-6)
    if order.amounts is not None:
        cpus, memory_mb = max(1, order.amounts[0] // 1000), order.amounts[1]
    # SIGTERM before a time limit leaves room for a checkpoint.
    notice_s = min(65535, math.ceil(order.grace_s) + 5)
    key = order.key
    return [
        *_common(order.node, str(Comment(run, key, held if has_gpus else 0)), options),
        f"--job-name={_MARK}-{key.job}-{key.folder}",
        f"--cpus-per-task={cpus}",
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
    """Folder of guests of a lease's Slurm job; outside the lease's own, to which its command writes."""
    return state / "slurm" / lease.parent.parent.name / lease.name


def script(state: Path, lease: Path, python: str, what: str) -> str:
    """The job's script: becomes the holder of its devices, or says by its exit code why it cannot.

    Parameters
    ----------
    what : str
        ``hold`` or ``sweep``.
    """
    supervisor, python = shlex.quote(str(state / "supervisor.py")), shlex.quote(python)
    log, folder = shlex.quote(str(lease / LOG)), shlex.quote(str(lease))
    guests = f" {shlex.quote(str(guests_of(state, lease)))}" if what == "hold" else ""
    return (
        "#!/bin/sh\n"
        "umask 077\n"
        # Until the holder listens, a hint to look into the files is no reason to die.
        "trap '' USR1\n"
        f"[ -r {supervisor} ] && [ -w {folder} ] || exit {NO_STATE}\n"
        f"[ -x {python} ] || exit {NO_PYTHON}\n"
        f"exec {python} -I -S {supervisor} {what} {folder}{guests} >>{log} 2>&1\n"
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


@dataclass
class HeldJob:
    """A job of Slurm that holds devices for one lease and its guests.

    Parameters
    ----------
    holder : LeaseKey
        Lease it was submitted for; it may have ended while guests go on.
    guests : Path
        Folder in which it looks for guests.
    devices : tuple of str
        Uuids of its devices, in the order of their indices in the job.
    identity : int or None
        Its number, once it is known.
    submitted_s : float
        When it was submitted, or looked for by a later driver; monotonic clock.
    """

    holder: LeaseKey
    guests: Path
    devices: tuple[str, ...]
    identity: int | None = None
    submitted_s: float = 0.0
    members: set[LeaseKey] = field(default_factory=set)

    @classmethod
    def of(cls, order: LaunchSpec, state: Path) -> HeldJob:
        """The job of a lease of its own."""
        devices = tuple(device.uuid for device in order.devices)
        return cls(order.key, guests_of(state, order.directory), devices)


@dataclass
class SlurmLease(StoredLease):
    """One rank, the job it is in, and what is done about its end.

    Parameters
    ----------
    kill_at_s : float or None
        When Slurm is to kill its job, if its supervisor does not end it.
    sweep : int or None
        Job that ends what a dead supervisor left, submitted at ``sweep_s``.
    """

    job: HeldJob
    kill_at_s: float | None = None
    sweep: int | None = None
    sweep_s: float = 0.0


class Refused(Exception):
    """Slurm cannot run this lease; the text says why."""


def place(order: LaunchSpec, jobs: Iterable[HeldJob]) -> HeldJob | None:
    """The living job that holds all of an order's devices; None if none holds any.

    Raises
    ------
    Refused
        If some of the devices are in a job and others are not: Slurm gives a device to one job.
    """
    wanted = {device.uuid for device in order.devices}
    overlapping = [job for job in jobs if wanted & set(job.devices)]
    if not overlapping:
        return None
    if len(overlapping) == 1 and wanted <= set(overlapping[0].devices):
        return overlapping[0]
    taken = ", ".join(
        sorted(f"{job.holder.job} has {'+'.join(job.devices)}" for job in overlapping)
    )
    raise Refused(
        f"Slurm lets jobs share devices only if one holds all that the other wants: {order.key.job} wants "
        f"{'+'.join(sorted(wanted))}, {taken}"
    )


def add_guest(order: LaunchSpec, job: HeldJob) -> bool:
    """Hand a lease to a job that runs; False if that takes no guests any more."""
    positions = [job.devices.index(device.uuid) for device in order.devices]
    name = f"{order.key.folder}-{order.key.job}.json"
    fresh = job.guests.with_name(f"{job.guests.name}.{name}.tmp")
    fresh.write_text(json.dumps({"lease": str(order.directory), "positions": positions}))
    try:
        os.rename(fresh, job.guests / name)
    except FileNotFoundError:
        fresh.unlink(missing_ok=True)
        return False
    return True


def write_note(order: LaunchSpec, job: HeldJob) -> None:
    """Write down which job a lease is in, for a driver that starts later."""
    note = {"holder": asdict(job.holder), "devices": list(job.devices)}
    write_json(f"{order.directory}/{NOTE}", note)


def read_note(order: LaunchSpec, state: Path, known: Mapping[LeaseKey, HeldJob]) -> HeldJob:
    """The job of a lease as written down; its own, with its devices, if nothing sensible was."""
    own = tuple(device.uuid for device in order.devices)
    note = read_json(f"{order.directory}/{NOTE}") or {}
    try:
        holder = msgspec.convert(note["holder"], LeaseKey)
        devices = msgspec.convert(note["devices"], tuple[str, ...])
    except (KeyError, msgspec.ValidationError):
        holder, devices = order.key, own
    if holder in known:
        return known[holder]
    guests = guests_of(state, state / "jobs" / holder.job / "leases" / holder.folder)
    # A job may write what it likes into its folder; what leads out of the state is no lease of ours.
    inside = guests.resolve().is_relative_to((state / "slurm").resolve())
    if holder == order.key or not inside or not set(own) <= set(devices):
        return HeldJob.of(order, state)
    return HeldJob(holder, guests, devices)
