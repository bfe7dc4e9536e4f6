"""Certificates by windows of completions: two programs value a tree alike, and no change of one proves too much."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certificates.windows import parts_of
from shadowprice.analysis.certify import certify
from shadowprice.errors import SolverError
from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, canonical, check, digest
from shadowprice.proofs.lower_bounds.completion_windows import tree_bound
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.completions.completion_search import (
    CompletionTree,
    Cut,
    Priced,
    search_optimum,
)
from support.certificate_text import MALFORMED

MOMENTS = st.fractions(0, 40, max_denominator=3)


@st.composite
def few_jobs(draw, most=4):
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 9),
                st.integers(1, 9),
                st.integers(1, 4),
                st.sampled_from([0, 1, Fraction(5, 2)]),
            ),
            min_size=1,
            max_size=most,
        )
    )
    release, work, gpus, weight = (list(column) for column in zip(*rows, strict=True))
    return Relaxation(release, work, gpus, [Fraction(w) for w in weight], 4, Fraction(1))


@st.composite
def leaves(draw, jobs):
    grid = sorted(draw(st.sets(MOMENTS, min_size=2, max_size=6)))
    cells = len(grid) - 1
    row = st.lists(st.integers(0, 30), min_size=cells, max_size=cells).map(tuple)
    return Priced(tuple(grid), tuple(draw(row) for _ in range(jobs)))


@st.composite
def trees(draw, jobs):
    """Trees that no search made, some leaves of which are the same."""
    of = tuple(sorted(draw(st.sets(st.integers(0, len(jobs.release) - 1), min_size=1))))
    known = [draw(leaves(len(of)))]

    def part(depth):
        if depth and draw(st.booleans()):
            job = draw(st.sampled_from(of))
            return Cut(job, draw(MOMENTS), part(depth - 1), part(depth - 1))
        if draw(st.booleans()):
            known.append(draw(leaves(len(of))))
        return known[-1]

    return CompletionTree(part(4), of, Fraction(1, draw(st.integers(1, 4))))


def columns(jobs):
    """The jobs as the checker has them."""
    area = [p * g for p, g in zip(jobs.work, jobs.gpus, strict=True)]
    given_columns = (jobs.release, jobs.weight, jobs.work, area, jobs.gpus)
    return checker.costs.LeastWork(*given_columns, jobs.total_gpus, jobs.total_gpus, 1, True)


def valued(jobs, bound, parts):
    """Bound of parts as they are written."""
    tree = checker.windows.WindowTree(columns(jobs), bound)
    for part in json.loads(json.dumps(parts)):
        part.pop("kind")
        tree.take(part)
    return tree.bound()


def written(tree):
    unit = tree.price_unit
    text = str(unit) if unit.denominator > 1 else unit.numerator
    return {"jobs": list(tree.jobs), "unit": text}, list(parts_of(tree))


@settings(max_examples=18, deadline=None)
@given(st.data())
def test_two_programs_value_a_tree_alike(data):
    jobs = data.draw(few_jobs())
    tree = data.draw(trees(jobs))
    try:
        expected = tree_bound(jobs, tree)
    except ValueError as error:
        assert "no leaf" in str(error)  # noqa: PT017
        with pytest.raises(Rejected, match="nothing can be done"):
            valued(jobs, *written(tree))
        return
    assert valued(jobs, *written(tree)) == expected


def changes(bound, parts):
    """The same with one number, or one side, changed."""
    for k, part in enumerate(parts):
        for field, value in part.items():
            for other in others(value):
                yield bound, [*parts[:k], {**part, field: other}, *parts[k + 1 :]]
        yield bound, [*parts[:k], *parts[k + 1 :]]
    for field, value in bound.items():
        for other in others(value):
            yield {**bound, field: other}, parts


def others(value):
    if isinstance(value, list):
        for k, each in enumerate(value):
            for other in others(each):
                yield [*value[:k], other, *value[k + 1 :]]
        yield value[:-1]
    elif isinstance(value, int):
        yield from (value + 1, max(value - 1, 0), 3 * value)
    elif value in ("early", "late"):
        yield "late" if value == "early" else "early"
    elif "/" in value:
        other = Fraction(value) * Fraction(5, 4)
        yield str(other) if other.denominator > 1 else other.numerator


@settings(max_examples=6, deadline=None)
@given(few_jobs(most=3), st.data())
def test_no_change_of_a_tree_proves_more_than_the_optimum(jobs, data):
    """Whatever cuts and prices are, they bound every schedule, or are refused."""
    jobs = replace(jobs, weight=[max(w, Fraction(1)) for w in jobs.weight])
    try:
        found = list(search_optimum(jobs))[-1]
    except SolverError:
        return
    changed = list(changes(*written(found.tree)))
    less = 0
    for _ in range(40):
        bound, parts = data.draw(st.sampled_from(changed))
        try:
            value = valued(jobs, bound, parts)
        except (Rejected, *MALFORMED):
            less += 1
        else:
            assert value <= found.upper_ticks
    assert less


def ten_jobs():
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0, 3, 4, 9], gpus=[1, 3, 2, 4, 2], work=[20, 9, 7, 5, 11]
    )
    return sp.simulate(jobs, "1x4", "srtf")


@pytest.fixture(scope="module")
def certified():
    return certify(ten_jobs(), "flow", budget_s=60.0)  # It ends with the optimum, at once.


def signed(every):
    lines = [canonical(record) for record in every[:-1]]
    claim = {**every[-1]}
    claim.pop("file", None)
    claim["file"] = digest([*lines, canonical(claim)])
    return "\n".join([*lines, canonical(claim), ""])


def test_a_run_of_few_jobs_is_within_little_of_its_optimum(certified):
    assert certified.bound_kind == "completion-windows"
    assert certify(ten_jobs(), "flow", budget_s=0.0).ratio > certified.ratio
    best = sp.preemptive_optimum(ten_jobs().instance, objective="flow")
    cost = Fraction(check(certified.text)["cost"])
    assert best.proven
    assert (
        cost / best.upper_ticks <= certified.factor < cost / best.upper_ticks + Fraction(1, 10**5)
    )


@pytest.mark.parametrize(
    ("place", "change", "says"),
    [
        ("bound", {"jobs": [0, 1, 2, 3, 7]}, "which has no windows|that there are not"),
        ("bound", {"jobs": [1, 0]}, "that there are not"),
        ("bound", {"unit": 0}, "have no unit"),
        ("bound", {"unit": "1/3"}, "the bound is"),
        ("bound", {"grid": [0, 1]}, "takes no prices over time"),
        ("bound", {"prices": [1]}, "takes no prices"),
        ("bound", {"bound": "mean-busy-time"}, "parts are of windows"),
        ("part", {"grid": [3, 2]}, "does not increase"),
        ("part", {"prices": [[1]]}, "not a price of each job"),
        ("part", {"more": 1}, "has fields"),
        ("part", {"cut": 0}, "neither a cut nor has prices"),
    ],
)
def test_a_forged_tree_is_refused(certified, place, change, says):
    every = [json.loads(line) for line in certified.text.splitlines()]
    k = next(k for k, record in enumerate(every) if record["kind"] == place and "cut" not in record)
    every[k] = {**every[k], **change}
    with pytest.raises(Rejected, match=says):
        check(signed(every))


def test_parts_are_of_all_windows_and_no_more(certified):
    every = [json.loads(line) for line in certified.text.splitlines()]
    last = every[-2]
    assert last["kind"] == "part"
    with pytest.raises(Rejected, match="after all windows have prices"):
        check(signed([*every[:-1], last, every[-1]]))
    with pytest.raises(Rejected, match="some windows have no prices"):
        check(signed([*every[:-2], every[-1]]))
    plain = [record for record in every if record["kind"] != "part"]
    first = next(k for k, record in enumerate(every) if record["kind"] == "part")
    cut = {"kind": "part", "cut": 0, "at": 9 * 2**20, "first": "early"}
    none = {"kind": "part", "grid": [], "prices": []}
    with pytest.raises(Rejected, match="no prices before these windows"):
        check(signed([*plain[:first], none, every[-1]]))
    for wrong, says in (
        ({"cut": 9}, "which has no windows"),
        ({"first": "last"}, "neither early nor late"),
    ):
        with pytest.raises(Rejected, match=says):
            check(signed([*plain[:first], {**cut, **wrong}, every[-1]]))


def test_windows_are_of_gangs_alone():
    jobs = columns(Relaxation([0], [1], [1], [Fraction(1)], 1, Fraction(1)))
    with pytest.raises(Rejected, match="jobs share GPUs"):
        checker.windows.WindowTree(jobs._replace(gangs=False), {"jobs": [0], "unit": 1})
