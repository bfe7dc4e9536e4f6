r"""Interference of jobs on the same GPUs and losses of spread gangs, as Gandiva published them.

Gandiva (OSDI'18), Table 1: GPU utilisation of eight models on a P40, and how much more work per
second as many copies as helped did when packed than when time-sliced. Figures 3 and 4: losses of
gangs spread over servers.

**Interference from utilisation** (derived; the paper has no formula). A job that keeps its GPU busy
for a share u of the time alone needs u seconds of it for a second of its work. A shared GPU hands out
at most :math:`\varphi` seconds a second, in proportion to what is asked for:

.. math:: s_i = \min\Bigl(1, \frac{\varphi}{u_1 + \dots + u_n}\Bigr)

is the share of its own rate that each of n jobs keeps. n copies of a model then do
:math:`\min(n, \varphi / u)` times the work of one, so that Table 1's ratio r is :math:`\varphi / u` once
the copies saturate the GPU; :func:`capacity` fits :math:`\varphi` to the rows with u > 1/2, for which two
copies do. The other rows, VAE and SuperRes, are limited by how many copies fit in memory, which the
table does not say. A pair that saturates a GPU makes :math:`2 \varphi / (u_1 + u_2)` of it, which
beats time slicing if and only if :math:`u_1 + u_2 < 2 \varphi`.

At most two jobs share GPUs here, so that no pair makes more than twice of them: the 412 % of VAE
are out of reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.schema import Number, decode
from shadowprice.instances.files import read_json
from shadowprice.instances.speeds.model_table import ModelTable
from shadowprice.instances.speeds.throughputs import Kind, Throughputs
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.workload import Workload


@dataclass(frozen=True)
class PackedModel:
    """A row of Table 1.

    Parameters
    ----------
    utilisation : float
        Share of the time that the GPU is busy with the job alone.
    gain : float
        Work a second of packed copies over that of time-sliced ones, less 1.
    """

    model: str
    utilisation: float
    gain: float


PUBLISHED = (
    PackedModel("VAE", 0.087, 4.12),
    PackedModel("SuperRes", 0.141, 2.60),
    PackedModel("RHN", 0.616, 0.46),
    PackedModel("SCRNN", 0.668, 0.39),
    PackedModel("MI-LSTM", 0.762, 0.17),
    PackedModel("LSTM", 0.872, -0.16),
    PackedModel("ResNet-50", 0.940, -0.13),
    PackedModel("ResNeXt-50", 0.989, -0.11),
)
"""Gandiva, Table 1 (on a P40)."""

UTILISATION: Mapping[str, float] = {row.model: row.utilisation for row in PUBLISHED}
"""GPU utilisation by model, of Table 1."""

SPREAD_SPEED: Mapping[str, float] = {"ResNet-50": 0.53, "InceptionV3": 0.70, "DeepSpeech": 0.95}
"""Speed of gangs spread over servers, the worst that Gandiva's Figures 3 and 4 report for each model."""


def capacity(rows: tuple[PackedModel, ...] = PUBLISHED) -> float:
    """Least-squares fit of phi in 1 + gain = phi / u, over the rows with u > 1/2.

    Raises
    ------
    InputError
        If no row has such a utilisation.
    """
    busy = [(1.0 / row.utilisation, 1.0 + row.gain) for row in rows if row.utilisation > 0.5]
    if not busy:
        raise InputError(
            "interference: no model has a utilisation above 1/2, expected at least one"
        )
    x, y = np.array(busy).T
    return float((x @ y) / (x @ x))


def share(one: float, other: float, phi: float) -> float:
    """Share of its own rate that each of two jobs of these utilisations keeps on shared GPUs."""
    return min(1.0, phi / (one + other))


@dataclass(frozen=True, repr=False)
class Interference(Brief):
    """Rates of all pairs of the models of a workload, from their utilisations.

    Parameters
    ----------
    utilisation : mapping of str to float
        GPU utilisation of each model, whatever the case and hyphens of its name, 0 < u <= 1; Table 1 if not given.
    phi : float
        Seconds of work that a shared GPU does a second; fitted to Table 1 if not given.

    Raises
    ------
    InputError
        If a utilisation or phi is out of range.
    """

    utilisation: Mapping[str, float] = field(default_factory=lambda: UTILISATION)
    phi: float = field(default_factory=capacity)

    @classmethod
    def load(cls, path: str | Path) -> Interference:
        """Read a JSON object of models and their GPU utilisations.

        Raises
        ------
        InputError
            Naming the file and what is wrong with it.
        """
        utilisation = decode(dict[str, Number], read_json(path), str(path))
        try:
            return cls(utilisation)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def __post_init__(self) -> None:
        for model, u in self.utilisation.items():
            if not 0 < u <= 1:
                raise InputError(
                    f"interference: the utilisation of {model!r} is {u!r}, expected 0 < u <= 1"
                )
        if not 0 < self.phi <= 1:
            raise InputError(f"interference: phi is {self.phi!r}, expected 0 < phi <= 1")

    def of(self, workload: Workload, cluster: Cluster) -> Throughputs:
        """Rates for ``Instance.sharing_rates``: all pairs of models of equal gang; O(kinds^2 x types).

        Raises
        ------
        InputError
            If a job's model has no utilisation.
        """
        busy = ModelTable(self.utilisation, source="the table of utilisations").of_jobs(workload)
        alone: dict[Kind, tuple[float, ...]] = {}
        of_kind: dict[Kind, float] = {}
        kinds = zip(workload.model.tolist(), workload.gpus.tolist(), strict=True)
        for job, kind in enumerate(kinds):
            if kind not in alone:
                alone[kind], of_kind[kind] = _rates(workload, cluster, job), busy[job]
        together = {}
        for one, rates in alone.items():
            for other, others in alone.items():
                if one[1] == other[1]:
                    s = share(of_kind[one], of_kind[other], self.phi)
                    for column, gpu_type in enumerate(cluster.gpu_types):
                        together[gpu_type, one, other] = (s * rates[column], s * others[column])
        return Throughputs(cluster.gpu_types, alone, together, "interference from utilisation")


def locality_of(workload: Workload) -> Locality:
    """Speeds of a workload's gangs when spread, by model; 1 of those that Gandiva does not report."""
    return Locality(np.array(ModelTable(SPREAD_SPEED, default=1.0).of_jobs(workload)))


def _rates(workload: Workload, cluster: Cluster, job: int) -> tuple[float, ...]:
    if workload.throughput is None:
        return (1.0,) * len(cluster.gpu_types)
    return tuple(
        float(workload.throughput[job, workload.gpu_types.index(name)])
        for name in cluster.gpu_types
    )
