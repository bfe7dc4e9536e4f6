r"""HadarE's average of the copies of a job, over the parameters that they really have.

.. math:: w \leftarrow \sum_c \frac{s_c}{\sum_d s_d} w_c

with s_c the steps that copy c made since the copies began (HadarE, parameter averaging; as in
:mod:`shadowprice.execution.copies.local_sgd`). Averaged are ``parameters.npz`` (NumPy) and
``parameters.pt`` (a torch state dict), array by array, statistics of batch normalisation included,
without which copies would differ in evaluation. Whole numbers and flags, such as counters, have no
average: they are the heaviest copy's. So is every other file: the optimizer's state stays local to
one copy, as does its generator, as in local SGD.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.errors import InputError
from shadowprice.hosts.job import commit

ARRAYS, TENSORS, MANIFEST = "parameters.npz", "parameters.pt", "manifest.json"


def average(checkpoints: Sequence[Path], weights: Sequence[int], out: Path) -> None:
    """Write the average of checkpoints into the empty folder ``out``.

    Parameters
    ----------
    checkpoints : sequence of Path
        One for each copy that made a step.
    weights : sequence of int
        Steps of each copy, positive.

    Raises
    ------
    InputError
        If there are no parameters, or names, shapes or types differ between copies; names the array.

    Notes
    -----
    Sums are of float64 (complex128), in the order given. One copy is copied as it is. Time and
    memory are linear in the parameters: one sum and one copy are held at a time.
    """
    if len(checkpoints) != len(weights) or not weights or min(weights) < 1:
        raise InputError(
            f"weights of {len(checkpoints)} copies: {list(weights)}, expected steps of each"
        )
    heaviest = checkpoints[max(range(len(weights)), key=weights.__getitem__)]
    present = [name for name in (ARRAYS, TENSORS) if (heaviest / name).is_file()]
    if not present:
        raise InputError(f"{heaviest}: expected a file {ARRAYS} or {TENSORS} to average")
    shares = [weight / sum(weights) for weight in weights]
    skipped = shutil.ignore_patterns(MANIFEST, *(present if len(checkpoints) > 1 else ()))
    shutil.copytree(heaviest, out, dirs_exist_ok=True, ignore=skipped)
    if len(checkpoints) == 1:
        return
    for name in present:
        paths = [checkpoint / name for checkpoint in checkpoints]
        mean = _mean_arrays if name == ARRAYS else _mean_tensors
        mean(paths, shares, heaviest / name, out / name)


def commit_average(
    checkpoints: Sequence[Path],
    weights: Sequence[int],
    into: Path,
    *,
    step: int,
    epoch: int,
    seconds: float = 0.0,
    fence: Path | None = None,
    previous: Path | None = None,
) -> Path:
    """Commit the average as a checkpoint of the job, as a lease commits its own; see :func:`commit`.

    Parameters
    ----------
    into : Path
        The job's folder of checkpoints.
    step, epoch, seconds
        Of the averaged state: steps of the job so far, those of all copies included.
    """
    about = {"step": step, "epoch": epoch, "seconds": seconds}
    return commit(into, partial(average, checkpoints, weights), about, fence, previous)


def _mean_arrays(paths: Sequence[Path], shares: Sequence[float], heaviest: Path, out: Path) -> None:
    """NumPy: dtypes and order of the heaviest copy."""
    first = _read_arrays(heaviest)
    sums = {name: np.zeros(array.shape, _wide(array)) for name, array in first.items()}
    for path, share in zip(paths, shares, strict=True):
        arrays = _read_arrays(path)
        _expect_alike(path, _shapes(arrays), _shapes(first))
        for name, total in sums.items():
            if np.issubdtype(total.dtype, np.inexact):
                total += share * arrays[name].astype(total.dtype)
            elif path == heaviest:
                total[...] = arrays[name]
    with open(out, "wb") as file:
        np.savez(file, **{name: sums[name].astype(first[name].dtype) for name in first})  # type: ignore[arg-type]


def _wide(array: np.ndarray[Any, Any]) -> Any:
    """The type sums are made in; of numbers that are not averaged their own."""
    if np.issubdtype(array.dtype, np.complexfloating):
        return np.complex128
    return np.float64 if np.issubdtype(array.dtype, np.floating) else array.dtype


def _read_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected arrays without objects in it ({error})") from error


def _mean_tensors(
    paths: Sequence[Path], shares: Sequence[float], heaviest: Path, out: Path
) -> None:
    """Torch: the same, for tensors on the CPU."""
    import torch

    first = _read_tensors(heaviest)
    sums = {name: torch.zeros_like(tensor, dtype=_wider(tensor)) for name, tensor in first.items()}
    for path, share in zip(paths, shares, strict=True):
        tensors = _read_tensors(path)
        _expect_alike(path, _shapes(tensors), _shapes(first))
        for name, total in sums.items():
            if total.is_floating_point() or total.is_complex():
                total += share * tensors[name].to(total.dtype)
            elif path == heaviest:
                total.copy_(tensors[name])
    torch.save({name: sums[name].to(first[name].dtype) for name in first}, out)


def _wider(tensor: Any) -> Any:
    import torch

    if tensor.is_complex():
        return torch.complex128
    return torch.float64 if tensor.is_floating_point() else tensor.dtype


def _read_tensors(path: Path) -> dict[str, Any]:
    import torch

    try:
        found = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises many kinds, of which it names none
        raise InputError(f"{path}: expected a state dict of tensors ({error})") from error
    if not isinstance(found, dict) or not all(map(torch.is_tensor, found.values())):
        raise InputError(f"{path}: expected a state dict of tensors and nothing else")
    return dict(found)


def _shapes(arrays: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{array.dtype} {tuple(array.shape)}" for name, array in arrays.items()}


def _expect_alike(path: Path, found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    for name in sorted({*found, *expected}):
        if found.get(name) != expected.get(name):
            raise InputError(
                f"{path}: array {name!r} is {found.get(name, 'missing')}, "
                f"expected {expected.get(name, 'none of that name')} as in the heaviest copy"
            )
