"""Graphs of jobs by their names, from a file: those that a trace does not say.

A file, YAML or JSON, lists graphs as :mod:`.graph_file` reads them, and says by position which job has
which::

    graphs:
      - {name: translation, model: {name: t5-base, pipeline: 2, data: 4, batch: 16, flop_per_s: 125e12}}
    jobs: {resnet-a: 0, resnet-b: 0}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_yaml import parse
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.graphs.graph_file import graph_entry, job_graph_of
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.workload import Workload


class _Tree(msgspec.Struct, frozen=True):
    graphs: list[Any]
    jobs: dict[str, int]


@dataclass(frozen=True, repr=False)
class NamedGraphs(Brief):
    """Graphs, and which of them each job has.

    Parameters
    ----------
    graphs : tuple of JobGraph
    of : mapping of str to int
        Position of the graph of each job, by its name.
    source : str
        Where they are from, for messages.
    """

    graphs: tuple[JobGraph, ...]
    of: Mapping[str, int]
    source: str = "job graphs"

    @classmethod
    def load(cls, path: str | Path) -> NamedGraphs:
        """Read a file; JSON if its name ends in ``.json``, else YAML.

        Raises
        ------
        InputError
            Naming the file, the entry, its value and what was expected.
        """
        source, text = str(path), read_text(path)
        if Path(path).suffix.lower() == ".json":
            tree = parse_json(text, source)
        else:
            tree = parse(text, source, truth_values=True)
        found = decode(_Tree, tree, source, numbers_as_text=True)
        graphs = [
            job_graph_of(each, f"{source}: graphs[{k}]") for k, each in enumerate(found.graphs)
        ]
        for job, number in found.jobs.items():
            if not 0 <= number < len(graphs):
                raise InputError(
                    f"{source}: jobs: {job} is {number}, expected the position of a graph, 0 to {len(graphs) - 1}"
                )
        return cls(tuple(graphs), found.jobs, source)

    def save(self, path: Path) -> None:
        """Write a file that :meth:`load` reads back.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        tree = {"graphs": [graph_entry(each) for each in self.graphs], "jobs": dict(self.of)}
        try:
            path.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from error

    def on(self, workload: Workload, network: Network) -> JobGraphs:
        """Graphs of the jobs of a workload.

        Raises
        ------
        InputError
            If a job has none.
        """
        names = [str(name) for name in workload.id.tolist()]
        lacking = [name for name in names if name not in self.of]
        if lacking:
            more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
            raise InputError(f"{self.source}: has no graph of job {lacking[0]!r}{more}")
        numbers = np.array([self.of[name] for name in names], dtype=np.int64)
        return JobGraphs(self.graphs, numbers, network)
