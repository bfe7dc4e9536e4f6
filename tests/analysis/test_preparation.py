"""A run is settled once, by one rule: which switches go to whom."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.analysis import compare as comparing
from shadowprice.analysis import preparation
from shadowprice.analysis import simulate as simulating
from shadowprice.analysis.adversary import search as adversary_search
from shadowprice.analysis.preparation import options_of, prepare_run
from shadowprice.analysis.run_options import (
    DATA,
    OF_THE_ENGINE,
    OF_THE_INSTANCE,
    OF_THE_POLICY,
    RunOptions,
)
from shadowprice.analysis.utility import compare as utility_comparing
from shadowprice.errors import InputError
from shadowprice.execution.simulator import Simulator, schedulers
from shadowprice.instances.graphs.job_graph import JobGraph, Stage
from shadowprice.instances.graphs.named_graphs import NamedGraphs
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.speeds.interference import Interference
from shadowprice.instances.speeds.model_skew import published_skews
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.terms.racks import Racks
from shadowprice.instances.terms.widths import Growth
from shadowprice.solvers.classic.fifo import Fifo
from shadowprice.solvers.policy import Decision, Knowledge
from shadowprice.solvers.price_log import PriceLog
from shadowprice.solvers.registry import policies
from shadowprice.solvers.state import State
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution
from support.paths import ROOT
from support.written_failures import failures_of

CLUSTER = "2x4+24cpu+500gb"
NETWORK = Network(300e9, 12.5e9, 4, "per-gpu")
GRAPHS = NamedGraphs(
    tuple(JobGraph(f"of {n}", (Stage("replicas", n, 1.0, 0.0),)) for n in (1, 2)),
    {"0": 0, "1": 1, "2": 0},
)
GIVEN: Mapping[str, Mapping[str, Any]] = {
    "placement": {"placement": "pack"},
    "round_s": {"round_s": 60.0},
    "first_round_s": {"round_s": 60.0, "first_round_s": 5.0},
    "overheads": {"overheads": sp.Overheads(start_s=1.0)},
    "network": {"network": NETWORK},
    "graphs": {"network": NETWORK, "graphs": GRAPHS},
    "profiles": {"profiles": Profiles.synthetic()},
    "skews": {"skews": published_skews()},
    "growth": {"growth": Growth(2)},
    "interference": {"interference": Interference({"VGG19": 0.5, "VGG16": 0.4, "VGG11": 0.3})},
    "until_complete": {"until_complete": sp.JobWindow(0, 2)},
    "failures": {"failures": failures_of("mtbf_s=60,repair_s=9")},
    "preemption": {"preemption": sp.Preemption.RESTART},
    "declared": {"declared": (Racks(1, 1.0, 0.5),)},
    "predictor": {"predictor": "median"},
    "graph_placement": {"placement": "first-fit", "network": NETWORK},
    "prices": {"prices": True},
    "samples": {"samples": ServiceDistribution(np.array([1.0, 5.0]))},
    "seed": {"seed": 3},
}
"""Each switch with a value that is not its default, and what else it needs."""


def jobs(models: tuple[str, ...] = ("VGG19", "VGG16", "VGG11")) -> sp.Workload:
    return sp.Workload.from_columns(
        arrival_s=[0, 1, 2], gpus=[1, 2, 1], work=[50, 60, 70], model=models
    )


def jobs_for(given: Mapping[str, Any]) -> sp.Workload:
    """Jobs whose models there are graphs of, if that is what is asked for."""
    return jobs(("resnet-50", "vgg-16", "vgg-19")) if "network" in given else jobs()


def test_every_switch_has_its_place_in_the_rule() -> None:
    listed = {*OF_THE_ENGINE, *OF_THE_POLICY, *DATA} - {"graph_placement"}
    assert listed == {each for each in RunOptions.__dataclass_fields__ if each != "preset"}
    elsewhere = {
        "sharing_rates",
        "training",
        "sealed",
    }  # Sealed runs are in tests/cli/test_sealed.py.
    assert {*GIVEN} == {*listed, "graph_placement"} - elsewhere


@pytest.mark.parametrize("name", sorted({*policies(), *schedulers()}))
def test_what_is_listed_of_a_policy_is_what_it_does(name: str) -> None:
    """A run is refused under a switch exactly if the listing says so; one that is taken changes it."""
    thing = schedulers().get(name) or policies()[name]
    found = options_of(thing)
    assert not {*found.takes} & {*found.refuses}
    for switch, given in GIVEN.items():
        options = RunOptions(**given)
        if switch in found.refuses:
            with pytest.raises(InputError):
                prepare_run(jobs_for(given), CLUSTER, name, options)
        else:
            prepare_run(jobs_for(given), CLUSTER, name, options)
    for switch in {*OF_THE_POLICY, "samples"} & {*found.takes}:
        settled = prepare_run(jobs_for(GIVEN[switch]), CLUSTER, name, RunOptions(**GIVEN[switch]))
        assert parameters(settled.policy) != parameters(thing), switch


def test_switches_that_change_what_is_given_are_those_of_the_instance() -> None:
    """An instance that one of them made is run again without it, and makes the same run."""
    plain = prepare_run(jobs(), CLUSTER, "srtf").instance.features
    changing = set()
    for switch, given in GIVEN.items():
        if switch in {"predictor", "graph_placement", "prices"}:
            continue  # Which other policies take.
        once = prepare_run(jobs_for(given), CLUSTER, "srtf", RunOptions(**given))
        if once.instance.features == plain:
            continue
        changing.add(switch)
        left = {name: value for name, value in given.items() if name not in OF_THE_INSTANCE}
        twice = prepare_run(once.instance, None, "srtf", RunOptions(**left))
        assert twice.instance is once.instance, switch
        assert twice.settings == once.settings, switch
    assert changing == {*OF_THE_INSTANCE} - {"preset", "sharing_rates", "training"}


def parameters(policy: Any) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in policy.__dataclass_fields__}


@dataclass(frozen=True)
class Outsider:
    """A policy of a file of one's own: it predicts, sets prices and takes a sample in its own way."""

    name: str = "outsider"
    predictor: str = "oracle"
    log: PriceLog | None = None
    largest: float = 0.0
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset({"samples"})

    def with_options(self, given: Mapping[str, Any]) -> Outsider:
        return replace(self, largest=float(given["samples"].samples_gpu_s.max()))

    def keeping(self, log: PriceLog) -> Outsider:
        return replace(self, log=log)

    def decide(self, state: State) -> Decision:
        if self.log is not None:
            self.log.time_s.append(state.now_s)
            self.log.prices.append(np.full(state.nodes, self.largest))
        return Fifo().decide(state)


