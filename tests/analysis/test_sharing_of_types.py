"""Jobs that share GPUs of several types: no bound, factor or limit is beaten by a schedule of its class."""

from __future__ import annotations

import json
import lzma
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import shadowprice as sp
from shadowprice.analysis.bounds import bounds_of, certified_bounds, strongest_bound
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certify import certify
from shadowprice.analysis.limits import Measure, limit
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.proofs.lower_bounds import fluid as lb_fluid
from shadowprice.proofs.lower_bounds import job as lb_job
from shadowprice.proofs.lower_bounds import mbt as lb_mbt
from support.paths import SHARED
from support.sharing_by_type import (
    PlainJobs,
    Row,
    drawn_jobs,
    filling_jobs,
    good_schedules,
    largest_gain,
    published_jobs,
)

Draw = Callable[[int], PlainJobs]

GAVEL = SHARED / "data" / "gavel" / "simulation_throughputs.json.xz"


def instance_of(jobs: PlainJobs) -> sp.Instance:
    """The same of the package's making."""
    return sp.Instance(cluster_of(jobs), workload_of(jobs), sharing_rates=table_of(jobs))


def cluster_of(jobs: PlainJobs) -> sp.Cluster:
    nodes = zip(jobs.types, jobs.node_gpus, strict=True)
    return sp.Cluster.parse(",".join(f"1x{gpus}:{name}" for name, gpus in nodes))


def workload_of(jobs: PlainJobs) -> sp.Workload:
    return sp.Workload.from_columns(
        arrival_s=jobs.arrival_s,
        gpus=[gang for _, gang in jobs.kind],
        work=jobs.work,
        weight=jobs.weight,
        model=[model for model, _ in jobs.kind],
        throughput=jobs.alone,
        gpu_types=jobs.types,
    )


def table_of(jobs: PlainJobs) -> Throughputs:
    return Throughputs(jobs.types, {}, jobs.pairs, "drawn")


def verified(instance: sp.Instance, rows: list[Row]) -> Outcome:
    """The outcome of plain rows, if the verifier accepts them."""
    job, node, gpus, start, end, partner = (list(column) for column in zip(*rows, strict=True))
    frame = pd.DataFrame(
        {
            "job": job,
            "node": node,
            "gpus": gpus,
            "start_s": np.array(start) / TICKS_PER_S,
            "end_s": np.array(end) / TICKS_PER_S,
            "overhead_s": 0.0,
            "partner": partner,
        }
    )
    return Outcome.verified(instance, sp.Schedule.from_frame(frame), policy="built")


def cost_ticks(jobs: PlainJobs, rows: list[Row], goal: sp.Objective) -> Fraction:
    """Cost of plain rows, from their definition."""
    ends = Counter[int]()
    for job, *_, end, _ in rows:
        ends[job] = max(ends[job], end)
    arrival = [Fraction(each) * TICKS_PER_S for each in jobs.arrival_s]
    if goal is sp.Objective.MAKESPAN:
        return max(ends.values()) - min(arrival)
    from_s = [Fraction(0)] * len(arrival) if goal is sp.Objective.COMPLETION else arrival
    return sum(
        (Fraction(w) * (ends[j] - from_s[j]) for j, w in enumerate(jobs.weight)), Fraction(0)
    )


def best_costs(
    jobs: PlainJobs, seed: int, count: int, *, shares: bool = True
) -> dict[sp.Objective, Fraction]:
    """Least cost of verified schedules, of each objective."""
    instance = instance_of(jobs)
    schedules = list(good_schedules(jobs, seed, count, shares=shares))
    least = {}
    for goal in sp.Objective:
        rows = min(schedules, key=lambda each: cost_ticks(jobs, each, goal))
        verified(instance, rows)
        least[goal] = cost_ticks(jobs, rows, goal)
    return least


def four_jobs(types: tuple[str, str] = ("v100", "k80")) -> PlainJobs:
    """Four jobs, ten times as fast beside each other on one type, and nearly stopped on the other, the table's last."""
    kind = ("a", 1)
    pairs = {("v100", kind, kind): (10.0, 10.0), ("k80", kind, kind): (0.01, 0.01)}
    gpus = {"v100": 2, "k80": 1}
    return PlainJobs(
        types,
        tuple(gpus[name] for name in types),
        (kind,) * 4,
        (0.0,) * 4,
        (100.0,) * 4,
        (1.0,) * 4,
        ((1.0, 1.0),) * 4,
        pairs,
    )


