"""Notebooks open where others run them: in the environment that ``binder/`` describes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.paths import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PLAYED = ("asrpt", "gandiva", "gavel", "hadar", "hadare", "synergy", "tiresias")
"""Those that play with a scheduler, by its system."""


def text_of(path: Path) -> str:
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells)


@pytest.mark.parametrize("system", PLAYED)
def test_a_system_is_played_with(system: str) -> None:
    """Its schedule, prices, gap, and an exercise at the end."""
    text = text_of(ROOT / "docs" / "notebooks" / f"{system}.ipynb")
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert "The schedule" in heads
    assert any("price" in head or head == "The index" for head in heads)
    assert "The gap" in heads
    assert heads[-1] == "Exercise"


def test_every_notebook_is_listed_and_kept_without_output() -> None:
    listed = (ROOT / "docs" / "guide" / "index.md").read_text()
    for path in NOTEBOOKS:
        assert f"(../notebooks/{path.name})" in listed
        cells = json.loads(path.read_text())["cells"]
        assert not any(cell.get("outputs") for cell in cells), path.name


def test_binder_asks_for_an_extra_and_a_python_that_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        line
        for line in (ROOT / "binder" / "requirements.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert wanted == [".[notebooks]"]
    assert "notebooks" in project["optional-dependencies"]
    least = project["requires-python"].removeprefix(">=")
    assert (ROOT / "binder" / "runtime.txt").read_text().strip() == f"python-{least}"


@pytest.mark.slow
@pytest.mark.timeout(1800)  # most of it the installation of Jupyter
def test_a_notebook_runs_in_the_environment_of_binder(tmp_path: Path) -> None:
    """Installed as repo2docker does: from the root, with nothing else."""
    # A copy without what earlier builds left in the root, which a build takes for the package's.
    checkout = tmp_path / "checkout"
    for name in ("shadowprice", "binder"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    # What is imported is what was installed, also where the tests' own path names a checkout.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "-r", "binder/requirements.txt"]
    subprocess.run(install, check=True, cwd=checkout)
    notebook = tmp_path / "hadar.ipynb"
    notebook.write_text((ROOT / "docs" / "notebooks" / "hadar.ipynb").read_text())
    execute = [python, "-m", "jupyter", "execute", notebook]
    subprocess.run(execute, check=True, cwd=tmp_path, env=clean)
