"""CPUs and memory that jobs hold beside GPUs, over any placement.

Of jobs that ask for fixed amounts (:mod:`shadowprice.instances.clusters.amounts`). Where profiles tell how speeds
depend on amounts these are the least: a run holds what its policy gives it, else the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shadowprice.errors import PolicyError
from shadowprice.instances.clusters.amounts import (
    AmountsDemand,
    CountedCapacity,
    HeldAmounts,
    in_millionths,
    no_room,
)
from shadowprice.instances.speeds.sensitivity import Amounts
from shadowprice.instances.terms.declared import Amount, Place
from shadowprice.instances.terms.effect import Pieces
from shadowprice.solvers.placement.resource import Resource

if TYPE_CHECKING:
    from shadowprice.solvers.job_table import JobTable


class NodeRoom:
    """CPUs and memory of nodes while a policy plans whose gangs go where.

    Parameters
    ----------
    nodes : sequence of CountedCapacity
        In the order of the cluster.
    demands : sequence of AmountsDemand
        Of each job by its number.
    left : list of (int, int)
        CPUs and memory of each node that nobody has.
    """

    def __init__(
        self,
        nodes: Sequence[CountedCapacity],
        demands: Sequence[AmountsDemand],
        left: list[HeldAmounts],
    ) -> None:
        self._nodes, self._demands, self._left = nodes, demands, left
        self._gpus: dict[tuple[int, int], int] = {}

    def most(self, job: int, node: int, gpus: int) -> int:
        """Most further GPUs of a node, up to a number, whose amounts a job can have; O(log gpus)."""
        has, capacity, demand = (
            self._gpus.get((job, node), 0),
            self._nodes[node],
            self._demands[job],
        )
        held, left = capacity.held(demand, has) if has else (0, 0), self._left[node]
        budget = left[0] + held[0], left[1] + held[1]
        return max(capacity.most_gpus(demand, budget, has + gpus) - has, 0)

    def add(self, job: int, node: int, gpus: int) -> None:
        """Give a job the amounts of further GPUs of a node, or of fewer if negative."""
        has, capacity, demand = (
            self._gpus.get((job, node), 0),
            self._nodes[node],
            self._demands[job],
        )
        before = capacity.held(demand, has) if has else (0, 0)
        after = capacity.held(demand, has + gpus) if has + gpus else (0, 0)
        cpus, memory = self._left[node]
        self._left[node] = cpus + before[0] - after[0], memory + before[1] - after[1]
        self._gpus[job, node] = has + gpus

    def place(self, jobs: Sequence[int], pieces: Pieces) -> bool:
        """Give jobs that share GPUs, or one, the amounts of these; False, and no change, if there are not all."""
        added: list[tuple[int, int, int]] = []
        for node, gpus in pieces:
            for job in jobs:
                if self.most(job, node, gpus) < gpus:
                    for before in added:
                        self.add(before[0], before[1], -before[2])
                    return False
                self.add(job, node, gpus)
                added.append((job, node, gpus))
        return True


class AmountsLedger:
    """CPUs and memory that jobs hold because they ask for them: here none, so that nothing is in anybody's way.

    Attributes
    ----------
    says : bool
        Whether a job has arrived that asks for some.
    """

    says: bool = False

    def give(self, job: int, pieces: Pieces, amounts: Amounts | None) -> None:
        """Note what a run is to hold on these GPUs, which it does not hold yet; the default if not told.

        Raises
        ------
        PolicyError
            If that is less than its job asks for.
        """

    def least(self, job: int, gpus: int) -> tuple[float, float]:
        """CPUs and memory [GB] that a job asks for with so many GPUs, and is to be given at least."""
        return 0.0, 0.0

    def enough(self, job: int, pieces: Pieces, amounts: Amounts) -> bool:
        """True if these are no less than a job asks for on these GPUs."""
        return True

    def adjust(self, job: int, pieces: Pieces, amounts: Amounts) -> None:
        """Count other amounts of a run that goes on, free or not."""

    def left_in(self, pool: int) -> HeldAmounts:
        """CPUs and memory of the nodes of a pool that nobody holds."""
        return 0, 0

    def needed(self, job: int, gpus: int, pool: int) -> HeldAmounts:
        """Amounts that a job would hold if the pool were one node."""
        return 0, 0

    def held_by(self, job: int, pieces: Pieces) -> HeldAmounts:
        """Amounts that a job holds on these GPUs."""
        return 0, 0

    def room_of_all(self) -> NodeRoom | None:
        """Room of all nodes if every job let go of what it holds; None while no job asks for amounts."""
        return None

    def suffices(self, jobs: Sequence[int], pieces: Pieces, held: Pieces = ()) -> bool:
        """True if nodes have the amounts of jobs on these GPUs left, which all of them share if they are several.

        Parameters
        ----------
        held : pieces
            GPUs of which they would give the amounts back before.
        """
        return True

    def usable(self, jobs: Sequence[int], gpus: Sequence[int], *, empty: bool) -> list[int]:
        """GPUs of each node, of so many, for which there are amounts of jobs that share them, or of one.

        Parameters
        ----------
        empty : bool
            Whether while nobody else is there; else beside those who hold amounts now.
        """
        return list(gpus)

    def fits_in(self, job: int, pool: int) -> bool:
        """True if a pool holds the amounts of a job's whole gang while nobody else is there."""
        return True


