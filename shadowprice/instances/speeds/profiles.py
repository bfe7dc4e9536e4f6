"""Profiles of models by CPUs and memory, and which of them the jobs of a workload have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.speeds.model_names import plain_name
from shadowprice.instances.speeds.profile import Profile
from shadowprice.instances.speeds.profile_families import DEMANDS, family_profile
from shadowprice.instances.speeds.profile_files import ANY_GANG, ProfileKey, read_profiles
from shadowprice.instances.speeds.sensitivity import Sensitivity, proportional_share
from shadowprice.instances.workload import Workload


@dataclass(frozen=True, eq=False)
class Profiles:
    """Tables of speeds by model and gang.

    Parameters
    ----------
    tables : mapping of (str, int) to Profile
        By model, whatever its case, hyphens and underscores, and gang size [GPUs]; a size of 0
        stands for all gangs without a table of their own. Speeds are in any unit, one for each
        table, such as epochs a second.
    source : str
        Where they come from, for messages.

    Examples
    --------
    >>> jobs = Workload.from_columns(
    ...     arrival_s=[0, 0], gpus=[1, 1], work=[60, 60], model=["alexnet", "gnmt"]
    ... )
    >>> found = Profiles.synthetic().of(jobs, Cluster.parse("1x8+24cpu+500gb"))
    >>> found.best.tolist()
    [2.94, 1.0]
    """

    tables: Mapping[ProfileKey, Profile]
    source: str = "profiles"

    def __post_init__(self) -> None:
        names: dict[ProfileKey, str] = {}
        for model, gpus in self.tables:
            twin = names.setdefault((plain_name(model), gpus), model)
            if twin != model:
                raise InputError(
                    f"{self.source}: models {twin!r} and {model!r} are one, expected one table"
                )

    @classmethod
    def load(cls, path: str | Path) -> Profiles:
        """Read a file of profiles, see :mod:`shadowprice.instances.speeds.profile_files` for its form.

        Raises
        ------
        InputError
            If the file is not of the form, or a table has a cell that is missing, no number, not
            above 0, or less than one with fewer CPUs or less memory; the message names file,
            model and cell.
        """
        return cls(read_profiles(path), str(path))

    @classmethod
    def synthetic(cls) -> Profiles:
        """Profiles of ten published models, see :mod:`shadowprice.instances.speeds.profile_families`."""
        tables = {(model, ANY_GANG): family_profile(model) for model in DEMANDS}
        return cls(tables, "profiles by family of models")

    def table(self, model: str, gpus: int) -> Profile | None:
        """The table of a model for gangs of a size, or for all gangs; None if there is neither."""
        plain = plain_name(model)
        own = self._by_name.get((plain, gpus))
        return self._by_name.get((plain, ANY_GANG)) if own is None else own

    @cached_property
    def _by_name(self) -> dict[ProfileKey, Profile]:
        return {(plain_name(model), gpus): each for (model, gpus), each in self.tables.items()}

    def without(self, workload: Workload) -> tuple[ProfileKey, ...]:
        """Models of a workload and their gangs that have no table, sorted."""
        kinds = set(zip(workload.model.tolist(), workload.gpus.tolist(), strict=True))
        return tuple(sorted(kind for kind in kinds if self.table(*kind) is None))

    def of(
        self,
        workload: Workload,
        cluster: Cluster,
        counted_at: tuple[float, float] | None = None,
    ) -> Sensitivity:
        """The profiles of jobs on a cluster.

        A job without a table is taken to need its proportional share: speed 1 with that and more,
        none with less, for nothing is known of it.

        Parameters
        ----------
        counted_at : (float, float), optional
            CPUs and memory [GB] for each GPU with which the jobs' work is counted, that is, where
            their speed is 1; by default the proportional share of the cluster.

        Returns
        -------
        Sensitivity
            O(jobs + tables).

        Raises
        ------
        InputError
            If the nodes of the cluster differ in CPUs or memory for a GPU, or have none, or if a
            table says nothing about the proportional share or about ``counted_at``.
        """
        Sensitivity((), np.zeros(0, dtype=np.int64)).check(cluster)
        share = proportional_share(cluster)
        kinds = list(zip(workload.model.tolist(), workload.gpus.tolist(), strict=True))
        table_of = {kind: self.table(*kind) for kind in dict.fromkeys(kinds)}
        row = {table: k for k, table in enumerate(dict.fromkeys(table_of.values()))}
        profiles = tuple(
            _unknown(share) if table is None else _scaled(table, share, counted_at) for table in row
        )
        of = np.array([row[table_of[kind]] for kind in kinds], dtype=np.int64)
        return Sensitivity(profiles, of)


def _unknown(share: tuple[float, float]) -> Profile:
    cpus, memory_gb = share
    return Profile(np.array([cpus]), np.array([memory_gb]), np.array([[1.0]]), "no profile")


def _scaled(
    table: Profile, share: tuple[float, float], counted_at: tuple[float, float] | None
) -> Profile:
    """The table with speed 1 where work is counted."""
    for cpus, memory_gb in (share, counted_at or share):
        if table.at(cpus, memory_gb) <= 0:
            raise InputError(
                f"{table.name}: has no speed with {cpus:g} CPUs and {memory_gb:g} GB for each GPU, "
                f"its least are {table.cpus_per_gpu[0]:g} CPUs and {table.memory_gb_per_gpu[0]:g} GB; "
                "expected one, for jobs get at least that"
            )
    speed = table.speed / table.at(*(counted_at or share))
    return Profile(table.cpus_per_gpu, table.memory_gb_per_gpu, speed, table.name)
