"""Tiresias' testbed workload with the published run times of short jobs.

Source: Gu et al., NSDI'19, section 6.1 (gangs, models, bins, arrivals; see ``tiresias``) and Figure 10a:
under Tiresias-L a short job hardly waits (median queueing delay 13 s, Table 4), so that the curve of its JCTs
up to 799 s, where 72 % of them lie, is that of the short run times. Points were digitised.

The run times of long jobs, 800 s to 2 hours, are not published. Here their density is t^-p (derived), with
p = 3 for gangs of at most 4 GPUs and p = 1 for larger ones, chosen so that the published makespans come out:
33,270 s under YARN-CS within 3 %, 27,400 s under Tiresias-L within 16 %.

Of 480 jobs 12.5 and 7.5 % are long with small and with large gangs, 60 and 36; all others are short, since
the published shares of short ones do not fit the published gangs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.generators.arrivals import check_number, random_generator
from shadowprice.instances.generators.quantiles import QuantileLaw
from shadowprice.instances.generators.tiresias import GANGS, LONG_S, MODELS, SHORT_S, check_480
from shadowprice.instances.workload import Workload

NAME = "tiresias-published"

LONG_SMALL, LONG_LARGE = 60, 36
"""Long jobs with gangs of at most 4 GPUs, and of more."""

SHORT_RUN_TIMES_S = QuantileLaw(
    tuple(k / 18 for k in range(19)),
    (78, 152, 161, 174, 178, 190, 206, 207, 218, 234, 249, 273, 283, 318, 339, 385, 426, 528, 657),
)
"""Figure 10a, Tiresias-L, from share 0 to 0.72 of all jobs [s]; digitised."""


def generate(
    *,
    jobs: int = 480,
    seed: int = 0,
    mean_gap_s: float = 30.0,
    small_exponent: float = 3.0,
    large_exponent: float = 1.0,
) -> Workload:
    """The mix in a random order, with whole seconds; the number of jobs is fixed at 480.

    Parameters
    ----------
    mean_gap_s : float
        Mean time between two arrivals [s].
    small_exponent, large_exponent : float
        Exponents p of the density t^-p of long run times, for gangs of at most 4 GPUs and of more.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    check_480(NAME, jobs)
    mean_gap_s = check_number("mean_gap_s", mean_gap_s, -1e-300, 1e6)
    rng = random_generator(seed, 77)
    gpus = np.repeat(list(GANGS), list(GANGS.values()))
    long = np.zeros((2, jobs), dtype=bool)
    for row, (members, count) in enumerate(((gpus <= 4, LONG_SMALL), (gpus > 4, LONG_LARGE))):
        long[row, rng.permutation(np.flatnonzero(members))[:count]] = True
    short = ~long.any(axis=0)
    work = np.empty(jobs)
    work[short] = np.clip(SHORT_RUN_TIMES_S.quantile(rng.random(short.sum())), *SHORT_S)
    for rows, name, exponent in zip(
        long, ("small_exponent", "large_exponent"), (small_exponent, large_exponent), strict=True
    ):
        work[rows] = power_law(
            rng.random(rows.sum()), *LONG_S, check_number(name, exponent, -1e-300, 20)
        )
    order = rng.permutation(jobs)
    gaps_s = rng.exponential(mean_gap_s, jobs - 1) if mean_gap_s else np.zeros(jobs - 1)
    return Workload.from_columns(
        arrival_s=np.round(np.concatenate(([0.0], np.cumsum(gaps_s)))),
        gpus=gpus[order],
        work=np.round(work[order]),
        model=rng.permutation(np.repeat(np.array(MODELS, dtype=object), jobs // len(MODELS))),
        source=f"tiresias mix with published run times, seed {seed}",
    )


def power_law(
    share: NDArray[np.float64], low: float, high: float, exponent: float
) -> NDArray[np.float64]:
    """Values up to which given shares of the density t^-p on [low, high] lie."""
    # In logarithms, and by expm1 and log1p, so that nothing cancels near the exponent 1.
    width = np.log(high / low)
    power = (1.0 - exponent) * width
    if power == 0.0:
        return np.asarray(low * np.exp(width * share))
    return np.asarray(low * np.exp(width * np.log1p(share * np.expm1(power)) / power))
