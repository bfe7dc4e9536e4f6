"""Job graphs of published models, split by data, pipeline, tensor or mixed parallelism.

With batch b samples a replica and iteration, e bytes a number, device speed F (efficiency included)
and t shards, a pipeline stage of layers l has

- forward time b sum_l forward_flop_l / (t F), backward time twice that (gradients of inputs and of
  parameters; Kaplan et al. 2020, arXiv 2001.08361, section 2.1);
- e sum_l parameters_l / t bytes of parameters;
- b e outputs bytes to the next stage from its last layer, from each shard to the same shard
  (Narayanan et al., SC 2021, without their scatter/gather);
- 2 b e sum_l reduced_l / t bytes between each pair of its shards. A ring AllReduce of n bytes takes
  2 (t - 1) / t n / B, and there is one in the forward and one in the backward pass. A link of d
  bytes counts 2 d at each end, and a shard has t - 1 of them, so d = 2 n / t takes as long. For
  transformers this is Megatron-LM's split (Shoeybi et al. 2019, arXiv 1909.08053): two sums a block
  and pass; convolutions are split by output channels.

Stages are the contiguous groups of layers whose largest has the least FLOPs. The encoder of T5
sends its output to every stage that has decoder blocks. Not counted: the copy of tied embeddings
at a pipeline's end; activations that are computed again. Shards of several replicas exchange
evenly with all replicas of the other shards, as every link of a job graph does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations

from shadowprice.errors import InputError
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.model_layers import Layer, LayeredModel
from shadowprice.instances.speeds.model_names import layered_model

BACKWARD_PER_FORWARD = 2.0
"""FLOPs of the backward pass over those of the forward pass."""


@dataclass(frozen=True)
class ComputeDevice:
    """A GPU that computes.

    Parameters
    ----------
    flop_per_s : float
        Peak speed [FLOP/s].
    efficiency : float
        Share of it that is reached, in (0, 1].
    """

    flop_per_s: float
    efficiency: float = 0.4

    def __post_init__(self) -> None:
        _check("device", "flop_per_s", self.flop_per_s, 1.0, 1e30)
        _check("device", "efficiency", self.efficiency, 1e-6, 1.0)


@dataclass(frozen=True)
class Parallelism:
    """Degrees of parallelism of a job; it takes data * pipeline * tensor GPUs.

    Parameters
    ----------
    data : int
        Replicas of every stage, each with its own samples.
    pipeline : int
        Stages of consecutive layers.
    tensor : int
        Shards of every layer.
    microbatches : int
        Of a pipeline flushed every iteration; 0 for a steady one.
    """

    data: int = 1
    pipeline: int = 1
    tensor: int = 1
    microbatches: int = 0

    def __post_init__(self) -> None:
        for name, least in (("data", 1), ("pipeline", 1), ("tensor", 1), ("microbatches", 0)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= 1_000_000:
                raise InputError(
                    f"parallelism: {name} is {value!r:.80}, expected an integer from {least} to 1000000"
                )


def model_job_graph(
    model: str | LayeredModel,
    parallelism: Parallelism,
    batch: int,
    device: ComputeDevice,
    *,
    bytes_per_number: float = 4.0,
    tokens: int | None = None,
) -> JobGraph:
    """One training job of a model.

    Parameters
    ----------
    model : str or LayeredModel
        A name of ``MODEL_NAMES``, or layers of your own.
    batch : int
        Samples of one replica in one iteration, all microbatches together.
    bytes_per_number : float
        Of parameters, gradients and activations; 2 for half precision.
    tokens : int, optional
        As for ``layered_model``.

    Raises
    ------
    InputError
        If a number is out of range or the pipeline has more stages than the model has layers.

    Notes
    -----
    Formulas in the module. O(n^2 log n) for n layers.
    """
    layered = layered_model(model, tokens) if isinstance(model, str) else model
    if type(batch) is not int or not 1 <= batch <= 1_000_000:
        raise InputError(
            f"model {layered.name!r}: batch is {batch!r:.80}, expected an integer from 1 to 1000000"
        )
    _check(f"model {layered.name!r}", "bytes_per_number", bytes_per_number, 0.125, 16.0)
    groups = balanced_groups([layer.forward_flop for layer in layered.layers], parallelism.pipeline)
    s_per_flop = 1.0 / (device.flop_per_s * device.efficiency)
    stages = [
        stage
        for start, stop in groups
        for stage in _shards(
            layered.layers[start:stop], parallelism, batch * s_per_flop, bytes_per_number
        )
    ]
    links = _links(layered, groups, parallelism.tensor, batch * bytes_per_number)
    return JobGraph(layered.name, tuple(stages), tuple(links), parallelism.microbatches)


def _shards(
    part: Sequence[Layer], parallelism: Parallelism, s_per_flop: float, bytes_per_number: float
) -> list[Stage]:
    """The stages that share a group of layers."""
    shards = parallelism.tensor
    forward_s = sum(layer.forward_flop for layer in part) * s_per_flop / shards
    held = sum(layer.parameters for layer in part) * bytes_per_number / shards
    name = part[0].name if len(part) == 1 else f"{part[0].name} - {part[-1].name}"
    return [
        Stage(
            name if shards == 1 else f"{name}, shard {shard + 1}",
            parallelism.data,
            forward_s,
            BACKWARD_PER_FORWARD * forward_s,
            held,
        )
        for shard in range(shards)
    ]


def _links(
    model: LayeredModel, groups: Sequence[tuple[int, int]], shards: int, bytes_each: float
) -> list[Link]:
    """Links of the pipeline, shard to shard, and between the shards of each of its stages."""
    links = [
        Link(p * shards + shard, q * shards + shard, sent * bytes_each)
        for (p, q), sent in _boundaries(model, groups).items()
        for shard in range(shards)
    ]
    for p, (start, stop) in enumerate(groups):
        reduced = sum(layer.reduced for layer in model.layers[start:stop])
        links += [
            Link(p * shards + one, p * shards + other, 2.0 * reduced * bytes_each / shards, True)
            for one, other in combinations(range(shards), 2)
        ]
    return links


def balanced_groups(sizes: Sequence[float], groups: int) -> list[tuple[int, int]]:
    """Contiguous groups, none empty, whose largest sum is smallest.

    Parameters
    ----------
    sizes : sequence of float, shape (n,)
        At least 0.

    Returns
    -------
    list of (int, int)
        Start and stop of each group.

    Raises
    ------
    InputError
        If there are more groups than sizes.

    Notes
    -----
    The least largest sum is that of some contiguous group: a bisection over all of them, each
    tested by filling groups as far as they go. O(n^2 log n).
    """
    n = len(sizes)
    if not 1 <= groups <= n:
        raise InputError(f"pipeline of {groups} stages, expected 1 to {n}, the number of layers")
    sums = sorted(
        {total for start in range(n) for total in accumulate(sizes[start:]) if total >= max(sizes)}
    )
    best = bisect_left(sums, True, key=lambda most: len(_filled(sizes, most)) <= groups)
    stops = _filled(sizes, sums[best])
    # Cutting a group in two makes no sum larger.
    spare = [k for k in range(1, n) if k not in set(stops)]
    stops = sorted(stops + spare[len(spare) - (groups - len(stops)) :])
    return list(zip([0, *stops[:-1]], stops, strict=True))


def _filled(sizes: Sequence[float], most: float) -> list[int]:
    """Stops of groups filled from the left up to a sum; a size above it gets its own group."""
    stops = []
    total = 0.0
    for k, size in enumerate(sizes):
        if total + size > most and k:
            stops.append(k)
            total = 0.0
        total += size
    return [*stops, len(sizes)]


def _boundaries(
    model: LayeredModel, groups: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """Numbers of a sample that pass from one pipeline stage to another."""
    sent: dict[tuple[int, int], float] = {}
    for p in range(len(groups) - 1):
        sent[p, p + 1] = model.layers[groups[p][1] - 1].outputs
    if not model.encoder_layers:
        return sent
    last = model.encoder_layers - 1
    source = next(p for p, (_, stop) in enumerate(groups) if last < stop)
    for p in range(source + 1, len(groups)):
        start, stop = groups[p]
        reads = any(layer.reads_memory for layer in model.layers[start:stop])
        # A stage that starts where the encoder ends gets its output as from any layer before.
        if reads and start != model.encoder_layers:
            sent[source, p] = sent.get((source, p), 0.0) + model.layers[last].outputs
    return sent


def _check(what: str, name: str, value: object, low: float, high: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:  # type: ignore[operator]
        raise InputError(f"{what}: {name} is {value!r:.80}, expected a number from {low} to {high}")
