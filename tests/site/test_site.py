"""What the site is made of: every public name, theorem, model, figure and command has its place."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "sphinx_extensions"))

import command_pages
import gallery_pages
import notebook_pages
import notebook_run
import reference_pages
import system_pages
import theory_pages

import check_links
from build_theorems import theorems
from shadowprice.solvers.programs.catalogue import model_files
from support.paths import ROOT


def test_every_public_name_is_on_a_page() -> None:
    assert reference_pages.unlisted() == set()
    assert ".. autofunction:: simulate\n" in reference_pages.pages()["reference/running.rst"]


def test_the_front_page_and_the_first_page_say_what_the_demo_prints() -> None:
    printed = (
        (ROOT / "README.md").read_text().partition("$ shadowprice demo\n")[2].partition("```")[0]
    )
    lines = printed.splitlines()
    for page in ("index.md", "start.md"):
        said = re.findall(r"^> (\w+ costs at most .*)$", (ROOT / "docs" / page).read_text(), re.M)
        assert len(said) == 1
        assert said[0] in lines, page


def test_every_theorem_and_model_is_on_a_page() -> None:
    pages = theory_pages.pages()
    for theorem in theorems():
        page = pages[f"theory/{theorem.module.partition('.')[0]}.rst"]
        assert f"{theorem.identifier}: {theorem.title}" in page
    assert {f"models/{name}.rst" for name in model_files()} <= set(pages)


@pytest.mark.slow
def test_every_figure_with_a_table_is_in_the_gallery() -> None:
    pages = gallery_pages.pages()
    tables = sorted((ROOT / "paper_figs" / "data").glob("*.csv"))
    assert tables
    for table in tables:
        text = pages[f"gallery/{table.stem}.md"]
        assert f"{table.stem}.svg" in text
        assert "of CPU time" in text
        assert "| " in text.partition("## Numbers")[2]
        assert f":link: {table.stem}\n" in pages["gallery/index.md"]


def test_a_picture_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = [
        each
        for each in gallery_pages.shown_figures()
        if each.figure.name == "tiresias_worked_example"
    ]
    drawn = []
    monkeypatch.setattr(gallery_pages, "shown_figures", lambda: [shown])
    monkeypatch.setattr(
        gallery_pages, "draw", lambda _, picture: drawn.append(picture.write_text("picture"))
    )
    gallery_pages.draw_pictures(tmp_path)
    gallery_pages.draw_pictures(tmp_path)
    assert len(drawn) == 1
    (tmp_path / f"{shown.figure.name}.digest").write_text("of an older table")
    gallery_pages.draw_pictures(tmp_path)
    assert len(drawn) == 2


CELLS = (
    new_markdown_cell("# A\n\n[B](b.ipynb), [C](../c.md#d)"),
    new_code_cell("%matplotlib inline\nx = 20\nprint(x)\nx + 1"),
    new_code_cell(
        "import matplotlib.pyplot as plt\n"
        "import pandas as pd\n"
        "figure, axes = plt.subplots()\n"
        "line = axes.plot([0, x])\n"
        "pd.DataFrame({'y': [x]})"
    ),
    new_code_cell("print(1)\nprint(2)\nfigure, axes = plt.subplots()\nfigure"),
)


def notebook(path: Path, *cells: nbformat.NotebookNode) -> Path:
    nbformat.write(new_notebook(cells=cells), path)
    return path


@pytest.mark.slow  # two kernels that draw
def test_a_notebook_is_shown_with_what_it_prints_returns_and_draws(tmp_path: Path) -> None:
    file = notebook(tmp_path / "a.ipynb", *CELLS)
    outputs, again = notebook_run.run([file, notebook(tmp_path / "b.ipynb", *CELLS)])
    assert outputs[0] == [("text", "20\n"), ("value", "21")]
    assert [kind for kind, _ in outputs[1]] == ["html", "svg"]
    # Drawn and returned: shown once.
    assert [kind for kind, _ in outputs[2]] == ["text", "svg"]
    assert outputs[2][0] == ("text", "1\n2\n")
    assert again == outputs  # the same bytes
    made = notebook_pages.notebook_page(file, outputs)
    assert set(made) == {"a.md", "a-0.svg", "a-1.svg"}
    page = made["a.md"]
    assert page.startswith(
        "# A\n\n[B](b.md), [C](/c.md#d)\n\n```python\nx = 20\nprint(x)\nx + 1\n```\n\n```text\n20\n```"
    )
    assert "%matplotlib" not in page
    assert "<style" not in page
    assert "<td>20</td>" in page
    assert "```{image} a-0.svg" in page


def test_notebooks_that_fail_are_named_with_cell_and_error(tmp_path: Path) -> None:
    for name, last in (("a", "1 / 0"), ("b", "open('none.csv')")):
        notebook(tmp_path / f"{name}.ipynb", new_code_cell("x = 1"), new_code_cell(last))
    with pytest.raises(notebook_run.NotebookError) as raised:
        notebook_run.run(sorted(tmp_path.glob("*.ipynb")))
    first, second = str(raised.value).splitlines()
    assert first == "a.ipynb: cell 2: ZeroDivisionError: division by zero"
    assert second.startswith("b.ipynb: cell 2: FileNotFoundError: ")
    assert "none.csv" in second


@pytest.mark.slow
def test_a_page_of_a_system_has_every_published_number_of_it() -> None:
    pages = system_pages.pages()
    for name in system_pages.SYSTEMS:
        page = (ROOT / "docs" / "systems" / f"{name}.md").read_text(encoding="utf-8")
        assert f"_{name}_numbers.md" in page
        assert f"_{name}_figures.md" in page
    assert "mean JCT of the worked example under SRSF" in pages["systems/_tiresias_numbers.md"]
    assert "3 replayed" in pages["systems/_synergy_numbers.md"]
    assert "not known" not in pages["systems/_gavel_numbers.md"]


def test_the_page_of_commands_has_options_and_examples() -> None:
    text = command_pages.pages()["commands.md"]
    assert "### simulate\n" in text
    assert "| `--cluster` |" in text
    assert "shadowprice data gavel-simulation-throughputs" in text


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"`x \le y`", "≤"),
        (r"\sum_j x_j \le 1 && (once) \\ y \ge 0 && (sign), (more)", "<mtext>(once)</mtext>"),
        (r"1, \dots, n", "…"),
        (r"a & b", "<mtable"),
    ],
)
def test_formulas_become_mathml(tex: str, expected: str) -> None:
    pytest.importorskip("docutils", reason="the docs extra is not installed")
    import mathml
    from docutils import nodes

    made = mathml.mathml(tex, nodes.paragraph(), display=True)
    assert made.startswith("<math")
    assert expected in made


PAGE = '<html><body id="top"><a href="{}">x</a>{}</body></html>'


@pytest.mark.parametrize(
    ("address", "more", "said"),
    [
        ("other.html#there", "", None),
        ("#top", "", None),
        ("https://example.org/x", "", None),
        ("other.html#elsewhere", "", "leads to no element"),
        ("missing.html", "", "leads to no file"),
        ("#top", '<script src="https://cdn.example.org/x.js"></script>', "from elsewhere"),
        ("#top", '<link rel="stylesheet" href="//fonts.example.org/x">', "from elsewhere"),
        ("#top", '<link rel="next" href="https://example.org/">', None),
    ],
)
def test_links_are_checked(address: str, more: str, said: str | None, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PAGE.format(address, more))
    (tmp_path / "other.html").write_text('<html><h1 id="there">x</h1></html>')
    found = list(check_links.broken(tmp_path))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]
