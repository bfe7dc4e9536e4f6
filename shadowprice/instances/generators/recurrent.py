"""Recurrent jobs in the manner of Alibaba's PAI: users, groups of repeated runs, names, models.

Source: Weng et al., NSDI'22 (read): a group is a hash of entry script, command line and data; about
65 % of tasks recur at least 5 times; simple regressors on group, user and GPUs predict 78 % of
recurring instances to within 25 %. The laws below are ours, of that order: Pareto sizes of groups,
each active for a part of the time; iterations lognormal around the median of the group, with a
spread of the group's own; medians lognormal around their user's and kind's level.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import (
    check_count,
    check_jobs,
    check_number,
    poisson_arrivals,
    random_generator,
)
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.workload import Workload

NAME = "recurrent"
MODELS = ("resnet-50", "vgg-19", "bert-large", "gpt-2-medium", "t5-base", "resnet-18")
GANG_SHARES = {1: 0.40, 2: 0.20, 4: 0.20, 8: 0.15, 16: 0.05}
"""Shares of groups by gang size; ours, of the order of what the trace has."""

RECURRING = 5
"""A group recurs if it has at least this many jobs, as the paper counts."""

SIZE_TAIL = 1.1
"""Pareto index of the sizes of recurring groups: few groups have most of the jobs."""

LARGEST_PART = 0.02
"""Largest share of the recurring jobs that one group may have, where five jobs are not more."""

USER_SIGMA, KIND_SIGMA, GROUP_SIGMA = 1.0, 0.5, 0.8
"""Spreads of the logarithms of the levels of users and kinds, and of groups around them."""

SHORTEST_LIFE = 0.02
"""A group is active for a share of the time from this to 1, log-uniform."""


@dataclass(frozen=True)
class _Groups:
    """Groups as columns: jobs, user, kind, median of iterations, spread of their logarithm."""

    size: NDArray[np.int64]
    user: NDArray[np.int64]
    kind: NDArray[np.int64]
    median: NDArray[np.float64]
    spread: NDArray[np.float64]


def generate(
    *,
    jobs: int = 1000,
    seed: int = 0,
    load: float | None = None,
    gpus_total: int = 64,
    jobs_per_hour: float | None = None,
    users: int = 0,
    recurring_share: float = 0.65,
    median_iterations: float = 1800.0,
    spread_low: float = 0.02,
    spread_high: float = 0.5,
    longest_iterations: float = 1e6,
    kinds: Mapping[tuple[str, int], float] | None = None,
    gang_shares: Mapping[int, float] | None = None,
) -> Workload:
    """Jobs with work in whole iterations, tenants (users), groups, names and models; O(jobs log jobs).

    Without job graphs an iteration is a second of run time.

    Parameters
    ----------
    load : float, optional
        Share of the time of ``gpus_total`` GPUs that is asked for; 0.9 if no rate is given either.
    jobs_per_hour : float, optional
        Rate of arrivals instead of a load.
    users : int
        Number of users, a few of whom submit most groups; 0 for one per 50 jobs, at least 1.
    recurring_share : float
        Least share of jobs that belong to groups of at least 5 jobs; the others' groups have 1
        to 4. With fewer than 5 jobs no group can recur.
    median_iterations, longest_iterations : float
        Median over users and kinds, and largest number, of iterations.
    spread_low, spread_high : float
        Standard deviation of the logarithm of iterations in a group: log-uniform between these.
    kinds : mapping of (model, gang size) to float, optional
        Seconds per iteration of every kind of job there may be; load counts with them. By
        default six models with gangs of :data:`GANG_SHARES`, and one second.
    gang_shares : mapping of int to float, optional
        Shares of the groups by gang size, in any unit; the kinds of one gang size are equally
        frequent, and gangs wider than ``gpus_total``, or without a kind, are left out. By default all
        ``kinds`` that are given are equally frequent; without ``kinds``, :data:`GANG_SHARES`.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    jobs = check_jobs(jobs)
    users = check_count("users", users, least=0) or max(1, jobs // 50)
    low = check_number("spread_low", spread_low, 0.0, 10.0)
    high = check_number("spread_high", spread_high, 0.0, 10.0)
    most = check_number("longest_iterations", longest_iterations, 0.0, MAX_TIME_S)
    median = check_number("median_iterations", median_iterations, 0.0, MAX_TIME_S)
    if low > high or not 1.0 <= median <= most:
        raise InputError(
            "recurrent: expected spread_low <= spread_high and 1 <= median_iterations <= "
            f"longest_iterations, got {low:g}, {high:g} and {median:g}, {most:g}"
        )
    share = check_number("recurring_share", recurring_share, -1e-300, 1.0)
    rng = random_generator(seed, 4)
    table, shares = _kinds(kinds, gang_shares, check_count("gpus_total", gpus_total))
    groups = _groups(rng, _sizes(rng, jobs, share), users, shares, math.log(median), (low, high))
    of = _in_order(rng, groups.size)
    drawn = np.exp(rng.normal(np.log(groups.median[of]), groups.spread[of]))
    work = np.clip(np.round(drawn), 1.0, np.floor(most))
    kind = groups.kind[of]
    gpus = np.array([gang for _, gang, _ in table], dtype=np.int64)[kind]
    iteration_s = np.array([seconds for _, _, seconds in table])[kind]
    model = np.array([each for each, _, _ in table], dtype=object)[kind]
    tags = _tags(groups, table, seed)
    return Workload.from_columns(
        arrival_s=poisson_arrivals(
            rng,
            work * iteration_s * gpus,
            load=load,
            gpus_total=gpus_total,
            jobs_per_hour=jobs_per_hour,
        ),
        gpus=gpus,
        work=work,
        tenant=np.array([f"user{k}" for k in range(users)], dtype=object)[groups.user[of]],
        model=model,
        group=np.array([tag for tag, _ in tags], dtype=object)[of],
        name=np.array([name for _, name in tags], dtype=object)[of],
        source=f"recurrent, seed {seed}",
    )


def _kinds(
    kinds: Mapping[tuple[str, int], float] | None,
    gang_shares: Mapping[int, float] | None,
    gpus_total: int,
) -> tuple[list[tuple[str, int, float]], NDArray[np.float64]]:
    """Model, gang size and seconds per iteration of each kind of job, and its probability."""
    if kinds is None:
        wanted = GANG_SHARES if gang_shares is None else _checked_shares(gang_shares)
        table = [(model, gang, 1.0) for model in MODELS for gang in wanted if gang <= gpus_total]
        return table, _probabilities(table, wanted, gpus_total)
    if not kinds:
        raise InputError("recurrent: kinds is empty, expected one or more (model, gang size)")
    table = [
        (
            str(model),
            check_count(f"gang size of kind {model!r}", gang),
            check_number(f"seconds per iteration of kind {model!r}", seconds, 0.0, MAX_TIME_S),
        )
        for (model, gang), seconds in kinds.items()
    ]
    if gang_shares is None:
        return table, np.full(len(table), 1.0 / len(table))
    return table, _probabilities(table, _checked_shares(gang_shares), gpus_total)


def _checked_shares(gang_shares: Mapping[int, float]) -> dict[int, float]:
    return {
        check_count("gang size of gang_shares", gang): check_number(
            f"share of gangs of {gang}", share, -1e-300, 1e9
        )
        for gang, share in gang_shares.items()
    }


def _probabilities(
    table: list[tuple[str, int, float]], shares: Mapping[int, float], gpus_total: int
) -> NDArray[np.float64]:
    """Share of a kind's gang size, divided among the kinds of that size."""
    alike = Counter(gang for _, gang, _ in table)
    found = np.array(
        [shares.get(gang, 0.0) / alike[gang] if gang <= gpus_total else 0.0 for _, gang, _ in table]
    )
    if not found.sum() > 0:
        raise InputError(
            f"recurrent: gang_shares is {dict(shares)}, expected a share > 0 of a gang that a kind of job "
            f"has, of at most {gpus_total} GPUs"
        )
    probabilities: NDArray[np.float64] = found / found.sum()
    return probabilities


def _sizes(rng: np.random.Generator, jobs: int, recurring_share: float) -> NDArray[np.int64]:
    """Sizes of groups, shape (groups,), that add up to the jobs.

    Recurring groups: 5 x a Pareto number, until they have their share; a remainder below five
    joins the last of them. The others: 1 to 4 jobs, uniformly.
    """
    recurring = math.ceil(recurring_share * jobs) if jobs >= RECURRING else 0
    recurring = max(recurring, RECURRING) if recurring else 0
    largest = max(RECURRING, int(LARGEST_PART * recurring))
    pareto = RECURRING * (1.0 + rng.pareto(SIZE_TAIL, math.ceil(recurring / RECURRING)))
    many = _filled(np.minimum(pareto, largest).astype(np.int64), recurring)
    if len(many) > 1 and many[-1] < RECURRING:
        many = np.concatenate([many[:-2], [many[-2] + many[-1]]])
    few = _filled(rng.integers(1, RECURRING, jobs - recurring), jobs - recurring)
    return np.concatenate([many, few])


def _filled(sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """As many sizes from the front as add up to a total, the last cut to fit."""
    if total == 0:
        return np.zeros(0, dtype=np.int64)
    reached = np.cumsum(sizes)
    last = int(np.searchsorted(reached, total))
    filled = sizes[: last + 1].copy()
    filled[last] -= reached[last] - total
    return filled


def _groups(
    rng: np.random.Generator,
    size: NDArray[np.int64],
    users: int,
    kind_shares: NDArray[np.float64],
    log_median: float,
    spread: tuple[float, float],
) -> _Groups:
    """Users (in proportion to 1 / rank), kinds and laws of iterations of groups."""
    n, kinds = len(size), len(kind_shares)
    popularity = 1.0 / np.arange(1.0, users + 1.0)
    user = rng.choice(users, n, p=popularity / popularity.sum())
    kind = rng.choice(kinds, n, p=kind_shares)
    level = rng.normal(0.0, USER_SIGMA, users)[user] + rng.normal(0.0, KIND_SIGMA, kinds)[kind]
    median = np.exp(log_median + level + rng.normal(0.0, GROUP_SIGMA, n))
    spreads = np.exp(rng.uniform(math.log(spread[0]), math.log(spread[1]), n))
    return _Groups(size, user, kind, median, spreads)


def _in_order(rng: np.random.Generator, size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Group of each job in order of arrival: runs uniform in the part of the time a group lives."""
    life = np.exp(rng.uniform(math.log(SHORTEST_LIFE), 0.0, len(size)))
    birth = rng.uniform(0.0, 1.0 - life)
    of = np.repeat(np.arange(len(size)), size)
    return of[np.argsort(birth[of] + life[of] * rng.random(len(of)), kind="stable")]


def _tags(groups: _Groups, table: list[tuple[str, int, float]], seed: int) -> list[tuple[str, str]]:
    """Tag and job name of each group: a hash of its entry script and arguments, and a script's name.

    A user's groups of one model share a name: they run one script with different arguments.
    """
    tags = []
    pairs = zip(groups.user.tolist(), groups.kind.tolist(), strict=True)
    for k, (user, kind) in enumerate(pairs):
        model, gang, _ = table[kind]
        command = f"{seed}: user{user}/train_{model}.py --gpus {gang} --config {k}"
        tags.append((blake2b(command.encode(), digest_size=8).hexdigest(), f"train_{model}_{user}"))
    return tags
