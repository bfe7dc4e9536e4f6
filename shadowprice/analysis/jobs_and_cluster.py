"""From what a call was given to jobs on a cluster: the one place that looks at what it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.entries import shown
from shadowprice.instances.instance import Instance
from shadowprice.instances.steady_state.endless import EndlessWorkload
from shadowprice.instances.traces.csv_table import load_frame
from shadowprice.instances.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from shadowprice.analysis.run_options import RunOptions
    from shadowprice.instances.terms.window import JobWindow

Where: TypeAlias = Cluster | str | Path
"""A cluster, its short notation (``16x4``), or a TOML file."""

Jobs: TypeAlias = Union[Workload, EndlessWorkload, "pd.DataFrame"]
"""Jobs, with an end or without, or a table of them whose columns have names that a CSV may have."""

Problem: TypeAlias = Union[Jobs, Instance, "JobsAndCluster"]
"""Jobs, for which a cluster is given as well, or an instance, which has one."""


@dataclass(frozen=True, repr=False)
class JobsAndCluster(Brief):
    """Jobs on a cluster.

    Parameters
    ----------
    jobs : Workload or EndlessWorkload
    cluster : Cluster
    instance : Instance or None
        An instance of these jobs on this cluster, with all that it says beside them, if one was given.
    """

    jobs: Workload | EndlessWorkload
    cluster: Cluster
    instance: Instance | None = None

    @classmethod
    def of(cls, jobs: Problem, cluster: Where | None = None) -> JobsAndCluster:
        """Jobs on a cluster, or an instance.

        Raises
        ------
        InputError
            If jobs are given without a cluster, an instance with another one, a table has wrong columns or values,
            or anything else stands for the jobs.
        """
        if isinstance(jobs, JobsAndCluster | Instance):
            if cluster is not None:
                raise InputError(
                    f"cluster {str(cluster)!r}: an instance has a cluster of its own; expected the arguments after "
                    "an instance by their names"
                )
            return (
                jobs if isinstance(jobs, JobsAndCluster) else cls(jobs.workload, jobs.cluster, jobs)
            )
        named = jobs if isinstance(jobs, Workload | EndlessWorkload) else _of_frame(jobs)
        if cluster is None:
            raise InputError(
                f"{named.source}: jobs are given without a cluster, expected one such as '16x4' after them"
            )
        return cls(named, cluster if isinstance(cluster, Cluster) else Cluster.load(cluster))

    @property
    def endless(self) -> bool:
        """True if jobs never stop to arrive."""
        return isinstance(self.jobs, EndlessWorkload)

    def ending(self) -> Workload:
        """The jobs, if they have an end.

        Raises
        ------
        InputError
            Else: a run of them has to end with a window of jobs.
        """
        if isinstance(self.jobs, EndlessWorkload):
            raise InputError(
                f"{self.jobs.source}: never ends, expected a window of jobs whose completion ends the run "
                "(--with window; until_complete of RunOptions)"
            )
        return self.jobs

    def as_instance(self) -> Instance:
        """The instance, or the jobs on the cluster with nothing beside them.

        Raises
        ------
        InputError
            If jobs never end, or one can never run.
        """
        return Instance(self.cluster, self.ending()) if self.instance is None else self.instance

    def window(self, options: RunOptions | None) -> JobWindow | None:
        """Jobs whose completion ends a run, if not all do."""
        if self.instance is not None:
            return self.instance.until_complete
        return None if options is None else options.until_complete

    def first(self, count: int) -> JobsAndCluster:
        """So many first jobs of those that never end; all of others."""
        if isinstance(self.jobs, EndlessWorkload):
            return replace(self, jobs=self.jobs.first(count))
        return self

    def before(self, time_s: float) -> JobsAndCluster:
        """The jobs that arrive before a time [s]."""
        jobs = self.ending()
        here: NDArray[np.bool_] = jobs.arrival_s < time_s
        if self.instance is None:
            return replace(self, jobs=jobs.select(here))
        return JobsAndCluster.of(self.instance.select(here))


def _of_frame(jobs: object) -> Workload:
    import pandas as pd

    if not isinstance(jobs, pd.DataFrame):
        raise InputError(
            f"jobs: got {shown(jobs)}, expected a Workload, a data frame, an EndlessWorkload or an Instance; files "
            "are read by shadowprice.load"
        )
    return load_frame(jobs).workload
