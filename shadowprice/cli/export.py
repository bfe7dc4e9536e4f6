"""``shadowprice export-kubernetes``: leases as manifests, for who has a cluster to try them on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shadowprice.cli.options import ClusterOption
from shadowprice.cli.show import write


def export_kubernetes_command(
    jobs: Annotated[Path, typer.Argument(help="Jobs to run (YAML).", metavar="JOBS")],
    cluster: ClusterOption,
    image: Annotated[str, typer.Option("--image", help="Container image with the programs.")],
    policy: Annotated[
        str, typer.Option("--policy", help="Name[:parameter=value,...]; see `policies`.")
    ] = "fifo",
    queue: Annotated[
        str, typer.Option("--queue", help="Kueue's local queue: it admits, and gets every job.")
    ] = "",
    namespace: Annotated[str, typer.Option("--namespace", help="Kubernetes namespace.")] = "",
    state_claim: Annotated[
        str, typer.Option("--state-claim", help="PersistentVolumeClaim for the state directory.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; printed if not given.")
    ] = None,
) -> None:
    """Write JobSet manifests of the leases that the policy's first decision grants. Not executed."""
    from shadowprice.analysis.kubernetes_export import kubernetes_export
    from shadowprice.execution.real.hosts.kubernetes import KubernetesOptions
    from shadowprice.instances.cluster import Cluster

    options = KubernetesOptions(
        image=image, queue=queue, namespace=namespace, state_claim=state_claim
    )
    text = kubernetes_export(jobs, Cluster.load(cluster), policy, options)
    if output is None:
        print(text, end="")
    else:
        write(output, lambda: output.write_text(text, encoding="utf-8"))
