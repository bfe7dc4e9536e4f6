"""What needs a package of an extra says in one sentence which one, where the package is missing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import shadowprice as sp
from shadowprice.analysis.trace.page import trace_page
from shadowprice.errors import InputError
from shadowprice.hosts.reports import report as of_run
from shadowprice.solvers.predictors.predictor import predictor
from shadowprice.studies.data_sets.download import FOLDER, fetch
from support.paths import ROOT


def page_of_a_trace() -> None:
    trace_page(sp.Workload.from_columns(arrival_s=[0.0, 1.0], gpus=1, work=[2.0, 3.0]), None)


def page_of_a_run() -> None:
    of_run.report(None)  # type: ignore[arg-type]


NEED: dict[str, tuple[str, str, Callable[[], object]]] = {
    "page of a trace": ("plotly", "pages", page_of_a_trace),
    "page of a run": ("plotly", "pages", page_of_a_run),
    "predictor": ("sklearn", "forest", lambda: predictor("forest")),
    "data set": ("requests", "data", lambda: fetch("philly")),
}


@pytest.mark.parametrize("name", NEED)
def test_the_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package, extra, call = NEED[name]
    monkeypatch.setenv(FOLDER, str(tmp_path))
    for module in [each for each in sys.modules if each.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        InputError, match=rf"is not installed.* pip install 'shadowprice\[{extra}\]'"
    ):
        call()
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(rf"^{extra} = \[", text, re.MULTILINE)
