"""Instances of generators: a law, its parameters and a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from shadowprice.instances.generators import generate
from shadowprice.instances.generators.arrivals import random_generator
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.library.recipes.recipe import Terms, files_of, on_cluster

_DRAWS = 0x11B
"""Stream of random numbers for what jobs draw beyond the law of the generator."""


@dataclass(frozen=True)
class Generated:
    """Jobs of a generator on a cluster.

    Parameters
    ----------
    generator : str
        Name of the law, as of ``shadowprice generate``.
    jobs, seed : int
        Parameters of every law.
    cluster : str
        Short notation of the cluster.
    parameters : mapping
        Other parameters of the law.
    terms : mapping
        Settings of terms by their names, as ``--with`` has them.
    speeds : mapping of str to mapping of str to float
        Units of work a second of the jobs of each model on each GPU type; all are alike if there are none.
    weights : tuple of int
        Weights of which each job draws one, by the seed; 1 if there are none.
    cpus_per_gpu, memory_gb_per_gpu : tuple of int
        CPUs and memory [GB] of which each job draws one for each of its GPUs, likewise; it asks for none if there are
        none.
    """

    generator: str
    jobs: int
    seed: int
    cluster: str
    parameters: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    terms: Terms = field(default_factory=lambda: MappingProxyType({}))
    speeds: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: MappingProxyType({}))
    weights: tuple[int, ...] = ()
    cpus_per_gpu: tuple[int, ...] = ()
    memory_gb_per_gpu: tuple[int, ...] = ()

    @property
    def source(self) -> str:
        """The law."""
        return self.generator

    def data_sets(self) -> tuple[str, ...]:
        """Files of terms: the jobs are drawn."""
        return files_of(self.terms)

    def instance(self) -> Instance:
        """The jobs, drawn, on the cluster."""
        jobs = generate(self.generator, jobs=self.jobs, seed=self.seed, **self.parameters)
        return on_cluster(self._at_speeds(self._with_draws(jobs)), self.cluster, self.terms)

    def _with_draws(self, jobs: Workload) -> Workload:
        """The jobs with weights, CPUs and memory."""
        rng, drawn = random_generator(self.seed, _DRAWS), dict[str, Any]()
        for name, values, gpus in (
            ("weight", self.weights, 1),
            ("cpus", self.cpus_per_gpu, jobs.gpus),
            ("memory_gb", self.memory_gb_per_gpu, jobs.gpus),
        ):
            if values:
                drawn[name] = gpus * rng.choice(np.array(values, dtype=np.float64), len(jobs))
        return replace(jobs, **drawn)

    def _at_speeds(self, jobs: Workload) -> Workload:
        if not self.speeds:
            return jobs
        types = tuple(next(iter(self.speeds.values())))
        rows = [[self.speeds[model][kind] for kind in types] for model in jobs.model.tolist()]
        return replace(jobs, throughput=np.array(rows), gpu_types=types)

    def document(self) -> dict[str, Any]:
        """The recipe as JSON has it."""
        more = {
            "parameters": dict(self.parameters),
            "with": {name: dict(settings) for name, settings in self.terms.items()},
            "speeds": {model: dict(of) for model, of in self.speeds.items()},
            "weights": list(self.weights),
            "cpus_per_gpu": list(self.cpus_per_gpu),
            "memory_gb_per_gpu": list(self.memory_gb_per_gpu),
        }
        return {
            "generator": self.generator,
            "jobs": self.jobs,
            "seed": self.seed,
            "cluster": self.cluster,
            **{name: value for name, value in more.items() if value},
        }
