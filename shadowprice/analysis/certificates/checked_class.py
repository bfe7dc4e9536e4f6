"""Work that every schedule of a certificate's class has to do, and bounds of it at multipliers, as its checker says.

Neither is computed here. An instance is written as records, and what these mean for a bound is said in one place, the
checker's ``CertificateInstance``: a feature that may make jobs faster or lighter is a field of a record, and the least
time and the least area follow where that is read; features that only restrict schedules, or let jobs work in vain, are
read and left out. An instance with a feature that has no such record has no bound.

A job needs ``shortest`` ticks at the best speed that it can have, and ``area``, the least GPU ticks in which all of
it can be done. Let its *service* be its speed over the best. While it holds w GPUs at a speed at which the whole
job takes P ticks it does 1 / P of itself a tick, and area / P of its area; with the least of all w P for the area
this is at most w. So all jobs together do at most as much area a tick as there are GPUs, and no job gets more than
a tick of service in a tick. The proofs of LB-fluid, LB-mbt and the priced bounds ask for nothing else; that of the
interval LP asks for an end by which all can be done, which is the last release and all p_j where no a_j is more than
the cluster does in p_j. So a job with more takes longer: p_j is a_j over what the cluster does in a tick, rounded
down, and what is then more than it does does not count. (A job may be said to be faster on more GPUs than there are.)

*Parts of GPUs*: w is the part that is held. *Pairs*: two jobs on w GPUs do at most kappa w of their areas together,
for the largest of these sums over pairs of sorts. *Copies*: each holds a node; the best speed is that on the k
fastest nodes, the area that on the fastest GPU, both with all CPUs and memory that help and rounded down. *Graphs*:
the speed of a mapping is at most that of an iteration all of whose traffic goes at the greatest bandwidth, times that
beside a partner. *Failures*: what is lost is done again, which no bound minds.
"""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.records import Record
from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, require
from shadowprice.proofs.checker.bounds import bound_of
from shadowprice.proofs.checker.costs import LeastWork
from shadowprice.proofs.checker.form import Rejected
from shadowprice.proofs.checker.instance import TAKE, CertificateInstance
from shadowprice.proofs.checker.mode_bounds import MODE_BOUNDS
from shadowprice.proofs.checker.modes import PairShares
from shadowprice.proofs.checker.utility import Utilities, bound_utility
from shadowprice.proofs.checker.windows import WindowTree
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.modes.job_modes import ModeTable

if TYPE_CHECKING:
    from shadowprice.analysis.certificates.bound_candidate import BoundCandidate
    from shadowprice.analysis.certificates.job_utilities import JobUtilities
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.objective import Objective


KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # of a job the fastest counts
        Feature.CHARGES,  # of the first start; others only restrict
        Feature.SHARING,  # by what pairs gain, where some share
        Feature.GRAPHS,  # no mapping is faster than traffic at the greatest bandwidth
        Feature.PROFILES,  # the fastest counts
        Feature.SPREAD,  # makes no run faster
        Feature.WIDTHS,  # the least area of all
        Feature.COPIES,
        Feature.FAILURES,  # what is lost is done again
        Feature.QUOTAS,  # are left out: they only restrict
        Feature.PARTS,  # areas count in thousandths
        Feature.CORES,  # count as GPUs of a type
        Feature.CPU_MEMORY,  # are left out: they only restrict
        Feature.WINDOW,  # the jobs that count
        Feature.STOPPED,  # the jobs that count, until then
        Feature.RESTART,  # is left out: it only restricts
    }
)

_MULTIPLE = 1000
"""Parts of a GPU in which areas are searched for prices, where jobs do not hold their gangs all the time."""


