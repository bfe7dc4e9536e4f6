"""Fields of Slurm's accounts: what a job held, on which nodes, and the limit of its run time.

Source: ``sacct``'s manual, AllocTRES, NodeList and Timelimit; hosts as ``scontrol show hostnames`` writes them.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import lru_cache

_LIMIT = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")
_TOTAL = re.compile(r"(?:^|,)gres/gpu=(\d+)(?=,|$)")
_TYPED = re.compile(r"(?:^|,)gres/gpu:([^=,]+)=(\d+)(?=,|$)")
_CORES = re.compile(r"(?:^|,)cpu=(\d+)(?=,|$)")
_RANGES = r"\[[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*\]"
_NAME = rf"(?:[^][, ]|{_RANGES})+"
_LIST = re.compile(rf"{_NAME}(?:,{_NAME})*")
_PART = re.compile(_NAME)
_BRACKETS = re.compile(r"\[([^]]*)\]")
_NO_NODES = frozenset(("", "None assigned", "(null)", "None", "Unknown"))

MOST_NODES = 100_000
"""Most nodes that a list of a log is read to name."""


@lru_cache(maxsize=4096)
def gpus_and_type(resources: str) -> tuple[int, str]:
    """GPUs among resources that were held, and their type if all are of one that is named.

    Examples
    --------
    >>> gpus_and_type("cpu=8,gres/gpu=2,gres/gpu:a100=2")
    (2, 'a100')
    >>> gpus_and_type("cpu=8,gres/gpu:a100=2,gres/gpu:h100=1")
    (3, '')
    """
    typed = _TYPED.findall(resources)
    named = sum(int(each) for _, each in typed)
    total = _TOTAL.search(resources)
    count = int(total.group(1)) if total else named
    types = {name for name, _ in typed}
    return count, types.pop() if len(types) == 1 and named == count else ""


@lru_cache(maxsize=4096)
def cores(resources: str) -> int:
    """Cores among resources that were held."""
    count = _CORES.search(resources)
    return int(count.group(1)) if count else 0


@lru_cache(maxsize=4096)
def limit_s(text: str) -> float:
    """Limit of run time (days-hours:minutes:seconds) [s]; infinity for UNLIMITED and what is none."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        return math.inf
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds) or math.inf


@lru_cache(maxsize=65536)
def node_names(text: str) -> tuple[str, ...]:
    """Nodes of a list as Slurm writes it, none twice; nothing for what is no such list.

    Examples
    --------
    >>> node_names("gpu[01-03,7],login")
    ('gpu01', 'gpu02', 'gpu03', 'gpu7', 'login')
    >>> node_names("None assigned")
    ()
    """
    if text in _NO_NODES or not _LIST.fullmatch(text):
        return ()
    names: list[str] = []
    for part in _PART.findall(text):
        # Texts between brackets are at odd places.
        choices = [
            _numbers(each) if k % 2 else [each] for k, each in enumerate(_BRACKETS.split(part))
        ]
        if math.prod(map(len, choices)) > MOST_NODES:
            return ()
        names += map("".join, itertools.product(*choices))
    return tuple(dict.fromkeys(names))


def _numbers(ranges: str) -> list[str]:
    """Numbers of ``01-03,7``, with their zeros; none for more than there are nodes."""
    numbers: list[str] = []
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        last = last or first
        if int(last) - int(first) >= MOST_NODES:
            return []
        numbers += [str(k).zfill(len(first)) for k in range(int(first), int(last) + 1)]
    return numbers
