"""ResNet-18 for 32 x 32 pictures (He et al., CVPR 2016) on synthetic ones; --width 64 is full size."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_training import Batch, options, train

CLASSES = 10


class Block(nn.Module):
    """Two convolutions and a short cut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.short_cut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.short_cut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, pictures: Tensor) -> Tensor:
        """Same shape, smaller by the stride."""
        return nn.functional.relu(self.body(pictures) + self.short_cut(pictures))


def resnet18(width: int) -> nn.Module:
    """Eight blocks, widths w, 2w, 4w, 8w."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
    ]
    inputs = width
    for stage in range(4):
        outputs = width << stage
        layers += [Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def main() -> None:
    """Train."""
    parser = options(__doc__)
    parser.add_argument("--width", type=int, default=8)
    given = parser.parse_args()

    def draw(generator: torch.Generator) -> Batch:
        labels = torch.randint(CLASSES, (given.batch,), generator=generator)
        noise = torch.randn(given.batch, 3, 32, 32, generator=generator)
        return noise + 0.3 * labels[:, None, None, None] - 0.15 * CLASSES, labels

    train(given, lambda: resnet18(given.width), draw)


if __name__ == "__main__":
    main()
