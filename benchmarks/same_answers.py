"""Whether two checkouts of this repository give the same answers.

``python benchmarks/same_answers.py record FOLDER`` runs a fixed set of commands with the checkout in
which this file lies and keeps what each of them printed, wrote and ended with.
``python benchmarks/same_answers.py compare OLD_FOLDER NEW_FOLDER`` tells every difference; exit code 1
if there is one. Record both on the same machine with the same packages.

What is run is in ``ITEMS`` and ``PROGRAMS``, what may differ in ``RULES``; everything else is compared
byte for byte. Only the command line and the public names of ``shadowprice`` are used, so this
file can be copied into a checkout that has no such file, or that keeps its modules elsewhere. A
command that fails is an answer as well. Each runs in a process of its own with an empty folder as
its working directory, so no path of the machine is in an answer.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import runpy
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = 2
SECONDS = 120
"""After which a command is killed; all of them end long before on an idle machine."""
PACKAGES = ("highspy", "matplotlib", "numpy", "ortools", "pandas", "pyarrow", "pyomo", "scipy")
LOADED_BEFORE = ("pandas", "pyarrow.parquet", "scipy.optimize", "scipy.stats", "typer", "rich")
"""Imported once, before processes are forked; none of them starts threads when it is imported."""
BUDGET = "--budget 100"
"""Seconds that no search here needs: one that is cut short would depend on the machine's load."""

# --- what is given ------------------------------------------------------------------------------

KINDS = {
    "ResNet-18 (batch size 128)": (17.995, 11.675, 1.807),
    "ResNet-50 (batch size 128)": (2.497, 1.584, 0.347),
    "LM (batch size 20)": (64.74, 58.17, 17.14),
    "A3C": (7.176, 5.681, 3.439),
}
"""Steps per second on one V100, P100, K80, as Gavel's repository publishes them."""
TYPES = ("v100", "p100", "k80")


def throughputs() -> str:
    """Gavel's table: gangs 0.9 times as fast a GPU each time they double, pairs 65 % of their own."""
    table: dict[str, dict[str, dict[str, object]]] = {}
    for k, kind in enumerate(TYPES):
        rows = table[kind] = {}
        for model, rates in KINDS.items():
            for doubled in range(3):
                gpus = 2**doubled
                row: dict[str, object] = {"null": rates[k] * gpus * 0.9**doubled}
                if gpus == 1:
                    for other, others in KINDS.items():
                        row[str((other, 1))] = [0.65 * rates[k], 0.65 * others[k]]
                rows[str((model, gpus))] = row
    return json.dumps(table)


def gavel_trace() -> str:
    """Twenty jobs in the ten columns of Gavel's traces, gangs of 1, 2 and 4 among them."""
    models = list(KINDS)
    lines = []
    for job in range(20):
        model = models[job * 7 % 4]
        steps = int(KINDS[model][0] * (900 + 613 * (job * 11 % 17)))
        gang = (1, 1, 2, 1, 4)[job % 5]
        line = (
            model,
            "python3 main.py",
            "somewhere",
            "--steps",
            0,
            steps,
            gang,
            1,
            -1,
            240.0 * job,
        )
        lines.append("\t".join(map(str, line)))
    return "\n".join([*lines, ""])


def table(*rows: str) -> str:
    return "\n".join(["id,gpus,submit,duration,model", *rows, ""])


_PROBLEM_JOBS = [
    {
        "id": f"j{k}",
        "type": model,
        "tput": sorted(KINDS[model]),
        "w": 1 + k % 2,
        "steps": 9000 * (k + 1),
    }
    | {"t0": 60 * k, "isolated_s": 4000 + 500 * k, "slo_s": 20000 + 3000 * k}
    for k, model in enumerate(list(KINDS) * 2)
]

