"""Check the event log of a real run: standard library only.

``python -m shadowprice.hosts.log.execution_log STATE/run.db`` checks the log in a ledger against what the
ledger says of nodes and jobs.

The log is what the driver wrote down before it acted. Rules, each event against all before it:

==============  ====================================================================================
``form``        numbered 1, 2, 3 ... without a gap, times never decrease, known kinds, well-formed data
``driver``      a driver starts first; later ones resume; after one has ended nothing happens
``arrival``     nothing is decided about a job that did not arrive, or is over
``decision``    a lease follows a decision that starts its job; every decision accounts for every job
``epoch``       epochs of a job increase
``lease``       a job has one lease at a time; only leases that are held run, stop, or are released
``gang``        a lease holds the job's gang, or as many devices as its job file lets it have: devices
                that exist, each once
``cpu_memory``  a lease holds the CPUs and memory that its job asks for; nodes have what is held of them
``mapping``     replicas of a job graph are where the decision put them, in the order of ranks; what the
                graph says of the time of an iteration is right
``double``      nobody else holds its devices, but one partner, the very same: both name each other
``quarantine``  no device is on a lost node or quarantined; it is kept until its lease is released
``progress``    a lease goes on from the last committed step, which decreases by damage only
``loss``        steps done after it are told in full, and no more than allowed
``over``        a job finishes with all steps, without a lease; what is over gets no other end, unless it
                was given up and is taken up again
``end``         after the last event of a run that ended every job is over and every lease released
==============  ====================================================================================

A lease whose end cannot be confirmed is written off: all its devices are quarantined, and the job may
have another. When a release tells that its processes are gone, the devices may be used again.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shadowprice.hosts.log.log_mappings import LoggedGraphs

# Holders of devices.


Key = tuple[str, int]
"""Job and epoch."""


class Broken(Exception):
    """A rule is broken: its name, and how."""


def need(fine: object, rule: str, message: str) -> None:
    """Refuse unless a condition holds."""
    if not fine:
        raise Broken(rule, message)


def whole(value: object) -> int:
    """A whole number >= 0."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no whole number >= 0")
    return value


@dataclass
class LoggedLease:
    """Devices that a job holds; ``quarantined`` are those of them whose release is not confirmed.

    Beside them CPUs [thousandths] and memory [MiB] of their nodes, where they are counted.
    """

    key: Key
    devices: frozenset[str]
    partner: str | None
    cpu_memory: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    quarantined: set[str] = field(default_factory=set)

    @property
    def written_off(self) -> bool:
        """True if the job goes on without this lease."""
        return self.quarantined == self.devices


