r"""LB-fluid: a cluster is no faster than one machine with all its GPUs.

Statement. :math:`m` GPUs, rigid gangs :math:`g_j`, processing times at least :math:`p_j`, release dates
:math:`r_j`; any schedule in which nobody shares GPUs, preemptive or not, any placement, any overheads. Then
:math:`\sum_j C_j` is at least the SRPT value of the one-machine instance with releases :math:`r_j` and work
:math:`v_j = g_j p_j / m`.

Status. Ours/folklore.

Remarks. With one GPU, and no charges or conditions, the bound is the preemptive optimum (SRPT-1); with charges no
schedule may attain it. Two jobs that share a GPU may both be done before it: three quarters of their
speed each are 1.5 GPUs' worth of work.

Proof.

1. Given a schedule on the cluster, let the machine process j at rate :math:`g_j / m` whenever the
   cluster runs j. At any moment running gangs hold at most m GPUs, none of them twice, so rates sum to
   at most 1.
2. j runs for at least p_j, so the machine gives it at least :math:`v_j` by its completion C_j on the
   cluster; it gives nothing before r_j.
3. A processor-sharing schedule of one machine is turned into one without sharing, no completion
   later, by serving within every small interval the jobs one after the other; in the limit, by
   serving at each moment the job that completes first among the available (McNaughton-style
   wrap-around between consecutive completions and releases).
4. The optimum without sharing is SRPT's (SRPT-1). Q.E.D.

Integer arithmetic. With time counted in 1/m of a tick, releases :math:`m r_j` and works
:math:`g_j p_j` are whole numbers, and so are all completions; the sum is divided by m, down.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.solvers.offline.bounds import fluid_ticks

STATUS = "ours/folklore"

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # each job as fast as on its fastest type; so with graphs, profiles and spreading
        Feature.CHARGES,  # only delay
        Feature.GRAPHS,
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,  # who holds more GPUs is faster by no more than in proportion
        Feature.FAILURES,  # what is lost is done again
        Feature.CORES,  # count as GPUs of a type
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # only restricts
    }
)


def bound(instance: Instance) -> Fraction:
    """Lower bound of total completion time [s], exact but for less than a tick.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "LB-fluid")
    jobs = instance.workload
    release, work = to_ticks(jobs.arrival_s).tolist(), to_ticks(instance.shortest_s).tolist()
    gpus, capacity = jobs.gpus.tolist(), instance.cluster.total_gpus
    return Fraction(fluid_ticks(release, work, gpus, capacity), TICKS_PER_S)


def check(instance: Instance, total_completion_s: float | Fraction) -> bool:
    """True if a schedule's total completion time [s] respects the bound."""
    return Fraction(total_completion_s) >= bound(instance)
