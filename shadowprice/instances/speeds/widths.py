"""Widths of jobs by model: how many GPUs they may hold beyond their gang, and how fast they are on them.

A table of one's own is a JSON or TOML file with a table ``models`` of ``name = {widest = 8, efficiency = 0.95}``, and
an entry ``default = {...}`` beside ``models`` for all other models.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from shadowprice.brief import Brief
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.speeds.by_model import ByModel, read_table
from shadowprice.instances.speeds.conditions import Elasticity, Growth, on_whole_gpus
from shadowprice.instances.workload import Workload

_Width = Annotated[int, msgspec.Meta(ge=1, le=2**31, description="a number of GPUs from 1")]
_Efficiency = Annotated[float, msgspec.Meta(gt=0.5, le=1.0, description="1/2 < e <= 1")]


class _Entry(msgspec.Struct, frozen=True):
    """Widths of a model."""

    widest: _Width
    efficiency: _Efficiency = Growth.efficiency


class _Table(msgspec.Struct, frozen=True):
    """A file of them."""

    models: dict[str, _Entry]
    default: _Entry | None = None


@dataclass(frozen=True, repr=False)
class ModelGrowth(Brief):
    """Growth within a node of the jobs of each model.

    Parameters
    ----------
    table : ByModel of Growth
    """

    table: ByModel[Growth]

    @classmethod
    def load(cls, path: str | Path) -> ModelGrowth:
        """Read a JSON or TOML file, told apart by its ending.

        Raises
        ------
        InputError
            Naming file, model and value of what is wrong.
        """
        given, source = read_table(path)
        table = decode(_Table, given, source)
        models = {name: Growth(each.widest, each.efficiency) for name, each in table.models.items()}
        other = table.default
        default = None if other is None else Growth(other.widest, other.efficiency)
        return cls(ByModel(models, default, source))

    def of(self, workload: Workload, cluster: Cluster) -> Elasticity:
        """Widths of the jobs of a workload, by their models; O(n).

        Jobs that hold a part of a GPU, or cores, do not grow.

        Raises
        ------
        InputError
            Naming the job and the model if that is not listed and there is no default.
        """
        each = self.table.of_jobs(workload)
        most = np.array([growth.widest for growth in each], dtype=np.int64)
        within = np.minimum(most, cluster.gpus_per_node.max())
        efficiency = np.array([growth.efficiency for growth in each])
        widest = np.maximum(workload.gpus, within)
        return Elasticity(np.where(on_whole_gpus(workload), widest, workload.gpus), efficiency)
