r"""Time of a whole job as one of its runs goes: a second evaluator, for the verifier alone.

The engine gets the speeds of runs from ``shadowprice/instances``. If the verifier got them there as
well, a fault in one of those functions would be in the schedule and in its proof. So it computes
them here, from plain data (columns of the workload, nodes of the cluster, tables of rates and
profiles, fields of job graphs), by code of its own. No function of ``instances`` is called.

Definitions. Times are whole ticks of :math:`2^{-20}` s; on GPUs of type r, by itself,

.. math:: P = \max(1, \lceil 2^{20} \, W / \mu_r \rceil)

for W units of work and a rate :math:`\mu_r`, the rate of the pair beside a partner; W alone where the
workload has no rates. A gang on several types goes at the pace of the slowest. Under conditions
:math:`\lceil P / (s \, l \, e) \rceil` with s the profile's speed, l that of a spread gang, e that of a
gang that grew. With job graphs P is :math:`\max(1, \lceil 2^{20} \, W \alpha \rceil)`, and the rate of a pair
one more of these speeds. :math:`\alpha` and e are
the doubles nearest to their exact values, all other operations those of IEEE 754.

A run that makes progress for t ticks does t / P of its job, which is added up exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.speeds.sensitivity import Sensitivity
    from shadowprice.instances.terms.widths import Elasticity

Ticks = NDArray[np.int64]
"""Whole ticks, 0 where the job cannot run."""

TICKS_PER_S = 2**20
_NO_TYPE = "gpu"
"""GPU type of nodes whose type was not given."""
_CORES = "cores"
"""GPU type of nodes that have cores of CPUs instead of GPUs, for jobs that ask for these."""
LONGEST_TICKS = 2**52
WHOLE_MILLI = 1000
"""Thousandths of a whole GPU."""
_REACHED = 1 + 1e-9
"""What CPUs and memory are multiplied with before they are compared with a profile's grid."""
_DIGITS = Context(prec=60)


def gpu_types(cluster: Cluster) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the cluster's GPU types in order of appearance, and the type of every node."""
    names = [node.gpu_type for node in cluster.nodes]
    row = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return list(row), np.array([row[name] for name in names], dtype=np.int64)


def alone_ticks(instance: Instance) -> Ticks:
    """Whole jobs on each GPU type, by themselves and at speed 1; shape (n, types).

    A job cannot run on a type with fewer GPUs than its gang, nor where its rate is 0. Without rates
    all GPUs are of one type.
    """
    jobs, nodes = instance.workload, instance.cluster.nodes
    names, gpu_type = gpu_types(instance.cluster)
    size = np.array([node.gpus for node in nodes], dtype=np.int64)
    if jobs.throughput is None:
        whole = np.repeat(_up(jobs.work)[:, None], len(names), axis=1)
        room = np.full(len(names), size.sum())
    else:
        rates = np.stack([jobs.throughput[:, jobs.gpu_types.index(name)] for name in names], axis=1)
        with np.errstate(divide="ignore", over="ignore"):
            whole = _up(jobs.work[:, None] / rates)
        room = np.array([size[gpu_type == k].sum() for k in range(len(names))])
    return np.where(jobs.gpus[:, None] <= room, whole, 0)


def allowed_types(instance: Instance) -> NDArray[np.bool_]:
    """True where a job is allowed to run on a GPU type, shape (n, types).

    On nodes without a type all are that ask for GPUs; on nodes of cores those alone that ask for cores.
    """
    names, _ = gpu_types(instance.cluster)
    given = instance.workload.allowed_types.tolist()
    able = {
        text: [
            name == text
            if _CORES in (name, text)
            else text == "" or name == _NO_TYPE or name in text.split("|")
            for name in names
        ]
        for text in set(given)
    }
    if len(able) == 1:
        return np.repeat(np.array(list(able.values()), dtype=np.bool_), len(given), axis=0)
    table = [able[text] for text in given]
    return np.array(table, dtype=np.bool_).reshape(len(given), len(names))


def sharing_ticks(
    instance: Instance,
    alone: Ticks,
    job: NDArray[np.int64],
    partner: NDArray[np.int64],
    gpu_type: NDArray[np.int64],
) -> Ticks:
    """Whole jobs beside partners on GPUs of a type, row by row, at their :func:`sharing_rates`."""
    rates = sharing_rates(instance, alone, job, partner, gpu_type)
    with np.errstate(divide="ignore", over="ignore"):
        return _up(instance.workload.work[job] / rates)


def sharing_rates(
    instance: Instance,
    alone: Ticks,
    job: NDArray[np.int64],
    partner: NDArray[np.int64],
    gpu_type: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Rates of jobs beside partners on GPUs of a type, row by row, 0 for who cannot share; with graphs 1 is alone.

    Two can share if they are different jobs of equal gang on whole GPUs, each can run there alone, and the
    table has a rate for both. The rate of the first kind beside the second is that of the entry (first,
    second), or else of the entry (second, first).
    """
    jobs = instance.workload
    pairs = {} if instance.sharing_rates is None else instance.sharing_rates.pairs
    names, _ = gpu_types(instance.cluster)
    kinds = list(zip(jobs.model.tolist(), jobs.gpus.tolist(), strict=True))

    def rate(name: str, one: tuple[str, int], other: tuple[str, int]) -> float:
        if (name, one, other) in pairs:
            return float(pairs[name, one, other][0])
        return float(pairs[name, other, one][1]) if (name, other, one) in pairs else 0.0

    rates: list[float] = []
    known: dict[tuple[int, tuple[str, int], tuple[str, int]], float] = {}
    for one, other, k in zip(job.tolist(), partner.tolist(), gpu_type.tolist(), strict=True):
        mine, theirs = kinds[one], kinds[other]
        key = (k, mine, theirs)
        if key not in known:
            both_can = rate(names[k], theirs, mine) > 0
            known[key] = rate(names[k], mine, theirs) if both_can else 0.0
        rates.append(known[key])
    able = (job != partner) & (jobs.gpus[job] == jobs.gpus[partner])
    able &= (alone[job, gpu_type] > 0) & (alone[partner, gpu_type] > 0)
    whole_gpus = (jobs.gpu_milli == WHOLE_MILLI) & (jobs.allowed_types != _CORES)
    able &= whole_gpus[job] & whole_gpus[partner]
    return np.where(able, np.array(rates, dtype=np.float64), 0.0)


def slower_ticks(whole: Ticks, speed: NDArray[np.float64]) -> Ticks:
    """Whole jobs under conditions in which they have these speeds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, _up(whole / speed / TICKS_PER_S), 0)


