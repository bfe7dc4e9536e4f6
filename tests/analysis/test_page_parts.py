"""Parts of pages: what strangers wrote is text and nothing else."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from shadowprice.analysis.pages.page import Items, Note, PagePart, Section, Sheet, Text, Typed, page

EVIL = "</p></td></pre><script>alert(1)</script>&amp;'\""


class Read(HTMLParser):
    """Elements, and the text of each innermost one."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.add(tag)
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))) | st.just(EVIL))
def test_text_comes_out_as_it_was_written(words: str) -> None:
    parts: list[tuple[PagePart, set[str]]] = [
        (Text(words), {"p"}),
        (Note(words), {"p"}),
        (Typed(words), {"pre"}),
        (Items([words]), {"ul", "li"}),
        (Sheet([words], [], words=1), {"div", "table", "thead", "tbody", "tr", "th"}),
        (Sheet([], [[words]], words=1), {"div", "table", "thead", "tbody", "tr", "td"}),
    ]
    for part, tags in parts:
        read = Read(part.__html__())
        assert read.tags == tags
        assert any(text.rstrip("\n") == words for text in read.texts)


@pytest.mark.parametrize("where", ["title", "lead", "head", "note", "part"])
def test_no_word_of_a_page_is_a_script(where: str) -> None:
    words = dict.fromkeys(("title", "lead", "head", "note", "part"), "plain") | {where: EVIL}
    section = Section(words["head"], [Text(words["part"])], words["note"])
    html = page(words["title"], words["lead"], [section])
    assert "<script" not in html
    assert "script-src &#39;none&#39;" in html


def test_scripts_of_figures_alone_are_allowed() -> None:
    figure = Markup("<div></div><script>draw()</script>")
    html = page("t", "l", [Section("s", [figure])], library=Markup("lib()"))
    assert html.count("sha256-") == 2
    assert "script-src &#39;none&#39;" not in html
