"""The network between the GPUs of a cluster, as ``--with graphs`` says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shadowprice.cli.run_inputs import asked_terms
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.graphs.network import Network


def asked_network(texts: list[str] | None, cluster: Cluster) -> Network:
    """Bandwidths of the term graphs, or those of the cluster's nodes where it does not say them.

    Raises
    ------
    InputError
        If another term is asked for, or graphs of a file; or as of :meth:`GraphsSettings.network`.
    """
    from msgspec import UNSET

    from shadowprice.instances.terms.graphs import GraphsSettings

    settings = GraphsSettings()
    for term in asked_terms(texts):
        if not isinstance(term, GraphsSettings) or term.file is not UNSET:
            raise InputError(
                f"--with {term}: expected graphs:intra_gb_per_s=...,nic_gb_per_s=... alone, the graphs are arguments"
            )
        settings = term
    return settings.network(cluster)