INPUTS = {
    "throughputs.json": throughputs(),
    "gavel.trace": gavel_trace(),
    "tiny.csv": table(
        "a,2,0,40,", "b,1,0,30,", "c,1,10,20,", "d,4,15,10,", "e,1,20,50,", "f,2,30,10,"
    ),
    "one_gpu.csv": table("a,1,0,40,", "b,1,5,10,", "c,1,10,25,", "d,1,12,5,", "e,1,40,15,"),
    "halves.csv": table("a,1,0.1,0.3,", "b,2,0.25,1.7,", "c,1,0.3333333,0.7,", "d,2,1.1,0.9,"),
    "broken.csv": table("a,2,0,40,", "b,one,0,30,"),
    "too_wide.csv": table("a,64,0,40,", "b,1,0,30,"),
    "services.txt": "".join(f"{60 * k * k}\n" for k in range(1, 40)),
    "problem.json": json.dumps(
        {"cluster": {"k80": 1, "p100": 1, "v100": 2}, "jobs": _PROBLEM_JOBS}
    ),
    "wrong_problem.json": '{"cluster": {"k80": 1, "v100": 1}, "jobs": [{"tputs": [10, 40]}]}',
    "graph.yaml": """\
name: two
stages:
  - {name: a, replicas: 4, forward_s: 1.0, backward_s: 2.0, parameter_bytes: 4e9}
  - {name: b, replicas: 3, forward_s: 0.5, backward_s: 1.5, parameter_bytes: 1e9}
links:
  - {from: a, to: b, bytes_per_replica: 8e9}
""",
    "published.yaml": """\
model: {name: t5-base, pipeline: 2, data: 4, batch: 16, flop_per_s: 125e12, efficiency: 0.4}
""",
    "cluster.toml": """\
[[nodes]]
count = 3
gpus = 4
""",
    "jobs.yaml": """\
defaults: {gpus: 1}
jobs:
  - {name: first, command: [python, train.py], iterations: 600, throughput: 40, env: {TOKEN: secret}}
  - {name: second, command: [python, train.py], iterations: 1800, throughput: 48, gpus: 2}
  - {name: third, shell: "./run.sh | tee log", iterations: 500, arrival_s: 8}
""",
}

# --- what is run --------------------------------------------------------------------------------

GENERATED = {
    "automl": "automl --jobs 12 --seed 3",
    "gandiva": "gandiva --jobs 16 --seed 3",
    "gandiva-trace": "gandiva-trace --jobs 20 --seed 3",
    "gavel": "gavel --jobs 20 --seed 3",
    "gpu-time-sample": "gpu-time-sample --jobs 20 --seed 3",
    "hadar": "hadar --jobs 12 --seed 3",
    "lognormal": "lognormal --jobs 40 --seed 3 --load 1.3 --gpus 16",
    "more": "lognormal --jobs 120 --seed 5 --load 1.2 --gpus 16",
    "recurrent": "recurrent --jobs 30 --seed 3",
    "synergy": "synergy --jobs 16 --seed 3 --gpus 8 --load 1",
    "tiresias": "tiresias --seed 3",
    "tiresias-published": "tiresias-published --seed 3",
    "tiresias-trace": "tiresias-trace --jobs 20 --seed 3",
}
"""Traces by name; each is kept, and given to what runs after."""

SETTINGS = {
    "untyped": "lognormal.csv --cluster 4x4",
    "rounds": "lognormal.csv --cluster 4x4 --round 300 --first-round 60 --placement consolidate"
    " --with charges:start_s=5,restart_s=20,migration_s=7",
    "typed": "gavel.trace --throughputs ../inputs/throughputs.json --cluster 1x4:v100,2x4:p100,1x4:k80"
    " --round 360 --with charges:restart_s=10",
    "profiles": "synergy.csv --cluster 2x4+12cpu+250gb --with profiles --round 300",
    "sharing": "gandiva.csv --cluster 2x4 --with sharing --round 60",
    "grow": "automl.csv --cluster 2x4 --with widths:widest=4,efficiency=0.9 --with spread --placement skew --round 60",
    "graphs": "recurrent.csv --cluster 2x8 --with graphs:intra_gb_per_s=300,nic_gb_per_s=12.5",
}
"""Under each of them every policy that ``shadowprice policies`` lists is simulated."""

PARAMETERS = {
    "untyped": (
        "las2d:thresholds_gpu_s=600/3600",
        "las:quantum_s=60",
        "hadar-committed:round_s=60",
        "hadare:round_s=360,restart_s=10,max_copies=2",
        "hadare:first-come,width=gang",
    ),
    "rounds": ("gittins2d:learned=online",),
    "typed": (
        "gavel:finish_time_fairness:aware=true",
        "gavel:max_min_fairness:aware=true,packed=true",
        "gavel:min_total_duration:aware=true,round_s=360",
    ),
    "profiles": ("synergy-tune:srtf", "synergy-opt:las", "synergy-proportional:fifo"),
}
"""Policies with parameters, under the settings of that name."""

