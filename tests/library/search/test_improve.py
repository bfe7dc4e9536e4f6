"""Searches make entries that verify, and only better ones take their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from shadowprice.analysis.availability import failures_of_jobs
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.simulate import simulate
from shadowprice.instances.objective import Objective
from shadowprice.library.collection import library_instance
from shadowprice.library.entries.entry import read_about, read_entry
from shadowprice.library.search.__main__ import main
from shadowprice.library.search.engine_orders import better_by_engine
from shadowprice.library.search.first_rows import first_rows
from shadowprice.library.verification import verify_entry


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("entries")


def searched(root: Path, name: str, seconds: str) -> int:
    return main([name, "--seconds", seconds, "--bound-seconds", "1", "--root", str(root)])


@pytest.mark.parametrize(
    "name", ["gangs-10-lognormal-2", "graphs-10-recurrent-3", "sharing-10-gandiva-1"]
)
def test_entries_are_opened_and_verify(root: Path, name: str) -> None:
    assert searched(root, name, "0.2") == 0
    which = library_instance(name)
    instance = which.instance()
    for goal in which.objectives:
        entry = read_entry(name, goal, root)
        assert verify_entry(which, goal, entry, instance).gap < 0.3
        assert entry.about.schedule.credit.by == entry.about.bound.credit.by == "shadowprice"


def test_a_search_again_leaves_no_entry_worse(root: Path) -> None:
    name = "sharing-10-gandiva-1"
    assert searched(root, name, "0.05") == 0
    before = read_about(name, Objective.FLOW, root)
    assert searched(root, name, "0.3") == 0
    after = read_about(name, Objective.FLOW, root)
    assert before is not None
    assert after is not None
    assert after.schedule.exact <= before.schedule.exact
    assert after.bound.exact >= before.bound.exact


def test_a_name_of_no_instance_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["gangs-11-*"])
    assert "gangs-11-*: no instance has such a name" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["failures-10-lognormal-1", "failures-10-lognormal-3"])
def test_runs_that_stop_before_their_node_fails_lose_nothing(name: str) -> None:
    instance = library_instance(name).instance()
    begun = simulate(instance, policy="srtf")
    schedule, tried = better_by_engine(
        instance, Objective.FLOW, begun, preemptive=True, seconds=0.1, seed=0
    )
    assert tried > 1
    assert schedule is not None
    assert failures_of_jobs(instance, schedule).sum() == 0
    found = Outcome.verified(instance, schedule, policy="order")
    assert Objective.FLOW.cost_s(instance.workload, found.end_s) < Objective.FLOW.cost_s(
        instance.workload, begun.end_s
    )


def test_first_rows_of_a_class_in_which_jobs_begin_once_do(root: Path) -> None:
    which = library_instance("gangs-10-lognormal-2")
    rows = list(first_rows(which.instance(), preemptive=False, seconds=5.0))
    assert {"sjf", "fifo-skip"} <= {row.method for row in rows}
    assert "srtf" not in {row.method for row in rows}
