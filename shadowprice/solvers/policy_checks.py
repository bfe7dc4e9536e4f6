"""Mistakes of a policy, each one sentence: that it is none, or that what it decides cannot be carried out.

Whoever runs a policy asks it through :func:`decide`, before anything of the decision is carried out or
written down.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from shadowprice.errors import InputError, PolicyError, ShadowpriceError
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State
from shadowprice.user_code import file_of, sentence

_ATTRIBUTES = ("name", "knows", "preemptive", "decide")


def expect_policy(thing: object, what: str = "policy") -> Policy:
    """The same object, if it is a policy.

    Parameters
    ----------
    what : str
        What it is called in messages.

    Raises
    ------
    InputError
        If it is a class, lacks one of ``name``, ``knows``, ``preemptive`` and ``decide``, or one of
        them is of another type than expected.
    """
    told: Any = thing
    if isinstance(thing, type):
        raise InputError(
            f"{what}: got the class {thing.__name__}, expected a policy: an object of it, such as "
            f"{thing.__name__}()"
        )
    missing = [name for name in _ATTRIBUTES if not hasattr(thing, name)]
    if missing:
        raise InputError(
            f"{what}: {_shown(thing)} has no {', '.join(missing)}, expected a policy: an object with "
            f"{', '.join(_ATTRIBUTES[:-1])} and {_ATTRIBUTES[-1]}"
        )
    if not isinstance(told.name, str) or not told.name:
        raise InputError(f"{what}: name of {_shown(thing)} is {told.name!r}, expected a text")
    what = what if what.endswith(repr(told.name)) else f"{what}: {told.name}"
    if not isinstance(told.preemptive, bool):
        raise InputError(f"{what}: preemptive is {told.preemptive!r}, expected True or False")
    known = isinstance(told.knows, frozenset) and all(isinstance(k, Knowledge) for k in told.knows)
    if not known:
        raise InputError(f"{what}: knows is {told.knows!r}, expected a frozenset of Knowledge")
    if not callable(told.decide):
        raise InputError(f"{what}: decide is {told.decide!r}, expected a method")
    policy: Policy = told
    return policy


def decide(policy: Policy, state: State) -> Decision:
    """Decision of a policy about a state, checked; O(starts and stops).

    Raises
    ------
    PolicyError
        With the policy's name, the time and what was expected: it raised an error of its own, returned
        no decision, or decided what cannot be carried out.
    """
    free = state.allocator.free_gpus
    try:
        decision = policy.decide(state)
    except PolicyError as error:
        raise _mistake(policy, state, str(error)) from error
    except ShadowpriceError:
        raise
    except Exception as error:
        raise _mistake(policy, state, sentence(error, file_of(policy))) from error
    if not isinstance(decision, Decision):
        raise _mistake(policy, state, f"decide returned {_shown(decision)}, expected a Decision")
    check_decision(policy, state, decision, free)
    return decision


def check_decision(policy: Policy, state: State, decision: Decision, free: int) -> None:
    """Refuse a decision that cannot be carried out.

    Parameters
    ----------
    free : int
        GPUs that were free before anything was decided.

    Raises
    ------
    PolicyError
        With the policy's name, the time and what was expected.
    """
    if not decision.wake_s > state.now_s:
        raise _mistake(
            policy, state, f"asks to be woken at {decision.wake_s} s, expected a later time"
        )
    if decision.stops:
        _check_stops(policy, state, decision)
    if decision.starts or decision.stops or state.allocator.free_gpus != free:
        _check_starts(policy, state, decision, free)


def _check_stops(policy: Policy, state: State, decision: Decision) -> None:
    if not policy.preemptive:
        raise _mistake(
            policy,
            state,
            f"preempts job {_job(state, decision.stops[0])}, but declares preemptive = False",
        )
    if len(set(decision.stops)) < len(decision.stops):
        twice = next(job for job in decision.stops if decision.stops.count(job) > 1)
        raise _mistake(
            policy, state, f"stops job {_job(state, twice)} twice, expected once at most"
        )


def _check_starts(policy: Policy, state: State, decision: Decision, free: int) -> None:
    """Check that jobs wait, and that the GPUs of starts and stops are those taken and given back."""
    waiting, nodes, stopped = state.waiting, state.nodes, set(decision.stops)
    for job, pieces in decision.starts.items():
        if job not in waiting and job not in stopped:
            raise _mistake(
                policy,
                state,
                f"starts job {_job(state, job)}, which {_why(state, job)}; expected one that waits",
            )
        for node, gpus in pieces:
            if not 0 <= node < nodes or not gpus > 0:
                raise _mistake(
                    policy,
                    state,
                    f"starts job {_job(state, job)} on {gpus} GPUs of node {node}, expected at least "
                    f"one GPU of a node from 0 to {nodes - 1}",
                )
            free -= gpus
    if state.sharing or state.allocator.in_parts:
        # Who joins others on a GPU takes none, and who leaves them gives none back.
        return
    for job in decision.stops:
        for _, gpus in state.running[job]:
            free += gpus
    if free != state.allocator.free_gpus:
        raise _mistake(
            policy,
            state,
            f"{state.allocator.free_gpus} GPUs are free after its decision, whose starts and stops leave "
            f"{free}; expected each to be made by a method of the one Decision that it returns",
        )


def _mistake(policy: Policy, state: State, sentence_: str) -> PolicyError:
    return PolicyError(f"{policy.name} at {state.now_s} s: {sentence_}")


def _job(state: State, job: int) -> str:
    """A job's name; its number if there is none of this number."""
    arrived = 0 <= job < len(state.gang)
    return repr(state.columns([job]).id[0]) if arrived else str(job)


def _why(state: State, job: int) -> str:
    """Reason why a job does not wait."""
    if not 0 <= job < len(state.gang):
        return "has not arrived"
    return "already runs" if job in state.running else "has finished"


def _shown(thing: object) -> str:
    """A value for a message: short, on one line."""
    if type(thing).__repr__ is object.__repr__:
        return f"an object of {type(thing).__name__}"
    if isinstance(thing, FunctionType | BuiltinFunctionType | MethodType):
        return f"the function {thing.__name__}"
    text = " ".join(repr(thing).split())
    kind = "" if thing is None else f" ({type(thing).__name__})"
    return (text if len(text) <= 60 else f"{text[:57]}...") + kind