PRESETS = {
    "gavel": (
        "gavel.trace --throughputs ../inputs/throughputs.json --cluster 1x4:v100,2x4:p100,1x4:k80",
        (
            "fifo",
            "max_min_fairness_perf",
            "finish_time_fairness_perf",
            "isolated",
            "allox",
            "fifo_packed",
        ),
    ),
    "helios": ("lognormal.csv --cluster 4x4", ("fifo", "sjf", "srtf")),
    "pai": ("lognormal.csv --cluster 4x4", ("FIFO", "SJF")),
    "synergy": (
        "synergy.csv --cluster 2x4+12cpu+250gb --with profiles",
        ("DRF+fair", "DRF+tune", "FIFO+tune", "FTF+tune", "LAS+fair", "SRTF+tune", "TETRIS+tune"),
    ),
    "tiresias": (
        "lognormal.csv --cluster 4x4 --service-samples ../inputs/services.txt",
        (
            "dlas",
            "dlas-gpu",
            "dlas-gpu-gittins",
            "fifo",
            "fjf",
            "lpjf",
            "shortest",
            "shortest-gpu",
            "sjf",
        ),
    ),
}

RUN = "simulate ../inputs/{trace} --policy {policy} -o run --jobs-out jobs.csv --json"
PLACEMENTS = (
    "heavy-edge",
    "heavy-edge-swaps",
    "first-fit",
    "communities",
    "exact",
    "exact-cut",
    "no-such",
)
PREDICTORS = ("forest", "median", "last", "oracle", "noisy:1/2", "adversarial:1/2", "given:0=2")
COMMANDS = (
    "allocate",
    "simulate",
    "compare",
    "place",
    "certify",
    "profile",
    "adversary",
    "execute",
    "status",
    "cancel",
    "export-kubernetes",
    "demo",
    "verify",
    "generate",
    "policies",
    "data",
)

