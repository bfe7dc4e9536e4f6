"""Work left on GPUs of several speeds is counted exactly, and told as the engine tells it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import shadowprice as sp
from shadowprice.execution.kernel import pacing
from shadowprice.execution.kernel.arrays import Arrays, arrays_of
from shadowprice.execution.kernel.compiling import OPTIONS
from shadowprice.instances.grid import TICK_S


@njit(**OPTIONS)
def missing(a: Arrays, pool: int) -> int:
    return pacing._missing(a, 0, pool)


@njit(**OPTIONS)
def left_s(a: Arrays) -> float:
    pacing.note_progress(a, 0, 0.0)
    return a.jobs[0].left_s


CLUSTER = sp.Cluster.parse("1x1:a,1x1:b,1x1:c")
MOST = 2**52


@st.composite
def progress(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Ticks that the whole job takes in three pools, and that it ran there, together less than all of it."""
    pace = st.integers(1, MOST) | st.integers(MOST - 3, MOST) | st.integers(1, 50)
    paces = [draw(pace) for _ in range(3)]
    done, left = [], Fraction(1)
    for whole in paces:
        most = math.ceil(left * whole) - 1
        ran = draw(st.sampled_from([0, most, most // 2, most - 1]) | st.integers(0, most))
        done.append(max(ran, 0))
        left -= Fraction(done[-1], whole)
    return paces, done


def arrays(paces: list[int], done: list[int]) -> Arrays:
    rates = np.array([[1.0, 1.0, 1.0]])
    jobs = sp.Workload.from_columns(
        arrival_s=[0.0], gpus=[1], work=[1.0], throughput=rates, gpu_types=("a", "b", "c")
    )
    a = arrays_of(
        sp.Instance(CLUSTER, jobs), 0, in_sets=False, backfills=False, releases=False, limited=True
    )
    a.paces["whole"], a.paces["done"] = paces, done
    return a


@settings(max_examples=60)
@given(progress(), st.integers(0, 2))
def test_ticks_left_are_the_least_that_suffice(ran: tuple[list[int], list[int]], pool: int) -> None:
    paces, done = ran
    left = 1 - sum(Fraction(d, p) for d, p in zip(done, paces, strict=True))
    assert missing(arrays(paces, done), pool) == max(math.ceil(left * paces[pool]), 1)


@settings(max_examples=60)
@given(progress(), st.integers(0, 2))
def test_time_left_is_the_nearest_number(ran: tuple[list[int], list[int]], pool: int) -> None:
    paces, done = ran
    left, of = 1, 1
    for pace, ticks in zip(paces, done, strict=True):
        left, of = left * pace - ticks * of, of * pace
    a = arrays(paces, done)
    a.orders[:] = pool
    a.jobs["pieces"] = 0
    assert left_s(a) == left * paces[pool] / of * TICK_S
