"""Real training scripts: interrupted at any step, they compute what they would have, to the bit."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice
from shadowprice.hosts.job import PREEMPTED, Lease, LeaseError, last_checkpoint
from support.paths import ROOT

EXAMPLES = ROOT / "examples" / "jobs"
SECONDS = 60.0
HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")


def module_of(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MLP = module_of("mlp")


def files_of(checkpoints: Path) -> dict[str, bytes]:
    """The files of the last checkpoint; those of NumPy and torch carry no times."""
    folder, _, troubles = last_checkpoint(checkpoints)
    assert folder is not None
    assert troubles == []
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"
    }


def run_mlp(directory: Path, iterations: int, stop_after: int | None = None) -> int:
    training = MLP.Training(seed=3, hidden=8)
    try:
        with Lease(iterations=iterations, directory=directory) as lease:
            lease.restore(training.load)
            lease.checkpoints(training.save)
            begun = lease.step
            for _ in lease.steps():
                training.step()
                if stop_after is not None and lease.step - begun == stop_after:
                    lease.stop()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    directory = tmp_path_factory.mktemp("whole")
    assert run_mlp(directory, 40) == 0
    return files_of(directory)


@settings(max_examples=12)
@given(stops=st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_the_mlp_is_the_same_wherever_it_is_stopped(
    uninterrupted: dict[str, bytes], stops: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for stop in stops:
            run_mlp(Path(folder), 40, stop)
        assert run_mlp(Path(folder), 40) == 0
        assert files_of(Path(folder)) == uninterrupted


def test_the_mlp_learns(uninterrupted: dict[str, bytes]) -> None:
    losses = [float(line.split(b",")[1]) for line in uninterrupted["losses.csv"].split()[1:]]
    assert len(losses) == 40
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])


# ---------------------------------------------------------------- as processes


class Processes:
    """Scripts as the local host starts them, and an end to all of them."""

    def __init__(self, job: Path) -> None:
        self.job, self.epoch = job, 0
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, script: str, *arguments: str, iterations: int) -> Path:
        self.epoch += 1
        lease = self.job / "leases" / f"e{self.epoch}-r0"
        lease.mkdir(parents=True)
        (self.job / "fence").write_text(f"{self.epoch}\n")
        env = {
            "SHADOWPRICE_LEASE": str(lease),
            "SHADOWPRICE_JOB_DIRECTORY": str(self.job),
            "SHADOWPRICE_EPOCH": str(self.epoch),
            "SHADOWPRICE_ITERATIONS": str(iterations),
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
        }
        with open(lease / "output.log", "wb") as log:
            process = subprocess.Popen(
                [sys.executable, str(EXAMPLES / script), *arguments],
                env=os.environ | env,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return lease

    def wait(self) -> int:
        code = self.started[-1].wait(timeout=SECONDS)
        print((self.job / "leases" / f"e{self.epoch}-r0" / "output.log").read_text())
        return code

    def reach(self, lease: Path, condition: Callable[[dict[str, Any]], bool]) -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                report = json.loads((lease / "report.json").read_text())
            except FileNotFoundError:
                report = {"step": 0, "checkpoint_step": 0}
            if condition(report):
                return
            assert self.started[-1].poll() is None, "ended too early"
            time.sleep(0.01)
        pytest.fail("never got there")


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path / "jobs" / "a")
    yield made
    for process in made.started:
        process.kill()
        process.wait(timeout=SECONDS)


def test_signals_and_kills_change_nothing(processes: Processes, tmp_path: Path) -> None:
    """SIGTERM in the middle, then SIGKILL after a checkpoint, then to the end."""
    arguments = ["--hidden", "8", "--step-ms", "5", "--checkpoint-s", "0.1", "--seed", "5"]
    lease = processes.start("mlp.py", *arguments, iterations=150)
    processes.reach(lease, lambda report: report["step"] >= 10)
    processes.started[-1].send_signal(signal.SIGTERM)
    assert processes.wait() == PREEMPTED
    stopped = json.loads((lease / "report.json").read_text())
    assert stopped["state"] == "preempted"
    assert stopped["checkpoint_step"] == stopped["step"] > 0

    lease = processes.start("mlp.py", *arguments, iterations=150)
    processes.reach(lease, lambda report: report["checkpoint_step"] > stopped["step"])
    processes.started[-1].kill()
    assert processes.wait() == -signal.SIGKILL

    lease = processes.start("mlp.py", *arguments, iterations=150)
    assert processes.wait() == 0
    report = json.loads((lease / "report.json").read_text())
    assert report["begun_at"] > stopped["step"]
    assert report["state"] == "finished"

    training = MLP.Training(seed=5, hidden=8)
    for _ in range(150):
        training.step()
    (tmp_path / "whole").mkdir()
    training.save(tmp_path / "whole")
    expected = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    assert files_of(processes.job / "checkpoints") == expected


def test_a_script_that_knows_nothing_goes_on_by_itself(tmp_path: Path) -> None:
    def run(folder: Path, stop: bool) -> tuple[int, str]:
        with subprocess.Popen(
            [
                sys.executable,
                EXAMPLES / "unaware.py",
                "--checkpoints",
                folder,
                "--steps",
                "150",
                "--step-ms",
                "4",
            ],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            if stop:
                time.sleep(0.3)
                process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=SECONDS)
        return process.returncode, out

    assert run(tmp_path / "two", stop=True)[0] == 128 + signal.SIGTERM
    code, out = run(tmp_path / "two", stop=False)
    assert code == 0
    assert out.startswith("goes on at step ")
    assert run(tmp_path / "one", stop=False)[0] == 0
    states = [(tmp_path / name / "state.json").read_text() for name in ("one", "two")]
    assert states[0] == states[1]


SMALL = {
    "resnet": ["--width", "2", "--batch", "4"],
    "lstm": ["--width", "16", "--length", "8", "--words", "20"],
    "transformer": ["--width", "16", "--length", "8", "--words", "20"],
}


@pytest.fixture
def torch_example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Scripts in this process: importing torch once is what takes long."""
    import torch

    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    torch.set_num_threads(1)
    yield module_of
    torch.use_deterministic_algorithms(before[0])
    torch.set_num_threads(before[1])


