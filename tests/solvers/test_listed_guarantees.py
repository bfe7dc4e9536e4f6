"""A guarantee is listed of a policy only where it is proven of that very policy: on some run its hypotheses hold."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import shadowprice as sp
import shadowprice.proofs
from shadowprice.analysis.guarantees.asrpt import assumed_s
from shadowprice.analysis.guarantees.lookup import describe, known_bound
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_options import RunOptions
from shadowprice.execution.simulator import schedulers
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.proofs.asrpt import conversion, early, prediction, ratio, sharper
from shadowprice.proofs.classic import saturation, server_filling
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.proofs.gandiva import matching
from shadowprice.proofs.hadar import copies_work
from shadowprice.proofs.synergy import floor
from shadowprice.proofs.tiresias import las as queues
from shadowprice.solvers.about import about, first_clause
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.registry import policies, policy
from shadowprice.solvers.synergy.servers import Demands, Servers
from shadowprice.solvers.synergy.synergy import MECHANISMS, ByDemand, Synergy
from support.gandiva_runs import done, instance_of, pair_table
from support.paths import ROOT

GANGS = sp.Workload.from_columns(
    arrival_s=[0, 1, 2, 2, 3, 9], gpus=[1, 4, 2, 1, 1, 2], work=[5, 2, 7, 1, 3, 2]
)
SINGLES = sp.Workload.from_columns(arrival_s=[0, 0, 0, 0], gpus=[1, 1, 1, 1], work=[5, 2, 7, 1])
WIDE_OR_NARROW = sp.Workload.from_columns(
    arrival_s=[0, 0, 0, 0, 0], gpus=[1, 4, 1, 4, 1], work=[5, 2, 7, 1, 3]
)
VARIANTS = (
    "hadar-committed:u_min=0.001,u_max=10,largest_gang=2,aligned=true",
    "oasis:u_min=0.001,u_max=10,largest_gang=2,aligned=true",
    "drf:tune",
    "asrpt:work_conserving=true,guard=2",
    "asrpt:stretch=2",
    "asrpt:predictor=median",
    "las:quantum_s=1",
)
"""Policies with parameters on which it depends what is proven."""


@cache
def theorems() -> frozenset[str]:
    """Names of all theorems: before the colon of the first line of their files."""
    found = set()
    for module in pkgutil.walk_packages(shadowprice.proofs.__path__, "shadowprice.proofs."):
        if ".checker" in module.name or module.ispkg:
            continue
        first = (importlib.import_module(module.name).__doc__ or "").partition("\n")[0]
        if re.fullmatch(r"[A-Z]+(-\w+)?", first.partition(":")[0]):
            found.add(first.partition(":")[0])
    return frozenset(found)


def listed(name: str) -> set[str]:
    """Theorems that the list of policies names of a policy."""
    words = re.findall(r"[A-Z]+-\w+|HESRPT", about(named(name)).guarantee)
    return set(words) & theorems()


def named(name: str) -> object:
    known = schedulers()
    return known[name] if name in known else policy(name)


def ran(name: str, jobs: sp.Workload, cluster: str, options: RunOptions | None = None) -> Outcome:
    outcome = sp.simulate(jobs, cluster, name, options)
    assert isinstance(outcome, Outcome)
    return outcome


def of_asrpt(theorem: object, name: str) -> bool:
    """Its hypotheses hold of a run, and what it says of the run does."""
    outcome = ran(name, GANGS, "1x4")
    run = describe(prepare_run(GANGS, "1x4", name), sp.Objective.COMPLETION)
    assert isinstance(run, DescribedRun)
    assert isinstance(run.policy, Asrpt)
    share, virtual_s = assumed_s(outcome, run.policy)
    total = Fraction(float(outcome.end_s.sum()))
    given: dict[str, object] = {} if theorem is ratio else {"virtual_s": virtual_s}
    if theorem is early:
        given |= {"guard": Fraction(run.policy.guard), "judged_s": share * GANGS.work}
    return not theorem.missing_hypotheses(run) and theorem.check(outcome.instance, total, **given)  # type: ignore[attr-defined]


def factor_known(
    jobs: sp.Workload, cluster: str, goal: sp.Objective, options: RunOptions | None = None
) -> Callable[[str], bool]:
    """The guarantees for runs state a factor of such a run."""

    def holds(name: str) -> bool:
        outcome = ran(name, jobs, cluster, options)
        run = describe(prepare_run(jobs, cluster, name, options), goal)
        return run is not None and known_bound(outcome, run) is not None

    return holds


def of_saturation(name: str) -> bool:
    outcome = ran(name, WIDE_OR_NARROW, "1x4")
    return not saturation.HYPOTHESES.missing(outcome.instance) and saturation.check(
        outcome.instance, outcome.schedule
    )


def of_filling(name: str) -> bool:
    outcome = ran(name, GANGS, "1x4")
    return not server_filling.HYPOTHESES.missing(outcome.instance) and server_filling.check(
        outcome.instance, outcome.schedule
    )


def of_queues(name: str) -> bool:
    outcome = ran(f"{name}:thresholds_gpu_s=3/9", GANGS, "1x4")
    return queues.check(outcome.instance, [3.0, 9.0], outcome.end_s.tolist())


def of_quanta(name: str) -> bool:
    """(a) with the policy's own quantum."""
    for jobs in (
        SINGLES,
        sp.Workload.from_columns(arrival_s=[0] * 3, gpus=[1] * 3, work=[90, 200, 130]),
    ):
        outcome = ran(name, jobs, "1x2")
        quantum = int(to_ticks(named(name).quantum_s))  # type: ignore[attr-defined]
        most = queues.quantum_bounds(to_ticks(jobs.work).tolist(), 2, quantum)
        if not all(end <= each for end, each in zip(to_ticks(outcome.end_s), most, strict=True)):
            return False
    return True


