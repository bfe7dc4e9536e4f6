"""SenseTime's Helios logs, one CSV a cluster: job_id, user, vc, gpu_num, ..., duration, queue.

Source: Hu et al., SC'21; github.com/S-Lab-System-Group/HeliosData at 159f0ca (CC-BY-4.0), files
``data/CLUSTER/cluster_log.csv``. Times are local, without a zone, where clocks are not changed. The
virtual cluster becomes the tenant, the user the name. Run time is end - start.
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
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)

NODES = above_zero("node_num", 0)

FORMAT = LogFormat(
    name="helios",
    about=__doc__,
    table=HeaderTable(HEADER),
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
        "tenant": "vc",
        "name": "user",
        "nodes": NODES,
    },
    notes=("times are local, without a zone; of Helios' clusters clocks are not changed",),
    recorded=Recording(start="start_time", end="end_time"),
)
