"""A policy's leases as Kubernetes manifests; written from documentation, executed by nobody here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shadowprice.analysis.execution_plan import Plan
from shadowprice.analysis.semantics import Semantics
from shadowprice.analysis.simulate import simulate_policy
from shadowprice.execution.real.assemble import instance_of
from shadowprice.execution.real.hosts.kubernetes import KubernetesOptions, manifests
from shadowprice.execution.real.job_file import load_job_file
from shadowprice.execution.real.orders import OrderBook
from shadowprice.execution.real.protocol import Device, FoundNode, Order
from shadowprice.execution.real.settings import Settings
from shadowprice.instances.cluster import Cluster


def kubernetes_export(
    jobs: Path, cluster: Cluster, policy: str, options: KubernetesOptions, python: str = "python3"
) -> str:
    """Manifests of the leases that the policy's first decision grants.

    With a queue Kueue admits jobs, and the first lease of every job is exported, suspended.

    Parameters
    ----------
    cluster : Cluster
        What the policy decides for; where a lease really runs is for Kubernetes to say, among nodes
        of its GPU type.
    python : str
        Interpreter in the image that stands for ``{python}``.

    Raises
    ------
    InputError
        If the jobs or the policy are not as expected.
    HostError
        If a gang spans nodes unevenly.
    """
    settings = Settings(jobs, policy, "kubernetes", Path(options.state), round_s=0.0)
    job_file, nodes = load_job_file(jobs), nodes_of(cluster)
    instance, notes = instance_of(settings, job_file, nodes)
    outcome = simulate_policy(instance.workload, instance.cluster, policy, Semantics())
    plan = Plan(settings, job_file, nodes, tuple(notes), outcome)
    wanted = (
        {job.name for job in job_file.jobs} if options.queue else {it[0] for it in plan.first()}
    )
    return manifests(
        _orders(plan, wanted, python), {node.name: node.gpu_type for node in nodes}, options
    )


def nodes_of(cluster: Cluster) -> tuple[FoundNode, ...]:
    """Nodes of these GPUs, by number."""
    return tuple(
        FoundNode(
            f"node-{k}",
            node.gpu_type,
            tuple(Device(f"node-{k}", i, f"node-{k}/gpu:{i}") for i in range(node.gpus)),
            node.cpus,
            node.memory_gb,
        )
        for k, node in enumerate(cluster.nodes)
    )


def _orders(plan: Plan, wanted: set[str], python: str) -> Sequence[Order]:
    """Orders of the first lease of each wanted job, where simulation runs it first."""
    settings = plan.settings
    book = OrderBook(
        settings.state, plan.nodes, settings.limits, settings.checkpoint_s, python=python
    )
    rows, names = plan.rows, plan.outcome.instance.workload.id
    row_of = {job.name: job for job in plan.job_file.jobs}
    orders: list[Order] = []
    for name in sorted(wanted):
        mine = [k for k in range(len(rows.job)) if str(names[rows.job[k]]) == name]
        first_s = min(float(rows.start_s[k]) for k in mine)
        devices = [
            device
            for k in mine
            if float(rows.start_s[k]) == first_s
            for device in plan.nodes[int(rows.node[k])].devices[: int(rows.gpus[k])]
        ]
        orders += book.orders(row_of[name], 1, devices)
    return orders
