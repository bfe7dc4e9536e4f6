"""Inputs of Gavel's simulator: throughputs alone and together, time in isolation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.workload import Workload
from shadowprice.solvers.gavel.online import IsolatedTimes
from shadowprice.studies.presets.gavel.policies import PublishedPolicy
from shadowprice.studies.presets.gavel.rounds import TimeReceived


def rates_by_type(
    instance: Instance, types: tuple[str, ...], known: tuple[str, ...]
) -> NDArray[np.float64]:
    """Steps per second of every job on the types of the cluster, shape (n, types).

    Raises
    ------
    InputError
        If the original's simulator cannot express the instance.
    """
    workload = instance.workload
    strange = [name for name in types if name not in known]
    if strange:
        raise InputError(
            f"preset gavel: cluster {instance.cluster} has GPU type {strange[0]!r}, the original knows "
            f"{', '.join(known)} only"
        )
    if workload.throughput is None:
        raise InputError(
            f"preset gavel: {workload.source} has seconds of work, expected steps and throughputs"
        )
    return workload.throughput[:, [workload.gpu_types.index(name) for name in types]]


class PairRates:
    """Throughputs of pairs of jobs, by kind of job.

    Parameters
    ----------
    workload : Workload
        The jobs; their kind is model and gang size.
    table : Throughputs, optional
        Where the rates are; without one nobody can share.
    types : tuple of str
        GPU types.
    """

    def __init__(
        self, workload: Workload, table: Throughputs | None, types: tuple[str, ...]
    ) -> None:
        kinds = list(zip(workload.model.tolist(), workload.gpus.tolist(), strict=True))
        number = {kind: k for k, kind in enumerate(dict.fromkeys(kinds))}
        self.types = types
        self.kind = np.array([number[kind] for kind in kinds], dtype=np.int64)
        self.rates = np.zeros((len(number), len(number), len(types), 2))
        for one, row in number.items() if table is not None else ():
            for other, column in number.items():
                for k, name in enumerate(types):
                    assert table is not None
                    self.rates[row, column, k] = table.pair(name, one, other) or (0.0, 0.0)

    def of(self, others: list[int], job: int) -> Pairs:
        """Pairs of a job with others that came before it; 0 where not measured together."""
        first = np.array(others, dtype=np.int64)
        rates = self.rates[self.kind[first], self.kind[job]]
        return Pairs(first, np.full(len(first), job), rates[..., 0], rates[..., 1])


class Inputs:
    """Builds the problem that a policy is given, and keeps the time in isolation."""

    def __init__(
        self, workload: Workload, policy: PublishedPolicy, rates: NDArray[np.float64]
    ) -> None:
        self.workload, self.policy, self.rates = workload, policy, rates
        self.isolated = IsolatedTimes()

    def problem(
        self,
        types: tuple[str, ...],
        capacity: NDArray[np.int64],
        ledger: TimeReceived,
        left: list[float],
        now_s: float,
    ) -> AllocationProblem:
        """The jobs that are there, in order of arrival, with what the policy sees of them."""
        jobs = ledger.first[ledger.alone]
        steps = np.array([left[job] for job in jobs.tolist()])
        problem = AllocationProblem.from_columns(
            gpu_types=types,
            capacity=capacity,
            throughput=self.policy.view(self.rates[jobs], types),
            gpus=self.workload.gpus[jobs],
            weight=self.workload.weight[jobs],
            steps=steps,
            elapsed_s=now_s - self.workload.arrival_s[jobs],
            isolated_s=self.isolated.at(jobs, steps),
            slo_s=np.maximum(self.workload.deadline_s[jobs] - now_s, 0.0),
            id=self.workload.id[jobs],
            entity=self.workload.tenant[jobs],
            pairs=ledger.pairs(),
            source=self.workload.source,
        )
        self.isolated.note(jobs, problem)
        return problem
