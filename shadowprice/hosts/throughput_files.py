"""Throughput tables as files: what was measured, so that simulations and later runs can load it.

The format is Gavel's (see :mod:`shadowprice.instances.speeds.throughputs`, which reads it). How steps that
were timed become rates:

- The rate of a kind on a GPU type is the sum of its steps over the sum of their seconds, so that a
  job counts as much as it ran.
- Only the placement on the fewest nodes that was measured enters the table; what the same kind made
  of more nodes is not mixed in, but told by :func:`measured_rates` and :func:`spread_speeds`.
- A pair enters if both of its jobs were measured beside each other.
- A kind that was only ever measured beside others has rate 0 alone: it is not known.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError
from shadowprice.hosts.supervision.files import write_text
from shadowprice.instances.entries import ONE_LINE, on_one_line, shown
from shadowprice.instances.speeds.model_names import plain_name
from shadowprice.instances.speeds.model_skew import LARGEST_GAIN, MOST_SKEWED, ModelSkew, ModelSkews
from shadowprice.instances.speeds.throughputs import Kind, Throughputs

# Measurements of jobs that ran: timed steps, by placement and co-runner.


JOB_PREFIX = "job:"
"""How the kind of a job without a model begins; no model may begin like this."""


@dataclass(frozen=True)
class Observation:
    """Steps of one job under conditions that did not change.

    Parameters
    ----------
    job, model : str
        Name of the job, and of its model if it has one.
    gpus : int
        Gang size.
    gpu_type : str
        Type of all its GPUs.
    nodes : int
        Nodes over which the gang was spread.
    co_runner, co_model : str
        Name and model of the job with which it shared its GPUs, empty if alone.
    steps : int
        Iterations that were timed; the first after a start is warm-up, and not among them.
    seconds : float
        Time they took [s].
    """

    job: str
    model: str
    gpus: int
    gpu_type: str
    nodes: int
    co_runner: str
    co_model: str
    steps: int
    seconds: float

    def __post_init__(self) -> None:
        where = f"observation of job {self.job!r}"
        for name, value in (("gpus", self.gpus), ("nodes", self.nodes)):
            if type(value) is not int or value < 1:
                raise InputError(f"{where}: {name} is {value!r}, expected an integer >= 1")
        if type(self.steps) is not int or self.steps < 0:
            raise InputError(f"{where}: steps is {self.steps!r}, expected an integer >= 0")
        if not 0 <= self.seconds < math.inf:
            raise InputError(f"{where}: seconds is {self.seconds!r}, expected a finite time >= 0")
        for name in ("job", "gpu_type"):
            if not getattr(self, name):
                raise InputError(f"{where}: {name} is empty, expected a name")

    @property
    def kind(self) -> Kind:
        """The kind of job whose rate this is."""
        return kind_name(self.job, self.model), self.gpus

    @property
    def co_kind(self) -> Kind | None:
        """The kind it shared its GPUs with, None if alone; jobs that share have equal gangs."""
        alone = not self.co_runner and not self.co_model
        return None if alone else (kind_name(self.co_runner, self.co_model), self.gpus)


def kind_name(job: str, model: str) -> str:
    """Name under which the rates of a job are kept: its model, or the job's own name.

    >>> kind_name("a", "resnet-50"), kind_name("a", "")
    ('resnet-50', 'job:a')
    """
    return model or JOB_PREFIX + job


def observations_of(rows: Iterable[Mapping[str, Any]]) -> list[Observation]:
    """Observations from mappings that have their fields, such as rows of a ledger."""
    names = [field.name for field in fields(Observation)]
    return [Observation(**{name: row[name] for name in names}) for row in rows]


MAX_GANG = 10**9 - 1
RESERVED = "profiles"
"""A key that readers take for the beginning of Synergy's format."""


