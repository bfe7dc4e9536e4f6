"""The page on studies: its example runs, and every key is explained."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from shadowprice.analysis.written_options import WrittenOptions
from shadowprice.instances.documents.plain_yaml import parse
from shadowprice.studies import study_file
from shadowprice.studies.run_study import study
from support.paths import ROOT

PAGE = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")


def test_the_example_runs_and_the_file_is_what_the_command_line_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, swept = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "study.yaml"
    file.write_text(text.replace("jobs: 300", "jobs: 60"))
    found = study(file)
    assert found.record.failed == {}
    assert len(found.runs) == 2 * 3 * 2 * 3
    assert (tmp_path / "study.results" / "runs.parquet").is_file()
    assert study_file.study_of(parse(swept, "faults.yaml"), "faults.yaml").swept
    python, *_ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(python.replace("processes=2", "processes=1"), "studies.md", "exec"), {})
    assert (tmp_path / "loads.png").is_file()


def test_every_key_is_explained() -> None:
    for record in (
        study_file.StudyFile,
        study_file.WorkloadEntry,
        WrittenOptions,
        study_file.BoundsEntry,
        study_file.StatisticsEntry,
    ):
        for field in msgspec.structs.fields(record):
            assert f"`{field.encode_name}`" in PAGE, field.encode_name
