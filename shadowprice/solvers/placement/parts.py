"""GPUs that jobs hold in parts, over any placement of whole ones.

A job that holds a part of one GPU goes to the GPU with the least room that has enough (best fit), in the
first of its pools that has one; otherwise a whole GPU is taken where the placement says and shared from
then on. It is free again when the last of its jobs leaves. Best fit is derived, not of a paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.features import Feature
from shadowprice.instances.workload import WHOLE_GPU
from shadowprice.solvers.placement.protocol import Allocator, Pieces

if TYPE_CHECKING:
    from shadowprice.solvers.job_table import JobTable

SharedGpu = tuple[int, int]
"""A GPU that jobs hold parts of: its node, and its number among those of the node, from 0."""


class PartsAllocator(Allocator):
    """Free GPUs, and the room on those that jobs hold parts of.

    Taking a part looks at no more than 1000 amounts of room for each pool; all else costs what it
    costs the placement.

    Parameters
    ----------
    whole : Allocator
        Of whole GPUs.
    """

    counts_by_job = True
    anywhere = False
    in_parts = True

    def __init__(self, whole: Allocator, cluster: Cluster) -> None:
        self._whole = whole
        self._size: list[int] = cluster.gpus_per_node.tolist()
        self._milli: list[int] = []
        self._room: dict[SharedGpu, int] = {}
        self._with_some_room = 0
        # By pool and room, in the order in which they came to have so much.
        self._with_room: dict[int, list[dict[SharedGpu, None]]] = {}
        self._holds: dict[int, SharedGpu] = {}
        self._last: dict[int, SharedGpu] = {}

    @property
    def free_gpus(self) -> int:
        """GPUs on which something may start: free ones, and those of which a part is free."""
        return self._whole.free_gpus + self._with_some_room

    def free_in(self, pool: int) -> int:
        """The same of one pool."""
        shared = sum(len(each) for each in self._with_room.get(pool, ())[1:])
        return self._whole.free_in(pool) + shared

    def free_milli_in(self, pool: int) -> int:
        """Thousandths of GPUs that nobody holds in a pool."""
        levels = enumerate(self._with_room.get(pool, ()))
        shared = sum(room * len(gpus) for room, gpus in levels)
        return self._whole.free_in(pool) * WHOLE_GPU + shared

    def pool_of(self, node: int) -> int:
        """Pool of a node."""
        return self._whole.pool_of(node)

    def free_by_node(self) -> list[int]:
        """GPUs of every node that nobody holds a part of, a copy."""
        return self._whole.free_by_node()

    @property
    def by_count(self) -> bool:
        """False: parts of GPUs may be free beside whole ones."""
        return False

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of the parts that jobs hold."""
        self._whole.arrive(jobs, rows)
        self._milli += jobs.counts("gpu_milli")[rows.start : rows.stop].tolist()

    def fields_of(self, job: int) -> dict[Feature, Any]:
        """Number of the GPU of its node that a job holds a part of; -1 if it holds whole ones."""
        return {Feature.PARTS: self._holds[job][1] if job in self._holds else -1}

    def take(self, job: int, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """Take whole GPUs for a job, or the part of one that it holds."""
        if self._milli[job] == WHOLE_GPU:
            return self._whole.take(job, gpus, pools)
        return self._take_part(job, pools, None)

    def take_where(
        self, job: int, gpus: int, pools: Sequence[int], most: Callable[[int, int], int]
    ) -> Pieces | None:
        """The same on GPUs, or a part of one, for which there is room."""
        if self._milli[job] == WHOLE_GPU:
            return self._whole.take_where(job, gpus, pools, most)
        return self._take_part(job, pools, most)

    def _take_part(
        self, job: int, pools: Sequence[int], most: Callable[[int, int], int] | None
    ) -> Pieces | None:
        milli = self._milli[job]
        for pool in pools:
            for gpus_with in self._with_room.get(pool, ())[milli:]:
                for gpu in gpus_with:
                    if most is None or most(gpu[0], 1):
                        return self._hold(job, gpu)
        whole = self._whole
        pieces = (
            whole.take(job, 1, pools) if most is None else whole.take_where(job, 1, pools, most)
        )
        return None if pieces is None else self._hold(job, self._share(pieces[0][0]))

    def take_exact(self, pieces: Pieces) -> bool:
        """Take exactly these whole GPUs if they are all free."""
        return self._whole.take_exact(pieces)

    def give_back(self, pieces: Pieces) -> None:
        """Free whole GPUs."""
        self._whole.give_back(pieces)

    def hold(self, job: int, pieces: Pieces) -> bool:
        """Take these GPUs, or on this node the part of one that a job holds."""
        milli = self._milli[job]
        if milli == WHOLE_GPU:
            return self._whole.hold(job, pieces)
        ((node, _),) = pieces
        rooms = {gpu: room for gpu, room in self._room.items() if gpu[0] == node and room >= milli}
        if rooms:
            self._hold(job, min(rooms, key=lambda gpu: rooms[gpu]))
        elif self._whole.take_exact(((node, 1),)):
            self._hold(job, self._share(node))
        else:
            return False
        return True

    def resume(
        self, job: int, pieces: Pieces, partner: int | None, begun: Mapping[int, Pieces]
    ) -> bool:
        """Take the same GPUs again, or the part of the very GPU that a job held last."""
        milli = self._milli[job]
        if milli == WHOLE_GPU:
            return self._whole.resume(job, pieces, partner, begun)
        ((node, _),), gpu = pieces, self._last[job]
        fits = self._room.get(gpu, WHOLE_GPU) >= milli
        if not fits or (gpu not in self._room and not self._whole.take_exact(((node, 1),))):
            return False
        if gpu not in self._room:
            self._set_room(gpu, WHOLE_GPU)
        self._hold(job, gpu)
        return True

    def release(self, job: int, pieces: Pieces) -> None:
        """Free the GPUs of a job, or the part of one."""
        gpu = self._holds.pop(job, None)
        if gpu is None:
            self._whole.release(job, pieces)
            return
        self._last[job] = gpu
        self._set_room(gpu, self._room[gpu] + self._milli[job])

    def _share(self, node: int) -> SharedGpu:
        """A GPU of a node that was just taken whole, under a number that no shared one has."""
        index = next(k for k in range(self._size[node]) if (node, k) not in self._room)
        self._set_room((node, index), WHOLE_GPU)
        return node, index

    def _hold(self, job: int, gpu: SharedGpu) -> Pieces:
        self._holds[job] = gpu
        self._set_room(gpu, self._room[gpu] - self._milli[job])
        return ((gpu[0], 1),)

    def _set_room(self, gpu: SharedGpu, room: int) -> None:
        """Change the room on a GPU; one that nobody holds any more is whole again."""
        pool = self._whole.pool_of(gpu[0])
        levels = self._with_room.setdefault(pool, [{} for _ in range(WHOLE_GPU)])
        before = self._room.get(gpu)
        self._with_some_room += (0 < room < WHOLE_GPU) - (0 < (before or 0) < WHOLE_GPU)
        if before is not None and before < WHOLE_GPU:
            del levels[before][gpu]
        if room == WHOLE_GPU and before is not None:
            del self._room[gpu]
            self._whole.give_back(((gpu[0], 1),))
            return
        self._room[gpu] = room
        if room < WHOLE_GPU:
            levels[room][gpu] = None
