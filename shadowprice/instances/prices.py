"""Public prices of GPUs, used where an input names a type and gives no price.

Google Cloud, preemptible, in dollars per GPU and hour, as in Gavel's released code
(github.com/stanford-futuredata/gavel at c4fa400, 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PRICES_PER_GPU_H: Mapping[str, float] = MappingProxyType({"v100": 0.74, "p100": 0.43, "k80": 0.135})
