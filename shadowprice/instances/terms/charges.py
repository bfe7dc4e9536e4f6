"""Charges for starts, restarts and migrations: time in which a gang holds its GPUs without progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_data import settings_in
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import check_seconds
from shadowprice.instances.terms.settings import Seconds, TermContext, TermSettings
from shadowprice.instances.terms.term import SeenInstance, Term


@dataclass(frozen=True, slots=True, repr=False)
class Overheads(Brief):
    """Time a gang holds its GPUs without progress, owed when a run begins and paid first.

    A job that is preempted before it has paid still owes the rest: what is owed adds up, so that
    the run time of a job is exactly its processing time plus all that was charged.

    Parameters
    ----------
    start_s : float
        Charged for every run of a job, the first included [s].
    restart_s : float
        Charged in addition when a job resumes after a preemption [s]: checkpoint and restore.
    migration_s : float
        Charged in addition when it resumes on other GPUs than it had before, counted by node [s].
    restart_by_gpus : tuple of (int, float)
        Restart charges by gang size instead of ``restart_s``: pairs (largest gang, seconds) in
        increasing order; a gang larger than all pays the last.
    """

    start_s: float = 0.0
    restart_s: float = 0.0
    migration_s: float = 0.0
    restart_by_gpus: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        steps = [(f"restart_by_gpus up to {gpus}", cost) for gpus, cost in self.restart_by_gpus]
        for name, value in [
            ("start_s", self.start_s),
            ("restart_s", self.restart_s),
            ("migration_s", self.migration_s),
            *steps,
        ]:
            check_seconds(f"overheads: {name}", value, zero=True)
        limits = [gpus for gpus, _ in self.restart_by_gpus]
        if limits != sorted(set(limits)):
            raise InputError(
                f"overheads: restart_by_gpus has limits {limits}, expected increasing ones"
            )

    @property
    def free(self) -> bool:
        """True if nothing is ever charged."""
        return self == Overheads()

    def restart_charge_s(self, gpus: int) -> float:
        """Charge for resuming a gang [s], without start and migration."""
        for limit, cost in self.restart_by_gpus:
            if gpus <= limit:
                return cost
        return self.restart_by_gpus[-1][1] if self.restart_by_gpus else self.restart_s


@dataclass(frozen=True)
class ChargesSettings(TermSettings):
    """Time in which a gang holds its GPUs without progress; without settings none, also where a preset has some.

    Parameters
    ----------
    start_s : float
        Owed for every run of a job.
    restart_s : float
        Owed in addition when a job resumes after a preemption.
    migration_s : float
        Owed in addition when it resumes on other nodes.
    """

    feature: ClassVar[Feature] = Feature.CHARGES
    sets: ClassVar[tuple[str, ...]] = ("overheads",)
    example: ClassVar[str] = (
        "simulate jobs.csv --cluster 4x4 --policy srtf --with charges:restart_s=30,migration_s=15"
    )

    start_s: Seconds = 0.0
    restart_s: Seconds = 0.0
    migration_s: Seconds = 0.0

    def __post_init__(self) -> None:
        self._overheads()

    def on(self, run: TermContext) -> TermContext:
        """The run with these charges."""
        return run.with_options(overheads=self._overheads())

    def _overheads(self) -> Overheads:
        return Overheads(self.start_s, self.restart_s, self.migration_s)


class ChargesTerm(Term[Overheads]):
    """Charges of an instance; the engine keeps what jobs owe, since these are about runs before and after."""

    feature: ClassVar[Feature] = Feature.CHARGES
    entry: ClassVar[str] = "overheads"
    record: ClassVar[Any] = Overheads
    settings: ClassVar[type[TermSettings] | None] = ChargesSettings

    def present(self, instance: SeenInstance) -> bool:
        """True if something is ever charged."""
        return not self.of(instance).free

    def written(self, value: Overheads) -> Any:
        """Charges that are not 0."""
        return settings_in(value)