ITEMS: dict[str, tuple[str, ...]] = {
    # Listings and help.
    "help": ("--help", *(f"{command} --help" for command in COMMANDS)),
    "policies": ("policies --all", "policies --json"),
    **{
        f"policies-{name}": (f"policies --preset {name}", f"policies --preset {name} --json")
        for name in PRESETS
    },
    "demo": ("demo", "demo --json --plot demo.png"),
    # Simulations beside those of every policy.
    "simulate-text": ("simulate ../inputs/lognormal.csv --cluster 4x4 --policy srtf",),
    "simulate-halves": (RUN.format(trace="halves.csv --cluster 1x2", policy="srtf"),),
    "simulate-toml": (
        RUN.format(trace="tiny.csv --cluster ../inputs/cluster.toml", policy="easy"),
    ),
    "simulate-prices": (
        RUN.format(trace="lognormal.csv --cluster 4x4", policy="hadar --prices prices.parquet"),
        RUN.format(trace="lognormal.csv --cluster 4x4", policy="hadar --prices prices.csv --force"),
    ),
    # Copies of jobs have rounds of their own, so the settings with rounds refuse them.
    "simulate-copies-typed": (
        RUN.format(
            trace="gavel.trace --throughputs ../inputs/throughputs.json --cluster 1x4:v100,2x4:p100,1x4:k80",
            policy="hadare:round_s=360",
        ),
        "verify run --json",
    ),
    **{
        f"simulate-graphs-{placement}": (
            RUN.format(
                trace="recurrent.csv --cluster 2x8"
                " --with graphs:intra_gb_per_s=300,nic_gb_per_s=12.5,nic_sharing=per-job",
                policy=f"asrpt --placement {placement}",
            ),
            "verify run --json",
        )
        for placement in ("heavy-edge", "heavy-edge-swaps", "first-fit", "communities")
    },
    "simulate-tiresias": (
        RUN.format(
            trace="tiresias.csv --cluster 15x4 --with spread --placement skew",
            policy="gittins2d:learned=online",
        ),
        "verify run",
    ),
    "simulate-parquet": (
        "generate lognormal --jobs 30 --seed 9 --gpus 16 -o jobs.parquet",
        "simulate jobs.parquet --cluster 4x4 --policy las2d -o run --json",
        "verify run --json",
    ),
    **{
        f"predictor-{name.split(':')[0]}": (
            RUN.format(
                trace=f"recurrent.csv --cluster 4x4 --seed 2 --predictor {name}",
                policy="asrpt-early",
            ),
        )
        for name in PREDICTORS
    },
    # Comparisons. Without preemption the offline optimum is searched: only tiny instances there.
    "compare-completion": (
        f"compare ../inputs/more.csv --cluster 4x4 --policies fifo,srtf,las2d,hadar,gandiva --json {BUDGET}",
    ),
    "compare-flow": (
        f"compare ../inputs/more.csv --cluster 4x4 --objective flow {BUDGET} --plot gap.png",
    ),
    "compare-makespan": (
        f"compare ../inputs/more.csv --cluster 4x4 --objective makespan --json {BUDGET}",
    ),
    "compare-tiny": tuple(
        f"compare ../inputs/tiny.csv --cluster 1x4 --policies fifo,sjf,easy --objective {goal} --json {BUDGET}"
        for goal in ("completion", "flow", "makespan")
    ),
    "compare-one-gpu": (
        f"compare ../inputs/one_gpu.csv --cluster 1x1 --policies srtf,asrpt,las {BUDGET}",
        f"compare ../inputs/one_gpu.csv --cluster 1x1 --policies asrpt,asrpt-guarded --json {BUDGET}",
    ),
    "compare-typed": (
        "compare ../inputs/gavel.trace --throughputs ../inputs/throughputs.json --round 360"
        f" --cluster 1x4:v100,2x4:p100,1x4:k80 --policies srtf,gavel,hadar --json {BUDGET}",
    ),
    "compare-sharing": (
        "compare ../inputs/gandiva.csv --cluster 2x4 --with sharing --policies gandiva,srtf"
        f" --json {BUDGET}",
    ),
    "compare-graphs": (
        "compare ../inputs/recurrent.csv --cluster 2x8 --with graphs:intra_gb_per_s=300,nic_gb_per_s=12.5"
        f" --policies srtf,las2d --json {BUDGET}",
    ),
    **{
        f"compare-utility-{utility}": (
            "compare ../inputs/hadar.csv --cluster 4x4 --objective utility --policies hadar,hadar-committed,fifo"
            f" --utility {utility} --round 3600 --json {BUDGET}",
        )
        for utility in ("effective_throughput", "completion_time", "fairness", "deadline")
    },
    # Certificates.
    **{
        f"certificate-{goal}": (
            "simulate ../inputs/more.csv --cluster 4x4 --policy srtf -o run",
            f"certify run -o run.jsonl --objective {goal} {BUDGET}",
            "verify run.jsonl --json",
            "verify run.jsonl ../inputs/more.csv --cluster 4x4",
            "verify run.jsonl ../inputs/lognormal.csv --cluster 4x4",
        )
        for goal in ("completion", "flow", "makespan")
    },
    "certificate-tiny": (
        "simulate ../inputs/tiny.csv --cluster 1x4 --policy fifo -o run",
        f"certify run -o run.jsonl {BUDGET}",
        "verify run.jsonl",
    ),
    "certificate-typed": (
        "simulate ../inputs/gavel.trace --throughputs ../inputs/throughputs.json --round 360"
        " --cluster 1x4:v100,2x4:p100,1x4:k80 --policy gavel -o run",
        f"certify run -o run.jsonl {BUDGET}",
        "verify run.jsonl --json",
    ),
    # Searches for bad instances: the number of evaluations ends them.
    **{
        f"adversary-{policy}": (
            f"adversary --policy {policy} --family jobs=4,gpus=2,max_work=4,max_arrival=4 --evaluations 300"
            " --budget 1000 --seed 1 -o hard.json --json",
            "verify hard.json",
        )
        for policy in ("srtf", "fifo", "asrpt")
    },
    "adversary-flow": (
        "adversary --policy las2d --family jobs=4,gpus=2 --objective flow --evaluations 200 --budget 1000 -o hard.json",
    ),
    # Job graphs.
    **{
        f"place-{name}": tuple(
            f"place ../inputs/{graph}.yaml --cluster 4x4 --with graphs:intra_gb_per_s=300,nic_gb_per_s=12.5"
            f" --placement {name} {more}"
            for graph, more in (
                ("graph", "--json"),
                ("published", "--sharing per-job --json"),
                ("graph", ""),
            )
        )
        for name in PLACEMENTS
    },
    # Real hosts: what would be done.
    "execute": (
        "execute ../inputs/jobs.yaml --policy srtf --hosts local:4 --dry-run",
        "execute ../inputs/jobs.yaml --policy las2d:thresholds_gpu_s=8 --hosts local:2x2 --round 5 --dry-run --json",
        "execute {root}/examples/jobs/demo.yaml --policy srtf --hosts local:2 --round 5 --dry-run --json",
        "execute ../inputs/jobs.yaml --policy gavel --hosts local:4 --share 0.8 --dry-run --json",
    ),
    "export": (
        "export-kubernetes ../inputs/jobs.yaml --cluster 4x8:A100 --image example.org/train:1",
        "export-kubernetes ../inputs/jobs.yaml --cluster 4x8 --image example.org/x --policy srtf --queue q -o m.yaml",
    ),
    # What is refused, and how.
    "refused": (
        "simulate ../inputs/lognormal.csv --cluster 4x4 --policy srft",
        "simulate ../inputs/lognormal.csv --cluster 4by4 --policy srtf",
        "simulate ../inputs/lognormal.csv --cluster 4x4 --policy las2d:threshold=3",
        "simulate ../inputs/lognormal.csv --cluster 4x4 --policy srtf --placement nowhere",
        "simulate ../inputs/lognormal.csv --cluster 4x4 --policy srtf --round -1",
        "simulate ../inputs/broken.csv --cluster 4x4 --policy srtf",
        "simulate ../inputs/too_wide.csv --cluster 4x4 --policy srtf",
        "simulate ../inputs/too_wide.csv --cluster 4x4 --policy srtf --drop-infeasible",
        "simulate ../inputs/no_such.csv --cluster 4x4 --policy srtf",
        "simulate ../inputs/gavel.trace --cluster 4x4 --policy srtf",
        "simulate ../inputs/lognormal.csv --cluster 4x4 --policy srtf --preset tiresia",
        "compare ../inputs/tiny.csv --cluster 1x4 --objective speed",
        "generate lognorml -o x.csv",
        "generate tiresias --jobs 20 -o x.csv",
        "allocate max_min_fairness_pref ../inputs/problem.json",
        "allocate max_min_fairness ../inputs/wrong_problem.json",
        "place ../inputs/problem.json --cluster 4x4",
        "verify ../inputs",
        "check ../inputs/problem.json",
        "status ../inputs",
        "no-such-command",
    ),
}
"""Words after ``shadowprice`` by item; the commands of one follow one another in the same folder."""


