"""Process of a sealed policy: it confines itself, then loads the policy, then answers messages.

``python -I`` runs :func:`main`, which reads an :class:`Assignment` from its first line of input. Before it runs any
code that is not ours it says on its output what is enforced (:class:`Trials`), by which the other side knows that this
came from here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec
import numpy as np
from msgspec import Struct

from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.execution.sealed.answers import written_answer
from shadowprice.execution.sealed.confinement import Needs, confine, trials
from shadowprice.execution.sealed.limits import ProcessLimits
from shadowprice.execution.sealed.mirror import Mirror
from shadowprice.execution.sealed.protocol import (
    VERSION,
    Answer,
    Begin,
    Due,
    Hello,
    Introduction,
    encoded,
    message_of,
)
from shadowprice.execution.sealed.seal import Protection
from shadowprice.solvers.policy import ChoosesCpuMemory, ChoosesNodes, Decision, Policy
from shadowprice.user_code import file_of, sentence


class Assignment(Struct, frozen=True, kw_only=True):
    """Purpose of a process.

    Parameters
    ----------
    limits : ProcessLimits
    files : tuple of str
        Files that it may read.
    policy : str
        Name of a policy, as options have it; empty for a command.
    predictor, placement : str, optional
        Options of the run that are the policy's.
    samples : tuple of float, optional
        Sample of services [GPU-s].
    command : tuple of str
        Command that is run instead.
    """

    limits: ProcessLimits
    files: tuple[str, ...] = ()
    policy: str = ""
    predictor: str | None = None
    placement: str | None = None
    samples: tuple[float, ...] | None = None
    command: tuple[str, ...] = ()


class Trials(Struct, frozen=True):
    """First line of a process: each protection, and whether it is enforced."""

    seal: dict[Protection, bool]


def main() -> None:
    """Confine this process, then run a command or answer for a policy."""
    assignment = msgspec.json.decode(sys.stdin.buffer.readline(), type=Assignment)
    needs = Needs(tuple(map(Path, assignment.files)), bool(assignment.command))
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    confine(assignment.limits, needs)
    _say(out, encoded(Trials(trials(assignment.limits, needs))))
    if assignment.command:
        _become(assignment.command)
    # What a policy prints is no message.
    os.dup2(2, 1)
    Answering(assignment, out).loop()


def _become(command: tuple[str, ...]) -> NoReturn:
    try:
        os.execv(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror or error}", file=sys.stderr)
        sys.exit(1)


class Answering:
    """Answers of one policy to the messages of its runs.

    Parameters
    ----------
    assignment : Assignment
    out : binary file
        Where answers go.
    """

    def __init__(self, assignment: Assignment, out: BinaryIO) -> None:
        self._assignment, self._out = assignment, out
        self._policy: Policy | None = None
        self._mirror: Mirror | None = None
        self._trouble = ""

    def loop(self) -> None:
        """Answer until there are no more messages."""
        for line in sys.stdin.buffer:
            message = message_of(line)
            if isinstance(message, Hello):
                _say(self._out, self._introduced())
            elif isinstance(message, Begin):
                self._begin(message)
            else:
                _say(self._out, encoded(self._answer(message)))

    def _introduced(self) -> bytes:
        try:
            self._policy = policy = _loaded(self._assignment)
        except (ShadowpriceError, ImportError, OSError) as error:
            return encoded(Answer(error=str(error) or type(error).__name__))
        return encoded(
            Introduction(
                version=VERSION,
                name=policy.name,
                knows=tuple(sorted(policy.knows)),
                preemptive=policy.preemptive,
                chooses_nodes=isinstance(policy, ChoosesNodes),
                chooses_cpu_memory=isinstance(policy, ChoosesCpuMemory),
            )
        )

    def _begin(self, begin: Begin) -> None:
        self._mirror, self._trouble = None, ""
        try:
            self._mirror = Mirror(begin)
        except ShadowpriceError as error:
            self._trouble = str(error)

    def _answer(self, due: Due) -> Answer:
        """Decision about the state as it is now, or one sentence why there is none."""
        policy, mirror = self._policy, self._mirror
        if policy is None or mirror is None:
            return Answer(error=self._trouble or "a decision is asked for before a run begins")
        state = mirror.advance(due)
        try:
            decision: Any = policy.decide(state)
        except ShadowpriceError as error:
            return Answer(error=str(error))
        except Exception as error:
            return Answer(error=sentence(error, file_of(policy)))
        if not isinstance(decision, Decision):
            return Answer(error=f"decide returned {decision!r:.60}, expected a Decision")
        mirror.decided(decision)
        return written_answer(decision, state)


def _loaded(assignment: Assignment) -> Policy:
    """The policy with its options.

    Raises
    ------
    InputError
        If there is none of this name, or it does not take an option.
    """
    from shadowprice.solvers.registry import configured, taken
    from shadowprice.solvers.registry import policy as policy_by_name
    from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution

    policy = policy_by_name(assignment.policy)
    wanted: dict[str, Any] = {
        "predictor": assignment.predictor,
        "placement": assignment.placement,
    }
    given = {name: value for name, value in wanted.items() if value}
    takes = taken(policy, (*wanted, "samples"))
    for name, value in given.items():
        if name not in takes:
            raise InputError(f"policy {policy.name!r} takes no {name}, got {value!r}")
    if assignment.samples is not None and "samples" in takes:
        given["samples"] = ServiceDistribution(np.array(assignment.samples))
    return configured(policy, given)


def _say(out: BinaryIO, line: bytes) -> None:
    left = memoryview(line + b"\n")
    while left:
        left = left[out.write(left) :]
