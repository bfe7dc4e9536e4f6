"""A language model of two LSTM layers on synthetic text: a noisy walk over the words."""

from __future__ import annotations

from torch import Tensor, nn
from torch_training import options, train
from walks import walks


class LanguageModel(nn.Module):
    """Words in, scores of the next word out."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.body = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, words)

    def forward(self, text: Tensor) -> Tensor:
        """Shape (batch, length) to (batch, words, length)."""
        return self.head(self.body(self.embedding(text))[0]).transpose(1, 2)


def main() -> None:
    """Train."""
    parser = options(__doc__)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--length", type=int, default=35)
    given = parser.parse_args()
    draw = walks(given.batch, given.length, given.words)
    train(given, lambda: LanguageModel(given.words, given.width), draw)


if __name__ == "__main__":
    main()
