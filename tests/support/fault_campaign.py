"""A run of real jobs on this machine, with faults thrown at it; what must hold all the same."""

from __future__ import annotations

import contextlib
import importlib.util
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.errors import ShadowpriceError
from shadowprice.hosts.job import last_checkpoint
from shadowprice.hosts.lease_files import read_report
from shadowprice.hosts.live.checkpoints import last_commit
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.log.execution_log import verify_ledger
from support.cluster_faults import CLUSTER_KINDS
from support.driver_process import Driver, left_over, write_jobs
from support.fault_kinds import KINDS
from support.fault_scene import Scene
from support.paths import ROOT

HERE = Path(__file__).resolve().parent
FULL_S = {"full disk": 2.5, "full folder of checkpoints": 1.5}
"""For how long a fault keeps a job from saving, at most [s]."""
GONE_S = 5.0
"""Until what Slurm started is gone, after the last lease [s]."""


@dataclass(frozen=True)
class Campaign:
    """What is run and what is done to it.

    Parameters
    ----------
    step_ms
        A step takes at least so long.
    every_s
        Mean time between faults.
    mounted
        Whether to run in a small file system of its own, which can be filled; for root.
    hosts
        Where, empty for slots of this machine.
    """

    jobs: int
    faults: int
    seed: int
    iterations: int
    step_ms: float = 20.0
    slots: int = 4
    round_s: float = 2.0
    every_s: float = 2.0
    policy: str = "las:quantum_s=1.5"
    mounted: bool = False
    kinds: tuple[str, ...] = tuple(KINDS)
    hang_s: float = 5.0
    grace_s: float = 3.0
    ttl_s: float = 8.0
    hosts: str = ""

    @property
    def limits(self) -> dict[str, float]:
        """Short enough that every time-out is met."""
        return {
            **{"poll_s": 0.05, "ttl_s": self.ttl_s, "grace_s": self.grace_s, "confirm_s": 1.0},
            **{
                "hang_s": self.hang_s,
                "start_s": 60.0,
                "retries": 1000,
                "back_off_s": 0.2,
                "back_off_max_s": 1.0,
            },
        }

    def job(self, k: int) -> dict[str, object]:
        """Job ``k``, a gang of one or two, of 0.6 to 1.4 times the iterations."""
        command = ["{python}", "faulty_training.py", "--seed", str(k), "--hidden", str(8 + 4 * k)]
        return {
            "name": f"job-{k}",
            "command": [*command, "--step-ms", str(self.step_ms)],
            "gpus": 2 if k % 4 == 3 else 1,
            "iterations": self.iterations_of(k),
            "arrival_s": float(k // self.slots),
            "throughput": 1e3 / self.step_ms,
        }

    def iterations_of(self, k: int) -> int:
        return round(self.iterations * (0.6 + 0.8 * random.Random(k).random()))

    @property
    def allowed_loss(self) -> dict[str, int]:
        """Steps that a job can do in a round, and while its disk was full."""
        seconds = self.round_s + max(
            [FULL_S[kind] for kind in self.kinds if kind in FULL_S] or [0.0]
        )
        return {f"job-{k}": round(1e3 * seconds / self.step_ms) for k in range(self.jobs)}


@dataclass(frozen=True)
class Strike:
    """A fault that was thrown: when, since the run began [s], which one, and at what."""

    at_s: float
    kind: str
    where: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.where}, {self.at_s:.1f} s)"


@dataclass
class Outcome:
    """What happened."""

    strikes: list[Strike] = field(default_factory=list)
    wall_s: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    recoveries: Counter[str] = field(default_factory=Counter)
    stale: int = 0
    fenced: int = 0
    left: int = 0
    double: int = 0
    late: int = 0
    same: int = 0
    unthrown: tuple[str, ...] = ()

    @property
    def faults(self) -> Counter[str]:
        """How often each was thrown."""
        return Counter(strike.kind for strike in self.strikes)


