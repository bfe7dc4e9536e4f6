"""Averages of real checkpoints, weighted by steps."""

from __future__ import annotations

import importlib.util
import json
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.hosts.job import Fenced, commit, last_checkpoint
from shadowprice.hosts.live.copies.averaging import average, commit_average

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
)


def copies(root: Path, *parameters: dict[str, Any], name: str = "parameters.npz") -> list[Path]:
    """A committed checkpoint for each copy."""
    made = []
    for number, arrays in enumerate(parameters):

        def save(folder: Path, arrays: dict[str, Any] = arrays, number: int = number) -> None:
            if name.endswith("npz"):
                np.savez(folder / name, **arrays)
            else:
                import torch

                torch.save(arrays, folder / name)
            (folder / "state.json").write_text(json.dumps({"copy": number}))

        about = {"step": 10 + number, "epoch": 1, "seconds": 1.0}
        made.append(commit(root / f"copy-{number}", save, about))
    return made


@given(
    values=st.lists(
        st.tuples(st.integers(-1000, 1000), st.integers(1, 50)), min_size=1, max_size=5
    ),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_average_is_the_weighted_mean(values: list[tuple[int, int]], dtype: type) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arrays = [
            {"w": np.full((2, 3), value, dtype), "b": np.array(value, dtype)} for value, _ in values
        ]
        made = copies(folder, *arrays)
        average(made, [weight for _, weight in values], folder / "out")
        total = sum(weight for _, weight in values)
        expected = float(Fraction(sum(value * weight for value, weight in values), total))
        with np.load(folder / "out" / "parameters.npz") as file:
            assert file.files == ["w", "b"]
            assert file["w"].dtype == dtype
            assert file["w"].shape == (2, 3)
            scale = max(abs(value) for value, _ in values)
            np.testing.assert_allclose(
                file["w"], expected, rtol=1e-6, atol=1e-12 * scale + 1e-6 * abs(expected)
            )
            np.testing.assert_allclose(file["b"], file["w"][0, 0])


def test_what_is_not_averaged_is_the_heaviest_copy_s(tmp_path: Path) -> None:
    made = copies(
        tmp_path,
        {"w": np.ones(2), "counter": np.array(3), "flags": np.array([True])},
        {"w": np.zeros(2), "counter": np.array(9), "flags": np.array([False])},
    )
    average(made, [1, 3], tmp_path / "out")
    with np.load(tmp_path / "out" / "parameters.npz") as file:
        assert file["w"].tolist() == [0.25, 0.25]
        assert file["counter"] == 9
        assert file["flags"].tolist() == [False]
    assert json.loads((tmp_path / "out" / "state.json").read_text()) == {"copy": 1}
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_one_copy_stays_what_it_is(tmp_path: Path) -> None:
    made = copies(tmp_path, {"w": np.array([0.1, np.nan])})
    average(made, [7], tmp_path / "out")
    written = (tmp_path / "out" / "parameters.npz").read_bytes()
    assert written == (made[0] / "parameters.npz").read_bytes()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"w": np.ones(3)}, r"array 'w' is float64 \(3,\), expected float64 \(2,\)"),
        ({"w": np.ones(2, np.float32)}, r"array 'w' is float32 \(2,\), expected float64"),
        ({"v": np.ones(2), "w": np.ones(2)}, "array 'v' is .* expected none of that name"),
        ({}, "array 'w' is missing, expected float64"),
        ({"w": np.array([{}, {}])}, "expected arrays without objects"),
    ],
)
def test_copies_that_differ_are_refused(
    tmp_path: Path, other: dict[str, Any], message: str
) -> None:
    made = copies(tmp_path, {"w": np.ones(2)}, other)
    with pytest.raises(InputError, match=message):
        average(made, [2, 1], tmp_path / "out")


@pytest.mark.parametrize("weights", [[], [1], [1, 0], [1, -1]])
def test_weights_are_steps_of_each_copy(tmp_path: Path, weights: list[int]) -> None:
    made = copies(tmp_path, {"w": np.ones(2)}, {"w": np.ones(2)})
    with pytest.raises(InputError, match="expected steps of each"):
        average(made, weights, tmp_path / "out")


def test_checkpoints_without_parameters_are_refused(tmp_path: Path) -> None:
    made = copies(tmp_path, {"w": np.ones(2)}, name="weights.npz")
    with pytest.raises(InputError, match=r"expected a file parameters\.npz or parameters\.pt"):
        average(made, [1], tmp_path / "out")


@needs_torch
def test_torch_parameters_and_statistics_are_averaged(tmp_path: Path) -> None:
    """Two copies of a network with batch normalisation, trained apart."""
    import torch

    states = []
    for seed in range(2):
        torch.manual_seed(seed)
        network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        for _ in range(seed + 1):
            network(torch.randn(8, 3))
        states.append(network.state_dict())
    made = copies(tmp_path, *states, name="parameters.pt")
    average(made, [1, 3], tmp_path / "out")
    mean = torch.load(tmp_path / "out" / "parameters.pt", weights_only=True)
    assert list(mean) == list(states[0])
    for name, tensor in mean.items():
        one, two = states[0][name], states[1][name]
        if name.endswith("num_batches_tracked"):
            assert tensor == two == 2
        else:
            assert tensor.dtype == torch.float32
            assert not torch.equal(one, two) or name in {"1.weight", "1.bias"}
            torch.testing.assert_close(tensor, 0.25 * one + 0.75 * two)
    network.load_state_dict(mean)


@needs_torch
def test_torch_files_with_more_than_tensors_are_refused(tmp_path: Path) -> None:
    import torch

    made = copies(tmp_path, {"w": torch.ones(2)}, {"w": "text"}, name="parameters.pt")
    with pytest.raises(InputError, match="a state dict of tensors and nothing else"):
        average(made, [2, 1], tmp_path / "out")
    (made[1] / "parameters.pt").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(InputError, match="expected a state dict of tensors"):
        average(made, [2, 1], tmp_path / "out")


def test_the_average_is_committed_like_a_checkpoint(tmp_path: Path) -> None:
    made = copies(tmp_path, {"w": np.ones(2)}, {"w": np.zeros(2)})
    job = tmp_path / "job"
    shutil.copytree(tmp_path / "copy-0", job / "checkpoints")
    (job / "fence").write_text("2\n")
    into, fence = job / "checkpoints", job / "fence"
    with pytest.raises(Fenced):
        commit_average(made, [1, 1], into, step=21, epoch=1, fence=fence)
    commit_average(made, [1, 1], into, step=21, epoch=2, seconds=4.0, fence=fence)
    folder, manifest, troubles = last_checkpoint(into)
    assert folder == into / "step-000000000021.epoch-2"
    assert (manifest["seconds"], troubles) == (4.0, [])
    with np.load(folder / "parameters.npz") as file:
        assert file["w"].tolist() == [0.5, 0.5]
    assert (into / "step-000000000010.epoch-1").is_dir()
    # Once more after a driver was killed in between: the same.
    commit_average(made, [1, 1], into, step=21, epoch=2, seconds=4.0, fence=fence)
    assert last_checkpoint(into)[0] == folder
    # Copies that differ leave what was committed.
    broken = copies(tmp_path / "more", {"w": np.ones(2)}, {"w": np.ones(3)})
    with pytest.raises(InputError):
        commit_average(broken, [1, 1], into, step=23, epoch=2, fence=fence)
    assert last_checkpoint(into)[0] == folder
    assert not list(into.glob(".tmp-*"))
