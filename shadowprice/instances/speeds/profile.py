"""The speed of a job by the CPUs and the memory it has for each of its GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError

SLACK = 1e-9
"""CPUs and memory that fall short of a measured point by no more than this share still reach it."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Measured speeds on a grid; between its points that of the point below counts.

    Parameters
    ----------
    cpus_per_gpu : ndarray, shape (a,)
        CPUs for each GPU, increasing.
    memory_gb_per_gpu : ndarray, shape (b,)
        Memory for each GPU [GB], increasing.
    speed : ndarray, shape (a, b)
        Speed relative to some common unit: 1 stands for the speed in which the job's work is
        counted, by convention that with a GPU-proportional share. Less than the smallest
        amounts is no speed at all.
    name : str
        For messages.

    Raises
    ------
    InputError
        If an axis does not increase, a cell is missing, negative or smaller than the one with
        less CPUs or memory, or no cell is positive; it names the cell.
    """

    cpus_per_gpu: NDArray[np.float64]
    memory_gb_per_gpu: NDArray[np.float64]
    speed: NDArray[np.float64]
    name: str = "profile"

    def __post_init__(self) -> None:
        for axis in ("cpus_per_gpu", "memory_gb_per_gpu"):
            values = np.array(getattr(self, axis), dtype=np.float64)
            increasing = values.ndim == 1 and len(values) and np.all(np.diff(values) > 0)
            if not (increasing and np.all(np.isfinite(values)) and values[0] >= 0):
                raise InputError(
                    f"{self.name}: {axis} is {values.tolist()}, expected increasing numbers >= 0"
                )
            self._keep(axis, values)
        speed = np.array(self.speed, dtype=np.float64)
        shape = (len(self.cpus_per_gpu), len(self.memory_gb_per_gpu))
        if speed.shape != shape:
            raise InputError(f"{self.name}: speeds have shape {speed.shape}, expected {shape}")
        self._keep("speed", speed)
        self._refuse(~np.isfinite(speed) | (speed < 0), "a number >= 0 (is the cell missing?)")
        less = np.zeros(shape, dtype=bool)
        less[1:] |= speed[1:] < speed[:-1]
        less[:, 1:] |= speed[:, 1:] < speed[:, :-1]
        self._refuse(less, "no less than with fewer CPUs or less memory")
        if not speed.max() > 0:
            raise InputError(f"{self.name}: every speed is 0, expected a positive one")

    @property
    def best(self) -> float:
        """Largest speed."""
        return float(self.speed[-1, -1])

    def demand(self) -> tuple[float, float]:
        """Least CPUs, then least memory [GB], for each GPU with which the speed is the largest."""
        rows, columns = np.nonzero(self.speed == self.best)
        row = int(rows.min())
        column = int(columns[rows == row].min())
        return float(self.cpus_per_gpu[row]), float(self.memory_gb_per_gpu[column])

    def at(self, cpus_per_gpu: float, memory_gb_per_gpu: float) -> float:
        """Speed with so much for each GPU; O(log a + log b)."""
        row = int(np.searchsorted(self.cpus_per_gpu, cpus_per_gpu * (1 + SLACK), "right")) - 1
        column = (
            int(np.searchsorted(self.memory_gb_per_gpu, memory_gb_per_gpu * (1 + SLACK), "right"))
            - 1
        )
        return float(self.speed[row, column]) if row >= 0 and column >= 0 else 0.0

    def _keep(self, name: str, values: NDArray[np.float64]) -> None:
        values.flags.writeable = False
        object.__setattr__(self, name, values)

    def _refuse(self, bad: NDArray[np.bool_], expected: str) -> None:
        if bad.any():
            row, column = (int(k) for k in np.argwhere(bad)[0])
            raise InputError(
                f"{self.name}: speed with {self.cpus_per_gpu[row]:g} CPUs and "
                f"{self.memory_gb_per_gpu[column]:g} GB for each GPU is {float(self.speed[row, column])!r}, "
                f"expected {expected}"
            )
