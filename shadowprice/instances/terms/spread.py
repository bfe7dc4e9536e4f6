"""Slowdowns of spread gangs: those on more nodes than they need are slower."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.clusters.node_sizes import fewest_nodes
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.speeds.model_skew import ModelSkews, published_skews
from shadowprice.instances.terms.effect import Effect, Fields, Pieces, SpeedFactor
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.instances.terms.term import SeenInstance, Term, expect_of_jobs

if TYPE_CHECKING:
    from shadowprice.instances.workload import Workload

# Slowdown of a job that is spread over more nodes than it needs.
#
# Tiresias (NSDI'19), sec. 2.2 and 3.4, and Gandiva (OSDI'18), sec. 2.2: models with a few large
# tensors lose most. One number a job is a simplification of both (derived).


@dataclass(frozen=True, eq=False, repr=False)
class Locality(Brief):
    """Speeds of spread jobs.

    A run is spread if it has GPUs on more nodes than the fewest of the cluster, its largest ones,
    that could hold as many.

    Parameters
    ----------
    spread_speed : ndarray, shape (n,)
        Speed of every job when spread, against that when it is not; 0 < s <= 1.
    """

    spread_speed: NDArray[np.float64]

    def __post_init__(self) -> None:
        speed = np.array(self.spread_speed, dtype=np.float64)
        bad = ~((speed > 0) & (speed <= 1))
        if bad.any():
            job = int(bad.argmax())
            raise InputError(
                f"locality: the speed of job {job} when spread is {speed[job]!r}, expected 0 < s <= 1"
            )
        speed.flags.writeable = False
        object.__setattr__(self, "spread_speed", speed)

    def of(self, workload: Workload) -> NDArray[np.float64]:
        """Speeds of the jobs of a workload when spread, shape (n,): 1 of those on cores, which never are."""
        return np.where(workload.on_cores, 1.0, self.spread_speed)

    def select(self, keep: NDArray[np.bool_]) -> Locality:
        """The same for some of the jobs."""
        return Locality(self.spread_speed[keep])


def locality_of(workload: Workload, skews: ModelSkews | None = None) -> Locality:
    """Speeds of the jobs of a workload when spread, by their models; O(n).

    Parameters
    ----------
    skews : ModelSkews, optional
        The published models with assumed speeds if not given.

    Raises
    ------
    InputError
        Naming the job and the model if that is not listed.
    """
    table = skews or published_skews()
    return Locality(np.array([model.spread_speed for model in table.of_jobs(workload)]))


@dataclass(frozen=True)
class SpreadSettings(TermSettings):
    """Speeds of models on more nodes than the gang needs.

    Parameters
    ----------
    file : str
        JSON or TOML file of models and their speeds when spread; Tiresias' ten models if left out.
    """

    feature: ClassVar[Feature] = Feature.SPREAD
    sets: ClassVar[tuple[str, ...]] = ("skews",)
    example: ClassVar[str] = (
        "simulate testbed.csv --cluster 15x4 --placement skew --policy las2d --with spread"
    )

    file: FileName | UnsetType = UNSET

    def on(self, run: TermContext) -> TermContext:
        """The run with these slowdowns."""
        found = published_skews() if self.file is UNSET else ModelSkews.load(self.file)
        return run.with_options(skews=found)


class SpreadFactor(SpeedFactor):
    """The speed of a run on more nodes than the fewest that could hold as many GPUs.

    Parameters
    ----------
    spread_speed : sequence of float
        Of each job when spread, against when it is not; 1 of jobs that hold no GPUs.
    fewest_nodes : sequence of int
        Of the cluster, for k GPUs from 0 to all.
    """

    feature: ClassVar[Feature] = Feature.SPREAD

    def __init__(self, spread_speed: Sequence[float], fewest_nodes: Sequence[int]) -> None:
        self._speed, self._fewest = spread_speed, fewest_nodes

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of a job on these nodes."""
        slow = self._speed[job]
        if len(pieces) == 1 or slow == 1.0:
            return 1.0
        spread = len(pieces) > self._fewest[sum(gpus for _, gpus in pieces)]
        return slow if spread else 1.0


class SpreadTerm(Term[Locality]):
    """Speeds of gangs that are spread."""

    feature: ClassVar[Feature] = Feature.SPREAD
    entry: ClassVar[str] = "locality"
    record: ClassVar[Any] = Locality
    settings: ClassVar[type[TermSettings] | None] = SpreadSettings
    varies: ClassVar[bool] = True
    by_job: ClassVar[bool] = True

    def check(self, value: Locality, instance: SeenInstance) -> None:
        """Refuse speeds of other jobs."""
        expect_of_jobs("speeds of spread gangs", len(value.spread_speed), instance.workload)

    def effects(self, value: Locality, instance: SeenInstance) -> Iterator[Effect]:
        """The speed of a spread gang."""
        fewest = fewest_nodes(instance.cluster).tolist()
        yield SpreadFactor(value.of(instance.workload).tolist(), fewest)
