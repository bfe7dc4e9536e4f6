"""Microsoft's Philly trace, flattened: timestamp, duration, num_gpus, gpu_time, cluster.

Source: Jeon et al., ATC'19; github.com/msr-fiddle/philly-traces (CC-BY-4.0), in the flat form
of the ElasticFlow repository (Apache-2.0). Bad rows are dropped and reported. The virtual cluster becomes
the tenant; ids are row numbers from 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import MAX_TIME_S, TICK_S
from shadowprice.instances.traces.clocks import LogClock
from shadowprice.instances.traces.job_log import JobLog, Mask
from shadowprice.instances.traces.log_format import Computed, HeaderTable, LogFormat, Remark
from shadowprice.instances.workload import MAX_GANG


def _is_undated(log: JobLog) -> Mask:
    return np.isnan(log.times("timestamp"))


def _has_no_gang(log: JobLog) -> Mask:
    gpus = log.numbers("num_gpus")
    return np.asarray(~((gpus >= 1) & (gpus <= MAX_GANG) & (gpus == np.floor(gpus))))


def _has_no_duration(log: JobLog) -> Mask:
    duration_s = log.numbers("duration")
    return np.asarray(~((duration_s >= TICK_S) & (duration_s <= MAX_TIME_S)))


def _row(log: JobLog) -> NDArray[np.object_]:
    return (log.rows + 1).astype(str).astype(object)


FORMAT = LogFormat(
    name="philly",
    about=__doc__,
    table=HeaderTable("timestamp,duration,num_gpus,gpu_time,cluster"),
    remarks=(
        Remark("dropped", "timestamp is not a date", _is_undated),
        Remark("dropped", "num_gpus is not an integer > 0", _has_no_gang),
        Remark("dropped", "duration is not a number of seconds > 0", _has_no_duration),
    ),
    gpus="num_gpus",
    clock=LogClock("%Y-%m-%d %H:%M:%S"),
    submit="timestamp",
    end=Computed("duration", lambda log: log.numbers("duration")),
    columns={"id": Computed("row", _row), "tenant": "cluster"},
)
