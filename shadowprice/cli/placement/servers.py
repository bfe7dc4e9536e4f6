"""``shadowprice place servers``: workers and parameter servers of a job, by Tiresias' rule and at best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from shadowprice.analysis.wording import amount_at_least
from shadowprice.cli.options import with_options
from shadowprice.cli.outputs import with_origin
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import print_lines, print_table

if TYPE_CHECKING:
    from shadowprice.models.tiresias import ServerJob
    from shadowprice.solvers.tiresias.server_placement import ServerPlacement


@with_options
def servers_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="JOB",
            help="Job and nodes (YAML): workers, shards_mb, free_gpus; traffic_mb of others, pack_limit (0.4).",
        ),
    ],
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.1, help="Seconds for each programme.")
    ] = 60.0,
    *,
    form: ResultForm,
) -> None:
    """Compare Tiresias' placement by skew with the best placement of the job: traffic of the busiest node."""
    from shadowprice.cli.placement.servers_file import read_servers_file

    asked = read_servers_file(file)
    from shadowprice.models.tiresias import ServerJob
    from shadowprice.solvers.tiresias.server_placement import best_placement, placement_by_rule

    sizes, nodes = asked.shards_mb, asked.free_gpus
    others = [0.0] * len(nodes) if asked.traffic_mb is None else asked.traffic_mb
    job = ServerJob(asked.workers, tuple(sizes), tuple(nodes), tuple(others))
    skew = max(sizes) / (sum(sizes) or 1.0)
    rule = placement_by_rule(job, together=skew > asked.pack_limit, time_limit_s=budget_s)
    best = best_placement(job, time_limit_s=budget_s)

    def cells(node: int) -> Iterator[str]:
        yield from (str(node), str(nodes[node]))
        yield from (str(placed.workers[node]) for placed in (rule, best))
        yield from (_servers(placed, node) for placed in (rule, best))

    def show() -> None:
        table = Table("node", "free GPUs", "workers: rule", "best", "servers: rule", "best")
        print_table(table, range(len(nodes)), cells)
        print_lines(sentence(job, rule, best))

    columns = ("node", "free", "workers_rule", "workers_best", "servers_rule", "servers_best")
    print_result(
        form,
        show,
        lambda: with_origin(_report(skew, rule, best)),
        lambda: (dict(zip(columns, cells(node), strict=True)) for node in range(len(nodes))),
    )


def sentence(job: ServerJob, rule: ServerPlacement, best: ServerPlacement) -> str:
    """Comparison of the two placements, in words."""
    claim = (
        "no placement has less"
        if best.proven
        else f"no placement has less than {amount_at_least(best.bound_mb)} MB"
    )
    if best.edited:
        claim += ", of the model as it was edited"
    text = (
        f"busiest node: {rule.busiest_mb:g} MB an iteration by placement skew, {best.busiest_mb:g} MB "
        f"at best ({claim})"
    )
    if best.proven and best.busiest_mb > 0:
        factor = math.ceil(1000 * rule.busiest_mb / best.busiest_mb - 1e-6) / 1000
        text += f"; the rule is within {factor:.3f}x of the best placement of these {job.workers} workers"
    return text


def _report(skew: float, rule: ServerPlacement, best: ServerPlacement) -> dict[str, Any]:
    """Data that ``--json`` prints."""
    placed = {
        name: {
            "workers": list(one.workers),
            "servers": list(one.servers),
            "busiest": one.busiest_mb,
            "bound": one.bound_mb,
            "proven": one.proven,
        }
        for name, one in (("rule", rule), ("best", best))
    }
    return {"skew": skew, **placed, "units": {"busiest": "MB", "bound": "MB"}}


def _servers(placed: ServerPlacement, node: int) -> str:
    return ", ".join(str(k) for k, at in enumerate(placed.servers) if at == node)
