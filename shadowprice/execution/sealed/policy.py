"""A sealed policy: one whose code runs in a process of its own, and stands here as a policy like any other."""

from __future__ import annotations

import contextlib
import shutil
import sys
import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.sealed.answers import decision_of
from shadowprice.execution.sealed.changes import Changes
from shadowprice.execution.sealed.child import Assignment, Trials
from shadowprice.execution.sealed.limits import ProcessLimits
from shadowprice.execution.sealed.outline import outline
from shadowprice.execution.sealed.process import SealedProcess, in_one_line
from shadowprice.execution.sealed.protocol import (
    VERSION,
    Answer,
    Hello,
    Introduction,
    answer_of,
    encoded,
    introduction_of,
)
from shadowprice.execution.sealed.seal import Seal
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.policy import Decision, State
from shadowprice.user_code import code_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shadowprice.instances.instance import Instance
    from shadowprice.solvers.placement.protocol import Placement

BOOT = (
    "import sys; sys.path[:0] = [sys.argv.pop(1)]; "
    "from shadowprice.execution.sealed.child import main; main()"
)
"""Program of the process: this package, from where it is here."""
_NOT_READ = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors in reading a line that is no message."""


@dataclass(frozen=True)
class SealedOptions:
    """Options of a run that are the policy's to follow; one that does not take them refuses them.

    Parameters
    ----------
    predictor, placement : str, optional
        Names.
    samples : tuple of float, optional
        Sample of services [GPU-s], left aside by a policy that has no use for it.
    """

    predictor: str | None = None
    placement: str | None = None
    samples: tuple[float, ...] | None = None


class SealedPolicy:
    """A policy whose code runs in a process of its own, which gets what the policy may see as bytes.

    It never holds the workload: what is to come is not in its process, and it can reach no other. Each run has a
    fresh process, so that no run knows what an earlier one saw, unless it is told otherwise. A context manager;
    :meth:`close` ends the process.

    Parameters
    ----------
    policy : str or sequence of str
        A policy's name as options have it, ``mine.py:Widest``; or a command, program and arguments, that speaks the
        protocol (:mod:`shadowprice.execution.sealed.protocol`) on its input and output.
    limits : ProcessLimits, optional
    options : SealedOptions, optional
    allowed : collection of Knowledge, optional
        What it may declare; everything if not given.
    fresh_runs : bool
        Whether each run has a fresh process. Else one serves run after run, which takes milliseconds and not half a
        second, for searches among many small instances: who remembers earlier ones may do so there.

    Attributes
    ----------
    name : str
    knows : frozenset of Knowledge
    preemptive : bool
    seal : Seal
        What is enforced on this system.

    Raises
    ------
    InputError
        If there is no such policy, it does not take an option, or declares what is not allowed.
    PolicyError
        If its process cannot be started, ends, or answers otherwise than in the protocol.

    Examples
    --------
    >>> with SealedPolicy("fifo") as policy:
    ...     policy.name, sorted(policy.knows), policy.preemptive
    ('fifo', [], False)
    """

    def __init__(
        self,
        policy: str | Sequence[str],
        limits: ProcessLimits | None = None,
        *,
        options: SealedOptions | None = None,
        allowed: Collection[Knowledge] | None = None,
        fresh_runs: bool = True,
    ) -> None:
        self.limits, self._fresh_runs = limits or ProcessLimits(), fresh_runs
        self._assignment = _assignment(policy, self.limits, options or SealedOptions())
        self._what = policy if isinstance(policy, str) else " ".join(policy)
        self._process: SealedProcess | None = None
        self._fresh = self._serves = False
        self._changes: Changes | None = None
        self._last: Decision | None = None
        self.seal = Seal()
        said = self._start()
        self.name, self.knows, self.preemptive = said.name, frozenset(said.knows), said.preemptive
        self._introduction = said
        # Their presence says that it chooses so: see ChoosesNodes and ChoosesCpuMemory.
        if said.chooses_nodes:
            self.chooses_nodes = True
        if said.chooses_cpu_memory:
            self.chooses_cpu_memory = True
        refused = [] if allowed is None else sorted(self.knows - frozenset(allowed))
        if refused:
            self.close()
            raise InputError(
                f"policy {self._what!r}: declares that it knows {', '.join(refused)}, expected nothing but "
                f"{', '.join(sorted(allowed or ())) or 'the past'}"
            )

    @property
    def enforced(self) -> tuple[str, ...]:
        """Protections that are enforced, in words."""
        return tuple(map(str, self.seal.enforced))

    def begin(
        self,
        instance: Instance,
        placement: Placement,
        service_gpu_s: NDArray[np.float64] | None,
    ) -> None:
        """Engine: a run begins, in a fresh process unless one serves several and has answered until now.

        Raises
        ------
        InputError
            If the instance or the placement has what is not sent to sealed policies.
        """
        services = None if service_gpu_s is None else service_gpu_s.tolist()
        begin = outline(instance, sorted(self.knows), placement, services)
        if not (self._fresh or self._serves) and self._start() != self._introduction:
            raise PolicyError(f"{self.name}: introduces itself otherwise than before")
        self._fresh = False
        self._changes, self._last = Changes(instance, self.knows), None
        self._running().send(encoded(begin), self.limits.start_s)

    def decide(self, state: State) -> Decision:
        """Ask its process which jobs start and stop now."""
        if self._changes is None:
            raise PolicyError("a decision is asked for before a run begins")
        self._serves = False
        due = self._changes.since(state, self._last)
        line = self._running().ask(encoded(due), self.limits.decision_s)
        try:
            answer = answer_of(line)
        except _NOT_READ as error:
            raise _no_answer(line, error) from error
        self._last = decision_of(answer, state)
        self._serves = not self._fresh_runs
        return self._last

    def close(self) -> None:
        """End its process."""
        self._fresh = self._serves = False
        if self._process is not None:
            self._ending()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SealedPolicy({self._what!r})"

    def _running(self) -> SealedProcess:
        if self._process is None:
            raise PolicyError("its process was ended")
        return self._process

    def _start(self) -> Introduction:
        """A new process, and what its policy says of itself."""
        self.close()
        root = str(Path(__file__).resolve().parents[3])
        process = SealedProcess([sys.executable, "-I", "-c", BOOT, root])
        self._process = process
        self._ending = weakref.finalize(self, process.close)
        try:
            # Not as an argument, of which others may see what it is and the system may find it too long.
            trials = process.ask(encoded(self._assignment), self.limits.start_s)
            self.seal = Seal.of(msgspec.json.decode(trials, type=Trials).seal)
            line = process.ask(encoded(Hello()), self.limits.start_s)
            said = self._introduced(line)
        except (PolicyError, *_NOT_READ) as error:
            self.close()
            raise PolicyError(f"policy {self._what!r}: {error}") from error
        self._fresh = True
        return said

    def _introduced(self, line: bytes) -> Introduction:
        try:
            said = introduction_of(line)
        except _NOT_READ as error:
            trouble = Answer()
            with contextlib.suppress(*_NOT_READ):
                trouble = answer_of(line)
            self.close()
            if trouble.error is not None:
                raise InputError(in_one_line(trouble.error)[:1000]) from None
            raise _no_answer(line, error) from error
        if said.version != VERSION:
            raise PolicyError(f"speaks version {said.version}, expected {VERSION}")
        return said


def _assignment(
    policy: str | Sequence[str], limits: ProcessLimits, options: SealedOptions
) -> Assignment:
    if isinstance(policy, str):
        files = [Path(each).expanduser().absolute() for each in code_in(policy)]
        siblings = [each for file in files for each in sorted(file.parent.glob("*.py"))]
        return Assignment(
            limits=limits,
            files=tuple(dict.fromkeys(map(str, (*files, *siblings)))),
            policy=code_from_here(policy),
            predictor=options.predictor,
            placement=options.placement,
            samples=options.samples,
        )
    command = [_absolute(each) for each in policy]
    program = shutil.which(command[0]) if command else None
    if program is None:
        raise InputError(f"command {' '.join(policy)!r}: expected a program that can be run")
    command[0] = str(Path(program).absolute())
    real = [Path(each).resolve() for each in command if each.startswith("/")]
    files = [each for each in real if each.is_file()]
    return Assignment(limits=limits, files=tuple(map(str, files)), command=tuple(command))


def code_from_here(policy: str) -> str:
    """A policy's name with absolute paths: its process is elsewhere."""
    from shadowprice.user_code import code_from

    return code_from(policy, Path.cwd())


def _absolute(argument: str) -> str:
    """An argument that names a file here, as an absolute path."""
    return str(Path(argument).absolute()) if Path(argument).is_file() else argument


def _no_answer(line: bytes, error: Exception) -> PolicyError:
    text = in_one_line(line.decode("utf-8", "replace"))
    return PolicyError(f"its process answers {text[:80]!r}: {error}")