def of_floor(name: str) -> bool:
    """The mechanism of the policy on asks whose hypotheses hold."""
    found = policy(name)
    assert isinstance(found, Synergy | ByDemand)
    mechanism = found.mechanism if isinstance(found, Synergy) else MECHANISMS[found.mechanism]
    share = (3.0, 62.5)
    profile = Profile(np.array([1.0, 3.0, 9.0]), np.array([62.5]), np.array([[0.5], [1.0], [2.0]]))
    demands = Demands(Sensitivity((profile,), np.zeros(3, np.int64)), np.array([2, 2]), share)
    asks = [demands.ask(job, gpus) for job, gpus in enumerate((2, 1, 1))]
    servers = Servers(demands.size, demands.share)
    mechanism.place(asks, servers, demands)
    return floor.hypotheses_hold(asks, demands) and floor.check(servers, asks, demands)


def of_pairs(name: str) -> bool:
    """Some jobs share GPUs, and no pair outlives its trial that makes no more than turns."""
    table = pair_table({("a", "a"): (0.8, 0.8)})
    jobs = [(0.0, 1, 900.0), (0.0, 1, 900.0), (0.0, 1, 900.0)]
    instance = instance_of("1x1", jobs, sharing_rates=table, model=["a"] * 3)
    found = policy(name)
    schedule = done(instance, found)  # type: ignore[arg-type]
    return bool((schedule.partner >= 0).any()) and matching.check_introspection(
        instance,
        schedule,
        found.quantum_s,  # type: ignore[attr-defined]
    )


