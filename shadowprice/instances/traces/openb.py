"""Alibaba's openb pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli, ..., scheduled_time.

Source: Weng et al., ATC'23; github.com/alibaba/clusterdata, cluster-trace-gpu-v2023, files ``csv/openb_pod_list_*``.
Times are seconds. ``pod_phase`` is the phase when the list was made, not how a pod ended. 44 % of the pods
with GPUs ask for a part of one (``gpu_milli`` below 1,000). The quality of service becomes the class,
``gpu_spec`` the GPU types that are allowed.
"""

from __future__ import annotations

from shadowprice.instances.traces.clocks import Seconds
from shadowprice.instances.traces.job_log import JobLog
from shadowprice.instances.traces.log_format import Computed, HeaderTable, LogFormat, Recording

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time"
)


def _gpus(log: JobLog) -> Seconds:
    return log.numbers("num_gpu") * log.numbers("gpu_milli") / 1000.0


def _cores(log: JobLog) -> Seconds:
    return log.numbers("cpu_milli") / 1000.0


FORMAT = LogFormat(
    name="openb2023",
    about=__doc__,
    table=HeaderTable(HEADER),
    gpus=Computed("num_gpu", _gpus),
    cores=Computed("cpu_milli", _cores),
    submit="creation_time",
    start="scheduled_time",
    end="deletion_time",
    columns={"id": "name", "job_class": "qos", "allowed_types": "gpu_spec"},
    recorded=Recording(start="scheduled_time", end="deletion_time"),
)
