"""Shanghai AI Laboratory's Acme logs of two clusters for language models, Seren and Kalos.

Source: Hu et al., NSDI'24; github.com/InternLM/AcmeTrace at 6d6ac9c (CC-BY-4.0), files
``data/job_trace/trace_{seren,kalos}.csv``. Times bear a zone. Run time is end - start: in Kalos the column
``duration`` is end - submit and so contains the time in the queue, although its description says otherwise.
The user becomes the tenant, the type of the job (Pretrain, Eval, ...) its class; the other columns are Helios'.
"""

from __future__ import annotations

from dataclasses import replace

from shadowprice.instances.traces import helios
from shadowprice.instances.traces.log_format import HeaderTable

HEADER = (
    "job_id,user,gpu_num,type,state,submit_time,start_time,end_time,node_num,cpu_num,"
    "duration,queue,gpu_time"
)

FORMAT = replace(
    helios.FORMAT,
    name="acme",
    about=__doc__,
    table=HeaderTable(HEADER, among=HEADER),
    columns={
        "id": "job_id",
        "tenant": "user",
        "job_class": "type",
        "nodes": helios.NODES,
    },
    notes=("times bear a zone and are told in UTC",),
)
