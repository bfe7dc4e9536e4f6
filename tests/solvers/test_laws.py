"""Laws that every policy obeys, whatever the instance: the battery for users, on our own policies."""

from __future__ import annotations

import pytest
from hypothesis import settings

from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.proofs.testing import Scaling, laws
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.registry import policies

POLICIES = policies()

# The head blocks, jobs wait for their virtual completion, or nothing starts within a round.
WAITS = {"fifo", "sjf", "easy", "spjf", "spwf", "asrpt", "asrpt-early", "asrpt-guarded"}
WAITS |= {"hadar", "hadar-committed", "oasis", "quickswap"}

# GPUs of rounds to come are given away, and a node that fails takes them.
COMMITS = {"hadar-committed", "oasis"}

TIMES = {
    **dict.fromkeys(("las", "gandiva", "gandiva-reactive"), ("quantum_s",)),
    "server-filling-gittins": ("least_s",),
    "b-scaling": ("first_s",),
    "asrpt-robust": ("cycle_s",),
    **dict.fromkeys(("las2d", "gittins2d"), ("thresholds_gpu_s",)),
    **dict.fromkeys(("gavel", "hadar", "drf", "tetris"), ("round_s",)),
    **{name: ("round_s",) for name in POLICIES if name.startswith("synergy-")},
}

SCALING = {
    # Virtual completions are rounded up to the time grid before anything starts at them; with
    # early starts a tick can decide which job goes first.
    "asrpt": Scaling.ROUNDED,
    "asrpt-early": Scaling.NONE,
    "asrpt-robust": Scaling.NONE,
    "asrpt-guarded": Scaling.NONE,
    # Rounds begin at whole multiples of their length, whatever the times of the jobs.
    "hadar-committed": Scaling.NONE,
    "oasis": Scaling.NONE,
}

# A tenth of the profile's examples for each of some thirty policies is three times as many a law.
EXAMPLES = max(settings().max_examples // 10, 1)


def battery(name: str) -> type:
    return laws(
        POLICIES[name],
        waits=name in WAITS,
        times=TIMES.get(name, ()),
        scaling=SCALING.get(name, Scaling.EXACT),
        commits=name in COMMITS,
        examples=EXAMPLES,
    )


# Classes that pytest collects, as a user's: test_fifo::test_schedules_are_valid.
globals().update({f"test_{name}": battery(name) for name in POLICIES})


def test_every_declared_exception_is_a_policy() -> None:
    assert set(POLICIES) >= WAITS | COMMITS | set(TIMES) | set(SCALING)


def test_reading_undeclared_knowledge_is_an_error() -> None:
    from shadowprice.errors import PolicyError
    from shadowprice.solvers.classic.srtf import Srtf

    class Peeking(Srtf):
        knows = frozenset[Knowledge]()

    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[1, 2])
    with pytest.raises(PolicyError, match="reads 'duration', but declares that it knows nothing"):
        run(Instance(Cluster.parse("1x1"), jobs), Peeking())
