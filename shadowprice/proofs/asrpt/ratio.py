r"""ASRPT-ratio: total completion time of A-SRPT with exact predictions.

Statement. Hypotheses and notation of ASRPT-conv and ASRPT-pred, exact predictions, no job held
back on purpose. With :math:`K = m / (m - \max_j g_j + 1)`, against every offline schedule in which
nobody shares GPUs, preemptive or not:

* virtual work from :math:`\alpha_{min}`: :math:`\sum_j C_j \le (1 + \rho + \rho K)\, \mathrm{OPT}`, less than
  :math:`(1 + 3 \rho)\, \mathrm{OPT}` if no gang exceeds :math:`m / 2`;
* virtual work from :math:`\alpha_{max}`: :math:`\sum_j C_j \le \rho (2 + K)\, \mathrm{OPT}`, which is never smaller.

For total *flow* time :math:`\sum_j (C_j - r_j)` A-SRPT has no constant ratio, on one GPU and with
:math:`\rho = 1`: on :func:`flow_family` its flow time is :math:`(n + 3) / 2` times the optimum's, with or
without preemption. No deterministic online algorithm without preemption has one, against the optimum
without preemption either (step 4).

Status. Ours; derived from the lemma of the paper that could be read (OPT grows by at most a factor :math:`\rho`
if every job runs as on its worst placement) and recalled structure. Step 4 is folklore.
Remarks. *Offline* the question
is one of computing: exhaustive search has the ratio 1 against the optimum without preemption, and no
polynomial-time algorithm one below the order of :math:`n^{1/2}` unless P = NP (Kellerer, Tautenhahn, Woeginger, STOC
1996; recalled).

Proof.

1. ASRPT-pred with q_j = p_j: Lambda = 1, kappa = rho. With q_j = P_j: Lambda <= rho, kappa = 1.
2. g_max <= m / 2 gives K <= m / (m / 2 + 1) < 2. And rho (2 + K) - (1 + rho + rho K) = rho - 1 >= 0.
3. Flow time. One GPU; a job of n seconds at 0 and unit jobs at n, n + 1, ..., 2n - 1. The virtual
   machine completes the long job at n, and the cluster runs it from n to 2n. Unit job k
   (from 0) runs from 2n + k to 2n + k + 1, its flow time is n + 1. In all
   2n + n (n + 1) = n (n + 3). Starting the long job at 0 and each unit job at once costs n + n, the
   least that any schedule could. Q.E.D.
4. Any deterministic algorithm A without preemption, one GPU. A job of length 1 comes at 0; A starts it at
   some t (for ever waiting costs without bound). At t + e come n jobs of length d = e / n. A has none of
   them before t + 1: their flow time is at least n (1 - e). If t >= 1, running the long job at 0 and
   the others at once costs at most 1 + n^2 d = 1 + n e; if t < 1, serving the others first costs at most
   n^2 d + t + e + n d + 1 <= 2 + (n + 2) e. With e = 1 / n the ratio is at least (n - 1) / 5.

Why the proof does not carry over to flow time: stretching a schedule in time stretches release
dates, and C_j <= c C_j^V says nothing about :math:`C_j - r_j` where r_j is large.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.proofs.asrpt import prediction as asrpt_prediction
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.asrpt.prediction import KNOWS as PREDICTION_KNOWS
from shadowprice.proofs.asrpt.prediction import holds, ratio_of_errors
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.proofs.hypotheses import Hypotheses, not_one_weight
from shadowprice.solvers.asrpt.asrpt import Asrpt

STATUS = "ours"
BASES = ("alpha_min", "alpha_max")

KNOWS = PREDICTION_KNOWS
HYPOTHESES = Hypotheses("ASRPT-ratio", KNOWS, (not_one_weight,))

EXACT = "oracle"
"""The predictor that is told the truth, and tells it."""


def bound(instance: Instance, *, basis: str = "alpha_min") -> Fraction:
    """The factor for an instance, with its own rho and K.

    Parameters
    ----------
    basis : {"alpha_min", "alpha_max"}
        Time of an iteration from which virtual work is computed.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails, or there is no such basis.
    """
    HYPOTHESES.expect(instance)
    if basis not in BASES:
        raise InputError(f"A-SRPT: basis is {basis!r}, expected one of {', '.join(BASES)}")
    gangs, exact = Gangs.of(instance), Fraction(1)
    return ratio_of_errors(gangs.rho, exact, exact, gangs.crowding, basis=basis)


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses that a run does not meet, in words: those of ASRPT-pred, and exact predictions."""
    failing = list(asrpt_prediction.missing_hypotheses(run))
    if isinstance(run.policy, Asrpt):
        if run.policy.predictor != EXACT:
            failing.append(f"predictions are by {run.policy.predictor}, expected exact ones")
        if run.policy.stretch > 1:
            failing.append("the virtual machine is stretched, which is a prediction too long")
    return tuple(failing)


def check(
    instance: Instance, total_completion_s: float | Fraction, *, basis: str = "alpha_min"
) -> bool:
    """True if a run's total completion time [s] is within the factor of OPT's lower bounds.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails, or there is no such basis.
    """
    factor = bound(instance, basis=basis)
    return holds(Gangs.of(instance), Fraction(total_completion_s) * TICKS_PER_S, factor)


def flow_family(n: int) -> Instance:
    """One GPU, a job of n seconds and then n unit jobs: optimal flow time 2n, A-SRPT's n (n + 3)."""
    arrivals = [0.0, *(float(n + k) for k in range(n))]
    jobs = Workload.from_columns(arrival_s=arrivals, gpus=1, work=[float(n)] + [1.0] * n)
    return Instance(Cluster.parse("1x1"), jobs)
