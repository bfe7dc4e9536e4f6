"""Alibaba's trace of spot GPUs: job_name, organization, gpu_model, ..., submit_time, duration, job_type.

Source: Duan et al., ASPLOS'26; github.com/alibaba/clusterdata, cluster-trace-v2026-spot-gpu, file
``job_info_df.csv``. Times are seconds from the first submission. The gang is ``gpu_request`` times ``worker_num``,
which the examples bear out and the description does not say. The organisation becomes the tenant, the
GPU model the type that is allowed, and the priority (HP or Spot) the class.
"""

from __future__ import annotations

from shadowprice.instances.traces.clocks import Seconds
from shadowprice.instances.traces.job_log import JobLog
from shadowprice.instances.traces.log_format import Computed, HeaderTable, LogFormat

HEADER = (
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,"
    "duration,job_type"
)


def _gpus(log: JobLog) -> Seconds:
    return log.numbers("gpu_request") * log.numbers("worker_num")


def _cores(log: JobLog) -> Seconds:
    return log.numbers("cpu_request") * log.numbers("worker_num")


FORMAT = LogFormat(
    name="spot2026",
    about=__doc__,
    table=HeaderTable(HEADER),
    gpus=Computed("gpu_request", _gpus),
    cores=Computed("cpu_request", _cores),
    submit="submit_time",
    end="duration",
    columns={
        "id": "job_name",
        "tenant": "organization",
        "job_class": "job_type",
        "allowed_types": "gpu_model",
    },
)
