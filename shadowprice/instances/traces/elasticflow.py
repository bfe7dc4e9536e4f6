"""ElasticFlow's traces: job_id, submit_time, iteration, model_name, ddl, batch_size, num_gpu, duration.

Source: Gu et al., ASPLOS'23; github.com/pkusys/ElasticFlow, directory ElasticFlow/traces_for_ElasticFlow (read). Times
are seconds, ``ddl`` the deadline by the same clock, the duration that on ``num_gpu`` GPUs: jobs do not change their
width here. Its ``philly`` files have the columns of Philly's flat form.
"""

from __future__ import annotations

import numpy as np

from shadowprice.instances.traces.clocks import Seconds
from shadowprice.instances.traces.job_log import JobLog
from shadowprice.instances.traces.log_format import Computed, HeaderTable, LogFormat

HEADER = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration"


def _due(log: JobLog) -> Seconds:
    """Deadlines [s] from the first submission; infinity where there is none."""
    due, submit_s = log.numbers("ddl"), log.numbers("submit_time")
    return np.where(due > 0, due - submit_s.min(), np.inf)


FORMAT = LogFormat(
    name="elasticflow",
    about=__doc__,
    table=HeaderTable(HEADER),
    gpus="num_gpu",
    submit="submit_time",
    end="duration",
    columns={"id": "job_id", "model": "model_name", "deadline_s": Computed("ddl", _due)},
    notes=("work is the duration that the trace states for num_gpu GPUs; widths do not change",),
)
