"""Whatever a public name gives is shown on one screen, in the same words in every process, with plain numbers."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.adversary.family import InstanceFamily
from shadowprice.analysis.adversary.judge import JudgeEffort
from shadowprice.analysis.adversary.search import adversary
from shadowprice.analysis.audit.rows import schedule_rows
from shadowprice.analysis.certify import certify
from shadowprice.analysis.certify_utility import certify_utility
from shadowprice.analysis.limits import limits
from shadowprice.analysis.resource_augmentation import speed_curve
from shadowprice.brief import COLUMNS, Brief, described, short
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.instances.objective import BoundedCost
from shadowprice.instances.terms.settings import TermSettings
from shadowprice.instances.traces.csv_table import load_frame
from support.public_classes import fields_of, is_enum, public_classes
from support.written_failures import failures_of

CHARACTERS, LINES = 2000, 20
JOBS = 500

PLAIN = {"int", "float", "str", "bool", "None", "Fraction", "Exact", "Annotated", "Meta"}
"""Words in annotations of fields whose values are short: whole numbers, names, numbers of graphs."""
OF_CONSTRAINTS = {"ge", "le", "1", "MAX_NODES", "tuple", "CpuMemory"}
AS_PARAMETERS = (HadarE, TermSettings)
"""Policies and terms as they are written, which are shown by their parameters."""


@cache
def cluster() -> sp.Cluster:
    """Many nodes, no two neighbours of one type."""
    return sp.Cluster(
        tuple(sp.Node(8, gpu_type=f"type-{k % 2}-of-a-long-name") for k in range(120))
    )


@cache
def jobs() -> sp.Workload:
    drawn = sp.generate("lognormal", jobs=JOBS, seed=1, gpus_total=64)
    return replace(drawn, source="/a/long/path/to/where/traces/are/kept" * 20)


@cache
def few() -> sp.Workload:
    return jobs().select(np.arange(JOBS) < 6)


STUDY = {
    "study": "a study of one run",
    "workloads": {"w": {"generator": "lognormal", "parameters": {"jobs": 20}}},
    "clusters": {"c": "2x8"},
    "policies": ["fifo"],
    "seeds": [1],
}


@cache
def outcome() -> sp.Outcome:
    return sp.simulate(jobs(), cluster(), "srtf")


@cache
def log() -> Path:
    """Rows of a run, as an audit reads them."""
    path = Path(mkdtemp()) / "ran.csv"
    schedule_rows(outcome()).to_csv(path, index=False)
    return path


MADE: Mapping[str, Callable[[], Any]] = {
    "audit": lambda: sp.audit(log(), cluster(), policies=("srtf",), budget_s=0),
    "allocate": lambda: sp.allocate(
        sp.AllocationProblem.from_columns(
            gpu_types=["a", "b"], capacity=[9, 9], throughput=[[2.0, 1.0]] * JOBS
        )
    ),
    "compare": lambda: sp.compare(jobs(), cluster(), ["fifo", "srtf"], budget_s=0.0),
    "compare_utility": lambda: sp.compare_utility(jobs(), cluster(), ["fifo"], budget_s=0.0),
    "copies_optimum": lambda: sp.copies_optimum(
        sp.Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[400, 300]), "2x1"
    ),
    "endless": lambda: sp.endless("gavel-published", jobs_per_hour=1.0),
    "generate": jobs,
    "load": lambda: sp.load(jobs().to_frame()),
    "optimum": lambda: sp.optimum(few(), "1x8", budget_s=1.0),
    "preemptive_optimum": lambda: sp.preemptive_optimum(few(), "1x8", budget_s=5.0),
    "simulate": outcome,
    "slotted_preemptive_optimum": lambda: sp.slotted_preemptive_optimum(
        sp.Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[2, 3]), "1x1"
    ),
    "study": lambda: sp.study(STUDY),
    "strongest_bound": lambda: sp.strongest_bound(jobs(), cluster(), preemptive=True, budget_s=0.0),
    "verify": lambda: sp.verify(outcome().instance, outcome().schedule),
}
"""What every function of the package gives for 500 jobs, or as many as it takes."""

ARRAYS_AND_PICTURES = {"plot_prices", "prices_frame", "verify"}
"""Functions that give what pandas, NumPy and Matplotlib show."""

ALSO: Mapping[str, Callable[[], Any]] = {
    "certify": lambda: certify(outcome(), budget_s=0.0),
    "certify_utility": lambda: certify_utility(outcome(), "effective_throughput", budget_s=0.0),
    "limits": lambda: limits(outcome()),
    "speed_curve": lambda: speed_curve(few(), "1x8", ["fifo"], [1, 2], budget_s=0.1),
    "adversary": lambda: adversary(
        "fifo",
        InstanceFamily(jobs=2, gpus=1, max_arrival=0, max_work=3),
        effort=JudgeEffort(evaluations=20),
    ),
    "hadare": lambda: sp.simulate(few(), "2x8", "hadare"),
    "failures": lambda: sp.simulate(
        few(),
        "2x8",
        "srtf",
        sp.RunOptions(failures=failures_of("mtbf_s=86400,repair_s=60")),
    ),
    "prices": lambda: sp.simulate(few(), "2x8", "hadar", sp.RunOptions(prices=True)),
    "frame": lambda: load_frame(jobs().to_frame()),
}
"""What public modules give that no function of the package does."""


def test_every_function_of_the_package_is_looked_at() -> None:
    names = {name for name in sp.__all__ if inspect.isfunction(getattr(sp, name))}
    assert names - set(MADE) - ARRAYS_AND_PICTURES - {"load_throughputs"} == set()


def of_ours(thing: object) -> bool:
    return type(thing).__module__.startswith("shadowprice.")


def parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Members of an object that its users can see."""
    if isinstance(thing, Mapping):
        yield from ((f"[{key!r}]", each) for key, each in list(thing.items())[:3])
    elif isinstance(thing, tuple | list | set | frozenset):
        yield from ((f"[{k}]", each) for k, each in enumerate(list(thing)[:3]))
    elif of_ours(thing):
        names = set(getattr(thing, "__dataclass_fields__", ()))
        for name in dir(type(thing)):
            if isinstance(inspect.getattr_static(type(thing), name), property | cached_property):
                names.add(name)
        for name in sorted(names):
            if not name.startswith("_"):
                try:
                    yield f".{name}", getattr(thing, name)
                except sp.ShadowpriceError:
                    continue  # It says so of what the object does not have.