def test_a_schedule_of_pairs_is_not_better_than_the_printed_factor() -> None:
    """Two pairs are through after 10 s, a twentieth of what FIFO takes."""
    jobs = four_jobs()
    assert best_costs(jobs, 0, 0)[sp.Objective.MAKESPAN] == 10 * TICKS_PER_S
    options = sp.RunOptions(sharing_rates=table_of(jobs))
    found = sp.compare(
        workload_of(jobs), cluster_of(jobs), ["fifo"], "makespan", options, budget_s=0.2
    )
    (row,) = found.rows
    assert (row.cost, row.bound) == (200.0, pytest.approx(10.0, rel=1e-5))
    assert row.bound <= 10
    assert row.factor >= 20
    assert row.holds_for == ScheduleClass(preemptive=False, sharing=True)


@pytest.mark.parametrize("types", [("v100", "k80"), ("k80", "v100")])
def test_a_limit_is_no_less_than_what_a_schedule_of_pairs_gains(types: tuple[str, str]) -> None:
    """Who runs jobs one after the other on one GPU is beaten fortyfold."""
    jobs = four_jobs(types)
    instance, slow = instance_of(jobs), types.index("k80")
    rows = [(j, slow, 1, 100 * j * TICKS_PER_S, 100 * (j + 1) * TICKS_PER_S, -1) for j in range(4)]
    outcome, least = verified(instance, rows), best_costs(jobs, 0, 0)
    assert limit(outcome, Measure.MAKESPAN).factor >= 40
    assert limit(outcome, Measure.MAKESPAN).factor == pytest.approx(40, rel=1e-5)
    assert limit(outcome, Measure.TTD).factor >= 40
    flow = cost_ticks(jobs, rows, sp.Objective.FLOW) / least[sp.Objective.FLOW]
    assert limit(outcome, Measure.MEAN_JCT).factor >= flow


@pytest.mark.parametrize("seed", range(120))
def test_the_gain_is_the_largest_of_any_pair_on_any_type(seed: int) -> None:
    """Not below it for any jobs, and the same where jobs of a kind have the same rates and fit on all types."""
    jobs = drawn_jobs(seed)
    instance = instance_of(jobs)
    gain, by_type = SharingGain.of(instance), SharingGain.by_type(instance)
    if gain is None or by_type is None:
        assert gain is by_type is None
        assert not list(jobs.ways(jobs.all_types))
        return
    fits = max(gang for _, gang in jobs.kind) <= min(jobs.node_gpus)
    alike = fits and len(set(zip(jobs.kind, jobs.alone, strict=True))) == len(set(jobs.kind))
    column = [instance.cluster.gpu_types.index(name) for name in jobs.types]
    found = [(gain, jobs.all_types), *((by_type[c], [t]) for t, c in enumerate(column))]
    for mine, types in found:
        largest = largest_gain(jobs, types)
        assert mine.kappa >= largest
        assert not alike or mine.kappa == largest
        # Work that a pair does in a tick, in services: what capacity is about.
        needed = [Fraction(p) for p in mine.service]
        work = [Fraction(w) * TICKS_PER_S for w in jobs.work]
        for one, other, a, b in jobs.ways(types):
            each = Fraction(a) * needed[one] / work[one], Fraction(b) * needed[other] / work[other]
            assert max(each) <= 1
            assert sum(each) <= mine.kappa


def test_theorems_know_that_jobs_share_or_say_that_they_do_not() -> None:
    """Beside each other four jobs end after 10 s each; alone they would take 100 s."""
    jobs = four_jobs()
    instance, least = instance_of(jobs), best_costs(jobs, 0, 0)[sp.Objective.COMPLETION]
    assert least == 40 * TICKS_PER_S
    assert lb_job.bound(instance) == 40
    assert lb_job.check(instance, 40)
    for theorem in (lb_fluid, lb_mbt):
        with pytest.raises(InputError, match="rates of jobs that share GPUs, not known to"):
            theorem.check(instance, 40)


