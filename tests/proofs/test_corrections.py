"""docs/corrections.md, recomputed; and the theorem that it improves."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shadowprice.analysis.adversary.search import WorstInstance, recheck
from shadowprice.analysis.simulate import simulate
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.hard_instances import hard_instances
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.strategies import instances
from shadowprice.instances.workload import Workload
from shadowprice.proofs.asrpt import prediction as asrpt_prediction
from shadowprice.proofs.asrpt import sharper as asrpt_sharper
from shadowprice.proofs.asrpt.conversion import Gangs, completions
from shadowprice.solvers.offline.non_preemptive import optimum
from support.paths import ROOT

STORED = {hard.name: hard for hard in hard_instances()}

# --- ASRPT-sharper ----------------------------------------------------------------------------


def wide_behind_narrow() -> Instance:
    """A gang of all GPUs waits for a job of one: one busy GPU is all that can be promised."""
    jobs = Workload.from_columns(arrival_s=[0.0, 0.0], gpus=[1, 4], work=[100.0, 30.0])
    return Instance(Cluster.parse("1x4"), jobs)


@given(instances(max_jobs=8, max_nodes=1, max_gpus=8), st.lists(st.integers(-3, 3), min_size=8))
@example(instance=wide_behind_narrow(), errors=[0] * 8)
def test_the_sharper_theorem_holds_job_by_job(instance: Instance, errors: list[int]) -> None:
    virtual_s = instance.shortest_s * 2.0 ** np.array(errors[: len(instance.workload)])
    gangs = Gangs.of(instance, virtual_s)
    ends = completions(gangs, gangs.longest)
    # Releases are rounded up to the grid for the bound only.
    assert all(end <= most for end, most in zip(ends, asrpt_sharper.job_bounds(gangs), strict=True))
    assert asrpt_sharper.check(instance, float(sum(ends) / 2**20), virtual_s)
    assert asrpt_sharper.bound(instance, virtual_s) <= asrpt_prediction.bound(instance, virtual_s)


@pytest.mark.parametrize(
    ("gang", "capacity", "busy", "factor"),
    [
        ([1, 1], 1, 1, Fraction(2)),
        ([4, 4, 4], 4, 4, Fraction(2)),
        ([1] * 9, 8, 8, Fraction(3) - Fraction(1, 8)),
        ([2, 4, 2], 4, 2, Fraction(3)),
        ([1, 4], 4, 1, Fraction(5)),
        ([3, 5], 8, 5, 1 + Fraction(8, 5) + Fraction(2, 5)),
        ([1, 1, 1], 8, None, Fraction(2)),
    ],
)
def test_the_sharper_factor_by_hand(
    gang: list[int], capacity: int, busy: int | None, factor: Fraction
) -> None:
    jobs = Workload.from_columns(arrival_s=[0.0] * len(gang), gpus=gang, work=5.0)
    assert asrpt_sharper.least_busy(gang, capacity) == busy
    assert asrpt_sharper.bound(Instance(Cluster.parse(f"1x{capacity}"), jobs)) == factor


# --- docs/corrections.md ----------------------------------------------------------------------

CORRECTIONS = ROOT / "docs" / "corrections.md"
RECORD = ROOT / "benchmarks" / "records" / "hard_instances.md"


def runs_in_words(found: WorstInstance, *, witness: bool) -> str:
    """Runs as the page writes them: job, start and end, in order of start."""
    outcome = found.witness if witness else found.policy
    rows = outcome.schedule.to_frame().sort_values(["start_s", "job"])
    names = outcome.instance.workload.id
    return ", ".join(f"{names[row.job]} {row.start_s:g}-{row.end_s:g}" for row in rows.itertuples())


def section_of(name: str) -> str:
    sections = re.split(r"^## ", CORRECTIONS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [each for each in sections if f"`{name}`" in each]
    return section


ON_THE_PAGE = [
    "asrpt-one-gpu",
    "asrpt-early-six-jobs",
    "asrpt-flow-six-jobs",
    "las2d-six-jobs",
]


@pytest.mark.parametrize("name", ON_THE_PAGE)
def test_the_page_of_corrections_says_what_is_true(name: str) -> None:
    found = recheck(STORED[name])
    section, hard = section_of(name), found.hard
    for told in (
        runs_in_words(found, witness=False),
        runs_in_words(found, witness=True),
        f"{hard.policy_cost_s:g}",
        f"{hard.witness_cost_s:g}",
        f"{float(hard.ratio):.3f}",
    ):
        assert told in section


def test_a_job_alone_attains_the_sharper_factor_on_one_gpu() -> None:
    found = recheck(STORED["asrpt-one-gpu"])
    assert found.ratio == 2 == asrpt_sharper.bound(found.hard.instance)


def test_early_starts_exceed_what_the_theorem_without_them_allows() -> None:
    found = recheck(STORED["asrpt-early-six-jobs"])
    assert found.bound is None
    assert found.ratio > asrpt_prediction.bound(found.hard.instance)


def test_queues_of_fixed_thresholds_exceed_twice_the_optimum() -> None:
    found = recheck(STORED["las2d-six-jobs"])
    assert found.ratio > 2
    for n in range(2, 8):
        assert Fraction(las2d_cost(n)) == 3600 * n + n * (n - 1) // 2


def las2d_cost(n: int) -> float:
    """One job of an hour, which just fills the first queue, and n - 1 of one second, on one GPU."""
    jobs = Workload.from_columns(arrival_s=[0.0] * n, gpus=1, work=[3600.0] + [1.0] * (n - 1))
    outcome = simulate(jobs, "1x1", "las2d")
    return Objective.COMPLETION.cost_s(jobs, outcome.end_s)


def test_stretching_all_jobs_does_not_stretch_flow_times() -> None:
    assert [stretched_optimum_s(rho) for rho in (1, 2)] == [4.0, 14.0]
    section = section_of("stretch")
    assert "14" in section
    assert stretched_optimum_s(2, "completion") <= 2 * stretched_optimum_s(1, "completion")


def stretched_optimum_s(rho: int, objective: str = "flow") -> float:
    """OPT of four jobs of rho seconds released at 0, 1, 2 and 3 on one GPU."""
    jobs = Workload.from_columns(arrival_s=[0, 1, 2, 3], gpus=1, work=float(rho))
    found = optimum(Instance(Cluster.parse("1x1"), jobs), objective, method="cp-sat")
    assert found.proven
    return found.upper_s


# --- benchmarks/records/hard_instances.md ----------------------------------------------------


@pytest.mark.parametrize("name", STORED)
def test_the_table_of_hard_instances_is_that_of_the_files(name: str) -> None:
    found, hard = recheck(STORED[name]), STORED[name]
    bound = "-" if found.bound is None else f"{float(found.bound.factor):.3f}"
    jobs = len(hard.instance.workload)
    row = f"| `{name}` | {hard.objective} | {jobs} | {float(hard.ratio):.3f} | {bound} |"
    assert row in RECORD.read_text(encoding="utf-8")


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las2d", "asrpt", "hadar-committed"])
def test_six_jobs_are_nearly_as_bad_as_the_worst_found_with_more(policy: str) -> None:
    shares: list[Fraction] = []
    for hard in STORED.values():
        if hard.policy.partition(":")[0] == policy:
            more = hard.provenance.get("found_with_more_jobs", [])
            if more:
                worst = max(Fraction(other["ratio"]) for other in more)
                shares.append(hard.ratio / max(hard.ratio, worst))
    assert max(shares) >= Fraction(9, 10)
