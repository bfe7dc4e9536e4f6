"""Clusters of this machine on which short runs with faults take place, one after another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from support.ray_cluster import running_cluster
from support.slurm_cluster import slurm_cluster

HOSTS = ("local", "ray", "slurm")


class RunClusters:
    """The cluster of one kind that is up now; a new one where faults left it beyond mending.

    Parameters
    ----------
    host
        One of ``HOSTS``; on ``local`` there is no cluster.
    folder
        For the files of clusters.

    Attributes
    ----------
    hosts
        Where runs take place, empty on ``local``.
    started
        Clusters that were started.
    """

    def __init__(self, host: str, folder: Path) -> None:
        self.host, self.folder = host, folder
        self.hosts, self.cluster, self.started = "", None, 0
        self.cluster: Any
        self._stack = ExitStack()

    def __enter__(self) -> RunClusters:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def prepare(self) -> None:
        """Bring all nodes up for the next run."""
        if self.host == "local":
            return
        if self.cluster is not None:
            try:
                self._restore()
            except (AssertionError, RuntimeError) as error:
                print(f"the cluster is started anew: {error}", flush=True)
                self._stack.close()
                self.cluster = None
        if self.cluster is None:
            self._start()
            self._restore()

    def _start(self) -> None:
        self.started += 1
        if self.host == "ray":
            self.cluster = self._stack.enter_context(running_cluster())
            self.hosts = f"ray:{self.cluster.address}"
            return
        root = self.folder / f"slurm-{self.started}"
        root.mkdir()
        # A node that is lost for longer leaves the allocation, and does not come back to it.
        self.cluster = self._stack.enter_context(slurm_cluster(root, lost_s=60))
        self._stack.enter_context(_environment(self.cluster.environment))

    def _restore(self) -> None:
        if self.host == "ray":
            self.cluster.connect()
        self.cluster.restore()
        if self.host == "slurm":
            self.hosts = f"slurm:{self.cluster.allocate()}"


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
