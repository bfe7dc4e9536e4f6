"""Four PyTorch jobs on one device under three policies: real runs, and simulations of them.

    python benchmarks/shared_device.py --hosts local --out benchmarks/records/one-gpu
    python benchmarks/shared_device.py --hosts local:1 --jobs my_jobs.yaml --round 10

The jobs wait for each other (fifo), take turns (las2d with small thresholds) and share the device
(gandiva, packing). Every log is verified; what was measured is simulated, and the mean JCT of the
simulation should be within 10 % of the real one. Writes a log and a picture.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import yaml
from matplotlib.patches import Patch

from shadowprice.analysis.plots.style import colour_of
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.live.state_directory import LEDGER
from shadowprice.hosts.reports.results import Results, results
from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.timeline import STARTING, pieces

TARGET = 0.10
JOBS = Path(__file__).resolve().parents[1] / "examples" / "jobs" / "torch.yaml"


def policies(round_s: float) -> dict[str, tuple[str, float | None]]:
    """Name in the picture, policy, and the share that a packed job is assumed to keep."""
    return {
        "one after another": ("fifo", None),
        "taking turns": (f"las2d:thresholds_gpu_s={round_s:g}", None),
        "sharing": (f"gandiva:quantum_s={round_s:g}", 0.6),
    }


def device(state: Path) -> str:
    """What the jobs ran on."""
    with RunReader(state) as run:
        kinds = {node.gpu_type for node in run.nodes}
    if kinds == {"cpu"}:
        return f"a CPU slot, {os.cpu_count()} cores, {platform.machine()}"
    return ", ".join(sorted(kinds))


def lengthened(path: Path, times: float, scratch: Path) -> Path:
    """The same jobs with so many times as many iterations."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    for job in tree["jobs"]:
        job["iterations"] = round(job["iterations"] * times)
        job.setdefault("directory", str(path.parent.resolve()))
    longer = scratch / path.name
    longer.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    return longer


def measure(args: argparse.Namespace, where: Path) -> dict[str, tuple[Path, Results]]:
    """Run all policies one after the other."""
    found = {}
    for k, (title, (policy, share)) in enumerate(policies(args.round).items()):
        state = where / f"run-{k}"
        settings = Settings(
            args.jobs,
            policy,
            args.hosts,
            state,
            round_s=args.round,
            share=share,
            limits=Limits(grace_s=60.0),
        )
        summary = execute(settings)
        if not summary.all_finished:
            raise SystemExit(f"error: {policy}: {summary.jobs}")
        found[title] = (state, results(state))
        print(f"{title}: {settings.policy}", flush=True)
    return found


def report(found: dict[str, tuple[Path, Results]], args: argparse.Namespace) -> str:
    """The log: what ran where, drift by job, rates alone and beside others."""
    first = next(iter(found.values()))[0]
    lines = [f"Device: {device(first)}; rounds of {args.round:g} s; {args.jobs.name}", ""]
    for title, (state, result) in found.items():
        assert result.drift is not None, result.why
        error = result.drift.relative_error
        assert error is not None
        met = "within" if abs(error) <= TARGET else "NOT within"
        lines += [
            f"## {title}",
            "",
            f"{result.checked['leases']} leases, {result.checked['steps_lost']} steps lost; {met} "
            f"{100 * TARGET:.0f} % of the mean JCT",
            "",
            "```text",
            result.drift.table(),
            "```",
            "",
        ]
        ledger = RunLedger.open(state / LEDGER, readonly=True)
        rows = ledger.observations()
        ledger.close()
        lines += ["```text", "job          beside       steps/s"]
        lines += [
            f"{row['job']:12s} {row['co_runner'] or '-':12s} {row['steps'] / row['seconds']:8.1f}"
            for row in rows
            if row["steps"] and row["seconds"] > 0
        ]
        lines += ["```", ""]
    return "\n".join(lines)


def _length_s(state: Path) -> float:
    with RunReader(state) as run:
        return run.now_s


def draw(found: dict[str, tuple[Path, Results]], path: Path) -> None:
    """Who held the device when, one axis a policy, all with the same time."""
    figure, axes = plt.subplots(len(found), 1, figsize=(9.0, 1.9 * len(found)), sharex=True)
    until_s = max(_length_s(state) for state, _ in found.values())
    for axis, (title, (state, result)) in zip(axes, found.items(), strict=True):
        drift = result.drift
        assert drift is not None
        assert drift.relative_error is not None
        with RunReader(state) as run:
            colours = {job["name"]: colour_of(k) for k, job in enumerate(run.jobs)}
            for piece in pieces(run.timeline, until_s):
                axis.broken_barh(
                    [(piece.start_s, piece.end_s - piece.start_s)],
                    (piece.low, piece.high - piece.low),
                    color=colours[piece.hold.job],
                    alpha=0.4 if piece.phase == STARTING else 1.0,
                )
        axis.legend(handles=[Patch(color=each, label=job) for job, each in colours.items()])
        axis.set(xlim=(0.0, until_s), ylim=(0.0, 1.0), yticks=[])
        axis.set_title(
            f"{title} ({drift.policy}): mean JCT {drift.real_mean_s:.0f} s, simulated "
            f"{drift.simulated_mean_s:.0f} s ({100 * drift.relative_error:+.1f} %); pale: starting",
            loc="left",
            fontsize=9,
        )
    axes[-1].set_xlabel("time [seconds]")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="local")
    parser.add_argument("--jobs", type=Path, default=JOBS)
    parser.add_argument("--times", type=float, default=1.0, help="Multiplies all iterations.")
    parser.add_argument("--round", type=float, default=20.0)
    parser.add_argument("--out", type=Path, default=Path("shared-device"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        args.jobs = lengthened(args.jobs, args.times, Path(scratch))
        found = measure(args, Path(scratch))
        text = report(found, args)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.with_suffix(".md").write_text(text + "\n")
        draw(found, args.out.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
