"""Published models by name, as traces spell them: ``VGG19``, ``vgg-19`` and ``vgg_19`` are one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shadowprice.errors import InputError
from shadowprice.instances.graphs.model_layers import (
    LayeredModel,
    bert,
    gpt,
    mixture_of_experts,
    resnet,
    t5,
    vgg,
)


def plain_name(name: str) -> str:
    """A name without case, spaces, hyphens and underscores."""
    return name.lower().translate(str.maketrans("", "", "-_ "))


@dataclass(frozen=True)
class _SequenceModel:
    """Builder of a model of sequences: ``build(name, *sizes, tokens)``."""

    build: Callable[..., LayeredModel]
    sizes: tuple[int, ...]
    tokens: int
    most_tokens: int | None = None


_IMAGE_MODELS: dict[str, Callable[[str], LayeredModel]] = {
    "resnet-18": lambda name: resnet(name, (2, 2, 2, 2), bottleneck=False),
    "resnet-34": lambda name: resnet(name, (3, 4, 6, 3), bottleneck=False),
    "resnet-50": lambda name: resnet(name, (3, 4, 6, 3), bottleneck=True),
    "resnet-101": lambda name: resnet(name, (3, 4, 23, 3), bottleneck=True),
    "vgg-16": lambda name: vgg(name, (2, 2, 3, 3, 3)),
    "vgg-19": lambda name: vgg(name, (2, 2, 4, 4, 4)),
}

_SEQUENCE_MODELS: dict[str, _SequenceModel] = {
    "bert-base": _SequenceModel(bert, (12, 768), 512, 512),
    "bert-large": _SequenceModel(bert, (24, 1024), 512, 512),
    "gpt-2-small": _SequenceModel(gpt, (12, 768, 1024), 1024, 1024),
    "gpt-2-medium": _SequenceModel(gpt, (24, 1024, 1024), 1024, 1024),
    "gpt-2-large": _SequenceModel(gpt, (36, 1280, 1024), 1024, 1024),
    "gpt-2-xl": _SequenceModel(gpt, (48, 1600, 1024), 1024, 1024),
    "gpt-3-small": _SequenceModel(gpt, (12, 768, 2048), 2048, 2048),
    "gpt-3-medium": _SequenceModel(gpt, (24, 1024, 2048), 2048, 2048),
    "gpt-3-large": _SequenceModel(gpt, (24, 1536, 2048), 2048, 2048),
    "gpt-3-xl": _SequenceModel(gpt, (24, 2048, 2048), 2048, 2048),
    "gpt-3-2.7b": _SequenceModel(gpt, (32, 2560, 2048), 2048, 2048),
    "gpt-3-6.7b": _SequenceModel(gpt, (32, 4096, 2048), 2048, 2048),
    # The paper prints a width of 5,140, which its 40 heads of 128 channels do not add up to.
    "gpt-3-13b": _SequenceModel(gpt, (40, 5120, 2048), 2048, 2048),
    "gpt-3-175b": _SequenceModel(gpt, (96, 12288, 2048), 2048, 2048),
    "t5-small": _SequenceModel(t5, (6, 512, 8, 64, 2048), 512),
    "t5-base": _SequenceModel(t5, (12, 768, 12, 64, 3072), 512),
    "t5-large": _SequenceModel(t5, (24, 1024, 16, 64, 4096), 512),
    "t5-3b": _SequenceModel(t5, (24, 1024, 32, 128, 16384), 512),
    "t5-11b": _SequenceModel(t5, (24, 1024, 128, 128, 65536), 512),
    "mixtral-8x7b": _SequenceModel(mixture_of_experts, (32, 4096, 14336), 4096),
    "mixtral-8x22b": _SequenceModel(mixture_of_experts, (56, 6144, 16384), 4096),
}

MODEL_NAMES = (*_IMAGE_MODELS, *_SEQUENCE_MODELS)
"""Models that ``layered_model`` and ``model_job_graph`` know."""


def layered_model(name: str, tokens: int | None = None) -> LayeredModel:
    """The layers of a model.

    Parameters
    ----------
    name : str
        One of ``MODEL_NAMES``.
    tokens : int, optional
        Length of a sequence; by default that of the paper (4,096 for Mixtral). Only for models of
        sequences.

    Raises
    ------
    InputError
        If there is no such model, or it has no such sequences.
    """
    if name in _IMAGE_MODELS:
        if tokens is not None:
            raise InputError(f"model {name!r}: tokens is {tokens!r:.80}, expected none for images")
        return _IMAGE_MODELS[name](name)
    if name not in _SEQUENCE_MODELS:
        raise InputError(f"model {name!r:.80}: expected one of {', '.join(MODEL_NAMES)}")
    model = _SEQUENCE_MODELS[name]
    tokens = model.tokens if tokens is None else tokens
    most = model.most_tokens or 1_000_000
    if type(tokens) is not int or not 1 <= tokens <= most:
        raise InputError(
            f"model {name!r}: tokens is {tokens!r:.80}, expected an integer from 1 to {most}"
        )
    return model.build(name, *model.sizes, tokens)
