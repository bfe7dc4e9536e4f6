"""``shadowprice joint``: A-SRPT's whole problem for a few job graphs, at best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from shadowprice.cli.options import (
    ClusterOption,
    IntraOption,
    JsonOption,
    NicOption,
    NicSharingOption,
)
from shadowprice.cli.outputs import print_record
from shadowprice.cli.show import console, print_table
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.models.asrpt_joint import Jobs
    from shadowprice.solvers.asrpt.joint import JointPlan


def joint_command(
    graphs: Annotated[list[Path], typer.Argument(help="Job graphs (YAML), one a job.")],
    cluster: ClusterOption,
    slot_s: Annotated[
        float, typer.Option("--slot", min=1e-6, help="Seconds of a slot; jobs start with slots.")
    ],
    iterations: Annotated[
        str, typer.Option("--iterations", help="Of each job, such as 100,20; one for all.")
    ] = "1",
    release: Annotated[
        str, typer.Option("--release", help="Slot in which each job arrives; one for all.")
    ] = "0",
    intra: IntraOption = None,
    nic: NicOption = None,
    sharing: NicSharingOption = "per-gpu",
    time_limit_s: Annotated[
        float, typer.Option("--time-limit", min=0.1, help="Seconds for the programme.")
    ] = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Place a few job graphs and choose when each runs: least total completion time without preemption."""
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.graphs.graph_file import load_job_graph
    from shadowprice.instances.terms.graphs import network_of
    from shadowprice.models.asrpt_joint import Jobs
    from shadowprice.solvers.asrpt.joint import best_joint_plan, enough_slots

    found, nodes = tuple(load_job_graph(path) for path in graphs), Cluster.load(cluster)
    network = network_of(nodes, intra, nic, sharing)
    counts = _whole("--iterations", iterations, len(found), least=1)
    ready = _whole("--release", release, len(found), least=0)
    rooms = tuple(nodes.gpus_per_node.tolist())
    jobs = Jobs(found, counts, ready, rooms, network, slot_s, 1)
    jobs = replace(jobs, horizon=enough_slots(jobs))
    plan = best_joint_plan(jobs, time_limit_s=time_limit_s)
    if as_json:
        print_record(_report(jobs, plan))
        return
    table = Table("job", "from slot", "complete", "replicas by node")
    print_table(table, _rows(jobs, plan), _cells)
    console.print(sentence(jobs, plan), markup=False, highlight=False, soft_wrap=True)


def sentence(jobs: Jobs, plan: JointPlan) -> str:
    """The result in words."""
    claim = (
        "no placement and order without preemption that starts jobs with slots has less"
        if plan.proven
        else f"none that starts jobs with slots has less than {plan.bound_slots:g}; not proven optimal"
    )
    if plan.edited:
        claim += ", of the model as it was edited"
    return f"total completion {plan.total_slots} slots of {jobs.slot_s:g} s: {claim}"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    where = "; ".join(f"node {node}: {replicas}" for node, replicas in row["replicas"].items())
    return row["graph"], str(row["start"]), str(row["completion"]), where


def _rows(jobs: Jobs, plan: JointPlan) -> list[dict[str, Any]]:
    return [
        {
            "graph": graph.name,
            "start": plan.start[j],
            "completion": plan.completion[j],
            "replicas": {int(node): list(map(int, row)) for node, row in plan.mappings[j]},
        }
        for j, graph in enumerate(jobs.graphs)
    ]


def _report(jobs: Jobs, plan: JointPlan) -> dict[str, Any]:
    """Data that ``--json`` prints."""
    return {
        "total": plan.total_slots,
        "bound": plan.bound_slots,
        "proven": plan.proven,
        "slot_s": jobs.slot_s,
        "jobs": _rows(jobs, plan),
        "units": {"total": "slots", "bound": "slots", "start": "slots", "completion": "slots"},
    }


def _whole(option: str, text: str, count: int, *, least: int) -> tuple[int, ...]:
    """Whole numbers, one for each job or one for all."""
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text!r}: expected whole numbers, comma-separated") from None
    if len(numbers) == 1:
        numbers *= count
    if len(numbers) != count or min(numbers) < least:
        raise InputError(
            f"{option} {text!r}: expected {count} numbers of at least {least}, or one for all jobs"
        )
    return tuple(numbers)
