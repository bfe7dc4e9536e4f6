"""``shadowprice place``: one job graph on an empty cluster, and what its placement costs."""

from __future__ import annotations

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
from shadowprice.cli.outputs import ForceOption, expect_outputs, print_record, write_picture
from shadowprice.cli.show import console
from shadowprice.errors import InfeasibleJobError, ShadowpriceError

if TYPE_CHECKING:
    from shadowprice.instances.graphs.iteration_time import Network
    from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping


def place_command(
    graph: Annotated[Path, typer.Argument(help="Job graph (YAML).")],
    cluster: ClusterOption,
    algorithm: Annotated[
        str, typer.Option("--algorithm", help="heavy-edge, first-fit, communities, exact, ...")
    ] = "heavy-edge",
    intra: IntraOption = None,
    nic: NicOption = None,
    sharing: NicSharingOption = "per-gpu",
    as_json: JsonOption = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the graph on the nodes (PNG, PDF, SVG).")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Say which node hosts which replicas of a job, and how long an iteration takes there."""
    expect_outputs(force, plot)
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.graphs.graph_file import load_job_graph
    from shadowprice.instances.terms.graphs import network_of
    from shadowprice.solvers.graph_placement.protocol import graph_placement

    job, nodes = load_job_graph(graph), Cluster.load(cluster)
    network = network_of(nodes, intra, nic, sharing)
    mapping = graph_placement(algorithm).place(job, nodes.gpus_per_node, network)
    if mapping is None:
        raise InfeasibleJobError(
            f"{graph}: job graph {job.name!r} has {job.gpus} replicas, expected at most "
            f"{nodes.total_gpus}, the GPUs of cluster {nodes}"
        )
    report = _report(job, mapping, network)
    if as_json:
        print_record({"algorithm": algorithm, **report})
    else:
        _print(job, mapping, report, algorithm)
    if plot is not None:
        _draw(plot, job, mapping, algorithm)


def _report(graph: JobGraph, mapping: StageMapping, network: Network) -> dict[str, Any]:
    """Data that ``--json`` prints: seconds and bytes of one iteration."""
    from shadowprice.instances.graphs.iteration_time import (
        iteration_s,
        longest_iteration_s,
        shortest_iteration_s,
    )
    from shadowprice.models.asrpt import cut_bytes

    names = [stage.name for stage in graph.stages]
    return {
        "graph": graph.name,
        "gpus": graph.gpus,
        "mapping": [
            {
                "node": int(node),
                "replicas": {n: int(c) for n, c in zip(names, row, strict=True) if c},
            }
            for node, row in mapping
        ],
        "alpha": iteration_s(graph, mapping, network),
        "cut": cut_bytes(graph, mapping),
        "alpha_min": shortest_iteration_s(graph, network),
        "alpha_max": longest_iteration_s(graph, network),
        "units": {"alpha": "s", "cut": "bytes"},
    }


def _print(graph: JobGraph, mapping: StageMapping, report: dict[str, Any], algorithm: str) -> None:
    names = [stage.name for stage in graph.stages]
    table = Table("node", "GPUs", "replicas", title=f"{graph.name}, {algorithm}")
    table.columns[1].justify = "right"
    for node, row in mapping:
        here = ", ".join(f"{c} {n}" for n, c in zip(names, row, strict=True) if c)
        table.add_row(str(node), str(sum(row)), here)
    console.print(table)
    for key, unit in (("alpha", "s"), ("cut", "bytes"), ("alpha_min", "s"), ("alpha_max", "s")):
        console.print(f"{key:<9} {report[key]:.6g} {unit}", markup=False, highlight=False)


def _draw(path: Path, graph: JobGraph, mapping: StageMapping, algorithm: str) -> None:
    from shadowprice.analysis.plots.placement import plot_placement

    figure = plot_placement(graph, mapping, note=f"by {algorithm}").get_figure(root=True)
    if figure is None:
        raise ShadowpriceError(f"{path}: nothing was drawn")
    write_picture(path, figure)
