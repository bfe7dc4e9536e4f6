"""Ledgers as a driver would leave them, written by hand: six jobs on two nodes of two GPUs."""

from __future__ import annotations

from pathlib import Path

from shadowprice.hosts.live.ledger import RunLedger

ROUND_S = 60.0
NAMES = ("resnet", "lstm", "transformer", "crashing", "unlucky", "unwanted")
GPUS = [f"GPU-n{node}-{index}" for node in (0, 1) for index in (0, 1)]
NODE_OF = {uuid: uuid[4:6] for uuid in GPUS}


class Script:
    """Writes events and keeps the table of jobs in step with them."""

    def __init__(self, state: Path, *, names: tuple[str, ...] = NAMES) -> None:
        state.mkdir(mode=0o700, exist_ok=True)
        self.ledger = RunLedger.create(state / "run.db")
        self.names = names
        nodes = [
            {
                "name": f"n{node}",
                "gpu_type": "v100" if node == 0 else "k80",
                "cpus": 8.0,
                "memory_gb": 64.0,
                "devices": [{"index": i, "uuid": f"GPU-n{node}-{i}"} for i in (0, 1)],
            }
            for node in (0, 1)
        ]
        facts = {
            "run_id": "r0",
            "policy": "gavel:las",
            "hosts": "local:2",
            "round_s": ROUND_S,
            "began_unix": 1_800_000_000.0,
            "nodes": nodes,
            "ended": False,
            "jobs_sha256": "0" * 64,
        }
        for key, value in facts.items():
            self.ledger.set(key, value)
        for position, name in enumerate(names):
            self.ledger.add_job(
                name,
                position=position,
                iterations=1000,
                gpus=2 if name == "transformer" else 1,
                arrival_s=float(10 * position),
                predicted_rate=10.0,
                model=f"model-{position}",
            )
        self.ledger.event(0.0, "driver-started", pid=1, resumed=False)

    def arrive(self, job: str, time_s: float) -> None:
        self.ledger.event(time_s, "arrived", job)
        self.ledger.update_job(job, state="waiting", why="no GPU is free")

    def grant(
        self,
        job: str,
        epoch: int,
        time_s: float,
        devices: list[str],
        *,
        step: int = 0,
        after_s: float = 3.0,
        partner: str | None = None,
    ) -> None:
        self.ledger.event(
            time_s,
            "granted",
            job,
            epoch,
            devices=devices,
            partner=partner,
            from_step=step,
            node_of={uuid: NODE_OF[uuid] for uuid in devices},
            ranks=1,
        )
        self.ledger.event(time_s + after_s, "running", job, epoch, after_s=after_s)
        self.ledger.update_job(job, state="running", epoch=epoch, why="", measured_rate=9.0)
        if epoch == 1:
            self.ledger.update_job(job, first_start_s=time_s)

    def release(
        self,
        job: str,
        epoch: int,
        time_s: float,
        devices: list[str],
        *,
        step: int,
        code: int = 75,
        reason: str = "stopped",
        lost: int = 0,
        detail: str = "",
    ) -> None:
        self.ledger.event(
            time_s,
            "released",
            job,
            epoch,
            devices=devices,
            code=code,
            reason=reason,
            forced=False,
            step=step,
            checkpoint_step=step - lost,
            lost_steps=lost,
            detail=detail,
        )
        self.ledger.update_job(job, step=step - lost, state="waiting")

    def finish(self, job: str, time_s: float) -> None:
        self.ledger.event(time_s, "finished", job, 0, step=1000)
        self.ledger.update_job(job, state="finished", step=1000, finish_s=time_s)

    def measure(self, job: str, epoch: int, times_s: list[float], rate: float) -> None:
        for k, time_s in enumerate(times_s):
            self.ledger.sample(
                time_s=time_s,
                job=job,
                epoch=epoch,
                step=10 * k,
                rate=rate * (1 + 0.02 * (k % 3)),
                co_runner="",
                gpu_type="v100",
                gpus=1,
                nodes=1,
            )


def written(state: Path, *, ended: bool = True) -> Path:
    """A run with packing, a migration, a crash and its retry, a lost node and a cancelled job."""
    script = Script(state)
    resnet, lstm, transformer, crashing, unlucky, unwanted = NAMES
    log = script.ledger
    for position, name in enumerate(NAMES):
        script.arrive(name, 10.0 * position)
    log.event(0.0, "decided", starts={resnet: GPUS[:1]}, stops=[], waiting={}, cpu_s=0.01)
    script.grant(resnet, 1, 0.0, GPUS[:1])
    script.grant(lstm, 1, 60.0, GPUS[:1], partner=resnet, after_s=2.0)
    script.grant(crashing, 1, 60.0, GPUS[1:2])
    script.grant(unlucky, 1, 60.0, GPUS[2:3], after_s=5.0)
    detail = "Traceback (most recent call last):\n  ...\nValueError: loss is nan"
    script.release(
        crashing, 1, 90.0, GPUS[1:2], step=300, code=1, reason="exited", lost=100, detail=detail
    )
    log.event(
        90.0,
        "failed",
        crashing,
        1,
        why="exit code 1: ValueError: loss is nan",
        tries=1,
        back_off_s=30.0,
    )
    log.update_job(crashing, state="backing-off", tries=1, why="crashed, again in 30 s")
    script.grant(crashing, 2, 120.0, GPUS[1:2], step=200)
    log.event(150.0, "node-lost", node="n1")
    log.event(150.0, "failed", unlucky, 1, why="node n1 does not answer", tries=1, back_off_s=0.0)
    log.event(180.0, "stop-asked", resnet, 1, why="migrates")
    script.release(resnet, 1, 182.0, GPUS[:1], step=700)
    script.grant(unlucky, 2, 182.5, GPUS[:1], step=400, partner=lstm)
    log.event(200.0, "cancelled", unwanted)
    log.update_job(unwanted, state="cancelled", why="cancelled by a person", cancel=1)
    log.event(240.0, "node-back", node="n1")
    script.release(unlucky, 1, 241.0, GPUS[2:3], step=500, reason="expired", lost=100)
    log.update_job(unlucky, state="running", epoch=2, why="")
    script.grant(resnet, 2, 245.0, GPUS[2:3], step=700)
    for job, epoch, devices, at_s in (
        (lstm, 1, GPUS[:1], 260.0),
        (crashing, 2, GPUS[1:2], 265.0),
        (resnet, 2, GPUS[2:3], 290.0),
        (unlucky, 2, GPUS[:1], 299.0),
    ):
        script.release(job, epoch, at_s, devices, step=1000, code=0, reason="exited")
        script.finish(job, at_s)
    script.grant(transformer, 1, 300.0, GPUS[:2], after_s=8.0)
    script.measure(resnet, 1, [30.0, 60.0, 120.0], 10.5)
    script.measure(resnet, 2, [260.0, 280.0], 6.0)
    script.measure(crashing, 2, [150.0, 200.0, 250.0], 9.0)
    script.measure(transformer, 1, [330.0, 360.0, 420.0, 480.0], 4.0)
    log.update_job(transformer, step=640)
    if ended:
        script.release(transformer, 1, 500.0, GPUS[:2], step=1000, code=0, reason="exited")
        script.finish(transformer, 500.0)
        log.event(501.0, "driver-ended")
        log.set("ended", True)
    log.close()
    return state
