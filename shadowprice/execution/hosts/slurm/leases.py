"""Slurm job of a lease: its own, or as a guest that of a lease with the same devices."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from shadowprice.execution.hosts.lease_files import LeaseReader
from shadowprice.execution.hosts.protocol import Exit, LaunchSpec, LeaseKey
from shadowprice.execution.hosts.slurm.jobs import guests_of
from shadowprice.execution.supervision.files import read_json, write_json

NOTE = "slurm.json"


@dataclass
class HeldJob:
    """A job of Slurm that holds devices for one lease and its guests.

    Parameters
    ----------
    holder : LeaseKey
        Lease it was submitted for; it may have ended while guests go on.
    guests : Path
        Folder in which its agent looks for guests.
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


@dataclass
class SlurmLease:
    """One rank, the job it is in, and what went wrong before it began."""

    order: LaunchSpec
    job: HeldJob
    reader: LeaseReader
    refused: Exit | None = None
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


def invite(order: LaunchSpec, job: HeldJob) -> bool:
    """Hand a lease to the agent of a job; False if that takes no guests any more."""
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


def open_house(job: HeldJob) -> None:
    """Make the folder in which the agent looks for guests."""
    job.guests.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_note(order: LaunchSpec, job: HeldJob) -> None:
    """Write down which job a lease is in, for a driver that starts later."""
    note = {"holder": asdict(job.holder), "devices": list(job.devices)}
    write_json(f"{order.directory}/{NOTE}", note)


def read_note(order: LaunchSpec, state: Path, known: Mapping[LeaseKey, HeldJob]) -> HeldJob:
    """The job of a lease as written down; its own, with its devices, if nothing sensible was."""
    own = tuple(device.uuid for device in order.devices)
    note = read_json(f"{order.directory}/{NOTE}") or {}
    try:
        told = note["holder"]
        holder = LeaseKey(
            str(told["job"]), int(told["epoch"]), int(told["rank"]), int(told["copy"])
        )
        devices = tuple(str(uuid) for uuid in note["devices"])
    except (KeyError, TypeError, ValueError):
        holder, devices = order.key, own
    if holder in known:
        return known[holder]
    guests = guests_of(state, state / "jobs" / holder.job / "leases" / holder.folder)
    # A job may write what it likes into its folder; what leads out of the state is no lease of ours.
    inside = guests.resolve().is_relative_to((state / "slurm").resolve())
    if holder == order.key or not inside or not set(own) <= set(devices):
        return HeldJob(order.key, guests_of(state, order.directory), own)
    return HeldJob(holder, guests, devices)