def run_campaign(
    campaign: Campaign,
    folder: Path,
    within_s: float,
    cluster: Any = None,
    outcome: Outcome | None = None,
) -> Outcome:
    """Run, throw faults, and check everything that is promised.

    Parameters
    ----------
    cluster
        The Ray or Slurm cluster of its hosts.
    outcome
        Filled meanwhile, so that it tells how far a run came that breaks a promise.

    Raises
    ------
    AssertionError
        If anything promised does not hold.
    """
    outcome = Outcome() if outcome is None else outcome
    with _state_directory(campaign, folder) as state:
        _copy_programs(folder)
        jobs = write_jobs(folder / "jobs.yaml", [campaign.job(k) for k in range(campaign.jobs)])
        driver = Driver(
            folder,
            jobs,
            campaign.policy,
            hosts=campaign.hosts or f"local:{campaign.slots}",
            round_s=campaign.round_s,
            limits=campaign.limits,
            state=state,
        )
        scene = Scene(
            driver,
            random.Random(campaign.seed),
            1.25 * campaign.ttl_s,
            campaign.mounted,
            cluster,
        )
        began = time.monotonic()
        try:
            driver.start()
            _throw(campaign, scene, outcome, began + within_s)
            outcome.wall_s = time.monotonic() - began
            outcome.stale, outcome.fenced = scene.stale, scene.fenced
            check(campaign, folder, state, outcome)
        finally:
            driver.clean_up()
    return outcome


def _throw(campaign: Campaign, scene: Scene, outcome: Outcome, until: float) -> None:
    """Faults at random times, until all are thrown and all jobs are over.

    On a fast machine they come sooner than drawn: one for each part of the work that is committed,
    so that none is left when the jobs are over.
    """
    draw = random.Random(f"times {campaign.seed}")
    known = KINDS | CLUSTER_KINDS
    kinds = [kind for kind in campaign.kinds if campaign.mounted or kind != "full disk"]
    weights = [known[kind][1] for kind in kinds]
    # Every kind, in the end: the first ones in turn, the others at random.
    waiting = draw.sample(kinds, len(kinds))[: campaign.faults]
    waiting += draw.choices(kinds, weights, k=campaign.faults - len(waiting))
    draw.shuffle(waiting)
    began = time.monotonic()
    while not scene.targets():
        assert time.monotonic() < until, f"too slow: no job began\n{_tail(scene)}"
        scene.tend()
        _look_after_driver(scene)
        time.sleep(0.02)
    next_s = time.monotonic() + campaign.every_s
    while waiting or scene.later or not scene.driver.finished():
        assert time.monotonic() < until, f"too slow: {len(waiting)} faults left\n{_tail(scene)}"
        scene.tend()
        _look_after_driver(scene)
        over = scene.driver.finished()
        if over and waiting:
            outcome.unthrown = tuple(waiting)
            waiting.clear()
        due = 0.8 * (campaign.faults - len(waiting)) / max(campaign.faults, 1)
        if waiting and (time.monotonic() >= next_s or share_done(campaign, scene.state) > due):
            # One for which there is no target now may have one later.
            for k, kind in enumerate(waiting):
                if where := known[kind][0](scene):
                    del waiting[k]
                    outcome.strikes.append(Strike(time.monotonic() - began, kind, where))
                    break
            next_s = time.monotonic() + draw.expovariate(1.0 / campaign.every_s)
        time.sleep(0.02)


def share_done(campaign: Campaign, state: Path) -> float:
    """Part of the steps of all jobs that is committed."""
    done = (last_commit(state / "jobs" / f"job-{k}")[0] for k in range(campaign.jobs))
    return sum(done) / sum(map(campaign.iterations_of, range(campaign.jobs)))


def _look_after_driver(scene: Scene) -> None:
    """It may leave when all is over, or its disk is full, its host away, or all nodes closed: it begins again."""
    process = scene.driver.process
    code = None if process is None else process.poll()
    if code in (None, 0, -9):
        return
    last = scene.driver.last_output().rstrip().rpartition("\n")[2]
    refused = last.startswith("refused: HostError") and scene.may_refuse(last)
    assert refused, f"the driver left with {code}\n{_tail(scene)}"
    scene.driver.process = None

    def again() -> bool:
        if not scene.driver.runs():
            scene.driver.start()
        return True

    blocked_until = max(scene.full_until, scene.away_until)
    scene.after(min(max(blocked_until - time.monotonic() - 2.0, 0.5), 3.0), again)


