"""Allocation problems like those of Gavel's figures 12 and 14, for the benchmarks beside this file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gavel_front_end import templates
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import Pairs
from shadowprice.instances.speeds.throughputs import load_throughputs

Numbers = NDArray[np.float64]
TYPES = ("k80", "p100", "v100")
GANGS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Kinds:
    """Rates of job kinds: alone (kinds, types), together (kinds, kinds, types, 2), gangs (kinds,)."""

    alone: Numbers
    together: Numbers
    gpus: NDArray[np.int64]


def kinds(path: Path | None, gangs: tuple[int, ...]) -> Kinds:
    """All kinds of these gang sizes, of the table or generated."""
    if path is None:
        rng = np.random.default_rng(0)
        one = templates(rng)
        gpus = np.repeat(gangs, len(one))
        alone = np.concatenate([one * gang**0.85 for gang in gangs])
        both = rng.uniform(0.3, 0.95, (len(alone), len(alone), 3))
        both *= rng.uniform(size=both.shape) < 0.9
        together = np.stack(
            [alone[:, None] * both, alone[None, :] * both.transpose(1, 0, 2)], axis=-1
        )
        return Kinds(alone, together, gpus)
    table = load_throughputs(path)
    place = [table.gpu_types.index(name) for name in TYPES]
    names = [kind for kind in table.alone if kind[1] in gangs]
    alone = np.array([table.alone[kind] for kind in names])[:, place]
    together = np.zeros((len(names), len(names), len(TYPES), 2))
    for a, one_kind in enumerate(names):
        for b, other in enumerate(names):
            for k, name in enumerate(TYPES):
                together[a, b, k] = table.pair(name, one_kind, other) or (0.0, 0.0)
    return Kinds(alone, together, np.array([kind[1] for kind in names]))


def columns(
    known: Kinds,
    jobs: int,
    seed: int,
    *,
    distinct: bool,
    pairs: bool = False,
    weights: bool = False,
    late: bool = False,
) -> dict[str, Any]:
    """Columns of a problem: jobs of 100 to 10,000 minutes, under way.

    ``distinct`` adds noise to rates, ``weights`` makes a fifth of the jobs weigh 5, ``late`` has
    some so far behind that their own speed, not the cluster, limits finish-time fairness.
    """
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, len(known.alone), jobs)
    rates = known.alone[kind]
    noise = rng.uniform(0.9, 1.1, rates.shape) if distinct else np.ones_like(rates)
    elapsed = rng.uniform(0.0, 1e5 if late else 2e4, jobs)
    given: dict[str, Any] = {
        "gpu_types": TYPES,
        "capacity": np.full(3, float(jobs // 4)),
        "throughput": rates * noise,
        "gpus": known.gpus[kind],
        "steps": 60.0 * 10 ** rng.uniform(2, 4, jobs) * rates.max(axis=1),
        "elapsed_s": elapsed,
        "isolated_s": elapsed * rng.uniform(*((0.3, 1.0) if late else (1.1, 1.5)), jobs),
    }
    if weights:
        given["weight"] = np.where(rng.uniform(size=jobs) < 0.2, 5.0, 1.0)
    if pairs:
        first, second = np.triu_indices(jobs, 1)
        equal = known.gpus[kind[first]] == known.gpus[kind[second]]
        first, second = first[equal], second[equal]
        together = known.together[kind[first], kind[second]]
        given["pairs"] = Pairs(
            first, second, together[..., 0] * noise[first], together[..., 1] * noise[second]
        )
    return given
