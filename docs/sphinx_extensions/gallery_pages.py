"""The gallery: a page a figure of ``paper_figs/``, from its Figure object and its kept table.

A picture is drawn again if the table or the code changed since; nothing is run again.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import build_reproduction
from shadowprice.analysis.plots.page import Page
from shadowprice.studies.figures import Figure, Size
from shadowprice.studies.figures.figure import load_figure
from shadowprice.studies.figures.results import code_digest, read_table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "paper_figs"
TITLES = {
    "hadar": "Hadar",
    "hadare": "HadarE",
    "asrpt": "A-SRPT",
    "synergy": "Synergy",
    "tiresias": "Tiresias",
    "gandiva": "Gandiva",
    "gavel": "Gavel",
    "pollux": "Pollux",
}
"""Systems by the first word of a figure's file."""
OTHERS = "Beyond one paper"
_ROWS = 8


@dataclass(frozen=True)
class Shown:
    """A figure whose table is kept.

    Parameters
    ----------
    figure : Figure
    file, table_file : Path
        Its script, and its kept table.
    """

    figure: Figure
    file: Path
    table_file: Path

    @property
    def system(self) -> str:
        """System of the figure's file name."""
        return TITLES.get(self.figure.name.partition("_")[0], OTHERS)

    @property
    def says(self) -> str:
        """Sentence on what it shows: the first of its file's docstring."""
        text = ast.get_docstring(ast.parse(self.file.read_text(encoding="utf-8"))) or ""
        return " ".join(text.partition("\n\n")[0].split())

    @property
    def comments(self) -> list[str]:
        """Lines at the head of the table: settings, code, versions, time."""
        lines = self.table_file.read_text(encoding="utf-8").splitlines()
        return [line.removeprefix("# ") for line in lines if line.startswith("#")]

    @property
    def cpu_minutes(self) -> float:
        """CPU time that the kept table took [min]."""
        (found,) = re.findall(r"([\d.]+) minutes of CPU", "\n".join(self.comments))
        return float(found)

    def digest(self) -> str:
        """Digest of all that the picture depends on."""
        found = hashlib.sha256(code_digest(self.file).encode() + self.table_file.read_bytes())
        return found.hexdigest()


def shown_figures() -> list[Shown]:
    """Figures with a kept table, by system in the order of ``TITLES``."""
    found = []
    for file in sorted(FOLDER.glob("[a-z]*.py")):
        table = FOLDER / "data" / f"{file.stem}.csv"
        if table.exists():
            found.append(Shown(load_figure(file), file, table))
    order = [*TITLES.values(), OTHERS]
    return sorted(found, key=lambda shown: (order.index(shown.system), shown.figure.name))


def draw_pictures(folder: Path) -> list[Path]:
    """Draw the picture of each figure whose digest is not that of the drawn one; all files."""
    files = []
    for shown in shown_figures():
        picture = folder / f"{shown.figure.name}.svg"
        mark = folder / f"{shown.figure.name}.digest"
        files += [picture, mark]
        now = shown.digest()
        if not (picture.exists() and mark.exists() and mark.read_text() == now):
            draw(shown, picture)
            mark.write_text(now)
    return files


def draw(shown: Shown, picture: Path) -> None:
    """Draw a figure from its kept table."""
    figure = shown.figure
    page = Page()
    with page.style():
        drawn = figure.draw(read_table(shown.table_file), figure.sizes[Size.DEFAULT].settings, page)
    page.finish(drawn, figure.name)
    picture.parent.mkdir(parents=True, exist_ok=True)
    page.write(drawn, picture, "svg")


def pages() -> dict[str, str]:
    """Texts of the gallery: an index of pictures, and a page a figure."""
    found = shown_figures()
    published = build_reproduction.entries(FOLDER)
    texts = {"gallery/index.md": _index(found)}
    for shown in found:
        mine = [entry for entry in published if entry.figure.name == shown.figure.name]
        texts[f"gallery/{shown.figure.name}.md"] = "\n".join(_page(shown, mine))
    return texts