@cache
def made() -> Mapping[str, Any]:
    return {name: make() for name, make in (*MADE.items(), *ALSO.items())}


@cache
def found() -> Mapping[int, tuple[str, Any]]:
    """Everything of ours that can be reached from what the functions give, with the way to it."""
    ahead = list(made().items())
    kept: dict[int, tuple[str, Any]] = {}
    held = []  # So that no two objects have one number.
    while ahead:
        path, thing = ahead.pop()
        if id(thing) in kept:
            continue
        held.append(thing)
        kept[id(thing)] = (path, thing)
        ahead += [(path + name, each) for name, each in parts(thing) if each is not thing]
    return {number: each for number, each in kept.items() if of_ours(each[1])}


def test_what_is_shown_of_a_result_fits_a_screen() -> None:
    assert len(found()) > 100
    for path, thing in found().values():
        expect_a_screen(repr(thing), path)
        show = getattr(thing, "_repr_html_", None)
        if show is not None:
            assert len(show()) < 10 * CHARACTERS, path
            assert show().count("<tr") < 3 * LINES, path


def test_what_is_shown_is_the_same_every_time() -> None:
    """It tells no times of this process, and no addresses."""
    for name, make in MADE.items():
        assert repr(make()) == repr(made()[name])


def expect_a_screen(text: str, path: str) -> None:
    assert len(text) <= CHARACTERS, f"{path}: {len(text)} characters: {text[:200]}"
    lines = text.splitlines()
    assert len(lines) <= LINES, f"{path}: {len(lines)} lines"
    assert re.search(r"\b0x[0-9a-f]{4,}", text) is None, f"{path}: {text[:200]}"
    if len(lines) > 1:
        assert max(map(len, lines)) <= COLUMNS, path


