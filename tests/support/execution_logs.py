"""Logs as a driver would write them: a run in miniature, of which everything is drawn at random."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

NODES = [
    {"name": name, "devices": [{"index": k, "uuid": f"{name}-{k}"} for k in range(2)]}
    for name in ("n0", "n1", "n2")
]
NODE_OF = {d["uuid"]: node["name"] for node in NODES for d in node["devices"]}  # type: ignore[index]
ROUND_STEPS = 20
"""Most steps that a lease loses."""

Event = dict[str, Any]


@dataclass
class Held:
    job: str
    epoch: int
    devices: list[str]
    from_step: int
    partner: str | None = None
    gone_quarantined: bool = False


@dataclass
class Miniature:
    """A run; :meth:`whole` plays it to its end."""

    rng: random.Random
    events: list[Event] = field(default_factory=list)
    time_s: float = 0.0

    def __post_init__(self) -> None:
        rng = self.rng
        names = [f"j{k}" for k in range(rng.randint(1, 5))]
        self.gpus = {name: rng.choice((1, 1, 2)) for name in names}
        self.iterations = {name: rng.randint(1, 60) for name in names}
        self.step = dict.fromkeys(names, 0)
        self.epoch = dict.fromkeys(names, 0)
        self.expected, self.waiting = list(names), list[str]()
        self.backing_off: list[str] = []
        self.held: dict[str, Held] = {}
        self.quarantined: list[Held] = []
        self.lost: set[str] = set()

    def event(self, kind: str, job: str = "", epoch: int = 0, **data: Any) -> None:
        self.time_s += self.rng.choice((0.0, 0.25, 1.0))
        self.events.append(
            {
                "seq": len(self.events) + 1,
                "time_s": self.time_s,
                "kind": kind,
                "job": job,
                "epoch": epoch,
                "data": data,
            }
        )

    def whole(self, turns: int) -> list[Event]:
        """All events of a run that is interrupted in so many turns, and then ends."""
        self.event("note", text="no rate is known")
        self.event("driver-started", pid=1, resumed=False)
        for _ in range(turns):
            self.turn(wild=True)
        for node in sorted(self.lost):
            self.event("node-back", node=node)
        self.lost = set()
        while self.expected or self.waiting or self.backing_off or self.held:
            self.turn(wild=False)
            self.confirm(0.3)  # what is left in quarantine may be all that a job waits for
        self.confirm(1.0)
        self.event("driver-ended")
        return self.events

    def turn(self, wild: bool) -> None:
        rng = self.rng
        if wild and rng.random() < 0.2:
            if rng.random() < 0.5:
                self.event("driver-ended")
            self.event("driver-started", pid=rng.randint(2, 99), resumed=True)
        for lease in list(self.held.values()):
            if not wild or rng.random() < 0.3:
                self.end(lease, rng.choice(("finish", "fail", "leave")) if wild else "finish")
        if wild:
            self.break_nodes()
            self.confirm(0.3)
            self.cancel()
        for name in [n for n in self.expected if not wild or rng.random() < 0.5]:
            self.event("arrived", name)
            self.expected.remove(name)
            self.waiting.append(name)
        for name in [n for n in self.backing_off if not wild or rng.random() < 0.5]:
            self.backing_off.remove(name)
            self.waiting.append(name)
        self.decide(wild)

    def decide(self, wild: bool) -> None:
        rng = self.rng
        stops = [n for n in self.held if wild and rng.random() < 0.2]
        # What a decision starts beside others, shares with one that was there or starts with it.
        chosen: dict[str, tuple[list[str], str | None]] = {}
        full = {d for lease in self.held.values() if lease.job not in stops for d in lease.devices}
        full |= {d for lease in self.quarantined for d in lease.devices}
        full |= {d for d in NODE_OF if NODE_OF[d] in self.lost}
        freed = {d for n in stops for d in self.held[n].devices}
        free = [d for d in NODE_OF if d not in full | freed]
        for name in self.waiting:
            gang = self.gpus[name]
            singles = {
                n: lease
                for n, lease in self.held.items()
                if n not in stops and lease.partner is None
            }
            kept = {d for lease in self.quarantined for d in lease.devices}
            hosts = [
                n
                for n, lease in singles.items()
                if len(lease.devices) == gang
                and not self.taken(n, chosen)
                and not kept & set(lease.devices)
            ]
            if hosts and rng.random() < 0.4:
                chosen[name] = (list(self.held[hosts[0]].devices), hosts[0])
            elif len(free) >= gang and (not wild or rng.random() < 0.7):
                chosen[name] = (free[:gang], None)
                free = free[gang:]
        waiting = {n: "waits" for n in (*self.waiting, *stops) if n not in chosen}
        self.event(
            "decided", starts={n: [] for n in chosen}, stops=stops, waiting=waiting, cpu_s=0.01
        )
        for name in stops:
            self.event("stop-asked", name, self.held[name].epoch, why="the policy stops it")
        for name in stops:
            self.end(self.held[name], rng.choice(("leave", "leave", "lose")))
        for name, (devices, partner) in chosen.items():
            self.waiting.remove(name)
            self.grant(name, devices, partner)

    def taken(self, name: str, chosen: dict[str, tuple[list[str], str | None]]) -> bool:
        return any(partner == name for _, partner in chosen.values())

    def grant(self, name: str, devices: list[str], partner: str | None) -> None:
        self.epoch[name] += self.rng.randint(1, 2)
        lease = Held(name, self.epoch[name], devices, self.step[name], partner)
        self.held[name] = lease
        self.event(
            "granted",
            name,
            lease.epoch,
            devices=devices,
            node_of={d: NODE_OF[d] for d in devices},
            partner=partner,
            from_step=lease.from_step,
            ranks=len({NODE_OF[d] for d in devices}),
        )
        if partner is not None:
            self.held[partner].partner = name
            self.event("partner", partner, self.held[partner].epoch, partner=name)
        if self.rng.random() < 0.8:
            self.event("running", name, lease.epoch, after_s=0.5)

    def end(self, lease: Held, how: str) -> None:
        """A lease ends: with all steps, with a failure, by leaving, or out of sight."""
        rng, name = self.rng, lease.job
        del self.held[name]
        if how == "lose":
            for device in lease.devices:
                self.event("quarantined", name, lease.epoch, device=device, why="may be left")
            self.step[name] = rng.randint(self.step[name], self.iterations[name] - 1)
            self.quarantined.append(lease)
            self.waiting.append(name)
        elif how == "finish":
            self.step[name] = self.iterations[name]
            self.release(lease, 0, 0)
            self.event("finished", name, lease.epoch, step=self.step[name], at_s=self.time_s)
        else:
            if self.step[name] and rng.random() < 0.3:
                # It found its checkpoint damaged, and commits nothing later than that.
                step = rng.randint(max(self.step[name] - ROUND_STEPS, 0), self.step[name] - 1)
                self.event("damaged", name, lease.epoch, step=step)
                self.step[name] = step
            else:
                self.step[name] = rng.randint(self.step[name], self.iterations[name] - 1)
            self.release(lease, 75 if how == "leave" else 1, rng.randint(0, ROUND_STEPS))
            if how == "leave":
                self.waiting.append(name)
            elif rng.random() < 0.8:
                self.event("failed", name, lease.epoch, why="exited 1", tries=1, back_off_s=1.0)
                self.backing_off.append(name)
            else:
                self.event("gave-up", name, lease.epoch, why="exited 1", tries=4)
                if rng.random() < 0.5:
                    self.event("retried", name, lease.epoch, step=self.step[name])
                    self.backing_off.append(name)
        if lease.partner in self.held:
            self.held[lease.partner].partner = None
            self.event("partner", lease.partner, self.held[lease.partner].epoch, partner=None)

    def release(self, lease: Held, code: int, lost: int) -> None:
        committed = self.step[lease.job]
        self.event(
            "released",
            lease.job,
            lease.epoch,
            devices=lease.devices,
            code=code,
            reason="exited",
            forced=False,
            step=committed + lost,
            checkpoint_step=committed,
            lost_steps=lost,
            detail="",
        )

    def break_nodes(self) -> None:
        for node in ("n0", "n1", "n2"):
            if node in self.lost and self.rng.random() < 0.4:
                self.lost.discard(node)
                self.event("node-back", node=node)
            elif node not in self.lost and self.rng.random() < 0.1:
                for lease in list(self.held.values()):
                    if any(NODE_OF[d] == node for d in lease.devices):
                        self.end(lease, "lose")
                self.lost.add(node)
                self.event("node-lost", node=node)

    def confirm(self, chance: float) -> None:
        for lease in list(self.quarantined):
            if self.rng.random() < chance:
                self.quarantined.remove(lease)
                self.release(lease, -9, 0)
                for device in lease.devices:
                    self.event("unquarantined", lease.job, lease.epoch, device=device)

    def cancel(self) -> None:
        if self.waiting and self.rng.random() < 0.05:
            name = self.waiting.pop()
            self.event("cancelled", name, self.epoch[name])
