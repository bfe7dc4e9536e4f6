r"""Tables in LaTeX (booktabs) and pictures as PDF, in the width of a venue's column.

``tables.tex`` has a table of every setting and one of its classes of jobs; a paper takes it by ``\input``, with the
packages ``booktabs`` and ``graphicx``. Names are printed as they are; letters that pdfLaTeX has no glyph for (Chinese,
say) take LuaLaTeX or XeLaTeX with a font that has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from shadowprice.analysis.pages.page import Sheet
from shadowprice.analysis.plots.page import Page
from shadowprice.errors import InputError
from shadowprice.studies.comparisons import settings_of
from shadowprice.studies.page import classes_of, policies_sheet, statistics_sheet
from shadowprice.studies.pictures import (
    VENUES,
    StudyPicture,
    pictures,
)
from shadowprice.studies.results import StudyResults
from shadowprice.studies.statements import findings, rules

TABLES = "tables.tex"

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "±": r"$\pm$",
    "\u2212": "$-$",
    "\u202f": "~",
    **{letter: "\\" + letter for letter in "&%$#_{}"},
}
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=[`?!])(?=`)")
_NEGATIVE = re.compile(r"(?<![\w.)-])-(?=[0-9])")


def style_named(name: str) -> Page:
    """Column of a venue's paper.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    if name not in VENUES:
        raise InputError(f"style {name!r}: expected one of {', '.join(VENUES)}")
    return VENUES[name]


def paper_files(
    results: StudyResults, page: Page, made_by: str
) -> dict[str, Callable[[Path], None]]:
    """All tables and pictures: the name of each file, and what writes it at a path.

    Parameters
    ----------
    made_by : str
        Sentence on the origin of the files, kept in each of them.
    """

    def tables(path: Path) -> None:
        path.write_text(tables_tex(results, made_by), encoding="utf-8")

    def write(picture: StudyPicture, path: Path) -> None:
        drawn = picture.draw()
        page.finish(drawn, path.stem)
        page.write(drawn, path, "pdf", made_by=made_by)

    drawn = pictures(results, page).items()
    return {TABLES: tables, **{f"{name}.pdf": partial(write, picture) for name, picture in drawn}}


def tables_tex(results: StudyResults, made_by: str) -> str:
    """All tables of a study as LaTeX; its first lines are comments, with a sentence on its origin."""
    templates = Environment(
        loader=PackageLoader("shadowprice.studies", "."),
        # What is of LaTeX itself is full of braces.
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # `latex` escapes every cell and caption
    )
    return templates.get_template("tables.tex.j2").render(
        title=_line(results.study.study),
        sentences=[_line(each) for each in (*findings(results), *rules(results), made_by)],
        tables=list(_tables(results)),
    )


def _tables(results: StudyResults) -> Iterator[dict[str, object]]:
    for place, setting in enumerate(settings_of(results), start=1):
        name = f"study-{place:02d}"
        caption = f"{setting}: mean JCT over seeds with intervals of 95\u202f%"
        yield _table(policies_sheet(setting), caption, name)
        more = f"{setting}: percentiles of JCT, mean slowdown, queueing and finish-time fairness"
        yield _table(statistics_sheet(setting), more, f"{name}-statistics")
        for sheet in classes_of(setting):
            by = sheet.heads[0]
            yield _table(sheet, f"{setting}: mean JCT by {by}", f"{name}-{by}")


def _table(sheet: Sheet, caption: str, label: str) -> dict[str, object]:
    numbers = len(sheet.heads) - sheet.words
    return {
        "caption": latex(caption),
        "label": re.sub(r"[^a-z0-9-]", "-", label),
        "columns": "l" * sheet.words + "r" * numbers,
        "heads": " & ".join(latex(head) for head in sheet.heads),
        "rows": [" & ".join(latex(str(cell)) for cell in row) for row in sheet.rows],
    }


def latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> latex("las2d_100 & 5 %")
    'las2d\\_100 \\& 5 \\%'
    """
    signed = _NEGATIVE.sub("\u2212", text)
    found = _LIGATURE.sub("{}", "".join(_SPECIAL.get(letter, letter) for letter in signed))
    # After the end of a row these would be an argument of it.
    return "{}" + found if found.lstrip().startswith(("[", "*")) else found


def _line(text: str) -> str:
    """Text of a comment: it ends with its line."""
    return " ".join(text.split())
