"""Mistakes of policies: each is one sentence with the policy's name and the time, whatever it does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InputError, PolicyError, VerificationError
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State
from shadowprice.solvers.policy_checks import expect_policy
from shadowprice.solvers.price_log import KeepsPrices, PriceLog
from shadowprice.solvers.registry import name_with_parameters, policies, policy, registered_name

JOBS = Workload.from_columns(
    id=["a", "b", "c", "d"], arrival_s=[0, 1, 2, 50], gpus=[1, 2, 2, 1], work=[20, 20, 5, 5]
)
CLUSTER = "2x2"
Write = Callable[[State, Decision], object]


class Own:
    """Starts all that fits, after something else."""

    name = "own"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: Any = True

    def __init__(self, write: Write | None = None, *, preemptive: bool = True) -> None:
        self.write = write
        self.preemptive = preemptive

    def decide(self, state: State) -> Any:
        decision = Decision(state)
        if self.write is None:
            return decision.start_all()
        found = self.write(state, decision)
        return decision if found is None else found


def after(time_s: float, write: Write) -> Write:
    """Start all that fits, and from a time on do something else."""

    def both(state: State, decision: Decision) -> object:
        if state.now_s >= time_s:
            return write(state, decision)
        decision.start_all()
        return None

    return both


def done(*calls: object) -> None:
    """Nothing: the decision is the one that the calls wrote."""


def stop_all(state: State, decision: Decision) -> None:
    for job in list(state.running):
        decision.stop(job)


def waste(state: State, decision: Decision) -> Decision:
    """Reserve GPUs in one decision and return another one."""
    decision.start_all()
    return Decision(state)


MISTAKES: dict[str, tuple[Write, str]] = {
    "None": (lambda s, d: False, r"decide returned False \(bool\), expected a Decision"),
    "another type": (
        lambda s, d: [1, 2],
        r"decide returned \[1, 2\] \(list\), expected a Decision",
    ),
    "row 999": (
        lambda s, d: done(d.start(999)),
        "asks for job 999 at 0.0 s, but only jobs 0 to 0",
    ),
    "row -1": (lambda s, d: done(d.start(-1)), "starts job -1, which has not arrived"),
    "a job to come": (
        lambda s, d: done(d.start(3)),
        "asks for job 3 at 0.0 s, but only jobs 0 to 0",
    ),
    "a job that runs": (
        after(1.0, lambda s, d: done(d.start(0))),
        "starts job 'a', which already runs; expected one that waits",
    ),
    "a job that is over": (
        after(25.0, lambda s, d: done(d.start(0))),
        "starts job 'a', which has finished; expected one that waits",
    ),
    "twice": (lambda s, d: done(d.start(0), d.start(0)), "job ('a'|0).* twice"),
    "stopping twice": (
        after(1.0, lambda s, d: done(d.stop(0), d.stop(0))),
        "(stops job 'a' twice|job 0 is stopped)",
    ),
    "stopping who waits": (lambda s, d: d.stop(0), "job 0 is stopped, but does not run"),
    "no such node": (
        lambda s, d: done(d.start_at(0, ((9, 1),))),
        r"test_policy_checks\.py, line \d+: IndexError",
    ),
    "a node from behind": (
        lambda s, d: done(d.start_at(0, ((-1, 1),))),
        "starts job 'a' on 1 GPUs of node -1, expected at least one GPU of a node from 0 to 1",
    ),
    "no GPUs": (
        lambda s, d: done(d.start_at(0, ((0, 0),))),
        "starts job 'a' on 0 GPUs of node 0, expected at least one GPU of a node from 0 to 1",
    ),
    "a decision not returned": (
        waste,
        "3 GPUs are free after its decision, whose starts and stops leave 4; expected each to be made "
        "by a method of the one Decision that it returns",
    ),
    "stops by hand": (
        after(1.0, lambda s, d: d.stops.append(0)),
        "GPUs are free after its decision, whose starts and stops leave",
    ),
    "waking in the past": (
        lambda s, d: done(d.start_all(), d.wake_at(s.now_s - 1.0)),
        r"asks to be woken at -1\.0 s, expected a later time",
    ),
    "waking now": (lambda s, d: d.wake_at(s.now_s), "asks to be woken at 0.0 s, expected a later"),
    "waking at no time": (
        lambda s, d: setattr(d, "wake_s", math.nan),
        "asks to be woken at nan s, expected a later time",
    ),
    "reading what it did not declare": (
        lambda s, d: done(s.live().remaining_s),
        "reads 'duration', but declares that it knows nothing",
    ),
    "an error of its own": (
        lambda s, d: {}["none"],
        r"test_policy_checks\.py, line \d+: KeyError: 'none'",
    ),
    "an error without a message": (
        lambda s, d: next(iter(())),
        r"test_policy_checks\.py, line \d+: StopIteration$",
    ),
    "never deciding": (
        lambda s, d: None,
        "leaves 4 jobs waiting for ever with 4 of 4 GPUs free, the first is 'a' .1 GPUs.; expected a "
        "start, or a time to be woken at",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_one_sentence_with_name_and_time(what: str) -> None:
    write, message = MISTAKES[what]
    with pytest.raises(PolicyError, match=rf"^own at \d+\.\d s: .*{message}") as caught:
        simulate(JOBS, CLUSTER, Own(write))
    assert "\n" not in str(caught.value)


def test_who_declares_that_it_does_not_preempt_may_not() -> None:
    bad = after(1.0, stop_all)
    with pytest.raises(PolicyError, match=r"own at 1\.0 s: preempts job 'a', but declares preempt"):
        simulate(JOBS, CLUSTER, Own(bad, preemptive=False))
    assert simulate(JOBS, CLUSTER, Own(preemptive=False)).summary()["completed"] == 4


def test_more_gpus_than_are_free_are_refused() -> None:
    told = []

    def greedy(state: State, decision: Decision) -> None:
        told.append(decision.start_at(0, ((0, 3),)))
        decision.start_all()

    simulate(JOBS.select(JOBS.gpus == 1), "1x2", Own(greedy))
    assert not any(told)


@dataclass
class Lacking:
    """A policy of the attributes that are given."""

    given: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("given", {}):
            return self.given[name]
        raise AttributeError(name)


GOOD = {"name": "own", "knows": frozenset(), "preemptive": False, "decide": Own().decide}


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (Own, r"got the class Own, expected a policy: an object of it, such as Own\(\)"),
        (7, r"7 \(int\) has no name, knows, preemptive, decide, expected a policy"),
        (object(), "an object of object has no name"),
        *(
            (Lacking({k: v for k, v in GOOD.items() if k != name}), f"has no {name}, expected")
            for name in GOOD
        ),
        (Lacking({**GOOD, "name": 3}), "is 3, expected a text"),
        (Lacking({**GOOD, "name": ""}), "is '', expected a text"),
        (Lacking({**GOOD, "knows": {"duration"}}), "own: knows is .*, expected a frozenset"),
        (Lacking({**GOOD, "knows": frozenset({"all"})}), "own: knows is .*, expected a frozenset"),
        (Lacking({**GOOD, "preemptive": "no"}), "own: preemptive is 'no', expected True or False"),
        (Lacking({**GOOD, "decide": 3}), "own: decide is 3, expected a method"),
    ],
)
def test_what_is_no_policy_is_refused(thing: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        simulate(JOBS, CLUSTER, thing)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=message):
        expect_policy(thing)


# Whatever is written into decisions, a run ends well or with one sentence.

JOB = st.integers(-2, 5)
PIECES = st.lists(st.tuples(st.integers(-2, 3), st.integers(-1, 3)), max_size=3).map(tuple)
TIMES = st.one_of(st.floats(-5.0, 100.0), st.sampled_from([math.nan, math.inf, -math.inf]))
CALLS = st.one_of(
    st.tuples(st.sampled_from(["start", "stop", "resume_in_place"]), st.tuples(JOB)),
    st.tuples(st.just("start_on"), st.tuples(JOB, st.integers(-1, 2))),
    st.tuples(st.just("start_at"), st.tuples(JOB, PIECES)),
    st.tuples(st.just("join"), st.tuples(JOB, JOB)),
    st.tuples(st.just("adjust"), st.tuples(JOB, st.just(((1.0, 1.0),)))),
    st.tuples(st.just("wake_at"), st.tuples(TIMES)),
    st.tuples(st.just("start_all"), st.just(())),
    st.tuples(st.just("reserve_and_forget"), st.just(())),
)


@given(
    decisions=st.lists(st.lists(CALLS, max_size=4), max_size=8),
    preemptive=st.booleans(),
    round_s=st.sampled_from([0.0, 7.0]),
)
def test_any_calls_end_well_or_in_one_sentence(
    decisions: list[list[tuple[str, tuple[Any, ...]]]], preemptive: bool, round_s: float
) -> None:
    left = list(decisions)

    def write(state: State, decision: Decision) -> None:
        if not left:
            decision.start_all()
            return
        for call, words in left.pop(0):
            if call == "reserve_and_forget":
                Decision(state).start_all()
            else:
                getattr(decision, call)(*words)

    sentence, completed = "own at ", len(JOBS)
    try:
        outcome = simulate(
            JOBS, CLUSTER, Own(write, preemptive=preemptive), RunOptions(round_s=round_s)
        )
        completed = len(outcome.jct_s)
    except PolicyError as error:
        sentence = str(error)
    except VerificationError as error:
        sentence += str(error)
    event(sentence.partition(": ")[0] if sentence == "own at " else "refused")
    assert sentence.startswith("own at ")
    assert "\n" not in sentence
    assert completed == len(JOBS)


# Names with parameters are read back.


@st.composite
def configured(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(["las", "las2d", "gavel", "hadar", "fifo", "asrpt", "drf"]))
    texts = {
        "las": st.floats(1.0, 1e6).map(lambda x: f"quantum_s={x!r}"),
        "las2d": st.floats(1.0, 1e6).map(lambda x: f"thresholds_gpu_s={x!r}/{2 * x!r}"),
        "gavel": st.sampled_from(["isolated", "allocation=pop:parts=4", "seed=3,round_s=60"]),
        "hadar": st.integers(1, 9999).map(lambda x: f"round_s={x!r}"),
        "asrpt": st.sampled_from(["predictor=median", "predictor=noisy:2"]),
        "drf": st.integers(1, 9999).map(lambda x: f"round_s={x!r}"),
    }
    given_ = draw(st.one_of(st.just(""), texts.get(name, st.just(""))))
    return policy(f"{name}:{given_}" if given_ else name)


@given(configured())
def test_a_name_with_its_parameters_is_that_of_an_equal_policy(found: Any) -> None:
    assert policy(name_with_parameters(found)) == found
    assert registered_name(found) == name_with_parameters(found)


def test_names_of_policies_as_they_are_have_no_parameters() -> None:
    assert {name_with_parameters(each) for each in policies().values()} == set(policies())


@pytest.mark.parametrize("name", ["hadar", "hadar-committed", "hadar:round_s=9.0"])
def test_a_log_of_prices_is_no_part_of_a_name(name: str) -> None:
    keeping = cast("KeepsPrices", policy(name)).keeping(PriceLog())
    assert name_with_parameters(cast("Policy", keeping)) == name


def test_a_policy_of_ones_own_has_no_registered_name() -> None:
    own = Own()
    own.name = "fifo"
    assert name_with_parameters(own) == "fifo"
    assert registered_name(own) is None
