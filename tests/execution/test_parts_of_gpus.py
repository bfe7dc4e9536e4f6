"""Jobs that hold a part of a GPU: in the engine under many policies, and what the verifier refuses."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.certify import certify
from shadowprice.analysis.compare import compare
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import load, save
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify

PART = st.sampled_from([125, 250, 400, 500, 600, 900])
JOB = st.tuples(
    st.integers(0, 12),  # arrival
    st.integers(1, 8),  # work
    st.one_of(st.tuples(st.just(1), PART), st.tuples(st.integers(1, 3), st.just(1000))),
)
POLICIES = (
    "fifo",
    "fifo-skip",
    "sjf",
    "easy",
    "srtf",
    "las",
    "las2d",
    "gavel",
    "hadar",
    "asrpt",
)


def workload(jobs: list[tuple[int, int, tuple[int, int]]], **more: object) -> Workload:
    arrival, work, held = zip(*jobs, strict=True)
    gpus, milli = zip(*held, strict=True)
    return Workload.from_columns(
        arrival_s=arrival, work=work, gpus=gpus, gpu_milli=milli, tenant="t", **more
    )


@given(
    st.lists(JOB, min_size=1, max_size=10),
    st.sampled_from(POLICIES),
    st.sampled_from(["1x3", "2x2", "3x1:a,1x3:b"]),
    st.booleans(),
)
@settings(max_examples=20)
def test_schedules_of_every_policy_are_verified(
    jobs: list[tuple[int, int, tuple[int, int]]], policy: str, nodes: str, charged: bool
) -> None:
    table = {"throughput": [[1.0, 2.0]] * len(jobs), "gpu_types": ("a", "b")}
    given = workload(jobs, **(table if ":" in nodes else {}))
    charges = Overheads(start_s=1.0, restart_s=2.0) if charged else None
    outcome = simulate(given, nodes, policy, RunOptions(overheads=charges))
    assert outcome.complete.all()
    assert 0 <= outcome.summary()["utilization"] <= 1
    parts = outcome.instance.workload.fractional
    numbered = outcome.schedule.shared_gpu
    if not parts.any():
        assert numbered is None
        return
    assert ((numbered >= 0) == parts[outcome.schedule.job]).all()


def test_parts_share_one_gpu_and_are_stopped_for_a_wide_gang() -> None:
    small = [(0, 8, (1, 250)), (1, 8, (1, 250)), (2, 8, (1, 500)), (2, 8, (1, 100))]
    outcome = simulate(workload(small), "1x1", "fifo-skip")
    assert outcome.jobs["first_start_s"].tolist() == [0, 1, 2, 8]
    assert outcome.jobs["held_gpus"].tolist() == [0.25, 0.25, 0.5, 0.1]
    held = (8 * 0.25 + 8 * 0.25 + 8 * 0.5 + 8 * 0.1) / 16
    assert outcome.summary()["utilization"] == pytest.approx(held, rel=1e-12)
    wide = [(0, 50, (1, 250)), (0, 50, (1, 400)), (3, 1, (2, 1000))]
    outcome = simulate(workload(wide), "1x2", "srtf")
    assert outcome.jobs["first_start_s"].tolist() == [0, 0, 3]
    assert outcome.jobs["preemptions"].tolist() == [1, 1, 0]
    assert outcome.end_s.max() == 51


def test_a_run_is_kept_and_read_again(tmp_path: object) -> None:
    outcome = simulate(workload([(0, 8, (1, 250)), (1, 8, (1, 500))]), "1x1", "fifo")
    save(outcome, f"{tmp_path}/run")
    again = load(f"{tmp_path}/run")
    assert again.instance.workload == outcome.instance.workload
    assert again.summary() == outcome.summary()


def possible(spans: list[tuple[int, int, int, int]], gpus: int, number: dict[int, int]) -> bool:
    """Whether (start, end, gpus, milli) can be given whole GPUs; those of one number share one while held."""
    free = [[1000] * gpus for _ in range(12)]

    def fits(k: int, chosen: tuple[int, ...]) -> bool:
        start, end, _, milli = spans[k]
        return all(free[t][gpu] >= milli for t in range(start, end) for gpu in chosen)

    def put(k: int, chosen: tuple[int, ...], sign: int) -> None:
        start, end, _, milli = spans[k]
        for t in range(start, end):
            for gpu in chosen:
                free[t][gpu] -= sign * milli

    where: dict[int, int] = {}

    def together(k: int, chosen: tuple[int, ...]) -> bool:
        """Those of one number at one time are on one GPU, those of different numbers are not."""
        if spans[k][3] == 1000:
            return True
        for other, gpu in where.items():
            overlap = spans[k][0] < spans[other][1] and spans[other][0] < spans[k][1]
            if overlap and (number[k] == number[other]) != (gpu == chosen[0]):
                return False
        return True

    def place(k: int) -> bool:
        if k == len(spans):
            return True
        for chosen in itertools.combinations(range(gpus), spans[k][2]):
            if fits(k, chosen) and together(k, chosen):
                put(k, chosen, 1)
                if spans[k][3] < 1000:
                    where[k] = chosen[0]
                if place(k + 1):
                    return True
                where.pop(k, None)
                put(k, chosen, -1)
        return False

    return place(0)


SPAN = st.tuples(
    st.integers(0, 5),
    st.integers(1, 5),
    st.one_of(
        st.tuples(st.just(1), st.sampled_from([300, 500, 700])),
        st.tuples(st.integers(1, 2), st.just(1000)),
    ),
    st.integers(0, 1),
)


@given(st.lists(SPAN, min_size=1, max_size=6), st.integers(2, 3))
@settings(max_examples=90)
def test_what_is_verified_can_be_put_on_gpus_and_else_cannot(
    jobs: list[tuple[int, int, tuple[int, int], int]], gpus: int
) -> None:
    arrival, work, held, number = zip(*jobs, strict=True)
    jobs_of = workload([(a, w, h) for a, w, h, _ in jobs])
    instance = Instance(Cluster.parse(f"1x{gpus}"), jobs_of)
    order = [int(name) for name in jobs_of.id]
    start = jobs_of.arrival_s
    parts = jobs_of.fractional
    numbers = np.where(parts, np.array(number)[order], -1)
    schedule = Schedule(
        np.arange(len(jobs)),
        np.zeros(len(jobs), dtype=np.int64),
        jobs_of.gpus.copy(),
        start.copy(),
        start + jobs_of.work,
        np.zeros(len(jobs)),
        shared_gpu=numbers if parts.any() else None,
    )
    spans = [(arrival[k], arrival[k] + work[k], held[k][0], held[k][1]) for k in order]
    fine = possible(spans, gpus, dict(enumerate(numbers.tolist())))
    if fine:
        verify(instance, schedule)
    else:
        with pytest.raises(VerificationError, match=r"part: |capacity: "):
            verify(instance, schedule)


def test_numbers_of_gpus_that_are_wrong() -> None:
    outcome = simulate(workload([(0, 8, (1, 250)), (0, 8, (1, 1000))]), "1x2", "fifo")
    rows = outcome.schedule
    for wrong in ([-1, -1], [0, 0], [2, -1]):
        with pytest.raises(VerificationError, match="part: row"):
            verify(outcome.instance, replace(rows, shared_gpu=np.array(wrong)))
    with pytest.raises(VerificationError, match="part: the schedule has no column"):
        verify(outcome.instance, replace(rows, shared_gpu=None))
    whole = simulate(workload([(0, 8, (1, 1000))]), "1x1", "fifo")
    numbered = replace(whole.schedule, shared_gpu=np.array([-1]))
    with pytest.raises(VerificationError, match="part: the schedule has a column"):
        verify(whole.instance, numbered)


def test_what_knows_whole_gpus_only_says_so() -> None:
    jobs = workload([(0, 8, (1, 250)), (0, 8, (1, 1000))])
    assert compare(jobs, "1x2", ["fifo"], "flow").rows[0].certified
    with pytest.raises(InputError, match="several copies and jobs that hold a part of a GPU"):
        simulate(jobs, "1x2", "hadare")
    with pytest.raises(
        InputError, match="not known to max_min_fairness, which runs in a loop of its own"
    ):
        simulate(jobs, "1x2", "max_min_fairness", RunOptions(preset="gavel"))
    outcome: Outcome = simulate(jobs, "1x2", "fifo")
    assert "no GPU is held by more than all of it" in certify(outcome, "flow", budget_s=0).of_class
