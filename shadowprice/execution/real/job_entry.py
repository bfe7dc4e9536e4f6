"""One job of a job file: its keys, and the checks of their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from shadowprice.errors import InputError
from shadowprice.execution.real.job_spec import Job
from shadowprice.execution.real.plain_yaml import Tree, shown
from shadowprice.instances.entries import LARGEST, ONE_LINE, on_one_line
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.speeds.observations import JOB_PREFIX
from shadowprice.instances.workload import MAX_GANG

MAX_STEPS = 10**12 - 1
"""Most iterations of a job: folders of checkpoints have names of twelve digits."""

MAX_ARGUMENTS = 10_000
OWN_PREFIX = "SHADOWPRICE_"
"""Variables that only we set begin like this."""

SET_BY_US = frozenset({"CUDA_VISIBLE_DEVICES"})
KEYS = (
    "name", "command", "shell", "env", "gpus", "gpu_types", "cpus", "memory_gb", "iterations", "epochs",
    "iterations_per_epoch", "weight", "arrival_s", "model", "throughput", "deadline_s", "tenant", "directory",
)  # fmt: skip

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")


def job_of(entry: Mapping[str, Tree], where: str, folder: Path) -> Job:
    """A job from its keys, which are known ones.

    Parameters
    ----------
    where : str
        File, position and name of the job, for messages.
    folder : Path
        What its directory is relative to.

    Raises
    ------
    InputError
        Naming file, job, key, value and what was expected.
    """
    read = _Reader(entry, where)
    return Job(
        name=read.name(),
        command=read.command(),
        env=read.environment(),
        gpus=read.whole("gpus", MAX_GANG, default=1),
        iterations=read.iterations(),
        directory=read.directory(folder),
        gpu_types=read.names("gpu_types"),
        cpus=read.number("cpus", 1e9, default=0.0),
        memory_gb=read.number("memory_gb", 1e9, default=0.0),
        weight=read.number("weight", 1e18, default=1.0),
        arrival_s=read.number("arrival_s", MAX_TIME_S, default=0.0),
        deadline_s=read.number("deadline_s", MAX_TIME_S, default=math.inf),
        model=read.model(),
        tenant=read.line("tenant"),
        throughput=read.throughput(),
    )


class _Reader:
    """Reads the values of a job's keys."""

    def __init__(self, entry: Mapping[str, Tree], where: str) -> None:
        self.entry = entry
        self.where = where

    def wrong(self, key: str, value: object, expected: str) -> InputError:
        return InputError(f"{self.where}: {key} is {shown(value)}, expected {expected}")

    def given(self, key: str) -> Tree:
        if key not in self.entry:
            raise InputError(f"{self.where}: has no {key}")
        return self.entry[key]

    def name(self) -> str:
        value = self.given("name")
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise self.wrong(
                "name", value, "1 to 64 letters, digits, '.', '_' and '-', a letter or digit first"
            )
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self.given(key) if default is None else self.entry.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value, "text")
        return value

    def line(self, key: str) -> str:
        """Text that may be printed as part of a line."""
        value = self.text(key, default="")
        if not on_one_line(value):
            raise self.wrong(key, value, ONE_LINE)
        return value

    def model(self) -> str:
        value = self.line("model")
        if value.startswith(JOB_PREFIX):
            raise self.wrong("model", value, f"a name that does not begin with {JOB_PREFIX!r}")
        return value

    def number(self, key: str, most: float, default: float) -> float:
        if key not in self.entry:
            return default
        value = self.entry[key]
        return self._number(key, value, most, lambda x: x >= 0, f"a number from 0 to {most:.10g}")

    def whole(self, key: str, most: int, default: int | None = None) -> int:
        if key not in self.entry and default is not None:
            return default
        value = self.given(key)
        expected = f"an integer from 1 to {most}"
        return int(self._number(key, value, most, lambda x: x >= 1 and x.is_integer(), expected))

    def _number(
        self, key: str, value: object, most: float, fine: Callable[[float], bool], expected: str
    ) -> float:
        if not isinstance(value, str) or len(value) > 400 or not _NUMBER.fullmatch(value):
            raise self.wrong(key, value, expected)
        number = float(value) + 0.0  # -0 is 0
        if not number <= most or not fine(number):
            raise self.wrong(key, value, expected)
        return number

    def command(self) -> tuple[str, ...]:
        if ("command" in self.entry) == ("shell" in self.entry):
            has = "both command and shell" if "shell" in self.entry else "no command"
            raise InputError(
                f"{self.where}: has {has}, expected command: [program, argument, ...], "
                "or shell: text if a shell shall read it"
            )
        if "shell" in self.entry:
            text = self.text("shell")
            if not text.strip():
                raise self.wrong("shell", text, "text for /bin/sh")
            return ("/bin/sh", "-c", text)
        value = self.entry["command"]
        expected = "a list of text, [program, argument, ...]; 'shell: text' is read by a shell"
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_ARGUMENTS:
            raise self.wrong("command", value, expected)
        for k, each in enumerate(value):
            if not isinstance(each, str) or (k == 0 and not each):
                raise self.wrong(f"command[{k}]", each, expected)
        return tuple(str(each) for each in value)

    def environment(self) -> dict[str, str]:
        value = self.entry.get("env", {})
        if not isinstance(value, dict):
            raise InputError(f"{self.where}: env is no mapping, expected NAME: value")
        found = {}
        for name, content in value.items():
            if not _VARIABLE.fullmatch(name):
                raise self.wrong("a name in env", name, "letters, digits and '_', no digit first")
            if name.startswith(OWN_PREFIX) or name in SET_BY_US:
                raise self.wrong(
                    "a name in env", name, "a variable that the scheduler does not set"
                )
            if not isinstance(content, str):
                # The value itself may be a secret.
                raise InputError(f"{self.where}: env {name} is no text or number, expected a value")
            found[name] = content
        return found

    def names(self, key: str) -> tuple[str, ...]:
        value = self.entry.get(key, [])
        if key in self.entry and (not isinstance(value, list) or not value):
            raise self.wrong(key, value, "a list of GPU types, [v100, k80]")
        found = []
        for each in value or []:
            if not isinstance(each, str) or not each or not on_one_line(each):
                raise self.wrong(key, value, "a list of GPU types, [v100, k80]")
            found.append(each)
        return tuple(dict.fromkeys(found))

    def iterations(self) -> int:
        if ("iterations" in self.entry) == ("epochs" in self.entry):
            has = "both iterations and epochs" if "epochs" in self.entry else "no iterations"
            raise InputError(
                f"{self.where}: has {has}, expected iterations: N, or epochs: E with "
                "iterations_per_epoch: M"
            )
        if "iterations" in self.entry:
            if "iterations_per_epoch" in self.entry:
                raise InputError(
                    f"{self.where}: has iterations_per_epoch beside iterations, expected it with epochs"
                )
            return self.whole("iterations", MAX_STEPS)
        total = self.whole("epochs", MAX_STEPS) * self.whole("iterations_per_epoch", MAX_STEPS)
        if total > MAX_STEPS:
            raise self.wrong("epochs x iterations_per_epoch", total, f"at most {MAX_STEPS}")
        return total

    def throughput(self) -> float | dict[str, float] | None:
        value = self.entry.get("throughput")
        if "throughput" not in self.entry:
            return None
        if not isinstance(value, dict):
            expected = "iterations per second > 0, or {GPU type: iterations per second}"
            return self._number("throughput", value, LARGEST, lambda x: x > 0, expected)
        expected = "iterations per second >= 0, 0 where it cannot run"
        rates = {
            kind: self._number(f"throughput {kind!r}", rate, LARGEST, lambda x: x >= 0, expected)
            for kind, rate in value.items()
        }
        if not any(rates.values()):
            raise self.wrong("throughput", value, "a GPU type on which it can run")
        return rates

    def directory(self, folder: Path) -> Path:
        value = self.text("directory", default=".")
        path = Path(folder.absolute(), value)
        try:
            found = path.is_dir()
        except (OSError, ValueError):
            found = False
        if not found or not value:
            raise self.wrong("directory", value, f"a directory that exists, from {folder} on")
        return path
