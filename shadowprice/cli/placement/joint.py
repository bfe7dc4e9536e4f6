"""``shadowprice place joint``: A-SRPT's whole problem for a few job graphs, at best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from shadowprice.cli.options import ClusterOption, TermsOption, with_options
from shadowprice.cli.outputs import with_origin
from shadowprice.cli.placement.network import asked_network
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import print_lines, print_table
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.models.asrpt_joint import Jobs
    from shadowprice.solvers.asrpt.joint import JointPlan


@with_options
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
    terms: TermsOption = None,
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.1, help="Seconds for the programme.")
    ] = 60.0,
    *,
    form: ResultForm,
) -> None:
    """Place a few job graphs and choose when each runs: least total completion time without preemption."""
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.graphs.graph_file import load_job_graph
    from shadowprice.models.asrpt_joint import Jobs
    from shadowprice.solvers.asrpt.joint import best_joint_plan, enough_slots

    job_graphs, nodes = tuple(load_job_graph(path) for path in graphs), Cluster.load(cluster)
    network = asked_network(terms, nodes)
    counts = _whole("--iterations", iterations, len(job_graphs), least=1)
    ready = _whole("--release", release, len(job_graphs), least=0)
    rooms = tuple(nodes.gpus_per_node.tolist())
    jobs = Jobs(job_graphs, counts, ready, rooms, network, slot_s, 1)
    jobs = replace(jobs, horizon=enough_slots(jobs))
    plan = best_joint_plan(jobs, time_limit_s=budget_s)

    def show() -> None:
        table = Table("job", "from slot", "complete", "replicas by node")
        print_table(table, _rows(jobs, plan), _cells)
        print_lines(sentence(jobs, plan))

    print_result(
        form, show, lambda: with_origin(_report(jobs, plan)), lambda: _placed_rows(jobs, plan)
    )


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


def _placed_rows(jobs: Jobs, plan: JointPlan) -> Iterator[dict[str, object]]:
    """A row for the replicas of a job's stage on a node."""
    for graph, row in zip(jobs.graphs, _rows(jobs, plan), strict=True):
        names = [stage.name for stage in graph.stages]
        for node, replicas in row["replicas"].items():
            for stage, count in zip(names, replicas, strict=True):
                if count:
                    yield {
                        "job": row["graph"],
                        "start_slot": row["start"],
                        "completion_slot": row["completion"],
                        "node": node,
                        "stage": stage,
                        "replicas": count,
                    }


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
