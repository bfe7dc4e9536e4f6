"""Shanghai AI Laboratory's Acme logs of two clusters for language models, Seren and Kalos.

Source: Hu et al., NSDI'24; github.com/InternLM/AcmeTrace at 6d6ac9c (CC-BY-4.0), files
``data/job_trace/trace_{seren,kalos}.csv``. Times bear a zone. Run time is end - start: in Kalos the column
``duration`` is end - submit and so contains the time in the queue, although its description says otherwise.
The user becomes the tenant, the type of the job (Pretrain, Eval, ...) its class.
"""

from __future__ import annotations

from shadowprice.instances.traces.clocks import LogClock
from shadowprice.instances.traces.log_format import (
    SLURM_ENDS,
    EndStates,
    HeaderTable,
    LogFormat,
    Recording,
    above_zero,
)

HEADER = (
    "job_id,user,gpu_num,type,state,submit_time,start_time,end_time,node_num,cpu_num,"
    "duration,queue,gpu_time"
)

FORMAT = LogFormat(
    name="acme",
    about=__doc__,
    table=HeaderTable(HEADER, among=HEADER),
    gpus="gpu_num",
    cores="cpu_num",
    states=EndStates("state", completed=("COMPLETED",), ends=SLURM_ENDS),
    clock=LogClock(),
    submit="submit_time",
    start="start_time",
    end="end_time",
    stated_s="duration",
    columns={
        "id": "job_id",
        "tenant": "user",
        "job_class": "type",
        "nodes": above_zero("node_num", 0),
    },
    notes=("times bear a zone and are told in UTC",),
    recorded=Recording(start="start_time", end="end_time"),
)