@dataclass(frozen=True)
class MeasuredRate:
    """Rate of a kind under the same conditions, over all of its jobs.

    Parameters
    ----------
    partner : Kind or None
        The kind with which it shared its GPUs.
    steps, seconds
        Sums of what was timed.
    in_table : bool
        Whether it is the one that enters the table: no fewer nodes were measured.
    """

    kind: Kind
    gpu_type: str
    nodes: int
    partner: Kind | None
    steps: int
    seconds: float
    in_table: bool

    @property
    def rate(self) -> float:
        """Iterations per second of the whole gang."""
        return self.steps / self.seconds


def measured_rates(observations: Iterable[Observation]) -> list[MeasuredRate]:
    """Rates by kind, GPU type, partner and number of nodes, in this order; O(n log n).

    Conditions under which no step was timed are left out.
    """
    sums: dict[tuple[Kind, str, Kind | None, int], list[Observation]] = defaultdict(list)
    for seen in observations:
        if seen.steps and seen.seconds > 0 and math.isfinite(seen.steps / seen.seconds):
            sums[seen.kind, seen.gpu_type, seen.co_kind, seen.nodes].append(seen)
    fewest: dict[tuple[Kind, str, Kind | None], int] = {}
    for kind, gpu_type, beside, nodes in sums:
        fewest[kind, gpu_type, beside] = min(nodes, fewest.get((kind, gpu_type, beside), nodes))
    found = []
    for (kind, gpu_type, beside, nodes), group in sums.items():
        steps, seconds = sum(each.steps for each in group), math.fsum(e.seconds for e in group)
        chosen = nodes == fewest[kind, gpu_type, beside]
        found.append(MeasuredRate(kind, gpu_type, nodes, beside, steps, seconds, chosen))
    return sorted(found, key=lambda r: (r.kind, r.gpu_type, r.partner or ("", 0), r.nodes))


def measured_throughputs(
    observations: Iterable[Observation], source: str = "measured throughputs"
) -> Throughputs:
    """The table of what was measured, alone and in pairs.

    Raises
    ------
    InputError
        If no step was timed at all.
    """
    rates = [each for each in measured_rates(observations) if each.in_table]
    if not rates:
        raise InputError(f"{source}: no step of any job was timed, expected at least one")
    types = tuple(sorted({each.gpu_type for each in rates}))
    alone = {each.kind: [0.0] * len(types) for each in rates}
    partners: dict[tuple[str, Kind, Kind], float] = {}
    for each in rates:
        if each.partner is None:
            alone[each.kind][types.index(each.gpu_type)] = each.rate
        else:
            partners[each.gpu_type, each.kind, each.partner] = each.rate
    together = {
        (gpu_type, kind, other): (rate, partners[gpu_type, other, kind])
        for (gpu_type, kind, other), rate in partners.items()
        if (gpu_type, other, kind) in partners
    }
    return Throughputs(types, {kind: tuple(row) for kind, row in alone.items()}, together, source)


def spread_speeds(observations: Iterable[Observation]) -> ModelSkews:
    """Speed of every model on more nodes, against that on the fewest measured; for ``--with spread``.

    Pairs are left out, and so is who was never measured on different numbers of nodes: speed 1 by
    default. A speed above 1 is taken for noise. Skews are those that the relation of
    :mod:`shadowprice.instances.speeds.model_skew` gives for the speed.
    """
    rates = [each for each in measured_rates(observations) if each.partner is None]
    base = {(each.kind, each.gpu_type): each.rate for each in rates if each.in_table}
    spread: dict[str, tuple[str, list[MeasuredRate]]] = {}
    for each in rates:
        if not each.in_table:
            spread.setdefault(plain_name(each.kind[0]), (each.kind[0], []))[1].append(each)
    models = {}
    for name, group in spread.values():
        # Time on more nodes against the time the same steps would have taken on the fewest.
        took = math.fsum(each.seconds for each in group)
        fewest = math.fsum(each.steps / base[each.kind, each.gpu_type] for each in group)
        speed = min(1.0, max(fewest / took, 1e-6))
        skew = min(1.0, (1.0 / speed - 1.0) * MOST_SKEWED / (LARGEST_GAIN - 1.0))
        models[name] = ModelSkew(skew, speed)
    return ModelSkews(models, ModelSkew(0.0, 1.0), "measured speeds of spread gangs")


