"""Answers of sealed policies: written from a decision, and carried over to the engine's, by the same public methods.

The engine's side trusts nothing: whatever an answer says is done by the methods of :class:`Decision` or refused, and
the decision is then checked as that of any policy.
"""

from __future__ import annotations

import math
from typing import Any

from shadowprice.errors import PolicyError
from shadowprice.execution.sealed.process import in_one_line
from shadowprice.execution.sealed.protocol import Answer, Change, Pieces, Start
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.application import Batching
from shadowprice.instances.schedule import ALONE
from shadowprice.solvers.policy import Decision
from shadowprice.solvers.state import State


def written_answer(decision: Decision, state: State) -> Answer:
    """Answer that says what a decision does."""
    fields: dict[int, dict[Feature, Any]] = decision.fields or {}
    starts: list[Start] = []
    begun: set[int] = set()
    for job, pieces in decision.starts.items():
        its = fields.get(job, {})
        partner = its.get(Feature.SHARING, ALONE)
        # Of two that start together the second joins the first.
        joins = partner != ALONE and (partner in begun or partner not in decision.starts)
        starts.append(_written_start(job, pieces, its, partner if joins else None))
        begun.add(job)
    goes_on = state.running.keys() - begun - set(decision.stops)
    changes = (_written_change(job, its) for job, its in fields.items() if job in goes_on)
    return Answer(
        stop=tuple(decision.stops),
        start=tuple(starts),
        change=tuple(each for each in changes if each is not None),
        wake_s=None if decision.wake_s == math.inf else decision.wake_s,
        touched=tuple(fields),
    )


def _written_start(
    job: int, pieces: Pieces, fields: dict[Feature, Any], partner: int | None
) -> Start:
    mapping, batch = fields.get(Feature.GRAPHS), fields.get(Feature.GOODPUT)
    return Start(
        job=job,
        pieces=None if mapping is not None else pieces,
        partner=partner,
        cpu_memory=fields.get(Feature.PROFILES),
        mapping=mapping,
        batching=None if batch is None else tuple(batch.batching),
    )


def _written_change(job: int, fields: dict[Feature, Any]) -> Change | None:
    """Change of a job that goes on; None if it only has another partner."""
    cpu_memory, batch = fields.get(Feature.PROFILES), fields.get(Feature.GOODPUT)
    if cpu_memory is None and batch is None:
        return None
    return Change(
        job=job, cpu_memory=cpu_memory, batching=None if batch is None else tuple(batch.batching)
    )


def decision_of(answer: Answer, state: State) -> Decision:
    """Decision that an answer says, about the engine's state.

    Raises
    ------
    PolicyError
        If the answer is an error, or something in it is impossible.
    """
    if answer.error is not None:
        raise PolicyError(in_one_line(answer.error)[:1000])
    decision = Decision(state)
    for job in answer.stop:
        decision.stop(job)
    for start in answer.start:
        _start(decision, start, state)
    for change in answer.change:
        _change(decision, change)
    if answer.wake_s is not None:
        decision.wake_at(answer.wake_s)
    if answer.touched and decision.fields is not None:
        order = dict.fromkeys((*answer.touched, *decision.fields))
        decision.fields = {job: decision.fields[job] for job in order if job in decision.fields}
    return decision


def _start(decision: Decision, start: Start, state: State) -> None:
    job = start.job
    state.require_arrived(job)
    if job in decision.starts:
        raise PolicyError(f"job {job} is started twice at {state.now_s} s")
    if start.partner is not None:
        done, where = decision.join(job, start.partner, start.cpu_memory), f"beside {start.partner}"
    elif start.mapping is not None:
        done, where = decision.start_mapped(job, start.mapping), f"as {start.mapping}"
    elif start.pieces is not None:
        _expect_pieces(job, start, state)
        done, where = decision.start_at(job, start.pieces, start.cpu_memory), f"on {start.pieces}"
    else:
        done = decision.start(job) if start.pool is None else decision.start_on(job, start.pool)
        if not done:
            return
        where = ""
    if not done:
        raise PolicyError(f"job {job} is started {where}, which is not free or has no room for it")
    if start.batching is not None:
        decision.train(job, Batching(*start.batching))


def _expect_pieces(job: int, start: Start, state: State) -> None:
    """Refuse nodes that there are not: a ledger counts whatever it is asked."""
    pieces, nodes = start.pieces or (), state.nodes
    places = [node for node, gpus in pieces if 0 <= node < nodes and gpus > 0]
    cpu_memory = start.cpu_memory
    if not pieces or len(places) < len(pieces) or len(set(places)) < len(places):
        raise PolicyError(
            f"job {job} is started on {start.pieces}, expected different nodes of 0 to {nodes - 1} with at least one "
            "GPU each"
        )
    if cpu_memory is not None and (not state.profiled or len(cpu_memory) != len(pieces)):
        raise PolicyError(f"job {job} is given CPUs and memory {cpu_memory} on nodes {pieces}")


def _change(decision: Decision, change: Change) -> None:
    if (
        change.cpu_memory is not None
        and decision.of(Feature.PROFILES).get(change.job) != change.cpu_memory
    ):
        decision.adjust(change.job, change.cpu_memory)
    if change.batching is not None:
        decision.train(change.job, Batching(*change.batching))
