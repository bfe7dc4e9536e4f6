"""Measurements of jobs that ran: timed steps, by placement and co-runner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from shadowprice.errors import InputError
from shadowprice.instances.speeds.throughputs import Kind

JOB_PREFIX = "job:"
"""How the kind of a job without a model begins; no model may begin like this."""


@dataclass(frozen=True)
class Observation:
    """Steps of one job under conditions that did not change.

    Parameters
    ----------
    job, model : str
        Name of the job, and of its model if it has one.
    gpus : int
        Gang size.
    gpu_type : str
        Type of all its GPUs.
    nodes : int
        Nodes over which the gang was spread.
    co_runner, co_model : str
        Name and model of the job with which it shared its GPUs, empty if alone.
    steps : int
        Iterations that were timed; the first after a start is warm-up, and not among them.
    seconds : float
        Time they took [s].
    """

    job: str
    model: str
    gpus: int
    gpu_type: str
    nodes: int
    co_runner: str
    co_model: str
    steps: int
    seconds: float

    def __post_init__(self) -> None:
        where = f"observation of job {self.job!r}"
        for name, value in (("gpus", self.gpus), ("nodes", self.nodes)):
            if type(value) is not int or value < 1:
                raise InputError(f"{where}: {name} is {value!r}, expected an integer >= 1")
        if type(self.steps) is not int or self.steps < 0:
            raise InputError(f"{where}: steps is {self.steps!r}, expected an integer >= 0")
        if not 0 <= self.seconds < math.inf:
            raise InputError(f"{where}: seconds is {self.seconds!r}, expected a finite time >= 0")
        for name in ("job", "gpu_type"):
            if not getattr(self, name):
                raise InputError(f"{where}: {name} is empty, expected a name")

    @property
    def kind(self) -> Kind:
        """The kind of job whose rate this is."""
        return kind_name(self.job, self.model), self.gpus

    @property
    def co_kind(self) -> Kind | None:
        """The kind it shared its GPUs with, None if alone; jobs that share have equal gangs."""
        alone = not self.co_runner and not self.co_model
        return None if alone else (kind_name(self.co_runner, self.co_model), self.gpus)


def kind_name(job: str, model: str) -> str:
    """Name under which the rates of a job are kept: its model, or the job's own name.

    >>> kind_name("a", "resnet-50"), kind_name("a", "")
    ('resnet-50', 'job:a')
    """
    return model or JOB_PREFIX + job


def observations_of(rows: Iterable[Mapping[str, Any]]) -> list[Observation]:
    """Observations from mappings that have their fields, such as rows of a ledger."""
    names = [field.name for field in fields(Observation)]
    return [Observation(**{name: row[name] for name in names}) for row in rows]