def _tail(scene: Scene) -> str:
    """What the driver said, and which commands live."""
    living = [
        f"{target.directory.parent.parent.name} epoch {target.epoch}: {read_report(target.directory)}"
        for target in scene.targets()
    ]
    states = [f"driver {'runs' if scene.driver.runs() else 'is gone'}"]
    with contextlib.suppress(ShadowpriceError):
        ledger = RunLedger.open(scene.state / "run.db", readonly=True)
        states += [f"{row['name']} {row['state']} {row['why']}" for row in ledger.jobs()]
        states += [str(event)[:200] for event in ledger.events()[-8:]]
        ledger.close()
    told = "" if scene.cluster is None else scene.cluster.told()
    return "\n".join([scene.driver.last_output()[-1000:], *states, *living, told])


def check(campaign: Campaign, folder: Path, state: Path, outcome: Outcome) -> None:
    """Everything that is promised."""
    until = time.monotonic() + GONE_S
    while left_over(state) and time.monotonic() < until:
        time.sleep(0.05)
    outcome.left = len(left_over(state))
    outcome.double = len(list(folder.glob("double-*")))
    outcome.late = len(list(folder.glob("late-*")))
    assert outcome.left == 0
    assert outcome.double == 0, "two processes held a device at the same time"
    assert outcome.late == 0, "a worker committed after the fence had shown a later epoch"
    ledger = RunLedger.open(state / "run.db", readonly=True)
    states = {row["name"]: row["state"] for row in ledger.jobs()}
    events = ledger.events()
    ledger.close()
    assert set(states.values()) == {"finished"}, states
    outcome.recoveries.update(
        event["data"]["reason"] + (" by force" if event["data"]["forced"] else "")
        for event in events
        if event["kind"] == "released"
    )
    for kind in ("failed", "quarantined", "damaged"):
        outcome.recoveries[kind] = sum(event["kind"] == kind for event in events)
    outcome.counts = verify_ledger(state / "run.db", allowed_loss=campaign.allowed_loss)
    training = load_module(folder / "mlp.py")
    for k in range(campaign.jobs):
        same_as_undisturbed(campaign, state / "jobs" / f"job-{k}", training, k)
        outcome.same += 1


def same_as_undisturbed(campaign: Campaign, job: Path, training: Any, k: int) -> None:
    """Bit for bit: parameters, momentum, random numbers, and the loss of every step.

    Parameters
    ----------
    training
        The module of the example.
    """
    undisturbed = training.Training(k, 8 + 4 * k)
    for _ in range(campaign.iterations_of(k)):
        undisturbed.step()
    folder, manifest, _ = last_checkpoint(job / "checkpoints")
    assert folder is not None
    assert manifest["step"] == campaign.iterations_of(k)
    found = training.Training(k, 8 + 4 * k)
    found.load(folder)
    for name, array in undisturbed.parameters.items():
        assert np.array_equal(found.parameters[name], array), (job, name)
        assert np.array_equal(found.momentum[name], undisturbed.momentum[name]), (job, name)
    assert found.losses == undisturbed.losses
    assert found.random.bit_generator.state == undisturbed.random.bit_generator.state


def _copy_programs(folder: Path) -> None:
    """The example as a user has it who copied job.py: importing the package takes seconds."""
    shutil.copy(ROOT / "shadowprice" / "hosts" / "job.py", folder)
    shutil.copy(HERE / "faulty_training.py", folder)
    text = (ROOT / "examples" / "jobs" / "mlp.py").read_text()
    ours, copied = "from shadowprice.hosts.job import", "from job import"
    assert ours in text
    (folder / "mlp.py").write_text(text.replace(ours, copied))


def load_module(path: Path) -> Any:
    """A module by its path, beside which its own imports are found."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


@contextmanager
def _state_directory(campaign: Campaign, folder: Path) -> Iterator[Path]:
    """The state directory; a small file system in memory if it is to be filled."""
    state = folder / "state"
    if not campaign.mounted:
        yield state
        return
    state.mkdir(mode=0o700)
    size = "size=96m,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(state)], check=True)
    try:
        yield state
    finally:
        if sys.exc_info()[0] is not None:
            shutil.copytree(state, folder / "kept", symlinks=True, dirs_exist_ok=True)
        subprocess.run(["umount", "--lazy", str(state)], check=True)
