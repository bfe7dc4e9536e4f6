"""Widths of jobs by model, from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.terms.widths import ModelGrowth

JSON = '{"models": {"ResNet-50": {"widest": 16, "efficiency": 0.95}, "bert": {"widest": 2}}}'
TOML = "[models]\nbert = {widest = 2}\n[default]\nwidest = 1\nefficiency = 1\n"


def jobs(*models: str) -> sp.Workload:
    rows = len(models)
    return sp.Workload.from_columns(
        id=list("abc"[:rows]),
        arrival_s=[0] * rows,
        gpus=[3] + [1] * (rows - 1),
        work=[9] * rows,
        model=models,
    )


def test_each_job_has_the_widths_of_its_model(tmp_path: Path) -> None:
    file = tmp_path / "widths.json"
    file.write_text(JSON)
    found = ModelGrowth.load(file).of(jobs("bert", "resnet50", "BERT"), sp.Cluster.parse("1x4,2x8"))
    # No less than the gang, no more than a node has.
    assert found.widest.tolist() == [3, 8, 2]
    assert found.efficiency.tolist() == [0.9, 0.95, 0.9]


def test_a_default_is_for_the_others(tmp_path: Path) -> None:
    file = tmp_path / "widths.toml"
    file.write_text(TOML)
    found = ModelGrowth.load(file).of(jobs("bert", "other", "bert"), sp.Cluster.parse("1x4"))
    assert found.widest.tolist() == [3, 1, 2]
    assert found.efficiency.tolist() == [0.9, 1.0, 0.9]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"models": {"a": {"widest": 0}}}',
            r"'a'\]: widest is 0, expected a number of GPUs from 1",
        ),
        (
            '{"models": {"a": {"widest": 2, "efficiency": 0.5}}}',
            r"efficiency is 0.5, expected 1/2 < e <= 1",
        ),
        ('{"models": {"a": {"efficiency": 0.8}}}', "has no widest"),
        ('{"models": {"a-1": {"widest": 2}, "A1": {"widest": 2}}}', "model 'A1' is listed twice"),
        (
            JSON,
            "job 'a' has model 'gnmt', which .*widths.json does not list, expected one of ResNet-50, bert",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "widths.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        ModelGrowth.load(file).of(jobs("gnmt"), sp.Cluster.parse("1x4"))
    assert "widths.json" in str(caught.value)
