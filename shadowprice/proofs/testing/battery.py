"""The laws of a policy as a class of tests, one method a law."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from shadowprice.execution.kernel.run import offers_index
from shadowprice.proofs.testing import cases, checks
from shadowprice.proofs.testing.subject import Case, PolicyUnderTest, Scaling
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.registry import policy as policy_by_name

PHASES = (Phase.generate, Phase.target, Phase.shrink)
"""Phases of a search for what breaks a law; explaining it traces every line, which takes longer than all the rest."""


@dataclass(frozen=True)
class Law:
    """A law, and what it is tried on.

    Parameters
    ----------
    name : str
        Name of its test.
    check : callable
        Raises if the policy breaks it on a case.
    cases : callable
        The strategy that makes cases.
    applies : callable
        Whether it is one for a policy with these declarations.
    most : int
        Examples at most, where each is dear.
    """

    name: str
    check: Callable[[PolicyUnderTest, Case], None]
    cases: Callable[[], st.SearchStrategy[Case]]
    applies: Callable[[PolicyUnderTest], bool] = lambda subject: True
    most: int = 10**9

    @property
    def title(self) -> str:
        """The law in words: the name of its test."""
        return self.name.removeprefix("test_").replace("_", " ")


LAWS = (
    Law("test_schedules_are_valid", checks.valid, cases.placed),
    Law("test_schedules_are_valid_with_overheads", checks.valid, cases.charged),
    Law("test_schedules_are_valid_on_gpu_types", checks.valid, cases.typed),
    Law("test_schedules_are_valid_where_jobs_may_share_gpus", checks.valid, cases.shared),
    Law("test_schedules_are_valid_under_conditions", checks.valid, cases.conditioned),
    Law(
        "test_schedules_are_valid_on_nodes_that_fail",
        checks.valid,
        cases.failing,
        lambda subject: not subject.commits,
    ),
    Law("test_nobody_is_lost", checks.nobody_lost, cases.placed),
    Law(
        "test_scaling_all_times_scales_all_completions",
        checks.times_scale,
        cases.scaled,
        lambda subject: subject.scaling is not Scaling.NONE,
    ),
    Law("test_order_of_rows_does_not_matter", checks.rows_in_any_order, cases.reordered),
    Law("test_same_input_same_schedule", checks.repeats, cases.placed),
    Law(
        "test_runs_every_job_once",
        checks.runs_once,
        cases.placed,
        lambda subject: not subject.policy.preemptive,
    ),
    Law(
        "test_no_gpus_idle_while_a_job_that_fits_waits",
        checks.no_idle_gpus,
        cases.plain,
        lambda subject: not subject.waits,
    ),
    Law(
        "test_a_longer_job_is_not_foreseen",
        checks.blind_to_durations,
        cases.plain,
        lambda subject: subject.knows_no_run_times,
    ),
    Law(
        "test_arrivals_are_not_foreseen",
        checks.blind_to_arrivals,
        cases.plain,
    ),
    Law("test_what_else_is_in_memory_does_not_matter", checks.blind_to_memory, cases.plain),
    Law(
        "test_it_decides_the_same_in_a_process_of_its_own",
        checks.same_when_sealed,
        cases.plain,
        lambda subject: bool(subject.written),
        most=10,
    ),
    Law("test_arrivals_are_not_foreseen_on_gpu_types", checks.blind_to_arrivals, cases.typed),
    Law(
        "test_arrivals_are_not_foreseen_where_jobs_may_share_gpus",
        checks.blind_to_arrivals,
        cases.shared,
    ),
    Law(
        "test_arrivals_are_not_foreseen_under_conditions",
        checks.blind_to_arrivals,
        cases.conditioned,
    ),
    Law(
        "test_faults_are_not_foreseen",
        checks.blind_to_faults,
        cases.failing,
        lambda subject: not subject.commits,
    ),
    Law(
        "test_its_index_and_its_decisions_agree",
        checks.index_agrees,
        cases.placed,
        lambda subject: offers_index(subject.policy),
    ),
    Law(
        "test_its_index_and_its_decisions_agree_with_overheads",
        checks.index_agrees,
        cases.charged,
        lambda subject: offers_index(subject.policy),
    ),
    Law("test_cost_is_never_below_the_bound", checks.above_bounds, cases.placed),
    Law("test_cost_is_never_below_the_bound_on_gpu_types", checks.above_bounds, cases.typed),
)


def laws(
    policy: Policy | str,
    *,
    waits: bool = False,
    times: tuple[str, ...] = (),
    scaling: Scaling = Scaling.EXACT,
    commits: bool = False,
    examples: int | None = None,
) -> type:
    """Tests of all laws that hold for a policy, as a class that pytest collects under any name.

    ``test_my_policy = laws(MyPolicy())`` in a test file is enough; subclass it to add tests. Every
    method is one law and one Hypothesis test, run under the profile that is loaded. Laws that a
    declaration excludes are left out.

    Parameters
    ----------
    policy : Policy or str
        The policy, an object and not its class, or its name, such as ``mine.py:Widest``. What it ``knows``
        and whether it is ``preemptive`` decide on laws too: one that knows nothing of run times must not
        foresee them, one that does not preempt must run every job once, and one that is not told the
        distribution of service must not foresee arrivals.
    waits : bool
        Whether it lets GPUs idle on purpose although a job that waits would fit: the head of its
        queue blocks, it starts nothing within a round, or it waits for something.
    times : tuple of str
        Fields of its dataclass that are times [s] or GPU-times [GPU-s], numbers or tuples, which
        have to be scaled with the instance for the law of scaling: quanta, rounds, thresholds.
    scaling : Scaling
        How exactly completions scale with all times; ``Scaling.NONE`` leaves the law out.
    commits : bool
        Whether it gives jobs GPUs for times to come, so that it does not run on nodes that fail.
    examples : int, optional
        Examples a law; those of the Hypothesis profile if not given.

    Raises
    ------
    InputError
        If the policy is no policy, or has no such times.
    """
    named = policy_by_name(policy) if isinstance(policy, str) else policy
    written = policy if isinstance(policy, str) else ""
    subject = PolicyUnderTest(named, waits, times, scaling, commits, written)
    chosen = settings(
        max_examples=examples or settings().max_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    methods = {law.name: as_test(law, subject, chosen) for law in LAWS if law.applies(subject)}
    body = {"__test__": True, "__doc__": f"Laws of the policy {named.name!r}.", **methods}
    return type("Laws", (), body)


def verdicts(subject: PolicyUnderTest, examples: int) -> Iterator[tuple[Law, Exception | None]]:
    """Each law that applies to a policy, and the error that breaks it; None if none was found.

    The same examples every time.

    Parameters
    ----------
    examples : int
        Examples a law.
    """
    chosen = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        print_blob=False,
        phases=PHASES,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    for law in LAWS:
        if law.applies(subject):
            try:
                as_test(law, subject, chosen)(None)
            except Exception as error:
                yield law, error
            else:
                yield law, None


def as_test(law: Law, subject: PolicyUnderTest, chosen: settings) -> Callable[[object], None]:
    """One law as a Hypothesis test: a method without arguments but the object."""

    def method(self: object, case: Case) -> None:
        law.check(subject, case)

    method.__name__, method.__doc__ = law.name, law.check.__doc__
    method.__qualname__ = f"Laws.{law.name}"
    few = settings(chosen, max_examples=min(chosen.max_examples, law.most))
    return few(given(case=law.cases())(method))
