"""Runs in the compiled loop: which ones it serves, and how one is carried out.

It serves policies that offer an index, jobs that run as one gang, alone, and the placements ``count``,
``consolidate`` and ``pack``, with any charges, rounds, GPU types and quotas, to the last job or to the end of a window
of jobs. From
:data:`WORTHWHILE_JOBS` jobs on it is used instead of the engine: loading compiled code costs as much as the
engine needs for so many. Schedules are the same, row by row.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from functools import cache
from io import StringIO
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.execution.engine import EngineRun, Rounds
from shadowprice.execution.engine import run as run_in_engine
from shadowprice.execution.job_window import WindowProgress
from shadowprice.instances.features import Feature, missing
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.index_policy import (
    PREEMPTIVE_RULES,
    HasIndex,
    IndexedJob,
    JobIndex,
    Measure,
    QueueRule,
    Ties,
    WhileRunning,
    same_key,
)
from shadowprice.solvers.placement.consolidated import Consolidate, Pack
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Knowledge, Policy

if TYPE_CHECKING:
    from shadowprice.execution.kernel.arrays import Arrays
    from shadowprice.execution.kernel.loop import Loop
    from shadowprice.execution.kernel.predicting import Predictions
    from shadowprice.execution.kernel.stored_code import StoredCode
    from shadowprice.execution.watch import Watch
    from shadowprice.instances.instance import Instance
    from shadowprice.solvers.placement.protocol import Placement

KNOWS = frozenset({Feature.RATES, Feature.TYPES, Feature.CHARGES, Feature.QUOTAS, Feature.WINDOW})
"""Features of instances that the compiled loop serves; the engine runs the others."""

LIMITS = frozenset({Feature.TYPES, Feature.QUOTAS})
"""Features by which a free GPU is not one for everybody."""

MOST_POOLS = 3
"""GPU types up to which the compiled loop counts the work of jobs that stop."""

WORTHWHILE_JOBS = 2000
"""Jobs from which on a run is worth loading compiled code."""

ENGINE = "engine"
"""The loop that runs every policy."""

_MOST_GPUS = 2**20
_MOST_IN_SETS = 2**30
"""Nodes times their GPUs: bits of the sets in which consolidated placements look for nodes."""
_ROWS_AT_A_TIME = 2**16
_EXACT_GPU_S = 2.0**33


def run_fastest(
    instance: Instance,
    policy: Policy,
    *,
    placement: Placement | None = None,
    rounds: Rounds | None = None,
    least_jobs: int = WORTHWHILE_JOBS,
    watch: Watch | None = None,
) -> EngineRun:
    """Run a policy in the compiled loop if that serves the run, else in the engine.

    Parameters
    ----------
    placement, rounds, watch
        As :func:`shadowprice.execution.engine.run` takes them.
    least_jobs : int
        Jobs from which on the compiled loop is used.

    Raises
    ------
    InputError, PolicyError
        As the engine does; also if a key is not a number or cannot be compiled.
    """
    where, when = placement or Count(), rounds or Rounds()
    index = None
    if len(instance.workload) >= least_jobs and serves(instance, where):
        index = _index_served(instance, policy)
    if index is None or not has_compiler():
        return run_in_engine(instance, policy, placement=where, rounds=when, watch=watch)
    compiled = CompiledRun(instance, policy, index, where, when)
    try:
        schedule = schedule_of(np.concatenate(list(compiled.rows(watch))))
    except NotServed:
        # The engine says what is wrong, or knows larger numbers.
        return run_in_engine(instance, policy, placement=where, rounds=when, watch=watch)
    return EngineRun(compiled.instance, schedule, compiled.decisions, compiled.cpu_s, policy.name)


def runs_compiled(instance: Instance, policy: Policy, placement: Placement) -> JobIndex | None:
    """The index with which the compiled loop runs a policy to the end, None if it cannot or may not.

    Whatever the number of jobs. With predictions it may not: they may be too large for it.
    """
    if not serves(instance, placement) or not has_compiler():
        return None
    index = _index_served(instance, policy)
    return None if index is None or index.virtual is not None else index


def serves(instance: Instance, placement: Placement) -> bool:
    """True if the compiled loop can run an instance with this placement, whatever the policy."""
    plain = not missing(instance, KNOWS)
    known = placement == Count() or placement == Consolidate() or placement == Pack()
    gpus = instance.cluster.gpus_per_node
    pools = len(instance.pools.names)
    in_sets = placement != Count() and pools * len(gpus) * int(gpus.max()) > _MOST_IN_SETS
    return plain and known and not in_sets and instance.cluster.total_gpus <= _MOST_GPUS


def _index_served(instance: Instance, policy: Policy) -> JobIndex | None:
    """The index of a policy, if its rule goes with what the instance says."""
    if instance.until_complete is not None and Knowledge.DISTRIBUTION in policy.knows:
        return None
    index = index_of(instance, policy)
    if index is None:
        return None
    # Works on the virtual machine are predicted in seconds.
    by_rates = index.virtual is not None and Feature.RATES in instance.features
    mixed = index.rule in PREEMPTIVE_RULES and len(instance.pools.names) > MOST_POOLS
    filling = index.rule is QueueRule.FILLS and instance.features & LIMITS
    return None if by_rates or mixed or filling else index


def index_of(instance: Instance, policy: Policy) -> JobIndex | None:
    """The index of a policy about an instance; None if it has none."""
    if not offers_index(policy):
        return None
    assert isinstance(policy, HasIndex)
    service_gpu_s = None
    if Knowledge.DISTRIBUTION in policy.knows:
        service_gpu_s = np.sort(instance.workload.gpus * instance.shortest_s)
    index = policy.job_index(service_gpu_s)
    if index is not None and (index.rule in PREEMPTIVE_RULES) != policy.preemptive:
        raise PolicyError(
            f"{policy.name}: declares preemptive = {policy.preemptive}, but its index has the rule "
            f"{str(index.rule)!r}"
        )
    return index


def offers_index(policy: object) -> bool:
    """True if the class of a policy says itself what its index is.

    One that inherits the index of another may decide otherwise than that.
    """
    return "job_index" in vars(type(policy))


def loop_of(policy: object) -> str:
    """Loop that runs a policy where the compiled one serves: ``engine``, or the rule of its index."""
    if not offers_index(policy):
        return ENGINE
    assert isinstance(policy, HasIndex)
    index = policy.job_index(np.ones(1))
    return ENGINE if index is None else f"compiled, {index.rule}"


RULE = (
    f"From {WORTHWHILE_JOBS:,} jobs on, policies with an index run in the compiled loop if jobs run as whole gangs "
    "without graphs and conditions, share nothing, lose nothing when they stop, and ask for nothing but GPUs, nodes do "
    "not fail, and the placement is count, consolidate or pack; of policies that stop jobs on up to "
    f"{MOST_POOLS} GPU types, of server-filling-srpt on GPUs of one speed without quotas, of asrpt with run times. All "
    "others run in the engine. Schedules are the same."
)
"""Rule by which a loop is chosen, for those who read it."""


def has_compiler() -> bool:
    """True if numba can be imported; without it everything runs in the engine."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


