"""One run through the driver on every kind of host there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.execute_example import execute_example
from support.ray_cluster import running_cluster
from support.slurm_cluster import needs_slurm, slurm_cluster


def test_on_this_machine(tmp_path: Path) -> None:
    execute_example(tmp_path, "local:2")


@pytest.mark.ray
@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore")
def test_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    with running_cluster() as cluster:
        execute_example(tmp_path, f"ray:{cluster.address}")


class TestOnSlurm:
    pytestmark = needs_slurm

    @pytest.mark.timeout(120)
    def test_on_slurm(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "slurm").mkdir()
        with slurm_cluster(tmp_path / "slurm") as cluster:
            for name, value in cluster.environment.items():
                monkeypatch.setenv(name, value)
            execute_example(tmp_path, f"slurm:{cluster.allocate()}")
