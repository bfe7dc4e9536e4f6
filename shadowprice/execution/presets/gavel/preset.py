"""Gavel's simulator as a preset: its policies by name, each in the peer's own loop."""

from __future__ import annotations

from collections.abc import Callable

from shadowprice.errors import InputError
from shadowprice.execution.presets.gavel.simulator import NAME, POLICIES, SOURCE, simulate_gavel
from shadowprice.execution.presets.preset import Preset
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.placement.count import Count


def _loop(name: str) -> Callable[[Instance, int], Schedule]:
    def schedule(instance: Instance, seed: int) -> Schedule:
        policy = POLICIES[name](seed)
        if policy.pairs:
            raise InputError(
                f"preset {NAME}: under {name!r} a pair waits for its slower half, which no verified "
                "schedule can express; simulate_gavel gives its completion times"
            )
        return simulate_gavel(instance, policy, seed=seed).schedule

    return schedule


PRESET = Preset(
    name="gavel",
    source=f"{SOURCE}, scheduler/scheduler.py",
    placements={"servers": Count()},
    recipes={},
    loops={name: _loop(name) for name in POLICIES},
)