class DeviceHolders:
    """Books of all devices.

    Parameters
    ----------
    nodes : iterable of mapping
        Their ``name`` and ``devices``, each with a ``uuid``.
    """

    def __init__(self, nodes: Iterable[Mapping[str, Any]]) -> None:
        nodes = list(nodes)
        self.node_of = {d["uuid"]: node["name"] for node in nodes for d in node["devices"]}
        self._most = {node["name"]: _most(node) for node in nodes}
        self._cpu_memory: dict[str, list[int]] = {node["name"]: [0, 0] for node in nodes}
        self._holders: dict[str, list[LoggedLease]] = defaultdict(list)
        self._quarantined: dict[str, set[Key]] = defaultdict(set)
        self._lost: set[str] = set()

    def gang(self, event: Mapping[str, Any], sizes: tuple[int, int] | None) -> None:
        """Devices that exist, each once, on the nodes that are told, and no fewer or more than a job may have."""
        devices = event["devices"]
        strange = [device for device in devices if device not in self.node_of]
        need(devices and not strange, "gang", f"no such devices: {strange}")
        need(len(set(devices)) == len(devices), "gang", f"a device is there twice: {devices}")
        where = {device: self.node_of[device] for device in devices}
        need(event["node_of"] == where, "gang", f"devices are on {where}, not {event['node_of']}")
        nodes = set(where.values())
        fine = event["ranks"] == len(nodes)
        need(fine, "gang", f"{event['ranks']!r} ranks on {len(nodes)} nodes")
        if sizes is not None:
            least, most = sizes
            of = f"{least}" if least == most else f"{least} to {most}"
            need(
                least <= len(devices) <= most, "gang", f"{len(devices)} devices for a gang of {of}"
            )

    def hold(self, lease: LoggedLease) -> None:
        """Nobody else may hold them but one partner, nor may they be lost or quarantined."""
        for device in sorted(lease.devices):
            node = self.node_of[device]
            need(node not in self._lost, "quarantine", f"{device} is on {node}, which is lost")
            need(not self._quarantined[device], "quarantine", f"{device} is quarantined")
        # A third would have to name both of those that are there.
        for other in self.others(lease):
            one, two = lease.key[0], other.key[0]
            fine = lease.partner == two != one and other.devices == lease.devices
            need(fine, "double", f"{two} holds devices of {one}, which names {lease.partner!r}")
        for device in lease.devices:
            self._holders[device].append(lease)

    def hold_cpu_memory(self, lease: LoggedLease, asks: tuple[int, int]) -> None:
        """On its own nodes, at least what its job asks for, and nowhere more than a node has.

        They are held until its processes are gone, also where it was written off.
        """
        if not lease.cpu_memory:
            need(asks == (0, 0), "cpu_memory", f"{lease.key} holds none, its job asks for {asks}")
            return
        nodes = {self.node_of[device] for device in lease.devices}
        need(
            lease.cpu_memory.keys() == nodes,
            "cpu_memory",
            f"{lease.key} holds some on {lease.cpu_memory}",
        )
        for k, what in enumerate(("thousandths of a CPU", "MiB")):
            held = sum(each[k] for each in lease.cpu_memory.values())
            # Memory is rounded down on each node.
            least = asks[k] - (len(nodes) - 1) * k
            need(held >= least, "cpu_memory", f"{lease.key} holds {held} {what}, not {asks[k]}")
            for node, its in lease.cpu_memory.items():
                self._cpu_memory[node][k] += its[k]
                used, most = self._cpu_memory[node][k], self._most[node][k]
                need(used <= most, "cpu_memory", f"{used} {what} of {node} are held, it has {most}")

    def others(self, lease: LoggedLease) -> list[LoggedLease]:
        """Other leases that hold some of its devices."""
        found = {other.key: other for d in sorted(lease.devices) for other in self._holders[d]}
        return [other for key, other in found.items() if key != lease.key]

    def let_go(self, lease: LoggedLease) -> None:
        """A lease is released."""
        for device in lease.devices:
            self._holders[device].remove(lease)
        for node, its in lease.cpu_memory.items():
            for k in range(2):
                self._cpu_memory[node][k] -= its[k]

    def quarantine(self, device: str, key: Key, lease: LoggedLease | None) -> None:
        """A device may not be free though its lease is over, or is not to be used."""
        need(device in self.node_of, "gang", f"no such device: {device}")
        self._quarantined[device].add(key)
        if lease is not None:
            need(device in lease.devices, "lease", f"{key} does not hold {device}")
            lease.quarantined.add(device)

    def take_back(self, device: str, key: Key) -> None:
        """A device that was quarantined may be used again."""
        need(
            key in self._quarantined[device], "quarantine", f"{device} is not quarantined for {key}"
        )
        self._quarantined[device].discard(key)

    def lose(self, node: str) -> None:
        """A node does not answer."""
        need(node in self.node_of.values(), "gang", f"no such node: {node}")
        self._lost.add(node)

    def find(self, node: str) -> None:
        """A node answers again."""
        need(node in self._lost, "quarantine", f"{node} was not lost")
        self._lost.discard(node)


CPU_MILLI, MIB, NOISE = 1000, 2**20, 1e-6
"""Units of CPUs and memory, and the part of one that rounding to a double may have added."""


