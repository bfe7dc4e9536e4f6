"""Counts of the jobs of instances for pictures: when jobs arrive and how much they ask for, in few numbers."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import read_json
from shadowprice.instances.instance import Instance
from shadowprice.library.collection import FOLDER

JOB_COUNTS = FOLDER / "job_counts.json"
"""Counts of each published instance, by name, so that a page needs no trace."""
_INTERVALS = 24


class JobCounts(msgspec.Struct, frozen=True):
    """Counts of jobs.

    Parameters
    ----------
    gpus : int
        GPUs of the cluster.
    arrivals : list of int
        Jobs by when they arrive, in equal intervals from the first to the last arrival.
    least_doubling : int
        Binary logarithm of the GPU-seconds of the first class of sizes.
    sizes : list of int
        Jobs by the GPU-seconds that they ask for at least, in classes that double.
    """

    gpus: int
    arrivals: list[int]
    least_doubling: int
    sizes: list[int]

    @classmethod
    def of(cls, instance: Instance) -> JobCounts:
        """Counts of an instance; O(jobs)."""
        jobs = instance.workload
        arrivals, _ = np.histogram(jobs.arrival_s, _INTERVALS)
        classes = np.floor(np.log2(np.maximum(jobs.held_gpus * instance.shortest_s, 1.0)))
        least = math.floor(classes.min())
        sizes = np.bincount((classes - least).astype(np.int64))
        return cls(instance.cluster.total_gpus, arrivals.tolist(), least, sizes.tolist())


def read_job_counts() -> dict[str, JobCounts]:
    """Counts of published instances, by name.

    Raises
    ------
    InputError
        If the file is not of the form.
    """
    return decode(dict[str, JobCounts], read_json(JOB_COUNTS), str(JOB_COUNTS))
