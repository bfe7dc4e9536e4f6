"""A name with settings on one line: read, written, refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.documents.named_settings import joined_settings, split_settings

WORDS = st.text(st.characters(exclude_characters=":=,"), min_size=1)
VALUES = st.text() | st.text(",=:a")


@given(WORDS, st.dictionaries(WORDS, VALUES))
def test_what_is_written_is_read(name: str, settings: dict[str, str]) -> None:
    assert split_settings(joined_settings(name, settings), "--with") == (name, settings)


def test_a_name_ends_with_a_colon_a_key_with_an_equals_sign_a_value_with_a_comma() -> None:
    assert split_settings("a", "--with") == ("a", {})
    assert split_settings("a:b=c:d=e,f=", "--with") == ("a", {"b": "c:d=e", "f": ""})
    assert joined_settings("a", {"b": 1.5, "f": ""}) == "a:b=1.5,f="


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--with '': expected NAME or NAME:key=value,..."),
        (":a=1", "--with ':a=1': expected NAME"),
        ("a:", "--with 'a:': expected NAME"),
        ("a:b", "--with a: 'b' is no key=value; a comma begins the next key"),
        ("a:=b", "--with a: '=b' is no key=value"),
        ("a:b=c,d", "--with a: 'd' is no key=value"),
        ("a:b=c,", "--with a: '' is no key=value"),
        ("a:b=c,b=d", "--with a: b is given twice, expected once"),
    ],
)
def test_lines_that_are_none(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        split_settings(text, "--with")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "line"),
    [("c,d", "a:b=c,,d,e="), (",", "a:b=,,,e="), ("c,", "a:b=c,,,e="), ("x,y=z", "a:b=x,,y=z,e=")],
)
def test_a_comma_in_a_value_is_written_twice(value: str, line: str) -> None:
    assert joined_settings("a", {"b": value, "e": ""}) == line
    assert split_settings(line, "--with") == ("a", {"b": value, "e": ""})