def profile_speed(
    sensitivity: Sensitivity,
    job: NDArray[np.int64],
    gpus: NDArray[np.float64],
    cpus: NDArray[np.float64],
    memory_gb: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Speed of every row by its CPUs and memory, 0 with less than the profile's least.

    That of the largest measured CPUs and memory which what is held for each GPU reaches.

    Parameters
    ----------
    gpus : ndarray, shape (R,)
        GPUs of every row; of one in parts the part.
    """
    speed = np.zeros(len(job))
    of = sensitivity.of[job]
    for number, profile in enumerate(sensitivity.profiles):
        mine = np.flatnonzero(of == number)
        reached = [
            (axis[None, :] <= (held[mine] / gpus[mine] * _REACHED)[:, None]).sum(axis=1) - 1
            for axis, held in (
                (profile.cpus_per_gpu, cpus),
                (profile.memory_gb_per_gpu, memory_gb),
            )
        ]
        enough = (reached[0] >= 0) & (reached[1] >= 0)
        speed[mine] = np.where(enough, profile.speed[reached[0], reached[1]], 0.0)
    return speed


def fewest_nodes(cluster: Cluster, width: NDArray[np.int64]) -> NDArray[np.int64]:
    """Fewest nodes that hold so many GPUs, at most all of the cluster's; nodes of cores hold none."""
    nodes = [node for node in cluster.nodes if node.gpu_type != _CORES]
    sizes = sorted((node.gpus for node in nodes), reverse=True)
    return np.searchsorted(np.cumsum(sizes), width, side="left") + 1


def width_speed(
    elasticity: Elasticity,
    job: NDArray[np.int64],
    gang: NDArray[np.int64],
    width: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Speed of gangs that hold so many GPUs: as measured, or every doubling multiplies it by 2 e."""
    measured = getattr(elasticity, "speeds", ())
    if measured:
        several = zip(job.tolist(), (width - gang).tolist(), strict=True)
        return np.array([measured[one][more] for one, more in several], dtype=np.float64)
    efficiency = elasticity.efficiency[job].tolist()
    rows = zip(efficiency, gang.tolist(), width.tolist(), strict=True)
    return np.array([_growth(*row) for row in rows], dtype=np.float64)


@lru_cache(maxsize=4096)
def _growth(efficiency: float, gang: int, width: int) -> float:
    # 2 ** (log2(w / g) * log2(2 e)), in sixty digits, then the nearest double.
    c = _DIGITS
    doublings = c.ln(c.divide(Decimal(width), Decimal(gang)))
    each = c.divide(c.ln(c.multiply(Decimal(2), Decimal(efficiency))), c.ln(Decimal(2)))
    return float(c.exp(c.multiply(doublings, each)))


def iterations_ticks(iterations: NDArray[np.float64], iteration_s: NDArray[np.float64]) -> Ticks:
    """Whole jobs of so many iterations of such a length."""
    return _up(iterations * iteration_s)


def done_and_over(ticks: Iterable[int], whole: Iterable[int], last: int) -> tuple[int, int]:
    """Ticks that a job's runs are short of its work, and ticks they go on after it, exactly.

    Parameters
    ----------
    ticks, whole : iterable of int
        Of every run, how long it made progress and how long the whole job would take so.
    last : int
        ``whole`` of the last run, at whose pace both results are; each is rounded up and down.

    Returns
    -------
    short, over : int
        Both 0 if the last tick of the last run is the one that completes the work.
    """
    by_pace: dict[int, int] = {}
    for ran, pace in zip(ticks, whole, strict=True):
        by_pace[pace] = by_pace.get(pace, 0) + ran
    done, unit = 0, 1
    for pace, ran in by_pace.items():
        done, unit = done * pace + ran * unit, unit * pace
    missing = (unit - done) * last
    return (-(-missing // unit), 0) if missing > 0 else (0, -missing // unit)


def amiss(done: int, pace: int, short: int, over: int) -> str:
    """Error message on missing or excess work, from ticks."""
    ran_s, whole_s = (ticks / TICKS_PER_S for ticks in (done, pace))
    text = f"runs for {ran_s!r} s of progress; as in its last run its work takes {whole_s!r} s: "
    return text + (f"{short} ticks are missing" if short else f"{over} ticks too many")


def _up(times_s: NDArray[np.float64]) -> Ticks:
    """Times [s] rounded up to ticks, at least one; 0 where they are longer than times go."""
    ticks = np.ceil(np.asarray(times_s, dtype=np.float64) * TICKS_PER_S)
    fine = ticks <= LONGEST_TICKS
    return np.where(fine, np.maximum(np.where(fine, ticks, 1.0), 1.0), 0.0).astype(np.int64)