def _most(node: Mapping[str, Any]) -> tuple[int, int]:
    """CPUs [thousandths] and memory [MiB] of a node."""
    cpus, memory_gb = node.get("cpus", 0.0), node.get("memory_gb", 0.0)
    return int(cpus * CPU_MILLI + NOISE), int(memory_gb * 1e9 / MIB + NOISE)


def _asked(data: Mapping[str, Any]) -> tuple[int, int]:
    """CPUs [thousandths] and memory [MiB] that a job asks for, rounded down; 0 where it does not say."""
    cpus, memory_gb = float(data.get("cpus", 0.0)), float(data.get("memory_gb", 0.0))
    return int(cpus * CPU_MILLI + NOISE), int(memory_gb * 1e9 / MIB + NOISE)


def _held(data: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """CPUs [thousandths] and memory [MiB] that a lease holds on its nodes; empty if not counted."""
    told = data.get("amounts", {})
    return {node: (whole(cpus), whole(memory)) for node, (cpus, memory) in told.items()}


Event = Mapping[str, Any]
MALFORMED = (AttributeError, LookupError, TypeError, ValueError)
OVER = ("finished", "gave-up", "cancelled")


class LogRejected(Exception):
    """An event breaks a rule; the message names both.

    Attributes
    ----------
    seq : int
        Number of the event.
    rule : str
        Name of the rule, as above.
    """

    def __init__(self, seq: int, rule: str, message: str) -> None:
        super().__init__(f"event {seq}: {rule}: {message}")
        self.seq = seq
        self.rule = rule


def verify_log(
    events: Iterable[Event],
    nodes: Iterable[Mapping[str, Any]],
    *,
    gpus: Mapping[str, int] | None = None,
    iterations: Mapping[str, int] | None = None,
    allowed_loss: Mapping[str, int] | None = None,
    graphs: Mapping[str, Any] | None = None,
    widths: Mapping[str, Sequence[int]] | None = None,
    ended: bool = False,
) -> dict[str, int]:
    """Check a log; O(events x devices of a lease) beside decisions, which name the waiting jobs.

    Parameters
    ----------
    events : iterable of mapping
        ``seq``, ``time_s``, ``kind``, ``job``, ``epoch`` and ``data``, in order.
    nodes : iterable of mapping
        Their ``name`` and ``devices``, each with a ``uuid``.
    gpus, iterations : mapping of str to int, optional
        Gang and steps of the jobs; no other job may be there. Not checked if not given.
    allowed_loss : mapping of str to int, optional
        Most steps that one lease of a job may lose: what it can do in a round and a checkpoint
        interval. Not checked for jobs that are not named.
    graphs : mapping, optional
        Graphs of jobs, as a ledger has them; see :class:`.LoggedGraphs`.
    widths : mapping of str to (int, int), optional
        Fewest and most devices of the jobs whose gang may change from lease to lease; of all others that is
        fixed.
    ended : bool
        Whether the run says that it is over.

    Returns
    -------
    dict
        Counts: ``events``, ``leases``, ``jobs``, ``steps_lost``, ``most_lost`` of one lease, ``drivers``.

    Raises
    ------
    LogRejected
        Naming the first event that breaks a rule.
    """
    try:
        listed = list(nodes)
        log = _Log(DeviceHolders(listed), gpus, iterations, allowed_loss or {})
        log.graphs = LoggedGraphs(graphs, [node["name"] for node in listed])
        log.widths = {
            name: (whole(least), whole(most)) for name, (least, most) in (widths or {}).items()
        }
    except MALFORMED as error:
        raise LogRejected(0, "form", f"nodes, graphs or widths are malformed: {error!r}") from None
    try:
        for event in events:
            log.take(event)
        if ended:
            log.end()
    except Broken as broken:
        raise LogRejected(log.seq, *broken.args) from None
    except MALFORMED as error:
        raise LogRejected(log.seq, "form", f"is malformed: {error!r}") from None
    return dict(log.counts)


class _Log:
    def __init__(
        self,
        devices: DeviceHolders,
        gpus: Mapping[str, int] | None,
        iterations: Mapping[str, int] | None,
        allowed_loss: Mapping[str, int],
    ) -> None:
        self.devices, self.allowed_loss = devices, allowed_loss
        self.gpus, self.iterations = gpus, iterations
        self.graphs = LoggedGraphs(None, ())
        self.widths: dict[str, tuple[int, int]] = {}
        self.seq, self.time_s, self.driven = 0, 0.0, False
        self.state: dict[str, str] = {}  # arrived, failed, or how it is over
        self.promised: set[str] | None = None  # started by the last decision, no lease yet
        self.epoch: dict[str, int] = defaultdict(int)
        self.leases: dict[Key, LoggedLease] = {}
        self.step: dict[str, int] = defaultdict(int)  # last committed
        self.asks: dict[str, tuple[int, int]] = {}  # CPUs and memory
        self.unsure: set[str] = set()  # a lease that was written off may have committed more
        names = ("events", "leases", "jobs", "steps_lost", "most_lost", "drivers")
        self.counts = dict.fromkeys(names, 0)

    def take(self, event: Event) -> None:
        """Check an event, and note what follows from it."""
        kind, data, time_s = event["kind"], event["data"], event["time_s"]
        self.seq += 1
        need(event["seq"] == self.seq, "form", f"is numbered {event['seq']!r}, not {self.seq}")
        later = isinstance(time_s, int | float) and time_s >= self.time_s
        need(later, "form", f"is at {time_s!r} s, after one at {self.time_s!r} s")
        fine = self.driven or kind in ("driver-started", "note")
        need(fine, "driver", f"{kind} while no driver runs")
        self.time_s = time_s
        self.counts["events"] += 1
        key = (str(event["job"]), whole(event["epoch"]))
        need(kind in HANDLERS, "form", f"is of kind {kind!r}, which is unknown")
        HANDLERS[kind](self, key, data)

    def driver_started(self, key: Key, data: Event) -> None:
        resumed = data["resumed"]
        fine = resumed is True or (resumed is False and not self.counts["drivers"])
        need(fine, "driver", f"resumed is {resumed!r} of driver {self.counts['drivers'] + 1}")
        self.driven = True
        self.counts["drivers"] += 1

    def driver_ended(self, key: Key, data: Event) -> None:
        self.driven = False

    def note(self, key: Key, data: Event) -> None:
        """Notes are for people."""

    def arrived(self, key: Key, data: Event) -> None:
        name = key[0]
        need(name and name in (self.gpus or [name]), "arrival", f"{name!r} is no job of the run")
        # A driver that died right after writing it down makes the next one do so again.
        again = self.state.get(name) == "arrived" and not self.epoch[name]
        need(name not in self.state or again, "arrival", f"{name} arrives a second time")
        self.counts["jobs"] += not again
        self.asks[name] = _asked(data)
        self.state[name] = "arrived"

    def decided(self, key: Key, data: Event) -> None:
        starts, waiting = set(data["starts"]), set(data["waiting"])
        for name in sorted(starts | waiting | set(data["stops"])):
            self.live(name)
        sure = [lease for lease in self.leases.values() if not lease.written_off]
        told = {lease.key[0] for lease in sure} | starts | waiting
        for name, state in self.state.items():
            fine = state in OVER or state == "failed" or name in told
            need(fine, "decision", f"{name} is lost: it neither runs nor waits nor is over")
        for lease in sure:
            for other in self.devices.others(lease):
                fine = other.written_off or lease.partner == other.key[0]
                need(fine, "double", f"{lease.key} does not name {other.key}, its partner")
        fault = self.graphs.decided(data)
        need(not fault, "mapping", fault)
        self.state.update(dict.fromkeys(starts | waiting, "arrived"))
        self.promised = starts

    def granted(self, key: Key, data: Event) -> None:
        name, epoch = key
        self.live(name)
        if self.promised is not None:
            need(name in self.promised, "decision", f"no decision starts {name}")
            self.promised.discard(name)
        need(epoch > self.epoch[name], "epoch", f"{key} comes after epoch {self.epoch[name]}")
        mine = self.own(name)
        need(not mine, "lease", f"{name} holds {mine} already")
        step, before = whole(data["from_step"]), self.step[name]
        goes_on = step == before or (step > before and name in self.unsure)
        need(goes_on, "progress", f"{name} goes on from step {step}, committed is {before}")
        sizes = None if self.gpus is None else (self.gpus[name], self.gpus[name])
        self.devices.gang(data, self.widths.get(name, sizes))
        known = self.promised is not None
        fault = self.graphs.granted(name, data, self.devices.node_of, known=known)
        need(not fault, "mapping", fault)
        lease = LoggedLease(key, frozenset(data["devices"]), data["partner"], _held(data))
        self.devices.hold(lease)
        self.devices.hold_cpu_memory(lease, self.asks[name])
        self.leases[key], self.state[name] = lease, "arrived"
        self.step[name], self.epoch[name] = step, epoch
        self.unsure.discard(name)
        self.counts["leases"] += 1

    def partner(self, key: Key, data: Event) -> None:
        self.held(key).partner = data["partner"]

    def of_a_lease(self, key: Key, data: Event) -> None:
        """Only what is held runs or is asked to stop."""
        self.held(key)

    def released(self, key: Key, data: Event) -> None:
        lease, name = self.held(key), key[0]
        devices = sorted(lease.devices)
        need(sorted(data["devices"]) == devices, "lease", f"{key} holds {devices}, not these")
        step, committed, lost = (whole(data[k]) for k in ("step", "checkpoint_step", "lost_steps"))
        least, total = self.step[name], (self.iterations or {name: committed})[name]
        need(least <= committed <= total, "progress", f"{committed} is not in {least}..{total}")
        need(lost >= step - committed, "loss", f"{lost} steps are told, of {step - committed}")
        self.step[name] = committed
        self.lose(name, lost)
        self.devices.let_go(self.leases.pop(key))

    def damaged(self, key: Key, data: Event) -> None:
        """A lease did not find the last checkpoint whole, and went on from the one before."""
        name, step = self.held(key).key[0], whole(data["step"])
        need(step < self.step[name], "progress", f"{name} goes back to {step}")
        self.lose(name, self.step[name] - step)
        self.step[name] = step

    def quarantined(self, key: Key, data: Event) -> None:
        self.devices.quarantine(data["device"], key, self.held(key) if key[0] else None)
        self.unsure.add(key[0])

    def unquarantined(self, key: Key, data: Event) -> None:
        need(key not in self.leases, "quarantine", f"{key} is not released")
        self.devices.take_back(data["device"], key)

    def node_lost(self, key: Key, data: Event) -> None:
        self.devices.lose(data["node"])

    def node_back(self, key: Key, data: Event) -> None:
        self.devices.find(data["node"])

    def failed(self, key: Key, data: Event) -> None:
        self.live(key[0])
        need(data["why"], "over", f"{key[0]} failed for no reason")
        self.state[key[0]] = "failed"

    def finished(self, key: Key, data: Event) -> None:
        name, step, done = key[0], data["step"], self.step[key[0]]
        total = step if self.iterations is None else self.iterations[name]
        fine = step == done == total and self.epoch[name]
        need(fine, "over", f"{name} is finished at {step!r}, committed {done}, of {total} steps")
        self.close(name, "finished")

    def gave_up(self, key: Key, data: Event) -> None:
        need(data["why"], "over", f"{key[0]} is given up for no reason")
        self.close(key[0], "gave-up")

    def retried(self, key: Key, data: Event) -> None:
        """A person takes up again what was given up, and nothing else."""
        state = self.state.get(key[0])
        need(state == "gave-up", "over", f"{key[0]} is taken up again, but is {state}")
        self.state[key[0]] = "failed"

    def cancelled(self, key: Key, data: Event) -> None:
        self.state.setdefault(key[0], "arrived")  # perhaps before it arrived
        self.close(key[0], "cancelled")

    def close(self, name: str, how: str) -> None:
        """A job is over for good."""
        self.live(name)
        need(not self.own(name), "over", f"{name} is {how}, but holds {self.own(name)}")
        self.state[name] = how

    def live(self, name: str) -> None:
        """A job has arrived, and is not over."""
        state = self.state.get(name, "not there yet")
        need(state in ("arrived", "failed"), "arrival", f"{name!r} is {state}")

    def own(self, name: str) -> list[Key]:
        """Leases of a job that are not written off."""
        return [key for key, each in self.leases.items() if key[0] == name and not each.written_off]

    def held(self, key: Key) -> LoggedLease:
        need(key in self.leases, "lease", f"{key} holds nothing")
        return self.leases[key]

    def lose(self, name: str, steps: int) -> None:
        most = self.allowed_loss.get(name, steps)
        need(steps <= most, "loss", f"{name} lost {steps} steps, {most} are allowed")
        self.counts["steps_lost"] += steps
        self.counts["most_lost"] = max(self.counts["most_lost"], steps)

    def end(self) -> None:
        """Nothing is left."""
        for name in self.state if self.gpus is None else self.gpus:
            state = self.state.get(name, "not there yet")
            need(state in OVER, "end", f"{name} is {state}")
        for lease in self.leases.values():
            need(lease.written_off, "end", f"{lease.key} is never released")


KINDS = (
    "driver-started driver-ended note arrived decided granted partner released damaged quarantined "
    "unquarantined node-lost node-back failed finished gave-up retried cancelled"
)
HANDLERS = {kind: getattr(_Log, kind.replace("-", "_")) for kind in KINDS.split()}
HANDLERS |= dict.fromkeys(("running", "stop-asked"), _Log.of_a_lease)


# Ledgers.


def verify_ledger(path: Path, *, allowed_loss: Mapping[str, int] | None = None) -> dict[str, int]:
    """Check the log in a ledger.

    Parameters
    ----------
    allowed_loss : mapping of str to int, optional
        Most steps that one lease of a job may lose.

    Returns
    -------
    dict
        Counts, as of ``verify_log``.

    Raises
    ------
    LogRejected
        Naming the first event that breaks a rule.
    sqlite3.Error, ValueError, LookupError
        If it cannot be read, or is no ledger.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        db.execute("BEGIN")  # all from one moment, while a driver goes on writing
        rows = db.execute("SELECT seq, time_s, kind, job, epoch, data FROM events ORDER BY seq")
        names = ("seq", "time_s", "kind", "job", "epoch", "data")
        events = [dict(zip(names, (*row[:5], json.loads(row[5])), strict=True)) for row in rows]
        facts = {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM run")}
        jobs = list(db.execute("SELECT name, gpus, iterations FROM jobs"))
    return verify_log(
        events,
        facts["nodes"],
        gpus={name: gpus for name, gpus, _ in jobs},
        iterations={name: iterations for name, _, iterations in jobs},
        allowed_loss=allowed_loss,
        graphs=facts.get("graphs"),
        widths=facts.get("widths"),
        ended=bool(facts.get("ended")),
    )


def main() -> int:
    """Check the ledger named on the command line; exit code 0 if its log breaks no rule, else 1."""
    try:
        counts = verify_ledger(Path(sys.argv[1]))
    except (LookupError, OSError, sqlite3.Error, ValueError, LogRejected) as error:
        usage = "python -m shadowprice.hosts.log.execution_log STATE/run.db"
        print(f"rejected: {error} (usage: {usage})", file=sys.stderr)
        return 1
    print("no rule is broken: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
