"""Synthetic text for language models: from word w to w + 1, w + 2 or w + 3, at random."""

from __future__ import annotations

from collections.abc import Callable

import torch


def walks(
    batch: int, length: int, words: int
) -> Callable[[torch.Generator], tuple[torch.Tensor, torch.Tensor]]:
    """A function that draws texts of shape (batch, length), and the words that follow."""

    def draw(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        first = torch.randint(words, (batch, 1), generator=generator)
        moves = torch.randint(1, 4, (batch, length), generator=generator)
        text = torch.cat([first, moves], dim=1).cumsum(dim=1) % words
        return text[:, :-1], text[:, 1:]

    return draw