class NotServed(Exception):
    """The compiled loop cannot go on with a run that the engine may carry out."""


class CompiledRun:
    """A run in the compiled loop, from which rows come as they arise.

    Parameters
    ----------
    index : JobIndex
        What :func:`index_of` says of the policy.

    Attributes
    ----------
    instance : Instance
        What was run; once the run was stopped, with the time at which.
    decisions : int
        Decisions so far.
    cpu_s : float
        CPU time of the loop so far [s].
    """

    def __init__(
        self,
        instance: Instance,
        policy: Policy,
        index: JobIndex,
        placement: Placement,
        rounds: Rounds,
    ) -> None:
        self.instance = instance
        self.decisions = 0
        self.cpu_s = 0.0
        self._policy, self._index, self._placement, self._rounds = policy, index, placement, rounds

    def rows(self, watch: Watch | None = None) -> Iterator[NDArray[Any]]:
        """Rows of the schedule in order of end, some ten thousand at a time: records as :data:`.arrays.ROW`.

        Parameters
        ----------
        watch : Watch, optional
            Told how far the run is whenever rows are there. Where it stops the run, the last rows are
            those of the jobs that run then.

        Raises
        ------
        PolicyError
            If jobs wait for ever, or a key is no number.
        NotServed
            If the predictor fails, or its predictions are too large for the loop.
        """
        from shadowprice.execution.kernel import arrays, loop
        from shadowprice.execution.kernel.predicting import Predictions

        index = self._index
        functions = _functions(self._policy, index)
        limited = bool(self.instance.features & LIMITS)
        advance = _loop(loop.shared_rule(_rule(index)), limited)
        began = time.process_time()
        a = arrays.arrays_of(
            self.instance,
            _ROWS_AT_A_TIME,
            in_sets=self._placement != Count(),
            backfills=index.rule is QueueRule.BACKFILLS,
            releases=index.virtual is not None,
            limited=limited,
        )
        _set_rules(a, self._policy, index, self._placement, self._rounds)
        predictions = None if index.virtual is None else Predictions(self.instance, index.virtual)
        run, state = a.run, loop.ASKS
        while state in (loop.ROOM, loop.ASKS):
            if predictions is not None:
                _tell(predictions, a)
            state = advance(*functions, index.table, a)
            if state == loop.ASKS:
                continue
            made = a.rows[: int(run["rows"][0])].copy()
            run["rows"], self.decisions = 0, int(run["decisions"][0])
            self.cpu_s += time.process_time() - began
            yield made
            began = time.process_time()
            if state == loop.ROOM and watch is not None:
                complete = int((run["admitted"] - run["waiting"] - run["running"])[0])
                # As in the engine, a run with a window of jobs is not stopped.
                if watch.stops(complete, len(a.jobs)) and not run["windowed"][0]:
                    self.instance = replace(self.instance, stopped_s=float(run["now_s"][0]))
                    yield _cut_off(a, np.flatnonzero(a.jobs["running"]))
                    return
        if state == loop.WINDOW:
            yield self._end_of_window(a)
        elif state != loop.DONE:
            self._explain()

    def _end_of_window(self, a: Arrays) -> NDArray[Any]:
        """Rows of the jobs that run when those of the window are complete, in the order in which they began."""
        window, admitted = self.instance.until_complete, int(a.run["admitted"][0])
        assert window is not None
        progress = WindowProgress(window, self.instance.workload)
        progress.leave(set(range(admitted)) - set(_unfinished(a)))
        progress.over(float(a.run["now_s"][0]), admitted, self._policy.name)
        running = np.flatnonzero(a.jobs["running"])
        return _cut_off(a, running[np.argsort(a.last["turn"][running])])

    def _explain(self) -> NoReturn:
        """Raise what the engine says of jobs that wait for ever, or of a key that is no number."""
        run_in_engine(self.instance, self._policy, placement=self._placement, rounds=self._rounds)
        raise AssertionError("the engine ends a run that the compiled loop does not")