def write_throughputs(table: Throughputs, path: str | Path) -> None:
    """Write a table that ``load_throughputs`` gives back; the file is there in whole or not at all.

    Raises
    ------
    InputError
        If the table is empty or inconsistent, a rate is not a finite number >= 0, or the file
        cannot be written.
    """
    _check(table)
    rates: dict[str, dict[str, dict[str, Any]]] = {
        gpu_type: {_key(kind): {"null": float(row[k])} for kind, row in table.alone.items()}
        for k, gpu_type in enumerate(table.gpu_types)
    }
    for (gpu_type, kind, other), pair in table.pairs.items():
        rates[gpu_type][_key(kind)][_key(other)] = [float(rate) for rate in pair]
    write_json(rates, path)


def write_spread(skews: ModelSkews, path: str | Path) -> None:
    """Write speeds of spread gangs as ``ModelSkews.load`` and ``--with spread`` read them.

    Raises
    ------
    InputError
        If the file's name does not end in ``.json``, or it cannot be written.
    """
    if Path(path).suffix != ".json":
        raise InputError(f"{path}: expected a name that ends with .json")

    def one(model: ModelSkew) -> dict[str, float]:
        return {"skew": model.skew, "spread_speed": model.spread_speed}

    described: dict[str, Any] = {"models": {name: one(each) for name, each in skews.models.items()}}
    if skews.default is not None:
        described["default"] = one(skews.default)
    write_json(described, path)


def write_json(data: Mapping[str, Any], path: str | Path) -> None:
    """Write JSON whole or not at all.

    Raises
    ------
    InputError
        If it cannot be written, or is there and no plain file.
    """
    text = json.dumps(data, indent=1, allow_nan=False) + "\n"
    place = Path(path).absolute()
    try:
        # What bears the name would be moved out of the way, as in directories where jobs write.
        if place.is_dir():
            raise InputError(f"{path}: is a folder, expected a file")
        if place.exists() and not place.is_file():
            raise InputError(f"{path}: is a device or a pipe, expected a file")
        write_text(str(place), text, durable=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _key(kind: Kind) -> str:
    """A kind as a key: Gavel's notation where it can say the name, else the name as JSON."""
    model, gpus = kind
    quoted = json.dumps(model) if "'" in model or not model else f"'{model}'"
    return f"({quoted}, {gpus})"


def _check(table: Throughputs) -> None:
    types: Sequence[str] = table.gpu_types
    if not types or not table.alone:
        raise InputError(f"{table.source}: has no types or no kinds, expected at least one of each")
    if len(set(types)) < len(types) or RESERVED in types:
        raise InputError(
            f"{table.source}: GPU types are {', '.join(map(repr, types))}, expected different names, "
            f"none of them {RESERVED!r}"
        )
    names = (name for kind in table.alone for name in kind[:1])
    for name in (*types, *names):
        if not on_one_line(name):
            raise InputError(f"{table.source}: name {shown(name)}, expected {ONE_LINE}")
    for kind, row in table.alone.items():
        if not 0 <= kind[1] <= MAX_GANG:
            raise InputError(f"{table.source}: {kind!r}, expected a gang of at most {MAX_GANG}")
        if len(row) != len(types):
            raise InputError(
                f"{table.source}: {kind!r} has {len(row)} rates for {len(types)} types"
            )
    for gpu_type, kind, other in table.pairs:
        if gpu_type not in types or kind not in table.alone or not 0 <= other[1] <= MAX_GANG:
            raise InputError(
                f"{table.source}: {kind!r} beside {other!r} on {gpu_type!r}, expected a type and a "
                "kind of the table"
            )
    for rate in [
        rate for rates in (table.alone, table.pairs) for row in rates.values() for rate in row
    ]:
        if isinstance(rate, bool) or not 0 <= rate < math.inf:
            raise InputError(f"{table.source}: a rate is {rate!r}, expected a finite number >= 0")