def of_policies(root: Path) -> dict[str, tuple[str, ...]]:
    """What is run for each policy that this checkout lists."""
    items = {}
    simulated = [row["policy"] for row in _listed(root)]
    for setting, given in SETTINGS.items():
        for policy in (*simulated, *PARAMETERS.get(setting, ())):
            words = RUN.format(trace=given, policy=shlex.quote(policy))
            # Every directory is verified again only where that is cheap.
            more = ("verify run --json",) if setting in ("rounds", "sharing") else ()
            items[f"{setting}-{_plain(policy)}"] = (words, *more)
    for preset, (given, policies) in PRESETS.items():
        for policy in policies:
            words = RUN.format(trace=f"{given} --preset {preset}", policy=policy)
            items[f"preset-{preset}-{_plain(policy)}"] = (words,)
    for name in _allocations(_listing(root)):
        item = f"allocate-{_plain(name)}"
        items[item] = (
            f"allocate {name} ../inputs/problem.json --throughputs ../inputs/throughputs.json --json",
        )
        if name.startswith("max_min_fairness"):
            items[item] += (f"allocate {name} ../inputs/problem.json --explain",)
    items["allocate-pop-parts"] = ("allocate pop:parts=2 ../inputs/problem.json --json",)
    return items


def _allocations(listing: str) -> Iterator[str]:
    """Allocation policies of a listing, each without flags and with each that it takes."""
    shares = re.search(r"^allocation policies.*?: (.*)$", listing, re.M)
    if shares is None:
        sys.exit("`shadowprice policies --all` names no allocation policies")
    for name, flags in re.findall(r"(\w+)(?: \(([^)]*)\))?", shares[1]):
        yield name
        for flag in re.split(r",\s*", flags):
            if flag in ("aware", "packed", "weighted", "per_price", "slos"):
                yield f"{name}:{flag}=true"


