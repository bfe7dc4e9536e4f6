"""The journal of a real run: what is answered again is what was answered first."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError, PolicyError
from shadowprice.hosts.live.lease import LeaseOutcome
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.live_hosts import HostEvents
from shadowprice.hosts.live.measuring import JobProgress
from shadowprice.hosts.live.replay import Journal

TIMES = st.floats(0, 2**32) | st.just(math.inf)
ROWS = st.integers(0, 2**31)
LISTS = st.lists(ROWS, max_size=3)
NAMES = st.lists(st.text(max_size=5), max_size=3)
PROGRESS = st.builds(
    JobProgress, ROWS, TIMES, TIMES, TIMES, ROWS, TIMES, ROWS, st.booleans(), TIMES
)
OUTCOMES = st.builds(LeaseOutcome, ROWS, TIMES, ROWS, ROWS, st.text(), TIMES, st.booleans())
EVENTS = st.builds(
    HostEvents,
    st.lists(PROGRESS, max_size=3),
    st.lists(OUTCOMES, max_size=3),
    st.lists(st.tuples(ROWS, st.text()), max_size=3),
    st.lists(st.tuples(ROWS, ROWS, ROWS), max_size=3),
    LISTS,
    NAMES,
    NAMES,
    LISTS,
)
ANSWERS: dict[type[Any], st.SearchStrategy[Any]] = {
    float: TIMES,
    tuple[int, list[str]]: st.tuples(ROWS, NAMES),
    JobProgress: PROGRESS,
    tuple[JobProgress, LeaseOutcome]: st.tuples(PROGRESS, OUTCOMES),
    HostEvents: EVENTS,
}


def never() -> Any:
    raise AssertionError("a recorded answer is made anew")


@given(st.lists(st.sampled_from(list(ANSWERS)), max_size=4), st.data())
def test_a_new_driver_is_given_the_answers_of_the_one_before(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[type[Any]], data: st.DataObject
) -> None:
    ledger = RunLedger.create(tmp_path_factory.mktemp("journal") / "run.db")
    answers = [data.draw(ANSWERS[kind]) for kind in kinds]
    first = Journal(ledger)
    for k, (kind, answer) in enumerate(zip(kinds, answers, strict=True)):
        assert first.ask(f"call {k}", kind, lambda answer=answer: answer) == answer
    read: list[None] = []
    ended: list[None] = []
    again = Journal(ledger, lambda: read.append(None), lambda: ended.append(None))
    for k, (kind, answer) in enumerate(zip(kinds, answers, strict=True)):
        assert again.ask(f"call {k}", kind, never) == answer
    assert (len(read), ended) == (len(kinds), [])
    assert again.ask("new", float, lambda: 1.0) == 1.0
    assert ended == [None]
    ledger.close()


@pytest.mark.parametrize(
    ("call", "kind", "error", "told"),
    [
        ("time", float, PolicyError, "the record says 'await', but the policy now leads to 'time'"),
        ("await", HostEvents, InputError, "the answer to 'await' is none: Expected `object`"),
        ("await", JobProgress, InputError, "resume with the program that began the run"),
    ],
)
def test_a_record_of_another_program_is_refused(
    tmp_path: Path, call: str, kind: type[Any], error: type[Exception], told: str
) -> None:
    ledger = RunLedger.create(tmp_path / "run.db")
    ledger.answer("await", 2.5)
    with pytest.raises(error, match=told) as caught:
        Journal(ledger).ask(call, kind, never)
    assert str(caught.value).startswith(f"{tmp_path / 'run.db'}: ")
    ledger.close()
