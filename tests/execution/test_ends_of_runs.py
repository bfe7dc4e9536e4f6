"""Ends of runs in the heap of simulated hosts: one number each, in the order of times and then of jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shadowprice.execution.simulated_hosts import entry_of, job_of
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S

ENDS = st.tuples(st.integers(0, int(MAX_TIME_S) * TICKS_PER_S), st.integers(0, 2**32 - 1))


@given(ENDS, ENDS)
def test_entries_are_in_the_order_of_ends_and_then_of_jobs(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    entries = [entry_of(ticks * TICK_S, job) for ticks, job in (one, other)]
    assert (entries[0] < entries[1]) == (one < other)
    assert (entries[0] == entries[1]) == (one == other)
    assert [job_of(entry) for entry in entries] == [one[1], other[1]]
