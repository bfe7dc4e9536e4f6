"""Inputs from the flags of ``simulate`` and ``compare``: jobs, a cluster, options of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shadowprice.cli.options import CommandOptions
from shadowprice.cli.show import note, printed_warnings, stderr
from shadowprice.errors import InputError
from shadowprice.solvers.registry import require_policy
from shadowprice.user_code import runs_a_file

if TYPE_CHECKING:
    from shadowprice.analysis.outcome import VerifiedRun
    from shadowprice.analysis.run_options import RunOptions
    from shadowprice.analysis.written_options import WrittenOptions
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.speeds.profiles import Profiles
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.steady_state.endless import EndlessWorkload
    from shadowprice.instances.terms.settings import TermSettings
    from shadowprice.instances.workload import Workload


T = TypeVar("T")
Jobs = TypeVar("Jobs")


@dataclass(frozen=True)
class RunInputs(Generic[Jobs]):
    """Jobs, a cluster and the options of a run; whether to leave out jobs that can never run.

    Of a trace also what was made of its rows, as :meth:`Imported.document` has it.
    """

    workload: Jobs
    cluster: Cluster
    options: RunOptions
    drop_infeasible: bool = False
    cleaning: Mapping[str, object] | None = None


def require_policies(names: Sequence[str], options: CommandOptions) -> None:
    """Refuse names that no policy has, before the trace is read; a preset, also of a file, has names of its own.

    What is looked up in a process of its own is not looked up here.

    Raises
    ------
    InputError
        Listing what there is.
    """
    if options.preset is None and options.run is None:
        for name in names:
            if not (options.sealed and runs_a_file(name)):
                require_policy(name)


def read_inputs(
    trace: Path, cluster: str, options: CommandOptions, **more: Any
) -> RunInputs[Workload]:
    """Read the files that options name; what was repaired in the trace is said on stderr.

    Parameters
    ----------
    more
        Those of :class:`RunOptions` that one command alone has an option for.

    Raises
    ------
    InputError
        If a file or an option is not as expected.
    """
    # That there is a trace first: a message about a missing file loads little.
    from shadowprice.instances.files import expect_file

    expect_file(trace)
    from shadowprice.instances.traces import BrokenImporter, load_trace

    choices = written(options)
    table = _table(options)
    with printed_warnings(BrokenImporter):
        imported = load_trace(trace, format=options.trace_format, throughputs=table)
    if imported.report or imported.notes:
        for line in imported.lines():
            stderr.print(line, style="yellow", markup=False, highlight=False)
    run = choices.read(
        cluster,
        table,
        jobs=str(trace),
        seed=options.seed,
        origin_s=imported.origin_s,
        more=more,
    )
    where, run_options = run.cluster, run.options
    if run_options.profiles is not None:
        _report_unprofiled(run_options.profiles, imported.workload)
    _report_unused(imported.workload, table)
    _report_equal_types(imported.workload, where)
    cleaning = imported.document()
    return RunInputs(imported.workload, where, run_options, choices.drop_infeasible, cleaning)


def read_endless(
    generator: str, cluster: str, options: CommandOptions, **more: Any
) -> RunInputs[EndlessWorkload]:
    """Make an endless workload, and read the files that options name.

    Parameters
    ----------
    generator : str
        Name and parameters: ``gavel-published:jobs_per_hour=5.6,single_gpu=true``.
    more
        As of :func:`read_inputs`.

    Raises
    ------
    InputError
        If the generator, a parameter, a file or another option is not as expected.
    """
    from shadowprice.instances.generators import endless_named

    if options.trace_format is not None:
        raise InputError("--format is about a trace, and --endless is given")
    choices = written(options)
    table = _table(options)
    workload = endless_named(generator, {} if table is None else {"throughputs": table})
    run = choices.read(
        cluster, table, jobs=workload.source, seed=options.seed, endless=True, more=more
    )
    _report_equal_types(workload, run.cluster)
    return RunInputs(workload, run.cluster, run.options, choices.drop_infeasible)


def written(options: CommandOptions) -> WrittenOptions:
    """The options of a run among flags and in its file, terms read but not their files.

    Raises
    ------
    InputError
        If the file or a term is not as expected, or both say the same.
    """
    from shadowprice.analysis.written_options import WrittenOptions

    by_options = WrittenOptions(
        preset=options.preset,
        placement=options.placement,
        round_s=options.round_s,
        first_round_s=options.first_round_s,
        predictor=options.predictor,
        samples=None if options.samples is None else str(options.samples),
        with_={each.label: each.settings for each in asked_terms(options.terms)},
        drop_infeasible=options.drop_infeasible,
        sealed=options.sealed,
    )
    if options.run is None:
        return by_options
    return WrittenOptions.load(options.run).joined(by_options, str(options.run), "options")


def asked_terms(texts: Sequence[str] | None) -> tuple[TermSettings, ...]:
    """Terms of ``--with``; without any, nothing is loaded.

    Raises
    ------
    InputError
        If one is not as expected.
    """
    if not texts:
        return ()
    from shadowprice.instances.terms.options.reading import terms_of_options

    return terms_of_options(texts)


def _table(options: CommandOptions) -> Throughputs | None:
    if options.throughputs is None:
        return None
    from shadowprice.instances.speeds.throughputs import load_throughputs

    return load_throughputs(options.throughputs)


def _report_unprofiled(profiles: Profiles, workload: Workload) -> None:
    without = [
        f"{model or 'no model'} on {gpus} GPUs" for model, gpus in profiles.without(workload)
    ]
    if without:
        stderr.print(
            f"no profile of {_first(without)}: taken to need a GPU-proportional share of CPUs and memory",
            style="yellow",
            markup=False,
            highlight=False,
        )


def _report_unused(workload: Workload, table: Throughputs | None) -> None:
    """Say that jobs which count seconds have no use for rates in iterations; refuse such rates of pairs.

    Raises
    ------
    InputError
        If the table has rates of pairs, which would be taken for seconds of work a second.
    """
    if table is None or not table.alone or workload.throughput is not None:
        return
    if table.pairs:
        raise InputError(
            f"{table.source}: has rates of pairs in iterations a second, and the jobs of {workload.source} count "
            "seconds; expected jobs with columns iterations and model"
        )
    note(
        f"{table.source}: rates are not used, the jobs of {workload.source} count seconds and no iterations"
    )


def _report_equal_types(workload: Workload | EndlessWorkload, cluster: Cluster) -> None:
    from shadowprice.instances.speeds.equal_types import types_taken_as_equal

    sentence = types_taken_as_equal(workload, cluster)
    if sentence is not None:
        note(sentence)


def _first(names: Sequence[str]) -> str:
    """A few names, for a message."""
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def split_names(text: str) -> list[str]:
    """Names of policies, comma-separated; NAME=VALUE belongs to the policy before it.

    >>> split_names("fifo, las2d:base=2,levels=3,srtf")
    ['fifo', 'las2d:base=2,levels=3', 'srtf']
    >>> split_names("mine.py:Own:window_s=6,levels=2,gavel:round_s=60,model=mine.py:build")
    ['mine.py:Own:window_s=6,levels=2', 'gavel:round_s=60,model=mine.py:build']
    """
    names: list[str] = []
    for word in (word.strip() for word in text.split(",")):
        if names and "=" in word.partition(":")[0]:
            names[-1] += f",{word}"
        elif word:
            names.append(word)
    return names


def report_sealed(outcome: VerifiedRun) -> None:
    """Say on stderr what this system enforces of a policy's seal, and what is missing."""
    enforced: Any = outcome.settings.get("sealed")
    if enforced is None:
        return
    from shadowprice.execution.sealed.seal import Protection, Seal

    note(str(Seal.of({each: each in enforced for each in Protection})))


def report_dropped(outcome: VerifiedRun) -> None:
    """Say on stderr which jobs were left out."""
    dropped: Any = outcome.settings.get("dropped", [])
    if dropped:
        stderr.print(
            f"dropped {len(dropped)} jobs that fit no GPU type: {_first(dropped)}",
            style="yellow",
            markup=False,
        )