@needs_torch
@pytest.mark.parametrize("script", sorted(SMALL))
def test_the_torch_scripts_are_the_same_when_stopped(
    script: str,
    torch_example: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    import torch

    module = torch_example(script)
    arguments = [script, "--iterations", "8", "--device", "cpu", *SMALL[script]]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.delenv("SHADOWPRICE_LEASE", raising=False)
    found = []
    for stops in ([], [3, 2]):
        folder = tmp_path / str(len(stops))
        folder.mkdir()
        monkeypatch.chdir(folder)
        for stop in [*stops, None]:
            with monkeypatch.context() as patch:
                if stop is not None:
                    patch.setattr("torch_training.agree_on_stop", stop_after(stop))
                assert exit_code(module.main) == (0 if stop is None else PREEMPTED)
        found.append(files_of(folder / "checkpoints"))
    whole, stopped = found
    assert whole["losses.csv"] == stopped["losses.csv"]
    assert len(whole["losses.csv"].split()) == 9
    for name in ("parameters.pt", "state.pt"):
        one, two = (loaded(files[name], tmp_path) for files in found)
        assert equal(one, two), name
    parameters = loaded(whole["parameters.pt"], tmp_path)
    assert all(torch.is_tensor(tensor) for tensor in parameters.values())


def stop_after(steps: int) -> Callable[[bool], bool]:
    """In place of the question whether any rank was asked to stop: yes, after so many steps."""
    asked = iter([False] * steps)
    return lambda flag: next(asked, True)


def exit_code(main: Callable[[], None]) -> int:
    try:
        main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def loaded(content: bytes, folder: Path) -> Any:
    import torch

    (folder / "file.pt").write_bytes(content)
    return torch.load(folder / "file.pt", weights_only=True)


def equal(one: Any, two: Any) -> bool:
    """Whether two states are the same, to the bit."""
    import torch

    if torch.is_tensor(one):
        return one.dtype == two.dtype and torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(equal(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(equal, one, two))
    return bool(one == two)


@needs_torch
def test_a_disk_that_is_full_is_an_os_error_with_torch_too(tmp_path: Path) -> None:
    import torch

    from shadowprice.hosts.callbacks.pytorch import Parts

    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    (tmp_path / "parameters.pt").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"parameters\.pt"):
        Parts(torch.nn.Linear(300, 300)).save(tmp_path)


@needs_torch
@pytest.mark.slow
def test_ranks_of_torch_stop_together(tmp_path: Path) -> None:
    """Two processes over gloo; the second is asked in its third step, both stop after it."""
    script = (
        "import sys, torch.distributed as d\n"
        "from shadowprice.hosts.job import Lease\n"
        "from shadowprice.hosts.callbacks.pytorch import agree_on_stop\n"
        "rank = int(sys.argv[1])\n"
        "d.init_process_group('gloo', init_method='file://' + sys.argv[2], rank=rank, world_size=2)\n"
        "with Lease(iterations=100, directory=sys.argv[3], rank=rank, agree=agree_on_stop) as lease:\n"
        "    for step in lease.steps():\n"
        "        if rank == 1 and step == 2: lease.stop()\n"
        "    print(lease.step)\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(rank), tmp_path / "meet", tmp_path / "c"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        for rank in range(2)
    ]
    try:
        ended = [process.communicate(timeout=SECONDS)[0].strip() for process in started]
    finally:
        for process in started:
            process.kill()
    assert ended == ["3", "3"]
    assert [process.returncode for process in started] == [PREEMPTED] * 2


# ---------------------------------------------------------------- callbacks, without their libraries


def test_the_callbacks_do_what_their_loops_expect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Over loops as documented by the libraries; these are not installed, so this is no proof."""
    callbacks = SimpleNamespace(Callback=object)
    monkeypatch.setitem(sys.modules, "lightning", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "lightning.pytorch", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "lightning.pytorch.callbacks", callbacks)
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(TrainerCallback=object))
    from shadowprice.hosts.callbacks import huggingface, lightning

    trainer = SimpleNamespace(
        should_stop=False, save_checkpoint=lambda path: path.write_text("state")
    )
    with Lease(iterations=5, directory=tmp_path / "lightning") as lease:
        callback = lightning.lease_callback(lease)
        assert callback.restored() is None
        callback.on_train_start(trainer, None)
        while not trainer.should_stop:
            callback.on_train_batch_end(trainer, None, None, None, 0)
        assert lease.step == 5
    with Lease(iterations=5, directory=tmp_path / "lightning") as lease:
        restored = lightning.lease_callback(lease).restored()
        lease.advance()
        assert restored.read_text() == "state"

    args, state = SimpleNamespace(output_dir=str(tmp_path)), SimpleNamespace(global_step=0)
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    with Lease(iterations=5, directory=tmp_path / "huggingface") as lease:
        callback = huggingface.lease_callback(lease)
        while not control.should_training_stop:
            state.global_step += 1
            callback.on_step_end(args, state, control)
        assert control.should_save
        (tmp_path / "checkpoint-5").mkdir()
        (tmp_path / "checkpoint-5" / "model.bin").write_text("state")
        callback.on_save(args, state, control)
    with Lease(iterations=6, directory=tmp_path / "huggingface") as lease:
        folder = huggingface.lease_callback(lease).restored()
        lease.advance()
        assert (Path(folder) / "model.bin").read_text() == "state"


# ---------------------------------------------------------------- files of jobs


@pytest.mark.parametrize("name", ["demo", "torch"])
def test_the_job_files_name_scripts_that_are_there(name: str) -> None:
    jobs = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())["jobs"]
    assert len({job["name"] for job in jobs}) == len(jobs) == 4
    for job in jobs:
        assert job["command"][0] == "{python}"
        assert Path(job["command"][1].replace("{directory}", str(EXAMPLES))).is_file()
        assert all(isinstance(argument, str) for argument in job["command"])
        assert job["iterations"] > 0
    if name == "demo":  # about a minute on two slots
        assert 60 <= sum(job["iterations"] / job["throughput"] for job in jobs) <= 120


def test_a_lease_error_is_no_error_of_the_package() -> None:
    """The file stands alone, so its errors do too."""
    assert not issubclass(LeaseError, shadowprice.ShadowpriceError)