def test_every_class_has_a_text_that_stays_short_or_was_looked_at() -> None:
    """Texts of generated ones have no field that may be long; ours were met above, or list fields in short."""
    looked_at = {type(thing).__repr__ for _, thing in found().values()} | {Brief.__repr__}
    missing = {}
    for thing, path in public_classes().items():
        if is_generated(thing):
            shown = (text for name, text in fields_of(thing).items() if name in shown_fields(thing))
            words = {word for text in shown for word in re.findall(r"[\w.]+", text)}
            long = {word for word in words - PLAIN - OF_CONSTRAINTS if not is_enum(word)}
            if long and not issubclass(thing, AS_PARAMETERS):
                missing[thing.__name__] = f"{path}: {sorted(long)}"
        elif is_ours(thing) and thing.__repr__ not in looked_at:
            missing[thing.__name__] = path
    assert missing == {}


def is_generated(thing: type) -> bool:
    if issubclass(thing, msgspec.Struct):
        return not inspect.isfunction(thing.__repr__)
    return dataclasses.is_dataclass(thing) and hasattr(thing.__repr__, "__wrapped__")


def is_ours(thing: type) -> bool:
    own = getattr(thing.__repr__, "__module__", "").startswith("shadowprice.")
    return own and not inspect.isabstract(thing)


def shown_fields(thing: type) -> set[str]:
    if dataclasses.is_dataclass(thing):
        return {each.name for each in dataclasses.fields(thing) if each.repr}
    return set(getattr(thing, "__struct_fields__", ()))


def test_costs_bounds_and_ratios_are_floats_in_seconds_that_promise_no_more() -> None:
    costs = [(path, each) for path, each in found().values() if isinstance(each, BoundedCost)]
    kinds = {type(each).__name__ for _, each in costs}
    assert kinds == {
        thing.__name__
        for thing in public_classes()
        if issubclass(thing, BoundedCost) and not inspect.isabstract(thing)
    } - {"Certified"}  # The certificate that is in a file.
    for path, each in costs:
        assert {type(each.cost), type(each.bound), type(each.ratio)} == {float}, path
        cost, bound = each.exact_s()
        assert cost is not None, path
        assert bound is not None, path
        assert each.cost == float(cost), path
        assert 0 <= bound - Fraction(each.bound) <= bound / 2**52, path
        assert each.factor == cost / bound, path
        assert 0 <= Fraction(each.ratio) - each.factor <= each.factor / 2**51, path
        assert re.search(r" s\b|_s=", repr(each)), path


# Fields in short.


NAMES = st.text(alphabet="ab_", min_size=1, max_size=80)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.integers(),
        st.floats(),
        st.text(max_size=3000),
        st.fractions(),
        st.just(np.zeros((300, 4))),
        st.just(jobs),
        st.builds(object),
    ),
    lambda each: st.one_of(
        st.lists(each, max_size=30),
        st.lists(each, max_size=9).map(tuple),
        st.dictionaries(NAMES, each, max_size=9),
    ),
    max_leaves=25,
)


@given(NAMES, st.dictionaries(NAMES, VALUES, max_size=40))
@example("many", {f"field_{k}": "x" * 50 for k in range(40)})
def test_fields_fit_a_screen_whatever_they_hold(name: str, values: dict[str, Any]) -> None:
    expect_a_screen(described(name, {key: short(each) for key, each in values.items()}), name)


def test_fields_are_told_where_they_differ_from_their_defaults() -> None:
    assert repr(sp.Overheads()) == "Overheads()"
    assert repr(sp.Overheads(start_s=30.0)) == "Overheads(start_s=30.0)"
    assert short({3, 1, 2}) == "{1, 2, 3}"
    assert short(np.zeros(JOBS)) == "array of 500"
    assert short("line\nline") == r"'line\nline'"
    assert short(Fraction(10**400, 3)) == "a number of 400 digits"
    assert short(object()) == "object()"
