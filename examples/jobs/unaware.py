"""A script that knows of no scheduler: it saves on SIGTERM, and goes on from what it saved.

It fits a line by gradient descent, one point a step. Exit code 143: stopped, and saved.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--step-ms", type=float, default=10.0)
    given = parser.parse_args()
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    file = given.checkpoints / "state.json"
    state = {"step": 0, "slope": 0.0, "offset": 0.0}
    if file.exists():
        state = json.loads(file.read_text())
        print(f"goes on at step {state['step']}", flush=True)
    while state["step"] < given.steps and not asked:
        draw = random.Random(state["step"])
        place = draw.uniform(-1.0, 1.0)
        error = (
            state["slope"] * place + state["offset"] - (3.0 * place + 1.0 + draw.gauss(0.0, 0.1))
        )
        state["slope"] -= 0.05 * error * place
        state["offset"] -= 0.05 * error
        state["step"] += 1
        time.sleep(given.step_ms / 1e3)
    given.checkpoints.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(state))
    os.replace(temporary, file)
    print(f"step {state['step']}: {state['slope']:.3f} x + {state['offset']:.3f}", flush=True)
    if state["step"] < given.steps:
        sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
