"""The report of a study, its tables for papers, and what changed between two."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.studies.comparisons import policy_rows, rankings, settings_of
from shadowprice.studies.difference import difference
from shadowprice.studies.page import study_page
from shadowprice.studies.paper import latex, paper_files, style_named, tables_tex
from shadowprice.studies.pictures import VENUES, pictures
from shadowprice.studies.results import StudyResults
from shadowprice.studies.run_study import study

MADE_BY = "Made by shadowprice: study report"
EVIL = "<script>alert(1)</script>_&%"
GIVEN = {
    "study": f"two policies {EVIL}",
    "workloads": {"drawn": {"generator": "lognormal", "parameters": {"jobs": 40}}},
    "loads": [0.3, 0.5],
    "clusters": ["2x4"],
    "policies": {"first_come": "fifo", EVIL: "srtf"},
    "seeds": 3,
    "bounds": {"columns": 1000},
}


@pytest.fixture(scope="module")
def found() -> StudyResults:
    return study(GIVEN)


def test_the_page_escapes_what_users_wrote_and_asks_the_network_for_nothing(
    found: StudyResults,
) -> None:
    page = study_page(found)
    assert "<script" not in page
    assert "script-src &#39;none&#39;;" in page
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']*""", page) == []
    assert "12 runs of 2 policies in 2 settings, up to 3 seeds each" in page
    for words in ("mean JCT [s]", "seeds for ±1 %", "How to repeat it", "<svg", "numpy"):
        assert words in page
    assert study_page(found) == page


def test_tables_of_a_paper_are_latex_that_prints_every_letter(found: StudyResults) -> None:
    text = tables_tex(found, MADE_BY)
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert r"first\_come" in text
    assert r"\textless{}script\textgreater{}alert(1)\textless{}/script\textgreater{}\_\&\%" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") >= 4
    for line in body:
        assert re.search(r"(?<!\\)[_#]", line) is None, line
    rows = [line for line in body if line.endswith(r"\\")]
    widths = {len(re.findall(r"(?<!\\)&", row)) for row in rows}
    assert len(widths) >= 2
    (setting, _) = settings_of(found)
    mean = policy_rows(setting)[0].values["jct_s_mean"]
    assert mean is not None
    assert latex(mean.text()) in text


@pytest.mark.slow
@pytest.mark.parametrize("name", VENUES)
def test_pictures_of_a_paper_fit_the_column(found: StudyResults, tmp_path: Path, name: str) -> None:
    style = style_named(name)
    plain = with_names(found, "srtf")
    files = paper_files(plain, style, MADE_BY)
    for file, action in files.items():
        action(tmp_path / file)
    assert list(files) == [
        "tables.tex",
        "jct-01.pdf",
        "jct-02.pdf",
        "loads.pdf",
        "ratio-flow.pdf",
    ]
    assert MADE_BY in (tmp_path / "tables.tex").read_text().partition("\\begin")[0]
    for picture in pictures(plain, style).values():
        assert picture.draw().get_size_inches()[0] == style.width_in
    first = (tmp_path / "loads.pdf").read_bytes()
    assert f"/Subject ({MADE_BY})".encode() in first
    assert f"/MediaBox [ 0 0 {style.width_in * 72:g}".encode() in first
    files["loads.pdf"](tmp_path / "loads.pdf")
    assert (tmp_path / "loads.pdf").read_bytes() == first


PRINTED = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\char34{}": '"',
    r"$\pm$": "±",
    "$-$": "-",
    "{}": "",
    **{f"\\{letter}": letter for letter in "&%$#_{}"},
}


def printed(source: str) -> str:
    """Text that LaTeX prints for a source of these commands and letters; an error where it would see more in it."""
    found, at = "", 0
    while at < len(source):
        command = next((each for each in PRINTED if source.startswith(each, at)), None)
        if command is None:
            assert source[at] not in '\\{}$&#^_%~<>|"', source[at:]
            assert source[at : at + 2] not in ("--", "''", "``", "?`", "!`"), source[at:]
        found += source[at] if command is None else PRINTED[command]
        at += 1 if command is None else len(command)
    return found


