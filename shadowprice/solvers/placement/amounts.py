"""CPUs and memory that jobs hold beside GPUs, over any placement.

Of jobs that ask for fixed amounts (:mod:`shadowprice.instances.clusters.amounts`); where profiles tell how speeds
depend on amounts, policies such as Synergy's give them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shadowprice.instances.clusters.amounts import (
    AmountsDemand,
    HeldAmounts,
    NodeCapacity,
    no_room,
)
from shadowprice.solvers.placement.parts import PartsAllocator
from shadowprice.solvers.placement.protocol import Allocator, JobAllocator, Pieces


class NodeRoom:
    """CPUs and memory of nodes while a policy plans whose gangs go where.

    Parameters
    ----------
    nodes : sequence of NodeCapacity
        In the order of the cluster.
    demands : sequence of AmountsDemand
        Of each job by its number.
    left : list of (int, int)
        CPUs in thousandths and memory in MiB of each node that nobody has.
    """

    def __init__(
        self,
        nodes: Sequence[NodeCapacity],
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


class AmountsAllocator:
    """Free GPUs of a placement, given out only where CPUs and memory suffice.

    Taking looks at all nodes; GPUs for whose amounts there is no room are hidden from the placement.

    Parameters
    ----------
    gpus : Allocator
        Of GPUs.
    nodes : sequence of NodeCapacity
        In the order of the cluster.
    demands : sequence of AmountsDemand
        Of each job by its number; more may be added before they arrive.

    Attributes
    ----------
    parts : PartsAllocator or None
        The allocator of GPUs if jobs hold parts of them.
    """

    def __init__(
        self,
        gpus: Allocator,
        nodes: Sequence[NodeCapacity],
        demands: Sequence[AmountsDemand],
    ) -> None:
        self._gpus = gpus
        self._of_jobs = gpus if isinstance(gpus, JobAllocator) else None
        self.parts = gpus if isinstance(gpus, PartsAllocator) else None
        self._nodes, self._demands = nodes, demands
        self._used = [(0, 0)] * len(nodes)
        self._aside = [(0, 0)] * len(nodes)
        self._arrived = 0
        self._says = False

    @property
    def free_gpus(self) -> int:
        """Free GPUs, whether there are CPUs and memory for them or not."""
        return self._gpus.free_gpus

    @property
    def anywhere(self) -> bool:
        """True if the placement says so and no job has arrived that asks for amounts."""
        return self._gpus.anywhere and not self._says

    @property
    def by_count(self) -> bool:
        """True if the number of free GPUs says whether a gang fits, as far as amounts go."""
        return not self._says

    def free_in(self, pool: int) -> int:
        """Free GPUs of one pool."""
        return self._gpus.free_in(pool)

    def pool_of(self, node: int) -> int:
        """Pool of a node."""
        return self._gpus.pool_of(node)

    def free_by_node(self) -> list[int]:
        """Free GPUs of every node, a copy."""
        return self._gpus.free_by_node()

    def arrive(self, model: str) -> None:
        """Take note of a job that arrives."""
        self._says = self._says or self._demands[self._arrived].says
        self._arrived += 1
        if self._of_jobs is not None:
            self._of_jobs.arrive(model)

    def left(self, node: int) -> HeldAmounts:
        """CPUs and memory of a node that nobody holds."""
        used, aside, most = self._used[node], self._aside[node], self._nodes[node].most
        return most[0] - used[0] - aside[0], most[1] - used[1] - aside[1]

    def left_in(self, pool: int) -> HeldAmounts:
        """The same of all nodes of a pool."""
        left = [self.left(node) for node in self._of_pool(pool)]
        return sum(cpus for cpus, _ in left), sum(memory for _, memory in left)

    def needed(self, job: int, gpus: int, pool: int) -> HeldAmounts:
        """Amounts that a job would hold if the pool were one node."""
        nodes = [self._nodes[node] for node in self._of_pool(pool)]
        whole = NodeCapacity(
            sum(node.gpus for node in nodes),
            sum(node.cpu_milli for node in nodes),
            sum(node.memory_mib for node in nodes),
        )
        return whole.held(self._demands[job], gpus)

    def held_by(self, job: int, pieces: Pieces) -> HeldAmounts:
        """Amounts that a job holds on these GPUs."""
        demand = self._demands[job]
        held = [self._nodes[node].held(demand, gpus) for node, gpus in pieces]
        return sum(cpus for cpus, _ in held), sum(memory for _, memory in held)

    def room(self) -> NodeRoom | None:
        """Room of all nodes if every job let go of what it holds; None while no job asks for amounts."""
        if not self._says:
            return None
        left = [
            (most[0] - aside[0], most[1] - aside[1])
            for most, aside in zip((node.most for node in self._nodes), self._aside, strict=True)
        ]
        return NodeRoom(self._nodes, self._demands, left)

    def suffices(self, jobs: Sequence[int], pieces: Pieces, held: Pieces = ()) -> bool:
        """True if nodes have the amounts of jobs on these GPUs left, which all of them share if they are several.

        Parameters
        ----------
        held : pieces
            GPUs of which they would give the amounts back before.
        """
        if not self._says:
            return True
        left = [self.left(node) for node in range(len(self._nodes))]
        for node, gpus in held:
            for job in jobs:
                cpus, memory = self._nodes[node].held(self._demands[job], gpus)
                left[node] = left[node][0] + cpus, left[node][1] + memory
        return NodeRoom(self._nodes, self._demands, left).place(jobs, pieces)

    def usable(self, jobs: Sequence[int], gpus: Sequence[int], *, empty: bool) -> list[int]:
        """GPUs of each node, of so many, for which there are amounts of jobs that share them, or of one.

        Parameters
        ----------
        empty : bool
            Whether while nobody else is there; else beside those who hold amounts now.
        """
        if not self._says:
            return list(gpus)
        found = []
        for node, most in enumerate(gpus):
            left = self._nodes[node].most if empty else self.left(node)
            room = NodeRoom(self._nodes[node : node + 1], self._demands, [left])
            found.append(next((g for g in range(most, 0, -1) if room.place(jobs, ((0, g),))), 0))
        return found

    def fits_in(self, job: int, pool: int) -> bool:
        """True if a pool holds the amounts of a job's whole gang while nobody else is there."""
        return not no_room(self._demands[job], self._nodes, [self._of_pool(pool)])

    def _of_pool(self, pool: int) -> list[int]:
        return [node for node in range(len(self._nodes)) if self._gpus.pool_of(node) == pool]

    def set_aside(self, amounts: Mapping[int, HeldAmounts]) -> None:
        """Let nobody have these amounts of nodes, instead of those that were set aside before."""
        self._aside = [amounts.get(node, (0, 0)) for node in range(len(self._nodes))]

    def take(self, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """Take GPUs without regard to amounts: whoever asks for a job uses :meth:`take_for`."""
        return self._gpus.take(gpus, pools)

    def take_for(self, job: int, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """Take a gang and its amounts from the first of the pools in which both fit."""
        hidden = self._hidden(job) if self._says else ()
        if hidden:
            taken = self._gpus.take_exact(hidden)
            assert taken, "GPUs that are free are not"
        pieces = self._take_gpus(job, gpus, pools)
        if hidden:
            self._gpus.give_back(hidden)
        if pieces is not None:
            self._use(job, pieces, 1)
        return pieces

    def _take_gpus(self, job: int, gpus: int, pools: Sequence[int]) -> Pieces | None:
        if self.parts is not None and self.parts.holds_part(job) and self._says:
            demand = self._demands[job]
            closed = {
                node
                for node, capacity in enumerate(self._nodes)
                if not capacity.most_gpus(demand, self.left(node), 1)
            }
            return self.parts.take_for(job, gpus, pools, closed)
        if self._of_jobs is not None:
            return self._of_jobs.take_for(job, gpus, pools)
        return self._gpus.take(gpus, pools)

    def _hidden(self, job: int) -> Pieces:
        """Free GPUs for whose amounts there is no room."""
        demand, hidden = self._demands[job], []
        for node, free in enumerate(self._gpus.free_by_node()):
            if free:
                usable = self._nodes[node].most_gpus(demand, self.left(node), free)
                if usable < free:
                    hidden.append((node, free - usable))
        return tuple(hidden)

    def take_exact(self, pieces: Pieces) -> bool:
        """Take exactly these GPUs if they are all free, and no amounts."""
        return self._gpus.take_exact(pieces)

    def take_exact_for(self, job: int, pieces: Pieces, *, again: bool = False) -> bool:
        """Take exactly these GPUs for a job, with their amounts, if all are free."""
        demand = self._demands[job]
        for node, gpus in pieces if self._says else ():
            if self._nodes[node].most_gpus(demand, self.left(node), gpus) < gpus:
                return False
        if self.parts is None:
            taken = self._gpus.take_exact(pieces)
        else:
            taken = self.parts.take_exact_for(job, pieces, again=again)
        if taken:
            self._use(job, pieces, 1)
        return taken

    def join(self, job: int, pieces: Pieces) -> bool:
        """Take the amounts of a job on GPUs that another holds; False, and no change, if there are none left."""
        demand = self._demands[job]
        for node, gpus in pieces:
            held = self._nodes[node].held(demand, gpus)
            if any(wanted > left for wanted, left in zip(held, self.left(node), strict=True)):
                return False
        self._use(job, pieces, 1)
        return True

    def leave(self, job: int, pieces: Pieces) -> None:
        """Free the amounts of a job whose GPUs another goes on holding."""
        self._use(job, pieces, -1)

    def give_back(self, pieces: Pieces) -> None:
        """Free GPUs that were taken without amounts."""
        self._gpus.give_back(pieces)

    def give_back_of(self, job: int, pieces: Pieces) -> None:
        """Free the GPUs of a job, and its amounts."""
        if self.parts is None:
            self._gpus.give_back(pieces)
        else:
            self.parts.give_back_of(job, pieces)
        self._use(job, pieces, -1)

    def _use(self, job: int, pieces: Pieces, sign: int) -> None:
        demand = self._demands[job]
        for node, gpus in pieces:
            (cpus, memory), held = self._used[node], self._nodes[node].held(demand, gpus)
            self._used[node] = cpus + sign * held[0], memory + sign * held[1]
