"""Throughput tables: iterations per second by job kind, gang size and GPU type.

Two public formats are read: Gavel's ``simulation_throughputs.json``
(github.com/stanford-futuredata/gavel; worker type, then ``('ResNet-18 (batch size 16)', 1)``,
then the isolated rate under ``null`` and rates beside other jobs; a model with an apostrophe in its
name is in double quotes, as a string of JSON) and Synergy's profiles (model, then gang size, then
``iter_time_s``; alone or under the key ``profiles``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import ANY_TYPE
from shadowprice.instances.entries import ONE_LINE, is_number, known_keys, on_one_line, shown
from shadowprice.instances.files import parse_json, read_json

Kind = tuple[str, int]
"""Job kind: model name and gang size [GPUs]."""

_GANG = re.compile(r"[1-9][0-9]{0,8}")
_KIND = re.compile(
    r"""\((?:'(?P<model>[^']+)'|(?P<quoted>"(?:[^"\\]|\\.)*")), (?P<gpus>[0-9]{1,9})\)""", re.DOTALL
)


SYNERGY_TABLE = (
    "iter_time_s",
    "tput",
    "best_cpus_per_gpu",
    "best_mem_gb_per_gpu",
    "best_speedup",
    "placement_penalty",
)
"""Entries of one gang of one model in Synergy's recorded tables."""


@dataclass(frozen=True, repr=False)
class Throughputs(Brief):
    """Rates of whole gangs.

    Parameters
    ----------
    gpu_types : tuple of str
        GPU types of the table.
    alone : mapping of (model, gpus) to tuple of float
        Iterations per second on each type, 0 where the kind cannot run.
    pairs : mapping of (type, kind, kind) to (float, float)
        Rates of two kinds sharing GPUs, first kind first.
    """

    gpu_types: tuple[str, ...]
    alone: Mapping[Kind, tuple[float, ...]]
    pairs: Mapping[tuple[str, Kind, Kind], tuple[float, float]] = field(default_factory=dict)
    source: str = "throughputs"

    def rates(self, model: str, gpus: int) -> tuple[float, ...] | None:
        """Rates of a kind on each type, or None if the table does not have it."""
        return self.alone.get((model, gpus))

    def pair(self, gpu_type: str, first: Kind, second: Kind) -> tuple[float, float] | None:
        """Rates of two kinds that share GPUs of a type, or None if they were not measured."""
        return self.pairs.get((gpu_type, first, second))

    def column(self, gpu_type: str) -> int:
        """Position of a GPU type in the rates.

        Raises
        ------
        InputError
            If the table does not have it.
        """
        if gpu_type not in self.gpu_types:
            found = ", ".join(self.gpu_types)
            raise InputError(f"{self.source}: no GPU type {gpu_type!r}, found {found}")
        return self.gpu_types.index(gpu_type)

    def expect_relative(self) -> None:
        """Raise :class:`InputError` if a kind that runs alone in the table has another rate there than 1."""
        for (model, gpus), rates in self.alone.items():
            for gpu_type, rate in zip(self.gpu_types, rates, strict=True):
                if rate not in (0.0, 1.0):
                    raise InputError(
                        f"{self.source}: {model!r} on {gpus} GPUs has rate {rate!r} alone on {gpu_type!r}, expected 1: "
                        "how fast jobs with graphs are alone their graphs say, and rates of pairs are against that"
                    )


def load_throughputs(path: str | Path) -> Throughputs:
    """Read a table in either format.

    Raises
    ------
    InputError
        If the file is not JSON or has neither form, naming the entry.
    """
    data = read_json(path)
    if isinstance(data, dict) and isinstance(data.get("profiles"), dict):
        data = data["profiles"]
    if (
        not isinstance(data, dict)
        or not data
        or not all(isinstance(entry, dict) and entry for entry in data.values())
    ):
        raise InputError(
            f"{path}: expected Gavel's or Synergy's throughput table, a non-empty object of objects"
        )
    inner = next(iter(next(iter(data.values()))))
    return _gavel(data, str(path)) if _KIND.fullmatch(inner) else _synergy(data, str(path))


def _gavel(data: dict[str, Any], source: str) -> Throughputs:
    types = tuple(data)
    alone: dict[Kind, list[float]] = {}
    pairs: dict[tuple[str, Kind, Kind], tuple[float, float]] = {}
    for column, (gpu_type, kinds) in enumerate(data.items()):
        _on_one_line(gpu_type, source)
        for name, rates in kinds.items():
            kind = _kind(name, f"{source}: {gpu_type}")
            where = f"{source}: {gpu_type} {name}"
            if not isinstance(rates, dict):
                raise InputError(f"{where}: expected an object")
            alone.setdefault(kind, [0.0] * len(types))[column] = _rate(rates.get("null"), where)
            for other, pair in rates.items():
                if other != "null":
                    if not isinstance(pair, list) or len(pair) != 2:
                        raise InputError(f"{where} with {other}: got {pair!r}, expected two rates")
                    first, second = (_rate(rate, f"{where} with {other}") for rate in pair)
                    pairs[gpu_type, kind, _kind(other, where)] = (first, second)
    return Throughputs(types, {kind: tuple(rates) for kind, rates in alone.items()}, pairs, source)


def _synergy(data: dict[str, Any], source: str) -> Throughputs:
    alone: dict[Kind, tuple[float, ...]] = {}
    for model, gangs in data.items():
        _on_one_line(model, source)
        for gpus, profile in gangs.items():
            where = f"{source}: {shown(model)} on {shown(gpus)} GPUs"
            if not _GANG.fullmatch(gpus):
                raise InputError(f"{where}: expected a gang size and an object with iter_time_s")
            known_keys(profile, where, SYNERGY_TABLE, ("iter_time_s",))
            seconds = _rate(profile["iter_time_s"], where)
            if seconds <= 0:
                raise InputError(f"{where}: iter_time_s is {seconds}, expected seconds > 0")
            alone[model, int(gpus)] = (1.0 / seconds,)
    return Throughputs((ANY_TYPE,), alone, source=source)


def _kind(text: str, where: str) -> Kind:
    match = _KIND.fullmatch(text)
    if match is None:
        raise InputError(f"{where}: key {text!r}, expected ('MODEL', GPUS)")
    model = match["model"]
    if model is None:
        try:
            model = str(parse_json(match["quoted"], where))
        except InputError as error:
            raise InputError(
                f'{where}: key {text!r}, expected ("MODEL", GPUS) with MODEL quoted as in JSON'
            ) from error
    _on_one_line(model, where)
    return model, int(match["gpus"])


def _on_one_line(name: str, where: str) -> None:
    if not on_one_line(name):
        raise InputError(f"{where}: name {shown(name)}, expected {ONE_LINE}")


def _rate(value: object, where: str) -> float:
    if not is_number(value) or value < 0:
        raise InputError(f"{where}: got {shown(value)}, expected a finite rate >= 0")
    return float(value)
