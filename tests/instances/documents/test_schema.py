"""Typed records from plain trees: what fits is taken as it is, what does not is named in one line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_yaml import parse
from shadowprice.instances.documents.schema import SECRET, Amount, Line, Name, Number, decode
from shadowprice.instances.entries import on_one_line


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, eq=False)
class Curve:
    name: str
    values: NDArray[np.float64]
    of: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.values.min(initial=0.0) < 0:
            raise InputError(f"curve {self.name!r}: is below 0")


class Inner(msgspec.Struct, frozen=True):
    gpus: int = msgspec.field(name="sf")
    weight: Amount = 1.0


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    name: Name
    inner: list[Inner] = msgspec.field(default_factory=list)
    pair: tuple[int, Number] = (0, 0.0)
    rates: float | dict[Line, Amount] | UnsetType = UNSET
    colour: Colour = Colour.RED
    mode: Literal["lookup"] | None = None
    exact: int | float = 0
    token: Annotated[str, Meta(extra=SECRET)] = ""
    curves: tuple[Curve, ...] = ()


def test_what_fits_is_taken_as_it_is() -> None:
    curve = {"name": "c", "values": [[1, 2.5], [3, 4]], "of": [2**53 + 1, 0]}
    found = decode(
        Outer,
        {
            "name": "1",
            "inner": [{"sf": 2}],
            "pair": [1, 2],
            "rates": {"a": 1},
            "colour": "blue",
            "exact": 2**60 + 1,
            "curves": [curve],
        },
        "f",
    )
    assert (found.name, found.inner, found.pair) == ("1", [Inner(2)], (1, 2.0))
    assert (found.rates, found.colour, found.exact) == ({"a": 1.0}, Colour.BLUE, 2**60 + 1)
    assert found.curves[0].values.tolist() == [[1.0, 2.5], [3.0, 4.0]]
    assert found.curves[0].of.tolist() == [2**53 + 1, 0]


GOOD_CURVE: dict[str, Any] = {"name": "c", "values": [1.0], "of": [0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "f: name is '', expected a name that is not empty"),
        ({"name": "a\nb"}, r"f: name is 'a\nb', expected a name"),
        ({"name": 5}, "f: name is 5, expected a name"),
        ({"nme": "a"}, "f: unknown key 'nme'; did you mean 'name'?"),
        ({"inner": {}}, "f: inner is {}, expected a list"),
        ({"inner": [7]}, "f: inner[0]: is 7, expected a mapping with sf"),
        ({"inner": [{"gpus": 1}]}, "f: inner[0]: unknown key 'gpus'; did you mean 'sf'?"),
        ({"inner": [{"sf": 1}, {}]}, "f: inner[1]: has no sf, expected sf"),
        ({"inner": [{"sf": True}]}, "f: inner[0]: sf is True, expected an integer"),
        ({"inner": [{"sf": "1"}]}, "f: inner[0]: sf is '1', expected an integer"),
        ({"inner": [{"sf": 1, "weight": -1}]}, "f: inner[0]: weight is -1, expected a number >= 0"),
        (
            {"inner": [{"sf": 1, "weight": 10**400}]},
            "f: inner[0]: weight is 1" + "0" * 76 + "..., expected a number >= 0",
        ),
        (
            {"inner": [{"sf": 1, "weight": float("nan")}]},
            "f: inner[0]: weight is nan, expected a number >= 0",
        ),
        ({"pair": [1]}, "f: pair is [1], expected a list of 2: an integer, a number"),
        ({"pair": [1, "x"]}, "f: pair[1] is 'x', expected a number"),
        ({"rates": []}, "f: rates is [], expected a number or a mapping"),
        ({"rates": None}, "f: rates is None, expected a number or a mapping"),
        ({"rates": {"a": 1, "b": "x"}}, "f: rates['b'] is 'x', expected a number >= 0"),
        (
            {"rates": {"a\r": 1}},
            r"f: rates: a key is 'a\r', expected text on one line, without control characters",
        ),
        ({"colour": "green"}, "f: colour is 'green', expected one of red, blue"),
        ({"token": ["s3cret"]}, "f: token is not shown here, expected text"),
        ({"curves": [GOOD_CURVE | {"values": [-1]}]}, "f: curves[0] ('c'): curve 'c': is below 0"),
        (
            {"curves": [GOOD_CURVE | {"values": [1, True]}]},
            "f: curves[0] ('c'): values[1] is True, expected a number",
        ),
        (
            {"curves": [GOOD_CURVE | {"values": [[1], [2, 3]]}]},
            "f: curves[0] ('c'): values: is [[1], [2, 3]], expected rows of one length",
        ),
        (
            {"curves": [GOOD_CURVE | {"of": [0.5]}]},
            "f: curves[0] ('c'): of[0] is 0.5, expected an integer of 64 bits",
        ),
        (
            {"curves": [GOOD_CURVE | {"value": 1}]},
            "f: curves[0] ('c'): unknown key 'value'; did you mean 'values'?",
        ),
    ],
)
def test_what_does_not_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        decode(Outer, {"name": "a"} | change, "f")


def test_numbers_as_text_where_there_can_be_no_text() -> None:
    given_text = {"name": "1e3", "inner": [{"sf": "1e3", "weight": ".5"}], "exact": "7"}
    found = decode(Outer, given_text, "f", numbers_as_text=True)
    assert (found.name, found.inner, found.exact) == ("1e3", [Inner(1000, 0.5)], 7)
    assert type(found.exact) is int
    for text in (
        "",
        "x",
        "0x10",
        "1_000",
        "1:30",
        ".nan",
        ".inf",
        "1e999",
        "9" * 401,
        "1.5",
        "\u0661",
    ):
        with pytest.raises(InputError, match=r"sf is .*, expected an integer"):
            decode(Inner, {"sf": text}, "f", numbers_as_text=True)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "inner", "sf", "weight", "pair", "rates", "curves", "of", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(tree=TREES, numbers_as_text=st.booleans())
def test_any_tree_fits_or_is_refused_in_one_line(tree: Any, numbers_as_text: bool) -> None:
    for data in (tree, {"name": "a", "curves": tree}, {"name": "a", "inner": tree}):
        message = "f: expected"
        try:
            decode(Outer, data, "f", numbers_as_text=numbers_as_text)
        except InputError as error:
            message = str(error)
        assert re.match(r"f[: \[].*(expected|did you mean|is below 0)", message)
        assert "\n" not in message


@given(st.text(max_size=4))
def test_names_are_those_that_may_be_printed(text: str) -> None:
    try:
        decode(dict[Line, int], {text: 1}, "f")
        fine = True
    except InputError:
        fine = False
    assert fine == on_one_line(text)


def test_truth_values_only_where_they_are_asked_for() -> None:
    text = "{a: yes, b: 'yes', c: TRUE, d: off, e: 1}"
    plain = {"a": "yes", "b": "yes", "c": "TRUE", "d": "off", "e": "1"}
    assert parse(text, "f") == plain
    assert parse(text, "f", truth_values=True) == plain | {"a": True, "c": True, "d": False}
