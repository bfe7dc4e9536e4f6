"""``shadowprice place FILE``: one job graph on an empty cluster, and what its placement costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shadowprice.cli.options import ClusterOption, TermsOption, with_options
from shadowprice.cli.outputs import ForceOption, expect_outputs, with_origin, write_picture
from shadowprice.cli.placement.network import asked_network
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import print_lines, print_rows
from shadowprice.errors import InfeasibleJobError, ShadowpriceError

if TYPE_CHECKING:
    from shadowprice.instances.graphs.iteration_time import Network
    from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping


@with_options
def graph_command(
    graph: Annotated[Path, typer.Argument(help="Job graph (YAML).")],
    cluster: ClusterOption,
    placement: Annotated[
        str, typer.Option("--placement", help="heavy-edge, first-fit, communities, exact, ...")
    ] = "heavy-edge",
    terms: TermsOption = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the graph on the nodes (PNG, PDF, SVG).")
    ] = None,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """Say which node hosts which replicas of a job, and how long an iteration takes there."""
    expect_outputs(force, plot)
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.graphs.graph_file import load_job_graph
    from shadowprice.solvers.graph_placement.protocol import graph_placement

    job, nodes = load_job_graph(graph), Cluster.load(cluster)
    network = asked_network(terms, nodes)
    mapping = graph_placement(placement).place(job, nodes.gpus_per_node, network)
    if mapping is None:
        raise InfeasibleJobError(
            f"{graph}: job graph {job.name!r} has {job.gpus} replicas, expected at most "
            f"{nodes.total_gpus}, the GPUs of cluster {nodes}"
        )
    report = _report(job, mapping, network)
    print_result(
        form,
        lambda: _show(job, mapping, report, placement),
        lambda: with_origin({"algorithm": placement, **report}),
        lambda: _rows(report),
    )
    if plot is not None:
        _draw(plot, job, mapping, placement)


def _rows(report: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """A row for the replicas of a stage on a node."""
    for each in report["mapping"]:
        for stage, replicas in each["replicas"].items():
            yield {"node": each["node"], "stage": stage, "replicas": replicas}


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


def _show(graph: JobGraph, mapping: StageMapping, report: dict[str, Any], placement: str) -> None:
    names = [stage.name for stage in graph.stages]
    rows = (
        (node, sum(row), ", ".join(f"{c} {n}" for n, c in zip(names, row, strict=True) if c))
        for node, row in mapping
    )
    print_rows(("node", "GPUs", "replicas"), rows, (1,), title=f"{graph.name}, {placement}")
    for key, unit in (("alpha", "s"), ("cut", "bytes"), ("alpha_min", "s"), ("alpha_max", "s")):
        print_lines(f"{key:<9} {report[key]:.6g} {unit}")


def _draw(path: Path, graph: JobGraph, mapping: StageMapping, placement: str) -> None:
    from shadowprice.analysis.plots.placement import plot_placement

    figure = plot_placement(graph, mapping, note=f"by {placement}").get_figure(root=True)
    if figure is None:
        raise ShadowpriceError(f"{path}: nothing was drawn")
    write_picture(path, figure)