def test_jobs_of_a_kind_count_by_the_slowest_of_them() -> None:
    """Of one kind, at 2 and at 1 alone and at 1 beside each other: together 1.5, for two of the slower ones 2."""
    kind = ("a", 1)
    jobs = PlainJobs(
        ("v100",),
        (1,),
        (kind,) * 3,
        (0.0,) * 3,
        (4.0,) * 3,
        (1.0,) * 3,
        ((2.0,), (1.0,), (1.0,)),
        {("v100", kind, kind): (1.0, 1.0)},
    )
    gain = SharingGain.of(instance_of(jobs))
    assert gain is not None
    assert gain.kappa == largest_gain(jobs) == 2
    # One after the other 8 s; the slower two together and then the fast one 6 s.
    assert best_costs(jobs, 0, 6)[sp.Objective.MAKESPAN] == 6 * TICKS_PER_S
    for bound in bounds_of(instance_of(jobs), "makespan", BoundEffort(0)):
        assert bound.ticks <= 6 * TICKS_PER_S, bound.kind


def _nothing_beats(jobs: PlainJobs, seed: int, budget_s: float) -> None:
    instance, least = instance_of(jobs), best_costs(jobs, seed, 8)
    for goal in sp.Objective:
        every = list(bounds_of(instance, goal, BoundEffort(budget_s)))
        every.append(strongest_bound(instance, objective=goal, preemptive=False, budget_s=budget_s))
        every.append(certified_bounds(instance, (goal,), BoundEffort.of_size(200))[goal])
        for bound in every:
            assert bound.ticks <= least[goal], (seed, str(goal), bound.kind)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("drawn", [drawn_jobs, filling_jobs])
def test_no_bound_is_above_a_good_schedule(drawn: Draw, seed: int) -> None:
    _nothing_beats(drawn(seed), seed, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 60))
@pytest.mark.parametrize("drawn", [drawn_jobs, filling_jobs])
def test_no_bound_is_above_a_good_schedule_of_many(drawn: Draw, seed: int) -> None:
    _nothing_beats(drawn(seed), seed, 0.3)


@pytest.mark.parametrize("seed", range(8))
def test_compare_and_certify_are_both_below_a_good_schedule(seed: int) -> None:
    """Of one run, each in the class that it names: neither factor is refuted by a schedule of that class."""
    jobs = filling_jobs(seed)
    goal = random.Random(seed).choice(list(sp.Objective))
    options = sp.RunOptions(sharing_rates=table_of(jobs))
    found = sp.compare(
        workload_of(jobs), cluster_of(jobs), ["gandiva"], goal, options, budget_s=0.1
    )
    (row,) = found.rows
    assert row.proven_by.ticks <= best_costs(jobs, seed, 8)[goal]
    certificate = certify(found.outcomes["gandiva"], goal, budget_s=0.1)
    # A run in which nobody shares is held against schedules in which nobody does.
    shares = "no two jobs share a GPU" not in certificate.of_class
    assert row.cost_ticks <= certificate.factor * best_costs(jobs, seed, 8, shares=shares)[goal]


@pytest.mark.skipif(
    not GAVEL.exists(), reason="Gavel's throughput table is not beside the checkout"
)
@pytest.mark.parametrize(
    ("count", "seed", "kappa"), [(5, 0, 1.43), (20, 0, 1.81), (20, 1, 1.90), (60, 0, 2.00)]
)
def test_gains_of_published_rates(count: int, seed: int, kappa: float) -> None:
    """Mixes of jobs of one GPU on all six types; the rates of the last one alone say 1.0 to 1.5."""
    data = json.loads(lzma.decompress(GAVEL.read_bytes()))
    names = [name for name in data["v100"] if name.endswith(", 1)")]
    jobs = published_jobs(data, random.Random(seed).choices(names, k=count))
    gain = SharingGain.of(instance_of(jobs))
    assert gain is not None
    assert gain.kappa == largest_gain(jobs)
    assert float(gain.kappa) == pytest.approx(kappa, abs=0.005)