def _listed(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "policies" / "1.out").read_text())
    return rows


def _listing(folder: Path) -> str:
    return (folder / "policies" / "0.out").read_text()


def _plain(words: str) -> str:
    """A folder's name."""
    return re.sub(r"[^\w+.-]+", "_", words)


# --- public names -------------------------------------------------------------------------------


def outcomes() -> None:
    import shadowprice as sp

    jobs = sp.load("../inputs/lognormal.csv")
    for policy in ("fifo", "srtf", "las2d", "gittins2d"):
        outcome = sp.simulate(jobs, "4x4", policy)
        summary = {name: value for name, value in outcome.summary().items() if name != "cpu_s"}
        print(policy, summary)
        print(outcome.jobs.to_csv())
        if isinstance(outcome, sp.Outcome):
            print(outcome.schedule.to_frame().to_csv())


def optima() -> None:
    import shadowprice as sp

    for name, cluster in (("tiny", "1x4"), ("one_gpu", "1x1"), ("halves", "1x2")):
        instance = sp.Instance(sp.Cluster.parse(cluster), sp.load(f"../inputs/{name}.csv"))
        for goal in sp.Objective:
            for preemptive in (False, True):
                bound = sp.strongest_bound(
                    instance, objective=goal, preemptive=preemptive, budget_s=100.0
                )
                print(name, goal, "strongest bound", preemptive, bound)
            if name == "halves":
                continue
            found = sp.optimum(instance, objective=goal, method="milp", budget_s=100.0)
            # The schedule is one of several best ones; its cost is not.
            print(name, goal, found.lower_s, found.upper_s, found.proven, found.certified)
            print(found.method, found.holds_for, found.slot_s, found.exact_grid)


def comparison() -> None:
    import shadowprice as sp

    jobs = sp.generate("lognormal", jobs=110, seed=1, load=1.3, gpus_total=16)
    result = sp.compare(jobs, "4x4", ["fifo", "srtf"], "flow", budget_s=100.0)
    print(result.frame.drop(columns="cpu_s", errors="ignore").to_csv())


def shares() -> None:
    import shadowprice as sp

    problem = sp.AllocationProblem.from_columns(
        gpu_types=["v100", "k80"], capacity=[1, 1], throughput=[[40, 10], [12, 4], [100, 50]]
    )
    for policy in (
        "max_min_fairness:aware=true",
        "finish_time_fairness:aware=true",
        "min_total_duration:aware=true",
    ):
        found = sp.allocate(problem, policy)
        print(policy, found.alone.tolist(), found.objective, found.bound)
        print(found.prices)


def names() -> None:
    import shadowprice as sp

    print(sp.__version__, *sp.__all__, sep="\n")
    for name in sp.__all__:
        print(name, type(getattr(sp, name)).__name__)


PROGRAMS: dict[str, Callable[[], None]] = {
    "python-names": names,
    "python-outcomes": outcomes,
    "python-optima": optima,
    "python-comparison": comparison,
    "python-shares": shares,
}

