"""Code as a user writes it, for tests of what runs it: a file of policies, and an installed distribution."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

POLICIES = '''
from dataclasses import dataclass
from typing import ClassVar

from shadowprice.solvers.policy import Decision, Knowledge, State


@dataclass(frozen=True)
class Widest:
    """Start waiting jobs, the widest gang first; wait for window_s before that."""

    name: str = "widest"
    window_s: float = 0.0
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        late = state.now_s - self.window_s
        arrival_s = dict(zip(state.waiting, state.columns(state.waiting).arrival_s, strict=True))
        for job in sorted(state.waiting, key=lambda job: -state.gang[job]):
            if arrival_s[job] <= late:
                decision.start(job)
            else:
                decision.wake_at(arrival_s[job] + self.window_s)
        return decision


WIDEST = Widest()
SEVERAL = [Widest("at once"), Widest("later", 5.0)]
'''

TRACE = "id,gpus,submit,duration\na,1,0,30\nb,2,1,10\nc,1,2,5\nd,2,3,40\ne,1,4,1\n"


def write_distribution(
    site: Path,
    modules: Mapping[str, str],
    groups: Mapping[str, Mapping[str, str]],
    name: str = "tiny",
) -> None:
    """A distribution as an installer leaves it: modules, and metadata with entry points.

    Parameters
    ----------
    modules : mapping of str to str
        Texts of modules by name.
    groups : mapping of str to mapping of str to str
        Targets by the name of the entry point, by group.
    """
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{key} = {target}" for key, target in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, text in modules.items():
        (site / f"{module}.py").write_text(text)


def install(monkeypatch: pytest.MonkeyPatch, site: Path) -> None:
    """Let this process find what was written."""
    monkeypatch.syspath_prepend(str(site))
