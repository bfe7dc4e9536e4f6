"""Hard instances: a policy, an instance and a schedule that shows how much better one can do.

A witness certifies a ratio from below. Whatever the offline optimum is, it costs no more than
any feasible schedule; so a policy that costs r times a feasible schedule costs at least r times the
optimum, on this instance, and nobody has to believe a solver. The witness is stored with the
instance; checking both is running the policy, verifying two schedules and one division of
rationals.

The format, one JSON object a file::

    format, name     1, and the name of the file
    policy           as `--policy` takes it
    predictor        as `--predictor` takes it, or null
    objective        completion, flow or makespan
    cluster          in short notation
    jobs             id, arrival_s, gpus, work_s of every job, in order of arrival
    witness          job, node, gpus, start_s, end_s of every run
    policy_cost_s, witness_cost_s, ratio    the last as a rational, policy over witness
    witness_is       what is known of it: feasible, or optimal among which schedules
    provenance       method, seed, evaluations, family and the version that found it

Files of the package are a benchmark set: :func:`hard_instances` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.entries import ONE_LINE, is_number, known_keys, on_one_line, shown
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import Workload

FORMAT = 1
_JOB = ("id", "arrival_s", "gpus", "work_s")
_RUN = ("job", "node", "gpus", "start_s", "end_s")
_RECORD = (
    "format",
    "name",
    "policy",
    "predictor",
    "objective",
    "cluster",
    "jobs",
    "witness",
    "policy_cost_s",
    "witness_cost_s",
    "ratio",
    "witness_is",
    "provenance",
)


@dataclass(frozen=True, eq=False)
class HardInstance:
    """An instance on which a policy is bad, with the schedule that proves it.

    Parameters
    ----------
    name : str
        Name of its file.
    policy, predictor : str
        As on the command line; None for a policy that predicts nothing.
    objective : Objective
        What is compared.
    instance, witness
        What was given, and a feasible schedule.
    policy_cost_s, witness_cost_s : float
        Costs [s].
    ratio : Fraction
        Policy over witness: at most the ratio of the policy to the optimum.
    witness_is : str
        ``feasible``, or among which schedules it is optimal.
    provenance : mapping
        How it was found.
    """

    name: str
    policy: str
    predictor: str | None
    objective: Objective
    instance: Instance
    witness: Schedule
    policy_cost_s: float
    witness_cost_s: float
    ratio: Fraction
    witness_is: str
    provenance: Mapping[str, Any]

    def to_json(self) -> str:
        """The file's text; the same instance gives the same bytes."""
        jobs, runs = self.instance.workload, self.witness
        record = {
            "format": FORMAT,
            "name": self.name,
            "policy": self.policy,
            "predictor": self.predictor,
            "objective": str(self.objective),
            "cluster": str(self.instance.cluster),
            "jobs": _records(_JOB, (jobs.id, jobs.arrival_s, jobs.gpus, jobs.work)),
            "witness": _records(_RUN, (runs.job, runs.node, runs.gpus, runs.start_s, runs.end_s)),
            "policy_cost_s": self.policy_cost_s,
            "witness_cost_s": self.witness_cost_s,
            "ratio": str(self.ratio),
            "witness_is": self.witness_is,
            "provenance": dict(self.provenance),
        }
        return json.dumps(record, indent=1) + "\n"


def parse_hard(text: str, source: str) -> HardInstance:
    """Read a file's text.

    Raises
    ------
    InputError
        If it is not of the format; whether what it claims is true is for others to check.
    """
    try:
        record = known_keys(parse_json(text, source), source, _RECORD, _RECORD)
        if type(record["format"]) is not int or record["format"] != FORMAT:
            raise InputError(f"{source}: format is {shown(record['format'])}, expected {FORMAT}")
        return _of_record(record, source)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise InputError(
            f"{source}: is no hard instance: {type(error).__name__}: {error}"
        ) from error


def _of_record(record: Mapping[str, Any], source: str) -> HardInstance:
    for part, keys in (("jobs", _JOB), ("witness", _RUN)):
        for k, entry in enumerate(record[part]):
            known_keys(entry, f"{source}: {part}[{k}]", keys, keys)
            for key in set(keys) - {"id"}:
                if not is_number(entry[key]):
                    raise InputError(
                        f"{source}: {part}[{k}]: {key} is {shown(entry[key])}, expected a number"
                    )
    for key in ("policy_cost_s", "witness_cost_s"):
        if not is_number(record[key]):
            raise InputError(f"{source}: {key} is {shown(record[key])}, expected a number")
    for key in ("name", "policy", "objective", "cluster", "ratio", "witness_is"):
        if not isinstance(record[key], str) or not on_one_line(record[key]):
            raise InputError(f"{source}: {key} is {shown(record[key])}, expected {ONE_LINE}")
    columns = {key: [job[key] for job in record["jobs"]] for key in _JOB}
    jobs = Workload.from_columns(
        id=columns["id"],
        arrival_s=columns["arrival_s"],
        gpus=columns["gpus"],
        work=columns["work_s"],
        source=source,
    )
    runs = pd.DataFrame(record["witness"], columns=list(_RUN)).assign(overhead_s=0.0)
    predictor = record["predictor"]
    if predictor is not None and not (isinstance(predictor, str) and on_one_line(predictor)):
        raise InputError(f"{source}: predictor is {shown(predictor)}, expected text or null")
    return HardInstance(
        name=str(record["name"]),
        policy=str(record["policy"]),
        predictor=predictor,
        objective=Objective(record["objective"]),
        instance=Instance(Cluster.parse(record["cluster"]), jobs),
        witness=Schedule.from_frame(runs, source=source),
        policy_cost_s=float(record["policy_cost_s"]),
        witness_cost_s=float(record["witness_cost_s"]),
        ratio=Fraction(record["ratio"]),
        witness_is=str(record["witness_is"]),
        provenance=dict(record["provenance"]),
    )


def read_hard(path: str | Path) -> HardInstance:
    """Read one file; see :func:`parse_hard`."""
    return parse_hard(read_text(path), str(path))


def hard_instances() -> tuple[HardInstance, ...]:
    """The hard instances that come with the package, by name."""
    folder = files("shadowprice.instances").joinpath("hard")
    found = sorted((each for each in folder.iterdir() if each.name.endswith(".json")), key=_name)
    return tuple(parse_hard(each.read_text(encoding="utf-8"), each.name) for each in found)


def _name(file: Any) -> str:
    return str(file.name)


def _records(names: tuple[str, ...], columns: tuple[Any, ...]) -> list[dict[str, Any]]:
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
