"""Small applications with goodput, whose times can be worked out by hand, and files of profile tables."""

from __future__ import annotations

from pathlib import Path

from shadowprice.instances.goodput.application import Application, BatchRecord, PlacedStep

RINGS = {
    (1,): (1.0, 0.0),
    (2,): (1.0, 0.0),
    (1, 1): (2.0, 1.0),
    (1, 2): (2.0, 1.0),
    (2, 2): (2.0, 1.0),
}
"""Step, and exchange in it, of a local batch of 4 [s]; 1 s more for 4 samples more."""


def small(name: str) -> Application:
    """Batches 8 and 16, two epochs of 8 and 12 of progress; the noise of gradients grows from one to the other.

    Variance and square of the gradients are 1 and 1 in the first, 1 and 1/2 in the second, whatever the batch.
    """
    placed = tuple(
        PlacedStep(ring, local, step_s + (local - 4) / 4, sync_s)
        for ring, (step_s, sync_s) in RINGS.items()
        for local in (4, 8)
    )
    records = tuple(
        BatchRecord(batch, (8.0 * 8 / batch, 20.0 * 8 / batch), (8.0, 20.0), (1.0, 0.5), (1.0, 1.0))
        for batch in (8, 16)
    )
    return Application(name, placed, (), records)


GAIN = ((1.0, 1.0), (4 / 3, 1.5))
"""Of batch 8 and 16, in each epoch: 2 over 3/2, and 3/2 over 1."""


def write_tables(folder: Path, application: Application) -> Path:
    """An application as Pollux' simulator has it: a folder of CSV files."""
    place = folder / application.name
    place.mkdir(parents=True)
    rows = ["placement,local_bsz,step_time,sync_time"]
    for ring, local, step_s, sync_s in application.placed:
        rows.append(f"{''.join(map(str, ring))},{local},{step_s!r},{sync_s!r}")
    (place / "placements.csv").write_text("\n".join(rows) + "\n")
    for each in application.records:
        rows = ["progress,iteration,metric,grad_sqr,grad_var"]
        columns = each.progress, each.iterations, each.grad_sqr, each.grad_var
        rows += [f"{p!r},{i!r},0,{s!r},{v!r}" for p, i, s, v in zip(*columns, strict=True)]
        (place / f"validation-{each.batch}.csv").write_text("\n".join(rows) + "\n")
    return place
