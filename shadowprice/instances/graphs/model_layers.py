"""Layers of published models: parameters, FLOPs and activations, counted from their sizes.

Per sample (an image or a sequence), one multiplication with its addition counted as 2 FLOPs:

- a matrix of n x m applied to t tokens: n m parameters, 2 t n m FLOPs;
- attention over t tokens with heads of total width w: 4 t^2 w FLOPs for scores and mixture;
- a convolution from c to c' channels with kernel k and output of v x v: k^2 c c' parameters,
  2 k^2 c c' v^2 FLOPs.

Norms, biases and activation functions count as parameters where the model has them; their FLOPs,
below a percent, do not. Embeddings that are also the output matrix count once, at the input. Sizes
are those of the papers named in each function, recalled, and checked against the number of
parameters of the released models, which they meet exactly (see the tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layer:
    """The smallest part of a model that is not cut.

    Parameters
    ----------
    name : str
    parameters : int
    forward_flop : float
        Of one sample, forward pass.
    outputs : float
        Numbers of one sample that the next layer reads.
    reduced : float
        Numbers of one sample that parts of a layer split by channels, heads or experts must add up
        (AllReduce) in the forward pass; collecting outputs counts half. As many in the backward
        pass.
    reads_memory : bool
        Whether it also reads the output of the encoder.
    """

    name: str
    parameters: int
    forward_flop: float
    outputs: float
    reduced: float = 0.0
    reads_memory: bool = False


@dataclass(frozen=True, slots=True)
class LayeredModel:
    """A model as a sequence of layers.

    Parameters
    ----------
    name : str
    layers : tuple of Layer
    encoder_layers : int
        How many of the first layers make up the encoder that later ones read; 0 for none.
    """

    name: str
    layers: tuple[Layer, ...]
    encoder_layers: int = 0

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def forward_flop(self) -> float:
        """FLOPs of one sample, forward pass."""
        return sum(layer.forward_flop for layer in self.layers)


def resnet(name: str, blocks: Sequence[int], *, bottleneck: bool) -> LayeredModel:
    """ResNet on images of 224 x 224 (He, Zhang, Ren, Sun, CVPR 2016, table 1).

    Parameters
    ----------
    blocks : sequence of int
        Residual blocks of width 64, 128, 256 and 512, at 56, 28, 14 and 7 pixels.
    bottleneck : bool
        Whether blocks are 1x1, 3x3, 1x1 convolutions, the last four times as wide, with the stride
        in the 3x3 as in common implementations, instead of two 3x3.
    """
    layers = [Layer("stem", 49 * 3 * 64 + 128, 2 * 49 * 3 * 64 * 112**2, 64 * 56**2, 32 * 112**2)]
    channels, pixels_in = 64, 56
    for group, repeats in enumerate(blocks):
        width, pixels = 64 * 2**group, 56 // 2**group
        out = 4 * width if bottleneck else width
        for block in range(repeats):
            if bottleneck:
                convolutions = [
                    (1, channels, width, pixels_in),
                    (3, width, width, pixels),
                    (1, width, out, pixels),
                ]
            else:
                convolutions = [(3, channels, width, pixels), (3, width, width, pixels)]
            if channels != out or pixels != pixels_in:
                convolutions.append((1, channels, out, pixels))
            layers.append(_convolutions(f"block {group + 1}.{block + 1}", convolutions, norm=True))
            channels, pixels_in = out, pixels
    layers.append(_dense("classes", channels, 1000))
    return LayeredModel(name, tuple(layers))


def vgg(name: str, convolutions: Sequence[int]) -> LayeredModel:
    """VGG on images of 224 x 224 (Simonyan, Zisserman, ICLR 2015, table 1).

    Parameters
    ----------
    convolutions : sequence of int
        3x3 convolutions of 64, 128, 256, 512 and 512 channels, each group followed by pooling.
    """
    layers = []
    channels = 3
    for group, (repeats, width) in enumerate(
        zip(convolutions, (64, 128, 256, 512, 512), strict=True)
    ):
        pixels = 224 // 2**group
        for k in range(repeats):
            sizes = [(3, channels, width, pixels)]
            pooled = pixels // 2 if k == repeats - 1 else pixels
            layers.append(
                _convolutions(f"conv {group + 1}.{k + 1}", sizes, norm=False, pixels_out=pooled)
            )
            channels = width
    layers += [
        _dense("dense 1", 512 * 7 * 7, 4096),
        _dense("dense 2", 4096, 4096),
        _dense("classes", 4096, 1000),
    ]
    return LayeredModel(name, tuple(layers))


def bert(name: str, blocks: int, width: int, tokens: int) -> LayeredModel:
    """BERT, uncased vocabulary (Devlin, Chang, Lee, Toutanova, NAACL 2019, section 3).

    FLOPs of the output over the vocabulary are counted for every token.
    """
    embedding = (30522 + 512 + 2) * width + 2 * width
    block = _block(width, width, 4 * width, tokens, extra=13 * width)
    pooler = width * width + width
    return _language_model(name, blocks, block, embedding, pooler, 30522, width, tokens)


def gpt(name: str, blocks: int, width: int, context: int, tokens: int) -> LayeredModel:
    """GPT-2 and GPT-3 (Radford et al. 2019, table 2; Brown et al. 2020, table 2.1).

    Attention is counted over all pairs of tokens, as in Narayanan et al. (SC 2021), appendix.
    """
    embedding = (50257 + context) * width
    block = _block(width, width, 4 * width, tokens, extra=13 * width)
    return _language_model(name, blocks, block, embedding, 2 * width, 50257, width, tokens)


def mixture_of_experts(
    name: str, blocks: int, width: int, hidden: int, tokens: int
) -> LayeredModel:
    """Mixtral, 8 experts of which 2 work on a token (Jiang et al. 2024, arXiv 2401.04088, table 1).

    Keys and values have 1,024 channels; experts are gated, three matrices each; routing balanced.
    """
    experts, active, keys, vocabulary = 8, 2, 1024, 32000
    attention = 2 * width * width + 2 * width * keys
    router = width * experts
    expert = 3 * width * hidden
    flop = 2.0 * tokens * (attention + router + active * expert) + 4.0 * tokens**2 * width
    block = Layer(
        "block",
        attention + router + experts * expert + 2 * width,
        flop,
        tokens * width,
        2.0 * tokens * width,
    )
    head = vocabulary * width + width
    embedding = vocabulary * width
    return _language_model(name, blocks, block, embedding, head, vocabulary, width, tokens)


def t5(
    name: str, blocks: int, width: int, heads: int, head_width: int, hidden: int, tokens: int
) -> LayeredModel:
    """T5, as many blocks in encoder and decoder (Raffel et al., JMLR 2020, section 3.7).

    Parameters
    ----------
    tokens : int
        Of the input and of the output.
    """
    vocabulary, buckets = 32128, 32
    inner = heads * head_width
    encoder = _block(width, inner, hidden, tokens, extra=2 * width)
    cross = _block(width, inner, 0, tokens, extra=width)
    decoder = Layer(
        "decoder",
        encoder.parameters + cross.parameters,
        encoder.forward_flop + cross.forward_flop,
        tokens * width,
        3.0 * tokens * width,
        reads_memory=True,
    )
    bias = buckets * heads
    embedded = float(tokens * width)
    layers = [Layer("embedding", vocabulary * width + bias, 0.0, embedded, embedded)]
    layers += [_renamed(encoder, f"encoder {k + 1}") for k in range(blocks)]
    layers.append(Layer("output embedding", bias, 0.0, embedded, embedded))
    layers += [_renamed(decoder, f"decoder {k + 1}") for k in range(blocks)]
    layers.append(Layer("vocabulary", 2 * width, 2.0 * tokens * width * vocabulary, 0.0))
    return LayeredModel(name, tuple(layers), encoder_layers=blocks + 1)


def _block(width: int, inner: int, hidden: int, tokens: int, extra: int) -> Layer:
    """Attention of total head width ``inner`` and two dense matrices; ``extra`` parameters."""
    matrices = 4 * width * inner + 2 * width * hidden
    flop = 2.0 * tokens * matrices + 4.0 * tokens**2 * inner
    return Layer("block", matrices + extra, flop, tokens * width, 2.0 * tokens * width)


def _language_model(
    name: str,
    blocks: int,
    block: Layer,
    embedding: int,
    head: int,
    vocabulary: int,
    width: int,
    tokens: int,
) -> LayeredModel:
    embedded = float(tokens * width)
    first = Layer("embedding", embedding, 0.0, embedded, embedded)
    last = Layer("vocabulary", head, 2.0 * tokens * width * vocabulary, 0.0)
    between = [_renamed(block, f"block {k + 1}") for k in range(blocks)]
    return LayeredModel(name, (first, *between, last))


def _renamed(layer: Layer, name: str) -> Layer:
    return Layer(
        name, layer.parameters, layer.forward_flop, layer.outputs, layer.reduced, layer.reads_memory
    )


def _convolutions(
    name: str,
    sizes: Sequence[tuple[int, int, int, int]],
    *,
    norm: bool,
    pixels_out: int | None = None,
) -> Layer:
    """A layer of convolutions (kernel, channels in, channels out, pixels out)."""
    weights = sum(k * k * c * out for k, c, out, _ in sizes)
    offsets = sum((2 if norm else 1) * out for _, _, out, _ in sizes)
    flop = sum(2.0 * k * k * c * out * v * v for k, c, out, v in sizes)
    collected = sum(out * v * v for _, _, out, v in sizes)
    _, _, out, pixels = sizes[-1]
    pixels = pixels if pixels_out is None else pixels_out
    return Layer(name, weights + offsets, flop, float(out * pixels * pixels), collected / 2)


def _dense(name: str, inputs: int, outputs: int) -> Layer:
    return Layer(
        name, inputs * outputs + outputs, 2.0 * inputs * outputs, float(outputs), outputs / 2
    )
