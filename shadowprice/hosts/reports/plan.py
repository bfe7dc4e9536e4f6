"""Plan of a real run: nodes found, jobs as read, and the same policy in simulation."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_options import RunOptions
from shadowprice.hosts.first_instance import instance_of
from shadowprice.hosts.lease_cpu_memory import capacity_of, demand_of
from shadowprice.hosts.live.checkpoints import folder_of
from shadowprice.hosts.live.job_file import Job, JobFile, load_job_file
from shadowprice.hosts.live.launch_specs import ResourceLimits, command_line
from shadowprice.hosts.live.measured_run import CHARGES, read_charges
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.hosts.registry import open_host
from shadowprice.hosts.reports.results import MEASURED
from shadowprice.hosts.reports.simulated_run import simulate_as_executed
from shadowprice.instances.terms.charges import Overheads


@dataclass(frozen=True)
class ExecutionPlan:
    """Plan of a run: jobs, nodes, and the outcome of its simulation.

    Parameters
    ----------
    notes : tuple of str
        What had to be assumed, and what discovery left out.
    outcome : Outcome
        Verified.
    """

    settings: Settings
    job_file: JobFile
    nodes: tuple[DiscoveredNode, ...]
    notes: tuple[str, ...]
    outcome: Outcome

    def argv(self, job: Job) -> tuple[str, ...]:
        """The command of a job as its first lease would run it, on the first node."""
        own = self.settings.state.absolute() / "jobs" / job.name
        gpus = "cpu:" not in self.nodes[0].devices[0].uuid
        node = capacity_of(self.nodes[0])
        held = node.held(demand_of(job), min(job.gpus, node.gpus))
        limits = ResourceLimits.of(job, held, chosen=False)
        return command_line(job, own, str(folder_of(own, 1)), gpus=gpus, limits=limits)

    def first(self) -> list[tuple[str, str, int]]:
        """Job, node and GPUs of what the first decision that starts something would start."""
        rows = self.outcome.schedule
        if not len(rows.job):
            return []
        names = self.outcome.instance.workload.id
        at_s = float(rows.start_s.min())
        chosen = [k for k, start_s in enumerate(rows.start_s.tolist()) if start_s == at_s]
        return [
            (str(names[rows.job[k]]), self.nodes[int(rows.node[k])].name, int(rows.gpus[k]))
            for k in chosen
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values of environments, for JSON."""
        frame = self.outcome.jobs
        predicted = dict(zip(frame["id"], frame["jct_s"].tolist(), strict=True))
        return {
            "policy": self.settings.policy_name,
            "hosts": self.settings.hosts,
            "nodes": [_node_record(node) for node in self.nodes],
            "jobs": [
                {
                    "name": job.name,
                    "command": list(self.argv(job)),
                    "environment": sorted(job.env),
                    "directory": str(job.directory),
                    "gpus": job.gpus,
                    "iterations": job.iterations,
                    "arrival_s": job.arrival_s,
                    "predicted_jct_s": predicted[job.name],
                }
                for job in self.job_file.jobs
            ],
            "notes": list(self.notes),
            "first": [{"job": job, "node": node, "gpus": gpus} for job, node, gpus in self.first()],
            "predicted": self.outcome.summary(),
        }


def plan(settings: Settings) -> ExecutionPlan:
    """Discover nodes, read the jobs and simulate them; nothing is started or left behind.

    Raises
    ------
    InputError
        If a file, a name or a job is not as expected.
    HostError
        If the hosts cannot be reached or have nothing free.
    """
    job_file = load_job_file(settings.jobs)
    settings.acting_policy()
    nodes, left_out = discovered(settings.hosts)
    instance, assumed = instance_of(settings, job_file, nodes)
    charges, said = measured_charges(settings)
    options = RunOptions(placement=settings.placement, round_s=settings.round_s)
    charged = replace(instance, overheads=charges)
    outcome = simulate_as_executed(charged, None, settings.policy, options)
    return ExecutionPlan(settings, job_file, nodes, (*left_out, *assumed, said), outcome)


def measured_charges(settings: Settings) -> tuple[Overheads, str]:
    """Charges of starts and restarts as a run before measured them, and a sentence that says which.

    Of the run in the state directory, which may go on; else of the run whose table of rates is given.

    Raises
    ------
    InputError
        If what it measured cannot be read.
    """
    places = [settings.state / MEASURED]
    if settings.throughputs is not None:
        places.append(settings.throughputs.parent)
    for place in places:
        charges = read_charges(place / CHARGES)
        if charges is not None:
            said = (
                f"a start costs {charges.start_s:.2f} s and a restart {charges.restart_s:.2f} s more, as measured: "
                f"{place / CHARGES}"
            )
            return charges, said
    return Overheads(), (
        "starts and saves cost nothing here, which they do: --throughputs MEASURED/throughputs.json of a run that is "
        "over charges what that measured"
    )


def discovered(hosts: str) -> tuple[tuple[DiscoveredNode, ...], tuple[str, ...]]:
    """Nodes of a host, and what its discovery left out; devices are let go of again."""
    with tempfile.TemporaryDirectory(prefix="shadowprice-") as folder:
        host = open_host(hosts, Path(folder), "dry-run")
        try:
            nodes = host.discover()
            notes = host.notes
        finally:
            host.close()
    return nodes, notes


def _node_record(node: DiscoveredNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "gpu_type": node.gpu_type,
        "devices": [device.uuid for device in node.devices],
        "cpus": node.cpus,
        "memory_gb": node.memory_gb,
    }