# --- what may differ ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """What is left out of a comparison.

    Parameters
    ----------
    files : str
        Pattern of ``ITEM/FILE``.
    why : str
        Why it may differ.
    key : str
        Entry of a JSON object, at any depth, that is left out.
    text, put : str
        Regular expression, and what is put in its place before texts are compared.
    """

    files: str
    why: str
    key: str = ""
    text: str = ""
    put: str = ""


RULES = (
    Rule("*/*.out", "CPU seconds are measured", key="cpu_s"),
    Rule("*/run.json", "CPU seconds are measured", key="cpu_s"),
    Rule("*/run.json", "CPU seconds are measured", key="verify_cpu_s"),
    Rule("allocate-*/*.out", "seconds in the solver are measured", key="solve_s"),
    Rule("allocate-*/*.out", "seconds of an allocation are measured", key="total_s"),
    Rule("*/run.json", "its own digest, which covers the CPU seconds", key="run.json"),
    Rule("*/*.out", "CPU seconds are measured", text=r"(?m)^(\W*cpu_s\W+)[\d.e-]+\s*", put=r"\1"),
)
"""Everything else is compared byte for byte, after paths of the two checkouts were made alike."""


Asked = tuple[str, ...] | Callable[[], None]
"""Commands that follow one another, or a program."""

# --- recording ----------------------------------------------------------------------------------


def record(folder: Path, only: str) -> None:
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ.update(COLUMNS="200", MPLBACKEND="Agg", NO_COLOR="1", TERM="dumb", TZ="UTC")
    sys.path.insert(0, str(ROOT))
    for module in LOADED_BEFORE:
        import_module(module)
    package = import_module("shadowprice")
    if package.__file__ is None or not Path(package.__file__).resolve().is_relative_to(ROOT):
        sys.exit(f"shadowprice is {package.__file__}, expected the one in {ROOT}")
    for name in package.__all__:
        getattr(package, name)
    began = time.monotonic()
    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    for name, text in INPUTS.items():
        (inputs / name).write_text(text, encoding="utf-8")
    first = {
        f"generate-{name}": (f"generate {words} -o {name}.csv",)
        for name, words in GENERATED.items()
    }
    _run_all(folder, {"policies": ITEMS["policies"], **first})
    for name in GENERATED:
        made = folder / f"generate-{name}" / f"{name}.csv"
        if made.exists():
            (inputs / made.name).write_bytes(made.read_bytes())
    rest: dict[str, Asked] = {**ITEMS, **of_policies(folder), **PROGRAMS}
    del rest["policies"]
    _run_all(folder, {name: asked for name, asked in rest.items() if fnmatch(name, only)})
    said = {
        "paths": {"<checkout>": str(ROOT), "<python>": sys.executable, "<record>": str(folder)},
        "versions": {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()},
        "machine": platform.platform(),
    }
    (folder / "record.json").write_text(json.dumps(said, indent=1))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answers = sum(1 for _ in folder.glob("*/*.exit"))
    print(
        f"{answers} answers in {folder}: {time.monotonic() - began:.0f} s,"
        f" {used.ru_utime + used.ru_stime:.0f} s of CPU"
    )


def _run_all(folder: Path, items: Mapping[str, Asked]) -> None:
    """Run items, each in a folder and a process of its own."""
    running: set[int] = set()
    for name, asked in items.items():
        if len(running) == PROCESSES:
            running.discard(os.wait()[0])
        child = os.fork()
        if child:
            running.add(child)
            continue
        place = folder / name
        place.mkdir()
        os.chdir(place)
        try:
            if isinstance(asked, tuple):
                for number, words in enumerate(asked):
                    _answer(number, words)
            else:
                _answer(0, asked)
        finally:
            os._exit(0)
    while running:
        running.discard(os.wait()[0])


def _command(words: str) -> None:
    sys.argv = ["shadowprice", *shlex.split(words.replace("{root}", str(ROOT)))]
    runpy.run_module("shadowprice", run_name="__main__")


def _answer(number: int, ask: str | Callable[[], None]) -> None:
    """Run one command in a process of its own; what it says goes to files."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        Path(f"{number}.exit").write_text(f"{os.waitstatus_to_exitcode(status)}\n")
        return
    code: object = 0
    signal.alarm(SECONDS)
    for descriptor, name in ((1, "out"), (2, "err")):
        file = os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, descriptor)
    try:
        if isinstance(ask, str):
            _command(ask)
        else:
            ask()
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        # Where it was raised is an affair of the sources; what was raised is the answer.
        traceback.print_exception(type(error), error, None)
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


# --- comparing ----------------------------------------------------------------------------------