@dataclass(frozen=True, eq=False)
class CheckedClass:
    """A class of schedules as the checker has it.

    Parameters
    ----------
    name : str
        Which schedules, in words.
    work : LeastWork
        Work that each of them does: columns of the jobs that count, shape (n,), and the cluster; r_j, p_j [ticks],
        g_j, a_j in units of 1 / ``scale`` GPU ticks and no more than the cluster does in p_j, w_j.
    instance : CertificateInstance
        The jobs that count.
    source : str
        Where the jobs are from.
    """

    name: str
    work: LeastWork
    instance: CertificateInstance = field(repr=False)
    source: str = field(repr=False)

    @classmethod
    def of(cls, instance: Instance, *, pairs: bool, preemptive: bool = True) -> CheckedClass:
        """That of an instance; with ``pairs`` two jobs may share GPUs, unless ``preemptive`` each begins once.

        Raises
        ------
        InputError
            If the instance has features that are not in ``KNOWS``, or the checker takes no such records.
        """
        require(instance, KNOWS, "certificates")
        source, read = instance.workload.source, CertificateInstance()
        try:
            header = records.header(instance, "bounds", "flow", preemptive=preemptive)
            read.take_header(_fields(header))
            for record in records.instance_records(instance, pairs=pairs):
                TAKE[record["kind"]](read, record)
            name, counted = read.of_class(), read.counted()
            read.ids.clear()
            return cls(name, counted.relaxed(), counted, source)
        except Rejected as error:
            raise _refusal(source, error) from None

    @property
    def once(self) -> bool:
        """True if each job begins once in schedules of the class."""
        return "starts" in self.instance.header

    @property
    def sharing_gain(self) -> Fraction:
        """kappa, 1 where no two jobs share a GPU."""
        return Fraction(self.work.capacity, self.work.gpus * self.work.scale)

    def searched(self) -> tuple[Relaxation, int]:
        """Jobs of whole gangs whose bounds at any prices are at most those of these, and their parts of a GPU."""
        work = self.work
        columns = [(a, p * work.scale) for a, p in zip(work.area, work.shortest, strict=True)]
        even = all(area % ticks == 0 for area, ticks in columns)
        parts = 1 if even else _MULTIPLE
        gangs = [area * parts // ticks for area, ticks in columns]
        jobs = (work.arrival, work.shortest, gangs, work.weight)
        return Relaxation(*jobs, work.gpus * parts, self.sharing_gain), parts

    def whole_gangs(self) -> Relaxation:
        """Jobs that hold their gangs for the shortest time, of which no two are on a GPU."""
        work = self.work
        return Relaxation(
            work.arrival, work.shortest, work.gang, work.weight, work.gpus, Fraction(1)
        )

    def modes(self, subject: str, fields: Record, *, consolidated: bool = False) -> ModeTable:
        """Modes of the jobs that count, as the checker has them.

        Parameters
        ----------
        subject : str
            What tells the modes apart, as names of bounds have it; empty for GPU types.
        fields : dict
            What the record of a bound says of them: rows of resources.
        consolidated : bool
            Whether they are of schedules alone that place every gang on as few nodes as it fits on.

        Raises
        ------
        InputError
            If the checker makes no such modes.
        """
        placed = self._placed(consolidated=consolidated)
        try:
            builder = MODE_BOUNDS[f"interval-lp-of-{subject}" if subject else "typed-interval-lp"]
            rows = builder.modes(placed, placed.relaxed(), fields)
        except Rejected as error:
            raise _refusal(self.source, error) from None
        use = np.zeros((len(rows.use), len(rows.time[0]), len(rows.capacity)), dtype=object)
        for k, row in enumerate(rows.use):
            for m, uses in enumerate(row):
                for resource, amount in uses:
                    use[k, m, resource] += amount
        return ModeTable(
            np.array(self.work.arrival, dtype=np.int64),
            tuple(self.work.weight),
            np.array(rows.time, dtype=np.int64),
            np.array(rows.capacity, dtype=object),
            np.array(rows.kind, dtype=np.int64),
            use,
        )

    def sharing_shares(self) -> dict[tuple[int, int, int], Fraction]:
        """Most that jobs do beside others, of their fastest: by GPU type, their sort and that of the other."""
        shares, instance = PairShares(), self.instance
        for j, times in enumerate(instance.times):
            for kind, (name, ticks) in enumerate(zip(instance.types, times, strict=True)):
                shares.add(instance, j, kind, ticks, instance.more[j]["beside"].get(name, {}))
        return shares.most

    def times_by_width(self) -> list[list[tuple[int, int]]]:
        """Widths of every job, and its ticks at each on the best type under the best of conditions."""
        return [list(self.instance.by_any_width(job)) for job in range(len(self.work.arrival))]

    def _placed(self, *, consolidated: bool) -> CertificateInstance:
        """The jobs that count, of a class of schedules."""
        placed = copy(self.instance)
        placed.header = {**placed.header}
        if consolidated:
            placed.header["placement"] = "consolidated"
        return placed

    def evaluated(self, candidate: BoundCandidate, goal: Objective) -> Fraction:
        """Value of a bound on completions, or on the last one, from its multipliers [ticks]; as the checker has it.

        Raises
        ------
        InputError
            If the checker takes no such bound, or it would be too much work.
        """
        placed, record = self._placed(consolidated=candidate.consolidated), _read(candidate.record)
        placed.header["objective"] = str(goal)
        try:
            work = placed.relaxed()
            if not candidate.parts:
                return bound_of(placed, work, record, None)
            tree = WindowTree(work, record)
            for part in candidate.parts:
                tree.take(_read(part))
            return bound_of(placed, work, record, tree)
        except Rejected as error:
            raise _refusal(self.source, error) from None

    def earned(self, utilities: JobUtilities, ends: list[int]) -> Fraction:
        """Total utility of completions [ticks], 0 for none, as the checker has it."""
        return self._earning(utilities).earned(ends)

    def most_earned(
        self, utilities: JobUtilities, record: Record, *, whole_rounds: bool
    ) -> Fraction:
        """Upper bound of the total utility, from its prices; as the checker has it.

        Raises
        ------
        InputError
            If the checker takes no such bound, or it would be too much work.
        """
        instance = copy(self.instance)
        instance.header = {**instance.header, **({"rounds": "whole"} if whole_rounds else {})}
        try:
            earning = self._earning(utilities)
            return bound_utility(instance, earning, instance.relaxed(), _read(record))
        except Rejected as error:
            raise _refusal(self.source, error) from None

    def _earning(self, utilities: JobUtilities) -> Utilities:
        """Utilities of the jobs that count as the checker has them."""
        return Utilities(
            utilities.arrival,
            utilities.worth,
            utilities.deadline or [],
            utilities.length,
            utilities.until,
        )


def _fields(record: Record) -> Record:
    return {name: value for name, value in record.items() if name != "kind"}


def _read(record: Record) -> Record:
    """A record as it is read from its line."""
    return _fields(json.loads(json.dumps(record)))


def _refusal(source: str, error: Rejected) -> InputError:
    return InputError(f"{source}: has no certified bound: {error}")


CONSOLIDATED = ", on as few nodes as gangs fit on"
"""End of the name of a class of schedules that place every gang so."""
