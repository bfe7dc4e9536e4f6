"""Files of an instance for programs in any language: all of it as JSON, its jobs and its nodes as CSV."""

from __future__ import annotations

import io

import pandas as pd

from shadowprice.instances.instance import Instance
from shadowprice.library.library_instance import LibraryInstance

_OF_A_NODE = ("gpus", "gpu_type", "cpus", "memory_gb")


def files_of(which: LibraryInstance) -> dict[str, str]:
    """Texts of an instance's files by their names.

    Raises
    ------
    InputError
        If the instance cannot be made.
    """
    instance = which.instance()
    return {
        f"{which.name}.json": which.text,
        f"{which.name}.jobs.csv": _text(jobs_table(instance)),
        f"{which.name}.nodes.csv": _text(nodes_table(instance)),
    }


def jobs_table(instance: Instance) -> pd.DataFrame:
    """One row a job: its number in schedules, and the columns that differ from what is usual."""
    frame = instance.workload.to_frame()
    frame.insert(0, "job", range(len(frame)))
    return frame


def nodes_table(instance: Instance) -> pd.DataFrame:
    """One row a node: its number in schedules, its GPUs, their type, its CPUs and memory (0: not limited)."""
    nodes = instance.cluster.nodes
    columns = {name: [getattr(node, name) for node in nodes] for name in _OF_A_NODE}
    return pd.DataFrame({"node": range(len(nodes)), **columns})


def _text(frame: pd.DataFrame) -> str:
    file = io.StringIO()
    frame.to_csv(file, index=False, lineterminator="\n")
    return file.getvalue()
