"""A language model of two Transformer layers on synthetic text: a noisy walk over the words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_training import options, train
from walks import walks


class LanguageModel(nn.Module):
    """Words in, scores of the next word out."""

    def __init__(self, words: int, width: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)
        self.register_buffer("mask", torch.ones(length, length).triu(1).bool(), persistent=False)

    def forward(self, text: Tensor) -> Tensor:
        """Shape (batch, length) to (batch, words, length)."""
        seen = self.body(self.embedding(text) + self.positions, mask=self.mask)
        return self.head(seen).transpose(1, 2)


def main() -> None:
    """Train."""
    parser = options(__doc__)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--length", type=int, default=35)
    given = parser.parse_args()
    draw = walks(given.batch, given.length, given.words)
    train(given, lambda: LanguageModel(given.words, given.width, given.length), draw)


if __name__ == "__main__":
    main()
