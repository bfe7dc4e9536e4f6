"""Rows of a verified run in the form in which audits read what was run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shadowprice.analysis.outcome import Outcome

if TYPE_CHECKING:
    import pandas as pd


def schedule_rows(outcome: Outcome) -> pd.DataFrame:
    """Pieces of a run: job, node, gpus, start, end, submit, and whose jobs they are where that is known.

    Of instances whose speeds, charges or pairs a row cannot tell an audit takes times held for work.
    """
    import pandas as pd

    schedule, jobs = outcome.schedule, outcome.instance.workload
    columns = {
        "job": jobs.id[schedule.job],
        "node": schedule.node,
        "gpus": schedule.gpus,
        "start": schedule.start_s,
        "end": schedule.end_s,
        "submit": jobs.arrival_s[schedule.job],
    }
    for name, column in (
        ("user", jobs.name),
        ("tenant", jobs.tenant),
        ("partition", jobs.job_class),
    ):
        if (column != "").any():
            columns[name] = column[schedule.job]
    return pd.DataFrame(columns)
