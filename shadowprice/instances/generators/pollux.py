"""Pollux's workload: jobs of six applications that ask for replicas and a batch, within eight hours.

Source: Qiao et al., OSDI'21, section 5.2, and the workloads of its artifact (github.com/petuum/adaptdl, branch
osdi21-artifact, simulator/workloads*; counted): Philly's jobs, by GPU time, are CIFAR-10 or NCF, DeepSpeech2 or BERT,
YOLOv3, and ImageNet, at replicas that the application uses to between 50 and 80 %. Recorded: shares of the
applications, their requests with the counts of each, and arrivals by hour, of its sixteen workloads of loads 0.5 and
1.0 together. Derived: independent draws, arrivals uniform within an hour. Run times are those at the request, computed
from the artifact's profile tables; with such tables (``--with goodput:tables=...``) jobs may adapt it.
"""

from __future__ import annotations

import numpy as np

from shadowprice.instances.generators.arrivals import check_jobs, check_number, random_generator
from shadowprice.instances.workload import Workload

NAME = "pollux"

REQUESTS = (
    ("bert", 6, 384, 3093.0, 35),
    ("bert", 8, 384, 2460.0, 27),
    ("bert", 12, 384, 1594.0, 29),
    ("bert", 16, 384, 1324.0, 39),
    ("cifar10", 6, 2048, 897.0, 196),
    ("cifar10", 8, 2048, 869.0, 175),
    ("cifar10", 12, 4096, 610.0, 196),
    ("cifar10", 16, 4096, 479.0, 161),
    ("deepspeech2", 6, 320, 4136.0, 53),
    ("deepspeech2", 8, 320, 3518.0, 56),
    ("deepspeech2", 12, 640, 2480.0, 67),
    ("imagenet", 24, 3200, 31805.0, 9),
    ("imagenet", 32, 6400, 27434.0, 13),
    ("imagenet", 48, 6400, 19688.0, 11),
    ("ncf", 1, 32768, 46.0, 761),
    ("yolov3", 4, 64, 14100.0, 92),
)
"""Application, replicas, batch, run time [s], and how often, of 1,920 jobs."""

HOURS = (214, 216, 137, 214, 297, 428, 230, 184)
"""Arrivals by eighth of the time, of these jobs."""


def generate(*, jobs: int = 160, seed: int = 0, hours: float = 8.0) -> Workload:
    """The mix in order of arrival; O(jobs log jobs).

    Parameters
    ----------
    hours : float
        Time within which all jobs arrive [h].
    """
    jobs = check_jobs(jobs)
    hours = check_number("hours", hours, 0.0, 1e5)
    rng = random_generator(seed, 23)
    counts = np.array([count for *_, count in REQUESTS], dtype=np.float64)
    request = rng.choice(len(REQUESTS), jobs, p=counts / counts.sum())
    eighth = rng.choice(len(HOURS), jobs, p=np.array(HOURS) / sum(HOURS))
    arrival_s = 3600.0 * hours / len(HOURS) * (eighth + rng.random(jobs))
    model, gpus, batch, work, _ = (
        np.array(each, dtype=object)[request] for each in zip(*REQUESTS, strict=True)
    )
    return Workload.from_columns(
        arrival_s=np.sort(np.floor(arrival_s)),
        gpus=gpus,
        work=work,
        model=model,
        batch_size=batch,
        source=f"pollux mix, seed {seed}",
    )