def test_a_policy_of_ones_own_takes_switches_without_the_package_knowing_it() -> None:
    options = RunOptions(
        predictor="median", prices=True, samples=ServiceDistribution(np.array([1.0, 7.0]))
    )
    settled = prepare_run(jobs(), "2x2", Outsider(), options)
    assert isinstance(settled.policy, Outsider)
    assert (settled.policy.predictor, settled.policy.largest) == ("median", 7.0)
    outcome = sp.simulate(jobs(), "2x2", Outsider(), options)
    assert isinstance(outcome, sp.Outcome)
    frame = sp.prices_frame(outcome)
    assert set(frame["price"]) == {7.0}
    assert options_of(Outsider()).refuses == ("graph_placement",)


def test_a_log_of_the_policys_own_is_the_one_that_is_kept() -> None:
    mine = PriceLog()
    outcome = sp.simulate(jobs(), "2x2", Outsider(log=mine), RunOptions(prices=True))
    assert isinstance(outcome, sp.Outcome)
    assert outcome.prices is mine
    assert mine.time_s


@dataclass(frozen=True)
class OneAfterAnother:
    """A scheduler of one's own that the engine does not run: one job at a time, on the first node."""

    pause_s: float = 0.0
    name: str = "one-after-another"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def simulator(self, given: Mapping[str, Any]) -> Simulator:
        pause_s = given.get("round_s") or self.pause_s
        return Simulator(
            lambda instance: self.schedule(instance, pause_s),
            frozenset({"round_s"}),
            lambda switch, value: f"{self.name}: takes no {switch}, got {value!r}",
            {"preemptive": False, "pause_s": pause_s},
        )

    def schedule(self, instance: sp.Instance, pause_s: float) -> sp.Schedule:
        rows, now_s = [], 0.0
        for job, (gpus, run_s) in enumerate(
            zip(instance.workload.gpus.tolist(), instance.shortest_s.tolist(), strict=True)
        ):
            now_s = max(now_s, float(instance.workload.arrival_s[job]))
            rows.append((job, 0, gpus, now_s, now_s + run_s, 0.0))
            now_s += run_s + pause_s
        whole, times = np.array(rows)[:, :3].astype(np.int64), np.array(rows)[:, 3:]
        return sp.Schedule(*whole.T.copy(), *times.T.copy())


