"""Job graphs for the jobs of a trace, from the names of their models and their gangs.

A trace says which model a job trains and on how many GPUs, not how it is split. The rule here is
ours: as few pipeline stages as let parameters, gradients and optimiser state fit a GPU (16 bytes a
parameter, mixed precision with Adam; Rajbhandari et al., SC 2020, section 3.1), as many replicas of
each as the gang has left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.published_models import (
    ComputeDevice,
    Parallelism,
    model_job_graph,
)
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.speeds.model_names import layered_model
from shadowprice.instances.workload import Workload

BYTES_PER_PARAMETER = 16.0
"""Parameters and gradients of two bytes, and optimiser state of twelve."""


@dataclass(frozen=True, repr=False)
class TrainingSetting(Brief):
    """Training setting of the jobs of a trace.

    Parameters
    ----------
    batch : int
        Samples a replica works on in one iteration.
    memory_bytes : float
        Memory of a GPU for parameters and optimiser state.
    device : ComputeDevice
    """

    batch: int = 16
    memory_bytes: float = 12e9
    device: ComputeDevice = field(default_factory=lambda: ComputeDevice(15.7e12))


def workload_graphs(
    workload: Workload, network: Network, setting: TrainingSetting | None = None
) -> JobGraphs:
    """One graph for every distinct pair of model and gang; O(jobs + distinct graphs).

    Raises
    ------
    InputError
        If a job names no known model.
    """
    chosen = setting or TrainingSetting()
    graphs: list[JobGraph] = []
    position: dict[tuple[str, int], int] = {}
    of = np.empty(len(workload), dtype=np.int64)
    kinds = zip(workload.model.tolist(), workload.gpus.tolist(), strict=True)
    for job, (model, gpus) in enumerate(kinds):
        if (model, gpus) not in position:
            if not model:
                raise InputError(
                    f"{workload.source}: job {workload.id[job]!r} names no model, expected one for a job graph"
                )
            position[model, gpus] = len(graphs)
            graphs.append(_graph(model, gpus, chosen))
        of[job] = position[model, gpus]
    return JobGraphs(tuple(graphs), of, network)


def _graph(model: str, gpus: int, setting: TrainingSetting) -> JobGraph:
    layers = layered_model(model)
    needed = BYTES_PER_PARAMETER * layers.parameters / setting.memory_bytes
    most = min(gpus, len(layers.layers))
    stages = next(
        (p for p in range(1, most + 1) if gpus % p == 0 and p >= needed),
        _largest_divisor(gpus, most),
    )
    split = Parallelism(data=gpus // stages, pipeline=stages)
    return model_job_graph(model, split, setting.batch, setting.device)


def _largest_divisor(gpus: int, most: int) -> int:
    return next(p for p in range(most, 0, -1) if gpus % p == 0)