def _unfinished(a: Arrays) -> Iterator[int]:
    """Jobs that run, and those that wait."""
    yield from np.flatnonzero(a.jobs["running"]).tolist()
    job = int(a.run["head"][0])
    while job >= 0:
        yield job
        job = int(a.jobs["after"][job])


def _cut_off(a: Arrays, running: NDArray[np.int64]) -> NDArray[Any]:
    """Rows of jobs that run at the present time, which end there."""
    now_s, found = a.run["now_s"][0], []
    for number in running:
        job = a.jobs[number]
        ran_s, piece = now_s - job["start_s"], job["pieces"]
        while ran_s > 0 and piece >= 0:
            paid_s = min(job["overhead_s"], ran_s)
            node, gpus, following = a.pieces[piece]
            found.append((job["start_s"], now_s, paid_s, number, node, gpus))
            piece = following
    return np.array(found, dtype=a.rows.dtype)


def _tell(predictions: Predictions, a: Arrays) -> None:
    """Make the predictions that are asked for."""
    try:
        predictions.tell(a)
    except Exception as error:
        raise NotServed from error
    a.run["asks"] = not predictions.at_once


def schedule_of(rows: NDArray[Any]) -> Schedule:
    """A schedule of rows from the compiled loop."""
    job, node, gpus = (rows[name].astype(np.int64) for name in ("job", "node", "gpus"))
    start_s, end_s, overhead_s = (rows[name].copy() for name in ("start_s", "end_s", "overhead_s"))
    return Schedule(job, node, gpus, start_s, end_s, overhead_s)


def _set_rules(
    a: Arrays, policy: Policy, index: JobIndex, placement: Placement, rounds: Rounds
) -> None:
    from shadowprice.execution.kernel import arrays

    places = {Count(): arrays.COUNT, Consolidate(): arrays.CONSOLIDATE, Pack(): arrays.PACK}
    run = a.run
    run["rule"], run["placement"] = _rule(index), places[placement]
    run["round_s"], run["first_round_s"] = rounds.length_s, rounds.first_s
    run["quantum_s"] = index.quantum_s
    run["knows_durations"] = Knowledge.DURATION in policy.knows
    run["stops"] = index.rule in PREEMPTIVE_RULES
    run["anywhere"] = placement != Consolidate() and not run["typed"][0]
    alike = index.while_running is WhileRunning.ALIKE
    run["changes"] = alike or index.while_running is WhileRunning.VARIES
    # Who pays overhead stands still while others run, and products beyond 2**53 ticks are rounded.
    most = float((a.jobs["processing_s"] * a.jobs["gpus"]).max(initial=0.0))
    keeps = alike and not a.run["charges"][0] and most < _EXACT_GPU_S
    run["disorders"] = run["changes"] & (not keeps)
    run["steps"] = index.next_step_s is not None
    run["levels"] = index.level is not None
    run["by_first_start"] = index.ties is Ties.FIRST_START