def test_a_loop_of_ones_own_goes_the_same_way() -> None:
    outcome = sp.simulate(jobs(), "1x2", OneAfterAnother(), RunOptions(round_s=10.0))
    assert isinstance(outcome, sp.Outcome)
    assert outcome.end_s.tolist() == [50.0, 120.0, 200.0]
    assert outcome.settings == {"preemptive": False, "pause_s": 10.0, "dropped": []}
    rows = sp.compare(jobs(), "1x2", [OneAfterAnother(5.0), "fifo"], budget_s=0.0).rows
    assert rows[0].cost > rows[1].cost
    with pytest.raises(InputError, match="one-after-another: takes no placement, got 'pack'"):
        sp.simulate(jobs(), "1x2", OneAfterAnother(), RunOptions(placement="pack"))
    assert options_of(OneAfterAnother()).takes == ("round_s",)


@dataclass
class Calls:
    """Names of the policies that were settled, in order."""

    names: list[str] = field(default_factory=list)

    def __call__(self, *given: Any, **more: Any) -> preparation.PreparedRun:
        found = prepare_run(*given, **more)
        self.names.append(found.name)
        return found


@pytest.mark.parametrize("module", [simulating, comparing, utility_comparing, adversary_search])
def test_a_run_is_settled_once(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    monkeypatch.setattr(module, "prepare_run", calls)
    if module is simulating:
        sp.simulate(jobs(), "2x2", "fifo")
    elif module is comparing:
        sp.compare(jobs(), "2x2", ["fifo", "hadar"], budget_s=0.0)
    elif module is utility_comparing:
        sp.compare_utility(jobs(), "2x2", ["fifo", "hadar"], budget_s=0.01)
    else:
        small = adversary_search.InstanceFamily(jobs=2, gpus=1, max_arrival=0, max_work=3)
        effort = adversary_search.JudgeEffort(evaluations=20)
        adversary_search.adversary("fifo", small, effort=effort)
    # The worst instance is run to be stored, and run again to be checked.
    expected = {simulating: ["fifo"], adversary_search: ["fifo", "fifo"]}
    assert calls.names == expected.get(module, ["fifo", "hadar"])


GENERAL = [
    path
    for folder in ("analysis", "cli", "execution")
    for path in sorted((ROOT / "shadowprice" / folder).rglob("*.py"))
    if folder != "execution" or path.parent.name == "execution"
]
SYSTEMS = ("analysis/copies/", "analysis/guarantees/")
"""Folders of analysis about systems, a file each."""
AS_A_METHOD = {
    "analysis/adversary/hidden_times.py": {"shadowprice.solvers.classic.srtf"},
    "analysis/adversary/search.py": {"shadowprice.solvers.classic.srtf"},
}
"""Where a policy is not measured but used: on one GPU shortest remaining time first is the optimum."""


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported(path: Path) -> set[str]:
    """Modules that a file imports, inside functions and for types only as well."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_general_code_imports_no_policy() -> None:
    offering = {
        module_of(path)
        for path in (ROOT / "shadowprice" / "solvers").rglob("*.py")
        if "\nPOLICIES" in path.read_text(encoding="utf-8")
    }
    assert {"shadowprice.solvers.hadar.hadar", "shadowprice.solvers.classic.fifo"} <= offering
    named = {
        str(path.relative_to(ROOT / "shadowprice")): found
        for path in GENERAL
        if (found := imported(path) & offering)
    }
    named = {path: found for path, found in named.items() if AS_A_METHOD.get(path) != found}
    assert {path: found for path, found in named.items() if not path.startswith(SYSTEMS)} == {}


def test_an_instance_of_a_run_is_built_in_one_place() -> None:
    places = {
        "preparation.py",
        "simulate.py",
        "compare.py",
        "options.py",
        "outcome.py",
        "runs.py",
    }
    built = [
        path.name
        for path in GENERAL
        if path.name in places
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Instance"
    ]
    assert built == ["preparation.py"]


def test_a_term_holds_under_a_preset() -> None:
    """What an instance says is not the published simulator's to drop."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0.0, 0.0], gpus=[2, 2], work=[10.0, 10.0], model=["VGG19", "VGG19"]
    )
    tiresias = RunOptions(preset="tiresias", skews=published_skews(), growth=Growth(4, 0.75))
    instance = prepare_run(jobs, CLUSTER, "dlas-gpu", tiresias).instance
    assert instance.locality is not None
    assert (
        instance.locality.spread_speed.tolist()
        == [published_skews().entry("VGG19").spread_speed] * 2
    )
    assert instance.elasticity is not None
    assert instance.elasticity.widest.tolist() == [4, 4]
