"""From a job file and hosts to the parts of a run."""

from __future__ import annotations

from collections.abc import Callable

from shadowprice.execution.hosts.lease_files import copy_supervisor
from shadowprice.execution.hosts.protocol import Device, FoundNode, Host
from shadowprice.execution.real.clock import Clock
from shadowprice.execution.real.devices import Devices
from shadowprice.execution.real.event_log import Record
from shadowprice.execution.real.job_file import JobFile, cluster_of, workload
from shadowprice.execution.real.launch_specs import OrderBook
from shadowprice.execution.real.lease import Tracked
from shadowprice.execution.real.lease_monitor import Watch
from shadowprice.execution.real.ledger import Ledger
from shadowprice.execution.real.measuring import Measuring
from shadowprice.execution.real.run import Run
from shadowprice.execution.real.settings import Settings
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
from shadowprice.instances.workload import Workload


def assemble(
    settings: Settings,
    job_file: JobFile,
    ledger: Ledger,
    host: Host,
    clock: Clock,
    resumed: bool,
    tick: Callable[[], None],
) -> Run:
    """Put all parts of a run together; what is run and where is written down the first time.

    Parameters
    ----------
    tick : callable
        Called whenever the leases were looked at.
    """
    found = host.discover()
    nodes = _recorded_nodes(ledger) if resumed else found
    instance, notes = instance_of(settings, job_file, nodes)
    jobs = {job.name: job for job in job_file.jobs}
    names = [str(name) for name in instance.workload.id]
    tracked = [Tracked(row, jobs[name]) for row, name in enumerate(names)]
    book = OrderBook(settings.state.resolve(), nodes, settings.limits, settings.checkpoint_s)
    if not resumed:
        copy_supervisor(settings.state)
        _write_down(ledger, nodes, tracked, instance, notes)
    present = {device.uuid for node in found for device in node.devices}
    everything = {device.uuid for node in nodes for device in node.devices}
    gone = frozenset(node.name for node in nodes) - {node.name for node in found}
    watch = Watch(host, clock, settings.limits, tick, gone)
    return Run(
        tracked=tracked, ledger=ledger, record=Record(ledger, tracked, clock), watch=watch,
        devices=Devices(nodes, everything - present), measuring=Measuring(instance), orders=book,
        limits=settings.limits, clock=clock,
    )  # fmt: skip


def _write_down(
    ledger: Ledger,
    nodes: tuple[FoundNode, ...],
    tracked: list[Tracked],
    instance: Instance,
    notes: list[str],
) -> None:
    """What is run and where; from now on the run can be resumed."""
    with ledger.transaction():
        ledger.set("nodes", [_plain(node) for node in nodes])
        for one in tracked:
            job = one.job
            ledger.add_job(
                job.name, position=one.row, iterations=job.iterations, gpus=job.gpus,
                arrival_s=float(instance.workload.arrival_s[one.row]), model=job.model,
            )  # fmt: skip
        for text in notes:
            ledger.event(0.0, "note", text=text)
        ledger.set("ready", True)


def _plain(node: FoundNode) -> dict[str, object]:
    devices = [{"index": device.index, "uuid": device.uuid} for device in node.devices]
    return {
        "name": node.name, "gpu_type": node.gpu_type, "devices": devices, "cpus": node.cpus,
        "memory_gb": node.memory_gb, "address": node.address,
    }  # fmt: skip


def _recorded_nodes(ledger: Ledger) -> tuple[FoundNode, ...]:
    """The nodes with which the run began."""
    return tuple(
        FoundNode(**{
            **node,
            "devices": tuple(
                Device(node["name"], each["index"], each["uuid"]) for each in node["devices"]
            ),
        })
        for node in ledger.value("nodes")
    )  # fmt: skip


def instance_of(
    settings: Settings, job_file: JobFile, nodes: tuple[FoundNode, ...]
) -> tuple[Instance, list[str]]:
    """What the policy is told of jobs and nodes before anything is measured, and what is assumed."""
    table = None if settings.throughputs is None else load_throughputs(settings.throughputs)
    cluster = cluster_of(nodes)
    jobs, notes = workload(job_file, cluster, table)
    together = None if table is None or not table.together else table
    if settings.share is not None:
        together = _any_pairs(jobs, cluster.gpu_types, settings.share, together)
    return Instance(cluster, jobs, together=together), notes


def _any_pairs(
    jobs: Workload, gpu_types: tuple[str, ...], share: float, known: Throughputs | None
) -> Throughputs:
    """Rates of all pairs of equal gang: those of the table, else a share of what each does alone."""
    assert jobs.throughput is not None
    kinds = {
        (str(model), int(gpus)): tuple(map(float, rates))
        for model, gpus, rates in zip(jobs.model, jobs.gpus, jobs.throughput, strict=True)
    }
    together = {
        (gpu_type, one, other): (share * rates[column], share * others[column])
        for column, gpu_type in enumerate(gpu_types)
        for one, rates in kinds.items()
        for other, others in kinds.items()
        if one[1] == other[1] and rates[column] > 0 and others[column] > 0
    }
    if known is not None:
        together |= dict(known.together)
    return Throughputs(gpu_types, kinds, together, source="shares that are assumed")