def _rule(index: JobIndex) -> int:
    """Number of an index's rule in the loop."""
    from shadowprice.execution.kernel import arrays

    numbers = {
        QueueRule.HEAD_BLOCKS: arrays.HEAD_BLOCKS,
        QueueRule.SKIPS: arrays.SKIPS,
        QueueRule.PREEMPTS: arrays.PREEMPTS,
        QueueRule.FILLS: arrays.FILLS,
        QueueRule.BACKFILLS: arrays.BACKFILLS,
        QueueRule.RELEASES: arrays.RELEASES,
    }
    return numbers[index.rule]


@cache
def _loop(rule: int, limited: bool) -> Loop:
    """The loop of this process for a rule, compiled or read from the cache by a run of no jobs.

    Parameters
    ----------
    limited : bool
        Whether for pools and quotas, or without code for these.
    """
    from shadowprice.execution.kernel import arrays, loop
    from shadowprice.execution.kernel.stored_code import StoredCode, sources
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.workload import Workload

    stored = StoredCode(f"loop-{rule}-{'limited' if limited else 'plain'}", sources())
    advance: Any = loop.compiled(stored, rule)
    nothing = Instance(Cluster.parse("1x1"), Workload.from_columns(arrival_s=[], gpus=[], work=[]))
    with stored.alone(), _announced(stored):
        function = _compiled(same_key)
        advance(
            function,
            function,
            function,
            np.zeros(0),
            arrays.arrays_of(
                nothing, 0, in_sets=False, backfills=False, releases=False, limited=limited
            ),
        )
    # All runs are of these types, so that they need not be found out at every call.
    (types,) = advance.signatures
    loop_of_types: Loop = advance.get_overload(types)
    return loop_of_types


def compile_all(processes: int) -> None:
    """Compile every loop that this machine has not compiled, in so many processes."""
    from shadowprice.execution.kernel import arrays

    # The loop that fills serves no limits.
    wanted = [(arrays.FILLS, False)] + [
        (rule, limited)
        for rule in (arrays.PREEMPTS, arrays.HEAD_BLOCKS, arrays.BACKFILLS, arrays.RELEASES)
        for limited in (True, False)
    ]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(_compile_one, rule, limited) for rule, limited in wanted]:
            done.result()


def _compile_one(rule: int, limited: bool) -> None:
    # Who asks for all of them need not hear of each.
    with redirect_stderr(StringIO()):
        _loop(rule, limited)


@contextmanager
def _announced(stored: StoredCode) -> Iterator[None]:
    """Say on stderr, once, that code is compiled, if it is."""
    from numba.core import event

    class Compiling(event.Listener):  # type: ignore[misc]
        warned = False

        def on_start(self, event: object) -> None:
            if not self.warned:
                self.warned = True
                often = "once on this machine"
                if not stored.writable:
                    often = f"in every process, for {stored.cache_path} cannot be written"
                print(
                    f"compiling the loop for index policies of this rule: some seconds, {often}",
                    file=sys.stderr,
                )

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Compiling()):
        yield


def _functions(policy: Policy, index: JobIndex) -> tuple[Any, Any, Any]:
    """Key, level and next step as the loop calls them; in place of one that there is not, one that is not called."""
    given = (index.key, index.level or same_key, index.next_step_s or same_key)
    compiled = []
    for measure in given:
        try:
            compiled.append(_compiled(measure))
        except Exception as error:
            name = getattr(measure, "__name__", repr(measure))
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            # The first line of numba's says in which of its stages it failed.
            said = (lines[1:] or lines or [type(error).__name__])[0].rstrip(".")
            raise PolicyError(
                f"{policy.name}: numba cannot compile {name}: {said}; expected arithmetic, comparisons and "
                "functions of NumPy on the numbers of one job"
            ) from error
    key, level, next_step_s = compiled
    return key, level, next_step_s


@cache
def _compiled(measure: Measure) -> Any:
    """A measure as a function that compiled code calls.

    Those of this package are cached: they call nothing outside their file, whose changes numba
    notices.
    """
    import numba
    from numba import types

    table = types.Array(types.float64, 1, "C")
    job = types.NamedUniTuple(types.float64, len(IndexedJob._fields), IndexedJob)
    function = getattr(measure, "py_func", measure)
    ours = function.__module__.partition(".")[0] == __name__.partition(".")[0]
    compiler = numba.cfunc(types.float64(job, table), error_model="numpy", cache=ours)
    return compiler(function)
