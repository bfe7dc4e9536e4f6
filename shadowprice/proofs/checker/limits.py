"""Limits: how large records may be, and how much work beyond reading them a certificate may ask for.

Reading a record takes time and memory as its line is long, and so does what was proven of runs and jobs one by one.
What may take more, a table of products or a search, is counted in *steps* and *entries*, before it is done or while
it is, and refused as soon as they are too many.
"""

from __future__ import annotations

from .form import need

MOST_GPUS = 10**6
"""GPUs of a cluster, and so its nodes, which have one at least."""
MOST_TYPES = 64
"""GPU types of a cluster."""
MOST_JOBS = 10**7
MOST_STAGES = 256
MOST_LINKS = 4096
"""Stages and links of a job graph."""
MOST_WINDOWED = 12
"""Jobs of which windows of completions are cut."""
MOST_BITS = 2**20
"""Bits of a common measure of the run times of a job, at all the speeds at which it ran."""
MEASURE_BITS = 2**16
"""Bits of a common measure of the differences of the speeds that a job can have."""
MOST_ENTRIES = 2 * 10**7
"""Entries of a table."""
MOST_STEPS = 10**7
MOST_SPEEDS = 10**6
STEPS_OF_A_JOB = 5_000
"""Steps of some work: so many, of the speeds of all jobs fewer, and so many more for each job."""
MOST_SUMS = 10**8
"""The same of gangs that fit together, and of prices of rounds, whose steps are short or honestly many."""


class Effort:
    """Steps of some work that is not in proportion to the length of a certificate."""

    def __init__(self, what: str, jobs: int = 0, most: int = MOST_STEPS) -> None:
        self.what, self.left = what, most + STEPS_OF_A_JOB * jobs

    def spend(self, steps: int) -> None:
        """Count steps that are to be done, or were done just now."""
        self.left -= steps
        need(self.left >= 0, f"{self.what}: checking it takes too many steps")


def fits(entries: int, what: str) -> None:
    """Reject a table that is too large."""
    need(entries <= MOST_ENTRIES, f"{what}: checking it takes a table of too many entries")