def card(shown: Shown, folder: str = "") -> str:
    """A picture with its sentence, which links to its page."""
    name = shown.figure.name
    return (
        f"::::{{grid-item-card}} {name}\n:img-top: {folder}{name}.svg\n:img-alt: {_attribute(shown.says)}\n"
        f":link: {folder}{name}\n:link-type: doc\n\n{shown.says}\n::::\n"
    )


def grid(found: Iterable[Shown], folder: str = "") -> str:
    """Cards below one another, as wide as the page."""
    cards = "\n".join(card(shown, folder) for shown in found)
    return f":::::{{grid}} 1\n:gutter: 3\n\n{cards}\n:::::\n"


def _index(found: list[Shown]) -> str:
    minutes = sum(shown.cpu_minutes for shown in found)
    parts = [
        "# Gallery\n",
        f"{len(found)} figures, each one file of `paper_figs/`: settings of several sizes, points that are run "
        "independently, a picture, a caption computed from the table, and published numbers beside ours. The "
        f"default sizes took {minutes:.0f} minutes of CPU time together. `make figures SIZE=default` runs what is "
        "missing on all cores; `python paper_figs NAME --redraw` draws a kept table again.\n",
    ]
    for system in dict.fromkeys(shown.system for shown in found):
        parts += [f"## {system}\n", grid(each for each in found if each.system == system)]
    names = "\n".join(shown.figure.name for shown in found)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```\n")
    return "\n".join(parts)


def _page(shown: Shown, published: list[build_reproduction.Entry]) -> Iterator[str]:
    figure, name = shown.figure, shown.figure.name
    settings = figure.sizes[Size.DEFAULT].settings
    table = read_table(shown.table_file)
    yield f"# {name}\n\n{shown.says}\n"
    yield f"```{{image}} {name}.svg\n:alt: {_attribute(shown.says)}\n:width: 100%\n```\n"
    yield f"*{figure.paper}.* {figure.caption(table, settings)}\n"
    sizes = ", ".join(
        f"{size} about {sized.minutes:g} minutes" for size, sized in figure.sizes.items()
    )
    yield (
        f"**Script** {{download}}`{name}.py <../../../paper_figs/{name}.py>`; "
        f"**table** {{download}}`{name}.csv <../../../paper_figs/data/{name}.csv>`. "
        f"The table took {_minutes(shown.cpu_minutes)} of CPU time. By size: {sizes}.\n"
    )
    yield f"```text\npython paper_figs {name}\npython paper_figs {name} --redraw\n```\n"
    if published:
        yield "## Published numbers\n"
        yield published_table(published)
    yield f"## Numbers\n\nThe first rows of {len(table):,}.\n"
    yield _head(table)
    yield "## Made with\n\n" + "\n".join(f"- `{line}`" for line in shown.comments) + "\n"


def published_table(published: Iterable[build_reproduction.Entry]) -> str:
    """Rows of published numbers beside ours, as on the page of all of them."""
    text = "\n".join(build_reproduction.table(published))
    return (
        re.sub(r"\[(\w+)\]\(\.\./paper_figs/\w+\.py\)", r"{doc}`/generated/gallery/\1`", text)
        + "\n"
    )


def _minutes(value: float) -> str:
    return f"{value:g} minutes" if value >= 0.1 else "less than 0.1 minutes"


def _attribute(text: str) -> str:
    return text.replace("\n", " ")


def _head(table: pd.DataFrame) -> str:
    first = table.head(_ROWS)
    lines = ["| " + " | ".join(map(str, first.columns)) + " |", "|" + "---|" * first.shape[1]]
    for row in first.itertuples(index=False):
        lines.append("| " + " | ".join(_cell(value) for value in row) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).replace("|", "\\|")
