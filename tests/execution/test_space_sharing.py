"""Two jobs on the same GPUs: every schedule obeys, no work is lost, and corruption is refused."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.plots.style import time_unit
from shadowprice.analysis.run_directory.directory import INSTANCE, load, save
from shadowprice.errors import InputError, PolicyError, ShadowpriceError
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.grid import TICK_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.solvers.placement.consolidated import Pack
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Decision, Knowledge, State
from support.states import Stops, state_of

COSTLY = Overheads(start_s=1.0, restart_s=5.0, migration_s=2.0)
MODELS = ("a", "b")
TYPES = ("v100", "k80")


@dataclass(frozen=True)
class Chance:
    """Starts, joins, stops, restarts and takes back at random; everybody finishes in the end."""

    seed: int
    stops: int = 12
    sharing: float = 0.7
    name: str = "chance"
    knows: frozenset[Knowledge] = field(default=frozenset({Knowledge.DURATION}))
    preemptive: bool = True

    def decide(self, state: State) -> Decision:
        draw = state.notes(random.Random, lambda: random.Random(self.seed))
        stops = state.notes(Stops, lambda: Stops(self.stops))
        check_state(state)
        decision = Decision(state)
        stopped = []
        for job in list(state.running):
            if stops.left and draw.random() < 0.3:
                stops.left -= 1
                decision.stop(job)
                stopped.append(job)
        for job in list(stopped):
            if draw.random() < 0.3 and decision.resume_in_place(job):
                stopped.remove(job)
        jobs = [*state.waiting, *stopped]
        draw.shuffle(jobs)
        for job in jobs:
            self._place(state, decision, job, draw)
        if stops.left and (state.running or decision.starts):
            decision.wake_at(state.now_s + draw.choice((0.25, 3.0)))
        return decision

    def _place(self, state: State, decision: Decision, job: int, draw: random.Random) -> None:
        started = list(decision.starts)
        holding = {*state.running, *started} - (set(decision.stops) - set(started))
        partners = sorted(holding)
        draw.shuffle(partners)
        if draw.random() < self.sharing and any(decision.join(job, p) for p in partners):
            return
        if draw.random() < 0.5:
            decision.start(job)
        else:
            any(decision.start_on(job, pool) for pool in reversed(state.pools[job]))


def check_state(state: State) -> None:
    """What the state says of partners and free GPUs agrees with who runs."""
    for job, partner in state.partner_of.items():
        assert state.partner_of[partner] == job
        assert sorted(state.running[job]) == sorted(state.running[partner])
    held = sum(state.gang[job] for job in state.running)
    both = sum(state.gang[job] for job in state.partner_of) // 2
    assert state.allocator.free_gpus == state.total_gpus - held + both
    live = state.live()
    assert np.all(live.remaining_s > -1e-9)
    assert np.all(live.remaining_s <= live.processing_s)


def table(rates: dict[tuple[str, str], tuple[float, float]], types: tuple[str, ...]) -> Throughputs:
    """The same rates on every type and for every gang size."""
    together = {
        (kind, (one, gpus), (other, gpus)): pair
        for kind, gpus in product(types, range(1, 13))
        for (one, other), pair in rates.items()
    }
    return Throughputs(types, {}, together)


@st.composite
def sharing_instances(
    draw: st.DrawFn,
    *,
    typed: bool | None = None,
    parts: tuple[float, ...] = (0.25, 1 / 3, 0.5, 0.9, 1.0),
    always: bool = False,
) -> Instance:
    """Jobs of two models on a small cluster; pairs of some or all models can share.

    Parameters
    ----------
    parts : tuple of float
        What may be left of a job's rate beside a partner.
    """
    mixed = draw(st.booleans()) if typed is None else typed
    sizes = draw(st.lists(st.integers(1, 4), min_size=1 + mixed, max_size=3))
    kinds = [TYPES[k % 2] if mixed else "gpu" for k in range(len(sizes))]
    cluster = Cluster(tuple(Node(g, kind) for g, kind in zip(sizes, kinds, strict=True)))
    n = draw(st.integers(1, 7))
    lists = {"min_size": n, "max_size": n}
    speed = np.array([[3.0, 1.0], [2.0, 0.7]])
    models = draw(st.lists(st.integers(0, 1), **lists))
    workload = Workload.from_columns(
        arrival_s=draw(st.lists(st.integers(0, 20), **lists)),
        gpus=draw(st.lists(st.integers(1, int(cluster.gpus_per_type.max())), **lists)),
        work=draw(st.lists(st.integers(1, 40), **lists)),
        model=[MODELS[k] for k in models],
        throughput=speed[models] if mixed else None,
        gpu_types=TYPES if mixed else (),
    )
    part = st.sampled_from(parts)
    together = {}
    for kind, one, other in product(cluster.gpu_types, (0, 1), (0, 1)):
        if one <= other and (always or draw(st.integers(0, 4))):
            column = TYPES.index(kind) if mixed else 0
            alone = (speed[one, column], speed[other, column]) if mixed else (1.0, 1.0)
            left = draw(part), draw(part)
            pair = (float(alone[0] * left[0]), float(alone[1] * left[one != other]))
            for gpus in range(1, 13):
                together[kind, (MODELS[one], gpus), (MODELS[other], gpus)] = pair
    costs = draw(st.sampled_from([Overheads(), COSTLY]))
    return Instance(cluster, workload, costs, Throughputs(TYPES, {}, together))


seeds = st.integers(0, 10**6)
placements = st.sampled_from([Count(), Pack()])
lengths = st.sampled_from([0.0, 7.0])


@given(instance=sharing_instances(), seed=seeds, placement=placements, length_s=lengths)
def test_every_schedule_obeys_and_every_job_ends(
    instance: Instance, seed: int, placement: Count | Pack, length_s: float
) -> None:
    made = run(instance, Chance(seed), placement=placement, rounds=Rounds(length_s))
    verify(instance, made.schedule)
    assert set(made.schedule.job.tolist()) == set(range(len(instance.workload)))
    for times in (made.schedule.start_s, made.schedule.end_s, made.schedule.overhead_s):
        assert np.all(times / TICK_S == np.round(times / TICK_S))


@given(instance=sharing_instances(), seed=seeds)
def test_work_is_conserved(instance: Instance, seed: int) -> None:
    """Iterations, added run by run at the rates of the tables themselves."""
    schedule = run(instance, Chance(seed)).schedule
    jobs, together = instance.workload, instance.sharing_rates
    assert together is not None
    speed = np.ones((len(jobs), 1)) if jobs.throughput is None else jobs.throughput
    done, fastest = np.zeros(len(jobs)), np.ones(len(jobs))
    for row in schedule.runs.tolist():
        job, partner = int(schedule.job[row]), int(schedule.partner[row])
        whole = (schedule.job == job) & (schedule.start_s == schedule.start_s[row])
        rates = []
        for node in schedule.node[whole].tolist():
            kind = instance.cluster.nodes[node].gpu_type
            alone = speed[job, TYPES.index(kind) if jobs.throughput is not None else 0]
            gpus = int(jobs.gpus[job])
            one, other = (jobs.model[job], gpus), (jobs.model[max(partner, 0)], gpus)
            mine = together.pair(kind, one, other)
            theirs = together.pair(kind, other, one)
            shared = mine[0] if mine else theirs[1] if theirs else None
            rates.append(alone if partner < 0 else shared)
        length = schedule.end_s[row] - schedule.start_s[row] - schedule.overhead_s[row]
        done[job] += min(rates) * length
        fastest[job] = max(fastest[job], speed[job].max())
    runs = np.bincount(schedule.job[schedule.runs], minlength=len(jobs))
    assert np.all(np.abs(done - jobs.work) <= 2 * TICK_S * fastest * (runs + 1) + 1e-9 * jobs.work)


@dataclass(frozen=True)
class Pairs:
    """Starts each waiting job beside the first running one that takes it, else alone; no stops."""

    share: bool = True
    name: str = "pairs"
    knows: frozenset[Knowledge] = frozenset()
    preemptive: bool = False

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        for job in state.waiting:
            others = [*state.running, *decision.starts]
            if not (self.share and any(decision.join(job, other) for other in others)):
                decision.start(job)
        return decision


@given(instance=sharing_instances(always=True, parts=(1.0,), typed=False))
def test_partners_at_full_rate_end_as_if_alone(instance: Instance) -> None:
    """With pair rates equal to the rates alone, sharing is a second cluster for free."""
    shared = run(instance, Pairs()).schedule
    verify(instance, shared)
    for job in range(len(instance.workload)):
        mine = shared.job == job
        start = shared.start_s[mine].min()
        owed = instance.overheads.start_s
        assert shared.end_s[mine].max() == start + owed + instance.workload.work[job]


@given(instance=sharing_instances(), seed=seeds)
def test_without_sharing_a_table_of_pairs_changes_nothing(instance: Instance, seed: int) -> None:
    without = Instance(instance.cluster, instance.workload, instance.overheads)
    policy = Chance(seed, sharing=0.0)
    assert (
        run(instance, policy).schedule.to_frame().equals(run(without, policy).schedule.to_frame())
    )


@given(instance=sharing_instances(), data=st.data())
def test_shared_times_are_those_of_the_table(instance: Instance, data: st.DataObject) -> None:
    jobs = instance.workload
    one, other = (data.draw(st.integers(0, len(jobs) - 1)) for _ in range(2))
    kind = data.draw(st.integers(0, len(instance.cluster.gpu_types) - 1))
    table, name = instance.sharing_rates, instance.cluster.gpu_types[kind]
    assert table is not None
    kinds = [(str(jobs.model[job]), int(jobs.gpus[job])) for job in (one, other)]
    pair = table.pair(name, kinds[0], kinds[1])
    if pair is None and (swapped := table.pair(name, kinds[1], kinds[0])):
        pair = swapped[1], swapped[0]
    found = instance.shared_runs.run_s(one, other, kind)
    assert instance.shared_runs.one_run_s(one, other, kind) == found
    able = one != other and jobs.gpus[one] == jobs.gpus[other] and pair is not None
    able = able and np.isfinite(instance.processing_s[[one, other], kind]).all()
    if able and pair is not None:
        assert found == pytest.approx(jobs.work[one] / pair[0], rel=0, abs=TICK_S)
        assert float(found / TICK_S).is_integer()
    else:
        assert found == np.inf


def test_who_cannot_share_never_ends() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0] * 5,
        gpus=[1, 1, 2, 1, 1],
        work=[8.0] * 5,
        model=["a", "b", "b", "c", "d"],
        throughput=[[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
        gpu_types=TYPES,
    )
    pairs = {
        (kind, ("a", 1), other): (0.5, 0.0 if other == ("c", 1) else 0.25)
        for kind in TYPES
        for other in (("b", 1), ("b", 2), ("c", 1))
    }
    instance = Instance(
        Cluster.parse("1x2:v100,1x2:k80"), jobs, sharing_rates=Throughputs(TYPES, {}, pairs)
    )
    v100, k80 = (instance.cluster.gpu_types.index(name) for name in TYPES)
    beside = np.array([[instance.shared_runs.run_s(0, j, k) for j in range(5)] for k in range(2)])
    never = np.inf
    # Itself; b; a larger gang; one that makes no progress; one that was not measured.
    assert beside[v100].tolist() == [never, 16.0, never, never, never]
    assert beside[k80].tolist() == [never] * 5  # b cannot run there alone
    assert instance.shared_runs.run_s(1, 0, v100) == 32.0


# One GPU; x takes 12 s and y 3 s alone. Side by side, x makes half the progress and y a quarter.


def two_jobs(overheads: Overheads | None = None, arrival_s: float = 4.0) -> Instance:
    jobs = Workload.from_columns(
        id=["x", "y"], arrival_s=[0.0, arrival_s], gpus=[1, 1], work=[12.0, 3.0], model=["a", "b"]
    )
    rates = table({("a", "b"): (0.5, 0.25)}, ("gpu",))
    return Instance(Cluster.parse("1x1"), jobs, overheads or Overheads(), rates)


def rows_of(schedule: Schedule) -> list[tuple[float, ...]]:
    frame = schedule.to_frame().sort_values(["job", "start_s"])
    columns = ["job", "start_s", "end_s", "overhead_s", "partner"]
    return list(frame[columns].itertuples(index=False, name=None))


def test_two_jobs_share_and_one_goes_on_alone() -> None:
    # x alone until 4 s (8 s left), then at 1/2; y does 3 s at 1/4 in 12 s and ends at 16 s. x has
    # 8 - 12/2 = 2 s left and ends at 18 s.
    schedule = run(two_jobs(), Pairs()).schedule
    assert rows_of(schedule) == [
        (0, 0.0, 4.0, 0.0, -1),
        (0, 4.0, 16.0, 0.0, 1),
        (0, 16.0, 18.0, 0.0, -1),
        (1, 4.0, 16.0, 0.0, 0),
    ]
    assert schedule.continues[schedule.runs].tolist() == [False, True, True, False]
    verify(two_jobs(), schedule)


def test_who_stays_pays_nothing() -> None:
    # x pays its start until 1 s, has 9 s left at 4 s; y pays 1 s, makes 3 s at 1/4 in 12 s until
    # 17 s; x did 13/2 = 6.5 s beside it, has 2.5 s left and ends at 19.5 s.
    schedule = run(two_jobs(COSTLY), Pairs()).schedule
    assert rows_of(schedule) == [
        (0, 0.0, 4.0, 1.0, -1),
        (0, 4.0, 17.0, 0.0, 1),
        (0, 17.0, 19.5, 0.0, -1),
        (1, 4.0, 17.0, 1.0, 0),
    ]
    verify(two_jobs(COSTLY), schedule)


def test_overhead_not_yet_paid_is_paid_beside_the_partner() -> None:
    # y joins in the middle of x's start; both pay on. y: 3 s at 1/4 from 1.5 s to 13.5 s.
    instance = two_jobs(COSTLY, arrival_s=0.5)
    schedule = run(instance, Pairs()).schedule
    assert rows_of(schedule)[:2] == [(0, 0.0, 0.5, 0.5, -1), (0, 0.5, 13.5, 0.5, 1)]
    verify(instance, schedule)


def test_a_round_does_not_keep_the_gpus_from_who_stays() -> None:
    # At the boundary x has 2 s left, which take 4 s beside y, to 14 s; y has then done 4/4 = 1 s
    # and goes on at once at its full rate.
    schedule = run(two_jobs(), Pairs(), rounds=Rounds(10.0)).schedule
    assert rows_of(schedule) == [
        (0, 0.0, 10.0, 0.0, -1),
        (0, 10.0, 14.0, 0.0, 1),
        (1, 10.0, 14.0, 0.0, 0),
        (1, 14.0, 16.0, 0.0, -1),
    ]
    verify(two_jobs(), schedule)


@dataclass(frozen=True)
class Watch(Pairs):
    """Looks at the first job every two seconds."""

    seen: list[tuple[float, ...]] = field(default_factory=list)
    knows: frozenset[Knowledge] = frozenset({Knowledge.DURATION})

    def decide(self, state: State) -> Decision:
        if 0 in state.running or 0 in state.waiting:
            live = state.columns([0])
            self.seen.append((state.now_s, float(live.remaining_s[0]), float(live.attained_s[0])))
        decision = super().decide(state)
        if state.running or decision.starts:
            decision.wake_at(state.now_s + 2.0)
        return decision


def test_the_state_knows_what_is_left_while_partners_change() -> None:
    watch = Watch()
    run(two_jobs(), watch)
    times = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]
    left = [12.0, 10.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0]
    assert watch.seen == [(t, rest, t) for t, rest in zip(times, left, strict=True)]


def test_the_state_knows_what_is_left_where_speeds_are_equal() -> None:
    watch = Watch()
    jobs = Workload.from_columns(arrival_s=[0.0], gpus=[1], work=[7.0])
    run(Instance(Cluster.parse("1x1"), jobs, Overheads(start_s=1.0)), watch)
    assert watch.seen == [(0.0, 7.0, 0.0), (2.0, 6.0, 1.0), (4.0, 4.0, 3.0), (6.0, 2.0, 5.0)]


def test_joining_is_refused_where_it_cannot_be() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0] * 5, gpus=[1, 1, 2, 1, 1], work=[9.0] * 5, model=["a", "b", "a", "c", "a"]
    )
    together = table(
        {("a", "b"): (0.5, 0.5), ("a", "a"): (0.5, 0.5), ("a", "c"): (0.5, 0.0)}, ("gpu",)
    )
    instance = Instance(Cluster.parse("1x2"), jobs, sharing_rates=together)
    state = state_of(instance)
    decision = Decision(state)
    with pytest.raises(PolicyError, match="job 1 joins job 0, which holds no GPUs"):
        decision.join(1, 0)
    assert not decision.start_on(0, 1)
    assert decision.start_on(0, 0)
    assert not decision.start_on(2, 0)
    assert not decision.join(2, 0)  # another gang size
    assert not decision.join(3, 0)  # c makes no progress beside a
    assert not decision.join(0, 0)
    assert decision.join(1, 0)
    assert not decision.join(4, 0)  # taken
    assert not decision.join(4, 1)
    assert decision.partner_of(1) == 0
    assert decision.partner_of(4) is None
    assert decision.free_gpus == 1
    nobody = Instance(instance.cluster, jobs)
    state = state_of(nobody)
    alone = Decision(state)
    assert alone.start(0)
    assert not alone.join(1, 0)


def test_nobody_joins_a_job_that_is_stopped() -> None:
    jobs = Workload.from_columns(arrival_s=[0] * 2, gpus=[1] * 2, work=[9.0] * 2, model=["a"] * 2)
    together = table({("a", "a"): (0.5, 0.5)}, ("gpu",))
    state = state_of(Instance(Cluster.parse("1x1"), jobs, sharing_rates=together))
    assert state.allocator.take(0, 1, (0,)) == ((0, 1),)
    state.started(0, ((0, 1),), 0.0, 1.0)
    decision = Decision(state)
    decision.stop(0)
    with pytest.raises(PolicyError, match="job 1 joins job 0, which holds no GPUs"):
        decision.join(1, 0)


def test_a_stop_of_one_of_two_is_taken_back_while_the_other_is_still_alone() -> None:
    jobs = Workload.from_columns(arrival_s=[0] * 3, gpus=[1] * 3, work=[9.0] * 3, model=["a"] * 3)
    instance = Instance(
        Cluster.parse("1x1"), jobs, sharing_rates=table({("a", "a"): (0.5, 0.5)}, ("gpu",))
    )
    state = state_of(instance)
    assert state.allocator.take(0, 1, (0,)) == ((0, 1),)
    for job in (0, 1):
        state.started(job, ((0, 1),), 0.0, 0.5)
    state.partner_of.update({0: 1, 1: 0})
    decision = Decision(state)
    decision.stop(0)
    assert decision.free_gpus == 0
    assert decision.resume_in_place(0)
    assert decision.partner_of(0) == 1
    decision.stop(0)
    decision.stop(1)
    assert decision.free_gpus == 1
    assert decision.resume_in_place(1)
    assert decision.free_gpus == 0
    assert decision.resume_in_place(0)
    decision.stop(1)
    assert decision.join(2, 0)
    assert not decision.resume_in_place(1)
    assert (decision.stops, decision.starts) == ([1], {2: ((0, 1),)})


def shared_frame(instance: Instance, seed: int) -> pd.DataFrame:
    frame = run(instance, Chance(seed)).schedule.to_frame()
    assume((frame["partner"] >= 0).any())
    return frame


def broken(instance: Instance, frame: pd.DataFrame) -> str | None:
    try:
        verify(instance, Schedule.from_frame(frame))
    except Violation as violation:
        return violation.rule
    return None


def test_partners_must_name_each_other() -> None:
    """Three runs in a ring on two GPUs: everyone names the next, and nobody is named back."""
    jobs = Workload.from_columns(arrival_s=[0] * 3, gpus=[1] * 3, work=[3.0] * 3, model=["a"] * 3)
    rates = table({("a", "a"): (0.5, 0.5)}, ("gpu",))
    instance = Instance(Cluster.parse("1x2"), jobs, Overheads(), rates)
    ring = pd.DataFrame(
        {
            "job": [0, 1, 2],
            "node": 0,
            "gpus": 1,
            "start_s": 0.0,
            "end_s": 6.0,
            "overhead_s": 0.0,
            "partner": [1, 2, 0],
        }
    )
    assert broken(instance, ring) == "partner"
    pair_and_one = ring.assign(partner=[1, 0, -1], end_s=[6.0, 6.0, 3.0])
    assert broken(instance, pair_and_one) is None


def a_partner_leaves(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    row = frame.iloc[k]
    gone = (frame["job"] == row["partner"]) & (frame["start_s"] == row["start_s"])
    return frame[~gone]


def another_partner(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[changed.index[k], "partner"] = frame["job"].iloc[k]
    return changed


def no_partner(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[changed.index[k], "partner"] = -1
    return changed


def unknown_partner(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[changed.index[k], "partner"] = 10**6
    return changed


def another_node(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    row, changed = frame.iloc[k], frame.copy()
    run_of = (frame["job"] == row["job"]) & (frame["start_s"] == row["start_s"])
    assume(run_of.sum() == 1)
    changed.loc[run_of, "node"] = 1 - min(int(row["node"]), 1)
    return changed


def ends_early(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    row, changed = frame.iloc[k], frame.copy()
    run_of = (frame["job"] == row["job"]) & (frame["start_s"] == row["start_s"])
    changed.loc[run_of, "end_s"] -= TICK_S
    return changed


def both_alone(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    row, changed = frame.iloc[k], frame.copy()
    both = frame["job"].isin([row["job"], row["partner"]]) & (frame["start_s"] == row["start_s"])
    changed.loc[both, "partner"] = -1
    return changed


CORRUPTIONS: dict[Callable[[pd.DataFrame, int], pd.DataFrame], set[str]] = {
    a_partner_leaves: {"partner"},
    another_partner: {"partner"},
    no_partner: {"partner"},
    unknown_partner: {"row"},
    another_node: {"partner", "row", "type"},
    ends_early: {"partner", "row"},
    both_alone: {"capacity", "work", "overhead", "goes_on"},
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda f: f.__name__)
@given(data=st.data(), instance=sharing_instances(parts=(0.25, 0.5)), seed=seeds)
def test_corruption_is_refused(
    corrupt: Callable, data: st.DataObject, instance: Instance, seed: int
) -> None:
    frame = shared_frame(instance, seed)
    # Of a run of microseconds it makes no difference at which rate it was.
    long = frame["end_s"] - frame["start_s"] - frame["overhead_s"] > 0.01
    rows = np.flatnonzero((frame["partner"] >= 0) & long)
    assume(len(rows))
    k = int(rows[data.draw(st.integers(0, len(rows) - 1))])
    assert broken(instance, corrupt(frame, k)) in CORRUPTIONS[corrupt]


def rows(*values: tuple[float, ...]) -> pd.DataFrame:
    names = ["job", "node", "gpus", "start_s", "end_s", "overhead_s", "partner"]
    whole = {name: "int64" for name in names if not name.endswith("_s")}
    return pd.DataFrame(values, columns=names).astype(whole)


X_ALONE, X_BESIDE, X_AFTER = (
    (0, 0, 1, 0, 4, 0, -1),
    (0, 0, 1, 4, 16, 0, 1),
    (0, 0, 1, 16, 18, 0, -1),
)
Y_BESIDE = (1, 0, 1, 4, 16, 0, 0)


@pytest.mark.parametrize(
    ("frame", "rule"),
    [
        (rows(X_ALONE, X_BESIDE, X_AFTER, Y_BESIDE), None),
        # At its full rate beside another.
        (
            rows(X_ALONE, (0, 0, 1, 4, 7, 0, 1), (0, 0, 1, 7, 12, 0, -1), (1, 0, 1, 4, 7, 0, 0)),
            "work",
        ),
        # The partner comes while the run goes on.
        (rows((0, 0, 1, 0, 16, 0, 1), X_AFTER, Y_BESIDE), "partner"),
        (rows(X_ALONE, X_BESIDE, X_AFTER, (1, 0, 1, 4, 16, 0, -1)), "partner"),
        (rows(X_ALONE, (0, 0, 1, 4, 16, 0, -1), Y_BESIDE), "partner"),
        (rows((0, 0, 1, 0, 24, 0, 0), (1, 0, 1, 24, 27, 0, -1)), "partner"),
        (rows(X_ALONE, (0, 0, 1, 4, 12, 0, -1), (1, 0, 1, 4, 7, 0, -1)), "capacity"),
        (rows(X_ALONE, (0, 0, 1, 4, 16, 0, 2), X_AFTER, Y_BESIDE), "row"),
        (rows(X_ALONE, (0, 0, 1, 4, 16, 0, -2), X_AFTER, Y_BESIDE), "row"),
    ],
)
def test_rules_of_sharing_by_hand(frame: pd.DataFrame, rule: str | None) -> None:
    assert broken(two_jobs(), frame) == rule


def test_nobody_shares_without_rates() -> None:
    jobs = two_jobs().workload
    frame = rows(X_ALONE, X_BESIDE, X_AFTER, Y_BESIDE)
    assert broken(Instance(Cluster.parse("1x1"), jobs), frame) == "partner"


X_PAYS, X_STAYS, Y_PAYS = (0, 0, 1, 0, 4, 1, -1), (0, 0, 1, 4, 17, 0, 1), (1, 0, 1, 4, 17, 1, 0)


@pytest.mark.parametrize(
    ("frame", "rule"),
    [
        (rows(X_PAYS, X_STAYS, (0, 0, 1, 17, 19.5, 0, -1), Y_PAYS), None),
        # Who stays is charged nothing, neither when the partner comes nor when it leaves.
        (rows(X_PAYS, X_STAYS, (0, 0, 1, 17, 25.5, 6, -1), Y_PAYS), "overhead"),
        (rows(X_PAYS, (0, 0, 1, 4, 17, 6, 1), (0, 0, 1, 17, 22.5, 0, -1), Y_PAYS), "overhead"),
        # Who comes pays.
        (
            rows(X_PAYS, (0, 0, 1, 4, 16, 0, 1), (0, 0, 1, 16, 19, 0, -1), (1, 0, 1, 4, 16, 0, 0)),
            "overhead",
        ),
        # A pause is a restart, also after sharing.
        (rows(X_PAYS, X_STAYS, (0, 0, 1, 18, 20.5, 0, -1), Y_PAYS), "overhead"),
        (rows(X_PAYS, X_STAYS, (0, 0, 1, 18, 26.5, 6, -1), Y_PAYS), None),
        # So is another GPU.
        (rows(X_PAYS, X_STAYS, (0, 1, 1, 17, 19.5, 0, -1), Y_PAYS), "overhead"),
        (rows(X_PAYS, X_STAYS, (0, 1, 1, 17, 27.5, 8, -1), Y_PAYS), None),
    ],
)
def test_overheads_of_sharing_by_hand(frame: pd.DataFrame, rule: str | None) -> None:
    costly = two_jobs(COSTLY)
    instance = Instance(Cluster.parse("2x1"), costly.workload, COSTLY, costly.sharing_rates)
    assert broken(instance, frame) == rule


def test_a_third_job_does_not_fit_and_a_gang_has_one_partner() -> None:
    models = {"model": ["a"] * 3}
    jobs = Workload.from_columns(arrival_s=[0] * 3, gpus=[1] * 3, work=[1.0] * 3, **models)
    rates = table({("a", "a"): (0.5, 0.5)}, ("gpu",))
    three = rows((0, 0, 1, 0, 2, 0, 1), (1, 0, 1, 0, 2, 0, 0), (2, 0, 1, 0, 1, 0, -1))
    assert broken(Instance(Cluster.parse("1x1"), jobs, sharing_rates=rates), three) == "capacity"
    assert broken(Instance(Cluster.parse("1x2"), jobs, sharing_rates=rates), three) is None
    # Two GPUs of 0 are shared with 1 and 2; each of these has its other GPU to itself.
    wide = Workload.from_columns(arrival_s=[0] * 3, gpus=[2] * 3, work=[1.0] * 3, **models)
    torn = rows(
        (0, 0, 1, 0, 2, 0, 1),
        (0, 1, 1, 0, 2, 0, 2),
        (1, 0, 1, 0, 2, 0, 0),
        (1, 2, 1, 0, 2, 0, -1),
        (2, 1, 1, 0, 2, 0, 0),
        (2, 3, 1, 0, 2, 0, -1),
    )
    assert broken(Instance(Cluster.parse("4x1"), wide, sharing_rates=rates), torn) == "partner"
    apart = rows(
        (0, 0, 1, 0, 2, 0, 1),
        (0, 1, 1, 0, 2, 0, 1),
        (1, 0, 1, 0, 2, 0, 0),
        (1, 2, 1, 0, 2, 0, 0),
        (2, 1, 1, 2, 3, 0, -1),
        (2, 3, 1, 2, 3, 0, -1),
    )
    assert broken(Instance(Cluster.parse("4x1"), wide, sharing_rates=rates), apart) == "partner"


def sharing_outcome(instance: Instance, seed: int) -> Outcome:
    return Outcome.verified(instance, run(instance, Chance(seed)).schedule, policy="chance")


@given(instance=sharing_instances(), seed=seeds)
def test_run_directories_keep_partners_and_their_rates(instance: Instance, seed: int) -> None:
    made = sharing_outcome(instance, seed)
    with tempfile.TemporaryDirectory() as directory:
        save(made, directory)
        again = load(directory)
    assert again.instance == instance
    assert again.schedule.to_frame().equals(made.schedule.to_frame())
    assert again.summary() == made.summary()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save(sharing_outcome(two_jobs(COSTLY), 0), tmp_path)
    return tmp_path


def test_no_damage_to_the_rates_gets_through(saved: Path) -> None:
    data = (saved / INSTANCE).read_bytes()
    for position in range(0, len(data), 37):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        (saved / INSTANCE).write_bytes(damaged)
        with pytest.raises(ShadowpriceError):
            load(saved)
    (saved / INSTANCE).unlink()
    with pytest.raises(InputError, match=r"instance\.json: no such file"):
        load(saved)


def rewrite(saved: Path, key: str, value: object) -> None:
    described = json.loads((saved / INSTANCE).read_text())
    described["pair_throughputs"][key] = value
    (saved / INSTANCE).write_text(json.dumps(described))


@pytest.mark.parametrize("rate", [-1.0, np.inf, np.nan, None, "1"])
def test_a_rate_that_is_none_is_named(saved: Path, rate: object) -> None:
    rewrite(saved, "together", [["gpu", "a", 1, "b", 1, rate, 0.5]])
    with pytest.raises(InputError, match=r"instance\.json"):
        load(saved)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gpu_types", 3),
        ("gpu_types", [""]),
        ("source", None),
        ("alone", {}),
        ("alone", [["a", 1, [1.0, 2.0]]]),
        ("together", [["gpu", "a", 1]]),
    ],
)
def test_edits_of_the_rates_are_refused(saved: Path, key: str, value: object) -> None:
    rewrite(saved, key, value)
    with pytest.raises(InputError, match=r"instance\.json"):
        load(saved)


def test_a_run_without_rates_replaces_one_with_them(saved: Path) -> None:
    alone = Instance(Cluster.parse("1x1"), two_jobs().workload)
    save(sharing_outcome(alone, 0), saved)
    assert "pair_throughputs" not in json.loads((saved / INSTANCE).read_text())
    assert load(saved).instance == alone


def test_a_frame_without_partners_is_one_where_nobody_shares() -> None:
    frame = run(two_jobs(), Chance(0, sharing=0.0)).schedule.to_frame()
    old = Schedule.from_frame(frame.drop(columns="partner"))
    assert np.all(old.partner == -1)
    assert old.to_frame().equals(frame)
    with pytest.raises(InputError, match=r"column 'partner' has 1 rows, expected 2"):
        Schedule(*(np.zeros(2, dtype=np.int64),) * 3, *(np.zeros(2),) * 3, partner=np.array([1]))


def boxes(outcome: Outcome) -> list[tuple[float, float, float, float]]:
    """(left, right, low, high) of every box drawn, in seconds and GPUs."""
    (drawn,) = outcome.plot_gantt().collections
    found = []
    for path in drawn.get_paths():
        (left, low), (right, high) = path.vertices.min(axis=0), path.vertices.max(axis=0)
        found.append((float(left), float(right), float(low), float(high)))
    return found


def test_gantt_draws_two_halves() -> None:
    outcome = Outcome.verified(two_jobs(), run(two_jobs(), Pairs()).schedule, policy="pairs")
    assert "half height: shared GPUs" in outcome.plot_gantt().get_title(loc="left")
    assert sorted(boxes(outcome)) == [
        (0.0, 4.0, 0.0, 1.0),
        (4.0, 16.0, 0.0, 0.5),
        (4.0, 16.0, 0.5, 1.0),
        (16.0, 18.0, 0.0, 1.0),
    ]


def test_gantt_keeps_who_stays_in_place() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0.0, 1.0, 4.0], gpus=[1, 1, 1], work=[4.0, 12.0, 3.0], model=["c", "a", "b"]
    )
    instance = Instance(Cluster.parse("1x2"), jobs, sharing_rates=two_jobs().sharing_rates)
    schedule = run(instance, Pairs()).schedule
    outcome = Outcome.verified(instance, schedule, policy="pairs")
    # Job 1 has the second GPU; it stays there when job 2 joins it as the first GPU becomes free.
    assert (1.0, 4.0, 1.0, 2.0) in boxes(outcome)
    assert all(low >= 1.0 for left, _, low, _ in boxes(outcome) if left >= 4.0)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (rows(X_ALONE, X_BESIDE, X_AFTER, Y_BESIDE), [False, True, True, False]),
        (rows(X_AFTER, Y_BESIDE, X_BESIDE, X_ALONE), [True, False, True, False]),
        (rows(X_ALONE, X_BESIDE, (0, 0, 1, 17, 19, 0, -1), Y_BESIDE), [False, True, False, False]),
        (rows(X_ALONE, X_BESIDE, (0, 1, 1, 16, 18, 0, -1), Y_BESIDE), [False, True, False, False]),
        (rows((0, 0, 1, 0, 4, 0, -1), (0, 0, 1, 4, 12, 0, -1)), [False, False]),
        (rows((0, 0, 2, 0, 4, 0, 1), (0, 0, 1, 4, 8, 0, 1), (0, 1, 1, 4, 8, 0, 1)), [False] * 3),
    ],
)
def test_a_run_goes_on_if_only_its_partner_changes(frame: pd.DataFrame, expected: list) -> None:
    assert Schedule.from_frame(frame).continues.tolist() == expected


@given(instance=sharing_instances(), seed=seeds)
def test_gantt_draws_every_held_gpu_second_once(instance: Instance, seed: int) -> None:
    outcome = sharing_outcome(instance, seed)
    schedule = outcome.schedule
    alone = np.where(schedule.partner >= 0, 0.5, 1.0)
    held = float(np.dot(schedule.gpus * alone, schedule.end_s - schedule.start_s))
    unit, _ = time_unit(1.02 * float(schedule.end_s.max()))
    drawn = np.array(boxes(outcome)) * [unit, unit, 1.0, 1.0]
    areas = (drawn[:, 1] - drawn[:, 0]) * (drawn[:, 3] - drawn[:, 2])
    assert areas.sum() == pytest.approx(held)
    for k, (left, right, low, high) in enumerate(drawn):
        wide = np.minimum(drawn[:, 1], right) - np.maximum(drawn[:, 0], left) > 1e-6
        tall = np.minimum(drawn[:, 3], high) - np.maximum(drawn[:, 2], low) > 1e-6
        assert set(np.flatnonzero(wide & tall).tolist()) <= {k}
