"""Profiles by family of models, made from what is published of them.

Source: Mohan et al., OSDI'22, as its public simulator has them (github.com/msr-fiddle/synergy): for
ten models the least CPUs and memory for each GPU with which they are fastest, and how much faster
that is than with 3 CPUs and 62.5 GB, the share of a GPU in a node of 8 GPUs, 24 CPUs and 500 GB.
What lies between is our reading of the paper's model of a job, an epoch as long as the longest of
what it does at the same time (derived):

* on the GPU, ``1 / s`` of an epoch with that share, s being the published speed-up;
* on c CPUs, ``A + B / c`` through 1 at 3 CPUs and 1 / s at the published number of them;
* from disk, ``F (1 - q)`` where the share q of the data is cached: all of it at the published
  memory. F is fitted to the published tables, for images 1 (AlexNet with 62.5 GB: 2.0 as
  published), for speech 1.25 (M5 with 62.5 and 125 GB: 1.2 and 2.4, published 1.5 and 2.0).

With less than 62.5 GB the published tables have a tenth, whatever the CPUs; for language models,
which need 20 GB and no CPUs to speak of, 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from shadowprice.instances.speeds.profile import Profile

CPUS_PER_GPU = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0)
MEMORY_GB_PER_GPU = (20.0, 62.5, 125.0, 187.5, 250.0)
SHARE_CPUS, SHARE_MEMORY_GB = 3.0, 62.5
SHORT_OF_MEMORY = 0.1
"""Speed with less memory than the share."""


class ModelFamily(StrEnum):
    """Domain of the data that a model is trained on."""

    IMAGE = "image"
    LANGUAGE = "language"
    SPEECH = "speech"


ALL_FROM_DISK = {ModelFamily.IMAGE: 1.0, ModelFamily.LANGUAGE: 0.0, ModelFamily.SPEECH: 1.25}
"""F, the time to read all data from disk over that of an epoch with the share."""


@dataclass(frozen=True)
class ModelDemand:
    """Best-case CPUs and memory of a model, and its speedup with them.

    Parameters
    ----------
    family : ModelFamily
    cpus_per_gpu, memory_gb_per_gpu : float
        Least CPUs and memory [GB] for each GPU with which it is fastest.
    speedup : float
        How much faster that is than with 3 CPUs and 62.5 GB.
    """

    family: ModelFamily
    cpus_per_gpu: float
    memory_gb_per_gpu: float
    speedup: float

    def speed(self, cpus: float, memory_gb: float) -> float:
        """Speed with so much for each GPU, 1 with 3 CPUs and 62.5 GB."""
        if self.memory_gb_per_gpu < SHARE_MEMORY_GB:
            return self.speedup
        if memory_gb < SHARE_MEMORY_GB:
            return SHORT_OF_MEMORY
        missed = max(0.0, 1.0 - memory_gb / self.memory_gb_per_gpu)
        others = max(self._on_cpus(cpus), ALL_FROM_DISK[self.family] * missed)
        return min(self.speedup, 1.0 / others) if others > 0 else self.speedup

    def _on_cpus(self, cpus: float) -> float:
        """Time of an epoch's work on CPUs, that of an epoch with the share being 1; 0 if enough."""
        if cpus >= self.cpus_per_gpu:
            return 0.0
        if self.cpus_per_gpu <= SHARE_CPUS:
            return SHARE_CPUS / cpus
        part = (1.0 - 1.0 / self.speedup) / (1.0 / SHARE_CPUS - 1.0 / self.cpus_per_gpu)
        return 1.0 + part * (1.0 / cpus - 1.0 / SHARE_CPUS)


DEMANDS = {
    "alexnet": ModelDemand(ModelFamily.IMAGE, 12, 125.0, 2.94),
    "shufflenet": ModelDemand(ModelFamily.IMAGE, 12, 125.0, 2.89),
    "resnet-18": ModelDemand(ModelFamily.IMAGE, 9, 62.5, 2.4),
    "mobilenet": ModelDemand(ModelFamily.IMAGE, 6, 62.5, 1.55),
    "resnet-50": ModelDemand(ModelFamily.IMAGE, 4, 62.5, 1.15),
    "gnmt": ModelDemand(ModelFamily.LANGUAGE, 1, 20.0, 1.0),
    "lstm": ModelDemand(ModelFamily.LANGUAGE, 1, 20.0, 1.0),
    "transformer-xl": ModelDemand(ModelFamily.LANGUAGE, 1, 20.0, 1.0),
    "m5": ModelDemand(ModelFamily.SPEECH, 6, 187.5, 2.5),
    "deepspeech": ModelDemand(ModelFamily.SPEECH, 3, 62.5, 1.0),
}
"""The published models."""


def models_of(family: ModelFamily) -> tuple[str, ...]:
    """Names of the published models of a family."""
    return tuple(name for name, demand in DEMANDS.items() if demand.family is family)


def family_profile(model: str) -> Profile:
    """The profile of a published model on the published grid of CPUs and memory."""
    demand = DEMANDS[model]
    speed = [[demand.speed(cpus, memory) for memory in MEMORY_GB_PER_GPU] for cpus in CPUS_PER_GPU]
    return Profile(np.array(CPUS_PER_GPU), np.array(MEMORY_GB_PER_GPU), np.array(speed), model)
