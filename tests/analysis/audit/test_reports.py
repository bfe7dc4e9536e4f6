"""Reports of audits: costs by running again, capacities, pictures and pages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.analysis.audit.audit import Audit, AuditedRun, audit
from shadowprice.analysis.audit.figures import busiest_day, day_figure, overview
from shadowprice.analysis.audit.page import audit_page
from shadowprice.analysis.audit.rows import schedule_rows
from shadowprice.errors import InputError


def audited(tmp_path: Path, lines: list[str], cluster: str) -> AuditedRun:
    path = tmp_path / "ran.csv"
    path.write_text("\n".join(["job,node,gpus,start,end,submit,user,partition", *lines]) + "\n")
    (result,) = audit(path, cluster, budget_s=0.0).runs
    return result


def cost(result: AuditedRun, name: str) -> tuple[float, int, str]:
    (each,) = [each for each in result.costs if each.name.startswith(name)]
    return each.hours, each.later, each.payer


HOUR = 3600


def test_a_blocked_head_costs_those_behind_it(tmp_path: Path) -> None:
    """By hand: b needs both GPUs and waits for a; c could run beside a, and waited behind b."""
    rows = [
        f"a,0,1,0,{4 * HOUR},0,ann,p",
        f"b,0,2,{4 * HOUR},{5 * HOUR},0,bob,p",
        f"c,0,1,{5 * HOUR},{6 * HOUR},0,cid,p",
    ]
    result = audited(tmp_path, rows, "1x2")
    assert cost(result, "head-of-line") == (5.0, 1, "user cid pays most, 5.0")
    # Without a, b begins at once, and c after it: 4 h for b less, 1 h for c more.
    assert cost(result, "long jobs") == (3.0, 1, "user bob pays most, 4.0")
    assert result.costs[0].name == "head-of-line blocking"
    assert result.measures is not None
    assert result.measures.idle.held_back == 4.0  # c fits beside a.


def test_partitions_cost_who_waits_in_front_of_an_empty_one(tmp_path: Path) -> None:
    rows = [
        f"c,0,1,0,{HOUR // 2},0,cid,q",
        f"a,0,1,0,{HOUR},0,ann,p",
        f"b,0,1,{HOUR},{2 * HOUR},0,bob,p",
    ]
    result = audited(tmp_path, rows, "1x2")
    # In one pool b begins when c is done; within its partition of one GPU after a.
    assert cost(result, "partitions") == (0.5, 1, "user bob pays most, 0.5")


def test_fragmentation_costs_who_waits_for_whole_nodes(tmp_path: Path) -> None:
    rows = [
        f"a,0,1,0,{HOUR},0,ann,p",
        f"b,1,1,0,{2 * HOUR},0,bob,p",
        f"w,0,2,{HOUR},{2 * HOUR},0,cid,p",
    ]
    result = audited(tmp_path, rows, "2x2")
    assert cost(result, "fragmentation")[:2] in [(0.0, 0), (1.0, 1)]
    assert result.measures is not None
    assert result.measures.idle.by_node == 2.0


@pytest.fixture(scope="module")
def fifo(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    rng = np.random.default_rng(0)
    jobs = sp.generate("lognormal", jobs=80, seed=1, load=1.1, gpus_total=16)
    users, partitions = (
        rng.choice(names, len(jobs)).astype(object) for names in (["ann", "bob"], ["dev", "prod"])
    )
    jobs = replace(jobs, name=users, job_class=partitions)
    path = tmp_path_factory.mktemp("fifo") / "ran.csv"
    schedule_rows(sp.simulate(jobs, "4x4", "fifo")).to_csv(path, index=False)
    return audit(path, "5x4", budget_s=0.0)


def test_a_report_has_ten_lines_or_so_and_says_what_is_assumed(fifo: Audit) -> None:
    (result,) = fifo.runs
    lines = result.report()
    assert 8 <= len(lines) <= 12
    assert lines[-1].startswith("assumed: the cluster is the same all the time")
    hours = [each.hours for each in result.costs]
    assert hours == sorted(hours, reverse=True)
    assert {each.name.partition(",")[0] for each in result.costs} == {
        "head-of-line blocking",
        "fragmentation",
        "partitions",
        "long jobs",
    }


def test_capacities_are_varied(fifo: Audit) -> None:
    (result,) = fifo.runs
    given = result.comparisons[sp.Objective.FLOW].rows
    recorded, by_day = (each.comparison.rows for each in result.variants)
    assert [each.gpus for each in result.variants] == [16, 16]  # Of the twenty that were said.
    for before, now in zip(given, recorded, strict=True):
        assert now.cost_ticks >= before.cost_ticks
        assert now.proven_by.ticks >= before.proven_by.ticks
    assert by_day[0].cost_ticks == given[0].cost_ticks
    # What no run may begin beyond on its day can only delay.
    assert sum(row.cost_ticks for row in by_day) >= sum(row.cost_ticks for row in recorded)
    words = [line for line in result.report() if line.startswith("capacity")]
    for line, each in zip(words, result.variants, strict=True):
        row = each.comparison.rows[0]
        assert f"(flow, certified by {row.bound_kind})" in line
        assert str(row.holds_for) in line


def test_days_are_those_of_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "ran.csv"
    path.write_text(
        "job,gpus,start,end,submit\na,1,2025-01-01 23:00:00,2025-01-02 01:00:00,2025-01-01 22:00:00\n"
        "b,2,2025-01-03 05:00:00,2025-01-03 06:00:00,2025-01-03 05:00:00\n"
    )
    (result,) = audit(path, "1x2", budget_s=0.0, policies=()).runs
    assert result.measures is not None
    assert result.measures.most_by_day.tolist() == [1, 1, 2]
    assert result.measures.day_begin_s == -22 * HOUR
    assert [(w.name, w.mean_s) for w in result.measures.waits if w.kind == "hour"] == [
        ("5", 0),
        ("22", HOUR),
    ]


def test_a_page_shows_pictures_and_asks_the_network_for_nothing(fifo: Audit) -> None:
    text = audit_page(fifo)
    assert text.count("<svg") == 4
    assert "none has less than" in text
    # Names of vocabularies are no addresses that anybody asks.
    assert not re.search(r"(src|href)=.https?:", text)
    with pytest.raises(InputError, match="nothing ran on day 900, expected 0 to"):
        audit_page(fifo, day=900)


def test_pictures_are_of_the_record_and_the_best_that_ran_again(fifo: Audit) -> None:
    (result,) = fifo.runs
    figure = overview(result)
    best = min(
        result.comparisons[sp.Objective.FLOW].rows[1:], key=lambda row: row.cost_ticks
    ).policy
    legends = [axes.get_legend() for axes in figure.get_axes()]
    labels = [text.get_text() for each in legends if each for text in each.get_texts()]
    assert labels == ["recorded", f"{best}, the best of those run again"] * 2
    day = day_figure(result, busiest_day(result))
    assert day.get_axes()[0].get_xlim()[1] == pytest.approx(24.0)
