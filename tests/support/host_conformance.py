"""What every host must do, as one class of tests.

A test module of a host derives a class from ``HostConformance`` and gives the fixture ``case``, a
:class:`HostCase` with an open host, closed and cleaned up by :func:`HostCase.clean_up`. Commands
are real processes on this machine, so hosts are given with all of their nodes on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shadowprice.hosts.lease_files import supervisor_lives
from shadowprice.hosts.protocol import (
    Device,
    DiscoveredNode,
    Exit,
    Host,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)

IGNORES_TERM = (
    "import signal,time; signal.signal(15, signal.SIG_IGN); print('up',flush=True); time.sleep(600)"
)
SAVES = (
    "import os,signal,time\n"
    "signal.signal(15, lambda *_: (os.write(1, b'saved\\n'), os._exit(75)))\n"
    "os.write(1, b'up\\n')\n"
    "time.sleep(600)"
)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


def shell(code: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", code)


def _any_environment(environment: Mapping[str, str], order: LaunchSpec) -> None:
    """Nothing is expected of a host's own variables."""


@dataclass
class HostCase:
    """An open host and what its tests need.

    Parameters
    ----------
    state
        Its state directory.
    reopen
        Drops the host as if its driver had been killed, and opens another on the same state.
    start_s
        Longest time from an order to its command [s].
    end_s
        Longest time from a command's last process to the phase ``ENDED`` [s].
    ttl_s
        Time to live in the test of renewals [s]; a renewal must reach its supervisor in less.
    many
        Leases started at once; no more than two on a device.
    check_environment
        Asserts what the host itself should have put into a command's environment.
    """

    host: Host
    state: Path
    reopen: Callable[[Host], Host]
    start_s: float = 10.0
    end_s: float = 10.0
    ttl_s: float = 2.0
    many: int = 16
    check_environment: Callable[[Mapping[str, str], LaunchSpec], None] = _any_environment
    nodes: tuple[DiscoveredNode, ...] = ()
    orders: list[LaunchSpec] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes = self.host.discover()

    @property
    def devices(self) -> list[Device]:
        return [device for node in self.nodes for device in node.devices]

    def order(
        self,
        argv: Iterable[str],
        *,
        job: str = "job",
        epoch: int | None = None,
        rank: int = 0,
        devices: Sequence[Device] = (),
        shared: bool = False,
        ttl_s: float = 60.0,
        grace_s: float = 10.0,
        env: Mapping[str, str] | None = None,
        log_bytes: int = 1 << 16,
        health_check: tuple[str, ...] = (),
    ) -> LaunchSpec:
        key = LeaseKey(job, len(self.orders) + 1 if epoch is None else epoch, rank)
        made = LaunchSpec(
            key,
            tuple(devices) or (self.devices[0],),
            shared,
            tuple(argv),
            dict(env or {}),
            self.state / "jobs" / job / "leases" / key.folder,
            self.state,
            ttl_s,
            grace_s,
            log_bytes,
            health_check,
        )
        self.orders.append(made)
        return made

    def start(self, argv: Iterable[str], **settings: object) -> LaunchSpec:
        order = self.order(argv, **settings)  # type: ignore[arg-type]
        self.host.start([order])
        return order

    def seen(self, order: LaunchSpec) -> RankStatus:
        return self.host.poll([order.key])[order.key]

    def wait(self, order: LaunchSpec, phase: Phase, within_s: float | None = None) -> RankStatus:
        """Poll until a lease is in a phase; it must never go back to an earlier one."""
        limit = within_s or self.start_s + (self.end_s if phase is Phase.ENDED else 0.0)
        until = time.monotonic() + limit
        stages = [Phase.STARTING, Phase.RUNNING, Phase.ENDED]
        before = Phase.STARTING
        while True:
            seen = self.seen(order)
            assert seen.phase is not Phase.LOST
            assert stages.index(seen.phase) >= stages.index(before), (before, seen)
            before = seen.phase
            if before is phase:
                return seen
            assert before is not Phase.ENDED, f"ended: {seen}"
            assert time.monotonic() < until, f"{order.key} is {before} after {limit:g} s"
            time.sleep(0.005)

    def ended(self, order: LaunchSpec, within_s: float | None = None) -> Exit:
        found = self.wait(order, Phase.ENDED, within_s).exit
        assert found is not None
        assert not living(str(order.directory)), "a process is left"
        return found

    def wait_output(self, order: LaunchSpec, text: str) -> None:
        """Wait until the command has printed something."""
        until = time.monotonic() + self.start_s
        while text not in output(order):
            assert time.monotonic() < until, f"{text!r} not in {output(order)!r}"
            time.sleep(0.005)

    def wait_living(self, order: LaunchSpec, count: int) -> None:
        """Wait until a lease has that many processes: those that are just made bear no tag yet."""
        until = time.monotonic() + self.start_s
        while len(living(str(order.directory))) < count:
            assert time.monotonic() < until
            time.sleep(0.005)

    def clean_up(self) -> None:
        """End everything that was started, by the host and then by hand."""
        keys = [order.key for order in self.orders]
        with contextlib.suppress(Exception):
            self.host.stop(keys, 0.0, "the test is over")
            until = time.monotonic() + self.end_s
            while any(seen.phase is not Phase.ENDED for seen in self.host.poll(keys).values()):
                if time.monotonic() > until:
                    break
                time.sleep(0.01)
        for order in self.orders:
            for pid in living(str(order.directory)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.host.close()


def output(order: LaunchSpec) -> str:
    try:
        return (order.directory / "output.log").read_text(errors="replace")
    except OSError:
        return ""


def record(order: LaunchSpec) -> dict[str, int]:
    found: dict[str, int] = json.loads((order.directory / "supervisor.json").read_text())
    return found


def living(directory: str) -> list[int]:
    """Processes, zombies aside, that bear a lease's tag in their environment."""
    tag = os.fsencode(f"SHADOWPRICE_LEASE={directory}")
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
            state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if tag in environment.split(b"\0") and state not in b"ZX":
            found.append(int(name))
    return found


class HostConformance:
    """Derive from this; give the fixture ``case``."""

    def test_discovery_is_stable_and_names_are_unique(self, case: HostCase) -> None:
        again = case.host.discover()
        assert again == case.nodes == case.host.discover()
        uuids = [device.uuid for device in case.devices]
        assert len(set(uuids)) == len(uuids) >= 2
        assert len({node.name for node in again}) == len(again)
        for node in again:
            assert [device.index for device in node.devices] == list(range(len(node.devices)))
            assert {device.node for device in node.devices} == {node.name}
        assert isinstance(case.host, Host)
        assert case.host.lost_nodes() == frozenset()

    def test_a_command_starts_runs_and_ends(self, case: HostCase) -> None:
        order = case.start(shell("echo out; echo err >&2; read line < go; exit 7"))
        os.mkfifo(case.state / "go")
        case.wait(order, Phase.RUNNING)
        case.wait_output(order, "err")
        (case.state / "go").write_text("on\n")
        found = case.ended(order)
        assert (found.code, found.reason, found.forced) == (7, "exited", False)
        assert output(order) == "out\nerr\n"
        assert "err" in found.detail

    def test_a_clean_end_has_no_detail(self, case: HostCase) -> None:
        assert case.ended(case.start(["true"])) == Exit(0, "exited")

    def test_a_command_sees_its_environment(self, case: HostCase) -> None:
        devices = case.nodes[0].devices[:2]
        env = {"WORD": "two words", "PATH": os.environ["PATH"], "EMPTY": ""}
        order = case.start(
            python("import os,json; print(json.dumps([dict(os.environ), os.getcwd()]))"),
            env=env,
            devices=devices,
        )
        assert case.ended(order).code == 0
        environment, folder = json.loads(output(order))
        assert env.items() <= environment.items()
        assert environment["SHADOWPRICE_LEASE"] == str(order.directory)
        assert os.path.realpath(folder) == os.path.realpath(case.state)
        case.check_environment(environment, order)

    def test_a_health_check_runs_on_the_node_before_the_command(self, case: HostCase) -> None:
        """With the environment of the lease: what it sees of devices is what the command sees."""
        devices, see = case.nodes[0].devices[:2], "echo $WORD ${CUDA_VISIBLE_DEVICES-none}"
        order = case.start(
            shell(f"cat seen; {see}"),
            health_check=shell(f"{{ {see}; }} > {case.state}/seen"),
            env={"WORD": "one"},
            devices=devices,
        )
        assert case.ended(order).code == 0
        checked, seen = output(order).splitlines()
        assert checked == seen
        assert checked.startswith("one ")

    def test_a_node_that_is_not_healthy_runs_no_command(self, case: HostCase) -> None:
        order = case.start(
            ["touch", str(case.state / "ran")], health_check=shell("echo ECC; exit 4")
        )
        found = case.ended(order)
        assert (found.reason, found.detail) == ("unhealthy", "health check sh ended with 4: ECC")
        assert not (case.state / "ran").exists()

    def test_a_lease_that_is_stopped_while_its_node_is_checked(self, case: HostCase) -> None:
        looking = f"touch {case.state}/looking; exec sleep 600"
        order = case.start(["touch", str(case.state / "ran")], health_check=shell(looking))
        until = time.monotonic() + case.start_s
        while not (case.state / "looking").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        case.host.stop([order.key], 5.0, "enough")
        assert case.ended(order).reason == "void"
        assert not (case.state / "ran").exists()

    def test_arguments_are_not_read_by_a_shell(self, case: HostCase) -> None:
        order = case.start(["printf", "%s|", "a b", "$HOME", "; exit 3", "`id`", "*"])
        assert case.ended(order).code == 0
        assert output(order) == "a b|$HOME|; exit 3|`id`|*|"

    def test_files_of_a_lease_are_private(self, case: HostCase) -> None:
        order = case.start(["true"], env={"TOKEN": "secret"})
        case.ended(order)
        assert order.directory.stat().st_mode & 0o077 == 0
        for path in order.directory.iterdir():
            assert path.stat().st_mode & 0o077 == 0, path
        shown = [path.read_text() for path in order.directory.iterdir() if path.stem != "order"]
        assert not any("secret" in text for text in shown)

    def test_renewal_keeps_alive_and_its_absence_ends(self, case: HostCase) -> None:
        order = case.start(["sleep", "600"], ttl_s=case.ttl_s)
        case.wait(order, Phase.RUNNING)
        began = time.monotonic()
        while time.monotonic() < began + 2 * case.ttl_s:
            case.host.renew([order.key])
            assert case.seen(order).phase is Phase.RUNNING
            time.sleep(case.ttl_s / 10)
        last = time.monotonic()
        found = case.ended(order, case.ttl_s + case.end_s)
        assert found.reason == "expired"
        assert time.monotonic() - last > case.ttl_s / 2

    def test_a_command_that_saves_is_preempted(self, case: HostCase) -> None:
        order = case.start(python(SAVES))
        case.wait_output(order, "up")
        case.host.stop([order.key], 30.0, "round over")
        found = case.ended(order)
        assert (found.code, found.reason, found.forced) == (75, "stopped", False)
        assert "saved" in output(order)

    def test_a_command_that_ignores_the_wish_is_killed(self, case: HostCase) -> None:
        order = case.start(python(IGNORES_TERM))
        case.wait_output(order, "up")
        asked = time.monotonic()
        case.host.stop([order.key], 1.0, "round over")
        found = case.ended(order)
        assert time.monotonic() - asked >= 1.0
        assert (found.code, found.reason, found.forced) == (-9, "stopped", True)

    def test_stop_in_a_hurry_shortens_the_grace(self, case: HostCase) -> None:
        order = case.start(python(IGNORES_TERM), grace_s=300.0)
        case.wait_output(order, "up")
        case.host.stop([order.key], 300.0, "round over")
        time.sleep(0.2)
        case.host.stop([order.key], 0.0, "cancelled")
        assert case.ended(order).forced

    def test_renewal_does_not_take_a_stop_back(self, case: HostCase) -> None:
        order = case.start(["sleep", "600"])
        case.wait(order, Phase.RUNNING)
        case.host.stop([order.key], 5.0, "round over")
        case.host.renew([order.key])
        assert case.ended(order).reason == "stopped"

    def test_no_process_is_left_after_a_stop(self, case: HostCase) -> None:
        order = case.start(
            shell("sleep 600 & setsid sleep 600 & (setsid sleep 600 &) ; echo up; wait")
        )
        case.wait_output(order, "up")
        case.wait_living(order, 4)
        case.host.stop([order.key], 1.0, "round over")
        case.ended(order)  # asserts that none is left

    def test_no_process_is_left_after_an_end(self, case: HostCase) -> None:
        stubborn = f"{sys.executable} -I -S -c '{IGNORES_TERM.replace(chr(39), chr(34))}'"
        order = case.start(shell(f"setsid {stubborn} & while ! test -s up; do sleep 0.01; done"))
        time.sleep(0.3)
        (case.state / "up").write_text("yes")
        found = case.ended(order)
        assert found.code == 0
        assert found.reason == "exited"

    def test_a_flood_of_output_is_cut_in_the_middle(self, case: HostCase) -> None:
        code = (
            "import os\n"
            "os.write(1, b'first line\\n')\n"
            "block = b'x' * 99 + b'\\n'\n"
            "for _ in range(200): os.write(1, block * 10000)\n"
            "os.write(1, b'last line\\n')"
        )
        order = case.start(python(code), log_bytes=100_000)
        assert case.ended(order, case.start_s + case.end_s + 20.0).code == 0
        assert (order.directory / "output.log").stat().st_size < 100_200
        text = output(order)
        assert text.startswith("first line\n")
        assert text.endswith("last line\n")
        assert "[199900021 bytes left out]" in text

    def test_a_command_that_does_not_exist_says_so(self, case: HostCase) -> None:
        found = case.ended(case.start(["no-such-program", "x"]))
        assert (found.reason, found.code) == ("unstartable", 127)
        assert "no-such-program" in found.detail

    def test_a_gang_of_two_ranks(self, case: HostCase) -> None:
        places = [case.nodes[0].devices[0], case.devices[-1]]
        orders = [
            case.order(
                shell(f"echo rank {k}; sleep 600"), job="gang", epoch=1, rank=k, devices=[device]
            )
            for k, device in enumerate(places)
        ]
        case.host.start(orders)
        for k, order in enumerate(orders):
            case.wait(order, Phase.RUNNING)
            case.wait_output(order, f"rank {k}")
        case.host.stop([order.key for order in orders], 5.0, "round over")
        for order in orders:
            assert case.ended(order).reason == "stopped"

    def test_two_leases_share_a_device(self, case: HostCase) -> None:
        device = [case.devices[0]]
        one = case.start(shell("echo up; sleep 600"), job="a", devices=device, shared=True)
        two = case.start(shell("echo up; sleep 600"), job="b", devices=device, shared=True)
        for order in (one, two):
            case.wait_output(order, "up")
            case.wait(order, Phase.RUNNING)
        case.host.stop([one.key], 5.0, "round over")
        case.ended(one)
        assert case.seen(two).phase is Phase.RUNNING

    def test_a_device_is_used_again(self, case: HostCase) -> None:
        for _ in range(3):
            order = case.start(shell("echo up; sleep 600"))
            case.wait_output(order, "up")
            case.host.stop([order.key], 5.0, "round over")
            case.ended(order)

    def test_a_second_start_does_nothing(self, case: HostCase) -> None:
        order = case.start(shell("echo began >> began; echo up; sleep 600"))
        case.host.start([order])
        case.wait_output(order, "up")
        case.host.start([order])
        case.host.stop([order.key], 5.0, "round over")
        case.ended(order)
        case.host.start([order])
        time.sleep(0.3)
        assert case.seen(order).phase is Phase.ENDED
        assert (case.state / "began").read_text() == "began\n"

    def test_a_stop_before_the_beginning(self, case: HostCase) -> None:
        order = case.start(shell("echo began >> began; sleep 600"))
        case.host.stop([order.key], 0.5, "changed its mind")
        found = case.ended(order)
        assert found.reason in ("void", "stopped")
        assert found.reason == "stopped" or not (case.state / "began").exists()

    def test_the_driver_dies_and_another_goes_on(self, case: HostCase) -> None:
        runs = case.start(shell("echo up; sleep 600"), job="a")
        case.wait_output(runs, "up")
        devices = case.devices[1:2]
        ends = case.start(shell("echo up; read line < go; exit 5"), job="b", devices=devices)
        os.mkfifo(case.state / "go")
        case.wait_output(ends, "up")
        never = case.order(shell("echo began > began"), job="c")
        case.host = case.reopen(case.host)
        (case.state / "go").write_text("on\n")
        case.nodes = case.host.discover()
        case.host.adopt([runs, ends, never])
        assert case.ended(never).reason == "void"
        assert case.ended(ends).code == 5
        assert case.seen(runs).phase is Phase.RUNNING
        case.host.start([never])
        case.host.renew([runs.key])
        case.host.stop([runs.key], 5.0, "round over")
        assert case.ended(runs).reason == "stopped"
        assert not (case.state / "began").exists()

    def test_the_supervisor_is_killed(self, case: HostCase) -> None:
        order = case.start(shell("setsid sleep 600 & (setsid sleep 600 &) ; echo up; sleep 600"))
        case.wait_output(order, "up")
        case.wait(order, Phase.RUNNING)
        case.wait_living(order, 4)
        os.kill(record(order)["pid"], signal.SIGKILL)
        found = case.ended(order)
        assert found.code == -9

    def test_the_command_is_killed(self, case: HostCase) -> None:
        order = case.start(["sleep", "600"])
        case.wait(order, Phase.RUNNING)
        os.kill(record(order)["command_pid"], signal.SIGKILL)
        found = case.ended(order)
        assert (found.code, found.reason) == (-9, "exited")

    def test_a_stopped_process_is_stopped_for_good(self, case: HostCase) -> None:
        order = case.start(python(SAVES))
        case.wait_output(order, "up")
        case.wait(order, Phase.RUNNING)
        os.kill(record(order)["command_pid"], signal.SIGSTOP)
        case.host.stop([order.key], 30.0, "round over")
        found = case.ended(order)
        assert (found.code, found.forced) == (75, False), "it was let go on to save"

    def test_garbage_in_the_lease_directory(self, case: HostCase) -> None:
        code = (
            "cd $SHADOWPRICE_LEASE\n"
            'echo \'{"code": 0, "reason": "exited"}\' > exit.json\n'
            "rm supervisor.json lease.json\n"
            "ln -s /dev/zero supervisor.json\n"
            "mkfifo lease.json\n"
            "truncate -s 1G report.json\n"
            "mkdir order.json.d; echo '{\"code\": ' > torn.json\n"
            "echo planted; trap '' TERM; sleep 600"
        )
        order = case.start(shell(code), ttl_s=5.0)
        case.wait(order, Phase.RUNNING)
        case.wait_output(order, "planted")
        for _ in range(10):
            seen = case.seen(order)
            assert (seen.phase, dict(seen.report)) == (Phase.RUNNING, {})
            case.host.renew([order.key])
            time.sleep(0.1)
        case.host.stop([order.key], 0.5, "round over")
        found = case.ended(order)
        assert (found.code, found.reason, found.forced) == (-9, "stopped", True)

    def test_a_report_is_seen(self, case: HostCase) -> None:
        code = (
            "import os,time\n"
            "d=os.environ['SHADOWPRICE_LEASE']\n"
            "for k in (1,2):\n"
            "    open(d+'/r.tmp','w').write('{\"step\": %d, \"x\": [1], \"y\": -1}' % k)\n"
            "    os.replace(d+'/r.tmp', d+'/report.json')\n"
            "    print('wrote', k, flush=True); time.sleep(0.5)\n"
            "time.sleep(600)"
        )
        order = case.start(python(code))
        case.wait_output(order, "wrote 2")
        until = time.monotonic() + case.end_s
        while case.seen(order).report != {"step": 2}:
            assert time.monotonic() < until
            time.sleep(0.01)

    def test_many_leases_at_once(self, case: HostCase) -> None:
        count = min(case.many, 2 * len(case.devices))
        orders = [
            case.order(["sleep", "600"], job=f"j{k}", devices=[case.devices[k // 2]], shared=True)
            for k in range(count)
        ]
        case.host.start(orders)
        for order in orders:
            case.wait(order, Phase.RUNNING, case.start_s * max(1.0, count / 4))
        keys = [order.key for order in orders]
        case.host.renew(keys)
        case.host.stop(keys, 10.0, "round over")
        for order in orders:
            assert case.ended(order, case.end_s * max(1.0, count / 4)).reason == "stopped"
            assert not supervisor_lives(order.directory, None)
