"""The laws, each as a function that raises where it is broken."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shadowprice.errors import PolicyError, VerificationError
from shadowprice.execution.engine import Engine, Rounds
from shadowprice.execution.kernel.run import run_fastest as compiled
from shadowprice.execution.sealed.policy import SealedPolicy
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.testing.future import named, other_durations, other_future
from shadowprice.proofs.testing.subject import Case, PolicyUnderTest, Scaling, broken
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.registry import placement

_DECOYS = 3
"""Engines of other instances on either side of the one that runs."""

_TOLERANCE_S = 1e-4
"""What times may be off where they are rounded to the grid at every event [s]."""


def ends_by_id(instance: Instance, schedule: Schedule) -> dict[str, float]:
    """Completion time of every job [s]."""
    last = np.zeros(len(instance.workload))
    np.maximum.at(last, schedule.job, schedule.end_s)
    return dict(zip(instance.workload.id.tolist(), last.tolist(), strict=True))


def valid(subject: PolicyUnderTest, case: Case) -> None:
    """The engine can carry out every decision, and the verifier accepts the schedule."""
    law = "every schedule is valid"
    try:
        verify(case.instance, case.run(subject.policy))
    except (PolicyError, VerificationError) as error:
        broken(subject.policy, law, f"{type(error).__name__}: {error}", case)


def nobody_lost(subject: PolicyUnderTest, case: Case) -> None:
    """Every job runs for exactly its processing time, after it has arrived; no rule but this."""
    law = "every job does all its work"
    try:
        schedule = case.run(subject.policy)
    except PolicyError as error:
        broken(subject.policy, law, str(error), case)
    jobs = case.instance.workload
    for row in range(len(jobs)):
        # Pieces of a gang on several nodes have equal times.
        mine = schedule.job == row
        runs = set(zip(schedule.start_s[mine].tolist(), schedule.end_s[mine].tolist(), strict=True))
        ran_s = math.fsum(end - start for start, end in runs)
        if ran_s != jobs.work[row] or any(start < jobs.arrival_s[row] for start, _ in runs):
            found = f"job {jobs.id[row]!r} needs {jobs.work[row]} s from {jobs.arrival_s[row]} s on"
            broken(subject.policy, law, f"{found} and runs {sorted(runs)}", case)


def times_scale(subject: PolicyUnderTest, case: Case) -> None:
    """Scaling all times of the instance and the policy scales all completion times."""
    jobs, factor = case.instance.workload, case.factor
    scaled = Instance(
        case.instance.cluster,
        replace(jobs, arrival_s=jobs.arrival_s * factor, work=jobs.work * factor),
    )
    before = ends_by_id(case.instance, case.run(subject.policy))
    after = ends_by_id(scaled, case.run(subject.scaled(factor), scaled))
    exact = subject.scaling is Scaling.EXACT and math.frexp(factor)[0] == 0.5
    for job, end_s in before.items():
        if abs(after[job] - factor * end_s) > (0.0 if exact else _TOLERANCE_S):
            broken(
                subject.policy,
                f"{factor} times as long inputs give {factor} times as late completions",
                f"job {job!r} ends at {end_s} s and at {after[job]} s",
                case,
                "Name its own times in laws(..., times=...), or say that it rounds: scaling=...",
            )


def rows_in_any_order(subject: PolicyUnderTest, case: Case) -> None:
    """The order in which jobs are listed does not matter where no two arrive together."""
    shuffled = Workload.from_frame(case.instance.workload.to_frame().iloc[list(case.order)])
    again = Instance(case.instance.cluster, shuffled)
    one = ends_by_id(case.instance, case.run(subject.policy))
    other = ends_by_id(again, case.run(subject.policy, again))
    if one != other:
        law = "the order of rows does not matter"
        broken(subject.policy, law, f"jobs end at {one}, and reordered at {other}", case)


def repeats(subject: PolicyUnderTest, case: Case) -> None:
    """The same input gives the same schedule, at once and after a run on another input."""
    jobs = case.instance.workload
    other = Instance(case.instance.cluster, replace(jobs, work=jobs.work[::-1].copy()))
    first, second = (case.run(subject.policy).to_frame() for _ in range(2))
    case.run(subject.policy, other)
    if not (first.equals(second) and first.equals(case.run(subject.policy).to_frame())):
        broken(
            subject.policy,
            "the same input gives the same schedule",
            "a later run gives another one",
            case,
            "Draw numbers from a seed, and keep notes in state.notes(...), not in the policy.",
        )


def runs_once(subject: PolicyUnderTest, case: Case) -> None:
    """A policy that says that it does not preempt runs every job once."""
    law = "it declares preemptive = False, so every job runs once"
    try:
        schedule = case.run(subject.policy)
    except PolicyError as error:
        broken(subject.policy, law, str(error), case)
    if len(schedule.runs) != len(case.instance.workload):
        broken(
            subject.policy,
            law,
            f"{len(case.instance.workload)} jobs have {len(schedule.runs)} runs",
            case,
        )


def index_agrees(subject: PolicyUnderTest, case: Case) -> None:
    """A policy that says its index makes the same schedule in the compiled loop as by its decisions."""
    law = "its job_index gives the schedule of its decide, row by row"
    where, rounds = placement(case.placement), Rounds(case.round_s)
    try:
        found = compiled(
            case.instance, subject.policy, placement=where, rounds=rounds, least_jobs=0
        )
    except PolicyError as error:
        broken(subject.policy, law, str(error), case)
    rows, expected = found.schedule.to_frame(), case.run(subject.policy).to_frame()
    if not rows.equals(expected):
        first = next(k for k in range(len(rows) + 1) if not rows[: k + 1].equals(expected[: k + 1]))
        row = rows.iloc[first].to_dict() if first < len(rows) else "none"
        other = expected.iloc[first].to_dict() if first < len(expected) else "none"
        broken(subject.policy, law, f"row {first} is {row} by the index, {other} by decide", case)


def no_idle_gpus(subject: PolicyUnderTest, case: Case) -> None:
    """No job waits while as many GPUs as it needs are free; on equal GPUs, counted placement."""
    instance, jobs = case.instance, case.instance.workload
    schedule = case.run(subject.policy)
    end = ends_by_id(instance, schedule)
    times = np.unique(np.concatenate((schedule.start_s, schedule.end_s, jobs.arrival_s)))
    for now in times.tolist():
        active = (schedule.start_s <= now) & (schedule.end_s > now)
        free = instance.cluster.total_gpus - int(schedule.gpus[active].sum())
        held = set(schedule.job[active].tolist())
        for row, job in enumerate(jobs.id.tolist()):
            waits = jobs.arrival_s[row] <= now < end[job] and row not in held
            if waits and jobs.gpus[row] <= free:
                broken(
                    subject.policy,
                    "no GPUs idle while a job that fits waits",
                    f"at {now} s job {job!r} waits for {jobs.gpus[row]} of {free} free GPUs",
                    case,
                    "If it lets jobs wait on purpose, say so: laws(..., waits=True).",
                )


def blind_to_durations(subject: PolicyUnderTest, case: Case) -> None:
    """Doubling the job that ends last changes nothing before it would have ended."""
    instance, jobs = case.instance, case.instance.workload
    before = case.run(subject.policy)
    last = np.zeros(len(jobs))
    np.maximum.at(last, before.job, before.end_s)
    longest = int(last.argmax())
    work = jobs.work.copy()
    work[longest] *= 2
    changed = Instance(instance.cluster, replace(jobs, work=work))
    after = case.run(subject.policy, changed)
    until_s = float(last[longest])
    if _starts(instance, before, until_s) != _starts(changed, after, until_s):
        broken(
            subject.policy,
            "it declares that it knows nothing of run times, so a longer job is not noticed before it is late",
            f"with job {jobs.id[longest]!r} twice as long, jobs start otherwise before {until_s} s",
            case,
        )
    # Under names that no other instance in memory has, so that who looks there finds these.
    other = other_durations(instance)
    before, after = (
        case.run(subject.policy, named(each, name))
        for each, name in ((instance, "one"), (other, "two"))
    )
    until_s = min(float(each.end_s.min(initial=math.inf)) for each in (before, after))
    if _starts(instance, before, until_s) != _starts(other, after, until_s):
        broken(
            subject.policy,
            "it declares that it knows nothing of run times, so nobody's is noticed before the first has ended",
            f"with work {other.workload.work.tolist()} jobs start otherwise before {until_s} s",
            case,
        )


def blind_to_memory(subject: PolicyUnderTest, case: Case) -> None:
    """Other instances of the same jobs in memory, older and newer than what is run, change nothing."""
    before = case.run(subject.policy)
    older = [_looking_alike(subject, case) for _ in range(_DECOYS)]
    one = replace(case.instance, workload=replace(case.instance.workload))
    newer = [_looking_alike(subject, case) for _ in range(_DECOYS)]
    after = case.run(subject.policy, one)
    assert len(older) == len(newer)  # They are there until here.
    if not before.to_frame().equals(after.to_frame()):
        broken(
            subject.policy,
            "a policy decides by its state, so what else is in memory does not matter",
            "while other instances of these jobs are in memory, with other run times, its schedule is another",
            case,
            "it looks for the jobs outside of its state: see --sealed",
        )


def same_when_sealed(subject: PolicyUnderTest, case: Case) -> None:
    """In a process of its own, where there is nothing but its state, it decides the same."""
    before = case.run(subject.policy)
    law = (
        "a policy decides by its state, so in a process that holds nothing else it decides the same"
    )
    try:
        with SealedPolicy(subject.written) as sealed:
            after = case.run(sealed)
    except PolicyError as error:
        broken(subject.policy, law, f"there {error}", case)
    if not before.to_frame().equals(after.to_frame()):
        broken(subject.policy, law, "its schedule is another there", case)


def _looking_alike(subject: PolicyUnderTest, case: Case) -> Engine:
    """An engine before its first decision about the same jobs, that take other times."""
    other = other_durations(case.instance)
    return Engine(other, subject.policy, placement(case.placement), Rounds(case.round_s))


def blind_to_arrivals(subject: PolicyUnderTest, case: Case) -> None:
    """Without the last jobs, or with others in their place, everything before them is the same."""
    instance, jobs = case.instance, case.instance.workload
    last = float(jobs.arrival_s.max())
    early = jobs.arrival_s < last
    if not early.any():
        return
    before = _starts(instance, case.run(subject.policy), last)
    same_service = subject.knows_distribution
    others = {"with others in place of": other_future(instance, early, same_service=same_service)}
    if not same_service and not any(each.varies for each in instance.present):
        others["without"] = replace(instance, workload=jobs.select(early))
    for what, other in others.items():
        if _starts(other, case.run(subject.policy, other), last) != before:
            broken(
                subject.policy,
                "it is online, so jobs that have not arrived do not matter",
                f"{what} the jobs that arrive at {last} s, others start otherwise before then",
                case,
            )


def blind_to_faults(subject: PolicyUnderTest, case: Case) -> None:
    """Without the faults from some time on, everything before that time is the same."""
    failures = case.instance.failures
    if failures is None or not len(failures):
        return
    from_s = float(failures.down_s[len(failures) // 2])
    kept = failures.down_s < from_s
    fewer = replace(
        failures, node=failures.node[kept], down_s=failures.down_s[kept], up_s=failures.up_s[kept]
    )
    other = replace(case.instance, failures=fewer)
    before, after = (
        _starts(each, case.run(subject.policy, each), from_s) for each in (case.instance, other)
    )
    if before != after:
        broken(
            subject.policy,
            "it is online, so faults to come do not matter",
            f"without those from {from_s} s on, others start otherwise before then",
            case,
        )


def above_bounds(subject: PolicyUnderTest, case: Case) -> None:
    """No cost is below a certified bound of the optimum."""
    schedule = case.run(subject.policy)
    jobs = case.instance.workload
    end_s = np.zeros(len(jobs))
    np.maximum.at(end_s, schedule.job, schedule.end_s)
    for objective in Objective:
        cost_s = objective.cost_s(jobs, end_s)
        for bound in simple_bounds(case.instance, objective):
            if cost_s < bound.value_s:
                law = f"no schedule has a smaller {objective} than the bound {bound.kind!r}"
                broken(subject.policy, law, f"{cost_s} s < {bound.value_s} s", case)


def _starts(instance: Instance, schedule: Schedule, until_s: float) -> set[tuple[str, float]]:
    early = schedule.start_s < until_s
    names = instance.workload.id[schedule.job[early]].tolist()
    return set(zip(names, schedule.start_s[early].tolist(), strict=True))