@given(st.text(st.sampled_from("\\~^<>|\"'`?!*[]()&%$#_{}±-\u2212.,a1 é"), max_size=12))
def test_latex_prints_a_name_as_it_is(text: str) -> None:
    source = latex(text)
    assert printed(source) == text.replace("\u2212", "-")
    assert not source.lstrip().startswith(("[", "*"))


def test_a_negative_number_has_a_minus_and_a_name_its_hyphen() -> None:
    assert latex("-1.5 [-3, 2] las2d-8 1-2") == "$-$1.5 [$-$3, 2] las2d-8 1-2"


def with_names(found: StudyResults, name: str) -> StudyResults:
    """The same results where one of the policies has this name."""

    def named(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(policy=table["policy"].replace({EVIL: name}))

    return replace(
        found,
        groups=named(found.groups),
        runs=named(found.runs),
        distributions=named(found.distributions),
    )


@pytest.mark.parametrize("name", [EVIL, "[x]{", "a & b \\\\ c"])
def test_tables_of_a_paper_are_whole(found: StudyResults, name: str) -> None:
    text = tables_tex(with_names(found, name), MADE_BY)
    rows = [line for line in text.splitlines() if not line.startswith("%")]
    depth: list[str] = []
    for line in rows:
        if line.startswith("\\begin"):
            depth.append(line.partition("{")[2].partition("}")[0])
            wide = len(line.rpartition("{")[2]) - 1
        elif line.startswith("\\end"):
            assert line.partition("{")[2].partition("}")[0] == depth.pop()
        elif line.endswith(" \\\\"):
            cells = re.split(r"(?<!\\) & ", line.removesuffix(" \\\\"))
            assert len(cells) == wide
            assert not line.startswith(("[", "*"))
            for cell in cells:
                printed(cell)
    assert not depth


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed")
def test_tables_of_a_paper_compile(found: StudyResults, tmp_path: Path) -> None:
    evil = with_names(found, "[a_b&c%d$e#f{g}h~i^j\\k<l>m|n\"o`p''q--r*[s] é ü ß")
    (tmp_path / "tables.tex").write_text(tables_tex(evil, MADE_BY), encoding="utf-8")
    (tmp_path / "main.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\n"
        "\\begin{document}\\input{tables}\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "main.pdf").exists()


def test_a_style_that_there_is_not_is_told() -> None:
    with pytest.raises(InputError, match="style 'x': expected one of acm, ieee, usenix, neurips"):
        style_named("x")


def test_what_changed_is_said_and_what_did_not_too(found: StudyResults) -> None:
    assert difference(found, found).same
    other = study({**GIVEN, "seeds": 2, "policies": {"first_come": "easy", EVIL: "srtf"}})
    changed = difference(found, other)
    assert not changed.same
    lines = list(changed.lines())
    assert "policies: first_come: fifo -> easy" in lines
    assert "seeds: 3 -> 2" in lines
    assert "runs: 4 only in the first, 0 only in the second" in lines
    assert sum("first_come: mean JCT" in line for line in lines) == 2
    assert any(line.startswith("2 of 4 policies") for line in lines)


def test_rankings_speak_of_seeds_loads_and_yardsticks(found: StudyResults) -> None:
    words = {each.what.partition(" ")[0] for each in rankings(found)}
    assert {"seeds", "loads"} <= words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(
        "id,arrival_s,gpus,work\n"
        + "".join(f"j{k},{k * 7},{1 + k % 3},{20 + k}\n" for k in range(30))
    )
    (tmp_path / "own.py").write_text(
        "from shadowprice.solvers.classic.fifo import Fifo\n\n\nclass Mine(Fifo):\n    name = 'mine'\n"
    )
    given = {
        "study": "own",
        "workloads": {"t": {"trace": "jobs.csv", "arrivals": "poisson"}},
        "clusters": ["1x4"],
        "policies": {"mine": "own.py:Mine", "copies": "hadare"},
        "seeds": 2,
    }
    (tmp_path / "study.yaml").write_text(json.dumps(given))
    study(tmp_path / "study.yaml")
    return tmp_path