class CpusAndMemory(Resource, AmountsLedger):
    """CPUs and memory of nodes, of which jobs hold some beside their GPUs.

    Parameters
    ----------
    nodes : sequence of CountedCapacity
        In the order of the cluster.
    demands : sequence of AmountsDemand
        Of each job by its number; more may be added before they arrive.
    pool_of_node : sequence of int
        Pools of GPUs, from 0.
    """

    on_nodes = True

    def __init__(
        self,
        nodes: Sequence[CountedCapacity],
        demands: Sequence[AmountsDemand],
        pool_of_node: Sequence[int],
    ) -> None:
        super().__init__()
        self._nodes, self._demands, self._pool = nodes, demands, pool_of_node
        self._aside = [(0, 0)] * len(nodes)
        self._granted: dict[int, dict[int, HeldAmounts]] = {}
        self.says = False

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of whether jobs ask for amounts."""
        self.says = self.says or any(self._demands[job].says for job in rows)

    # Places are two numbers for each node: its CPUs, and its memory.

    def amounts(self, job: int, pieces: Pieces, *, shared: bool) -> Sequence[Amount]:
        """CPUs and memory of nodes; those who share GPUs hold what each asks for."""
        found: list[Amount] = []
        for node, gpus in pieces:
            cpus, memory = self._of_run(job, node, gpus)
            found += ((2 * node, cpus), (2 * node + 1, memory))
        return found

    def limit(self, place: Place) -> int:
        """CPUs, or memory, of a node that are not set aside."""
        assert isinstance(place, int)
        node, which = divmod(place, 2)
        return self._nodes[node].most[which] - self._aside[node][which]

    def most(self, job: int, node: int, gpus: int) -> int:
        """Most GPUs of a node, up to a number, for which there is room; O(log gpus)."""
        return self._nodes[node].most_gpus(self._demands[job], self.left_on(node), gpus)

    def left_on(self, node: int) -> HeldAmounts:
        """CPUs and memory of a node that nobody holds."""
        return self.left(2 * node), self.left(2 * node + 1)

    def give(self, job: int, pieces: Pieces, amounts: Amounts | None) -> None:
        """Note what a run is to hold on these GPUs, which it does not hold yet; the default if not told."""
        self._granted.pop(job, None)
        if amounts is not None:
            self._granted[job] = {
                node: self._grant(job, gpus, held)
                for (node, gpus), held in zip(pieces, amounts, strict=True)
            }

    def enough(self, job: int, pieces: Pieces, amounts: Amounts) -> bool:
        """True if these are no less than a job asks for on these GPUs, to a millionth."""
        held = zip(pieces, amounts, strict=True)
        return all(self._suffices(job, gpus, given) for (_, gpus), given in held)

    def _suffices(self, job: int, gpus: int, granted: tuple[float, float]) -> bool:
        asked = in_millionths(self.least(job, gpus))
        return all(mine >= least for mine, least in zip(in_millionths(granted), asked, strict=True))

    def _grant(self, job: int, gpus: int, granted: tuple[float, float]) -> HeldAmounts:
        if not self._suffices(job, gpus, granted):
            least = self.least(job, gpus)
            raise PolicyError(
                f"job {job} is given {granted[0]:g} CPUs and {granted[1]:g} GB on {gpus} GPUs, expected at least "
                f"{least[0]:g} CPUs and {least[1]:g} GB, for which it asks"
            )
        return in_millionths(granted)

    def least(self, job: int, gpus: int) -> tuple[float, float]:
        """CPUs and memory [GB] that a job asks for with so many GPUs, and is to be given at least."""
        return self._demands[job].asked(gpus)

    def adjust(self, job: int, pieces: Pieces, amounts: Amounts) -> None:
        """Count other amounts of a run that goes on, free or not."""
        self.give_back(job, pieces)
        self.give(job, pieces, amounts)
        self.take(job, pieces)

    def set_aside(self, amounts: Mapping[int, HeldAmounts]) -> None:
        """Let nobody have these amounts of nodes, instead of those that were set aside before."""
        self._aside = [amounts.get(node, (0, 0)) for node in range(len(self._nodes))]

    # What policies ask that plan by pools or by nodes.

    def left_in(self, pool: int) -> HeldAmounts:
        """CPUs and memory of the nodes of a pool that nobody holds."""
        left = [self.left_on(node) for node in self._of_pool(pool)]
        return sum(cpus for cpus, _ in left), sum(memory for _, memory in left)

    def needed(self, job: int, gpus: int, pool: int) -> HeldAmounts:
        """Amounts that a job would hold if the pool were one node."""
        nodes = [self._nodes[node] for node in self._of_pool(pool)]
        return type(nodes[0]).pooled(nodes).held(self._demands[job], gpus)

    def held_by(self, job: int, pieces: Pieces) -> HeldAmounts:
        """Amounts that a job holds on these GPUs."""
        held = [self._of_run(job, node, gpus) for node, gpus in pieces]
        return sum(cpus for cpus, _ in held), sum(memory for _, memory in held)

    def room_of_all(self) -> NodeRoom | None:
        """Room of all nodes if every job let go of what it holds; None while no job asks for amounts."""
        if not self.says:
            return None
        left = [
            (most[0] - aside[0], most[1] - aside[1])
            for most, aside in zip((node.most for node in self._nodes), self._aside, strict=True)
        ]
        return NodeRoom(self._nodes, self._demands, left)

    def suffices(self, jobs: Sequence[int], pieces: Pieces, held: Pieces = ()) -> bool:
        """True if nodes have the amounts of jobs on these GPUs left."""
        if not self.says:
            return True
        left = [self.left_on(node) for node in range(len(self._nodes))]
        for node, gpus in held:
            for job in jobs:
                cpus, memory = self._of_run(job, node, gpus)
                left[node] = left[node][0] + cpus, left[node][1] + memory
        return NodeRoom(self._nodes, self._demands, left).place(jobs, pieces)

    def usable(self, jobs: Sequence[int], gpus: Sequence[int], *, empty: bool) -> list[int]:
        """GPUs of each node, of so many, for which there are amounts of jobs that share them, or of one."""
        if not self.says:
            return list(gpus)
        found = []
        for node, most in enumerate(gpus):
            left = self._nodes[node].most if empty else self.left_on(node)
            room = NodeRoom(self._nodes[node : node + 1], self._demands, [left])
            found.append(next((g for g in range(most, 0, -1) if room.place(jobs, ((0, g),))), 0))
        return found

    def fits_in(self, job: int, pool: int) -> bool:
        """True if a pool holds the amounts of a job's whole gang while nobody else is there."""
        return not no_room(self._demands[job], self._nodes, [self._of_pool(pool)])

    def _of_run(self, job: int, node: int, gpus: int) -> HeldAmounts:
        given = self._granted.get(job)
        return self._nodes[node].held(self._demands[job], gpus) if given is None else given[node]

    def _of_pool(self, pool: int) -> list[int]:
        return [node for node, its in enumerate(self._pool) if its == pool]
