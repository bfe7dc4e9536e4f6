"""Instances of every kind that certificates know, each with a schedule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.window import JobWindow
from shadowprice.proofs.testing.cases import conditioned, failing, shared
from shadowprice.solvers.registry import policy
from support.conditioned_jobs import Restless
from support.drawn_copies import made
from support.drawn_worlds import drawn
from support.job_graph_runs import Chance, graph_instances
from support.schedule_segments import rows_of
from support.small_instances import instance_of
from support.uneven_work import Fickle, uneven
from support.wild import Wild

PARTS = st.tuples(
    st.integers(0, 9),
    st.integers(1, 9),
    st.sampled_from([(1, 250), (1, 400), (1, 1000), (2, 1000)]),
)


@st.composite
def of_types(draw):
    instance = draw(uneven())
    return instance, run(instance, Fickle(draw(st.integers(0, 99)))).schedule


@st.composite
def of_pairs(draw):
    instance = draw(shared()).instance
    return instance, run(instance, Fickle(draw(st.integers(0, 99)))).schedule


@st.composite
def of_fed_pairs(draw):
    """Pairs of which each has CPUs and memory of its own, and nodes of cores, whose jobs have none."""
    more = draw(st.sampled_from([(), ("cores",), ("restart", "cores")]))
    # Where runs are charged it makes a difference which rows go on.
    features = ("sharing", "profiles", "charges", *more)
    seed = draw(st.integers(0, 999))
    instance = instance_of(drawn(features, seed))
    return instance, run(instance, Wild(seed)).schedule


@st.composite
def of_mapped_pairs(draw):
    more = draw(st.sampled_from([(), ("profiles",), ("restart",)]))
    seed = draw(st.integers(0, 999))
    instance = instance_of(drawn(("sharing", "graphs", "charges", *more), seed))
    return instance, run(instance, Wild(seed)).schedule


@st.composite
def under_conditions(draw):
    instance = draw(conditioned()).instance
    return instance, run(instance, Restless(draw(st.integers(0, 99)))).schedule


@st.composite
def of_graphs(draw):
    instance = draw(graph_instances())
    return instance, run(instance, Chance(draw(st.integers(0, 99)))).schedule


@st.composite
def of_parts(draw):
    arrival, work, held = zip(*draw(st.lists(PARTS, min_size=1, max_size=6)), strict=True)
    gpus, milli = zip(*held, strict=True)
    jobs = sp.Workload.from_columns(arrival_s=arrival, work=work, gpus=gpus, gpu_milli=milli)
    found = sp.simulate(jobs, "2x2", draw(st.sampled_from(["fifo", "srtf", "las"])))
    return found.instance, found.schedule


@st.composite
def on_failing_nodes(draw):
    instance = draw(failing()).instance
    assume(len(instance.workload))
    name = draw(st.sampled_from(["fifo", "srtf", "las"]))
    found = run(instance, policy(name))
    return found.instance, found.schedule


@st.composite
def of_copies(draw):
    plain = draw(uneven(charged=False))
    jobs = replace(plain.workload, work=np.ceil(plain.workload.work * 100))
    instance, rules = Instance(plain.cluster, jobs), HadarE()
    instance = replace(instance, copies=rules.rules(instance.cluster))
    return instance, rules.schedule(instance)


@st.composite
def within_quotas(draw):
    arrival, work, held = zip(*draw(st.lists(PARTS, min_size=1, max_size=6)), strict=True)
    gpus, milli = zip(*held, strict=True)
    tenant = draw(st.lists(st.sampled_from("ab"), min_size=len(gpus), max_size=len(gpus)))
    whole = [1000] * len(gpus) if draw(st.booleans()) else milli
    columns = {"arrival_s": arrival, "work": work, "gpus": gpus, "gpu_milli": whole}
    jobs = sp.Workload.from_columns(**columns, tenant=tenant)
    quota = st.integers(0, 3)
    limits = ((draw(quota), draw(quota)), (draw(quota), draw(quota)), (2, 2))
    quotas = Quotas(("a", "b"), (0.0, 5.0, 20.0), limits)
    cluster = replace(Cluster.parse("2x2"), quotas=quotas)
    name = draw(st.sampled_from(["fifo", "srtf", "las"]))
    instance = Instance(cluster, jobs)
    return instance, run(instance, policy(name)).schedule


@st.composite
def restarting(draw):
    arrival, work, held = zip(*draw(st.lists(PARTS, min_size=1, max_size=6)), strict=True)
    gpus, milli = zip(*held, strict=True)
    charges = sp.Overheads(draw(st.sampled_from([0.0, 1.0])), draw(st.sampled_from([0.0, 2.0])))
    jobs = sp.Workload.from_columns(arrival_s=arrival, work=work, gpus=gpus, gpu_milli=milli)
    instance = Instance(Cluster.parse("2x2"), jobs, charges, preemption=sp.Preemption.RESTART)
    return instance, run(instance, policy(draw(st.sampled_from(["fifo", "srtf"])))).schedule


@st.composite
def until_a_window(draw):
    instance, schedule = draw(
        st.one_of(of_types(), of_pairs(), of_parts(), within_quotas(), restarting(), of_copies())
    )
    assume(len(schedule))
    first = draw(st.integers(0, len(instance.workload) - 1))
    last = draw(st.integers(first + 1, len(instance.workload)))
    mine = (schedule.job >= first) & (schedule.job < last)
    made = replace(instance, until_complete=JobWindow(first, last))
    return made, cut_at(schedule, float(schedule.end_s[mine].max()))


def cut_at(schedule, at_s):
    """What was done until some moment."""
    rows = rows_of(schedule, np.flatnonzero(schedule.start_s < at_s))
    end_s = np.minimum(rows.end_s, at_s)
    if rows.steps is not None:
        rows = replace(rows, steps=np.where(rows.end_s > at_s, 0, rows.steps))
    return replace(rows, end_s=end_s, overhead_s=np.minimum(rows.overhead_s, end_s - rows.start_s))


@st.composite
def stopped(draw):
    """Cut at a moment, at which the policy would have decided or not."""
    instance, schedule = draw(st.one_of(of_types(), of_pairs(), within_quotas(), of_copies()))
    assume(len(schedule))
    times = sorted({*schedule.start_s.tolist(), *schedule.end_s.tolist()})
    at = draw(st.sampled_from(times)) + draw(st.sampled_from([0.0, 2.0**-20, 1.25]))
    assume(at > instance.workload.arrival_s.min())
    return replace(instance, stopped_s=at), cut_at(schedule, at)


@st.composite
def stopped_before_a_window(draw):
    """Stopped before the window was complete, or at the very moment, or later, when all was over."""
    instance, schedule = draw(until_a_window())
    times = sorted({*schedule.start_s.tolist(), *schedule.end_s.tolist()})
    at = draw(st.sampled_from(times)) + draw(st.sampled_from([0.0, 2.0**-20, 1.25]))
    window = instance.until_complete
    assume(at > instance.workload.arrival_s[window.rows].min())
    return replace(instance, stopped_s=at), cut_at(schedule, at)


@st.composite
def of_copies_and_more(draw):
    found = made(draw(st.integers(0, 2**30)))
    assume(found is not None)
    instance, schedule = found
    assume(len(schedule) and len(measured_rows(instance)))
    assume(Feature.PROFILES not in instance.features)  # Such copies have no certificates.
    return instance, schedule


CASES = {
    "types": (of_types(), "no two jobs share a GPU"),
    "pairs": (of_pairs(), "share a GPU"),
    "pairs with profiles": (of_fed_pairs(), "share a GPU"),
    "pairs with graphs": (of_mapped_pairs(), "share a GPU"),
    "conditions": (under_conditions(), "no two jobs share a GPU"),
    "graphs": (of_graphs(), "no two jobs share a GPU"),
    "parts": (of_parts(), "in which no "),
    "failures": (on_failing_nodes(), "on nodes that fail"),
    "copies": (of_copies(), "copies on whole nodes"),
    "copies and more": (of_copies_and_more(), "copies on whole nodes"),
    "quotas": (within_quotas(), "within quotas of tenants"),
    "restarts": (restarting(), "jobs restart when preempted"),
    "windows of jobs": (until_a_window(), "counting jobs "),
    "stopped": (stopped(), "counting time until "),
    "stopped windows": (stopped_before_a_window(), "alone, counting time until "),
}
