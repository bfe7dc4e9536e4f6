"""Terms as they are written: what is printed is read again, and each mistake is one line with its place."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.run_options import OF_THE_ENGINE, RunOptions
from shadowprice.cli.options import OPTION_OF, CommandOptions
from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.charges import ChargesSettings
from shadowprice.instances.terms.options.reading import terms_of_mapping, terms_of_options
from shadowprice.instances.terms.registry import (
    DECLARED,
    ORIGINS,
    SETTINGS,
    TERMS,
    DeclaredTerms,
    term_of_option,
)
from shadowprice.instances.terms.settings import settings_of
from shadowprice.instances.terms.spread import SpreadSettings

SECONDS = st.integers(1, 2**40).map(lambda ticks: ticks / 2**20)
NUMBERS = st.floats(1e-30, 1e30)
NAMES = st.text(
    st.characters(exclude_categories=("C", "Zl", "Zp"), exclude_characters=","), min_size=1
)
CHECKPOINTS: dict[str, Any] = {"interval_s": SECONDS, "cost_s": SECONDS}
LAW: dict[str, Any] = {"mtbf_s": SECONDS, "repair_s": SECONDS}
SHAPES = st.floats(0.05, 100)
SEEDS = st.integers(0, 2**63 - 1)


def of(needed: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(needed, optional=optional)


def window(first: int, more: int, latest: dict[str, float]) -> dict[str, Any]:
    return {"first": first, "last": first + more, **latest}


DRAWN: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "charges": of({}, {"start_s": SECONDS, "restart_s": SECONDS, "migration_s": SECONDS}),
    "sharing": of({}, {"file": NAMES}),
    "graphs": of(
        {},
        {
            "intra_gb_per_s": NUMBERS,
            "nic_gb_per_s": NUMBERS,
            "nic_sharing": st.sampled_from(["per-gpu", "per-job"]),
            "file": NAMES,
        },
    ),
    "profiles": of({}, {"file": NAMES}),
    "spread": of({}, {"file": NAMES}),
    "widths": of({"widest": st.integers(1, 2**31)}, {"efficiency": st.floats(0.51, 1)})
    | of({"file": NAMES}, {}),
    "failures": of(LAW, {"law": st.just("exponential"), "seed": SEEDS})
    | of({**LAW, "law": st.just("weibull"), "shape": SHAPES}, {"repair_shape": SHAPES})
    | of({"law": st.just("none"), **CHECKPOINTS}, {})
    | of({"file": NAMES}, {"nodes": st.integers(1, 999), "from_day": st.floats(0, 1e9)}),
    "quotas": of({"file": NAMES}, {"date": st.datetimes().map(lambda date: date.isoformat())}),
    "window": st.builds(
        window, st.integers(0, 2**50), st.integers(1, 2**50), of({}, {"latest_s": SECONDS})
    ),
    "restart": of({}, {}),
    "goodput": of(
        {"tables": NAMES},
        {"interference": st.floats(0, 0.99)},
    ),
}
"""Settings of every term that are as expected."""


@pytest.mark.parametrize("name", SETTINGS)
def test_a_term_that_is_printed_and_read_again_is_itself(name: str) -> None:
    @given(DRAWN[name])
    def read(settings: dict[str, Any]) -> None:
        (term,) = terms_of_mapping({name: settings}, "file")
        assert type(term) is SETTINGS[name]
        assert terms_of_options([str(term)]) == (term,)
        assert terms_of_mapping({name: term.settings}, "file") == (term,)
        # What YAML has of the same: text.
        assert terms_of_mapping({name: {k: str(v) for k, v in settings.items()}}, "file") == (term,)

    read()


@given(st.permutations(list(SETTINGS)))
def test_the_order_in_which_terms_are_written_does_not_matter(names: list[str]) -> None:
    words = {"quotas": "quotas:file=f", "window": "window:last=1", "widths": "widths:widest=2"}
    words["failures"] = "failures:mtbf_s=9,repair_s=1"
    words["goodput"] = "goodput:tables=t"
    found = terms_of_options([words.get(name, name) for name in names])
    assert [term.feature for term in found] == list(SETTINGS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fialures"], "--with fialures: no such term, did you mean 'failures'"),
        (["charges:strat_s=3"], "--with charges: unknown key 'strat_s'; did you mean 'start_s'?"),
        (["copies"], "--with copies: is no term that is written, but given by --policy hadare"),
        (["restart:now=1"], "--with restart: unknown key 'now'; expected none"),
        (["charges:start_s=x"], "--with charges: start_s is 'x', expected seconds >= 0"),
        (["charges:start_s=-1"], "--with charges: start_s is -1.0, expected seconds >= 0"),
        (["charges:start_s=inf"], "start_s is 'inf', expected seconds >= 0"),
        (["charges:start_s=1,start_s=1"], "--with charges: start_s is given twice, expected once"),
        (["charges:start_s=1", "charges:restart_s=1"], "--with charges: is given twice"),
        (["charges:"], "--with 'charges:': expected NAME or NAME:key=value,..."),
        ([""], "--with '': expected NAME or NAME:key=value,..."),
        (
            ["spread:file=a,b.json"],
            "'b.json' is no key=value; a comma begins the next key, expected it twice",
        ),
        (["spread:file="], "file is '', expected the path of a file"),
        (["spread:a.json"], "'a.json' is no key=value"),
        (["widths"], "--with widths: has neither widest nor file"),
        (["widths:widest=2,file=x"], "file says widest and efficiency of each model"),
        (["widths:widest=2.5"], "widest is 2.5, expected a number of GPUs from 1"),
        (["widths:widest=2,efficiency=0.5"], "efficiency is 0.5, expected 1/2 < e <= 1"),
        (["graphs:nic_sharing=all"], "nic_sharing is 'all', expected one of per-gpu, per-job"),
        (["quotas"], "--with quotas: has no file"),
        (["quotas:file=x,date=today"], "date is 'today', expected one as 2020-04-01T00:00:00"),
        (["window:first=7,last=3"], "first is 7 and last 3, expected first < last"),
        (["window:last=3,latest_s=0"], "latest_s is 0.0, expected seconds > 0"),
        (["goodput"], "--with goodput: has no tables"),
        (
            ["goodput:tables=x,interference=1"],
            "interference is 1.0, expected a number from 0, below 1",
        ),
        (["failures"], "law exponential has no mtbf_s, expected mtbf_s, repair_s"),
        (["failures:mtbf_s=9,repair_s=1,shape=2"], "shape does not apply to law exponential"),
        (["failures:law=weibull,mtbf_s=9,repair_s=1"], "law weibull has no shape"),
        (["failures:law=none,mtbf_s=9"], "mtbf_s does not apply to law none"),
        (["failures:file=x,law=weibull"], "law does not apply to a file of faults"),
        (["failures:mtbf_s=9,repair_s=1,nodes=3"], "nodes does not apply to law exponential"),
        (["failures:mtbf_s=9,repair_s=1,cost_s=3"], "cost_s is 3.0 without an interval"),
    ],
)
def test_each_mistake_is_named_with_what_was_expected(words: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        terms_of_options(words)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_value_with_a_comma_is_written_as_it_is_in_files_and_doubled_in_options() -> None:
    (term,) = terms_of_mapping({"spread": {"file": "a,b.json"}}, "study.yaml: with")
    assert term == SpreadSettings("a,b.json")
    assert str(term) == "spread:file=a,,b.json"
    assert terms_of_options([str(term)]) == (term,)


def test_every_feature_is_brought_by_something() -> None:
    assert {*SETTINGS, *DECLARED, *ORIGINS} == set(Feature)
    assert [term.feature for term in TERMS] == [
        each
        for each in Feature
        if each not in DeclaredTerms.__struct_fields__ and each is not Feature.OWN
    ]


def test_a_switch_is_set_by_one_term_or_one_option() -> None:
    switches = [name for term in SETTINGS.values() for name in term.sets]
    assert len(set(switches)) == len(switches)
    assert {each.name for each in fields(RunOptions)} > set(switches)
    assert not OPTION_OF.keys() & set(switches)
    # What the models are trained with only a program can set.
    written = {name for name in OF_THE_ENGINE if term_of_option(name) or name in OPTION_OF}
    assert set(OF_THE_ENGINE) - written == {"training"}


def test_options_of_runs_know_no_term_by_name() -> None:
    names = {each.name for each in fields(CommandOptions)}
    assert not names & {*SETTINGS, *(name for term in SETTINGS.values() for name in term.sets)}


@pytest.mark.parametrize("term", SETTINGS.values())
def test_every_setting_says_what_it_is(term: type[ChargesSettings]) -> None:
    for each in settings_of(term):
        assert each.says
        assert each.expected not in ("", "something else")
        assert not each.name.endswith("_s") or each.unit in ("s", "GB/s")