def of_commitments(name: str) -> bool:
    """All jobs are served, and the largest utility that any schedule has is within twice alpha, at least 2."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 720], gpus=[1, 2, 1], work=[700, 300, 700])
    found = sp.compare_utility(jobs, "1x2", [name], "completion_time", budget_s=0.2)
    return found.rows[0].ratio <= 2.0


def of_copies(name: str) -> bool:
    outcome = ran(
        name, sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[900, 700]), "2x1"
    )
    return copies_work.check(outcome.instance, outcome.schedule)


RESTART = RunOptions(preemption=Preemption.RESTART)
_GIVEN: dict[str, Callable[[str], bool]] = {
    "ASRPT-sharper": lambda name: of_asrpt(sharper, name),
    "ASRPT-ratio": lambda name: of_asrpt(ratio, name),
    "ASRPT-pred": lambda name: of_asrpt(prediction, name),
    "ASRPT-conv": lambda name: of_asrpt(conversion, name),
    "ASRPT-early": lambda name: of_asrpt(early, name),
    "ASRPT-robust": factor_known(GANGS, "1x4", sp.Objective.COMPLETION),
    "KR-scale": factor_known(SINGLES, "1x1", sp.Objective.FLOW, RESTART),
    "LPF-work": factor_known(SINGLES, "1x4", sp.Objective.MAKESPAN),
    "SF-work": factor_known(GANGS, "1x4", sp.Objective.FLOW),
    "SF-fill": of_filling,
    "MSJ-cap": of_saturation,
    "TIR-las": lambda name: (
        of_quanta(name) if name.startswith("las:") or name == "las" else of_queues(name)
    ),
    "SRPT-1": lambda name: ran(name, SINGLES, "1x1").end_s.sum() == 1 + 3 + 8 + 15,
    "SYN-floor": of_floor,
    "GAN-match": of_pairs,
    "HADAR-2a": of_commitments,
    "HADARE-n": of_copies,
}
"""What shows that a theorem is about a policy: a small run that meets its hypotheses, and what it says of that run."""

EVERY = sorted({**policies(), **schedulers(), **dict.fromkeys(VARIANTS)})


@pytest.mark.parametrize("name", EVERY)
def test_every_theorem_that_is_listed_is_about_that_very_policy(name: str) -> None:
    for theorem in sorted(listed(name)):
        assert _GIVEN[theorem](name), theorem


def test_every_theorem_of_the_table_is_listed_somewhere() -> None:
    assert set().union(*map(listed, EVERY)) == set(_GIVEN) <= theorems()


def names_of(given: Iterable[str]) -> list[str]:
    return [name for name in given if listed(name)]


def test_what_excludes_a_policy_is_not_listed_of_it() -> None:
    assert listed("asrpt-early") == listed("asrpt:overtake=true") == set()
    assert (
        listed("asrpt-guarded") == listed("asrpt:work_conserving=true,guard=2") == {"ASRPT-early"}
    )
    assert listed("asrpt") == {"ASRPT-sharper", "ASRPT-ratio", "ASRPT-pred", "ASRPT-conv"}
    # Predictions that are not exact, or c times too long.
    assert "ASRPT-ratio" not in listed("asrpt:predictor=median") | listed("asrpt:stretch=2")
    assert (
        names_of(["hadar", "hadar-committed", "oasis", "gandiva-reactive", "hesrpt", "gavel"]) == []
    )
    assert (
        names_of(["drf", "tetris", "synergy-greedy", "synergy-opt", "synergy-proportional"]) == []
    )
    for name in ("asrpt-early", "hadar", "hadar-committed", "drf", "gandiva-reactive", "hesrpt"):
        assert first_clause(about(named(name)).guarantee).startswith("none"), name


def test_what_is_proven_without_a_theorem_file_holds_too() -> None:
    """Shortest first on one GPU, and the head of the queue under ``easy``."""
    assert ran("sjf", SINGLES, "1x1").end_s.sum() == 1 + 3 + 8 + 15
    jobs = sp.Workload.from_columns(arrival_s=[0, 1, 2], gpus=[1, 2, 1], work=[10, 5, 20])
    assert ran("easy", jobs, "1x2").jobs["first_start_s"].tolist()[1] == 10.0


def test_the_readme_names_the_policy_of_which_a_theorem_is_proven() -> None:
    """In the column "proven": theorems of `policy`, or none of it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (A-SRPT|Synergy) \|.*\| (.*) \|$", text, re.MULTILINE)
    assert [system for system, _ in rows] == ["A-SRPT", "Synergy"]
    claimed: dict[str, set[str]] = {}
    for part in ", ".join(cell for _, cell in rows).replace(" and ", ", ").split(", "):
        files = re.findall(r"\]\((shadowprice/proofs/[a-z_/]+)\.py\)", part)
        names = {str(importlib.import_module(each.replace("/", ".")).__doc__) for each in files}
        claimed.setdefault("", set()).update(name.partition(":")[0] for name in names)
        for name in re.findall("`([a-z-]+)`", part):
            claimed[name] = claimed.pop("")
    assert set(claimed) == {"asrpt", "asrpt-guarded", "asrpt-early", "synergy-tune"}
    for name, proven in claimed.items():
        assert proven <= listed(name)
        assert bool(proven) == bool(listed(name)), name
