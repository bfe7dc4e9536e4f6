"""Jobs that grow: widths in order of rank."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.instances.instance import Instance
from shadowprice.library.search.ranked.protocol import Ints, Ranked
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.resizing import available_gpus, resized


@dataclass(frozen=True, eq=False, repr=False)
class RankedWidths(Ranked):
    """Each in turn gets as many GPUs as it may hold, less its ``choice``, if its gang fits; then who is first grows."""

    @classmethod
    def choices(cls, instance: Instance) -> Ints:
        """Widths of each job."""
        assert instance.elasticity is not None
        return instance.elasticity.widest - instance.workload.gpus + 1

    def decide(self, state: State) -> Decision:
        """Give every live job its width."""
        room, wanted = available_gpus(state), dict[int, int]()
        order = self.in_order((*state.waiting, *state.running))
        for job in order:
            width = min(state.widest(job) - int(self.choice[job]), room)
            wanted[job] = width if width >= state.gang[job] else 0
            room -= wanted[job]
        for job in order:
            if room and wanted[job]:
                more = min(state.widest(job) - wanted[job], room)
                wanted[job] += more
                room -= more
        return resized(state, wanted)