def compare(old: Path, new: Path, only: str) -> int:
    said = [json.loads((folder / "record.json").read_text()) for folder in (old, new)]
    for what in ("versions", "machine"):
        if said[0][what] != said[1][what]:
            print(f"note: recorded with other {what}: {said[0][what]}, {said[1][what]}")
    files = [_files(folder, only) for folder in (old, new)]
    items = [{name.split("/")[0] for name in found} for found in files]
    differences = 0
    for name in sorted(items[0] ^ items[1]):
        differences += 1
        print(f"{name}: only in {old if name in items[0] else new}")
    for name in sorted(files[0].keys() | files[1].keys()):
        if name.split("/")[0] not in items[0] & items[1]:
            continue
        if name not in files[0] or name not in files[1]:
            differences += 1
            print(f"{name}: only in {old if name in files[0] else new}")
            continue
        before, after = (
            _made_alike(name, found[name].read_bytes(), answers["paths"])
            for found, answers in zip(files, said, strict=True)
        )
        if before != after:
            differences += 1
            for line in _told(name, before, after, files[0][name], files[1][name]):
                print(line)
    count = len(files[0].keys() | files[1].keys())
    print(f"{differences or 'no'} differences in {count} files of {len(items[0] | items[1])} items")
    return 1 if differences else 0


def _files(folder: Path, only: str) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for item in folder.iterdir()
        if item.is_dir() and fnmatch(item.name, only)
        for path in item.rglob("*")
        if path.is_file()
    }


def _made_alike(name: str, content: bytes, paths: dict[str, str]) -> bytes:
    """The content, without what a rule lets differ."""
    if name.endswith((".parquet", ".png")):
        return content
    # The longest first: the interpreter may lie in the checkout.
    for put, path in sorted(paths.items(), key=lambda each: -len(each[1])):
        content = content.replace(path.encode(), put.encode())
    rules = [rule for rule in RULES if fnmatch(name, rule.files)]
    left_out = {rule.key for rule in rules if rule.key}
    text = content.decode("utf-8", "surrogateescape")
    if left_out and text.lstrip().startswith(("{", "[")):
        try:
            # Numbers stay the text that they are.
            data = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
        except ValueError:
            pass
        else:
            text = json.dumps(_without(data, left_out), indent=1)
    for rule in rules:
        if rule.text:
            text = re.sub(rule.text, rule.put, text)
    return text.encode("utf-8", "surrogateescape")


def _without(data: Any, keys: set[str]) -> Any:
    if isinstance(data, dict):
        return {key: _without(value, keys) for key, value in data.items() if key not in keys}
    if isinstance(data, list):
        return [_without(value, keys) for value in data]
    return data


def _told(name: str, old: bytes, new: bytes, old_path: Path, new_path: Path) -> Iterator[str]:
    """The first difference, and how many there are."""
    if name.endswith(".parquet"):
        yield f"{name}: {_tables(old_path, new_path)}"
        return
    if name.endswith(".png"):
        yield f"{name}: another picture"
        return
    before, after = old.splitlines(), new.splitlines()
    most = max(len(before), len(after))
    lines = [k for k in range(most) if before[k : k + 1] != after[k : k + 1]]
    if not lines:
        yield f"{name}: ends of lines differ"
        return
    yield f"{name}: {len(lines)} of {most} lines differ, first line {lines[0] + 1}"
    for sign, text in (("-", before), ("+", after)):
        line = b"".join(text[lines[0] : lines[0] + 1]).decode("utf-8", "replace")
        yield f"  {sign} {line[:300]}"


def _tables(old: Path, new: Path) -> str:
    before, after = pq.read_table(old), pq.read_table(new)
    if before.schema != after.schema:
        return f"other columns: {before.schema.names}, {after.schema.names}"
    if before.num_rows != after.num_rows:
        return f"{before.num_rows} rows, now {after.num_rows}"
    for column in before.column_names:
        pairs = zip(before[column].to_pylist(), after[column].to_pylist(), strict=True)
        for row, (one, other) in enumerate(pairs):
            if repr(one) != repr(other):
                return f"column {column}, row {row}: {one!r}, now {other!r}"
    return "the same rows in other bytes"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record", help="run everything with this checkout")
    recorder.add_argument("folder", type=Path)
    comparer = commands.add_parser("compare", help="tell differences; exit code 1 if there are any")
    comparer.add_argument("old", type=Path)
    comparer.add_argument("new", type=Path)
    for each in (recorder, comparer):
        each.add_argument("--only", default="*", help="pattern of items, such as 'typed-*'")
    given = parser.parse_args()
    if given.command == "record":
        record(given.folder.resolve(), given.only)
    else:
        sys.exit(compare(given.old, given.new, given.only))


if __name__ == "__main__":
    main()
